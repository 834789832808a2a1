"""Noise of differences: within a run estimated from repeats in the capture, between runs measured or stated.

Repeats are launches of one kernel function with the same commands on one unit, or events of one operation with the same
operands in one kernel function: a *stratum*. Their variance gives the variance of a sum of them, but not the variation
from one run to the next: that is a stated floor for fewer than three captures a side, else measured (``gate``).

Intervals use Student's t distribution: its tail by tanh-sinh quadrature, its quantiles by Newton's method.
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
#: Label of work without a name.
UNKNOWN: Final = "-"
#: Default variation between runs, as a share.
RUN_NOISE: Final = 0.02
#: Probability that an interval does not contain the difference.
LEVEL: Final = 0.01
#: Degrees of freedom of a pooled variance, which is used where nothing repeats by itself.
POOLED: Final = 30.0
#: Powers of e below the density's value at the start that are nothing.
_VANISHING: Final = 40.0
_ROUNDS: Final = 300
#: Degrees of freedom from which the normal distribution is used.
_NORMAL: Final = 1e6


class Noise(Struct, frozen=True):
    """Noise that a difference must exceed."""

    within: float | None  #: Relative standard deviation of a single launch; None: nothing repeats
    between: float = RUN_NOISE  #: Variation between runs, as a share
    #: base_runs, other_runs: Number of captures of each side.
    base_runs: int = 1
    other_runs: int = 1
    stated: bool = True  #: Whether ``between`` is stated rather than measured

    def floor(self, amount: Amount) -> float:
        """Variation between runs that a difference must exceed by more than its interval; 0: the interval has it."""
        return self.between * max(abs(amount.base), abs(amount.other)) if self.stated else 0.0


class Lost(Struct, frozen=True):
    """Number of records known to be lost on each side; fragmentary: so many that they could explain anything."""

    base: int = 0
    other: int = 0
    fragmentary: bool = False


NOTHING_LOST: Final = Lost()


class Amount(Struct, frozen=True):
    """A sum on both sides, with the interval of its difference."""

    name: str  #: Label
    #: base, other: ns, whole but for medians of runs; of gates also other figures in their own units.
    base: float
    other: float
    #: base_count, other_count: Number of summands; of a step possibly a fraction.
    base_count: float
    other_count: float
    #: low, high: Interval of the difference, ns, from noise within and between runs; None: unknown.
    low: float | None = None
    high: float | None = None
    status: Status = "same"  #: See ``status_of``
    #: variance, degrees_of_freedom: Variance of the difference from repeats within each side, ns squared (NaN:
    #: unknown), and its degrees of freedom.
    variance: float = math.nan
    degrees_of_freedom: float = 0.0

    @property
    def delta(self) -> float:
        """Other minus base."""
        return self.other - self.base


class Strata(Struct, frozen=True, eq=False):
    """Statistics of the repeats of one side, by stratum; arrays of one length."""

    label: Ints  #: Label that each stratum belongs to
    count: Ints  #: int64, number of repeats
    mean: Floats  #: float64 ns
    squares: Floats  #: float64, sum of squared deviations from the mean

    @classmethod
    def of(cls, label: Ints, stratum: npt.NDArray[np.uint64], value: Ints) -> Strata:
        """Groups values by stratum; O(n log n)."""
        _, first, which, count = np.unique(stratum, return_index=True, return_inverse=True, return_counts=True)
        which = which.reshape(-1)
        mean = np.bincount(which, weights=value) / count
        squares = np.bincount(which, weights=(value - mean[which]) ** 2).astype(np.float64)
        return cls(label[first], count.astype(np.int64), mean, squares)

    def spread(self, labels: int, within: float | None) -> tuple[Floats, Floats]:
        """Variance of each label's sum, ns squared (NaN: unknown), and its degrees of freedom.

        Strata without repeats are assumed to vary by ``within`` (relative standard deviation).
        """
        one = np.nan if within is None else (within * self.mean) ** 2
        each = np.where(self.count > 1, self.squares / np.maximum(self.count - 1, 1), one)
        variance, degrees_of_freedom = (
            np.bincount(self.label, weights=weights, minlength=labels).astype(np.float64)
            for weights in (self.count * each, self.count - 1)
        )
        return variance, degrees_of_freedom


def within_share(*sides: Strata) -> float | None:
    """Relative standard deviation of a single repeat, pooled over all strata; None: nothing repeats."""
    known = [(each.squares[chosen] / each.mean[chosen] ** 2, each.count[chosen] - 1)
             for each in sides for chosen in [(each.count > 1) & (each.mean > 0)]]  # fmt: skip
    degrees_of_freedom = sum(int(count.sum()) for _, count in known)
    return math.sqrt(sum(float(part.sum()) for part, _ in known) / degrees_of_freedom) if degrees_of_freedom else None


def interval(
    delta: float, variance: float, degrees_of_freedom: float, floor: float = 0.0, level: float = LEVEL
) -> tuple[float, float] | None:
    """Confidence interval (1 - ``level``) of a difference, widened by ``floor`` both ways; None: variance unknown."""
    if not math.isfinite(variance):
        return None
    if degrees_of_freedom < 1:
        degrees_of_freedom = POOLED
    wide = quantile(level / 2, degrees_of_freedom) * math.sqrt(max(variance, 0.0)) + floor
    return delta - wide, delta + wide


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
    by_chance = quantile(LEVEL / 2, POOLED) * within * np.hypot(base, other)
    found: npt.NDArray[np.bool_] = delta > between * np.maximum(base, other) + by_chance
    return found


def status_of(amount: Amount, noise: Noise, lost: Lost = NOTHING_LOST) -> Status:
    """Status of a sum: more or less only if the difference exceeds the noise within and between runs.

    ``same`` if it is within the noise between runs; ``unclear`` if it exceeds that but the interval contains 0 or is
    unknown, and wherever lost records could explain the difference.
    """
    delta, fewer = amount.delta, amount.other_count - amount.base_count
    # records may be lost, or the records that name them
    explained = bool(lost.base or lost.other) if amount.name == UNKNOWN else \
        bool((lost.other and fewer < 0) or (lost.base and fewer > 0))  # fmt: skip
    if delta and (explained or lost.fragmentary):
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


def upper_tail(value: float, degrees_of_freedom: float) -> float:
    """Upper tail probability of Student's t: P(T >= value); 0.5 at 0."""
    if value < 0:
        return 1 - upper_tail(-value, degrees_of_freedom)
    if degrees_of_freedom >= _NORMAL:
        return math.erfc(value / math.sqrt(2)) / 2
    # with value = sqrt(degrees_of_freedom) sinh(u) the density is a power of cosh(u), integrated to where it is nothing
    low = math.asinh(value / math.sqrt(degrees_of_freedom))
    half = (math.acosh(math.cosh(low) * math.exp(_VANISHING / degrees_of_freedom)) - low) / 2
    steps = np.linspace(-3.5, 3.5, 141)
    bent = math.pi / 2 * np.sinh(steps)
    weights = (steps[1] - steps[0]) * math.pi / 2 * np.cosh(steps) / np.cosh(bent) ** 2
    powers = np.exp(-degrees_of_freedom * np.log(np.cosh(low + half * (1 + np.tanh(bent)))))
    return half * math.sqrt(degrees_of_freedom) * _density(0.0, degrees_of_freedom) * float(weights @ powers)


@functools.lru_cache(maxsize=1024)
def quantile(tail: float, degrees_of_freedom: float) -> float:
    """Quantile of Student's t: the value with this upper tail probability (below 0.5).

    The tail is convex above 0, so that Newton's iteration from 0 approaches the value from below. Cached, since
    thousands of sums share few degrees of freedom.
    """
    value = 0.0
    for _ in range(_ROUNDS):
        step = (upper_tail(value, degrees_of_freedom) - tail) / _density(value, degrees_of_freedom)
        value += step
        if step <= 1e-12 * value or value >= 1e12:
            break
    return value


def _density(value: float, degrees_of_freedom: float) -> float:
    if degrees_of_freedom >= _NORMAL:
        return math.exp(-value * value / 2) / math.sqrt(2 * math.pi)
    half = (degrees_of_freedom + 1) / 2
    front = math.lgamma(half) - math.lgamma(degrees_of_freedom / 2) - math.log(degrees_of_freedom * math.pi) / 2
    return math.exp(front - half * math.log1p(value * value / degrees_of_freedom))
