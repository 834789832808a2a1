"""The instructions that the published converter counts: without synchronisation at the edges of each engine's stream.

It leaves out pairs of system commands, a send and a wait, before and behind which the ids restart, and the system
commands of a stream that has nothing else (pipeline 10). The profiler's own pairs are not instructions here in the
first place, so what this concerns are the pairs before a compiled model's first launch and kernels that only
synchronise.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.model import Lane, Profile, Role
from tpuprof_tui.model.lane import Rows

from ..read.arrays import map_texts

_ENGINES: Final = ("TIU", "GDMA", "SDMA", "CDMA")
#: Rows at each end that are examined first; all rows where the pairs continue.
_EDGE: Final = 64
#: Counters by which the reference tells system commands of DMA engines where there are no commands: both are 0.
HANDSHAKES: Final = ("axi_d0_wr_vaild_cntr", "axi_d0_rd_vaild_cntr")


def published_part(profile: Profile) -> Profile:
    """The profile with the instructions that the converter counts."""
    kept = [published_rows(profile, lane) for lane in profile.lanes]
    whole = all(isinstance(rows, slice) and rows == slice(0, len(lane))
                for rows, lane in zip(kept, profile.lanes, strict=True))  # fmt: skip
    return profile if whole else profile.restricted_to(kept)


def published_window(query: Query) -> tuple[int, int]:
    """Window of the converter's total time, ns: from the first start to the last end of what it counts, on all cores.

    With a range or a step the selected part of that.
    """

    def extent() -> tuple[int, int]:
        part = published_part(query.profile.device_part)
        return part.start_ns, part.end_ns

    (first, last), (start, end) = query.cache.get("published extent", extent), query.window
    start = max(first, start)
    return start, max(min(last, end), start)


def published_rows(profile: Profile, lane: Lane) -> Rows:
    """Rows of a lane that the converter counts, ascending."""
    count = len(lane)
    everything = slice(0, count)
    if lane.kind not in _ENGINES or not count or not profile.timed or "command_id" not in lane:
        return everything
    if count > _EDGE and not _may_have_edges(lane, count):
        return everything
    order = lane["order"]
    stream = everything if bool((order[1:] >= order[:-1]).all()) else np.argsort(order, kind="stable")
    head, tail, system = _edges(profile, lane, stream, count)
    if count - head - tail <= 2 and (lane.kind == "CDMA" or not _has_port_records(profile)):
        left = np.flatnonzero(~system) + head
    elif not head and not tail:
        return everything
    elif isinstance(stream, slice):
        return slice(head, count - tail)
    else:
        left = np.arange(head, count - tail)
    return np.sort(left if isinstance(stream, slice) else stream[left])


def _may_have_edges(lane: Lane, count: int) -> bool:
    """Whether the ids of the first or the last three commands restart behind or before a pair, if in stream order."""
    head, tail = (
        lane.take("command_id", slice(0, 3)).tolist(),
        lane.take("command_id", slice(count - 3, count)).tolist(),
    )
    first, last = lane.take("order", slice(0, 3)).tolist(), lane.take("order", slice(count - 3, count)).tolist()
    in_order = first == [0, 1, 2] and last == [count - 3, count - 2, count - 1]
    opens, closes = head[1] == head[0] + 1 and head[2] <= head[1], tail[2] == tail[1] + 1 and tail[1] <= tail[0]
    return opens or closes or not in_order


def _has_port_records(profile: Profile) -> bool:
    return any(lane.kind == "CDMA" and len(lane) for lane in profile.lanes)


def _edges(profile: Profile, lane: Lane, stream: Rows, count: int) -> tuple[int, int, npt.NDArray[np.bool_]]:
    """Number of rows left out at either end of the stream; and which of the others are system commands, if few."""
    for edge in (_EDGE, count):
        size = min(edge, count)
        ids, system = _facts(profile, lane, stream, 0, size)
        # a pair at the head: ids n and n + 1, then a restart; at the tail: a restart, then n and n + 1
        opens = system[:-2] & (ids[1:-1] == ids[:-2] + 1) & (ids[2:] <= ids[1:-1])
        head = _run(opens[::2])
        ids, system = _facts(profile, lane, stream, count - size, count)
        closes = system[1:-1] & (ids[2:] == ids[1:-1] + 1) & (ids[1:-1] <= ids[:-2])
        tail = _run(closes[::-1][::2])
        if size == count or 2 * max(head, tail) + 2 < size:
            break
    # one of at least three commands stays
    tail = min(tail, max(count - 1, 0) // 2)
    head = min(head, max(count - 2 * tail - 1, 0) // 2)
    left = count - 2 * (head + tail)
    return 2 * head, 2 * tail, _facts(profile, lane, stream, 2 * head, count - 2 * tail)[1] if left <= 2 else system


def _run(values: npt.NDArray[np.bool_]) -> int:
    """Number of leading values that are true."""
    return len(values) if values.all() else int(values.argmin())


def _facts(
    profile: Profile, lane: Lane, stream: Rows, first: int, last: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Ids of some commands in stream order, and which of them the converter takes for system commands."""
    rows = slice(first, last) if isinstance(stream, slice) else stream[first:last]
    role = lane.take("role", rows)
    # in the reference a command issued by RVT is never a system command
    system = (role == Role.WAIT) | (role == Role.SYNC)
    system &= ~map_texts(profile, lane, "mode", rows, "RVT".__eq__)
    if lane.role_guessed and all(key in lane for key in HANDSHAKES):
        system |= np.logical_and.reduce([lane.take(key, rows) == 0 for key in HANDSHAKES])
    return lane.take("command_id", rows), system
