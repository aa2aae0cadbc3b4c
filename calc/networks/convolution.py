"""Convolutional networks: operations, bytes and intensity, and the memory that a pass holds."""

from __future__ import annotations

from typing import Annotated

from calc.catalog.models import Convolution, Convolutional, network
from calc.core.arguments import truth
from calc.core.errors import InputError, abbreviated
from calc.core.law import AT_LEAST_ONE, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike, quantity
from calc.formats import element_size as size_of
from calc.laws.roofline import Workload


@law
def convolution_flops(
    height: Annotated[QuantityLike, "", "h", AT_LEAST_ONE],
    width: Annotated[QuantityLike, "", "w", AT_LEAST_ONE],
    inputs: Annotated[QuantityLike, "", "c_in", AT_LEAST_ONE],
    outputs: Annotated[QuantityLike, "", "c_out", AT_LEAST_ONE],
    kernel: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    groups: Annotated[QuantityLike, "", "g", AT_LEAST_ONE] = 1,
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "FLOP"]:
    """Operations of a convolution: each place of the result sees a square of its input channels.

    Equation: O = 2 · h · w · (c_in / g) · c_out · k²

    Assumes that h and w are those of the result, and counts products with the padding too. A
    depthwise convolution has a group for each channel, g = c_in.

    Source: he2016resnet

    >>> print(convolution_flops(112, 112, 3, 64, 7))
    236.0 MFLOP

    Parameters
    ----------
    height
        rows of the result
    width
        columns of the result
    inputs
        channels of the input
    outputs
        channels of the result
    kernel
        rows and columns that a place of the result sees
    groups
        parts of the channels that do not see each other: all of them where it is depthwise
    """
    return _per_term * height * width * (inputs / groups) * outputs * kernel**2


@law
def layer_traffic(
    weights: Annotated[QuantityLike, "", "w", AT_LEAST_ONE],
    read: Annotated[QuantityLike, "", "x", AT_LEAST_ONE],
    written: Annotated[QuantityLike, "", "y", AT_LEAST_ONE],
    batch: Annotated[QuantityLike, "", "b", AT_LEAST_ONE] = 1,
    element_size: Annotated[QuantityLike, "byte", "s"] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes that a layer must move: its weights once, and what each input of a batch makes it read.

    Equation: Q = s · (w + b · (x + y))

    Assumes that nothing stays on the chip from the layer before, and that each element of the input
    comes from memory once.

    Source: williams2009roofline

    >>> print(layer_traffic(9 * 144, 56 * 56 * 144, 56 * 56 * 144, 256))
    462.4 MB

    Parameters
    ----------
    weights
        weights of the layer
    read
        elements of an input of the layer
    written
        elements of its result
    batch
        inputs that are computed together
    element_size
        what an element of weights and activations takes
    """
    return element_size * (weights + batch * (read + written))


@law
def live_memory(
    read: Annotated[QuantityLike, "", "x", AT_LEAST_ONE],
    written: Annotated[QuantityLike, "", "y", NON_NEGATIVE],
    held: Annotated[QuantityLike, "", "z", NON_NEGATIVE] = 0,
    element_size: Annotated[QuantityLike, "byte", "s"] = "1 byte",
) -> Annotated[Quantity, "byte"]:
    """Memory of the activations that exist while a layer runs: input, result, and a shortcut's.

    Equation: S = s · (x + y + z)

    Assumes that a result takes the place of nothing that is still read, and that everything else
    has been overwritten. Weights and the workspace of a kernel are not counted.

    Source: lin2020mcunet

    >>> print(live_memory(48 * 48 * 8, 48 * 48 * 16))
    55.30 kB

    Parameters
    ----------
    read
        elements of an input of the layer
    written
        elements of its result
    held
        elements that a later layer still needs, as a shortcut does
    element_size
        what an element of weights and activations takes
    """
    return element_size * (read + written + held)


@law
def pointwise_intensity(
    inputs: Annotated[QuantityLike, "", "c_in", AT_LEAST_ONE],
    outputs: Annotated[QuantityLike, "", "c_out", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s"] = "2 byte",
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "FLOP/byte"]:
    """Intensity of a convolution of 1 × 1 in a large batch: each place reads and writes channels.

    Equation: I = 2 · c_in · c_out / (s · (c_in + c_out))

    Assumes that the weights are few beside the activations.

    Source: howard2017mobilenets

    >>> print(pointwise_intensity(144, 24))
    20.57 FLOP/byte

    Parameters
    ----------
    inputs
        channels of the input
    outputs
        channels of the result
    element_size
        what an element of weights and activations takes
    """
    return _per_term * inputs * outputs / (element_size * (inputs + outputs))


@law
def depthwise_intensity(
    kernel: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s"] = "2 byte",
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "FLOP/byte"]:
    """Intensity of a depthwise convolution in a large batch, however many channels it has.

    Equation: I = 2 · k² / (2 · s)

    Assumes a stride of 1, and weights that are few beside the activations: each element is read
    once, written once, and multiplied k² times.

    Source: howard2017mobilenets

    >>> print(depthwise_intensity(3))
    4.5 FLOP/byte

    Parameters
    ----------
    kernel
        rows and columns that a place of the result sees
    element_size
        what an element of weights and activations takes
    """
    return _per_term * kernel**2 / (2 * element_size)


def workload(
    layer: Convolution,
    batch: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    element_size: QuantityLike = "2 byte",
) -> Workload:
    """Operations and bytes of one convolution of a network, for a batch.

    >>> from calc import models
    >>> stem, *_, classifier = models.get("resnet-50").convolutions
    >>> print(workload(stem, 64).intensity, workload(classifier, 64).intensity)
    123.8 FLOP/byte 58.43 FLOP/byte

    Parameters
    ----------
    layer
        a `Convolution` of a network's `convolutions`
    batch
        inputs that are computed together
    element_size
        what an element of weights and activations takes
    """
    if not isinstance(layer, Convolution):
        raise InputError(
            f"a convolution of a network of calc.models is needed here; got {abbreviated(layer)}"
        )
    inputs = quantity(batch).m_as("")
    operations = 2.0 * layer.height * layer.width * layer.weights * inputs
    size = size_of("element_size", element_size)
    traffic = layer_traffic(layer.weights, layer.read, layer.written, batch, size)
    return Workload(quantity(operations, "FLOP"), traffic)


def forward_flops(model: Convolutional | str) -> Annotated[Quantity, "FLOP"]:
    """Operations of a convolutional network for one input, in its convolutions and dense layers.

    Equation: O = Σ 2 · h · w · (c_in / g) · c_out · k²

    >>> from calc import models
    >>> print(forward_flops(models.get("resnet-50")))
    8.178 GFLOP

    Parameters
    ----------
    model
        a convolutional network of `calc.models`, or its name
    """
    layers = network(model, Convolutional).convolutions
    return sum((workload(layer).operations for layer in layers), quantity("0 FLOP"))


def memory_schedule(
    model: Convolutional | str, element_size: QuantityLike = "1 byte", in_place: bool = False
) -> tuple[tuple[str, Quantity], ...]:
    """The activations that each layer of a network holds while one input passes, in order.

    Layers run one after the other, and a pooling or a sum is made in the place of its input. With
    `in_place` a depthwise convolution is too, since each channel is read for itself alone.

    >>> for layer, memory in memory_schedule("ds-cnn")[:3]:
    ...     print(layer, memory)
    1 convolution, convolution 8490 byte
    2 separable 1, depthwise 16 kB
    2 separable 1, pointwise 16 kB
    """
    size = size_of("element_size", element_size)
    overwrites = truth("in_place", in_place)
    steps = []
    for layer in network(model, Convolutional).convolutions:
        read, written = layer.read, layer.written
        if overwrites and layer.kind == "depthwise":
            read, written = max(read, written), 0
        steps.append((layer.name, live_memory(read, written, layer.held, size)))
    return tuple(steps)


def peak_memory(
    model: Convolutional | str, element_size: QuantityLike = "1 byte", in_place: bool = False
) -> Annotated[Quantity, "byte"]:
    """Memory that the activations of one input take at most: the largest of a schedule, no sum.

    Equation: S = max s · (x + y + z)

    Source: lin2020mcunet

    >>> print(peak_memory("mobilenet-v2"), peak_memory("mobilenet-v2", in_place=True))
    1.505 MB 1.405 MB

    Parameters
    ----------
    model
        a convolutional network of `calc.models`, or its name
    element_size
        what an element of weights and activations takes
    in_place
        whether a depthwise convolution writes over its input
    """
    most = max(memory for _, memory in memory_schedule(model, "1 byte", in_place))
    return most * (size_of("element_size", element_size) / quantity("1 byte"))
