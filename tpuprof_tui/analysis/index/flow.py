"""Amounts spread over events, summed over any cells of time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Flow(Struct, frozen=True, eq=False):
    """A quantity that flows at a constant rate during each of some stretches of time, which do not overlap.

    Attributes:
        starts, ends: int64 ns, ascending; stretches of no length hold nothing.
        amounts: float64, one more than there are stretches: what has flowed before each.
    """

    starts: Ints
    ends: Ints
    amounts: Floats

    @classmethod
    def of(cls, starts: Ints, ends: Ints, rates: Floats) -> Flow:
        """The flow of instructions by start, ``rates`` per ns. O(n), O(n log n) where they overlap; once."""
        if bool((starts[1:] < ends[:-1]).any()):
            starts, ends, rates = _apart(starts, ends, rates)
        amounts = np.zeros(len(starts) + 1)
        np.cumsum(rates * (ends - starts), out=amounts[1:])
        return cls(starts, ends, amounts)

    def between(self, edges: Ints) -> Floats:
        """What flows in each cell between neighbouring edges; O(cells log n)."""
        if not len(self.starts):
            return np.zeros(len(edges) - 1)
        begun = np.searchsorted(self.starts, edges, side="left")
        last = np.maximum(begun - 1, 0)
        length = np.maximum(self.ends[last] - self.starts[last], 1)
        rest = np.where(begun > 0, np.maximum(self.ends[last] - edges, 0), 0) / length
        passed = self.amounts[begun] - rest * (self.amounts[last + 1] - self.amounts[last])
        flown: Floats = np.diff(passed)
        return flown


def _apart(starts: Ints, ends: Ints, rates: Floats) -> tuple[Ints, Ints, Floats]:
    """Stretches between all starts and ends, with the sum of the rates of what runs in them."""
    times = np.concatenate((starts, ends))
    order = np.argsort(times, kind="stable")
    rate = np.cumsum(np.concatenate((rates, -rates))[order])
    times = times[order]
    return times[:-1], times[1:], rate[:-1]
