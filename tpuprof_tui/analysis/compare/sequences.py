"""Sequence alignment: a long common subsequence in nearly linear time.

Common prefixes and suffixes are matched first. Between them, elements that occur once in each sequence are anchors (as
in patience diff: those in the same order), then runs of elements that occur once. Parts without anchors are matched
exactly if short, else from one difference to the next position where both continue equally.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

#: Maximum size of the table of the exact comparison.
_EXACT: Final = 1 << 18
#: Lengths of runs that are tried as anchors, in this order.
_RUNS: Final = (1, 3, 8, 24)
#: Without anchors: number of equal elements that resynchronise both sides, how far ahead they are searched, and length
#: of a piece that is matched exactly if they are not found.
_GO_ON: Final = 8
_AHEAD: Final = (64, 1024)
_PIECE: Final = 400
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


def matched(base: Ints, other: Ints) -> tuple[Ints, Ints]:
    """Indexes of a common subsequence in both sequences, int64, ascending, of one length. O(n log n).

    It is a longest one where the parts between anchors are short (``_EXACT``); else merely long.
    """
    return _Matching(np.asarray(base, np.int64), np.asarray(other, np.int64)).pairs()


class _Matching:
    def __init__(self, base: Ints, other: Ints) -> None:
        self._base, self._other = base, other
        self._found: list[tuple[Ints, Ints]] = []
        #: Cache of pieces that were compared exactly: programs repeat themselves.
        self._known: dict[tuple[bytes, bytes], tuple[Ints, Ints]] = {}

    def pairs(self) -> tuple[Ints, Ints]:
        waiting = [(0, len(self._base), 0, len(self._other))]
        while waiting:
            waiting += self._divided(*waiting.pop())
        nothing = np.zeros(0, np.int64)
        ours, theirs = (np.concatenate(parts) for parts in zip((nothing, nothing), *self._found, strict=True))
        order = np.argsort(ours, kind="stable")
        return ours[order], theirs[order]

    def _run(self, low: int, start: int, count: int) -> None:
        steps = np.arange(count, dtype=np.int64)
        self._found.append((steps + low, steps + start))

    def _divided(self, low: int, high: int, start: int, stop: int) -> list[tuple[int, int, int, int]]:
        """Matches prefix, suffix and anchors of a pair of parts; returns the parts left between them."""
        ahead = _alike(self._base[low:high], self._other[start:stop])
        self._run(low, start, ahead)
        low, start = low + ahead, start + ahead
        behind = _alike(self._base[low:high][::-1], self._other[start:stop][::-1])
        high, stop = high - behind, stop - behind
        self._run(high, stop, behind)
        if low == high or start == stop:
            return []
        ours, theirs = self._base[low:high], self._other[start:stop]
        if len(ours) * len(theirs) <= _EXACT:
            self._exact(low, high, start, stop)
            return []
        for width in _RUNS:
            anchors = _anchors(ours, theirs, width)
            if anchors is not None:
                break
        else:
            return self._pieces(low, high, start, stop)
        ones, others = anchors[0] + low, anchors[1] + start
        self._found.append((ones, others))
        ends = zip(
            [low, *(ones + 1).tolist()], [*ones.tolist(), high], [start, *(others + 1).tolist()],
            [*others.tolist(), stop], strict=True,
        )  # fmt: skip
        return [each for each in ends if each[1] > each[0] and each[3] > each[2]]

    def _pieces(self, low: int, high: int, start: int, stop: int) -> list[tuple[int, int, int, int]]:
        """Matches parts without anchors: from each difference on to the next position where both continue equally."""
        ours, theirs = _runs(self._base[low:high], _GO_ON), _runs(self._other[start:stop], _GO_ON)
        one, two = low, start
        while one < high and two < stop:
            count = _alike(self._base[one:high], self._other[two:stop])
            self._run(one, two, count)
            one, two = one + count, two + count
            skipped = None
            for size in _AHEAD:
                skipped = _nearest(ours[one - low :][:size], theirs[two - start :][:size])
                if skipped is not None:
                    break
            ahead, behind = skipped or (_PIECE, _PIECE)
            self._exact(one, min(one + ahead, high), two, min(two + behind, stop))
            one, two = one + ahead, two + behind
        return []

    def _exact(self, low: int, high: int, start: int, stop: int) -> None:
        ours, theirs = self._base[low:high], self._other[start:stop]
        key = ours.tobytes(), theirs.tobytes()
        if key not in self._known:
            self._known[key] = longest_common(ours, theirs)
        one, other = self._known[key]
        self._found.append((one + low, other + start))


def longest_common(base: Ints, other: Ints) -> tuple[Ints, Ints]:
    """Indexes of a longest common subsequence; O(n m)."""
    size = len(other)
    lengths = np.zeros((len(base) + 1, size + 1), np.int32)
    for row, element in enumerate(base.tolist(), 1):
        above = lengths[row - 1]
        longer = above[:-1] + (other == element)
        np.maximum.accumulate(np.maximum(above[1:], longer), out=lengths[row, 1:])
    row, column = len(base), size
    ours: list[int] = []
    theirs: list[int] = []
    while row and column:
        here = lengths[row, column]
        if lengths[row - 1, column] == here:
            row -= 1
        elif lengths[row, column - 1] == here:
            column -= 1
        else:
            row, column = row - 1, column - 1
            ours.append(row)
            theirs.append(column)
    return np.array(ours[::-1], np.int64), np.array(theirs[::-1], np.int64)


def _nearest(base: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> tuple[int, int] | None:
    """Numbers of elements to skip on each side until both continue equally, with the least sum; None: not found."""
    ours, theirs = np.nonzero(base[:, None] == other[None, :])
    if not len(ours):
        return None
    best = int((ours + theirs).argmin())
    return int(ours[best]), int(theirs[best])


def _alike(base: Ints, other: Ints) -> int:
    """Length of the common prefix."""
    size = min(len(base), len(other))
    low = 0
    while low < size:
        # compare in growing chunks: mostly few elements are equal, or all
        high = min(size, max(2 * low, 64))
        differ = base[low:high] != other[low:high]
        if bool(differ.any()):
            return low + int(differ.argmax())
        low = high
    return size


def _anchors(base: Ints, other: Ints, width: int) -> tuple[Ints, Ints] | None:
    """Indexes of the elements of runs that occur once in each sequence, in the same order; None: no such runs."""
    once = []
    for each in (base, other):
        found, places, counts = np.unique(_runs(each, width), return_index=True, return_counts=True)
        once.append((found[counts == 1], places[counts == 1]))
    _, one, two = np.intersect1d(once[0][0], once[1][0], assume_unique=True, return_indices=True)
    if not len(one):
        return None
    one, two = once[0][1][one], once[1][1][two]
    order = np.argsort(one)
    one, two = one[order], two[order]
    kept = ascending_places(two)
    one, two = one[kept], two[kept]
    if width == 1:
        return one, two
    # overlapping runs at the same offset match each element once; others must start after the last match
    steps = np.arange(width)
    ones, twos = (one[:, None] + steps).reshape(-1), (two[:, None] + steps).reshape(-1)
    furthest = np.maximum.accumulate(np.maximum(ones, -1)), np.maximum.accumulate(twos)
    new = np.append(True, (ones[1:] > furthest[0][:-1]) & (twos[1:] > furthest[1][:-1]))
    chosen = ones[new], twos[new]
    ordered = np.append(True, (np.diff(chosen[0]) > 0) & (np.diff(chosen[1]) > 0))
    return chosen[0][ordered], chosen[1][ordered]


def _runs(values: Ints, width: int) -> npt.NDArray[np.uint64]:
    """Hash of each run of ``width`` elements."""
    found = values.astype(np.uint64)
    if width == 1:
        return found
    count = max(len(values) - width + 1, 0)
    hashed = np.zeros(count, np.uint64)
    with np.errstate(over="ignore"):
        for step in range(width):
            hashed = (hashed ^ found[step : step + count]) * _FACTOR
            hashed ^= hashed >> np.uint64(29)
    return hashed


def ascending_places(values: Ints) -> Ints:
    """Indexes of a longest ascending subsequence; O(n log n)."""
    if bool((np.diff(values) > 0).all()):
        return np.arange(len(values))
    from bisect import bisect_left

    tails: list[int] = []
    places: list[int] = []
    before = np.full(len(values), -1, np.int64)
    for place, value in enumerate(values.tolist()):
        at = bisect_left(tails, value)
        if at:
            before[place] = places[at - 1]
        if at == len(tails):
            tails.append(value)
            places.append(place)
        else:
            tails[at], places[at] = value, place
    kept: list[int] = []
    place = places[-1]
    while place >= 0:
        kept.append(place)
        place = int(before[place])
    return np.array(kept[::-1], np.int64)
