"""Chips as data: constants, record layouts and names, one data file per chip.

A new chip is a new ``NAME.json`` beside this module and, for detailed captures, one below ``operations``.
"""
