"""Paints the lines of the timeline (ruler, rows with labels, overlays, legend), and computes what that needs."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
from rich.segment import Segment
from rich.style import Style
from textual.worker import get_current_worker

from tpuprof_tui.analysis.compare.side_by_side import AlignedAxis
from tpuprof_tui.analysis.counter_lines import counter_curve, counter_lines, line_heights
from tpuprof_tui.analysis.critical_path import path_lane
from tpuprof_tui.analysis.index.lane_index import build_index, cached_sublanes, sublanes_of
from tpuprof_tui.analysis.links.dependencies import (
    LinkedEvent,
    cached_dependencies,
    dependencies_of,
    linked_events,
    may_have_dependencies,
)
from tpuprof_tui.analysis.links.launches import launches, launches_with
from tpuprof_tui.analysis.selecting.filter_masks import FilterResult, apply_filter, is_filter_cached
from tpuprof_tui.analysis.selecting.filters import split_step
from tpuprof_tui.analysis.selecting.moves import selected_span
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Colouring, DisplayState
from tpuprof_tui.analysis.steps.step_detection import steps_of
from tpuprof_tui.analysis.steps.step_figures import step_lane
from tpuprof_tui.app.drawing import painter
from tpuprof_tui.app.drawing.colouring import AT_ONCE, PLAIN, compute_colour_sums, has_colour_sums, known_names
from tpuprof_tui.app.drawing.glyphs import Glyphs
from tpuprof_tui.app.drawing.painter import CellPaint, merged
from tpuprof_tui.app.drawing.theme import Palette
from tpuprof_tui.app.shell.messages import Background
from tpuprof_tui.formats.text import fit, label_cut
from tpuprof_tui.formats.units import percent_text, short_text
from tpuprof_tui.views.differences import cached_differences

from .layout import LaneLayout, TimelineRow, continued_label

#: Work for a thread: its kind, its parameter, and the function, which caches its result in the session.
Job = tuple[str, str, Callable[[], object]]


class LaneData:
    """Data that is expensive to compute (filter masks, sums for colours, dependencies), of small profiles at once.

    Until it is available the timeline is drawn without it: all events as if they passed the filter, cells without share
    or name in one dim style.


    Args:
        session: Session of the profile.
        background: Runs worker threads; not shared with others.
        changed: Called in the event loop when a thread has finished.
    """

    def __init__(self, session: Session, background: Background, changed: Callable[[], object]) -> None:
        self.session = session
        self._background = background
        self._changed = changed
        #: Events that pass the filter, once computed; None: no event is hidden.
        self.passing: FilterResult | None = None
        self.linked_events: tuple[LinkedEvent, ...] = ()  #: Releasers and waiters of the selected event
        #: Parameter of the running computation, by kind; only the latest of each kind counts.
        self._running: dict[str, str] = {}
        self._has_dependencies = may_have_dependencies(session)
        self._is_small = session.profile.event_count <= AT_ONCE

    def prepare(self, state: DisplayState) -> None:
        """Takes the data for a state if available; starts computing what is missing and not being computed yet."""
        for kind, parameter, run in (
            *self._filter(state.filter),
            *self._levels(state),
            *self._colours(state),
            *self._links(state),
        ):
            if self._running.get(kind) != parameter:
                self._running[kind] = parameter
                self._background.compute(kind, run, partial(self._done, kind))

    def _done(self, kind: str, _: object) -> None:
        del self._running[kind]
        self._changed()

    def _filter(self, text: str) -> Iterator[Job]:
        if self.passing is not None and self.passing.text == text:
            return
        self.passing = None
        if not text:
            return
        session = self.session
        found = apply_filter(session, text) if self._is_small or is_filter_cached(session, text) else None
        if found is not None and (self._is_small or found.has_session):
            self.passing = found
        else:
            yield "filter", text, partial(_filter_lanes, session, text)

    @property
    def _sessions(self) -> list[Session]:
        return [self.session, *([self.passing.session] if self.passing is not None else [])]

    def _levels(self, state: DisplayState) -> Iterator[Job]:
        lanes = len(self.session.profile.lanes)
        missing = [index for session in self._sessions for lane in state.opened if lane < lanes
                   if cached_sublanes(index := session.indexes[lane]) is None]  # fmt: skip
        if self._is_small:
            deque(map(sublanes_of, missing), 0)
        elif missing:
            yield "sub-lanes", str(state.opened), partial(_run_job, (None for index in missing if sublanes_of(index)))

    def colours_ready(self, lane: int, colouring: Colouring) -> bool:
        """Whether the sums for the colours of a lane are computed."""
        return self._is_small or all(has_colour_sums(session.indexes[lane], colouring) for session in self._sessions)

    def computing_colours(self, state: DisplayState) -> bool:
        """Whether sums for a state are still being computed."""
        return any(True for _ in self._colours(state))

    def _colours(self, state: DisplayState) -> Iterator[Job]:
        for colouring in sorted({state.colouring, *(["bandwidth"] if state.strip == "bandwidth" else [])}):
            sessions = () if colouring in PLAIN else self._sessions
            if all(has_colour_sums(each, colouring) for session in sessions for each in session.indexes):
                continue
            work = compute_colour_sums(self.session, self.passing, colouring)
            if self._is_small:
                deque(work, 0)
            else:
                yield f"sums of {colouring}", "", partial(_run_job, work)

    def _links(self, state: DisplayState) -> Iterator[Job]:
        selection, session = state.selection, self.session
        self.linked_events = ()
        if selection.row < 0 or not self._has_dependencies:
            return
        if self._is_small:
            dependencies_of(session)
        if cached_dependencies(session) is not None:
            self.linked_events = linked_events(session, selection.lane, selection.row)
        else:
            yield "dependencies", "", partial(dependencies_of, session)


def _filter_lanes(session: Session, text: str) -> None:
    found = apply_filter(session, text).session
    for unit in session.profile.units:
        launches_with(session, found, unit)


def _run_job(work: Iterator[None]) -> None:
    worker = get_current_worker()
    for _ in work:
        if worker.is_cancelled:
            return


#: Most painted rows in the cache; a moved cursor or selection reuses them.
MAX_CACHED_ROWS = 512


class LanePainter:
    """Paints the rows of a layout from the data of the profile and its baseline; caches painted rows."""

    def __init__(
        self, layout: LaneLayout, lane_data: LaneData, base: LaneData | None, palette: Palette, glyphs: Glyphs
    ) -> None:
        self._session = layout.session
        self._layout = layout
        self._lane_data = lane_data
        self._base = base
        #: By colouring, the numbers in this profile of the baseline's kernel functions or other names.
        self._base_numbers: dict[Colouring, npt.NDArray[np.int64]] = {}
        self._palette = palette
        self._glyphs = glyphs
        self._cache: OrderedDict[tuple[Hashable, ...], CellPaint] = OrderedDict()
        self._legend: tuple[tuple[object, ...], list[list[Segment]]] = ((), [])

    @property
    def _view(self) -> DisplayState:
        return self._layout.state

    def legend(self, width: int) -> list[list[Segment]]:
        """Lines of the legend; empty if it is hidden."""
        state, layout, profile = self._view, self._layout, self._session.profile
        if not state.legend:
            return []
        names = known_names(self._session, state.colouring)
        kinds = {row.kind for row in layout.rows}
        key = (state.colouring, names is None, state.line_unit, state.scope, width, *sorted(kinds))
        if self._legend[0] != key:
            look = width, self._palette, self._glyphs
            lines = [painter.unit_legend(profile.vocabulary, *look)] if layout.shows_units else []
            if layout.shows_colours:
                lines += painter.legend_lines(profile, state.colouring, *look, names)
            if state.colouring != "kernel" and any(row.kind == "launches" for row in layout.rows):
                lines += painter.legend_lines(profile, "kernel", *look)
            lanes = dict.fromkeys(profile.lanes[row.lane].kind for row in layout.rows if row.lane >= 0 and not row.kind)
            colouring = state.colouring if layout.shows_colours else None
            others = painter.other_legend(profile, colouring, lanes, kinds, *look)
            lines += [others] if others else []
            self._legend = key, lines
        return self._legend[1]

    # the ruler

    def ruler(self) -> list[Segment]:
        """The ruler: unit, ticks with times, marks, range and cursor."""
        state, layout, palette = self._view, self._layout, self._palette
        count = layout.cells
        marks = layout.ruler
        chars = [" "] * count
        styles = [palette.quiet] * count
        pointer = layout.cell_of(state.cursor)
        ends = [(letter, time) for letter, start, end in state.spans for time in (start, end - 1)]
        letters = [(letter, layout.cell_of(time)) for letter, time in (*ends, *state.marks)]
        taken = [pointer, *(cell for _, cell in letters)]
        taken += [layout.cell_of(state.range[0]), layout.cell_of(state.range[1] - 1)] if state.range else []
        for cell, label in marks.ticks:
            # drop labels that a pointer or letter would overwrite: the rest would read as another number
            text = self._glyphs.tick + ("" if any(cell <= each <= cell + len(label) for each in taken) else label)
            if cell + len(text) <= count:
                chars[cell : cell + len(text)] = list(text)
        self._rule_range(chars, styles)
        for letter, cell in letters:
            if 0 <= cell < count:
                chars[cell], styles[cell] = letter, palette.chosen
        if 0 <= pointer < count:
            chars[pointer], styles[pointer] = self._glyphs.pointer, palette.cursor
        unit = fit(f"{marks.unit.name} ", layout.label_width, right=True)
        return [Segment(unit, palette.quiet), *merged(chars, styles)]

    def _rule_range(self, chars: list[str], styles: list[Style]) -> None:
        state, count = self._view, len(chars)
        if state.range is None and state.anchor is None:
            return
        start, end = state.range or (state.anchor or 0, (state.anchor or 0) + 1)
        if end <= state.start or start >= state.end:
            return
        first, last = self._layout.cell_of(start), self._layout.cell_of(end - 1)
        low, high = max(first, 0), min(last, count - 1)
        styles[low : high + 1] = [self._palette.bar] * (high + 1 - low)
        if state.range is not None and last == high and last > first:
            chars[last] = "]"
        if first == low:
            chars[first] = "["

    # rows

    def line(self, number: int, selected: int) -> list[Segment]:
        """Segments of a row: label, utilisation and cells; ``selected``: index of the selected row."""
        layout, state = self._layout, self._view
        row = layout.rows[number]
        painted = self._painted(row, state.start, state.end, layout.cells)
        start, end = self._session.clip_window(*state.figures_window, row.lane, row.unit)
        counted = (
            painted if (start, end) == (state.start, state.end) else self._painted(row, start, max(end, start + 1), 1)
        )
        label = self._label(number, counted.utilisation if end > start else 0.0, number == selected)
        cursor = layout.cell_of(state.cursor)
        chars, styles = list(painted.chars), list(painted.styles)
        self._overlay_selection(row, chars, styles)
        self._overlay_partner(row, styles)
        self._overlay_linked_events(row, chars, styles)
        if 0 <= cursor < len(chars):
            style = styles[cursor]
            if chars[cursor] == " " and not style.reverse and style.bgcolor is None:
                chars[cursor], styles[cursor] = self._glyphs.cursor, self._palette.quiet
            else:
                styles[cursor] = self._palette.on_cursor(style)
        return [*label, *merged(chars, styles)]

    def _painted(self, row: TimelineRow, start: int, end: int, cells: int) -> CellPaint:
        state, axis, lane_data = self._view, self._layout.axis, self._data_of(row)
        pending = not self._colours_ready(row.base or row, lane_data)
        chosen = split_step(state.filter)[0] if row.kind == "steps" else None
        content = (row, state.colouring, lane_data.passing.text if lane_data.passing is not None else "", state.scope)
        key = (*content, pending, chosen, start, end, cells)
        found = self._cache.get(key)
        if found is None:
            edges = (axis.edges if row.base is None else axis.base_edges)(start, end, cells)
            found = self._cache[key] = self._paint(row.base or row, lane_data, edges, pending)
            if isinstance(axis, AlignedAxis):
                for cell in np.flatnonzero(edges[1:] == edges[:-1]).tolist():
                    # a gap: this side has no time here
                    found.chars[cell], found.styles[cell] = self._glyphs.gap, self._palette.hidden
            if len(self._cache) > MAX_CACHED_ROWS:
                self._cache.popitem(last=False)
        return found

    def _data_of(self, row: TimelineRow) -> LaneData:
        return self._lane_data if row.base is None or self._base is None else self._base

    def _colours_ready(self, row: TimelineRow, lane_data: LaneData) -> bool:
        if row.lane < 0 or row.kind == "utilisation":
            return True
        colouring = "bandwidth" if row.kind == "bandwidth" else self._view.colouring
        # names of the baseline are mapped to the numbers in this profile, so those must be known too
        return lane_data.colours_ready(row.lane, colouring) and known_names(self._session, colouring) is not None

    def _paint(self, row: TimelineRow, lane_data: LaneData, edges: npt.NDArray[np.int64], pending: bool) -> CellPaint:
        session, passing, look = lane_data.session, lane_data.passing, (self._palette, self._glyphs)
        if row.kind == "steps":
            group = self._view.scope.group if session is self._session else -1
            index, word = step_lane(session, group), steps_of(session).word.one
            return painter.paint_steps(index, word, split_step(self._view.filter)[0], edges, *look)
        if row.kind == "counters":
            return painter.paint_counters(line_heights(session, counter_lines(session)[row.counters], edges), *look)
        if row.kind == "path":
            colouring = "kernel" if "kernel" in session.profile.strings else "operation"
            return painter.paint_lane(session.profile, path_lane(session), edges, *look, colouring)
        full = self._paint_of(session, session, row, edges, pending)
        if passing is None:
            return full
        filtered = self._paint_of(session, passing.session, row, edges, pending)
        # hidden events are shown as dots only if some event of the row passes; otherwise the row stays empty
        if row.is_strip or not _has_events(passing.session, row):
            return filtered
        return painter.paint_passing(full, filtered, *look)

    def _paint_of(
        self, every: Session, session: Session, row: TimelineRow, edges: npt.NDArray[np.int64], pending: bool
    ) -> CellPaint:
        look, profile = (self._palette, self._glyphs), every.profile
        colouring = "kernel" if row.kind == "launches" else self._view.colouring
        numbers = None if every is self._session or pending else self._colour_numbers(every, colouring)
        if row.kind == "launches":
            index = launches(session, row.unit) if session is every else launches_with(every, session, row.unit)
            return painter.paint_lane(profile, index, edges, *look, colouring, colour_numbers=numbers)
        if row.lane < 0:
            return painter.paint_unit(session.indexes.by_unit[row.unit], edges, *look)
        index = session.indexes[row.lane]
        if row.level >= 0:
            levels = sublanes_of(index)
            index = (
                levels[row.level].index if row.level < len(levels) else build_index(index.lane.select_rows(slice(0, 0)))
            )
            if not has_colour_sums(index, colouring) and len(index.starts) > AT_ONCE:
                colouring = "operation"
        if row.kind == "bandwidth" or row.kind == "utilisation":
            return painter.paint_strip(profile, index, edges, row.kind, *look, pending=pending)
        return painter.paint_lane(profile, index, edges, *look, colouring, pending=pending, colour_numbers=numbers)

    def _colour_numbers(self, base: Session, colouring: Colouring) -> npt.NDArray[np.int64]:
        """Maps codes of the baseline's names to numbers: those in this profile, new ones after them; int64, -1 last."""
        if colouring not in self._base_numbers:
            own, there = (known_names(each, colouring) or () for each in (self._session, base))
            codes = {str(text): number for number, text in enumerate(own)}
            self._base_numbers[colouring] = np.array([*(codes.setdefault(str(each), len(codes)) for each in there), -1])
        return self._base_numbers[colouring]

    def _label(self, number: int, share: float, selected: bool) -> list[Segment]:
        layout, palette = self._layout, self._palette
        row = layout.rows[number]
        mark = self._glyphs.mark if selected else " "
        percent = self._top_text(row) if row.kind == "counters" else percent_text(share, guessed=row.guessed)
        room = layout.label_width - len(percent) - 3
        label = row.label
        if row.is_strip:
            label = fit(label, min(layout.longest, max(room, 0)), right=True)
        elif not row.first and not selected and layout.continues(number):
            label = continued_label(layout.rows, number)
        if room < 3:
            return [Segment(fit(mark + row.label, layout.label_width), palette.text)]
        return [
            Segment(mark, palette.key),
            Segment(fit(label_cut(label, room), room), palette.strong if selected else palette.text),
            Segment(f" {percent} ", palette.text if share else palette.quiet),
        ]

    def _top_text(self, row: TimelineRow) -> str:
        line = counter_lines(self._session)[row.counters]
        if line.is_parent:
            return f"{len(line.counters):,}"
        unit = self._session.profile.counters[line.counters[0]].unit
        return short_text(counter_curve(self._session, line.counters[0]).high, unit)

    # overlays

    def _overlay_selection(self, row: TimelineRow, chars: list[str], styles: list[Style]) -> None:
        state, layout = self._view, self._layout
        selection = state.selection
        if row.lane != selection.lane or row.kind or (row.lane < 0 and row.unit != selection.group):
            return
        if selection.row >= 0 and row.level >= 0 and row.level != layout.level_of(selection):
            return
        start, end = selected_span(state, self._session) or (state.end, state.end)
        if end < state.start or start >= state.end:
            return
        first = max(layout.cell_of(start), 0)
        last = min(layout.cell_of(end - 1), layout.cells - 1)
        self._select(styles, first, last)
        if selection.row >= 0 and last - first >= 2 and layout.cell_of(start) == first:
            chars[first] = self._glyphs.mark

    def _overlay_partner(self, row: TimelineRow, styles: list[Style]) -> None:
        selection, layout = self._view.selection, self._layout
        known = cached_differences(self._session)
        if selection.row < 0 or known is None or row.base is None or row.base.lane < 0 or row.base.kind:
            return
        partner = int(known.partner[self._session.number(selection.lane, selection.row)])
        base = self._data_of(row).session
        if partner < 0 or base.locate(partner)[0] != row.base.lane:
            return
        start, end = base.span_of(*base.locate(partner))
        edges = layout.axis.base_edges(layout.state.start, layout.state.end, layout.cells)
        first, last = np.searchsorted(edges, (start, max(end - 1, start)), side="right") - 1
        self._select(styles, max(int(first), 0), min(int(last), layout.cells - 1))

    def _select(self, styles: list[Style], first: int, last: int) -> None:
        for cell in range(first, last + 1):
            styles[cell] = self._palette.on_selected(styles[cell])

    def _overlay_linked_events(self, row: TimelineRow, chars: list[str], styles: list[Style]) -> None:
        """Marks the ends of the selected event's releasers, and the starts of what it released.

        A releaser before the window is marked at its left edge, a released event after it at its right edge.
        """
        if row.kind or row.lane < 0:
            return
        last = len(chars) - 1
        for tie in reversed(self._lane_data.linked_events):
            cell = self._layout.cell_of(tie.time)
            cell = max(cell, 0) if tie.released else min(cell, last)
            if tie.lane == row.lane and 0 <= cell <= last:
                # overwriting half of a wide character would leave the line too short: blank the other half
                before, after = chars[cell] == "", cell < last and chars[cell + 1] == ""
                chars[cell] = self._glyphs.released if tie.released else self._glyphs.releases
                styles[cell] = self._palette.linked_event
                if before:
                    chars[cell - 1] = " "
                if after:
                    chars[cell + 1] = " "


def _has_events(session: Session, row: TimelineRow) -> bool:
    lanes = session.profile.lanes
    if row.lane >= 0:
        return len(lanes[row.lane]) > 0
    return any(len(lane) for number, lane in enumerate(lanes) if session.unit_of(number) == row.unit)
