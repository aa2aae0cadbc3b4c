"""The pages of sources: nothing of the data files is left out of them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.book.counts import stored
from tests.book.rendered import REPOSITORY

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds


def test_every_group_is_on_a_page() -> None:
    from calc.derivations.sources import ConstantSources

    page = (REPOSITORY / "backmatter/sources.qmd").read_text(encoding="utf-8")
    assert re.findall(r"ConstantSources\.rows\[\"(.*?)\"\]", page) == list(ConstantSources.rows)


def test_every_value_is_in_a_row() -> None:
    from calc.derivations.sources import ComparisonSources, ConstantSources, RunSources

    constants = [row for rows in ConstantSources.rows.values() for row in rows]
    assert len(constants) == len(ConstantSources.records)
    rows = [*RunSources.rows, *ComparisonSources.rows]
    joined = " ".join(text for text, _ in rows)
    origins = {origin for _, origin in rows}
    for run in RunSources.runs:
        assert f"[**{run.name}** ({run.year}), on {run.device}.]{{#{run.key}}}" in joined
    for comparison in ComparisonSources.comparisons:
        assert f"]{{#{comparison.key}}}" in joined
    for record in (*RunSources.records, *ComparisonSources.records):
        provenance = record.provenance
        cited = f"{provenance.kind} [@{provenance.source}]"
        assert (provenance.kind if record.published is None else cited) in origins


def test_constants_of_each_kind_are_counted_again() -> None:
    from calc.derivations.sources import KindsOfSource

    again = Counter(table["kind"] for table in stored("constants.toml").values())
    counts = {kind: constants for kind, _, constants, *_ in KindsOfSource.rows}
    assert counts == {kind: again[kind] for kind in counts}
    assert again.keys() <= counts.keys()
