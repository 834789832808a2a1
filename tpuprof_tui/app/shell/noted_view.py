"""The view that a capture opens with: as the notes beside it left it, at the place that was asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tpuprof_tui.errors import TpuprofError

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.analysis.selecting.state import Place, ViewState


@dataclass(frozen=True)
class NotedView:
    """A view with its notes.

    Attributes:
        view: The view.
        notes: The file of the notes; None: they are not kept.
        told: What was wrong with notes or place, in a sentence; empty: nothing.
    """

    view: ViewState
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


def noted_view(session: Session, view: ViewState, path: Path | None, place: Place | None) -> NotedView:
    """A view with the notes in a file and at the place asked for."""
    from tpuprof_tui.analysis.selecting.filters import compile_filter
    from tpuprof_tui.analysis.selecting.notes import NotesError, read_notes
    from tpuprof_tui.analysis.selecting.place import at_place

    told = ""
    try:
        if path is not None:
            view = read_notes(path).in_view(view)
    except NotesError as error:
        # what somebody else wrote there stays
        path, told = None, f"Notes are kept until tpuprof is left: {error.message}"
    try:
        compile_filter(view.filter, session.profile)
    except TpuprofError:
        view = replace(view, filter="")
    try:
        view = view if place is None else at_place(session, view, place)
    except TpuprofError as error:
        told = f"{error.message} {error.hint or ''}".strip()
    return NotedView(view, path, told)
