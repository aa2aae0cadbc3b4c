"""`python -m benchmarks`: every benchmark in turn, each a module here that is run by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

failed = False
for path in sorted(Path(__file__).parent.glob("*_speed.py")):
    print(f"== {path.stem}", flush=True)
    failed |= subprocess.run([sys.executable, "-m", f"benchmarks.{path.stem}"]).returncode != 0
sys.exit(failed)
