"""Reads one trace file into a ``Trace``, one chunk of text at a time.

Of a file that is larger than memory the events of a time range or of a step are read. A first pass keeps calls, device
work and step markers. From these follows what else belongs to the range: the calls of its device work, the device work
of its calls, and the host activity from the first of these calls to the last. Steps that overlap the range are read as
a whole, so that their figures equal those of the whole file.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, repeat
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.errors import UnreadableError, UsageError
from tpuprof_tui.formats.decimals import wholes
from tpuprof_tui.formats.parsing import TimeBase, range_typed
from tpuprof_tui.formats.units import bytes_text
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.model.profile import FRAGMENTARY
from tpuprof_tui.model.uniques import distinct, uniques
from tpuprof_tui.sources.chrome.chunks import chunks_of
from tpuprof_tui.sources.chrome.collector import Collector, Section, collected, memory_bytes, opened, state_of
from tpuprof_tui.sources.chrome.columns import (
    F64,
    I32,
    I64,
    MOST_NS,
    Codes,
    GrowingColumns,
    exact_ns,
    is_number,
    lookup,
    printable,
)
from tpuprof_tui.sources.chrome.inflate import FORMAT, PackedText, text_of, unpacked
from tpuprof_tui.sources.chrome.nesting import CounterSeries, order_of_nesting
from tpuprof_tui.sources.source import GZIP, Part

from ..categories import DEVICE_WORK, OF_PROFILER, ON_DEVICE, ON_HOST, Kind, is_legacy, kind_of, legacy_lanes
from . import arguments as ev
from .arguments import Arguments, PacketArguments
from .dependencies import TELLING, collective_identity
from .implausible_times import RecordingTimes, without_implausible
from .merged_ranks import MEMORY, is_merged, own_name, ranks_of
from .other_writers import foreign, work_without_arguments
from .steps import marked_steps, marks_step
from .trace import NO_LINKS, Columns, Trace, numeric_sort_key

#: Memory needed per byte of text, measured on traces of 34 to 99 MB, with a margin.
_MEMORY_PER_BYTE: Final = 0.7
#: Largest expected ratio of a compressed trace's text to its file, where the file does not state the size.
_MOST_RATIO: Final = 25
#: Size of text from which on memory is checked, in bytes.
_LARGE: Final = 256 << 20
#: Most counter series that are kept.
_MOST_SERIES: Final = 1000
#: Counter values of a larger magnitude are ignored.
_MOST_VALUE: Final = 1e300
#: Most unknown categories that a message names.
_MOST_NAMED: Final = 3
#: Names of copies and of memory that is set, of devices whose events have no kinds.
_COPY: Final = lazy_pattern(r"dma_request$|[mM]emcpy|ze\w*MemoryCopy|clEnqueue\w*(?:Read|Write|Copy)\w*")
_SET: Final = lazy_pattern(r"[mM]emset|ze\w*MemoryFill|clEnqueue\w*Fill\w*")
_NO_ARGS: Final = ev.WORK.struct()
_LONGEST_TEXT: Final = 1 << 20
_values: Final = msgspec.structs.astuple
_IS_WORK: Final = np.isin(np.arange(len(Kind)), (Kind.KERNEL, Kind.COPY, Kind.SET, Kind.NAMED))
Mask = npt.NDArray[np.bool_]
_DEVICE: Final = np.isin(np.arange(len(Kind)), (*ON_DEVICE, Kind.NAMED))
_LAUNCHES: Final = np.isin(np.arange(len(Kind)), (Kind.CALL, Kind.KERNEL, Kind.COPY, Kind.SET, Kind.NAMED))
#: Mask of the events to keep; arguments: starts, ends (ns of the file's clock), kinds, correlations, step-marker mask.
EventFilter = Callable[[I64, I64, npt.NDArray[np.int8], I64, Mask], Mask]


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
    text = _too_large(path)
    if not text:
        trace = collected(path, TraceEvents, progress, alone=alone).trace()
        return trace if is_merged(trace) else without_implausible(trace)[0]
    if part is None:
        raise _refusal(path, text)
    first = collected(path, lambda: TraceEvents(_of_outline), progress, alone=True)
    outline, recording = first.trace(), None
    if is_merged(outline):
        window = _window_of(ranks_of(outline), outline.zero_ns, part)
    else:
        outline, recording = without_implausible(outline)
        window = _window_of((outline,), outline.zero_ns, part)
    # as many events as fit into memory
    most = int(first.count * _fitting_share(text))
    found = collected(path, lambda: TraceEvents(window, most, recording), progress, alone=True).trace()
    return found if recording is None else without_implausible(found, recording)[0]


def _too_large(path: Path) -> int:
    """Size of a file's text in bytes if there is not enough memory to read it; else 0."""
    with opened(path) as raw:
        size = os.fstat(raw.fileno()).st_size
        text = text_of(path, raw)
        text_size = size if unpacked(path, raw) is raw else _text_size(raw, size)
        text_size *= text.ratio if isinstance(text, PackedText) else 1
    return text_size if text_size >= _LARGE and _fitting_share(text_size) < 1 else 0


def _fitting_share(text_size: int) -> float:
    """Share of the events of a text that fits into memory; 1 if the memory size is unknown."""
    memory = memory_bytes()
    return memory / (text_size * _MEMORY_PER_BYTE) if memory else 1.0


def _refusal(path: Path, text_size: int) -> UnreadableError:
    return UnreadableError(
        f"{path} holds {bytes_text(text_size)} of text: reading it takes about "
        f"{bytes_text(int(text_size * _MEMORY_PER_BYTE))} of memory, and there are {bytes_text(memory_bytes())}.",
        "report, instructions and export read a part of it, with --range 1s..2s or --step N; or record fewer steps "
        "(torch.profiler.schedule).",
    )


def _text_size(raw: BinaryIO, size: int) -> int:
    """Bytes of text in a packed file, at most: that of gzip states the size modulo 4 GiB; bounded by a likely ratio."""
    if size < 18 or raw.read(2) != GZIP:
        return size * _MOST_RATIO
    raw.seek(-4, os.SEEK_END)
    text_size = int.from_bytes(raw.read(4), "little")
    raw.seek(0)
    while text_size < size:
        text_size += 1 << 32
    return min(text_size, size * _MOST_RATIO)


_UTF16: Final = "It is UTF-16, as PowerShell writes: iconv -f UTF-16 -t UTF-8 FILE > NEW."
#: Defects of events that could be decoded: severity, message, and what was done.
_DEFECTS: Final = {
    "untimed": (Severity.ERROR, "Events without a time or a duration.", "They were left out."),
    "range": (Severity.ERROR, "Events whose time or duration is out of range: beyond 2^62 ns.", "They were left out."),
    "phases": (Severity.ERROR, "Events of a phase (ph) that PyTorch does not write.", "They were left out."),
    "below": (Severity.WARNING, "Events of negative duration.", "They are shown with length 0."),
    "beyond": (Severity.WARNING, "Ids, addresses or sizes beyond int64.",
               "Up to 2^64 they are distinguished, others are treated as not known."),
}  # fmt: skip


class TraceEvents(Collector):
    """The events of a file, or of a section of it.

    Args:
        event_filter: Selects the events to keep; None: all.
        most: Most events that fit into memory.
        recording: When the whole file was recorded, if that is known: its zero is within it.
    """

    phases = ev.PHASES
    coded: ClassVar = {
        "key": "keys", "name": "names", "code": "identities", "counter": "counters",
        **dict.fromkeys(("device", "stream", "grid", "block", "registers", "shared_memory"), "texts"),
    }  # fmt: skip
    memory_factor = 1.4

    def __init__(
        self, event_filter: EventFilter | None = None, most: int = MOST_NS, recording: RecordingTimes | None = None
    ) -> None:  # fmt: skip
        super().__init__()
        self._filter, self._kept_count, self._most, self._recording = event_filter, 0, most, recording
        self.eager = event_filter is not None
        self._earliest: list[int] = []
        #: By code: kinds of keys, and of names whether they mark steps, and whether they may identify a collective.
        self._kinds, self._marks_step = np.zeros(0, np.int8), np.zeros(0, np.bool_)
        self._tells = np.zeros(0, np.bool_)
        #: Columns of complete events and of device work that are not yet converted.
        self._complete, self._work = GrowingColumns(), GrowingColumns()
        #: Number of the first complete event of these.
        self._first = 0
        #: A trace of another format, which is no text.
        self.converted: Any = None

    def read(
        self, raw: BinaryIO, path: Path, progress: Callable[[int, int], None] | None = None,
        section: Section | None = None, *, in_object: bool = True,
    ) -> bool:  # fmt: skip
        """Reads a file or a section of it; whether its borders are right."""
        source = text_of(path, raw) if section is None else raw
        if not isinstance(source, PackedText) or source.is_text:
            return super().read(raw, path, progress, section, in_object=in_object)
        converted: Any = source
        self.packed = self.converted = converted
        self.path, self.state, self.text_end = path, state_of(raw.fileno()), -1
        self.chunks = chunks_of(
            b'{"traceEvents":[],"format":"%b"}' % FORMAT.encode(), ev.PHASES.any, ev.PHASES.from_dict
        )
        list(self.chunks)
        for offset, found in converted.events_by_piece(self.codes):
            self.first.append(self.count)
            self.offset.append(offset)
            self._add_found(found)
            if progress is not None:
                progress(min(raw.tell(), self.state[0]), self.state[0])
        self.list_end = converted.end
        return True

    def trace(self) -> Trace:
        """The trace.

        Raises:
            UnreadableError: There are no events.
        """
        series = list(self.counters(_title))
        count = self.count if self.converted is None else sum(map(len, self.tables["events"].get("start", ())))
        if not self.chunks.found or not (count or any(map(len, self.tables["memory"].get("time", ()))) or series):
            raise self._nothing_read()
        points = () if self.packed is None else getattr(self.packed, "restart_points", None)
        index = self.path, self.state, self.first, [*self.offset, self.list_end], points
        converted = self.converted
        arguments = Arguments(*index) if converted is None else PacketArguments(
            *index, converted.states, converted.pieces, converted.added)  # fmt: skip
        return self._build_trace(arguments, series)

    def _nothing_read(self) -> UnreadableError:
        chunks, fault = self.chunks, self.fault
        what, hint = "holds no events: its list of events is empty.", "Nothing was recorded while the profiler ran."
        if not self.text_end and fault is None:
            what, hint = "is empty: its text has 0 bytes.", "The profiler has not written it yet, or the disk was full."
        elif fault is not None and not chunks.found:
            what, hint = "holds nothing that can be unpacked.", fault[0]
        elif not chunks.found:
            with self.path.open("rb") as raw:
                head = unpacked(self.path, raw).read(2)
            known = {GZIP: "It is packed twice: gunzip it once.", **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), _UTF16)}
            what = "holds no list of events."
            hint = known.get(head, "A trace is Chrome-trace JSON with traceEvents, or Perfetto's packets.")
        elif tally := chunks.tallies["malformed"]:
            what = f"holds no events that can be decoded: {tally.count:,} cannot, the first at byte {tally.first:,}."
            hint = "It is no JSON that a profiler wrote."
        elif chunks.truncated:
            what, hint = "holds no whole event: it ends within the first.", fault[0] if fault else ""
        elif "phases" in self.defects:
            what = f"holds no slice, and {self.defects['phases'][0]:,} events of phases (ph) that are not read."
            hint = "Slices are read, of phase X or B and E, and counters (C)."
        elif any(self.names.values()) or any(self.codes.values()) or self.defects:
            what = "holds no events: its list has none with a duration, and no counters."
        if self.converted is not None:
            told = islice(self.converted.problems(""), 3)
            what = "is a Perfetto trace without track events, work of GPUs and counters."
            hint = " ".join(f"{each.what} {each.done}" for each in told)
        return UnreadableError(f"{self.path} {what}", hint)

    # -- one chunk

    def _count_complete_defects(self, defect: str, rows: npt.NDArray[np.bool_], first: int) -> None:
        """Counts defects of complete events, which may be in earlier chunks."""
        count = int(rows.sum())
        if count:
            number = first + int(rows.argmax())
            chunk = bisect_right(self.first, number) - 1
            self.count_defect(defect, count, "XB", number - self.first[chunk], chunk)

    def add_complete(self, events: Sequence[Any]) -> None:
        """Adds events with a duration."""
        # one pass over the events for all their columns
        categories, names, pids, tids, starts, lengths, args = zip(*map(_values, events), strict=True)
        if "" in categories:
            pids, tids = legacy_lanes(categories, pids, tids)
        keys = self.codes["keys"]
        key = keys.of(zip(categories, pids, tids, strict=True))
        self._kinds = _extended(self._kinds, keys, lambda values: kind_of(*values))
        first, self.count = self.count, self.count + len(events)
        arguments = [each or _NO_ARGS for each in args]
        name = np.fromiter(map(self.codes["names"].__getitem__, names), np.int32, len(names))
        self._tells = _extended(self._tells, self.codes["names"], TELLING.match)
        numbers = np.arange(first, self.count)
        self._add_ids(numbers, np.flatnonzero(self._tells[name]), arguments)
        self.wait("events", "start", starts)
        self.wait("events", "length", lengths)
        # convert values while they are in the CPU cache
        beyond: list[int] = []
        external = [each.external if each.external is not INT_MISSING else each.external_1 for each in arguments]
        correlation = [each.correlation for each in arguments]
        if "" in categories:
            # JAX has another key
            correlation = [one if one is not INT_MISSING else each.correlation_1
                           for one, each in zip(correlation, arguments, strict=True)]  # fmt: skip
        self._complete.add(key=key, name=name, external=wholes(external, beyond),
                           correlation=wholes(correlation, beyond))  # fmt: skip
        if beyond:
            self.count_defect("beyond", len(beyond), "XB", min(beyond))
        rows = np.flatnonzero(_IS_WORK[self._kinds[key]])
        if not len(rows):
            return
        self._work.add(**self._work_of(numbers, rows, arguments, lambda row: (pids[row], tids[row])))

    def _work_of(
        self, numbers: I64, rows: I64, arguments: Any, lane_of: Callable[[int], Sequence[Any]]
    ) -> dict[str, Any]:
        """Columns of device work; ``numbers``: of all events in the file, ``lane_of``: process and thread of a row."""
        texts = self.codes["texts"]
        work = ev.WORK.of([arguments[row] for row in rows.tolist()], texts)
        self._add_ids(numbers, rows[work["collective"]], arguments)
        for place, column in enumerate(("device", "stream")):
            for index in np.flatnonzero(work[column] < 0).tolist():
                work[column][index] = texts[str(lane_of(rows[index])[place])]
        return {"file_order": numbers[rows], **work}

    def _add_found(self, found: Any) -> None:
        """Adds the events of a piece of a converted trace."""
        keys, events = self.codes["keys"], found.events
        self._kinds = _extended(self._kinds, keys, lambda values: kind_of(*values))
        self._tells = _extended(self._tells, self.codes["names"], TELLING.match)
        for owner, name in found.names:
            self.name("thread_name" if len(owner) > 1 else "process_name", owner if len(owner) > 1 else owner[0], name)
        samples = found.samples
        samples["value"][~(np.abs(samples["value"]) < _MOST_VALUE)] = np.nan
        self.tables["samples"].add(count=np.ones(len(samples["time"]), np.int64), **samples)
        every, (rows, time, code) = list(keys), found.memory
        codes, place = distinct(code)
        lanes = [keys["", every[each][1], every[each][2]] for each in codes.tolist()]
        values = {column: events.integers(*titles)[0][rows]
                  for column, (_, *titles) in (ev.MEMORY.columns.items() if lanes else ())}  # fmt: skip
        self.tables["memory"].add(key=np.array(lanes, np.int32)[place], time=time, **values)
        key, name, row, slot, start, length = found.key, found.name, found.row, found.slot, found.start, found.length
        first, self.count = self.count, self.count + events.count
        wanted, columns = _IS_WORK[self._kinds[key]] | self._tells[name] | (row < 0), {}
        for column, (values, others) in (("external", events.integers("External id", "external id")),
                                         ("correlation", events.correlations())):  # fmt: skip
            columns[column] = np.append(values, INT_MISSING)[row]
            wanted |= np.isin(row, others) if len(others) else False
        rows = np.flatnonzero(wanted)
        decoded = ev.WORK.decoded([text.encode() for text in events.texts(slot[rows])])
        arguments = {row: each or _NO_ARGS for row, each in zip(rows.tolist(), decoded, strict=True)}
        beyond: list[int] = []
        for column in columns:
            given = wholes([getattr(each, column) for each in arguments.values()], beyond)
            columns[column][rows] = np.where(given == INT_MISSING, columns[column][rows], given)
        if beyond:
            self.count_defect("beyond", len(beyond), "X", int(slot[rows[min(beyond)]]))
        self._count_complete_defects("below", np.bincount(slot, length < 0, events.count) > 0, first)
        columns |= {"key": key.astype(np.int32), "name": name.astype(np.int32), "start": start,
                    "end": start + np.maximum(length, 0), "file_order": (first + slot).astype(np.int32)}  # fmt: skip
        kept = self._keep(columns, np.ones(len(slot), np.bool_))
        self._add_ids(first + slot, rows[self._tells[name[rows]]], arguments)
        rows = np.flatnonzero(_IS_WORK[self._kinds[key]])
        if len(rows):
            work = self._work_of(first + slot, rows, arguments, lambda row: every[key[row]][1:])
            self.tables["work"].add(**{field: values[kept[rows]] for field, values in work.items()})

    def _add_ids(self, numbers: I64, rows: I64, arguments: Any) -> None:
        """Keeps what identifies the collectives of some events; ``numbers``: those of all in the file."""
        identities = [(number, identity) for row, number in zip(rows.tolist(), numbers[rows].tolist(), strict=True)
                      if (identity := collective_identity(arguments[row])) is not None]  # fmt: skip
        if identities:
            orders, found = zip(*identities, strict=True)
            codes = map(self.codes["identities"].__getitem__, found)
            self.tables["told"].add(file_order=np.array(orders), code=np.fromiter(codes, np.int32, len(orders)))

    def add_memory(self, events: Sequence[Any]) -> None:
        """Adds memory instants."""
        instants = [each for each in events if each.name == MEMORY
                    or (isinstance(each.name, str) and own_name(each.name) == MEMORY)]  # fmt: skip
        if instants:
            _, pids, tids, times, args = zip(*map(_values, instants), strict=True)
            beyond: list[int] = []
            columns = ev.MEMORY.of(args, self.codes["texts"], beyond)
            if beyond:
                self.count_defect("beyond", len(beyond), "iI", events.index(instants[min(beyond)]))
            key = self.codes["keys"].of(zip(repeat(""), pids, tids))
            self.tables["memory"].add(key=key, **columns)
            self.wait("memory", "time", times)

    def add_flows(self, flows: Sequence[Any]) -> None:
        """Adds the processes that flows begin in."""
        self.codes["flow_processes"].of(zip([flow.pid for flow in flows]))

    def name(self, kind: str, owner: Any, value: Any) -> None:
        """Keeps what a metadata event says."""
        # streams are named by their number; a host thread may have the process and thread id of one
        if kind != "thread_name" or not value.startswith("stream "):
            super().name(kind, owner, value)

    def sampled(self, values: Sequence[Any]) -> F64:
        """Values of counters: numbers alone."""
        return np.array([value if type(value) in (int, float) and abs(value) < _MOST_VALUE else np.nan
                         for value in values], np.float64)  # fmt: skip

    # -- many chunks

    def convert(self) -> None:
        """Converts the waiting events to columns."""
        super().convert()
        first, self._first = self._first, self.count
        complete, work = self._complete.columns(), self._work.columns()
        if not complete:
            return
        kept = self._convert_complete(first, complete)
        if work:
            rows = kept[work["file_order"] - first]
            self.tables["work"].add(**{key: values[rows] for key, values in work.items()})

    def _convert_complete(self, first: int, columns: dict[str, npt.NDArray[Any]]) -> Mask:
        """Adds times to complete events, the first of number ``first``; mask of those that are kept."""
        texts = [self.waiting("events", column) for column in ("start", "length")]
        start, length = map(exact_ns, texts)
        below = (length < 0) & (length != INT_MISSING)
        self._count_complete_defects("below", below, first)
        length[below] = 0
        # no difference of two of them is beyond int64
        columns |= {"start": start, "end": np.minimum(start + length, MOST_NS),
                    "file_order": np.arange(first, first + len(start), dtype=np.int32)}  # fmt: skip
        timed = (start != INT_MISSING) & (length != INT_MISSING)
        if not timed.all():
            self._count_untimed(first, *zip(texts, (start, length), strict=True))
        return self._keep(columns, timed)

    def _keep(self, columns: dict[str, npt.NDArray[Any]], timed: Mask) -> Mask:
        """Adds complete events, those that are ``timed``; mask of those that are kept."""
        # ids of Python frames join nothing
        frames = self._kinds[columns["key"]] == Kind.FRAME
        columns["external"][frames] = columns["correlation"][frames] = INT_MISSING
        kept = timed if self._filter is None else timed & self._filtered(self._filter, columns, timed)
        everything = bool(kept.all())
        self.tables["events"].add(**columns if everything else {key: values[kept] for key, values in columns.items()})
        return kept

    def _count_untimed(self, first: int, *times: tuple[bytes, I64]) -> None:
        """Counts events without a time or a duration, and apart from them those where it is a number out of range."""
        missing, beyond = (np.zeros(len(times[0][1]), np.bool_) for _ in range(2))
        for joined, values in times:
            texts = joined.split(b",")
            for row in np.flatnonzero(values == INT_MISSING).tolist():
                missing[row] = True
                beyond[row] |= is_number(texts[row])
        self._count_complete_defects("range", beyond, first)
        self._count_complete_defects("untimed", missing & ~beyond, first)

    def _filtered(
        self, event_filter: EventFilter, columns: dict[str, npt.NDArray[Any]], sound: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:  # fmt: skip
        """Mask of the events to keep, among those with valid times (``sound``)."""
        self._marks_step = _extended(self._marks_step, self.codes["names"], lambda name: marks_step(own_name(name)))
        self._earliest.append(int(self._near(columns["start"][sound]).min(initial=MOST_NS)))
        kept = sound & event_filter(columns["start"], columns["end"], self._kinds[columns["key"]],
                                    columns["correlation"], self._marks_step[columns["name"]])  # fmt: skip
        self._kept_count += int(kept.sum())
        if self._kept_count > self._most:
            raise UnreadableError(f"{self.path}: that part of it does not fit into memory.", "Ask for a shorter one.")
        return kept

    # -- the whole

    def _build_trace(self, arguments: Arguments, series: Sequence[tuple[Any, I64, F64]]) -> Trace:
        parts, memory, keys = self.tables["events"], self.tables["memory"], self.codes["keys"]
        kind_of_key = np.array([kind_of(str(category), *lane) for category, *lane in keys], np.int8)
        others = foreign(list(keys), kind_of_key, self.names["process_name"], self.names["thread_name"])
        problems = tuple(self._problems(arguments, len(series), known=others is not None))
        start, end, key = parts.take("start"), parts.take("end"), parts.take("key", np.int32)
        time = memory.take("time")
        timed = time != INT_MISSING
        file_order = parts.take("file_order", np.int32)
        converted = self.converted
        if converted is not None:
            end = np.minimum(end + converted.lengths[file_order], MOST_NS)
        self.end_begun(end, file_order)
        earliest = [int(near.min()) for times in (start, time[timed]) if len(near := self._near(times))]
        zero = min((*earliest, *self._earliest), default=0)
        start -= zero
        end -= zero
        # lanes: processes and threads as texts, in order
        pairs = [(str(pid), str(tid)) for _, pid, tid in keys]
        if others is not None:
            pairs, kind_of_key = others.lanes, others.kinds
        threads = sorted(set(pairs), key=lambda each: (numeric_sort_key(each[0]), numeric_sort_key(each[1])))
        numbers = {pair: number for number, pair in enumerate(threads)}
        lane_of_key = np.array([numbers[pair] for pair in pairs], np.int32)
        categories = Codes()
        category_of_key = np.array([categories[category] for category, _, _ in keys], np.int16)
        names = tuple(map(printable, self.codes["names"]))
        name, external = parts.take("name", np.int32), parts.take("external")
        correlation = parts.take("correlation")
        kind = _with_kinds_of_names(_decoded(kind_of_key, key), name, names)
        if others is not None:
            kind[(kind == Kind.ANNOTATION) & (correlation != INT_MISSING)] = Kind.CALL
        lane = _decoded(lane_of_key, key)
        # at equal times frames enclose the rest; ids ascend inwards; INT_MISSING - 1 wraps to the maximum: sorts last
        order = order_of_nesting(lane, start, end, kind != Kind.FRAME, external - 1)
        row_of = np.empty(len(order), np.int64)
        row_of[order] = np.arange(len(order))
        units = {} if converted is None else converted.units
        # all columns, also without any device work
        self.tables["work"].add(file_order=np.zeros(0, np.int64), **ev.WORK.of((), self.codes["texts"]))
        work_rows, work = self._table(self.tables["work"], file_order, row_of)
        metadata, labels = self.chunks.metadata, {}
        if others is not None:
            known, work_rows = work_rows, np.flatnonzero(np.isin(kind[order], DEVICE_WORK))
            without = work_without_arguments(lane[order[work_rows]], threads, self.codes["texts"])
            lanes = {key: without[key] for key in ("device", "stream")}
            work = {**work, **lanes} if np.array_equal(known, work_rows) else without
            metadata = {"deviceProperties": others.cards, **metadata}
            marks = uniques(name[_decoded(others.steps, key)])
            labels = {names[code]: names[code].rpartition(" ")[2] for code in marks.tolist()}
        return Trace(
            path=self.path, metadata=metadata, threads=tuple(threads),
            first=np.searchsorted(lane[order], np.arange(len(threads) + 1)).astype(np.int64), zero_ns=zero,
            start=start[order], end=end[order], name=name[order], kind=kind[order],
            category=_decoded(category_of_key, key)[order], file_order=file_order[order],
            correlation=correlation[order], external=external[order], names=names,
            categories=tuple(map(printable, categories)),
            texts=tuple(printable(text, _LONGEST_TEXT) for text in self.codes["texts"]),
            memory=self._memory_columns(time - zero, timed, lane_of_key), identity_codes=self._identity_codes(),
            work_rows=work_rows, work=work, identities=tuple(self.codes["identities"]),
            flow_processes=frozenset(str(pid) for (pid,) in self.codes["flow_processes"]),
            counters=tuple(CounterSeries(process, printable(title), units.get((process, title), ""), time - zero, value)
                           for (process, title), time, value in series[:_MOST_SERIES]),
            process_names=self.names["process_name"], thread_names=self.names["thread_name"],
            problems=problems, arguments=arguments, step_labels=labels,
            device_titles={} if others is None else others.titles, writer="" if others is None else others.writer,
            flows=converted.flows if converted else NO_LINKS, waits=converted.waits if converted else NO_LINKS,
        )  # fmt: skip

    def _near(self, times: I64) -> I64:
        """Those of some times of the file that can be of the recording, as far as that is known yet."""
        return times if self._recording is None else times[self._recording.near(times)]

    def _identity_codes(self) -> tuple[I64, I32]:
        told = self.tables["told"]
        order, code = told.take("file_order"), told.take("code", np.int32)
        by_order = np.argsort(order, kind="stable")
        return order[by_order], code[by_order]

    def _memory_columns(self, time: I64, timed: npt.NDArray[np.bool_], lane_of_key: I32) -> Columns:
        memory = self.tables["memory"]
        columns = {key: memory.take(key) for key in ev.MEMORY.columns}
        columns |= {"time": time, "thread": _decoded(lane_of_key, memory.take("key", np.int32))}
        event_index = columns.pop("event_index")
        last = np.iinfo(np.int64).max
        order = np.lexsort((np.arange(len(time)), np.where(event_index == INT_MISSING, last, event_index), time))
        order = order[timed[order]]
        return {key: values[order] for key, values in columns.items()}

    @staticmethod
    def _table(parts: GrowingColumns, file_order: I64, row_of: I64) -> tuple[I64, dict[str, npt.NDArray[Any]]]:
        """Rows of the table in the trace, ascending, and its columns in that order."""
        rows = row_of[np.searchsorted(file_order, parts.take("file_order"))]
        order = np.argsort(rows, kind="stable")
        return rows[order], {key: values[order] for key, values in parts.columns().items()}

    def _problems(self, arguments: Arguments, series: int, *, known: bool) -> Iterator[Problem]:
        """Defects of the file; ``series``: number of its counter series, ``known``: whether kinds need no category."""
        name = self.path.name
        yield from self.problems("trace", name)
        yield from () if self.converted is None else self.converted.problems(name)
        if isinstance(self._filter, Window):
            share = f"{self._kept_count:,} of {self.count:,} events"
            yield Problem(Severity.WARNING, f"It does not fit into memory: {share} were read.",
                          "Figures of other times are not known.", file=name)  # fmt: skip
        if series > _MOST_SERIES:
            count = series - _MOST_SERIES
            yield Problem(Severity.WARNING, f"It has {count:,} counter series beyond {_MOST_SERIES:,}.",
                          f"The first {_MOST_SERIES:,} are shown.", file=name, count=count)  # fmt: skip
        yield from () if known else self._problems_of_categories(name)
        for key, (count, spot) in self.defects.items():
            severity, message, done = _DEFECTS[key]
            lost, repaired = (count if severity is each else 0 for each in (Severity.ERROR, Severity.WARNING))
            yield Problem(severity, message, done, file=name, offset=arguments.offset_of(*spot), count=count,
                          lost=lost, repaired=repaired,
                          fragmentary=key == "below" and count > FRAGMENTARY * self.count)  # fmt: skip

    def _problems_of_categories(self, name: str) -> Iterator[Problem]:
        """What is said of traces whose events have no categories, or only those of other programs."""
        keys = self.codes["keys"]
        if any(is_legacy(*key) for key in keys):
            yield Problem(Severity.NOTE, "A legacy trace (EventList.export_chrome_trace): no event has a category.",
                          "Operators and kernels are told apart by their processes.", file=name)  # fmt: skip
        foreign_alone = not any(kind_of(*key) in ON_HOST for key in keys)
        unknown = {number: key[0] for number, key in enumerate(keys)
                   if kind_of(*key) == Kind.OTHER and key[0].lower() not in OF_PROFILER}  # fmt: skip
        count = int(np.isin(self.tables["events"].column("key"), list(unknown)).sum()) if unknown else 0
        if count:
            named = ", ".join(sorted({printable(each) for each in unknown.values() if each})[:_MOST_NAMED])
            what = f"Events of unknown category{named and f' ({named})'}"
            what += ": another program wrote the trace." if foreign_alone else "."
            yield Problem(Severity.WARNING if foreign_alone else Severity.NOTE, what,
                          "They are shown; no figure is computed from them.", file=name, count=count)  # fmt: skip


def _title(process: str, name: str, key: str) -> tuple[str, str]:
    return process, name if key in (name, "value") else f"{name} {key}"


def _extended(known: npt.NDArray[Any], codes: Codes, value_of: Callable[[Any], Any]) -> npt.NDArray[Any]:
    """Values by code with those of new codes."""
    if len(codes) == len(known):
        return known
    new = np.array([value_of(each) for each in islice(codes, len(known), None)])
    return np.concatenate([known, new.astype(known.dtype)])


def _decoded(values: npt.NDArray[Any], codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values[codes] if len(codes) else values[:0]


def _with_kinds_of_names(kind: npt.NDArray[np.int8], name: I32, names: Sequence[str]) -> npt.NDArray[np.int8]:
    """Kinds with those of events whose name decides replaced by the kind that it implies."""
    rows = np.flatnonzero(kind == Kind.NAMED)
    if len(rows):
        of_name = np.array([Kind.COPY if _COPY.match(text) else Kind.SET if _SET.match(text) else Kind.WAIT
                            if text.startswith("event_") else Kind.KERNEL for text in names], np.int8)  # fmt: skip
        kind = kind.copy()
        kind[rows] = of_name[name[rows]]
    return kind


def _of_outline(start: I64, end: I64, kind: npt.NDArray[np.int8], correlation: I64, marked: Mask) -> Mask:
    return np.asarray(_LAUNCHES[kind] | marked)


class Window(Struct, frozen=True, eq=False):
    """Selection of the events that belong to a time range."""

    #: low, high: Range of device work, ns of the file's clock.
    low: int
    high: int
    #: host_low, host_high: Range of host activity.
    host_low: int
    host_high: int
    correlations: I64  #: Correlation ids of calls and device work in the range, ascending

    def __call__(self, start: I64, end: I64, kind: npt.NDArray[np.int8], correlation: I64, marked: Mask) -> Mask:
        """Mask of the events that belong to the range (an ``EventFilter``)."""
        device = _DEVICE[kind]
        low, high = np.where(device, self.low, self.host_low), np.where(device, self.high, self.host_high)
        joined = lookup(self.correlations, correlation) >= 0
        return np.asarray(((start < high) & (end >= low)) | joined | marked)


def _window_of(outlines: Sequence[Trace], zero_ns: int, part: Part) -> Window:
    """Resolves a part to a window, which comprises those of all ranks that were merged into a file.

    Raises:
        UsageError: There is no such step in any rank, or the range is invalid or in percent.
    """
    found, errors = [], []
    for outline in outlines:
        try:
            found.append(_window_of_rank(outline, zero_ns - outline.zero_ns, part))
        except UsageError as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return Window(min(each.low for each in found), max(each.high for each in found),
                  min(each.host_low for each in found), max(each.host_high for each in found),
                  uniques(np.concatenate([each.correlations for each in found])))  # fmt: skip


def _window_of_rank(outline: Trace, begin: int, part: Part) -> Window:
    found, _, numbers, _ = marked_steps(outline)
    starts, ends = outline.start[found], outline.end[found]
    requested = _requested_range(outline, begin, part, starts, ends, numbers)
    low, high = requested
    call = outline.call
    launched_at = np.where(call >= 0, outline.start[call] if len(outline) else 0, INT_MISSING)
    work_end = outline.end[outline.work_rows]
    # a step ends with the device work that it launched
    ended = [int(work_end[(launched_at >= start) & (launched_at < end)].max(initial=end))
             for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]  # fmt: skip
    overlapping = (starts < high) & (np.array(ended, np.int64) >= low) if part.step is None else numbers == part.step
    if overlapping.any():
        low, high = min(low, int(starts[overlapping].min())), max(high, int(np.array(ended)[overlapping].max()))
    inside = (outline.start < high) & (outline.end >= low) & _LAUNCHES[outline.kind]
    correlations = uniques(outline.correlation[inside])
    correlations = correlations[correlations != INT_MISSING]
    calls = (outline.kind == Kind.CALL) & np.isin(outline.correlation, correlations)
    zero = outline.zero_ns
    return Window(zero + low, zero + high, zero + min(low, int(outline.start[calls].min(initial=low))),
                  zero + max(high, int(outline.end[calls].max(initial=high))), correlations)  # fmt: skip


def _requested_range(
    outline: Trace, zero: int, part: Part, starts: I64, ends: I64, numbers: I64
) -> tuple[int, int]:  # fmt: skip
    """Begin and end of the requested range, ns from the trace's zero; ``zero``: that of the range, likewise."""
    low, high = 0, outline.length_ns
    if part.step is not None:
        of_step = numbers == part.step
        if not of_step.any():
            raise UsageError(f"The capture has no step {part.step}.",
                             f"There are: {', '.join(map(str, numbers[:8].tolist())) or 'none'}.")  # fmt: skip
        low, high = int(starts[of_step].min()), int(ends[of_step].max())
    if part.range:
        if "%" in part.range:
            raise UsageError("--range for a file larger than memory takes times only.", "Write 1.2s..3.4s.")
        begin, end = range_typed(part.range, TimeBase(0, outline.length_ns))
        if part.step is None:
            return zero + (begin or 0), high if end is None else zero + end
    return low, high
