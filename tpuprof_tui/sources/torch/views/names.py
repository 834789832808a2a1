"""Names view: calls and time by short name, the basis of comparing two runs, as in HTA's trace diff.

Kernel names differ between cards and versions: return type, template arguments and parameters are removed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tpuprof_tui.views.answer import Answer, Column, Table

from ..read.categories import Kind
from .run import ViewSelection
from .tables import Grouped, per_step, per_worker

#: Kinds of host events, without those of the profiler itself.
_HOST: Final = (Kind.OPERATOR, Kind.ANNOTATION, Kind.CALL, Kind.FRAME, Kind.OLD_FRAME)
_OPEN: Final = {">": "<", ")": "("}


@per_worker()
def names(selection: ViewSelection) -> Answer:
    """The names view of one worker."""
    run = selection.run
    trace, steps = run.trace, run.steps
    host = np.isin(trace.kind, _HOST)
    work = np.zeros(len(trace), np.bool_)
    work[trace.work_rows] = True
    if selection.step is not None and steps.annotated:
        # host events by their own start, device work by the start of its call
        inside = np.zeros(len(trace), np.bool_)
        for step in np.flatnonzero(selection.steps).tolist():
            inside |= (trace.start >= steps.host_start[step]) & (trace.start < steps.host_end[step])
        host &= inside
        launched = np.zeros(len(trace), np.bool_)
        known = run.call >= 0
        launched[trace.work_rows[known]] = inside[run.call[known]]
        work &= launched
    elif selection.events is not None:
        host, work = host & selection.events, work & selection.events
    columns = (Column("side", "Side"), Column("name", "Name"), Column("calls", "Calls", "count"),
               Column("total_us", "Total", "duration", bar=True),
               Column("calls_per_step", "Calls per step", "count", spare=2),
               Column("total_per_step_us", "Per step", "duration", spare=1))  # fmt: skip
    in_steps, count = selection.in_steps
    rows: list[tuple[object, ...]] = []
    for side, chosen in (("host", host), ("device", work)):
        indices = np.flatnonzero(chosen)
        code_of_short: dict[str, int] = {}
        codes = np.unique(trace.name[indices])
        kernel = set(np.unique(trace.name[indices[trace.kind[indices] == Kind.KERNEL]]).tolist())
        short_names = [trace.names[code] for code in codes.tolist()]
        if side == "host":
            short_names = [short_name(name) if "<" in name else name for name in short_names]
        else:
            short_names = [short_name(name) if code in kernel and ("<" in name or "(" in name) else name
                           for code, name in zip(codes.tolist(), short_names, strict=True)]  # fmt: skip
        short_of_code = np.array([code_of_short.setdefault(name, len(code_of_short)) for name in short_names], np.int64)
        group = Grouped(short_of_code[np.searchsorted(codes, trace.name[indices])] if len(codes) else indices)
        length, of_steps = trace.end[indices] - trace.start[indices], in_steps[indices]
        totals = group.total(length)
        means = [per_step(group.total(each), count) for each in (of_steps.astype(np.int64), length * of_steps)]
        short_names = list(code_of_short)
        keys = group.keys[:, 0].tolist()
        rows += [(side, short_names[key], *numbers) for key, *numbers in
                 zip(keys, group.calls().tolist(), totals.tolist(), *means, strict=True)]  # fmt: skip
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
