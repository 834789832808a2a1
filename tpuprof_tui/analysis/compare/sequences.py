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
_RESYNC: Final = 8
_AHEAD: Final = (64, 1024)
_CHUNK: Final = 400
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


def match_sequences(base: Ints, other: Ints) -> tuple[Ints, Ints]:
    """Indexes of a common subsequence in both sequences, int64, ascending, of one length. O(n log n).

    It is a longest one where the parts between anchors are short (``_EXACT``); else merely long. Which of several is
    chosen does not depend on which sequence is given first.
    """
    base, other = np.asarray(base, np.int64), np.asarray(other, np.int64)
    if len(base) > len(other) or (len(base) == len(other) and base.tobytes() > other.tobytes()):
        theirs, ours = _Matcher(other, base).pairs()
        return ours, theirs
    return _Matcher(base, other).pairs()


class _Matcher:
    def __init__(self, base: Ints, other: Ints) -> None:
        self._base, self._other = base, other
        self._found: list[tuple[Ints, Ints]] = []
        #: Cache of pieces that were compared exactly: programs repeat themselves.
        self._cache: dict[tuple[bytes, bytes], tuple[Ints, Ints]] = {}

    def pairs(self) -> tuple[Ints, Ints]:
        pending = [(0, len(self._base), 0, len(self._other))]
        while pending:
            pending += self._match_ends(*pending.pop())
        nothing = np.zeros(0, np.int64)
        ours, theirs = (np.concatenate(parts) for parts in zip((nothing, nothing), *self._found, strict=True))
        order = np.argsort(ours, kind="stable")
        return ours[order], theirs[order]

    def _add_run(self, low: int, start: int, count: int) -> None:
        steps = np.arange(count, dtype=np.int64)
        self._found.append((steps + low, steps + start))

    def _match_ends(self, low: int, high: int, start: int, stop: int) -> list[tuple[int, int, int, int]]:
        """Matches prefix, suffix and anchors of a pair of parts; returns the parts left between them."""
        prefix = _common_prefix(self._base[low:high], self._other[start:stop])
        self._add_run(low, start, prefix)
        low, start = low + prefix, start + prefix
        suffix = _common_prefix(self._base[low:high][::-1], self._other[start:stop][::-1])
        high, stop = high - suffix, stop - suffix
        self._add_run(high, stop, suffix)
        if low == high or start == stop:
            return []
        ours, theirs = self._base[low:high], self._other[start:stop]
        if len(ours) * len(theirs) <= _EXACT:
            self._match_exactly(low, high, start, stop)
            return []
        for width in _RUNS:
            anchors = _anchors(ours, theirs, width)
            if anchors is not None:
                break
        else:
            return self._match_stepwise(low, high, start, stop)
        ones, others = anchors[0] + low, anchors[1] + start
        self._found.append((ones, others))
        ends = zip(
            [low, *(ones + 1).tolist()], [*ones.tolist(), high], [start, *(others + 1).tolist()],
            [*others.tolist(), stop], strict=True,
        )  # fmt: skip
        return [each for each in ends if each[1] > each[0] and each[3] > each[2]]

    def _match_stepwise(self, low: int, high: int, start: int, stop: int) -> list[tuple[int, int, int, int]]:
        """Matches parts without anchors: from each difference on to the next position where both continue equally."""
        ours, theirs = _runs(self._base[low:high], _RESYNC), _runs(self._other[start:stop], _RESYNC)
        one, two = low, start
        while one < high and two < stop:
            count = _common_prefix(self._base[one:high], self._other[two:stop])
            self._add_run(one, two, count)
            one, two = one + count, two + count
            skipped = None
            for size in _AHEAD:
                skipped = _nearest(ours[one - low :][:size], theirs[two - start :][:size])
                if skipped is not None:
                    break
            ahead, behind = skipped or (_CHUNK, _CHUNK)
            self._match_exactly(one, min(one + ahead, high), two, min(two + behind, stop))
            one, two = one + ahead, two + behind
        return []

    def _match_exactly(self, low: int, high: int, start: int, stop: int) -> None:
        ours, theirs = self._base[low:high], self._other[start:stop]
        key = ours.tobytes(), theirs.tobytes()
        if key not in self._cache:
            self._cache[key] = longest_common(ours, theirs)
        one, other = self._cache[key]
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
    ours, theirs = np.nonzero(base[:, None] == other[None, :])
    if not len(ours):
        return None
    best = int((ours + theirs).argmin())
    return int(ours[best]), int(theirs[best])


def _common_prefix(base: Ints, other: Ints) -> int:
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
        found, indexes, counts = np.unique(_runs(each, width), return_index=True, return_counts=True)
        once.append((found[counts == 1], indexes[counts == 1]))
    _, one, two = np.intersect1d(once[0][0], once[1][0], assume_unique=True, return_indices=True)
    if not len(one):
        return None
    one, two = once[0][1][one], once[1][1][two]
    order = np.argsort(one)
    one, two = one[order], two[order]
    kept = ascending_subsequence(two)
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


def ascending_subsequence(values: Ints) -> Ints:
    """Indexes of a longest ascending subsequence; O(n log n)."""
    if bool((np.diff(values) > 0).all()):
        return np.arange(len(values))
    from bisect import bisect_left

    tails: list[int] = []
    ends: list[int] = []
    before = np.full(len(values), -1, np.int64)
    for index, value in enumerate(values.tolist()):
        at = bisect_left(tails, value)
        if at:
            before[index] = ends[at - 1]
        if at == len(tails):
            tails.append(value)
            ends.append(index)
        else:
            tails[at], ends[at] = value, index
    kept: list[int] = []
    index = ends[-1]
    while index >= 0:
        kept.append(index)
        index = int(before[index])
    return np.array(kept[::-1], np.int64)
