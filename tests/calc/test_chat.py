"""Chats that others metered, as a person would ask of them, by `benchmarks.chat`."""

from __future__ import annotations

import json

import pytest

from benchmarks import chat
from calc import published
from tests.calc.command import Command


def test_a_load_is_asked_as_the_command_is_asked(command: Command) -> None:
    """The 70B on four H100s, 64 requests at once whose answers have 352 tokens."""
    row = published.row("mlenergy-34")
    said = "llama-3.1-70b h100 --devices 4 --users 64 --prompt 352 --generated 352 --weights bf16"
    [plan] = json.loads(command.prints(f"plan {said} --software 'vllm 0.11.1' --json"))["rows"]
    expected = plan["expected"]["throughput"]["value"]
    ends = plan["interval"]["throughput"]
    low, high = (ends[end]["value"] for end in ("low", "high"))
    answer = chat.told(row)
    assert answer is not None
    rate = row.measured["output_tokens_per_s"]
    assert answer.factor == pytest.approx(expected / rate, rel=1e-3)
    assert answer.inside == (low < rate < high)
    assert answer.width == pytest.approx(high / low, rel=1e-3)
    assert answer.classes[1:3] == ("h100, dense", "h100, dense, up to 128 at once")


def test_each_load_counts_in_its_classes() -> None:
    row = published.row("mlenergy-34")
    answers = [
        chat.Told(row, "h100", mixture=False, batch=batch, factor=factor, width=1.5, inside=inside)
        for batch, factor, inside in ((16, 1.2, True), (128, 0.9, True), (2048, 0.4, False))
    ]
    lines = {name: rest for name, *rest in chat.table(answers)}
    assert lines["all"] == ["3", "-10.0%", "20.0%", "60.0%", "67%", "1.50"]
    assert lines["h100, dense, more at once"][0] == "1"
    assert lines["h100, dense, Llama-3.1-70B-Instruct"][0] == "3"


def test_chats_of_the_data_are_read_with_their_task() -> None:
    """92 of its 139 loads are chats, which is what is judged."""
    tasks = [row["task"] for row in chat.chats()]
    assert len(tasks) == 139
    assert tasks.count(chat.TASK) == 92
