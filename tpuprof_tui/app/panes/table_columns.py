"""Column layout of the table: visible columns, widths, and horizontal scrolling with frozen columns."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from tpuprof_tui.analysis.selecting.cell_texts import header_text
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.export.table import SHARE
from tpuprof_tui.model import Column

#: Gap between columns, in cells.
GAP = 1
#: Columns that identify an event; leading ones are frozen when the table scrolls horizontally.
STAYING = ("engine", "core", "port", "order", "name")
#: Least share of the width that frozen columns leave for the others.
_LEAST_SCROLLED = 0.4
#: Greatest share of the pane for the name column, and its least width in cells, so that times stay visible.
_MOST_OF_NAMES, _LEAST_OF_NAMES = 0.3, 18


def shown_columns(session: Session, state: DisplayState) -> tuple[Column, ...]:
    """Columns of the table: the chosen ones, else the default ones, with the share after the duration if enabled."""
    known = {column.key: column for column in session.columns}
    columns = [known[key] for key in state.columns if key in known] or list(session.columns)
    if state.percent:
        place = next((number for number, column in enumerate(columns) if column.key == "duration"), len(columns) - 1)
        columns.insert(place + 1, SHARE)
    return tuple(columns)


class ColumnLayout:
    """Layout of the columns. ``place``: index of a column; ``left``: horizontal scroll offset in cells.

    Attributes:
        columns: The visible columns, in order.
        widths: Width of each in cells, without the gap.
        edges: Left edge of each column in cells, and the right edge of the last.
        place: Index of the chosen column.
    """

    def __init__(self, session: Session, state: DisplayState) -> None:
        self._session = session
        self._pane = 0
        self.columns: tuple[Column, ...] = ()
        self.place = 0
        self.show(state)

    def show(self, state: DisplayState) -> None:
        """Takes the columns of a state; keeps the chosen column."""
        chosen = self.chosen.key if self.columns else state.sort.key
        self.columns = shown_columns(self._session, state)
        self._lay_out()
        self.place = max(self.place_of(chosen), 0)

    def resized(self, pane: int) -> bool:
        """Takes the width of the pane in cells; returns whether column widths changed."""
        before, self._pane = self.widths, pane
        self._lay_out()
        return self.widths != before

    def _lay_out(self) -> None:
        self.widths = [self._width_of(column) for column in self.columns]
        name = self.place_of("name")
        room = int(self._pane * (1 - _LEAST_SCROLLED)) - sum(self.widths[: max(name, 0)]) - GAP * (name + 1)
        if name >= 0 and room >= _LEAST_OF_NAMES:
            # names stay in view next to the sort column
            self.widths[name] = min(self.widths[name], room)
        self.edges: list[int] = [0, *np.cumsum([width + GAP for width in self.widths]).tolist()]

    @property
    def chosen(self) -> Column:
        """The chosen column."""
        return self.columns[self.place]

    def place_of(self, key: str) -> int:
        """Index of a column by key; -1 if it is not visible."""
        return next((place for place, column in enumerate(self.columns) if column.key == key), -1)

    def _width_of(self, column: Column) -> int:
        header, profile = len(header_text(column.title, column.unit)) + 2, self._session.profile
        # only as wide as the largest number, to save room
        if column.key in ("start", "end"):
            return max(header, len(f"{profile.end_ns:,}"), len(f"{profile.start_ns:,}"))
        if column.key == "order":
            return max(header, len(f"{max(map(len, profile.lanes), default=0):,}"))
        width = column.width
        if column.key == "name" and self._pane:
            width = min(width, max(int(self._pane * _MOST_OF_NAMES), _LEAST_OF_NAMES))
        return max(width, header)

    def staying(self, width: int) -> int:
        """Number of leading frozen columns: as many as leave enough room for the others."""
        count, room = 0, width * (1 - _LEAST_SCROLLED)
        while count < len(self.columns) and self.columns[count].key in STAYING and self.edges[count + 1] <= room:
            count += 1
        return count

    def in_view(self, left: int, width: int) -> tuple[int, ...]:
        """Indices of the columns in view, frozen ones first; only these are rendered."""
        staying = self.staying(width)
        first = min(max(bisect_right(self.edges, self.edges[staying] + left) - 1, staying), len(self.columns) - 1)
        # at least one, even if there is no room
        last = min(max(bisect_left(self.edges, left + width), first + 1), len(self.columns))
        return (*range(staying), *range(max(first, staying), last))

    def at(self, cell: int, left: int, width: int) -> int:
        """Index of the column at a cell of the pane."""
        cell += left if cell >= self.edges[self.staying(width)] else 0
        return sum(edge <= cell for edge in self.edges) - 1

    def scrolled(self, columns: int, left: int, width: int) -> int:
        """Scroll offset after scrolling one column left or right: a column starts right after the frozen ones."""
        kept = self.edges[self.staying(width)]
        edges = [edge - kept for edge in self.edges[self.staying(width) :]]
        if columns < 0:
            return max((edge for edge in edges if edge < left), default=0)
        return min((edge for edge in edges if edge > left), default=left)

    def showing(self, place: int, left: int, pane: int, width: int) -> int:
        """Smallest change of the scroll offset that shows a column; ``width``: of the pane without its scroll bar."""
        start, end = self.edges[place : place + 2]
        staying = self.staying(pane)
        if place < staying:
            return left
        kept = self.edges[staying]
        if start < left + kept or end <= left + width:
            return min(left, start - kept)
        # a column starts right after the frozen ones
        return next(edge for edge in self.edges[staying:] if edge - kept >= end - width or edge == start) - kept
