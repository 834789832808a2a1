"""Initial display state of a capture: carried over from the previous one, or from its notes and the place asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, Selection
from tpuprof_tui.errors import TpuprofError

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.analysis.selecting.state import Place
    from tpuprof_tui.model import Lane, Profile


def _path_of(profile: Profile, lane: Lane) -> tuple[str, ...]:
    """Labels of a lane and of all enclosing groups, the outermost first."""
    return (*profile.groups.path(lane.group), lane.label)


def carried_state(state: DisplayState, old: Profile, session: Session) -> DisplayState:
    """Carries a state over to another profile: window, scope, marks, range, sort and filter as far as they fit.

    Groups and lanes are matched by their labels; an instruction stays selected if the same row of the same lane starts
    at the same time.
    """
    new = session.profile
    fresh = DisplayState.of(new.start_ns, new.end_ns)
    lanes = {_path_of(new, lane): number for number, lane in enumerate(new.lanes)}

    def new_lane(lane: int) -> int:
        return lanes.get(_path_of(old, old.lanes[lane]), -1) if 0 <= lane < len(old.lanes) else -1

    def new_group(old_group: int) -> int:
        return new.groups.at_path(old.groups.path(old_group)) if old_group >= 0 else -1

    def new_row(lane: int, number: int) -> int:
        index = new_lane(lane)
        return number if index >= 0 and _start(new.lanes[index], number) == _start(old.lanes[lane], number) else -1

    same_counters = [each.name for each in old.counters] == [each.name for each in new.counters]
    scope, chosen = state.scope, state.selection
    selection = Selection(new_group(chosen.group), new_lane(chosen.lane), new_row(chosen.lane, chosen.row))
    carried = replace(
        state,
        full_start=fresh.full_start, full_end=fresh.full_end,
        selection=selection,
        scope=Scope(new_group(scope.group), new_lane(scope.lane)),
        picked=(),
        marks=tuple(mark for mark in state.marks if fresh.start <= mark[1] < fresh.end),
        spans=tuple(span for span in state.spans if fresh.start <= span[1] and span[2] <= fresh.end),
        range=state.range if state.range and fresh.start <= state.range[0] and state.range[1] <= fresh.end else None,
        anchor=state.anchor if state.anchor is not None and fresh.start <= state.anchor < fresh.end else None,
        pinned=tuple((new_lane(lane) if lane >= 0 else lane, new_group(unit), line) for lane, unit, line in state.pinned
                     if (new_lane(lane) >= 0 if lane >= 0 else new_group(unit) >= 0) and (same_counters or line < 0)),
        unfolded=state.unfolded if same_counters else (),
        opened=tuple(lane for each in state.opened if (lane := new_lane(each)) >= 0),
    )  # fmt: skip
    start, end = state.viewed or (fresh.start, fresh.end)
    carried = carried.windowed(start, end - start)
    return carried if state.fits_all else carried.scrolled(state.start, state.span)


def _start(lane: Lane, row: int) -> int | None:
    return int(lane.take("start", slice(row, row + 1))[0]) if 0 <= row < len(lane) else None


def apply_notes_and_place(
    session: Session, state: DisplayState, path: Path | None, place: Place | None
) -> tuple[DisplayState, Path | None, str]:  # fmt: skip
    """Applies the notes in a file and the place asked for to a state.

    Returns:
        The state; the notes file, None if notes are not saved; an error sentence, or an empty text.
    """
    from tpuprof_tui.analysis.selecting.filters import compile_filter
    from tpuprof_tui.analysis.selecting.navigation import at_place
    from tpuprof_tui.analysis.selecting.notes import NotesError, read_notes

    error_text = ""
    try:
        if path is not None:
            state = read_notes(path).applied_to(state)
    except NotesError as error:
        # never overwrite a file that is not ours
        path, error_text = None, f"Notes are kept until tpuprof ends: {error.message}"
    try:
        compile_filter(state.filter, session.profile)
    except TpuprofError:
        state = replace(state, filter="")
    try:
        state = state if place is None else at_place(session, state, place)
    except TpuprofError as error:
        error_text = f"{error.message} {error.hint or ''}".strip()
    return state, path, error_text
