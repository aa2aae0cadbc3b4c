"""The ledger of the book: its numbers beside their witnesses, its captions beside their cells.

`press audit` asks for all faults; tests plant some.
"""
