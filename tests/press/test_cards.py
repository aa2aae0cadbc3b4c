"""A value that says where it comes from: its mark on the page, and its card."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.in_browser import PHONE, THEMES, axe_violations, open_file
from tests.press.tiny_book import unpacked

pytestmark = [pytest.mark.xdist_group("press in a browser"), pytest.mark.slow]  # one render


@pytest.fixture
def page(context: BrowserContext, reader: Path) -> Page:
    return open_file(context.new_page(), reader / "cards.html")


def test_the_page_names_its_values_and_keeps_their_cards_apart(reader: Path) -> None:
    html = (reader / "cards.html").read_text(encoding="utf-8")
    assert '<data class="q" value="2 s" data-key="Wire.time">2 s</data>' in html
    assert '<table data-key="Wire.rows">' in html
    assert "datasheet" not in html
    cards = unpacked(reader / "assets/cards/cards.js")
    assert cards["Wire.time"]["inputs"] == {"size": "Wire.size", "rate": "wire"}


def test_a_value_that_is_pointed_at_shows_its_tree_beside_itself(page: Page) -> None:
    value = page.locator("p .q")
    value.hover()
    card = page.get_by_role("dialog", name="Where 2 s comes from")
    expect(card).to_contain_text("size / rate")
    expect(card).to_contain_text("Maker (2020), checked 2020-01-02. Twice.")
    expect(card).to_contain_text("16 B size chosen for the example")
    at, shown = value.bounding_box(), card.bounding_box()
    assert shown["y"] >= at["y"] + at["height"] or shown["y"] + shown["height"] <= at["y"]
    page.mouse.move(5, 5)
    expect(card).to_be_hidden()


def test_the_keyboard_opens_a_card_enters_it_and_comes_back(page: Page) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('p .q')"):
            break
    card = page.get_by_role("dialog")
    expect(card).to_be_visible()
    page.keyboard.press("Enter")
    assert page.evaluate("Boolean(document.activeElement.closest('#preview'))")
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    assert page.evaluate("document.activeElement.matches('p .q')")


def test_arrows_lead_from_cell_to_cell(page: Page) -> None:
    cells = page.locator("td .q")
    expect(cells).to_have_count(4)
    assert cells.evaluate_all("cells => cells.map(cell => cell.tabIndex)") == [0, -1, -1, -1]
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("dialog", name="Where 2 s comes from")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(cells.nth(3)).to_be_focused()


def test_a_tap_opens_and_closes_a_card_that_fits_a_phone(browser: Browser, reader: Path) -> None:
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    page = open_file(context.new_page(), reader / "cards.html")
    value, card = page.locator("p .q"), page.get_by_role("dialog")
    value.tap()
    expect(card).to_be_visible()
    box = card.bounding_box()
    assert 0 <= box["x"] <= PHONE["width"] - box["width"]
    page.locator("h1").tap()
    expect(card).to_be_hidden()
    context.close()


@pytest.mark.parametrize("theme", THEMES)
def test_an_open_card_is_easy_to_use_and_its_call_is_copied(page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.locator("p .q").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert axe_violations(page) == []
    page.get_by_role("button", name="Copy call").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "print(16 / 8)\n"


def test_without_scripts_a_value_is_text(browser: Browser, reader: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = open_file(context.new_page(), reader / "cards.html")
    value = page.locator("p .q")
    expect(value).to_have_text("2 s")
    expect(value).to_have_css("cursor", "auto")
    context.close()
