"""A convolutional network as a list of blocks, and the convolutions that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

from calc.catalog.models.networks import Network
from calc.core.arguments import number as read_number, one_of, whole_number
from calc.core.errors import InputError, abbreviated, did_you_mean
from calc.core.units import Quantity

NORMALIZED = 2  # vectors of a normalisation: scale and shift, of each channel


class Convolution(NamedTuple):
    """One convolution, a dense layer being one of a single place: what it reads, has and writes."""

    name: str
    kind: str
    height: int
    width: int
    """Width of the result."""
    inputs: int
    outputs: int
    """Channels."""
    kernel: tuple[int, int]
    groups: int
    """Parts of the channels that do not see each other: all of them, where it is depthwise."""
    read: int
    """Elements of its input."""
    vectors: int
    """Numbers of each output channel: of a bias, and of a normalisation."""
    held: int = 0
    """Elements that neither it reads nor writes, and that a layer after it still needs."""

    @property
    def weights(self) -> int:
        """Number of weights, each of which is used at each place of the result."""
        return self.inputs // self.groups * self.outputs * self.kernel[0] * self.kernel[1]

    @property
    def parameters(self) -> int:
        """Number of weights, biases and parameters that normalise the result."""
        return self.weights + self.vectors * self.outputs

    @property
    def written(self) -> int:
        """Elements of its result."""
        return self.height * self.width * self.outputs


@dataclass(frozen=True, kw_only=True)
class Block:
    """Layers alike in a row, as a table of the data has them."""

    kind: str
    channels: int = 0
    """Channels of its result."""
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    """Stride of the first of its repeats; a pooling without any leaves one place."""
    repeats: int = 1
    inner: int = 0
    """Channels between the outer convolutions of a bottleneck."""
    expansion: float = 1
    """Channels within an inverted residual, over those that it reads."""
    squeeze: int = 0
    """Inner width of squeeze-and-excitation; 0 where there is none."""
    normalized: bool = True
    """Whether a normalisation follows each convolution."""
    bare_shortcut: bool = False
    """Whether none follows that of the shortcut."""

    def __str__(self) -> str:
        sides = " × ".join(map(str, self.kernel))
        words = [f"{sides} {self.kind}" if self.kernel != (1, 1) else self.kind]
        words += [f"to {self.channels} channels"] if self.channels else []
        words += [f"{self.inner} within"] if self.inner else []
        words += [f"{self.expansion:g} times as many within"] if self.expansion != 1 else []
        words += [f"squeezed to {self.squeeze}"] if self.squeeze else []
        words += [f"stride {' × '.join(map(str, dict.fromkeys(self.stride)))}"] * (
            max(self.stride) > 1
        )
        return ", ".join(words) + (f"; {self.repeats} times" if self.repeats > 1 else "")


class Place(NamedTuple):
    """Size of the activations between two layers."""

    height: int
    width: int
    channels: int

    @property
    def elements(self) -> int:
        return self.height * self.width * self.channels


@dataclass(frozen=True, eq=False, kw_only=True)
class Convolutional(Network):
    """One convolutional network, for an input of one size.

    `blocks` are tables: kind, channels, kernel, stride and what else a kind has, as the first
    comment of `calc/data/models.toml` explains.
    """

    family: ClassVar[str] = "a convolutional network"

    height: int
    width: int
    channels: int
    """Channels of the input."""
    blocks: tuple[Block, ...]
    biases: bool = False
    """Whether convolutions have biases beside their normalisation."""
    work: Quantity | None = None
    """Operations for one input as published."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "blocks", tuple(_blocks(self.name, self.blocks)))
        _ = self.convolutions  # refuses a block that leaves nothing

    @property
    def convolutions(self) -> tuple[Convolution, ...]:
        """Every convolution on the way of an input, the dense layers as those of one place."""
        size = Place(self.height, self.width, self.channels)
        counted: list[Convolution] = []
        for number, block in enumerate(self.blocks, start=1):
            for repeat in range(block.repeats):
                name = f"{number} {block.kind}" + (f" {repeat + 1}" if block.repeats > 1 else "")
                stride = block.stride if repeat == 0 else (1, 1)
                size = KINDS[block.kind](_Layers(name, block, self.biases, counted), size, stride)
        return tuple(counted)

    @property
    def parts(self) -> dict[str, Quantity]:
        """Parameters by kind of layer: convolution, pointwise, depthwise, dense.

        >>> from calc import models
        >>> for part, parameters in models.get("mobilenet-v2").parts.items():
        ...     print(part, parameters)
        convolution 928 param
        depthwise 78.50K param
        pointwise 2.144M param
        dense 1.281M param
        """
        counts: dict[str, int] = {}
        for layer in self.convolutions:
            counts[layer.kind] = counts.get(layer.kind, 0) + layer.parameters
        return self._counted(counts)

    @property
    def shape(self) -> dict[str, object]:
        """Blocks of the network, in words."""
        words = {str(number): str(block) for number, block in enumerate(self.blocks, start=1)}
        return {"blocks": words}


class _Layers:
    """Appends the convolutions of a block to those of its network."""

    def __init__(
        self, name: str, block: Block, biases: bool, convolutions: list[Convolution]
    ) -> None:
        self.name, self.block, self.found = name, block, convolutions
        self.vectors = int(biases) + (NORMALIZED if block.normalized else 0)
        self.bare = int(biases)

    def add(
        self,
        size: Place,
        outputs: int,
        kernel: tuple[int, int] = (1, 1),
        stride: tuple[int, int] = (1, 1),
        groups: int = 1,
        vectors: int | None = None,
        held: int = 0,
    ) -> Place:
        """One convolution, padded so that only its stride makes its result smaller."""
        output = Place(-(-size.height // stride[0]), -(-size.width // stride[1]), outputs)
        kind = "depthwise" if groups > 1 else "pointwise" if kernel == (1, 1) else "convolution"
        self._append(
            kind, size, output, kernel, groups, self.vectors if vectors is None else vectors, held
        )
        return output

    def dense(self, size: Place, outputs: int, vectors: int, held: int = 0) -> Place:
        output = Place(1, 1, outputs)
        self._append("dense", Place(1, 1, size.elements), output, (1, 1), 1, vectors, held)
        return output

    def _append(
        self,
        kind: str,
        size: Place,
        made: Place,
        kernel: tuple[int, int],
        groups: int,
        vectors: int,
        held: int,
    ) -> None:
        self.found.append(
            Convolution(
                f"{self.name}, {kind}",
                kind,
                made.height,
                made.width,
                size.channels,
                made.channels,
                kernel,
                groups,
                size.elements,
                vectors,
                held,
            )
        )


def _convolution(layers: _Layers, size: Place, stride: tuple[int, int]) -> Place:
    return layers.add(size, layers.block.channels, layers.block.kernel, stride)


def _pool(layers: _Layers, size: Place, stride: tuple[int, int]) -> Place:
    if max(stride) == 1:
        return Place(1, 1, size.channels)
    return Place(-(-size.height // stride[0]), -(-size.width // stride[1]), size.channels)


def _dense(layers: _Layers, size: Place, stride: tuple[int, int]) -> Place:
    normalized = NORMALIZED if layers.block.normalized else 0
    return layers.dense(size, layers.block.channels, 1 + normalized)


def _bottleneck(layers: _Layers, size: Place, stride: tuple[int, int]) -> Place:
    """1 × 1 to the inner channels, the kernel, 1 × 1 to the outer ones, and around them."""
    block, around = layers.block, size.elements
    inner = layers.add(size, block.inner)
    inner = layers.add(inner, block.inner, block.kernel, stride, held=around)
    output = layers.add(inner, block.channels, held=around)
    return _shortcut(layers, size, output, stride)


def _residual(layers: _Layers, size: Place, stride: tuple[int, int]) -> Place:
    """The kernel twice, and around both."""
    block = layers.block
    inner = layers.add(size, block.channels, block.kernel, stride)
    output = layers.add(inner, block.channels, block.kernel, held=size.elements)
    return _shortcut(layers, size, output, stride)


def _shortcut(layers: _Layers, size: Place, made: Place, stride: tuple[int, int]) -> Place:
    """A convolution of one place where a block changes what flows, and nothing elsewhere."""
    if size != made:
        vectors = layers.bare if layers.block.bare_shortcut else None
        layers.add(size, made.channels, stride=stride, vectors=vectors, held=made.elements)
    return made


def _separable(layers: _Layers, size: Place, stride: tuple[int, int]) -> Place:
    """Each channel by itself, and then all of them at each place."""
    block = layers.block
    inner = layers.add(size, size.channels, block.kernel, stride, size.channels)
    return layers.add(inner, block.channels)


def _inverted(layers: _Layers, size: Place, stride: tuple[int, int]) -> Place:
    """Add an inverted bottleneck: wide within, depthwise, narrow between blocks."""
    block = layers.block
    width = round(size.channels * block.expansion)
    adds = max(stride) == 1 and block.channels == size.channels
    around = size.elements if adds else 0
    wide = width != size.channels
    inner = layers.add(size, width) if wide else size
    inner = layers.add(inner, width, block.kernel, stride, width, held=around if wide else 0)
    if block.squeeze:  # two dense layers on the mean of each channel, which scale the channels
        held = around + inner.elements
        squeezed = layers.dense(Place(1, 1, width), block.squeeze, 1, held)
        layers.dense(squeezed, width, 1, held)
    return layers.add(inner, block.channels, held=around)


KINDS: dict[str, Callable[[_Layers, Place, tuple[int, int]], Place]] = {
    "convolution": _convolution,
    "pool": _pool,
    "dense": _dense,
    "bottleneck": _bottleneck,
    "residual": _residual,
    "separable": _separable,
    "inverted": _inverted,
}


def _blocks(model: str, entries: object) -> Iterator[Block]:
    """The blocks of tables, or blocks already."""
    allowed = [field.name for field in fields(Block)]
    if not isinstance(entries, Iterable) or isinstance(entries, str | dict) or not entries:
        raise InputError(f"{model}: blocks must be a list of tables; got {abbreviated(entries)}")
    for number, table in enumerate(entries, start=1):
        owner = f"{model}: block {number}"
        if isinstance(table, Block):
            yield table
            continue
        if not isinstance(table, dict) or "kind" not in table:
            raise InputError(f"{owner}: needs a kind, as in {{ kind = 'dense', channels = 10 }}")
        one_of(f"{owner}: kind", table["kind"], KINDS)
        for option in table:
            if option not in allowed:
                near = did_you_mean(option, allowed)
                raise InputError(
                    f"{owner}: there is no {option}; {near}there are {', '.join(allowed)}"
                )
        yield Block(**{name: _read(owner, name, value) for name, value in table.items()})


def _read(owner: str, name: str, value: object) -> Any:
    """A field of a block: a side stands for both."""
    if name in ("kind", "normalized", "bare_shortcut"):
        return value
    if name == "expansion":
        return read_number(f"{owner}: {name}", value, above=0)
    if name not in ("kernel", "stride"):
        return whole_number(f"{owner}: {name}", value)
    sides = value if isinstance(value, list | tuple) and len(value) == 2 else (value, value)
    return tuple(whole_number(f"{owner}: {name}", side) for side in sides)
