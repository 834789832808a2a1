"""What a unit did instead of work: its longest pauses, and what it got less of than others."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.model import Role

from ..index.lane_index import event_at
from ..selecting.session import Session
from ..totals.work_sums import TOTAL, Grouping, work_sums

#: What a lane does in an event that is no work; annotations say nothing of it.
_DOES: Final = {int(Role.WAIT): "waits", int(Role.SYNC): "synchronises"}
#: Pauses and kernel functions that are told.
PAUSES: Final = 3
_DIFFERENCES: Final = 3
_FOREVER: Final = 1 << 62
_BY: Final[tuple[Grouping, ...]] = ("kernel", "name")


class Pause(Struct, frozen=True):
    """Time, ns, in which a unit neither computed nor moved data, and what it did instead."""

    start: int
    end: int
    text: str


def longest_pauses(session: Session, unit: int, start: int, end: int) -> tuple[Pause, ...]:
    """The longest stretches of the window in which a unit did no work, the longest first.

    Of a rank none before its recording begins and after it ends.
    """
    start, end = _recorded(session, unit, start, end)
    busy = session.indexes.by_unit[unit].either.clip(start, end)
    starts, ends = np.append(start, busy.ends), np.append(busy.starts, end)
    lengths = ends - starts
    # only those as long as the last of the longest are put in order
    least = np.partition(lengths, -PAUSES)[-PAUSES] if len(lengths) > PAUSES else 0
    near = np.flatnonzero(lengths >= least)
    longest = near[np.argsort(-lengths[near], kind="stable")][:PAUSES]
    return tuple(
        Pause(int(starts[place]), int(ends[place]), _told(session, unit, int(starts[place]), int(ends[place])))
        for place in longest.tolist()
        if ends[place] > starts[place]
    )


def _recorded(session: Session, unit: int, start: int, end: int) -> tuple[int, int]:
    """The part of a window in which there are events of what a unit lies in."""
    groups = session.profile.groups
    whole = groups.top(unit)
    if whole == unit:
        return start, end

    def extent() -> tuple[int, int]:
        lanes = [lane for lane in session.profile.lanes_of(whole) if len(lane)]
        # where a filter passes nothing of it, all of the window
        return (min((int(lane["start"][0]) for lane in lanes), default=-_FOREVER),
                max((int(lane["end"].max()) for lane in lanes), default=_FOREVER))  # fmt: skip

    first, last = session.derived.get("recorded", extent, whole)
    return min(max(start, first), end), max(min(end, last), start)


def _told(session: Session, unit: int, start: int, end: int) -> str:
    """What a unit does in the middle of a pause."""
    profile = session.profile
    for index in session.indexes.by_unit[unit].lanes:
        lane, row = index.lane, event_at(index, (start + end) // 2) if len(index.lane) else -1
        role = int(lane.take("role", slice(row, row + 1))[0]) if row >= 0 else Role.WORK
        if role not in _DOES:
            continue
        name, kernel = (text_of(profile, lane, key, row) for key in ("name", "kernel"))
        return f"{lane.label} {_DOES[role]}{f' ({name})' if name else ''}{f' in {kernel}' if kernel else ''}"
    return "nothing runs"


def differences(session: Session, unit: int, start: int, end: int, less: bool) -> tuple[tuple[str, int], ...]:
    """Text and ns of work beyond the mean of the units, where it differs most: with ``less`` than they, else with more.

    By kernel function; by operation where no kernel function is known, and nothing where neither is.
    """
    profile, indexes = session.profile, session.indexes
    if len(profile.units) < 2:
        return ()
    for by in _BY:
        # place 0 is work without a label
        every, own = (
            work_sums(profile, indexes, start, end, (by,), units=units)[by].sums[TOTAL][1:]
            for units in (profile.units, (unit,))
        )
        if not bool(every.any()):
            continue
        beyond = own - every / len(profile.units)
        ranked = np.argsort(beyond if less else -beyond, kind="stable")[:_DIFFERENCES].tolist()
        return tuple(
            (profile.strings[by][code], round(float(beyond[code])))
            for code in ranked
            if (beyond[code] < 0) == less and round(float(beyond[code]))
        )
    return ()
