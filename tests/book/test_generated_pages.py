"""The pages that nobody writes: complete, in the book, and made again when a source changes."""

from __future__ import annotations

import ast
import builtins
import doctest
import inspect
import math
import random
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
from calc.core.law import ARGUMENTS
from calc.core.records import Record
from calc.derivations.places import Thing, anchor, kind_of, page_of
from calc.derivations.quoting import show
from calc.derivations.sources import model_records
from tests.book.rendered import REPOSITORY, copy_tracked
from tests.draws import of_a_kind
from tests.rows import each_row
from tools.ledger.quotes import chapters
from tools.pages import alt_texts, answers, catalog, changes, indexed, listing, reference, uses
from tools.pages.equations import tex
from tools.pages.facts import PEAKS, asked_of

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
LIBRARY_PAGES = "reference/calc/"
LIBRARY = ["calc", "index", *(name for name in calc.SUBMODULES if name != "derivations")]
PROBLEM = re.compile(r"^\*\*Problem (\d+), (warm-up|practice|design decision)\.\*\*", re.MULTILINE)


@pytest.fixture(scope="module")
def wanted() -> dict[str, str]:
    """Return all of `reference/`, by paths, as it would be written today."""
    made, _ = reference.parts()
    return reference.pages(made.values())


def test_every_device_machine_and_model_has_a_page_with_all_that_is_known(
    wanted: dict[str, str],
) -> None:
    """Each row of a page says what is true: Gemma's cache, by hand, and the count of gpt-oss."""
    devices = [hardware.get(key) for key in (*hardware.names(), *hardware.announced())]
    described: dict[Accelerator | Machine, tuple[str, list[Record]]] = {
        device: (device.name, device.all_records()) for device in devices
    }
    described |= {
        each: (each.name, [*each.records.values()]) for each in map(machines.get, machines.names())
    }
    rates = {
        record.provenance.key: (dtype, PEAKS[name][0])
        for device in devices
        for name, of in device.peaks.items()
        for dtype, record in of.items()
    }
    with each_row() as row:
        for thing, (name, records) in described.items():
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


def test_each_fact_that_the_search_finds_has_a_row_of_its_own(wanted: dict[str, str]) -> None:
    things = [
        *map(hardware.get, (*hardware.names(), *hardware.announced())),
        *map(machines.get, machines.names()),
        *map(models.get, models.names()),
    ]
    with each_row() as row:
        for thing in things:
            with row(thing.key):
                row_ids = [fact.row for fact in asked_of(thing) if fact.value]
                assert "" not in row_ids
                assert len({*row_ids}) == len(row_ids)
                page = wanted[f"{page_of(thing)}.qmd"]
                assert [each for each in row_ids if f"#{each}}}" not in page] == []


def test_pages_lead_to_one_another_and_to_the_chapters_that_use_them(
    wanted: dict[str, str],
) -> None:
    h100 = wanted["reference/devices/h100.qmd"]
    assert "[NVIDIA DGX H100](../machines/dgx-h100.qmd)" in h100
    assert "[Training time](../../chapters/training-time.qmd)" in h100
    assert re.search(r"and \d+ other chapters", h100)
    assert "[Llama 3.1 405B](../../backmatter/sources-models.qmd#llama-3-1-405b)" in h100
    p5 = wanted["reference/machines/aws-p5.qmd"]
    assert "8 × [NVIDIA H100 SXM5 80 GB](../devices/h100.qmd)" in p5
    assert "measured on [NVIDIA DGX H100](dgx-h100.qmd)" in p5
    assert "other-networks.qmd" in wanted["reference/models/resnet-50.qmd"]
    assert "chapters/attention.qmd" not in wanted["reference/models/resnet-50.qmd"]


THIN = "\N{NARROW NO-BREAK SPACE}"


def test_each_stands_beside_its_neighbours(wanted: dict[str, str]) -> None:
    """Earlier, later and rival devices stand beside each, with the numbers of its own page."""
    for name, row in {
        "devices/h100": "| [AMD Instinct MI300X](mi300x.qmd) | 1307 | 192 | 5.3 | 448 | 750 |",
        "devices/rtx-4090": "| [NVIDIA GeForce RTX 5090](rtx-5090.qmd) | 209.5 | 32 | 1.792 |",
        "machines/dgx-h100": "| [NVIDIA DGX A100 80 GB](dgx-a100.qmd) | 8 | 300 | 200 | 6.5 |",
        "models/deepseek-v3": "| [Kimi K2](kimi-k2.qmd) | 1026 | 32.86 | 70.3 |",
    }.items():
        page = wanted[f"reference/{name}.qmd"]
        assert row in page.partition("## Beside its neighbours")[2].partition("\n## ")[0], name


def test_neighbours_are_the_nearest_of_the_table_of_all(wanted: dict[str, str]) -> None:
    """From the printed tables: ratios of numbers, years of which four are a factor of e, fame."""
    cells = {
        (kind, row[2]): [*map(figure_of, row[3].split(" | "))]
        for kind in catalog.things()
        for row in LISTED.finditer(wanted[f"reference/{kind}/index.qmd"])
    }

    def numbers(thing: Thing) -> list[float]:
        if isinstance(thing, Machine):
            return cells["machines", thing.key] + cells["devices", thing.device.key][1:]
        return cells[kind_of(thing), thing.key][1:]

    def year(thing: Thing) -> float:
        of = thing.device if isinstance(thing, Machine) else thing
        return cells[kind_of(of), of.key][0]

    def rank(thing: Thing) -> float:
        if isinstance(thing, Accelerator | Machine):
            return year(thing)
        return float(thing.parameters.m_as("param"))

    def family(thing: Thing) -> str:
        end = r"\S*\d.*" if isinstance(thing, Accelerator) else r"[^a-z].*"
        return re.sub(end, "", thing.name.replace(" ", " ").lower(), flags=re.DOTALL)

    def off(one: Thing, other: Thing) -> float:
        both = [p for p in zip(numbers(one), numbers(other), strict=True) if all(p)]
        return sum(math.log(max(p) / min(p)) for p in both) / len(both) if both else math.inf

    with each_row() as row:
        for kind, things in catalog.things().items():
            for thing in random.Random(kind).sample([*things], 12):
                alike = [
                    (
                        (off(thing, other) + abs(year(thing) - year(other)) / 4)
                        / (1 + 0.3 * math.log(1 + uses.count(other))),
                        other,
                    )
                    for other in things
                    if isinstance(other, models.Transformer)
                    == isinstance(thing, models.Transformer)
                    if other.key != thing.key and 0 < off(thing, other) < 2
                ]
                ranked = [other for _, other in sorted(alike, key=lambda pair: pair[0])]
                family_of = [other for other in ranked if family(other) == family(thing)]
                before = [other for other in family_of if rank(other) < rank(thing)][:1]
                after = [other for other in family_of if rank(other) > rank(thing)][:1]
                others = {
                    family(other): other
                    for other in reversed(ranked)
                    if family(other) != family(thing)
                }
                rivals = sorted(others.values(), key=ranked.index)
                near = (before + after + rivals)[:4]
                page = wanted[f"{page_of(thing)}.qmd"]
                beside = page.partition("## Beside its neighbours")[2].partition("\n## ")[0]
                with row(f"{kind} {thing.key}"):
                    assert [match[2] for match in LISTED.finditer(beside)] == [
                        other.key for other in near
                    ]


LISTED = re.compile(r"^\| \[(.*?)\]\(([\w.-]+)\.qmd\) \| (.*) \|$", re.MULTILINE)


def figure_of(cell: str) -> float:
    return float(re.sub(r"[^\d.]", "", cell) or 0)


LIMITS = {  # as pages print them, and what laws then take
    "> 0": (0, math.inf, False),
    "≥ 0": (0, math.inf, True),
    "> 1": (1, math.inf, False),
    "≥ 1": (1, math.inf, True),
    "0 to 1": (0, 1, True),
    "above 0 to 1": (0, 1, False),
    "2 to 64": (2, 64, True),
    "1 to 1000": (1, 1000, True),
}


def test_pages_of_laws_say_the_units_and_the_limits_that_laws_keep(wanted: dict[str, str]) -> None:
    for name in LIBRARY[2:]:
        getattr(calc, name)  # whose laws are then known
    pages = {path: page for path, page in wanted.items() if path.startswith("reference/calc/")}
    laws = {law: of for law, of in ARGUMENTS.items() if not law.startswith("test")}
    read = 0
    with each_row() as row:
        for law, arguments in laws.items():
            module, _, name = law.partition(".")
            page = pages[f"reference/calc/{module}.qmd"]
            entry = page.partition(f"{{#calc-{module}-{name} ")[2].partition("\n## ")[0]
            for argument in arguments:
                with row(f"{law} {argument.name}"):
                    cells = re.search(
                        rf"^\| `{argument.name}` \| (.*) \| (.*) \| (.*) \| .* \|$",
                        entry,
                        re.MULTILINE,
                    )
                    assert cells
                    symbol, unit, limits = cells.groups()
                    assert symbol == f"${tex(argument.symbol)}$"
                    assert unit == (f"`{argument.unit}`" if argument.unit else "pure number")
                    allowed = argument.allowed
                    if limits in LIMITS:
                        read += 1
                        kept = (allowed.low, allowed.high, allowed.low_included)
                        assert kept == LIMITS[limits]
    assert read > 300


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


@pytest.fixture(scope="module")
def entries(wanted: dict[str, str]) -> dict[str, str]:
    """Return the entry of each name in the library's pages."""
    return {
        entry.partition(" ")[0]: entry
        for path, page in wanted.items()
        if path.startswith("reference/calc/")
        for entry in page.split("\n## ")[1:]
    }


def test_nothing_that_is_made_is_kept_in_git() -> None:
    listed = ["git", "ls-files", "reference", "calc/*.pyi"]
    kept = subprocess.run(listed, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert [name for name in kept.stdout.split() if not name.endswith("/__init__.pyi")] == []


def test_without_what_reads_the_docstrings_one_sentence_says_what_brings_it() -> None:
    code = (
        "import sys; sys.modules['griffe'] = None; from tools.pages import reference;"
        "reference.STAMP = reference.ROOT / 'none'; del reference.PARTS['catalogue'];"
        "reference.write()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 1
    needed = "the pages of reference/ need griffe; `make set-up-book` brings it\n"
    assert done.stderr == needed


def test_each_page_is_listed_once_after_those_that_somebody_wrote(wanted: dict[str, str]) -> None:
    settings = yaml.safe_load((REPOSITORY / "_quarto.yml").read_text(encoding="utf-8"))
    assert settings["metadata-files"] == [listing.PATH]
    assert "reference/" not in str(settings["book"]["chapters"])
    chapters = yaml.safe_load(wanted[listing.PATH])["book"]["chapters"]
    parts = [each["chapters"] if isinstance(each, dict) else [each] for each in chapters]
    listed = [name for names in parts for name in names]
    assert sorted(listed) == sorted(name for name in wanted if name.endswith(".qmd"))


def test_the_index_has_an_entry_once_however_it_is_written() -> None:
    entries = list(indexed.entries())
    assert len(entries) >= 200
    alike = [entry.casefold().removesuffix("s") for entry in entries]
    twice = [entry for entry, like in zip(entries, alike, strict=True) if alike.count(like) > 1]
    assert not twice


# A file, what it holds, what it then holds, and the page that must follow with its words.
SOURCES = {
    "a chapter's title": (
        ("chapters/roofline.qmd", "# The roofline and the iron law", "# Roofs"),
        ("reference/devices/a100.qmd", "[Roofs]"),
    ),
    "an answer": (
        ("chapters/roofline.qmd", 'title="Answer to problem 1"}\n', "\\g<0>By heart.\n"),
        ("reference/answers.qmd", "By heart."),
    ),
    "a change": (
        ("CHANGELOG.md", r"## \[0\.1\.0\]\n", "\\g<0>\n- It is faster.\n"),
        ("reference/changes.qmd", "It is faster."),
    ),
    "a docstring": (
        ("calc/laws/links.py", '"""Time until the last byte', '"""Time until the final byte'),
        ("reference/calc/links.qmd", "Time until the final byte"),
    ),
    "a number": (
        ("calc/data/accelerators.toml", r"tdp = { value = 700,", "tdp = { value = 702,"),
        ("reference/devices/h100.qmd", "702\N{NO-BREAK SPACE}W"),
    ),
    "what the pages are made with": (
        ("tools/pages/catalog.py", "Every device of the data", "All devices of the data"),
        ("reference/devices/index.qmd", "All devices of the data"),
    ),
}


def test_changes_since_the_last_version_are_gathered_by_kind(tmp_path: Path) -> None:
    assert changes.gathered(tmp_path) == ""
    files = {
        "+b.added.md": "A law.\nIn two lines.\n",
        "7.added.md": "A device.",
        "README.md": "No.",
    }
    for name, text in {**files, "+slow.mended.md": "It is faster."}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    added = "### Added\n\n- A law.\n  In two lines.\n- A device."
    assert changes.gathered(tmp_path) == f"{added}\n\n### Mended\n\n- It is faster."


def test_each_change_is_of_a_kind() -> None:
    names = {path.name for path in changes.FOLDER.iterdir()} - {"README.md"}
    name = rf"(\d+|\+[\w-]+)\.({'|'.join(changes.kinds())})\.md"
    assert [each for each in names if not re.fullmatch(name, each)] == []


@pytest.mark.slow
def test_a_page_follows_each_of_its_sources_and_no_hand(tmp_path: Path) -> None:
    """A page that nothing changed is not written, and one changed by hand is mended, in a clone."""
    copy_tracked(REPOSITORY, tmp_path)
    script = [sys.executable, "tools/pages/__main__.py"]

    def made() -> str:
        return subprocess.run(script, cwd=tmp_path, capture_output=True, text=True).stdout

    count = r"wrote (\d+) of the \1 files of reference/\n"
    assert re.fullmatch(count, made())
    assert made() == ""
    for page in ("devices/h100.qmd", "calc/links.qmd", "answers.qmd"):
        (tmp_path / "reference" / page).write_text("By hand.", encoding="utf-8")
    (tmp_path / "reference" / "devices" / "h100.csv").touch()
    assert made().startswith("wrote 3 of the ")
    assert not (tmp_path / "reference" / "devices" / "h100.csv").exists()
    for (source, old, new), _ in SOURCES.values():
        text = (tmp_path / source).read_text(encoding="utf-8")
        changed = re.sub(old, new, text, count=1)
        assert changed != text
        (tmp_path / source).write_text(changed, encoding="utf-8")
    assert made().startswith("wrote ")
    with each_row() as row:
        for name, (_, (page, words)) in SOURCES.items():
            with row(name):
                assert words in (tmp_path / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in calc.SUBMODULES if name != "derivations"])
def test_every_public_function_has_its_entry(name: str, wanted: dict[str, str]) -> None:
    module = getattr(calc, name)
    page = wanted[f"reference/calc/{name}.qmd"]
    shown = () if name == "codesign" else dir(module)  # most of its names need torch
    for member in {*vars(module), *shown}:
        value = getattr(module, member)
        callable_here = inspect.isfunction(value) or inspect.isclass(value)
        defined_here = callable_here and f"{value.__module__}.".startswith(f"{module.__name__}.")
        if defined_here and not member.startswith("_"):
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
    lacking = []
    for name in functions:
        assert f"```\n{name}(" in entries[name], name
        page, _, function = name.partition(".")
        prompt = "" if name in NOT_REPEATABLE else ">>> "
        imported = (
            rf"^{prompt}(import calc$|from calc(\.\w+)*(\.{page})? import (\w+, )*{function}\b)"
        )
        if not re.search(imported, entries[name], re.MULTILINE):
            lacking.append(name)
    assert " ".join(lacking) == "", "each needs an example"


def test_every_example_says_where_its_names_come_from(wanted: dict[str, str]) -> None:
    """Hold what is pasted alone to the names that it imports, binds or has from Python."""
    with each_row() as row:
        for page in LIBRARY:
            for number, example in enumerate(EXAMPLE.findall(wanted[f"{LIBRARY_PAGES}{page}.qmd"])):
                with row(f"{page}, example {number}"):
                    assert unbound(example) == set()


def unbound(example: str) -> set[str]:
    """Return the names that an example reads and nothing in it binds."""
    lines = doctest.DocTestParser().get_examples(example)
    assert lines
    bound, read = {*dir(builtins)}, set()
    for node in ast.walk(ast.parse("".join(line.source for line in lines))):
        match node:
            case ast.Name(name, ast.Load()):
                read.add(name)
            case ast.Name(name) | ast.arg(name) | ast.FunctionDef(name) | ast.ClassDef(name):
                bound.add(name)
            case ast.alias(name, other):
                bound.add(other or name.partition(".")[0])
    return read - bound


@pytest.mark.parametrize(
    ("example", "names"),
    [
        (">>> calc.plan\n", {"calc"}),
        (">>> import calc.core as core\n>>> core.units, calc\n", {"calc"}),
        (">>> import calc.core\n>>> [x for x in calc.core.names]\n", set()),
        (">>> def f(x):\n...     return x + y\n", {"y"}),
    ],
)
def test_a_name_without_origin_is_found(example: str, names: set[str]) -> None:
    assert unbound(example) == names


@pytest.mark.slow
@pytest.mark.parametrize("page", of_a_kind(LIBRARY))
def test_an_example_runs_by_itself(
    page: str, wanted: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = set()
    with each_row() as row:
        for number, example in enumerate(EXAMPLE.findall(wanted[f"{LIBRARY_PAGES}{page}.qmd"])):
            (folder := tmp_path / str(number)).mkdir()
            with row(f"example {number}"), monkeypatch.context() as alone:
                alone.chdir(folder)
                # Where torch is missing, pytest's search for doctests leaves half a module behind.
                for name in [each for each in sys.modules if each.startswith("calc.codesign.")]:
                    alone.delitem(sys.modules, name)
                missing |= missing_for(example)
    if missing:
        pytest.skip("; ".join(sorted(missing)))


def missing_for(example: str) -> set[str]:
    """Return the names that an example lacks, once it has run as if it had been pasted."""
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
    assert alt_texts.with_alt_texts(text) == text, "run `python -m tools.pages.alt_texts`"
    cells = [options + code for options, code in alt_texts.CELL.findall(text)]
    cells_with_alt = [cell for cell in cells if "#| fig-alt:" in cell]
    assert all(map(alt_texts.DRAWN.search, cells_with_alt)), (
        "draw it in figures/, and tell it there in alt()"
    )


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


def test_answers_on_paper_tell_what_their_results_are_by_hand() -> None:
    worked = re.findall(
        r"^::: \{\.fine-print\}\n`\{python\} worked\((.*)\)`$", answers.page(), re.M
    )
    quoting = [
        answer
        for chapter in answers.chapters()
        for _, answer in answers.ANSWER.findall(chapter.read_text(encoding="utf-8"))
        if "`{python} " in answer
    ]
    assert len(worked) == len(quoting) > 50
    for names, answer in zip(worked, quoting, strict=True):
        assert all(f"({name}" in answer or f", {name}" in answer for name in names.split(", "))
