"""Loads that others metered, each asked as a person would ask: errors, and what intervals hold.

    python -m benchmarks.chat               the chats of ML.ENERGY that the data have
    python -m benchmarks.chat FILE.csv …    and those of files in its columns

`calc.plan` is told what the source says of a load: model, format, devices and how they cut it, the
version of vLLM, how many requests are served at once, and how long answers are. Of prompts nobody
says the length, and they have the tokens of other rows that say none. What is off is the measured
time of a token over the expected one, less one; the interval is the one that the plan prints.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import mean, median

import calc
from benchmarks.power import SOFTWARE, errors, read
from calc import published
from calc.core.formatting import columns
from calc.published import conditions
from calc.published.reading import Row
from calc.published.serving_rows import UNSTATED_PROMPT

TASK, OF = "lm-arena-chat", "mlenergy"
BATCHES = {16: "up to 16", 128: "up to 128", 512: "up to 512"}


@dataclass(frozen=True)
class Told:
    """A load, and what a plan says of it."""

    row: Row
    device: str
    mixture: bool
    batch: int
    factor: float
    """Measured over expected time."""
    width: float
    """The high end over the low one of what is expected."""
    inside: bool

    @property
    def classes(self) -> tuple[str, ...]:
        """The groups that it counts in."""
        kind = f"{self.device}, {'mixtures' if self.mixture else 'dense'}"
        size = next((name for most, name in BATCHES.items() if self.batch <= most), "more")
        model = str(self.row["model"]).rpartition("/")[2]
        return "all", kind, f"{kind}, {size} at once", f"{kind}, {model}"


def chats(paths: Iterable[str] = ()) -> Iterator[Row]:
    """The rows of chat that the data have, then those of files."""
    yield from (row for row in published.rows("serving") if row.id.startswith(OF))
    for path in paths:
        yield from (draw.row for draw in read(path))


def told(row: Row) -> Told | None:
    """A load as planned; None where nothing is expected of it."""
    model, machine, layout = conditions.model(row), conditions.machine(row), conditions.layout(row)
    answer, batch = (round(row.number(name) or 0) for name in ("output_len", "batch"))
    plan = calc.plan(
        model,
        machine,
        prompt=min(UNSTATED_PROMPT, answer),
        generated=answer,
        users=batch,
        devices=conditions.devices(row),
        tensor=layout.get("TP", 1),
        experts=layout["EP"] if layout.get("EP", 1) > 1 else None,
        weights=conditions.format_of(row["dtype_weights"]),
        software=SOFTWARE,
    )
    if plan.expected is None or (ends := plan.interval("throughput")) is None:
        return None
    rate = row.measured["output_tokens_per_s"]
    low, high = (end.m_as("token/s") for end in ends)
    factor = plan.expected.throughput.m_as("token/s") / rate
    device, mixture = machine.device.key, model.experts is not None
    return Told(row, device, mixture, batch, factor, high / low, low <= rate <= high)


def table(answers: Iterable[Told]) -> list[tuple[str, ...]]:
    """Errors, coverage and the median of widths, by class."""
    groups: dict[str, list[Told]] = {}
    for answer in answers:
        for name in answer.classes:
            groups.setdefault(name, []).append(answer)
    lines: list[tuple[str, ...]] = [
        ("", "loads", "signed", "median", "90th", "80 % of them hold", "width")
    ]
    for name, group in sorted(groups.items()):
        inside = mean(one.inside for one in group)
        width = median(one.width for one in group)
        factors = [one.factor for one in group]
        lines.append((name, *errors(factors), f"{inside:.0%}", f"{width:.2f}"))
    return lines


def main() -> None:
    rows = [row for row in chats(sys.argv[1:]) if row["task"] == TASK]
    answers = [*filter(None, map(told, rows))]
    print("\n".join(columns(table(answers))))
    print(f"{len(rows) - len(answers)} of {len(rows)} without an expectation")


if __name__ == "__main__":
    main()
