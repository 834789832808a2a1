"""What exported files hold of a query: its units, rows and facts; paging of rows."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.events import selected_rows
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows, row_count
from tpuprof_tui.views.answer import Fact


def of_units(query: Query, units: Iterable[int]) -> Query:
    """The query of those of its units that are among ``units`` (ids): of their innermost group, where there is one.

    A single unit is without the host of its rank, as ``--core`` selects it.
    """
    groups, chosen = query.profile.groups, frozenset(query.units).intersection(units)
    if len(chosen) != 1 and chosen == frozenset(groups.units):
        return query
    within = (group for group in reversed(range(len(groups))) if chosen == set(groups.units_within(group)))
    scope = Scope(next(within, -1) if chosen else -1)
    return replace(query, scope=scope, listed_units=chosen if scope.everything else None)


def timed_part(query: Query) -> Query:
    """The query without lanes that have no times; for pictures."""
    timed = query.profile.timed_part
    return query if timed is query.profile else replace(query, session=Session(timed))


def rows_of(query: Query, number: int, *, reaching: bool = False) -> Rows:
    """Rows of a lane that files hold: the selected ones, and of what no unit has and whose is not recorded, all.

    So a trace of one unit has the calls of its host.
    """
    lane, groups = query.profile.lanes[number], query.profile.groups
    beside = groups.units_within(groups.top(lane.group))
    of_others = bool(beside) and set(beside).isdisjoint(query.units)
    if of_others or groups.unit_of(lane.group) >= 0 or "owner" in lane:
        return query.rows(number, reaching=reaching)
    anyone = query if query.listed_units is None else replace(query, listed_units=None)
    return selected_rows(query.session, number, query.range, anyone.full_filter, reaching=reaching)


def rows_by_lane(query: Query) -> list[Rows]:
    """Rows of each lane that files hold."""
    return [rows_of(query, number) for number in range(len(query.profile.lanes))]


def selected_profile(query: Query) -> Profile:
    """The profile restricted to the selected units, and to the rows that files hold; columns are lazy."""
    profile = query.profile
    if query.scope.everything and not query.is_narrowed:
        return profile
    rows = [some if row_count(some) else None for some in rows_by_lane(query)]
    return replace(profile.restricted_to(rows), groups=profile.groups.with_units(query.units))


def selection_facts(query: Query) -> tuple[Fact, ...]:
    """What an exported file holds, in words for its head: units, range, step and filter; empty if it holds all."""
    profile, groups, facts = query.profile, query.profile.groups, []
    if query.units != groups.units:
        numbers = ", ".join(map(str, sorted(map(groups.number, query.units)))) or "none"
        tops = dict.fromkeys(map(groups.top, query.units))
        ranks = [groups.title(top) for top in tops if top not in query.units]
        title = profile.vocabulary.say("{Unit}" if len(query.units) == 1 else "{Units}")
        facts.append(Fact("units", title, f"{numbers} ({', '.join(ranks)})" if ranks else numbers))
    if query.range is not None:
        start, end = query.range
        first = "the start" if start <= profile.start_ns else f"{start:,} ns"
        last = "the end" if end >= profile.end_ns else f"{end:,} ns"
        facts.append(Fact("range", "Range", f"{first} to {last}"))
    if query.step is not None:
        facts.append(Fact("step", "Step", str(query.step)))
    if query.filter:
        redactor = profile.redactor
        text = query.filter if redactor is None else redactor.text(query.filter)
        facts.append(Fact("filter", "Filter", line_text(text)))
    return tuple(facts)


class RowPage(Struct):
    """A page (offset and limit) of a sequence of rows that arrive in parts."""

    limit: int | None = None  #: Maximum number of rows on the page; None: unlimited
    offset: int = 0  #: Number of rows before the page
    total: int = 0  #: Number of rows seen so far
    taken: int = 0  #: Number of rows taken so far

    def take(self, count: int) -> slice:
        """Advances by ``count`` rows; returns the slice of these that is on the page."""
        first = min(max(self.offset - self.total, 0), count)
        last = count if self.limit is None else min(max(self.offset + self.limit - self.total, first), count)
        self.total += count
        self.taken += last - first
        return slice(first, last)


def ordered_lanes(profile: Profile) -> list[tuple[int, Lane]]:
    """Lanes with their numbers, by unit, kind and number; those without a unit last."""
    rank, unit_of = {kind.key: kind.order for kind in profile.vocabulary.lane_kinds}, profile.unit_of
    return sorted(
        enumerate(profile.lanes),
        key=lambda lane: (unit_of(lane[1]) < 0, unit_of(lane[1]), rank.get(lane[1].kind, len(rank)), lane[1].number),
    )
