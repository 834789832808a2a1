"""Places of call paths beside and below one another, as flame graphs have them: callers above what they call."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Ints = npt.NDArray[np.int64]


class Icicle(Struct, frozen=True, eq=False, dict=True):
    """Call paths in int64 columns of one length, callers before what they call, siblings in the order they lie.

    Attributes:
        depth: Callers above each path; at most one more than of the path before it.
        total: ns of each with all that it calls; of what it calls together no more than its own.
    """

    depth: Ints
    total: Ints

    @cached_property
    def parent(self) -> Ints:
        """Place of each path's caller; -1 of roots."""
        parents = np.full(len(self.depth), -1, np.int64)
        latest: list[int] = []
        for place, depth in enumerate(self.depth.tolist()):
            parents[place] = latest[depth - 1] if depth else -1
            latest[depth:] = [place]
        return parents

    @cached_property
    def start(self) -> Ints:
        """Where each path begins, ns: its caller's own time lies at the end."""
        starts = np.zeros(len(self.depth), np.int64)
        free: list[int] = [0]
        for place, (depth, total) in enumerate(zip(self.depth.tolist(), self.total.tolist(), strict=True)):
            starts[place] = begin = free[depth]
            free[depth:] = [begin + total, begin]
        return starts

    @property
    def whole(self) -> int:
        """All ns."""
        return int(self.total[self.depth == 0].sum())

    def behind(self, place: int) -> int:
        """The first path that is not below the one at ``place``."""
        others = np.flatnonzero(self.depth[place + 1 :] <= self.depth[place])
        return place + 1 + int(others[0]) if len(others) else len(self.depth)

    def callers(self, place: int) -> list[int]:
        """The path at ``place`` and all its callers, from the root on."""
        found = [place] if place >= 0 else []
        while found and self.parent[found[-1]] >= 0:
            found.append(int(self.parent[found[-1]]))
        return found[::-1]

    def siblings(self, place: int) -> list[int]:
        """All paths with the same caller, in the order they lie."""
        found: list[int] = np.flatnonzero(self.parent == self.parent[place]).tolist()
        return found

    def rows(self, root: int, width: int) -> list[list[tuple[int, int, int]]]:
        """What a drawing of ``width`` cells shows where one path fills it, -1: all of them.

        Returns:
            For each depth the first cell, the cell behind the last one and the place of each path that has a cell;
            callers of ``root`` are as wide as it is.
        """
        found = [[(0, width, place)] for place in self.callers(root)[:-1]]
        first, behind = (root, self.behind(root)) if root >= 0 else (0, len(self.depth))
        begin, length = (int(self.start[root]), int(self.total[root])) if root >= 0 else (0, self.whole)
        if length <= 0:
            return found
        # whole numbers: products of ns and cells stay below 2**63
        left = (self.start[first:behind] - begin) * width // length
        right = (self.start[first:behind] + self.total[first:behind] - begin) * width // length
        shown = np.flatnonzero(right > left)
        for depth in range(int(self.depth[first]) if root >= 0 else 0, int(self.depth[first:behind].max()) + 1):
            row = shown[self.depth[first:behind][shown] == depth]
            if not len(row):
                break
            found.append(list(zip(left[row].tolist(), right[row].tolist(), (row + first).tolist(), strict=True)))
        return found
