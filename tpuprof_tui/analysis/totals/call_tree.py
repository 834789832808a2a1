"""Time by call path: rows that call others, added up where all their callers are called the same."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from ..index.intervals import turns

Ints = npt.NDArray[np.int64]

#: Levels of a tree; what is called from deeper counts where the tree ends.
DEEPEST: Final = 500


class CallTree(Struct, frozen=True, eq=False):
    """Call paths in int64 columns of one length: callers before what they call, of siblings the longest first.

    Attributes:
        parent: Place of the caller; -1 of roots.
        depth: Callers above it.
        label: What it is called.
        own: ns of the path itself.
        total: ns with all that it calls.
        count: Events of the path and of all that it calls.
    """

    parent: Ints
    depth: Ints
    label: Ints
    own: Ints
    total: Ints
    count: Ints

    def __len__(self) -> int:
        return len(self.parent)


def call_tree(parent: Ints, label: Ints, own: Ints, count: Ints) -> CallTree:
    """Adds up rows by their call paths.

    Args:
        parent: Row that called each row, of any place; -1: none. What rows in a circle call is left out.
        label: What each is called, from 0.
        own: ns of each row itself.
        count: Events that each row stands for; 0 of a caller that is none itself.

    Returns:
        The paths below which anything counts; O(rows log rows).
    """
    order = np.argsort(parent, kind="stable")
    callers = parent[order]
    labels = int(label.max(initial=0)) + 1
    node = np.full(len(parent), -1, np.int64)
    parents: list[Ints] = []
    called: list[Ints] = []
    edges = [0]
    rows = np.flatnonzero(parent < 0)
    while len(rows) and len(parents) < DEEPEST:
        above = np.where(parent[rows] >= 0, node[parent[rows]], -1)
        keys, place = np.unique((above + 1) * labels + label[rows], return_inverse=True)
        node[rows] = edges[-1] + place.reshape(-1)
        parents.append(keys // labels - 1)
        called.append(keys % labels)
        edges.append(edges[-1] + len(keys))
        rows = order[_ranges(*(np.searchsorted(callers, rows, side) for side in ("left", "right")))]
    if len(rows):
        # what lies too deep counts where its nearest caller does
        above = np.where(parent < 0, len(parent), parent)
        node = np.append(node, -1)[nearest(above, node >= 0)[:-1]]
    reached = np.flatnonzero(node >= 0)
    sums = np.zeros((2, edges[-1]), np.int64)
    for each, values in zip(sums, (own, count), strict=True):
        np.add.at(each, node[reached], values[reached])
    callers_of, labels_of = (np.concatenate([np.zeros(0, np.int64), *each]) for each in (parents, called))
    return _ordered(callers_of, labels_of, sums[0], sums[1], edges)


def _ranges(first: Ints, last: Ints) -> Ints:
    """All places of some ranges, one after the other."""
    lengths = last - first
    return np.repeat(first, lengths) + turns(lengths)


def nearest(parent: Ints, chosen: npt.NDArray[np.bool_]) -> Ints:
    """Of each row itself where it is chosen, else the nearest chosen one above it; ``len(chosen)`` of none.

    Args:
        parent: Row above each; ``len(chosen)``: none.
        chosen: Which rows are looked for.

    Returns:
        int64, one element more, for rows that lie below none.
    """
    count = len(chosen)
    jump = np.append(np.where(chosen, np.arange(count), parent), count)
    for _ in range(count.bit_length()):
        further = jump[jump]
        if np.array_equal(further, jump):
            break
        jump = further
    return jump


def _ordered(parent: Ints, label: Ints, own: Ints, count: Ints, edges: list[int]) -> CallTree:
    """Nodes that lie level by level, with sums over all below them, in the order of a walk from each root down."""
    levels = [slice(*pair) for pair in pairwise(edges)]
    total, below = own.copy(), count.copy()
    depth = np.repeat(np.arange(len(levels)), np.diff(edges))
    for level in levels[:0:-1]:
        for sums in (total, below):
            np.add.at(sums, parent[level], sums[level])
    size = (below > 0).astype(np.int64)
    for level in levels[:0:-1]:
        np.add.at(size, parent[level], size[level])
    # places among siblings: behind all of the longer ones with what those call
    order = np.lexsort((label, -total, parent))
    ahead = np.cumsum(size[order]) - size[order]
    families = parent[order]
    first = np.searchsorted(families, families, "left")
    before = np.zeros(len(order), np.int64)
    before[order] = ahead - ahead[first] if len(order) else ahead
    place = before
    for level in levels[1:]:
        place[level] += place[parent[level]] + 1
    kept = np.flatnonzero(below > 0)
    kept = kept[np.argsort(place[kept])]
    above = parent[kept]
    return CallTree(np.where(above >= 0, place[above], -1), depth[kept], label[kept], own[kept], total[kept],
                    below[kept])  # fmt: skip
