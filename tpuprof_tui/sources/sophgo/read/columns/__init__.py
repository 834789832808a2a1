"""Columns of lanes from records and commands."""
