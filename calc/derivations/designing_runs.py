"""Claims of the chapter "Training at scale" on layouts that ran, and of plans."""

from __future__ import annotations

from statistics import median

from calc import machines, plan_training, published, runs, training
from calc.core.units import Quantity, quantity
from calc.derivations.bases import Rent
from calc.derivations.by_hand import by_hand, no_hand, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.examples import DENSE, MIXTURE
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row, Rows, between
from calc.derivations.traces import whole
from calc.derivations.training_time_chapter import PublishedSteps
from calc.planning.plan_nouns import Search, Training
from calc.planning.training import TrainingPlan
from calc.published.layout_rows import layout_of, published_layouts


class PublishedLayouts(Claims):
    """Published steps that say how their models are cut, and those that memory holds."""

    found = deferred(published_layouts)()
    count = deferred(len)(found) | by_hand(
        "188 + 139 + 24 + 13 + 10 + 10 + 7 + 6 + 6 + 5 + 5 + 4 + 4 + 3 + 3 + 3 + 2 + 1 + 1 + 1",
        "rows of training.toml whose degrees make their devices",
    )
    over = deferred(tuple)(
        (stated.memory.total / stated.job.device.memory_capacity).m_as("") for stated in found
    )
    rejected = deferred(sum)(share > 1 for share in over) | no_hand(
        "4", "counted over expectations of published rows"
    )
    rejected_share = quantity(100 * rejected / count, "%") | by_hand("4 / 435")
    mixtures = deferred(tuple)(stated for stated in found if stated.model.experts is not None)
    of_mixtures = deferred(len)(mixtures) | by_hand("123 + 3 + 1")
    rejected_mixtures = deferred(sum)(
        bool(stated.memory.total > stated.job.device.memory_capacity) for stated in mixtures
    ) | by_hand("1 + 1")
    peaks = deferred(tuple)(
        (stated.memory.total / stated.measured_memory).m_as("") - 1
        for stated in found
        if stated.measured_memory is not None
    )
    with_peaks = deferred(len)(peaks) | by_hand(
        "13 + 1", "rows of torchtitan whose reports have a column of memory"
    )
    too_little = quantity(-100 * deferred(median)(peaks), "%") | no_hand(
        "20.98196 %", "plain arithmetic, on memory that the library expects"
    )
    least_of_a_peak = quantity(-100 * deferred(min)(peaks), "%") | no_hand(
        "38.53905 %", "plain arithmetic, on memory that the library expects"
    )
    without_tensor = deferred(sum)(stated.layout.tensor == 1 for stated in mixtures) | by_hand(
        "109 + 1"
    )
    without_stages = deferred(sum)(stated.layout.pipeline == 1 for stated in mixtures) | by_hand(
        "23 + 19 + 18 + 13 + 1 + 1"
    )
    of_dense = count - of_mixtures | by_hand("435 - 127")
    dense_without_tensor = deferred(sum)(
        stated.layout.tensor == 1 for stated in found if stated.model.experts is None
    ) | by_hand("139 + 23 + 16 + 8 + 5 + 4 + 3 + 1 + 1")
    fully_sharded = deferred(sum)(stated.layout.sharding == 3 for stated in found) | by_hand(
        "137 + 11 + 9 + 5 + 1"
    )


def cuts(row: published.Row) -> list[str]:
    """Degrees of tensor, pipeline and expert parallelism that a published row states."""
    return [cut for cut in str(row["parallelism"]).split() if cut[:2] in {"TP", "PP", "EP"}]


def rates(compared: published.Comparison) -> tuple[Quantity, Quantity, Quantity]:
    """Tokens a second of a device in a published run, measured and expected, and the error."""
    assert compared.prediction is not None
    assert compared.prediction.expected is not None
    assert compared.error is not None
    rate = quantity(compared.row.measured["tokens_per_s_per_gpu"], "token/s")
    expected = quantity(1 / compared.prediction.expected, "token/s")
    return rate, expected, quantity(round(100 * compared.error), "%")


class Recipes(Claims):
    """The fastest published layout of some models by machine, newest software."""

    ids = (
        *("mbridge-26.08-7", "mbridge-26.02-23", "mbridge-26.06-12", "mbridge-26.04.01-33"),
        *("mbridge-26.08-10", "mbridge-26.06-11", "mbridge-26.06-9", "mbridge-26.04.01-7"),
        *("mbridge-26.04", "mbridge-26.04.01-14", "mbridge-26.04-8"),
    )

    @classmethod
    def row(cls, key: str) -> Row:
        """Model, devices, format, layout, tokens a second of a device, and share of the bound."""
        comparison = published.predict(published.row(key))
        row, model = comparison.row, layout_of(comparison.row).model
        assert comparison.share_of_bound is not None
        layout = [*cuts(row), *(["CP2"] if "CP2" in str(row["parallelism"]) else [])]
        device = f"{row['num_devices']} {row.device.removeprefix('DGX-')}"
        rate = quantity(row.measured["tokens_per_s_per_gpu"], "token/s")
        share = quantity(100 * comparison.share_of_bound, "%")
        return model.name, device, row["dtype"], " ".join(layout), rate, share

    @classmethod
    @row_by_hand("DeepSeek-V3 | 256 GB300 | MXFP8 | TP1 PP2 EP32 | 6420 tokens/s | 35.2%")
    def rows(cls) -> Rows:
        """Mixtures first."""
        return [cls.row(key) for key in cls.ids]


@deferred
def _plan(machine: str, dtype: str, layout: str) -> TrainingPlan:
    """A run of the mixture on as many devices as it was trained on, in a layout like those seen."""
    return plan_training(
        MIXTURE,
        machine,
        Training(
            runs.get("deepseek-v3").tokens, MixtureRun.sequences, MixtureRun.length, dtype=dtype
        ),
        devices=MixtureRun.devices,
        software="megatron",
        search=Search(layout),
    )


@deferred
def _ends(plan: TrainingPlan) -> tuple[Quantity, Quantity]:
    """The ends of the range of how long a run takes."""
    ends = plan.interval(plan.duration)
    assert ends is not None
    return ends


class MixtureRun(Claims):
    """A whole run of DeepSeek-V3, as it was paid for and on three machines."""

    run = runs.get("deepseek-v3")
    devices = 2048
    sequences = 15_360
    length = 4096

    stages = 16

    tokens = run.tokens
    paid = (run.device_time / devices).to("day") | by_hand("2664000 h / 2048")


class MixturePlans(Claims):
    """One run by layout and machine: racks, and servers with EP inside and across them."""

    rack = _plan("gb200-nvl72", "mxfp8", "TP=1,PP=4,EP=64,CP=1")
    servers = _plan("dgx-b200", "mxfp8", "TP=1,PP=8,EP=8,CP=1")
    across = _plan("dgx-b200", "mxfp8", "TP=1,PP=8,EP=32,CP=1")
    soonest, latest = (
        _ends(rack)[0].to("day") | no_hand("18.372165 day", "an interval of an expectation"),
        _ends(servers)[1].to("day") | no_hand("28.1446 day", "an interval of an expectation"),
    )
    lost = (1 - rack.goodput).to("%") | by_hand(
        "1 - exp(0 - 600 / 89080.7) * 0.0287655 / (exp(0.0291873) - 1)",
        "a device fails every 5.78 years, a checkpoint takes 37.6 s and a restart ten minutes",
    )

    @staticmethod
    def row(name: str, plan: TrainingPlan) -> Row:
        """Machine, layout, memory, step, MFU, and days with their interval."""
        best, ends = plan.best, _ends(plan)
        days = plan.duration.to("day")
        return (
            name,
            str(best),
            best.memory.total.to("GB"),
            best.time.to("s"),
            best.mfu.to("%"),
            days,
            between(ends[0].to("day"), ends[1].to("day"), 2),
        )

    @classmethod
    @row_by_hand(
        "GB200 NVL72, MXFP8 | DP512 PP4 EP64 ZeRO1 | 110 GB | 7.6 s | 20% | 21 days | 18–27 days"
    )
    def rows(cls) -> Rows:
        """The rack first."""
        return [
            cls.row("GB200 NVL72, MXFP8", cls.rack),
            cls.row("DGX B200, MXFP8", cls.servers),
            cls.row("DGX B200, MXFP8", cls.across),
        ]


class MixtureOnB200s(Claims):
    """A trillion tokens of a mixture on 512 B200s, as planned and by published rows."""

    devices = 512 | by_hand("512")
    tokens = quantity("1e12 token")
    sequences = 4096
    rent = Rent.published_b200

    plan = deferred(plan_training)(
        MIXTURE,
        "dgx-b200",
        Training(tokens, sequences, length=4096, dtype="mxfp8"),
        devices=devices,
        software="megatron",
        search=Search("TP=1,PP=16,EP=8,CP=1"),
    )
    days = plan.duration.to("day") | no_hand("5.12068 day", "an expectation of a plan")
    soonest, latest = (
        _ends(plan)[0].to("day") | no_hand("4.388433 day", "an interval of an expectation"),
        _ends(plan)[1].to("day") | no_hand("6.380367 day", "an interval of an expectation"),
    )
    inside = quantity(
        published.row("mbridge-26.02.01-17").measured["tokens_per_s_per_gpu"], "token/s"
    ) | by_hand("2790 token/s")
    across = quantity(
        published.row("mbridge-26.04.01-18").measured["tokens_per_s_per_gpu"], "token/s"
    ) | by_hand("3328 token/s")
    # Rates are of steps: the runs lose as much to failures and checkpoints as those planned.
    lost = (1 - plan.goodput).to("%") | by_hand(
        "1 - exp(0 - 600 / 356322.7) * 0.0287655 / (exp(0.0291873) - 1)",
        "a device fails every 5.78 years, a checkpoint takes 150 s and a restart ten minutes",
    )
    by_inside = (tokens / (devices * inside * plan.goodput)).to("day") | by_hand(
        "1e12 / (512 * 2790 * (1 - {lost})) * 1 s"
    )
    by_across = (tokens / (devices * across * plan.goodput)).to("day") | by_hand(
        "1e12 / (512 * 3328 * (1 - {lost})) * 1 s"
    )
    published_devices = whole(published.row("mbridge-26.04.01-18")["num_devices"]) | by_hand("256")
    run_inside = (MixtureRun.tokens / (MixtureRun.devices * inside * MixturePlans.rack.goodput)).to(
        "day"
    ) | by_hand("14.8e12 / (2048 * 2790 * (1 - {MixturePlans.lost})) * 1 s")
    run_across = (MixtureRun.tokens / (MixtureRun.devices * across * MixturePlans.rack.goodput)).to(
        "day"
    ) | by_hand("14.8e12 / (2048 * 3328 * (1 - {MixturePlans.lost})) * 1 s")
    cost = (devices * rent * by_across).to("USD") | by_hand("512 * 6 USD/h * {by_across}")
    cost_at_least = (devices * rent * soonest).to("USD") | by_hand("512 * 6 USD/h * {soonest}")
    cost_planned = (devices * rent * days).to("USD") | by_hand("512 * 6 USD/h * {days}")
    cost_at_most_planned = (devices * rent * latest).to("USD") | by_hand("512 * 6 USD/h * {latest}")
    cost_at_most = (devices * rent * by_inside).to("USD") | by_hand("512 * 6 USD/h * {by_inside}")


class MoreAndMore(Claims):
    """One mixture on 256 to 8192 GB200s: the rate falls, and the expectation falls less steeply."""

    ids = ("mbridge-26.04-15", *(f"mlperf-deepseek-v3-{count}" for count in (512, 2048, 8192)))

    found = deferred(tuple)(published.predict(published.row(key)) for key in ids)

    @classmethod
    def row(cls, index: int) -> Row:
        """Devices, layout, tokens of a device in a step; rates measured and expected; the error."""
        row = cls.found[index].row
        devices = whole(row["num_devices"])
        tokens = round(row["global_batch_seqs"] * row["seq_len"] / devices)
        return devices, " ".join(cuts(row)), tokens, *rates(cls.found[index])

    @classmethod
    @row_by_hand("8192 | TP2 PP4 EP32 | 8192 | 2340 tokens/s | 2570 tokens/s | 9%")
    def rows(cls) -> Rows:
        """From few to many."""
        return [cls.row(index) for index in range(len(cls.found))]

    _rates = deferred(tuple)(one.row.measured["tokens_per_s_per_gpu"] for one in found)
    kept = quantity(100 * _rates[3] / _rates[1], "%") | by_hand("2344 / 3983")
    times = whole(found[3].row["num_devices"]) // whole(found[1].row["num_devices"]) | by_hand(
        "8192 / 512"
    )


class RentFor70B(Claims):
    """Problem 3: how many devices train a model of 70 billion parameters in a month."""

    parameters = quantity("70B param")
    tokens = quantity("2T token")
    sequences = 1024
    fewer = 512
    more = 2 * fewer
    utilization = quantity(40, "%")
    deadline = quantity("30 day")
    machine = machines.get("dgx-h100")
    peak = machine.device.peak("bf16")

    by_fewer = training.training_time(parameters, tokens, fewer, peak, utilization).to(
        "day"
    ) | by_hand("6 * 70e9 * 2e12 FLOP / (512 * 989 TFLOP/s * 0.4)")
    by_more = training.training_time(parameters, tokens, more, peak, utilization).to(
        "day"
    ) | by_hand("{by_fewer} / 2")
    plan = deferred(plan_training)(
        DENSE,
        machine,
        Training(tokens, sequences, length=8192),
        devices=fewer,
        software="megatron",
        search=Search("published"),
    )
    # Six operations for each parameter and token, as in the published row beside it.
    planned = training.mfu(
        DENSE.parameters, quantity(sequences * 8192, "token"), fewer, peak, plan.best.time
    ).to("%") | by_hand("1024 * 8192 / 13.06185 / 512 * 6 * 70.5537e9 / 989e12")
    best_published = PublishedSteps.share(PublishedSteps.bf16) | by_hand(
        "566797 / 512 * 6 * 70.5537e9 / 989e12"
    )
