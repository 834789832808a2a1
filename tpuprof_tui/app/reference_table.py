"""The reference's summary for a window, a scope and a filter: the same rows as ``summary.txt`` of such an export."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from ..analysis.lane_index import LaneIndex, rows_between
from ..analysis.reference import COLUMNS, SummaryRow, summary_table
from ..model import INT_MISSING, Lane
from .filtering import shown_session
from .format import MISSING
from .session import Session
from .state import Scope, ViewState

#: What the reference's sums are made from.
_KEYS: Final = (
    "start", "end", "order", "role", "sublane", "cycles", "mode", "bytes", "direction", "alg_ops", "uarch_ops",
)  # fmt: skip
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


#: Tables of whole captures, by core: one comes back to them all the time.
_WHOLE: Final[WeakKeyDictionary[Session, dict[int, ReferenceTable]]] = WeakKeyDictionary()


def reference_table(session: Session, view: ViewState, scope: Scope) -> ReferenceTable:
    """The reference's figures for the instructions that run in the window; O(those instructions).

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
    if view.fits_all and not view.filter:
        known = _WHOLE.setdefault(session, {})
        if scope.core not in known:
            known[scope.core] = ReferenceTable(titles, _rows(session, view, scope))
        return known[scope.core]
    return ReferenceTable(titles, _rows(session, view, scope))


def _rows(session: Session, view: ViewState, scope: Scope) -> tuple[tuple[str, ...], ...]:
    shown = shown_session(session, view.filter)
    profile = shown.profile.device_part
    if not all(_counted(lane) for lane in profile.lanes):
        return ()  # a source without cycles has no such figures
    if scope.core >= 0 or not view.fits_all:
        cores = tuple(core for core in profile.cores if scope.core in (-1, core))
        indexes = (index for index in shown.indexes if not index.lane.on_host and index.lane.core in (-1, *cores))
        parts = [_part(index, view, scope.core) for index in indexes]
        profile = replace(profile, cores=cores, lanes=tuple(lane for lane in parts if len(lane)))
    return tuple(_cells(row, profile.mode) for row in summary_table(profile))


def _counted(lane: Lane) -> bool:
    """Whether a lane knows what the reference's figures are made of."""
    return "cycles" in lane and (lane.engine == "TIU" or "bytes" in lane)


def _part(index: LaneIndex, view: ViewState, core: int) -> Lane:
    """What of a lane runs in the window and, of a port, was submitted by ``core`` (-1: by any)."""
    lane = index.lane
    rows = rows_between(index, view.start, view.end)
    if core >= 0 and lane.core < 0:
        if "core" not in lane:
            rows = slice(0, 0)
        else:
            numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            rows = numbers[np.isin(lane.take("core", numbers), (core, INT_MISSING))]
    columns = {key: lane.take(key, rows) for key in _KEYS if key in lane}
    return Lane(engine=lane.engine, core=lane.core, port=lane.port, label=lane.label, group=lane.group,
                columns=columns, role_guessed=lane.role_guessed)  # fmt: skip


def _cells(row: SummaryRow, mode: int) -> tuple[str, ...]:
    """Texts of a row; a rate that only registers could tell is missing, not the reference's placeholder."""
    if mode >= 2:
        return row.cells
    return tuple(MISSING if place == _RATE else cell for place, cell in enumerate(row.cells))
