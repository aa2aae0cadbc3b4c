"""Every option of every command changes the answer, or says here why it does not.

Options are drawn from the parsers themselves, so that a new one without a line here fails.
"""

from __future__ import annotations

import argparse
import csv
import functools
import json
import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calc import simulation
from calc.commands import command_parser, main
from calc.core.errors import InputError

# Of each command the line that is asked first.
LINES = {
    "list": "constants",
    "show": "h100",
    "search": "'hbm latency'",
    "eval": "'10 GB / 2 GB/s'",
    "roofline": "h100 --flops 1e12 --bytes 1e12",
    "gemm": "4096 4096 4096 h100",
    "attention": "8192 h100",
    "collective": "all-reduce '16 MB' dgx-h100",
    "throughput": "sd3-medium h100",
    "fit": "llama-3-8b h100",
    "watts": "h100",
    "observe": "llama-3-8b h100 concurrency=8,ttft=0.2s,tpot=12ms"
    " concurrency=32,ttft=0.5s,tpot=20ms --prompt 500 --generated 100",
    "plan": "llama-3-8b dgx-h100 --prompt 1000 --generated 100 --batch 8 --devices 2",
    "plan-training": "llama-3-8b dgx-h100 --tokens 1e11 --sequences 256 --length 4096 --devices 32"
    " --layout TP=2,PP=2",
    "plan-service": "llama-3-8b dgx-h100 --rate 2 --prompt 500 --generated 50 --ttft '2 s'"
    " --tpot '50 ms' --requests 200 --pools mixed --chunk 2048",
    "break-even": "gpt-oss-20b h100 --price '3 USD/hour' --prompt 500 --generated 50",
    "compare": "llama-3-8b --machines h100,h200 --prompt 1000 --generated 100",
    "assert": "limits.toml",
    "check": "'Llama 3.1 70B on 4 H100: 5 000 token/s at 64 users'",
    "simulate": "",
    "sweep": "",
    "completion": "bash",
}
REWARDED = "qwen-3-30b-a3b dgx-h100 --rl --answers 2048 --average 3203 --limit 4096 --devices 32"
SESSIONS = (
    "llama-3-8b dgx-h100 --turns 3 --prompt 500 --generated 50 --ttft '2 s' --tpot '50 ms'"
    " --requests 100 --pools mixed --chunk 2048"
)
TRAINED = "llama-3-8b dgx-h100 --tokens 1e11 --sequences 4 --length 4096 --layout TP=1,PP=1"
TRACES = "slow.csv", "fast.csv"
STATES = Path("states.csv")
LIMITS = '[fit]\nmodel = "llama-3-8b"\ndevice = "h100"\nmust = ["fits"]\n'
PLANNED: dict[str, str | tuple[str, ...]] = {
    "--prompt": "2000",
    "--generated": "300",
    "--weights": "fp8",
    "--kv": "fp8",
    "--dtype": "fp8",
    "--context": ("20000", "--prompt 10000"),
    "--software": "sglang",
    "--price": "'5 USD/hour'",
    "--pue": ("1.5", "--grid france"),
    "--grid": "france",
}
# Of each option a value for which that line has another answer; then what else is asked, the value
# that it is held against where that is not none, and the line where it is another.
OTHER: dict[str, dict[str, str | tuple[str, ...]]] = {
    "eval": {"--to": "ms"},
    "roofline": {"--flops": "2e15", "--bytes": "2e12", "--dtype": "fp8"},
    "gemm": {"--dtype": "fp8"},
    "attention": {
        "--heads": "16",
        "--kv-heads": "8",
        "--head-width": "64",
        "--sequences": "2",
        "--queries": "1",
        "--causal": "",
        "--backward": "",
        "--dtype": "fp8",
    },
    "collective": {"--devices": "4", "--software": "vllm"},
    "throughput": {
        "--batch": "8",
        "--dtype": "fp8",
        "--steps": "10",
        "--pixels": "512,512",
        "--devices": "2",
        "--table": ("int8", "", "", "dlrm-dcnv2 dgx-h100"),
        "--frames": ("41", "", "", "wan-2-2-t2v-a14b h200"),
        "--together": ("2", "", "", "sd3-medium dgx-h100"),
        "--software": "diffusers-compiled",
        "--training": ("", "", "", "resnet-50 h100"),
        "--written": ("9", "", "", "whisper-large-v3 h100"),
    },
    "fit": {
        "--software": "sglang",
        "--tensor": "2",
        "--stages": "2",
        "--utilization": "0.7",
        "--batched-tokens": "512",
        "--sequences": "16",
        "--context": "2048",
        "--weights": "fp8",
        "--kv": "fp8",
        "--memory": "'60 GiB'",
        "--eager": "",
    },
    "watts": {"--model": "llama-3-1-8b"},
    "observe": {
        "--tensor": "2",
        "--prompt": "2000",
        "--generated": "200",
        "--weights": "fp8",
        "--shortest": "0.5",
        "--kv": "fp8",
        "--dtype": "fp8",
        "--software": "sglang",
    },
    "plan": PLANNED
    | {
        "--batch": "16",
        "--devices": "4",
        "--tensor": "1",
        "--copies": "2",
        "--stages": "2",
        "--by": "ttft",
        "--users": ("8", "", "1", "llama-3-8b dgx-h100 --prompt 1000 --generated 100 --devices 2"),
        "--experts": (
            "2",
            "",
            "1",
            "qwen-3-30b-a3b dgx-h100 --prompt 10 --generated 10 --batch 8 --devices 2 --copies 2",
        ),
        "--link": "'3 GB/s'",
        "--parts": "",
        "--host": (
            "'96 GB DDR5-5600'",
            "",
            "'96 GB DDR4-3200'",
            "gpt-oss-120b rtx-4090 --prompt 100 --generated 10",
        ),
        "--power-cap": "'400 W'",
        "--draft": ("eagle3", "", "", "llama-3-8b h100 --prompt 100 --generated 10"),
        "--text": ("code", "", "", "qwen-3-5-27b h100 --prompt 100 --generated 10 --draft mtp"),
        "--acceptance": ("0.5", "", "0.9", "llama-3-8b h100 --prompt 9 --generated 9 --draft mtp"),
    },
    "plan-training": {
        "--rl": ("", REWARDED.partition("--rl ")[2], "", "qwen-3-30b-a3b dgx-h100"),
        "--answers": ("4096", "", "2048", REWARDED.replace("--answers 2048 ", "")),
        "--average": ("2000", "", "3000", REWARDED.replace("--average 3203 ", "")),
        "--limit": ("8192", "", "4096", REWARDED.replace("--limit 4096 ", "")),
        "--prompt": ("4000", "", "", REWARDED),
        "--engine": ("2", "", "4", REWARDED),
        "--reward": ("'9 s'", "", "", REWARDED),
        "--steps": ("100", "", "", REWARDED),
        "--tokens": "2e11",
        "--sequences": "512",
        "--length": "8192",
        "--context": ("16k", "", "", f"{LINES['plan-training']} --length 16k"),
        "--dtype": "fp8",
        "--recipe": "adam-fp32",
        "--fine-tune": "lora",
        "--rank": ("64", "--fine-tune lora"),
        "--devices": "64",
        "--software": "llm-foundry",
        "--layout": "TP=4,PP=2",
        "--deadline": ("'400 day'", "", "'10 day'", TRAINED),
        "--budget": ("'1e4 USD'", "--price '3 USD/hour'", "'2e4 USD'", TRAINED),
        "--recomputation": "full",
        "--schedule": "zb-h1",
        "--usable": "0.2",
        "--device-time-between-failures": "'10000 hour'",
        "--storage-bandwidth": "'1 MB/s'",
        "--restart-time": "'5 hour'",
        "--price": "'5 USD/hour'",
        "--pue": "1.5",
        "--grid": "france",
    },
    "plan-service": PLANNED
    | {
        "--rate": "200",
        "--prompt-spread": "0.1",
        "--generated-spread": "0.1",
        "--hit-rate": "0.9",
        "--turns": "4",
        "--think": ("'1 s'", "--turns 4"),
        "--shared": "400",
        "--requests": "400",
        "--seed": "5",
        "--ttft": "'60 ms'",
        "--tpot": "'9 ms'",
        "--percentile": "50",
        "--draft": ("llama-3-2-1b", "--acceptance 0.8"),
        "--acceptance": ("0.5", "--draft llama-3-2-1b", "0.9"),
        "--drafted": ("2", "--draft llama-3-2-1b --acceptance 0.8"),
        "--pools": "disaggregated",
        "--chunk": "512",
        "--slots": "2",
        "--devices": ("64", "--rate 200", "1"),
        "--agents": ("30", "", "20", SESSIONS),
        "--subagents": ("1", "--agents 30", "", SESSIONS),
        "--host-cache": ("'100 GB'", "--turns 3 --think '3000 s' --requests 100"),
        "--disk": ("'1 TB'", "--turns 3 --think '3000 s' --requests 100"),
        "--routing": ("turns", "--turns 3 --rate 100 --requests 100"),
        "--trace": (TRACES[0], "", TRACES[1], "llama-3-8b dgx-h100 --ttft '2 s' --tpot '50 ms'"),
        "--write": "vllm",
        "--kubernetes": ("kserve", "--write vllm"),
    },
    "break-even": PLANNED
    | {
        "--ttft": ("'300 ms'", "", "'50 ms'"),
        "--tpot": "'4 ms'",
        "--percentile": "50",
        "--api": "groq-gpt-oss-20b",
        "--hit-rate": "0.5",
    },
    "compare": PLANNED
    | {
        "--machines": "h100,b200",
        "--users": "4",
        "--devices": "4",
        "--tensor": ("2", "--devices 4"),
        "--copies": ("2", "--devices 4"),
        "--stages": ("2", "--devices 4"),
        "--ttft": "'50 ms'",
        "--tpot": "'8 ms'",
        "--by": "tpot",
    },
    "check": {"--about": "'fp8, prompts of 4000'", "--states": STATES.name},
    "simulate": {
        "--layers": "64-512-10",
        "--memory": "'64 kB'",
        "--slowdown": "9",
        "--precision": "fp16",
        "--limit": "16",
        "--mode": "training",
        "--optimizer": "adam",
        "--sleep": "",
        "--run-infeasible": "",
        "--epochs": "3",
        "--alpha": "0.7",
        "--batch": "9",
        "--seed": "4",
        "--plan": "",
    },
    "sweep": {
        "--layers": "64-16-10",
        "--power": "'3 W'",
        "--latency-multiplier": "4",
        "--repeats": "4",
        "--epochs": "4",
        "--alpha": "0.7",
        "--batch": "9",
        "--latency-batch": "9",
        "--storage": "csr",
        "--fine-tuning": "3",
        "--pruning": "0,0.4",
        "--precisions": "int8",
        "--kinds": "structured",
        "--budgets": "'2 kB'",
        "--active": "'8 kB'",
        "--resume": "rows.jsonl",
        "--seeds": "4",
        "--workers": ("2", "--resume rows.jsonl"),
    },
}
# Commands that measure or read a log: a test beside this one names them with each option.
ELSEWHERE = {"measure", "validate", "training"}
WHY_NOT = {
    ("roofline", "--explain"): "its answer is told in full",
    ("attention", "--explain"): "its answer is told in full",
    ("gemm", "--explain"): "its answer is told in full",
    ("mcp", "--json"): "an assistant is always answered in JSON",
    ("simulate", "--json"): "test_simulate_command trains",
    ("fit", "--log"): "test_engine_logs asks it, of logs of each engine",
    **dict.fromkeys(
        [("sweep", "--json"), ("sweep", "--csv"), ("sweep", "--parquet")],
        "test_sweep_command trains",
    ),
}


def options() -> list[tuple[str, str]]:
    """Every command with each of its options."""
    pairs = []
    for parser in command_parser()[1]:
        parser.add_options()
        pairs += [
            (parser.prog.split()[-1], action.option_strings[0])
            for action in parser._actions
            if action.option_strings and not isinstance(action, argparse._HelpAction)
        ]
    return pairs


def test_each_option_that_is_told_of_here_is_one_of_its_command() -> None:
    """An option whose meaning is not read has no line in a parser, and is not tried below."""
    described = {(command, option) for command, of_it in OTHER.items() for option in of_it}
    for command, option in sorted(described - {*options()}):
        assert option in PLANNED, f"calc {command} has no {option}"


# What a value is, where its option's name does not say so.
FILES = "--csv --draw --log --save --config --write-config --contribute --published --kernels"
VALUES = {
    **dict.fromkeys(f"{FILES} --html --parquet".split(), "FILE"),
    "--all": "FOLDER",
    "--bytes": "TRAFFIC",
    "--flops": "OPERATIONS",
    "--to": "UNIT",
    "--write": "ENGINE",
}


def test_what_stands_for_the_value_of_an_option_says_what_it_is() -> None:
    shown = {}
    for parser in command_parser()[1]:
        parser.add_options()
        for action in parser._actions:
            if action.option_strings and action.nargs != 0 and not action.choices:
                option = action.option_strings[0]
                shown[parser.prog, option] = action.metavar or action.dest.upper()
    assert VALUES.keys() <= {option for _, option in shown}
    assert shown == {
        (command, option): VALUES.get(option, option.removeprefix("--").replace("-", "_").upper())
        for command, option in shown
    }


Prints = Callable[[str], str]


def json_is_the_answer(prints: Prints, line: str, first: str, folder: Path) -> None:
    assert json.loads(prints(f"{line} --json"))
    assert prints(f"{line} --json") != first


def csv_has_rows(prints: Prints, line: str, first: str, folder: Path) -> None:
    header, row, *_ = prints(f"{line} --csv").splitlines()
    assert header.count(",") == len(next(csv.reader([row]))) - 1


def more_is_explained(prints: Prints, line: str, first: str, folder: Path) -> None:
    assert len(prints(f"{line} --explain")) > len(first)


def a_figure_is_drawn(prints: Prints, line: str, first: str, folder: Path) -> None:
    prints(f"{line} --draw {folder / 'drawn.svg'}")
    assert "<path" in (folder / "drawn.svg").read_text(encoding="utf-8")


def the_file_asks_it_again(prints: Prints, line: str, first: str, folder: Path) -> None:
    prints(f"{line} --write-config {folder / 'asked.toml'}")
    assert prints(f"--config {folder / 'asked.toml'}") == first


def the_server_is_kept(prints: Prints, line: str, first: str, folder: Path) -> None:
    prints(f"{line} --save {folder / 'server.toml'}")
    assert tomllib.loads((folder / "server.toml").read_text(encoding="utf-8"))
    (folder / "server.toml").unlink()
    assert prints(line) == first
    assert not [*folder.glob("*.toml")], "without the option nothing is written"


def a_row_is_written(prints: Prints, line: str, first: str, folder: Path) -> None:
    file = folder / "my-report.toml"
    prints(f"{line} --about 'vLLM 0.24.0' --contribute {file}")
    [row] = tomllib.loads(file.read_text(encoding="utf-8"))["serving"]
    assert row["measured"] == [{"name": "output_tokens_per_s", "value": 5000, "unit": "tokens/s"}]


EVERYWHERE = {
    "--json": json_is_the_answer,
    "--csv": csv_has_rows,
    "--explain": more_is_explained,
    "--draw": a_figure_is_drawn,
    "--config": the_file_asks_it_again,
    "--write-config": the_file_asks_it_again,
    "--save": the_server_is_kept,
    "--contribute": a_row_is_written,
}


def asks(*arguments: Any, **named: Any) -> None:
    """Refuse with all that is asked, in place of what trains for seconds."""
    fields = [vars(each) for each in arguments if hasattr(each, "__dict__")]
    within = [*arguments, *(value for each in fields for value in each.values())]
    widths = [each.layer_sizes for each in within if hasattr(each, "layer_sizes")]
    said = f"{widths} {fields} {arguments} {named}"
    raise InputError(re.sub(" at 0x[0-9a-f]+", "", said))  # which differ from call to call


NAMED = [
    text
    for path in Path(__file__).parent.rglob("test_*.py")
    if path.name != Path(__file__).name
    for text in path.read_text(encoding="utf-8").split("\ndef ")
]


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    """Return the printed text of each line, once."""
    return {}


def with_and_without(command: str, option: str) -> tuple[str, str]:
    """The line with an option, and the one that must be answered otherwise."""
    entry = OTHER[command][option]
    parts = (entry,) if isinstance(entry, str) else entry
    value, rest, beside, line = (*parts, *("", "", "", LINES[command])[len(parts) :])
    line = f"{line} {rest}"
    return f"{line} {option} {value}", f"{line} {option} {beside}" if beside else line


# What searches or simulates; of these an option costs a quarter of a second each.
SLOW = ("plan-service", "plan-training", "break-even", "compare", "observe")


def tier(index: int, command: str) -> list[pytest.MarkDecorator]:
    """Return the mark of what is slow, of which a change tries every third option."""
    if command not in SLOW:
        return []
    return [pytest.mark.nightly if index % 3 else pytest.mark.slow]


@pytest.mark.parametrize(
    ("command", "option"),
    [pytest.param(*each, marks=tier(index, each[0])) for index, each in enumerate(options())],
)
def test_an_option_changes_the_answer(
    command: str,
    option: str,
    answers: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trains = command in ("simulate", "sweep")

    def prints(asked: str, refused: bool = trains) -> str:
        if (key := f"{command} {asked}") not in answers or str(tmp_path) in asked:
            failed = main([command, *shlex.split(asked)])
            out, err = capsys.readouterr()
            assert refused or not failed, err
            answers[key] = out + err
        return answers[key]

    monkeypatch.chdir(tmp_path)
    for name in ("run_sweep", "run_training_with_hardware_constraints"):
        monkeypatch.setattr(simulation, name, functools.wraps(getattr(simulation, name))(asks))
    if command == "assert":
        Path("limits.toml").write_text(LIMITS, encoding="utf-8")
    STATES.write_text("utilization.gpu [%]\n9 %\n", encoding="utf-8")
    for name, seconds in zip(TRACES, (10, 0.1), strict=True):
        rows = "".join(f"{seconds * n},{400 + n},{50 + n}\n" for n in range(40))
        Path(name).write_text(f"arrival,prompt,generated\n{rows}", encoding="utf-8")
    if option in OTHER.get(command, {}):
        asked, beside = with_and_without(command, option)
        assert prints(asked) != prints(beside, refused=True)
    elif command in LINES and option in EVERYWHERE and (command, option) not in WHY_NOT:
        EVERYWHERE[option](prints, LINES[command], prints(LINES[command]), tmp_path)
    elif (command, option) not in WHY_NOT:
        asked_in = [text for text in NAMED if command in text and f"{option}" in text]
        assert command in ELSEWHERE, f"say what changes with {option} of calc {command}"
        assert asked_in, f"no test asks calc {command} {option}"
