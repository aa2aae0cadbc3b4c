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
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

AXE = Path(__file__).parent / "press" / "vendor" / "axe-core" / "axe.min.js"
THEMES = ("light", "dark")
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
    context.on("requestfailed", lambda request: complaints.append(f"not found: {request.url}"))
    context.on("request", lambda request: requests.append(request.url))
    yield context
    context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def open_file(page: Page, file: Path) -> Page:
    page.goto(file.as_uri())
    return page


def pages_of(site: Path) -> list[str]:
    """All that the contents lead to, so not the page of a lost address."""
    found = sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html"))
    found.remove("404.html")
    assert len(found) >= 3, "the sample book should have several pages"
    return found


def background(page: Page) -> str:
    return page.evaluate("getComputedStyle(document.documentElement).backgroundColor")


def expect_background(page: Page, colour: str) -> None:
    """Hold a page to a colour, which its browser may tell it of after the first paint."""
    expect(page.locator("html")).to_have_css("background-color", colour)


def axe_violations(page: Page, *rules: str) -> list[str]:
    """What breaks axe's serious rules: all that it has by default, or those named."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))  # no page lets a foreign script in
    options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    report = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{found['id']} ({found['impact']}): {node['html'][:160]}"
        for found in report["violations"]
        if found["impact"] in ("serious", "critical")
        for node in found["nodes"]
    ]
