"""Student's distribution: how likely a difference is by chance, and how wide an interval has to be.

The cumulative distribution by the regularised incomplete beta function (continued fraction of Lentz; Press et al.,
Numerical Recipes, 6.4), its inverse by Newton's method.
"""

from __future__ import annotations

import functools
import math
from typing import Final

_TINY: Final = 1e-300
_ROUNDS: Final = 300
#: From so many degrees of freedom on it is the normal distribution.
_NORMAL: Final = 1e6


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
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )  # fmt: skip
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
