"""Replay a trace of Mooncake's prompts through a prefix cache of several sizes, and store the hits.

    python -m experiments.record_prefix_hits conversation_trace.jsonl

Writes calc/data/measured/prefix_hits.csv. The trace stands in github.com/kvcache-ai/Mooncake, in
FAST25-release/traces; each of its blocks is 512 tokens of a prompt with all before them.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from calc import serving
from calc.core.records import DATA

FILE = DATA / "measured" / "prefix_hits.csv"
TOKENS = 512  # of a block
SIZES = [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000]  # blocks; the last holds nearly all


def main(trace: str) -> None:
    lines = Path(trace).read_text().splitlines()
    requests = [json.loads(line)["hash_ids"] for line in lines]
    with FILE.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("tokens", "hit_rate", "requests"))
        for blocks in SIZES:
            share = serving.prefix_hit_rate(requests, blocks)
            rows.writerow((blocks * TOKENS, f"{share:.4f}", len(requests)))


if __name__ == "__main__":
    main(*sys.argv[1:])
