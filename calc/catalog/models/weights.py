"""Formats and sizes of a model's weights, group by group of its matrices.

A name of a format in few bits means what checkpoints of that name hold: linear layers of blocks in
it, all else in 16 bits. A size is that of every parameter. What takes either takes groups too:
"experts=mxfp4,others=bf16", or "released" for what the data say of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from calc import formats
from calc.catalog.models import checkpoint_formats
from calc.catalog.models.architecture import Matrix, Transformer
from calc.catalog.models.release import GROUPS, told
from calc.catalog.software import Software
from calc.core.arguments import one_of
from calc.core.errors import InputError, abbreviated, marked
from calc.core.fixed import Fixed
from calc.core.units import Quantity, QuantityLike, quantity

RELEASED = "released"
UNSTATED = "bf16"  # what weights are taken to be in where the data do not say


@dataclass(frozen=True, eq=False)
class Weights:
    """The formats of a model's weights, or the size of one, by group of its matrices."""

    model: Transformer
    given: Mapping[str, QuantityLike]
    """Formats by group of `GROUPS`, or by matrix; "others" are what is in none that is named."""
    argument: str = "weights"
    """What errors call them."""
    products: str = ""
    """What products are computed in, where weights are not widened before."""
    name: str = ""
    """Name of a checkpoint whose formats are too many to be told."""
    as_released: bool = False
    """Whether they are those of the model's own release."""
    by_name: bool = False
    """Whether a name alone tells of them, so that who made the checkpoint decided the rest."""

    @classmethod
    def of(cls, model: Transformer, stated: QuantityLike, argument: str = "weights") -> Weights:
        """Read what a caller wrote: a checkpoint's name, a size, formats of groups, or "released".

        >>> from calc import models
        >>> for given in ("fp8", "1 byte", "experts=mxfp4,others=bf16", "q4_k_m"):
        ...     weights = Weights.of(models.get("mixtral-8x7b"), given)
        ...     print(f"{weights.memory} in {weights}")
        46.97 GB in FP8 E4M3 (experts, attention) and BF16 (others)
        46.70 GB in 1 byte
        27.17 GB in MXFP4 (experts) and BF16 (others)
        28.45 GB in Q4_K_M, 4.873 bit in the mean
        """
        if is_released(stated):
            if (release := model.released) is None:
                raise InputError(
                    f"{marked(argument)}: the data do not say in which format {model.name} was"
                    " released:"
                    ' name one, as in "bf16"'
                )
            said = (release.products, "", True, release.by_name)
            return cls(model, release.formats, argument, *said)
        if isinstance(stated, str) and "=" in stated:
            return cls(model, _groups(stated, argument), argument)
        if isinstance(stated, str) and (held := checkpoint_formats.named(model, stated, argument)):
            given_by = held.released, not held.released
            return cls(model, held.given, argument, held.products, held.name, *given_by)
        return cls(model, {"others": stated}, argument)

    def __post_init__(self) -> None:
        name, model = self.argument, self.model
        if "others" not in self.given:
            raise InputError(
                f"{name}: others are missing, all that is in no group that is named: add"
                " others=bf16, or the like"
            )
        named = {matrix.name for matrix in model.matrices}
        for group in self.given:
            if group not in named:
                one_of(f"{name}: a group of matrices", group, GROUPS)
                if group not in ("embedding", "others", *model.groups):
                    raise InputError(f"{name}: {model.name} has no matrices of {group}")
        table, output = (self.given.get(group) for group in ("embedding", "output"))
        if model.tied_embeddings and table is not None and output not in (None, table):
            raise InputError(
                f"{name}: embedding and output of {model.name} are one matrix, which is in"
                f" {abbreviated(table)} or in {abbreviated(output)}"
            )
        _ = self.sizes  # refuses what is no format

    @cached_property
    def sizes(self) -> dict[str, Quantity]:
        """Return what an element takes, by group or matrix."""
        return {
            group: formats.element_size(self.argument, stated)
            for group, stated in self.given.items()
        }

    def key(self, matrix: Matrix) -> str:
        """Return the key of `sizes` that a matrix has."""
        if matrix.name in self.sizes:
            return matrix.name
        group = matrix.group
        if group == "output" and self.model.tied_embeddings and group not in self.sizes:
            group = "embedding"
        return group if group in self.sizes else "others"

    def size(self, matrix: Matrix) -> Quantity:
        """Return the size of an element of a matrix."""
        return self.sizes[self.key(matrix)]

    @cached_property
    def elements(self) -> dict[tuple[int, int, str], int]:
        """Elements of one copy of all matrices alike: by copies, those used, and key of `sizes`."""
        elements: dict[tuple[int, int, str], int] = {}
        for matrix in self.model.matrices:
            alike = matrix.copies, matrix.used, self.key(matrix)
            of_copy = matrix.inputs * matrix.outputs * matrix.layers
            elements[alike] = elements.get(alike, 0) + of_copy
        return Fixed(elements)

    @cached_property
    def memory(self) -> Quantity:
        """Sum all parameters: matrices, the embedding, and the others with biases and norms."""
        model = self.model
        left: float = model.parameters.m_as("param")
        counts = dict.fromkeys(self.sizes, 0.0)
        for (copies, _, group), of_copy in self.elements.items():
            counts[group] += of_copy * copies
            left -= of_copy * copies
        for matrix in model.matrices:
            idle = float(model.idle.get(matrix.name, 0))
            counts[self.key(matrix)] += idle
            left -= idle
        if "embedding" in counts:
            table = float(model.layer_table)
            if not model.tied_embeddings:
                table += float(model.width * (model.vocabulary or 0))
            counts["embedding"] += table
            left -= table
        counts["others"] += left
        memory = quantity(0, "byte")
        for group, size in self.sizes.items():
            memory = memory + counts[group] * size
        return memory.to("byte")

    def __str__(self) -> str:
        if not self.name:
            return told(self.given)
        bits = (self.memory / self.model.parameters.m_as("param")).to("bit")
        return f"{self.name}, {bits} in the mean"


def unless_said(model: Transformer, program: Software) -> str:
    """Return what a model's weights are taken to be in where a caller says nothing.

    A program that reads files of its own has one for experts that are released in MXFP4.

    >>> from calc import models, software
    >>> unless_said(models.get("gpt-oss-120b"), software.get("llama-cpp"))
    'mxfp4_moe'
    >>> vllm = software.get("vllm")
    >>> unless_said(models.get("gpt-oss-120b"), vllm), unless_said(models.get("llama-3-8b"), vllm)
    ('released', 'bf16')
    """
    if model.released is None:
        return UNSTATED
    narrow = model.released.formats.get("experts") == "mxfp4"
    return program.mxfp4 if narrow and program.mxfp4 else RELEASED


def is_released(stated: object) -> bool:
    """Return whether a caller asks for the formats of the release.

    >>> is_released("Released"), is_released("bf16")
    (True, False)
    """
    return isinstance(stated, str) and stated.strip().lower() == RELEASED


def _groups(stated: str, argument: str) -> dict[str, str]:
    """The formats of a text such as "experts=mxfp4,others=bf16"."""
    by_group: dict[str, str] = {}
    for assignment in stated.split(","):
        group, _, form = (part.strip() for part in assignment.partition("="))
        if not group or not form or group in by_group:
            raise InputError(
                f"{marked(argument)}: groups have a format each, as in experts=mxfp4,others=bf16;"
                " got"
                f" {abbreviated(stated)}"
            )
        by_group[group] = form
    return by_group
