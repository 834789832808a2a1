"""API view: CANN calls by name, and launch delays."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.grouping import text_condition
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table, Target

from ..read.categories import SliceClass
from ..read.timeline import ASYNC_NPU, HOST_TO_DEVICE, Timeline
from .run import Run
from .tables import WHOLE, Sums, ViewSelection, lacks, per_worker, with_other_columns

I64 = npt.NDArray[np.int64]
_COLUMNS: Final = (
    Column("level", "Level"), Column("name", "API Name"), Column("count", "Count", "count"),
    Column("total_us", "Time", "duration", bar=True), Column("avg_us", "Avg", "duration"),
    Column("min_us", "Min", "duration", spare=2), Column("max_us", "Max", "duration", spare=1),
    Column("variance", "Variance", "number", spare=3),
)  # fmt: skip


@per_worker()
def api(selection: ViewSelection) -> Answer:
    """The API view of one worker."""
    timeline = selection.run.timeline
    tables: list[Table] = []
    facts: list[Fact] = []
    missing: list[Missing] = []
    found = apis(selection)
    source = ""
    if found is not None:
        source, table = found
        tables.append(replace(table, target=partial(_calls, table, timeline)))
    else:
        missing.append(lacks("apis", "There are no calls of CANN.", "calls of CANN (Level1)",
                             "profiler_level=Level1, or msprof --ascendcl=on"))  # fmt: skip
    links = _links(selection, timeline) if timeline is not None else np.zeros(0, np.int64)
    if timeline is not None and len(links):
        flows = timeline.flows
        source = source or timeline.file
        delay = flows.to_time[links] - flows.from_time[links]
        for category in (ASYNC_NPU, HOST_TO_DEVICE):
            delays = delay[np.isin(links, flows.of(category))]
            if len(delays):
                mean = float(delays.sum() / len(delays))
                facts += [
                    Fact(f"launches_{category}", f"Launches ({category})", len(delays)),
                    Fact(f"delay_mean_{category}_us", f"Mean delay ({category})", mean, "duration"),
                    Fact(f"delay_max_{category}_us", f"Largest delay ({category})", int(delays.max()), "duration"),
                ]  # fmt: skip
        tables.append(_launches(selection, timeline, links))
    else:
        missing.append(lacks("launches", "Launches are not known.", "a timeline or a database with links",
                             "export trace_view.json (text) or the database (db), profiler_level=Level1, or msprof "
                             "--ascendcl=on"))  # fmt: skip
    follows = timeline is not None and len(timeline.rows(SliceClass.CALL)) > 0
    notes = () if selection.is_everything or follows else (WHOLE,)
    return Answer(tuple(facts), tuple(tables), notes=notes, missing=tuple(missing), source=source)


def _calls(table: Table, timeline: Timeline | None, row: int) -> Target | None:
    """Selects the slices of a call, whose name a timeline may prefix by its level ("AscendCL@aclrtMemcpy")."""
    name = table.column("name")[row]
    names = timeline.names if timeline is not None and name else ()
    found = [each for each in names if each == name or each.endswith(f"@{name}")]
    return Target(condition=" | ".join(text_condition("name", each) for each in found)) if found else None


def _links(selection: ViewSelection, timeline: Timeline) -> I64:
    """Indices of the selected launch flows, in file order; a launch is selected by its device task.

    Databases have no points where operators call: only HostToDevice.
    """
    flows = timeline.flows
    kept = [flows.of(HOST_TO_DEVICE)]
    if not timeline.file.endswith(".db"):
        kept.append(flows.of(ASYNC_NPU))
    links = np.sort(np.concatenate(kept))
    if selection.timed:
        links = links[selection.work_mask(flows.to_time[links])]
    return links if selection.slices is None else links[np.append(selection.slices, False)[flows.to_row[links]]]


def _launches(selection: ViewSelection, timeline: Timeline, links: I64) -> Table:
    flows = timeline.flows
    delay = flows.to_time[links] - flows.from_time[links]
    columns = (
        Column("flow", "Flow"), Column("name", "Name"), selection.moment("host_us", "Host", spare=1),
        selection.moment("device_us", "Device"), Column("delay_us", "Delay", "duration", bar=True),
    )  # fmt: skip
    return Table("launches", "Launches", columns, (
        [flows.categories[code] for code in flows.category[links].tolist()],
        [timeline.name_of(row) for row in flows.to_row[links].tolist()],
        selection.moments(flows.from_time[links]), selection.moments(flows.to_time[links]), delay,
    ))  # fmt: skip


def apis(selection: ViewSelection) -> tuple[str, Table] | None:
    """Calls by name, with the file name: from the csv file, else (and for a selection) from the slices."""
    run, timeline = selection.run, selection.run.timeline
    rows = timeline.rows(SliceClass.CALL) if timeline is not None else np.zeros(0, np.int64)
    statistic, table = run.rank.apis, run.rank.table("api_statistic.csv")
    exported = selection.is_everything or not len(rows)
    if exported and statistic is not None and table is not None:
        order = np.argsort(-statistic["total"], kind="stable")
        values: tuple[Any, ...] = (
            statistic["level"].values(order), statistic["name"].values(order),
            [None if each != each else int(each) for each in statistic["count"][order].tolist()],
            *(statistic[key][order] for key in ("total", "mean", "least", "most", "variance")),
        )  # fmt: skip
        return table.name, with_other_columns(Table("apis", "Calls", _COLUMNS, values), statistic, order)
    if timeline is None or not len(rows):
        return _old(run)
    rows = rows[selection.host_mask(timeline.start[rows])]
    if selection.slices is not None:
        rows = rows[selection.slices[rows]]
    short = [name.rpartition("@")[2] or name for name in timeline.names]
    code_of = {name: code for code, name in enumerate(dict.fromkeys(short))}
    name = np.array([code_of[each] for each in short], np.int64)[timeline.name[rows]]
    length = timeline.lengths(rows)
    sums = Sums(length, timeline.kind[rows], name)
    order, mean, known = sums.order, sums.mean, length != INT_MISSING
    index = sums.index[known]
    spread = np.bincount(index, weights=((length[known] - mean[index]) / 1000) ** 2, minlength=len(sums.rows))
    first = sums.rows[order]
    names = tuple(code_of)
    return timeline.file, Table("apis", "Calls", _COLUMNS, (
        [timeline.kinds[code] or None for code in timeline.kind[rows[first]].tolist()],
        [names[code] for code in name[first].tolist()], sums.count[order], sums.total[order], mean[order],
        sums.least[order], sums.most[order], (spread / np.maximum(sums.known, 1))[order],
    ))  # fmt: skip


def _old(run: Run) -> tuple[str, Table] | None:
    """Calls as counted by CANN 5 to 6.3."""
    found = run.rank.old_apis
    if found is None:
        return None
    rows = [(level, name, None if count != count else int(count), *times, None)
            for level, name, count, *times in sorted(found[1], key=lambda row: -row[3])]  # fmt: skip
    return found[0], Table.of_rows("apis", "Calls", _COLUMNS, rows)
