"""Dependencies between instructions as flows: arrows from what releases to what waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from tpuprof_tui.analysis.links.dependencies import Dependencies
from tpuprof_tui.model import Profile
from tpuprof_tui.model.lane import Rows

I64 = npt.NDArray[np.int64]

#: Arrows that leave one instruction, or reach it; more would not be told apart, and are left out.
MOST_FLOWS: Final = 63


class FlowEnds(Struct, frozen=True):
    """Flows that touch one kind of end of a lane's instructions.

    Attributes:
        rows: Row of each, ascending.
        ids: Number of the flow.
    """

    rows: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    ids: I64 = field(default_factory=lambda: np.zeros(0, np.int64))

    def counts(self, rows: I64) -> I64:
        """How many flows touch each row, at most ``MOST_FLOWS``."""
        if not len(self.rows):
            return np.zeros(len(rows), np.int64)
        last = np.searchsorted(self.rows, rows, side="right")
        return np.asarray(last - np.searchsorted(self.rows, rows, side="left"), dtype=np.int64)

    def numbers(self, rows: I64, count: int) -> list[I64]:
        """Flow numbers of rows that all have at least ``count``: one array per flow, of one number per row."""
        first = np.searchsorted(self.rows, rows, side="left")
        return [self.ids[first + place] for place in range(count)]


class LaneFlows(Struct, frozen=True):
    """The flows of a lane: those that leave its instructions, and those that reach their begin or their end."""

    leaving: FlowEnds = field(default_factory=FlowEnds)
    reaching_begin: FlowEnds = field(default_factory=FlowEnds)
    reaching_end: FlowEnds = field(default_factory=FlowEnds)

    @property
    def ends(self) -> tuple[FlowEnds, FlowEnds, FlowEnds]:
        """All three."""
        return self.leaving, self.reaching_begin, self.reaching_end


def lane_flows(profile: Profile, dependencies: Dependencies, chosen: Mapping[int, Rows]) -> dict[int, LaneFlows]:
    """Flows by place in ``Profile.lanes``.

    A flow reaches the begin of what waits where that comes later than the begin of what releases it, else its end: a
    wait may begin long before it is released. A dependency that cannot be so (the wait ends before the release begins),
    that is guesswork, or whose instructions are not there, is left out.

    Args:
        profile: The profile.
        dependencies: Its dependencies; both ends of each must be places in it, else it is left out.
        chosen: Rows that are written, by place of the lane.
    """
    from_start, from_there = _times(profile, dependencies.releaser_lane, dependencies.releaser_row, chosen, "start")
    to_start, to_there = _times(profile, dependencies.waiter_lane, dependencies.waiter_row, chosen, "start")
    to_end, _ = _times(profile, dependencies.waiter_lane, dependencies.waiter_row, chosen, "end")
    at_begin = to_start > from_start
    at_end = ~at_begin & (to_end > from_start)
    drawn = from_there & to_there & (at_begin | at_end)
    drawn &= ~np.isin(dependencies.links.kind, list(dependencies.links.guessed))
    for lanes, rows in (
        (dependencies.releaser_lane, dependencies.releaser_row), (dependencies.waiter_lane, dependencies.waiter_row),
    ):  # fmt: skip
        drawn &= _places_among_equals(lanes.astype(np.int64) << 40 | rows) < MOST_FLOWS
    ids = np.arange(1, len(dependencies) + 1, dtype=np.int64)
    flows: dict[int, LaneFlows] = {}
    for number in chosen:
        leaves, reaches = drawn & (dependencies.releaser_lane == number), drawn & (dependencies.waiter_lane == number)
        if leaves.any() or reaches.any():
            flows[number] = LaneFlows(
                _ends(dependencies.releaser_row, ids, leaves),
                _ends(dependencies.waiter_row, ids, reaches & at_begin),
                _ends(dependencies.waiter_row, ids, reaches & at_end),
            )
    return flows


def _places_among_equals(keys: I64) -> I64:
    """How many equal keys come before each."""
    order = np.argsort(keys, kind="stable")
    first = np.searchsorted(keys[order], keys[order], side="left")
    places = np.empty(len(keys), dtype=np.int64)
    places[order] = np.arange(len(keys)) - first
    return places


def _ends(rows: npt.NDArray[Any], ids: I64, which: npt.NDArray[np.bool_]) -> FlowEnds:
    mine, numbers = np.asarray(rows[which], dtype=np.int64), ids[which]
    order = np.argsort(mine, kind="stable")
    return FlowEnds(mine[order], numbers[order])


def _times(
    profile: Profile, lanes: npt.NDArray[Any], rows: npt.NDArray[Any], chosen: Mapping[int, Rows], key: str
) -> tuple[I64, npt.NDArray[np.bool_]]:
    """A time of each instruction, and whether it is one that is written."""
    times = np.zeros(len(lanes), dtype=np.int64)
    there = np.zeros(len(lanes), dtype=np.bool_)
    for number, some in chosen.items():
        lane = profile.lanes[number]
        mine = np.flatnonzero((lanes == number) & (rows >= 0) & (rows < len(lane)))
        if not len(mine):
            continue
        written = np.zeros(len(lane), dtype=np.bool_)
        written[some] = True
        wanted = np.asarray(rows[mine], dtype=np.int64)
        times[mine] = lane.take(key, wanted)
        there[mine] = written[wanted]
    return times, there
