"""Figures of steps: lengths, steadiness, sums for all steps at once, and steps as a lane.

Figures are of the events that belong to a step, whenever they run. Repetitions have a warm-up and a steady state with
median, quartiles and outliers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import asdict

from tpuprof_tui.model import INT_MISSING, Lane, Profile, Role
from tpuprof_tui.model.uniques import distinct

from ..index.lane_index import LaneIndex, build_index
from ..index.unit_index import Indexes, UnitIndex, build_unit_index
from ..selecting.session import Session
from .step_detection import ProfileSteps, steps_of

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Columns that the figures of units need.
_NEEDED: Final = ("start", "end", "role", "activity", "owner")
#: Maximum length of the time line on which steps are laid out one after another, ns.
_LONGEST: Final = 1 << 61
#: Minimum number of repetitions to detect outliers.
FEWEST: Final = 4
#: Values beyond the quartiles by more than this multiple of the interquartile range are outliers (Tukey, Exploratory
#: Data Analysis, 1977).
_FENCE: Final = 1.5
#: Lower bound of the interquartile range, as a share of the median: clocks and caches jitter.
_JITTER: Final = 0.01
#: Minimum number of steps for a chart over time.
FEWEST_OVER_TIME = 2


class Steadiness(Struct, frozen=True, eq=False):
    """Statistics of the durations of repetitions, in order of time."""

    #: Number of repetitions before the steady state: with unusual launches, or longer than the upper fence of the
    #: second half.
    warm_up: int
    steady: Mask  #: Mask of the usual repetitions in the steady state
    #: median, low, high: Median and quartiles of the steady ones, ns; NaN if there are none.
    median: float
    low: float
    high: float
    #: shortest, longest: Of the steady ones, ns; NaN if there are none.
    shortest: float
    longest: float
    outlier: Mask  #: Mask of the steady ones that are unusually long or short


class StepLengths(Struct, frozen=True, eq=False):
    """Lengths of steps: a row per step, by group, then by start; arrays of one length. Times are ns."""

    index: Ints  #: Index into ``ProfileSteps.steps``
    number: Ints  #: Number of the step
    group: Ints  #: Id of the group; -1: the whole profile
    #: start, length: Start, and duration.
    start: Ints
    length: Ints
    gap: Ints  #: From the previous step's end to this start, negative if they overlap; ``INT_MISSING`` for the first
    #: float, length minus the median of the group's steady steps; NaN if there are none.
    difference: npt.NDArray[np.float64]
    #: usual, warm_up, outlier: Masks: the launches are the usual ones; before the steady state; unusually long or
    #: short.
    usual: Mask
    warm_up: Mask
    outlier: Mask
    steadiness: dict[int, Steadiness]  #: Statistics of the steps of each group, by group id

    def __len__(self) -> int:
        return len(self.index)


class StepTable(StepLengths, frozen=True, eq=False):
    """Figures of each step: sums over units, as ``totals.figures`` defines them, of the step's own events."""

    events: Ints  #: Number of device events
    #: busy, compute, transfer, communication, exposed: ns; exposed: transfer without compute and communication.
    busy: Ints
    compute: Ints
    transfer: Ints
    communication: Ints
    exposed: Ints


def step_table(
    profile: Profile,
    steps: ProfileSteps,
    *,
    units: Collection[int] | None = None,
    lanes: Collection[int] | None = None,
    owners: Collection[int] = (),
    indexes: Sequence[LaneIndex] = (),
) -> StepTable:
    """The figures of all steps, from the events of a (possibly filtered) profile. O(events log events).

    Args:
        units: Ids of the units whose times are summed; None: all.
        lanes: Indexes into ``profile.lanes`` of the lanes whose events are counted; None: those of the device.
        owners: Groups; on lanes outside them only the events that they submitted are counted. Empty: all events.
        indexes: Result of ``build_indexes`` for the profile, if available: used for steps that do not overlap.
    """
    lengths = step_lengths(steps)
    events, busy, compute, transfer, communication, exposed = _figures(
        profile, steps, profile.units if units is None else units, lanes, owners, indexes
    )[:, lengths.index]
    return StepTable(**asdict(lengths), events=events, busy=busy, compute=compute, transfer=transfer,
                     communication=communication, exposed=exposed)  # fmt: skip


def step_lengths(steps: ProfileSteps) -> StepLengths:
    """The lengths of all steps, with warm-up, usual steps and outliers."""
    columns = steps.steps
    count = len(steps)
    index = np.lexsort((columns.start, columns.group))
    group, start, end = (column[index].astype(np.int64) for column in (columns.group, columns.start, columns.end))
    same = np.append(False, group[1:] == group[:-1])[:count]
    gap = np.full(count, INT_MISSING)
    gap[1:][same[1:]] = (start[1:] - end[:-1])[same[1:]]
    difference = np.full(count, np.nan)
    warm_up, outlier = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    by_group: dict[int, Steadiness] = {}
    for each in sorted(set(group.tolist())):
        rows = np.flatnonzero(group == each)
        by_group[each] = one = steadiness((end - start)[rows], steps.usual[index[rows]])
        difference[rows] = (end - start)[rows] - one.median
        warm_up[rows[: one.warm_up]] = True
        outlier[rows] = one.outlier
    return StepLengths(
        index=index, number=columns.number[index], group=group, start=start, length=end - start, gap=gap,
        difference=difference, usual=steps.usual[index], warm_up=warm_up, outlier=outlier, steadiness=by_group,
    )  # fmt: skip


def _figures(
    profile: Profile, steps: ProfileSteps, units: Collection[int], counted_lanes: Collection[int] | None,
    owners: Collection[int], indexes: Sequence[LaneIndex],
) -> Ints:  # fmt: skip
    """int64 (6, steps): events, and ns of busy, compute, transfer, communication, exposed."""
    count = len(steps)
    figures = np.zeros((6, count), np.int64)
    parts: list[_Part] = []
    for number, lane in enumerate(profile.lanes):
        counts = lane.in_sums if counted_lanes is None else number in counted_lanes
        if not (len(lane) and count and (lane.in_sums or counts)):
            continue
        part = _Part(lane, steps.indexes(lane).astype(np.int32))
        if counts:
            own = _submitted(part, owners) if owners else part
            figures[0] += own.counts(count) if len(own.step) else 0
        if lane.in_sums:
            parts.append(part)
    by_unit = indexes.by_unit if isinstance(indexes, Indexes) else {}
    for unit in units:
        own_parts = list(_of_unit(profile, parts, unit))
        first, last = _extents(own_parts, count)
        index = by_unit.get(unit)
        if index is not None and _are_disjoint(own_parts, first, last):
            figures[1:] += _figures_between(index, first, last)
            continue
        for low, high in _chunks(last - first):
            # laid out one after another, steps do not overlap, even if they ran concurrently
            edges = np.append(0, np.cumsum((last - first)[low:high]))
            shift = edges[:-1] - first[low:high]
            laid_out = [build_index(part.laid_out(low, high, shift)) for part in own_parts]
            index = build_unit_index(profile, laid_out, unit)
            figures[1:, low:high] += _figures_between(index, edges[:-1], edges[1:])
    return figures


class _Part(Struct, frozen=True, eq=False, dict=True):
    """A lane, or some rows of it, with the index of each row's step (-1: none)."""

    lane: Lane
    step: npt.NDArray[np.int32]

    @cached_property
    def runs(self) -> tuple[Ints, Ints]:
        """Runs of rows of one step: their first rows and step indexes; rows of a step are mostly contiguous."""
        begins = np.flatnonzero(np.append(True, self.step[1:] != self.step[:-1]))
        return begins, self.step[begins].astype(np.int64)

    def counts(self, steps: int) -> Ints:
        """Number of events of each step."""
        begins, step = self.runs
        lengths = np.diff(begins, append=len(self.step))
        return np.bincount(step[step >= 0], lengths[step >= 0], steps).astype(np.int64)

    def laid_out(self, low: int, high: int, shift: Ints) -> Lane:
        """The rows of steps [low, high), shifted in time by ``shift`` ns per step, by start."""
        rows = np.flatnonzero((self.step >= low) & (self.step < high))
        if bool((self.step[rows[1:]] < self.step[rows[:-1]]).any()):
            rows = rows[np.argsort(self.step[rows], kind="stable")]
        by = shift[self.step[rows] - low]
        some = self.lane.select_rows(rows, only=_NEEDED)
        return some.with_column("start", some["start"] + by).with_column("end", some["end"] + by)


def _of_unit(profile: Profile, parts: Iterable[_Part], unit: int) -> Iterator[_Part]:
    within = profile.groups.within(unit)
    for part in parts:
        lane = part.lane
        if lane.group in within:
            yield part
        elif "owner" in lane and profile.unit_of(lane) < 0 and not lane.on_host:
            own = _submitted(part, within)
            if len(own.step):
                yield own


def _submitted(part: _Part, owners: Collection[int]) -> _Part:
    lane = part.lane
    if lane.group in owners or "owner" not in lane:
        return part
    rows = np.flatnonzero(np.isin(lane["owner"], list(owners)))
    return _Part(lane.select_rows(rows, only=_NEEDED), part.step[rows])


def _extents(parts: Iterable[_Part], steps: int) -> tuple[Ints, Ints]:
    """First start and last end of each step, ns; both 0 if it has no events."""
    first, last = np.full(steps, np.iinfo(np.int64).max), np.full(steps, np.iinfo(np.int64).min)
    for part in parts:
        begins, step = part.runs
        known = step >= 0
        np.minimum.at(first, step[known], part.lane.take("start", begins)[known])
        np.maximum.at(last, step[known], np.maximum.reduceat(part.lane["end"], begins)[known])
    nothing = last < first
    return np.where(nothing, 0, first), np.where(nothing, 0, last)


def _are_disjoint(parts: Iterable[_Part], first: Ints, last: Ints) -> bool:
    """Whether no two steps overlap, and every row belongs to a step."""
    some = np.flatnonzero(last > first)
    order = some[np.argsort(first[some], kind="stable")]
    return bool((last[order[:-1]] <= first[order[1:]]).all()) and all((part.step >= 0).all() for part in parts)


def _figures_between(index: UnitIndex, first: Ints, last: Ints) -> Ints:
    """int64 (5, windows): ns of busy, compute, transfer, communication, exposed in each window."""
    busy, compute, transfer, communication, hides = (
        spans.covered(last) - spans.covered(first)
        for spans in (index.busy, index.compute, index.transfer, index.communication, index.compute_or_communication)
    )
    return np.stack((busy, compute, transfer, communication, np.minimum(transfer, busy - hides)))


def _chunks(length: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive steps that fit one time line of ``_LONGEST`` ns."""
    low = total = 0
    for number, each in enumerate(length.tolist()):
        if total + each > _LONGEST and number > low:
            yield low, number
            low, total = number, 0
        total += each
    yield low, len(length)


def steadiness(length: Ints, usual: Mask) -> Steadiness:
    """Statistics of repetitions from their durations, int64 ns in order of time; ``usual``: mask of usual launches."""
    count = len(length)
    known = np.flatnonzero(usual)
    first = int(known[0]) if len(known) else 0
    if len(known) >= FEWEST:
        later = length[known[known >= count // 2]] if known[-1] >= count // 2 else length[known]
        _, _, most = _fences(later)
        first = int(known[np.argmax(length[known] <= most)])
    steady = usual & (np.arange(count) >= first)
    if not steady.any():
        nothing = float("nan")
        return Steadiness(0, steady, nothing, nothing, nothing, nothing, nothing, np.zeros(count, np.bool_))
    chosen = length[steady]
    low, median, high = quartiles(chosen)
    _, least, most = _fences(chosen)
    outlier = steady & ((length < least) | (length > most)) & (len(chosen) >= FEWEST)
    return Steadiness(first, steady, median, low, high, float(chosen.min()), float(chosen.max()), outlier)


def quartiles(length: Ints) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile; np.percentile would import numpy.ma: 8 ms of startup."""
    positions = np.multiply((0.25, 0.5, 0.75), len(length) - 1)
    low, median, high = np.interp(positions, np.arange(len(length)), np.sort(length)).tolist()
    return low, median, high


def _fences(length: Ints) -> tuple[float, float, float]:
    low, median, high = quartiles(length)
    spread = max(high - low, _JITTER * median)
    return median, low - _FENCE * spread, high + _FENCE * spread


def step_lane(session: Session, group: int = -1) -> LaneIndex:
    """The steps of a group as a lane, of all groups if -1; steps with the same number are merged.

    Extra columns: ``number`` and ``usual``.
    """
    return session.cache.get("steps over time", lambda: build_index(_steps_lane(session, group)), group)


def step_span(session: Session, number: int, group: int = -1) -> tuple[int, int] | None:
    """First start and last end of the steps with a number, ns; None: no such step."""
    lane = step_lane(session, group).lane
    row = np.flatnonzero(lane["number"] == number)
    return (int(lane["start"][row[0]]), int(lane["end"][row[0]])) if len(row) else None


def _steps_lane(session: Session, group: int) -> Lane:
    found = steps_of(session)
    own = found.set_of(group) if group >= 0 else None
    indexes = np.arange(len(found)) if group < 0 else own.index if own is not None else np.zeros(0, np.int64)
    number, inverse = distinct(found.steps.number[indexes])
    start = np.full(len(number), np.iinfo(np.int64).max, np.int64)
    end = np.full(len(number), np.iinfo(np.int64).min, np.int64)
    usual = np.ones(len(number), np.bool_)
    np.minimum.at(start, inverse, found.steps.start[indexes])
    np.maximum.at(end, inverse, found.steps.end[indexes])
    np.logical_and.at(usual, inverse, found.usual[indexes])
    order = np.lexsort((number, start))
    count = len(number)
    return Lane(
        kind="steps", group=group, label=found.word.plural,
        columns={"start": start[order], "end": end[order], "order": np.arange(count, dtype=np.int64),
                 "role": np.full(count, Role.WORK, np.int8), "sublane": np.zeros(count, np.int16),
                 "number": number[order].astype(np.int64), "usual": usual[order]},
    )  # fmt: skip
