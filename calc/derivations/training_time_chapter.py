"""Claims of the chapter "Training time"."""

from __future__ import annotations

from calc import (
    collectives,
    communication,
    constants,
    energy,
    hardware,
    machines,
    published,
    runs,
    training,
    transformer,
)
from calc.core.units import Quantity, QuantityLike, quantity
from calc.derivations.bases import HidingTokens
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.collectives_chapter import Overlap, TwoNetworks
from calc.derivations.deferred import deferred
from calc.derivations.examples import DENSE, MIXTURE
from calc.derivations.ledger import Claims
from calc.derivations.quoted_digits import with_digits_of
from calc.derivations.quoting import Row, Rows
from calc.derivations.traces import whole
from calc.published import conditions


class FirstEstimate(Claims):
    """A model of a billion parameters takes one A100 eleven days."""

    a100 = hardware.get("a100")
    peak = a100.peak("bf16")
    tdp = a100.tdp
    parameters = quantity("1B param")
    tokens = quantity("20B token")
    devices = 1
    mfu = quantity(40, "%")
    work_per_token = constants.work_training

    time = training.training_time(parameters, tokens, devices, peak, mfu) | by_hand(
        "1.2e20 s / (0.4 * 312e12)"
    )
    sparse_mfu = training.mfu(parameters, tokens, devices, a100.sparse_peak("bf16"), time).to(
        "%"
    ) | by_hand("0.5 * 40 %")
    energy = energy.energy_of_run(tdp, time).to("kWh") | by_hand("400 W * {time}")


class PublishedRuns(Claims):
    """The equation gives the work that reports print, and for PaLM two thirds of the time."""

    palm = runs.get("palm-540b")
    palm_mfu = palm.mfu
    palm_mfu_with_attention = palm.mfu_with_attention
    palm_hfu = palm.hfu
    all = tuple(run for run in map(runs.get, runs.names()) if run.publishes("work"))

    palm_overall = training.mfu(
        palm.parameters, palm.tokens, 1, palm.device_peak, palm.device_time
    ).to("%") | by_hand("6 * 540.35e9 * 780e9 / (8404992 * 3600 * 275e12)")
    palm_ratio = palm.device_time / training.training_time(
        palm.parameters, palm.tokens, 1, palm.device_peak, palm.mfu
    ) | by_hand("45.7 % / 30.3912 %")

    @staticmethod
    @row_by_hand("PaLM 540B | 540 | 780 | 2530 ZFLOP | 2560 ZFLOP | 0.988")
    def work_row(run: runs.Run) -> Row:
        """Operations by the equation, and as reported."""
        computed = training.training_flops(run.parameters, run.tokens).to("ZFLOP")
        reported = run.work.to("ZFLOP")
        ratio = with_digits_of(computed / reported, run.parameters, run.tokens, run.work)
        parameters, tokens = run.parameters.m_as("param") / 1e9, run.tokens.m_as("token") / 1e9
        return run.name, parameters, tokens, computed, reported, ratio


class Attention(Claims):
    """Six operations for each parameter and token forget attention, until contexts are long."""

    width = 4096
    context = 4096
    long_context = 131072

    overhead = training.attention_overhead(context, width).to("%") | by_hand("4096 / (12 * 4096)")
    long_overhead = training.attention_overhead(long_context, width).to("%") | by_hand("32 / 12")


class ComputeOptimal(Claims):
    """About twenty tokens for each parameter make the best of a budget of operations."""

    tokens_per_parameter = constants.tokens_per_parameter_optimal
    gpt3 = runs.get("gpt-3-175b")
    llama3 = runs.get("llama-3-1-405b")
    parameters = quantity("7B param")

    tokens = training.compute_optimal_tokens(parameters) | by_hand("20 * 7e9 token")
    gpt3_tokens_per_parameter = gpt3.tokens / gpt3.parameters | by_hand("(300 / 174.6) token/param")
    llama3_tokens_per_parameter = llama3.tokens / llama3.parameters | by_hand(
        "(15600 / 405) token/param"
    )


class Cluster(Claims):
    """Gradients cross the network at every step, however short the arithmetic has become."""

    machine = machines.get("dgx-h100")
    peak = machine.device.peak("bf16")
    node = machine.domain
    port = TwoNetworks.port | by_hand("400 Gbit/s")
    leaving = TwoNetworks.leaving
    network = TwoNetworks.reached
    behind = Overlap.backward
    parameters = quantity("7B param")
    mfu = FirstEstimate.mfu
    sequences = 1024
    context = 4096
    before = 512
    after = 1024

    tokens = training.compute_optimal_tokens(parameters) | by_hand("20 * 7e9 token")
    batch = quantity(sequences * context, "token")
    steps = tokens / batch
    gradients = (parameters * constants.size_gradient_fp16).to("GB") | by_hand("7e9 * 2 byte")
    one_device = training.training_time(parameters, batch, 1, peak, mfu)
    one_device_run = training.training_time(parameters, tokens, 1, peak, mfu) | by_hand(
        "5.88e21 s / 395.6e12"
    )
    measured_devices = communication.time("all_reduce", gradients, after, machine).measured[
        0
    ].devices | by_hand("10 * 8")
    most_exchange = (2 * gradients / network).to("ms") | by_hand("28 GB / 320.5716 GB/s")
    knee = behind * one_device / most_exchange
    tokens_per_device = batch / knee | by_hand("(395.6e12 / 320.5716e9) token")
    tokens_at_best = batch * (2 * gradients / leaving) / (behind * one_device) | by_hand(
        "(395.6e12 / 400e9) token"
    )

    @classmethod
    def arithmetic(cls, devices: QuantityLike) -> Quantity:
        """Time of a step's arithmetic."""
        return training.training_time(cls.parameters, cls.batch, devices, cls.peak, cls.mfu)

    @classmethod
    def all_reduce(cls, devices: int) -> Quantity:
        """Time of a step's sum of gradients, as measured curves let one expect it."""
        exchange = communication.time("all_reduce", cls.gradients, devices, cls.machine)
        return exchange.expected  # type: ignore[return-value]

    @classmethod
    def run_time(cls, devices: int, overlap: float) -> Quantity:
        """Time of the whole run, with this fraction hidden of what the backward pass can hide."""
        step: Quantity = collectives.step_time(
            cls.arithmetic(devices), cls.all_reduce(devices), overlap, cls.behind
        )
        times: Quantity = cls.steps * step
        return times


class LastDoubling(Claims):
    """The last doubling before the batch is used up costs little more than it saves."""

    before = Cluster.before
    after = Cluster.after

    time_before = Cluster.run_time(before, 0).to("h") | by_hand(
        "140e9 / 4194304 * ({arithmetic} + {exchange})"
    )
    time = Cluster.run_time(after, 0).to("h") | by_hand(
        "140e9 / 4194304 * ({arithmetic} / 2 + 0.6572 ms * 8 / log2(20) + "
        "85.94185 ms * 127/128 / (9/10))"
    )
    gain = time_before / time | by_hand("8.945375 / 4.921720")
    cost = 2 / gain | by_hand("2 / 1.817530")
    overlapped_before = Cluster.run_time(before, 1).to("h") | by_hand(
        "5.88e21 s / (512 * 395.6e12)"
    )
    overlap_saves = (1 - overlapped_before / time_before).to("%") | by_hand("0.881411 / 8.945375")
    arithmetic = Cluster.arithmetic(before).to("ms") | by_hand(
        "6 * 7e9 * 4194304 / (512 * 395.6e12) * 1 s"
    )
    exchange = Cluster.all_reduce(before).to("ms") | by_hand(
        "0.6572 ms * 7 / log2(20) + 85.94185 ms * 63/64 / (9/10)"
    )


class PublishedSteps(Claims):
    """Steps as vendors publish them: the larger the peak of a format, the less of it is reached."""

    bf16, fp8 = map(
        deferred(published.row), ("dgxc-25.02-llama3.1-70b-4", "dgxc-25.02-llama3.1-70b-10")
    )
    devices = whole(bf16.number("num_devices")) | by_hand("512")
    mixture_bf16, mixture_fp8 = map(
        deferred(published.row), ("mbridge-25.11-12", "mbridge-25.11-13")
    )
    shown = (
        (bf16, "BF16"),
        (fp8, "FP8"),
        (deferred(published.row)("mbridge-26.06-7"), "FP8"),
        (deferred(published.row)("mbridge-26.06-4"), "FP8"),
        (deferred(published.row)("mbridge-26.06-6"), "NVFP4"),
        (deferred(published.row)("deepseek-v3-rate"), "FP8"),
        (mixture_bf16, "BF16"),
        (deferred(published.row)("mbridge-26.08-2"), "MXFP8"),
        (deferred(published.row)("mbridge-26.08"), "MXFP8"),
        (deferred(published.row)("tpu7x-deepseek-v3-4"), "FP8"),
    )

    rate = quantity(bf16.measured["tokens_per_s"], "token/s") | by_hand("566797 token/s")
    reported = quantity(bf16.measured["mfu"], "%") | by_hand("53.84 %")
    # What its authors seem to count: products alone, and attention without a mask.
    unmasked = training.mfu(
        transformer.forward_flops(DENSE, 8192) / constants.work_inference,
        (rate * quantity("1 s")).to("token"),
        devices,
        hardware.get("h100").peak("bf16"),
        "1 s",
    ).to("%") | by_hand("566797 / 512 * (6 * 69.501714e9 + 12 * 80 * 8192 * 8192) / 989e12")
    masked = training.mfu(
        transformer.forward_flops(DENSE, 4096.5) / constants.work_inference,
        (rate * quantity("1 s")).to("token"),
        devices,
        hardware.get("h100").peak("bf16"),
        "1 s",
    ).to("%") | by_hand("566797 / 512 * (6 * 69.501714e9 + 12 * 80 * 8192 * 4096.5) / 989e12")
    faster = quantity(bf16.measured["step_time"] / fp8.measured["step_time"], "") | by_hand(
        "14.80 s / 10.76 s"
    )
    faster_mixture = quantity(
        mixture_fp8.measured["tokens_per_s_per_gpu"]
        / mixture_bf16.measured["tokens_per_s_per_gpu"],
        "",
    ) | by_hand("4018 / 3139")

    @staticmethod
    def of_a_device(row: published.Row) -> Quantity:
        """Tokens of one device per second."""
        for name in ("tokens_per_s_per_gpu", "tokens_per_s_per_chip"):
            if name in row.measured:
                return quantity(row.measured[name], "token/s")
        return quantity(row.measured["tokens_per_s"] / (row.number("num_devices") or 1), "token/s")

    @classmethod
    def reached(cls, row: published.Row) -> Quantity:
        """Useful operations of one device per second."""
        work = training.training_flops(conditions.model(row).active_parameters, "1 token")
        return (work * cls.of_a_device(row) / quantity("1 token")).to("TFLOP/s")

    @classmethod
    def share(cls, row: published.Row) -> Quantity:
        """Return its part of the dense peak of the format, six operations for each parameter."""
        peak = conditions.machine(row).device.peak(conditions.dtype(row) or "bf16")
        return (cls.reached(row) / peak).to("%")

    @classmethod
    @row_by_hand("Llama 3.1 70B | BF16 | 512 H100 | 1110 tokens/s | 469 TFLOP/s | 47.4%")
    def rows(cls) -> Rows:
        """Each step: model, format, devices, tokens, operations, and their part of the peak."""
        return [
            (
                conditions.model(row).name,
                written,
                f"{whole(row.number('num_devices') or 0)} "
                + row.device.removeprefix("NVIDIA ").removeprefix("DGX-").split(" (")[0],
                cls.of_a_device(row),
                cls.reached(row),
                cls.share(row),
            )
            for row, written in cls.shown
        ]


class PartsOfStep(Claims):
    """FP8 shortens the GEMMs of a published step alone; what a plan expects, not overlapped."""

    parts = ("GEMMs", "attention", "between", "messages", "other")
    _of = (
        ("gemm",),
        ("attention",),
        ("memory",),
        ("tensor", "context", "data"),
        ("bubble", "optimizer", "rates not sustained"),
    )

    @classmethod
    def steps(cls) -> list[tuple[str, dict[str, Quantity], Quantity]]:
        """Format, time of each part, and the measured time, of a token on a GPU."""
        rows_of_steps = []
        for row, name in PublishedSteps.shown[:2]:
            prediction = published.predict(row).prediction
            assert prediction is not None
            assert prediction.parts is not None
            times = prediction.parts
            parts = {
                part: quantity(sum(times.get(each, 0.0) for each in of), "s").to("ms")
                for part, of in zip(cls.parts, cls._of, strict=True)
            }
            measured = PublishedSteps.devices / quantity(row.measured["tokens_per_s"], "1/s")
            rows_of_steps.append((name, parts, measured.to("ms")))
        return rows_of_steps


class OnGb200(Claims):
    """Eight bits on the same device: a dense model's part of the peak, and a mixture's."""

    dense_step = deferred(published.row)("mbridge-26.06-4")
    mixture_step = deferred(published.row)("mbridge-26.08-2")
    dense = PublishedSteps.share(dense_step) | by_hand("843 * 6 * 405.85e9 / 5e15")
    mixture = PublishedSteps.share(mixture_step) | by_hand("4912 * 6 * 37.552297e9 / 5e15")


class OfMixtures(Claims):
    """A mixture computes with its active parameters, and stores and exchanges all of them."""

    model = MIXTURE
    total = model.parameters | by_hand("{TrainingAMixture.total}")
    active = model.active_parameters | by_hand(
        "{TrainingAMixture.total} - 58 * 248 * 3 * 7168 * 2048 param"
    )
    run = runs.get("deepseek-v3")
    tokens = run.tokens
    hours = run.device_time
    experts = model.expert_parameters
    width = 64  # devices that share the experts, as the run did
    node = machines.get("dgx-h100").domain

    work = training.training_flops(active, tokens) | by_hand("6 * 37.55e9 * 14.8e12 FLOP")
    overall = training.mfu(active, tokens, 1, run.device_peak, hours).to("%") | by_hand(
        "6 * 37.552297e9 * 14.8e12 / (2.664e6 * 3600 * 989e12)"
    )
    overall_fp8 = (overall / 2).to("%") | by_hand("(0.5 * 35.156) * 1 %")
    if_dense = (total / active).to("") | by_hand("671.0e9 / 37.55e9")
    state = training.model_memory(total, training.recipe("adam-mixed").bytes_per_parameter).to(
        "TB"
    ) | by_hand("{TrainingAMixture.total} * 16 byte/param")
    exchanged = ((total - experts + experts * node / width) / active).to("") | by_hand(
        "(671.03 - 653.91 + 653.91/8) / 37.55"
    )


class TokensToHide(Claims):
    """Tokens of a device that hide the sum of gradients: more with each generation."""

    mfu = FirstEstimate.mfu
    mfu_fp8 = quantity(30, "%")  # of a peak that is twice as high
    many = 73_728  # whole servers and whole racks, so many that one more changes nothing

    @classmethod
    def of(cls, key: str, dtype: str) -> Quantity:
        """Tokens whose backward pass takes as long as the sum at published bandwidth."""
        machine = machines.get(key)
        mfu = cls.mfu if dtype == "bf16" else cls.mfu_fp8
        return HidingTokens.published(machine, cls.many, mfu * machine.device.peak(dtype))

    @classmethod
    def of_experts(cls, key: str, dtype: str) -> Quantity:
        """Return the mixture's tokens with EP: a rack sums its experts with other racks' alone."""
        machine = machines.get(key)
        if machine.domain < OfMixtures.width:
            whole: Quantity = cls.of(key, dtype) * OfMixtures.exchanged
            return whole
        held = OfMixtures.experts / OfMixtures.width / OfMixtures.active
        rate = machine.device.peak(dtype) * (cls.mfu if dtype == "bf16" else cls.mfu_fp8)
        tokens: Quantity = rate / machine.ports * held * quantity("1 token*byte/FLOP")
        return tokens.to("token")

    @classmethod
    def row(cls, key: str, dtype: str) -> Row:
        """Tokens of a dense model there, and of the mixture without and with EP."""
        dense = cls.of(key, dtype)
        return (
            machines.get(key).name,
            dtype.upper(),
            dense,
            dense * OfMixtures.if_dense,
            cls.of_experts(key, dtype),
        )

    @classmethod
    @row_by_hand("NVIDIA GB300 NVL72 | BF16 | 560 tokens | 9900 tokens | 2700 tokens")
    def rows(cls) -> Rows:
        """The machines of the examples."""
        return [
            cls.row(key, dtype)
            for key in ("dgx-h100", "dgx-b200", "gb300-nvl72")
            for dtype in ("bf16", "fp8")
        ]


class OpenRuns(Claims):
    """Open runs since 2025 reach a quarter or so of the peak over all hours that were paid for."""

    peak = hardware.get("h100").peak("bf16")  # a GH200 has the same
    # Parameters, tokens and hours as accounts of the three reports state them.
    apertus = training.mfu("70.6B param", "15T token", 1, peak, "6e6 h").to("%") | by_hand(
        "6 * 70.6e9 * 15e12 / (6e6 * 3600 * 989e12)"
    )
    olmo = training.mfu("32.2B param", "6T token", 1024, peak, "56 day").to("%") | by_hand(
        "6 * 32.2e9 * 6e12 / (1024 * 56 * 86400 * 989e12)"
    )
    smollm = training.mfu("3.08B param", "11.2T token", 384, peak, "24 day").to("%") | by_hand(
        "6 * 3.08e9 * 11.2e12 / (384 * 24 * 86400 * 989e12)"
    )
    olmo_rate = quantity("1900 token/s")
    olmo_steady = training.mfu("32.2B param", "1900 token", 1, peak, "1 s").to("%") | by_hand(
        "6 * 32.2e9 * 1900 / 989e12"
    )


class ImpossibleReport(Claims):
    """A utilisation above one says that an input is wrong."""

    a100 = hardware.get("a100")
    parameters = quantity("7B param")
    tokens = quantity("1T token")
    devices = 64
    time = quantity("3 week")

    mfu = training.mfu(parameters, tokens, devices, a100.peak("bf16"), time).to("%") | by_hand(
        "4.2e22 / (64 * 312e12 * 1814400)"
    )


class FromTheLog(Claims):
    """Tokens per second are all that a log must print for its utilisation to be known."""

    h100 = hardware.get("h100")
    parameters = DENSE.parameters
    devices = PublishedSteps.devices | by_hand("512")
    throughput = quantity("400000 token/s")

    mfu = training.mfu(
        parameters, (throughput * quantity("1 s")).to("token"), devices, h100.peak("bf16"), "1 s"
    ).to("%") | by_hand("6 * 70.553706e9 * 400e3 / (512 * 989e12)")
    published = PublishedSteps.share(PublishedSteps.bf16) | by_hand(
        "6 * 70.553706e9 * 566797 / (512 * 989e12)"
    )
    of_published = (throughput / PublishedSteps.rate).to("%") | by_hand("400000 / 566797")


class BudgetOfAMonth(Claims):
    """A month of a cluster trains a model of this size best."""

    devices = 1024
    time = quantity("30 day")
    mfu = FirstEstimate.mfu

    work = (devices * hardware.get("h100").peak("bf16") * mfu * time).to("FLOP") | by_hand(
        "1024 * 395.6e12 * 2592000 FLOP"
    )
    parameters = training.compute_optimal_parameters(work) | by_hand(
        "(sqrt(1.050005e24 / 120)) param"
    )
    tokens = training.compute_optimal_tokens(parameters) | by_hand("20 * 93.5416e9 token")
