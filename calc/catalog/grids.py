"""Carbon intensities of countries' electricity, by name: `get("france")`, from `data/grids.csv`.

Each is the mean of a year over the life cycle, as carbon dioxide equivalent: Ember's and the Energy
Institute's, as Our World in Data has them. They were read in codecarbon 3.3.2 of PyPI, which has
that table; those of thirty countries are held against the table of the site by a test.
"""

from __future__ import annotations

import datetime
from functools import cache

from calc.core.errors import InputError, abbreviated, marked
from calc.core.names import resolve, spellings, squeezed
from calc.core.provenance import Provenance
from calc.core.records import DATA, read_rows
from calc.core.units import Quantity, QuantityLike, quantity

FILE = DATA / "grids.csv"
SOURCE = "owid2025carbonintensity"
PUBLISHED = 2025  # the table; a row says which year its intensity is of
CHECKED = datetime.date(2026, 11, 24)
ALSO = {
    "united-kingdom": ("uk", "britain", "great britain"),
    "united-states": ("us", "usa", "america"),
    "south-korea": ("korea",),
}


@cache
def _stored() -> dict[str, Quantity]:
    grids = {}
    for row in read_rows(FILE):
        key = row["country"].lower().replace(" ", "-")
        grids[key] = quantity(float(row["g_per_kWh"]), "g/kWh")
        grids[key].provenance = Provenance(
            key=f"grids.{key}",
            title=f"Carbon intensity of the electricity of {row['country']} in {row['year']}",
            kind="measured",
            source=SOURCE,
            year=PUBLISHED,
            checked=CHECKED,
            note="A mean of the year, over the life cycle; read in the package codecarbon 3.3.2.",
        )
    return grids


@cache
def _codes() -> dict[str, str]:
    return {row["country"].lower().replace(" ", "-"): row["code"] for row in read_rows(FILE)}


@cache
def _spellings() -> dict[str, str]:
    return spellings({key: (code, *ALSO.get(key, ())) for key, code in _codes().items()})


def names() -> tuple[str, ...]:
    """The keys of all countries.

    >>> len(names()) > 70, "france" in names()
    (True, True)
    """
    return tuple(_stored())


def key_of(name: str) -> str | None:
    """The key for a country as people write it, or for its code; None for no country of the data.

    >>> key_of("UK"), key_of("FRA"), key_of("Atlantis")
    ('united-kingdom', 'france', None)
    """
    return _spellings().get(squeezed(name))


def get(name: str) -> Quantity:
    """The carbon intensity of a country's electricity.

    >>> print(get("France"))
    56.04 g/kWh
    """
    listing = "`calc list grids` prints them all"
    return _stored()[resolve("grid", name, _spellings(), listing)]


def intensity(grid: QuantityLike) -> Quantity:
    """Return the carbon intensity of a named country, or the one that is given, as "57 g/kWh".

    >>> print(intensity("sweden"), intensity("57 g/kWh"))
    40.70 g/kWh 57 g/kWh
    """
    if isinstance(grid, str) and not any(map(str.isdigit, grid)):
        return get(grid)
    emitted = quantity(grid)
    if emitted.ndim or not emitted.is_compatible_with("g/J") or not emitted.magnitude >= 0:
        raise InputError(
            f"{marked('grid')} must be a country, as france is, or what its electricity emits, as"
            ' "57 g/kWh"; got'
            f" {abbreviated(grid)}"
        )
    return emitted
