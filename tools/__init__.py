"""Tools by which the project is made and kept; no part of the library or of the book."""
