"""A language model small enough to train anew in seconds, and the text that every Python has.

The model is a transformer as they are built today, with two blocks: RMSNorm before attention and
before the feed-forward network, no biases, positions learned, one vector for each character. Its
matrices can be replaced and its activations rounded, so that what a number format costs can be
measured on held-out text.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from calc.core.arguments import whole_number
from calc.core.arrays import Counts, Floats
from calc.core.errors import InputError, abbreviated

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALPHABET = "\n -0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BLOCKS, WIDTH, HEADS, HIDDEN, CONTEXT = 2, 64, 4, 256, 32
MATRICES = tuple(
    f"{block}.{name}" for block in range(BLOCKS) for name in ("qkv", "out", "up", "down")
)
ADAM_DECAYS, ADAM_EPSILON, WARM_UP = (0.9, 0.99), 1e-8, 20
NORM_EPSILON = 1e-6
# Computed without rule in every version of Unicode, so that they would teach a model to count.
NUMBERED = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HANGUL SYLLABLE")

Rounding = Callable[[str, Floats], Floats]
Weights = Mapping[str, Floats]
Kept = tuple[Floats, ...]
"""What the way back needs of a part."""


class Text(NamedTuple):
    """Windows of characters, as places in the alphabet: each a context and what follows it."""

    train: Counts
    held_out: Counts


def character_names(seed: int = 0, held_out: float = 0.1) -> Text:
    """The names of the characters of Unicode 3.2, a line each, as a text to learn.

    Every Python holds this version of the database beside its own and no name in it ever changes,
    so the text is the same everywhere and nothing is downloaded. The seed shuffles the names and
    decides which of them are held out.

    Source: unicode2002ucd32

    >>> text = character_names()
    >>> "".join(ALPHABET[place] for place in text.held_out[0])
    '\\nSINHALA VOWEL SIGN KOMBUVA HAA D'
    """
    database = unicodedata.ucd_3_2_0
    names = (database.name(chr(code), "") for code in range(0x110000))
    lines = numpy.array([name for name in names if name and not name.startswith(NUMBERED)])
    order = numpy.random.default_rng(whole_number("seed", seed, at_least=0)).permutation(len(lines))
    count = round(held_out * len(lines))
    return Text(_windows(lines[order[count:]]), _windows(lines[order[:count]]))


def _windows(lines: NDArray[numpy.str_]) -> Counts:
    """The text in pieces of a context and one character more, which is the next one's first."""
    places = {letter: index for index, letter in enumerate(ALPHABET)}
    stream = numpy.array([places[letter] for letter in "\n" + "\n".join(lines) + "\n"])
    count = (len(stream) - 1) // CONTEXT
    starts = numpy.arange(count)[:, None] * CONTEXT
    windows: Counts = stream[starts + numpy.arange(CONTEXT + 1)]
    return windows


def _unrounded(name: str, values: Floats) -> Floats:
    return values


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A transformer of two blocks over characters, by the names of its matrices.

    A matrix has a row for each output. `round_inputs` is what happens to the inputs of each matrix
    of MATRICES, `round_cache` to what attention keeps: "keys" and "values", of the shape sequences,
    heads, positions, width of a head.
    """

    weights: Weights
    round_inputs: Rounding = _unrounded
    round_cache: Rounding = _unrounded

    def with_weights(self, changed: Weights) -> LanguageModel:
        """A copy with other matrices in place of those that are named."""
        for name, matrix in changed.items():
            if name not in self.weights or matrix.shape != self.weights[name].shape:
                raise InputError(
                    f"with_weights(): {abbreviated(name)} of shape {numpy.shape(matrix)} is no"
                    f" weight of this model"
                )
        return replace(self, weights={**self.weights, **changed})

    def inputs(self, windows: Counts) -> dict[str, Floats]:
        """Return the inputs of each matrix of MATRICES on this text: a row for each character."""
        met: dict[str, list[Floats]] = {name: [] for name in MATRICES}

        def keep(name: str, values: Floats) -> Floats:
            met[name].append(values.reshape(-1, values.shape[-1]))
            return self.round_inputs(name, values)

        watched = replace(self, round_inputs=keep)
        for part in _parts(windows):
            watched._forward(part[:, :-1])
        return {name: numpy.concatenate(parts) for name, parts in met.items()}

    def losses(self, windows: Counts) -> Floats:
        """Mean negative log-likelihood of the characters of each window, in nats."""
        return numpy.concatenate(
            [
                -_log_likelihood(self._forward(part[:, :-1])[0], part[:, 1:]).mean(axis=1)
                for part in _parts(windows)
            ]
        )

    def _forward(self, tokens: Counts) -> tuple[Floats, list[Any]]:
        """The logits, and what the way back needs of each block."""
        weights = self.weights
        stream = weights["embedding"][tokens] + weights["positions"]
        inputs: list[Any] = []
        for block in range(BLOCKS):
            stream, of_block = self._block(str(block), stream)
            inputs.append(of_block)
        last, scale = _normalized(stream)
        final = last * weights["gain"]
        inputs.append((last, scale, final))
        return final @ weights["head"].T, inputs

    def _block(self, block: str, stream: Floats) -> tuple[Floats, tuple[Kept, Kept]]:
        weights = self.weights
        first, first_scale = _normalized(stream)
        attended = self.round_inputs(f"{block}.qkv", first * weights[f"{block}.attention_gain"])
        parts = numpy.split(attended @ weights[f"{block}.qkv"].T, 3, axis=-1)
        queries, keys, values = map(_heads, parts)
        keys, values = self.round_cache("keys", keys), self.round_cache("values", values)
        shares = _softmax(queries @ keys.swapaxes(-1, -2) / math.sqrt(WIDTH // HEADS) + MASK)
        mixed = self.round_inputs(f"{block}.out", _joined_heads(shares @ values))
        middle = stream + mixed @ weights[f"{block}.out"].T
        second, second_scale = _normalized(middle)
        fed = self.round_inputs(f"{block}.up", second * weights[f"{block}.feed_gain"])
        hidden = self.round_inputs(
            f"{block}.down", numpy.maximum(fed @ weights[f"{block}.up"].T, 0)
        )
        kept = (
            (first, first_scale, attended, queries, keys, values, shares, mixed),
            (second, second_scale, fed, hidden),
        )
        return middle + hidden @ weights[f"{block}.down"].T, kept

    def gradients(self, windows: Counts) -> dict[str, Floats]:
        """The slope of the mean loss by each weight, as if nothing were rounded on the way."""
        weights, tokens = self.weights, windows[:, :-1]
        logits, (*blocks, (last, scale, final)) = self._forward(tokens)
        slope, right = _softmax(logits), windows[:, 1:, None]
        numpy.put_along_axis(slope, right, numpy.take_along_axis(slope, right, -1) - 1, -1)
        slope /= tokens.size
        slopes = {"head": _outer(slope, final)}
        slope = slope @ weights["head"]
        slopes["gain"] = (slope * last).sum(axis=(0, 1))
        slope = _normalized_back(slope * weights["gain"], last, scale)
        for block in reversed(range(BLOCKS)):
            slope = self._block_back(str(block), slope, blocks[block], slopes)
        slopes["positions"] = slope.sum(axis=0)
        slopes["embedding"] = numpy.zeros_like(weights["embedding"])
        numpy.add.at(slopes["embedding"], tokens, slope)
        return slopes

    def _block_back(
        self, block: str, slope: Floats, kept: tuple[Kept, Kept], slopes: dict[str, Floats]
    ) -> Floats:
        """The slope by the input of a block from that by its output; those by its weights."""
        weights = self.weights
        (first, first_scale, attended, queries, keys, values, shares, mixed), feed = kept
        second, second_scale, fed, hidden = feed
        slopes[f"{block}.down"] = _outer(slope, hidden)
        of_hidden = slope @ weights[f"{block}.down"] * (hidden > 0)
        slopes[f"{block}.up"] = _outer(of_hidden, fed)
        of_fed = of_hidden @ weights[f"{block}.up"]
        slopes[f"{block}.feed_gain"] = (of_fed * second).sum(axis=(0, 1))
        of_second = of_fed * weights[f"{block}.feed_gain"]
        slope = slope + _normalized_back(of_second, second, second_scale)
        slopes[f"{block}.out"] = _outer(slope, mixed)
        of_mixed = _heads(slope @ weights[f"{block}.out"])
        of_values = shares.swapaxes(-1, -2) @ of_mixed
        of_shares = of_mixed @ values.swapaxes(-1, -2)
        of_scores = shares * (of_shares - (of_shares * shares).sum(axis=-1, keepdims=True))
        of_scores /= math.sqrt(WIDTH // HEADS)
        of_qkv = numpy.concatenate(
            [
                _joined_heads(part)
                for part in (of_scores @ keys, of_scores.swapaxes(-1, -2) @ queries, of_values)
            ],
            axis=-1,
        )
        slopes[f"{block}.qkv"] = _outer(of_qkv, attended)
        of_attended = of_qkv @ weights[f"{block}.qkv"]
        slopes[f"{block}.attention_gain"] = (of_attended * first).sum(axis=(0, 1))
        of_first = of_attended * weights[f"{block}.attention_gain"]
        return slope + _normalized_back(of_first, first, first_scale)


def initialized(seed: int) -> LanguageModel:
    """A model with random weights of the variance 1 / inputs, from the seed."""
    random = numpy.random.default_rng(whole_number("seed", seed, at_least=0))

    def matrix(outputs: int, inputs: int, spread: float = 1.0) -> Floats:
        return spread * random.standard_normal((outputs, inputs)) / math.sqrt(inputs)

    weights: dict[str, Floats] = {
        "embedding": matrix(len(ALPHABET), WIDTH, math.sqrt(WIDTH)),
        "positions": matrix(CONTEXT, WIDTH, 1.0),
        "gain": numpy.ones(WIDTH),
        "head": matrix(len(ALPHABET), WIDTH),
    }
    for block in range(BLOCKS):
        weights[f"{block}.attention_gain"] = numpy.ones(WIDTH)
        weights[f"{block}.qkv"] = matrix(3 * WIDTH, WIDTH)
        weights[f"{block}.out"] = matrix(WIDTH, WIDTH, 0.5)
        weights[f"{block}.feed_gain"] = numpy.ones(WIDTH)
        weights[f"{block}.up"] = matrix(HIDDEN, WIDTH, math.sqrt(2))
        weights[f"{block}.down"] = matrix(WIDTH, HIDDEN, 0.5)
    return LanguageModel(weights)


def trained(
    model: LanguageModel,
    windows: Counts,
    steps: int,
    seed: int,
    rate: float = 4e-3,
    batch: int = 32,
    rounded: Callable[[Weights], Weights] | None = None,
) -> LanguageModel:
    """The model after steps of Adam on random windows of the text.

    The rate rises over the first steps and falls to zero along a cosine. `rounded` makes of the
    weights those that the model computes with: the gradient is taken there and moves the weights
    as they were, which is quantisation-aware training with a straight-through estimator.
    """
    random = numpy.random.default_rng([seed, 1])  # another stream than that of the weights
    weights = {name: numpy.array(matrix) for name, matrix in model.weights.items()}
    first = {name: numpy.zeros_like(matrix) for name, matrix in weights.items()}
    second = {name: numpy.zeros_like(matrix) for name, matrix in weights.items()}
    for step in range(1, steps + 1):
        chosen = windows[random.integers(len(windows), size=batch)]
        used = model.with_weights(rounded(weights)) if rounded else replace(model, weights=weights)
        now = rate * min(1, step / WARM_UP) * (1 + math.cos(math.pi * step / steps)) / 2
        for name, slope in used.gradients(chosen).items():
            first[name] += (1 - ADAM_DECAYS[0]) * (slope - first[name])
            second[name] += (1 - ADAM_DECAYS[1]) * (slope**2 - second[name])
            mean = first[name] / (1 - ADAM_DECAYS[0] ** step)
            spread = numpy.sqrt(second[name] / (1 - ADAM_DECAYS[1] ** step))
            weights[name] -= now * mean / (spread + ADAM_EPSILON)
    return model.with_weights(weights)


MASK = numpy.where(numpy.tri(CONTEXT, dtype=bool), 0.0, -numpy.inf)


def _parts(windows: Counts) -> list[Counts]:
    """The windows a few at a time, so that what is computed of them stays in the cache."""
    return [windows[start : start + 16] for start in range(0, len(windows), 16)]


def _normalized(values: Floats) -> tuple[Floats, Floats]:
    """RMSNorm without its gain, and what it divided by."""
    scale = numpy.sqrt((values**2).mean(axis=-1, keepdims=True) + NORM_EPSILON)
    return values / scale, scale


def _normalized_back(slope: Floats, normalized: Floats, scale: Floats) -> Floats:
    along: Floats = (slope * normalized).mean(axis=-1, keepdims=True)
    return (slope - normalized * along) / scale


def _heads(values: Floats) -> Floats:
    return values.reshape(*values.shape[:2], HEADS, WIDTH // HEADS).swapaxes(1, 2)


def _joined_heads(values: Floats) -> Floats:
    return values.swapaxes(1, 2).reshape(len(values), -1, WIDTH)


def _outer(slope: Floats, inputs: Floats) -> Floats:
    """The slope by a matrix: that by its outputs times its inputs, over all characters."""
    return slope.reshape(-1, slope.shape[-1]).T @ inputs.reshape(-1, inputs.shape[-1])


def _softmax(scores: Floats) -> Floats:
    powers = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def _log_likelihood(logits: Floats, targets: Counts) -> Floats:
    highest = logits.max(axis=-1, keepdims=True)
    total = numpy.log(numpy.exp(logits - highest).sum(axis=-1)) + highest[..., 0]
    met = numpy.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    likelihood: Floats = met - total
    return likelihood
