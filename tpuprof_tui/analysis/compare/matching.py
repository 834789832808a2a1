"""Matching of two profiles: pairs of corresponding launches, and of events within them.

If the launches of paired units have the same kernels in the same order, they belong together one by one. Else they are
matched in order by kernel and commands, then those between matches by kernel alone (if nothing names them and both
sides have equally many, one by one). Lost records change the commands of a launch, not its place: with them launches
are matched by kernel, and equally many unnamed ones by their place. What is then left on both sides is matched as
moved to another position or another unit. Within paired launches, events are matched by operation and operands, then
by operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model.intervals import positions_in_runs
from tpuprof_tui.model.profile import occurrence_numbers

from ..pivot import Frame
from .sequences import match_sequences
from .work import JointWork, Launches

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Columns = Mapping[str, npt.NDArray[Any]]


class Pairs(Struct, frozen=True, eq=False):
    """Corresponding elements of both sides.

    Attributes:
        base, other: int64 indexes on each side, of one length; each index occurs at most once.
        changed: Mask of the pairs that differ: launches in commands or unit, events in operands.
    """

    base: Ints
    other: Ints
    changed: Mask

    def __len__(self) -> int:
        return len(self.base)

    def unpaired(self, base: int, other: int) -> tuple[Ints, Ints]:
        """Indexes without a partner on each side, given the sizes of both sides."""
        return np.setdiff1d(np.arange(base), self.base), np.setdiff1d(np.arange(other), self.other)


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
    one, two = _concatenated(parts)
    left = Pairs(one, two, np.zeros(0, np.bool_)).unpaired(len(base), len(other))
    for key in ("sequence", ""):
        more = _match_moved(base, other, *left, key)
        one, two = np.concatenate([one, more[0]]), np.concatenate([two, more[1]])
        left = np.setdiff1d(left[0], more[0]), np.setdiff1d(left[1], more[1])
    order = np.argsort(one)
    one, two = one[order], two[order]
    changed = (base.signature[one] != other.signature[two]) | (base.unit[one] != other.unit[two])
    return Pairs(one, two, changed)


def paired_rows(pairs: Pairs, moved: Mask, base: Columns, other: Columns) -> Frame:
    """A row for each element of the base, then of the other side, and what became of it.

    Args:
        pairs: Pairs of elements.
        moved: Mask of pairs that moved to another unit.
        base, other: Columns of each side, of one length a side: ``ns``, and what the rows are grouped by.

    Returns:
        The columns; ``base_ns`` and ``other_ns`` instead of ``ns``; the flags ``base_count``, ``other_count`` (its
        side), ``matched``, ``changed``, ``moved`` (of rows of the base), ``removed``, ``added``; and ``index`` (int64,
        the element's index on its side).
    """
    ours, theirs = len(base["ns"]), len(other["ns"])
    index = np.concatenate([np.arange(ours), np.arange(theirs)])
    of_base = np.arange(ours + theirs) < ours

    def flags(*rows: Ints) -> Ints:
        found = np.zeros(ours + theirs, np.int64)
        found[np.concatenate(rows)] = 1
        return found

    removed, added = pairs.unpaired(ours, theirs)
    columns = {key: np.concatenate([base[key], other[key]]) for key in base}
    ns = columns.pop("ns")
    return Frame({
        **columns, "index": index, "base_count": of_base.astype(np.int64), "other_count": (~of_base).astype(np.int64),
        "matched": flags(pairs.base), "changed": flags(pairs.base[pairs.changed]), "moved": flags(pairs.base[moved]),
        "removed": flags(removed), "added": flags(added + ours),
        "base_ns": np.where(of_base, ns, 0), "other_ns": np.where(of_base, 0, ns),
    }, {})  # fmt: skip


def launch_rows(work: JointWork, pairs: Pairs) -> Frame:
    """All launches of both sides by ``kernel`` (-1: none), as `paired_rows`; without work that no launch issued."""
    base, other = work.base.launches, work.other.launches
    moved = base.unit[pairs.base] != other.unit[pairs.other]
    ours, theirs = map(_launch_columns, (base, other))
    found = paired_rows(pairs, moved, ours, theirs)
    return found.take(found["unit"] >= 0)


def _launch_columns(side: Launches) -> Columns:
    return {"kernel": side.kernel, "unit": side.unit, "ns": side.work}


def _ranks(texts: tuple[str, ...]) -> Ints:
    """Rank of each text, and -1 for none: unlike joint codes the same whichever side comes first."""
    return np.array([*np.argsort(sorted(range(len(texts)), key=texts.__getitem__)).tolist(), -1], np.int64)


def _concatenated(parts: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    nothing = np.zeros(0, np.int64)
    one, two = (np.concatenate(each) for each in zip((nothing, nothing), *parts, strict=True))
    return one, two


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
    one, two = _concatenated(parts)
    order = np.argsort(one)
    return one[order], two[order]


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
    ones, twos = _concatenated(parts)
    order = np.argsort(ones)
    ones, twos = ones[order], twos[order]
    return Pairs(ones, twos, base.command[ones] != other.command[twos])
