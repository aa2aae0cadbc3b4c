"""Data files: what a record must have, what each mistake in one is told, and whether ours hold."""

from __future__ import annotations

import datetime
import math
import re
from pathlib import Path

import pytest

import calc
from calc import InputError, constants, hardware, quantity
from calc.core.citations import bibliography, citation
from calc.core.records import DATA, KINDS, Record, read_toml
from tests.calc.command import Written
from tests.rows import each_row

GOOD = """
[latency_of_a_test]
title = "Latency of a test"
value = 3
unit = "ms"
kind = "measured"
source = "williams2009roofline"
checked = 2024-05-06
"""


def test_a_good_record(written: Written) -> None:
    record = constants.load(written(GOOD))["latency_of_a_test"]
    assert record.quantity == quantity("3 ms")
    assert record.provenance.checked == datetime.date(2024, 5, 6)
    assert calc.source(record.quantity) == (
        "Latency of a test: measured, " + citation("williams2009roofline") + ". Checked 2024-05-06."
    )


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        (
            "value = 3",
            "value = 3\nvalue = 4",
            "is not valid TOML: Cannot overwrite a value (at line 5",
        ),
        (
            'unit = "ms"',
            'unit = "furlong"',
            "test: cannot read 'furlong': furlong is not a unit here; known are bit, byte, ",
        ),
        ('unit = "ms"', 'unit = "3 ms"', "a unit is needed where '3' stands"),
        ('unit = "ms"\n', "", 'latency_of_a_test has no unit; it must be text such as "TB/s"'),
        ("value = 3\n", "", "latency_of_a_test has no value; it must be a number"),
        ('source = "williams2009roofline"\n', "", "test has no source; it must be a key of"),
        ('kind = "measured"\n', "", "latency_of_a_test has no kind; it must be one of defi"),
        ("checked = 2024-05-06\n", "", "test has no checked; it must be the day on which"),
        ("value = 3", 'value = "3"', "value must be a number; got '3'"),
        ("value = 3", "value = true", "value must be a number; got True"),
        ("value = 3", "value = [3]", "value must be a number; got [3]"),
        ("value = 3", "value = nan", "must be a finite number; got nan"),
        ("value = 3", "value = -inf", "must be a finite number; got -inf"),
        ("value = 3", "value = 1" + "0" * 400, "too large"),
        ("value = 3", "value = 1e-400", "1e-400 is too small for a floating-point number"),
        ("checked = 2024-05-06", 'checked = "yesterday"', "without quotes; got 'yesterday'"),
        ("value = 3", "value = 3\nyear = 2024.5", "a whole number; got 2024.5"),
        ('kind = "measured"', 'kind = "rumour"', "kind must be one of definition, datasheet"),
        ('kind = "measured"', 'kind = "unpublished"', "no value"),
        ("value = 3", "value = 3\nnotes = 'so'", "has an unknown field notes; known are title,"),
        ("[latency_of_a_test]", "[latency_of_a_test", "is not valid TOML"),
        ("value = 3", f"value = {'[' * 100_000}", "is nested too deeply"),
        (GOOD, "latency = 3", "latency must be a table"),
    ],
)
def test_a_mistake_is_named(written: Written, right: str, wrong: str, sentence: str) -> None:
    assert right in GOOD
    with pytest.raises(InputError) as refusal:
        constants.load(written(GOOD.replace(right, wrong)))
    assert sentence in str(refusal.value)
    assert "made_up.toml: " in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        constants.load(tmp_path / "missing.toml")
    with pytest.raises(InputError, match="cannot be read"):
        constants.load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(InputError, match="not UTF-8"):
        constants.load(tmp_path / "latin.toml")


def test_an_unpublished_value_raises_its_note(written: Written) -> None:
    text = GOOD.replace("value = 3", 'note = "Nobody was told (asked 2024)."')
    text = text.replace("measured", "unpublished")
    record = constants.load(written(text))["latency_of_a_test"]
    assert record.published is None
    with pytest.raises(InputError, match=r"is unpublished: Nobody was told \(asked 2024\)\."):
        record.quantity  # noqa: B018


def test_what_is_done_to_a_published_value_does_not_reach_the_data() -> None:
    record = hardware.H100.records["tdp"]
    before = str(hardware.H100.tdp)
    assert record.published is not None
    record.published.ito("kW")
    record.quantity.ito("kW")
    assert str(hardware.H100.tdp) == str(record.published) == before


@pytest.mark.parametrize("number", ["1e-400", "0.1e-330", "1_0e-4_00"])
def test_a_number_that_would_become_zero_is_refused(written: Written, number: str) -> None:
    with pytest.raises(InputError, match=rf"made_up.toml: {number} is too small"):
        constants.load(written(GOOD.replace("value = 3", f"value = {number}")))
    zero = constants.load(written(GOOD.replace("value = 3", "value = 0e-400")))["latency_of_a_test"]
    assert zero.quantity.magnitude == 0


def test_source_of_what_has_none() -> None:
    with pytest.raises(InputError, match="was computed"):
        calc.source(2 * constants.get("energy_dram_word"))
    with pytest.raises(InputError, match="needs a quantity of calc"):
        calc.source(3)


def test_citations() -> None:
    assert citation("williams2009roofline").startswith("Williams, Waterman and Patterson (2009), ")
    with pytest.raises(InputError, match="no entry nobody1999nothing"):
        citation("nobody1999nothing")


def test_a_source_that_is_not_there_is_told_with_who_names_it(written: Written) -> None:
    text = GOOD.replace("williams2009roofline", "nobody1999nothing")
    record = constants.load(written(text))["latency_of_a_test"]
    with pytest.raises(InputError, match=r"^latency_of_a_test names .*no entry nobody1999nothing"):
        calc.source(record.quantity)


# --- our own data ---


def every_record() -> list[Record]:
    devices = [hardware.get(key) for key in (*hardware.names(), *hardware.announced())]
    return [
        *constants.load(DATA / "constants.toml").values(),
        *(record for device in devices for record in device.all_records()),
    ]


def test_our_records_hold() -> None:
    with each_row() as row:
        for record in every_record():
            with row(record.provenance.key):
                assert_holds(record)


def assert_holds(record: Record) -> None:
    provenance = record.provenance
    assert provenance.kind in KINDS
    listed = provenance.source in bibliography()
    assert listed, f"{provenance.key}: references.bib has no entry {provenance.source}"
    assert datetime.date(2024, 1, 1) < provenance.checked
    assert provenance.title
    if provenance.kind == "unpublished":
        assert record.published is None
        assert re.search(r"\b20\d\d\b", provenance.note), "says when it was looked for"
    else:
        assert math.isfinite(record.quantity.magnitude)
        assert citation(provenance.source) in calc.source(record.quantity)
    if provenance.kind == "estimate":
        assert provenance.note, "an estimate says how it was made"


def test_every_data_file_names_only_sources_that_exist() -> None:
    def sources(table: object) -> set[str]:
        if not isinstance(table, dict):
            return set()
        named = {table["source"]} if isinstance(table.get("source"), str) else set()
        return named.union(*(sources(each) for each in table.values()))

    for path in DATA.glob("*.toml"):
        missing = sorted(sources(read_toml(path)) - set(bibliography()))
        assert not missing, f"{path.name}: references.bib has no entry {', '.join(missing)}"
