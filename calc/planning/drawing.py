"""What drawings of plans share: their ink and colours, and how they are written.

Everything neutral is in one ink, which a written drawing takes from the page that it stands on.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calc.core.errors import InputError, MissingExtraError
from calc.core.files import writable, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#1f2328"
COLORS = (  # on light paper and on dark
    *("#307ec2", "#be621a", "#1c8b6c", "#9c65b9", "#c85943"),
    *("#8a7a20", "#4d7d8c", "#a8577e", "#6b7a45", "#7a6a5c"),
)
STYLE = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor"), "none"),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "calc",  # and what is drawn twice is the same file
}
PAGE = """<style>svg { color: #1f2328; background: #fefdfb }
@media (prefers-color-scheme: dark) { svg { color: #dcdee1; background: #15171a } }</style>
"""


def write_svg(figure: Figure, file: Path | str) -> None:
    """The drawing as an SVG, whose ink and paper are those of a light or a dark screen."""
    text = io.StringIO()
    with loaded_matplotlib().rc_context(STYLE):
        figure.savefig(text, format="svg", metadata={"Date": None})
    drawn = text.getvalue().replace(INK, "currentColor").replace("<defs>", f"{PAGE}<defs>", 1)
    write_text(checked_svg(file), drawn)


def checked_svg(file: Path | str) -> Path:
    """A file that can be written and whose name says what it is."""
    if (path := writable(file)).suffix != ".svg":
        raise InputError(f"a drawing is an SVG and needs a name that ends in .svg; got {file}")
    return path


def loaded_matplotlib() -> Any:
    """The package, or one sentence for all drawings where it is not installed."""
    try:
        import matplotlib.figure
        import matplotlib.ticker
    except ImportError:
        raise MissingExtraError("a drawing", "matplotlib", "planning") from None
    return matplotlib
