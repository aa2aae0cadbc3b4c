"""The book's figures: a module each, `draw()` gives a matplotlib Figure, calc all its numbers."""
