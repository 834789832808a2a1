"""Kernel tables: from ``kernel_details.csv``, ``op_summary_*.csv``, a database, else the timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING

from ..schema import METRICS
from .categories import COMMUNICATION_CORES, SliceClass
from .csv_table import CsvTable, Kind, Texts
from .timeline import Timeline

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

#: Keys of the known columns of the files; all other columns are metrics.
KEYS: Final = {
    "Step Id": "step", "Device_id": "device", "Model ID": "model", "Model Name": "model_name", "Task ID": "task",
    "Stream ID": "stream", "Infer ID": "infer", "Name": "name", "Op Name": "name", "Type": "type", "OP Type": "type",
    "OP State": "op_state", "Accelerator Core": "core", "Task Type": "core", "Start Time(us)": "start",
    "Task Start Time(us)": "start", "Task Start Time": "start", "Duration(us)": "duration",
    "Task Duration(us)": "duration", "Wait Time(us)": "wait", "Task Wait Time(us)": "wait", "Block Dim": "blocks",
    "Block Num": "blocks", "Mix Block Dim": "mix_blocks", "Mix Block Num": "mix_blocks", "HF32 Eligible": "hf32",
    "Input Shapes": "input_shapes", "Input Data Types": "input_types", "Input Formats": "input_formats",
    "Output Shapes": "output_shapes", "Output Data Types": "output_types", "Output Formats": "output_formats",
    "Context ID": "context",
}  # fmt: skip
START_NAMES: Final = tuple(name for name, key in KEYS.items() if key == "start")
#: Further text columns, in display order.
OTHERS: Final = (
    "model", "model_name", "task", "stream", "infer", "device", "op_state", "mix_blocks", "hf32", "input_shapes",
    "input_types", "input_formats", "output_shapes", "output_types", "output_formats", "context",
)  # fmt: skip
_TIMES: Final = ("start", "duration", "wait")
#: Columns read when a table is opened, and columns that are each read on their own on demand.
_AT_ONCE: Final = (*_TIMES, "name", "type", "core", "step", "blocks", "device", "stream")
_ALONE: Final = ("input_shapes", "op_state")
#: Up to this many rows are read by offset; for more the whole file is read.
_MOST_BY_OFFSET: Final = 1000
#: Up to this many kernels metrics that are not in ``METRICS`` are all read on the first access to one of them.
_MOST_AT_ONCE: Final = 20_000
#: Names of metrics; unknown columns of other names can hold text, which the first rows tell.
_METRIC: Final = lazy_pattern(r"[a-z0-9_]+(\(.*\))?")
_LOOKED_AT: Final = 64
#: Pipes of the cores; the first of equally full ones counts as bound. Without ``aic_``: one core for both.
PIPES: Final = (
    "aic_mac", "aic_scalar", "aic_mte1", "aic_mte2", "aic_mte3", "aic_fixpipe",
    "aiv_vec", "aiv_scalar", "aiv_mte2", "aiv_mte3",
    "mac", "vec", "scalar", "mte1", "mte2", "mte3", "fixpipe",
)  # fmt: skip


def no_texts(count: int) -> Texts:
    """A text column of missing values."""
    return Texts(np.full(count, -1, np.int32), ())


class Kernels(Struct, frozen=True, eq=False, dict=True):
    """Kernels and communication operators in columns of one length, in file order.

    Attributes:
        file: Name of the file that they come from.
        name, type, core: Name, OP type and accelerator core.
        start, duration, wait: int64 ns, start since 1970; ``INT_MISSING`` if unknown.
        others: Further columns by key: ``OTHERS``, ``step`` and ``blocks``; unknown text columns by their own name.
        metrics: Names of the metrics, as in the file.
        load: Reads metrics by name, on demand.
        read_rows: Reads some rows alone, with every column; None if all rows are in memory.
        unplaced: Mask of the kernels whose start is not believed; None if there are none.
        aside: Rows of those of them whose start cannot be of the recording.
    """

    file: str
    name: Texts
    type: Texts
    core: Texts
    start: I64
    duration: I64
    wait: I64
    others: Mapping[str, Texts] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    load: Callable[[Sequence[str]], Mapping[str, F64]] = field(default=lambda names: {})
    read_rows: Callable[[I64], Kernels] | None = None
    unplaced: npt.NDArray[np.bool_] | None = None
    aside: I64 = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def communicates(self) -> npt.NDArray[np.bool_]:
        """Mask of the communication operators."""
        by_core = self.core.where(lambda core: core in COMMUNICATION_CORES)
        # Level0 has no cores: use names
        return np.asarray(by_core | ((self.core.codes < 0) & self.name.where(lambda name: name.startswith("hcom_"))))

    @cached_property
    def timed(self) -> npt.NDArray[np.bool_]:
        """Mask of the kernels with a start and a duration."""
        known = (self.start != INT_MISSING) & (self.duration != INT_MISSING)
        return np.asarray(known if self.unplaced is None else known & ~self.unplaced)

    @cached_property
    def end(self) -> I64:
        """End of each, ns; missing if start or duration is."""
        return np.where(self.timed, self.start + np.maximum(self.duration, 0), INT_MISSING)

    def other(self, key: str) -> Texts:
        """A further column; all missing if the table does not have it."""
        found = self.others.get(key)
        return no_texts(len(self)) if found is None else found

    @cached_property
    def _metrics_read(self) -> dict[str, F64]:
        return {}

    def metric(self, name: str) -> F64:
        """A metric of each kernel; the first access to one of ``METRICS`` reads and caches all of them.

        The same holds for all others, but in a large file these are read one by one.
        """
        if name not in self._metrics_read:
            alone = name not in METRICS and self.read_rows is not None and len(self) > _MOST_AT_ONCE
            wanted = [each for each in self.metrics if each not in self._metrics_read
                      and (each == name if alone else (each in METRICS) == (name in METRICS))]  # fmt: skip
            self._metrics_read.update(self.load(wanted))
        return self._metrics_read[name]

    @cached_property
    def _last(self) -> dict[bytes, Kernels]:
        return {}

    def some(self, rows: I64) -> Kernels | None:
        """Few kernels of a large file, read by offset with all columns, the latest cached; None: read columns whole."""
        if self.read_rows is None or len(self) <= _MOST_AT_ONCE or len(rows) > _MOST_BY_OFFSET:
            return None
        return self._by_offset(self.read_rows, rows)

    def _by_offset(self, read_rows: Callable[[I64], Kernels], rows: I64) -> Kernels:
        key = rows.tobytes()
        if key not in self._last:
            found = read_rows(rows)
            self._last.clear()
            self._last[key] = found
        return self._last[key]

    def metric_of(self, name: str, rows: I64) -> F64:
        """A metric of some kernels."""
        some = self.some(rows) if name not in self._metrics_read else None
        return self.metric(name)[rows] if some is None else some.metric(name)

    def part(self, rows: I64) -> tuple[Kernels, I64]:
        """Kernels that contain some rows, and their indices there: few are read by offset, for many all are."""
        if self.read_rows is None:
            return self, rows
        if len(rows) > _MOST_BY_OFFSET:
            # read all metrics in one pass over the file, instead of one pass for each
            if left := [each for each in self.metrics if each not in self._metrics_read]:
                self._metrics_read.update(self.load(left))
            return self, rows
        return self._by_offset(self.read_rows, rows), np.arange(len(rows))

    @cached_property
    def pipes(self) -> tuple[str, ...]:
        """The pipes with a known ratio."""
        return tuple(pipe for pipe in PIPES if f"{pipe}_ratio" in self.metrics)

    @cached_property
    def bound(self) -> tuple[Texts, F64]:
        """The pipe with the largest ratio of each kernel, and that ratio; missing if all are 0 or unknown."""
        found = {f"{pipe}_ratio": self.metric(f"{pipe}_ratio") for pipe in self.pipes}
        best = np.zeros(len(self))
        best_pipe = np.full(len(self), -1, np.int32)
        for number, pipe in enumerate(self.pipes):
            values = np.nan_to_num(found[f"{pipe}_ratio"], nan=0.0)
            higher = values > best
            best[higher], best_pipe[higher] = values[higher], number
        return Texts(best_pipe, self.pipes), np.where(best_pipe >= 0, best, np.nan)


def kernels_of_table(table: CsvTable) -> Kernels:
    """Kernels of a csv file: columns that every view needs are read now, all others on demand."""
    names: dict[str, str] = {}
    for column in table.columns:
        if column in KEYS:
            names.setdefault(KEYS[column], column)
    kinds: dict[str, Kind] = {names[key]: "time" if key in _TIMES else "text" for key in _AT_ONCE if key in names}
    read = table.read(kinds)
    unknown = [column for column in table.columns if column not in KEYS]
    texts = _texts_among(table, [column for column in unknown if not _METRIC.fullmatch(column)])
    names |= {column: column for column in texts if column not in names}
    metrics = tuple(column for column in unknown if column not in texts)
    all_kinds: dict[str, Kind] = {names[key]: "time" if key in _TIMES else "text" for key in names}
    all_kinds |= dict.fromkeys(metrics, "number")

    def read_rows(rows: I64) -> Kernels:
        try:
            values = table.read_rows(rows, all_kinds)
        except (OSError, UnreadableError):  # the file is gone or has changed: metrics are missing
            values = {name: np.full(len(rows), np.nan) for name in metrics}
        by_key = {key: values[column] for key, column in names.items() if column in values}
        return Kernels(table.name, *columns(by_key, len(rows)), by_key, metrics,
                       lambda wanted: {name: values[name] for name in wanted})  # fmt: skip

    def columns(by_key: Mapping[str, Any], count: int) -> tuple[Texts, Texts, Texts, I64, I64, I64]:
        name, kind, core = (by_key.get(key) or no_texts(count) for key in ("name", "type", "core"))
        start, duration, wait = (by_key.get(key, np.full(count, INT_MISSING)) for key in _TIMES)
        return name, kind, core, start, duration, wait

    found = {key: read[column] for key, column in names.items() if column in read}
    name, kind, core, start, duration, wait = columns(found, table.rows)
    wait = wait if "wait" in found else waits(start, duration)
    return Kernels(table.name, name, kind, core, start, duration, wait, _Others(table, names, found), metrics,
                   lambda wanted: table.read(dict.fromkeys(wanted, "number")), read_rows)  # fmt: skip


def _texts_among(table: CsvTable, columns: Sequence[str]) -> set[str]:
    """Columns of a table that hold text rather than numbers in its first rows."""
    rows = np.arange(min(table.rows, _LOOKED_AT) if columns else 0)
    read = table.read_rows(rows, dict.fromkeys(columns, "text")) if len(rows) else {}
    kinds = {name: [type(each) for each in column.plain_values() if each is not None] for name, column in read.items()}
    return {name for name, found in kinds.items() if 2 * found.count(str) > len(found)}


class _Others(Mapping[str, Texts]):
    """Further columns of a table, read on demand: input_shapes and op_state alone, any other with all unread ones."""

    def __init__(self, table: CsvTable, names: Mapping[str, str], found: Mapping[str, Any]) -> None:
        self._table = table
        known = {key: names[key] for key in ("step", "blocks", *OTHERS) if key in names}
        self._names = known | {key: name for key, name in names.items() if name not in KEYS}
        self._found: dict[str, Texts] = {key: found[key] for key in self._names if key in found}

    def __getitem__(self, key: str) -> Texts:
        name = self._names[key]
        if key not in self._found:
            # shapes are shown on screen; the rest only in details and exports
            wanted = (name,) if key in _ALONE else [
                each for other, each in self._names.items() if other not in self._found
            ]  # fmt: skip
            read = self._table.read(dict.fromkeys(wanted, "text"))
            self._found |= {other: read[each] for other, each in self._names.items() if each in read}
        return self._found[key]

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def kernels_of_timeline(timeline: Timeline) -> Kernels:
    """Compute tasks of the streams and communication operators; cores are as coarse as in the timeline."""
    rows = timeline.work
    collective = timeline.slice_class[rows] == SliceClass.COLLECTIVE
    cores = (*timeline.kinds, COMMUNICATION_CORES[0])
    core = np.where(collective, len(timeline.kinds), timeline.kind[rows]).astype(np.int32)
    start, duration = timeline.start[rows], timeline.lengths(rows)
    return Kernels(timeline.file, Texts(timeline.name[rows], timeline.names), no_texts(len(rows)), Texts(core, cores),
                   start, duration, waits(start, duration))  # fmt: skip


def waits(start: I64, duration: I64) -> I64:
    """Wait of each kernel in ns: start - end of the one that started before it, at least 0; missing if unknown."""
    timed = np.flatnonzero((start != INT_MISSING) & (duration != INT_MISSING))
    order = timed[np.argsort(start[timed], kind="stable")]
    found = np.full(len(start), INT_MISSING)
    if len(order):
        found[order[0]] = 0
        found[order[1:]] = np.maximum(start[order[1:]] - start[order[:-1]] - duration[order[:-1]], 0)
    return found


def rows_of_work(kernels: Kernels, timeline: Timeline, rows: I64) -> I64:
    """Index of the kernel that each slice in ``rows`` is, of the same name and start; -1 if none.

    Starts may differ by 1 ns: for communication operators csv files truncate them to ns, the timeline rounds.
    """
    codes = {text: code for code, text in enumerate(kernels.name.texts)}
    name_of = np.array([codes.get(text, -2) for text in timeline.names] or [-2], np.int64)
    order = np.lexsort((kernels.name.codes, kernels.start))
    start, name = kernels.start[order], kernels.name.codes[order].astype(np.int64)
    found = np.full(len(rows), -1, np.int64)
    if not len(order):
        return found
    wanted = name_of[timeline.name[rows]]
    for shift in (0, -1, 1):
        left = np.flatnonzero((found < 0) & (wanted >= 0))
        time = timeline.start[rows[left]] + shift
        index = np.searchsorted(start, time)
        # among kernels with equal start, sorted by name, advance to the wanted name
        for _ in range(4):
            inside = index < len(start)
            later = np.zeros(len(index), np.bool_)
            later[inside] = (start[index[inside]] == time[inside]) & (name[index[inside]] < wanted[left[inside]])
            if not later.any():
                break
            index = index + later
        inside = index < len(start)
        hit = np.flatnonzero(inside)
        hit = hit[(start[index[hit]] == time[hit]) & (name[index[hit]] == wanted[left[hit]])]
        found[left[hit]] = order[index[hit]]
    return found
