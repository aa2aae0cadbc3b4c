"""The kernel suite: what a program does all day, with operations and bytes counted by hand.

A kernel is one or more passes over memory, each a `Workload`: passes follow one another, so that
their times add up. Bytes are counted as the measured bandwidth counts them: each input of a pass
is read once and each output written once, and nothing stays in a cache from one pass to the next.
Operations are those of the result as written: one for each addition, multiplication, comparison or
elementary function of an element.

`size` is the bytes of a large array, one that no cache holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy
from numpy.lib.stride_tricks import sliding_window_view

from calc.codesign.resolvent import resolvent_diagonal
from calc.core.units import quantity
from calc.laws.roofline import Workload, elementwise, gemm
from calc.measure.aligned_arrays import Array, empty, filled

SEED = 0
BYTES = {"fp32": 4, "fp64": 8}
FORMATS = {"fp32": numpy.float32, "fp64": numpy.float64}


@dataclass(frozen=True)
class Kernel:
    """Work that can be run, and what it amounts to, pass by pass."""

    name: str
    family: str
    dtype: str
    passes: tuple[Workload, ...]
    run: Callable[[], object]

    @property
    def total(self) -> Workload:
        """Sum of the work of all passes."""
        whole = self.passes[0]
        for one in self.passes[1:]:
            whole += one
        return whole


def suite(size: int) -> list[Callable[[], Kernel]]:
    """A maker of each kernel, so that only one has its arrays at a time; `size` is in bytes.

    >>> makers = suite(2**20)
    >>> scale = makers[8]()
    >>> print(scale.name, scale.total.operations, scale.total.traffic)
    scale 131.1 kFLOP 2.097 MB
    """
    return [
        lambda: product("GEMM 1024³", "fp64", 1024, 1024, 1024),
        lambda: product("GEMM 1024³", "fp32", 1024, 1024, 1024),
        lambda: product("GEMM 256³", "fp64", 256, 256, 256),
        lambda: product("GEMM, thin", "fp32", *_thin(size), 16),
        lambda: product("GEMM, tall", "fp32", size // 256, 64, 64),
        lambda: product("GEMM, 8 rows", "fp32", 8, *_thin(size)),
        lambda: matrix_vector("fp64", size),
        lambda: matrix_vector("fp32", size),
        lambda: mapped("scale", "fp64", size, 1, partial(numpy.multiply, 2)),
        lambda: mapped("add", "fp64", size, 2, numpy.add),
        lambda: mapped("ReLU", "fp32", size, 1, partial(numpy.maximum, 0)),
        lambda: mapped("exp", "fp64", size, 1, numpy.exp),
        lambda: reduced("sum", 1, numpy.sum, _random("fp32", size // 4)),
        lambda: reduced("dot", 2, numpy.dot, *(_random("fp64", size // 8) for _ in range(2))),
        lambda: reduced("row maxima", 1, partial(numpy.max, axis=1), _matrix(size)),
        lambda: softmax(size),
        lambda: layer_norm(size),
        lambda: transpose(size),
        lambda: gather("gather rows", size, 256),
        lambda: gather("gather elements", size),
        lambda: attention_prefill(),
        lambda: attention_decode(size),
        lambda: convolution(),
        lambda: resolvent(),
    ]


def product(name: str, dtype: str, m: int, n: int, k: int) -> Kernel:
    """(m × k) · (k × n): 2·m·n·k FLOP, and (m·k + k·n + m·n) elements."""
    a, b = _random(dtype, m, k), _random(dtype, k, n)
    out = filled(0.0, (m, n), FORMATS[dtype])
    work = gemm(m, n, k, quantity(BYTES[dtype], "byte"))
    return Kernel(name, "GEMM", dtype, (work,), lambda: numpy.matmul(a, b, out=out))


def matrix_vector(dtype: str, size: int) -> Kernel:
    """(m × n) · (n): a product with one column, 2·m·n FLOP on m·n + n + m elements."""
    n = 4096
    m = size // BYTES[dtype] // n
    a, x = _random(dtype, m, n), _random(dtype, n)
    out = filled(0.0, m, FORMATS[dtype])
    work = gemm(m, 1, n, quantity(BYTES[dtype], "byte"))
    return Kernel("GEMV", "GEMV", dtype, (work,), lambda: numpy.matmul(a, x, out=out))


def mapped(name: str, dtype: str, size: int, inputs: int, run: Callable[..., object]) -> Kernel:
    """1 FLOP for each element: arrays are read and one is written, in one pass of NumPy.

    exp is some twenty operations in truth, which the roofline cannot know of.
    """
    read = [_random(dtype, size // BYTES[dtype]) for _ in range(inputs)]
    out = filled(0.0, read[0].shape, FORMATS[dtype])
    work = _mapped(out, 1, inputs + 1)
    return Kernel(name, "elementwise", dtype, (work,), lambda: run(*read, out=out))


def reduced(name: str, flop: int, run: Callable[..., object], *read: Array) -> Kernel:
    """1 or 2 FLOP for each element of what is read; next to nothing is written."""
    dtype, work = f"fp{8 * read[0].itemsize}", _mapped(read[0], flop, len(read))
    return Kernel(name, "reduction", dtype, (work,), lambda: run(*read))


def softmax(size: int) -> Kernel:
    """exp(x − max) over its sum, for each row, as five passes of NumPy.

    Maximum (1 FLOP, 1 array), difference (1, 2), exp in place (1, 2), sum (1, 1) and division in
    place (1, 2): 5 FLOP and 8 elements moved for each element, where one pass would move 2.
    """
    x = _matrix(size)
    out = empty(x.shape, x.dtype)
    return Kernel("softmax", "normalisation", "fp32", _softmax(x), lambda: _run_softmax(x, out))


def layer_norm(size: int) -> Kernel:
    """(x − mean) / deviation · g + b for each row, as six passes of NumPy.

    Mean (1 FLOP, 1 array), difference (1, 2), dot product of each row with itself (2, 1), then
    division, multiplication by g and addition of b in place (1, 2 each): 7 FLOP and 10 elements
    moved for each element, where one pass would move 2.
    """
    x = _matrix(size)
    out = empty(x.shape, x.dtype)
    g, b = _random("fp32", x.shape[1]), _random("fp32", x.shape[1])

    def run() -> object:
        numpy.subtract(x, x.mean(axis=1, keepdims=True), out=out)
        variance = numpy.einsum("ij,ij->i", out, out) / x.shape[1]
        numpy.divide(out, numpy.sqrt(variance + 1e-5)[:, None], out=out)
        numpy.multiply(out, g, out=out)
        return numpy.add(out, b, out=out)

    passes = _passes(x, (1, 1), (1, 2), (2, 1), (1, 2), (1, 2), (1, 2))
    return Kernel("layer norm", "normalisation", "fp32", passes, run)


def transpose(size: int) -> Kernel:
    """b = aᵀ, written out: no FLOP, one array read and one written."""
    a = _matrix(size)
    b = filled(0.0, (a.shape[1], a.shape[0]), a.dtype)

    def run() -> object:
        numpy.copyto(b, a.T)
        return b

    return Kernel("transpose", "movement", "fp32", (_moved(2 * a.nbytes),), run)


def gather(name: str, size: int, *row: int) -> Kernel:
    """Rows of a table or single elements, in any order: each read and written once.

    An index of 8 bytes for each comes on top. The line of 64 bytes that comes with a single element
    is not counted, because it is not needed.
    """
    table = _random("fp32", size // 4 // math.prod(row), *row)
    order = numpy.random.default_rng(SEED).permutation(len(table))
    out = empty(table.shape, table.dtype)
    work = _moved(2 * table.nbytes + order.nbytes)
    take = partial(numpy.take, table, order, axis=0, out=out, mode="clip")
    return Kernel(name, "movement", "fp32", (work,), take)


def attention_prefill(heads: int = 16, tokens: int = 1024, width: int = 64) -> Kernel:
    """softmax(Q Kᵀ) V for all tokens at once, head by head, with scores written out.

    For each head a product (t × w) · (w × t), five passes of softmax over t × t scores, and a
    product (t × t) · (t × w): 4·t²·w + 5·t² FLOP.
    """
    q, k, v = (_random("fp32", heads, tokens, width) for _ in range(3))
    scores = empty((heads, tokens, tokens), numpy.float32)
    out = empty(q.shape, q.dtype)

    def run() -> object:
        numpy.matmul(q, k.transpose(0, 2, 1), out=scores)
        return numpy.matmul(_run_softmax(scores, scores), v, out=out)

    first, last = gemm(tokens, tokens, width, "4 byte"), gemm(tokens, width, tokens, "4 byte")
    passes = (_times(first, heads), *_softmax(scores), _times(last, heads))
    return Kernel("attention, prefill", "attention", "fp32", passes, run)


def attention_decode(size: int, heads: int = 32, width: int = 128) -> Kernel:
    """softmax(q Kᵀ) V for one new token: every key and every value is read once.

    For each head 2·t·w FLOP on t·w keys, then t scores, then 2·t·w FLOP on t·w values: an intensity
    of one operation for every two bytes of FP32. Passes over the scores weigh nothing beside that.
    """
    tokens = size // 4 // heads // width
    k, v = (_random("fp32", heads, tokens, width) for _ in range(2))
    q = _random("fp32", heads, 1, width)

    def run() -> object:
        scores = numpy.matmul(q, k.transpose(0, 2, 1))
        return numpy.matmul(_run_softmax(scores, scores), v)

    first, last = gemm(1, tokens, width, "4 byte"), gemm(1, width, tokens, "4 byte")
    scores = numpy.empty((heads, 1, tokens), numpy.float32)
    passes = (_times(first, heads), *_softmax(scores), _times(last, heads))
    return Kernel("attention, decode", "attention", "fp32", passes, run)


def convolution(channels: int = 64, side: int = 128) -> Kernel:
    """3 × 3 convolution of so many channels into as many, without padding, as one product.

    The patches are written out first: (side − 2)² pixels of 9·c elements, each read from the image
    and written. Then a product (pixels × 9·c) · (9·c × c), of 18·c² FLOP a pixel.
    """
    image = _random("fp32", side, side, channels)
    weights = _random("fp32", 9 * channels, channels)
    windows = sliding_window_view(image, (3, 3), axis=(0, 1)).transpose(0, 1, 3, 4, 2)
    pixels = (side - 2) ** 2
    patches = empty((pixels, 9 * channels), numpy.float32)
    out = empty((pixels, channels), numpy.float32)

    def run() -> object:
        numpy.copyto(patches.reshape(windows.shape), windows)
        return numpy.matmul(patches, weights, out=out)

    passes = (_moved(image.nbytes + patches.nbytes), gemm(pixels, channels, 9 * channels, "4 byte"))
    return Kernel("convolution", "convolution", "fp32", passes, run)


def resolvent(batch: int = 2048, n: int = 128) -> Kernel:
    """Diagonals of (H − zI)⁻¹ by calc.codesign, its recursion in NumPy.

    24 FLOP for each of batch · n entries (8 from the left, 8 from the right, 8 for the entry), on
    a, b, c of 8 bytes and a result of 16. NumPy does it in some forty passes of a row of the batch
    each, and in as many again to make sure of the digits, none of which is in the result.
    """
    a = _random("fp64", batch, n)
    b = _random("fp64", batch, n - 1)
    z = numpy.full(batch, 0.5 + 1j)
    work = elementwise(batch * n, "24 FLOP", 5, "8 byte")
    return Kernel("resolvent", "recursion", "fp64", (work,), lambda: resolvent_diagonal(a, b, b, z))


def _random(dtype: str, *shape: int) -> Array:
    out = empty(shape, FORMATS[dtype])
    return numpy.random.default_rng(SEED).random(out=out, dtype=FORMATS[dtype])  # type: ignore[arg-type]


def _matrix(size: int) -> Array:
    """FP32 rows of 4096."""
    return _random("fp32", size // 4 // 4096, 4096)


def _thin(size: int) -> tuple[int, int]:
    """Sides of a matrix of FP32 that takes `size` bytes."""
    return size // 4 // 4096, 4096


def _mapped(array: Array, operations: int, arrays: int) -> Workload:
    """A pass over an array: operations and arrays moved for each element."""
    per_element = quantity(operations, "FLOP")
    return elementwise(array.size, per_element, arrays, quantity(array.itemsize, "byte"))


def _moved(size: int) -> Workload:
    return Workload(quantity(0, "FLOP"), quantity(size, "byte"))


def _times(work: Workload, count: int) -> Workload:
    return Workload(work.operations * count, work.traffic * count)


def _passes(x: Array, *counts: tuple[int, int]) -> tuple[Workload, ...]:
    return tuple(_mapped(x, operations, arrays) for operations, arrays in counts)


def _softmax(x: Array) -> tuple[Workload, ...]:
    return _passes(x, (1, 1), (1, 2), (1, 2), (1, 1), (1, 2))


def _run_softmax(x: Array, out: Array) -> Array:
    numpy.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    numpy.exp(out, out=out)
    return numpy.divide(out, out.sum(axis=-1, keepdims=True), out=out)
