"""API view: CANN calls by name, and launch delays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import Groups, key, least, mean_known, most, rows, total
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.table import Table as Records
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table, Target

from ..recorded import ASYNC_NPU, HOST_TO_DEVICE, RecordedRank
from .ranks import as_counted, is_everything, lacks, lanes_of, moment, not_narrowed, per_rank, selected_rows

I64 = npt.NDArray[np.int64]


def _variance(groups: Groups) -> npt.NDArray[np.float64]:
    """Variance of the known durations, us squared; 0 without any."""
    lengths = groups.frame["duration"]
    known = lengths != INT_MISSING
    index = groups.index[known]
    means = np.asarray(mean_known("duration")(groups))
    spread = np.bincount(index, weights=((lengths[known] - means[index]) / 1000) ** 2, minlength=groups.count)
    return spread / np.maximum(groups.count_of(known), 1)


_FIGURES: Final = (
    (Column("level", "Level"), key("type", None)), (Column("name", "API Name"), key("name", None)),
    (Column("count", "Count", "count"), rows), (Column("total_us", "Time", "duration", bar=True), total("duration")),
    (Column("avg_us", "Avg", "duration"), mean_known("duration")),
    (Column("min_us", "Min", "duration", spare=2), least("duration")),
    (Column("max_us", "Max", "duration", spare=1), most("duration")),
    (Column("variance", "Variance", "number", spare=3), _variance),
)  # fmt: skip


@per_rank
def api(query: Query, rank: RecordedRank) -> Answer:
    """The API view of one rank."""
    tables: list[Table] = []
    facts: list[Fact] = []
    missing: list[Missing] = []
    called = any(len(query.profile.lanes[number]) for number in lanes_of(query, "cann"))
    source, table = _calls(query, rank, called)
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
            Column("flow", "Flow"), Column("name", "Name"), moment(rank, "host_us", "Host", spare=1),
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


def _calls(query: Query, rank: RecordedRank, called: bool) -> tuple[str, Table | None]:
    statistic = query.profile.table("apis", rank.group)
    if called and (statistic is None or not is_everything(query)):
        frame = query.events(("type", "name", "measured"), lanes_of(query, "cann"))
        frame = frame.with_columns(duration=frame["measured"])
        frame = frame.with_texts("name", lambda name: name.rpartition("@")[2] or name)
        table = Table.of_pivot("apis", "Calls", frame, ["type", "name"], _FIGURES, ("-total_us",))
        return rank.timeline, _leading_to_calls(query, table)
    if statistic is None:
        return "", None
    keys = ("level", "name", "count", "total", "mean", "least", "most", "variance")
    heads = dict(zip(keys, (head for head, _ in _FIGURES), strict=True))
    return statistic.file, _leading_to_calls(query, as_counted("apis", "Calls", heads, statistic))


def _leading_to_calls(query: Query, table: Table) -> Table:
    return replace(table, target=partial(_target, table, query.profile.strings["name"]))


def _target(table: Table, names: Sequence[str], row: int) -> Target | None:
    """Selects a call, whose name a timeline may prefix by its level ("AscendCL@aclrtMemcpy")."""
    name = table.column("name")[row]
    found = [text for text in names if text == name or text.endswith(f"@{name}")] if name else []
    return Target(condition=" | ".join(text_condition("name", text) for text in found)) if found else None
