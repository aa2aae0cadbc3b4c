"""Quantisation that knows its inputs: what the other weights make good, and where scales may move.

Laws: error_left_by_compensation, and smoothing_scale of one channel. Functions of a matrix of
weights and of the inputs that it meets, called calibration data: compensate rounds column by column
and lets the columns to come make up for each error; activation_scales and smoothing_scales choose
a factor for each input channel, which the weights are multiplied with and the inputs divided by.
A matrix has a row for each output, inputs have a row for each sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from calc.core.arguments import check_finite, number
from calc.core.arrays import numpy
from calc.core.errors import InputError, abbreviated
from calc.core.law import FRACTION, law
from calc.core.units import Quantity, QuantityLike, as_float_or_array
from calc.laws.quantization import Scheme, sqnr

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[Any]
    Codes: TypeAlias = NDArray[Any]
    Weights: TypeAlias = Annotated[ArrayLike, "", "finite, a row for each output"]
    Inputs: TypeAlias = Annotated[ArrayLike, "", "finite, a row for each sample"]
    Strength: TypeAlias = Annotated[float, "", "0 to 1"]

DAMPING = 0.01  # of the mean of the diagonal, as in the program of the paper
STRENGTHS = 20  # that the search for activation scales tries


@law
def error_left_by_compensation(
    correlation: Annotated[QuantityLike, "", "ρ", FRACTION],
) -> Annotated[Quantity, ""]:
    """Share of one weight's squared output error that is left when another weight is free to move.

    Equation: E_left / E = 1 − ρ²

    ρ is the correlation of the inputs of both weights, about zero, and of either sign. Assumes that
    the other weight takes its best value, before it is rounded itself.

    Source: hassibi1993obs

    >>> print(error_left_by_compensation(0.8))
    0.36

    Parameters
    ----------
    correlation
        of the inputs of both weights
    """
    return 1 - correlation**2


@law
def smoothing_scale(
    largest_input: Annotated[QuantityLike, "", "x"],
    largest_weight: Annotated[QuantityLike, "", "w"],
    strength: Annotated[QuantityLike, "", "α", FRACTION] = 0.5,
) -> Annotated[Quantity, ""]:
    """Factor by which an input channel is divided, and the weights that it meets multiplied.

    Equation: s = x^α / w^(1 − α)

    x and w are the largest magnitudes of the channel in the inputs and in the weights. At α = ½
    both become √(x·w); at 1 all of an outlier goes to the weights, at 0 the weights' to the inputs.

    Source: xiao2023smoothquant

    >>> print(smoothing_scale(64, 0.25))
    16

    Parameters
    ----------
    largest_input
        largest magnitude of the channel in the inputs
    largest_weight
        largest magnitude of the weights that the channel meets
    strength
        how much of an outlier moves to the weights
    """
    return largest_input**strength / largest_weight ** (1 - strength)


def compensate(weights: Weights, inputs: Inputs, scheme: Scheme) -> Codes:
    """The codes of a matrix, where each rounding error is made up for by the columns still to come.

    Equation: w_j ← w_j − (w_i − q_i) · U_ij / U_ii, H⁻¹ = Uᵀ U, H = Xᵀ X + λ

    This is GPTQ. X are the inputs; the columns i are rounded to their codes q one after the other,
    those with the largest inputs first, and the columns j are those after i. After each step they
    hold the least squares of X (w − q). λ, which keeps H from being singular, is a hundredth of the
    mean of its diagonal. The scheme is that of the matrix before any of this.

    Source: frantar2023gptq

    >>> from calc.laws.quantization import symmetric
    >>> weights, inputs = [[0.4, 0.4, 3.0]], [[1.0, 1.0, 0.0], [0.0, 0.0, 0.1]]
    >>> scheme = symmetric(weights, 3)
    >>> scheme.quantize(weights).tolist(), compensate(weights, inputs, scheme).tolist()
    ([[0, 0, 3]], [[0, 1, 3]])

    Parameters
    ----------
    weights
        the matrix to quantise
    inputs
        what the matrix meets
    scheme
        that of the weights, from `calc.quantization`
    """
    left, samples = _matrices(weights, inputs)
    if not isinstance(scheme, Scheme):
        raise InputError(
            f"compensate() needs a scheme, as of quantization.symmetric(weights, 4, axis=0); got"
            f" {abbreviated(scheme)}"
        )
    columns = scheme.columns(left.shape)
    with numpy.errstate(over="ignore", invalid="ignore"):
        hessian = samples.T @ samples
    if not numpy.isfinite(hessian).all():
        raise InputError(
            f"inputs are too large to be squared and added up; the largest is"
            f" {abs(samples).max():g}"
        )
    hessian += numpy.eye(len(hessian)) * (DAMPING * numpy.diag(hessian).mean() or 1.0)
    order = numpy.argsort(-numpy.diag(hessian), kind="stable")
    factor = numpy.linalg.cholesky(numpy.linalg.inv(hessian[numpy.ix_(order, order)])).T
    left = left[:, order]
    codes = []
    for index, column in enumerate(order):
        codes.append(columns[column].quantize(left[:, index]))
        error = left[:, index] - columns[column].dequantize(codes[-1])
        left[:, index:] -= numpy.outer(error / factor[index, index], factor[index, index:])
    return numpy.stack(codes, axis=1)[:, numpy.argsort(order)]


def activation_scales(
    weights: Weights, inputs: Inputs, round_trip: Callable[[Floats], Floats]
) -> Floats:
    """A factor for each input channel that protects the weights which meet the largest inputs.

    Equation: s = m^α / √(max m^α · min m^α), m_j = mean |X_j|

    This is the search of AWQ: of twenty strengths α from 0 on, the one whose product with the
    inputs is closest to the exact one. `round_trip` is what quantisation leaves of a matrix; that
    of the weights times s, divided by s, is what the inputs meet. α = 0 changes nothing.

    Source: lin2024awq

    >>> from calc.laws.quantization import symmetric
    >>> in_3_bits = lambda each: symmetric(each, 3, axis=0).round_trip(each)
    >>> scales = activation_scales([[0.4, 2.0], [0.3, 3.0]], [[9.0, 0.1], [8.0, -0.1]], in_3_bits)
    >>> scales.round(2).tolist()
    [3.79, 0.26]

    Parameters
    ----------
    weights
        the matrix to quantise
    inputs
        what the matrix meets
    round_trip
        what quantisation leaves of a matrix
    """
    matrix, samples = _matrices(weights, inputs)
    if not callable(round_trip):
        raise InputError(
            f"activation_scales() needs a function that rounds a matrix, as the round_trip of a"
            f" scheme; got {abbreviated(round_trip)}"
        )
    mean = abs(samples).mean(axis=0)
    mean = numpy.where(mean > 0, mean, mean[mean > 0].min() if mean.any() else 1.0)
    exact, best, most = samples @ matrix.T, numpy.ones_like(mean), -numpy.inf
    for candidate in range(STRENGTHS):
        scales = mean ** (candidate / STRENGTHS)
        scales = scales / (scales.max() * scales.min()) ** 0.5
        restored = round_trip(matrix * scales) / scales
        closeness = sqnr(exact, samples @ restored.T)
        if closeness > most:
            best, most = scales, closeness
    return best


def smoothing_scales(weights: Weights, inputs: Inputs, strength: Strength = 0.5) -> Floats:
    """The smoothing scale of each input channel, from the largest input and weight that it has.

    Equation: s_j = max |X_j|^α / max |W_j|^(1 − α)

    A channel that is all zeros on one side keeps the scale 1.

    Source: xiao2023smoothquant

    >>> smoothing_scales([[0.25, 1.0]], [[64.0, 1.0], [-16.0, 0.5]]).tolist()
    [16.0, 1.0]

    Parameters
    ----------
    weights
        the matrix to quantise
    inputs
        what the matrix meets
    strength
        how much of an outlier moves to the weights
    """
    matrix, samples = _matrices(weights, inputs)
    strength = number("smoothing_scales(): strength", strength, at_least=0.0)
    if strength > 1:
        raise InputError(
            f"smoothing_scales(): strength must be between 0 and 1; got {abbreviated(strength)}"
        )
    largest = abs(samples).max(axis=0), abs(matrix).max(axis=0)
    used = (largest[0] > 0) & (largest[1] > 0)
    of_inputs, of_weights = (numpy.where(used, size, 1.0) for size in largest)
    scales = smoothing_scale(of_inputs, of_weights, strength)
    return numpy.where(used, scales.magnitude, 1.0)


def _matrices(weights: ArrayLike, inputs: ArrayLike) -> tuple[Floats, Floats]:
    """Copies of both as floats, whose numbers of columns agree."""
    matrix, samples = (numpy.array(as_float_or_array(matrix)) for matrix in (weights, inputs))
    if matrix.ndim != 2 or samples.ndim != 2 or matrix.shape[1] != samples.shape[1]:
        raise InputError(
            f"weights and inputs must be matrices with a column for each input channel; got shapes"
            f" {matrix.shape} and {samples.shape}"
        )
    check_finite("weights", matrix)
    check_finite("inputs", samples)
    return matrix, samples
