"""Devices of one's own of which nothing is expected, so that bounds decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

UNEXPECTED = f"{Path(__file__).with_suffix('.toml')}:fp8-only-pod"
IN_FP8: dict[str, Any] = {"dtype": "fp8"}
"""What must be said of them, which compute in nothing else."""
NO_RATE = "rate of matrix products in BF16 was not measured on FP8 alone, 64"
