"""Claims of the chapter "Training at scale"."""

from __future__ import annotations

from itertools import repeat

from calc import (
    collectives,
    constants,
    failures,
    hardware,
    layouts,
    machines,
    models,
    parallelism,
    published,
    runs,
    training,
    transformer,
)
from calc.catalog.machines import Machine
from calc.catalog.models.architecture import Transformer
from calc.core.units import Quantity, QuantityLike, quantity
from calc.derivations.bases import HidingTokens, Rent, TensorLimit
from calc.derivations.by_hand import by_hand, counted, no_hand, row_by_hand
from calc.derivations.decisions import NAMES, CutsThatHide
from calc.derivations.examples import DENSE, MIXTURE
from calc.derivations.ledger import Claims
from calc.derivations.quoted_digits import with_digits_of
from calc.derivations.quoting import Row, Rows, show
from calc.derivations.traces import whole
from calc.steps.job import Layout
from calc.steps.layouts import DeviceMemory

LLAMA = DENSE


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _known(value: Quantity | None, *data: Quantity) -> Quantity | None:
    """Return the printed form of a result, where there is one."""
    return None if value is None else with_digits_of(value, *data)


def _held(way: tuple[str, Layout, str], model: Transformer, length: int) -> DeviceMemory:
    _, layout, recomputation = way
    return layouts.memory_per_device(model, layout, length, 1, recomputation)


class ShardedStates(Claims):
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
    bytes_per_parameter = training.recipe("adam-mixed").bytes_per_parameter | by_hand(
        "(2 + 2 + 4 + 4 + 4) byte/param", "2 + 2 + 4 + 4 + 4; Rajbhandari et al. 2020"
    )
    state = training.model_memory(model.parameters, bytes_per_parameter) | by_hand(
        "16 * 70553706496 * 1 byte"
    )
    sharded = held[3].total | by_hand("(17.63843 + 184.0545) GB")
    sliced = held[7].total | by_hand("70553706496 / 8 * (2 + 2 + 12/8) * 1 byte + 184.0545 GB / 8")
    staged = held[8].total | by_hand(
        "16 * (10 * 855638016 + 128256 * 8192) / 8 * 1 byte + (184.0545 GB - {logits}) / 8"
    )
    logits = held[0].loss.to("GB") | by_hand(
        "8192 * 128256 * 4 byte", "in BF16, with their gradient"
    )


class HoldsAndSends(Claims):
    """A cut that holds less sends something else: weights, activations, tokens or keys.

    Of Llama 3.1 70B, and for experts of Mixtral 8x22B, in BF16; sent by a device for its tokens,
    forward and backward.
    """

    devices = 4
    tokens = ShardedStates.length
    element = quantity("2 byte")

    whole = (ShardedStates.model.parameters * element / quantity("1 param")).to("GB") | by_hand(
        "70553706496 * 2 byte"
    )
    part = (whole / devices).to("GB") | by_hand("70553706496 * 2 byte / 4")
    vectors = (tokens * ShardedStates.model.width * element).to("GB")
    layers = ShardedStates.model.layers
    gradients = collectives.all_reduce_traffic(whole, devices).to("GB") | by_hand(
        "2 * 3 / 4 * {whole}"
    )
    sharded = (3 * collectives.all_gather_traffic(whole, devices)).to("GB") | by_hand(
        "3 * 3 / 4 * {whole}"
    )
    sums = (4 * layers * collectives.all_reduce_traffic(vectors, devices)).to("GB") | by_hand(
        "4 * 80 * 2 * 3 / 4 * 8192 * 8192 * 2 byte"
    )
    handed = (2 * vectors).to("GB") | by_hand("2 * 8192 * 8192 * 2 byte")
    _keys = transformer.kv_cache_per_token(ShardedStates.model) * quantity(tokens, "token")
    # Passed round in the forward pass; in the backward pass again, with their gradients.
    ring = (3 * collectives.all_gather_traffic(_keys, devices)).to("GB") | by_hand(
        "3 * 3 / 4 * 8192 * 327680 byte"
    )
    mixture = ShardedStates.mixture
    _experts = mixture.parts["feed-forward"]
    held = (
        (mixture.parameters - _experts + _experts / devices) * element / quantity("1 param")
    ).to("GB") | by_hand("2 * (140620634112 - 3 / 4 * 56 * 8 * 3 * 6144 * 16384) * 1 byte")
    exchanged = (
        2
        * mixture.layers
        * parallelism.expert_traffic(
            tokens, mixture.width, mixture.active_experts, devices, element, element
        )
    ).to("GB") | by_hand("2 * 56 * 3 / 4 * 8192 * 2 * 6144 * 4 byte")


class CutMatrices(Claims):
    """Columns and then rows leave one sum; columns twice gather what lies between them too.

    The feed-forward network of a layer of Llama 3.1 70B in BF16, in the forward pass.
    """

    devices = HoldsAndSends.devices
    tokens = 4096
    vectors = (tokens * LLAMA.width * HoldsAndSends.element).to("MB")

    whole = (
        LLAMA.parts["feed-forward"] / LLAMA.layers * HoldsAndSends.element / quantity("1 param")
    ).to("GB") | by_hand("3 * 8192 * 28672 * 2 byte")
    held = (whole / devices).to("MB") | by_hand("{whole} / 4")
    _between = (tokens * LLAMA.feed_forward_width * HoldsAndSends.element).to("MB")
    summed = collectives.all_reduce_traffic(vectors, devices).to("MB") | by_hand(
        "2 * 3 / 4 * 4096 * 8192 * 2 byte"
    )
    gathered_between = collectives.all_gather_traffic(_between, devices).to("MB") | by_hand(
        "3 / 4 * 4096 * 28672 * 2 byte"
    )
    gathered = collectives.all_gather_traffic(vectors, devices).to("MB") | by_hand(
        "3 / 4 * 4096 * 8192 * 2 byte"
    )
    both = (gathered_between + gathered).to("MB") | by_hand("{gathered_between} + {gathered}")
    ratio = (both / summed).to("") | by_hand("{both} / {summed}")


class CutThresholds(Claims):
    """Cuts become communication-bound at the decision table's values, a row for each cut."""

    machines = tuple(map(machines.get, ("dgx-h200", "dgx-b200", "gb300-nvl72")))
    names = tuple(NAMES[machine.key] for machine in machines) | row_by_hand(
        "TP of Llama 3.1 70B among 8 in a domain: devices above | 23 | 15 | 14"
    )
    idle = quantity(10, "%")

    # f = (p - 1) / (m + p - 1), solved for the microbatches m of each stage after the first.
    microbatches = 1 / idle.m_as("") - 1 | by_hand("0.9 / 0.1")
    sharded = HidingTokens.planned(machines[0], CutsThatHide.devices) | no_hand(
        "2645.836 token", "a threshold by measured curves"
    )

    @classmethod
    def row(cls, machine: Machine) -> Row:
        """Tokens of DP inside and across, and of a mixture; widths of TP; EP's ratios; CP."""
        outside = HidingTokens.planned(machine, CutsThatHide.devices)
        assert outside is not None
        return (
            HidingTokens.planned(machine, 8),
            outside,
            outside * CutsThatHide.total_per_active,
            *map(whole, CutsThatHide.limits(machine)),
            *CutsThatHide.exchanges(machine),
            CutsThatHide.ring(machine, machine.ports),
        )

    @classmethod
    def rows(cls) -> Rows:
        """A cut, where it is bound by messages, and the threshold on each machine."""
        cuts = (
            "DP, FSDP among 8 in a domain: tokens of a device below",
            f"DP, FSDP across {CutsThatHide.devices}: below",
            f"DP of DeepSeek-V3 across {CutsThatHide.devices}: below",
            "TP of Llama 3.1 70B among 8 in a domain: devices above",
            "TP among 16: above",
            "EP of DeepSeek-V3, inside: ratio, bound above 1",
            "EP across: ratio",
            "CP of Llama 3.1 70B across: tokens of a device below",
        )
        columns = map(cls.row, cls.machines)
        return [(cut, *values) for cut, *values in zip(cuts, *columns, strict=True)]


def steady_mfu(run: runs.Run) -> Quantity:
    """Return the MFU by the tokens of a second, where all goes well."""
    tokens = (run.throughput * quantity("1 s")).to("token")
    return training.mfu(run.parameters, tokens, run.devices, run.device_peak, "1 s")


class FullyShardedLayer(Claims):
    """A layer's weights are gathered while the one before it is computed, if tokens suffice."""

    layer = (LLAMA.parts["attention"] + LLAMA.parts["feed-forward"]) / LLAMA.layers | by_hand(
        "(2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672) * 1 param"
    )
    few = 1536
    many = 4096

    _work = training.inference_flops(layer) / CutThresholds.machines[0].likely("gemm", "bf16")
    compute_few = (few * _work).to("ms") | by_hand("2 * 855638016 * 1536 FLOP / 794.5 TFLOP/s")
    compute_many = (many * _work).to("ms") | by_hand("{compute_few} * 4096 / 1536")
    gather = (CutThresholds.sharded.m_as("token") * _work).to("ms") | by_hand(
        "{CutThresholds.sharded} / 1536 token * {compute_few}"
    )
    waits = (1 - compute_few / gather).to("%") | by_hand("1 - {compute_few} / {gather}")


class CutsTogether(Claims):
    """TP under FSDP lets fewer tokens suffice where each device has links of its own to all others.

    Across servers it does not: without TP a weight comes to a server once and is passed on inside,
    with TP each device fetches its own slice, so that as many bytes come through the same ports.
    """

    servers, rack = CutThresholds.machines[0], CutThresholds.machines[2]
    inside = ShardedStates.slices
    of_rack = ShardedStates.devices
    hidden = LLAMA.feed_forward_width | by_hand("28672")

    # What the bounds of servers are made of: a rate, and the bandwidths of a gather and of a sum.
    rate = servers.likely("gemm", "bf16")
    tokens = CutThresholds.sharded
    gathering = (rate / tokens * quantity("1 byte·token/FLOP")).to("GB/s") | by_hand(
        "794.5e12 / 2645.836 * 1 byte/s"
    )
    _limit = TensorLimit.planned(servers, inside)
    assert _limit is not None
    limit = _limit | no_hand("23.32671", "a limit by measured curves")
    summing = ((limit - 1) * rate / hidden * quantity(2 / 3, "byte/FLOP")).to("GB/s") | by_hand(
        "22.32671 * 2 * 794.5e12 / (3 * 28672) * 1 byte/s"
    )
    share = ((inside - 1) / (limit - 1)).to("%") | by_hand("7 / 22.32671")

    _tokens_of_rack = HidingTokens.planned(rack, of_rack)
    _limit_of_rack = TensorLimit.planned(rack, inside)
    assert _tokens_of_rack is not None
    assert _limit_of_rack is not None
    tokens_of_rack = _tokens_of_rack | no_hand("2150.615 token", "a threshold by measured curves")
    share_of_rack = ((inside - 1) / (_limit_of_rack - 1)).to("%") | by_hand("7 / 13.81836")
    together = tokens_of_rack / inside / (1 - share_of_rack) | by_hand(
        "2150.615 token / 8 / (1 - 7 / 13.81836)"
    )

    # The one pair of published steps of which one gathers for half the tokens, on 40 GB A100s.
    _few, _many = (published.row(f"llm-foundry-{number}") for number in (140, 139))
    few = quantity(_few["micro_batch"] * _few["seq_len"], "token") | by_hand("2 * 2048 token")
    many = quantity(_many["micro_batch"] * _many["seq_len"], "token") | by_hand("4 * 2048 token")
    _needed = HidingTokens.planned(machines.get("dgx-a100-40gb"), 64)
    assert _needed is not None
    assert _needed < 0.6 * few, "both steps are above their bound"
    lost = quantity(
        100 * (1 - _few.measured["tokens_per_s_per_gpu"] / _many.measured["tokens_per_s_per_gpu"]),
        "%",
    ) | by_hand("1 - 276 / 376")

    @classmethod
    def taken(cls, machine: Machine, tokens: float) -> tuple[float, float, float]:
        """Return what messages take of the arithmetic: of FSDP alone, of TP alone, and of both.

        In a rack both share the links of a device, and add up. Of servers FSDP has the ports and TP
        the links inside, so that the longer counts, and FSDP's is no shorter under TP.
        """
        if machine.domain >= cls.of_rack:
            gathers, sums = cls.tokens_of_rack.m_as("token") / tokens, cls.share_of_rack.m_as("")
            return gathers, sums, gathers / cls.inside + sums
        gathers, sums = cls.tokens.m_as("token") / tokens, cls.share.m_as("")
        return gathers, sums, max(gathers, sums)


class TrainingRuns(Claims):
    """Hours by the equation and as reported: from nothing lost to half as much again."""

    share_of_hfu = quantity("75%")  # three passes of four, with all layers recomputed
    all = tuple(runs.get(name) for name in runs.names())
    palm = runs.get("palm-540b")
    small = runs.get("llama-3-1-8b")
    middle = runs.get("llama-3-1-70b")
    large = runs.get("llama-3-1-405b")
    deepseek = runs.get("deepseek-v3")
    count = len(all) | by_hand("13")
    compared = sum(
        run.publishes("device_time") and any(map(run.publishes, ("mfu", "throughput", "hfu")))
        for run in all
    ) | by_hand("6")
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
    @row_by_hand("… | 0.366 | 384 A100 | 38% | 0.92 | 1.08 | 1.2 | 31.8%")
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


class Outliers(Claims):
    """Some causes explain the ratios of the table, and others do not."""

    palm_steady = training.mfu(
        TrainingRuns.palm.parameters,
        (TrainingRuns.palm.throughput * quantity("1 s")).to("token"),
        TrainingRuns.palm.devices,
        TrainingRuns.palm.device_peak,
        "1 s",
    ).to("%")
    deepseek_steady = steady_mfu(TrainingRuns.deepseek).to("%") | by_hand(
        "272.8e9 / 86400 * 6 * 37.5525e9 / (2048 * 989e12)"
    )
    deepseek_of_fp8 = deepseek_steady * (
        hardware.get("h100").peak("bf16") / hardware.get("h100").peak("fp8")
    ) | by_hand("(35.12089 * 989/1979) * 1 %")
    small_overall = TrainingRuns.overall(TrainingRuns.small) | by_hand(
        "6 * 8.030261248e9 * 15e12 / (1.46e6 * 3600 * 989e12)"
    )
    middle_overall = TrainingRuns.overall(TrainingRuns.middle) | by_hand(
        "6 * 70.553706496e9 * 15e12 / (7.0e6 * 3600 * 989e12)"
    )
    large_overall: Quantity = TrainingRuns.overall(TrainingRuns.large)  # type: ignore[assignment]
    large_lost = (1 - large_overall / TrainingRuns.large_mfu).to("%") | by_hand("1 - 34.52373 / 41")
    palm_overall: Quantity = TrainingRuns.overall(TrainingRuns.palm)  # type: ignore[assignment]
    palm_lost = (1 - palm_overall / palm_steady).to("%") | by_hand("1 - 30.39125 / 45.72635")


class Failures(Claims):
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
    fewest = 1000 | by_hand("1000")
    most = 250000 | by_hand("250000")
    many = 131072

    parts = training.recipe("adam-mixed").parts
    checkpointed = parts["master weight"] + parts["momentum"] + parts["variance"] | by_hand(
        "3 * 4 byte/param"
    )
    between = (observed_time / interruptions).to("h") | by_hand("54 days / 419")
    of_a_device = (between * devices).to("year") | by_hand("54 days * 16384 / 419")
    checkpoint_size = training.model_memory(run.parameters, checkpointed) | by_hand(
        "405e9 * 12 byte"
    )
    checkpoint = (checkpoint_size / storage).to("s") | by_hand("(4.86 / 2) s")
    interval = training.checkpoint_interval(checkpoint, between).to("min") | by_hand(
        "232.6295 s * (1 + 0.0034819 + 1.21e-05) - 2.43 s"
    )
    goodput = training.goodput(interval, checkpoint, restart, between).to("%") | by_hand(
        "exp(0 - 600 / 11135.08) * 0.0207464 / (exp(0.0209646) - 1)"
    )
    lost = (1 - training.goodput(interval, checkpoint, "0 s", between)).to("%") | by_hand(
        "1 - 0.0207464 / (exp(0.0209646) - 1)"
    )
    slow_interval = training.checkpoint_interval(slow_checkpoint, between).to("min")
    slow_goodput = training.goodput(slow_interval, slow_checkpoint, restart, between).to(
        "%"
    ) | by_hand("0.214515 * 0.947542 / (exp(0.241457) - 1)")
    fixed_goodput = training.goodput(fixed, checkpoint, restart, between).to("%") | by_hand(
        "1.293210 * 0.947542 / (exp(1.293428) - 1)"
    )

    @classmethod
    def useful(cls, devices: QuantityLike, checkpoint: Quantity, restart: Quantity) -> Quantity:
        """Share of the time that lasts on so many devices, at the best interval."""
        between = training.time_between_failures(cls.of_a_device, devices)
        interval = training.checkpoint_interval(checkpoint, between)
        return training.goodput(interval, checkpoint, restart, between)

    many_between = of_a_device / many
    many_interval = training.checkpoint_interval(checkpoint, many_between)
    many_goodput = training.goodput(many_interval, checkpoint, restart, many_between).to(
        "%"
    ) | by_hand(
        "80.635 * 419 * 8 / 54 / 86400 / (exp(83.065 * 419 * 8 / 54 / 86400) - "
        "1) * exp(-600 * 419 * 8 / 54 / 86400)"
    )
    many_quick = training.goodput(many_interval, checkpoint, quick_restart, many_between).to(
        "%"
    ) | by_hand("61.21683 % * exp(540 / 1391.89)")


class StorageForLoss(Claims):
    """Storage must be faster by the square of what saving and repeated work are not to cost."""

    shares = (quantity(5, "%"), quantity(2, "%"), quantity(1, "%"))
    rent = Rent.published_h100
    by_restarts = (Failures.restart / Failures.between).to("%") | by_hand("600 / 11135.08")

    @classmethod
    @row_by_hand("2% | 2.2 s | = 4.86e12 / 2.227017 * 1 byte/s | = 0.02 * 16384 * 2.95 * 1 USD/h")
    def rows(cls) -> Rows:
        """Return for each share how long a save may be, what storage writes, and the rent lost."""
        rows = []
        for share in cls.shares:
            save = (share**2 * Failures.between / 2).to("s")
            lost = (share * Failures.devices * cls.rent).to("USD/h")
            rows.append((share, save, (Failures.checkpoint_size / save).to("TB/s"), lost))
        return rows


class OtherFailures(Claims):
    """Spares, stragglers and silent corruption each take a share that can be counted."""

    devices = 16384
    repair = quantity("3 day")
    deviation = quantity(2, "%")

    spares = failures.spares_needed(devices, Failures.of_a_device, repair) | counted("spares")
    in_server = machines.get("dgx-h100").domain
    spare_devices = spares * in_server | by_hand("35 * 8")
    spare_share = (1 - failures.goodput_of_spares(devices, spare_devices, 1)).to("%") | by_hand(
        "280 / 16664"
    )

    # Four deviations from the mean, and all wait for it.
    of_all = (
        failures.slowest("1 s", deviation.m_as("") * quantity("1 s"), devices) / quantity("1 s") - 1
    ).to("%") | by_hand("3.9714 * 2 %")


class LeastWork(Claims):
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


class PastTheOptimum(Claims):
    """A small model on many tokens costs more to train, and less ever after."""

    small = models.get("llama-3-8b").parameters
    small_tokens = quantity("15T token")

    tokens_per_parameter = small_tokens / small | by_hand("(15e12 / 8030261248) token/param")
    first = LeastWork(small, small_tokens)
    second = LeastWork(small, small_tokens, "_refit")
    first_ratio = first.ratio | by_hand("8030261248 * 15e12 / (26.16941e9 * 2.319303e12)")
    second_ratio = second.ratio | by_hand("8030261248 * 15e12 / (33.87369e9 * 0.6466379e12)")
    first_tokens_per_parameter = (first.tokens / first.parameters).to("token/param") | by_hand(
        "(2.319303e12 / 26.16941e9) token/param"
    )
    second_tokens_per_parameter = (second.tokens / second.parameters).to("token/param") | by_hand(
        "(0.6466379e12 / 33.87369e9) token/param"
    )
    first_repaid = first.repaid | by_hand(
        "3 * (1.204539e23 - 6.069479e22) / (26.16941e9 - 8.030261e9) * 1 token"
    )
    second_repaid = second.repaid | by_hand(
        "3 * (1.204539e23 - 2.190401e22) / (33.87369e9 - 8.030261e9) * 1 token"
    )


class StateOfMixture(Claims):
    """Problem 1: how many devices hold a mixture's state."""

    device = machines.get("gb300-nvl72").device
    capacity = device.memory_capacity
    per_parameter = training.recipe("adam-mixed-fp32-gradients").bytes_per_parameter | by_hand(
        "2 byte/param + 4 byte/param + 3 * 4 byte/param"
    )
    usable = quantity(90, "%")

    state = training.model_memory(MIXTURE.parameters, per_parameter).to("TB") | by_hand(
        "671.03e9 * 18 bytes"
    )
    devices = (state / (usable * capacity)).to("") | by_hand(
        "12.0785e12 byte / (0.9 * 279 * 2**30 byte)"
    )


class OwnCheckpoints(Claims):
    """Problem 2: how often a smaller cluster saves, and to what."""

    parameters = quantity("70B param")
    devices = 2048
    of_a_device = quantity("5 year")
    storage = quantity("20 GB/s")
    faster = 10
    restart = Failures.restart

    size = training.model_memory(parameters, Failures.checkpointed) | by_hand("70e9 * 12 byte")
    between = training.time_between_failures(of_a_device, devices).to("h") | by_hand(
        "5 * 8766 h / 2048"
    )
    checkpoint = (size / storage).to("s") | by_hand("(840 / 20) s")
    interval = training.checkpoint_interval(checkpoint, between).to("min") | by_hand(
        "(sqrt(2 * 42 * 5 * 8766 * 3600 / 2048) * (1 + sqrt(42 * 2048 / 2 / 5 /"
        " 8766 / 3600) / 3 + 42 * 2048 / 18 / 5 / 8766 / 3600) - 42) * 1 s"
    )
    goodput = training.goodput(interval, checkpoint, restart, between).to("%") | by_hand(
        "0.0326569 * 0.9922426 / (exp(0.0332020) - 1)"
    )
    fast = (size / (faster * storage)).to("s")
    fast_interval = training.checkpoint_interval(fast, between).to("min")
    fast_goodput = training.goodput(fast_interval, fast, restart, between).to("%")
    gained = fast_goodput - goodput | by_hand("(98.1918 - 95.98391) * 1 %")
