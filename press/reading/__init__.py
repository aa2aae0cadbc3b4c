"""What an author has written: `_quarto.yml` and the chapters, read and refused by file and line."""
