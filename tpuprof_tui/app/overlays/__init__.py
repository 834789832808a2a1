"""Screens that open over the explorer: help, export menu, lists of groups and columns, questions."""
