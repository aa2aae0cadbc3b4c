"""The battery: tens of thousands of odd inputs to all that people give text to. Nothing is lost,
nothing is wrong in silence, nothing hangs, and whatever is refused is refused in one sentence.

The seed is fixed, so that a commit passes or fails by what it says; `BATTERY_SEED=7 pytest -m slow
tests/test_battery.py` draws others. Numbers below are those of the nightly tier, of which a change
tries the first (`draws`). Odd values of every function are in
`tests/calc/test_odd_values`,
which takes the same seed; full disks in `tests/calc/test_files`; kills
and hostile chapters that need a render of their own in `tests/press/test_hardening`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pint import DimensionalityError

import calc
from calc import InputError, hardware, models, quantity
from calc.codesign import read_run
from calc.commands import COMMANDS, main
from calc.core.row_file import RowFile
from calc.planning.service import load
from figures import live
from figures.live import prompt
from press.build import end, render
from press.problems import BookError
from press.reading.project import Chapter, read_book
from press.reading.source import read_source
from tests.calc.odd_values import ODD, SEED
from tests.draws import draws, of_a_kind
from tests.press.tiny_book import SETTINGS
from tests.rows import each_row

ROOT = Path(__file__).parents[1]
LONGEST = 30  # seconds that an input may take
pytestmark = pytest.mark.slow


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture(scope="module", autouse=True)
def _what_renders_here_ends() -> Iterator[None]:
    yield
    end()


@pytest.fixture(autouse=True)
def _no_input_hangs() -> Iterator[None]:
    """Each input sets the clock anew, in `watched`."""

    def late(*_: object) -> None:
        raise AssertionError(f"an input takes longer than {LONGEST} s")

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def one_sentence(error: BaseException | str) -> None:
    text = str(error).strip()
    assert text, "a refusal without a word"
    assert "\n" not in text, f"a refusal of several lines: {text}"
    assert "Traceback" not in text


def watched(
    ask: Callable[[], object], refused: tuple[type[Exception], ...] = (InputError,)
) -> bool:
    """Return whether there is an answer; what is refused is refused in a sentence."""
    signal.alarm(LONGEST)
    try:
        ask()
    except refused as error:
        one_sentence(error)
        return False
    return True


# ---- Values: what is read is what was written


PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20}
UNITS = {"B": 8, "byte": 8, "bit": 1}


def test_amounts_are_read_as_written(chance: random.Random) -> None:
    """Against fractions: sums and products of amounts with prefixes, 16 000 of them."""

    def amount() -> tuple[str, Fraction]:
        digits = chance.choice([f"{chance.randint(0, 9999)}", f"{chance.uniform(0, 99):.3f}",
                                f"{chance.randint(1, 99)}e{chance.randint(-9, 9)}"])  # fmt: skip
        unit = chance.choice(list(UNITS))
        prefix = chance.choice(list(PREFIXES)) if unit != "byte" else ""
        return f"{digits} {prefix}{unit}", Fraction(digits) * PREFIXES[prefix] * UNITS[unit]

    with each_row() as row:
        for _ in range(draws(16_000)):
            (text, value), factor = amount(), chance.randint(1, 9)
            more, other = amount()
            text, value = chance.choice([
                (text, value),
                (f"{text} + {more}", value + other),
                (f"{factor} * {text}", factor * value),
                (f"({text} + {more}) / {factor}", (value + other) / factor),
            ])  # fmt: skip
            with row(text):
                read = quantity(text).m_as("bit")
                assert read == pytest.approx(float(value), rel=1e-12, abs=0), text


PIECES = ["3", "1e9", "GB", "GB/s", "/", "*", "**", "+", "-", "(", ")", " ", "FLOP", "USD", "token",
          "K", "B", "e", ".", ",", "µs", "∞", "nan", "\0", "\udcff", "--", "1_0", "२", "'", "\n",
          "°C",
          "10**99", "kWh", "%", "°", "param", "⁻¹", "s", "Ki", "h"]  # fmt: skip


def test_whatever_is_typed_is_read_or_refused(chance: random.Random) -> None:
    """Texts that are read are printed as what is read as the same: 8 000 texts."""
    with each_row() as row:
        for _ in range(draws(8_000)):
            text = "".join(chance.choices(PIECES, k=chance.randint(1, 9)))
            with row(text.encode(errors="surrogateescape")):
                read: list[Any] = []
                if watched(lambda text=text, read=read: read.append(quantity(text))):
                    [value] = read
                    unit = str(value.units)
                    joined = f"/ {unit[2:]}" if unit.startswith("1/") else unit
                    again = quantity(f"{value.magnitude!r} {joined}")
                    assert again.m_as(value.units) == value.magnitude


def test_units_do_not_change_what_a_law_says(chance: random.Random) -> None:
    """Arguments in other units, as text, give the same: 3 000 of 12 000 calls of laws have any."""
    from tests.calc.odd_values import usual_arguments

    others = {"byte": ["bit", "kB", "MiB"], "second": ["ms", "h"], "byte / second": ["GB/s",
              "bit/s"],
              "flop / second": ["TFLOP/s"], "flop": ["GFLOP"], "watt": ["kW"],
              "joule": ["kWh"]}  # fmt: skip
    laws, tried = calc.all_laws(), 0
    with each_row() as row:
        for _ in range(draws(12_000)):
            name = chance.choice(sorted(laws))
            arguments = usual_arguments(name)
            changed = dict(arguments)
            for argument, value in arguments.items():
                unit = str(getattr(value, "units", ""))
                if unit in others and getattr(value, "ndim", 1) == 0:
                    other = chance.choice(others[unit])
                    changed[argument] = f"{value.m_as(other)!r} {other}"
            if changed == arguments:
                continue
            tried += 1
            with row((name, changed)), contextlib.suppress(InputError):
                first, again = laws[name](**arguments), laws[name](**changed)
                if hasattr(first, "m_as"):
                    assert again.m_as(first.units) == pytest.approx(first.magnitude, rel=1e-9)
    assert tried > draws(2_000)


# ---- The command line, in this process


WORDS = ["h100", "a100", "dgx-h100", "llama-3-8b", "qwen-3-8b", "t4", "own.toml", "run.toml",
         "bad.toml",
         "config.json", "trace.csv", "run.jsonl", "nowhere/x", ".", "", "1", "-1", "0", "1e400",
         "nan", "8,16",
         "1,", ",", "3 USD/hour", "1 GB", "1 GFLOP", "2 * 3 GB / 2 s", "fp8", "int4", "vllm",
         "vllm 99", "latency",
         "\u2028", "a\0b", "\udcff", "x" * 3000, "𝟛", "--", "-h", "--json", "%s", "{}", "$HOME",
         "~", "out.csv",
         "out.svg", "out.toml", "tensor=8", "tensor=", "ring all-reduce", "attention",
         "bound"]  # fmt: skip
CHEAP = ["list", "show", "search", "roofline", "gemm", "eval", "fit", "plan", "throughput",
         "compare", "training", "validate", "plan-training", "collective", "watts", "break-even",
         "check", "assert", "attention"]  # fmt: skip
START = {
    "roofline": "h100 --flops 1GFLOP --bytes 1GB",
    "gemm": "h100 --m 64 --n 64 --k 64",
    "fit": "llama-3-8b h100",
    "plan": "llama-3-8b h100 --prompt 100 --generated 10",
    "throughput": "resnet-50 t4",
    "compare": "llama-3-2-3b --machines t4 --prompt 9 --generated 9",
    "training": "run.jsonl",
    "validate": "own.toml --published --group none",
    "plan-training": "llama-3-8b own.toml --tokens 1B --sequences 8 --length 64",
    "eval": "1",
    "show": "h100",
    "search": "roofline",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    for name, text in OWN.items():
        Path(name).write_text(text, encoding="utf-8")
    return tmp_path


def own_files() -> dict[str, bytes]:
    return {name: Path(name).read_bytes() for name in OWN}


LOG = (ROOT / "calc/data/measured/training_run.jsonl").read_text(encoding="utf-8")
OWN = {
    "own.toml": (ROOT / "calc/data/measured/cpu.toml").read_text(encoding="utf-8"),
    "run.toml": 'model = "llama-3-8b"\nhardware = "h100"\nprompt = 100\ngenerated = 10\n'
                'price = "3 USD/hour"\nbatch = [1, 8]\n',
    "bad.toml": "model = [",
    "config.json": json.dumps(json.loads(
        (ROOT / "tests/calc/configs.json").read_text(encoding="utf-8")).popitem()[1]),
    "trace.csv": "arrival,prompt,generated\n0.0,100,10\n0.5,200,20\n1.5,50,5\n",
    "run.jsonl": "".join(LOG.splitlines(keepends=True)[:9]),
    "rows.jsonl": '{"of": "numbers"}\n{"number": 1}\n{"number": 2}\n',
}  # fmt: skip


def command(arguments: list[str]) -> tuple[int, str, str]:
    """Return the status, output and errors of a command, run in this process."""
    signal.alarm(LONGEST)
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = main(arguments)
        except SystemExit as end:
            code = int(str(end.code or 0))
    return code, output.getvalue(), errors.getvalue()


def strict(constant: str) -> None:
    raise AssertionError(f"{constant} in JSON")


def test_command_lines(chance: random.Random, folder: Path) -> None:
    """2 000 lines: one sentence and 1 or 2, or an answer, and whatever was there is as it was."""
    before, answered = own_files(), 0
    options = {name: re.findall(r"--[a-z][\w-]+", command([name, "--help"])[1]) for name in CHEAP}
    with each_row() as row:
        for _ in range(draws(2_000)):
            name = chance.choice([*CHEAP[:7], *CHEAP])
            line = [name, *(START.get(name, "").split() if chance.random() < 0.7 else [])]
            for _ in range(chance.randint(0, 3)):
                position = chance.randint(1, len(line))
                if chance.random() < 0.6:
                    line[position:position] = [chance.choice(options[name] or ["--json"])]
                line[position:position] = [chance.choice(WORDS)] if chance.random() < 0.8 else []
            with row(line):
                code, output, errors = command(line)
                assert code in (0, 1, 2)
                if code:
                    assert not output
                    said = errors.rpartition("\r")[2]
                    assert said.startswith("calc")
                    one_sentence(said)
                else:
                    answered += 1
                    assert output
                    if "--json" in line and not {"--", "-h", "--help"} & {*line}:
                        json.loads(output, parse_constant=strict)
                for file in [file for file, text in own_files().items() if text != before[file]]:
                    Path(file).write_bytes(before[file])
                    assert line.count(file) == 1, f"{file} was read and written"
                    assert line[line.index(file) - 1] in ("--csv", "--html", "--write-config")
    assert answered > draws(100)
    assert {path.name for path in folder.iterdir()} - set(OWN) <= {"out.csv", "out.svg", "out.toml"}


# ---- Files of users, mutated


def mutated(text: bytes, chance: random.Random) -> bytes:
    """A file as an editor, a disk or a bad day leaves it."""
    data = bytearray(text)
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        start, end = sorted(chance.choices(range(len(data) + 1), k=2))
        end = min(end, start + chance.choice([1, 1, 4, 40, 4000]))
        match chance.randint(0, 7):
            case 0:
                del data[start:end]
            case 1:
                data[start:start] = data[start:end]
            case 2:
                data[start:end] = chance.randbytes(end - start)
            case 3:
                del data[start:]
            case 4:
                data[start:start] = chance.choice([b"\xff", b"\0", b"\n", b'"', b"[", b"-",
                b"9" * 400, b"nan",
                                                   b"1e999", b"null", b"\xe2\x80\xa8", b"true",
                                                   b"{}"])  # fmt: skip
            case 5:  # a number becomes another
                numbers = list(re.finditer(rb"\d+(?:\.\d+)?", data))
                if numbers:
                    number = chance.choice(numbers)
                    new = chance.choice(
                        [b"0", b"-1", b"1e308", b"1e-308", b"0.5", b"99999999999999999999", b"nan"]
                    )
                    data[slice(*number.span())] = new
            case 6:
                lines = bytes(data).split(b"\n")
                chance.shuffle(lines)
                data = bytearray(b"\n".join(lines))
            case 7:
                data = bytearray(bytes(data).replace(b"=", b" = ", 1).replace(b"\n", b"\r\n"))
    return bytes(data)


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "device": ("own.toml", hardware.load),
    "options": ("run.toml", lambda path: _options(path)),
    "model": ("config.json", models.load),
    "log": ("run.jsonl", lambda path: read_run(path).mfu),
    "trace": ("trace.csv", load.read_trace),
    "rows": ("rows.jsonl", lambda path: _rows(path)),
}


def _options(path: Path) -> None:
    code, _, errors = command(["plan", "--config", str(path), "--json"])
    if code:
        raise InputError(errors.rpartition("\r")[2])


def _rows(path: Path) -> None:
    with RowFile(path, {"of": "numbers"}, {"number": int}).open():
        pass


@pytest.mark.parametrize("kind", READERS)
def test_files_that_are_mutated(kind: str, chance: random.Random, folder: Path) -> None:
    """8 000 files: read, or refused in a sentence, and none is changed but for a row cut off."""
    name, reader = READERS[kind]
    text, file = Path(name).read_bytes(), folder / f"new-{name}"
    read = 0
    with each_row() as row:
        for number in range(draws(500 if kind == "options" else 1_500)):
            new = mutated(text, chance)
            file.write_bytes(new)
            with row((number, new)):
                read += watched(lambda: reader(file), (InputError, DimensionalityError))
                if kind != "rows":
                    assert file.read_bytes() == new
                else:  # but for the end of a line that is none
                    assert new.startswith(file.read_bytes()) or not new
    assert read < draws(1_500)


# ---- What press is given


SNIPPETS = ["# A", "## B {#sec-b}", "::: {.callout-note}", ":::", "$$", "$x^{2}$", "`code`",
            "```", "```{python}",
            "<script>alert(1)</script>", "<img src=x onerror=alert(1)>",
            "[a](javascript:alert(1))", "[a](b.md)",
            "![x](y.png)", "@fig-none", "@smith2020", "{#fig-a}", "[^1]", "[^1]: note", "|a|b|",
            "|-|-|", "- item",
            "> quote", "---", "title: x", "{{< include x >}}", "`{python} 1`", "`{r} 1`", "\\",
            "&amp;", "&#0;", "\u202e",
            "\x85", "*a", "**", "~~~", "#| label: fig-x", "#| echo: 3", "{=html}", "$\\sqrt{",
            "]({", "<a href='//x'>",
            "\\begin{align}", "1. x", "    code", "", "", "text and words"]  # fmt: skip


def test_sources_of_chapters(chance: random.Random, folder: Path) -> None:
    """8 000 sources are split into prose and cells, or refused by file and line."""
    chapter = Chapter("x.qmd", -1, False)
    defaults = dict.fromkeys(["echo", "eval", "output", "warning"], True)
    with each_row() as row:
        for _ in range(draws(8_000)):
            text = "\n".join(chance.choices(SNIPPETS, k=chance.randint(1, 14)))
            if chance.random() < 0.2:
                text = mutated(text.encode(), chance).decode(errors="replace")
            (folder / "x.qmd").write_text(text, encoding="utf-8")
            with row(text):
                told_by_place(lambda: read_source(folder, chapter, defaults, ["html"]))


def told_by_place(ask: Callable[[], object], *files: str) -> None:
    signal.alarm(LONGEST)
    try:
        ask()
    except BookError as error:
        for problem in error.problems:
            one_sentence(str(problem))
            assert problem.file in (files or ("x.qmd",)), problem


def test_settings_of_books(chance: random.Random, folder: Path) -> None:
    """2 000 files of settings."""
    (folder / "index.qmd").write_text("# A\n")
    with each_row() as row:
        for _ in range(draws(2_000)):
            text = mutated(SETTINGS.encode(), chance)
            (folder / "_quarto.yml").write_bytes(text)
            with row(text):
                told_by_place(lambda: read_book(folder), "_quarto.yml")


PLAIN = [
    s for s in SNIPPETS if "`{" not in s and "```" not in s and s not in ("---", "title: x", "~~~")
]


def test_pages_of_hostile_text(chance: random.Random, folder: Path) -> None:
    """2 books of 25 chapters: each is refused by its place, or is printed and runs nothing."""
    printed = 0
    for number in range(2):
        book = folder / f"book{number}"
        book.mkdir()
        names = ["index.qmd", *(f"c{i}.qmd" for i in range(24))]
        chapters = "".join(f"    - {name}\n" for name in names)
        settings = SETTINGS.replace("    - index.qmd\n", chapters).replace("  typst: default\n", "")
        (book / "_quarto.yml").write_text(settings)
        for name in names:
            text = "\n\n".join(chance.choices(PLAIN, k=2))
            (book / name).write_text(f"# A title\n\n{text}\n", encoding="utf-8")
        faults = 1
        while faults:  # without the chapters that it refuses, the rest is printed
            signal.alarm(4 * LONGEST)
            faults = 0
            try:
                render(book, "html")
            except BookError as error:
                for problem in error.problems:
                    one_sentence(str(problem))
                    assert problem.file in names, problem
                    faults += 1
                    (book / problem.file).write_text("# Another\n")
        for page in (book / "_book").glob("*.html"):
            text = page.read_text(encoding="utf-8")
            assert "<script>alert" not in text
            assert "onerror" not in re.sub(r"&lt;.*?&gt;", "", text)
            assert 'href="javascript' not in text
            printed += 1
    assert printed >= 2 * 25


# ---- What a page asks


def test_live_figures_and_the_prompt(chance: random.Random) -> None:
    """1 500 forms and 1 500 lines of the prompt."""
    lines = ["calc.", "quantity(", "'1 GB'", ")", "plot(", "[1]", ",", "1/0", "help(", "x = ",
             "print(", "raise ", "os"]  # fmt: skip
    with each_row() as row:
        for _ in range(draws(1_500)):
            name = chance.choice(list(live.MODELS))
            fields = list(live.get(name).defaults())
            inputs = {
                field: chance.choice([*WORDS, "2", "3 GB", "50 %"])
                for field in fields
                if chance.random() < 0.5
            }
            with row((name, inputs)):
                signal.alarm(LONGEST)
                answer = json.loads(live.answer(name, json.dumps(inputs)), parse_constant=strict)
                for sentence in answer.get("errors", {}).values():
                    one_sentence(sentence)
        for _ in range(draws(1_500)):
            source = "".join(chance.choices(lines, k=chance.randint(1, 6)))
            with row(source):
                signal.alarm(LONGEST)
                answer = json.loads(prompt.run(source))
                assert answer.keys() == {"text", "error", "plots"}


# ---- Other surroundings, and two at once


SAID = ["show h100", "plan llama-3-8b h100 --prompt 100 --generated 10", "eval '2 * 3 GB / 2 s'"]
PLACES: dict[str, tuple[list[str], dict[str, str | None]]] = {
    "no home": ([], {"HOME": None}),
    "a home that is not there": ([], {"HOME": "/nowhere"}),
    "C": ([], {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"}),
    "Turkish": ([], {"LC_ALL": "tr_TR.UTF-8"}),
    "20 columns": ([], {"COLUMNS": "20"}),
    "-O": (["-O"], {}),
    "-OO": (["-OO"], {}),
    "another time zone": ([], {"TZ": "Pacific/Chatham"}),
    "warnings": (["-W", "error"], {}),
}


@pytest.mark.parametrize("surroundings", of_a_kind(PLACES))
def test_commands_in_other_surroundings(surroundings: str) -> None:
    import shlex

    flags, changes = PLACES[surroundings]
    environment = {k: v for k, v in (os.environ | changes).items() if v is not None}
    for line in SAID:
        run = partial(subprocess.run, capture_output=True, timeout=2 * LONGEST, check=True)
        words = ["-m", "calc", *shlex.split(line)]
        usual = run([sys.executable, *words]).stdout.decode()
        printed = run([sys.executable, *flags, *words], env=environment).stdout
        assert re.sub(r"\\(?:x|u)[0-9a-f]{2,4}", "?", printed.decode()) == (
            usual if surroundings != "C" else re.sub(r"[^\x00-\x7f]", "?", usual)
        )


SWEEP = [sys.executable, "-m", "calc", "sweep", "--seeds", "2", "--pruning", "0,0.5,0.7",
         "--repeats",
         "3", "--epochs", "1", "--resume"]  # fmt: skip


def test_sweeps_that_are_killed_and_two_at_once(chance: random.Random, tmp_path: Path) -> None:
    """Whenever one is killed, and whatever runs beside it, each row is there once."""
    rows = tmp_path / "rows.jsonl"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT}
    for _ in range(3):
        process = subprocess.Popen([*SWEEP, str(rows)], **quiet)
        time.sleep(chance.uniform(0.5, 4))
        process.kill()
        process.communicate()
    both = [subprocess.Popen([*SWEEP, str(rows)], **quiet) for _ in range(2)]
    said = [process.communicate(timeout=300)[1] for process in both]
    assert any(process.returncode == 0 for process in both)
    for process, errors in zip(both, said, strict=True):
        last = errors.strip().split("\n")[-1].rpartition("\r")[2]
        assert process.returncode == 0 or "is being written by another sweep" in last
    subprocess.run([*SWEEP, str(rows)], check=True, **quiet)
    _, *lines = map(json.loads, rows.read_text().splitlines())
    names = [(row["seed"], row["kind"], row["pruning"], row["precision"]) for row in lines]
    assert len(names) == len(set(names)) == 2 * 3 * 2


def test_two_people_at_one_checkout(tmp_path: Path) -> None:
    """Two render, one watches: each is answered, and the book is what one alone makes."""
    book = tmp_path / "book"
    book.mkdir()
    (book / "_quarto.yml").write_text(SETTINGS.replace("  typst: default\n", ""))
    (book / "index.qmd").write_text("# A\n\n`{python} 1 + 1`\n")
    press = [sys.executable, "-m", "press"]
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen([*press, "watch", str(book)], cwd=ROOT, **options) as watching:
        try:
            for turn in range(2):
                (book / "index.qmd").write_text(f"# A\n\nTurn {turn}: `{{python}} 1 + 1`\n")
                both = [
                    subprocess.Popen(
                        [*press, "render", "--no-runtime", str(book)], cwd=ROOT, **options
                    )
                    for _ in range(2)
                ]
                said = [process.communicate(timeout=300)[0] for process in both]
                assert [process.returncode for process in both] == [0, 0], said
                assert f"Turn {turn}: 2" in (book / "_book/index.html").read_text()
        finally:
            watching.send_signal(signal.SIGINT)
            last = watching.communicate(timeout=60)[0]
    assert "Traceback" not in last
    assert not list(book.glob("._book*"))
    render(book)
    alone = _digests(book / "_book")
    shutil.rmtree(book / "_book")
    shutil.rmtree(book / ".press-cache")
    render(book)
    assert _digests(book / "_book") == alone


def _digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".press.json"
    }


def test_the_battery_is_of_all_commands_and_values() -> None:
    slow = "simulate sweep measure completion plan-service mcp observe"  # of which other tests are
    assert {*COMMANDS} - {*slow.split()} - {*CHEAP} == set(), "a new command belongs to the battery"
    assert len(ODD) > 50
