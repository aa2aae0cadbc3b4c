"""The Hadamard transform: a rotation that spreads an outlier over its whole block."""

from __future__ import annotations

from calc.core.arguments import as_array
from calc.core.arrays import Floats, numpy
from calc.core.errors import InputError, abbreviated
from calc.formats.coding import check_width, numbers


def hadamard_transform(values: object, size: int = 16, signs: object = None) -> Floats:
    """Blocks of the last axis times the Hadamard matrix H of so many rows, over the root of these.

    H has entries of one and minus one, and rows that are at right angles: H₁ = (1), and H₂ₙ holds
    Hₙ three times, and -Hₙ in the last quarter. Scaled so, it keeps lengths and dot products, which
    is why both factors of a product may be rotated and its result stays. With `signs`, ones and
    minus ones, values are multiplied by these first: chosen at random, they keep a block that is
    built like a row of H from becoming an outlier itself.

    >>> hadamard_transform([8.0, 0.0, 0.0, 0.0], size=4).tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    blocks, flips = _blocks(values, size, signs)
    return _butterfly(blocks * flips, size).reshape(numbers(values).shape)


def inverse_hadamard_transform(values: object, size: int = 16, signs: object = None) -> Floats:
    """Return the values that `hadamard_transform` with this size and signs transformed into these.

    >>> inverse_hadamard_transform([4.0, 4.0, 4.0, 4.0], size=4).tolist()
    [8.0, 0.0, 0.0, 0.0]
    """
    blocks, flips = _blocks(values, size, signs)
    return (_butterfly(blocks, size) * flips).reshape(numbers(values).shape)


def _blocks(values: object, size: int, signs: object) -> tuple[Floats, Floats]:
    check_width("hadamard_transform(): size", size, 2, 2**20)
    if size & (size - 1):
        raise InputError(f"hadamard_transform(): size must be a power of two; got {size}")
    array = numbers(values)
    if not array.ndim or array.shape[-1] % size:
        raise InputError(
            f"hadamard_transform() turns blocks of {size} values along the last axis; got an"
            f" array of shape {tuple(array.shape)}"
        )
    flips = numpy.ones(size) if signs is None else as_array("signs", signs)
    if flips.shape != (size,) or not (numpy.abs(flips) == 1).all():
        raise InputError(
            f"hadamard_transform(): signs are {size} numbers, each 1 or -1; got"
            f" {abbreviated(signs)}"
        )
    return array.reshape(-1, size), flips


def _butterfly(blocks: Floats, size: int) -> Floats:
    """Each block times H: sums and differences of halves, again and again, then the root."""
    count = blocks.shape[0]
    width = 1
    while width < size:
        pairs = blocks.reshape(count, size // (2 * width), 2, width)
        high, low = pairs[:, :, 0], pairs[:, :, 1]
        blocks = numpy.stack([high + low, high - low], axis=2).reshape(count, size)
        width *= 2
    turned: Floats = blocks / size**0.5
    return turned
