"""The page "What it promises" names tests that there are, and the files that pages load."""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks.promises import FILES, REMOVALS
from press.book_files import THEME, file_digest
from press.writing.runtime import DRAWING, OWN, SCRIPTS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "backmatter" / "promises.qmd").read_text(encoding="utf-8")
VENDOR = THEME / "vendor"
LOADED = re.findall(r"^  - `(\S+)` `(\S+)` `(sha\d+)-(\S+)`$", PAGE, re.MULTILINE)


def test_each_promise_names_a_test_that_there_is() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE)
    assert len(named) > 25
    missing = [
        (file, name)
        for file, name in named
        if f"\ndef {name}(" not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert missing == []
    promises = re.findall(r"(?ms)^- (.*?)(?=^- |^\s*$)", PAGE)
    assert [promise for promise in promises if "::test_" not in promise] == []


def test_what_pages_load_is_what_is_named() -> None:
    lock = json.loads((OWN / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    readme = (VENDOR / "README.md").read_text(encoding="utf-8")
    for name, version, kind, digest in LOADED:
        if kind == "sha512":
            package = lock[f"node_modules/{name}"]
            assert package["version"] == version
            assert package["integrity"].startswith(f"{kind}-{digest}")
        else:
            assert file_digest(VENDOR / name).startswith(digest)
            assert f" {version} " in readme
    named = {name for name, *_ in LOADED}
    scripts = (script.partition("/dist")[0].split("/pyodide.")[0] for script in SCRIPTS + DRAWING)
    files = (file.relative_to(VENDOR).as_posix() for file in VENDOR.rglob("*.*"))
    assert named == {*scripts} | {file for file in files if file.endswith((".js", ".woff2"))}


def test_what_is_taken_away_stands_where_a_promise_is_kept() -> None:
    """A promise whose text moved is tried no more, in silence, until somebody tries them all."""
    moved = [
        (name, file, text)
        for name, file, text, _ in REMOVALS
        if name not in FILES or text not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert moved == []
    assert {name for name, *_ in REMOVALS} == {*FILES}, "each promise is taken away by a row"
