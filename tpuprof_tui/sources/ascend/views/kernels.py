"""Kernels view (each kernel, its metrics and bounding pipe; sums), operators on host and device, calls of CANN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import Figure, Frame, GroupBy, key, least, mean_known, most, rows, total
from tpuprof_tui.analysis.pivot import rows as count
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.formats.units import plural
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.table import Table as Records
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.views.answer import Answer, Column, Fact, LazyValues, Missing, Table, Target

from ..records import ASYNC_NPU, HOST_TO_DEVICE, KERNEL_NUMBERS, KERNEL_TEXTS, METRICS, RecordedRank
from .ranks import (
    TIMES,
    as_counted,
    by_texts,
    frame_of,
    lacks,
    lanes_of,
    moment,
    not_narrowed,
    per_rank,
    plain,
    selected_rows,
)

I64 = npt.NDArray[np.int64]
#: Further columns that are shown by default.
_SEEN: Final = ("input_shapes",)
#: Rows read at a time; two pages are still fewer than the limit for reading by offset.
_PAGE: Final = 256
#: Most kernels for which sums by shape are computed: reading the shapes of more takes longer than the rest of the view.
_SUMMED_BY_SHAPES: Final = 200_000
NO_METRICS: Final = "profiler_level=Level1 with aic_metrics=PipeUtilization, or msprof --ai-core=on"
#: Columns that kernels are grouped by; Enter filters events by them.
_NAME, _TYPE, _CORE = (Column("name", "Name", filter_column="name"), Column("type", "Type", filter_column="type"),
                       Column("core", "Accelerator Core", filter_column="accelerator"))  # fmt: skip


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
    notes = ["Bound: the pipe with the largest ratio; below 60% no pipe is full: latency, synchronisation or too few "
             "blocks."] if table.texts["bound"] else []  # fmt: skip
    unmatched = int((table["event"] < 0).sum()) if query.condition and "event" in table else 0
    if unmatched:
        notes.append(f"{plural(unmatched, 'kernel')} of {table.file} without a slice of the timeline: in no filter.")
    return Answer(_facts(table, rank, rows), tuple(tables), notes=tuple(notes), missing=tuple(missing),
                  source=table.file)  # fmt: skip


def _facts(table: Records, rank: RecordedRank, rows: I64) -> tuple[Fact, ...]:
    timed = rows[table["timed"][rows]]
    start, end = table["start"][timed], table["end"][timed]
    first, last = (int(start.min()), int(end.max())) if len(timed) else (None, None)
    busy = Intervals.union(start, end).total if len(timed) or not len(rows) else None
    return (
        Fact("kernels", "Kernels", len(rows)),
        Fact("total_us", "Their time", _sum(table["duration"][rows]), "duration"),
        Fact("busy_us", "Busy", busy, "duration"), Fact("wait_us", "Wait", _sum(table["wait"][rows]), "duration"),
        Fact("first_start_us", "First start", first, "time", epoch_ns=rank.zero),
        Fact("last_end_us", "Last end", last, "time", epoch_ns=rank.zero),
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
        (Column("step", "Step", drop_first=3), in_memory("step", plain)), (Column("name", "Name"), in_memory("name")),
        (Column("type", "Type", drop_first=2), in_memory("type")),
        (Column("core", "Accelerator Core", drop_first=1), in_memory("core")),
        (moment(rank, "start_us", "Start Time", drop_first=5), table["start"][rows]),
        (Column("duration_us", "Duration", "duration", bar=True), table["duration"][rows]),
        (Column("wait_us", "Wait Time", "duration", drop_first=4), table["wait"][rows]),
        (Column("blocks", "Block Dim", "count", drop_first=6), in_memory("blocks", plain)),
        (Column("bound", "Bound", emphasis="bound_ratio"), texts("bound")),
        (Column("bound_ratio", "Ratio", "share"), lazy(partial(table.take, "bound_ratio"))),
    ]  # fmt: skip
    for name, (title, *_) in KERNEL_TEXTS.items():
        if name in table:
            head = Column(name, title, drop_first=20, shown=name in _SEEN)
            columns.append((head, texts(name, plain if name in KERNEL_NUMBERS else list)))
    for column in table.schema:
        # unknown columns have the names of the file
        kind = "number" if column.group == METRICS else "text"
        head = Column(column.title, column.title, kind, drop_first=30, shown=False)  # type: ignore[arg-type]
        columns.append((head, texts(column.key, list if column.group == METRICS else plain)))
    return Table("kernels", "Kernels", tuple(head for head, _ in columns), tuple(values for _, values in columns),
                 word="kernel")  # fmt: skip


# -- operators of the framework


_TYPED: Final = "profiler_level=Level1, or msprof --task-time=l1"
_SIDES: Final = ("host_self", "host_total", "device_self", "device_total", "device_self_aicore", "device_total_aicore")


def _known_total(name: str) -> Figure:
    def values(groups: GroupBy) -> np.ndarray:
        none = not bool((groups.frame[name] != INT_MISSING).any())
        return np.full(groups.count, INT_MISSING) if none else np.asarray(total(name)(groups))

    return values


_OPERATOR: Final = (Column("name", "Name", filter_column="name"), key("name", None))
_SHAPES: Final = (Column("input_shapes", "Input Shapes"), key("shapes", None))
_TIMES: Final = tuple(
    (Column(f"{side}_us", title, "duration", bar=side.endswith("total"), drop_first=drop_first), _known_total(side))
    for side, title, drop_first in zip(_SIDES, ("Host Self", "Host Total", "Device Self", "Device Total",
                                           "Device Self With AICore", "Device Total With AICore"),
                                  (0, 0, 0, 0, 1, 2), strict=True)
)  # fmt: skip
_FIGURES: Final = ((Column("calls", "Calls", "count"), count), *_TIMES)
_ORDER: Final = ("-device_self_us", "-host_self_us", "name")


@per_rank
def operators(query: Query, rank: RecordedRank) -> Answer:
    """The operators view of one rank."""
    tables: list[Table] = []
    missing: list[Missing] = []
    source = ""
    by_type, file = _by_type(query, rank)
    if by_type is not None:
        tables.append(by_type)
        source = file
    else:
        missing.append(lacks("by_type", "The types of the kernels are not known.", "operator types (Level1)", _TYPED))
    notes: tuple[str, ...] = ()
    file, frame, follows = _calls(query, rank)
    if frame is not None:
        notes = () if follows else not_narrowed(query, "By name, as the exporter counted")
        source = source or file
        tables.append(
            Table.of_pivot("by_name", "By name", frame, ["name"], [_OPERATOR, *_FIGURES], _ORDER, word="operator")
        )
        if (frame["shapes"] >= 0).any() or (follows and (_recorded_operators(query)["shapes"] >= 0).any()):
            shapes = frame.with_texts("shapes", lambda text: " ".join(text.split()))
            tables.append(Table.of_pivot("by_name_shape", "By name and input shapes", shapes, ["name", "shapes"],
                                         [_OPERATOR, _SHAPES, *_FIGURES], _ORDER, word="operator"))  # fmt: skip
    else:
        missing.append(lacks("by_name", "There are no framework operators.", "operators of the framework",
                             "activities with CPU (torch_npu.profiler alone)"))  # fmt: skip
    return Answer(tables=tuple(tables), notes=notes, missing=tuple(missing), source=source)


def _by_type(query: Query, rank: RecordedRank) -> tuple[Table | None, str]:
    heads = (Column("type", "OP Type", filter_column="type"), Column("core", "Core Type"))
    statistic = query.profile.table("statistic", rank.group)
    if not query.is_narrowed and statistic is not None and statistic.texts["type"]:
        keys = ("type", "core", "count", "total", "least", "mean", "most", "share")
        named = dict(zip(keys, (*heads, *(head for head, _ in TIMES)), strict=True))
        return as_counted("by_type", "By type", named, statistic), statistic.file
    kernels = query.profile.table("kernels", rank.group)
    if kernels is None or not kernels.texts["type"]:
        return None, ""
    chosen = selected_rows(query, kernels)
    chosen = chosen[~kernels["communicates"][chosen]]
    heads = (heads[0], Column("core", "Core Type", filter_column="accelerator"))
    return by_texts("by_type", "By type", heads, frame_of(kernels, ("type", "core", "duration"), chosen)), kernels.file


def _calls(query: Query, rank: RecordedRank) -> tuple[str, Frame | None, bool]:
    """A row for each call of an operator, from operator_details.csv, else from events; for a selection from events.

    Returns:
        File name, rows, and whether they follow the selection; no rows if there are no operators.
    """
    exported = query.profile.table("operators", rank.group)
    if exported is None or query.is_narrowed:
        frame = query.events(("name", "shapes", *_SIDES), lanes_of(query, "python", "other"))
        if len(_recorded_operators(query)):
            return rank.timeline, frame.take(frame["host_total"] != INT_MISSING), True
    if exported is None:
        return "", None, True
    return exported.file, frame_of(exported, ("name", "shapes", *_SIDES)), False


def _recorded_operators(query: Query) -> Frame:
    whole = query.whole
    frame = whole.events(("shapes", "host_total"), lanes_of(query, "python", "other"))
    return frame.take(frame["host_total"] != INT_MISSING)


# -- calls of CANN


def _variance(groups: GroupBy) -> npt.NDArray[np.float64]:
    """Variance of the known durations, us squared; 0 without any."""
    lengths = groups.frame["duration"]
    known = lengths != INT_MISSING
    index = groups.index[known]
    means = np.asarray(mean_known("duration")(groups))
    spread = np.bincount(index, weights=((lengths[known] - means[index]) / 1000) ** 2, minlength=groups.count)
    return spread / np.maximum(groups.count_of(known), 1)


_CALL_FIGURES: Final = (
    (Column("level", "Level"), key("type", None)), (Column("name", "API Name"), key("name", None)),
    (Column("count", "Count", "count"), rows), (Column("total_us", "Time", "duration", bar=True), total("duration")),
    (Column("avg_us", "Avg", "duration"), mean_known("duration")),
    (Column("min_us", "Min", "duration", drop_first=2), least("duration")),
    (Column("max_us", "Max", "duration", drop_first=1), most("duration")),
    (Column("variance", "Variance", "number", drop_first=3), _variance),
)  # fmt: skip


@per_rank
def api(query: Query, rank: RecordedRank) -> Answer:
    """The API view of one rank."""
    tables: list[Table] = []
    facts: list[Fact] = []
    missing: list[Missing] = []
    called = any(len(query.profile.lanes[number]) for number in lanes_of(query, "cann"))
    source, table = _calls_of_cann(query, rank, called)
    if table is not None:
        tables.append(table)
    else:
        missing.append(lacks("apis", "There are no calls of CANN.", "calls of CANN (Level1)",
                             "profiler_level=Level1, or msprof --ascendcl=on"))  # fmt: skip
    launches = query.profile.table("launches", rank.group)
    chosen = _selected_launches(query, launches) if launches is not None else np.zeros(0, np.int64)
    if launches is not None and len(chosen):
        source = source or launches.file
        delay = launches["start"][chosen] - launches["called"][chosen]
        categories = np.array(launches.values("category", chosen))
        for category in (ASYNC_NPU, HOST_TO_DEVICE):
            delays = delay[categories == category]
            if len(delays):
                mean = float(delays.sum() / len(delays))
                facts += [
                    Fact(f"launches_{category}", f"Launches ({category})", len(delays)),
                    Fact(f"delay_mean_{category}_us", f"Mean delay ({category})", mean, "duration"),
                    Fact(f"delay_max_{category}_us", f"Largest delay ({category})", int(delays.max()), "duration"),
                ]  # fmt: skip
        columns = (
            Column("flow", "Flow"), Column("name", "Name"), moment(rank, "host_us", "Host", drop_first=1),
            moment(rank, "device_us", "Device"), Column("delay_us", "Delay", "duration", bar=True),
        )  # fmt: skip
        tables.append(Table("launches", "Launches", columns, (
            categories.tolist(), _names(query, launches["event"][chosen]), launches["called"][chosen],
            launches["start"][chosen], delay,
        )))  # fmt: skip
    else:
        missing.append(lacks("launches", "Launches are not known.", "a timeline or a database with links",
                             "export trace_view.json (text) or the database (db), profiler_level=Level1, or msprof "
                             "--ascendcl=on"))  # fmt: skip
    notes = () if called else not_narrowed(query, "Calls, as the exporter counted")
    return Answer(tuple(facts), tuple(tables), notes=notes, missing=tuple(missing), source=source)


def _selected_launches(query: Query, launches: Records) -> I64:
    """Rows of the selected launches; a launch is selected by its task.

    Databases have no points where operators call: only HostToDevice.
    """
    chosen = selected_rows(query, launches)
    if launches.file.endswith(".db"):
        chosen = chosen[np.array(launches.values("category", chosen), object) == HOST_TO_DEVICE]
    return chosen


def _names(query: Query, events: I64) -> list[str | None]:
    session, codes = query.session, np.full(len(events), -1, np.int64)
    lanes = np.searchsorted(session.offsets, events, side="right") - 1
    for number in uniques(lanes[events >= 0]).tolist():
        here = (lanes == number) & (events >= 0)
        codes[here] = query.profile.lanes[number].take("name", events[here] - session.offsets[number])
    names = query.profile.strings["name"]
    return [names[code] if code >= 0 else None for code in codes.tolist()]


def _calls_of_cann(query: Query, rank: RecordedRank, called: bool) -> tuple[str, Table | None]:
    statistic = query.profile.table("apis", rank.group)
    if called and (statistic is None or query.is_narrowed):
        frame = query.events(("type", "name", "measured"), lanes_of(query, "cann"))
        frame = frame.with_columns(duration=frame["measured"])
        frame = frame.with_texts("name", lambda name: name.rpartition("@")[2] or name)
        table = Table.of_pivot("apis", "Calls", frame, ["type", "name"], _CALL_FIGURES, ("-total_us",))
        return rank.timeline, _leading_to_calls(query, table)
    if statistic is None:
        return "", None
    keys = ("level", "name", "count", "total", "mean", "least", "most", "variance")
    heads = dict(zip(keys, (head for head, _ in _CALL_FIGURES), strict=True))
    return statistic.file, _leading_to_calls(query, as_counted("apis", "Calls", heads, statistic))


def _leading_to_calls(query: Query, table: Table) -> Table:
    return replace(table, target=partial(_target, table, query.profile.strings["name"]))


def _target(table: Table, names: Sequence[str], row: int) -> Target | None:
    """Selects a call, whose name a timeline may prefix by its level ("AscendCL@aclrtMemcpy")."""
    name = table.column("name")[row]
    found = [text for text in names if text == name or text.endswith(f"@{name}")] if name else []
    return Target(condition=" | ".join(text_condition("name", text) for text in found)) if found else None
