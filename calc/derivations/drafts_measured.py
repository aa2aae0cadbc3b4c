"""Claims of the section "Does a draft pay here?": published gains beside expected ones."""

from __future__ import annotations

from calc import hardware
from calc.catalog import acceptance
from calc.core.units import quantity
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.ledger import Claims
from calc.published import drafts as published

Rows = list[tuple[object, ...]]


class AcceptanceMeasured(Claims):
    """Tokens that a pass keeps, by how many were drafted."""

    glm = acceptance.curve("glm-5-2", "mtp", "code")
    one = quantity(glm.of(1), "") | by_hand("1.84", "SemiAnalysis, InferenceX, GLM-5.2, 1 drafted")
    most = quantity(glm.of(8), "") | by_hand("4.06", "SemiAnalysis, InferenceX, GLM-5.2, 8 drafted")
    curves = quantity(14, "") | by_hand("14", "SemiAnalysis, InferenceX: curves of nine files")


class GainsMeasured(Claims):
    """Gains of drafts as published, and as expected."""

    every = published.pairs()
    held = published.kept_back()
    count = quantity(len(every), "") | by_hand("36 + 18")
    right = quantity(sum(pair.has_its_sign for pair in every), "") | by_hand("34 + 9 + 4")
    kept = quantity(len(held), "") | by_hand("18 + 9")
    kept_right = quantity(sum(pair.has_its_sign for pair in held), "") | by_hand("17 + 4")
    shown = (
        *("apple-m3-ultra-q6_k-131072-g3", "rtx-3090-q4_k_m-131072-g4-main"),
        *("rtx-5090-ud-q4_k_xl-196608-g1", "rtx-5090-ud-q4_k_xl-196608-g5"),
        *("strix-rocm-7.2.3-g3", "eagle-h100-2", "eagle-h100-48"),
    )

    @classmethod
    @row_by_hand("NVIDIA GeForce RTX 5090 | llama.cpp | 1 | 5 | 2.10 | 2.20")
    def rows(cls) -> Rows:
        """Device, program, batch, drafted tokens, and the gain measured and expected."""
        pairs = {pair.id: pair for pair in cls.held}
        return [
            (
                hardware.get(pair.row["device"]).name,
                pair.job.software.name,
                int(pair.row["batch"]),
                pair.drafted,
                f"{pair.gain:.2f}",
                f"{pair.expected:.2f}",
            )
            for pair in (pairs[name] for name in cls.shown)
        ]
