"""The events of a database of Nsight Systems in columns, whichever of its tables they stand in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.sources.chrome.columns import I32, Codes, GrowingColumns, lookup, printable
from tpuprof_tui.sources.sqlite import I64, SqliteFile
from tpuprof_tui.sources.torch.categories import COLLECTIVE_COMM, Kind

_CUPTI: Final = "CUPTI_ACTIVITY_KIND_"
_NVTX: Final = "NVTX_EVENTS"
_GRAPHS: Final = f"{_CUPTI}GRAPH_TRACE"
#: Tables of what runs on devices: kind and category of their events.
_DEVICE: Final = {
    f"{_CUPTI}KERNEL": (Kind.KERNEL, "kernel"), f"{_CUPTI}MEMCPY": (Kind.COPY, "memcpy"),
    f"{_CUPTI}MEMSET": (Kind.SET, "memset"), _GRAPHS: (Kind.KERNEL, "graph"),
    f"{_CUPTI}SYNCHRONIZATION": (Kind.WAIT, "cuda_sync"),
}  # fmt: skip
_CALLS: Final = {f"{_CUPTI}RUNTIME": "cuda_runtime", f"{_CUPTI}DRIVER": "cuda_driver"}
#: Columns of device work beside its times, place and name.
WORK: Final = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
               "dynamicSharedMemory", "bytes", "graphNodeId")  # fmt: skip
_NAMES: Final = ("demangledName", "shortName", "mangledName", "copyKind", "srcKind", "dstKind", "syncType", "graphId")
#: Types of NVTX events: mark, push and pop, start and end, name of a domain; others are no events of their own.
_MARK, _PUSHED, _STARTED, _DOMAIN = 34, 59, 60, 75
_COPIES: Final = dict(enumerate(["HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"], 1))
_MEMORIES: Final = dict(enumerate(["Pageable", "Pinned", "Device", "Array", "Managed", "Device", "Managed"]))
_SYNCS: Final = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
#: Version behind the names of calls: cudaLaunchKernel_v7000.
_VERSION: Final = lazy_pattern(r"_v\d{4,6}$")
_COLLECTIVE: Final = lazy_pattern(r"nccl(?!Group|Comm)")
#: Tables without events, or that are shown otherwise.
_OTHERWISE: Final = lazy_pattern(
    r"(?:ENUM|TARGET_INFO|META_DATA|ANALYSIS)_.*|DIAGNOSTIC_EVENT|GPU_METRICS|CUDA_GPU_MEMORY_USAGE_EVENTS"
    r"|CUDA_GRAPH_.*|ProcessStreams|PROFILER_OVERHEAD"
)
#: Times from here on are none.
LATEST: Final = 1 << 61
#: Where events are: on a stream, on a thread, or (ranges that may begin and end on several threads) on neither.
STREAM, THREAD, RANGES = range(3)


class Events:
    """Reads all tables of events.

    Args:
        report: Called with what is read now.

    Attributes:
        start, end: int64 ns from the start of the session; events without a time are left out.
        process: Global id of the process: the upper bits of ``globalTid`` and ``globalPid``; -1 if unknown.
        kind, category: See `Trace`; ``categories``: texts of the latter.
        place: Where an event is, with ``first`` and ``second``: device and stream, process and thread, or process and
            domain of NVTX.
        correlation: Ids, missing if absent.
        work: Columns `WORK` of the first events: those of devices stand before all others.
        read: Tables with the number of events of each; ``rowid``: the row of each event in its table.
    """

    def __init__(self, database: SqliteFile, report: Callable[[str], None]) -> None:
        self._database, self._report = database, report
        self._columns, self._work = GrowingColumns(), GrowingColumns()
        #: Names that are made here, and categories; the code of the former is the negative of their name's id minus 2.
        self._made, self._categories = Codes(), Codes()
        self._left_out = self._below = self._open = 0
        self.read: list[tuple[str, int]] = []
        for table in filter(database.tables.__contains__, _DEVICE):
            self._of_devices(table)
        others = [table for table in database.tables if database.has(table, "end", "nameId") and table not in _CALLS]
        for table in (*_CALLS, *others):
            if database.has(table, "start", "globalTid"):
                self._of_host(table)
        if database.has(_NVTX, "start", "globalTid"):
            self._of_nvtx()
        take = self._columns.take
        self.start, self.end, self.process, self.rowid = map(take, ("start", "end", "process", "rowid"))
        self.place, self.first, self.second = map(take, ("place", "first", "second"))
        self.correlation, self._name = take("correlation"), take("name")
        self.kind, self.category = take("kind").astype(np.int8), take("category").astype(np.int16)
        self.work = {key: self._work.take(key) for key in WORK}
        self.categories = tuple(map(printable, self._categories))

    def _integers(self, table: str, *columns: str) -> dict[str, I64]:
        def progress(rows: int) -> None:
            self._report(f"{table}, {rows:,} rows")

        return self._database.integers(table, *columns, progress=progress)

    def _add(self, table: str, read: dict[str, I64], kept: Any = True, **columns: Any) -> None:
        """Adds the rows of a table that are ``kept`` and have times; a column may be one value for all."""
        start, end = read["start"], read["end"]
        sound = (np.abs(start) < LATEST) & (np.abs(end) < LATEST) & (start != INT_MISSING) & (end != INT_MISSING)
        self._left_out += int((kept & ~sound).sum())
        sound &= kept
        self._below += int((sound & (end < start)).sum())
        columns |= {"start": start, "end": np.maximum(start, end), "rowid": read["rowid"]}
        self._columns.add(**{key: np.broadcast_to(values, len(start))[sound] for key, values in columns.items()})
        if table in _DEVICE:
            self._work.add(**{key: read[key][sound] for key in WORK})
        self.read.append((table, int(sound.sum())))

    def _of_devices(self, table: str) -> None:
        kind, category = _DEVICE[table]
        read = self._integers(
            table, "start", "end", "globalPid", "deviceId", "streamId", "correlationId", *_NAMES, *WORK
        )
        name = self._name_of_work(kind, table, read)
        self._add(table, read, process=read["globalPid"] >> 24, place=STREAM, first=read["deviceId"],
                  second=read["streamId"], correlation=read["correlationId"], kind=int(kind), name=name,
                  category=self._categories[category])  # fmt: skip

    def _name_of_work(self, kind: Kind, table: str, read: dict[str, I64]) -> I64:
        if table == _GRAPHS:
            return self._named(lambda number: f"CUDA graph {number}", read["graphId"])
        if kind == Kind.KERNEL:
            demangled, short, mangled = (read[key] for key in _NAMES[:3])
            return np.where(demangled >= 0, demangled, np.where(short >= 0, short, np.maximum(mangled, -1)))
        if kind == Kind.COPY:
            return self._named(_copy_name, read["copyKind"], read["srcKind"], read["dstKind"])
        if kind == Kind.SET:
            return self._named(lambda _: "Memset", read["start"] * 0)
        return self._named(lambda number: _SYNCS.get(number, "Sync"), read["syncType"])

    def _named(self, text_of: Callable[..., str], *columns: I64) -> I64:
        """Names, each made of the values of some columns."""
        first, inverse = combined(*columns)
        made = [self._made[text_of(*(int(column[row]) for column in columns))] for row in first.tolist()]
        return -2 - np.array(made, np.int64)[inverse]

    def _of_host(self, table: str) -> None:
        category = _CALLS.get(table, table.lower().removesuffix("_events").removesuffix("_api"))
        read = self._integers(table, "start", "end", "globalTid", "correlationId", "nameId")
        self._add(table, read, process=read["globalTid"] >> 24, place=THREAD, first=read["globalTid"] >> 24,
                  second=read["globalTid"] & 0xFFFFFF, correlation=read["correlationId"] if table in _CALLS else
                  INT_MISSING, kind=int(Kind.CALL if table in _CALLS else Kind.OTHER), name=np.maximum(read["nameId"], -1),
                  category=self._categories[category])  # fmt: skip

    def _of_nvtx(self) -> None:
        read = self._integers(_NVTX, "start", "end", "globalTid", "eventType", "textId", "domainId")
        kind, process, domain = read["eventType"], read["globalTid"] >> 24, np.maximum(read["domainId"], 0)
        kind = np.where(kind == INT_MISSING, _PUSHED, kind)
        name, has_text = (
            np.maximum(read["textId"], -1),
            "where text is not null" if self._database.has(_NVTX, "text") else "limit 0",
        )
        own = self._database.rows(_NVTX, "rowid", "text", condition=has_text)
        codes = np.array([self._made[str(text)] for _, text in own], np.int64)
        told = lookup(read["rowid"], np.array([row for row, _ in own], np.int64))
        name[told[told >= 0]] = -2 - codes[told >= 0]
        domains = {(int(process[row]), int(domain[row])): self.text_of(int(name[row]))
                   for row in np.flatnonzero(kind == _DOMAIN).tolist()}  # fmt: skip

        def category(of_process: int, of_domain: int, of_name: int) -> int:
            title = domains.get((of_process, of_domain), str(of_domain or ""))
            collective = title == "NCCL" and _COLLECTIVE.match(self.text_of(of_name))
            return self._categories[COLLECTIVE_COMM if collective else f"nvtx {title}".rstrip()]

        first, inverse = combined(process, domain, name)
        categories = [category(int(process[row]), int(domain[row]), int(name[row])) for row in first.tolist()]
        ranges, is_open = (kind == _PUSHED) | (kind == _STARTED), read["end"] == INT_MISSING
        self._open = int((ranges & is_open).sum())
        last = max([int(read["end"].max(initial=0)), *(int(part.max(initial=0)) for part in self._columns["end"])])
        read["end"] = np.where(is_open, np.where(ranges, last, read["start"]), read["end"])
        self._add(
            _NVTX, read, ranges | (kind == _MARK), process=process, first=process, correlation=INT_MISSING,
            place=np.where(kind == _STARTED, RANGES, THREAD), name=name,
            second=np.where(kind == _STARTED, domain, read["globalTid"] & 0xFFFFFF),
            kind=np.where(kind == _PUSHED, int(Kind.OPERATOR), int(Kind.ANNOTATION)),
            category=np.array(categories, np.int64)[inverse],
        )  # fmt: skip

    # -- names

    @cached_property
    def _strings(self) -> dict[Any, Any]:
        return dict(self._database.rows("StringIds", "id", "value"))

    def text_of(self, name: int) -> str:
        """The name of an id."""
        if name <= -2:
            return printable(list(self._made)[-2 - name])
        return printable(str(self._strings.get(name, "")))

    def names_of(self, rows: I64) -> tuple[tuple[str, ...], I32]:
        """The distinct names of the events in some rows, and the code of each."""
        ids, inverse = np.unique(self._name[rows], return_inverse=True)
        made, codes = list(self._made), Codes()
        texts = [made[-2 - id_] if id_ < -1 else str(self._strings.get(id_, "")) for id_ in ids.tolist()]
        found = [codes[_VERSION.sub("", printable(text))] for text in texts]
        return tuple(codes), np.array(found, np.int32)[inverse.reshape(-1)]

    # -- what is to be said

    def problems(self) -> Iterator[Problem]:
        """What is missing or wrong."""
        name = self._database.name
        for count, severity, what, done in (
            (self._left_out, Severity.ERROR, "Events without a time, or with one out of range.", "They were left out."),
            (self._below, Severity.WARNING, "Events of negative duration.", "They are shown with length 0."),
            (self._open, Severity.NOTE, "NVTX ranges that were not ended.", "They are shown to the recording's end."),
            (dict(self.read).get(_GRAPHS, 0), Severity.NOTE, "CUDA graphs were recorded as a whole: their kernels are "
             "not known.", "Record with --cuda-graph-trace=node."),
        ):  # fmt: skip
            if count:
                lost = count if severity is Severity.ERROR else 0
                yield Problem(severity, what, done, file=name, count=count, lost=lost)
        tables, known = self._database.tables, {table for table, _ in self.read}
        others = [table for table, columns in tables.items() if {"start", "timestamp"} & set(columns) and table not in
                  known and not _OTHERWISE.fullmatch(table) and self._database.rows(table, columns[0],
                                                                                   condition="limit 1")]  # fmt: skip
        if others:
            named = ", ".join(map(printable, others[:8])) + (", ..." if len(others) > 8 else "")
            what = f"Tables that are not shown: {named}."
            yield Problem(Severity.NOTE, what, "Nsight Systems shows them.", file=name, count=len(others))


def _copy_name(kind: int, source: int, target: int) -> str:
    """The name that CUPTI's other users give a copy: Memcpy HtoD (Pageable -> Device)."""
    ends = [_MEMORIES.get(each, "Unknown") for each in (source, target)]
    known = f" ({' -> '.join(ends)})" if set(ends) != {"Unknown"} else ""
    return f"Memcpy {_COPIES.get(kind, '')}".rstrip() + known


def combined(*columns: npt.NDArray[Any]) -> tuple[I64, I64]:
    """Of the distinct rows of some columns the first place of each; and its index for each row."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, inverse = np.unique(column, return_inverse=True)
        code = np.unique(code * len(values) + inverse.reshape(-1), return_inverse=True)[1].reshape(-1)
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)
