"""Typing of the sources of pages: what no page may break over two lines."""

from __future__ import annotations

import re

from tests.rows import each_row
from tools.ledger.quotes import chapters

NOT_PROSE = re.compile(
    r"^```.*?^```$|^\$\$.*?^\$\$|^#+ .*?$|`[^`]*`|\$[^$\n]*\$|\]\([^)]*\)", re.MULTILINE | re.DOTALL
)
LONELY = re.compile(
    r"(?<![\w.-])\d[\d\u202f.,]* (?:%|[kMGTP]?i?B|bytes?|bits?|[mµn]?s|min|h|[km]?W|[pn]?J|[MG]?Hz"
    r"|[MGTPE]?FLOPs?|tokens?|USD|[kmn]?m)\b"
)


def test_a_typed_number_stays_on_a_line_with_its_unit() -> None:
    with each_row() as row:
        for chapter in chapters():
            with row(chapter.name):
                prose = NOT_PROSE.sub("…", chapter.read_text(encoding="utf-8"))
                assert LONELY.findall(prose) == [], "put a no-break space between them"
