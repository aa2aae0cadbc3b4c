"""What the chapter "Fallacies and pitfalls" quotes: a counter-example for each sentence."""

from __future__ import annotations

from functools import cache
from statistics import median

from calc import (
    collectives,
    communication,
    constants,
    cost,
    engine_sums,
    hardware,
    inference,
    links,
    memory,
    published,
    queueing,
    scaling,
    sparsity,
    speculation,
    training,
    transformer,
)
from calc.core.units import Quantity, quantity
from calc.derivations import examples
from calc.derivations.experts import Mixture
from calc.derivations.numbers_to_know import AnchorLatencies
from calc.derivations.roofline import A100Roofline
from calc.derivations.training_at_scale import Failures
from calc.derivations.training_time import Cluster, ComputeOptimal, LastDoubling, PublishedSteps
from calc.published import Row, closed_loops

B200 = hardware.get("b200")
H200 = hardware.get("h200")
H100 = hardware.get("h100")
FP8 = quantity("1 byte")
LENGTH = 1024


@cache
def dense_loop(machine: str, clients: int, tensor: int = 8) -> Row:
    """The closed loop of Llama 3.1 70B in FP8 under vLLM that reads and writes `LENGTH` tokens."""
    asked = {
        "model": examples.DENSE.key,
        "format": "fp8",
        "mode": "agg",
        "machine": machine,
        "clients": clients,
        "tensor": tensor,
        "input": LENGTH,
        "output": LENGTH,
    }
    [row] = (
        row
        for row in closed_loops.rows()
        if row.software == "vllm" and all(row[name] == value for name, value in asked.items())
    )
    return row


def rate_of_device(clients: int) -> Quantity:
    """What each of eight B200s writes for so many clients."""
    together = clients * quantity("1 token") / time_of_token(dense_loop("dgx-b200", clients))
    return (together / 8).to("token/s")


def time_of_token(row: Row) -> Quantity:
    return quantity(row.measured["tpot"], "s").to("ms")


def four_bits_against_eight() -> list[float]:
    """How many times as fast NVFP4 is as FP8, for each pair of closed loops that are alike else."""
    by_format: dict[str, dict[tuple[object, ...], float]] = {"fp8": {}, "nvfp4": {}}
    alike = ("software", "mode", "input", "output", "clients", "tensor", "data")
    for row in closed_loops.rows():
        if (row["machine"], row["model"]) == ("dgx-b200", examples.DENSE.key):
            by_format[row["format"]][tuple(map(row.__getitem__, alike))] = row.measured["tpot"]
    eight, four = by_format.values()
    return [eight[key] / four[key] for key in eight.keys() & four.keys()]


class DoubledDevices:
    """Sixteen times the devices do not train sixteen times as fast."""

    few, many = (published.row(f"mlperf-deepseek-v3-{devices}") for devices in (512, 8192))
    few_devices = int(few["num_devices"])
    many_devices = int(many["num_devices"])
    ratio = many_devices / few_devices
    speedup = (
        quantity(many.measured["tokens_per_s_per_gpu"], "")
        * ratio
        / few.measured["tokens_per_s_per_gpu"]
    )


class DoubledOnPaper:
    """Twice the devices halve the arithmetic of a step, and not its exchange."""

    parameters = Cluster.parameters
    batch = quantity("1M token")
    before = Cluster.before

    arithmetic, arithmetic_after = training.training_time(
        parameters, batch, (before, Cluster.after), Cluster.peak, Cluster.mfu
    ).to("ms")
    exchange = LastDoubling.exchange
    exchange_after = Cluster.all_reduce(Cluster.after).to("ms")
    gain = (
        collectives.step_time(arithmetic, exchange, 0)
        / collectives.step_time(arithmetic_after, exchange_after, 0)
    ).to("")


class PeakAgainstSpeed:
    """A peak more than twice as high, and a token a fifth sooner."""

    clients = 4
    peak_ratio = B200.peak("fp8") / H200.peak("fp8")
    bandwidth_ratio = B200.memory_bandwidth / H200.memory_bandwidth
    before = time_of_token(dense_loop("dgx-h200", clients))
    after = time_of_token(dense_loop("dgx-b200", clients))
    gain = (before / after).to("")


class BusyGpu:
    """A GPU that is always busy may use a third of a percent of its peak."""

    model = examples.HAND
    weights = inference.weights_read(model, 1, "2 byte").to("GB")
    rate = quantity("250 token/s")

    moved = (rate * weights / quantity("1 token")).to("TB/s")
    share_of_bandwidth = (moved / H200.memory_bandwidth).to("%")
    share_of_peak = (
        rate * model.multiplied_parameters * constants.work_inference / H200.peak("bf16")
    ).to("%")


class BusyServer:
    """A server that is never idle lets everybody wait."""

    often = quantity(70, "%")
    nearly_always = quantity(95, "%")

    service = quantity("1 s")
    time_often = queueing.single_server_time(service, often)
    time_nearly_always = queueing.single_server_time(service, nearly_always)


class FewerOperations:
    """A ReLU has next to no operations, and takes time."""

    n = A100Roofline.n
    share_of_operations = A100Roofline.relu_share_of_operations
    share_of_time = A100Roofline.relu_share_of_time


class FreeBatch:
    """Sixteen times the clients: each waits twice as long for a token."""

    few = 4
    many = 64
    length = quantity(LENGTH, "token")
    few_time = time_of_token(dense_loop("dgx-b200", few))
    many_time = time_of_token(dense_loop("dgx-b200", many))
    slower = (many_time / few_time).to("")


class FasterLink:
    """Forty times the bandwidth changes nothing for a small message across an ocean."""

    message = quantity("1 kB")
    slow = quantity("10 Gbit/s")
    fast = quantity("400 Gbit/s")

    latency = (links.round_trip_time(constants.length_pacific) / 2).to("ms")
    slow_time = links.transfer_time(message, slow, latency)
    fast_time = links.transfer_time(message, fast, latency)
    gain = (slow_time - fast_time).to("µs")


class HalfTheBits:
    """FP8 trained one model 1.4 times as fast, and four bits serve it a tenth faster."""

    devices = 512
    bf16_step = quantity(PublishedSteps.bf16.measured["step_time"], "s")
    fp8_step = quantity(PublishedSteps.fp8.measured["step_time"], "s")
    training_gain = PublishedSteps.faster

    pairs = four_bits_against_eight()
    count = len(pairs)
    middle = quantity(median(pairs), "")
    slower = sum(gain < 1 for gain in pairs)
    worst, most = quantity(min(pairs), ""), quantity(max(pairs), "")


class MixtureRead:
    """A batch of a mixture reads nearly all of it."""

    model = examples.MIXTURE
    batch = Mixture.some

    active = model.multiplied_parameters
    read_alone = Mixture.read_alone
    read = Mixture.read_some
    of_dense = (read / inference.weights_read(examples.DENSE, batch, FP8)).to("")


class GroupedCache:
    """A cache of grouped queries outgrows the weights."""

    model = examples.DENSE
    heads = model.kv_heads
    context = quantity("131072 token")

    per_token = transformer.kv_cache_per_token(model)
    cache = (per_token * context).to("GB")
    weights = inference.weight_memory(model, FP8).to("GB")
    requests = (weights / cache).to("")


class EngineKernel:
    """An engine's own kernel sums a short array several times as fast as NCCL."""

    devices = 8
    size = quantity("512 KiB")
    nccl = communication.time("all_reduce", size, devices, "dgx-b200").needed.to("µs")
    sums = engine_sums.of("b200", "vllm", devices)
    assert sums is not None
    engine = quantity(sums.time(size.m_as("byte")), "s").to("µs")
    ratio = (nccl / engine).to("")


class RatePerDevice:
    """One server, one program, one model: the rate of a device is what the clients make it."""

    few, many = (rate_of_device(clients) for clients in (FreeBatch.few, FreeBatch.many))
    ratio = (many / few).to("")


class UtilizationOfPapers:
    """One run has two utilisations, and the faster device the lower one."""

    a100, h100 = (published.row(f"llm-foundry-{number}") for number in (78, 19))
    parameters = quantity(int(a100["params"]), "param")
    model_share = quantity(a100.measured["mfu"], "%")
    hardware_share = quantity(a100.measured["hfu"], "%")
    new_share = quantity(h100.measured["mfu"], "%")
    devices = int(a100["num_devices"])
    gain = quantity(
        h100.measured["tokens_per_s_per_gpu"] / a100.measured["tokens_per_s_per_gpu"], ""
    )


class SoldAndUsable:
    """What an advertisement adds up is halved by the first program that uses it."""

    sparse_peak = B200.sparse_peak("fp4")
    dense_peak = B200.peak("fp4")
    link = H100.link_bandwidth
    gradients = quantity("14 GB")

    link_both_ways = 2 * link
    time_one_way = (gradients / link).to("ms")
    time_promised = (gradients / link_both_ways).to("ms")
    offered = H100.sparse_peak("fp16")
    bandwidth = H100.memory_bandwidth
    ridge_point = H100.ridge_point("fp16")


class Gigabytes:
    """A disk's terabyte is smaller than a program's, an H100's gigabyte is larger."""

    disk = quantity("1 TB")
    h100_memory = H100.memory_capacity

    disk_in_binary = disk.to("GiB")
    h100_memory_in_decimal = h100_memory.to("GB")


class CacheHit:
    """On a GPU a hit in the cache costs more than a CPU's fetch from its second cache."""

    l1_cpu = constants.latency_l1_cpu
    l2_cpu = constants.latency_l2_cpu
    hit_rate = quantity(90, "%")

    l1_gpu = AnchorLatencies.hopper_l1
    # The L2 was measured from the start of the access, the look into L1 included.
    average = memory.average_access_time(l1_gpu, 1 - hit_rate, AnchorLatencies.hopper_l2 - l1_gpu)


class SinglePrecision:
    """FP32 costs twice the bytes, and far more than twice the arithmetic."""

    energy_ratio = constants.energy_fp32_multiply / constants.energy_fp16_multiply
    energy_ratio_later = constants.energy_7nm_fp32_multiply / constants.energy_7nm_fp16_multiply
    slowdown = B200.peak("fp16") / B200.vector_peak("fp32")


class EasyDrafts:
    """The same drafts are worth half as much again on a text that is easy to guess."""

    drafted = 3
    easy = 0.8
    hard = 0.5
    easy_tokens = speculation.speculative_tokens(easy, drafted)
    hard_tokens = speculation.speculative_tokens(hard, drafted)
    ratio = (easy_tokens / hard_tokens).to("")


class IdleHours:
    """An idle hour costs what a busy one does."""

    devices = 8
    price = constants.price_h200
    throughput = quantity("8000 token/s")
    used = quantity(30, "%")
    full = cost.cost_per_token(devices, price, throughput).to("USD/Mtoken")
    real = cost.cost_per_token(devices, price, throughput, used).to("USD/Mtoken")


class SlowestCall:
    """Of a chain of calls the slowest sets the pace, and the slowest is in the tail."""

    promise = quantity(99, "%")
    beyond = 1 - promise
    few = 5
    run = "6.0-0010-deepseek-r1-server"
    row = {row["id"]: row for row in closed_loops.mlperf_rows()}[run]
    half = quantity(float(row["ttft_p50"]), "ms")
    tail = quantity(float(row["ttft_p99"]), "ms")
    calls = 30
    share = quantity(1 - promise.m_as("") ** calls, "").to("%")


class ItFits:
    """Weights that fit leave next to no room for requests."""

    used = quantity(90, "%")
    context = quantity("2048 token")

    weights = GroupedCache.weights
    left = (used * H100.memory_capacity.to("GB") - weights).to("GB")
    requests = int((left / (GroupedCache.per_token * context)).m_as(""))


class QuarterOfTheBits:
    """Weights in a quarter of the bits leave the caches as they were."""

    requests = 32
    context = quantity("8192 token")
    wide_weights = inference.weights_read(examples.DENSE, 1, "2 byte").to("GB")
    narrow_weights = inference.weights_read(examples.DENSE, 1, "4.5 bit").to("GB")
    caches = (requests * GroupedCache.per_token * context).to("GB")
    gain = ((wide_weights + caches) / (narrow_weights + caches)).to("")


class MultipliedGains:
    """Speedups of parts do not multiply."""

    first_share = quantity(40, "%")
    second_share = quantity(30, "%")
    first, second = 3, 2
    promised = first * second
    whole = scaling.combined_speedup([(first_share, first), (second_share, second)])


class HalfPruned:
    """Half of the weights set to zero save nothing, and then cost more."""

    zeros = sparsity.csr_crossover("2 byte").to("%")
    zeros_of_bytes = sparsity.csr_crossover("1 byte").to("%")


class EightForOne:
    """Eight devices write a token sooner than one, and each token costs more."""

    clients = 32
    devices = 8
    alone = time_of_token(dense_loop("dgx-b200", clients, 1))
    together = time_of_token(dense_loop("dgx-b200", clients, devices))
    faster = (alone / together).to("")
    dearer = (devices / faster).to("")


class ReliableDevice:
    """A device that fails once in years makes a cluster that fails within hours."""

    devices = Failures.devices
    interruptions = Failures.interruptions
    observed = Failures.observed_time
    between = Failures.between
    of_a_device = Failures.of_a_device


class TokensPerParameter:
    """The best ratio depends on the data, and one lab's optimum was twice another's."""

    rule = ComputeOptimal.tokens_per_parameter
    ratio = ComputeOptimal.llama3_tokens_per_parameter
