"""Texts and files as bytes: units, escaping, tables, workbooks, traces. Nothing here knows what a profile is."""
