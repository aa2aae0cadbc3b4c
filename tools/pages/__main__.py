"""Writes `reference/`: Quarto and press run this before a render, as `_quarto.yml` says."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])  # a script finds its own folder there

from tools.pages.reference import write  # noqa: E402

if __name__ == "__main__":
    write()
