"""The reference's summary for a window, a scope and a filter: the same rows as ``summary.txt`` of such an export."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from tpuprof_tui.analysis.index.lane_index import LaneIndex
from tpuprof_tui.analysis.index.running_sums import BLOCK, FEWEST, RunningSums, running_rows, span_of
from tpuprof_tui.analysis.selecting.passing import shown_session
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope, ViewState
from tpuprof_tui.analysis.totals.window_figures import PublishedTable
from tpuprof_tui.formats.tables import Table
from tpuprof_tui.formats.text import MISSING
from tpuprof_tui.model import INT_MISSING, Lane, Profile
from tpuprof_tui.model.lane import Rows, row_count
from tpuprof_tui.model.vocabulary import DETAIL
from tpuprof_tui.sources.sophgo.files.summary_table import (
    COLUMNS,
    SUMMED,
    CoreSums,
    SummaryRow,
    as_sums,
    lane_weights,
    summary_rows,
    summary_table,
)

#: Place of the uArch rate among the cells.
_RATE: Final = [title for title, _ in COLUMNS].index("uArchURate")


def reference_table(session: Session, view: ViewState, scope: Scope) -> PublishedTable:
    """The reference's figures for the instructions that run in the window; from running sums.

    Their total time is from the first start to the last end among them, as in an export of this range.

    Args:
        session: All instructions; the view's filter is applied.
        view: Window and filter.
        scope: A core, or everything; of a single lane nothing is told.

    Returns:
        The table; without rows where there are no cores or no instructions.
    """
    titles = tuple(title for title, _ in COLUMNS)
    if scope.lane >= 0:
        return PublishedTable(titles)
    return PublishedTable(titles, tuple(_rows(session, view, scope)), "Figures of the reference", "as in summary.txt")


def published_table(profile: Profile) -> Table:
    """The summary of `bigTpuProfile` of a whole profile, by its own definitions."""
    notes = ["Parallelism adds up engines that ran side by side; SDMA averages count sends."]
    if not profile.has(DETAIL):
        notes.append("uArchURate says nothing here: operations are known from mode 2 on.")
    return Table(
        title="As bigTpuProfile counts",
        header=tuple(title for title, _ in COLUMNS),
        rows=tuple(row.cells for row in summary_table(profile)),
        total=True,
        notes=tuple(notes),
    )


def _rows(session: Session, view: ViewState, scope: Scope) -> Iterator[tuple[str, ...]]:
    shown = shown_session(session, view.filter)
    profile = shown.profile
    indexes = [index for index in shown.indexes if not index.lane.on_host]
    cores = tuple(core for core in profile.cores if scope.core in (-1, core))
    if not cores or not all(_counted(index.lane) for index in indexes):
        return  # a source without cycles has no such figures
    sums = dict.fromkeys(cores, CoreSums())
    first, last = None, 0
    for index in indexes:
        if index.lane.core not in (-1, *cores):
            continue
        rows = _running(index, view, scope.core)
        if not rows:
            continue
        start, end = span_of(index, rows)
        first, last = start if first is None else min(first, start), max(last, end)
        if index.lane.core >= 0 and index.lane.engine in SUMMED:
            sums[index.lane.core] += _sums(profile, index, rows)
    if first is not None:
        for row in summary_rows(profile.device, cores, list(sums.values()), last - first):
            yield _cells(row, known=profile.has(DETAIL))


def _running(index: LaneIndex, view: ViewState, core: int) -> list[Rows]:
    """Rows that run in the window; of a port those that ``core`` (-1: any) submitted."""
    rows = running_rows(index, view.start, view.end)
    if core >= 0 and index.lane.core < 0:
        numbers = np.concatenate([np.r_[each] for each in rows])
        known = "core" in index.lane
        rows = [numbers[np.isin(index.lane.take("core", numbers), (core, INT_MISSING))]] if known else []
    return [each for each in rows if row_count(each)]


def _sums(profile: Profile, index: LaneIndex, rows: list[Rows]) -> CoreSums:
    lane = index.lane
    found = CoreSums()
    if len(lane) < FEWEST * BLOCK:
        for each in rows:
            found += as_sums(lane, lane_weights(profile, lane, each).sum(axis=1))
        return found
    known = index.derived.get(
        "published summary", lambda: RunningSums(len(lane), partial(lane_weights, profile, lane))
    )  # fmt: skip
    for each in rows:
        found += as_sums(lane, known.over(each))
    return found


def _counted(lane: Lane) -> bool:
    """Whether a lane knows what the reference's figures are made of."""
    return "cycles" in lane and (lane.engine == "TIU" or "bytes" in lane)


def _cells(row: SummaryRow, *, known: bool) -> tuple[str, ...]:
    """Texts of a row; a rate that only registers could tell is missing, not the reference's placeholder."""
    if known:
        return row.cells
    return tuple(MISSING if place == _RATE else cell for place, cell in enumerate(row.cells))
