"""Alt texts of figures: writes what `alt()` of each module says into the figure's cell."""

from __future__ import annotations

import importlib
import json
import re

from tools.pages import ROOT

CELL = re.compile(r"^```\{python\}\n((?:#\|.*\n)*)((?:(?!```).*\n)*)", re.MULTILINE)
DRAWN = re.compile(r"^figures\.(\w+)\.draw\(\)$", re.MULTILINE)
OLD = re.compile(r"^#\| fig-alt:.*\n(?:#\|  .*\n)*", re.MULTILINE)


def pages() -> dict[str, str]:
    """The text of each chapter, by its path in the repository."""
    return {
        path.relative_to(ROOT).as_posix(): with_alt_texts(path.read_text(encoding="utf-8"))
        for path in [ROOT / "index.qmd", *sorted((ROOT / "chapters").glob("*.qmd"))]
    }


def with_alt_texts(chapter: str) -> str:
    """The chapter with the alt text of its figure at the end of each cell's options."""
    return CELL.sub(_told, chapter)


def _told(cell: re.Match[str]) -> str:
    options, code = cell.groups()
    drawn = DRAWN.search(code)
    if not drawn:
        return cell[0]
    figure = importlib.import_module(f"figures.{drawn[1]}")
    text = json.dumps(" ".join(figure.alt().split()), ensure_ascii=False)  # JSON is YAML, too
    return f"```{{python}}\n{OLD.sub('', options)}#| fig-alt: {text}\n{code}"


if __name__ == "__main__":
    texts = pages()
    new = [name for name in texts if (ROOT / name).read_text(encoding="utf-8") != texts[name]]
    for name in new:
        (ROOT / name).write_text(texts[name], encoding="utf-8")
        print(f"wrote {name}")
    if not new:
        print("All alt texts are as figures tell them.")
