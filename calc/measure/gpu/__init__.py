"""The record of a GPU: `calc measure --gpu --all FOLDER`, part by part, resumable.

Each part is a table of cases with the median, spread and number of repeats of each; what could not
be measured has the reason instead. `recording` runs the parts that a folder does not hold yet and
writes each as soon as it is whole; `bench` times on the device; every other module is a part.

It runs on any machine whose torch finds a GPU, CUDA or ROCm. With `device="cpu"` and `small`, the
same code is tried where there is none.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Bench", "record"]


def __getattr__(name: str) -> Any:
    """`parts` can be read without torch; what measures needs it."""
    if name in __all__:
        from calc.measure.gpu import bench, recording

        return {"Bench": bench.Bench, "record": recording.record}[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
