"""The log of a run and the two views of it; neither needs torch."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from calc import InputError, codesign
from calc.codesign import dashboard
from calc.codesign.run_log import LoggedStep
from calc.commands import main

STYLE = Path(__file__).resolve().parents[3] / "press" / "theme" / "style.css"


def step(number: int, seconds: float = 0.5, loss: float = 2.0, events: tuple[str, ...] = ()):
    return SimpleNamespace(
        number=number, loss=loss, seconds=seconds, samples=32, parts=2, events=events
    )


WORK = SimpleNamespace(flop=4_000_000_000, traffic=2_000_000_000, saved=1_500_000)


def logged(path: Path, steps: int = 4) -> Path:
    log = codesign.RunLog(path, "Digits <bf16>", "a machine", "40 GFLOP/s", "10 GB/s")
    for number in range(1, steps + 1):
        events = ("out of memory", "out of memory", "overflow") if number == 2 else ()
        log.record(step(number, 0.25 * number, 3.0 / number, events), WORK)
    return path


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = codesign.read_run(logged(tmp_path / "run.jsonl"))
    assert (run.title, run.device, str(run.peak)) == ("Digits <bf16>", "a machine", "40 GFLOP/s")
    assert run.steps[1] == LoggedStep(
        2, 1.5, 0.5, 32, 2, 4 * 10**9, 2 * 10**9, 1_500_000, ("out of memory",) * 2 + ("overflow",)
    )
    # By hand: 16 GFLOP and 8 GB in 2.5 s.
    assert run.seconds == pytest.approx(2.5)
    assert run.rate.m_as("GFLOP/s") == pytest.approx(6.4)
    assert run.mfu.m_as("%") == pytest.approx(16)
    assert run.traffic_rate.m_as("GB/s") == pytest.approx(3.2)
    assert run.intensity.m_as("FLOP/byte") == pytest.approx(2)
    assert run.events("out of memory") == [2, 2]


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    path = logged(tmp_path / "run.jsonl")
    whole = path.read_text()
    path.write_text(whole[:-20])
    assert len(codesign.read_run(path).steps) == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1: '' is no line of a log"),
        ("step 1\n", "line 1: 'step 1' is no line of a log"),
        ('{"kind": "other"}\n', "is no log of a run"),
        ("HEADER\n", "tells of no step"),
        ("HEADER\n[1]\n", r"line 2: '\[1\]' is no line of a log"),
        ('HEADER\n{"number": 1}\n', "line 2: .* is no step of a run"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = logged(tmp_path / "run.jsonl")
    path.write_text(text.replace("HEADER", path.read_text().splitlines()[0]))
    with pytest.raises(InputError, match=told):
        codesign.read_run(path)
    with pytest.raises(InputError, match="there is no log"):
        codesign.read_run(tmp_path / "other.jsonl")


def test_a_step_without_time_or_with_nan_is_refused(tmp_path: Path) -> None:
    for wrong in (step(1, seconds=0.0), step(1, loss=float("nan"))):
        log = codesign.RunLog(tmp_path / "run.jsonl", "t", "d", "1 GFLOP/s", "1 GB/s")
        log.record(wrong, WORK)
        with pytest.raises(InputError, match=r"line 2: .* is no step"):
            codesign.read_run(tmp_path / "run.jsonl")


def test_the_terminal_view(tmp_path: Path) -> None:
    run = codesign.read_run(logged(tmp_path / "run.jsonl"))
    assert codesign.dashboard_text(run, width=2) == [
        "Digits <bf16>, on a machine",
        "steps                       4 in 2.5 s",
        "loss, first and last        3, 0.75",
        "achieved                    6.4 GFLOP/s",
        "of the peak (MFU)           16% of 40 GFLOP/s",
        "moved                       3.2 GB/s",
        "intensity                   2 FLOP/byte: memory-bound,"
        " at most 20 GFLOP/s if nothing is cached",
        "kept for backward, at most  1.5 MB",
        "overflow                    1 times, in 1 steps",
        "out of memory               2 times, in 1 steps",
        "achieved                    █▃  4 GFLOP/s to 16 GFLOP/s",
        "memory                      ██  1.5 MB to 1.5 MB",
        "loss                        █▃  0.75 to 3",
    ]


def test_the_page_holds_all_that_it_shows(tmp_path: Path) -> None:
    run = codesign.read_run(logged(tmp_path / "run.jsonl"))
    codesign.write_dashboard(run, tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()
    assert "Digits &lt;bf16&gt;" in page
    assert "Digits <bf16>" not in page
    assert not re.search(r"https?:|src=|@import|url\(|<script|<link", page)
    drawings = [ElementTree.fromstring(each) for each in re.findall(r"<svg.*?</svg>", page)]
    assert len(drawings) == 4
    roof, *lines = drawings
    assert len(roof.findall("circle")) == 4
    for drawing in drawings:
        assert drawing.get("aria-label")
    for drawing in lines:
        (line,) = drawing.findall("polyline")
        assert len(line.get("points").split()) == 4
        titles = [each.text for each in drawing.iter("title")]
        assert titles == ["overflow in step 2", "out of memory in step 2"]


def test_marks_are_under_the_roof_that_was_measured(tmp_path: Path) -> None:
    """Each step's place by hand: intensity 2, and 16 GFLOP/s in the first."""
    run = codesign.read_run(logged(tmp_path / "run.jsonl", steps=1))
    page = codesign.dashboard_page(run)
    (x, y) = map(float, re.search(r'<circle cx="([\d.]+)" cy="([\d.]+)"', page).groups())
    corners = re.search(r'class="roof" points="([^"]*)"', page)[1].split()
    (x1, y1), (x2, y2), (_, y3) = (map(float, corner.split(",")) for corner in corners)
    assert y2 == y3 < y1
    assert x1 < x < x2  # the ridge is at 4 FLOP/byte
    on_slope = y2 + (x2 - x) * (y1 - y2) / (x2 - x1)
    assert y > on_slope  # 16 of 20 GFLOP/s


def test_one_step_and_constant_values_are_drawn(tmp_path: Path) -> None:
    log = codesign.RunLog(tmp_path / "run.jsonl", "t", "d", "1 GFLOP/s", "1 GB/s")
    log.record(step(1, loss=0.0), SimpleNamespace(flop=10**6, traffic=10**6, saved=0))
    run = codesign.read_run(tmp_path / "run.jsonl")
    assert "nan" not in codesign.dashboard_page(run).lower()
    assert codesign.dashboard_text(run)


def test_the_page_is_in_the_books_colours() -> None:
    book = STYLE.read_text(encoding="utf-8")
    for name, colour in re.findall(r"(--[a-z-]+): (light-dark\([^)]*\))", dashboard.STYLE):
        assert f"{name}: {colour};" in book


def test_the_command(tmp_path: Path, capsys) -> None:
    path = logged(tmp_path / "run.jsonl")
    assert main(["training", str(path), "--html", str(tmp_path / "run.html")]) == 0
    assert capsys.readouterr().out.startswith("Digits <bf16>, on a machine\n")
    assert (tmp_path / "run.html").read_text().startswith("<!doctype html>")
    assert main(["training", str(tmp_path / "no.jsonl")]) != 0
    assert capsys.readouterr().err.count("\n") == 1
    assert json.loads(path.read_text().splitlines()[1])["parts"] == 2
