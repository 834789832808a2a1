"""A profile: the lanes of one capture, its device, counters, links, steps, and problems."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from tpuprof_tui.errors import requires_package
from tpuprof_tui.formats.units import time_text

from .columns import LANE_KIND
from .group import Groups, Worker
from .lane import Array, Lane, LazyColumn, Meaning, Rows, constant, row_count
from .mapped_arrays import MappedArrays
from .missing import INT_MISSING
from .notebook_display import html_table, short
from .strings import Strings
from .table import Table
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    import pandas

#: Share of lost events from which on nothing is concluded from the others (``Problem.fragmentary``).
FRAGMENTARY: Final = 0.05
#: Maximum number of lanes in the HTML table of a notebook.
_MOST_SHOWN: Final = 20


#: Plausible wall-clock times: years 2000 to 2100, ns since 1970.
_TIMES_OF_DAY: Final = range(946_684_800 * 10**9, 4_102_444_800 * 10**9)


def time_of_day(ns: int) -> int | None:
    """Returns ``ns`` if it is a plausible wall-clock time (ns since 1970); None for clocks that start at boot."""
    return ns if ns in _TIMES_OF_DAY else None


class Redaction(Protocol):
    """Replaces hosts, users, paths and names of captures by placeholders."""

    def text(self, text: str) -> str:
        """Redacts a text."""

    def name(self, text: str) -> str:
        """Redacts the name of an event."""


class Device(Struct, frozen=True):
    """The device that a profile was captured on."""

    chip: str  #: Name of the chip ("AKS")
    arch: str | None = None  #: The ``arch`` value as captured; None if absent
    #: (name, MHz) of each clock that cycles are counted in, the main one first; 0 if unknown.
    clocks: tuple[tuple[str, float], ...] = ()
    peaks: tuple[tuple[str, float], ...] = ()  #: (name, GB/s) peak bandwidths of the memories of one unit; 0 if unknown
    parameters: tuple[tuple[str, str], ...] = ()  #: (label, value) pairs of the architecture, in the order of printing

    def clock(self, name: str) -> float:
        """Frequency of a clock, MHz; 0 if there is no clock of this name."""
        return dict(self.clocks).get(name, 0)

    def peak(self, name: str) -> float:
        """Peak bandwidth of a memory, GB/s; 0 if unknown."""
        return dict(self.peaks).get(name, 0.0)


class RecordingMode(Struct, frozen=True):
    """Recording mode of a profile: its name ("mode 1"), a short form for columns ("1"), and its meaning."""

    name: str = ""
    short: str = ""
    meaning: str = "unknown"


class Scopes(Struct, frozen=True):
    """Kernel launches, one entry per launch."""

    #: int32 codes into ``Profile.strings["kernel"]``, by scope id.
    kernel: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    #: int32 id of the group that launched it, by scope id.
    group: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    def __len__(self) -> int:
        return len(self.kernel)


class Counter(Struct, frozen=True, eq=False):
    """A counter: samples of one quantity in ascending order of time. Immutable.

    Raises:
        ValueError: Times and values differ in length.
    """

    group: int  #: Id of the group it was measured for; -1: the whole profile
    name: str  #: Name of the quantity
    unit: str  #: Unit of the values ("B", "GB/s", "MHz"); empty without one
    times: npt.NDArray[np.int64]  #: int64 ns on the profile's time line, ascending
    values: npt.NDArray[np.float64]  #: float64, one per time; NaN: missing
    family: str = ""  #: Name of the quantity that counters of the same group are parts of (``HBM``); empty: none

    def __post_init__(self) -> None:
        if len(self.times) != len(self.values):
            raise ValueError("a counter has another number of times than of values")
        self.times.flags.writeable = self.values.flags.writeable = False

    def __len__(self) -> int:
        return len(self.times)


class Links(Struct, frozen=True, eq=False):
    """Links (dependencies) between events, in columns of one length. Immutable.

    Events are numbered across all lanes of the profile, lane by lane.

    Raises:
        ValueError: The columns differ in length.
    """

    kinds: tuple[str, ...]  #: Names of the kinds of links ("launch")
    kind: npt.NDArray[np.int8]  #: int8 codes into ``kinds``
    #: from_row, to_row: int64 event numbers of cause and effect.
    from_row: npt.NDArray[np.int64]
    to_row: npt.NDArray[np.int64]
    #: Codes of kinds where the cause ends the effect, which is a wait; in other kinds it starts the effect.
    ending: frozenset[int] = frozenset()
    guessed: frozenset[int] = frozenset()  #: Codes of kinds that are guesses
    #: Codes of ``ending`` kinds whose wait ends when the cause begins, as in a collective.
    meeting: frozenset[int] = frozenset()
    launching: frozenset[int] = frozenset()  #: Codes of kinds where the cause launched the effect

    def __post_init__(self) -> None:
        if not len(self.kind) == len(self.from_row) == len(self.to_row):
            raise ValueError("columns of links are not of one length")
        for column in (self.kind, self.from_row, self.to_row):
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.kind)

    def renumbered(self, numbers: npt.NDArray[np.int64]) -> Links:
        """Links between the kept events.

        Args:
            numbers: int64, new number of each event; -1: dropped, with its links.
        """
        first, second = numbers[self.from_row], numbers[self.to_row]
        kept = (first >= 0) & (second >= 0)
        return replace(self, kind=self.kind[kept], from_row=first[kept], to_row=second[kept])


class Steps(Struct, frozen=True, eq=False):
    """Steps of all groups in columns of one length. Immutable.

    The column ``step`` of an event is the number of its step: device work belongs to the step that launched it,
    regardless of when it ran.

    Raises:
        ValueError: The columns differ in length.
    """

    labels: Strings = field(default_factory=Strings)  #: The distinct labels
    label: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))  #: int32 codes into ``labels``
    #: int32 ids of the groups that ran the steps; -1: the whole profile.
    group: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    #: start, end: int64 ns on the profile's time line.
    start: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    end: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    #: int64, unique within a group, as users type it (1009 of "ProfilerStep#1009"); by default counted from 0 in each
    #: group.
    number: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        if not len(self.number):
            force_setattr(self, "number", occurrence_numbers(self.group))
        columns = (self.label, self.group, self.start, self.end, self.number)
        if len({len(column) for column in columns}) != 1:
            raise ValueError("columns of steps are not of one length")
        for column in columns:
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.start)

    def counts(self) -> dict[str, int]:
        """Number of steps by label, in the order of ``labels``."""
        counted = np.bincount(self.label[self.label >= 0], minlength=len(self.labels))
        return {label: int(count) for label, count in zip(self.labels, counted, strict=True)}


class Severity(IntEnum):
    """Severity of a problem."""

    NOTE = 0
    WARNING = 1
    ERROR = 2

    @property
    def word(self) -> str:
        """Lower-case name, as written to files."""
        return self.name.lower()


@dataclasses.dataclass(frozen=True)
class Problem:
    """A defect of a capture."""

    severity: Severity  #: NOTE: repaired or assumed; WARNING: ambiguous; ERROR: recorded data is lost or unreadable
    what: str  #: What happened, one sentence
    done: str = ""  #: What was done about it, or what to do next
    file: str = ""  #: Name of the file inside the capture; empty if it concerns no single file
    offset: int = -1  #: Byte offset in that file; -1 if unknown
    group: int = -1  #: Id of the group concerned; -1 if it concerns no single group
    lane: str = ""  #: Label of the lane concerned, within its group; empty if none
    count: int = 1
    #: int64, ascending: rows of that lane that it concerns; None if there are none or they are unknown.
    rows: npt.NDArray[np.int64] | None = dataclasses.field(default=None, compare=False, repr=False)
    lost: int = dataclasses.field(default=0, compare=False)  #: Number of records that are known to be lost
    #: Number of launches, of which ``lost`` left no record; 0: the lost are records themselves.
    launches: int = dataclasses.field(default=0, compare=False)
    #: Whether so many of the device's events are lost that nothing is concluded from the others.
    fragmentary: bool = dataclasses.field(default=False, compare=False)
    #: Number of records that are shown otherwise than they were recorded.
    repaired: int = dataclasses.field(default=0, compare=False)
    #: Whether records are missing: ``rows`` are then those directly after the gap.
    after_gap: bool = dataclasses.field(default=False, compare=False, repr=False)
    #: Whether it is not known what ``rows`` are, while their times are.
    unnamed: bool = dataclasses.field(default=False, compare=False, repr=False)

    def as_record(self, groups: Groups, unit: str) -> dict[str, Any]:
        """Plain values for JSON; the key ``unit`` ("core") holds the number of the unit in place of the group."""
        record = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.compare}
        number = groups.unit_number(record["group"])
        overrides = {"severity": self.severity.word, "offset": None if self.offset < 0 else self.offset,
                "group": None if number < 0 else number}  # fmt: skip
        return {unit if key == "group" else key: overrides.get(key, value) for key, value in record.items()}

    def is_about(self, lane: Lane, groups: Groups) -> bool:
        """Whether the problem concerns a lane."""
        in_group = self.group < 0 or lane.group in groups.within(self.group)
        return bool(self.lane) and self.lane == lane.label and in_group


class Profile(Struct, frozen=True, eq=False, dict=True, weakref=True):
    """All data of one capture. Immutable."""

    path: str  #: Where it was read from
    name: str  #: Short name for headings
    vocabulary: Vocabulary  #: Terms, columns and capabilities of its source
    device: Device
    recording: RecordingMode
    capabilities: frozenset[str]  #: Keys of the capabilities (of the vocabulary) that it has
    #: Source-specific data about the recording, for `info` and for the source's own files.
    source_data: Mapping[str, Any]
    groups: Groups  #: Tree of groups that lanes belong to, including idle units and groups without data
    lanes: tuple[Lane, ...]  #: Lanes by group, in the order of groups
    strings: Mapping[str, Strings]  #: String table of each text column, by column key
    scopes: Scopes
    problems: tuple[Problem, ...]
    tail_ns: int | None = None  #: Largest end of all records, ns on the profile's time line; None without records
    #: Host time from the last record to the end of ``disable_profile``; None if not captured.
    tail_offset_ns: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)  #: Further facts from the source, for `info`
    #: Whether events have times; if not, lanes hold commands in the order of issue, and start, end and duration are
    #: ``INT_MISSING``.
    timed: bool = True
    counters: tuple[Counter, ...] = ()  #: Counters of the capture
    steps: Steps = field(default_factory=Steps)  #: Steps of the run, from the source
    #: Rows that the source recorded beside the events: at most one of each name and group.
    tables: tuple[Table, ...] = ()
    #: The recordings that it consists of, in the order of their groups; None: one of the whole profile.
    workers: tuple[Worker, ...] | None = None
    #: Names of hosts and users in the recording, with their kind (host or user), for redaction.
    identities: Mapping[str, str] = field(default_factory=dict)
    epoch_ns: int = 0  #: Time of the source's clock at the zero of the time line, ns; 0: the time line has its own zero
    wall_ns: int | None = None  #: Wall-clock time (UTC) at the zero of the time line, ns since 1970; None if unknown
    #: Builds the links that the source knows, at each call; None if it knows none.
    links: Callable[[], Links] | None = None
    redactor: Redaction | None = None  #: Replaces hosts, users and paths in texts about the profile; None: no redaction
    notes: str = ""  #: Path of the file of notes; empty: next to the profile
    more_follows: bool = False  #: Whether it is a partial result of a load in progress
    arrays: MappedArrays = field(default_factory=MappedArrays)  #: Storage for columns and derived arrays

    def __post_init__(self) -> None:
        """Adds the derived columns (kind, duration, unit and port number) and ``meaning`` to all lanes."""
        lacking = [lane.kind for lane in self.lanes if LANE_KIND.key not in lane]
        kinds = Strings(dict.fromkeys((*self.strings.get(LANE_KIND.key, ()), *lacking)))
        if lacking or LANE_KIND.key not in self.strings:
            force_setattr(self, "strings", {**self.strings, LANE_KIND.key: kinds})
        codes = {kind: code for code, kind in enumerate(kinds)}
        meaning = next((each for lane in self.lanes if (each := lane.meaning) is not None), None)
        if meaning is None or meaning.strings is not self.strings or meaning.schema is not self.vocabulary.schema:
            meaning = Meaning(self.vocabulary.schema, self.strings)
        lanes = []
        for lane in self.lanes:
            more = {key: values for key, values in self._own_columns(lane, codes) if key not in lane}
            if more or lane.meaning is not meaning:
                lane = replace(lane, columns={**lane.columns, **more}, meaning=meaning)
            lanes.append(lane)
        force_setattr(self, "lanes", tuple(lanes))

    def _own_columns(self, lane: Lane, kinds: Mapping[str, int]) -> Iterator[tuple[str, LazyColumn]]:
        """Yields the derived lazy columns of a lane: kind, duration, number of the unit, number of the port."""
        count, unit = len(lane), self.unit_number(lane)
        if lane.kind in kinds:
            yield LANE_KIND.key, constant(count, kinds[lane.kind], np.int32)
        yield "duration", partial(_durations, lane)
        if self.unit_of(lane) < 0 and "owner" in lane:
            yield "core", partial(_numbers_of_owners, self.groups, lane)
        elif unit >= 0:
            yield "core", constant(count, unit, np.int64)
        port = self.vocabulary.schema.get("port")
        if port is not None and port.applies_to(lane.kind) and self.unit_of(lane) < 0 <= lane.number:
            yield "port", constant(count, lane.number, np.int64)

    def __repr__(self) -> str:
        return f"<Profile {short(self.name)}: {', '.join(self._summary_words())}>"

    def _repr_html_(self) -> str:
        words = self.vocabulary
        lanes = [(self.title_of(lane), lane.kind, f"{len(lane):,}") for lane in self.lanes[:_MOST_SHOWN]]
        more = len(self.lanes) - len(lanes)
        notes = (", ".join(self._summary_words()), *((f"{more:,} more {words.lane.plural}",) if more else ()))
        return html_table(self.name, (words.lane.one, "kind", words.event.plural), lanes, notes)

    def _summary_words(self) -> Iterator[str]:
        words = self.vocabulary
        yield words.title or "a profile"
        yield words.unit.of(self.groups.device_count)
        yield words.lane.of(len(self.lanes))
        yield words.event.of(self.event_count)
        yield time_text(self.end_ns - self.start_ns) if self.timed else "no times"
        if self.problems:
            yield f"{len(self.problems):,} problem{'s' if len(self.problems) > 1 else ''}"

    def has(self, capability: str) -> bool:
        """Whether the profile has a capability, by key."""
        return capability in self.capabilities

    @cached_property
    def event_count(self) -> int:
        """Number of events of all lanes."""
        return sum(len(lane) for lane in self.lanes)

    @cached_property
    def is_fragmentary(self) -> bool:
        """Whether many of the device's events are lost: idle time, sums and lengths are then not known."""
        return any(each.fragmentary for each in self.problems)

    @cached_property
    def start_ns(self) -> int:
        """Smallest start of all events, ns; 0 without events or times."""
        return min((int(lane["start"][0]) for lane in self._timed_lanes), default=0)

    @cached_property
    def end_ns(self) -> int:
        """Largest end of all events, ns; 0 without events or times."""
        return max((int(lane["end"].max()) for lane in self._timed_lanes), default=0)

    @property
    def _timed_lanes(self) -> Iterator[Lane]:
        return (lane for lane in self.lanes if len(lane) and self.timed and not lane.is_aside)

    @cached_property
    def device_part(self) -> Profile:
        """The profile without host lanes; the base of device figures."""
        device = [None if lane.on_host else slice(0, len(lane)) for lane in self.lanes]
        return self if None not in device else self.restricted_to(device)

    @cached_property
    def windows(self) -> tuple[tuple[int, int], ...]:
        """Window (start, end), ns, of each session in their order: that of its device, of its host if it has none."""
        if len(self.groups.sessions) == 1:
            part = device if (device := self.device_part).event_count else self
            return ((part.start_ns, part.end_ns),)
        return tuple(self._extent(session, on_host=False) or self._extent(session, on_host=True) or (0, 0)
                     for session in self.groups.sessions)  # fmt: skip

    def length_between(self, start: int, end: int) -> int:
        """Length, ns, of what the windows have in [start, end): the time between two sessions is none."""
        return sum(max(min(end, last) - max(start, first), 0) for first, last in self.windows)

    @property
    def device_ns(self) -> int:
        """Length of the recording, ns: the sum of ``windows``."""
        return self.length_between(*self.window_of_group(-1))

    def _extent(self, session: int, *, on_host: bool) -> tuple[int, int] | None:
        """First start and last end of a session's events; without the host's unless ``on_host``; None: no events."""
        lanes = [lane for lane in self._timed_lanes if (on_host or not lane.on_host)
                 and self.groups.session(lane.group) == session]  # fmt: skip
        if not lanes:
            return None
        return min(int(lane["start"][0]) for lane in lanes), max(int(lane["end"].max()) for lane in lanes)

    def window_of(self, lane: Lane) -> tuple[int, int]:
        """Window (start, end), ns, of a lane: that of its session, on the host from its first to its last event."""
        session = self.groups.session(lane.group)
        if lane.on_host:
            several = len(self.groups.sessions) > 1
            return (self._extent(session, on_host=True) if several else None) or (self.start_ns, self.end_ns)
        return self.windows[self.groups.sessions.index(session)]

    def window_of_group(self, group: int) -> tuple[int, int]:
        """Window (start, end), ns, of the session of a group; of all sessions for -1."""
        if group >= 0:
            return self.windows[self.groups.sessions.index(self.groups.session(group))]
        return min(start for start, _ in self.windows), max(end for _, end in self.windows)

    def restricted_to(self, rows: Sequence[Rows | None]) -> Profile:
        """The profile restricted to some events and the links between them.

        Args:
            rows: Ascending rows to keep, one entry per lane; None: the lane is dropped.
        """
        lanes = tuple(
            lane if isinstance(kept, slice) and kept == slice(0, len(lane)) else lane.select_rows(kept)
            for lane, kept in zip(self.lanes, rows, strict=True)
            if kept is not None
        )

        @cache
        def numbers() -> npt.NDArray[np.int64]:
            """New number of each event, -1 if it is dropped; and -1 at the end."""
            parts, first = [], 0
            for lane, kept in zip(self.lanes, rows, strict=True):
                of_lane = np.full(len(lane), -1, np.int64)
                if kept is not None:
                    count = row_count(kept)
                    of_lane[kept] = np.arange(first, first + count)
                    first += count
                parts.append(of_lane)
            return np.concatenate([*parts, np.full(1, -1, np.int64)])

        links, tables = self.links, tuple(table.renumbered(numbers) for table in self.tables)
        restricted = None if links is None else lambda: links().renumbered(numbers()[:-1])
        return replace(self, lanes=lanes, tables=tables, links=restricted)

    @property
    def units(self) -> tuple[int, ...]:
        """Ids of the groups that figures are computed for, ascending."""
        return self.groups.units

    @cached_property
    def timed_part(self) -> Profile:
        """The profile without lanes that have no times; for pictures."""
        timed = [slice(0, len(lane)) if self.timed and not lane.is_aside else None for lane in self.lanes]
        return self if None not in timed else self.restricted_to(timed)

    def lanes_of(self, group: int) -> tuple[Lane, ...]:
        """Lanes of a group and its descendants."""
        within = self.groups.within(group)
        return tuple(lane for lane in self.lanes if lane.group in within)

    def unit_of(self, lane: Lane) -> int:
        """Id of the unit that a lane belongs to; -1 if none."""
        return self.groups.unit_of(lane.group)

    def unit_number(self, lane: Lane) -> int:
        """Number of the unit that a lane belongs to; -1 if none."""
        return self.groups.unit_number(lane.group)

    def title_of(self, lane: Lane) -> str:
        """Titles of the group and the lane, for messages and headings."""
        return f"{self.groups.title(lane.group)} {lane.label}".lstrip()

    def number_of(self, lane: Lane) -> int:
        """Number that identifies a lane within its kind: that of its unit, or its own if it belongs to no unit."""
        return lane.number if self.unit_of(lane) < 0 else self.unit_number(lane)

    def lane(self, kind: str, number: int) -> Lane | None:
        """The first lane of a kind with a number (see `number_of`); None if there is none."""
        return next((lane for lane in self.lanes if lane.kind == kind and self.number_of(lane) == number), None)

    def numbers_in(self, kind: str) -> tuple[int, ...]:
        """Numbers of the lanes and direct child groups of all groups of a kind, ascending."""
        parents = {id_ for id_, group in enumerate(self.groups) if group.kind == kind}
        below = [group.number for group in self.groups if group.parent in parents and not group.lost]
        return tuple(sorted({*below, *(lane.number for lane in self.lanes if lane.group in parents)}))

    def text(self, key: str, code: int) -> str:
        """Text for a code of a text column."""
        return self.strings[key][code]

    def table(self, name: str, group: int = -1) -> Table | None:
        """The table of a name about a group; None if there is none."""
        return next((table for table in self.tables if table.name == name and table.group == group), None)

    def to_pandas(self, *, counters: bool = False) -> pandas.DataFrame:
        """All events as one data frame, by lane, then start; imports pandas.

        Columns have the keys of the source's schema, as in filters, ``--columns`` and Parquet; ``lane`` is the index in
        ``lanes``. Text columns become categoricals, missing integers ``pandas.NA`` (nullable Int64), missing floats
        NaN. ``counters``: includes the raw hardware counters, which are many columns.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        with requires_package("A data frame"):
            import pandas

        frames = []
        for number, lane in enumerate(self.lanes):
            if len(lane):
                frame = lane.to_pandas(counters=counters)
                frame.insert(0, "lane", number)
                frames.append(frame)
        joined: pandas.DataFrame = pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()
        return joined


def _numbers_of_owners(groups: Groups, lane: Lane, rows: Rows) -> Array:
    """Lazy column: numbers of the units that submitted the events."""
    return groups.unit_numbers(lane.take("owner", rows))


def _durations(lane: Lane, rows: Rows) -> Array:
    """Lazy column: end minus start, ns; ``INT_MISSING`` without times."""
    start = lane.take("start", rows)
    return np.where(start == INT_MISSING, INT_MISSING, lane.take("end", rows) - start)


def occurrence_numbers(*keys: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Occurrence number (from 0) of each row among the rows with equal keys."""
    order = np.lexsort(keys[::-1])
    heads = np.append(True, np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0))[: len(order)]
    turns = np.arange(len(order), dtype=np.int64)
    turns -= np.maximum.accumulate(np.where(heads, turns, 0))
    found = np.empty(len(order), np.int64)
    found[order] = turns
    return found


def worst(problems: Iterable[Problem]) -> Severity | None:
    """The highest severity among ``problems``; None if there are none."""
    return max((problem.severity for problem in problems), default=None)
