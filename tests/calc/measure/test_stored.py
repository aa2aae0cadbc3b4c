"""What was measured changes when it is measured again, and never by hand."""

from __future__ import annotations

import hashlib

import pytest

from calc.core.records import DATA
from tests.book.rendered import REPOSITORY

MEASURED = DATA / "measured"
DIGESTS = dict(
    reversed(line.split())
    for line in (REPOSITORY / "tests" / "measured.sha256").read_text("utf-8").splitlines()
)


def test_every_file_of_measurements_has_a_digest() -> None:
    assert {path.name for path in MEASURED.iterdir()} == DIGESTS.keys()


@pytest.mark.parametrize("name", DIGESTS)
def test_measurements_are_as_they_were_stored(name: str) -> None:
    found = hashlib.sha256((MEASURED / name).read_bytes()).hexdigest()
    again = "(cd calc/data/measured && sha256sum *) > tests/measured.sha256"
    assert found == DIGESTS[name], f"if {name} was measured again: {again}"
