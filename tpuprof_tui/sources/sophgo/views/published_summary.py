"""The reference's summary for a window, a scope and a filter: the same rows as ``summary.txt`` of such an export."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from tpuprof_tui.analysis.index.lane_index import BLOCK, MIN_BLOCKS, LaneIndex, RunningSums, rows_starting
from tpuprof_tui.analysis.index.unit_index import submitted_rows
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import Profile
from tpuprof_tui.model.lane import Rows, row_count, row_numbers
from tpuprof_tui.model.vocabulary import DETAIL
from tpuprof_tui.views.answer import Answer, Column, Missing, Table, Target

from ..files.published_rows import published_rows, published_window
from ..files.summary_table import SUMMED, CoreSums, SummaryRow, as_sums, lane_weights, rate_remark, summary_rows


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
    columns = (
        Column("core", "CoreId"), Column("parallelism", "Parallelism", "number", "%"),
        Column("total_us", "totalTime", "duration"), Column("tiu_ratio", "TiuWorkingRatio", "number", "%"),
        Column("tiu_cycles", "totalTiuCycle", "count"), Column("uarch_rate", "uArchURate", "number", "%"),
        Column("gdma_cycles", "totalGdmaCycle", "count"), Column("gdma_ddr", "GdmaDdrAvgBW", "rate"),
        Column("gdma_l2", "GdmaL2AvgBW", "rate"), Column("sdma_cycles", "totalSdmaCycle", "count"),
        Column("sdma_ddr", "SdmaDdrAvgBW", "rate"),
    )  # fmt: skip
    groups = query.profile.groups
    unit_of = {groups.number(unit): unit for unit in groups.units_within(query.scope.group)}

    def target(row: int) -> Target | None:
        core = rows[row].core
        return None if core is None else Target(scope=Scope(unit_of[core]))

    # where no operations are known the rate is missing, not the converter's placeholder
    values = [
        ("Overall" if row.core is None else str(row.core), row.parallelism, row.total_ns, row.tiu_ratio,
         row.tiu_cycles, row.uarch_rate if detail or row.sums.known_ops else None, row.gdma_cycles,
         row.gdma_ddr_bandwidth, row.gdma_l2_bandwidth, row.sdma_cycles, row.sdma_ddr_bandwidth)
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
    sums, count = dict.fromkeys(units, CoreSums()), 0
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
            sums[unit] += _sums(profile, index, rows)
    if count:
        first, last = published_window(query)
        numbers = tuple(map(profile.groups.number, units))
        yield from summary_rows(profile.device, numbers, list(sums.values()), last - first)


def _common(rows: slice, counted: Rows) -> Rows:
    """Rows that are in both."""
    if isinstance(counted, slice):
        return slice(max(rows.start, counted.start), max(rows.start, min(rows.stop, counted.stop)))
    return np.asarray(counted[(counted >= rows.start) & (counted < rows.stop)])


def _sums(profile: Profile, index: LaneIndex, rows: Rows) -> CoreSums:
    lane = index.lane
    if len(lane) < MIN_BLOCKS * BLOCK:
        return as_sums(lane, lane_weights(profile, lane, rows).sum(axis=1))
    known = index.cache.get(
        "published summary", lambda: RunningSums(len(lane), partial(lane_weights, profile, lane))
    )  # fmt: skip
    return as_sums(lane, known.over(rows))
