"""Machines, or models, side by side.

`compare` plans every pair as `calc.plan` does and ranks them, and `answer` is what comes of it.
"""
