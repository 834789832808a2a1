"""Lanes and launches of a profile as the web page holds them: columns, and exact sums over all instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.analysis.index.axis import edges_of
from tpuprof_tui.analysis.index.lane_index import LaneIndex, build_index, cells
from tpuprof_tui.analysis.index.ordering import constant_value
from tpuprof_tui.analysis.totals.figures import lane_figures
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.web_codec import LARGEST, Chunk, Ints, known, scaled
from tpuprof_tui.model import Activity, Lane, Profile, Vocabulary, is_missing
from tpuprof_tui.model.lane import Rows, row_count, row_part, row_parts

from ..selection import Selection, ordered_lanes
from .kinds import Kinds

#: Rows that are looked at together.
SLICE: Final = 1 << 18
#: Rows of a lane whose events overlap; what overlaps deeper shares the last.
SUBROWS: Final = 8
#: Cells of the exact overview; finer where it has to stand in for instructions.
CELLS: Final = 1024
FINE_CELLS: Final = 8192
#: Scales of numbers that are no integers: hundredths of a percent, ten-thousandths of a GB/s.
SCALES: Final = {"percent": 100, "float": 10_000}
#: What beside the vocabulary's ``page_columns`` the details of an instruction and the table need; True: neighbours are
#: close.
TOLD: Final = (("order", True), ("command_id", True), ("scope", True), ("batch", True), ("bytes", False),
               ("cycles", False), ("core", False))  # fmt: skip


class ChosenLane(Struct, frozen=True, eq=False):
    """A lane with the rows that the page is about.

    Attributes:
        rows: Its chosen rows, ascending.
        count: How many those are.
    """

    lane: Lane
    rows: Rows
    count: int

    def before(self, time: int) -> int:
        """How many chosen rows start before a time."""
        row = int(np.searchsorted(self.lane["start"], time, side="left"))
        return min(row, self.count) if isinstance(self.rows, slice) else int(np.searchsorted(self.rows, row))

    def parts(self, count: int) -> Iterator[tuple[Rows, int]]:
        """The first ``count`` chosen rows, a slice at a time."""
        return row_parts(row_part(self.rows, 0, count), SLICE)

    def index(self) -> LaneIndex:
        """The index of the chosen rows."""
        if isinstance(self.rows, slice):
            return build_index(self.lane)
        needed = ("start", "end", "role", "bytes")
        return build_index(self.lane.taking(self.rows, eager=needed, only=needed))


def chosen_lanes(profile: Profile, selection: Selection) -> list[ChosenLane]:
    """The lanes that have chosen rows, by core, engine, port."""
    found = []
    for lane in ordered_lanes(profile):
        rows = selection.rows(profile, lane)
        count = row_count(rows)
        if count:
            found.append(ChosenLane(lane, rows, count))
    return found


def cut_time(lanes: list[ChosenLane], limit: int) -> int | None:
    """The latest time before which at most ``limit`` rows of all lanes start; None where all fit."""
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
    write: Callable[[Chunk], int],
    exact_bandwidth: bool,
) -> dict[str, Any]:
    """A lane as the page holds it; its columns are written as two chunks.

    Args:
        kinds: Gets the kinds that occur.
        shown: So many rows, the first, are written.
        window: First ns and first ns after what the overview covers.
        write: Writes a chunk and says its number.
        exact_bandwidth: Whether the overview needs bytes per cell, since not all rows are written.
    """
    lane, vocabulary = chosen.lane, profile.vocabulary
    codes, totals = _kinds_and_totals(chosen, kinds, shown)
    order, subrows = drawing_order(chosen, shown)
    drawn, told = Chunk(shown), Chunk(shown)
    starts, ends = _column(chosen, "start", shown), _column(chosen, "end", shown)
    drawn.add("start", [starts[order]], ascending=True)
    drawn.add("duration", [np.maximum(ends - starts, 0)[order]])
    drawn.add("kind", [codes[order]])
    for chunk, keys in ((drawn, [(key, False) for key in vocabulary.page_columns]), (told, TOLD)):
        for key, ascending in keys:
            values = _known_column(profile, chosen, key, shown)
            if values is not None:
                chunk.add(key, [values[order]], ascending=ascending)
    index = chosen.index()
    figures = lane_figures(index, *window)
    kind = vocabulary.lane_kind(lane.kind)
    activity = lane.activity if lane.activity is not None or kind is None else kind.activity
    return {
        "title": line_text(profile.title_of(lane)),
        "label": line_text(lane.label),
        "group": line_text(profile.groups.title(lane.group)),
        "engine": line_text(lane.kind),
        "core": constant_value(profile, lane, "core"),
        "port": constant_value(profile, lane, "port"),
        # boxes of lanes most of whose work is transfer tell bandwidth
        "transfers": activity is Activity.TRANSFER,
        "ofHost": lane.on_host,
        "count": chosen.count,
        "shown": shown,
        "subrows": subrows,
        "chunks": [write(drawn), write(told)],
        "guessed": lane.role_guessed,
        "busy": figures.busy,
        "wait": figures.wait,
        "sync": figures.sync,
        "idle": figures.idle,
        "bytes": figures.bytes,
        "totals": totals,
        "cells": write(_overview_cells(chosen, vocabulary, index, window, exact_bandwidth)),
    }


def _column(chosen: ChosenLane, key: str, count: int) -> Ints:
    return np.asarray(chosen.lane.take(key, row_part(chosen.rows, 0, count)), dtype=np.int64)


def _known_column(profile: Profile, chosen: ChosenLane, key: str, count: int) -> Ints | None:
    """A column as integers, -1 where missing; None where it says nothing."""
    lane = chosen.lane
    if key not in lane or (key == "core" and profile.unit_of(lane) >= 0):
        return None
    column = profile.vocabulary.schema.get(key)
    if column is not None and not column.applies_to(lane.kind):
        return None
    values = lane.take(key, row_part(chosen.rows, 0, count))
    scale = SCALES.get(column.kind) if column is not None else None
    numbers = scaled(values, scale) if scale is not None else known(np.where(is_missing(values), -1, values))
    return None if bool((numbers < 0).all()) else numbers


def _kinds_and_totals(chosen: ChosenLane, kinds: Kinds, shown: int) -> tuple[Ints, list[list[int]]]:
    """Kind of the first ``shown`` rows; and of every kind its number, its count and its ns over all chosen rows."""
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
    """The order in which rows are written (by row of the lane's drawing, then start), and how many each row has."""
    if chosen.lane.sublanes <= 1:
        return slice(None), [shown]
    rows = np.minimum(_column(chosen, "sublane", shown), SUBROWS - 1)
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=1)
    return order, counts.tolist()


def _overview_cells(
    chosen: ChosenLane, vocabulary: Vocabulary, index: LaneIndex, window: tuple[int, int], bandwidth: bool
) -> Chunk:
    """What fills each cell of the overview: ns of work, of waits and syncs; and bytes where asked for."""
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
    """Bytes moved in each cell: the bandwidth of the chosen rows (GB/s are bytes/ns) by the part of each inside."""
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
    """A record per core that has launches; their columns (start, duration, kind, scope) are written as chunks.

    ``kinds`` gets one kind per kernel function, ``write`` writes a chunk and says its number. Launches that start after
    ``until`` are left out.
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
    """First start and last end of each launch, ns, over some lanes; an end before the start where there is none."""
    start, end = np.full(count, LARGEST, np.int64), np.full(count, -LARGEST, np.int64)
    for chosen in parts:
        for rows, _ in chosen.parts(chosen.count):
            scope = chosen.lane.take("scope", rows)
            known = np.flatnonzero((scope >= 0) & (scope < count))
            np.minimum.at(start, scope[known], chosen.lane.take("start", rows)[known])
            np.maximum.at(end, scope[known], chosen.lane.take("end", rows)[known])
    return start, end
