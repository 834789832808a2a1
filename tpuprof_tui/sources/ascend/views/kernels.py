"""Every kernel with its metrics and the pipe that binds it, and sums by core, type and name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Fact, Later, Table
from tpuprof_tui.views.query import Query

from ..read.coverage import union
from ..read.csv_table import Texts
from ..read.kernels import OTHERS, Kernels
from .tables import Asked, by_texts, lacks, of_workers

I64 = npt.NDArray[np.int64]
_TITLES: Final = {
    "model": "Model ID", "model_name": "Model Name", "task": "Task ID", "stream": "Stream ID", "infer": "Infer ID",
    "device": "Device_id", "op_state": "OP State", "mix_blocks": "Mix Block Dim", "hf32": "HF32 Eligible",
    "input_shapes": "Input Shapes", "input_types": "Input Data Types", "input_formats": "Input Formats",
    "output_shapes": "Output Shapes", "output_types": "Output Data Types", "output_formats": "Output Formats",
    "context": "Context ID",
}  # fmt: skip
#: Columns that people see without asking for all.
_SEEN: Final = ("input_shapes",)
NO_METRICS: Final = "profiler_level=Level1 with aic_metrics=PipeUtilization, or msprof --ai-core=on"


def kernels(query: Query) -> Answer:
    """The view."""
    return of_workers(query, _kernels)


def _kernels(asked: Asked) -> Answer:
    found = asked.run.kernels
    if found is None:
        return Answer(missing=(lacks("kernels", "There are no kernels here.", "kernel_details.csv, op_summary or a "
                                     "timeline", "activities with NPU, or msprof --task-time=on"),))  # fmt: skip
    rows = asked.kernels_asked(found)
    duration = found.duration[rows]
    order = rows[np.lexsort((found.start[rows], -np.where(duration == INT_MISSING, -1, duration)))]
    tables = [_every(asked, found, order)]
    for key, title, texts in (("core", "Accelerator Core", found.core), ("type", "Type", found.type),
                              ("name", "Name", found.name)):  # fmt: skip
        if texts.texts:
            part = Texts(texts.codes[rows], texts.texts)
            tables.append(by_texts(f"by_{key}", f"By {title.lower()}", ((key, title, part),), duration))
    missing = []
    if not found.metrics:
        missing.append(lacks("metrics", "There are no AI Core metrics.", "AI Core metrics", NO_METRICS))
    if asked.run.timeline is not None and found.file == asked.run.timeline.file and not found.type.texts:
        missing.append(lacks("by_type", "The timeline alone tells no operator types, and cores coarsely.",
                             "kernel_details.csv or op_summary",
                             "export text with profiler_level=Level1, or msprof --task-time=l1"))  # fmt: skip
    return Answer(_facts(asked, found, rows), tuple(tables), missing=tuple(missing), source=found.file,
                  notes=("Bound: the pipe with the largest ratio; below 60% no pipe is full: latency, synchronisation "
                         "or too few blocks.",) if found.pipes else ())  # fmt: skip


def _facts(asked: Asked, found: Kernels, rows: I64) -> tuple[Fact, ...]:
    timed = rows[found.timed[rows]]
    busy = union(found.start[timed], found.end[timed])
    wait = found.wait[rows]
    known = found.duration[rows]
    first = int(found.start[timed].min()) if len(timed) else None
    last = int(found.end[timed].max()) if len(timed) else None
    return (
        Fact("kernels", "Kernels", len(rows)),
        Fact("total_us", "Their time", int(known[known != INT_MISSING].sum()), "duration"),
        Fact("busy_us", "Busy", busy.total, "duration"),
        Fact("wait_us", "Wait", int(wait[wait != INT_MISSING].sum()), "duration"),
        asked.moment_fact("first_start_us", "First start", first),
        asked.moment_fact("last_end_us", "Last end", last),
    )


def _every(asked: Asked, found: Kernels, rows: I64) -> Table:
    count = len(rows)

    def texts(column: Callable[[], Texts], *, plain: bool = False) -> Later:
        return Later(count, lambda some: (column().plain_values if plain else column().values)(rows[some]))

    def numbers(column: Callable[[], npt.NDArray[Any]]) -> Later:
        return Later(count, lambda some: column()[rows[some]])

    columns: list[tuple[Column, Any]] = [
        (Column("step", "Step", spare=3), texts(lambda: found.other("step"), plain=True)),
        (Column("name", "Name"), texts(lambda: found.name)),
        (Column("type", "Type", spare=2), texts(lambda: found.type)),
        (Column("core", "Accelerator Core", spare=1), texts(lambda: found.core)),
        (asked.moment("start_us", "Start Time", spare=5), asked.moments(found.start[rows])),
        (Column("duration_us", "Duration", "duration", bar=True), found.duration[rows]),
        (Column("wait_us", "Wait Time", "duration", spare=4), found.wait[rows]),
        (Column("blocks", "Block Dim", "count", spare=6), texts(lambda: found.other("blocks"), plain=True)),
        (Column("bound", "Bound"), texts(lambda: found.bound[0])),
        (Column("bound_ratio", "Ratio", "share"), numbers(lambda: found.bound[1])),
    ]  # fmt: skip
    for key in OTHERS:
        if key in found.others:
            columns.append((Column(key, _TITLES[key], spare=20, shown=key in _SEEN),
                            texts(partial(found.other, key), plain=True)))  # fmt: skip
    # all of them in one go through the file, kept as long as the table
    metrics = cache(lambda: found.load(found.metrics))
    for name in found.metrics:
        columns.append((Column(name, name, "number", spare=30, shown=False), numbers(partial(_of, metrics, name))))
    return Table("kernels", "Kernels", tuple(each for each, _ in columns), tuple(each for _, each in columns),
                 word="kernel")  # fmt: skip


def _of(metrics: Callable[[], Mapping[str, Any]], name: str) -> Any:
    return metrics()[name]
