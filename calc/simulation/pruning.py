"""Taking weights out of a network: one by one, two of each four, or whole neurons."""

from __future__ import annotations

import numpy

from calc.core.arguments import number, one_of
from calc.core.elementwise import floor
from calc.core.errors import InputError, abbreviated
from calc.simulation.network import NeuralNetwork, checked_network

KINDS = ("unstructured", "2:4", "structured")
GROUP, TWO_OF_FOUR = 4, 0.5  # 2:4 leaves this share of each four weights in a row


def prune(model: NeuralNetwork, level: float, kind: str = "unstructured") -> NeuralNetwork:
    """A copy without this share of its weights (unstructured, 2:4) or hidden neurons (structured).

    Unstructured pruning sets the weights of least magnitude in each layer to zero and leaves the
    shapes alone. 2:4 does so with the two least of each four weights in a row of a neuron, which
    is the pattern that sparse tensor cores skip; its level is 0.5, and what is left over at the
    end of a row stays. Structured pruning takes out the hidden neurons whose weights, in and out,
    have the least norms, and leaves narrower layers. Biases stay; `fine_tune` trains on.

    Source: hoefler2021sparsity

    >>> network = NeuralNetwork((64, 256, 10), ("relu", "softmax"))
    >>> network.initialize(seed=0)
    >>> prune(network, 0.5, "structured").layer_sizes
    (64, 128, 10)
    >>> int((prune(network, 0.5).weights[0] == 0).sum())
    8192
    >>> int((prune(network, 0.5, "2:4").weights[0][:4] == 0).sum())  # two of four inputs each
    512
    """
    share = checked_level(level)
    one_of("a kind of pruning", kind, KINDS)
    checked_network(model)
    if kind == "structured":
        return _without_neurons(model, share)
    return _two_of_four(model, share) if kind == "2:4" else _without_weights(model, share)


def checked_level(level: float) -> float:
    """A share that leaves something: from 0, and below 1."""
    share = number("a pruning level", level)
    if share >= 1:
        raise InputError(f"a pruning level must be below 1; got {abbreviated(level)}")
    return share


def _without_weights(model: NeuralNetwork, share: float) -> NeuralNetwork:
    left = []
    for weights in model.weights:
        rest = weights.copy()
        smallest = numpy.argsort(abs(weights), axis=None, kind="stable")
        rest.ravel()[smallest[: int(floor(share * weights.size))]] = 0
        left.append(rest)
    return model.with_weights(left)


def _two_of_four(model: NeuralNetwork, share: float) -> NeuralNetwork:
    if share not in (0, TWO_OF_FOUR):
        raise InputError(
            f"2:4 leaves two weights of each four: its level is {TWO_OF_FOUR:g}; got {share:g}"
        )
    left = []
    for weights in model.weights:
        rest = weights.copy()
        whole = len(rest) - len(rest) % GROUP
        groups = rest[:whole].reshape(-1, GROUP, rest.shape[1])
        if share:
            order = numpy.argsort(abs(groups), axis=1, kind="stable")
            numpy.put_along_axis(groups, order[:, : GROUP // 2], 0, axis=1)
        left.append(rest)
    return model.with_weights(left)


def _without_neurons(model: NeuralNetwork, share: float) -> NeuralNetwork:
    weights, biases = list(model.weights), list(model.biases)
    for layer in range(len(weights) - 1):
        into, out = weights[layer], weights[layer + 1]
        norms = numpy.linalg.norm(into, axis=0) * numpy.linalg.norm(out, axis=1)
        gone = numpy.argsort(norms, kind="stable")[: int(floor(share * norms.size))]
        weights[layer] = numpy.delete(into, gone, axis=1)
        biases[layer] = numpy.delete(biases[layer], gone)
        weights[layer + 1] = numpy.delete(out, gone, axis=0)
    widths = [weights[0].shape[0], *(matrix.shape[1] for matrix in weights)]
    narrower = NeuralNetwork(widths, model.activations, model.precision)
    narrower.weights, narrower.biases = weights, biases
    return narrower
