"""Takes away what keeps each promise of the book, and says which test does not notice it.

    python -m benchmarks.promises
    python -m benchmarks.promises --of folder

Rows of `promises.toml` are planted one at a time in a copy of the checkout, and the test that
`backmatter/promises.qmd` names for that promise is run there. In the end stand the removals that
it does not notice.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from benchmarks.mutations import REPOSITORY, copied

REMOVALS: list[list[str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)["removals"]
PAGE = (REPOSITORY / "backmatter" / "promises.qmd").read_text(encoding="utf-8")
FILES = {name: file for file, name in re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE)}
NONE_FOUND = (4, 5)  # what pytest says where there is no such test


def noticed(folder: Path, test: str, file: str, old: str, new: str) -> bool:
    """Return whether a test fails once a file has other text."""
    path = folder / file
    kept = path.read_text(encoding="utf-8")
    if old not in kept:
        raise SystemExit(f"{file} no longer holds: {old}")
    path.write_text(kept.replace(old, new), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-xqm", "", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, f"{FILES[test]}::{test}"], cwd=folder, capture_output=True, text=True
    )
    path.write_text(kept, encoding="utf-8")
    if done.returncode in NONE_FOUND:
        raise SystemExit(done.stdout)
    return done.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--of", default="", help="a part of the names of tests")
    chosen = [row for row in REMOVALS if parser.parse_args().of in row[0]]
    unnoticed = []
    with tempfile.TemporaryDirectory() as scratch:
        copy = copied(Path(scratch) / "copy")
        for number, (test, file, old, new) in enumerate(chosen, 1):
            is_noticed = noticed(copy, test, file, old, new)
            said = f"{test}: {file}: {old.strip()} → {new.strip() or 'nothing'}"
            print(f"{number}/{len(chosen)} {said}: {'noticed' if is_noticed else 'NOT NOTICED'}")
            sys.stdout.flush()
            if not is_noticed:
                unnoticed.append(said)
    print(*[f"{len(unnoticed)} of {len(chosen)} removals are not noticed", *unnoticed], sep="\n  ")


if __name__ == "__main__":
    main()
