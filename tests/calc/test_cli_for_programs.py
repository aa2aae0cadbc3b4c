"""The command `calc` for programs and shells: JSON, CSV, search, completion, one's own devices."""

from __future__ import annotations

import csv
import inspect
import pickle
import random
import re
import shlex
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import calc
from calc import (
    commands,
    constants,
    formats,
    hardware,
    machines,
    models,
    runs,
    software,
    training,
    transformer,
)
from calc.catalog import grids
from calc.commands.lookup import KINDS, functions, shown
from calc.commands.options import option_of
from calc.core.errors import InputError, marked
from tests.calc.command import Command, Written
from tests.calc.test_engine_logs import VLLM as LOG_OF_VLLM
from tests.calc.test_nouns import meanings_by_griffe
from tests.calc.unexpected import NO_RATE, UNEXPECTED
from tests.draws import draws

ROOT = Path(__file__).resolve().parents[2]
MANUAL = ROOT / "backmatter" / "command-line.qmd"
OWN = """
[mine]
name = "Mine"
year = 2026
kind = "estimate"
source = "our own bench"
checked = 2026-11-01
memory_bandwidth = { value = 1, unit = "TB/s" }
memory_capacity = { value = 64, unit = "GiB" }
on_chip_memory = { kind = "unpublished", note = "Unknown." }
tdp = { value = 250, unit = "W" }

[mine.peak]
bf16 = { value = 100, unit = "TFLOP/s" }
fp64 = { value = 1, unit = "TFLOP/s" }
"""


@pytest.fixture
def own_device(written: Written) -> Path:
    return written(OWN, "mine.toml")


def test_every_command_has_json_and_what_it_is_for() -> None:
    parser, parsers = commands.command_parser()
    assert len(parsers) == len(commands.COMMANDS)
    assert all(
        purpose.split()[0] in parser.format_help() for _, purpose in commands.COMMANDS.values()
    )
    for (name, (_, purpose)), each in zip(commands.COMMANDS.items(), parsers, strict=True):
        assert each.prog == f"calc {name}"
        assert str(each.description).lower() == f"{purpose}.".lower()
        assert str(each.description)[0].isupper()
        each.add_options()
        options = each._option_string_actions
        assert "--json" in options
        assert not each.allow_abbrev
        assert ("--explain" in options) or not name.startswith("plan")
        assert ("--csv" in options) == (
            each.prog.split()[1]
            in {
                *("list", "search", "plan", "plan-service", "plan-training", "compare"),
                *("sweep", "validate", "watts", "check", "break-even", "assert"),
            }
        )
        assert all(action.help for action in each._actions), each.prog


def test_options_are_those_of_the_library() -> None:
    """The names, defaults and meanings of `calc plan` are those of `calc.plan`, word for word."""
    _, parsers = commands.command_parser()
    (parser,) = [each for each in parsers if each.prog == "calc plan"]
    parser.add_options()
    documented = meanings_by_griffe(calc.plan)
    defaults = {
        name: each.default
        for name, each in inspect.signature(calc.plan).parameters.items()
        if each.kind is each.KEYWORD_ONLY and each.default is not each.empty
    }
    assert documented.keys() == set(inspect.signature(calc.plan).parameters)
    for name in set(defaults) | {"prompt", "generated"}:
        meaning = documented[name]
        action = parser._option_string_actions[option_of(name)]
        assert action.dest == name
        assert action.help.startswith(meaning)
        assert action.required == (name not in defaults)
        assert action.default == defaults.get(name)


def test_refusals_name_every_option_as_a_shell_writes_it() -> None:
    _, parsers = commands.command_parser()
    for each in parsers:
        each.add_options()
        options = Namespace(**{action.dest: None for action in each._actions})
        for action in each._actions:
            if not action.option_strings or action.dest in ("help", "csv", "json"):
                continue
            name, typed = action.dest, option_of(action.dest)
            assert typed in action.option_strings, each.prog
            for message, in_python, wanted in (
                (f"{marked(name, law='f')} needs x", f"f(): {name} needs x", f"{typed} needs x"),
                (f"{marked(name, 16)} would", f"{name}=16 would", f"{typed} 16 would"),
                (f"{marked(name, True)} is", f"{name}=True is", f"{typed} is"),
                (f"take {marked(name, 'full')}", f'take {name}="full"', f"take {typed} full"),
                (f"{marked(name, '3 USD/h')}", f'{name}="3 USD/h"', f'{typed} "3 USD/h"'),
                (f"{name}=16 would", f"{name}=16 would", f"{name}=16 would"),
            ):
                refusal = InputError(message)
                assert str(refusal) == in_python
                assert commands._as_typed(refusal, options) == wanted, each.prog


def test_a_refusal_says_what_was_refused() -> None:
    with pytest.raises(InputError) as refused:
        calc.plan("llama-3-8b", "h100", prompt=1000, generated=200, batch=0)
    assert (refused.value.argument, refused.value.given) == ("batch", 0)
    again = pickle.loads(pickle.dumps(refused.value))
    assert vars(again) == vars(refused.value)
    assert str(again) == str(refused.value)
    with pytest.raises(InputError) as refused:
        calc.roofline.attainable("989 TFLOP/s", "3.35 TB/s", "-1 FLOP/byte")
    assert refused.value.argument == "intensity"
    assert refused.value.allowed == "zero or positive, and finite"


# Of each command a line that is right, with a wrong value of each option to be drawn.
WRONG = ("-1", "0", "x", "nan", "1e400", "3 furlong", "", "-", "None", "[1]", "\ue000", "9" * 400)
LINES = {
    "plan": "llama-3-8b h100 --prompt 100 --generated 10",
    "plan-service": "llama-3-8b h100 --rate 1 --prompt 100 --generated 10 --ttft 1s --tpot 50ms",
    "plan-training": "llama-3-8b dgx-h100 --tokens 1T --devices 64 --sequences 64 --length 4096",
    "compare": "llama-3-8b --machines h100,dgx-a100 --prompt 100 --generated 10",
    "fit": "llama-3-8b h100",
    "roofline": "h100 --flops 1GFLOP --bytes 1GB",
    "gemm": "16 16 16 h100",
    "attention": "16 h100",
    "collective": "all-reduce 1MB dgx-h100",
    "throughput": "vit-b-16 h100",
    "watts": "h100",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_a_wrong_value_is_refused_in_one_sentence_by_the_option_that_was_typed(
    name: str, command: Command
) -> None:
    _, parsers = commands.command_parser()
    (parser,) = [each for each in parsers if each.prog == f"calc {name}"]
    parser.add_options()
    left = {"config", "write_config", "draw", "csv", "trace", "help"}
    valued = [each for each in parser._actions if each.nargs != 0 and each.option_strings]
    chance, faults = random.Random(name), []
    for action, wrong in [
        (each, wrong)
        for each in valued
        if each.dest not in left
        for wrong in chance.sample(WRONG, draws(len(WRONG)))
    ]:
        option, words = action.option_strings[0], LINES[name].split()
        if option in words:
            del words[words.index(option) : words.index(option) + 2]
        try:
            code = commands.main([name, *words, f"{option}={wrong}"])
        except SystemExit as ended:
            code = ended.code
        said = command.capsys.readouterr().err
        in_python = re.match(rf"calc: {action.dest}( must| needs|:)|.*\b{action.dest}=", said)
        if code not in (0, 1, 2) or said.count("\n") != (code != 0) or in_python:
            faults.append((option, wrong, code, said))
    assert not faults


def test_a_device_in_json(command: Command) -> None:
    shown = command.facts("show h100")
    assert (shown["kind"], shown["name"], shown["year"]) == ("device", "h100", 2022)
    bandwidth = shown["memory_bandwidth"]
    assert (bandwidth["value"], bandwidth["unit"]) == (3.35, "TB/s")
    assert (bandwidth["kind"], bandwidth["source"]) == ("datasheet", "nvidia-h100-datasheet")
    assert shown["peak"]["int8"]["unit"] == "TOP/s"
    assert shown["ridge_point"]["fp16"]["value"] == pytest.approx(989 / 3.35)
    unpublished = command.facts("show tpu-v5p")["tdp"]
    assert unpublished["note"]
    nothing = {"value": None, "unit": None, "kind": "unpublished"}
    assert nothing.items() <= unpublished.items()


@pytest.mark.parametrize(
    ("line", "kind", "expected"),
    [
        ("energy_dram_word", "constant", {"quantity": {"value": 640, "unit": "pJ"}}),
        ("llama-3-8b", "model", {"width": {"value": 4096, "unit": "1"}}),
        ("gopher-280b", "run", {"device": "Google TPU v3"}),
        ("fp16", "format", {"bits": 16, "max": 65504, "size": {"value": 2, "unit": "byte"}}),
        ("mxfp4", "format", {"bits": 4.25, "scale": "E8M0"}),
        ("scaling.amdahl", "law", {"arguments": {"serial_fraction": "", "processors": ""}}),
        ("roofline.ridge_point", "law", {"result": "FLOP/byte"}),
        ("training.recipe", "function", {"arguments": {"name": ""}}),
        ("plan", "function", {"name": "plan"}),
    ],
)
def test_show_in_json(command: Command, line: str, kind: str, expected: dict[str, Any]) -> None:
    shown = command.facts(f"show {line}")
    assert shown["kind"] == kind
    for name, value in expected.items():
        if isinstance(value, dict):
            assert value.items() <= shown[name].items()
        else:
            assert shown[name] == value


def test_a_model_and_the_run_that_trained_it(command: Command) -> None:
    shown = command.facts("show GPT-3_175b")
    assert (shown["kind"], shown["run"]["kind"]) == ("model", "run")
    assert shown["run"]["devices"]["value"] is None
    text = command.prints("show gpt-3-175b")
    assert text.startswith("GPT-3 175B (2020)\nlayers ")
    assert "\n\ntraining of GPT-3 175B (2020)\ndevice " in text
    assert "gpt-3-175b" in command.refuses("show gpt-3")


def test_a_model_with_latents_is_shown_in_both_forms_of_its_attention(command: Command) -> None:
    """Expanded as it reads, absorbed as it writes; at the crossing both are as many operations."""
    for key in models.names():
        model = models.get(key)
        has_latents = isinstance(model, models.Transformer) and model.kv_latent is not None
        assert ("token_at_full_context" in shown(key).facts) == has_latents, key
    forms = command.facts("show deepseek-v3")["token_at_full_context"]
    model = models.get("deepseek-v3")
    # By hand, of 131 072 tokens: 128 + 64 + 128 each head expanded, 2 × 512 + 64 absorbed.
    weights = transformer.forward_flops(model).m_as("FLOP/token")
    read, written = (weights + 2 * 61 * 128 * 131_072 * width for width in (320, 1088))
    assert forms["expanded_as_read"]["value"] == pytest.approx(read, rel=1e-6)
    assert forms["absorbed_as_written"]["value"] == pytest.approx(written, rel=1e-3)
    assert 0 < forms["expanded_from_queries"] < 200


@pytest.mark.slow
def test_everything_is_listed_and_shown(command: Command) -> None:
    everything = {
        *(("constant", name) for name in constants.names()),
        *(("device", name) for name in (*hardware.names(), *hardware.announced())),
        *(("machine", name) for name in machines.names()),
        *(("software", name) for name in software.names()),
        *(("model", name) for name in models.names()),
        *(("run", name) for name in runs.names()),
        *(("grid", name) for name in grids.names()),
        *(("format", name) for name in formats.names()),
        *(("comparison", each.key) for each in formats.training_formats()),
        *(("comparison", each.key) for each in formats.quantized_models()),
        *(("recipe", name) for name in training.RECIPES),
        *(("law", name) for name in calc.all_laws()),
        *(("function", name) for name in functions()),
    }
    listed = command.facts("list")["rows"]
    assert {(row["kind"], row["name"]) for row in listed} == everything
    assert [(row["kind"], row["name"]) for row in command.rows("list")] == [
        (row["kind"], row["name"]) for row in listed
    ]
    for kind in KINDS:
        first = command.rows(f"list {kind}")[0]
        assert first["kind"] == kind.removesuffix("s")
        assert first["title"]
    for _, name in random.Random(0).sample(sorted(everything), draws(len(everything))):
        assert command.prints(f"show {name}")
    assert {"plan", "inference.decode", "transformer.forward_flops", "roofline.gemm"} <= set(
        functions()
    )
    assert not set(functions()) & set(calc.all_laws())


def test_csv_goes_to_a_file_of_that_kind_alone(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "devices.csv"
    text = command.prints(f"list devices --csv {path}")
    assert text.startswith("h100 ")
    assert [row["name"] for row in csv.DictReader(path.read_text().splitlines())] == [
        *hardware.names(),
        *hardware.announced(),
    ]
    assert "--csv needs a name that ends in .csv; got 'devices'" in command.refuses(
        "list --csv devices"
    )
    assert "--csv and --json cannot both be printed" in command.refuses("list --csv --json")
    for nowhere in ("''", tmp_path, tmp_path / "none" / "x.csv"):
        assert "cannot write" in command.refuses(f"list --csv {nowhere}")
    assert not Path("devices").exists()


def test_roofline_and_eval_in_json(command: Command) -> None:
    point = command.facts("roofline h100 --flops '14 GFLOP' --bytes '14 GB'")
    assert point["bound"] == "memory"
    assert point["arithmetic_intensity"] == {"value": 1, "unit": "FLOP/byte"}
    assert point["attainable"] == {"value": pytest.approx(3.35), "unit": "TFLOP/s"}
    assert point["time"]["perfect_overlap"] == {"value": pytest.approx(14 / 3350), "unit": "s"}
    still = command.facts("roofline h100 --flops 1e9 --bytes 0")
    assert still.keys() == point.keys()
    assert still["arithmetic_intensity"] is None
    assert command.facts("eval '10 GB / 2 GB/s'")["quantity"] == {"value": 5, "unit": "s"}
    assert command.facts("eval '3 GB / 2 GB'")["quantity"] == 1.5
    assert command.facts("eval '90 s' --to min")["quantity"] == {"value": 1.5, "unit": "min"}


WITHOUT_NUMPY = (
    "import sys; sys.modules['numpy'] = None; import calc.commands as c; c.main(sys.argv[1:])"
)
SERVER = "--prompt 1000 --generated 200"


def test_a_plan_in_json_and_csv(command: Command) -> None:
    plan = calc.plan("llama-3-70b", "h100", batch=8, prompt=1000, generated=200, price="3 USD/h")
    line = f"plan llama-3-70b h100 --batch 8 {SERVER} --price '3 USD/h'"
    facts = command.facts(line)
    (row,) = facts["rows"]
    asked = {"model": "llama-3-70b", "device": "h100", "devices": 2, "fits": True}
    assert asked.items() <= row.items()
    assert row["time_per_token"]["lower"] == {
        "value": pytest.approx(plan.time_per_token.lower.m_as("s")),
        "unit": "s",
    }
    assert row["cost_per_token"]["upper"]["unit"] == "USD/Mtoken"
    assert row["binds"] == "memory bandwidth"
    assert facts["assumptions"] == list(plan.assumptions)
    assert "what_would_change" not in facts  # which is asked by --explain
    changes = plan.explained().what_would_change
    assert command.facts(f"{line} --explain")["what_would_change"] == list(changes)
    (flat,) = command.rows(line)
    assert float(flat["throughput.lower.value"]) == pytest.approx(plan.throughput.lower.magnitude)
    assert flat["fits"] == "true"


EXPECTED = (
    *("time_to_first_token", "time_per_token", "answer_time", "throughput", "cost_per_token"),
    *("device_energy_per_token", "energy_per_token", "carbon_per_token", "reading", "writing"),
)


def test_the_expectation_of_a_plan_in_json_and_csv(command: Command) -> None:
    line = f"plan llama-3-70b dgx-h100 --batch 8 --devices 4 {SERVER} --software none"
    asked = {"batch": 8, "devices": 4, "prompt": 1000, "generated": 200, "software": "none"}
    plan = calc.plan("llama-3-70b", "h100", **asked)
    facts = command.facts(line)
    (row,) = facts["rows"]
    assert row["not_expected"] is None
    assert tuple(row["expected"]) == EXPECTED
    assert row["expected"]["time_per_token"]["value"] == pytest.approx(
        plan.expected.time_per_token.m_as("s")
    )
    parts = {each["part"]: each for each in facts["parts"] if each["pass"] == "each token"}
    assert {*parts} == {*row["expected"]["writing"]} == {"gemm", "memory", "cache", "tensor"}
    assert sum(each["share"] for each in parts.values()) == pytest.approx(1)
    assert parts["gemm"]["made_of"][1] == {
        "rate": "794.5 TFLOP/s",
        "sources": ["bekman2026mlengineering"],
    }
    (flat,) = command.rows(line)
    assert float(flat["expected.writing.tensor.value"]) == parts["tensor"]["time"]["value"]


def test_each_point_of_a_grid_is_expected_as_if_it_were_alone(command: Command) -> None:
    asked = f"--devices 2 --dtype fp8 {SERVER}"
    several = command.facts(f"plan llama-3-70b h100,{UNEXPECTED} --batch 8,9999 {asked}")
    alone = command.facts(f"plan llama-3-70b h100 --batch 8 {asked}")
    expected = [row["expected"] for row in several["rows"]]
    assert expected == [alone["rows"][0]["expected"], None, None, None]
    assert several["parts"] == []
    reasons = [row["not_expected"] for row in several["rows"][1:]]
    assert "does not fit" in reasons[0]
    assert NO_RATE in reasons[1]


def test_a_grid_in_json_and_csv(command: Command) -> None:
    line = f"plan llama-3-70b h100 --batch 1,8,9999 --devices 2,4 {SERVER}"
    facts = command.facts(line)
    points = [(row["devices"], row["batch"], row["fits"]) for row in facts["rows"]]
    assert points == [(n, b, b < 9999) for n in (2, 4) for b in (1, 8, 9999)]
    plan = calc.plan("llama-3-70b", "h100", batch=8, devices=4, prompt=1000, generated=200)
    assert facts["rows"][4]["answer_time"]["upper"]["value"] == pytest.approx(
        plan.answer_time.upper.m_as("s")
    )
    assert facts["rows"][2]["answer_time"]["upper"]["value"] is None  # it does not fit
    assert [row["batch"] for row in command.rows(line)] == ["1", "8", "9999"] * 2


def test_plans_for_several_devices(command: Command, own_device: Path) -> None:
    line = f"plan llama-3-8b h100,{own_device},a100 --batch 8 {SERVER}"
    text = command.prints(line)
    head, table = (part.splitlines() for part in text.split("\n\n")[:2])
    assert head[0] == "Llama 3 8B; devices 1, batch 8, prompt 1000, generated 200"
    assert table[0].split("  ")[:2] == ["device", "basis"]
    begins = [row.split("  ")[0] for row in table[1:4]]
    assert begins == ["h100", "mine", "a100"]
    text = command.prints(f"{line} --explain").replace("\n  ", " ")
    assert "\n- Mine: Each device draws by how much of bandwidth and peak it uses" in text
    assert "at most its 250 W" in text
    assert text.count("Prompts are read together") == 1
    for row, device in zip(command.facts(line)["rows"], ("h100", own_device, "a100"), strict=True):
        alone = command.facts(f"plan llama-3-8b {device} --batch 8 {SERVER}")["rows"]
        assert [row] == alone
    tight = command.facts(f"plan llama-3-70b t4,h100 --batch 8 {SERVER}")
    assert {row["device"]: row["fits"] for row in tight["rows"]} == {"h100": True, "t4": False}
    assert tight["left_out"][0].startswith("Llama 3 70B does not fit on 8 NVIDIA T4")
    assert "\n- Llama 3 70B does not" in command.prints(f"plan llama-3-70b t4,h100 {SERVER}")
    assert "does not fit on 8 NVIDIA T4" in command.refuses(f"plan llama-3-405b t4,t4 {SERVER}")


def test_bits_may_be_a_bare_number(command: Command) -> None:
    line = f"plan llama-3-8b h100 {SERVER} --weights"
    assert command.facts(f"{line} 8") == command.facts(f"{line} '8 bit'")
    assert "weights in 4.5 bit, keys and" in command.prints(f"{line} 4.5").replace("\n  ", " ")


def test_prices_in_other_money_say_how_to_convert(command: Command) -> None:
    line = f"plan llama-3-8b h100 {SERVER} --price"
    for price in ("3 EUR/hour", "3EUR/hour", "3 euros/hour", "€3/hour"):
        assert "at 1.15 USD for 1 EUR, 3 EUR/hour is 1.15 * 3 USD/hour" in command.refuses(
            f"{line} '{price}'"
        )
    explained = command.prints(f"{line} '1.15 * 3 USD/hour' --explain")
    assert "A device costs 3.45 USD/h" in explained


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            f"plan llama-3-8b h100 --batch 8,32 {SERVER}",
            "calc: --batch: a list of numbers needs numpy, which is not installed: pip install",
        ),
        (f"plan-service llama-3-8b h100 --rate 1 {SERVER} --ttft '1 s' --tpot '1 s'", "[planning]"),
        ("search 'hbm latency'", "latency_hbm3"),
    ],
)
def test_what_needs_numpy_says_so_and_a_search_needs_none(line: str, said: str) -> None:
    words = [sys.executable, "-c", WITHOUT_NUMPY, *shlex.split(line)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert said in done.stdout + done.stderr


def test_a_device_of_ones_own(command: Command, own_device: Path) -> None:
    shown = command.facts(f"show {own_device}")
    assert (shown["name"], shown["peak"]["bf16"]["value"]) == ("mine", 100)
    assert "Source: our own bench\n" in command.prints(f"show {own_device}:mine")
    point = command.facts(f"roofline {own_device} --flops 1e9 --bytes 1e9 --dtype bf16")
    assert point["attainable"] == {"value": 1, "unit": "TFLOP/s"}
    assert command.facts(f"plan llama-3-8b {own_device} {SERVER}")["rows"][0]["device"] == "mine"
    for line in (f"plan llama-3-8b none.toml {SERVER}", "show none.toml", "validate none.toml"):
        assert "none.toml: there is no such file; `calc measure` writes one" in command.refuses(
            line
        )


def test_the_device_and_the_machine_that_the_manual_shows(
    command: Command, written: Written
) -> None:
    shown = re.findall("```toml\n(.*?)```", MANUAL.read_text("utf-8"), re.DOTALL)
    [device] = [each for each in shown if "[mine]" in each]
    [machine] = [each for each in shown if "[my-box]" in each]
    path = written(device, "mine.toml")
    assert "150 FLOP/byte" in command.prints(f"roofline {path} --flops 1 --bytes 1 --dtype bf16")
    counts = "--prompt 100 --generated 10"
    assert "My accelerator" in command.prints(f"plan llama-3-8b {path} {counts}")
    path.write_text(device + machine, encoding="utf-8")
    assert "where 2 devices have 32 GB/s each way" in command.prints(
        f"plan llama-3-8b {path} {counts} --devices 2 --explain"
    ).replace("\n  ", " ")
    assert "My box" in command.prints(f"show {path}:my-box")
    assert "My accelerator" in command.prints(f"show {path}:mine")


def test_validate_takes_a_device_of_ones_own(
    command: Command, own_device: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from calc import measure

    devices = []
    monkeypatch.setattr(
        measure, "validate", lambda kernels, device, progress: devices.append(device) or []
    )
    assert "every kernel was too noisy" in command.prints(f"validate {own_device}")
    assert devices[0].key == "mine"


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("hbm latency", "latency_hbm3"),
        ("latency hbm", "latency_hbm3"),
        ("h100", "h100"),
        ("llama 70b", "llama-2-70b"),
        ("speedup fixed problem", "scaling.amdahl"),
        ("ridge point", "roofline.ridge_point"),
        ("rigde piont", "roofline.ridge_point"),
        ("amdhal", "scaling.amdahl"),
        ("gopher", "gopher-280b"),
        ("mxfp4", "mxfp4"),
        ("kv cache", "transformer.kv_cache"),
        ("e4m3", "fp8-e4m3"),
        ("fp8 loss", "deepseek-v3-fp8"),
        ("quarot perplexity", "llama-2-7b-quarot-w4a4"),
        # What the field writes and no name or title does: short names, names of releases, commands.
        ("mtbf", "training.time_between_failures"),
        ("young daly", "training.checkpoint_interval"),
        ("mla", "attention.latent_crossover"),
        ("moe", "experts.experts_used"),
        ("expert parallelism", "inference.expert_decode"),
        ("ttft", "calc plan"),
        ("disaggregated", "planning.plan_service"),
        ("multi-token prediction", "speculation.drafting_gain"),
        ("acceptance", "acceptance.curve"),
        ("speculative tokens", "speculation.speculative_tokens"),
        ("chunked prefill", "inference.mixed_step"),
        ("continuous batching", "serving.static_batch_share"),
        ("stragglers", "failures.slowest"),
        ("kingman waiting time", "queueing.bursty_wait"),  # a wait, in its text
        ("pricing", "price_h100"),
        ("wave quantization", "gemms.wave_efficiency"),
        ("sparse attention", "attention.index_flops"),
        ("hadamard", "formats.hadamard_transform"),
        ("muon", "finetuning.states"),
        ("llama 3.3 70b", "llama-3-1-70b"),
        ("llama 3.3", "llama-3-1-70b"),
        ("service", "calc plan-service"),
        ("throughput of diffusion", "calc throughput"),
        ("48 gb", "l40s"),
        # What people want to do, by their own words.
        ("efa", "aws-p5"),
        ("trace", "calc plan-service"),
        ("plot", "calc compare"),
        ("dataframe", "calc plan"),
        ("france", "france"),
        ("all-reduce time", "calc collective"),
        ("deploy", "calc plan-service"),
        ("selfhost", "calc break-even"),
        ("caches overtake weights", "caches.kv_cache_memory"),
        ("p5", "aws-p5"),
        ("h800", "h800"),
        ("power draw", "calc watts"),
    ],
)
def test_search(command: Command, words: str, first: str) -> None:
    rows = command.facts(f"search {words}")["rows"]
    assert first in [row["name"] for row in rows[:3]]
    text = command.prints(f"search '{words}'").splitlines()
    assert text[0].startswith(f"{rows[0]['name']}  ")
    assert len(text) <= 21


def test_what_has_all_words_comes_first(command: Command) -> None:
    names = [row["name"] for row in command.facts("search energy bit")["rows"]]
    texts = {name: f"{name} {constants.get(name).provenance}".lower() for name in constants.names()}
    has = [
        all(re.search(rf"(?<![a-z]){word}", texts[name]) for word in ("energy", "bit"))
        for name in names
        if name in texts
    ]
    assert has[0]
    assert has == sorted(has, reverse=True)
    assert "nothing is known of 'qqqqqq'" in command.refuses("search qqqqqq")
    assert "nothing is known of ''" in command.refuses("search ''")


@pytest.mark.parametrize("word", ["ppx", "grxo", "rlx"])
def test_a_short_word_stands_for_none_that_looks_like_it(command: Command, word: str) -> None:
    assert f"nothing is known of '{word}'" in command.refuses(f"search {word}")


def test_commands_that_are_found_are_those_of_calc(command: Command) -> None:
    for name in commands.COMMANDS:
        rows = command.facts(f"search calc {name}")["rows"]
        assert ("command", f"calc {name}") in [(row["kind"], row["name"]) for row in rows[:3]]


def completions(script: Path, *words: str) -> Iterator[str]:
    bash = (
        f"source {script}; COMP_WORDS=({' '.join(words)!s}); COMP_CWORD={len(words) - 1};"
        ' _shtab_calc; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", bash], capture_output=True, text=True)
    yield from done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_shell_completes_commands_options_and_names(command: Command, written: Written) -> None:
    script = written(command.prints("completion bash"), "calc.bash")
    assert [*completions(script, "calc", "sea")] == ["search"]
    assert {*completions(script, "calc", "show", "h10")} == {"h100", "h100-pcie"}
    assert {*completions(script, "calc", "show", "roofline.att")} == {"roofline.attainable"}
    assert {*completions(script, "calc", "plan", "llama-3-")} == {
        name for name in models.names() if name.startswith("llama-3-")
    }
    a100 = {name for name in hardware.names() if name.startswith("a100")}
    assert {*completions(script, "calc", "plan", "llama-3-8b", "a100")} == a100
    assert [*completions(script, "calc", "plan", "llama-3-8b", "h100", "--gen")] == ["--generated"]
    assert {*completions(script, "calc", "roofline", "h100", "--dtype", "fp1")} == {"fp16"}
    assert "int4" in completions(script, "calc", "plan", "llama-3-8b", "h100", "--weights", "int")
    assert command.prints("completion zsh").startswith("#compdef calc\n")


def test_completion_says_what_it_needs(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert (
        'calc completion needs shtab, which is not installed; pip install "machine-foundations[co'
        in (command.refuses("completion bash"))
    )


@pytest.mark.parametrize(
    ("closed", "line", "error"),
    [
        (">&-", "list", "calc: cannot write the output: it is closed\n"),
        (">&-", "eval '3 GB' --json", "calc: cannot write the output: it is closed\n"),
        ("2>&-", "eval nonsense", ""),
        (">&- 2>&-", "list", ""),
        (">&- 2>&-", "eval nonsense", ""),
    ],
)
def test_closed_streams(closed: str, line: str, error: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {shlex.quote(sys.executable)} -m calc {line} {closed}"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", error)


@pytest.mark.slow
def test_the_commands_that_the_readme_and_the_manual_show(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every line and cell of both that needs no machine and no file is one that works."""
    monkeypatch.chdir(tmp_path)  # what they write stands there
    text = MANUAL.read_text(encoding="utf-8")
    (requests,) = re.findall("```csv\n(.*?)```", text, re.DOTALL)
    Path("requests.csv").write_text(requests, encoding="utf-8")
    Path("vllm.log").write_text(LOG_OF_VLLM, encoding="utf-8")
    cells = re.findall(r"`calc (.*?)`", "".join(_rows(ROOT / "README.md")))
    lines = re.findall(r"^\$ calc (.*?)(?: \| .*)?$", text, re.MULTILINE)
    assert len(cells) >= 14
    assert len(lines) >= 10
    for line in (*cells, *lines):
        name = line.split()[0]
        assert name in commands.COMMANDS
        if name not in {"measure", "validate", "sweep", "simulate"} and not re.search(
            r"\.(toml|json)\b", line
        ):
            assert command.prints(line.replace(" --csv plan.csv", ""))
    for option in ("--workers", "--resume", "--json", "--csv"):
        assert option in text


def _rows(path: Path) -> list[str]:
    """The lines of its tables."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [line for line in lines if line.startswith("|")]
