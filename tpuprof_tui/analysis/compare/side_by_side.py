"""A profile beside its base: which lanes and units belong together, and the time axis that both share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Profile

from ..selecting.session import Session
from ..selecting.state import Scope
from ..steps.step_lane import step_lane
from .aligned_axis import AlignedAxis
from .comparison import Comparison
from .work import paired_units

Ints = npt.NDArray[np.int64]


class SideBySide:
    """What a picture of both profiles needs.

    Attributes:
        session: The profile that is shown.
        base: What it is compared with.
        lanes: By lane of the session the lane of the base that belongs to it; -1 without one.
        alone: Lanes of the base that belong to none.
        units: By unit of the session the unit of the base.
    """

    def __init__(self, session: Session, base: Session, comparison: Comparison) -> None:
        self.session, self.base = session, base
        self._comparison = comparison
        _, (ours, theirs) = paired_units(base.profile, session.profile, comparison.pairs or [(-1, -1)])
        unit_at = {place: unit for unit, place in ours.items()}
        self._places = theirs
        self.units = {unit: unit_at[place] for unit, place in theirs.items() if place in unit_at}
        self.lanes = _paired_lanes(base.profile, session.profile, ours, theirs)
        self.alone = tuple(sorted({*range(len(base.profile.lanes))} - {*self.lanes}))

    def axis(self, scope: Scope) -> AlignedAxis:
        """The axis on which launches of the unit of a scope with the most work that is paired begin together.

        Steps do where no launches are paired. O(launches) for a new scope.
        """
        group = self.session.unit_of(scope.lane) if scope.lane >= 0 else scope.group
        return self.session.derived.get("aligned axis", lambda: self._axis(group), group, most=8)

    def _axis(self, group: int) -> AlignedAxis:
        span, base_span = ((side.profile.start_ns, side.profile.end_ns) for side in (self.session, self.base))
        pairs = self._comparison.launches
        base, other = self._comparison.both.base.launches, self._comparison.both.other.launches
        mine = (base.sequence[pairs.base] == other.sequence[pairs.other]) & (other.unit[pairs.other] >= 0)
        places = [self._places[unit] for unit in self.session.profile.groups.units_within(group)
                  if unit in self._places]  # fmt: skip
        if group >= 0 and places:
            mine &= np.isin(other.unit[pairs.other], places)
        one, two = pairs.base[mine], pairs.other[mine]
        if not len(one):
            return AlignedAxis.of(span, base_span, *self._paired_steps())
        sequence = other.sequence[two]
        chosen = sequence == np.bincount(sequence, weights=other.work[two]).argmax()
        return AlignedAxis.of(span, base_span, other.start[two[chosen]], base.start[one[chosen]])

    def _paired_steps(self) -> tuple[Ints, Ints]:
        """Starts of steps with one number; of those in one place where no number is the same."""
        other, base = (step_lane(side).lane for side in (self.session, self.base))
        _, two, one = np.intersect1d(other["number"], base["number"], return_indices=True)
        if not len(two):
            one = two = np.arange(min(len(base), len(other)))
        return other["start"][two], base["start"][one]


def _paired_lanes(base: Profile, other: Profile, ours: dict[int, int], theirs: dict[int, int]) -> tuple[int, ...]:
    """Lanes of one kind of a pair of units: those with one label, then the others in their order."""
    found = [-1] * len(other.lanes)
    taken: set[int] = set()
    for by_label in (True, False):
        waiting: dict[tuple[int, str, str], list[int]] = {}
        for number, lane in enumerate(base.lanes):
            if number not in taken:
                key = ours.get(base.unit_of(lane), -1), lane.kind, base.title_of(lane) if by_label else ""
                waiting.setdefault(key, []).append(number)
        for number, lane in enumerate(other.lanes):
            key = theirs.get(other.unit_of(lane), -1), lane.kind, other.title_of(lane) if by_label else ""
            if found[number] < 0 and waiting.get(key):
                found[number] = waiting[key].pop(0)
                taken.add(found[number])
    return tuple(found)
