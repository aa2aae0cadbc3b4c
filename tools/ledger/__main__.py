"""Prints the faults of what chapters say: `press audit` runs this, as `_quarto.yml` says."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])  # a script finds its own folder there

from tools.ledger.faults import faults  # noqa: E402

if __name__ == "__main__":
    print("".join(f"{fault}\n" for fault in faults()), end="")
