"""Findings about single instructions: the most exposed transfers, the slowest large ones, the longest waits."""

from __future__ import annotations

from msgspec import Struct

from ..index.extremes import best_rows, exposed_score, slow_score, wait_score
from ..selecting.filter_masks import row_of_all, shown_session
from ..selecting.session import Session
from ..selecting.state import DisplayState, Scope


class Found(Struct, frozen=True):
    """An instruction worth a look.

    Attributes:
        lane: Index into ``Profile.lanes``.
        row: Row of that lane.
        value: Exposed ns, GB/s or ns of waiting.
    """

    lane: int
    row: int
    value: float


class Findings(Struct, frozen=True):
    """What is worth a look in a window, the worst first.

    Attributes:
        exposed: Transfers by the time nothing of their unit covered.
        slow: Transfers of at least ``extremes.LARGE`` bytes by falling time for a byte.
        wait: Waits by length.
    """

    exposed: tuple[Found, ...] = ()
    slow: tuple[Found, ...] = ()
    wait: tuple[Found, ...] = ()


def findings(session: Session, state: DisplayState, scope: Scope, most: int) -> Findings:
    """What is worth a look; O(instructions) the first time, then O(lanes + blocks): meant for a thread.

    Args:
        session: All instructions; the state's filter is applied.
        state: Window and filter.
        scope: Where to look; a unit's holds of lanes of no unit what it submitted.
        most: How many of each kind.
    """
    shown = shown_session(session, state.filter)
    lanes = [(number, shown.indexes[number]) for number in shown.lanes_in(scope)]
    lanes = [(number, index) for number, index in lanes if index.lane.in_sums]
    within = session.profile.groups.within(scope.group) if scope.lane < 0 else frozenset[int]()
    shared = frozenset(number for number, index in lanes if index.lane.group not in within)
    exposed, slow, wait = (
        tuple(Found(lane, row_of_all(session, state.filter, lane, row), abs(value)) for value, lane, row in each)
        for each in best_rows(
            lanes, state.start, state.end, (exposed_score, slow_score, wait_score), most, within, shared
        )
    )
    return Findings(exposed, slow, wait)
