"""The state of the explorer, in one place."""

from __future__ import annotations

from collections.abc import Callable

from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import ViewState


class Store:
    """The session and the state that all panes show.

    Args:
        session: The profile.
        view: The first state.
        adjust: The next state, of the one that holds and the one that is asked for.
        changed: Called after each change with the state before it.
    """

    def __init__(
        self,
        session: Session,
        view: ViewState,
        adjust: Callable[[ViewState, ViewState], ViewState],
        changed: Callable[[ViewState], None],
    ) -> None:
        self.session = session
        self.view = view
        self._adjust = adjust
        self._changed = changed
        self._closed = False

    def close(self) -> None:
        """The state is shown no more: what overlays answer now is passed over."""
        self._closed = True

    def change(self, view: ViewState) -> None:
        """Takes another state."""
        view = self._adjust(self.view, view)
        if view != self.view and not self._closed:
            old, self.view = self.view, view
            self._changed(old)
