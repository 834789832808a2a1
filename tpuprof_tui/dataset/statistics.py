"""Change point detection: when the level of a figure changed over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

#: Minimum strength of a change, in standard errors.
_LIMIT: Final = 4.0
#: Minimum noise as a share of the median.
_FLOOR: Final = 0.005


def change_points(values: Sequence[float]) -> dict[int, float]:
    """Finds the indices where the level of a series changes.

    Binary segmentation: splits at the index where the difference of the means, in units of its standard error, is
    largest and beyond ``_LIMIT``, then both halves likewise. Noise is 1.4826 times the median absolute difference of
    adjacent values, divided by the square root of 2; level changes hardly affect it.

    Args:
        values: Values in order of time.

    Returns:
        Mean after minus mean before each change, by index of the first value of the new level, ascending.
    """
    series = np.asarray(values, np.float64)
    if len(series) < 2:
        return {}
    noise = 1.4826 * float(np.median(np.abs(np.diff(series)))) / math.sqrt(2)
    noise = max(noise, _FLOOR * abs(float(np.median(series))))
    places = sorted(_splits(series, 0, noise)) if noise > 0 else []
    bounds = [0, *places, len(series)]
    means = [float(series[first:last].mean()) for first, last in pairwise(bounds)]
    return {place: means[number + 1] - means[number] for number, place in enumerate(places)}


def _splits(series: npt.NDArray[np.float64], first: int, noise: float) -> list[int]:
    count = len(series)
    if count < 2:
        return []
    before = np.arange(1, count)
    sums = np.cumsum(series)[before - 1]
    means = (sums / before) - (series.sum() - sums) / (count - before)
    strength = np.abs(means) * np.sqrt(before * (count - before) / count) / noise
    best = int(np.argmax(strength))
    if strength[best] < _LIMIT:
        return []
    place = int(before[best])
    return [*_splits(series[:place], first, noise), first + place, *_splits(series[place:], first + place, noise)]
