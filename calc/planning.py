"""Planning as one call: does a model fit, on how many devices, how fast, at what cost.

`calc.plan` puts the laws of `inference`, `collectives` and `cost` together for a batch of sequences
that read a prompt and write an answer. Batches, lengths and numbers of devices may be arrays, which
broadcast; points that do not fit have NaN for their times. Devices are of one kind: to compare
kinds, plan for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

from calc import (
    collectives,
    cost,
    formats,
    hardware as known,
    inference,
    models,
    parallelism,
    transformer,
)
from calc.core.arguments import names_format
from calc.core.elementwise import choose, maximum, where
from calc.core.errors import InputError, abbreviated
from calc.core.formatting import columns
from calc.core.law import AT_LEAST_ONE
from calc.core.units import Quantity, QuantityLike, from_parts, quantity
from calc.hardware import Accelerator
from calc.models import Transformer
from calc.models.architecture import check_transformer
from calc.parallelism import Layout, Step

COMPUTED_IN = ("bf16", "fp16", "fp32")  # in the first of these that a device has
SMALLER_WEIGHTS = ("INT8", "INT4")
TOO_SMALL = "memory capacity"
MOST_SEQUENCES = 2**20  # in no server's batch: what binds there binds at any larger one
MOST_ROWS = 100
LARGEST = 1e15  # of a count, so that floats hold it exactly
A_TOKEN = quantity(1, "token")
ONCE_LINKED = 'once link (--link "32 GB/s") gives the bandwidth between them, which the data lack'


class Bounds(NamedTuple):
    """What a quantity is at least and at most, while each part runs at its full rate."""

    lower: Quantity
    """At least; converted as any quantity, `plan.throughput.lower.m_as("token/s")`."""
    upper: Quantity
    """At most."""


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What serving takes: memory, times, rates and costs, each a quantity or an array of them.

    `time_to_first_token`, `time_per_token`, `answer_time`, `throughput`, `cost_per_token` and
    `energy_per_token` are `Bounds`, with `.lower` and `.upper`. Between those of a time, memory,
    arithmetic and links overlap perfectly, or follow one another. `reading` and `writing` are the
    passes for the prompt and for a token, part by part; they do not ask whether the batch fits,
    and all else does. `print` shows the table.
    """

    model: Transformer
    device: Accelerator
    batch: Quantity
    prompt: Quantity
    generated: Quantity
    devices: Quantity
    weight_memory: Quantity
    """Of each device, as is `cache_memory`."""
    cache_memory: Quantity
    largest_batch: Quantity
    reading: Step
    writing: Step
    weights: QuantityLike
    kv: QuantityLike
    dtype: str
    link: Quantity | None
    price: Quantity | None

    @cached_property
    def fits(self) -> Any:
        """Whether the devices hold the weights and the caches of the batch at full length."""
        return self.batch.magnitude <= self.largest_batch.magnitude

    @property
    def memory(self) -> Quantity:
        """What each device holds: its weights and its caches."""
        held: Quantity = self.weight_memory + self.cache_memory
        return held

    @property
    def time_to_first_token(self) -> Bounds:
        """Time of the pass that reads all prompts of the batch."""
        return self._if_it_fits(Bounds(self.reading.lower, self.reading.upper))

    @property
    def time_per_token(self) -> Bounds:
        """Time of the pass that writes the next token of each sequence, the mean of an answer."""
        return self._if_it_fits(Bounds(self.writing.lower, self.writing.upper))

    @property
    def answer_time(self) -> Bounds:
        """Time from the start to the last token."""
        return self._if_it_fits(self._answer)

    @property
    def throughput(self) -> Bounds:
        """Tokens that all sequences together write in a second, the reading of prompts included."""
        return self._if_it_fits(self._rate)

    @property
    def cost_per_token(self) -> Bounds | None:
        """Cost of a token that is written, devices always busy; None where no price was given."""
        if self.price is None:
            return None
        return self._for_a_token(cost.cost_per_token, self.price, "USD/Mtoken")

    @property
    def energy_per_token(self) -> Bounds | None:
        """Energy of a token that is written; None where the device's power is unpublished."""
        if not self.device.publishes("tdp"):
            return None
        return self._for_a_token(cost.energy_per_token, self.device.tdp, "J/token")

    @property
    def binds(self) -> Any:
        """What limits writing each point: memory bandwidth, compute, links, memory capacity."""
        words = (*self.writing.times, TOO_SMALL)
        return choose(words, where(self.fits, self.writing.longest, len(words) - 1))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the numbers stand on, a sentence each."""
        return tuple(_assumptions(self))

    @property
    def what_would_change(self) -> tuple[str, ...]:
        """What would make this another answer, a sentence each, planned as the answer was."""
        if _is_array(self.fits):
            raise InputError(
                f"what would change is told of one point, and this plan has {self.fits.size}:"
                " plan the one that is meant"
            )
        if self.fits:
            return tuple(_changes(self))
        context = self.prompt + self.generated
        per_token = transformer.kv_cache_per_token(self.model, _size("kv", self.kv))
        weights = self.weight_memory * self.devices
        asked = (self.model, self.device, self.devices, self.batch, self.link)
        return tuple(_ways_to_fit(*asked, context, weights, per_token))

    def table(self) -> str:
        """The plan as lines of text, or a line for each point of an array.

        >>> print(plan("llama-3-8b", "h100", batch=8, prompt=1000, generated=200))
        Llama 3 8B on 1 NVIDIA H100 SXM5 80 GB
        batch 8, 1000 tokens read and 200 written
                           at least             at most         what binds
        memory of each     16.13 GiB of 80 GiB                  fits
          weights          14.96 GiB
          keys and values  1.172 GiB
        batch that fits                         444
        first token        115.0 ms             119.8 ms        compute
        each token         4.825 ms             4.951 ms        memory bandwidth
        whole answer       1.075 s              1.105 s
        written by all     1448 token/s         1488 token/s
        energy             470.4 mJ/token       483.5 mJ/token
        """
        lines = _rows_of_points(self) if _is_array(self.fits) else _rows_of_parts(self)
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        if _is_array(self.fits):
            return f"<{self.model.name} on {self.device.name}: {self.fits.size} points>"
        return f"<{', '.join(_title(self))}>"

    @cached_property
    def _answer(self) -> Bounds:
        first, each, count = self.reading, self.writing, self.generated
        return Bounds(
            inference.answer_time(first.lower, count, each.lower),
            inference.answer_time(first.upper, count, each.upper),
        )

    @cached_property
    def _rate(self) -> Bounds:
        written = self.generated * A_TOKEN
        return Bounds(
            inference.tokens_per_second(self.batch, self._answer.upper, written),
            inference.tokens_per_second(self.batch, self._answer.lower, written),
        )

    def _for_a_token(self, law: Callable[..., Any], given: Quantity, unit: str) -> Bounds:
        """The price or the power of all devices, spread over what they write."""
        least = law(self.devices, given, self._rate.upper).to(unit)
        most = law(self.devices, given, self._rate.lower).to(unit)
        return self._if_it_fits(Bounds(least, most))

    def _if_it_fits(self, bounds: Bounds) -> Bounds:
        lower, upper = (
            from_parts(where(self.fits, each.magnitude, math.nan), each._units) for each in bounds
        )
        return Bounds(lower, upper)


def plan(
    model: Transformer | str,
    hardware: Accelerator | str,
    *,
    prompt: Annotated[QuantityLike, "", AT_LEAST_ONE],
    generated: Annotated[QuantityLike, "", AT_LEAST_ONE],
    batch: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    devices: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    weights: Annotated[QuantityLike, "byte"] = "BF16",
    kv: Annotated[QuantityLike, "byte"] = "BF16",
    dtype: str | None = None,
    link: Annotated[QuantityLike | None, "byte/s"] = None,
    price: Annotated[QuantityLike | None, "USD/s"] = None,
) -> Plan:
    """Whether a model fits, on how many devices, how fast it answers, and at what cost.

    Devices cut every matrix into slices; where their number is left out, the fewest that hold the
    batch are taken. `weights` and `kv` name a format, "INT8", or the size of an element, "4.5 bit".
    Products are computed in `dtype`: bf16, where the device has it. `link` is the bandwidth between
    devices, each way, where that of the data is not meant; `price` that of a device, "3 USD/hour".

    >>> found = plan("llama-3-70b", "h100", batch=8, prompt=1000, generated=200)
    >>> print(found.devices, found.memory.to("GB"), found.time_per_token.lower, found.binds)
    2 72.13 GB 21.18 ms memory bandwidth
    >>> print(found.what_would_change[0])
    From batch 1157 on, compute would bind each token, but 2 devices hold 78 sequences.
    """
    chosen = models.get(model) if isinstance(model, str) else model
    device = known.get(hardware) if isinstance(hardware, str) else hardware
    check_transformer(chosen)
    if not isinstance(device, Accelerator):
        raise InputError(
            f"a device of calc.hardware, or its key, is needed; got {abbreviated(hardware)}"
        )
    given = {"batch": batch, "prompt": prompt, "generated": generated}
    given |= {} if devices is None else {"devices": devices}
    counts = {name: _whole(name, each) for name, each in given.items()}
    _check_shapes(counts)
    sequences, read, written = counts["batch"], counts["prompt"], counts["generated"]
    context = read + written
    transformer.forward_flops(chosen, _largest(context))  # refuses one that is too long
    each_way = _link(device, link)
    sizes = {"weight_size": _size("weights", weights), "kv_size": _size("kv", kv)}
    held = inference.weight_memory(chosen, sizes["weight_size"])
    per_token = transformer.kv_cache_per_token(chosen, sizes["kv_size"])
    if devices is None:
        number, most = _fewest(chosen, device, each_way, sequences, context, held, per_token)
    else:
        number = counts["devices"]
        _check_devices(chosen, device, number, each_way)
        most = _most_sequences(chosen, device, number, context, held, per_token)
    if dtype is None:
        dtype = next((each for each in COMPUTED_IN if each in device.dtypes), COMPUTED_IN[0])
    caches = per_token * _copies(chosen, number) * context * A_TOKEN * sequences
    asked = (chosen, device, number, sequences, each_way, dtype, sizes)
    return Plan(
        model=chosen,
        device=device,
        batch=sequences,
        prompt=read,
        generated=written,
        devices=number,
        weight_memory=held / number,
        cache_memory=(caches / number).to("byte"),
        largest_batch=most,
        reading=_pass(inference.prefill, read, read, *asked),
        # Each part of the time grows linearly with the context: at its mean is the mean of all.
        writing=_pass(inference.decode, read + written / 2, quantity(1, ""), *asked),
        weights=weights,
        kv=kv,
        dtype=dtype,
        link=each_way,
        price=None if price is None else _measured_in("USD/s", "price", price, "3 USD/hour"),
    )


def _pass(
    run: Callable[..., inference.Pass],
    length: Quantity,
    tokens_each: Quantity,
    model: Transformer,
    device: Accelerator,
    devices: Quantity,
    batch: Quantity,
    link: Quantity | None,
    dtype: str,
    sizes: dict[str, Quantity],
) -> Step:
    """One pass: its memory, its arithmetic, and two all-reduces a layer among the devices."""
    weight_size, kv_size = sizes["weight_size"], sizes["kv_size"] * _copies(model, devices)
    found = run(model, device, length, batch, devices, dtype, weight_size, kv_size)
    times = {
        "memory bandwidth": (found.traffic / found.bandwidth).to("s"),
        "compute": (found.operations / found.peak).to("s"),
    }
    tokens = batch * tokens_each
    if link is not None:
        vectors = parallelism.stage_traffic(tokens, model.width, 1)
        sums = collectives.ring_all_reduce(vectors, devices, link, "0 s")
        times["links"] = 2 * model.layers * sums
    return Step(tokens * A_TOKEN, found.operations, found.peak, times)


def _copies(model: Transformer, devices: Quantity) -> Any:
    """How many times a cache is held: devices beyond the heads of keys and values hold it again.

    Latent attention has no heads to divide its cache by, so that each device holds all of it.
    """
    heads = model.kv_heads.magnitude if model.kv_latent is None else 1.0
    return maximum(devices.magnitude / heads, 1.0)


def _most_sequences(
    model: Transformer,
    device: Accelerator,
    devices: Quantity,
    context: Quantity,
    weights: Quantity,
    per_token: Quantity,
) -> Quantity:
    most: Quantity = inference.sequences_that_fit(
        device.memory_capacity * devices,
        weights,
        context * A_TOKEN,
        per_token * _copies(model, devices),
    )
    return most


def _fewest(
    model: Transformer,
    device: Accelerator,
    link: Quantity | None,
    batch: Quantity,
    context: Quantity,
    weights: Quantity,
    per_token: Quantity,
) -> tuple[Quantity, Quantity]:
    """The smallest number of devices that holds a batch, and how many sequences that holds."""
    counts = [quantity(each, "") for each in (device_counts(model) if link is not None else (1,))]
    devices: Any = counts[-1].magnitude
    held: Any = _most_sequences(model, device, counts[-1], context, weights, per_token).magnitude
    if not _any(batch.magnitude <= held):
        batch, context = quantity(_smallest(batch), ""), quantity(_smallest(context), "")
        caches = per_token * _copies(model, counts[-1]) * context * A_TOKEN * batch
        room = device.memory_capacity
        asked = (model, device, counts[-1], batch, link, context, weights, per_token)
        raise InputError(
            f"{model.name} does not fit on {counts[-1]} {device.name}: weights take"
            f" {_held(weights, room)}, keys and values {_held(caches, room)} at batch {batch}, and"
            f" there is {_held(room * devices, room)}. {' '.join(_ways_to_fit(*asked))}"
        )
    for count in reversed(counts[:-1]):
        found = _most_sequences(model, device, count, context, weights, per_token).magnitude
        enough = batch.magnitude <= found
        devices = where(enough, count.magnitude, devices)
        held = where(enough, found, held)
    return quantity(devices, ""), quantity(held, "")


def device_counts(model: Transformer) -> tuple[int, ...]:
    """The numbers of devices that a model can be cut for, each with as many of its heads.

    >>> device_counts(models.get("llama-3-70b"))
    (1, 2, 4, 8, 16, 32, 64)
    """
    check_transformer(model)
    found = []
    for count in range(1, int(model.heads.magnitude) + 1):
        with suppress(InputError):
            Layout(tensor=count).check(model)
            found.append(count)
    return tuple(found)


def _check_devices(
    model: Transformer, device: Accelerator, devices: Quantity, link: Quantity | None
) -> None:
    if link is None and _largest(devices) > 1:
        raise InputError(
            f"the data have no link of {device.name} to others: give its bandwidth each way, link"
            ' (--link "32 GB/s")'
        )
    counts = device_counts(model)
    for count in _different(devices):
        if count not in counts:
            *others, last = counts
            raise InputError(
                f"{count:g} devices cannot share the heads of {model.name} evenly,"
                f" {model.heads.magnitude:g} of queries and {model.kv_heads.magnitude:g} of keys"
                f" and values: take {', '.join(map(str, others))} or {last}"
            )


def _link(device: Accelerator, given: QuantityLike | None) -> Quantity | None:
    """The bandwidth between devices; None where it is not published, or there is no link."""
    if given is None:
        return device.link_bandwidth if device.publishes("link_bandwidth") else None
    return _measured_in("byte/s", "link", given, "450 GB/s")


def _measured_in(unit: str, name: str, given: QuantityLike, example: str) -> Quantity:
    found = _read(name, given)
    if not found.is_compatible_with(unit) or found.ndim or not 0 < found.magnitude < math.inf:
        raise InputError(
            f'{name} must be one positive quantity in {unit} or the like, as in "{example}";'
            f" got {abbreviated(given)}"
        )
    return found


def _size(name: str, given: QuantityLike) -> Quantity:
    """What an element takes, of the name of its format or as it is."""
    if names_format(given):
        return formats.get(str(given)).size
    return _measured_in("byte", name, given, "8 bit")


def _read(name: str, given: QuantityLike) -> Quantity:
    try:
        return quantity(given)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _whole(name: str, given: QuantityLike) -> Quantity:
    found = _read(name, given)
    empty = found.ndim and not found.magnitude.size
    if (
        empty
        or not found.unitless
        or not 1 <= _smallest(found) <= _largest(found) < LARGEST
        or _any(found.magnitude % 1 > 0)
    ):
        raise InputError(f"{name} must be a whole number from 1; got {abbreviated(given)}")
    return found


def _check_shapes(counts: dict[str, Quantity]) -> None:
    arrays = {name: each.shape for name, each in counts.items() if each.ndim}
    if len(arrays) > 1:
        import numpy

        try:
            numpy.broadcast_shapes(*arrays.values())
        except ValueError:
            told = ", ".join(f"{name} {shape}" for name, shape in arrays.items())
            raise InputError(f"arrays of these shapes do not broadcast: {told}") from None


def _is_array(value: Any) -> bool:
    return getattr(value, "ndim", 0) > 0


def _any(condition: Any) -> bool:
    return bool(condition.any() if _is_array(condition) else condition)


def _smallest(given: Quantity) -> float:
    return float(given.magnitude.min() if given.ndim else given.magnitude)


def _largest(given: Quantity) -> float:
    return float(given.magnitude.max() if given.ndim else given.magnitude)


def _different(given: Quantity) -> list[float]:
    if not given.ndim:
        return [given.magnitude]
    import numpy

    return list(numpy.unique(given.magnitude))


# What people read: the table, the assumptions, and what would change.


def _title(made: Plan) -> tuple[str, str]:
    return (
        f"{made.model.name} on {made.devices} {made.device.name}",
        f"batch {made.batch}, {made.prompt} tokens read and {made.generated} written",
    )


def _rows_of_parts(made: Plan) -> list[str]:
    capacity = made.device.memory_capacity
    memory = f"{_held(made.memory, capacity)} of {capacity}"
    verdict = "fits" if made.fits else "does not fit"
    rows: list[tuple[str, ...]] = [
        ("", "at least", "at most", "what binds"),
        ("memory of each", memory, "", verdict),
        ("  weights", _held(made.weight_memory, capacity), "", ""),
        ("  keys and values", _held(made.cache_memory, capacity), "", ""),
        ("batch that fits", "", str(made.largest_batch), ""),
    ]
    if made.fits:
        rows += [
            ("first token", *map(str, made.time_to_first_token), made.reading.bound),
            ("each token", *map(str, made.time_per_token), made.writing.bound),
            ("whole answer", *map(str, made.answer_time), ""),
            ("written by all", *map(str, made.throughput), ""),
        ]
        if made.cost_per_token is not None:
            rows.append(("cost", *map(str, made.cost_per_token), ""))
        if made.energy_per_token is not None:
            rows.append(("energy", *map(str, made.energy_per_token), ""))
    return [*_title(made), *columns(rows)]


def _rows_of_points(made: Plan) -> list[str]:
    import numpy

    if made.fits.size > MOST_ROWS:
        raise InputError(
            f"a table of a plan has up to {MOST_ROWS} rows, and this one has {made.fits.size}"
            " points: read its fields, or plan fewer"
        )
    names = ("devices", "batch", "prompt", "generated")
    ranges = {
        ("first token", "ms"): made.time_to_first_token,
        ("each token", "ms"): made.time_per_token,
        ("whole answer", "s"): made.answer_time,
        ("written", "token/s"): made.throughput,
        ("cost", "USD/Mtoken"): made.cost_per_token,
        ("energy", "J/token"): made.energy_per_token,
    }
    shape = made.fits.shape
    counts = {name: getattr(made, name) for name in names}
    several = {name: each.magnitude for name, each in counts.items() if each.ndim}
    same = ", ".join(f"{name} {each}" for name, each in counts.items() if not each.ndim)
    unit = str(made.device.memory_capacity.units)
    held, words = numpy.broadcast_to(made.memory.m_as(unit), shape), made.binds
    cells = [
        [f"{value:.0f}" for value in numpy.broadcast_to(each, shape).flat]
        for each in several.values()
    ]
    cells.append([f"{value:.3g}" for value in held.flat])
    titles = [*several, f"each holds ({unit})"]
    for (title, unit), bounds in ranges.items():
        if bounds is not None:
            lower, upper = (each.m_as(unit).flat for each in bounds)
            titles.append(f"{title} ({unit})")
            cells.append([_range(*each) for each in zip(lower, upper, strict=True)])
    rows = [(*titles, "what binds"), *zip(*cells, words.flat, strict=True)]
    title = f"{made.model.name} on {made.device.name}"
    return [f"{title}: {same}" if same else title, *columns(rows)]


def _held(amount: Quantity, capacity: Quantity) -> str:
    """An amount of memory by its size, in binary units where the capacity is."""
    if "iB" not in str(capacity.units):
        return str(amount.to("byte"))
    size = amount.m_as("byte")
    return str(amount.to("GiB" if size >= 2**30 else "MiB" if size >= 2**20 else "KiB"))


def _range(lower: float, upper: float) -> str:
    if math.isnan(lower):
        return "–"
    return f"{quantity(float(lower), '')} – {quantity(float(upper), '')}"


def _assumptions(made: Plan) -> Iterator[str]:
    model, device = made.model, made.device
    rates = (device.memory_bandwidth, device.peak(made.dtype))
    origins = [rate.provenance for rate in rates if rate.provenance is not None]
    measured = any(each.kind == "measured" for each in origins)
    yield (
        f"Products are computed in {made.dtype} at {device.peak(made.dtype)}, with weights in"
        f" {made.weights} and keys and values in {made.kv}; memory runs at"
        f" {device.memory_bandwidth}."
    )
    yield (
        f"Every rate of the device is the {'measured' if measured else 'published'} one: the lower"
        " bound lets all parts overlap, the upper bound lets none; launches, queues and kernels"
        " below these rates come on top."
    )
    yield (
        "The batch is read together and written together; memory holds each sequence at its full"
        " length, and beside weights and caches nothing."
    )
    yield (
        "Rate, cost and energy are those of written tokens, and the reading of prompts is in them."
    )
    if _largest(made.devices) > 1:
        yield (
            "Each matrix is cut into a slice for each device; they add up their results twice a"
            f" layer in rings of {made.link} each way, two bytes a number, and messages have no"
            " latency."
        )
        if model.kv_latent is not None:
            yield f"Each device holds the whole cache of {model.name}, whose latents have no heads."
        elif _largest(made.devices) > model.kv_heads.magnitude:
            yield (
                f"{model.name} has {model.kv_heads} heads of keys and values: devices beyond these"
                " hold copies, and their memory and time are counted."
            )
    if made.price is None:
        yield "No price of a device was given, so that cost is left out."
    else:
        yield f"A device costs {made.price}, as given, and always has work."
    if made.energy_per_token is None:
        yield f"The power of {device.name} is unpublished, so that energy is left out."
    else:
        yield f"Each device draws its {device.tdp} all the time; hosts and cooling come on top."
    for origin in origins:
        if origin.kind == "estimate":
            yield f"{origin.title} is an estimate."
    if model.context.provenance is not None and "window" in model.context.provenance.note:
        yield f"{model.name}: {model.context.provenance.note}"


def _changes(made: Plan) -> Iterator[str]:
    """Of a plan that fits: its batch, its devices, its weights."""
    yield _where_another_roof_binds(made)
    most, now = made.largest_batch.magnitude, made.batch.magnitude
    if most > now:
        full = _again(made, batch=most)
        yield (
            f"Batch {most:.0f}, the largest that fits, writes"
            f" {_ratio(full.throughput.lower, made.throughput.lower)} times as many tokens a second"
            f" and takes {_ratio(full.answer_time.upper, made.answer_time.upper)} times as long for"
            " an answer."
        )
    count = made.devices.magnitude
    counts = device_counts(made.model) if made.link is not None else (1,)
    place = counts.index(count)
    for other in (*counts[max(place - 1, 0) : place], *counts[place + 1 : place + 2]):
        found = _again(made, devices=other)
        if found.fits:
            time = _ratio(found.time_per_token.upper, made.time_per_token.upper)
            paid = _ratio(_device_time(found), _device_time(made))
            yield f"{_devices(other)}: {time} times the time per token, {paid} the device time."
    for name in SMALLER_WEIGHTS:
        if formats.get(name).size < _size("weights", made.weights):
            small = _again(made, weights=name)
            fewest = _again(made, weights=name, devices=None).devices.magnitude
            time = _ratio(small.time_per_token.upper, made.time_per_token.upper)
            there = f", and fit on {_devices(fewest)}" if fewest < count else ""
            yield f"{name} weights: {time} times the time per token{there}."


def _ways_to_fit(
    model: Transformer,
    device: Accelerator,
    devices: Quantity,
    batch: Quantity,
    link: Quantity | None,
    context: Quantity,
    weights: Quantity,
    per_token: Quantity,
) -> Iterator[str]:
    """Of a point that does not fit: devices, batch, weights."""

    def most(count: float, held: Quantity) -> float:
        number = quantity(count, "")
        return float(_most_sequences(model, device, number, context, held, per_token).magnitude)

    wanted, now = batch.magnitude, devices.magnitude
    counts = device_counts(model)
    enough = next((each for each in counts if wanted <= most(each, weights)), None)
    if enough is None:
        yield f"It fits on no number of devices: at most {counts[-1]} can share its heads."
    else:
        yield f"It fits on {_devices(enough)}{f', {ONCE_LINKED}' if link is None else ''}."
    if fewer := most(now, weights):
        yield f"Batch {fewer:.0f} fits."
    for name in SMALLER_WEIGHTS:
        if wanted <= most(now, inference.weight_memory(model, formats.get(name).size)):
            yield f"With {name} weights it fits on {_devices(now)}."
            return


def _where_another_roof_binds(made: Plan) -> str:
    """From which batch on, or up to which, another roof sets the time of a token."""

    def bound(batch: int) -> str:
        return str(_again(made, batch=batch).writing.bound)

    now, last = bound(int(made.batch.magnitude)), bound(MOST_SEQUENCES)
    if bound(1) == last == now:
        return f"At this length {now} binds each token, whatever the batch."
    few, many = 1, MOST_SEQUENCES
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if bound(middle) == last else (middle, many)
    if now == last:
        return f"Below batch {many}, {bound(few)} binds each token."
    most = int(made.largest_batch.magnitude)
    if many <= most:
        return f"From batch {many} on, {last} binds each token."
    count = made.devices.magnitude
    hold = f"{_devices(count)} {'hold' if count > 1 else 'holds'} {most} sequences"
    return f"From batch {many} on, {last} would bind each token, but {hold}."


def _again(made: Plan, **changes: Any) -> Plan:
    """The same plan but for some of what was asked."""
    names = ("batch", "prompt", "generated", "devices", "weights", "kv", "dtype", "link", "price")
    asked = {name: getattr(made, name) for name in names} | changes
    return plan(made.model, made.device, **asked)


def _device_time(made: Plan) -> Quantity:
    """Of all devices for a token."""
    time: Quantity = made.devices / made.throughput.lower
    return time


def _ratio(new: Quantity, old: Quantity) -> str:
    return f"{(new / old).m_as(''):.3g}"


def _devices(count: float) -> str:
    return "1 device" if count == 1 else f"{count:.0f} devices"
