"""What the chapter "Training at scale" quotes of long contexts."""

from __future__ import annotations

from calc import models, transformer


class LongActivations:
    """A sequence of a million tokens keeps more than a device holds; cutting it divides that."""

    long = 1_048_576
    contexts = 64

    kept_long = transformer.activation_memory(
        models.get("llama-3-8b").with_context(long), long, recomputation="selective"
    ).to("TB")
    each = (kept_long / contexts).to("GB")
