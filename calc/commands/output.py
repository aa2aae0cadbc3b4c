"""What a command answers: facts, which are lines for people, JSON and CSV for programs.

In JSON a quantity is `{"value": 3.35, "unit": "TB/s"}`, and a pure number a number. One of the data
has its `title`, `kind`, `source`, `year`, `checked` and `note` beside it, a pure one the unit "1",
and what is unpublished the value null. CSV is the list `rows`, with `memory.value` for what is
nested.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

from calc.core.errors import InputError
from calc.core.files import writable, write_text
from calc.core.formatting import columns
from calc.core.provenance import Provenance
from calc.core.records import Record
from calc.core.units import Quantity

ORIGIN = ("title", "kind", "source", "year", "checked", "note")
PRINTED = "-"


@dataclass(frozen=True)
class Answer:
    """Facts by their names, which stay as they are, and how people read them."""

    facts: Mapping[str, Any]
    lines: Callable[[], Iterable[str]]
    draw: Callable[[], Any] | None = None
    """Makes the figure that `--draw` writes."""


def answers(
    parser: argparse.ArgumentParser,
    run: Callable[[Any], Answer],
    table: bool = False,
    drawn: str = "",
) -> None:
    """The command runs this, and takes `--json`, `--csv` for its `rows`, `--draw` for a figure."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    if table:
        parser.add_argument(
            "--csv",
            nargs="?",
            const=PRINTED,
            metavar="FILE",
            help="print the rows as CSV, or write them to a .csv file",
        )
    if drawn:
        parser.add_argument("--draw", metavar="FILE", help=f"draw {drawn} into an .svg file")
    parser.set_defaults(run=run)


def check_drawing(options: argparse.Namespace) -> None:
    """Refuse a drawing that cannot be made or written before there is anything to draw."""
    if (file := getattr(options, "draw", None)) is not None:
        from calc.planning import drawing

        drawing.checked_svg(file)
        drawing.loaded_matplotlib()


def checked_csv_file(options: argparse.Namespace) -> None:
    """Refuse a file that cannot be written before there is anything to write."""
    file = getattr(options, "csv", None)
    if file == PRINTED and options.json:
        raise InputError("--csv and --json cannot both be printed: give --csv a file, or leave one")
    if file in (None, PRINTED):
        return
    if writable(file).suffix != ".csv":
        raise InputError(f"--csv needs a name that ends in .csv; got {file!r}")


def write(answer: Answer, options: argparse.Namespace) -> list[str]:
    """The lines to print, in the form that was asked for; files of rows and figures are written."""
    if answer.draw is not None and options.draw is not None:
        from calc.planning.drawing import write_svg

        write_svg(answer.draw(), options.draw)
    file = getattr(options, "csv", None)
    if file is not None:
        text = _csv(answer.facts["rows"])
        if file == PRINTED:
            return text.splitlines()
        write_text(Path(file), text)
    if options.json:
        facts = json.dumps(plain(answer.facts), indent=2, ensure_ascii=False, allow_nan=False)
        return facts.split("\n")
    return list(answer.lines())


def sections(facts: Mapping[str, Any], titles: Mapping[str, str]) -> list[str]:
    """Sentences under a title each; of what has none there is no title."""
    lines = []
    for name, title in titles.items():
        if facts[name]:
            lines += ["", f"{title}:", *(f"- {each}" for each in facts[name])]
    return lines


def plain(value: Any) -> Any:
    """A value as JSON has it; NaN and infinities, which it has not, are null."""
    if isinstance(value, Record):
        return (plain(value.published) or {"value": None, "unit": None}) | _origin(value.provenance)
    if isinstance(value, Quantity):
        if value.provenance is None and value.unitless:
            return plain(value.magnitude)
        number = {"value": plain(value.magnitude), "unit": str(value.units) or "1"}
        return number | (_origin(value.provenance) if value.provenance else {})
    if hasattr(value, "_asdict"):  # a tuple with names
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return plain({name: getattr(value, name) for name in value.__dataclass_fields__})
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return (
            (int(value) if value.is_integer() and abs(value) < 1e15 else value)
            if math.isfinite(value)
            else None
        )
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _origin(provenance: Provenance) -> dict[str, Any]:
    return {name: plain(getattr(provenance, name)) for name in ORIGIN}


def _csv(rows: Iterable[Mapping[str, Any]]) -> str:
    flat = [dict(_flat(plain(row))) for row in rows]
    text = io.StringIO()
    names = dict.fromkeys(name for row in flat for name in row)
    writer = csv.DictWriter(text, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", json.dumps(value) if isinstance(value, bool) else value


def table(facts: Mapping[str, Any], titles: Mapping[str, str] | None = None) -> list[str]:
    """A line for each fact, and for each part of one that has parts."""
    rows = []

    def title(name: str) -> str:
        return (titles or {}).get(name, name.replace("_", " "))

    for name, value in facts.items():
        parts = {title(name): value}
        if isinstance(value, Mapping):
            parts = {f"{title(name)}, {title(part)}": each for part, each in value.items()}
        rows += [(part, _words(each)) for part, each in parts.items()]
    return columns(rows)


def _words(value: Any) -> str:
    if not isinstance(value, Record):
        return f"{value:.7g}" if isinstance(value, float) else str(value)
    kind = value.provenance.kind
    mark = f" ({kind})" if kind in ("estimate", "announced") else ""
    return f"{value.published}{mark}" if value.published is not None else "unpublished"


def origins(facts: Mapping[str, Any]) -> list[Provenance]:
    """Where facts and their parts come from."""
    parts = [
        part
        for value in facts.values()
        for part in (value.values() if isinstance(value, Mapping) else [value])
    ]
    return [each.provenance for each in parts if getattr(each, "provenance", None)]
