"""Errors of calc on engines' memory, beside their logs: every row, and the rows that judge.

    python -m benchmarks.engine_memory

Errors are signed: below zero calc says too little. Of rows with a star the numbers of
calc/data/engines.toml are fitted to; models that read images too are marked "text", since calc
counts their text part alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from calc.core.formatting import columns
from calc.published.memory_rows import Logged, rows

MEASURED = ("weights", "step", "outside", "caches", "tokens", "sequences")


def errors(name: str, judged: Sequence[Logged]) -> list[float]:
    """The signed errors of all rows that have what is asked for."""
    return [row.error(name) for row in judged if name in row.measured]


def off(judged: Sequence[Logged]) -> list[float]:
    """Return the errors of the memory left for caches, in GiB, the smallest first."""
    with_caches = [row for row in judged if "caches" in row.measured]
    return sorted(abs(row.expected("caches") - row.measured["caches"]) for row in with_caches)


def table() -> list[tuple[str, ...]]:
    """A line for each row."""
    cells_by_row: list[tuple[str, ...]] = [("", *MEASURED)]
    for row in rows():
        mark = " *" if row.fitted else " text" if not row.judges else ""
        cells = (f"{row.error(name):+.1%}" if name in row.measured else "" for name in MEASURED)
        cells_by_row.append((row.id + mark, *cells))
    return cells_by_row


def classes() -> list[tuple[str, ...]]:
    """A line for each format: rows, median errors of weights and tokens, and those in the ±."""
    by_format: dict[str, list[Logged]] = {}
    for row in rows():
        if row.judges:
            asked = str(row.conditions.get("weights", row.predicted.start.weights))
            by_format.setdefault(asked, []).append(row)
    lines: list[tuple[str, ...]] = [("weights", "n", "of weights", "of tokens", "in the ±", "±")]
    for form, judged in sorted(by_format.items()):
        sizes_of = [
            [abs(error) for error in errors(name, judged)] for name in ("weights", "tokens")
        ]
        within = [row for row in judged if row.within is not None]
        inside = sum(bool(row.within) for row in within)
        widths = [row.predicted.tokens_off for row in within]
        lines.append(
            (
                form,
                str(len(judged)),
                *(f"{median(sizes):.1%}" if sizes else "" for sizes in sizes_of),
                f"{inside} of {len(within)}",
                f"{median(widths):.0%}" if widths else "",
            )
        )
    return lines


def main() -> None:
    """Print the table of errors, and the median and largest of those that judge."""
    print("\n".join(columns(table())))
    judging = [row for row in rows() if row.judges]
    print(f"\n{len(judging)} rows judge; of each, median of the size of errors, and the largest:")
    for name in MEASURED:
        if off_by := errors(name, judging):
            sizes = [abs(error) for error in off_by]
            print(f"{name}: {median(sizes):.2%}, {max(sizes):.2%}, n = {len(off_by)}")
    print("\n" + "\n".join(columns(classes())))
    nearest = off(judging)
    print(f"caches: nine in ten within {nearest[int(0.9 * len(nearest))]:.2f} GiB")


if __name__ == "__main__":
    main()
