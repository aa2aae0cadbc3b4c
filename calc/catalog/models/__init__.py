"""Architectures of published models: `calc.models.LLAMA_3_8B.width`, parameters part by part.

Each number carries its source. `load` reads those of a model that is not here from its
own files: a Hugging Face `config.json`, a checkpoint's folder, or a GGUF file.
"""

from __future__ import annotations

from typing import Any

from calc.catalog.models.architecture import Matrix, Transformer, from_shape
from calc.catalog.models.convolutional import Block, Convolution, Convolutional
from calc.catalog.models.diffusion_transformer import (
    CrossDiffusion,
    Diffusion,
    DiffusionTransformer,
    TokenDiffusion,
)
from calc.catalog.models.encoder_decoder_model import EncoderDecoder
from calc.catalog.models.model_files import load
from calc.catalog.models.model_table import (
    also as also,
    called as called,
    get,
    key_of as key_of,
    names,
    network as network,
    transformer as transformer,
)
from calc.catalog.models.networks import Network
from calc.catalog.models.recommender import Recommender
from calc.catalog.models.release import Release
from calc.catalog.models.unet import UNet
from calc.core.records import attribute

__all__ = [
    "Block",
    "Convolution",
    "Convolutional",
    "CrossDiffusion",
    "Diffusion",
    "DiffusionTransformer",
    "EncoderDecoder",
    "Matrix",
    "Network",
    "Recommender",
    "Release",
    "TokenDiffusion",
    "Transformer",
    "UNet",
    "from_shape",
    "get",
    "load",
    "names",
]


def __getattr__(name: str) -> Any:
    return attribute(get, name)


def __dir__() -> list[str]:
    return [*__all__, *(name.upper().replace("-", "_").replace(".", "_") for name in names())]
