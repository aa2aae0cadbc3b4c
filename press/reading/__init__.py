"""Reader of an author's files: `_quarto.yml` and chapters, refused by file and line."""
