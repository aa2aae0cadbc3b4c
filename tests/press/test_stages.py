"""The table of stages fits together, and its driver remembers, collects and stops as it says."""

from __future__ import annotations

import inspect
from pathlib import Path
from time import sleep

import pytest

from press.build_memory import Memory
from press.driver import Driver, Product, Scope, Stage
from press.problems import BookError, stop
from press.stages import DOCUMENT, OUTPUTS

# What `build` gives.
GIVEN = "root files book left_out edition chapter execute in_project bibliography csl lang folder"
GIVEN += " formats timeout kernels typst_folder pdf_file packing"
EACH, ACROSS, ONCE = Scope


@pytest.mark.parametrize("form", OUTPUTS)
def test_each_stage_takes_what_is_given_or_made_above(form: str) -> None:
    available = set(GIVEN.split())
    for stage in [*DOCUMENT, *OUTPUTS[form]]:
        assert {*stage.takes.split(), *stage.beside.split()} <= available, stage.makes
        assert stage.makes not in available
        assert len(stage.takes.split()) == len(inspect.signature(stage.work).parameters)
        available.add(stage.makes)


def driver(tmp_path: Path, words: str, **more: object) -> Driver:
    chapters = [{"chapter": Product(word, word)} for word in words.split()]
    return Driver({}, chapters, Memory(tmp_path), **more)  # type: ignore[arg-type]


def test_what_is_kept_is_made_once_for_the_same(tmp_path: Path) -> None:
    made: list[str] = []

    def length(word: str) -> int:
        made.append(word)
        return len(word)

    stages = [
        Stage(EACH, "length", length, "chapter", kept=lambda _: True),
        Stage(ONCE, "sum", sum, "length"),
    ]
    for words, total, work in [
        ("one three", 8, ["one", "three"]),
        ("one three", 8, []),
        ("one seven", 8, ["seven"]),
    ]:
        made.clear()
        going = driver(tmp_path, words)
        going.drive(stages)
        assert going.book["sum"].value == total
        assert sorted(made) == work


def test_what_is_kept_counts_no_longer_than_it_holds(tmp_path: Path) -> None:
    made: list[str] = []
    for _ in range(2):
        driver(tmp_path, "one").drive(
            [Stage(EACH, "length", made.append, "chapter", lambda _: False)]
        )
    assert made == ["one", "one"]


@pytest.mark.parametrize("still", [True, False])
def test_what_changed_while_it_was_read_is_not_kept(still: bool, tmp_path: Path) -> None:
    made: list[str] = []
    stage = Stage(EACH, "length", made.append, "chapter", lambda _: True)
    for _ in range(2):
        going = driver(tmp_path, "one", still=lambda: still)
        going.book["files"] = Product(None, "files")
        going.drive([stage._replace(beside="files")])
    assert len(made) == (1 if still else 2)


def test_what_a_stage_does_not_count_is_no_reason_to_go_on(tmp_path: Path) -> None:
    made: list[str] = []

    def shout(word: str) -> str:
        made.append(word)
        return word.upper()

    stages = [
        Stage(EACH, "word", str, "chapter", counts=lambda word: word.strip("!")),
        Stage(EACH, "shout", shout, "word", kept=lambda _: True),
    ]
    driver(tmp_path, "one").drive(stages)
    driver(tmp_path, "one!").drive(stages)
    assert made == ["one"]


def test_the_problems_of_all_chapters_come_before_the_next_stage(tmp_path: Path) -> None:
    def refuse(word: str) -> None:
        if word != "good":
            stop("is bad.", word)

    after: list[object] = []
    stages = [
        Stage(EACH, "checked", refuse, "chapter"),
        Stage(ONCE, "sum", after.append, "checked"),
    ]
    with pytest.raises(BookError) as caught:
        driver(tmp_path, "one good two").drive(stages)
    assert [problem.file for problem in caught.value.problems] == ["one", "two"]
    assert not after


def test_what_nothing_says_the_digest_of_makes_nothing_kept(tmp_path: Path) -> None:
    going = driver(tmp_path, "one")
    going.book["book"] = Product("a book")
    with pytest.raises(AssertionError, match="length is kept, but made of what has no digest"):
        going.drive([Stage(EACH, "length", len, "book", kept=lambda _: True)])


def test_a_full_disk_in_one_lane_is_what_stops_the_build(tmp_path: Path) -> None:
    def full(_: str) -> None:
        raise OSError(28, "No space left on device")

    lanes = [
        [Stage(EACH, "slow", lambda _: sleep(0.05), "chapter") for _ in range(2)],
        [Stage(EACH, "full", full, "chapter")],
    ]
    with pytest.raises(OSError, match="No space left"):
        driver(tmp_path, "one two three four five six seven").drive_all(lanes)
