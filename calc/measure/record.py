"""A survey as an accelerator: a TOML file of the form of `calc/data/accelerators.toml`.

Every value says in its note how it was measured and how far its repeats lay apart. The table
`measurement` holds the rest: the machine, the command, all medians and spreads.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from calc.catalog import hardware
from calc.catalog.hardware import Accelerator
from calc.core.arguments import check_is
from calc.core.errors import InputError, extra
from calc.core.files import writable, write_atomically
from calc.core.units import quantity
from calc.measure.repeated_timing import Measured
from calc.measure.surveying import Survey

SOURCE = "calc-measure"
NO_METER = "calc measure reads no meter of power."
HEADING = """\
# Written by `calc measure`; calc.hardware.load() reads it. Medians, and spreads: the
# range of the middle half of the repeats as a share of the median.
"""


def record_text(survey: Survey, command: str) -> str:
    """The file of one survey, and of the command that made it."""
    with extra("a record of a machine", "tomli-w", "measure"):
        import tomli_w
    fields = {
        "memory_bandwidth": _value(survey.memory_bandwidth, "GB/s"),
        "memory_capacity": {
            "value": round(survey.memory_bytes / 2**30, 3),
            "unit": "GiB",
            "note": "As the system tells it.",
        },
        "on_chip_memory": {
            "value": float(survey.cache.m_as("MiB")),
            "unit": "MiB",
            "note": "The last cache, as the system tells it.",
        }
        if survey.cache
        else {"kind": "unpublished", "note": "The system does not tell of its caches."},
        "tdp": {"kind": "unpublished", "note": NO_METER},
    }
    measured = {
        "command": command,
        "threads": survey.threads,
        "machine": survey.machine,
        "bandwidth": {name: _row(measured, "GB/s") for name, measured in survey.bandwidths.items()},
        "peak": {name: _row(measured, "GFLOP/s") for name, measured in survey.peaks.items()},
        "latency": {name: _row(measured, "ns") for name, measured in survey.latencies.items()},
        "working_set": {
            str(size): _row(measured, "GB/s") for size, measured in survey.working_sets.items()
        },
    }
    device = {
        "name": survey.name,
        "year": survey.day.year,
        "kind": "measured",
        "source": SOURCE,
        "checked": survey.day,
        **fields,
        "peak": {
            name: _value(measured, _unit_of(measured)) for name, measured in survey.peaks.items()
        },
        "measurement": {name: value for name, value in measured.items() if value != {}},
    }
    return HEADING + tomli_w.dumps({key_of(survey.name): device})


def accelerator(survey: Survey, command: str = "calc.measure.survey()") -> Accelerator:
    """The accelerator of a survey, checked as any file of accelerators is.

    >>> from datetime import date
    >>> from calc.measure import Measured, this_machine
    >>> copy = Measured(quantity("20 GB/s"), 0.02, 9, how="by another program")
    >>> product = Measured(quantity("50 GFLOP/s"), 0.01, 9, how="by another program")
    >>> measured = Survey(
    ...     this_machine().as_table(), name="A machine", memory_bytes=2**34,
    ...     cache=None, threads=1, day=date(2026, 11, 1),
    ...     bandwidths={"copy": copy}, peaks={"fp64": product},
    ... )
    >>> print(accelerator(measured).ridge_point("fp64"))
    2.5 FLOP/byte
    """
    with tempfile.TemporaryDirectory() as folder:
        return save(survey, Path(folder) / "machine.toml", command)


def save(survey: Survey, path: Path | str, command: str) -> Accelerator:
    """Write the record, whole or not at all, and read it back.

    >>> from tempfile import TemporaryDirectory
    >>> from datetime import date
    >>> from calc.measure import Measured, this_machine
    >>> copy = Measured(quantity("20 GB/s"), 0.02, 9, how="by another program")
    >>> product = Measured(quantity("50 GFLOP/s"), 0.01, 9, how="by another program")
    >>> measured = Survey(
    ...     this_machine().as_table(), name="A machine", memory_bytes=2**34,
    ...     cache=None, threads=1, day=date(2026, 11, 1),
    ...     bandwidths={"copy": copy}, peaks={"fp64": product},
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     device = save(measured, f"{folder}/machine.toml", "by hand")
    >>> print(device.memory_bandwidth)
    20 GB/s
    """
    text = record_text(survey, command)

    def write(partial: str) -> None:
        """Write the text to a partial file, and refuse what hardware.load() would not read."""
        Path(partial).write_text(text, encoding="utf-8")
        try:
            read(Path(partial))
        except InputError as error:
            raise InputError(str(error).replace(partial, str(path))) from None

    write_atomically(writable(path), write)
    return read(path)


def read(path: Path | str) -> Accelerator:
    """The one accelerator of a file that `calc measure` wrote.

    >>> from calc.core.records import DATA
    >>> read(DATA / "measured" / "cpu.toml").measurement["command"]
    'python -m experiments.record_machine'
    """
    # Unlike Path's, this answers for every text; what is no path load() refuses.
    if isinstance(path, str | Path) and not os.path.exists(path):
        raise InputError(f"{path}: there is no such file; `calc measure` writes one")
    devices = list(hardware.load(path).values())
    if len(devices) != 1 or not devices[0].measurement:
        raise InputError(
            f"{path}: a record of one measured machine is needed, as `calc measure` writes it"
        )
    for name, kind, what in (("threads", int, "a whole number"), ("machine", dict, "a table")):
        value, needed = devices[0].measurement.get(name), f"{what}, as `calc measure` writes it"
        check_is(kind, f"{path}: measurement.{name}", value, needed)
    return devices[0]


def key_of(name: str) -> str:
    """A key for a name: small letters, digits and -."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "machine"


def _unit_of(peak: Measured) -> str:
    return "TFLOP/s" if peak.value > quantity("1 TFLOP/s") else "GFLOP/s"


def _value(measured: Measured, unit: str) -> dict[str, object]:
    return {
        "value": float(f"{measured.value.m_as(unit):.6g}"),
        "unit": unit,
        "note": f"{measured.how[0].upper()}{measured.how[1:]}: median of {measured.repeats}"
        f" repeats, spread {measured.spread:.1%}.",
    }


def _row(measured: Measured, unit: str) -> dict[str, object]:
    return {
        "median": float(f"{measured.value.m_as(unit):.6g}"),
        "unit": unit,
        "spread": float(f"{measured.spread:.3g}"),
        "repeats": measured.repeats,
    }
