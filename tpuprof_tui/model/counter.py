"""Counters: what was measured of a group again and again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct


class Counter(Struct, frozen=True, eq=False):
    """Values of one thing at growing times. Immutable.

    Attributes:
        group: Id of the group it was measured of; -1: of everything.
        name: What was measured.
        unit: Unit of the values ("B", "GB/s", "MHz"); empty without one.
        times: int64 ns on the profile's time line, ascending.
        values: float64, one for each time; NaN where one is missing.
        family: What it tells a part of, with others of its group (``HBM``); empty: it stands alone.

    Raises:
        ValueError: Times and values are not of one length.
    """

    group: int
    name: str
    unit: str
    times: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    family: str = ""

    def __post_init__(self) -> None:
        if len(self.times) != len(self.values):
            raise ValueError("a counter has another number of times than of values")
        self.times.flags.writeable = self.values.flags.writeable = False

    def __len__(self) -> int:
        return len(self.times)
