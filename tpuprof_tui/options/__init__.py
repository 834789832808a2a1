"""Profiling options of recording tools: explains them, checks them, and generates options for wishes.

Options, rules and wishes are data: ``tables`` has a folder for each source with one table of each. The modules
implement types of values and conditions but no individual options, and are independent of the rest of the package.
"""
