"""`python -m benchmarks.mutations` changes what it says, and looks where it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import mutations
from tools.ledger import chapter_tables

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds


@pytest.mark.slow
def test_one_place_changes(tmp_path: Path) -> None:
    kinds = mutations.faults()
    assert all(kinds.values())
    for mutant in mutations.chosen(kinds, 5 * len(kinds), seed=1):
        path = tmp_path / mutant.file
        path.parent.mkdir(parents=True, exist_ok=True)
        before = (mutations.REPOSITORY / mutant.file).read_text(encoding="utf-8").split("\n")
        path.write_text("\n".join(before), encoding="utf-8")
        mutant.apply(tmp_path)
        after = path.read_text(encoding="utf-8").split("\n")
        changed = [
            n for n, lines in enumerate(zip(before, after, strict=True), 1) if len({*lines}) > 1
        ]
        assert changed == [mutant.line]
        assert mutant.old in before[mutant.line - 1]
        assert mutant.new in after[mutant.line - 1]
        if mutant.file.endswith(".py"):
            compile("\n".join(after), mutant.file, "exec")


@pytest.mark.slow
def test_a_test_that_fails_anyway_notices_nothing(tmp_path: Path) -> None:
    failing = tmp_path / "tests" / "calc" / "test_constants.py"
    failing.parent.mkdir(parents=True)
    failing.write_text("def test() -> None:\n    raise AssertionError\n", encoding="utf-8")
    fault = mutations.faults()["data/constants"][0]
    with pytest.raises(SystemExit, match="tests fail as things stand: test_"):
        list(mutations.survivors([fault], tmp_path, quick=True))


def test_a_fault_that_lets_no_test_begin_is_noticed(tmp_path: Path) -> None:
    """A `conftest.py` that cannot be imported has pytest say no more than of a wrong command."""
    tests = tmp_path / "tests" / "calc"
    tests.mkdir(parents=True)
    (tests / "conftest.py").write_text("SHARED = 1 / 1\n", encoding="utf-8")
    (tests / "test_it.py").write_text("def test() -> None:\n    pass\n", encoding="utf-8")
    fault = mutations.Mutant("tests/calc/conftest.py", 1, len("SHARED = 1 / "), "1", "0")
    assert mutations.telling(fault, tmp_path, ["test_it.py"], set()) == "pytest itself"
    harmless = mutations.Mutant("tests/calc/conftest.py", 1, len("SHARED = 1 / "), "1", "2")
    assert mutations.telling(harmless, tmp_path, ["test_it.py"], set()) == ""


def test_as_things_stand_every_table_has_its_row() -> None:
    rows = mutations.published()
    assert rows.keys() == chapter_tables.shown_in().keys()
    assert all(rows.values())
