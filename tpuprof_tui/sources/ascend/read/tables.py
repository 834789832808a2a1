"""Tables of a rank: what its files hold beside events, as columns on the profile's time line (`recorded`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple

from tpuprof_tui.model import INT_MISSING, Column
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.lane import Rows
from tpuprof_tui.model.strings import StringsOnDemand
from tpuprof_tui.model.table import Table, TableColumns

from ..recorded import (
    ASYNC_NPU,
    COMMUNICATION,
    COMPUTING,
    HOST_TO_DEVICE,
    KERNEL_TEXTS,
    METRICS,
    OTHER,
    OTHERS,
    STEP,
    Step,
)
from .csv_table import CsvTable, Texts
from .kernels import Details, Kernels
from .rank import KERNEL_TABLES, Rank
from .records import CSV, Records, holds_all, of_rows
from .timeline import Layer, SliceClass, Timeline

I64 = npt.NDArray[np.int64]
#: Columns of records that are times of day, the first of which tells the host's step.
_MOMENTS: Final = {"memory": ("time",), "modules": ("time",), "allocations": ("allocated", "released"),
                   "operations": ("start",)}  # fmt: skip


def _on_line(times: I64, zero: int) -> I64:
    """Times since 1970 on a time line with that zero; missing ones stay missing."""
    return np.where(times == INT_MISSING, INT_MISSING, times - zero)


def tables_of(rank: Rank, group: int, zero: int, first: int, events: I64) -> Iterator[Table]:
    """The tables of a rank.

    Args:
        rank: Its files.
        group: Id of its group.
        zero: Reading of its clock at the zero of the profile's time line, ns.
        first: Number of the first of its events in the profile.
        events: Number of the event of each kernel in the profile; -1: none.
    """
    if rank.kernels.file:
        yield _kernels(rank, rank.kernels, group, zero, events)
    for name, records in rank.records.items():
        yield table_of(name, group, records, rank, zero)
    yield Table("steps", group, rank.steps_file, lambda: _steps(rank, zero))
    if len(rank.timeline):
        yield Table("launches", group, rank.timeline.file, lambda: _launches(rank, zero, first))
    specs, held = {spec.role: spec for spec in CSV.values()}, {records.file for records in rank.records.values()}
    for role, file in rank.files.tables():
        if role not in KERNEL_TABLES and not (file.name in held and holds_all(specs[role], file.columns)):
            yield _file(role, file, group)


def table_of(name: str, group: int, records: Records, rank: Rank | None = None, zero: int = 0) -> Table:
    """A table of records; ``rank``: None if they have no times of day."""
    columns = records.columns
    arrays: dict[str, Any] = {key: column.codes if isinstance(column, Texts) else column
                              for key, column in columns.items()}  # fmt: skip
    texts = {key: column.texts for key, column in columns.items() if isinstance(column, Texts)}
    for number, key in enumerate(_MOMENTS.get(name, ()) if rank is not None else ()):
        recorded = arrays[key]
        if number == 0 and rank is not None and name != "operations":
            arrays["step_number"] = lambda rows, of=rank, times=recorded: host_steps(of.steps, times[rows])
        arrays[key] = _on_line(recorded, zero)
    schema = tuple(Column(key, key.removeprefix(OTHER), kind="text", group=OTHERS)
                   for key in columns if key.startswith(OTHER))  # fmt: skip
    return Table(name, group, records.file, lambda: (arrays, texts), schema)


# -- of the timeline and the kernels


def _steps(rank: Rank, zero: int) -> TableColumns:
    types = {"label": str, "number": int, "low": int, "high": int, "start": int, "end": int, "known": int}
    columns = of_rows(types, [astuple(step)[: len(types)] for step in rank.steps])
    times = {key: _on_line(columns[key], zero) for key in ("low", "high", "start", "end")}
    label, computed = columns["label"], np.full(len(rank.steps), rank.steps_are_computed)
    return {**columns, **times, "label": label.codes, "computed": computed}, {"label": label.texts}


def _launches(rank: Rank, zero: int, first: int) -> TableColumns:
    flows = rank.timeline.flows
    links = np.sort(np.concatenate([flows.of(ASYNC_NPU), flows.of(HOST_TO_DEVICE)]))
    starts, callers, tasks = flows.to_time[links], flows.from_row[links], flows.to_row[links]
    return {
        "category": flows.category[links].astype(np.int32), "called": _on_line(flows.from_time[links], zero),
        "start": _on_line(starts, zero), "step_number": lambda rows: device_steps(rank.steps, starts[rows]),
        "caller_event": np.where(callers >= 0, callers + first, -1), "event": np.where(tasks >= 0, tasks + first, -1),
    }, {"category": flows.categories}  # fmt: skip


def _kernels(rank: Rank, kernels: Kernels, group: int, zero: int, events: I64) -> Table:
    details = kernels.details
    # a key of its own for columns of the file, whose names could be those of ours
    unknown = {OTHER + key: key for key in details.texts if key not in ("step", "blocks", *KERNEL_TEXTS)}

    def of_rows(take: Callable[[I64], Any]) -> Callable[[Rows], Any]:
        return lambda rows: take(np.arange(len(kernels))[rows])

    def read() -> TableColumns:
        held = {"name": kernels.name, "type": kernels.type, "core": kernels.core,
                **{key: details.whole(key) for key in ("step", "blocks")}}  # fmt: skip
        texts: dict[str, Any] = {key: column.texts for key, column in held.items()} | {"bound": details.pipes}
        columns: dict[str, Any] = {
            **{key: column.codes for key, column in held.items()}, "start": _on_line(kernels.start, zero),
            "end": _on_line(kernels.end, zero), "duration": kernels.duration, "wait": kernels.wait,
            "timed": kernels.timed, "communicates": kernels.communicates, "event": events,
            "step_number": lambda rows: device_steps(rank.steps, kernels.start[rows]),
            "bound": of_rows(lambda rows: details.bound(rows, together=True)[0]),
            "bound_ratio": of_rows(lambda rows: details.bound(rows, together=True)[1]),
        }  # fmt: skip
        for key, name in ({key: key for key in details.texts if key in KERNEL_TEXTS} | unknown).items():
            texts[key] = StringsOnDemand()
            columns[key] = of_rows(partial(codes_of, texts[key], details, name, str))
        for name in details.metrics:
            columns[OTHER + name] = of_rows(partial(details.take, name, together=True))
        return columns, texts

    schema = (*(Column(key, name, kind="text", group=OTHERS) for key, name in unknown.items()),
              *(Column(OTHER + name, name, kind="float", group=METRICS) for name in details.metrics))  # fmt: skip
    return Table("kernels", group, kernels.file, read, schema)


def codes_of(
    strings: StringsOnDemand, details: Details, key: str, change: Callable[[str], str], rows: I64
) -> npt.NDArray[np.int32]:  # fmt: skip
    """A text column of some kernels as codes of strings."""
    return codes_in(strings, details.take(key, rows), change)


def codes_in(strings: StringsOnDemand, column: Texts, change: Callable[[str], str] = str) -> npt.NDArray[np.int32]:
    """A text column as codes of strings; only texts in use get one, changed ones."""
    codes = np.full(len(column.texts) + 1, -1, np.int32)
    for code in np.flatnonzero(np.bincount(column.codes[column.codes >= 0])).tolist():
        codes[code] = strings.code(change(column.texts[code]))
    return codes[column.codes]


def _file(role: str, file: CsvTable, group: int) -> Table:
    def read() -> TableColumns:
        columns = file.read(dict.fromkeys(file.columns, "text"))
        return ({OTHER + name: column.codes for name, column in columns.items()},
                {OTHER + name: column.texts for name, column in columns.items()})  # fmt: skip

    schema = tuple(Column(OTHER + name, name, kind="text", group=OTHERS) for name in file.columns)
    return Table(role, group, file.name, read, schema)


# Steps of a rank, and which of them an event belongs to.
#
# Steps are what the framework marked, else the iterations of a graph, else what a table recorded, else everything is
# one. The part of a step on the device runs from the first work that starts at or after the step's own start to that
# of the next step; work belongs to a step by its start. What the host did belongs to the step that it started in.

_NEVER: Final = np.iinfo(np.int64).max


class Iterations(Struct, frozen=True, eq=False):
    """Iterations of a graph by start: labels, and int64 ns since 1970."""

    labels: list[str]
    start: I64
    end: I64


def work_starts(timeline: Timeline, kernels: Kernels) -> I64:
    """Starts of the intervals in which the device computes or communicates, ascending: the exporter's, else unions."""
    if timeline.derived:
        rows = timeline.rows_of(Layer.OVERLAP)
        return np.sort(timeline.start[rows[timeline.named((COMPUTING, COMMUNICATION).__contains__)[rows]]])
    if len(timeline.work):
        classes = timeline.slice_class[timeline.work]
        rows_of_parts = [timeline.work[classes == each] for each in (SliceClass.KERNEL, SliceClass.COLLECTIVE)]
        parts = [(timeline.start[rows], timeline.end[rows]) for rows in rows_of_parts]
    else:
        rows_of_parts = [np.flatnonzero(kernels.timed & (kernels.communicates == each)) for each in (False, True)]
        parts = [(kernels.start[rows], kernels.end[rows]) for rows in rows_of_parts]
    return np.sort(np.concatenate([Intervals.union(*part).starts for part in parts]))


def steps_of(
    timeline: Timeline, kernels: Kernels, work: I64 | None, iterations: Iterations | None,
    recorded: Sequence[str | None],
) -> tuple[Step, ...]:  # fmt: skip
    """The steps of a rank by its timeline or kernels.

    ``work``: `work_starts`, None if the use of the device is unknown; ``recorded``: labels of a table of steps.
    """
    if work is None or (not len(timeline) and recorded):
        return _recorded(recorded, kernels)
    if len(timeline.steps):
        return _marked(timeline, work)
    if iterations is not None:
        return tuple(map(Step, iterations.labels, step_numbers(iterations.labels).tolist(), iterations.start.tolist(),
                         iterations.end.tolist()))  # fmt: skip
    label = recorded[0] if len(recorded) == 1 else "all"
    return (Step(label, _number(label)),)


def _recorded(labels: Sequence[str | None], kernels: Kernels) -> tuple[Step, ...]:
    """Steps of a table; their work follows from the kernels' step column; of a single step it is everything."""
    lows: list[int | None] = []
    for label in labels:
        starts = kernels.start[kernels.details.whole("step").where(label.__eq__) & kernels.timed]
        lows.append(int(starts.min()) if len(starts) else None)
    found = []
    for label, low in zip(labels, lows, strict=True):
        high = min((other for other in lows if other is not None and low is not None and other > low), default=None)
        found.append(Step(label, _number(label), low, high, known=low is not None or len(labels) == 1))
    return tuple(found)


def _marked(timeline: Timeline, work: I64) -> tuple[Step, ...]:
    marks = timeline.steps
    labels = [timeline.names[name].removeprefix(STEP) for name in timeline.name[marks].tolist()]
    starts, ends = timeline.start[marks].tolist(), timeline.end[marks].tolist()
    begun: list[int | None] = []
    for start, until in zip(starts, [*starts[1:], None], strict=True):
        index = int(np.searchsorted(work, start))
        first = int(work[index]) if index < len(work) else None
        begun.append(first if first is not None and (until is None or first < until) else None)
    steps = []
    for index, (label, number) in enumerate(zip(labels, step_numbers(labels).tolist(), strict=True)):
        high = next((low for low in begun[index + 1 :] if low is not None), None)
        # a step in which no device work began is empty
        low = starts[index] if begun[index] is None else begun[index]
        steps.append(Step(label, number, low, low if begun[index] is None else high, starts[index], ends[index]))
    return tuple(steps)


def step_numbers(labels: Sequence[str]) -> I64:
    """Step numbers from the texts behind ``ProfilerStep#``; 0, 1, 2, ... if these are not distinct numbers."""
    numbers = [_number(label) for label in labels]
    distinct = -1 not in numbers and len(set(numbers)) == len(labels)
    return np.array(numbers if distinct else list(range(len(labels))), np.int64)


def _number(label: str | None) -> int:
    return int(label) if label is not None and label.isascii() and label.isdecimal() and len(label) < 18 else -1


def device_steps(steps: Sequence[Step], times: I64) -> I64:
    """Number of the step that device work belongs to, by start; missing if it is none's."""
    return _numbers_at(steps, times, [(step.low, step.high) for step in steps])


def host_steps(steps: Sequence[Step], times: I64) -> I64:
    """Number of the step that a host event belongs to, by start; missing if it is none's."""
    marked = any(step.start is not None for step in steps)
    return _numbers_at(steps, times, [(step.start, step.end) if marked else (step.low, step.high) for step in steps])


def _numbers_at(steps: Sequence[Step], times: I64, bounds: Sequence[tuple[Any, Any]]) -> I64:
    whole = next((step.number for step, (low, _) in zip(steps, bounds, strict=True) if low is None and step.known), -1)
    found = np.full(len(times), whole if whole >= 0 else INT_MISSING)
    bounded = [(low, high, step.number) for step, (low, high) in zip(steps, bounds, strict=True) if low is not None]
    # steps without any work are empty
    parts = sorted((low, _NEVER if high is None else high, number) for low, high, number in bounded if low != high)
    if not parts:
        return found
    starts, ends, numbers = np.array(parts, np.int64).T
    index = np.searchsorted(starts, times, side="right") - 1
    inside = (index >= 0) & (times < ends[index]) & (numbers[index] >= 0)
    return np.where(inside, numbers[index], INT_MISSING)
