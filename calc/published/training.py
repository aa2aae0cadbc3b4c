"""A published training step: its bound, and what its kernels and messages are expected to take.

The time is that of one token on one device. A row's layout says how matrices, layers, sequences and
experts are cut; where it says nothing of one of them, that is not cut. Conditions that a row leaves
out are taken as data/published/README.md says, for all rows alike.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from calc import collectives, kernels, transformer
from calc.core.units import quantity
from calc.machines import Machine, NotMeasured
from calc.models import Transformer
from calc.published import conditions
from calc.published.prediction import Comparison, UnusableRowError, if_measured
from calc.published.reading import Row
from calc.software import Software, software_of

RECOMPUTED = {"True": 1.0, "full": 1.0}  # of the forward pass; selective recomputes attention only
FORWARD_AND_BACKWARD = 3  # products of a matrix and a token: one forward, two backward
FROZEN = 2  # where the weights are not trained, as with LoRA, there are no gradients of them
STATE_TRAFFIC = 28  # bytes of a parameter in an Adam step: states and weights read and written


def predict(row: Row) -> Comparison:
    """A row beside its prediction."""
    machine, model = conditions.machine(row), conditions.model(row)
    software = software_of(row.software)
    dtype = conditions.dtype(row) or "bf16"
    if row.number("seq_len") is None:
        raise UnusableRowError("the length of its sequences is not stated")
    measured = _seconds_per_token(row, machine, model, dtype)
    lower = _work(row, model) / machine.device.peak(dtype).m_as("FLOP/s")
    prediction = if_measured(lower, lambda: _parts(row, machine, model, dtype, software))
    return Comparison(row, machine.key, software.key, measured, prediction)


def _sequence(row: Row) -> float:
    """The length of a sequence, which a row that is predicted states."""
    return row.number("seq_len") or 0.0


def _work(row: Row, model: Transformer) -> float:
    """Operations of a token, forward and backward, with causal attention."""
    longest = kernels.reaching(model, _sequence(row))
    forward = transformer.causal_flops(longest, _sequence(row)).m_as("FLOP/token")
    return forward * (FROZEN if _frozen(row) else FORWARD_AND_BACKWARD)


def _frozen(row: Row) -> bool:
    """Whether the model's own weights are not trained."""
    return "lora" in f"{row['task']} {row['model']}".lower()


def _seconds_per_token(row: Row, machine: Machine, model: Transformer, dtype: str) -> float:
    """Seconds of one device for each token, from the first figure that the row gives."""
    devices = conditions.devices(row)
    for name in ("tokens_per_s_per_gpu", "tokens_per_s_per_chip"):
        if name in row.measured:
            return 1 / row.measured[name]
    if "tokens_per_s" in row.measured:
        return devices / row.measured["tokens_per_s"]
    for name in ("model_tflops_per_gpu", "tflops_per_chip", "model_tflops_per_gpu_with_cp"):
        if name in row.measured:
            return _work(row, model) / (row.measured[name] * 1e12)
    if "mfu" in row.measured:
        rate = row.measured["mfu"] / 100 * machine.device.peak(dtype).m_as("FLOP/s")
        return _work(row, model) / rate
    raise UnusableRowError("it gives no rate of tokens and no utilisation of one run")


def _parts(
    row: Row, machine: Machine, model: Transformer, dtype: str, software: Software
) -> tuple[dict[str, float], float]:
    """The time of a token on one device in parts, and what the software hides of it."""
    layout, devices = conditions.layout(row), conditions.devices(row)
    tensor, stages = layout.get("TP", 1), layout.get("PP", 1)
    contexts, experts = layout.get("CP", 1), layout.get("EP", 1)
    replicas = max(1, devices // (tensor * stages * contexts))
    stated = tensor * stages * contexts * layout.get("DP", replicas)
    if stated > devices or (stated != devices and "DP" in layout):
        raise NotMeasured(f"its layout makes {stated} devices, and {devices} are stated")
    length = _sequence(row)
    sequences = row.number("micro_batch") or row.number("local_batch") or layout.get("MBS") or 1
    batch = row.number("global_batch_seqs")
    batch = batch or replicas * (row.number("batch_per_dp") or sequences)
    microbatches = max(1.0, batch / (replicas * sequences))
    tokens = length * sequences / contexts
    recomputed = RECOMPUTED.get(str(row["activation_checkpointing"]), 0.0)
    step = kernels.training_step(
        model, length, sequences / contexts, tensor, dtype, recomputed, experts, _frozen(row)
    )
    times = kernels.expected(step, machine, software.attention)
    parts = {name: time.m_as("s") / stages for name, time in times.items()}
    compute = sum(parts.values())
    bubble = (stages - 1) / (layout.get("VP", 1) * microbatches)
    parts["bubble"] = compute * bubble
    hidden = 0.0
    width = 2.0 * model.width.m_as("")
    layers = model.layers.m_as("") / stages

    def message(operation: str, size: float, count: int) -> float:
        if count == 1:
            return 0.0
        return collectives.time(operation, quantity(size, "byte"), count, machine).needed.m_as("s")

    if tensor > 1:
        parts["tensor"] = 4 * layers * message("all_reduce", tokens * width, tensor)
        hidden += software.hides_tensor * parts["tensor"]
    if experts > 1 and model.active_experts is not None:
        # Each of the devices of TP sends its own share of the tokens.
        sent = tokens / tensor * width * model.active_experts.m_as("")
        parts["experts"] = 4 * layers * message("all_to_all", sent, experts)
    parameters = model.parameters.m_as("param") / (tensor * stages)
    sharded = "FSDP" in str(row["parallelism"]) and layout.get("FSDP", 1) != 0
    if replicas > 1:
        # All slices send at once, each through its own port: as one message of all of them.
        gathered = message("all_gather", 2 * parameters * tensor, replicas * tensor)
        reduced = message("reduce_scatter", 2 * parameters * tensor, replicas * tensor)
        if sharded:  # for each microbatch, hidden behind its own computation
            parts["data"] = 2 * gathered + reduced
        else:
            parts["data"] = (gathered + reduced) / microbatches
        hidden += min(parts["data"], software.hides_data * compute)
    held = parameters / replicas if replicas > 1 else parameters
    parts["optimizer"] = STATE_TRAFFIC * held / machine.memory_reached.m_as("byte/s") / microbatches
    shown = quantity(sum(parts.values()) - hidden, "s")
    lost = software.time_not_sustained(shown, model.experts is not None)
    parts["rates not sustained"] = lost.m_as("s")
    each = tensor * stages / tokens  # the devices that work on them, and what they share
    return {name: time * each for name, time in parts.items()}, hidden * each
