"""`calc simulate`: its table, its JSON, its progress bar, and a sentence for every mistake."""

from __future__ import annotations

import io
import json

import pytest

from calc.core.progress import ProgressBar
from tests.calc.command import Command


def rows(printed: str) -> dict[str, str]:
    pairs = (line.split("  ", 1) for line in printed.splitlines())
    return {title: value.strip() for title, value in pairs}


REFERENCE = ("--layers", "784-64-10", "--plan")


def test_a_plan(command: Command) -> None:
    assert rows(command.prints("simulate", *REFERENCE, "--memory", "0.25 MiB")) == {
        "batch": "17",
        "limited by": "memory (17 of 32: all that 0.25 MiB holds)",
        "precision": "FP32",
        "memory": "261904 byte (255.8 KiB) of 0.25 MiB",
        "parameters": "203560 byte (198.8 KiB)",
        "activations": "58344 byte (56.98 KiB)",
    }
    quantized = command.prints("simulate", *REFERENCE, "--precision", "int8")
    assert rows(quantized)["scales and biases, beside that"] == "518 byte (0.5059 KiB)"
    assert rows(quantized)["memory"].startswith("78346 byte (76.51 KiB) of 512 MiB")


def test_an_infeasible_plan_is_a_plan(command: Command) -> None:
    facts = json.loads(command.prints("simulate", *REFERENCE, "--memory", "100 kB", "--json"))
    assert (facts["batch"], facts["limited_by"], facts["feasible"]) == (0, "infeasible", False)
    assert facts["parameter_memory"] == {"value": 203_560, "unit": "byte"}
    assert rows(command.prints("simulate", *REFERENCE, "--memory", "100 kB"))["batch"] == "none"


def test_a_run(command: Command) -> None:
    arguments = ("--memory", "16 KiB", "--precision", "fp16", "--epochs", "3", "--batch", "64")
    table = rows(command.prints("simulate", *arguments, "--slowdown", "2"))
    assert table["batch"] == "54"
    assert table["limited by"] == "memory (54 of 64: all that 16 KiB holds)"
    assert table["accuracy in the test"].endswith("% of 360")
    assert table["time on the device"].endswith("(× 2)")
    facts = json.loads(command.prints("simulate", *arguments, "--slowdown", "2", "--json"))
    here, there = facts["elapsed"], facts["simulated_time"]
    assert here["unit"] == there["unit"] == "s"
    assert there["value"] == pytest.approx(2 * here["value"])
    first, _, last = facts["history"]["loss"]
    assert first > last
    assert table["loss, first and last epoch"] == f"{first:.3f}, {last:.3f}"
    assert f"{facts['test_accuracy']:.1%} of 360" == table["accuracy in the test"]  # the seed's


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--memory", "nan"), "only finite numbers are read"),
        (("--memory", "512"), "must be memory"),
        (("--memory", "-1 MiB"), "--memory must be positive and finite"),
        (("--memory", "1 kB"), "--run-infeasible trains all the same"),
        (("--batch", "0"), "calc: --batch must be a whole number from 1; got 0"),
        (("--limit", "-1"), "--limit must be a whole number from 1"),
        (("--slowdown", "0"), "--slowdown must be a number above 0; got 0"),
        (("--slowdown", "nan"), "--slowdown must be a number above 0; got nan"),
        (("--precision", "fp12"), "there is no precision 'fp12'; there are FP32"),
        (("--mode", "peak"), "--mode must be one of all_outputs, inference, training; got 'peak'"),
        (("--optimizer", "lion"), "--optimizer must be one of sgd, momentum, adam; got 'lion'"),
        (("--epochs", "0"), "calc: --epochs must be a whole number from 1"),
        (("--alpha", "0"), "calc: --alpha must be a number above 0; got 0\n"),
        (("--seed", "-1"), "--seed must be a whole number from 0"),
        (("--layers", "64-x"), "--layers needs whole numbers, as in 64-32-10; got '64-x'"),
        (("--layers", "64"), "--layers needs the 64 inputs and 10 outputs of the digits"),
        (("--layers", "784-64-10"), "as in 64-32-10; got '784-64-10'"),
        (("--layers", "64-5"), "as in 64-32-10; got '64-5'"),
    ],
)
def test_a_mistake_is_a_sentence(
    command: Command, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in command.refuses("simulate", *arguments)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_progress_bar() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        with ProgressBar(4, "training", stream) as bar:
            for loss in range(3):
                bar.advance(f"loss {loss}")
    drawn = terminal.getvalue().split("\r\033[K")
    assert drawn[1] == f"training [{'.' * 24}] 0/4"
    assert drawn[4] == f"training [{'#' * 18}{'.' * 6}] 3/4 loss 2"
    assert drawn[-1] == ""  # and the line is empty again
    assert pipe.getvalue() == ""
    with ProgressBar(1, "sweeping", terminal) as bar:  # which stands where it is told
        bar.update(9, 36)
    assert "sweeping [######..................] 9/36" in terminal.getvalue()
