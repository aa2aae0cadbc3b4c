"""A recommender: tables of embeddings, most of its bytes, and small networks on what is read."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from calc.catalog.models.networks import Network, linear, whole_numbers
from calc.core.errors import InputError
from calc.core.units import Quantity


@dataclass(frozen=True, eq=False, kw_only=True)
class Recommender(Network):
    """One recommender of the shape of DLRM, with crossed features.

    Each sample reads `lookups` rows of each table and adds them up. Its numbers have the names of
    `calc/data/models.toml`, whose first comment explains them.
    """

    family: ClassVar[str] = "a recommender"

    embedding_width: int
    dense_features: int
    cross_layers: int
    cross_rank: int
    rows: tuple[int, ...]
    """Rows of each table."""
    lookups: tuple[int, ...]
    """Rows of each table that a sample reads."""
    bottom_mlp: tuple[int, ...]
    """Widths of the layers on the dense features."""
    top_mlp: tuple[int, ...]
    """Widths of the layers on all features, after they are crossed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("rows", "lookups", "bottom_mlp", "top_mlp"):
            object.__setattr__(self, name, whole_numbers(self.name, name, getattr(self, name)))
        if len(self.rows) != len(self.lookups):
            raise InputError(
                f"{self.name}: lookups must be a number for each of its {len(self.rows)} tables;"
                f" got {len(self.lookups)}"
            )
        if self.bottom_mlp[-1] != self.embedding_width:
            raise InputError(
                f"{self.name}: bottom_mlp must end with the embedding_width,"
                f" {self.embedding_width}; got {self.bottom_mlp[-1]}"
            )

    @property
    def features(self) -> int:
        """Width of all features side by side: a vector of each table, and one of the dense ones."""
        return (len(self.rows) + 1) * self.embedding_width

    @property
    def layers(self) -> tuple[tuple[str, int, int], ...]:
        """Matrices whose every weight each sample meets once: part, inputs, outputs."""
        bottom = pairwise((self.dense_features, *self.bottom_mlp))
        crossed, rank = self.features, self.cross_rank
        cross = [(crossed, rank), (rank, crossed)] * self.cross_layers
        top = pairwise((crossed, *self.top_mlp))
        return (
            *(("bottom MLP", *layer) for layer in bottom),
            *(("cross layers", *layer) for layer in cross),
            *(("top MLP", *layer) for layer in top),
        )

    @property
    def parts(self) -> dict[str, Quantity]:
        """Parameters of each part: tables, bottom MLP, cross layers, top MLP.

        >>> from calc import models
        >>> for part, parameters in models.get("dlrm-dcnv2").parts.items():
        ...     print(part, parameters)
        tables 26.14B param
        bottom MLP 171.4K param
        cross layers 10.63M param
        top MLP 5.246M param
        """
        counts = {"tables": sum(self.rows) * self.embedding_width}
        for part, inputs, outputs in self.layers:
            # Of the two matrices of a cross layer only the second has a bias.
            bias = part != "cross layers" or outputs == self.features
            counts[part] = counts.get(part, 0) + linear(inputs, outputs, bias)
        return self._counted(counts)

    @property
    def shape(self) -> dict[str, object]:
        """Lists of rows, lookups and widths, in words."""
        return {
            "rows": ", ".join(map(str, self.rows)),
            "lookups": ", ".join(map(str, self.lookups)),
            "bottom_mlp": " → ".join(map(str, self.bottom_mlp)),
            "top_mlp": " → ".join(map(str, self.top_mlp)),
        }
