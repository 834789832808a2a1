"""Figures of every step at once: of the events that belong to it, whenever they run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING, Lane, Profile

from ..index.lane_index import build_index
from ..totals.figures import build_unit_index
from .profile_steps import ProfileSteps
from .steadiness import Steadiness, steadiness

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Columns that figures of units need.
_NEEDED: Final = ("start", "end", "role", "activity", "owner")
#: Steps are laid out one behind the other on a time line of at most this length, ns.
_LONGEST: Final = 1 << 61


@dataclass(frozen=True, eq=False)
class StepTable:
    """A row for each step, by group, then in the order of time; arrays of one length.

    Times are ns. Those of what units did are sums over units, as ``totals.figures`` defines them, of the events of the
    step alone.

    Attributes:
        place: Places in ``ProfileSteps.steps``.
        number: Numbers of the steps.
        group: Ids of the groups that made them; -1: everything together.
        start, length: When it began, and from there to its end.
        gap: From the end of the one before to its start, below 0 where they overlap; ``INT_MISSING`` of the first.
        events: Events of the device.
        busy, compute, transfer, communication, exposed: What units did; exposed: transfer that nothing covered.
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
    events: Ints
    busy: Ints
    compute: Ints
    transfer: Ints
    communication: Ints
    exposed: Ints
    difference: npt.NDArray[np.float64]
    usual: Mask
    warm_up: Mask
    outlier: Mask
    steadiness: dict[int, Steadiness]

    def __len__(self) -> int:
        return len(self.place)


def step_table(
    profile: Profile,
    found: ProfileSteps,
    *,
    units: Collection[int] | None = None,
    lanes: Collection[int] | None = None,
) -> StepTable:
    """The figures of all steps. O(events log events).

    Args:
        profile: The events that count; a filter may have left some out.
        found: The steps of the whole profile.
        units: Ids of the units whose times are added up; None: all.
        lanes: Places in ``profile.lanes`` of those whose events are counted; None: those of the device.
    """
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
    events, busy, compute, transfer, communication, exposed = _figures(
        profile, found, profile.units if units is None else units, lanes
    )[:, place]
    return StepTable(
        place=place, number=steps.number[place], group=group, start=start, length=end - start, gap=gap, events=events,
        busy=busy, compute=compute, transfer=transfer, communication=communication, exposed=exposed,
        difference=difference, usual=found.usual[place], warm_up=warm_up, outlier=outlier, steadiness=judged,
    )  # fmt: skip


def _figures(profile: Profile, found: ProfileSteps, units: Collection[int], counted: Collection[int] | None) -> Ints:
    """int64 (6, steps): events, busy, compute, transfer, communication, exposed."""
    count = len(found)
    figures = np.zeros((6, count), np.int64)
    first = np.full(count, np.iinfo(np.int64).max, np.int64)
    last = np.full(count, np.iinfo(np.int64).min, np.int64)
    lanes: list[Lane] = []
    places: list[Ints] = []
    for number, lane in enumerate(profile.lanes):
        counts = lane.in_sums if counted is None else number in counted
        if not (len(lane) and count and (lane.in_sums or counts)):
            continue
        place = found.places(lane)
        # neighbours are mostly of one step
        begins = np.flatnonzero(np.append(True, place[1:] != place[:-1]))
        known = place[begins] >= 0
        which = place[begins][known]
        figures[0] += np.bincount(which, np.diff(begins, append=len(place))[known], count).astype(np.int64) * counts
        if lane.in_sums:
            lanes.append(lane)
            places.append(place)
            np.minimum.at(first, which, lane.take("start", begins)[known])
            np.maximum.at(last, which, np.maximum.reduceat(lane["end"], begins)[known])
    first, last = (np.where(last < first, 0, each) for each in (first, last))
    for low, high in _pieces(np.maximum(last - first, 0)):
        # one behind the other, steps have no time in common, whatever runs at once
        edges = np.append(0, np.cumsum(np.maximum(last - first, 0)[low:high]))
        shift = edges[:-1] - first[low:high]
        laid_out = []
        for lane, place in zip(lanes, places, strict=True):
            rows = np.flatnonzero((place >= low) & (place < high))
            if bool((place[rows[1:]] < place[rows[:-1]]).any()):
                rows = rows[np.argsort(place[rows], kind="stable")]
            laid_out.append(build_index(_shifted(lane, rows, shift[place[rows] - low])))
        for unit in units:
            index = build_unit_index(profile, laid_out, unit)
            busy, compute, transfer, communication, covering = (
                np.diff(spans.covered(edges))
                for spans in (index.either, index.compute, index.transfer, index.communication, index.covering)
            )
            exposed = np.minimum(transfer, busy - covering)
            figures[1:, low:high] += np.stack((busy, compute, transfer, communication, exposed))
    return figures


def _pieces(length: Ints) -> Iterator[tuple[int, int]]:
    """Neighbouring steps that fit one time line together."""
    low = total = 0
    for number, each in enumerate(length.tolist()):
        if total + each > _LONGEST and number > low:
            yield low, number
            low, total = number, 0
        total += each
    yield low, len(length)


def _shifted(lane: Lane, rows: Ints, shift: Ints) -> Lane:
    """Some rows of a lane at other times, which ascend."""
    some = lane.taking(rows, only=_NEEDED)
    return some.with_column("start", some["start"] + shift).with_column("end", some["end"] + shift)
