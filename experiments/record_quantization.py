"""Measure what quantisation costs a small language model on held-out text, and store it.

    python -m experiments.record_quantization

Writes calc/data/measured/quantization.csv, and beside it how it was measured. For each seed a model
is trained and then quantised after each of RECIPES; a row holds its `loss` on held-out text in nats
a character, and `sqnr`, how far its weights are above their error, in decibels. The rows of one
seed share the model, the text held out and the text to calibrate with, so that they are paired.

The network `outliers` computes the same as `trained`: the gain of some channels is multiplied, and
the weights that these channels meet are divided, by the factor that the chapter uses.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy

from calc import calibration, formats, quantization
from calc.core.records import DATA
from calc.simulation import language
from calc.simulation.language import MATRICES, LanguageModel
from experiments.machine import describe
from experiments.tables import write_rows

COMMAND = "python -m experiments.record_quantization"
NAME = "quantization"
SEEDS = range(6)
TRAINING: dict[str, Any] = {"steps": 400, "rate": 1e-2}
MORE_TRAINING: dict[str, Any] = {"steps": 100, "rate": 2e-3}
CALIBRATION_WINDOWS, HELD_OUT_WINDOWS = 64, 512
CACHE_GROUP = 16  # numbers that share a scale, along a token or along a channel
GROUP = 32
OUTLIERS, OUTLIER_FACTOR = 4, 20
COLUMNS = ("seed", "network", "method", "weights", "share", "activations", "cache", "loss", "sqnr")
SHARES: dict[str, dict[str, int]] = {
    "tensor": {},
    "channel": {"axis": 0},
    "group": {"group_size": GROUP},
}


@dataclass(frozen=True)
class Recipe:
    """Recipe of quantization: what is quantised, and how.

    `weights`, `activations` and `cache` are bits, where 16 means that nothing is rounded; `share`
    is what shares a scale of the weights. Activations have one scale, from the calibration, unless
    the method is "token", which gives each token its own.
    """

    method: str
    weights: int = 16
    share: str = "channel"
    activations: int = 16
    cache: int = 16
    network: str = "trained"

    @property
    def calibrated(self) -> bool:
        """True if the method needs to know the inputs of a matrix."""
        return self.method in ("compensated", "scaled", "rotated and compensated") or (
            self.activations < 16
        )

    def round_trip(self, matrix: Any) -> Any:
        return self.scheme(matrix).round_trip(matrix)

    def scheme(self, matrix: Any) -> quantization.Scheme:
        return quantization.symmetric(matrix, self.weights, **SHARES[self.share])


WEIGHT_ONLY = (
    *(Recipe("nearest", bits, share) for bits in (8, 4, 3, 2) for share in SHARES),
    *(Recipe("compensated", bits, share) for bits in (4, 3, 2) for share in ("channel", "group")),
    *(
        Recipe(method, bits)
        for method in ("scaled", "rotated", "rotated and compensated")
        for bits in (4, 3, 2)
    ),
)
BESIDE_OUTLIERS = (
    *(
        Recipe(method, 4, "group", network="outliers")
        for method in ("nearest", "compensated", "scaled", "rotated")
    ),
    *(Recipe("nearest", bits, activations=bits) for bits in (8, 4)),
    *(
        Recipe(method, bits, "channel", bits, network="outliers")
        for bits in (8, 4)
        for method in ("nearest", "token", "smoothed", "rotated")
    ),
)
CACHE = tuple(
    Recipe(method, cache=bits)
    for bits in (8, 4, 2)
    for method in ("keys by token", "keys by channel")
)
TRAINED_ON = tuple(
    Recipe(method, bits) for method in ("more training", "aware training") for bits in (4, 3, 2)
)
RECIPES = (Recipe("none"), *WEIGHT_ONLY, *BESIDE_OUTLIERS, *CACHE, *TRAINED_ON)


def main() -> None:
    with ProcessPoolExecutor() as pool:
        rows = itertools.chain.from_iterable(pool.map(measured, SEEDS))
        write_rows(DATA / "measured" / f"{NAME}.csv", COLUMNS, rows)
    describe(
        DATA / "measured" / f"{NAME}.toml",
        f"How {NAME}.csv was measured.",
        ("numpy",),
        command=COMMAND,
        seeds=list(SEEDS),
        **TRAINING,
        more_steps=MORE_TRAINING["steps"],
        more_rate=MORE_TRAINING["rate"],
        calibration_windows=CALIBRATION_WINDOWS,
        held_out_windows=HELD_OUT_WINDOWS,
        context=language.CONTEXT,
        group=GROUP,
        cache_group=CACHE_GROUP,
        outliers=OUTLIERS,
        outlier_factor=OUTLIER_FACTOR,
        matrix_weights=sum(language.initialized(0).weights[name].size for name in MATRICES),
    )


def measured(seed: int, recipes: tuple[Recipe, ...] = RECIPES) -> list[tuple[Any, ...]]:
    """The rows of one seed, which decides what is held out, the first weights and the order."""
    text = language.character_names(seed)
    calibration_text = text.train[:CALIBRATION_WINDOWS]
    model = language.trained(language.initialized(seed), text.train, seed=seed, **TRAINING)
    longer = partial(language.trained, model, text.train, seed=seed + len(SEEDS), **MORE_TRAINING)
    networks = {"trained": model, "outliers": with_outliers(model, seed)}
    rows = []
    for recipe in recipes:
        network = networks[recipe.network]
        if recipe.method == "aware training":
            network = longer(rounded=partial(_rounded, recipe))
        elif recipe.method == "more training":
            if "longer" not in networks:
                networks["longer"] = longer()
            network = networks["longer"]
        result = quantized(network, recipe, calibration_text)
        loss = float(result.losses(text.held_out[:HELD_OUT_WINDOWS]).mean())
        sqnr = quantization.sqnr(_flat(network), _flat(result))
        what = (recipe.method, recipe.weights, recipe.share, recipe.activations, recipe.cache)
        rows.append((seed, recipe.network, *what, round(loss, 5), round(sqnr, 2)))
    return rows


def with_outliers(model: LanguageModel, seed: int) -> LanguageModel:
    """Return the same function with some channels of normalised activations much larger."""
    factors = numpy.ones(language.WIDTH)
    chosen = numpy.random.default_rng([seed, 2]).permutation(language.WIDTH)[:OUTLIERS]
    factors[chosen] = OUTLIER_FACTOR
    changed = {}
    for block in range(language.BLOCKS):
        for gain, matrix in (("attention_gain", "qkv"), ("feed_gain", "up")):
            changed[f"{block}.{gain}"] = model.weights[f"{block}.{gain}"] * factors
            changed[f"{block}.{matrix}"] = model.weights[f"{block}.{matrix}"] / factors
    return model.with_weights(changed)


def quantized(model: LanguageModel, recipe: Recipe, calibration_text: Any) -> LanguageModel:
    """The model after a recipe: matrix after matrix, each with the inputs that it then meets."""
    model = replace(model, round_cache=partial(_round_cache, recipe))
    rounds: dict[str, Any] = {}
    model = replace(
        model, round_inputs=lambda name, values: rounds.get(name, lambda same: same)(values)
    )
    for name in MATRICES if recipe.weights < 16 else ():
        matrix = model.weights[name]
        inputs = model.inputs(calibration_text)[name] if recipe.calibrated else None
        into = _basis(recipe, matrix, inputs)
        turned = matrix @ numpy.linalg.inv(into).T
        if "compensated" in recipe.method:
            scheme = recipe.scheme(turned)
            restored = scheme.dequantize(calibration.compensate(turned, inputs @ into, scheme))
        else:
            restored = recipe.round_trip(turned)
        model = model.with_weights({name: restored @ into.T})
        if recipe.activations < 16:
            rounds[name] = partial(_round_inputs, recipe, into, abs(inputs @ into).max())
    return model


def _basis(recipe: Recipe, matrix: Any, inputs: Any) -> Any:
    """Return the matrix that multiplies inputs before they are rounded; weights get its inverse."""
    if recipe.method == "scaled":
        return numpy.diag(1 / calibration.activation_scales(matrix, inputs, recipe.round_trip))
    if recipe.method == "smoothed":
        return numpy.diag(1 / calibration.smoothing_scales(matrix, inputs))
    if "rotated" in recipe.method:
        return formats.hadamard_transform(numpy.eye(len(matrix.T)), len(matrix.T))
    return numpy.eye(len(matrix.T))


def _round_inputs(recipe: Recipe, into: Any, largest: float, values: Any) -> Any:
    turned = values.reshape(-1, values.shape[-1]) @ into
    if recipe.method == "token":
        scheme = quantization.symmetric(turned, recipe.activations, axis=0)
    else:
        scheme = quantization.symmetric([largest], recipe.activations)
    return (scheme.round_trip(turned) @ numpy.linalg.inv(into)).reshape(values.shape)


def _round_cache(recipe: Recipe, name: str, values: Any) -> Any:
    """Keys or values of shape sequences, heads, positions, channels, asymmetric as in KIVI."""
    if recipe.cache == 16:
        return values
    along = name == "keys" and recipe.method == "keys by channel"
    parts = values.swapaxes(-1, -2) if along else values
    scheme = quantization.asymmetric(parts, recipe.cache, group_size=CACHE_GROUP)
    left = scheme.round_trip(parts)
    return left.swapaxes(-1, -2) if along else left


def _rounded(recipe: Recipe, weights: Mapping[str, Any]) -> dict[str, Any]:
    return {name: recipe.round_trip(weights[name]) for name in MATRICES}


def _flat(model: LanguageModel) -> Any:
    return numpy.concatenate([model.weights[name].ravel() for name in MATRICES])


if __name__ == "__main__":
    main()
