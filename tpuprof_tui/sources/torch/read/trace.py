"""One trace file -> its complete events in columns, its memory instants, what flows between them, and its metadata."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import numpy as np
import numpy.typing as npt

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.sources.chrome.chunks import EventChunks
from tpuprof_tui.sources.chrome.inflate import Inflated
from tpuprof_tui.sources.chrome.times import exact_ns

from .categories import KINDS, Kind

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

_GZIP: Final = b"\x1f\x8b"
_LONGEST_NAME: Final = 1 << 16
_MOST_NS: Final = 1 << 61
#: Calls with an id equal to their correlation from which on a file's ids are taken for those of launches.
_LAUNCH_IDS: Final = 10
_NOTHING: Final = msgspec.Raw()


class _Args(msgspec.Struct, gc=False, rename={
    "external": "External id", "external_old": "external id", "dims": "Input Dims", "dims_old": "Input dims",
    "types": "Input type", "call_stack": "Call stack", "registers": "registers per thread",
    "shared_memory": "shared memory", "blocks": "blocks per SM", "occupancy": "est. achieved occupancy %",
    "collective": "Collective name", "python_id": "Python id", "python_parent": "Python parent id",
    "module": "Python module id", "device_type": "Device Type", "device_id": "Device Id", "change": "Bytes",
    "address": "Addr", "allocated": "Total Allocated", "reserved": "Total Reserved", "place": "Ev Idx",
}):  # fmt: skip
    """Arguments that figures rest on; all others are passed over."""

    correlation: Any = None
    external: Any = None
    external_old: Any = None
    dims: msgspec.Raw = _NOTHING
    dims_old: msgspec.Raw = _NOTHING
    types: msgspec.Raw = _NOTHING
    call_stack: Any = None
    device: Any = None
    stream: Any = None
    grid: msgspec.Raw = _NOTHING
    block: msgspec.Raw = _NOTHING
    registers: Any = None
    shared_memory: Any = None
    blocks: Any = None
    occupancy: Any = None
    bytes: Any = None
    collective: Any = None
    python_id: Any = None
    python_parent: Any = None
    module: Any = None
    device_type: Any = None
    device_id: Any = None
    change: Any = None
    address: Any = None
    allocated: Any = None
    reserved: Any = None
    place: Any = None
    name: Any = None
    labels: Any = None
    sort_index: Any = None


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    name: str = "None"
    cat: str = ""
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = _NOTHING
    dur: msgspec.Raw = _NOTHING
    id: Any = None
    args: _Args | None = None


_NO_ARGS: Final = _Args()
_RAW: Final = ("dims", "dims_old", "types", "grid", "block")
_NAMES: Final = {each.encode_name: each.name for each in msgspec.structs.fields(_Args)}


@dataclass(frozen=True, eq=False)
class Memory:
    """Memory instants by time, in columns of one length; ``INT_MISSING`` where nothing is known.

    Attributes:
        time: ns, as events have them.
        lane: Place of the thread in ``Trace.threads``.
        device_type, device_id, change, address, allocated, reserved: int64.
    """

    time: I64
    lane: I32
    device_type: I64
    device_id: I64
    change: I64
    address: I64
    allocated: I64
    reserved: I64

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, eq=False)
class Trace:
    """One file. Events lie in columns of one length, thread by thread, in each in the order of nesting.

    Attributes:
        path: The file.
        metadata: What stands beside the events.
        threads: Process and thread of each lane, as texts.
        first: int64, one more than threads: first event of each.
        zero_ns: The file's time of the earliest event or memory instant, ns.
        start, end: int64 ns from ``zero_ns``.
        name: int32 codes into ``names``.
        kind: int8, see ``Kind``.
        category: int16 codes into ``categories``.
        place: int64, place in the file among complete events.
        correlation, external: int64; missing without.
        names, categories: Texts.
        work: Events of the device in columns, for those rows (``work_rows``, ascending): see ``_WORK``.
        operators: The same of operators and annotations.
        frames: The same of Python frames.
        texts: Texts of codes in these columns; -1 is none.
        memory: Memory instants.
        flows: Forward and backward ends that belong together: int64 rows.
        process_names, thread_names: What the file calls them, by process, and by process and thread.
        problems: What could not be used.
    """

    path: Path
    metadata: dict[str, Any]
    threads: tuple[tuple[str, str], ...]
    first: I64
    zero_ns: int
    start: I64
    end: I64
    name: I32
    kind: npt.NDArray[np.int8]
    category: npt.NDArray[np.int16]
    place: I64
    correlation: I64
    external: I64
    names: tuple[str, ...]
    categories: tuple[str, ...]
    work_rows: I64
    work: dict[str, npt.NDArray[Any]]
    operator_rows: I64
    operators: dict[str, npt.NDArray[Any]]
    frame_rows: I64
    frames: dict[str, npt.NDArray[Any]]
    texts: tuple[str, ...]
    memory: Memory
    flows: tuple[I64, I64]
    process_names: dict[str, str]
    thread_names: dict[tuple[str, str], str]
    problems: tuple[Problem, ...]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length_ns(self) -> int:
        """From the earliest event or memory instant to the latest end of both."""
        return max(int(self.end.max(initial=0)), int(self.memory.time.max(initial=0)))

    def thread_of(self, rows: I64) -> I64:
        """Place of each event's thread."""
        return np.asarray(np.searchsorted(self.first, rows, side="right") - 1)


def read_trace(path: Path, progress: Callable[[int, int], None] | None = None) -> Trace:
    """Reads a file.

    Args:
        path: JSON, or gzip of it.
        progress: Called with the bytes read and the bytes of the file; what it raises ends the reading.

    Raises:
        UnreadableError: It cannot be opened, or holds no list of events.
    """
    try:
        with path.open("rb") as raw:
            return _Reader(path, raw, progress).trace()
    except OSError as error:
        raise UnreadableError(f"{path}: {(error.strerror or 'cannot be read').lower()}.") from None


class _Codes(dict[Any, int]):
    """Numbers things as they come."""

    def __missing__(self, key: Any) -> int:
        code = self[key] = len(self)
        return code


class _Parts:
    """Columns that grow chunk by chunk."""

    def __init__(self) -> None:
        self._parts: dict[str, list[npt.NDArray[Any]]] = {}

    def add(self, **columns: npt.NDArray[Any]) -> None:
        for key, values in columns.items():
            self._parts.setdefault(key, []).append(values)

    def take(self, key: str, dtype: Any = np.int64) -> npt.NDArray[Any]:
        """A column; it is forgotten here."""
        parts = self._parts.pop(key, [])
        return np.concatenate(parts) if parts else np.zeros(0, dtype)


class _Reader:
    def __init__(self, path: Path, raw: BinaryIO, progress: Callable[[int, int], None] | None) -> None:
        self._path, self._raw, self._progress = path, raw, progress
        self._size = os.fstat(raw.fileno()).st_size
        head = raw.read(2)
        raw.seek(0)
        self._source: Inflated | BinaryIO = Inflated(raw) if head == _GZIP else raw
        self._passed = 0
        self._names, self._keys, self._texts = _Codes(), _Codes(), _Codes()
        self._parts = _Parts()
        self._work, self._operators, self._frames, self._memory = _Parts(), _Parts(), _Parts(), _Parts()
        self._ends: list[tuple[bool, Any, str, str]] = []
        self._end_times: list[msgspec.Raw] = []
        self._process_names: dict[str, str] = {}
        self._thread_names: dict[tuple[str, str], str] = {}
        self._count = self._untimed = self._clamped = 0

    def _read(self, count: int) -> bytes:
        data = self._source.read(count)
        self._passed += len(data)
        if self._progress is not None:
            self._progress(min(self._raw.tell(), self._size), self._size)
        return data

    def trace(self) -> Trace:
        chunks = EventChunks(self._read, _Event, _loose)
        for events in chunks:
            self._add(events)
        if not chunks.found:
            raise UnreadableError(f"{self._path} holds no list of events.",
                                  "A PyTorch trace is Chrome-trace JSON with traceEvents.")  # fmt: skip
        return self._finished(chunks.metadata, tuple(self._problems(chunks)))

    # -- one chunk

    def _add(self, events: list[_Event]) -> None:
        complete = [each for each in events if each.ph == "X"]
        if len(complete) < len(events):
            self._add_others(events)
        start, length = exact_ns([each.ts for each in complete]), exact_ns([each.dur for each in complete])
        sound = (start != INT_MISSING) & (length != INT_MISSING)
        if not sound.all():
            self._untimed += int((~sound).sum())
            complete = [each for each, good in zip(complete, sound.tolist(), strict=True) if good]
            start, length = start[sound], length[sound]
        if not complete:
            return
        below = length < 0
        self._clamped += int(below.sum())
        names, keys = self._names, self._keys
        args = [each.args or _NO_ARGS for each in complete]
        key = np.array([keys[each.cat, each.pid, each.tid] for each in complete], np.int32)
        place = self._count + np.arange(len(complete))
        self._count += len(complete)
        self._parts.add(
            start=start, end=start + np.maximum(length, 0), key=key, place=place,
            name=np.array([names[each.name] for each in complete], np.int32),
            correlation=_whole([each.correlation for each in args]),
            external=_whole([each.external if each.external is not None else each.external_old for each in args]),
        )  # fmt: skip
        kinds = np.array([KINDS.get(category.lower(), Kind.OTHER) for category, _, _ in keys], np.int8)[key]
        on_device = np.isin(kinds, (Kind.KERNEL, Kind.COPY, Kind.SET, Kind.MTIA))
        self._add_work(place[on_device], [args[row] for row in np.flatnonzero(on_device).tolist()],
                       [complete[row] for row in np.flatnonzero(on_device).tolist()])  # fmt: skip
        wanted = np.flatnonzero(np.isin(kinds, (Kind.OPERATOR, Kind.ANNOTATION))).tolist()
        self._add_operators(place[wanted], [args[row] for row in wanted])
        wanted = np.flatnonzero(kinds == Kind.FRAME).tolist()
        self._add_frames(place[wanted], [args[row] for row in wanted])

    def _add_work(self, place: I64, args: list[_Args], events: list[_Event]) -> None:
        texts = self._texts
        self._work.add(
            place=place,
            device=_codes(texts, [str(each.device if each.device is not None else event.pid)
                                  for each, event in zip(args, events, strict=True)]),
            stream=_codes(texts, [str(each.stream if each.stream is not None else event.tid)
                                  for each, event in zip(args, events, strict=True)]),
            grid=_raw_codes(texts, [each.grid for each in args]),
            block=_raw_codes(texts, [each.block for each in args]),
            registers=_codes(texts, [str(each.registers or 0) for each in args]),
            shared_memory=_codes(texts, [str(each.shared_memory or 0) for each in args]),
            blocks=_floats([each.blocks for each in args]),
            occupancy=_floats([each.occupancy for each in args]),
            bytes=_whole([each.bytes for each in args]),
            collective=np.array([each.collective is not None for each in args], np.bool_),
        )  # fmt: skip

    def _add_operators(self, place: I64, args: list[_Args]) -> None:
        self._operators.add(
            place=place,
            dims=_raw_codes(self._texts, [each.dims or each.dims_old for each in args]),
            types=_raw_codes(self._texts, [each.types for each in args]),
            stack=_codes(self._texts, [each.call_stack if isinstance(each.call_stack, str) and each.call_stack else None
                                       for each in args]),
        )  # fmt: skip

    def _add_frames(self, place: I64, args: list[_Args]) -> None:
        self._frames.add(place=place, id=_whole([each.python_id for each in args]),
                         parent=_whole([each.python_parent for each in args]),
                         module=_whole([each.module for each in args]))  # fmt: skip

    def _add_others(self, events: list[_Event]) -> None:
        instants = []
        for each in events:
            if each.ph in ("s", "f") and each.cat in ("fwdbwd", "forward_backward"):
                self._ends.append((each.ph == "s", each.id, str(each.pid), str(each.tid)))
                self._end_times.append(each.ts)
            elif each.ph in ("i", "I") and each.name == "[memory]":
                instants.append(each)
            elif each.ph == "M" and each.args is not None and isinstance(each.args.name, str):
                if each.name == "process_name":
                    self._process_names[str(each.pid)] = each.args.name
                elif each.name == "thread_name":
                    self._thread_names[str(each.pid), str(each.tid)] = each.args.name
        args = [each.args or _NO_ARGS for each in instants]
        self._memory.add(
            time=exact_ns([each.ts for each in instants]),
            key=np.array([self._keys["", each.pid, each.tid] for each in instants], np.int32),
            **{key: _whole([getattr(each, key) for each in args])
               for key in ("device_type", "device_id", "change", "address", "allocated", "reserved", "place")},
        )  # fmt: skip

    # -- the whole

    def _finished(self, metadata: dict[str, Any], problems: tuple[Problem, ...]) -> Trace:
        # every column is there, of files without such events too
        nothing = np.zeros(0, np.int64)
        self._add_work(nothing, [], [])
        self._add_operators(nothing, [])
        self._add_frames(nothing, [])
        parts = self._parts
        start, end, key = parts.take("start"), parts.take("end"), parts.take("key", np.int32)
        time = self._memory.take("time")
        known = time != INT_MISSING
        zero = min((int(values.min()) for values in (start, time[known]) if len(values)), default=0)
        # lanes: processes and threads as texts, in order
        pairs = [(str(pid), str(tid)) for _, pid, tid in self._keys]
        threads = sorted(set(pairs), key=lambda each: (by_number(each[0]), by_number(each[1])))
        numbers = {pair: number for number, pair in enumerate(threads)}
        lane_of_key = np.array([numbers[pair] for pair in pairs], np.int32)
        categories = _Codes()
        category_of_key = np.array([categories[category] for category, _, _ in self._keys], np.int16)
        kind_of_key = np.array([KINDS.get(str(category).lower(), Kind.OTHER) for category, _, _ in self._keys], np.int8)
        names = tuple(_shown(name) for name in self._names)
        name, kind, external = parts.take("name", np.int32), kind_of_key[key], parts.take("external")
        kind = _mtia(kind, name, names)
        lane = lane_of_key[key] if len(key) else np.zeros(0, np.int32)
        # nesting: frames before the rest, ids rise from outside in, what has none comes last
        last = np.iinfo(np.int64).max
        order = np.lexsort((np.arange(len(start)), np.where(external == INT_MISSING, last, external),
                            kind != Kind.FRAME, -end, start, lane))  # fmt: skip
        row_of = np.empty(len(order), np.int64)
        row_of[order] = np.arange(len(order))
        memory = self._memory_columns(time - zero, known, lane_of_key)
        tables = [self._table(table, row_of) for table in (self._work, self._operators, self._frames)]
        return Trace(
            path=self._path, metadata=metadata, threads=tuple(threads),
            first=np.searchsorted(lane[order], np.arange(len(threads) + 1)).astype(np.int64), zero_ns=zero,
            start=start[order] - zero, end=end[order] - zero, name=name[order], kind=kind[order],
            category=category_of_key[key][order] if len(key) else np.zeros(0, np.int16), place=order,
            correlation=parts.take("correlation")[order], external=external[order], names=names,
            categories=tuple(map(_shown, categories)),
            work_rows=tables[0][0], work=tables[0][1], operator_rows=tables[1][0], operators=tables[1][1],
            frame_rows=tables[2][0], frames=tables[2][1], texts=tuple(_shown(text, 1 << 20) for text in self._texts),
            memory=memory, flows=self._flows(numbers, lane[order], start[order], zero, kind[order] == Kind.OPERATOR),
            process_names=self._process_names, thread_names=self._thread_names, problems=problems,
        )  # fmt: skip

    def _flows(
        self, threads: dict[tuple[str, str], int], lane: I32, start: I64, zero: int, operator: npt.NDArray[np.bool_]
    ) -> tuple[I64, I64]:
        """Rows of the operators that the ends of flows with the same id stand at: at the operator's start."""
        begins: dict[Any, int] = {}
        pairs = []
        rows = np.flatnonzero(operator) if self._ends else np.zeros(0, np.int64)
        at: dict[tuple[int, int], int] = {}
        for row, number, time in zip(rows.tolist(), lane[rows].tolist(), start[rows].tolist(), strict=True):
            at.setdefault((number, time), row)
        found = []
        for (begin, name, pid, tid), time in zip(self._ends, exact_ns(self._end_times).tolist(), strict=True):
            found.append((begin, str(name), at.get((threads.get((pid, tid), -1), time - zero), -1)))
        for begin, name, row in found:
            if begin:
                begins[name] = row
        for begin, name, row in found:
            if not begin and row >= 0 and begins.get(name, -1) >= 0:
                pairs.append((begins[name], row))
        columns = np.array(pairs, np.int64).reshape(-1, 2)
        return columns[:, 0].copy(), columns[:, 1].copy()

    def _memory_columns(self, time: I64, known: npt.NDArray[np.bool_], lane_of_key: I32) -> Memory:
        keys = ("device_type", "device_id", "change", "address", "allocated", "reserved", "place")
        columns = {key: self._memory.take(key) for key in keys}
        lane = self._memory.take("key", np.int32)
        place = columns.pop("place")
        last = np.iinfo(np.int64).max
        order = np.lexsort((np.arange(len(time)), np.where(place == INT_MISSING, last, place), time))
        order = order[known[order]]
        return Memory(time[order], lane_of_key[lane[order]] if len(order) else np.zeros(0, np.int32),
                      **{key: values[order] for key, values in columns.items()})  # fmt: skip

    @staticmethod
    def _table(parts: _Parts, row_of: I64) -> tuple[I64, dict[str, npt.NDArray[Any]]]:
        """Rows, ascending, and the columns of these."""
        places = parts.take("place")
        rows = row_of[places] if len(places) else np.zeros(0, np.int64)
        order = np.argsort(rows, kind="stable")
        return rows[order], {key: parts.take(key)[order] for key in list(parts._parts)}

    def _problems(self, chunks: EventChunks[_Event]) -> list[Problem]:
        name, found = self._path.name, []
        if isinstance(self._source, Inflated) and self._source.damaged:
            found.append(Problem(Severity.ERROR, "The compressed data are damaged.", "What comes before is shown.",
                                 file=name, offset=self._passed))  # fmt: skip
        elif chunks.truncated:
            found.append(Problem(Severity.ERROR, "The trace ends before its list of events.",
                                 "All events before are shown.", file=name, offset=self._passed))  # fmt: skip
        if chunks.malformed:
            found.append(Problem(Severity.ERROR, "Events that cannot be decoded.", "They were left out.", file=name,
                                 offset=chunks.first_malformed, count=chunks.malformed))  # fmt: skip
        if chunks.metadata_lost and not chunks.truncated:
            found.append(Problem(Severity.WARNING, "What stands beside the events cannot be decoded.",
                                 "It is left out.", file=name))  # fmt: skip
        if chunks.more:
            found.append(Problem(Severity.ERROR, "There is a second list of events.", "It was not read.", file=name))
        if self._untimed:
            found.append(Problem(Severity.ERROR, "Events without a time or a duration.", "They were left out.",
                                 file=name, count=self._untimed))  # fmt: skip
        if self._clamped:
            found.append(Problem(Severity.WARNING, "Events of a duration below 0.", "They are shown as of no length.",
                                 file=name, count=self._clamped))  # fmt: skip
        return found


def _mtia(kind: npt.NDArray[np.int8], name: I32, names: Sequence[str]) -> npt.NDArray[np.int8]:
    """The kinds of events of which the category does not tell it."""
    rows = np.flatnonzero(kind == Kind.MTIA)
    if len(rows):
        of_name = np.array([Kind.COPY if text == "dma_request" else Kind.WAIT if text.startswith("event_")
                            else Kind.KERNEL for text in names], np.int8)  # fmt: skip
        kind = kind.copy()
        kind[rows] = of_name[name[rows]]
    return kind


def _whole(values: list[Any]) -> I64:
    try:
        return np.array([INT_MISSING if value is None else value for value in values], np.int64)
    except (TypeError, ValueError, OverflowError):
        return np.array(list(map(_one_whole, values)), np.int64)


def _one_whole(value: Any) -> int:
    if isinstance(value, str):
        digits = value.removeprefix("-")
        value = int(value) if digits.isascii() and digits.isdecimal() and len(digits) < 40 else None
    if not isinstance(value, int) or not INT_MISSING < value < 1 << 63:
        # addresses and ids beyond int64 stay apart from each other
        return value - (1 << 64) if isinstance(value, int) and 0 <= value < 1 << 64 else INT_MISSING
    return int(value)


def _floats(values: list[Any]) -> F64:
    return np.array([value if type(value) in (float, int) else np.nan for value in values], np.float64)


def _codes(texts: _Codes, values: list[str | None]) -> I32:
    return np.array([-1 if value is None else texts[value] for value in values], np.int32)


def _raw_codes(texts: _Codes, values: list[msgspec.Raw]) -> I32:
    return np.array([texts[bytes(value).decode("utf-8", "replace")] if value else -1 for value in values], np.int32)


def by_number(text: str) -> tuple[bool, int, str]:
    """Numbers first, by their value; other texts behind them."""
    number = text.isascii() and text.isdecimal()
    return not number, int(text[:18]) if number else 0, text


def _shown(text: str, most: int = _LONGEST_NAME) -> str:
    """A text as it can be shown and written."""
    text = text[:most]
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _loose(event: dict[str, Any]) -> _Event | None:
    """An event that was decoded alone, numbers as their texts."""
    args = event.get("args")
    known = {_NAMES[key]: value for key, value in args.items() if key in _NAMES} if isinstance(args, dict) else {}
    made = {key: _raw(value) if key in _RAW else _plain(value) for key, value in known.items()}
    texts = {key: event[key] if isinstance(event[key], str) else str(event[key])
             for key in ("ph", "name", "cat") if event.get(key) is not None}  # fmt: skip
    return _Event(**texts, pid=_plain(event.get("pid")), tid=_plain(event.get("tid")), id=_plain(event.get("id")),
                  ts=_raw_time(event.get("ts")), dur=_raw_time(event.get("dur")), args=_Args(**made))  # fmt: skip


def _plain(value: Any) -> Any:
    from tpuprof_tui.sources.chrome.decimals import Number

    if isinstance(value, Number):
        try:
            return int(value) if value.lstrip("-").isdecimal() else float(value)
        except ValueError:
            return None
    return None if isinstance(value, (list, dict)) else value


def _raw(value: Any) -> msgspec.Raw:
    def plain(part: Any) -> Any:
        return [plain(each) for each in part] if isinstance(part, list) else _plain(part)

    return msgspec.Raw(msgspec.json.encode(plain(value)))


def _raw_time(value: Any) -> msgspec.Raw:
    return msgspec.Raw(value.encode("utf-8", "replace")) if isinstance(value, str) else _NOTHING
