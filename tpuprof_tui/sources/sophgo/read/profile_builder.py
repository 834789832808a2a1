"""Builds the Profile of decoded cores and ports: device, time origin, lanes, strings; what is lost, odd registers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from tpuprof_tui.model import Device, Groups, Lane, Profile, Scopes, Severity
from tpuprof_tui.model.profile import RecordingMode
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.model.vocabulary import DETAIL, NAMES

from ..chips.chip import Chip
from ..chips.commands import command_table
from ..file_names import SETTINGS_FILE
from ..groups import capture_groups
from ..vocabulary import BMPROFILE_VOCABULARY, VOCABULARY
from .arrays import I64, Bools
from .columns.lanes import LaneBuilder, LaneSource
from .commands.command_table import CORE_ENGINES, Commands
from .commands.lane_registers import LaneRegisters
from .core_data import CoreData, EngineData
from .dependencies import with_dependencies
from .files import Settings, count_text
from .problems import ProblemLocation, Problems, RowsOf
from .records.monitor import RecordStream

if TYPE_CHECKING:
    from .ports import PortData

#: A larger `core_num` is rejected as nonsense.
_MOST_CORES = 1024


class ProfileBuilder(Struct):
    """The decoded parts of a capture, of which the profile is built."""

    directory: Path
    settings: Settings
    chip: Chip
    mhz: float
    cores: list[CoreData]
    ports: list[PortData]
    lost: LostGroups
    report: Problems
    untimed: list[dict[str, Commands]]
    layers: bool = False  #: Whether scopes are layers of a network; else launches of kernel functions

    def profile(self) -> Profile:
        """The profile; the problems of cores and ports are added to the report."""
        for found in (*(core.report for core in self.cores), *(port.report for port in self.ports)):
            self.report.extend(found)
        sources, copies = self._sources(), self._copies()
        streams = [source.stream for source in sources if source.stream is not None]
        zero = min((int(stream.start.min()) for stream in (streams or [copy[2] for copy in copies])), default=0)
        ports = [port.port for port in self.ports if len(port.stream)]
        idle = [port for port in ports if port not in {stream.port for stream in streams}]
        groups = capture_groups(self._core_numbers(), ports, idle, self.lost.cores, self.lost.ports)
        builder = LaneBuilder(self.chip, self.mhz, groups)
        scopes = self._scopes(builder)
        for stream in (*streams, *(copy[2] for copy in copies)):
            stream.shift(-zero)
        lanes = [builder.build(source, scopes.kernel) for source in sources]
        rows_of: dict[tuple[int, str], RowsOf] = {
            (source.core, lane.label): partial(_rows_of, source.stream, lane)
            for source, lane in zip(sources, lanes, strict=True)
            if source.stream is not None
        }
        lanes += [builder.build_copies(name, stream, inward, core) for core, name, stream, inward in copies]
        if self.layers:  # copies beside their core: its layers have one line
            lanes.sort(key=lambda lane: lane.group)
        self._report_register_problems(groups, lanes)
        if not any(map(len, lanes)) and (self.cores or self.ports):
            self._report_nothing()
        engines = [engine for core in self.cores for engine in core.engines.values()]
        ends = [int(stream.end.max()) for stream in (*streams, *(copy[2] for copy in copies))]
        ends += [engine.closing_end - zero for engine in engines if engine.closing_end is not None]
        chip, bmodel = self.chip, self.settings.bmodel
        mode = max((core.mode for core in self.cores), default=0)
        return with_dependencies(Profile(
            path=str(self.directory),
            name=self.directory.resolve().name,
            vocabulary=BMPROFILE_VOCABULARY if self.layers else VOCABULARY,
            device=Device(
                chip.name, self.settings.arch, clocks=(("TIU", self.mhz), ("DMA", chip.dma_mhz)),
                peaks=(("DDR", chip.ddr_gbps), ("L2", chip.l2_gbps)),
                parameters=tuple((label, str(value)) for label, value in chip.parameters),
            ),
            recording=recording_of(mode, bmodel),
            capabilities=capabilities_of(mode, bmodel),
            source_data={"mode": mode, "bmodel": bmodel},
            groups=groups,
            lanes=tuple(lanes),
            strings={key: strings.build() for key, strings in builder.strings.items()},
            scopes=scopes,
            problems=self.report.problems(groups, rows_of),
            tail_ns=max(0, *ends) if ends else None,
            tail_offset_ns=self.settings.tail_offset_ns,
            timed=not any(self.untimed),
        ), by_launch=not self.layers)  # fmt: skip

    def _core_numbers(self) -> tuple[int, ...]:
        """Cores with a file, plus idle cores up to ``core_num``; lost cores count towards it but are left out."""
        numbers = {core.core for core in self.cores} | set(self.lost.cores)
        core_num = self.settings.core_num or 0
        if core_num > _MOST_CORES:
            what = f"core_num={core_num} is more than a device can have."
            self.report.error(what, "It was ignored.", file=SETTINGS_FILE)
            core_num = 0
        free = (number for number in range(_MOST_CORES + len(numbers)) if number not in numbers)
        while len(numbers) < core_num:
            numbers.add(next(free))
        return tuple(sorted(numbers.difference(self.lost.cores)))

    def _scopes(self, builder: LaneBuilder) -> Scopes:
        kernel: list[int] = []
        group: list[int] = []
        for core in self.cores:
            names = core.nodes.scope_names if core.nodes is not None else ()
            kernel += map(builder.strings["kernel"].code, names)
            group += [builder.groups.numbered(core.core)] * len(names)
        return Scopes(np.array(kernel, np.int32), np.array(group, np.int32))

    def _sources(self) -> list[LaneSource]:
        """Instructions of each engine with their commands, in lane order, without the profiler's own records."""
        result: list[LaneSource] = []
        for core in self.cores:
            for name in CORE_ENGINES:
                engine = core.engines.get(name)
                stream = engine.stream.take(engine.keep) if engine is not None else None
                if engine is not None and stream is not None and len(stream):
                    commands = _commands_of(engine)
                    result.append(LaneSource(name, stream, commands, core.core, None, core.first_scope, core.data))
        for port in self.ports:
            stream = port.stream.take(port.keep)
            if len(stream):
                commands, cores = None, np.full(len(stream), port.anchor_core, np.int32)
                if port.commands is not None:
                    bound = port.bound[port.keep]
                    cores = np.where(bound >= 0, port.core[np.maximum(bound, 0)], -1).astype(np.int32)
                    commands = _take_or_empty(port.commands, bound)
                result.append(LaneSource("CDMA", stream, commands, -1, cores, 0, port.data))
        for core, untimed in zip(self.cores, self.untimed, strict=False):
            result += [
                LaneSource(name, None, commands, core.core, None, core.first_scope, core.data)
                for name, commands in untimed.items()
            ]
        return result

    def _copies(self) -> list[tuple[int, str, RecordStream, Bools]]:
        """Core, engine, records and direction of the copies of inputs and outputs by a model's runtime."""
        return [
            (core.core, name, engine.stream.take(engine.copies.rows), engine.copies.inward)
            for core in self.cores
            for name, engine in core.engines.items()
            if engine.copies is not None
        ]

    def _report_nothing(self) -> None:
        """Report that a capture has no instruction although its files are not empty."""
        data = {id(core.data): len(core.data) for core in self.cores}
        size = sum(data.values()) + sum(len(port.data) for port in self.ports)
        records = sum(core.records for core in self.cores) + sum(len(port.stream) for port in self.ports)
        what = f"The files have {size:,} bytes"
        if records:
            what += f" and {count_text(records, 'record')}, all of the profiler itself: no instruction was recorded."
        else:
            what += ", of which nothing is a record or command that can be read."
        self.report.error(what if size else "All files of cores and ports are empty.", "Nothing can be shown.")

    def _report_register_problems(self, groups: Groups, lanes: list[Lane]) -> None:
        cores = {core.core: core for core in self.cores}
        for lane in lanes:
            if not isinstance(lane.registers, LaneRegisters):
                continue
            core = groups.unit_number(lane.group)
            for severity, what, done, rows in register_problems(lane.registers):
                file, offset = cores[core].place(int(lane.registers.offset[rows[0]])) if core in cores else ("", -1)
                location = ProblemLocation(file=file, core=core, lane=lane.label, offset=offset, count=len(rows))
                if severity > Severity.NOTE:  # a note may concern every row: no rows to jump to
                    location["rows"] = rows
                self.report.add_at(severity, what, done, location)


def _rows_of(stream: RecordStream, lane: Lane, records: I64) -> I64:
    """Rows of a lane for some records of the dump; a record without a row maps to the row of the next one in the dump.

    Args:
        stream: Instructions of the lane, in stream order.
        lane: The lane, at least one row.
        records: int64, indices of records in the dump.
    """
    dump_indices = stream.dump_indices()[lane["order"]]
    by_dump_index = np.argsort(dump_indices, kind="stable")
    found = np.searchsorted(dump_indices, records, sorter=by_dump_index)
    rows: I64 = uniques(by_dump_index[np.minimum(found, len(dump_indices) - 1)])
    return rows


def _commands_of(engine: EngineData) -> Commands | None:
    """Command of each instruction; a view of the command list where records and commands correspond one to one."""
    if engine.commands is None:
        return None
    one_to_one = len(engine.bound) == len(engine.commands) and bool((engine.bound >= 0).all())
    if one_to_one and isinstance(engine.keep, slice):
        return engine.commands.take(engine.keep)
    return _take_or_empty(engine.commands, engine.bound[engine.keep])


def _take_or_empty(commands: Commands, bound: Any) -> Commands:
    """Commands at the indices ``bound``; empty ones (word 0, no scope, no mode) where it is -1."""
    unbound = bound < 0
    result = commands.take(np.where(unbound, 0, bound))
    for name, value in (("word", 0), ("scope", -1), ("batch", -1), ("mode", 0), ("extra", -1), ("des", -1)):
        getattr(result, name)[unbound] = value
    if result.register_offset is not None:
        result.register_offset[unbound] = -1
    return result


#: Meaning of a mode, by level of detail: no commands, condensed nodes, registers.
_MEANINGS: Final = ("PMU only", "condensed commands", "detailed commands")


def detail_of(mode: int, bmodel: bool) -> int:
    """Level of detail of commands as a mode, 0 to 2; for a compiled model (bmodel) it is 2 in any mode."""
    return 2 if bmodel else mode


def recording_of(mode: int, bmodel: bool) -> RecordingMode:
    """Display texts of a capture's mode: ``mode 1``, or ``bmodel``."""
    short = "bmodel" if bmodel else str(mode)
    return RecordingMode(short if bmodel else f"mode {mode}", short, _MEANINGS[detail_of(mode, bmodel)])


def capabilities_of(mode: int, bmodel: bool) -> frozenset[str]:
    """Capabilities of a capture by its mode."""
    return frozenset((NAMES, DETAIL)[: detail_of(mode, bmodel)])


class LostGroups(Struct, frozen=True):
    """Numbers of the cores and CDMA ports that ran but have no record, ascending."""

    cores: tuple[int, ...] = ()
    ports: tuple[int, ...] = ()


def check_counts(
    settings: Settings, chip: Chip, cores: list[CoreData], ports: list[PortData], report: Problems
) -> LostGroups:
    """Report engines with fewer records than ``global.profile`` counts; returns cores and ports without any."""
    lost_cores, lost_ports = list[int](), list[int]()
    streams = {(False, each.core): [engine.stream for engine in each.engines.values()] for each in cores}
    streams |= {(True, each.port): [each.stream] for each in ports}
    files = {(False, each.core): each.file for each in cores} | {(True, each.port): each.file for each in ports}
    counted: dict[tuple[bool, int], dict[str, int]] = {}
    for (engine, number), claimed in settings.claimed.items():
        counted.setdefault((engine == "CDMA", number), {})[engine] = claimed
    nonexistent: list[str] = []
    for (of_port, number), claims in sorted(counted.items()):
        present = streams.get((of_port, number))
        if present is None and number >= (chip.cdma_ports if of_port else chip.core_count):
            nonexistent += [f"CDMA port {number}" if of_port else f"core {number}"] if any(claims.values()) else []
            continue
        claims = {name: claims[name] for name in (*CORE_ENGINES, "CDMA") if name in claims}
        found = None if present is None else {each.engine: len(each) + each.left_out for each in present}
        label, file = f"{'port' if of_port else 'core'} {number}", files.get((of_port, number), "")
        claimed = _claims_records(claims, found, report, label, file, -1 if of_port else number)
        if claimed and not any(map(len, present or ())):
            (lost_ports if of_port else lost_cores).append(number)
    if nonexistent:
        what = f"global.profile counts records of {nonexistent[0]}, which {chip.name} does not have."
        done = f"It has {count_text(chip.core_count, 'core')} and {count_text(chip.cdma_ports, 'CDMA port')}."
        report.error(what, done, file=SETTINGS_FILE, count=len(nonexistent))
    for each in cores:  # without counts, a fully damaged file is not an idle core
        severities = [problem.severity for problem in each.report.problems()]
        if (False, each.core) not in counted and not each.blocks and Severity.ERROR in severities:
            lost_cores.append(each.core)
    return LostGroups(tuple(sorted(lost_cores)), tuple(lost_ports))


def _claims_records(
    claims: dict[str, int], present: dict[str, int] | None, report: Problems, owner: str, file: str, core: int
) -> bool:
    """Whether ``global.profile`` counts records of a core or port; reports a file that is missing or holds fewer."""
    claims = {engine: claimed for engine, claimed in claims.items() if claimed}
    if present is None and claims:
        *counts, last = (f"{claimed} {engine}" for engine, claimed in claims.items())
        counted = f"{', '.join(counts)}{' and ' if counts else ''}{last}"
        what = f"global.profile counts {counted} records of {owner}, its file is missing."
        report.error(what, "It is lost: figures do not count it as idle.", file=SETTINGS_FILE, core=core,
                     lane=owner if core < 0 else "", lost=sum(claims.values()))  # fmt: skip
    for engine, claimed in claims.items():
        found = present.get(engine, 0) if present is not None else claimed
        if found < claimed:
            what = f"global.profile counts {claimed} {engine} records, the file holds {found}."
            lane = owner if core < 0 else engine
            report.error(what, "The existing ones are shown.", file=file, core=core, lane=lane, lost=claimed - found)
    return bool(claims)


#: Most operations named in one sentence.
_MOST_NAMED = 5


def register_problems(registers: LaneRegisters) -> Iterator[tuple[Severity, str, str, I64]]:
    """Commands that cannot be decoded, or only in part, and bytes that belong to no command.

    Yields:
        Severity (notes lose nothing), problem, consequence, and the affected rows, at least one.
    """
    table = command_table(registers.chip, registers.engine)
    counts = np.bincount(registers.operation.astype(np.int64) + 1, minlength=1)
    unreadable = np.flatnonzero((registers.operation < 0) & (registers.offset >= 0))
    lost = (
        ("Commands whose registers cannot be decoded.", "Their bytes are shown as recorded.", unreadable),
        ("Detail records (DYN_EXTRA) of another command than their nodes.", "The records' content is shown.",
         registers.type_mismatches),
        (f"Commands with a data type that {registers.chip.name} does not know.", "It is shown by its code.",
         registers.unknown_formats),
    )  # fmt: skip
    for what, done, rows in lost:
        if len(rows):
            yield Severity.ERROR, what, done, rows
    sure = table.sizes.copy()
    used = np.flatnonzero(counts[1:]).tolist()
    for index in used:
        if table.operations[index].partial:
            sure[index] = np.iinfo(np.int64).max
            what = f"The registers of {table.operations[index].name} are not known."
            done = "What all such commands of the chip share is decoded; the rest is shown as bytes."
            yield Severity.WARNING, what, done, np.flatnonzero(registers.operation == index)
    assumed = [index for index in used if table.operations[index].assumed]
    if assumed:
        names = ", ".join(table.operations[index].name for index in assumed[:_MOST_NAMED])
        more = f" and {len(assumed) - _MOST_NAMED} more" if len(assumed) > _MOST_NAMED else ""
        what = f"The registers of {names}{more} are described for a sibling chip only."
        done = "Its layout is used: headers agree, fields may not."
        yield Severity.NOTE, what, done, np.flatnonzero(np.isin(registers.operation, assumed))
    sure[-1] = np.iinfo(np.int64).max
    longer = np.flatnonzero(registers.size > sure[registers.operation])
    if len(longer):
        yield Severity.NOTE, "Bytes after the command in its detail record (DYN_EXTRA).", "Ignored.", longer
