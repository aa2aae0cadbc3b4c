"""What the chapter "Quantisation" quotes of a small network that was quantised in many ways."""

from __future__ import annotations

import numpy
from numpy.typing import NDArray

from calc.core.units import Quantity, quantity
from calc.derivations import recorded
from calc.derivations.quoting import Row

# Of its two-sided 95 % interval, by degrees of freedom; a stored run of other seeds needs its own.
STUDENT_T = {5: 2.571}


class QuantizedNetwork:
    """A small network quantised in many ways: the paired rise of its loss, over seeds."""

    settings = recorded.settings("quantization.toml")
    rows = recorded.rows("quantization.csv")
    seeds = len(settings["seeds"])
    steps = settings["steps"]
    more_steps = settings["more_steps"]
    outliers = settings["outliers"]
    outlier_factor = settings["outlier_factor"]
    parameters = quantity(settings["matrix_weights"], "param")
    few_bits = 3
    confidence = quantity(95, "%")

    @classmethod
    def values(
        cls, column: str, method: str, weights: int = 16, **others: int | str
    ) -> NDArray[numpy.float64]:
        """A column of the rows of a recipe, by seed."""
        defaults = {"share": "channel", "activations": 16, "cache": 16, "network": "trained"}
        wanted = {"method": method, "weights": weights} | defaults | others
        numbers = [
            float(row[column])
            for row in cls.rows
            if all(row[name] == str(value) for name, value in wanted.items())
        ]
        if len(numbers) != cls.seeds:
            raise ValueError(f"{wanted} has {len(numbers)} rows, not one for each seed")
        return numpy.array(numbers)

    @classmethod
    def rise(cls, method: str, weights: int = 16, **others: int | str) -> tuple[Quantity, Quantity]:
        """By how much the loss rises over that of the network as it was trained."""
        return interval(cls.values("loss", method, weights, **others) - cls.values("loss", "none"))

    @classmethod
    def sqnr(cls, method: str, weights: int, **others: int | str) -> Quantity:
        """Mean SQNR of the weights."""
        return quantity(float(cls.values("sqnr", method, weights, **others).mean()), "")

    @classmethod
    def apart(cls, first: tuple[str, int], second: tuple[str, int]) -> tuple[Quantity, Quantity]:
        """By how much the loss of one recipe is above that of another, seed by seed."""
        return interval(cls.values("loss", *first) - cls.values("loss", *second))

    @classmethod
    def row(cls, what: str, method: str, bits: tuple[int, ...], **others: int | str) -> Row:
        """A method at each number of bits: the rise, and the SQNR at four bits."""
        rises = [plus_minus(*cls.rise(method, bit, **others)) for bit in bits]
        return what, *rises, cls.sqnr(method, 4, **others)


def interval(values: NDArray[numpy.float64]) -> tuple[Quantity, Quantity]:
    """Mean, and half the width of its 95 % interval by Student's t."""
    half = STUDENT_T[len(values) - 1] * numpy.std(values, ddof=1) / len(values) ** 0.5
    return quantity(float(numpy.mean(values)), ""), quantity(float(half), "")


def plus_minus(mean: Quantity, half: Quantity) -> str:
    """A mean and the half width of its interval, with as many decimals as that deserves."""
    decimals = max(0, 1 - int(numpy.floor(numpy.log10(half.magnitude))))
    return f"{mean.magnitude:.{decimals}f} ± {half.magnitude:.{decimals}f}"


class NetworkResults:
    """What the text says of the network, each with the half width of its interval."""

    loss = quantity(float(QuantizedNetwork.values("loss", "none").mean()), "")
    perplexity = quantity(float(numpy.exp(loss.magnitude)), "")
    eight, _ = QuantizedNetwork.rise("nearest", 8)
    nearest, _ = QuantizedNetwork.rise("nearest", 3)
    compensated, _ = QuantizedNetwork.rise("compensated", 3)
    kept = (compensated / nearest).to("%")
    sqnr_nearest = QuantizedNetwork.sqnr("nearest", 3)
    sqnr_compensated = QuantizedNetwork.sqnr("compensated", 3)
    scaled_apart, scaled_half = QuantizedNetwork.apart(("scaled", 3), ("nearest", 3))
    rotated_apart, rotated_half = QuantizedNetwork.apart(("rotated", 3), ("nearest", 3))
    four, _ = QuantizedNetwork.rise("nearest", 4)
    ratio = nearest / four
    aware, aware_half = QuantizedNetwork.apart(("aware training", 3), ("more training", 3))
    gained, gained_half = QuantizedNetwork.apart(("nearest", 3), ("compensated", 3))
    four_bits = 4
    aware_four, aware_four_half = QuantizedNetwork.apart(
        ("more training", four_bits), ("aware training", four_bits)
    )
    gained_four, gained_four_half = QuantizedNetwork.apart(
        ("nearest", four_bits), ("compensated", four_bits)
    )
    trained_four, _ = QuantizedNetwork.apart(("nearest", four_bits), ("more training", four_bits))
    cache_bits = 2
    keys_apart, keys_half = interval(
        QuantizedNetwork.values("loss", "keys by channel", cache=cache_bits)
        - QuantizedNetwork.values("loss", "keys by token", cache=cache_bits)
    )


class Planted:
    """Beside planted outliers each method does what it is for, but a rotation of weights alone."""

    recipes = (
        ("weights to the nearest", "nearest", 4, 16),
        ("weights compensated", "compensated", 4, 16),
        ("weights scaled, as AWQ", "scaled", 4, 16),
        ("weights rotated", "rotated", 4, 16),
        ("both to the nearest", "nearest", 8, 8),
        ("both, a scale for each token", "token", 8, 8),
        ("both smoothed", "smoothed", 8, 8),
        ("both rotated", "rotated", 8, 8),
    )

    @classmethod
    def rows(cls) -> list[tuple[str, str, str]]:
        """What was done, the bits of weights and activations, and what it cost."""
        return [
            (
                what,
                f"{weights}/{activations}",
                plus_minus(
                    *QuantizedNetwork.rise(
                        method,
                        weights,
                        activations=activations,
                        share="group" if activations == 16 else "channel",
                        network="outliers",
                    )
                ),
            )
            for what, method, weights, activations in cls.recipes
        ]
