"""The pandoc that serves: it reads as the program does, and outlives a fault."""

from __future__ import annotations

import json
import subprocess

import pytest

from press.document import pandoc
from press.problems import BookError

ODD = """\
a\tb\r
\tcode\tas it stands

-\ta

    \tb

| é | \u2028 |
|--|--|
| x | y |

: A caption
"""


def test_it_reads_what_the_program_reads() -> None:
    command = [pandoc.pandoc_path(), "-f", pandoc.MARKDOWN, "-t", "json"]
    for text in (ODD, "", "\ufeff# A", "---\n{}\n---\n\n$x$ `y`{.z}"):
        run = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
        document = json.loads(run.stdout)
        assert pandoc.parse(text) == (document["meta"], document["blocks"])


def test_it_tells_warnings_and_faults_and_goes_on() -> None:
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


def test_one_that_has_died_is_told_and_replaced() -> None:
    pandoc.end_pandocs()
    pandoc.parse("a")
    (process,) = pandoc._idle
    process.kill()
    with pytest.raises(BookError, match="pandoc fails"):
        pandoc.parse("b")
    assert pandoc.parse("c")[1]
    assert process not in pandoc._idle
