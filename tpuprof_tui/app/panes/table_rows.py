"""Rows of the table: the numbers of its events in sorted order, the cursor, and the cell texts of visible rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof_tui.analysis.selecting.cell_texts import header_text, row_texts
from tpuprof_tui.analysis.selecting.filter_masks import numbers_shown, total_duration
from tpuprof_tui.analysis.selecting.session import Ints, Session, ordered
from tpuprof_tui.analysis.selecting.state import DisplayState, Selection
from tpuprof_tui.export.table import SHARE
from tpuprof_tui.model import Column

#: Most events that are sorted synchronously; more in a worker thread, so that no key waits.
AT_ONCE = 50_000
#: Most rows whose cell texts are cached.
MAX_CACHED_ROWS = 2_000

#: Key of the rows: scope, sort, window (None: whole capture) and filter.
RowsKey = tuple[object, ...]


def sorted_rows(session: Session, state: DisplayState) -> tuple[Ints, int]:
    """Numbers of the events in the table, sorted (int64), and the sum of their durations in ns; O(rows log rows).

    Those of the device come first: a host thread has many for each of them.
    """
    numbers = numbers_shown(session, state)
    lanes, total_ns = session.profile.lanes, total_duration(session, numbers)
    if len({lane.on_host for lane in lanes}) < 2:
        return ordered(session, numbers, state.sort), total_ns
    edges = np.searchsorted(numbers, session.offsets).tolist()
    parts: tuple[list[Ints], list[Ints]] = ([], [])
    for lane, first, last in zip(lanes, edges, edges[1:], strict=False):
        parts[lane.on_host].append(numbers[first:last])
    return np.concatenate([ordered(session, np.concatenate(part), state.sort) for part in parts]), total_ns


class TableRows:
    """The rows as event numbers in sorted order; texts are made only for visible rows, whatever the number of events.

    Attributes:
        order: int64, event number of each row.
        position: Row of the cursor.
        total_ns: Sum of the durations of all rows.
        requested_key: Key of the requested rows.
        current_key: Key of the rows in ``order``; differs from ``requested_key`` while a worker thread sorts.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.order: Ints = np.zeros(0, dtype=np.int64)
        self.position = self.total_ns = 0
        self.requested_key: RowsKey = ()
        self.current_key: RowsKey = ()
        self._texts: dict[int, list[str]] = {}
        self._texts_for: tuple[Column, ...] = ()

    def request(self, state: DisplayState) -> bool:
        """Sets ``requested_key`` from a state; returns whether it changed."""
        before = self.requested_key
        self.requested_key = (state.scope, state.sort, state.figures_window if state.in_window else None, state.filter)
        return self.requested_key != before

    def take(self, order: Ints, total_ns: int) -> None:
        """Takes the requested rows, and puts the cursor on the first."""
        self.current_key = self.requested_key
        self.order, self.total_ns, self.position = order, total_ns, 0
        self._texts.clear()

    @property
    def is_sorting(self) -> bool:
        """Whether a worker thread is still sorting."""
        return self.requested_key != self.current_key

    @property
    def number(self) -> int:
        """Event number of the cursor's row; the table must not be empty."""
        return int(self.order[self.position])

    def put(self, position: int) -> None:
        """Puts the cursor on a row, clamped to the existing ones."""
        self.position = min(max(position, 0), max(len(self.order) - 1, 0))

    def follow(self, selection: Selection) -> bool:
        """Puts the cursor on the selected event; returns False if it is there already or the table lacks the event."""
        if selection.row < 0 or not len(self.order):
            return False
        number = self._session.number(selection.lane, selection.row)
        positions = np.flatnonzero(self.order == number) if self.number != number else np.zeros(0, np.int64)
        if len(positions):
            self.position = int(positions[0])
        return len(positions) > 0

    def row_of(self, selection: Selection, first: int, count: int) -> int:
        """Row of the selected event among ``count`` rows from ``first``; -1 if it is not among them."""
        if selection.row < 0:
            return -1
        number = self._session.number(selection.lane, selection.row)
        offsets = np.flatnonzero(self.order[first : first + count] == number)
        return first + int(offsets[0]) if len(offsets) else -1

    def texts(self, row: int, columns: tuple[Column, ...], first: int, count: int) -> list[str]:
        """Cell texts of a row, cached; made together for the ``count`` visible rows from ``first``."""
        if columns != self._texts_for or len(self._texts) > MAX_CACHED_ROWS:
            self._texts.clear()
            self._texts_for = columns
        number = int(self.order[row])
        found = self._texts.get(number)
        if found is None:
            numbers = self.order[min(first, row) : max(first + count + 1, row + 1)]
            self._texts.update(zip(numbers.tolist(), self._cells(columns, numbers, readable=True), strict=True))
            found = self._texts[number]
        return found

    def _cells(self, columns: tuple[Column, ...], numbers: Ints, *, readable: bool = False) -> list[list[str]]:
        rows = row_texts(self._session, columns, numbers, readable=readable)
        if SHARE in columns:
            place = columns.index(SHARE)
            for number, texts in zip(numbers.tolist(), rows, strict=True):
                start, end = self._session.span_of(*self._session.locate(number))
                texts[place] = f"{100 * (end - start) / max(self.total_ns, 1):.{SHARE.decimals}f}%"
        return rows

    def as_tsv(self, numbers: Sequence[int], columns: tuple[Column, ...], *, header: bool = True) -> str:
        """Events as tab-separated text, optionally with a header line; numbers without thousands separators."""
        rows = [
            [
                text if column.kind == "text" else text.replace(",", "")
                for column, text in zip(columns, each, strict=True)
            ]
            for each in self._cells(columns, np.array(numbers, dtype=np.int64))
        ]
        titles = [[header_text(column.title, column.unit) for column in columns]] if header else []
        return "\n".join("\t".join(cells) for cells in (*titles, *rows))
