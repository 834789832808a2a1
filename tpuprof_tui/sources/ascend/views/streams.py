"""Streams view: busy time of streams and communication groups, and how much of it overlaps with others."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any, Final

import numpy as np

from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.views.answer import Answer, Column, Table, Target
from tpuprof_tui.views.query import Query

from ..read.categories import Layer, SliceClass
from .tables import ViewSelection, lacks, of_workers

_NO: Final = np.zeros(0, np.int64)
_WORK: Final = (SliceClass.KERNEL, SliceClass.COPY, SliceClass.COLLECTIVE)
#: Most streams compared pairwise, the busiest.
_MOST: Final = 64


def streams(query: Query) -> Answer:
    """The streams view."""
    return of_workers(query, partial(_streams, query))


def _streams(query: Query, selection: ViewSelection) -> Answer:
    found = sorted(_busy(selection), key=lambda each: -each[2].total)
    if not found:
        return Answer(missing=(lacks("streams", "No stream did any work here.", "a timeline, or kernels with streams",
                                     "activities with NPU, or msprof --task-time=on"),))  # fmt: skip
    rows = []
    for index, (name, count, busy) in enumerate(found):
        others = [each for other, (_, _, each) in enumerate(found) if other != index]
        rest = Intervals.union(*(np.concatenate([getattr(each, key) for each in others] or [_NO])
                                 for key in ("starts", "ends")))  # fmt: skip
        covered = busy.intersect(rest).total
        share = covered / busy.total if busy.total else None
        rows.append((name, count, busy.total, covered, busy.total - covered, share))
    pairs = []
    for (one, _, one_busy), (other, _, other_busy) in combinations(found[:_MOST], 2):
        both = one_busy.intersect(other_busy).total
        if both:
            pairs.append((one, other, both, both / one_busy.total, both / other_busy.total))
    pairs.sort(key=lambda row: -row[2])
    columns = (
        Column("stream", "Stream"), Column("tasks", "Tasks", "count"), Column("busy_us", "Busy", "duration", bar=True),
        Column("covered_us", "Covered by others", "duration", head="Covered"),
        Column("alone_us", "Alone", "duration", spare=1), Column("covered_share", "Covered", "share", head="Share"),
    )  # fmt: skip
    heads = (
        Column("stream", "Stream"), Column("other", "Other"), Column("both_us", "Both work", "duration", bar=True),
        Column("share", "Of the stream", "share"), Column("other_share", "Of the other", "share"),
    )  # fmt: skip
    source = selection.run.timeline.file if selection.run.timeline is not None else ""
    lanes = query.session.lanes_in(Scope(selection.run.worker.group))
    lane_of = {query.profile.lanes[number].label: number for number in lanes}

    def target(of: list[tuple[Any, ...]], row: int) -> Target | None:
        lane = lane_of.get(of[row][0])
        return None if lane is None else Target(scope=Scope(lane=lane))

    return Answer(tables=(
        Table.of_rows("streams", "Streams", columns, rows, word="stream", target=partial(target, rows), one_unit=True,
                      notes=("Work: kernels, copies and communication operators; no waits.",)),
        Table.of_rows("pairs", "Two that work at once", heads, pairs, word="pair", target=partial(target, pairs)),
    ), source=source or (selection.run.kernels.file if selection.run.kernels is not None else ""))  # fmt: skip


def _busy(selection: ViewSelection) -> list[tuple[str, int, Intervals]]:
    """Name, number of tasks and busy intervals of each stream and communication group with any work."""
    timeline, kernels = selection.run.timeline, selection.run.kernels
    if timeline is not None:
        # tasks of collectives are on streams as well: they count for their group only
        copies = timeline.rows(SliceClass.COPY)
        chosen = np.isin(timeline.slice_class, _WORK) & selection.work_mask(timeline.start)
        chosen[copies[timeline.in_collectives(copies)]] = False
        if selection.slices is not None:
            chosen &= selection.slices
        names = [track.label for track in timeline.tracks]
        lane_number, start, end = timeline.track, timeline.start, timeline.end
        is_shown = [track.layer in (Layer.STREAM, Layer.COMMUNICATION) for track in timeline.tracks]
    elif kernels is not None:
        stream = kernels.other("stream")
        names = [*(f"Stream {text}" for text in stream.texts), "Communication"]
        lane_number = np.where(kernels.communicates, len(stream.texts), stream.codes)
        rows = selection.kernel_rows(kernels)
        chosen = np.isin(np.arange(len(kernels)), rows) & kernels.timed & (lane_number >= 0)
        start, end, is_shown = kernels.start, kernels.end, [True] * len(names)
    else:
        return []
    rows = np.flatnonzero(chosen)
    found = []
    for number in np.flatnonzero(np.bincount(lane_number[rows])).tolist():
        rows_of_lane = rows[lane_number[rows] == number]
        if is_shown[number]:
            found.append((names[number], len(rows_of_lane), Intervals.union(start[rows_of_lane], end[rows_of_lane])))
    return found
