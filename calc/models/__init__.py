"""Architectures of published models: `calc.models.LLAMA_3_8B.width`, parameters part by part.

Each number carries its source. `load` reads those of a model that is not here from its
Hugging Face `config.json`.
"""

from __future__ import annotations

from calc.core.records import as_attributes
from calc.models.architecture import Matrix, Transformer, from_shape
from calc.models.convolutional import Block, Convolution, Convolutional
from calc.models.data import (
    also as also,
    get,
    key_of as key_of,
    names,
    network as network,
    transformer as transformer,
)
from calc.models.diffusion import DiffusionTransformer
from calc.models.encoder_decoder import EncoderDecoder
from calc.models.families import load
from calc.models.networks import Network
from calc.models.recommender import Recommender
from calc.models.release import Release

__all__ = [
    "Block",
    "Convolution",
    "Convolutional",
    "DiffusionTransformer",
    "EncoderDecoder",
    "Matrix",
    "Network",
    "Recommender",
    "Release",
    "Transformer",
    "from_shape",
    "get",
    "load",
    "names",
]


__getattr__ = as_attributes(get)


def __dir__() -> list[str]:
    return [*__all__, *(name.upper().replace("-", "_").replace(".", "_") for name in names())]
