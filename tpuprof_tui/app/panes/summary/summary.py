"""Where the time went in the visible window: what took it, and how cores and engines spent it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import work
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip
from textual.worker import Worker, get_current_worker

from tpuprof_tui.analysis.findings.findings import Findings, findings
from tpuprof_tui.analysis.selecting.navigation import selected
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope, ViewState
from tpuprof_tui.analysis.totals.chart_data import ChartData, chart_data
from tpuprof_tui.analysis.totals.window_figures import Figures, figures_of, summary_scope
from tpuprof_tui.app.drawing.glyphs import Glyphs
from tpuprof_tui.app.drawing.theme import Palette
from tpuprof_tui.app.settings.actions import bindings
from tpuprof_tui.app.shell.messages import Change, CopyText, Say, tell_failure
from tpuprof_tui.formats.text import EMPTY_CAPTURE, NO_TIMES, clean, fit
from tpuprof_tui.formats.units import time_text

from ..lines import Line, LinesView, as_text, paragraph
from .lists import Entry, SummaryLists, Target
from .more import SummaryCharts, reference_lines
from .tables import tables

#: From this width on lists and tables stand beside one another.
BESIDE = 114
#: Up to this many instructions figures are computed at once; more in a thread.
AT_ONCE = 20_000
#: Keys may come faster than figures: of keys that are less than ``APART_SECONDS`` apart the last one's figures are
#: computed, when there has been no other for ``REST_SECONDS``.
APART_SECONDS, REST_SECONDS = 0.1, 0.04


class SummaryPane(LinesView):
    """Figures that follow the visible window and the selected core; Enter looks closer at a line of the lists."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("summary")]
    # lines are built for a width: it must not change when the scroll bar comes and goes
    DEFAULT_CSS = "SummaryPane { scrollbar-gutter: stable; }"

    class Ready(Message):
        """A thread has computed figures, and drawn what is drawn of them."""

        def __init__(self, figures: Figures, width: int, load: list[Line]) -> None:
            super().__init__()
            self.figures = figures
            self.width = width
            self.load = load

    class Redrawn(Message):
        """A thread has drawn charts."""

        def __init__(self, data: ChartData, width: int, lines: list[Line]) -> None:
            super().__init__()
            self.data = data
            self.width = width
            self.lines = lines

    class Binned(Redrawn):
        """A thread has made the data of the charts, and drawn them."""

        def __init__(self, data: ChartData, width: int, lines: list[Line], view: ViewState, found: Findings) -> None:
            super().__init__(data, width, lines)
            self.view = view
            self.findings = found

    class Retitled(Message):
        """The summary is about something else."""

    class Narrow(Message):
        """One condition more for the filter of all panes."""

        def __init__(self, condition: str) -> None:
            super().__init__()
            self.condition = condition

    def __init__(self, session: Session, view: ViewState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, "summary")
        self.session = session
        self.glyphs = glyphs
        self.view = view
        self.figures: Figures | None = None
        self._wanted: tuple[int, int, Scope, str] | None = None
        self._asked = 0.0
        self._active = False
        self.paused = False
        self.charts = SummaryCharts(session.profile.vocabulary, palette, glyphs)
        self.lists = SummaryLists(session, palette, glyphs)
        self.findings = Findings()
        self.targets: list[Target] = []
        self._left = 0
        self._about = self._about_of(view)

    def show(self, view: ViewState) -> None:
        """Shows the figures of a state, at once or as soon as they are there."""
        self.view = view
        if self._active and not self.paused:
            self._figure_out()

    def activate(self, active: bool) -> None:
        """Says whether the summary is visible: it is computed only then."""
        self._active = active
        if active and not (self.paused and self.figures is not None):
            self._figure_out()

    def pause(self, paused: bool) -> None:
        """Keeps the figures as they are, or follows the view again."""
        self.paused = paused
        if not paused and self._active:
            self._figure_out()
        self.rebuild()
        self.post_message(self.Retitled())

    def _wanted_by(self, view: ViewState) -> tuple[int, int, Scope, str]:
        return view.start, view.end, summary_scope(view), view.filter

    def _figure_out(self) -> None:
        wanted = self._wanted_by(self.view)
        if wanted == self._wanted:
            return
        self._wanted = wanted
        self._about = self._about_of(self.view)
        known = self.session.profile.instructions <= AT_ONCE
        if known:
            self._take(figures_of(self.session, self.view))
        before, self._asked = self._asked, time.monotonic()
        if self._asked - before > APART_SECONDS:
            # the frame of the key comes first
            self.call_after_refresh(self._begin, self.view, known)
        else:
            self._compute(self.view, known, REST_SECONDS)

    def _begin(self, view: ViewState, known: bool) -> None:
        if self._wanted_by(view) == self._wanted:
            self._compute(view, known, 0.0)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What goes wrong in a thread is told."""
        tell_failure(self, event)

    @work(thread=True, exclusive=True, group="summary", exit_on_error=False, description="summary")
    def _compute(self, view: ViewState, known: bool, wait: float) -> None:
        """Figures, unless they are known, and when they are on their way all that takes longer."""
        worker = get_current_worker()
        time.sleep(wait)
        if worker.is_cancelled:
            return
        # not asked of the pane: where it lies is worked out by the event loop alone
        width = max(self._built_for, 1)
        if not known:
            figures = figures_of(self.session, view)
            load = self.charts.load_drawn(figures, width)
            if not worker.is_cancelled:
                self.post_message(self.Ready(figures, width, load))
        if not worker.is_cancelled:
            data = chart_data(self.session, view, summary_scope(view))
            found = findings(self.session, view, summary_scope(view))
            self.post_message(self.Binned(data, width, self.charts.drawn(data, width), view, found))

    @work(thread=True, exclusive=True, group="charts", exit_on_error=False, description="charts")
    def _redraw(self, data: ChartData, width: int) -> None:
        """The charts there are, for another width or in other colours."""
        worker = get_current_worker()
        time.sleep(REST_SECONDS)
        if not worker.is_cancelled:
            self.post_message(self.Redrawn(data, width, self.charts.drawn(data, width)))

    def on_summary_pane_redrawn(self, message: Redrawn) -> None:
        """Takes charts of another width, unless there is other data by now."""
        message.stop()
        if message.data is self.charts.data:
            self.charts.take(message.data, message.width, message.lines)
            self.rebuild()

    def rebuild(self, *, keep_scroll: bool = True) -> None:
        """Builds the lines anew, and has the charts drawn that do not fit them."""
        super().rebuild(keep_scroll=keep_scroll)
        width = max(self._built_for, 1)
        if self.charts.data is not None and self.charts.stale(width) and not self._closing:
            self._redraw(self.charts.data, width)

    def on_summary_pane_binned(self, message: Binned) -> None:
        """Takes charts, unless others are wanted by now."""
        message.stop()
        if self._wanted_by(message.view) == self._wanted:
            self.charts.take(message.data, message.width, message.lines)
            self.findings = message.findings
            if self.size.width:
                self.rebuild()

    def on_summary_pane_ready(self, message: Ready) -> None:
        """Takes figures, unless others are wanted by now."""
        message.stop()
        figures = message.figures
        if (figures.start, figures.end, figures.scope, figures.filter) == self._wanted:
            self.charts.take_load(figures, message.width, message.load)
            self._take(figures)

    def _take(self, figures: Figures) -> None:
        self.figures = figures
        if self.size.width:
            self.rebuild()
        self.post_message(self.Retitled())

    def title_text(self) -> str:
        """What the figures are about."""
        return f"PAUSED (p): {self._about}" if self.paused else self._about

    def _about_of(self, view: ViewState) -> str:
        scope = self.session.scope_title(summary_scope(view))
        kind = "window" if view.range is None else "range"
        window = "whole capture" if view.fits_all else f"{kind} of {time_text(view.span)}"
        told = f"{clean(scope)}, {window}"
        return f"filter {clean(view.filter)}: {told}" if view.filter else told

    # lines

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Lists of what took the time, tables of cores and engines: side by side where there is room."""
        figures = self.figures
        self.targets = []
        if figures is None:
            return [[Segment(" computing ...", self.palette.quiet)]], []
        if not self.session.profile.instructions:
            return paragraph(EMPTY_CAPTURE, width, self.palette.quiet), []
        if not self.session.profile.timed:
            return paragraph(NO_TIMES, width, self.palette.quiet), []
        lists = self.lists = SummaryLists(self.session, self.palette, self.glyphs)
        entries: list[Entry] = [(self._paused_line(width), None)] if self.paused else []
        plain = [[], *reference_lines(figures, width, lists.heading, self.palette), *self.charts.lines(figures, width)]
        height = self.size.height
        if width >= BESIDE:
            left = self._left = min(width // 2, 96)
            # what is worth a look shows below both lists
            most = max((height - 16) // 2, 6)
            told = [*lists.reason(figures, left - 1), *lists.took_time(figures, left - 1, most, self.view),
                    *lists.worth_a_look(figures, self.findings, left - 1)]  # fmt: skip
            right = [*self._tables(figures, width - left), *plain_lines(lists.lost(figures, width - left, 8))]
            entries += _beside(told, right, left)
        else:
            self._left = width
            most = max((height - 1) // 4, 5)
            entries += [*lists.reason(figures, width), *lists.took_time(figures, width, most, self.view)]
            entries += lists.worth_a_look(figures, self.findings, width)
            entries += [([], None), *((line, None) for line in self._tables(figures, width))]
            entries += lists.lost(figures, width, 5)
        entries += [(line, None) for line in plain]
        items = []
        for _, target in entries:
            items.append(len(self.targets) if target is not None else -1)
            self.targets += [target] if target is not None else []
        return [line for line, _ in entries], items

    def _paused_line(self, width: int) -> Line:
        return [Segment(fit(f" Paused: {self._about}. p follows the view again.", width), self.palette.caution)]

    def _tables(self, figures: Figures, width: int) -> list[Line]:
        vocabulary, chosen = self.session.profile.vocabulary, self.view.selection.group
        return tables(figures, vocabulary, width, chosen, self.lists.heading, self.palette, self.glyphs)

    def _highlighted(self, strip: Strip) -> Strip:
        """The list's line alone; what stands beside it is another."""
        if self._left >= strip.cell_length:
            return super()._highlighted(strip)
        parts = strip.divide([self._left, strip.cell_length])
        return Strip.join([super()._highlighted(parts[0]), *parts[1:]])

    # keys

    def move(self, lines: int) -> None:
        """To the next line that stands for something, while one is near; else the lines scroll."""
        if not self.has_cursor:
            super().move(lines)
            return
        height, top = max(self.scrollable_content_region.height, 1), self.scroll_offset.y
        if abs(lines) == 1:
            wanted = self.cursor + lines
            if wanted in self.items and top - 2 <= self.items.index(wanted) <= top + height + 1:
                self.go_to(wanted)
                return
        self.scroll_to(y=top + lines, animate=False, immediate=True)
        top = self.scroll_offset.y
        visible = [item for item in self.items[top : top + height] if item >= 0]
        if visible and self.cursor not in visible:
            self.cursor = visible[0] if lines > 0 else visible[-1]
        if abs(lines) > len(self.lines) and visible:
            self.cursor = visible[0] if lines < 0 else visible[-1]
        self.refresh()

    def action_select(self) -> None:
        """Looks closer at what the line under the cursor stands for."""
        target = self.targets[self.cursor] if self.cursor < len(self.targets) else None
        if target is None:
            self.post_message(Say("j and k choose a line of the lists; Enter then looks closer."))
        elif target.condition:
            self.post_message(self.Narrow(target.condition))
        elif target.instruction is not None:
            lane, row = target.instruction
            self.post_message(Change(lambda view: selected(self.session, view, lane, row)))
            self.post_message(Say(f"Selected: {self.session.title_of(lane)}. f zooms to it, i tells all."))
        elif target.time is not None:
            start, end = target.time
            self.post_message(Change(lambda view: view.showing(start, end).at(start)))

    def text_of_item(self) -> str:
        """The list's line alone; what stands beside it is another."""
        lines = [strip for strip, item in zip(self.lines, self.items, strict=False) if item == self.cursor]
        return as_text(strip.crop(0, self._left) for strip in lines)

    def action_copy_line(self) -> None:
        """Copies the line under the cursor, all lines where none is."""
        if self.has_cursor:
            self.post_message(CopyText(self.text_of_item(), "line"))
        else:
            self.action_copy_all()

    def action_copy_all(self) -> None:
        """Copies the whole summary as it is shown."""
        self.post_message(CopyText(self.text_of_all(), "summary"))

    def action_next_section(self) -> None:
        """To the next heading."""
        self._section(1)

    def action_previous_section(self) -> None:
        """To the heading before."""
        self._section(-1)

    def _section(self, steps: int) -> None:
        heads = [number for number, line in enumerate(self.lines) if self._is_heading(line)]
        top = self.scroll_offset.y
        wanted = [head for head in heads if head > top] if steps > 0 else [head for head in heads if head < top]
        if wanted:
            self.scroll_to(y=wanted[0] if steps > 0 else wanted[-1], animate=False, immediate=True)
            visible = [item for item in self.items[self.scroll_offset.y :] if item >= 0]
            self.cursor = visible[0] if visible else self.cursor
            self.refresh()

    def _is_heading(self, line: Strip) -> bool:
        return any(segment.style == self.palette.title for segment in line)


def plain_lines(entries: Sequence[Entry]) -> list[Line]:
    """Lines alone."""
    return [line for line, _ in entries]


def _beside(left: Sequence[Entry], right: Sequence[Line], width: int) -> list[Entry]:
    """Two columns of lines, the second from cell ``width`` on."""
    entries: list[Entry] = []
    for number in range(max(len(left), len(right))):
        line, target = left[number] if number < len(left) else ([], None)
        first = Strip(line).adjust_cell_length(width, Style.null())
        entries.append(([*first, *(right[number] if number < len(right) else [])], target))
    return entries
