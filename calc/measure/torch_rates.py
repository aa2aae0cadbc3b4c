"""Other number formats, and CUDA, through torch where it is installed.

What runs on a GPU here has not been run on one: the tests of it are skipped where there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypedDict

from calc.core.errors import InputError, abbreviated, extra
from calc.core.units import quantity
from calc.laws import roofline
from calc.measure.repeated_timing import Measured, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

with extra("calc.measure, for other number formats,", "torch", "torch"):
    import torch

CPU_DTYPES = {"bf16": torch.bfloat16}
CUDA_DTYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "tf32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
}
CPU_SIDE, CUDA_SIDE = 1024, 8192
LAUNCHES = 1000


def rate(dtype: str, device: str = "cpu", threads: int = 1) -> Measured:
    """Rate of one product of two square matrices: of 1024 on a CPU, of 8192 on a GPU.

    O = 2 · side³
    """
    dtypes = CUDA_DTYPES if device == "cuda" else CPU_DTYPES
    if dtype not in dtypes:
        raise InputError(
            f"torch measures {', '.join(dtypes)} on {device}; got {abbreviated(dtype)}"
        )
    side = CUDA_SIDE if device == "cuda" else CPU_SIDE
    with _ready(device, threads, tf32=dtype == "tf32"):
        a, b = (torch.randn(side, side, device=device).to(dtypes[dtype]) for _ in range(2))
        out = torch.empty_like(a)
        work = _finished(lambda: torch.matmul(a, b, out=out), device)
        time = timed(work, f"{dtype} product of {side} × {side} by torch on {device}")
    return time.rate(roofline.gemm_operations(side, side, side))


def copy_on_gpu() -> Measured:
    """Copy of a sixteenth of the GPU's memory into another: D_vol = 2 · array."""
    _need_cuda()
    size = torch.cuda.get_device_properties(0).total_memory // 16
    a = torch.zeros(size, dtype=torch.uint8, device="cuda")
    b = torch.zeros_like(a)
    work = _finished(lambda: b.copy_(a), "cuda")
    time = timed(work, f"copy of {size / 2**20:.0f} MiB on the GPU")
    return time.rate(quantity(2 * size, "byte"))


def launch_latency() -> Measured:
    """Time that one launch of many in a row takes, each the smallest kernel that there is."""
    _need_cuda()
    a = torch.zeros(1, device="cuda")

    def launches() -> None:
        for _ in range(LAUNCHES):
            a.add_(1)

    time = timed(_finished(launches, "cuda"), f"{LAUNCHES} launches in a row")
    return time.per(LAUNCHES)


class Gpu(TypedDict):
    """Properties of a GPU as CUDA reports them; memory and L2 cache are in bytes."""

    name: str
    memory: int
    cache: int
    cuda: str


def gpu() -> Gpu:
    """The first GPU, without its serial number."""
    _need_cuda()
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "memory": properties.total_memory,
        "cache": properties.L2_cache_size,
        "cuda": str(torch.version.cuda),
    }


@contextmanager
def _ready(device: str, threads: int, tf32: bool) -> Iterator[None]:
    """Threads of torch and its permission to round to TF32, put back afterwards."""
    if device == "cuda":
        _need_cuda()
    before = torch.get_num_threads(), torch.backends.cuda.matmul.allow_tf32
    torch.set_num_threads(threads)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.backends.cuda.matmul.allow_tf32 = before[1]


def _finished(work: Callable[[], object], device: str) -> Callable[[], object]:
    """Return the work with a wait for the GPU behind it, which otherwise is only started."""
    if device != "cuda":
        return work

    def waited() -> None:
        work()
        torch.cuda.synchronize()

    return waited


def _need_cuda() -> None:
    if not torch.cuda.is_available():
        raise InputError(
            "torch finds no CUDA device here; `calc measure` without --gpu takes the CPU"
        )
