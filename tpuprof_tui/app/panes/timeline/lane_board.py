"""The lines of the timeline and where they stand: which lane is where, which line shows what, which is selected."""

from __future__ import annotations

from rich.segment import Segment
from textual.geometry import Size
from textual.widget import Widget

from tpuprof_tui.analysis.index.axis import cell_at
from tpuprof_tui.analysis.index.lane_index import event_at
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import ViewState
from tpuprof_tui.analysis.selecting.time_scale import Measure, measure_of
from tpuprof_tui.app.drawing.glyphs import Glyphs
from tpuprof_tui.app.drawing.strips import legend_lines, unit_legend
from tpuprof_tui.app.drawing.theme import Palette

from .rows import Row, is_pinned, rows_of


class LaneBoard(Widget, can_focus=True):
    """Places of lanes and times on the screen. Line 0 is the ruler, the last tells what is at the cursor."""

    def __init__(self, session: Session, view: ViewState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(id="timeline")
        self.session = session
        self.view = view
        self.palette = palette
        self.glyphs = glyphs
        self.rows: list[Row] = []
        self.top = 0
        self._legend: tuple[tuple[object, ...], list[list[Segment]]] = ((), [])
        self._longest = 6
        #: The size while a frame is drawn, which asks for it in every cell; None: it is looked up.
        self._extent: Size | None = None
        self._take_rows()

    def _take_rows(self) -> None:
        self.rows = rows_of(self.session, self.view)
        self._longest = max((len(row.label) for row in self.rows), default=6)
        self._pinned = next((n for n, row in enumerate(self.rows) if not is_pinned(row, self.view)), len(self.rows))

    @property
    def measure(self) -> Measure:
        """What times are told in."""
        return measure_of(self.session.profile.device, self.view.scale)

    @property
    def extent(self) -> Size:
        """Width and height in cells."""
        return self.size if self._extent is None else self._extent

    # times

    @property
    def label_width(self) -> int:
        """Cells left of the time axis: labels and utilisation."""
        return min(self._longest + 10, max(self.extent.width // 3, 0))

    @property
    def cells(self) -> int:
        """Cells of the time axis."""
        return max(self.extent.width - self.label_width, 1)

    @property
    def resolution(self) -> int:
        """Time of a cell, ns."""
        return max(self.view.span // max(self.cells, 1), 1)

    def cell_of(self, time: int) -> int:
        """The cell of a time; outside 0 ... cells - 1 where it is out of sight."""
        return cell_at(time, self.view.start, self.view.end, self.cells)

    def event_under_cursor(self, lane: int, view: ViewState) -> int:
        """Row of the instruction at the cursor, or the nearest inside the cursor's cell; -1 without one."""
        near = max((view.end - view.start) // max(self.cells, 1), 1)
        index = self.session.indexes[lane]
        return event_at(index, view.cursor, near) if len(index.lane) else -1

    # lines

    @property
    def _info_lines(self) -> int:
        return 1 if self.extent.height >= 3 else 0

    @property
    def lines(self) -> int:
        """Lanes that fit on the screen: one line is the ruler, one tells what is at the cursor."""
        return max(self.extent.height - 1 - self._info_lines - len(self.legend_lines), 1)

    @property
    def legend_lines(self) -> list[list[Segment]]:
        """Lines that explain what is drawn; none where they are not wanted, or would leave no lane."""
        height = self.extent.height
        lines = self._legend_wanted()
        return lines if not height or height >= 3 + len(lines) else []

    def _legend_wanted(self) -> list[list[Segment]]:
        """The lines of the legend, whether there is room for them or not."""
        view, width = self.view, self.extent.width
        if not view.legend:
            return []
        key = (view.colouring, view.rows, view.scope, width, id(self.palette))
        if self._legend[0] != key:
            lines = (
                [unit_legend(self.session.profile.vocabulary, width, self.palette, self.glyphs)]
                if self.shows_cores
                else []
            )
            if self.shows_colours:
                lines += legend_lines(self.session.profile, view.colouring, width, self.palette, self.glyphs)
            if view.colouring != "kernel" and any(row.kind == "launches" for row in self.rows):
                lines += legend_lines(self.session.profile, "kernel", width, self.palette, self.glyphs)
            self._legend = key, lines
        return self._legend[1]

    @property
    def shows_cores(self) -> bool:
        """Whether a line stands for a whole core."""
        return any(row.lane < 0 and not row.kind for row in self.rows)

    @property
    def shows_colours(self) -> bool:
        """Whether there are lines whose colours have a meaning one can choose."""
        return any(row.lane >= 0 or row.kind == "launches" for row in self.rows) or not self.rows

    @property
    def pins(self) -> int:
        """Lines on top that do not scroll: the pinned ones, unless they would leave no room for others."""
        return self._pinned if self._pinned < self.lines - 1 else 0

    def number_at(self, line: int) -> int:
        """Place in ``rows`` of a line below the ruler; -1 where there is none."""
        number = line if line < self.pins else line + self.top
        return number if 0 <= line < self.lines and number < len(self.rows) else -1

    def line_of(self, number: int) -> int:
        """The line below the ruler that shows a place in ``rows``; -1 where it is out of sight."""
        line = number if number < self.pins else number - self.top
        return line if (number < self.pins or line >= self.pins) and 0 <= line < self.lines else -1

    def wanted_height(self) -> int:
        """Lines it would take to show everything."""
        return len(self.rows) + 2 + len(self._legend_wanted())

    def selected_row(self, view: ViewState) -> int:
        """Line of the selected lane or unit; -1 without one."""
        selection = view.selection
        for number, row in enumerate(self.rows):
            if not row.can_be_selected or (row.kind and selection.lane >= 0):
                continue
            if row.lane == selection.lane if row.lane >= 0 else selection.group == row.unit:
                return number
        if selection.lane < 0 and selection.group >= 0:
            return next((number for number, row in enumerate(self.rows) if row.unit == selection.group), -1)
        return -1

    def _continues(self, number: int) -> bool:
        """Whether the line above belongs to the same core or group, so that it need not be named again."""
        line, row = self.line_of(number), self.rows[number]
        if line == 0 or line <= self.pins or row.lane < 0:
            return False
        above = self.rows[number - 1]
        lanes = self.session.profile.lanes
        group = lanes[row.lane].group
        return above.unit == row.unit if above.lane < 0 else lanes[above.lane].group == group
