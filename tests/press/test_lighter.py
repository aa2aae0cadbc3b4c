"""Lighter pages and tables that fit: short paths, no empty groups, columns by their cells."""

from __future__ import annotations

import random
import re

from press import drawings
from press.document.pandoc import parse
from press.writing.pdf import _fitted

NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)")
WIDE = (
    "| GPUs | Tokens an expert, on the average of all devices of a large group and of its servers"
    " | Rate of a GPU |\n| --: | --: | --: |\n| 320 | 2310 | 2400 tokens/s |\n"
)


def points(path: str) -> list[tuple[str, int, int]]:
    """Return the points of a path of straight lines, in hundredths, with their commands."""
    places: list[tuple[str, int, int]] = []
    x = y = first_x = first_y = 0
    for command, text in re.findall(r"([MLmlhvz])([^MLmlhvz]*)", path):
        numbers = [round(100 * float(each)) for each in NUMBER.findall(text)]
        if command == "z":
            x, y = first_x, first_y
        while numbers:
            across = numbers.pop(0) if command != "v" else 0
            down = numbers.pop(0) if command != "h" else 0
            x, y = (across, down) if command in "ML" else (x + across, y + down)
            if command in "Mm":
                first_x, first_y = x, y
            places.append(("M" if command in "Mm" else "L", x, y))
            command = {"M": "L", "m": "l"}.get(command, command)
    return places


def test_a_path_by_steps_goes_where_it_went() -> None:
    choose = random.Random(7)

    def spot() -> str:
        across = choose.choice([0, 0.5, -3.25, choose.uniform(-50, 50)])
        return f"{across:.2f} {choose.choice([0, 1, 7.1]):.2f}"

    for _ in range(300):
        path = ""
        for _ in range(choose.randint(1, 3)):
            stroke = " L ".join(spot() for _ in range(choose.randint(1, 5)))
            path += f"M {stroke} " + choose.choice(["", "z "])
        match = re.match(r' d="([^"]*)"', f' d="{path.strip()}"')
        assert match
        short = drawings._by_steps(match)
        assert points(short[4:-1]) == points(path)
        assert len(short) <= len(match[0])


def test_groups_that_say_nothing_go_and_others_stay() -> None:
    drawing = '<g>\n<g clip-path="url(#p0)">\n<path/>\n<g>\n<text/>\n</g>\n</g>\n<g/>\n</g>\n'
    assert drawings._ungrouped(drawing) == '<g clip-path="url(#p0)">\n<path/>\n<text/>\n</g>\n'


def test_columns_of_a_table_that_is_too_wide_are_as_wide_as_what_they_hold() -> None:
    _, [narrow] = parse("| a | b |\n| - | - |\n| 1 | 2 |\n")
    assert _fitted(narrow, 108) == narrow
    _, [table] = parse(WIDE)
    shares = [width["c"] for _, width in _fitted(table, 108)["c"][2]]
    assert abs(sum(shares) - 1) < 1e-9
    assert shares[0] < shares[1] < shares[2]  # the long heading is broken, numbers are not
