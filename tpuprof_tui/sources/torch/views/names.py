"""Names view: calls and time by short name, the basis of comparing two runs, as in HTA's trace diff.

Kernel names differ between cards and versions: return type, template arguments and parameters are removed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tpuprof_tui.views.answer import Answer, Column, Table

from ..read.categories import Kind
from .run import Asked
from .tables import Grouped, of_each_worker

#: Kinds of host events, without those of the profiler itself.
_HOST: Final = (Kind.OPERATOR, Kind.ANNOTATION, Kind.CALL, Kind.FRAME, Kind.OLD_FRAME)
_OPEN: Final = {">": "<", ")": "("}


@of_each_worker()
def names(asked: Asked) -> Answer:
    """The names view of one worker."""
    run = asked.run
    trace, steps = run.trace, run.steps
    host = np.isin(trace.kind, _HOST)
    work = np.zeros(len(trace), np.bool_)
    work[trace.work_rows] = True
    if asked.step is not None and steps.annotated:
        # host events by their own start, device work by the start of its call
        inside = np.zeros(len(trace), np.bool_)
        for place in np.flatnonzero(asked.steps).tolist():
            inside |= (trace.start >= steps.host_start[place]) & (trace.start < steps.host_end[place])
        host &= inside
        launched = np.zeros(len(trace), np.bool_)
        known = run.call >= 0
        launched[trace.work_rows[known]] = inside[run.call[known]]
        work &= launched
    elif asked.events is not None:
        host, work = host & asked.events, work & asked.events
    columns = (Column("side", "Side"), Column("name", "Name"), Column("calls", "Calls", "count"),
               Column("total_us", "Total", "duration", bar=True))  # fmt: skip
    rows: list[tuple[object, ...]] = []
    for side, chosen in (("host", host), ("device", work)):
        places = np.flatnonzero(chosen)
        shorts: dict[str, int] = {}
        codes = np.unique(trace.name[places])
        kernel = set(np.unique(trace.name[places[trace.kind[places] == Kind.KERNEL]]).tolist())
        told = [trace.names[code] for code in codes.tolist()]
        if side == "host":
            told = [short_name(name) if "<" in name else name for name in told]
        else:
            told = [short_name(name) if code in kernel and ("<" in name or "(" in name) else name
                    for code, name in zip(codes.tolist(), told, strict=True)]  # fmt: skip
        of_code = np.array([shorts.setdefault(name, len(shorts)) for name in told], np.int64)
        group = Grouped(of_code[np.searchsorted(codes, trace.name[places])] if len(codes) else places)
        totals = group.total(trace.end[places] - trace.start[places])
        told = list(shorts)
        rows += [(side, told[key], calls, total) for key, calls, total in
                 zip(group.keys[:, 0].tolist(), group.calls().tolist(), totals.tolist(), strict=True)]  # fmt: skip
    rows.sort(key=lambda row: (-row[3], row[0], row[1]))  # type: ignore[operator]
    return Answer(tables=(Table.of_rows("names", "Names", columns, rows),))


def short_name(name: str) -> str:
    """A name without <...> and (...), and without everything before its last blank (the return type)."""
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
