"""Mutation tests: faults planted one at a time, and a list of those that no test misses.

    python -m benchmarks.mutations
    python -m benchmarks.mutations --number 200 --seed 7 --of data/accelerators press

Faults are taken by turns from each folder and file that has its own tests, of the library, of its
data, and of the renderer, the figures and the tools. In data and in the
attributes of derivations a number is made a third larger; in code a comparison, an operation, a
number or a condition becomes its neighbour, as `>` is of `>=`, or an argument is left out,
and a part of a recipe becomes another. Each is
planted in a copy of the checkout and looked for by what is fastest: the tests of that file, for
numbers that pages quote the published values, the hand-checked rows of tables and the alt texts
that `tools/pages/alt_texts.py` writes, and only then all tests of `calc`, until one tells. What
survives stands in the list at the end, with file and line. A test tells of a fault if it fails with
the fault, passes without it, and ran: what fails in the copy anyway is left out. A seed always
chooses the same faults in the same order, so `--after 20` goes on where a run ended that had tried
20 of them.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import importlib
import json
import os
import py_compile
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

REPOSITORY = Path(__file__).parents[1]
ROWS = Path("hand-checked-rows.json")  # of the copy, as things stand
NUMBER = r"-?\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?"
FIELD = re.compile(rf"(?:^|[{{,]\s*)(?!year\b)\w+ = ({NUMBER})(?=\s*(?:$|[,}}#]))")
CELL = re.compile(rf"(?:(?<=,)|(?<=: )|^)({NUMBER})(?=[,}}]|$)")
PART = re.compile(r'= "(size_\w+)"$')
QUANTITY = re.compile(rf"({NUMBER})(?=[ %]|$)")
TESTS = {  # under tests/calc, of each file and folder of data
    "data/constants": ["test_second_entries.py", "test_constants.py"],
    "data/accelerators": ["test_device_parts.py", "test_hardware.py"],
    "data/models": ["test_models.py", "test_second_entries.py"],
    "data/training_runs": ["test_second_entries.py", "test_training_runs.py"],
    "data/measured": ["measure/test_stored.py"],
    "data/published": ["measure/test_stored.py"],
    "data/computed": ["measure/test_stored.py"],
    "data/machines": ["test_device_parts.py", "test_machines.py"],
    "data/api_prices": ["test_second_entries.py"],
    "data/quantization_quality": ["test_second_entries.py"],
    "data/training_formats": ["test_second_entries.py"],
    "data/engines": ["test_second_entries.py", "test_device_memory.py"],
    "data/software": ["test_second_entries.py"],
    "data/grids": ["test_grids.py"],
    "data/intervals": ["test_intervals.py"],
    "data/acceptance": ["measure/test_stored.py", "test_drafting.py"],
    "data/recipes": ["test_training.py"],
    "data/image_intervals": ["test_networks.py"],
    "data/collective_intervals": ["test_curves.py"],
}
QUOTED = "derivations"  # whose numbers only pages show
OF_ROWS = (
    "data/published",
    "data/computed",
    "data/measured",
)  # of which pages show what comes of many
CODE = (  # folders of the library
    *("core", "formats", "catalog", "laws", "networks", "steps", "published", "planning"),
    *("simulation", "codesign", "measure", "commands"),
)
BESIDE = {"press": "press", "figures": "book", "tools": "book"}  # folders, and those of their tests
DRAWINGS = "../book/test_drawings.py"
OF_TORCH = ("codesign", "measure")  # folders of which .venv-torch, where it is, runs tests
OF_FIGURES = ("test_a_figure_draws_what_it_says", "test_a_figure_looks_as_it_was_looked_at")
NEIGHBOURS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "//": "/",
    "and": "or",
    "or": "and",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "ceil": "floor",
    "floor": "ceil",
}
SECONDS = 300  # of a processor, that the tests of one fault may take
TORCH = REPOSITORY / ".venv-torch" / "bin" / "python"
TOLD = Path("told-by.txt")  # of the copy: the test that began last
FAILED = (1, 2, 3)  # of what pytest returns: not "no such test" and "no test was run"
# What all children import, once.
COMMON = ["numpy", "polars", "pint", "pytest", "scipy.special", "sklearn.datasets", "matplotlib"]


@dataclass(frozen=True)
class Mutant:
    """A planted fault: some text of a file, and the text that stands there instead."""

    file: str
    line: int
    start: int
    old: str
    new: str

    def apply(self, folder: Path) -> None:
        path = folder / self.file
        lines = path.read_text(encoding="utf-8").split("\n")
        text = lines[self.line - 1]
        lines[self.line - 1] = text[: self.start] + self.new + text[self.start + len(self.old) :]
        path.write_text("\n".join(lines), encoding="utf-8")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.old} → {self.new}"


def larger(number: str) -> str:
    """The number a third larger, written as it was.

    >>> larger("1_000"), larger("0"), larger("0.75")
    ('1333', '1', '1')
    """
    if re.fullmatch(r"-?[\d_]+", number):
        value = int(number)
        return str(value + max(1, round(abs(value) / 3)))
    return f"{float(number) * 4 / 3 or 1:.6g}"


def in_lines(pattern: re.Pattern[str], *files: str) -> Iterator[Mutant]:
    for file in files:
        for number, line in enumerate((REPOSITORY / file).read_text("utf-8").split("\n"), 1):
            if not line.startswith("#"):
                for match in pattern.finditer(line):
                    yield Mutant(file, number, match.start(1), match[1], larger(match[1]))


def in_recipes(file: str) -> Iterator[Mutant]:
    """The parts of recipes, each beside the part that follows it in the alphabet."""
    lines = (REPOSITORY / file).read_text("utf-8").split("\n")
    parts_of_lines = [
        (number, match) for number, line in enumerate(lines, 1) if (match := PART.search(line))
    ]
    parts = sorted({match[1] for _, match in parts_of_lines})
    for number, match in parts_of_lines:
        other = parts[(parts.index(match[1]) + 1) % len(parts)]
        yield Mutant(file, number, match.start(1), match[1], other)


def in_classes(file: str) -> Iterator[Mutant]:
    """The literals of the attributes of derivations."""
    text = (REPOSITORY / file).read_text("utf-8")
    lines = text.encode().split(b"\n")  # an offset counts bytes
    for owner in ast.parse(text).body:
        for line in owner.body if isinstance(owner, ast.ClassDef) else []:
            for node in ast.walk(line.value) if isinstance(line, ast.Assign) else []:
                if not isinstance(node, ast.Constant):
                    continue
                end = node.end_col_offset if node.end_lineno == node.lineno else None
                line_of_it = lines[node.lineno - 1]
                source = line_of_it[node.col_offset : end].decode()
                pattern = QUANTITY if isinstance(node.value, str) else re.compile(f"({NUMBER})$")
                if match := pattern.match(source.removeprefix('"').removesuffix('"')):
                    quote = source.startswith('"')
                    start = len(line_of_it[: node.col_offset].decode()) + quote
                    yield Mutant(file, node.lineno, start, match[1], larger(match[1]))


def in_code(file: str) -> Iterator[Mutant]:
    """Operators, conditions, numbers and arguments of functions, each beside its neighbour."""
    text = (REPOSITORY / file).read_text("utf-8")
    lines = text.split("\n")
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                for node in ast.walk(statement):
                    for line, start, end, new in changes(node):
                        old = lines[line - 1][start:end]
                        if lines[line - 1].isascii() and old != new:  # an offset counts bytes
                            yield Mutant(file, line, start, old, new)


def changes(node: ast.AST) -> Iterator[tuple[int, int, int, str]]:
    """Line, start and end of what may change in a node, and into what."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield from between(left, right, SIGNS.get(type(op), ""))
        case ast.BinOp(left=left, op=op, right=right) if not any(
            isinstance(of, ast.JoinedStr)
            or (isinstance(of, ast.Constant) and isinstance(of.value, str))
            for of in (left, right)
        ):
            yield from between(left, right, SIGNS.get(type(op), ""))
        case ast.BoolOp(op=op, values=[left, right]):
            yield from between(left, right, SIGNS[type(op)])
        case ast.UnaryOp(op=ast.Not(), operand=operand) if node.lineno == operand.lineno:
            yield node.lineno, node.col_offset, node.col_offset + len("not "), ""
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            new = str(value + 1) if isinstance(value, int) else larger(str(value))
            yield node.lineno, node.col_offset, node.end_col_offset or 0, new
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name) as called):
            if name in NEIGHBOURS:
                end = called.end_col_offset or 0
                yield called.end_lineno or 0, end - len(name), end, NEIGHBOURS[name]
            for before, last in pairwise([*node.args, *(each.value for each in node.keywords)]):
                if last in node.args or before.end_lineno != last.end_lineno:
                    continue
                yield last.lineno, before.end_col_offset or 0, last.end_col_offset or 0, ""


SIGNS: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.And: "and",
    ast.Or: "or",
}


def between(left: ast.expr, right: ast.expr, sign: str) -> Iterator[tuple[int, int, int, str]]:
    """An operator, where nothing else stands between its operands."""
    start, end = left.end_col_offset or 0, right.col_offset
    if sign and left.end_lineno == right.lineno and end - start == len(sign) + 2:
        yield right.lineno, start + 1, end - 1, NEIGHBOURS[sign]


def in_data(file: str) -> Iterator[Mutant]:
    if file.endswith("/recipes.toml"):
        return in_recipes(file)
    return in_lines(FIELD if file.endswith(".toml") else CELL, file)


def faults() -> dict[str, list[Mutant]]:
    """Return the faults of each file or folder of data and derivations, and each folder of code."""
    code = REPOSITORY / "calc"
    drawn: dict[str, list[Mutant]] = {}
    for kind in TESTS:
        files = [*code.glob(f"{kind}.*"), *sorted((code / kind).glob("*.*"))]
        drawn[kind] = [
            mutant for path in files for mutant in in_data(path.relative_to(REPOSITORY).as_posix())
        ]
    for kind in (QUOTED, *CODE):
        of = in_classes if kind == QUOTED else in_code
        drawn[kind] = [
            mutant
            for path in sorted((code / kind).rglob("*.py"))
            for mutant in of(path.relative_to(REPOSITORY).as_posix())
        ]
    for kind in BESIDE:
        files = sorted((REPOSITORY / kind).rglob("*.py"))
        paths = (path.relative_to(REPOSITORY).as_posix() for path in files)
        drawn[kind] = [mutant for path in paths for mutant in in_code(path)]
    return drawn


def chosen(kinds: dict[str, list[Mutant]], number: int, seed: int) -> list[Mutant]:
    """Return faults by turns from each kind, in an order of the seed's."""
    chance = random.Random(seed)
    shuffled = [chance.sample(mutants, len(mutants)) for mutants in kinds.values()]
    return [mutant for turn in zip_longest(*shuffled) for mutant in turn if mutant][:number]


def copied(folder: Path) -> Path:
    """Return the folder, with a copy of every file of the checkout that Git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((REPOSITORY / name).read_bytes())
    for name in ("calc", "tests", *BESIDE):  # by hash: a fault of the same second is read too
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(folder / name, quiet=2, invalidation_mode=mode)
    return folder


def in_child(folder: Path, task: Callable[[], object], keeps: bool = False) -> int:
    """Return how a task ended, 0 if well, in a copy of this process that imports from `folder`.

    It `keeps` compiled tests there only where no fault is planted.
    """
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(folder)
    sys.dont_write_bytecode = not keeps
    sys.path[:] = [str(folder), *(path for path in sys.path if Path(path or ".") != REPOSITORY)]
    for name in [name for name in sys.modules if name.startswith(("benchmarks", "__mp_main"))]:
        del sys.modules[name]
    code = 1
    try:
        code = bool(task())
    except BaseException:
        code = 1
    finally:
        os._exit(code)


def survivors(mutants: list[Mutant], copy: Path, quick: bool) -> Iterator[Mutant]:
    for names in {tuple(TESTS.get(kind_of(mutant), ())) for mutant in mutants}:
        if names and in_child(copy, partial(fails, names)):
            raise SystemExit(f"tests fail as things stand: {', '.join(names)}")
    quoted = any(is_quoted(mutant) for mutant in mutants)
    rows = ROWS.write_text if quoted else None
    if rows and in_child(copy, lambda: rows(json.dumps(published()), encoding="utf-8") and None):
        raise SystemExit("a published value is wrong as things stand: run tests/book")
    sound: set[str] = set()
    for number, mutant in enumerate(mutants, 1):
        nearest = TESTS.get(kind_of(mutant)) or own_tests(mutant.file, mutant.line)
        stages: dict[str, Callable[[], str]] = {
            "its own tests": partial(telling, mutant, copy, nearest, sound)
        }
        if is_quoted(mutant):
            same = lambda: published() != json.loads(ROWS.read_text("utf-8"))  # noqa: E731
            stages["published"] = partial(wrong, mutant, copy, same)
        if is_quoted(mutant) or kind_of(mutant) == "figures":
            stages["pages"] = partial(wrong, mutant, copy, alt_texts_change)
        if kind_of(mutant) in OF_TORCH and TORCH.exists():
            stages["torch"] = partial(telling_in_torch, mutant, copy, nearest)
        if not quick and kind_of(mutant) not in BESIDE:
            stages["calc"] = partial(telling, mutant, copy, [], sound)
        tests = ((name, stage()) for name, stage in stages.items())
        by = next((f"{name}, {test}" for name, test in tests if test), "")
        print(f"{number}/{len(mutants)} {mutant}: {by or 'NOT NOTICED'}", file=sys.stderr)
        if not by:
            yield mutant


@contextmanager
def planted(mutant: Mutant, copy: Path) -> Iterator[None]:
    path = copy / mutant.file
    kept = path.read_bytes()
    mutant.apply(copy)
    try:
        yield
    finally:
        path.write_bytes(kept)


def wrong(mutant: Mutant, copy: Path, task: Callable[[], object]) -> str:
    with planted(mutant, copy):
        return "values" if in_child(copy, task) else ""


def telling(mutant: Mutant, copy: Path, names: Sequence[str], sound: set[str]) -> str:
    """Return the first of these tests that fails with the fault and passes without, or "".

    What is known to pass without the fault is in `sound`, to which this adds. A run that took too
    long tells nothing, unless the test it hung in does so alone too.
    """
    anyway: list[str] = []
    while True:
        (copy / TOLD).unlink(missing_ok=True)
        with planted(mutant, copy):
            ended = in_child(copy, partial(fails, names, anyway))
            test = (copy / TOLD).read_text("utf-8") if (copy / TOLD).exists() else ""
            alone = [f"../../{test}"]
            if os.WIFSIGNALED(ended) and test and not in_child(copy, partial(fails, alone)):
                print(f"{mutant}: cut off after {SECONDS} s, in {test}", file=sys.stderr)
                ended = 0
        if not ended:
            return ""
        if not test:  # nothing could begin
            if in_child(copy, partial(fails, names)):
                raise SystemExit(f"tests cannot run as things stand: {', '.join(names)}")
            return "pytest itself"
        if test in sound or not in_child(copy, partial(fails, alone), keeps=True):
            sound.add(test)
            return test
        anyway.append(test)


def telling_in_torch(mutant: Mutant, copy: Path, names: Sequence[str]) -> str:
    """Return the first of these tests that the fault makes fail in .venv-torch, or ""."""
    folder = mutant.file.split("/")[1]
    word = re.compile(rf"\b{Path(mutant.file).stem}\b")
    files = [
        name
        for name in names
        if f"calc/{folder}/test_" in name
        and word.search((copy / "tests" / "calc" / name).read_text("utf-8"))
    ]

    def failing(*asked: str) -> str:
        command = [
            str(TORCH),
            "-m",
            "pytest",
            "-xqrfE",
            "-m",
            "not nightly",
            "-p",
            "no:cacheprovider",
        ]
        done = subprocess.run(
            [*command, *(f"tests/calc/{name}" for name in asked)],
            cwd=copy,
            env=os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
        )
        match = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        return match[1] if match and done.returncode in FAILED else ""

    if not files:
        return ""
    with planted(mutant, copy):
        test = failing(*files)
    return "" if not test or failing(f"../../{test}") else test


def kind_of(mutant: Mutant) -> str:
    """The folder of `calc` or beside it that a fault is in, or the file or folder of its data."""
    first, folder, *below = mutant.file.split("/")
    if first in BESIDE:
        return first
    name = below[0]
    return f"data/{name.partition('.')[0]}" if folder == "data" else folder


def is_quoted(mutant: Mutant) -> bool:
    """Return whether pages print numbers of where a fault is, in words of their own."""
    return kind_of(mutant) not in (*CODE, *BESIDE, *OF_ROWS)


def function_at(file: str, line: int) -> str:
    """The name of the outermost function that a line of a module is in; "" for none.

    >>> function_at("benchmarks/mutations.py", 1)
    ''
    """
    if not file.endswith(".py"):
        return ""
    tree = ast.parse((REPOSITORY / file).read_text("utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    around = [each for each in functions if each.lineno <= line <= (each.end_lineno or 0)]
    return min(around, key=lambda each: each.lineno).name if around else ""


def own_tests(file: str, line: int) -> list[str]:
    """Return a module's examples and the tests that name it or the function of a line.

    First come those of the module's name, then those that name the function, then the short.
    """
    name = Path(file).stem.replace("__init__", Path(file).parent.name)
    tests = REPOSITORY / "tests" / BESIDE.get(file.split("/")[0], "calc")
    files = [*tests.rglob("test_*.py"), *(REPOSITORY / "tests").glob("test_*.py")]
    folder = "" if file.startswith("press/") else file.split("/")[1]
    beside = [*(tests / folder).rglob("test_*.py")]  # of the same folder
    texts = {path: path.read_text("utf-8") for path in files}
    module, function = (
        {path for path, text in texts.items() if re.search(rf"\b{word}\b", text)}
        for word in (name, function_at(file, line) or name)
    )
    named = sorted(
        module | function, key=lambda at: (name not in at.stem, at not in function, len(texts[at]))
    )
    named += sorted({*beside} - {*named}, key=lambda at: len(texts[at]))
    nearest = [f"../{path.relative_to(REPOSITORY / 'tests').as_posix()}" for path in named]
    if file.startswith("figures/live/"):
        nearest = ["../live/test_live.py", *nearest]
    elif file.startswith("figures/"):
        drawn = "\n@style.drawn_twice\n" in (REPOSITORY / file).read_text("utf-8")
        nodes = [f"{DRAWINGS}::{test}[{name}]" for test in OF_FIGURES] if drawn else [DRAWINGS]
        nearest = [*nodes, *nearest]
    return [f"../../{file}", *nearest]


def published() -> dict[str, list[str]]:
    """The rows of tables, once every published value has been found right."""
    ledger = importlib.import_module("tests.book.test_ledger")
    tables = importlib.import_module("tools.ledger.chapter_tables")
    ledger.test_values_and_witnesses_agree()
    ledger.test_each_table_has_a_row_by_hand()
    rows: dict[str, list[str]] = tables.rows()
    return rows


def alt_texts_change() -> bool:
    """Return whether `python -m tools.pages.alt_texts` would write other words under a figure."""
    written = importlib.import_module("tools.pages.alt_texts").pages()
    return any(Path(name).read_text(encoding="utf-8") != text for name, text in written.items())


class Teller:
    """A plugin that writes down which test began last, or which file could not be collected.

    Nothing begins where what all tests share cannot be imported.
    """

    began = False

    def pytest_sessionstart(self) -> None:
        self.began = True

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        TOLD.write_text(nodeid, encoding="utf-8")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            TOLD.write_text(report.nodeid, encoding="utf-8")


def fails(names: Sequence[str], but: Sequence[str] = ()) -> bool:
    """Return whether one of these tests fails, or one of `calc` if none are named."""
    import pytest

    files = [str(Path("tests/calc") / name) for name in names] or [
        *map(str, sorted(Path("tests/calc").rglob("test_*.py"))),
        "calc",
    ]
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(10 * SECONDS)  # what waits for ever
    there = [name for name in files if Path(name.partition("::")[0]).exists()]
    left_out = [f"--deselect={name}" for name in but]
    asked = ["-x", "-q", "-p", "no:cacheprovider", *left_out, *there]
    teller = Teller()
    ended = pytest.main(asked, plugins=[teller])
    return bool(there) and (ended in FAILED or not teller.began)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--number", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--after", type=int, default=0, help="leave out so many, tried before")
    parser.add_argument("--of", nargs="+", choices=faults(), help="of these files or folders alone")
    parser.add_argument("--quick", action="store_true", help="leave out all tests of calc")
    asked = parser.parse_args()
    kinds = faults()
    mutants = chosen({name: kinds[name] for name in asked.of or kinds}, asked.number, asked.seed)
    mutants = mutants[asked.after :]
    for name in COMMON:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as scratch:
        unnoticed = list(survivors(mutants, copied(Path(scratch) / "copy"), asked.quick))
    print(f"{len(unnoticed)} of {len(mutants)} faults are noticed by nothing")
    for mutant in unnoticed:
        print(f"  {mutant}")


if __name__ == "__main__":
    main()
