"""Bytes read from and written to DDR, and the time it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

import numpy as np
from msgspec import Struct

from tpuprof_tui.model import Lane, Profile, Role, is_missing
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.sources.sophgo.port_directions import RX_NAMES, TX_NAMES

from .text_columns import map_texts

#: Kinds of moves: from DDR, to DDR, with DDR on any side, with L2 memory but not DDR.
KINDS: Final = ("read", "write", "ddr", "l2")


class Moves(Struct, frozen=True, eq=False):
    """Moves of one kind.

    Attributes:
        size: Bytes; None where the capture does not show which moves are of this kind.
        intervals: Intervals in which at least one of them ran.
    """

    size: int | None = None
    intervals: Intervals = Intervals.empty()

    def __add__(self, other: Moves) -> Moves:
        """Sum of both; unknown if either is unknown."""
        size = None if self.size is None or other.size is None else self.size + other.size
        return Moves(size, self.intervals.union_with(other.intervals))


def sum_moves(parts: Sequence[Mapping[str, Moves]]) -> dict[str, Moves]:
    """Moves of several lanes, by kind; their time is the union."""
    return {kind: reduce(Moves.__add__, (part[kind] for part in parts)) for kind in KINDS}


def lane_moves(profile: Profile, lane: Lane) -> dict[str, Moves]:
    """Moves of a lane's work, by kind.

    Without directions (captures without commands) all bytes count as DDR, and how many of them were read is not known.
    """
    everything = slice(0, len(lane))
    sizes = lane["bytes"] if "bytes" in lane else np.zeros(len(lane), np.int64)
    moved = (lane["role"] == Role.WORK) & ~is_missing(sizes) & (sizes > 0)
    if lane.role_guessed or "direction" not in lane:
        masks = {"ddr": moved}
    elif lane.kind == "CDMA":
        functions = (("read", TX_NAMES), ("write", RX_NAMES))
        masks = {kind: map_texts(profile, lane, "name", everything, names.__contains__) for kind, names in functions}
        masks |= {"ddr": moved, "l2": ~moved}
    else:
        # a move without a direction is not counted
        tests = {"read": lambda text: "DDR" in text.partition("->")[0],
                 "write": lambda text: "DDR" in text.partition("->")[2],
                 "ddr": lambda text: "DDR" in text,
                 "l2": lambda text: "L2" in text and "DDR" not in text}  # fmt: skip
        masks = {kind: map_texts(profile, lane, "direction", everything, test) for kind, test in tests.items()}
    found = dict.fromkeys(KINDS, Moves())
    for kind, flags in masks.items():
        selected = moved & flags
        found[kind] = Moves(int(sizes[selected].sum()), Intervals.union(lane["start"][selected], lane["end"][selected]))
    return found
