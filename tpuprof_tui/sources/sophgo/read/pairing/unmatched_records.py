"""Repairs bindings: removes those out of order, and binds unbound records by the bindings of their neighbours."""

from __future__ import annotations

import numpy as np

from ..arrays import I64
from .engine_records import Side, contradicts


def ordered(place: I64) -> I64:
    """Bindings without those that are out of order or repeated (changed in place); the first of two is kept."""
    bound = np.flatnonzero(place >= 0)
    if len(bound) < 2:
        return place
    value = place[bound]
    before = np.maximum.accumulate(value)
    wrong = np.concatenate([[False], value[1:] <= before[:-1]])
    place[bound[wrong]] = -1
    return place


def repaired(place: I64, side: Side, other: Side) -> I64:
    """Bind unbound records to commands between those of their bound neighbours (changes ``place``).

    A record stays unbound when no command in between has its id and a kind that does not contradict it.
    """
    loose = np.flatnonzero(place < 0)
    if not len(loose) or len(loose) > 200_000:
        return place
    bound = np.flatnonzero(place >= 0)
    before = np.searchsorted(bound, loose) - 1
    given = -1  # last command bound here; earlier ones are no longer available
    for number, row in enumerate(loose.tolist()):
        low = max(given, int(place[bound[before[number]]]) if before[number] >= 0 else -1)
        after = before[number] + 1
        high = int(place[bound[after]]) if after < len(bound) else len(other.id)
        if not 1 < high - low <= 4096:
            continue
        window = slice(low + 1, high)
        same = other.id[window] == side.id[row]
        same &= ~contradicts(side.kind[row], other.kind[window])
        hits = low + 1 + np.flatnonzero(same)
        if len(hits):
            neighbours = [int(bound[at]) for at in (after - 1, after) if 0 <= at < len(bound)]
            place[row] = given = _likeliest(hits, row, neighbours, place, side.id)
    return place


def _likeliest(hits: I64, row: int, neighbours: list[int], place: I64, ids: I64) -> int:
    """The candidate in the same launch as a neighbour's command, as the ids of both records imply; else the first."""
    for near in sorted(neighbours, key=lambda other: abs(int(ids[other] - ids[row]))):
        wanted = int(place[near] + ids[row] - ids[near])
        if (ids[row] - ids[near]) * (row - near) > 0 and wanted in hits:
            return wanted
    return int(hits[0])
