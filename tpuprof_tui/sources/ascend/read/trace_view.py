"""Reads ``trace_view.json`` and ``msprof*.json``, the Chrome-trace JSON of CANN's exporters, into a `Timeline`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple, replace

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.decimals import numbers_in, one_real, reals
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.collector import (
    Collector,
    FlowEnd,
    FlowStart,
    Metadata,
    Phases,
    Sample,
    SectionEvents,
    collected,
    complete_events,
)
from tpuprof_tui.sources.chrome.columns import (
    ANY,
    F64,
    I32,
    I64,
    INTEGER,
    TEXT,
    ArgumentColumns,
    Codes,
    exact_ns,
    lookup,
    printable,
)
from tpuprof_tui.sources.chrome.nesting import CounterSeries, innermost, parents

from ..records import ASYNC_NPU, HOST_TO_DEVICE, STEP
from .timeline import LAYERS, Flows, Layer, SliceClass, Timeline, Track, class_of_task, timeline_of

_MOST_NS: Final = 1 << 61
#: Flow categories that are kept; the index is the code.
_FLOWS: Final = (ASYNC_NPU, HOST_TO_DEVICE, "async_task_queue", "fwdbwd", "MsTx")
_CODE_OF_FLOW: Final = {name: code for code, name in enumerate(_FLOWS)}
_UNIT: Final = lazy_pattern(r"\(([^()]+)\)$")
_UNITS: Final = ("MHz", "KB", "MB", "V", "mV")
_DEVICE: Final = lazy_pattern(r"NPU\s*(\d+)")
#: Separator between the number of a file and a process id.
_PART: Final = "\x1f"

#: Arguments of slices that become columns.
_ARGUMENTS: Final = ArgumentColumns(
    connection=(INTEGER, "connection_id"), size=(INTEGER, "size(Byte)", "size(B)"), shapes=(TEXT, "Input Dims"),
    stacks=(TEXT, "Call stack"), task=(ANY, "Task Type", "task type"), level=(ANY, "level"),
)  # fmt: skip
_Slice: Final = complete_events(_ARGUMENTS.struct)


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
    found: TimelineEvents | None = None
    problems: list[Problem] = []
    for number, path in enumerate((*paths, *parts), 1 - len(paths)):
        events = collected(path, TimelineEvents, progress)
        if not events.chunks.found:
            raise UnreadableError(f"{name} holds no list of events.")
        problems += events.problems("timeline", name)
        if unknown := events.defects.get("phases", (0,))[0]:
            problems.append(Problem(Severity.ERROR, "Events of a phase (ph) that Ascend does not write.",
                                    "They were left out.", name, count=unknown, lost=unknown))  # fmt: skip
        if found is None:
            found = events
        else:
            found.join(_prefixed(events.section_events(), f"{number}{_PART}" if number > 0 else ""))
    assert found is not None
    if not found.count:
        what, done = "The timeline holds no events.", "What it would tell is not known."
        problems.append(Problem(Severity.WARNING, what, done, name))
    return found.timeline(name, problems)


class TimelineEvents(Collector):
    """The events of a file, or of a section of it."""

    phases: ClassVar = Phases({
        _Slice: "add_slices", FlowStart: "add_flows", FlowEnd: "add_flows", Sample: "add_samples",
        Metadata: "add_names",
    }, "tiI")  # fmt: skip
    coded: ClassVar = {"key": "keys", "name": "names", "thread": "threads", "shapes": "texts", "stacks": "texts",
                       "counter": "counters"}  # fmt: skip
    in_title = "acc_id"

    def add_slices(self, slices: Sequence[Any]) -> None:
        """Adds slices."""
        categories, names, pids, tids, starts, lengths, arguments = zip(*map(astuple, slices), strict=True)
        columns = _ARGUMENTS.of(arguments, self.codes["texts"])
        key = self.codes["keys"].of(zip(pids, tids, categories, columns.pop("task"), columns.pop("level"), strict=True))
        name = np.fromiter(map(self.codes["names"].__getitem__, names), np.int32, len(names))
        self.tables["slices"].add(key=key, name=name, **columns)
        self.wait("slices", "start", starts)
        self.wait("slices", "length", lengths)
        self.count += len(slices)

    def add_flows(self, flows: Sequence[Any]) -> None:
        """Adds starts, or ends, of the flows that are kept."""
        kept = [flow for flow in flows if type(flow.cat) is str and flow.cat in _CODE_OF_FLOW]
        if kept:
            categories, ids, pids, tids, times = zip(*map(astuple, kept), strict=True)
            table = "begins" if type(kept[0]) is FlowStart else "ends"
            self.tables[table].add(
                thread=self.codes["threads"].of(zip(pids, tids, strict=True)),
                category=np.fromiter(map(_CODE_OF_FLOW.__getitem__, categories), np.int8, len(kept)),
                id=np.array([each if type(each) is int and 0 <= each < 1 << 63 else self._id(str(each))
                             for each in ids], np.int64),
            )  # fmt: skip
            self.wait(table, "time", times)

    def _id(self, text: str) -> int:
        """Key of a flow's id: whole numbers are their own, other texts get negative codes."""
        if text.isdecimal() and text.isascii() and len(text) < 20 and (text[0] != "0" or text == "0"):
            number = int(text)
            if number < 1 << 63:
                return number
        return -1 - self.codes["ids"][text]

    def join(self, found: SectionEvents) -> None:
        """Appends the events of the section that follows."""
        ids = np.array([*map(self.codes["ids"].__getitem__, found.codes.get("ids", ())), 0], np.int64)
        for table in ("begins", "ends"):
            columns = found.tables.get(table, {})
            if "id" in columns:
                own = columns["id"]
                columns["id"] = np.where(own < 0, -1 - ids[np.maximum(-1 - own, -1)], own)
        super().join(found)

    def sampled(self, values: Sequence[Any]) -> F64:
        """Values of counters: numbers, and texts of numbers."""
        return reals(values)

    def convert(self) -> None:
        """Parses the waiting times into columns."""
        super().convert()
        start = exact_ns(self.waiting("slices", "start"))
        durations = numbers_in(self.waiting("slices", "length"))
        length = durations.nanoseconds()
        sound = (start != INT_MISSING) & (np.abs(start) < _MOST_NS) & (length < _MOST_NS)
        self.tables["slices"].add(start=np.where(sound, start, INT_MISSING), end=start + np.maximum(length, 0),
                                  finer=durations.finer())  # fmt: skip
        # a missing length is the smallest number
        rows = np.flatnonzero(sound & (length < 0))
        self.tables["unmeasured"].add(file_order=self.count - len(start) + rows, missing=length[rows] == INT_MISSING)

    # -- the whole

    def timeline(self, name: str, problems: list[Problem]) -> Timeline:
        """The timeline of all files; ``name``: of the first, ``problems``: defects of their texts."""
        self._file, self._problems, self._tracks = name, problems, Codes()
        slices, unmeasured, kinds = self.tables["slices"], self.tables["unmeasured"], Codes()
        keys = [(self._tracks[str(pid), str(tid)], kinds[str(next(filter(None, of_kind), ""))])
                for pid, tid, *of_kind in self.codes["keys"]]  # fmt: skip
        thread_track = np.array([self._tracks[str(pid), str(tid)] for pid, tid in self.codes["threads"]], np.int64)
        columns: dict[str, Any] = {key: slices.take(key, dtype) for key, dtype in _COLUMNS.items()}
        self.end_begun(columns["end"])
        track, columns["kind"] = np.array(keys, np.int32).reshape(-1, 2).T[:, columns.pop("key")]
        sound = columns["start"] != INT_MISSING
        lengthless, is_missing = unmeasured.take("file_order"), unmeasured.take("missing", np.bool_)
        if not sound.all():
            self._note(Severity.ERROR, "Slices without a time.", "They were left out.", count=int((~sound).sum()))
            track, columns = track[sound], {key: values[sound] for key, values in columns.items()}
            lengthless = (np.cumsum(sound) - 1)[lengthless]
        for mask, what in ((is_missing, "Slices without a duration."), (~is_missing, "Slices of negative duration.")):
            if mask.any():
                self._note(Severity.WARNING, what, "They are shown with length 0 and count in no average.",
                           count=int(mask.sum()))  # fmt: skip
        self._check_devices()
        columns["file_order"] = np.arange(len(track))
        unnamed = self._layers_by_kind(track, columns["kind"], list(kinds))
        tracks, order = [], []
        for (pid, tid), number in self._tracks.items():
            process = self.names["process_name"].get(pid, "")
            label = self.names["thread_name"].get((pid, tid), "")
            layer = LAYERS[process] if process in LAYERS else unnamed.get(number, Layer.OTHER)
            if layer == Layer.COMMUNICATION and label.startswith("Plane"):
                layer = Layer.PLANE
            tid_number = int(tid[:18]) if tid.isascii() and tid.isdecimal() else -1
            title = process or f"Process {pid.rpartition(_PART)[2]}"
            tracks.append(Track(layer, printable(title), printable(label or f"Thread {tid}"),
                                min(tid_number, 1 << 31), self._device(pid)))  # fmt: skip
            sort_index = self.names["process_sort_index"].get(pid, np.inf)
            thread_sort_index = self.names["thread_sort_index"].get((pid, tid), np.inf)
            order.append((one_real(sort_index), pid, one_real(thread_sort_index), tid_number, tid))
        kind_texts, names = tuple(map(printable, kinds)), tuple(map(printable, self.codes["names"]))
        columns["slice_class"] = _slice_classes(tracks, track, columns, kind_texts, names)
        derived = any(each.layer == Layer.OVERLAP for each in tracks)
        repeated = np.array([self._is_repeated(pid) for pid, _ in self._tracks], np.bool_)
        if repeated.any():
            rows = np.flatnonzero(~repeated[track])
            track, columns = track[rows], {key: values[rows] for key, values in columns.items()}
        found, place = timeline_of(
            name, tracks, order, track, columns, names=names, kinds=kind_texts,
            texts=tuple(map(printable, self.codes["texts"])), counters=_hit_rates_in_percent(self._series()),
            unmeasured=np.sort(lengthless), derived=derived and bool(len(track)), problems=tuple(problems),
        )  # fmt: skip
        # tracks that only hold ends of flows are dropped
        used = np.diff(found.first) > 0
        return replace(found, flows=self._links(found, place[thread_track]), tracks=tuple(compress(found.tracks, used)),
                       first=found.first[np.append(True, used)])  # fmt: skip

    def _note(self, severity: Severity, what: str, done: str, count: int) -> None:
        self._problems.append(Problem(severity, what, done, self._file, count=count))

    def _check_devices(self) -> None:
        used = {pid for pid, _ in self._tracks}
        devices = Counter(self._device(pid) for pid, process in self.names["process_name"].items()
                          if process == "Ascend Hardware" and pid in used and not self._is_repeated(pid))  # fmt: skip
        for device, count in devices.items():
            if count > 1:
                name = f"NPU {device}" if device >= 0 else "NPU without a number"
                self._note(Severity.WARNING, f"The timeline holds {count} devices called {name}, as of several ranks.",
                           "They are shown as one NPU.", count=count)  # fmt: skip

    def _layers_by_kind(self, track: I32, kind: I32, kinds: Sequence[str]) -> dict[int, Layer]:
        """Layers of tracks whose process has no known name, as in a file truncated before its metadata.

        A process with another name is only looked at if it is labelled as one of an NPU.
        """
        processes, labels = self.names["process_name"], self.names["process_labels"]
        unknown = [pid not in processes or (processes[pid] not in LAYERS and labels.get(pid, "").startswith("NPU"))
                   for pid, _ in self._tracks]  # fmt: skip
        found: dict[int, Layer] = {}
        pairs = uniques(track.astype(np.int64) << 32 | kind) if any(unknown) else track[:0].astype(np.int64)
        for number, code in zip((pairs >> 32).tolist(), (pairs & 0xFFFFFFFF).tolist(), strict=True):
            is_task = kinds[code] and class_of_task(kinds[code]) != SliceClass.SYNC
            layer = _LAYER_OF_KIND.get(kinds[code], Layer.STREAM if is_task else None)
            if unknown[number] and layer is not None:
                found[number] = layer
        return found

    def _links(self, timeline: Timeline, track_of: I64) -> Flows:
        """Flows; ``track_of``: index of the track of each thread of flows."""
        begins, ends = self.tables["begins"], self.tables["ends"]
        category, ids, begin_ids = ends.column("category", np.int8), ends.column("id"), begins.column("id")
        begin = np.full(len(ids), -1, np.int64)
        for code in range(len(_FLOWS)):
            here, starts = np.flatnonzero(category == code), np.flatnonzero(begins.column("category", np.int8) == code)
            # of several starts with one id the last counts
            starts = starts[np.lexsort((-starts, begin_ids[starts]))]
            begin[here] = lookup(begin_ids[starts], ids[here], starts)
        from_times, to_times = begins.column("time"), ends.column("time")
        end = np.flatnonzero((begin >= 0) & (np.append(from_times, INT_MISSING)[begin] != INT_MISSING)
                             & (to_times != INT_MISSING))  # fmt: skip
        begin, category = begin[end], category[end]
        from_time, to_time = from_times[begin], to_times[end]
        from_track, to_track = (track_of[each.column("thread", np.int32)[rows]]
                                for each, rows in ((begins, begin), (ends, end)))  # fmt: skip
        from_row = np.full(len(begin), -1, np.int64)
        # class of the slices that flows of a category start in; other categories start in any slice
        wanted = {HOST_TO_DEVICE: (SliceClass.CALL,), ASYNC_NPU: (SliceClass.OPERATOR,)}
        for kinds in ((HOST_TO_DEVICE,), (ASYNC_NPU,), [each for each in _FLOWS if each not in wanted]):
            here = np.flatnonzero(np.isin(category, [_CODE_OF_FLOW[kind] for kind in kinds]))
            if len(here):
                from_row[here] = _enclosing(timeline, from_track[here], from_time[here], wanted.get(kinds[0]))
        return Flows(_FLOWS, category, from_time, to_time, from_row, _starting_at(timeline, to_track, to_time))

    def _series(self) -> Iterator[CounterSeries]:
        for (pid, name, key), times, values in self.counters(lambda *counter: counter):
            if not self._is_repeated(pid):
                unit_match = _UNIT.search(key)
                unit = unit_match[1] if unit_match else key if key in _UNITS else ""
                more = "" if unit_match or key in ("value", name) or unit else f" {key}"
                yield CounterSeries(printable(self.names["process_name"].get(pid, "")), printable(f"{name}{more}"),
                                    printable(unit), times, values, self._device(pid))  # fmt: skip

    def _is_repeated(self, pid: str) -> bool:
        part = pid.rpartition(_PART)[0]
        return bool(part) and self._first_part.get(self.names["process_name"].get(pid, ""), part) != part

    @cached_property
    def _first_part(self) -> dict[str, str]:
        """Prefix of the first file that has a process, by process name; empty: the main files."""
        first: dict[str, str] = {}
        for pid, name in self.names["process_name"].items():
            part = pid.rpartition(_PART)[0]
            if name not in first or not part:
                first[name] = part
        return first

    def _device(self, pid: str) -> int:
        match = _DEVICE.search(self.names["process_labels"].get(pid, ""))
        return int(match[1][:6]) if match else -1


def _enclosing(timeline: Timeline, tracks: I64, times: I64, classes: tuple[SliceClass, ...] | None) -> I64:
    """Row of the innermost slice that covers each point, else of the last that started before it; -1 if none."""
    wanted_tracks = np.bincount(tracks[tracks >= 0], minlength=len(timeline.first)) > 0
    track_rows = np.flatnonzero(wanted_tracks[timeline.track])
    rows = track_rows if classes is None else track_rows[np.isin(timeline.slice_class[track_rows], classes)]
    start, end, track = timeline.start[rows], timeline.end[rows], timeline.track[rows]
    above, points = parents(start, end, track), (times, times, tracks)
    # a slice covers its end too
    index = innermost((start, end + 1, track), points, above)
    before = innermost((start, np.full(len(rows), np.iinfo(np.int64).max), track), points, above)
    return np.append(rows, -1)[np.where(index >= 0, index, before)]


def _starting_at(timeline: Timeline, tracks: I64, times: I64) -> I64:
    """Row of the slice that starts at each point, of several the first in the file; -1 if none."""
    found = np.full(len(tracks), -1, np.int64)
    for number in np.flatnonzero(np.bincount(tracks[tracks >= 0])).tolist():
        low, high = int(timeline.first[number]), int(timeline.first[number + 1])
        if low == high:
            continue
        file_order, start = timeline.file_order[low:high], timeline.start[low:high]
        # of slices with equal start the first in the file
        begins = np.flatnonzero(np.append(True, start[1:] != start[:-1]))
        earliest = np.repeat(np.minimum.reduceat(file_order, begins), np.diff(begins, append=len(start)))
        points = np.flatnonzero(tracks == number)
        found[points] = lookup(start[begins], times[points], low + np.flatnonzero(file_order == earliest))
    return found


#: Columns of slices as they are read, with their types.
_COLUMNS: Final = {
    "key": np.int32, "start": np.int64, "end": np.int64, "name": np.int32, "connection": np.int64, "size": np.int64,
    "finer": np.float32, "shapes": np.int32, "stacks": np.int32,
}  # fmt: skip
_LAYER_OF_KIND: Final = {
    **dict.fromkeys(("cpu_op", "python_function", "enqueue", "dequeue"), Layer.PYTHON),
    **dict.fromkeys(("acl", "node", "runtime", "hccl", "model"), Layer.CANN),
}


def _slice_classes(
    tracks: Sequence[Track], track: I64, columns: dict[str, Any], kinds: Sequence[str], names: Sequence[str]
) -> npt.NDArray[np.int8]:  # fmt: skip
    layer = np.array([*(each.layer for each in tracks), Layer.OTHER], np.int8)[track]
    operator = np.array([*(kind == "cpu_op" for kind in kinds), False])[columns["kind"]]
    step = np.array([*(name.startswith(STEP) for name in names), False])[columns["name"]]
    task = np.array([*map(class_of_task, kinds), SliceClass.SYNC], np.int8)[columns["kind"]]
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


def _prefixed(found: SectionEvents, part: str) -> SectionEvents:
    codes = {table: [(part + str(pid), *more) for pid, *more in values] if table in ("keys", "threads", "counters")
             else values for table, values in found.codes.items()}  # fmt: skip
    names = {kind: {(part + owner[0], owner[1]) if isinstance(owner, tuple) else part + owner: value
                    for owner, value in values.items()} for kind, values in found.names.items()}  # fmt: skip
    return replace(found, codes=codes, names=names)


def _hit_rates_in_percent(counters: Iterable[CounterSeries]) -> tuple[CounterSeries, ...]:
    """The counters, hit rates in percent as their unit says: exporters of JSON write shares of 1."""
    found = tuple(counters)
    rates = [counter.values.max() for counter in found if _is_hit_rate(counter)]
    if not rates or max(rates) > 1:
        return found
    return tuple(replace(counter, values=(100 * counter.values).round(9)) if _is_hit_rate(counter) else counter
                 for counter in found)  # fmt: skip


def _is_hit_rate(counter: CounterSeries) -> bool:
    return counter.unit == "%" and counter.name.endswith("Hit Rate")
