"""The requests of a service with their times, prompts and answers, drawn or recorded.

Lengths are drawn from a gamma distribution, which two numbers settle, the mean and the spread: with
a spread of 0 all are alike, with 1 they are exponential, as in the closed forms of `queueing`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from calc.core.arguments import number, whole_number
from calc.core.arrays import Counts, Floats, numpy
from calc.core.errors import InputError, abbreviated, extra, marked
from calc.core.files import parse_json, read_bytes, read_text
from calc.published.reading import WORDS

WIDEST = 10
NARROWEST = 1e-3  # below it all lengths are alike
SMALLEST_BLOCK = 16  # tokens, of which names of blocks are multiples
LONGEST = 10**7  # tokens, beyond every context: a longer request is a slip of a file
Line: TypeAlias = tuple[str, Sequence[str], Sequence[object]]
"""A line of a file: its place, the titles of its cells, and these."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Requests in the order of their arrival: numpy arrays of one length."""

    arrivals: Floats
    """Seconds from the start."""
    prompts: Counts
    """Tokens that each reads."""
    answers: Counts
    """Tokens that each writes."""
    cached: Counts
    """Tokens of each prompt whose keys and values are there already: found, or sent by a pool."""
    blocks: tuple[tuple[int, ...], ...] | None = field(default=None, kw_only=True)
    """Names of the blocks of each prompt, and of the answer where known: alike if all before is."""
    block: int = field(default=512, kw_only=True)
    fetched: Floats | None = field(default=None, kw_only=True)
    """Seconds after its arrival at which what each found elsewhere has been brought."""

    def __len__(self) -> int:
        return len(self.arrivals)

    @property
    def rate(self) -> float:
        """Requests a second."""
        span = float(self.arrivals[-1] - self.arrivals[0])
        return (len(self) - 1) / span if span > 0 else float("inf")

    @property
    def lengths_differ(self) -> bool:
        """Return whether requests read or write more than others."""
        return bool(numpy.ptp(self.prompts) or numpy.ptp(self.answers))

    def at_rate(self, rate: float) -> Trace:
        """Return the requests with their times stretched or compressed to another rate."""
        return replace(self, arrivals=self.arrivals * (self.rate / rate))

    def with_hits(self, share: float) -> Trace:
        """Return the requests with this share of each prompt found in a prefix cache.

        The last token is read in any case: the first of the answer comes of it.
        """
        cached = numpy.minimum(numpy.floor(self.prompts * share), self.prompts - 1)
        return replace(self, cached=cached.astype(numpy.int64))

    def first(self, count: int) -> Trace:
        """Return the first of its requests."""
        return self.at(slice(count))

    def turns(self, count: int) -> list[Trace]:
        """Return what each of so many replicas gets, which take turns."""
        return [self.at(slice(first, None, count)) for first in range(count)]

    def at(self, chosen: slice | Sequence[int] | Counts) -> Trace:
        """Some of its requests, whose prefixes are looked up already."""
        tokens = (counts[chosen] for counts in (self.prompts, self.answers, self.cached))
        fetched = None if self.fetched is None else self.fetched[chosen]
        return Trace(self.arrivals[chosen], *tokens, fetched=fetched)


def poisson(
    rate: float,
    count: int,
    prompt: float,
    generated: float,
    prompt_spread: float = 0.0,
    generated_spread: float = 1.0,
    seed: int = 0,
) -> Trace:
    """Draw so many requests at random at this rate, a second, with lengths of these means.

    A spread is the standard deviation of lengths over their mean. The same seed draws the same
    requests at every rate, but for the time between them.

    >>> trace = poisson(2, 1000, 500, 100, seed=1)
    >>> len(trace), int(trace.prompts[0]), round(trace.rate, 1)
    (1000, 500, 2.0)
    """
    requests = whole_number("count", count, 2)
    random = numpy.random.default_rng(whole_number("seed", seed, 0))
    gaps = random.exponential(1 / number("rate", rate, above=0.0), requests)
    read = lengths(random, "prompt", prompt, prompt_spread, requests)
    written = lengths(random, "generated", generated, generated_spread, requests)
    return Trace(numpy.cumsum(gaps), read, written, numpy.zeros_like(read))


def lengths(
    random: numpy.random.Generator, name: str, mean: float, spread: float, count: int
) -> Counts:
    """Draw so many lengths in whole tokens, at least one, with this mean and spread."""
    middle, spread = number(name, mean, 1.0), number(f"{name}_spread", spread)
    if middle > LONGEST:
        raise InputError(
            f"{marked(name)} must be {LONGEST:,} tokens at most; got {abbreviated(mean)}"
        )
    if spread > WIDEST:
        raise InputError(
            f"{marked(f'{name}_spread')} must be from 0 to {WIDEST}; got {abbreviated(spread)}"
        )
    if spread < NARROWEST:
        return numpy.full(count, max(1, round(middle)), dtype=numpy.int64)
    shape = spread**-2
    drawn = random.gamma(shape, middle / shape, count)
    drawn *= middle / drawn.mean()  # a few thousand are too few to meet their mean by themselves
    return numpy.clip(numpy.round(drawn), 1, LONGEST).astype(numpy.int64)


def read_trace(path: Path | str) -> Trace:
    """The requests of a file: a line each, with its arrival, its prompt and its answer in tokens.

    CSV needs a line of titles: arrival, prompt, generated, or other usual names, those of the
    traces of Azure and of BurstGPT among them; an arrival is seconds, or a date with its time.
    Parquet needs polars. JSONL is read as Mooncake's traces: timestamp (in ms), input_length,
    output_length, and hash_ids of blocks.
    """
    blocks: list[tuple[int, ...]] = []
    if str(path).endswith(".parquet"):
        lines = _parquet(path)
    elif str(path).endswith(".jsonl"):
        lines = _jsonl(path, blocks)
    else:
        lines = _csv(path)
    rows = list(_checked(path, lines))
    if len(rows) < 2:
        raise InputError(f"{path}: a trace needs two requests or more; it has {len(rows)}")
    arrivals, prompts, answers = map(numpy.array, zip(*rows, strict=True))
    if arrivals[-1] == arrivals[0]:
        raise InputError(f"{path}: all requests of the trace arrive at once, which is no rate")
    trace = Trace(arrivals - arrivals[0], prompts, answers, numpy.zeros_like(prompts))
    if not blocks:
        return trace
    counts = numpy.array([max(1, len(names)) for names in blocks])
    size = math.ceil((prompts / counts).max() / SMALLEST_BLOCK) * SMALLEST_BLOCK
    if (odd := numpy.ceil(prompts / size) != counts).any():
        index = int(odd.argmax())
        raise InputError(
            f"{path}, line {index + 1}: {len(blocks[index])} hash_ids do not fit its"
            f" {prompts[index]} tokens in blocks of {size}, which other lines have"
        )
    return replace(trace, blocks=tuple(blocks), block=size)


def _jsonl(path: Path | str, blocks: list[tuple[int, ...]]) -> Iterator[Line]:
    """Lines of objects; what names their blocks is put beside them."""
    lines = read_text(path).removesuffix("\n").split("\n")
    for line_number, line in enumerate(lines, 1):
        document = parse_json(line, path, line=line_number)
        try:
            row = {name.lower(): value for name, value in document.items()}
            names = tuple(map(int, row.get("hash_ids", ())))
        except (ValueError, AttributeError, TypeError, OverflowError):
            raise InputError(f"{path}, line {line_number}: is no object of JSON") from None
        if bool(names) != bool(blocks) and line_number > 1:
            raise InputError(
                f"{path}, line {line_number}: hash_ids are in some lines and not in all"
            )
        blocks.extend([names] if names else [])
        if isinstance(time := row.get("timestamp"), int | float):
            row["timestamp"] = time / 1000
        yield f"line {line_number}", list(row), list(row.values())


def _csv(path: Path | str) -> Iterator[Line]:
    reader = csv.reader(io.StringIO(read_text(path)))
    try:
        titles = next(reader, [])
        for cells in filter(None, reader):
            yield f"line {reader.line_num}", titles, [*cells, *[""] * len(titles)]
        if reader.line_num < 2:
            _places(path, titles)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: is no CSV: {error}") from None


def _parquet(path: Path | str) -> Iterator[Line]:
    with extra("a trace in Parquet", "polars", "simulation"):
        import polars
    try:
        table = polars.read_parquet(io.BytesIO(read_bytes(path)))
    except (polars.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path}: cannot be read as Parquet: {abbreviated(str(error))}") from None
    yield from ((f"row {at}", table.columns, row) for at, row in enumerate(table.iter_rows(), 1))


def _places(path: Path | str, titles: Sequence[str]) -> list[int]:
    """Return where the three columns stand."""
    plain = [title.strip().lower() for title in titles]
    places = []
    for name, spellings in WORDS["traces"].items():
        column = next((plain.index(title) for title in spellings if title in plain), None)
        if column is None:
            raise InputError(
                f"{path}: a trace needs a column {name} (or {', '.join(spellings[1:])}); its"
                f" first line has {abbreviated(', '.join(titles))}"
            )
        places.append(column)
    return places


def _checked(path: Path | str, lines: Iterator[Line]) -> Iterator[tuple[float, int, int]]:
    """Yield what each line has in the three columns, as numbers."""
    last, header, places = -math.inf, None, []
    for line, titles, cells in lines:
        if titles is not header:
            header, places = titles, _places(path, titles)
        where, (arrival, prompt, generated) = (
            f"{path}, {line}",
            (cells[column] for column in places),
        )
        at = _seconds(where, arrival)
        if at < last:
            raise InputError(
                f"{where}: arrivals must be in the order of time; got {abbreviated(arrival)}, which"
                " is before that of the line above"
            )
        last = at
        yield at, _tokens(where, "prompt", prompt), _tokens(where, "generated", generated)


def _seconds(where: str, cell: Any) -> float:
    """A time in seconds, whatever it counts from."""
    try:
        if isinstance(cell, datetime):
            return cell.timestamp()
        if isinstance(cell, str) and cell.strip()[4:5] == "-":
            # Seven digits of a second, as some have, are more than Python reads.
            day, _, fraction = cell.strip().partition(".")
            return datetime.fromisoformat(day).timestamp() + float(f"0.{fraction or 0}")
        return number("arrival", float(cell), at_least=-float("inf"))
    except (TypeError, ValueError):
        raise InputError(
            f"{where}: arrival must be seconds, or a date with its time; got {abbreviated(cell)}",
            given=cell,
        ) from None


def _tokens(where: str, name: str, cell: Any) -> int:
    try:
        count = float(cell)
    except (TypeError, ValueError):
        count = 0.0
    if not (1 <= count <= LONGEST and count == int(count)):
        raise InputError(
            f"{where}: {name} must be a whole number of tokens from 1 to {LONGEST:,}; got"
            f" {abbreviated(cell)}"
        )
    return int(count)
