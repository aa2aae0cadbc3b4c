"""What the chapter "Training at scale" quotes of long contexts."""

from __future__ import annotations

from calc import context_parallelism, machines, models, published, transformer
from calc.core.units import quantity


class LongActivations:
    """A sequence of a million tokens keeps more than a device holds; cutting it divides that."""

    long = 1_048_576
    contexts = 64

    kept_long = transformer.activation_memory(
        models.get("llama-3-8b").with_context(long), long, recomputation="selective"
    ).to("TB")
    each = (kept_long / contexts).to("GB")


class RingOfBlocks:
    """When a step of ring attention hides the keys and values that go round."""

    server = machines.get("dgx-h100")
    rate = server.attention_reached("forward")
    heads_per_group = 16  # of Llama 3 405B
    port = server.ports.to("GB/s")

    by_port = context_parallelism.ring_block(rate, port)
    by_port_grouped = context_parallelism.ring_block(rate, port, heads_per_group)


class LongRuns:
    """Training on long sequences, with the sequence cut and without."""

    _run = published.predict(published.row("nemo-longseq-17"))
    assert _run.error is not None
    tokens = int(_run.row.number("seq_len") or 0)
    cut = quantity(_run.row.measured["model_tflops_per_gpu_with_cp"], "TFLOP/s")
    whole = quantity(_run.row.measured["model_tflops_per_gpu_without_cp"], "TFLOP/s")
