"""A profile next to its base: partners of its events, pairs of lanes and units, and a common time axis.

On the axis paired launches start at the same position, and each side keeps its durations: an interval between two
anchors is as long as on the longer side; the shorter side has a gap before the next anchor.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import Profile
from tpuprof_tui.model.intervals import last_of_each

from ..selecting.session import Session
from ..selecting.state import Scope
from ..selecting.time_scale import cell_at, edges_of
from ..steps.step_figures import step_lane
from .amounts import Comparison
from .match import ascending_subsequence
from .noise import beyond_noise

Ints = npt.NDArray[np.int64]


class AlignedAxis(Struct, frozen=True, eq=False):
    """A time axis for two profiles, piecewise linear between anchors; arrays of one length, at least two."""

    #: other, base: int64 ns, ascending: times of the anchors on each side; the last are the ends.
    other: Ints
    base: Ints
    position: Ints  #: int64 ns, ascending: positions of the anchors on the axis

    @classmethod
    def of(
        cls, other_span: tuple[int, int], base_span: tuple[int, int], other_starts: Ints, base_starts: Ints
    ) -> AlignedAxis:
        """The axis on which pairs of starts (ns) coincide, as far as they are in the same order. O(n log n).

        A span is (first start, last end) of a side.
        """
        order = np.lexsort((base_starts, other_starts))
        kept = order[ascending_subsequence(base_starts[order])] if len(order) else order
        inside = (other_starts[kept] > other_span[0]) & (base_starts[kept] > base_span[0])
        kept = kept[inside & np.append(True, np.diff(other_starts[kept]) > 0)[: len(kept)]]
        other, base = (
            np.concatenate([[span[0]], starts[kept], [max(span[1], int(starts[kept].max(initial=span[0])))]])
            for span, starts in ((other_span, other_starts), (base_span, base_starts))
        )
        longer = np.maximum(np.diff(other), np.diff(base))
        return cls(other, base, np.concatenate([[0], np.cumsum(longer)]))

    def position_of(self, time: int) -> int:
        """Position of a time of the other profile; at an anchor, after the gap that ends there."""
        at = int(np.searchsorted(self.other, time, side="right")) - 1
        if at < 0 or at >= len(self.other) - 1:
            edge = 0 if at < 0 else -1
            return int(self.position[edge]) + time - int(self.other[edge])
        return min(int(self.position[at]) + time - int(self.other[at]), int(self.position[at + 1]))

    def _window(self, start: int, end: int) -> tuple[int, int]:
        """A window of the other profile on the axis, including gaps inside it and at its end."""
        low = int(self.position[0]) if start == int(self.other[0]) else self.position_of(start)
        return low, self.position_of(end)

    def edges(self, start: int, end: int, cells: int) -> Ints:
        """Edges of the cells over a window of the other profile, in its time; edges inside a gap are equal."""
        return self._times(self.other, start, end, cells)

    def base_edges(self, start: int, end: int, cells: int) -> Ints:
        """The same edges in the time of the base."""
        return self._times(self.base, start, end, cells)

    def _times(self, side: Ints, start: int, end: int, cells: int) -> Ints:
        positions = edges_of(*self._window(start, end), cells)
        at = np.clip(np.searchsorted(self.position, positions, side="right") - 1, 0, len(self.position) - 2)
        found: Ints = np.minimum(side[at] + positions - self.position[at], side[at + 1])
        return found

    def cell_at(self, time: int, start: int, end: int, cells: int) -> int:
        """The cell that contains a time of the other profile; outside 0 ... cells - 1 if it is not visible."""
        return cell_at(self.position_of(time), *self._window(start, end), cells)

    def own_cells(self, start: int, end: int, cells: int) -> int:
        """Approximate number of cells that are no gap of the other profile, at least 1."""
        low, high = self._window(start, end)
        return max(cells * (end - start) // max(high - low, 1), 1)


class SideBySide:
    """Pairs of lanes and units of a profile and its base, and their common axes.

    Attributes:
        lanes: By lane of the session, the corresponding lane of the base; -1: none.
        unpaired: Lanes of the base without a partner.
        units: Unit of the base by unit of the session.
    """

    def __init__(self, session: Session, base: Session, comparison: Comparison) -> None:
        self.session, self.base = session, base
        self._comparison = comparison
        ours, theirs = comparison.joint.unit_of
        unit_at = {pair: unit for unit, pair in ours.items()}
        self._pair_of = theirs
        self.units = {unit: unit_at[pair] for unit, pair in theirs.items() if pair in unit_at}
        self.lanes = _paired_lanes(base.profile, session.profile, ours, theirs)
        self.unpaired = tuple(sorted({*range(len(base.profile.lanes))} - {*self.lanes}))

    def axis(self, scope: Scope) -> AlignedAxis:
        """The axis that aligns paired launches of the scope's unit with the most work among those paired.

        Without paired launches it aligns steps. O(launches) for a new scope, cached.
        """
        group = self.session.unit_of(scope.lane) if scope.lane >= 0 else scope.group
        return self.session.cache.get("aligned axis", lambda: self._axis(group), group, limit=8)

    def _axis(self, group: int) -> AlignedAxis:
        span, base_span = ((side.profile.start_ns, side.profile.end_ns) for side in (self.session, self.base))
        pairs = self._comparison.launches
        base, other = self._comparison.joint.base.launches, self._comparison.joint.other.launches
        comparable = (base.sequence[pairs.base] == other.sequence[pairs.other]) & (other.unit[pairs.other] >= 0)
        unit_pairs = [
            self._pair_of[unit] for unit in self.session.profile.groups.units_within(group) if unit in self._pair_of
        ]
        if group >= 0 and unit_pairs:
            comparable &= np.isin(other.unit[pairs.other], unit_pairs)
        one, two = pairs.base[comparable], pairs.other[comparable]
        if not len(one):
            # steps with equal numbers; without any, steps by position
            steps, base_steps = (step_lane(side).lane for side in (self.session, self.base))
            _, two, one = np.intersect1d(steps["number"], base_steps["number"], return_indices=True)
            if not len(two):
                one = two = np.arange(min(len(base_steps), len(steps)))
            return AlignedAxis.of(span, base_span, steps["start"][two], base_steps["start"][one])
        sequence = other.sequence[two]
        chosen = sequence == np.bincount(sequence, weights=other.work[two]).argmax()
        return AlignedAxis.of(span, base_span, other.start[two[chosen]], base.start[one[chosen]])


def _paired_lanes(base: Profile, other: Profile, ours: dict[int, int], theirs: dict[int, int]) -> tuple[int, ...]:
    """By lane of ``other``, the lane of ``base`` of the same kind and unit: by label, then by order; -1: none."""
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


# events


class Differences(Struct, frozen=True, eq=False):
    """Events of a profile compared with those of the base; instruction numbers are as in ``Session``."""

    partner: Ints  #: int64, number of the corresponding event of the base; -1: none, or the event does no work
    changed: npt.NDArray[np.bool_]  #: Whether the two have different operands
    #: Whether the event was added, has changed operands, differs in duration by more than noise (``beyond_noise``), or
    #: represents its launch.
    differs: npt.NDArray[np.bool_]
    noise: tuple[float, float | None]  #: ``between`` and ``within`` of ``beyond_noise``
    #: Launches that differ in duration by more than noise, of a kernel that does, even if none of their events does:
    #: int64 number of the event that contributes most (ascending), and work of the launch in the base and here, ns.
    launches: tuple[Ints, Ints, Ints]

    def launch_at(self, number: int) -> tuple[int, int] | None:
        """Work of the launch that an event represents, in the base and here, ns; None if it represents none."""
        events, base, other = self.launches
        index = int(np.searchsorted(events, number))
        known = index < len(events) and int(events[index]) == number
        return (int(base[index]), int(other[index])) if known else None


def find_differences(comparison: Comparison, base_first: Ints, other_first: Ints) -> Differences:
    """The differences of all events of two whole profiles, given the number of each lane's first event. O(n log n)."""
    (base, other), pairs = comparison.works, comparison.events
    count = int(other_first[-1])
    numbers = other_first[other.lane] + other.row
    partner, changed = np.full(count, -1, np.int64), np.zeros(count, np.bool_)
    partner[numbers[pairs.other]] = (base_first[base.lane] + base.row)[pairs.base]
    changed[numbers[pairs.other]] = pairs.changed
    noise = comparison.noise.between, comparison.within_events
    differs = np.zeros(count, np.bool_)
    differs[numbers] = True
    differs[numbers[pairs.other]] = pairs.changed | beyond_noise(
        base.length[pairs.base], other.length[pairs.other], *noise
    )
    launches = _launches(comparison, numbers)
    differs[launches[0]] = True
    return Differences(partner, changed, differs, noise, launches)


def _launches(comparison: Comparison, numbers: Ints) -> tuple[Ints, Ints, Ints]:
    """Launches that differ by more than noise (``Differences.launches``); ``numbers``: of the other side's events."""
    (base, other), pairs, events = comparison.works, comparison.launches, comparison.events
    ours, theirs = base.launches.work[pairs.base], other.launches.work[pairs.other]
    beyond = beyond_noise(ours, theirs, comparison.noise.between, comparison.noise.within)
    # of many launches some exceed noise by chance: require that the kernel as a whole does
    changed = {part.name for part in comparison.kernels if part.status in ("more", "less")}
    codes = np.array([name in changed for name in comparison.joint.kernels] + [False])
    beyond &= codes[other.launches.kernel[pairs.other]] & (other.launches.unit[pairs.other] >= 0)
    if not base.launches.known:
        beyond[:] = False
    before = np.full(len(other.launches), -1, np.int64)
    before[pairs.other[beyond]] = ours[beyond]
    launch = other.launch[events.other]
    rows = np.flatnonzero(before[launch] >= 0)
    launch, work = launch[rows], other.launches.work
    more = other.length[events.other[rows]] - base.length[events.base[rows]]
    more *= np.sign(work[launch] - before[launch])
    last = last_of_each(np.lexsort((more, launch)), launch)
    found, launch = numbers[events.other[rows[last]]], launch[last]
    order = np.argsort(found)
    return found[order], before[launch][order], work[launch][order]
