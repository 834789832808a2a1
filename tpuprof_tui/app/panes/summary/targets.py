"""Where a line of the summary leads: what Enter goes to, and what ``o`` narrows all panes to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.navigation import selected
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, Selection
from tpuprof_tui.views.answer import Target

#: Another state of all panes.
Update = Callable[[DisplayState], DisplayState]


class FollowedState:
    """The state that lines are about: the one that holds, but while Enter on a line led there they stay as they are.

    Attributes:
        live: The state that holds.
        state: What lines are about.
    """

    def __init__(self, state: DisplayState) -> None:
        self.live = self.state = state
        #: The state that Enter on a line asked for: while its selection holds, lines are about what they were.
        self._left_for: DisplayState | None = None

    def show(self, state: DisplayState) -> None:
        """Another state holds."""
        self.live, left = state, self._left_for
        if left is None or (left.selection, left.scope) != (state.selection, state.scope):
            self._left_for, self.state = None, state
        elif (left.filter, left.figures_window) != (state.filter, state.figures_window):
            self.state = replace(state, selection=self.state.selection)

    def leave(self, update: Update) -> None:
        """All panes but the lines are about to change."""
        self._left_for = update(self.live)


def goal(session: Session, target: Target) -> tuple[Update, str] | None:
    """What Enter makes of the state, and what is said of it; None where events have to be looked through first."""
    if target.condition:
        return None
    if target.event is not None:
        return event_goal(session, *target.event, "Selected")
    if target.time is not None:
        return _time_goal(*target.time), ""
    if target.step is not None:
        steps = session.steps.steps
        for place in np.flatnonzero(steps.number == target.step)[:1].tolist():
            return _time_goal(int(steps.start[place]), int(steps.end[place])), ""
    if target.scope is not None:
        group, lane = target.scope.group, target.scope.lane
        selection = Selection(session.unit_of(lane) if lane >= 0 else group, lane)
        told = f"{session.scope_title(target.scope)}: Enter again shows it alone."
        return lambda state: replace(state, selection=selection), told
    return None


def event_goal(session: Session, lane: int, row: int, what: str) -> tuple[Update, str]:
    """An event selected and in view; ``what`` says why it is this one."""
    told = f"{what}: {session.title_of(lane)}. f zooms to it, i tells all, o shows nothing else."
    return lambda state: selected(session, state, lane, row), told


def _time_goal(start: int, end: int) -> Update:
    return lambda state: state.showing(start, end).at(start)


def narrowed_state(session: Session, target: Target) -> Update | None:
    """What narrowing to a target makes of the state, where that is a time, an event or a scope; again: everything."""
    if target.time is not None:
        start, end = target.time
        return lambda state: state.windowed(start, end - start).at(start)
    scope = target.scope
    if scope is None and target.event is not None:
        unit = session.unit_of(target.event[0])
        scope = Scope(unit) if unit >= 0 else Scope(lane=target.event[0])
    wanted = scope
    return None if wanted is None else lambda state: replace(state, scope=Scope() if state.scope == wanted else wanted)
