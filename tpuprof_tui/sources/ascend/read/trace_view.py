"""``trace_view.json`` and ``msprof*.json``: Chrome-trace JSON as CANN's exporters write it -> a timeline."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import numpy as np
import numpy.typing as npt

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.sources.chrome.chunks import NOTHING, EventChunks, Number, raw_text
from tpuprof_tui.sources.chrome.growing import GrowingColumns
from tpuprof_tui.sources.chrome.inflate import Inflated
from tpuprof_tui.sources.chrome.nesting import parents

from .categories import LAYERS, STEP, Layer, What, of_task
from .numbers import numbers_of
from .timeline import ASYNC_NPU, HOST_TO_DEVICE, Flows, Measured, Timeline, Track, innermost_at, timeline_of

I64 = npt.NDArray[np.int64]

_GZIP: Final = b"\x1f\x8b"
_LONGEST_NAME: Final = 1 << 12
_LONGEST_TEXT: Final = 1 << 16
_MOST_NS: Final = 1 << 61
#: Categories of flows that are kept, in the order of their codes.
_FLOWS: Final = (ASYNC_NPU, HOST_TO_DEVICE, "async_task_queue", "fwdbwd", "MsTx")
_UNIT: Final = re.compile(r"\(([^()]+)\)$")
_UNITS: Final = ("MHz", "KB", "MB", "V", "mV")
_DEVICE: Final = re.compile(r"NPU\s*(\d+)")


class _Args(msgspec.Struct, gc=False, rename={
    "task_type": "Task Type", "task_type_old": "task type", "dims": "Input Dims", "stack": "Call stack",
    "size": "size(Byte)", "size_old": "size(B)",
}):  # fmt: skip
    """Arguments that are used; all others are passed over."""

    task_type: Any = None
    task_type_old: Any = None
    connection_id: Any = None
    level: Any = None
    dims: Any = None
    stack: Any = None
    size: Any = None
    size_old: Any = None
    name: Any = None
    labels: Any = None
    sort_index: Any = None


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    name: Any = ""
    cat: Any = None
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    id: Any = None
    args: msgspec.Raw = NOTHING


#: Stands between the number of a file and that of a process.
_PART: Final = "\x1f"

_NO_ARGS: Final = _Args()
_DECODE: Final = msgspec.json.Decoder(_Args).decode
_DECODE_ALL: Final = msgspec.json.Decoder(list[_Args]).decode
_DECODE_ANY: Final = msgspec.json.Decoder(dict[str, Any]).decode
_DECODE_SAMPLES: Final = msgspec.json.Decoder(list[dict[str, Any]]).decode
_CODE_OF_FLOW: Final = {name: code for code, name in enumerate(_FLOWS)}


def read_trace_view(
    paths: Sequence[Path], name: str, progress: Callable[[int, int], None] | None = None, parts: Sequence[Path] = ()
) -> Timeline:  # fmt: skip
    """Reads a timeline in one or more files.

    Args:
        paths: The files, in order; JSON, or gzip of it.
        name: What the first is called.
        progress: Called with the bytes read and the bytes of the file; what it raises ends the reading.
        parts: Files that tell parts of the same again: of each the processes that none before it has. Their numbers of
            processes are their own.

    Raises:
        UnreadableError: One cannot be opened, or holds no list of events.
    """
    reader = _Reader(name)
    for number, path in enumerate((*paths, *parts), 1 - len(paths)):
        reader.part = f"{number}{_PART}" if number > 0 else ""
        try:
            with path.open("rb") as raw:
                reader.take(raw, progress)
        except OSError as error:
            raise UnreadableError(f"{path}: {(error.strerror or 'cannot be read').lower()}.") from None
    return reader.timeline()


class _Codes(dict[Any, int]):
    """Numbers things as they come."""

    def __missing__(self, key: Any) -> int:
        code = self[key] = len(self)
        return code


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        #: Stands before the numbers of processes of a file that has its own.
        self.part = ""
        self._names, self._kinds, self._texts, self._keys = _Codes(), _Codes(), _Codes(), _Codes()
        self._parts = GrowingColumns()
        self._ends: list[tuple[bool, int, str, int]] = []
        self._end_times = GrowingColumns()
        self._counters, self._samples = _Codes(), GrowingColumns()
        self._processes: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._sorts: dict[str, float] = {}
        self._threads: dict[int, str] = {}
        self._thread_sorts: dict[int, float] = {}
        self._problems: list[Problem] = []
        self._count = self._untimed = self._clamped = 0

    # -- one file

    def take(self, raw: BinaryIO, progress: Callable[[int, int], None] | None) -> None:
        size = os.fstat(raw.fileno()).st_size
        head = raw.read(2)
        raw.seek(0)
        source: Inflated | BinaryIO = Inflated(raw) if head == _GZIP else raw
        passed = 0

        def read(count: int) -> bytes:
            nonlocal passed
            data = source.read(count)
            passed += len(data)
            if progress is not None:
                progress(min(raw.tell(), size), size)
            return data

        chunks = EventChunks(read, _Event, _loose)
        for events in chunks:
            self._add(events)
        if not chunks.found:
            raise UnreadableError(f"{self._name} holds no list of events.")
        if isinstance(source, Inflated) and source.damaged:
            self._note(Severity.ERROR, "The compressed data are damaged.", "What comes before is shown.", passed)
        elif chunks.truncated:
            self._note(Severity.ERROR, "The timeline ends before its list of events.",
                       "All events before are shown.", passed)  # fmt: skip
        self._problems += chunks.problems(self._name)

    def _note(self, severity: Severity, what: str, done: str, offset: int = -1, count: int = 1) -> None:
        self._problems.append(Problem(severity, what, done, self._name, offset, count=count))

    def _add(self, events: list[_Event]) -> None:
        slices = [each for each in events if each.ph == "X"]
        if len(slices) < len(events):
            self._add_others(events)
        if not slices:
            return
        start = numbers_of([each.ts for each in slices]).nanoseconds()
        told = numbers_of([each.dur or b"0" for each in slices])
        length, finer = told.nanoseconds(), told.finer()
        sound = (start != INT_MISSING) & (length != INT_MISSING) & (np.abs(start) < _MOST_NS) & (length < _MOST_NS)
        if not sound.all():
            self._untimed += int((~sound).sum())
            slices = [each for each, good in zip(slices, sound.tolist(), strict=True) if good]
            start, length, finer = start[sound], length[sound], finer[sound]
        self._clamped += int((length < 0).sum())
        names, kinds, keys, texts, part = self._names, self._kinds, self._keys, self._texts, self.part
        args = _all_arguments([NOTHING if each.cat == "python_function" else each.args for each in slices])
        self._parts.add(
            track=np.array([keys[part + str(each.pid), str(each.tid)] for each in slices], np.int64),
            start=start, end=start + np.maximum(length, 0),
            name=np.array([names[name if type(name) is str else str(name)]
                           for name in (each.name for each in slices)], np.int32),
            kind=np.array([kinds[kind if type(kind) is str else str(kind)] for kind in (
                each.cat or told.task_type or told.task_type_old or told.level or ""
                for each, told in zip(slices, args, strict=True))], np.int32),
            place=self._count + np.arange(len(slices)),
            connection=_wholes([each.connection_id for each in args]),
            size=_wholes([each.size_old if each.size is None else each.size for each in args]),
            finer=finer,
            shapes=np.array([texts[each.dims] if type(each.dims) is str else -1 for each in args], np.int32),
            stacks=np.array([texts[each.stack] if type(each.stack) is str else -1 for each in args], np.int32),
        )  # fmt: skip
        self._count += len(slices)

    def _add_others(self, events: list[_Event]) -> None:
        keys, part = self._keys, self.part
        samples, times = [], []
        for each in events:
            if each.ph in ("s", "f"):
                category = _CODE_OF_FLOW.get(each.cat) if type(each.cat) is str else None
                if category is not None:
                    track = keys[part + str(each.pid), str(each.tid)]
                    self._ends.append((each.ph == "s", category, str(each.id), track))
                    times.append(each.ts)
            elif each.ph == "C":
                samples.append(each)
            elif each.ph == "M" and each.args:
                self._add_name(each, _arguments(each.args))
        if times:
            self._end_times.add(time=numbers_of(times).nanoseconds())
        if samples:
            self._add_samples(samples)

    def _add_samples(self, events: list[_Event]) -> None:
        known: dict[Any, int] = {}
        counters: list[int] = []
        rows: list[int] = []
        values: list[Any] = []
        for row, (event, args) in enumerate(zip(events, _all_samples([each.args for each in events]), strict=True)):
            accelerator = args.pop("acc_id", None)
            for key, value in args.items():
                where = event.pid, event.name, accelerator, key
                if type(event.name) is not str or type(event.pid) is not int or type(accelerator) not in _WHOLE:
                    counter = self._counter(str(event.pid), str(event.name), str(accelerator), key)
                elif (counter := known.get(where, -1)) < 0:
                    told = "" if accelerator is None else str(accelerator)
                    counter = known[where] = self._counter(str(event.pid), event.name, told, key)
                counters.append(counter)
                rows.append(row)
                values.append(value)
        times = numbers_of([each.ts for each in events]).nanoseconds()
        self._samples.add(counter=np.array(counters, np.int64), time=times[np.array(rows, np.int64)],
                          value=_reals(values))  # fmt: skip

    def _counter(self, pid: str, name: str, accelerator: str, key: str) -> int:
        """Number of a counter."""
        told = f"{name} {accelerator}" if accelerator and accelerator != "None" else name
        return self._counters[self.part + pid, told[:_LONGEST_NAME], key[:_LONGEST_NAME]]

    def _add_name(self, event: _Event, args: _Args) -> None:
        pid = self.part + str(event.pid)
        if event.name == "process_name" and isinstance(args.name, str):
            self._processes[pid] = args.name
        elif event.name == "process_labels" and isinstance(args.labels, str):
            self._labels[pid] = args.labels
        elif event.name == "process_sort_index":
            self._sorts[pid] = _real(args.sort_index)
        elif event.name == "thread_name" and isinstance(args.name, str):
            self._threads[self._keys[pid, str(event.tid)]] = args.name
        elif event.name == "thread_sort_index":
            self._thread_sorts[self._keys[pid, str(event.tid)]] = _real(args.sort_index)

    # -- the whole

    def timeline(self) -> Timeline:
        tracks, order = [], []
        unnamed = self._layers_by_kind()
        for (pid, tid), number in self._keys.items():
            process = self._processes.get(pid, "")
            label = self._threads.get(number, "")
            layer = LAYERS.get(process, Layer.OTHER) if process else unnamed.get(number, Layer.OTHER)
            if layer == Layer.COMMUNICATION and label.startswith("Plane"):
                layer = Layer.PLANE
            whole = int(tid[:18]) if tid.isascii() and tid.isdecimal() else -1
            title = process or f"Process {pid.rpartition(_PART)[2]}"
            tracks.append(Track(layer, _shown(title), _shown(label or f"Thread {tid}"),
                                min(whole, 1 << 31), self._device(pid)))  # fmt: skip
            order.append((self._sorts.get(pid, np.inf), pid, self._thread_sorts.get(number, np.inf), whole, tid))
        columns: dict[str, Any] = {key: self._parts.whole(key, dtype) for key, dtype in _COLUMNS.items()}
        track = columns.pop("track")
        kinds = tuple(_shown(str(each)) for each in self._kinds)
        names = tuple(_shown(str(each)) for each in self._names)
        columns["what"] = _what(tracks, track, columns, kinds, names)
        if self._untimed:
            self._note(Severity.ERROR, "Slices without a time or a duration.", "They were left out.",
                       count=self._untimed)  # fmt: skip
        if self._clamped:
            self._note(Severity.WARNING, "Slices of a duration below 0.", "They are shown as of no length.",
                       count=self._clamped)  # fmt: skip
        derived = any(each.layer == Layer.OVERLAP for each in tracks)
        told = np.array([self._is_told_before(pid) for pid, _ in self._keys], np.bool_)
        if told.any():
            rows = np.flatnonzero(~told[track])
            track, columns = track[rows], {key: values[rows] for key, values in columns.items()}
        used = np.bincount(track, minlength=len(tracks)) > 0
        # tracks that only hold ends of flows are none
        kept = {old: new for new, old in enumerate(np.flatnonzero(used).tolist())}
        renumbered = np.array([kept.get(number, -1) for number in range(len(tracks))], np.int64)
        return timeline_of(
            self._name, [tracks[number] for number in kept], [order[number] for number in kept],
            renumbered[track] if len(track) else track, columns,
            lambda first, ordered, place: self._links(first, ordered, np.append(place, -1)[renumbered]),
            names=names, kinds=kinds, texts=tuple(_shown(text, _LONGEST_TEXT) for text in self._texts),
            measured=tuple(self._measured()), derived=derived and bool(len(track)), problems=tuple(self._problems),
        )  # fmt: skip

    def _layers_by_kind(self) -> dict[int, Layer]:
        """Layers of tracks whose processes have no name, as where a file is cut off before it says them."""
        if all(pid in self._processes for pid, _ in self._keys) or "track" not in self._parts:
            return {}
        kinds = [str(each) for each in self._kinds]
        found: dict[int, Layer] = {}
        pairs = np.unique(self._parts.whole("track") << 32 | self._parts.whole("kind"))
        for track, kind in zip((pairs >> 32).tolist(), (pairs & 0xFFFFFFFF).tolist(), strict=True):
            layer = _LAYER_OF_KIND.get(kinds[kind])
            if layer is None and kinds[kind] and of_task(kinds[kind]) != What.SYNC:
                layer = Layer.STREAM
            if layer is not None:
                found[track] = layer
        return found

    def _links(self, first: I64, columns: dict[str, Any], track_of: I64) -> Flows:
        begins: dict[tuple[int, str], int] = {}
        for number, (begin, sort, name, _) in enumerate(self._ends):
            if begin:
                begins[sort, name] = number
        pairs = [(begins.get((sort, name), -1), number)
                 for number, (begin, sort, name, _) in enumerate(self._ends) if not begin]  # fmt: skip
        found = np.array([pair for pair in pairs if pair[0] >= 0], np.int64).reshape(-1, 2)
        times = self._end_times.whole("time")
        found = found[(times[found] != INT_MISSING).all(axis=1)]
        category = np.array([each[1] for each in self._ends], np.int8)[found[:, 1]]
        numbers = np.array([each[3] for each in self._ends], np.int64)
        tracks = track_of[numbers[found]] if len(found) else found
        from_time, to_time = times[found[:, 0]], times[found[:, 1]]
        timeline = _Slices(first, columns)
        from_row = np.full(len(found), -1, np.int64)
        for code, kind in enumerate(_FLOWS):
            mine = np.flatnonzero(category == code)
            if len(mine):
                wanted = (What.CALL,) if kind == HOST_TO_DEVICE else (What.OPERATOR,) if kind == ASYNC_NPU else None
                from_row[mine] = timeline.around(tracks[mine, 0], from_time[mine], wanted)
        to_row = timeline.starting(tracks[:, 1], to_time) if len(found) else np.zeros(0, np.int64)
        return Flows(_FLOWS, category, from_time, to_time, from_row, to_row)

    def _measured(self) -> Any:
        counter = self._samples.take("counter")
        order = np.argsort(counter, kind="stable")
        every, values = self._samples.take("time")[order], self._samples.take("value", np.float64)[order]
        bounds = np.searchsorted(counter[order], np.arange(len(self._counters) + 1)).tolist()
        for (pid, name, key), low, high in zip(self._counters, bounds, bounds[1:], strict=False):
            if self._is_told_before(pid):
                continue
            times, numbers = every[low:high], values[low:high]
            known = (times != INT_MISSING) & ~np.isnan(numbers)
            times, numbers = times[known], numbers[known]
            order = np.argsort(times, kind="stable")
            told = _UNIT.search(key)
            unit = told[1] if told else key if key in _UNITS else ""
            more = "" if told or key in ("value", name) or unit else f" {key}"
            if len(times):
                yield Measured(_shown(self._processes.get(pid, "")), _shown(f"{name}{more}"), _shown(unit),
                               times[order], numbers[order], self._device(pid))  # fmt: skip

    def _is_told_before(self, pid: str) -> bool:
        """Whether a file before that of a process tells a process of the same name."""
        part, _, _ = pid.rpartition(_PART)
        return bool(part) and self._first_part.get(self._processes.get(pid, ""), part) != part

    @cached_property
    def _first_part(self) -> dict[str, str]:
        """Of each name of a process the file that tells it first; empty: those that are one."""
        first: dict[str, str] = {}
        for pid, name in self._processes.items():
            part = pid.rpartition(_PART)[0]
            if name not in first or not part:
                first[name] = part
        return first

    def _device(self, pid: str) -> int:
        """Number of a process's device; -1 where its label tells none."""
        told = _DEVICE.search(self._labels.get(pid, ""))
        return int(told[1][:6]) if told else -1


class _Slices:
    """Slices in order, for looking up those that flows belong to."""

    def __init__(self, first: I64, columns: dict[str, Any]) -> None:
        self.start, self.end, self.what = columns["start"], columns["end"], columns["what"]
        self._place, self._first = columns["place"], first
        self.track = np.repeat(np.arange(len(first) - 1), np.diff(first))

    def around(self, tracks: I64, times: I64, wanted: tuple[What, ...] | None) -> I64:
        """The innermost slice that covers each point, else the one that ended last before it; -1 without."""
        rows = np.arange(len(self.start)) if wanted is None else np.flatnonzero(np.isin(self.what, wanted))
        above = parents(self.start[rows], self.end[rows], self.track[rows])
        place = innermost_at(self, rows, above, tracks, times)  # type: ignore[arg-type]
        lone = np.flatnonzero((place < 0) & (tracks >= 0))
        if len(lone) and len(rows):
            track = self.track[rows]
            for number in np.unique(tracks[lone]).tolist():
                low, high = np.searchsorted(track, [number, number + 1])
                mine = lone[tracks[lone] == number]
                before = low + np.searchsorted(self.start[rows[low:high]], times[mine], side="right") - 1
                place[mine] = np.where(before >= low, before, -1)
        return np.where(place >= 0, rows[place] if len(rows) else -1, -1)

    def starting(self, tracks: I64, times: I64) -> I64:
        """The slice that starts at each point, the first in the file of several; -1 without."""
        found = np.full(len(tracks), -1, np.int64)
        for number in np.unique(tracks[tracks >= 0]).tolist():
            low, high = int(self._first[number]), int(self._first[number + 1])
            order = low + np.lexsort((self._place[low:high], self.start[low:high]))
            mine = np.flatnonzero(tracks == number)
            place = np.searchsorted(self.start[order], times[mine])
            inside = place < len(order)
            hit = np.flatnonzero(inside)[self.start[order[place[inside]]] == times[mine[inside]]]
            found[mine[hit]] = order[place[hit]]
        return found


#: Columns that slices come with.
_COLUMNS: Final = {
    "track": np.int64, "start": np.int64, "end": np.int64, "name": np.int32, "kind": np.int32, "place": np.int64,
    "connection": np.int64, "size": np.int64, "finer": np.float32, "shapes": np.int32, "stacks": np.int32,
}  # fmt: skip
_WHOLE: Final = (int, type(None))
_LAYER_OF_KIND: Final = {
    **dict.fromkeys(("cpu_op", "python_function", "enqueue", "dequeue"), Layer.PYTHON),
    **dict.fromkeys(("acl", "node", "runtime", "hccl", "model"), Layer.CANN),
}


def _what(
    tracks: Sequence[Track], track: I64, columns: dict[str, Any], kinds: Sequence[str], names: Sequence[str]
) -> npt.NDArray[np.int8]:  # fmt: skip
    """What each slice is."""
    layer = np.array([each.layer for each in tracks], np.int8)[track] if len(track) else np.zeros(0, np.int8)
    operator = np.array([kind == "cpu_op" for kind in kinds], np.bool_)[columns["kind"]] if kinds else layer > 99
    step = np.array([name.startswith(STEP) for name in names], np.bool_)[columns["name"]] if names else layer > 99
    task = np.array([of_task(kind) for kind in kinds], np.int8)[columns["kind"]] if kinds else layer
    found = np.full(len(track), What.HOST, np.int8)
    on_host = np.isin(layer, (Layer.PYTHON, Layer.OTHER))
    found[on_host & operator] = What.OPERATOR
    found[on_host & step] = What.STEP
    found[layer == Layer.CANN] = What.CALL
    found[layer == Layer.STREAM] = task[layer == Layer.STREAM]
    found[layer == Layer.COMMUNICATION] = What.COLLECTIVE
    found[layer == Layer.PLANE] = What.PART
    found[layer == Layer.OVERLAP] = What.DERIVED
    return found


def _arguments(raw: msgspec.Raw) -> _Args:
    try:
        return _DECODE(raw)
    except (msgspec.DecodeError, RecursionError):
        return _NO_ARGS


def _all_arguments(raws: Sequence[msgspec.Raw]) -> list[_Args]:
    """Arguments of many slices; decoded one by one where some are no objects."""
    try:
        return _DECODE_ALL(b"[" + b",".join([raw or b"{}" for raw in raws]) + b"]")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return [_arguments(raw) if raw else _NO_ARGS for raw in raws]


def _all_samples(raws: Sequence[msgspec.Raw]) -> list[dict[str, Any]]:
    """The same of counters, whose keys are theirs."""
    try:
        return _DECODE_SAMPLES(b"[" + b",".join([raw or b"{}" for raw in raws]) + b"]")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return [_sample_of(raw) for raw in raws]


def _sample_of(raw: msgspec.Raw) -> dict[str, Any]:
    try:
        return _DECODE_ANY(raw or b"{}")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}


def _wholes(values: list[Any]) -> I64:
    try:
        found = np.array([INT_MISSING if value is None else value for value in values])
    except (ValueError, OverflowError):
        found = np.zeros(0)
    if found.dtype.kind == "i" and len(found) == len(values):
        return found.astype(np.int64)
    return np.array(list(map(_whole, values)), np.int64)


def _whole(value: Any) -> int:
    if isinstance(value, str):
        value = int(value) if len(value) < 19 and value.isascii() and value.isdecimal() else None
    return value if isinstance(value, int) and INT_MISSING < value < 1 << 63 else INT_MISSING


def _reals(values: list[Any]) -> npt.NDArray[np.float64]:
    if set(map(type, values)) <= {int, float}:
        try:
            return np.array(values, np.float64)
        except OverflowError:
            pass
    return np.array(list(map(_real, values)), np.float64)


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return float("nan")
    try:
        return float(value)
    except (ValueError, OverflowError):
        return float("nan")


def _shown(text: str, most: int = _LONGEST_NAME) -> str:
    """A text as it can be shown and written."""
    return utf8_text(text[:most])


def _loose(event: dict[str, Any]) -> _Event | None:
    """An event that was decoded alone, numbers as their texts."""
    texts = {key: event[key] if isinstance(event[key], str) else str(event[key])
             for key in ("ph", "name", "cat") if event.get(key) is not None}  # fmt: skip
    args = event.get("args")
    known = msgspec.Raw(msgspec.json.encode(_plain(args))) if isinstance(args, dict) else NOTHING
    return _Event(**texts, **{key: str(event[key]) for key in ("pid", "tid", "id") if event.get(key) is not None},
                  ts=raw_text(event.get("ts")), dur=raw_text(event.get("dur")),
                  args=known)  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Number):
        return int(value) if value.lstrip("-").isdecimal() and len(value) < 19 else value[:64]
    return value[:_LONGEST_TEXT] if isinstance(value, str) else None if isinstance(value, dict) else value
