"""Number formats: what so many bits can hold, and what they round away.

    >>> print(FP16.max, FP16.smallest_subnormal, FP16.size)
    65504.0 5.960464477539063e-08 2 byte
    >>> FP16.round(1e-8), BF16.round(1e-8)
    (0.0, 1.0011717677116394e-08)
    >>> Float(exponent_bits=4, mantissa_bits=3).max  # by the rules of IEEE 754; FP8_E4M3 has others
    240.0

`FP8_E4M3` and `get("fp8")` are the same format, `Float(…)` makes any other split. Each format
rounds values, encodes them to bits and decodes these again, one at a time or in arrays: values are
FP64 numbers, codes whole numbers from zero up. Only these three and `ulp` need numpy. `source` is
the key of references.bib under which a format is defined.

What takes a format takes it in any spelling: `half`, `float16` and `FP16` are one. A format is
printed by its `name`, FP16, and stored by its `key`, fp16.
"""

from __future__ import annotations

import math
from copy import copy
from functools import lru_cache
from typing import TypeGuard

from calc.core.elementwise import largest, smallest
from calc.core.errors import InputError, abbreviated, marked
from calc.core.law import Range
from calc.core.names import resolve, spellings, squeezed
from calc.core.units import Quantity, QuantityLike, quantity
from calc.formats.blocks import (
    Block as Block,
    Encoded as Encoded,
    EncodedTensor as EncodedTensor,
    PowerOfTwo as PowerOfTwo,
    TwoLevelBlock as TwoLevelBlock,
)
from calc.formats.floating import Float as Float
from calc.formats.integer import Integer as Integer
from calc.formats.quality import (
    QuantizedModel as QuantizedModel,
    quantized_models as quantized_models,
)
from calc.formats.recipes import (
    TrainingFormat as TrainingFormat,
    training_formats as training_formats,
)
from calc.formats.rotation import (
    hadamard_transform as hadamard_transform,
    inverse_hadamard_transform as inverse_hadamard_transform,
)
from calc.formats.sums import (
    kahan_sum as kahan_sum,
    neumaier_sum as neumaier_sum,
    pairwise_sum as pairwise_sum,
    running_sum as running_sum,
    tensor_core_sum as tensor_core_sum,
)
from calc.formats.tiles import Tiles as Tiles, delayed as delayed

__all__ = [
    *("Block", "Encoded", "EncodedTensor", "Float", "Integer", "PowerOfTwo", "Tiles"),
    *("QuantizedModel", "TrainingFormat", "TwoLevelBlock", "delayed"),
    *("hadamard_transform", "inverse_hadamard_transform"),
    *("kahan_sum", "neumaier_sum", "pairwise_sum", "running_sum", "tensor_core_sum"),
    *("quantized_models", "training_formats", "element_size", "get", "key_of", "names", "printed"),
]

Format = Float | Integer | PowerOfTwo | Block | TwoLevelBlock

FP64 = Float(11, 52, name="FP64", source="ieee2019floating")
FP32 = Float(8, 23, name="FP32", source="ieee2019floating")
TF32 = Float(8, 10, storage_bits=32, name="TF32", source="nvidia-a100-whitepaper")
FP16 = Float(5, 10, name="FP16", source="ieee2019floating")
BF16 = Float(8, 7, name="BF16", source="kalamkar2019study")
FP8_E5M2 = Float(5, 2, name="FP8 E5M2", source="micikevicius2022fp8")
FP8_E4M3 = Float(4, 3, "nan", name="FP8 E4M3", source="micikevicius2022fp8")
FP6_E3M2 = Float(3, 2, "none", name="FP6 E3M2", source="ocp2023microscaling")
FP6_E2M3 = Float(2, 3, "none", name="FP6 E2M3", source="ocp2023microscaling")
FP4_E2M1 = Float(2, 1, "none", name="FP4 E2M1", source="ocp2023microscaling")
INT32 = Integer(32, name="INT32", source="jacob2018quantization")
INT16 = Integer(16, name="INT16", source="jacob2018quantization")
INT8 = Integer(8, name="INT8", source="jacob2018quantization")
INT4 = Integer(4, name="INT4", source="nvidia-a100-whitepaper")
E8M0 = PowerOfTwo(8, name="E8M0", source="ocp2023microscaling")
MXFP8_E5M2 = Block(FP8_E5M2, E8M0, 32, name="MXFP8 E5M2", source="ocp2023microscaling")
MXFP8_E4M3 = Block(FP8_E4M3, E8M0, 32, name="MXFP8 E4M3", source="ocp2023microscaling")
MXFP6_E3M2 = Block(FP6_E3M2, E8M0, 32, name="MXFP6 E3M2", source="ocp2023microscaling")
MXFP6_E2M3 = Block(FP6_E2M3, E8M0, 32, name="MXFP6 E2M3", source="ocp2023microscaling")
MXFP4 = Block(FP4_E2M1, E8M0, 32, name="MXFP4", source="ocp2023microscaling")
MXINT8 = Block(Integer(8, fraction_bits=6), E8M0, 32, name="MXINT8", source="ocp2023microscaling")
NVFP4 = TwoLevelBlock(FP4_E2M1, FP8_E4M3, 16, name="NVFP4", source="nvidia2025nvfp4")

# Each with its spellings beside its own name; case, "-", "_", "." and spaces do not matter. Where
# two formats share a word, as E4M3 and E5M2 do in "fp8", it means the one that weights are kept in.
SPELLINGS: dict[Format, tuple[str, ...]] = {
    FP64: ("float64", "double"),
    FP32: ("float32", "float", "single"),
    TF32: ("tensorfloat32",),
    FP16: ("float16", "half"),
    BF16: ("bfloat16",),
    FP8_E5M2: ("float8 e5m2", "e5m2"),
    FP8_E4M3: ("fp8", "float8", "float8 e4m3", "float8 e4m3fn", "e4m3"),
    FP6_E3M2: ("fp6", "float6 e3m2", "float6 e3m2fn", "e3m2"),
    FP6_E2M3: ("float6 e2m3", "float6 e2m3fn", "e2m3"),
    FP4_E2M1: ("fp4", "float4 e2m1", "float4 e2m1fn", "e2m1"),
    INT32: (),
    INT16: (),
    INT8: (),
    INT4: (),
    E8M0: ("float8 e8m0fnu",),
    MXFP8_E5M2: (),
    MXFP8_E4M3: ("mxfp8",),
    MXFP6_E3M2: ("mxfp6",),
    MXFP6_E2M3: (),
    MXFP4: ("mxfp4 e2m1",),
    MXINT8: (),
    NVFP4: ("nvfp4 e2m1",),
}
# What weights take with their share of scales, by the names that files of weights give to it: AWQ
# and GPTQ have a scale of 16 bit and a zero of 4 for each 128 weights, W4A16 the scale alone, NF4 a
# scale of a byte for each 64 and one of four for each 256 of these; FP8 in blocks has an FP32 scale
# for 128 rows and columns. The rest are types of llama.cpp's ggml-common.h, of blocks of 32 or 256.
STORED = {
    "AWQ": 4.15625,
    "GPTQ": 4.15625,
    "W4A16": 4.125,
    "INT4 by 32": 4.5,
    "NF4": 4.126953125,
    "FP8 in blocks": 8.001953125,
    "Q2_K": 2.625,
    "Q3_K": 3.4375,
    "Q4_0": 4.5,
    "Q4_1": 5.0,
    "Q4_K": 4.5,
    "Q5_0": 5.5,
    "Q5_1": 6.0,
    "Q5_K": 5.5,
    "Q6_K": 6.5625,
    "Q8_0": 8.5,
    "IQ4_NL": 4.5,
    "IQ4_XS": 4.25,
}
CACHED = "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL"
"""Formats of files of weights that llama.cpp keeps caches in too."""
_STORED = {squeezed(name): name for name in STORED}
_BY_KEY = {form.key: form for form in SPELLINGS}
_KNOWN = spellings({form.key: others for form, others in SPELLINGS.items()})


def names() -> tuple[str, ...]:
    """The keys of all formats.

    >>> "fp8-e4m3" in names()
    True
    """
    return tuple(_BY_KEY)


def get(name: str) -> Format:
    """The format of that name, in any spelling.

    >>> get("fp8_e4m3").name, get("half").name
    ('FP8 E4M3', 'FP16')
    """
    others = (each for spelled in SPELLINGS.values() for each in spelled)
    return _BY_KEY[resolve("format", name, _KNOWN, also=others)]


def key_of(name: str) -> str | None:
    """The key for a name as people write it; None where no format has it.

    >>> key_of("float16"), key_of("abacus")
    ('fp16', None)
    """
    return _KNOWN.get(squeezed(name))


LARGEST = 1024  # bytes of an element, and of all copies of it: far above any format


def element_size(name: str, stated: QuantityLike) -> Quantity:
    """Return the size of an element, given its format's name, its size or a bare number of bits.

    >>> print(element_size("weights", "fp8"), element_size("weights", "4.25 bit"))
    1 byte 4.25 bit
    >>> print(element_size("weights", 8))
    8 bit
    """
    return copy(_named_size(name, stated)) if isinstance(stated, str) else _size(name, stated)


@lru_cache(maxsize=256)  # a plan asks for the same few names at each of its points
def _named_size(name: str, stated: str) -> Quantity:
    return _size(name, stated)


def _size(name: str, stated: QuantityLike) -> Quantity:
    try:
        empty = isinstance(stated, str) and not stated.strip()
        size = quantity(0) if empty else format_or_quantity(stated)
    except InputError as error:
        raise InputError(f"{marked(name)}: {error}") from None
    if size.unitless and not size.ndim and size.magnitude > 2:  # 1 and 2 may be meant as bytes
        size = quantity(size.magnitude, "bit")
    fits = size.is_compatible_with("byte") and largest(size.to("byte")) <= LARGEST
    if not fits or not smallest(size) > 0:
        raise InputError(
            f'{marked(name)} must be the size of an element, "2 byte" or "4.25 bit", or the name'
            f' of its format, "int8", and at most {LARGEST} byte; got {abbreviated(stated)}'
        )
    return size


def cache_size(name: str, stated: QuantityLike) -> Quantity:
    """Return what an element of a cache takes; formats of files of weights alone are refused.

    >>> print(cache_size("kv", "fp8"))
    1 byte
    """
    stored = _STORED.get(squeezed(stated)) if isinstance(stated, str) else None
    if stored and stored not in CACHED:
        raise InputError(
            f"{marked(name)} must be a format that caches are kept in, as bf16, fp8 or int8;"
            f" {stored} is one of weights in files"
        )
    return element_size(name, stated)


def format_or_quantity(stated: QuantityLike) -> Quantity:
    """The size of a format that is named, or else the quantity that is given.

    >>> print(format_or_quantity("int8"), format_or_quantity("4.25 bit"))
    1 byte 4.25 bit
    """
    if (stored := _STORED.get(squeezed(stated))) is not None:
        return quantity(STORED[stored], "bit")
    return get(stated).size if _is_name(stated) else quantity(stated)


def printed(stated: QuantityLike) -> str:
    """The name of a format that was given in any spelling, or the size as it is.

    >>> printed("float16"), printed("fp8"), printed(4.25)
    ('FP16', 'FP8 E4M3', '4.25 bit')
    """
    if (stored := _STORED.get(squeezed(stated))) is not None:
        return stored
    return get(str(stated)).name if _is_name(stated) else str(element_size("an element", stated))


def _is_name(stated: object) -> TypeGuard[str]:
    return isinstance(stated, str) and stated.strip()[:1].isalpha()


ELEMENT_SIZE = Range(0.0, math.inf, False, "positive and finite", format_or_quantity)
"""Range of a law's argument that may be given by the name of a format too."""
