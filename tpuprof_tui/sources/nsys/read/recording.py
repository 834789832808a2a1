"""Builds a Profile from databases of Nsight Systems, whose processes become traces.

Each process that used a GPU becomes a ``Trace``, the form in which the reader of PyTorch traces hands on what it read:
both profilers record by CUPTI (kernels, copies, calls of CUDA, joined by correlation ids), and ranges of NVTX are to
one what operators are to the other. So lanes, links, waits, steps, views and rules of PyTorch serve as they are.

Schemas differ between versions: of each table the columns that exist are read. Times are ns from the start of the
session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Problem, Profile, Severity
from tpuprof_tui.model.mapped_arrays import MappedArrays
from tpuprof_tui.model.profile import RecordingMode
from tpuprof_tui.model.uniques import distinct, uniques
from tpuprof_tui.sources.chrome.columns import I32, Codes, lookup, printable
from tpuprof_tui.sources.chrome.nesting import CounterSeries, order_of_nesting
from tpuprof_tui.sources.column_cache import read_or_kept
from tpuprof_tui.sources.sqlite import I64, SqliteFile
from tpuprof_tui.sources.torch.categories import DEVICE_WORK, Kind
from tpuprof_tui.sources.torch.read.implausible_times import without_implausible
from tpuprof_tui.sources.torch.read.profile import profile_of
from tpuprof_tui.sources.torch.read.steps import marks_step
from tpuprof_tui.sources.torch.read.trace import Columns, Trace, numeric_sort_key

from ..vocabulary import VOCABULARY
from .events import RANGES, STREAM, EventTables, RowArguments, are_times, codes_of_rows, distinct_rows

#: Names of ranges that are numbered steps, with what they have in common: Iteration 12, train step=3/100.
_STEP: Final = lazy_pattern(
    r"(\D{0,64}?(?:iteration|iter|step|batch))[\s_#:=(\[-]{0,3}(\d{1,9})(?:\s*/\s*\d+)?[)\]]?", re.IGNORECASE
)

#: Number that CUPTI gives a stream that is none.
_NO_STREAM: Final = (1 << 32) - 1
_TAKEN: Final = ("start", "end", "name", "category", "kind", "correlation")
#: Nothing is told of collectives.
_UNTOLD: Final = np.zeros(0, np.int64), np.zeros(0, np.int32)


def read(path: Path, files: Sequence[Path], report: Callable[[str], None]) -> Profile:
    """One profile of all files.

    Args:
        path: The file or folder that was asked for.
        files: Databases of Nsight Systems.
        report: Called with what is read now; an exception that it raises ends the reading.

    Raises:
        UnreadableError: None of the files has events.
    """
    arrays, traces, problems = MappedArrays(), list[Trace](), list[Problem]()
    for file in files:
        try:
            found = read_or_kept([file], partial(_traces_of, file, report))
        except UnreadableError as error:
            if len(files) == 1:
                raise
            problems.append(Problem(Severity.ERROR, str(error), "It is left out.", file=file.name))
            continue
        # of several files the columns are kept outside of memory
        traces += found if len(files) == 1 else map(arrays.with_stored_arrays, found)
        arrays.release_pages()
    if not traces:
        raise UnreadableError(f"{path} holds no database of Nsight Systems that can be read.")
    recording = RecordingMode("a database of Nsight Systems", meaning="Nsight Systems")
    return replace(profile_of(path, traces, problems, arrays), vocabulary=VOCABULARY, recording=recording)


def _traces_of(path: Path, report: Callable[[str], None]) -> list[Trace]:
    """The traces of the processes in a database that used a GPU; of all together if none did.

    Raises:
        UnreadableError: It is damaged, or holds no events.
    """
    database = SqliteFile(path, path.name)
    events = EventTables(database, lambda text: report(f"reading {path.name}: {text}"))
    process, kind = (events.columns.get(key, np.zeros(0, np.int64)) for key in ("process", "kind"))
    if not len(kind):
        raise UnreadableError(f"{path} holds no events.", "Nothing was recorded while the profiler ran.")
    about = Metadata(database, events.text_of)
    state = path.stat()
    first = accumulate((count for _, count in events.read), initial=0)
    tables = [(number, table) for number, (table, _) in zip(first, events.read, strict=False)]
    arguments = RowArguments(path, (state.st_size, state.st_mtime_ns), (), (0,), (), tables, events.columns["rowid"])
    used = uniques(process[np.isin(kind, (*DEVICE_WORK, Kind.CALL))])
    owners = used[used >= 0].tolist()
    traces = []
    for number, owner in enumerate(owners if len(owners) > 1 else [None]):
        # what belongs to none of them is shown with the first
        own = (process == owner) | (~np.isin(process, owners) & (number == 0)) | (owner is None)
        traces.append(without_implausible(_trace(events, np.flatnonzero(own), about, owner, arguments))[0])
    problems = (*events.problems(), *about.problems(), *database.problems)
    traces[0] = replace(traces[0], problems=(*problems, *traces[0].problems))
    return traces


def _trace(events: EventTables, rows: I64, about: Metadata, owner: int | None, arguments: RowArguments) -> Trace:
    """The trace of the events of a process; ``owner``: its global id, None: they are of all together."""
    threads, lane = _lanes(events, rows, about)
    order = order_of_nesting(lane, events.columns["start"][rows], events.columns["end"][rows])
    rows, lane = rows[order], lane[order]
    own = {key: values[rows] for key, values in events.columns.items() if key in _TAKEN}
    every = list(events.names)
    codes, place = distinct(own["name"])
    names, name = tuple(every[code] for code in codes.tolist()), place.astype(np.int32)
    kind, ranges = own["kind"].astype(np.int8), np.isin(own["kind"], (Kind.OPERATOR, Kind.ANNOTATION))
    labels = _step_labels(names, name[ranges], (own["end"] - own["start"])[ranges])
    kind[ranges & np.array([each in labels or marks_step(each) for each in names], np.bool_)[name]] = Kind.ANNOTATION
    work_rows = np.flatnonzero(np.isin(kind, DEVICE_WORK))
    work, texts = _work(events, rows[work_rows], about)
    calls = np.flatnonzero(kind == Kind.CALL)
    calls = calls[np.argsort(own["correlation"][calls], kind="stable")]
    memory = about.memory(owner)
    thread = lookup(own["correlation"][calls], memory.pop("correlation"), lane[calls]).astype(np.int32)
    cards = {threads[number][0] for number in uniques(lane[work_rows]).tolist()}
    counters = [each for each in about.counters if owner is None or each.process in cards]
    zero = min(int(times.min()) for times in (own["start"], memory["time"]) if len(times))
    properties = [each for card, each in about.cards.items() if str(card) in cards or not cards]
    return Trace(
        path=arguments.path, metadata={**about.metadata, "deviceProperties": properties}, threads=threads,
        first=np.searchsorted(lane, np.arange(len(threads) + 1)).astype(np.int64), start=own["start"] - zero,
        end=own["end"] - zero, zero_ns=zero, name=name, names=names, kind=kind,
        category=own["category"].astype(np.int16), categories=tuple(events.categories), texts=texts,
        file_order=rows, correlation=own["correlation"], external=np.full(len(rows), INT_MISSING),
        work_rows=work_rows, work=work, identity_codes=_UNTOLD, identities=(),
        memory={**memory, "time": memory["time"] - zero, "thread": thread},
        flow_processes=frozenset(), counters=tuple(replace(each, times=each.times - zero) for each in counters),
        process_names=about.process_names, thread_names=about.thread_names, arguments=arguments,
        part="" if owner is None else about.process_title(owner), step_labels=labels,
    )  # fmt: skip


def _lanes(events: EventTables, rows: I64, about: Metadata) -> tuple[tuple[tuple[str, str], ...], I64]:
    """Process (on a device its number) and thread of each lane as texts, in order; and the lane of each event."""
    places = [events.columns[key][rows] for key in ("place", "process", "first", "second")]
    first, inverse = distinct_rows(*places)

    def texts(place: int, process: int, one: int, two: int) -> tuple[str, str]:
        if place == STREAM:
            # waits for a context are on no stream
            return _text(about.card(process, one)), _text(two if two != _NO_STREAM else -1)
        return str(pid_of(process)), f"NVTX ranges {two or ''}".rstrip() if place == RANGES else str(two)

    found = [texts(*(int(each[row]) for each in places)) for row in first.tolist()]
    threads = sorted(set(found), key=lambda each: tuple(map(numeric_sort_key, each)))
    number = {each: place for place, each in enumerate(threads)}
    return tuple(threads), np.array([number[each] for each in found], np.int64)[inverse]


def _text(number: int) -> str:
    """The text of a number as the reader of PyTorch has it."""
    return "None" if number == INT_MISSING else str(number)


def _step_labels(names: Sequence[str], name: I32, length: I64) -> dict[str, str]:
    """Numbers of steps by the names of ranges that mark them, of several families that which lasts longest.

    None if there are names that PyTorch or a server marks steps with.
    """
    total = np.bincount(name, length, len(names))
    families: dict[str, dict[str, str]] = {}
    times: dict[str, float] = {}
    for code in np.flatnonzero(total).tolist():
        if match := _STEP.fullmatch(names[code]):
            family = match[1].lower()
            families.setdefault(family, {})[names[code]] = match[2]
            times[family] = times.get(family, 0) + total[code]
    return families[max(times, key=lambda family: times[family])] if times and not any(map(marks_step, names)) else {}


def _work(events: EventTables, rows: I64, about: Metadata) -> tuple[Columns, tuple[str, ...]]:
    """Columns of device work, those of PyTorch's `arguments.WORK`, and the texts of their codes."""
    texts, own = Codes(), {key: values[rows] for key, values in events.work.items()}

    def of(text_of: Callable[..., str], *columns: I64) -> I32:
        return codes_of_rows(texts, text_of, *columns).astype(np.int32)

    grid, block = ([own[f"{key}{axis}"] for axis in "XYZ"] for key in ("grid", "block"))
    is_kernel = grid[0] != INT_MISSING
    shapes = {key: np.where(is_kernel, of(lambda *sizes: f"[{','.join(map(str, sizes))}]", *axes), np.int32(-1))
              for key, axes in (("grid", grid), ("block", block))}  # fmt: skip
    process, device, stream = (events.columns[key][rows] for key in ("process", "first", "second"))
    cards = of(lambda *place: _text(about.card(*place)), process, device)
    numbers = {str(card): properties.get("numSms") for card, properties in about.cards.items()}
    units = np.array([value if type(value := numbers.get(text)) is int and value > 0 else np.nan for text in texts])
    blocks = np.prod(np.stack(grid).astype(np.float64), axis=0) / units[cards]
    shared = own["staticSharedMemory"] + np.maximum(own["dynamicSharedMemory"], 0)
    return {
        "device": cards, "stream": of(_text, stream), **shapes, "registers": of(_text, own["registersPerThread"]),
        "shared_memory": of(str, np.where(is_kernel, shared, -1)), "blocks": np.where(is_kernel, blocks, np.nan),
        "occupancy": np.full(len(rows), np.nan), "bytes": own["bytes"], "graph_node": own["graphNodeId"],
        "collective": np.zeros(len(rows), np.bool_),
    }, tuple(texts)  # fmt: skip


_PROPERTIES: Final = {"name": "name", "totalMemory": "totalGlobalMem", "smCount": "numSms",
                      "threadsPerWarp": "warpSize", "computeMajor": "computeMajor",
                      "computeMinor": "computeMinor"}  # fmt: skip
#: Kinds of memory that are the host's; types of devices as PyTorch numbers them: the host, and a GPU.
_HOST_MEMORY: Final = (0, 1)
_HOST, _GPU = 0, 1
_MOST_TOLD: Final = 20
_LONGEST: Final = 300
_MOST_SERIES: Final = 1000
_MOST_BYTES: Final = 1 << 50


class Metadata:
    """What a database states of processes, threads, cards and memory, beside events.

    Attributes:
        process_names, thread_names: Names by process, and by process and thread, as texts.
        cards: Properties of each card by its number, with the names that PyTorch gives them.
        metadata: What was stated of the recording, and of the machine.
    """

    def __init__(self, database: SqliteFile, text_of: Callable[[int], str]) -> None:
        self._database = database
        rows = database.rows
        self.process_names = {str(pid_of(id_ >> 24)): printable(str(name)).replace("\\", "/").rpartition("/")[2]
                              for id_, name in rows("PROCESSES", "globalPid", "name") if type(id_) is int}  # fmt: skip
        self.thread_names = {(str(pid_of(id_ >> 24)), str(id_ & 0xFFFFFF)): text_of(name)
                             for id_, name in rows("ThreadNames", "globalTid", "nameId")
                             if type(id_) is type(name) is int}  # fmt: skip
        # a process may see some cards only, and numbers them from 0
        self._card_of = {(pid_of(pid if pid < 1 << 24 else pid >> 24), device): card for pid, device, card in
                         rows("TARGET_INFO_CUDA_DEVICE", "pid", "cudaId", "gpuId")
                         if type(pid) is type(device) is type(card) is int}  # fmt: skip
        self.cards = {id_: {"id": id_} | {key: printable(value) if isinstance(value, str) else value for key, value in
                                          zip(_PROPERTIES.values(), values, strict=True) if value is not None}
                      for id_, *values in rows("TARGET_INFO_GPU", "id", *_PROPERTIES) if type(id_) is int}  # fmt: skip
        epochs = [epoch for (epoch,) in rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs") if type(epoch) is int]
        stated = {table: {printable(str(name)): printable(str(value)) for name, value in rows(table, "name", "value")}
                  for table in ("TARGET_INFO_SYSTEM_ENV", "META_DATA_CAPTURE", "META_DATA_EXPORT")}  # fmt: skip
        self.metadata: dict[str, Any] = {
            "baseTimeNanoseconds": epochs[0] if epochs else 0, **stated,
            "host_name": stated["TARGET_INFO_SYSTEM_ENV"].get("Hostname", ""),
        }  # fmt: skip

    def card(self, process: int, device: int) -> int:
        """Number of the card that a process calls a device."""
        return self._card_of.get((pid_of(process), device), device)

    def process_title(self, process: int) -> str:
        """Name and number of a process."""
        number = str(pid_of(process))
        return f"{self.process_names.get(number, '')} {number}".strip()

    def memory(self, process: int | None) -> Columns:
        """Memory instants of a process, None: of all, by time: as in `Trace.memory`, with ``correlation``, no thread.

        What is allocated is their sum. What was there before the recording is not known: freeing it does not count.
        """
        keys = ("globalPid", "deviceId", "memKind", "address", "bytes", "memoryOperationType", "correlationId")
        table = self._database.integers("CUDA_GPU_MEMORY_USAGE_EVENTS", "start", *keys)
        rows = np.flatnonzero(are_times(table["start"]) & ((table["globalPid"] >> 24 == process) | (process is None)))
        rows = rows[np.argsort(table["start"][rows], kind="stable")]
        owner, device, kind, address, size, freed, correlation = (table[key][rows] for key in keys)
        first, place = distinct_rows(owner >> 24, device)
        cards = [self.card(int(owner[row]) >> 24, int(device[row])) for row in first.tolist()]
        device, type_ = np.array(cards, np.int64)[place], np.where(np.isin(kind, _HOST_MEMORY), _HOST, _GPU)
        order = np.lexsort((np.arange(len(rows)), address, place, type_))
        again = (np.diff(np.stack((type_, place, address))[:, order], prepend=-1) == 0).all(axis=0)
        held = again & np.append(False, freed[order] == 0)[:-1]
        change, allocated = np.zeros((2, len(rows)), np.int64)
        size = np.clip(size, 0, _MOST_BYTES)[order]
        change[order] = np.where(freed[order] == 0, size, np.where(held, -size, 0))
        of = distinct_rows(type_, device)[1]
        for number in range(int(of.max(initial=-1)) + 1):
            allocated[of == number] = np.cumsum(change[of == number])
        return {"time": table["start"][rows], "device_id": device, "change": change, "device_type": type_,
                "address": address, "allocated": allocated, "reserved": np.full(len(rows), INT_MISSING),
                "correlation": correlation}  # fmt: skip

    @cached_property
    def counters(self) -> tuple[CounterSeries, ...]:
        """Samples of the metrics of GPUs; the process of each is the number of the card."""
        read = self._database.integers("GPU_METRICS", "timestamp", "typeId", "metricId", "value")
        names = {row[:2]: printable(str(row[2])) for row in
                 self._database.rows("TARGET_INFO_GPU_METRICS", "typeId", "metricId", "metricName")}  # fmt: skip
        first, series = distinct_rows(read["typeId"], read["metricId"])
        order = np.lexsort((read["timestamp"], series))
        order = order[are_times(read["timestamp"][order])]
        edges = np.searchsorted(series[order], np.arange(len(first) + 1)).tolist()
        found = []
        for row, low, high in zip(first[:_MOST_SERIES].tolist(), edges, edges[1:], strict=False):
            type_, metric = int(read["typeId"][row]), int(read["metricId"][row])
            name, own = names.get((type_, metric), f"metric {metric}"), order[low:high]
            found.append(CounterSeries(str(type_ & 0xFF), name, "%" if "%" in name else "", read["timestamp"][own],
                                       read["value"][own].astype(np.float64)))  # fmt: skip
        return tuple(each for each in found if len(each.times))

    def problems(self) -> Iterator[Problem]:
        """What the profiler warned of while it recorded."""
        levels = dict(self._database.rows("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", "id", "label"))
        told = {printable(str(text), _LONGEST) for text, level in
                self._database.rows("DIAGNOSTIC_EVENT", "text", "severity")
                if re.match("warn|err|fatal", str(levels.get(level, "")), re.IGNORECASE)}  # fmt: skip
        for text in sorted(told)[:_MOST_TOLD]:
            yield Problem(Severity.WARNING, f"Nsight Systems warned: {text}", file=self._database.name)


def pid_of(process: int) -> int:
    """Number of a process in its global id."""
    return process & 0xFFFFFF
