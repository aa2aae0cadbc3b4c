"""`python -m figures` draws the picture of README.md anew, on a ground of its own."""

from __future__ import annotations

from pathlib import Path

from figures import roofline

README_PICTURE = Path(__file__).with_name("readme.svg")
PAPER = "#fdfcfa"


def write_readme_picture(path: Path = README_PICTURE) -> None:
    roofline.draw().savefig(path, facecolor=PAPER, metadata={"Date": None})


if __name__ == "__main__":
    write_readme_picture()
