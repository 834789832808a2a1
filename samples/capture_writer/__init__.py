"""Writes synthetic captures whose every record is known.

The encodings are built here from the format documents alone; nothing of the
reader is imported, so that a capture's truth never comes from a parser.
"""

from __future__ import annotations
