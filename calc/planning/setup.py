"""The question to a plan, read and checked once: model, device, counts, formats and prices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from calc import formats
from calc.catalog import grids, machines, models, software
from calc.catalog.hardware import USUAL_DTYPES, Accelerator, dtype_of
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.catalog.models.weights import Weights, unless_said
from calc.catalog.software import Software
from calc.core.arguments import check_is, check_shapes, counted, whole_numbers
from calc.core.elementwise import largest, smallest
from calc.core.errors import InputError, abbreviated, marked, marked_all
from calc.core.units import Quantity, QuantityLike, quantity
from calc.networks import transformer
from calc.planning.plan_nouns import Prices, Server
from calc.steps import device_power
from calc.steps.device_power import Power
from calc.steps.drafting import Drafts
from calc.steps.job import Formats, Job, Layout
from calc.steps.splits import Split

if TYPE_CHECKING:
    from calc.planning.service.loops import Clients

NARROW = "fp8", "fp4", "int8"  # that weights are quantised to for products in as few bits
QUANTISED = {"int8": "w8a8"}  # what the weights are called of products in as few bits
LARGEST_COUNT = 1e15  # so that floats hold it exactly
MOST_USERS = 1e5  # whose loop is simulated in seconds
MOST_PAID = 100_000  # USD/hour of a device, so that what is computed from it stays a number
COUNTS = ("devices", "copies", "batch", "prompt", "generated")  # what may be an array of a plan
A_TOKEN = quantity(1, "token")
ONE = quantity(1, "")
S = TypeVar("S", bound="Setup")
WITHIN = ONE  # the PUE of what is counted inside of the building alone


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
    pue: Quantity = WITHIN
    """What the building takes for each unit that its machines do; 1 where nothing was said."""
    grid: QuantityLike | None = None
    """A country or what its electricity emits."""
    left_out: frozenset[str] = frozenset()
    """Names among devices, software and dtype that were chosen here."""
    copies: Quantity = ONE
    """Copies of the model, or, where these share out experts, of its attention (DP)."""
    experts: int = 1
    """Devices that whole experts are shared out to (EP)."""
    stages: int = 1
    """Groups of a copy's devices that share out its layers (PP)."""
    chosen_by: str = ""
    """The rule by which devices were chosen and cut; "" for the fewest, or as they are said."""
    users: Clients | None = None
    """Clients who ask again as soon as an answer is whole, as many as the batch; None where it is
    read at once."""
    called: str = ""
    """What the model that was asked for is called; the name of `model` where it is left out."""
    power_cap: Quantity | None = None
    """The limit that is set on the power of each device; None where none is."""
    split: Split | None = None
    """What the host's memory holds of the weights beside the one device."""
    drafts: Drafts | None = None
    """What drafts tokens for the model to check, where that is asked."""

    @classmethod
    def read(
        cls,
        model: Transformer | str,
        device: Machine | Accelerator | Path | str,
        counts: Mapping[str, QuantityLike],
        server: Server,
        prices: Prices = Prices(),
        link: QuantityLike | None = None,
        stages: int | None = None,
    ) -> Self:
        """The setup of what a caller wrote; a number of devices that is left out is 1 for now."""
        if isinstance(device, str) and "," in device:
            raise InputError(
                f"plan() takes one device; got {abbreviated(device)}: plan for each of them, as in"
                " [plan(model, device, prompt=10, generated=10) for device in devices]"
            )
        check_is(Server, "server", server, 'calc.Server(weights="fp8", software="vllm")')
        check_is(Prices, "prices", prices, 'calc.Prices("3 USD/hour")')
        named, model = model, models.transformer(model)
        model = model if server.context is None else model.with_context(server.context)
        machine = machines.of(device)
        one = machine.device
        numbers = {name: whole_count(name, count) for name, count in counts.items()}
        check_shapes(numbers)
        price = prices.price
        program = software.meant(server.software, one.key, one.measured_as, one.name)
        weights, dtype = _kept_and_computed(model, one, program, server)
        asked: dict[str, object] = {"software": server.software, "dtype": server.dtype}
        asked["devices"] = {"devices", "tensor"} & {*counts} or None
        said = (numbers.pop(name, None) for name in ("devices", "tensor", "copies"))
        shared = _devices_of(Layout.stages_of(model, stages), *said)
        setup = cls(
            model=model,
            machine=machine,
            **(shared | numbers),
            weights=weights,
            kv=server.kv,
            dtype=dtype,
            link=machine.ring if link is None else amount("byte/s", "link", link, "450 GB/s"),
            price=None if price is None else price_of_device(price),
            software=program,
            pue=WITHIN if prices.pue is None else power_usage(prices.pue),
            grid=prices.grid,
            left_out=frozenset(name for name, value in asked.items() if value is None),
            called=models.called(named, model),
        )
        transformer.forward_flops(model, largest(setup.context))  # refuses one that is too long
        if setup.grid is not None:
            _ = grids.intensity(setup.grid)  # refuses what is no country
        kept = Weights.of(model, weights)  # refuses what is no format
        for group, size in kept.sizes.items():
            _check_one("weights", size, kept.given[group])
        _check_one("kv", formats.cache_size("kv", setup.kv), setup.kv)
        if setup.device.is_rated(setup.dtype):
            setup.device.peak(setup.dtype)  # and what the device does not compute in
        return setup

    @property
    def device(self) -> Accelerator:
        return self.machine.device

    @property
    def other_dtype(self) -> str:
        """Return the format of weights that the device computes in, where dtype was left out.

        "" where products are in that, or the weights are as released.
        """
        dtypes = [dtype_of(str(format)) for format in self.kept.given.values()]
        chosen = "dtype" in self.left_out and not self.kept.as_released
        narrow = [dtype for dtype in dtypes if dtype in NARROW and dtype in self.device.dtypes]
        return narrow[0] if chosen and narrow and self.dtype not in dtypes else ""

    @property
    def tensor(self) -> Quantity:
        """Devices that share each matrix (TP)."""
        sliced = self.devices / self.copies
        return sliced if self.stages == 1 else sliced / self.stages

    @property
    def layout(self) -> Layout:
        """Return how its devices share the model."""
        tensor = whole_numbers("tensor", self.tensor.magnitude)
        copies = whole_numbers("copies", self.copies.magnitude)
        return Layout(copies, tensor, self.stages, experts=self.experts)

    @cached_property
    def job(self) -> Job:
        """The model on this machine, each matrix of a copy in a slice for each of its devices."""
        sizes = Formats(self.dtype, self.weights, formats.cache_size("kv", self.kv))
        return Job(
            self.model,
            self.machine,
            self.layout,
            sizes,
            self.software,
            split=self.split,
            power_cap=self.power_cap,
        )

    @property
    def context(self) -> Quantity:
        """The full length of a sequence, in tokens."""
        return self.prompt + self.generated

    @property
    def power(self) -> Power | None:
        """The most that a device draws, and its share of the host and the fans, where published."""
        return device_power.most(self.machine, self.in_machine, self.power_cap)

    @property
    def in_machine(self) -> bool:
        """Return whether the machine's links are used, and the whole of its power is known."""
        return self.link is None and self.machine.publishes("power")

    @property
    def kept(self) -> Weights:
        """The formats of the weights, by group of matrices."""
        return self.job.weights

    @property
    def weights_told(self) -> str:
        """Return what the weights are kept in, as a sentence says it."""
        return f"weights {'as released, ' if self.kept.as_released else ''}in {self.kept}"

    @property
    def one_copy(self) -> Self:
        """Return the same of one copy of the model; of copies that share out experts, of all."""
        if self.experts > 1 and largest(self.copies) > 1:
            return self
        return replace(self, devices=self.devices / self.copies, copies=ONE)

    @property
    def model_memory(self) -> Quantity:
        """The weights, once."""
        return self.kept.memory


def _devices_of(
    stages: int, devices: Quantity | None, tensor: Quantity | None, copies: Quantity | None
) -> dict[str, Any]:
    """Return devices, copies and stages, of which what is left out follows from the others.

    >>> both = _devices_of(3, None, quantity(4), quantity(2))
    >>> print(both["devices"], both["copies"])
    24 2
    """
    shared, said = ONE if copies is None else copies, {"tensor": tensor, "copies": copies}
    said |= {"stages": None if stages == 1 else quantity(stages, "")}
    options = marked_all(said)
    if devices is None:
        devices = (ONE if tensor is None else tensor) * shared * stages
    elif tensor is not None:
        number = devices / (tensor * stages) if copies is None else copies
        if largest(abs(number * tensor * stages - devices)) or largest(number % 1):
            raise InputError(
                "devices are tensor times stages times copies; got"
                f" {marked('devices', devices)} with {options}: leave one of them out"
            )
        shared = number
    elif largest(devices % (shared * stages)):
        raise InputError(f"{marked('devices', devices)} are no whole number for each of {options}")
    return {"devices": devices, "copies": shared, "stages": stages}


def is_array(value: object) -> bool:
    return getattr(value, "ndim", 0) > 0


def _kept_and_computed(
    model: Transformer, device: Accelerator, program: Software, server: Server
) -> tuple[QuantityLike, str]:
    """The formats of weights and of products, where one or both are left out: as engines choose.

    Weights in FP8 or NVFP4 are multiplied as they are by a device that can; weights released in 16
    bits are quantised as they are loaded where products are asked for in fewer.
    """
    release, weights, dtype = model.released, server.weights, server.dtype
    if weights is None:
        weights = unless_said(model, program)
        wide = release is None or {*release.formats.values()} <= {*USUAL_DTYPES}
        if wide and dtype is not None and dtype_of(dtype) in NARROW:
            weights = QUANTISED.get(str(formats.key_of(dtype)), dtype)
    if dtype is None:
        as_kept = Weights.of(model, weights).products
        dtype = as_kept if as_kept in device.dtypes else device.usual_dtype
    return weights, dtype


def _check_one(name: str, size: Quantity, value: QuantityLike) -> None:
    if size.ndim:
        raise InputError(
            f"{marked(name)} must be one format or size; got {abbreviated(value)}", given=value
        )


def price_of_device(asked: QuantityLike | Mapping[str, QuantityLike]) -> Quantity:
    """Return what one device costs for a time; more than anyone pays is refused."""
    if isinstance(asked, Mapping):
        raise InputError(f'price is one here, "3 USD/hour"; got {abbreviated(asked)}')
    price = amount("USD/s", "price", asked, "3 USD/hour")
    if price.m_as("USD/hour") > MOST_PAID:
        raise InputError(
            f"{marked('price')} is of one device, at most {MOST_PAID} USD/hour; got"
            f" {abbreviated(asked)}",
            given=asked,
        )
    return price


def power_limit(setup: Setup, value: QuantityLike) -> Quantity:
    """A cap on the power of a device, between what no clock saves and its design power."""
    cap, device = amount("W", "power_cap", value, "400 W").to("W"), setup.device
    if not device.publishes("tdp"):
        raise InputError(
            f"{marked('power_cap')} is below the design power, and that of {device.name} is"
            " unpublished"
        )
    least, most = device_power.caps(setup.machine)
    if not least < cap <= most:
        raise InputError(
            f"{marked('power_cap')} of {device.name} is above {least:.3g}, which no lower clock"
            f" saves, and at most its {most:.3g}; got {abbreviated(value)}",
            given=value,
        )
    return cap


def power_usage(value: QuantityLike) -> Quantity:
    """A PUE, which is at least 1."""
    share = amount("", "pue", value, "1.2")
    if share.m_as("") < 1:
        raise InputError(
            f"{marked('pue')} is at least 1, all that machines take; got {abbreviated(value)}",
            given=value,
        )
    return share


def memory_text(amount: Quantity, capacity: Quantity) -> str:
    """An amount of memory by its size, in binary units where the capacity is."""
    if "iB" not in str(capacity.units):
        return str(amount.to("byte"))
    size = amount.m_as("byte")
    return str(amount.to("GiB" if size >= 2**30 else "MiB" if size >= 2**20 else "KiB"))


def layout_text(cut: Layout) -> str:
    """Return how devices share a model, as engines call it.

    >>> layout_text(Layout(tensor=4, data=2)), layout_text(Layout(data=8, experts=8))
    ('TP4 × 2', 'DP8 EP8')
    >>> layout_text(Layout(tensor=8, pipeline=2))
    'TP8 PP2'
    """
    experts = f" EP{cut.experts}" if cut.experts > 1 else ""
    staged = f" PP{cut.pipeline}" if cut.pipeline > 1 else ""
    if experts and cut.data > 1:
        sliced = "" if cut.tensor == 1 else f" TP{cut.tensor}"
        return f"DP{cut.data}{sliced}{experts}{staged}"
    one = f"TP{cut.tensor}{experts}{staged}"
    return one if cut.data == 1 else f"{one} × {cut.data}"


def devices_text(count: Quantity | float) -> str:
    """Return how many devices there are, in words."""
    return "1 device" if count == 1 else f"{count:.0f} devices"


def amount(unit: str, name: str, value: QuantityLike, example: str) -> Quantity:
    """One positive quantity that has the dimension of the unit, or a sentence with an example."""
    size = _read(name, value)
    if not size.is_compatible_with(unit) or size.ndim or not 0 < size.m_as(unit) < math.inf:
        needed = f"in {unit} " if unit else ""
        raise InputError(
            f'{marked(name)} must be one positive quantity {needed}or the like, as in "{example}";'
            f" got {abbreviated(value)}"
        )
    return size


def _read(name: str, value: QuantityLike) -> Quantity:
    try:
        return quantity(counted(value))
    except InputError as error:
        raise InputError(f"{marked(name)}: {error}") from None


def time_limit(name: str, limit: QuantityLike, example: str) -> Quantity:
    """The longest time that is asked for; of a token as tokens a second too, "50 token/s"."""
    often = _read(name, limit)
    if name == "tpot" and often.is_compatible_with("token/s") and not often.ndim:
        limit = A_TOKEN / amount("token/s", name, often, "50 token/s")
    elif name == "tpot" and often.is_compatible_with("s/token"):
        limit = often * A_TOKEN
    return amount("s", name, limit, example)


def whole_count(name: str, value: QuantityLike) -> Quantity:
    """A count, or several, from 1 to what can be computed with."""
    count, allowed = _read(name, value), MOST_USERS if name == "users" else LARGEST_COUNT
    if name in ("prompt", "generated") and count.is_compatible_with("token"):
        count = count / A_TOKEN
    if name == "generated" and not count.ndim and count == 0:
        return quantity(1, "")  # the reading of a prompt writes a token
    empty = count.ndim and not count.magnitude.size
    if (
        empty
        or not count.unitless
        or not 1 <= smallest(count) <= largest(count) <= allowed
        or largest(count % 1)
    ):
        most = f" to {quantity(allowed)}" if largest(count) > allowed else ""
        raise InputError(
            f"{marked(name)} must be a whole number from 1{most}; got {abbreviated(value)}",
            given=value,
        )
    return count
