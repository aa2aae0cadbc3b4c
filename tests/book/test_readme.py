"""README.md and the page "The command line" say what is true: examples run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from calc.catalog import machines
from calc.commands import main
from tests.book.rendered import REPOSITORY
from tests.calc.command import Command

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds


def test_examples_run() -> None:
    # The last line of an example stands before the fence that closes it.
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8").replace("```", "")
    examples = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
    assert len(examples.examples) >= 7
    said: list[str] = []
    doctest.DocTestRunner().run(examples, out=said.append)
    assert not said, "".join(said)


def test_an_answer_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"```console\n\$ calc (.*) \| head -(\d+)\n(.*?)```", text, re.DOTALL)
    assert shown
    for line, count, printed in shown:
        assert Command(capsys).prints(line).splitlines()[: int(count)] == printed.splitlines()


def test_the_row_of_ones_own_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (REPOSITORY / "backmatter" / "command-line.qmd").read_text(encoding="utf-8")
    (row,) = re.findall(r"```toml\n(\[\[serving\]\].*?)```", text, re.S)
    path = tmp_path / "mine.toml"
    path.write_text(row, encoding="utf-8")
    assert main(("validate", "--published", str(path))) == 0
    printed = capsys.readouterr().out
    # By hand: 56.17 µs at least for a token of 500 µs, as the chapter's problem has it.
    assert re.search(r"^serving · dgx-h100 · vllm \(few\) +1 +1 +0 +1 +11% ", printed, re.M)
    assert re.search(r"^2\.\d+ +my server +dgx-h100 +vllm +Llama 3\.1 70B$", printed, re.M)


def test_the_picture_is_what_the_figure_draws_today(tmp_path: Path) -> None:
    from figures.__main__ import README_PICTURE, write_readme_picture

    write_readme_picture(tmp_path / "readme.svg")
    drawn = (tmp_path / "readme.svg").read_text(encoding="utf-8")
    assert README_PICTURE.read_text(encoding="utf-8") == drawn, "run: python -m figures"


def test_it_is_short_and_lists_the_devices_that_were_measured() -> None:
    lines = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    begun = next(index for index, line in enumerate(lines) if line.startswith("Kernels of these"))
    listed = set(
        re.findall("`(.*?)`", " ".join(lines[begun : lines.index("", begun)]).split(".")[0])
    )
    kinds = [("memory", "copy"), ("memory", "read")]
    kinds += [("gemm", dtype) for dtype in ("bf16", "fp16", "fp8")]
    measured = {
        machine.device.key
        for machine in map(machines.get, machines.names())
        if any(machine.has_reached(*kind) for kind in kinds)
    }
    assert listed == measured
