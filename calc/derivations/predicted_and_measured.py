"""Claims of the chapter "Predicted and measured": published rows beside what calc says of them.

All of it follows the data: whoever adds a row, a rate or a fault changes these results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from math import inf, log
from statistics import median
from typing import Any, TypeAlias

from calc import curves, gemms, hardware, inference, machines, models, published, software
from calc.catalog import kernel_shares
from calc.catalog.software import OTHERS
from calc.core.units import Quantity, quantity
from calc.derivations import recorded
from calc.derivations.by_hand import by_hand, counted, no_hand, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row, Rows, show
from calc.derivations.traces import bare, number, traced
from calc.published import Comparison, closed_loops, conditions, reporting
from calc.published.kernel_tables import error_of
from calc.published.left_out import left_out
from calc.published.prediction import ROUNDING
from calc.published.reading import WORDS
from calc.published.reporting import Summary
from calc.published.serving_rows import FULL_EXPERTS, NO_LENGTHS

Compared: TypeAlias = Any  # a Comparison with a prediction, and with what is asked of that
FEW = 5  # rows of a system that a table sums up
WRITTEN = {  # parts of a device's key that are not capitals as readers know it
    "apple": "Apple",
    "gaudi2": "Gaudi 2",
    "gaudi3": "Gaudi 3",
    "jetson": "Jetson",
    "max": "Max",
    "nano": "Nano",
    "orin": "Orin",
    "pcie": "PCIe",
    "v5p": "v5p",
    "v6e": "v6e",
    "v7": "v7",
}


Share: TypeAlias = Quantity | None
SERVED_MODEL = "meta-llama/Llama-3.1-70B-Instruct"
Part: TypeAlias = tuple[str, Quantity, Share, str, str]


@cache
def _compared() -> list[Compared]:
    comparisons: list[Compared] = traced(bare(published.compare()))
    return comparisons


@deferred
def all_rows() -> list[Compared]:
    """Every published row beside what calc says of it."""
    return _compared()


@deferred
def with_bounds() -> list[Compared]:
    """The rows that have a prediction."""
    return [compared for compared in _compared() if compared.prediction is not None]


@deferred
def percent(share: float | None) -> Share:
    """A share as readers see it; what is not known is a dash in tables."""
    return None if share is None else quantity(100 * share, "%")


@deferred
def middle(shares: Iterable[float]) -> Quantity:
    """The median, to a whole per cent: one row more or less moves what comes after."""
    return quantity(round(100 * median(shares)), "%")


@deferred
def row(name: str) -> Compared:
    """The row of that id, for which no other is compared."""
    (asked,) = (each for each in bare(published.rows()) if each.id == name)
    (compared_row,) = traced(bare(published.compare([asked])))
    return compared_row


def system(compared: Comparison) -> tuple[str, str]:
    """Software, with MoE where it runs a mixture of experts, and device, by short names."""
    program = software.get(compared.software).name if compared.software else "others"
    return f"{program} MoE" if mixture(compared) else program, device(compared)


def device(compared: Comparison) -> str:
    """The device by its short name."""
    return short_name(compared.machine)


def short_name(machine: str) -> str:
    """A machine's device by the name that readers know."""
    parts = machines.get(machine).device.key.split("-")
    return " ".join(WRITTEN.get(part, part.upper()) for part in parts)


def mixture(compared: Comparison) -> bool:
    """Return whether the model of a row of training or serving is a mixture of experts."""
    return conditions.model(compared.row).experts is not None


def sums(
    comparisons: Iterable[Comparison], by: Callable[[Comparison], str], least: int = FEW
) -> list[Summary]:
    """Summaries of kinds that have enough rows, from the nearest to the bound on."""
    kinds = published.summary(list(comparisons), by)
    kinds = [kind for kind in kinds if kind.usable >= least]
    return sorted(kinds, key=lambda kind: -(kind.share_of_bound or 0.0))


@deferred
def with_lengths(group: str) -> list[Compared]:
    """Rows of a group whose bound is one of their own work: what is left out states no lengths."""
    return [
        compared
        for compared in with_bounds()
        if compared.row.group == group and compared.prediction.missing != NO_LENGTHS
    ]


@deferred
def expected_of(group: str) -> list[Compared]:
    """Rows of a group of which something is expected."""
    return [
        compared
        for compared in with_bounds()
        if compared.row.group == group and compared.error is not None
    ]


def nearest(
    rows: Sequence[Comparison], by: Callable[[Comparison], str], place: int
) -> tuple[str, Quantity]:
    """The kind whose median share of the bound is at that place, from the highest on."""
    kind = sums(rows, by, least=1)[place]
    return kind.of, quantity(100 * (kind.share_of_bound or 0.0), "%")


def curve_name(compared: Comparison) -> str:
    """A curve's devices, operation and laboratory."""
    laboratory = WORDS["laboratories"][compared.row.source.split("-")[0]]
    return f"{device(compared)}, {of(compared)}, {laboratory}"


def within(rows: Sequence[Comparison], band: float) -> Quantity:
    """The share of rows that are no further off, by their factor."""
    near = sum(far(compared) <= log(1 + band) for compared in rows)
    return quantity(100 * near / len(rows), "%")


class Served(Claims):
    """Four H100s that serve a Llama of 70 billion parameters: the bound, and what was measured."""

    compared = row("mlenergy-34")
    prediction = compared.prediction
    batch = compared.row.number("batch") | by_hand(
        "63.791", "the mean batch of @mlenergy-leaderboard-v3"
    )
    answer = quantity(compared.row.number("output_len"), "token") | by_hand(
        "352 token", "the mean answer of @mlenergy-leaderboard-v3"
    )
    devices = conditions.devices(compared.row) | by_hand("4", "4xH100 in @mlenergy-leaderboard-v3")

    lower = quantity(prediction.lower * batch, "s").to("ms") | by_hand(
        "(2 byte * 69.5017e9 + 63.791 * 528 * 163840 byte) / (4 * 3.35 TB/s)"
    )
    expected = quantity(prediction.expected * batch, "s").to("ms") | no_hand(
        "24.225837 ms", "expected by measured rates of kernels"
    )
    measured = quantity(compared.measured * batch, "s").to("ms") | by_hand(
        "{batch} / 2510.5113 * 1 s"
    )
    share = percent(compared.share_of_bound) | by_hand("10.78522 / 25.40956")


@deferred
def parts_of(
    compared: Compared, seconds: float, texts: dict[str, tuple[str, str, str]]
) -> tuple[Part, ...]:
    """Each part's name, time, share, rate and source; what is hidden comes off at the end."""
    prediction = compared.prediction
    total = prediction.expected
    ordered = sorted(prediction.parts.items(), key=lambda item: -item[1])
    times = [
        *((texts[name], time) for name, time in ordered),
        (("hidden by overlap", "", "assumed"), -prediction.hidden),
        (("together", "", ""), total),
    ]
    return tuple(
        (name, quantity(time * seconds, "s"), percent(time / total), rate, source)
        for (name, rate, source), time in times
        if time
    )


@deferred
def time_of(part: str, rows: tuple[Part, ...]) -> Quantity:
    """The time of a part of that name."""
    return next(time for name, time, *_ in rows if name == part)


def rate(kind: str, *names: str) -> tuple[str, str]:
    """Rates that an H100's machine was measured to reach, and where they come from."""
    records = [MACHINE.rates[kind][name] for name in names]
    shown = " and ".join(str(show(record.quantity, digits=3)) for record in records)
    return shown, " ".join({f"[@{record.provenance.source}]": None for record in records})


def curve(*operations: str, span: str = "domain") -> tuple[str, str]:
    """The curves of collectives that a time is taken from."""
    measured = [
        one for operation in operations for one in curves.curves_of(operation, MACHINE, span)
    ]
    if not measured:
        return "curve of a machine like it", "@sec-collectives-measured"
    return "curve over sizes", " ".join({f"[@{one.source}]": None for one in measured})


def fitted(key: str, *names: str) -> tuple[str, str]:
    """A software's own numbers, which are fitted."""
    one = software.get(key)
    values = (one.records[name].quantity for name in names)
    return " and ".join(str(show(value)) for value in values), "fitted, @sec-fitted-numbers"


MACHINE = machines.get("dgx-h100")
BANDWIDTH = rate("memory", "read")
IN_ENGINES = "kernels as vLLM runs them", f"[@{kernel_shares.SOURCE}]"
HOST = "the host, per step and request"


class PartsOfDecode(Claims):
    """A step of steady state: all sequences write a token, and their share of prompts is read."""

    rows = parts_of(
        Served.compared,
        Served.batch,
        {
            "gemm": ("GEMMs", *IN_ENGINES),
            "tensor": ("all-reduces of TP", *IN_ENGINES),
            "host": (HOST, *fitted("vllm", "step", "sequence")),
            "memory": ("passes over vectors", *BANDWIDTH),
            "cache": ("attention to the KV cache", *IN_ENGINES),
            "attention": ("attention within prompts", *IN_ENGINES),
        },
    ) | row_by_hand("attention to the KV cache | 1.99 ms | 8.22% | kernels as vLLM runs them | …")
    messages = time_of("all-reduces of TP", rows)
    host = time_of(HOST, rows)
    beside = ((messages + host) / Served.expected).to("%") | by_hand(
        "(2.982455 ms + 1.5 ms + 63.791 * 30 µs) / 24.2258 ms"
    )


class PartsOfTraining(Claims):
    """A step of Llama 3.1 70B in BF16 with tensor and pipeline parallelism."""

    compared = row("dgxc-25.02-llama3.1-70b")
    devices = conditions.devices(compared.row) | by_hand(
        "64", "64x H100 in @dgxc-25.02-llama3.1-70b"
    )
    tokens = compared.row.number("global_batch_seqs") * compared.row.number("seq_len") / devices
    prediction = compared.prediction
    rows = parts_of(
        compared,
        tokens,
        {
            "gemm": ("GEMMs", *rate("lasting", "bf16")),
            "tensor": ("all-reduces of TP", *curve("all_reduce")),
            "attention": ("attention", *rate("attention", "forward")),
            "memory": ("passes over vectors", *BANDWIDTH),
            "bubble": ("the bubble of PP", "", "@sec-bubble"),
            "context": ("keys and values of CP", *curve("all_gather")),
            "data": (
                "gradients and weights of DP",
                *curve("all_gather", "reduce_scatter", span="across"),
            ),
            "optimizer": ("the optimiser", *BANDWIDTH),
            "rates not sustained": ("rates not sustained", *fitted("megatron-26-04", "sustained")),
        },
    ) | row_by_hand("the optimiser | 9.71 ms | 0.0701% | 3.18 TB/s | …")
    lower = quantity(prediction.lower * tokens, "s") | by_hand(
        "16384 * (6 * 69.5017e9 FLOP + (3 + 1) * 80 * 64 * 512 * 4096.5 FLOP) /"
        " 989 TFLOP/s * (1 + 3 / (5 * 64))"
    )
    measured = quantity(compared.measured * tokens, "s") | by_hand("128 * 8192 / 71756 * 1 s")
    difference = percent(abs(compared.error)) | no_hand(
        "5.473739 %", "plain arithmetic, on times that the library expects"
    )


@deferred
def of_one_model(compared: Compared) -> Row:
    """Devices, batch, and a step: at least, expected, between what, measured, how far off."""
    batch = compared.row.number("batch")

    def step_of(seconds: float) -> Quantity:
        return quantity(seconds * batch, "s").to("ms")

    prediction, interval = compared.prediction, compared.interval
    low, high = (step_of(prediction.expected * end) for end in (interval.low, interval.high))
    return (
        f"{conditions.devices(compared.row)} {device(compared)}",
        round(batch),
        step_of(prediction.lower),
        step_of(prediction.expected),
        f"{show(low, 'ms', 2)} to {show(high, 'ms', 2)}",
        step_of(compared.measured),
        signed(compared.error),
    )


@deferred
def signed(error: float | None) -> Share:
    """An error as readers see it, whole per cents."""
    return None if error is None else quantity(round(100 * error), "%")


class OneModel(Claims):
    """Llama 3.1 70B in BF16 under vLLM, by device and batch: the sign of the error turns."""

    _rows = deferred(tuple)(
        compared
        for compared in expected_of("serving")
        if compared.software == "vllm" and compared.row["model"] == SERVED_MODEL
    )
    rows = deferred(tuple)(of_one_model(compared) for compared in _rows) | row_by_hand(
        "4 H100 | 383 | 27 ms | 72 ms | 59 ms to 79 ms | 72 ms | 0%"
    )
    middle = middle(abs(compared.error) for compared in _rows) | no_hand(
        "5 %",
        "an error of the seventh of thirteen rows by size, each an expectation of the library",
    )
    largest = deferred(max)(_rows, key=lambda row: row.row.number("batch"))
    largest_batch = round(largest.row.number("batch")) | by_hand(
        "floor(1021.477)", "1 021.477, the mean batch of @mlenergy-leaderboard-v3"
    )
    largest_error = signed(-largest.error) | no_hand(
        "23 %", "plain arithmetic, on times that the library expects"
    )
    # From here on the leaderboard sends each request twice, whose prompts vLLM has read before.
    sent_twice_from = round(
        deferred(min)(row.row.number("batch") for row in _rows if row.row.number("batch") > 384)
    ) | by_hand("floor(510.52 + 0.5)", "510.52, the mean batch of the first such row")
    once = signed(
        deferred(max)(abs(row.error) for row in _rows if row.row.number("batch") < 510)
    ) | no_hand("9 %", "plain arithmetic, on times that the library expects")


def class_name(title: str, name: str) -> str:
    """A machine or a software by the name that readers know, any other class by its own."""
    if title == "device":
        return short_name(name)
    if title == "software and version":
        key, _, version = name.partition(" ")
        return f"{software.get(key).name.removesuffix(' up to 26.04')} {version}".strip()
    return name


@cache
def _classes() -> Any:
    return traced(bare(reporting.classes(with_bounds())))


def of_class(title: str, kind: Summary) -> Row:
    """Class, rows; error signed, in the median and 90th percentile; inside 80 %, and its width."""
    errors = map(percent, (kind.median_error, kind.largest_errors, kind.inside))
    name = class_name(title, kind.of.split(" · ")[1])
    return (name, kind.expected, signed(kind.signed_error), *errors, kind.width)


def _smallest_first(kind: Summary) -> tuple[float, str]:
    """Return a key that orders by the first number in a class's name, if it has one."""
    name = kind.of.split(" · ")[1]
    first = re.search(r"\d+", name)
    return (float(first[0]) if first else inf), name


@deferred
def _of_classes(
    *titles: str, order: Callable[[Summary], Any] = lambda kind: -(kind.signed_error or 0)
) -> Rows:
    """Work and class, as `of_class` has it; first what takes longest beside what is expected."""
    return tuple(
        (work, *of_class(title, kind))
        for title in titles
        for work in ("serving", "training")
        for kind in sorted(_classes()[title], key=order)
        if kind.of.startswith(work)
    )


class ByClass(Claims):
    """Signed errors of training and serving, as `calc validate --published` prints them."""

    header = ("Work", "", "Rows", "Signed", "Median", "90th", "Inside", "High/low")
    by_software: Rows = _of_classes("software and version") | row_by_hand(
        "training | llm-foundry | 139 | 0% | 6.4% | 17% | 79% | 1.3"
    )
    by_device: Rows = _of_classes("device") | row_by_hand(
        "training | A100 40GB | 53 | 0% | 4.6% | 9.3% | 94% | 1.3"
    )
    by_others: Rows = _of_classes(
        *("slices", "batch", "kind of model", "basis", "date"), order=_smallest_first
    ) | row_by_hand("training | dense models | 339 | 1% | 7.2% | 25% | 78% | 1.3")


NEWEST = ("B200", "B300", "GB200", "GB300", "MI355X", "TPU v7")  # of an MI355X are no rows


class Newest(Claims):
    """Rows of the devices since Blackwell, in training and serving."""

    _rows = deferred(tuple)(
        compared
        for compared in expected_of("training") + expected_of("serving")
        if device(compared) in NEWEST
    )
    count = deferred(len)(_rows) | no_hand("399", "counted in rows that the library expects")
    error = middle(abs(compared.error) for compared in _rows) | no_hand(
        "10 %", "median over expectations of published rows"
    )
    signed = middle(compared.error for compared in _rows) | no_hand(
        "2 %", "median over expectations of published rows"
    )


class PublishedRows(Claims):
    """All rows, by what they measure."""

    total = deferred(len)(all_rows()) | by_hand("212 + 358 + 590 + 728")
    bounded = deferred(len)(with_bounds()) | counted("rows with a bound")
    unread = total - bounded | counted("rows without a bound")
    faster = deferred(sum)(compared.faster_than_lower for compared in with_bounds()) | no_hand(
        "0", "counted over bounds of published rows"
    )
    rounding = percent(ROUNDING) | by_hand("0.5 %")
    _kinds = published.summary(all_rows())
    of_serving = deferred(next)(
        percent(kind.median_error) for kind in _kinds if kind.of == "serving"
    ) | no_hand("11.389328 %", "median over expectations of published rows")
    rows = deferred(tuple)(
        (
            published.GROUPS[kind.of],
            kind.rows,
            kind.usable,
            kind.expected,
            kind.faster_than_lower,
            kind.slower_than_upper,
            percent(kind.share_of_bound),
            signed(kind.signed_error),
            percent(kind.median_error),
            percent(kind.largest_errors),
        )
        for kind in _kinds
    ) | row_by_hand("training | 590 | 488 | 477 | 0 | 122 | 37% | 1% | 8.2% | 27%")


class Shares(Claims):
    """The share of the bound that programs reach: the headline."""

    of_training = middle(row.share_of_bound for row in with_lengths("training")) | no_hand(
        "37 %", "median over shares of published rows"
    )
    of_serving = middle(row.share_of_bound for row in with_lengths("serving")) | counted(
        "median share of serving"
    )
    dense = middle(
        row.share_of_bound for row in with_lengths("training") if not mixture(row)
    ) | no_hand("41 %", "median over shares of published rows")
    mixtures = middle(
        row.share_of_bound for row in with_lengths("training") if mixture(row)
    ) | no_hand("18 %", "median over shares of published rows")
    worth = (1 / of_serving).to("") | counted("one over the median share of serving")


@deferred
def judged() -> Iterator[tuple[str, str, int, int, Share, int, Share, Share]]:
    """Software with fitted numbers: on what, how many of each, and the errors of both parts."""
    for key in FITTED:
        one = software.get(key)
        rows = [
            compared
            for compared in with_bounds()
            if compared.software == key and compared.error is not None
        ]
        (ours,) = published.summary([compared for compared in rows if compared.fitted])
        (others,) = published.summary([compared for compared in rows if not compared.fitted])
        yield (
            one.name,
            short_name(one.fitted_on),
            sum(record.provenance.note.startswith("Fitted") for record in one.records.values()),
            ours.expected,
            percent(ours.median_error),
            others.expected,
            percent(others.median_error),
            percent(others.largest_errors),
        )


FITTED = [key for key in software.names() if software.get(key).fitted_on not in ("", OTHERS)]


class FittedSoftware(Claims):
    """Few numbers of software stand against many rows."""

    rows = deferred(tuple)(judged()) | row_by_hand(
        "llm-foundry | A100 40GB | 1 | 53 | 4.6% | 86 | 8.2% | 22%"
    )
    numbers = deferred(sum)(row[2] for row in rows) | by_hand(
        "2 + 3 + 1 + 3 + 3", "notes of calc/data/software.toml that begin with Fitted"
    )
    own = deferred(sum)(row[3] for row in rows) | by_hand(
        "7 + 12 + 53 + 19 + 59",
        "7 + 12 + 53 + 19 + 59 rows of the machines that the notes of calc/data/software.toml name",
    )
    others = deferred(sum)(row[5] for row in rows) | no_hand(
        "578", "counted in rows that the library expects"
    )
    start = gemms.START | by_hand("4 µs")
    of_a_step = software.get("vllm").records["step"].quantity | by_hand(
        "1.5 ms", "the note of calc/data/software.toml"
    )
    of_a_sequence = software.get("vllm").records["sequence"].quantity | by_hand(
        "30 µs", "the note of calc/data/software.toml"
    )
    of_full_mixtures = quantity(100 * FULL_EXPERTS, "%") | by_hand(
        "73 %", "the note of calc/published/serving_rows.py"
    )
    peer = quantity(9, "%")


@deferred
def curves_left_out() -> tuple[Any, ...]:
    """Each curve of collectives as the others say it."""
    return tuple(left_out())


class LeftOut(Claims):
    """Curves of collectives, each predicted from those of others."""

    _curves = curves_left_out()
    count = deferred(len)(_curves) | by_hand(
        "16 + 4 + 3 + 3",
        "curves of more than four sizes on switches in calc/data/measured/collectives.csv",
    )
    nearest = middle(curve.nearest for curve in _curves) | no_hand(
        "12.0 %", "median over curves that were left out"
    )
    line = middle(curve.line for curve in _curves) | no_hand(
        "22.0 %", "median over curves that were left out"
    )
    band = quantity(20, "%")
    from_size = quantity(curves.COMPARED_FROM, "byte").to("kB") | by_hand("64 kB")


def of(compared: Comparison) -> str:
    """Return the thing that a row measures: its model, its collective or its kernel."""
    if compared.row.group == "collective":
        operation = (
            str(compared.row["collective"]).replace("_", "-").replace("alltoall", "all-to-all")
        )
        return f"{operation} of {conditions.devices(compared.row)}"
    if compared.row.group == "kernel":
        return str(compared.row["kernel"] or KERNELS[compared.row["kind"]])
    return str(compared.row["model"]).split("/")[-1].split(" (")[0].replace("_", " ")


KERNELS = {"gemm": "GEMM", "attention": "attention", "memory_bandwidth": "memory"}
UNKNOWN = "not known"
SHOWN = {"kernel": 2, "collective": 2, "training": 5, "serving": 5}  # kinds of rows of each group


def far(compared: Comparison) -> float:
    """Return how far a row is off, to either side."""
    return abs(log(1 + (compared.error or 0.0)))


@deferred
def furthest() -> Iterator[Row]:
    """The kinds of rows that are furthest off, a few of each group, each by its worst row."""
    for group, count in SHOWN.items():
        kinds: dict[tuple[str, str], list[Comparison]] = {}
        for compared in sorted(expected_of(group), key=far, reverse=True):
            kinds.setdefault((of(compared), device(compared)), []).append(compared)
        for (what, where), alike in list(kinds.items())[:count]:
            worst = alike[0]
            yield (
                f"{what} [@{worst.row.source}]",
                where,
                quantity(1 + (worst.error or 0.0), ""),
                len(alike),
                WORDS["far_off"].get(what, {}).get(where, UNKNOWN),
            )


# What `python -m benchmarks.peers` recorded.
ANSWERS = recorded.rows("peers.csv")
PEERS = tuple(answer for answer in ANSWERS if answer["planner"] != "calc")


@deferred
def beside(name: str) -> Row:
    """A row, what was measured of one device, and what each planner predicts over that."""
    compared = row(name)
    answers = [answer for answer in PEERS if answer["row"] == name]
    measured = number(answers[0]["measured"])
    return (
        of(compared),
        f"{conditions.devices(compared.row)} {device(compared)}",
        f"{measured:.4g}",
        compared.measured / compared.prediction.expected,
        *(
            number(answer["predicted"]) / measured if answer["predicted"] else None
            for answer in answers
        ),
    )


class Peers(Claims):
    """Other planners on published rows, each with its own defaults."""

    rows = deferred(tuple)(
        beside(name) for name in dict.fromkeys(answer["row"] for answer in ANSWERS)
    ) | row_by_hand("MPT 30b | 8 A100 | 916 | 0.89 | 1.4 | 0.71 | – | –")
    questions = deferred(len)(rows) | by_hand("2 + 2")


@deferred
def loops_of_a_peer() -> Iterator[tuple[Compared, float]]:
    """The closed loops that `python -m benchmarks.peer_loops` asked, and the peer's answers."""
    answers = {row["row"]: row["tpot"] for row in recorded.rows("peer_loops.csv")}
    asked = [loop for loop in closed_loops.rows() if answers.get(loop.id)]
    for compared in published.compare(asked):
        if compared.error is not None:
            yield compared, number(answers[compared.row.id])


@deferred
def errors_of_both(loops: Sequence[tuple[Compared, float]]) -> Row:
    """Return the number of rows, and of each planner the median of errors and the signed one."""
    ours = error_of([loop.error for loop, _ in loops])
    theirs = error_of([loop.measured / tpot - 1 for loop, tpot in loops])
    return (len(loops), *map(percent, (*ours, *theirs)))


@deferred
def by_program(loops: Sequence[tuple[Compared, float]]) -> Rows:
    """The errors of both by program, and those of all."""
    programs: dict[str, list[tuple[Compared, float]]] = {}
    for loop in loops:
        programs.setdefault(system(loop[0])[0], []).append(loop)
    return (
        *((name, *errors_of_both(of)) for name, of in sorted(programs.items())),
        ("all", *errors_of_both(loops)),
    )


class PeerLoops(Claims):
    """Another planner, and ours, on the same closed loops."""

    loops = deferred(tuple)(loops_of_a_peer())
    rows = by_program(loops) | row_by_hand("SGLang | 7 | 16% | −9% | 16% | −8.9%")
    count = deferred(len)(loops) | by_hand(
        "18 + 15 + 8 + 8 + 7 + 6 + 5 + 5 + 4 + 4 + 3 + 3 + 2 + 1",
        "rows of peer_loops.csv with an answer, without drafts, by program and device",
    )
    ours, theirs = (
        rows[-1][2] | no_hand("9.2020379 %", "median over expectations"),
        rows[-1][4]
        | by_hand(
            "1 - 18.745 / 1000 / 0.02178",
            "the same of tpot_ms of closed_loops.csv over those of peer_loops.csv",
        ),
    )


class Furthest(Claims):
    """Rows that are furthest from what is expected."""

    rows = deferred(tuple)(furthest()) | row_by_hand("… | A100 | 12 | 4 | …")


class Slide(Claims):
    """A vendor's slide that no program can keep."""

    device = hardware.get("h200")
    model = models.get("llama-3-70b")
    claim = quantity("100 token/s")
    context = 1024

    weights = inference.weights_read(model, 1, "1 byte").to("GB") | by_hand(
        "(70553706496 - 128256 * 8192) * 1 byte"
    )
    step = inference.decode(model, device, context, weight_size="1 byte").lower.to("ms") | by_hand(
        "({weights} + 1024 * 327680 byte) / 4.8 TB/s"
    )
    most = (quantity("1 token") / step).to("token/s") | by_hand("1 token / {step}")


# What `python -m experiments.record_closed_loops` recorded.
RECORDED = recorded.settings("closed_loops.toml")


@deferred
def of_loops(summed: dict[str, Any]) -> Row:
    """Return how many rows, their share of the bound, and errors: median, largest and signed."""
    names = ("share_of_bound", "median_error", "largest_errors", "signed_error")
    return (summed["rows"], *(percent(summed[name]) for name in names))


@deferred
def errors_under_load(summed: dict[str, Any], *names: str) -> Row:
    """Return the number of rows, and the signed error and the median of errors of each time."""
    errors = (percent(summed[name][which]) for name in names for which in ("signed", "error"))
    return (summed["rows"], *errors)


class ClosedLoops(Claims):
    """The time of a token in published closed loops, beside what is expected of it."""

    all = RECORDED["all"]
    total = RECORDED["rows"] | by_hand(
        "2663 - 520",
        "lines of closed_loops.csv that differ in more than an id and what they"
        " fill in: 2 663 less 520",
    )
    expected = all["rows"] | by_hand("2143 - 393 - 99 - 55 - 10")
    faster = RECORDED["faster_than_lower"] | no_hand("0", "counted over bounds of rows")
    median_error = percent(all["median_error"]) | no_hand("8.8929554 %", "median over expectations")
    of_dense = percent(
        max(
            kind["median_error"]
            for kind in RECORDED["systems"]
            if kind["software"] in ("vllm", "tensorrt-llm")
            and not kind["mixture"]
            and kind["rows"] >= FEW
        )
    ) | no_hand("10.621243 %", "median over expectations")
    rows = (
        *(
            (
                software.get(kind["software"]).name + (" MoE" if kind["mixture"] else ""),
                short_name(kind["machine"]),
                *of_loops(kind),
            )
            for kind in RECORDED["systems"]
            if kind["rows"] >= FEW
        ),
        ("all", "all", *of_loops(all)),
    ) | row_by_hand("all | all | 1586 | 26% | 8.9% | 29% | −3.1%")


class UnderLoad(Claims):
    """First tokens and each after, of servers under load, beside the simulation of a service."""

    stored = recorded.settings("loads.toml")
    loops, pools = stored["loops"]["agg"], stored["loops"]["disagg"]["all"]
    rates, traces, seen = stored["rates"], stored["traces"], stored["observed"]
    judged = loops["judged"]["rows"] | no_hand("1130", "counted in rows that the library expects")
    first = percent(loops["judged"]["ttft"]["error"]) | no_hand(
        "21.126674 %", "median over expectations"
    )
    rest = percent(loops["judged"]["tpot"]["error"]) | no_hand(
        "8.7869468 %", "median over expectations"
    )
    apart_first = percent(pools["ttft"]["error"]) | no_hand(
        "101.36245 %", "median over expectations"
    )
    at_rates = sum(kind["rows"] for kind in rates.values()) | by_hand("85 - 5")
    shortened = stored["shortened"] | no_hand("33", "counted in rows that the library expects")
    unshortened = percent(stored["unshortened"]["ttft p50"]["error"]) | no_hand(
        "74.997926 %", "median over simulated servers"
    )
    requests = traces["rtx-pro-6000"]["requests"] | by_hand("301 - 1")
    known = percent(traces["rtx-pro-6000"]["ttft"]["error"]) | no_hand(
        "7.2860333 %", "median over simulated requests"
    )
    guessed = percent(traces["rtx-4090"]["ttft"]["error"]) | no_hand(
        "2.149758 %", "median over simulated requests"
    )
    curves = seen["curves"] | no_hand("202", "counted in closed_loops.csv")
    points = seen["points"] | no_hand("470", "counted in closed_loops.csv")
    before = percent(seen["tpot"]["before"]["error"]) | no_hand(
        "7.6689666 %", "median over expectations"
    )
    after = percent(seen["tpot"]["after"]["error"]) | no_hand(
        "2.285383 %", "median over expectations"
    )
    first_before = percent(seen["ttft"]["before"]["error"]) | no_hand(
        "16.404286 %", "median over expectations"
    )
    first_after = percent(seen["ttft"]["after"]["error"]) | no_hand(
        "10.052919 %", "median over expectations"
    )
    rows = (
        *(
            (
                software.get(kind["of"][0]).name + (" MoE" if kind["of"][2] == "mixture" else ""),
                short_name(kind["of"][1]),
                *errors_under_load(kind, "ttft", "tpot"),
            )
            for kind in loops["systems"]
            if kind["rows"] >= FEW
        ),
        ("servers apart", "all", *errors_under_load(pools, "ttft", "tpot")),
        *(
            (f"MLPerf {name}, median", "all", *errors_under_load(kind, "ttft p50", "tpot p50"))
            for name, kind in rates.items()
        ),
        ("closed loops", "all", *errors_under_load(loops["all"], "ttft", "tpot")),
    ) | row_by_hand("closed loops | all | 1452 | 9.3% | 21% | 0.75% | 8.6%")


class Coverage(Claims):
    """Four of five published rows lie in intervals that were made without them."""

    recorded = RECORDED["intervals"]
    count = recorded["rows"] | by_hand("{ClosedLoops.expected} + 477 + 639 - 40")
    thirds = percent(recorded["thirds"]) | no_hand(
        "80.901917 %", "share of intervals that hold, counted"
    )
    sources = percent(recorded["sources"]) | no_hand(
        "76.821938 %", "share of intervals that hold, counted"
    )
    rows = tuple(
        (
            f"{kind['work']}, {software.get(kind['software']).name}",
            ("mixtures" if kind["model"] == "mixture" else "others")
            + (", filled in" if kind["basis"] == "filled" else ""),
            kind["rows"],
            kind["low"],
            kind["high"],
            percent(kind["thirds"]),
            percent(kind["sources"]),
        )
        for kind in recorded["of"]
        if kind["software"] and kind["rows"] >= 10 * FEW
    ) | row_by_hand("training, Megatron up to 26.04 | mixtures | 93 | 0.79 | 1.3 | 86% | 57%")
    least = percent(
        min(kind["sources"] for kind in recorded["of"] if kind["rows"] >= 10 * FEW)
    ) | no_hand("47.727273 %", "share of intervals that hold, counted")
    most = percent(
        max(kind["sources"] for kind in recorded["of"] if kind["rows"] >= 10 * FEW)
    ) | no_hand("85.632184 %", "share of intervals that hold, counted")


class OwnServer(Claims):
    """A measurement of one's own, in the form of the published ones."""

    batch = 128
    prompt = 1024
    answer = 512
    devices = 8
    rate = quantity("2000 token/s")
    found: Compared = deferred(published.predict)(
        published.Row(
            "serving",
            "mine",
            {
                "device": "H100",
                "num_devices": devices,
                "model": "Llama 3.1 70B",
                "dtype_weights": "bf16",
                "software": "vLLM",
                "batch": batch,
                "input_len": prompt,
                "output_len": answer,
                "source_key": "",
            },
            {"output_tokens_per_s": rate.m_as("token/s")},
        )
    )

    share = percent(found.share_of_bound) | by_hand("52.93909 µs / 500 µs")
    times = 1 + found.error | by_hand("500 / 191.42976")


class Choice(Claims):
    """Faster messages, or a faster host, are worth so much of a step."""

    sum_of_vllm = (PartsOfDecode.messages / (2 * conditions.model(Served.compared.row).layers)).to(
        "us"
    ) | by_hand("2.982455 ms / 160")
    host_gain = (PartsOfDecode.host / 2).to("ms") | by_hand("0.5 * (1.5 ms + 63.791 * 30 µs)")
    messages_gain = (PartsOfDecode.messages / 2).to("ms") | by_hand("0.5 * 2.982455 ms")
