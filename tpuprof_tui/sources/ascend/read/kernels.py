"""Kernels: from ``kernel_details.csv``, ``op_summary_*.csv``, a database, else the timeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from math import isnan
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.decimals import one_real
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.lane import LazyColumn, Rows
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.columns import F64, I64, lookup
from tpuprof_tui.sources.chrome.nesting import Nesting

from ..records import ASYNC_NPU, KERNEL_TEXTS
from ..vocabulary import METRICS
from .csv_table import CellType, CsvTable, Texts
from .timeline import AI_CORES, AI_CORES_OF_DATABASE, COMMUNICATION_CORES, SliceClass, Timeline

#: Keys of the known columns of the files; all other columns are metrics.
KEYS: Final = {title: key for key, titles in {
    "step": ("Step Id",), "name": ("Name", "Op Name"), "type": ("Type", "OP Type"),
    "core": ("Accelerator Core", "Task Type"), "blocks": ("Block Dim", "Block Num"),
    "start": ("Start Time(us)", "Task Start Time(us)", "Task Start Time"),
    "duration": ("Duration(us)", "Task Duration(us)"), "wait": ("Wait Time(us)", "Task Wait Time(us)"), **KERNEL_TEXTS,
}.items() for title in titles}  # fmt: skip
START_NAMES: Final = tuple(title for title, key in KEYS.items() if key == "start")
_TIMES: Final = ("start", "duration", "wait")
#: Columns read when a table is opened, and columns that are each read on their own on demand.
_AT_ONCE: Final = (*_TIMES, "name", "type", "core", "step", "blocks", "device", "stream")
_ALONE: Final = ("input_shapes", "op_state")
#: Up to this many rows of a large table are read by offset; for more whole columns are read.
_MOST_BY_OFFSET: Final = 1000
#: Tables of more kernels are large: metrics that are not in ``METRICS`` are read one by one.
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
#: Columns of operators, ns. Of the device: tasks and communication operators that the operator called; total: also
#: those called by operators nested in it; aicore: kernels of AI Cores only.
_OPERATOR_TIMES: Final = (
    "host_self", "host_total", "device_self", "device_total", "device_self_aicore", "device_total_aicore",
)  # fmt: skip
#: Metrics that are read before others: columns of events, and what tells the pipe that binds.
_FIRST: Final = frozenset((*METRICS, *(f"{pipe}_ratio" for pipe in PIPES)))


def no_texts(count: int) -> Texts:
    """A text column of missing values."""
    return Texts(np.full(count, -1, np.int32), ())


class Details:
    """Further columns of kernels: texts by key, metrics by name. What is not in memory is read when asked for.

    Few rows of a large file are read by offset, the last ones kept; else whole columns are read, and kept. What can no
    longer be read is missing.

    Args:
        count: Number of kernels.
        texts: The texts in memory.
        unread: Keys of the texts that are not.
        metrics: Names of the metrics, as in the file.
        read: Reads whole columns by key.
        read_rows: Reads all columns of some rows; None: the file cannot be read by rows.
    """

    def __init__(
        self, count: int, texts: Mapping[str, Texts], unread: Sequence[str] = (), metrics: Sequence[str] = (),
        read: Callable[[Sequence[str]], Mapping[str, Any]] | None = None,
        read_rows: Callable[[I64], Mapping[str, Any]] | None = None,
    ) -> None:  # fmt: skip
        self._count, self._read, self._read_rows = count, read, read_rows
        self.texts, self.metrics = (*texts, *unread), tuple(metrics)
        self._columns: dict[str, Any] = dict(texts)
        self._last: tuple[bytes, Mapping[str, Any]] = b"", {}

    def whole(self, key: str, *, together: bool = False) -> Any:
        """A whole column; all missing if there is none. ``together``: reads all that is unread in one pass."""
        if key not in self._columns and key in (*self.texts, *self.metrics) and self._read is not None:
            kin = [name for name in self.texts if name not in _ALONE] if key in self.texts else [
                name for name in self.metrics if (name in _FIRST) == (key in _FIRST)]  # fmt: skip
            if key in _ALONE or (key in self.metrics and key not in _FIRST and self._is_large):
                kin = [key]
            kin = [*self.texts, *self.metrics] if together else kin
            with suppress(OSError, UnreadableError):
                self._columns |= self._read([name for name in kin if name not in self._columns])
        found = self._columns.get(key)
        return self._missing(key, self._count) if found is None else found

    def take(self, key: str, rows: I64, *, together: bool = False) -> Any:
        """Texts or float64 of some kernels."""
        if key not in self._columns and self._read_rows is not None and self._is_large and len(rows) <= _MOST_BY_OFFSET:
            kept = rows.tobytes()
            if self._last[0] != kept:
                self._last = kept, {}
                with suppress(OSError, UnreadableError):
                    self._last = kept, self._read_rows(rows)
            return self._last[1].get(key, self._missing(key, len(rows)))
        column = self.whole(key, together=together)
        return Texts(column.codes[rows], column.texts) if isinstance(column, Texts) else column[rows]

    @property
    def _is_large(self) -> bool:
        return self._count > _MOST_AT_ONCE and self._read_rows is not None

    def _missing(self, key: str, count: int) -> Any:
        return np.full(count, np.nan) if key in self.metrics else no_texts(count)

    # -- what binds a kernel

    @cached_property
    def pipes(self) -> tuple[str, ...]:
        """The pipes with a known ratio."""
        return tuple(pipe for pipe in PIPES if f"{pipe}_ratio" in self.metrics)

    def bound(self, rows: I64, *, together: bool = False) -> tuple[npt.NDArray[np.int32], F64]:
        """The pipe with the largest ratio of some kernels (-1: all are 0 or unknown), and that ratio."""
        best, best_pipe = np.zeros(len(rows)), np.full(len(rows), -1, np.int32)
        for number, pipe in enumerate(self.pipes):
            values = np.nan_to_num(self.take(f"{pipe}_ratio", rows, together=together), nan=0.0)
            higher = values > best
            best[higher], best_pipe[higher] = values[higher], number
        return best_pipe, np.where(best_pipe >= 0, best, np.nan)


class Kernels(Struct, frozen=True, eq=False, dict=True):
    """Kernels and communication operators in columns of one length, in file order."""

    file: str  #: Name of the file that they come from
    #: name, type, core: Name, OP type and accelerator core.
    name: Texts
    type: Texts
    core: Texts
    #: start, duration, wait: int64 ns, start since 1970; ``INT_MISSING`` if unknown.
    start: I64
    duration: I64
    wait: I64
    #: Further columns: texts ``KERNEL_TEXTS``, ``step`` and ``blocks``, others by their name, and metrics.
    details: Details
    #: Mask of the kernels whose start is not believed; None if there are none.
    unplaced: npt.NDArray[np.bool_] | None = None
    #: Rows of those of them whose start cannot be of the recording.
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


def kernels_of_table(table: CsvTable) -> Kernels:
    """Kernels of a csv file: columns that every view needs are read now, all others on demand."""
    titles: dict[str, str] = {}
    for column in table.columns:
        if column in KEYS:
            titles.setdefault(KEYS[column], column)
    kinds: dict[str, CellType] = {key: "time" if key in _TIMES else "text" for key in titles}
    read = table.read({titles[key]: kinds[key] for key in _AT_ONCE if key in titles})
    unknown = [column for column in table.columns if column not in KEYS]
    texts = _texts_among(table, [column for column in unknown if not _METRIC.fullmatch(column)])
    metrics = [column for column in unknown if column not in texts]
    titles |= {column: column for column in unknown}
    kinds |= {column: "text" if column in texts else "number" for column in unknown}

    def columns(rows: I64 | None, keys: Sequence[str]) -> Mapping[str, Any]:
        wanted = {titles[key]: kinds[key] for key in keys}
        found = table.read(wanted) if rows is None else table.read_rows(rows, wanted)
        return {key: found[titles[key]] for key in keys if titles[key] in found}

    found = {key: read[title] for key, title in titles.items() if title in read}
    name, kind, core = (found.get(key) or no_texts(table.rows) for key in ("name", "type", "core"))
    start, duration = (found.get(key, np.full(table.rows, INT_MISSING)) for key in ("start", "duration"))
    others = [key for key in ("step", "blocks", *KERNEL_TEXTS) if key in titles]
    details = Details(
        table.rows, {key: found[key] for key in others if key in found},
        [*(key for key in others if key not in found), *texts], metrics, lambda keys: columns(None, keys),
        lambda rows: columns(rows, list(titles)),
    )  # fmt: skip
    wait = found["wait"] if "wait" in found else waits(start, duration)
    return Kernels(table.name, name, kind, core, start, duration, wait, details)


def _texts_among(table: CsvTable, columns: Sequence[str]) -> list[str]:
    """Columns of a table that hold text rather than numbers in its first rows."""
    rows = np.arange(min(table.rows, _LOOKED_AT) if columns else 0)
    read = table.read_rows(rows, dict.fromkeys(columns, "text")) if len(rows) else {}
    known = {name: [text for text in column.values() if text is not None] for name, column in read.items()}
    return [name for name, texts in known.items() if 2 * sum(map(isnan, map(one_real, texts))) > len(texts)]


def kernels_of_timeline(timeline: Timeline) -> Kernels:
    """Compute tasks of the streams and communication operators; cores are as coarse as in the timeline."""
    rows = timeline.work
    collective = timeline.slice_class[rows] == SliceClass.COLLECTIVE
    cores = (*timeline.kinds, COMMUNICATION_CORES[0])
    core = np.where(collective, len(timeline.kinds), timeline.kind[rows]).astype(np.int32)
    start, duration = timeline.start[rows], timeline.lengths(rows)
    name = Texts(timeline.name[rows], timeline.names)
    return Kernels(timeline.file if len(rows) else "", name, no_texts(len(rows)), Texts(core, cores), start, duration,
                   waits(start, duration), Details(len(rows), {}))  # fmt: skip


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
    names = np.array([codes.get(text, -1) for text in timeline.names] or [-1], np.int64)[timeline.name[rows]]
    times, many = uniques(kernels.start), len(codes) + 1

    def keys(start: I64, name: I64) -> I64:
        """A number for each time of a kernel and name; -1 for others."""
        place = lookup(times, start)
        return np.where((place >= 0) & (name >= 0), place * many + name, -1)

    keys_of = keys(kernels.start, kernels.name.codes.astype(np.int64))
    order = np.argsort(keys_of, kind="stable")[int((keys_of < 0).sum()) :]
    found = np.full(len(rows), -1, np.int64)
    for shift in (0, -1, 1):
        left = np.flatnonzero((found < 0) & (names >= 0))
        found[left] = lookup(keys_of[order], keys(timeline.start[rows[left]] + shift, names[left]), order)
    return found


# -- times of operators


class OperatorTimes:
    """Times of the operators of a timeline, computed on first use."""

    def __init__(self, timeline: Timeline, kernels: Kernels) -> None:
        self._timeline, self._kernels = timeline, kernels

    def columns(self, rows: slice) -> dict[str, LazyColumn]:
        """The columns of some slices; missing for those that are no operators."""
        return {key: partial(self._take, key, np.arange(rows.start, rows.stop)) for key in _OPERATOR_TIMES}

    def _take(self, key: str, rows: I64, some: Rows) -> I64:
        operator = lookup(self._timeline.operators, rows[some])
        # -1, no operator, selects the appended value
        values = self._values.get(key, np.full(len(self._timeline.operators), INT_MISSING))
        return np.append(values, INT_MISSING)[operator]

    @cached_property
    def _values(self) -> dict[str, I64]:
        """Values of the columns in the order of ``Timeline.operators``; those of AI Cores only if cores are known."""
        timeline, kernels = self._timeline, self._kernels
        rows = timeline.operators
        nesting = Nesting(timeline.start[rows], timeline.end[rows], timeline.track[rows])
        total = timeline.end[rows] - timeline.start[rows]
        flows = timeline.flows
        links = flows.of(ASYNC_NPU)
        links = links[(flows.from_row[links] >= 0) & (flows.to_row[links] >= 0)]
        # a task with several flows counts once
        _, first = np.unique(flows.to_row[links], return_index=True)
        links = links[np.sort(first)]
        task = flows.to_row[links]
        index_of_row = np.full(len(timeline), -1, np.int64)
        index_of_row[rows] = np.arange(len(rows))
        owner = index_of_row[flows.from_row[links]]
        known = owner >= 0

        def of_tasks(kind: str, which: npt.NDArray[np.bool_]) -> None:
            own, finer = np.zeros(len(rows), np.int64), np.zeros(len(rows))
            np.add.at(own, owner[which], timeline.end[task[which]] - timeline.start[task[which]])
            np.add.at(finer, owner[which], timeline.finer[task[which]])
            values[f"device_self{kind}"] = own + np.rint(finer).astype(np.int64)
            values[f"device_total{kind}"] = nesting.total(own) + np.rint(nesting.total(finer)).astype(np.int64)

        values = {"host_self": nesting.without_children(total), "host_total": total}
        of_tasks("", known)
        if kernels.file and (kernels.file != timeline.file or kernels.type.texts):
            cores = AI_CORES_OF_DATABASE if kernels.file.endswith(".db") else AI_CORES
            on_cores = np.append(kernels.core.where(cores.match), False)[rows_of_work(kernels, timeline, task)] & known
            of_tasks("_aicore", on_cores)
        return values
