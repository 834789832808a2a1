"""Dependencies between instructions as flows: arrows from the releaser to the waiter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.links.dependencies import Dependencies
from tpuprof_tui.formats.perfetto.tracks import Flows
from tpuprof_tui.model import Profile
from tpuprof_tui.model.lane import Rows

I64 = npt.NDArray[np.int64]
#: Flows of a lane: from its instructions, to their begin, and to their end.
LaneFlows = tuple[Flows, Flows, Flows]

#: Most arrows from or to one instruction; more would be indistinguishable and are left out.
MOST_FLOWS: Final = 63


def lane_flows(profile: Profile, dependencies: Dependencies, chosen: Mapping[int, Rows]) -> dict[int, LaneFlows]:
    """Flows by index in ``Profile.lanes``.

    A flow ends at the begin of the waiter if that is later than the begin of the releaser, else at the waiter's end: a
    wait may begin long before it is released. A dependency is left out if it is impossible (the wait ends before the
    release begins), guessed, or if one of its instructions is not written.

    ``chosen``: rows that are written, by lane index.
    """
    lane, row = dependencies.releaser_lane, np.asarray(dependencies.releaser_row, np.int64)
    to_lane, to_row = dependencies.waiter_lane, np.asarray(dependencies.waiter_row, np.int64)
    from_start, from_written = _times(profile, lane, row, chosen, "start")
    to_start, to_written = _times(profile, to_lane, to_row, chosen, "start")
    to_end, _ = _times(profile, to_lane, to_row, chosen, "end")
    at_begin = to_start > from_start
    drawn = from_written & to_written & (at_begin | (to_end > from_start))
    drawn &= ~np.isin(dependencies.links.kind, list(dependencies.links.guessed))
    for lanes, rows in ((lane, row), (to_lane, to_row)):
        drawn &= _rank_among_equals(lanes.astype(np.int64) << 40 | rows) < MOST_FLOWS
    flows: dict[int, LaneFlows] = {}
    for number in chosen:
        leaves, reaches = drawn & (lane == number), drawn & (to_lane == number)
        if leaves.any() or reaches.any():
            count = len(profile.lanes[number])
            leaving, beginning, ending = (
                Flows(rows[which], np.flatnonzero(which) + 1, count)
                for rows, which in ((row, leaves), (to_row, reaches & at_begin), (to_row, reaches & ~at_begin))
            )
            flows[number] = leaving, beginning, ending
    return flows


def _rank_among_equals(keys: I64) -> I64:
    """Number of equal keys before each key."""
    order = np.argsort(keys, kind="stable")
    first = np.searchsorted(keys[order], keys[order], side="left")
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[order] = np.arange(len(keys)) - first
    return ranks


def _times(
    profile: Profile, lanes: npt.NDArray[Any], rows: I64, chosen: Mapping[int, Rows], key: str
) -> tuple[I64, npt.NDArray[np.bool_]]:
    """A time of each instruction (ns), and a mask of the instructions that are written."""
    times = np.zeros(len(lanes), dtype=np.int64)
    written = np.zeros(len(lanes), dtype=np.bool_)
    for number, written_rows in chosen.items():
        lane = profile.lanes[number]
        selected = np.flatnonzero((lanes == number) & (rows >= 0) & (rows < len(lane)))
        if len(selected):
            lane_mask = np.zeros(len(lane), dtype=np.bool_)
            lane_mask[written_rows] = True
            times[selected], written[selected] = lane.take(key, rows[selected]), lane_mask[rows[selected]]
    return times, written
