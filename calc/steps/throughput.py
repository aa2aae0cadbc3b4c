"""Images and samples a second of networks that write no tokens, and what bounds them.

`of` answers for vision transformers, convolutional networks, diffusion transformers, encoders of
texts and recommenders, as `calc.plan` does for transformers that write. A pass is a list of
kernels, one after the other; each takes at least as long as its arithmetic or its bytes at
published rates. At rates that were measured on a machine, the same list says how long it is
expected to take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from calc import formats
from calc.catalog import constants, hardware, machines, models
from calc.catalog.asking import understood
from calc.catalog.hardware import Accelerator
from calc.catalog.intervals import KIN, MEASURED, PEAKS
from calc.catalog.machines import Machine
from calc.catalog.models import Network, Transformer
from calc.core.arguments import as_list, whole_number
from calc.core.errors import InputError, abbreviated, marked
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws import roofline
from calc.networks import convolution, diffusion, recommenders, transformer
from calc.steps import communication, device_memory
from calc.steps.expectation import Missing, Parts, if_measured, of_kernels
from calc.steps.job import NO_BYTES, NO_WORK, TWO_BYTES, input_size
from calc.steps.measured import Kernel

PAIRS = 51_200  # batch of a recommender where none is given: that of MLPerf's entries on H100s
HEADERS = ("", "time", "bound by", "operations", "bytes")


@dataclass(frozen=True, eq=False, repr=False)
class Throughput(Answer):
    """A network on devices: items a second at the most, and what is expected."""

    _SENTENCES = (("assumptions", "Assumed"),)

    model: Transformer | Network
    machine: Machine
    items: str
    """What is counted: images, pairs of a user and an item, sources that are read."""
    batch: int
    passes: int
    """Passes of the network, one after the other, for a batch."""
    dtype: str
    kernels: tuple[Kernel, ...]
    """Of one pass on one device."""
    memory: Quantity
    """Weights and tables, on each device."""
    vectors: tuple[Kernel, ...] = ()
    """Passes over vectors between products, which bounds leave out and expectations do not."""
    devices: int = 1
    sharers: int = 1
    """Devices among which tables are cut; there are as many copies as groups of these."""
    exchanged: Quantity = NO_BYTES
    """Sums of rows that a device needs in a pass, of which those who share tables send a part."""
    notes: tuple[str, ...] = ()
    """What is assumed of this kind of network, a sentence each."""
    without: str = ""
    """The parts of a whole answer that are left out."""

    @cached_property
    def parts(self) -> dict[str, Quantity]:
        """The least time of a pass by what bounds it, kernel by kernel: compute, memory, links."""
        parts = dict.fromkeys(("compute", "memory", "links"), quantity(0, "s"))
        for kernel in self.kernels:
            bound, time = self._least(kernel)
            parts[bound] = parts[bound] + time
        if self.sharers > 1:
            parts["links"] = communication.least_time(
                "all_to_all", self.exchanged, self.sharers, self.machine
            )
        return parts

    @cached_property
    def times(self) -> dict[str, Quantity]:
        """The least time of a pass by the names of its kernels."""
        times: dict[str, Quantity] = {}
        for kernel in self.kernels:
            _, time = self._least(kernel)
            times[kernel.name] = times[kernel.name] + time if kernel.name in times else time
        return times

    @property
    def bound(self) -> str:
        """Return what bounds most of the time: compute, memory or links."""
        return max(self.parts, key=lambda part: self.parts[part].m_as("s"))

    @property
    def time(self) -> Quantity:
        """The least time of a batch, all its passes one after the other."""
        return sum(self.parts.values(), quantity(0, "s")) * self.passes

    @property
    def rate(self) -> Quantity:
        """Items a second at the most, of all devices."""
        return quantity(self.batch * self.devices / self.time.m_as("s"), "1/s")

    @property
    def expected(self) -> Quantity | None:
        """Time of a batch at measured rates; None where one was not measured on this machine."""
        if isinstance(self.expectation, Missing):
            return None
        return (self.expectation.total * self.passes).to("s")

    @property
    def not_expected(self) -> str:
        """Return why nothing is expected: which rate was not measured."""
        return self.expectation.reason if isinstance(self.expectation, Missing) else ""

    @cached_property
    def expectation(self) -> Parts | Missing:
        """The parts of a pass at measured rates, or which rate was not measured."""
        if isinstance(self.model, models.Convolutional):
            return Missing(
                "the rate of convolutions was not measured on any machine of the data, so nothing"
                f" is expected of {self.model.name}"
            )
        launched = [*self.kernels, *self.vectors]
        sent = self.exchanged.m_as("byte"), self.sharers
        return if_measured(lambda: of_kernels(launched, self.machine, *sent))

    @property
    def expected_rate(self) -> Quantity | None:
        """Items a second at measured rates, of all devices."""
        if self.expected is None:
            return None
        return quantity(self.batch * self.devices / self.expected.m_as("s"), "1/s")

    @property
    def fits(self) -> bool:
        """Return whether weights and tables are within a device's memory, without activations."""
        return bool(self.memory <= device_memory.room(self.machine.device))

    @cached_property
    def facts(self) -> dict[str, object]:
        expected: dict[str, object] = {"not_expected": self.not_expected}
        if self.expected_rate is not None:
            expected = {
                "expected_time": self.expected,
                "expected_rate": self.expected_rate,
                "expected_rate_per_hour": self.expected_rate.to("1/hour"),
            }
        return {
            "model": self.model.key,
            "device": self.machine.device.key,
            "devices": self.devices,
            "devices_that_share_tables": self.sharers,
            **values(self, "dtype items batch passes memory fits bound time rate"),
            "rate_per_hour": self.rate.to("1/hour"),
            **expected,
            "without": self.without,
            "assumptions": self.assumptions,
        }

    def _assumptions(self) -> Iterator[str]:
        device = self.machine.device
        yield (
            f"Products are computed in {self.dtype.upper()} at {device.peak(self.dtype)}; memory"
            f" runs at {device.memory_bandwidth}."
        )
        yield (
            "At the most takes published rates: kernels follow one another, each as long as its"
            " arithmetic or its bytes; passes over vectors between products are left out."
        )
        if self.expected is None:
            yield f"{self.not_expected[0].upper()}{self.not_expected[1:]}."
        else:
            yield (
                "Expected is what kernels were measured to reach on"
                f" {self.machine.name}, passes over vectors included; the program's own time is not"
                " in it."
            )
        yield from self.notes
        batch = f"Each device computes a batch of {self.batch}"
        if self.sharers > 1:
            host = communication.sending(self.sharers, self.machine)
            yield (
                f"{batch}; {self.sharers} share the tables, and send one another the sums of their"
                f" rows in an all-to-all, two bytes an element, over {host} each way."
            )
        elif self.devices > 1:
            yield f"{batch}, with all weights, and sends nothing to the others."
        yield "Memory holds weights and tables; activations are not counted."

    def rows(self) -> list[tuple[str, ...]]:
        """The longest kernels of a pass, alike ones together."""
        alike: dict[str, list[Kernel]] = {}
        for kernel in self.kernels:
            alike.setdefault(kernel.name, []).append(kernel)
        rows = []
        for name, same in alike.items():
            longest, _ = max(map(self._least, same), key=lambda pair: pair[1].m_as("s"))
            work = sum((kernel.operations * kernel.launches for kernel in same), NO_WORK)
            moved = sum((kernel.traffic * kernel.launches for kernel in same), NO_BYTES)
            time = self.times[name]
            rows.append((time.m_as("s"), (name, str(time), longest, str(work), str(moved))))
        return [row for _, row in sorted(rows, reverse=True)]

    @property
    def answer(self) -> str:
        rate = self._rates(self.rate, self.time, "at the most ")
        if self.expected_rate is not None:
            rate = self._rates(self.expected_rate, self.expected)
        return f"{self.model.name} on {self.devices} {self.machine.device.name}: {rate}"

    @property
    def stands_on(self) -> str:
        what = f"inference without {self.without}" if self.without else "inference"
        if isinstance(self.expectation, Missing):
            why = self.not_expected.partition(": ")[0]
            return f"{what}; BOUND ONLY, {PEAKS}, by {self.bound}: {why}"
        most = self._rates(self.rate, self.time, "at the most ")
        basis = KIN if self.expectation.borrowed else MEASURED
        rates = f"{basis} of {self.machine.name}"
        return f"{what}; {rates}; {most}, bound by {self.bound}"

    @property
    def chosen(self) -> tuple[str, ...]:
        fits = "fits" if self.fits else "does not fit"
        each = " of each device" if self.devices > 1 else ""
        return (
            self.dtype.upper(),
            f"batch {self.batch}{each}",
            f"passes: {self.passes}",
            f"weights: {self.memory}, which {fits} into"
            f" {self.machine.device.memory_capacity}{each}",
        )

    @cached_property
    def tables(self) -> list[Table]:
        links = ("exchange", str(self.parts["links"]), "links", "", str(self.exchanged))
        return [Table([HEADERS, *self.rows(), *([links] if self.sharers > 1 else [])])]

    def _rates(self, rate: Quantity, time: Quantity | None, most: str = "") -> str:
        each_second, hourly = (quantity(rate.m_as(unit), "") for unit in ("1/s", "1/hour"))
        return f"{most}{each_second} {self.items} a second, {hourly} an hour: {time} a batch"

    def _least(self, kernel: Kernel) -> tuple[str, Quantity]:
        """Return what bounds a kernel, and its least time, all launches together."""
        device = self.machine.device
        step = roofline.Workload(kernel.operations, kernel.traffic).on(device, self.dtype)
        return step.bound, step.lower * kernel.launches


@understood
def of(
    model: Transformer | Network | str,
    device: Machine | Accelerator | Path | str,
    batch: int | None = None,
    dtype: str | None = None,
    steps: int | None = None,
    pixels: tuple[int, int] = (diffusion.PIXELS, diffusion.PIXELS),
    table: QuantityLike | None = None,
    devices: int | None = None,
) -> Throughput:
    """Images or samples a second of a network on devices, and what bounds them.

    Each device computes a batch of its own, with all weights; a recommender's tables are cut for as
    few devices as hold them. Of an encoder and a decoder it is the encoder's pass.

    Parameters
    ----------
    batch
        inputs that a device computes together: 1 where it is left out, of a recommender 51200
    dtype
        the format that weights have and that is computed in
    steps
        from noise to an image, where they are not those of the model's library
    pixels
        rows and columns of them that an image has which is made
    table
        the format of a recommender's tables, where it is not that of the weights
    devices
        how many there are; one where it is left out, or as few as hold a recommender

    Examples
    --------
    >>> answer = of("flux-1-dev", "dgx-h100", steps=28)
    >>> print(answer.passes, answer.bound, answer.time)
    28 compute 2.105 s
    >>> server = of("dlrm-dcnv2", "dgx-h100", table="fp32", devices=8)
    >>> print(server.sharers, server.memory, server.bound)
    2 52.30 GB memory
    """
    network = models.get(model) if isinstance(model, str) else model
    machine = machines.of(device)
    if batch is None:
        batch = PAIRS if isinstance(network, models.Recommender) else 1
    batch = whole_number("batch", batch)
    devices = None if devices is None else whole_number("devices", devices)
    if dtype is None:
        dtype = machine.device.usual_dtype
    else:
        machine.device.peak(dtype)  # refuses a format in which the device does not compute
        dtype = hardware.dtype_of(dtype)
    asked = _Asked(machine, batch, dtype, input_size(dtype), steps, pixels, table, devices)
    for family, answer in ANSWERS.items():
        if isinstance(network, family):
            return answer(asked, network)
    name = abbreviated(getattr(network, "name", network))
    raise InputError(f"a model of calc.models, or its name, is needed here; got {name}")


@dataclass(frozen=True, eq=False)
class _Asked:
    """A caller's question, read and checked."""

    machine: Machine
    batch: int
    dtype: str
    size: Quantity
    steps: int | None
    pixels: tuple[int, int]
    table: QuantityLike | None
    devices: int | None

    def answer(self, model: Any, items: str, launched: Iterator[Kernel], **more: Any) -> Throughput:
        facts: dict[str, Any] = {"passes": 1, "memory": self.size * model.parameters.m_as("param")}
        return Throughput(
            model=model,
            machine=self.machine,
            items=items,
            batch=self.batch,
            dtype=self.dtype,
            kernels=tuple(launched),
            **(facts | {"devices": self.devices or 1} | more),
        ).settled()

    def product(self, name: str, m: float, n: float, k: float, launches: float = 1) -> Kernel:
        """A matrix product at the format of the pass; its result has two bytes an element."""
        sizes = (self.size, self.size, TWO_BYTES)
        return Kernel.of_product(name, (m, n, k), sizes, self.dtype, launches)

    def attention(
        self,
        tokens: float,
        inner: float,
        sequences: float,
        launches: float,
        seen: float | None = None,
    ) -> Kernel:
        """Fused attention to all tokens, or to so many; its inputs and results go to memory."""
        work = quantity(4.0 * tokens * (seen or tokens) * inner * sequences, "FLOP")
        traffic = 4 * tokens * inner * sequences * TWO_BYTES
        return Kernel("attention", "attention", launches, work, traffic, dtype=self.dtype)

    def vectors(
        self, tokens: float, width: float, hidden: float, layers: float
    ) -> Iterator[Kernel]:
        """Passes over vectors of so many layers, fused as compilers fuse them."""
        vector = tokens * TWO_BYTES
        yield Kernel("residuals and norms", "memory", 2 * layers, traffic=4 * width * vector)
        yield Kernel("activation", "memory", layers, traffic=2 * hidden * vector)

    def layer(
        self, name: str, tokens: float, width: float, inner: float, hidden: float, launches: float
    ) -> Iterator[Kernel]:
        """Products of so many blocks of attention and feed-forward network, over all tokens."""
        yield self.product(f"{name}query, key and value", tokens, 3 * inner, width, launches)
        yield self.product(f"{name}attention output", tokens, width, inner, launches)
        yield self.product(f"{name}up", tokens, hidden, width, launches)
        yield self.product(f"{name}down", tokens, width, hidden, launches)


def _transformer(asked: _Asked, model: Transformer) -> Throughput:
    """A pass over a batch of images, or of an encoder's texts, each of which fills the context."""
    texts = model.patch_inputs is None
    if texts and model.output in ("own", "tied"):
        raise InputError(
            f"{model.name} writes tokens: calc.plan answers for it, and calc.throughput for"
            " encoders, networks of images and recommenders"
        )

    def launched() -> Iterator[Kernel]:
        length = model.context
        inner = model.heads * model.head_width
        window = length if model.window is None else min(length, model.window)
        for kind, seen in (("full", length), ("window", window)):
            if layers := model.layers_with(kind):
                yield asked.attention(length, inner, asked.batch, layers, seen)
        for product in transformer.prefill_matmuls(model, length, asked.batch):
            if not product.name.endswith(("scores", "weighted values")):
                shape = (float(product.m), float(product.n), float(product.k))
                yield asked.product(
                    product.name, *shape, launches=cast(float, product.count) * product.layers
                )

    length = asked.batch * model.context
    width, hidden = model.width, model.feed_forward_width or 1
    vectors = asked.vectors(length, width, hidden, model.layers)
    note = f"A text fills the context of {model.context} tokens, without padding."
    if not texts:
        note = f"An image is {model.context} tokens; reading and scaling it is left out."
    notes = (note, *(f"{model.name}: {remark}." for remark in model.notes))
    more: dict[str, Any] = {"vectors": tuple(vectors), "notes": notes}
    return asked.answer(model, "texts" if texts else "images", launched(), **more)


def _convolutional(asked: _Asked, model: models.Convolutional) -> Throughput:
    """A pass over a batch of inputs, convolution by convolution."""

    def launched() -> Iterator[Kernel]:
        for layer in model.convolutions:
            step = convolution.workload(layer, asked.batch, asked.size)
            work, moved = step.operations, step.traffic
            yield Kernel(layer.kind, "convolution", 1, work, moved, dtype=asked.dtype)

    return asked.answer(model, "inputs", launched())


def _diffusion(asked: _Asked, model: models.DiffusionTransformer) -> Throughput:
    """Passes over the tokens of text and image, from noise to a batch of images."""
    steps = model.steps
    steps = steps if asked.steps is None else whole_number("steps", asked.steps)
    sides = [whole_number("pixels of a side", side) for side in as_list("pixels", asked.pixels)]
    if len(sides) != 2:
        raise InputError(f"pixels are rows and columns, as 1024,768; got {len(sides)} numbers")
    rows, columns = sides
    tokens = diffusion.tokens(model, rows, columns).m_as("")
    text = model.text_tokens
    inner = model.heads * model.head_width
    shape = (model.width, inner, model.feed_forward_width)
    double = model.double_blocks

    def launched() -> Iterator[Kernel]:
        yield asked.attention(tokens, inner, asked.batch, model.blocks)
        yield from asked.layer("image: ", (tokens - text) * asked.batch, *shape, double)
        yield from asked.layer("text: ", text * asked.batch, *shape, double)
        if model.single_blocks is not None:
            single = model.single_blocks
            yield from asked.layer("both: ", tokens * asked.batch, *shape, single)

    passes = diffusion.passes_of_an_image(steps, model.passes).m_as("")
    width, inner, hidden = shape
    count = tokens * asked.batch
    vectors = [
        *asked.vectors(count, width, hidden, model.blocks),
        # Queries and keys are normalised, or rotated, or both.
        Kernel("rotation", "memory", model.blocks, traffic=4 * inner * count * TWO_BYTES),
    ]
    library = " as in the model's library" if asked.steps is None else ""
    each_step = " and two passes a step, one for guidance" if model.passes == 2 else ""
    notes = (f"An image has {rows} × {columns} pixels, in {steps} steps{library}{each_step}.",)
    more = {"passes": int(passes), "vectors": tuple(vectors), "notes": notes}
    more["without"] = "the encoder of the text, the decoder of the image and the host's work"
    return asked.answer(model, "images", launched(), **more)


def _encoder(asked: _Asked, model: models.EncoderDecoder) -> Throughput:
    """The encoder's pass over a batch of sources, as long as it was made to read, or to write."""
    length = model.source_context or model.context
    inner = model.heads * model.head_width
    hidden = model.feed_forward_width
    width, layers = model.width, model.encoder_layers
    tokens = length * asked.batch

    def launched() -> Iterator[Kernel]:
        yield asked.attention(length, inner, asked.batch, layers)
        yield from asked.layer("", tokens, width, inner, hidden, layers)
        if model.gated:
            yield asked.product("gate", tokens, hidden, width, layers)

    notes = (f"A source fills the encoder's {length:g} places.",)
    more: dict[str, Any] = {"notes": notes, "without": "the decoder, which writes the text"}
    more["vectors"] = tuple(asked.vectors(tokens, width, hidden, layers))
    return asked.answer(model, "sources", launched(), **more)


def _recommender(asked: _Asked, model: models.Recommender) -> Throughput:
    """Lookups, networks and the exchange of vectors, of a batch on each device."""
    size = formats.element_size("table", asked.dtype if asked.table is None else asked.table)
    tables = recommenders.table_memory(model, size)
    networks = (model.parameters - model.parts["tables"]).m_as("param") * asked.size
    sharers = _sharers(asked, model, size, networks)
    row = recommenders.row_traffic(model.embedding_width, size)

    def launched() -> Iterator[Kernel]:
        read = recommenders.sample_traffic(model, size) * asked.batch
        yield Kernel("lookups", "memory", 1, traffic=read)
        for part, inputs, outputs in model.layers:
            yield asked.product(part, asked.batch, outputs, inputs)

    pairs = constants.count_pairs_of_a_dlrm_sample
    notes = (
        f"A pair is one user with one item; a sample of MLPerf's benchmark holds {pairs} of them"
        " on average: divide by that before comparing with its results.",
        f"A pair reads {sum(model.lookups)} rows of {row} at random, none of them cached, at the"
        " full bandwidth of memory.",
    )
    sums = len(model.rows) * model.embedding_width * asked.batch
    return asked.answer(
        model,
        "pairs",
        launched(),
        devices=asked.devices or sharers,
        sharers=sharers,
        memory=(tables / sharers + networks).to("byte"),
        exchanged=sums * TWO_BYTES,
        notes=notes,
    )


def _sharers(asked: _Asked, model: models.Recommender, size: Quantity, networks: Quantity) -> int:
    """Devices that share tables: as few as hold them, and as divide those that there are evenly."""
    machine, tables = asked.machine, recommenders.table_memory(model, size)
    capacity = device_memory.room(machine.device)
    if networks >= capacity:
        raise InputError(f"{model.name}: its networks alone fill {machine.device.name}")
    rows = sum(model.rows), model.embedding_width, capacity - networks, size
    fewest = int(recommenders.devices_for_tables(*rows).m_as(""))
    if asked.devices is not None and asked.devices < fewest:
        raise InputError(
            f"{marked('devices')} must be a whole number from {fewest}, as many as hold the tables"
            " of"
            f" {model.name}, {tables}; got {asked.devices}"
        )
    count_given = asked.devices or fewest
    sharers = next(count for count in range(fewest, count_given + 1) if count_given % count == 0)
    if sharers > machine.domain and not machine.publishes("ports"):
        joined = machines.with_several(machine.device.key)
        larger = f"give {' or '.join(joined)}" if joined else "give a machine of more"
        raise InputError(
            f"{model.name}: its tables of {tables} need the memory of {fewest} devices, and"
            f" {machine.name} has {machine.domain}: {larger}, or a smaller `table`"
        )
    return sharers


ANSWERS: dict[type, Callable[..., Throughput]] = {
    Transformer: _transformer,
    models.Convolutional: _convolutional,
    models.DiffusionTransformer: _diffusion,
    models.EncoderDecoder: _encoder,
    models.Recommender: _recommender,
}

__all__ = ["Throughput", "of"]
