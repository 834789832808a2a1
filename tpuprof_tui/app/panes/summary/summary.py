"""The summary: what the source's views say of the visible window, where the time went, what is worth a look."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import ClassVar

from msgspec.structs import replace
from textual import events, work
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip
from textual.worker import Worker, get_current_worker

from tpuprof_tui.analysis.selecting.filter_masks import is_known, narrowed
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.app.drawing.glyphs import Glyphs
from tpuprof_tui.app.drawing.theme import Palette
from tpuprof_tui.app.settings.actions import bindings
from tpuprof_tui.app.shell.background import background_of
from tpuprof_tui.app.shell.messages import Change, CopyText, Say, tell_failure
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.views.answer import Answer, Target
from tpuprof_tui.views.query import Query
from tpuprof_tui.views.screen import WAITS, at_once

from ..lines import Line, LinesView, as_text
from .figures import Curves, SummaryFigures, ViewChooser, computed, drawn
from .page import Page, PageBuilder
from .targets import FollowedState, Update, event_goal, goal, narrowed_state

#: Up to this many events what is quick is computed at once; more in a thread.
AT_ONCE = 20_000
#: Keys may come faster than answers: of keys that are less than ``APART_SECONDS`` apart the last one's answers are
#: computed, when there has been no other for ``REST_SECONDS``.
APART_SECONDS, REST_SECONDS = 0.1, 0.04


class SummaryPane(LinesView):
    """Views that follow the visible window and the selected unit; Enter goes to what a line of them stands for.

    Attributes:
        figures: What is told.
        views: Which view fills the pane.
        page: The lines, and where they lead.
        paused: Whether the figures stay whatever the state.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("summary")]
    # lines are built for a width: it must not change when the scroll bar comes and goes
    DEFAULT_CSS = "SummaryPane { scrollbar-gutter: stable; }"

    class Answered(Message):
        """A thread has computed what some views say, and drawn their curves."""

        def __init__(self, query: Query, answers: Mapping[str, Answer], width: int, curves: Curves) -> None:
            super().__init__()
            self.query = query
            self.answers = answers
            self.width = width
            self.curves = curves

    class Retitled(Message):
        """The summary is about something else."""

    class Narrow(Message):
        """One condition more for the filter of all panes, or another step."""

        def __init__(self, condition: str = "", step: int | None = None) -> None:
            super().__init__()
            self.condition = condition
            self.step = step

    def __init__(self, session: Session, state: DisplayState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, "summary")
        self.session = session
        self.glyphs = glyphs
        self.figures = SummaryFigures(session, state)
        self.views = ViewChooser(session)
        self.page = Page()
        self.paused = False
        self._followed = FollowedState(state)
        self._background = background_of(self, "longest", small=session.profile.instructions <= AT_ONCE)
        self._asked_at = 0.0
        self._active = False
        self._built_height = -1
        #: The column of the page that the cursor is in, and the line that is painted.
        self._column = self._painting = 0

    # figures

    def show(self, state: DisplayState) -> None:
        """Shows the answers of a state, at once or as soon as they are there."""
        self._followed.show(state)
        if self._active and not self.paused:
            self._ask()

    def activate(self, active: bool) -> None:
        """Says whether the summary is visible: it is computed only then."""
        self._active = active
        if active and not (self.paused and self.figures.answers):
            self._ask()

    def pause(self, paused: bool) -> None:
        """Keeps the answers as they are, or follows the screen again."""
        self.paused = paused
        if not paused and self._active:
            self._ask()
        self.rebuild()
        self.post_message(self.Retitled())

    def _ask(self) -> None:
        query = self.figures.want(self._followed.state)
        if query is None:
            return
        known = self.session.profile.instructions <= AT_ONCE
        if known:
            self._take(query, at_once(query))
        before, self._asked_at = self._asked_at, time.monotonic()
        if self._asked_at - before > APART_SECONDS:
            # the frame of the key comes first
            self.call_after_refresh(self._begin, query, known)
        else:
            self._compute(query, known, REST_SECONDS)

    def _begin(self, query: Query, known: bool) -> None:
        if self.figures.is_latest(query):
            self._compute(query, known, 0.0)

    @work(thread=True, exclusive=True, group="summary", exit_on_error=False, description="summary")
    def _compute(self, query: Query, known: bool, wait: float) -> None:
        worker = get_current_worker()
        time.sleep(wait)
        # not asked of the pane: where it lies is worked out by the event loop alone
        width = self._built_for
        for answers in computed(query, self.views.view, lambda: worker.is_cancelled, known=known):
            self._answer(query, answers, width)

    @work(thread=True, exclusive=True, group="charts", exit_on_error=False, description="charts")
    def _redraw(self, query: Query, answers: Mapping[str, Answer], width: int) -> None:
        """The curves there are, for another width."""
        worker = get_current_worker()
        time.sleep(REST_SECONDS)
        if not worker.is_cancelled:
            self._answer(query, answers, width)

    def _answer(self, query: Query, answers: Mapping[str, Answer], width: int) -> None:
        charted = {name: each for name, each in answers.items() if each.series}
        if charted and len(charted) < len(answers):
            # what has no curves need not wait for them
            plain = {name: each for name, each in answers.items() if name not in charted}
            self.post_message(self.Answered(query, plain, width, {}))
            answers = charted
        curves = drawn(query, answers, width, ascii_only=self.glyphs.letters)
        self.post_message(self.Answered(query, answers, width, curves))

    def on_summary_pane_answered(self, message: Answered) -> None:
        """Takes answers, unless others are wanted by now."""
        message.stop()
        if self.figures.is_wanted(message.query):
            self.figures.take_curves(message.curves, message.width)
            self._take(message.query, message.answers)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What goes wrong in a thread is told."""
        tell_failure(self, event)

    def _take(self, query: Query, answers: Mapping[str, Answer]) -> None:
        self.figures.take(query, answers)
        if self.size.width:
            self.rebuild()
        self.post_message(self.Retitled())

    # lines

    def choose(self, name: str) -> None:
        """Lets a view fill the pane; an empty name: all have their part of it again.

        Raises:
            UsageError: There is no such view.
        """
        self.views.choose(name)
        self.cursor = self._column = 0
        known = self.figures.answers.get(self.views.chosen, WAITS) is not WAITS
        if self.views.chosen and not known and self.figures.asked is not None:
            self._compute(self.figures.asked, True, 0.0)
        self.rebuild(keep_scroll=False)
        self.post_message(self.Retitled())

    def title_text(self) -> str:
        """What is told, and of what."""
        state, about = self.views.view, self.figures.about
        about = about if state is None else f"{self.session.profile.vocabulary.say(state.title)} of {about}"
        return f"PAUSED (p): {about}" if self.paused else about

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """All views with their first rows, or all of one."""
        self._built_height = self.size.height
        builder = PageBuilder(self.figures, self.palette, self.glyphs, width, self._built_height)
        self.page = builder.page(self.views, self._followed.state, paused=self.paused)
        if not self.page.targets[self._column] and self.page.targets[0]:
            self._column = 0
        return self.page.lines, self.page.items[self._column]

    def rebuild(self, *, keep_scroll: bool = True) -> None:
        """Builds the lines anew, and has curves drawn that do not fit them."""
        super().rebuild(keep_scroll=keep_scroll)
        asked = self.figures.asked
        answers = self.figures.to_redraw(self._built_for) if not self._closing else {}
        if answers and asked is not None:
            self._redraw(asked, answers, self._built_for)

    def on_resize(self, event: events.Resize) -> None:
        """Lines depend on the width, how many rows are told of each view on the height."""
        if (self.scrollable_content_region.width, event.size.height) != (self._built_for, self._built_height):
            self.rebuild()

    def render_line(self, y: int) -> Strip:
        """Line ``y`` of the visible part."""
        self._painting = y + self.scroll_offset.y
        return super().render_line(y)

    def _highlighted(self, strip: Strip) -> Strip:
        """The cursor's column alone; what stands beside it is another."""
        start, end = self.page.span(self._painting, self._column)
        if end - start >= strip.cell_length:
            return super()._highlighted(strip)
        before, inside, after = strip.crop(0, start), strip.crop(start, end), strip.crop(end, strip.cell_length)
        return Strip.join([before, super()._highlighted(inside), after])

    # keys that move

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

    def action_scroll_columns(self, columns: int) -> None:
        """To the nearest line of the first column, or of the second."""
        column = 0 if columns < 0 else 1
        if column == self._column or not self.page.targets[column]:
            return
        at = self.items.index(self.cursor) if self.cursor in self.items else 0
        self._column, self.items = column, self.page.items[column]
        places = [number for number, item in enumerate(self.items) if item >= 0]
        self.cursor = self.items[min(places, key=lambda number: abs(number - at))]
        self.go_to(self.cursor)

    def action_step_section(self, steps: int) -> None:
        """To the next heading, or the one before."""
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

    def action_step_view(self, steps: int) -> None:
        """The view so many steps on fills the pane; after the last all of them."""
        self.choose(self.views.stepped(steps, self.figures.answers))

    def on_click(self, event: events.Click) -> None:
        """The mouse moves the cursor, in the column it points to."""
        offset = event.get_content_offset(self)
        if offset is not None:
            self.action_scroll_columns(self.page.column_at(offset.y + self.scroll_offset.y, offset.x) or -1)
        super().on_click(event)

    # where lines lead

    def _target(self) -> Target | None:
        targets = self.page.targets[self._column]
        if self.cursor < len(targets):
            return targets[self.cursor]
        self.post_message(Say("j and k choose a line; Enter then goes there, o shows nothing else."))
        return None

    def action_select(self) -> None:
        """Selection and timeline go to what the line under the cursor stands for; the lines stay as they are."""
        target = self._target()
        found = goal(self.session, target) if target is not None else None
        if found is not None and target is not None and target.scope is not None and (
            found[0](self._followed.live) == self._followed.live
        ):  # fmt: skip
            # it is selected already
            self.narrow()
        elif found is not None:
            self._go(*found)
        elif target is not None and target.condition:
            self._find_longest(target.condition)

    def _go(self, update: Update, told: str) -> None:
        """Changes the state of all panes but the lines of this one."""
        self._followed.leave(update)
        self.post_message(Change(update))
        if told:
            self.post_message(Say(told))

    def _find_longest(self, condition: str) -> None:
        """To the longest event of a line that sums up several."""
        asked = self.figures.asked
        if asked is None:
            return
        query = replace(asked, filter=narrowed(asked.filter, condition))
        known = is_known(self.session, query.passes)
        self._background.compute("longest", query.longest, self._take_longest, at_once=known)

    def _take_longest(self, found: tuple[int, int] | None) -> None:
        if found is not None:
            start, end = self.session.span_of(*found)
            self._go(*event_goal(self.session, *found, f"The longest, {time_text(end - start)}"))

    def narrow(self) -> None:
        """All panes show only what the line under the cursor stands for; again: everything."""
        target = self._target()
        if target is None:
            return
        update = narrowed_state(self.session, target)
        if target.condition or target.step is not None:
            self.post_message(self.Narrow(target.condition, None if target.condition else target.step))
        elif update is not None:
            self.post_message(Change(update))

    # copies

    def text_of_item(self) -> str:
        """The line of the cursor's column alone; what stands beside it is another."""
        numbers = [number for number, item in enumerate(self.items) if item == self.cursor]
        return as_text(self.lines[number].crop(*self.page.span(number, self._column)) for number in numbers)

    def action_copy_line(self) -> None:
        """Copies the line under the cursor, all lines where none is."""
        if self.has_cursor:
            self.post_message(CopyText(self.text_of_item(), "line"))
        else:
            self.action_copy_all()

    def action_copy_all(self) -> None:
        """Copies the whole summary as it is shown."""
        self.post_message(CopyText(self.text_of_all(), "summary"))
