"""Actions and commands of the table: group, sort, choose columns, go to a row, flame graph."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filter_masks import with_condition
from tpuprof_tui.analysis.selecting.state import Scope, Sort
from tpuprof_tui.analysis.totals.grouping import has_named_work

from ..overlays.columns import ColumnList
from ..overlays.flame import FlameGraph
from ..overlays.groups import GroupList
from ..overlays.overlay import Overlay
from ..panes.prompt import Hint
from ..settings.actions import ActionTable
from ..settings.commands import column_named, columns_named, listed
from .command_line import CommandResult, CommandTable, fault
from .filtering import Filtering
from .services import Services

#: Most columns to group by.
_MOST_KEYS: Final = 2


class TableRequests:
    """Opens the overlays of the table (groups, columns, flame graph) and runs its commands."""

    def __init__(self, services: Services, filtering: Filtering) -> None:
        self.store, self.open_overlay = services.store, services.open_overlay
        self.palette, self.glyphs = services.palette, services.glyphs
        self.table, self.go = services.manager.panes.table, services.manager.go
        self.filtering = filtering
        self.actions: ActionTable = {"group": self._group_by_name, "flame-graph": self._open_flame_graph}
        self.commands: CommandTable = {
            "sort": self._sort, "group": self._group, "columns": self._columns, "row": self._row
        }  # fmt: skip

    def _group_by_name(self) -> None:
        """Opens the time by name, or by engine if the profile has no names."""
        self._open_groups(("name" if has_named_work(self.store.session) else "engine",), work_only=True)

    def group_by(self, key: str) -> None:
        """Opens the count of each value of a column."""
        self._open_groups(("duration" if key == "share" else key,), work_only=False)

    def _open_groups(self, keys: tuple[str, ...], *, work_only: bool) -> None:
        table, store = self.table, self.store
        groups = GroupList(store.session, store.state, table.palette, table.glyphs, keys, work_only=work_only)
        self.open_overlay(Overlay(groups, table.palette), self._drill)

    def _drill(self, text: str | None) -> None:
        if text is not None:
            self.filtering.apply(text)
            self.go("table")

    def _open_flame_graph(self) -> None:
        """Opens the time by call path for the current window, scope and filter."""
        state = self.store.state
        query = Query.of_state(self.store.session, state.figures_state, state.scope)
        self.open_overlay(Overlay(FlameGraph(query, self.palette(), self.glyphs), self.palette()), self._drill_path)

    def _drill_path(self, found: tuple[Scope, str] | None) -> None:
        if found is None:
            return
        state, (scope, condition) = self.store.state, found
        if not scope.everything:
            self.store.change(replace(state, scope=scope))
        if condition:
            self.filtering.apply(with_condition(state.filter, condition))
        self.go("table")

    def choose_columns(self) -> None:
        """Opens the list of columns."""
        table, known, chosen = self.table, self.store.session.columns, self.store.state.columns
        columns = ColumnList(known, chosen, table.palette, table.columns.chosen.key, self.take_columns)
        self.open_overlay(Overlay(columns, table.palette))

    def take_columns(self, keys: tuple[str, ...]) -> None:
        """Shows the given columns in that order; empty: the default columns."""
        self.store.change(replace(self.store.state, columns=keys))

    # commands

    def _sort(self, text: str) -> CommandResult:
        name, _, way = text.rpartition(" ") if text.endswith((" up", " down")) else (text, "", "")
        found = columns_named(self.store.session.columns, name)
        if not found:
            return fault("no such column: sort dur, sort bw up")
        key = found[0].key
        down = (
            way == "down" if way else found[0].kind != "text" and key not in ("start", "end", "order", "core", "port")
        )
        self.store.change(replace(self.store.state, sort=Sort(key, down)))
        self.go("table")
        return partial(self.table.choose, key)

    def _group(self, text: str) -> CommandResult:
        alike = columns_named(self.store.session.columns, text)
        found = (alike[0].key,) if alike else self._columns_in(re.sub(r"\s+(x|and)\s+", ",", text))
        if isinstance(found, Hint) or not 0 < len(found) <= _MOST_KEYS:
            hint = self.store.session.profile.vocabulary.phrase("group_hint", "group name, group type")
            return fault(f"no such column, or more than two: {hint}")
        columns = self.store.session.profile.vocabulary.schema
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
        known, keys = self.store.session.columns, []
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
