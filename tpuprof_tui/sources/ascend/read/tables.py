"""Tables of a rank: what its files hold beside events, as columns on the profile's time line (`recorded`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple

from tpuprof_tui.model import INT_MISSING, Column
from tpuprof_tui.model.lane import Rows
from tpuprof_tui.model.strings import StringsOnDemand
from tpuprof_tui.model.table import Table, TableColumns

from ..recorded import ASYNC_NPU, HOST_TO_DEVICE, KERNEL_TEXTS, METRICS, OTHER, OTHERS
from .csv_table import CsvTable, Texts
from .kernels import Details, Kernels
from .rank import KERNEL_TABLES, Rank
from .records import CSV, Records, holds_all, of_rows
from .steps import device_steps, host_steps

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
