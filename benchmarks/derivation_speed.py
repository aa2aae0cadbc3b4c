"""CPU time in which the modules of derivations are imported, one by one and all of them.

    python -m benchmarks.derivation_speed

Each is imported in a fresh process, after all of `calc` that it needs: what is printed is what its
rows and those of the derivations that it imports take. The last line is all derivations in one
process, with what they need of `calc`.
"""

from __future__ import annotations

import subprocess
import sys
from pkgutil import iter_modules

from calc import derivations

EACH, ALL = 0.3, 8.0  # seconds

NEEDED = """
import importlib, sys
importlib.import_module(sys.argv[1])
names = (name for name in sys.modules if name.startswith("calc") or name == "numpy")
print(*(name for name in names if not name.startswith("calc.derivations.")))
"""
TIMED = """
import importlib, sys, time
import calc.derivations.ledger
before, modules = (names.split() for names in sys.argv[1:])
for name in before:
    importlib.import_module(name)
start = time.process_time()
for name in modules:
    importlib.import_module(name)
print(time.process_time() - start)
"""


def main() -> None:
    modules = [f"calc.derivations.{module.name}" for module in iter_modules(derivations.__path__)]
    times = {name: timed(run(NEEDED, name), name) for name in modules}
    for name, seconds in sorted(times.items(), key=lambda one: -one[1]):
        print(f"{seconds:6.2f} s  {name}{'  too long' * (seconds > EACH)}")
    whole = timed("", " ".join(modules))
    print(f"{whole:6.2f} s  all{'  too long' * (whole > ALL)}")
    sys.exit(whole > ALL or max(times.values()) > EACH)


def timed(before: str, modules: str) -> float:
    """Return the CPU time that modules are imported in, after others."""
    return float(run(TIMED, before, modules))


def run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
