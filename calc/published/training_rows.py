"""A published training step: what it takes at least, and what it is expected to take.

The time is that of one token on one device. A row's layout says how matrices, layers, sequences and
experts are cut; where it says nothing of one of them, that is not cut. Conditions that a row leaves
out are taken as data/published/README.md says, for all rows alike.
"""

from __future__ import annotations

from dataclasses import replace

from calc.catalog.machines import Machine, NotMeasured
from calc.catalog.models import Transformer
from calc.catalog.software import Software, software_of
from calc.core.errors import InputError
from calc.published import conditions
from calc.published.prediction import Comparison, prediction_of
from calc.published.reading import Row, UnusableRowError
from calc.steps.finetuning import Adapters
from calc.steps.job import ALL, Batch, Formats, Job, Layout, reaching
from calc.steps.timing import step

FULLY_RECOMPUTED = ("True", "full")


def predict(row: Row) -> Comparison:
    """A row beside its prediction."""
    machine, model = conditions.machine(row), conditions.model(row)
    dtype = conditions.dtype(row) or "bf16"
    measured = _seconds_per_token(row, machine, model, dtype)
    job, batch, missing = cut(row)
    tokens = batch.length * batch.sequences * job.layout.microbatches * job.layout.data
    prediction = prediction_of(step(job, batch), tokens / job.layout.devices)
    return Comparison(
        row,
        machine.key,
        job.software.key,
        measured,
        replace(prediction, missing=missing) if missing else prediction,
        mixture=model.experts is not None,
    )


def cut(row: Row) -> tuple[Job, Batch, str]:
    """A row's job and batch, and the sentence that says what its layout contradicts.

    The arithmetic of such a row bounds it all the same, whatever its layout was.
    """
    machine, missing = conditions.machine(row), ""
    try:
        job = job_of(row)
    except NotMeasured as contradiction:
        missing = str(contradiction)
        job = job_of(row, Layout(data=conditions.devices(row)))
    if missing or job.layout.devices > machine.most_joined:
        job = replace(job, machine=machine.device)
    return job, batch_of(row), missing


def job_of(row: Row, layout: Layout | None = None) -> Job:
    """A row's model on its machine, cut as it says, or as this layout does."""
    length, layout = _length(row), layout or layout_of(row)
    model = reaching(conditions.model(row), length)
    try:
        layout.check(model)
    except InputError as contradiction:
        raise NotMeasured(f"its layout cannot be: {contradiction}") from None
    dtype = conditions.dtype(row) or "bf16"
    trained = Adapters() if is_frozen(row) else ALL
    return Job(model, conditions.machine(row), layout, Formats(dtype), _software(row), trained)


def batch_of(row: Row) -> Batch:
    """The microbatches of a row, and what it computes twice."""
    stated = str(row["activation_checkpointing"])
    if stated in FULLY_RECOMPUTED:
        again = "full"
    else:
        again = _software(row).selective if stated == "selective" else "selective"
    return Batch(_length(row), _microbatch(row), again)


def _software(row: Row) -> Software:
    program = software_of(row.software, "other-training")
    return replace(program, attention=row["kernel"]) if row["kernel"] else program


def _length(row: Row) -> int:
    length = row.number("seq_len")
    if length is None:
        raise UnusableRowError("the length of its sequences is not stated")
    return int(length)


def is_frozen(row: Row) -> bool:
    """Return whether the model's own weights are not trained."""
    return "lora" in f"{row['task']} {row['model']}".lower()


def _seconds_per_token(row: Row, machine: Machine, model: Transformer, dtype: str) -> float:
    """Seconds of one device for each token, from the first figure that the row gives."""
    devices = conditions.devices(row)
    for name in ("tokens_per_s_per_gpu", "tokens_per_s_per_chip"):
        if name in row.measured:
            return 1 / row.measured[name]
    if "tokens_per_s" in row.measured:
        return devices / row.measured["tokens_per_s"]
    length = _length(row)
    trained = Adapters() if is_frozen(row) else ALL
    work = float(trained.work(reaching(model, length), length).m_as("FLOP/token"))
    for name in ("model_tflops_per_gpu", "tflops_per_chip", "model_tflops_per_gpu_with_cp"):
        if name in row.measured:
            return work / (row.measured[name] * 1e12)
    if "mfu" in row.measured:
        peak = float(machine.device.peak(dtype).m_as("FLOP/s"))
        return work / (row.measured["mfu"] / 100 * peak)
    raise UnusableRowError("it gives no rate of tokens and no utilisation of one run")


def _microbatch(row: Row) -> int:
    """Sequences of a microbatch."""
    stated = conditions.layout(row)
    # A batch of a copy that stages of a pipeline pass on is cut, into single ones by default.
    local = row.number("local_batch") if stated.get("PP", 1) == 1 else None
    sequences = row.number("micro_batch") or local or stated.get("MBS") or 1
    if sequences % 1:
        raise UnusableRowError(f"its microbatches have {sequences} sequences")
    return int(sequences)


def layout_of(row: Row) -> Layout:
    """Return what a row states of its layout; what it does not name is not cut.

    >>> from calc.published import rows
    >>> [row] = [row for row in rows("training") if row.id == "nemo-24.07-15"]
    >>> layout = layout_of(row)
    >>> layout.tensor, layout.pipeline, layout.microbatches
    (4, 4, 32)
    """
    stated, devices = conditions.layout(row), conditions.devices(row)
    tensor, pipeline, context = (stated.get(name, 1) for name in ("TP", "PP", "CP"))
    replicas = max(1, devices // (tensor * pipeline * context))
    total = tensor * pipeline * context * stated.get("DP", replicas)
    if total > devices or (total != devices and "DP" in stated):
        raise NotMeasured(f"its layout makes {total} devices, and {devices} are stated")
    sequences = _microbatch(row)
    batch = row.number("global_batch_seqs")
    of_a_copy = row.number("batch_per_dp") or row.number("local_batch") or sequences
    batch = batch or replicas * of_a_copy
    if batch < replicas * sequences:
        raise UnusableRowError(
            f"its batch of {batch:g} sequences is less than a microbatch of {sequences} for each of"
            f" {replicas} copies"
        )
    microbatches = batch / (replicas * sequences)
    if microbatches % 1:
        raise UnusableRowError(f"its batch makes {microbatches} microbatches")
    return Layout(
        data=replicas,
        tensor=tensor,
        pipeline=pipeline,
        microbatches=int(microbatches),
        sharding=_sharding(row, pipeline),
        hold_gradients=pipeline > 1 and bool(_software(row).holds_gradients),
        context=context,
        experts=stated.get("EP", 1),
        stages_per_device=stated.get("VP", 1) if pipeline > 1 else 1,
    )


def _sharding(row: Row, pipeline: int) -> int:
    """Return what FSDP shares out: beside stages of a pipeline, or as SHARD_GRAD_OP, no weights.

    These stay whole after the forward pass [grattafiori2024llama3]: else each microbatch would
    gather them again. Elsewhere copies share the optimizer's states alone.
    """
    words = str(row["parallelism"])
    if "FSDP" not in words or conditions.layout(row).get("FSDP", 1) == 0:
        return 1
    return 2 if pipeline > 1 or "SHARD_GRAD_OP" in words else 3
