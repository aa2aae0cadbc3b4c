"""The pandoc that serves: it reads as the program does, and outlives a fault."""

from __future__ import annotations

import json
import subprocess

import pytest

from press.document import pandoc
from press.problems import BookError

ODD = (
    "a\tb\r\n\tcode\tas it stands\n\n-\ta\n\n    \tb\n\n"
    "| é | \u2028 |\n|--|--|\n| x | y |\n\n: A caption\n"
)


@pytest.mark.parametrize("text", [ODD, "", "\ufeff# A", "---\n{}\n---\n\n$x$ `y`{.z}"])
def test_it_reads_what_the_program_reads(text: str) -> None:
    command = [pandoc.pandoc_path(), "-f", pandoc.MARKDOWN, "-t", "json"]
    run = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    document = json.loads(run.stdout)
    assert pandoc.parse(text) == (document["meta"], document["blocks"])


def test_it_tells_warnings_and_faults_goes_on_and_is_replaced_when_it_has_died() -> None:
    pandoc.end_pandocs()  # those that other tests have left
    _, blocks = pandoc.parse("$\\foo{$")
    (process,) = pandoc._idle
    text, log = pandoc.convert(blocks, "html5", html_math_method="mathml")
    assert "\\foo{" in text
    assert "Could not convert TeX math \\foo{" in log
    with pytest.raises(BookError, match=r"pandoc fails: .*nothing"):
        pandoc.convert(blocks, "nothing")
    assert pandoc.convert([], "html5") == ("", "")
    assert pandoc._idle == [process]
    process.kill()
    with pytest.raises(BookError, match="pandoc fails"):
        pandoc.parse("b")
    assert pandoc.parse("c")[1]
    assert process not in pandoc._idle
