"""Kernels view: every kernel with its metrics and bounding pipe; sums by core, type and name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.table import Table as Records
from tpuprof_tui.views.answer import Answer, Column, Fact, LazyValues, Table

from ..recorded import KERNEL_NUMBERS, KERNEL_TEXTS, METRICS, RecordedRank
from .ranks import by_texts, frame_of, lacks, moment, moment_fact, per_rank, plain, selected_rows

I64 = npt.NDArray[np.int64]
#: Further columns that are shown by default.
_SEEN: Final = ("input_shapes",)
#: Rows read at a time; two pages are still fewer than the limit for reading by offset.
_PAGE: Final = 256
#: Most kernels for which sums by shape are computed: reading the shapes of more takes longer than the rest of the view.
_SUMMED_BY_SHAPES: Final = 200_000
NO_METRICS: Final = "profiler_level=Level1 with aic_metrics=PipeUtilization, or msprof --ai-core=on"
#: Columns that kernels are grouped by; Enter filters events by them.
_NAME, _TYPE, _CORE = (Column("name", "Name", narrows="name"), Column("type", "Type", narrows="type"),
                       Column("core", "Accelerator Core", narrows="accelerator"))  # fmt: skip


@per_rank
def kernels(query: Query, rank: RecordedRank) -> Answer:
    """The kernels view of one rank."""
    table = query.profile.table("kernels", rank.group)
    if table is None:
        return Answer(missing=(lacks("kernels", "There are no kernels here.", "kernel_details.csv, op_summary or a "
                                     "timeline", "activities with NPU, or msprof --task-time=on"),))  # fmt: skip
    rows = selected_rows(query, table)
    frame = frame_of(table, ("name", "type", "core", "duration"), rows)
    duration = frame["duration"]
    order = rows[np.lexsort((table["start"][rows], -np.where(duration == INT_MISSING, -1, duration)))]
    tables = [_every(table, rank, order)]
    tables += [by_texts(f"by_{head.key}", f"By {head.title.lower()}", (head,), frame)
               for head in (_CORE, _TYPE, _NAME) if len(table.texts[head.key])]  # fmt: skip
    missing, types = [], table.texts["type"]
    if "input_shapes" in table and types:
        if len(rows) > _SUMMED_BY_SHAPES:
            missing.append(lacks("by_type_shapes", f"Of more than {_SUMMED_BY_SHAPES:,} kernels, there are no sums by "
                                 "input shapes.", "fewer kernels", "--step or --range, for fewer of them"))  # fmt: skip
        else:
            shapes = frame_of(table, ("type", "input_shapes", "duration"), rows)
            tables.append(by_texts("by_type_shapes", "By type and input shapes",
                                   (_TYPE, Column("input_shapes", "Input Shapes")), shapes))  # fmt: skip
    if not any(column.group == METRICS for column in table.schema):
        missing.append(lacks("metrics", "There are no AI Core metrics.", "AI Core metrics", NO_METRICS))
    if not types:
        message, needs = "The types of the kernels are not known.", "operator types (Level1)"
        if table.file == rank.timeline:
            message, needs = (
                "The timeline alone has no operator types and only coarse cores.",
                "kernel_details.csv or op_summary",
            )
        missing.append(lacks("by_type", message, needs,
                             "export text with profiler_level=Level1, or msprof --task-time=l1"))  # fmt: skip
    return Answer(_facts(table, rank, rows), tuple(tables), missing=tuple(missing), source=table.file,
                  notes=("Bound: the pipe with the largest ratio; below 60% no pipe is full: latency, synchronisation "
                         "or too few blocks.",) if table.texts["bound"] else ())  # fmt: skip


def _facts(table: Records, rank: RecordedRank, rows: I64) -> tuple[Fact, ...]:
    timed = rows[table["timed"][rows]]
    start, end = table["start"][timed], table["end"][timed]
    first, last = (int(start.min()), int(end.max())) if len(timed) else (None, None)
    busy = Intervals.union(start, end).total if len(timed) or not len(rows) else None
    return (
        Fact("kernels", "Kernels", len(rows)),
        Fact("total_us", "Their time", _sum(table["duration"][rows]), "duration"),
        Fact("busy_us", "Busy", busy, "duration"), Fact("wait_us", "Wait", _sum(table["wait"][rows]), "duration"),
        moment_fact(rank, "first_start_us", "First start", first), moment_fact(rank, "last_end_us", "Last end", last),
    )  # fmt: skip


def _sum(lengths: I64) -> int | None:
    known = lengths != INT_MISSING
    return int(lengths.sum(where=known)) if known.any() or not len(known) else None


def _every(table: Records, rank: RecordedRank, rows: I64) -> Table:
    def lazy(values: Callable[[I64], Any]) -> LazyValues:
        """A column that is read by offset: the screen asks for one row at a time, so whole pages are read."""
        read = lru_cache(maxsize=2)(lambda first, last: values(rows[first:last]))

        def take(some: slice) -> Any:
            if some.stop - some.start > _PAGE:
                return values(rows[some])
            first = some.start - some.start % _PAGE
            return read(first, max(some.stop, first + _PAGE))[some.start - first : some.stop - first]

        return LazyValues(len(rows), take)

    def texts(key: str, convert: Callable[[Any], Any] = list) -> LazyValues:
        return lazy(lambda some: convert(table.values(key, some)))

    def in_memory(key: str, convert: Callable[[Sequence[str]], Sequence[Any]] = tuple) -> LazyValues:
        values = (*convert(tuple(table.texts[key])), None)
        return LazyValues(len(rows), lambda some: [values[code] for code in table.take(key, rows[some]).tolist()])

    columns: list[tuple[Column, Any]] = [
        (Column("step", "Step", spare=3), in_memory("step", plain)), (Column("name", "Name"), in_memory("name")),
        (Column("type", "Type", spare=2), in_memory("type")),
        (Column("core", "Accelerator Core", spare=1), in_memory("core")),
        (moment(rank, "start_us", "Start Time", spare=5), table["start"][rows]),
        (Column("duration_us", "Duration", "duration", bar=True), table["duration"][rows]),
        (Column("wait_us", "Wait Time", "duration", spare=4), table["wait"][rows]),
        (Column("blocks", "Block Dim", "count", spare=6), in_memory("blocks", plain)),
        (Column("bound", "Bound", level="bound_ratio"), texts("bound")),
        (Column("bound_ratio", "Ratio", "share"), lazy(partial(table.take, "bound_ratio"))),
    ]  # fmt: skip
    for key, (title, *_) in KERNEL_TEXTS.items():
        if key in table:
            head = Column(key, title, spare=20, shown=key in _SEEN)
            columns.append((head, texts(key, plain if key in KERNEL_NUMBERS else list)))
    for column in table.schema:
        # unknown columns have the names of the file
        kind = "number" if column.group == METRICS else "text"
        head = Column(column.title, column.title, kind, spare=30, shown=False)  # type: ignore[arg-type]
        columns.append((head, texts(column.key, list if column.group == METRICS else plain)))
    return Table("kernels", "Kernels", tuple(head for head, _ in columns), tuple(values for _, values in columns),
                 word="kernel")  # fmt: skip
