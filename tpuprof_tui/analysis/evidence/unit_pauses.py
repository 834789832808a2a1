"""Where a unit lost time: its longest pauses, and its differences in work from the other units."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.model import Role

from ..index.lane_index import event_at
from ..index.unit_index import indexes_in_sums
from ..selecting.session import Session
from ..totals.work_sums import TOTAL, Grouping, work_sums

#: Verb for events that are no work; roles not listed (annotations) are not described.
_DOES: Final = {int(Role.WAIT): "waits", int(Role.SYNC): "synchronises"}
#: Maximum number of pauses.
PAUSES: Final = 3
_DIFFERENCES: Final = 3
_FOREVER: Final = 1 << 62
_BY: Final[tuple[Grouping, ...]] = ("kernel", "name")


class Pause(Struct, frozen=True):
    """An interval, ns, in which a unit did no work, and what it did instead."""

    start: int
    end: int
    text: str


def longest_pauses(session: Session, unit: int, start: int, end: int) -> tuple[Pause, ...]:
    """The longest intervals of the window in which a unit did no work, longest first.

    For a unit of a rank, limited to the time in which the rank was recorded.
    """
    start, end = _recorded(session, unit, start, end)
    busy = session.indexes.by_unit[unit].busy.clip(start, end)
    starts, ends = np.append(start, busy.ends), np.append(busy.starts, end)
    lengths = ends - starts
    # sort only those at least as long as the shortest of the top ``PAUSES``
    least = np.partition(lengths, -PAUSES)[-PAUSES] if len(lengths) > PAUSES else 0
    near = np.flatnonzero(lengths >= least)
    longest = near[np.argsort(-lengths[near], kind="stable")][:PAUSES]
    return tuple(
        Pause(int(starts[index]), int(ends[index]), _pause_text(session, unit, int(starts[index]), int(ends[index])))
        for index in longest.tolist()
        if ends[index] > starts[index]
    )


def _recorded(session: Session, unit: int, start: int, end: int) -> tuple[int, int]:
    """Clips a window to the events of the topmost group that contains a unit."""
    groups = session.profile.groups
    top = groups.top(unit)
    if top == unit:
        return start, end

    def extent() -> tuple[int, int]:
        lanes = [lane for lane in session.profile.lanes_of(top) if len(lane)]
        # if a filter removes all events, the whole window counts
        return (min((int(lane["start"][0]) for lane in lanes), default=-_FOREVER),
                max((int(lane["end"].max()) for lane in lanes), default=_FOREVER))  # fmt: skip

    first, last = session.cache.get("recorded", extent, top)
    return min(max(start, first), end), max(min(end, last), start)


def _pause_text(session: Session, unit: int, start: int, end: int) -> str:
    profile = session.profile
    for index in session.indexes.by_unit[unit].lanes:
        lane, row = index.lane, event_at(index, (start + end) // 2) if len(index.lane) else -1
        role = int(lane.take("role", slice(row, row + 1))[0]) if row >= 0 else Role.WORK
        if role not in _DOES:
            continue
        name, kernel = (text_of(profile, lane, key, row) for key in ("name", "kernel"))
        return f"{lane.label} {_DOES[role]}{f' ({name})' if name else ''}{f' in {kernel}' if kernel else ''}"
    return "nothing runs"


def work_differences(session: Session, unit: int, start: int, end: int, less: bool) -> tuple[tuple[str, int], ...]:
    """The labels with the largest deviation from the units' mean work, ns: below it if ``less``, else above it.

    By kernel function; by operation if no kernel function is known; empty if neither is.
    """
    profile, groups = session.profile, session.profile.groups
    peers = groups.peers(unit)
    if len(peers) < 2:
        return ()
    for by in _BY:
        of_units = {
            peer: work_sums(indexes_in_sums(profile, session.indexes, groups.within(peer)), profile.strings, start,
                            end, (by,))[by].sums[TOTAL][1:] for peer in peers  # index 0 is work without a label
        }  # fmt: skip
        every = np.sum(list(of_units.values()), axis=0)
        if not bool(every.any()):
            continue
        beyond = of_units[unit] - every / len(peers)
        ranked = np.argsort(beyond if less else -beyond, kind="stable")[:_DIFFERENCES].tolist()
        return tuple(
            (profile.strings[by][code], round(float(beyond[code])))
            for code in ranked
            if (beyond[code] < 0) == less and round(float(beyond[code]))
        )
    return ()
