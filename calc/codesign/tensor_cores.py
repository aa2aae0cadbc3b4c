"""Shapes for matrix units: which sizes they take whole, and layers padded to them.

NVIDIA's tensor cores read rows of 16 bytes: 8 numbers of 16 bits, 4 of TF32. From the A100 on they
are at their best with 128 bytes. A size that is no multiple is padded, by the library inside or by
the layers here, which give what the originals give: what is padded is cut off again, before a
softmax or a normalisation could see it. Padding costs operations: 16 for 10 are 60 % more.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TypeAlias

from calc.codesign.torch_extra import torch
from calc.core.arguments import whole_number
from calc.core.errors import InputError, abbreviated

# Bytes of a row that is read whole, and bytes at which a generation is at its best.
# Source: nvidia2023matmul
ROW_BYTES = 16
BEST_BYTES = {"volta": 16, "turing": 16, "ampere": 128, "hopper": 128}
# Formats that a generation's tensor cores take; FP32 goes in as TF32, of the same size.
FORMATS = {
    "volta": {torch.float16},
    "turing": {torch.float16, torch.int8},
    "ampere": {torch.float16, torch.bfloat16, torch.int8, torch.float32, torch.float64},
}
FORMATS["hopper"] = FORMATS["ampere"] | {torch.float8_e4m3fn, torch.float8_e5m2}
Layer: TypeAlias = torch.nn.Linear | torch.nn.Embedding
GENERATIONS = {(7, 0): "volta", (7, 5): "turing", (8, 0): "ampere", (9, 0): "hopper"}


@dataclass(frozen=True)
class ShapeFinding:
    """A layer with a size that is no multiple, what it is padded to, and what that costs."""

    name: str
    sizes: tuple[int, int]
    padded: tuple[int, int]
    reason: str = ""

    @property
    def extra_work(self) -> float:
        """Operations that padding adds, as a share of those that are needed."""
        return self.padded[0] * self.padded[1] / (self.sizes[0] * self.sizes[1]) - 1


def tensor_core_multiple(dtype: torch.dtype, device: str = "ampere", best: bool = False) -> int:
    """Return the number that sizes should be multiples of, for this format on this generation.

    The device is one of volta, turing, ampere and hopper, or "cuda" for the one that is here. With
    `best`, what the generation is fastest with, and not only what it reads whole.

    >>> import torch
    >>> tensor_core_multiple(torch.float16), tensor_core_multiple(torch.float16, best=True)
    (8, 64)
    """
    generation = _this_gpu() if device == "cuda" else device
    if generation not in FORMATS:
        raise InputError(
            f"device is one of {', '.join(FORMATS)} or cuda; got {abbreviated(device)}"
        )
    if dtype not in FORMATS[generation]:
        raise InputError(f"the tensor cores of {generation} do not compute in {abbreviated(dtype)}")
    return (BEST_BYTES[generation] if best else ROW_BYTES) // dtype.itemsize


def is_tensor_core_compatible(*sizes: int, dtype: torch.dtype, device: str = "ampere") -> bool:
    """Return whether tensor cores take all these sizes whole.

    >>> import torch
    >>> is_tensor_core_compatible(512, 10, dtype=torch.float16)
    False
    """
    multiple = tensor_core_multiple(dtype, device)
    return all(whole_number("a size", size) % multiple == 0 for size in sizes)


def pad_to_tensor_core_multiple(size: int, dtype: torch.dtype, device: str = "ampere") -> int:
    """The least size from this one on that tensor cores take whole.

    >>> import torch
    >>> pad_to_tensor_core_multiple(10, torch.float16)
    16
    """
    multiple = tensor_core_multiple(dtype, device)
    return -(-whole_number("size", size) // multiple) * multiple


def validate_model_for_tensor_cores(
    model: torch.nn.Module, dtype: torch.dtype, device: str = "ampere"
) -> list[ShapeFinding]:
    """The Linear and Embedding layers with a size that tensor cores do not take whole.

    A finding with a reason is of a layer that `optimize_model_for_tensor_cores` leaves as it is.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Linear(32, 10))
    >>> for found in validate_model_for_tensor_cores(model, torch.float16):
    ...     print(found.name, found.sizes, found.padded, f"{found.extra_work:.0%}")
    1 (32, 10) (32, 16) 60%
    """
    findings = []
    for parent, name, layer in _layers(model):
        sizes = _sizes(layer)
        first, second = (pad_to_tensor_core_multiple(size, dtype, device) for size in sizes)
        padded = first, second
        if padded != sizes:
            findings.append(ShapeFinding(name, sizes, padded, _why_left(model, parent, layer)))
    return findings


def optimize_model_for_tensor_cores(
    model: torch.nn.Module, dtype: torch.dtype, device: str = "ampere"
) -> torch.nn.Module:
    """A copy of the model with its unfit Linear and Embedding layers padded, and equal outputs.

    The weights are padded with zeros, which training leaves at zero. Make the optimizer after this.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Linear(32, 10))
    >>> padded = optimize_model_for_tensor_cores(model, torch.float16)
    >>> tuple(padded[1].weight.shape), tuple(padded(torch.ones(4, 64)).shape)
    ((16, 32), (4, 10))
    """
    padded = copy.deepcopy(model)
    for finding in validate_model_for_tensor_cores(model, dtype, device):
        if finding.reason:
            continue
        layer = padded.get_submodule(finding.name)
        kind = PaddedLinear if isinstance(layer, torch.nn.Linear) else PaddedEmbedding
        wide = kind(layer, *finding.padded)
        if not finding.name:  # the model is this one layer
            return wide
        padded.set_submodule(finding.name, wide)
    return padded


class PaddedLinear(torch.nn.Module):
    """A Linear layer on padded sizes, whose output is the original's: the padding is cut off."""

    def __init__(self, linear: torch.nn.Linear, inputs: int, outputs: int) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight = _padded(linear.weight, outputs, inputs)
        self.bias = None if linear.bias is None else _padded(linear.bias, outputs)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        extra = self.weight.shape[1] - self.in_features
        wide = torch.nn.functional.pad(inputs, (0, extra)) if extra else inputs
        return torch.nn.functional.linear(wide, self.weight, self.bias)[..., : self.out_features]


class PaddedEmbedding(torch.nn.Module):
    """An Embedding on padded sizes, whose output is the original's, and so are its refusals."""

    def __init__(self, embedding: torch.nn.Embedding, rows: int, width: int) -> None:
        super().__init__()
        self.num_embeddings = embedding.num_embeddings
        self.embedding_dim = embedding.embedding_dim
        self.weight = _padded(embedding.weight, rows, width)
        self.options = {
            name: getattr(embedding, name)
            for name in ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
        }

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        # A row of the padding would come back as zeros; a GPU waits for this look at the indices.
        if indices.numel() and int(indices.max()) >= self.num_embeddings:
            raise IndexError("index out of range in self")
        rows = torch.nn.functional.embedding(indices, self.weight, **self.options)
        return rows[..., : self.embedding_dim]


def _padded(weight: torch.Tensor, *sizes: int) -> torch.nn.Parameter:
    wide = weight.detach().new_zeros(sizes)
    wide[tuple(slice(size) for size in weight.shape)] = weight.detach()
    return torch.nn.Parameter(wide, requires_grad=weight.requires_grad)


def _layers(model: torch.nn.Module) -> list[tuple[torch.nn.Module, str, Layer]]:
    """Each Linear and Embedding with its name and the module that it is in."""
    wanted = (torch.nn.Linear, torch.nn.Embedding)
    return [
        (model.get_submodule(name.rpartition(".")[0]), name, layer)
        for name, layer in model.named_modules()
        if isinstance(layer, wanted)
    ]


def _sizes(layer: Layer) -> tuple[int, int]:
    if isinstance(layer, torch.nn.Linear):
        return layer.in_features, layer.out_features
    return layer.num_embeddings, layer.embedding_dim


def _why_left(model: torch.nn.Module, parent: torch.nn.Module, layer: Layer) -> str:
    """Return why a layer cannot be replaced; "" if it can."""
    if type(layer) not in (torch.nn.Linear, torch.nn.Embedding):
        return f"{type(layer).__name__} may compute otherwise than its base"
    if isinstance(parent, torch.nn.TransformerEncoderLayer):
        return "TransformerEncoderLayer reads its layers' weights itself"
    owners = [other for _, _, other in _layers(model) if other.weight is layer.weight]
    return "another layer has the same weight" if len(owners) > 1 else ""


def _this_gpu() -> str:
    if not torch.cuda.is_available():
        raise InputError("there is no CUDA device here; name a generation, such as ampere")
    capability = torch.cuda.get_device_capability()
    generations = [generation for generation in GENERATIONS if generation <= capability]
    if not generations:
        raise InputError(f"a GPU of compute capability {capability} has no tensor cores")
    return GENERATIONS[max(generations)]
