"""Session: a profile with its indexes, event numbers and cached results, computed when asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from tpuprof_tui.formats.text import in_sentence
from tpuprof_tui.formats.units import plural
from tpuprof_tui.model import Column, Profile

from ..index import ordering
from ..index.unit_index import Indexes, build_indexes, owners_of
from ..result_cache import ResultCache
from .state import Scope, Sort

Ints = npt.NDArray[np.int64]

#: The first columns of the table.
_FIRST: Final = ("engine", "core", "order", "name", "start", "duration", "exposed", "kernel")
#: Columns available for every lane, whether the source provides them or not.
_OF_LANE: Final = ("engine", "core", "port", "duration")


# the repr must stay short: Textual logs the arguments of workers, and the repr of a profile's columns takes seconds
class Session(Struct, frozen=True, eq=False, dict=True, weakref=True):
    """A profile and the data that views derive from it once.

    Events are numbered across all lanes: ``offsets[lane] + row``. Views hold such numbers, not rows of values.
    """

    profile: Profile  #: The profile, as ``open_profile`` returns it
    cache: ResultCache = field(default_factory=ResultCache)  #: Cache of all results computed from it
    baseline: Session | None = None  #: Session of the profile that it is compared with; None: no comparison

    def __post_init__(self) -> None:
        self.cache.after = self.profile.arrays.release_pages

    @cached_property
    def indexes(self) -> Indexes:
        """Index of each lane, by lane number."""
        return self.cache.get("indexes", lambda: build_indexes(self.profile))

    @cached_property
    def offsets(self) -> Ints:
        """Number of the first event of each lane, then the total count; int64, lanes + 1."""
        return self.cache.get("offsets", lambda: ordering.lane_offsets(self.profile))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the table: those that any lane has, the preferred ones first."""
        return self.cache.get("columns", self._columns)

    def _columns(self) -> tuple[Column, ...]:
        lanes = self.profile.lanes
        keys: set[str] = set().union(*(lane.keys() for lane in lanes), _OF_LANE)
        if all(self.profile.unit_of(lane) >= 0 or lane.number < 0 for lane in lanes):
            keys.discard("port")
        columns = [
            column
            for column in self.profile.vocabulary.columns
            if column.key in keys and (not lanes or any(column.applies_to(lane.kind) for lane in lanes))
        ]
        ranks = {key: rank for rank, key in enumerate(_FIRST)}
        return tuple(sorted(columns, key=lambda column: (ranks.get(column.key, len(_FIRST)), not column.shown)))

    def number(self, lane: int, row: int) -> int:
        """Number of the event in a row of a lane."""
        return int(self.offsets[lane]) + row

    def locate(self, number: int) -> tuple[int, int]:
        """Lane and row of an event number."""
        lane = int(np.searchsorted(self.offsets, number, side="right")) - 1
        return lane, number - int(self.offsets[lane])

    def lanes_in(self, scope: Scope) -> tuple[int, ...]:
        """Indexes of the lanes in a scope; for a group also lanes outside any unit that it submitted work to."""
        if scope.lane >= 0:
            return (scope.lane,)
        lanes = range(len(self.profile.lanes))
        if scope.group < 0:
            return tuple(lanes)
        within = self.profile.groups.within(scope.group)
        return tuple(
            number
            for number in lanes
            if (lane := self.profile.lanes[number]).group in within
            or ("owner" in lane and self.unit_of(number) < 0 and not within.isdisjoint(owners_of(self.indexes[number])))
        )

    def unit_of(self, lane: int) -> int:
        """Id of a lane's unit; -1: none."""
        return self.profile.unit_of(self.profile.lanes[lane])

    def title_of(self, lane: int) -> str:
        """Display title of a lane."""
        return self.profile.title_of(self.profile.lanes[lane])

    def span_of(self, lane: int, row: int) -> tuple[int, int]:
        """Start and end of an event, ns."""
        rows = slice(row, row + 1)
        events = self.profile.lanes[lane]
        return int(events.take("start", rows)[0]), int(events.take("end", rows)[0])

    def clip_window(self, start: int, end: int, lane: int = -1, group: int = -1) -> tuple[int, int]:
        """Clips a window to the time that shares and sums refer to, in all panes.

        The host starts before the device and ends after it: units, ports and their lanes count only the device's time,
        a ``lane`` of the host the whole window. What one of several sessions recorded, a lane or a ``group``, counts
        only the time of that session.
        """
        profile = self.profile
        first, last = profile.window_of(profile.lanes[lane]) if lane >= 0 else profile.window_of_group(group)
        start = max(start, first)
        return start, max(min(end, last), start)

    def count_text(self, numbers: Ints) -> str:
        """Describes the number of device events and of host slices among some events."""
        on_host = np.array([lane.on_host for lane in self.profile.lanes], np.bool_)
        if not on_host.any():
            return self.profile.vocabulary.event.of(len(numbers))
        slices = int(np.count_nonzero(on_host[np.searchsorted(self.offsets, numbers, side="right") - 1]))
        events = self.profile.vocabulary.event.of(len(numbers) - slices)
        return f"{events} and {plural(slices, 'host slice')}" if slices else events

    def say(self, sentence: str, **more: object) -> str:
        """Fills a sentence with the words of the profile's source (``Vocabulary.say``)."""
        return self.profile.vocabulary.say(sentence, **more)

    def scope_title(self, scope: Scope) -> str:
        """Display title of a scope."""
        if scope.lane >= 0:
            return self.title_of(scope.lane)
        return self.say("all {units}") if scope.group < 0 else in_sentence(self.profile.groups.title(scope.group))


def ordered(session: Session, numbers: Ints, sort: Sort) -> Ints:
    """``numbers`` (ascending) in sort order; stable, missing values last."""
    return ordering.ordered(session.profile, session.offsets, numbers, sort.key, sort.down)
