"""Names by which the timeline can be coloured: operators and nn.Modules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.views.query import Query

from ..read.steps import MODULE
from .run import I64, Run, runs_of

I32 = npt.NDArray[np.int32]


def by_operator(session: Session) -> tuple[list[str], list[I32]]:
    """Colours by operator: of device work its launching operator; of thread events the operator they belong to."""
    return _named(session, _operators)


def by_module(session: Session) -> tuple[list[str], list[I32]]:
    """Colours by the nearest nn.Module above the event's operator."""
    return _named(session, _modules)


def _operators(run: Run) -> I64:
    """For each event the row of its operator; -1 if none."""
    found = np.array(run.launchers.of_call)
    operators = np.flatnonzero(run.launchers.operators)
    found[operators] = operators
    found[run.trace.work_rows] = run.launchers.of_work
    return found


def _modules(run: Run) -> I64:
    """For each event the row of the nearest module above its operator; modules themselves; -1 if none."""
    tree = run.trace.tree
    modules = np.flatnonzero(tree.module)
    found = _operators(run)
    found[tree.rows[modules]] = tree.rows[modules]
    above = np.append(tree.parent, -1)
    above[modules] = modules
    while ((further := above[above]) != above).any():
        above = further
    return np.asarray(np.append(tree.rows, -1)[above[tree.at(found)]])


def _named(session: Session, rows_of: Callable[[Run], I64]) -> tuple[list[str], list[I32]]:
    """Names by falling device time, then thread time; and for each lane the name's index for each row, -1: none."""
    profile = session.profile
    codes: dict[str, int] = {}
    numbers = [np.full(len(lane), -1, np.int32) for lane in profile.lanes]
    times = np.zeros((2, 0))
    for run in runs_of(Query(session)):
        trace, rows = run.trace, rows_of(run)
        known = np.flatnonzero(rows >= 0)
        name_codes = trace.name[rows[known]]
        used_codes = np.flatnonzero(np.bincount(name_codes))
        labels = (trace.names[name].removeprefix(MODULE) for name in used_codes.tolist())
        colour_of_name = np.zeros(len(trace.names), np.int32)
        colour_of_name[used_codes] = [codes.setdefault(name, len(codes)) for name in labels]
        found = np.full(len(trace), -1, np.int32)
        found[known] = colour_of_name[name_codes]
        times = np.pad(times, ((0, 0), (0, len(codes) - times.shape[1])))
        on_device = np.zeros(len(trace), np.bool_)
        on_device[trace.work_rows] = True
        for side, side_mask in zip(times, (on_device, ~on_device), strict=True):
            chosen = known[side_mask[known]]
            side += np.bincount(found[chosen], trace.end[chosen] - trace.start[chosen], len(codes))
        for lane, rows_of_lane in run.worker.lane_rows.items():
            numbers[lane] = profile.arrays.stored(found[rows_of_lane])
    order = np.lexsort(-times[::-1])
    rank = np.append(np.argsort(order), -1).astype(np.int32)
    texts = list(codes)
    return [texts[code] for code in order.tolist()], [profile.arrays.stored(rank[each]) for each in numbers]
