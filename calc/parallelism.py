"""Training on many devices: what each of them holds and sends, and the bounds of a step.

The laws take numbers. What takes a model of `calc.models` and a `Layout` puts them together, and
refuses a layout that the model cannot be cut into.
"""

# Long for its docstrings: laws with equation and example, and what puts them together for a model.
# mypy: disable-error-code="operator, return-value, no-any-return"

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from calc import (
    collectives,
    constants,
    expectation,
    links,
    models,
    software as programs,
    training,
    transformer,
)
from calc.core.arguments import one_of, whole_number
from calc.core.device import Device, check_device
from calc.core.elementwise import maximum, minimum, where
from calc.core.errors import InputError, abbreviated
from calc.core.formatting import columns
from calc.core.law import AT_LEAST_ONE, FRACTION, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike, quantity
from calc.expectation import Parts
from calc.formats import ELEMENT_SIZE
from calc.machines import Machine, device_of
from calc.models import Transformer
from calc.models.architecture import check_transformer
from calc.roofline import StepTime, compute_time

PARTS = ("weight", "gradient", "optimizer")
NOTHING = quantity(0, "byte/param")


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

    Equation: M = A / t · min(m, p + i · (p − 1) / v) / p

    Assumes a schedule of one forward and one backward pass in turn, where the first of p stages has
    p microbatches under way, and norms that are split along the sequence by the t devices that
    split the matrices. Interleaved in v > 1 thin slices to a device, i is 1 and it holds
    1 + (p − 1) / (p · v) times as much; otherwise i is 0.

    Source: korthikanti2023reducing

    >>> print(activations_in_flight("36.5 GB", 8, 4, 16))
    4.562 GB
    >>> print(activations_in_flight("36.5 GB", 8, 4, 16, stages_per_device=2))
    6.273 GB
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
    """
    under_way = minimum(microbatches, maximum(stages - stage + 1, 0))
    return activations / (tensor * stages) * under_way


@law
def data_parallel_tokens(
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    gradient_size: Annotated[QuantityLike, "byte/param", "g"] = "2 byte/param",
    work: Annotated[QuantityLike, "FLOP/(param·token)", "4"] = "4 FLOP/(param·token)",
) -> Annotated[Quantity, "token"]:
    """Tokens a device and step from which data parallelism hides its all-reduce of the gradients.

    Equation: D = 2 · (n − 1) / n · g / BW · R_peak / 4

    Assumes that it hides behind the backward pass, 4 operations a parameter and token, at full
    peak. Where tensor parallelism spreads each copy over t devices, with links of their own, each
    needs 1 / t of it.

    Source: austin2025scaling

    >>> print(data_parallel_tokens(1024, "989 TFLOP/s", "50 GB/s"))
    19.76K token
    """
    return 2 * (devices - 1) / devices * gradient_size / bandwidth * peak / work


@law
def tensor_parallel_limit(
    parameters: Annotated[QuantityLike, "param", "P"],
    width: Annotated[QuantityLike, "", "d"],
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    work: Annotated[QuantityLike, "FLOP/(param·token)", "2"] = constants.get("work_inference"),
    _per_token: Annotated[QuantityLike, "1/token"] = 1,
) -> Annotated[Quantity, ""]:
    """Devices up to which tensor parallelism hides an all-reduce behind its matrix products.

    Equation: t = 1 + 2 · P / R_peak · BW / (2 · d · s)

    P counts the parameters of one block, the attention or the feed-forward network of a layer: each
    is followed by an all-reduce of vectors that are d wide. More tokens do not help: they lengthen
    both times.

    Source: austin2025scaling

    >>> print(tensor_parallel_limit(3 * 8192 * 28672, 8192, "989 TFLOP/s", "450 GB/s"))
    20.57
    """
    hidden_bytes = work * parameters / peak * bandwidth
    return 1 + hidden_bytes / (2 * width * element_size * _per_token)


@law
def sharded_traffic(
    size: Annotated[QuantityLike, "byte", "S", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    microbatches: Annotated[QuantityLike, "", "m", AT_LEAST_ONE] = 1,
    reductions: Annotated[QuantityLike, "", "r", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, "byte"]:
    """Bytes that each device sends in a step whose weights are sharded (ZeRO stage 3).

    Equation: D = (2 · m + r) · (n − 1) / n · S

    The weights are gathered for the forward and for the backward pass of each microbatch. The
    gradients, as large, are reduced r times: once if each device holds all of them until the end of
    the step, m times if it keeps its shard alone. For one microbatch the two are the same, and half
    as much again as the all-reduce of stages 0 and 1.

    Source: zhao2023pytorch

    >>> print(sharded_traffic("14 GB", 8), sharded_traffic("14 GB", 8, 4, reductions=4))
    36.75 GB 147 GB
    """
    return (2 * microbatches + reductions) * (devices - 1) / devices * size


@law
def hybrid_traffic(
    size: Annotated[QuantityLike, "byte", "S", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "g", AT_LEAST_ONE],
    groups: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
) -> Annotated[Quantity, "byte"]:
    """Bytes that each device sends to other groups in a step of hybrid sharding.

    Equation: D = 2 · (k − 1) / k · S / g

    The g devices of a group, a server for instance, share one state, and groups hold copies: an
    all-reduce of a device's shard of the gradients is all that leaves the group. Inside it
    sharded_traffic holds, and state_memory with g shards.

    Source: zhao2023pytorch

    >>> print(hybrid_traffic("14 GB", 8, 8), sharded_traffic("14 GB", 64))
    3.062 GB 41.34 GB
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

    >>> print(fsdp_and_tensor_split(1e6, 28672, 2048))
    267.3
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

    >>> print(fsdp_and_tensor_tokens("459 TFLOP/s", "90 GB/s", 28672, 2, 1))
    453.6 token
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

    >>> print(weight_stationary_traffic(512, 8192))
    16.78 MB
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
    """
    return mfu * (3 + recomputed) / 3


@dataclass(frozen=True)
class Link:
    """What joins devices: its bandwidth each way, and the latency of a message."""

    bandwidth: QuantityLike
    latency: QuantityLike = "0 s"


@dataclass(frozen=True)
class Layout:
    """How a model and its batch are cut: copies of the model, slices of its matrices, stages.

    `sharding` is the stage of ZeRO: 0 for none, then optimizer, gradients and weights too are
    divided among the copies. Sharded gradients are reduced after each microbatch; with
    `hold_gradients` each copy holds all of them instead, and reduces them once a step.

    >>> Layout(data=128, tensor=8, pipeline=16, microbatches=16).devices
    16384
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    microbatches: int = 1
    sharding: int = 0
    hold_gradients: bool = False

    def __post_init__(self) -> None:
        for name in ("data", "tensor", "pipeline", "microbatches"):
            whole_number(f"a layout's {name}", getattr(self, name))
        if type(self.sharding) is not int or self.sharding not in range(4):
            raise InputError(
                f"sharding must be a stage from 0 to 3; got {abbreviated(self.sharding)}"
            )

    @property
    def devices(self) -> int:
        """Devices of all copies, slices and stages."""
        return self.data * self.tensor * self.pipeline

    def shards(self, part: str) -> bool:
        """Whether the copies share the weights, the gradients or the optimizer among them."""
        held = part == "gradient" and self.hold_gradients
        return PARTS.index(part) >= 3 - self.sharding and not held

    def check(self, model: Any) -> None:
        """Refuse a model that cannot be cut like this."""
        check_transformer(model)
        heads, groups = int(model.heads.magnitude), int(model.kv_heads.magnitude)
        layers = int(model.layers.magnitude)
        if heads % self.tensor:
            raise InputError(
                f"{model.name} has {heads} heads, which {self.tensor} slices do not divide: choose"
                " tensor among the divisors"
            )
        if groups % self.tensor and self.tensor % groups:
            raise InputError(
                f"{model.name} has {groups} heads of keys and values, which {self.tensor} slices"
                " neither divide nor are a multiple of"
            )
        if layers % self.pipeline:
            raise InputError(
                f"{model.name} has {layers} layers, which {self.pipeline} stages do not divide:"
                " choose pipeline among the divisors"
            )

    def parameters(self, model: Transformer) -> Quantity:
        """Parameters of one device: those of the stage with the embedding or with the output.

        >>> from calc import models
        >>> print(Layout(tensor=8, pipeline=4).parameters(models.get("llama-3-70b")))
        2.270B param
        """
        self.check(model)
        if self.pipeline == 1:
            return model.parameters / self.tensor
        parts = model.parts
        embedding = parts.get("embedding", quantity(0, "param"))
        ends = max(
            embedding, parts.get("output", embedding if model.tied_embeddings else 0 * embedding)
        )
        outside = embedding + parts.get("output", 0 * embedding)
        return ((model.parameters - outside) / self.pipeline + ends) / self.tensor


@dataclass(frozen=True)
class DeviceMemory:
    """Memory of the fullest device, part by part."""

    weights: Quantity
    gradients: Quantity
    optimizer: Quantity
    activations: Quantity

    @property
    def total(self) -> Quantity:
        """All of it; fragments and buffers come on top."""
        total: Quantity = self.weights + self.gradients + self.optimizer + self.activations
        return total

    def __str__(self) -> str:
        parts = {each.name: getattr(self, each.name) for each in fields(self)}
        return "\n".join(columns([(n, str(p)) for n, p in (parts | {"total": self.total}).items()]))

    def check(self, device: Device) -> None:
        """Refuse a device that is too small, and say by how much."""
        check_device(device)
        needed = self.total
        largest = quantity(needed.magnitude.max(), str(needed.units)) if needed.ndim else needed
        if largest > device.memory_capacity:
            raise InputError(
                f"a device needs {largest.to('GB')} and an {device.name} has"
                f" {device.memory_capacity}: use more slices, stages or shards, a smaller"
                " microbatch, or recomputation"
            )


def _check_is(kind: type, name: str, given: Any) -> None:
    if not isinstance(given, kind):
        raise InputError(
            f"{name} must be a calc.parallelism.{kind.__name__}; got {abbreviated(given)}"
        )


def memory_per_device(
    model: Transformer | str,
    layout: Layout,
    length: Annotated[QuantityLike, "", AT_LEAST_ONE],
    sequences: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    recomputation: str = "selective",
    recipe: str = "adam-mixed",
) -> DeviceMemory:
    """What the fullest device holds while it trains: its states and its activations.

    Equation: M = P / (t · p) · (w / n_w + g / n_g + o / n_o) + A / t · min(m, p) / p

    P parameters in t slices and p stages, with w, g and o bytes of weight, gradient and optimizer
    for each; n_w, n_g and n_o are the copies where these share it, else one. A are the activations
    of one of m microbatches. Of stages the one counts that has the embedding or the output too.

    `sequences` are those of one microbatch; `recipe` is one of `calc.training.RECIPES`.

    Source: rajbhandari2020zero, korthikanti2023reducing

    >>> layout = Layout(data=16, tensor=8, pipeline=4, sharding=1)
    >>> held = memory_per_device("llama-3-70b", layout, 8192)
    >>> print(held)
    weights      4.541 GB
    gradients    4.541 GB
    optimizer    1.703 GB
    activations  5.620 GB
    total        16.41 GB
    """
    model = models.transformer(model)
    _check_is(Layout, "layout", layout)
    parameters = layout.parameters(model)
    sizes = dict.fromkeys(PARTS, NOTHING)
    for part, size in training.recipe(recipe).parts.items():
        kind = part if part in PARTS else "optimizer"
        sizes[kind] = sizes[kind] + size
    held = {}
    for part, size in sizes.items():
        shards = layout.data if layout.shards(part) else 1
        held[part] = state_memory(parameters, size, NOTHING, NOTHING, shards)
    activations = activations_in_flight(
        transformer.activation_memory(model, length, sequences, recomputation),
        layout.tensor,
        layout.pipeline,
        layout.microbatches,
    )
    return DeviceMemory(held["weight"], held["gradient"], held["optimizer"], activations)


def training_step(
    model: Transformer | str,
    layout: Layout,
    length: Annotated[QuantityLike, "", AT_LEAST_ONE],
    sequences: Annotated[QuantityLike, "", AT_LEAST_ONE],
    device: Device | Machine,
    inner: Link | None = None,
    outer: Link | None = None,
    recomputation: str = "selective",
    dtype: str = "bf16",
    efficiency: Annotated[QuantityLike, ""] = 1.0,
    software: str | None = None,
) -> StepTime:
    """The parts of a step's time at published rates, and what is expected of it.

    Equation: T_lower = max T_i, T_upper = Σ T_i

    No program beats T_lower, where all parts overlap. T_upper overlaps none, and real programs may
    be slower than that: both take published rates, and `efficiency` as the share of the peak that
    the matrix products reach. On a machine of `calc.machines` slices fill its domains first, then
    copies, then stages, and each message takes what `collectives.time` says at least, without
    latency. `expected` is made of measured rates, and of what the `software` of that name hides. Of
    a device alone slices talk over `inner`, stages and copies over `outer`. `sequences` are those
    of one microbatch. Compute holds the bubble of a pipeline with one stage on a device. Slices do
    four all-reduces a layer and microbatch, six where the whole layer is recomputed. Copies gather
    their weights once, or what `sharded_traffic` says, and reduce their gradients once, or in each
    microbatch where they shard them.

    >>> from calc import hardware, machines
    >>> layout = Layout(data=16, tensor=8, pipeline=4, microbatches=32, sharding=1)
    >>> step = training_step("llama-3-70b", layout, 8192, 1, machines.DGX_H100, efficiency=0.7)
    >>> print(step.lower, step.upper, step.bound)
    5.953 s 6.898 s compute
    >>> print(step.expected)
    8.013 s
    >>> pair = Link("450 GB/s", "2 us"), Link("50 GB/s", "10 us")
    >>> step = training_step(
    ...     "llama-3-70b", layout, 8192, 1, hardware.H100, *pair, efficiency=0.7
    ... )
    >>> print(step.lower, step.upper, step.bound)
    5.953 s 7.543 s compute
    """
    model = models.transformer(model)
    _check_is(Layout, "layout", layout)
    talk: _OnMachine | _OverLinks
    if isinstance(device, Machine):
        if inner is not None or outer is not None:
            raise InputError(f"{device.name} has links of its own: leave inner and outer out")
        machine: Machine | None = device
        talk, device = _OnMachine(device, layout), device.device
    else:
        device = device_of(device)
        if inner is None or outer is None:
            raise InputError(
                f"{device.name} alone has no links: give inner and outer, or a machine of"
                " calc.machines in its place"
            )
        _check_is(Link, "inner", inner)
        _check_is(Link, "outer", outer)
        talk, machine = _OverLinks(layout, inner, outer), None
    program = programs.UNKNOWN if software is None else programs.get(software)
    parameters = layout.parameters(model)
    tokens = transformer.batch_tokens(length, sequences)
    projections = transformer.forward_flops(model)
    forward = transformer.causal_flops(model, length)
    again = {"none": 0 * forward, "selective": forward - projections, "full": forward}
    one_of("training_step(): recomputation", recomputation, again)
    all_tokens = quantity(1, "token") * tokens * layout.data * layout.microbatches
    operations = 3 * forward * all_tokens
    peak = device.peak(dtype) * layout.devices
    computed = (3 * forward + again[recomputation]) * all_tokens
    compute = compute_time(computed, peak, efficiency)
    bubble = collectives.bubble_overhead(layout.pipeline, layout.microbatches)
    vectors = stage_traffic(tokens, model.width, 1)
    all_reduces = 6 if recomputation == "full" else 4
    layers = model.layers / layout.pipeline * layout.microbatches * all_reduces
    state = training.model_memory(parameters, training.recipe("adam-mixed").parts["gradient"])
    gathers = 2 * layout.microbatches if layout.sharding == 3 else 1
    reductions = layout.microbatches if layout.shards("gradient") else 1
    passed = stage_traffic(tokens, model.width, layout.microbatches) / layout.tensor
    parts = {
        "compute": compute * (1 + bubble),
        "tensor": talk.all_reduce(vectors) * layers,
        "pipeline": talk.pass_on(passed) * (0 if layout.pipeline == 1 else 1),
        "data": talk.share(state, gathers, reductions),
    }
    step = StepTime(
        {name: part.to("s") for name, part in parts.items()},
        operations.to("FLOP"),
        peak,
        tokens=all_tokens,
    )
    if machine is None:
        return step

    def expected() -> Parts:
        return expectation.training_step(
            model,
            machine,
            float(quantity(length).m_as("")),
            float(quantity(sequences).m_as("")),
            data=layout.data,
            tensor=layout.tensor,
            pipeline=layout.pipeline,
            microbatches=layout.microbatches,
            gathers=gathers,
            reductions=reductions,
            optimizer_shards=layout.data if layout.shards("optimizer") else 1,
            recomputed=1.0 if recomputation == "full" else 0.0,
            dtype=dtype,
            program=program,
        )

    return replace(step, expectation=expectation.if_measured(expected, tokens))


@dataclass(frozen=True)
class _OverLinks:
    """Messages of a layout over two links: one among slices, one among stages and copies."""

    layout: Layout
    inner: Link
    outer: Link

    def all_reduce(self, vectors: Quantity) -> Quantity:
        """Time of a sum over all slices."""
        inner = self.inner
        return collectives.ring_all_reduce(
            vectors, self.layout.tensor, inner.bandwidth, inner.latency
        )

    def pass_on(self, sent: Quantity) -> Quantity:
        """Time of what a stage passes on to the next in a step."""
        latency = self.layout.microbatches * quantity(self.outer.latency)
        return links.transfer_time(sent, self.outer.bandwidth, latency)

    def share(self, state: Quantity, gathers: int, reductions: int) -> Quantity:
        """Time of gathering the weights of copies so often, and of reducing their gradients."""
        passes, copies = gathers + reductions, self.layout.data
        sent = collectives.all_gather_traffic(state, copies) * passes
        latency = passes * (copies - 1) * quantity(self.outer.latency)
        return links.transfer_time(sent, self.outer.bandwidth, latency)


@dataclass(frozen=True)
class _OnMachine:
    """The same on a machine: slices are neighbours, copies fill the rest of a domain."""

    machine: Machine
    layout: Layout

    def all_reduce(self, vectors: Quantity) -> Quantity:
        """At least the time of a sum over all slices."""
        return collectives.least_time("all_reduce", vectors, self.layout.tensor, self.machine)

    def pass_on(self, sent: Quantity) -> Quantity:
        """Time of what a stage passes on: through the ports, unless one domain holds them all."""
        machine = self.machine
        together = self.layout.devices <= machine.domain
        return links.transfer_time(sent, machine.bandwidth if together else machine.ports)

    def share(self, state: Quantity, gathers: int, reductions: int) -> Quantity:
        """At least the time of gathering and reducing among the copies of a slice.

        Of these a domain holds as many as it has room for beside the other slices.
        """
        room = replace(self.machine, domain=max(1, self.machine.domain // self.layout.tensor))
        gathered = collectives.least_time("all_gather", state, self.layout.data, room)
        reduced = collectives.least_time("reduce_scatter", state, self.layout.data, room)
        return gathered * gathers + reduced * reductions
