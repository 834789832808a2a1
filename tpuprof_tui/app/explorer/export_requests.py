"""Export actions: opens the export menu, confirms large exports, starts the chosen job."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tpuprof_tui.export.outputs import explorer_outputs, output_named

from ..overlays.overlay import ConfirmPane, Overlay
from ..settings.actions import ActionTable
from ..settings.commands import listed
from .command_line import CommandResult, CommandTable, fault
from .services import Services

if TYPE_CHECKING:
    from ..overlays.export import ExportMenu
    from ..shell.exports import Command, Exports


class ExportRequests:
    """Builds export jobs from the menu or a command, and starts them on the ``exports`` runner."""

    def __init__(self, services: Services, exports: Exports) -> None:
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
            pane = ExportPane(menu, self.palette(), self.glyphs, partial(self._write, menu))
            self.open_overlay(Overlay(pane, self.palette(), menu.vocabulary, pane.field))

    def export(self, name: str) -> None:
        """Writes one output to the menu's folder, with the menu's default choices."""
        menu = self._menu()
        command = menu.command(name) if menu is not None else None
        if isinstance(command, str):
            self.say(command)
        elif menu is not None and command is not None:
            self._write(menu, command)

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

    def _write(self, menu: ExportMenu, command: Command) -> None:
        """Writes an output, after those asked for before; asks first if it is large."""
        cost = menu.cost_of(command.kind)
        if not cost:
            self.exports.start(command)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.exports.start(command)

        self.open_overlay(Overlay(ConfirmPane(f"{cost} Write it?", self.palette()), self.palette()), answered)
