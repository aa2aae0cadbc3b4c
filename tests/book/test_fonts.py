"""Instances of the variable font have the plain names by which programs look them up."""

from __future__ import annotations

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.ttLib import TTFont

from figures.fonts import make_fonts

FONTS = make_fonts.HERE
TYPOGRAPHIC = {16, 17, 21, 22, 25}  # of families with more than four styles
PLAIN = {1: "Inter", 2: "Bold Italic", 3: "Inter Bold Italic", 4: "Inter Bold Italic"}


def names(font: TTFont) -> dict[int, str]:
    return {record.nameID: record.toUnicode() for record in font["name"].names}


def test_an_instance_is_named_by_its_family_and_style_alone() -> None:
    builder = FontBuilder(unitsPerEm=1000)
    builder.setupGlyphOrder([".notdef"])
    builder.setupNameTable({"familyName": "Inter Variable", "version": "4.1"}, mac=True)
    for stale in TYPOGRAPHIC:
        builder.font["name"].setName("Inter Variable", stale, 3, 1, 0x409)
    make_fonts.name_as(builder.font, "Bold Italic")
    assert names(builder.font) == PLAIN | {5: "4.1", 6: "Inter-BoldItalic"}
    assert {record.platformID for record in builder.font["name"].names} == {3}


@pytest.mark.parametrize("style", ["Regular", "Bold", "Italic", "BoldItalic"])
def test_the_stored_instances_are_named_so(style: str) -> None:
    with TTFont(FONTS / f"Inter-{style}.ttf") as font:
        entries = names(font)
        assert "fvar" not in font
    assert entries[1] == "Inter"
    assert entries[6] == f"Inter-{style}"
    assert entries[2].replace(" ", "") == style
    assert not entries.keys() & TYPOGRAPHIC
