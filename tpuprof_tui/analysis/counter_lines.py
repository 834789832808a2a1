"""Counters as lines over time: which counters fold into one line, and their mean values per cell of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model import Profile

from .index.lane_index import PiecewiseRate
from .selecting.session import Session

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Up to this many counters of a group are all shown at first; more start folded into one line.
MOST_UNFOLDED = 4


class CounterLine(Struct, frozen=True):
    """One line of the timeline: a single counter, or several that fold into it."""

    label: str
    group: int  #: Id of the measured group; -1: the whole system
    counters: tuple[int, ...]  #: Indexes into ``Profile.counters``
    depth: int = 0  #: Nesting depth; 0 at top level
    parent: int = -1  #: Index of the line it is folded into; -1: none
    is_parent: bool = False  #: Whether it is the parent of the lines that follow it


def counter_lines(session: Session) -> tuple[CounterLine, ...]:
    """The lines of all counters, group by group, families of a group in recorded order; cached."""
    return session.cache.get("lines of counters", lambda: tuple(_lines(session.profile)))


def _lines(profile: Profile) -> Iterator[CounterLine]:
    by_group: dict[int, list[int]] = {}
    for index, counter in enumerate(profile.counters):
        by_group.setdefault(counter.group, []).append(index)
    number = 0
    for group, indexes in by_group.items():
        all_shown, families = len(indexes) <= MOST_UNFOLDED, dict[object, list[int]]()
        for index in indexes:
            counter = profile.counters[index]
            families.setdefault(index if all_shown else counter.family or counter.name, []).append(index)
        outer, depth = -1, 0
        if not all_shown and len(families) > 1:
            yield CounterLine("Counters", group, tuple(indexes), is_parent=True)
            outer, depth, number = number, 1, number + 1
        for family, members in families.items():
            folds = len(members) > 1
            if folds:
                yield CounterLine(clean(str(family)), group, tuple(members), depth, outer, is_parent=True)
            for index in members:
                parent = number if folds else outer
                yield CounterLine(clean(profile.counters[index].name), group, (index,), depth + folds, parent)
            number += len(members) + folds


def ancestors(lines: Sequence[CounterLine], number: int) -> Iterator[int]:
    """Indexes of the lines that a line is folded into, innermost first."""
    while (number := lines[number].parent) >= 0:
        yield number


def visible_lines(lines: Sequence[CounterLine], unfolded: Sequence[int]) -> Iterator[int]:
    """Indexes of the lines that are not hidden in a folded parent."""
    visible = set()
    for number, line in enumerate(lines):
        if line.parent < 0 or (line.parent in visible and line.parent in unfolded):
            visible.add(number)
            yield number


class CounterCurve(Struct, frozen=True, eq=False):
    """Step function of a counter: each sample holds until the next, the last until the end of the profile."""

    #: times, values: The samples: int64 ns, ascending, and float64 (NaN: missing).
    times: Ints
    values: Floats
    #: low, high: Range of the vertical axis: minimum and maximum of the values and 0.
    low: float
    high: float
    _amounts: PiecewiseRate
    _known: PiecewiseRate

    @classmethod
    def of(cls, times: Ints, values: Floats, end: int) -> CounterCurve:
        """The curve of samples until ``end``, ns; O(n)."""
        ends = np.append(times[1:], max(end, int(times[-1]))) if len(times) else times
        known = np.isfinite(values)
        filled = np.where(known, values, 0.0)
        low, high = (float(filled.min()), float(filled.max())) if len(values) else (0.0, 0.0)
        return cls(times, values, min(low, 0.0), max(high, 0.0),
                   *(PiecewiseRate.of(times, ends, rates) for rates in (filled, known * 1.0)))  # fmt: skip

    def means(self, edges: Ints) -> Floats:
        """The mean over each cell between neighbouring edges; NaN where no value is known. O(cells log n)."""
        amount, time = self._amounts.between(edges), self._known.between(edges)
        # differences of float sums are not exactly 0 where nothing was measured
        known = time > 1e-3 * np.maximum(np.diff(edges), 1)
        means: Floats = np.divide(amount, time, out=np.full(len(time), np.nan), where=known)
        return means

    def at(self, time: int) -> float:
        """The value at a time, ns; NaN before the first sample."""
        index = int(np.searchsorted(self.times, time, side="right")) - 1
        return float(self.values[index]) if index >= 0 else float("nan")

    def heights(self, edges: Ints) -> Floats:
        """The means scaled to 0..1 between ``low`` and ``high``; NaN where no value is known."""
        return np.clip((self.means(edges) - self.low) / ((self.high - self.low) or 1.0), 0.0, 1.0)

    def maximum(self, start: int, end: int) -> float:
        """The largest value in the window [start, end), ns; NaN where none is known."""
        first = max(int(np.searchsorted(self.times, start, side="right")) - 1, 0)
        held = self.values[first : int(np.searchsorted(self.times, end))]
        held = held[np.isfinite(held)]
        return float(held.max()) if len(held) else float("nan")

    def step(self, time: int, steps: int) -> int | None:
        """Time of the next change of value after a time (``steps`` 1) or the last one before it (-1); None: none."""
        changed = np.flatnonzero(np.diff(self.values, prepend=np.nan) != 0)
        times = self.times[changed]
        index = int(np.searchsorted(times, time, side="right" if steps > 0 else "left")) - (steps < 0)
        return int(times[index]) if 0 <= index < len(times) else None


def counter_curve(session: Session, number: int) -> CounterCurve:
    """The curve of a counter, cached; O(n) the first time."""
    counter = session.profile.counters[number]
    return session.cache.get(
        "curves of counters", lambda: CounterCurve.of(counter.times, counter.values, session.profile.end_ns), number
    )


def line_heights(session: Session, line: CounterLine, edges: Ints) -> Floats:
    """Height of a line in each cell, 0 to 1; for several counters the maximum, each scaled to its own range.

    All NaN where the counters have different units, which cannot share an axis.
    """
    if len({session.profile.counters[number].unit for number in line.counters}) > 1:
        return np.full(len(edges) - 1, np.nan)
    found = np.array([counter_curve(session, number).heights(edges) for number in line.counters])
    best: Floats = np.fmax.reduce(found, axis=0)
    return best
