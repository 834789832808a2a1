"""Moving in time: typed times, marks, ranges, and the next instruction of the same name."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.formats.parsing import TypedError, range_text, range_typed, time_typed
from tpuprof_tui.model import INT_MISSING, Device

from ..index.lane_index import event_at
from .filter_masks import is_known, passing
from .session import Ints, Session
from .state import Selection, ViewState
from .time_scale import TIME, Measure, base_of_view, measure_of

Chosen = npt.NDArray[np.bool_]

#: Rows looked at together while a name is sought.
_ROWS: Final = 65_536


def time_of(text: str, view: ViewState, device: Device | None = None) -> int:
    """The time that a text names (``formats.typed``), inside the capture, ns.

    Args:
        text: What was typed.
        view: Says how long the capture is, and where the cursor stands.
        device: Says how long a cycle is; None: nobody knows.

    Raises:
        TypedError: The text is no time, or one outside the capture.
    """
    time = time_typed(text, base_of_view(view, device))
    # the end is the first that is no more in it
    time = min(time, view.full_end - 1) if time == view.full_end and "%" in text else time
    if not view.full_start <= time < view.full_end:
        measure = TIME if device is None else measure_of(device, view.scale)
        raise TypedError(f"outside: the capture is {measure.exact(view.full_start)} to {measure.exact(view.full_end)}")
    return time


def window_of(text: str, view: ViewState, device: Device | None = None) -> tuple[int, int]:
    """The part of the capture that a range names, ns; a side that is left out is the capture's.

    Raises:
        TypedError: The text is no range, or nothing of the capture lies in it.
    """
    start, end = range_typed(text, base_of_view(view, device))
    start = view.full_start if start is None else max(start, view.full_start)
    end = view.full_end if end is None else min(end, view.full_end)
    if end <= start:
        measure = TIME if device is None else measure_of(device, view.scale)
        raise TypedError(f"outside: the capture is {measure.exact(view.full_start)} to {measure.exact(view.full_end)}")
    return start, end


def gone_to(view: ViewState, time: int) -> ViewState:
    """The cursor at a time; a window that did not show it has it in the middle."""
    return view.showing(time, time + 1).at(time)


# marks


def marked(view: ViewState, letter: str) -> ViewState:
    """The cursor's time marked with a letter; a letter that stands there already is taken away."""
    gone = (letter, view.cursor) in view.marks
    view = without_mark(view, letter)
    return view if gone else replace(view, marks=tuple(sorted((*view.marks, (letter, view.cursor)))))


def spanned(view: ViewState, letter: str, start: int, end: int) -> ViewState:
    """A span of time kept under a letter; a letter that holds that span already is taken away."""
    gone = (letter, start, end) in view.spans
    view = without_mark(view, letter)
    return view if gone else replace(view, spans=tuple(sorted((*view.spans, (letter, start, end)))))


def without_mark(view: ViewState, letter: str) -> ViewState:
    """The state without what a letter stands for."""
    return replace(
        view, marks=tuple(mark for mark in view.marks if mark[0] != letter),
        spans=tuple(span for span in view.spans if span[0] != letter),
        texts=tuple(text for text in view.texts if text[0] != letter),
    )  # fmt: skip


def span_at_hand(view: ViewState, session: Session) -> tuple[int, int]:
    """The span that is kept when nothing else is said: the range, the selected instruction, or the window."""
    if view.range is not None:
        return view.range
    return _selected_span(view, session) or (view.start, view.end)


def _selected_span(view: ViewState, session: Session) -> tuple[int, int] | None:
    """Start and end of the selected instruction, 1 ns at least; None where none is selected or it has no times."""
    if view.selection.row < 0:
        return None
    start, end = session.span_of(view.selection.lane, view.selection.row)
    return None if start == INT_MISSING else (start, max(end, start + 1))


def gone_to_mark(view: ViewState, letter: str) -> ViewState | None:
    """The cursor at a mark, or a kept span as the range and in view; None where the letter stands for nothing."""
    time = dict(view.marks).get(letter)
    if time is not None:
        return gone_to(view, time)
    for name, start, end in view.spans:
        if name == letter:
            return replace(view.showing(start, end).at(start), range=(start, end), anchor=None)
    return None


def nearest_start(session: Session, numbers: Ints, time: int) -> int:
    """Of some instructions the one that starts nearest to a time, the first of equals; O(numbers).

    Args:
        session: All instructions.
        numbers: int64, their numbers, at least one.
        time: ns.
    """
    apart = np.empty(len(numbers), np.int64)
    lanes = np.searchsorted(session.offsets, numbers, side="right") - 1
    for number, lane in enumerate(session.profile.lanes):
        mine = np.flatnonzero(lanes == number)
        apart[mine] = np.abs(lane.take("start", numbers[mine] - session.offsets[number]) - time)
    return int(numbers[apart.argmin()])


def marks_text(view: ViewState, measure: Measure = TIME) -> str:
    """All marks and their times, all spans and their lengths."""
    told = [f"{letter} {measure.exact(time)}" for letter, time in view.marks]
    told += [f"{letter} {measure.length(end - start)} from {measure.exact(start)}" for letter, start, end in view.spans]
    return ", ".join(told)


def measured_text(view: ViewState, measure: Measure = TIME) -> str:
    """What is measured: the range's length, or the distance of two marks, or of the cursor from the nearest one."""
    if view.range is not None:
        return f"range {measure.length(view.range[1] - view.range[0])}"
    if view.anchor is not None:
        return f"range begun, {measure.length(abs(view.cursor - view.anchor))} so far"
    if len(view.marks) == 2:
        (first, one), (second, other) = view.marks
        return f"{first} to {second} {measure.length(abs(other - one))}"
    if view.marks:
        # of many marks the nearest says most
        letter, time = min(view.marks, key=lambda mark: abs(mark[1] - view.cursor))
        return f"from {letter} {measure.length(abs(view.cursor - time))}"
    return ""


# ranges


def ranged(view: ViewState, session: Session) -> tuple[ViewState, str]:
    """The state after the key for ranges, and what to say about it.

    A range that was begun ends at the cursor; else the selected instruction becomes the range, or none again if it
    was; else a range begins at the cursor.
    """
    measure = measure_of(session.profile.device, view.scale)
    selection = view.selection
    if view.anchor is not None:
        start, end = sorted((view.anchor, view.cursor))
        if start == end:
            return view, "The range begins here: move the cursor, then r again; Esc forgets it."
        return replace(view, range=(start, end), anchor=None), f"Range of {measure.length(end - start)}; Esc clears it."
    if selection.row >= 0:
        span = _selected_span(view, session)
        if span is None:
            return view, "What is selected has no times."
        if view.range == span:
            return replace(view, range=None), "No range."
        return replace(view, range=span), f"Range of {measure.length(span[1] - span[0])}; Esc clears it."
    return replace(view, anchor=view.cursor, range=None), "Range begins at the cursor: move it, then r again ends it."


# copies


def copied_range(view: ViewState) -> str:
    """The range, else the window, as ``--range`` takes it."""
    start, end = view.figures_window
    return range_text(start, end)


# names


def same_name(session: Session, lane_number: int, row: int, steps: int, passes: Chosen | None = None) -> int:
    """Row of the next (``steps`` 1) or previous (-1) instruction of a lane with the name of ``row``; -1 without one.

    Looks through the lane in pieces: O(instructions between the two). Where ``passes`` says of each instruction of the
    lane whether it passes the filter, the others are stepped over.
    """
    lane = session.profile.lanes[lane_number]
    if "name" not in lane:
        return -1
    name = int(lane.take("name", slice(row, row + 1))[0])
    place = row + 1 if steps > 0 else row
    while name >= 0 and (place < len(lane) if steps > 0 else place > 0):
        low, high = (place, min(place + _ROWS, len(lane))) if steps > 0 else (max(place - _ROWS, 0), place)
        alike = lane.take("name", slice(low, high)) == name
        found = np.flatnonzero(alike if passes is None else alike & passes[low:high])
        if len(found):
            return low + int(found[0] if steps > 0 else found[-1])
        place = high if steps > 0 else low
    return -1


def selected(session: Session, view: ViewState, lane: int, row: int) -> ViewState:
    """The state with an instruction selected and in view, the cursor at its start."""
    start, end = session.span_of(lane, row)
    moved = view.showing(start, max(end, start + 1)).at(start)
    return replace(moved, selection=Selection(session.unit_of(lane), lane, row))


# events of a lane


def event_at_cursor(session: Session, view: ViewState, lane: int, near: int) -> int:
    """Row of the event of a lane at the cursor, or the nearest no more than ``near`` ns away; -1 without one."""
    index = session.indexes[lane]
    return event_at(index, view.cursor, near) if len(index.lane) else -1


def _nearest_passing(session: Session, view: ViewState, lane: int, row: int, steps: int) -> int:
    """The first row from ``row`` on that passes the filter, in the direction of the steps; -1 without one."""
    rows = np.flatnonzero(passing(session, view.filter).lane(lane))
    if steps < 0:
        place = int(np.searchsorted(rows, row, side="right")) - 1
    else:
        place = int(np.searchsorted(rows, row, side="left"))
    return int(rows[place]) if 0 <= place < len(rows) else -1


def stepped_event(session: Session, view: ViewState, steps: int, lane: int) -> ViewState:
    """The state with the instruction ``steps`` after the selected one, or the nearest to the cursor, selected.

    With a filter those it hides are stepped over.
    """
    if lane < 0 or not len(session.profile.lanes[lane]):
        return view
    if view.selection.lane == lane and view.selection.row >= 0:
        row = view.selection.row + steps
    else:
        row = event_at(session.indexes[lane], view.cursor, view.full_end - view.full_start)
    if view.filter and is_known(session, view.filter):
        row = _nearest_passing(session, view, lane, row, steps)
        if row < 0:
            return view
    return selected(session, view, lane, min(max(row, 0), len(session.profile.lanes[lane]) - 1))
