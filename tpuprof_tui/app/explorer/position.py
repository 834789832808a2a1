"""Where the keys are among the instructions: searches and problems go on from there."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.filter_masks import numbers_shown
from tpuprof_tui.analysis.selecting.search import Hits, Mask, marked_in_table, marked_in_time

from ..panes.table import InstructionTable
from .prompting import Prompting
from .store import Store


class Position:
    """The place that search and problem steps start from: a row of the table, or a time."""

    def __init__(self, store: Store, table: InstructionTable, prompting: Prompting) -> None:
        self.store = store
        self.table = table
        self.prompting = prompting

    @property
    def in_table(self) -> bool:
        """Whether one goes in the order of the table; else in time."""
        return self.table.display and self.prompting.pane is self.table

    @property
    def row(self) -> int:
        """Number of the instruction under the table's cursor; -1: there is none."""
        rows = self.table.rows
        return rows.number if len(rows.order) else -1

    def marked(self) -> Callable[[Mask], Hits]:
        """Finds the instructions of a mask (by number) in the order one goes through now; also from a thread."""
        session, order = self.store.session, self.table.rows.order
        if self.in_table:
            return lambda mask: marked_in_table(mask, order)
        state = replace(self.store.state, in_window=False)
        return lambda mask: marked_in_time(session, mask, numbers_shown(session, state))

    def here(self) -> tuple[int, int]:
        """The key of the order one goes through (a row, or a time in ns), and the instruction's number (-1: none)."""
        state, session = self.store.state, self.store.session
        if self.in_table:
            return self.table.rows.position, self.row
        if state.selection.row < 0:
            return state.cursor, -1
        start, _ = session.span_of(state.selection.lane, state.selection.row)
        return start, session.number(state.selection.lane, state.selection.row)
