"""Columns of the table as they are laid out: which show, how wide they are, how far they are scrolled sideways."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from tpuprof_tui.analysis.selecting.cell_texts import header_text
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.export.table import SHARE
from tpuprof_tui.model import Column

#: Cells between columns.
GAP = 1
#: Columns that say which event a row is: in front they stay where the table scrolls sideways.
STAYING = ("engine", "core", "port", "order", "name")
#: Where they leave the others this share of the width at least.
_LEAST_SCROLLED = 0.4
#: Names take this share of the pane at most, but so many cells at least: times show beside them.
_MOST_OF_NAMES, _LEAST_OF_NAMES = 0.3, 18


def shown_columns(session: Session, state: DisplayState) -> tuple[Column, ...]:
    """The table's columns in a state: those chosen, else the usual ones; the share behind the duration."""
    known = {column.key: column for column in session.columns}
    columns = [known[key] for key in state.columns if key in known] or list(session.columns)
    if state.percent:
        place = next((number for number, column in enumerate(columns) if column.key == "duration"), len(columns) - 1)
        columns.insert(place + 1, SHARE)
    return tuple(columns)


class ColumnLayout:
    """Columns side by side; places are numbers of columns, ``left`` is how many cells they are scrolled.

    Attributes:
        columns: Those shown, in their order.
        widths: Cells of each, without the gap.
        edges: Left edge of each column, and the right edge of the last.
        place: The chosen column.
    """

    def __init__(self, session: Session, state: DisplayState) -> None:
        self._session = session
        self._pane = 0
        self.columns: tuple[Column, ...] = ()
        self.place = 0
        self.show(state)

    def show(self, state: DisplayState) -> None:
        """Takes the columns of a state; the chosen one stays chosen."""
        chosen = self.chosen.key if self.columns else state.sort.key
        self.columns = shown_columns(self._session, state)
        self._lay_out()
        self.place = max(self.place_of(chosen), 0)

    def resized(self, pane: int) -> bool:
        """Takes the width of the pane; gives whether columns changed theirs."""
        before, self._pane = self.widths, pane
        self._lay_out()
        return self.widths != before

    def _lay_out(self) -> None:
        self.widths = [self._width_of(column) for column in self.columns]
        name = self.place_of("name")
        room = int(self._pane * (1 - _LEAST_SCROLLED)) - sum(self.widths[: max(name, 0)]) - GAP * (name + 1)
        if name >= 0 and room >= _LEAST_OF_NAMES:
            # names stay in view beside what the table is sorted by
            self.widths[name] = min(self.widths[name], room)
        self.edges: list[int] = [0, *np.cumsum([width + GAP for width in self.widths]).tolist()]

    @property
    def chosen(self) -> Column:
        """The chosen column."""
        return self.columns[self.place]

    def place_of(self, key: str) -> int:
        """The place of a column by its key; -1 where it does not show."""
        return next((place for place, column in enumerate(self.columns) if column.key == key), -1)

    def _width_of(self, column: Column) -> int:
        header, profile = len(header_text(column.title, column.unit)) + 2, self._session.profile
        # narrow where numbers are small: the more fits on the screen
        if column.key in ("start", "end"):
            return max(header, len(f"{profile.end_ns:,}"), len(f"{profile.start_ns:,}"))
        if column.key == "order":
            return max(header, len(f"{max(map(len, profile.lanes), default=0):,}"))
        width = column.width
        if column.key == "name" and self._pane:
            width = min(width, max(int(self._pane * _MOST_OF_NAMES), _LEAST_OF_NAMES))
        return max(width, header)

    def staying(self, width: int) -> int:
        """How many columns in front stay where the table scrolls sideways: as many as leave the others room."""
        count, room = 0, width * (1 - _LEAST_SCROLLED)
        while count < len(self.columns) and self.columns[count].key in STAYING and self.edges[count + 1] <= room:
            count += 1
        return count

    def in_view(self, left: int, width: int) -> tuple[int, ...]:
        """Places of the columns in view, those that stay in front: others cost nothing."""
        staying = self.staying(width)
        first = min(max(bisect_right(self.edges, self.edges[staying] + left) - 1, staying), len(self.columns) - 1)
        # one at least, also where there is no room for any
        last = min(max(bisect_left(self.edges, left + width), first + 1), len(self.columns))
        return (*range(staying), *range(max(first, staying), last))

    def at(self, cell: int, left: int, width: int) -> int:
        """The place of the column at a cell of the pane."""
        cell += left if cell >= self.edges[self.staying(width)] else 0
        return sum(edge <= cell for edge in self.edges) - 1

    def scrolled(self, columns: int, left: int, width: int) -> int:
        """``left`` after scrolling by a column: one stands right behind those that stay."""
        kept = self.edges[self.staying(width)]
        edges = [edge - kept for edge in self.edges[self.staying(width) :]]
        if columns < 0:
            return max((edge for edge in edges if edge < left), default=0)
        return min((edge for edge in edges if edge > left), default=left)

    def showing(self, place: int, left: int, pane: int, width: int) -> int:
        """``left`` moved no further than it takes to show a column; ``width`` is the pane's without scroll bar."""
        start, end = self.edges[place : place + 2]
        staying = self.staying(pane)
        if place < staying:
            return left
        kept = self.edges[staying]
        if start < left + kept or end <= left + width:
            return min(left, start - kept)
        # a column stands right behind those that stay
        return next(edge for edge in self.edges[staying:] if edge - kept >= end - width or edge == start) - kept
