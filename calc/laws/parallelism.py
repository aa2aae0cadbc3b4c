"""Training on many devices: what each of them holds and sends, as laws that take numbers.

`calc.layouts` puts them together for a model of `calc.models` and a way to cut it.
"""

from __future__ import annotations

from typing import Annotated

from calc.catalog import constants
from calc.core.elementwise import maximum, minimum, where
from calc.core.law import AT_LEAST_ONE, FRACTION, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike
from calc.formats import ELEMENT_SIZE


@law
def state_memory(
    parameters: Annotated[QuantityLike, "param", "P"],
    weight_size: Annotated[QuantityLike, "byte/param", "w", NON_NEGATIVE],
    gradient_size: Annotated[QuantityLike, "byte/param", "g", NON_NEGATIVE],
    optimizer_size: Annotated[QuantityLike, "byte/param", "o", NON_NEGATIVE],
    weight_shards: Annotated[QuantityLike, "", "n_w", AT_LEAST_ONE] = 1,
    gradient_shards: Annotated[QuantityLike, "", "n_g", AT_LEAST_ONE] = 1,
    optimizer_shards: Annotated[QuantityLike, "", "n_o", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, "byte"]:
    """Memory of a device for its part of a model's weights, gradients and optimizer.

    Equation: M = P · (w / n_w + g / n_g + o / n_o)

    P counts the parameters of the device's layers and slices. Sharding (ZeRO) divides o in stage 1,
    g too in stage 2 and w too in stage 3 by the devices that would each hold a copy. Assumes even
    parts, and no buffers.

    Source: rajbhandari2020zero

    >>> print(state_memory("7.5B param", "2 byte/param", "2 byte/param", "12 byte/param", 1, 1, 64))
    31.41 GB

    Parameters
    ----------
    parameters
        parameters of the model, or of the part of it in question
    weight_size
        what the weight of a parameter takes
    gradient_size
        what the gradient of a parameter takes
    optimizer_size
        what the optimizer keeps of a parameter
    weight_shards
        devices that share the weights
    gradient_shards
        devices that share the gradients
    optimizer_shards
        devices that share the optimizer's state
    """
    return parameters * (
        weight_size / weight_shards
        + gradient_size / gradient_shards
        + optimizer_size / optimizer_shards
    )


@law
def activations_in_flight(
    activations: Annotated[QuantityLike, "byte", "A", NON_NEGATIVE],
    tensor: Annotated[QuantityLike, "", "t", AT_LEAST_ONE],
    stages: Annotated[QuantityLike, "", "p", AT_LEAST_ONE],
    microbatches: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    stages_per_device: Annotated[QuantityLike, "", "v", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, "byte"]:
    """Activations that the first stage of a pipeline holds, of those of a microbatch in all layers.

    Equation: M = A / t · min(m, p + i · (p − 1) / v) / p, i = 1 where v > 1, else 0

    Assumes a schedule of one forward and one backward pass in turn, where the first of p stages has
    p microbatches under way, and norms that are split along the sequence by the t devices that
    split the matrices. Interleaved in v > 1 thin slices to a device, the first stage holds
    1 + (p − 1) / (p · v) times as much.

    Source: korthikanti2023reducing

    >>> print(activations_in_flight("36.5 GB", 8, 4, 16))
    4.562 GB
    >>> print(activations_in_flight("36.5 GB", 8, 4, 16, stages_per_device=2))
    6.273 GB

    Parameters
    ----------
    activations
        activations of a microbatch in all layers of the model
    tensor
        devices that split each matrix among them (tensor parallelism)
    stages
        stages of the pipeline
    microbatches
        parts of a batch that follow one another through the pipeline
    stages_per_device
        thin slices of the model that a device holds (interleaving)
    """
    ahead = where(stages_per_device > 1, (stages - 1) / stages_per_device, 0)
    return activations / tensor * minimum(microbatches, stages + ahead) / stages


@law
def stage_activations(
    activations: Annotated[QuantityLike, "byte", "A", NON_NEGATIVE],
    stage: Annotated[QuantityLike, "", "i", AT_LEAST_ONE],
    stages: Annotated[QuantityLike, "", "p", AT_LEAST_ONE],
    microbatches: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    tensor: Annotated[QuantityLike, "", "t", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, "byte"]:
    """Activations that any stage of a pipeline holds, of those of a microbatch in all layers.

    Equation: M = A / (t · p) · min(m, max(p − i + 1, 0))

    Assumes what activations_in_flight does, which is the first stage, i = 1: each later one has one
    microbatch fewer under way, the last a single one.

    Source: narayanan2021efficient

    >>> print(stage_activations("36.5 GB", 4, 4, 16, tensor=8))
    1.141 GB

    Parameters
    ----------
    activations
        activations of a microbatch in all layers of the model
    stage
        number of the stage, the first is 1
    stages
        stages of the pipeline
    microbatches
        parts of a batch that follow one another through the pipeline
    tensor
        devices that split each matrix among them (tensor parallelism)
    """
    under_way = minimum(microbatches, maximum(stages - stage + 1, 0))
    return activations / (tensor * stages) * under_way


@law
def data_parallel_tokens(
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    gradient_size: Annotated[QuantityLike, "byte/param", "g"] = "2 byte/param",
    work: Annotated[QuantityLike, "FLOP/(param·token)", "w"] = "4 FLOP/(param·token)",
) -> Annotated[Quantity, "token"]:
    """Tokens a device and step from which data parallelism hides its all-reduce of the gradients.

    Equation: D = 2 · (n − 1) / n · g / BW · R_peak / w

    Assumes that it hides behind the backward pass, w operations a parameter and token, at full
    peak. Where tensor parallelism spreads each copy over t devices, with links of their own, each
    needs 1 / t of it.

    Source: austin2025scaling

    >>> print(data_parallel_tokens(1024, "989 TFLOP/s", "50 GB/s"))
    19.76K token

    Parameters
    ----------
    devices
        devices that take part
    peak
        operations that the machine does in a second at most
    bandwidth
        bytes that a device's link carries in a second, each way
    gradient_size
        what the gradient of a parameter takes
    work
        operations of the backward pass for each parameter and token
    """
    return 2 * (devices - 1) / devices * gradient_size / bandwidth * peak / work


@law
def tensor_parallel_limit(
    parameters: Annotated[QuantityLike, "param", "P"],
    width: Annotated[QuantityLike, "", "d"],
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    work: Annotated[QuantityLike, "FLOP/(param·token)", "w"] = constants.get("work_inference"),
    _per_token: Annotated[QuantityLike, "1/token"] = 1,
) -> Annotated[Quantity, ""]:
    """Devices up to which tensor parallelism hides an all-reduce behind its matrix products.

    Equation: t = 1 + w · P / R_peak · BW / (2 · d · s)

    P counts the parameters of one block, the attention or the feed-forward network of a layer: each
    does w operations with each for a token, and is followed by an all-reduce of vectors that are d
    wide. More tokens do not help: they lengthen both times.

    Source: austin2025scaling

    >>> print(tensor_parallel_limit(3 * 8192 * 28672, 8192, "989 TFLOP/s", "450 GB/s"))
    20.57

    Parameters
    ----------
    parameters
        parameters of the model, or of the part of it in question
    width
        width of the model: the length of a token's vector
    peak
        operations that the machine does in a second at most
    bandwidth
        bytes that a device's link carries in a second, each way
    element_size
        what an element of the array takes
    work
        operations of the forward pass for each parameter and token
    """
    hidden_bytes = work * parameters / peak * bandwidth
    return 1 + hidden_bytes / (2 * width * element_size * _per_token)


@law
def sharded_traffic(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    microbatches: Annotated[QuantityLike, "", "m", AT_LEAST_ONE] = 1,
    reductions: Annotated[QuantityLike, "", "r", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, "byte"]:
    """Bytes that each device sends in a step whose weights are sharded (ZeRO stage 3).

    Equation: D = (2 · m + r) · (n − 1) / n · V

    The weights are gathered for the forward and for the backward pass of each microbatch. The
    gradients, as large, are reduced r times: once if each device holds all of them until the end of
    the step, m times if it keeps its shard alone. For one microbatch the two are the same, and half
    as much again as the all-reduce of stages 0 and 1.

    Source: zhao2023pytorch

    See also: parallelism.hybrid_traffic

    >>> print(sharded_traffic("14 GB", 8), sharded_traffic("14 GB", 8, 4, reductions=4))
    36.75 GB 147 GB

    Parameters
    ----------
    size
        size of the message, or of the whole array
    devices
        devices that take part
    microbatches
        parts of a batch that follow one another through the pipeline
    reductions
        times that the gradients are reduced in a step
    """
    return (2 * microbatches + reductions) * (devices - 1) / devices * size


@law
def hybrid_traffic(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "g", AT_LEAST_ONE],
    groups: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
) -> Annotated[Quantity, "byte"]:
    """Bytes that each device sends to other groups in a step of hybrid sharding.

    Equation: D = 2 · (k − 1) / k · V / g

    The g devices of a group, a server for instance, share one state, and groups hold copies: an
    all-reduce of a device's shard of the gradients is all that leaves the group. Inside it
    sharded_traffic holds, and state_memory with g shards.

    Source: zhao2023pytorch

    >>> print(hybrid_traffic("14 GB", 8, 8), sharded_traffic("14 GB", 64))
    3.062 GB 41.34 GB

    Parameters
    ----------
    size
        size of the message, or of the whole array
    devices
        devices of a group, which share its state
    groups
        groups of devices, each of which holds a copy
    """
    return 2 * (groups - 1) / groups * size / devices


@law
def fsdp_and_tensor_split(
    tokens: Annotated[QuantityLike, "", "T", AT_LEAST_ONE],
    feed_forward_width: Annotated[QuantityLike, "", "f"],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    sharding_links: Annotated[QuantityLike, "", "a", AT_LEAST_ONE] = 1,
    tensor_links: Annotated[QuantityLike, "", "b", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, ""]:
    """Devices over which weights are sharded, the others being those of TP, for the least messages.

    Equation: x = √(T · n · a / (f · b))

    T tokens are read by all n devices together. Weights gathered over x devices on a links take as
    long as the sums of activations over the n / x others on b links: each falls as the other grows.
    Where x is n or more sharding alone is best, where it is one or less TP alone.

    Source: austin2025scaling

    See also: parallelism.fsdp_and_tensor_tokens

    >>> print(fsdp_and_tensor_split(1e6, 28672, 2048))
    267.3

    Parameters
    ----------
    tokens
        tokens of a microbatch
    feed_forward_width
        inner width of the feed-forward network
    devices
        devices that take part
    sharding_links
        links of a device that carry gathered weights
    tensor_links
        links of a device that carry sums of activations
    """
    return (tokens * devices * sharding_links / (feed_forward_width * tensor_links)) ** 0.5


@law
def fsdp_and_tensor_tokens(
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    feed_forward_width: Annotated[QuantityLike, "", "f"],
    sharding_links: Annotated[QuantityLike, "", "a", AT_LEAST_ONE] = 1,
    tensor_links: Annotated[QuantityLike, "", "b", AT_LEAST_ONE] = 1,
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
    _per_token: Annotated[QuantityLike, "token"] = 1,
) -> Annotated[Quantity, "token"]:
    """Tokens a device from which sharding and TP, split at best, hide all their messages.

    Equation: T = (R_peak · s / (2 · BW))² / (f · a · b)

    Messages of both kinds travel at once, on a and b links of their own, and hide behind the
    products of a feed-forward network that is f wide. Sharding alone needs R_peak · s / (2 · BW),
    so that TP pays where that is below f.

    Source: austin2025scaling

    See also: parallelism.fsdp_and_tensor_split

    >>> print(fsdp_and_tensor_tokens("459 TFLOP/s", "90 GB/s", 28672, 2, 1))
    453.6 token

    Parameters
    ----------
    peak
        operations that the machine does in a second at most
    bandwidth
        bytes that a device's link carries in a second, each way
    feed_forward_width
        inner width of the feed-forward network
    sharding_links
        links of a device that carry gathered weights
    tensor_links
        links of a device that carry sums of activations
    element_size
        what an element of the array takes
    """
    ridge = peak * element_size / (_per_term * bandwidth)
    return _per_token * ridge**2 / (feed_forward_width * sharding_links * tensor_links)


@law
def weight_stationary_traffic(
    tokens: Annotated[QuantityLike, "", "T", AT_LEAST_ONE],
    width: Annotated[QuantityLike, "", "d"],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes that each device sends in a block whose matrices are cut along one dimension (TP).

    Equation: D = 2 · T · d · s

    The vectors of all tokens are gathered before it and summed after it; more devices send no less.
    Assumes many devices: (n − 1) / n is left out.

    Source: pope2023efficiently

    See also: parallelism.weight_stationary_2d_traffic

    >>> print(weight_stationary_traffic(512, 8192))
    16.78 MB

    Parameters
    ----------
    tokens
        tokens of a microbatch
    width
        width of the model: the length of a token's vector
    element_size
        what an element of the array takes
    """
    return 2 * tokens * width * element_size


@law
def weight_stationary_2d_traffic(
    tokens: Annotated[QuantityLike, "", "T", AT_LEAST_ONE],
    width: Annotated[QuantityLike, "", "d"],
    feed_forward_width: Annotated[QuantityLike, "", "f"],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes that each device sends in a block whose matrices are cut along both dimensions.

    Equation: D = 4 · T · s · √(d · f / n)

    Of x · y = n devices x share the width d and y the inner width f, split at best: vectors of d
    and of f are gathered and summed along one axis each. It falls with n, and is below that of one
    dimension from n = 4 · f / d devices on.

    Source: pope2023efficiently

    >>> print(weight_stationary_2d_traffic(512, 8192, 32768, 64))
    8.389 MB

    Parameters
    ----------
    tokens
        tokens of a microbatch
    width
        width of the model: the length of a token's vector
    feed_forward_width
        inner width of the feed-forward network
    devices
        devices that take part
    element_size
        what an element of the array takes
    """
    return 4 * tokens * element_size * (width * feed_forward_width / devices) ** 0.5


@law
def expert_traffic(
    tokens: Annotated[QuantityLike, "", "T", AT_LEAST_ONE],
    width: Annotated[QuantityLike, "", "d"],
    experts_per_token: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    dispatch_size: Annotated[QuantityLike, "byte", "s_d", ELEMENT_SIZE] = "2 byte",
    combine_size: Annotated[QuantityLike, "byte", "s_c", ELEMENT_SIZE] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes that a device sends for its tokens' way to their experts and back, in one layer.

    Equation: D = T · k · d · (n − 1) / n · (s_d + s_c)

    Dispatch sends each token to k experts, combine returns their results. Assumes that tokens
    choose at random among experts that n devices share, and that each choice is a message of its
    own: two experts of one device receive the token twice. A backward pass sends as much again.

    Source: lepikhin2021gshard

    >>> print(expert_traffic(1, 7168, 8, 64, "1 byte", "2 byte"))
    169.3 kB

    Parameters
    ----------
    tokens
        tokens of a microbatch
    width
        width of the model: the length of a token's vector
    experts_per_token
        experts that a token is sent to
    devices
        devices that take part
    dispatch_size
        what an element takes on the way to the experts
    combine_size
        what an element takes on the way back from the experts
    """
    away = (devices - 1) / devices
    return tokens * experts_per_token * width * away * (dispatch_size + combine_size)


@law
def stage_traffic(
    tokens: Annotated[QuantityLike, "", "T", AT_LEAST_ONE],
    width: Annotated[QuantityLike, "", "d"],
    microbatches: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes that a stage of a pipeline sends each way in a step: a vector of each token.

    Equation: D = m · T · d · s

    Activations to the next stage, their gradients to the one before; T tokens in a microbatch.

    Source: narayanan2021efficient

    >>> print(stage_traffic(8192, 16384, 16))
    4.295 GB

    Parameters
    ----------
    tokens
        tokens of a microbatch
    width
        width of the model: the length of a token's vector
    microbatches
        parts of a batch that follow one another through the pipeline
    element_size
        what an element of the array takes
    """
    return microbatches * tokens * width * element_size


@law
def hfu(
    mfu: Annotated[QuantityLike, "", "U"], recomputed: Annotated[QuantityLike, "", "r", FRACTION]
) -> Annotated[Quantity, ""]:
    """Hardware FLOP utilisation: what is computed twice counts twice.

    Equation: U_hw = U · (3 + r) / 3

    A forward pass is one third of a model's operations; r is the share of it that is done again on
    the way back. Full recomputation adds a third and no progress.

    Source: chowdhery2023palm

    >>> print(hfu("45%", 1).to("%"))
    60%

    Parameters
    ----------
    mfu
        share of the peak that the model's own operations account for (MFU)
    recomputed
        share of the forward pass that is computed again
    """
    return mfu * (3 + recomputed) / 3
