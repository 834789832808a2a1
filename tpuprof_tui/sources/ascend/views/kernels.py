"""Kernels view: every kernel with its metrics and bounding pipe; sums by core, type and name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Fact, LazyValues, Table

from ..read.coverage import covered_time
from ..read.csv_table import Texts
from ..read.kernels import NUMBERS, OTHERS, Kernels
from .tables import ViewSelection, by_texts, lacks, per_worker

I64 = npt.NDArray[np.int64]
_TITLES: Final = {
    "model": "Model ID", "model_name": "Model Name", "task": "Task ID", "stream": "Stream ID", "infer": "Infer ID",
    "device": "Device_id", "op_state": "OP State", "mix_blocks": "Mix Block Dim", "hf32": "HF32 Eligible",
    "input_shapes": "Input Shapes", "input_types": "Input Data Types", "input_formats": "Input Formats",
    "output_shapes": "Output Shapes", "output_types": "Output Data Types", "output_formats": "Output Formats",
    "context": "Context ID",
}  # fmt: skip
#: Further columns that are shown by default.
_SEEN: Final = ("input_shapes",)
#: Rows read at a time; two pages are still fewer than the limit for reading by offset.
_PAGE: Final = 256
#: Most kernels for which sums by shape are computed: reading the shapes of more takes longer than the rest of the view.
_SUMMED_BY_SHAPES: Final = 200_000
NO_METRICS: Final = "profiler_level=Level1 with aic_metrics=PipeUtilization, or msprof --ai-core=on"


@per_worker()
def kernels(selection: ViewSelection) -> Answer:
    """The kernels view of one worker."""
    found = selection.run.kernels
    if found is None:
        return Answer(missing=(lacks("kernels", "There are no kernels here.", "kernel_details.csv, op_summary or a "
                                     "timeline", "activities with NPU, or msprof --task-time=on"),))  # fmt: skip
    rows = selection.kernel_rows(found)
    duration = found.duration[rows]
    order = rows[np.lexsort((found.start[rows], -np.where(duration == INT_MISSING, -1, duration)))]
    tables = [_every(selection, found, order)]
    for key, title, texts in (("core", "Accelerator Core", found.core), ("type", "Type", found.type),
                              ("name", "Name", found.name)):  # fmt: skip
        if texts.texts:
            part = Texts(texts.codes[rows], texts.texts)
            tables.append(by_texts(f"by_{key}", f"By {title.lower()}", ((key, title, part),), duration))
    missing = []
    if "input_shapes" in found.others and found.type.texts:
        if len(rows) > _SUMMED_BY_SHAPES:
            missing.append(lacks("by_type_shapes", f"Of more than {_SUMMED_BY_SHAPES:,} kernels, there are no sums by "
                                 "input shapes.", "fewer kernels", "--step or --range, for fewer of them"))  # fmt: skip
        else:
            with suppress(OSError, UnreadableError):  # the file is gone or has changed
                shapes = found.other("input_shapes")
                names = [("type", "Type", Texts(found.type.codes[rows], found.type.texts)),
                         ("input_shapes", "Input Shapes", Texts(shapes.codes[rows], shapes.texts))]  # fmt: skip
                tables.append(by_texts("by_type_shapes", "By type and input shapes", names, duration))
    if not found.metrics:
        missing.append(lacks("metrics", "There are no AI Core metrics.", "AI Core metrics", NO_METRICS))
    if not found.type.texts:
        message, needs = "The types of the kernels are not known.", "operator types (Level1)"
        if selection.run.timeline is not None and found.file == selection.run.timeline.file:
            message, needs = (
                "The timeline alone has no operator types and only coarse cores.",
                "kernel_details.csv or op_summary",
            )
        missing.append(lacks("by_type", message, needs,
                             "export text with profiler_level=Level1, or msprof --task-time=l1"))  # fmt: skip
    return Answer(_facts(selection, found, rows), tuple(tables), missing=tuple(missing), source=found.file,
                  notes=("Bound: the pipe with the largest ratio; below 60% no pipe is full: latency, synchronisation "
                         "or too few blocks.",) if found.pipes else ())  # fmt: skip


def _facts(selection: ViewSelection, found: Kernels, rows: I64) -> tuple[Fact, ...]:
    timed = rows[found.timed[rows]]
    # avoid copies if all kernels are selected
    start, end = (found.start, found.end) if len(timed) == len(found.start) else (found.start[timed], found.end[timed])
    first, last = (int(start.min()), int(end.max())) if len(timed) else (None, None)
    return (
        Fact("kernels", "Kernels", len(rows)),
        Fact("total_us", "Their time", _sum(found.duration[rows]), "duration"),
        Fact("busy_us", "Busy", covered_time(start, end) if len(timed) or not len(rows) else None, "duration"),
        Fact("wait_us", "Wait", _sum(found.wait[rows]), "duration"),
        selection.moment_fact("first_start_us", "First start", first),
        selection.moment_fact("last_end_us", "Last end", last),
    )


def _sum(lengths: I64) -> int | None:
    """Sum of the known lengths, ns; None if none of them is known."""
    known = lengths != INT_MISSING
    return int(lengths.sum(where=known)) if known.any() or not len(known) else None


def _every(selection: ViewSelection, found: Kernels, rows: I64) -> Table:
    read = lru_cache(maxsize=4)(lambda first, last: found.part(rows[first:last]))

    def part(start: int, stop: int) -> tuple[Kernels, I64]:
        # all columns ask for the same rows, and the screen for one at a time: read and cache whole pages
        if stop - start > _PAGE:
            return read(start, stop)
        first = start - start % _PAGE
        page, page_rows = read(first, max(stop, first + _PAGE))
        return page, page_rows[start - first : stop - first]

    def lazy(values: Callable[[Kernels, I64], Any]) -> LazyValues:
        return LazyValues(len(rows), lambda some: values(*part(some.start, some.stop)))

    def in_memory(values: Callable[[I64], list[Any]]) -> LazyValues:
        return LazyValues(len(rows), lambda some: values(rows[some]))

    columns: list[tuple[Column, Any]] = [
        (Column("step", "Step", spare=3), in_memory(found.other("step").plain_values)),
        (Column("name", "Name"), in_memory(found.name.values)),
        (Column("type", "Type", spare=2), in_memory(found.type.values)),
        (Column("core", "Accelerator Core", spare=1), in_memory(found.core.values)),
        (selection.moment("start_us", "Start Time", spare=5), selection.moments(found.start[rows])),
        (Column("duration_us", "Duration", "duration", bar=True), found.duration[rows]),
        (Column("wait_us", "Wait Time", "duration", spare=4), found.wait[rows]),
        (Column("blocks", "Block Dim", "count", spare=6), in_memory(found.other("blocks").plain_values)),
        (Column("bound", "Bound", level="bound_ratio"), lazy(lambda page, page_rows: page.bound[0].values(page_rows))),
        (Column("bound_ratio", "Ratio", "share"), lazy(lambda page, page_rows: page.bound[1][page_rows])),
    ]  # fmt: skip
    for key in OTHERS:
        if key in found.others:
            values_of = partial(_other, key, Texts.numbers if key in NUMBERS else Texts.values)
            columns.append((Column(key, _TITLES[key], spare=20, shown=key in _SEEN), lazy(values_of)))
    for name in found.others:
        # unknown columns have the names of the file
        if name not in (*OTHERS, "step", "blocks"):
            columns.append((Column(name, name, spare=30, shown=False), lazy(partial(_other, name, Texts.plain_values))))
    for name in found.metrics:
        columns.append((Column(name, name, "number", spare=30, shown=False), lazy(partial(_metric, name))))
    return Table("kernels", "Kernels", tuple(each for each, _ in columns), tuple(each for _, each in columns),
                 word="kernel")  # fmt: skip


def _other(key: str, values_of: Callable[[Texts, I64], list[Any]], kernels: Kernels, rows: I64) -> list[Any]:
    return values_of(kernels.other(key), rows)


def _metric(name: str, kernels: Kernels, rows: I64) -> npt.NDArray[np.float64]:
    return kernels.metric(name)[rows]
