"""What the table holds, grouped by a column: labels of the groups, and the filter that leaves one of them."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import numpy as np
from msgspec import Struct

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model import Column, Lane, Role
from tpuprof_tui.model.lane import Rows, row_numbers

from ..compare.operation_names import renamed_operations
from ..index.ordering import column_values, lane_rows
from ..totals.groups import Array, Groups, even_edges, grouped, in_ranges, wide_edges
from .cell_texts import value_text
from .filter_masks import numbers_shown
from .session import Ints, Session
from .state import DisplayState

#: Instructions looked at together while names are sought.
_AT_ONCE: Final = 65_536
#: From this many different numbers on they are put into ranges.
MANY: Final = 60
#: Columns whose values lie evenly: times, places, addresses. Others span orders of magnitude.
_EVEN: Final = ("start", "end", "order", "command_id", "scope", "batch", "step")
#: What one groups by, in the order one key goes through them; after these it begins anew.
GROUPINGS: Final = ("name", "kernel", "type", "core", "engine", "step")


class GroupTable(Struct, frozen=True, eq=False):
    """Groups of instructions by a column.

    Attributes:
        column: The column.
        groups: Count, total, ... of each group.
        labels: Text of each group, clean.
        conditions: Filter that leaves just one group, for each.
        rows: Instructions grouped.
        work_only: Whether waits and other system commands are left out.
        base: int64 ns, total of each group in the profile that this one is compared with; None: nothing to compare.
    """

    column: Column
    groups: Groups
    labels: tuple[str, ...]
    conditions: tuple[str, ...]
    rows: int
    work_only: bool
    base: Ints | None = None

    @property
    def delta(self) -> Ints:
        """ns, by how much each group took longer than in the base."""
        return self.groups.total - (0 if self.base is None else self.base)


def knows_names(session: Session) -> bool:
    """Whether any work has a name; without commands only waits may have one. O(instructions) where none has."""
    return any(
        bool(((lane.take("name", rows) >= 0) & (lane.take("role", rows) == Role.WORK)).any())
        for lane in session.profile.lanes
        if "name" in lane
        for rows in (slice(first, first + _AT_ONCE) for first in range(0, len(lane), _AT_ONCE))
    )


def group_table(
    session: Session, state: DisplayState, key: str, *, work_only: bool, base: DisplayState | None = None
) -> GroupTable:
    """Groups what the table holds in a state by a column, of numbers that differ much in ranges. O(instructions).

    ``base``: the same state of what this is compared with: groups have a total of each side, by what they are called.
    """
    column = session.profile.vocabulary.schema[key]
    values, durations = _grouped_columns(session, state, key, work_only=work_only)
    groups = grouped(values, durations)
    edges: list[float] = []
    if column.kind != "text" and len(groups) > MANY:
        known = groups.values[~groups.missing]
        edges = _edges(column, float(known[0]), float(known[-1]))
        groups = grouped(in_ranges(values, edges), durations)
    labels, conditions = _told(session, column, groups, edges)
    if base is None or session.baseline is None:
        return GroupTable(column, groups, tuple(labels), tuple(conditions), len(durations), work_only)
    values, lengths = _grouped_columns(session.baseline, base, key, work_only=work_only)
    theirs = grouped(in_ranges(values, edges) if edges else values, lengths)
    names, filters = _told(session.baseline, column, theirs, edges)
    if key == "name":
        called = renamed_operations(session.profile, session.baseline.profile)
        here = {clean(there): clean(own) for there, own in called.items()}
        names = [here.get(name, name) for name in names]
    totals: dict[str, int] = {}
    for name, total in zip(names, theirs.total.tolist(), strict=True):
        totals[name] = totals.get(name, 0) + total
    mine = set(labels)
    gone = [place for place, name in enumerate(names) if name not in mine]
    none = np.zeros(len(gone), np.int64)
    groups = Groups(
        np.append(groups.values, theirs.values[gone]),
        *(np.append(each, none) for each in (groups.count, groups.total, groups.longest)),
    )
    labels += [names[place] for place in gone]
    conditions += [filters[place] for place in gone]
    told: dict[str, int] = {name: place for place, name in reversed(list(enumerate(labels)))}
    # two groups of one name share a total: the first has it
    base_total = np.array(
        [totals.get(name, 0) if told[name] == place else 0 for place, name in enumerate(labels)], np.int64
    )
    return GroupTable(column, groups, tuple(labels), tuple(conditions), len(durations), work_only, base_total)


def _grouped_columns(session: Session, state: DisplayState, key: str, *, work_only: bool) -> tuple[Array, Ints]:
    """Values and durations, ns, of what is grouped."""
    profile = session.profile
    chosen = list(lane_rows(profile, session.offsets, numbers_shown(session, state)))
    if work_only:
        chosen = [(lane, _at_work(lane, rows)) for lane, rows in chosen]
    durations = [lane.take("end", rows) - lane.take("start", rows) for lane, rows in chosen]
    return column_values(profile, key, chosen), np.concatenate([np.zeros(0, np.int64), *durations])


def _told(session: Session, column: Column, groups: Groups, edges: list[float]) -> tuple[list[str], list[str]]:
    """Label of each group, and the filter that leaves it."""
    table, key = session.profile.strings[column.key] if column.kind == "text" else (), column.key
    same = Counter(text.lower() for text in table)
    labels, conditions = [], []
    for value, gone in zip(groups.values.tolist(), groups.missing.tolist(), strict=True):
        if gone:
            # what is missing passes no condition: it is what does not pass one that everything else passes
            label, condition = "-", f"!{key}=*" if column.kind == "text" else f"!{key}>=-9e99"
        elif column.kind == "text":
            text = table[int(value)]
            label, condition = clean(text) or "(empty)", text_condition(key, text, alone=same[text.lower()] < 2)
        elif edges:
            low, high = edges[int(value)], edges[int(value) + 1]
            label = f"{_edge_text(column, low)} to {_edge_text(column, high)}"
            low, high = (int(edge) if edge == int(edge) else edge for edge in (low, high))
            condition = f"{key}>={low!r} {key}<{high!r}"
        else:
            label, condition = value_text(column, value), f"{key}={value!r}"
        labels.append(label)
        conditions.append(condition)
    return labels, conditions


def _edges(column: Column, low: float, high: float) -> list[float]:
    """Edges of ranges that suit a column."""
    if column.kind == "hex" or column.key in _EVEN or low < 0:
        return even_edges(low, high)
    if column.kind != "int":
        return wide_edges(low, high)
    edges = wide_edges(max(low, 1), high)
    return edges if edges[0] <= low else [0.0, *edges]


def _at_work(lane: Lane, rows: Rows) -> Rows:
    work = lane.take("role", rows) == Role.WORK
    if bool(work.all()):
        return rows
    return np.asarray(row_numbers(rows)[work])


def text_condition(key: str, text: str, *, alone: bool = True) -> str:
    """The filter that only one text of a column passes; what cannot be typed or quoted stands as ``?``, any character.

    ``alone``: no other text differs from it by capitals alone.
    """
    exact_case = any(letter.isupper() for letter in text)
    if not alone and not exact_case:
        pattern = "".join("." if letter == '"' or _untypable(letter) else re.escape(letter) for letter in text)
        return f'{key}~"(?-i:^{pattern}$)"'
    glob = "".join("?" if _untypable(letter) else f"[{letter}]" if letter in "*?[" else letter for letter in text)
    plain = re.fullmatch(r"[A-Za-z0-9_./:*?\[\]<>=+-]+", glob) is not None
    if plain and glob[0] not in "=~":
        return f"{key}={glob}"
    if "'" in glob:
        glob = glob.replace('"', "?")
    return f"{key}='{glob}'" if '"' in glob else f'{key}="{glob}"'


def _untypable(letter: str) -> bool:
    return clean(letter) != letter


def _edge_text(column: Column, edge: float) -> str:
    if column.kind == "hex":
        return f"{int(edge):#x}"
    return f"{int(edge):,}" if edge == int(edge) else f"{edge:,g}"
