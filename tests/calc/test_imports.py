"""Who imports whom, what is loaded for a first answer, and life without numpy."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import calc

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
    "tools.pages": {"calc", "figures"},
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
    """All statements, at any depth: without expressions, in which nothing is imported."""
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
        own = path.relative_to(ROOT / "calc").parts[0].removesuffix(".py")
        if own == "__init__":
            continue  # the front door: it names every module and imports each when it is used
        for name, _ in imported(path):
            top, _, rest = name.partition(".")
            other = rest.split(".")[0]
            if top == "calc" and other in FLOOR and other != own:
                assert FLOOR[other] < FLOOR[own], f"{path} imports calc.{other}"


def test_every_folder_of_the_library_has_its_floor() -> None:
    modules = {path.stem for path in (ROOT / "calc").glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in (ROOT / "calc").glob("*/__init__.py")}
    assert modules | packages == set(FLOOR)


def test_every_module_stands_in_the_list_of_its_folder() -> None:
    for folder, names in calc.FOLDERS.items():
        files = [*(ROOT / "calc" / folder).glob("*.py"), *(ROOT / "calc" / folder).glob("*/")]
        modules = {path.stem for path in files} - {"__init__", "__pycache__"}
        assert not names or modules == {*names}, f"calc/{folder}: mend FOLDERS in calc/__init__.py"


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
        for name, law in calc.laws().items():
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


def test_every_way_to_a_module(fresh_python: Fresh) -> None:
    """Each is the first of its interpreter, which no other module of calc is loaded in."""
    code = f"""if True:
        import os, sys, calc
        for name in {list(calc.SUBMODULES)}:
            if not (child := os.fork()):
                exec(f"from calc import {{name}} as module")
                assert module is getattr(calc, name) is sys.modules[module.__name__]
                os._exit(0)
            if os.waitpid(child, 0)[1]:
                print(name)
    """
    assert fresh_python(code) == ""
    assert {*calc.SUBMODULES} <= {*dir(calc)}


@pytest.mark.parametrize("name", sorted({*calc.SUBMODULES} - {"codesign"}))  # which needs torch
def test_a_module_shows_what_it_defines(name: str) -> None:
    module = getattr(calc, name)
    for each in dir(module):
        value = getattr(module, each)
        assert not inspect.ismodule(value)
        assert each[0] != "_"
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__module__.startswith(module.__name__), f"calc.{name}.{each} is imported"
    shown: dict[str, Any] = {}
    exec(f"from {module.__name__} import *", shown)
    assert shown.keys() - {"__builtins__"} <= set(dir(module))


def test_dir_of_laws() -> None:
    assert {"arithmetic_energy", "energy_of_run", "movement_energy"} <= {*dir(calc.energy)}
    assert "quantity" not in dir(calc.energy)
    assert "H100" in dir(calc.hardware)
    assert "Path" not in dir(calc.constants)


def test_the_laws_are_a_function_and_a_folder(fresh_python: Fresh) -> None:
    code = "from calc.laws import roofline; import calc; print(len(calc.laws()), roofline.__name__)"
    assert fresh_python(code) == f"{len(calc.laws())} calc.laws.roofline\n"


def test_the_front_door(fresh_python: Fresh) -> None:
    for name in calc.__all__:
        assert getattr(calc, name)
        assert name in dir(calc)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        calc.nothing  # noqa: B018
    assert fresh_python("from calc import *; print(quantity('3 GB'))") == "3 GB\n"
