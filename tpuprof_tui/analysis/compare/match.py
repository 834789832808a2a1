"""Matching of two profiles: pairs of corresponding launches, and of events within them.

If the launches of paired units have the same kernels in the same order, they belong together one by one. Else they are
matched in order by kernel and commands, then those between matches by kernel alone (if nothing names them and both
sides have equally many, one by one). Lost records change the commands of a launch, not its place: with them launches
are matched by kernel, and equally many unnamed ones by their place. What is then left on both sides is matched as
moved to another position or another unit. Within paired launches, events are matched by operation and operands, then
by operation.

Sequences are matched in nearly linear time: common prefixes and suffixes first; between them elements that occur once
in each sequence are anchors (as in patience diff: those in the same order), then runs of elements that occur once.
Parts without anchors are matched exactly if short, else from a difference to where both next continue equally.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model.intervals import positions_in_runs
from tpuprof_tui.model.profile import occurrence_numbers

from ..pivot import Frame
from .work import JointWork, Launches, hash_rows

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

#: Maximum size of the table of the exact comparison.
_EXACT: Final = 1 << 18
#: Lengths of runs that are tried as anchors, in this order.
_RUNS: Final = (1, 3, 8, 24)
#: Without anchors: number of equal elements that resynchronise both sides, how far ahead they are searched, and length
#: of a piece that is matched exactly if they are not found.
_RESYNC: Final = 8
_AHEAD: Final = (64, 1024)
_CHUNK: Final = 400


class Pairs(Struct, frozen=True, eq=False):
    """Corresponding elements of both sides."""

    #: base, other: int64 indexes on each side, of one length; each index occurs at most once.
    base: Ints
    other: Ints
    changed: Mask  #: Mask of the pairs that differ: launches in commands or unit, events in operands

    def __len__(self) -> int:
        return len(self.base)

    def unpaired(self, base: int, other: int) -> tuple[Ints, Ints]:
        """Indexes without a partner on each side, given the sizes of both sides."""
        alone = np.ones(base, np.bool_), np.ones(other, np.bool_)
        alone[0][self.base] = alone[1][self.other] = False
        return np.flatnonzero(alone[0]), np.flatnonzero(alone[1])


def paired_launches(work: JointWork, *, lost: bool = False) -> Pairs:
    """Pairs of corresponding launches; ``lost``: records of a side were lost. O(n log n)."""
    base, other = work.base.launches, work.other.launches
    kernel = _ranks(work.kernels)
    parts: list[tuple[Ints, Ints]] = []
    for number in np.intersect1d(base.sequence, other.sequence).tolist():
        ours, theirs = (np.flatnonzero(side.sequence == number) for side in (base, other))
        kernels = kernel[base.kernel[ours]], kernel[other.kernel[theirs]]
        if np.array_equal(*kernels) or (lost and not base.named and len(ours) == len(theirs)):
            parts.append((ours, theirs))
            continue
        if lost and base.named:
            one, two = match_sequences(*kernels)
        else:  # identical launches first, between them those of the same kernel
            one, two = match_sequences(base.signature[ours].view(np.int64), other.signature[theirs].view(np.int64))
            one, two = _match_between(one, two, *kernels, named=base.named)
        parts.append((ours[one], theirs[two]))
    for key in ("sequence", ""):
        found = Pairs(*_in_order(parts), np.zeros(0, np.bool_))
        parts.append(_match_moved(base, other, *found.unpaired(len(base), len(other)), key))
    one, two = _in_order(parts)
    changed = (base.signature[one] != other.signature[two]) | (base.unit[one] != other.unit[two])
    return Pairs(one, two, changed)


def paired_rows(
    pairs: Pairs, moved: Mask, keys: Sequence[str], base: Sequence[Array], other: Sequence[Array]
) -> Frame:  # fmt: skip
    """A row for each element of the base, then of the other side, and what became of it.

    Args:
        pairs: Pairs of elements.
        moved: Mask of pairs that moved to another unit.
        keys: What the rows are grouped by, then ``us`` (ns).
        base, other: Columns of each side in this order, of one length a side.

    Returns:
        The columns; ``base_us`` and ``other_us`` (ns) instead of ``us``; the flags ``base_count``, ``other_count`` (its
        side), ``matched``, ``changed``, ``moved`` (of rows of the base), ``removed``, ``added``; and ``index`` (int64,
        the element's index on its side).
    """
    ours, theirs = len(base[-1]), len(other[-1])
    columns = dict(zip(keys, map(np.concatenate, zip(base, other, strict=True)), strict=True))
    index, ns = np.concatenate([np.arange(ours), np.arange(theirs)]), columns.pop("us")
    of_base = np.arange(ours + theirs) < ours
    removed, added = pairs.unpaired(ours, theirs)
    flagged = {"matched": pairs.base, "changed": pairs.base[pairs.changed], "moved": pairs.base[moved],
               "removed": removed, "added": added + ours}  # fmt: skip
    for key, rows in flagged.items():
        columns[key] = np.zeros(ours + theirs, np.int64)
        columns[key][rows] = 1
    return Frame({
        **columns, "index": index, "base_count": of_base.astype(np.int64), "other_count": (~of_base).astype(np.int64),
        "base_us": np.where(of_base, ns, 0), "other_us": np.where(of_base, 0, ns),
    }, {})  # fmt: skip


def launch_rows(work: JointWork, pairs: Pairs) -> Frame:
    """All launches of both sides by ``kernel`` (-1: none), as `paired_rows`; without work that no launch issued."""
    sides = work.base.launches, work.other.launches
    moved = sides[0].unit[pairs.base] != sides[1].unit[pairs.other]
    base, other = ((side.kernel, side.unit, side.work) for side in sides)
    found = paired_rows(pairs, moved, ("kernel", "unit", "us"), base, other)
    return found.take(found["unit"] >= 0)


def _ranks(texts: tuple[str, ...]) -> Ints:
    """Rank of each text, and -1 for none: unlike joint codes the same whichever side comes first."""
    return np.array([*np.argsort(sorted(range(len(texts)), key=texts.__getitem__)).tolist(), -1], np.int64)


def _in_order(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Pairs of all parts, by the first of a pair."""
    nothing = np.zeros(0, np.int64)
    one, two = (np.concatenate(each) for each in zip((nothing, nothing), *parts, strict=True))
    order = np.argsort(one, kind="stable")
    return one[order], two[order]


def _match_between(one: Ints, two: Ints, base: Ints, other: Ints, *, named: bool = True) -> tuple[Ints, Ints]:
    """Extends matches with further ones between them, by other codes."""
    parts = [(one, two)]
    edges = np.stack([
        np.concatenate([[0], one + 1]), np.concatenate([one, [len(base)]]),
        np.concatenate([[0], two + 1]), np.concatenate([two, [len(other)]]),
    ], axis=1)  # fmt: skip
    for low, high, start, stop in edges[(edges[:, 1] > edges[:, 0]) & (edges[:, 3] > edges[:, 2])].tolist():
        if not named and high - low == stop - start:
            more = np.arange(high - low), np.arange(high - low)
        else:
            more = match_sequences(base[low:high], other[start:stop])
        parts.append((more[0] + low, more[1] + start))
    return _in_order(parts)


def _match_moved(base: Launches, other: Launches, ours: Ints, theirs: Ints, key: str) -> tuple[Ints, Ints]:
    """Identical launches at other positions, within a sequence or anywhere; the n-th of each side are paired."""
    keys = []
    for side, rows in ((base, ours), (other, theirs)):
        sequence = side.sequence[rows].astype(np.int64) if key else np.zeros(len(rows), np.int64)
        known = side.unit[rows] >= 0
        occurrence = occurrence_numbers(sequence, side.signature[rows])
        keys.append(np.rec.fromarrays([sequence[known], side.signature[rows][known], occurrence[known]]))
        ours, theirs = (ours[known], theirs) if side is base else (ours, theirs[known])
    _, one, two = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    return ours[one], theirs[two]


def paired_events(work: JointWork, launches: Pairs) -> Pairs:
    """Pairs of corresponding events of paired launches. O(n) where the launches are identical."""
    base, other = work.base, work.other
    if not base.launches.known:
        same = base.command[launches.base] == other.command[launches.other]
        return Pairs(launches.base, launches.other, ~same)
    alike = base.launches.signature[launches.base] == other.launches.signature[launches.other]
    label = _ranks(work.operations)
    first, second = base.launches.first, other.launches.first
    size = np.diff(first)[launches.base[alike]]
    parts = [(np.repeat(first[launches.base[alike]], size) + positions_in_runs(size),
              np.repeat(second[launches.other[alike]], size) + positions_in_runs(size))]  # fmt: skip
    known: dict[tuple[int, int], tuple[Ints, Ints]] = {}
    for one, two in zip(launches.base[~alike].tolist(), launches.other[~alike].tolist(), strict=True):
        key = int(base.launches.signature[one]), int(other.launches.signature[two])
        if key not in known:
            here, there = slice(first[one], first[one + 1]), slice(second[two], second[two + 1])
            same = match_sequences(base.command[here].view(np.int64), other.command[there].view(np.int64))
            known[key] = _match_between(*same, label[base.label[here]], label[other.label[there]])
        ours, theirs = known[key]
        parts.append((ours + first[one], theirs + second[two]))
    ones, twos = _in_order(parts)
    return Pairs(ones, twos, base.command[ones] != other.command[twos])


# sequences


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
        return _in_order(self._found)

    def _add_run(self, low: int, start: int, count: int) -> None:
        self._found.append((np.arange(low, low + count), np.arange(start, start + count)))

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
    """Each run of ``width`` elements as one number."""
    if width == 1:
        return values.astype(np.uint64)
    count = max(len(values) - width + 1, 0)
    return hash_rows(*(values[step : step + count] for step in range(width)))


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
