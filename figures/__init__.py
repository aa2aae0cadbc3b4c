"""The book's figures: a module each, `draw()` gives a matplotlib Figure, calc all its numbers.

`alt()` tells in a few sentences what the figure shows, from the same numbers, to who cannot see it;
it takes what `draw()` takes. `python -m tools.pages.alt_texts` writes it into the chapter.
"""
