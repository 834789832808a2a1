"""Operators view: operators by name, by name and shapes, and by call stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.views.answer import Answer, Column, Table

from ..read.values import lookup
from .kernels import compact
from .run import Run, ViewSelection
from .tables import Grouped, per_step, per_worker, time_table

I64 = npt.NDArray[np.int64]
_FIGURES: Final = (
    Column("calls", "Calls", "count"), Column("device_self_us", "Device self", "duration", bar=True),
    Column("device_total_us", "Device total", "duration"), Column("host_self_us", "Host self", "duration", bar=True),
    Column("host_total_us", "Host total", "duration"),
    Column("tensor_core_eligible", "Can use tensor cores", "flag", spare=3),
    Column("tensor_core_self_share", "Tensor cores self", "share", spare=2),
    Column("tensor_core_total_share", "Tensor cores total", "share", spare=1),
)  # fmt: skip
#: Means per step, of the table by name.
_PER_STEP: Final = (
    Column("calls_per_step", "Calls per step", "count", spare=8),
    Column("device_self_per_step_us", "Device self per step", "duration", spare=4),
    Column("device_total_per_step_us", "Device total per step", "duration", spare=6),
    Column("host_self_per_step_us", "Host self per step", "duration", spare=5),
    Column("host_total_per_step_us", "Host total per step", "duration", spare=7),
)  # fmt: skip


_UNLINKED: Final = "What launched the work of the device is not recorded: device times of operators are not known."


@per_worker()
def operators(selection: ViewSelection) -> Answer:
    """The operators view of one worker."""
    trace, tree = selection.run.trace, selection.run.trace.tree
    nodes = np.flatnonzero(tree.unmerged & tree.operator & selection.mask_of(tree.rows))
    rows = tree.rows[nodes]
    name = trace.name[rows].astype(np.int64)
    index = lookup(trace.operator_rows, rows)

    arguments = trace.operator_args
    shapes: dict[str, int] = {}
    dims = arguments.dims[index].astype(np.int64)
    shape_of_code = {code: shapes.setdefault(compact(arguments.texts[code]) if code >= 0 else "[]", len(shapes))
                     for code in np.unique(dims).tolist()}  # fmt: skip
    shape = np.array([shape_of_code[code] for code in dims.tolist()], np.int64)
    shape_texts = list(shapes)
    stack = arguments.stack[index].astype(np.int64)
    with_stack = stack >= 0
    by_device = bool(tree.device[0][nodes].any())
    unlinked = (_UNLINKED,) if _is_unlinked(selection.run) else ()
    return Answer(notes=(*unlinked, *selection.step_notes, *selection.replay_notes, *selection.overlap_notes), tables=(
        _table("by_name", "By name", selection, nodes, Grouped(name), by_device, [("name", "Name", trace.names)]),
        _table("by_shape", "By name and shapes", selection, nodes, Grouped(name, shape), by_device,
               [("name", "Name", trace.names), ("shape", "Shapes", shape_texts)]),
        _table("stacks", "By call stack", selection, nodes[with_stack], Grouped(name[with_stack], stack[with_stack]),
               by_device, [("name", "Name", trace.names), ("stack", "Call stack", arguments.texts)]),
    ))  # fmt: skip


def _table(
    key: str,
    title: str,
    selection: ViewSelection,
    nodes: I64,
    group: Grouped,
    by_device: bool,
    keys: list[tuple[str, str, Sequence[str]]],
) -> Table:
    tree = selection.run.trace.tree
    times = [each[nodes] for each in (*tree.device, tree.host_self, tree.host_total)]
    sums = [group.total(each) for each in times]
    columns = [
        group.calls(), *sums, group.any(tree.eligible[nodes]), _share(group.total(tree.tensor[0][nodes]), sums[0]),
        _share(group.total(tree.tensor[1][nodes]), sums[1]),
    ]  # fmt: skip
    in_steps, steps = selection.in_steps
    of_steps = in_steps[tree.rows[nodes]]
    means = [per_step(group.total(each * of_steps), steps) for each in (np.ones(len(nodes), np.int64), *times)]
    known = selection.run.tensor_cores_known
    figures = [replace(each, shown=known or not each.key.startswith("tensor_core")) for each in _FIGURES]
    names = [(Column(each, head, narrows="name" if each == "name" else ""),
              [texts[code] for code in group.keys[:, column_index].tolist()])
             for column_index, (each, head, texts) in enumerate(keys)]  # fmt: skip
    values = [column.tolist() for column in columns]
    more = zip(_PER_STEP, means, strict=True) if key == "by_name" else ()
    return time_table(key, title, [*names, *zip(figures, values, strict=True), *more], [each for each, _, _ in keys],
                      "device_self_us" if by_device else "host_self_us")  # fmt: skip


def _is_unlinked(run: Run) -> bool:
    """Whether there is device work, and nothing tells what launched any of it."""
    return bool(len(run.call)) and not bool((run.call >= 0).any() or (run.launchers.of_work >= 0).any())


def _share(part: I64, whole: I64) -> npt.NDArray[np.float64]:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
