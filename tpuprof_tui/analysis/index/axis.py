"""The time axis: edges of cells and ticks of the ruler, in integer ns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.formats.units import UNITS, TimeUnit, time_decimals, time_number, time_unit


def edges_of(start: int, end: int, cells: int) -> npt.NDArray[np.int64]:
    """Edges of ``cells`` cells over the window [start, end): int64 ns, cells + 1, ascending."""
    span = end - start
    steps = np.arange(cells + 1, dtype=np.int64)
    whole, rest = divmod(span, max(cells, 1))
    return start + whole * steps + rest * steps // max(cells, 1)


def cell_at(time: int, start: int, end: int, cells: int) -> int:
    """The cell that contains ``time``, with the edges of ``edges_of``; may be outside 0 ... cells - 1."""
    span = max(end - start, 1)
    cell = (time - start) * cells // span
    whole, rest = divmod(end - start, max(cells, 1))
    while cell + 1 <= cells and time >= start + whole * (cell + 1) + rest * (cell + 1) // max(cells, 1):
        cell += 1
    while cell > 0 and time < start + whole * cell + rest * cell // max(cells, 1):
        cell -= 1
    return cell


class StraightAxis(Struct, frozen=True):
    """A linear time axis: cells of equal duration, no gaps left out."""

    edges = base_edges = staticmethod(edges_of)
    cell_at = staticmethod(cell_at)

    def own_cells(self, start: int, end: int, cells: int) -> int:
        """Number of cells that show time rather than a gap: all."""
        return cells


class Ruler(Struct, frozen=True):
    """Ticks of a ruler.

    Attributes:
        unit: Unit of all labels.
        ticks: (cell, label) from left to right.
    """

    unit: TimeUnit
    ticks: tuple[tuple[int, str], ...]


def ruler(
    start: int, end: int, cells: int, cell_of: Callable[[int], int] | None = None, units: Sequence[TimeUnit] = UNITS
) -> Ruler:
    """Ticks at round numbers, as dense as their labels allow, all labelled in one of ``units``.

    ``cell_of`` maps a time to its cell on a non-linear axis; None: the linear axis.
    """
    cell_of = cell_of or (lambda time: cell_at(time, start, end, cells))
    unit = time_unit(max(abs(start), abs(end)), units)
    if cells < 1 or end <= start:
        return Ruler(unit, ())
    step = 1
    while True:
        for factor in (1, 2, 5):
            size = step * factor
            decimals = time_decimals(unit, size)
            width = len(time_number(end, unit, decimals)) + 3
            if size * cells >= (end - start) * width:
                first = -(-start // size) * size
                ticks = ((cell_of(place), time_number(place, unit, decimals)) for place in range(first, end, size))
                return Ruler(unit, tuple(ticks))
        step *= 10
