"""The log of a run and the two views of it; neither needs torch."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy
import pytest

from calc import InputError, codesign, quantity
from calc.codesign import dashboard
from calc.codesign.run_log import LoggedStep
from calc.commands import main
from tests.calc.command import Command

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
    ("text", "sentence"),
    [
        ("", "line 1: '' is no line of a log"),
        ("step 1\n", "line 1: 'step 1' is no line of a log"),
        ('{"kind": "other"}\n', "is no log of a run"),
        ("HEADER\n", "tells of no step"),
        ("HEADER\n[1]\n", r"line 2: '\[1\]' is no line of a log"),
        ('HEADER\n{"number": 1}\n', "line 2: .* is no step of a run"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = logged(tmp_path / "run.jsonl")
    path.write_text(text.replace("HEADER", path.read_text().splitlines()[0]))
    with pytest.raises(InputError, match=sentence):
        codesign.read_run(path)
    with pytest.raises(InputError, match="there is no such file"):
        codesign.read_run(tmp_path / "other.jsonl")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seconds": 0.0}, "seconds must be a number from 1e-09; got 0.0"),
        ({"loss": math.nan}, "loss must be a number from -1e\\+300; got nan"),
        ({"events": ("\ud800",)}, "an event must be text"),
        ({"number": 1.5}, "number must be a whole number from 0; got 1.5"),
    ],
)
def test_what_would_not_be_read_is_not_written(
    tmp_path: Path, change: dict[str, object], sentence: str
) -> None:
    log = codesign.RunLog(tmp_path / "run.jsonl", "t", "d", "1 GFLOP/s", "1 GB/s")
    log.record(step(1), WORK)
    before = log.path.read_bytes()
    with pytest.raises(InputError, match=sentence):
        log.record(SimpleNamespace(**{**vars(step(2)), **change}), WORK)
    assert log.path.read_bytes() == before
    for wrong in (
        {"title": "\ud800"},
        {"device": 3},
        {"peak": "0 FLOP/s"},
        {"bandwidth": "1e-9 B/s"},
    ):
        about = {"title": "t", "device": "d", "peak": "1 GFLOP/s", "bandwidth": "1 GB/s"}
        with pytest.raises(InputError):
            codesign.RunLog(tmp_path / "other.jsonl", **{**about, **wrong})
        assert not (tmp_path / "other.jsonl").exists()


def test_every_title_is_read_as_it_was_written(tmp_path: Path) -> None:
    title = "a\u2028b\x85c\x0cd\ne\r\x1c"
    log = codesign.RunLog(tmp_path / "run.jsonl", title, "d", "1 GFLOP/s", "1 GB/s")
    log.record(step(1, events=("\u2029",)), WORK)
    run = codesign.read_run(log.path)
    assert (run.title, run.steps[0].events) == (title, ("\u2029",))


def test_counts_of_numpy_are_numbers(tmp_path: Path) -> None:
    log = codesign.RunLog(tmp_path / "run.jsonl", "t", "d", "1 GFLOP/s", "1 GB/s")
    work = SimpleNamespace(flop=numpy.int64(7), traffic=numpy.uint8(9), saved=numpy.int32(0))
    log.record(step(numpy.int64(1), numpy.float32(0.5), numpy.float64(2.0)), work)
    assert codesign.read_run(log.path).steps[0].flop == 7


def test_a_log_is_never_written_over(tmp_path: Path) -> None:
    path = logged(tmp_path / "run.jsonl")
    before = path.read_bytes()
    with pytest.raises(InputError, match="is there already, and no log is written over"):
        codesign.RunLog(path, "t", "d", "1 GFLOP/s", "1 GB/s")
    assert path.read_bytes() == before


HEADER = {
    "kind": "calc.codesign run, version 1",
    "title": "t",
    "device": "d",
    "peak_flop_per_second": 1e9,
    "bandwidth_byte_per_second": 1e9,
}
STEP = {
    "number": 1,
    "loss": 2.0,
    "seconds": 0.5,
    "samples": 32,
    "parts": 1,
    "flop": 10**9,
    "traffic": 10**9,
    "memory": 0,
    "events": [],
}


def without(row: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in row.items() if key != name}


def malformed() -> Iterator[tuple[str, bytes]]:
    """Logs with something wrong in them, by what that is."""
    whole, line = (json.dumps(each).encode() + b"\n" for each in (HEADER, STEP))
    wrong: list[object] = [None, True, "1", [], {}, -1, math.nan, math.inf, 1.5, 10**400]
    for name in STEP:
        yield f"a step without {name}", whole + json.dumps(without(STEP, name)).encode() + b"\n"
        for value in wrong:
            if (name, value) not in (("loss", -1), ("loss", 1.5), ("seconds", 1.5), ("events", [])):
                text = json.dumps(STEP | {name: value})
                yield f"{name} is {str(value)[:5]}", whole + text.encode() + b"\n"
    for name in HEADER:
        yield f"no {name}", json.dumps(without(HEADER, name)).encode() + b"\n" + line
        for value in (None, True, [], 0, -1.0, math.nan, 10**400, 1e-320):
            text = json.dumps(HEADER | {name: value})
            yield f"{name} is {str(value)[:5]}", text.encode() + b"\n" + line
    idle = [json.dumps(STEP | {name: 0}).encode() + b"\n" for name in ("flop", "traffic")]
    yield "no step with work", whole + b"".join(idle)
    yield "no step", whole
    yield "nothing", b""
    yield "no line end", whole[:-1]
    yield "no text", b"\xff\xfe\x00"
    yield "an empty line", whole + b"\n" + line
    yield "deep", whole + b"[" * 100_000 + b"\n"
    yield "a long number", whole + b"9" * 10_000 + b"\n"
    yield "an unknown name", whole + json.dumps(STEP | {"x": 1}).encode() + b"\n"
    yield "a list of events in a list", whole + line.replace(b"[]", b'[["x"]]')
    yield "half a pair", whole + line.replace(b"[]", b'["\\ud800"]')
    yield "the first line twice", whole + whole + line


def test_a_malformed_log_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "run.jsonl", tmp_path / "run.html"
    table = dict(malformed())
    assert len(table) > 100
    for what, text in table.items():
        path.write_bytes(text)
        if what == "a step without events":  # which says that nothing happened
            continue
        assert main(["training", str(path), "--html", str(page)]) == 1, what
        printed = capsys.readouterr()
        assert printed.out == "", what
        assert re.fullmatch("calc: [^\n]{10,400}\n", printed.err), what
        assert not page.exists(), what


@pytest.mark.parametrize("loss", [-1e300, -3.0, 0.0, 1e-320, 1e300])
def test_every_loss_is_drawn(tmp_path: Path, loss: float) -> None:
    log = codesign.RunLog(tmp_path / "run.jsonl", "t", "d", "1 GFLOP/s", "1 GB/s")
    log.record(step(1, 1e-9, loss), SimpleNamespace(flop=2**62 - 1, traffic=1, saved=0))
    log.record(step(10**18, 1e9, 1.0), SimpleNamespace(flop=1, traffic=2**62 - 1, saved=2**62 - 1))
    run = codesign.read_run(log.path)
    assert "nan" not in codesign.dashboard_page(run).lower()
    assert codesign.dashboard_text(run)


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


def scale(marks: list[tuple[float, float]]) -> Callable[[float], float]:
    """Return what stands at a place of an axis, from its first and its last mark."""
    (here, low), (there, high) = marks[0], marks[-1]
    assert all(
        value == pytest.approx(low + (mark - here) / (there - here) * (high - low), abs=0.02 * high)
        for mark, value in marks
    )
    return lambda mark: low + (mark - here) / (there - here) * (high - low)


def points_of(drawing: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = (point.split(",") for point in drawing.find("polyline").get("points").split())
    return [(float(x), float(y)) for x, y in pairs]


def test_drawings_are_read_back_by_the_marks_of_their_axes(tmp_path: Path) -> None:
    """Places to values by the labels alone, which stand outside the frame and apart from others."""
    run = codesign.read_run(logged(tmp_path / "run.jsonl", steps=7))
    page = codesign.dashboard_page(run)
    roof, *lines = (ElementTree.fromstring(each) for each in re.findall(r"<svg.*?</svg>", page))
    expected = [run.rates, [float(each.memory) for each in run.steps], [s.loss for s in run.steps]]
    units = ("FLOP/s", "FLOP/s", "byte", "")
    for drawing, values, unit in zip([roof, *lines], [None, *expected], units, strict=True):
        _, _, width, height = map(float, drawing.get("viewBox").split())
        frame = drawing.find("path[@class='axis']").get("d")
        left, bottom, right = map(float, re.findall(r"[\d.]+", frame))
        texts = [
            (float(each.get("x")), float(each.get("y")), each.get("text-anchor"), each.text)
            for each in drawing.findall("text")
        ]
        grid = [
            float(re.findall(r"[\d.]+", each.get("d"))[1])
            for each in drawing.findall("path[@class='grid']")
        ]
        beside = [each for each in texts if each[0] < left]
        below = sorted(each for each in texts if each[0] >= left and bottom < each[1] < height - 10)
        assert all(0 < x < width and 10 <= y <= height - 6 for x, y, _, _ in texts)
        assert [x for x, _, _, _ in texts].count((left + right) / 2) == 1
        assert {anchor for _, _, anchor, _ in beside} == {"end"}
        assert [y - at for at, (_, y, _, _) in zip(grid, beside, strict=True)] == [
            pytest.approx(4, abs=0.11)
        ] * len(grid)
        assert all(10 < y - bottom < 20 for _, y, _, _ in below)
        assert len({(round(x / 20), round(y / 6)) for x, y, _, _ in texts}) == len(texts)
        assert all(0 < y <= bottom for _, y in points_of(drawing))
        assert all(left <= x <= right for x, _ in points_of(drawing))
        amounts = [quantity(text).m_as(unit) for *_, text in beside]
        if values is None:
            y_of = scale([(at, math.log10(each)) for at, each in zip(grid, amounts, strict=True)])
            x_of = scale([(x, math.log10(float(text))) for x, _, _, text in below])
            circles = [
                (10 ** x_of(float(each.get("cx"))), 10 ** y_of(float(each.get("cy"))))
                for each in drawing.findall("circle")
            ]
            assert circles == [
                (pytest.approx(each.flop / each.traffic, rel=0.02), pytest.approx(rate, rel=0.02))
                for each, rate in zip(run.steps, run.rates, strict=True)
            ]
            continue
        assert 3 <= len(grid) <= 7
        y_of = scale([*zip(grid, amounts, strict=True)])
        x_of = scale([(x, float(text)) for x, _, _, text in below])
        assert [anchor for _, _, anchor, _ in below] == ["start", "end"]
        assert [y_of(y) for _, y in points_of(drawing)] == pytest.approx(
            values, abs=0.01 * max(values)
        )
        assert [x_of(x) for x, _ in points_of(drawing)] == pytest.approx(
            [each.number for each in run.steps], abs=0.02
        )
        marks = drawing.findall("path[@class='event']")
        places = [re.findall(r"[\d.]+", each.get("d"))[:2] for each in marks]
        assert {round(x_of(float(x))) for x, _ in places} == {2}
        assert {float(y) for _, y in places} == {bottom - 1}


def test_the_page_is_in_the_books_colours() -> None:
    book = STYLE.read_text(encoding="utf-8")
    for name, colour in re.findall(r"(--[a-z-]+): (light-dark\([^)]*\))", dashboard.STYLE):
        assert f"{name}: {colour};" in book


def test_the_command(tmp_path: Path, command: Command) -> None:
    path = logged(tmp_path / "run.jsonl")
    assert command.prints("training", str(path), "--html", str(tmp_path / "run.html")).startswith(
        "Digits <bf16>, on a machine\n"
    )
    assert (tmp_path / "run.html").read_text().startswith("<!doctype html>")
    command.refuses("training", str(tmp_path / "no.jsonl"))
    assert json.loads(path.read_text().splitlines()[1])["parts"] == 2


def test_the_page_takes_no_others_place(tmp_path: Path, command: Command) -> None:
    path = logged(tmp_path / "run.jsonl")
    before = path.read_bytes()
    link, twin = tmp_path / "link.html", tmp_path / "twin.html"
    link.symlink_to(path)
    twin.hardlink_to(path)
    device = tmp_path / "device.html"  # a pipe, in place of a device that a failure would replace
    os.mkfifo(device)
    for page in (path, link, twin, tmp_path, device, tmp_path / "none" / "run.html", ""):
        said = command.refuses("training", str(path), "--html", str(page))
        assert said.startswith(("calc: --html would overwrite", "calc: cannot write"))
    assert path.read_bytes() == twin.read_bytes() == before
    assert link.is_symlink()
    assert device.is_fifo()
    run = codesign.read_run(path)
    with pytest.raises(InputError, match="it is there, and is no file"):
        codesign.write_dashboard(run, device)
    assert device.is_fifo()


def test_a_run_for_programs(tmp_path: Path, command: Command) -> None:
    facts = command.facts("training", str(logged(tmp_path / "run.jsonl")))
    assert facts["rate"] == {"value": pytest.approx(6.4e9), "unit": "FLOP/s"}
    assert facts["mfu"] == pytest.approx(0.16)
    assert [each["number"] for each in facts["steps"]] == [1, 2, 3, 4]
