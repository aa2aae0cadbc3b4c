"""The log of a training run: first the machine and its roofs, then a line of JSON for each step.

It is written while the run goes on, each line whole or not at all, and read without torch. A last
line that a kill cut off is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calc.core.arguments import number, whole_number
from calc.core.errors import InputError, abbreviated
from calc.core.files import append_line, parse_json, read_text
from calc.core.report import values
from calc.core.units import Quantity, QuantityLike, quantity

if TYPE_CHECKING:
    from calc.codesign.training_step import Step
    from calc.codesign.work import WorkCounter

KIND = "calc.codesign run, version 1"
# What a step and a device may have: no sum or ratio of them leaves floating point.
SECONDS = (1e-9, 1e9)
ROOFS = (1.0, 1e30)


@dataclass(frozen=True)
class LoggedStep:
    """A step as it is logged; memory is what was kept for backward, and work what was counted.

    What no step is, such as one without time or with a loss that is NaN, is refused.
    """

    number: int
    loss: float
    seconds: float
    samples: int
    parts: int
    flop: int
    traffic: int
    memory: int
    events: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("number", "samples", "parts", "flop", "traffic", "memory"):
            count = whole_number(name, getattr(self, name), at_least=0)  # numpy's are no JSON
            object.__setattr__(self, name, count)
        for name, limits in (("loss", (-1e300, 1e300)), ("seconds", SECONDS)):
            object.__setattr__(self, name, _checked(getattr(self, name), name, limits))
        if not isinstance(self.events, list | tuple):
            raise InputError(f"events must be a list; got {abbreviated(self.events)}")
        object.__setattr__(self, "events", tuple(_text("an event", event) for event in self.events))


@dataclass(frozen=True)
class LoggedRun:
    """A run: what it ran on, and its steps, of which some have work."""

    title: str
    device: str
    peak: Quantity
    bandwidth: Quantity
    steps: tuple[LoggedStep, ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise InputError("it tells of no step")
        if not any(step.flop and step.traffic for step in self.steps):
            raise InputError("no step has flop and traffic")

    @property
    def seconds(self) -> float:
        """Time of all steps."""
        return sum(step.seconds for step in self.steps)

    @property
    def rates(self) -> list[float]:
        """FLOP/s of each step."""
        return [step.flop / step.seconds for step in self.steps]

    @property
    def rate(self) -> Quantity:
        """Operations of the run over its time."""
        return quantity(sum(step.flop for step in self.steps) / self.seconds, "FLOP/s")

    @property
    def mfu(self) -> Quantity:
        """Model FLOPs utilization: the rate of the run as a fraction of the device's peak."""
        return (self.rate / self.peak).to("")

    @property
    def traffic_rate(self) -> Quantity:
        """Bytes that operations read and wrote over the run's time; caches may serve a part."""
        return quantity(sum(step.traffic for step in self.steps) / self.seconds, "byte/s")

    @property
    def intensity(self) -> Quantity:
        """Operations for each byte that they read or wrote."""
        return (self.rate / self.traffic_rate).to("FLOP/byte")

    def events(self, kind: str) -> list[int]:
        """Numbers of the steps in which this happened, as often as it did."""
        return [step.number for step in self.steps for event in step.events if event == kind]


class RunLog:
    """Writes the log of a run, a new file: `log.record(step, work)` after each step.

    The peak is that of the format that the run computes in, and both roofs are the device's: out of
    a datasheet, or measured. A trainer gives the step and `WorkCounter` the work, as its example
    shows; of a training loop of one's own, anything with their attributes will do:

    >>> from tempfile import TemporaryDirectory
    >>> from types import SimpleNamespace
    >>> step = SimpleNamespace(number=1, loss=2.3, seconds=0.5, samples=32, parts=1, events=())
    >>> work = SimpleNamespace(flop=4_000_000_000, traffic=2_000_000_000, saved=1_500_000)
    >>> with TemporaryDirectory() as folder:
    ...     log = RunLog(f"{folder}/run.jsonl", "Digits", "my machine", "40 GFLOP/s", "10 GB/s")
    ...     log.record(step, work)
    ...     run = read_run(log.path)
    >>> print(run.rate, run.mfu.to("%"))
    8 GFLOP/s 20%
    """

    def __init__(
        self, path: Path | str, title: str, device: str, peak: QuantityLike, bandwidth: QuantityLike
    ) -> None:
        self.path = Path(path)
        header = {
            "kind": KIND,
            "title": _text("title", title),
            "device": _text("device", device),
            "peak_flop_per_second": quantity(peak).m_as("FLOP/s"),
            "bandwidth_byte_per_second": quantity(bandwidth).m_as("byte/s"),
        }
        _roofs(header)
        try:
            self.path.touch(exist_ok=False)
        except FileExistsError:
            raise InputError(
                f"{self.path} is there already, and no log is written over: take it away or give"
                " another file"
            ) from None
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror}") from None
        self._append(header)

    def record(self, step: Step, work: WorkCounter) -> None:
        """Append a step, with the work that was counted while it ran."""
        facts = values(step, "number loss seconds samples parts events")
        logged = LoggedStep(**facts, flop=work.flop, traffic=work.traffic, memory=work.saved)
        self._append(asdict(logged))

    def _append(self, line: Mapping[str, object]) -> None:
        append_line(self.path, json.dumps(line, ensure_ascii=False))


def read_run(path: Path | str) -> LoggedRun:
    """The run that a log tells of; `calc training` shows it.

    >>> from calc.core.records import DATA
    >>> run = read_run(DATA / "measured" / "training_run.jsonl")
    >>> len(run.steps), run.events("overflow")
    (72, [24, 48])
    """
    source = Path(path)
    first, *rest = read_text(source).split("\n")[:-1] or [""]  # without what a kill cut off
    header = _read(source, 1, first)
    if header.get("kind") != KIND:
        raise InputError(f"{source} is no log of a run; RunLog writes them")
    steps = tuple(_step(source, number, line) for number, line in enumerate(rest, start=2))
    try:
        peak, bandwidth = _roofs(header)
        title, device = (_text(name, header.get(name)) for name in ("title", "device"))
        return LoggedRun(title, device, peak, bandwidth, steps)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _step(source: Path, number: int, line: str) -> LoggedStep:
    row = _read(source, number, line)
    try:
        return LoggedStep(**row)
    except (TypeError, InputError) as error:  # of names, or of what stands there
        why = f": {error}" if isinstance(error, InputError) else ""
        raise InputError(
            f"{source}, line {number}: {abbreviated(line)} is no step of a run{why}"
        ) from None


def _read(source: Path, number: int, line: str) -> dict[str, Any]:
    row = None
    with suppress(InputError):
        row = parse_json(line, source)
    if not isinstance(row, dict):
        raise InputError(f"{source}, line {number}: {abbreviated(line)} is no line of a log")
    return row


def _roofs(header: Mapping[str, object]) -> tuple[Quantity, Quantity]:
    """Peak and bandwidth of a first line."""
    units = {"peak_flop_per_second": "FLOP/s", "bandwidth_byte_per_second": "byte/s"}
    peak, bandwidth = (
        quantity(_checked(header.get(name), name, ROOFS), unit) for name, unit in units.items()
    )
    return peak, bandwidth


def _text(name: str, value: object) -> str:
    """Text that a file can hold, which half of a surrogate pair is not."""
    if isinstance(value, str):
        with suppress(UnicodeEncodeError):
            value.encode()
            return value
    raise InputError(f"{name} must be text; got {abbreviated(value)}")


def _checked(raw: object, name: str, limits: tuple[float, float]) -> float:
    value = number(name, raw, at_least=limits[0])
    if value > limits[1]:
        raise InputError(f"{name} must be a number up to {limits[1]:g}; got {abbreviated(raw)}")
    return value
