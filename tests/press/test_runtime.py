"""Python for the browser: what a site has with the packages that it takes, and without."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from press.build import render
from press.reading.project import read_book
from press.writing import runtime
from tests.press.tiny_book import SETTINGS, Write, refusal

LIVE_SETTINGS = SETTINGS.replace("format:", "live: models\nformat:")
PAGE = '# A page\n\n::: {.live model="double"}\n\nA figure.\n\n:::\n'
MODELS = {"models/__init__.py": "", "models/double_live.py": ""}


@pytest.fixture
def bare_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without node and npm."""
    monkeypatch.setattr(runtime.shutil, "which", lambda program: None)


def page_of(book: Path) -> str:
    return (book / "_book" / "index.html").read_text()


@pytest.mark.usefixtures("bare_path")
def test_without_npm_the_book_is_rendered_with_static_figures(
    write_book: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    book = write_book(PAGE, MODELS, LIVE_SETTINGS)
    render(book, "html")
    messages = capsys.readouterr().err.strip().splitlines()
    assert [line for line in messages if "node and npm" in line] == [
        "The site has no Python for the browser, and its figures stay as drawn:"
        " node and npm bring it, and they are not on PATH."
    ]
    assert "A figure." in page_of(book)
    assert "live.js" not in page_of(book)
    assert "JavaScript" not in page_of(book)
    assert not (book / "_book" / "runtime").exists()


def test_a_render_leaves_the_runtime_out_where_it_is_told_to(
    write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = write_book(PAGE, MODELS, LIVE_SETTINGS)
    monkeypatch.setattr(runtime, "_packed", lambda *_: pytest.fail("it is packed"))
    render(book, "html", runtime=False)
    assert "live.js" not in page_of(book)


def test_a_page_has_its_scripts_and_the_sentence_for_readers_without_them(
    write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def packed(_book: object, _edition: object, scratch: Path) -> bool:
        (scratch / "packed").mkdir()
        (scratch / "packed" / "site.zip.js").write_text("")
        return True

    monkeypatch.setattr(runtime, "_packed", packed)
    other = {**MODELS, "other.qmd": "# Another\n\nText.\n"}
    book = write_book(PAGE, other, LIVE_SETTINGS)
    render(book, "html")
    assert 'data-live="models"' in page_of(book)
    assert "assets/live.js" in page_of(book)
    assert "without-scripts" in page_of(book)
    assert "live.js" not in (book / "_book" / "other.html").read_text()
    assert (book / "_book" / "runtime" / "site.zip.js").is_file()
    (book / "other.qmd").write_text("# Another\n\nOther text.\n")
    monkeypatch.setattr(runtime, "_packed", lambda *_: pytest.fail("it is packed again"))
    render(book, "html")


def test_it_is_packed_while_cells_run_and_no_refusal_waits_for_it(
    write_book: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packing, cell_has_run = tmp_path / "packing", Event()

    def packed(_book: object, _edition: object, scratch: Path) -> bool:
        packing.touch()
        (scratch / "packed").mkdir()
        return cell_has_run.wait(20)

    monkeypatch.setattr(runtime, "_packed", packed)
    wait = f"import os, time\nwhile not os.path.exists({str(packing)!r}):\n    time.sleep(0.01)\n"
    settings = LIVE_SETTINGS + "execute:\n  timeout: 10\n"
    book = write_book(f"{PAGE}\n```{{python}}\n{wait}1 / 0\n```\n", MODELS, settings)
    assert refusal(book) == [
        "index.qmd:9: this cell fails with ZeroDivisionError: division by zero"
    ]
    assert not cell_has_run.is_set()
    cell_has_run.set()


def test_a_model_that_there_is_not_is_refused(
    write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def packed(_book: object, _edition: object, scratch: Path) -> bool:
        (scratch / "packed").mkdir()
        return True

    monkeypatch.setattr(runtime, "_packed", packed)
    book = write_book(PAGE.replace("double", "triple"), MODELS, LIVE_SETTINGS)
    assert refusal(book) == ["index.qmd:3: `models` has no model triple."]


def test_a_package_that_there_is_not_is_refused(write_book: Write) -> None:
    (line,) = refusal(write_book(PAGE, {}, LIVE_SETTINGS))
    assert line.endswith("`live` names a Python package of the project, not 'models'.")


def test_what_browsers_do_without_is_a_package_too(write_book: Write) -> None:
    settings = LIVE_SETTINGS.replace("live: models", "live: models\nlive-without: models.no")
    (line,) = refusal(write_book(PAGE, MODELS, settings))
    assert line.endswith("`live-without` names a Python package of the project, not 'models.no'.")


def test_a_package_within_another_is_packed_without_its_siblings(
    write_book: Write, tmp_path: Path
) -> None:
    files = {"shown/__init__.py": "", "shown/drawn.py": "", "shown/models/__init__.py": ""}
    settings = LIVE_SETTINGS.replace("live: models", "live: shown.models")
    book = read_book(write_book(PAGE, {**files, "shown/models/double_live.py": ""}, settings))
    site = tmp_path / "site"
    runtime._add_models(book, site)
    packed = {path.relative_to(site).as_posix() for path in site.rglob("*.py")}
    assert packed == {
        "shown/__init__.py",
        "shown/models/__init__.py",
        "shown/models/double_live.py",
    }


def test_a_live_figure_needs_its_model(write_book: Write) -> None:
    (line,) = refusal(write_book(PAGE.replace(' model="double"', ""), MODELS, LIVE_SETTINGS))
    assert "press does not render blocks like" in line


def test_the_lock_names_each_package_by_its_digest_and_no_address() -> None:
    lock = (runtime.OWN / "package-lock.json").read_text()
    assert lock.count('"integrity": "sha512-') == lock.count('"node_modules/')
    assert "://" not in lock


FIGURES = """\
# A page

@fig-cell and @fig-block are drawn.

::: {.live model="double"}

```{python}
#| label: fig-cell
#| fig-cap: "Of a cell."
#| fig-alt: "A line."
from matplotlib.figure import Figure
figure = Figure()
figure.subplots().plot([1, 2])
figure
```

:::

:::: {.live model="double"}

::: {#fig-block}

```{python}
#| echo: false
#| fig-alt: "A line."
figure
```

Of a block.
:::

::::
"""


@pytest.mark.usefixtures("bare_path")
def test_figures_in_a_live_block_have_their_numbers_and_captions(write_book: Write) -> None:
    book = write_book(FIGURES, MODELS, LIVE_SETTINGS)
    render(book, "html")
    page = page_of(book)
    assert page.count('<div class="live" data-model="double">') == 2
    for identifier, label, caption in (
        ("fig-cell", "Figure\N{NO-BREAK SPACE}1.1:", "Of a cell."),
        ("fig-block", "Figure\N{NO-BREAK SPACE}1.2:", "Of a block."),
    ):
        block = page[page.index('<div class="live"') :]
        figure = block[block.index(f'id="{identifier}"') :]
        assert label in figure[: figure.index("</figure>")]
        assert caption in figure[: figure.index("</figure>")]
