"""What the timeline needs that takes a moment: what passes a filter, sums of shares, dependencies. Threads make it.

Until it is there the timeline draws without it: everything as if it passed, cells without a share in one quiet style.
"""

from __future__ import annotations

from typing import Any

from textual import work
from textual.message import Message
from textual.worker import Worker, get_current_worker

from tpuprof_tui.analysis.links.launches import launches_with
from tpuprof_tui.analysis.links.session_dependencies import (
    Tie,
    dependencies_of,
    known_dependencies,
    may_have_dependencies,
    ties_of,
)
from tpuprof_tui.analysis.selecting.filter_masks import Passing, is_known, passing
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Colouring, ViewState
from tpuprof_tui.app.drawing.colouring import AT_ONCE, is_share, is_summed, share_flows
from tpuprof_tui.app.drawing.glyphs import Glyphs
from tpuprof_tui.app.drawing.theme import Palette
from tpuprof_tui.app.shell.messages import tell_failure

from .lane_board import LaneBoard


class LaneWork(LaneBoard):
    """Asks threads for what a state needs, and takes it."""

    class Made(Message):
        """A thread has made what was asked for."""

        def __init__(self, kind: str, result: Any) -> None:
            super().__init__()
            self.kind = kind
            self.result = result

    def __init__(self, session: Session, view: ViewState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(session, view, palette, glyphs)
        #: What passes the filter, once it is there; None: nothing is hidden.
        self.passing: Passing | None = None
        #: Where what released the selected instruction is, and what it released.
        self.ties: tuple[Tie, ...] = ()
        self._asked: set[object] = set()
        self._has_dependencies = may_have_dependencies(session)

    @property
    def _is_small(self) -> bool:
        return self.session.profile.instructions <= AT_ONCE

    def prepare(self) -> None:
        """Takes what the state needs where it is there, and asks for what is not."""
        view = self.view
        self._prepare_filter(view.filter)
        for colouring in self.summed_for(view):
            self._prepare_sums(colouring)
        self._prepare_ties()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What goes wrong in a thread is told."""
        tell_failure(self, event)

    def on_lane_work_made(self, message: Made) -> None:
        """Takes what a thread has made, as far as it is still wanted."""
        message.stop()
        self._asked.discard((message.kind, message.result))
        self.prepare()
        self.refresh()
        self.retitle()

    def retitle(self) -> None:
        """Titles may have changed."""
        raise NotImplementedError

    # what passes a filter

    def _prepare_filter(self, text: str) -> None:
        if self.passing is not None and self.passing.text == text:
            return
        self.passing = None
        if not text:
            return
        found = passing(self.session, text) if self._is_small or is_known(self.session, text) else None
        if found is not None and (self._is_small or found.has_session):
            self.passing = found
        elif ("filter", text) not in self._asked:
            self._asked.add(("filter", text))
            self._pass(text)

    @work(thread=True, exclusive=True, group="lanes-filter", exit_on_error=False, description="a filter on lanes")
    def _pass(self, text: str) -> None:
        found = passing(self.session, text).session
        for unit in self.session.profile.units:
            launches_with(self.session, found, unit)
        self.post_message(self.Made("filter", text))

    # sums of shares

    def summed_for(self, view: ViewState) -> tuple[Colouring, ...]:
        """Ways of colouring whose sums a state needs: its own, and that of its strips."""
        wanted = {view.colouring} | ({"bandwidth"} if view.strip == "bandwidth" else set())
        return tuple(sorted(filter(is_share, wanted)))

    def _sessions(self) -> list[Session]:
        return [self.session, *([self.passing.session] if self.passing is not None else [])]

    def is_summing(self) -> bool:
        """Whether sums that the state needs are still being made."""
        return not self._is_small and any(
            not is_summed(index, colouring)
            for colouring in self.summed_for(self.view)
            for session in self._sessions()
            for index in session.indexes
        )

    def _prepare_sums(self, colouring: Colouring) -> None:
        if self._is_small or ("sums", colouring) in self._asked:
            return
        sessions = self._sessions()
        if not all(is_summed(index, colouring) for session in sessions for index in session.indexes):
            self._asked.add(("sums", colouring))
            self._sum(colouring, sessions)

    @work(thread=True, group="lanes-sums", exit_on_error=False, description="sums of lanes")
    def _sum(self, colouring: Colouring, sessions: list[Session]) -> None:
        worker = get_current_worker()
        for session in sessions:
            for index in session.indexes:
                if worker.is_cancelled:
                    return
                share_flows(self.session.profile, index, colouring)
        self.post_message(self.Made("sums", colouring))

    # dependencies

    def _prepare_ties(self) -> None:
        selection = self.view.selection
        if selection.row < 0 or not self._has_dependencies:
            self.ties = ()
            return
        if known_dependencies(self.session) is None and self._is_small:
            dependencies_of(self.session)
        if known_dependencies(self.session) is not None:
            self.ties = ties_of(self.session, selection.lane, selection.row)
        elif ("dependencies", None) not in self._asked:
            self.ties = ()
            self._asked.add(("dependencies", None))
            self._find_dependencies()

    @work(thread=True, exclusive=True, group="lanes-dependencies", exit_on_error=False)
    def _find_dependencies(self) -> None:
        dependencies_of(self.session)
        self.post_message(self.Made("dependencies", None))
