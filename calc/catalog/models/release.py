"""Formats in which a model's authors release its weights, by group of its matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calc import formats
from calc.core.fixed import fix_fields
from calc.core.provenance import Provenance
from calc.core.units import QuantityLike

GROUPS = ("experts", "feed-forward", "attention", "router", "embedding", "output", "others")
"""What a checkpoint may keep in a format of its own: the experts that are chosen among, networks
that each token goes through, matrices of the attentions, routers, the table of the embedding, the
matrix of the output, and all that is left."""


@dataclass(frozen=True)
class Release:
    """The formats of a released checkpoint."""

    formats: Mapping[str, str]
    """Formats by one of `GROUPS`, or by the name of a matrix where those of a group differ. In
    place of one that counts no scales, the bits of a weight with its share of one."""
    products: str = ""
    """What products are computed in too, where a device has it; left out where weights alone are
    in these formats."""
    provenance: Provenance | None = None
    by_name: bool = False
    """Whether the name of a checkpoint alone tells of them."""

    def __post_init__(self) -> None:
        fix_fields(self)

    def __str__(self) -> str:
        return told(self.formats)


def told(by_group: Mapping[str, QuantityLike]) -> str:
    """Formats by group as people read them.

    >>> told({"experts": "mxfp4", "others": "bf16"}), told({"others": "fp8"})
    ('MXFP4 (experts) and BF16 (others)', 'FP8 E4M3')
    """
    alike: dict[str, list[str]] = {}
    for group, written in by_group.items():
        alike.setdefault(formats.printed(written), []).append(group)
    if len(alike) == 1:
        return next(iter(alike))
    return " and ".join(f"{form} ({', '.join(groups)})" for form, groups in alike.items())
