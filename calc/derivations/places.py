"""Where the book prints each value of the data: the page of a device, the row of a value."""

from __future__ import annotations

from calc.catalog.hardware import Accelerator

VENDORS = ("NVIDIA", "AMD", "Google")  # with a page of their own


def anchor(key: str) -> str:
    """The id of the row of a value.

    >>> anchor("h100.memory_bandwidth")
    'h100-memory-bandwidth'
    """
    return key.replace("_", "-").replace(".", "-")


def vendor_of(device: Accelerator) -> str:
    """The vendor whose page the device is on; all others have one together."""
    vendor = device.name.split()[0]
    return vendor if vendor in VENDORS else "Others"


def page_of(device: Accelerator) -> str:
    """The page of its vendor's devices, without its ending."""
    return f"reference/devices/{vendor_of(device).lower()}"
