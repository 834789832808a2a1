"""CDMA ports: one stream of records per port, counter wraps undone, and the cores whose commands they are of.

Each port has its own clock origin. The profiler opens every active port with a wait that a core releases by an SDMA
send; equating the ends of both anchors the port. Each launch on a port is then assigned to the core and kernel function
with commands at that time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from tpuprof_tui.model.uniques import uniques

from ..chips.chip import Chip
from .arrays import I32, I64, Bools, Bytes
from .commands.command_table import Commands, Mode, concatenated
from .core_data import CoreData
from .files import Block, BlockType, payloads_of, read_bytes, walk_blocks
from .problems import Problems
from .records.implausible_records import DISORDER, WRAP, signed
from .records.monitor import BACK_IN_TIME, RecordStream, read_stream, to_ns

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
    report: Problems
    stream: RecordStream  #: Its records in launch order
    commands: Commands | None = None  #: Commands of all cores for the port, concatenated; None without any
    core: I32 = field(default_factory=lambda: np.zeros(0, np.int32))  #: Submitting core of each command
    bound: I64 = field(default_factory=lambda: np.zeros(0, np.int64))  #: Index of each record's command; -1 without one
    #: Mask or slice of the records that are instructions.
    keep: slice | Bools = field(default_factory=lambda: slice(None))
    data: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))  #: Register bytes of the commands
    file_data: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))  #: Bytes of the port's file
    stream_blocks: list[Block] = field(default_factory=list)  #: Command streams in ``file_data``
    anchored: bool = False  #: Whether the port's times are on the cores' time line
    anchor_core: int = -1  #: Core that released the opening wait; -1 when unknown
    wrap_ns: int = 0  #: Period of the port's 32-bit counter, ns
    head: int = 0  #: Number of leading records of the opening wait and the nop after it
    head_wait_end: int | None = None  #: End of that wait, ns; None without one
    launches: list[tuple[int, int]] = field(default_factory=list)  #: First and end record of each launch


def read_port(port: int, path: Path, chip: Chip) -> PortData:
    """Read a port's file and put its records in launch order."""
    report = Problems(path.name)
    data = read_bytes(path, report)
    found = walk_blocks(data, report)
    for block in found:
        if block.kind in _OF_CORES:
            what = f"A block of type {block.kind} belongs in a core's file."
            report.error(what, "It was ignored.", offset=block.offset - 8)
    stream = read_stream(*payloads_of(data, found, BlockType.MONITOR_CDMA), chip, "CDMA", report, port)
    result = PortData(port, path.name, report, stream)
    result.stream_blocks = [block for block in found if block.kind == BlockType.DES_CDMA]
    if result.stream_blocks:
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
    order: list[I64] = [np.arange(result.head, dtype=np.int64)]
    for begin, end in pairwise([*_launch_cuts(stream, result.head), len(stream)]):
        result.launches += _split_at_repeats(stream.id, begin, end)
    order += [begin + np.argsort(stream.id[begin:end], kind="stable") for begin, end in result.launches]
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
    edges = [begin]
    seen: set[int] = set()
    drop_at = begin
    for row, value in enumerate(launch_ids.tolist(), begin):
        if row > edges[-1] and value < ids[row - 1]:
            drop_at = row
        if value in seen:
            edges.append(drop_at if drop_at > edges[-1] else row)
            seen = set(ids[edges[-1] : row].tolist())
        seen.add(value)
    return list(pairwise([*edges, end]))


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


def unwrapped_port(stream: RecordStream, report: Problems) -> RecordStream:
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
    wraps = 0 if first <= start and stop <= last else round((first + last - start - stop) / (2 * wrap))
    return wraps if first <= start + wraps * wrap and stop + wraps * wrap <= last else None


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
    result = [each or 0 for each in wraps]
    unsure = 0
    for number, after in enumerate(np.searchsorted(determined, np.arange(len(wraps))).tolist()):
        near = determined[max(after - 1, 0) : after + 1]
        if wraps[number] is None and near:
            differ = result[near[0]] != result[near[-1]]
            unsure += differ
            later = differ and starts[near[-1]] - stops[number] < starts[number] - stops[near[0]]
            result[number] = result[near[later]]
    return result, unsure


# Finds the core and kernel function that submitted each launch on a port: cores are aligned first; then the commands of
# all cores for a port, ordered by the times at which they can have run, are paired with the port's launches.

#: Uncertainty of anchoring: a record and the command that caused it may be this far apart.
_SLACK_NS = 2_000
#: Largest table of launches times command sections that is filled exactly.
_MOST_CELLS = 4_000_000


class _Section(Struct):
    """Consecutive commands of one core for a port that belong to one launch, and when they can have run.

    They were issued after the record that started at ``after_ns``, in a kernel function that ran from ``from_ns`` to
    ``before_ns``.
    """

    core: int
    first: int
    count: int
    from_ns: int
    after_ns: int
    before_ns: int

    @property
    def window(self) -> tuple[int, int]:
        """First and last ns at which its launch can have run, including the uncertainty of anchoring."""
        return self.from_ns - _SLACK_NS, self.before_ns + _SLACK_NS


def match_ports(ports: list[PortData], cores: list[CoreData], chip: Chip) -> None:
    """Bind each port's records to commands; ports that no send anchors are placed by their commands."""
    times = {core.core: _RecordTimes(core) for core in cores if core.nodes is not None and core.nodes.ports}
    for port in ports:
        if not len(port.stream):
            continue
        sections = _sections(port, cores, times, chip)
        if not sections:
            continue
        _bind_sections(port, sections)
        if not port.anchored:
            _anchor_by_commands(port, sections)


class _RecordTimes:
    """Times of a core's records by the node index of their commands."""

    def __init__(self, core: CoreData) -> None:
        parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32))]
        for engine in core.engines.values():
            if engine.commands is not None:
                rows = np.flatnonzero(engine.bound >= 0)
                command = engine.bound[rows]
                node_index, scope = engine.commands.node_index[command], engine.commands.scope[command]
                parts.append((node_index, engine.stream.start[rows], engine.stream.end[rows], scope))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        self.node_index, self.start, self.end, self.scope = (column[order] for column in columns)

    def window(self, node_index: int, scope: int) -> tuple[int, int, int]:
        """Start of the kernel function, start of the record before the node, and end of the kernel function, ns."""
        if not len(self.node_index):
            return -(1 << 62), -(1 << 62), 1 << 62
        at = int(np.searchsorted(self.node_index, node_index))
        low, high = max(0, at - 4096), min(len(self.node_index), at + 4096)
        before = self.start[low:at]
        selected = self.scope[low:at] == scope
        earlier = before[selected] if selected.any() else before
        after_ns = int(earlier.max()) if len(earlier) else int(self.start[0])
        inside = self.scope[low:high] == scope
        if inside.any():
            from_ns = int(self.start[low:high][inside].min())
            before_ns = int(self.end[low:high][inside].max())
        else:
            from_ns = after_ns
            before_ns = int(self.end[at]) if at < len(self.end) else int(self.end[-1])
        return min(from_ns, after_ns), after_ns, max(after_ns, before_ns)


def _sections(port: PortData, cores: list[CoreData], times: dict[int, _RecordTimes], chip: Chip) -> list[_Section]:
    """Sections of all cores for a port, by estimated time; fills ``port.commands``, ``port.core`` and ``port.data``."""
    lists: list[Commands] = []
    raws: list[Bytes] = []
    sections: list[_Section] = []
    owners: list[int] = []
    base = 0
    for core in cores:
        commands = core.nodes.ports.get(port.port) if core.nodes is not None else None
        if commands is None or not len(commands):
            continue
        # the profiler's opening pair: system commands outside every kernel function
        head = commands.take(slice(0, 2))
        selected = (head.scope < 0) & (head.type_code == chip.system_types["cdma"]) & (head.mode == Mode.TDI)
        first = 2 if len(head) == 2 and bool(selected.all()) else 0
        cuts = np.flatnonzero((np.diff(commands.scope) != 0) | (np.diff(commands.id) <= 0)) + 1
        edges = [first, *(cut for cut in cuts.tolist() if cut > first), len(commands)]
        for begin, end in pairwise(edges):
            if end > begin:
                window = times[core.core].window(int(commands.node_index[begin]), int(commands.scope[begin]))
                sections.append(_Section(core.core, base + begin, end - begin, *window))
        shifted = commands.take(slice(None))
        shifted.scope = np.where(commands.scope >= 0, commands.scope + core.first_scope, -1).astype(np.int32)
        shifted.register_offset, shifted.register_size, raw = _copied_registers(commands, core, sum(map(len, raws)))
        raws.append(raw)
        lists.append(shifted)
        owners.append(core.core)
        base += len(commands)
    if lists:
        port.commands = concatenated(lists)
        port.core = np.repeat(np.array(owners, np.int32), list(map(len, lists)))
        port.data = np.concatenate(raws)
    return sorted(sections, key=lambda section: (section.after_ns, section.core))


def _copied_registers(commands: Commands, core: CoreData, base: int) -> tuple[I64, I32, Bytes]:
    """Copied registers of a core's commands for a port: offsets, from ``base`` on (-1: none), sizes, and the bytes."""
    if commands.register_offset is None or commands.register_size is None:
        return np.full(len(commands), -1, np.int64), np.zeros(len(commands), np.int32), np.zeros(0, np.uint8)
    has = np.flatnonzero(commands.register_offset >= 0)
    offsets = np.full(len(commands), -1, np.int64)
    offsets[has] = base + COMMAND_BYTES * np.arange(len(has))
    copied = copied_commands(core.data, commands.register_offset[has], commands.register_size[has])
    return offsets, np.minimum(commands.register_size, COMMAND_BYTES).astype(np.int32), copied


def _bind_sections(port: PortData, sections: list[_Section]) -> None:
    """Bind the records of each launch to the commands of its section."""
    launches = [_Launch(port, begin, end) for begin, end in port.launches]
    matches = _match(launches, sections, port.wrap_ns if port.anchored else 0)
    _unwrap_launches(port, launches, matches)
    for launch, section in matches:
        relative = port.stream.id[launch.begin : launch.end] - launch.first_id
        fits = (relative >= 0) & (relative < section.count)
        port.bound[launch.begin : launch.end] = np.where(fits, section.first + relative, -1)
    similar = sum(
        first.core != second.core
        and first.count == second.count
        and abs(first.after_ns - second.after_ns) <= _SLACK_NS // 2
        for first, second in pairwise(sections)
    )
    if similar and matches:
        what = "Two cores submitted equal launches at the same time."
        done = "Assigned in the order of their estimated times; the submitters may be swapped."
        port.report.warning(what, done, lane=port.stream.label, count=similar)
    loose = port.head + np.flatnonzero(port.bound[port.head :] < 0)
    if len(loose):
        what, records = "CDMA records without a matching command of any core.", port.stream.dump_indices(loose)
        done = "They are shown as unknown."
        port.report.warning(what, done, lane=port.stream.label, count=len(loose), records=records)


def _unwrap_launches(port: PortData, launches: list[_Launch], matches: list[tuple[_Launch, _Section]]) -> None:
    """Shift launches by whole counter wraps to the time of their submitters' kernel functions."""
    lag = 0  # lag of the port's clock behind those of the cores, ns
    if matches and not port.anchored:
        lag = matches[0][1].after_ns - matches[0][0].start
    window_of = {launch.begin: section.window for launch, section in matches}
    determined: list[int | None] = []
    for launch in launches:
        start, stop, window = launch.start + lag, launch.stop + lag, window_of.get(launch.begin)
        if window is not None and not port.anchored:  # an estimate, good to the length of a kernel function
            determined.append(round((window[0] + window[1] - start - stop) / (2 * port.wrap_ns)))
        else:
            determined.append(None if window is None else wraps_into_window(start, stop, window, port.wrap_ns))
    wraps, unsure = filled_wraps(determined, [each.start for each in launches], [each.stop for each in launches])
    if not any(wraps):
        return
    moved = np.zeros(len(port.stream), np.int64)
    for launch, count in zip(launches, wraps, strict=True):
        moved[launch.begin : launch.end] = count * port.wrap_ns
    port.stream.shift(moved)
    what = "The counter of a CDMA port wrapped in a pause of the port."
    done = "Its launches were placed where the kernel functions of their submitters ran."
    records = port.stream.dump_indices(np.flatnonzero(moved))
    port.report.note(what, done, lane=port.stream.label, count=sum(map(bool, wraps)), records=records)
    if unsure:
        what = "The counter of a CDMA port wrapped in a pause; on which side of it launches ran is not known."
        done = "They were placed at the nearer adjacent launch."
        port.report.warning(what, done, lane=port.stream.label, count=unsure)


class _Launch:
    def __init__(self, port: PortData, begin: int, end: int) -> None:
        self.begin, self.end = begin, end
        ids = port.stream.id[begin:end]
        # ids count from 1 since the reset before the launch; missing leading ids are lost records
        self.first_id = 1 if ids[0] < 1024 else int(ids[0])
        self.span = int(ids[-1]) - self.first_id + 1
        self.count = end - begin
        self.start = int(port.stream.start[begin:end].min())
        self.stop = int(port.stream.end[begin:end].max())


def _match(launches: list[_Launch], sections: list[_Section], wrap: int) -> list[tuple[_Launch, _Section]]:
    """Pairs of launches and sections, both in time order, that bind most records and skip fewest commands.

    If the port's times are on the cores' time line, a launch must be in the window of its section, apart from whole
    wraps (``wrap``, ns); ``wrap`` is 0 if they are not.
    """

    def value(launch: _Launch, section: _Section) -> float:
        if launch.span > section.count:
            return -1.0
        if wrap and wraps_into_window(launch.start, launch.stop, section.window, wrap) is None:
            return -1.0
        return launch.count - 0.2 * (section.count - launch.count)

    if len(launches) == len(sections):
        pairs = list(zip(launches, sections, strict=True))
        if all(value(launch, section) > 0 for launch, section in pairs):
            return pairs
    result = []
    if len(launches) * len(sections) > _MOST_CELLS:  # too large for the table: first fitting section within reach
        at = 0
        for launch in launches:
            hit = next((j for j in range(at, min(at + 64, len(sections))) if value(launch, sections[j]) > 0), None)
            if hit is not None:
                result.append((launch, sections[hit]))
                at = hit + 1
        return result
    m, n = len(launches), len(sections)
    best = np.zeros((m + 1, n + 1))
    for i in range(1, m + 1):
        gain = np.array([value(launches[i - 1], section) for section in sections])
        take = np.where(gain >= 0, best[i - 1, :-1] + np.maximum(gain, 0.01), -1.0)
        row = np.maximum(best[i - 1], np.concatenate([[0.0], take]))
        best[i] = np.maximum.accumulate(row)
    i, j = m, n
    while i and j:
        if best[i, j] == best[i, j - 1]:
            j -= 1
        elif best[i, j] == best[i - 1, j]:
            i -= 1
        else:
            i, j = i - 1, j - 1
            result.append((launches[i], sections[j]))
    return result[::-1]


def _anchor_by_commands(port: PortData, sections: list[_Section]) -> None:
    """Place a port that no send anchors: each launch is between the records around its commands."""
    by_first = sorted(sections, key=lambda section: section.first)
    spans: list[tuple[_Section, _Launch]] = []
    for begin, end in port.launches:
        bound = port.bound[begin:end][port.bound[begin:end] >= 0]
        if len(bound):
            at = bisect_right(by_first, int(bound[0]), key=lambda section: section.first) - 1
            spans.append((by_first[at], _Launch(port, begin, end)))
    if not spans:
        return
    highest = min(section.before_ns - launch.stop for section, launch in spans)
    lowest = max(section.after_ns - launch.start for section, launch in spans)
    if lowest > highest:  # the port ran ahead of the other engines
        lowest = max(section.from_ns - launch.start for section, launch in spans)
    slack = max(0, highest - lowest)
    port.stream.shift(lowest + slack // 2)
    port.anchored = True
    what = "No send of a core anchors this port's clock."
    done = f"Its times were estimated from the commands around them (within {slack / 1000:.1f} us)."
    port.report.warning(what, done, lane=port.stream.label)
