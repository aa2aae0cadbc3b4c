"""Comparisons in captions, alt texts and takeaways, and those of them that no claim holds.

A claim of `captions` or `takeaways` is asked of the numbers. What else compares, or quotes a value,
is listed in `comparisons.toml`, word by word in its order: a word that changes is named until
somebody has read it beside its figure, table or chapter, and lists it, or a claim holds it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.ledger.captions import CLAIMS, FIGURE_CLAIMS
from tools.ledger.statements import Statement
from tools.ledger.takeaways import TAKEAWAYS

FILE = Path(__file__).with_suffix(".toml")
WORDS = """
    above after all always apart around away bandwidths? before behind below beneath beside best
    better between beyond both bottom bound caches cheaper closer compute-bound constant dearer
    decode decrease(?:s|d)? deeper double[sd]? down drop(?:s|ped)? each earlier early either
    equal(?:ly)? every everything exactly exceed(?:s|ed)? expected extra fall(?:s|ing)? far
    farther farthest fast faster fastest fell few fewer fewest first flat flatten(?:s|ed)?
    follow(?:s|ed)? full(?:est)? furthest gain(?:s|ed)? greater greatest grew grow(?:s|n)? half
    halve[sd]? halving heavier high higher highest hundreds increase[sd]? inside large larger
    largest last late latencies latency later latest lead(?:s|ing)? least leave[sd]? left less
    level lie[sd]? light lighter little longer longest lose[sd]? low lower lowest many
    matter(?:s|ed)? measured memory-bound more most mostly much narrow narrower narrowest near
    nearer nearest nearly neither never no nobody none nothing older once only opposite outside
    over pays predicted prefill published raise[sd]? rarely reach(?:es|ed)? reverse right
    rise[sn]? rising rose same second seldom serving several shorter shortest shrink(?:s|ing)?
    slower slowest slow(?:s|ed)? small smaller smallest sooner soonest steeper steeply stronger
    tens thicker thinner third thousands throughput tighter top training twice under unless up
    upper weights wide wider without worse worst
"""
WORD = re.compile(
    rf"\{{\w+\.\w+\}}|(?<![\w-])(?:{'|'.join(WORDS.split())})(?![\w-])", re.IGNORECASE
)
REFERENCES = re.compile(r"\s?\[[^][]*@[^][]*\]|@[\w-]+|\]\([^)]*\)|`[^`]*`|\$[^$]*\$")


@cache
def unheld(statement: Statement) -> str:
    """Return its comparing words and quoted values, in order, without those that a claim holds."""
    rest = statement.words
    for words in claimed(statement):
        rest = rest.replace(words, "|")
    return " ".join(WORD.findall(REFERENCES.sub("", rest))).lower()


def claimed(statement: Statement) -> Iterator[str]:
    """Yield words that a claim holds of this figure, table or chapter."""
    if statement.kind == "takeaway":
        yield from (words for chapter, words, _ in TAKEAWAYS if chapter == statement.label)
    else:
        yield from (words for label, words, _ in CLAIMS if label == statement.label)
        yield from (words for figure, words, _ in FIGURE_CLAIMS if figure == statement.figure)


def by_place(said_there: list[Statement]) -> dict[str, list[Statement]]:
    """Return the statements by what they are of: "takeaway of roofline"."""
    grouped: dict[str, list[Statement]] = {}
    for statement in said_there:
        grouped.setdefault(f"{statement.kind} of {statement.label}", []).append(statement)
    return grouped


def uncompared(said_there: list[Statement]) -> Iterator[str]:
    """Yield each statement whose comparisons are neither held by a claim nor listed as they are."""
    listed = tomllib.loads(FILE.read_text(encoding="utf-8"))
    for name, those in by_place(said_there).items():
        read = listed.pop(name, [""] * len(those))
        words = [unheld(statement) for statement in those]
        if len(words) != len(read):
            yield f"{those[0].place}: {name} has {len(words)} texts, {FILE.name} {len(read)}."
            continue
        for statement, now, then in zip(those, words, read, strict=True):
            if now != then:
                yield (
                    f"{statement.place}: its {statement.kind} compares by “{now}”, of which"
                    f" {FILE.name} has “{then}”: write a claim, or list it once it is read."
                )
    for name in listed:
        yield f"tools/ledger/{FILE.name}:1: {name} is no text of the book."
