"""Machines, or models, side by side.

`compare` plans every pair as `calc.plan` does and ranks them, `report` is the tables that people
read, and `drawing` the front of all.
"""
