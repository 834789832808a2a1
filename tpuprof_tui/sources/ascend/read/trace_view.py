"""Reads ``trace_view.json`` and ``msprof*.json``, the Chrome-trace JSON of CANN's exporters, into a `Timeline`."""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, groupby, islice, repeat
from pathlib import Path
from typing import Any, BinaryIO, Final, Union

import msgspec
import numpy as np
import numpy.typing as npt

from tpuprof_tui.child_process import cores
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.decimals import numbers_in, one_real, reals, wholes
from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.chunks import NOTHING, EventChunks, Number, Tally, raw_text
from tpuprof_tui.sources.chrome.growing import GrowingColumns
from tpuprof_tui.sources.chrome.inflate import PackedText, text_of
from tpuprof_tui.sources.chrome.nesting import parents
from tpuprof_tui.sources.chrome.sections import (
    Section,
    SectionText,
    begins_with_object,
    ended_at_border,
    memory_bytes,
    other_processes,
    sections_of,
    state_of,
)
from tpuprof_tui.sources.chrome.times import exact_ns, text_of_times

from ..recorded import ASYNC_NPU, HOST_TO_DEVICE, STEP
from .categories import LAYERS, Layer, SliceClass, class_of_task
from .timeline import CounterSeries, Flows, Timeline, Track, innermost_at, timeline_of

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

_LONGEST_NAME: Final = 1 << 12
_LONGEST_TEXT: Final = 1 << 16
_MOST_NS: Final = 1 << 61
#: Flow categories that are kept; the index is the code.
_FLOWS: Final = (ASYNC_NPU, HOST_TO_DEVICE, "async_task_queue", "fwdbwd", "MsTx")
_UNIT: Final = lazy_pattern(r"\(([^()]+)\)$")
_UNITS: Final = ("MHz", "KB", "MB", "V", "mV")
_DEVICE: Final = lazy_pattern(r"NPU\s*(\d+)")


class _Args(msgspec.Struct, gc=False, rename={
    "task_type": "Task Type", "task_type_old": "task type", "dims": "Input Dims", "stack": "Call stack",
    "size": "size(Byte)", "size_old": "size(B)",
}):  # fmt: skip
    """Arguments of slices that are used; all others are skipped."""

    task_type: Any = None
    task_type_old: Any = None
    level: Any = None
    connection_id: Any = INT_MISSING
    dims: Any = None
    stack: Any = None
    size: Any = INT_MISSING
    size_old: Any = INT_MISSING


class _NameArgs(msgspec.Struct, gc=False):
    name: Any = None
    labels: Any = None
    sort_index: Any = None


# -- events, by phase


class _Slice(msgspec.Struct, gc=False, tag_field="ph", tag="X"):
    pid: Any = None
    tid: Any = None
    name: Any = ""
    cat: Any = None
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    args: _Args | None = None


class _Begin(msgspec.Struct, gc=False, tag_field="ph", tag="s"):
    pid: Any = None
    tid: Any = None
    cat: Any = None
    id: Any = None
    ts: msgspec.Raw = NOTHING


class _End(_Begin, gc=False, tag_field="ph", tag="f"):
    pass


class _Sample(msgspec.Struct, gc=False, tag_field="ph", tag="C"):
    pid: Any = None
    name: Any = ""
    ts: msgspec.Raw = NOTHING
    args: dict[str, Any] | None = None


class _Metadata(msgspec.Struct, gc=False, tag_field="ph", tag="M"):
    pid: Any = None
    tid: Any = None
    name: Any = ""
    args: _NameArgs | None = None


#: Struct of each phase; events of any other phase are skipped.
_PHASES: Final[dict[str, Any]] = {
    "X": _Slice, "s": _Begin, "f": _End, "C": _Sample, "M": _Metadata,
    **{phase: msgspec.defstruct(f"_Other{number}", [], gc=False, tag_field="ph", tag=phase)
       for number, phase in enumerate(("", *"iItBEnbe"))},
}  # fmt: skip
_ANY_EVENT: Final[Any] = Union[tuple(_PHASES.values())]  # noqa: UP007
_ADD_METHODS: Final[dict[Any, str]] = {
    _Slice: "_add_slices", _Begin: "_add_flows", _End: "_add_flows", _Sample: "_add_samples", _Metadata: "_add_names",
}  # fmt: skip
#: Events converted to columns at a time: below this numpy's call overhead dominates.
_AT_A_TIME: Final = 1 << 16
#: Most cached combinations of event attributes; beyond this the caches are cleared.
_MOST_CACHED: Final = 1 << 12
#: Memory required before other processes read sections of a file, as a multiple of its text.
_MEMORY_FACTOR: Final = 2
#: Separator between the number of a file and a process id.
_PART: Final = "\x1f"

_NO_ARGS: Final = _Args()
_values: Final = msgspec.structs.astuple
_CODE_OF_FLOW: Final = {name: code for code, name in enumerate(_FLOWS)}


def read_trace_view(
    paths: Sequence[Path], name: str, progress: Callable[[int, int], None] | None = None, parts: Sequence[Path] = ()
) -> Timeline:  # fmt: skip
    """Reads a timeline from one or more files.

    Args:
        paths: The files, in order; JSON, or gzip of it.
        name: Name of the first.
        progress: Called with the bytes read and the size of the file; an exception that it raises ends the reading.
        parts: Files that may repeat parts of the timeline: of each, only processes that no earlier file has are kept.
            Process ids are local to each of these files.

    Raises:
        UnreadableError: A file cannot be opened, or holds no list of events.
    """
    collects = gc.isenabled()
    # the objects of a chunk form no cycles: reference counting frees them
    gc.disable()
    try:
        reader = _read_in_sections(paths[0], name, progress) if len(paths) == 1 and not parts else None
        if reader is not None:
            return reader.timeline()
        reader = _Reader(name)
        for number, path in enumerate((*paths, *parts), 1 - len(paths)):
            with path.open("rb") as raw:
                reader.take(path, raw, progress, f"{number}{_PART}" if number > 0 else "")
    except OSError as error:
        raise UnreadableError(f"{path}: {(error.strerror or 'cannot be read').lower()}.") from None
    finally:
        if collects:
            gc.enable()
    return reader.timeline()


class SectionEvents(msgspec.Struct, frozen=True, eq=False):
    """Events of a section of a file; codes start at 0.

    Attributes:
        state: Size and modification time of the file.
        names, kinds, texts, keys, ids, counters: Values by code.
        columns: Columns of slices, of flow starts and ends, and of samples.
        processes, labels, sorts, threads, thread_sorts: Metadata of processes and tracks.
        unmeasured: Indices of slices without a duration, and of those with a negative one.
        tallies, truncated: Defects of the text.
        text_end: Offset of its end.
    """

    state: tuple[int, int]
    names: list[str]
    kinds: list[str]
    texts: list[str]
    keys: list[tuple[str, str]]
    ids: list[str]
    counters: list[tuple[str, str, str]]
    columns: list[dict[str, npt.NDArray[Any]]]
    processes: dict[str, str]
    labels: dict[str, str]
    sorts: dict[str, float]
    threads: dict[int, str]
    thread_sorts: dict[int, float]
    unmeasured: tuple[I64, I64]
    tallies: dict[str, Tally]
    truncated: bool
    text_end: int


def read_section(path: Path, section: Section) -> SectionEvents | None:
    """Reads a section other than the first, in another process; None if its borders are wrong."""
    with path.open("rb") as raw:
        in_object = begins_with_object(raw)
        return _Reader(path.name).events_of_section(raw, section, in_object=in_object)


def _read_in_sections(path: Path, name: str, progress: Callable[[int, int], None] | None) -> _Reader | None:
    """Reads a large file in several processes; None if that is not worth it or not possible."""
    with path.open("rb") as raw:
        size = os.fstat(raw.fileno()).st_size
        if memory_bytes() < _MEMORY_FACTOR * size or text_of(path, raw) is not raw:
            return None
        sections = sections_of(raw, size, cores())
        if len(sections) < 2:
            return None
        reader = _Reader(name)
        with other_processes(path, sections[1:], __name__) as others:
            return reader if reader.read_sections(raw, progress, sections[0], others) else None


class _Codes(dict[Any, int]):
    """Maps values to dense integer codes, in order of first use.

    Args:
        key_of: Returns the key that a value is stored under.
        codes: Code of each key.
    """

    def __init__(self, key_of: Callable[[Any], Any] = str, codes: dict[Any, int] | None = None) -> None:
        self._key_of = key_of
        self.codes: dict[Any, int] = {} if codes is None else codes

    def __missing__(self, value: Any) -> int:
        code = self[value] = self._code(value)
        return code

    def _code(self, value: Any) -> int:
        return self.codes.setdefault(self._key_of(value), len(self.codes))

    def of(self, values: Iterable[Any]) -> I32:
        """Codes of some values."""
        values = list(values)
        try:
            return np.fromiter(map(self.__getitem__, values), np.int32, len(values))
        except TypeError:
            # unhashable values
            return np.fromiter(map(self._code, values), np.int32, len(values))


class _Texts(_Codes):
    """Codes of texts; -1 for values that are no text, or an empty one, which tables leave out."""

    def _code(self, value: Any) -> int:
        return super()._code(value) if value and type(value) is str else -1


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._names, self._kinds, self._texts = _Codes(), _Codes(), _Texts()
        self._keys: dict[tuple[str, str], int] = {}
        self._begin("")
        self._columns = {kind: GrowingColumns() for kind in (_Slice, _Begin, _End, _Sample)}
        #: Texts of times not yet parsed, by struct.
        self._waiting: defaultdict[Any, list[bytes]] = defaultdict(list)
        self._lengths: list[bytes] = []
        #: Codes of flow ids that are no whole numbers.
        self._ids: dict[str, int] = {}
        self._counters: dict[tuple[str, str, str], int] = {}
        self._processes: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._sorts: dict[str, float] = {}
        self._threads: dict[int, str] = {}
        self._thread_sorts: dict[int, float] = {}
        self._problems: list[Problem] = []
        self._slices_read = 0
        #: Indices of slices without a duration, and of those with a negative one.
        self._unmeasured = (GrowingColumns(), GrowingColumns())

    # -- one file

    def _begin(self, part: str) -> None:
        """Starts a file; ``part``: prefix of the process ids of a file that has its own."""
        self._part, self._tracks = part, _Codes(lambda key: (part + str(key[0]), str(key[1])), self._keys)
        self._clear_caches()

    def _clear_caches(self) -> None:
        #: Combinations of track and kind of slices.
        self._track_kinds = _Codes(self._track_kind)
        #: Combinations of counter event attributes, and the counters of each.
        self._groups = _Codes(_group)
        self._counters_of: list[list[int]] = []

    def take(self, path: Path, raw: BinaryIO, progress: Callable[[int, int], None] | None, part: str) -> None:
        self._begin(part)
        size = os.fstat(raw.fileno()).st_size
        source = text_of(path, raw)
        text_read = 0

        def read(count: int) -> bytes:
            nonlocal text_read
            data = source.read(count)
            text_read += len(data)
            if progress is not None:
                progress(min(raw.tell(), size), size)
            return data

        chunks: EventChunks[Any] = EventChunks(read, _ANY_EVENT, _event_from_dict)
        self._read_events(chunks)
        if not chunks.found:
            raise UnreadableError(f"{self._name} holds no list of events.")
        self._report_defects(chunks, text_read, source.fault if isinstance(source, PackedText) else None)

    def read_sections(
        self, raw: BinaryIO, progress: Callable[[int, int], None] | None, section: Section,
        results: Iterable[Callable[[], Any]],
    ) -> bool:  # fmt: skip
        """Reads the first section, joins those that others read; False if a border was wrong or a process failed."""
        state = state_of(raw.fileno())
        text = SectionText(raw, section)

        def read(count: int) -> bytes:
            if progress is not None:
                progress(min(raw.tell() * state[0] // section.end, state[0]), state[0])
            return text.read(count)

        chunks: EventChunks[Any] = EventChunks(read, _ANY_EVENT, _event_from_dict, read_rest=False)
        self._read_events(chunks)
        if not ended_at_border(section, chunks):
            return False
        text_read = 0
        for result in results:
            found = result()
            if not isinstance(found, SectionEvents) or found.state != state:
                return False
            self._join(found)
            chunks.add_results(found.tallies, {}, truncated=found.truncated)
            text_read = found.text_end
        self._report_defects(chunks, text_read)
        return True

    def events_of_section(self, raw: BinaryIO, section: Section, *, in_object: bool) -> SectionEvents | None:
        """Reads a section; None if its borders are wrong. ``in_object``: whether the list of events is in an object."""
        chunks: EventChunks[Any] = EventChunks(
            SectionText(raw, section).read, _ANY_EVENT, _event_from_dict, begin=section.begin, in_object=in_object,
            read_rest=section.end < 0,
        )  # fmt: skip
        self._read_events(chunks)
        if not ended_at_border(section, chunks):
            return None
        return SectionEvents(
            state_of(raw.fileno()), list(self._names.codes), list(self._kinds.codes), list(self._texts.codes),
            list(self._keys), list(self._ids), list(self._counters),
            [columns.columns() for columns in self._columns.values()], self._processes, self._labels, self._sorts,
            self._threads, self._thread_sorts, self._rows_unmeasured(), chunks.tallies, chunks.truncated, raw.tell(),
        )  # fmt: skip

    def _join(self, found: SectionEvents) -> None:
        """Appends the events of the section that follows."""
        pairs: tuple[tuple[dict[Any, int], Sequence[Any]], ...] = (
            (self._names.codes, found.names), (self._kinds.codes, found.kinds), (self._texts.codes, found.texts),
            (self._keys, found.keys), (self._ids, found.ids), (self._counters, found.counters),
        )  # fmt: skip
        names, kinds, texts, tracks, ids, counters = (
            np.array([*(own.setdefault(each, len(own)) for each in values), -1]) for own, values in pairs
        )
        coded = {"name": names, "kind": kinds, "shapes": texts, "stacks": texts, "track": tracks, "counter": counters}
        for own, values in zip(self._columns.values(), found.columns, strict=True):
            columns = {key: coded[key][column].astype(column.dtype) if key in coded else column
                       for key, column in values.items()}  # fmt: skip
            if "id" in columns:
                # negative ids are codes of texts
                columns["id"] = np.where(values["id"] < 0, -1 - ids[np.maximum(-1 - values["id"], -1)], values["id"])
            own.add(**columns)
        self._processes |= found.processes
        self._labels |= found.labels
        self._sorts |= found.sorts
        self._threads |= {int(tracks[number]): name for number, name in found.threads.items()}
        self._thread_sorts |= {int(tracks[number]): sort_index for number, sort_index in found.thread_sorts.items()}
        for own, rows in zip(self._unmeasured, found.unmeasured, strict=True):
            own.add(row=rows + self._slices_read)
        self._slices_read += len(found.columns[0].get("start", ()))

    def _read_events(self, chunks: EventChunks[Any]) -> None:
        waiting = 0
        for events in chunks:
            of_kind: defaultdict[Any, list[Any]] = defaultdict(list)
            for kind, run in groupby(events, type):
                of_kind[kind] += run
            for kind, some in of_kind.items():
                if kind in _ADD_METHODS:
                    getattr(self, _ADD_METHODS[kind])(some)
            waiting += len(events)
            # free the events now, so that the next ones reuse their memory while it is in the CPU cache
            events.clear()
            of_kind.clear()
            some.clear()
            if max(len(self._track_kinds), len(self._groups)) > _MOST_CACHED:
                self._clear_caches()
            if waiting >= _AT_A_TIME:
                self._read_numbers()
                waiting = 0
        self._read_numbers()

    def _report_defects(
        self, chunks: EventChunks[Any], text_read: int, fault: tuple[str, str] | None = None
    ) -> None:  # fmt: skip
        """Reports defects of a text of ``text_read`` bytes, and a fault of the data that it was packed in."""
        if fault is not None:
            self._note(Severity.ERROR, *fault, text_read)
        elif chunks.truncated:
            self._note(Severity.ERROR, "The timeline ends within its list of events.",
                       "All events before are shown.", text_read)  # fmt: skip
        self._problems += chunks.problems(self._name)

    def _note(self, severity: Severity, what: str, done: str, offset: int = -1, count: int = 1) -> None:
        self._problems.append(Problem(severity, what, done, self._name, offset, count=count))

    def _add_slices(self, slices: list[_Slice]) -> None:
        pids, tids, names, categories, starts, lengths, arguments = zip(*map(_values, slices), strict=True)
        args = map(_values, [each or _NO_ARGS for each in arguments])
        tasks, old_tasks, levels, connections, dims, stacks, sizes, old_sizes = zip(*args, strict=True)
        if old_sizes.count(INT_MISSING) < len(old_sizes):
            sizes = tuple(old if size == INT_MISSING else size for size, old in zip(sizes, old_sizes, strict=True))
        # one look-up for track and kind: there are few combinations
        pair_codes = self._track_kinds.of(zip(pids, tids, categories, tasks, old_tasks, levels, strict=True))
        track, kind = np.array(list(self._track_kinds.codes), np.int32).T
        self._columns[_Slice].add(
            track=track[pair_codes], name=self._names.of(names), kind=kind[pair_codes], connection=wholes(connections),
            size=wholes(sizes), shapes=self._texts.of(dims), stacks=self._texts.of(stacks),
        )  # fmt: skip
        self._waiting[_Slice].append(text_of_times(starts))
        self._lengths.append(text_of_times(lengths))

    def _track_kind(self, values: tuple[Any, ...]) -> tuple[int, int]:
        """Codes of track and kind; the kind is the first given of category, task type and level."""
        pid, tid, *kinds = values
        (track,), (kind,) = self._tracks.of([(pid, tid)]), self._kinds.of([next(filter(None, kinds), "")])
        return int(track), int(kind)

    def _add_flows(self, flows: list[_Begin]) -> None:
        kept = [each for each in flows if type(each.cat) is str and each.cat in _CODE_OF_FLOW]
        if kept:
            pids, tids, categories, ids, times = zip(*map(_values, kept), strict=True)
            kind = type(kept[0])
            self._columns[kind].add(
                track=self._tracks.of(zip(pids, tids, strict=True)),
                category=np.fromiter(map(_CODE_OF_FLOW.__getitem__, categories), np.int8, len(kept)),
                id=self._ids_of(ids),
            )  # fmt: skip
            self._waiting[kind].append(text_of_times(times))

    def _ids_of(self, values: Sequence[Any]) -> I64:
        """Integer keys for flow ids: whole numbers map to themselves, other texts to negative codes."""
        return np.array([each if type(each) is int and 0 <= each < 1 << 63 else self._id(str(each)) for each in values],
                        np.int64)  # fmt: skip

    def _id(self, text: str) -> int:
        if text.isdecimal() and text.isascii() and len(text) < 20 and (text[0] != "0" or text == "0"):
            number = int(text)
            if number < 1 << 63:
                return number
        return -1 - self._ids.setdefault(text, len(self._ids))

    def _add_samples(self, samples: list[_Sample]) -> None:
        pids, names = [each.pid for each in samples], [each.name for each in samples]
        args = [each.args or {} for each in samples]
        accelerators = list(map(dict.pop, args, repeat("acc_id"), repeat(None)))
        values = list(chain.from_iterable(map(dict.values, args)))
        group = self._groups.of(zip(pids, names, accelerators, map(tuple, args), strict=True))
        counters = self._counters_of
        counters += [
            [self._counters.setdefault((self._part + pid, name, key), len(self._counters)) for key in more]
            for pid, name, *more in islice(self._groups.codes, len(counters), None)
        ]
        count = np.array(list(map(len, counters)), np.int64)
        # counters of all groups concatenated: index of the first counter of each event
        first = (np.cumsum(count) - count)[group]
        count = count[group]
        index = np.repeat(first - np.cumsum(count) + count, count) + np.arange(len(values))
        self._columns[_Sample].add(counter=np.array([each for more in counters for each in more], np.int32)[index],
                                   value=reals(values), count=count)  # fmt: skip
        self._waiting[_Sample].append(text_of_times([each.ts for each in samples]))

    def _add_names(self, events: list[_Metadata]) -> None:
        for event in events:
            pid, args = self._part + str(event.pid), event.args or _NameArgs()
            if event.name == "process_name" and isinstance(args.name, str):
                self._processes[pid] = args.name
            elif event.name == "process_labels" and isinstance(args.labels, str):
                self._labels[pid] = args.labels
            elif event.name == "process_sort_index":
                self._sorts[pid] = one_real(args.sort_index)
            elif event.name in ("thread_name", "thread_sort_index"):
                (track,) = self._tracks.of([(event.pid, event.tid)]).tolist()
                if event.name == "thread_sort_index":
                    self._thread_sorts[track] = one_real(args.sort_index)
                elif isinstance(args.name, str):
                    self._threads[track] = args.name

    def _read_numbers(self) -> None:
        """Parses the waiting numbers into columns."""
        waiting, self._waiting = self._waiting, defaultdict(list)
        if self._lengths:
            durations, self._lengths = numbers_in(b"".join(self._lengths)), []
            start, length = exact_ns(b"".join(waiting.pop(_Slice))), durations.nanoseconds()
            sound = (start != INT_MISSING) & (np.abs(start) < _MOST_NS) & (length < _MOST_NS)
            measured = length >= 0
            # a missing length is the smallest number
            self._columns[_Slice].add(start=np.where(sound, start, INT_MISSING), end=start + np.maximum(length, 0),
                                      finer=durations.finer())  # fmt: skip
            if not measured.all():
                rows = np.flatnonzero(sound & ~measured)
                missing = length[rows] == INT_MISSING
                for own, which in zip(self._unmeasured, (missing, ~missing), strict=True):
                    own.add(row=rows[which] + self._slices_read)
            self._slices_read += len(start)
        for kind, texts in waiting.items():
            self._columns[kind].add(time=exact_ns(b"".join(texts)))

    def _rows_unmeasured(self) -> tuple[I64, I64]:
        missing, negative = (own.column("row") for own in self._unmeasured)
        return missing, negative

    # -- the whole

    def timeline(self) -> Timeline:
        tracks, order = [], []
        slices = self._columns[_Slice]
        columns: dict[str, Any] = {key: slices.take(key, dtype) for key, dtype in _COLUMNS.items()}
        sound = columns["start"] != INT_MISSING
        missing, negative = self._rows_unmeasured()
        unmeasured = np.sort(np.concatenate([missing, negative]))
        if not sound.all():
            self._note(Severity.ERROR, "Slices without a time.", "They were left out.", count=int((~sound).sum()))
            columns = {key: values[sound] for key, values in columns.items()}
            unmeasured = (np.cumsum(sound) - 1)[unmeasured]
        for rows, what in ((missing, "Slices without a duration."), (negative, "Slices of negative duration.")):
            if len(rows):
                self._note(Severity.WARNING, what, "They are shown with length 0 and count in no average.",
                           count=len(rows))  # fmt: skip
        self._check_devices()
        track = columns.pop("track")
        columns["file_order"] = np.arange(len(track))
        unnamed = self._layers_by_kind(track, columns["kind"])
        for (pid, tid), number in self._keys.items():
            process = self._processes.get(pid, "")
            label = self._threads.get(number, "")
            layer = LAYERS[process] if process in LAYERS else unnamed.get(number, Layer.OTHER)
            if layer == Layer.COMMUNICATION and label.startswith("Plane"):
                layer = Layer.PLANE
            tid_number = int(tid[:18]) if tid.isascii() and tid.isdecimal() else -1
            title = process or f"Process {pid.rpartition(_PART)[2]}"
            tracks.append(Track(layer, _utf8(title), _utf8(label or f"Thread {tid}"),
                                min(tid_number, 1 << 31), self._device(pid)))  # fmt: skip
            order.append((self._sorts.get(pid, np.inf), pid, self._thread_sorts.get(number, np.inf), tid_number, tid))
        kinds, names = (tuple(map(_utf8, known.codes)) for known in (self._kinds, self._names))
        columns["slice_class"] = _slice_classes(tracks, track, columns, kinds, names)
        derived = any(each.layer == Layer.OVERLAP for each in tracks)
        repeated = np.array([self._is_repeated(pid) for pid, _ in self._keys], np.bool_)
        if repeated.any():
            rows = np.flatnonzero(~repeated[track])
            track, columns = track[rows], {key: values[rows] for key, values in columns.items()}
        used = np.bincount(track, minlength=len(tracks)) > 0
        # drop tracks that only hold ends of flows
        kept = {old: new for new, old in enumerate(np.flatnonzero(used).tolist())}
        renumbered = np.array([kept.get(number, -1) for number in range(len(tracks))], np.int64)
        return timeline_of(
            self._name, [tracks[number] for number in kept], [order[number] for number in kept],
            renumbered[track] if len(track) else track, columns,
            lambda first, ordered, place: self._links(first, ordered, np.append(place, -1)[renumbered]),
            names=names, kinds=kinds, texts=tuple(_utf8(text, _LONGEST_TEXT) for text in self._texts.codes),
            counters=_hit_rates_in_percent(self._series()), unmeasured=unmeasured, derived=derived and bool(len(track)),
            problems=tuple(self._problems),
        )  # fmt: skip

    def _check_devices(self) -> None:
        """Reports several devices that the timeline does not tell apart by number."""
        used = {pid for pid, _ in self._keys}
        pids: defaultdict[int, list[str]] = defaultdict(list)
        for pid, process in self._processes.items():
            if process == "Ascend Hardware" and pid in used and not self._is_repeated(pid):
                pids[self._device(pid)].append(pid)
        for device, same in pids.items():
            if len(same) > 1:
                name = f"NPU {device}" if device >= 0 else "NPU without a number"
                self._note(Severity.WARNING, f"The timeline holds {len(same)} devices called {name}, as of several "
                           "ranks.", "They are shown as one NPU.", count=len(same))  # fmt: skip

    def _layers_by_kind(self, track: I32, kind: I32) -> dict[int, Layer]:
        """Layers of tracks whose process has no known name, as in a file truncated before its metadata.

        A process with another name is only looked at if it is labelled as one of an NPU.
        """
        unknown = {pid for pid, _ in self._keys if pid not in self._processes or (
            self._processes[pid] not in LAYERS and self._labels.get(pid, "").startswith("NPU"))}  # fmt: skip
        if not unknown:
            return {}
        pids = [pid for pid, _ in self._keys]
        kinds = list(self._kinds.codes)
        found: dict[int, Layer] = {}
        pairs = uniques(track.astype(np.int64) << 32 | kind)
        for number, code in zip((pairs >> 32).tolist(), (pairs & 0xFFFFFFFF).tolist(), strict=True):
            if pids[number] not in unknown:
                continue
            layer = _LAYER_OF_KIND.get(kinds[code])
            if layer is None and kinds[code] and class_of_task(kinds[code]) != SliceClass.SYNC:
                layer = Layer.STREAM
            if layer is not None:
                found[number] = layer
        return found

    def _links(self, first: I64, columns: dict[str, Any], track_of: I64) -> Flows:
        begins, ends = (self._columns[kind] for kind in (_Begin, _End))
        category, ids, begin_ids = ends.column("category", np.int8), ends.column("id"), begins.column("id")
        begin = np.full(len(ids), -1, np.int64)
        for code in range(len(_FLOWS)):
            here, starts = np.flatnonzero(category == code), np.flatnonzero(begins.column("category", np.int8) == code)
            starts = starts[np.argsort(begin_ids[starts], kind="stable")]
            # of several starts with one id the last counts
            index = np.searchsorted(begin_ids[starts], ids[here], side="right") - 1
            hit = np.flatnonzero(index >= 0)
            hit = hit[begin_ids[starts[index[hit]]] == ids[here[hit]]]
            begin[here[hit]] = starts[index[hit]]
        end = np.flatnonzero(begin >= 0)
        begin = begin[end]
        from_time, to_time = begins.column("time")[begin], ends.column("time")[end]
        timed = (from_time != INT_MISSING) & (to_time != INT_MISSING)
        begin, end, from_time, to_time = begin[timed], end[timed], from_time[timed], to_time[timed]
        category = category[end]
        from_track, to_track = (
            track_of[each.column("track", np.int32)[rows]] for each, rows in ((begins, begin), (ends, end))
        )
        timeline = _Slices(first, columns)
        from_row = np.full(len(begin), -1, np.int64)
        # class of the slices that flows of a category start in; other categories start in any slice
        wanted = {HOST_TO_DEVICE: (SliceClass.CALL,), ASYNC_NPU: (SliceClass.OPERATOR,)}
        for kinds in ((HOST_TO_DEVICE,), (ASYNC_NPU,), [each for each in _FLOWS if each not in wanted]):
            here = np.flatnonzero(np.isin(category, [_CODE_OF_FLOW[kind] for kind in kinds]))
            if len(here):
                from_row[here] = timeline.enclosing(from_track[here], from_time[here], wanted.get(kinds[0]))
        return Flows(_FLOWS, category, from_time, to_time, from_row, timeline.starting_at(to_track, to_time))

    def _series(self) -> Any:
        samples = self._columns[_Sample]
        counter = samples.take("counter", np.int32)
        order = np.argsort(counter, kind="stable")
        every = np.repeat(samples.take("time"), samples.take("count"))[order]
        values = samples.take("value", np.float64)[order]
        bounds = np.searchsorted(counter[order], np.arange(len(self._counters) + 1)).tolist()
        for (pid, name, key), low, high in zip(self._counters, bounds, bounds[1:], strict=False):
            if self._is_repeated(pid):
                continue
            times, numbers = every[low:high], values[low:high]
            sound = (times != INT_MISSING) & ~np.isnan(numbers)
            times, numbers = times[sound], numbers[sound]
            order = np.argsort(times, kind="stable")
            unit_match = _UNIT.search(key)
            unit = unit_match[1] if unit_match else key if key in _UNITS else ""
            more = "" if unit_match or key in ("value", name) or unit else f" {key}"
            if len(times):
                yield CounterSeries(_utf8(self._processes.get(pid, "")), _utf8(f"{name}{more}"), _utf8(unit),
                                    times[order], numbers[order], self._device(pid))  # fmt: skip

    def _is_repeated(self, pid: str) -> bool:
        """Whether an earlier file has a process of the same name."""
        part, _, _ = pid.rpartition(_PART)
        return bool(part) and self._first_part.get(self._processes.get(pid, ""), part) != part

    @cached_property
    def _first_part(self) -> dict[str, str]:
        """Prefix of the first file that has a process, by process name; empty: the main files."""
        first: dict[str, str] = {}
        for pid, name in self._processes.items():
            part = pid.rpartition(_PART)[0]
            if name not in first or not part:
                first[name] = part
        return first

    def _device(self, pid: str) -> int:
        """Device number in a process's label; -1 if there is none."""
        match = _DEVICE.search(self._labels.get(pid, ""))
        return int(match[1][:6]) if match else -1


class _Slices:
    """Sorted slices, for finding those at the ends of flows."""

    def __init__(self, first: I64, columns: dict[str, Any]) -> None:
        self.start, self.end, self.slice_class = columns["start"], columns["end"], columns["slice_class"]
        self._file_order, self._first = columns["file_order"], first
        self.track = np.repeat(np.arange(len(first) - 1), np.diff(first))

    def enclosing(self, tracks: I64, times: I64, classes: tuple[SliceClass, ...] | None) -> I64:
        """Row of the innermost slice that covers each point, else of the last that started before it; -1 if none."""
        wanted_tracks = np.bincount(tracks[tracks >= 0], minlength=len(self._first)) > 0
        track_rows = np.flatnonzero(wanted_tracks[self.track])
        rows = track_rows if classes is None else track_rows[np.isin(self.slice_class[track_rows], classes)]
        above = parents(self.start[rows], self.end[rows], self.track[rows])
        index = innermost_at(self, rows, above, tracks, times)  # type: ignore[arg-type]
        lone = np.flatnonzero((index < 0) & (tracks >= 0))
        if len(lone) and len(rows):
            track = self.track[rows]
            for number in np.flatnonzero(np.bincount(tracks[lone])).tolist():
                low, high = np.searchsorted(track, [number, number + 1])
                points = lone[tracks[lone] == number]
                before = low + np.searchsorted(self.start[rows[low:high]], times[points], side="right") - 1
                index[points] = np.where(before >= low, before, -1)
        return np.where(index >= 0, rows[index] if len(rows) else -1, -1)

    def starting_at(self, tracks: I64, times: I64) -> I64:
        """Row of the slice that starts at each point, of several the first in the file; -1 if none."""
        found = np.full(len(tracks), -1, np.int64)
        for number in np.flatnonzero(np.bincount(tracks[tracks >= 0])).tolist():
            low, high = int(self._first[number]), int(self._first[number + 1])
            if low == high:
                continue
            file_order, start = self._file_order[low:high], self.start[low:high]
            # of slices with equal start the first in the file
            begins = np.flatnonzero(np.append(True, start[1:] != start[:-1]))
            earliest = np.repeat(np.minimum.reduceat(file_order, begins), np.diff(begins, append=len(start)))
            first, begun = low + np.flatnonzero(file_order == earliest), start[begins]
            points = np.flatnonzero(tracks == number)
            index = np.searchsorted(begun, times[points])
            hit = np.flatnonzero(index < len(begun))
            hit = hit[begun[index[hit]] == times[points[hit]]]
            found[points[hit]] = first[index[hit]]
        return found


#: Columns of slices as they are read, with their types.
_COLUMNS: Final = {
    "track": np.int32, "start": np.int64, "end": np.int64, "name": np.int32, "kind": np.int32,
    "connection": np.int64, "size": np.int64, "finer": np.float32, "shapes": np.int32, "stacks": np.int32,
}  # fmt: skip
_LAYER_OF_KIND: Final = {
    **dict.fromkeys(("cpu_op", "python_function", "enqueue", "dequeue"), Layer.PYTHON),
    **dict.fromkeys(("acl", "node", "runtime", "hccl", "model"), Layer.CANN),
}


def _slice_classes(
    tracks: Sequence[Track], track: I64, columns: dict[str, Any], kinds: Sequence[str], names: Sequence[str]
) -> npt.NDArray[np.int8]:  # fmt: skip
    """Class of each slice (``SliceClass``)."""
    layer = np.array([each.layer for each in tracks], np.int8)[track] if len(track) else np.zeros(0, np.int8)
    operator = np.array([kind == "cpu_op" for kind in kinds], np.bool_)[columns["kind"]] if kinds else layer > 99
    step = np.array([name.startswith(STEP) for name in names], np.bool_)[columns["name"]] if names else layer > 99
    task = np.array([class_of_task(kind) for kind in kinds], np.int8)[columns["kind"]] if kinds else layer
    found = np.full(len(track), SliceClass.HOST, np.int8)
    on_host = np.isin(layer, (Layer.PYTHON, Layer.OTHER))
    found[on_host & operator] = SliceClass.OPERATOR
    found[on_host & step] = SliceClass.STEP
    found[layer == Layer.CANN] = SliceClass.CALL
    found[layer == Layer.STREAM] = task[layer == Layer.STREAM]
    found[layer == Layer.COMMUNICATION] = SliceClass.COLLECTIVE
    found[layer == Layer.PLANE] = SliceClass.COLLECTIVE_TASK
    found[layer == Layer.OVERLAP] = SliceClass.DERIVED
    return found


def _hit_rates_in_percent(counters: Iterable[CounterSeries]) -> tuple[CounterSeries, ...]:
    """The counters, hit rates in percent as their unit says: exporters of JSON write shares of 1."""
    found = tuple(counters)
    rates = [counter.values.max() for counter in found if _is_hit_rate(counter)]
    if not rates or max(rates) > 1:
        return found
    return tuple(msgspec.structs.replace(counter, values=(100 * counter.values).round(9)) if _is_hit_rate(counter)
                 else counter for counter in found)  # fmt: skip


def _is_hit_rate(counter: CounterSeries) -> bool:
    return counter.unit == "%" and counter.name.endswith("Hit Rate")


def _group(key: tuple[Any, ...]) -> tuple[str, ...]:
    """Process, name and value keys of a counter event."""
    pid, name, accelerator, more = key
    name = str(name) if accelerator in (None, "") else f"{name} {accelerator}"
    return str(pid), name[:_LONGEST_NAME], *(each[:_LONGEST_NAME] for each in more)


def _utf8(text: str, most: int = _LONGEST_NAME) -> str:
    """A text without characters that cannot be shown or written, cut to ``most`` characters."""
    return utf8_text(text[:most])


def _event_from_dict(event: dict[str, Any]) -> Any:
    """The struct of an event that was decoded alone; its numbers are texts."""
    phase = event.get("ph")
    kind = _PHASES.get(phase if isinstance(phase, str) else "", _PHASES[""])
    found: dict[str, Any] = {}
    for each in msgspec.structs.fields(kind):
        value = event.get(each.name)
        if value is None:
            continue
        if each.name == "args":
            if isinstance(value, dict):
                found["args"] = msgspec.json.decode(msgspec.json.encode(_plain(value)), type=each.type)
        else:
            found[each.name] = raw_text(value) if each.type is msgspec.Raw else str(value)
    return kind(**found)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Number):
        return int(value) if value.lstrip("-").isdecimal() and len(value) < 19 else value[:64]
    return value[:_LONGEST_TEXT] if isinstance(value, str) else None if isinstance(value, dict) else value
