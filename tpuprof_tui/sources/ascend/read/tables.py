"""Tables of a rank: what its files hold beside events, as columns on the profile's time line (`recorded`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple

from tpuprof_tui.model import INT_MISSING, Column
from tpuprof_tui.model.lane import ALL, Rows
from tpuprof_tui.model.strings import StringsOnDemand
from tpuprof_tui.model.table import Table, TableColumns

from ..recorded import ASYNC_NPU, COVERAGE, HOST_TO_DEVICE, METRICS, OTHER, OTHERS, STEP_COLUMNS, STEP_KEYS
from .analysed import Analysed
from .communication import CommunicationData, Operation, Packets, Pair, Transfer
from .csv_table import CsvTable, Texts
from .kernels import OTHERS as KNOWN
from .kernels import Kernels
from .rank import Rank
from .steps import Step, device_steps, host_steps
from .timeline import Timeline

I64 = npt.NDArray[np.int64]
#: Files whose rows are in tables of other names, and which of their columns; None: all.
_HELD: Final[Mapping[str, frozenset[str] | None]] = {
    **dict.fromkeys(("kernel_details.csv", "op_summary.csv", "op_statistic.csv", "api_statistic.csv",
                     "memory_record.csv", "operator_memory.csv")),
    "step_trace_time.csv": frozenset(("Device_id", "Step", *(name for name, _, _ in STEP_COLUMNS))),
    "npu_module_mem.csv": frozenset(
        ("Device_id", "Device", "Device Type", "Component", "Timestamp(us)", "Total Reserved(MB)", "Total Reserved(KB)")
    ),
    "operator_details.csv": frozenset(
        ("Name", "Input Shapes", "Call Stack", *(f"{where} {what} Duration{more}(us)" for where in ("Host", "Device")
                                                 for what in ("Self", "Total") for more in ("", " With AICore")))
    ),
    "acl_statistic.csv": frozenset(("Name", "Time(%)", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)")),
    "runtime_api.csv": frozenset(("Name", "Time(%)", "Time(ns)", "Calls", "Avg(ns)", "Min(ns)", "Max(ns)")),
}  # fmt: skip
_OLD_APIS: Final = {"level": str, "name": str, **dict.fromkeys(("count", "total", "mean", "least", "most"), float)}
_RECORDED_STEPS: Final = {"label": str, **dict.fromkeys(STEP_KEYS, float)}
_CLUSTER_STEPS: Final = {"kind": str, "index": str, "step": str, **dict.fromkeys(STEP_KEYS, float)}


class Clock(Struct, frozen=True):
    """The time line of a profile, for a rank: reading of its clock at the zero, and its steps."""

    zero: int
    steps: Callable[[], Sequence[Step]]

    def on_line(self, times: I64) -> I64:
        """Times since 1970 on the time line; missing ones stay missing."""
        return np.where(times == INT_MISSING, INT_MISSING, times - self.zero)


def tables_of(rank: Rank, group: int, clock: Clock, first: int, events: I64) -> Iterator[Table]:
    """The tables of a rank.

    Args:
        rank: Its files.
        group: Id of its group.
        clock: The time line.
        first: Number of the first of its events in the profile.
        events: Number of the event of each kernel in the profile; -1: none.
    """
    if rank.kernels is not None:
        yield _kernels(rank.kernels, group, clock, events)
    for name, role, columns in (("statistic", "op_statistic.csv", rank.statistic),
                                ("operators", "operator_details.csv", rank.operators),
                                ("apis", "api_statistic.csv", rank.apis)):  # fmt: skip
        file = rank.table(role)
        if columns is not None and file is not None:
            yield _table(name, group, file.name, columns)
    if rank.apis is None and rank.old_apis is not None:
        name, rows = rank.old_apis
        yield _table("apis", group, name, _columns(_OLD_APIS, rows) | {"variance": np.full(len(rows), np.nan)})
    memory = rank.memory or _memory_counters(rank.timeline)
    for name, found, times in (("memory", memory, ("time",)), ("modules", rank.modules, ()),
                               ("allocations", rank.allocations, ("allocated", "released"))):  # fmt: skip
        if found is not None:
            yield _table(name, group, *found, clock, times)
    if rank.recorded_steps is not None:
        name, steps = rank.recorded_steps
        yield _table(
            "recorded_steps", group, name, _columns(_RECORDED_STEPS, [(label, *values) for label, values in steps])
        )
    yield Table("steps", group, rank.steps_file, lambda: _steps(rank, clock))
    if rank.coverage_file:
        yield Table("coverage", group, rank.coverage_file, lambda: _coverage(rank, clock))
    timeline = rank.timeline
    if timeline is not None and len(timeline):
        yield Table("launches", group, timeline.file, lambda: _launches(timeline, clock, first))
    if rank.communication is not None:
        yield from _communication(rank.communication, group, clock.zero)
    for role in rank.paths.by_role:
        file, held = rank.table(role) if role.endswith(".csv") else None, _HELD.get(role, frozenset())
        if file is not None and held is not None and not held.issuperset(file.columns):
            yield _file(role, file, group)


def cluster_tables(analysed: Analysed) -> Iterator[Table]:
    """The tables of msprof-analyze, of all ranks."""
    if analysed.steps:
        rows = [(row.kind, row.index, row.step, *row.values) for row in analysed.steps]
        yield _table("cluster_steps", -1, analysed.sources[0], _columns(_CLUSTER_STEPS, rows))
    if analysed.communication is not None:
        yield from _communication(analysed.communication, -1, 0)


def _communication(data: CommunicationData, group: int, zero: int) -> Iterator[Table]:
    """Tables of communication data; pairs only where there was a matrix."""
    parts: tuple[tuple[str, type[Struct], Sequence[Struct]], ...] = (
        ("operations", Operation, data.operations), ("transfers", Transfer, data.transfers),
        ("packets", Packets, data.packets), *((("pairs", Pair, data.pairs),) if data.matrix else ()),
    )  # fmt: skip
    for name, kind, rows in parts:
        kinds = {
            key: word for base in reversed(kind.__mro__) for key, word in vars(base).get("__annotations__", {}).items()
        }
        columns = _columns(kinds, list(map(astuple, rows)))
        if "start" in columns:
            columns["start"] = np.where(columns["start"] == INT_MISSING, INT_MISSING, columns["start"] - zero)
        yield _table(name, group, data.file, columns)


def _table(
    name: str, group: int, file: str, columns: Mapping[str, Any], clock: Clock | None = None, times: Sequence[str] = ()
) -> Table:  # fmt: skip
    """A table of columns in memory; ``times``: those since 1970, the first of which tells the host's step."""
    arrays: dict[str, Any] = {key: column.codes if isinstance(column, Texts) else column
                              for key, column in columns.items() if isinstance(column, Texts | np.ndarray)}  # fmt: skip
    texts = {key: column.texts for key, column in columns.items() if isinstance(column, Texts)}
    if clock is not None and times and times[0] in arrays:
        recorded = arrays[times[0]]
        arrays["step_number"] = lambda rows: host_steps(clock.steps(), recorded[rows])
        arrays |= {key: clock.on_line(arrays[key]) for key in times}
    schema = tuple(Column(key, key.removeprefix(OTHER), kind="text", group=OTHERS)
                   for key in columns if key.startswith(OTHER))  # fmt: skip
    return Table(name, group, file, lambda: (arrays, texts), schema)


def _columns(kinds: Mapping[str, Any], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Columns of rows of plain values, by key and type: text, int or float, or one of them or None."""
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return {key: _column(str(kind), values) for (key, kind), values in zip(kinds.items(), columns, strict=True)}


def _column(kind: str, values: Sequence[Any]) -> Any:
    if "str" in kind:
        codes: dict[str, int] = {}
        found = [-1 if value is None else codes.setdefault(value, len(codes)) for value in values]
        return Texts(np.array(found, np.int32), tuple(codes))
    dtype, missing = (np.int64, INT_MISSING) if "int" in kind else (np.float64, np.nan)
    return np.array([missing if value is None else value for value in values], dtype)


# -- of the timeline and the kernels


def _steps(rank: Rank, clock: Clock) -> TableColumns:
    kinds = {"label": str, "number": int, "low": int, "high": int, "start": int, "end": int, "known": int}
    columns = _columns(kinds, list(map(astuple, rank.steps)))
    times = {key: clock.on_line(columns[key]) for key in ("low", "high", "start", "end")}
    label, computed = columns["label"], np.full(len(rank.steps), rank.steps_are_computed)
    return {**columns, **times, "label": label.codes, "computed": computed}, {"label": label.texts}


def _coverage(rank: Rank, clock: Clock) -> TableColumns:
    parts = [intervals for _, intervals in rank.coverage.kinds()] if rank.coverage is not None else []
    return {
        "kind": np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts]),
        "start": np.concatenate([part.start for part in parts]) - clock.zero,
        "end": np.concatenate([part.end for part in parts]) - clock.zero,
    }, {"kind": COVERAGE}  # fmt: skip


def _launches(timeline: Timeline, clock: Clock, first: int) -> TableColumns:
    flows = timeline.flows
    links = np.sort(np.concatenate([flows.of(ASYNC_NPU), flows.of(HOST_TO_DEVICE)]))
    starts, callers, tasks = flows.to_time[links], flows.from_row[links], flows.to_row[links]
    return {
        "category": flows.category[links].astype(np.int32), "called": clock.on_line(flows.from_time[links]),
        "start": clock.on_line(starts), "step_number": lambda rows: device_steps(clock.steps(), starts[rows]),
        "caller_event": np.where(callers >= 0, callers + first, -1), "event": np.where(tasks >= 0, tasks + first, -1),
    }, {"category": flows.categories}  # fmt: skip


def _memory_counters(timeline: Timeline | None) -> tuple[str, dict[str, Any]] | None:
    """The memory counters of a timeline as memory over time; None if there are none."""
    counters = [counter for counter in (timeline.counters if timeline is not None else ())
                if counter.process == "NPU MEM"]  # fmt: skip
    if not counters or timeline is None:
        return None
    codes = np.repeat(np.arange(len(counters), dtype=np.int32), [len(counter.times) for counter in counters])
    values = np.concatenate([counter.values / (1024 if counter.unit == "KB" else 1) for counter in counters])
    nothing = np.full(len(values), np.nan)
    return timeline.file, {
        "component": Texts(codes, tuple(counter.name for counter in counters)),
        "time": np.concatenate([counter.times for counter in counters]), "reserved": values, "allocated": nothing,
        "active": nothing, "device": Texts(np.full(len(values), -1, np.int32), ()),
    }  # fmt: skip


def _kernels(kernels: Kernels, group: int, clock: Clock, events: I64) -> Table:
    """Kernels; what is not read at once is read again on demand, few rows by offset."""
    known = {key: key for key in kernels.others if key in KNOWN}
    unknown = {OTHER + key: key for key in kernels.others if key not in ("step", "blocks", *KNOWN)}

    def read() -> TableColumns:
        held = {"name": kernels.name, "type": kernels.type, "core": kernels.core,
                **{key: kernels.other(key) for key in ("step", "blocks")}}  # fmt: skip
        texts: dict[str, Any] = {key: column.texts for key, column in held.items()}
        columns: dict[str, Any] = {
            **{key: column.codes for key, column in held.items()}, "start": clock.on_line(kernels.start),
            "end": clock.on_line(kernels.end), "duration": kernels.duration, "wait": kernels.wait,
            "timed": kernels.timed, "communicates": kernels.communicates, "event": events,
            "step_number": lambda rows: device_steps(clock.steps(), kernels.start[rows]),
            "bound": partial(_part, kernels, lambda part, rows: part.bound[0].codes[rows]),
            "bound_ratio": partial(_part, kernels, lambda part, rows: part.bound[1][rows]),
        }  # fmt: skip
        for key, name in (known | unknown).items():
            texts[key] = StringsOnDemand()
            columns[key] = partial(_part, kernels, partial(_text, name, texts[key]))
        for name in kernels.metrics:
            columns[OTHER + name] = partial(_part, kernels, partial(_metric, name))
        return columns, texts | {"bound": kernels.pipes}

    schema = (*(Column(key, name, kind="text", group=OTHERS) for key, name in unknown.items()),
              *(Column(OTHER + name, name, kind="float", group=METRICS) for name in kernels.metrics))  # fmt: skip
    return Table("kernels", group, kernels.file, read, schema)


def _part(kernels: Kernels, take: Callable[[Kernels, I64], Any], rows: Rows) -> Any:
    if isinstance(rows, slice) and rows == ALL:
        return take(kernels, np.arange(len(kernels)))
    return take(*kernels.part(np.arange(len(kernels))[rows]))


def _text(key: str, strings: StringsOnDemand, kernels: Kernels, rows: I64) -> npt.NDArray[np.int32]:
    column = kernels.other(key)
    codes = column.codes[rows]
    table = np.full(len(column.texts) + 1, -1, np.int32)
    for code in set(codes[codes >= 0].tolist()):
        table[code] = strings.code(column.texts[code])
    return table[codes]


def _metric(name: str, kernels: Kernels, rows: I64) -> npt.NDArray[np.float64]:
    return kernels.metric(name)[rows]


def _file(role: str, file: CsvTable, group: int) -> Table:
    """A table of the exporter as it is."""

    def read() -> TableColumns:
        columns = file.read(dict.fromkeys(file.columns, "text"))
        return ({OTHER + name: column.codes for name, column in columns.items()},
                {OTHER + name: column.texts for name, column in columns.items()})  # fmt: skip

    schema = tuple(Column(OTHER + name, name, kind="text", group=OTHERS) for name in file.columns)
    return Table(role, group, file.name, read, schema)
