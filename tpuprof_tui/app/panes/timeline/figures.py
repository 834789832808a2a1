"""What the timeline draws with that takes a moment: what passes a filter, what colours rest on, dependencies.

Small profiles have it at once. Of large ones threads make it; until they have done so the timeline draws without it:
everything as if it passed, cells without a share or a name in one quiet style.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from textual.worker import get_current_worker

from tpuprof_tui.analysis.links.dependencies import (
    LinkedInstruction,
    cached_dependencies,
    dependencies_of,
    linked_instructions,
    may_have_dependencies,
)
from tpuprof_tui.analysis.links.launches import launches_with
from tpuprof_tui.analysis.selecting.filter_masks import FilterResult, apply_filter, is_filter_cached
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Colouring, DisplayState
from tpuprof_tui.app.drawing.colouring import AT_ONCE, PLAIN, is_summed, summed
from tpuprof_tui.app.shell.background import Background

#: Something for a thread: what it makes, of what, and the function that makes it and keeps it where it is looked up.
Job = tuple[str, str, Callable[[], object]]


class LaneFigures:
    """Holds what is known for a state, and has computed what is not.

    Attributes:
        passing: What passes the filter, once it is there; None: nothing is hidden.
        ties: Where what released the selected event is, and what it released.

    Args:
        session: What they are about.
        background: Runs threads, for these figures alone.
        changed: Called in the event loop when a thread has computed something.
    """

    def __init__(self, session: Session, background: Background, changed: Callable[[], object]) -> None:
        self.session = session
        self._background = background
        self._changed = changed
        self.passing: FilterResult | None = None
        self.ties: tuple[LinkedInstruction, ...] = ()
        #: What threads compute, by what it makes: of one kind the latest alone is waited for.
        self._running: dict[str, str] = {}
        self._has_dependencies = may_have_dependencies(session)
        self._is_small = session.profile.instructions <= AT_ONCE

    def prepare(self, state: DisplayState) -> None:
        """Takes what a state needs where it is there; has threads compute what is not, and is not being computed."""
        for kind, about, run in (*self._filter(state.filter), *self._sums(state), *self._ties(state)):
            if self._running.get(kind) != about:
                self._running[kind] = about
                self._background.compute(kind, run, partial(self._done, kind))

    def _done(self, kind: str, _: object) -> None:
        del self._running[kind]
        self._changed()

    def _filter(self, text: str) -> Iterator[Job]:
        if self.passing is not None and self.passing.text == text:
            return
        self.passing = None
        if not text:
            return
        session = self.session
        found = apply_filter(session, text) if self._is_small or is_filter_cached(session, text) else None
        if found is not None and (self._is_small or found.has_session):
            self.passing = found
        else:
            yield "filter", text, partial(_filter_lanes, session, text)

    @property
    def _sessions(self) -> list[Session]:
        return [self.session, *([self.passing.session] if self.passing is not None else [])]

    def is_summed(self, lane: int, colouring: Colouring) -> bool:
        """Whether the sums that the colours of a lane rest on are there."""
        return self._is_small or all(is_summed(session.indexes[lane], colouring) for session in self._sessions)

    def is_summing(self, state: DisplayState) -> bool:
        """Whether sums that a state needs are still being made."""
        return any(True for _ in self._sums(state))

    def _sums(self, state: DisplayState) -> Iterator[Job]:
        """Those of the state's colours, and of its strips."""
        for colouring in sorted({state.colouring, *(["bandwidth"] if state.strip == "bandwidth" else [])}):
            sessions = () if colouring in PLAIN else self._sessions
            if all(is_summed(each, colouring) for session in sessions for each in session.indexes):
                continue
            work = summed(self.session, self.passing, colouring)
            if self._is_small:
                deque(work, 0)
            else:
                yield f"sums of {colouring}", "", partial(_sum, work)

    def _ties(self, state: DisplayState) -> Iterator[Job]:
        selection, session = state.selection, self.session
        self.ties = ()
        if selection.row < 0 or not self._has_dependencies:
            return
        if self._is_small:
            dependencies_of(session)
        if cached_dependencies(session) is not None:
            self.ties = linked_instructions(session, selection.lane, selection.row)
        else:
            yield "dependencies", "", partial(dependencies_of, session)


def _filter_lanes(session: Session, text: str) -> None:
    found = apply_filter(session, text).session
    for unit in session.profile.units:
        launches_with(session, found, unit)


def _sum(work: Iterator[None]) -> None:
    worker = get_current_worker()
    for _ in work:
        if worker.is_cancelled:
            return
