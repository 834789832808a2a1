"""Which launches and which events of two profiles belong together, from the outside in.

Launches of a pair of units are matched in their order by kernel and commands, what is left between by kernel alone
(where nothing names them and equally many are left, one by one); what is then left on both sides is the same launch in
another place, or on another unit. Within launches that belong together events are matched by operation and operands,
then by operation.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model.profile import turns_among

from ..index.intervals import turns
from .sequences import matched
from .work import Both, Launches

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Pairs(Struct, frozen=True, eq=False):
    """What belongs together.

    Attributes:
        base, other: int64 places on each side, of one length; a place stands at most once.
        changed: Which are not the same: other commands or another unit, of events other operands.
    """

    base: Ints
    other: Ints
    changed: Mask

    def __len__(self) -> int:
        return len(self.base)

    def rest(self, base: int, other: int) -> tuple[Ints, Ints]:
        """Places without a partner, of so many on each side."""
        return np.setdiff1d(np.arange(base), self.base), np.setdiff1d(np.arange(other), self.other)


def paired_launches(both: Both) -> Pairs:
    """Launches that belong together. O(n log n)."""
    base, other = both.base.launches, both.other.launches
    parts: list[tuple[Ints, Ints]] = []
    for number in np.intersect1d(base.sequence, other.sequence).tolist():
        # in their order: the same ones, between them those of one kernel
        ours, theirs = (np.flatnonzero(side.sequence == number) for side in (base, other))
        one, two = matched(base.signature[ours].view(np.int64), other.signature[theirs].view(np.int64))
        one, two = _with_gaps(one, two, base.kernel[ours], other.kernel[theirs], named=base.named)
        parts.append((ours[one], theirs[two]))
    one, two = _joined(parts)
    left = Pairs(one, two, np.zeros(0, np.bool_)).rest(len(base), len(other))
    for key in ("sequence", ""):
        more = _anywhere(base, other, *left, key)
        one, two = np.concatenate([one, more[0]]), np.concatenate([two, more[1]])
        left = np.setdiff1d(left[0], more[0]), np.setdiff1d(left[1], more[1])
    order = np.argsort(one)
    one, two = one[order], two[order]
    changed = (base.signature[one] != other.signature[two]) | (base.unit[one] != other.unit[two])
    return Pairs(one, two, changed)


def _joined(parts: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    nothing = np.zeros(0, np.int64)
    one, two = (np.concatenate(each) for each in zip((nothing, nothing), *parts, strict=True))
    return one, two


def _with_gaps(one: Ints, two: Ints, base: Ints, other: Ints, *, named: bool = True) -> tuple[Ints, Ints]:
    """Matches, and between them those by other codes."""
    parts = [(one, two)]
    edges = np.stack([
        np.concatenate([[0], one + 1]), np.concatenate([one, [len(base)]]),
        np.concatenate([[0], two + 1]), np.concatenate([two, [len(other)]]),
    ], axis=1)  # fmt: skip
    for low, high, start, stop in edges[(edges[:, 1] > edges[:, 0]) & (edges[:, 3] > edges[:, 2])].tolist():
        if not named and high - low == stop - start:
            more = np.arange(high - low), np.arange(high - low)
        else:
            more = matched(base[low:high], other[start:stop])
        parts.append((more[0] + low, more[1] + start))
    one, two = _joined(parts)
    order = np.argsort(one)
    return one[order], two[order]


def _anywhere(base: Launches, other: Launches, ours: Ints, theirs: Ints, key: str) -> tuple[Ints, Ints]:
    """The same launches in another place: of one sequence, or of any; the first of each side together, and so on."""
    keys = []
    for side, rows in ((base, ours), (other, theirs)):
        place = side.sequence[rows].astype(np.int64) if key else np.zeros(len(rows), np.int64)
        known = side.unit[rows] >= 0
        turn = turns_among(place, side.signature[rows])
        keys.append(np.rec.fromarrays([place[known], side.signature[rows][known], turn[known]]))
        ours, theirs = (ours[known], theirs) if side is base else (ours, theirs[known])
    _, one, two = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    return ours[one], theirs[two]


def paired_events(both: Both, launches: Pairs) -> Pairs:
    """Events that belong together, of launches that do. O(n) where launches are the same."""
    base, other = both.base, both.other
    if not base.launches.whole:
        same = base.command[launches.base] == other.command[launches.other]
        return Pairs(launches.base, launches.other, ~same)
    alike = base.launches.signature[launches.base] == other.launches.signature[launches.other]
    first, second = base.launches.first, other.launches.first
    size = np.diff(first)[launches.base[alike]]
    parts = [(np.repeat(first[launches.base[alike]], size) + turns(size),
              np.repeat(second[launches.other[alike]], size) + turns(size))]  # fmt: skip
    known: dict[tuple[int, int], tuple[Ints, Ints]] = {}
    for one, two in zip(launches.base[~alike].tolist(), launches.other[~alike].tolist(), strict=True):
        key = int(base.launches.signature[one]), int(other.launches.signature[two])
        if key not in known:
            here, there = slice(first[one], first[one + 1]), slice(second[two], second[two + 1])
            same = matched(base.command[here].view(np.int64), other.command[there].view(np.int64))
            known[key] = _with_gaps(*same, base.label[here], other.label[there])
        ours, theirs = known[key]
        parts.append((ours + first[one], theirs + second[two]))
    ones, twos = _joined(parts)
    order = np.argsort(ones)
    ones, twos = ones[order], twos[order]
    return Pairs(ones, twos, base.command[ones] != other.command[twos])
