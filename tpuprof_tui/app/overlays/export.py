"""The export menu: what can be written of the capture and which part of it, its lines, and its input field."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from rich.segment import Segment
from textual import events
from textual.binding import BindingType
from textual.widgets import Input

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import split_step
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.analysis.steps.step_detection import steps_of
from tpuprof_tui.analysis.steps.step_figures import step_span
from tpuprof_tui.errors import UsageError
from tpuprof_tui.export.job import parse_cores
from tpuprof_tui.export.outputs import explorer_outputs, output_named
from tpuprof_tui.export.selection import of_units, rows_by_lane
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit, wrap
from tpuprof_tui.formats.units import bytes_text, time_text
from tpuprof_tui.model.lane import row_count
from tpuprof_tui.model.vocabulary import DETAIL, Output

from ..drawing.glyphs import Glyphs
from ..drawing.theme import Palette
from ..panes.lines import Line, LinesView
from ..panes.table_rows import shown_columns
from ..settings.actions import actions_of, bindings, key_text, keys_of
from ..shell import exports
from ..shell.exports import Command, Exports, ExportSource

#: Choices that are typed, and the title of the input field.
_TYPED: Final = {
    "folder": "Folder (created if needed; Enter accepts, Esc cancels)",
    "cores": "{Units}, such as 0,3 or 0-3; empty: all (Enter accepts, Esc cancels)",
}


class ExportMenu:
    """What can be written, and the selected part of the capture."""

    def __init__(self, session: Session, state: DisplayState, source: ExportSource, exports: Exports) -> None:
        self.session = session
        self.profile = session.profile
        self.vocabulary = session.profile.vocabulary
        self.state = state
        self.source = source
        self.exports = exports
        #: Id of the unit that the scope or the selection is on; -1: none.
        self.unit = self.profile.groups.unit_of(state.scope.group if state.scope.group >= 0 else state.selection.group)
        #: units, window, filter: What is written: ids of units, ns, an expression; empty or None: no restriction.
        self.units = frozenset((self.unit,)) if state.scope.group >= 0 and self.unit >= 0 else frozenset[int]()
        self.window: tuple[int, int] | None = None
        self.filter = state.filter

    def chosen(self, part: str) -> bool:
        """Whether the files are restricted to a part: ``core``, ``cores``, ``window`` or ``filtered``."""
        core = frozenset((self.unit,))
        return {
            "core": self.units == core, "cores": self.units not in (frozenset(), core),
            "window": self.window is not None, "filtered": bool(self.filter),
        }[part]  # fmt: skip

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the units that the files are restricted to; empty: all."""
        return tuple(sorted(set(map(self.profile.groups.number, self.units))))

    @property
    def typed_numbers(self) -> tuple[int, ...]:
        """Numbers of the typed cores; empty: none were typed."""
        return self.numbers if self.chosen("cores") else ()

    def turn(self, part: str) -> None:
        """Restricts the files to the unit, the window or the filter, or no longer."""
        off = self.chosen(part)
        if part == "core":
            self.units = frozenset(() if off else (self.unit,))
        elif part == "window":
            self.window = None if off else self.state.figures_window
        else:
            self.filter = "" if off else self.state.filter

    def state_of(self, kind: Output) -> str:
        """What became of an output: that it waits, its progress, or its result; empty: it was not asked for."""
        running = self.exports.running
        if running is not None and running.kind.id == kind.id:
            return f"{running.done:.0%} written, X stops" if running.done >= 0 else "is written ..., X stops"
        return clean(self.exports.states.get(kind.id, ""))

    def selection_text(self) -> str:
        """Describes the part of the capture that the files will hold."""
        numbers = self.numbers
        unit = self.vocabulary.unit.plural if len(numbers) > 1 else self.vocabulary.unit.one
        parts = [f"{unit} {', '.join(map(str, numbers))}"] if numbers else []
        parts += [self.window_text()] if self.chosen("window") else []
        parts += [f"filter {self.filter}"] if self.filter else []
        return clean(", ".join(parts)) if parts else "the whole capture"

    def window_text(self) -> str:
        """Describes the window or range that files can be restricted to; that of the chosen step names it."""
        state, session = self.state, self.session
        start, end = state.figures_window
        if state.range is not None:
            return f"the range of {time_text(end - start)}"
        step = split_step(state.filter)[0]
        if step is not None and step_span(session, step) == (start, end):
            return f"the {time_text(end - start)} of {steps_of(session).word.one} {step}"
        return f"the window of {time_text(end - start)}"

    def table_text(self) -> str:
        """Describes the rows of the table: scope, window, filter, order and number of columns."""
        state = self.state
        words = [self.session.scope_title(state.scope)]
        words += [self.window_text()] if state.in_window else []
        words += [f"filter {state.filter}"] if state.filter else []
        titles = {column.key: column.title for column in self.session.columns}
        words += [f"by {titles.get(state.sort.key, state.sort.key)}{', largest first' if state.sort.down else ''}"]
        words += [f"{len(shown_columns(self.session, state))} columns"]
        return ", ".join(words)

    def command(self, name: str) -> Command | str:
        """Returns the command that writes an output, or the reason as text if it cannot be written."""
        kind, folder = output_named(name, self.vocabulary), self.exports.folder
        fault = exports.folder_fault(folder, self.source) or exports.output_fault(kind)
        if kind is None or fault:
            return fault
        if not kind.is_table:
            return exports.files_command(kind, self.source, folder, self.numbers, self.window, self.filter)
        columns = [column.key for column in shown_columns(self.session, self.state)]
        return exports.table_command(kind, self.source, folder, self.profile, self.state, columns)

    def cost_of(self, kind: Output) -> str:
        """Size and duration of a large export, in a sentence; empty if it is small."""
        # what a filter leaves is not known before
        query = Query(self.session, range=None if kind.is_table else self.window)
        query = of_units(query, self.units) if self.units and not kind.is_table else query
        count = sum(map(row_count, rows_by_lane(query)))
        return exports.warning(kind, self.vocabulary.event, count, self.profile.has(DETAIL))

    def set_typed(self, choice: str, text: str) -> str:
        """Sets the folder or the cores from typed text; returns the fault, empty on success."""
        if choice == "folder":
            fault = exports.folder_fault(text, self.source)
            if not fault:
                self.exports.set_folder(self.source, text)
            return fault
        try:
            self.units = parse_cores(text, self.profile) if text else frozenset()
        except UsageError as error:
            return str(error)
        return ""


class ExportPane(LinesView, inherit_bindings=False):
    """The lines of the export menu, which stays open. Folder and cores are typed in ``field`` below it."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("export")]

    def __init__(self, menu: ExportMenu, palette: Palette, glyphs: Glyphs, write: Callable[[Command], None]) -> None:
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

        heading("Write", menu.selection_text())
        kinds = explorer_outputs(menu.vocabulary)
        for kind in kinds:
            if not kind.is_table:
                entry(kind.id, kind.title, menu.state_of(kind) or kind.file_text)
        for action, name, text, possible in self._choices():
            chosen = possible and menu.chosen(action)
            entry(action, f"[{'x' if chosen else ' '}] {name}", text, not possible)
        heading("Write the table as shown", f"{clean(menu.table_text())}")
        for kind in kinds:
            if kind.is_table:
                missing = bool(exports.output_fault(kind))
                told = "needs the package pyarrow" if missing else menu.state_of(kind) or kind.file_text
                entry(kind.id, kind.title, told, missing)
        heading("To", "")
        entry("folder", "folder", clean(menu.exports.folder))
        notes = self._notes()
        for text in wrap(notes, width - 2) if notes else []:
            lines.append([Segment(f" {text}", self.palette.caution if self.fault else self.palette.text)])
            items.append(-1)
        return lines, items

    def _choices(self) -> list[tuple[str, str, str, bool]]:
        menu, state = self.menu, self.menu.state
        groups = menu.profile.groups
        core = menu.session.say(
            "{unit} {core}" if menu.unit >= 0 else "no {unit} is selected", core=groups.number(menu.unit)
        )
        start, end = state.figures_window
        all_shown = state.range is None and state.viewed is None
        shown = "all is shown" if all_shown else f"{time_text(end - start)} from {time_text(start)}"
        numbers = groups.numbers
        contiguous = len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1
        every = f"{numbers[0]}-{numbers[-1]}" if contiguous else ", ".join(map(str, numbers)) or "none"
        cores = ", ".join(map(str, menu.typed_numbers)) or f"type some of {every}"
        return [
            ("core", menu.session.say("only the {unit}"), core, menu.unit >= 0),
            ("cores", menu.session.say("only some {units}"), cores, True),
            ("window", f"only the {'window' if state.range is None else 'range'}", shown, not all_shown),
            ("filtered", "only the filter", clean(state.filter) or "no filter is set", bool(state.filter)),
        ]

    def _notes(self) -> str:
        outcome = self.menu.exports.outcome
        if self.fault:
            return self.fault
        if outcome is not None:
            files = "; ".join(f"{clean(path)} {bytes_text(size)}" for path, size in outcome.files[:4])
            rest = len(outcome.files) - 4
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
        command = self.menu.command(name)
        self.show_fault(command if isinstance(command, str) else "")
        if not isinstance(command, str):
            self.write(command)
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
        self.menu.turn(name)
        self.show_fault("")

    def action_stop(self) -> None:
        """Stops the running export, and those that wait."""
        self.menu.exports.stop()


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
        self.value = self.menu.exports.folder if choice == "folder" else ",".join(map(str, self.menu.typed_numbers))
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
