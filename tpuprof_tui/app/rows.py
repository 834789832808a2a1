"""The lines of the timeline, and steps from one instruction of a lane to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..analysis.lane_index import event_at
from .session import Session
from .state import Selection, ViewState


@dataclass(frozen=True)
class Row:
    """A line of the timeline: a lane (index into ``Profile.lanes``), or a whole core where ``lane`` is -1."""

    lane: int
    core: int
    label: str
    guessed: bool
    first: bool


def rows_of(session: Session, view: ViewState) -> list[Row]:
    """The lines of the timeline for a state, in the profile's order."""
    lanes = session.profile.lanes
    numbers = session.lanes_in(view.scope)
    if view.rows == "cores" and view.scope.lane < 0:
        cores = [core for core in session.profile.cores if view.scope.core in (-1, core)]
        guessed = any(lane.role_guessed for lane in lanes)
        rows = [Row(-1, core, f"Core {core}", guessed, True) for core in cores]
        return rows + [_lane_row(session, number, True) for number in numbers if lanes[number].core < 0]
    previous = ""
    rows = []
    for number in numbers:
        rows.append(_lane_row(session, number, lanes[number].group != previous))
        previous = lanes[number].group
    return rows


def _lane_row(session: Session, number: int, first: bool) -> Row:
    lane = session.profile.lanes[number]
    return Row(number, lane.core, f"{lane.group} {lane.label}", lane.role_guessed, first)


def stepped_event(session: Session, view: ViewState, steps: int, lane: int) -> ViewState:
    """The state with the instruction ``steps`` after the selected one, or the nearest to the cursor, selected."""
    if lane < 0 or not len(session.profile.lanes[lane]):
        return view
    if view.selection.lane == lane and view.selection.row >= 0:
        row = view.selection.row + steps
    else:
        row = event_at(session.indexes[lane], view.cursor, view.full_end - view.full_start)
    row = min(max(row, 0), len(session.profile.lanes[lane]) - 1)
    start, end = session.span_of(lane, row)
    moved = view.showing(start, max(end, start + 1)).at(start)
    return replace(moved, selection=Selection(session.core_of(lane), lane, row))
