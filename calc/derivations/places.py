"""Places where the book prints the data: the page of a subject, the row of a value."""

from __future__ import annotations

from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Network, Transformer

Thing = Accelerator | Machine | Transformer | Network


def anchor(key: str) -> str:
    """The id of the row of a value.

    >>> anchor("h100.memory_bandwidth")
    'h100-memory-bandwidth'
    """
    return key.replace("_", "-").replace(".", "-").replace(" ", "-")


def kind_of(thing: Thing) -> str:
    """The folder of the pages of its kind."""
    if isinstance(thing, Accelerator):
        return "devices"
    return "machines" if isinstance(thing, Machine) else "models"


def page_of(thing: Thing) -> str:
    """The page of a device, a machine or a model, without its ending.

    >>> from calc import machines
    >>> page_of(machines.get("dgx-h100"))
    'reference/machines/dgx-h100'
    """
    return f"reference/{kind_of(thing)}/{thing.key}"
