"""Instructions worth a look: the most exposed transfers, the slowest large ones, the longest waits of a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from ..analysis.extremes import Extremes, Score, best_rows, exposed_score, slow_score, wait_score
from ..analysis.lane_index import LaneIndex, rows_between
from ..model import Lane
from ..model.lane import Rows
from .filtering import passing, shown_session
from .session import Session
from .state import Scope, ViewState

#: How many of each kind.
MOST: Final = 3
_SCORES: Final[dict[str, Score]] = {"exposed": exposed_score, "slow": slow_score, "wait": wait_score}


@dataclass(frozen=True)
class Found:
    """An instruction worth a look.

    Attributes:
        lane: Index into ``Profile.lanes``.
        row: Row of that lane.
        value: Exposed ns, GB/s or ns of waiting.
    """

    lane: int
    row: int
    value: float


@dataclass(frozen=True)
class Findings:
    """What is worth a look in a window, the worst first.

    Attributes:
        exposed: Transfers by the time no computing of their core covered.
        slow: Transfers of at least ``extremes.LARGE`` bytes by falling time for a byte.
        wait: Waits by length.
    """

    exposed: tuple[Found, ...] = ()
    slow: tuple[Found, ...] = ()
    wait: tuple[Found, ...] = ()


_KNOWN: Final[WeakKeyDictionary[LaneIndex, dict[str, Extremes]]] = WeakKeyDictionary()


def findings(session: Session, view: ViewState, scope: Scope, most: int = MOST) -> Findings:
    """What is worth a look; O(instructions) the first time, then O(lanes): meant for a thread.

    Args:
        session: All instructions; the view's filter is applied.
        view: Window and filter.
        scope: Where to look; a core's holds of a port what the core submitted.
        most: How many of each kind.
    """
    shown = shown_session(session, view.filter)
    found: dict[str, tuple[Found, ...]] = {}
    for kind, score in _SCORES.items():
        best: list[tuple[float, int, int]] = []
        for number in shown.lanes_in(scope):
            index = shown.indexes[number]
            if not index.lane.on_host:
                best += [(-value, number, row) for value, row in _of_lane(index, view, scope, kind, score, most)]
        found[kind] = tuple(
            Found(lane, _row_of_all(session, view.filter, lane, row), value if kind == "slow" else -value)
            for value, lane, row in sorted(best)[:most]
        )
    return Findings(**found)


def _of_lane(
    index: LaneIndex, view: ViewState, scope: Scope, kind: str, score: Score, most: int
) -> list[tuple[float, int]]:
    if scope.core >= 0 and scope.lane < 0 and index.lane.core < 0:

        def own(lane: Lane, rows: Rows) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
            return np.where(lane.take("core", rows) == scope.core, score(lane, rows), -np.inf)

        return best_rows(index.lane, rows_between(index, view.start, view.end), own, most)
    known = _KNOWN.setdefault(index, {})
    if kind not in known:
        known[kind] = Extremes(score)
    return known[kind].largest(index, view.start, view.end, most)


def _row_of_all(session: Session, text: str, lane: int, row: int) -> int:
    """Row among all instructions of a lane of what is row ``row`` of those that pass the filter."""
    return int(np.flatnonzero(passing(session, text).lane(lane))[row]) if text else row
