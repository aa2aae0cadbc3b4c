"""The rendered sample book in a real browser: what a reader sees, clicks, types and prints.

What the browser is, and what fails every test of it, stands in tests/in_browser.py; the book's own
pages are tried in it by tests/book/test_in_browser.py.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pypdf import PdfReader

from tests.in_browser import (
    PHONE,
    THEMES,
    axe_violations,
    background,
    expect_background,
    open_file,
    pages_of,
)
from tests.page_texts import page_texts
from tests.press.tiny_book import copy_of, rendered
from tests.rows import each_row

pytestmark = [
    pytest.mark.xdist_group("press in a browser"),  # one render, one browser
    pytest.mark.slow,  # the book's own pages are tried in a browser by the tests of every change
]

# Letters in drawings whose contrast with the page is below 4.5, as WCAG counts it; boxes that are
# filled have letters of their own in white.
FAINT_TEXT = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).slice(0, 3)
    .map((each) => each * (colour.startsWith("color(") ? 1 : 1 / 255));
  const light = (colour) => numbers(colour)
    .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, i) => sum + each * [0.2126, 0.7152, 0.0722][i], 0.05);
  const page = light(getComputedStyle(document.documentElement).backgroundColor);
  return [...document.querySelectorAll(".figure-content text")]
    .map((text) => [text.textContent, getComputedStyle(text).fill])
    .filter(([, fill]) => fill !== "rgb(255, 255, 255)")
    .map(([words, fill]) => [words, Math.max(page, light(fill)) / Math.min(page, light(fill))])
    .filter(([, contrast]) => contrast < 4.5);
}"""
# Boxes that hide a part of what they hold.
CLIPPED = """() => [
  ...document.querySelectorAll("article :is(.table-scroll, pre, .figure-content, .math.display)")]
  .filter((box) => box.offsetParent && box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.textContent.slice(0, 60))"""
SILENT = ".figure-content :is(svg:not([aria-label]), svg[aria-label=''], img:not([alt]))"
COPIED = "navigator.clipboard.readText()"

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample book, rendered to HTML from a copy."""
    return rendered(copy_of("everything", tmp_path_factory.mktemp("browser")), "html") / "_book"


@pytest.fixture
def open_page(context: BrowserContext, site: Path) -> Open:
    """Opens a page, or the first page of the sample that has what a test needs."""
    page = context.new_page()

    def open_page(href: str = "index.html", having: str = "") -> Page:
        for each in pages_of(site) if having else [href]:
            open_file(page, site / each)
            if not having or page.locator(having).count():
                return page
        pytest.fail(f"no page of the sample book has {having}")

    return open_page


@pytest.fixture
def without_scripts(browser: Browser, site: Path) -> Page:
    context = browser.new_context(java_script_enabled=False, viewport=PHONE)
    yield open_file(context.new_page(), site / "index.html")
    context.close()


# ---- Every page


def test_every_page_stands_what_readers_do(open_page: Open, site: Path) -> None:
    descriptions, formulas, drawings = set(), 0, 0
    with each_row() as row:
        for href in pages_of(site):
            page = open_page(href)
            descriptions.add(page.locator("meta[name=description]").get_attribute("content"))
            formulas += page.locator("article .math").count()
            drawings += page.locator(".figure-content :is(svg, img)").count()
            with row(f"what {href} has"):
                assert page.locator("link[rel=icon]").count() == 1
                assert page.locator("h1").count() == 1
                assert page.locator("article .math:not(:has(math))").count() == 0
                assert page.locator(SILENT).count() == 0
            for width in (320, 360, 390, 768, 1100, 1280, 1440, 1920):
                with row(f"{href} at a width of {width}"):
                    page.set_viewport_size({"width": width, "height": 900})
                    assert page.evaluate("document.documentElement.scrollWidth") <= width
                    assert width < 1280 or page.evaluate(CLIPPED) == []  # beside an empty margin
            for theme in THEMES:
                with row(f"the {theme} {href}"):
                    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
                    open_page(href)
                    for fold in page.locator("details > summary").all():
                        fold.click()
                    assert axe_violations(page) == []
                    assert page.evaluate(FAINT_TEXT) == []
    assert formulas > 0
    assert drawings > 0
    assert "" not in descriptions
    assert len(descriptions) > 1
    expect(open_page("404.html").locator("h1")).to_have_text("There is no such page")


@pytest.mark.parametrize("width", [390, 1440])
def test_a_page_that_is_opened_for_the_first_time_does_not_shift(
    browser: Browser, site: Path, width: int
) -> None:
    with each_row() as row:
        for href in pages_of(site):
            with browser.new_context(viewport={"width": width, "height": 900}) as context:
                page = context.new_page()
                page.add_init_script(
                    "window.shift = 0; new PerformanceObserver(list => {"
                    " for (const entry of list.getEntries()) window.shift += entry.value;"
                    "}).observe({ type: 'layout-shift', buffered: true });"
                )
                open_file(page, site / href).wait_for_timeout(500)
                with row(href):
                    assert page.evaluate("window.shift") < 0.05


def test_every_reference_lands_where_it_points(open_page: Open, site: Path) -> None:
    links = "article a[href*='#'], .outline a, .sections a"
    of_files = "links => links.map(a => a.href).filter(href => href.startsWith('file:'))"
    targets = {
        target
        for href in pages_of(site)
        for target in open_page(href).eval_on_selector_all(links, of_files)
    }
    assert len(targets) > 10
    page = open_page()
    with each_row() as row:
        for target in sorted(targets):
            page.goto(target)
            with row(target):
                assert page.locator(f'[id="{target.split("#", 1)[1]}"]').count() == 1


# ---- Reading


def test_next_leads_through_every_page_of_the_contents_and_previous_back(
    open_page: Open, site: Path
) -> None:
    page = open_page()
    contents = page.eval_on_selector_all(
        "#contents a[href]:not(.downloads a, .sections a)", "links => links.map(a => a.href)"
    )
    visited = [page.url]
    while page.locator(".turn a[rel=next]").count():
        page.locator(".turn a[rel=next]").click()
        page.wait_for_load_state()
        visited.append(page.url)
    assert visited == contents
    assert {Path(url).name for url in visited} == {Path(href).name for href in pages_of(site)}
    page.locator(".turn a[rel=prev]").click()
    page.wait_for_url(visited[-2])


def test_the_contents_and_the_outline_say_where_the_reader_is(open_page: Open) -> None:
    page = open_page(having=".outline .level-2 + .level-2")
    assert page.locator("#contents a[aria-current=page]").evaluate("a => a.href") == page.url
    last = page.locator(".outline a").last
    last.click()
    expect(last).to_have_attribute("aria-current", "location")
    assert page.evaluate(  # the outline comes before the text that it leads to
        "document.querySelector('.outline').compareDocumentPosition(document.querySelector('main'))"
        " & Node.DOCUMENT_POSITION_FOLLOWING"
    )


def test_a_cross_reference_scrolls_its_target_into_view(open_page: Open) -> None:
    elsewhere = 'article a.crossref:is([href*="html#fig-"], [href*="html#tbl-"])'
    page = open_page(having=elsewhere)
    link = page.locator(elsewhere).first
    id_ = link.evaluate("a => a.hash.slice(1)")
    link.click()
    expect(page.locator(f'[id="{id_}"]')).to_be_in_viewport()


def test_a_fold_opens_by_click_by_key_and_by_a_link_into_it(open_page: Open) -> None:
    page = open_page(having=".callout details")
    fold = page.locator(".callout details").first
    body = fold.locator(".callout-body")
    expect(body).to_be_hidden()
    fold.locator("summary").click()
    expect(body).to_be_visible()
    fold.locator("summary").press("Enter")
    expect(body).to_be_hidden()
    body.evaluate("body => { body.id = 'inside'; location.hash = '#inside'; }")
    expect(body).to_be_visible()


def test_code_is_copied_as_it_was_written_and_stands_in_its_lines(open_page: Open) -> None:
    page = open_page(having="div.sourceCode")
    block = page.locator("div.sourceCode").first
    block.hover()
    block.get_by_role("button", name="Copy").click()
    expect(block.get_by_role("button")).to_have_text("Copied")
    assert page.evaluate(COPIED) == block.locator("code").inner_text().rstrip("\n") != ""
    code = page.locator("div.sourceCode code").filter(has=page.locator("span")).first
    tops = code.locator("span").evaluate_all(
        "words => words.map(word => Math.round(word.getBoundingClientRect().top))"
    )
    lines = code.inner_text().rstrip("\n").count("\n") + 1
    assert len(tops) > lines >= len(set(tops))


def test_a_page_is_copied_as_markdown(browser: Browser, site: Path) -> None:
    """The page comes from a server, since no page of a disk may read another file."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    served = re.compile(r"http://localhost/([^?]*)")
    page.route(served, lambda route: route.fulfill(path=site / served.match(route.request.url)[1]))
    page.goto("http://localhost/chapters/cells.html")
    page.get_by_role("button", name="Copy page").click()
    expect(page.locator(".copy-page")).to_have_text("Copied")
    copied = page.evaluate(COPIED)
    context.close()
    assert copied.strip() == (site / "chapters" / "cells.md").read_text(encoding="utf-8").strip()


# ---- Previews


@pytest.mark.parametrize("by", ["pointer", "keyboard"])
def test_a_footnote_is_previewed_and_escape_closes_it(open_page: Open, by: str) -> None:
    page = open_page(having="a.footnote-ref")
    if by == "pointer":
        page.locator("a.footnote-ref").first.hover()
    else:
        page.keyboard.press("Tab")
        for _ in range(200):
            if page.evaluate("document.activeElement.matches('a.footnote-ref')"):
                break
            before = page.evaluate_handle("document.activeElement")
            page.keyboard.press("ArrowRight")  # within what is one stop, and on from its last
            if page.evaluate("before => before === document.activeElement", before):
                page.keyboard.press("Tab")
        else:
            pytest.fail("no footnote can be reached by keyboard")
    preview = page.get_by_role("tooltip")
    expect(preview).to_be_visible()
    note = page.locator(".footnotes li").first.evaluate(
        "li => { const twin = li.cloneNode(true);"
        " twin.querySelectorAll('.footnote-back').forEach(a => a.remove());"
        " return twin.textContent.trim(); }"
    )
    assert preview.text_content().strip().startswith(note)  # by keyboard, the keys follow
    page.keyboard.press("Escape")
    expect(preview).to_be_hidden()


def test_what_stands_on_another_page_is_previewed_too(open_page: Open) -> None:
    """A citation shows its entry of the bibliography, which is a page of its own."""
    page = open_page(having="a.citation")
    link = page.locator("a.citation").first
    target = link.evaluate("a => a.href")
    link.hover()
    preview = page.get_by_role("tooltip")
    expect(preview).to_be_visible()
    shown = preview.text_content().split()
    page.goto(target)
    assert shown == page.locator(f'[id="{target.split("#")[1]}"]').text_content().split()


# ---- Search


def rare_word(site: Path, home: str) -> tuple[str, str]:
    """A word of the body of some page, no plural, and the one page (not `home`) that has it."""
    texts = page_texts(site)
    words_of = {
        href: set(re.findall(r"\b[a-z]{7,}[a-rt-z]\b", text)) for href, text in texts.items()
    }
    for href in sorted(texts.keys() - {home, "references.html"}):
        others = " ".join(text for other, text in texts.items() if other != href)
        if words := {word for word in words_of[href] if word[:6] not in others}:
            return max(sorted(words), key=len), href
    pytest.fail("every word of the sample book is on two pages")


def test_search_finds_a_word_of_another_page_by_keyboard_alone(open_page: Open, site: Path) -> None:
    word, href = rare_word(site, "index.html")
    page = open_page()
    page.keyboard.press("/")
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.type(word)
    options = page.locator("#search-results").get_by_role("option")
    expect(options.first).to_be_visible()
    assert options.first.evaluate("a => a.href").split("#")[0] == (site / href).as_uri()
    expect(options.first.locator("mark").first).to_have_text(re.compile(word, re.IGNORECASE))
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(re.escape((site / href).as_uri())))


def test_arrows_choose_a_result_escape_gives_the_page_back_and_nothing_found_is_said(
    open_page: Open,
) -> None:
    page = open_page()
    page.get_by_role("button", name="Search").click()
    page.keyboard.type("the")
    options = page.locator("#search-results").get_by_role("option")
    expect(options.nth(1)).to_be_visible()
    expect(options.nth(0)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    chosen = options.nth(1).get_attribute("id")
    expect(page.get_by_role("combobox")).to_have_attribute("aria-activedescendant", chosen)
    page.keyboard.press("Escape")
    expect(page.get_by_role("combobox")).to_be_hidden()
    page.reload()
    page.keyboard.press("/")
    page.keyboard.type("<b>(xqzzyw[")
    expect(page.get_by_role("status")).to_have_text("Nothing found for “<b>(xqzzyw[”.")
    expect(options).to_have_count(0)


# ---- Themes, widths, paper


def test_the_theme_follows_the_system_until_the_reader_chooses_and_then_persists(
    open_page: Open, site: Path
) -> None:
    page = open_page()
    toggle = page.get_by_role("button", name="Dark theme")
    light = background(page)
    page.emulate_media(color_scheme="dark")
    dark = background(page)
    assert dark != light
    expect(toggle).to_have_attribute("aria-pressed", "true")
    page.emulate_media(color_scheme="light")
    assert background(page) == light
    other = open_file(page.context.new_page(), site / "index.html")
    toggle.click()
    assert background(page) == dark
    expect_background(other, dark)
    expect(other.get_by_role("button", name="Dark theme")).to_have_attribute("aria-pressed", "true")
    for href in pages_of(site):
        open_page(href)
        expect_background(page, dark)
    toggle.click()
    expect_background(other, light)
    page.reload()
    expect_background(page, light)


@pytest.mark.parametrize("theme", THEMES)
def test_search_previews_and_drawer_pass_the_rules_of_axe(open_page: Open, theme: str) -> None:
    page = open_page(having="a.footnote-ref")
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.locator("a.footnote-ref").first.hover()
    expect(page.get_by_role("tooltip")).to_be_visible()
    assert axe_violations(page) == []
    page.keyboard.press("/")
    page.keyboard.type("the")
    expect(page.locator("#search-results").get_by_role("option").first).to_be_visible()
    assert axe_violations(page) == []
    page.keyboard.press("Escape")
    page.set_viewport_size(PHONE)
    page.get_by_role("button", name="Contents").click()
    assert axe_violations(page) == []


def test_a_phone_names_the_chapter_and_its_drawer_opens_and_closes_by_keyboard(
    open_page: Open,
) -> None:
    page = open_page(having=".chapter-name")
    contents = page.get_by_role("navigation", name="Contents")
    button = page.get_by_role("button", name="Contents")
    expect(page.locator(".chapter-name")).to_be_hidden()
    page.set_viewport_size(PHONE)
    expect(page.locator(".chapter-name")).to_be_in_viewport()
    expect(contents).to_be_hidden()
    button.press("Enter")
    expect(contents).to_be_visible()
    assert page.evaluate("document.activeElement.closest('#contents') !== null")
    page.keyboard.press("Escape")
    expect(contents).to_be_hidden()
    expect(button).to_be_focused()


def test_a_drawing_on_a_phone_is_not_shrunk_below_the_size_it_was_drawn_at(open_page: Open) -> None:
    page = open_page(having=".figure-content svg")
    page.set_viewport_size(PHONE)
    page.reload()
    for drawing in page.locator(".figure-content svg:visible").all():
        drawn, shown = drawing.evaluate(
            "svg => [svg.width.baseVal.value, svg.getBoundingClientRect().width]"
        )
        assert shown >= 0.9 * drawn


def test_a_figure_that_was_drawn_twice_is_there_once(open_page: Open) -> None:
    page = open_page(having="svg.narrow")
    wide, narrow = page.locator("svg.wide").first, page.locator("svg.narrow").first
    expect(wide).to_be_visible()
    expect(narrow).to_be_hidden()
    page.set_viewport_size(PHONE)
    expect(narrow).to_be_visible()
    expect(wide).to_be_hidden()
    assert narrow.evaluate("svg => svg.parentElement.scrollWidth <= svg.parentElement.clientWidth")
    page.emulate_media(media="print")
    expect(wide).to_be_visible()
    expect(narrow).to_be_hidden()


@pytest.mark.parametrize("theme", THEMES)
def test_paper_is_white_and_shows_the_text_alone(open_page: Open, theme: str) -> None:
    page = open_page(having=".callout details")
    page.emulate_media(media="print", color_scheme=theme)
    assert background(page) == "rgb(255, 255, 255)"
    for part in page.locator("#contents, .outline, .turn").all():
        expect(part).to_be_hidden()
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("details .callout-body").first).to_be_visible()


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_a_sheet_is_printed_on_one_page(open_page: Open, paper: str) -> None:
    printed = open_page("chapters/sheet.html").pdf(format=paper, prefer_css_page_size=False)
    (sheet,) = PdfReader(io.BytesIO(printed)).pages
    words = sheet.extract_text()
    assert all(f"Kind {kind}" in words for kind in "ABCDEFGH")


# ---- Scripts


def test_no_script_runs_but_the_books_own(browser: Browser, site: Path) -> None:
    context = browser.new_context()
    page = open_file(context.new_page(), site / "index.html")
    page.evaluate(
        "const script = document.createElement('script');"
        "script.textContent = 'window.foreign = true'; document.head.append(script);"
    )
    assert not page.evaluate("'foreign' in window")
    assert page.evaluate("getComputedStyle(document.body).fontFamily").startswith("Inter")
    context.close()


def test_the_page_reads_without_scripts(without_scripts: Page, site: Path) -> None:
    page, in_its_typeface = without_scripts, 0
    expect(page.locator("main h1")).to_be_visible()
    expect(page.get_by_role("navigation", name="Contents")).to_be_visible()
    expect(page.get_by_role("button", name="Search")).to_be_hidden()
    for href in pages_of(site):
        for formula in open_file(page, site / href).locator("article math").all():
            family = formula.evaluate("math => getComputedStyle(math).fontFamily")
            in_its_typeface += formula.is_visible() and "STIX Two Math" in family
    assert in_its_typeface
