"""Programs that measure the rows of chapters: each `record_*.py` writes a table of
`calc/data/measured`, with its machine and its command."""
