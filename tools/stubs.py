"""Writes `calc/roofline.pyi` and its like, by which type checkers find `import calc.roofline`.

Python finds it without them, as `calc/core/public.py` says. The build of a wheel runs this, as does
an editable install, and so `make set-up-test`.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HEAD = '"""Generated from `__init__.pyi` by `tools/stubs.py`: change that, not this."""\n\n'


class Stubs(BuildHookInterface[Any]):
    """A build hook of hatch."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write those that have changed."""
        for path, text in stubs(Path(self.root)).items():
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")


def stubs(root: Path) -> dict[Path, str]:
    """Return the text of each stub: of each module that `calc` shows and a folder of it holds."""
    listed = ast.parse((root / "calc" / "__init__.pyi").read_text(encoding="utf-8"))
    texts = {}
    for node in listed.body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("calc."):
            for name in (alias.name for alias in node.names):
                module = f"{node.module}.{name}"
                if source := _source(root / module.replace(".", "/")):
                    texts[root / "calc" / f"{name}.pyi"] = HEAD + _all_of(module, source)
    return texts


def _source(path: Path) -> str:
    """Return the source of a module; "" where the name is of no module."""
    for file in (path / "__init__.py", path.with_suffix(".py")):
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return ""


def _all_of(module: str, source: str) -> str:
    """Return the imports of all that a module defines, with what finds its data by name."""
    lines = [f"from {module} import *"]
    if "\ndef __getattr__(" in source:
        lines.append(f"from {module} import __getattr__ as __getattr__")
    return "".join(f"{line}\n" for line in lines)
