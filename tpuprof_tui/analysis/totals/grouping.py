"""Groups the instructions of the table by a column, with a label and a filter for each group."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model import INT_MISSING, Column, Lane, Role, is_missing
from tpuprof_tui.model.lane import Rows, row_numbers

from ..index.ordering import column_values, lane_rows
from ..operation_names import renamed_operations
from ..pivot import Frame, Groups, most, rows, total
from ..selecting.cell_texts import value_text
from ..selecting.filter_masks import numbers_shown
from ..selecting.filters import text_condition
from ..selecting.session import Ints, Session
from ..selecting.state import DisplayState

Array = npt.NDArray[Any]

#: Instructions per chunk when searching for any name.
_CHUNK: Final = 65_536
#: Above this number of distinct values, numbers are grouped into ranges.
MANY: Final = 60
#: Columns with evenly distributed values (times, positions, addresses). Others span orders of magnitude.
_EVEN: Final = ("start", "end", "order", "command_id", "scope", "batch", "step")
#: Values of the edges of ranges: these times powers of ten.
_STEPS: Final = (1, 2, 5)
#: Lower bound of range edges: no column has smaller values.
_SMALLEST: Final = 1e-12
#: Columns to group by, in the order in which the key cycles through them.
GROUPINGS: Final = ("name", "kernel", "type", "core", "engine", "step")


class GroupTable(Struct, frozen=True, eq=False):
    """Groups of instructions by a column, by ascending value, missing values last; arrays of one length.

    Attributes:
        column: The column.
        labels: Cleaned label of each group.
        conditions: Filter that selects exactly one group, for each.
        count: Number of rows, int64.
        total, longest: Sum and maximum of durations, int64 ns.
        work_only: Whether waits and other system commands are excluded.
        base: Total of each group in the baseline, int64 ns; None: no baseline.
    """

    column: Column
    labels: list[str]
    conditions: list[str]
    count: Ints
    total: Ints
    longest: Ints
    work_only: bool
    base: Ints | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        """Mean duration of each group, ns."""
        return self.total / np.maximum(self.count, 1)

    @property
    def share(self) -> npt.NDArray[np.float64]:
        """Share of the total duration of all groups, 0 to 1."""
        return self.total / max(int(self.total.sum()), 1)

    @property
    def delta(self) -> Ints:
        """Total of each group minus its total in the baseline, ns."""
        return self.total - (0 if self.base is None else self.base)


def has_named_work(session: Session) -> bool:
    """Whether any work has a name; a capture without commands names only waits. O(instructions) if none has."""
    return any(
        bool(((lane.take("name", rows) >= 0) & (lane.take("role", rows) == Role.WORK)).any())
        for lane in session.profile.lanes
        if "name" in lane
        for rows in (slice(first, first + _CHUNK) for first in range(0, len(lane), _CHUNK))
    )


def group_table(
    session: Session, state: DisplayState, key: str, *, work_only: bool, base: DisplayState | None = None
) -> GroupTable:
    """Groups the instructions of the table by a column, numbers with many distinct values by range. O(instructions).

    ``base``: the state of the baseline; groups are then matched by label and have a total of each side.
    """
    column, edges = session.profile.vocabulary.schema[key], list[float]()
    frame = _grouped_rows(session, state, key, work_only=work_only)
    groups = Groups(frame, (key,))
    if column.kind != "text" and groups.count > MANY:
        known = frame[key][~is_missing(frame[key])]
        edges = _edges(column, float(known.min()), float(known.max()))
        groups = Groups(_in_ranges(frame, key, edges), (key,))
    table = _table(session, column, groups, edges, work_only=work_only)
    if base is None or session.baseline is None:
        return table
    frame = _grouped_rows(session.baseline, base, key, work_only=work_only)
    groups = Groups(_in_ranges(frame, key, edges) if edges else frame, (key,))
    there = _table(session.baseline, column, groups, edges, work_only=work_only)
    renamed = renamed_operations(session.profile, session.baseline.profile) if key == "name" else {}
    here = {clean(name): clean(own) for name, own in renamed.items()}
    names = [here.get(name, name) for name in there.labels]
    totals: dict[str, int] = {}
    for name, took in zip(names, there.total.tolist(), strict=True):
        totals[name] = totals.get(name, 0) + took
    own = set(table.labels)
    base_only = [index for index, name in enumerate(names) if name not in own]
    labels = table.labels + [names[index] for index in base_only]
    conditions = table.conditions + [there.conditions[index] for index in base_only]
    none = np.zeros(len(base_only), np.int64)
    count, sums, longest = (np.append(values, none) for values in (table.count, table.total, table.longest))
    # the total of a label that two groups share is given to the first of them
    of_base = np.array([totals.pop(name, 0) for name in labels], np.int64)
    return GroupTable(column, labels, conditions, count, sums, longest, work_only, of_base)


def _grouped_rows(session: Session, state: DisplayState, key: str, *, work_only: bool) -> Frame:
    profile = session.profile
    chosen = list(lane_rows(profile, session.offsets, numbers_shown(session, state)))
    if work_only:
        chosen = [(lane, _at_work(lane, rows)) for lane, rows in chosen]
    durations = [lane.take("end", rows) - lane.take("start", rows) for lane, rows in chosen]
    took = np.concatenate([np.zeros(0, np.int64), *durations])
    return Frame({key: column_values(profile, key, chosen), "took": took}, {})


def _in_ranges(frame: Frame, key: str, edges: list[float]) -> Frame:
    return frame.with_columns(None, **{key: in_ranges(frame[key], edges)})


def _table(session: Session, column: Column, groups: Groups, edges: list[float], *, work_only: bool) -> GroupTable:
    values = groups.values(column.key)
    order = np.argsort(is_missing(values), kind="stable")
    labels, conditions = _labels_and_conditions(session, column, values[order], edges)
    count, sums, longest = (np.asarray(figure(groups))[order] for figure in (rows, total("took"), most("took")))
    return GroupTable(column, labels, conditions, count, sums, longest, work_only)


def _labels_and_conditions(
    session: Session, column: Column, values: Array, edges: list[float]
) -> tuple[list[str], list[str]]:
    table, key = session.profile.strings[column.key] if column.kind == "text" else (), column.key
    same = Counter(text.lower() for text in table)
    labels, conditions = [], []
    for value, missing in zip(values.tolist(), is_missing(values).tolist(), strict=True):
        if missing:
            # missing values pass no condition: negate one that every known value passes
            label, condition = "-", f"!{key}=*" if column.kind == "text" else f"!{key}>=-9e99"
        elif column.kind == "text":
            text = table[value]
            label, condition = clean(text) or "(empty)", text_condition(key, text, alone=same[text.lower()] < 2)
        elif edges:
            low, high = edges[value], edges[value + 1]
            label = f"{_edge_text(column, low)} to {_edge_text(column, high)}"
            low, high = (int(edge) if edge == int(edge) else edge for edge in (low, high))
            condition = f"{key}>={low!r} {key}<{high!r}"
        else:
            label, condition = value_text(column, value), f"{key}={value!r}"
        labels.append(label)
        conditions.append(condition)
    return labels, conditions


def _edges(column: Column, low: float, high: float) -> list[float]:
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


def _edge_text(column: Column, edge: float) -> str:
    if column.kind == "hex":
        return f"{int(edge):#x}"
    return f"{int(edge):,}" if edge == int(edge) else f"{edge:,g}"


def even_edges(low: float, high: float, most: int = 20) -> list[float]:
    """Edges of at most ``most`` equal ranges that contain [low, high], at multiples of 1, 2 or 5 times 10**n."""
    step = next_step((high - low) / most if high > low else 1)
    first = math.floor(low / step)
    last = max(math.floor(high / step) + 1, first + 1)
    return sorted({_tidy(place * step) for place in range(first, last + 1)})


def wide_edges(low: float, high: float) -> list[float]:
    """Ascending edges 1, 2, 5, 10, ... for non-negative values that span orders of magnitude.

    Values below a millionth of the largest fall into the first range. The first edge is at most ``low``, the last is
    above ``high``.
    """
    if high <= 0:
        return [0.0, 1.0]
    exponent = math.floor(math.log10(max(low, high / 1e6, _SMALLEST)))
    edges = [0.0] if low < 10.0**exponent else []
    while True:
        for step in _STEPS:
            edges.append(_tidy(step * 10.0**exponent))
            if edges[-1] > high:
                below = [edge for edge in edges if edge <= low]
                return edges[max(len(below) - 1, 0) :]
        exponent += 1


def next_step(size: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least ``size``."""
    exponent = math.floor(math.log10(size)) if size > 0 else 0
    return next(
        _tidy(step * 10.0**power)
        for power in (exponent, exponent + 1)
        for step in _STEPS
        if step * 10.0**power >= size * (1 - 1e-12)
    )


def _tidy(value: float) -> float:
    """Rounds to 15 digits: 0.30000000000000004 becomes 0.3."""
    return float(f"{value:.15g}")


def in_ranges(values: Array, edges: list[float]) -> Ints:
    """Index of the range of each value (``edges[i] <= value < edges[i + 1]``); INT_MISSING for missing values."""
    places = np.searchsorted(np.array(edges), values, side="right") - 1
    return np.where(is_missing(values), INT_MISSING, np.clip(places, 0, len(edges) - 2))
