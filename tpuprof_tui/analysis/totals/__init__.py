"""Figures and tables of a window."""
