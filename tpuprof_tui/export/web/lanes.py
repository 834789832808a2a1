"""Data of lanes and launches for the web page: kinds of columns, compressed; exact sums over all events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.analysis.index.lane_index import LaneIndex, build_index, cells
from tpuprof_tui.analysis.index.ordering import unit_or_port
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.time_scale import edges_of
from tpuprof_tui.analysis.totals.figures import LaneFigures
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.web_codec import LARGEST, Chunk, Ints, or_minus_one, scaled
from tpuprof_tui.model import Activity, Lane, Profile, Vocabulary, is_missing
from tpuprof_tui.model.lane import Rows, row_count, row_part, row_parts
from tpuprof_tui.model.uniques import distinct_together

from ..selection import ordered_lanes, rows_of

# Numbers the distinct combinations (kinds) of text columns of events.
#
# An event in the page holds one number for its operation, type, role, kernel function, direction, data type and mode,
# so that colours, filters and searches are evaluated once per kind instead of once per event.

Codes = npt.NDArray[np.int64]

#: Columns that form a kind: text columns and the role.
TEXT_KEYS: Final = ("name", "type", "kernel", "direction", "dtype", "mode")
KEYS: Final = (*TEXT_KEYS, "role")


class Kinds:
    """Numbers kinds in order of first use."""

    def __init__(self, profile: Profile) -> None:
        self._strings = {key: profile.strings[key] for key in TEXT_KEYS if key in profile.strings}
        self._numbers: dict[tuple[int, ...], int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def codes(self, lane: Lane, rows: Rows, count: int) -> Codes:
        """Kind number of each of ``count`` rows, int64; adds new kinds."""
        columns = [(index, self._values(lane, key, rows)) for index, key in enumerate(KEYS) if key in lane]
        combined, size = distinct_together(np.zeros(count, np.int64), *(values for _, values in columns))
        first = np.zeros(size, np.int64)
        first[combined] = np.arange(count)
        numbers = np.zeros(size, np.int64)
        for code, row in enumerate(first.tolist() if count else []):
            kind = [-1] * len(KEYS)
            for index, values in columns:
                kind[index] = int(values[row])
            numbers[code] = self._numbers.setdefault(tuple(kind), len(self._numbers))
        return np.asarray(numbers[combined], dtype=np.int64)

    def add_kernel(self, code: int) -> int:
        """Number of the kind that consists of a kernel function (code) only; for launches."""
        kind = [-1] * len(KEYS)
        kind[KEYS.index("kernel")] = code
        return self._numbers.setdefault(tuple(kind), len(self._numbers))

    def tables(self) -> dict[str, Any]:
        """Data for the page: the texts by column key, and the text code of each kind by column key."""
        texts = {key: [line_text(text) for text in strings] for key, strings in self._strings.items()}
        columns = zip(*self._numbers, strict=True) if self._numbers else [()] * len(KEYS)
        return {
            "strings": {key: texts.get(key, []) for key in TEXT_KEYS},
            "kinds": {key: list(codes) for key, codes in zip(KEYS, columns, strict=True)},
        }

    def _values(self, lane: Lane, key: str, rows: Rows) -> Codes:
        values = np.maximum(lane.take(key, rows).astype(np.int64), -1)
        # codes beyond the table are missing
        return values if key == "role" else np.where(values < len(self._strings.get(key, ())), values, -1)


#: Number of rows that are processed at a time.
SLICE: Final = 1 << 18
#: Maximum number of drawn rows of a lane with overlapping events; further sub-lanes share the last row.
SUBROWS: Final = 8
#: Number of cells of the overview, and the finer one used if not all events are written.
CELLS: Final = 1024
FINE_CELLS: Final = 8192
#: Factors that convert floats to integers: hundredths of a percent, ten-thousandths of a GB/s.
SCALES: Final = {"percent": 100, "float": 10_000}
#: Columns besides the vocabulary's ``page_columns`` for details and table; True: nearly ascending, so delta-encoded.
DETAIL_COLUMNS: Final = (("order", True), ("command_id", True), ("scope", True), ("batch", True), ("bytes", False),
               ("cycles", False), ("core", False))  # fmt: skip


class ChosenLane(Struct, frozen=True, eq=False):
    """A lane with its selected rows."""

    number: int  #: The lane's number
    lane: Lane
    rows: Rows  #: Selected rows, ascending
    count: int  #: Number of selected rows

    def before(self, time: int) -> int:
        """Number of selected rows that start before a time, ns."""
        row = int(np.searchsorted(self.lane["start"], time, side="left"))
        if isinstance(self.rows, slice):
            return int(min(max(row - self.rows.start, 0), self.count))
        return int(np.searchsorted(self.rows, row))

    def parts(self, count: int) -> Iterator[tuple[Rows, int]]:
        """Splits the first ``count`` selected rows into parts of at most ``SLICE``, each with its number of rows."""
        return row_parts(row_part(self.rows, 0, count), SLICE)

    def index(self) -> LaneIndex:
        """Builds the index of the selected rows."""
        if self.count == len(self.lane):
            return build_index(self.lane)
        needed = ("start", "end", "role", "bytes")
        return build_index(self.lane.select_rows(self.rows, eager=needed, only=needed))


def chosen_lanes(query: Query) -> list[ChosenLane]:
    """Lanes with selected rows, by core, engine, port."""
    chosen = ((number, lane, rows_of(query, number)) for number, lane in ordered_lanes(query.profile))
    return [ChosenLane(number, lane, rows, count) for number, lane, rows in chosen if (count := row_count(rows))]


def cut_time(lanes: list[ChosenLane], limit: int) -> int | None:
    """Latest time, ns, before which at most ``limit`` rows of all lanes start; None if all rows fit into the limit."""
    if sum(each.count for each in lanes) <= limit:
        return None
    low = min(int(each.lane["start"][0]) for each in lanes)
    high = max(int(each.lane["start"][-1]) for each in lanes) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if sum(each.before(middle) for each in lanes) <= limit:
            low = middle
        else:
            high = middle
    return low


def lane_record(
    profile: Profile,
    chosen: ChosenLane,
    kinds: Kinds,
    shown: int,
    window: tuple[int, int],
    figures: LaneFigures,
    write: Callable[[Chunk], int],
    exact_bandwidth: bool,
) -> dict[str, Any]:
    """Record of a lane for the page; writes its columns as two chunks and its overview as a third.

    Args:
        profile: The profile.
        chosen: The lane with its selected rows.
        kinds: Collects the kinds that occur.
        shown: Number of rows to write, from the first.
        window: Half-open time range of the overview, ns.
        figures: Figures of the lane in the selection.
        write: Writes a chunk and returns its number.
        exact_bandwidth: Whether the overview needs bytes per cell, because not all rows are written.
    """
    lane, vocabulary = chosen.lane, profile.vocabulary
    codes, totals = _kinds_and_totals(chosen, kinds, shown)
    order, subrows = drawing_order(chosen, shown)
    drawn, details = Chunk(shown), Chunk(shown)
    starts, ends = _column(chosen, "start", shown), _column(chosen, "end", shown)
    drawn.add("start", [starts[order]], ascending=True)
    drawn.add("duration", [np.maximum(ends - starts, 0)[order]])
    drawn.add("kind", [codes[order]])
    for chunk, keys in ((drawn, [(key, False) for key in vocabulary.page_columns]), (details, DETAIL_COLUMNS)):
        for key, ascending in keys:
            values = _known_column(profile, chosen, key, shown)
            if values is not None:
                chunk.add(key, [values[order]], ascending=ascending)
    kind = vocabulary.lane_kind(lane.kind)
    activity = lane.activity if lane.activity is not None or kind is None else kind.activity
    return {
        "title": line_text(profile.title_of(lane)),
        "label": line_text(lane.label),
        "group": line_text(profile.groups.title(lane.group)),
        "engine": line_text(lane.kind),
        "core": unit_or_port(profile, lane, "core"),
        "port": unit_or_port(profile, lane, "port"),
        # boxes of transfer lanes show bandwidth
        "transfers": activity is Activity.TRANSFER,
        "ofHost": lane.on_host,
        "count": chosen.count,
        "shown": shown,
        "subrows": subrows,
        "chunks": [write(drawn), write(details)],
        "guessed": lane.role_guessed,
        "busy": figures.busy,
        "wait": figures.wait,
        "sync": figures.sync,
        "idle": figures.idle,
        "bytes": figures.bytes,
        "totals": totals,
        "cells": write(_overview_cells(chosen, vocabulary, chosen.index(), window, exact_bandwidth)),
    }


def _column(chosen: ChosenLane, key: str, count: int) -> Ints:
    return np.asarray(chosen.lane.take(key, row_part(chosen.rows, 0, count)), dtype=np.int64)


def _known_column(profile: Profile, chosen: ChosenLane, key: str, count: int) -> Ints | None:
    """The first ``count`` values of a column as integers, -1: missing; None if all are missing or redundant."""
    lane = chosen.lane
    if key not in lane or (key == "core" and profile.unit_of(lane) >= 0):
        return None
    column = profile.vocabulary.schema.get(key)
    if column is not None and not column.applies_to(lane.kind):
        return None
    values = lane.take(key, row_part(chosen.rows, 0, count))
    scale = SCALES.get(column.kind) if column is not None else None
    numbers = scaled(values, scale) if scale is not None else or_minus_one(np.where(is_missing(values), -1, values))
    return None if bool((numbers < 0).all()) else numbers


def _kinds_and_totals(chosen: ChosenLane, kinds: Kinds, shown: int) -> tuple[Ints, list[list[int]]]:
    """Kinds of the first ``shown`` rows; and [kind, count, total ns] of each kind over all selected rows."""
    codes: list[Ints] = []
    counts, times = np.zeros(0, np.int64), np.zeros(0)
    left = shown
    for rows, count in chosen.parts(chosen.count):
        found = kinds.codes(chosen.lane, rows, count)
        durations = chosen.lane.take("end", rows) - chosen.lane.take("start", rows)
        counts = _summed(counts, np.bincount(found, minlength=len(kinds)))
        times = _summed(times, np.bincount(found, weights=durations, minlength=len(kinds)))
        codes.append(found[:left])
        left -= len(codes[-1])
    occurring = np.flatnonzero(counts)
    totals = [[int(kind), int(counts[kind]), int(times[kind])] for kind in occurring]
    return np.concatenate([np.zeros(0, np.int64), *codes]), totals


def _summed(total: npt.NDArray[Any], part: npt.NDArray[Any]) -> npt.NDArray[Any]:
    part[: len(total)] += total.astype(part.dtype)
    return part


def drawing_order(chosen: ChosenLane, shown: int) -> tuple[slice | Ints, list[int]]:
    """Order in which events are written (by drawn row, then start), and the number of events of each drawn row."""
    if chosen.lane.sublanes <= 1:
        return slice(None), [shown]
    rows = np.minimum(_column(chosen, "sublane", shown), SUBROWS - 1)
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=1)
    return order, counts.tolist()


def _overview_cells(
    chosen: ChosenLane, vocabulary: Vocabulary, index: LaneIndex, window: tuple[int, int], bandwidth: bool
) -> Chunk:
    """Chunk with the overview: per cell, ns of work, ns of wait and sync, number of events, and optionally bytes."""
    wanted = FINE_CELLS if bandwidth else CELLS
    chunk = Chunk(wanted)
    edges = edges_of(*window, wanted)
    found = cells(index, edges)
    chunk.add("busy", [found.busy])
    chunk.add("still", [found.wait + found.sync])
    chunk.add("count", [found.count])
    moved = vocabulary.share("bandwidth") if bandwidth else None
    for key, peak in moved.columns if moved is not None else ():
        if key in chosen.lane:
            chunk.add(peak.lower(), [bytes_in_cells(chosen, key, edges)])
    return chunk


def bytes_in_cells(chosen: ChosenLane, key: str, edges: Ints) -> Ints:
    """Bytes moved in each cell: bandwidth (column ``key``, GB/s = bytes/ns) times time in the cell, over all events."""
    moved = np.zeros(len(edges))
    base = int(edges[0])
    for rows, _ in chosen.parts(chosen.count):
        rates = chosen.lane.take(key, rows)
        rates = np.where(np.isfinite(rates), rates, 0.0)
        for key_of_time, sign in (("start", 1.0), ("end", -1.0)):
            times = (chosen.lane.take(key_of_time, rows) - base).astype(np.float64)
            order = np.argsort(times, kind="stable")
            rate = np.concatenate([[0.0], np.cumsum(rates[order])])
            lost = np.concatenate([[0.0], np.cumsum(rates[order] * times[order])])
            passed = np.searchsorted(times[order], (edges - base).astype(np.float64), side="right")
            moved += sign * (rate[passed] * (edges - base) - lost[passed])
    return np.rint(np.maximum(np.diff(moved), 0.0)).astype(np.int64)


def launch_records(
    profile: Profile, lanes: list[ChosenLane], kinds: Kinds, write: Callable[[Chunk], int], until: int | None
) -> list[dict[str, Any]]:
    """Records of the cores that have launches; their columns (start, duration, kind, scope) are written as chunks.

    Args:
        profile: The profile.
        lanes: Lanes with their selected rows.
        kinds: Gets one kind per kernel function.
        write: Writes a chunk and returns its number.
        until: Launches that start at or after this time, ns, are left out; None: none.
    """
    scopes = profile.scopes
    if not len(scopes):
        return []
    by_kernel = np.array([kinds.add_kernel(code) for code in range(len(profile.strings["kernel"]))] + [-1], np.int64)
    kernel = np.where((scopes.kernel >= 0) & (scopes.kernel < len(by_kernel) - 1), scopes.kernel, -1)
    records = []
    for unit in profile.units:
        parts = [each for each in lanes if profile.unit_of(each.lane) == unit and "scope" in each.lane]
        start, end = _bounds(parts, len(scopes))
        found = np.flatnonzero((end > start) & (kernel >= 0) & (start < (LARGEST if until is None else until)))
        if not len(found):
            continue
        found = found[np.argsort(start[found], kind="stable")]
        chunk = Chunk(len(found))
        chunk.add("start", [start[found]], ascending=True)
        chunk.add("duration", [end[found] - start[found]])
        chunk.add("kind", [by_kernel[kernel[found]]])
        chunk.add("scope", [found], ascending=True)
        records.append({"core": profile.groups.number(unit), "count": len(found), "chunk": write(chunk)})
    return records


def _bounds(parts: list[ChosenLane], count: int) -> tuple[Ints, Ints]:
    """First start and last end of each launch, ns, over the given lanes; the end is before the start without events."""
    start, end = np.full(count, LARGEST, np.int64), np.full(count, -LARGEST, np.int64)
    for chosen in parts:
        for rows, _ in chosen.parts(chosen.count):
            scope = chosen.lane.take("scope", rows)
            or_minus_one = np.flatnonzero((scope >= 0) & (scope < count))
            np.minimum.at(start, scope[or_minus_one], chosen.lane.take("start", rows)[or_minus_one])
            np.maximum.at(end, scope[or_minus_one], chosen.lane.take("end", rows)[or_minus_one])
    return start, end
