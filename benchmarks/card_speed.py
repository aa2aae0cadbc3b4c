"""Time to the card of a value: the first on a page, and a further one.

    python -m benchmarks.card_speed

Reads `_book`, as `make book` leaves it, in Chromium. The first card of a page fetches and unpacks
those of all its values. Medians of several visits, and their ratio.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from playwright.sync_api import Page

from benchmarks.in_chromium import BOOK, chromium

PAGES = ["chapters/roofline.html", "chapters/hardware.html", "chapters/serving.html"]
VISITS = 7
# Milliseconds until the card of a value, by its place on the page, can be seen.
WAIT = """async (place) => {
  const value = document.querySelectorAll("main p .q[data-key]")[place];
  const start = performance.now();
  value.click();
  while (value.ariaExpanded !== "true") await new Promise((done) => setTimeout(done, 0));
  return performance.now() - start;
}"""


def main() -> None:
    with chromium("card_speed") as browser:
        print("\nThe first card of a page, and a further one")
        for name in PAGES:
            waits = [visit(browser.new_page(), BOOK / name) for _ in range(VISITS)]
            first, further = (statistics.median(times) for times in zip(*waits, strict=True))
            print(f"  {name:<26}{first:8.1f} ms {further:8.1f} ms {first / further:8.2f}")


def visit(page: Page, file: Path) -> tuple[float, float]:
    page.goto(file.as_uri())
    waits = float(page.evaluate(WAIT, 0)), float(page.evaluate(WAIT, 1))
    page.close()
    return waits


if __name__ == "__main__":
    main()
