"""Claims of the section "A model larger than its GPU": experts in the host's memory."""

from __future__ import annotations

import statistics

from calc import offloading as laws, software
from calc.core.units import Quantity, quantity
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.ledger import Claims
from calc.planning import plan
from calc.published import offloading_rows
from calc.steps.expectation import read_on_host
from calc.steps.job import Tokens
from calc.steps.splits import STREAMED

Rows = list[tuple[object, ...]]


class SplitModel(Claims):
    """A mixture on one card, its experts in the memory of the host, layer by layer."""

    prompt = quantity(1000, "token") | by_hand("1000 token")
    answers = quantity(300, "token") | by_hand("300 token")
    host = "96 GB DDR5-5600"
    planned = plan("gpt-oss-120b", "rtx-4090", prompt=1000, generated=300, host=host)
    bandwidth = laws.channel_bandwidth("5.6e9 / s", 2).to("GB/s") | by_hand(
        "8 byte * 2 * 5.6e9 / 1 s"
    )
    layers = quantity(planned.split.experts if planned.split else 0, "") | by_hand("24")
    of_layers = quantity(planned.model.layers, "") | by_hand("36")
    read = read_on_host(planned.job, Tokens(writing=1, context=1000)).to("GB") | by_hand(
        "24 * 4 * 3 * 2880 * 2880 * 4.25 bits"
    )
    share = quantity(software.get("llama-cpp").host_share, "").to("%") | by_hand("0.41")
    least = (read / bandwidth).to("ms") | by_hand("1.2690432e9 byte / (89.6e9 byte / 1 s)")
    waited = (read / (bandwidth * share)).to("ms") | by_hand(
        "1.2690432e9 byte / (0.41 * 89.6e9 byte / 1 s)"
    )


class SplitsMeasured(Claims):
    """Runs of split models: half of those with a stated host were kept back, and of each sweep all
    but the first."""

    stated = tuple(run for run in offloading_rows.runs() if run.states_host)
    held = tuple(offloading_rows.kept_back(list(stated)))
    count = quantity(len(held), "") | by_hand("6")
    errors = tuple(100 * float((run.time / run.expected).m_as("")) - 100 for run in held)
    median_error = quantity(statistics.median(map(abs, errors)), "%") | by_hand(
        "1 - (59.171598 / 63.247127 + 191.57088 / 217.37135) / 2"
    )
    shorter = quantity(-statistics.median(errors), "%") | by_hand(
        "1 - (38.314176 / 37.771603 + 48.076923 / 49.977835) / 2"
    )
    streamed = STREAMED | by_hand("32", "GGML_OP_OFFLOAD_MIN_BATCH, as llama.cpp has it")
    farthest = quantity(max(errors), "%") | by_hand("29.325513 / 12.119786 - 1")
    swept = tuple(
        float((run.as_after(sweep[0]) / run.time).m_as("")) - 1
        for sweep in offloading_rows.sweeps().values()
        for run in sweep[1:]
    )
    sweeps = quantity(len(swept), "") | by_hand("12")
    swept_error = quantity(100 * statistics.median(map(abs, swept)), "%") | by_hand(
        "(23.314781 / 23.030861 + 31.24185 / 30.883261) / 2 - 1"
    )

    @classmethod
    @row_by_hand("Qwen3 14B | RTX 2080 | 9 of 40 layers | 16.9 | 15.8 | −6.4%")
    def rows(cls) -> Rows:
        """Model, card, what its host holds, tokens a second measured and expected, the error."""
        table: Rows = []
        for run in cls.held:
            split, model, card = run.job.split, run.job.model, run.job.device.name
            assert split is not None
            expected = float((1 / run.expected).m_as("1/s"))
            name = card.removeprefix("NVIDIA GeForce ").removeprefix("AMD Radeon ")
            rate = run.row["tokens_per_s"]
            table.append(
                (
                    model.name,
                    name,
                    split.told(model),
                    rate,
                    expected,
                    _signed(run.time / run.expected - 1),
                )
            )
        return table


def _signed(error: Quantity) -> str:
    return f"{error.to('%').m:+.1f}%".replace("-", "\N{MINUS SIGN}")
