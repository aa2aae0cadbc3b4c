"""Digests of measurements, ours or others', which change when measured again and by no slip."""

from __future__ import annotations

import hashlib

import pytest

from calc.catalog import acceptance
from calc.core.records import DATA
from tests.book.rendered import REPOSITORY

FOLDERS = ("measured", "computed", "published")
DIGESTS = dict(
    reversed(line.split())
    for line in (REPOSITORY / "tests" / "recorded.sha256").read_text("utf-8").splitlines()
)


def test_every_file_of_measurements_has_a_digest() -> None:
    files = [path for folder in FOLDERS for path in (DATA / folder).iterdir()]
    there = {f"{path.parent.name}/{path.name}" for path in files if path.suffix != ".md"}
    assert there | {acceptance.FILE.name} == DIGESTS.keys()


@pytest.mark.parametrize("name", DIGESTS)
def test_measurements_are_as_they_were_stored(name: str) -> None:
    digest = hashlib.sha256((DATA / name).read_bytes()).hexdigest()
    again = "(cd calc/data && sha256sum acceptance.csv measured/* computed/* published/*.[ct]*)"
    assert digest == DIGESTS[name], (
        f"if {name} was recorded or read again: {again} > tests/recorded.sha256"
    )
