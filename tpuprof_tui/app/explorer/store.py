"""The state of the explorer, in one place."""

from __future__ import annotations

from collections.abc import Callable

from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState


class Store:
    """The session and the state that all panes show.

    Args:
        session: The profile.
        state: The state to begin with.
        adjust: The next state, of the one that holds and the one that is asked for.
        changed: Called after each change with the state before it.
    """

    def __init__(
        self,
        session: Session,
        state: DisplayState,
        adjust: Callable[[DisplayState, DisplayState], DisplayState],
        changed: Callable[[DisplayState], None],
    ) -> None:
        self.session = session
        self.state = state
        self._adjust = adjust
        self._changed = changed
        self._closed = False

    def close(self) -> None:
        """The state is shown no more: what overlays answer now is passed over."""
        self._closed = True

    def change(self, state: DisplayState) -> None:
        """Takes another state."""
        state = self._adjust(self.state, state)
        if state != self.state and not self._closed:
            old, self.state = self.state, state
            self._changed(old)
