"""Recognises the profiler's own records: the opening pair, the releases of CDMA ports, the closing pair, stray markers.

None of them is an instruction. All cores share the instant at which the opening wait ends.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tpuprof_tui.model.uniques import uniques

from ...chips.chip import Chip, family_of
from ..arrays import I64, Bools
from ..commands.command_table import Commands, Mode, NodeStream, bits_of
from ..core_data import CoreData, EngineData
from ..pairing import clean_binding
from ..problems import Problems
from .monitor import MOST_MARKERS, OPENING_SPREAD_NS, RecordStream, markers_at, opens

#: Opening waits of a core's engines end, and its closing pairs start, within this of one another.
_RELEASE_SPREAD_NS = 2_000


def separate_profiler_records(result: CoreData, chip: Chip) -> None:
    """Separate instructions from the profiler's own records on every engine, and note when the opening waits ended."""
    if not chip.preamble:
        return
    # most releases of CDMA ports after SDMA's opening pair; nodes, if any, give the exact number
    releases = max(chip.cdma_ports, 1)
    if result.nodes is not None and len(result.nodes.engines["SDMA"]):
        releases = len(profiler_commands("SDMA", result.nodes, chip).port_sends)
    for name, engine in result.engines.items():
        if _has_own_commands(result, engine):
            assert result.nodes is not None
            _separate_by_commands(result, profiler_commands(name, result.nodes, chip), engine, chip)
        else:
            _separate_by_records(engine, chip, releases)
    for engine in result.engines.values():
        _separate_by_other_engines(result, engine, chip, releases)
    _separate_closing_by_other_engines(result, chip)


def _has_own_commands(result: CoreData, engine: EngineData) -> bool:
    """Whether the commands of an engine include the profiler's own, and its records are bound to them."""
    return result.nodes is not None and engine.commands is not None and (result.has_des_streams or not result.bmodel)


def _separate_by_commands(result: CoreData, profiler: ProfilerCommands, engine: EngineData, chip: Chip) -> None:
    stream = engine.stream
    edge = 64  # the profiler's own records are at the ends of the stream
    count = len(stream)
    rows = uniques(np.concatenate([np.arange(min(count, edge)), np.arange(max(0, count - edge), count)]))
    dropped: set[int] = set()
    first_row = 0  # first row after the opening pair and the releases of ports
    for row, command in zip(rows.tolist(), engine.bound[rows].tolist(), strict=True):
        end = int(stream.end[row])
        if command in profiler.opening:
            engine.sync_end = end if command == profiler.opening[-1] else engine.sync_end
        elif command in profiler.port_sends:
            engine.port_sync_ends[command - profiler.port_sends[0]] = end
        elif command in profiler.closing:
            engine.closing_end = max(end, engine.closing_end or end)
        else:
            continue
        dropped.add(row)
        first_row = row + 1 if command not in profiler.closing else first_row
    loose = engine.bound < 0
    if engine.copies is not None:
        loose[engine.copies.rows] = False
    if loose.any():
        dropped |= _loose_edges(result, engine, loose, chip, first_row=first_row, closed=bool(profiler.closing))
    if engine.copies is not None:
        dropped.update(engine.copies.rows.tolist())
    engine.keep = _rows_without(dropped, count)


def _rows_without(dropped: set[int], count: int) -> slice | Bools:
    """All rows except some: a slice (views, no copies) where only the ends are dropped."""
    low, high = 0, count
    while low in dropped:
        low += 1
    while high - 1 in dropped and high > low:
        high -= 1
    if len(dropped) == low + count - high:
        return slice(low, high)
    keep = np.ones(count, np.bool_)
    keep[list(dropped)] = False
    return keep


def _loose_edges(
    result: CoreData, engine: EngineData, loose: Bools, chip: Chip, *, first_row: int, closed: bool
) -> set[int]:
    """Rows to drop: system records without a command before the first and after the last record that has one.

    Some firmware writes the profiler's enable and pause markers, or its closing pair, without nodes. Markers right
    after the opening pair (from row ``first_row`` on) are dropped as well, if no kernel could continue or begin with
    their ids.
    """
    bound = np.flatnonzero(engine.bound >= 0)
    if not len(bound):
        return set()
    stream = engine.stream
    system = stream.system_mask(chip)
    others = np.flatnonzero(~system[: bound[0]])
    first = int(bound[0]) if stream.lapped else int(others.max(initial=-1)) + 1
    dropped = set(range(first, int(bound[0])))
    markers = markers_at(stream, chip, first_row) if first_row else 0
    if markers and loose[first_row : first_row + markers].all():
        dropped.update(range(first_row, first_row + markers))
    last = int(bound[-1])
    tail = [row for row in range(len(stream) - 1, last, -1) if loose[row]] if last >= len(stream) - 64 else []
    unmarked = not stream.marked and bool(loose[-2:].all())
    if not closed and _closing_pair(stream, np.ones(2, np.bool_) if unmarked else system):
        dropped.update((len(stream) - 1, len(stream) - 2))
        engine.closing_end = int(stream.end[-1])
        tail = tail[2:]
    if len(tail) <= MOST_MARKERS and all(system[row] for row in tail):
        dropped.update(tail)
    if dropped:
        what = f"Markers of the profiler without commands at the edges of {stream.engine}."
        result.report.note(what, "They are not shown.", count=len(dropped))
    return dropped


def _closing_pair(stream: RecordStream, system: Bools) -> bool:
    """Whether the last two records look like the profiler's closing pair: system, ids 0 and 1 after a reset."""
    restart = len(stream) == 2 or bool(stream.id[-2] <= stream.id[-3])
    return len(stream) >= 2 and stream.id[-2:].tolist() == [0, 1] and restart and bool(system[-2:].all())


class ProfilerCommands(Struct, frozen=True):
    """Indices of the profiler's own commands in an engine's list."""

    opening: tuple[int, ...]
    port_sends: tuple[int, ...]
    closing: tuple[int, ...]


def without_profiler_commands(name: str, result: CoreData, chip: Chip) -> Commands:
    """Commands of an engine's nodes, without the profiler's own."""
    assert result.nodes is not None
    commands = result.nodes.engines[name]
    if not chip.preamble:
        return commands
    profiler = profiler_commands(name, result.nodes, chip)
    kept = np.ones(len(commands), np.bool_)
    kept[[*profiler.opening, *profiler.port_sends, *profiler.closing]] = False
    return commands.take(np.flatnonzero(kept))


def profiler_commands(name: str, nodes: NodeStream, chip: Chip) -> ProfilerCommands:
    """Indices of the opening pair (on SDMA also of the releases of CDMA ports after it) and of the closing pair.

    The opening pair is the first two commands, the closing pair the last two, after an id reset; all are system
    commands outside every kernel function. SDMA has a closing pair only if TIU and GDMA close and all their other
    commands come before it.
    """
    commands = nodes.engines[name]
    count = len(commands)
    head = commands.take(slice(0, min(count, 2 + max(chip.cdma_ports, 2))))
    first_section = np.append(True, head.id[1:] > head.id[:-1])[: len(head)]
    leading = int(np.argmin(np.append(outside_kernels(name, head, chip) & first_section, False)))
    opening = tuple(range(2)) if leading >= 2 else ()
    sends: tuple[int, ...] = ()
    if name == "SDMA" and opening:
        released = [chip.engine_codes.get(code) == "VSDMA" for code in bits_of(head.word[2:leading], 7, 7).tolist()]
        sends = tuple(range(2, 2 + [*released, False].index(False)))
    tail = commands.take(slice(max(count - 2, 0), count))
    closes = count >= 4 and outside_kernels(name, tail, chip).all() and tail.id.tolist() == [0, 1]
    closes = closes and (name != "SDMA" or _is_last(tail, chip, nodes))
    return ProfilerCommands(opening, sends, (count - 2, count - 1) if closes else ())


def outside_kernels(name: str, commands: Commands, chip: Chip) -> Bools:
    """Mask of the system commands outside every kernel function."""
    system = commands.type_code == chip.system_types[family_of(name)]
    result: Bools = system & (commands.scope < 0) & (commands.mode == Mode.TDI)
    return result


def _is_last(pair: Commands, chip: Chip, nodes: NodeStream) -> bool:
    """Whether TIU and GDMA have closing pairs, and all their other commands come before a pair of SDMA."""
    for name in ("TIU", "GDMA"):
        closing = profiler_commands(name, nodes, chip).closing
        if not closing or nodes.engines[name].node_index[closing[0] - 1] > pair.node_index[0]:
            return False
    return True


def _separate_by_records(engine: EngineData, chip: Chip, releases: int) -> None:
    """Like `_separate_by_commands` from records alone, for PMU-only captures and bmodels."""
    stream = engine.stream
    high = len(stream)
    low = _take_opening(engine, chip, releases) if not stream.lapped and opens(stream, chip) else 0
    system = stream.system_mask(chip, slice(max(high - 2, 0), high))
    if stream.engine != "SDMA" and high - low >= 2 and _closing_pair(stream, system):
        high -= 2
        engine.closing_end = int(stream.end[-1])
    engine.keep = slice(low, high)


def _take_opening(engine: EngineData, chip: Chip, releases: int) -> int:
    """Number of leading records that are the opening pair, on SDMA the releases of ports after it, and markers."""
    stream = engine.stream
    engine.sync_end = int(stream.end[1])
    count = 2
    if stream.engine == "SDMA":
        system = stream.system_mask(chip, slice(2, 2 + releases)).tolist()
        while count - 2 < len(system) and system[count - 2] and stream.id[count] == count:
            engine.port_sync_ends[count - 2] = int(stream.end[count])
            count += 1
    return count + markers_at(stream, chip, count)


def _separate_by_other_engines(result: CoreData, engine: EngineData, chip: Chip, releases: int) -> None:
    """Find an opening pair by those of the core's other engines, where the first kernel lost its first records.

    Its ids then continue those of the pair without a reset, so `begins_with_preamble` does not recognise it.
    """
    stream = engine.stream
    if engine.sync_end is not None or engine.commands is not None or stream.lapped or len(stream) < 2:
        return
    others = [
        (int(other.stream.start[0]), other.sync_end) for other in result.engines.values() if other.sync_end is not None
    ]
    beside = any(abs(int(stream.start[0]) - start) < OPENING_SPREAD_NS for start, _ in others)
    if not beside or stream.id[:2].tolist() != [0, 1]:
        return
    system = bool(stream.system_mask(chip, slice(0, 2)).all())
    if not system and stream.engine == "TIU":  # on hardware its pair has no mark
        system = any(abs(int(stream.end[1]) - end) < _RELEASE_SPREAD_NS for _, end in others)
        stream.marked = stream.marked and not system
    if system:
        low = _take_opening(engine, chip, releases)
        assert isinstance(engine.keep, slice)
        engine.keep = slice(low, max(low, engine.keep.stop))


def _separate_closing_by_other_engines(result: CoreData, chip: Chip) -> None:
    """Find the closing pairs that only those of other engines show: TIU's without a mark, and SDMA's.

    TIU's is next to GDMA's; SDMA has one only where both of them close, and it does not begin before theirs.
    """
    gdma = result.engines.get("GDMA")
    if gdma is None or gdma.closing_end is None or _has_own_commands(result, gdma):
        return
    start = int(gdma.stream.start[-2])
    for name in ("TIU", "SDMA"):
        engine = result.engines.get(name)
        if engine is None or engine.closing_end is not None or _has_own_commands(result, engine):
            continue
        assert isinstance(engine.keep, slice)
        stream, (low, high, _) = engine.stream, engine.keep.indices(len(engine.stream))
        system = np.ones(2, np.bool_) if name == "TIU" else stream.system_mask(chip, slice(max(high - 2, 0), high))
        if high < len(stream) or high - low < 2 or not _closing_pair(stream, system):
            continue
        distance = int(stream.start[-2]) - start
        earliest = -_RELEASE_SPREAD_NS if name == "TIU" else 0
        closes = "TIU" in result.engines and result.engines["TIU"].closing_end is not None
        if earliest <= distance < OPENING_SPREAD_NS and (name == "TIU" or closes):
            engine.keep = slice(low, high - 2)
            engine.closing_end = int(stream.end[-1])
            stream.marked = stream.marked and name != "TIU"


# Stray records and clock alignment of chips whose firmware opens no stream with commands of its own.
#
# CV84X6 leaves a stray TIU record at each end; its cores share the instant at which one of the first records ends.
# BM1688 has no such record: its cores are aligned on the last wait of a kernel function that all of them ran. The
# reference takes the last record of all, which belongs to different kernels where cores ran different numbers of them.


def trim_edges(core: CoreData, chip: Chip) -> None:
    """Leave out stray TIU records, before records are bound to commands."""
    engine = core.engines.get("TIU")
    if not chip.tiu_edge_trim or engine is None:
        return
    count = len(engine.stream)
    most = chip.tiu_edge_trim
    if core.bmodel:
        head, tail = min(most, count), min(most, max(count - most, 0))
    elif engine.commands is not None:
        head, tail = _strays(engine.stream.id, engine.commands.id, most)
    else:
        head, tail = _strays_by_reset(engine.stream.id, most, alone=len(core.engines) == 1)
    engine.keep = slice(head, count - tail)
    if head or tail:
        what = "Stray TIU records at the edges of the stream."
        core.report.note(what, "They are not shown.", lane="TIU", count=head + tail)


def _strays(records: I64, commands: I64, most: int) -> tuple[int, int]:
    """Number of stray records at the head and at the tail: without them, ids match the commands'."""
    sizes = [(head, tail) for head in range(most, -1, -1) for tail in range(most, -1, -1)]
    for head, tail in sizes:
        if head + tail < len(records) and clean_binding(records[head : len(records) - tail], commands) is not None:
            return head, tail
    # with records lost, no exact match: a stray has an id of its own, or is isolated where no command is
    head = int(len(records) > 1 and (records[0] not in commands or records[1] <= records[0] != 0))
    rest = records[head:]
    if len(rest) < 2:
        return head, 0
    surplus = np.count_nonzero(rest == rest[-1]) > np.count_nonzero(commands == rest[-1])
    last_alone = len(commands) > 1 and commands[-1] <= commands[-2]
    return head, int(bool(surplus or (rest[-1] <= rest[-2] and not last_alone)))


def _strays_by_reset(records: I64, most: int, *, alone: bool) -> tuple[int, int]:
    """Like `_strays` by record ids alone: counting begins at 0, and a last record that restarts it is stray.

    If the core ran no other engine and never counts from 0, it did not run: all its records are stray.
    """
    begins = np.flatnonzero(records[: most + 1] == 0)
    if not len(begins):
        return (len(records), 0) if alone and not (records == 0).any() else (0, 0)
    head = int(begins[0])
    tail = int(len(records) - head >= 2 and records[-1] <= records[-2])
    return head, tail


def set_sync_end(core: CoreData, chip: Chip) -> None:
    """Set ``sync_end`` to the end of the TIU record that ends at one instant on all cores, if the chip has one."""
    engine = core.engines.get("TIU")
    if chip.preamble or engine is None or not len(engine.stream):
        return
    rule = chip.sync_record
    ends = engine.stream.end
    if core.bmodel:
        ends = ends[engine.keep] if rule.bmodel_after_trim else ends
        engine.sync_end = int(ends[rule.bmodel]) if len(ends) > rule.bmodel else None
    elif rule.operator >= 0:
        engine.sync_end = int(ends[min(rule.operator, len(ends) - 1)])


def sync_on_last_wait(cores: list[CoreData], chip: Chip, report: Problems) -> None:
    """Set ``sync_end`` on chips without such a record: the last wait of the last kernel function that all cores ran.

    Without commands the last record is used if all cores have the same number; otherwise they keep their own clocks.
    """
    running = [core for core in cores if "TIU" in core.engines and len(core.engines["TIU"].stream)]
    if chip.preamble or chip.sync_record.operator >= 0 or not running or running[0].bmodel:
        return
    engines = [core.engines["TIU"] for core in running]
    waits = [_last_waits(core, chip) for core in running]
    shared = set(waits[0]).intersection(*waits[1:]) if all(waits) else set()
    same = [launch for launch in shared if len({core_waits[launch][0] for core_waits in waits}) == 1]
    if same:
        for engine, core_waits in zip(engines, waits, strict=True):
            engine.sync_end = core_waits[max(same)][1]
    elif len({len(engine.stream) for engine in engines}) == 1:
        for engine in engines:
            engine.sync_end = int(engine.stream.end[-1])
    elif len(running) > 1:
        report.warning("The cores have no wait in common and different numbers of records.",
                       "Each keeps its own clock; times of different cores do not compare.")  # fmt: skip


def _last_waits(core: CoreData, chip: Chip) -> dict[int, tuple[str, int]]:
    """Kernel function and end (ns) of the last TIU wait of each launch of a core, by launch number on the core."""
    engine = core.engines["TIU"]
    if core.nodes is None or engine.commands is None or len(engine.bound) != len(engine.stream):
        return {}
    commands, names = engine.commands, core.nodes.scope_names
    waits = np.isin(commands.function_code, list(chip.wait_functions["tiu"])) & (commands.word != 0)
    waits &= (commands.type_code == chip.system_types["tiu"]) & (commands.mode != Mode.RVT)
    rows = np.flatnonzero((engine.bound >= 0) & waits[engine.bound])
    scopes = commands.scope[engine.bound[rows]]
    rows, scopes = rows[scopes >= 0], scopes[scopes >= 0]
    return {
        scope: (names[scope], end)
        for scope, end in zip(scopes.tolist(), engine.stream.end[rows].tolist(), strict=True)
        if scope < len(names)
    }
