"""Groups the events of the table by one or two columns, with a label, a filter and figures for each group."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.kernel_names import readable_names
from tpuprof_tui.model import INT_MISSING, Column, Lane, Role, is_missing
from tpuprof_tui.model.lane import Rows, row_numbers

from ..events import numbers_shown
from ..index.ordering import column_values, lane_rows
from ..operation_names import renamed_operations
from ..pivot import Frame, GroupBy, most, rows, total, total_known, weighted_mean
from ..selecting.cell_texts import header_text, value_text
from ..selecting.filters import text_condition
from ..selecting.session import Ints, Session
from ..selecting.state import DisplayState
from .work_sums import shares_of

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

#: Events per chunk when searching for any name.
_CHUNK: Final = 65_536
#: Above this number of distinct values, numbers are grouped into ranges.
MANY: Final = 60
#: Columns with evenly distributed values (times, positions, addresses). Others span orders of magnitude.
_EVEN: Final = ("start", "end", "order", "command_id", "scope", "batch", "step")
#: Values of the edges of ranges: these times powers of ten.
_STEPS: Final = (1, 2, 5)
#: Lower bound of range edges: no column has smaller values.
_SMALLEST: Final = 1e-12
#: Columns to group by, in the order in which the key cycles through them; between them the source's other names.
_FIRST: Final = ("name", "kernel", "type")
_LAST: Final = ("core", "engine", "step")


class GroupTable(Struct, frozen=True, eq=False, dict=True):
    """Groups of events by columns, by ascending values, missing values last; arrays of one length."""

    columns: tuple[Column, ...]  #: The columns
    parts: list[tuple[str, ...]]  #: Cleaned label of each group in each column
    conditions: list[str]  #: Filter that selects exactly one group, for each
    count: Ints  #: Number of rows, int64
    #: total, longest: Sum and maximum of durations, int64 ns.
    total: Ints
    longest: Ints
    #: Whether waits and other system commands are excluded, and what the host did beside the device's work.
    work_only: bool
    bytes: Ints | None = None  #: Sum of bytes, int64; None: no row has any
    rate: Floats | None = None  #: Bytes by the time of the rows that have any, GB/s, NaN: none has
    #: Mean share of the memory's peak bandwidth, weighted by duration, 0 to 1, NaN: unknown; None: all unknown.
    peak: Floats | None = None
    base: Ints | None = None  #: Total of each group in the baseline, int64 ns; None: no baseline

    def __len__(self) -> int:
        return len(self.parts)

    @cached_property
    def labels(self) -> list[str]:
        """Label of each group, with names as people read them."""
        by_column = [list(map(readable_names(texts).__getitem__, texts)) if column.key == "name" else texts
                     for column, texts in zip(self.columns, zip(*self.parts, strict=True), strict=False)]  # fmt: skip
        return ["  ".join(texts) for texts in zip(*by_column, strict=True)]

    @property
    def title(self) -> str:
        """What the groups are by."""
        return " and ".join(header_text(column.title, column.unit) for column in self.columns)

    @property
    def mean(self) -> Floats:
        """Mean duration of each group, ns."""
        return self.total / np.maximum(self.count, 1)

    @property
    def share(self) -> Floats:
        """Share of the total duration of all groups, 0 to 1."""
        return self.total / max(int(self.total.sum()), 1)

    @property
    def delta(self) -> Ints:
        """Total of each group minus its total in the baseline, ns."""
        return self.total - (0 if self.base is None else self.base)


def has_named_work(session: Session) -> bool:
    """Whether any work has a name; a capture without commands names only waits. O(events) if none has."""
    return any(
        bool(((lane.take("name", rows) >= 0) & (lane.take("role", rows) == Role.WORK)).any())
        for lane in session.profile.lanes
        if "name" in lane
        for rows in (slice(first, first + _CHUNK) for first in range(0, len(lane), _CHUNK))
    )


def groupings(session: Session) -> list[str]:
    """Columns that the key cycles through: those of texts that the profile has, units, lanes and steps."""
    # call stacks are a tree, which the flame graph draws
    texts = [column.key for column in session.columns if column.kind == "text" and column.key not in ("stack", *_LAST)]
    present = {column.key for column in session.columns}
    keys = dict.fromkeys((*_FIRST, *texts, *_LAST))
    return [key for key in keys if key in present]


def group_table(
    session: Session, state: DisplayState, keys: Sequence[str], *, work_only: bool, base: DisplayState | None = None
) -> GroupTable:
    """Groups the events of the table by columns, numbers with many distinct values by range. O(events).

    ``base``: the state of the baseline; groups are then matched by label and have a total of each side.
    """
    columns = tuple(session.profile.vocabulary.schema[key] for key in keys)
    frame = _grouped_rows(session, state, keys, work_only=work_only)
    edges = {column.key: found for column in columns if (found := _edges_of(frame, column))}
    table = _table(session, columns, frame, edges, work_only=work_only)
    if base is None or session.baseline is None:
        return table
    frame = _grouped_rows(session.baseline, base, keys, work_only=work_only)
    there = _table(session.baseline, columns, frame, edges, work_only=work_only)
    renamed = renamed_operations(session.profile, session.baseline.profile) if "name" in keys else {}
    here = {clean(name): clean(own) for name, own in renamed.items()}
    parts = [tuple(here.get(part, part) if column.key == "name" else part
                   for column, part in zip(columns, each, strict=True)) for each in there.parts]  # fmt: skip
    totals: dict[tuple[str, ...], int] = {}
    for each, took in zip(parts, there.total.tolist(), strict=True):
        totals[each] = totals.get(each, 0) + took
    own = set(table.parts)
    base_only = [index for index, each in enumerate(parts) if each not in own]
    every = table.parts + [parts[index] for index in base_only]
    none = np.zeros(len(base_only), np.int64)
    count, sums, longest = (np.append(values, none) for values in (table.count, table.total, table.longest))
    return replace(
        table, parts=every, conditions=table.conditions + [there.conditions[index] for index in base_only],
        count=count, total=sums, longest=longest, bytes=None, rate=None, peak=None,
        # the total of a label that two groups share is given to the first of them
        base=np.array([totals.pop(each, 0) for each in every], np.int64),
    )  # fmt: skip


def _grouped_rows(session: Session, state: DisplayState, keys: Sequence[str], *, work_only: bool) -> Frame:
    """Rows of the table: key columns, duration (ns), bytes and share of the peak, and duration of rows with these."""
    profile = session.profile
    chosen = list(lane_rows(profile, session.offsets, numbers_shown(session, state)))
    if work_only:
        on_device = any(lane.in_sums for lane, _ in chosen)
        chosen = [(lane, _at_work(lane, rows)) for lane, rows in chosen if lane.in_sums or not on_device]
    durations = [lane.take("end", rows) - lane.take("start", rows) for lane, rows in chosen]
    columns = {key: column_values(profile, key, chosen) for key in keys}
    columns["took"] = np.concatenate([np.zeros(0, np.int64), *durations])
    if any("bytes" in lane for lane, _ in chosen):
        moved = columns["moved"] = column_values(profile, "bytes", chosen)
        columns["moving"] = np.where(moved > 0, columns["took"], 0)
    if profile.vocabulary.share("bandwidth") is not None:
        shares = [shares_of(profile, lane, "bandwidth", rows) for lane, rows in chosen]
        peak = columns["peak"] = np.concatenate([np.zeros(0), *shares])
        columns["peaked"] = np.where(np.isnan(peak), 0, columns["took"])
    return Frame(columns, {})


def _edges_of(frame: Frame, column: Column) -> list[float]:
    """Edges of the ranges of a column; empty: its values are few."""
    if column.kind == "text" or GroupBy(frame, (column.key,)).count <= MANY:
        return []
    known = frame[column.key][~is_missing(frame[column.key])]
    return _edges(column, float(known.min()), float(known.max()))


def _table(
    session: Session, columns: tuple[Column, ...], frame: Frame, edges: Mapping[str, list[float]], *, work_only: bool
) -> GroupTable:
    ranges = {key: in_ranges(frame[key], found) for key, found in edges.items()}
    frame, keys = frame.with_columns(None, **ranges), [column.key for column in columns]
    groups = GroupBy(frame, keys)
    order = np.lexsort([is_missing(groups.values(key)) for key in reversed(keys)])
    texts = [_labels_and_conditions(session, column, groups.values(column.key)[order], edges.get(column.key, []))
             for column in columns]  # fmt: skip
    parts = list(zip(*(labels for labels, _ in texts), strict=True))
    conditions = [" ".join(each) for each in zip(*(found for _, found in texts), strict=True)]
    count, sums, longest = (np.asarray(figure(groups))[order] for figure in (rows, total("took"), most("took")))
    table = GroupTable(columns, parts, conditions, count, sums, longest, work_only)
    if "moved" in frame.columns and bool((frame["moved"] > 0).any()):
        moved, moving = (np.asarray(figure(groups))[order] for figure in (total_known("moved"), total("moving")))
        rate = np.divide(moved, moving, out=np.full(len(moved), np.nan), where=moving > 0)
        table = replace(table, bytes=moved, rate=rate)
    if "peak" in frame.columns and not bool(np.isnan(frame["peak"]).all()):
        table = replace(table, peak=np.array(weighted_mean("peak", "peaked")(groups), np.float64)[order])
    return table


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
