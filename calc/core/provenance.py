"""Origin of a value: what its data file says, carried by each quantity that is read from there."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from calc.core import citations
from calc.core.errors import InputError


@dataclass(frozen=True)
class Provenance:
    """Origin of a value: its key, title, kind, source, year and date of its check."""

    key: str
    title: str
    kind: str
    source: str
    year: int | None
    checked: datetime.date
    note: str

    @property
    def citation(self) -> str:
        try:
            return citations.citation(self.source)
        except InputError as error:
            raise InputError(f"{self.key} names a source that is not there: {error}") from None

    @property
    def cited(self) -> str:
        """The citation, or the key of a source of one's own, which is in no bibliography."""
        try:
            return self.citation
        except InputError:
            return self.source

    def __str__(self) -> str:
        parts = [f"{self.title}: {self.kind}, {self.citation}"]
        parts += [f"Checked {self.checked}."]
        parts += [self.note] if self.note else []
        return " ".join(part if part.endswith(".") else f"{part}." for part in parts)
