"""Chips as data: constants, record layouts and names, one data file per chip.

To add a chip, add a ``NAME.json`` to this directory and, for detailed captures, one to ``operations``.
"""
