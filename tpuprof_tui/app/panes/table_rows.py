"""Columns and rows of the table: visible columns, widths and horizontal scrolling; events in order, cursor, texts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np

from tpuprof_tui.analysis.events import numbers_shown
from tpuprof_tui.analysis.selecting.cell_texts import header_text, row_texts
from tpuprof_tui.analysis.selecting.session import Ints, Session, ordered
from tpuprof_tui.analysis.selecting.state import DisplayState, SelectedItem
from tpuprof_tui.export.table import SHARE, TableRows
from tpuprof_tui.model import Column

#: Gap between columns, in cells.
GAP = 1
#: Columns that identify an event; leading ones are frozen when the table scrolls horizontally.
FREEZABLE = ("engine", "core", "port", "order", "name")
#: Least share of the width that frozen columns leave for the others.
_MIN_SCROLLED_SHARE = 0.4
#: Greatest share of the pane for the name column, and its least width in cells, so that times stay visible.
_MAX_NAME_SHARE, _MIN_NAME_WIDTH = 0.3, 18


def shown_columns(session: Session, state: DisplayState) -> tuple[Column, ...]:
    """Columns of the table: the chosen ones, else the default ones, with the share after the duration if enabled."""
    columns_by_key = {column.key: column for column in session.columns}
    columns = [columns_by_key[key] for key in state.columns if key in columns_by_key] or list(session.columns)
    if state.percent:
        index = next((number for number, column in enumerate(columns) if column.key == "duration"), len(columns) - 1)
        columns.insert(index + 1, SHARE)
    return tuple(columns)


class ColumnLayout:
    """Layout of the columns. ``index``: position of a column; ``left``: horizontal scroll offset in cells.

    Attributes:
        widths: Width of each in cells, without the gap.
        edges: Left edge of each column in cells, and the right edge of the last.
    """

    def __init__(self, session: Session, state: DisplayState) -> None:
        self._session = session
        self._pane = 0
        self.columns: tuple[Column, ...] = ()
        self.chosen_index = 0
        self.show(state)

    def show(self, state: DisplayState) -> None:
        """Takes the columns of a state; keeps the chosen column."""
        chosen = self.chosen.key if self.columns else state.sort.key
        self.columns = shown_columns(self._session, state)
        self._lay_out()
        self.chosen_index = max(self.index_of(chosen), 0)

    def resized(self, pane: int) -> bool:
        """Takes the width of the pane in cells; returns whether column widths changed."""
        before, self._pane = self.widths, pane
        self._lay_out()
        return self.widths != before

    def _lay_out(self) -> None:
        self.widths = [self._width_of(column) for column in self.columns]
        name = self.index_of("name")
        room = int(self._pane * (1 - _MIN_SCROLLED_SHARE)) - sum(self.widths[: max(name, 0)]) - GAP * (name + 1)
        if name >= 0 and room >= _MIN_NAME_WIDTH:
            # names stay in view next to the sort column
            self.widths[name] = min(self.widths[name], room)
        self.edges: list[int] = [0, *np.cumsum([width + GAP for width in self.widths]).tolist()]

    @property
    def chosen(self) -> Column:
        """The chosen column."""
        return self.columns[self.chosen_index]

    def index_of(self, key: str) -> int:
        """Index of a column by key; -1 if it is not visible."""
        return next((index for index, column in enumerate(self.columns) if column.key == key), -1)

    def _width_of(self, column: Column) -> int:
        header, profile = len(header_text(column.title, column.unit)) + 2, self._session.profile
        # only as wide as the largest number, to save room
        if column.key in ("start", "end"):
            return max(header, len(f"{profile.end_ns:,}"), len(f"{profile.start_ns:,}"))
        if column.key == "order":
            return max(header, len(f"{max(map(len, profile.lanes), default=0):,}"))
        width = column.width
        if column.key == "name" and self._pane:
            width = min(width, max(int(self._pane * _MAX_NAME_SHARE), _MIN_NAME_WIDTH))
        return max(width, header)

    def frozen_count(self, width: int) -> int:
        """Number of leading frozen columns: as many as leave enough room for the others."""
        count, room = 0, width * (1 - _MIN_SCROLLED_SHARE)
        while count < len(self.columns) and self.columns[count].key in FREEZABLE and self.edges[count + 1] <= room:
            count += 1
        return count

    def in_view(self, left: int, width: int) -> tuple[int, ...]:
        """Indices of the columns in view, frozen ones first; only these are rendered."""
        frozen = self.frozen_count(width)
        first = min(max(bisect_right(self.edges, self.edges[frozen] + left) - 1, frozen), len(self.columns) - 1)
        # at least one, even if there is no room
        last = min(max(bisect_left(self.edges, left + width), first + 1), len(self.columns))
        return (*range(frozen), *range(max(first, frozen), last))

    def at(self, cell: int, left: int, width: int) -> int:
        """Index of the column at a cell of the pane."""
        cell += left if cell >= self.edges[self.frozen_count(width)] else 0
        return sum(edge <= cell for edge in self.edges) - 1

    def scrolled(self, columns: int, left: int, width: int) -> int:
        """Scroll offset after scrolling one column left or right: a column starts right after the frozen ones."""
        frozen_width = self.edges[self.frozen_count(width)]
        edges = [edge - frozen_width for edge in self.edges[self.frozen_count(width) :]]
        if columns < 0:
            return max((edge for edge in edges if edge < left), default=0)
        return min((edge for edge in edges if edge > left), default=left)

    def offset_for(self, index: int, left: int, pane: int, width: int) -> int:
        """Smallest change of the scroll offset that shows a column; ``width``: of the pane without its scroll bar."""
        start, end = self.edges[index : index + 2]
        frozen = self.frozen_count(pane)
        if index < frozen:
            return left
        fixed = self.edges[frozen]
        if start < left + fixed or end <= left + width:
            return min(left, start - fixed)
        # a column starts right after the frozen ones
        return next(edge for edge in self.edges[frozen:] if edge - fixed >= end - width or edge == start) - fixed


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
    lanes, total_ns = session.profile.lanes, TableRows(session.profile, session.offsets, numbers).total_ns
    if len({lane.on_host for lane in lanes}) < 2:
        return ordered(session, numbers, state.sort), total_ns
    edges = np.searchsorted(numbers, session.offsets).tolist()
    parts: tuple[list[Ints], list[Ints]] = ([], [])
    for lane, first, last in zip(lanes, edges, edges[1:], strict=False):
        parts[lane.on_host].append(numbers[first:last])
    return np.concatenate([ordered(session, np.concatenate(part), state.sort) for part in parts]), total_ns


class SortedRows:
    """The rows as event numbers in sorted order; texts are made only for visible rows, however many there are."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.order: Ints = np.zeros(0, dtype=np.int64)  #: int64, event number of each row
        self.position = self.total_ns = 0  #: Row of the cursor; sum of the durations of all rows in ns
        self.requested_key: RowsKey = ()  #: Key of the requested rows
        #: Key of the rows in ``order``; differs from ``requested_key`` while a worker thread sorts.
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

    def follow(self, selection: SelectedItem) -> bool:
        """Puts the cursor on the selected event; returns False if it is there already or the table lacks the event."""
        if selection.row < 0 or not len(self.order):
            return False
        number = self._session.number(selection.lane, selection.row)
        positions = np.flatnonzero(self.order == number) if self.number != number else np.zeros(0, np.int64)
        if len(positions):
            self.position = int(positions[0])
        return len(positions) > 0

    def row_of(self, selection: SelectedItem, first: int, count: int) -> int:
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
