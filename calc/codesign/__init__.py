"""Code, precision and training loop, fitted to the hardware that runs them.

The kernel is the diagonal of the resolvent (H − zI)⁻¹ of a tridiagonal matrix: where its textbook
recursion overflows, what each number format costs in accuracy, and what it gains in speed. It runs
on NumPy; numba, torch and Triton are extras. A name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calc.codesign.resolvent import (
        BackendWarning as BackendWarning,
    )
    from calc.codesign.resolvent import (
        ResolventError as ResolventError,
    )
    from calc.codesign.resolvent import (
        resolvent_diagonal as resolvent_diagonal,
    )
    from calc.codesign.resolvent import (
        running_backend as running_backend,
    )

# Each public name, by the module that defines it.
_NAMES = {
    "resolvent": (
        "BackendWarning",
        "ResolventError",
        "resolvent_diagonal",
        "running_backend",
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_MODULE_OF)


if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        if name in _MODULE_OF:
            return getattr(import_module(f"calc.codesign.{_MODULE_OF[name]}"), name)
        raise AttributeError(f"module 'calc.codesign' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
