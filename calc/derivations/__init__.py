"""Numbers that the book quotes: a module for each chapter, in it a class for each claim.

    >>> from calc.derivations.roofline_chapter import A100Roofline
    >>> print(A100Roofline.ridge_point)
    153.0 FLOP/byte

A class reads like the lines of a worked example: inputs first, results after them. Chapters compute
nothing: they quote with `show()`, `words()`, `math()`, `within()` and `table()`.
"""

from calc.derivations.quoting import approximately, math, show, table, within, words, worked

__all__ = ["approximately", "math", "show", "table", "within", "words", "worked"]
