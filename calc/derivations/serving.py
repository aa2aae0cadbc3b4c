"""What the chapter "Serving" quotes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from statistics import median
from typing import Any

from calc import collectives, hardware, inference, models, published, queueing, transformer
from calc.catalog.models import Transformer
from calc.catalog.software import software_of
from calc.core.units import Quantity, QuantityLike, quantity
from calc.derivations.quoting import Row, Rows
from calc.laws.roofline import StepTime
from calc.planning import plan


def step(
    model: Transformer, devices: int, sequences: QuantityLike, context: int = 2048
) -> StepTime:
    """A pass that writes with so many H100s, weights and caches in two bytes."""
    return inference.decode(model, hardware.get("h100"), context, sequences, devices)


def expected(
    model: Transformer, devices: int, sequences: QuantityLike, context: int = 2048
) -> Quantity:
    """The same pass of vLLM at measured rates: the token that such a context is followed by."""
    planned = plan(
        model,
        "dgx-h100",
        batch=sequences,
        prompt=context - 1,
        generated=1,
        devices=devices,
        software="vllm",
    )
    assert planned.expected is not None
    return planned.expected.time_per_token.to("ms")


def cache_of(model: Transformer, context: int) -> Quantity:
    """Keys and values of one conversation, in two bytes."""
    cache: Quantity = transformer.kv_cache_per_token(model) * quantity(context, "token")
    return cache


class OneGpu:
    """Llama 3 8B on one H100: weights bound one stream, the cache bounds many."""

    model = models.get("llama-3-8b")
    h100 = hardware.get("h100")
    context = 2048
    prompt = 1536
    answer = 512
    low_gain_of_pages = 2  # in the measurements of Kwon et al.
    high_gain_of_pages = 4
    long_context = 8192
    short_context = 256
    some = 64

    prompt_share = quantity(100 * prompt / context, "%")
    weights = inference.weights_read(model, 1).to("GB")
    cache = cache_of(model, context).to("GB")
    alone = step(model, 1, 1).lower.to("ms")
    alone_rate = step(model, 1, 1).throughput
    some_lower = step(model, 1, some).lower.to("ms")
    some_upper = step(model, 1, some).upper.to("ms")
    largest = inference.largest_batch(model, h100, context)
    full = step(model, 1, largest).lower.to("ms")
    full_rate = step(model, 1, largest).throughput
    gain = (full_rate / alone_rate).to("")
    slowdown = (full / alone).to("")
    share_of_peak = (step(model, 1, largest).rate / h100.peak("bf16")).to("%")

    weights_time = (weights / h100.memory_bandwidth).to("ms")
    wall_rate = (quantity("1 token") * h100.memory_bandwidth / weights).to("token/s")
    memory_time = (h100.memory_capacity / h100.memory_bandwidth).to("ms")
    cache_roof = (quantity("1 token") * h100.memory_bandwidth / cache).to("token/s")
    long_cache_roof = (
        quantity("1 token") * h100.memory_bandwidth / cache_of(model, long_context)
    ).to("token/s")
    compute_roof = (h100.peak("bf16") / transformer.forward_flops(model)).to("token/s")
    overtaken_tokens = (weights / transformer.kv_cache_per_token(model)).to("token")
    overtaken = (weights / cache).to("")
    # At this batch half of what the caches' roof allows is had, in twice the shortest time.
    overtaken_rate = cache_roof / 2
    slower_after = (full / (2 * weights_time)).to("")
    gain_after = (full_rate / overtaken_rate).to("")


class OneNode:
    """Llama 3 70B on eight H100s: reading costs more than writing once many write together."""

    model = models.get("llama-3-70b")
    h100 = hardware.get("h100")
    devices = 8
    context = OneGpu.context
    prompt = OneGpu.prompt
    answer = OneGpu.answer
    many = 256

    first = inference.prefill(model, h100, prompt, 1, devices).lower.to("ms")
    alone = step(model, devices, 1).lower.to("ms")
    largest = inference.largest_batch(model, h100, context, devices)
    full = step(model, devices, largest).lower.to("ms")
    overtaken = (inference.weights_read(model, 1) / cache_of(model, context)).to("")
    answer_alone = (answer * alone).to("s")
    answer_full = (answer * full).to("s")
    share_full = (answer_full / largest).to("ms")
    read_rate = (quantity("1 request") / first).to("request/s")
    both_rate = (quantity("1 request") / (first + share_full)).to("request/s")
    read_share = (first / (first + share_full)).to("%")
    shared_stream = (both_rate * answer / largest * quantity("1 token/request")).to("token/s")
    # Two sums over the node in each layer: after attention, after the feed-forward network.
    vector = quantity("16384 byte")  # what a token sends: as wide as the model, in two bytes
    message = (many * vector).to("MB")
    messages = 160
    sums = collectives.time("all_reduce", message, devices, "dgx-h100")
    sending_least = (messages * sums.lower).to("ms")
    assert sums.expected is not None
    sending = (messages * sums.expected).to("ms")
    many_step = step(model, devices, many).lower.to("ms")


class Passes:
    """What either server does at best, for short conversations and long ones."""

    servers = (("llama-3-8b", "8B on one", 1), ("llama-3-70b", "70B on eight", 8))
    contexts = (2048, 8192)

    @classmethod
    def rows(cls) -> Rows:
        """Server, context, first token, step alone, largest batch; then full: step, rate, vLLM."""
        return [cls.row(*server, context) for server in cls.servers for context in cls.contexts]

    @staticmethod
    def row(key: str, name: str, devices: int, context: int) -> Row:
        model, h100 = models.get(key), hardware.get("h100")
        prompt = OneGpu.prompt_share * context
        read = inference.prefill(model, h100, prompt, 1, devices)
        most = inference.largest_batch(model, h100, context, devices)
        full = step(model, devices, most, context)
        return (
            name,
            context,
            read.lower.to("ms"),
            step(model, devices, 1, context).lower.to("ms"),
            most,
            full.lower.to("ms"),
            full.throughput,
            expected(model, devices, most, context),
        )


@cache
def fitted_to() -> dict[str, Any]:
    """The published rows that vLLM's own time is fitted to, by their ids; all are of H100s."""
    rows = [
        row
        for row in published.rows("serving")
        if row.device.startswith("NVIDIA H100") and software_of(row.software).key == "vllm"
    ]
    return {
        compared.row.id: compared
        for compared in published.compare(rows)
        if compared.fitted and compared.error is not None and compared.row.number("batch")
    }


class FittedBatches:
    """vLLM's own time is fitted to rows of small and large batches; the largest are off the most.

    The row that is named is of a Llama of 70 billion parameters on four H100s.
    """

    largest = fitted_to()["mlenergy-42"]
    batches = tuple(compared.row.number("batch") for compared in fitted_to().values())

    count = len(batches)
    smallest_batch, largest_batch = min(batches), max(batches)
    median_batch = median(batches)
    largest_of_model = largest.row.number("batch")
    largest_less = quantity(-100 * largest.error, "%")


class OtherDecode:
    """A decode without a compute term promises more than the H100 can do."""

    model = models.get("llama-3-8b")
    h100 = hardware.get("h100")
    parameters = quantity("8.03B param")
    per_layer = quantity("0.01 ms")
    layers = model.layers
    context = 64
    sequences = 4096

    bytes_read = parameters * quantity("2 byte/param") + sequences * cache_of(model, context)
    theirs = (bytes_read / h100.memory_bandwidth + layers * per_layer).to("ms")
    implied = (sequences * parameters * quantity("2 FLOP/param") / theirs).to("PFLOP/s")
    times = (implied / h100.peak("bf16")).to("")
    ours = step(model, 1, sequences, context).lower.to("ms")


class StepParts:
    """Weights, caches and operations of a step against the batch, in two bytes and in one."""

    model = OneNode.model
    h100 = OneNode.h100
    devices = 8
    context = 2048
    most = 1900
    size = quantity("2 byte")
    short_size = quantity("1 byte")
    bandwidth = h100.memory_bandwidth * devices

    largest = OneNode.largest
    largest_short = inference.largest_batch(model, h100, context, devices, short_size, short_size)

    @classmethod
    def parts(cls, sequences: QuantityLike, size: Quantity) -> tuple[Any, Any, Any]:
        """Milliseconds of reading weights, of reading caches, and of arithmetic in BF16."""
        step = inference.decode(
            cls.model, cls.h100, cls.context, sequences, 8, weight_size=size, kv_size=size
        )
        weights = inference.weights_read(cls.model, sequences, size) / cls.bandwidth
        memory = step.parts["memory"]
        compute = step.parts["compute"]
        return weights.m_as("ms"), (memory - weights).m_as("ms"), compute.m_as("ms")

    # Arithmetic grows with the batch as the caches do, but the weights are there from the start.
    compute_one = step(model, devices, 1).parts["compute"]
    short_weights = inference.weights_read(model, 1, short_size) / bandwidth
    short_cache = cache_of(model, context) / 2 / bandwidth
    compute_bound = (short_weights / (compute_one - short_cache)).to("")


class FewerBytes:
    """Smaller weights help one stream, a smaller cache helps many."""

    model = OneGpu.model
    h100 = OneGpu.h100
    context = 2048
    many = 256
    four_bits = quantity("4.25 bit")
    group = 64

    @classmethod
    def time(
        cls, sequences: int, weights: QuantityLike = "2 byte", cache: QuantityLike = "2 byte"
    ) -> Quantity:
        step = inference.decode(
            cls.model, cls.h100, cls.context, sequences, weight_size=weights, kv_size=cache
        )
        return step.lower.to("ms")

    @classmethod
    def rows(cls) -> Rows:
        """Step alone and of many, their gains, and the largest batch, by what is shortened."""
        cases = (
            ("Nothing", "2 byte", "2 byte"),
            ("Weights in four bits", cls.four_bits, "2 byte"),
            ("Cache in eight bits", "2 byte", "1 byte"),
            ("Both", cls.four_bits, "1 byte"),
        )
        return [
            (
                name,
                cls.time(1, weights, cache),
                cls.time(1) / cls.time(1, weights, cache),
                cls.time(cls.many, weights, cache),
                cls.time(cls.many) / cls.time(cls.many, weights, cache),
                inference.largest_batch(cls.model, cls.h100, cls.context, 1, weights, cache),
            )
            for name, weights, cache in cases
        ]


class FewerKeys:
    """Keys for each head would divide the roof of the caches by four."""

    of_all_heads = (OneGpu.cache_roof / 4).to("token/s")
    latent = transformer.kv_cache_per_token(models.get("deepseek-v3"))
    grouped = transformer.kv_cache_per_token(OneGpu.model)
    latent_share = (latent / grouped).to("%")
    larger = (models.get("deepseek-v3").parameters / OneGpu.model.parameters).to("")


class Measured:
    """What one small program reaches of its bounds at batch 1 [pytorch2023gptfast]."""

    a100 = hardware.get("a100")
    context = 100
    small_rate = quantity("104.9 token/s")
    large_rate = quantity("62.5 token/s")
    four_bit_rate = quantity("196.8 token/s")
    bandwidth = quantity("1397.31 GB/s")
    four_bit_bandwidth = quantity("862.69 GB/s")
    node = 8

    small_bound = inference.decode(models.get("llama-2-7b"), a100, context).throughput
    small_share = (small_rate / small_bound).to("%")
    large_bound = inference.decode(models.get("llama-2-70b"), a100, context, 1, node).throughput
    large_share = (large_rate / large_bound).to("%")
    four_bit_gain = (four_bit_rate / small_rate).to("")
    bytes_share = (four_bit_bandwidth / four_bit_rate / (bandwidth / small_rate)).to("%")


class Speculation:
    """Llama 3 8B drafts for Llama 3 70B: a gain for few users, a loss for many."""

    large = OneNode.model
    draft = OneGpu.model
    devices = 8
    drafted = 4
    acceptance = quantity("70%")
    many = 256

    cost = (step(draft, devices, 1).lower / step(large, devices, 1).lower).to("")
    tokens = inference.speculative_tokens(acceptance, drafted)
    smaller = draft.multiplied_parameters / large.multiplied_parameters
    operations = inference.speculative_operations(acceptance, drafted, smaller)
    expected_cost = (expected(draft, devices, 1) / expected(large, devices, 1)).to("")
    expected_gain = inference.speculative_speedup(acceptance, drafted, expected_cost)

    @classmethod
    def speedup(cls, sequences: QuantityLike) -> Any:
        """With the roofs of checking and drafting, which the law of one stream leaves out."""
        plain = step(cls.large, cls.devices, sequences)
        compute = plain.parts["compute"] * (cls.drafted + 1)
        check = replace(plain, parts=plain.parts | {"compute": compute})
        draft = step(cls.draft, cls.devices, sequences).lower
        return (cls.tokens * plain.lower / (check.lower + cls.drafted * draft)).m_as("")


class SpeculationAtScale:
    """The gain is gone where checking has become compute-bound."""

    many = Speculation.many

    gain_alone = quantity(Speculation.speedup(1), "")
    gain_many = quantity(Speculation.speedup(many), "")
    gains = Speculation.speedup(quantity([*range(1, 814)], ""))  # which fall with the batch
    last_gain = quantity(sum(gains > 1), "")


def busiest(servers: int, wait: float) -> float:
    """The utilisation at which a hundredth of requests wait so many service times, by halving."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        tail = queueing.waiting_tail("1 s", middle, servers, "1%").m_as("s")
        low, high = (middle, high) if tail < wait else (low, middle)
    return low


class PromptQueue:
    """Prompts are read one after another: at 95 % the first token waits a hundred times as long."""

    service = OneNode.first
    calm = quantity("80%")
    busy = quantity("95%")
    beyond = quantity("1%")
    limit = 5
    some_servers = 4
    many_servers = 16
    servers = (1, some_servers, many_servers)

    one_in = 1 / beyond
    more_load = (busy / calm - 1).to("%")
    calm_mean = queueing.single_server_time(service, calm).to("ms")
    busy_mean = queueing.single_server_time(service, busy).to("ms")
    busy_tail = queueing.single_server_tail(service, busy, beyond).to("s")
    worse = (busy_mean / calm_mean).to("")
    alike = queueing.single_server_wait(service, busy, 0).to("ms")
    mixed = queueing.single_server_wait(service, busy, 2).to("ms")
    wait_one = (queueing.waiting_tail(service, busy, 1, beyond) / service).to("")
    wait_sixteen = (queueing.waiting_tail(service, busy, many_servers, beyond) / service).to("")


class Slots:
    """One step serves all slots: answers slow down long before no slot is free."""

    slots = OneNode.largest
    calm = quantity("80%")
    busy = quantity("95%")
    fullest = quantity("99%")
    loads = (calm, busy, quantity("98%"), fullest)
    hardly_any = quantity("0.1%")

    # The step's lower bound is a straight line of the batch up to the largest.
    written = (OneNode.answer_full - OneNode.answer_alone) / (slots - 1)
    own_time = (OneNode.first + written).to("ms")
    shared_time = (OneNode.answer_alone - written).to("s")
    alone = shared_time + own_time
    prompt_share = (OneNode.first / own_time).to("%")
    busy_rate = busy * OneNode.both_rate
    busy_time = queueing.batch_time(busy, slots, shared_time, own_time)
    busy_slowdown = (busy_time / alone).to("")
    _requests = slots * quantity("1 request")
    free = (1 - busy_rate * busy_time / _requests).to("%")
    by_erlang = queueing.waiting_probability(busy, slots).to("%")
    # The same requests, if only their last tokens came here.
    _load = queueing.server_utilization(busy_rate, shared_time + slots * written, _requests)
    elsewhere = queueing.batch_time(_load, slots, shared_time, written)

    @classmethod
    def row(cls, load: Quantity) -> tuple[Quantity | None, ...]:
        """Load, arrivals, requests in the batch, time of an answer, who waits and how long."""
        chain = (load, cls.slots, cls.shared_time, cls.own_time)
        rate, time = load * OneNode.both_rate, queueing.batch_time(*chain)
        present = queueing.requests_in_flight(rate, time).m_as("request")
        waiting = queueing.batch_waiting_probability(*chain).to("%")
        wait = queueing.batch_waiting_time(*chain).to("ms")
        waited = (waiting, wait) if waiting > cls.hardly_any else (None, None)
        return load.to("%"), rate.to("request/s"), quantity(present, ""), time, *waited


class LongConversations:
    """Problem 1: what a longer context leaves of a GPU."""

    model = OneGpu.model
    context = OneGpu.long_context

    largest = inference.largest_batch(model, hardware.get("h100"), context)
    alone = step(model, 1, 1, context).throughput
    rate = step(model, 1, largest, context).throughput
    each = rate / largest
    share = (rate / OneGpu.full_rate).to("%")
    alone_by_hand = quantity("220 token/s")
    rate_by_hand = quantity("2800 token/s")


class FirstTokenPromise:
    """Problem 2: the rate at which 99 of 100 prompts wait no longer than half a second."""

    service = OneNode.first
    limit = quantity("500 ms")
    nodes = 4

    _multiple = (limit / service).m_as("")
    utilization = quantity(busiest(1, _multiple), "").to("%")
    rate = (utilization * OneNode.read_rate).to("request/s")
    apart = nodes * rate
    _utilization_together = quantity(busiest(4, _multiple), "")
    together = (_utilization_together * nodes * OneNode.read_rate).to("request/s")
    rate_by_hand = quantity("28 request/s")
    together_by_hand = quantity("140 request/s")


class DraftLength:
    """Problem 3: how many tokens to draft."""

    acceptance = quantity("70%")
    cost = quantity("0.11")

    best = quantity(
        max(range(1, 20), key=lambda drafted: inference.speculative_speedup(0.7, drafted, 0.11)), ""
    )
    best_gain = inference.speculative_speedup(acceptance, best, cost)
    eight = inference.speculative_speedup(acceptance, 8, cost)
    best_by_hand = 4


def split_node(devices: int) -> tuple[Quantity, Quantity, Quantity]:
    """Sequences on a node whose copies of the model take so many GPUs, and two rates of it.

    The first at the lower bound of a step, the second as expected of vLLM, messages included.
    """
    model, h100, copies = OneNode.model, OneNode.h100, OneNode.devices // devices
    sequences = inference.largest_batch(model, h100, OneNode.context, devices)
    tokens = copies * sequences * quantity("1 token")
    return (
        copies * sequences,
        (tokens / step(model, devices, sequences).lower).to("token/s"),
        (tokens / expected(model, devices, sequences)).to("token/s"),
    )


class SplitNode:
    """Problem 4: one copy of the model on eight GPUs, or several on fewer."""

    devices = 8
    half = 4
    quarter = 2

    sequences, rate, expected_rate = split_node(devices)
    half_sequences, _half_rate, half_expected_rate = split_node(half)
    quarter_sequences, _quarter_rate, quarter_expected_rate = split_node(quarter)
    rate_by_hand = quantity("32000 token/s")
