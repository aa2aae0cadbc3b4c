"""The device as laws see it, so that none of them imports the data of all devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from calc.core.errors import InputError, abbreviated

if TYPE_CHECKING:  # `calc` itself imports this module, and units take longer
    from calc.core.units import Quantity


class Device(Protocol):
    """An accelerator of `calc.hardware`, as a law sees it."""

    @property
    def key(self) -> str:
        """Key of the device in the data."""

    @property
    def name(self) -> str:
        """Name that the vendor calls the device by."""

    @property
    def half_sums(self) -> float:
        """Factor by which FP16 products with FP16 sums are faster than with FP32 sums."""

    @property
    def memory_bandwidth(self) -> Quantity:
        """Bandwidth of its memory."""

    @property
    def memory_capacity(self) -> Quantity:
        """Capacity of its memory."""

    def peak(self, dtype: str) -> Quantity:
        """Dense rate of its matrix units for a data type."""

    def is_rated(self, dtype: str) -> bool:
        """Return False where it may compute in a format and publishes no peak of any."""

    def instead(self, unit: str) -> str:
        """Return what to write where a law is given the device in place of one of its numbers."""

    def number_in(self, unit: str) -> str:
        """Return how Python asks for the number that has this unit, or "" where none has."""


named: Callable[[str], Device | None]
"""The device of that name, which `calc` looks up for the sentence that refuses its name."""


def check_device(value: object) -> None:
    """Refuse what is no device, and the name of one, which is written otherwise."""
    if not hasattr(type(value), "instead"):
        hint = f": write hardware.get({abbreviated(value)})" if isinstance(value, str) else ""
        raise InputError(
            f"a device of calc.hardware is needed here; got {abbreviated(value)}{hint}"
        )
