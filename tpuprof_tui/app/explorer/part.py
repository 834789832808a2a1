"""What the parts of the explorer share: the state and its session, the prompt, and the place where a search begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.filter_masks import numbers_shown
from tpuprof_tui.analysis.selecting.search import Hits, Mask, masked_in_table, masked_in_time
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState

from ..panes.prompt import Hint
from ..settings.actions import ActionTable
from ..shell.messages import Background

if TYPE_CHECKING:
    from .panes import PaneManager

#: Result of a command: a fault, a function to call after the focus is back in the pane, or None (done).
CommandResult = Hint | Callable[[], object] | None
#: Command handlers by command id; each takes the argument text.
CommandTable = Mapping[str, Callable[[str], CommandResult]]
#: Message of actions that need a selection.
NOTHING_SELECTED = "Nothing selected: Enter in the timeline or a row of the table selects."


def fault(text: str, column: int = -1) -> Hint:
    """Hint that rejects the typed text; ``column`` is the offset of the fault in it, -1 if unknown."""
    return Hint(text, column, fault=True)


class Store:
    """Holds the session and the display state that all panes show.

    ``adjust`` returns the state to take, from the current and the requested one; ``changed`` gets the previous one.
    Changes after ``closed`` (late answers of overlays) are ignored.
    """

    def __init__(
        self, session: Session, state: DisplayState, adjust: Callable[[DisplayState, DisplayState], DisplayState],
        changed: Callable[[DisplayState], None],
    ) -> None:  # fmt: skip
        self.session = session
        self.state = state
        self.closed = False
        self._adjust = adjust
        self._changed = changed

    def change(self, state: DisplayState) -> None:
        """Sets the state and notifies, if it differs."""
        state = self._adjust(self.state, state)
        if state != self.state and not self.closed:
            old, self.state = self.state, state
            self._changed(old)


class Part:
    """A part of the explorer.

    Attributes:
        actions: Handlers of key actions of the explorer, by the last part of their id.
        requests: Handlers of requests of panes, by name.
        commands: Handlers of commands of the command line, by command id.
    """

    def __init__(self, manager: PaneManager, background: Background) -> None:
        self.actions: ActionTable = {}
        self.requests: ActionTable = {}
        self.commands: CommandTable = {}
        self.manager, self.background = manager, background
        self.session, self.change = manager.store.session, manager.store.change
        self.prompt, self.say, self.open_overlay = manager.bar, manager.bar.say, manager.open_overlay

    @property
    def state(self) -> DisplayState:
        """The current display state."""
        return self.manager.store.state

    # where search and next/previous continue from: a row of the table if it is focused, else a time

    @property
    def in_table(self) -> bool:
        """Whether to go in the order of the table; else in order of time."""
        return self.manager.panes.table.display and self.prompt.behind is self.manager.panes.table

    @property
    def row(self) -> int:
        """Number of the instruction under the table's cursor; -1 if the table is empty."""
        rows = self.manager.panes.table.rows
        return rows.number if len(rows.order) else -1

    def hits_of(self) -> Callable[[Mask], Hits]:
        """Returns a thread-safe function from a mask by instruction number to its hits in the current order."""
        session, order = self.session, self.manager.panes.table.rows.order
        if self.in_table:
            return lambda mask: masked_in_table(mask, order)
        state = replace(self.state, in_window=False)
        return lambda mask: masked_in_time(session, mask, numbers_shown(session, state))

    def current(self) -> tuple[int, int]:
        """Current position: its sort key (row of the table, or time in ns) and instruction number (-1: none)."""
        state, session = self.state, self.session
        if self.in_table:
            return self.manager.panes.table.rows.position, self.row
        if state.selection.row < 0:
            return state.cursor, -1
        start, _ = session.span_of(state.selection.lane, state.selection.row)
        return start, session.number(state.selection.lane, state.selection.row)

    def pending_hint(self) -> Hint | None:
        """The hint to show until a result arrives: the last one, unless it is a fault of an older text."""
        hint = self.prompt.hint
        return None if hint is not None and hint.fault and not self.background.small else hint
