"""Notebooks' views of a quantity, a law, a device and a plan."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from calc import hardware, plan, quantity, roofline, source
from calc.core.records import DATA


class Table(HTMLParser):
    """The cells of a table, row by row, and its caption; every tag must be closed in its turn."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.caption, self.open = "", [""]
        self.feed(markup)
        assert self.open == [""], f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        else:
            self.caption += data


def test_a_device_is_a_table_with_sources() -> None:
    h100 = hardware.H100
    table = Table(h100._repr_html_())
    assert table.caption == "NVIDIA H100 SXM5 80 GB (2022)"
    rows = {name: (value, cited) for name, value, cited in table.rows[1:]}
    assert len(rows) == len(h100.all_records())
    assert rows["memory bandwidth"][0] == str(h100.memory_bandwidth)
    assert rows["dense peak, FP16"][0] == "989 TFLOP/s"
    assert rows["thermal design power"][1] in source(h100.tdp)


def test_every_device_is_a_table() -> None:
    measured = hardware.load(DATA / "measured" / "cpu.toml").values()
    for device in (*map(hardware.get, hardware.names()), *measured):
        assert len(Table(device._repr_html_()).rows) > 4


@pytest.mark.parametrize("batch", [8, [1, 8]])
def test_a_plan_is_its_table(batch: Any) -> None:
    made = plan("llama-3-8b", "h100", batch=batch, prompt=1000, generated=200)
    table = Table(made._repr_html_())
    printed = ["".join(line.split()) for line in made.explain().splitlines()]
    rows = ["".join("".join(row).split()) for row in table.rows]
    first = printed.index(rows[0])
    assert printed[first : first + len(rows)] == rows


def test_a_law_is_its_equation() -> None:
    shown = roofline.ridge_point._repr_html_()  # type: ignore[attr-defined]
    assert shown.startswith("<code>ridge_point(peak, bandwidth)</code><br>The intensity from")
    assert shown.endswith("I* = R_peak / BW")
    assert "min(1, BW · I / R_peak)" in roofline.utilization._repr_html_()  # type: ignore[attr-defined]


def test_a_quantity_tells_its_source_to_who_points_at_it() -> None:
    tdp = hardware.H100.tdp
    assert ">700 W<" in tdp._repr_html_()
    title = tdp._repr_html_().split('"')[1]
    assert source(tdp).startswith(title)
    assert quantity("3 GB")._repr_html_() == "3 GB"
    assert "title" not in (2 * tdp)._repr_html_()
