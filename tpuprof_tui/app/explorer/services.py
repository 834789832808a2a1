"""What the parts of the explorer share: the state in one place, questions, where one is, what is told and opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from textual.widget import Widget

from tpuprof_tui.analysis.selecting.filter_masks import numbers_shown
from tpuprof_tui.analysis.selecting.search import Hits, Mask, masked_in_table, masked_in_time
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState

from ..drawing.glyphs import Glyphs
from ..drawing.theme import Palette
from ..panes.prompt import Prompt, Question
from ..panes.table import InstructionTable
from ..shell.background import Background

if TYPE_CHECKING:
    from .pane_manager import PaneManager


class Store:
    """The session and the state that all panes show.

    Args:
        session: The profile.
        state: The state to begin with.
        adjust: The next state, of the one that holds and the one that is asked for.
        changed: Called after each change with the state before it.

    Attributes:
        closed: The state is shown no more: what overlays answer now is passed over.
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
        """Takes another state."""
        state = self._adjust(self.state, state)
        if state != self.state and not self.closed:
            old, self.state = self.state, state
            self._changed(old)


class Prompting:
    """Opens the prompt in place of the keys, and gives the focus back when it is closed.

    Args:
        prompt: The bottom line.
        focused: The widget that has the focus.

    Attributes:
        asked_from: What had the focus before the prompt was opened.
    """

    def __init__(self, prompt: Prompt, focused: Callable[[], Widget | None]) -> None:
        self.prompt = prompt
        self.asked_from: Widget | None = None
        self._focused = focused

    @property
    def pane(self) -> Widget | None:
        """The pane that keys go to; while something is asked the one that they went to before."""
        focused = self._focused()
        return self.asked_from if focused in (None, self.prompt) else focused

    def ask(self, question: Question) -> None:
        """Asks a question."""
        if not self.prompt.is_open:
            self.asked_from = self._focused()
        self.prompt.open(question)

    def closed(self) -> None:
        """Keys show again, and work where they did."""
        before = self.asked_from
        if self._focused() in (None, self.prompt) and before is not None and before.display:
            before.focus(scroll_visible=False)


class Position:
    """The place among the instructions that search and steps go on from: a row of the table, or a time."""

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
            return lambda mask: masked_in_table(mask, order)
        state = replace(self.store.state, in_window=False)
        return lambda mask: masked_in_time(session, mask, numbers_shown(session, state))

    def here(self) -> tuple[int, int]:
        """The key of the order one goes through (a row, or a time in ns), and the instruction's number (-1: none)."""
        state, session = self.store.state, self.store.session
        if self.in_table:
            return self.table.rows.position, self.row
        if state.selection.row < 0:
            return state.cursor, -1
        start, _ = session.span_of(state.selection.lane, state.selection.row)
        return start, session.number(state.selection.lane, state.selection.row)


class Services(Struct, frozen=True):
    """What parts are given; ``say`` tells something in the bottom line, ``copy`` takes a text and what it is."""

    store: Store
    manager: PaneManager
    prompting: Prompting
    position: Position
    background: Background
    palette: Callable[[], Palette]
    glyphs: Glyphs
    say: Callable[[str], None]
    copy: Callable[[str, str], None]
    open_overlay: Callable[..., object]
