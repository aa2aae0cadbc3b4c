"""What the chapter "Training time" quotes."""

from __future__ import annotations

from calc import collectives, constants, energy, hardware, machines, runs, training
from calc.core.units import Quantity, QuantityLike, quantity
from calc.derivations.collectives import Overlap, TwoNetworks
from calc.derivations.precision import with_digits_of
from calc.derivations.quoting import Row


class FirstEstimate:
    """A model of a billion parameters takes one A100 eleven days."""

    a100 = hardware.get("a100")
    peak = a100.peak("bf16")
    tdp = a100.tdp
    parameters = quantity("1B param")
    tokens = quantity("20B token")
    devices = 1
    mfu = quantity(40, "%")
    work_per_token = constants.work_training

    time = training.training_time(parameters, tokens, devices, peak, mfu)
    sparse_mfu = training.mfu(parameters, tokens, devices, a100.sparse_peak("bf16"), time).to("%")
    energy = energy.energy_of_run(tdp, time).to("kWh")


class PublishedRuns:
    """The equation gives the work that reports print, and for PaLM two thirds of the time."""

    palm = runs.get("palm-540b")
    llama2 = runs.get("llama-2-70b")
    palm_mfu = palm.mfu
    palm_mfu_with_attention = palm.mfu_with_attention
    palm_hfu = palm.hfu
    llama3_mfu = runs.get("llama-3-1-405b").mfu
    all = tuple(run for run in map(runs.get, runs.names()) if run.publishes("work"))

    palm_overall = training.mfu(
        palm.parameters, palm.tokens, 1, palm.device_peak, palm.device_time
    ).to("%")
    palm_ratio = palm.device_time / training.training_time(
        palm.parameters, palm.tokens, 1, palm.device_peak, palm.mfu
    )
    llama2_overall = training.mfu(
        llama2.parameters, llama2.tokens, 1, llama2.device_peak, llama2.device_time
    ).to("%")

    @staticmethod
    def work_row(run: runs.Run) -> Row:
        """Operations by the equation, and as reported."""
        computed = training.training_flops(run.parameters, run.tokens).to("ZFLOP")
        reported = run.work.to("ZFLOP")
        ratio = with_digits_of(computed / reported, run.parameters, run.tokens, run.work)
        parameters, tokens = run.parameters.m_as("param") / 1e9, run.tokens.m_as("token") / 1e9
        return run.name, parameters, tokens, computed, reported, ratio


class Attention:
    """Six operations for each parameter and token forget attention, until contexts are long."""

    width = 4096
    context = 4096
    long_context = 131072

    overhead = training.attention_overhead(context, width).to("%")
    long_overhead = training.attention_overhead(long_context, width).to("%")


class ComputeOptimal:
    """About twenty tokens for each parameter make the best of a budget of operations."""

    tokens_per_parameter = constants.tokens_per_parameter_optimal
    gpt3 = runs.get("gpt-3-175b")
    llama3 = runs.get("llama-3-1-405b")
    parameters = quantity("7B param")

    tokens = training.compute_optimal_tokens(parameters)
    gpt3_tokens_per_parameter = gpt3.tokens / gpt3.parameters
    llama3_tokens_per_parameter = llama3.tokens / llama3.parameters


class Cluster:
    """Gradients cross the network at every step, however short the arithmetic has become."""

    machine = machines.get("dgx-h100")
    peak = machine.device.peak("bf16")
    node = machine.domain
    port = TwoNetworks.port
    leaving = TwoNetworks.leaving
    network = TwoNetworks.reached
    behind = Overlap.backward
    parameters = quantity("7B param")
    mfu = FirstEstimate.mfu
    sequences = 1024
    context = 4096
    numbers = (64, 128, 256, 512, 1024)
    before = 512
    after = 1024

    tokens = training.compute_optimal_tokens(parameters)
    batch = quantity(sequences * context, "token")
    steps = tokens / batch
    gradients = (parameters * constants.size_gradient_fp16).to("GB")
    state = training.model_memory(parameters, training.recipe("adam-mixed").bytes_per_parameter)
    one_device = training.training_time(parameters, batch, 1, peak, mfu)
    one_device_run = training.training_time(parameters, tokens, 1, peak, mfu)
    measured_devices = collectives.time("all_reduce", gradients, after, machine).measured[0].devices
    most_exchange = (2 * gradients / network).to("ms")
    knee = behind * one_device / most_exchange
    tokens_per_device = batch / knee
    tokens_at_best = batch * (2 * gradients / leaving) / (behind * one_device)

    @classmethod
    def arithmetic(cls, devices: QuantityLike) -> Quantity:
        """Time of a step's arithmetic."""
        return training.training_time(cls.parameters, cls.batch, devices, cls.peak, cls.mfu)

    @classmethod
    def all_reduce(cls, devices: int) -> Quantity:
        """Time of a step's sum of gradients, as measured curves let one expect it."""
        exchange = collectives.time("all_reduce", cls.gradients, devices, cls.machine)
        return exchange.expected  # type: ignore[return-value]

    @classmethod
    def run_time(cls, devices: int, overlap: float) -> Quantity:
        """Time of the whole run, with this fraction hidden of what the backward pass can hide."""
        step = collectives.step_time(
            cls.arithmetic(devices), cls.all_reduce(devices), overlap, cls.behind
        )
        time: Quantity = cls.steps * step
        return time

    @classmethod
    def row(cls, devices: int) -> Row:
        """A step's parts, the run between its bounds, and what the last doubling gained."""
        hidden, added = cls.run_time(devices, 1), cls.run_time(devices, 0)
        return (
            devices,
            cls.arithmetic(devices).to("ms"),
            cls.all_reduce(devices).to("ms"),
            hidden.to("h"),
            cls.run_time(devices // 2, 1) / hidden,
            added.to("h"),
            cls.run_time(devices // 2, 0) / added,
        )


class LastDoubling:
    """The last doubling before the batch is used up costs little more than it saves."""

    before = Cluster.before
    after = Cluster.after

    time_before = Cluster.run_time(before, 0).to("h")
    time = Cluster.run_time(after, 0).to("h")
    gain = time_before / time
    cost = 2 / gain
    overlapped_before = Cluster.run_time(before, 1).to("h")
    overlap_saves = (1 - overlapped_before / time_before).to("%")
    efficiency = collectives.scaling_efficiency(
        Cluster.arithmetic(after), Cluster.all_reduce(after), 0
    ).to("%")
    by_hand = quantity("965 ms") / quantity("530 ms")


class EnergyOfRun:
    """A run that was published in device-hours has an energy, at most."""

    device_time = runs.get("llama-2-70b").device_time

    energy = energy.energy_of_run(hardware.get("a100").tdp, device_time).to("MWh")


class WeekOfTraining:
    """Seven billion parameters, a trillion tokens, 256 devices: five days."""

    h100 = hardware.get("h100")
    parameters = quantity("7B param")
    tokens = quantity("1T token")
    devices = 256
    mfu = FirstEstimate.mfu

    time = training.training_time(parameters, tokens, devices, h100.peak("bf16"), mfu)
    by_hand = (quantity("4.2e22 FLOP") / quantity("100 PFLOP/s")).to("day")


class ImpossibleReport:
    """A utilisation above one says that an input is wrong."""

    a100 = hardware.get("a100")
    parameters = quantity("7B param")
    tokens = quantity("1T token")
    devices = 64
    time = quantity("3 week")

    mfu = training.mfu(parameters, tokens, devices, a100.peak("bf16"), time).to("%")
    shortest = training.training_time(parameters, tokens, devices, a100.peak("bf16"), 1)
    by_hand = (quantity("4.2e22 FLOP") / quantity("20 PFLOP/s")).to("day")


class FromTheLog:
    """Tokens per second are all that a log must print for its utilisation to be known."""

    h100 = hardware.get("h100")
    parameters = quantity("70B param")
    devices = 512
    throughput = quantity("400000 token/s")

    mfu = training.mfu(
        parameters, (throughput * quantity("1 s")).to("token"), devices, h100.peak("bf16"), "1 s"
    ).to("%")
    by_hand = (quantity("160 PFLOP/s") / quantity("500 PFLOP/s")).to("%")


class BudgetOfAMonth:
    """What a month of a cluster can train best."""

    devices = 1024
    time = quantity("30 day")
    mfu = FirstEstimate.mfu

    work = (devices * hardware.get("h100").peak("bf16") * mfu * time).to("FLOP")
    parameters = training.compute_optimal_parameters(work)
    tokens = training.compute_optimal_tokens(parameters)
    work_by_hand = (1000 * quantity("400 TFLOP/s") * quantity("2.5e6 s")).to("FLOP")
    by_hand = training.compute_optimal_parameters(work_by_hand)


class SparsePeak:
    """Problem 6: a plan that takes the sparse peak for the dense one promises half the time."""

    h100 = hardware.get("h100")
    parameters = quantity("70B param")
    tokens = training.compute_optimal_tokens(parameters)
    devices = 512
    mfu = FirstEstimate.mfu
    advertised = h100.sparse_peak("bf16")

    planned = training.training_time(parameters, tokens, devices, advertised, mfu)
    time = training.training_time(parameters, tokens, devices, h100.peak("bf16"), mfu)
    needed = (mfu * (time / planned)).to("%")
    by_hand = (quantity("6e23 FLOP") / (500 * quantity("400 TFLOP/s"))).to("day")
