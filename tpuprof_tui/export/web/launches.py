"""Launches of kernel functions for the web page: one bar from the first start to the last end on a core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tpuprof_tui.formats.web_codec import LARGEST, Chunk, Ints
from tpuprof_tui.model import Profile

from .kinds import Kinds
from .lanes import ChosenLane


def launch_records(
    profile: Profile, lanes: list[ChosenLane], kinds: Kinds, write: Callable[[Chunk], int], until: int | None
) -> list[dict[str, Any]]:
    """A record per core that has launches; their columns (start, duration, kind, scope) are written as chunks.

    Args:
        profile: The profile.
        lanes: Lanes with the rows that the page is about.
        kinds: Gets one kind per kernel function.
        write: Writes a chunk and says its number.
        until: Launches that start later are left out; None: none.

    Returns:
        Plain values for JSON, by core.
    """
    scopes = profile.scopes
    if not len(scopes):
        return []
    by_kernel = np.array([kinds.add_kernel(code) for code in range(len(profile.strings["kernel"]))] + [-1], np.int64)
    kernel = np.where((scopes.kernel >= 0) & (scopes.kernel < len(by_kernel) - 1), scopes.kernel, -1)
    records = []
    for core in sorted({each.lane.core for each in lanes if each.lane.core >= 0}):
        parts = [each for each in lanes if each.lane.core == core and "scope" in each.lane]
        start, end = _bounds(parts, len(scopes))
        found = np.flatnonzero((end > start) & (kernel >= 0) & (start < (LARGEST if until is None else until)))
        if not len(found):
            continue
        found = found[np.argsort(start[found], kind="stable")]
        chunk = Chunk(len(found))
        chunk.add("start", [start[found]], ascending=True)
        chunk.add("duration", [end[found] - start[found]])
        chunk.add("kind", [by_kernel[kernel[found]]])
        chunk.add("scope", [found], ascending=True)
        records.append({"core": core, "count": len(found), "chunk": write(chunk)})
    return records


def _bounds(parts: list[ChosenLane], count: int) -> tuple[Ints, Ints]:
    """First start and last end of each launch, ns, over some lanes; an end before the start where there is none."""
    start, end = np.full(count, LARGEST, np.int64), np.full(count, -LARGEST, np.int64)
    for chosen in parts:
        for rows, _ in chosen.parts(chosen.count):
            scope = chosen.lane.take("scope", rows)
            known = np.flatnonzero((scope >= 0) & (scope < count))
            np.minimum.at(start, scope[known], chosen.lane.take("start", rows)[known])
            np.maximum.at(end, scope[known], chosen.lane.take("end", rows)[known])
    return start, end
