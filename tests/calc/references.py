"""Every law once more, by hand: in exact fractions of magnitudes in the laws' own units.

A new law gets a line here; test_law.py holds each law against its line and fails where one lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from typing import Any

Exact = Fraction

TILES = "256x128 128x256 128x192 192x128 128x128 64x256 256x64 64x128 128x64 64x64"


def latent_crossover(context: Any, latent: Any, keys: Any, values: Any) -> Any:
    """What a query adds to either form is its slope; expanding begins with all of the context."""
    made = latent * (keys + values)
    slope = 2 * latent * context + made - (keys + values) * context
    return context * made / slope if slope > 0 else math.inf


def gemm_time(
    m: Any,
    n: Any,
    k: Any,
    rate: Any,
    bandwidth: Any,
    units: Any,
    a: Any,
    b: Any,
    c: Any,
    *rest: Any,
) -> Any:
    """The products' time: the slower of arithmetic in waves and of reading, then writing."""
    products, start = rest
    waves = []
    for tile in TILES.split():
        rows, columns = map(int, tile.split("x"))
        tiles = products * -(-m // rows) * -(-n // columns)
        full = -(-tiles // units) * units * rows * columns
        kept = Fraction((rows * columns / 32768) ** 0.1)
        waves.append(full / (kept * products * m * n))
    arithmetic = 2 * products * m * n * k / rate * min(waves)
    reading = products * k * (m * a + n * b) / bandwidth
    return max(arithmetic, reading) + products * m * n * c / bandwidth + start


def time_in_tiles(
    m: Any,
    n: Any,
    k: Any,
    rate: Any,
    bandwidth: Any,
    units: Any,
    rows: Any,
    columns: Any,
    splits: Any,
    size: Any,
    output: Any,
    products: Any,
    start: Any,
) -> Any:
    """The tile's time: whole waves of parts of tiles, or bytes, then the partial sums."""
    parts = -(-m // rows) * -(-n // columns) * splits * products
    waves = -(-parts // units)
    arithmetic = waves * 2 * rows * columns * (k / splits) / (rate / units)
    moving = products * (m * k * size + k * n * size + m * n * output) / bandwidth
    sums = 0 if splits == 1 else 8 * splits * products * m * n / bandwidth
    return max(arithmetic, moving) + sums + start


def fastest_time(
    m: Any, n: Any, k: Any, rate: Any, bandwidth: Any, units: Any, size: Any, *rest: Any
) -> Any:
    """The least time of all tiles and of splits into parts of 256 elements or more."""
    return min(
        time_in_tiles(m, n, k, rate, bandwidth, units, rows, columns, splits, size, *rest)
        for rows, columns in (map(int, tile.split("x")) for tile in TILES.split())
        for splits in (1, 2, 4, 8, 16)
        if splits == 1 or k >= 256 * splits
    )


def _beyond(z: float) -> float:
    """The mean of what a standard normal number has beyond z."""
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) - z * math.erfc(z / math.sqrt(2)) / 2


def _log1p(value: Any) -> float:
    return -math.inf if value <= -1 else math.log1p(value)


REFERENCES: dict[str, Callable[..., Any]] = {
    "roofline.arithmetic_intensity": lambda operations, traffic: operations / traffic,
    "roofline.ridge_point": lambda peak, bandwidth: peak / bandwidth,
    "roofline.attainable": lambda peak, bandwidth, intensity: (
        peak if bandwidth * intensity > peak else bandwidth * intensity
    ),
    "roofline.bound": lambda peak, bandwidth, intensity: (
        "memory" if intensity < peak / bandwidth else "compute"
    ),
    "roofline.utilization": lambda peak, bandwidth, intensity: (
        1 if intensity > peak / bandwidth else intensity / (peak / bandwidth)
    ),
    "roofline.execution_time": lambda traffic, bandwidth, operations, peak, efficiency, latency: (
        latency + operations / peak / efficiency + traffic / bandwidth
    ),
    "roofline.execution_time_overlapped": (
        lambda traffic, bandwidth, operations, peak, efficiency, latency: (
            latency + sorted([operations / peak / efficiency, traffic / bandwidth])[-1]
        )
    ),
    "hardware.peak_from_clock": lambda clock, units, operations: operations * (units * clock),
    "roofline.launched_time": lambda kernels, kernel, launch, gap: max(
        kernels * launch, kernels * kernel + kernels * gap
    ),
    "roofline.chain_rate": lambda work, cycles, clock, chains: work / (cycles / clock) * chains,
    "gemms.tiles": lambda m, n, rows, columns: -(-m // rows) * -(-n // columns),
    "gemms.tile_efficiency": lambda m, n, rows, columns: (
        m * n / (-(-m // rows) * rows * -(-n // columns) * columns)
    ),
    "gemms.wave_efficiency": lambda tiles, units: tiles / units / -(-tiles // units),
    "gemms.padded": lambda size, multiple: -(-size // multiple) * multiple,
    "gemms.aligned_elements": lambda size, alignment: alignment / size,
    "gemms.resident_blocks": lambda threads, registers, shared, file, capacity, most, blocks: min(
        file // (4 * registers * threads), capacity // shared, most // threads, blocks // 1
    ),
    "gemms.occupancy": lambda blocks, threads, most: blocks * threads / most,
    "gemms.accumulator_size": lambda rows, columns, size: rows * columns * size,
    "gemms.staged_memory": lambda stages, step, size, rows, columns: (
        (rows * step + step * columns) * size * stages
    ),
    "gemms.pipeline_efficiency": lambda k, step, stages: (
        1 - (stages - 1) / (-(-k // step) + stages - 1)
    ),
    "gemms.tile_traffic": lambda m, n, k, size, rows, columns: (
        -(-m // rows) * -(-n // columns) * (rows * k + columns * k) * size
    ),
    "gemms.split_k_traffic": lambda m, n, splits, size: (
        0 if splits == 1 else splits * (2 * m * n * size)
    ),
    "gemms.time_in_tiles": time_in_tiles,
    "gemms.fastest_time": fastest_time,
    "kernels.gemm_time": gemm_time,
    "roofline.gemm_operations": lambda m, n, k: m * n * k * 2,
    "roofline.gemm_traffic": lambda m, n, k, size: m * k * size + k * n * size + m * n * size,
    "roofline.weights_only_intensity": lambda batch, size: 2 * batch / size,
    "roofline.critical_batch_by_weights": lambda ridge, size: ridge / (2 / size),
    "roofline.critical_batch": lambda ridge, inputs, outputs, size: _critical_batch(
        ridge, inputs, outputs, size
    ),
    "roofline.elementwise_operations": lambda elements, per_element: per_element * elements,
    "roofline.elementwise_traffic": lambda elements, arrays, size: size * arrays * elements,
    "scaling.amdahl": lambda serial, processors: processors / (processors * serial + 1 - serial),
    "scaling.amdahl_limit": lambda serial: 1 / serial if serial else math.inf,
    "scaling.gustafson": lambda serial, processors: serial + (1 - serial) * processors,
    # Times of the run on n processors: s and 1 - s; on one processor: s and (1 - s) n.
    "scaling.serial_fraction_of_serial_run": lambda serial, processors: (
        serial / (serial + (1 - serial) * processors)
    ),
    # Times of the serial run: s and 1 - s; on n processors: s and (1 - s) / n.
    "scaling.serial_fraction_of_parallel_run": lambda serial, processors: (
        serial * processors / (serial * processors + 1 - serial)
    ),
    # Amdahl: 1/S = s + (1 - s)/n, solved for s.
    "scaling.serial_fraction": lambda speedup, processors: (
        (1 / speedup - 1 / processors) / (1 - 1 / processors)
    ),
    "scaling.time_saved": lambda fraction, speedup: fraction - fraction / speedup,
    "queueing.requests_in_flight": lambda rate, time: rate * time,
    "queueing.arrival_rate": lambda requests, time: requests / time,
    "queueing.time_in_system": lambda requests, rate: requests / rate,
    "queueing.memory_in_flight": lambda requests, each: requests * each,
    "queueing.max_requests_in_flight": lambda memory, each: memory // each,
    "queueing.max_throughput": lambda memory, each, time: (memory // each) / time,
    "queueing.bytes_in_flight": lambda bandwidth, latency: latency * bandwidth,
    "queueing.server_utilization": lambda rate, time, servers: time / servers * rate,
    "queueing.single_server_time": lambda time, busy: 1 / ((1 - busy) / time),
    "queueing.single_server_tail": lambda time, busy, beyond: (
        float(time / (1 - busy)) * math.log(1 / beyond)
    ),
    "queueing.utilization_within": lambda time, limit, beyond: sorted(
        [0.0, 1 - float(time / limit) * math.log(1 / beyond)]
    )[1],
    # Half of the mean square of a service time, for each one in progress.
    "queueing.single_server_wait": lambda time, busy, spread: (
        busy / time * (time**2 + (spread * time) ** 2) / 2 / (1 - busy)
    ),
    "queueing.bursty_wait": lambda time, busy, gaps, spread: (
        busy / (1 - busy) * (gaps * gaps + spread * spread) / 2 * time
    ),
    "queueing.waiting_probability": lambda busy, servers: _erlang_c(busy, servers),
    "queueing.waiting_time": lambda time, busy, servers: (
        _erlang_c(busy, servers) * float(time / math.floor(servers) / (1 - busy))
    ),
    "queueing.waiting_tail": lambda time, busy, servers, beyond: (
        float(time / math.floor(servers) / (1 - busy))
        * math.log(sorted([1.0, _erlang_c(busy, servers) / float(beyond)])[1])
    ),
    "queueing.batch_waiting_probability": lambda busy, slots, shared, own: _batch(
        busy, slots, shared, own
    )[0],
    "queueing.batch_time": lambda busy, slots, shared, own: _batch(busy, slots, shared, own)[1],
    "queueing.batch_waiting_time": lambda busy, slots, shared, own: _batch(
        busy, slots, shared, own
    )[2],
    "inference.decode_traffic": lambda weights, sequences, context, each: (
        each * context * sequences + weights
    ),
    "inference.sequences_that_fit": lambda memory, weights, context, each, state: (
        (memory - weights) // (state + each * context) if memory > weights else 0
    ),
    "inference.tokens_per_second": lambda sequences, time, each: each / time * sequences,
    "inference.answer_time": lambda first, tokens, each: first + tokens * each - each,
    # 1 + α + … + α^γ, in the closed form of expm1 and log.
    "inference.speculative_tokens": lambda accept, drafted: _accepted(accept, drafted),
    "inference.speculative_speedup": lambda accept, drafted, cost: (
        _accepted(accept, drafted) / float(1 + drafted * cost)
    ),
    "inference.speculative_operations": lambda accept, drafted, cost: (
        float(1 + drafted + drafted * cost) / _accepted(accept, drafted)
    ),
    "serving.static_batch_share": lambda mean, longest: 1 / (longest / mean),
    "serving.chunk_within": lambda limit, peak, operations, writing: sorted(
        [Fraction(0), peak * limit // operations - writing]
    )[1],
    "serving.chunk_rereads": lambda length, chunk: sorted(
        [Fraction(0), (length * length / chunk - length) / 2]
    )[1],
    "serving.computed_rate": lambda rate, hits: rate - hits * rate,
    "serving.cache_rate": lambda each, rate: rate * each,
    "serving.pool_ratio": lambda prompt, answer, read, written: prompt * written / (answer * read),
    "serving.tree_tokens": lambda accept, branches, depth: _in_a_tree(
        1 - float(1 - accept) ** float(branches), depth
    ),
    "serving.drafting_gain": lambda tokens, step, check, drafted, draft: (
        tokens / (check / step + drafted * draft / step)
    ),
    "serving.last_batch_for_drafts": lambda batch, drafted: 1 / ((1 + drafted) / batch),
    "experts.tokens_per_expert": lambda tokens, devices, experts, each: (
        tokens * devices / (experts / each)
    ),
    "experts.critical_tokens": lambda ridge, experts, each, size: (
        ridge / (2 / size) / (each / experts)
    ),
    "experts.devices_reached": lambda each, devices: (
        float(devices) * -math.expm1(float(each) * _log1p(-1 / devices))
    ),
    "experts.fullest_load": lambda mean, devices: (
        float(mean) + math.sqrt(2 * float(mean) * math.log(devices))
    ),
    "experts.expert_capacity": lambda tokens, experts, each, factor: (
        tokens * each / experts * factor
    ),
    "experts.dropped_share": lambda mean, factor: (
        _beyond(float(factor - 1) * math.sqrt(mean)) / math.sqrt(mean)
    ),
    "context_parallelism.ring_block": lambda rate, bandwidth, group, size: (
        rate / (2 / size) / (bandwidth * group)
    ),
    "context_parallelism.ring_traffic": lambda tokens, heads, key, value, n, size: (
        (tokens - tokens / n) * heads * (key + value) * size
    ),
    "context_parallelism.ulysses_traffic": lambda tokens, heads, groups, key, value, n, size: (
        tokens / n * (1 - 1 / n) * size * (heads * (key + value) + groups * (key + value))
    ),
    "context_parallelism.ring_time": lambda compute, transfer, n: (
        compute + sorted([compute, transfer])[1] * (n - 1)
    ),
    "context_parallelism.new_share_for_keys": lambda heads, groups: groups / (heads / 2),
    "cost.run_cost": lambda devices, time, price: price * time * devices,
    "cost.cost_per_token": lambda devices, price, rate, busy: price / rate / busy * devices,
    "cost.price_of_ownership": lambda purchase, life, power, electricity, pue: (
        (purchase + life * power * electricity * pue) / life
    ),
    "cost.break_even_utilization": lambda ownership, rent: 1 / (rent / ownership),
    "cost.energy_per_token": lambda devices, power, rate: power / rate * devices,
    "cost.facility_energy": lambda energy, pue: pue * energy,
    "cost.carbon": lambda energy, intensity: intensity * energy,
    "training.training_flops": lambda parameters, tokens, work: parameters * tokens * work,
    "training.inference_flops": lambda parameters, tokens, work: parameters * tokens * work,
    "training.training_time": lambda parameters, tokens, devices, peak, mfu, work: (
        parameters * tokens * work / peak / devices / mfu
    ),
    "training.mfu": lambda parameters, tokens, devices, peak, time, work: (
        parameters * tokens * work / time / peak / devices
    ),
    # 6 l T d for attention over half of the context, beside 6 · 12 l d² for the parameters.
    "training.attention_overhead": lambda context, width: 6 * context * width / (72 * width**2),
    "training.compute_optimal_tokens": lambda parameters, each: each * parameters,
    "training.compute_optimal_parameters": lambda operations, each, work: (
        math.sqrt(operations) / math.sqrt(each * work)
    ),
    "training.least_work_parameters": lambda loss, a, alpha, beta: (
        (a / loss + a * alpha / (beta * loss)) ** (1 / alpha)
    ),
    "training.least_work_tokens": lambda loss, b, beta, alpha: (
        (b / loss + b * beta / (alpha * loss)) ** (1 / beta)
    ),
    "training.pretraining_loss": lambda size, data, e, a, alpha, b, beta: (
        e
        + a * math.exp(-float(alpha) * math.log(size))
        + b * math.exp(-float(beta) * math.log(data))
    ),
    "training.checkpoint_interval_first_order": lambda checkpoint, failures: math.sqrt(
        2 * checkpoint * failures
    ),
    # A correction in powers of √(δ / 2M).
    "training.checkpoint_interval": lambda checkpoint, failures: (
        math.sqrt(2 * checkpoint * failures)
        * (1 + math.sqrt(checkpoint / 2 / failures) / 3 + float(checkpoint / failures) / 18)
        - checkpoint
        if checkpoint < 2 * failures
        else failures
    ),
    "training.time_between_failures": lambda each, devices: 1 / (devices / each),
    "rollouts.informative_share": lambda success, group: (
        1 - success**group - (1 - success) ** group
    ),
    "rollouts.weight_update_time": lambda weights, bandwidth, slices: weights / slices / bandwidth,
    "rollouts.staleness": lambda in_flight, batch: in_flight / batch,
    "rollouts.generating_share": lambda generation, training: 1 / (1 + training / generation),
    "failures.time_between_interruptions": lambda device, devices, shared, group: (
        1 / (devices / device + devices / group / shared)
    ),
    "failures.silent_corruptions": lambda devices, time, between: devices * time / between,
    "failures.lost_to_corruption": lambda between, detection, restart: (
        (detection + restart) / (between + detection + restart)
    ),
    "failures.goodput_of_spares": lambda devices, spares, goodput: (
        goodput * devices / (devices + spares)
    ),
    "failures.checkpoint_bandwidth": lambda size, interval, share: size / interval / share,
    "failures.storage_kept": lambda size, reach, interval: size * reach / interval + size,
    "failures.loading_bandwidth": lambda rate, size: rate * size,
    "finetuning.adapter_parameters": lambda inputs, outputs, rank: rank * inputs + rank * outputs,
    "finetuning.factored_variance": lambda rows, columns, size: rows * size + columns * size,
    "finetuning.frozen_training_flops": lambda frozen, adapters, tokens, around, work: (
        around * frozen * tokens + work * adapters * tokens
    ),
    "finetuning.loss_memory": lambda tokens, vocabulary, parts, size: (
        tokens * vocabulary * size + tokens * vocabulary * 8 / parts
    ),
    "finetuning.context_that_fits": lambda capacity, held, per_token: max(
        (capacity - held) // per_token, 0
    ),
    "training.goodput": lambda interval, checkpoint, restart, failures: _goodput(
        *(Decimal(float(each)) for each in (interval, checkpoint, restart, failures))
    ),
    "parallelism.state_memory": lambda p, w, g, o, nw, ng, no: p * w / nw + p * g / ng + p * o / no,
    # In thin slices of v to a device: p - 1 of them come on top of those of p microbatches.
    "parallelism.activations_in_flight": lambda kept, slices, stages, batches, thin: (
        kept
        / slices
        / (stages * thin)
        * sorted([stages * thin + (stages - 1) * (thin > 1), batches * thin])[0]
    ),
    "parallelism.sharded_traffic": lambda size, n, batches, reductions: (
        2 * batches * (size - size / n) + reductions * (size - size / n)
    ),
    "parallelism.hybrid_traffic": lambda size, devices, groups: (
        2 * (size - size / groups) / devices
    ),
    "parallelism.expert_traffic": lambda tokens, width, experts, devices, there, back: (
        width * experts * tokens * (there + back) * (1 - 1 / devices)
    ),
    "parallelism.stage_traffic": lambda tokens, width, batches, size: (
        tokens * size * width * batches
    ),
    "parallelism.hfu": lambda mfu, again: mfu + mfu * again / 3,
    "training.offloading_time": lambda parameters, link, host, sent, updated: (
        parameters * sent / link + parameters * updated / host
    ),
    "training.model_memory": lambda parameters, each: each * parameters,
    "energy.arithmetic_energy": lambda operations, each: each * operations,
    "energy.movement_energy": lambda traffic, each: each * traffic,
    "energy.energy_of_run": lambda power, time: time * power,
    "energy.energy_efficiency": lambda peak, power: 1 / (power / peak),
    "memory.clock_cycles": lambda latency, clock: clock * latency,
    "memory.human_time": lambda latency, yardstick, step: latency * step / yardstick,
    "memory.average_access_time": lambda hit, rate, penalty: (
        (1 - rate) * hit + rate * (hit + penalty)
    ),
    "memory.working_set": lambda side, size, tiles: side * size * side * tiles,
    "memory.largest_tile": lambda capacity, size, tiles: _whole_root(capacity / size / tiles),
    "memory.tile_intensity": lambda side, size: 2 * side**3 / (2 * side**2 * size),
    "memory.result_tile_intensity": lambda rows, columns, size: 2 / (size / rows + size / columns),
    "memory.tile_for_intensity": lambda intensity, size: size * intensity,
    "links.transfer_time": lambda size, bandwidth, latency: size / bandwidth + latency,
    "links.effective_bandwidth": lambda size, bandwidth, latency: (
        bandwidth * size / (latency * bandwidth + size)
    ),
    "links.half_performance_size": lambda bandwidth, latency: bandwidth * latency,
    "links.bandwidth_delay_product": lambda bandwidth, round_trip: round_trip * bandwidth,
    "links.windowed_bandwidth": lambda window, round_trip, bandwidth: sorted(
        [window / round_trip, bandwidth]
    )[0],
    "links.round_trip_time": lambda distance, speed: distance / speed + distance / speed,
    "links.reach": lambda round_trip, speed: round_trip * speed / 2,
    "quantization.symmetric_step": lambda largest, bits: 2 * largest / (2**bits - 2),
    "quantization.asymmetric_step": lambda span, bits: span / (2**bits - 1),
    "quantization.rounding_error_bound": lambda step: step / 2,
    # The mean square of an error that is uniform within a step s = 2 c rms / 2^b is s² / 12.
    "quantization.expected_sqnr": lambda bits, crest: (
        -10 * math.log10((2 * crest / 2**bits) ** 2 / 12)
    ),
    "quantization.bytes_per_parameter": lambda code, group, scale, zero_point: (
        (group * code + scale + zero_point) / group
    ),
    "quantization.products_without_overflow": lambda largest, other, bits: (
        (2 ** (bits - 1) - 1) / largest // other
    ),
    "calibration.error_left_by_compensation": lambda rho: (1 - rho) * (1 + rho),
    "calibration.smoothing_scale": lambda x, w, strength: x**strength * w**strength / w,
    "sparsity.dense_storage": lambda elements, size: elements * size,
    "sparsity.csr_storage": lambda nonzeros, rows, size, index, pointer: (
        nonzeros * size + nonzeros * index + rows * pointer + pointer
    ),
    "sparsity.bitmask_storage": lambda nonzeros, elements, size, mask: (
        elements * mask + nonzeros * size
    ),
    # Of N elements (1 - s) N are left: (1 - s)(m + i) = m, and (1 - s) m + b = m.
    "sparsity.csr_crossover": lambda size, index: 1 - size / (size + index),
    "sparsity.bitmask_crossover": lambda size, mask: 1 - (size - mask) / size,
    "collectives.all_gather_traffic": lambda size, n: size - size / n,
    "collectives.all_reduce_traffic": lambda size, n: 2 * size - 2 * size / n,
    "collectives.ring_all_gather": lambda size, n, bandwidth, latency: (
        n * latency - latency + (size - size / n) / bandwidth
    ),
    "collectives.ring_reduce_scatter": lambda size, n, bandwidth, latency: (
        n * latency - latency + (size - size / n) / bandwidth
    ),
    "collectives.ring_all_reduce": lambda size, n, bandwidth, latency: (
        2 * (n * latency - latency) + 2 * (size - size / n) / bandwidth
    ),
    "collectives.tree_all_reduce": lambda size, n, bandwidth, latency: (
        2 * _levels(n) * latency + 2 * _levels(n) * size / bandwidth
    ),
    "collectives.double_tree_all_reduce": lambda size, n, bandwidth, latency: (
        2 * (_levels(n) * latency + size / bandwidth) if n > 1 else 0
    ),
    "collectives.ring_crossover": lambda n, bandwidth, latency: (
        n * latency * bandwidth * sorted([n - 1 - _levels(n), 0])[1]
    ),
    "collectives.hierarchical_all_reduce": (
        lambda size, each, nodes, bandwidth, outer_bandwidth, latency, outer_latency: (
            2 * (each - 1) * latency
            + 2 * (nodes - 1) * outer_latency
            + 2 * (size - size / each) / bandwidth
            + 2 * (size / each - size / each / nodes) / outer_bandwidth
        )
    ),
    "collectives.all_to_all": lambda size, n, bandwidth, latency: (
        n * latency - latency + (size - size / n) / bandwidth
    ),
    # Half a ring to the farthest, by two links; whole rounds of one message; sums in the switch.
    "collectives.bidirectional_ring_all_gather": lambda size, n, bandwidth, latency: (
        n // 2 * latency + (size - size / n) / bandwidth / 2
    ),
    "collectives.direct_all_gather": lambda size, n, bandwidth, latency: (
        latency + (size - size / n) / bandwidth if n > 1 else 0
    ),
    "collectives.one_shot_all_reduce": lambda size, n, bandwidth, latency: (
        latency + (n * size - size) / bandwidth if n > 1 else 0
    ),
    "collectives.in_switch_all_reduce": lambda size, n, bandwidth, latency: (
        latency + size / bandwidth + latency if n > 1 else 0
    ),
    "collectives.all_ports_all_reduce": (
        lambda size, each, nodes, bandwidth, outer, latency: (
            2 * (each * nodes - 1) * latency
            + 2 * (size - size / each / nodes) / sorted([bandwidth, each * outer])[0]
        )
    ),
    "collectives.chunked_hierarchical_all_reduce": (
        lambda size, each, nodes, bandwidth, outer_bandwidth, latency, outer_latency: (
            2
            * sorted(
                [
                    (each - 1) * latency + (size - size / each) / bandwidth,
                    (nodes - 1) * outer_latency
                    + (size / each - size / each / nodes) / outer_bandwidth,
                ]
            )[1]
        )
    ),
    "collectives.torus_all_gather": lambda size, n, links, bandwidth, hops, latency: (
        hops * latency + (size - size / n) / bandwidth / links
    ),
    "collectives.torus_all_to_all": lambda size, side, bandwidth, hops, latency: (
        hops * latency + side * side // 4 * size / bandwidth / side / 2
    ),
    "collectives.tree_broadcast": lambda size, n, bandwidth, latency: (
        _levels(n) * latency + _levels(n) * size / bandwidth
    ),
    "collectives.chain_broadcast": lambda size, n, bandwidth, latency: (
        n * latency - latency + size / bandwidth if n > 1 else 0
    ),
    "collectives.algorithm_bandwidth": lambda size, time: size / time,
    "collectives.bus_bandwidth": lambda size, time, n: (2 * size - 2 * size / n) / time,
    "collectives.bubble_fraction": lambda stages, batches, slices: (
        1 - batches / (batches + (stages - 1) / slices)
    ),
    "collectives.bubble_overhead": lambda stages, batches, slices: (stages - 1) / slices / batches,
    "collectives.bubble_time": lambda stages, forward, inputs, weights, delayed: max(
        0 * forward, (stages - 1) * (forward + inputs + (1 - delayed) * weights)
    ),
    "collectives.step_time": lambda compute, talk, overlap, behind: (
        compute + talk - sorted([behind * overlap * compute, talk * overlap])[0]
    ),
    "collectives.scaling_efficiency": lambda compute, talk, overlap, behind: (
        compute / (compute + talk - sorted([behind * overlap * compute, talk * overlap])[0])
    ),
    "attention.state_memory": lambda layers, heads, keys, values, size: (
        size * values * keys * heads * layers
    ),
    "attention.convolution_memory": lambda layers, channels, kernel, size: (
        kernel * channels * layers * size - channels * layers * size
    ),
    "attention.recurrence_flops": lambda layers, heads, keys, values, products: (
        products * (2 * keys * values) * heads * layers
    ),
    # A multiply and an add in each product, over a read and a write of each number.
    "attention.recurrence_intensity": lambda products, size: 2 * products / (2 * size),
    # Scores for each group, values for each head, then writing and reading each head's state.
    "attention.chunked_state_flops": lambda chunk, layers, heads, groups, state, head: (
        2 * chunk * state * groups * layers
        + 2 * chunk * head * heads * layers
        + 2 * (2 * state * head) * heads * layers
    ),
    # Keys on keys, keys corrected, scores; values corrected, weighted; the state thrice.
    "attention.chunked_delta_flops": lambda chunk, layers, heads, keys, values: (
        layers * heads * (3 * 2 * chunk * keys + 2 * 2 * chunk * values + 3 * 2 * keys * values)
    ),
    "attention.index_flops": lambda context, layers, heads, width: (
        heads * (2 * width) * context * layers
    ),
    "attention.index_bytes_per_token": lambda layers, width, size: size * width * layers,
    # Scores over latents with positions, sums of latents; all of it once, and queries and results.
    "attention.latent_intensity": lambda queries, context, heads, latent, rotary, size: (
        (2 * (latent + rotary) + 2 * latent)
        * heads
        * queries
        * context
        / (size * (latent + rotary) * context + size * queries * heads * (2 * latent + rotary))
    ),
    "attention.absorbed_flops": lambda queries, context, heads, latent, rotary, keys, values: (
        queries
        * heads
        * (
            2 * context * (latent + rotary)
            + 2 * context * latent
            + 2 * latent * keys
            + 2 * latent * values
        )
    ),
    "attention.expanded_flops": lambda queries, context, heads, latent, rotary, keys, values: (
        heads
        * (
            2 * queries * context * (keys + rotary)
            + 2 * queries * context * values
            + 2 * context * latent * keys
            + 2 * context * latent * values
        )
    ),
    "attention.latent_crossover": latent_crossover,
    "transformer.projection_flops": lambda parameters, work: parameters * work,
    # A score for each position and head, d_k terms long, and a sum of values, d_v wide.
    "transformer.attention_flops": lambda context, layers, heads, keys, values: (
        2 * keys * context * heads * layers + 2 * values * context * heads * layers
    ),
    # The sum of 1, 2, …, n over n.
    "transformer.causal_context": lambda length: length * (length + 1) / 2 / length,
    # The sum of 1, 2, …, m and n − m times m, over n; m is the smaller of n and w.
    "transformer.causal_window": lambda length, window: (
        (length + 1) / 2
        if length <= window
        else (window * (window + 1) / 2 + (length - window) * window) / length
    ),
    "transformer.windowed_context": lambda context, window, share: (
        context - share * max(context - window, 0)
    ),
    "transformer.batch_tokens": lambda length, sequences: length * sequences,
    "transformer.attention_crossover": lambda projections, layers, heads, keys, values: (
        projections / layers / heads / 2 / (keys + values)
    ),
    "transformer.kv_bytes_per_token": lambda layers, heads, keys, values, size: (
        (keys * size + values * size) * heads * layers
    ),
    "transformer.latent_bytes_per_token": lambda layers, latent, rotary, size: (
        (latent * size + rotary * size) * layers
    ),
    "transformer.layer_activations": lambda width, attention, hidden, size, mask, norms: (
        2 * width * size
        + norms * width * size
        + attention * size
        + hidden * size
        + 2 * width * mask
    ),
    "transformer.score_activations": lambda context, heads, size, mask: (
        context * heads * size + (context * heads * (size + mask) if mask else 0)
    ),
    # An expert is left out by all tokens with probability (1 - s)^T.
    "transformer.experts_used": lambda experts, share, tokens: (
        experts - experts * (1 - share) ** tokens
    ),
    "convolution.convolution_flops": lambda height, width, inputs, outputs, kernel, groups: (
        2 * (inputs * kernel * kernel) * (outputs * height * width) / groups
    ),
    "convolution.layer_traffic": lambda weights, read, written, batch, size: (
        weights * size + read * batch * size + written * batch * size
    ),
    "convolution.live_memory": lambda read, written, held, size: (
        read * size + written * size + held * size
    ),
    "convolution.pointwise_intensity": lambda inputs, outputs, size: (
        2 / (size / inputs + size / outputs)
    ),
    "convolution.depthwise_intensity": lambda kernel, size: kernel * kernel / size,
    "encoder_decoder.cross_attention_flops": lambda source, layers, heads, width: (
        4 * (heads * width) * (layers * source)
    ),
    "encoder_decoder.cross_cache": lambda source, layers, heads, width, size: (
        (heads * width) * size * layers * source * 2
    ),
    "encoder_decoder.self_cache": lambda written, layers, heads, width, size: (
        (heads * width) * size * layers * written * 2
    ),
    "diffusion.passes_of_an_image": lambda steps, passes: passes * steps,
    "diffusion.image_tokens": lambda height, width, patch: (height / patch) * (width / patch),
    "diffusion.joint_attention_flops": lambda tokens, blocks, width: (
        4 * (tokens * width) * tokens * blocks
    ),
    "diffusion.image_time": lambda work, passes, rate: work / rate * passes,
    "recommenders.row_traffic": lambda width, size, piece: -(-(width * size) // piece) * piece,
    "recommenders.lookup_traffic": lambda lookups, row: row * lookups,
    "recommenders.rows_in_flight": lambda bandwidth, latency, row: latency / row * bandwidth,
    "recommenders.devices_for_tables": lambda rows, width, capacity, size: (
        -(-(rows * width * size) // capacity)
    ),
    "recommenders.pooled_traffic": lambda tables, width, devices, size: (
        tables * width * size - tables * width * size / devices
    ),
    "roofline.compute_time": lambda operations, peak, efficiency: operations / efficiency / peak,
    "roofline.efficiency": lambda operations, time, peak: operations / time / peak,
    # The derivative of n / (n s + 1 − s), by the quotient rule.
    "scaling.amdahl_slope": lambda serial, processors: (
        (processors * serial + 1 - serial - processors * serial)
        / (processors * serial + 1 - serial) ** 2
    ),
    # Gustafson: S = s + (1 − s) n, solved for s.
    "scaling.scaled_serial_fraction": lambda speedup, processors: (
        (speedup - processors) / (1 - processors)
    ),
    "scaling.universal_scalability": lambda processors, contention, coherency: (
        1 / ((1 - contention) / processors + contention + coherency * (processors - 1))
    ),
    "scaling.most_useful_processors": lambda contention, coherency: (
        math.sqrt(1 - contention) / math.sqrt(coherency) if coherency else math.inf
    ),
    # The whole takes 1 − f + f / s of its time, which is to be 1 / S.
    "scaling.part_speedup": lambda fraction, speedup: (
        fraction * speedup / (1 - (1 - fraction) * speedup)
        if (1 - fraction) * speedup < 1
        else math.inf
    ),
    "training.mfu_of_operations": lambda operations, devices, peak, time: (
        operations / time / peak / devices
    ),
    "training.devices_needed": lambda parameters, tokens, time, peak, mfu, work: math.ceil(
        parameters * tokens * work / time / peak / mfu
    ),
    "training.time_at_throughput": lambda tokens, throughput: 1 / (throughput / tokens),
    "inference.kv_cache_memory": lambda sequences, context, each: each * context * sequences,
    "parallelism.stage_activations": lambda kept, stage, stages, batches, slices: (
        kept / slices / stages * sorted([0, stages + 1 - stage, batches])[1]
    ),
    # The time of the traffic of an all-reduce, over that of the backward pass of one token.
    "parallelism.data_parallel_tokens": lambda n, peak, bandwidth, gradient, work: (
        (2 * gradient - 2 * gradient / n) / bandwidth / (work / peak)
    ),
    # Slices n where 2 (n − 1) d s / BW / n is the time of 2 P / n operations.
    "parallelism.fsdp_and_tensor_split": lambda tokens, width, n, a, b: Fraction(
        float(tokens * n * a / width / b) ** 0.5
    ),
    "parallelism.fsdp_and_tensor_tokens": lambda peak, bandwidth, width, a, b, size: (
        (peak / bandwidth * size / 2) * (peak / bandwidth * size / 2) / width / a / b
    ),
    "parallelism.weight_stationary_traffic": lambda tokens, width, size: (
        size * (2 * tokens) * width
    ),
    "parallelism.weight_stationary_2d_traffic": lambda tokens, width, inner, n, size: (
        4 * tokens * size * Fraction(float(width * inner / n) ** 0.5)
    ),
    "parallelism.tensor_parallel_limit": lambda parameters, width, peak, bandwidth, size, work: (
        1 + parameters * work / peak / (2 * width * size / bandwidth)
    ),
    "collectives.all_gather_bus_bandwidth": lambda size, time, n: (size - size / n) / time,
    # Two products of 2 n c d operations in each of g heads; 2 g n d and 2 c d elements to move.
    "transformer.logits_memory": lambda tokens, vocabulary, size: size * vocabulary * tokens,
    "transformer.attention_fusion_gain": lambda ridge, width, crossings, size: (
        ridge * crossings * size / width / 4
    ),
    "transformer.exponentials_over_products": lambda peak, rate, width: peak / rate / width / 4,
    "transformer.fused_attention_intensity": lambda queries, context, heads, size: (
        4 * queries * context * heads / (2 * heads * queries * size + 2 * context * size)
    ),
}


def _critical_batch(ridge: Exact, inputs: Exact, outputs: Exact, size: Exact) -> Any:
    """Solves B · i · o · 2 = ridge · size · (i · o + B · (i + o)) for B."""
    slope = inputs * outputs * 2 - ridge * size * (inputs + outputs)
    return ridge * size * inputs * outputs / slope if slope > 0 else math.inf


def _erlang_c(busy: Exact, servers: Exact) -> float:
    """From the probabilities of a Poisson variable, as logarithms; of whole servers."""
    count = math.floor(servers)
    log_load = math.log(busy * count)
    terms = [each * log_load - math.lgamma(each + 1) for each in range(count + 1)]
    *free, full = (math.exp(each - max(terms)) for each in terms)
    waiting = full / float(1 - busy)
    return waiting / (math.fsum(free) + waiting)


def _batch(busy: Exact, slots: Exact, shared: Exact, own: Exact) -> tuple[float, float, float]:
    """Share that waits, mean time in the batch and mean wait: sums over a birth-death chain."""
    count = math.floor(slots)
    rate = float(busy * count / (shared + count * own))
    logarithms = [0.0]
    for present in range(1, count + 1):
        taken = float(shared + present * own)
        logarithms.append(logarithms[-1] + math.log(rate * taken / present))
    chances = [math.exp(each - max(logarithms)) for each in logarithms]
    chances[-1] /= float(1 - busy)  # and all states with a queue
    total = math.fsum(chances)
    inside = math.fsum(present * chance for present, chance in enumerate(chances)) / total
    waiting = chances[-1] / total * float(busy / (1 - busy))  # the mean length of the queue
    return chances[-1] / total, inside / rate, waiting / rate


def _in_a_tree(accept: float, depth: Any) -> Any:
    return depth + 1 if accept == 1 else _accepted(Fraction(accept), depth)


def _accepted(accept: Exact, drafted: Exact) -> float:
    return math.expm1(float(drafted + 1) * math.log(accept)) / float(accept - 1)


def _goodput(
    interval: Decimal, checkpoint: Decimal, restart: Decimal, failures: Decimal
) -> Decimal:
    """Daly's wall clock time of a run: T_w = M e^(R/M) (e^((τ+δ)/M) - 1) T_s / τ."""
    with localcontext(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN):
        wall = (restart / failures).exp() * (((interval + checkpoint) / failures).exp() - 1)
        return interval / (failures * wall)


def _whole_root(square: Exact) -> int:
    return math.isqrt(math.floor(square))


def _levels(devices: Exact) -> int:
    """Doublings of one device until there are enough."""
    levels = 0
    while 2**levels < devices:
        levels += 1
    return levels
