"""Modules view: the tree of nn.Modules, with host time and the device time of their operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpuprof_tui.analysis.selecting.grouping import text_condition
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Fact, Table, Target
from tpuprof_tui.views.query import Query

from ..read.steps import MODULE
from ..read.values import lookup
from ..vocabulary import MODULES
from .run import Run, ViewSelection
from .tables import not_narrowed, of_workers

_COLUMNS = (
    Column("depth", "Depth", "count"), Column("name", "Module"), Column("id", "Id", "count"),
    Column("occurrences", "Times", "count"), Column("operators", "Operators", "count"),
    Column("host_total_us", "Host total", "duration", bar=True), Column("host_self_us", "Host self", "duration"),
    Column("device_total_us", "Device total", "duration", bar=True),
    Column("device_self_us", "Device self", "duration"),
)  # fmt: skip


def modules(query: Query) -> Answer:
    """The modules view."""
    # always of whole workers
    found = query.cache.get("modules", lambda: of_workers(query, _modules, MODULES), query.top_group)
    return not_narrowed(query, found, "Modules")


def module_facts(query: Query) -> tuple[Fact, ...]:
    """Number of distinct modules; decodes only the arguments of module frames."""
    return of_workers(query, _counted, MODULES).facts


def _counted(selection: ViewSelection) -> Answer:
    trace, tree = selection.run.trace, selection.run.trace.tree
    rows = tree.rows[tree.unmerged & tree.module]
    ids = trace.frame_ids_at(rows).module
    pairs = zip(trace.name[rows].tolist(), np.where(ids == INT_MISSING, 0, ids).tolist(), strict=True)
    return Answer((Fact("modules", "Modules", len(set(pairs))),))


def _modules(selection: ViewSelection) -> Answer:
    run = selection.run
    figures, module_of = _figures(run)
    rows: list[tuple[Any, ...]] = []
    waiting = [(0, node) for node in reversed(_trees(run, module_of))]
    while waiting:
        depth, (key, children) = waiting.pop()
        rows.append((depth, *key, *figures[key]))
        waiting += [(depth + 1, child) for child in reversed(children)]

    def target(row: int) -> Target:
        return Target(condition=text_condition("name", f"{MODULE}{rows[row][1]}"))

    table = Table.of_rows("modules", "Modules", _COLUMNS, rows, target=target)
    return Answer((Fact("modules", "Modules", len(figures)),), (table,), notes=selection.replay_notes)


def _figures(run: Run) -> tuple[dict[tuple[str, int], list[int]], dict[int, tuple[str, int]]]:
    """Sums of each module (name, id) over its occurrences, and the module of each frame's row."""
    trace, tree = run.trace, run.trace.tree
    nodes = np.flatnonzero(tree.unmerged & tree.module)
    index = lookup(trace.frame_rows, tree.rows[nodes])
    ids = trace.frame_ids.module[index]
    module_of: dict[int, tuple[str, int]] = {}
    number_of: dict[tuple[str, int], int] = {}
    module_codes = np.zeros(len(nodes), np.int64)
    for n, (row, number) in enumerate(zip(tree.rows[nodes].tolist(), ids.tolist(), strict=True)):
        module = (trace.names[trace.name[row]][len(MODULE) :], 0 if number == INT_MISSING else number)
        module_of[row] = module
        module_codes[n] = number_of.setdefault(module, len(number_of))
    inner = np.flatnonzero(tree.unmerged & tree.operator & (tree.parent >= 0))
    operators, device_self = np.zeros(len(tree.rows), np.int64), np.zeros(len(tree.rows), np.int64)
    np.add.at(operators, tree.parent[inner], 1)
    np.add.at(device_self, tree.parent[inner], tree.device[1][inner])
    # device time of all descendants, without the module's own launches
    device_total = tree.device[1] - tree.device[0]
    columns = (np.ones(len(tree.rows), np.int64), operators, tree.host_total, tree.host_self_without_children,
               device_total, device_self)  # fmt: skip
    sums = np.zeros((len(columns), len(number_of)), np.int64)
    for values, total in zip(columns, sums, strict=True):
        np.add.at(total, module_codes, values[nodes])
    return {module: sums[:, number].tolist() for module, number in number_of.items()}, module_of


def _trees(run: Run, module_of: dict[int, tuple[str, int]]) -> list[Any]:
    """Nested (module, children): parents by the chain of Python ids; equal roots merged, sorted by name."""
    trace = run.trace
    rows, ids = trace.frame_rows, trace.frame_ids.id
    # of frames with the same id the last one is used
    distinct_ids, last = np.unique(ids[::-1], return_index=True)
    parent = lookup(distinct_ids, trace.frame_ids.parent, len(ids) - 1 - last)
    parent[trace.frame_ids.parent == INT_MISSING] = -1
    module = np.isin(rows, list(module_of))
    # nearest module up the chain, by pointer doubling; modules point to themselves
    above = np.append(np.where(module, np.arange(len(rows)), parent), -1)
    for _ in range(len(above).bit_length()):
        above = above[above]
    frames = np.flatnonzero(module)
    frames = frames[np.argsort(trace.start[rows[frames]], kind="stable")]
    nodes: dict[int, tuple[tuple[str, int], list[Any]]] = {n: (module_of[int(rows[n])], []) for n in frames.tolist()}
    roots: list[Any] = []
    for n, at in zip(frames.tolist(), above[parent[frames]].tolist(), strict=True):
        # a cycle of ids leads to no module
        (nodes[at][1] if at in nodes and at != n else roots).append(nodes[n])
    distinct: dict[str, Any] = {}
    for root in roots:
        distinct.setdefault(_text(root), root)
    return sorted(distinct.values(), key=lambda node: node[0])


def _text(root: Any) -> str:
    """A tree as a text: equal for equal trees."""
    parts, waiting = [], [(0, root)]
    while waiting:
        depth, (module, children) = waiting.pop()
        parts.append(f"{depth} {module}")
        waiting += [(depth + 1, child) for child in reversed(children)]
    return "\n".join(parts)
