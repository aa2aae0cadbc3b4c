"""The book in a real browser: what every one of its pages must stand, and a reader's ways in it."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ViewportSize, expect
from pypdf import PdfReader

from tests.draws import by_night
from tests.in_browser import (
    OF_COLOUR,
    axe_violations,
    background,
    colour_violations,
    expect_background,
    open_file,
    pages_of,
)

STOPS = 60  # of Tab, on a chapter
STOPS_OF_TAB = """body => [...body.querySelectorAll(
    "a[href], button, input, select, textarea, summary, [tabindex]")].filter(
    part => part.tabIndex >= 0 && part.checkVisibility({visibilityProperty: true})).length"""

# One page of one device, machine, model or module is as another: a change opens every
# thirtieth, so one at least of each kind.
OF_ONE_THING = re.compile(r"reference/(devices|machines|models|calc)/(?!index\.)")

ARTICLE = re.compile(r"<article>(.*)</article>", re.DOTALL)
FILL = "(article, text) => { article.innerHTML = text; }"

# What a page needs with all its folds open, and the figures that do not fit.
WIDTHS = """() => {
    document.querySelectorAll("details").forEach(fold => fold.open = true);
    const figures = [...document.querySelectorAll(".figure-content")];
    const wide = figures.filter(box => box.scrollWidth > box.clientWidth + 1);
    return [document.documentElement.scrollWidth, ...wide.map(box => box.closest("figure").id)];
}"""
PHONE: ViewportSize = {"width": 390, "height": 800}


@pytest.mark.slow
def test_every_page_is_easy_to_use_in_both_themes(context: BrowserContext, book: Path) -> None:
    """Each is opened once; of the rules of axe the dark theme can break those of colour alone."""
    page = context.new_page()
    problems = {}
    judged: dict[str, dict[str, int]] = {"light": {}, "dark": {}}
    for number, href in enumerate(pages_of(book)):
        if OF_ONE_THING.match(href) and number % 10 and not by_night():
            continue
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        open_file(page, book / href)
        violations = page.locator(
            ".math:not(:has(math))"
        ).all_text_contents()  # what pandoc cannot set
        if href.startswith("chapters/"):
            stops = page.locator("body").evaluate(STOPS_OF_TAB)
            violations += [f"{stops} stops of Tab"] * (stops > STOPS)
        page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
        violations += axe_violations(page, *OF_COLOUR)
        violations += colour_violations(page, judged["light"])
        light = background(page)
        page.emulate_media(color_scheme="dark")
        expect(page.locator("html")).not_to_have_css("background-color", light)
        violations += [f"dark: {fault}" for fault in colour_violations(page, judged["dark"])]
        if violations:
            problems[href] = violations
    assert problems == {}


@pytest.mark.slow
def test_no_page_is_wider_than_a_phone(browser: Browser, book: Path) -> None:
    """Opened on the phone, as its reader does: in a window made narrow a table that did fit is cut
    only in the next frame, and who measures meanwhile finds the page wider than anyone sees it.
    What one device differs in from another is put into one page, which takes a fifth of the time.
    """
    problems = {}
    with browser.new_context(viewport=PHONE) as context:
        page = open_file(context.new_page(), book / "index.html")
        for href in sorted(pages_of(book), key=lambda href: not OF_ONE_THING.match(href)):
            if OF_ONE_THING.match(href):
                (article,) = ARTICLE.findall((book / href).read_text(encoding="utf-8"))
                page.locator("article").evaluate(FILL, article)
            else:
                open_file(page, book / href)
            needed, *sideways = page.evaluate(WIDTHS)
            faults = [f"needs {needed} of a phone's width"] * (needed > PHONE["width"])
            if faults := faults + [f"{label} scrolls sideways" for label in sideways]:
                problems[href] = faults
    assert problems == {}


def test_search_finds_a_term_on_another_page(context: BrowserContext, book: Path) -> None:
    page = open_file(context.new_page(), book / "index.html")
    page.keyboard.press("/")
    page.keyboard.type("ridge point")
    page.locator("[role=option][href*='roofline.html']").first.click()
    page.wait_for_url(re.compile(r"roofline\.html"))
    expect(page.locator("article")).to_contain_text("ridge point")


def test_the_dark_theme_stays_from_page_to_page(context: BrowserContext, book: Path) -> None:
    page = open_file(context.new_page(), book / "index.html")
    light = background(page)
    page.get_by_role("button", name="Dark theme").click()
    dark = background(page)
    assert dark != light
    page.locator(".turn a[rel=next]").click()
    page.wait_for_url(re.compile(r"sheet\.html"))
    expect_background(page, dark)


def test_cross_references_land_and_answers_unfold(context: BrowserContext, book: Path) -> None:
    page = open_file(context.new_page(), book / "chapters" / "roofline.html")
    reference = page.locator("main a.crossref[href*='.html#']").first
    target = str(reference.get_attribute("href")).split("#")[1]
    reference.click()
    page.wait_for_url(re.compile(f"#{target}$"))
    expect(page.locator(f"#{target}")).to_be_in_viewport()
    open_file(page, book / "chapters" / "roofline.html")
    fold = page.locator("details").first
    expect(fold.locator(".callout-body")).to_be_hidden()
    fold.locator("summary").click()
    expect(fold.locator(".callout-body")).to_be_visible()


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_the_page_of_numbers_prints_on_one_page(
    context: BrowserContext, book: Path, paper: str
) -> None:
    page = open_file(context.new_page(), book / "chapters" / "sheet.html")
    assert len(PdfReader(io.BytesIO(page.pdf(format=paper))).pages) == 1
