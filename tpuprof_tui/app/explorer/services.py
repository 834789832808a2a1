"""Services shared by the explorer's controllers: state store, prompt, current position."""

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
from ..panes.prompt import Prompt, PromptRequest
from ..panes.table import InstructionTable
from ..shell.background import Background

if TYPE_CHECKING:
    from .pane_manager import PaneManager


class Store:
    """Holds the session and the display state that all panes show.

    Args:
        session: Session of the profile.
        state: Initial state.
        adjust: Returns the state to take, from the current and the requested one.
        changed: Called after each change with the previous state.

    Attributes:
        closed: Whether the screen is gone; changes (late answers of overlays) are then ignored.
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


class Prompting:
    """Opens the prompt in the bottom line, and gives the focus back when it closes.

    Args:
        prompt: The bottom line.
        focused: Returns the widget that has the focus.

    Attributes:
        previous_focus: Widget that had the focus before the prompt opened; None if no widget had.
    """

    def __init__(self, prompt: Prompt, focused: Callable[[], Widget | None]) -> None:
        self.prompt = prompt
        self.previous_focus: Widget | None = None
        self._focused = focused

    @property
    def pane(self) -> Widget | None:
        """The focused pane; while the prompt is open, the pane focused before it."""
        focused = self._focused()
        return self.previous_focus if focused in (None, self.prompt) else focused

    def ask(self, request: PromptRequest) -> None:
        """Opens the prompt with a question."""
        if not self.prompt.is_open:
            self.previous_focus = self._focused()
        self.prompt.open(request)

    def closed(self) -> None:
        """Gives the focus back to the widget that had it before the prompt."""
        before = self.previous_focus
        if self._focused() in (None, self.prompt) and before is not None and before.display:
            before.focus(scroll_visible=False)


class Position:
    """Where search and next/previous continue from: a row of the table if it is focused, else a time."""

    def __init__(self, store: Store, table: InstructionTable, prompting: Prompting) -> None:
        self.store = store
        self.table = table
        self.prompting = prompting

    @property
    def in_table(self) -> bool:
        """Whether to go in the order of the table; else in order of time."""
        return self.table.display and self.prompting.pane is self.table

    @property
    def row(self) -> int:
        """Number of the instruction under the table's cursor; -1 if the table is empty."""
        rows = self.table.rows
        return rows.number if len(rows.order) else -1

    def hits_of(self) -> Callable[[Mask], Hits]:
        """Returns a thread-safe function from a mask by instruction number to its hits in the current order."""
        session, order = self.store.session, self.table.rows.order
        if self.in_table:
            return lambda mask: masked_in_table(mask, order)
        state = replace(self.store.state, in_window=False)
        return lambda mask: masked_in_time(session, mask, numbers_shown(session, state))

    def current(self) -> tuple[int, int]:
        """Current position: its sort key (row of the table, or time in ns) and instruction number (-1: none)."""
        state, session = self.store.state, self.store.session
        if self.in_table:
            return self.table.rows.position, self.row
        if state.selection.row < 0:
            return state.cursor, -1
        start, _ = session.span_of(state.selection.lane, state.selection.row)
        return start, session.number(state.selection.lane, state.selection.row)


class Services(Struct, frozen=True):
    """Services passed to the controllers.

    Attributes:
        palette: Returns the current palette.
        say: Shows a text in the bottom line.
        copy: Copies a text to the clipboard; takes the text and a word for what it is.
        open_overlay: Pushes an overlay, with an optional callback for its result.
    """

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
