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
from .run import Asked, Run
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
    found = query.derived.get("modules", lambda: of_workers(query, _modules, MODULES), query.top_group)
    return not_narrowed(query, found, "Modules")


def module_facts(query: Query) -> tuple[Fact, ...]:
    """Number of distinct modules; decodes only the arguments of module frames."""
    return of_workers(query, _counted, MODULES).facts


def _counted(asked: Asked) -> Answer:
    trace, tree = asked.run.trace, asked.run.tree
    rows = tree.rows[tree.stays & tree.module]
    ids = trace.frame_ids_at(rows).module
    known = zip(trace.name[rows].tolist(), np.where(ids == INT_MISSING, 0, ids).tolist(), strict=True)
    return Answer((Fact("modules", "Modules", len(set(known))),))


def _modules(asked: Asked) -> Answer:
    run = asked.run
    figures, known = _figures(run)
    rows: list[tuple[Any, ...]] = []
    waiting = [(0, node) for node in reversed(_trees(run, known))]
    while waiting:
        depth, (key, children) = waiting.pop()
        rows.append((depth, *key, *figures[key]))
        waiting += [(depth + 1, child) for child in reversed(children)]

    def target(row: int) -> Target:
        return Target(condition=text_condition("name", f"{MODULE}{rows[row][1]}"))

    table = Table.of_rows("modules", "Modules", _COLUMNS, rows, target=target)
    return Answer((Fact("modules", "Modules", len(figures)),), (table,), notes=asked.replays)


def _figures(run: Run) -> tuple[dict[tuple[str, int], list[int]], dict[int, tuple[str, int]]]:
    """Sums of each module (name, id) over its occurrences, and the module of each frame's row."""
    trace, tree = run.trace, run.tree
    nodes = np.flatnonzero(tree.stays & tree.module)
    place = lookup(trace.frame_rows, tree.rows[nodes])
    ids = trace.frame_ids.module[place]
    keys: dict[int, tuple[str, int]] = {}
    number_of: dict[tuple[str, int], int] = {}
    code = np.zeros(len(nodes), np.int64)
    for n, (row, number) in enumerate(zip(tree.rows[nodes].tolist(), ids.tolist(), strict=True)):
        key = (trace.names[trace.name[row]][len(MODULE) :], 0 if number == INT_MISSING else number)
        keys[row] = key
        code[n] = number_of.setdefault(key, len(number_of))
    inner = np.flatnonzero(tree.stays & tree.operator & (tree.parent >= 0))
    operators, device_self = np.zeros(len(tree.rows), np.int64), np.zeros(len(tree.rows), np.int64)
    np.add.at(operators, tree.parent[inner], 1)
    np.add.at(device_self, tree.parent[inner], tree.device[1][inner])
    # device time of all descendants, without the module's own launches
    device_total = tree.device[1] - tree.device[0]
    columns = (np.ones(len(tree.rows), np.int64), operators, tree.host_total, tree.host_self_without_children,
               device_total, device_self)  # fmt: skip
    sums = np.zeros((len(columns), len(number_of)), np.int64)
    for values, total in zip(columns, sums, strict=True):
        np.add.at(total, code, values[nodes])
    return {key: sums[:, number].tolist() for key, number in number_of.items()}, keys


def _trees(run: Run, known: dict[int, tuple[str, int]]) -> list[Any]:
    """Nested (module, children): parents by the chain of Python ids; equal roots merged, sorted by name."""
    trace = run.trace
    rows, ids = trace.frame_rows, trace.frame_ids.id
    # of frames with the same id the last one is used
    distinct_ids, last = np.unique(ids[::-1], return_index=True)
    parent = lookup(distinct_ids, trace.frame_ids.parent, len(ids) - 1 - last)
    parent[trace.frame_ids.parent == INT_MISSING] = -1
    module = np.isin(rows, list(known))
    # nearest module up the chain, by pointer doubling; modules point to themselves
    above = np.append(np.where(module, np.arange(len(rows)), parent), -1)
    for _ in range(len(above).bit_length()):
        above = above[above]
    shown = np.flatnonzero(module)
    shown = shown[np.argsort(trace.start[rows[shown]], kind="stable")]
    nodes: dict[int, tuple[tuple[str, int], list[Any]]] = {n: (known[int(rows[n])], []) for n in shown.tolist()}
    roots: list[Any] = []
    for n, at in zip(shown.tolist(), above[parent[shown]].tolist(), strict=True):
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
        depth, (key, children) = waiting.pop()
        parts.append(f"{depth} {key}")
        waiting += [(depth + 1, child) for child in reversed(children)]
    return "\n".join(parts)
