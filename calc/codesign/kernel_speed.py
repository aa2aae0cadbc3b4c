"""Speed of the resolvent by backend, method and number format, and its operations and bytes.

Operations and bytes are those that the method cannot do without, whatever a backend adds to them,
so a share of a roof is a share of what the machine could do for the same result.
"""

from __future__ import annotations

import os
import statistics
import timeit
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TypeAlias, TypeVar

import numpy

from calc.codesign.accuracy import INPUT_KINDS, Sample
from calc.codesign.resolvent import missing, resolvent_diagonal
from calc.codesign.resolvent_numpy import computed
from calc.codesign.resolvent_problem import Array, Problem
from calc.core.arguments import whole_number

# Floating-point operations for one G_ii with real a, b, c; + − × ÷ of real numbers count as one.
# ratio: a − Re z and b c are 2; from either side |δ|² is 3, b c over it 1, the fraction 2 and its
# difference 2; the inverse is 2 + 3 + 1 + 2. theta_phi and scaled: a − Re z and b c are 2; from
# either side (a − z) θ is 6, b c θ 2 and their difference 2; θ φ is 6, and a complex division 11.
FLOP_PER_ENTRY = {"ratio": 26, "theta_phi": 39, "scaled": 39}

MILLISECONDS = 5
Key = TypeVar("Key", bound=Hashable)
Run: TypeAlias = Callable[[], object]


def bytes_per_entry(dtype: str) -> int:
    """a, b and c read once as real numbers, and G written once: 40 in complex128, 20 in complex64.

    A recursion from each end has to keep what the first found, so this is met only where a row
    fits in a cache.
    """
    return 5 * (8 if dtype == "complex128" else 4)


@dataclass(frozen=True)
class Timing:
    """One way to compute `batch` diagonals of length `n`: medians of seconds, and what they mean.

    `kernel_seconds` is the recursion alone, `seconds` the call with its checks. `speedup` sets the
    former against the per-step loop of torch in complex128, or of NumPy where torch is missing.
    """

    backend: str
    method: str
    dtype: str
    batch: int
    n: int
    kernel_seconds: float
    seconds: float
    speedup: float

    @property
    def flop_per_second(self) -> float:
        """Operations that the method needs, over the time of the recursion."""
        return FLOP_PER_ENTRY[self.method] * self.batch * self.n / self.kernel_seconds

    @property
    def bytes_per_second(self) -> float:
        """Bytes that the method needs to move, over the time of the recursion."""
        return bytes_per_entry(self.dtype) * self.batch * self.n / self.kernel_seconds

    def as_dict(self) -> dict[str, float | str]:
        """Plain numbers and words."""
        rates = {"flop_per_second": self.flop_per_second, "bytes_per_second": self.bytes_per_second}
        return asdict(self) | rates


def benchmark_mixed_precision(
    sizes: Iterable[tuple[int, int]] = ((8, 128), (16, 1024)),
    repeats: int = 7,
    methods: Iterable[str] = ("ratio",),
) -> list[Timing]:
    """The time of every backend that can run here, in complex64 and complex128, by (batch, n).

    All ways are run in turns, so that what else the machine does meets all of them. A method that
    overflows at a length is not timed there. Threads are those that the libraries were started
    with: NUMBA_NUM_THREADS=1 and OMP_NUM_THREADS=1 for one.

    >>> rows = benchmark_mixed_precision([(4, 32)], repeats=3)
    >>> {row.dtype for row in rows} == {"complex64", "complex128"}
    True
    """
    repeats = whole_number("benchmark_mixed_precision(): repeats", repeats)
    rows = []
    for batch, n in sizes:
        batch = whole_number("benchmark_mixed_precision(): a batch", batch)
        n = whole_number("benchmark_mixed_precision(): a length", n)
        arrays = INPUT_KINDS["symmetric"](numpy.random.default_rng(n), batch, n)
        base = "numpy" if missing("torch") else "torch"
        ways: dict[tuple[str, str, str], tuple[Run, Run]] = {}
        for method in methods:
            for dtype in ("complex64", "complex128"):
                if method != "theta_phi" or _holds(arrays, dtype):
                    for backend in ("numpy", "numba", "torch", "triton"):
                        if not missing(backend) and not (backend == "triton" and _interpreted()):
                            ways[backend, method, dtype] = _way(arrays, backend, method, dtype)
        ways.setdefault((base, "ratio", "complex128"), _way(arrays, base, "ratio", "complex128"))
        kernels = in_turns({key: kernel for key, (kernel, _) in ways.items()}, repeats)
        calls = in_turns({key: call for key, (_, call) in ways.items()}, repeats)
        loop = kernels[base, "ratio", "complex128"]
        rows += [
            Timing(*key, batch, n, kernels[key], calls[key], loop / kernels[key]) for key in ways
        ]
    return rows


def in_turns(ways: Mapping[Key, Run], repeats: int) -> dict[Key, float]:
    """The median seconds of each way, after a first run that may compile it.

    A turn repeats what is short until it lasts MILLISECONDS, so that the caches are its own.
    """
    calls = {}
    for key, run in ways.items():
        run()
        calls[key] = max(1, int(MILLISECONDS * 1e-3 / timeit.timeit(run, number=1)))
    seconds: dict[Key, list[float]] = {key: [] for key in ways}
    for _ in range(repeats):
        for key, run in ways.items():
            seconds[key].append(timeit.timeit(run, number=calls[key]) / calls[key])
    return {key: statistics.median(times) for key, times in seconds.items()}


def _way(arrays: Sample, backend: str, method: str, dtype: str) -> tuple[Run, Run]:
    """The recursion alone on checked arrays, and the whole call."""
    a, b, c, z = arrays
    problem = Problem.checked(a, b, c, z, dtype)

    def call() -> Array:
        return resolvent_diagonal(a, b, c, z, method, dtype, backend)

    if backend == "numpy":
        return lambda: computed(problem, method), call
    if backend == "numba":
        from calc.codesign import resolvent_numba

        return lambda: resolvent_numba.computed(problem, method), call
    import torch

    from calc.codesign import resolvent_torch

    shifted, products = resolvent_torch.tensors(problem, backend)

    def kernel() -> Array:
        with torch.no_grad():
            diagonal = resolvent_torch.columns(shifted, products, method, dtype, backend)[0]
            if diagonal.is_cuda:
                torch.cuda.synchronize()
        return diagonal

    return kernel, call


def _holds(arrays: Sample, dtype: str) -> bool:
    a, b, c, z = arrays
    return bool(numpy.all(computed(Problem.checked(a, b, c, z, dtype), "theta_phi").held))


def _interpreted() -> bool:
    """Return whether Triton only interprets its kernels, which says nothing on their speed."""
    return os.environ.get("TRITON_INTERPRET") == "1"
