"""What calc says of engines' memory, beside their logs: every row, and the rows that judge.

    python -m benchmarks.engine_memory

Errors are signed: below zero calc says too little. Of rows with a star the numbers of
calc/data/engines.toml are fitted to; models that read images too are marked "text", since calc
counts their text part alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from calc.core.formatting import columns
from calc.published.engine_memory import Logged, rows

MEASURED = ("weights", "step", "outside", "caches", "tokens", "sequences")


def errors(name: str, judged: Sequence[Logged]) -> list[float]:
    """The signed errors of all rows that have what is asked for."""
    return [row.error(name) for row in judged if name in row.measured]


def off(judged: Sequence[Logged]) -> list[float]:
    """How far what is left for caches is off, in GiB, the nearest first."""
    told = [row for row in judged if "caches" in row.measured]
    return sorted(abs(row.expected("caches") - row.measured["caches"]) for row in told)


def table() -> list[tuple[str, ...]]:
    """A line for each row."""
    found: list[tuple[str, ...]] = [("", *MEASURED)]
    for row in rows():
        mark = " *" if row.fitted else " text" if not row.judges else ""
        cells = (f"{row.error(name):+.1%}" if name in row.measured else "" for name in MEASURED)
        found.append((row.id + mark, *cells))
    return found


def main() -> None:
    """Print them."""
    print("\n".join(columns(table())))
    judging = [row for row in rows() if row.judges]
    print(f"\n{len(judging)} rows judge; of each, median of the size of errors, and the largest:")
    for name in MEASURED:
        if told := errors(name, judging):
            sizes = [abs(error) for error in told]
            print(f"{name}: {median(sizes):.2%}, {max(sizes):.2%}, n = {len(told)}")
    nearest = off(judging)
    print(f"caches: nine in ten within {nearest[int(0.9 * len(nearest))]:.2f} GiB")


if __name__ == "__main__":
    main()
