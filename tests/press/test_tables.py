"""Tables, formulas and a page's citation as a reader uses them, in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.in_browser import PHONE, axe_violations, colour_violations, open_file

pytestmark = [pytest.mark.xdist_group("press in a browser"), pytest.mark.slow]

ORDER = "rows => rows.map(row => row.cells[0].textContent)"
# Where the point of each number stands, or would: behind its last whole digit.
POINTS = """cells => cells.map(cell => {
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  const text = texts.nextNode();
  const range = new Range();
  const end = text.data.indexOf(".");
  range.setStart(text, 0);
  range.setEnd(text, end < 0 ? text.data.length : end);
  return range.getBoundingClientRect().right;
})"""


@pytest.fixture
def page(context: BrowserContext, reader: Path) -> Page:
    return open_file(context.new_page(), reader / "index.html")


def test_the_first_page_is_a_cover_below_the_title(page: Page) -> None:
    cover = page.locator(".cover")
    expect(cover.get_by_role("heading", level=1)).to_have_text("A tiny book")
    assert page.locator("h1").count() == 1
    assert cover.get_by_role("listitem").all_inner_texts() == ["Start\nhere", "7 doors"]
    door = cover.get_by_role("listitem").first
    size = door.bounding_box()
    door.click(position={"x": size["width"] - 5, "y": size["height"] - 5})  # all of it leads on
    page.wait_for_url(re.compile("#sec-devices$"))
    expect(page.locator("article .chapter-title h2")).to_contain_text("Preface")


def test_points_of_a_column_stand_below_one_another_and_the_text_stays_the_number(
    page: Page,
) -> None:
    prices = page.locator("#tbl-devices td:nth-child(3)")
    points = prices.evaluate_all(POINTS)
    assert max(points) - min(points) < 0.6  # px
    assert prices.all_inner_texts() == ["7", "12.75", "–", "8.5"]
    bandwidths = page.locator("#tbl-devices td:nth-child(2)")
    assert bandwidths.locator("[data-missing]").count() == 0  # of two units


def test_a_press_on_a_head_sorts_down_up_and_back(page: Page) -> None:
    rows = page.locator("#tbl-devices tbody tr")
    head = page.get_by_role("columnheader", name="Bandwidth")
    button = head.get_by_role("button")
    button.focus()
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    assert rows.evaluate_all(ORDER) == ["Large, new", "Middle", "Small", "None"]
    page.keyboard.press("Space")
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert rows.evaluate_all(ORDER) == ["Small", "Middle", "Large, new", "None"]
    button.click()
    assert head.get_attribute("aria-sort") is None
    assert rows.evaluate_all(ORDER) == ["Small", "Large, new", "None", "Middle"]


def test_a_field_leaves_the_rows_with_its_words_and_all_are_saved_as_csv(page: Page) -> None:
    field = page.get_by_role("searchbox", name="Filter the rows of Table 1")
    field.fill("gb/s")
    expect(page.locator("#tbl-devices tbody tr:visible")).to_have_count(2)
    expect(page.get_by_role("status").first).to_have_text("2 of 4 rows")
    field.fill("")
    expect(page.locator("#tbl-devices tbody tr:visible")).to_have_count(4)
    page.locator("#tbl-devices").hover()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Table 1 as CSV").click()
    assert saved.value.suggested_filename == "tbl-devices.csv"
    assert Path(saved.value.path()).read_text(encoding="utf-8") == (
        "Device,Bandwidth,Price\n"
        'Small,320 GB/s,7\n"Large, new",1.2 TB/s,12.75\nNone,–,–\nMiddle,900 GB/s,8.5\n'
    )


def test_rows_that_are_ticked_are_compared_alone(page: Page) -> None:
    rows = page.locator("#tbl-machines tbody tr:visible")
    compare = page.get_by_role("button", name=re.compile("^Compare"))
    assert page.locator("#tbl-devices .pick").count() == 0  # whose rows lead to no page
    expect(compare).to_be_hidden()
    for name in ("Box", "Tray"):
        page.get_by_role("checkbox", name=f"Compare {name}").check()
    expect(compare).to_have_text("Compare 2 alone")
    compare.click()
    expect(rows).to_have_count(2)
    page.get_by_role("searchbox", name="Filter the rows of Table 2").fill("tray")
    expect(rows).to_have_count(1)
    page.get_by_role("searchbox", name="Filter the rows of Table 2").fill("")
    for name in ("Box", "Tray"):
        page.get_by_role("checkbox", name=f"Compare {name}").uncheck()
    expect(rows).to_have_count(3)
    expect(compare).to_be_hidden()


def test_without_scripts_the_table_is_plain(browser: Browser, reader: Path) -> None:
    with browser.new_context(java_script_enabled=False) as plain:
        table = open_file(plain.new_page(), reader / "index.html").locator("#tbl-devices")
        assert table.locator("tbody tr").count() == 4
        assert table.locator(":is(button, input)").count() == 0


def test_displayed_formulas_give_their_tex(page: Page) -> None:
    buttons = page.get_by_role("button", name="TeX")
    copied = []
    for i in range(buttons.count()):
        buttons.nth(i).click()
        copied.append(page.evaluate("navigator.clipboard.readText()"))
    assert copied == [r"T = \frac{n}{BW}", "a^2"]


def test_a_citation_names_the_page_and_the_section_that_is_chosen(page: Page) -> None:
    page.get_by_text("Cite this page").click()
    entry = page.locator(".cite pre")
    assert entry.inner_text().startswith("@book{a-tiny-book,")
    assert "author = {{A. Tester}}" in entry.inner_text()
    assert "url" not in entry.inner_text()  # this site has no address
    page.get_by_label("What to cite").select_option("#sec-devices")
    assert "Devices},\n  author" in entry.inner_text()
    link = page.get_by_role("link", name="Link to it")
    assert str(link.get_attribute("href")).endswith("index.html#sec-devices")
    page.get_by_role("button", name="Copy BibTeX").click()
    assert page.evaluate("navigator.clipboard.readText()") == entry.inner_text()


@pytest.mark.parametrize("width", [PHONE["width"], 1280])
def test_heads_and_first_columns_stay_while_a_table_scrolls(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    long, wide = page.locator("article table").nth(1), page.locator("article table").nth(2)
    long.locator("tr").nth(60).scroll_into_view_if_needed()
    expect(long.locator("th").first).to_be_in_viewport()
    box = page.locator(".table-scroll").nth(2)
    box.scroll_into_view_if_needed()
    box.evaluate("box => box.scrollTo(300, 500)")
    corner = wide.locator("th").first.bounding_box()
    frame = box.bounding_box()
    assert abs(corner["x"] - frame["x"]) < 1
    assert abs(corner["y"] - frame["y"]) < 3


def test_what_tables_offer_can_be_used_by_all(page: Page) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.get_by_text("Cite this page").click()
    page.locator(".sort").first.click()
    assert axe_violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert colour_violations(page, {}) == []
