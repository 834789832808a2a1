"""The events of a database of Nsight Systems in columns, whichever of its tables they stand in."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.units import bytes_text
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.model.profile import FRAGMENTARY
from tpuprof_tui.model.uniques import distinct_together
from tpuprof_tui.sources.chrome.collector import memory_bytes
from tpuprof_tui.sources.chrome.columns import Codes, GrowingColumns, lookup, printable
from tpuprof_tui.sources.sqlite import I64, SqliteFile
from tpuprof_tui.sources.torch.categories import COLLECTIVE_COMM, Kind
from tpuprof_tui.sources.torch.read.arguments import Arguments

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
#: Types of NVTX events: mark, push and pop, start and end, name of a domain; others are no events of their own.
_MARK, _PUSHED, _STARTED, _DOMAIN = 34, 59, 60, 75
_COPIES: Final = dict(enumerate(["HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"], 1))
_MEMORIES: Final = dict(enumerate(["Pageable", "Pinned", "Device", "Array", "Managed", "Device", "Managed"]))
_SYNCS: Final = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
#: Version behind the names of calls: cudaLaunchKernel_v7000.
_VERSION: Final = lazy_pattern(r"_v\d{4,6}$")
_COLLECTIVE: Final = lazy_pattern(r"nccl(?!Group|Comm)")
#: Tables without events, or that are shown otherwise.
_OTHERWISE: Final = lazy_pattern(r"(?:ENUM|TARGET_INFO|META_DATA|ANALYSIS)_.*|DIAGNOSTIC_EVENT|GPU_METRICS"
                                 r"|ProcessStreams|CUDA_(?:GRAPH_|GPU_MEMORY_USAGE_).*|PROFILER_OVERHEAD")  # fmt: skip
#: Memory that reading an event takes, measured on 867,000, with a margin.
_BYTES: Final = 350
#: Times from here on are none.
_LATEST: Final = 1 << 61
#: Where events are: on a stream, on a thread, or (ranges that may begin and end on several threads) on neither.
STREAM, THREAD, RANGES = range(3)


class EventTables:
    """Reads all tables of events.

    Args:
        report: Called with what is read now.

    Attributes:
        columns: Of one length: ``start`` and ``end`` (ns from the start of the session), ``name`` and ``category``
            (codes), ``kind`` (see `Trace`), ``correlation``, ``process`` (the upper bits of its ``globalTid``; -1:
            unknown), ``place`` with ``first`` and ``second``, device and stream, process and thread, or process and
            domain of NVTX, and ``rowid`` in its table.
        names, categories: Texts of codes.
        work: Columns `WORK` of the first events: those of devices stand before all others.
        read: Tables with the number of events of each, in their order.
    """

    def __init__(self, database: SqliteFile, report: Callable[[str], None]) -> None:
        self._database, self._report = database, report
        self._strings = dict(database.rows("StringIds", "id", "value"))
        self._columns, self._work = GrowingColumns(), GrowingColumns()
        self.names, self.categories = Codes(), Codes()
        self._left_out = self._below = self._open = 0
        #: Columns that a table of devices should have.
        self._lacking: set[str] = set()
        self.read: list[tuple[str, int]] = []
        has = database.has
        others = [table for table in database.tables if has(table, "end", "nameId") and table not in _CALLS]
        tables = {
            self._of_devices: [table for table in _DEVICE if has(table, "start", "end")],
            self._of_host: [table for table in (*_CALLS, *others) if has(table, "start", "globalTid")],
            self._of_nvtx: [_NVTX] if has(_NVTX, "start", "globalTid") else [],
        }
        rows = sum(database.count(table) for each in tables.values() for table in each)
        if memory_bytes() and rows * _BYTES > memory_bytes():
            raise UnreadableError(f"{database.name} holds {rows:,} events: reading them takes about "
                                  f"{bytes_text(rows * _BYTES)} of memory, and there are {bytes_text(memory_bytes())}.",
                                  "Record less: nsys profile --capture-range, --delay and --duration.")  # fmt: skip
        for read, of_kind in tables.items():
            for table in of_kind:
                read(table)
        self.columns: dict[str, I64] = self._columns.columns()
        self.work: dict[str, I64] = {key: self._work.take(key) for key in WORK}

    def text_of(self, id_: int) -> str:
        """The text of an id."""
        return printable(str(self._strings.get(id_, "")))

    def _integers(self, table: str, *columns: str) -> dict[str, I64]:
        return self._database.integers(table, *columns, progress=lambda rows: self._report(f"{table}, {rows:,} rows"))

    def _add(self, table: str, read: dict[str, I64], category: Any, kept: Any = True, **columns: Any) -> None:
        """Adds the rows of a table that are ``kept`` and have times; a column may be one value for all."""
        start, end = read["start"], read["end"]
        # of device work CUPTI writes two zeros where it could not collect times
        sound = are_times(start) & are_times(end) & ((end != 0) | (table not in _DEVICE))
        self._left_out += int((kept & ~sound).sum())
        sound &= kept
        self._below += int((sound & (end < start)).sum())
        columns |= {"start": start, "end": np.maximum(start, end), "rowid": read["rowid"], "category": category}
        self._columns.add(**{key: np.broadcast_to(values, len(start))[sound] for key, values in columns.items()})
        if table in _DEVICE:
            self._work.add(**{key: read[key][sound] for key in WORK})
        self.read.append((table, int(sound.sum())))

    def _of_devices(self, table: str) -> None:
        kind, category = _DEVICE[table]
        places = ("start", "end", "globalPid", "deviceId", "streamId", "correlationId")
        made: dict[str, tuple[tuple[str, ...], Callable[..., str]]] = {
            "kernel": (("demangledName", "shortName", "mangledName"), self._kernel_name),
            "memcpy": (("copyKind", "srcKind", "dstKind"), _copy_name), "memset": (("memKind",), _set_name),
            "graph": (("graphId",), lambda number: f"CUDA graph {number}"),
            "cuda_sync": (("syncType",), lambda number: _SYNCS.get(number, "Sync")),
        }  # fmt: skip
        columns, name_of = made[category]
        self._lacking |= {each for each in (*places, *columns[:1]) if not self._database.has(table, each)}
        read = self._integers(table, *places, *columns, *WORK)
        name = codes_of_rows(self.names, name_of, *(read[key] for key in columns))
        self._add(table, read, self.categories[category], kind=int(kind), name=name, process=read["globalPid"] >> 24,
                  place=STREAM, first=read["deviceId"], second=read["streamId"],
                  correlation=read["correlationId"])  # fmt: skip

    def _kernel_name(self, *ids: int) -> str:
        return next(filter(None, map(self.text_of, ids)), "")

    def _of_host(self, table: str) -> None:
        kind, category = (Kind.CALL, _CALLS[table]) if table in _CALLS else (
            Kind.OTHER, table.lower().removesuffix("_events").removesuffix("_api"))  # fmt: skip
        read = self._integers(table, "start", "end", "globalTid", "correlationId", "nameId")
        name = codes_of_rows(self.names, lambda id_: _VERSION.sub("", self.text_of(id_)), read["nameId"])
        self._add(table, read, self.categories[category], kind=int(kind), name=name, process=read["globalTid"] >> 24,
                  place=THREAD, first=read["globalTid"] >> 24, second=read["globalTid"] & 0xFFFFFF,
                  correlation=read["correlationId"] if kind == Kind.CALL else INT_MISSING)  # fmt: skip

    def _of_nvtx(self, table: str) -> None:
        read = self._integers(table, "start", "end", "globalTid", "eventType", "textId", "domainId")
        kind, process, domain = read["eventType"], read["globalTid"] >> 24, np.maximum(read["domainId"], 0)
        kind = np.where(kind == INT_MISSING, _PUSHED, kind)
        name = codes_of_rows(self.names, self.text_of, read["textId"])
        unnamed = "where textId is null" if self._database.has(_NVTX, "textId") else ""
        own = self._database.rows(_NVTX, "rowid", "text", condition=unnamed)
        place = lookup(read["rowid"], np.array([row for row, _ in own], np.int64))
        codes = np.array([self.names[printable(str(text or ""))] for _, text in own], np.int64)
        # of a damaged table other rows may be read
        name[place[place >= 0]] = codes[place >= 0]
        names = list(self.names)
        domains = {(int(process[row]), int(domain[row])): names[name[row]]
                   for row in np.flatnonzero(kind == _DOMAIN).tolist()}  # fmt: skip

        def category(of_process: int, of_domain: int, of_name: int) -> str:
            title = domains.get((of_process, of_domain), str(of_domain or ""))
            if title == "NCCL" and _COLLECTIVE.match(names[of_name]):
                return COLLECTIVE_COMM
            return f"nvtx {title}".rstrip()

        ranges, is_open = (kind == _PUSHED) | (kind == _STARTED), read["end"] == INT_MISSING
        self._open = int((ranges & is_open).sum())
        last = max(int(part.max(initial=0)) for part in (read["end"], *self._columns["end"]))
        read["end"] = np.where(is_open, np.where(ranges, last, read["start"]), read["end"])
        self._add(
            _NVTX, read, codes_of_rows(self.categories, category, process, domain, name), ranges | (kind == _MARK),
            kind=np.where(kind == _PUSHED, int(Kind.OPERATOR), int(Kind.ANNOTATION)), name=name, process=process,
            place=np.where(kind == _STARTED, RANGES, THREAD), first=process, correlation=INT_MISSING,
            second=np.where(kind == _STARTED, domain, read["globalTid"] & 0xFFFFFF),
        )  # fmt: skip

    def problems(self) -> Iterator[Problem]:
        """What is missing or wrong."""
        name, tables, read = self._database.name, self._database.tables, dict(self.read)
        for count, severity, what, done in (
            (self._left_out, Severity.ERROR, "Events without a time, or with one out of range.", "They were left out."),
            (self._below, Severity.WARNING, "Events of negative duration.", "They are shown with length 0."),
            (self._open, Severity.NOTE, "NVTX ranges that were not ended.", "They are shown to the recording's end."),
            (read.get(_GRAPHS, 0), Severity.NOTE, "CUDA graphs were recorded as a whole: their kernels are not known.",
             "Record with --cuda-graph-trace=node."),
        ):  # fmt: skip
            if count:
                lost = count if severity is Severity.ERROR else 0
                many = severity is Severity.WARNING and count > FRAGMENTARY * sum(read.values())
                yield Problem(severity, what, done, file=name, count=count, lost=lost, fragmentary=many)
        if self._lacking:
            yield Problem(Severity.NOTE, f"Tables of devices lack columns: {', '.join(sorted(self._lacking))}.",
                          "What depends on them is not known.", name, count=len(self._lacking))  # fmt: skip
        others = [table for table, columns in tables.items()
                  if {"start", "timestamp"} & set(columns) and table not in read and not _OTHERWISE.fullmatch(table)
                  and self._database.rows(table, columns[0], condition="limit 1")]  # fmt: skip
        if others:
            named = ", ".join(map(printable, others[:8])) + (", ..." if len(others) > 8 else "")
            yield Problem(Severity.NOTE, f"Tables that are not shown: {named}.", "Nsight Systems shows them.", name,
                          count=len(others))  # fmt: skip


def _copy_name(kind: int, source: int, target: int) -> str:
    """The name that CUPTI's other users give a copy: Memcpy HtoD (Pageable -> Device)."""
    ends = [_MEMORIES.get(each, "Unknown") for each in (source, target)]
    known = f" ({' -> '.join(ends)})" if set(ends) != {"Unknown"} else ""
    return f"Memcpy {_COPIES.get(kind, '')}".rstrip() + known


def _set_name(kind: int) -> str:
    return f"Memset ({_MEMORIES[kind]})" if kind in _MEMORIES else "Memset"


def are_times(times: I64) -> npt.NDArray[np.bool_]:
    """Mask of the times that are some."""
    return (times > -_LATEST) & (times < _LATEST)


def distinct_rows(*columns: npt.NDArray[Any]) -> tuple[I64, I64]:
    """Of the distinct rows of some columns the first place of each; and its index for each row."""
    places, count = distinct_together(*columns)
    first = np.zeros(count, np.int64)
    first[places[::-1]] = np.arange(len(places))[::-1]
    return first, places


def codes_of_rows(texts: Codes, text_of: Callable[..., str], *columns: I64) -> I64:
    """Codes of texts, each made of the values of some columns."""
    first, inverse = distinct_rows(*columns)
    codes = [texts[text_of(*(int(column[row]) for column in columns))] for row in first.tolist()]
    return np.array(codes, np.int64)[inverse]


class RowArguments(Arguments, frozen=True, eq=False):
    """The rows of tables that events were read from: their columns are the arguments."""

    #: The tables, in the order of their events, with the number of the first event of each.
    tables: Sequence[tuple[int, str]]
    rowid: I64  #: The row of each event in its table

    def of(self, number: int) -> dict[str, Any]:
        """The row of the event of a number, with the texts of names; empty if the file has changed or is unreadable."""
        with contextlib.suppress(OSError, UnreadableError):
            state = self.path.stat()
            if (state.st_size, state.st_mtime_ns) == self.state:
                database = SqliteFile(self.path, self.path.name)
                table = self.tables[bisect_right(self.tables, number, key=lambda each: each[0]) - 1][1]
                columns = database.tables.get(table, ())
                for row in database.rows(table, *columns, condition=f"where rowid = {int(self.rowid[number])}"):
                    return dict(_told(database, zip(columns, row, strict=True)))
        return {}

    def offset_of_number(self, number: int) -> int:
        """None: a row has no offset that would tell anybody anything."""
        return -1


def _told(database: SqliteFile, columns: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for key, value in columns:
        if key.endswith(("Name", "nameId", "extId")) and isinstance(value, int):
            texts = database.rows("StringIds", "value", condition=f"where id = {value}")
            value = texts[0][0] if texts else value
        if value is not None:
            yield key, value.hex() if isinstance(value, bytes) else value
