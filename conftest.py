"""Which files pytest looks at for examples: `--doctest-modules` would import every one."""

from __future__ import annotations

from pathlib import Path


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """A module without an example has no test, and those of `calc.derivations` compute for long."""
    if collection_path.suffix != ".py" or collection_path.name.startswith("test_"):
        return None
    return ">>> " not in collection_path.read_text(encoding="utf-8") or None
