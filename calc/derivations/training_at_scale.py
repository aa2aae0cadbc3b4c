"""What the chapter "Training at scale" quotes."""

from __future__ import annotations

from itertools import repeat

from calc import constants, failures, hardware, layouts, machines, models, runs, training
from calc.catalog.machines import Machine
from calc.catalog.models.architecture import Transformer
from calc.core.units import Quantity, QuantityLike, quantity
from calc.derivations.decisions import NAMES, TokensThatHide
from calc.derivations.examples import DENSE, MIXTURE
from calc.derivations.precision import rounded, with_digits_of
from calc.derivations.quoting import Row, Rows, show
from calc.steps.job import Layout
from calc.steps.layouts import DeviceMemory

LLAMA = DENSE


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _known(value: Quantity | None, *data: Quantity) -> Quantity | None:
    """What is printed of a result, where there is one."""
    return None if value is None else with_digits_of(value, *data)


def _held(way: tuple[str, Layout, str], model: Transformer, length: int) -> DeviceMemory:
    _, layout, recomputation = way
    return layouts.memory_per_device(model, layout, length, 1, recomputation)


class ShardedStates:
    """State is divided by ZeRO, TP, PP and EP; activations by TP and CP alone."""

    model = LLAMA
    mixture = models.get("mixtral-8x22b")
    h100 = hardware.get("h100")
    capacity = h100.memory_capacity
    length = 8192
    devices = 64
    slices = 8
    copies = 8
    # What is cut and how, what is recomputed, and a name for the figure.
    ways = (
        (f"DP {devices}", Layout(data=devices), "selective"),
        ("ZeRO 1: optimiser", Layout(data=devices, sharding=1), "selective"),
        ("ZeRO 2: gradients", Layout(data=devices, sharding=2), "selective"),
        ("ZeRO 3: weights", Layout(data=devices, sharding=3), "selective"),
        ("… and recomputed", Layout(data=devices, sharding=3), "full"),
        (f"CP {slices}, ZeRO 3", Layout(data=copies, context=slices, sharding=3), "selective"),
        (f"TP {slices}, DP {copies}", Layout(data=copies, tensor=slices), "selective"),
        ("… with ZeRO 1", Layout(data=copies, tensor=slices, sharding=1), "selective"),
        (
            f"TP {slices}, PP {copies}",
            Layout(tensor=slices, pipeline=copies, microbatches=copies),
            "selective",
        ),
    )
    ways_of_mixture = (
        (f"DP {devices}", Layout(data=devices), "selective"),
        (f"EP {slices}", Layout(data=devices, experts=slices), "selective"),
        ("… with ZeRO 1", Layout(data=devices, experts=slices, sharding=1), "selective"),
        (
            f"… and TP {slices}",
            Layout(data=copies, tensor=slices, experts=slices, sharding=1),
            "selective",
        ),
    )

    held = tuple(map(_held, ways, repeat(model), repeat(length)))
    held_of_mixture = tuple(map(_held, ways_of_mixture, repeat(mixture), repeat(length)))
    bytes_per_parameter = training.recipe("adam-mixed").bytes_per_parameter
    state = training.model_memory(model.parameters, bytes_per_parameter)
    sharded = held[3].total
    sliced = held[7].total


class CutThresholds:
    """Where cuts become communication-bound: the decision table's values, a row for each cut."""

    machines = tuple(map(machines.get, ("dgx-h200", "dgx-b200", "gb300-nvl72")))
    names = tuple(NAMES[machine.key] for machine in machines)
    idle = quantity(10, "%")

    # f = (p - 1) / (m + p - 1), solved for the microbatches m of each stage after the first.
    microbatches = 1 / idle.m_as("") - 1
    across = int(max(TokensThatHide.slices(machine, machine.ports) for machine in machines))
    sharded = TokensThatHide.tokens(machines[0], TokensThatHide.devices)

    @classmethod
    def row(cls, machine: Machine) -> Row:
        """Tokens of DP inside and across, and of a mixture; widths of TP; EP's ratios; CP."""
        inside, across = machine.bandwidth, machine.ports
        outside = TokensThatHide.tokens(machine, TokensThatHide.devices)
        assert outside is not None
        return (
            TokensThatHide.tokens(machine, 8),
            outside,
            outside * TokensThatHide.total_per_active,
            int(TokensThatHide.slices(machine, inside)),
            int(TokensThatHide.slices(machine, across)),
            TokensThatHide.exchange(machine, inside),
            TokensThatHide.exchange(machine, across),
            TokensThatHide.ring(machine, across),
        )

    @classmethod
    def rows(cls) -> Rows:
        """A cut, where it is bound by messages, and the threshold on each machine."""
        cuts = (
            "DP, FSDP among 8 in a domain: tokens of a device below",
            f"DP, FSDP across {TokensThatHide.devices}: below",
            f"DP of DeepSeek-V3 across {TokensThatHide.devices}: below",
            "TP of Llama 3.1 70B, inside: devices above",
            "TP across: above",
            "EP of DeepSeek-V3, inside: ratio, bound above 1",
            "EP across: ratio",
            "CP of Llama 3.1 70B across: tokens of a device below",
        )
        columns = map(cls.row, cls.machines)
        return [(cut, *values) for cut, *values in zip(cuts, *columns, strict=True)]


def steady_mfu(run: runs.Run) -> Quantity:
    """By the tokens of a second, where all goes well."""
    tokens = (run.throughput * quantity("1 s")).to("token")
    return training.mfu(run.parameters, tokens, run.devices, run.device_peak, "1 s")


class TrainingRuns:
    """Hours by the equation and as reported: from nothing lost to half as much again."""

    share_of_hfu = quantity("75%")  # three passes of four, with all layers recomputed
    all = tuple(runs.get(name) for name in runs.names())
    palm = runs.get("palm-540b")
    small = runs.get("llama-3-1-8b")
    middle = runs.get("llama-3-1-70b")
    large = runs.get("llama-3-1-405b")
    deepseek = runs.get("deepseek-v3")
    about = (runs.get("falcon-180b"),)  # whose hours are published in a single digit
    count = len(all)
    large_mfu = large.mfu
    large_effective_time = large.effective_time

    @classmethod
    def steady(cls, run: runs.Run) -> tuple[Quantity | None, tuple[Quantity, ...]]:
        """MFU in steady state: as reported, by the throughput, or with all layers recomputed; and
        the reported numbers that it follows from."""
        if run.publishes("mfu"):
            return run.mfu, (run.mfu,)
        if run.publishes("throughput"):
            return steady_mfu(run), (run.parameters, run.throughput)
        return (run.hfu * cls.share_of_hfu, (run.hfu,)) if run.publishes("hfu") else (None, ())

    @classmethod
    def computed(cls, run: runs.Run) -> Quantity | None:
        """Hours of all devices by the equation, at the utilisation of steady state."""
        steady, _ = cls.steady(run)
        if steady is None:
            return None
        time = training.training_time(run.parameters, run.tokens, 1, run.device_peak, steady)
        return time.to("h")

    @staticmethod
    def overall(run: runs.Run) -> Quantity | None:
        """Utilisation over all hours that were reported."""
        if not run.publishes("device_time"):
            return None
        return training.mfu(run.parameters, run.tokens, 1, run.device_peak, run.device_time).to("%")

    @classmethod
    def ratio(cls, run: runs.Run) -> Quantity | None:
        """Hours as reported over hours by the equation."""
        computed = cls.computed(run)
        if computed is None or not run.publishes("device_time"):
            return None
        return run.device_time / computed

    @classmethod
    def row(cls, run: runs.Run) -> Row:
        """A run: what it reports, what the equation gives, and their ratio."""
        device = run.device.split(" ", 1)[1].removesuffix(" 80 GB").removesuffix(" 40 GB")
        device = _unbroken(device)
        if run.publishes("devices"):
            device = f"{show(run.devices)} {device}"
        steady, used = cls.steady(run)
        work = (run.parameters, run.tokens)
        computed = _known(cls.computed(run), *work, *used)
        overall = _known(cls.overall(run), *work)
        if overall is not None and run in cls.about:
            overall = rounded(overall.to("%"), 1)
        return (
            f"[{_unbroken(run.name)}](../backmatter/sources-models.qmd#{run.key})",
            run.tokens.m_as("token") / 1e12,
            device,
            None if steady is None else with_digits_of(steady.to("%"), *used),
            None if computed is None else computed.m_as("h") / 1e6,
            run.device_time.m_as("h") / 1e6 if run.publishes("device_time") else None,
            _known(cls.ratio(run), *work, *used),
            overall,
        )


class Outliers:
    """What explains the ratios of the table, and what does not."""

    palm_steady = training.mfu(
        TrainingRuns.palm.parameters,
        (TrainingRuns.palm.throughput * quantity("1 s")).to("token"),
        TrainingRuns.palm.devices,
        TrainingRuns.palm.device_peak,
        "1 s",
    ).to("%")
    deepseek_steady = steady_mfu(TrainingRuns.deepseek).to("%")
    deepseek_of_fp8 = deepseek_steady * (
        hardware.get("h100").peak("bf16") / hardware.get("h100").peak("fp8")
    )
    small_overall = TrainingRuns.overall(TrainingRuns.small)
    middle_overall = TrainingRuns.overall(TrainingRuns.middle)
    large_overall: Quantity = TrainingRuns.overall(TrainingRuns.large)  # type: ignore[assignment]
    large_lost = (1 - large_overall / TrainingRuns.large_mfu).to("%")
    palm_overall: Quantity = TrainingRuns.overall(TrainingRuns.palm)  # type: ignore[assignment]
    palm_lost = (1 - palm_overall / palm_steady).to("%")


class Failures:
    """A machine fails as often as all its devices together, and restarts are what that costs."""

    run = runs.get("llama-3-1-405b")
    interruptions = run.interruptions
    observed_time = run.observed_time
    devices = run.devices
    effective_time = run.effective_time
    storage = run.storage_bandwidth
    restart = quantity("10 min")
    quick_restart = quantity("1 min")
    slow_checkpoint = quantity("5 min")
    fixed = quantity("4 h")
    fewest = 1000
    most = 250000
    many = 131072

    parts = training.recipe("adam-mixed").parts
    checkpointed = parts["master weight"] + parts["momentum"] + parts["variance"]
    between = (observed_time / interruptions).to("h")
    of_a_device = (between * devices).to("year")
    checkpoint_size = training.model_memory(run.parameters, checkpointed)
    checkpoint = (checkpoint_size / storage).to("s")
    interval = training.checkpoint_interval(checkpoint, between).to("min")
    goodput = training.goodput(interval, checkpoint, restart, between).to("%")
    lost = (1 - training.goodput(interval, checkpoint, "0 s", between)).to("%")
    slow_interval = training.checkpoint_interval(slow_checkpoint, between).to("min")
    slow_goodput = training.goodput(slow_interval, slow_checkpoint, restart, between).to("%")
    fixed_goodput = training.goodput(fixed, checkpoint, restart, between).to("%")

    @classmethod
    def useful(cls, devices: QuantityLike, checkpoint: Quantity, restart: Quantity) -> Quantity:
        """Share of the time that lasts on so many devices, at the best interval."""
        between = training.time_between_failures(cls.of_a_device, devices)
        interval = training.checkpoint_interval(checkpoint, between)
        return training.goodput(interval, checkpoint, restart, between)

    many_between = of_a_device / many
    many_interval = training.checkpoint_interval(checkpoint, many_between)
    many_goodput = training.goodput(many_interval, checkpoint, restart, many_between).to("%")
    many_quick = training.goodput(many_interval, checkpoint, quick_restart, many_between).to("%")


class OtherFailures:
    """Spares, stragglers and silent corruption each take a share that can be counted."""

    devices = 16384
    repair = quantity("3 day")
    deviation = quantity(2, "%")

    spares = failures.spares_needed(devices, Failures.of_a_device, repair)
    spare_share = (1 - failures.goodput_of_spares(devices, spares, 1)).to("%")

    # Four deviations from the mean, and all wait for it.
    of_all = (
        failures.slowest("1 s", deviation.m_as("") * quantity("1 s"), devices) / quantity("1 s") - 1
    ).to("%")


class LeastWork:
    """The model that reaches the loss of a small one with the least operations, by one fit."""

    def __init__(self, small: Quantity, tokens: Quantity, fit: str = "") -> None:
        irreducible = constants.get(f"loss_irreducible{fit}")
        by_size = constants.get(f"coefficient_parameters{fit}")
        alpha = constants.get(f"exponent_parameters{fit}")
        by_tokens = constants.get(f"coefficient_tokens{fit}")
        beta = constants.get(f"exponent_tokens{fit}")
        self.loss = training.pretraining_loss(
            small, tokens, irreducible, by_size, alpha, by_tokens, beta
        )
        above = self.loss - irreducible
        self.parameters = training.least_work_parameters(above, by_size, alpha, beta)
        self.tokens = training.least_work_tokens(above, by_tokens, beta, alpha)
        self.ratio = (small * tokens / (self.parameters * self.tokens)).to("")
        self.saved = (
            (training.inference_flops(self.parameters) - training.inference_flops(small))
            / quantity("1 token")
        ).to("GFLOP/token")
        more = training.training_flops(small, tokens) - training.training_flops(
            self.parameters, self.tokens
        )
        self.repaid = (more / self.saved).to("token")


class PastTheOptimum:
    """A small model on many tokens costs more to train, and less ever after."""

    small = models.get("llama-3-8b").parameters
    small_tokens = quantity("15T token")

    tokens_per_parameter = small_tokens / small
    first = LeastWork(small, small_tokens)
    second = LeastWork(small, small_tokens, "_refit")
    first_ratio = first.ratio
    second_ratio = second.ratio
    first_tokens_per_parameter = (first.tokens / first.parameters).to("token/param")
    second_tokens_per_parameter = (second.tokens / second.parameters).to("token/param")
    first_repaid = first.repaid
    second_repaid = second.repaid


class StateOfMixture:
    """Problem 1: how many devices hold a mixture's state."""

    device = machines.get("gb300-nvl72").device
    capacity = device.memory_capacity
    per_parameter = training.recipe("adam-mixed-fp32-gradients").bytes_per_parameter
    usable = quantity(90, "%")

    state = training.model_memory(MIXTURE.parameters, per_parameter).to("TB")
    devices = (state / (usable * capacity)).to("")


class OwnCheckpoints:
    """Problem 2: how often a smaller cluster saves, and to what."""

    parameters = quantity("70B param")
    devices = 2048
    of_a_device = quantity("5 year")
    storage = quantity("20 GB/s")
    faster = 10
    restart = Failures.restart

    size = training.model_memory(parameters, Failures.checkpointed)
    between = training.time_between_failures(of_a_device, devices).to("h")
    checkpoint = (size / storage).to("s")
    interval = training.checkpoint_interval(checkpoint, between).to("min")
    goodput = training.goodput(interval, checkpoint, restart, between).to("%")
    fast = (size / (faster * storage)).to("s")
    fast_interval = training.checkpoint_interval(fast, between).to("min")
    fast_goodput = training.goodput(fast_interval, fast, restart, between).to("%")
    gained = fast_goodput - goodput
