"""Claims of the chapter "Fine-tuning and reinforcement learning"."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy

from calc import (
    finetuning,
    hardware,
    layers,
    links,
    models,
    plan_training,
    reinforcement,
    rollouts,
    training,
)
from calc.core.units import Quantity, quantity
from calc.derivations.by_hand import by_hand, no_hand, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.designing_runs import PublishedLayouts
from calc.derivations.examples import MIXTURE
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row, Rows
from calc.derivations.traces import whole
from calc.laws.rollouts import Lengths
from calc.planning.plan_nouns import Prices, Search, Training
from calc.published import finetuning_rows as measured_tuning, rollout_rows as measured_rollouts
from calc.steps.job import Batch, Job, Layout

SMALL = models.get("llama-3-1-8b")
LARGE = models.get("llama-3-1-70b")
NAMES = {  # of published rows
    "torchtune-packed": "all weights, not compiled",
    "torchtune-compiled": "all weights, compiled",
    "torchtune-chunked-loss": "… loss in chunks",
    "torchtune-recomputed": "… layers recomputed",
    "torchtune-fused-optimizer": "… gradients fused",
    "torchtune-offloaded": "… activations on the host",
    "torchtune-8bit": "… 8-bit Adam",
    "torchtune-lora": "LoRA, rank 64",
    "torchtune-qlora": "QLoRA, rank 64",
    "peft-lora-32": "PEFT: LoRA, rank 32",
    "peft-lora-64": "PEFT: LoRA, rank 64",
    "peft-full": "PEFT: all weights",
    "dgx-h100": "H100",
    "gb200-nvl72": "GB200",
    "glm-4-5-air": "GLM-4.5-Air",
    "qwen3-235b": "Qwen3 235B-A22B",
    "deepseek-v3-1-16": "DeepSeek-V3.1",
    "kimi-k2-16": "Kimi K2",
    "deepseek-v3-1-256": "DeepSeek-V3.1",
    "kimi-k2-256": "Kimi K2",
}
CARDS = ("rtx-4090", "l40s", "h100")  # of 24, 48 and 80 GiB


def _sum(parts: dict[str, Quantity]) -> Quantity:
    return sum(parts.values(), quantity(0, "byte")).to("GB")


def _whole(share: Quantity) -> Quantity:
    """In whole per cents."""
    return quantity(round(share.m_as("%")), "%")


class BytesByRecipe(Claims):
    """Recipes differ by a factor of three in what they keep of a parameter, adapters by more."""

    small = SMALL
    large = LARGE
    rank = 16
    # What a recipe is called here, in calc, and what it keeps.
    recipes = (
        ("FP32 gradients", "adam-mixed-fp32-gradients"),
        ("Mixed, Adam", "adam-mixed"),
        ("Mixed, Muon", "muon-mixed"),
        ("Mixed, momentum or Lion", "momentum-mixed"),
        ("Mixed, Adafactor", "adafactor-mixed"),
        ("BF16, Adam", "adam-bf16"),
        ("BF16, 8-bit Adam", "adam-8bit"),
    )

    mixed = _sum(finetuning.states(small, "adam-mixed")) | by_hand("16 * 8030261248 * 1 byte")
    eight_bit = training.recipe("adam-8bit").bytes_per_parameter | by_hand(
        "(2 + 2 + 2 * (1 + 4/256)) byte/param"
    )
    muon = (_sum(finetuning.states(small, "muon-mixed")) / small.parameters).to(
        "byte/param"
    ) | by_hand("12 byte/param + 4 byte * (2 * 128256 * 4096 + 65 * 4096) / 8030261248 param")

    @classmethod
    def kept(cls, model: models.Transformer) -> list[tuple[str, dict[str, Quantity]]]:
        """Each recipe, and adapters, with the parts of what they keep of a model."""
        states = [(name, finetuning.states(model, recipe)) for name, recipe in cls.recipes]
        for name, method in (("LoRA", "lora"), ("QLoRA", "qlora")):
            memory = finetuning.memory(model, finetuning.Adapters(method, cls.rank))
            around = memory.adapters + memory.gradients + memory.optimizer
            states.append((name, {"weight": memory.weights, "adapters": around}))
        return states

    @classmethod
    @row_by_hand("BF16, Adam | 8 | 64.2 GB | 564 GB")
    def rows(cls) -> Rows:
        """A recipe: bytes for each parameter and in all, of the small and the large model."""
        rows = []
        large = dict(cls.kept(cls.large))
        for name, parts in cls.kept(cls.small):
            total = _sum(parts)
            each = (total / cls.small.parameters).to("byte/param")
            rows.append((name, each.magnitude, total, _sum(large[name])))
        return rows


class Adapters(Claims):
    """Adapters are half a percent of the parameters, and what they need besides is frozen."""

    small = SMALL
    rank = 16
    peft_rank = 32
    block = 64  # of NF4: codes with a scale, and scales with one of their own
    scales = 256

    count = finetuning.adapters(small, rank) | by_hand(
        "(16 * 32 * (2 * 8192 + 2 * 5120 + 3 * 18432)) param"
    )
    share = (count / small.parameters).to("%") | by_hand("41943040 / 8030261248")
    peft = finetuning.adapters("llama-3-2-3b", peft_rank, ["query", "value"]) | by_hand(
        "9175040 param"
    )
    nf4 = finetuning.nf4_size().to("bit/param") | by_hand(
        "(4 + 8/64 + 32/(64 * 256)) bit/param",
        "4 + 8/64 + 32/(64 · 256); Dettmers et al. 2023 have 0.127 bits of scales",
    )
    frozen = finetuning.memory(small, finetuning.Adapters("lora", rank)).weights.to("GB") | by_hand(
        "2 * 8030261248 * 1 byte"
    )
    codes = finetuning.Adapters("qlora", rank)
    quantized = finetuning.memory(small, codes).weights.to("GB") | by_hand(
        "6979321856 * 4.126953 bit + 1050939392 * 2 byte"
    )


class DoesItFit(Claims):
    """One card of 48 GB tunes 70B; one of 24 GB does when the host holds the weights."""

    rank = 16
    context = 2048
    small_card = hardware.get("rtx-4090").memory_capacity
    middle_card = hardware.get("l40s").memory_capacity
    link = quantity("25 GB/s")
    card = "rtx-4090"
    ways = (
        ("8B, LoRA", SMALL, "lora", ()),
        ("8B, QLoRA", SMALL, "qlora", ()),
        ("70B, QLoRA", LARGE, "qlora", ()),
        ("… optimiser and activations on the host", LARGE, "qlora", ("optimizer", "activations")),
        ("… weights too", LARGE, "qlora", finetuning.HOST),
    )

    adapters = finetuning.Adapters("qlora", rank)
    batch = Batch(context, recomputation="full")
    held = finetuning.memory(LARGE, adapters, batch)
    total = held.total.to("GB") | by_hand("(39.51711 + 16 * 0.20709376 + 2.684355 + 2.626683) GB")
    logits = held.loss.to("GB") | by_hand("2048 * 128256 * 10 bytes")
    entry = layers.loss_memory(1, 1) | by_hand("2 byte + 4 byte + 4 byte")
    fused = finetuning.memory(LARGE, adapters, batch, loss="fused").total.to("GB") | by_hand(
        "(39.51711 + 16 * 0.20709376 + 2.684355 + 0.562037) GB"
    )
    free = (1 - total / middle_card).to("%") | by_hand("1 - 48.1414 / 51.5396")
    free_fused = (1 - fused / middle_card).to("%") | by_hand("1 - 46.077 / 51.5396")
    streamed = finetuning.layers_memory(LARGE, "qlora").to("GB") | by_hand(
        "68451041280 * 4.126953 bit"
    )
    stream = links.transfer_time(2 * streamed, link).to("s") | by_hand("2 * 35.31178 GB / 25 GB/s")
    compute = finetuning.step(Job.of(LARGE, card, trained=adapters), batch).lower.to("s") | by_hand(
        "2048 * (6 * 69.50171e9 + 6 * 0.20709e9 + 4 * 4 * 80 * 8192 * 1024.5) / 165.2e12 * 1 s"
    )

    @classmethod
    @row_by_hand("70B, QLoRA | – / – | 3.0k / 4.9k | 16k / 27k")
    def rows(cls) -> Rows:
        """A way, and the longest sequence on each card, with whole and with fused losses."""
        rows = []
        for name, model, method, host in cls.ways:
            adapters = finetuning.Adapters(method, cls.rank)
            longest = [
                [
                    finetuning.longest_context(model, card, adapters, loss=loss, host=host)
                    for loss in ("whole", "fused")
                ]
                for card in CARDS
            ]
            rows.append((name, *(" / ".join(map(_thousands, lengths)) for lengths in longest)))
        return rows


def _thousands(length: Quantity) -> str:
    """Tokens in thousands, as lengths of contexts are said."""
    tokens = whole(length.magnitude)
    if tokens == 0:
        return "–"
    return f"{tokens / 1000:.1f}k" if tokens < 10000 else f"{tokens / 1000:.0f}k"


class TunedMixtures(Claims):
    """A mixture is tuned with the memory of all its experts, and the work of those that are met."""

    keys = ("qwen-3-30b-a3b", "gpt-oss-120b", MIXTURE.key)
    ways = ("adam-mixed", "adam-8bit")
    card = hardware.get("h200").memory_capacity
    used = quantity(80, "%")  # of a card's memory, for state alone

    total = _sum(finetuning.states(MIXTURE, "adam-mixed")).to("TB") | by_hand(
        "671.0264e9 * 16 byte"
    )
    cards = math.ceil((total / (card * used)).m_as("")) | by_hand(
        "ceil(10.736e12 / (0.8 * 151.4e9))"
    )
    frozen = finetuning.memory(MIXTURE, finetuning.Adapters("lora", 16)).weights.to("GB") | by_hand(
        "671.0264e9 * 2 byte"
    )

    @classmethod
    @row_by_hand(
        "gpt-oss-120b | 117 billion parameters | 34.3 GFLOP | 1870 GB | 705 GB | 254 GB | 82.6 GB"
    )
    def rows(cls) -> Rows:
        """A mixture: parameters, work of a token, and bytes by recipe."""
        rows: list[Row] = []
        for model in map(models.get, cls.keys):
            states = [_sum(finetuning.states(model, recipe)) for recipe in cls.ways]
            held = [
                finetuning.memory(model, finetuning.Adapters(method, 16))
                for method in ("lora", "qlora")
            ]
            work = training.training_flops(model.active_parameters, "1 token").to("GFLOP")
            tuned = [
                (kept.weights + kept.adapters + kept.gradients + kept.optimizer).to("GB")
                for kept in held
            ]
            rows.append((model.name, model.parameters, work, *states, *tuned))
        return rows


class MeasuredTuning(Claims):
    """Peaks and rates of others, beside what the laws say."""

    runs = deferred(measured_tuning.runs)()
    compiled = deferred(tuple)(
        run for run in runs if run.software == "torchtune" and run.id != "torchtune-packed"
    )
    context = runs[0].batch.length | by_hand("4096")
    sequences = runs[0].batch.sequences | by_hand("2")
    peft_context = runs[-1].batch.length | by_hand("768")
    peft_sequences = runs[-1].batch.sequences | by_hand("4")

    least = deferred(min)(run.memory_error for run in runs).to("%") | by_hand("46.98782 / 60.0 - 1")
    most = deferred(max)(run.memory_error for run in runs).to("%") | by_hand("5.526362 / 4.6 - 1")
    worst = -least | by_hand("1 - 46.98782 / 60.0")
    slowest = deferred(max)(
        run.throughput_error for run in compiled if run.throughput_error is not None
    ) | by_hand("8192 / 0.873776 / 8035 - 1")
    nearest = deferred(min)(
        run.throughput_error for run in compiled if run.throughput_error is not None
    ) | by_hand("7209.256 / 7309 - 1")

    @classmethod
    @row_by_hand("PEFT: LoRA, rank 32 | 22.3 GB | 18.2 | −18% | – | – | –")
    def rows(cls) -> Rows:
        """A run: its peak measured and predicted, and its rate."""
        return [
            (
                NAMES[run.id],
                run.memory.m_as("GB"),
                run.predicted_memory.m_as("GB"),
                _whole(run.memory_error),
                run.throughput and run.throughput.m_as("token/s"),
                run.throughput and run.predicted_throughput.m_as("token/s"),
                run.throughput_error and _whole(run.throughput_error),
            )
            for run in cls.runs
        ]


class CardForTuning(Claims):
    """QLoRA of 70B fits a card of 80 GiB with the margin of the worst measured row."""

    large_card = hardware.get("h100").memory_capacity
    context = 8192 | by_hand("8192")

    at_worst = (DoesItFit.fused / (1 - MeasuredTuning.worst)).to("GB") | by_hand(
        "{DoesItFit.fused} / (1 - {MeasuredTuning.worst})"
    )
    long = finetuning.memory(
        LARGE, DoesItFit.adapters, Batch(context, recomputation="full"), loss="fused"
    ).total.to("GB") | by_hand("(39.51711 + 16 * 0.20709376 + 4 * (2.684355 + 0.562037)) GB")
    long_at_worst = (long / (1 - MeasuredTuning.worst)).to("GB") | by_hand(
        "{long} / (1 - {MeasuredTuning.worst})"
    )


def _measured(run: str) -> Quantity:
    """Tokens a second of a run of torchtune."""
    (found,) = (one for one in MeasuredTuning.runs if one.id == f"torchtune-{run}")
    rate: Quantity | None = found.throughput
    assert rate is not None
    return rate


class StepOfLora(Claims):
    """Frozen weights save a third of the work, or a quarter where layers are recomputed."""

    model = SMALL
    device = "h100"
    context = 4096

    batch = Batch(context, recomputation="full")
    lora = finetuning.step(Job.of(model, device, trained=finetuning.Adapters()), batch)
    full = finetuning.step(Job.of(model, device), batch)
    saved = (1 - lora.lower / full.lower).to("%") | by_hand(
        "1 - (6 * 7.504659e9 + 6 * 41.94304e6 + 4 * 4 * 4096 * 32 * 2048.5) / "
        "(8 * 7.504659e9 + 4 * 4 * 4096 * 32 * 2048.5)"
    )
    gain = (full.lower / lora.lower).to("") | by_hand("1 / (1 - 0.2293938)")
    measured = (_measured("lora") / _measured("recomputed")).to("") | by_hand("8210 / 7210")


class ByMethod(Claims):
    """Learning from preferences and rewards keeps other models beside the one that is trained."""

    small = SMALL
    trained = training.recipe("adam-mixed").bytes_per_parameter | by_hand(
        "(2 + 2 + 4 + 4 + 4) byte/param"
    )
    frozen = quantity("2 byte/param")  # in BF16
    # A method, models that are trained, frozen ones beside them, and copies that engines hold.
    methods = (
        ("Supervised", 1, 0, 0),
        ("DPO", 1, 1, 0),
        ("DPO, reference scored beforehand", 1, 0, 0),
        ("GRPO, rewards by a program, no reference", 1, 0, 1),
        ("GRPO with a reference", 1, 1, 1),
        ("PPO: critic, reference and reward model", 2, 2, 1),
    )

    ppo = 2 * trained + 3 * frozen
    grpo = trained + frozen
    ppo_over_grpo = (ppo / grpo).to("") | by_hand("(2 * 16 + 3 * 2) / (16 + 2)")

    @classmethod
    @row_by_hand("Supervised | 1 | 0 | 0 | 16 bytes/param | …")
    @row_by_hand("DPO | 1 | 1 | 0 | 18 bytes/param | …")
    @row_by_hand("DPO, reference scored beforehand | 1 | 0 | 0 | 16 bytes/param | …")
    @row_by_hand("GRPO, rewards by a program, no reference | 1 | 0 | 1 | 18 bytes/param | …")
    @row_by_hand("GRPO with a reference | 1 | 1 | 1 | 20 bytes/param | 161 GB")
    @row_by_hand("PPO: critic, reference and reward model | 2 | 2 | 1 | 38 bytes/param | …")
    def rows(cls) -> Rows:
        """A method: its models, bytes for each parameter, and all of them for the small model."""
        rows: list[Row] = []
        for name, trained, frozen, engines in cls.methods:
            each = trained * cls.trained + (frozen + engines) * cls.frozen
            whole = training.model_memory(cls.small.parameters, each).to("GB")
            rows.append((name, trained, frozen, engines, each, whole))
        return rows


class Rollouts(Claims):
    """The longest answer of a step takes several times as long as the average one."""

    model = "qwen-3-8b"
    machine = "dgx-h100"
    lengths = Lengths(1500, 16384, prompt=200)
    answers = 512
    devices = 8
    prompt = quantity(lengths.prompt, "token") | by_hand("200 token")
    mfu = quantity(40, "%")
    average = quantity(lengths.average, "token") | by_hand("1500 token")
    limit = quantity(lengths.limit, "token") | by_hand("16384 token")

    engine_answers = answers // devices | by_hand("512 / 8")
    longest = quantity(lengths.longest(answers), "token") | by_hand(
        "1500.027 * (ln(512) + 0.5772157 + 1 / 1024 - 512 * exp(-16384 / 1500.027)) * 1 token"
    )
    times_average = (longest / average).to("") | by_hand("10211.13 / 1500")
    job = Job.of(model, machine, Layout(data=devices))
    step = reinforcement.step(job, lengths, answers, mfu=mfu, measured=False)
    generation = step.generation | no_hand(
        "54.30112 s", "the sum over passes of a batch that empties"
    )
    even = step.even | by_hand("1500 * (15.13619 GB + 64 * 950 * 147456 byte) / 3.35 TB/s")
    tail = step.tail | by_hand("1 - 10.79173/54.30112")
    trained = (step.scoring + step.training).to("s") | by_hand(
        "5 * 15.63784e9 * 512 * 1700 FLOP / (8 * 0.4 * 989 TFLOP/s)"
    )
    total = step.total | by_hand("(54.30112 + 21.50401 + 0.273025) s")
    scoring = step.scoring
    update = step.update
    with_reference = (step.total + step.scoring).to("s") | by_hand("(76.076 + 4.301) s")

    @classmethod
    @row_by_hand("Probabilities of the tokens under the policy | policy | 4.3 s")
    def rows(cls) -> Rows:
        """Return who works in which part of the step, and for how long at this loop's bounds."""
        return [
            ("Generation, if all answers were of average length", "engines", cls.even),
            ("The tail: waiting for the longest", "engines", (cls.generation - cls.even).to("s")),
            ("Probabilities of the tokens under the policy", "policy", cls.scoring),
            ("The same under the reference, where one is used", "reference", cls.scoring),
            ("Forward, recomputation, backward, update", "policy", cls.step.training.to("s")),
            ("New weights to the engines", "links", cls.update.to("s")),
        ]

    @classmethod
    def drawn(cls, bars: int) -> list[float]:
        """Seconds until an answer is complete, for so many at even quantiles, and the longest."""
        engine = Job.of(cls.model, cls.machine)
        tokens, seconds = reinforcement.writing_times(
            engine, cls.lengths, cls.engine_answers, measured=False, among=cls.answers
        )
        shares = [(bar + 0.5) / bars for bar in range(bars - 1)]
        drawn = [-cls.lengths.scale * math.log(1 - share) for share in shares]
        return [float(time) for time in numpy.interp([*drawn, tokens[-1]], tokens, seconds)]


class MeasuredSteps(Claims):
    """Kernels explain only part of a published step; engines and trainers do the rest."""

    mfu = quantity(30, "%")
    steps = deferred(measured_rollouts.steps)()

    nearest = deferred(max)(step.error for step in steps).to("%") | by_hand("191.0647 / 286 - 1")
    farthest = deferred(min)(step.error for step in steps).to("%") | by_hand("71.11652 / 221 - 1")
    count = quantity(10, "") | by_hand("10")
    factor = deferred(measured_rollouts.median_factor)() | by_hand(
        "(111 / 50.844549 + 345 / 164.371395) / 2"
    )
    left_out = deferred(measured_rollouts.median_off)() | by_hand(
        "1 - 1.8338849 * (46.879126 / 108 + 58.383667 / 134) / 2"
    )

    @classmethod
    @row_by_hand("Qwen3 30B-A3B | 16 GB200 | 50.1 | 71.1 | 221 | −68%")
    def rows(cls) -> Rows:
        """A step: generation and all of it as expected, and as measured."""
        return [
            (
                models.get(step.row["model"]).name,
                f"{step.row['devices']} {NAMES[step.row['machine']]}",
                step.expected.generation.m_as("s"),
                step.expected.total.m_as("s"),
                step.time.m_as("s"),
                _whole(step.error),
            )
            for step in cls.steps
        ]


class NewWeights(Claims):
    """New weights take seconds by broadcast, and less point to point."""

    updates = measured_rollouts.updates()
    port = quantity("50 GB/s")
    slices = 16

    kimi = updates[-1].weights
    kimi_time = updates[-1].time | by_hand("16.04 s")
    kimi_apart = updates[-1].point_to_point | by_hand("16.75 s")
    point_to_point = rollouts.weight_update_time(kimi, port, slices).to("s") | by_hand(
        "1026 GB / (16 * 50 GB/s)"
    )


class Asynchronous(Claims):
    """Devices that split the work gain the tail, and pay with staler answers."""

    batch = 512
    in_flight = 2048
    success = quantity(5, "%")
    group = 16

    lag = rollouts.staleness(in_flight, batch) | by_hand("2048 / 512")
    share = rollouts.generating_share(Rollouts.even, Rollouts.trained).to("%") | by_hand(
        "10.79173 / (10.79173 + 21.50401)"
    )
    hidden = (Rollouts.even + Rollouts.trained).to("s") | by_hand("(10.79173 + 21.50401) s")
    gain = (Rollouts.total / hidden).to("") | by_hand("76.07815 / 32.29573")
    informative = rollouts.informative_share(success, group).to("%") | by_hand(
        "1 - 0.05**16 - 0.95**16"
    )
    generated_for_trained = (1 / informative).to("") | by_hand("1 / 0.5598733")
    easier = quantity(20, "%")
    informative_easier = rollouts.informative_share(easier, group).to("%") | by_hand(
        "1 - 0.2**16 - 0.8**16"
    )


def state(parameters: Quantity, recipe: str) -> Quantity:
    """Return the memory that a recipe keeps of so many parameters."""
    return training.model_memory(parameters, training.recipe(recipe).bytes_per_parameter).to("GB")


class StateOfThirteen(Claims):
    """Problem 1: what trains on one card of 80 GB."""

    parameters = quantity("13B param")
    capacity = hardware.get("h100").memory_capacity

    mixed_total = state(parameters, "adam-mixed") | by_hand("13 * 16 GB")
    pure_total = state(parameters, "adam-bf16") | by_hand("13 * 8 GB")
    eight_bit_total = state(parameters, "adam-8bit") | by_hand("13 * 6.03125 GB")


class WhichCut(Claims):
    """Problem 2: where a team's next hour goes."""

    trained_share = (Rollouts.trained / Rollouts.total).to("%") | by_hand("21.50401 / 76.07815")
    without_tail = (Rollouts.total / (Rollouts.total - Rollouts.generation + Rollouts.even)).to(
        ""
    ) | by_hand("76.07815 / (76.07815 - 54.30112 + 10.79173)")
    twice_training = (Rollouts.total / (Rollouts.total - Rollouts.trained / 2)).to("") | by_hand(
        "76.07815 / (76.07815 - 10.75200)"
    )


ENDS = "the ends of training of dense models in intervals.csv"


class AllOrAdapters(Claims):
    """Problem 3: the same tokens for adapters on one server, or for all weights on three."""

    tokens = quantity("200M token")
    price = quantity("2 USD/h")
    server = 8
    servers = 16
    with_margin = 24
    usable = quantity(79, "%")  # less than is counted by as much as programs take more
    sequences = 64
    length = 2048
    asked: ClassVar[dict[str, Any]] = {
        "model": "llama-3-70b",
        "hardware": "dgx-h100",
        "prices": Prices(price),
    }
    of_adapters = Training(tokens, sequences, length, fine_tune="lora")
    of_all = Training(tokens, sequences, length)
    adapters = deferred(plan_training)(run=of_adapters, devices=server, **asked)
    paper = deferred(plan_training)(run=of_all, devices=servers, **asked)
    whole = deferred(plan_training)(
        run=of_all, devices=with_margin, search=Search(usable=usable.m_as("")), **asked
    )

    capacity = hardware.get("h100").memory_capacity
    paper_memory = paper.best.memory.total.to("GB") | no_hand(
        "74.28873 GB", "a sum over the parts of a layout that a plan has chosen"
    )
    paper_with_margin = (paper_memory / (1 - PublishedLayouts.too_little.m_as(""))).to(
        "GB"
    ) | by_hand("{paper_memory} / (1 - {PublishedLayouts.too_little})")
    memory = whole.best.memory.total.to("GB") | no_hand(
        "65.72627 GB", "a sum over the parts of a layout that a plan has chosen"
    )
    adapters_time = adapters.duration.to("h") | by_hand("1526 * 7.1664 s")
    adapters_cost = adapters.cost | by_hand("8 * 2 * 3.037759 USD")
    adapters_mfu = adapters.best.mfu.to("%") | no_hand("66.45 %", "an expectation of a plan")
    whole_cost = whole.cost | by_hand("24 * 2 * 2.101062 USD")
    whole_mfu = whole.best.mfu.to("%") | no_hand("47.80842 %", "an expectation of a plan")
    _of_adapters = adapters.interval(adapters.duration)
    _of_all = whole.interval(whole.duration)
    adapters_sooner, adapters_later = (
        _of_adapters[0].to("h") | by_hand("0.906 * {adapters_time}", ENDS),
        _of_adapters[1].to("h") | by_hand("1.209 * {adapters_time}", ENDS),
    )
    adapters_dearer = adapters_cost * (_of_adapters[1] / adapters.duration)
    adapters_dearer |= by_hand("1.209 * {adapters_cost}", ENDS)
    whole_cheaper = whole_cost * (_of_all[0] / whole.duration)
    whole_dearer = whole_cost * (_of_all[1] / whole.duration)
    whole_cheaper |= by_hand("0.906 * {whole_cost}", ENDS)
    whole_dearer |= by_hand("1.209 * {whole_cost}", ENDS)
