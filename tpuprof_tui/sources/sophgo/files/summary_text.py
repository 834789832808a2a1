"""Content of summary.txt: exactly the reference's table, then what its description promises and the table lacks.

The figures below the table are this package's own: *effective* is the union of work on an engine, *wait* its system
waits, *sync* its other system commands, *idle* the rest of the total time. ``~`` marks guessed values, ``-`` unknown
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.totals.figures import LaneFigures, UnitFigures, lane_figures
from tpuprof_tui.export.job import Job
from tpuprof_tui.export.selection import ordered_lanes, selected_profile, timed_part
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.formats.units import GUESS
from tpuprof_tui.model import Lane, Profile, Role, is_missing
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.vocabulary import DETAIL

from ..groups import RX_NAMES, TX_NAMES
from ..read.arrays import map_texts
from .summary_table import COLUMNS, ENGINES, SummaryRow, percent, rate_remark, summary_rows

#: Characters of a line in the console form of the reference's table: eight columns.
CONSOLE_WIDTH: Final = 130
NO_CORES: Final = "No core data available for summary."
NO_EVENTS: Final = "No timing data available for summary."
_GAP: Final = " | "
_UNKNOWN: Final = "-"

_ENGINE_HEADER: Final = (
    ("CoreId", 7), ("Engine", 10), ("Instructions", 12), ("Effective(us)", 14), ("Wait(us)", 14), ("Sync(us)", 14),
    ("Idle(us)", 14), ("Utilisation", 11),
)  # fmt: skip
_MOVE_HEADER: Final = (
    ("CoreId", 7), ("Engine", 10), ("DdrRead(B)", 16), ("DdrWrite(B)", 16), ("DdrTotal(B)", 16), ("ReadBW(GB/s)", 12),
    ("WriteBW(GB/s)", 13), ("TotalBW(GB/s)", 13), ("L2Total(B)", 16), ("L2BW(GB/s)", 10),
)  # fmt: skip
_SHARE_HEADER: Final = (
    ("CoreId", 7), ("Compute(us)", 14), ("Transfer(us)", 14), ("Overlap(us)", 14), ("Exposed(us)", 14),
    ("Idle(us)", 14), ("Compute", 9), ("Transfer", 9), ("Overlap", 9), ("Exposed", 9), ("Idle", 9),
)  # fmt: skip
Header = tuple[tuple[str, int], ...]


def write_summary(job: Job, paths: Sequence[Path], progress: Callable[[float], None]) -> list[Path]:
    """Writes the published summary; no file without instructions."""
    data = summary_text(timed_part(job.query)).encode("ascii")
    if data:
        with whole_file(paths[0]) as stream:
            stream.write(data)
    progress(1.0)
    return list(paths) if data else []


def console_summary(query: Query) -> tuple[str, Callable[[], str]]:
    """Why there is no summary (empty if there is one), and a function that returns its table for the terminal."""
    return summary_missing(query), partial(summary_console, query)


def summary_missing(query: Query) -> str:
    """The reason why there is no summary, in the reference's words; empty if there is one."""
    chosen = selected_profile(query).device_part
    if not chosen.units:
        return NO_CORES
    return "" if chosen.event_count else NO_EVENTS


def summary_console(query: Query) -> str:
    """The reference's table as it is printed on the console: the first eight columns; empty without a table."""
    text = _reference_block(summary_rows(query))
    return "".join(f"{line[:CONSOLE_WIDTH]}\n" for line in text.splitlines())


def summary_text(query: Query) -> str:
    """Content of summary.txt, ASCII; empty without cores or instructions."""
    table, chosen = summary_rows(query), selected_profile(query).device_part
    block = _reference_block(table)
    if not block:
        return ""
    parts = (block + _remarks(query.profile, chosen, table), _engines(query), _moves(chosen))
    return "\n".join([*filter(None, parts), _shares(query.unit_figures, query.span)])


def _reference_block(table: Sequence[SummaryRow]) -> str:
    """The reference's table; empty without one."""
    rows, header = [row.cells for row in table], tuple((column.header, column.width) for column in COLUMNS)
    return _table("Summary", header, rows[:-1], rows[-1:], ()) if rows else ""


def _remarks(profile: Profile, chosen: Profile, table: Sequence[SummaryRow]) -> str:
    lines = [] if profile.has(DETAIL) else [rate_remark(profile, table)]
    device = sum(len(lane) for lane in profile.lanes if lane.kind in ENGINES)
    if chosen.event_count != device:
        lines.append(f"Of {device} instructions {chosen.event_count} were chosen; all figures are of these only.")
    return "".join(f"{line}\n" for line in lines)


# -- engines ------------------------------------------------------------------


def _engines(query: Query) -> str:
    """Effective, wait, sync and idle time of every engine of every core, of every port, and of all together."""
    start, end = query.window
    window, cores = end - start, query.unit_figures
    nothing = LaneFigures(0, 0, 0, window, window, 0)
    engines = [engine for engine in ENGINES if engine in ("TIU", "GDMA") or any(engine in core.lanes for core in cores)]
    ports = [index for index in query.lane_indexes.values() if index.lane.kind == "CDMA" and len(index.lane)]
    rows = [(core.name, engine, core.lanes.get(engine, nothing)) for core in cores for engine in engines]
    rows += [(_UNKNOWN, f"port{index.lane.number}", lane_figures(index, start, end)) for index in ports]
    guessed = any(figures.guessed for _, _, figures in rows)
    # commands of a port may be of no known core, so CDMA of all cores is the sum of the ports
    found = {engine: [some for _, name, some in rows if name == engine] for engine in engines}
    if ports:
        found["CDMA"] = [figures for _, _, figures in rows[-len(ports) :]]
    elif "CDMA" in found:
        found["CDMA"] = []
    sums = ((engine, LaneFigures.sum_of(parts)) for engine, parts in found.items())
    last = [_engine_row("Overall", engine, replace(each, guessed=guessed)) for engine, each in sums]
    body = [_engine_row(*row) for row in rows]
    return _table("Engines", _ENGINE_HEADER, body, last, (
        "Effective: union of work. Wait: system waits. Sync: other system commands. Idle: none of them.",
        "Utilisation: effective over total time. CDMA of a core: what it submitted, over all ports.",
        *(("Overall of CDMA: the sum of the ports.",) if ports else ()),
        *(("~ No commands in the capture: work, wait and sync are distinguished by heuristics.",) if guessed else ()),
    ))  # fmt: skip


def _engine_row(core: str, engine: str, lane: LaneFigures) -> list[str]:
    times = [*map(_us, (lane.busy, lane.wait, lane.sync, lane.idle)), f"{percent(lane.busy, lane.window):.2f}%"]
    return [core, engine, str(lane.count), *((GUESS if lane.guessed else "") + time for time in times)]


# -- moves --------------------------------------------------------------------


def _moves(profile: Profile) -> str:
    """Table of bytes read and written, and their bandwidths; empty if nothing was moved."""
    body: list[list[str]] = []
    sums: dict[str, list[Moves]] = {}
    for _, lane in ordered_lanes(profile):
        if lane.kind == "TIU" or not len(lane):
            continue
        found, number = lane_moves(profile, lane), profile.unit_number(lane)
        core, engine = (str(number), lane.kind) if number >= 0 else (_UNKNOWN, f"port{lane.number}")
        body.append([core, engine, *_move_cells([found])])
        sums.setdefault(lane.kind, []).append(found)
    if not body:
        return ""
    everything = [found for parts in sums.values() for found in parts]
    last = [["Overall", engine, *_move_cells(parts)] for engine, parts in (*sums.items(), ("all", everything))]
    notes = [
        "Read: bytes from DDR. Write: bytes to DDR. A move within DDR counts as both, in the total once.",
        "Bandwidth: bytes over the time in which at least one such move ran.",
        "CDMA: sends read, receives write, other commands count in the total only.",
    ]
    if not any("read" in found for found in everything):
        notes.append("The capture does not know directions: all bytes count as DDR.")
    elif not profile.has(DETAIL):
        notes.append("Sizes are those the hardware counted; directions are those of condensed commands.")
    return _table("Read and write bandwidth", _MOVE_HEADER, body, last, notes)


def _move_cells(lanes: Sequence[Moves]) -> list[str]:
    """Sizes and bandwidths of the moves of some lanes together; unknown if those of one are."""
    sizes, speeds = [], []
    for kind in KINDS:
        known = [lane[kind] for lane in lanes if kind in lane]
        size = sum(each for each, _ in known)
        time = reduce(Intervals.union_with, (each for _, each in known), Intervals.empty()).total
        unknown = len(known) < len(lanes)
        sizes.append(_UNKNOWN if unknown else str(size))
        speeds.append(_UNKNOWN if unknown else f"{size / time if time else 0:.2f}")
    return [*sizes[:3], *speeds[:3], sizes[3], speeds[3]]


# -- shares -------------------------------------------------------------------


def _shares(cores: Sequence[UnitFigures], window: int) -> str:
    """Table of the time of each core, split into computing and moving data."""

    def row(core: str, times: Sequence[int], whole: int, guessed: bool) -> list[str]:
        mark = GUESS if guessed else ""
        return [core, *(mark + _us(time) for time in times), *(f"{mark}{percent(time, whole):.2f}%" for time in times)]

    times = [(core.compute, core.transfer, core.overlap, core.exposed, core.idle) for core in cores]
    rows = [row(core.name, each, window, core.guessed) for core, each in zip(cores, times, strict=True)]
    sums = [sum(each) for each in zip(*times, strict=True)]
    last = [row("Overall", sums, window * len(cores), any(core.guessed for core in cores))]
    return _table("Compute and transfer", _SHARE_HEADER, rows, last, (
        "Compute: TIU works. Transfer: GDMA, SDMA or submitted CDMA work. Overlap: both. Exposed: transfer alone.",
        "Idle: no instruction at all. Shares are of the total time.",
    ))  # fmt: skip


# -- layout -------------------------------------------------------------------


def _table(
    title: str, header: Header, body: Iterable[Sequence[str]], last: Iterable[Sequence[str]], notes: Iterable[str]
) -> str:
    """A table in the reference's layout, followed by notes."""
    top = _line([name for name, _ in header], header)
    double, single = "=" * len(top), "-" * len(top)
    lines = [double, title, double, top, single, *(_line(row, header) for row in body), single]
    lines += [*(_line(row, header) for row in last), double, *notes]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str], header: Header) -> str:
    return _GAP.join(cell.rjust(width) for cell, (_, width) in zip(cells, header, strict=True))


def _us(ns: int) -> str:
    return f"{ns / 1000:.3f}"


#: Kinds of moves: from DDR, to DDR, with DDR on any side, with L2 memory but not DDR.
KINDS: Final = ("read", "write", "ddr", "l2")


#: Of the moves of a lane, by kind, bytes and the intervals in which at least one of them ran; without those kinds of
#: which the capture does not show the moves.
Moves = dict[str, tuple[int, Intervals]]


def lane_moves(profile: Profile, lane: Lane) -> Moves:
    """Moves of a lane's work, by kind.

    Without directions (captures without commands) all bytes count as DDR, and how many of them were read is not known.
    """
    everything = slice(0, len(lane))
    sizes = lane["bytes"] if "bytes" in lane else np.zeros(len(lane), np.int64)
    moved = (lane["role"] == Role.WORK) & ~is_missing(sizes) & (sizes > 0)
    if lane.role_guessed or "direction" not in lane:
        masks = {"ddr": moved}
    elif lane.kind == "CDMA":
        functions = (("read", TX_NAMES), ("write", RX_NAMES))
        masks = {kind: map_texts(profile, lane, "name", everything, names.__contains__) for kind, names in functions}
        masks |= {"ddr": moved, "l2": ~moved}
    else:
        # a move without a direction is not counted
        tests = {"read": lambda text: "DDR" in text.partition("->")[0],
                 "write": lambda text: "DDR" in text.partition("->")[2],
                 "ddr": lambda text: "DDR" in text,
                 "l2": lambda text: "L2" in text and "DDR" not in text}  # fmt: skip
        masks = {kind: map_texts(profile, lane, "direction", everything, test) for kind, test in tests.items()}
    found = {}
    for kind, flags in masks.items():
        selected = moved & flags
        found[kind] = int(sizes[selected].sum()), Intervals.union(lane["start"][selected], lane["end"][selected])
    return found
