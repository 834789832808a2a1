"""Layout of call trees as icicle charts (flame graphs with callers on top): position and width of each path."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Ints = npt.NDArray[np.int64]


class Icicle(Struct, frozen=True, eq=False, dict=True):
    """A call tree as int64 columns of one length, in depth-first order; siblings from left to right.

    Attributes:
        depth: Number of callers above each path; at most one more than that of the path before it.
        total: Time of each path including callees, ns; the sum over its callees does not exceed it.
    """

    depth: Ints
    total: Ints

    @cached_property
    def parent(self) -> Ints:
        """Index of each path's caller; -1 for roots."""
        parents = np.full(len(self.depth), -1, np.int64)
        latest: list[int] = []
        for place, depth in enumerate(self.depth.tolist()):
            parents[place] = latest[depth - 1] if depth else -1
            latest[depth:] = [place]
        return parents

    @cached_property
    def start(self) -> Ints:
        """Left edge of each path, ns; a caller's own time is at its right end."""
        starts = np.zeros(len(self.depth), np.int64)
        free: list[int] = [0]
        for place, (depth, total) in enumerate(zip(self.depth.tolist(), self.total.tolist(), strict=True)):
            starts[place] = begin = free[depth]
            free[depth:] = [begin + total, begin]
        return starts

    @property
    def whole(self) -> int:
        """Total time of all roots, ns."""
        return int(self.total[self.depth == 0].sum())

    def behind(self, place: int) -> int:
        """Index after the last path in the subtree of ``place``."""
        others = np.flatnonzero(self.depth[place + 1 :] <= self.depth[place])
        return place + 1 + int(others[0]) if len(others) else len(self.depth)

    def callers(self, place: int) -> list[int]:
        """The path at ``place`` and all its callers, root first."""
        found = [place] if place >= 0 else []
        while found and self.parent[found[-1]] >= 0:
            found.append(int(self.parent[found[-1]]))
        return found[::-1]

    def siblings(self, place: int) -> list[int]:
        """All paths with the same caller, from left to right."""
        found: list[int] = np.flatnonzero(self.parent == self.parent[place]).tolist()
        return found

    def rows(self, root: int, width: int) -> list[list[tuple[int, int, int]]]:
        """Layout in a drawing of ``width`` cells, zoomed to one path; -1: all paths.

        Returns:
            For each depth, (first cell, cell after the last, path) of each path that has a cell; callers of ``root``
            span the full width.
        """
        found = [[(0, width, place)] for place in self.callers(root)[:-1]]
        first, behind = (root, self.behind(root)) if root >= 0 else (0, len(self.depth))
        begin, length = (int(self.start[root]), int(self.total[root])) if root >= 0 else (0, self.whole)
        if length <= 0:
            return found
        # integer arithmetic: products of ns and cells stay below 2**63
        left = (self.start[first:behind] - begin) * width // length
        right = (self.start[first:behind] + self.total[first:behind] - begin) * width // length
        shown = np.flatnonzero(right > left)
        for depth in range(int(self.depth[first]) if root >= 0 else 0, int(self.depth[first:behind].max()) + 1):
            row = shown[self.depth[first:behind][shown] == depth]
            if not len(row):
                break
            found.append(list(zip(left[row].tolist(), right[row].tolist(), (row + first).tolist(), strict=True)))
        return found
