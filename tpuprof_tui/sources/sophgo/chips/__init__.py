"""Chips as data: constants, record layouts and names, one data file per chip.

A new chip is a new ``NAME.json`` beside this module and, for detailed captures, one below ``operations``.
"""

from __future__ import annotations

from .chip import (
    Chip,
    DependencyRule,
    MemoryRule,
    MessageRule,
    SyncRecord,
    SystemRule,
    chip_by_arch,
    chip_by_name,
    chip_names,
    family_of,
    unsupported_arch,
)
from .layout import ChipDataError, Field, RecordLayout
from .names import NameTable, packed_keys, variant_direction

__all__ = [
    "Chip",
    "ChipDataError",
    "DependencyRule",
    "Field",
    "MemoryRule",
    "MessageRule",
    "NameTable",
    "RecordLayout",
    "SyncRecord",
    "SystemRule",
    "chip_by_arch",
    "chip_by_name",
    "chip_names",
    "family_of",
    "name_table",
    "packed_keys",
    "unsupported_arch",
    "variant_direction",
]


def name_table(chip: Chip, engine: str, *, rvt: bool = False) -> NameTable:
    """Condensed names of an engine (or family) of ``chip``; see `Chip.names`."""
    return chip.names(engine, rvt=rvt)
