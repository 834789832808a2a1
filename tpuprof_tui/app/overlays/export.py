"""The export menu: its model, its lines, and the input field for folder and cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from msgspec.structs import replace
from rich.segment import Segment
from textual import events
from textual.binding import BindingType
from textual.widgets import Input

from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.errors import UsageError
from tpuprof_tui.export.outputs import explorer_outputs, output_named
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit, wrap
from tpuprof_tui.formats.units import bytes_text, time_text
from tpuprof_tui.model.vocabulary import Output

from ..drawing.glyphs import Glyphs
from ..drawing.theme import Palette
from ..panes.lines import Line, LinesView
from ..panes.table_columns import shown_columns
from ..settings.actions import actions_of, bindings, key_text, keys_of
from ..shell import export_jobs as exports
from ..shell.exports import ExportRunner

#: Choices that are typed, and the title of the input field.
_TYPED: Final = {
    "folder": "Folder (created if needed; Enter accepts, Esc cancels)",
    "cores": "{Units}, such as 0,3 or 0-3; empty: all (Enter accepts, Esc cancels)",
}


class ExportMenu:
    """Model of the export menu: the outputs, the part of the profile to write, and the folder.

    Attributes:
        core: Number of the unit that the scope or the selection is on; -1: none.
        subset: Part of the profile to write.
    """

    def __init__(
        self, session: Session, state: DisplayState, source: exports.ExportSource, runner: ExportRunner
    ) -> None:  # fmt: skip
        self.session = session
        self.vocabulary = session.profile.vocabulary
        self.state = state
        self.source = source
        self.runner = runner
        self.exporter = runner.exporter
        self.core = exports.scope_core(session.profile.groups, state.scope, state.selection.group)
        self.subset = exports.Subset(core=state.scope.group >= 0, filtered=bool(state.filter))

    def state_of(self, kind: Output) -> str:
        """What became of an output: that it waits, its progress, or its result; empty: it was not asked for."""
        running = self.exporter.running
        if running is not None and running.kind.id == kind.id:
            return f"{running.done:.0%} written, X stops" if running.done >= 0 else "is written ..., X stops"
        return clean(self.runner.states.get(kind.id, ""))

    def table_text(self) -> str:
        """Describes the rows of the table: scope, window, filter, order and number of columns."""
        state = self.state
        words = [self.session.scope_title(state.scope)]
        words += [exports.window_text(self.session, state)] if state.in_window else []
        words += [f"filter {state.filter}"] if state.filter else []
        titles = {column.key: column.title for column in self.session.columns}
        words += [f"by {titles.get(state.sort.key, state.sort.key)}{', largest first' if state.sort.down else ''}"]
        words += [f"{len(shown_columns(self.session, state))} columns"]
        return ", ".join(words)

    def job(self, name: str) -> exports.Job | str:
        """Returns the job that writes an output, or the reason as text if it cannot be written."""
        kind = output_named(name, self.vocabulary)
        fault = exports.folder_fault(self.exporter.folder, self.source) or exports.output_fault(kind)
        if kind is None or fault:
            return fault
        if not kind.is_table:
            return exports.export_job(kind, self.source, self.exporter.folder, self.state, self.core, self.subset)
        columns = [column.key for column in shown_columns(self.session, self.state)]
        core = self.session.profile.groups.unit_number(self.state.scope.group)
        return exports.table_job(kind, self.source, self.exporter.folder, self.state, core, columns)

    def set_typed(self, choice: str, text: str) -> str:
        """Sets the folder or the cores from typed text; returns the fault, empty on success."""
        if choice == "folder":
            fault = exports.folder_fault(text, self.source)
            if not fault:
                self.exporter.set_folder(self.source, text)
            return fault
        try:
            self.subset = replace(self.subset, core=False, cores=exports.parse_typed_cores(text, self.session.profile))
        except UsageError as error:
            return str(error)
        return ""


class ExportPane(LinesView, inherit_bindings=False):
    """The lines of the export menu, which stays open. Folder and cores are typed in ``field`` below it.

    Args:
        menu: What can be written.
        write: Writes an output, after those asked for before.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("export")]

    def __init__(
        self, menu: ExportMenu, palette: Palette, glyphs: Glyphs, write: Callable[[exports.Job], None]
    ) -> None:
        super().__init__(palette, "export")
        self.menu = menu
        self.write = write
        self.glyphs = glyphs
        self.fault = ""
        self._actions: list[str] = []
        self.field = MenuInput(menu, self._typing_done)
        self.border_title = "Export"
        self.border_subtitle = "Esc or q closes"

    def on_mount(self) -> None:
        """Sets the height to fit the lines."""
        self.styles.height = len(self.build(80)[0]) + 4

    def _typing_done(self) -> None:
        self.focus()
        self.show_fault("")

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds the groups of lines; each line that has an action is an item."""
        menu = self.menu
        actions = actions_of("export", menu.vocabulary)
        keys = {action.id.partition(".")[2]: key_text(keys_of(action)[0]) for action in actions if keys_of(action)}
        lines: list[Line] = []
        items: list[int] = []
        self._actions = []

        def heading(text: str, note: str) -> None:
            note = fit(note, max(width - len(text) - 4, 8)).rstrip()
            lines.append([Segment(f" {text}", self.palette.title), Segment(f"  {note}", self.palette.quiet)])
            items.append(-1)

        def entry(action: str, name: str, text: str, quiet: bool = False) -> None:
            style = self.palette.quiet if quiet else self.palette.text
            lines.append([Segment(f"  {keys.get(action, ' ')}  ", self.palette.key), Segment(fit(name, 21), style),
                          Segment(fit(text, max(width - 27, 8)), self.palette.quiet)])  # fmt: skip
            items.append(len(self._actions))
            self._actions.append(action)

        heading("Write", clean(exports.subset_text(menu.session, menu.state, menu.core, menu.subset)))
        kinds = explorer_outputs(menu.vocabulary)
        for kind in kinds:
            if not kind.is_table:
                entry(kind.id, kind.title, menu.state_of(kind) or kind.file_text)
        for action, name, text, possible in self._choices():
            chosen = possible and bool(getattr(menu.subset, action))
            entry(action, f"[{'x' if chosen else ' '}] {name}", text, not possible)
        heading("Write the table as shown", f"{clean(menu.table_text())}")
        for kind in kinds:
            if kind.is_table:
                missing = bool(exports.output_fault(kind))
                told = "needs the package pyarrow" if missing else menu.state_of(kind) or kind.file_text
                entry(kind.id, kind.title, told, missing)
        heading("To", "")
        entry("folder", "folder", clean(menu.exporter.folder))
        notes = self._notes()
        for text in wrap(notes, width - 2) if notes else []:
            lines.append([Segment(f" {text}", self.palette.caution if self.fault else self.palette.text)])
            items.append(-1)
        return lines, items

    def _choices(self) -> list[tuple[str, str, str, bool]]:
        menu, state = self.menu, self.menu.state
        core = menu.session.say("{unit} {core}" if menu.core >= 0 else "no {unit} is selected", core=menu.core)
        start, end = state.figures_window
        all_shown = state.range is None and state.viewed is None
        shown = "all is shown" if all_shown else f"{time_text(end - start)} from {time_text(start)}"
        numbers = menu.session.profile.groups.numbers
        contiguous = len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1
        every = f"{numbers[0]}-{numbers[-1]}" if contiguous else ", ".join(map(str, numbers)) or "none"
        cores = ", ".join(map(str, menu.subset.cores)) or f"type some of {every}"
        return [
            ("core", menu.session.say("only the {unit}"), core, menu.core >= 0),
            ("cores", menu.session.say("only some {units}"), cores, True),
            ("window", f"only the {'window' if state.range is None else 'range'}", shown, not all_shown),
            ("filtered", "only the filter", clean(state.filter) or "no filter is set", bool(state.filter)),
        ]

    def _notes(self) -> str:
        exporter = self.menu.exporter
        if self.fault:
            return self.fault
        if exporter.outcome is not None:
            files = "; ".join(f"{clean(path)} {bytes_text(size)}" for path, size in exporter.outcome.files[:4])
            rest = len(exporter.outcome.files) - 4
            return f"Written: {files}{f'; and {rest} more' if rest > 0 else ''}"
        return ""

    def show_fault(self, fault: str) -> None:
        """Shows why something cannot be done; empty: clears it."""
        self.fault = fault
        self.rebuild()

    def action_choose(self) -> None:
        """Runs the action of the line under the cursor."""
        if not self._actions:
            return
        chosen = self._actions[self.cursor]
        if output_named(chosen, self.menu.vocabulary) is not None:
            self.action_output(chosen)
        elif chosen in _TYPED:
            self.field.open(chosen)
        else:
            self.action_only(chosen)

    def action_output(self, name: str) -> None:
        """Writes one kind of file, or shows why it cannot be written."""
        job = self.menu.job(name)
        self.show_fault(job if isinstance(job, str) else "")
        if not isinstance(job, str):
            self.write(job)
            self.rebuild()

    def action_type(self, choice: str) -> None:
        """Opens the input field for the folder or the cores."""
        self.field.open(choice)

    def action_only(self, name: str) -> None:
        """Toggles the restriction to the core, some cores, the window or the filter."""
        text, possible = next((text, possible) for action, _, text, possible in self._choices() if action == name)
        if not possible:
            self.show_fault(f"Nothing to narrow to: {text}.")
            return
        subset = self.menu.subset
        turned: dict[str, Any] = {name: not getattr(subset, name)}
        if name == "core":
            turned["cores"] = ()
        self.menu.subset = replace(subset, **turned)
        self.show_fault("")

    def action_stop(self) -> None:
        """Stops the running export, and those that wait."""
        self.menu.runner.stop()


class MenuInput(Input):
    """Input field for the folder or the cores; Esc discards the typed text."""

    def __init__(self, menu: ExportMenu, done: Callable[[], None]) -> None:
        super().__init__(id="typed")
        self.menu = menu
        self.done = done
        self._choice = "folder"

    def open(self, choice: str) -> None:
        """Shows the field with the current folder or cores."""
        self._choice = choice
        self.border_title = self.menu.session.say(_TYPED[choice])
        self.value = self.menu.exporter.folder if choice == "folder" else ",".join(map(str, self.menu.subset.cores))
        self.display = True
        self.focus()

    def on_key(self, event: events.Key) -> None:
        """Esc closes the field, not the menu."""
        if event.key == "escape":
            event.stop()
            event.prevent_default()
            self._close()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Takes the typed text, or shows its fault as the title."""
        event.stop()
        fault = self.menu.set_typed(self._choice, event.value.strip())
        if fault:
            self.border_title = clean(fault)
        else:
            self._close()

    def _close(self) -> None:
        self.display = False
        self.done()
