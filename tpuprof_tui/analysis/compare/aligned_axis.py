"""One time axis for two profiles: what belongs together begins together, and each side keeps its own lengths.

Between one anchor and the next the axis is as long as the longer side; the other has a gap before the next anchor.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from ..index.axis import cell_at, edges_of
from .sequences import ascending_places

Ints = npt.NDArray[np.int64]


class AlignedAxis(Struct, frozen=True, eq=False):
    """Times of both sides that lie in one place; arrays of one length, two at least.

    Attributes:
        other, base: int64 ns, ascending, on the time line of each side; the last are the ends.
        place: int64 ns, ascending, on the axis.
    """

    other: Ints
    base: Ints
    place: Ints

    @classmethod
    def of(
        cls, other_span: tuple[int, int], base_span: tuple[int, int], other_starts: Ints, base_starts: Ints
    ) -> AlignedAxis:
        """The axis on which pairs of starts coincide, as far as they keep their order. O(n log n).

        Args:
            other_span, base_span: First start and last end of each side, ns.
            other_starts, base_starts: int64 ns, of one length.
        """
        order = np.lexsort((base_starts, other_starts))
        kept = order[ascending_places(base_starts[order])] if len(order) else order
        inside = (other_starts[kept] > other_span[0]) & (base_starts[kept] > base_span[0])
        kept = kept[inside & np.append(True, np.diff(other_starts[kept]) > 0)[: len(kept)]]
        other, base = (np.concatenate([[span[0]], starts[kept], [max(span[1], int(starts[kept].max(initial=span[0])))]])
                       for span, starts in ((other_span, other_starts), (base_span, base_starts)))  # fmt: skip
        longer = np.maximum(np.diff(other), np.diff(base))
        return cls(other, base, np.concatenate([[0], np.cumsum(longer)]))

    def place_of(self, time: int) -> int:
        """Where a time of the other profile lies; behind the gap where one ends there."""
        at = int(np.searchsorted(self.other, time, side="right")) - 1
        if at < 0 or at >= len(self.other) - 1:
            edge = 0 if at < 0 else -1
            return int(self.place[edge]) + time - int(self.other[edge])
        return min(int(self.place[at]) + time - int(self.other[at]), int(self.place[at + 1]))

    def _window(self, start: int, end: int) -> tuple[int, int]:
        """A window of the other profile on the axis, with the gaps inside it and at its end."""
        low = int(self.place[0]) if start == int(self.other[0]) else self.place_of(start)
        return low, self.place_of(end)

    def edges(self, start: int, end: int, cells: int) -> Ints:
        """Edges of the cells over a window of the other profile, in its time; those inside a gap are equal."""
        return self._times(self.other, start, end, cells)

    def base_edges(self, start: int, end: int, cells: int) -> Ints:
        """The same edges in the base's time."""
        return self._times(self.base, start, end, cells)

    def _times(self, side: Ints, start: int, end: int, cells: int) -> Ints:
        places = edges_of(*self._window(start, end), cells)
        at = np.clip(np.searchsorted(self.place, places, side="right") - 1, 0, len(self.place) - 2)
        found: Ints = np.minimum(side[at] + places - self.place[at], side[at + 1])
        return found

    def cell_at(self, time: int, start: int, end: int, cells: int) -> int:
        """The cell that a time of the other profile lies in; outside 0 ... cells - 1 where it is out of sight."""
        return cell_at(self.place_of(time), *self._window(start, end), cells)

    def own_cells(self, start: int, end: int, cells: int) -> int:
        """About how many of the cells are no gap of the other profile, 1 at least."""
        low, high = self._window(start, end)
        return max(cells * (end - start) // max(high - low, 1), 1)
