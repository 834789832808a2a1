"""Per-event differences of a profile from its base: the partner of each event, and whether the two differ."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model.intervals import last_of_each

from .amounts import Comparison
from .noise import LEVEL, quantile

Ints = npt.NDArray[np.int64]
#: Degrees of freedom assumed for the noise of single events.
_FREEDOM: Final = 30.0


class Differences(Struct, frozen=True, eq=False):
    """Events of a profile compared with those of the base; instruction numbers are as in ``Session``.

    Attributes:
        partner: int64, number of the corresponding event of the base; -1: none, or the event does no work.
        changed: Whether the two have different operands.
        differs: Whether the event was added, has changed operands, differs in duration by more than noise
            (``beyond_noise``), or represents its launch.
        removed: Number of events of the base without a partner.
        noise: ``between`` and ``within`` of ``beyond_noise``.
        launches: Launches that differ in duration by more than noise, of a kernel that does, even if none of their
            events does: int64 number of the event that contributes most (ascending), and work of the launch in the base
            and here, ns.
    """

    partner: Ints
    changed: npt.NDArray[np.bool_]
    differs: npt.NDArray[np.bool_]
    removed: int
    noise: tuple[float, float | None]
    launches: tuple[Ints, Ints, Ints]

    def launch_at(self, number: int) -> tuple[int, int] | None:
        """Work of the launch that an event represents, in the base and here, ns; None if it represents none."""
        events, base, other = self.launches
        index = int(np.searchsorted(events, number))
        known = index < len(events) and int(events[index]) == number
        return (int(base[index]), int(other[index])) if known else None


def beyond_noise(base: Ints, other: Ints, between: float, within: float | None) -> npt.NDArray[np.bool_]:
    """Mask of events whose durations (ns a side) differ by more than noise.

    Args:
        base, other: Durations, ns.
        between: Variation between runs, as a share.
        within: Relative standard deviation of a single event; None: unknown, so no difference is beyond it.
    """
    delta = np.abs(other - base).astype(np.float64)
    if within is None:
        return np.zeros(len(delta), np.bool_)
    by_chance = quantile(LEVEL / 2, _FREEDOM) * within * np.hypot(base, other)
    found: npt.NDArray[np.bool_] = delta > between * np.maximum(base, other) + by_chance
    return found


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
    return Differences(partner, changed, differs, len(base) - len(pairs), noise, launches)


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
