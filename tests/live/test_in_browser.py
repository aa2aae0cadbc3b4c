"""Live figures in a real browser: opened from a disk, changed, refused, linked, and compared."""

from __future__ import annotations

import functools
import http.server
import json
import math
import random
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from figures import live
from figures.live.model import Choice, Count
from tests.draws import draws
from tests.in_browser import (
    PHONE,
    axe_violations,
    browser as browser,
    context as context,
    open_file,
)

pytestmark = [
    pytest.mark.xdist_group("live figures"),  # one runtime, one browser
    pytest.mark.slow,  # npm, and seconds of starting Python
]

REPOSITORY = Path(__file__).parents[2]
PROJECT = ("pyproject.toml", "references.bib", "LICENSE", "README.md", "tools/stubs.py")
STARTS = 120_000  # ms, on a machine that does much else
SETTINGS = """\
project:
  type: book
book:
  title: Live figures
  author: A. Tester
  chapters:
    - index.qmd
live: figures.live
format:
  html: default
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book of live figures alone, with the library and the models of the repository."""
    book = tmp_path_factory.mktemp("live") / "book"
    hidden = shutil.ignore_patterns("__pycache__")
    for folder in ("calc", "figures/live"):
        shutil.copytree(REPOSITORY / folder, book / folder, ignore=hidden)
    (book / "tools").mkdir()
    for file in (*PROJECT, "figures/__init__.py"):
        shutil.copyfile(REPOSITORY / file, book / file)
    (book / "_quarto.yml").write_text(SETTINGS, encoding="utf-8")
    figures = "".join(
        f'## {name}\n\n::: {{.live model="{name}"}}\n\nA figure.\n\n:::\n\n' for name in live.MODELS
    )
    example = "::: {.workbench}\n\n```python\nplot([1, 2], [3, 4])\n```\n\n:::\n"
    (book / "index.qmd").write_text(f"# Live figures\n\n{figures}{example}", encoding="utf-8")
    command = [sys.executable, "-m", "press", "render", "--to", "html", str(book)]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (book / "_book" / "runtime").is_dir(), run.stderr
    return book / "_book"


def opened(page: Page, name: str) -> Locator:
    """A figure, after its button was pressed and it has answered."""
    figure = page.locator(f'.live[data-model="{name}"]')
    figure.get_by_role("button", name="Change the inputs").click()
    expect(figure.locator(".live-drawing svg[role=img]")).to_be_visible(timeout=STARTS)
    return figure


def test_a_figure_is_changed_refused_linked_and_put_back(
    context: BrowserContext, site: Path
) -> None:
    page = open_file(context.new_page(), site / "index.html")
    assert not page.evaluate("'loadPyodide' in window")  # before anybody asks for it
    figure = opened(page, "scaling")
    speedup = figure.locator("dd").first
    expect(speedup).to_have_text("15.42")  # 1 / (0.05 + 0.95 / 64)
    figure.get_by_label("Serial share").fill("0.1")
    expect(speedup).to_have_text("8.767")  # 1 / (0.1 + 0.9 / 64)
    assert page.url.endswith("#live=scaling&serial=0.1")
    curve = figure.locator("path").first.get_attribute("d")
    figure.get_by_label("Serial share").fill("2 GB")
    expect(figure.locator(".live-field .live-error").first).to_have_text(
        "Serial share must be a number; got '2 GB'"
    )
    assert figure.locator("path").first.get_attribute("d") == curve  # the last good one stays
    expect(speedup).to_have_text("8.767")
    figure.get_by_role("button", name="Defaults").click()
    expect(speedup).to_have_text("15.42")
    figure.get_by_role("button", name="Copy as Python").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == json.loads(live.answer("scaling", "{}"))["python"]
    with page.expect_download() as download:
        figure.get_by_role("button", name="Rows as CSV").click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0] == ",Processors,Speedup"
    assert lines[1] == "Amdahl,1,1"
    assert axe_violations(page) == []
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_a_figure_is_used_by_touch_on_a_phone(browser: Browser, site: Path) -> None:
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    page = open_file(context.new_page(), site / "index.html")
    figure = page.locator('.live[data-model="scaling"]')
    figure.get_by_role("button", name="Change the inputs").tap()
    answer = figure.locator("dd").first
    expect(answer).to_have_text("15.42", timeout=STARTS)
    field = figure.get_by_label("Serial share")
    field.tap()
    field.fill("0.1")
    expect(answer).to_have_text("8.767")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    context.close()


def test_an_address_opens_a_figure_and_a_malformed_one_its_defaults(
    context: BrowserContext, site: Path
) -> None:
    page = context.new_page()
    address = (site / "index.html").as_uri()
    page.goto(f"{address}#live=scaling&serial=0.1")
    figure = page.locator('.live[data-model="scaling"]')
    expect(figure.locator("dd").first).to_have_text("8.767", timeout=STARTS)
    page.goto(f"{address}#live=scaling&serial=much")
    expect(figure.locator(".live-message")).to_contain_text("shows its defaults")
    expect(figure.locator("dd").first).to_have_text("15.42")
    page.goto(f"{address}#live=scaling&colour=red")
    expect(figure.locator(".live-message")).to_contain_text("colour is no input of it")


def test_a_figure_needs_no_mouse(context: BrowserContext, site: Path) -> None:
    page = open_file(context.new_page(), site / "index.html")
    page.locator('.live[data-model="link"] .live-button').focus()
    page.keyboard.press("Enter")
    figure = page.locator('.live[data-model="link"]')
    expect(figure.locator(".live-drawing svg[role=img]")).to_be_visible(timeout=STARTS)
    figure.get_by_label("Latency", exact=True).focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("0 s")
    expect(figure.locator("dd").nth(1)).to_have_text("50 GB/s")


def test_without_webassembly_or_scripts_a_sentence_stands_there(
    context: BrowserContext, site: Path
) -> None:
    page = context.new_page()
    page.add_init_script("delete window.WebAssembly")
    open_file(page, site / "index.html")
    note = page.locator(".live .live-note:not(.without-scripts)").first
    expect(note).to_contain_text("WebAssembly")
    assert page.get_by_role("button", name="Change the inputs").count() == 0
    assert context.browser is not None
    bare = context.browser.new_context(java_script_enabled=False)
    page = bare.new_page()
    page.goto((site / "index.html").as_uri())
    expect(page.locator(".live").first).to_contain_text("where JavaScript runs")
    bare.close()


def some_inputs(name: str, chance: random.Random) -> dict[str, str]:
    """A few inputs of a model, changed within their ranges."""
    state = {}
    for each in live.get(name).inputs:
        if chance.random() < 0.5:
            continue
        if isinstance(each, Choice):
            state[each.name] = chance.choice(each.words)
        elif isinstance(each, Count):
            state[each.name] = str(chance.randint(each.least, min(each.most, 64 * each.least)))
        else:
            low, high = math.log10(max(each.least, 1e-6)), math.log10(each.most)
            state[each.name] = f"{10 ** chance.uniform(low, high):.6g} {each.unit}".strip()
    return state


def alike(one: str | float, other: str | float) -> bool:
    return one == other or (
        not isinstance(one, str)
        and not isinstance(other, str)
        and math.isclose(one, other, rel_tol=1e-12)
    )


def test_a_browser_answers_as_cpython_does_to_the_last_digit(
    context: BrowserContext, site: Path
) -> None:
    page = open_file(context.new_page(), site / "index.html")
    page.set_default_timeout(STARTS)
    chance = random.Random(2026)
    asked = [
        (name, json.dumps(some_inputs(name, chance) if turn else {}))
        for name in live.MODELS
        for turn in range(1 + draws(5))  # what stands there first, and inputs that are drawn
    ]
    texts: list[str] = page.evaluate(
        """async (asked) => {
            const python = await live.python(() => {});
            const answer = ([name, given]) => live.call(python, "answer", name, given);
            return asked.map((each) => JSON.stringify(answer(each)));
        }""",
        asked,
    )
    answered = 0
    for (name, inputs), text in zip(asked, texts, strict=True):
        theirs, ours = json.loads(text), json.loads(live.answer(name, inputs))
        for answer in (theirs, ours):
            outlines = answer.pop("bands", [])
            answer["bands"] = [(name, *point) for name, outline in outlines for point in outline]
        # A power may end one bit away in another libm.
        for drawn in ("rows", "dots", "levels", "bands", "measured"):
            there, here = theirs.pop(drawn, []), ours.pop(drawn, [])
            assert len(there) == len(here), (name, inputs)
            for one, other in zip(there, here, strict=True):
                assert all(map(alike, one, other)), (name, inputs, one, other)
        assert theirs == ours, (name, inputs)  # what is printed, to the last digit
        answered += "facts" in theirs
    assert answered > len(asked) / 3


def test_the_prompt_runs_draws_completes_and_remembers(context: BrowserContext, site: Path) -> None:
    page = open_file(context.new_page(), site / "index.html")
    page.get_by_role("button", name="Run this").click()
    log = page.get_by_role("log")
    expect(log.locator("svg[role=img]")).to_be_visible(timeout=STARTS)
    prompt = page.get_by_label("Python", exact=True)
    prompt.focus()
    page.keyboard.type("calc.scali")
    page.keyboard.press("Tab")
    expect(prompt).to_have_value("calc.scaling")
    page.keyboard.type(".amdahl(0.05, 8)")
    page.keyboard.press("Enter")
    expect(log.locator("pre").last).to_have_text("5.926")
    page.keyboard.type("calc.models.get('lama')")
    page.keyboard.press("Enter")
    expect(log.locator("pre").last).to_contain_text("did you mean")
    for typed, answer in (
        ("import urllib.request", "a network is left out of the page"),
        ("import os; os._exit(1)", "Nothing ends here"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("plot([], [])", "one at least"),
        ("plot([1], [float('nan')])", ""),
        ("help(calc.plan)", "Return whether a model fits"),
    ):
        page.keyboard.type(typed)
        page.keyboard.press("Enter")
        expect(log.locator("pre").last).to_contain_text(answer)
        expect(log.locator(".prompt-given").last).to_have_text(typed)
    page.keyboard.type("calc.models.get('lama')")
    page.keyboard.press("Enter")
    for _ in range(9):  # over what was typed since
        page.keyboard.press("ArrowUp")
    expect(prompt).to_have_value("calc.scaling.amdahl(0.05, 8)")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")  # nobody is caught in the field
    expect(prompt).not_to_be_focused()


def test_a_site_on_a_server_answers_too(context: BrowserContext, site: Path) -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert context.browser is not None
        visitor = context.browser.new_context()
        page = visitor.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
        expect(opened(page, "link").locator("dd").first).to_have_text(re.compile("21 µs"))
        visitor.close()
        server.shutdown()
