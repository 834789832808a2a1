"""Finds the core and kernel function that submitted each launch on a CDMA port.

Cores are aligned first; then the commands of all cores for a port, ordered by the times at which they can have run, are
paired with the port's launches.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from msgspec import Struct

from tpuprof_tui.sources.sophgo.chips.chip import Chip

from ..arrays import I32, I64, Bytes
from ..commands.command_table import Commands, Mode
from ..commands.model_interleaving import concatenated
from ..core_data import CoreData
from .ports import COMMAND_BYTES, PortData, copied_commands, filled_wraps, wraps_into_window

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
    port.report.note(
        what,
        done,
        lane=port.stream.label,
        count=sum(map(bool, wraps)),
        records=port.stream.dump_indices(np.flatnonzero(moved)),
    )
    if unsure:
        what = "The counter of a CDMA port wrapped in a pause; on which side of it launches ran is not known."
        port.report.warning(
            what, "They were placed at the nearer adjacent launch.", lane=port.stream.label, count=unsure
        )


class _Launch:
    """Records of one launch on a port."""

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
    firsts = np.array(sorted(section.first for section in sections))
    section_at = {section.first: section for section in sections}
    spans: list[tuple[_Section, int, int]] = []
    for begin, end in port.launches:
        bound = port.bound[begin:end][port.bound[begin:end] >= 0]
        if len(bound):
            section = section_at[int(firsts[np.searchsorted(firsts, bound[0], side="right") - 1])]
            spans.append((section, int(port.stream.start[begin:end].min()), int(port.stream.end[begin:end].max())))
    if not spans:
        return
    highest = min(section.before_ns - stop for section, _, stop in spans)
    lowest = max(section.after_ns - start for section, start, _ in spans)
    if lowest > highest:  # the port ran ahead of the other engines
        lowest = max(section.from_ns - start for section, start, _ in spans)
    slack = max(0, highest - lowest)
    port.stream.shift(lowest + slack // 2)
    port.anchored = True
    what = "No send of a core anchors this port's clock."
    done = f"Its times were estimated from the commands around them (within {slack / 1000:.1f} us)."
    port.report.warning(what, done, lane=port.stream.label)
