"""Dependencies between instructions as flows: arrows from what releases to what waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..model import Profile
from ..model.lane import Rows

I64 = npt.NDArray[np.int64]

#: Arrows that one end of one instruction can have; more would not be told apart.
MOST_FLOWS: Final = 32


@dataclass(frozen=True)
class Links:
    """Dependencies between instructions of a profile, one entry each; all arrays are of one length.

    Attributes:
        from_lane, to_lane: Places in ``Profile.lanes``.
        from_row, to_row: Rows of those lanes: what must come first, and what waits for it.
    """

    from_lane: npt.NDArray[Any]
    from_row: npt.NDArray[Any]
    to_lane: npt.NDArray[Any]
    to_row: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.from_lane)


@dataclass(frozen=True)
class FlowEnds:
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
        found = np.searchsorted(self.rows, rows, side="right") - np.searchsorted(self.rows, rows, side="left")
        return np.asarray(np.minimum(found, MOST_FLOWS), dtype=np.int64)

    def numbers(self, rows: I64, count: int) -> list[I64]:
        """Flow numbers of rows that all have at least ``count``: one array per flow, of one number per row."""
        first = np.searchsorted(self.rows, rows, side="left")
        return [self.ids[first + place] for place in range(count)]


@dataclass(frozen=True)
class LaneFlows:
    """The flows of a lane: those that leave its instructions, and those that reach their begin or their end."""

    leaving: FlowEnds = field(default_factory=FlowEnds)
    reaching_begin: FlowEnds = field(default_factory=FlowEnds)
    reaching_end: FlowEnds = field(default_factory=FlowEnds)

    @property
    def ends(self) -> tuple[FlowEnds, FlowEnds, FlowEnds]:
        """All three."""
        return self.leaving, self.reaching_begin, self.reaching_end


def lane_flows(profile: Profile, links: Links, chosen: Mapping[int, Rows]) -> dict[int, LaneFlows]:
    """Flows by place in ``Profile.lanes``.

    A flow reaches the begin of what waits where that comes later than the begin of what releases it, else its end: a
    wait may begin long before it is released. A link that cannot be so (the wait ends before the release begins), or
    whose instructions are not there, is left out.

    Args:
        profile: The profile.
        links: Its dependencies.
        chosen: Rows that are written, by place of the lane.
    """
    count = len(links)
    from_start, from_there = _times(profile, links.from_lane, links.from_row, chosen, "start")
    to_start, to_there = _times(profile, links.to_lane, links.to_row, chosen, "start")
    to_end, _ = _times(profile, links.to_lane, links.to_row, chosen, "end")
    sound = from_there & to_there
    at_begin = sound & (to_start > from_start)
    at_end = sound & ~at_begin & (to_end > from_start)
    drawn = at_begin | at_end
    ids = np.arange(1, count + 1, dtype=np.int64)
    flows: dict[int, LaneFlows] = {}
    for number in chosen:
        leaves, reaches = links.from_lane == number, links.to_lane == number
        flows[number] = LaneFlows(
            _ends(links.from_row, ids, leaves & drawn),
            _ends(links.to_row, ids, reaches & at_begin),
            _ends(links.to_row, ids, reaches & at_end),
        )
    return flows


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
