"""Moves of what the screen shows: to typed times and places, marks, ranges, the next event of a name, or pause."""

from __future__ import annotations

import shlex
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.errors import UsageError
from tpuprof_tui.formats.parsing import TypedError, range_text, range_typed, time_typed
from tpuprof_tui.model import INT_MISSING, Device, Groups, Lane, Profile
from tpuprof_tui.model.intervals import Intervals

from ..index.lane_index import event_at
from .filter_masks import apply_filter, is_filter_cached
from .filters import compile_filter
from .session import Ints, Session
from .state import DisplayState, Place, Scope, SelectedItem
from .time_scale import TIME, Measure, base_of, base_of_state, measure_of

Chosen = npt.NDArray[np.bool_]

#: Rows per chunk when searching for a name.
_ROWS: Final = 65_536


def parse_time(text: str, state: DisplayState, device: Device | None = None) -> int:
    """Parses a time (``formats.parsing``), ns; TypedError if invalid or outside the capture."""
    time = time_typed(text, base_of_state(state, device))
    # the end itself is outside; "100%" means the last ns
    time = min(time, state.full_end - 1) if time == state.full_end and "%" in text else time
    if not state.full_start <= time < state.full_end:
        raise _outside(state, device)
    return time


def _outside(state: DisplayState, device: Device | None) -> TypedError:
    measure = TIME if device is None else measure_of(device, state.scale)
    return TypedError(f"outside: the capture is {measure.exact(state.full_start)} to {measure.exact(state.full_end)}")


def parse_window(text: str, state: DisplayState, device: Device | None = None) -> tuple[int, int]:
    """Parses a range of time and clips it to the capture, ns; TypedError if nothing is left."""
    start, end = range_typed(text, base_of_state(state, device))
    start = state.full_start if start is None else max(start, state.full_start)
    end = state.full_end if end is None else min(end, state.full_end)
    if end <= start:
        raise _outside(state, device)
    return start, end


def go_to(state: DisplayState, time: int) -> DisplayState:
    """The state with the cursor at a time, the window centered on it if it was not visible."""
    return state.showing(time, time + 1).at(time)


# marks


def toggle_mark(state: DisplayState, letter: str) -> DisplayState:
    """Toggles a mark: sets the letter at the cursor, or removes it if it is there already."""
    return _toggle(state, "marks", (letter, state.cursor))


def _toggle(state: DisplayState, key: str, entry: tuple[Any, ...]) -> DisplayState:
    present = entry in getattr(state, key)
    state = without_mark(state, entry[0])
    return state if present else replace(state, **{key: tuple(sorted((*getattr(state, key), entry)))})


def toggle_span(state: DisplayState, letter: str, start: int, end: int) -> DisplayState:
    """Toggles a span: stores it under a letter, or removes it if the letter holds that span already."""
    return _toggle(state, "spans", (letter, start, end))


def without_mark(state: DisplayState, letter: str) -> DisplayState:
    """The state without the mark or span of a letter, and without its text."""
    return replace(
        state,
        marks=tuple(mark for mark in state.marks if mark[0] != letter),
        spans=tuple(span for span in state.spans if span[0] != letter),
        texts=tuple(text for text in state.texts if text[0] != letter),
    )


def default_span(state: DisplayState, session: Session) -> tuple[int, int]:
    """The default span to store: the range, else the selected event, else the window."""
    if state.range is not None:
        return state.range
    return selected_span(state, session) or (state.start, state.end)


def selected_span(state: DisplayState, session: Session) -> tuple[int, int] | None:
    """Start and end of the selected event or pause, at least 1 ns apart; None: no selection, or no times."""
    if state.selection.row < 0:
        return state.selection.pause
    start, end = session.span_of(state.selection.lane, state.selection.row)
    return None if start == INT_MISSING else (start, max(end, start + 1))


def go_to_mark(state: DisplayState, letter: str) -> DisplayState | None:
    """The state with the cursor at a mark, or with a stored span as the range; None if the letter is unused."""
    time = dict(state.marks).get(letter)
    if time is not None:
        return go_to(state, time)
    for name, start, end in state.spans:
        if name == letter:
            return replace(state.showing(start, end).at(start), range=(start, end), anchor=None)
    return None


def nearest_start(session: Session, numbers: Ints, time: int) -> int:
    """The event (number) whose start is nearest to a time, the first of equals; requires one. O(numbers)."""
    distances = np.empty(len(numbers), np.int64)
    lanes = np.searchsorted(session.offsets, numbers, side="right") - 1
    for number, lane in enumerate(session.profile.lanes):
        indexes = np.flatnonzero(lanes == number)
        distances[indexes] = np.abs(lane.take("start", numbers[indexes] - session.offsets[number]) - time)
    return int(numbers[distances.argmin()])


def marks_text(state: DisplayState, measure: Measure = TIME) -> str:
    """All marks with their times and all spans with their lengths, as text."""
    texts = [f"{letter} {measure.exact(time)}" for letter, time in state.marks]
    texts += [
        f"{letter} {measure.length(end - start)} from {measure.exact(start)}" for letter, start, end in state.spans
    ]
    return ", ".join(texts)


def measured_text(state: DisplayState, measure: Measure = TIME) -> str:
    """The current measurement as text: the range's length, the distance of two marks, or from the nearest mark."""
    if state.range is not None:
        return f"range {measure.length(state.range[1] - state.range[0])}"
    if state.anchor is not None:
        return f"range started, {measure.length(abs(state.cursor - state.anchor))} so far"
    if len(state.marks) == 2:
        (first, one), (second, other) = state.marks
        return f"{first} to {second} {measure.length(abs(other - one))}"
    if state.marks:
        # of many marks the nearest one is most likely meant
        letter, time = min(state.marks, key=lambda mark: abs(mark[1] - state.cursor))
        return f"from {letter} {measure.length(abs(state.cursor - time))}"
    return ""


# ranges


def toggle_range(state: DisplayState, session: Session) -> tuple[DisplayState, str]:
    """Handles the range key: the new state, and a message for the status line.

    It ends a started range at the cursor; else toggles the selected event as the range; else starts a range at
    the cursor.
    """
    measure = measure_of(session.profile.device, state.scale)
    selection = state.selection
    if state.anchor is not None:
        start, end = sorted((state.anchor, state.cursor))
        if start == end:
            return state, "The range starts here: move the cursor, then r again; Esc cancels."
        return replace(
            state, range=(start, end), anchor=None
        ), f"Range of {measure.length(end - start)}; Esc clears it."
    if selection.row >= 0 or selection.pause:
        span = selected_span(state, session)
        if span is None:
            return state, "The selection has no times."
        if state.range == span:
            return replace(state, range=None), "No range."
        return replace(state, range=span), f"Range of {measure.length(span[1] - span[0])}; Esc clears it."
    return replace(state, anchor=state.cursor, range=None), "Range starts at the cursor: move it, then r again ends it."


# names


def same_name(session: Session, lane_number: int, row: int, steps: int, passes: Chosen | None = None) -> int:
    """Row of the next (``steps`` 1) or previous (-1) event of a lane with the same name as ``row``; -1: none.

    Scans the lane in chunks: O(events between the two). ``passes``: mask over the lane's rows of those that pass
    the filter; the others are skipped.
    """
    lane = session.profile.lanes[lane_number]
    if "name" not in lane:
        return -1
    name = int(lane.take("name", slice(row, row + 1))[0])
    first = row + 1 if steps > 0 else row
    while name >= 0 and (first < len(lane) if steps > 0 else first > 0):
        low, high = (first, min(first + _ROWS, len(lane))) if steps > 0 else (max(first - _ROWS, 0), first)
        alike = lane.take("name", slice(low, high)) == name
        found = np.flatnonzero(alike if passes is None else alike & passes[low:high])
        if len(found):
            return low + int(found[0] if steps > 0 else found[-1])
        first = high if steps > 0 else low
    return -1


def select_event(session: Session, state: DisplayState, lane: int, row: int) -> DisplayState:
    """The state with an event selected and visible, and the cursor at its start."""
    start, end = session.span_of(lane, row)
    moved = state.showing(start, max(end, start + 1)).at(start)
    return replace(moved, selection=SelectedItem(session.unit_of(lane), lane, row))


def step_event(session: Session, state: DisplayState, steps: int, lane: int) -> DisplayState:
    """Selects the event ``steps`` after the selected one, else the one nearest to the cursor; respects the filter."""
    if lane < 0 or not len(session.profile.lanes[lane]):
        return state
    if state.selection.lane == lane and state.selection.row >= 0:
        row = state.selection.row + steps
    else:
        row = event_at(session.indexes[lane], state.cursor, state.full_end - state.full_start)
    if state.filter and is_filter_cached(session, state.filter):
        # the first event in the direction of the steps that passes
        rows = np.flatnonzero(apply_filter(session, state.filter).lane(lane))
        rows = rows[rows <= row][-1:] if steps < 0 else rows[rows >= row][:1]
        if not len(rows):
            return state
        row = int(rows[0])
    return select_event(session, state, lane, min(max(row, 0), len(session.profile.lanes[lane]) - 1))


# pauses


def pause_at(session: Session, selection: SelectedItem, state: DisplayState, time: int) -> tuple[int, int] | None:
    """The pause of the selected lane, else unit, at a time; None: it works then."""
    work, extent = _work(session, selection), (state.full_start, state.full_end)
    number = int(np.searchsorted(work.ends, time, side="right"))
    start, end = _pauses(work, extent, number, number + 1)
    return (int(start[0]), int(end[0])) if start[0] <= time < end[0] else None


def next_pause(session: Session, state: DisplayState, steps: int, least: int) -> tuple[int, int] | None:
    """The next (``steps`` 1) or previous (-1) pause of the selected lane, else unit, of at least ``least`` ns.

    From the selected pause on, else from the cursor. Scans in chunks: O(pauses between the two).
    """
    work, extent = _work(session, state.selection), (state.full_start, state.full_end)
    selected = state.selection.pause
    time = state.cursor if selected is None else selected[0]
    first = int(np.searchsorted(work.ends, time, side="right"))
    if selected is None:
        # later pauses begin with the one at the cursor, earlier ones before it or before the work there
        first += first < len(work) and bool(work.starts[first] <= time)
    elif steps > 0:
        first += 1
    while first <= len(work) if steps > 0 else first > 0:
        low, high = (first, min(first + _ROWS, len(work) + 1)) if steps > 0 else (max(first - _ROWS, 0), first)
        starts, ends = _pauses(work, extent, low, high)
        found = np.flatnonzero(ends - starts >= max(least, 1))
        if len(found):
            place = found[0 if steps > 0 else -1]
            return int(starts[place]), int(ends[place])
        first = high if steps > 0 else low
    return None


def _work(session: Session, selection: SelectedItem) -> Intervals:
    if selection.lane >= 0:
        return session.indexes[selection.lane].work
    unit = session.indexes.by_unit.get(selection.group)
    return Intervals.empty() if unit is None else unit.busy


def _pauses(work: Intervals, extent: tuple[int, int], low: int, high: int) -> tuple[Ints, Ints]:
    """Starts and ends of the pauses ``low`` to ``high`` - 1; pause i is before work i, the last one after all work."""
    starts = work.ends[max(low - 1, 0) : high - 1]
    ends = work.starts[low:high]
    return (np.append(extent[0], starts) if low == 0 else starts,
            np.append(ends, extent[1]) if high > len(work) else ends)  # fmt: skip


def select_pause(state: DisplayState, selection: SelectedItem, pause: tuple[int, int]) -> DisplayState:
    """The state with a pause selected and visible, and the cursor at its start."""
    return replace(state.showing(*pause).at(pause[0]), selection=replace(selection, row=-1, pause=pause))


def at_place(session: Session, state: DisplayState, place: Place) -> DisplayState:
    """The state that shows a place; UsageError if the profile has no such place."""
    profile = session.profile
    scope = scope_named(profile, place.unit_number, place.group)
    if place.filter:
        compile_filter(place.filter, profile)
        state = replace(state, filter=place.filter)
    state = replace(state, scope=scope, selection=replace(state.selection, group=scope.group))
    if place.select:
        state = select_event(session, state, *_event_named(profile, place.select))
    if place.range:
        first, last = range_typed(place.range, base_of(profile))
        start = max(state.full_start if first is None else first, state.full_start)
        end = min(state.full_end if last is None else last, state.full_end)
        if end <= start:
            raise UsageError(f"The capture has nothing in {place.range}.")
        cursor = state.cursor
        state = replace(state.windowed(start, end - start), range=(start, end))
        state = state.at(cursor) if place.select and start <= cursor < end else state
    return state


def place_of(session: Session, state: DisplayState, times: tuple[int, int] | None, view: str = "") -> Place:
    """The place that a state shows; ``times``: the range that its figures are of, None: the whole."""
    profile, scope = session.profile, state.scope
    group = scope.group
    number = profile.groups[group].number if group >= 0 and group in profile.units else -1
    number = number if [profile.groups[unit].number for unit in profile.units].count(number) == 1 else -1
    named = "" if group < 0 or number >= 0 else "/".join(profile.groups.path(group))
    if scope.lane >= 0:
        named = _lane_path(profile, profile.lanes[scope.lane])
    shown = "" if times is None else range_text(*times)
    select = ""
    if state.selection.row >= 0:
        lane = profile.lanes[state.selection.lane]
        title = profile.title_of(lane)
        alone = [profile.title_of(each) for each in profile.lanes].count(title) == 1
        select = f"{title if alone else state.selection.lane}:{state.selection.row}"
    return Place(shown, number if number >= 0 else None, named, state.filter, select, view)


def place_words(path: str, place: Place, notes: str = "", against: str = "") -> str:
    """The shell command line that opens a place; ``against``: path of the baseline, if any."""
    return _command(["tpuprof", path], place, ("--select", place.select), ("--view", place.view), ("--notes", notes),
                    ("--against", against))  # fmt: skip


def report_words(path: str, place: Place) -> str:
    """The shell command line that prints the figures of a place."""
    return _command(["tpuprof", "report", path, *([place.view] if place.view else [])], place)


def _command(words: list[str], place: Place, *more: tuple[str, str]) -> str:
    for flag, value in (
        ("--range", place.range), ("--core", "" if place.unit_number is None else str(place.unit_number)),
        ("--group", place.group), ("--filter", place.filter), *more,
    ):  # fmt: skip
        words += [flag, value] if value and not value.startswith("-") else [f"{flag}={value}"] if value else []
    return shlex.join(words)


def scope_named(profile: Profile, unit_number: int | None, group: str | None) -> Scope:
    """The scope of a unit's number, or of a group's or lane's name, else of all.

    Raises:
        UsageError: There is none, or there are several.
    """
    groups = profile.groups
    if unit_number is not None:
        say, found = profile.vocabulary.say, [unit for unit in groups.units if groups[unit].number == unit_number]
        if not found:
            known = ", ".join(map(str, groups.numbers)) or "none"
            raise UsageError(say(f"The capture has no {{unit}} {unit_number}."), say(f"Its {{units}}: {known}."))
        if len(found) > 1:
            raise UsageError(say(f"There are {len(found)} recordings of {{unit}} {unit_number}."),
                             f"Name one with --group: {', '.join(_path(groups, each) for each in found)}.")  # fmt: skip
        return Scope(found[0])
    if not group:
        return Scope()
    name = group.casefold()
    # a rank that is guessed is marked, but has its name without the mark too
    named = [each for each in range(len(groups)) if name in (
        label := groups[each].label.casefold(), label.removesuffix(" ~"), _path(groups, each))]  # fmt: skip
    lanes = [number for number, lane in enumerate(profile.lanes)
             if name in (profile.title_of(lane).casefold(), _lane_path(profile, lane).casefold())]  # fmt: skip
    if not named and len(lanes) == 1:
        return Scope(lane=lanes[0])
    if not named and name.isdecimal():
        named = [groups.numbered(int(name))]
    if not named or named[0] < 0:
        raise UsageError(
            f"There is no group {group!r}.", f"There are: {', '.join(dict.fromkeys(group.label for group in groups))}."
        )
    if len(named) > 1:
        raise UsageError(f"Several groups are called {group!r}.",
                         f"Write one of: {', '.join(_path(groups, each) for each in named)}.")  # fmt: skip
    return Scope(named[0])


def _lane_path(profile: Profile, lane: Lane) -> str:
    return "/".join((*profile.groups.path(lane.group), lane.label))


def _path(groups: Groups, index: int) -> str:
    return "/".join(groups.path(index)).casefold()


def _event_named(profile: Profile, text: str) -> tuple[int, int]:
    title, _, row = text.rpartition(":")
    titles = [profile.title_of(lane).casefold() for lane in profile.lanes]
    lane = titles.index(title.casefold()) if title.casefold() in titles else -1
    if lane < 0 and title.isdecimal() and len(title) < 10 and int(title) < len(titles):
        lane = int(title)
    if lane < 0:
        raise UsageError(f"There is no lane {title!r} to select an event of.", "Write LANE:ROW as :place prints it.")
    if not row.isdecimal() or len(row) > 18 or int(row) >= len(profile.lanes[lane]):
        raise UsageError(f"{text!r} is not an event: {title} has {len(profile.lanes[lane]):,}, numbered from 0.")
    return lane, int(row)
