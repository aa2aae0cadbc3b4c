"""In what a model's weights are kept, group by group of its matrices, and what each of them takes.

A checkpoint may keep its experts in four bits and all else in sixteen. What takes the format of
weights, or the size of one, takes such groups too: "experts=mxfp4,others=bf16", or "released" for
what the data say of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from calc import formats
from calc.catalog.models.architecture import Matrix, Transformer
from calc.catalog.models.release import GROUPS, told
from calc.core.arguments import one_of
from calc.core.errors import InputError, abbreviated
from calc.core.units import Quantity, QuantityLike, quantity

RELEASED = "released"


@dataclass(frozen=True, eq=False)
class Weights:
    """The formats of a model's weights, or the size of one, by group of its matrices."""

    model: Transformer
    given: Mapping[str, QuantityLike]
    """By group of `GROUPS`; "others" are what is in none that is named."""
    argument: str = "weights"
    """What errors call them."""

    @classmethod
    def of(cls, model: Transformer, given: QuantityLike, argument: str = "weights") -> Weights:
        """What a caller wrote: a format or a size for all, one for each group, or "released".

        >>> from calc import models
        >>> model = models.get("gpt-oss-120b")
        >>> print(Weights.of(model, "released").memory, Weights.of(model, "mxfp4").memory)
        65.25 GB 62.07 GB
        """
        if is_released(given):
            if model.released is None:
                raise InputError(
                    f"{argument}: the data do not say in which format {model.name} was released:"
                    ' name one, as in "bf16"'
                )
            return cls(model, model.released.formats, argument)
        if isinstance(given, str) and "=" in given:
            return cls(model, _groups(given, argument), argument)
        return cls(model, {"others": given}, argument)

    def __post_init__(self) -> None:
        name, model = self.argument, self.model
        if "others" not in self.given:
            raise InputError(
                f"{name}: others are missing, all that is in no group that is named: add"
                " others=bf16, or the like"
            )
        for group in self.given:
            one_of(f"{name}: a group of matrices", group, GROUPS)
            if group != "others" and group not in self.matrices:
                raise InputError(f"{name}: {model.name} has no matrices of {group}")
        _ = self.sizes  # refuses what is no format

    @cached_property
    def matrices(self) -> dict[str, list[Matrix]]:
        """The matrices of each group but the others."""
        by_group: dict[str, list[Matrix]] = {}
        for matrix in self.model.matrices:
            if matrix.group != "others":
                by_group.setdefault(matrix.group, []).append(matrix)
        return by_group

    @cached_property
    def sizes(self) -> dict[str, Quantity]:
        """What an element takes, by group."""
        return {
            group: formats.element_size(self.argument, given) for group, given in self.given.items()
        }

    def size(self, matrix: Matrix) -> Quantity:
        """What an element of a matrix takes."""
        return self.sizes.get(matrix.group, self.sizes["others"])

    @property
    def memory(self) -> Quantity:
        """Of all parameters: those of the groups, and the others with biases, norms and tables."""
        left: float = self.model.parameters.m_as("param")
        memory = quantity(0, "byte")
        for group, size in self.sizes.items():
            if group != "others":
                count = sum(matrix.parameters for matrix in self.matrices[group])
                left -= count
                memory = memory + count * size
        return (memory + left * self.sizes["others"]).to("byte")

    def __str__(self) -> str:
        return told(self.given)


def is_released(given: object) -> bool:
    """Whether a caller asks for the formats of the release.

    >>> is_released("Released"), is_released("bf16")
    (True, False)
    """
    return isinstance(given, str) and given.strip().lower() == RELEASED


def _groups(given: str, argument: str) -> dict[str, str]:
    """The formats of a text such as "experts=mxfp4,others=bf16"."""
    by_group: dict[str, str] = {}
    for assignment in given.split(","):
        group, _, form = (part.strip() for part in assignment.partition("="))
        if not group or not form or group in by_group:
            raise InputError(
                f"{argument}: groups have a format each, as in experts=mxfp4,others=bf16; got"
                f" {abbreviated(given)}"
            )
        by_group[group] = form
    return by_group
