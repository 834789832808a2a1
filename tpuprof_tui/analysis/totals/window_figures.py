"""The figures of the summary, computed in one go for a window and a scope; meant for a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..findings.unit_busy import UnitReason, unit_reason
from ..selecting.passing import shown_session
from ..selecting.session import Session
from ..selecting.state import Scope, ViewState
from .figures import LaneFigures, UnitFigures, lane_figures, unit_figures
from .headroom import HeadroomRow, headroom_rows
from .top import TopRow, top_rows
from .work_sums import Grouping, work_sums

TOP_ROWS = 40
#: What work is added up by.
BY: Final[tuple[Grouping, ...]] = ("kernel", "name")


@dataclass(frozen=True)
class PublishedTable:
    """Figures of the source's own tool.

    Attributes:
        titles: Names of the columns, the tool's.
        rows: Cells of each unit, then of all of them; none where the source knows no such figures.
        title, note: What they are called, and where else they stand.
    """

    titles: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    title: str = ""
    note: str = ""


@dataclass(frozen=True)
class KindRow:
    """A kind of lane, of one unit or added up over several, or a lane of no unit.

    Attributes:
        label: What it is called.
        kind: Kind of the lanes.
        figures: Of all of them together.
    """

    label: str
    kind: str
    figures: LaneFigures


@dataclass(frozen=True)
class Figures:
    """What the summary shows.

    Attributes:
        start, end: The window, ns.
        scope: What was looked at.
        filter: The filter; only what passes it counts, everything else is as idle.
        units: Figures of each unit of the scope.
        kinds: Kinds of lanes of these units together; lanes of no unit each alone.
        kernels, operations: What took the time; empty where the capture does not know.
        lost_kernels, lost_operations: Where time was lost against the chip's peak; only where that is known.
        reason: How the unit of the scope compares with the others; None for other scopes.
        published: The figures of the source's own tool.
    """

    start: int
    end: int
    scope: Scope
    filter: str
    units: tuple[UnitFigures, ...]
    kinds: tuple[KindRow, ...]
    kernels: tuple[TopRow, ...]
    operations: tuple[TopRow, ...]
    lost_kernels: tuple[HeadroomRow, ...]
    lost_operations: tuple[HeadroomRow, ...]
    reason: UnitReason | None
    published: PublishedTable


def summary_scope(view: ViewState) -> Scope:
    """What the summary is about: the scope, else the selected unit or lane of none, else everything."""
    if not view.scope.everything:
        return view.scope
    selection = view.selection
    return Scope(selection.group) if selection.group >= 0 else Scope(-1, selection.lane)


def figures_of(session: Session, view: ViewState) -> Figures:
    """The figures for a state. O(instructions in the window); of a new filter once O(instructions)."""
    view_of = session.profile.vocabulary.entry("published_view")
    published = PublishedTable() if view_of is None else view_of(session, view, summary_scope(view))
    whole, session = session, shown_session(session, view.filter)
    profile, indexes = session.profile, session.indexes
    scope, start, end = summary_scope(view), *whole.counted(view.start, view.end)
    chosen = profile.groups.units_within(scope.group) if scope.lane < 0 else ()
    units = tuple(unit_figures(profile, indexes, unit, start, end) for unit in chosen)
    lanes = {scope.lane} if scope.lane >= 0 else None
    only = {scope.group} if scope.group >= 0 and scope.lane < 0 else None
    sums = work_sums(profile, indexes, start, end, BY, units=only, lanes=lanes)
    kernels = top_rows(profile, sums["kernel"], "kernel", TOP_ROWS)
    operations = top_rows(profile, sums["name"], "name", TOP_ROWS)
    kinds = _kinds(whole, session, view, scope, units)
    lost_kernels, lost_operations = (_with_peak(headroom_rows(profile, sums[by], by, TOP_ROWS)) for by in BY)
    reason = unit_reason(session, scope.group, start, end) if scope.lane < 0 and scope.group in profile.units else None
    return Figures(
        view.start,
        view.end,
        scope,
        view.filter,
        units,
        kinds,
        _known(kernels),
        _known(operations),
        lost_kernels,
        lost_operations,
        reason,
        published,
    )


def _with_peak(rows: list[HeadroomRow]) -> tuple[HeadroomRow, ...]:
    """Rows that lost time, as far as that is known."""
    return tuple(row for row in rows if row.count and row.lost_ns >= 1)


def _known(rows: list[TopRow]) -> tuple[TopRow, ...]:
    """Nothing, where all there is is unknown."""
    return tuple(rows) if any(row.code >= 0 for row in rows) else ()


def _kinds(
    whole: Session, session: Session, view: ViewState, scope: Scope, units: tuple[UnitFigures, ...]
) -> tuple[KindRow, ...]:
    profile, indexes = session.profile, session.indexes

    def row(number: int) -> KindRow:
        lane = profile.lanes[number]
        figures = lane_figures(indexes[number], *whole.counted(view.start, view.end, number))
        return KindRow(profile.title_of(lane), lane.kind, figures)

    if scope.lane >= 0:
        return (row(scope.lane),)
    within = profile.groups.within(scope.group)
    told = {unit.unit for unit in units}
    rest = [number for number, lane in enumerate(profile.lanes)
            if profile.unit_of(lane) not in told and (scope.group < 0 or lane.group in within)]  # fmt: skip
    # what units submitted to lanes that are told themselves would count twice
    alone = {profile.lanes[number].kind for number in rest}
    by_kind: dict[str, list[LaneFigures]] = {}
    for unit in units:
        for kind, figures in unit.lanes.items():
            if kind not in alone:
                by_kind.setdefault(kind, []).append(figures)
    return (*(KindRow(kind, kind, LaneFigures.summed(each)) for kind, each in by_kind.items()), *map(row, rest))
