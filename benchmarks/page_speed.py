"""Speed of five pages of the book on a desktop, as Lighthouse scores it from 0 to 100.

    python -m benchmarks.page_speed

The book must have been rendered. The score is of a simulated desktop, and still falls on a machine
that does much else.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.npm import packages

SITE = Path(__file__).parents[1] / "_book"
PAGES = [
    "index.html",
    "chapters/sheet.html",
    "chapters/hardware.html",
    "chapters/serving.html",
    "backmatter/glossary.html",
]


def main() -> None:
    if not (SITE / "index.html").exists():
        sys.exit("There is no rendered book in _book; make book renders it.")
    for page, verdict in packages.lighthouse(SITE, PAGES, "performance").items():
        print(f"{verdict['scores']['performance']:>4}  {page}")


if __name__ == "__main__":
    main()
