"""Events of a profile beside their partners in the base: which belong together, and which of them differ."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from .comparison import Comparison
from .noise import LEVEL
from .students_t import quantile

Ints = npt.NDArray[np.int64]
#: Degrees of freedom that the noise of single events rests on at least.
_FREEDOM: Final = 30.0


class Differences(Struct, frozen=True, eq=False):
    """Events of a profile, by number, beside those of the base; numbers are as in ``Session``.

    Attributes:
        partner: int64, number of the event of the base that belongs to it; -1: none, or it does no work.
        changed: Whether the two have other operands.
        differs: Whether it was added, or changed, or took longer or shorter beyond noise (``beyond_noise``).
        removed: Events of the base that have no partner here.
        noise: See ``beyond_noise``.
    """

    partner: Ints
    changed: npt.NDArray[np.bool_]
    differs: npt.NDArray[np.bool_]
    removed: int
    noise: tuple[float, float | None]


def beyond_noise(base: Ints, other: Ints, between: float, within: float | None) -> npt.NDArray[np.bool_]:
    """Which of some events took another time, beyond what runs differ by and what events that repeat do.

    Args:
        base, other: int64 ns, of one length.
        between: How far runs lie apart, a share.
        within: Standard deviation of one event as a share of it; None: nothing repeats, so nothing is beyond it.
    """
    delta = np.abs(other - base).astype(np.float64)
    if within is None:
        return np.zeros(len(delta), np.bool_)
    by_chance = quantile(LEVEL / 2, _FREEDOM) * within * np.hypot(base, other)
    found: npt.NDArray[np.bool_] = delta > between * np.maximum(base, other) + by_chance
    return found


def find_differences(comparison: Comparison, base_first: Ints, other_first: Ints) -> Differences:
    """The differences of all events. O(n log n).

    Args:
        comparison: Of the whole profiles.
        base_first, other_first: int64, number of the first event of each lane of each side, and of all at the end.
    """
    base, other, pairs = comparison.both.base, comparison.both.other, comparison.events
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
    return Differences(partner, changed, differs, len(base) - len(pairs), noise)
