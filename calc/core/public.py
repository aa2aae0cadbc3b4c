"""Public names of a package, read from the stub beside it, and imported when they are first used.

A stub such as `calc/__init__.pyi` is the one list of a package's names: type checkers and editors
follow it, and so does Python, by `on_first_use`, as with `lazy_loader.attach_stub` of scikit-image
(PEP 562). The modules of `calc` lie in folders that say what may import what, and are called
without them: `calc.roofline` lies in `calc/laws/`. For `import calc.roofline`, which no
`__getattr__` is asked for, `ShortNames` hands the import system the module that is there already,
as `six.moves` does. Fifty files that import a module each would do that too, and hide in which
folder the module lies; their stubs, which the build of a wheel writes, are for checkers alone.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any


def on_first_use(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package with a stub.

    The package's `__all__` is what the stub names beside modules; all its modules are attributes.
    """
    stub = Path(str(sys.modules[package].__file__)).with_suffix(".pyi")
    homes, functions = {}, []
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            homes.update({alias.name: str(node.module) for alias in node.names if alias.asname})
        elif isinstance(node, ast.FunctionDef):
            functions.append(node.name)

    def getattr_(name: str) -> Any:
        if name == "__all__":
            public = {*homes, *functions} - {*modules(package)}
            value: Any = sorted(name for name in public if name[0] != "_")
        elif (home := homes.get(name, package)) != package:
            value = getattr(__import__(home, fromlist=[name]), name)
        elif name[0] != "_" and find_spec(f"{package}.{name}"):
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    HOMES[package] = homes
    return getattr_, lambda: [*homes, *functions]


ROOT = Path(__file__).parents[2]  # of `calc`
HOMES: dict[str, dict[str, str]] = {}
"""Names of each package with a stub, each with the module or the folder that it is from."""


def modules(package: str) -> dict[str, str]:
    """Return the modules that a package shows, each with the name of where it lies."""
    places = {name: f"{home}.{name}" for name, home in HOMES[package].items()}
    paths = {name: ROOT / module.replace(".", "/") for name, module in places.items()}
    return {
        name: places[name]
        for name, path in paths.items()
        if path.is_dir() or path.with_suffix(".py").is_file()
    }


class ShortNames(MetaPathFinder, Loader):
    """The import system's way to a module by its short name: `calc.roofline`.

    It is asked after all others, so that a module that lies at that name is found there.
    """

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return a specification of a module that a stub has from elsewhere."""
        package, _, short = name.rpartition(".")
        module = modules(package).get(short, name) if package in HOMES else name
        return ModuleSpec(name, self) if module != name else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module itself; its own specification is kept for it meanwhile."""
        package, _, short = spec.name.rpartition(".")
        module = import_module(modules(package)[short])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module back its specification; it ran when it was imported."""
        assert module.__spec__
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.append(ShortNames())
