"""What the book says, held to what it quotes: numbers to their witnesses, captions to their cells.

`press audit` asks for all faults; tests plant some.
"""
