"""Claims of the chapter "Training at scale" on long contexts."""

from __future__ import annotations

from calc import models, transformer
from calc.derivations.by_hand import by_hand
from calc.derivations.ledger import Claims


class LongActivations(Claims):
    """A sequence of a million tokens keeps more than a device holds; cutting it divides that."""

    long = 1_048_576
    contexts = 64

    kept_long = transformer.activation_memory(
        models.get("llama-3-8b").with_context(long), long, recomputation="selective"
    ).to("TB") | by_hand("1048576 * 32 * 2 byte * (4 * 4096 + 10240 + 3 * 14336)")
    each = (kept_long / contexts).to("GB") | by_hand("4.672924 TB / 64")
