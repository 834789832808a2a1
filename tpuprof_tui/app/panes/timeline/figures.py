"""What the timeline draws with that takes a moment: what passes a filter, sums of shares, dependencies.

Small profiles have it at once. Of large ones it comes as jobs for a thread; until they are done the timeline draws
without it: everything as if it passed, cells without a share in one quiet style.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tpuprof_tui.analysis.links.dependencies import (
    Tie,
    dependencies_of,
    known_dependencies,
    may_have_dependencies,
    ties_of,
)
from tpuprof_tui.analysis.links.launches import launches_with
from tpuprof_tui.analysis.selecting.filter_masks import Passing, is_known, passing
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Colouring, DisplayState
from tpuprof_tui.app.drawing.colouring import AT_ONCE, is_share, is_summed, share_flows

#: Whether a job has been superseded and may stop.
IsCancelled = Callable[[], bool]


@dataclass(frozen=True)
class Job:
    """Something to be computed in a thread.

    Attributes:
        kind: What it makes; with ``replaces`` set a job ends those of its kind that still run.
        about: Of what: with the kind its identity.
        run: Computes it, and keeps it where it is looked up.
        replaces: Whether only the latest of its kind is wanted.
    """

    kind: str
    about: str
    run: Callable[[IsCancelled], None] = field(compare=False)
    replaces: bool = True


class LaneFigures:
    """Holds what is known for a state, and says what has to be computed for it.

    Attributes:
        session: What they are about.
        passing: What passes the filter, once it is there; None: nothing is hidden.
        ties: Where what released the selected event is, and what it released.

    Args:
        session: What they are about.
        side: Tells its jobs from those of another session.
    """

    def __init__(self, session: Session, side: str = "") -> None:
        self.session = session
        self._side = side
        self.passing: Passing | None = None
        self.ties: tuple[Tie, ...] = ()
        self._running: set[Job] = set()
        self._has_dependencies = may_have_dependencies(session)
        self._is_small = session.profile.instructions <= AT_ONCE

    def prepare(self, state: DisplayState) -> list[Job]:
        """Takes what a state needs where it is there; returns the jobs for what is not, and is not being computed."""
        jobs = [*self._filter(state.filter), *self._sums(state), *self._ties(state)]
        wanted = [job for job in jobs if job not in self._running]
        self._running.update(wanted)
        return wanted

    def done(self, job: Job) -> None:
        """A job is done: what it made can be taken by ``prepare``."""
        self._running.discard(job)

    # what passes a filter

    def _filter(self, text: str) -> Iterator[Job]:
        if self.passing is not None and self.passing.text == text:
            return
        self.passing = None
        if not text:
            return
        session = self.session
        found = passing(session, text) if self._is_small or is_known(session, text) else None
        if found is not None and (self._is_small or found.has_session):
            self.passing = found
        else:
            yield Job(f"{self._side}filter", text, partial(_filter_lanes, session, text))

    # sums of shares

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
        if self._is_small:
            return
        for colouring in sorted({state.colouring, *(["bandwidth"] if state.strip == "bandwidth" else [])}):
            sessions = self._sessions
            if is_share(colouring) and not all(is_summed(each, colouring) for of in sessions for each in of.indexes):
                run = partial(_sum_shares, self.session, sessions, colouring)
                yield Job(f"{self._side}sums", colouring, run, replaces=False)

    # dependencies

    def _ties(self, state: DisplayState) -> Iterator[Job]:
        selection, session = state.selection, self.session
        self.ties = ()
        if selection.row < 0 or not self._has_dependencies:
            return
        if self._is_small:
            dependencies_of(session)
        if known_dependencies(session) is not None:
            self.ties = ties_of(session, selection.lane, selection.row)
        else:
            yield Job(f"{self._side}dependencies", "", lambda _: _keep_dependencies(session))


def _filter_lanes(session: Session, text: str, _: IsCancelled) -> None:
    found = passing(session, text).session
    for unit in session.profile.units:
        launches_with(session, found, unit)


def _sum_shares(session: Session, sessions: list[Session], colouring: Colouring, cancelled: IsCancelled) -> None:
    for each in sessions:
        for index in each.indexes:
            if cancelled():
                return
            share_flows(session.profile, index, colouring)


def _keep_dependencies(session: Session) -> None:
    dependencies_of(session)
