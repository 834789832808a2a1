"""The reference's summary for a window, a scope and a filter: the same rows as ``summary.txt`` of such an export."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.index.lane_index import LaneIndex, RunningSums, rows_starting
from tpuprof_tui.analysis.index.unit_index import submitted_rows
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import Profile
from tpuprof_tui.model.lane import Rows, row_count, row_numbers
from tpuprof_tui.model.vocabulary import DETAIL
from tpuprof_tui.views.answer import Answer, Column, Kind, Missing, Table, Target

from ..files.summary_table import (
    COLUMNS,
    SUMMED,
    CoreSums,
    SummaryRow,
    Sums,
    lane_weights,
    published_rows,
    published_window,
    rate_remark,
    summary_rows,
)

#: Kind and unit of the columns of the answer, by kind of column of the summary.
_KINDS: Final[dict[str, tuple[Kind, str]]] = {
    "core": ("text", ""), "percent": ("number", "%"), "time": ("duration", ""), "cycles": ("count", ""),
    "rate": ("rate", ""),
}  # fmt: skip


def published(query: Query) -> Answer:
    """The summary of `bigTpuProfile` for the instructions that start in the window; from running sums.

    There is none for a single lane, or where nothing ran.
    """
    rows = () if query.scope.lane >= 0 else tuple(_rows(query))
    if not rows:
        return Answer(missing=(Missing("bigTpuProfile counts whole cores: there is nothing here to count."),))
    notes = ["Parallelism adds up engines that ran side by side; SDMA averages count sends.",
             "Cycles of Overall are those of the core with most."]  # fmt: skip
    detail = query.profile.has(DETAIL)
    if not detail:
        notes.append(rate_remark(query.profile, rows))
    columns = tuple(Column(column.key, column.header.partition("(")[0], *_KINDS[column.kind]) for column in COLUMNS)
    groups = query.profile.groups
    unit_of = {groups.number(unit): unit for unit in groups.units_within(query.scope.group)}

    def target(row: int) -> Target | None:
        core = rows[row].core
        return None if core is None else Target(scope=Scope(unit_of[core]))

    # where no operations are known the rate is missing, not the converter's placeholder
    rate = [column.key for column in COLUMNS].index("uarch_rate")
    values = [
        (str(row.values[0]), *row.values[1:rate], row.values[rate] if detail or row.known_ops else None,
         *row.values[rate + 1 :])
        for row in rows
    ]  # fmt: skip
    table = Table.of_rows("published", "As bigTpuProfile counts", columns, values, total=True, notes=tuple(notes),
                          word="core", target=target)  # fmt: skip
    return Answer(tables=(table,))


def _rows(query: Query) -> Iterator[SummaryRow]:
    shown, (start, end) = query.filtered_session, query.window
    profile = shown.profile
    indexes = [each for each in zip(query.profile.lanes, shown.indexes, strict=True) if not each[1].lane.on_host]
    units = query.units
    lanes = [index.lane for _, index in indexes]
    if not units or not all("cycles" in lane and (lane.kind == "TIU" or "bytes" in lane) for lane in lanes):
        return  # a source without cycles has no such figures
    sums, count = {unit: CoreSums(Sums) for unit in units}, 0
    for whole, index in indexes:
        unit = profile.unit_of(index.lane)
        if unit not in (-1, *units):
            continue
        counted = published_rows(query.profile, whole)
        if len(index.lane) < len(whole):
            in_both = np.isin(index.lane["order"], whole.take("order", counted))
            counted = slice(0, len(index.lane)) if in_both.all() else np.flatnonzero(in_both)
        rows = _common(rows_starting(index, start, end), counted)
        if unit < 0 and query.owners:
            rows = np.intersect1d(row_numbers(rows), row_numbers(submitted_rows(index.lane, query.owners)))
        count += row_count(rows)
        if unit >= 0 and index.lane.kind in SUMMED:
            sums[unit][index.lane.kind].update(_sums(profile, index, rows))
    if count:
        first, last = published_window(query)
        numbers = tuple(map(profile.groups.number, units))
        yield from summary_rows(profile.device, numbers, list(sums.values()), last - first)


def _common(rows: slice, counted: Rows) -> Rows:
    if isinstance(counted, slice):
        return slice(max(rows.start, counted.start), max(rows.start, min(rows.stop, counted.stop)))
    return np.asarray(counted[(counted >= rows.start) & (counted < rows.stop)])


def _sums(profile: Profile, index: LaneIndex, rows: Rows) -> Sums:
    lane = index.lane

    def weights(rows: Rows) -> npt.NDArray[np.int64]:
        found = lane_weights(profile, lane, rows)
        return np.stack([found[name] for name in SUMMED[lane.kind]])

    known = index.cache.get("published summary", lambda: RunningSums(len(lane), weights))
    return Sums(dict(zip(SUMMED[lane.kind], known.over(rows).tolist(), strict=True)))
