"""View of call paths: time by path as a tree of groups, callers and callees."""

from __future__ import annotations

import numpy as np

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filter_masks import with_condition
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.call_stacks import CallTree, Labels, call_stacks
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.model import Role
from tpuprof_tui.model.uniques import uniques

from .answer import Answer, Column, Table, Target

#: Separator of the names in a path; a comma replaces it inside names.
SEPARATOR = ";"


def call_tree_view(query: Query) -> Answer:
    """One row per call path, in depth-first order; siblings by total time, longest first."""
    tree, labels = tree_of(query)
    names = [labels.decode(label) for label in tree.label.tolist()]
    total = int(tree.own.sum())
    columns = (
        Column("path", "Path", shown=False), Column("depth", "Depth", "count", shown=False),
        Column("total_us", "Total", "duration", bar=True), Column("self_us", "Self", "duration", drop_first=1),
        Column("share", "Share", "share"), Column("count", "Count", "count", drop_first=2), Column("name", "Name"),
    )  # fmt: skip
    values = (
        paths(tree, labels), tree.depth, tree.total, tree.own,
        tree.total / total if total else np.full(len(tree), np.nan), tree.count, [text for _, text, _ in names],
    )  # fmt: skip

    def target(row: int) -> Target | None:
        key, text, code = names[row]
        if not key:
            return Target(scope=Scope(code))
        if code < 0:
            return None
        above = int(tree.parent[row])
        condition = text_condition(key, text)
        if above >= 0 and names[above][0] not in ("", key) and names[above][2] >= 0:
            condition = with_condition(text_condition(*names[above][:2]), condition)
        return Target(condition=condition)

    table = Table(
        "calltree", "Call paths", columns, values, target=target, depth=tree.depth, word="path",
        notes=(query.vocabulary.say("Total: {events} of the path and of all it calls; self: without those it calls. "
                                    "Count: {events}."),),
    )  # fmt: skip
    return Answer(tables=(table,))


def tree_of(query: Query) -> tuple[CallTree, Labels]:
    """The call tree of a query's work, and its labels."""
    lanes = [number for number in query.lanes if number == query.scope.lane or query.profile.lanes[number].counted]
    keys = ("lane", "row", "group", "start", "end", *Labels(query.profile).keys)
    return call_stacks(query.session, (query.events(keys, (number,), role=Role.WORK) for number in lanes))


def paths(tree: CallTree, labels: Labels) -> list[str]:
    """Path of each node from the root, joined by ``;``; names are cleaned of that and of line breaks."""
    names = {
        label: line_text(labels.decode(label)[1]).replace(SEPARATOR, ",") for label in uniques(tree.label).tolist()
    }
    found: list[str] = []
    for above, label in zip(tree.parent.tolist(), tree.label.tolist(), strict=True):
        name = names[label] or "-"
        found.append(f"{found[above]}{SEPARATOR}{name}" if above >= 0 else name)
    return found
