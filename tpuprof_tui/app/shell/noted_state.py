"""What the screen of a capture shows first: as the notes beside it left it, at the place that was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.errors import TpuprofError

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.analysis.selecting.state import DisplayState, Place


class NotedState(Struct, frozen=True):
    """What the screen shows, with its notes.

    Attributes:
        state: What the screen shows.
        notes: The file of the notes; None: they are not kept.
        told: What was wrong with notes or place, in a sentence; empty: nothing.
    """

    state: DisplayState
    notes: Path | None
    told: str = ""


def notes_file(session: Session, notes: str | None) -> Path | None:
    """The file of the notes about a capture.

    Args:
        session: The capture.
        notes: The file that was named; empty: beside the capture; None: notes are not kept.
    """
    from tpuprof_tui.analysis.selecting.notes import notes_path

    if notes is None:
        return None
    return Path(notes) if notes else notes_path(session.profile)


def noted_state(session: Session, state: DisplayState, path: Path | None, place: Place | None) -> NotedState:
    """The state with the notes in a file and at the place asked for."""
    from tpuprof_tui.analysis.selecting.filters import compile_filter
    from tpuprof_tui.analysis.selecting.notes import NotesError, read_notes
    from tpuprof_tui.analysis.selecting.place import at_place

    told = ""
    try:
        if path is not None:
            state = read_notes(path).applied_to(state)
    except NotesError as error:
        # what somebody else wrote there stays
        path, told = None, f"Notes are kept until tpuprof is left: {error.message}"
    try:
        compile_filter(state.filter, session.profile)
    except TpuprofError:
        state = replace(state, filter="")
    try:
        state = state if place is None else at_place(session, state, place)
    except TpuprofError as error:
        told = f"{error.message} {error.hint or ''}".strip()
    return NotedState(state, path, told)
