"""Stray records and clock alignment of chips whose firmware opens no stream with commands of its own.

CV84X6 leaves a stray TIU record at each end; its cores share the instant at which one of the first records ends. BM1688
has no such record: its cores are aligned on the last wait of a kernel function that all of them ran. The reference
takes the last record of all, which belongs to different kernels where cores ran different numbers of them.
"""

from __future__ import annotations

import numpy as np

from tpuprof_tui.sources.sophgo.chips.chip import Chip

from ..arrays import I64
from ..commands.command_table import Mode
from ..core_data import CoreData
from ..pairing.pairing import clean_binding
from ..problems import Report


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
        core.report.note(
            "Stray TIU records at the edges of the stream.", "They are not shown.", lane="TIU", count=head + tail
        )


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


def sync_on_last_wait(cores: list[CoreData], chip: Chip, report: Report) -> None:
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
