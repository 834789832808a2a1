"""What the table holds, grouped by a column: labels of the groups, and the filter that leaves one of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..analysis.groups import Array, Groups, even_edges, grouped, in_ranges, wide_edges
from ..model import INT_MISSING, SCHEMA, Column, Role, is_missing
from ..model.lane import Rows
from .celltext import value_text
from .filtering import numbers_shown
from .format import clean
from .session import Ints, Session, lane_values
from .state import ViewState

#: From this many different numbers on they are put into ranges.
MANY: Final = 60
#: Columns whose values lie evenly: times, places, addresses. Others span orders of magnitude.
_EVEN: Final = ("start", "end", "order", "command_id", "scope", "batch")
#: What one groups by, in the order one key goes through them; after these it begins anew.
GROUPINGS: Final = ("name", "kernel", "type", "core", "engine")


@dataclass(frozen=True, eq=False)
class GroupTable:
    """Groups of instructions by a column.

    Attributes:
        column: The column.
        groups: Count, total, ... of each group.
        labels: Text of each group, clean.
        conditions: Filter that leaves just one group, for each.
        rows: Instructions grouped.
        work_only: Whether waits and other system commands are left out.
    """

    column: Column
    groups: Groups
    labels: tuple[str, ...]
    conditions: tuple[str, ...]
    rows: int
    work_only: bool


def group_table(session: Session, view: ViewState, key: str, *, work_only: bool) -> GroupTable:
    """Groups what the table holds in a state.

    Args:
        session: All instructions.
        view: Scope, filter and window are respected.
        key: Column to group by.
        work_only: Whether only work counts.

    Returns:
        The groups, of numbers that differ much in ranges. O(instructions).
    """
    column = SCHEMA[key]
    numbers = numbers_shown(session, view)
    if work_only:
        numbers = numbers[_column(session, "role", numbers) == Role.WORK]
    durations = _column(session, "end", numbers) - _column(session, "start", numbers)
    if key == "engine" and key not in session.profile.strings:
        return _by_lane_engine(session, column, numbers, durations, work_only)
    values = _column(session, key, numbers)
    groups = grouped(values, durations)
    if column.kind == "text":
        labels, conditions = _text_groups(session, column, groups)
    elif len(groups) <= MANY:
        labels = [_number_label(column, value, gone) for value, gone in _pairs(groups)]
        conditions = [_number_condition(key, value, gone) for value, gone in _pairs(groups)]
    else:
        known = groups.values[~groups.missing]
        edges = _edges(column, float(known[0]), float(known[-1]))
        groups = grouped(in_ranges(values, edges), durations)
        labels = [_range_label(column, edges, place, gone) for place, gone in _pairs(groups)]
        conditions = [_range_condition(key, edges, place, gone) for place, gone in _pairs(groups)]
    return GroupTable(column, groups, tuple(labels), tuple(conditions), len(numbers), work_only)


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


def _column(session: Session, key: str, numbers: Ints) -> Array:
    """Values of a column for instructions in ascending order; codes of text columns, -1 where nothing is known."""
    bounds = np.searchsorted(numbers, session.offsets)
    text = key in SCHEMA and SCHEMA[key].kind == "text"
    parts: list[Array] = []
    for number, lane in enumerate(session.profile.lanes):
        rows = numbers[bounds[number] : bounds[number + 1]] - session.offsets[number]
        if len(rows):
            wanted: Rows = slice(0, len(lane)) if len(rows) == len(lane) else rows
            values = lane_values(lane, key, wanted)
            nothing = np.full(len(rows), -1, np.int32) if text else np.full(len(rows), INT_MISSING, np.int64)
            parts.append(nothing if values is None else values)
    if any(part.dtype.kind == "f" for part in parts):
        parts = [
            part if part.dtype.kind == "f" else np.where(is_missing(part), np.nan, part.astype(np.float64))
            for part in parts
        ]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _by_lane_engine(session: Session, column: Column, numbers: Ints, durations: Ints, work_only: bool) -> GroupTable:
    """Groups by the engines of the lanes, where instructions do not name theirs."""
    engines = sorted({lane.engine for lane in session.profile.lanes})
    codes = np.array([engines.index(lane.engine) for lane in session.profile.lanes], np.int64)
    lanes = np.searchsorted(session.offsets, numbers, side="right") - 1
    groups = grouped(codes[lanes] if len(codes) else numbers, durations)
    labels = tuple(clean(engines[int(code)]) for code in groups.values.tolist())
    return GroupTable(column, groups, labels, ("",) * len(groups), len(numbers), work_only)


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
