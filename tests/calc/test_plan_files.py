"""Options of plans as files: round trips of plans and of commands, and what is refused."""

from __future__ import annotations

import json
import shlex
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from calc import InputError, compare, hardware, machines, models, plan, plan_service, plan_training
from calc.commands import main
from calc.core.nouns import options_of
from calc.core.units import quantity
from calc.planning import read_options
from calc.planning.plan_files import option_names
from tests.calc.command import Written
from tests.calc.flatly import flatly

COUNTS = st.integers(1, 4000)
TRAINED: dict[str, Any] = {
    "tokens": "1T",
    "sequences": 64,
    "length": 8192,
    "devices": 64,
    "layout": {"context": 1, "pipeline": 1},
    "recomputation": "selective",
    "price": "3.3 USD/hour",
    "storage_bandwidth": "123.4 MB/s",
    "software": "megatron",
}


@given(
    st.fixed_dictionaries(
        {"prompt": COUNTS, "generated": COUNTS},
        optional={
            "batch": st.one_of(st.integers(1, 64), st.lists(st.integers(1, 64), min_size=1)),
            "devices": st.sampled_from([4, 8]),
            "weights": st.sampled_from(["int8", "fp8-e4m3", "4.5 bit", 8]),
            "kv": st.sampled_from(["bf16", "int8"]),
            "dtype": st.sampled_from(["bf16", "fp16"]),
            "link": st.floats(1, 900).map("{!r} GB/s".format),
            "price": st.floats(0.01, 100).map("{!r} USD/hour".format),
            "context": st.integers(8000, 10**6),
            "software": st.just("vllm"),
        },
    ),
    st.sampled_from(["dgx-h100", "h200", "rtx-4090-8", "gb200-nvl72"]),
)
def test_a_plan_is_made_again_of_its_text(options: dict[str, Any], machine: str) -> None:
    made = plan("llama-3-8b", machine, **({"devices": 1} | options))
    planned_again(made, plan)


def planned_again(made: Any, called: Any) -> dict[str, Any]:
    """The options of a plan, of which the same is made again, whichever the kind of plan."""
    options = tomllib.loads(made.to_toml())
    again = flatly(called, **options)
    assert again.to_toml() == made.to_toml()
    assert [table.rows for table in again.tables] == [table.rows for table in made.tables]
    assert again.assumptions == made.assumptions
    assert set(options) <= set(option_names(called))
    return options


@pytest.mark.slow
@given(
    st.fixed_dictionaries(
        {
            "tokens": st.sampled_from(["1B", "3e9 token", 10**9]),
            "fine_tune": st.sampled_from([None, "lora", "qlora"]),
        },
        optional={
            "rank": st.integers(1, 64),
            "layout": st.just({"tensor": 2, "pipeline": 1}),
            "recomputation": st.sampled_from(["selective", "full"]),
            "dtype": st.sampled_from(["bf16", "fp8"]),
            "software": st.just("megatron"),
            "schedule": st.sampled_from(["1f1b", "zb-h1"]),
            "usable": st.floats(0.8, 1),
            "price": st.floats(0.01, 100).map("{!r} USD/hour".format),
            "device_time_between_failures": st.just("5 year"),
            "storage_bandwidth": st.just(quantity("123.4 MB/s")),
            "restart_time": st.just("1 min"),
        },
    ),
    st.sampled_from([None, "adam-mixed", "adam-8bit"]),
)
@settings(max_examples=8, deadline=None)
def test_a_training_plan_is_made_again_of_its_text(
    options: dict[str, Any], recipe: str | None
) -> None:
    """The whole of a model or adapters, in any recipe that adapters leave to be chosen."""
    if options["fine_tune"] is None:
        options = {**options, "recipe": recipe}
    made = flatly(
        plan_training, "llama-3-8b", "dgx-h100", devices=16, sequences=16, length=4096, **options
    )
    planned_again(made, plan_training)


@pytest.mark.slow
@given(
    st.fixed_dictionaries(
        {"prompt": COUNTS, "generated": COUNTS},
        optional={
            "tpot": st.sampled_from(["50 ms", quantity("0.1 s")]),
            "ttft": st.just("1 min"),
            "price": st.sampled_from(["3 USD/hour", {"h100": "3 USD/hour", "t4": 1}]),
            "by": st.sampled_from(["energy", "ttft"]),
            "weights": st.sampled_from(["int8", 8]),
            "context": st.integers(8000, 10**6),
            "software": st.just("vllm"),
        },
    )
)
@settings(max_examples=4, deadline=None)
def test_a_comparison_is_made_again_of_its_text(options: dict[str, Any]) -> None:
    shapes = "llama-3-8b", models.get("qwen-3-8b")
    made = compare(shapes, [machines.get("dgx-h100"), hardware.get("t4")], **options)
    assert planned_again(made, compare)["models"] == ["llama-3-8b", "qwen-3-8b"]


def test_a_file_has_one_context_for_all_models() -> None:
    both = [models.get(key).with_context(9000) for key in ("llama-3-8b", "qwen-3-8b")]
    lengths = {"prompt": 10, "generated": 10}
    assert planned_again(compare(both, "h100", **lengths), compare)["context"] == 9000
    with pytest.raises(InputError, match="one context for all models, and theirs differ"):
        compare([both[0], "qwen-3-8b"], "h100", **lengths).to_toml()


TRACE = "arrival,prompt,generated\n0,100,20\n0.5,200,10\n0.6,50,1\n"
SERVED: dict[str, Any] = {
    "ttft": "1 s",
    "tpot": quantity("50 ms"),
    "pools": "mixed",
    "chunk": 512,
    "price": "3.3 USD/hour",
    "draft": models.get("llama-3-2-1b"),
    "acceptance": 0.7,
}


@pytest.mark.slow
def test_a_service_is_planned_again_of_its_text(written: Written) -> None:
    lengths = {"rate": 20, "prompt": 500, "generated": 50, "generated_spread": 0.5, "seed": 3}
    trace = written(TRACE, "1,2=3.csv")
    for requests in (lengths, {"trace": trace, "rate": "4 request/s"}):
        made = flatly(plan_service, "llama-3-8b", "h100", **SERVED, **requests)
        planned_again(made, plan_service)
    assert tomllib.loads(made.to_toml())["trace"] == str(trace)
    shorter = models.get("llama-3-8b").with_context(4000)
    made = flatly(plan_service, shorter, "h100", **SERVED, **lengths)
    assert tomllib.loads(made.to_toml())["context"] == 4000


def test_a_deadline_becomes_the_devices_that_keep_it() -> None:
    asked = {name: value for name, value in TRAINED.items() if name != "devices"}
    made = flatly(plan_training, "llama-3-8b", "dgx-h100", **asked, deadline="60 day")
    options = tomllib.loads(made.to_toml())
    assert options["devices"] == made.devices
    assert "deadline" not in options


@pytest.mark.parametrize("called", [plan, plan_training, plan_service, compare])
def test_every_argument_is_an_option(called: Any) -> None:
    assert set(option_names(called)) == set(options_of(called)) - {"on_progress"}


def test_the_devices_that_hold_a_model_are_written() -> None:
    made = plan("llama-3-70b", "h100", prompt=10, generated=10)
    assert planned_again(made, plan)["devices"] == 2


def test_what_has_no_key_cannot_be_written() -> None:
    model, machine = models.get("llama-3-8b"), machines.get("dgx-h100")
    deeper = replace(model, layers=model.layers * 2)
    wider = replace(machine, domain=16)
    for pair in ((deeper, machine), (model, wider)):
        with pytest.raises(InputError, match="is none of these"):
            plan(*pair, prompt=1, generated=1).to_toml()
    longer = plan(model.with_context(20000), machine, prompt=1, generated=1)
    assert tomllib.loads(longer.to_toml())["context"] == 20000


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("model = 'x'\nmdoel = 'y'", "line 2: plan() has no option mdoel; did you mean model?"),
        ("\n\n[layout]\ntensor = 8", "line 3: plan() has no option layout; known are model,"),
        ("model = 'x'\nmodel = 'y'", "is not valid TOML: Cannot overwrite a value"),
        ("model = 3 4", "is not valid TOML: Expected newline or end of document after a statement"),
    ],
)
def test_bad_files(text: str, sentence: str, written: Written) -> None:
    file = written(text, "plan.toml")
    with pytest.raises(InputError) as refused:
        read_options(file, plan)
    assert sentence in str(refused.value)
    assert str(file) in str(refused.value)


def told(capsys: pytest.CaptureFixture[str], line: str, code: int = 0) -> str:
    assert main(shlex.split(line)) == code
    output = capsys.readouterr()
    return output.err if code else output.out


@pytest.mark.parametrize(
    "command",
    [
        "plan llama-3-8b h100,t4 --batch 1,8 --prompt 1000 --generated 200 --price '3 USD/hour'",
        "plan-training llama-3-8b dgx-h100 --tokens 1T --sequences 64 --length 8192 --devices 64"
        " --layout context=1,pipeline=1",
        "compare llama-3-2-3b,qwen-3-4b --machines t4 --prompt 10 --generated 10 --tpot '1 s'"
        " --price 't4=0.35 USD/hour'",
        "plan-service llama-3-8b h100 --trace '{folder}/1,2=3.csv' --ttft 1s --tpot 50ms"
        " --percentile 90 --pools mixed",
    ],
)
def test_a_command_is_run_again_from_its_file(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "plan.toml"
    (tmp_path / "1,2=3.csv").write_text(TRACE)
    command = command.replace("{folder}", str(tmp_path))
    first = told(capsys, f"{command} --json --write-config {file}")
    name = command.split()[0]
    assert told(capsys, f"{name} --config {file} --json") == first
    told(capsys, f"{name} --config {file} --write-config {file}.again")
    assert Path(f"{file}.again").read_text() == file.read_text()


def test_a_file_of_ones_own_is_asked_again_by_its_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Also where its folder is called like what a run was made of, as `rate=3=best`."""
    configs = json.loads((Path(__file__).parent / "configs.json").read_text(encoding="utf-8"))
    for name in ("rate=3=best", "1,2"):
        config, file = tmp_path / name / "config.json", tmp_path / f"{name}.toml"
        config.parent.mkdir()
        config.write_text(json.dumps(configs["qwen-3-30b-a3b"]), encoding="utf-8")
        line = f"plan {config} h100 --prompt 10 --generated 10 --json --write-config {file}"
        assert told(capsys, line) == told(capsys, f"plan --config {file} --json"), name


def test_an_option_beside_a_file_wins(capsys: pytest.CaptureFixture[str], written: Written) -> None:
    file = written(plan("llama-3-8b", "h100", prompt=10, generated=10).to_toml(), "plan.toml")
    assert "batch 4, 10 + 10 tokens" in told(capsys, f"plan --config {file} --batch 4")
    assert "Qwen3 8B on 1" in told(capsys, f"plan qwen-3-8b --config={file}")


def test_a_file_may_contradict_what_is_typed(
    capsys: pytest.CaptureFixture[str], written: Written
) -> None:
    file = written(flatly(plan_training, "llama-3-8b", "dgx-h100", **TRAINED).to_toml(), "run.toml")
    error = told(capsys, f"plan-training --config {file} --deadline '3 day'", 1)
    assert (
        'takes one of devices, deadline and budget; got --devices 64, --deadline "3 day"' in error
    )


def test_a_file_that_cannot_be_written_is_refused_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = "plan llama-3-8b h100 --prompt 10 --generated 10 --write-config"
    assert "there is no folder" in told(capsys, f"{line} {tmp_path}/none/plan.toml", 1)
    file = tmp_path / "plan.toml"
    error = told(capsys, f"plan no-model h100 --prompt 1 --generated 1 --write-config {file}", 1)
    assert "no-model" in error
    assert not file.exists()


def test_only_what_is_planned_is_written() -> None:
    assert "price" not in plan("llama-3-8b", "h100", prompt=10, generated=10).to_toml()
