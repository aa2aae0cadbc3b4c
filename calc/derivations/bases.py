"""Quantities that several pages quote, each on the bases that its class names.

A page that quotes one of them calls it here and names the basis in its text:

- *published*: bandwidths and peaks of datasheets, which no program reaches;
- *reached*: what kernels and libraries were measured to reach, each by itself;
- *planned with*: measured kernels and curves, and as much overlap as the programs have that
  `calc` plans with. It is the basis of the book's rules.
"""

from __future__ import annotations

from calc import communication, constants, hardware, parallelism, plan_training, software
from calc.catalog import engine_sums, engines
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.core.errors import InputError
from calc.core.units import Quantity, quantity
from calc.derivations import examples
from calc.derivations.ledger import Claims
from calc.planning.plan_nouns import Search, Training
from calc.steps.curves import Curve


def summed(size: Quantity, devices: int, machine: Machine) -> Quantity | None:
    """Time of an all-reduce; None across ports that are not published."""
    try:
        return communication.time("all_reduce", size, devices, machine).needed
    except InputError:
        return None


class ExchangeRatio(Claims):
    """An exchange of experts takes so many times as long as the arithmetic of its layer.

    Tokens of DeepSeek-V3 go to their experts in FP8 and come back in BF16, in every layer.
    """

    model = examples.MIXTURE
    tokens = quantity("4096 token")
    inside, across = 8, 64
    width = 3 * model.width * model.active_experts  # bytes of a token, there and back
    work = constants.work_inference * model.active_parameters / model.layers
    formats = ("mxfp8", "fp8")

    @classmethod
    def within(cls, machine: Machine) -> int:
        """Return the devices of an exchange that stays in the domain."""
        return cls.across if machine.domain >= cls.across else cls.inside

    @classmethod
    def size(cls) -> Quantity:
        """Return the bytes that a device sends or keeps, both ways together."""
        size: Quantity = cls.tokens.m_as("token") * quantity(cls.width, "byte")
        return size

    @classmethod
    def published(cls, machine: Machine, devices: int) -> Quantity | None:
        """Return it for copies sent one by one over published links, beside the FP8 peak."""
        try:
            sent = communication.least_time("all_to_all", cls.size(), devices, machine)
        except InputError:
            return None
        ratio: Quantity = sent / (cls.work * cls.tokens / machine.device.peak("fp8"))
        return ratio.to("")

    @classmethod
    def reached(cls, machine: Machine, devices: int) -> Quantity | None:
        """Return it for all-to-alls by measured curves, beside the best FP8 GEMM measured."""
        try:
            sent = communication.time("all_to_all", cls.size(), devices, machine).needed
        except InputError:
            return None
        ratio: Quantity = sent / (cls.work * cls.tokens / machine.likely("gemm", "fp8"))
        return ratio.to("")

    @classmethod
    def planned(cls, machine: Machine, devices: int) -> Quantity | None:
        """Return it for exchanges beside the kernels of a planned training step.

        The plan hides nothing of an exchange and sends every copy by itself.
        """
        shown = machine.device.dtypes
        try:
            plan = plan_training(
                cls.model,
                machine,
                Training(
                    "14.8T token",
                    sequences=15360,
                    length=4096,
                    dtype=next(form for form in cls.formats if form in shown),
                ),
                devices=2048,
                software="megatron",
                search=Search(f"TP=1,PP=8,EP={devices},CP=1"),
            )
        except InputError:
            return None
        parts = plan.best.parts
        arithmetic = sum(parts[name] for name in ("gemm", "memory", "attention"))
        return quantity(parts["experts"] / arithmetic, "")


class TensorLimit(Claims):
    """Devices up to which TP could hide the sums of a feed-forward network of Llama 3.1 70B.

    It hides any only if something else is there to compute while they are sent: a second
    microbatch, or a product in chunks.
    """

    model = examples.DENSE
    network = quantity(3 * model.width * model.feed_forward_width, "param")
    tokens = 8192  # of a microbatch
    summed = quantity(tokens * model.width * 2, "byte")
    inside, across = 8, 16

    @classmethod
    def planned(cls, machine: Machine, devices: int) -> Quantity | None:
        """Return it for the best BF16 GEMM measured, and such sums by measured curves."""
        time = summed(cls.summed, devices, machine)
        if time is None:
            return None
        bus = 2 * (devices - 1) / devices * cls.summed / time
        rate = machine.likely("gemm", "bf16")
        return parallelism.tensor_parallel_limit(cls.network, cls.model.width, rate, bus)


class HidingTokens(Claims):
    """Tokens of a device from which messages of DP, or of FSDP, hide behind the arithmetic.

    Of DP they are those of a step, of FSDP those of a microbatch, and both are the same. Nothing
    else is assumed to use the links, and all messages to be overlapped.
    """

    large = quantity("1 GB")  # of a bucket: beyond it a collective is no faster
    gradient = quantity("2 byte/param")
    backward = quantity("4 FLOP/(param·token)")

    @classmethod
    def tokens(cls, time: Quantity, rate: Quantity) -> Quantity:
        """Return the tokens whose backward pass at this rate takes as long as that all-reduce."""
        return (time / cls.large * cls.gradient * rate / cls.backward).to("token")

    @classmethod
    def published(cls, machine: Machine, devices: int, rate: Quantity) -> Quantity:
        """Return them for published links, at a share of a peak that the page assumes."""
        return cls.tokens(communication.least_time("all_reduce", cls.large, devices, machine), rate)

    @classmethod
    def planned(cls, machine: Machine, devices: int) -> Quantity | None:
        """Return them for measured curves and the best BF16 GEMM measured, which asks for most."""
        time = summed(cls.large, devices, machine)
        return time and cls.tokens(time, machine.likely("gemm", "bf16"))


class HalfBandwidth(Claims):
    """The smallest array of an all-reduce that moves at half of the largest bus bandwidth."""

    largest = quantity("16 GiB")

    @staticmethod
    def reached(curve: Curve) -> Quantity:
        """Return it between the measured sizes of one curve, by its own largest bandwidth."""
        return quantity(curve.half_size, "byte").to("MB")

    @classmethod
    def planned(cls, machine: Machine, devices: int, share: float = 0.5) -> Quantity | None:
        """Return it for the curves that `calc` expects by, or the size of another share."""
        best = summed(cls.largest, devices, machine)
        if best is None:
            return None
        wanted = (cls.largest / best).m_as("byte/s") * share
        low, high = 1e3, cls.largest.m_as("byte")
        while high / low > 1.01:
            middle = (low * high) ** 0.5
            time = summed(quantity(middle, "byte"), devices, machine)
            assert time is not None
            low, high = (low, middle) if middle / time.m_as("s") >= wanted else (middle, high)
        return quantity(high, "byte").to("MB")


class LinkLatency(Claims):
    """Time until the first byte arrives, which no two sources take of the same thing.

    They were reached by a kernel with its launch, by a kernel's read, and as half of a round trip
    between hosts. What NCCL counts for a step, by which it chooses an algorithm, is none of them.
    """

    _kernel = engine_sums.sums_of("h100", "sglang", 2)
    assert _kernel is not None

    reached_nvlink = quantity(_kernel.time(_kernel.smallest), "s").to("µs")
    reached_pcie = constants.latency_p2p_pcie_gen5
    reached_infiniband = constants.latency_rdma_round_trip / 2


class ServedMemory(Claims):
    """Memory of a GPU that weights and caches of a service share."""

    _rules = engines.rules("vllm", "0.21")
    assert _rules is not None

    # What an engine takes unless it is told otherwise: by the rules that plans take, and since.
    share = quantity(software.get("vllm").memory_share, "").to("%")
    share_of_newer = quantity(_rules.share(hardware.H100, 1, 8192), "").to("%")

    @staticmethod
    def published(device: Accelerator) -> Quantity:
        """Return all of it, as built: a bound."""
        return device.memory_capacity

    @classmethod
    def planned(cls, device: Accelerator) -> Quantity:
        """Return what an engine takes, which leaves the rest to the driver, graphs and spikes."""
        return cls.share * device.memory_capacity


class Rent(Claims):
    """Rent of a GPU on demand, as indices and providers had it in May 2026."""

    published_h100 = constants.price_h100
    published_h200 = constants.price_h200
    published_b200 = constants.price_b200
