"""Python for the browser: the folder `runtime` of a site, where a page has live figures.

The npm packages that `press/runtime/package-lock.json` names by their digests run it, and it holds
the wheel of the project, what that requires as it is installed here, and the package of models
that `live` in `_quarto.yml` names. From a disk a page may load no file but a script, so that each
part is one, gzip in base64. Where npm is missing the site has its static figures.
"""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from press.book_files import FOLDER, PRESS, copy_folder, file_digest, files_below
from press.build_memory import digest
from press.edition import Edition
from press.problems import stop
from press.reading.project import Book, package_folder

RUNTIME = "runtime"
OWN = PRESS / "runtime"
SCRIPTS = ("pyodide/pyodide.js", "pyodide/pyodide.asm.js")
DRAWING = ("d3/dist/d3.min.js", "@observablehq/plot/dist/plot.umd.min.js")
NO_SOURCE = (".so", ".pyd", ".dylib")
UNREAD = ("__pycache__", "testsuite", "RECORD", "INSTALLER", "REQUESTED", "direct_url.json")


def packed_runtime(book: Book, edition: Edition) -> Path | None:
    """Return the folder of the packed runtime; None where there is none."""
    if not book.live:
        return None
    kept = book.root / FOLDER / RUNTIME
    folder = kept / digest(*_made_from(book, edition))[:16]
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=_empty(kept)) as scratch:
            if not _packed(book, edition, Path(scratch)):
                return None
            (Path(scratch) / "packed").rename(folder)
    return folder


def write_runtime(packing: Future[Path | None], folder: Path) -> bool:
    """Copies the runtime into the site once it is packed, and says whether there is one."""
    packed = packing.result()
    if packed:
        copy_folder(packed, folder / RUNTIME)
    return packed is not None


def _made_from(book: Book, edition: Edition) -> Iterator[object]:
    """Yield all that the runtime depends on, so that it is packed again when that changes."""
    for folder in [*(book.root / package for package in edition.packages), book.live_folder]:
        yield files_below(folder)
    files = (*_around(book), book.root / "pyproject.toml", *book.bibliography)
    yield [file_digest(file) for file in files]
    yield files_below(OWN), file_digest(__file__)
    yield sorted((package.name, package.version) for package in metadata.distributions())


def _empty(kept: Path) -> Path:
    """The folder, without what an earlier build packed; what npm brought stays."""
    kept.mkdir(exist_ok=True)
    for old in kept.iterdir():
        if not old.name.startswith("npm-"):
            shutil.rmtree(old)
    return kept


def _packed(book: Book, edition: Edition, scratch: Path) -> bool:
    modules = _npm_packages(book.root / FOLDER / RUNTIME)
    if modules is None:
        return False
    site, packed = scratch / "site", scratch / "packed"
    site.mkdir()
    packed.mkdir()
    if edition.distribution:
        _add_project(book.root, site)
        if book.live_without:
            shutil.rmtree(package_folder(site, book.live_without))
    _add_models(book, site)
    shutil.copyfile(OWN / "pack.cjs", modules.parent / "pack.cjs")
    done = _run("node", modules.parent / "pack.cjs", scratch)
    if done.returncode:
        _say(f"node could not pack it: {_last_line(done)}")
        return False
    for script in SCRIPTS:
        shutil.copyfile(modules / script, packed / Path(script).name)
    drawing = "\n".join((modules / script).read_text(encoding="utf-8") for script in DRAWING)
    (packed / "drawing.js").write_text(drawing, encoding="utf-8")
    _write_part(packed, "pyodide.asm.wasm", modules / "pyodide" / "pyodide.asm.wasm")
    for name in ("library.zip", "site.zip", "lock.json"):
        _write_part(packed, name, scratch / name)
    (packed / "LICENSES.txt").write_text(_licenses(modules), encoding="utf-8")
    return True


def _npm_packages(kept: Path) -> Path | None:
    """The folder of the packages, which npm checks against the digests of the lock."""
    folder = kept / f"npm-{file_digest(OWN / 'package-lock.json')[:16]}"
    modules = folder / "node_modules"
    if (modules / ".package-lock.json").is_file():
        return modules
    if not shutil.which("npm") or not shutil.which("node"):
        _say("node and npm bring it, and they are not on PATH.")
        return None
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(OWN / name, folder / name)
    done = _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", folder=folder)
    if done.returncode:
        shutil.rmtree(folder)
        _say(f"npm could not bring it: {_last_line(done)}")
        return None
    return modules


def _add_project(root: Path, site: Path) -> None:
    """The project as its wheel has it, and what it requires."""
    with tempfile.TemporaryDirectory() as wheels:
        command = "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"
        done = _run(sys.executable, *command, "--wheel-dir", wheels, root)
        wheel_files = list(Path(wheels).glob("*.whl"))
        if done.returncode or not wheel_files:
            stop(f"pip could not make the project's wheel: {_last_line(done)}", "pyproject.toml")
        shutil.unpack_archive(wheel_files[0], site, "zip")
    (about,) = site.glob("*.dist-info")
    needed = metadata.Distribution.at(about).requires or []
    added: set[str] = set()
    while needed:
        requirement = Requirement(needed.pop())
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in added:
            added.add(requirement.name)
            needed += _add_installed(requirement.name, site)
    for unread in [path for path in site.rglob("*") if path.name in UNREAD]:
        shutil.rmtree(unread) if unread.is_dir() else unread.unlink()


def _add_models(book: Book, site: Path) -> None:
    """The package of models, within the packages that it lies in, of which it takes no more."""
    target = site / book.live_folder.relative_to(book.root)
    shutil.copytree(book.live_folder, target, ignore=shutil.ignore_patterns(*UNREAD))
    for file in _around(book):
        shutil.copyfile(file, site / file.relative_to(book.root))


def _around(book: Book) -> list[Path]:
    """The files that make packages of the folders around that of the models."""
    names = book.live.split(".")[:-1]
    files = (
        book.root.joinpath(*names[:depth], "__init__.py") for depth in range(1, len(names) + 1)
    )
    return [file for file in files if file.is_file()]


def _add_installed(name: str, site: Path) -> list[str]:
    """Adds a distribution of this environment, which must be Python alone; what it requires."""
    distribution = metadata.distribution(name)
    for file in distribution.files or []:
        if file.suffix in NO_SOURCE:
            stop(f"{name} holds {file}, which runs in no browser.", "pyproject.toml")
        if ".." not in file.parts and not {*file.parts} & {*UNREAD}:
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(distribution.locate_file(file)), site / file)
    return distribution.requires or []


def _write_part(folder: Path, name: str, file: Path) -> None:
    """A part for `part` in live.js."""
    text = base64.b64encode(gzip.compress(file.read_bytes(), mtime=0)).decode()
    script = f"(window.runtimeParts ??= {{}})[{json.dumps(name)}]={json.dumps(text)};\n"
    (folder / f"{name}.js").write_text(script, encoding="utf-8")


def _licenses(modules: Path) -> str:
    """Return the packages in the folder, whose they are, and their terms."""
    texts = []
    for about in sorted(
        {
            modules / "/".join(Path(script).parts[: 1 + script.startswith("@")])
            for script in (*SCRIPTS, *DRAWING)
        }
    ):
        package = json.loads((about / "package.json").read_text(encoding="utf-8"))
        texts.append(f"{package['name']} {package['version']}: {package['license']}")
        terms = [path for path in about.iterdir() if path.stem.upper() in ("LICENSE", "COPYING")]
        texts += [term.read_text(encoding="utf-8") for term in terms]
    return "\n\n".join(texts) + "\n"


_running: set[subprocess.Popen[str]] = set()


def _run(*command: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    pipe, words = subprocess.PIPE, list(map(str, command))
    with subprocess.Popen(words, cwd=folder, stdout=pipe, stderr=pipe, text=True) as program:
        _running.add(program)
        output, log = program.communicate()
        _running.discard(program)
    return subprocess.CompletedProcess(words, program.returncode, output, log)


def end_packing() -> None:
    """Ends the programs that pack, where a build has failed and waits for none of them."""
    for program in list(_running):
        program.kill()


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    """The last that a program said, without pip's hint of where to read more."""
    said = (line.strip() for line in (done.stderr or done.stdout).splitlines())
    lines = [line for line in said if line and not line.startswith("hint:")]
    return lines[-1] if lines else "no word of why."


def _say(why: str) -> None:
    print(
        f"The site has no Python for the browser, and its figures stay as drawn: {why}",
        file=sys.stderr,
    )
