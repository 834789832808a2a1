"""Builds the columns of lanes from records and commands."""
