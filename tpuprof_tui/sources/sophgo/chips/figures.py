"""Formulas for figures of a transfer from its record's counters, written as text.

``a+b`` adds counters, ``a+b|c`` takes the larger of two sums, and a final ``/16`` divides the result, rounding down.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct, convert
from numpy.typing import NDArray

from .layout import ChipDataError, RecordLayout

Counts = NDArray[np.int64]


class Formula(Struct, frozen=True):
    """The larger of some sums of counters, divided by ``divisor`` and rounded down."""

    sums: tuple[tuple[str, ...], ...]
    divisor: int

    def of(self, counter: Callable[[str], Counts]) -> Counts:
        """Values for records whose counters ``counter`` returns by name."""
        totals = (sum(map(counter, others), counter(first)) for first, *others in self.sums)
        result: Counts = functools.reduce(np.maximum, totals)
        return result if self.divisor == 1 else result // self.divisor


class TransferFigures(Struct, frozen=True):
    """Formulas for the figures of transfers.

    Attributes:
        condensed: Formula by column, for records of commands without known registers.
        detailed: Formula by column, for those with known registers; other columns use ``condensed``.
        rates: Column of bytes by the column of the bandwidth computed from it.
        ddr_only: Columns that are 0 where the direction does not involve DDR.
        by_direction: Whether bandwidths of condensed commands are split by direction; else all count as DDR's.
    """

    condensed: Mapping[str, Formula] = {}
    detailed: Mapping[str, Formula] = {}
    rates: Mapping[str, str] = {}
    ddr_only: frozenset[str] = frozenset()
    by_direction: bool = False


def formula(text: str) -> Formula:
    """Parse a formula.

    Raises:
        ChipDataError: It names no counter, or the divisor is not a positive number.
    """
    sums, _, divisor = text.partition("/")
    parsed = tuple(tuple(name.strip() for name in part.split("+")) for part in sums.split("|"))
    if not all(name for names in parsed for name in names) or (divisor and not (divisor.isdigit() and int(divisor))):
        raise ChipDataError(f"{text!r} is not a formula")
    return Formula(parsed, int(divisor or 1))


def transfer_figures(data: Mapping[str, Any], layout: RecordLayout) -> TransferFigures:
    """Validated figures from a data file's entry.

    Raises:
        ChipDataError: A formula is invalid, or names a counter that the record lacks.
    """
    parts = {
        key: {name: formula(text) for name, text in data.get(key, {}).items()} for key in ("condensed", "detailed")
    }
    used = {name for part in parts.values() for item in part.values() for names in item.sums for name in names}
    if not used <= layout.by_name.keys():
        raise ChipDataError(f"{sorted(used - layout.by_name.keys())} are no counters of {layout.name}")
    return convert({**data, **parts}, TransferFigures)
