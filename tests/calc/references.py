"""Expected results of laws: by the equation that each prints, or else by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from tests.calc.equations import printed

TILES = "256x128 128x256 128x192 192x128 128x128 64x256 256x64 64x128 128x64 64x64"


def expected(law: str, arguments: Mapping[str, float]) -> list[tuple[str, Any]]:
    """Return the expected results, with their relations to the law's: "=", "≤" or "≈"."""
    if by_hand := REFERENCES.get(law):
        return [("=", by_hand(**{name: Fraction(value) for name, value in arguments.items()}))]
    return printed(law).values(arguments)


def agrees(result: Any, relation: str, exact: Any) -> bool:
    """Return whether a law's magnitude, or its word, is this; what a float cannot hold is zero."""
    if isinstance(exact, str):
        return bool(result == exact)
    if relation == "≈":
        return math.isclose(result, exact, rel_tol=1e-3, abs_tol=0.02)
    return math.isclose(result, exact, rel_tol=1e-9, abs_tol=1e-290)


def gemm_time(
    *,
    m: Any,
    n: Any,
    k: Any,
    rate: Any,
    bandwidth: Any,
    units: Any,
    input_size: Any,
    weight_size: Any,
    output_size: Any,
    products: Any,
    start: Any,
) -> Any:
    """The products' time: the slower of arithmetic in waves and of reading, then writing."""
    waves = []
    for tile in TILES.split():
        rows, columns = map(int, tile.split("x"))
        tiles = products * -(-m // rows) * -(-n // columns)
        full = -(-tiles // units) * units * rows * columns
        share = Fraction((rows * columns / 32768) ** 0.1)
        waves.append(full / (share * products * m * n))
    arithmetic = 2 * products * m * n * k / rate * min(waves)
    reading = products * k * (m * input_size + n * weight_size) / bandwidth
    return max(arithmetic, reading) + products * m * n * output_size / bandwidth + start


def fastest_time(**arguments: Fraction) -> Any:
    """The least time of all tiles and of splits into parts of 256 elements or more."""
    problem = {name: float(value) for name, value in arguments.items()}
    return min(
        printed("gemms.time_in_tiles").values(
            {**problem, "tile_rows": rows, "tile_columns": columns, "splits": splits}
        )[0][1]
        for rows, columns in (map(int, tile.split("x")) for tile in TILES.split())
        for splits in (1, 2, 4, 8, 16)
        if splits == 1 or problem["k"] >= 256 * splits
    )


REFERENCES: dict[str, Callable[..., Any]] = {  # each is the best of a table of tiles
    "gemms.fastest_time": fastest_time,
    "gemms.gemm_time": gemm_time,
}
