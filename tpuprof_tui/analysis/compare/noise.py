"""How much of a difference is noise: within a capture from what repeats in it, between runs measured or stated.

Repeats are launches of one kernel function with the same commands on one unit, or events of one operation with the same
operands in one kernel function: a *stratum*. How much they differ from one another says how far a sum of them can lie
from where it would lie in another try. It says nothing of how one run differs from the next: that is a floor, stated
for fewer than three captures a side, measured from then on (`gating`).

How wide an interval has to be is told by Student's distribution: the cumulative one by the regularised incomplete beta
function (continued fraction of Lentz; Press et al., Numerical Recipes, 6.4), its inverse by Newton's method.
"""

from __future__ import annotations

import functools
import math
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

Status = Literal["same", "more", "less", "added", "removed", "unclear"]
#: Name of what has none.
UNKNOWN: Final = "-"
#: How far runs of the same lie apart where nothing measures it: a share.
RUN_NOISE: Final = 0.02
#: Chance that an interval does not hold the difference.
LEVEL: Final = 0.01
_TINY: Final = 1e-300
_ROUNDS: Final = 300
#: From so many degrees of freedom on it is the normal distribution.
_NORMAL: Final = 1e6


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
        _, first, which, count = np.unique(stratum, return_index=True, return_inverse=True, return_counts=True)
        which = which.reshape(-1)
        mean = np.bincount(which, weights=value) / count
        squares = np.bincount(which, weights=(value - mean[which]) ** 2).astype(np.float64)
        return cls(label[first], count.astype(np.int64), mean, squares)

    def spread(self, labels: int, within: float | None) -> tuple[Floats, Floats]:
        """Variance, ns squared, of the sum of each label in another try, NaN where nothing measures it; its freedom.

        What does not repeat varies as everything does (``within``).
        """
        one = np.nan if within is None else (within * self.mean) ** 2
        each = np.where(self.count > 1, self.squares / np.maximum(self.count - 1, 1), one)
        variance, freedom = (np.bincount(self.label, weights=weights, minlength=labels).astype(np.float64)
                             for weights in (self.count * each, self.count - 1))  # fmt: skip
        return variance, freedom


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


def status_of(amount: Amount, noise: Noise, lost: Lost = NOTHING_LOST) -> Status:
    """What a sum became: more or less only beyond what repeats and what runs differ by, together.

    ``same`` within what runs differ by alone; ``unclear`` between both, where nothing measures it, and where lost
    records could explain it.
    """
    delta, fewer = amount.delta, amount.other_count - amount.base_count
    # less of it, or of what names it, may be lost
    explained = bool(lost.base or lost.other) if amount.name == UNKNOWN else \
        bool((lost.other and fewer < 0) or (lost.base and fewer > 0))  # fmt: skip
    if delta and explained:
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


def upper_tail(value: float, freedom: float) -> float:
    """Chance of a value at least so large; 0.5 at 0."""
    if value < 0:
        return 1 - upper_tail(-value, freedom)
    if freedom >= _NORMAL:
        return math.erfc(value / math.sqrt(2)) / 2
    return _beta(freedom / (freedom + value * value), freedom / 2, 0.5) / 2


@functools.lru_cache(maxsize=1024)
def quantile(tail: float, freedom: float) -> float:
    """The value that is exceeded with this chance (below 0.5).

    Above 0 the chance falls ever more slowly, so that Newton's steps from 0 come nearer without passing the value.
    Sums by the thousand have few degrees of freedom between them, hence the cache.
    """
    value = 0.0
    for _ in range(_ROUNDS):
        step = (upper_tail(value, freedom) - tail) / _density(value, freedom)
        value += step
        if step <= 1e-12 * value or value >= 1e12:
            break
    return value


def _density(value: float, freedom: float) -> float:
    if freedom >= _NORMAL:
        return math.exp(-value * value / 2) / math.sqrt(2 * math.pi)
    half = (freedom + 1) / 2
    front = math.lgamma(half) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    return math.exp(front - half * math.log1p(value * value / freedom))


def _beta(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1) / (a + b + 2):
        return 1 - front * _fraction(1 - x, b, a) / b
    return front * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    found = d
    for m in range(1, _ROUNDS):
        for part in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + part * d
            c = 1 + part / c
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = c if abs(c) > _TINY else _TINY
            found *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return found
