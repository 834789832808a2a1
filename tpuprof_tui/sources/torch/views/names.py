"""Names view: calls and time by short name, the basis of comparing two runs, as in HTA's trace diff.

Kernel names differ between cards and versions: return type, template arguments and parameters are removed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tpuprof_tui.analysis.pivot import key, per, pivot, rows, total
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.views.answer import Answer, Column, Table

from ..categories import Kind
from .worker_events import WorkerEvents, per_worker

#: Kinds of host events, without those of the profiler itself.
_HOST: Final = (Kind.OPERATOR, Kind.ANNOTATION, Kind.CALL, Kind.FRAME, Kind.OLD_FRAME)
_OPEN: Final = {">": "<", ")": "("}
_COLUMNS: Final = (
    Column("side", "Side"), Column("name", "Name"), Column("calls", "Calls", "count"),
    Column("total_us", "Total", "duration", bar=True), Column("calls_per_step", "Calls per step", "count", spare=2),
    Column("total_per_step_us", "Per step", "duration", spare=1),
)  # fmt: skip


@per_worker()
def names(events: WorkerEvents) -> Answer:
    """The names view of one worker."""
    host = events.frame("thread", "name", "kind", "in_steps")
    work = events.frame("stream", "name", "kind", "in_steps", "call_start")
    if events.query.step is not None and events.steps.annotated:
        # as HTA counts: work without a call is in no step
        work = work.take(work["call_start"] != INT_MISSING)
    host = host.take(np.isin(host["kind"], _HOST)).with_texts("name", lambda name: short_name(name, "<"))
    texts, kernels = work.texts["name"], uniques(work["name"][work["kind"] == Kind.KERNEL]).tolist()
    of_kernels = {texts[code] for code in kernels}
    work = work.with_texts("name", lambda name: short_name(name, "<", "(") if name in of_kernels else name)
    rows_by_side = [
        (side, *row) for side, frame in (("host", host), ("device", work)) for row in pivot(frame, ["name"], {
            "name": key("name"), "calls": rows, "total": total("duration"),
            "calls_per_step": per(total("in_steps"), events.step_count),
            "total_per_step": per(total("duration", "in_steps"), events.step_count),
        }, ())]  # fmt: skip
    rows_by_side.sort(key=lambda row: (-row[3], row[0], row[1]))
    return Answer(tables=(Table.of_rows("names", "Names", _COLUMNS, rows_by_side),))


def short_name(name: str, *signs: str) -> str:
    """A name with any of ``signs`` without <...> and (...), and without what stands before its last blank, its type."""
    if not any(sign in name for sign in signs):
        return name
    kept: list[str] = []
    depth = 0
    for sign in name:
        if sign in "<(":
            depth += 1
        elif sign in _OPEN:
            depth = max(depth - 1, 0)
        elif not depth:
            kept.append(sign)
    return "".join(kept).strip().rpartition(" ")[2]
