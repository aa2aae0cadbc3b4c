"""What measures the rows that chapters draw from: each `record_*.py` writes a table of
`calc/data/measured`, with its machine and its command."""
