"""Pivot tables: rows of a frame grouped by key columns, with figures of each group. The only group-by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import INT_MISSING, is_missing
from tpuprof_tui.model.uniques import distinct_together

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Frame(Struct, frozen=True, eq=False):
    """Rows of events or of a table, in columns of one length."""

    #: Arrays by key; text columns hold codes (-1: missing) into ``texts``, times and durations are in ns.
    columns: Mapping[str, Array]
    texts: Mapping[str, Sequence[str]]  #: Texts of text columns, by key

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, key: str) -> Array:
        return self.columns[key]

    def take(self, rows: Array | slice) -> Frame:
        """The frame of some rows, or of those in a mask."""
        if not isinstance(rows, slice) and rows.dtype == np.bool_:
            if rows.all():
                return self
            rows = np.flatnonzero(rows)
        return Frame({key: values[rows] for key, values in self.columns.items()}, self.texts)

    def has(self, key: str, test: Callable[[str], object]) -> Mask:
        """Mask of the rows whose text passes a test, which is called once for each text in use; missing: none does."""
        codes, table = self[key], self.texts.get(key, ())
        used = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=1))
        passing = np.zeros(int(used.max(initial=0)) + 2, np.bool_)
        for code in used.tolist():
            passing[code] = bool(len(codes)) and bool(test(table[code]))
        passing[-1] = False
        return passing[codes]

    def with_columns(self, texts: Mapping[str, Sequence[str]] | None = None, **columns: Array) -> Frame:
        """The frame with columns added or replaced; ``texts``: those of text columns among them."""
        return Frame({**self.columns, **columns}, {**self.texts, **(texts or {})})

    def with_texts(self, key: str, change: Callable[[str], str] = str, origin: str = "", missing: str = "") -> Frame:
        """The frame with a text column that holds changed texts of ``origin`` (default: of the column itself).

        ``change`` is called once for each text in use; missing values get a text of their own, or stay missing. Equal
        texts share a code.
        """
        codes, table = self[origin or key], self.texts.get(origin or key, ())
        codes_of: dict[str, int] = {}
        used = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=1))
        changed = np.full(int(used.max(initial=0)) + 2, -1, np.int64)
        for code in used.tolist():
            if len(table):
                changed[code] = codes_of.setdefault(change(table[code]), len(codes_of))
        if missing:
            changed[-1] = codes_of.setdefault(missing, len(codes_of))
        return self.with_columns({key: list(codes_of)}, **{key: changed[codes]})


class GroupBy:
    """Rows of a frame grouped by the values of key columns.

    Attributes:
        frame: The frame.
        index: Group of each row, by ascending values of the keys.
        count: Number of groups.
    """

    def __init__(self, frame: Frame, keys: Sequence[str]) -> None:
        self.frame = frame
        index, self.count = distinct_together(*(frame[key] for key in keys)) if len(frame) else (np.zeros(0), 0)
        self.index: Ints = np.asarray(index, np.int64)

    @cached_property
    def first(self) -> Ints:
        """First row of each group."""
        rows = np.zeros(self.count, np.int64)
        rows[self.index[::-1]] = np.arange(len(self.index))[::-1]
        return rows

    def values(self, key: str) -> Array:
        """Value of each group in a key column (or of its first row in another), by ascending values of the keys."""
        return np.asarray(self.frame[key][self.first])

    @cached_property
    def sizes(self) -> Ints:
        """Number of rows of each group."""
        return np.bincount(self.index, minlength=self.count).astype(np.int64)

    def count_of(self, mask: Mask) -> Ints:
        """Number of rows of each group that are in a mask."""
        return np.bincount(self.index[mask], minlength=self.count).astype(np.int64)

    def reduce(self, values: Array, ufunc: np.ufunc = np.add, start: int = 0) -> Array:
        """Sum (or another reduction, with its initial value) of the known values of each group."""
        reduced = np.full(self.count, start, values.dtype if values.dtype.kind == "f" else np.int64)
        known = values != INT_MISSING
        if known.all():
            ufunc.at(reduced, self.index, values)
        else:
            ufunc.at(reduced, self.index[known], values[known])
        return reduced


#: Values of a figure, one for each group; missing ones as in columns, or None.
Figure = Callable[[GroupBy], "Array | list[Any]"]


def rows(groups: GroupBy) -> Ints:
    """Number of rows."""
    return groups.sizes


def key(name: str, missing: Any = "") -> Figure:
    """The text or value of a key column."""

    def values(groups: GroupBy) -> Array | list[Any]:
        codes, texts = groups.values(name), groups.frame.texts.get(name)
        if texts is None:
            return codes
        return [texts[code] if code >= 0 else missing for code in codes.tolist()]

    return values


def total(name: str, mask: str = "") -> Figure:
    """Sum of an integer column, of the rows whose column ``mask`` is true; missing values count as 0."""

    def values(groups: GroupBy) -> Ints:
        of_rows = groups.frame[name]
        return groups.reduce(of_rows * groups.frame[mask] if mask else of_rows)

    return values


def total_known(name: str) -> Figure:
    """Sum of an integer column; missing for groups without any value."""
    return lambda groups: np.where(
        groups.count_of(~is_missing(groups.frame[name])) > 0, groups.reduce(groups.frame[name]), INT_MISSING
    )


def most(name: str) -> Figure:
    """Largest value of an integer column; missing for groups without any value."""
    return lambda groups: groups.reduce(groups.frame[name], np.maximum, INT_MISSING)


def least(name: str) -> Figure:
    """Smallest value of an integer column; missing for groups without any value."""
    none = np.iinfo(np.int64).max

    def values(groups: GroupBy) -> Ints:
        smallest = groups.reduce(groups.frame[name], np.minimum, none)
        return np.where(smallest == none, INT_MISSING, smallest)

    return values


def mean(name: str) -> Figure:
    """Sum of an integer column over the number of rows; missing values count as 0."""
    return lambda groups: groups.reduce(groups.frame[name]) / np.maximum(groups.sizes, 1)


def mean_known(name: str) -> Figure:
    """Mean of the known values of an integer column; missing for groups without any."""

    def values(groups: GroupBy) -> Array:
        known = groups.count_of(~is_missing(groups.frame[name]))
        return np.where(known > 0, groups.reduce(groups.frame[name]) / np.maximum(known, 1), np.nan)

    return values


def count_true(name: str) -> Figure:
    """Number of rows in which a flag is set."""
    return lambda groups: groups.count_of(np.asarray(groups.frame[name], np.bool_))


def any_true(name: str) -> Figure:
    """Whether a flag is set in any row."""
    return lambda groups: np.asarray(count_true(name)(groups)) > 0


def share(name: str) -> Figure:
    """Share of a sum in that of all groups; NaN if that is 0."""

    def values(groups: GroupBy) -> Array:
        sums = groups.reduce(groups.frame[name])
        return sums / sums.sum() if sums.sum() else np.full(groups.count, np.nan)

    return values


def cumulative_share(name: str) -> Figure:
    """Share of the sum of a group with those of all larger ones, of equal ones those before it; NaN if all are 0."""

    def values(groups: GroupBy) -> Array:
        sums = groups.reduce(groups.frame[name])
        order = np.argsort(-sums, kind="stable")
        found = np.full(groups.count, np.nan)
        if sums.sum():
            found[order] = np.cumsum(sums[order]) / sums.sum()
        return found

    return values


def per(part: Figure, whole: float) -> Figure:
    """A figure divided by a number, as by the number of steps; None if that is 0."""

    def values(groups: GroupBy) -> list[Any]:
        return (np.asarray(part(groups)) / whole).tolist() if whole else [None] * groups.count

    return values


def quotient(part: Figure, whole: Figure) -> Figure:
    """Quotient of two figures; 0 where the divisor is 0."""

    def values(groups: GroupBy) -> Array:
        divided, divisor = np.asarray(part(groups)), np.asarray(whole(groups))
        return np.asarray(np.divide(divided, divisor, out=np.zeros(len(divided)), where=divisor > 0))

    return values


def weighted_mean(name: str, weight: str, unit: float = 1.0) -> Figure:
    """Mean weighted by another column, in units; missing and negative values count as 0; None without any value."""

    def values(groups: GroupBy) -> list[float | None]:
        of_rows, weights = groups.frame[name], groups.frame[weight]
        known = np.nan_to_num(of_rows, nan=-1.0) >= 0
        parts, wholes = (np.bincount(groups.index, each, groups.count)
                         for each in (np.where(known, of_rows, 0) * weights, weights))  # fmt: skip
        return [float(part / whole) / unit if has and whole else None
                for has, part, whole in zip(groups.count_of(known), parts, wholes, strict=True)]  # fmt: skip

    return values


def pivot(
    frame: Frame, keys: Sequence[str], figures: Mapping[str, Figure], order: Sequence[str]
) -> list[tuple[Any, ...]]:
    """A row of figures for each distinct combination of ``keys``.

    Args:
        frame: The rows to group.
        keys: Key columns.
        figures: Figures by name; their values make up the rows, in this order.
        order: Names of the figures to sort by, most significant first; ``-`` before a name: falling. Missing values
            come first, where falling as 0; equal groups keep the order of the keys' values.
    """
    groups = GroupBy(frame, keys)
    columns = {name: figure(groups) for name, figure in figures.items()}
    found = list(zip(*(_plain(values) for values in columns.values()), strict=True))
    places = {name: place for place, name in enumerate(columns)}
    for name in reversed(order):
        place = places[name.removeprefix("-")]
        if name.startswith("-"):
            found.sort(key=lambda row: -(row[place] or 0))
        else:
            found.sort(key=lambda row: (row[place] is not None, row[place]))
    return found


def _plain(values: Array | list[Any]) -> list[Any]:
    """Values as plain Python, missing ones None."""
    if isinstance(values, list):
        return values
    plain: list[Any] = values.tolist()
    if values.dtype.kind in "if":
        for row in np.flatnonzero(is_missing(values)).tolist():
            plain[row] = None
    return plain
