"""Figures of every step at once: of the events that belong to it, whenever they run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import asdict

from tpuprof_tui.model import INT_MISSING, Lane, Profile

from ..index.lane_index import LaneIndex, build_index
from ..totals.figures import Indexes, UnitIndex, build_unit_index
from .profile_steps import ProfileSteps
from .steady_state import Steadiness, steadiness

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Columns that figures of units need.
_NEEDED: Final = ("start", "end", "role", "activity", "owner")
#: Steps are laid out one behind the other on a time line of at most this length, ns.
_LONGEST: Final = 1 << 61


class StepLengths(Struct, frozen=True, eq=False):
    """How long each step took: a row for each, by group, then in the order of time; arrays of one length. Times are ns.

    Attributes:
        place: Places in ``ProfileSteps.steps``.
        number: Numbers of the steps.
        group: Ids of the groups that made them; -1: everything together.
        start, length: When it began, and from there to its end.
        gap: From the end of the one before to its start, below 0 where they overlap; ``INT_MISSING`` of the first.
        difference: float, length minus the median of the steady steps of its group; NaN without one.
        usual, warm_up, outlier: Whether its launches are the usual ones, it comes before the steady state, or it took
            unusually long or short.
        steadiness: Of the steps of each group, by its id.
    """

    place: Ints
    number: Ints
    group: Ints
    start: Ints
    length: Ints
    gap: Ints
    difference: npt.NDArray[np.float64]
    usual: Mask
    warm_up: Mask
    outlier: Mask
    steadiness: dict[int, Steadiness]

    def __len__(self) -> int:
        return len(self.place)


class StepTable(StepLengths, frozen=True, eq=False):
    """What happened in each step: sums over units, as ``totals.figures`` defines them, of the events of the step alone.

    Attributes:
        events: Events of the device.
        busy, compute, transfer, communication, exposed: What units did; exposed: transfer that nothing covered.
    """

    events: Ints
    busy: Ints
    compute: Ints
    transfer: Ints
    communication: Ints
    exposed: Ints


def step_table(
    profile: Profile,
    found: ProfileSteps,
    *,
    units: Collection[int] | None = None,
    lanes: Collection[int] | None = None,
    indexes: Sequence[LaneIndex] = (),
) -> StepTable:
    """The figures of all steps. O(events log events).

    Args:
        profile: The events that count; a filter may have left some out.
        found: The steps of the whole profile.
        units: Ids of the units whose times are added up; None: all.
        lanes: Places in ``profile.lanes`` of those whose events are counted; None: those of the device.
        indexes: What ``build_indexes`` made of the profile, where it is there: steps that have no time in common take
            their figures from it.
    """
    lengths = step_lengths(found)
    events, busy, compute, transfer, communication, exposed = _figures(
        profile, found, profile.units if units is None else units, lanes, indexes
    )[:, lengths.place]
    return StepTable(**asdict(lengths), events=events, busy=busy, compute=compute, transfer=transfer,
                     communication=communication, exposed=exposed)  # fmt: skip


def step_lengths(found: ProfileSteps) -> StepLengths:
    """The lengths of all steps, and which of them are the usual ones."""
    steps = found.steps
    count = len(found)
    place = np.lexsort((steps.start, steps.group))
    group, start, end = (column[place].astype(np.int64) for column in (steps.group, steps.start, steps.end))
    same = np.append(False, group[1:] == group[:-1])[:count]
    gap = np.full(count, INT_MISSING)
    gap[1:][same[1:]] = (start[1:] - end[:-1])[same[1:]]
    difference = np.full(count, np.nan)
    warm_up, outlier = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    judged: dict[int, Steadiness] = {}
    for each in np.unique(group).tolist():
        rows = np.flatnonzero(group == each)
        judged[each] = one = steadiness((end - start)[rows], found.usual[place[rows]])
        difference[rows] = (end - start)[rows] - one.median
        warm_up[rows[: one.warm_up]] = True
        outlier[rows] = one.outlier
    return StepLengths(
        place=place, number=steps.number[place], group=group, start=start, length=end - start, gap=gap,
        difference=difference, usual=found.usual[place], warm_up=warm_up, outlier=outlier, steadiness=judged,
    )  # fmt: skip


def _figures(
    profile: Profile, found: ProfileSteps, units: Collection[int], counted: Collection[int] | None,
    indexes: Sequence[LaneIndex],
) -> Ints:  # fmt: skip
    """int64 (6, steps): events, busy, compute, transfer, communication, exposed."""
    count = len(found)
    figures = np.zeros((6, count), np.int64)
    parts: list[_Part] = []
    for number, lane in enumerate(profile.lanes):
        counts = lane.in_sums if counted is None else number in counted
        if not (len(lane) and count and (lane.in_sums or counts)):
            continue
        part = _Part(lane, found.places(lane).astype(np.int32))
        if counts:
            figures[0] += part.counts(count)
        if lane.in_sums:
            parts.append(part)
    by_unit = indexes.by_unit if isinstance(indexes, Indexes) else {}
    for unit in units:
        mine = list(_of_unit(profile, parts, unit))
        first, last = _extents(mine, count)
        index = by_unit.get(unit)
        if index is not None and _apart(mine, first, last):
            figures[1:] += _between(index, first, last)
            continue
        for low, high in _pieces(last - first):
            # one behind the other, steps have no time in common, whatever runs at once
            edges = np.append(0, np.cumsum((last - first)[low:high]))
            shift = edges[:-1] - first[low:high]
            laid_out = [build_index(part.laid_out(low, high, shift)) for part in mine]
            index = build_unit_index(profile, laid_out, unit)
            figures[1:, low:high] += _between(index, edges[:-1], edges[1:])
    return figures


class _Part(Struct, frozen=True, eq=False, dict=True):
    """A lane, or some rows of it, with the place of each row's step, -1 without one."""

    lane: Lane
    place: npt.NDArray[np.int32]

    @cached_property
    def _runs(self) -> tuple[Ints, Ints]:
        """First rows of neighbours of one step, and the places of their steps: neighbours mostly are of one."""
        begins = np.flatnonzero(np.append(True, self.place[1:] != self.place[:-1]))
        return begins, self.place[begins].astype(np.int64)

    def counts(self, steps: int) -> Ints:
        """Events of each step."""
        begins, which = self._runs
        lengths = np.diff(begins, append=len(self.place))
        return np.bincount(which[which >= 0], lengths[which >= 0], steps).astype(np.int64)

    def widen(self, first: Ints, last: Ints) -> None:
        """Takes the first start and the last end of each step into account."""
        begins, which = self._runs
        known = which >= 0
        np.minimum.at(first, which[known], self.lane.take("start", begins)[known])
        np.maximum.at(last, which[known], np.maximum.reduceat(self.lane["end"], begins)[known])

    @property
    def all_known(self) -> bool:
        """Whether each row belongs to a step."""
        return bool((self._runs[1] >= 0).all())

    def laid_out(self, low: int, high: int, shift: Ints) -> Lane:
        """The rows of some steps at other times, which ascend."""
        rows = np.flatnonzero((self.place >= low) & (self.place < high))
        if bool((self.place[rows[1:]] < self.place[rows[:-1]]).any()):
            rows = rows[np.argsort(self.place[rows], kind="stable")]
        by = shift[self.place[rows] - low]
        some = self.lane.taking(rows, only=_NEEDED)
        return some.with_column("start", some["start"] + by).with_column("end", some["end"] + by)


def _of_unit(profile: Profile, parts: Iterable[_Part], unit: int) -> Iterator[_Part]:
    """The lanes of a unit, and what it submitted to lanes of no unit."""
    within = profile.groups.within(unit)
    for part in parts:
        lane = part.lane
        if lane.group in within:
            yield part
        elif "owner" in lane and profile.unit_of(lane) < 0 and not lane.on_host:
            rows = np.flatnonzero(np.isin(lane["owner"], list(within)))
            if len(rows):
                yield _Part(lane.taking(rows, only=_NEEDED), part.place[rows])


def _extents(parts: Iterable[_Part], steps: int) -> tuple[Ints, Ints]:
    """First start and last end of each step, ns; both 0 where it has no events."""
    first, last = np.full(steps, np.iinfo(np.int64).max), np.full(steps, np.iinfo(np.int64).min)
    for part in parts:
        part.widen(first, last)
    nothing = last < first
    return np.where(nothing, 0, first), np.where(nothing, 0, last)


def _apart(parts: Iterable[_Part], first: Ints, last: Ints) -> bool:
    """Whether no two steps have time in common, and nothing runs that belongs to none."""
    some = np.flatnonzero(last > first)
    order = some[np.argsort(first[some], kind="stable")]
    return bool((last[order[:-1]] <= first[order[1:]]).all()) and all(part.all_known for part in parts)


def _between(index: UnitIndex, first: Ints, last: Ints) -> Ints:
    """int64 (5, windows): busy, compute, transfer, communication, exposed."""
    busy, compute, transfer, communication, covering = (
        spans.covered(last) - spans.covered(first)
        for spans in (index.either, index.compute, index.transfer, index.communication, index.covering)
    )
    return np.stack((busy, compute, transfer, communication, np.minimum(transfer, busy - covering)))


def _pieces(length: Ints) -> Iterator[tuple[int, int]]:
    """Neighbouring steps that fit one time line together."""
    low = total = 0
    for number, each in enumerate(length.tolist()):
        if total + each > _LONGEST and number > low:
            yield low, number
            low, total = number, 0
        total += each
    yield low, len(length)
