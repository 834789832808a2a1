"""Times as text, in units or in cycles of the capture's clock from time zero, and the ticks of a time axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.formats.parsing import TimeBase
from tpuprof_tui.formats.units import (
    UNITS,
    TimeUnit,
    exact_time,
    plural,
    time_decimals,
    time_number,
    time_text,
    time_unit,
)
from tpuprof_tui.model import Device, Profile

from .state import DisplayState, TimeScale


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
    """Ticks of a ruler."""

    unit: TimeUnit  #: Unit of all labels
    ticks: tuple[tuple[int, str], ...]  #: (cell, label) from left to right


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


#: Units of cycles, analogous to units of time; the size is in cycles.
CYCLE_UNITS: Final = (
    TimeUnit("cycles", 1), TimeUnit("kcycles", 1_000), TimeUnit("Mcycles", 1_000_000), TimeUnit("Gcycles", 10**9),
)  # fmt: skip


class Measure(Struct, frozen=True):
    """Formatter of times: in cycles of a clock of ``mhz``, or in units of time if 0."""

    mhz: Fraction = Fraction(0)

    def exact(self, ns: int, resolution_ns: int = 1) -> str:
        """A time as text with the digits that ``resolution_ns`` requires; cycles are whole."""
        return plural(self.cycles(ns), "cycle") if self.mhz else exact_time(ns, resolution_ns)

    def length(self, ns: int) -> str:
        """A duration as text, with about four digits; cycles are whole."""
        return plural(self.cycles(ns), "cycle") if self.mhz else time_text(ns)

    def cycles(self, ns: int) -> int:
        """Converts ns to cycles, rounded."""
        return round(ns * self.mhz / 1000)

    def ns(self, cycles: Fraction) -> int:
        """Converts cycles to ns, rounded."""
        return round(cycles * 1000 / self.mhz)

    def ruler(self, start: int, end: int, cells: int, cell_of: Callable[[int], int] | None = None) -> Ruler:
        """Ticks of a window at round times or cycles; ``cell_of`` maps a time to its cell on a non-linear axis."""
        if not self.mhz:
            return ruler(start, end, cells, cell_of)
        cell_of_time = cell_of or (lambda time: cell_at(time, start, end, cells))
        low, high = self.cycles(start), max(self.cycles(end), self.cycles(start) + 1)
        return ruler(low, high, cells, lambda cycle: cell_of_time(self.ns(Fraction(cycle))), CYCLE_UNITS)


TIME: Final = Measure()


def clock_of(device: Device) -> Fraction:
    """Frequency of the clock that cycles refer to, MHz: the first known one; 0: none."""
    return Fraction(next((mhz for _, mhz in device.clocks if mhz), 0))


def base_of(profile: Profile) -> TimeBase:
    """Reference points for parsing times typed on a command line: start, end and clock of a profile."""
    return TimeBase(profile.start_ns, profile.end_ns, mhz=clock_of(profile.device))


def base_of_state(state: DisplayState, device: Device | None) -> TimeBase:
    """Reference points for parsing times typed on the screen; without a device, cycles are unavailable."""
    mhz = clock_of(device) if device is not None else Fraction(0)
    return TimeBase(state.full_start, state.full_end, state.cursor, mhz, cycles=state.scale == "cycles")


def measure_of(device: Device, scale: TimeScale) -> Measure:
    """The formatter of a time scale chosen by the user."""
    return Measure(clock_of(device)) if scale == "cycles" else TIME
