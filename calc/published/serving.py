"""Published serving: tokens of prompts and of answers, from one user to the largest throughput.

The time is that of one written token of one sequence batch after the other: a step's time over what
it writes. In steady state a step carries its share of prompts, as many tokens as prompts are longer
than answers. Conditions that a row leaves out are taken as this module's constants say, for all
rows alike.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from calc.catalog.machines import Machine, NotMeasured
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import Matrix
from calc.catalog.software import Software, software_of
from calc.core.units import Quantity, quantity
from calc.networks import transformer
from calc.published import conditions
from calc.published.prediction import Comparison, UnusableRowError, if_measured
from calc.published.reading import Row
from calc.steps import expectation, inference, kernels
from calc.steps.expectation import Parts, Tokens

UNSTATED_PROMPT = 400  # tokens where a data set is named and no length; never above the answer
UNSTATED_CONTEXT = 512  # where one user's lengths are not stated
DEFAULT_BATCH = 2048  # sequences at most, where a row is of the largest throughput
WEIGHTS = (  # bytes of a weight, with its scales; the first pattern that is found
    (r"q4_k_m", 4.85 / 8),
    (r"q4_0", 4.5 / 8),
    (r"q4_1", 5.0 / 8),
    (r"q5_k_m", 5.7 / 8),
    (r"q6_k", 6.56 / 8),
    (r"q8_0", 8.5 / 8),
    (r"mxfp4", 4.25 / 8),
    (r"nvfp4|\bfp4\b", 4.5 / 8),
    (r"int4.*group 32|group 32", 4.5 / 8),
    (r"int4|4[- ]bit|g128", 4.25 / 8),
    (r"int8|fp8|float8|8[- ]bit", 1.0),
    (r"bf16|bfloat16|fp16|float16|f16|half", 2.0),
)
FASTER = ("fp4", "fp8")  # formats whose peak bounds a row whose weights are in them
NO_LENGTHS = "the lengths of its prompts and answers are not stated"
ONE_USER = re.compile(r"decode_tokens_per_s(_per_user)?$")
PREFILL = re.compile(r"prefill_tokens_per_s_(\d+)_prompt$")
RATES = ("output_tokens_per_s", "tokens_per_s")
RATES_OF_ONE = ("output_tokens_per_s_per_gpu", "output_tokens_per_s_per_chip")


@dataclass(frozen=True)
class Served:
    """A row's model on its machine, in its formats."""

    model: Transformer
    machine: Machine
    software: Software
    devices: int
    replicas: int
    """Groups of devices that each have sequences of their own (DP); each group cuts matrices."""
    experts: int
    """Devices that experts are shared out to (EP)."""
    dtype: str
    peak: float
    """FLOP/s at most: of the fastest format that its weights may be in; memory alone where none."""
    weights: Quantity
    kv: Quantity

    @property
    def weight_memory(self) -> float:
        """Bytes of all weights; each replica has its own of what is no expert shared out."""
        once = inference.weight_memory(self.model, self.weights).m_as("byte")
        shared = sum(each.parameters for each in self._experts) if self.experts > 1 else 0.0
        copied = once - shared * self.weights.m_as("byte")
        return once + (self.replicas - 1) * copied

    @property
    def _experts(self) -> list[Matrix]:
        """The matrices of which a token uses some copies and not all."""
        return [each for each in self.model.matrices if each.used < each.copies]

    def cache(self, tokens: float) -> float:
        """Bytes of the cache of one sequence of this length."""
        longest = kernels.reaching(self.model, tokens)
        return transformer.kv_cache(longest, max(tokens, 1.0), self.kv).m_as("byte")

    def lower(self, load: Tokens) -> float:
        """Seconds that a step takes at least."""
        device = self.machine.device
        tokens = load.writing + load.reading
        work = 0.0
        if load.writing:
            work += load.writing * self._written(max(1.0, load.context))
        if load.reading:
            work += load.reading * self._read(load.prompt)
        traffic = inference.weights_read(self.model, max(1.0, tokens), self.weights).m_as("byte")
        traffic += load.writing * self.cache(load.context)
        bandwidth = device.memory_bandwidth.m_as("byte/s")
        return max(work / self.peak, traffic / bandwidth) / self.devices

    def expected(self, load: Tokens) -> Parts:
        """What a step is expected to take."""
        return expectation.serving_pass(
            self.model,
            self.machine,
            load,
            self.devices,
            self.replicas,
            self.experts,
            self.dtype,
            self.weights,
            self.kv,
            self.software,
        )

    def _written(self, context: float) -> float:
        """Operations of a token that is written at this context."""
        longest = kernels.reaching(self.model, context)
        return transformer.forward_flops(longest, context).m_as("FLOP/token")

    def _read(self, prompt: float) -> float:
        """Operations of a token of a prompt, on average; the output is computed for the last."""
        longest = kernels.reaching(self.model, prompt)
        whole = transformer.causal_flops(longest, prompt).m_as("FLOP/token")
        outputs = sum(each.parameters for each in longest.matrices if each.part == "output")
        return whole - 2.0 * outputs * (1 - 1 / prompt)


def predict(row: Row) -> Comparison:
    """A row beside its prediction."""
    served = _served(row)
    measured, load, per_step = _measured(row, served)
    lower = served.lower(load) / per_step

    def parts() -> tuple[dict[str, float], float]:
        if not load.reading and load.context == 1.0:
            raise NotMeasured(NO_LENGTHS)
        _check_layout(row, served, load)
        return served.expected(load).seconds(per_step)

    prediction = if_measured(lower, parts)
    return Comparison(row, served.machine.key, served.software.key, measured, prediction)


def _served(row: Row) -> Served:
    machine, model = conditions.machine(row), conditions.model(row)
    software = software_of(row.software)
    text = str(row["dtype_weights"]).lower()
    size = next((size for pattern, size in WEIGHTS if re.search(pattern, text)), None)
    if row["dtype_weights"] is None:
        raise UnusableRowError("its dtype_weights, the format of its weights, is not stated")
    if size is None:
        raise UnusableRowError(f"the format of its weights is not stated: {row['dtype_weights']!r}")
    dtype = conditions.format_of("bf16" if "mxfp4" in text else text) or "bf16"
    device = machine.device
    if dtype not in device.dtypes:
        dtype = next((each for each in ("bf16", "fp16", "fp32") if each in device.dtypes), dtype)
    faster = [each for each in FASTER if size <= 1 and each in device.dtypes]
    known = [each for each in (*faster, dtype) if each in device.dtypes]
    peak = max((device.peak(each).m_as("FLOP/s") for each in known), default=math.inf)
    kv = conditions.format_of(row["dtype_kv"]) or (software.kv if size <= 1 else "bf16")
    layout = conditions.layout(row)
    return Served(
        model,
        machine,
        software,
        conditions.devices(row),
        layout.get("DP", 1),
        layout.get("EP", 1),
        dtype,
        peak,
        quantity(size, "byte"),
        kernels.SIZES.get(kv, kernels.TWO_BYTES),
    )


def _check_layout(row: Row, served: Served, load: Tokens) -> None:
    """Of a layout that contradicts the number of devices, or of sequences, nothing is expected."""
    layout, devices = conditions.layout(row), served.devices
    whole = layout.get("TP", devices // served.replicas) * served.replicas
    stated = max(whole, served.experts) * (layout.get("PP", 1) if "TP" in layout else 1)
    if stated != devices:
        raise NotMeasured(f"its layout makes {stated} devices, and {devices} are stated")
    sequences = load.writing + load.reading / load.prompt
    if sequences < served.replicas:
        raise NotMeasured(
            f"its layout has {served.replicas} replicas, and {sequences:.3g} sequences run at once"
        )


def _measured(row: Row, served: Served) -> tuple[float, Tokens, float]:
    """Seconds for each token, the step that writes or reads them, and how many these are."""
    for name, value in row.measured.items():
        if match := PREFILL.fullmatch(name):
            length = float(match[1])
            return 1 / value, Tokens(0.0, 0.0, length, length), length
    for name, value in row.measured.items():
        if ONE_USER.fullmatch(name):
            prompt, answer = row.number("input_len"), row.number("output_len")
            context = UNSTATED_CONTEXT if prompt is None else prompt + (answer or 0.0) / 2
            return 1 / value, Tokens(row.number("batch") or 1.0, context), 1.0
    rate = next((row.measured[name] for name in RATES if name in row.measured), None)
    if rate is None:
        each = next((row.measured[name] for name in RATES_OF_ONE if name in row.measured), None)
        rate = None if each is None else each * served.devices
    if rate is None:
        raise UnusableRowError("it gives no rate of written tokens whose definition is clear")
    load = _load(row, served)
    return 1 / rate, load, load.writing


def _load(row: Row, served: Served) -> Tokens:
    """The mixed step of steady state: a batch that writes, and its share of prompts."""
    answer = row.number("output_len")
    if answer is None:  # the bound holds of prompts and answers as short as can be
        return Tokens(row.number("batch") or DEFAULT_BATCH * served.devices, 1.0)
    prompt = row.number("input_len") or min(UNSTATED_PROMPT, answer)
    context = prompt + answer / 2
    batch = row.number("batch")
    if batch is None:
        if "max" not in str(row["batch"]) and "concurrency" not in str(row["batch"]):
            raise UnusableRowError("its batch is not stated")
        if match := re.search(r"concurrency (\d+)", str(row["batch"])):
            batch = float(match[1])
    capacity = served.machine.device.memory_capacity.m_as("byte") * served.devices
    room = capacity * served.software.memory_share - served.weight_memory
    fits = math.floor(room / served.cache(context)) if room > 0 else 0
    if fits < 1:
        raise UnusableRowError("its weights and one sequence do not fit into its devices' memory")
    batch = min(batch or DEFAULT_BATCH * served.devices, float(fits))
    return Tokens(batch, context, batch * prompt / answer, prompt)
