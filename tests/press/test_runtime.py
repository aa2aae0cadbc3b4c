"""Python for the browser: what a site has with the packages that it takes, and without."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from press.build import render
from press.reading.project import read_book
from press.writing import runtime
from tests.press.tiny_book import SETTINGS, Write, cell, page_of, refusal, rendered

LIVE_SETTINGS = SETTINGS.replace("format:", "live: models\nformat:")
PAGE = '# A page\n\n::: {.live model="double"}\n\nA figure.\n\n:::\n'
MODELS = {"models/__init__.py": "", "models/double_live.py": ""}


@pytest.fixture
def bare_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without node and npm."""
    monkeypatch.setattr(runtime.shutil, "which", lambda program: None)


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime that is packed without node and npm."""

    def pack(_book: object, _edition: object, scratch: Path) -> bool:
        (scratch / "packed").mkdir()
        (scratch / "packed" / "site.zip.js").write_text("")
        return True

    monkeypatch.setattr(runtime, "_packed", pack)


@pytest.mark.usefixtures("bare_path")
def test_without_npm_the_book_is_rendered_with_static_figures(
    write_book: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    root = rendered(write_book(PAGE, MODELS, LIVE_SETTINGS), "html")
    messages = capsys.readouterr().err.strip().splitlines()
    assert [line for line in messages if "node and npm" in line] == [
        "The site has no Python for the browser, and its figures stay as drawn:"
        " node and npm bring it, and they are not on PATH."
    ]
    assert "A figure." in page_of(root)
    assert "live.js" not in page_of(root)
    assert "JavaScript" not in page_of(root)
    assert not (root / "_book" / "runtime").exists()


@pytest.mark.usefixtures("packed")
def test_a_page_has_its_scripts_and_the_sentence_for_readers_without_them(
    write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {**MODELS, "other.qmd": "# Another\n\nText.\n"}
    root = rendered(write_book(PAGE, other, LIVE_SETTINGS), "html")
    assert 'data-live="models"' in page_of(root)
    assert "assets/live.js" in page_of(root)
    assert "without-scripts" in page_of(root)
    assert "live.js" not in page_of(root, "other")
    assert (root / "_book" / "runtime" / "site.zip.js").is_file()
    (root / "other.qmd").write_text("# Another\n\nOther text.\n")
    monkeypatch.setattr(runtime, "_packed", lambda *_: pytest.fail("it is packed again"))
    render(root, "html")
    render(root, "html", runtime=False)  # left out where a render is told to
    assert "live.js" not in page_of(root)


def test_it_is_packed_while_cells_run_and_no_refusal_waits_for_it(
    write_book: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packing, cell_has_run = tmp_path / "packing", Event()

    def pack(_book: object, _edition: object, scratch: Path) -> bool:
        packing.touch()
        (scratch / "packed").mkdir()
        return cell_has_run.wait(20)

    monkeypatch.setattr(runtime, "_packed", pack)
    wait = f"import os, time\nwhile not os.path.exists({str(packing)!r}):\n    time.sleep(0.01)\n"
    settings = LIVE_SETTINGS + "execute:\n  timeout: 10\n"
    (problem,) = refusal(write_book(f"{PAGE}\n{cell(f'{wait}1 / 0')}", MODELS, settings))
    assert problem == "index.qmd:9: this cell fails with ZeroDivisionError: division by zero"
    assert not cell_has_run.is_set()
    cell_has_run.set()


REFUSED = [  # a page, models, settings, and what is said of them
    (PAGE.replace("double", "triple"), MODELS, "", "index.qmd:3: `models` has no model triple."),
    (PAGE.replace(' model="double"', ""), MODELS, "", "press does not render blocks like"),
    (PAGE, {}, "", "`live` names a Python package of the project, not 'models'."),
    (PAGE, MODELS, "live-without: models.no\n",
     "`live-without` names a Python package of the project, not 'models.no'."),
]  # fmt: skip


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize(("page", "models", "settings", "words"), REFUSED)
def test_a_model_and_a_package_that_there_is_not_are_refused(
    page: str, models: dict[str, str], settings: str, words: str, write_book: Write
) -> None:
    (problem,) = refusal(write_book(page, models, LIVE_SETTINGS + settings))
    assert words in problem


def test_a_package_within_another_is_packed_without_its_siblings(
    write_book: Write, tmp_path: Path
) -> None:
    packed = {"shown/__init__.py", "shown/models/__init__.py", "shown/models/double_live.py"}
    settings = LIVE_SETTINGS.replace("live: models", "live: shown.models")
    files = dict.fromkeys([*packed, "shown/drawn.py"], "")
    runtime._add_models(read_book(write_book(PAGE, files, settings)), tmp_path / "site")
    site = tmp_path / "site"
    assert {path.relative_to(site).as_posix() for path in site.rglob("*.py")} == packed


def test_the_lock_names_each_package_by_its_digest_and_no_address() -> None:
    lock = (runtime.OWN / "package-lock.json").read_text()
    assert lock.count('"integrity": "sha512-') == lock.count('"node_modules/')
    assert "://" not in lock


DRAW = "from matplotlib.figure import Figure\nfigure = Figure()\nfigure.subplots().plot([1, 2])\n"
OF_A_CELL = ("label: fig-cell", 'fig-cap: "Of a cell."', 'fig-alt: "A line."')
FIGURES = f"""\
# A page

@fig-cell and @fig-block are drawn.

::: {{.live model="double"}}

{cell(f"{DRAW}figure", *OF_A_CELL)}
:::

:::: {{.live model="double"}}

::: {{#fig-block}}

{cell("figure", 'fig-alt: "A line."')}
Of a block.
:::

::::
"""


@pytest.mark.usefixtures("bare_path")
def test_figures_in_a_live_block_have_their_numbers_and_captions(write_book: Write) -> None:
    page = page_of(rendered(write_book(FIGURES, MODELS, LIVE_SETTINGS), "html"))
    assert page.count('<div class="live" data-model="double">') == 2
    block = page.partition('<div class="live"')[2]
    for number, of in enumerate(("cell", "block"), 1):
        figure = block.partition(f'id="fig-{of}"')[2].partition("</figure>")[0]
        assert f"Figure\N{NO-BREAK SPACE}1.{number}:" in figure
        assert f"Of a {of}." in figure
