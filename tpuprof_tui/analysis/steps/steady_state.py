"""How evenly repetitions take their time: warm-up and steady state, median, quartiles, outliers."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Fewer say nothing of what is out of the ordinary.
FEWEST: Final = 4
#: Beyond the quartiles by so many times the distance between them something is an outlier (Tukey, Exploratory Data
#: Analysis, 1977).
_FENCE: Final = 1.5
#: The distance between quartiles counts as no less than this share of the median: clocks and caches jitter.
_JITTER: Final = 0.01


class Steadiness(Struct, frozen=True, eq=False):
    """What some repetitions took, in their order.

    Attributes:
        warm_up: How many come before the steady state: other launches than usual, or longer than those of the second
            half ever are.
        steady: Which are usual ones of the steady state.
        median, low, high: ns, median and quartiles of the steady ones; NaN without any.
        shortest, longest: ns, of the steady ones; NaN without any.
        outlier: Which steady ones took unusually long or short.
    """

    warm_up: int
    steady: Mask
    median: float
    low: float
    high: float
    shortest: float
    longest: float
    outlier: Mask


def steadiness(length: Ints, usual: Mask) -> Steadiness:
    """Judges repetitions by their lengths.

    Args:
        length: int64 ns, in the order of time.
        usual: Which have the usual launches.
    """
    count = len(length)
    known = np.flatnonzero(usual)
    first = int(known[0]) if len(known) else 0
    if len(known) >= FEWEST:
        later = length[known[known >= count // 2]] if known[-1] >= count // 2 else length[known]
        _, _, most = _fences(later)
        first = int(known[np.argmax(length[known] <= most)])
    steady = usual & (np.arange(count) >= first)
    if not steady.any():
        nothing = float("nan")
        return Steadiness(0, steady, nothing, nothing, nothing, nothing, nothing, np.zeros(count, np.bool_))
    chosen = length[steady]
    low, median, high = np.percentile(chosen, (25, 50, 75)).tolist()
    _, least, most = _fences(chosen)
    outlier = steady & ((length < least) | (length > most)) & (len(chosen) >= FEWEST)
    return Steadiness(first, steady, median, low, high, float(chosen.min()), float(chosen.max()), outlier)


def _fences(length: Ints) -> tuple[float, float, float]:
    """The median, and the shortest and longest that are no outliers."""
    low, median, high = np.percentile(length, (25, 50, 75)).tolist()
    spread = max(high - low, _JITTER * median)
    return median, low - _FENCE * spread, high + _FENCE * spread
