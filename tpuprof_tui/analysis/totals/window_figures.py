"""The figures of the summary, computed in one go for a window, a core and a scope; meant for a thread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ..findings.core_busy import CoreReason, core_reason
from ..selecting.passing import shown_session
from ..selecting.session import Session
from ..selecting.state import Scope, ViewState
from .figures import CoreFigures, LaneFigures, core_figures, lane_figures
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
class EngineRow:
    """An engine, of one core or summed over several: ns, and how many lanes they are of."""

    label: str
    engine: str
    busy: int
    wait: int
    sync: int
    idle: int
    window: int
    count: int
    bytes: int | None
    guessed: bool

    @property
    def utilisation(self) -> float:
        """Busy over window, 0 to 1."""
        return self.busy / self.window if self.window else 0.0


@dataclass(frozen=True)
class Figures:
    """What the summary shows.

    Attributes:
        start, end: The window, ns.
        scope: What was looked at.
        filter: The filter; only what passes it counts, everything else is as idle.
        cores: Figures of each core of the scope.
        engines: Engines of the core, or of all cores together.
        kernels, operations: What took the time; empty where the capture does not know.
        lost_kernels, lost_operations: Where time was lost against the chip's peak; only where that is known.
        reason: How the core of the scope compares with the others; None for other scopes.
        published: The figures of the source's own tool.
    """

    start: int
    end: int
    scope: Scope
    filter: str
    cores: tuple[CoreFigures, ...]
    engines: tuple[EngineRow, ...]
    kernels: tuple[TopRow, ...]
    operations: tuple[TopRow, ...]
    lost_kernels: tuple[HeadroomRow, ...]
    lost_operations: tuple[HeadroomRow, ...]
    reason: CoreReason | None
    published: PublishedTable


def summary_scope(view: ViewState) -> Scope:
    """What the summary is about: the scope, else the selected core or port, else everything."""
    if not view.scope.everything:
        return view.scope
    selection = view.selection
    return Scope(selection.core) if selection.core >= 0 else Scope(-1, selection.lane)


def figures_of(session: Session, view: ViewState) -> Figures:
    """The figures for a state. O(instructions in the window); of a new filter once O(instructions)."""
    view_of = session.profile.vocabulary.entry("published_view")
    published = PublishedTable() if view_of is None else view_of(session, view, summary_scope(view))
    whole, session = session, shown_session(session, view.filter)
    profile, indexes = session.profile, session.indexes
    scope, start, end = summary_scope(view), *whole.counted(view.start, view.end)
    chosen = [core for core in profile.cores if scope.core in (-1, core)] if scope.lane < 0 else []
    cores = tuple(core_figures(profile, indexes, core, start, end) for core in chosen)
    lanes = {scope.lane} if scope.lane >= 0 else None
    only = {scope.core} if scope.core >= 0 and scope.lane < 0 else None
    sums = work_sums(profile, indexes, start, end, BY, cores=only, lanes=lanes)
    kernels = top_rows(profile, sums["kernel"], "kernel", TOP_ROWS)
    operations = top_rows(profile, sums["name"], "name", TOP_ROWS)
    engines = _engines(whole, session, view, scope, cores)
    lost_kernels, lost_operations = (_with_peak(headroom_rows(profile, sums[by], by, TOP_ROWS)) for by in BY)
    reason = core_reason(session, scope.core, start, end) if scope.lane < 0 and scope.core in profile.cores else None
    return Figures(
        view.start,
        view.end,
        scope,
        view.filter,
        cores,
        engines,
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


def _engines(
    whole: Session, session: Session, view: ViewState, scope: Scope, cores: tuple[CoreFigures, ...]
) -> tuple[EngineRow, ...]:
    def of_lane(number: int) -> EngineRow:
        index = session.indexes[number]
        figures = lane_figures(index, *whole.counted(view.start, view.end, number))
        return _summed(index.lane.title, index.lane.engine, [figures])

    if scope.lane >= 0:
        return (of_lane(scope.lane),)
    by_engine: dict[str, list[LaneFigures]] = {}
    for core in cores:
        for engine, figures in core.lanes.items():
            if engine != "CDMA" or scope.core >= 0:
                by_engine.setdefault(engine, []).append(figures)
    rows = [_summed(engine, engine, figures) for engine, figures in by_engine.items()]
    if scope.core < 0:
        rows += [of_lane(number) for number, lane in enumerate(session.profile.lanes) if lane.core < 0]
    return tuple(rows)


def _summed(label: str, engine: str, parts: Iterable[LaneFigures]) -> EngineRow:
    figures = list(parts)
    sizes = [part.bytes for part in figures if part.bytes is not None]
    return EngineRow(
        label, engine,
        busy=sum(part.busy for part in figures), wait=sum(part.wait for part in figures),
        sync=sum(part.sync for part in figures), idle=sum(part.idle for part in figures),
        window=sum(part.window for part in figures), count=sum(part.count for part in figures),
        bytes=sum(sizes) if sizes else None, guessed=any(part.guessed for part in figures),
    )  # fmt: skip
