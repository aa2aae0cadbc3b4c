"""Training and inference of dense models: work, time, utilisation, tokens, failures, memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from calc.catalog import constants
from calc.core.elementwise import expm1, floor, where
from calc.core.law import AT_LEAST_ONE, NON_NEGATIVE, POSITIVE_FRACTION, law
from calc.core.names import resolve, spellings
from calc.core.records import DATA, read_toml
from calc.core.units import Quantity, QuantityLike, quantity


@law
def training_flops(
    parameters: Annotated[QuantityLike, "param", "P"],
    tokens: Annotated[QuantityLike, "token", "D"],
    work: Annotated[QuantityLike, "FLOP/(param·token)", "6"] = constants.get("work_training"),
) -> Annotated[Quantity, "FLOP"]:
    """Operations to train a dense model: 2 forward and 4 backward for each parameter and token.

    Equation: C = 6 · P · D

    Assumes that matrix products with the parameters are all the work; attention over long sequences
    comes on top. A mixture of experts counts its active parameters.

    Source: kaplan2020scaling

    See also: training.inference_flops, training.training_time

    >>> print(training_flops("7B param", "1T token"))
    4.2e22 FLOP

    Parameters
    ----------
    parameters
        parameters of the model, or of the part of it in question
    tokens
        tokens of the whole training
    work
        operations for each parameter and token
    """
    return work * parameters * tokens


@law
def inference_flops(
    parameters: Annotated[QuantityLike, "param", "P"],
    tokens: Annotated[QuantityLike, "token", "D"] = 1,
    work: Annotated[QuantityLike, "FLOP/(param·token)", "2"] = constants.get("work_inference"),
) -> Annotated[Quantity, "FLOP"]:
    """Operations of a forward pass: a multiply and an add for each parameter and token.

    Equation: C = 2 · P · D

    Assumes a dense model whose attention work is small beside its matrix products.

    Source: kaplan2020scaling

    See also: training.training_flops, layers.projection_flops

    >>> print(inference_flops("7B param"))
    14 GFLOP

    Parameters
    ----------
    parameters
        parameters of the model, or of the part of it in question
    tokens
        tokens that are read or written
    work
        operations for each parameter and token
    """
    return work * parameters * tokens


@law
def training_time(
    parameters: Annotated[QuantityLike, "param", "P"],
    tokens: Annotated[QuantityLike, "token", "D"],
    devices: Annotated[QuantityLike, "", "N", AT_LEAST_ONE],
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    mfu: Annotated[QuantityLike, "", "U", POSITIVE_FRACTION],
    work: Annotated[QuantityLike, "FLOP/(param·token)", "6"] = constants.get("work_training"),
) -> Annotated[Quantity, "s"]:
    """Time to train on so many devices, each at the given fraction of its dense peak.

    Equation: T = 6 · P · D / (N · R_peak · U)

    Assumes that the utilisation (MFU) is the same from the first step to the last, and no time is
    lost.

    Source: kaplan2020scaling

    See also: training.devices_needed, training.time_at_throughput

    >>> print(training_time("1B param", "20B token", 1, "312 TFLOP/s", 0.4))
    11.13 day

    Parameters
    ----------
    parameters
        parameters of the model, or of the part of it in question
    tokens
        tokens of the whole training
    devices
        devices that take part
    peak
        operations that the machine does in a second at most
    mfu
        share of the peak that the model's own operations account for (MFU)
    work
        operations for each parameter and token
    """
    return work * parameters * tokens / (devices * peak * mfu)


@law
def mfu(
    parameters: Annotated[QuantityLike, "param", "P"],
    tokens: Annotated[QuantityLike, "token", "D"],
    devices: Annotated[QuantityLike, "", "N", AT_LEAST_ONE],
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    time: Annotated[QuantityLike, "s", "T"],
    work: Annotated[QuantityLike, "FLOP/(param·token)", "6"] = constants.get("work_training"),
) -> Annotated[Quantity, ""]:
    """Model FLOP utilisation: the fraction of the peak that the model's own operations account for.

    Equation: U = 6 · P · D / (N · R_peak · T)

    Above 1 the inputs contradict each other: a sparse peak taken for a dense one, or a time without
    restarts.

    Source: chowdhery2023palm

    See also: training.mfu_of_operations, parallelism.hfu

    >>> print(mfu("1B param", "20B token", 1, "312 TFLOP/s", "11.13 day").to("%"))
    40.00%

    Parameters
    ----------
    parameters
        parameters of the model, or of the part of it in question
    tokens
        tokens of the whole training
    devices
        devices that take part
    peak
        operations that the machine does in a second at most
    time
        time of the whole training
    work
        operations for each parameter and token
    """
    return work * parameters * tokens / (devices * peak * time)


@law
def mfu_of_operations(
    operations: Annotated[QuantityLike, "FLOP", "C"],
    devices: Annotated[QuantityLike, "", "N", AT_LEAST_ONE],
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    time: Annotated[QuantityLike, "s", "T"],
) -> Annotated[Quantity, ""]:
    """Model FLOP utilisation where the operations of the whole run are known, attention included.

    Equation: U = C / (N · R_peak · T)

    With the operations of every recomputation it is the utilisation of the hardware (HFU).

    Source: chowdhery2023palm

    >>> print(mfu_of_operations("3.8e25 FLOP", 16384, "989 TFLOP/s", "70 day").to("%"))
    38.78%

    Parameters
    ----------
    operations
        operations of the whole training
    devices
        devices that take part
    peak
        operations that the machine does in a second at most
    time
        time of the whole training
    """
    return operations / (devices * peak * time)


@law
def devices_needed(
    parameters: Annotated[QuantityLike, "param", "P"],
    tokens: Annotated[QuantityLike, "token", "D"],
    time: Annotated[QuantityLike, "s", "T"],
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    mfu: Annotated[QuantityLike, "", "U", POSITIVE_FRACTION],
    work: Annotated[QuantityLike, "FLOP/(param·token)", "6"] = constants.get("work_training"),
) -> Annotated[Quantity, ""]:
    """Whole devices that train within this time, each at the given fraction of its dense peak.

    Equation: N = ⌈6 · P · D / (T · R_peak · U)⌉

    Assumes what training_time does: no time is lost, and U does not fall as N grows.

    Source: kaplan2020scaling

    >>> print(devices_needed("70B param", "15T token", "30 day", "989 TFLOP/s", 0.4))
    6144

    Parameters
    ----------
    parameters
        parameters of the model, or of the part of it in question
    tokens
        tokens of the whole training
    time
        time of the whole training
    peak
        operations that the machine does in a second at most
    mfu
        share of the peak that the model's own operations account for (MFU)
    work
        operations for each parameter and token
    """
    return -floor(-work * parameters * tokens / (time * peak * mfu))


@law
def time_at_throughput(
    tokens: Annotated[QuantityLike, "token", "D", NON_NEGATIVE],
    throughput: Annotated[QuantityLike, "token/s", "R"],
) -> Annotated[Quantity, "s"]:
    """Time that so many tokens take at a rate that was measured.

    Equation: T = D / R

    Assumes the rate of the whole machine, the same from the first token to the last.

    Source: narayanan2021efficient

    >>> print(time_at_throughput("1T token", "400K token/s").to("day"))
    28.94 day

    Parameters
    ----------
    tokens
        tokens of the whole training
    throughput
        tokens in a second, of all devices together
    """
    return tokens / throughput


@law
def offloading_time(
    parameters: Annotated[QuantityLike, "param", "P"],
    link_bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    host_bandwidth: Annotated[QuantityLike, "byte/s", "BW_host"],
    sent: Annotated[QuantityLike, "byte/param", "s", NON_NEGATIVE] = "4 byte/param",
    updated: Annotated[QuantityLike, "byte/param", "u", NON_NEGATIVE] = "28 byte/param",
) -> Annotated[Quantity, "s"]:
    """Time of a step for an optimizer on the host: the link's, and that of the host's memory.

    Equation: T = P · (s / BW + u / BW_host)

    Gradients of two bytes go out and weights of two bytes come back. The host reads the gradient,
    reads and writes the weight and both moments of Adam in FP32, and writes the weight to send.
    Assumes that nothing overlaps; in pieces that follow one another the longer term remains.

    Source: ren2021zerooffload

    >>> print(offloading_time("10B param", "63 GB/s", "280 GB/s"))
    1.635 s
    >>> from calc import machines
    >>> dgx = machines.get("dgx-h100")  # one device, the others leave the host alone
    >>> print(offloading_time("10B param", dgx.host_link, dgx.host_memory_bandwidth))
    1.132 s

    Parameters
    ----------
    parameters
        parameters of the model, or of the part of it in question
    link_bandwidth
        bytes that the link to the host carries in a second, each way
    host_bandwidth
        bytes that the host's memory carries in a second
    sent
        bytes of each parameter that cross the link in a step
    updated
        bytes of each parameter that the host reads and writes in a step
    """
    return parameters * (sent / link_bandwidth + updated / host_bandwidth)


@law
def attention_overhead(
    context: Annotated[QuantityLike, "", "T", NON_NEGATIVE], width: Annotated[QuantityLike, "", "d"]
) -> Annotated[Quantity, ""]:
    """Operations of attention over the context, for each one of 6 · P · D.

    Equation: r = T / (12 · d)

    Assumes a causal mask, and a decoder with P = 12 · l · d² parameters in l layers of width d.
    Twice that where the masked half is computed or counted too.

    Source: kaplan2020scaling

    >>> print(attention_overhead(8192, 16384).to("%"))
    4.167%

    Parameters
    ----------
    context
        tokens of a sequence
    width
        width of the model: the length of a token's vector
    """
    return context / (12 * width)


@law
def compute_optimal_tokens(
    parameters: Annotated[QuantityLike, "param", "P"],
    tokens_per_parameter: Annotated[QuantityLike, "token/param", "r"] = constants.get(
        "tokens_per_parameter_optimal"
    ),
) -> Annotated[Quantity, "token"]:
    """Tokens that make the best of the operations spent on a model of this size.

    Equation: D = r · P

    Assumes that only training costs: a model that is much used should be smaller, and see more.

    Source: hoffmann2022training

    See also: training.least_work_tokens

    >>> print(compute_optimal_tokens("1B param"))
    20B token

    Parameters
    ----------
    parameters
        parameters of the model, or of the part of it in question
    tokens_per_parameter
        tokens for each parameter at the optimum
    """
    return tokens_per_parameter * parameters


@law
def compute_optimal_parameters(
    operations: Annotated[QuantityLike, "FLOP", "C"],
    tokens_per_parameter: Annotated[QuantityLike, "token/param", "r"] = constants.get(
        "tokens_per_parameter_optimal"
    ),
    work: Annotated[QuantityLike, "FLOP/(param·token)", "6"] = constants.get("work_training"),
) -> Annotated[Quantity, "param"]:
    """Size of the model that makes the best of so many operations of training.

    Equation: P = √(C / (6 · r))

    Source: hoffmann2022training

    See also: training.least_work_parameters

    >>> print(compute_optimal_parameters("1.2e20 FLOP"))
    1B param

    Parameters
    ----------
    operations
        operations of the whole training
    tokens_per_parameter
        tokens for each parameter at the optimum
    work
        operations for each parameter and token
    """
    return (operations / (work * tokens_per_parameter)) ** 0.5


@law
def pretraining_loss(
    parameters: Annotated[QuantityLike, "param", "P"],
    tokens: Annotated[QuantityLike, "token", "D"],
    irreducible: Annotated[QuantityLike, "", "E", NON_NEGATIVE] = constants.get("loss_irreducible"),
    parameters_coefficient: Annotated[QuantityLike, "", "A"] = constants.get(
        "coefficient_parameters"
    ),
    parameters_exponent: Annotated[QuantityLike, "", "α", POSITIVE_FRACTION] = constants.get(
        "exponent_parameters"
    ),
    tokens_coefficient: Annotated[QuantityLike, "", "B"] = constants.get("coefficient_tokens"),
    tokens_exponent: Annotated[QuantityLike, "", "β", POSITIVE_FRACTION] = constants.get(
        "exponent_tokens"
    ),
    _parameter: Annotated[QuantityLike, "param"] = 1,
    _token: Annotated[QuantityLike, "token"] = 1,
) -> Annotated[Quantity, ""]:
    """Loss of a language model of this size after so many tokens, in nats a token.

    Equation: L = E + A / P^(α) + B / D^(β)

    A fit to runs of one corpus and one architecture, on which E, A and B depend.

    Source: hoffmann2022training

    >>> print(pretraining_loss("70B param", "1.4T token"))
    1.937

    Parameters
    ----------
    parameters
        parameters of the model, or of the part of it in question
    tokens
        tokens of the whole training
    irreducible
        loss that no model and no data go below
    parameters_coefficient
        how much a small model loses
    parameters_exponent
        how fast that falls with parameters
    tokens_coefficient
        how much few tokens lose
    tokens_exponent
        how fast that falls with tokens
    """
    by_size = parameters_coefficient * (_parameter / parameters) ** parameters_exponent
    return irreducible + by_size + tokens_coefficient * (_token / tokens) ** tokens_exponent


@law
def least_work_parameters(
    loss: Annotated[QuantityLike, "", "δL"],
    parameters_coefficient: Annotated[QuantityLike, "", "A"] = constants.get(
        "coefficient_parameters"
    ),
    parameters_exponent: Annotated[QuantityLike, "", "α", POSITIVE_FRACTION] = constants.get(
        "exponent_parameters"
    ),
    tokens_exponent: Annotated[QuantityLike, "", "β", POSITIVE_FRACTION] = constants.get(
        "exponent_tokens"
    ),
    _parameter: Annotated[QuantityLike, "param"] = 1,
) -> Annotated[Quantity, "param"]:
    """Size of the model that reaches a loss with the least operations, by a fit of the loss.

    Equation: P = (A · (α + β) / (β · δL))^(1 / α)

    δL is the loss above the irreducible one. At the least operations, 6 · P · D, the terms of
    pretraining_loss by size and by tokens are to each other as β to α.

    Source: hoffmann2022training

    >>> print(least_work_parameters(0.25))
    28.81B param

    Parameters
    ----------
    loss
        loss above the irreducible one
    parameters_coefficient
        how much a small model loses
    parameters_exponent
        how fast that falls with parameters
    tokens_exponent
        how fast that falls with tokens
    """
    exponents = parameters_exponent + tokens_exponent
    by_size = loss * tokens_exponent / exponents
    return (parameters_coefficient / by_size) ** (1 / parameters_exponent) * _parameter


@law
def least_work_tokens(
    loss: Annotated[QuantityLike, "", "δL"],
    tokens_coefficient: Annotated[QuantityLike, "", "B"] = constants.get("coefficient_tokens"),
    tokens_exponent: Annotated[QuantityLike, "", "β", POSITIVE_FRACTION] = constants.get(
        "exponent_tokens"
    ),
    parameters_exponent: Annotated[QuantityLike, "", "α", POSITIVE_FRACTION] = constants.get(
        "exponent_parameters"
    ),
    _token: Annotated[QuantityLike, "token"] = 1,
) -> Annotated[Quantity, "token"]:
    """Tokens after which the model of least_work_parameters has that loss.

    Equation: D = (B · (α + β) / (α · δL))^(1 / β)

    Source: hoffmann2022training

    >>> print(least_work_tokens(0.25))
    2.607T token

    Parameters
    ----------
    loss
        loss above the irreducible one
    tokens_coefficient
        how much few tokens lose
    tokens_exponent
        how fast that falls with tokens
    parameters_exponent
        how fast that falls with parameters
    """
    exponents = parameters_exponent + tokens_exponent
    by_tokens = loss * parameters_exponent / exponents
    return (tokens_coefficient / by_tokens) ** (1 / tokens_exponent) * _token


@law
def checkpoint_interval_first_order(
    checkpoint_time: Annotated[QuantityLike, "s", "δ"],
    time_between_failures: Annotated[QuantityLike, "s", "M"],
) -> Annotated[Quantity, "s"]:
    """Time from one checkpoint to the next that loses least to both checkpoints and failures.

    Equation: τ = √(2 · δ · M)

    Assumes failures at random that are rare: M, the mean time between them, far above δ, the time
    that a checkpoint takes.

    Source: young1974first

    See also: training.checkpoint_interval

    >>> print(checkpoint_interval_first_order("5 min", "24 h").to("min"))
    120 min

    Parameters
    ----------
    checkpoint_time
        time that writing a checkpoint takes
    time_between_failures
        mean time between failures of the whole machine
    """
    return (2 * checkpoint_time * time_between_failures) ** 0.5


@law
def checkpoint_interval(
    checkpoint_time: Annotated[QuantityLike, "s", "δ"],
    time_between_failures: Annotated[QuantityLike, "s", "M"],
) -> Annotated[Quantity, "s"]:
    """Work between checkpoints that loses least, where failures are not so rare.

    Equation: τ = √(2 · δ · M) · (1 + √(δ / (2 · M)) / 3 + δ / (18 · M)) − δ where δ < 2 · M, else M

    Assumes failures at random, during checkpoints
    too; the time of a restart does not matter.

    Source: daly2006higher

    See also: training.goodput

    >>> print(checkpoint_interval("5 min", "24 h").to("min"))
    116.7 min

    Parameters
    ----------
    checkpoint_time
        time that writing a checkpoint takes
    time_between_failures
        mean time between failures of the whole machine
    """
    share = checkpoint_time / (2 * time_between_failures)
    between = (2 * checkpoint_time * time_between_failures) ** 0.5
    interval = between * (1 + share**0.5 / 3 + share / 9) - checkpoint_time
    return where(share < 1, interval, time_between_failures)


@law
def time_between_failures(
    device_time_between_failures: Annotated[QuantityLike, "s", "M_device"],
    devices: Annotated[QuantityLike, "", "N", AT_LEAST_ONE],
) -> Annotated[Quantity, "s"]:
    """Mean time between failures of a machine that stops with any one of its devices.

    Equation: M = M_device / N

    Assumes that devices fail at random and on their own.

    Source: daly2006higher

    See also: failures.time_between_interruptions

    >>> print(time_between_failures("5 year", 16384))
    2.675 h

    Parameters
    ----------
    device_time_between_failures
        mean of one device
    devices
        devices that take part
    """
    return device_time_between_failures / devices


@law
def goodput(
    interval: Annotated[QuantityLike, "s", "τ"],
    checkpoint_time: Annotated[QuantityLike, "s", "δ", NON_NEGATIVE],
    restart_time: Annotated[QuantityLike, "s", "R", NON_NEGATIVE],
    time_between_failures: Annotated[QuantityLike, "s", "M"],
) -> Annotated[Quantity, ""]:
    """Share of the time that goes into work which lasts, between checkpoints and failures.

    Equation: G = τ / M · exp(−R / M) / (exp((τ + δ) / M) − 1)

    A failure loses what was done since the last checkpoint, and the time R of a restart, in which
    failures happen as well. Assumes failures at random. Utilisation while the run makes progress
    (MFU) times this is utilisation over the whole run.

    Source: daly2006higher

    >>> print(goodput("20 min", "10 s", "5 min", "3 h").to("%"))
    91.15%

    Parameters
    ----------
    interval
        work between two checkpoints
    checkpoint_time
        time that writing a checkpoint takes
    restart_time
        time from a failure to the next step
    time_between_failures
        mean time between failures of the whole machine
    """
    segment = (interval + checkpoint_time) / time_between_failures
    rate = interval / time_between_failures
    # exp(−s) / (1 − exp(−s)) is 1 / (exp(s) − 1), and does not overflow.
    survived = math.e ** -(segment + restart_time / time_between_failures)
    return rate * survived / -expm1(-segment)


@law
def model_memory(
    parameters: Annotated[QuantityLike, "param", "P"],
    bytes_per_parameter: Annotated[QuantityLike, "byte/param", "b"],
) -> Annotated[Quantity, "byte"]:
    """Memory that a model's state takes, activations and caches not included.

    Equation: M = P · b

    Source: rajbhandari2020zero

    See also: parallelism.state_memory

    >>> print(model_memory("7B param", "16 byte/param"))
    112 GB

    Parameters
    ----------
    parameters
        parameters of the model, or of the part of it in question
    bytes_per_parameter
        what is stored for each parameter: see `training.recipe`
    """
    return parameters * bytes_per_parameter


@dataclass(frozen=True)
class Recipe:
    """Bytes stored for each parameter, part by part, in one way to train or serve."""

    name: str
    parts: dict[str, Quantity]

    @property
    def bytes_per_parameter(self) -> Quantity:
        """The sum of the parts."""
        return sum(self.parts.values(), quantity(0, "byte/param"))

    @property
    def breakdown(self) -> str:
        """ "2 weight + 2 gradient + …", in bytes for each parameter."""
        return " + ".join(f"{size.magnitude:g} {part}" for part, size in self.parts.items())


RECIPES: dict[str, dict[str, str]] = read_toml(DATA / "recipes.toml")
"""The constants that are the parts of each."""


def recipe(name: str) -> Recipe:
    """The recipe of that name, with its breakdown.

    >>> print(recipe("adam-mixed").bytes_per_parameter)
    16 byte/param
    """
    key = resolve("recipe", name, spellings(dict.fromkeys(RECIPES, ())))
    return Recipe(key, {part: constants.get(constant) for part, constant in RECIPES[key].items()})
