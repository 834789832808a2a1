"""A profile made ready for the screen: indexes, numbers of instructions over all lanes, values of cells and sorts."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from tpuprof_tui.formats.text import in_sentence
from tpuprof_tui.formats.units import plural
from tpuprof_tui.model import Column, Profile
from tpuprof_tui.model.lane import row_numbers

from ..derived import Derived
from ..index import ordering
from ..index.lane_index import rows_between
from ..index.ordering import lane_values
from ..steps.step_detection import ProfileSteps, steps_of, with_steps
from ..totals.exposed import with_exposed
from ..totals.figures import Headline, Indexes, build_indexes, headline
from ..totals.work_sums import owners_of
from .state import Scope, Sort

__all__ = ["Ints", "Session", "lane_values", "numbers_in", "ordered"]

Ints = npt.NDArray[np.int64]

#: Columns the table begins with: what, when, how long.
_FIRST: Final = ("engine", "core", "order", "name", "start", "duration", "exposed", "kernel")
#: Columns that every lane can answer, whether the source names them or not.
_OF_LANE: Final = ("engine", "core", "port", "duration")


# said in a few words: Textual says the arguments of a thread in its log, and a profile's columns take seconds to say
class Session(Struct, frozen=True, eq=False, dict=True, weakref=True):
    """A profile and what the views derive from it once.

    Instructions are numbered over all lanes: ``offsets[lane] + row``. Views hold such numbers, never rows of values.

    Attributes:
        profile: The profile.
        derived: All that is computed of it and kept.
        baseline: What it is compared with; None: nothing.
    """

    profile: Profile
    derived: Derived = field(default_factory=Derived)
    baseline: Session | None = None

    @classmethod
    def build(cls, profile: Profile) -> Session:
        """A profile with its indexes and headline; meant for a thread."""
        session = cls.of(profile)
        _ = session.headline
        return session

    @classmethod
    def of(cls, profile: Profile) -> Session:
        """A profile of which nothing is computed yet."""
        return cls(with_steps(with_exposed(profile)), Derived(profile.arrays.give_back))

    @cached_property
    def indexes(self) -> Indexes:
        """Index of each lane."""
        return self.derived.get("indexes", lambda: build_indexes(self.profile))

    @cached_property
    def offsets(self) -> Ints:
        """int64, number of the first instruction of each lane, and the number of all at the end."""
        return self.derived.get("offsets", lambda: ordering.first_numbers(self.profile))

    @cached_property
    def headline(self) -> Headline:
        """Figures of the whole profile."""
        return self.derived.get("headline", lambda: headline(self.profile, self.indexes))

    @cached_property
    def steps(self) -> ProfileSteps:
        """The steps, and which of them events belong to; O(instructions) the first time."""
        return self.derived.get("steps", lambda: steps_of(self.profile))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns the table shows: those that some lane knows, the preferred ones first."""
        return self.derived.get("columns", self._columns)

    def _columns(self) -> tuple[Column, ...]:
        lanes = self.profile.lanes
        known: set[str] = set().union(*(lane.keys() for lane in lanes), _OF_LANE)
        if all(self.profile.unit_of(lane) >= 0 or lane.number < 0 for lane in lanes):
            known.discard("port")
        columns = [
            column
            for column in self.profile.vocabulary.columns
            if column.key in known and (not lanes or any(column.applies_to(lane.kind) for lane in lanes))
        ]
        first = {key: place for place, key in enumerate(_FIRST)}
        return tuple(sorted(columns, key=lambda column: (first.get(column.key, len(_FIRST)), not column.shown)))

    def number(self, lane: int, row: int) -> int:
        """Number of an instruction."""
        return int(self.offsets[lane]) + row

    def place(self, number: int) -> tuple[int, int]:
        """Lane and row of an instruction's number."""
        lane = int(np.searchsorted(self.offsets, number, side="right")) - 1
        return lane, number - int(self.offsets[lane])

    def lanes_in(self, scope: Scope) -> tuple[int, ...]:
        """Indexes of the lanes of a scope; of a group also those of no unit that it submitted to."""
        if scope.lane >= 0:
            return (scope.lane,)
        lanes = range(len(self.profile.lanes))
        if scope.group < 0:
            return tuple(lanes)
        within, indexes = self.profile.groups.within(scope.group), self.indexes
        return tuple(
            number
            for number in lanes
            if self.profile.lanes[number].group in within
            or (self.unit_of(number) < 0 and not within.isdisjoint(owners_of(indexes[number])))
        )

    def unit_of(self, lane: int) -> int:
        """Id of the unit of a lane; -1 where it belongs to none."""
        return self.profile.unit_of(self.profile.lanes[lane])

    def title_of(self, lane: int) -> str:
        """What a lane is called."""
        return self.profile.title_of(self.profile.lanes[lane])

    def span_of(self, lane: int, row: int) -> tuple[int, int]:
        """Start and end of an instruction, ns."""
        rows = slice(row, row + 1)
        events = self.profile.lanes[lane]
        return int(events.take("start", rows)[0]), int(events.take("end", rows)[0])

    @cached_property
    def device_window(self) -> tuple[int, int]:
        """First start and last end of the device's instructions, ns; of all where a host alone was traced."""
        device = self.profile.device_part
        known = device if device.instructions else self.profile
        return known.start_ns, known.end_ns

    def counted(self, start: int, end: int, lane: int = -1) -> tuple[int, int]:
        """The part of a window that shares and sums are of, in all panes.

        The host begins before the device and ends after it: of cores, ports and their lanes only the device's time
        counts, of a ``lane`` of the host all of the window.
        """
        if lane >= 0 and self.profile.lanes[lane].on_host:
            return start, end
        first, last = self.device_window
        start = max(start, first)
        return start, max(min(end, last), start)

    def count_text(self, numbers: Ints) -> str:
        """How many instructions of the device some are, as all panes count them, and how many slices of the host."""
        on_host = np.array([lane.on_host for lane in self.profile.lanes], np.bool_)
        if not on_host.any():
            return self.profile.vocabulary.event.of(len(numbers))
        slices = int(np.count_nonzero(on_host[np.searchsorted(self.offsets, numbers, side="right") - 1]))
        told = self.profile.vocabulary.event.of(len(numbers) - slices)
        return f"{told} and {plural(slices, 'host slice')}" if slices else told

    def say(self, sentence: str, **more: object) -> str:
        """A sentence in the words of the profile's source (``Vocabulary.say``)."""
        return self.profile.vocabulary.say(sentence, **more)

    def scope_title(self, scope: Scope) -> str:
        """What a scope is called."""
        if scope.lane >= 0:
            return self.title_of(scope.lane)
        return self.say("all {units}") if scope.group < 0 else in_sentence(self.profile.groups.title(scope.group))


def numbers_in(session: Session, scope: Scope, window: tuple[int, int] | None) -> Ints:
    """Numbers of the instructions of a scope, int64, ascending; of a window [start, end) those that run or start in it.

    A group's scope holds of lanes of no unit only what it submitted.
    """
    if scope.everything and window is None:
        return np.arange(session.profile.instructions, dtype=np.int64)
    parts: list[Ints] = []
    within = session.profile.groups.within(scope.group) if scope.lane < 0 else frozenset[int]()
    for number in session.lanes_in(scope):
        lane = session.profile.lanes[number]
        rows = slice(0, len(lane)) if window is None else rows_between(session.indexes[number], *window)
        found = row_numbers(rows)
        if within and lane.group not in within:
            found = found[np.isin(lane.take("owner", found), list(within))]
        parts.append(found + session.offsets[number])
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def ordered(session: Session, numbers: Ints, sort: Sort) -> Ints:
    """``numbers`` (ascending) in the order of a sort: equals stay as they were, what is missing comes last."""
    return ordering.ordered(session.profile, session.offsets, numbers, sort.key, sort.down)
