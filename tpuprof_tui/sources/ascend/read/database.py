"""Reads databases of torch_npu and msprof: tables as columns, the timeline and the kernels.

What MindStudio Insight adds to a file that it opened (OVERLAP_ANALYSIS, connectionCats, ``waitNs``, ``depth``) is
ignored, as a fresh export does not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.formats.decimals import reals, wholes
from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.sources.chrome.columns import F64, lookup
from tpuprof_tui.sources.chrome.nesting import CounterSeries
from tpuprof_tui.sources.sqlite import SqliteFile

from ..records import ASYNC_NPU, HOST_TO_DEVICE, PYTHON_GC, STEP
from .csv_table import NOTHING, Texts, texts_of
from .kernels import Details, Kernels, waits
from .timeline import COMMUNICATION_CORES, Flows, Layer, SliceClass, Timeline, Track, class_of_task, timeline_of

_LONGEST_NAME: Final = 1 << 16
#: Values of type in PYTORCH_API: operator, task queue, Python frame, user mark.
_OPERATOR, _QUEUE, _FRAME, _MARK = 50001, 50002, 50003, 50004
_CATEGORIES: Final = {_OPERATOR: "cpu_op", _QUEUE: "queue", _FRAME: "python_function", _MARK: "mstx"}
#: ``contextId`` of a task that is no subtask of another.
_NO_CONTEXT: Final = (1 << 32) - 1
_MEGA: Final = 1 << 20
#: Metrics that have another name in csv files.
_RENAMED: Final = {"aic_total_time": "aicore_time", "aiv_total_time": "aiv_time"}


class Database(SqliteFile):
    """An open database, without a path one that has no tables; of tables with devices, the rows of one if given."""

    def __init__(self, path: Path | None = None, name: str = "", device: int = -1) -> None:
        super().__init__(path, name)
        self.device = device

    def rows(self, table: str, *columns: str, condition: str = "") -> list[tuple[Any, ...]]:
        """Rows of a table; only those of ``device`` if one was given."""
        return super().rows(table, *columns, condition=condition or self._condition(table))

    def _condition(self, table: str) -> str:
        """The rows of the one device; communication operators are those of its tasks."""
        if self.device < 0:
            return ""
        if self.has(table, "deviceId"):
            return f"where deviceId = {self.device}"
        tasks = "COMMUNICATION_TASK_INFO"
        if table == "COMMUNICATION_OP" and self.has(table, "opId") and self.has(tasks, "opId", "globalTaskId"):
            return (f"where opId in (select opId from {tasks} join TASK using (globalTaskId)"
                    f" where deviceId = {self.device})")  # fmt: skip
        return ""

    def columns(self, table: str, *columns: str) -> list[list[Any]]:
        """Columns of a table."""
        rows = self.rows(table, *columns)
        return [list(each) for each in zip(*rows, strict=True)] if rows else [[] for _ in columns]

    @cached_property
    def strings(self) -> dict[Any, str]:
        """STRING_IDS: the texts that other tables refer to by id."""
        return {id_: utf8_text(str(value)[:_LONGEST_NAME]) for id_, value in self.rows("STRING_IDS", "id", "value")}

    @cached_property
    def _texts(self) -> dict[Any, str | None]:
        return {id_: None if text in NOTHING else text for id_, text in self.strings.items()}

    def texts(self, ids: Iterable[Any]) -> Texts:
        """A text column from ids into STRING_IDS."""
        return texts_of(map(self._texts.get, ids))


def kernels_of_database(database: Database) -> Kernels:
    """Kernels from COMPUTE_TASK_INFO joined with TASK, and from COMMUNICATION_OP, by start."""
    shapes = {"input_shapes": "inputShapes", "input_types": "inputDataTypes", "input_formats": "inputFormats",
              "output_shapes": "outputShapes", "output_types": "outputDataTypes",
              "output_formats": "outputFormats"}  # fmt: skip
    tasks = {row[0]: row[1:] for row in database.rows(
        "TASK", "globalTaskId", "startNs", "endNs", "deviceId", "streamId", "taskId", "modelId")}  # fmt: skip
    rows = [(*tasks[row[0]], *row) for row in database.rows(
        "COMPUTE_TASK_INFO", "globalTaskId", "name", "opType", "taskType", "blockDim", "mixBlockDim", *shapes.values()
    ) if row[0] in tasks]  # fmt: skip
    nothing = (None,) * 5
    rows += [
        (start, end, *nothing, name, kind, None, None, None, *(None for _ in shapes))
        for start, end, name, kind in database.rows("COMMUNICATION_OP", "startNs", "endNs", "opName", "opType")
    ]
    start = wholes([row[0] for row in rows])
    order = np.argsort(start, kind="stable")
    columns = list(zip(*(rows[row] for row in order.tolist()), strict=True)) or [()] * (12 + len(shapes))

    name, kind, core = map(database.texts, columns[7:10])
    others = {key: database.texts(column) for key, column in zip(shapes, columns[12:], strict=True)}
    others |= {key: texts_of(None if value is None else str(value) for value in columns[index]) for key, index in (
        ("blocks", 10), ("mix_blocks", 11), ("device", 2), ("stream", 3), ("task", 4), ("model", 5))}  # fmt: skip
    start = start[order]
    end = wholes(columns[1])
    duration = np.where((start == INT_MISSING) | (end == INT_MISSING), INT_MISSING, end - start)
    comm = np.array([id_ is None for id_ in columns[6]], np.bool_)
    core = Texts(np.where(comm, len(core.texts), core.codes).astype(np.int32), (*core.texts, COMMUNICATION_CORES[0]))
    known = {key: column for key, column in others.items() if (column.codes >= 0).any()}
    metrics = _metrics(database)
    read = partial(_read_metrics, database, metrics, columns[6])
    details = Details(len(rows), known, metrics=tuple(metrics), read=read)
    return Kernels(database.name, name, kind, core, start, duration, waits(start, duration), details)


def _metrics(database: Database) -> dict[str, Any]:
    """Ids of the metrics of TASK_PMU_INFO by their names in csv files, where times are us."""
    found = {}
    for id_ in dict.fromkeys(row[0] for row in database.rows("TASK_PMU_INFO", "name")):
        name = database.strings.get(id_, "")
        name = _RENAMED.get(name, name)
        found[f"{name}(us)" if name.endswith("_time") else name] = id_
    found.pop("", None)
    return found


def _read_metrics(
    database: Database, ids: Mapping[str, Any], tasks: Sequence[Any], wanted: Sequence[str]
) -> Mapping[str, F64]:  # fmt: skip
    found = {name: np.full(len(tasks), np.nan) for name in wanted}
    into = {ids[name]: (found[name], 1000 if name.endswith("(us)") else 1) for name in wanted}
    rows = {task: row for row, task in enumerate(tasks)}
    for task, name, value in database.rows("TASK_PMU_INFO", "globalTaskId", "name", "value"):
        if name in into and task in rows and isinstance(value, (int, float)):
            column, divisor = into[name]
            column[rows[task]] = value / divisor
    return found


# -- timeline


#: Start, end, connection id, track, name, kind, class, and shapes of a slice.
_Slice = tuple[Any, Any, Any, Track, str, str, SliceClass, "str | None"]


def timeline_of_database(database: Database) -> Timeline:
    """The slices of TASK, COMMUNICATION_OP, CANN_API and PYTORCH_API; of no file if the database has none of these."""
    tells = not {"TASK", "COMMUNICATION_OP", "CANN_API", "PYTORCH_API"}.isdisjoint(database.tables)
    found = [*_task_slices(database), *_other_slices(database)]
    starts, ends, ids, tracks, names, kinds, classes, texts = zip(*found, strict=True) if found else [()] * 8
    # columns of integers alone are converted at once
    start, end, connection = map(wholes, (starts, ends, [INT_MISSING if id_ is None else id_ for id_ in ids]))
    sound = (start != INT_MISSING) & (end != INT_MISSING) & (np.abs(start) < 1 << 61) & (np.abs(end) < 1 << 61)
    negative = np.flatnonzero(sound & (end < start))
    for count, severity, what, done in (
        (int((~sound).sum()), Severity.ERROR, "Rows without a time.", "They were left out."),
        (len(negative), Severity.WARNING, "Rows of negative duration.",
         "They are shown with length 0 and count in no average."),
    ):  # fmt: skip
        if count:
            database.problems.append(Problem(severity, what, done, database.name, count=count))
    track, name, kind, shapes = map(texts_of, (tracks, names, kinds, texts))
    columns: dict[str, Any] = {
        "start": start, "end": np.maximum(start, end), "name": name.codes, "kind": kind.codes,
        "slice_class": np.array(classes, np.int8), "file_order": np.arange(len(found)), "connection": connection,
        "size": np.full(len(found), INT_MISSING), "finer": np.zeros(len(found), np.float32), "shapes": shapes.codes,
        "stacks": np.full(len(found), -1, np.int32),
    }  # fmt: skip
    every: Sequence[Any] = track.texts
    timeline, _ = timeline_of(
        database.name if tells else "", every, [(each.process, each.number, each.label) for each in every],
        track.codes[sound].astype(np.int64), {key: values[sound] for key, values in columns.items()},
        names=name.texts, kinds=kind.texts, texts=shapes.texts, unmeasured=negative,
        counters=tuple(_counter_series(database)) if tells else (),
    )  # fmt: skip
    return replace(timeline, flows=_flows(database, timeline))


def _task_slices(database: Database) -> Iterator[_Slice]:
    strings, stream_of = database.strings, cache(_stream)
    compute = {row[0]: row[1:] for row in database.rows("COMPUTE_TASK_INFO", "globalTaskId", "name", "taskType")}
    rows = database.rows("TASK", "startNs", "endNs", "connectionId", "streamId", "deviceId", "taskType", "globalTaskId",
                         "taskId", "contextId")  # fmt: skip
    # the parent of FFTS+ subtasks has a kernel's task type, but is no kernel
    parents = {(row[2], *row[3:5], row[7]) for row in rows if row[8] not in (None, _NO_CONTEXT)}
    for start, end, connection, stream, device, kind, id_, number, context in rows:
        info = compute.get(id_)
        text = strings.get(kind if info is None else info[1], "")
        found = class_of_task(text) if info is None else SliceClass.KERNEL
        if info is None and found == SliceClass.KERNEL:
            is_parent = context == _NO_CONTEXT and (connection, stream, device, number) in parents
            found = SliceClass.PARENT if is_parent else SliceClass.SYNC
        name = text if info is None else strings.get(info[0], "")
        yield start, end, connection, stream_of(stream, device), name, text, found, None


def _other_slices(database: Database) -> Iterator[_Slice]:
    times, text_of, thread_of = ("startNs", "endNs", "connectionId"), database.strings.get, cache(_thread)
    groups: dict[Any, Track] = {}
    for start, end, id_, group, name, kind in database.rows(
        "COMMUNICATION_OP", *times, "groupName", "opName", "opType"
    ):  # fmt: skip
        number = len(groups)
        own = Track(Layer.COMMUNICATION, "Communication", f"Group {number} Communication", number)
        track = groups.setdefault(group, own)
        yield start, end, id_, track, text_of(name, ""), text_of(kind, ""), SliceClass.COLLECTIVE, None
    for start, end, thread in database.rows("GC_RECORD", "startNs", "endNs", "globalTid"):
        yield start, end, None, thread_of(Layer.OTHER, PYTHON_GC, thread), "GC", "", SliceClass.HOST, None
    levels = dict(database.rows("ENUM_API_TYPE", "id", "name"))
    for start, end, id_, thread, name, kind in database.rows("CANN_API", *times, "globalTid", "name", "type"):
        track = thread_of(Layer.CANN, "CANN", thread)
        yield start, end, id_, track, text_of(name, ""), levels.get(kind, ""), SliceClass.CALL, None
    for start, end, id_, thread, name, kind, shapes in database.rows(
        "PYTORCH_API", *times, "globalTid", "name", "type", "inputShapes"
    ):  # fmt: skip
        text = text_of(name, "")
        found = SliceClass.OPERATOR if kind == _OPERATOR else SliceClass.HOST
        found = SliceClass.STEP if text.startswith(STEP) else found
        track = thread_of(Layer.PYTHON, "Python", thread)
        yield start, end, id_, track, text, _CATEGORIES.get(kind, ""), found, text_of(shapes) or None


def _stream(stream: Any, device: Any) -> Track:
    number = stream if isinstance(stream, int) else -1
    return Track(Layer.STREAM, "Ascend Hardware", f"Stream {number}", min(number, 1 << 31),
                 device if isinstance(device, int) else -1)  # fmt: skip


def _thread(layer: Layer, process: str, thread: Any) -> Track:
    number = thread & 0xFFFFFFFF if isinstance(thread, int) else -1
    return Track(layer, process, f"Thread {number}", min(number, 1 << 31))


def _flows(database: Database, timeline: Timeline) -> Flows:
    """Links by connection id: from the innermost operator and the earliest call with it, to kernels and collectives."""
    start, end, connection = timeline.start, timeline.end, timeline.connection
    work, calls, operators = (
        rows[connection[rows] != INT_MISSING] for rows in (
            timeline.rows(SliceClass.KERNEL, SliceClass.COLLECTIVE), timeline.rows(SliceClass.CALL),
            timeline.operators))  # fmt: skip
    work = work[np.argsort(timeline.file_order[work], kind="stable")]
    calls = calls[np.lexsort((timeline.file_order[calls], start[calls], connection[calls]))]
    launch = lookup(connection[calls], connection[work], calls)
    lists: dict[Any, list[Any]] = {}
    for id_, real_id in database.rows("CONNECTION_IDS", "id", "connectionId"):
        lists.setdefault(id_, []).append(real_id)
    linked = [(real_id, row) for row, id_ in zip(operators.tolist(), connection[operators].tolist(), strict=True)
              for real_id in lists.get(id_, ())]  # fmt: skip
    ids, owner = wholes([real_id for real_id, _ in linked]), np.array([row for _, row in linked], np.int64)
    # of several operators with an id the innermost
    order = np.lexsort((end[owner], -start[owner], ids))
    called = lookup(ids[order], connection[work], owner[order])
    from_row = np.concatenate([called[called >= 0], launch[launch >= 0]])
    to_row = np.concatenate([work[called >= 0], work[launch >= 0]])
    category = (np.arange(len(from_row)) >= (called >= 0).sum()).astype(np.int8)
    return Flows((ASYNC_NPU, HOST_TO_DEVICE), category, start[from_row], start[to_row], from_row, to_row)


def _counter_series(database: Database) -> Iterator[CounterSeries]:
    def text(id_: Any) -> str:
        return database.strings.get(id_, "").capitalize()

    def of_memory(part: str, kind: Any) -> str:
        return f"{'APP' if database.strings.get(kind) == 'app' else text(kind)}/{part.upper()}"

    #: Process, unit and scale; table, column of values, and columns of which the name is made.
    counters: list[tuple[str, str, float, str, str, tuple[str, ...], Callable[..., str]]] = [
        ("AI Core Freq", "MHz", 1, "AICORE_FREQ", "freq", (), lambda: "AI Core Freq"),
        ("HBM", "MB/s", _MEGA, "HBM", "bandwidth", ("hbmId", "type"), lambda number, how: f"HBM {number}/{text(how)}"),
        ("LLC", "%", 1, "LLC", "hitRate", ("llcId", "mode"), lambda number, how: f"LLC {number} {text(how)}/Hit Rate"),
        ("LLC", "MB/s", _MEGA, "LLC", "throughput", ("llcId", "mode"),
         lambda number, how: f"LLC {number} {text(how)}/Throughput"),
        *(("NPU MEM", "KB", 1024, "NPU_MEM", part, ("type",), partial(of_memory, part))
          for part in memory_columns(database)),
    ]  # fmt: skip
    for process, unit, scale, table, column, keys, name in counters:
        rows = database.rows(table, "timestampNs", column, *keys)
        names = texts_of(name(*row[2:]) for row in rows)
        time, value = wholes([row[0] for row in rows]), reals([row[1] for row in rows]) / scale
        known = (time != INT_MISSING) & ~np.isnan(value)
        for code, label in enumerate(names.texts):
            chosen = np.flatnonzero((names.codes == code) & known)
            chosen = chosen[np.argsort(time[chosen], kind="stable")]
            if len(chosen):
                yield CounterSeries(process, label, unit, time[chosen], value[chosen])


def memory_columns(database: Database) -> list[str]:
    """The columns of NPU_MEM that hold bytes, one for each kind of memory."""
    return [each for each in database.tables.get("NPU_MEM", ()) if each not in ("type", "timestampNs", "deviceId")]
