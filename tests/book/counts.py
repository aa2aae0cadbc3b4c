"""Second counts, by another route, of rows of derivations: of data, of stored rows, of casts.

A row names one of these as `counted`, in whose unit it is. Another device changes some, and nobody
copies a number for it.
"""

from __future__ import annotations

import csv
import math
import tomllib
from collections import defaultdict
from collections.abc import Callable
from functools import cache, partial
from statistics import mean, median, stdev
from typing import Any, NamedTuple

from calc import published
from tests.book import casts
from tests.book.rendered import REPOSITORY

DATA = REPOSITORY / "calc" / "data"
NO_LENGTHS = "the lengths of its prompts and answers are not stated"


def stored(name: str) -> dict[str, Any]:
    return tomllib.loads((DATA / name).read_text(encoding="utf-8"))


def lines(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def devices() -> int:
    return sum(table["kind"] != "announced" for table in stored("accelerators.toml").values())


def bounded() -> list[Any]:
    return [row for row in published.compare() if row.prediction]


def share_of_serving() -> int:
    serving = [row for row in bounded() if row.row.group == "serving"]
    stated = [row for row in serving if NO_LENGTHS not in row.prediction.missing]
    return round(100 * float(median(row.share_of_bound for row in stated)))


# --- what is stored ---


def cpu() -> dict[str, Any]:
    record: dict[str, Any] = stored("measured/cpu.toml")["amd-epyc-1-core"]
    return record


def day_of(name: str) -> str:
    return f"{stored(f'measured/{name}.toml')['measured']:%d %B %Y}"


def best_kernel() -> str:
    """Return the kernel whose time is the least of what was predicted."""
    rows = lines("measured/cpu_kernels.csv")
    best = min(
        rows, key=lambda row: float(row["measured_seconds"]) / float(row["predicted_seconds"])
    )
    return best["name"]


def errors_of_goodput(*, only_limited: bool = False) -> list[float]:
    """Return the errors of planned rates, in per cent of the published ones."""
    planned = stored("computed/services.toml")["published"]
    if only_limited:
        rows = stored("published/serving.toml")["serving"]
        free = {row["id"] for row in rows if row.get("scenario") == "Offline"}
        planned = {id: both for id, both in planned.items() if id not in free}
    rates = {
        row["id"]: one["value"]
        for row in stored("published/serving.toml")["serving"]
        for one in row["measured"]
        if one["name"] == "output_tokens_per_s"
    }
    return [abs(100 * one / rates[id] - 100) for id, both in planned.items() for one in both]


class Variant(NamedTuple):
    """The mean accuracy of a network's variant, its spread, and its bytes."""

    name: tuple[str, str, str]
    accuracy: float
    spread: float
    size: float


@cache
def variants() -> list[Variant]:
    """Variants that were trained again, the smallest first."""
    runs = defaultdict(list)
    for row in lines("measured/digits_fine_tuned.csv"):
        runs[row["precision"], row["pruning"], row["kind"]].append(row)
    measured_variants = []
    for name, rows in runs.items():
        right = [float(row["accuracy"]) for row in rows]
        sizes = (min(float(row[head]) for head in row if head.startswith("memory")) for row in rows)
        measured_variants.append(Variant(name, mean(right), stdev(right), mean(sizes)))
    return sorted(measured_variants, key=lambda one: (one.size, -one.accuracy))


def front(of_every_digit: bool) -> list[Variant]:
    """Return the variants that are more accurate than all smaller ones, by more than they vary."""
    kept: list[Variant] = []
    for one in variants():
        least = max((other.accuracy for other in kept), default=-math.inf)
        if one.accuracy > least + (0 if of_every_digit else one.spread):
            kept.append(one)
    return kept


def chosen_of_front() -> str:
    """Return the smallest variant of the front that loses a point at most."""
    whole = next(one for one in variants() if one.name[0] == "fp32" and one.name[2] == "none")
    form, share, kind = next(
        one for one in front(of_every_digit=False) if one.accuracy >= whole.accuracy - 0.01
    ).name
    return f"{form.upper()}, {100 * float(share):.0f}% {kind}"


def spares() -> int:
    """Return the fewest spares that are too few in one case of a hundred."""
    failed = 72 / (54 * 24 / 419)  # devices under repair for 72 hours, of 419 in 54 days
    terms = [math.exp(-failed + n * math.log(failed) - math.lgamma(n + 1)) for n in range(100)]
    return next(count for count in range(100) if math.fsum(terms[: count + 1]) >= 0.99)


COUNTS: dict[str, Callable[[], float | str]] = {
    "devices": devices,
    "rows with a bound": lambda: len(bounded()),
    "rows without a bound": lambda: len(published.compare()) - len(bounded()),
    "median share of serving": share_of_serving,
    "one over the median share of serving": lambda: 100 / share_of_serving(),
    "CPU": lambda: str(cpu()["measurement"]["machine"]["processor"]),
    "day of the CPU": lambda: f"{cpu()['checked']:%d %B %Y}",
    "best kernel of the CPU": best_kernel,
    "CPU of the resolvent": lambda: str(stored("measured/resolvent.toml")["processor"]),
    "day of the resolvent": partial(day_of, "resolvent"),
    "CPU of the levers": lambda: str(stored("measured/training_levers.toml")["processor"]),
    "day of the levers": partial(day_of, "training_levers"),
    "published goodput": lambda: len(errors_of_goodput()) / 2,
    "median error of published goodput": lambda: median(errors_of_goodput()),
    "published goodput within limits": lambda: len(errors_of_goodput(only_limited=True)) / 2,
    "median error within limits": lambda: median(errors_of_goodput(only_limited=True)),
    "points of the front": lambda: len(front(of_every_digit=False)),
    "points of the front of every digit": lambda: len(front(of_every_digit=True)),
    "chosen of the front": chosen_of_front,
    "spares": spares,
    "the bell in MXFP4": casts.bell_in_mxfp4,
    "the bell in NVFP4": casts.bell_in_nvfp4,
    "an outlier in MXFP4": partial(casts.outlier_in_mxfp4, rotated=False),
    "an outlier in MXFP4, turned": partial(casts.outlier_in_mxfp4, rotated=True),
    "an outlier in NVFP4": partial(casts.outlier_in_nvfp4, rotated=False),
    "an outlier in NVFP4, turned": partial(casts.outlier_in_nvfp4, rotated=True),
    "summed in BF16": casts.summed_in_bf16,
    "summed at random": casts.summed_at_random,
    "summed by Kahan": casts.summed_by_kahan,
    "summed in tensor cores": casts.summed_in_tensor_cores,
    "error of eight bits": casts.error_of_eight_bits,
    "decibels beside an outlier": partial(casts.decibels_beside_an_outlier, own_scales=False),
    "decibels with own scales": partial(casts.decibels_beside_an_outlier, own_scales=True),
    "share of the range for four bits": partial(casts.best_share, 4),
    "share of the range for eight bits": partial(casts.best_share, 8),
}
