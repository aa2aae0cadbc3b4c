"""Programs from npm for the tests, checked against the digests of `package-lock.json` here."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SECONDS = 600


class MissingError(Exception):
    """A program that the machine lacks, by its name and what it is for."""


def needed(program: str, purpose: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise MissingError(f"no `{program}` on PATH; install it to {purpose}")
    return path


def run(script: str, *arguments: str) -> Any:
    """Return the JSON that a script of this folder prints, with the packages at hand."""
    command = [needed("node", "judge the pages"), str(_installed() / script), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=SECONDS, env=os.environ
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def _installed() -> Path:
    """A folder of the virtual environment with the packages, and with this folder's scripts."""
    npm = needed("npm", "bring what judges the pages")
    lock = (HERE / "package-lock.json").read_bytes()
    folder = Path(sys.prefix) / f"npm-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not (folder / "node_modules" / ".package-lock.json").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(HERE, folder)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    for script in HERE.glob("*.mjs"):
        shutil.copyfile(script, folder / script.name)
    return folder


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of a site while a server of this machine hands it out."""
    handler = partial(_Silent, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Says nothing of each file."""


def lighthouse(site: Path, pages: list[str], categories: str) -> dict[str, dict[str, Any]]:
    """Lighthouse's scores of each page, 0 to 100 by category, and the audits that failed."""
    chromium = needed("chromium", "judge the pages with Lighthouse")
    with served(site) as address:
        addresses = [f"{address}/{page}" for page in pages]
        scores: dict[str, dict[str, Any]] = run("lighthouse.mjs", chromium, categories, *addresses)
    return scores
