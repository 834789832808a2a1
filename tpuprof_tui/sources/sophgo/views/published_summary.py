"""The reference's summary for a window, a scope and a filter: the same rows as ``summary.txt`` of such an export."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from tpuprof_tui.analysis.index.lane_index import LaneIndex
from tpuprof_tui.analysis.index.running_sums import BLOCK, MIN_BLOCKS, RunningSums, running_rows, span_of
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope
from tpuprof_tui.model import INT_MISSING, Profile
from tpuprof_tui.model.lane import Rows, row_count, row_numbers
from tpuprof_tui.model.vocabulary import DETAIL
from tpuprof_tui.sources.sophgo.files.published_rows import published_rows
from tpuprof_tui.sources.sophgo.files.summary_table import (
    SUMMED,
    CoreSums,
    SummaryRow,
    as_sums,
    lane_weights,
    rate_remark,
    summary_rows,
)
from tpuprof_tui.views.answer import Answer, Column, Missing, Table, Target
from tpuprof_tui.views.query import Query


def published(query: Query) -> Answer:
    """The summary of `bigTpuProfile` for the instructions that run in the window; from running sums.

    Its total time is from the first start to the last end among them, as in an export of this range. There is none for
    a single lane, or where nothing ran.
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
    shown, state, scope = query.filtered_session, query.state, query.scope
    profile = shown.profile
    indexes = [each for each in zip(query.profile.lanes, shown.indexes, strict=True) if not each[1].lane.on_host]
    units = profile.groups.units_within(scope.group)
    lanes = [index.lane for _, index in indexes]
    if not units or not all("cycles" in lane and (lane.kind == "TIU" or "bytes" in lane) for lane in lanes):
        return  # a source without cycles has no such figures
    sums = dict.fromkeys(units, CoreSums())
    first, last = None, 0
    for whole, index in indexes:
        unit = profile.unit_of(index.lane)
        if unit not in (-1, *units):
            continue
        counted = published_rows(query.profile, whole)
        if len(index.lane) < len(whole):
            in_both = np.isin(index.lane["order"], whole.take("order", counted))
            counted = slice(0, len(index.lane)) if in_both.all() else np.flatnonzero(in_both)
        rows = _running_rows(index, state, scope.group if unit < 0 else -1, counted)
        if not rows:
            continue
        start, end = span_of(index, rows)
        first, last = start if first is None else min(first, start), max(last, end)
        if unit >= 0 and index.lane.kind in SUMMED:
            sums[unit] += _sums(profile, index, rows)
    if first is not None:
        numbers = tuple(map(profile.groups.number, units))
        yield from summary_rows(profile.device, numbers, list(sums.values()), last - first)


def _running_rows(index: LaneIndex, state: DisplayState, owner: int, counted: Rows) -> list[Rows]:
    """Rows among ``counted`` that run in the window; with ``owner`` (-1: any) only those submitted by it or unknown."""
    rows = [each for part in running_rows(index, state.start, state.end) for each in _common(part, counted)]
    if owner >= 0:
        numbers = np.concatenate([row_numbers(each) for each in rows]) if rows else np.zeros(0, np.int64)
        known = "owner" in index.lane
        rows = [numbers[np.isin(index.lane.take("owner", numbers), (owner, INT_MISSING))]] if known else []
    return [each for each in rows if row_count(each)]


def _common(rows: Rows, counted: Rows) -> list[Rows]:
    """Rows that are in both."""
    if isinstance(rows, slice) and isinstance(counted, slice):
        first, last = max(rows.start, counted.start), min(rows.stop, counted.stop)
        return [slice(first, last)] if first < last else []
    return [np.intersect1d(row_numbers(rows), row_numbers(counted))]


def _sums(profile: Profile, index: LaneIndex, rows: list[Rows]) -> CoreSums:
    lane = index.lane
    found = CoreSums()
    if len(lane) < MIN_BLOCKS * BLOCK:
        for each in rows:
            found += as_sums(lane, lane_weights(profile, lane, each).sum(axis=1))
        return found
    known = index.cache.get(
        "published summary", lambda: RunningSums(len(lane), partial(lane_weights, profile, lane))
    )  # fmt: skip
    for each in rows:
        found += as_sums(lane, known.over(each))
    return found
