"""From a plan to streams: every record with its times, program order, nothing lost yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from .catalogue import Catalogue
from .chips import CDMA, GDMA, SDMA, TIU
from .frame import Frame, closing, opening
from .options import Options
from .plan import Plan, make_plan, program_counts
from .schedule import Schedule, schedule
from .streams import Stream

I64 = npt.NDArray[np.int64]

#: Records scheduled at a time; bounds the memory, not the result.
_CHUNK = 400_000
_FIRST_LAUNCH_NS = 10_000
OPENING_LAUNCH, CLOSING_LAUNCH = -1, -2


@dataclass
class Built:
    """A capture in memory, before it is written."""

    options: Options
    plan: Plan
    catalogue: Catalogue
    #: By core number of a written core: TIU, GDMA, SDMA.
    cores: dict[int, list[Stream]]
    #: By port.
    ports: list[Stream]
    #: Program of the handshake and of the closing pair, by core number.
    opening: dict[int, int]
    closing: int
    #: First scope of each running core.
    scope_base: dict[int, int]
    anchor_core: int | None
    launch_start_ns: I64
    launch_end_ns: I64
    #: Records in files that are gone, by key of global.profile.
    gone: dict[str, int] = field(default_factory=dict)

    @property
    def streams(self) -> list[Stream]:
        return [s for core in self.cores.values() for s in core] + self.ports


def build(options: Options) -> Built:
    rng = np.random.Generator(np.random.PCG64(options.seed))
    plan = make_plan(options, rng)
    numbers = options.core_numbers
    lengths = [plan.counts[plan.program[place]].sum(axis=0) for place in range(len(plan.running))]
    tables = [[_Columns(int(length[e])) for e in (TIU, GDMA, SDMA)] for length in lengths]
    ports = [_PortColumns() for _ in range(options.ports)]
    starts, ends = _run(plan, tables, ports, rng)
    last = int(ends[-1]) if len(ends) else _FIRST_LAUNCH_NS
    anchor = numbers[-1] if options.ports else None
    frames = {n: opening(options, options.ports if n == anchor else 0) for n in numbers}
    end_frame = closing(options, last)
    offsets = _clock_offsets(options, len(numbers) + options.ports, rng)
    built = Built(options, plan, plan.catalogue, {}, [], {}, 0, {}, anchor, starts, ends)
    built.closing = plan.catalogue.append(end_frame.program)
    for rank, number in enumerate(numbers):
        built.opening[number] = plan.catalogue.append(frames[number].program)
        columns = tables[plan.running.index(number)] if number in plan.running else None
        built.cores[number] = [
            _core_stream(built, rank, number, engine, columns[engine] if columns else None,
                         frames[number], end_frame, offsets[rank])
            for engine in (TIU, GDMA, SDMA)
        ]  # fmt: skip
    for port, table in enumerate(ports):
        assert anchor is not None
        built.ports.append(_port_stream(built, port, table, frames[anchor], offsets[len(numbers) + port]))
    built.scope_base = {number: place * plan.launches for place, number in enumerate(plan.running)}
    plan.counts = program_counts(plan.catalogue)
    return built


class _Columns:
    """Growing columns of one engine; filled at known places."""

    def __init__(self, size: int) -> None:
        self.row = np.zeros(size, dtype=np.int32)
        self.launch = np.zeros(size, dtype=np.int32)
        self.start = np.zeros(size, dtype=np.int64)
        self.end = np.zeros(size, dtype=np.int64)


class _PortColumns:
    """Launches of one port as they come; the parts are joined in launch order."""

    def __init__(self) -> None:
        self.parts: list[tuple[I64, I64, I64, I64, I64]] = []


def _run(plan: Plan, tables: list[list[_Columns]], ports: list[_PortColumns],
         rng: np.random.Generator) -> tuple[I64, I64]:  # fmt: skip
    """Schedule all launches; their start and end in ns after the handshake."""
    pace = 1.0 + 0.07 * rng.random(len(plan.running))
    if plan.options.run:
        rng = np.random.Generator(np.random.PCG64((plan.options.seed, plan.options.run)))
        pace *= 1 + 0.01 * float(rng.standard_normal())
    size = plan.counts.sum(axis=1)[plan.program].sum(axis=0)
    cuts = np.searchsorted(np.cumsum(size), np.arange(_CHUNK, int(size.sum()) + _CHUNK, _CHUNK)) + 1
    edges = np.unique(np.concatenate([[0], np.minimum(cuts, plan.launches)]))
    done = np.zeros((len(plan.running), 3), dtype=np.int64)
    clock = _FIRST_LAUNCH_NS
    starts = np.zeros(plan.launches, dtype=np.int64)
    ends = np.zeros(plan.launches, dtype=np.int64)
    for a, b in pairwise(edges.tolist()):
        chunk = _Chunk(plan, a, b, pace, rng)
        clock = chunk.place(clock, starts, ends)
        chunk.scatter(tables, ports, done)
    return starts, ends


class _Chunk:
    """Launches a..b on all cores."""

    def __init__(self, plan: Plan, a: int, b: int, pace: npt.NDArray[np.float64],
                 rng: np.random.Generator) -> None:  # fmt: skip
        self.plan, self.a, self.b = plan, a, b
        cores = len(plan.running)
        self.skew = rng.integers(0, 350, size=(cores, b - a))
        for core, later in (map(int, each.split(":")) for each in plan.options.late):
            self.skew[plan.running.index(core)] += later
        self.pause = rng.integers(900, 2600, size=b - a)
        self.ready = np.zeros((cores, b - a), dtype=np.int64)
        self.parts: list[tuple[int, I64, I64, Schedule]] = []
        window = plan.program[:, a:b]
        for number in np.unique(window):
            place, launch = np.nonzero(window == number)
            times = schedule(plan.catalogue.programs[number], pace[place], rng)
            self.ready[place, launch] = times.ready
            self.parts.append((int(number), place, launch, times))

    def place(self, clock: int, starts: I64, ends: I64) -> int:
        """Put the launches one after the other from ``clock``; the next free moment."""
        span = (self.ready + self.skew).max(axis=0, initial=0) + 40
        batch = self.plan.batch[self.a : self.b]
        new_batch = np.diff(batch, prepend=self.plan.batch[max(self.a - 1, 0)]) != 0
        rest = 15_000 + 1_000_000 * self.plan.options.pause_ms
        begin = clock + np.cumsum(span + self.pause + rest * new_batch) - span - self.pause
        self.begin = begin
        for _, place, launch, times in self.parts:
            times.close(span[launch] - self.skew[place, launch])
        starts[self.a : self.b] = begin
        ends[self.a : self.b] = begin + span + 40
        return int(begin[-1] + span[-1] + self.pause[-1])

    def scatter(self, tables: list[list[_Columns]], ports: list[_PortColumns], done: I64) -> None:
        counts = self.plan.counts[self.plan.program[:, self.a : self.b]]
        offset = np.cumsum(counts, axis=1) - counts
        for number, place, launch, times in self.parts:
            shift = self.begin[launch] + self.skew[place, launch]
            for engine in (TIU, GDMA, SDMA):
                rows = self.plan.catalogue.engine_rows(number, engine)
                if not len(rows):
                    continue
                for core in np.unique(place):
                    mine = place == core
                    at = (done[core, engine] + offset[core, launch[mine], engine])[:, None] + np.arange(len(rows))
                    columns = tables[core][engine]
                    columns.row[at] = self.plan.catalogue.first[number] + rows
                    columns.launch[at] = (self.a + launch[mine])[:, None]
                    columns.start[at] = (times.start[rows][:, mine] + shift[mine]).T
                    columns.end[at] = (times.end[rows][:, mine] + shift[mine]).T
            self._ports(number, place, launch, times, shift, ports)
        done += counts.sum(axis=1)[:, :3]

    def _ports(self, number: int, place: I64, launch: I64, times: Schedule, shift: I64,
               ports: list[_PortColumns]) -> None:  # fmt: skip
        for slot in range(self.plan.catalogue.programs[number].slots):
            rows = self.plan.catalogue.engine_rows(number, CDMA, slot)
            first = self.plan.catalogue.first[number]
            for column in range(len(place)):
                at, core = self.a + int(launch[column]), int(place[column])
                port = self.plan.port_slots(core, at)[slot]
                start = times.start[rows, column] + shift[column]
                end = times.end[rows, column] + shift[column]
                full = np.full(len(rows), at, dtype=np.int64)
                owner = np.full(len(rows), self.plan.running[core], dtype=np.int64)
                ports[port].parts.append((first + rows, full, start, end, owner))


def _clock_offsets(options: Options, count: int, rng: np.random.Generator) -> list[int]:
    """Counter values (ns) at the end of the handshake.

    Whole microseconds where the clocks differ, so that they are whole ticks of both.
    """
    values = rng.integers(3_000, 55_000, size=count)
    if options.tiu_mhz != options.chip.dma_mhz:
        values = values // 1000 * 1000
    return [int(value) for value in values]


def _core_stream(built: Built, rank: int, number: int, engine: int, columns: _Columns | None, head: Frame,
                 tail: Frame, offset_ns: int) -> Stream:  # fmt: skip
    chip = built.options.chip
    mhz = built.options.tiu_mhz if engine == TIU else chip.dma_mhz
    parts = []
    if number not in built.options.empty:
        parts.append(_framed(built, built.opening[number], head, engine, OPENING_LAUNCH))
        if columns is not None:
            parts.append((columns.row.astype(np.int64), columns.launch.astype(np.int64), columns.start, columns.end))
        parts.append(_framed(built, built.closing, tail, engine, CLOSING_LAUNCH))
    row, launch, start, end = _joined(parts)
    if mhz != 1000:
        start, end = (np.rint(t * (mhz / 1000.0)).astype(np.int64) for t in (start, end))
    return Stream(engine, rank, mhz, offset_ns * mhz // 1000, row.astype(np.int32), launch.astype(np.int32),
                  start, end, number)  # fmt: skip


def _framed(built: Built, program: int, frame: Frame, engine: int, launch: int) -> tuple[I64, I64, I64, I64]:
    rows = built.catalogue.engine_rows(program, engine)
    marks = np.full(len(rows), launch, dtype=np.int64)
    return built.catalogue.first[program] + rows, marks, frame.start[rows], frame.end[rows]


def _port_stream(built: Built, port: int, table: _PortColumns, head: Frame, offset_ns: int) -> Stream:
    assert built.anchor_core is not None
    program = built.opening[built.anchor_core]
    rows = built.catalogue.engine_rows(program, CDMA, port)
    marks = np.full(len(rows), OPENING_LAUNCH, dtype=np.int64)
    owner = np.full(len(rows), built.anchor_core, dtype=np.int64)
    parts = sorted(table.parts, key=lambda part: int(part[1][0]))
    joined = [(built.catalogue.first[program] + rows, marks, head.start[rows], head.end[rows], owner), *parts]
    row, launch, start, end, core = (np.concatenate(column) for column in zip(*joined, strict=True))
    return Stream(CDMA, port, built.options.chip.dma_mhz, offset_ns, row.astype(np.int32),
                  launch.astype(np.int32), start, end, core.astype(np.int16),
                  dump=_retire_order(launch, end))  # fmt: skip


def _retire_order(launch: I64, end: I64) -> I64:
    """Ports write a record when the command ends: by end, within each launch."""
    return np.lexsort((end, np.arange(len(end)) * 0, _launch_rank(launch)))


def _launch_rank(launch: I64) -> I64:
    return np.concatenate([[0], np.cumsum(np.diff(launch) != 0)])


def _joined(parts: list[tuple[I64, I64, I64, I64]]) -> tuple[I64, I64, I64, I64]:
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return empty, empty, empty, empty
    row, launch, start, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    return row, launch, start, end
