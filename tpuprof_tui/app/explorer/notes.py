"""Saves notes (marks, spans, their texts) to a file on change, and copies the current place as a command line."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.navigation import place_of, place_words, report_words
from tpuprof_tui.analysis.selecting.notes import Notes, set_note_text, write_notes
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.formats.files import WriteError

from ..settings.actions import ActionTable
from .command_line import CommandResult, CommandTable, fault
from .services import Services


class NoteSaver:
    """Writes notes to a file; without a path they are lost when the screen closes."""

    def __init__(self, services: Services, path: Path | None) -> None:
        self.store, self.background, self.say = services.store, services.background, services.say
        self.copy = services.copy
        self.path = path
        self._written = Notes.of(self.store.state)
        self._writing = Lock()
        self.manager = services.manager
        self.prompting = services.prompting
        self.commands: CommandTable = {"note": self._note, "place": self._place}
        self.actions: ActionTable = {"copy-command": self._copy_command}

    def changed(self, old: DisplayState) -> None:
        """Saves the notes if the state change affected them; a filter is saved only along with marks or spans."""
        notes = Notes.of(self.store.state)
        if self.path is not None and notes != Notes.of(old) and (notes.any or self._written.any):
            self._written = notes
            self.background.compute("notes", self._write, self._report_error)

    def _write(self) -> str:
        """Writes the latest notes; returns the error message, empty on success."""
        with self._writing:
            try:
                if self.path is not None:
                    write_notes(self.path, self._written)
            except WriteError as error:
                return error.message
        return ""

    def _report_error(self, reason: str) -> None:
        if reason:
            self.path = None
            self.say(f"Notes are kept until tpuprof ends: {reason} --notes FILE keeps them elsewhere.")

    def _note(self, text: str) -> CommandResult:
        letter, _, words = text.strip().partition(" ")
        state = self.store.state
        letters = sorted([*dict(state.marks), *(letter for letter, _, _ in state.spans)])
        if letter not in letters:
            return fault(f"the letter of a mark or span, then the text; there are {', '.join(letters) or 'none'}")
        self.store.change(set_note_text(state, letter, words.strip()))
        return lambda: self.say(f"Note of {letter}: {words.strip()}" if words.strip() else f"No note of {letter}.")

    def _place(self, text: str) -> CommandResult:
        return self._copy_command

    def _copy_command(self) -> None:
        """Copies the command line of what is shown: of its figures if the summary has the focus."""
        session, state, summary = self.store.session, self.store.state, self.manager.panes.summary
        times = Query.of_state(session, state.figures_state, state.scope).range
        path, place = session.profile.path, place_of(session, state, times, summary.answers.chosen)
        if self.prompting.pane is summary:
            return self.copy(report_words(path, place), "command")
        against = session.baseline.profile.path if session.baseline is not None else ""
        return self.copy(place_words(path, place, session.profile.notes, against), "command")
