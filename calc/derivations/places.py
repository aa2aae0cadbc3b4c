"""Where the book prints each value of the data: the page of a device, the row of a value."""

from __future__ import annotations

from calc.catalog.hardware import Accelerator

VENDORS = ("NVIDIA", "AMD", "Google")  # with a page of their own
CARDS = "RTX"  # of NVIDIA, which has too many devices for one page


def anchor(key: str) -> str:
    """The id of the row of a value.

    >>> anchor("h100.memory_bandwidth")
    'h100-memory-bandwidth'
    """
    return key.replace("_", "-").replace(".", "-")


def vendor_of(device: Accelerator) -> str:
    """The vendor whose page the device is on; all others have one together.

    >>> from calc import hardware
    >>> [vendor_of(hardware.get(key)) for key in ("h100", "rtx-4090", "gaudi3")]
    ['NVIDIA', 'NVIDIA RTX', 'Others']
    """
    vendor = device.name.split()[0]
    if vendor == "NVIDIA" and CARDS in device.name:
        return f"{vendor} {CARDS}"
    return vendor if vendor in VENDORS else "Others"


def page_of(device: Accelerator) -> str:
    """The page of its vendor's devices, without its ending."""
    return f"reference/devices/{vendor_of(device).lower().replace(' ', '-')}"
