"""Chromium for the tests: a reader who opens pages as files, as from a folder that one was handed.

Every page that a test opens is watched: a message on the console, or a request for anything but a
file, fails it. The browser is Chromium from PATH; where there is none the tests are skipped, unless
the environment says BROWSER_REQUIRED=1.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright

AXE = Path(__file__).parent / "press" / "vendor" / "axe-core" / "axe.min.js"
THEMES = ("light", "dark")
OF_COLOUR = ("color-contrast", "link-in-text-block")  # among the rules that axe has by default
PHONE = {"width": 360, "height": 740}

# Headless, and without the start-up look-ups that the browser itself would make.
CHROMIUM_SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = shutil.which("chromium")
    if executable is None:
        missing = "no `chromium` on PATH; install it to try the pages in a browser"
        if os.environ.get("BROWSER_REQUIRED") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_SWITCHES)
        yield chromium
        chromium.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A reader who has never been here; whatever the pages complain about or ask for is told."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    complaints: list[str] = []
    requests: list[str] = []
    context.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("requestfailed", lambda request: complaints.extend(_fault(request)))
    context.on("request", lambda request: requests.append(request.url))
    yield context
    context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def open_file(page: Page, file: Path) -> Page:
    page.goto(file.as_uri())
    return page


def _fault(request: Request) -> list[str]:
    """Return the fault of a failed request: none if the reader went on before it came."""
    return [] if request.failure == "net::ERR_ABORTED" else [f"not found: {request.url}"]


def pages_of(site: Path) -> list[str]:
    """Return all pages that the contents lead to, so not the page of a lost address."""
    pages = sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html"))
    pages.remove("404.html")
    assert len(pages) >= 3, "the sample book should have several pages"
    return pages


def background(page: Page) -> str:
    return page.evaluate("getComputedStyle(document.documentElement).backgroundColor")


def expect_background(page: Page, colour: str) -> None:
    """Hold a page to a colour, which its browser may tell it of after the first paint."""
    expect(page.locator("html")).to_have_css("background-color", colour)


def axe_violations(page: Page, *but: str) -> list[str]:
    """Return what breaks axe's serious rules: all of its defaults, but for those named."""
    return _serious(_report(page, RUN, list(but)))


def colour_violations(page: Page, judged: dict[str, int]) -> list[str]:
    """Return what breaks axe's rules of colour, of looks not yet judged on an earlier page.

    A look is all that these rules go by: an element's colours, size and weight, with the grounds
    behind it, and those of the text around a link. `judged` counts how often axe was asked about a
    look; what it could not decide on one page it is asked about on the next ones, to the tenth.
    """
    report = _report(page, RUN_ON_NEW_LOOKS, judged)
    judged.update(report["judged"])
    return _serious(report)


# Rules that cannot break seriously are left out: of these "region" alone takes a tenth of the time.
RUN = """async but => {
    const left = axe._audit.rules.filter(rule =>
        but.includes(rule.id) || !["serious", "critical"].includes(rule.impact));
    const rules = Object.fromEntries(left.map(rule => [rule.id, {enabled: false}]));
    return await axe.run(document, {resultTypes: ["violations"], preload: false, rules});
}"""

RUN_ON_NEW_LOOKS = """async judged => {
    const enough = 10, grounds = new Map();
    const ground = element => {
        if (!element) return "";
        if (!grounds.has(element)) {
            const {backgroundColor, backgroundImage, opacity, filter, mixBlendMode} =
                getComputedStyle(element);
            const own = [backgroundColor, backgroundImage, opacity, filter, mixBlendMode].join();
            const plain = own === "rgba(0, 0, 0, 0),none,1,none,normal";
            grounds.set(element, ground(element.parentElement) + (plain ? "" : own + ";"));
        }
        return grounds.get(element);
    };
    const type = element => {
        const {color, fontSize, fontWeight, textShadow, textDecoration, borderBottom} =
            getComputedStyle(element);
        return [ground(element), color, fontSize, fontWeight, textShadow, textDecoration,
            borderBottom].join();
    };
    const shown = element => {
        const {width, height} = element.getBoundingClientRect();
        return width > 1 && height > 1 && element.checkVisibility({visibilityProperty: true});
    };
    const has_text = element => element.matches("input, select, textarea") ||
        [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    const beside_text = link => {
        let block = link.parentElement;
        while (getComputedStyle(block).display.startsWith("inline")) block = block.parentElement;
        const same = block.textContent.trim() === link.textContent.trim();
        return same ? "" : type(link.parentElement) + type(block);
    };
    const all = [...document.querySelectorAll("body, body :not(svg, svg *)")];
    const those = that => all.filter(element => that(element) && shown(element));
    const asked = {
        "color-contrast": [those(has_text), type],
        "link-in-text-block": [those(element => element.matches("a[href]")),
            link => type(link) + beside_text(link)],
    };
    const key = (rule, element) => rule + asked[rule][1](element);
    const include = Object.entries(asked).flatMap(([rule, [elements]]) => {
        const looks = new Map();
        for (const element of elements) {
            const look = key(rule, element);
            if (judged[look] >= enough) continue;
            looks.set(look, [...(looks.get(look) ?? []), element]);
        }
        for (const look of looks.keys()) judged[look] = (judged[look] ?? 0) + 1;
        return [...looks.values()].flatMap(alike => alike.slice(0, 3));
    });
    if (!include.length) return {violations: [], judged};
    const {violations, passes} = await axe.run({include}, {
        runOnly: {type: "rule", values: Object.keys(asked)}, elementRef: true, preload: false,
        resultTypes: ["violations", "passes"],
    });
    for (const {id, nodes} of [...violations, ...passes])
        for (const node of nodes) judged[key(id, node.element)] = enough, delete node.element;
    return {violations, judged};
}"""


def _report(page: Page, run: str, argument: object) -> dict[str, Any]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))  # no page lets a foreign script in
    report: dict[str, Any] = page.evaluate(run, argument)
    return report


def _serious(report: dict[str, Any]) -> list[str]:
    return [
        f"{violation['id']} ({violation['impact']}): {node['html'][:160]}"
        for violation in report["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
