"""Steps as a lane over time, and where one is chosen."""

from __future__ import annotations

import numpy as np

from tpuprof_tui.model import Lane, Role

from ..index.lane_index import LaneIndex, build_index
from ..selecting.session import Session

#: Fewer tell nothing over time.
FEWEST = 2


def step_lane(session: Session, group: int = -1) -> LaneIndex:
    """The steps that events of a group belong to, of all groups where it is -1; those with one number as one.

    Columns besides times: ``number`` and ``usual``.
    """
    return session.derived.get("steps over time", lambda: build_index(_lane(session, group)), group)


def step_span(session: Session, number: int, group: int = -1) -> tuple[int, int] | None:
    """First start and last end of the steps with a number; None without one."""
    lane = step_lane(session, group).lane
    row = np.flatnonzero(lane["number"] == number)
    return (int(lane["start"][row[0]]), int(lane["end"][row[0]])) if len(row) else None


def _lane(session: Session, group: int) -> Lane:
    found = session.steps
    own = found.set_of(group) if group >= 0 else None
    places = np.arange(len(found)) if group < 0 else own.place if own is not None else np.zeros(0, np.int64)
    number, which = np.unique(found.steps.number[places], return_inverse=True)
    which = which.reshape(-1)
    start = np.full(len(number), np.iinfo(np.int64).max, np.int64)
    end = np.full(len(number), np.iinfo(np.int64).min, np.int64)
    usual = np.ones(len(number), np.bool_)
    np.minimum.at(start, which, found.steps.start[places])
    np.maximum.at(end, which, found.steps.end[places])
    np.logical_and.at(usual, which, found.usual[places])
    order = np.lexsort((number, start))
    count = len(number)
    return Lane(
        kind="steps", group=group, label=found.word.plural,
        columns={"start": start[order], "end": end[order], "order": np.arange(count, dtype=np.int64),
                 "role": np.full(count, Role.WORK, np.int8), "sublane": np.zeros(count, np.int16),
                 "number": number[order].astype(np.int64), "usual": usual[order]},
    )  # fmt: skip
