"""Imports among modules, what is loaded for a first answer, and life without numpy."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import calc
from calc.core.public import modules

ROOT = Path(__file__).resolve().parents[2]

# Each folder of the library may import what stands before it.
FLOORS = [
    {"core"},
    {"formats"},
    {"catalog"},
    {"laws"},
    {"networks"},
    {"steps"},
    {"published", "simulation", "codesign"},
    {"planning", "measure"},
    {"derivations", "commands"},
    {"__main__"},
]
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
# What the arrows between the parts of the repository allow beside a part itself.
PARTS = {
    "calc": set(),
    "figures": {"calc", "figures.live"},
    "figures.live": {"calc"},
    "tools.pages": {"calc", "figures", "figures.live"},
    "tools.ledger": {"calc", "press", "tools.pages"},
    "press": set(),
}
Fresh = Callable[[str], str]  # the fixture that runs a snippet in a fresh interpreter
HEAVY = {"matplotlib", "pandas", "scipy", "torch", "IPython"}


@cache
def imported(path: Path) -> list[tuple[str, bool]]:
    """The modules a file imports, in full, and whether it does so on being imported itself."""
    return list(_imported(path))


def _imported(path: Path) -> Iterator[tuple[str, bool]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_once = {id(each) for each in tree.body}
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, id(node) in at_once) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(ROOT).parent.parts
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            base += [node.module] if node.module else []
            # `from calc import roofline` and `from calc.core.units import x`
            yield from ((".".join([*base, each.name]), id(node) in at_once) for each in node.names)


def statements(within: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements, at any depth, without expressions, in which nothing is imported."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        nodes = getattr(within, part, ())
        for node in nodes if isinstance(nodes, list) else ():
            yield node
            yield from statements(node)


def part_of(module: str) -> str:
    """The innermost part of the repository that a module lies in, "" for one from elsewhere."""
    parts = {*PARTS, "tests", "benchmarks", "experiments"}
    return max((part for part in parts if f"{module}.".startswith(f"{part}.")), key=len, default="")


@pytest.mark.parametrize("part", PARTS)
def test_arrows_between_the_parts(part: str) -> None:
    for path in sorted((ROOT / part.replace(".", "/")).rglob("*.py")):
        if part_of(".".join(path.relative_to(ROOT).with_suffix("").parts)) == part:
            for name, _ in imported(path):
                assert part_of(name) in {*PARTS[part], part, ""}, path


def test_arrows_within_the_library() -> None:
    for path in sorted((ROOT / "calc").rglob("*.py")):
        room = path.relative_to(ROOT / "calc").parts[0].removesuffix(".py")
        if room == "__init__":
            continue  # the front door: it names every module and imports each when it is used
        for name, _ in imported(path):
            top, _, rest = name.partition(".")
            other = rest.split(".")[0]
            if top == "calc" and other in FLOOR and other != room:
                assert FLOOR[other] < FLOOR[room], f"{path} imports calc.{other}"


def test_every_folder_of_the_library_has_its_floor() -> None:
    modules = {path.stem for path in (ROOT / "calc").glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in (ROOT / "calc").glob("*/__init__.py")}
    assert modules | packages == set(FLOOR)


def test_the_floors_are_those_that_are_drawn() -> None:
    """The picture of ARCHITECTURE.md, from below: a line a floor, its rooms between dots."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    drawn = re.findall(r"^│ (\w+(?: · \w+)*) {2,}\S", text, re.MULTILINE)
    assert [set(line.split(" · ")) for line in reversed(drawn)] == FLOORS[:-1]


def test_every_module_stands_in_the_list_of_its_folder() -> None:
    shown = set(modules("calc").values())
    for folder in ("catalog", "laws", "networks", "steps"):
        files = [*(ROOT / "calc" / folder).glob("*.py"), *(ROOT / "calc" / folder).glob("*/")]
        there = {f"calc.{folder}.{path.stem}" for path in files if path.stem[0] != "_"}
        assert there == {module for module in shown if module.startswith(f"calc.{folder}.")}


def test_the_library_imports_pint_and_the_standard_library_alone() -> None:
    folders = ("core", "formats", "catalog", "laws", "networks", "steps")
    for path in (each for folder in folders for each in (ROOT / "calc" / folder).rglob("*.py")):
        for name, at_once in imported(path):
            top = name.split(".")[0]
            assert not at_once or top in {"calc", "pint", "__future__"} | sys.stdlib_module_names


def test_a_first_answer_loads_no_more_than_it_needs(fresh_python: Fresh) -> None:
    code = """if True:
        import sys, calc
        assert str(calc.hardware.H100.ridge_point("fp16")) == "295.2 FLOP/byte"
        assert not {"calc.planning", "calc.steps", "calc.laws.cost"} & set(sys.modules)
        print(*{name.split(".")[0] for name in sys.modules})
    """
    loaded = set(fresh_python(code).split())
    tops = "print(*{name.split('.')[0] for name in sys.modules})"
    before = set(fresh_python(f"import sys, pint; {tops}").split())
    unwanted = HEAVY | {"click", "rich", "typer", "yaml", "pydantic", "argparse"}
    assert not loaded & unwanted - before
    third_party = loaded - before - set(sys.stdlib_module_names)
    assert {name for name in third_party if not name.startswith("_")} <= {"calc"}


def test_without_numpy_numbers_still_work() -> None:
    code = """if True:
        import sys
        class NoNumpy:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] == "numpy":
                    raise ImportError("there is no numpy here")
        sys.meta_path.insert(0, NoNumpy())
        import copy, pickle
        import calc
        from calc import quantity
        assert "numpy" not in sys.modules
        print(calc.hardware.H100.ridge_point("fp16"))
        print(calc.roofline.attainable("989 TFLOP/s", "3.35 TB/s", "1 FLOP/byte"))
        print(calc.roofline.bound("989 TFLOP/s", "3.35 TB/s", "1 FLOP/byte"))
        print(calc.scaling.amdahl_limit(0), calc.scaling.amdahl(0.05, 8))
        print(calc.formats.FP8_E4M3.max, calc.formats.MXFP4.size)
        print(calc.queueing.max_throughput("24 GB", "1 GB/request", "50 ms"))
        print(calc.links.round_trip_time("6000 km"), calc.training.inference_flops("7B param"))
        print(pickle.loads(pickle.dumps(copy.copy(quantity("3 GB")))) + quantity("1 GB"))
        print(quantity("3 GB") == quantity("3000 MB"), f"{round(quantity('3.4 GB')):.1f}")
        for name, law in calc.all_laws().items():
            assert law.__doc__
        for wrong in (lambda: quantity([1, 2], "GB"), lambda: calc.scaling.amdahl(None, 8),
            lambda: calc.training.training_flops([1e9], 1), lambda: calc.formats.FP16.round(1),
            lambda: calc.quantization.affine([1.0]), lambda: calc.quantization.affine(1.0)):
            try:
                wrong()
            except calc.InputError as refusal:
                print(refusal)
        assert "numpy" not in sys.modules
    """
    no_lists = "a list of numbers needs numpy, which is not installed: pip install numpy"
    command = [sys.executable, "-c", code]  # a process that has not seen pint load numpy
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "295.2 FLOP/byte",
        "3.35 TFLOP/s",
        "memory",
        "∞ 5.926",
        "448.0 0.5312 byte",
        "480 request/s",
        "60 ms 14 GFLOP",
        "4 GB",
        "True 3.0 GB",
        no_lists,
        "amdahl(): serial_fraction needs a pure number; got None",
        f"training_flops(): parameters: {no_lists}",
        "a number format rounds, encodes and decodes with numpy, which is not installed",
        no_lists,
        "quantization needs numpy, which is not installed",
    ]


@pytest.mark.parametrize(
    ("package", "use", "who", "extra"),
    [
        ("numpy", "import calc.simulation", "calc.simulation", "simulation"),
        ("numpy", "import calc.measure", "calc.measure", "measure"),
        ("polars", "calc.simulation.write_table(0, 'rows.csv')", "a table of rows", "simulation"),
        ("sklearn", "calc.simulation.digits()", "digits()", "simulation"),
        ("tomli_w", "calc.measure.record.record_text(0, '')", "a record of a machine", "measure"),
    ],
)
def test_a_missing_extra_is_told_with_what_brings_it(
    package: str, use: str, who: str, extra: str, fresh_python: Fresh
) -> None:
    code = f"""if True:
        import sys, calc
        sys.modules["{package}"] = None
        try:
            {use}
        except calc.core.errors.MissingExtraError as refusal:
            print(refusal)
    """
    needed = package.replace("sklearn", "scikit-learn").replace("_", "-")
    assert fresh_python(code) == (
        f"{who} needs {needed}, which is not installed;"
        f' pip install "machine-foundations[{extra}]", or ".[{extra}]" in the checkout\n'
    )


WAYS = (
    "import calc.{0}; module = calc.{0}",
    "import calc.{0} as module",
    "from calc import {0} as module",
    "import calc; module = calc.{0}",
    "import importlib; module = importlib.import_module('{1}')",
    "import {1}; from calc import {0} as module",
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["roofline", "hardware", "planning"])
def test_every_way_to_a_module(way: str, name: str, fresh_python: Fresh) -> None:
    """Each is the first of its interpreter, which no module of calc is loaded in."""
    code = f"""if True:
        import sys
        {way.format(name, modules("calc")[name])}
        import calc, importlib, calc.core.law
        laws = {{*calc.core.law.LAWS.values()}}
        assert module is sys.modules[{modules("calc")[name]!r}] is calc.{name}
        assert module is importlib.import_module("calc.{name}")
        assert module.__spec__.loader is module.__loader__
        assert laws == {{*calc.core.law.LAWS.values()}}  # nothing ran twice
    """
    fresh_python(code)


def test_every_module_has_its_short_name(fresh_python: Fresh) -> None:
    code = """if True:
        import calc, importlib, sys
        from calc.core.public import modules
        for name, place in modules("calc").items():
            if name not in ("codesign", "derivations"):  # which need torch, and seconds
                module = importlib.import_module(f"calc.{name}")
                assert module is getattr(calc, name) is sys.modules[place]
                assert module.__name__ == module.__spec__.name == place
                assert name in dir(calc)
    """
    fresh_python(code)


def test_names_of_a_module_by_its_short_name(fresh_python: Fresh) -> None:
    code = """if True:
        from calc.timing import step
        from calc.hardware import H100, Accelerator
        import calc.roofline, pickle, calc
        assert step is calc.step is calc.timing.step
        assert H100 is calc.hardware.H100 and isinstance(H100, Accelerator)
        assert pickle.loads(pickle.dumps(calc.roofline.ridge_point)) is calc.roofline.ridge_point
        for wrong in ("calc.plan", "calc.rooflines", "calc.planning.serve"):
            try:
                __import__(wrong)
            except ModuleNotFoundError as error:
                print(error)
    """
    assert fresh_python(code).splitlines() == [
        f"No module named '{name}'"
        for name in ("calc.plan", "calc.rooflines", "calc.planning.serve")
    ]


def test_threads_that_import_one_module_get_one(fresh_python: Fresh) -> None:
    code = """if True:
        import sys, threading
        sys.setswitchinterval(1e-6)
        import calc
        found, start = [], threading.Barrier(16)
        def look(way):
            start.wait()
            names = {}
            exec(way, names)
            found.append(names["ridge_point"])
        ways = [f"from calc.{name} import ridge_point" for name in ("roofline", "laws.roofline")]
        threads = [threading.Thread(target=look, args=(ways[i % 2],)) for i in range(16)]
        for each in threads: each.start()
        for each in threads: each.join()
        print(len(found), len(set(found)))
    """
    assert fresh_python(code) == "16 1\n"


def test_nothing_is_put_into_a_module_from_outside() -> None:
    source = (ROOT / "calc/laws/energy.py").read_text(encoding="utf-8")
    assert not {"__all__", "__dir__"} & {*vars(calc.energy)}
    assert "__dir__" not in source
    assert type(calc) is type(sys)
    assert calc.laws.__name__ == "calc.laws"


def test_dir() -> None:
    assert {"arithmetic_energy", "energy_of_run", "movement_energy"} <= {*dir(calc.energy)}
    assert "H100" in dir(calc.hardware)
    assert "Path" not in dir(calc.constants)


@pytest.mark.slow
def test_a_type_checker_follows_every_way(tmp_path: Path) -> None:
    lines = ["import calc", "from calc.timing import step", "from calc.hardware import H100"]
    lines += [f"import calc.{name}" for name in calc.SUBMODULES]
    lines += ["reveal_type(H100)", "reveal_type(calc.hardware.A100)", "reveal_type(step)"]
    lines += ["reveal_type(calc.roofline.ridge_point)", "calc.roofline.nothing"]
    (tmp_path / "used.py").write_text("\n".join(lines), encoding="utf-8")
    options = "--config-file=", "--follow-imports=silent"  # faults of these lines alone
    command = [sys.executable, "-m", "mypy", *options, tmp_path / "used.py"]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout.splitlines()
    types = [line.partition('"')[2] for line in said if "Revealed" in line]
    assert types[:2] == ['calc.catalog.hardware.Accelerator"'] * 2
    assert types[2].startswith("def (job: ")
    assert types[3].startswith("def (peak: ")
    [fault] = [line for line in said if "error:" in line]
    assert 'Module has no attribute "nothing"' in fault


def test_the_front_door(fresh_python: Fresh) -> None:
    for name in calc.__all__:
        assert getattr(calc, name)
        assert name in dir(calc)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        calc.nothing  # noqa: B018
    assert fresh_python("from calc import *; print(quantity('3 GB'))") == "3 GB\n"
