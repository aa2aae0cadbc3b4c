"""Rows that a reader's own log becomes: what is read of them again, and what they never say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calc import InputError
from calc.published.claims import load as load_claims, read
from calc.published.contributing import MEASURED, contribute
from calc.published.reading import load
from calc.published.serving_rows import predict
from tests.calc.command import Command
from tests.calc.test_logs import LLAMA_BENCH, VLLM

ABOUT = "Llama 3.1 8B on 1 H100, vLLM 0.24.0, BF16"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "run.txt"
    file.write_text(VLLM.format(clients=8, ttft=3345.37, tpot=20.63), encoding="utf-8")
    return file


def test_a_row_is_read_again_as_it_was_understood(log: Path, tmp_path: Path) -> None:
    contribute(load_claims(log), tmp_path / "mine.toml", ABOUT)
    [row] = load(tmp_path / "mine.toml")
    assert (row.group, row.source) == ("serving", "mine")
    assert row["batch"] == 8
    assert row["input_len"] == 480_000 / 30
    assert row["output_len"] == 6_000 / 30
    assert row.measured["output_tokens_per_s"] == 26.84
    assert row.measured["time_to_first_token"] == pytest.approx(3.34537)  # seconds
    prediction = predict(row).prediction
    assert prediction is not None
    assert prediction.expected is not None


SAID = "Llama 3.1 8B on 8 H100, vLLM 0.24.0"
CLAIMS: dict[str, Any] = {
    "output": f"{SAID}: 900 token/s at 8 users",
    "total": f"{SAID}: 900 total token/s at 8 users",
    "input": f"{SAID}: 900 input token/s, prompts of 512",
    "requests": f"{SAID}: 9 requests/s at 8 users, answers of 100",
    "user": f"{SAID}: 40 token/s per user at 8 users",
    "ttft": f"{SAID}: TTFT 300 ms, prompts of 512",
    "tpot": f"{SAID}: TPOT 12 ms at 8 users",
    "tokens": f"{SAID}: trained at 9000 tokens/s, sequences of 4096",
    "flops": f"{SAID}: trained at 300 TFLOP/s per GPU, sequences of 4096",
    "mfu": f"{SAID}: MFU 40 %, sequences of 4096",
    "busbw": {
        "collective": "all_reduce",
        "message_bytes": 2**30,
        "busbw_gb_s": 400,
        "device": "h100",
        "num_devices": 8,
        "software": "nccl-tests",
    },
}


@pytest.mark.parametrize("figure", CLAIMS)
def test_a_row_claims_what_was_claimed(figure: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    contribute([(CLAIMS[figure], "")], file)
    [row] = load(file)
    claimed, again = read(CLAIMS[figure]), read(row.conditions)
    assert list(claimed.figures) == [figure]
    assert again.figures == pytest.approx(claimed.figures)
    assert again.row.group == claimed.row.group == row.group


def test_every_figure_that_makes_a_row_is_tried() -> None:
    assert MEASURED.keys() - CLAIMS.keys() == {"step", "time"}  # which logs alone state


def test_nothing_of_a_log_names_anybody(tmp_path: Path) -> None:
    result = {
        "model": "/home/ada/models/Llama-3.1-8B-Instruct",
        "host": "ada-workstation",
        "system": "ada-workstation",
        "notes": "by ada",
        "max_concurrency": 8,
        "output_throughput": 800,
    }
    file = tmp_path / "run.json"
    file.write_text(json.dumps(result), encoding="utf-8")
    text = contribute(load_claims(file), tmp_path / "mine.toml", "on 1 H100, vLLM 0.24.0")
    assert "Llama-3.1-8B-Instruct" in text
    assert "ada" not in text


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ("Llama 3.1 8B on 1 H100", "a row needs its software, which is not said"),
        ("vLLM 0.24.0", "a device and how many devices and a model is not said"),
        ("Llama 3.1 405B on 1 RTX 3060, vLLM 0.24.0", "times the bound: something else was run"),
    ],
)
def test_what_makes_no_row_writes_nothing(about: str, said: str, log: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        contribute(load_claims(log), tmp_path / "mine.toml", about)
    assert not (tmp_path / "mine.toml").exists()


def test_the_command_writes_a_file_that_validate_reads(
    command: Command, tmp_path: Path, log: Path
) -> None:
    log.write_text(LLAMA_BENCH, encoding="utf-8")
    file = tmp_path / "mine.toml"
    assert "possible" in command.prints(f"check {log} --contribute {file}")
    assert [row.id for row in load(file)] == ["mine-1", "mine-2", "mine-3"]
    assert "3" in command.prints(f"validate --published {file}")
    refused = command.refuses(f"check {log} --contribute {tmp_path / 'mine.csv'}")
    assert "--contribute needs a name that ends in .toml" in refused


def test_the_model_said_beside_a_log_is_its_row_s(tmp_path: Path) -> None:
    """llama-bench says "llama 8B" of every release; what is said beside it tells which."""
    lines = [line for line in LLAMA_BENCH.splitlines() if "llama 7B" not in line]
    log, row = tmp_path / "log.txt", tmp_path / "row.toml"
    log.write_text("\n".join(lines), encoding="utf-8")
    contribute(load_claims(log), row, "Llama 3.1 8B")
    written = row.read_text(encoding="utf-8")
    assert 'model = "llama-3-1-8b"' in written
    assert 'software = "llama.cpp build 1786"' in written
    with pytest.raises(InputError, match="and Qwen3 8B was said beside it: which of them ran"):
        contribute(load_claims(log), tmp_path / "other.toml", "Qwen3 8B")
    assert not (tmp_path / "other.toml").exists()
