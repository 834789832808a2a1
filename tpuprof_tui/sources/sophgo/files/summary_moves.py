"""How much was read from DDR and written to it, and in how much time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.analysis.index.intervals import Intervals
from tpuprof_tui.model import Lane, Profile, Role, is_missing
from tpuprof_tui.sources.sophgo.port_directions import RX_NAMES, TX_NAMES

Flags = npt.NDArray[np.bool_]

_DDR: Final = "DDR"
_L2: Final = "L2"


class Kind(Struct, frozen=True, eq=False):
    """Moves of one kind.

    Attributes:
        size: Bytes; None where the capture does not know which moves they are.
        when: The time in which at least one of them ran.
    """

    size: int | None
    when: Intervals

    def joined(self, other: Kind) -> Kind:
        """Both together; what one does not know, the sum does not know."""
        size = None if self.size is None or other.size is None else self.size + other.size
        return Kind(size, self.when.union_with(other.when))


class Moves(Struct, frozen=True, eq=False):
    """What some lanes moved: from DDR, to DDR, touching DDR, and touching L2 memory but not DDR.

    Attributes:
        kinds: Those four.
        directed: Whether directions are known.
    """

    kinds: tuple[Kind, Kind, Kind, Kind]
    directed: bool

    @property
    def read(self) -> tuple[int | None, int]:
        """Bytes read from DDR, and the ns in which that happened."""
        return self._figures(0)

    @property
    def write(self) -> tuple[int | None, int]:
        """Bytes written to DDR, and the ns in which that happened."""
        return self._figures(1)

    @property
    def ddr(self) -> tuple[int | None, int]:
        """Bytes of all moves that touch DDR, and the ns in which they ran."""
        return self._figures(2)

    @property
    def l2(self) -> tuple[int | None, int]:
        """Bytes of moves that touch L2 memory and not DDR, and the ns in which they ran."""
        return self._figures(3)

    def _figures(self, place: int) -> tuple[int | None, int]:
        return self.kinds[place].size, self.kinds[place].when.total

    @staticmethod
    def together(parts: Sequence[Moves]) -> Moves:
        """What several lanes moved; their time is the union of theirs."""
        return reduce(Moves._joined, parts)

    def _joined(self, other: Moves) -> Moves:
        kinds = [mine.joined(theirs) for mine, theirs in zip(self.kinds, other.kinds, strict=True)]
        return Moves((kinds[0], kinds[1], kinds[2], kinds[3]), self.directed or other.directed)


def lane_moves(profile: Profile, lane: Lane) -> Moves:
    """What the work of a lane moved.

    Without directions (captures without commands) all bytes count as DDR, and what of them was read is not known.
    """
    sizes = lane["bytes"] if "bytes" in lane else np.zeros(len(lane), np.int64)
    moved = (lane["role"] == Role.WORK) & ~is_missing(sizes) & (sizes > 0)
    if lane.role_guessed or "direction" not in lane:
        return Moves((_unknown(), _unknown(), _kind(lane, sizes, moved), _unknown()), directed=False)
    if lane.kind == "CDMA":
        reads, writes = _named(profile, lane, TX_NAMES), _named(profile, lane, RX_NAMES)
        ddr, l2 = np.ones(len(lane), np.bool_), np.zeros(len(lane), np.bool_)
    else:
        reads, writes, ddr, l2 = _directions(profile, lane)
    return Moves(
        (
            _kind(lane, sizes, moved & reads),
            _kind(lane, sizes, moved & writes),
            _kind(lane, sizes, moved & ddr),
            _kind(lane, sizes, moved & l2),
        ),
        directed=True,
    )


def _directions(profile: Profile, lane: Lane) -> tuple[Flags, Flags, Flags, Flags]:
    """Whether each move reads DDR, writes DDR, touches DDR, touches L2 memory alone."""
    texts = profile.strings["direction"]
    ends = [text.partition("->")[::2] for text in texts]
    reads = [_DDR in source for source, _ in ends]
    writes = [_DDR in target for _, target in ends]
    ddr = [_DDR in text for text in texts]
    l2 = [_L2 in text and _DDR not in text for text in texts]
    # a move without a direction is counted nowhere
    codes = np.where(lane["direction"] < len(texts), lane["direction"], -1)
    found = [np.array([*flags, False], dtype=np.bool_)[codes] for flags in (reads, writes, ddr, l2)]
    return found[0], found[1], found[2], found[3]


def _named(profile: Profile, lane: Lane, names: frozenset[str]) -> Flags:
    if "name" not in lane:
        return np.zeros(len(lane), np.bool_)
    texts = profile.strings["name"]
    codes = np.where(lane["name"] < len(texts), lane["name"], -1)
    found: Flags = np.array([*(text in names for text in texts), False], dtype=np.bool_)[codes]
    return found


def _kind(lane: Lane, sizes: npt.NDArray[Any], which: Flags) -> Kind:
    return Kind(int(sizes[which].sum()), Intervals.union(lane["start"][which], lane["end"][which]))


def _unknown() -> Kind:
    return Kind(None, Intervals.empty())
