"""Which instructions an export writes: all of them, or those of some units, a range of time, or a filter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows, row_count


class Selection(Struct, frozen=True):
    """A choice of instructions. The default is everything.

    Attributes:
        units: Ids of the only units, and what they or nobody submitted to lanes of no unit; None: all.
        start_ns, end_ns: Only instructions that run or start in this half-open window; None: no bound.
        keep: Boolean mask of a lane's rows that pass a filter; None: all pass.
    """

    units: frozenset[int] | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    keep: Callable[[Lane], npt.NDArray[np.bool_]] | None = None

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self == Selection()

    def has_lane(self, profile: Profile, lane: Lane) -> bool:
        """Whether any row of the lane can be chosen."""
        return self.units is None or profile.unit_of(lane) in (-1, *self.units)

    def has_unit(self, unit: int) -> bool:
        """Whether a unit is chosen."""
        return self.units is None or unit in self.units

    def passes(self, profile: Profile, lane: Lane) -> npt.NDArray[np.bool_]:
        """Whether each row of the lane is chosen."""
        mask = np.zeros(len(lane), np.bool_)
        mask[self.rows(profile, lane)] = True
        return mask

    def rows(self, profile: Profile, lane: Lane) -> Rows:
        """The chosen rows of a lane, ascending; a slice where they are all or none."""
        if not self.has_lane(profile, lane):
            return slice(0, 0)
        masks: list[npt.NDArray[np.bool_]] = []
        if self.units is not None and profile.unit_of(lane) < 0 and "owner" in lane:
            masks.append(np.isin(profile.groups.units_of(lane["owner"]), [*self.units, -1]))
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


def selected_profile(profile: Profile, selection: Selection) -> Profile:
    """The profile with the chosen events and units alone; columns are computed when they are asked for."""
    if selection.everything:
        return profile
    groups = profile.groups.keeping([unit for unit in profile.units if selection.has_unit(unit)])
    rows = [selection.rows(profile, lane) for lane in profile.lanes]
    return replace(profile.keeping([some if row_count(some) else None for some in rows]), groups=groups)


class Page(Struct):
    """Neighbouring rows of all that come, part by part.

    Attributes:
        limit: How many at most; None: all.
        offset: How many are passed over.
        total: How many have come.
        taken: How many of these are on the page.
    """

    limit: int | None = None
    offset: int = 0
    total: int = 0
    taken: int = 0

    def take(self, count: int) -> slice:
        """Which of the next ``count`` rows are on the page."""
        first = min(max(self.offset - self.total, 0), count)
        last = count if self.limit is None else min(max(self.offset + self.limit - self.total, first), count)
        self.total += count
        self.taken += last - first
        return slice(first, last)


def ordered_lanes(profile: Profile) -> list[Lane]:
    """Lanes by unit, then by kind; then those of no unit, by their number."""
    rank, unit_of = {kind.key: kind.order for kind in profile.vocabulary.lane_kinds}, profile.unit_of
    return sorted(
        profile.lanes,
        key=lambda lane: (unit_of(lane) < 0, unit_of(lane), rank.get(lane.kind, len(rank)), lane.number),
    )
