"""Which lines of the timeline show, and where lanes and times are on the screen: lines and cells, no drawing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.compare.side_by_side import AlignedAxis
from tpuprof_tui.analysis.counter_lines import CounterLine, counter_lines
from tpuprof_tui.analysis.index.axis import Ruler, StraightAxis
from tpuprof_tui.analysis.index.lane_index import event_at
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, Selection
from tpuprof_tui.analysis.selecting.time_scale import Measure, measure_of
from tpuprof_tui.views.differences import known_side_by_side

from .rows import Row, is_pinned, rows_of


class LaneLayout:
    """The lines of the timeline for a state and a size: line 0 is the ruler, the last tells what is at the cursor.

    Attributes:
        session: What the timeline is about.
        state: The state that is laid out.
        rows: A row for each lane, unit or strip, shown or scrolled out of sight.
        top: How many rows below the pinned ones are scrolled out of sight.
        width, height: Of the pane, in cells.
        legend: Lines of the legend that there is room for.
        axis: Where times lie; with a baseline the axis of both.
    """

    def __init__(self, session: Session, state: DisplayState) -> None:
        self.session = session
        self.state = state
        self.top = self.width = self.height = self.legend = 0
        self._take_rows()

    def _take_rows(self) -> None:
        self.rows: Sequence[Row] = rows_of(self.session, self.state)
        both = known_side_by_side(self.session)
        self.axis: StraightAxis | AlignedAxis = StraightAxis() if both is None else both.axis(self.state.scope)
        #: Cells of the longest label.
        self.longest = max((len(row.label) for row in self.rows), default=6)
        self._pinned = next((n for n, row in enumerate(self.rows) if not is_pinned(row, self.state)), len(self.rows))

    def show(self, state: DisplayState) -> None:
        """Lays another state out; ``fit`` is to be called after it."""
        old, self.state = self.state, state
        deciding = ("scope", "rows", "strip", "pinned", "unfolded", "path")
        if any(getattr(old, key) != getattr(state, key) for key in deciding):
            self._take_rows()

    def fit(self, width: int, height: int, legend: int) -> None:
        """Takes the size of the pane, and how many lines the legend would take: none where it would leave no lane."""
        self.width, self.height = width, height
        self.legend = legend if not height or height >= 3 + legend else 0

    def scroll_to_selection(self) -> None:
        """Scrolls no further than it takes to show the selected line."""
        row = self.selected_row(self.state)
        top = min(self.top, max(len(self.rows) - self.lines, 0))
        if row >= 0:
            top = top if row < self.pins else min(max(top, row - self.lines + 1), row - self.pins)
        self.top = max(top, 0)

    # times

    @property
    def measure(self) -> Measure:
        """What times are told in."""
        return measure_of(self.session.profile.device, self.state.scale)

    @property
    def label_width(self) -> int:
        """Cells left of the time axis: labels and utilisation."""
        return min(self.longest + 10, max(self.width // 3, 0))

    @property
    def cells(self) -> int:
        """Cells of the time axis."""
        return max(self.width - self.label_width, 1)

    @property
    def resolution(self) -> int:
        """Time of a cell, ns."""
        return max(self.state.span // self.cells, 1)

    def cell_of(self, time: int) -> int:
        """The cell of a time; outside 0 ... cells - 1 where it is out of sight."""
        return self.axis.cell_at(time, self.state.start, self.state.end, self.cells)

    @property
    def has_base(self) -> bool:
        """Whether lines of a base are among the rows."""
        return any(row.base is not None for row in self.rows)

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        """Edges of the cells, int64 ns."""
        return self.axis.edges(self.state.start, self.state.end, self.cells)

    def middle_of(self, cell: int) -> int:
        """The time in the middle of a cell, ns."""
        edges = self.edges
        return (int(edges[cell]) + int(edges[cell + 1])) // 2

    @property
    def ruler(self) -> Ruler:
        """Ticks over the cells."""
        start, end = self.state.start, self.state.end
        return self.measure.ruler(start, end, self.axis.own_cells(start, end, self.cells), self.cell_of)

    def event_under_cursor(self, lane: int, state: DisplayState) -> int:
        """Row of the event of a lane at the cursor, or the nearest inside the cursor's cell; -1 without one."""
        return event_at(self.session.indexes[lane], state.cursor, max(state.span // self.cells, 1))

    # lines

    @property
    def info_lines(self) -> int:
        """Lines that tell what is at the cursor."""
        return 1 if self.height >= 3 else 0

    @property
    def lines(self) -> int:
        """How many rows fit on the screen."""
        return max(self.height - 1 - self.info_lines - self.legend, 1)

    @property
    def shows_units(self) -> bool:
        """Whether a line stands for a whole unit."""
        return any(row.lane < 0 and not row.kind for row in self.rows)

    @property
    def shows_colours(self) -> bool:
        """Whether there are lines whose colours have a meaning one can choose."""
        return any(row.lane >= 0 or row.kind == "launches" for row in self.rows) or not self.rows

    @property
    def pins(self) -> int:
        """Rows on top that do not scroll: the pinned ones, unless they would leave no room for others."""
        return self._pinned if self._pinned < self.lines - 1 else 0

    def number_at(self, line: int) -> int:
        """Place in ``rows`` of a line below the ruler; -1 where there is none."""
        number = line if line < self.pins else line + self.top
        return number if 0 <= line < self.lines and number < len(self.rows) else -1

    def line_of(self, number: int) -> int:
        """The line below the ruler that shows a place in ``rows``; -1 where it is out of sight."""
        line = number if number < self.pins else number - self.top
        return line if (number < self.pins or line >= self.pins) and 0 <= line < self.lines else -1

    def continues(self, number: int) -> bool:
        """Whether the line above belongs to the same unit or group, so that it need not be named again."""
        line, row = self.line_of(number), self.rows[number]
        if line == 0 or line <= self.pins or row.lane < 0:
            return False
        above = self.rows[number - 1]
        lanes = self.session.profile.lanes
        group = lanes[row.lane].group
        return above.unit == row.unit if above.lane < 0 else lanes[above.lane].group == group

    # the selection

    def selected_row(self, state: DisplayState) -> int:
        """Place in ``rows`` of the selected lane or unit; -1 without one."""
        selection = state.selection
        for number, row in enumerate(self.rows):
            if not row.can_be_selected or (row.kind and selection.lane >= 0) or row.counters != selection.counters:
                continue
            if row.lane == selection.lane if row.lane >= 0 else selection.group == row.unit:
                return number
        if selection.lane < 0 and selection.group >= 0:
            return next((number for number, row in enumerate(self.rows) if row.unit == selection.group), -1)
        return -1

    def selection_of(self, number: int) -> Selection:
        """What is selected with a row."""
        row = self.rows[number]
        return Selection(row.unit, row.lane, counters=row.counters)

    def stepped_row(self, state: DisplayState, lines: int) -> int:
        """The row so many lines below the selected one, or the nearest in that direction; -1: none can be selected."""
        known = [number for number, row in enumerate(self.rows) if row.can_be_selected]
        now = self.selected_row(state)
        if not known:
            return -1
        if now < 0:
            return next((number for number in known if self.rows[number].kind != "launches"), known[0])
        if lines > 0:
            return next((number for number in known if number >= now + lines), known[-1])
        return next((number for number in reversed(known) if number <= now + lines), known[0])

    def counters_of(self, state: DisplayState) -> CounterLine | None:
        """The selected line where it is one of counters."""
        known = counter_lines(self.session)
        return known[state.selection.counters] if 0 <= state.selection.counters < len(known) else None

    def launches_row(self, state: DisplayState) -> Row | None:
        """The selected row where it is one of launches."""
        number = self.selected_row(state)
        return self.rows[number] if number >= 0 and self.rows[number].kind == "launches" else None

    def lane_for_steps(self, state: DisplayState) -> int:
        """The lane whose events are stepped through: the selected one, else the first with events; -1: none."""
        if state.selection.lane >= 0:
            return state.selection.lane
        number = self.selected_row(state)
        unit = self.rows[number].unit if number >= 0 else -1
        lanes = self.session.profile.lanes
        fitting = [place for place in self.session.lanes_in(state.scope) if unit in (-1, self.session.unit_of(place))]
        return next((place for place in fitting if len(lanes[place])), -1)
