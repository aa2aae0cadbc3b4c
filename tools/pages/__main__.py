"""`python -m tools.pages` writes each generated page that changed, and alt text into chapters."""

from __future__ import annotations

import sys

try:
    from tools.pages import ROOT, alt_texts, answers, catalog, changes, library, search, stubs
except ModuleNotFoundError as missing:
    sys.exit(f"`python -m tools.pages` needs {missing.name}; `make set-up-test` brings it")


def wanted_pages() -> dict[str, str]:
    """The text of each generated page, by its path in the repository."""
    return {
        **library.pages(),
        **catalog.pages(),
        "reference/answers.qmd": answers.page(),
        "reference/changes.qmd": changes.page(),
        **search.data(),
    }


def main() -> None:
    write(stubs.stubs())  # first, since the library's pages are read from them too
    wanted = wanted_pages() | alt_texts.pages() | catalog.settings()
    for stale in {*(ROOT / "reference").rglob("*.qmd")} - {ROOT / name for name in wanted}:
        stale.unlink()
        print(f"removed {stale.relative_to(ROOT)}")
    write(wanted)


def write(texts: dict[str, str]) -> None:
    """Write what has changed, and say so."""
    for name, text in texts.items():
        path = ROOT / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")


if __name__ == "__main__":
    main()
