"""The reference's summary for a window, a scope and a filter: the same rows as ``summary.txt`` of such an export."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from tpuprof_tui.analysis.index.lane_index import LaneIndex
from tpuprof_tui.analysis.index.running_sums import BLOCK, FEWEST, RunningSums, running_rows, span_of
from tpuprof_tui.analysis.selecting.passing import shown_session
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope, ViewState
from tpuprof_tui.formats.text import MISSING
from tpuprof_tui.model import INT_MISSING, Lane, Profile
from tpuprof_tui.model.lane import Rows, row_count
from tpuprof_tui.sources.sophgo.files.summary_table import (
    COLUMNS,
    SUMMED,
    CoreSums,
    SummaryRow,
    as_sums,
    lane_weights,
    summary_rows,
)

#: Place of the uArch rate among the cells.
_RATE: Final = [title for title, _ in COLUMNS].index("uArchURate")


@dataclass(frozen=True)
class ReferenceTable:
    """The reference's figures of a window.

    Attributes:
        titles: Names of the columns, the reference's.
        rows: Cells of each core, then of all of them.
    """

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def reference_table(session: Session, view: ViewState, scope: Scope) -> ReferenceTable:
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
        return ReferenceTable(titles, ())
    return ReferenceTable(titles, tuple(_rows(session, view, scope)))


def _rows(session: Session, view: ViewState, scope: Scope) -> Iterator[tuple[str, ...]]:
    shown = shown_session(session, view.filter)
    profile = shown.profile
    indexes = [index for index in shown.indexes if not index.lane.on_host]
    units = profile.groups.units_within(scope.group)
    if not units or not all(_counted(index.lane) for index in indexes):
        return  # a source without cycles has no such figures
    sums = dict.fromkeys(units, CoreSums())
    first, last = None, 0
    for index in indexes:
        unit = profile.unit_of(index.lane)
        if unit not in (-1, *units):
            continue
        rows = _running(index, view, scope.group if unit < 0 else -1)
        if not rows:
            continue
        start, end = span_of(index, rows)
        first, last = start if first is None else min(first, start), max(last, end)
        if unit >= 0 and index.lane.kind in SUMMED:
            sums[unit] += _sums(profile, index, rows)
    if first is not None:
        numbers = tuple(map(profile.groups.number, units))
        for row in summary_rows(profile.device, numbers, list(sums.values()), last - first):
            yield _cells(row, profile.detail)


def _running(index: LaneIndex, view: ViewState, owner: int) -> list[Rows]:
    """Rows that run in the window, those that ``owner`` (-1: any) submitted or nobody knows who did."""
    rows = running_rows(index, view.start, view.end)
    if owner >= 0:
        numbers = np.concatenate([np.r_[each] for each in rows])
        known = "owner" in index.lane
        rows = [numbers[np.isin(index.lane.take("owner", numbers), (owner, INT_MISSING))]] if known else []
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
    return "cycles" in lane and (lane.kind == "TIU" or "bytes" in lane)


def _cells(row: SummaryRow, mode: int) -> tuple[str, ...]:
    """Texts of a row; a rate that only registers could tell is missing, not the reference's placeholder."""
    if mode >= 2:
        return row.cells
    return tuple(MISSING if place == _RATE else cell for place, cell in enumerate(row.cells))
