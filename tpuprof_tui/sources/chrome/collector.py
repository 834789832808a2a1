"""Collects the events of a trace in columns: what any source's reader of Chrome-trace JSON has in common.

A source declares what events of each phase are decoded to (`event`, `Phases`), and in a subclass of `Collector` what it
keeps of which. Large files are read in sections, each by a collector of its own, all but the first in other processes:
decoding holds the GIL, so threads do not help. The text is cut at likely borders between two events. Each section but
the last is read as if the list of events ended there: only if it does, behind an event that can be decoded, is the
border real; if one is not, a single process reads the whole file.
"""

from __future__ import annotations

import errno
import gc
import os
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, compress, islice, repeat
from operator import is_
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Final, TypeVar, Union

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.child_process import cpu_count
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Problem, Severity

from .chunks import NOTHING, EventChunks, Tally, decoded_alone
from .columns import F64, I32, I64, Codes, GrowingColumns, exact_ns, lookup, text_of_times
from .inflate import PackedText, text_of
from .processes import child_processes

_MISSING: Final = {str: "", msgspec.Raw: NOTHING}


def event(phase: str, **fields: Any) -> Any:
    """Struct that events of a phase (``ph``) are decoded to: the types of their keys, or types and missing values."""
    pairs = [
        (key, *kind) if isinstance(kind, tuple) else (key, kind, _MISSING.get(kind)) for key, kind in fields.items()
    ]
    return msgspec.defstruct(f"Event{phase}", pairs, gc=False, tag_field="ph", tag=phase)


def complete_events(arguments: Any) -> Any:
    """Struct of events with a duration, whose arguments are decoded to a struct ``arguments``."""
    return event("X", cat=str, name=(str, "None"), pid=Any, tid=Any, ts=msgspec.Raw, dur=msgspec.Raw,
                 args=arguments | None)  # fmt: skip


class _NameArgs(msgspec.Struct, gc=False):
    name: Any = None
    labels: Any = None
    sort_index: Any = None


#: Names, labels or places of processes and threads; samples of counters; both ends of flows.
Metadata: Final = event("M", name=Any, pid=Any, tid=Any, args=_NameArgs | None)
Sample: Final = event("C", name=Any, pid=Any, ts=msgspec.Raw, args=Any)
FLOW: Final = {"cat": Any, "id": Any, "pid": Any, "tid": Any, "ts": msgspec.Raw}
FlowStart, FlowEnd = event("s", **FLOW), event("f", **FLOW)


class Phases:
    """What the events of each phase (``ph``) are decoded to.

    Args:
        methods: For each struct of events the method of a ``Collector`` that adds some; empty: none.
        skipped: Other phases that are known, whose events are left out.

    Attributes:
        any: Type of all events, also those of other phases.
        complete, begin, end: Structs of complete events, and of those that are written as begin and end: a begin has
            the fields of a complete event. None if there are no complete ones in ``methods``.
        known: Values of ``ph`` in ``methods`` and ``skipped``, and those of begins and ends.
        methods: By struct; of events of other phases ``add_unknown``.
    """

    def __init__(self, methods: dict[Any, str], skipped: str = "") -> None:
        structs = {kind.__struct_config__.tag: kind for kind in methods}
        self.complete, self.begin, self.end = structs.get("X"), None, None
        if self.complete is not None:
            fields = {field.encode_name: (field.type, msgspec.Raw(b"0") if field.name == "dur" else field.default)
                      for field in msgspec.structs.fields(self.complete)}  # fmt: skip
            self.begin, self.end = event("B", **fields), event("E", name=Any, pid=Any, tid=Any, ts=msgspec.Raw)
            structs |= {"B": self.begin, "E": self.end}
        self.known: Final = (*structs, *skipped)
        others = {phase: event(phase) for phase in ("", *"XiIMCsftBEnbe") if phase not in structs}
        self.methods = methods | {kind: "add_unknown" for phase, kind in others.items() if phase not in self.known}
        self._structs = structs | others
        self.any: Any = Union[tuple(self._structs.values())]  # noqa: UP007
        #: Keys of the fields of each phase, and whether they hold texts.
        self._fields = {phase: {field.encode_name: field.type is str for field in msgspec.structs.fields(kind)}
                        for phase, kind in self._structs.items()}  # fmt: skip

    def from_dict(self, event: dict[str, Any]) -> Any:
        """The struct of an event that was decoded alone; None if it does not fit."""
        phase = event.get("ph")
        phase = phase if isinstance(phase, str) and phase in self._structs else ""
        fields = {key: str(event[key]) if is_text else event[key] for key, is_text in self._fields[phase].items()
                  if event.get(key) is not None}  # fmt: skip
        if not isinstance(fields.get("args"), dict):
            fields.pop("args", None)
        return decoded_alone(fields | {"ph": phase}, self.any)


#: Size in bytes of the smallest section that pays, and what the first process reads while the others start up.
_SMALLEST: Final = 20 << 20
_STARTING: Final = 16 << 20
#: Most processes: more gain little, as the results are joined by one.
_MOST: Final = 8
#: Bytes in which a border is searched.
_NEAR: Final = 1 << 20
_BORDER: Final = lazy_pattern(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|ts|pid)"\s*:)')


class Section(Struct, frozen=True):
    """A byte range of a file, from the begin of an event to the end of another."""

    begin: int  #: Offset of its first event; 0: the beginning of the file
    end: int  #: Offset behind its last event; -1: the end of the file


def section_count(size: int, processes: int) -> int:
    """Number of sections for a file of ``size`` bytes and at most ``processes``; below 2: one process reads it."""
    return min(processes, _MOST, size // _SMALLEST)


def sections_of(raw: BinaryIO, size: int, processes: int) -> list[Section]:
    """Sections of a file in order, at most ``processes``; a single one if the file is small."""
    count = section_count(size, processes)
    borders = set()
    for number in range(1, count):
        target = _STARTING + number * (size - _STARTING) // count
        raw.seek(target)
        if match := _BORDER.search(raw.read(_NEAR)):
            borders.add((target + match.start() + 1, target + match.end()))
    raw.seek(0)
    ends, begins = zip(*sorted(borders), strict=True) if borders else ((), ())
    return [Section(begin, end) for begin, end in zip((0, *begins), (*ends, -1), strict=True)]


def begins_with_object(raw: BinaryIO) -> bool:
    """Whether the text of a file begins with an object, which then holds the list of events."""
    return raw.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def state_of(file: int) -> tuple[int, int]:
    """Size in bytes and modification time in ns of an open file."""
    found = os.fstat(file)
    return found.st_size, found.st_mtime_ns


def memory_bytes() -> int:
    """Physical memory in bytes, or the cgroup's limit if that is lower; 0 if unknown."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        limit = ""
    return min(found, int(limit)) if limit.isdecimal() else found


class SectionText:
    """The text of a section, with a bracket added that ends the list of events there."""

    def __init__(self, raw: BinaryIO, section: Section) -> None:
        raw.seek(section.begin)
        self._raw, self._left, self._closing = raw, section.end - section.begin, b"]"
        self.read: Callable[[int], bytes] = raw.read if section.end < 0 else self._read

    def _read(self, count: int) -> bytes:
        data = self._raw.read(min(count, self._left))
        self._left -= len(data)
        if not data:
            data, self._closing = self._closing, b""
        return data


def ended_at_border(section: Section, chunks: EventChunks[Any]) -> bool:
    """Whether the list of events of a section ends exactly at its end, behind an event that could be decoded."""
    # + 1: the added bracket
    return section.end < 0 or (
        chunks.found and not chunks.truncated and chunks.ended_sound and chunks.list_end == section.end + 1
    )


#: Events converted to columns at a time: below this numpy's call overhead dominates.
_AT_A_TIME: Final = 1 << 16
#: Columns that hold numbers of complete events.
_NUMBERS: Final = ("file_order", "first")
#: Argument of metadata events that holds what they say.
_FIELDS: Final = {"process_name": "name", "thread_name": "name", "process_labels": "labels",
                  "process_sort_index": "sort_index", "thread_sort_index": "sort_index"}  # fmt: skip


class SectionEvents(Struct, frozen=True, eq=False):
    """What a `Collector` found in a section. Codes and event numbers start at 0, offsets are those of the file."""

    state: tuple[int, int]
    count: int
    codes: dict[str, list[Any]]
    tables: dict[str, dict[str, npt.NDArray[Any]]]
    names: dict[str, dict[Any, Any]]
    defects: dict[str, tuple[int, tuple[int, str, int]]]
    metadata: dict[str, Any]
    tallies: dict[str, Tally]
    truncated: bool
    list_end: int
    text_end: int


class Collector:
    """Collects the events of a file, or of a section of it, in one pass.

    Attributes:
        codes: Values by code: ``keys`` of complete events (first category, process, thread), ``names``, and others.
        tables: Columns, of ``events`` with a row for each complete event, of ``chunks`` for each chunk of text (number
            of its first complete event, offset), of ``samples`` of counters, and others.
        names: Values of metadata events by their name, by process, or by process and thread; all as texts.
        defects: Defects of events, by kind: how often, and chunk, phases and index of the first (see ``spot``).
        count: Number of complete events so far.
        path, state: The file, its size in bytes and its modification time.
        chunks: The text as it was decoded.
        list_end, text_end: Offsets of the end of the list of events and of the text.
        packed: The text, if the file is packed.
    """

    phases: ClassVar[Phases]  #: What is decoded of events, and the methods of this class that add them
    coded: ClassVar[dict[str, str]] = {}  #: Table of codes of each column that holds codes
    #: Memory required before other processes read sections, as a multiple of the file.
    memory_factor: ClassVar[float] = 2
    in_title: ClassVar[str] = ""  #: Argument of samples of counters that is no value, but a part of the counter's name
    #: Whether events are converted to columns after each chunk.
    eager = False

    def __init__(self) -> None:
        self.codes: defaultdict[str, Codes] = defaultdict(Codes)
        self.tables: defaultdict[str, GrowingColumns] = defaultdict(GrowingColumns)
        self.names: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        self.defects: dict[str, tuple[int, tuple[int, str, int]]] = {}
        self.count = 0
        #: Number of the first complete event of each chunk of text, and the offset of each chunk.
        self.first: list[int] = []
        self.offset: list[int] = []
        #: Texts of times that are not yet converted, by table and column.
        self._waiting: defaultdict[tuple[str, str], list[bytes]] = defaultdict(list)
        #: Number of begins and of ends of slices that have none of the other.
        self._unpaired = [0, 0]
        #: Combinations of attributes of the events of counters, and the counters of each.
        self._groups = Codes()
        self._counters_of: list[list[int]] = []

    # -- the text

    def read(
        self, raw: BinaryIO, path: Path, progress: Callable[[int, int], None] | None = None,
        section: Section | None = None, *, in_object: bool = True,
    ) -> bool:  # fmt: skip
        """Reads a file or a section of it; whether its borders are right."""
        self.path, self.state = path, state_of(raw.fileno())
        size = self.state[0]
        source: Any = text_of(path, raw) if section is None else SectionText(raw, section)
        self.packed = source if isinstance(source, PackedText) else None
        begin, end = (0, -1) if section is None else (section.begin, section.end)
        self.text_end = begin

        def read(count: int) -> bytes:
            data: bytes = source.read(count)
            self.text_end += len(data)
            if progress is not None:
                progress(min(raw.tell() * size // (end if end > 0 else size or 1), size), size)
            return data

        self.chunks: EventChunks[Any] = EventChunks(
            read, self.phases.any, self.phases.from_dict, begin=begin, in_object=in_object, read_rest=end < 0
        )
        waiting = 0
        for events in self.chunks:
            self.first.append(self.count)
            self.offset.append(self.chunks.offset)
            self._add(events)
            waiting += len(events)
            # free the events now, so that the next ones reuse their memory while it is in the CPU cache
            events.clear()
            if waiting >= _AT_A_TIME or self.eager:
                self.convert()
                waiting = 0
        self.convert()
        self.list_end = self.chunks.list_end
        return section is None or ended_at_border(section, self.chunks)

    def section_events(self) -> SectionEvents:
        """What was collected; it is removed here."""
        return SectionEvents(
            self.state, self.count, {table: list(codes) for table, codes in self.codes.items()},
            {"chunks": {"first": np.array(self.first, np.int64), "offset": np.array(self.offset, np.int64)},
             **{table: columns.columns() for table, columns in self.tables.items()}},
            dict(self.names), self.defects, self.chunks.metadata, self.chunks.tallies, self.chunks.truncated,
            self.list_end, self.text_end,
        )  # fmt: skip

    def join(self, found: SectionEvents) -> None:
        """Appends the events of the section that follows."""
        codes = {table: np.array([*map(self.codes[table].__getitem__, values), -1], np.int32)
                 for table, values in found.codes.items()}  # fmt: skip
        coded = {"lane": "lanes", "title": "titles", **self.coded}
        for kind, (count, (chunk, phases, index)) in found.defects.items():
            self.count_defect(kind, count, phases, index, len(self.first) + chunk)
        for table, columns in found.tables.items():
            self.tables[table].add(**{
                key: codes[coded[key]][values] if key in coded
                else values + values.dtype.type(self.count) if key in _NUMBERS else values
                for key, values in columns.items()
            })  # fmt: skip
        chunks = self.tables.pop("chunks")
        self.first += chunks.column("first").tolist()
        self.offset += chunks.column("offset").tolist()
        for kind, names in found.names.items():
            self.names[kind] |= names
        self.count += found.count
        self.chunks.add_results(found.tallies, found.metadata, truncated=found.truncated)
        self.list_end, self.text_end = found.list_end, found.text_end

    @property
    def fault(self) -> tuple[str, str] | None:
        """What is wrong with a packed file, and what was read of it; None if it is sound, or not packed."""
        return None if self.packed is None else self.packed.fault

    def problems(self, what: str, file: str) -> Iterator[Problem]:
        """Defects of the text of a file, how it ended too early or was packed wrongly; ``what``: what it holds."""
        if self.packed is not None and self.fault:
            # how many events were lost is not known
            yield Problem(Severity.ERROR, *self.fault, file=file, offset=self.text_end,
                          lost=int(self.packed.damaged or self.packed.too_long))  # fmt: skip
        elif self.chunks.truncated:
            yield Problem(Severity.ERROR, f"The {what} ends within its list of events.", "All events before are shown.",
                          file=file, offset=self.text_end, lost=1)  # fmt: skip
        yield from self.chunks.problems(file)
        for count, what, done in zip(
            self._unpaired, ("Begins of slices (ph B) without an end.", "Ends of slices (ph E) without a begin."),
            ("They are shown with length 0.", "They were left out."), strict=True,
        ):  # fmt: skip
            if count:
                yield Problem(Severity.WARNING, what, done, file=file, count=count, lost=count)

    # -- events of one chunk

    def _add(self, events: list[Any]) -> None:
        kinds = list(map(type, events))
        found = dict.fromkeys(kinds)
        if self.phases.begin in found or self.phases.end in found:
            kinds = self._add_parts(events, kinds)
            found = dict.fromkeys(kinds)
        for kind in found:
            method = self.phases.methods.get(kind)
            if method:
                getattr(self, method)(list(compress(events, map(is_, kinds, repeat(kind)))))

    def _add_parts(self, events: list[Any], kinds: list[Any]) -> list[Any]:
        """Adds begins and ends of slices to a table; the kinds of events, begins as complete ones of length 0."""
        complete, begin, end = self.phases.complete, self.phases.begin, self.phases.end
        rows = [row for row, kind in enumerate(kinds) if kind is begin or kind is end]
        opens = np.array([kinds[row] is begin for row in rows])
        kinds = [complete if kind is begin else kind for kind in kinds]
        number = self.count + np.cumsum([kind is complete for kind in kinds])[rows]
        parts = [events[row] for row in rows]
        lane = self.codes["lanes"].of([(str(part.pid), str(part.tid)) for part in parts])
        titles = [-1 if part.name is None else self.codes["titles"][str(part.name)] for part in parts]
        self.tables["parts"].add(lane=lane, title=np.array(titles, np.int32), file_order=number - opens, opens=opens)
        self.wait("parts", "time", [part.ts for part in parts])
        return kinds

    def join_parts(self) -> None:
        """Pairs the begins and ends of each process and thread, which nest; ends may tell the name of their begin."""
        if "parts" not in self.tables:
            return
        parts, stack, known = self.tables.pop("parts"), list[tuple[int, int]](), -1
        lane, time, number, opens, title = map(parts.column, ("lane", "time", "file_order", "opens", "title"))
        # at one time in the order of the file
        order = np.lexsort((2 * number + opens, time, lane))
        order = order[time[order] != INT_MISSING]
        found: list[tuple[int, int]] = []
        waiting: Counter[int] = Counter()
        for here, at, row, begins, name in zip(*(each[order].tolist() for each in (lane, time, number, opens, title)),
                                               strict=True):  # fmt: skip
            if here != known:
                self._unpaired[0] += len(stack)
                stack, known, waiting = [], here, Counter()
            if begins:
                stack.append((row, name))
                waiting[name] += 1
            elif not stack or (name >= 0 and not waiting[name]):
                self._unpaired[1] += 1
            else:
                while True:
                    first, own = stack.pop()
                    waiting[own] -= 1
                    if name in (-1, own):
                        break
                    # its end was lost
                    self._unpaired[0] += 1
                found.append((first, at))
        self._unpaired[0] += len(stack)
        numbers, ends = np.array(found, np.int64).reshape(-1, 2).T
        self.tables["paired"].add(file_order=numbers, end=ends)

    def end_begun(self, end: I64, number: npt.NDArray[np.integer] | None = None) -> None:
        """Sets the ends of slices that were written as begin and end.

        ``number``: number in the file of each slice, ascending; None: all are there, in the order of the file.
        """
        begun, ends = (self.tables["paired"].column(key) for key in ("file_order", "end"))
        if len(begun):
            places = begun if number is None else lookup(number.astype(np.int64), begun)
            end[places[places >= 0]] = ends[places >= 0]

    def count_defect(self, kind: str, count: int, phases: str, index: int, chunk: int = -1) -> None:
        """Counts defects of events; ``phases``, ``index``: the first one; ``chunk``: its chunk, -1: the last chunk."""
        spot = (chunk if chunk >= 0 else len(self.first) - 1, phases, index)
        before, first = self.defects.get(kind, (0, spot))
        self.defects[kind] = before + count, first

    def add_unknown(self, events: Sequence[Any]) -> None:
        """Counts events of unknown phases."""
        self.count_defect("phases", len(events), "", 0)

    def add_flows(self, flows: Sequence[Any]) -> None:
        """Adds ends of flows."""

    def add_names(self, events: Sequence[Any]) -> None:
        """Adds the names, labels and places of processes and threads."""
        for event in events:
            kind = event.name if isinstance(event.name, str) else ""
            field = _FIELDS.get(kind)
            value = getattr(event.args, field, None) if field else None
            if value is not None and (field == "sort_index" or isinstance(value, str)):
                pid = str(event.pid)
                self.name(kind, (pid, str(event.tid)) if kind.startswith("thread") else pid, value)

    def name(self, kind: str, owner: Any, value: Any) -> None:
        """Keeps what a metadata event says."""
        self.names[kind][owner] = value

    def add_samples(self, samples: Sequence[Any]) -> None:
        """Adds samples of counters, each with several values."""
        samples = [sample for sample in samples if isinstance(sample.args, dict)]
        if not samples:
            return
        args = [sample.args for sample in samples]
        accelerators = list(map(dict.pop, args, repeat(self.in_title), repeat(None)))
        group = self._groups.of(zip(
            [sample.pid for sample in samples], [sample.name for sample in samples], accelerators, map(tuple, args),
            strict=True,
        ))  # fmt: skip
        counters = self._counters_of
        for pid, name, accelerator, keys in islice(self._groups, len(counters), None):
            name = str(name) if accelerator in (None, "") else f"{name} {accelerator}"
            counters.append([self.codes["counters"][str(pid), name, key] for key in keys])
        count = np.array(list(map(len, counters)), np.int64)
        # counters of all groups concatenated: index of the first counter of each event
        first = (np.cumsum(count) - count)[group]
        count = count[group]
        index = np.repeat(first - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
        self.tables["samples"].add(
            counter=np.array([*chain.from_iterable(counters)], np.int32)[index], count=count,
            value=self.sampled(list(chain.from_iterable(map(dict.values, args)))),
        )  # fmt: skip
        self.wait("samples", "time", [sample.ts for sample in samples])

    def sampled(self, values: Sequence[Any]) -> F64:
        """Values of counters; NaN for those that are none."""
        raise NotImplementedError

    # -- many chunks

    def wait(self, table: str, column: str, texts: Sequence[Any]) -> None:
        """Keeps texts of times for `convert`: one conversion of many takes less than many of few."""
        self._waiting[table, column].append(text_of_times(texts))

    def waiting(self, table: str, column: str) -> bytes:
        """Texts of the times that wait for being converted; they are removed here."""
        return b"".join(self._waiting.pop((table, column), ()))

    def convert(self) -> None:
        """Converts what waits to columns: here all columns ``time``."""
        for table, column in [place for place in self._waiting if place[1] == "time"]:
            self.tables[table].add(time=exact_ns(self.waiting(table, column)))

    def counters(self, title_of: Callable[[str, str, str], Any]) -> Iterator[tuple[Any, I64, F64]]:
        """Titles, times (ns) and values of counters, by time.

        Args:
            title_of: Makes the title of process, name and key; counters of one title are one.
        """
        samples, titles = self.tables["samples"], Codes()
        code_of = np.array([titles[title_of(*counter)] for counter in self.codes["counters"]], np.int32)
        time, value = np.repeat(samples.take("time"), samples.take("count")), samples.take("value", np.float64)
        code: I32 = samples.take("counter", np.int32)
        order = np.flatnonzero((time != INT_MISSING) & ~np.isnan(value))
        code = code_of[code] if len(code) else code
        order = order[np.lexsort((time[order], code[order]))]
        edges = np.searchsorted(code[order], np.arange(len(titles) + 1)).tolist()
        for title, low, high in zip(titles, edges, edges[1:], strict=False):
            if high > low:
                yield title, time[order[low:high]], value[order[low:high]]


Some = TypeVar("Some", bound=Collector)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a regular file.

    Raises:
        UnreadableError: There is none, or it cannot be read.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "is a directory" if stat.S_ISDIR(mode) else "not a regular file")
        # O_NONBLOCK: opening a pipe would block, and the file may have been replaced by one meanwhile
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)),
                       "rb") as raw:  # fmt: skip
            yield raw
    except OSError as error:
        raise UnreadableError(f"{path}: {(error.strerror or 'cannot be read').lower()}.") from None


def collected(
    path: Path, new: Callable[[], Some], progress: Callable[[int, int], None] | None = None, *, alone: bool = False
) -> Some:  # fmt: skip
    """What a collector finds in a file.

    Args:
        path: JSON, or packed JSON.
        new: Makes the collector: its class, if other processes may read sections.
        progress: Called with the bytes read and the size of the file; an exception that it raises ends the reading.
        alone: Whether no other process may read sections of the file.

    Raises:
        UnreadableError: It cannot be opened or read.
    """
    with opened(path) as raw, _no_collection():
        found = None if alone or text_of(path, raw) is not raw else _in_sections(path, raw, new, progress)
        if found is None:
            raw.seek(0)
            found = new()
            found.read(raw, path, progress)
        found.join_parts()
        return found


def _in_sections(
    path: Path, raw: BinaryIO, new: Callable[[], Some], progress: Callable[[int, int], None] | None
) -> Some | None:  # fmt: skip
    """Reads a large file in several processes; None if that is not worth it, not possible, or a border was wrong."""
    size = os.fstat(raw.fileno()).st_size
    first, *others = sections_of(raw, size, cpu_count())
    if not others or memory_bytes() < new.memory_factor * size:  # type: ignore[attr-defined]
        return None
    with child_processes(len(others)) as processes:
        if len(processes) < len(others):
            return None
        for process, section in zip(processes, others, strict=True):
            process.ask(f"{__name__}:section_of", new.__module__, new.__qualname__, str(path.absolute()),
                        section.begin, section.end)  # fmt: skip
        found = new()
        if not found.read(raw, path, progress, first):
            return None
        for process in processes:
            answer = process.answer()
            if not isinstance(answer, SectionEvents) or answer.state != found.state:
                return None
            found.join(answer)
    return found


def section_of(module: str, collector: str, path: str, begin: int, end: int) -> SectionEvents | None:
    """Reads a section other than the first, in another process; None if its borders are wrong."""
    from importlib import import_module

    found: Collector = getattr(import_module(module), collector)()
    with open(path, "rb") as raw, _no_collection():
        in_object = begins_with_object(raw)
        sound = found.read(raw, Path(path), None, Section(begin, end), in_object=in_object)
    return found.section_events() if sound else None


@contextmanager
def _no_collection() -> Iterator[None]:
    """Disables garbage collection: the objects of a chunk form no cycles, reference counting frees them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
