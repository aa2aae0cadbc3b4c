"""Claims of the chapter "Experts at work"."""

from __future__ import annotations

from dataclasses import dataclass

from calc import (
    caches,
    compare,
    experts as experts_of,
    hardware,
    inference,
    machines,
    models,
    roofline,
    transformer,
)
from calc.catalog.models import Transformer
from calc.core.units import Quantity, QuantityLike, quantity
from calc.derivations.by_hand import by_hand, no_hand, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.examples import CHAT, REASONING
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row
from calc.derivations.traces import whole
from calc.published import Comparison, closed_loops
from calc.steps.expectation import Step
from calc.steps.job import Formats

BF16 = quantity("2 byte")
FP8 = quantity("8.25 bit")  # a number with its share of a scale of four bytes for 128
SIZES = Formats("fp8", "1 byte", dispatch=FP8)


def decode(
    devices: int, sequences: QuantityLike, context: int = 4096, machine: str = "dgx-h100"
) -> Step:
    """A decode step of DeepSeek-V3 whose experts so many devices share out."""
    return inference.expert_decode(
        Mixture.model, machines.get(machine), context, sequences, devices, SIZES
    )


@deferred
def expected(step: Step) -> Quantity:
    """Return the expected time of the step."""
    assert step.expected is not None, step.not_expected
    return step.expected.to("ms")


def weights_held(model: Transformer, devices: int) -> Quantity:
    """Weights of a device in a byte each: its share of the experts, and all else whole."""
    shared = sum(matrix.parameters for matrix in model.matrices if matrix.copies > 1)
    held = model.parameters.m_as("param") - shared + shared / devices
    return quantity(held, "byte").to("GB")


class Mixture(Claims):
    """DeepSeek-V3 does the work of a small model, and a batch reads nearly all of it."""

    model = models.get("deepseek-v3")
    h100 = hardware.get("h100")
    experts = 256
    chosen = 8
    some = 64

    share = (model.multiplied_parameters / model.parameters).to("%") | by_hand(
        "(61 * 187105280 + 3 * 396361728 + 58 * (9 * 44040192 + 1835008) + "
        "129280 * 7168) / 671026419200"
    )
    woken = experts_of.experts_used(experts, chosen / experts, some) | by_hand(
        "256 * (1 - (31/32)**64)"
    )
    read_alone = inference.weights_read(model, 1, "1 byte").to("GB") | by_hand(
        "(61 * 187105280 + 3 * 396361728 + 58 * (9 * 44040192 + 1835008) + 129280 * 7168) * 1 byte"
    )
    read_some = inference.weights_read(model, some, "1 byte").to("GB") | by_hand(
        "{read_alone} + 58 * (256 * (1 - (31/32)**64) - 8) * 3 * 7168 * 2048 byte"
    )
    dense_batch = roofline.critical_batch_by_weights(h100.ridge_point("fp8"), "1 byte") | by_hand(
        "1979 / (2 * 3.35)"
    )
    critical = experts_of.critical_tokens(
        h100.ridge_point("fp8"), experts, chosen, "1 byte"
    ) | by_hand("32 * 295.3731")


class Width(Claims):
    """More devices leave more of each memory for caches, and each expert more tokens."""

    model = Mixture.model
    servers = "dgx-h100"
    rack = "gb200-nvl72"
    context = 4096
    most = 256  # sequences of a device that DeepEP's kernels for decoding are made for
    devices = (8, 16, 32, 72, 144, 320)
    few = 16
    some = 32
    many = 320
    group = 4  # of its attention, as DeepSeek-V3's report plans them: TP4 and DP80
    groups = 80

    @classmethod
    def sequences(cls, devices: int, machine: str = servers) -> int:
        """Sequences of a device: as many as fit, and no more than the kernels are made for."""
        memory = machines.get(machine).device.memory_capacity
        cache = transformer.kv_cache_per_token(cls.model)
        weights = weights_held(cls.model, devices)
        fit = caches.sequences_that_fit(memory, weights, f"{cls.context} token", cache)
        return min(whole(fit.magnitude), cls.most)

    @classmethod
    def rates(cls, devices: int, machine: str = servers) -> tuple[Quantity, Quantity]:
        """Tokens a second of a device: the most by the bound, and what is expected."""
        batch = cls.sequences(devices, machine)
        step = decode(devices, batch, cls.context, machine)
        tokens = quantity(batch, "token")
        return (tokens / step.lower).to("token/s"), (tokens / expected(step)).to("token/s")

    @classmethod
    @row_by_hand("32 | 8 | 37.6 GB | 167 | 167 | 25.3 ms | 66.3 ms | 2520 tokens/s")
    def row(cls, devices: int) -> Row:
        """Devices, experts and weights of each, sequences, tokens an expert, step, rate."""
        weights = weights_held(cls.model, devices)
        batch = cls.sequences(devices)
        each = quantity(Mixture.experts / devices, "")
        if not batch:
            return (devices, each, weights, *(None,) * 5)
        step = decode(devices, batch)
        met = experts_of.tokens_per_expert(batch, devices, Mixture.experts, Mixture.chosen)
        rate = cls.rates(devices)[1]
        return (devices, each, weights, batch, met, step.lower.to("ms"), expected(step), rate)

    held_by_eight = weights_held(model, 8) | by_hand(
        "(671026419200 - 58 * 256 * 3 * 7168 * 2048 * 7/8) * 1 byte"
    )


class Widths(Claims):
    """A wider group of experts gains up to a point, at the batch that it leaves room for."""

    few, some, many = (Width.rates(count)[1] for count in (Width.few, Width.some, Width.many))
    gain = (some / few).to("") | by_hand("2517.657 / 1998.728")
    lost_beyond = (1 - many / some).to("%") | by_hand("1 - 2414.955 / 2517.657")


class ExpertExchange(Claims):
    """A layer sends k vectors of each token there, and k back."""

    width = 7168
    copies = 8

    token_there = (copies * width * FP8).to("kB") | by_hand("8 * 7168 * 8.25 bit")
    token_back = (copies * width * quantity("2 byte")).to("kB") | by_hand("8 * 7168 * 2 byte")


class Fullest(Claims):
    """All wait for the fullest expert, and chance alone makes it fuller the fewer its tokens."""

    few = 4
    some = 32
    many = 576
    experts = Mixture.experts
    factor = 1.25

    over_few = (experts_of.fullest_load(few, experts) / few).to("") | by_hand(
        "1 + sqrt(2 / 4 * 8 * 0.69314718)"
    )
    over_some = (experts_of.fullest_load(some, experts) / some).to("") | by_hand(
        "1 + sqrt(2 / 32 * 8 * 0.69314718)"
    )
    over_many = (experts_of.fullest_load(many, experts) / many).to("") | by_hand(
        "1 + sqrt(2 / 576 * 8 * 0.69314718)"
    )
    dropped_some = experts_of.dropped_share(some, factor).to("%") | by_hand(
        "(exp(-1) / sqrt(2 * 3.14159265) - sqrt(2) * erfc(1) / 2) / sqrt(32)"
    )
    default_rate = quantity("50302 token/s") | by_hand(
        "50302 token/s", "SGLang Team 2025, table of prefill, default"
    )  # SGLang's prefill of 4096 tokens, a node
    even_rate = quantity("59337 token/s") | by_hand(
        "59337 token/s", "SGLang Team 2025, the same with simulated perfect EPLB"
    )  # the same, experts chosen evenly

    lost = (1 - default_rate / even_rate).to("%") | by_hand("1 - 50302 / 59337")


def signed_error(expected_time: Quantity, measured: Quantity) -> Quantity:
    """Measured over expected, less one, in whole per cents."""
    return quantity(round((measured / expected_time - 1).m_as("%")), "%")


class Deployments(Claims):
    """Three published deployments of DeepSeek-V3's decode beside the bound and the expectation."""

    cases = (
        ("DeepSeek's service", 88, 4989, 144, 14_800, "[@deepseek-open-infra-day6]"),
        ("DeepSeek's profile", 128, 4096, 128, 18_598, "[@sglang2025largescale]"),
        ("SGLang", 256, 2000, 72, 22_282, "[@sglang2025largescale]"),
    )
    places = (0, 1, 2)
    first_devices = cases[0][3] | by_hand("144")
    copies = 32 | by_hand("32")
    node = 8
    low_rate = quantity("20 token/s") | by_hand("20 token/s")
    high_rate = quantity("22 token/s") | by_hand("22 token/s")
    service_rate = quantity("14800 token/s")
    sequences = (service_rate / node / ((low_rate + high_rate) / 2)).to("") | by_hand(
        "14800 / (8 * 21)"
    )

    @classmethod
    @row_by_hand("… | 72 | 256 | 2000 | 31.5 ms | 87.5 ms | 91.9 ms | 5%")
    def row(cls, index: int) -> Row:
        """Name, devices, sequences, context; step at least, expected, measured; the error."""
        name, batch, context, devices, _, source = cls.cases[index]
        lower, *times = cls.times(index)
        return (f"{name} {source}", devices, batch, context, lower, *times, signed_error(*times))

    @classmethod
    def times(cls, index: int) -> tuple[Quantity, Quantity, Quantity]:
        """Return the times of a step: at least, expected and measured."""
        _, batch, context, devices, rate, _ = cls.cases[index]
        step = decode(devices, batch, context)
        return step.lower.to("ms"), expected(step), quantity(cls.node * batch / rate, "s").to("ms")


class FurthestDeployment(Claims):
    """Return how far off the worst of their expectations is."""

    error = max(
        abs(signed_error(*Deployments.times(place)[1:])) for place in Deployments.places
    ) | by_hand("(floor(100 * (1 - 8 * 128 / 18.598 / 57.9) + 0.5)) * 1 %")


@dataclass(frozen=True)
class Rate:
    """Deployment as one source tells it: a rate, or a closed loop of it."""

    name: str
    devices: int | None = None
    formats: str | None = None
    rate: float = 0.0
    loop: str = ""

    @property
    def row(self) -> Row:
        """Deployment, devices, formats; sequences each, a step expected and measured, a rate."""
        named = (self.name, self.devices, self.formats)
        if not self.loop:
            return (*named, None, None, None, None, quantity(self.rate, "token/s"))
        compared = of_loop(self.loop)
        prediction, error = compared.prediction, compared.error
        assert prediction is not None
        assert prediction.expected is not None
        assert error is not None
        sequences = compared.row["clients"] / compared.row["servers"] / compared.row["data"]
        return (
            *named,
            round(sequences),
            quantity(prediction.expected, "s").to("ms"),
            quantity(compared.measured, "s").to("ms"),
            quantity(round(100 * error), "%"),
            quantity(sequences / compared.measured, "token/s"),
        )


def of_loop(name: str) -> Comparison:
    """A published closed loop of that id, beside what is expected of it."""
    (row,) = (row for row in closed_loops.rows() if row.id == f"dsr1_gb200_{name}")
    return closed_loops.predict(row)


LOOPS = (
    ("SGLang 0.5.8", 32, "FP8", "sglang_fp8_disagg_1024x1024_c6144_cfg523"),
    ("SGLang 0.5.8", 32, "NVFP4", "sglang_fp4_disagg_1024x1024_c8192_cfg483"),
    ("TensorRT-LLM", 16, "FP8", "trtllm_fp8_disagg_1024x8192_c8192_cfg435"),
)


class RackRates(Claims):
    """Decode of DeepSeek-V3 and R1 in racks, and on servers since."""

    june = 7583 | by_hand("7583", "LMSYS Org, 16 June 2025")
    june_devices = 48 | by_hand(
        "12 * 4", "twelve nodes of four for decoding, LMSYS Org, 16 June 2025"
    )  # twelve trays of four [lmsys2025gb200one]
    rates = (
        Rate("SGLang, H100 servers, May 2025 [@sglang2025largescale]", 72, "FP8", 22_282 / 8),
        Rate("vLLM, H200 servers, Dec 2025 [@vllm-large-scale-serving]", rate=2200),
        Rate("SGLang, GB200, Jun 2025 [@lmsys2025gb200one]", june_devices, "FP8", june),
        Rate("SGLang, GB200, Sep 2025 [@lmsys2025gb200two]", None, "FP8", 9087),
        Rate("SGLang, GB200, Sep 2025 [@lmsys2025gb200two]", None, "NVFP4", 13_386),
        *(
            Rate(f"{engine}, GB200 [@nvidia-aiconfigurator]", devices, formats, loop=loop)
            for engine, devices, formats, loop in LOOPS
        ),
        Rate("MLPerf Offline, GB200 [@mlperf-inference-v6.1]", 72, "NVFP4", 542_075 / 72),
        Rate("MLPerf Offline, GB300 [@mlperf-inference-v6.1]", 288, "NVFP4", 2_705_130 / 288),
        # A preview, whose Offline rate is below that of its Server run.
        Rate("MLPerf Offline, VR200, preview [@mlperf-inference-v6.1]", 36, "NVFP4", 558_803 / 36),
    )
    per_generation = quantity(june / (22_282 / 8), "") | by_hand("7583 / (22282 / 8)")
    of_formats = quantity(13_386 / 9087, "") | by_hand("13386 / 9087")
    of_rubin = quantity(558_803 / 36 / (2_705_130 / 288), "") | by_hand(
        "(558803 / 36) / (2705130 / 288)"
    )

    prompt = CHAT.prompt | by_hand("1024")
    long_answer = REASONING.generated | by_hand("8192")
    _sooner = deferred(tuple)(
        -(of_loop(loop).error or 0.0) for engine, *_, loop in LOOPS if "SGLang" in engine
    )
    sooner = quantity(round(100 * deferred(min)(_sooner)), "%") | by_hand(
        "(floor(100 * (1 - 32.278 / 33.446) + 0.5)) * 1 %",
        "one less 32.278 ms of closed_loops.csv over the 33.446 that the parts "
        "sum up to; of the other, one less 22.664 over 28.132",
    )

    @classmethod
    @row_by_hand("… | 48 | FP8 | – | – | – | – | 7580 tokens/s")
    @row_by_hand("… | 36 | NVFP4 | – | – | – | – | 15 500 tokens/s")
    def rows(cls) -> list[Row]:
        """Each source's row; what it does not state is a dash."""
        return [rate.row for rate in cls.rates]


class Rack(Claims):
    """Inside a rack that is one domain the exchange costs a start-up and hardly more."""

    devices = 72
    sequences = 128
    machine = "gb200-nvl72"

    _servers = decode(devices, sequences)
    _rack = decode(devices, sequences, machine=machine)
    links_of_servers = _servers.parts["links"].to("ms") | by_hand(
        "58 * 128 * 21.728 kB * 9 * (1 - (8/9)**8) * 8/9 / 50 GB/s"
    )
    links_of_rack = _rack.parts["links"].to("ms") | by_hand(
        "58 * 128 * 21.728 kB * 72 * (1 - (71/72)**8) * 71/72 / 900 GB/s"
    )
    step_of_servers = expected(_servers)
    step_of_rack = expected(_rack)
    gain = (step_of_servers / step_of_rack).to("") | by_hand("57.07786 / 19.96031")
    memory_gain = (
        machines.get(machine).device.memory_bandwidth
        / machines.get("dgx-h100").device.memory_bandwidth
    ).to("") | by_hand("8 / 3.35")


class AnotherMixture(Claims):
    """Problem 1: the critical batch of Qwen3 235B in BF16."""

    name = "Qwen3 235B"
    experts = whole(models.get("qwen-3-235b-a22b").experts or 0) | by_hand(
        "128", "config.json of Qwen3 235B: num_experts"
    )
    chosen = 8

    critical = experts_of.critical_tokens(
        hardware.get("h100").ridge_point("bf16"), experts, chosen, "2 byte"
    ) | by_hand("16 * 989 / 3.35")


class TwoGroups(Claims):
    """Problem 2: 64 GPUs as one group of experts or as two."""

    whole = 64
    half = 32

    rate = Width.rates(whole)[1] | no_hand(
        "2460.476 token/s", "plain arithmetic, on times that the library expects"
    )
    rate_of_half = Width.rates(half)[1] | no_hand(
        "2517.657 token/s", "plain arithmetic, on times that the library expects"
    )


ANSWER = "the expected time of a whole answer as recorded"


class DenseOrMixture(Claims):
    """Problem 3: a mixture instead of a dense model, both within a limit."""

    limit = quantity("40 ms") | by_hand("40 ms")
    price = quantity("2 USD/h")
    prompt = 1000
    generated = 300
    found = deferred(compare)(
        ["gpt-oss-120b", "llama-3-70b"],
        "dgx-h100",
        prompt=prompt,
        generated=generated,
        tpot=limit,
        price=price,
        software="vllm",
    )
    mixture, dense = found.rows()[0], found.rows()[1]

    mixture_requests = whole(mixture["batch"].magnitude) | no_hand(
        "4744", "the last batch for which a step that the library expects keeps the limit"
    )
    dense_requests = whole(dense["batch"].magnitude) | no_hand(
        "348", "the last batch for which a step that the library expects keeps the limit"
    )
    mixture_devices = whole(mixture["devices"].magnitude) | no_hand(
        "8", "chosen as the cheapest of plans that the library expects"
    )
    dense_devices = whole(dense["devices"].magnitude) | no_hand(
        "4", "chosen as the cheapest of plans that the library expects"
    )
    mixture_cost = mixture["expected"]["cost_per_token"] | by_hand(
        "{mixture_devices} * 2 USD/h * 21.551762 s / ({mixture_requests} * 300 token)", ANSWER
    )
    dense_cost = dense["expected"]["cost_per_token"] | by_hand(
        "{dense_devices} * 2 USD/h * 32.34987 s / ({dense_requests} * 300 token)", ANSWER
    )


class CacheCopies(Claims):
    """Latents that a cut by heads copies are shared out by sequences, or by tokens."""

    devices = 4
    context = 32768

    cache = (transformer.kv_cache_per_token(Mixture.model) * quantity(context, "token")).to(
        "GB"
    ) | by_hand("32768 * 61 * 576 * 2 byte")
    copied = (devices * cache).to("GB") | by_hand("4 * {cache}")
    part = (cache / devices).to("GB") | by_hand("{cache} / 4")
