"""Files that are none, and results of benchmarks with fields that cannot be: one sentence each."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import calc
from calc import InputError, hardware, machines, models, software
from calc.codesign import read_run
from calc.core.files import LARGEST_MB, opened, parse_json
from calc.core.row_file import RowFile
from calc.planning.service import load
from calc.planning.service.observed import observe
from calc.published import reading
from calc.published.checking import Check, check_file
from tests.calc.command import Command

RESULT = {
    "model_id": "meta-llama/Llama-3.1-8B-Instruct",
    "max_concurrency": 64,
    "output_throughput": 2100.5,
    "mean_ttft_ms": 120.0,
    "mean_tpot_ms": 25.0,
    "completed": 100,
    "total_input_tokens": 100_000,
    "total_output_tokens": 20_000,
}
READERS: dict[str, Callable[[str], object]] = {
    "a device": hardware.load,
    "a model": models.load,
    "a model that is planned": lambda path: calc.plan(Path(path), "h100", prompt=9, generated=9),
    "a machine": machines.get,
    "a program": software.get,
    "a log": read_run,
    "a trace": load.read_trace,
    "published rows": reading.load,
    "finished rows": lambda path: next(iter(RowFile(path, {"of": 1}, {}).open().__enter__())),
    "options": lambda path: calc.planning.plan_files.read_options(path, calc.plan),
    "a claim": check_file,
    "a server": lambda path: observe("llama-3.1-8b", "h100", [path]),
}
ENDS = {"a trace": ("csv", "jsonl", "parquet"), "a claim": ("json", "csv", "txt")}
ENDS |= {"a model": ("json",), "a model that is planned": ("json",), "a server": ("json",)}


@pytest.fixture(scope="module")
def no_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Yield paths that lead to no file, or to one without an end."""
    folder = tmp_path_factory.mktemp("none")
    os.mkfifo(folder / "pipe")
    (folder / "zeros").symlink_to("/dev/zero")
    (folder / "folder").mkdir()
    with (folder / "large").open("wb") as file:
        file.truncate(int(LARGEST_MB * 1e6) + 1)
    with socket.socket(socket.AF_UNIX) as listening:
        before = Path.cwd()
        os.chdir(folder)  # since the whole path may be longer than that of a socket
        listening.bind("socket")
        os.chdir(before)
        yield {name: folder / name for name in ("pipe", "zeros", "folder", "large", "socket")}


@pytest.mark.parametrize("kind", READERS)
def test_only_files_of_a_stated_size_are_read(
    kind: str, no_files: dict[str, Path], tmp_path: Path
) -> None:
    for name, target in no_files.items():
        for end in ENDS.get(kind, ("toml",)):
            link = tmp_path / f"{name}.{end}"
            link.symlink_to(target)
            with pytest.raises(InputError) as refused:
                READERS[kind](str(link))
            said = str(refused.value)
            assert "\n" not in said
            assert f"{name}." in said, said


def test_what_is_no_file_and_how_large_one_may_be_is_said(no_files: dict[str, Path]) -> None:
    for name, said in (
        ("pipe", "is a pipe or a device; a file is needed"),
        ("zeros", "is a pipe or a device; a file is needed"),
        ("large", "is too large; a file may have 256 MB"),
        ("folder", "cannot be read: Is a directory"),
    ):
        with pytest.raises(InputError, match=said):
            opened(no_files[name])


def refusal(ask: Callable[[], object]) -> str:
    with pytest.raises(InputError) as refused:
        ask()
    said = str(refused.value)
    assert "\n" not in said
    return said


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("null", "a benchmark's result is one JSON object; got 'null'"),
        ("[1]", "is one JSON object"),
        ('{"benchmarks": 3}', "is one JSON object"),
        ('{"benchmarks": [null]}', "is one JSON object"),
        ('{"benchmarks": []}', "is one JSON object"),
        ("", "is not valid JSON"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"a":' * 200 + "1" + "}" * 200, "is nested too deeply"),
        ("1" + "0" * 400, "is no number of JSON, or is too large"),
        ("1" + "0" * 9000, "is no number of JSON, or is too large"),
        ('{"mean_tpot_ms": 1e999}', "1e999 is no number of JSON, or is too large"),
        ('{"mean_tpot_ms": Infinity}', "Infinity is no number of JSON"),
        ('{"mean_tpot_ms": NaN}', "NaN is no number of JSON"),
        ('{"mean_tpot_ms": 9, "mean_tpot_ms": 9}', "mean_tpot_ms is there 2 times"),
    ],
)
def test_json_that_is_no_result_is_a_sentence(text: str, said: str, tmp_path: Path) -> None:
    path = write(tmp_path / "result.json", text)
    for ask in (lambda: check_file(path), lambda: observe("llama-3.1-8b", "h100", [path])):
        assert said in refusal(ask)


def test_json_that_is_cut_off_anywhere_says_in_which_line() -> None:
    whole = """{"a": [true, false, null, -1.5e+10, 2.25E-3, {}, []],
"b": "text \\" with \\u00e9 and \\\\", "c": {"d": 0.5}
}"""
    assert parse_json(whole, "it")["c"] == {"d": 0.5}
    for end in range(1, len(whole)):
        line = whole[:end].rstrip().count("\n") + 1
        said = refusal(lambda end=end: parse_json(whole[:end], "it"))
        assert said == f"it: ends in the middle of line {line}", whole[:end]
    for wrong in ('{"a" 1}', '{"a": yes}', '{"a": 1}}', "nothing", '{"a": 1 "b": 2}', "{'a': 1}"):
        assert "it: is not valid JSON: " in refusal(lambda wrong=wrong: parse_json(wrong, "it"))


@pytest.mark.parametrize(
    "line",
    [
        "plan llama-3-8b h100 --prompt 9 --generated 9 --draft {long}",
        "plan llama-3-8b h100 --prompt 9 --generated 9 --host {long}",
        "plan llama-3-8b h100 --prompt 9 --generated 9 --power-cap {long}",
        "plan llama-3-8b h100 --prompt 9 --generated 9 --batch {long}",
        "plan-service llama-3-8b h100 --rate 1 --prompt 9 --generated 9 --ttft 9 --tpot 9"
        " --write {long}",
        "plan-training qwen-3-8b dgx-h100 --rl --answers 8 --average 9 --limit 99 --devices {long}",
        "check 'Llama 3.1 70B on 4 H100: 5000 token/s at 64 users' --contribute {long}",
        "fit llama-3-8b h100 --log {long}",
        "assert {long}",
    ],
)
def test_what_is_long_is_not_echoed_whole(line: str, command: Command) -> None:
    said = command.refuses(line.format(long="a" * 5000))
    assert "aaaa" in said or "of 5000 characters" in said
    assert len(said) < 700


def test_lines_that_are_cut_off_in_the_last_one_say_so(tmp_path: Path) -> None:
    line = json.dumps(RESULT | {"metadata": {"of": {"it": "{}"}}})
    path = str(tmp_path / "runs.jsonl")
    for cut in (1, 9, len(line) - 2, len(line) - 1):
        write(tmp_path / "runs.jsonl", f"{line}\n\n{line}\n{line[:cut]}")
        for ask in (lambda: check_file(path), lambda: observe("llama-3.1-8b", "h100", [path])):
            assert refusal(ask) == f"{path}: ends in the middle of line 4"
    write(tmp_path / "runs.jsonl", f"{line}\n{{'a': 1}}\n{line}\n")
    assert "double quotes: line 2 column 2" in refusal(lambda: check_file(path))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("max_concurrency", value) for value in ("x", -1, 0, True, "1,000", [1], {"a": 1}, 1e30)),
        *(("completed", value) for value in (-1, 0, "all", False)),
        *(("total_input_tokens", value) for value in (-5, "many")),
        *(("mean_tpot_ms", value) for value in (1e-308, -1, 0, "12ms", [], True)),
        *(("output_throughput", value) for value in (-1, "fast", {})),
        *(("measured", value) for value in (3, [3], "x")),
        ("model_id", 5),
        ("gpus", "eight"),
        ("num_devices", 2.5),
    ],
)
def test_a_field_that_cannot_be_is_refused_by_name(name: str, value: Any, tmp_path: Path) -> None:
    ours = {"model_id": "model", "max_concurrency": "batch" if value == 1e30 else ""}
    path = write(tmp_path / "result.json", json.dumps(RESULT | {name: value}))
    for ask in (
        lambda: check_file(path, "one H100, bf16"),
        lambda: observe("llama-3.1-8b", "h100", [path]),
    ):
        said = refusal(ask)
        assert f"{ours.get(name) or name} must be" in said
        assert str(tmp_path) in said


def test_a_result_that_can_be_is_read_with_a_mark_at_its_beginning(tmp_path: Path) -> None:
    said = {"num_devices": 8.0, "max_concurrency": None, "tags": {"a": {"b": [1, {}]}}}
    path = write(tmp_path / "result.json", "\ufeff" + json.dumps(RESULT | said))
    checked = check_file(path, "H100, bf16")
    assert isinstance(checked, Check)
    assert checked.claim.row["num_devices"] == 8
    assert checked.claim.row["input_len"] == 1000
    assert checked.claim.row["batch"] is None


def test_a_table_with_columns_or_cells_too_many_is_refused(tmp_path: Path) -> None:
    twice = write(tmp_path / "twice.csv", "device,device\nh100,h200\n")
    assert "the column 'device' is there twice" in refusal(lambda: check_file(twice))
    more = write(tmp_path / "more.csv", "device,model\nh100,llama-3-8b,9\n")
    assert "row 2: has more cells than the table has titles" in refusal(lambda: check_file(more))


def test_what_is_long_is_told_in_short(tmp_path: Path, command: Command) -> None:
    for name in ("model_id", "device", "framework", "dtype_weights"):
        path = write(tmp_path / "result.json", json.dumps(RESULT | {name: "m" * 10**6}))
        assert len(command.refuses("check", path, "--about", "one H100, bf16")) < 1000, name


def test_times_that_no_device_reaches_are_refused_and_rates_end_at_the_peaks() -> None:
    def seen(ttft: str, tpot: str) -> dict[str, float]:
        points = [f"concurrency={clients},ttft={ttft},tpot={tpot}" for clients in (4, 64)]
        return observe("llama-3.1-8b", "h100", points, prompt=1000, generated=500).numbers

    assert "tpot of 4 clients is 1 ns" in refusal(lambda: seen("60 ms", "1 ns"))
    assert "ttft of 4 clients is 1 ns" in refusal(lambda: seen("1 ns", "8 ms"))
    assert "may be 100,000 at most" in refusal(
        lambda: observe("llama-3.1-8b", "h100", ["concurrency=1e30,ttft=1 s,tpot=9 ms"])
    )
    # All of a token is the host's: whatever share kernels sustain, none is above the peaks.
    assert seen("60 ms", "50 ms")["sustained"] < 2
