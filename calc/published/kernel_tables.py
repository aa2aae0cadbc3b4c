"""Errors of the tables of measured kernels: `calc validate --kernels`.

Of each surface of `kernel_shares` and each curve of `expert_exchanges` the rows that it is
distilled from are held to itself, and as though their version or their device had not been
measured: to the version before, and to the device that `ALIKE` names. The rows are not in the
package; `experiments/distil_kernels.py` stores the errors beside the tables. Engines' sums are here
whole, and are compared size by size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

from calc.catalog import engine_sums, expert_exchanges, kernel_shares
from calc.catalog.engine_sums import Sums
from calc.catalog.expert_exchanges import Exchange
from calc.catalog.kernel_shares import Error, Surface, stand_ins
from calc.core.report import Reported, Table, values, wrapped

TOLD = {
    "product": "matrix products",
    "experts": "grouped products of a mixture's experts",
    "prompts": "attention of a prompt",
    "caches": "attention of written tokens to their caches",
    "chosen": "sparse attention to chosen places of a cache, with the choice",
    "choosing": "sparse attention of a prompt, with the choice",
    "chunks": "linear attention of a prompt",
    "states": "linear attention of written tokens",
    "exchanges": "of tokens with the devices of their experts",
    "sums": "engines' own all-reduces",
}
"""What the kernels are."""
ERRORS = (
    "Medians over tables of the median of |measured / expected − 1| of a table's rows, signed of"
    " measured / expected − 1: above 0 it took longer than expected."
)
HELD = {"own": "by itself", "version_before": "version left out", "device_alike": "device left out"}
KINDS: dict[str, Callable[[Surface | Exchange | SumErrors], str]] = {
    "kernel": lambda row: row.kernel,
    "program": lambda row: f"{row.kernel} · {row.program}",
    "device": lambda row: row.device,
}


@dataclass(frozen=True)
class SumErrors:
    """One curve of an engine's sums, held as a surface is."""

    device: str
    program: str
    version: str
    rows: int
    """Sizes."""
    version_before: Error | None
    device_alike: Error | None
    kernel: str = "sums"
    format: str = ""
    own: Error | None = None
    """None, since the table of sums is kept whole."""


Held = Surface | Exchange | SumErrors


def _off(curve: Sums, other: Sums | None) -> Error | None:
    if other is None:
        return None
    errors = [
        time / other.time(curve.smallest * 2**index) - 1 for index, time in enumerate(curve.times)
    ]
    return error_of(errors)


def error_of(errors: Sequence[float]) -> Error:
    """Return what sums up measured / expected − 1 of several.

    >>> error_of([0.1, -0.3, 0.2])
    Error(median=0.2, signed=0.1)
    """
    return Error(median(map(abs, errors)), median(errors))


def sums() -> Iterator[SumErrors]:
    """Every curve of engines' sums.

    >>> curve = next(curve for curve in sums() if curve.device == "a100")
    >>> curve.device_alike is None  # of whom no other device was measured
    True
    """
    curves = list(engine_sums.load())
    for curve in curves:
        of = curve.program, curve.devices
        alike = (other for other in curves if (other.program, other.devices) == of)
        before, there = (_off(curve, other) for other in stand_ins(curve, alike))
        yield SumErrors(curve.device, curve.program, curve.version, len(curve.times), before, there)


@dataclass(frozen=True, eq=False, repr=False)
class KernelErrors(Reported):
    """Surfaces, exchanges and sums with their errors, summed up by kernel, program and device."""

    tables_of: Sequence[Held]

    @cached_property
    def tables(self) -> list[Table]:
        """The medians of tables' medians, without and with their sign, and of how many tables."""
        columns = [name for title in HELD.values() for name in (title, "signed", "tables")]
        return [
            Table([("", "rows", *columns), *self._rows(of)], f"Median errors by {title}")
            for title, of in KINDS.items()
        ]

    @cached_property
    def sentences(self) -> dict[str, list[str]]:
        """The sentences on what the errors are, and on the kernels."""
        kernels = "; ".join(f"{name}: {what}" for name, what in TOLD.items())
        return {"": [*wrapped(ERRORS), *wrapped(kernels)]}

    def _rows(self, of: Callable[[Held], str]) -> Iterator[tuple[str, ...]]:
        for kind in dict.fromkeys(map(of, self.tables_of)):
            chosen = [row for row in self.tables_of if of(row) == kind]
            cells = [cell for name in HELD for cell in _cells(getattr(row, name) for row in chosen)]
            yield kind, f"{sum(row.rows for row in chosen):,}".replace(",", " "), *cells

    @cached_property
    def facts(self) -> dict[str, object]:
        """A row for each surface and each curve."""
        names = f"kernel device program version format rows {' '.join(HELD)}"
        return {"rows": [values(row, names) for row in self.tables_of]}


def _cells(errors: Iterator[Error | None]) -> tuple[str, str, str]:
    measured = [error for error in errors if error is not None]
    if not measured:
        return "–", "–", "0"
    off, signed = (median(column) for column in zip(*measured, strict=True))
    return f"{off:.1%}", f"{signed:+.1%}".replace("-", "\N{MINUS SIGN}"), str(len(measured))


def errors(file: Path | str = "") -> KernelErrors:
    """Return the errors of the tables that calc has, or of a file of surfaces.

    >>> print(errors().tables[0].rows[1][0])
    caches
    """
    if file:
        return KernelErrors(list(kernel_shares.load(file)))
    return KernelErrors([*kernel_shares.load(), *expert_exchanges.load(), *sums()])
