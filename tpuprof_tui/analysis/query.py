"""Query: a profile and the selection (scope, range, filter, step) that views are computed for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from tpuprof_tui.model import Profile, Role
from tpuprof_tui.model.lane import Rows, row_numbers, row_part
from tpuprof_tui.model.vocabulary import Vocabulary

from .derived_columns import with_derived_columns
from .events import events, selected_rows
from .index.lane_index import LaneIndex, count_starting
from .index.unit_index import submitted
from .pivot import Frame
from .result_cache import ResultCache
from .selecting.filter_masks import filtered_session
from .selecting.filters import split_step, with_step
from .selecting.session import Session
from .selecting.state import DisplayState, Scope
from .steps.step_detection import ProfileSteps, steps_of
from .steps.step_figures import step_span
from .totals.figures import Headline, UnitFigures, unit_figures

EVERYTHING: Final = Scope()


class Query(Struct, frozen=True, eq=False, dict=True):
    """A profile and the part of it that views are computed for.

    Events of the scope that pass the filter count; with a range, those that start in it, and unions are clipped to it.
    """

    session: Session  #: The profile with its cached results
    scope: Scope = EVERYTHING  #: Group or lane
    #: Start and end of the range, ns; None: the whole profile, also if one from its start to its end is given.
    range: tuple[int, int] | None = None
    filter: str = ""  #: Filter expression; empty: none
    #: Number of the step whose events count; None: all. Without a range, it determines the window. A step condition in
    #: ``filter``, as the explorer writes it, is moved here.
    step: int | None = None
    baseline: Query | None = None  #: The same query on the profile that this one is compared with; None: no comparison
    listed_units: frozenset[int] | None = None  #: Ids of the units whose events count; None: all of the scope

    def __post_init__(self) -> None:
        if self.range is not None and self.range[0] <= self.profile.start_ns and self.profile.end_ns <= self.range[1]:
            force_setattr(self, "range", None)
        step, rest = split_step(self.filter)
        if step is not None:
            force_setattr(self, "filter", rest)
            force_setattr(self, "step", step if self.step is None else self.step)

    @classmethod
    def of_state(cls, session: Session, state: DisplayState, scope: Scope) -> Query:
        """The query of a display state about ``scope``; with the baseline only if the whole time is visible.

        A window equal to the span of the step is not a range, since work of the step may run beyond its end.
        """
        if not state.fits_all:
            query = cls(session, scope, (state.start, state.end), state.filter)
            spanned = query.step is not None and step_span(session, query.step) == query.range
            return replace(query, range=None) if spanned else query
        baseline = None
        if session.baseline is not None:
            there = _scope_in(session.baseline.profile, session.profile, scope)
            baseline = None if there is None else cls(session.baseline, there, filter=state.filter)
        return cls(session, scope, filter=state.filter, baseline=baseline)

    @property
    def profile(self) -> Profile:
        """The whole profile."""
        return self.session.profile

    @property
    def vocabulary(self) -> Vocabulary:
        """Vocabulary of the profile's source."""
        return self.profile.vocabulary

    @property
    def cache(self) -> ResultCache:
        """Cache of results computed from the whole profile."""
        return self.session.cache

    @cached_property
    def local_cache(self) -> ResultCache:
        """Cache of results computed from this query alone, freed with it."""
        return ResultCache()

    @property
    def whole(self) -> Query:
        """The query of everything in the scope."""
        return replace(self, range=None, filter="", step=None, listed_units=None)

    @property
    def is_narrowed(self) -> bool:
        """Whether range, step or filter narrow it; not by scope."""
        return self.range is not None or self.step is not None or bool(self.condition)

    @cached_property
    def condition(self) -> str:
        """The filter expression including the listed units; empty: all events of scope, range and step count."""
        if self.listed_units is None:
            return self.filter
        numbers = map(self.profile.groups.number, sorted(self.listed_units))
        units = " | ".join(f"core={number}" for number in numbers) or "core<0"
        return f"({units}) ({self.filter})" if self.filter else f"({units})"

    @property
    def full_filter(self) -> str:
        """The filter expression including the listed units and the step."""
        return self.condition if self.step is None else with_step(self.condition, self.step)

    @cached_property
    def filtered_session(self) -> Session:
        """The session restricted to filter and step; O(events) the first time."""
        return filtered_session(self.session, self.full_filter)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """Start and end of the selected time, ns: the range, else that of the step, else all, of the host too."""
        if self._is_of_step:
            start, end = self._step_part.profile.window_of_group(-1)
        else:
            start, end = self.range or (self.profile.start_ns, max(self.profile.end_ns, self.profile.start_ns + 1))
        return start, max(end, start)

    @property
    def _is_of_step(self) -> bool:
        return self.range is None and self.step is not None

    @property
    def _step_part(self) -> Session:
        return filtered_session(self.session, with_step("", self.step or 0))

    @cached_property
    def window(self) -> tuple[int, int]:
        """Window (start, end), ns, that shares refer to and unions are clipped to: device time within the range."""
        return self.window_of(self.scope.group, self.scope.lane)

    def window_of(self, group: int, lane: int = -1) -> tuple[int, int]:
        """The part of the window in which a group's session, or a lane's, was recorded; -1: any session."""
        start, end = self.extent
        if self._is_of_step:
            start, end = self._step_part.profile.window_of_group(group if lane < 0 else self.profile.lanes[lane].group)
        return self.session.clip_window(start, end, lane, group)

    @property
    def span(self) -> int:
        """Length of the window, ns; of several sessions the sum of theirs."""
        if not self.scope.everything:
            return self.window[1] - self.window[0]
        if self._is_of_step:
            return self._step_part.profile.length_between(*self.profile.window_of_group(-1))
        return self.profile.length_between(*self.extent)

    @property
    def top_group(self) -> int:
        """Id of the topmost group that contains the scope (a rank); -1: everything."""
        group = self.scope.group if self.scope.lane < 0 else self.profile.lanes[self.scope.lane].group
        return self.profile.groups.top(group)

    @cached_property
    def units(self) -> tuple[int, ...]:
        """Ids of the units in the scope; empty for a lane."""
        units = () if self.scope.lane >= 0 else self.profile.groups.units_within(self.scope.group)
        return units if self.listed_units is None else tuple(unit for unit in units if unit in self.listed_units)

    @cached_property
    def unit_figures(self) -> tuple[UnitFigures, ...]:
        """Figures of each unit of the scope in the window."""
        return tuple(unit_figures(self.filtered_session, unit, *self.window_of(unit)) for unit in self.units)

    @property
    def headline(self) -> Headline:
        """Figures of the first line of the screen, cached."""

        def compute() -> Headline:
            guessed = any(self.filtered_session.profile.lanes[number].role_guessed for number in self.lanes)
            return Headline.of(self.span, self.event_count, self.unit_figures, guessed)

        which = (self.scope, self.range, self.full_filter)
        return self.cache.get("headline", compute, *which, limit=4)

    @property
    def event_count(self) -> int:
        """Number of events on `lanes` that start in the window."""
        return sum(count_starting(index, *self.window) for index in self.lane_indexes.values())

    @property
    def steps(self) -> ProfileSteps:
        """All steps of the profile."""
        return steps_of(self.session)

    def events(
        self, keys: Collection[str], lanes: Iterable[int] | None = None, *, role: Role | None = None,
        reaching: bool = False,
    ) -> Frame:  # fmt: skip
        """Columns of the selected events (`analysis.events`), of all lanes of the scope or of some of them."""
        chosen = self.session.lanes_in(self.scope) if lanes is None else lanes
        return events(
            self.session, chosen, keys, self.range, self.full_filter, self.owners, role=role, reaching=reaching
        )

    def rows(self, number: int, *, reaching: bool = False) -> Rows:
        """Selected rows of a lane, ascending; a slice if contiguous. In a range, none of lanes without times."""
        if number not in self._lanes_in_scope:
            return slice(0, 0)
        return selected_rows(self.session, number, self.range, self.full_filter, self.owners, reaching=reaching)

    @cached_property
    def _lanes_in_scope(self) -> frozenset[int]:
        return frozenset(self.session.lanes_in(self.scope))

    @cached_property
    def lanes(self) -> tuple[int, ...]:
        """Indexes in ``Profile.lanes`` of the scope's device lanes, or of its host lanes if it has no others."""
        lanes = self.session.lanes_in(self.scope)
        if self.listed_units is not None:
            lanes = tuple(number for number in lanes if self.session.unit_of(number) in (-1, *self.listed_units))
        device = tuple(number for number in lanes if not self.profile.lanes[number].on_host)
        return device or tuple(number for number in lanes if not self.profile.lanes[number].is_aside)

    @cached_property
    def lane_indexes(self) -> dict[int, LaneIndex]:
        """Indexes of ``lanes`` by number: of filtered events, on lanes outside the scope of those that it submitted."""
        indexes = {number: self.filtered_session.indexes[number] for number in self.lanes}
        owners = self.owners
        return {number: submitted(index, owners) for number, index in indexes.items()} if owners else indexes

    def event(self, number: int, row: int) -> tuple[int, int]:
        """Lane and row of the whole profile of a row of one of `lane_indexes`."""
        return number, int(row_numbers(row_part(replace(self, range=None).rows(number), row, row + 1))[0])

    @property
    def work_indexes(self) -> list[LaneIndex]:
        """Those of `lane_indexes` whose work counts in sums; a lane alone always does."""
        return [index for number, index in self.lane_indexes.items() if index.lane.in_sums or number == self.scope.lane]

    @cached_property
    def owners(self) -> frozenset[int]:
        """Ids of the groups of the scope: on lanes outside them, what they submitted counts. Empty: everything."""
        return self.profile.groups.within(self.scope.group) if self.scope.lane < 0 else frozenset()

    def longest_work(self) -> tuple[int, int] | None:
        """Lane and row of the longest work (the first of equals), on the device, else on the host; None: no work."""
        host = [number for number in self.session.lanes_in(self.scope) if number not in self.lanes]
        for lanes in (self.lanes, host):
            work = self.events(("lane", "row", "start", "end"), lanes, role=Role.WORK)
            if len(work):
                longest = int((work["end"] - work["start"]).argmax())
                return int(work["lane"][longest]), int(work["row"][longest])
        return None

    def step_text(self) -> str:
        """Suffix of headings that names the step; empty: all steps."""
        return "" if self.step is None else f", {self.steps.word.one} {self.step} only"


def query_of(profile: Profile, **selection: Any) -> Query:
    """A query about a newly opened profile: the one way to ask it; further ones share its ``session``."""
    return Query(Session(with_derived_columns(profile)), **selection)


def _scope_in(profile: Profile, other: Profile, scope: Scope) -> Scope | None:
    """The scope with the same titles in another profile; None if it has none."""
    if scope.everything:
        return scope
    if scope.lane >= 0:
        title = other.title_of(other.lanes[scope.lane])
        titles = list(map(profile.title_of, profile.lanes))
        return Scope(lane=titles.index(title)) if title in titles else None
    titles = list(map(profile.groups.title, range(len(profile.groups))))
    title = other.groups.title(scope.group)
    return Scope(titles.index(title)) if title in titles else None
