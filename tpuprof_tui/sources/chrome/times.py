"""Times of recordings: which cannot be theirs, by differences alone; clocks and steps of ranks; ends of files.

The *recording* is the part of the time line that holds at least half of the events and has nothing around it: every
other event is further from it than the larger of 1 s and ten times its length. Those others, and events that begin in
it but end as far behind it, are *far*. Two kinds of events are not: device events whose clock differs as a whole from
the host's, because launches tell by how much to move them, and a large part of all events less than an hour away,
because programs pause.

A recording without such events costs a few passes over the starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Activity, Lane, Problem, Severity
from tpuprof_tui.model.lane import ASIDE, aside_columns
from tpuprof_tui.model.uniques import uniques

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: Events nearer than this, or than ``_SPANS`` lengths of the recording, belong to it.
_LEAST_NS: Final = 10**9
_SPANS: Final = 10
#: The same for the end of an event that begins in the recording: a call that waits for long may be all that lasts.
_LEAST_LENGTH_NS: Final = 60 * 10**9
#: A part of at least this share of all events (1 in 4), less than this away, is the recording after a pause.
_LARGE: Final = 4
_PAUSE_NS: Final = 3600 * 10**9
#: Fewest events that prove another clock.
_FEW: Final = 2
#: Times are clipped to this, so that differences stay within int64.
_MOST: Final = 1 << 62
_ROWS: Final = 1 << 20
#: Words for long times: ns, word, decimals. A unit is used from two of it on.
_UNITS: Final = ((31_556_952 * 10**9, "years", 1), (86_400 * 10**9, "days", 1), (3_600 * 10**9, "hours", 1),
                 (10**9, "s", 3))  # fmt: skip


class DeviceEvents(Struct, frozen=True, eq=False):
    """Which of the events ran on a device; columns of one length."""

    rows: I64  #: int64, their indices
    clock: npt.NDArray[np.integer]  #: Number of the clock that timed each: of its device
    launched: I64  #: int64 ns, when the host launched each; ``INT_MISSING`` if that is not known

    def delays(self, start: I64) -> I64:
        """Times in ns from launch to start, of the events whose launch is known."""
        known = self.launched != INT_MISSING
        return np.asarray(start[self.rows[known]] - self.launched[known])


class Judgement(Struct, frozen=True, eq=False):
    """What is wrong with the times of some events."""

    #: low, high: The recording, ns: from its first start to its last end.
    low: int
    high: int
    #: int64, ascending: indices of the events that cannot belong to it.
    far: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    moved: dict[int, int] = field(default_factory=dict)  #: By clock of a device: ns to add to all of its events
    #: The moved clocks whose launches are not known: their first event was laid at the host's first.
    guessed: frozenset[int] = frozenset()
    apart: int = 0  #: ns between two parts of the recording that would be far if they were small; 0: there are none

    def near(self, times: I64) -> Mask:
        """Mask of times that are not far from the recording, for instants beside the events."""
        limit = _limit(self.high - self.low)
        return np.asarray((times >= max(self.low - limit, -_MOST)) & (times <= min(self.high + limit, _MOST)))

    def holds(self, start: I64, end: I64) -> Mask:
        """Mask of events that are not far from the recording, if that is longer than they tell."""
        most = self.high + max(_LEAST_LENGTH_NS, _SPANS * (self.high - self.low))
        return np.asarray(self.near(start) & (end <= min(most, _MOST)))

    def corrected(self, start: I64, end: I64, device: DeviceEvents) -> tuple[I64, I64]:
        """Copies of all starts and ends in which the events of moved clocks are moved."""
        start, end = start.copy(), end.copy()
        for clock, shift in self.moved.items():
            rows = device.rows[device.clock == clock]
            start[rows], end[rows] = shifted(start[rows], shift), shifted(end[rows], shift)
        return start, end

    def away(self, start: I64, end: I64) -> I64:
        """How far each far event is from the recording, as for `away_words`, by all (corrected) starts and ends."""
        return np.where(start < self.low, start - self.low, np.maximum(end - self.high, 0))[self.far]

    def problems(self, file: str, title: Callable[[int], str]) -> Iterator[Problem]:
        """What a user must know of clocks and pauses; ``title`` names the device of a clock."""
        for clock, shift in self.moved.items():
            how = "its first event was laid at the host's first, for no launch is known" if clock in self.guessed else \
                  "by the launches of its work, so that it runs after them"  # fmt: skip
            word = "behind" if shift > 0 else "ahead of"
            yield Problem(Severity.WARNING,
                          f"The clock of {title(clock)} is {time_words(abs(shift))} {word} the host's.",
                          f"Its times were moved {how}.", file)  # fmt: skip
        if self.apart:
            yield Problem(Severity.WARNING, f"Nothing was recorded for {time_words(self.apart)}, much longer than "
                          "before and after.", "Figures count that time. --range shows one part.", file)  # fmt: skip


def judged(start: I64, end: I64, device: DeviceEvents | None = None) -> Judgement:
    """Finds the events that cannot belong to their recording, and the device clocks to correct. O(n log n) at most.

    Args:
        start, end: ns, starts of at most 2^62, no end before its start; of all lanes, in any order.
        device: Which events are the device's; None: none is known to be.
    """
    if not len(start):
        return Judgement(0, 0)
    delays = start[:0] if device is None else device.delays(start)
    if plausible(start, end, delays):
        return Judgement(int(start.min()), int(end.max()))
    start, end = start.copy(), np.minimum(end, _MOST)
    kept = np.ones(len(start), np.bool_)
    moved: dict[int, int] = {}
    guessed: set[int] = set()
    if device is not None:
        host = kept.copy()
        host[device.rows] = False
        _correct_clocks(start, end, host, device, moved, guessed)
        kept[_far_from_launch(start, end, host, device)] = False
    low, high, inside = _recording(start[kept], end[kept])
    apart = _apart(start[kept][inside], end[kept][inside])
    kept[kept] = inside
    return Judgement(low, high, np.flatnonzero(~kept), moved, frozenset(guessed), apart)


def _correct_clocks(
    start: I64, end: I64, host: Mask, device: DeviceEvents, moved: dict[int, int], guessed: set[int]
) -> None:  # fmt: skip
    """Moves the events of devices whose clock differs as a whole from the host's, in place."""
    if not host.any():
        return
    low, high, _ = _recording(start[host], end[host])
    for clock in uniques(device.clock).tolist():
        of_clock = device.clock == clock
        rows = device.rows[of_clock]
        shift = _shift_by_launches(start[rows], device.launched[of_clock], high - low)
        if shift is None:
            begin, until, _ = _recording(start[rows], end[rows])
            limit = _limit(max(high - low, until - begin))
            if until + limit < low or high + limit < begin:
                shift = low - begin
                guessed.add(clock)
        if shift:
            moved[clock] = shift
            start[rows], end[rows] = shifted(start[rows], shift), shifted(end[rows], shift)


def shifted(times: I64, shift: int) -> I64:
    """Times moved by some ns, without overflow: those beyond 2^62 become that."""
    last = (1 << 63) - 1
    return np.clip(times, max(-_MOST - shift, -last), min(_MOST - shift, last)) + shift


def _shift_by_launches(start: I64, launched: I64, span: int) -> int | None:
    """Time in ns to add to the events of a device, 0 if their clock is the host's or only some are wrong.

    None: too few launches are known, but the events are distinct.
    """
    known = launched != INT_MISSING
    delay = np.sort(start[known] - launched[known])
    # clocks tell most events times of their own; those of damaged events are often equal
    if len(start) < _FEW or 2 * len(uniques(start)) <= len(start):
        return 0
    if len(delay) < _FEW:
        return None if not len(delay) else 0
    middle = int(delay[len(delay) // 2])
    limit = _limit(span)
    if -_LEAST_NS <= middle <= limit:
        return 0
    agreeing = delay[slice(*np.searchsorted(delay, (middle - limit, middle + limit)))]
    sound = int(((delay >= -_LEAST_NS) & (delay <= limit)).sum())
    if 2 * len(agreeing) <= len(delay) or 10 * sound > len(delay):
        return 0
    # nothing runs before it was launched, but for a few
    return -int(agreeing[len(agreeing) // 100])


def _far_from_launch(start: I64, end: I64, host: Mask, device: DeviceEvents) -> I64:
    """Indices of device events too far from their launch, as far as launches are within the host's recording."""
    known = device.launched != INT_MISSING
    if not known.any() or not host.any():
        return device.rows[:0]
    low, high, _ = _recording(start[host], end[host])
    rows, launched = device.rows[known], device.launched[known]
    limit = _limit(high - low)
    near = start[rows][(start[rows] >= max(low - limit, -_MOST)) & (start[rows] <= min(high + limit, _MOST))]
    limit = _limit(max(high, int(near.max(initial=high))) - min(low, int(near.min(initial=low))))
    far: I64 = rows[(launched >= low) & (launched <= high) & (np.abs(start[rows] - launched) > limit)]
    return far


def _recording(start: I64, end: I64) -> tuple[int, int, Mask]:
    """First start and last end of the recording that events belong to, and the mask of those that do."""
    ordered = np.sort(start)
    count = len(ordered)
    # the half of the events that is closest together belongs to it
    more = (count - 1) // 2
    closest = int((ordered[more:] - ordered[: count - more]).argmin())
    low, high = int(ordered[closest]), int(ordered[closest + more])
    limit = _limit(high - low)
    while True:
        first, behind = _within(ordered, low, high, limit)
        begin, last = int(ordered[first]), int(ordered[behind - 1])
        inside = (start >= begin) & (start <= last)
        # what lasts much longer than all the rest is not believed to the end
        bound = min(last + max(_LEAST_LENGTH_NS, _SPANS * (last - begin)), _MOST)
        ending = inside & (end <= bound)
        until = max(last, int(end[ending].max(initial=last)))
        if (begin, until) != (low, high):
            low, high, limit = begin, until, _limit(until - begin)
            continue
        begun, ended = _within(ordered, low, high, _PAUSE_NS)
        if limit >= _PAUSE_NS or _LARGE * (first - begun + ended - behind) < count:
            break
        limit = _PAUSE_NS
    if 2 * int(ending.sum()) < int(inside.sum()):
        return low, int(end[inside].max()), inside
    return low, high, ending


def _within(ordered: I64, low: int, high: int, limit: int) -> tuple[int, int]:
    """First and last (exclusive) of some ascending starts no further than ``limit`` from a range."""
    first = np.searchsorted(ordered, max(low - limit, -_MOST))
    return int(first), int(np.searchsorted(ordered, min(high + limit, _MOST), side="right"))


def _limit(span: int) -> int:
    return max(_LEAST_NS, _SPANS * span)


def plausible(start: I64, end: I64, delays: I64) -> bool:
    """Whether no event can be far and no clock differ, by the shares of coarse cells of the time line: fast.

    A recording with events further off than ten times its length lies within 4 of at least 16 cells.

    Args:
        start, end: ns, of at least one event.
        delays: ns from launch to start of device events, where known.
    """
    low, high = int(start.min()), int(start.max())
    if int(end.max()) > high + max(_LEAST_LENGTH_NS, _SPANS * (high - low)):
        return False
    if int(delays.max(initial=0)) > _LEAST_NS or int(delays.min(initial=0)) < -_LEAST_NS:
        return False
    if high - low <= _LEAST_NS:
        return True
    width = ((high - low) >> 5).bit_length()
    counts = np.zeros(32, np.int64)
    for row in range(0, len(start), _ROWS):
        counts += np.bincount((start[row : row + _ROWS] - low) >> width, minlength=32)
    cells = counts[: ((high - low) >> width) + 1]
    four = int(np.convolve(cells, np.ones(4, np.int64)).max())
    return 2 * four <= len(start) and 2 * int(np.count_nonzero(cells)) >= len(cells)


def _apart(start: I64, end: I64) -> int:
    """Longest pause in ns, if the parts before and after it are as far from each other as far events are; else 0."""
    if int(np.diff(np.sort(start)).max(initial=0)) <= _LEAST_NS:
        return 0
    order = np.argsort(start)
    begins, reach = start[order], np.maximum.accumulate(end[order])
    pauses = begins[1:] - reach[:-1]
    after = int(pauses.argmax()) + 1
    longest, span = int(pauses[after - 1]), max(int(reach[after - 1] - begins[0]), int(reach[-1] - begins[after]))
    return longest if longest > _limit(span) else 0


def away_words(away: int, length: int) -> str:
    """How far an event is from the recording: ns back to its start (below 0), on to its start or end, or 0: unknown."""
    if away > 0 and length >= away:
        return f"an end {time_words(away)} after the rest"
    return f"{time_words(abs(away))} {'after' if away > 0 else 'before'} the rest" if away else "far from its launch"


def aside_lane(
    title: str, group: int, columns: dict[str, Any], start: I64, end: I64,
    more: Callable[[int], Mapping[str, Any]] = lambda row: {},
) -> Lane:  # fmt: skip
    """The lane of set aside events that were recorded for another.

    Args:
        title, group: The lane that they were recorded for, and the group that this one is of.
        columns: Their columns, without times.
        start, end: ns as in the file, which are told among their arguments.
        more: Further arguments of the event in a row.
    """

    def arguments(row: int) -> dict[str, Any]:
        return {"ts": time_text(int(start[row])), "dur": time_text(int(end[row] - start[row])), **more(row)}

    return Lane(kind=ASIDE, group=group, label=f"{title}: set aside", columns=aside_columns(columns),
                arguments=arguments, activity=Activity.HOST, counted=False)  # fmt: skip


def aside_problem(title: str, start: I64, end: I64, away: I64, **place: Any) -> Problem:
    """The problem of set aside events of one lane.

    Args:
        title: The lane that they were recorded for.
        start, end, away: ns as in the file, and how far from the recording; not empty.
        place: Where they are now: fields of the problem.
    """
    count, first = len(start), int(start[0])
    events = f"Events of {title} have impossible times, the first" if count > 1 else \
             f"An event of {title} has an impossible time"  # fmt: skip
    what = away_words(int(away[0]), int(end[0]) - first)
    return Problem(Severity.ERROR, f"{events}: ts {time_text(first)}, {what}.",
                   "Set aside: in the table of events, in no figure and no picture.", count=count, lost=count,
                   rows=np.arange(count, dtype=np.int64), **place)  # fmt: skip


def time_text(ns: int) -> str:
    """A time of the file in us, as it stands there, but for zeros at its end."""
    whole, part = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}{f'.{part:03}'.rstrip('0').rstrip('.')}"


def time_words(ns: int) -> str:
    """A long time in the largest unit of which it holds two: 53.9 years."""
    unit, word, decimals = next((each for each in _UNITS if ns >= 2 * each[0]), _UNITS[-1])
    return f"{ns / unit:,.{decimals}f} {word}"


def clock_difference(one: tuple[I64, I64], two: tuple[I64, I64]) -> int:
    """How much the clock of the second of two ranks is ahead of the first's, ns, by collectives that both ran.

    A collective ends on all ranks at about the same time, and every rank is in it until then: if most do not overlap in
    time, one of the clocks is wrong, by the median difference of their ends; else 0.

    Args:
        one, two: Starts and ends of the same collectives, ns.
    """
    apart = np.maximum(one[0], two[0]) > np.minimum(one[1], two[1])
    return int(np.median(two[1] - one[1])) if 2 * int(apart.sum()) > len(apart) else 0


def step_numbers(labels: Sequence[str]) -> I64:
    """Numbers of steps by their labels (what follows ``ProfilerStep#``); 0, 1, 2, ... if these are not all distinct."""
    numbers = [int(label) for label in labels if label.isascii() and label.isdecimal() and len(label) < 18]
    return np.array(numbers if len(set(numbers)) == len(labels) else range(len(labels)), np.int64)


# -- when a trace was recorded, by both ends of its file: an estimate for lists of folders, which read no file whole

_NUMBER: Final = rb'"%s"\s*:\s*"?(\d{1,19}(?:\.\d{1,9})?)"?'
_TIME, _DURATION = (_NUMBER % key for key in (b"ts", b"dur"))
#: Times and durations are neighbours in events, in either order.
_EVENT: Final = lazy_pattern(rb"(?:%s\s*,\s*)?%s(?:\s*,\s*%s)?" % (_DURATION, _TIME, _DURATION))
#: Latest time in ns that is looked at.
_LATEST: Final = 1 << 61


def extent(head: bytes, tail: bytes) -> tuple[int, int] | None:
    """First start and last end of the events in the first and last bytes of a trace, without impossible ones.

    Returns:
        ns on the clock of the file; None if there is no event.
    """
    starts, ends = (np.concatenate(each) for each in zip(_times(head), _times(tail), strict=True))
    if not len(starts):
        return None
    found = judged(starts, ends)
    return found.low, found.high


def _times(text: bytes) -> tuple[I64, I64]:
    """Starts and ends in ns: of events with a duration if there are any, else of all."""
    every = [(_ns(match[2]), match[1] or match[3]) for match in _EVENT.finditer(text)]
    # a time of 0 is that of an event without one
    every = [each for each in every if 0 < each[0] < _LATEST]
    chosen = [each for each in every if each[1]] or every
    durations = [min(_ns(duration or b"0"), _LATEST) for _, duration in chosen]
    starts = np.array([start for start, _ in chosen], np.int64)
    return starts, starts + np.array(durations, np.int64)


def _ns(us: bytes) -> int:
    whole, _, part = us.partition(b".")
    return int(whole) * 1000 + int(part[:3].ljust(3, b"0"))
