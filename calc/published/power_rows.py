"""The power that devices were measured to draw, by their load: `calc watts`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import median
from typing import Any

from calc.catalog import machines, models
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.core.citations import citation
from calc.core.errors import InputError
from calc.core.report import Reported, Table
from calc.core.units import Quantity, quantity
from calc.published import conditions, serving_rows
from calc.published.reading import WORDS, Row, rows
from calc.steps import device_power
from calc.steps.job import Job, Tokens
from calc.steps.timing import bounds

DEVICES = "devices"
MEASURED = WORDS["power"]  # the names of what was measured, and what drew it


ERROR = "over expected"  # the median of loads, less one


@dataclass(frozen=True)
class Draw:
    """Power of one device, or its share of what a machine drew, in a load."""

    row: Row
    device: Accelerator
    of: str
    power: Quantity

    @property
    def batch(self) -> float | None:
        """Sequences of a batch, for each device."""
        batch = self.row.number("batch")
        return None if batch is None else batch / conditions.devices(self.row)

    @property
    def share(self) -> float | None:
        """The share of the device's design power, where that is published."""
        if not self.device.publishes("tdp"):
            return None
        return float((self.power / self.device.tdp).m_as(""))

    @cached_property
    def _steps(self) -> tuple[Job, Tokens, float]:
        """The job, the mean step of its load, and the seconds that this is expected to take."""
        served = serving_rows.served_of(self.row)
        load = serving_rows.load_of(self.row, served)
        parts, hidden = serving_rows.steady_parts(served.job, load)
        return served.job, load, sum(parts.values()) - hidden

    @property
    def uses(self) -> tuple[float, float]:
        """The shares of bandwidth and of peak that devices are expected to use in its load."""
        job, load, taken = self._steps
        least = bounds(job, load).parts
        return least["memory"].m_as("s") / taken, least["compute"].m_as("s") / taken

    @property
    def rate_over_expected(self) -> float:
        """The tokens of a second over those that are expected."""
        _, load, taken = self._steps
        return self.row.measured["output_tokens_per_s"] * taken / float(load.writing)

    @cached_property
    def expected(self) -> Quantity | None:
        """Return what is expected of the devices in this load; None where nothing is."""
        if self.of != DEVICES:
            return None
        try:
            power = device_power.at_work(conditions.machine(self.row), *self.uses)
        except InputError:
            return None
        return None if power is None else power.device

    @property
    def error(self) -> float | None:
        """Measured over expected, less one."""
        return None if self.expected is None else float((self.power / self.expected).m_as("")) - 1

    @property
    def fact(self) -> dict[str, Any]:
        """The load and what was drawn, for programs."""
        return {
            "power": self.power,
            "share_of_design_power": self.share,
            "expected": self.expected,
            "error": self.error,
            "drawn_by": self.of,
            "model": self.row["model"],
            "batch_per_device": self.batch,
            "devices": conditions.devices(self.row),
            "software": self.row.software,
            "row": self.row.id,
            "source": self.row.source,
        }


@cache
def draws() -> tuple[Draw, ...]:
    """Every published row that says what was drawn, on a device of which there are data.

    >>> sorted({draw.device.key for draw in draws() if draw.of == DEVICES})
    ['b200', 'h100']
    """
    return tuple(_read())


def _read() -> Iterator[Draw]:
    for row in rows():
        for name in MEASURED.keys() & row.measured.keys():
            try:
                device, devices = conditions.machine(row).device, conditions.devices(row)
            except InputError:  # a device that has no data here
                continue
            yield Draw(row, device, MEASURED[name], quantity(row.measured[name] / devices, "W"))


@dataclass(frozen=True, eq=False, repr=False)
class Watts(Reported):
    """Powers that a device was measured to draw, load by load."""

    device: Accelerator
    measured: tuple[Draw, ...]

    @cached_property
    def title(self) -> list[str]:
        """The design power, and what other devices draw where this one was not measured."""
        tdp = self.device.tdp if self.device.publishes("tdp") else None
        design = "an unpublished power" if tdp is None else str(tdp)
        head = f"{self.device.name}, of {design} by its design, {len(self.measured)} loads measured"
        if self.measured:
            return [head, ""]
        if tdp is None:
            return [head]
        shares = [draw.share for draw in draws() if draw.of == DEVICES and draw.share is not None]
        least, usual, most = min(shares), median(shares), max(shares)
        return [
            f"{head}: an estimate is {least * tdp} to {most * tdp} while it writes tokens",
            f"by {len(shares)} loads of other devices, {usual:.0%} of their design in the median",
        ]

    @cached_property
    def tables(self) -> list[Table]:
        """A row for each model and what was metered."""
        kinds: dict[tuple[str, str], list[Draw]] = {}
        for draw in self.measured:
            kinds.setdefault((str(draw.row["model"]), draw.of), []).append(draw)
        head = (
            "model",
            "each device",
            "of its design",
            "metered",
            "batch a device",
            "loads",
            ERROR,
        )
        lines = [_cells(model, of, draws) for (model, of), draws in kinds.items()]
        return [Table([head, *lines])] if lines else []

    @cached_property
    def sentences(self) -> dict[str, list[str]]:
        """The sources."""
        sources = dict.fromkeys(draw.row.source for draw in self.measured)
        return {"Sources": list(map(citation, sources))}

    @cached_property
    def facts(self) -> dict[str, Any]:
        """A row for each load."""
        rows = [draw.fact for draw in self.measured]
        return {"device": self.device.key, "design_power": self.device.records["tdp"], "rows": rows}


def _cells(model: str, of: str, draws: Sequence[Draw]) -> tuple[str, ...]:
    powers = _from_to([draw.power for draw in draws])
    shares = _from_to([draw.share for draw in draws if draw.share is not None], ".0%")
    batches = _from_to([draw.batch for draw in draws if draw.batch is not None], ".4g")
    errors = [draw.error for draw in draws if draw.error is not None]
    error = f"{median(errors):+.0%}".replace("-", "\N{MINUS SIGN}") if errors else "–"
    return model, powers, shares, of, batches, str(len(draws)), error


def _from_to(values: Sequence[Any], spec: str = "") -> str:
    ends = dict.fromkeys(format(end, spec) for end in (min(values), max(values))) if values else ()
    return " to ".join(ends) or "–"


def watts(device: Machine | Accelerator | str, model: str | None = None) -> Watts:
    """Return what a device was measured to draw, by its load.

    Parameters
    ----------
    model
        the loads of this model alone, such as llama-3-1-8b

    Examples
    --------
    >>> print(watts("h100", "llama-3-1-8b").title[0])
    NVIDIA H100 SXM5 80 GB, of 700 W by its design, 6 loads measured
    """
    asked = machines.of(device).device
    measured = [draw for draw in draws() if draw.device.key == asked.key]
    if model is not None:
        wanted = models.get(model)
        measured = [draw for draw in measured if conditions.model(draw.row).key == wanted.key]
    return Watts(asked, tuple(measured))
