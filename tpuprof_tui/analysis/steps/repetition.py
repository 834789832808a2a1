"""Detection of repetition in launch sequences: steps, and layers or blocks nested within them.

A launch is an integer: the code of its name. An *anchor* is a short run of launches, by their codes. If the launches
from one occurrence of an anchor to the next equal the same number of launches after that, both parts are repetitions.
An anchor whose repetitions cover enough of the sequence cuts all of it: each occurrence starts a repetition, also
irregular ones (warm-up steps, steps with an extra launch, a truncated last one). The outermost such cut gives the
steps; the search is repeated within the usual step, for layers within steps.

O(n log n) for n launches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.model.uniques import distinct

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Lengths of anchors, in launches. Longer ones are needed where each name occurs several times per repetition.
WIDTHS: Final = (1, 2, 4, 8, 16)
#: Minimum share of the launches that repetitions must cover, in a run and in a step.
LEAST_OF_RUN, LEAST_OF_STEP = 1 / 3, 1 / 2
#: Minimum launches per repetition.
SHORTEST: Final = 2
#: Maximum number of levels: steps, and what repeats within them.
DEEPEST: Final = 4
#: Cuts whose usual lengths differ by less than this factor belong to the same level.
_SAME_LENGTH: Final = 1.1
#: Of a level's cuts the first is used that covers at least this share of what the best one covers. The best may be a
#: cut in mid-repetition, which also covers launches inserted occasionally between repetitions.
_AS_GOOD: Final = 0.6
#: An outer level needs at least one launch of its own per this many of the inner level; fewer are occasional inserts.
_INSERTED: Final = 20
#: Irregular repetitions shorter than this share of the usual length are dropped; longer than this multiple, truncated.
_LEAST_LENGTH, _MOST_LENGTH = 0.5, 2.0
#: Start and end indexes of parts of a sequence.
_Parts = tuple[Ints, Ints]
#: Two primes below 2**31, so that products of remainders fit int64; both together distinguish 2**62 values.
_PRIMES: Final = (2_147_483_647, 2_147_483_629)
#: Bases of the polynomial hashes, one per prime; any odd numbers will do.
_BASES: Final = (1_540_483_477, 1_812_433_253)
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


class Level(Struct, frozen=True, eq=False):
    """Repetitions of one kind, in order; arrays of one length."""

    #: start, stop: int64, half-open range of launches.
    start: Ints
    stop: Ints
    usual: Mask  #: Whether its launches equal those of the most common repetition
    parent: Ints  #: int64, index of the enclosing repetition of the level above; -1 at the top

    def __len__(self) -> int:
        return len(self.start)

    @property
    def unit(self) -> slice:
        """Range of launches of the first usual repetition."""
        first = int(np.argmax(self.usual))
        return slice(int(self.start[first]), int(self.stop[first]))


class Anchor(Struct, frozen=True):
    """A cut of a sequence: anchor's first index and width, usual length of a repetition, launches before its anchor."""

    index: int
    width: int
    length: int
    before: int = 0


class SequenceHash:
    """Polynomial hashes of parts of a sequence of non-negative integers; collision probability 2**-62."""

    def __init__(self, codes: Ints) -> None:
        size = len(codes)
        # no numpy.random: its import takes longer than hashing all of a profile
        spread = np.arange(1, int(codes.max(initial=-1)) + 2, dtype=np.uint64) * _SPREAD
        spread = (spread ^ (spread >> np.uint64(29))) * _SPREAD
        self._size = size
        self._parts: list[tuple[int, Ints, Ints]] = []
        for prime, base in zip(_PRIMES, _BASES, strict=True):
            weights = ((spread ^ np.uint64(base)) % np.uint64(prime - 1)).astype(np.int64) + 1
            before = np.zeros(size + 1, np.int64)
            # each term is below 2**31: sums of 4e9 terms fit int64
            np.cumsum(weights[codes] * _powers(base, size, prime) % prime, out=before[1:])
            self._parts.append((prime, before % prime, _powers(pow(base, -1, prime), size + 1, prime)))

    def of(self, start: Ints, stop: Ints) -> Ints:
        """Hashes of the parts [start, stop), int64."""
        found = np.zeros(len(start), np.int64)
        for prime, before, inverse in self._parts:
            part = (before[stop] - before[start]) % prime * inverse[start] % prime
            found = found << 31 | part
        return found

    def alike_from(self, one: Ints, other: Ints) -> Ints:
        """Length of the common run of codes starting at two indexes each, int64; ``other`` > ``one``."""
        return self._alike(self._size - other, lambda count: (one, one + count), lambda count: (other, other + count))

    def alike_before(self, one: Ints, other: Ints) -> Ints:
        """Length of the common run of codes ending before two indexes each, int64; ``other`` > ``one``."""
        return self._alike(one, lambda count: (one - count, one), lambda count: (other - count, other))

    def _alike(self, most: Ints, one: Callable[[Ints], _Parts], other: Callable[[Ints], _Parts]) -> Ints:
        """Binary search, bit by bit, for the longest equal parts of at most ``most`` codes."""
        found = np.zeros(len(most), np.int64)
        for bit in reversed(range(int(most.max(initial=0)).bit_length())):
            longer = np.minimum(found + (1 << bit), most)
            found = np.where(self.of(*one(longer)) == self.of(*other(longer)), longer, found)
        return found


def find_level(codes: Ints) -> Level | None:
    """The outermost repetitions of a launch sequence (any integers); None: no repetition."""
    if len(codes) < 2 * SHORTEST:
        return None
    codes = _dense(codes)
    anchor = _outermost(codes, LEAST_OF_RUN)
    return None if anchor is None else _cut_at(codes, SequenceHash(codes), anchor)


def levels_within(codes: Ints, level: Level) -> tuple[Level, ...]:
    """Repetitions nested within the usual repetition of a level, outermost first."""
    codes = _dense(codes)
    found: list[Level] = []
    hashes: SequenceHash | None = None
    while len(level) and len(found) < DEEPEST - 1:
        unit = level.unit
        anchor = _outermost(codes[unit], LEAST_OF_STEP)
        if anchor is None:
            break
        hashes = hashes or SequenceHash(codes)
        level = _cut_at(codes, hashes, anchor, unit.start, level)
        found.append(level)
    return tuple(found)


def signatures(codes: Ints, start: Ints, stop: Ints) -> Ints:
    """Ids (int64) of the parts [start, stop), equal for equal launches."""
    known: dict[bytes, int] = {}
    parts = (codes[first:last].tobytes() for first, last in zip(start.tolist(), stop.tolist(), strict=True))
    return np.array([known.setdefault(part, len(known)) for part in parts], np.int64)


def _dense(codes: Ints) -> Ints:
    return distinct(codes)[1].astype(np.int64)


def anchors(codes: Ints, least: float) -> Ints:
    """All anchors whose repetitions cover at least the share ``least`` of a sequence of integers.

    Returns:
        int64 (5, anchors): index of the anchor's first occurrence that starts a repetition of about usual length; its
        width; length of the repetitions that cover most; launches covered by all its repetitions; launches of a
        repetition before the anchor.
    """
    codes, size = _dense(codes), len(codes)
    hashes = SequenceHash(codes)
    found = [np.zeros((5, 0), np.int64)]
    for width, grams in _grams(codes):
        order = np.argsort(grams, kind="stable")
        heads = np.flatnonzero(np.append(True, grams[order[1:]] != grams[order[:-1]]))
        found.append(_anchors_inside_two(hashes, grams, order, width, least * size))
        start, length = _repeated(hashes, grams, order, size)
        covered = np.bincount(grams[start], weights=length, minlength=len(heads)).astype(np.int64)
        kept = covered[grams[start]] >= max(least * size, 1)
        if not kept.any():
            continue
        gram, index, usual = _usual_lengths(grams[start][kept], start[kept], length[kept])
        first, second = order[heads[gram]], order[heads[gram] + 1]
        alike = (second - first >= _LEAST_LENGTH * usual) & (second - first <= _MOST_LENGTH * usual)
        widths, shifts = np.full(len(gram), width), np.zeros(len(gram), np.int64)
        each = np.stack((np.where(alike, first, index), widths, usual, covered[gram], shifts))
        found.append(each[:, usual >= SHORTEST])
    return np.concatenate(found, axis=1)


def _grams(codes: Ints) -> Iterator[tuple[int, Ints]]:
    """Yields each width with the n-grams of that width: for each index a dense id, equal for equal launches."""
    grams = codes
    for width in WIDTHS:
        if width > 1:
            half = width // 2
            if len(grams) <= half:
                return
            pairs = grams[:-half] * (int(grams.max()) + 1) + grams[half:]
            grams = _dense(pairs)
        yield width, grams


def _repeated(hashes: SequenceHash, grams: Ints, order: Ints, size: int) -> tuple[Ints, Ints]:
    """Starts of all repetitions, ascending, and their lengths in launches."""
    again = grams[order[1:]] == grams[order[:-1]]
    here, there = order[:-1][again], order[1:][again]
    length = there - here
    fits = there + length <= size
    here, there, length = here[fits], there[fits], length[fits]
    same = hashes.of(here, there) == hashes.of(there, there + length)
    lengths = np.zeros(len(grams), np.int64)
    lengths[here[same]] = length[same]
    # an equal successor has the same length, wherever the next occurrence of the anchor is
    lengths[there[same]] = length[same]
    start = np.flatnonzero(lengths)
    return start, lengths[start]


def _anchors_inside_two(hashes: SequenceHash, grams: Ints, order: Ints, width: int, least: float) -> Ints:
    """Anchors inside exactly two adjacent repetitions, in the form of ``anchors``, with the launches before the anchor.

    Three or more do not need this: wherever the anchor is in them, two complete repetitions start with it.
    """
    again = grams[order[1:]] == grams[order[:-1]]
    here, there = order[:-1][again], order[1:][again]
    length = there - here
    large = (3 * length >= least) & (length >= SHORTEST)
    # adjacent anchors at the same distance from their next occurrence belong to the same two: keep the first
    distance = np.zeros(len(grams) + 1, np.int64)
    distance[here + 1] = length
    large &= distance[here] != length
    here, there, length = here[large], there[large], length[large]
    before, after = hashes.alike_before(here, there), hashes.alike_from(here, there)
    two = (before < length) & (after < length) & (before + after >= length) & (2 * length >= least)
    here, length, before = here[two], length[two], before[two]
    return np.stack((here, np.full(len(here), width), length, 2 * length, before))


def _usual_lengths(grams: Ints, start: Ints, length: Ints) -> tuple[Ints, Ints, Ints]:
    """Each n-gram, its first index, and the length of its repetitions that covers most (the shorter on a tie)."""
    order = np.lexsort((start, length, grams))
    grams, start, length = grams[order], start[order], length[order]
    runs = np.flatnonzero(np.append(True, (grams[1:] != grams[:-1]) | (length[1:] != length[:-1])))
    owner, own = grams[runs], length[runs]
    best = np.lexsort((own, -np.add.reduceat(length, runs), owner))
    usual = own[best[np.append(True, owner[best[1:]] != owner[best[:-1]])]]
    heads = np.flatnonzero(np.append(True, grams[1:] != grams[:-1]))
    return grams[heads], np.minimum.reduceat(start, heads), usual


def _outermost(codes: Ints, least: float) -> Anchor | None:
    """The anchor that cuts a sequence into the longest repetitions; None if too little repeats."""
    found = anchors(codes, least)
    while found.shape[1]:
        length = found[2]
        level = found[:, length * _SAME_LENGTH >= length.max()]
        level = level[:, level[3] >= _AS_GOOD * level[3].max()]
        chosen = _anchor_at(level, np.lexsort((level[1], level[0] - level[4]))[0])
        found = found[:, 2 * length <= length.max()]
        if not found.shape[1] or _has_its_own(codes, chosen, _anchor_at(found, np.lexsort((found[2], found[3]))[-1])):
            return _move_start_left(codes, chosen)
    return None


def _anchor_at(found: Ints, number: int) -> Anchor:
    index, width, length, _, shift = found[:, number].tolist()
    return Anchor(index, width, length, shift)


def _has_its_own(codes: Ints, outer: Anchor, inner: Anchor) -> bool:
    """Whether a level has launches outside the inner level's repetitions: more than occasional inserts."""
    hashes = SequenceHash(codes)
    outside, within = (_cut_at(codes, hashes, each) for each in (outer, inner))
    held = np.zeros(len(codes) + 1, np.int64)
    np.add.at(held, within.start, 1)
    np.add.at(held, within.stop, -1)
    own = np.append(0, np.cumsum(np.cumsum(held)[:-1] == 0))
    mean = float(np.mean(own[outside.stop] - own[outside.start]))
    return mean * _INSERTED >= inner.length


def _move_start_left(codes: Ints, anchor: Anchor) -> Anchor:
    """Moves the start of repetitions left of the anchor if that makes one more repetition complete."""
    cut = _cut_at(codes, SequenceHash(codes), anchor)
    unit = cut.unit
    length, last = unit.stop - unit.start, int(np.flatnonzero(cut.usual)[-1])
    differs = codes[:-length] != codes[length:]
    before = int(np.argmax(differs[: unit.start][::-1])) if differs[: unit.start].any() else unit.start
    ends = int(cut.stop[last])
    goes_on = differs[ends - length :]
    ends += int(np.argmax(goes_on)) if goes_on.any() else len(goes_on)
    rest = (ends - unit.start) % length
    return replace(anchor, before=anchor.before + before) if before < length <= before + rest else anchor


def _cut_at(codes: Ints, hashes: SequenceHash, anchor: Anchor, offset: int = 0, level: Level | None = None) -> Level:
    """Cuts the whole sequence, or the repetitions of ``level``, at an anchor that was found relative to ``offset``."""
    begins, ends = (level.start, level.stop) if level is not None else (np.array([0]), np.array([len(codes)]))
    gram = codes[anchor.index + offset : anchor.index + offset + anchor.width]
    indexes = np.flatnonzero(codes[: len(codes) - anchor.width + 1] == gram[0])
    for number in range(1, anchor.width):
        indexes = indexes[codes[indexes + number] == gram[number]]
    parent = np.searchsorted(begins, indexes, side="right") - 1
    inside = (parent >= 0) & (indexes + anchor.width <= ends[parent])
    indexes, parent = indexes[inside], parent[inside]
    start = np.maximum(indexes - anchor.before, begins[parent])
    stop, same = _ends_of(hashes, start, parent, ends[parent], anchor.length)
    # occurrences that straddle the end of a run of equal repetitions are not starts
    reached = np.maximum.accumulate(np.append(0, np.where(same, stop, 0)))[:-1]
    kept = same | ((start >= reached) & ((stop - start >= _LEAST_LENGTH * anchor.length) | (stop == len(codes))))
    # clamped to the start of the parent, two repetitions may start together: the first is then empty
    kept &= stop > start
    start, stop, parent = start[kept], stop[kept], parent[kept]
    stop[:-1] = np.minimum(stop[:-1], start[1:])
    usual = most_common(hashes.of(start, stop), stop - start)
    if level is None:
        return Level(start, stop, usual, np.full(len(start), -1, np.int64))
    alike = usual | _resembles(hashes, start, stop, int(np.argmax(usual)))
    return Level(start[alike], stop[alike], usual[alike], parent[alike])


def _resembles(hashes: SequenceHash, start: Ints, stop: Ints, number: int) -> Mask:
    """Mask of repetitions that share at least half of the launches of repetition ``number``, at its start and end."""
    here, end = np.full(len(start), start[number]), np.full(len(stop), stop[number])
    length = end - here
    begins = hashes.alike_from(np.minimum(here, start), np.maximum(here, start))
    ends = hashes.alike_before(np.minimum(end, stop), np.maximum(end, stop))
    most = np.minimum(length, stop - start)
    return np.asarray(2 * (np.minimum(begins, most) + np.minimum(ends, most)) >= length)


def _ends_of(hashes: SequenceHash, starts: Ints, parent: Ints, bound: Ints, usual: int) -> tuple[Ints, Mask]:
    """Ends of the repetitions that start at ``starts``, and the mask of those equal to a neighbour."""
    count = len(starts)
    stop = np.minimum(bound, starts + usual)
    rest = bound - starts
    stop = np.where(rest * 4 <= usual * 5, bound, stop)
    same = np.zeros(count, np.bool_)
    follows = np.flatnonzero(parent[1:] == parent[:-1]) if count else np.zeros(0, np.int64)
    here, there = starts[follows], starts[follows + 1]
    length = there - here
    stop[follows] = np.where(length <= _MOST_LENGTH * usual, there, here + usual)
    fits = there + length <= bound[follows]
    follows, here, there, length = follows[fits], here[fits], there[fits], length[fits]
    equal = hashes.of(here, there) == hashes.of(there, there + length)
    follows, there, length = follows[equal], there[equal], length[equal]
    stop[follows] = there
    stop[follows + 1] = there + length
    same[follows] = same[follows + 1] = True
    return stop, same


def most_common(hashes: Ints, weight: Ints | int = 1) -> npt.NDArray[np.bool_]:
    """Mask of the parts equal to the most common one, weighted by ``weight``; on a tie the first."""
    _, first, which, counts = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    share = counts * np.broadcast_to(weight, len(hashes))[first]
    return np.asarray(which.reshape(-1) == np.lexsort((first, -share))[0])


def _powers(base: int, count: int, prime: int) -> Ints:
    found = np.ones(count, np.int64)
    known, factor = 1, base
    while known < count:
        more = min(known, count - known)
        found[known : known + more] = found[:more] * factor % prime
        factor = factor * factor % prime
        known += more
    return found
