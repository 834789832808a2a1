"""The command line of the explorer, and what it and keys open: groups, columns, flame graph, export menu."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from textual.widget import Widget

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filter_masks import with_condition
from tpuprof_tui.analysis.selecting.state import Scope, Sort
from tpuprof_tui.analysis.totals.grouping import has_named_work
from tpuprof_tui.export.outputs import explorer_outputs, output_named
from tpuprof_tui.views.registry import views_of

from ..overlays.flame import FlameGraph
from ..overlays.overlay import Overlay, confirm
from ..overlays.table_lists import ColumnList, GroupList
from ..panes.prompt import Hint, PromptRequest
from ..settings.actions import (
    COMMANDS,
    Action,
    PromptCommand,
    actions_named,
    column_named,
    columns_named,
    commands_named,
    listed,
    split_command,
    views_named,
)
from ..shell.messages import Background
from .panes import CommandResult, CommandTable, ExplorerPart, fault

if TYPE_CHECKING:
    from ..overlays.export import ExportMenu
    from ..shell import exports
    from .filtering import Filtering
    from .panes import PaneManager

#: Most columns to group by.
_MOST_KEYS: Final = 2


class TableRequests(ExplorerPart):
    """Opens the overlays of the table (groups, columns, flame graph) and runs its commands."""

    def __init__(self, manager: PaneManager, background: Background, filtering: Filtering) -> None:
        super().__init__(manager, background)
        self.table, self.go = manager.panes.table, manager.go
        self.filter = filtering.apply
        self.actions = {
            "group": lambda: self._open_groups(("name" if has_named_work(self.session) else "engine",), work_only=True),
            "flame-graph": self._open_flame_graph
        }  # fmt: skip
        self.requests = {"group-by": self._group_by, "choose-columns": self._choose_columns}
        self.commands = {
            "sort": self._sort, "group": self._group, "columns": self._columns, "row": self._row
        }  # fmt: skip

    def _group_by(self, key: str) -> None:
        self._open_groups(("duration" if key == "share" else key,), work_only=False)

    def _open_groups(self, keys: tuple[str, ...], *, work_only: bool) -> None:
        table = self.table
        groups = GroupList(self.session, self.state, table.palette, table.glyphs, keys, work_only=work_only)
        self.open_overlay(Overlay(groups, table.palette), self._drill)

    def _drill(self, text: str | None) -> None:
        if text is not None:
            self.filter(text)
            self.go("table")

    def _open_flame_graph(self) -> None:
        state = self.state
        query = Query.of_state(self.session, state.figures_state, state.scope)
        self.open_overlay(
            Overlay(
                FlameGraph(query, self.manager.panes.table.palette, self.manager.panes.table.glyphs),
                self.manager.panes.table.palette,
            ),
            self._drill_path,
        )

    def _drill_path(self, found: tuple[Scope, str] | None) -> None:
        if found is None:
            return
        state, (scope, condition) = self.state, found
        if not scope.everything:
            self.change(replace(state, scope=scope))
        if condition:
            self.filter(with_condition(state.filter, condition))
        self.go("table")

    def _choose_columns(self) -> None:
        table, known, chosen = self.table, self.session.columns, self.state.columns
        columns = ColumnList(known, chosen, table.palette, table.columns.chosen.key, self.take_columns)
        self.open_overlay(Overlay(columns, table.palette))

    def take_columns(self, keys: tuple[str, ...]) -> None:
        """Shows the given columns in that order; empty: the default columns."""
        self.change(replace(self.state, columns=keys))

    # commands

    def _sort(self, text: str) -> CommandResult:
        name, _, way = text.rpartition(" ") if text.endswith((" up", " down")) else (text, "", "")
        found = columns_named(self.session.columns, name)
        if not found:
            return fault("no such column: sort dur, sort bw up")
        key = found[0].key
        down = (
            way == "down" if way else found[0].kind != "text" and key not in ("start", "end", "order", "core", "port")
        )
        self.change(replace(self.state, sort=Sort(key, down)))
        self.go("table")
        return partial(self.table.choose, key)

    def _group(self, text: str) -> CommandResult:
        alike = columns_named(self.session.columns, text)
        found = (alike[0].key,) if alike else self._columns_in(re.sub(r"\s+(x|and)\s+", ",", text))
        if isinstance(found, Hint) or not 0 < len(found) <= _MOST_KEYS:
            hint = self.session.profile.vocabulary.phrase("group_hint", "group name, group type")
            return fault(f"no such column, or more than two: {hint}")
        columns = self.session.profile.vocabulary.schema
        return partial(self._open_groups, found, work_only=any(columns[key].kind == "text" for key in found))

    def _columns(self, text: str) -> CommandResult:
        found = self._columns_in(text)
        if isinstance(found, Hint):
            return found
        self.take_columns(found)
        self.go("table")
        return None

    def _columns_in(self, text: str) -> tuple[str, ...] | Hint:
        """Keys of the columns that a text names, separated by commas or blanks; a fault if it names another one."""
        known, keys = self.session.columns, []
        # titles may hold blanks, which separate names too
        for part in text.split(","):
            for name in [part] if column_named(known, part)[0] else part.split():
                column, alike = column_named(known, name)
                if column is None and alike:
                    return fault(f"{name}: which of {listed(each.key for each in alike)}?")
                if column is None:
                    return fault(f"no such column: {name}")
                keys.append(column.key)
        return tuple(dict.fromkeys(keys))

    def _row(self, text: str) -> CommandResult:
        if not text.replace(",", "").isdecimal():
            return fault("a row's number: row 120")
        self.go("table")
        return partial(self.table.go_to, int(text.replace(",", "")) - 1)


class ExportRequests(ExplorerPart):
    """Builds export jobs from the menu or a command, and starts them on the ``exports`` runner."""

    def __init__(self, manager: PaneManager, background: Background, runner: exports.Exports) -> None:
        super().__init__(manager, background)
        self.exports = runner
        self.actions = {
            "export": self.open_menu, "stop-export": runner.stop, "export-output": self.export
        }  # fmt: skip
        self.commands = {"export": self._export}

    def open_menu(self) -> None:
        """Opens the export menu."""
        from ..overlays.export import ExportPane

        menu = self._menu()
        if menu is not None:
            pane = ExportPane(
                menu, self.manager.panes.table.palette, self.manager.panes.table.glyphs, partial(self._write, menu)
            )
            self.open_overlay(Overlay(pane, self.manager.panes.table.palette, menu.vocabulary, pane.field))

    def export(self, name: str) -> None:
        """Writes one output to the menu's folder, with the menu's default choices."""
        menu = self._menu()
        command = menu.command(name) if menu is not None else None
        if isinstance(command, str):
            self.say(command)
        elif menu is not None and command is not None:
            self._write(menu, command)

    def _export(self, text: str) -> CommandResult:
        vocabulary = self.session.profile.vocabulary
        output = output_named(text, vocabulary)
        if output is None:
            keys = [each.key for each in explorer_outputs(vocabulary)]
            return fault(f"kinds are {listed(keys, len(keys))}")
        return partial(self.export, output.id)

    def _menu(self) -> ExportMenu | None:
        from ..overlays.export import ExportMenu

        source = self.exports.source(self.session.profile)
        if not source.path:
            self.say(source.fault)
            return None
        return ExportMenu(self.session, self.state, source, self.exports)

    def _write(self, menu: ExportMenu, command: exports.Command) -> None:
        cost, start = menu.cost_of(command.kind), partial(self.exports.start, command)
        if cost:
            confirm(self.open_overlay, self.manager.panes.table.palette, f"{cost} Write it?", start)
        else:
            start()


class CommandLine(ExplorerPart):
    """Prompts for a command, a view or an action by name, and runs it.

    ``validators`` are called with the argument while it is typed, ``later`` schedules a function for after the prompt.
    """

    def __init__(
        self, manager: PaneManager, background: Background, commands: CommandTable,
        validators: Mapping[str, Callable[[str], Hint | None]], later: Callable[[Callable[[], object]], object],
        perform: Callable[[Action, Widget | None], object],
    ) -> None:  # fmt: skip
        super().__init__(manager, background)
        self.vocabulary = self.session.profile.vocabulary
        self.commands = commands
        self.validators = validators
        self.later = later
        self.perform = perform
        self.actions = {"command-line": self.ask, "view": partial(self.ask, "view ")}

    def ask(self, initial: str = "") -> None:
        """Opens the prompt, prefilled with ``initial``."""
        self.prompt.open(PromptRequest("Command", initial, self._validate, self._accepted))
        if initial:
            return
        known = (command.in_words_of(self.vocabulary).name for command in COMMANDS)
        self.prompt.show_hint(Hint(listed(known, len(COMMANDS)) + ", a view, or any action"))

    def _validate(self, text: str) -> Hint | None:
        found, argument = self._named(text)
        if len(found) == 1 and (argument or split_command(text)[0] in (found[0].name, found[0].id)):
            return self._validate_argument(found[0], argument, len(text) - len(argument))
        names = [command.name for command in found]
        names += [action.text.lower() for action in self._actions_named(text)]
        names = names or self._views_named(text)
        if not names:
            return fault("not a command: ? lists keys and actions") if text.strip() else None
        return Hint(listed(names))

    def _validate_argument(self, command: PromptCommand, argument: str, offset: int) -> Hint | None:
        validate = self.validators.get(command.id)
        found = validate(argument) if validate is not None else None
        if found is not None:
            return replace(found, column=found.column + offset if found.column >= 0 else -1)
        usage = f"{command.name} {command.argument}".strip()
        return Hint(f"{usage}: {command.help}")

    def _accepted(self, text: str) -> Hint | None:
        found, argument = self._named(text)
        if len(found) == 1:
            result = self.commands[found[0].id](argument)
            if isinstance(result, Hint):
                return result
            if result is not None:
                self.later(result)
            return None
        actions = self._actions_named(text)
        if len({action.id for action in actions}) == 1:
            pane = self.prompt.previous_focus
            self.later(lambda: self.perform(actions[0], pane))
            return None
        if not text.strip():
            return None
        names = [*(each.name for each in found), *(each.text.lower() for each in actions)] or self._views_named(text)
        return fault(f"several: {listed(names)}") if names else self._validate(text)

    def _named(self, text: str) -> tuple[list[PromptCommand], str]:
        """Commands that match the first word, and the argument; an unambiguous view name means ``view NAME``."""
        word, argument = split_command(text)
        found = commands_named(word, self.vocabulary)
        views = self._views_named(text)
        if not found and len(views) == 1 and not self._actions_named(text):
            return commands_named("view", self.vocabulary), views[0]
        return found, argument

    def _views_named(self, text: str) -> list[str]:
        return views_named(text, (view.id for view in views_of(self.vocabulary, screen=True)), self.vocabulary)

    def _actions_named(self, text: str) -> list[Action]:
        """Actions available in the pane that had the focus before whose name begins with a text."""
        pane = self.prompt.previous_focus
        return actions_named(text, (pane.id or "") if pane is not None else "", self.vocabulary)
