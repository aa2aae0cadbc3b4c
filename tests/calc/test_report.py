"""A report says the same as text, HTML, JSON and CSV, and each is read back here without it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from typing import Any

import pytest

from calc import compare, plan, plan_service, plan_training, published, quantity, throughput
from calc.catalog.intervals import BASES
from calc.core.report import LINES, Answer, Report, Reported, Table
from calc.planning.serving_plan import Plans
from calc.published.reporting import Agreement
from tests.calc.flatly import flatly

CHAT = {"prompt": 1000, "generated": 200}
REPORTS: dict[str, Callable[[], Reported]] = {
    "plan": lambda: plan("llama-3-8b", "h100", batch=8, price="3 USD/hour", **CHAT),
    "plan of several points": lambda: plan("llama-3-8b", "h100", batch=[1, 8], **CHAT),
    "plan that does not fit": lambda: plan("llama-3-70b", "h100", devices=1, **CHAT),
    "plans side by side": lambda: Plans(
        tuple(plan("llama-3-8b", device, **CHAT) for device in ("h100", "rtx-4090")),
        {"t4": "It is too small."},
    ),
    "training": lambda: flatly(
        plan_training, "llama-3-8b", "dgx-h100", tokens="1B", sequences=64, length=4096, devices=8
    ),
    "service": lambda: flatly(
        plan_service,
        *("llama-3-8b", "h100"),
        rate=5,
        ttft="1 s",
        tpot="50 ms",
        requests=200,
        **CHAT,
    ),
    "comparison": lambda: compare("llama-3-8b", ["h100", "rtx-4090", "jetson-orin-nano"], **CHAT),
    "throughput": lambda: throughput.of("resnet-50", "rtx-4090", batch=32),
    "published": lambda: Agreement(published.compare(published.rows("serving")[:3])),
}
SENTENCES = ("caveats", "assumptions", "what_would_change", "why_not_others")


class Cells(HTMLParser):
    """The cells of tables, row by row, and the lines of their captions."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.captions: list[str] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, _: Any) -> None:
        self.inside = tag if tag not in ("table", "br") else self.inside
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.inside == "caption":
            self.captions.append(data)
        else:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module", params=REPORTS)
def report(request: pytest.FixtureRequest) -> Reported:
    return REPORTS[request.param]()


def squeezed(cells: list[str]) -> str:
    return " ".join(" ".join(cells).split())


def test_html_has_the_rows_and_the_title_of_the_text(report: Reported) -> None:
    text = report.explain().replace("\n  ", " ") + report.explain()
    lines = [squeezed([line]) for line in text.splitlines()]
    notebook = Cells(report.html())
    assert notebook.rows
    assert [line for line in map(squeezed, notebook.rows) if line not in lines] == []
    assert {f"{line}:" for line in notebook.captions} <= {*lines, *(f"{line}:" for line in lines)}


def test_all_that_is_explained_has_the_sentences_of_the_json(report: Reported) -> None:
    facts = json.loads(report.json())
    sentences = {sentence for name in SENTENCES for sentence in facts.get(name, ())}
    sentences |= {*report.sentences.get("Power", ())}  # too slow to compute for each JSON
    explained = report.explain().replace("\n  ", " ")
    assert {line[2:] for line in explained.splitlines() if line.startswith("- ")} == sentences


def test_an_answer_is_short_and_says_first_what_it_stands_on(report: Reported) -> None:
    if not isinstance(report, Answer) or isinstance(report, throughput.Throughput):
        return
    lines = report.text().splitlines()
    assert str(report) == report.text()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 20
    words = " ".join("\n".join(report.title).split())
    assert words.startswith(" ".join(report.answer.split()))
    assert " ".join(report.stands_on.split()) in words
    assert any(word in report.stands_on for word in BASES)
    facts = json.loads(report.json())
    assert facts["answer"] == report.answer
    for caveat in report.caveats:
        assert caveat in report.text().replace("\n  ", " ")


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_frame_has_units_in_its_columns(library: str) -> None:
    pytest.importorskip(library)
    made = plan("llama-3-8b", "h100", batch=[1, 8, 4000], devices=1, software="vllm", **CHAT)
    frame = made.to_frame(library)
    assert frame.shape[0] == 3
    tokens = list(frame["expected.time_per_token (s)"])
    alone = plan("llama-3-8b", "h100", batch=8, software="vllm", **CHAT)
    assert alone.expected is not None
    assert tokens[1] == alone.expected.time_per_token.m_as("s")
    assert tokens[2] is None or tokens[2] != tokens[2]
    assert "expected" not in frame.columns
    with pytest.raises(ValueError, match="one of polars or pandas; got 'numpy'"):
        made.to_frame("numpy")


def test_csv_has_the_rows_of_the_json(report: Reported) -> None:
    facts = json.loads(report.json())
    if isinstance(report, throughput.Throughput):  # one answer, of which there are no rows
        return
    rows = list(csv.DictReader(io.StringIO(report.csv())))
    assert len(rows) == len(facts["rows"]) > 0
    for row, fact in zip(rows, facts["rows"], strict=True):
        expected = {name: leaf for name, leaf in leaves(fact) if leaf is not None}
        assert {name: cell for name, cell in row.items() if cell} == {
            name: json.dumps(leaf) if isinstance(leaf, bool) else str(leaf)
            for name, leaf in expected.items()
            if leaf != ""
        }


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of JSON, by their paths."""
    if not isinstance(value, dict):
        yield name, value
        return
    for key, inner in value.items():
        yield from leaves(inner, f"{name}.{key}" if name else key)


def test_one_report_by_hand() -> None:
    made = Report(
        ["A title", ""],
        [
            Table([("", "time"), ("a < b", "1 s")]),
            Table([("x", "y")], "Below"),
            Table([("only", "text")], detail=True),
        ],
        {"Assumed": ["It holds."], "": ["And this alone."], "Never": []},
        {"rows": [{"time": quantity("1 s"), "good": True, "nan": float("nan")}], "n": 2.0},
    )
    assert (
        made.text()
        == made.explain()
        == (
            "A title\n\n       time\na < b  1 s\n\nBelow:\nx  y\n\nonly  text\n"
            "\nAssumed:\n- It holds.\n\nAnd this alone."
        )
    )
    assert str(made) == made.table() == made.text().split("\n\nAssumed")[0]
    assert made._repr_html_() == made.html()
    assert Cells(made.html()).rows == [["", "time"], ["a < b", "1 s"], ["x", "y"]]
    assert Cells(made.html()).captions == ["A title", "A title", "Below"]
    assert json.loads(made.json()) == {
        "rows": [{"time": {"value": 1, "unit": "s"}, "good": True, "nan": None}],
        "n": 2,
    }
    assert made.csv() == "time.value,time.unit,good,nan\n1,s,true,\n"


def test_a_table_of_any_length_prints_its_first_rows_and_has_all_in_csv() -> None:
    many = plan("llama-3-8b", "h100", batch=list(range(1, 102)), **CHAT).with_expectation()
    rows = list(csv.DictReader(io.StringIO(many.csv())))
    assert len(rows) == len(json.loads(many.json())["rows"]) == 101
    assert "expected" not in rows[0]
    lines = many.text().splitlines()
    assert len(lines) <= 20
    assert re.search(r"… with --explain: \d+ rows and ", many.text())
    explained = many.explain().splitlines()
    assert sum(bool(re.match(r"\d+ +\d", line)) for line in explained) == 2 * 101


@dataclass(frozen=True, eq=False, repr=False)
class Long(Answer):
    """An answer with more to mind than there is room for."""

    mind: Sequence[str]
    rows = 7

    @property
    def caveats(self) -> Sequence[str]:
        return self.mind

    @cached_property
    def tables(self) -> Sequence[Table]:
        return [Table([(f"row {number}", "1") for number in range(self.rows)])]


@pytest.mark.parametrize("many", [0, 1, 2, 5, 40])
def test_the_rows_of_an_answer_stand_before_what_is_to_be_minded(many: int) -> None:
    lines = Long([f"Mind {number}: {'long ' * 40}" for number in range(many)]).table().splitlines()
    assert len(lines) <= LINES
    assert [line for line in lines if line.startswith("row")] == [
        f"row {number}  1" for number in range(Long.rows)
    ]
    shown = sum(line.startswith("- Mind") for line in lines)
    left = [line for line in lines if line.startswith("…")]
    assert left == ([f"… with --explain: {many - shown} more to mind"] if shown < many else [])


def test_columns_that_are_left_out_are_named_as_they_stand() -> None:
    names = [f"{word} of what each device does at most" for word in ("rate", "time", "cost", "use")]
    lines = Table([("", *names), ("H100", *"1234")]).short(9)
    told = [name for name in names if name not in lines[0]]
    assert len(told) > 1
    assert " ".join(lines[2:]) == f"… with --explain: {', '.join(told[:-1])} and {told[-1]}"
