"""CDMA ports: one stream of records per port, counter wraps undone, shared by all cores that submit to it.

Each port has its own clock origin. The profiler opens every active port with a wait that a core releases by an SDMA
send; equating the ends of both anchors the port. Each launch on a port is then assigned to the core and kernel function
with commands at that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.sophgo.chips.chip import Chip

from ..arrays import I32, I64, Bools, Bytes
from ..commands.command_table import Commands
from ..core_data import CoreData
from ..problems import Report
from ..records.implausible_records import DISORDER
from ..records.monitor import BACK_IN_TIME, WRAP, RecordStream, read_stream, signed, to_ns
from ..stream.blocks import BlockType, walk_blocks
from ..stream.files import read_bytes

#: Size of the longest CDMA command.
COMMAND_BYTES = 128
_ID_DROP = 10
#: A drop of ids after more idle cycles than this begins a launch; after fewer, records of one launch are out of order.
_LAUNCH_PAUSE = 20_000
#: Blocks that belong into core files only.
_OF_CORES = (BlockType.DYN_DATA, BlockType.MONITOR_BD, BlockType.MONITOR_GDMA, BlockType.MONITOR_SDMA)


class PortData(Struct):
    """One CDMA port."""

    port: int
    file: str
    report: Report
    stream: RecordStream  #: Its records in launch order
    commands: Commands | None = None  #: Commands of all cores for the port, concatenated; None without any
    core: I32 = field(default_factory=lambda: np.zeros(0, np.int32))  #: Submitting core of each command
    bound: I64 = field(default_factory=lambda: np.zeros(0, np.int64))  #: Index of each record's command; -1 without one
    #: Mask or slice of the records that are instructions.
    keep: slice | Bools = field(default_factory=lambda: slice(None))
    data: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))  #: Register bytes of the commands
    file_data: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))  #: Bytes of the port's file
    #: Begin and end offset of each command stream in ``file_data``.
    stream_blocks: list[tuple[int, int]] = field(default_factory=list)
    anchored: bool = False  #: Whether the port's times are on the cores' time line
    anchor_core: int = -1  #: Core that released the opening wait; -1 when unknown
    wrap_ns: int = 0  #: Period of the port's 32-bit counter, ns
    head: int = 0  #: Number of leading records of the opening wait and the nop after it
    head_wait_end: int | None = None  #: End of that wait, ns; None without one
    launches: list[tuple[int, int]] = field(default_factory=list)  #: First and end record of each launch


def read_port(port: int, path: Path, chip: Chip) -> PortData:
    """Read a port's file and put its records in launch order."""
    report = Report(path.name)
    data = read_bytes(path, report)
    found = walk_blocks(data, report)
    for block in found:
        if block.kind in _OF_CORES:
            what = f"A block of type {block.kind} belongs in a core's file."
            report.error(what, "It was ignored.", offset=block.offset - 8)
    offsets = [block.offset for block in found if block.kind == BlockType.MONITOR_CDMA]
    payloads = [
        data[block.offset : block.offset + block.length] for block in found if block.kind == BlockType.MONITOR_CDMA
    ]
    stream = read_stream(payloads, offsets, chip, "CDMA", report, port)
    streams = [(block.offset, block.offset + block.length) for block in found if block.kind == BlockType.DES_CDMA]
    result = PortData(port, path.name, report, stream, stream_blocks=streams)
    if streams:
        result.file_data = data
    if not len(stream):
        return result
    stream = unwrapped_port(stream, report)
    result.head = _head_length(stream, chip)
    _order_launches(result, stream)
    to_ns(result.stream, chip.dma_mhz)
    result.wrap_ns = round(WRAP * 1000 / chip.dma_mhz)
    if result.head:
        result.head_wait_end = int(result.stream.end[0])
    result.bound = np.full(len(result.stream), -1, np.int64)
    result.keep = slice(result.head, len(result.stream))
    return result


def _head_length(stream: RecordStream, chip: Chip) -> int:
    """Number of records of the opening wait and nop: system, ids n and n + 1, and ids restart after them."""
    ids = stream.id[:3].tolist()
    system = stream.system_mask(chip, slice(0, 2)).tolist()
    if len(ids) >= 2 and all(system) and ids[1] == ids[0] + 1 and (len(ids) == 2 or ids[2] <= ids[1]):
        return 2
    if len(ids) >= 2 and system[0] and ids[0] > 2 and ids[1] < ids[0] - _ID_DROP:
        return 1
    return 0


def _order_launches(result: PortData, stream: RecordStream) -> None:
    """Split the records after the head into launches and sort each launch by id."""
    ids = stream.id
    cuts = _launch_cuts(stream, result.head)
    order: list[I64] = [np.arange(result.head, dtype=np.int64)]
    at = result.head
    for begin, end in pairwise([*cuts, len(ids)]):
        for part_begin, part_end in _split_at_repeats(ids, begin, end):
            order.append(part_begin + np.argsort(ids[part_begin:part_end], kind="stable"))
            result.launches.append((at, at + part_end - part_begin))
            at += part_end - part_begin
    result.stream = stream.take(np.concatenate(order))


def _launch_cuts(stream: RecordStream, head: int) -> list[int]:
    """First record of each launch: at id 1, at a drop of the id by over `_ID_DROP`, or at any drop after a pause."""
    ids = stream.id
    if head >= len(ids):
        return []
    drop = ids[:-1] - ids[1:]
    # no pause precedes a record written late within its launch; a short launch may have lost its id 1
    pause = stream.start[1:] - np.maximum.accumulate(stream.end)[:-1]
    cut = np.concatenate([[True], (drop > _ID_DROP) | (ids[1:] == 1) | ((drop > 0) & (pause > _LAUNCH_PAUSE))])
    cut[: head + 1] = False
    cut[head] = True
    candidates: list[int] = np.flatnonzero(cut).tolist()
    result = candidates[:1]
    for row in candidates[1:]:
        begun = ids[result[-1] : row]
        # id 1 may be written after the next few of its own launch
        late_one = ids[row] == 1 and len(begun) <= _ID_DROP and begun.max() <= _ID_DROP + 1 and not (begun == 1).any()
        if not late_one or len(begun) >= begun.max() or pause[row - 1] > _LAUNCH_PAUSE:
            result.append(row)
    return result


def _split_at_repeats(ids: I64, begin: int, end: int) -> list[tuple[int, int]]:
    """Parts of a launch without repeated ids: launches that lost their id 1 were not separated."""
    launch_ids = ids[begin:end]
    if len(uniques(launch_ids)) == len(launch_ids):
        return [(begin, end)]
    result: list[tuple[int, int]] = []
    seen: set[int] = set()
    start = drop_at = begin
    for row in range(begin, end):
        value = int(ids[row])
        if row > start and value < ids[row - 1]:
            drop_at = row
        if value in seen:
            cut = drop_at if drop_at > start else row
            result.append((start, cut))
            start = cut
            seen = set(ids[cut:row].tolist())
        seen.add(value)
    result.append((start, end))
    return result


# -- anchoring ----------------------------------------------------------------


def anchor_ports(ports: list[PortData], cores: list[CoreData]) -> None:
    """Move ports to the cores' time line by the sends that released their opening waits; cores must be aligned."""
    active = [port for port in ports if len(port.stream)]
    released = (core for core in reversed(cores) if "SDMA" in core.engines and core.engines["SDMA"].port_sync_ends)
    anchor = next(released, None)
    if anchor is None:
        return
    ends = anchor.engines["SDMA"].port_sync_ends
    named = sorted(anchor.nodes.ports) if anchor.nodes is not None else []
    order = named if len(named) >= len(active) else [port.port for port in active]
    for port in active:
        release = ends.get(order.index(port.port)) if port.port in order else None
        if release is None or port.head_wait_end is None:
            continue
        port.stream.shift(release - port.head_wait_end)
        port.anchored = True
        port.anchor_core = anchor.core


def report_unplaced(ports: list[PortData]) -> None:
    """Report ports that could not be placed on the cores' time line."""
    for port in ports:
        if len(port.stream) and not port.anchored:
            what = "Neither a send of a core nor its commands show when this port ran."
            done = "It keeps its own clock; its times do not compare with those of the cores."
            port.report.warning(what, done, lane=port.stream.label)


def copied_commands(data: Bytes, offsets: I64, sizes: npt.NDArray[np.integer[Any]]) -> Bytes:
    """Copy of commands from any offsets in ``data``, `COMMAND_BYTES` for each, padded with zeros."""
    positions = offsets[:, None] + np.arange(COMMAND_BYTES)
    inside = (np.arange(COMMAND_BYTES) < sizes[:, None]) & (positions < len(data))
    raw: Bytes = np.where(inside, data[np.minimum(positions, max(len(data) - 1, 0))], np.uint8(0)).reshape(-1)
    return raw


def unwrapped_port(stream: RecordStream, report: Report) -> RecordStream:
    """Records of a CDMA port with counter wraps undone.

    Ports are full duplex and write a record when its command ends: neighbours overlap freely, and one may have begun
    long before the record written before it, but none has ended long before that one began. So each record is placed so
    that its begin is nearest to the begin or the end of the one before, or its end to that one's end; a larger step
    back is a wrap within a gap of over 2.1 s.
    """
    if not len(stream):
        return stream
    length = (stream.end - stream.start) & (WRAP - 1)
    begins, ends = signed(np.diff(stream.start)), signed(np.diff(stream.end))
    gaps = signed(stream.start[1:] - stream.end[:-1])
    steps = np.stack([begins, length[:-1] + gaps, length[:-1] + ends - length[1:]])
    nearest = np.abs(np.stack([begins, gaps, ends])).argmin(axis=0)
    step = np.take_along_axis(steps, nearest[None], axis=0)[0]
    back = np.flatnonzero(step + length[1:] < -DISORDER) + 1
    step[back - 1] += WRAP
    stream.start = stream.start[0] + np.concatenate([[0], np.cumsum(step)])
    stream.end = stream.start + length
    if len(back):
        report.warning(*BACK_IN_TIME, lane=stream.label, count=len(back), records=stream.dump_indices(back))
    return stream


def wraps_into_window(start: int, stop: int, window: tuple[int, int], wrap: int) -> int | None:
    """Number of whole wraps, usually 0, that move the interval ``start``..``stop`` into a window; None if none does."""
    first, last = window
    wraps = 0
    if start < first or stop > last:
        wraps = round((first + last - start - stop) / (2 * wrap))
    inside = first <= start + wraps * wrap and stop + wraps * wrap <= last
    return wraps if inside else None


def filled_wraps(wraps: Sequence[int | None], starts: Sequence[int], stops: Sequence[int]) -> tuple[list[int], int]:
    """Wraps of every launch, filled in from the launches whose windows determine them.

    Args:
        wraps: Wraps by launch, in port order; None where no window determines them.
        starts, stops: Times of the launches by the port's counter.

    Returns:
        The wraps, and the number of launches that remain uncertain: those between two with different wraps, which get
        those of the nearer one.
    """
    determined = [number for number, each in enumerate(wraps) if each is not None]
    result = [0 if each is None else each for each in wraps]
    if not determined:
        return result, 0
    unsure = 0
    next_determined = np.searchsorted(determined, np.arange(len(wraps)))
    for number in (each for each in range(len(wraps)) if wraps[each] is None):
        after = int(next_determined[number])
        near = [determined[at] for at in (after - 1, after) if 0 <= at < len(determined)]
        result[number] = result[near[0]]
        if len(near) == 2 and result[near[0]] != result[near[1]]:
            unsure += 1
            later = starts[near[1]] - stops[number] < starts[number] - stops[near[0]]
            result[number] = result[near[later]]
    return result, unsure
