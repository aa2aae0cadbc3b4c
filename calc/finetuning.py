"""Fine-tuning on few devices: what weights, adapters, states and activations take of their memory.

The laws take numbers. `states`, `memory` and `longest_context` put them together for a model of
`calc.models`, matrix by matrix; `step` is the time of a step.
"""

# mypy: disable-error-code="operator, return-value, no-any-return"

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from calc import constants, expectation, machines, models, quantization, training, transformer
from calc.core.arguments import as_list, number, one_of, whole_number
from calc.core.elementwise import floor, maximum
from calc.core.errors import InputError, abbreviated
from calc.core.formatting import columns
from calc.core.law import AT_LEAST_ONE, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike, quantity
from calc.expectation import Parts
from calc.formats import ELEMENT_SIZE
from calc.hardware import Accelerator
from calc.links import transfer_time
from calc.machines import Machine
from calc.models import Transformer
from calc.models.architecture import Matrix
from calc.roofline import StepTime, compute_time

METHODS = ("full", "lora", "qlora")
TARGETS = ("linear", "attention")  # matrices with an adapter: all of the layers, or those
LOSSES = {"whole": 1, "chunked": 8}  # parts in which a loss is computed; "fused" keeps no logits
GRADIENTS = ("accumulated", "anew", "fused")
HOST = ("weights", "optimizer", "activations")  # what may wait in the memory of the host
MATRIXWISE = ("adafactor-mixed", "muon-mixed")  # recipes that see the shape of a matrix
HELD_LAYERS = 2  # of streamed weights: one that computes, and one that arrives


@law
def adapter_parameters(
    inputs: Annotated[QuantityLike, "", "d_in", AT_LEAST_ONE],
    outputs: Annotated[QuantityLike, "", "d_out", AT_LEAST_ONE],
    rank: Annotated[QuantityLike, "", "r", AT_LEAST_ONE],
    _parameter: Annotated[QuantityLike, "param"] = 1,
) -> Annotated[Quantity, "param"]:
    """Parameters of the two thin matrices that LoRA adds beside a matrix of weights.

    Equation: A = r · (d_in + d_out)

    Source: hu2021lora

    >>> print(adapter_parameters(4096, 14336, 16))
    294.9K param
    """
    return rank * (inputs + outputs) * _parameter


@law
def factored_variance(
    rows: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    columns: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "4 byte",
) -> Annotated[Quantity, "byte"]:
    """Memory of Adafactor's second moment of a matrix: a mean for each row and for each column.

    Equation: M = s · (n + m)

    Adam keeps s · n · m. Assumes that Adafactor keeps no momentum.

    Source: shazeer2018adafactor

    >>> print(factored_variance(4096, 14336))
    73.73 kB
    """
    return element_size * (rows + columns)


@law
def frozen_training_flops(
    frozen: Annotated[QuantityLike, "param", "P"],
    adapters: Annotated[QuantityLike, "param", "A", NON_NEGATIVE],
    tokens: Annotated[QuantityLike, "token", "D"],
    work_frozen: Annotated[QuantityLike, "FLOP/(param·token)", "4"] = constants.get(
        "work_training_frozen"
    ),
    work: Annotated[QuantityLike, "FLOP/(param·token)", "6"] = constants.get("work_training"),
) -> Annotated[Quantity, "FLOP"]:
    """Operations to train adapters: 2 forward and 2 backward through what is frozen, 6 for them.

    Equation: C = (4 · P + 6 · A) · D

    The gradient passes through a frozen weight to what stands before it; its own gradient is not
    computed. Layers that are recomputed add 2 · P. Attention over long contexts comes on top.

    Source: hu2021lora

    >>> print(frozen_training_flops("8.03B param", "42M param", "1M token"))
    32.37 PFLOP
    """
    return (work_frozen * frozen + work * adapters) * tokens


@law
def loss_memory(
    tokens: Annotated[QuantityLike, "", "T", AT_LEAST_ONE],
    vocabulary: Annotated[QuantityLike, "", "V", AT_LEAST_ONE],
    parts: Annotated[QuantityLike, "", "c", AT_LEAST_ONE] = 1,
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    _single: Annotated[QuantityLike, "byte"] = "8 byte",
) -> Annotated[Quantity, "byte"]:
    """Memory of the logits of a batch while their loss is computed in so many parts.

    Equation: M = T · V · (s + 8 / c)

    All logits in the model's format, and of one part an FP32 copy and its gradient, four bytes
    each. A fused kernel, which keeps none of them, needs next to nothing.

    Source: torchtune2026

    >>> print(loss_memory(8192, 128256), loss_memory(8192, 128256, parts=8))
    10.51 GB 3.152 GB
    """
    return tokens * vocabulary * (element_size + _single / parts)


@law
def context_that_fits(
    capacity: Annotated[QuantityLike, "byte", "C"],
    held: Annotated[QuantityLike, "byte", "M", NON_NEGATIVE],
    per_token: Annotated[QuantityLike, "byte", "m"],
) -> Annotated[Quantity, ""]:
    """Tokens of a batch whose activations fit beside what is held; none where that is too much.

    Equation: T = ⌊max(0, C − M) / m⌋

    Source: korthikanti2023reducing

    >>> print(context_that_fits("48 GB", "40 GB", "3 MB"))
    2666
    """
    return maximum(floor((capacity - held) / per_token), 0.0)


def nf4_size() -> Quantity:
    """What a weight takes in NF4 with scales that are quantised too, as in QLoRA.

    A scale of 8 bits for each block of 64 codes, and one of 32 bits for each 256 of these scales.

    >>> print(nf4_size().to("bit/param"))
    4.127 bit/param
    """
    scale = quantization.bytes_per_parameter("8 bit/param", 256, "32 bit")
    return quantization.bytes_per_parameter("4 bit/param", 64, scale * quantity("1 param"))


def adapted(model: Transformer | str, targets: str = "linear") -> tuple[Matrix, ...]:
    """The matrices that get an adapter: all of the layers but routers, or attention's alone.

    >>> [matrix.name for matrix in adapted("llama-3-8b", "attention")]
    ['query', 'key', 'value', 'attention output']
    """
    one_of("adapted(): targets", targets, TARGETS)
    parts = ("attention", "feed-forward") if targets == "linear" else ("attention",)
    return tuple(each for each in models.transformer(model).matrices if each.part in parts)


def adapters(
    model: Transformer | str, rank: int = 16, targets: str | Iterable[str] = "linear"
) -> Annotated[Quantity, "param"]:
    """Parameters of the adapters of a model, matrix by matrix; each expert has its own.

    Equation: A = Σ r · (d_in + d_out)

    `targets` are "linear", all matrices of the layers, "attention", or names of matrices.

    Source: hu2021lora

    >>> print(adapters("llama-3-8b", 16), adapters("llama-3-8b", 16, ["query", "value"]))
    41.94M param 6.816M param
    """
    whole_number("adapters(): rank", rank)
    total = quantity(0, "param")
    for matrix in _targets(models.transformer(model), targets):
        total += adapter_parameters(matrix.inputs, matrix.outputs, rank) * (
            matrix.copies * matrix.layers
        )
    return total


@dataclass(frozen=True)
class Adapters:
    """What is trained beside frozen weights: `rank` and `targets` are those of `adapters`.

    With "qlora" the matrices of the layers are kept in NF4, with "lora" all weights in two bytes.
    """

    method: str = "lora"
    rank: int = 16
    targets: str | Iterable[str] = "linear"

    def __post_init__(self) -> None:
        one_of("the method of adapters", self.method, METHODS[1:])
        whole_number("the rank of adapters", self.rank)

    def parameters(self, model: Transformer) -> Quantity:
        """Parameters that are trained."""
        return adapters(model, self.rank, self.targets)

    def share(self, model: Transformer) -> float:
        """These over the parameters of the model."""
        return float((self.parameters(model) / model.parameters).m_as(""))

    def recipe(self, model: Transformer) -> training.Recipe:
        """What is kept for each parameter of the model, on average: its own, and its adapters'.

        >>> from calc import models
        >>> print(Adapters("qlora").recipe(models.get("llama-3-8b")).bytes_per_parameter)
        0.7937 byte/param
        """
        trained = self.parameters(model)
        states = training.recipe("adam-fp32").parts
        parts = {part: (size * trained / model.parameters) for part, size in states.items()}
        parts["weight"] = parts["weight"] + _frozen(model, self.method) / model.parameters
        return training.Recipe(f"{self.method} of rank {self.rank}", parts)


def training_work(
    model: Transformer,
    length: Annotated[QuantityLike, "", AT_LEAST_ONE],
    tuned: Adapters | None = None,
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a token, forward and backward, where all is trained, or adapters alone.

    Equation: F = 3 · F_forward, or 4 · P + 6 · A + 3 · F_attention

    Source: hu2021lora

    >>> from calc import models
    >>> model = models.get("llama-3-8b")
    >>> print(training_work(model, 8192), training_work(model, 8192, Adapters()))
    51.47 GFLOP/token 36.71 GFLOP/token
    """
    forward = transformer.causal_flops(model, length)
    if tuned is None:
        return 3 * forward
    if not isinstance(tuned, Adapters):
        raise InputError(
            f"tuned must be Adapters(), or None where all is trained; got {abbreviated(tuned)}"
        )
    token = quantity("1 token")
    frozen = frozen_training_flops(model.multiplied_parameters, tuned.parameters(model), token)
    return frozen / token + 3 * (forward - transformer.forward_flops(model))


def states(model: Transformer | str, recipe: str = "adam-mixed") -> dict[str, Quantity]:
    """What training all of a model keeps besides activations, part by part.

    Equation: M = P · b

    `recipe` is one of `calc.training.RECIPES`, of b bytes for each of P parameters, or one that
    sees each matrix: "muon-mixed" has one momentum for the matrices of the layers, and Adam for
    embedding, output and vectors; "adafactor-mixed" has `factored_variance` in place of moments.

    Source: rajbhandari2020zero, jordan2024muon, shazeer2018adafactor

    >>> for part, size in states("llama-3-8b", "muon-mixed").items():
    ...     print(part, size)
    weight 16.06 GB
    gradient 16.06 GB
    master weight 32.12 GB
    momentum 32.12 GB
    variance 4.204 GB
    """
    model = models.transformer(model)
    name = one_of("states(): recipe", recipe, (*training.RECIPES, *MATRIXWISE))
    parts = training.recipe("adam-mixed" if name in MATRIXWISE else name).parts
    sizes = {part: (model.parameters * size).to("byte") for part, size in parts.items()}
    inside = [each for each in model.matrices if each.part in ("attention", "feed-forward")]
    if name == "muon-mixed":
        hidden = quantity(sum(each.parameters for each in inside), "param")
        sizes["variance"] = ((model.parameters - hidden) * parts["variance"]).to("byte")
    if name == "adafactor-mixed":
        del sizes["momentum"]
        kept: Quantity = quantity(0, "byte")
        if model.vocabulary is not None:  # the embedding
            kept = kept + factored_variance(model.vocabulary, model.width)
        for each in model.matrices:
            if not (each.part == "output" and model.tied_embeddings):
                of_one = factored_variance(each.inputs, each.outputs)
                kept = kept + of_one * (each.copies * each.layers)
        vectors = model.parts["norms"] * parts["variance"]
        sizes["variance"] = (kept + vectors).to("byte")
    return sizes


@dataclass(frozen=True)
class TuningMemory:
    """Memory of a device that fine-tunes, part by part."""

    weights: Quantity
    """Those of the model, frozen or trained."""
    adapters: Quantity
    gradients: Quantity
    optimizer: Quantity
    """States, and master weights where there are any."""
    activations: Quantity
    """What all layers keep for the way back."""
    layer: Quantity
    """What a layer makes when it is computed again."""
    loss: Quantity
    """Logits, and what their loss needs."""
    lifetime: str = "accumulated"
    """Of gradients: one of `GRADIENTS`."""

    @property
    def total(self) -> Quantity:
        """The largest of three moments: at the loss, as the way back begins, and as it ends.

        Gradients that begin anew with each microbatch grow as activations go, so that all of them
        meet the activations of one layer alone; accumulated ones are always there.
        """
        kept = self.activations + _larger(self.loss, self.layer)
        if self.lifetime == "accumulated":
            moving = self.gradients + kept
        else:
            moving = _larger(kept, self.gradients + self.layer)
        total: Quantity = self.weights + self.adapters + self.optimizer + moving
        return total

    def __str__(self) -> str:
        parts = {e.name: getattr(self, e.name) for e in fields(self) if e.name != "lifetime"}
        rows = [(name, str(part)) for name, part in (parts | {"peak": self.total}).items()]
        return "\n".join(columns(rows))

    def check(self, device: Machine | Accelerator | str) -> None:
        """Refuse a device that is too small, and say by how much."""
        found = machines.of(device).device
        if self.total > found.memory_capacity:
            raise InputError(
                f"it needs {self.total.to('GB')} and an {found.name} has"
                f" {found.memory_capacity.to('GB')}: take a method with smaller weights, a smaller"
                ' context, loss="fused", or let the host hold more'
            )


def memory(
    model: Transformer | str,
    method: str = "lora",
    rank: int = 16,
    context: Annotated[QuantityLike, "", AT_LEAST_ONE] = 2048,
    sequences: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    *,
    recipe: str | None = None,
    targets: str | Iterable[str] = "linear",
    recomputation: str = "full",
    loss: str = "whole",
    gradients: str = "accumulated",
    host: Iterable[str] = (),
) -> TuningMemory:
    """What a device holds that fine-tunes all of a model, or adapters beside frozen weights.

    Equation: M = P · w + A · b + n · m

    P weights of w bytes: 2 for "lora", `nf4_size` for the matrices of the layers with "qlora", and
    what the `recipe` says for "full". A trained parameters of b bytes, by `recipe`: for adapters
    "adam-fp32" where nothing is said. n tokens of m bytes: what the layers keep, all of a single
    layer where they are recomputed, and the logits, by `loss`: "whole", "chunked" or "fused".
    `gradients` are "accumulated" over microbatches, begin "anew" in each, or are "fused": used up,
    matrix by matrix, before the way back ends, so that a layer's remain. What `host` names waits in
    the memory of the host: "weights", of which two layers stay, "optimizer" (paged), "activations".

    Fragments, the driver's own share (some 0.5 GB) and what kernels need for a moment come on top.

    Source: dettmers2023qlora, korthikanti2023reducing

    >>> print(memory("llama-3-70b", "qlora", rank=16, context=2048))
    weights      39.52 GB
    adapters     828.4 MB
    gradients    828.4 MB
    optimizer    1.657 GB
    activations  2.684 GB
    layer        562.0 MB
    loss         2.627 GB
    peak         48.14 GB
    """
    model = models.transformer(model)
    one_of("memory(): method", method, METHODS)
    one_of("memory(): loss", loss, (*LOSSES, "fused"))
    one_of("memory(): gradients", gradients, GRADIENTS)
    away = as_list("memory(): host", host)
    for each in away:
        one_of("memory(): host", each, HOST)
    if model.vocabulary is None:
        raise InputError(f"{model.name} has no vocabulary, and so no loss of a next token")
    named = ("adam-mixed" if method == "full" else "adam-fp32") if recipe is None else recipe
    nothing = quantity(0, "byte")
    if method == "full":
        trained, weights, thin = states(model, named), nothing, nothing
        weights = trained.pop("weight")
    else:
        extra = adapters(model, rank, targets)
        parts = training.recipe(named).parts
        trained = {part: (extra * size).to("byte") for part, size in parts.items()}
        thin, weights = trained.pop("weight"), _frozen(model, method)
    grown = trained.pop("gradient")
    if gradients == "fused":
        grown = grown / model.layers
    optimizer = sum(trained.values(), nothing)
    kept = transformer.activation_memory(model, context, sequences, recomputation)
    layer = nothing
    if recomputation == "full":
        whole = transformer.activation_memory(model, context, sequences, "selective")
        layer = whole / model.layers
    tokens = transformer.batch_tokens(context, sequences)
    logits = nothing if loss == "fused" else loss_memory(tokens, model.vocabulary, LOSSES[loss])
    if "weights" in away:
        streamed = layers_memory(model, method)
        weights = weights - streamed * (1 - HELD_LAYERS / model.layers)
    return TuningMemory(
        weights.to("byte"),
        thin,
        grown.to("byte"),
        nothing if "optimizer" in away else optimizer,
        nothing if "activations" in away else kept.to("byte"),
        layer.to("byte"),
        logits,
        gradients,
    )


def longest_context(
    model: Transformer | str,
    device: Machine | Accelerator | str,
    method: str = "lora",
    rank: int = 16,
    *,
    reserve: Annotated[QuantityLike, "byte", NON_NEGATIVE] = "1 GB",
    **options: Any,
) -> Quantity:
    """Tokens of the longest sequence with which a device can fine-tune; 0 where none fits.

    Equation: T = max {n : M(n) + M_reserve ≤ C}

    `options` are those of `memory`. The reserve is for the driver, fragments and buffers of
    kernels: an estimate. No model reads more than its `context`.

    Source: dettmers2023qlora

    >>> print(longest_context("llama-3-70b", "l40s", "qlora", loss="fused"))
    4863
    """
    model = models.transformer(model)
    kept = number("longest_context(): reserve, in bytes,", quantity(reserve).m_as("byte"))
    room = machines.of(device).device.memory_capacity.m_as("byte") - kept

    def beyond(context: int) -> float:
        held = memory(model, method, rank, context, **options).total
        return float(held.m_as("byte")) - room

    longest = int(model.context.magnitude)
    while longest > 0 and (excess := beyond(longest)) > 0:
        # Memory grows ever faster with the context, so that this never goes below the longest.
        last_token = excess - beyond(longest - 1) if longest > 1 else excess
        longest -= max(1, math.ceil(excess / last_token))
    return quantity(max(longest, 0), "")


def step(
    model: Transformer | str,
    device: Machine | Accelerator | str,
    method: str = "lora",
    rank: int = 16,
    context: Annotated[QuantityLike, "", AT_LEAST_ONE] = 2048,
    sequences: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    *,
    targets: str | Iterable[str] = "linear",
    recomputation: str = "full",
    dtype: str = "bf16",
    efficiency: Annotated[QuantityLike, ""] = 1.0,
    host: Iterable[str] = (),
) -> StepTime:
    """The time of a microbatch on one device: its arithmetic, and weights that the host streams.

    Equation: C = (4 · P + 6 · A) · D, T = C / (R_peak · η)

    Attention, and what is recomputed, come on top of C. Weights that wait in the memory of the host
    pass the link twice: for the forward pass and for the way back. `expected` is made of measured
    rates, where all weights are on the device. Codes of QLoRA are unpacked for each product, which
    no bound counts.

    Source: hu2021lora, dettmers2023qlora

    >>> tuned = step("llama-3-8b", "h100", "lora", context=4096)
    >>> print(tuned.lower, tuned.throughput)
    205.3 ms 19.95K token/s
    """
    model, machine = models.transformer(model), machines.of(device)
    one_of("step(): method", method, METHODS)
    away = [one_of("step(): host", each, HOST) for each in as_list("step(): host", host)]
    tokens = quantity(1, "token") * transformer.batch_tokens(context, sequences)
    tuned = None if method == "full" else Adapters(method, rank, targets)
    work = training_work(model, context, tuned) * tokens
    again = transformer.recomputed_flops(model, context, recomputation)
    peak = machine.device.peak(dtype)
    parts = {"compute": compute_time(work + again * tokens, peak, efficiency)}
    if "weights" in away:
        sent = 2 * layers_memory(model, method)
        parts["host link"] = transfer_time(sent, machine.host_link)

    def expected() -> Parts:
        return expectation.training_step(
            model,
            machine,
            float(quantity(context).m_as("")),
            float(quantity(sequences).m_as("")),
            recomputed=1.0 if recomputation == "full" else 0.0,
            frozen=tuned is not None,
            trained=1.0 if tuned is None else tuned.share(model),
            dtype=dtype,
        )

    found = StepTime(parts, work.to("FLOP"), peak, tokens=tokens)
    if away:
        return found
    return replace(found, expectation=expectation.if_measured(expected, tokens))


def layers_memory(model: Transformer | str, method: str = "lora") -> Quantity:
    """What the matrices of the layers take as they are kept: in NF4 with "qlora".

    >>> print(layers_memory("llama-3-70b", "qlora"))
    35.31 GB
    """
    one_of("layers_memory(): method", method, METHODS)
    size = nf4_size() if method == "qlora" else constants.get("size_weight_fp16")
    count = quantity(sum(each.parameters for each in adapted(model)), "param")
    return (count * size).to("byte")


def _frozen(model: Transformer, method: str) -> Quantity:
    """All frozen weights: QLoRA leaves embedding, output and norms as they are."""
    count = quantity(sum(each.parameters for each in adapted(model)), "param")
    rest = (model.parameters - count) * constants.get("size_weight_fp16")
    return (layers_memory(model, method) + rest).to("byte")


def _targets(model: Transformer, targets: str | Iterable[str]) -> tuple[Matrix, ...]:
    if isinstance(targets, str):
        return adapted(model, targets)
    every = adapted(model)
    names = [each.name for each in every]
    wanted = [one_of("adapters(): a target", name, names) for name in as_list("targets", targets)]
    return tuple(each for each in every if each.name in wanted)


def _larger(one: Quantity, other: Quantity) -> Quantity:
    return quantity(maximum(one.m_as("byte"), other.m_as("byte")), "byte")
