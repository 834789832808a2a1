"""Records and commands of each core over all runs: decoded, bound, engines and cores aligned on one time line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from ...chips.chip import Chip, family_of
from ..arrays import I32, I64, Bools, Bytes, id_sections
from ..commands.command_table import Commands, Mode, NodeStream, concatenated
from ..commands.lane_registers import depended_on
from ..commands.registers import EncodedCommands
from ..commands.streams import walk
from ..core_data import CoreData, EngineData, HostCopies
from ..files import Block, BlockType, payloads_of
from ..problems import Problems
from ..records.monitor import RecordStream, in_order, read_stream, to_ns, unwrapped_ids
from .plan import ENGINES, Plan, PlannedCommands

if TYPE_CHECKING:
    from .folder import SubnetRun

_MONITORS = {"TIU": BlockType.MONITOR_BD, "GDMA": BlockType.MONITOR_GDMA}
_DYN_BYTES = 32
_DYN_FIRST = 0xFFFFFFFF
#: Largest tick of the firmware's timer, ns; a greater number in its place is a time stamp.
_LARGEST_TICK_NS = 1000
#: Bytes of the shortest command or record: a run has no more commands than its files have such.
_SHORTEST = 8


class Launch(Struct):
    """What one core ran in a run."""

    core: int
    file: str
    base: int  #: Offset of the run's file in the bytes of the folder
    blocks: Mapping[int, Block]  #: Its blocks by type, at offsets in these bytes
    #: Address, offset from there and number of its commands by engine; empty: none were announced.
    commands: dict[str, tuple[int, int, int]] = field(default_factory=dict)


class _Engine(Struct):
    stream: RecordStream
    commands: Commands  #: Commands that leave records, and those beyond that were recorded
    planned: PlannedCommands
    bound: I64  #: Index of each record's command; -1 without one
    model: Bools  #: Mask of the records that are no copies by the runtime
    copies: Bools  #: Mask of the copies
    unrecorded: int  #: Number of commands that leave no record


class CoreRuns(Struct):
    """Reads the launches of a folder."""

    chip: Chip
    mhz: float
    data: Bytes
    parts: Sequence[tuple[int, str]]
    #: Range in ``data`` of each file of commands, by address, core (-1: any) and engine.
    files: Mapping[tuple[int, int, str], tuple[int, int]]
    plan: Plan
    forecast: Mapping[str, I64]  #: Forecast length of core 0's commands by engine
    walked: dict[tuple[int, int, str], tuple[I64, I32]] = field(default_factory=dict)

    def read(self, runs: Sequence[SubnetRun], report: Problems) -> list[CoreData]:
        """Cores with all their runs, ascending."""
        cores: dict[int, CoreData] = {}
        engines: dict[int, dict[str, list[_Engine]]] = {}
        end = 0
        for number, run in enumerate(runs):
            read = []
            for launch in run.launches:
                if launch.core not in cores:
                    own = Problems(launch.file, launch.core)
                    core = CoreData(launch.core, launch.file, self.data, own, mode=2, bmodel=True, parts=self.parts)
                    cores[launch.core] = core
                core = cores[launch.core]
                core.report.file = launch.file
                core.nodes = core.nodes or NodeStream()
                read.append({name: self._engine(name, launch, run, core.report) for name in ENGINES})
                self._number_layers(core, read[-1], number if len(runs) > 1 else -1)
                self._align_engines(read[-1], core.report)
            self._align_cores(run, read, cores)
            end = _place(run, runs[0], read, end)
            for launch, found in zip(run.launches, read, strict=True):
                for name, engine in found.items():
                    engines.setdefault(launch.core, {}).setdefault(name, []).append(engine)
        if len(runs) > 1:
            report.note(f"{len(runs)} runs.", "Each has counters of its own: the host's clock tells how they follow.")
        for number, core in sorted(cores.items()):
            for name, launches in engines[number].items():
                self._join(core, name, launches)
        return [core for _, core in sorted(cores.items())]

    # -- one engine of one launch --------------------------------------------

    def _engine(self, name: str, launch: Launch, run: SubnetRun, report: Problems) -> _Engine:
        chip, family = self.chip, family_of(name)
        payloads, places = payloads_of(self.data, launch.blocks.values(), _MONITORS[name])
        stream = read_stream(payloads, [place - launch.base for place in places], chip, name, report)
        stream = in_order(stream, chip, report)
        commands, planned, count = self._commands(name, launch, run, report)
        stream.id = unwrapped_ids(stream.id, count or None)
        to_ns(stream, self.mhz if name == "TIU" else chip.dma_mhz)
        model, copies = np.ones(len(stream), np.bool_), np.zeros(len(stream), np.bool_)
        if name == "GDMA" and count:
            model = model_section(stream.id, count)
            moved = chip.figures[family].condensed["bytes"].of(stream.counter)
            copies = ~model & (moved > 0)
            stray = int(np.count_nonzero(~model & ~copies))
            if stray:
                what = "Records of GDMA beside the model's that moved nothing."
                report.note(what, "They were left out.", lane=name, count=stray)
        bound = np.where(model & (stream.id < len(commands)), stream.id, -1)
        recorded = np.zeros(len(commands), np.bool_)
        recorded[bound[bound >= 0]] = True
        silent = (planned.type == chip.system_types[family]) & ~recorded & (len(stream) > 0)
        if not self._ends_unrecorded(name):
            silent[:-1] = False  # only the end may be without one
        unread = max(0, count - len(commands)) if len(stream) else 0
        unrecorded = int(silent.sum()) + unread
        if silent.any():
            numbers = np.cumsum(~silent) - 1
            bound = np.where(bound >= 0, numbers[bound], -1)
            commands = commands.take(~silent)
            planned = PlannedCommands(planned.layer[~silent], planned.depends[~silent], planned.type[~silent])
        return _Engine(stream, commands, planned, bound, model, copies, unrecorded)

    def _commands(
        self, name: str, launch: Launch, run: SubnetRun, report: Problems
    ) -> tuple[Commands, PlannedCommands, int]:
        """Commands of an engine, what is planned for them, and how many of them were announced."""
        address, offset, count = launch.commands.get(name, (0, 0, 0))
        if count > len(self.data) // _SHORTEST:
            what = f"{count:,} {name} commands are announced, more than the files have room for."
            report.error(what, "Its records are shown as unknown.", lane=name)
            count = 0
        found = self.files.get((address, launch.core, name)) or self.files.get((address, -1, name))
        offsets, sizes = np.full(count, -1, np.int64), np.zeros(count, np.int32)
        if count and found is None:
            file = f"cmd_{address:x}_{launch.core}_{ENGINES.index(name)}.dat"
            what = f"The file of its {name} commands is missing ({file})."
            report.error(what, "They are shown without names and registers.", lane=name, count=count)
        elif found is not None and count:
            offsets, sizes = self._walk(name, min(found[0] + offset, found[1]), found[1])
            file = next(part for first, part in reversed(self.parts) if first <= found[0])
            if len(offsets) > count:
                what = f"{len(offsets) - count} more {name} commands than announced."
                report.warning(what, "They are not shown.", file=file, lane=name)
            elif len(offsets) < count - self._ends_unrecorded(name):
                missing = count - len(offsets)
                what = f"{count} {name} commands are announced, {len(offsets)} can be read."
                report.error(what, "The others are shown without names.", file=file, lane=name, count=missing)
                offsets, sizes = np.pad(offsets, (0, missing), constant_values=-1), np.pad(sizes, (0, missing))
            offsets, sizes = offsets[:count], sizes[:count]
        total = len(offsets)
        planned = self.plan.planned(run.subnet, launch.core, name, total)
        encoded = EncodedCommands.of(self.chip, name, self.data, offsets, sizes)
        types = encoded.codes()[0]
        planned.type[types >= 0] = types[types >= 0]
        if not planned.depends.any():
            values, missing_mask = encoded.field("cmd_id_dep")
            planned.depends[:] = np.where(missing_mask, 0, depended_on(self.chip, name, values.astype(np.int64)))
        forecast = np.full(total, -1, np.int64)
        if launch.core == 0 and name in self.forecast:
            known = self.forecast[name][:total]
            forecast[: len(known)] = known
        none = np.full(total, -1, np.int32)
        ids, word, mode = (
            np.arange(total, dtype=np.int64),
            np.zeros(total, np.uint32),
            np.full(total, Mode.NONE, np.int8),
        )
        commands = Commands(word, ids, none, none, mode, ids * 0, none, none, offsets, sizes, forecast)
        return commands, planned, count

    def _ends_unrecorded(self, name: str) -> bool:
        """Whether system commands leave no record, and the walk leaves out the end of a stream."""
        return family_of(name) in self.chip.bmprofile.unrecorded

    def _walk(self, name: str, first: int, last: int) -> tuple[I64, I32]:
        """Offsets in ``data`` and lengths of the commands of a stream; streams of several runs are read once."""
        if (first, last, name) not in self.walked:
            stream = walk(self.chip, name, self.data[first:last])
            self.walked[first, last, name] = stream.offsets + first, stream.lengths
        return self.walked[first, last, name]

    # -- one launch ------------------------------------------------------------

    def _number_layers(self, core: CoreData, engines: Mapping[str, _Engine], batch: int) -> None:
        """Make each layer of a launch a scope of its commands."""
        assert core.nodes is not None
        none = np.zeros(0, np.int32)
        layers = np.unique(np.concatenate([none, *(engine.planned.layer for engine in engines.values())]))
        layers = layers[layers >= 0]
        first = len(core.nodes.scope_names)
        core.nodes.scope_names += [self.plan.layer_names[layer] for layer in layers.tolist()]
        for engine in engines.values():
            layer = engine.planned.layer
            engine.commands.scope = np.where(layer >= 0, first + np.searchsorted(layers, layer), -1).astype(np.int32)
            engine.commands.batch = np.full(len(layer), batch, np.int32)

    def _align_engines(self, engines: Mapping[str, _Engine], report: Problems) -> None:
        tiu, gdma = (engines[name] for name in ENGINES)
        if not len(tiu.stream) or not len(gdma.stream):
            return
        offset = engine_offset(tiu, gdma)
        if offset is not None:
            ns, held, dependencies = offset
            tiu.stream.shift(ns)
            if held < dependencies:
                counts = f"{dependencies - held} of {dependencies}"
                what = f"TIU and GDMA contradict {counts} dependencies on any common time line."
                report.warning(what, "They are aligned so that the others hold; clocks may be others than assumed.")
        elif self.chip.bmprofile.clock_recorded:
            tiu.stream.shift(int(gdma.stream.start[0] - tiu.stream.start[0]))
            what = "TIU and GDMA count from different times, and no dependency between them is known."
            report.warning(what, "Their first records are put at the same time: only lengths are right.")

    def _align_cores(
        self, run: SubnetRun, read: Sequence[Mapping[str, _Engine]], cores: Mapping[int, CoreData]
    ) -> None:
        if len(read) < 2:
            return
        timers = [self._timer(launch) for launch in run.launches]
        shifts = core_shifts([self._waits(engines["TIU"]) for engines in read], timers)
        for launch, engines, shift in zip(run.launches, read, shifts, strict=True):
            if shift is None:
                what = "Nothing tells when its counters started."
                cores[launch.core].report.warning(what, "They are taken to start with the first core's.")
            for engine in engines.values():
                engine.stream.shift(shift or 0)

    def _waits(self, engine: _Engine) -> I64:
        rows = np.flatnonzero(engine.bound >= 0)
        offsets = engine.commands.register_offset
        assert offsets is not None
        offsets = offsets[engine.bound[rows]]
        types, functions = EncodedCommands.of(self.chip, "TIU", self.data, offsets).codes()
        waits = (types == self.chip.system_types["tiu"]) & np.isin(functions, list(self.chip.wait_functions["tiu"]))
        starts: I64 = engine.stream.start[rows[waits]]
        return starts

    def _timer(self, launch: Launch) -> int | None:
        """When the counters of a core started, ns by the firmware's timer; None where it was not recorded."""
        block = launch.blocks.get(BlockType.DYN_DATA)
        if block is None or block.length < _DYN_BYTES:
            return None
        record = self.data[block.offset : block.offset + _DYN_BYTES].tobytes()
        begin, tick = int.from_bytes(record[16:24], "little"), int.from_bytes(record[24:32], "little")
        if int.from_bytes(record[4:8], "little") != _DYN_FIRST or begin >= 1 << 60:
            return None
        return begin * tick if 0 < tick <= _LARGEST_TICK_NS else begin

    # -- all launches ------------------------------------------------------------

    def _join(self, core: CoreData, name: str, launches: Sequence[_Engine]) -> None:
        """Join the launches of an engine; one without records has only commands."""
        assert core.nodes is not None
        commands = launches[0].commands if len(launches) == 1 else concatenated([each.commands for each in launches])
        if not any(len(each.stream) for each in launches):
            if len(commands):
                core.nodes.engines[name] = commands
            return
        firsts = np.cumsum([0, *(len(each.commands) for each in launches)]).tolist()
        bound = np.concatenate(
            [np.where(each.bound >= 0, each.bound + first, -1) for each, first in zip(launches, firsts, strict=False)]
        )
        stream = launches[0].stream if len(launches) == 1 else _joined([each.stream for each in launches])
        model, copies = (np.concatenate([getattr(each, part) for each in launches]) for part in ("model", "copies"))
        core.records += len(stream)
        unrecorded = sum(each.unrecorded for each in launches)
        if unrecorded:
            what = f"{name} sends, waits or ends, of which {self.chip.name} keeps no record."
            core.report.note(what, "They are not shown.", lane=name, count=unrecorded)
        keep = slice(None) if model.all() else model
        engine = EngineData(stream, commands if len(commands) else None, bound, keep=keep)
        if copies.any():
            inward = np.concatenate([~np.logical_or.accumulate(each.model) for each in launches])
            rows = np.flatnonzero(copies)
            engine.copies = HostCopies(rows, inward[rows])
        core.engines[name] = engine


def _joined(streams: Sequence[RecordStream]) -> RecordStream:
    words = np.concatenate([each.words if each.rows is None else each.words[each.rows] for each in streams])
    columns = {name: np.concatenate([getattr(each, name) for each in streams]) for name in ("id", "start", "end")}
    cycles = None
    if any(each.cycles is not None for each in streams):
        cycles = np.concatenate([each.end - each.start + 1 if each.cycles is None else each.cycles for each in streams])
    left_out = sum(each.left_out for each in streams)
    return replace(streams[0], words=words, rows=None, cycles=cycles, first=0, left_out=left_out, **columns)


def _place(run: SubnetRun, first: SubnetRun, read: Sequence[Mapping[str, _Engine]], end: int) -> int:
    """Put a run where the host began it, but not before the end (ns) of the last one; returns its end."""
    streams = [engine.stream for engines in read for engine in engines.values() if len(engine.stream)]
    start = min((int(stream.start.min()) for stream in streams), default=0)
    begin = max((run.begin_us - first.begin_us) * 1000, end)
    for stream in streams:
        stream.shift(begin - start)
    return max((int(stream.end.max()) for stream in streams), default=end)


def engine_offset(tiu: _Engine, gdma: _Engine) -> tuple[int, int, int] | None:
    """Offset between the counters of two engines by their dependencies; None where no recorded pair has one.

    Returns the time to add to the records of TIU, ns, how many of the dependencies then hold, and their number.
    A TIU command that waits for a GDMA command cannot start before it has ended, and vice versa: each dependency is a
    bound. The offset is the middle between the greatest lower and the smallest upper bound; where these contradict, one
    that satisfies as many as possible.
    """
    lower, upper = _distances(tiu, gdma), -_distances(gdma, tiu)
    count = len(lower) + len(upper)
    if not count:
        return None
    first, last = lower.max(initial=np.iinfo(np.int64).min), upper.min(initial=np.iinfo(np.int64).max)
    if not len(lower) or not len(upper):  # nothing else is known: as close together as allowed
        return int(first if len(lower) else last), count, count
    if first <= last:
        return int((first + last) // 2), count, count
    bounds = np.sort(np.concatenate([lower, upper]))
    held = np.searchsorted(np.sort(lower), bounds, "right") + len(upper) - np.searchsorted(np.sort(upper), bounds)
    best = int(held.argmax())
    return int(bounds[best]), int(held[best]), count


def _distances(waiting: _Engine, other: _Engine) -> I64:
    """Time from the start of each command that waits to the end of what it waits for, if both are recorded."""
    rows, others = np.flatnonzero(waiting.bound >= 0), np.flatnonzero(other.bound >= 0)
    depends, number = waiting.planned.depends[waiting.bound[rows]], other.commands.id[other.bound[others]] + 1
    row_of = np.full(int(max(number.max(initial=0), depends.max(initial=0))) + 1, -1, np.int64)
    row_of[number] = others
    row_of[0] = -1
    found = row_of[depends]
    distances: I64 = other.stream.end[found[found >= 0]] - waiting.stream.start[rows[found >= 0]]
    return distances


def core_shifts(waits: Sequence[I64], timers: Sequence[int | None]) -> list[int | None]:
    """Time to add to each core, ns, so that all are on the time line of the first; None where it is not known.

    Args:
        waits: By core: starts of its waits for messages, which are recorded when they are released: the k-th ones of
            all cores at once.
        timers: By core: when its counters started, ns by the firmware's timer, which all cores share.
    """
    shifts: list[int | None] = [0]
    for own, timer in zip(waits[1:], timers[1:], strict=True):
        if len(own) and len(own) == len(waits[0]):
            shifts.append(int(np.median(waits[0] - own)))
        elif timer is not None and timers[0] is not None:
            shifts.append(timer - timers[0])
        else:
            shifts.append(None)
    return shifts


def model_section(ids: I64, most: int) -> Bools:
    """Mask of the records of the model: ids restart at each sequence of copies by the runtime; the longest section.

    Args:
        most: Number of commands of the model; 0 unknown. A section with greater ids is not the model's.
    """
    mask = np.zeros(len(ids), np.bool_)
    if len(ids):
        first, last = id_sections(ids)
        best = int(np.where((ids[last - 1] < most) | (most == 0), last - first, 0).argmax())
        mask[first[best] : last[best]] = True
    return mask
