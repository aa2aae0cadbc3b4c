"""numpy, loaded by what first needs an array; and the arrays that there are.

calc is imported, and answers for plain numbers, without numpy. What works on arrays alone writes
`from calc.core.arrays import numpy`, at its head as anywhere else.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from calc.core.errors import MissingExtraError, NumpyNeededError

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as numpy
    from numpy.typing import NDArray

    Counts: TypeAlias = NDArray[numpy.int64]
    Floats: TypeAlias = NDArray[numpy.float64]
    Single: TypeAlias = NDArray[numpy.float32]
    Truths: TypeAlias = NDArray[numpy.bool_]
    Number: TypeAlias = float | Floats
    Truth: TypeAlias = bool | Truths
else:
    Counts = Floats = Single = Truths = object
    Number = float
    Truth = bool
    """`Number` is a magnitude, a number or an array of them; `Truth` what comparing them gives."""

    class _Numpy:
        """The module, of which each name is looked up once."""

        def __getattr__(self, name: str) -> object:
            try:
                module = import_module("numpy")
            except ImportError:
                raise NumpyNeededError(
                    "a list of numbers needs numpy, which is not installed: pip install numpy"
                ) from None
            value = getattr(module, name)
            setattr(self, name, value)
            return value

    numpy = _Numpy()


def needed_by(who: str) -> None:
    """Refuse at once what works on arrays throughout, where there are none."""
    if find_spec("numpy") is None:
        raise MissingExtraError(who, "numpy", "planning")
