"""Output of commands, and the files that they write: text, JSON, CSV and drawings."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from calc.commands.options import option_of
from calc.core.errors import InputError
from calc.core.files import writable, write_text
from calc.core.report import Reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED = "-"


class Drawn(Protocol):
    """Answer that has a figure of its own."""

    def draw(self) -> Figure:
        """The figure."""


def answers(
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], Reported],
    table: bool = False,
    drawn: str = "",
    explained: bool = False,
) -> None:
    """The command runs this, and takes `--json`, `--csv` for its `rows`, `--draw` for a figure.

    One that is `explained` prints a short answer, and all of it with `--explain`.
    """
    parser.add_argument("--json", action="store_true", help="print JSON")
    if explained:
        parser.add_argument(
            "--explain",
            action="store_true",
            help="print every table in full, what is assumed, why no other answer, what would"
            " change this one",
        )
    if table:
        parser.add_argument(
            "--csv",
            nargs="?",
            const=PRINTED,
            metavar="FILE",
            help="print the rows as CSV, or write them to a .csv file",
        )
    if drawn:
        parser.add_argument(
            "--draw", metavar="FILE", help=f"draw {drawn} into an .svg or a .png file"
        )
    parser.set_defaults(run=run)


def check_drawing(options: argparse.Namespace) -> None:
    """Refuse a drawing that cannot be made or written before there is anything to draw."""
    if (file := getattr(options, "draw", None)) is not None:
        from calc.planning import drawing

        drawing.checked_drawing(file)
        drawing.loaded_matplotlib()


WRITTEN = {"csv": ".csv", "parquet": ".parquet", "contribute": ".toml"} | dict.fromkeys(
    ("html", "draw", "write_config"), ""
)
"""The options that name files to write, and how such a name must end; `draw` checks that itself."""


def check_files(options: argparse.Namespace) -> None:
    """Refuse files that cannot be written, or that the command takes for something else too,
    before there is anything to write."""
    values = vars(options)
    if values.get("csv") == PRINTED and options.json:
        raise InputError("--csv and --json cannot both be printed: give --csv a file, or leave one")
    check_drawing(options)
    for name, ending in WRITTEN.items():
        file = values.get(name)
        if file in (None, PRINTED):
            continue
        if writable(file).suffix != ending and ending:
            raise InputError(f"{option_of(name)} needs a name that ends in {ending}; got {file!r}")
        for other, value in values.items():
            texts = [value, *value.split(",")] if isinstance(value, str) else []
            if other != name and any(_same_file(file, text.strip()) for text in texts):
                raise InputError(
                    f"{option_of(name)} would overwrite {file}, which is given as {other} too:"
                    " give another file"
                )


def _same_file(file: str, other: str) -> bool:
    """Return whether both names, or links, are of one file, which need not be there yet."""
    here, there = Path(file), Path(other)
    try:
        return here.resolve() == there.resolve() or here.samefile(there)
    except (OSError, ValueError):  # as of a name that no file has
        return False


def write(report: Reported, options: argparse.Namespace) -> list[str]:
    """The lines to print, in the form that was asked for; files of rows and figures are written."""
    if getattr(options, "draw", None) is not None:
        from calc.planning.drawing import write_drawing

        write_drawing(cast(Drawn, report).draw(), options.draw)
    file = getattr(options, "csv", None)
    if file is not None:
        rows = report.csv()
        if file == PRINTED:
            return rows.splitlines()
        write_text(Path(file), rows)
    if options.json:
        return report.json().split("\n")
    return (report.explain() if getattr(options, "explain", False) else report.text()).split("\n")
