"""What a database of Nsight Systems says of its session: cards, processes, threads, memory, metrics, diagnostics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np

from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.sources.chrome.columns import printable
from tpuprof_tui.sources.chrome.slices import CounterSeries
from tpuprof_tui.sources.sqlite import SqliteFile
from tpuprof_tui.sources.torch.read.trace import Columns

from .events import combined, timely

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


class Session:
    """The session of a database.

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
        rows = np.flatnonzero(timely(table["start"]) & ((table["globalPid"] >> 24 == process) | (process is None)))
        rows = rows[np.argsort(table["start"][rows], kind="stable")]
        owner, device, kind, address, size, freed, correlation = (table[key][rows] for key in keys)
        first, place = combined(owner >> 24, device)
        cards = [self.card(int(owner[row]) >> 24, int(device[row])) for row in first.tolist()]
        device, type_ = np.array(cards, np.int64)[place], np.where(np.isin(kind, _HOST_MEMORY), _HOST, _GPU)
        order = np.lexsort((np.arange(len(rows)), address, place, type_))
        again = (np.diff(np.stack((type_, place, address))[:, order], prepend=-1) == 0).all(axis=0)
        held = again & np.append(False, freed[order] == 0)[:-1]
        change, allocated = np.zeros((2, len(rows)), np.int64)
        size = np.clip(size, 0, _MOST_BYTES)[order]
        change[order] = np.where(freed[order] == 0, size, np.where(held, -size, 0))
        of = combined(type_, device)[1]
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
        first, series = combined(read["typeId"], read["metricId"])
        order = np.lexsort((read["timestamp"], series))
        order = order[timely(read["timestamp"][order])]
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
