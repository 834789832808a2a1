"""How much of a difference is noise: within a capture from what repeats in it, between runs measured or stated.

Repeats are launches of one kernel function with the same commands on one unit, or events of one operation with the same
operands in one kernel function: a *stratum*. How much they differ from one another says how far a sum of them can lie
from where it would lie in another try. It says nothing of how one run differs from the next: that is a floor, stated
for fewer than three captures a side, measured from then on (`gating`).
"""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from .students_t import quantile

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

Status = Literal["same", "more", "less", "added", "removed", "unclear"]
#: Name of what has none.
UNKNOWN: Final = "-"
#: How far runs of the same lie apart where nothing measures it: a share.
RUN_NOISE: Final = 0.02
#: Chance that an interval does not hold the difference.
LEVEL: Final = 0.01


class Noise(Struct, frozen=True):
    """What a difference has to be beyond.

    Attributes:
        within: Standard deviation of one launch, as a share of it; None where nothing repeats.
        between: How far runs lie apart, a share.
        base_runs, other_runs: How many captures there are of each side.
        stated: Whether the latter is stated rather than measured.
    """

    within: float | None
    between: float = RUN_NOISE
    base_runs: int = 1
    other_runs: int = 1
    stated: bool = True


class Lost(Struct, frozen=True):
    """Records known to be lost on each side."""

    base: int = 0
    other: int = 0


NOTHING_LOST: Final = Lost()


class Amount(Struct, frozen=True):
    """A sum on both sides.

    Attributes:
        name: What of.
        base, other: ns.
        base_count, other_count: Of how many.
        low, high: Interval of the difference, ns, by what repeats and what runs differ by; None where nothing
            measures it.
        status: See ``status_of``.
        variance, freedom: Of the difference by what repeats within each side, ns squared, and the degrees of freedom
            it rests on; NaN where nothing measures it.
    """

    name: str
    base: int
    other: int
    base_count: int
    other_count: int
    low: float | None = None
    high: float | None = None
    status: Status = "same"
    variance: float = math.nan
    freedom: float = 0.0

    @property
    def delta(self) -> int:
        """Other minus base."""
        return self.other - self.base


class Spread(Struct, frozen=True, eq=False):
    """How far sums of repeats may lie from where they would lie in another try; arrays by label.

    Attributes:
        variance: float64 ns squared; NaN where nothing measures it.
        freedom: Degrees of freedom that it rests on.
    """

    variance: Floats
    freedom: Floats


class Strata(Struct, frozen=True, eq=False):
    """Repeats of one side, by stratum; arrays of one length.

    Attributes:
        label: What each stratum belongs to.
        count: int64, repeats.
        mean: float64 ns.
        squares: float64, sum of the squared distances from the mean.
    """

    label: Ints
    count: Ints
    mean: Floats
    squares: Floats

    @classmethod
    def of(cls, label: Ints, stratum: npt.NDArray[np.uint64], value: Ints) -> Strata:
        """The strata of some repeats; O(n log n)."""
        if not len(label):
            nothing = np.zeros(0)
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), nothing, nothing)
        _, first, which, count = np.unique(stratum, return_index=True, return_inverse=True, return_counts=True)
        which = which.reshape(-1)
        mean = np.bincount(which, weights=value) / count
        squares = np.bincount(which, weights=(value - mean[which]) ** 2).astype(np.float64)
        return cls(label[first], count.astype(np.int64), mean, squares)

    def spread(self, labels: int, within: float | None) -> Spread:
        """Variance of the sum of each label; what does not repeat varies as everything does (``within``)."""
        several = self.count > 1
        one = np.nan if within is None else (within * self.mean) ** 2
        each = np.where(several, self.squares / np.maximum(self.count - 1, 1), one)
        variance, freedom = (np.bincount(self.label, weights=weights, minlength=labels).astype(np.float64)
                             for weights in (self.count * each, self.count - 1))  # fmt: skip
        return Spread(variance, freedom)


def within_share(*sides: Strata) -> float | None:
    """Standard deviation of one repeat as a share of it, of all strata together; None where nothing repeats."""
    known = [(each.squares[chosen] / each.mean[chosen] ** 2, each.count[chosen] - 1)
             for each in sides for chosen in [(each.count > 1) & (each.mean > 0)]]  # fmt: skip
    freedom = sum(int(count.sum()) for _, count in known)
    return math.sqrt(sum(float(part.sum()) for part, _ in known) / freedom) if freedom else None


def interval(
    delta: float, variance: float, freedom: float, floor: float = 0.0, level: float = LEVEL
) -> tuple[float, float] | None:
    """Where a difference lies with a chance of 1 - level, and so much further out; None where it is not known."""
    if not math.isfinite(variance):
        return None
    # what rests on other repeats alone has their freedom, which is large
    wide = quantile(level / 2, freedom if freedom >= 1 else 30.0) * math.sqrt(max(variance, 0.0)) + floor
    return delta - wide, delta + wide


def lost_explains(amount: Amount, lost: Lost) -> bool:
    """Whether records that are lost could be why a sum is another: less of it, or what names it lost."""
    if amount.name == UNKNOWN:
        return bool(lost.base or lost.other)
    fewer = amount.other_count - amount.base_count
    return bool((lost.other and fewer < 0) or (lost.base and fewer > 0))


def status_of(amount: Amount, noise: Noise, lost: Lost = NOTHING_LOST) -> Status:
    """What a sum became: more or less only beyond what repeats and what runs differ by, together.

    ``same`` within what runs differ by alone; ``unclear`` between both, where nothing measures it, and where lost
    records could explain it.
    """
    delta = amount.delta
    if delta and lost_explains(amount, lost):
        return "unclear"
    if not amount.base_count and amount.other_count:
        return "added"
    if amount.base_count and not amount.other_count:
        return "removed"
    if abs(delta) <= noise.between * max(abs(amount.base), abs(amount.other)):
        return "same"
    if amount.low is None or amount.high is None or amount.low <= 0 <= amount.high:
        return "unclear"
    return "more" if delta > 0 else "less"
