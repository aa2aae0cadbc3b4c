"""What the chapter "Training at scale" quotes of long contexts."""

from __future__ import annotations

from calc import context_parallelism, machines, models, published, transformer
from calc.core.units import Quantity, quantity
from calc.derivations.quoting import Row
from calc.laws.roofline import StepTime


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
    by_nvlink = context_parallelism.ring_block(rate, server.bandwidth)


class RingOrHeads:
    """Bytes of a layer's attention: the same for all rings, and falling where heads move."""

    tokens = 131_072
    heads, kv_heads, head_width = 128, 8, 128
    devices = 8

    ring = context_parallelism.ring_traffic(tokens, kv_heads, head_width, head_width, devices).to(
        "MB"
    )
    by_heads = context_parallelism.ulysses_traffic(
        tokens, heads, kv_heads, head_width, head_width, devices
    ).to("MB")
    new_share = context_parallelism.new_share_for_keys(heads, kv_heads).to("%")


class LongPrefills:
    """Prefills of Llama 3 405B on servers of H100s, as published and by the library."""

    model = models.get("llama-3-405b")
    server = machines.get("dgx-h100")
    node = 8
    cases = (  # tokens, servers, seconds
        (1_000_000, 16, 77.0),
        (131_072, 16, 3.8),
        (131_072, 8, 5.85),
    )
    places = (0, 1, 2)
    decode_of_one = quantity("46.26 ms")
    decode_of_four = quantity("71.31 ms")

    @classmethod
    def step(cls, tokens: int, servers: int) -> StepTime:
        """The pass, with rings among the servers and sums within them."""
        return context_parallelism.prefill(cls.model, cls.server, tokens, servers, cls.node)

    @classmethod
    def times(cls, tokens: int, servers: int) -> tuple[Quantity, Quantity]:
        """The least time and the expected one."""
        step = cls.step(tokens, servers)
        assert step.expected is not None, step.not_expected
        return step.lower.to("s"), step.expected.to("s")

    @classmethod
    def row(cls, place: int) -> Row:
        """Tokens and GPUs; bound, expected and measured seconds; the error."""
        tokens, servers, seconds = cls.cases[place]
        least, expected = cls.times(tokens, servers)
        measured = quantity(seconds, "s")
        error = quantity(round((expected / measured - 1).m_as("%")), "%")
        return tokens, cls.node * servers, least, expected, measured, error


class LongRuns:
    """Training on long sequences, with the sequence cut and without."""

    _run = published.predict(published.row("nemo-longseq-17"))
    assert _run.error is not None
    tokens = int(_run.row.number("seq_len") or 0)
    cut = quantity(_run.row.measured["model_tflops_per_gpu_with_cp"], "TFLOP/s")
    whole = quantity(_run.row.measured["model_tflops_per_gpu_without_cp"], "TFLOP/s")
    error = quantity(-100 * _run.error, "%")
