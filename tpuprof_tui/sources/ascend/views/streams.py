"""Streams view: busy time of streams and communication groups, and how much of it overlaps with others."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any, Final

import numpy as np

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import Activity, Role
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.views.answer import Answer, Column, Table, Target

from ..recorded import RecordedRank
from .ranks import lacks, lanes_of, per_rank

_NO: Final = np.zeros(0, np.int64)
#: Most streams compared pairwise, the busiest.
_MOST: Final = 64


@per_rank
def streams(query: Query, rank: RecordedRank) -> Answer:
    """The streams view of one rank."""
    found = sorted(_busy(query), key=lambda stream: -stream[2].total)
    if not found:
        return Answer(missing=(lacks("streams", "No stream did any work here.", "a timeline, or kernels with streams",
                                     "activities with NPU, or msprof --task-time=on"),))  # fmt: skip
    lanes = query.profile.lanes
    rows = []
    for index, (lane, count, busy) in enumerate(found):
        others = [intervals for other, (_, _, intervals) in enumerate(found) if other != index]
        rest = Intervals.union(*(np.concatenate([getattr(intervals, key) for intervals in others] or [_NO])
                                 for key in ("starts", "ends")))  # fmt: skip
        covered = busy.intersect(rest).total
        share = covered / busy.total if busy.total else None
        rows.append((lanes[lane].label, count, busy.total, covered, busy.total - covered, share))
    pairs = []
    for (one, _, one_busy), (other, _, other_busy) in combinations(found[:_MOST], 2):
        both = one_busy.intersect(other_busy).total
        if both:
            pairs.append((one, other, both, both / one_busy.total, both / other_busy.total))
    pairs.sort(key=lambda pair: -pair[2])
    columns = (
        Column("stream", "Stream"), Column("tasks", "Tasks", "count"), Column("busy_us", "Busy", "duration", bar=True),
        Column("covered_us", "Covered by others", "duration", head="Covered"),
        Column("alone_us", "Alone", "duration", spare=1), Column("covered_share", "Covered", "share", head="Share"),
    )  # fmt: skip
    heads = (
        Column("stream", "Stream"), Column("other", "Other"), Column("both_us", "Both work", "duration", bar=True),
        Column("share", "Of the stream", "share"), Column("other_share", "Of the other", "share"),
    )  # fmt: skip
    kernels = query.profile.table("kernels", rank.group)

    def target(of: list[tuple[Any, ...]], row: int) -> Target:
        return Target(scope=Scope(lane=of[row][0]))

    return Answer(tables=(
        Table.of_rows("streams", "Streams", columns, rows, word="stream", target=partial(target, found), one_unit=True,
                      notes=("Work: kernels, copies and communication operators; no waits.",)),
        Table.of_rows("pairs", "Two that work at once", heads,
                      [(lanes[one].label, lanes[other].label, *times) for one, other, *times in pairs], word="pair",
                      target=partial(target, pairs)),
    ), source=rank.timeline or (kernels.file if kernels is not None else ""))  # fmt: skip


def _busy(query: Query) -> list[tuple[int, int, Intervals]]:
    """Lane, number of tasks and busy intervals of each stream and communication group with any work.

    Tasks of collectives are on streams as well: they count for their group only.
    """
    found = []
    for number in lanes_of(query, "stream", "communication"):
        lane = query.profile.lanes[number]
        frame = query.events(("start", "end", "role", "activity"), [number])
        works = frame["role"] == Role.WORK
        if lane.kind == "stream":
            works &= frame["activity"] != Activity.COMMUNICATION
        frame = frame.take(works)
        # kernels of unknown streams have a lane too
        if len(frame) and (lane.number >= 0 or lane.kind == "communication"):
            found.append((number, len(frame), Intervals.union(frame["start"], frame["end"])))
    return found
