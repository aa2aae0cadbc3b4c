"""What a plan is asked for, read and checked once: model, device, counts, formats and prices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from calc import formats, inference, machines, models, software, transformer
from calc.core.elementwise import largest, smallest
from calc.core.errors import InputError, abbreviated
from calc.core.units import Quantity, QuantityLike, quantity
from calc.hardware import Accelerator
from calc.machines import Machine
from calc.models import Transformer
from calc.software import Software

COMPUTED_IN = ("bf16", "fp16", "fp32")  # in the first of these that a device has
LARGEST_COUNT = 1e15  # so that floats hold it exactly
A_TOKEN = quantity(1, "token")
machine_of = machines.of


@dataclass(frozen=True, eq=False, repr=False)
class Setup:
    """A model served by devices of one kind: what is asked, without an answer."""

    model: Transformer
    machine: Machine
    batch: Quantity
    prompt: Quantity
    generated: Quantity
    devices: Quantity
    weights: QuantityLike
    kv: QuantityLike
    dtype: str
    link: Quantity | None
    """Bandwidth each way of a ring of all devices, where it is given, or no machine is known."""
    price: Quantity | None
    software: Software

    @classmethod
    def read(
        cls,
        model: Transformer | str,
        device: Machine | Accelerator | Path | str,
        counts: dict[str, QuantityLike],
        weights: QuantityLike,
        kv: QuantityLike,
        dtype: str | None,
        link: QuantityLike | None,
        price: QuantityLike | None,
        context: QuantityLike | None,
        program: str | None,
    ) -> Self:
        """The setup of what a caller wrote; a number of devices that is left out is 1 for now."""
        if isinstance(device, str) and "," in device:
            raise InputError(
                f"plan() takes one device; got {abbreviated(device)}: plan for each of them, as in"
                " [plan(model, each, prompt=10, generated=10) for each in devices]"
            )
        model = models.transformer(model)
        model = model if context is None else model.with_context(context)
        machine = machines.of(device)
        numbers = {name: _whole_number(name, count) for name, count in counts.items()}
        _check_shapes(numbers)
        if dtype is None:
            has = machine.device.dtypes
            dtype = next((each for each in COMPUTED_IN if each in has), COMPUTED_IN[0])
        setup = cls(
            model=model,
            machine=machine,
            **({"devices": quantity(1, "")} | numbers),
            weights=weights,
            kv=kv,
            dtype=dtype,
            link=_link(machine, link),
            price=None if price is None else _amount("USD/s", "price", price, "3 USD/hour"),
            software=software.UNKNOWN if program is None else software.get(program),
        )
        transformer.forward_flops(model, largest(setup.context))  # refuses one that is too long
        return setup

    @property
    def device(self) -> Accelerator:
        """The device of which the machine has several."""
        return self.machine.device

    @property
    def context(self) -> Quantity:
        """The full length of a sequence, in tokens."""
        length: Quantity = self.prompt + self.generated
        return length

    @property
    def power(self) -> Quantity | None:
        """Power of a device with its share of the host's and the fans', where that is published."""
        if self.in_machine:
            share: Quantity = self.machine.power / self.machine.domain
            return share.to("W")
        return self.device.tdp if self.device.publishes("tdp") else None

    @property
    def in_machine(self) -> bool:
        """Whether the machine's links are used, and the power of the whole of it is published."""
        return self.link is None and self.machine.publishes("power")

    @cached_property
    def weight_size(self) -> Quantity:
        return _element_size("weights", self.weights)

    @cached_property
    def kv_size(self) -> Quantity:
        return _element_size("kv", self.kv)

    @cached_property
    def model_memory(self) -> Quantity:
        """The weights, once."""
        return inference.weight_memory(self.model, self.weight_size)

    @cached_property
    def cache_per_token(self) -> Quantity:
        """The keys and values of a token, once."""
        return transformer.kv_cache_per_token(self.model, self.kv_size)


def is_array(value: Any) -> bool:
    return getattr(value, "ndim", 0) > 0


def _element_size(name: str, format_or_size: QuantityLike) -> Quantity:
    size = formats.element_size(name, format_or_size)
    if size.ndim:
        raise InputError(f"{name} must be one format or size; got {abbreviated(format_or_size)}")
    return size


def _link(machine: Machine, bandwidth: QuantityLike | None) -> Quantity | None:
    """The bandwidth of the ring that is given, or of a device's links where no machine is known."""
    if bandwidth is None:
        alone = machine.domain == 1 and machine.device.publishes("link_bandwidth")
        return machine.device.link_bandwidth if alone else None
    return _amount("byte/s", "link", bandwidth, "450 GB/s")


def _amount(unit: str, name: str, given: QuantityLike, example: str) -> Quantity:
    amount = _read(name, given)
    if not amount.is_compatible_with(unit) or amount.ndim or not 0 < amount.magnitude < math.inf:
        raise InputError(
            f'{name} must be one positive quantity in {unit} or the like, as in "{example}";'
            f" got {abbreviated(given)}"
        )
    return amount


def _read(name: str, given: QuantityLike) -> Quantity:
    try:
        return quantity(given)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _whole_number(name: str, given: QuantityLike) -> Quantity:
    count = _read(name, given)
    empty = count.ndim and not count.magnitude.size
    if (
        empty
        or not count.unitless
        or not 1 <= smallest(count) <= largest(count) < LARGEST_COUNT
        or largest(count % 1)
    ):
        most = f" to {quantity(LARGEST_COUNT)}" if largest(count) >= LARGEST_COUNT else ""
        raise InputError(f"{name} must be a whole number from 1{most}; got {abbreviated(given)}")
    return count


def _check_shapes(counts: dict[str, Quantity]) -> None:
    arrays = {name: count.shape for name, count in counts.items() if count.ndim}
    if len(arrays) > 1:
        import numpy

        try:
            numpy.broadcast_shapes(*arrays.values())
        except ValueError:
            shapes = ", ".join(f"{name} {shape}" for name, shape in arrays.items())
            raise InputError(f"arrays of these shapes do not broadcast: {shapes}") from None
