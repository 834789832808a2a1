"""Layout of the timeline: its rows, and the mapping of rows and times to lines and cells; no drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len

from tpuprof_tui.analysis.compare.side_by_side import AlignedAxis, SideBySide
from tpuprof_tui.analysis.counter_lines import CounterLine, counter_lines, visible_lines
from tpuprof_tui.analysis.critical_path import cached_path_lane
from tpuprof_tui.analysis.index.lane_index import cached_sublanes, event_at
from tpuprof_tui.analysis.links.launches import launches
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, SelectedItem, StripKind
from tpuprof_tui.analysis.selecting.time_scale import Measure, Ruler, StraightAxis, measure_of
from tpuprof_tui.analysis.steps.step_detection import steps_of
from tpuprof_tui.analysis.steps.step_figures import FEWEST_OVER_TIME, step_lane
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.views.differences import cached_side_by_side

#: Kind of a row: a lane or unit (empty), the steps, the critical path, launches of a unit, counters; or below one of
#: these a strip (bandwidth, utilisation) or its counterpart in the baseline.
RowKind = Literal["", "steps", "path", "launches", "bandwidth", "utilisation", "base", "counters"]


class TimelineRow(Struct, frozen=True):
    """A row of the timeline: a lane (index into ``Profile.lanes``), or something of a unit if ``lane`` is -1.

    ``base``: the row of the baseline that is drawn instead, with its own lane and unit. ``counters``: number of a
    counter line (``counter_lines``); -1: none. ``level``: the sub-lane of an open lane; -1: the whole lane.
    """

    lane: int
    unit: int
    label: str
    guessed: bool
    first: bool
    kind: RowKind = ""
    base: TimelineRow | None = None
    counters: int = -1
    level: int = -1

    @property
    def place(self) -> tuple[int, int, int]:
        """Identity of the row among those that can be selected."""
        return self.lane, self.unit, self.counters

    @property
    def is_strip(self) -> bool:
        """Whether it belongs to the row above."""
        return self.kind in ("bandwidth", "utilisation", "base")

    @property
    def can_be_selected(self) -> bool:
        """Whether it represents a lane, unit or counter; strips, steps and the path do not."""
        return not self.is_strip and self.kind not in ("steps", "path")


class LaneLayout:
    """Layout for a state and a size. Line 0 is the ruler, the last describes what is at the cursor.

    Attributes:
        rows: All rows, including those scrolled out of view.
        width, height: Size of the pane in cells.
        legend: Number of legend lines; 0 if there is no room.
        label_width: Width in cells of label and utilisation, left of the time axis.
        cells: Width of the time axis in cells.
        info_lines: Number of lines (0 or 1) that describe what is at the cursor.
        lines: Number of rows that fit on the screen.
        pins: Number of rows at the top that do not scroll; 0 if they would leave no room for others.
        has_base, shows_units: Whether rows of a baseline, or rows of whole units, are among the rows.
        shows_colours: Whether there are rows to which colourings apply.
        axis: Maps times to cells; with a baseline, a common axis of both sides.
    """

    def __init__(self, session: Session, state: DisplayState) -> None:
        self.session = session
        self.state = state  #: The state that is laid out
        self.top = 0  #: Scroll offset: number of rows below the pinned ones that are scrolled out of view
        self._take_rows()
        self.fit(0, 0, 0)

    def _take_rows(self) -> None:
        self.rows: Sequence[TimelineRow] = rows_of(self.session, self.state)
        sides = cached_side_by_side(self.session)
        self.axis: StraightAxis | AlignedAxis = StraightAxis() if sides is None else sides.axis(self.state.scope)
        #: Length of the longest label.
        self.longest = max((len(row.label) for row in self.rows), default=6)
        self.has_base = any(row.base is not None for row in self.rows)
        self.shows_units = any(row.lane < 0 and not row.kind for row in self.rows)
        self.shows_colours = any(row.lane >= 0 or row.kind == "launches" for row in self.rows) or not self.rows
        self._pinned = next((n for n, row in enumerate(self.rows) if not is_pinned(row, self.state)), len(self.rows))

    def show(self, state: DisplayState) -> None:
        """Takes another state; ``fit`` must be called afterwards."""
        old, self.state = self.state, state
        deciding = ("scope", "line_unit", "strip", "pinned", "unfolded", "opened", "critical_path")
        if any(getattr(old, key) != getattr(state, key) for key in deciding):
            self._take_rows()

    def take_opened(self) -> None:
        """Takes the rows of open lanes whose sub-lanes have been computed."""
        if self.state.opened:
            self._take_rows()

    def fit(self, width: int, height: int, legend: int) -> None:
        """Takes the size of the pane, and the lines that the legend wants; it gets none if no lane would be left."""
        self.width, self.height = width, height
        self.legend = legend if not height or height >= 3 + legend else 0
        self.label_width = min(self.longest + 10, max(width // 3, 0))
        self.cells = max(width - self.label_width, 1)
        self.info_lines = 1 if height >= 3 else 0
        self.lines = max(height - 1 - self.info_lines - self.legend, 1)
        self.pins = self._pinned if self._pinned < self.lines - 1 else 0

    def scroll_to_selection(self) -> None:
        """Scrolls as little as needed to show the selected row."""
        row = self.selected_row(self.state)
        top = min(self.top, max(len(self.rows) - self.lines, 0))
        if row >= 0:
            top = top if row < self.pins else min(max(top, row - self.lines + 1), row - self.pins)
        self.top = max(top, 0)

    # times

    @property
    def measure(self) -> Measure:
        """How times are displayed: in units of time or in cycles."""
        return measure_of(self.session.profile.device, self.state.scale)

    @property
    def resolution(self) -> int:
        """Duration of a cell in ns, at least 1."""
        return max(self.state.span // self.cells, 1)

    def cell_of(self, time: int) -> int:
        """Cell of a time in ns; outside 0 ... cells - 1 if it is out of view."""
        return self.axis.cell_at(time, self.state.start, self.state.end, self.cells)

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        """Edges of the cells: int64 ns, cells + 1."""
        return self.axis.edges(self.state.start, self.state.end, self.cells)

    def middle_of(self, cell: int) -> int:
        """The time in the middle of a cell, ns."""
        edges = self.edges
        return (int(edges[cell]) + int(edges[cell + 1])) // 2

    @property
    def ruler(self) -> Ruler:
        """Ticks of the time axis."""
        start, end = self.state.start, self.state.end
        return self.measure.ruler(start, end, self.axis.own_cells(start, end, self.cells), self.cell_of)

    def event_under_cursor(self, lane: int, state: DisplayState) -> int:
        """Row of a lane's event at the cursor, else of the nearest within a cell's duration; -1 if there is none."""
        index, near = self.session.indexes[lane], max(state.span // self.cells, 1)
        level, levels = state.selection.level if state.selection.lane == lane else -1, cached_sublanes(index) or ()
        if not 0 <= level < len(levels):
            return event_at(index, state.cursor, near)
        row = event_at(levels[level].index, state.cursor, near)
        return int(levels[level].rows[row]) if row >= 0 else -1

    def level_of(self, selection: SelectedItem) -> int:
        """The level of the selected event, or of the selected row, in its lane if that is open."""
        if selection.row < 0 or selection.lane not in self.state.opened:
            return max(selection.level, 0)
        lane = self.session.profile.lanes[selection.lane]
        return int(lane.take("sublane", slice(selection.row, selection.row + 1))[0]) if "sublane" in lane else 0

    # lines

    def number_at(self, line: int) -> int:
        """Index in ``rows`` of a line below the ruler; -1 if there is none."""
        number = line if line < self.pins else line + self.top
        return number if 0 <= line < self.lines and number < len(self.rows) else -1

    def line_of(self, number: int) -> int:
        """Line below the ruler of an index in ``rows``; -1 if it is out of view."""
        line = number if number < self.pins else number - self.top
        return line if (number < self.pins or line >= self.pins) and 0 <= line < self.lines else -1

    def continues(self, number: int) -> bool:
        """Whether the row above is of the same unit or group, so that the label need not repeat it."""
        line, row = self.line_of(number), self.rows[number]
        if line == 0 or line <= self.pins or row.lane < 0:
            return False
        above = self.rows[number - 1]
        lanes = self.session.profile.lanes
        group = lanes[row.lane].group
        return above.unit == row.unit if above.lane < 0 else lanes[above.lane].group == group

    # the selection

    def selected_row(self, state: DisplayState) -> int:
        """Index in ``rows`` of the selected lane, unit or counter; -1 if none is selected."""
        selection, level = state.selection, self.level_of(state.selection)
        for number, row in enumerate(self.rows):
            if not row.can_be_selected or (row.kind and selection.lane >= 0) or row.counters != selection.counters:
                continue
            if (
                row.lane == selection.lane and row.level in (-1, level)
                if row.lane >= 0
                else (selection.group == row.unit)
            ):
                return number
        if selection.lane < 0 and selection.group >= 0:
            return next((number for number, row in enumerate(self.rows) if row.unit == selection.group), -1)
        return -1

    def selection_of(self, number: int) -> SelectedItem:
        """The selection that a row represents."""
        row = self.rows[number]
        return SelectedItem(row.unit, row.lane, counters=row.counters, level=row.level)

    def stepped_row(self, state: DisplayState, lines: int) -> int:
        """Index of the selectable row ``lines`` below the selected one, or the nearest; -1 if no row is selectable."""
        selectable = [number for number, row in enumerate(self.rows) if row.can_be_selected]
        current = self.selected_row(state)
        if not selectable:
            return -1
        if current < 0:
            return next((number for number in selectable if self.rows[number].kind != "launches"), selectable[0])
        if lines > 0:
            return next((number for number in selectable if number >= current + lines), selectable[-1])
        return next((number for number in reversed(selectable) if number <= current + lines), selectable[0])

    def counters_of(self, state: DisplayState) -> CounterLine | None:
        """The selected counter line; None if another row is selected."""
        lines = counter_lines(self.session)
        return lines[state.selection.counters] if 0 <= state.selection.counters < len(lines) else None

    def launches_row(self, state: DisplayState) -> TimelineRow | None:
        """The selected row if it shows launches, else None."""
        number = self.selected_row(state)
        return self.rows[number] if number >= 0 and self.rows[number].kind == "launches" else None

    def lane_for_steps(self, state: DisplayState) -> int:
        """Lane that next and previous step in: the selected one, else the first with events; -1: none."""
        if state.selection.lane >= 0:
            return state.selection.lane
        number = self.selected_row(state)
        unit = self.rows[number].unit if number >= 0 else -1
        lanes = self.session.profile.lanes
        candidates = [lane for lane in self.session.lanes_in(state.scope) if unit in (-1, self.session.unit_of(lane))]
        return next((lane for lane in candidates if len(lanes[lane])), -1)


def rows_of(session: Session, state: DisplayState) -> list[TimelineRow]:
    """Rows for a state: steps and path, pinned rows, then the others in the profile's order."""
    rows = _ordered(session, state)
    if state.pinned:
        rows.sort(key=lambda row: not is_pinned(row, state))
    if state.strip:
        rows = [line for row in rows for line in (row, *_strip(session, row, state.strip))]
    sides = cached_side_by_side(session)
    if sides is not None:
        rows = [*(line for row in rows for line in (row, *_base_rows(sides, row))), *_base_only(sides, state)]
    return [*_steps(session, state, sides), *_path(session, state), *rows]


def _steps(session: Session, state: DisplayState, sides: SideBySide | None) -> tuple[TimelineRow, ...]:
    if state.scope.lane >= 0 or len(step_lane(session, state.scope.group).lane) < FEWEST_OVER_TIME:
        return ()
    steps = steps_of(session)
    row = TimelineRow(-1, -1, steps.word.plural.capitalize(), steps.guessed, True, "steps")
    if sides is None or not state.scope.everything or not len(step_lane(sides.base).lane):
        return (row,)
    return row, replace(row, label="base", first=False, kind="base", base=row)


def _path(session: Session, state: DisplayState) -> tuple[TimelineRow, ...]:
    shown = state.critical_path and state.scope.everything and cached_path_lane(session) is not None
    return (TimelineRow(-1, -1, "Critical path", False, True, "path"),) if shown else ()


def continued_label(rows: Sequence[TimelineRow], number: int) -> str:
    """Label with the leading words that equal those of the row above blanked; the last word always stays."""
    above = next((row.label for row in reversed(rows[:number]) if not row.is_strip), "")
    words = rows[number].label.split(" ")
    same = 0
    for word, word_above in zip(words[:-1], above.split(" "), strict=False):
        if word != word_above:
            break
        same += 1
    return "".join(" " * (cell_len(word) + 1) for word in words[:same]) + " ".join(words[same:])


def is_pinned(row: TimelineRow, state: DisplayState) -> bool:
    """Whether a row is pinned to the top; steps and path always are."""
    own_row = row.base or row
    return own_row.kind in ("steps", "path") or row.place in state.pinned


def _ordered(session: Session, state: DisplayState) -> list[TimelineRow]:
    lanes, groups = session.profile.lanes, session.profile.groups
    numbers = [number for number in session.lanes_in(state.scope) if not lanes[number].is_aside]
    scopes = session.profile.vocabulary.phrase("scopes", "{scopes}")
    if state.line_unit == "units" and state.scope.lane < 0:
        units = groups.units_within(state.scope.group)
        guessed = any(lane.role_guessed for lane in lanes)
        rows = [TimelineRow(-1, unit, clean(groups.shown(unit)), guessed, True) for unit in units]
        return rows + [_lane_row(session, number, True) for number in numbers if session.unit_of(number) not in units]
    group = last_unit = -1
    rows = []
    for number in numbers:
        unit, first = session.unit_of(number), not rows or lanes[number].group != group
        if unit not in (-1, last_unit) and state.scope.lane < 0 and len(launches(session, unit).lane):
            rows.append(TimelineRow(-1, unit, f"{clean(groups.title(unit))} {scopes}", False, True, "launches"))
            first = False
        rows += _lane_rows(session, state, number, first)
        group, last_unit = lanes[number].group, unit
    return _with_counters(session, state, rows) if state.scope.lane < 0 else rows


def _with_counters(session: Session, state: DisplayState, rows: list[TimelineRow]) -> list[TimelineRow]:
    """Inserts the counter rows, each below the last row of the group that it measures."""
    lines, groups = counter_lines(session), session.profile.groups
    within = groups.within(state.scope.group)
    owners = [session.profile.lanes[row.lane].group if row.lane >= 0 else row.unit for row in rows]
    added: dict[int, list[TimelineRow]] = {}
    for number in visible_lines(lines, state.unfolded):
        line = lines[number]
        if state.scope.group >= 0 and line.group not in within:
            continue
        below = groups.within(line.group) if line.group >= 0 else None
        last = max((at for at, owner in enumerate(owners) if below is None or owner in below),
                   default=len(rows) - 1)  # fmt: skip
        sign = ("- " if number in state.unfolded else "+ ") if line.is_parent else ""
        row = TimelineRow(-1, line.group, f"{sign}{line.label}", False, True, "counters", counters=number)
        full_label = f"{sign}{clean(groups.shown(line.group))} {line.label}" if line.group >= 0 else row.label
        label = full_label if line.parent < 0 or is_pinned(row, state) else f"{'  ' * line.depth}{row.label}"
        added.setdefault(last, []).append(replace(row, label=label))
    if not added:
        return rows
    return [*added.get(-1, ()), *(line for at, row in enumerate(rows) for line in (row, *added.get(at, ())))]


def _lane_rows(session: Session, state: DisplayState, number: int, first: bool) -> list[TimelineRow]:
    """Row of a lane; of an open one a row for each level, once these are computed."""
    row = _lane_row(session, number, first)
    if number not in state.opened or state.strip:
        return [row]
    levels = cached_sublanes(session.indexes[number])
    if levels is None:
        return [replace(row, label=f"{row.label} ...")]
    return [replace(row, level=level, label=row.label if not level else "", first=first and not level)
            for level in range(len(levels))] or [row]  # fmt: skip


def _lane_row(session: Session, number: int, first: bool) -> TimelineRow:
    lane = session.profile.lanes[number]
    label = clean(f"{session.profile.groups.shown(lane.group)} {lane.label}".lstrip())
    return TimelineRow(number, session.unit_of(number), label, lane.role_guessed, first)


def _strip(session: Session, row: TimelineRow, kind: StripKind) -> tuple[TimelineRow, ...]:
    if row.lane < 0 or not kind:
        return ()
    lane, share = session.profile.lanes[row.lane], session.profile.vocabulary.share("bandwidth")
    if kind == "bandwidth" and (share is None or not any(key in lane for key, _ in share.columns)):
        return ()
    return (TimelineRow(row.lane, row.unit, "bandwidth" if kind == "bandwidth" else "busy", row.guessed, False, kind),)


def _base_rows(sides: SideBySide, row: TimelineRow) -> tuple[TimelineRow, ...]:
    """Counterpart of a row in the baseline; empty if there is none, as for counters."""
    if row.kind == "counters":
        return ()
    lane = sides.lanes[row.lane] if row.lane >= 0 else -1
    unit = sides.base.unit_of(lane) if lane >= 0 else sides.units.get(row.unit, -1)
    if lane < 0 and (row.lane >= 0 or unit < 0):
        return ()
    guessed = lane >= 0 and sides.base.profile.lanes[lane].role_guessed
    base = TimelineRow(lane, unit, row.label, guessed, row.first, row.kind)
    return (TimelineRow(row.lane, row.unit, "base", guessed, False, "base", base),)


def _base_only(sides: SideBySide, state: DisplayState) -> list[TimelineRow]:
    if not state.scope.everything or state.line_unit == "units":
        return []
    rows = []
    for number in sides.unpaired:
        lane = sides.base.profile.lanes[number]
        label = clean(f"base {sides.base.title_of(number)}")
        base = TimelineRow(number, sides.base.unit_of(number), label, lane.role_guessed, True)
        rows.append(TimelineRow(-1, -1, label, lane.role_guessed, True, "base", base))
    return rows
