"""Repairs bindings: removes those out of order, and binds unbound records by the bindings of their neighbours."""

from __future__ import annotations

import numpy as np

from ..arrays import I64
from .engine_records import EngineItems, contradicts


def ordered(bindings: I64) -> I64:
    """Bindings without those that are out of order or repeated (changed in place); the first of two is kept."""
    bound = np.flatnonzero(bindings >= 0)
    if len(bound) < 2:
        return bindings
    value = bindings[bound]
    before = np.maximum.accumulate(value)
    wrong = np.concatenate([[False], value[1:] <= before[:-1]])
    bindings[bound[wrong]] = -1
    return bindings


def repaired(bindings: I64, records: EngineItems, commands: EngineItems) -> I64:
    """Bind unbound records to commands between those of their bound neighbours (changes ``bindings``).

    A record stays unbound when no command in between has its id and a kind that does not contradict it.
    """
    loose = np.flatnonzero(bindings < 0)
    if not len(loose) or len(loose) > 200_000:
        return bindings
    bound = np.flatnonzero(bindings >= 0)
    before = np.searchsorted(bound, loose) - 1
    last_bound = -1  # last command bound here; earlier ones are no longer available
    for number, row in enumerate(loose.tolist()):
        low = max(last_bound, int(bindings[bound[before[number]]]) if before[number] >= 0 else -1)
        after = before[number] + 1
        high = int(bindings[bound[after]]) if after < len(bound) else len(commands.id)
        if not 1 < high - low <= 4096:
            continue
        window = slice(low + 1, high)
        same = commands.id[window] == records.id[row]
        same &= ~contradicts(records.kind[row], commands.kind[window])
        hits = low + 1 + np.flatnonzero(same)
        if len(hits):
            neighbours = [int(bound[at]) for at in (after - 1, after) if 0 <= at < len(bound)]
            bindings[row] = last_bound = _likeliest(hits, row, neighbours, bindings, records.id)
    return bindings


def _likeliest(hits: I64, row: int, neighbours: list[int], bindings: I64, ids: I64) -> int:
    """The candidate in the same launch as a neighbour's command, as the ids of both records imply; else the first."""
    for near in sorted(neighbours, key=lambda other: abs(int(ids[other] - ids[row]))):
        expected = int(bindings[near] + ids[row] - ids[near])
        if (ids[row] - ids[near]) * (row - near) > 0 and expected in hits:
            return expected
    return int(hits[0])
