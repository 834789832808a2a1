"""Column values as text, for cells of the table and lines of the detail pane."""

from __future__ import annotations

import numpy as np

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.units import MISSING
from tpuprof_tui.model import Column, Lane, Profile, is_missing
from tpuprof_tui.model.columns import LANE_KIND
from tpuprof_tui.model.uniques import uniques

from ..index.ordering import lane_values
from .session import Ints, Session


def value_text(column: Column, value: int | float) -> str:
    """Formats a known value of a numeric column, without its unit."""
    if column.kind == "float":
        return f"{value:,.{column.decimals}f}"
    if column.kind == "percent":
        return f"{value:.{column.decimals}f}%"
    if column.kind == "hex":
        return f"0x{int(value):x}"
    return str(int(value)) if column.is_id else f"{int(value):,}"


def column_texts(
    session: Session, lane: Lane, column: Column, rows: Ints, *, readable: bool = False
) -> list[str]:  # fmt: skip
    """Texts of a column for some rows of a lane; ``-`` for missing values.

    ``readable``: names as people read them, and lanes by their own names, not by their kinds.
    """
    if readable and column.key == LANE_KIND.key:
        return [clean(lane.label)] * len(rows)
    values = lane_values(session.profile, lane, column.key, rows)
    if values is None:
        return [MISSING] * len(rows)
    if column.kind == "text":
        table = session.profile.strings[column.key]
        if readable and column.key == "name":
            return [clean(table.readable(code)) if code >= 0 else MISSING for code in values.tolist()]
        return [clean(table[code]) if code >= 0 else MISSING for code in values.tolist()]
    may_miss = values.dtype.kind == "f" or values.dtype == np.int64
    mask = is_missing(values) if may_miss else np.zeros(len(values), np.bool_)
    return [
        MISSING if missing else value_text(column, value)
        for value, missing in zip(values.tolist(), mask.tolist(), strict=True)
    ]


def row_texts(
    session: Session, columns: tuple[Column, ...], numbers: Ints, *, readable: bool = False
) -> list[list[str]]:  # fmt: skip
    """Cell texts of some events: one list per event, in the order of ``numbers``."""
    texts: list[list[str]] = [[] for _ in range(len(numbers))]
    lanes = np.searchsorted(session.offsets, numbers, side="right") - 1
    for lane_number in uniques(lanes).tolist():
        indexes = np.flatnonzero(lanes == lane_number)
        lane = session.profile.lanes[lane_number]
        rows = numbers[indexes] - session.offsets[lane_number]
        by_column = [column_texts(session, lane, column, rows, readable=readable) for column in columns]
        for index, cells in zip(indexes.tolist(), zip(*by_column, strict=True), strict=True):
            texts[index] = list(cells)
    return texts


def header_text(title: str, unit: str) -> str:
    """A column's header: its title, and its unit unless that is redundant."""
    return f"{title} {unit}" if unit and unit not in ("%", "cycles", "ops") and unit not in title else title


def text_of(profile: Profile, lane: Lane, key: str, row: int, *, readable: bool = False) -> str:
    """Cleaned value of a text column for one event; empty if unknown; ``readable``: as people read it."""
    if key not in lane or row < 0:
        return ""
    code = int(lane.take(key, slice(row, row + 1))[0])
    table = profile.strings[key]
    return clean(table.readable(code) if readable else table[code]) if code >= 0 else ""
