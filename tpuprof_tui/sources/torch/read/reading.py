"""Reads one trace file into a ``Trace``, one chunk of text at a time."""

from __future__ import annotations

import gc
import os
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress, islice, repeat
from operator import is_
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import numpy as np
import numpy.typing as npt

from tpuprof_tui.child_process import cores
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.sources.chrome.chunks import EventChunks
from tpuprof_tui.sources.chrome.growing import GrowingColumns
from tpuprof_tui.sources.chrome.inflate import PackedText, text_of
from tpuprof_tui.sources.chrome.nesting import order_of_nesting
from tpuprof_tui.sources.chrome.sections import (
    Section,
    SectionText,
    begins_with_object,
    ended_at_border,
    other_processes,
    sections_of,
    state_of,
)
from tpuprof_tui.sources.chrome.times import MOST_NS, exact_ns, is_number, text_of_times
from tpuprof_tui.sources.source import Part

from . import events as ev
from .arguments import Arguments
from .believable import Recording, believable
from .categories import OF_PROFILER, ON_HOST, Kind, is_legacy, kind_of, legacy_lanes
from .collectives import RECORD, collective_identity
from .launchers import COLLECTIVE
from .merged import MEMORY, is_merged, own_name, ranks_of
from .part import EventFilter, Window, first_pass_filter, window_of
from .section_events import SectionEvents
from .steps import marks_step
from .text_stream import fitting_share, refusal, too_large
from .trace import CounterSeries, Memory, ToldCollectives, Trace, numeric_sort_key
from .values import I32, I64, Codes, floats, printable, raw_codes, rows_to_int64, text_codes, to_int64

#: Most counter series that are kept.
_MOST_SERIES: Final = 1000
#: Most of the others that are counted.
_MOST_FURTHER: Final = 100_000
_NO_MEMORY: Final = ev.MemoryArgs()
_MEMORY: Final = tuple(each.name for each in msgspec.structs.fields(ev.MemoryArgs))
#: Counter values of a larger magnitude are ignored.
_MOST_VALUE: Final = 1e300
#: Most unknown categories that a message names.
_MOST_NAMED: Final = 3
_NO_ARGS: Final = ev.WorkArgs()
#: Fields that only device work has.
_WORK: Final = tuple(each.name for each in msgspec.structs.fields(ev.WorkArgs))[3:-4]
#: Names of host events whose arguments may identify a collective.
_TELLING: Final = lazy_pattern(rf"{RECORD}$|{COLLECTIVE.pattern}")
_CODED: Final = ("device", "stream", "grid", "block", "registers", "shared_memory")
_IS_WORK: Final = np.isin(np.arange(len(Kind)), (Kind.KERNEL, Kind.COPY, Kind.SET, Kind.MTIA))
#: Events converted to columns at a time: below this numpy's call overhead dominates.
_AT_A_TIME: Final = 1 << 16
#: Free memory required before other processes read sections of the file, as a multiple of what reading takes.
_MEMORY_FACTOR: Final = 2.0


def read_trace(
    path: Path, progress: Callable[[int, int], None] | None = None, part: Part | None = None, *, alone: bool = False
) -> Trace:  # fmt: skip
    """Reads a file.

    Args:
        path: JSON, or gzip or zstd of it.
        progress: Called with the bytes read and the size of the file; an exception that it raises ends the reading.
        part: The part to read if the file is larger than memory.
        alone: Whether no other process may read sections of it.

    Raises:
        UnreadableError: It cannot be opened, holds no list of events, or takes more memory than there is.
        UsageError: The part does not exist.
    """
    try:
        with path.open("rb") as raw, _no_collection():
            return _read(path, raw, progress, part, alone=alone)
    except OSError as error:
        raise UnreadableError(f"{path}: {(error.strerror or 'cannot be read').lower()}.") from None


def read_section(path: Path, section: Section) -> SectionEvents | None:
    """Reads a section other than the first, in another process; None if its borders are wrong."""
    with path.open("rb") as raw, _no_collection():
        in_object = begins_with_object(raw)
        return _Reader(path, raw, None, section=section).events_of_section(in_object=in_object)


def _read(
    path: Path, raw: BinaryIO, progress: Callable[[int, int], None] | None, part: Part | None, *, alone: bool
) -> Trace:  # fmt: skip
    size = os.fstat(raw.fileno()).st_size
    packed = text_of(path, raw) is not raw
    text = too_large(raw, size, packed=packed)
    if not text:
        sections = [] if alone or packed else sections_of(raw, size, cores())
        trace = None
        if len(sections) > 1 and fitting_share(size) >= _MEMORY_FACTOR:
            with other_processes(path, sections[1:], __name__) as results:
                trace = _Reader(path, raw, progress, section=sections[0]).read_with_processes(results)
        if trace is None:
            raw.seek(0)
            trace = _Reader(path, raw, progress).trace()
        return trace if is_merged(trace) else believable(trace)[0]
    if part is None:
        raise refusal(path, text)
    first = _Reader(path, raw, progress, first_pass_filter)
    outline, recording = first.trace(), None
    if is_merged(outline):
        window = window_of(ranks_of(outline), outline.zero_ns, part)
    else:
        outline, recording = believable(outline)
        window = window_of((outline,), outline.zero_ns, part)
    raw.seek(0)
    # as many events as fit into memory
    reader = _Reader(path, raw, progress, window, most=int(first.count * fitting_share(text)), recording=recording)
    found = reader.trace()
    return found if recording is None else believable(found, recording)[0]


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


#: Defects of events that could be decoded: severity, message, and what was done.
_DEFECTS: Final = {
    "untimed": (Severity.ERROR, "Events without a time or a duration.", "They were left out."),
    "range": (Severity.ERROR, "Events whose time or duration is out of range: beyond 2^62 ns.", "They were left out."),
    "phases": (Severity.ERROR, "Events of a phase (ph) that PyTorch does not write.", "They were left out."),
    "below": (Severity.WARNING, "Events of negative duration.", "They are shown with length 0."),
    "beyond": (Severity.WARNING, "Ids, addresses or sizes beyond int64.",
               "Up to 2^64 they are distinguished, others are treated as not known."),
}  # fmt: skip
#: Method that adds the events of each struct.
_ADD_METHODS: Final[dict[Any, str]] = {
    ev.Complete: "_add_complete", ev.Instant: "_add_memory", ev.OldInstant: "_add_memory", ev.Metadata: "_add_names",
    ev.CounterSample: "_add_counts", ev.FlowBegin: "_add_flows",
}  # fmt: skip


class _Reader:
    """Reads a file in one pass.

    Args:
        path, raw: The file.
        progress: Called with the bytes read and the size of the file.
        event_filter: Selects the events to keep; None: all.
        most: Most events that fit into memory.
        section: The section of the file to read; None: the whole file.
        recording: When the whole file was recorded, if that is known: its zero is within it.
    """

    def __init__(
        self, path: Path, raw: BinaryIO, progress: Callable[[int, int], None] | None,
        event_filter: EventFilter | None = None, most: int = MOST_NS, section: Section | None = None,
        recording: Recording | None = None,
    ) -> None:  # fmt: skip
        self._recording = recording
        self._filter, self._kept_count, self._most = event_filter, 0, most
        self._marks_step = np.zeros(0, np.bool_)
        self._earliest: list[int] = []
        self._path, self._raw, self._progress = path, raw, progress
        self._size = os.fstat(raw.fileno()).st_size
        self._section = section
        self._source: Any = text_of(path, raw) if section is None else SectionText(raw, section)
        self._text_read = 0
        self._names, self._keys, self._texts = Codes(), Codes(), Codes()
        self._kinds = np.zeros(0, np.int8)
        self._identities = Codes()
        #: By code of a name: whether its events may identify a collective.
        self._tells, self._any_tell = np.zeros(0, np.bool_), False
        #: Values not yet converted to columns.
        self._waiting: defaultdict[str, list[Any]] = defaultdict(list)
        #: Number of the first complete event of these.
        self._first = 0
        self._events, self._work = GrowingColumns(), GrowingColumns()
        self._memory, self._told = GrowingColumns(), GrowingColumns()
        #: Processes that flows begin in.
        self._flow_processes: set[str] = set()
        self._series: dict[tuple[str, str], tuple[array[int], array[float]]] = {}
        #: Counter series that are left out.
        self._further_series: set[tuple[str, str]] = set()
        self._process_names: dict[str, str] = {}
        self._thread_names: dict[tuple[str, str], str] = {}
        #: Number of complete events so far.
        self.count = 0
        #: Defects of events, by kind: how often, and chunk, phases and index of the first.
        self._defects: dict[str, tuple[int, tuple[int, str, int]]] = {}
        #: Number of the first complete event of each chunk of text.
        self._firsts: list[int] = []
        #: Offset of each chunk.
        self._offsets: list[int] = []
        #: Share of the file that is read by this process, for the progress.
        self._share = 1.0 if section is None or section.end < 0 else section.end / self._size

    def _read(self, count: int) -> bytes:
        data: bytes = self._source.read(count)
        self._text_read += len(data)
        if self._progress is not None:
            self._progress(min(int(self._raw.tell() / self._share), self._size), self._size)
        return data

    def trace(self) -> Trace:
        """Reads the whole file."""
        chunks: EventChunks[Any] = EventChunks(self._read, ev.ANY_EVENT, ev.from_dict)
        self._read_events(chunks)
        return self._trace_of(chunks, chunks.list_end)

    def read_with_processes(self, results: Iterable[Callable[[], Any]]) -> Trace | None:
        """Reads the first section, joins those of other processes; None if a border was wrong or a process failed."""
        assert self._section is not None
        chunks: EventChunks[Any] = EventChunks(self._read, ev.ANY_EVENT, ev.from_dict, read_rest=False)
        self._read_events(chunks)
        if not ended_at_border(self._section, chunks):
            return None
        end = 0
        for result in results:
            found = result()
            if not isinstance(found, SectionEvents) or found.state != state_of(self._raw.fileno()):
                return None
            self._join(found)
            chunks.add_results(found.tallies, found.metadata, truncated=found.truncated)
            end = found.list_end
        return self._trace_of(chunks, end)

    def events_of_section(self, *, in_object: bool) -> SectionEvents | None:
        """Reads a section; None if its borders are wrong. ``in_object``: whether the list of events is in an object."""
        section = self._section
        assert section is not None
        chunks: EventChunks[Any] = EventChunks(
            self._read, ev.ANY_EVENT, ev.from_dict, begin=section.begin, in_object=in_object, read_rest=section.end < 0
        )
        self._read_events(chunks)
        if not ended_at_border(section, chunks):
            return None
        return SectionEvents(
            state_of(self._raw.fileno()), self.count, self._firsts, self._offsets, list(self._names),
            list(self._keys), list(self._texts), list(self._identities), self._told.columns(),
            self._events.columns(), self._work.columns(), self._memory.columns(), self._series, self._further_series,
            self._process_names, self._thread_names, self._flow_processes, self._defects, chunks.metadata,
            chunks.tallies, chunks.truncated, chunks.list_end, section.begin + self._text_read,
        )  # fmt: skip

    def _join(self, found: SectionEvents) -> None:
        """Appends the events of the section that follows."""
        names, keys, texts, identities = (
            np.array([*map(codes.__getitem__, values), -1], np.int32)
            for codes, values in ((self._names, found.names), (self._keys, found.keys), (self._texts, found.texts),
                                  (self._identities, found.identities))
        )  # fmt: skip
        chunk_count = len(self._firsts)
        self._firsts += [self.count + number for number in found.first]
        self._offsets += found.offset
        events, work, memory = found.events, found.work, found.memory
        if events:
            order, key, name = events["file_order"] + np.int32(self.count), keys[events["key"]], names[events["name"]]
            self._events.add(**{**events, "file_order": order, "key": key, "name": name})
        if work:
            coded = {key: texts[work[key]] for key in _CODED}
            self._work.add(**{**work, "file_order": work["file_order"] + self.count, **coded})
        if found.told:
            self._told.add(file_order=found.told["file_order"] + self.count, code=identities[found.told["code"]])
        if memory:
            self._memory.add(**{**memory, "key": keys[memory["key"]]})
        for series, (times, values) in found.series.items():
            if series in self._series or len(self._series) < _MOST_SERIES:
                known_times, known_values = self._series.setdefault(series, (array("q"), array("d")))
                known_times.extend(times)
                known_values.extend(values)
            else:
                self._leave_out(series)
        for series in found.further_series:
            self._leave_out(series)
        self._process_names |= found.process_names
        self._thread_names |= found.thread_names
        self._flow_processes |= found.flow_processes
        for defect, (count, (chunk, phases, index)) in found.defects.items():
            self._count_defect(defect, count, phases, index, chunk_count + chunk)
        self.count += found.count
        self._text_read = found.text_end

    def _read_events(self, chunks: EventChunks[Any]) -> None:
        first, offset, waiting = self._firsts, self._offsets, 0
        for events in chunks:
            first.append(self.count)
            offset.append(chunks.offset)
            self._add(events)
            waiting += len(events)
            if waiting >= _AT_A_TIME or self._filter is not None:
                self._convert_waiting()
                waiting = 0
        self._convert_waiting()

    def _trace_of(self, chunks: EventChunks[Any], end: int) -> Trace:
        if not chunks.found or not (self.count or self._series or "time" in self._memory or self._further_series):
            raise self._nothing_read(chunks)
        packed = isinstance(self._source, PackedText)
        points = getattr(self._source, "restart_points", None) if packed else ()
        arguments = Arguments(self._path, state_of(self._raw.fileno()), self._firsts, [*self._offsets, end], points)
        return self._build_trace(chunks.metadata, tuple(self._problems(chunks, arguments)), arguments)

    def _nothing_read(self, chunks: EventChunks[Any]) -> UnreadableError:
        """The error for a file without events."""
        fault = self._source.fault if isinstance(self._source, PackedText) else None
        what, hint = "holds no events: its list of events is empty.", "Nothing was recorded while the profiler ran."
        if not self._text_read and fault is None:
            what, hint = "is empty: its text has 0 bytes.", "The profiler has not written it yet, or the disk was full."
        elif fault is not None and not chunks.found:
            what, hint = "holds nothing that can be unpacked.", fault[0]
        elif not chunks.found:
            what, hint = "holds no list of events.", "A PyTorch trace is Chrome-trace JSON with traceEvents."
        elif chunks.malformed:
            tally = chunks.malformed
            what = f"holds no events that can be decoded: {tally.count:,} cannot, the first at byte {tally.first:,}."
            hint = "It is no JSON that a profiler wrote."
        elif chunks.truncated:
            what, hint = "holds no whole event: it ends within the first.", fault[0] if fault else ""
        elif self._process_names or self._flow_processes or self._defects:
            what = "holds no events: its list has none with a duration, and no counters."
        return UnreadableError(f"{self._path} {what}", hint)

    # -- one chunk

    def _add(self, events: list[Any]) -> None:
        kinds = list(map(type, events))
        for kind in dict.fromkeys(kinds):
            add = getattr(self, _ADD_METHODS.get(kind, ""), None)
            if kind in ev.UNKNOWN:
                self._count_defect("phases", kinds.count(kind), "", 0)
            if add is not None:
                add(list(compress(events, map(is_, kinds, repeat(kind)))))

    def _count_defect(self, defect: str, count: int, phases: str, index: int, chunk: int = -1) -> None:
        """Counts defects of events; ``phases``, ``index``: the first one; ``chunk``: its chunk, -1: the last chunk."""
        spot = (chunk if chunk >= 0 else len(self._firsts) - 1, phases, index)
        before, first = self._defects.get(defect, (0, spot))
        self._defects[defect] = before + count, first

    def _count_complete_defects(self, defect: str, rows: npt.NDArray[np.bool_], first: int) -> None:
        """Counts defects of complete events, which may be in earlier chunks."""
        count = int(rows.sum())
        if count:
            number = first + int(rows.argmax())
            chunk = bisect_right(self._firsts, number) - 1
            self._count_defect(defect, count, "X", number - self._firsts[chunk], chunk)

    def _add_complete(self, events: list[ev.Complete]) -> None:
        # one pass over the events for all their columns
        categories, names, pids, tids, starts, lengths, args = zip(*map(ev.as_tuple, events), strict=True)
        if "" in categories:
            pids, tids = legacy_lanes(categories, pids, tids)
        key = self._codes_of(categories, pids, tids)
        if len(self._keys) > len(self._kinds):
            new = islice(self._keys, len(self._kinds), None)
            found = [kind_of(*key) for key in new]
            self._kinds = np.concatenate([self._kinds, np.array(found, np.int8)])
        first, self.count = self.count, self.count + len(events)
        arguments = [each or _NO_ARGS for each in args]
        waiting = self._waiting
        waiting["key"].append(key)
        name = np.fromiter(map(self._names.__getitem__, names), np.int32, len(names))
        waiting["name"].append(name)
        self._add_ids(first, np.flatnonzero(self._tells[name] if self._know_telling() else name < 0), arguments)
        waiting["start"].append(text_of_times(starts))
        waiting["length"].append(text_of_times(lengths))
        # convert values while they are in the CPU cache
        beyond: list[int] = []
        waiting["external"].append(to_int64([each.external if each.external is not INT_MISSING else each.external_old
                                             for each in arguments], beyond))  # fmt: skip
        waiting["correlation"].append(to_int64([each.correlation for each in arguments], beyond))
        if beyond:
            self._count_defect("beyond", len(beyond), "X", min(beyond))
        rows = np.flatnonzero(_IS_WORK[self._kinds[key]]).tolist()
        if not rows:
            return
        work: dict[str, Sequence[Any]] = dict(
            zip(_WORK, list(zip(*[ev.as_tuple(arguments[row]) for row in rows], strict=True))[3:-4], strict=True)
        )
        if work["collective"].count(None) < len(rows):
            told = [row for row, each in zip(rows, work["collective"], strict=True) if each is not None]
            self._add_ids(first, told, arguments)
        for column, else_of in (("device", pids), ("stream", tids)):
            work[column] = [else_of[row] if each is None else each
                            for row, each in zip(rows, work[column], strict=True)]  # fmt: skip
        for column in ("grid", "block"):
            work[column] = raw_codes(self._texts, work[column])
        for column, values in {"file_order": [first + row for row in rows], **work}.items():
            waiting[column] += values

    def _know_telling(self) -> bool:
        """Finds out about new names whether their events may identify a collective; whether any do."""
        if len(self._names) > len(self._tells):
            new = [_TELLING.match(str(name)) is not None for name in islice(self._names, len(self._tells), None)]
            self._tells = np.concatenate([self._tells, np.array(new, np.bool_)])
            self._any_tell |= any(new)
        return self._any_tell

    def _add_ids(self, first: int, rows: Iterable[int], arguments: Sequence[ev.WorkArgs]) -> None:
        """Keeps what identifies the collectives of some events, of these the first is number ``first`` of the file."""
        for row in rows:
            if (identity := collective_identity(arguments[row])) is not None:
                self._waiting["told_order"].append(first + row)
                self._waiting["told"].append(self._identities[identity])

    def _codes_of(self, categories: Iterable[str], pids: Iterable[Any], tids: Iterable[Any]) -> I32:
        """Codes of the combinations of category, process and thread."""
        try:
            return np.fromiter(map(self._keys.__getitem__, zip(categories, pids, tids, strict=True)), np.int32)
        except TypeError:
            # unhashable values are no process or thread ids
            pids, tids = ([each if isinstance(each, (int, float, str)) else str(each) for each in ids]
                          for ids in (pids, tids))  # fmt: skip
            return np.array([self._keys[each] for each in zip(categories, pids, tids, strict=True)], np.int32)

    def _add_memory(self, events: list[ev.Instant]) -> None:
        instants = [each for each in events if each.name == MEMORY
                    or (isinstance(each.name, str) and own_name(each.name) == MEMORY)]  # fmt: skip
        if instants:
            _, pids, tids, times, args = zip(*map(ev.as_tuple, instants), strict=True)
            beyond: list[int] = []
            columns = rows_to_int64([ev.as_tuple(each or _NO_MEMORY) for each in args], beyond).T
            if beyond:
                self._count_defect("beyond", len(beyond), "iI", events.index(instants[min(beyond)]))
            self._memory.add(key=self._codes_of([""] * len(times), pids, tids),
                             **dict(zip(_MEMORY, columns, strict=True)))  # fmt: skip
            self._waiting["memory"].append(text_of_times(times))

    def _add_flows(self, events: list[ev.FlowBegin]) -> None:
        try:
            self._flow_processes.update(map(str, {each.pid for each in events}))
        except TypeError:
            # unhashable values are no process ids
            self._flow_processes.update(str(each.pid) for each in events)

    def _add_names(self, events: list[ev.Metadata]) -> None:
        for each in events:
            if each.args is not None and isinstance(each.args.name, str):
                if each.name == "process_name":
                    self._process_names[str(each.pid)] = each.args.name
                # streams are named by their number; a host thread may have the process and thread id of one
                elif each.name == "thread_name" and not each.args.name.startswith("stream "):
                    self._thread_names[str(each.pid), str(each.tid)] = each.args.name

    def _add_counts(self, events: list[ev.CounterSample]) -> None:
        events = [each for each in events if isinstance(each.args, dict)]
        times = exact_ns(text_of_times([each.ts for each in events])).tolist()
        for each, time in zip(events, times, strict=True):
            for key, value in each.args.items():
                if type(value) in (int, float) and abs(value) < _MOST_VALUE and time != INT_MISSING:
                    name = str(each.name)
                    series = str(each.pid), name if key == name or key == "value" else f"{name} {key}"
                    if series in self._series or len(self._series) < _MOST_SERIES:
                        times_of, values = self._series.setdefault(series, (array("q"), array("d")))
                        times_of.append(time)
                        values.append(value)
                    else:
                        self._leave_out(series)

    def _leave_out(self, series: tuple[str, str]) -> None:
        if len(self._further_series) < _MOST_FURTHER:
            self._further_series.add(series)

    # -- many chunks

    def _convert_waiting(self) -> None:
        """Converts the waiting values to columns."""
        waiting, self._waiting = self._waiting, defaultdict(list)
        first, self._first = self._first, self.count
        if waiting["memory"]:
            self._memory.add(time=exact_ns(b"".join(waiting["memory"])))
        if waiting["told"]:
            self._told.add(file_order=np.array(waiting["told_order"], np.int64),
                           code=np.array(waiting["told"], np.int32))  # fmt: skip
        kept = self._convert_complete(first, waiting) if waiting["key"] else None
        file_order = np.array(waiting["file_order"], np.int64)
        columns: dict[str, npt.NDArray[Any]] = {
            "file_order": file_order, **{key: text_codes(self._texts, waiting[key]) for key in ("device", "stream")},
            **{key: np.array(waiting[key], np.int32) for key in ("grid", "block")},
            **{key: text_codes(self._texts, waiting[key])
               for key in ("registers", "shared_memory")},
            **{key: floats(waiting[key]) for key in ("blocks", "occupancy")}, "bytes": to_int64(waiting["bytes"]),
            "collective": np.array([each is not None for each in waiting["collective"]], np.bool_),
        }  # fmt: skip
        self._work.add(**columns if kept is None else {key: each[kept[file_order - first]]
                                                       for key, each in columns.items()})  # fmt: skip

    def _convert_complete(self, first: int, waiting: dict[str, list[Any]]) -> npt.NDArray[np.bool_] | None:
        """Converts complete events to columns; mask of those that are kept, None: all.

        Args:
            first: Number of the first of them.
            waiting: Their values.
        """
        start, length = (exact_ns(b"".join(waiting[key])) for key in ("start", "length"))
        below = (length < 0) & (length != INT_MISSING)
        self._count_complete_defects("below", below, first)
        length[below] = 0
        columns: dict[str, npt.NDArray[Any]] = {
            # no difference of two of them is beyond int64
            "start": start, "end": np.minimum(start + length, MOST_NS),
            "file_order": np.arange(first, first + len(start), dtype=np.int32),
            **{key: np.concatenate(waiting[key]) for key in ("key", "name", "external", "correlation")},
        }  # fmt: skip
        # ids of Python frames join nothing
        frames = self._kinds[columns["key"]] == Kind.FRAME
        columns["external"][frames] = columns["correlation"][frames] = INT_MISSING
        kept = (start != INT_MISSING) & (length != INT_MISSING)
        if not kept.all():
            self._count_untimed(first, (waiting["start"], start), (waiting["length"], length))
        if self._filter is not None:
            kept &= self._filtered(self._filter, columns, kept)
        everything = bool(kept.all())
        self._events.add(**columns if everything else {key: values[kept] for key, values in columns.items()})
        return None if everything else kept

    def _count_untimed(self, first: int, *times: tuple[list[bytes], I64]) -> None:
        """Counts events without a time or a duration, and apart from them those where it is a number out of range."""
        missing, beyond = (np.zeros(len(times[0][1]), np.bool_) for _ in range(2))
        for joined, values in times:
            texts = b"".join(joined).split(b",")
            for row in np.flatnonzero(values == INT_MISSING).tolist():
                missing[row] = True
                beyond[row] |= is_number(texts[row])
        self._count_complete_defects("range", beyond, first)
        self._count_complete_defects("untimed", missing & ~beyond, first)

    def _filtered(
        self, event_filter: EventFilter, columns: dict[str, npt.NDArray[Any]], sound: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:  # fmt: skip
        """Mask of the events to keep, among those with valid times (``sound``)."""
        if len(self._names) > len(self._marks_step):
            new = [marks_step(own_name(name)) for name in islice(self._names, len(self._marks_step), None)]
            self._marks_step = np.concatenate([self._marks_step, np.array(new, np.bool_)])
        self._earliest.append(int(self._near(columns["start"][sound]).min(initial=MOST_NS)))
        kept = sound & event_filter(columns["start"], columns["end"], self._kinds[columns["key"]],
                                    columns["correlation"], self._marks_step[columns["name"]])  # fmt: skip
        self._kept_count += int(kept.sum())
        if self._kept_count > self._most:
            raise UnreadableError(f"{self._path}: that part of it does not fit into memory.", "Ask for a shorter one.")
        return kept

    # -- the whole

    def _build_trace(self, metadata: dict[str, Any], problems: tuple[Problem, ...], arguments: Arguments) -> Trace:
        parts = self._events
        start, end, key = parts.take("start"), parts.take("end"), parts.take("key", np.int32)
        time = self._memory.take("time")
        timed = time != INT_MISSING
        file_order = parts.take("file_order", np.int32)
        earliest = [int(near.min()) for times in (start, time[timed]) if len(near := self._near(times))]
        zero = min((*earliest, *self._earliest), default=0)
        start -= zero
        end -= zero
        # lanes: processes and threads as texts, in order
        pairs = [(str(pid), str(tid)) for _, pid, tid in self._keys]
        threads = sorted(set(pairs), key=lambda each: (numeric_sort_key(each[0]), numeric_sort_key(each[1])))
        numbers = {pair: number for number, pair in enumerate(threads)}
        lane_of_key = np.array([numbers[pair] for pair in pairs], np.int32)
        categories = Codes()
        category_of_key = np.array([categories[category] for category, _, _ in self._keys], np.int16)
        kind_of_key = np.array([kind_of(str(category), *lane) for category, *lane in self._keys], np.int8)
        names = tuple(map(printable, self._names))
        name, external = parts.take("name", np.int32), parts.take("external")
        kind = _with_mtia_kinds(_decoded(kind_of_key, key), name, names)
        lane = _decoded(lane_of_key, key)
        # at equal times frames enclose the rest; ids ascend inwards; INT_MISSING - 1 wraps to the maximum: sorts last
        order = order_of_nesting(lane, start, end, kind != Kind.FRAME, external - 1)
        row_of = np.empty(len(order), np.int64)
        row_of[order] = np.arange(len(order))
        work_rows, work = self._table(self._work, file_order, row_of)
        return Trace(
            path=self._path, metadata=metadata, threads=tuple(threads),
            first=np.searchsorted(lane[order], np.arange(len(threads) + 1)).astype(np.int64), zero_ns=zero,
            start=start[order], end=end[order], name=name[order], kind=kind[order],
            category=_decoded(category_of_key, key)[order], file_order=file_order[order],
            correlation=parts.take("correlation")[order], external=external[order], names=names,
            categories=tuple(map(printable, categories)),
            texts=tuple(printable(text.decode("utf-8", "replace") if isinstance(text, bytes) else text, 1 << 20)
                        for text in self._texts),
            memory=self._memory_columns(time - zero, timed, lane_of_key),
            work_rows=work_rows, work=work, told=self._collectives_told(),
            flow_processes=frozenset(self._flow_processes),
            counters=tuple(self._counters(zero)), process_names=self._process_names, thread_names=self._thread_names,
            problems=problems, arguments=arguments,
        )  # fmt: skip

    def _near(self, times: I64) -> I64:
        """Those of some times of the file that can be of the recording, as far as that is known yet."""
        return times if self._recording is None else times[self._recording.near(times)]

    def _collectives_told(self) -> ToldCollectives | None:
        if "file_order" not in self._told:
            return None
        order, code = self._told.take("file_order"), self._told.take("code", np.int32)
        by_order = np.argsort(order, kind="stable")
        return ToldCollectives(order[by_order], code[by_order], tuple(self._identities))

    def _memory_columns(self, time: I64, timed: npt.NDArray[np.bool_], lane_of_key: I32) -> Memory:
        columns = {key: self._memory.take(key) for key in _MEMORY}
        lane = self._memory.take("key", np.int32)
        event_index = columns.pop("event_index")
        last = np.iinfo(np.int64).max
        order = np.lexsort((np.arange(len(time)), np.where(event_index == INT_MISSING, last, event_index), time))
        order = order[timed[order]]
        return Memory(time[order], _decoded(lane_of_key, lane[order]),
                      **{key: values[order] for key, values in columns.items()})  # fmt: skip

    def _counters(self, zero: int) -> Iterator[CounterSeries]:
        for (process, title), (times, values) in self._series.items():
            time = np.array(times, np.int64)
            order = np.argsort(time, kind="stable")
            yield CounterSeries(process, printable(title), time[order] - zero, np.array(values)[order])

    @staticmethod
    def _table(parts: GrowingColumns, file_order: I64, row_of: I64) -> tuple[I64, dict[str, npt.NDArray[Any]]]:
        """Rows of the table in the trace, ascending, and its columns in that order."""
        rows = row_of[np.searchsorted(file_order, parts.take("file_order"))]
        order = np.argsort(rows, kind="stable")
        return rows[order], {key: values[order] for key, values in parts.columns().items()}

    def _problems(self, chunks: EventChunks[Any], arguments: Arguments) -> list[Problem]:
        name, found = self._path.name, []
        if isinstance(self._source, PackedText) and self._source.fault:
            # how many events were lost is not known
            lost = int(self._source.damaged or self._source.too_long)
            found.append(Problem(Severity.ERROR, *self._source.fault, file=name, offset=self._text_read, lost=lost))
        elif chunks.truncated:
            found.append(Problem(Severity.ERROR, "The trace ends within its list of events.",
                                 "All events before are shown.", file=name, offset=self._text_read,
                                 lost=1))  # fmt: skip
        if isinstance(self._filter, Window):
            share = f"{self._kept_count:,} of {self.count:,} events"
            found.append(Problem(Severity.WARNING, f"It does not fit into memory: {share} were read.",
                                 "Figures of other times are not known.", file=name))  # fmt: skip
        if self._further_series:
            count = len(self._further_series)
            least = "at least " if count == _MOST_FURTHER else ""
            found.append(Problem(Severity.WARNING, f"It has {least}{count:,} counter series beyond {_MOST_SERIES:,}.",
                                 f"The first {_MOST_SERIES:,} are shown.", file=name, count=count))  # fmt: skip
        found += chunks.problems(name)
        found += self._problems_of_categories(name)
        for key, (count, spot) in self._defects.items():
            severity, message, done = _DEFECTS[key]
            lost, repaired = (count if severity is each else 0 for each in (Severity.ERROR, Severity.WARNING))
            found.append(Problem(severity, message, done, file=name, offset=arguments.offset_of(*spot), count=count,
                                 lost=lost, repaired=repaired))  # fmt: skip
        return found

    def _problems_of_categories(self, name: str) -> Iterator[Problem]:
        """What is said of traces whose events have no categories, or only those of other programs."""
        if any(is_legacy(*key) for key in self._keys):
            yield Problem(Severity.NOTE, "A legacy trace (EventList.export_chrome_trace): no event has a category.",
                          "Operators and kernels are told apart by their processes.", file=name)  # fmt: skip
        if np.isin(self._kinds, ON_HOST).any():
            return
        unknown = {number: key[0] for number, key in enumerate(self._keys)
                   if kind_of(*key) == Kind.OTHER and key[0].lower() not in OF_PROFILER}  # fmt: skip
        count = int(np.isin(self._events.column("key"), list(unknown)).sum()) if unknown else 0
        if count:
            named = ", ".join(sorted({printable(each) for each in unknown.values() if each})[:_MOST_NAMED])
            what = f"Events of unknown category{named and f' ({named})'}: another program wrote the trace."
            yield Problem(Severity.WARNING, what, "They are shown; no figure is computed from them.", file=name,
                          count=count)  # fmt: skip


def _decoded(values: npt.NDArray[Any], codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values[codes] if len(codes) else values[:0]


def _with_mtia_kinds(kind: npt.NDArray[np.int8], name: I32, names: Sequence[str]) -> npt.NDArray[np.int8]:
    """Kinds with those of MTIA events replaced by the kind that their name implies."""
    rows = np.flatnonzero(kind == Kind.MTIA)
    if len(rows):
        of_name = np.array([Kind.COPY if text == "dma_request" else Kind.WAIT if text.startswith("event_")
                            else Kind.KERNEL for text in names], np.int8)  # fmt: skip
        kind = kind.copy()
        kind[rows] = of_name[name[rows]]
    return kind
