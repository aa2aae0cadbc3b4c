"""Counts, rates, formats, layouts and files as people write them, and examples of the help."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from calc import InputError, compare, models, plan, plan_service, plan_training
from calc.commands import command_parser, main
from calc.core.arguments import counted
from calc.formats import element_size
from calc.planning.service import read_trace
from calc.published.claims import read
from tests.calc.command import Command, Written
from tests.calc.flatly import flatly

CHAT: dict[str, Any] = {"prompt": 1000, "generated": 200}
RUN: dict[str, Any] = {"tokens": "1B", "length": 4096, "devices": 8, "software": "megatron"}


def test_counts_have_suffixes_and_tokens() -> None:
    long = plan("llama-3-1-8b", "h100", prompt="8k", generated="200 token")
    assert (long.prompt.magnitude, long.generated.magnitude) == (8192, 200)
    assert plan("llama-3-1-8b", "h100", prompt="10k", generated=1).prompt.magnitude == 10_000
    assert plan("llama-3-8b", "h100", prompt=100, generated=0).generated == 1
    run = flatly(plan_training, "llama-3-8b", "dgx-h100", sequences="1M token", **RUN).run
    assert run.sequences == 256  # of 4096 tokens: 2^20, since a million makes no whole sequences
    assert (
        flatly(plan_training, "llama-3-8b", "dgx-h100", sequences="64", **RUN).run.sequences == 64
    )


def test_k_is_binary_behind_a_power_of_two(capsys: pytest.CaptureFixture[str]) -> None:
    """Contexts of 8k and 128k hold 8 192 and 131 072 tokens, as the cards of models print them."""
    pairs = {"1k": 1024, "8k": 8192, "32K": 32768, "128k": 131072, "100k": 100_000, "1.5k": 1500}
    assert {text: counted(text) for text in pairs} == pairs
    claim = read("Llama 3.1 8B on 1 H100: 5k token/s, 32k prompt")
    assert (claim.figures["output"], claim.row["input_len"]) == (5000, 32768)
    line = ["fit", "llama-3-8b", "h100", "--context", "8k"]
    assert main(line) == 0
    assert capsys.readouterr().err == "calc: 8k is 8192 here\n"


@pytest.mark.parametrize(("device", "bandwidth"), [("a10g", 600e9), ("apple-m5-max", 614e9)])
def test_what_memory_alone_bounds_is_answered_without_a_peak(
    device: str, bandwidth: float, command: Command
) -> None:
    """A token of Llama 3 8B reads 15.01 GB of matrices, and 144 MB of 1 100 tokens."""
    made = plan("llama-3-8b", device, **CHAT, software="none")
    matrices = 2 * (8_030_261_248 - 128256 * 4096 - 65 * 4096)
    kept = 1100 * 2 * 32 * 8 * 128 * 2
    token = made.time_per_token.lower.m_as("s")
    assert token == pytest.approx((matrices + kept) / bandwidth, rel=1e-3)
    assert made.expected is None
    answer = command.prints(f"plan llama-3-8b {device} --prompt 1000 --generated 200")
    assert "of which no peak is published either" in " ".join(answer.split())
    assert "at a rate that is not published" in " ".join(made.assumptions)
    with pytest.raises(InputError, match=r"unpublished|no dense peak"):
        flatly(plan_training, "llama-3-2-1b", device, sequences=8, **RUN)


def test_a_limit_may_be_tokens_a_second() -> None:
    same = (
        compare("llama-3-70b", "dgx-h100", tpot=tpot, **CHAT).best.batch
        for tpot in ("50 token/s", "20 ms")
    )
    assert len({batch.magnitude for batch in same}) == 1
    with pytest.raises(InputError, match="ttft must be one positive quantity in s"):
        compare("llama-3-70b", "dgx-h100", ttft="50 token/s", **CHAT)


@pytest.mark.parametrize(("name", "bits"), [("q4_k", 4.5), ("AWQ", 4.15625), ("Q8 0", 8.5)])
def test_files_of_weights_have_their_bits(name: str, bits: float) -> None:
    assert element_size("weights", name).m_as("bit") == bits
    assert "weights in" in " ".join(plan("llama-3-8b", "rtx-4090", weights=name, **CHAT).chosen)


@pytest.mark.parametrize(
    "layout", [{"TP": 2, "ZeRO": 1}, {"tensor": 2, "sharding": 1}, {"tp": 2, "zero": 1, "DP": 4}]
)
def test_a_layout_takes_the_names_that_it_prints(layout: dict[str, int]) -> None:
    best = flatly(
        plan_training, "llama-3-8b", "dgx-h100", sequences=64, layout=layout, **RUN
    ).layout
    assert (best.tensor, best.sharding) == (2, 1)
    if "DP" in layout:
        assert best.data == 4


def test_a_published_layout_makes_no_choice_of_its_own() -> None:
    asked = RUN | {"devices": 64, "tokens": "1T"}
    plan = flatly(
        plan_training, "llama-3-70b", "dgx-h100", sequences=512, layout="published", **asked
    )
    assert not plan.best.beyond_published
    assert not plan.caveats
    with pytest.raises(InputError, match="layout fixes some of DP, TP, PP"):
        flatly(plan_training, "llama-3-70b", "dgx-h100", sequences=512, layout={"XP": 1}, **asked)


@pytest.mark.parametrize("layout", ["TP=2,PP=1", '{"tensor": 2, "pipeline": 1}', "published"])
def test_layouts_of_the_command_line(layout: str, command: Command) -> None:
    asked = "plan-training llama-3-8b dgx-h100 --tokens 1B --sequences 64 --length 4096 --devices 8"
    row = command.facts(*asked.split(), "--layout", layout)["rows"][0]
    assert row["tensor"] == 2 or layout == "published"


@pytest.mark.parametrize(
    "titles",
    [
        "timestamp,prompt_tokens,output_tokens",
        "arrival,prompt,generated",
        "arrived_at,input_tokens,completion_tokens",
    ],
)
def test_usual_titles_of_traces(titles: str, written: Written) -> None:
    file = written(f"{titles}\n0.0,1200,300\n0.4,800,150\n0.9,2048,512\n", "trace.csv")
    assert read_trace(file).prompts.tolist() == [1200, 800, 2048]


def test_the_help_shows_a_trace_that_is_read(
    capsys: pytest.CaptureFixture[str], written: Written
) -> None:
    with pytest.raises(SystemExit):
        main(["plan-service", "--help"])
    lines = capsys.readouterr().out.splitlines()
    first = next(index for index, line in enumerate(lines) if line.strip().startswith("timestamp,"))
    file = written("\n".join(line.strip() for line in lines[first : first + 4]), "trace.csv")
    made = flatly(
        plan_service, "llama-3-8b", "h100", trace=file, ttft="2 s", tpot="20 token/s", pools="mixed"
    )
    assert made.devices >= 1


def test_a_configuration_of_gpt2(tmp_path: Path) -> None:
    """124 439 808 parameters, as its release counts them."""
    file = tmp_path / "config.json"
    shape = {"n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "n_ctx": 1024}
    fields = {"vocab_size": 50257, "attn_pdrop": 0.1, "summary_type": "cls_index", "new_part": 1}
    file.write_text(json.dumps({"model_type": "gpt2"} | shape | fields))
    model = models.load(file)
    assert model.parameters.m_as("param") == 124_439_808
    assert model.notes == ("its configuration has what is unknown here, and not counted: new_part",)


CALLS = {  # a call of each command, to which each option's own example is added
    "plan": "llama-3-8b h100 --prompt 1k --generated 200",
    "compare": "llama-3-8b --machines h100 --prompt 1k --generated 200",
    "plan-training": "llama-3-8b dgx-h100 --tokens 1B --sequences 64 --length 4096 --devices 8",
    "plan-service": "llama-3-8b h100 --rate 5 --prompt 1k --generated 200 --ttft 1s --tpot 50ms"
    " --requests 200",
}
OF_OPTION = {  # those of an option that no other call takes
    ("plan-training", "--reward"): "qwen-3-30b-a3b dgx-h100 --rl --answers 2048 --average 3203"
    " --limit 4096 --devices 32"
}
APART = {  # what excludes an option of the call
    ("plan-training", "--deadline"): "--devices",
    ("plan-training", "--budget"): "--devices",
}

BESIDE = {
    ("plan-training", "--budget"): "--price|3 USD/hour",
    **dict.fromkeys([("plan-service", "--host-cache"), ("plan-service", "--disk")], "--turns|4"),
}
"""What an option's example needs besides."""


def examples() -> list[tuple[str, str, str]]:
    """Each quoted example of the help, with its command and its option."""
    lines = []
    for parser in command_parser()[1]:
        command = parser.prog.split()[-1]
        if command not in CALLS:
            continue
        parser.add_options()
        for action in parser._actions:
            quoted = re.findall(r'"([^"]+)"', action.help or "")
            lines += [
                (command, action.option_strings[0], text)
                for text in quoted[:1]
                if action.option_strings
            ]
    return lines


@pytest.mark.slow
def test_every_example_of_the_help_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    ran = examples()
    assert len(ran) > 25
    refused = []
    for command, option, text in ran:
        call = OF_OPTION.get((command, option), CALLS[command]).split()
        if left := APART.get((command, option)):
            index = call.index(left)
            del call[index : index + 2]
        more = BESIDE.get((command, option), "")
        if main([command, *call, option, text, *filter(None, more.split("|"))]) != 0:
            refused.append((command, option, text, capsys.readouterr().err))
    assert refused == []
