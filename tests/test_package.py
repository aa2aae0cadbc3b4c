"""The package that people install: its wheel in a bare environment, and the conda recipe."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
import yaml

from calc.core.public import modules

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IN_A_BARE_ONE = """
import json, sys
before = set(sys.modules)
import calc
ridge = str(calc.hardware.H100.ridge_point("fp16"))
modules = {name.split(".")[0] for name in set(sys.modules) - before}
others = sorted(modules - set(sys.stdlib_module_names))
print(json.dumps({"modules": others, "home": calc.__file__, "ridge": ridge}))
"""


def run(*words: str | Path, cwd: Path) -> str:
    """Return the text that a command prints, far from the checkout and what it names."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [*map(str, words)], cwd=cwd, env=clean, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    quiet = ("-q", "--no-deps", "--no-build-isolation", "--wheel-dir", ".")
    run(sys.executable, "-m", "pip", "wheel", *quiet, ROOT, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


def elsewhere() -> list[str]:
    """The modules that `import calc` shows and that lie in a folder of it."""
    places = modules("calc").items()
    return [name for name, path in places if path != f"calc.{name}"]


@pytest.mark.slow
def test_the_wheel_holds_the_library_with_its_data_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        message = Parser().parsestr(archive.read(metadata).decode())
    tops = {name.split("/")[0] for name in names}
    assert tops == {"calc", metadata.split("/")[0]}
    listed = ["git", "ls-files", "calc"]
    tracked = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    missing = set(tracked.stdout.split()) - names
    assert missing == set()
    stubs = {name.split("/")[1] for name in names if re.fullmatch(r"calc/\w+\.pyi", name)}
    assert stubs == {"__init__.pyi", *(f"{name}.pyi" for name in elsewhere())}
    assert "calc/data/references.bib" in names
    assert message["Name"] == "machine-foundations"
    assert len(message.get_all("Classifier")) > 10
    assert "# Machine Foundations" in message.get_payload()
    assert {"completion", "planning"} <= set(message.get_all("Provides-Extra"))


@pytest.mark.slow
def test_the_wheel_runs_in_a_bare_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=True)
    programs = tmp_path / "bare" / ("Scripts" if os.name == "nt" else "bin")
    run(programs / "python", "-m", "pip", "install", "-q", wheel, cwd=tmp_path)
    facts = json.loads(run(programs / "python", "-c", IN_A_BARE_ONE, cwd=tmp_path))
    needed = {"calc", "pint", "flexcache", "flexparser", "platformdirs", "typing_extensions"}
    assert set(facts["modules"]) <= needed
    assert {"calc", "pint"} <= set(facts["modules"])
    assert Path(facts["home"]).is_relative_to(tmp_path)
    assert facts["ridge"] == "295.2 FLOP/byte"
    for program in ("calc", "machine-foundations"):
        plan = ("plan", "llama-3-70b", "h100", "--prompt=1000", "--generated=200")
        assert "Llama 3 70B" in run(programs / program, *plan, cwd=tmp_path)
        assert "Tensor Core GPU: Datasheet" in run(programs / program, "show", "h100", cwd=tmp_path)
    install = ("-m", "pip", "install", "-q", f"{wheel}[completion]")
    run(programs / "python", *install, cwd=tmp_path)
    assert "plan-service" in run(programs / "calc", "completion", "bash", cwd=tmp_path)


def test_the_conda_recipe_says_what_the_project_does() -> None:
    recipe = yaml.safe_load((ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8"))
    assert recipe["package"] == {"name": PROJECT["name"], "version": PROJECT["version"]}
    scripts = {f"{name} = {called}" for name, called in PROJECT["scripts"].items()}
    assert set(recipe["build"]["entry_points"]) == scripts
    needed = {f"python {PROJECT['requires-python']}"}
    needed |= {text.replace("pint", "pint ", 1) for text in PROJECT["dependencies"]}
    assert set(recipe["requirements"]["run"]) == needed
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["license"] == PROJECT["license"]
