"""A published training step: its bound, and what its kernels and messages are expected to take.

The time is that of one token on one device. A row's layout says how matrices, layers, sequences and
experts are cut; where it says nothing of one of them, that is not cut. Conditions that a row leaves
out are taken as data/published/README.md says, for all rows alike.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from calc import expectation, kernels, transformer
from calc.machines import Machine, NotMeasured
from calc.models import Transformer
from calc.published import conditions
from calc.published.prediction import Comparison, UnusableRowError, if_measured
from calc.published.reading import Row
from calc.software import Software, software_of

RECOMPUTED = {"True": 1.0, "full": 1.0}  # of the forward pass; selective recomputes attention only
FORWARD_AND_BACKWARD = 3  # products of a matrix and a token: one forward, two backward
FROZEN = 2  # where the weights are not trained, as with LoRA, there are no gradients of them


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
    sharded = "FSDP" in str(row["parallelism"]) and layout.get("FSDP", 1) != 0
    found = expectation.training_step(
        model,
        machine,
        length,
        sequences,
        data=replicas,
        tensor=tensor,
        pipeline=stages,
        microbatches=microbatches,
        gathers=2 * microbatches if sharded else 1,
        reductions=microbatches if sharded else 1,
        optimizer_shards=replicas,
        contexts=contexts,
        experts=experts,
        virtual_stages=layout.get("VP", 1),
        recomputed=RECOMPUTED.get(str(row["activation_checkpointing"]), 0.0),
        frozen=_frozen(row),
        dtype=dtype,
        program=software,
    )
    tokens = length * sequences / contexts * microbatches
    return found.seconds(tokens / (tensor * stages))  # of the devices that work on them together
