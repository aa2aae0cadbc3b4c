"""Claims of the chapter "Fallacies and pitfalls": a counter-example for each sentence."""

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
from calc.derivations.bases import Rent, ServedMemory
from calc.derivations.by_hand import by_hand
from calc.derivations.deferred import deferred
from calc.derivations.experts_chapter import Mixture
from calc.derivations.ledger import Claims
from calc.derivations.numbers_to_know import AnchorLatencies
from calc.derivations.traces import number, whole
from calc.derivations.training_time_chapter import Cluster, LastDoubling, PublishedSteps
from calc.published import Row, closed_loops, datasets

B200 = hardware.get("b200")
H200 = hardware.get("h200")
H100 = hardware.get("h100")
FP8 = quantity("1 byte")
LENGTH = 1024


@cache
@deferred
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
        if row.software == "vllm 0.10.2"
        and all(row[name] == value for name, value in asked.items())
    )
    return row


@deferred
def rate_of_device(clients: int) -> Quantity:
    """Return the rate at which each of eight B200s writes for so many clients."""
    together: Quantity = (
        clients * quantity("1 token") / time_of_token(dense_loop("dgx-b200", clients))
    )
    return (together / 8).to("token/s")


@deferred
def time_of_token(row: Row) -> Quantity:
    return quantity(row.measured["tpot"], "s").to("ms")


@deferred
def four_bits_against_eight() -> list[float]:
    """Return the gain of NVFP4 over FP8, for each pair of closed loops that are alike else."""
    by_format: dict[str, dict[tuple[object, ...], float]] = {"fp8": {}, "nvfp4": {}}
    alike = ("software", "mode", "input", "output", "clients", "tensor", "data")
    for row in closed_loops.rows():
        if (row["machine"], row["model"]) == ("dgx-b200", examples.DENSE.key):
            by_format[row["format"]][tuple(map(row.__getitem__, alike))] = row.measured["tpot"]
    eight, four = by_format.values()
    return [eight[key] / four[key] for key in eight.keys() & four.keys()]


class DoubledDevices(Claims):
    """Sixteen times the devices do not train sixteen times as fast."""

    few, many = (
        deferred(published.row)(f"mlperf-deepseek-v3-{devices}") for devices in (512, 8192)
    )
    few_devices = whole(few["num_devices"]) | by_hand("512", "@mlperf-training-v6.0")
    many_devices = whole(many["num_devices"]) | by_hand("8192", "@mlperf-training-v6.0")
    ratio = many_devices / few_devices | by_hand("8192 / 512")
    speedup = quantity(many.measured["tokens_per_s_per_gpu"], "") * ratio / few.measured[
        "tokens_per_s_per_gpu"
    ] | by_hand("16 * 2344 / 3983")


class DoubledOnPaper(Claims):
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
    ).to("") | by_hand(
        "(6 * 7e9 * 1e6 / (512 * 989e12 * 0.4) * 1 s + 95.063 ms) / (6 * 7e9 * "
        "1e6 / (1024 * 989e12 * 0.4) * 1 s + 95.961 ms)"
    )


class PeakAgainstSpeed(Claims):
    """A peak more than twice as high, and a token a fifth sooner."""

    clients = 4
    peak_ratio = B200.peak("fp8") / H200.peak("fp8") | by_hand("4500 / 1979")
    bandwidth_ratio = B200.memory_bandwidth / H200.memory_bandwidth | by_hand("7.7 / 4.8")
    before = time_of_token(dense_loop("dgx-h200", clients)) | by_hand("7.9345 ms")
    after = time_of_token(dense_loop("dgx-b200", clients)) | by_hand("6.3181 ms")
    gain = (before / after).to("") | by_hand("7.9345 / 6.3181")


class BusyGpu(Claims):
    """A GPU that is always busy may use a third of a percent of its peak."""

    model = examples.HAND
    weights = inference.weights_read(model, 1, "2 byte").to("GB")
    rate = quantity("250 token/s")

    moved = (rate * weights / quantity("1 token")).to("TB/s")
    share_of_bandwidth = (moved / H200.memory_bandwidth).to("%") | by_hand(
        "250 * 2 * 7.504658e9 / 4.8e12"
    )
    share_of_peak = (
        rate * model.multiplied_parameters * constants.work_inference / H200.peak("bf16")
    ).to("%") | by_hand("250 * 2 * 7.505e9 / 989e12")


class BusyServer(Claims):
    """A server that is never idle lets everybody wait."""

    often = quantity(70, "%")
    nearly_always = quantity(95, "%")

    service = quantity("1 s")
    time_often = queueing.single_server_time(service, often) | by_hand("(1 / 0.3) s")
    time_nearly_always = queueing.single_server_time(service, nearly_always) | by_hand(
        "(1 / 0.05) s"
    )


class FreeBatch(Claims):
    """Sixteen times the clients: each waits twice as long for a token."""

    few = 4
    many = 64
    length = quantity(LENGTH, "token") | by_hand("1024 token")
    few_time = time_of_token(dense_loop("dgx-b200", few)) | by_hand("6.3181 ms")
    many_time = time_of_token(dense_loop("dgx-b200", many)) | by_hand("12.544 ms")
    slower = (many_time / few_time).to("") | by_hand("12.544 / 6.3181")


class FasterLink(Claims):
    """Forty times the bandwidth changes nothing for a small message across an ocean."""

    message = quantity("1 kB")
    slow = quantity("10 Gbit/s")
    fast = quantity("400 Gbit/s")

    latency = (links.round_trip_time(constants.length_pacific) / 2).to("ms") | by_hand(
        "10000 km / 200000 km/s"
    )
    slow_time = links.transfer_time(message, slow, latency)
    fast_time = links.transfer_time(message, fast, latency)
    gain = (slow_time - fast_time).to("µs") | by_hand(
        "8000 bit / 10 Gbit/s - 8000 bit / 400 Gbit/s"
    )


class HalfTheBits(Claims):
    """FP8 trained one model 1.4 times as fast, and four bits serve it a tenth faster."""

    devices = 512
    bf16_step = quantity(PublishedSteps.bf16.measured["step_time"], "s") | by_hand(
        "14.8 s", "@dgxc-25.02-llama3.1-70b"
    )
    fp8_step = quantity(PublishedSteps.fp8.measured["step_time"], "s") | by_hand(
        "10.76 s", "@dgxc-25.02-llama3.1-70b"
    )

    pairs = four_bits_against_eight()
    count = deferred(len)(pairs) | by_hand(
        "20 + 24 + 20 + 24 + 24 + 20",
        "rows of closed_loops.csv, dgx-b200, llama-3-1-70b, fp8 and nvfp4, counted with csv alone",
    )
    middle = quantity(deferred(median)(pairs), "") | by_hand(
        "mean(9.6862 / 8.9412, 10.825 / 9.9319)"
    )
    slower = deferred(sum)(gain < 1 for gain in pairs) | by_hand("3 + 9 + 4 + 10 + 2 + 1")
    worst, most = (
        quantity(deferred(min)(pairs), "") | by_hand("9.2269 / 10.335"),
        quantity(deferred(max)(pairs), "") | by_hand("70.687 / 50.345"),
    )


class MixtureRead(Claims):
    """A batch of a mixture reads nearly all of it."""

    model = examples.MIXTURE
    batch = Mixture.some

    active = model.multiplied_parameters | by_hand(
        "671026419200 param - 248 * 3 * 7168 * 2048 * 58 * 1 param - 129280 * 7168 * 1 param"
    )
    dense_read = inference.weights_read(examples.DENSE, batch, FP8)
    of_dense = (Mixture.read_some / dense_read).to("") | by_hand("584.4 / 69.5")


class GroupedCache(Claims):
    """A cache of grouped queries outgrows the weights."""

    model = examples.DENSE
    heads = model.kv_heads | by_hand("8", "config.json: num_key_value_heads")
    context = quantity("131072 token")

    per_token = transformer.kv_cache_per_token(model) | by_hand(
        "80 * 8 * 2 * 128 * 2 byte / 1 token"
    )
    cache = (per_token * context).to("GB") | by_hand("327680 * 131072 * 1 byte")
    weights = inference.weight_memory(model, FP8).to("GB")
    requests = (weights / cache).to("") | by_hand("70.554 / 42.950")


class EngineKernel(Claims):
    """An engine's own kernel sums a short array several times as fast as NCCL."""

    devices = 8
    size = quantity("512 KiB")
    nccl = communication.time("all_reduce", size, devices, "dgx-b200").needed.to("µs") | by_hand(
        "49.04 µs"
    )
    sums = engine_sums.sums_of("b200", "vllm", devices)
    assert sums is not None
    engine = quantity(sums.time(size.m_as("byte")), "s").to("µs") | by_hand(
        "261 * 0.1 µs", "engine_sums.csv, b200, vllm 0.24.0, 8: 261 tenths at 524 288 bytes"
    )
    ratio = (nccl / engine).to("") | by_hand("49.04 / 26.1")


class RatePerDevice(Claims):
    """One server, one program, one model: the rate of a device is what the clients make it."""

    few, many = (rate_of_device(clients) for clients in (FreeBatch.few, FreeBatch.many))
    few |= by_hand("4 token / 6.3181 ms / 8")
    many |= by_hand("64 token / 12.544 ms / 8")
    ratio = (many / few).to("") | by_hand("637.755 / 79.138")


class UtilizationOfPapers(Claims):
    """One run has two utilisations, and the faster device the lower one."""

    a100, h100 = (deferred(published.row)(f"llm-foundry-{number}") for number in (78, 19))
    parameters = quantity(whole(a100["params"]), "param") | by_hand(
        "64.862437e9 param", "@llm-foundry-benchmarks"
    )
    model_share = quantity(a100.measured["mfu"], "%") | by_hand(
        "53.33 %", "@llm-foundry-benchmarks"
    )
    hardware_share = quantity(a100.measured["hfu"], "%") | by_hand(
        "71.1 %", "@llm-foundry-benchmarks"
    )
    new_share = quantity(h100.measured["mfu"], "%") | by_hand("42.57 %", "@llm-foundry-benchmarks")
    devices = whole(a100["num_devices"]) | by_hand("64", "@llm-foundry-benchmarks")
    gain = quantity(
        h100.measured["tokens_per_s_per_gpu"] / a100.measured["tokens_per_s_per_gpu"], ""
    ) | by_hand("1039 / 410")


class SoldAndUsable(Claims):
    """An advertised sum is halved by the first program that uses it."""

    sparse_peak = B200.sparse_peak("fp4") | by_hand("18 PFLOP/s", "its datasheet")
    dense_peak = B200.peak("fp4") | by_hand("0.5 * 18 PFLOP/s")
    link = H100.link_bandwidth | by_hand("18 * 25 GB/s")
    gradients = quantity("14 GB")

    link_both_ways = 2 * link | by_hand("2 * 450 GB/s")
    time_one_way = (gradients / link).to("ms") | by_hand("14 GB / 450 GB/s")
    time_promised = (gradients / link_both_ways).to("ms") | by_hand("14 GB / 900 GB/s")
    offered = H100.sparse_peak("fp16") | by_hand("1979 TFLOP/s", "its datasheet, with sparsity")
    bandwidth = H100.memory_bandwidth | by_hand("3.35 TB/s", "its datasheet")
    ridge_point = H100.ridge_point("fp16") | by_hand("(989 / 3.35) FLOP/byte")


class Gigabytes(Claims):
    """A disk's terabyte is smaller than a program's, an H100's gigabyte is larger."""

    disk = quantity("1 TB")
    h100_memory = H100.memory_capacity | by_hand("5 * 16 GiB")

    disk_in_binary = disk.to("GiB") | by_hand("(10**12 / 2**30) GiB")
    h100_memory_in_decimal = h100_memory.to("GB") | by_hand("(80 * 2**30 / 10**9) GB")


class CacheHit(Claims):
    """On a GPU a hit in the cache costs more than a CPU's fetch from its second cache."""

    l1_cpu = constants.latency_l1_cpu
    l2_cpu = constants.latency_l2_cpu
    hit_rate = quantity(90, "%")

    l1_gpu = AnchorLatencies.hopper_l1
    # The L2 was measured from the start of the access, the look into L1 included.
    average = memory.average_access_time(
        l1_gpu, 1 - hit_rate, AnchorLatencies.hopper_l2 - l1_gpu
    ) | by_hand("(0.9 * 34.2 cycle + 0.1 * 258.0 cycle) / 1.755 GHz")


class SinglePrecision(Claims):
    """FP32 costs twice the bytes, and far more than twice the arithmetic."""

    energy_ratio = constants.energy_fp32_multiply / constants.energy_fp16_multiply | by_hand(
        "3.7 / 1.1"
    )
    energy_ratio_later = (
        constants.energy_7nm_fp32_multiply / constants.energy_7nm_fp16_multiply
        | by_hand("1.31 / 0.34")
    )
    slowdown = B200.peak("fp16") / B200.vector_peak("fp32") | by_hand("2250 / 75")


class EasyDrafts(Claims):
    """Drafts are worth half as much again on a text that is easy to guess."""

    drafted = 3
    easy = 0.8
    hard = 0.5
    easy_tokens = speculation.speculative_tokens(easy, drafted) | by_hand("1 + 0.8 + 0.64 + 0.512")
    hard_tokens = speculation.speculative_tokens(hard, drafted) | by_hand("1 + 0.5 + 0.25 + 0.125")
    ratio = (easy_tokens / hard_tokens).to("") | by_hand("2.952 / 1.875")


class IdleHours(Claims):
    """An idle hour costs what a busy one does."""

    devices = 8
    price = Rent.published_h200
    throughput = quantity("8000 token/s")
    used = quantity(30, "%")
    full = cost.cost_per_token(devices, price, throughput).to("USD/Mtoken") | by_hand(
        "8 * 3.5 USD / 3600 s / 8000 token/s"
    )
    real = cost.cost_per_token(devices, price, throughput, used).to("USD/Mtoken") | by_hand(
        "(0.9722 / 0.3) USD/Mtoken"
    )


class SlowestCall(Claims):
    """A chain of calls has the pace of its slowest, and the slowest is in the tail."""

    promise = quantity(99, "%")
    beyond = 1 - promise | by_hand("(100 - 99) * 1 %")
    few = 5
    run = "6.0-0010-deepseek-r1-server"
    row = {row["id"]: row for row in datasets.mlperf_rows()}[run]
    half = quantity(number(row["ttft_p50"]), "ms") | by_hand(
        "622.8 ms", "@mlperf-inference-v6-fork: 6.0-0010-deepseek-r1-server"
    )
    tail = quantity(number(row["ttft_p99"]), "ms") | by_hand(
        "1198 ms", "@mlperf-inference-v6-fork: 6.0-0010-deepseek-r1-server"
    )
    calls = 30
    share = quantity(1 - promise.m_as("") ** calls, "").to("%") | by_hand("1 - 0.99**30")


class ItFits(Claims):
    """Weights that fit leave next to no room for requests."""

    used = ServedMemory.share | by_hand("90 %")
    context = quantity("2048 token")

    weights = GroupedCache.weights | by_hand("70553706496 param * 1 byte/param")
    left = (ServedMemory.planned(H100).to("GB") - weights).to("GB") | by_hand(
        "(0.9 * 85.899 - 70.554) GB"
    )
    requests = whole((left / (GroupedCache.per_token * context)).m_as("")) | by_hand(
        "floor(6.756e9 / (327680 * 2048))"
    )


class QuarterOfTheBits(Claims):
    """Weights in a quarter of the bits leave the caches as they were."""

    requests = 32
    context = quantity("8192 token")
    wide_weights = inference.weights_read(examples.DENSE, 1, "2 byte").to("GB") | by_hand(
        "2 * (70553706496 - 128256 * 8192) * 1 byte"
    )
    narrow_weights = inference.weights_read(examples.DENSE, 1, "4.5 bit").to("GB") | by_hand(
        "{wide_weights} / 16 bit * 4.5 bit"
    )
    caches = (requests * GroupedCache.per_token * context).to("GB") | by_hand(
        "32 * 8192 * 327680 byte"
    )
    gain = ((wide_weights + caches) / (narrow_weights + caches)).to("") | by_hand(
        "(139.006 + 85.899) / (39.096 + 85.899)"
    )


class MultipliedGains(Claims):
    """Speedups of parts do not multiply."""

    first_share = quantity(40, "%")
    second_share = quantity(30, "%")
    first, second = 3 | by_hand("3"), 2
    promised = first * second | by_hand("3 * 2")
    whole = scaling.combined_speedup([(first_share, first), (second_share, second)]) | by_hand(
        "1 / (0.3 + 0.4/3 + 0.3/2)"
    )


class HalfPruned(Claims):
    """Half of the weights set to zero save nothing, and then cost more."""

    zeros = sparsity.csr_crossover("2 byte").to("%") | by_hand("2 / (2 + 2)")
    zeros_of_bytes = sparsity.csr_crossover("1 byte").to("%") | by_hand("2 / (1 + 2)")


class EightForOne(Claims):
    """Eight devices write a token sooner than one, and each token costs more."""

    clients = 32
    devices = 8
    alone = time_of_token(dense_loop("dgx-b200", clients, 1)) | by_hand("19.565 ms")
    together = time_of_token(dense_loop("dgx-b200", clients, devices)) | by_hand("9.2269 ms")
    faster = (alone / together).to("") | by_hand("19.565 / 9.2269")
    dearer = (devices / faster).to("") | by_hand("8 / 2.1204")
