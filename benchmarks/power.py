"""The power of devices at work, fitted again to the loads that were metered, and judged.

    python -m benchmarks.power            prints coefficients, and the errors of what is left out
    python -m benchmarks.power FILE.csv   judges loads of a file in the columns of ML.ENERGY too

A fit has the least mean |log(measured / expected)| over all loads of H100s and B200s. Errors are
those of each model by a fit to all others, and of each device by a fit to the other.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

import numpy as np

from calc.core.errors import InputError
from calc.core.formatting import columns
from calc.core.units import quantity
from calc.published import conditions
from calc.published.power_rows import DEVICES, Draw, draws
from calc.published.reading import Row

SHARES = np.arange(0.40, 0.801, 0.01)
BY_MEMORY = np.arange(0.0, 1.201, 0.04)
BY_COMPUTE = np.arange(0.0, 12.01, 0.4)
SOFTWARE = "vLLM 0.11.1"
"""What served all loads of ML.ENERGY's third edition [mlenergy-benchmark]."""


@dataclass(frozen=True)
class Load:
    """A metered load: what it uses, and the share of its design power that a device drew."""

    model: str
    device: str
    memory: float
    compute: float
    share: float
    batch: float
    """Sequences of each device."""
    time: float
    """Measured over expected time of a token."""


Coefficients = tuple[float, float, float]


def loads(drawn: Iterable[Draw]) -> list[Load]:
    """The loads of which a time is expected."""
    metered = []
    for draw in drawn:
        if draw.of == DEVICES and draw.expected is not None and draw.share is not None:
            model, (memory, compute) = conditions.model(draw.row).key, draw.uses
            asked = min(memory, 1.0), min(compute, 1.0)
            time = 1 / draw.rate_over_expected
            metered.append(
                Load(model, draw.device.key, *asked, draw.share, draw.batch or 0.0, time)
            )
    return metered


def expected(load: Load, coefficients: Coefficients) -> float:
    """The share of the design power that a load is expected to draw."""
    share, by_memory, by_compute = coefficients
    use = by_memory * load.memory + by_compute * load.compute
    return float(1 - (1 - share) * np.exp(-use))


def fitted(metered: Sequence[Load]) -> Coefficients:
    """The coefficients of the grid that are nearest to the loads."""
    memory, compute, share = (
        np.array([getattr(load, name) for load in metered])
        for name in ("memory", "compute", "share")
    )
    shares, by_memory, by_compute = np.meshgrid(SHARES, BY_MEMORY, BY_COMPUTE, indexing="ij")
    off = np.zeros(shares.shape)
    for of_memory, of_compute, drawn in zip(memory, compute, share, strict=True):
        use = by_memory * of_memory + by_compute * of_compute
        off += np.abs(np.log(drawn / (1 - (1 - shares) * np.exp(-use))))
    nearest = np.unravel_index(off.argmin(), off.shape)
    return float(shares[nearest]), float(by_memory[nearest]), float(by_compute[nearest])


def left_out(metered: Sequence[Load], kind: Callable[[Load], str]) -> list[tuple[Load, float]]:
    """Measured over expected power of each load, by a fit to those of other kinds."""
    factors = []
    for one in dict.fromkeys(map(kind, metered)):
        coefficients = fitted([load for load in metered if kind(load) != one])
        kept_back = [load for load in metered if kind(load) == one]
        factors += [(load, load.share / expected(load, coefficients)) for load in kept_back]
    return factors


def ends(factors: Iterable[float]) -> tuple[float, float]:
    """Between what eight of ten lie, with the correction for one more."""
    ranked = sorted(factors)
    count = len(ranked) + 1
    return ranked[int(0.1 * count) - 1], ranked[min(ceil(0.9 * count), len(ranked)) - 1]


def errors(factors: Sequence[float]) -> tuple[str, ...]:
    """Signed, median and 90th percentile of what is off."""
    off = sorted(abs(factor - 1) for factor in factors)
    numbers = (median(off), off[ceil(0.9 * len(off)) - 1])
    signed = f"{median(factors) - 1:+.1%}"
    return (str(len(off)), signed, *(f"{number:.1%}" for number in numbers))


def judged(title: str, factors: Sequence[tuple[Load, float]]) -> list[tuple[str, ...]]:
    """The errors of power, and of the energy of a token that goes with its time."""
    power = [factor for _, factor in factors]
    energy = [load.time * factor for load, factor in factors]
    design = [load.time * load.share for load, _ in factors]
    return [
        (f"{title}, power", *errors(power)),
        (f"{title}, energy of a token", *errors(energy)),
        (f"{title}, energy at design power", *errors(design)),
    ]


def read(path: str) -> list[Draw]:
    """The loads of a file in the columns of ML.ENERGY, of models that the data have."""
    drawn = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(csv.DictReader(lines)):
            count = int(line["gpus"])
            says = {
                "device": f"NVIDIA {line['device']}",
                "num_devices": count,
                "model": line["model"],
                "dtype_weights": line["weights_format"],
                "system": f"{count}x{line['device']}",
                "batch": float(line["batch_mean"]),
                "output_len": float(line["answer_tokens_mean"]),
                "task": line["task"],
                "parallelism": f"TP{count} EP{line['expert_parallel']}",
                "software": SOFTWARE,
            }
            measured = {
                "output_tokens_per_s": float(line["output_tokens_per_s"]),
                "avg_gpu_power_total": float(line["gpus_power_mean_w"]),
            }
            row = Row("serving", f"line {number + 2}", says, measured)
            power = quantity(measured["avg_gpu_power_total"] / count, "W")
            try:
                drawn.append(Draw(row, conditions.machine(row).device, DEVICES, power))
            except InputError:
                continue
    return drawn


def main() -> None:
    metered = loads(draws())
    coefficients = fitted(metered)
    print("coefficients: {:.2f} {:.2f} {:.1f}".format(*coefficients))
    models, devices = (left_out(metered, kind) for kind in (_model, _device))
    for title, factors in (("model", models), ("device", devices)):
        low, high = ends(factor for _, factor in factors)
        print(f"a {title} left out: eight of ten within {low:.2f} to {high:.2f}")
    lines: list[tuple[str, ...]] = [("", "loads", "signed", "median", "90th")]
    lines += judged("models left out", models) + judged("devices left out", devices)
    for low, high in ((0, 16), (16, 128), (128, 1e9)):
        some = [(load, factor) for load, factor in models if low < load.batch <= high]
        lines += judged(f"models left out, batch of a device up to {high:g}", some)[:2]
    for path in sys.argv[1:]:
        others = [(load, load.share / expected(load, coefficients)) for load in loads(read(path))]
        lines += judged(path.rpartition("/")[2], others)
    print("\n".join(columns(lines)))


def _model(load: Load) -> str:
    return load.model


def _device(load: Load) -> str:
    return load.device


if __name__ == "__main__":
    main()
