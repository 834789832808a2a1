"""Groups the instructions of the table by a column, with a label and a filter for each group."""

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

#: Instructions per chunk when searching for any name.
_AT_ONCE: Final = 65_536
#: Above this number of distinct values, numbers are grouped into ranges.
MANY: Final = 60
#: Columns with evenly distributed values (times, positions, addresses). Others span orders of magnitude.
_EVEN: Final = ("start", "end", "order", "command_id", "scope", "batch", "step")
#: Columns to group by, in the order in which the key cycles through them.
GROUPINGS: Final = ("name", "kernel", "type", "core", "engine", "step")


class GroupTable(Struct, frozen=True, eq=False):
    """Groups of instructions by a column.

    Attributes:
        column: The column.
        groups: Count, total, ... of each group.
        labels: Cleaned label of each group.
        conditions: Filter that selects exactly one group, for each.
        rows: Number of instructions grouped.
        work_only: Whether waits and other system commands are excluded.
        base: Total of each group in the baseline, int64 ns; None: no baseline.
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
        """Total of each group minus its total in the baseline, ns."""
        return self.groups.total - (0 if self.base is None else self.base)


def knows_names(session: Session) -> bool:
    """Whether any work has a name; a capture without commands names only waits. O(instructions) if none has."""
    return any(
        bool(((lane.take("name", rows) >= 0) & (lane.take("role", rows) == Role.WORK)).any())
        for lane in session.profile.lanes
        if "name" in lane
        for rows in (slice(first, first + _AT_ONCE) for first in range(0, len(lane), _AT_ONCE))
    )


def group_table(
    session: Session, state: DisplayState, key: str, *, work_only: bool, base: DisplayState | None = None
) -> GroupTable:
    """Groups the instructions of the table by a column, numbers with many distinct values by range. O(instructions).

    ``base``: the state of the baseline; groups are then matched by label and have a total of each side.
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
    # the total of a label that two groups share is given to the first of them
    base_total = np.array(
        [totals.get(name, 0) if told[name] == place else 0 for place, name in enumerate(labels)], np.int64
    )
    return GroupTable(column, groups, tuple(labels), tuple(conditions), len(durations), work_only, base_total)


def _grouped_columns(session: Session, state: DisplayState, key: str, *, work_only: bool) -> tuple[Array, Ints]:
    """Values of the column and durations (ns) of the instructions to group."""
    profile = session.profile
    chosen = list(lane_rows(profile, session.offsets, numbers_shown(session, state)))
    if work_only:
        chosen = [(lane, _at_work(lane, rows)) for lane, rows in chosen]
    durations = [lane.take("end", rows) - lane.take("start", rows) for lane, rows in chosen]
    return column_values(profile, key, chosen), np.concatenate([np.zeros(0, np.int64), *durations])


def _told(session: Session, column: Column, groups: Groups, edges: list[float]) -> tuple[list[str], list[str]]:
    """Label of each group, and the filter that selects it."""
    table, key = session.profile.strings[column.key] if column.kind == "text" else (), column.key
    same = Counter(text.lower() for text in table)
    labels, conditions = [], []
    for value, gone in zip(groups.values.tolist(), groups.missing.tolist(), strict=True):
        if gone:
            # missing values pass no condition: negate one that every known value passes
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
    """Edges of ranges for a column: evenly or logarithmically spaced."""
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
    """The filter that only one text of a column passes; characters that cannot be typed or quoted become ``?``.

    ``alone``: no other text of the column differs from it only in case.
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
