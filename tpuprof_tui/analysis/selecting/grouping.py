"""What the table holds, grouped by a column: labels of the groups, and the filter that leaves one of them."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from msgspec import Struct

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model import INT_MISSING, Column, Lane, Role, is_missing
from tpuprof_tui.model.lane import Rows

from ..compare.operation_names import renamed_operations
from ..totals.groups import Array, Groups, even_edges, grouped, in_ranges, wide_edges
from .cell_texts import value_text
from .filter_masks import numbers_shown
from .session import Ints, Session, lane_values
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
    """Groups what the table holds in a state.

    Args:
        session: All instructions.
        state: Scope, filter and window are respected.
        key: Column to group by.
        work_only: Whether only work counts.
        base: The same state of the profile that this one is compared with: groups of both have a total of each side,
            by what they are called. None: nothing is compared.

    Returns:
        The groups, of numbers that differ much in ranges. O(instructions).
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
    groups = Groups(np.append(groups.values, theirs.values[gone]), *(
        np.append(each, none) for each in (groups.count, groups.total, groups.longest)
    ))  # fmt: skip
    labels += [names[place] for place in gone]
    conditions += [filters[place] for place in gone]
    told: dict[str, int] = {name: place for place, name in reversed(list(enumerate(labels)))}
    # two groups of one name share a total: the first has it
    base_total = np.array([totals.get(name, 0) if told[name] == place else 0 for place, name in enumerate(labels)],
                          np.int64)  # fmt: skip
    return GroupTable(column, groups, tuple(labels), tuple(conditions), len(durations), work_only, base_total)


def _grouped_columns(session: Session, state: DisplayState, key: str, *, work_only: bool) -> tuple[Array, Ints]:
    """Values and durations, ns, of what is grouped."""
    chosen = _chosen(session, numbers_shown(session, state))
    if work_only:
        chosen = [(lane, _at_work(lane, rows)) for lane, rows in chosen]
    durations = _joined([lane.take("end", rows) - lane.take("start", rows) for lane, rows in chosen])
    return _column(session, key, chosen, text=session.profile.vocabulary.is_text(key)), durations


def _told(session: Session, column: Column, groups: Groups, edges: list[float]) -> tuple[list[str], list[str]]:
    """Label of each group, and the filter that leaves it."""
    if column.kind == "text":
        return _text_groups(session, column, groups)
    pairs = _pairs(groups)
    if edges:
        return ([_range_label(column, edges, place, gone) for place, gone in pairs],
                [_range_condition(column.key, edges, place, gone) for place, gone in pairs])  # fmt: skip
    return ([_number_label(column, value, gone) for value, gone in pairs],
            [_number_condition(column.key, value, gone) for value, gone in pairs])  # fmt: skip


def _edges(column: Column, low: float, high: float) -> list[float]:
    """Edges of ranges that suit a column."""
    if column.kind == "hex" or column.key in _EVEN or low < 0:
        return even_edges(low, high)
    if column.kind != "int":
        return wide_edges(low, high)
    edges = wide_edges(max(low, 1), high)
    return edges if edges[0] <= low else [0.0, *edges]


def _pairs(groups: Groups) -> list[tuple[float, bool]]:
    return list(zip(groups.values.tolist(), groups.missing.tolist(), strict=True))


def _chosen(session: Session, numbers: Ints) -> list[tuple[Lane, Rows]]:
    """The lanes that instructions (ascending) lie on, with their rows: whole lanes as slices, which copy nothing."""
    bounds = np.searchsorted(numbers, session.offsets).tolist()
    chosen: list[tuple[Lane, Rows]] = []
    for number, lane in enumerate(session.profile.lanes):
        first, last = bounds[number], bounds[number + 1]
        whole = last - first == len(lane)
        rows: Rows = slice(0, len(lane)) if whole else numbers[first:last] - session.offsets[number]
        if last > first:
            chosen.append((lane, rows))
    return chosen


def _at_work(lane: Lane, rows: Rows) -> Rows:
    work = lane.take("role", rows) == Role.WORK
    if bool(work.all()):
        return rows
    return np.flatnonzero(work) if isinstance(rows, slice) else rows[work]


def _column(session: Session, key: str, chosen: list[tuple[Lane, Rows]], *, text: bool) -> Array:
    """Values of a column, codes of text columns; -1 or INT_MISSING where nothing is known."""
    parts: list[Array] = []
    for lane, rows in chosen:
        values = lane_values(session.profile, lane, key, rows)
        if values is None:
            count = len(lane.take("start", rows))
            values = np.full(count, -1, np.int32) if text else np.full(count, INT_MISSING, np.int64)
        parts.append(values)
    if any(part.dtype.kind == "f" for part in parts):
        parts = [
            part if part.dtype.kind == "f" else np.where(is_missing(part), np.nan, part.astype(np.float64))
            for part in parts
        ]
    return _joined(parts)


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


# text


def _text_groups(session: Session, column: Column, groups: Groups) -> tuple[list[str], list[str]]:
    table = session.profile.strings[column.key]
    same: dict[str, int] = {}
    for text in table:
        same[text.lower()] = same.get(text.lower(), 0) + 1
    texts = [table[int(code)] if not gone else None for code, gone in _pairs(groups)]
    labels = ["-" if text is None else clean(text) or "(empty)" for text in texts]
    conditions = [
        f"!{column.key}=*" if text is None else text_condition(column.key, text, alone=same.get(text.lower(), 0) < 2)
        for text in texts
    ]
    return labels, conditions


def text_condition(key: str, text: str, *, alone: bool = True) -> str:
    """The filter that only one text of a column passes.

    Args:
        key: The column's key.
        text: The text; what cannot be typed or quoted stands as ``?``, any one character.
        alone: False where another text differs from it by capitals alone.
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


# numbers


def _number_label(column: Column, value: float, gone: bool) -> str:
    return "-" if gone else value_text(column, value)


def _number_condition(key: str, value: float, gone: bool) -> str:
    # what is missing passes no condition: it is what does not pass one that every number passes
    return f"!{key}>=-9e99" if gone else f"{key}={value!r}"


def _range_label(column: Column, edges: list[float], place: float, gone: bool) -> str:
    if gone:
        return "-"
    low, high = edges[int(place)], edges[int(place) + 1]
    return f"{_edge_text(column, low)} to {_edge_text(column, high)}"


def _edge_text(column: Column, edge: float) -> str:
    if column.kind == "hex":
        return f"{int(edge):#x}"
    return f"{int(edge):,}" if edge == int(edge) else f"{edge:,g}"


def _range_condition(key: str, edges: list[float], place: float, gone: bool) -> str:
    if gone:
        return f"!{key}>=-9e99"
    low, high = edges[int(place)], edges[int(place) + 1]
    return f"{key}>={_plain(low)} {key}<{_plain(high)}"


def _plain(edge: float) -> str:
    return str(int(edge)) if edge == int(edge) else repr(edge)
