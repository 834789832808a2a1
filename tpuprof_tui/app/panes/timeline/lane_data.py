"""Data of the timeline that is expensive to compute: filter masks, sums for colours, dependencies.

For small profiles it is computed synchronously, for large ones in worker threads. Until it is available the timeline
is drawn without it: all events as if they passed the filter, cells without share or name in one dim style.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from textual.worker import get_current_worker

from tpuprof_tui.analysis.index.lane_index import cached_sublanes, sublanes_of
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
from tpuprof_tui.app.drawing.colouring import AT_ONCE, PLAIN, compute_colour_sums, has_colour_sums
from tpuprof_tui.app.shell.background import Background

#: Work for a thread: its kind, its parameter, and the function, which caches its result in the session.
Job = tuple[str, str, Callable[[], object]]


class LaneData:
    """Holds the computed data for a state, and computes what is missing in the background.

    Attributes:
        passing: Events that pass the filter, once computed; None: no event is hidden.
        linked_events: Releasers and waiters of the selected event.

    Args:
        session: Session of the profile.
        background: Runs worker threads; not shared with others.
        changed: Called in the event loop when a thread has finished.
    """

    def __init__(self, session: Session, background: Background, changed: Callable[[], object]) -> None:
        self.session = session
        self._background = background
        self._changed = changed
        self.passing: FilterResult | None = None
        self.linked_events: tuple[LinkedInstruction, ...] = ()
        #: Parameter of the running computation, by kind; only the latest of each kind counts.
        self._running: dict[str, str] = {}
        self._has_dependencies = may_have_dependencies(session)
        self._is_small = session.profile.instructions <= AT_ONCE

    def prepare(self, state: DisplayState) -> None:
        """Takes the data for a state if available; starts computing what is missing and not being computed yet."""
        for kind, parameter, run in (
            *self._filter(state.filter),
            *self._levels(state),
            *self._colours(state),
            *self._links(state),
        ):
            if self._running.get(kind) != parameter:
                self._running[kind] = parameter
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

    def _levels(self, state: DisplayState) -> Iterator[Job]:
        lanes = len(self.session.profile.lanes)
        missing = [index for session in self._sessions for lane in state.opened if lane < lanes
                   if cached_sublanes(index := session.indexes[lane]) is None]  # fmt: skip
        if self._is_small:
            deque(map(sublanes_of, missing), 0)
        elif missing:
            yield "sub-lanes", str(state.opened), partial(_run_job, (None for index in missing if sublanes_of(index)))

    def colours_ready(self, lane: int, colouring: Colouring) -> bool:
        """Whether the sums for the colours of a lane are computed."""
        return self._is_small or all(has_colour_sums(session.indexes[lane], colouring) for session in self._sessions)

    def computing_colours(self, state: DisplayState) -> bool:
        """Whether sums for a state are still being computed."""
        return any(True for _ in self._colours(state))

    def _colours(self, state: DisplayState) -> Iterator[Job]:
        for colouring in sorted({state.colouring, *(["bandwidth"] if state.strip == "bandwidth" else [])}):
            sessions = () if colouring in PLAIN else self._sessions
            if all(has_colour_sums(each, colouring) for session in sessions for each in session.indexes):
                continue
            work = compute_colour_sums(self.session, self.passing, colouring)
            if self._is_small:
                deque(work, 0)
            else:
                yield f"sums of {colouring}", "", partial(_run_job, work)

    def _links(self, state: DisplayState) -> Iterator[Job]:
        selection, session = state.selection, self.session
        self.linked_events = ()
        if selection.row < 0 or not self._has_dependencies:
            return
        if self._is_small:
            dependencies_of(session)
        if cached_dependencies(session) is not None:
            self.linked_events = linked_instructions(session, selection.lane, selection.row)
        else:
            yield "dependencies", "", partial(dependencies_of, session)


def _filter_lanes(session: Session, text: str) -> None:
    found = apply_filter(session, text).session
    for unit in session.profile.units:
        launches_with(session, found, unit)


def _run_job(work: Iterator[None]) -> None:
    worker = get_current_worker()
    for _ in work:
        if worker.is_cancelled:
            return
