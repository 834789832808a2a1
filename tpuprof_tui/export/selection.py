"""Which instructions an export writes: all of them, or those of some cores, a range of time, or a filter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING, Lane, Profile

Rows = slice | npt.NDArray[np.int64]


@dataclass(frozen=True)
class Selection:
    """A choice of instructions. The default is everything.

    Attributes:
        cores: Only these cores, and what they submitted to CDMA ports; None: all.
        start_ns, end_ns: Only instructions that run or start in this half-open window; None: no bound.
        keep: Boolean mask of a lane's rows that pass a filter; None: all pass.
    """

    cores: frozenset[int] | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    keep: Callable[[Lane], npt.NDArray[np.bool_]] | None = None

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self == Selection()

    def has_lane(self, lane: Lane) -> bool:
        """Whether any row of the lane can be chosen."""
        return self.cores is None or lane.core < 0 or lane.core in self.cores

    def passes(self, lane: Lane) -> npt.NDArray[np.bool_]:
        """Whether each row of the lane is chosen."""
        mask = np.zeros(len(lane), np.bool_)
        mask[self.rows(lane)] = True
        return mask

    def rows(self, lane: Lane) -> Rows:
        """The chosen rows of a lane, ascending; a slice where they are all or none."""
        if not self.has_lane(lane):
            return slice(0, 0)
        masks: list[npt.NDArray[np.bool_]] = []
        if self.cores is not None and lane.core < 0 and "core" in lane:
            masks.append(np.isin(lane["core"], [*self.cores, INT_MISSING]))
        if self.start_ns is not None:
            # what takes no time is where it starts
            masks.append((lane["end"] > self.start_ns) | (lane["start"] >= self.start_ns))
        if self.end_ns is not None:
            masks.append(lane["start"] < self.end_ns)
        if self.keep is not None:
            masks.append(self.keep(lane))
        if not masks:
            return slice(0, len(lane))
        return np.flatnonzero(np.logical_and.reduce(masks))


def ordered_lanes(profile: Profile) -> list[Lane]:
    """Lanes by core, then by kind; then those of no core, by port."""
    rank = {kind.key: kind.order for kind in profile.vocabulary.lane_kinds}
    return sorted(
        profile.lanes,
        key=lambda lane: (lane.core < 0, lane.core, rank.get(lane.engine, len(rank)), lane.port),
    )
