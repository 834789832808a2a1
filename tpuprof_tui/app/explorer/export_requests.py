"""Export actions: opens the export menu, confirms large exports, starts the chosen job."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tpuprof_tui.analysis.selecting.session import numbers_in
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.export.outputs import explorer_outputs, output_named
from tpuprof_tui.model.vocabulary import DETAIL

from ..overlays.overlay import ConfirmPane, Overlay
from ..settings.actions import ActionTable
from ..settings.commands import listed
from ..shell.export_jobs import Job, warning
from .command_line import CommandResult, CommandTable, fault
from .services import Services

if TYPE_CHECKING:
    from ..overlays.export import ExportMenu
    from ..shell.exports import ExportRunner


class ExportRequests:
    """Builds export jobs from the menu or a command, and starts them on the ``exports`` runner."""

    def __init__(self, services: Services, exports: ExportRunner) -> None:
        self.store, self.say, self.open_overlay = services.store, services.say, services.open_overlay
        self.palette, self.glyphs = services.palette, services.glyphs
        self.exports = exports
        self.actions: ActionTable = {
            "export": self.open_menu, "stop-export": exports.stop, "export-output": self.export
        }  # fmt: skip
        self.commands: CommandTable = {"export": self._export}

    def open_menu(self) -> None:
        """Opens the export menu."""
        from ..overlays.export import ExportPane

        menu = self._menu()
        if menu is not None:
            pane = ExportPane(menu, self.palette(), self.glyphs, self._write)
            self.open_overlay(Overlay(pane, self.palette(), menu.vocabulary, pane.field))

    def export(self, name: str) -> None:
        """Writes one kind of file to the menu's folder, with the menu's default choices."""
        menu = self._menu()
        job = menu.job(name) if menu is not None else None
        if isinstance(job, str):
            self.say(job)
        elif job is not None:
            self._write(job)

    def _export(self, text: str) -> CommandResult:
        vocabulary = self.store.session.profile.vocabulary
        output = output_named(text, vocabulary)
        if output is None:
            keys = [each.key for each in explorer_outputs(vocabulary)]
            return fault(f"kinds are {listed(keys, len(keys))}")
        return partial(self.export, output.id)

    def _menu(self) -> ExportMenu | None:
        from ..overlays.export import ExportMenu

        source = self.exports.source(self.store.session.profile)
        if not source.path:
            self.say(source.fault)
            return None
        return ExportMenu(self.store.session, self.store.state, source, self.exports)

    def _write(self, job: Job) -> None:
        """Writes an output, after those asked for before; asks first if it is large."""
        profile = self.store.session.profile
        cost = warning(job.kind, profile.vocabulary.event, self._count(job), profile.has(DETAIL))
        if not cost:
            self.exports.start(job)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.exports.start(job)

        self.open_overlay(Overlay(ConfirmPane(f"{cost} Write it?", self.palette()), self.palette()), answered)

    def _count(self, job: Job) -> int:
        """Number of instructions that a job writes, before its filter."""
        session, state = self.store.session, self.store.state
        cores, window = job.subset.selected_cores(job.core), state.figures_window if job.subset.window else None
        if not cores and window is None:
            return session.profile.instructions
        groups = session.profile.groups
        scopes = [Scope(groups.numbered(core)) for core in cores] or [Scope()]
        return sum(len(numbers_in(session, scope, window)) for scope in scopes)
