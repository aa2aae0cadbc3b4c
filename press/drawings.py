"""Figures of matplotlib as SVG, for a wide and a narrow page, without what no eye can see."""

from __future__ import annotations

import re
from typing import Any

from IPython.core.pylabtools import print_figure

NARROW_PAGE = [3.5, 2.6]  # inches, as matplotlib's `figure.figsize`; what is tight adds a margin
PRINTING = {"bbox_inches": "tight", "metadata": {"Date": None}}


def drawings(figure: Any) -> tuple[str | None, dict[str, str | None]]:
    """A figure as SVG, and as it is drawn for a narrow page, where it says how: by `narrow()`."""
    from matplotlib import rc_context  # there, since a figure is

    wide = _drawn(figure)
    if not (again := vars(figure).get("narrow")):
        return wide, {}
    with rc_context({"figure.figsize": NARROW_PAGE}):
        return wide, {"narrow": _drawn(again())}


def _drawn(figure: object) -> str | None:
    svg = print_figure(figure, "svg", **PRINTING)
    return svg and lighter(str(svg))  # None where there is nothing in it


def lighter(svg: str) -> str:
    """A drawing without the half that no eye can see: names, blanks, millionths."""
    # Numbered as they occur: matplotlib's own names are of another order in every process.
    used = dict.fromkeys(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    short = {name: f"p{number}" for number, name in enumerate(used)}
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="{short[m[1]]}"' if m[1] in short else "", svg)
    svg = re.sub(r'(href="#|url\(#)([^")]+)', lambda m: m[1] + short[m[2]], svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(r'(?<= )(?:d|x|y|x1|x2|y1|y2|points)="[^"]*"', _shortened, svg)
    svg = re.sub(r"\n +<", "\n<", svg)
    svg = _ungrouped(svg)
    svg = re.sub(r'<path d=[^>]*style="fill: none(?:; opacity: 0)?"/>\n', "", svg)
    svg = re.sub(r'(?:^<path d="[^"]*"(.*)\n)(?:^<path d="[^"]*"\1\n)+', _joined, svg, flags=re.M)
    # A curve whose control point is its end is a straight line, which matplotlib writes for dots.
    svg = re.sub(r"Q (\S+ \S+) \1(?= |\")", r"L \1", svg)
    svg = re.sub(r' d="([^CQ"]*)"', _by_steps, svg)
    return re.sub(r' clip-path="([^"]*)" style="([^"]*)"', r' style="\2; clip-path: \1"', svg)


def _ungrouped(svg: str) -> str:
    """A drawing without the groups that say nothing."""
    kept: list[bool] = []

    def tag(match: re.Match[str]) -> str:
        if match[0].startswith("</"):
            return match[0] if kept.pop() else ""
        if match[0].rstrip().endswith("/>"):
            return ""
        kept.append(not match[0].startswith("<g>"))
        return match[0] if kept[-1] else ""

    return re.sub(r"</?g\b[^>]*>\n?", tag, svg)


def _joined(strokes: re.Match[str]) -> str:
    """Strokes that follow one another and look alike, as one; not where they shine through."""
    if "fill: none" not in strokes[1] or "opacity" in strokes[1]:
        return strokes[0]
    whole = " ".join(re.findall(r' d="([^"]*)"', strokes[0]))
    return f'<path d="{whole}"{strokes[1]}\n'


def _shortened(attribute: re.Match[str]) -> str:
    text = re.sub(
        r"\d+\.\d{3,}", lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), attribute[0]
    )
    return re.sub(r"\s+", " ", text).replace(' "', '"')


def _by_steps(path: re.Match[str]) -> str:
    """Straight lines, each from where the last one ended: half the digits.

    Counted in hundredths, so that no rounding adds up. Lines along an axis have one number.
    """
    x = y = 0
    text = ""
    for stroke in path[1].split("M")[1:]:
        numbers = [round(100 * float(number)) for number in re.findall(r"[\d.-]+", stroke)]
        last = ""
        for point in zip(numbers[::2], numbers[1::2], strict=True):
            across, down = f"{(point[0] - x) / 100:g}", f"{(point[1] - y) / 100:g}"
            x, y = point
            if not last:
                command, step = "m", f"{across} {down}"
            elif "0" in (across, down):
                command, step = ("h", across) if down == "0" else ("v", down)
            else:
                command, step = "l", f"{across} {down}"
            text += (" " if command == last or (last, command) == ("m", "l") else command) + step
            last = command
        if "z" in stroke:
            text += "z"
            x, y = numbers[:2]
    text = re.sub(r"(?<![0-9])0[.]", ".", text).replace(" -", "-")
    text = re.sub(r"([.][0-9]+) (?=[.])", r"\1", text)
    return f' d="{text}"'
