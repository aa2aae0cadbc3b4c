"""Time to a live figure: to its first answer, with Python to start, and to a change.

    python -m benchmarks.live_speed

Reads `_book`, as `make book` leaves it, in Chromium, from the disk. Each visit is a reader's first:
nothing is cached. Medians of several visits, and their ratio.
"""

from __future__ import annotations

import statistics

from playwright.sync_api import Page

from benchmarks.in_chromium import BOOK, chromium

FIGURES = {  # the page of each, and an input with a value that changes the answer
    "scaling": ("chapters/scaling.html", "Serial share", "0.1"),
    "roofline": ("chapters/roofline.html", "Rows of the result, M", "512"),
    "cost": ("chapters/cost-and-carbon.html", "Rent of an hour", "2 USD/hour"),
}
VISITS = 5
# Milliseconds from a press of the button, or from a value in a field, until the answers change.
WAIT = """([figure, control, value]) => new Promise((done) => {
  const answers = () => [...figure.querySelectorAll("dd")].map((each) => each.textContent).join();
  const before = answers();
  const start = performance.now();
  if (value === null) control.click();
  else {
    control.value = value;
    control.dispatchEvent(new Event("input", { bubbles: true }));
  }
  const look = () => answers() === before
    ? setTimeout(look, 0) : done(performance.now() - start);
  look();
})"""


def main() -> None:
    with chromium("live_speed", BOOK / "runtime") as browser:
        print("\nThe first answer of a live figure, and a change of an input")
        for model in FIGURES:
            waits = []
            for _ in range(VISITS):
                context = browser.new_context()
                waits.append(visit(context.new_page(), model))
                context.close()
            first, change = (statistics.median(times) for times in zip(*waits, strict=True))
            print(f"  {model:<12}{first:8.0f} ms {change:8.1f} ms {first / change:8.1f}")


def visit(page: Page, model: str) -> tuple[float, float]:
    file, label, value = FIGURES[model]
    page.goto((BOOK / file).as_uri())
    figure = page.locator(f'.live[data-model="{model}"]').first
    whole = figure.element_handle()
    button = figure.get_by_role("button", name="Change the inputs").element_handle()
    first = float(page.evaluate(WAIT, [whole, button, None]))
    page.wait_for_timeout(500)
    field = figure.get_by_label(label).first.element_handle()
    return first, float(page.evaluate(WAIT, [whole, field, value]))


if __name__ == "__main__":
    main()
