"""The figures of lanes, cores and the whole profile inside a window of time.

Definitions: *work* is what instructions other than system commands do, *wait* system waits, *sync* the other system
commands. *Busy* is the union of work, *idle* the window without any of the three, *utilisation* busy over window.
*Compute* is the work of a core's TIU, *transfer* the union of the work of its GDMA and SDMA and of the CDMA commands it
submitted, *overlap* what both cover, *exposed* transfer without compute.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING, Lane, Profile, Role
from tpuprof_tui.model.lane import Rows, row_count

from ..index.intervals import Intervals
from ..index.lane_index import LaneIndex, build_index, count_between
from ..index.running_sums import BLOCK, FEWEST, RunningSums, inner_blocks

Array = npt.NDArray[Any]

#: Instructions from which threads save more than they cost.
MANY = 2_000_000

#: Engines of a core that move data.
TRANSFER_ENGINES = ("GDMA", "SDMA", "CDMA")


@dataclass(frozen=True)
class LaneFigures:
    """What a lane did in a window.

    Attributes:
        busy, wait, sync, idle: ns inside the window.
        window: Length of the window, ns.
        count: Instructions that run or start in the window.
        utilisation: busy / window, 0 to 1; 0 in an empty window.
        bytes: Bytes of work in the window (of an instruction at its edge the share inside); None where unknown.
        guessed: Work and wait are told apart by guesswork.
    """

    busy: int
    wait: int
    sync: int
    idle: int
    window: int
    count: int
    utilisation: float
    bytes: int | None = None
    guessed: bool = False


@dataclass(frozen=True)
class CoreFigures:
    """What a core did in a window.

    Attributes:
        core: Core number.
        compute, transfer, overlap, exposed: ns of computing, moving data, both, moving data alone.
        busy: ns of computing or moving data.
        idle: ns without any instruction, system commands included.
        window: Length of the window, ns.
        guessed: Work and wait are told apart by guesswork.
        lanes: Figures by engine; ``CDMA`` is what the core submitted, over all ports.
    """

    core: int
    compute: int
    transfer: int
    overlap: int
    exposed: int
    busy: int
    idle: int
    window: int
    guessed: bool
    lanes: dict[str, LaneFigures] = field(default_factory=dict)

    @property
    def utilisation(self) -> float:
        """Busy over window, 0 to 1."""
        return self.busy / self.window if self.window else 0.0

    @property
    def wait(self) -> int:
        """Time with system commands alone, waits and others, ns: what busy and idle leave of the window."""
        return self.window - self.busy - self.idle


@dataclass(frozen=True)
class Headline:
    """Where the time went, in one line.

    Attributes:
        total_ns: From the first start to the last end.
        instructions: Number of all instructions.
        busiest, idlest: Cores with the most and the least busy time (the first of equals); None without cores.
        most_exposed: The core with the most exposed transfer (the first of equals): what "exposed transfer" of a whole
            profile is everywhere, as a mean would be that of no core; None without cores.
        guessed: Some lane's work and wait are told apart by guesswork.
        cores: Figures of every core over the whole profile.
    """

    total_ns: int
    instructions: int
    busiest: CoreFigures | None
    idlest: CoreFigures | None
    most_exposed: CoreFigures | None
    guessed: bool
    cores: tuple[CoreFigures, ...]


@dataclass(frozen=True, eq=False)
class CoreIndex:
    """A core with the sums its figures need.

    Attributes:
        compute, transfer, either: When it computed, moved data, did one or the other.
        rest: When a system command ran on it and it did neither.
        lanes: Index of each engine; ``CDMA`` is what it submitted, over all ports.
    """

    compute: Intervals
    transfer: Intervals
    either: Intervals
    rest: Intervals
    lanes: dict[str, LaneIndex]


class Indexes(tuple[LaneIndex, ...]):
    """The indexes of a profile's lanes, in their order, with those of its cores beside them (``by_core``)."""

    by_core: Mapping[int, CoreIndex] = MappingProxyType({})


def build_indexes(profile: Profile) -> Indexes:
    """All that the figures of a profile are made from; once per profile, on several threads where there is much."""
    if profile.instructions < MANY:
        return _assembled(profile, map)
    # imported only where it pays
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        return _assembled(profile, pool.map)


def _assembled(profile: Profile, mapped: Callable[..., Iterable[Any]]) -> Indexes:
    """The indexes of a profile; ``mapped`` applies a function to each of many things, in order."""
    indexes = Indexes(mapped(build_index, profile.lanes))
    made = mapped(lambda core: build_core_index(indexes, core), profile.cores)
    indexes.by_core = dict(zip(profile.cores, made, strict=True))
    return indexes


def build_core_index(indexes: Iterable[LaneIndex], core: int) -> CoreIndex:
    """The index of one core, from those of all lanes."""
    lanes: dict[str, LaneIndex] = {}
    ports: list[Lane] = []
    for index in indexes:
        if index.lane.core == core:
            lanes[index.lane.engine] = index
        elif index.lane.core < 0 and "core" in index.lane:
            ports.append(index.lane)
    submitted = submitted_lane(ports, core)
    if submitted is not None:
        lanes[submitted.engine] = build_index(submitted)
    compute = _joined(index.work for engine, index in lanes.items() if engine not in TRANSFER_ENGINES)
    transfer = _joined(index.work for engine, index in lanes.items() if engine in TRANSFER_ENGINES)
    either = compute.union_with(transfer)
    rest = _joined(index.rest for index in lanes.values()).minus(either)
    return CoreIndex(compute, transfer, either, rest, lanes)


def submitted_lane(ports: Iterable[Lane], core: int) -> Lane | None:
    """What a core submitted to the CDMA ports as one lane, with the columns that figures need; None without any."""
    parts: dict[str, list[Array]] = {}
    found: Lane | None = None
    for lane in ports:
        rows = np.flatnonzero(lane["core"] == core)
        if not len(rows):
            continue
        found = lane
        for key in ("start", "end", "role", "bytes"):
            if key in lane:
                parts.setdefault(key, []).append(lane.take(key, rows))
    if found is None:
        return None
    order = np.argsort(np.concatenate(parts["start"]), kind="stable")
    columns = {key: np.concatenate(values)[order] for key, values in parts.items()}
    return Lane(engine=found.engine, core=core, port=-1, label=found.engine, group=f"Core {core}",
                columns=columns, role_guessed=found.role_guessed)  # fmt: skip


def lane_figures(index: LaneIndex, start: int, end: int) -> LaneFigures:
    """The figures of a lane in the window [start, end); O(log n), plus O(rows in the window) for its bytes."""
    window = max(end - start, 0)
    busy = index.work.between(start, end)
    timeless = bool((index.starts[:1] == INT_MISSING).any())  # what has no times belongs to any window
    return LaneFigures(
        busy=busy,
        wait=index.wait.between(start, end),
        sync=index.sync.between(start, end),
        idle=window - busy - index.rest.between(start, end),
        window=window,
        count=len(index.lane) if timeless else count_between(index, start, end),
        utilisation=busy / window if window else 0.0,
        bytes=bytes_between(index, start, end),
        guessed=index.lane.role_guessed,
    )


def core_figures(profile: Profile, indexes: Sequence[LaneIndex], core: int, start: int, end: int) -> CoreFigures:
    """The figures of a core in the window [start, end).

    Args:
        profile: The profile.
        indexes: Index of each of its lanes; what ``build_indexes`` gives answers without work over all events.
        core: Core number; a core without lanes is idle.
        start: First ns of the window.
        end: First ns after it.

    Returns:
        Its figures.
    """
    known = indexes.by_core.get(core) if isinstance(indexes, Indexes) else None
    index = known or build_core_index(indexes, core)
    compute, transfer, busy, rest = (
        spans.between(start, end) for spans in (index.compute, index.transfer, index.either, index.rest)
    )
    window = max(end - start, 0)
    return CoreFigures(
        core=core,
        compute=compute,
        transfer=transfer,
        overlap=compute + transfer - busy,
        exposed=busy - compute,
        busy=busy,
        idle=window - busy - rest,
        window=window,
        guessed=any(lane.lane.role_guessed for lane in index.lanes.values()),
        lanes={engine: lane_figures(lane, start, end) for engine, lane in index.lanes.items()},
    )


def headline(profile: Profile, indexes: Sequence[LaneIndex]) -> Headline:
    """Where the time of the whole profile went."""
    device = profile.device_part
    start, end = device.start_ns, device.end_ns
    cores = tuple(core_figures(profile, indexes, core, start, end) for core in profile.cores)
    return Headline(
        total_ns=end - start,
        instructions=device.instructions,
        busiest=max(cores, key=lambda core: core.busy, default=None),
        idlest=min(cores, key=lambda core: core.busy, default=None),
        most_exposed=max(cores, key=lambda core: core.exposed, default=None),
        guessed=any(lane.role_guessed for lane in profile.lanes),
        cores=cores,
    )


def bytes_between(index: LaneIndex, start: int, end: int) -> int | None:
    """Bytes of work in the window [start, end), of an instruction at its edge the share inside; None where unknown.

    O(blocks) after one pass over the lane; of a short lane O(rows in the window).
    """
    lane = index.lane
    if "bytes" not in lane:
        return None
    first, last, rest = inner_blocks(index, start, end, 1)
    total = _bytes_of(index, slice(first, last))
    if not row_count(rest):
        return total
    sizes = _work_bytes(lane, rest)[0]
    begins, ends = lane.take("start", rest), lane.take("end", rest)
    inside = np.minimum(ends, end) - np.maximum(begins, start)
    cut = inside < ends - begins
    outside = sizes[cut] * (1.0 - inside[cut] / np.maximum(ends - begins, 1)[cut])
    return total + int(sizes.sum()) - round(float(outside.sum()))


def _bytes_of(index: LaneIndex, rows: slice) -> int:
    """Bytes of work of neighbouring rows."""
    lane = index.lane
    if len(lane) < FEWEST * BLOCK:
        return int(_work_bytes(lane, rows).sum())
    sums = index.derived.get("bytes moved", lambda: RunningSums(len(lane), partial(_work_bytes, lane)))
    return int(sums.over(rows)[0])


def _work_bytes(lane: Lane, rows: Rows) -> Array:
    """int64 (1, rows): bytes of what is work, 0 where they are missing."""
    sizes = lane.take("bytes", rows)
    counted = (lane.take("role", rows) == Role.WORK) & (sizes != INT_MISSING)
    return np.where(counted, sizes, 0).reshape(1, -1)


def _joined(parts: Iterable[Intervals]) -> Intervals:
    joined = Intervals.empty()
    for part in parts:
        joined = joined.union_with(part)
    return joined
