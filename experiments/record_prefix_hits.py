"""Replay traces of Mooncake's prompts through prefix caches, and store the hits.

    python -m experiments.record_prefix_hits conversation_trace.jsonl synthetic_trace.jsonl

Writes calc/data/measured/prefix_hits.csv, of the first trace by the size of one cache, and
prefix_hits_published.csv, of each trace beside what Mooncake's paper prints. The traces stand in
github.com/kvcache-ai/Mooncake, in FAST25-release/traces; each block is 512 tokens of a prompt.
"""

from __future__ import annotations

import sys
from pathlib import Path

from calc import caches
from calc.core.records import DATA
from calc.planning.service import read_trace
from calc.planning.service.prefixes import routed
from experiments.tables import write_rows

FOLDER = DATA / "measured"
SIZES = [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000]  # blocks; the last holds nearly all
LOCAL, ALL = 3_000_000, 1_000_000_000  # tokens: of one node, and of a cache without an end
PUBLISHED = {  # share found: of one cache (table 2, figure 9), of ten nodes' own caches (figure 10)
    "conversation": {
        ("table 2", ALL, 1): 0.40,
        ("figure 9", LOCAL, 1): 0.41 * 0.40,
        ("figure 10", LOCAL, 10): 0.375 / 2.22,
    },
    "synthetic": {
        ("table 2", ALL, 1): 0.66,
        ("figure 9", LOCAL, 1): 0.46 * 0.66,
        ("figure 10", LOCAL, 10): 0.623 / 2.36,
    },
}


def main(*paths: str) -> None:
    traces = {Path(path).stem.removesuffix("_trace"): read_trace(path) for path in paths}
    first = next(iter(traces.values()))
    assert first.blocks is not None
    size = first.block
    rates = ((size * blocks, caches.prefix_hit_rate(first.blocks, blocks)) for blocks in SIZES)
    lines = ((tokens, f"{share:.4f}", len(first)) for tokens, share in rates)
    write_rows(FOLDER / "prefix_hits.csv", ("tokens", "hit_rate", "requests"), lines)
    compared = []
    for name, trace in traces.items():
        for (printed_in, tokens, replicas), published in PUBLISHED[name].items():
            for routing in ("prefix", "turns") if replicas > 1 else ("prefix",):
                parts = routed(trace, replicas, (tokens // trace.block,), routing)
                hits = sum(int(mine.cached.sum()) for mine, _ in parts)
                share = f"{hits / trace.prompts.sum():.4f}"
                row = (name, len(trace), printed_in, tokens, replicas, routing, share)
                compared.append((*row, f"{published:.4f}"))
    titles = (*("trace", "requests", "place", "tokens"), "replicas", "routing", "hit_rate")
    write_rows(FOLDER / "prefix_hits_published.csv", (*titles, "published"), compared)


if __name__ == "__main__":
    main(*sys.argv[1:])
