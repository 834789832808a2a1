"""One trace file -> its complete events in columns, its memory instants, what flows between them, and its metadata."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, Union, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.sources.chrome.chunks import NOTHING, EventChunks, raw_text
from tpuprof_tui.sources.chrome.growing import GrowingColumns
from tpuprof_tui.sources.chrome.inflate import Inflated
from tpuprof_tui.sources.chrome.times import exact_ns

from .arguments import Arguments, state_of
from .categories import KINDS, Kind
from .packed import Unpacked, check_memory

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5"
_LONGEST_NAME: Final = 1 << 16
#: Numbers beyond this are no blocks and no percentages.
_MOST_FLOAT: Final = 1e12
#: Calls with an id equal to their correlation from which on a file's ids are taken for those of launches.
_LAUNCH_IDS: Final = 10


class _Args(msgspec.Struct, gc=False, rename={
    "external": "External id", "external_old": "external id", "dims": "Input Dims", "dims_old": "Input dims",
    "types": "Input type", "call_stack": "Call stack", "registers": "registers per thread",
    "shared_memory": "shared memory", "blocks": "blocks per SM", "occupancy": "est. achieved occupancy %",
    "collective": "Collective name", "python_id": "Python id", "python_parent": "Python parent id",
    "module": "Python module id",
}):  # fmt: skip
    """Arguments of complete events that figures rest on; all others are passed over."""

    external: Any = INT_MISSING
    correlation: Any = INT_MISSING
    dims: msgspec.Raw = NOTHING
    types: msgspec.Raw = NOTHING
    device: Any = None
    stream: Any = None
    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING
    registers: Any = None
    shared_memory: Any = None
    blocks: Any = np.nan
    occupancy: Any = np.nan
    bytes: Any = INT_MISSING
    collective: Any = None
    python_id: Any = INT_MISSING
    python_parent: Any = INT_MISSING
    module: Any = INT_MISSING
    external_old: Any = INT_MISSING
    dims_old: msgspec.Raw = NOTHING
    call_stack: Any = None


class _MemoryArgs(msgspec.Struct, gc=False, rename={
    "device_type": "Device Type", "device_id": "Device Id", "change": "Bytes", "address": "Addr",
    "allocated": "Total Allocated", "reserved": "Total Reserved", "place": "Ev Idx",
}):  # fmt: skip
    """Arguments of memory instants."""

    device_type: Any = INT_MISSING
    device_id: Any = INT_MISSING
    change: Any = INT_MISSING
    address: Any = INT_MISSING
    allocated: Any = INT_MISSING
    reserved: Any = INT_MISSING
    place: Any = INT_MISSING


class _Title(msgspec.Struct, gc=False):
    """Arguments of names."""

    name: Any = None


class _Complete(msgspec.Struct, gc=False, tag_field="ph", tag="X"):
    name: str = "None"
    cat: str = ""
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    args: _Args | None = None


class _Instant(msgspec.Struct, gc=False, tag_field="ph", tag="i"):
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = NOTHING
    args: _MemoryArgs | None = None


class _OldInstant(_Instant, gc=False, tag_field="ph", tag="I"):
    pass


class _Begins(msgspec.Struct, gc=False, tag_field="ph", tag="s"):
    cat: Any = None
    id: Any = None
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = NOTHING


class _Ends(_Begins, gc=False, tag_field="ph", tag="f"):
    pass


class _Told(msgspec.Struct, gc=False, tag_field="ph", tag="M"):
    name: Any = None
    pid: Any = None
    tid: Any = None
    args: _Title | None = None


#: By phase what an event becomes; those of phases that PyTorch does not write are only passed over.
_KINDS: Final[dict[str, Any]] = {
    "X": _Complete, "i": _Instant, "I": _OldInstant, "s": _Begins, "f": _Ends, "M": _Told,
    **{phase: msgspec.defstruct(f"_Other{number}", [], gc=False, tag_field="ph", tag=phase)
       for number, phase in enumerate(("", *"tBECnbe"))},
}  # fmt: skip
_ANY_EVENT: Final[Any] = Union[tuple(_KINDS.values())]  # noqa: UP007
_as_tuple: Final = msgspec.structs.astuple
_IS_WORK: Final = np.isin(np.arange(len(Kind)), (Kind.KERNEL, Kind.COPY, Kind.SET, Kind.MTIA))
_NO_ARGS: Final = _Args()
_NO_MEMORY: Final = _MemoryArgs()
_MEMORY: Final = tuple(each.name for each in msgspec.structs.fields(_MemoryArgs))
_INSTANTS: Final = frozenset((_Instant, _OldInstant))
_FLOW_ENDS: Final = frozenset((_Begins, _Ends))
_FLOWS: Final = ("fwdbwd", "forward_backward")
_TALKS: Final = ("nccl:", "gloo:", "mpi:", "ucc:", "xccl:", "hccl:")


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
class FlowEnds:
    """Ends of flows in the order of the file, in columns of one length.

    Attributes:
        begins: Whether it is the flow's beginning.
        id: int64, the same of all ends of a flow.
        lane: Place of the thread in ``Trace.threads``.
        time: ns, as events have them.
    """

    begins: npt.NDArray[np.bool_]
    id: I64
    lane: I32
    time: I64


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
        flow_ends: Ends of flows from forward to backward operators.
        process_names, thread_names: What the file calls them, by process, and by process and thread.
        problems: What could not be used.
        arguments: Arguments of single events, by their place in the file.
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
    flow_ends: FlowEnds
    process_names: dict[str, str]
    thread_names: dict[tuple[str, str], str]
    problems: tuple[Problem, ...]
    arguments: Arguments

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length_ns(self) -> int:
        """From the earliest event or memory instant to the latest end of both."""
        return max(int(self.end.max(initial=0)), int(self.memory.time.max(initial=0)))

    @cached_property
    def call(self) -> I64:
        """Row of the call that started each device work (``work_rows``); -1 where it is not in the file.

        Of several calls with one correlation the first in time counts.
        """
        calls = np.flatnonzero((self.kind == Kind.CALL) & (self.correlation != INT_MISSING))
        order = np.argsort(self.correlation[calls], kind="stable")
        known = self.correlation[calls[order]]
        if bool((known[1:] == known[:-1]).any()):
            order = np.lexsort((self.place[calls], self.start[calls], self.correlation[calls]))
        calls = calls[order]
        wanted = self.correlation[self.work_rows]
        place = np.searchsorted(known, wanted)
        found = np.full(len(wanted), -1, np.int64)
        inside = np.flatnonzero(place < len(known))
        hit = inside[known[place[inside]] == wanted[inside]]
        found[hit] = calls[place[hit]]
        return found

    @cached_property
    def flows(self) -> tuple[I64, I64]:
        """Rows of the operators, forward and backward, at whose starts the ends of a flow stand."""
        ends = self.flow_ends
        rows = np.flatnonzero(self.kind == Kind.OPERATOR)
        # by thread, then start, as rows are: of several that begin together the first
        at = np.full(len(ends.time), -1, np.int64)
        lane = self.thread_of(rows)
        for number in np.unique(ends.lane).tolist():
            mine = np.flatnonzero(ends.lane == number)
            there = rows[lane == number]
            place = np.searchsorted(self.start[there], ends.time[mine])
            inside = np.flatnonzero(place < len(there))
            hit = inside[self.start[there[place[inside]]] == ends.time[mine[inside]]]
            at[mine[hit]] = there[place[hit]]
        begin = dict(zip(ends.id[ends.begins].tolist(), at[ends.begins].tolist(), strict=True))
        target = np.flatnonzero(~ends.begins & (at >= 0))
        source = np.array([begin.get(number, -1) for number in ends.id[target].tolist()], np.int64)
        return source[source >= 0], at[target][source >= 0]

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
        with path.open("rb") as raw, _no_collection():
            return _Reader(path, raw, progress).trace()
    except OSError as error:
        raise UnreadableError(f"{path}: {(error.strerror or 'cannot be read').lower()}.") from None


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without garbage collection: the many objects of a chunk are no cycles and go with it."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _Codes(dict[Any, int]):
    """Numbers things as they come."""

    def __missing__(self, key: Any) -> int:
        code = self[key] = len(self)
        return code


class _ShownCodes(dict[Any, int]):
    """Codes of the texts of what is shown as text, whatever it was."""

    def __init__(self, texts: _Codes) -> None:
        self._texts = texts

    def __missing__(self, key: Any) -> int:
        code = self[key] = self._texts[str(key)]
        return code

    def codes(self, values: list[Any]) -> I32:
        """Codes of values; of lists and objects those of how Python says them."""
        try:
            return np.array(list(map(self.__getitem__, values)), np.int32)
        except TypeError:
            return np.array([self._texts[str(value)] for value in values], np.int32)


class _Reader:
    def __init__(self, path: Path, raw: BinaryIO, progress: Callable[[int, int], None] | None) -> None:
        self._path, self._raw, self._progress = path, raw, progress
        self._size = os.fstat(raw.fileno()).st_size
        head = raw.read(2)
        raw.seek(0)
        check_memory(path, raw, self._size, packed=head == _GZIP)
        self._source: Inflated | Unpacked | BinaryIO = raw
        if head in (_GZIP, _ZSTD):
            self._source = Inflated(raw) if head == _GZIP else Unpacked(path, raw)
        self._passed = 0
        self._names, self._keys, self._texts = _Codes(), _Codes(), _Codes()
        self._shown = _ShownCodes(self._texts)
        self._kinds = np.zeros(0, np.int8)
        self._parts = GrowingColumns()
        self._work, self._operators, self._frames, self._memory = (GrowingColumns() for _ in range(4))
        self._flows = GrowingColumns()
        self._flow_ids = _Codes()
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
        chunks: EventChunks[Any] = EventChunks(self._read, _ANY_EVENT, _loose)
        first, offset = [], []
        for events in chunks:
            first.append(self._count)
            offset.append(chunks.offset)
            self._add(events)
        offset.append(chunks.list_end)
        if not chunks.found:
            raise UnreadableError(f"{self._path} holds no list of events.",
                                  "A PyTorch trace is Chrome-trace JSON with traceEvents.")  # fmt: skip
        places = () if self._source is self._raw else getattr(self._source, "places", None)
        arguments = Arguments(self._path, state_of(self._raw.fileno()), first, offset, places)
        return self._finished(chunks.metadata, tuple(self._problems(chunks)), arguments)

    # -- one chunk

    def _add(self, events: list[Any]) -> None:
        complete = [each for each in events if type(each) is _Complete]
        if len(complete) < len(events):
            self._add_others([each for each in events if type(each) is not _Complete])
        if not complete:
            return
        # one pass over the events for all their columns
        names, categories, pids, tids, starts, lengths, args = zip(*map(_as_tuple, complete), strict=True)
        count = len(complete)
        times = exact_ns((*starts, *lengths))
        start, length = times[:count], times[count:]
        if (times == INT_MISSING).any():
            sound = (start != INT_MISSING) & (length != INT_MISSING)
            self._untimed += int((~sound).sum())
            self._add([each for each, good in zip(complete, sound.tolist(), strict=True) if good])
            return
        below = length < 0
        if below.any():
            self._clamped += int(below.sum())
            length = np.maximum(length, 0)
        key = self._codes_of(categories, pids, tids)
        if len(self._keys) > len(self._kinds):
            new = islice(self._keys, len(self._kinds), None)
            found = [KINDS.get(category.lower(), Kind.OTHER) for category, _, _ in new]
            self._kinds = np.concatenate([self._kinds, np.array(found, np.int8)])
        kinds = self._kinds[key]
        arguments = [each or _NO_ARGS for each in args]
        first, self._count = self._count, self._count + count
        # Python frames have no ids that join them with others
        joined = np.flatnonzero(kinds != Kind.FRAME)
        correlation, external = np.full((2, count), INT_MISSING, np.int64)
        if len(joined):
            told = arguments if len(joined) == count else [arguments[row] for row in joined.tolist()]
            correlation[joined] = _whole([each.correlation for each in told])
            external[joined] = _whole([each.external for each in told])
            lacking = np.flatnonzero(external[joined] == INT_MISSING)
            external[joined[lacking]] = _whole([told[row].external_old for row in lacking.tolist()])
        self._parts.add(
            start=start, end=start + length, key=key, external=external, correlation=correlation,
            name=np.array(list(map(self._names.__getitem__, names)), np.int32),
        )  # fmt: skip
        rows = np.flatnonzero(_IS_WORK[kinds])
        if len(rows):
            chosen = rows.tolist()
            self._add_work(first + rows, [arguments[row] for row in chosen], [complete[row] for row in chosen])
        rows = np.flatnonzero((kinds == Kind.OPERATOR) | (kinds == Kind.ANNOTATION))
        if len(rows):
            chosen = rows.tolist()
            self._add_operators(first + rows, [arguments[row] for row in chosen], [names[row] for row in chosen])
        rows = np.flatnonzero(kinds == Kind.FRAME)
        if len(rows):
            self._add_frames(first + rows, [arguments[row] for row in rows.tolist()])

    def _codes_of(self, categories: Iterable[str], pids: Iterable[Any], tids: Iterable[Any]) -> I32:
        """Codes of what events are and where they ran."""
        try:
            return np.array(list(map(self._keys.__getitem__, zip(categories, pids, tids, strict=True))), np.int32)
        except TypeError:
            # lists and objects, which are no numbers of processes
            pids, tids = ([each if isinstance(each, (int, float, str)) else str(each) for each in told]
                          for told in (pids, tids))  # fmt: skip
            return np.array([self._keys[each] for each in zip(categories, pids, tids, strict=True)], np.int32)

    def _add_work(self, place: I64, args: list[_Args], events: list[_Complete]) -> None:
        texts, shown = self._texts, self._shown
        self._work.add(
            place=place,
            device=shown.codes([event.pid if each.device is None else each.device
                                for each, event in zip(args, events, strict=True)]),
            stream=shown.codes([event.tid if each.stream is None else each.stream
                                for each, event in zip(args, events, strict=True)]),
            grid=_raw_codes(texts, [each.grid for each in args]),
            block=_raw_codes(texts, [each.block for each in args]),
            registers=shown.codes([each.registers or 0 for each in args]),
            shared_memory=shown.codes([each.shared_memory or 0 for each in args]),
            blocks=_floats([each.blocks for each in args]),
            occupancy=_floats([each.occupancy for each in args]),
            bytes=_whole([each.bytes for each in args]),
            collective=np.array([each.collective is not None for each in args], np.bool_),
        )  # fmt: skip

    def _add_operators(self, place: I64, args: list[_Args], names: list[str]) -> None:
        texts = self._texts
        dims, types = [each.dims for each in args], [each.types for each in args]
        if not any(dims):
            dims = [each.dims_old for each in args]
        if any(types):
            # what is sent is told by types and shapes; of all other operators types are no part of a figure
            types = [each if name.startswith(_TALKS) else NOTHING for each, name in zip(types, names, strict=True)]
        stacks = [each.call_stack for each in args]
        self._operators.add(
            place=place, dims=_raw_codes(texts, dims), types=_raw_codes(texts, types),
            stack=np.array([texts[each] if isinstance(each, str) and each else -1 for each in stacks]
                           if any(stacks) else [-1] * len(stacks), np.int32),
        )  # fmt: skip

    def _add_frames(self, place: I64, args: list[_Args]) -> None:
        self._frames.add(place=place, id=_whole([each.python_id for each in args]),
                         parent=_whole([each.python_parent for each in args]),
                         module=_whole([each.module for each in args]))  # fmt: skip

    def _add_others(self, events: list[Any]) -> None:
        self._add_memory([each for each in events if type(each) in _INSTANTS and each.name == "[memory]"])
        flows = [each for each in events if type(each) in _FLOW_ENDS and each.cat in _FLOWS]
        if flows:
            _, ids, pids, tids, times = zip(*map(_as_tuple, flows), strict=True)
            self._flows.add(
                begins=np.array([type(each) is _Begins for each in flows], np.bool_),
                id=np.array([self._flow_ids[str(each)] for each in ids], np.int64),
                key=self._codes_of([""] * len(flows), pids, tids), time=exact_ns(times),
            )  # fmt: skip
        for each in events:
            if type(each) is _Told and each.args is not None and isinstance(each.args.name, str):
                if each.name == "process_name":
                    self._process_names[str(each.pid)] = each.args.name
                elif each.name == "thread_name":
                    self._thread_names[str(each.pid), str(each.tid)] = each.args.name

    def _add_memory(self, instants: list[_Instant]) -> None:
        if not instants:
            return
        _, pids, tids, times, args = zip(*map(_as_tuple, instants), strict=True)
        columns = zip(*(_as_tuple(each or _NO_MEMORY) for each in args), strict=True)
        self._memory.add(time=exact_ns(times), key=self._codes_of([""] * len(instants), pids, tids),
                         **{key: _whole(values) for key, values in zip(_MEMORY, columns, strict=True)})  # fmt: skip

    # -- the whole

    def _finished(self, metadata: dict[str, Any], problems: tuple[Problem, ...], arguments: Arguments) -> Trace:
        # every column is there, of files without such events too
        nothing = np.zeros(0, np.int64)
        self._add_work(nothing, [], [])
        self._add_operators(nothing, [], [])
        self._add_frames(nothing, [])
        parts = self._parts
        start, end, key = parts.take("start"), parts.take("end"), parts.take("key", np.int32)
        time = self._memory.take("time")
        known = time != INT_MISSING
        zero = min((int(values.min()) for values in (start, time[known]) if len(values)), default=0)
        start -= zero
        end -= zero
        # lanes: processes and threads as texts, in order
        pairs = [(str(pid), str(tid)) for _, pid, tid in self._keys]
        threads = sorted(set(pairs), key=lambda each: (by_number(each[0]), by_number(each[1])))
        numbers = {pair: number for number, pair in enumerate(threads)}
        lane_of_key = np.array([numbers[pair] for pair in pairs], np.int32)
        categories = _Codes()
        category_of_key = np.array([categories[category] for category, _, _ in self._keys], np.int16)
        kind_of_key = np.array([KINDS.get(str(category).lower(), Kind.OTHER) for category, _, _ in self._keys], np.int8)
        names = tuple(map(_shown, self._names))
        name, external = parts.take("name", np.int32), parts.take("external")
        kind = _mtia(_looked_up(kind_of_key, key), name, names)
        lane = _looked_up(lane_of_key, key)
        order = _order_of_nesting(lane, start, end, kind != Kind.FRAME, external)
        row_of = np.empty(len(order), np.int64)
        row_of[order] = np.arange(len(order))
        flows = [self._flows.take(each) for each in ("begins", "id", "key", "time")]
        tables = [self._table(table, row_of) for table in (self._work, self._operators, self._frames)]
        return Trace(
            path=self._path, metadata=metadata, threads=tuple(threads),
            first=np.searchsorted(lane[order], np.arange(len(threads) + 1)).astype(np.int64), zero_ns=zero,
            start=start[order], end=end[order], name=name[order], kind=kind[order],
            category=_looked_up(category_of_key, key)[order], place=order,
            correlation=parts.take("correlation")[order], external=external[order], names=names,
            categories=tuple(map(_shown, categories)),
            texts=tuple(_shown(text.decode("utf-8", "replace") if isinstance(text, bytes) else text, 1 << 20)
                        for text in self._texts),
            memory=self._memory_columns(time - zero, known, lane_of_key),
            work_rows=tables[0][0], work=tables[0][1], operator_rows=tables[1][0], operators=tables[1][1],
            frame_rows=tables[2][0], frames=tables[2][1],
            flow_ends=FlowEnds(flows[0].astype(np.bool_), flows[1], _looked_up(lane_of_key, flows[2]), flows[3] - zero),
            process_names=self._process_names, thread_names=self._thread_names, problems=problems,
            arguments=arguments,
        )  # fmt: skip

    def _memory_columns(self, time: I64, known: npt.NDArray[np.bool_], lane_of_key: I32) -> Memory:
        columns = {key: self._memory.take(key) for key in _MEMORY}
        lane = self._memory.take("key", np.int32)
        place = columns.pop("place")
        last = np.iinfo(np.int64).max
        order = np.lexsort((np.arange(len(time)), np.where(place == INT_MISSING, last, place), time))
        order = order[known[order]]
        return Memory(time[order], _looked_up(lane_of_key, lane[order]),
                      **{key: values[order] for key, values in columns.items()})  # fmt: skip

    @staticmethod
    def _table(parts: GrowingColumns, row_of: I64) -> tuple[I64, dict[str, npt.NDArray[Any]]]:
        """Rows, ascending, and the columns of these."""
        places = parts.take("place")
        rows = row_of[places] if len(places) else np.zeros(0, np.int64)
        order = np.argsort(rows, kind="stable")
        return rows[order], {key: parts.take(key)[order] for key in list(parts)}

    def _problems(self, chunks: EventChunks[Any]) -> list[Problem]:
        name, found = self._path.name, []
        if isinstance(self._source, (Inflated, Unpacked)) and self._source.damaged:
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


def _order_of_nesting(lane: I32, start: I64, end: I64, later: npt.NDArray[np.bool_], external: I64) -> I64:
    """Lane by lane, by start, then from the longest: frames before the rest, ids rise from outside in.

    What has no id comes last; the place in the file decides where nothing else does.
    """
    order = np.argsort(start, kind="stable")
    order = order[np.argsort(lane[order].astype(np.int16 if len(lane) and lane.max() < 1 << 15 else np.int32),
                             kind="stable")]  # fmt: skip
    alike = (start[order][1:] == start[order][:-1]) & (lane[order][1:] == lane[order][:-1])
    if alike.any():
        # few begin together: only these are sorted by more than start
        tied = np.flatnonzero(np.append(alike, False) | np.append(False, alike))
        together = np.cumsum(np.append(True, ~alike))[tied]
        rows = order[tied]
        ids = np.where(external[rows] == INT_MISSING, np.iinfo(np.int64).max, external[rows])
        order[tied] = rows[np.lexsort((rows, ids, later[rows], -end[rows], together))]
    return order


def _looked_up(values: npt.NDArray[Any], codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values[codes] if len(codes) else values[:0]


def _mtia(kind: npt.NDArray[np.int8], name: I32, names: Sequence[str]) -> npt.NDArray[np.int8]:
    """The kinds of events of which the category does not tell it."""
    rows = np.flatnonzero(kind == Kind.MTIA)
    if len(rows):
        of_name = np.array([Kind.COPY if text == "dma_request" else Kind.WAIT if text.startswith("event_")
                            else Kind.KERNEL for text in names], np.int8)  # fmt: skip
        kind = kind.copy()
        kind[rows] = of_name[name[rows]]
    return kind


def _whole(values: Sequence[Any]) -> I64:
    try:
        found = np.array(values, np.int64)
    except (TypeError, ValueError, OverflowError):
        found = None
    # lists of one length would be rows of a table
    return np.array(list(map(_one_whole, values)), np.int64) if found is None or found.ndim != 1 else found


def _one_whole(value: Any) -> int:
    if isinstance(value, str):
        digits = value.removeprefix("-")
        value = int(value) if digits.isascii() and digits.isdecimal() and len(digits) < 40 else None
    if not isinstance(value, int) or not INT_MISSING <= value < 1 << 63:
        # addresses and ids beyond int64 stay apart from each other
        return value - (1 << 64) if isinstance(value, int) and 0 <= value < 1 << 64 else INT_MISSING
    return int(value)


def _floats(values: list[Any]) -> F64:
    if not set(map(type, values)) <= {float, int}:
        values = [value if type(value) in (float, int) else np.nan for value in values]
    found = np.array([min(max(value, -_MOST_FLOAT), _MOST_FLOAT) for value in values], np.float64)
    return np.where(np.abs(found) < _MOST_FLOAT, found, np.nan)


def _raw_codes(texts: _Codes, values: list[msgspec.Raw]) -> I32:
    if not any(values):
        return np.full(len(values), -1, np.int32)
    return np.array([texts[bytes(value)] if value else -1 for value in values], np.int32)


def by_number(text: str) -> tuple[bool, int, str]:
    """Numbers first, by their value; other texts behind them."""
    number = text.isascii() and text.isdecimal()
    return not number, int(text[:18]) if number else 0, text


def _shown(text: str, most: int = _LONGEST_NAME) -> str:
    """A text as it can be shown and written."""
    text = text[:most]
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _loose(event: dict[str, Any]) -> Any:
    """An event that was decoded alone, numbers as their texts."""
    phase = event.get("ph", "")
    kind = _KINDS.get(phase, _KINDS[""]) if isinstance(phase, str) else _KINDS[""]
    made: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        value = event.get(field.name)
        if value is None:
            continue
        if field.name == "args":
            made["args"] = _args_of(field.type, value)
        elif field.type is msgspec.Raw:
            made[field.name] = raw_text(value)
        elif field.type is str:
            made[field.name] = value if isinstance(value, str) else str(value)
        else:
            made[field.name] = _plain(value)
    return kind(**made)


def _args_of(kind: Any, told: Any) -> Any:
    """Arguments of an event that was decoded alone."""
    (struct,) = (each for each in get_args(kind) if each is not type(None))
    known = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    found = {known[key].name: _raw(value) if known[key].type is msgspec.Raw else _plain(value)
             for key, value in told.items() if key in known} if isinstance(told, dict) else {}  # fmt: skip
    return struct(**found)


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
