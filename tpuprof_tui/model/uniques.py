"""Distinct values of an array."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)


def uniques(values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """The distinct values, ascending.

    ``numpy.unique`` of an array alone loads ``numpy.ma``, which takes longer than a small profile takes to read.
    """
    ordered = np.sort(values, axis=None)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]
