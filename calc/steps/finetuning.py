"""Fine-tuning on few devices: what weights, adapters, states and activations take of their memory.

`states`, `memory` and `longest_context` put the laws of `calc.adapters` together for a model of
`calc.models`, matrix by matrix; `step` is the time of a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from calc.catalog import constants, machines, models
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import Matrix
from calc.catalog.software import Software
from calc.core.arguments import as_list, check_is, number, one_of, whole_number
from calc.core.errors import InputError
from calc.core.law import NON_NEGATIVE
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws import quantization, training
from calc.laws.adapters import adapter_parameters, factored_variance, frozen_training_flops
from calc.laws.links import transfer_time
from calc.networks import transformer
from calc.steps import layouts
from calc.steps.device_memory import room
from calc.steps.expectation import Missing, Step
from calc.steps.job import Batch, Job, Layout, Training

METHODS = ("full", "lora", "qlora")
TARGETS = ("linear", "attention")  # matrices with an adapter: all of the layers, or those
HOST = ("weights", "optimizer", "activations")  # what may wait in the memory of the host
MATRIXWISE = ("adafactor-mixed", "muon-mixed")  # recipes that see the shape of a matrix
ON_THE_HOST = Missing("what streams between a host and its device was not measured")
EAGER = "whole"  # the loss as PyTorch computes it, where no program is named
OF_TRAINED = "calc.finetuning.Adapters(…), or calc.job.ALL"
HELD_LAYERS = 2  # of streamed weights: one that computes, and one that arrives


def nf4_size() -> Quantity:
    """Return what a weight takes in NF4 with scales that are quantised too, as in QLoRA.

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
    return tuple(matrix for matrix in models.transformer(model).matrices if matrix.part in parts)


def adapters(
    model: Transformer | str, rank: int = 16, targets: str | Iterable[str] = "linear"
) -> Annotated[Quantity, "param"]:
    """Parameters of the adapters of a model, matrix by matrix; each expert has its own.

    Equation: A = Σ r · (d_in + d_out)

    `targets` are "linear", all matrices of the layers, "attention", or names of matrices.

    Source: hu2021lora

    >>> print(adapters("llama-3-8b", 16), adapters("llama-3-8b", 16, ["query", "value"]))
    41.94M param 6.816M param

    Parameters
    ----------
    model
        model of `calc.models`
    rank
        rank of the adapters
    targets
        matrices that get an adapter: linear, attention, or their names
    """
    whole_number("adapters(): rank", rank)
    total = quantity(0, "param")
    for matrix in _targets(models.transformer(model), targets):
        total += adapter_parameters(matrix.inputs, matrix.outputs, rank) * (
            matrix.copies * matrix.layers
        )
    return total


@dataclass(frozen=True)
class Adapters(Training):
    """Adapters that are trained beside frozen weights, with `rank` and `targets` of `adapters`.

    With "qlora" the matrices of the layers are kept in NF4, with "lora" all weights in two bytes.
    """

    method: str = "lora"
    rank: int = 16
    targets: str | Iterable[str] = "linear"
    frozen = True

    def __post_init__(self) -> None:
        one_of("the method of adapters", self.method, METHODS[1:])
        whole_number("the rank of adapters", self.rank)

    def parameters(self, model: Transformer) -> Quantity:
        """Parameters that are trained."""
        return adapters(model, self.rank, self.targets)

    def share(self, model: Transformer) -> float:
        """Return the trained parameters over those of the model."""
        return float((self.parameters(model) / model.parameters).m_as(""))

    def work(self, model: Transformer, length: QuantityLike) -> Quantity:
        """Operations of a token, forward and backward: through what is frozen, and of adapters."""
        token = quantity("1 token")
        frozen = frozen_training_flops(model.multiplied_parameters, self.parameters(model), token)
        attention = transformer.causal_flops(model, length) - transformer.forward_flops(model)
        return frozen / token + 3 * attention

    def weight_size(self, model: Transformer) -> Quantity:
        """Bytes of a parameter that a pass reads, on average, adapters among them."""
        parts = self.recipe(model).parts
        return parts["weight"] + parts["adapter"]

    def recipe(self, model: Transformer, states: str = "adam-fp32") -> training.Recipe:
        """Return what is kept for each parameter of the model on average, adapters' included.

        >>> from calc import models
        >>> print(Adapters("qlora").recipe(models.get("llama-3-8b")).bytes_per_parameter)
        0.7937 byte/param
        """
        trained = self.parameters(model)
        states_of_trained = dict(training.recipe(states).parts)
        parts = {
            part: size * trained / model.parameters for part, size in states_of_trained.items()
        }
        adapter = parts.pop("weight")
        # All frozen weights: QLoRA leaves embedding, output and norms as they are.
        inside = quantity(sum(matrix.parameters for matrix in adapted(model)), "param")
        rest = (model.parameters - inside) * constants.get("size_weight_fp16")
        weight = (layers_memory(model, self.method) + rest).to("byte") / model.parameters
        name = f"{self.method} of rank {self.rank}"
        return training.Recipe(name, {"weight": weight, "adapter": adapter, **parts})


LORA = Adapters()
ONE_SEQUENCE = Batch(2048, recomputation="full")


def states(model: Transformer | str, recipe: str = "adam-mixed") -> dict[str, Quantity]:
    """Return what training all of a model keeps besides activations, part by part.

    Equation: M = P · b

    `recipe` is one of `calc.training.RECIPES`, of b bytes for each of P parameters, or one that
    sees each matrix: "muon-mixed" has one momentum for the matrices of the layers, and Adam for
    embedding, output and vectors; "adafactor-mixed" has `adapters.factored_variance` in place of
    moments.

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
    inside = [matrix for matrix in model.matrices if matrix.part in ("attention", "feed-forward")]
    if name == "muon-mixed":
        hidden = quantity(sum(matrix.parameters for matrix in inside), "param")
        sizes["variance"] = ((model.parameters - hidden) * parts["variance"]).to("byte")
    if name == "adafactor-mixed":
        del sizes["momentum"]
        moments: Quantity = quantity(0, "byte")
        if model.vocabulary is not None:  # the embedding
            moments = moments + factored_variance(model.vocabulary, model.width)
        for matrix in model.matrices:
            if not (matrix.part == "output" and model.tied_embeddings):
                of_one = factored_variance(matrix.inputs, matrix.outputs)
                moments = moments + of_one * (matrix.copies * matrix.layers)
        sizes["variance"] = (moments + model.parts["norms"] * parts["variance"]).to("byte")
    return sizes


def loss_by(software: Software, trained: Training) -> str:
    """Return how a program computes the loss: eagerly where adapters are trained and none is named.

    >>> from calc import software
    >>> loss_by(software.get("megatron"), LORA), loss_by(software.UNKNOWN, LORA)
    ('in place', 'whole')
    """
    check_is(Software, "software", software, "one of calc.software")
    check_is(Training, "trained", trained, OF_TRAINED)
    named = software.key or not isinstance(trained, Adapters)
    return software.loss if named else EAGER


def memory(
    model: Transformer | str,
    trained: Training = LORA,
    batch: Batch = ONE_SEQUENCE,
    *,
    recipe: str | None = None,
    loss: str = EAGER,
    gradients: str = "accumulated",
    host: Iterable[str] = (),
) -> layouts.DeviceMemory:
    """Return what a device holds that fine-tunes all of a model, or adapters beside frozen weights.

    Equation: M = P · w + A · b + n · m

    P weights of w bytes: 2 for "lora", `nf4_size` for the matrices of the layers with "qlora", and
    what the `recipe` says where all is trained. A trained parameters of b bytes, by `recipe`: for
    adapters "adam-fp32" where nothing is said. n tokens of m bytes: what the layers keep, all of a
    single layer where they are recomputed, and the logits, by `loss`: "whole", "chunked" or
    "fused". `gradients` are "accumulated" over microbatches, begin "anew" in each, or are "fused":
    used up, matrix by matrix, before the way back ends, so that a layer's remain. What `host` names
    waits in the memory of the host: "weights", of which two layers stay, "optimizer" (paged),
    "activations". The batch is one microbatch, whose layers are recomputed where it is left out.

    Fragments, the driver's own share (some 0.5 GB) and what kernels need for a moment come on top.

    Source: dettmers2023qlora, korthikanti2023reducing

    >>> print(memory("llama-3-70b", Adapters("qlora")))
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
    check_is(Training, "trained", trained, OF_TRAINED)
    Batch.check(batch)
    one_of("memory(): loss", loss, layouts.LOSSES)
    one_of("memory(): gradients", gradients, layouts.GRADIENTS)
    away = _on_the_host(host)
    if model.vocabulary is None:
        raise InputError(f"{model.name} has no vocabulary, and so no loss of a next token")
    if isinstance(trained, Adapters):
        stored = trained.recipe(model, "adam-fp32" if recipe is None else recipe)
    else:
        sizes = states(model, "adam-mixed" if recipe is None else recipe)
        parts = {part: size / model.parameters for part, size in sizes.items()}
        stored = training.Recipe("full", parts)
    of_batch = batch.length, batch.sequences, batch.recomputation
    whole = layouts.memory_per_device(model, Layout(), *of_batch, stored, loss, gradients)
    waiting: dict[str, Any] = dict.fromkeys(away, quantity(0, "byte"))
    if "weights" in away:
        streamed = layers_memory(model, trained.method) * (1 - HELD_LAYERS / model.layers)
        waiting["weights"] = (whole.weights - streamed).to("byte")
    return replace(whole, **waiting)


def longest_context(
    model: Transformer | str,
    device: Machine | Accelerator | str,
    trained: Training = LORA,
    *,
    reserve: Annotated[QuantityLike, "byte", NON_NEGATIVE] = "1 GB",
    **options: Any,
) -> Quantity:
    """Tokens of the longest sequence with which a device can fine-tune; 0 where none fits.

    Equation: T = max {n : M(n) + M_reserve ≤ C}

    Layers are recomputed, and `options` are those of `memory`. The reserve is for the driver,
    fragments and buffers of kernels: an estimate. No model reads more than its `context`.

    Source: dettmers2023qlora

    >>> print(longest_context("llama-3-70b", "l40s", Adapters("qlora"), loss="fused"))
    4863

    Parameters
    ----------
    model
        model of `calc.models`
    device
        device of `calc.hardware`
    trained
        what is trained: `Adapters`, or all of the model, `ALL`
    reserve
        memory left to the driver, to fragments and to kernels
    options
        arguments of `finetuning.memory`
    """
    model = models.transformer(model)
    reserved = number("longest_context(): reserve, in bytes,", quantity(reserve).m_as("byte"))
    accelerator = machines.of(device).device
    left = float(room(accelerator, reserve=quantity(reserved, "byte")).m_as("byte"))

    def beyond(context: int) -> float:
        total = memory(model, trained, replace(ONE_SEQUENCE, length=context), **options).total
        return float(total.m_as("byte")) - left

    longest = model.context
    while longest > 0 and (excess := beyond(longest)) > 0:
        # Memory grows ever faster with the context, so that this never goes below the longest.
        last_token = excess - beyond(longest - 1) if longest > 1 else excess
        longest -= max(1, math.ceil(excess / last_token))
    return quantity(max(longest, 0), "")


def step(
    job: Job, batch: Batch, efficiency: Annotated[QuantityLike, ""] = 1.0, host: Iterable[str] = ()
) -> Step:
    """The time of a microbatch on one device: its arithmetic, and weights that the host streams.

    Equation: C = (4 · P + 6 · A) · D, T = C / (R_peak · η)

    Attention, and what is recomputed, come on top of C. Weights that wait in the memory of the host
    pass the link twice: for the forward pass and for the way back. `expected` is made of measured
    rates, where all weights are on the device. Codes of QLoRA are unpacked for each product, which
    no bound counts.

    Source: hu2021lora, dettmers2023qlora

    >>> from calc import Batch, Job
    >>> job = Job.of("llama-3-8b", "h100", trained=Adapters("lora"))
    >>> tuned = step(job, Batch(4096, recomputation="full"))
    >>> print(tuned.lower, tuned.throughput)
    205.3 ms 19.95K token/s

    Parameters
    ----------
    job
        the model on its device, and what is trained of it: a `calc.Job`
    batch
        what a step does: a `calc.Batch`
    efficiency
        share of the peak that the arithmetic reaches
    host
        what waits in the memory of the host: weights, optimizer, activations
    """
    if not (away := _on_the_host(host)):
        return layouts.training_step(job, batch, efficiency)
    of_device = layouts.training_bounds(job, batch, efficiency)
    parts = dict(of_device.parts)
    if "weights" in away:
        sent = 2 * layers_memory(job.model, job.trained.method)
        parts["host link"] = transfer_time(sent, job.measured_on.host_link)
    return Step.of(replace(of_device, parts=parts), ON_THE_HOST)


def _on_the_host(host: Iterable[str]) -> list[str]:
    return [one_of("what waits on the host", name, HOST) for name in as_list("host", host)]


def layers_memory(model: Transformer | str, method: str = "lora") -> Quantity:
    """Return what the matrices of the layers take as they are kept: in NF4 with "qlora".

    >>> print(layers_memory("llama-3-70b", "qlora"))
    35.31 GB
    """
    one_of("layers_memory(): method", method, METHODS)
    size = nf4_size() if method == "qlora" else constants.get("size_weight_fp16")
    count = quantity(sum(matrix.parameters for matrix in adapted(model)), "param")
    return (count * size).to("byte")


def _targets(model: Transformer, targets: str | Iterable[str]) -> tuple[Matrix, ...]:
    if isinstance(targets, str):
        return adapted(model, targets)
    every = adapted(model)
    names = [matrix.name for matrix in every]
    wanted = [one_of("adapters(): a target", name, names) for name in as_list("targets", targets)]
    return tuple(matrix for matrix in every if matrix.name in wanted)
