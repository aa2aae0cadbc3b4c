"""What `python -m tools.pages` makes: in step with its sources, complete, and in the book."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import calc
from calc import hardware, machines, models
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.core.records import Record
from calc.derivations.places import anchor, page_of
from calc.derivations.quoting import show
from calc.derivations.sources import model_records
from tests.book.rendered import REPOSITORY, chapters
from tests.rows import each_row
from tools.pages import alt_texts, answers, catalog, stubs
from tools.pages.equations import tex
from tools.pages.facts import PEAKS

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds

EXAMPLE = re.compile(r"^```python\n(>>>.*?\n)```$", re.MULTILINE | re.DOTALL)
NOT_REPEATABLE = {
    "measure.survey",  # takes a minute, and finds what this machine has
    "measure.gpu_survey",  # needs a GPU
}
# Beside the laws, the functions of calc whose equation a chapter shows under a number.
NUMBERED_IN_CHAPTERS = [
    "inference.decode",
    "inference.prefill",
    "layouts.memory_per_device",
    "layouts.training_step",
    "quantization.affine",
    "quantization.asymmetric",
    "quantization.integer_matmul",
    "quantization.sqnr",
    "quantization.symmetric",
    "scaling.combined_speedup",
    "transformer.activation_memory",
    "transformer.crossover_context",
    "transformer.forward_flops",
    "transformer.kv_cache_per_token",
]
LIBRARY = sorted(path.stem for path in (REPOSITORY / "reference" / "calc").glob("*.qmd"))
PROBLEM = re.compile(r"^\*\*Problem (\d+), (warm-up|practice|design decision)\.\*\*", re.MULTILINE)


@pytest.fixture(scope="module")
def wanted() -> dict[str, str]:
    """The generated pages, by their paths, as they would be written today."""
    from tools.pages.__main__ import wanted_pages

    return wanted_pages()


def test_every_device_machine_and_model_has_a_page_with_all_that_is_known(
    wanted: dict[str, str],
) -> None:
    """And its rows say what is true: Gemma's cache, by hand, and the count of gpt-oss."""
    devices = [hardware.get(key) for key in (*hardware.names(), *hardware.announced())]
    told: dict[Accelerator | Machine, tuple[str, list[Record]]] = {
        device: (device.name, device.all_records()) for device in devices
    }
    told |= {
        each: (each.name, [*each.records.values()]) for each in map(machines.get, machines.names())
    }
    rates = {
        record.provenance.key: (dtype, PEAKS[name][0])
        for device in devices
        for name, of in device.peaks.items()
        for dtype, record in of.items()
    }
    with each_row() as row:
        for thing, (name, records) in told.items():
            with row(thing.key):
                page = wanted[f"{page_of(thing)}.qmd"]
                assert f"# {name.replace('[', '').replace(']', '')} {{#" in page
                assert f"`{thing.key}`, " in page
                for record in records:
                    about = record.provenance
                    row_id = f"{{#{anchor(about.key)}}}"
                    published = record.published is not None
                    assert (row_id in page) == published, about.key
                    subject = rf"\[.*{re.escape(row_id)} \| .*"
                    if about.key in rates:
                        dtype, column = rates[about.key]
                        subject = rf"[\w, ]*\b{dtype.upper()}\b[\w, ]*: {column}"
                    line = rf"\| {subject} \| {about.kind}, {about.checked} \[@{about.source}\]"
                    assert not published or re.search(line, page), about.key
    for key in models.names():
        page = wanted[f"reference/models/{key}.qmd"]
        for name, record in model_records(key).items():
            about = record.provenance
            assert f" | {about.kind}, {about.checked} [@{about.source}]" in page, about.key
            number = str(show(record.quantity))
            if "×" in number and record.quantity.unitless:  # a count has all its digits
                number = f"{record.quantity.magnitude:,.0f}".replace(",", THIN)
            assert re.search(rf"\b{re.escape(number)}[ ,|]", page), f"{about.key}: {name}"
    cache = (10 * 131_072 + 52 * 1024) * 2 * 16 * 128 * 2
    kept = f"#gemma-3-27b-kept}} | {cache / 1e9:.1f}\N{NO-BREAK SPACE}GB | computed"
    assert kept in wanted["reference/models/gemma-3-27b.qmd"]
    gpt = wanted["reference/models/gpt-oss-120b.qmd"].replace("\N{NO-BREAK SPACE}", " ")
    assert "#gpt-oss-120b-parameters} | 116.8 billion parameters | computed" in gpt
    assert "Llama 3.3 70B" in wanted["reference/models/llama-3-1-70b.qmd"]


def test_pages_lead_to_one_another_and_to_the_chapters_that_use_them(
    wanted: dict[str, str],
) -> None:
    h100 = wanted["reference/devices/h100.qmd"]
    assert "[NVIDIA DGX H100](../machines/dgx-h100.qmd)" in h100
    assert "[Training at scale](../../chapters/training-at-scale.qmd)" in h100
    assert re.search(r"and \d+ other chapters", h100)
    assert "[Llama 3.1 405B](../../backmatter/sources-models.qmd#llama-3-1-405b)" in h100
    p5 = wanted["reference/machines/aws-p5.qmd"]
    assert "8 × [NVIDIA H100 SXM5 80 GB](../devices/h100.qmd)" in p5
    assert "measured on [NVIDIA DGX H100](dgx-h100.qmd)" in p5
    assert "other-networks.qmd" in wanted["reference/models/resnet-50.qmd"]
    assert "chapters/attention.qmd" not in wanted["reference/models/resnet-50.qmd"]


THIN = "\N{NARROW NO-BREAK SPACE}"


def test_each_stands_beside_its_neighbours(wanted: dict[str, str]) -> None:
    """What came before it and after it, and what others make, with the numbers of its own page."""
    for name, row in {
        "devices/h100": "| [AMD Instinct MI300X](mi300x.qmd) | 1307 | 192 | 5.3 | 448 | 750 |",
        "devices/rtx-4090": "| [NVIDIA GeForce RTX 5090](rtx-5090.qmd) | 209.5 | 32 | 1.792 |",
        "machines/dgx-h100": "| [NVIDIA DGX A100 80 GB](dgx-a100.qmd) | 8 | 300 | 200 | 6.5 |",
        "models/deepseek-v3": "| [Kimi K2](kimi-k2.qmd) | 1026 | 32.86 | 70.3 |",
    }.items():
        page = wanted[f"reference/{name}.qmd"]
        assert row in page.partition("## Beside its neighbours")[2].partition("\n## ")[0], name


def test_a_page_has_what_is_asked_most_first(wanted: dict[str, str]) -> None:
    page = wanted["reference/devices/h100.qmd"]
    assert re.findall(r"^## (.*) \{#h100-([\w-]+) ", page, re.MULTILINE) == [
        ("Rates", "rates"),
        ("Numbers", "numbers"),
        ("Beside its neighbours", "beside-its-neighbours"),
        ("Where it is used", "where-it-is-used"),
        ("Where its rates come from", "where-its-rates-come-from"),
    ]
    assert "## Rates" not in wanted["reference/models/gpt-2-xl.qmd"]


def test_the_settings_list_every_page_of_the_catalogue() -> None:
    """As tools.pages would list them, the newest models first."""
    for name, text in catalog.settings().items():
        assert (REPOSITORY / name).read_text(encoding="utf-8") == text, (
            "run `python -m tools.pages`"
        )


@pytest.fixture(scope="module")
def entries(wanted: dict[str, str]) -> dict[str, str]:
    """What the library's pages say of each name."""
    return {
        entry.partition(" ")[0]: entry
        for path, page in wanted.items()
        if path.startswith("reference/calc/")
        for entry in page.split("\n## ")[1:]
    }


def test_the_pages_in_git_are_those_of_today(wanted: dict[str, str]) -> None:
    kept = {
        path.relative_to(REPOSITORY).as_posix(): path.read_text(encoding="utf-8")
        for path in (REPOSITORY / "reference").rglob("*.*")
        if path.name != "README.md"
    }
    stale = sorted(name for name in wanted.keys() | kept if wanted.get(name) != kept.get(name))
    assert not stale, "run `python -m tools.pages`"


def test_the_stubs_in_git_are_those_of_today() -> None:
    for name, text in stubs.stubs().items():
        assert (REPOSITORY / name).read_text(encoding="utf-8") == text, (
            "run `python -m tools.pages`"
        )


def test_without_what_reads_the_docstrings_one_sentence_says_what_brings_it() -> None:
    code = (
        "import runpy, sys; sys.modules['griffe'] = None;"
        "runpy.run_module('tools.pages', alter_sys=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr == "`python -m tools.pages` needs griffe; `make set-up-test` brings it\n"


def test_each_page_is_in_the_book(wanted: dict[str, str]) -> None:
    settings = yaml.safe_load((REPOSITORY / "_quarto.yml").read_text(encoding="utf-8"))
    parts = [part for part in settings["book"]["chapters"] if isinstance(part, dict)]
    listed = {name for part in parts for name in part["chapters"]}
    assert {name for name in wanted if name.endswith(".qmd")} <= listed


@pytest.mark.parametrize("name", [name for name in calc.SUBMODULES if name != "derivations"])
def test_every_public_function_has_its_entry(name: str, wanted: dict[str, str]) -> None:
    module = getattr(calc, name)
    page = wanted[f"reference/calc/{name}.qmd"]
    shown = () if name == "codesign" else dir(module)  # most of its names need torch
    for member in {*vars(module), *shown}:
        value = getattr(module, member)
        callable_here = inspect.isfunction(value) or inspect.isclass(value)
        own = callable_here and f"{value.__module__}.".startswith(f"{module.__name__}.")
        if own and not member.startswith("_"):
            assert f"{{#calc-{name}-{member} .unnumbered}}" in page


def test_every_law_and_what_a_chapter_numbers_has_its_equation_and_units(
    entries: dict[str, str],
) -> None:
    for name in (*calc.all_laws(), *NUMBERED_IN_CHAPTERS):
        assert "$$\n" in entries[name], name
        assert "| returns |" in entries[name], name
        assert "Source: @" in entries[name] or name in NUMBERED_IN_CHAPTERS, name


def test_every_public_function_has_its_signature_and_an_example(entries: dict[str, str]) -> None:
    functions = [name for name in entries if name.rpartition(".")[2].islower()]
    assert set(calc.all_laws()) < set(functions)
    for name in functions:
        assert f"```\n{name}(" in entries[name], name
        page, _, function = name.partition(".")
        prompt = "" if name in NOT_REPEATABLE else ">>> "
        imported = (
            rf"^{prompt}(import calc$|from calc(\.\w+)*(\.{page})? import (\w+, )*{function}\b)"
        )
        assert re.search(imported, entries[name], re.MULTILINE), name


@pytest.mark.slow
@pytest.mark.parametrize("page", LIBRARY)
def test_an_example_runs_by_itself(
    page: str, wanted: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = set()
    with each_row() as row:
        for place, example in enumerate(
            EXAMPLE.findall(wanted[f"reference/calc/{page}.qmd"]), start=1
        ):
            (folder := tmp_path / str(place)).mkdir()
            with row(f"example {place}"), monkeypatch.context() as alone:
                alone.chdir(folder)
                # Where torch is missing, pytest's search for doctests leaves half a module behind.
                for name in [each for each in sys.modules if each.startswith("calc.codesign.")]:
                    alone.delitem(sys.modules, name)
                missing |= missing_for(example)
    if missing:
        pytest.skip("; ".join(sorted(missing)))


def missing_for(example: str) -> set[str]:
    """What an example needs and is not here, once it has run as if it had been pasted."""
    pasted = doctest.DocTestParser().get_doctest(example, {}, "pasted", None, 0)
    assert pasted.examples
    try:
        doctest.DebugRunner(optionflags=doctest.ELLIPSIS).run(pasted)
    except doctest.UnexpectedException as error:
        missing = error.exc_info[1]
        if isinstance(missing, ImportError) and re.search("torch|numba", str(missing)):
            return {str(missing)}
        raise missing from None
    return set()


@pytest.mark.parametrize(
    ("equation", "wanted"),
    [
        ("R = min(R_peak, BW · I)", r"R = \min(R_\text{peak}, BW \cdot I)"),
        ("L_max = ⌊M / m⌋", r"L_\text{max} = \lfloor M / m\rfloor"),
        ("I* = 2 · I", r"I^* = 2 \cdot I"),
        ("s = α / n, α = max |x|", r"s = \alpha / n,\quad \alpha = \max |x|"),
        ("n½ = L · BW", r"n_{1/2} = L \cdot BW"),
        ("|x − x̂| ≤ s / (2^(b−1) − 1)", r"|x - \hat{x}| \le s / (2^{b-1} - 1)"),
        ("a = log₂ b + log₁₀(3 · 4^b)", r"a = \log_2 b + \log_{10} (3 \cdot 4^b)"),
    ],
)
def test_equations_become_tex(equation: str, wanted: str) -> None:
    assert tex(equation) == wanted


@pytest.mark.parametrize("chapter", chapters(), ids=lambda path: path.stem)
def test_each_figure_is_told_as_it_is_today(chapter: Path) -> None:
    text = chapter.read_text(encoding="utf-8")
    assert alt_texts.with_alt_texts(text) == text, "run `python -m tools.pages`"
    cells = [options + code for options, code in alt_texts.CELL.findall(text)]
    told = [cell for cell in cells if "#| fig-alt:" in cell]
    assert all(map(alt_texts.DRAWN.search, told)), "draw it in figures/, and tell it there in alt()"


@pytest.mark.parametrize(
    "options",
    [
        "",
        "#| label: fig-a\n",
        "#| fig-alt: As it was.\n#| fig-cap: A caption\n",
        "#| label: fig-a\n#| fig-alt: |\n#|   As it was.\n#|   On two lines.\n",
    ],
)
def test_an_alt_text_is_written_into_the_cell_of_its_figure(options: str) -> None:
    from figures import batch_size

    before = "# A\n\n```{python}\nimport figures.batch_size\n```\n\n"
    cell = f"{before}```{{python}}\n{options}figures.batch_size.draw()\n```\n"
    written = alt_texts.with_alt_texts(cell)
    assert alt_texts.with_alt_texts(written) == written
    assert written.startswith(before + "```{python}\n")
    assert written.endswith("\nfigures.batch_size.draw()\n```\n")
    read = yaml.safe_load("".join(re.findall(r"^#\| ?(.*\n)", written, re.M)))
    kept = yaml.safe_load("".join(re.findall(r"^#\| ?(.*\n)", options, re.M))) or {}
    assert read == kept | {"fig-alt": " ".join(batch_size.alt().split())}


@pytest.mark.parametrize("chapter", chapters(), ids=lambda path: path.stem)
def test_each_problem_has_its_answer(chapter: Path) -> None:
    text = chapter.read_text(encoding="utf-8")
    problems = [int(number) for number, _ in PROBLEM.findall(text)]
    assert problems == list(range(1, len(problems) + 1))
    assert [int(number) for number, _ in answers.ANSWER.findall(text)] == problems
    assert text.count("Answer to problem") == len(problems)
    for _, answer in answers.ANSWER.findall(text):
        assert "#| echo: true" in answer, "an answer shows the call of `calc` that solves it"
