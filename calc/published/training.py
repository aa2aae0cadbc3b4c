"""A published training step: its bound, and what its kernels and messages are expected to take.

The time is that of one token on one device. A row's layout says how matrices, layers, sequences and
experts are cut; where it says nothing of one of them, that is not cut. Conditions that a row leaves
out are taken as data/published/README.md says, for all rows alike.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from dataclasses import dataclass

from calc.catalog.machines import Machine, NotMeasured
from calc.catalog.models import Transformer
from calc.catalog.software import Software, software_of
from calc.networks import transformer
from calc.published import conditions
from calc.published.prediction import Comparison, UnusableRowError, if_measured
from calc.published.reading import Row
from calc.steps import expectation, kernels
from calc.steps.finetuning import Adapters

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
    return forward * (FROZEN if is_frozen(row) else FORWARD_AND_BACKWARD)


def is_frozen(row: Row) -> bool:
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
    stated = cut(row)
    length = _sequence(row)
    microbatches, sharding = stated.microbatches, stated.sharding
    found = expectation.training_step(
        model,
        machine,
        length,
        stated.sequences,
        data=stated.data,
        tensor=stated.tensor,
        pipeline=stated.stages,
        microbatches=microbatches,
        gathers=2 * microbatches if sharding == 3 else 1,
        reductions=microbatches if sharding > 1 else 1,
        optimizer_shards=stated.data,
        contexts=stated.contexts,
        experts=stated.experts,
        virtual_stages=stated.thin_stages,
        recomputed=recomputed(row),
        frozen=is_frozen(row),
        trained=Adapters().share(model) if is_frozen(row) else 1.0,
        dtype=dtype,
        program=software,
    )
    tokens = length * stated.sequences / stated.contexts * microbatches
    # Of the devices that work on them together:
    return found.seconds(tokens / (stated.tensor * stated.stages))


@dataclass(frozen=True)
class Cut:
    """How a row's model and batch are cut; what the row does not name is not cut."""

    data: int
    tensor: int
    stages: int
    contexts: int
    experts: int
    thin_stages: int
    """Of each device."""
    sequences: float
    """Of a microbatch."""
    microbatches: float
    sharding: int
    """Stage of ZeRO: 1 where copies share the optimizer's states alone."""


def cut(row: Row) -> Cut:
    """What a row states of its layout.

    >>> from calc.published import rows
    >>> [row] = [row for row in rows("training") if row.id == "nemo-24.07-15"]
    >>> cut(row).tensor, cut(row).stages, cut(row).microbatches
    (4, 4, 32.0)
    """
    layout, devices = conditions.layout(row), conditions.devices(row)
    tensor, stages, contexts = (layout.get(name, 1) for name in ("TP", "PP", "CP"))
    replicas = max(1, devices // (tensor * stages * contexts))
    stated = tensor * stages * contexts * layout.get("DP", replicas)
    if stated > devices or (stated != devices and "DP" in layout):
        raise NotMeasured(f"its layout makes {stated} devices, and {devices} are stated")
    sequences = row.number("micro_batch") or row.number("local_batch") or layout.get("MBS") or 1
    batch = row.number("global_batch_seqs")
    batch = batch or replicas * (row.number("batch_per_dp") or sequences)
    return Cut(
        replicas,
        tensor,
        stages,
        contexts,
        layout.get("EP", 1),
        layout.get("VP", 1),
        sequences,
        max(1.0, batch / (replicas * sequences)),
        _sharding(row, stages),
    )


def _sharding(row: Row, stages: int) -> int:
    """What FSDP shares out: beside stages of a pipeline, or as SHARD_GRAD_OP, not the weights.

    These stay whole after the forward pass [grattafiori2024llama3]: else each microbatch would
    gather them again.
    """
    words = str(row["parallelism"])
    if "FSDP" not in words or conditions.layout(row).get("FSDP", 1) == 0:
        return 1
    return 2 if stages > 1 or "SHARD_GRAD_OP" in words else 3


def recomputed(row: Row) -> float:
    """The share of the forward pass that a row computes again."""
    return RECOMPUTED.get(str(row["activation_checkpointing"]), 0.0)
