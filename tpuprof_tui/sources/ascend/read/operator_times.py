"""Times of framework operators on host and device, as columns of the lanes that they are on."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.lane import LazyColumn, Rows

from ..recorded import ASYNC_NPU
from .kernels import Kernels, rows_of_work
from .timeline import AI_CORES, AI_CORES_OF_DATABASE, Timeline

I64 = npt.NDArray[np.int64]
#: Keys of the columns; ns. Of the device: tasks and communication operators that the operator called; total: also those
#: called by operators nested in it; aicore: kernels of AI Cores only.
KEYS: Final = ("host_self", "host_total", "device_self", "device_total", "device_self_aicore", "device_total_aicore")


class OperatorTimes:
    """Times of the operators of a timeline, computed on first use."""

    def __init__(self, timeline: Timeline, kernels: Kernels | None) -> None:
        self._timeline, self._kernels = timeline, kernels

    def columns(self, rows: slice) -> dict[str, LazyColumn]:
        """The columns of some slices; missing for those that are no operators."""
        return {key: partial(self._take, key, np.arange(rows.start, rows.stop)) for key in KEYS}

    def _take(self, key: str, rows: I64, some: Rows) -> I64:
        operators, values = self._timeline.operators, self._values.get(key)
        wanted = rows[some]
        found = np.full(len(wanted), INT_MISSING)
        if values is not None:
            index = np.minimum(np.searchsorted(operators, wanted), len(operators) - 1)
            hit = operators[index] == wanted if len(operators) else np.zeros(len(wanted), np.bool_)
            found[hit] = values[index[hit]]
        return found

    @cached_property
    def _values(self) -> dict[str, I64]:
        """Values of the columns in the order of ``Timeline.operators``; those of AI Cores only if cores are known."""
        timeline, kernels = self._timeline, self._kernels
        rows, above = timeline.operators, timeline.operator_parents
        total = timeline.end[rows] - timeline.start[rows]
        own = total.copy()
        np.subtract.at(own, above[above >= 0], total[above >= 0])
        flows = timeline.flows
        links = flows.of(ASYNC_NPU)
        links = links[(flows.from_row[links] >= 0) & (flows.to_row[links] >= 0)]
        # a task with several flows counts once
        _, first = np.unique(flows.to_row[links], return_index=True)
        links = links[np.sort(first)]
        task = flows.to_row[links]
        index_of_row = np.full(len(timeline), -1, np.int64)
        index_of_row[rows] = np.arange(len(rows))
        owner = index_of_row[flows.from_row[links]]
        known = owner >= 0
        values = {"host_self": own, "host_total": total}
        values["device_self"], values["device_total"] = _sums(owner[known], task[known], timeline, above)
        if kernels is not None and (kernels.file != timeline.file or kernels.type.texts):
            cores = AI_CORES_OF_DATABASE if kernels.file.endswith(".db") else AI_CORES
            on_cores = np.append(kernels.core.where(cores.match), False)[rows_of_work(kernels, timeline, task)] & known
            values["device_self_aicore"], values["device_total_aicore"] = _sums(
                owner[on_cores], task[on_cores], timeline, above
            )
        return values


def _sums(owner: I64, task: I64, timeline: Timeline, above: I64) -> tuple[I64, I64]:
    own = np.zeros(len(above), np.int64)
    np.add.at(own, owner, timeline.end[task] - timeline.start[task])
    finer = np.zeros(len(above))
    np.add.at(finer, owner, timeline.finer[task])
    total, more = own.copy(), finer.copy()
    # children follow their parents
    for index in np.flatnonzero(above >= 0)[::-1].tolist():
        if total[index]:
            total[above[index]] += total[index]
            more[above[index]] += more[index]
    return own + np.rint(finer).astype(np.int64), total + np.rint(more).astype(np.int64)
