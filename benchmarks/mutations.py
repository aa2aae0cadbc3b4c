"""Whether a wrong number would be noticed: changes one at a time, and says which nobody misses.

    python -m benchmarks.mutations
    python -m benchmarks.mutations --number 200 --seed 7 --of devices

Numbers are taken by turns from constants, devices, models, training runs, measured data and
derivations, made a third larger in a copy of the checkout, and looked for by what is fastest: the
tests of that kind of data, the published values, the hand-checked rows of tables, the alt texts
that `python -m tools.pages` writes, and only then all tests of `calc`, until one tells. What
survives stands in the list at the end, with file and line. A seed always chooses the same numbers
in the same order, so `--after 20` goes on where a run ended that had tried 20 of them.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
ROWS = Path("hand-checked-rows.json")  # of the copy, as things stand
NUMBER = r"-?\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?"
FIELD = re.compile(rf"(?:^|[{{,]\s*)(?!year\b)\w+ = ({NUMBER})(?=\s*(?:$|[,}}#]))")
CELL = re.compile(rf"(?:(?<=,)|(?<=: )|^)({NUMBER})(?=[,}}]|$)")
QUANTITY = re.compile(rf"({NUMBER})(?=[ %]|$)")
TESTS = {  # of each kind of data, under tests/calc
    "constants": ["test_second_entries.py", "test_constants.py"],
    "accelerators": ["test_device_parts.py", "test_hardware.py"],
    "models": ["test_models.py", "test_second_entries.py"],
    "training_runs": ["test_second_entries.py", "test_training_runs.py"],
    "measured": ["measure/test_stored.py"],
}
# What all children import, once.
COMMON = ["numpy", "polars", "pint", "pytest", "scipy.special", "sklearn.datasets", "matplotlib"]


@dataclass(frozen=True)
class Mutant:
    """One number of a file and what stands there instead."""

    file: str
    line: int
    start: int
    old: str

    @property
    def new(self) -> str:
        if re.fullmatch(r"-?[\d_]+", self.old):
            value = int(self.old)
            return str(value + max(1, round(abs(value) / 3)))
        return f"{float(self.old) * 4 / 3 or 1:.6g}"

    def apply(self, folder: Path) -> None:
        path = folder / self.file
        lines = path.read_text(encoding="utf-8").split("\n")
        text = lines[self.line - 1]
        lines[self.line - 1] = text[: self.start] + self.new + text[self.start + len(self.old) :]
        path.write_text("\n".join(lines), encoding="utf-8")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.old} → {self.new}"


def in_lines(pattern: re.Pattern[str], *files: str) -> Iterator[Mutant]:
    for file in files:
        for number, line in enumerate((REPOSITORY / file).read_text("utf-8").split("\n"), 1):
            if not line.startswith("#"):
                for match in pattern.finditer(line):
                    yield Mutant(file, number, match.start(1), match[1])


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
                source = lines[node.lineno - 1][node.col_offset : end].decode()
                pattern = QUANTITY if isinstance(node.value, str) else re.compile(f"({NUMBER})$")
                if match := pattern.match(source.removeprefix('"').removesuffix('"')):
                    quote = source.startswith('"')
                    yield Mutant(file, node.lineno, node.col_offset + quote, match[1])


def numbers() -> dict[str, list[Mutant]]:
    data, derivations = "calc/data", REPOSITORY / "calc" / "derivations"
    measured = sorted((REPOSITORY / data / "measured").iterdir())
    names = [path.relative_to(REPOSITORY).as_posix() for path in measured]
    return {
        "constants": list(in_lines(FIELD, f"{data}/constants.toml")),
        "devices": list(in_lines(FIELD, f"{data}/accelerators.toml")),
        "models": list(in_lines(FIELD, f"{data}/models.toml")),
        "runs": list(in_lines(FIELD, f"{data}/training_runs.toml")),
        "measured": [
            mutant
            for name in names
            for mutant in in_lines(FIELD if name.endswith(".toml") else CELL, name)
        ],
        "derivations": [
            mutant
            for path in sorted(derivations.glob("*.py"))
            for mutant in in_classes(path.relative_to(REPOSITORY).as_posix())
        ],
    }


def chosen(kinds: dict[str, list[Mutant]], number: int, seed: int) -> list[Mutant]:
    """By turns from each kind, in an order of the seed's."""
    chance = random.Random(seed)
    shuffled = [chance.sample(mutants, len(mutants)) for mutants in kinds.values()]
    return [mutant for turn in zip_longest(*shuffled) for mutant in turn if mutant][:number]


def in_child(folder: Path, task: Callable[[], object]) -> bool:
    """Whether a task fails in a copy of this process that imports the project from `folder`."""
    child = os.fork()
    if child:
        return bool(os.waitpid(child, 0)[1])
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(folder)
    sys.dont_write_bytecode = True
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
    for kind, names in TESTS.items():
        if in_child(copy, partial(fails, names)):
            raise SystemExit(f"tests of {kind} fail as things stand: {', '.join(names)}")
    if in_child(copy, lambda: ROWS.write_text(json.dumps(published()), encoding="utf-8") and None):
        raise SystemExit("a published value is wrong as things stand: run tests/book")
    for number, mutant in enumerate(mutants, 1):
        path = copy / mutant.file
        kept = path.read_bytes()
        mutant.apply(copy)
        stages: dict[str, Callable[[], object]] = {
            kind: partial(fails, TESTS[kind]) for kind in TESTS if kind in mutant.file
        }
        stages["published"] = lambda: published() != json.loads(ROWS.read_text("utf-8"))
        stages["pages"] = alt_texts_change
        if not quick:
            stages["calc"] = partial(fails, [])
        by = next((name for name, stage in stages.items() if in_child(copy, stage)), "")
        path.write_bytes(kept)
        print(f"{number}/{len(mutants)} {mutant}: {by or 'NOT NOTICED'}", file=sys.stderr)
        if not by:
            yield mutant


def published() -> dict[str, list[str]]:
    """The hand-checked rows of tables, once every published value has been found right."""
    book = importlib.import_module("tests.book.test_published")
    tables = importlib.import_module("tests.book.tables")
    book.test_calc_agrees_with_the_independent_origins()
    first = {name: " ".join(entry["row"].split()) for name, entry in book.TABLES.items()}
    return {
        name: [row for row in rows if tables.plain(row).startswith(first[name])]
        for name, rows in tables.rows().items()
    }


def alt_texts_change() -> bool:
    """Whether `python -m tools.pages` would write other words under a figure."""
    written = importlib.import_module("tools.pages.alt_texts").pages()
    return any(Path(name).read_text(encoding="utf-8") != text for name, text in written.items())


def fails(names: list[str]) -> bool:
    """Whether one of these tests does, or one of `calc` if none are named."""
    import pytest

    found = [str(Path("tests/calc") / name) for name in names] or [
        *map(str, sorted(Path("tests/calc").glob("test_*.py"))),
        "calc",
    ]
    there = [name for name in found if Path(name).exists()]
    return bool(there and pytest.main(["-x", "-q", "-p", "no:cacheprovider", *there]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--number", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--after", type=int, default=0, help="leave out so many, tried before")
    parser.add_argument("--of", choices=numbers(), help="numbers of one kind alone")
    parser.add_argument("--quick", action="store_true", help="leave out all tests of calc")
    asked = parser.parse_args()
    kinds = numbers()
    mutants = chosen({asked.of: kinds[asked.of]} if asked.of else kinds, asked.number, asked.seed)
    mutants = mutants[asked.after :]
    for name in COMMON:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((REPOSITORY / name).read_bytes())
        unnoticed = list(survivors(mutants, copy, asked.quick))
    print(f"{len(unnoticed)} of {len(mutants)} changed numbers are noticed by nothing")
    for mutant in unnoticed:
        print(f"  {mutant}")


if __name__ == "__main__":
    main()
