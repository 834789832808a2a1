"""Selection of the events that an export writes: by units, time range, and filter; and paging of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.filters import Predicate, compile_filter, split_step
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows, row_count
from tpuprof_tui.views.answer import Fact


class Selection(Struct, frozen=True, dict=True):
    """Selection of events; by default all."""

    #: Ids of the selected units; of lanes without a unit, events that these submitted are selected, or all if the lane
    #: does not record that. None: all.
    units: frozenset[int] | None = None
    #: start_ns, end_ns: Half-open time window; selects events that start in it. None: no bound.
    start_ns: int | None = None
    end_ns: int | None = None
    filter: str = ""  #: Filter expression; empty: none

    @property
    def everything(self) -> bool:
        """Whether all events are selected."""
        return self == Selection()

    def has_lane(self, profile: Profile, lane: Lane) -> bool:
        """Whether rows of the lane can be selected, by its unit."""
        return self.units is None or profile.unit_of(lane) in (-1, *self.units)

    def has_unit(self, unit: int) -> bool:
        """Whether a unit is selected."""
        return self.units is None or unit in self.units

    def passes(self, profile: Profile, lane: Lane) -> npt.NDArray[np.bool_]:
        """Boolean mask of the selected rows of the lane."""
        mask = np.zeros(len(lane), np.bool_)
        mask[self.rows(profile, lane)] = True
        return mask

    def rows(self, profile: Profile, lane: Lane) -> Rows:
        """Selected rows of a lane, ascending; a slice if all or none are selected."""
        if not self.has_lane(profile, lane):
            return slice(0, 0)
        if lane.is_aside and (self.start_ns is not None or self.end_ns is not None):
            return slice(0, 0)
        masks: list[npt.NDArray[np.bool_]] = []
        if self.units is not None and profile.unit_of(lane) < 0 and "owner" in lane:
            masks.append(np.isin(profile.groups.units_of(lane["owner"]), list(self.units)))
        if self.start_ns is not None:
            masks.append(lane["start"] >= self.start_ns)
        if self.end_ns is not None:
            masks.append(lane["start"] < self.end_ns)
        if self.filter:
            masks.append(self._passing(profile)(lane))
        if not masks:
            return slice(0, len(lane))
        return np.flatnonzero(np.logical_and.reduce(masks))

    def _passing(self, profile: Profile) -> Predicate:
        # parts of a profile share their names: each distinct text is matched once for all of them
        known: tuple[object, Predicate] | None = self.__dict__.get("passing")
        if known is None or known[0] is not profile.strings:
            known = self.__dict__["passing"] = profile.strings, compile_filter(self.filter, profile)
        return known[1]


def selected_profile(profile: Profile, selection: Selection) -> Profile:
    """The profile restricted to the selected events and units; columns are lazy."""
    if selection.everything:
        return profile
    groups = profile.groups.with_units([unit for unit in profile.units if selection.has_unit(unit)])
    rows = [selection.rows(profile, lane) for lane in profile.lanes]
    return replace(profile.restricted_to([some if row_count(some) else None for some in rows]), groups=groups)


def selected_query(profile: Profile, selection: Selection) -> Query:
    """The query of ``tpuprof report`` for the same selection, so that exported figures equal the reported ones.

    Views of a source read its own rows, not those of ``profile.lanes``: only a query narrows them.
    """
    (step, expression), scope, window, listed_units = split_step(selection.filter), Scope(), None, None
    if selection.start_ns is not None or selection.end_ns is not None:
        window = (
            profile.start_ns if selection.start_ns is None else selection.start_ns,
            profile.end_ns if selection.end_ns is None else selection.end_ns,
        )
    if selection.units is not None and (len(selection.units) == 1 or selection.units != frozenset(profile.units)):
        groups = profile.groups
        # the innermost group: a single unit without the host of its rank, as --core selects it
        within = (group for group in reversed(range(len(groups)))
                  if frozenset(groups.units_within(group)) == selection.units)  # fmt: skip
        scope = Scope(next(within, -1) if selection.units else -1)
        if scope.everything:
            numbers = " | ".join(f"core={number}" for number in map(groups.number, sorted(selection.units))) or "core<0"
            expression = f"({numbers}) ({expression})" if expression else f"({numbers})"
            listed_units = selection.units
    return query_of(profile, scope=scope, range=window, filter=expression, step=step, listed_units=listed_units)


def selection_facts(profile: Profile, selection: Selection) -> tuple[Fact, ...]:
    """What an exported file holds, in words for its head: units, range, step and filter; empty if it holds all."""
    (step, expression), say, facts = split_step(selection.filter), profile.vocabulary.say, []
    if selection.units is not None and selection.units != frozenset(profile.units):
        numbers = ", ".join(map(str, sorted(map(profile.groups.number, selection.units)))) or "none"
        tops = dict.fromkeys(map(profile.groups.top, sorted(selection.units)))
        ranks = [profile.groups.title(top) for top in tops if top not in selection.units]
        title = say("{Unit}" if len(selection.units) == 1 else "{Units}")
        facts.append(Fact("units", title, f"{numbers} ({', '.join(ranks)})" if ranks else numbers))
    if selection.start_ns is not None or selection.end_ns is not None:
        first = "the start" if selection.start_ns is None else f"{selection.start_ns:,} ns"
        last = "the end" if selection.end_ns is None else f"{selection.end_ns:,} ns"
        facts.append(Fact("range", "Range", f"{first} to {last}"))
    if step is not None:
        facts.append(Fact("step", "Step", str(step)))
    if expression:
        redactor = profile.redactor
        text = expression if redactor is None else redactor.text(expression)
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


def ordered_lanes(profile: Profile) -> list[Lane]:
    """Lanes sorted by unit, kind and number; lanes without a unit last."""
    rank, unit_of = {kind.key: kind.order for kind in profile.vocabulary.lane_kinds}, profile.unit_of
    return sorted(
        profile.lanes,
        key=lambda lane: (unit_of(lane) < 0, unit_of(lane), rank.get(lane.kind, len(rank)), lane.number),
    )
