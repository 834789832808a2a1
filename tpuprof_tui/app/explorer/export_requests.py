"""The explorer's part in exports: opens the menu, asks before what is large, starts what was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen

from tpuprof_tui.analysis.selecting.session import Session, numbers_in
from tpuprof_tui.analysis.selecting.state import Scope, ViewState
from tpuprof_tui.model.vocabulary import DETAIL

from ..drawing.glyphs import Glyphs
from ..drawing.theme import Palette
from ..shell.export_kinds import Job, warning
from ..shell.exporting import ExportingApp

if TYPE_CHECKING:
    from ..overlays.export import ExportScreen


class ExportKeys(Screen[None]):
    """Actions of the explorer that write files."""

    session: Session
    view: ViewState
    palette: Palette
    glyphs: Glyphs

    def action_export(self) -> None:
        """The export menu."""
        menu = self._menu()
        if menu is not None:
            self.app.push_screen(menu, self._chosen)

    def action_stop_export(self) -> None:
        """Stops the export at work."""
        if isinstance(self.app, ExportingApp):
            self.app.stop_export()

    def action_export_output(self, name: str) -> None:
        """Writes one kind of file."""
        self.export(name)

    def export(self, name: str) -> None:
        """Writes one kind of file to the folder of the menu, with the menu's first choices."""
        from tpuprof_tui.export.outputs import output_named

        from ..shell.export_kinds import folder_fault, kind_fault

        menu = self._menu()
        if menu is None or not isinstance(self.app, ExportingApp):
            return
        kind = output_named(name, self.session.profile.vocabulary)
        fault = folder_fault(menu.folder, menu.source) or kind_fault(kind)
        if kind is None or fault:
            self.app.say(fault)
        else:
            self._chosen(menu.job(kind))

    def _menu(self) -> ExportScreen | None:
        from ..overlays.export import ExportScreen

        app = self.app
        if not isinstance(app, ExportingApp):
            return None
        source = app.source(self.session.profile)
        if not source.path:
            app.say(source.fault)
            return None
        return ExportScreen(self.session, self.view, source, app.exporter, self.palette, self.glyphs)

    def _chosen(self, job: Job | None) -> None:
        app = self.app
        if job is None or not isinstance(app, ExportingApp):
            return
        profile = self.session.profile
        told = warning(job.kind, profile.vocabulary.event, self._count(job), profile.has(DETAIL))
        if not told or app.exporter.running is not None:
            app.start_export(job)
            return
        from ..overlays.confirm import ConfirmScreen

        def answered(yes: bool | None) -> None:
            if yes and isinstance(app, ExportingApp):
                app.start_export(job)

        app.push_screen(ConfirmScreen(f"{told} Write it?", self.palette), answered)

    def _count(self, job: Job) -> int:
        """Instructions a job writes, those a filter leaves out included."""
        cores, window = job.part.chosen(job.core), self.view.figures_window if job.part.window else None
        if not cores and window is None:
            return self.session.profile.instructions
        groups = self.session.profile.groups
        scopes = [Scope(groups.numbered(core)) for core in cores] or [Scope()]
        return sum(len(numbers_in(self.session, scope, window)) for scope in scopes)
