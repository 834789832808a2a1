"""What the source's views say of the visible window: where the time went, and what is worth a look."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual import events, work
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip
from textual.worker import Worker, get_current_worker

from tpuprof_tui.analysis.selecting.filter_masks import is_known, narrowed
from tpuprof_tui.analysis.selecting.navigation import selected
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope, Selection, ViewState
from tpuprof_tui.app.drawing.charts import series_curve
from tpuprof_tui.app.drawing.glyphs import Glyphs
from tpuprof_tui.app.drawing.theme import Palette
from tpuprof_tui.app.settings.actions import bindings
from tpuprof_tui.app.shell.messages import Change, CopyText, Say, tell_failure
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import EMPTY_CAPTURE, NO_TIMES, fit
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model.view import View
from tpuprof_tui.views.answer import Answer, Target
from tpuprof_tui.views.query import Query
from tpuprof_tui.views.registry import COMPARISON, answer, view_of, views_of
from tpuprof_tui.views.screen import at_once, at_rest

from ..lines import Line, LinesView, as_text, paragraph
from .answer_lines import AnswerLines, Entry

#: From this width on two columns of lists stand beside one another; the first is no wider than ``COLUMN``.
BESIDE, COLUMN = 114, 96
#: Lines of a pane from which on a blank line parts sections.
PARTED = 16
#: Lines of a curve, its times below included; curves are no wider than ``WIDEST``: wider ones tell no more.
CURVE_HEIGHT, WIDEST = 8, 120
#: Up to this many instructions what is quick is computed at once; more in a thread.
AT_ONCE = 20_000
#: Keys may come faster than answers: of keys that are less than ``APART_SECONDS`` apart the last one's answers are
#: computed, when there has been no other for ``REST_SECONDS``.
APART_SECONDS, REST_SECONDS = 0.1, 0.04

#: Drawn series, by view and key.
Curves = Mapping[str, Mapping[str, Sequence[str]]]


class SummaryPane(LinesView):
    """Views that follow the visible window and the selected unit; Enter goes to what a line of them stands for.

    Attributes:
        asked: What answers are about; None: nothing has been answered yet.
        answers: What is told, by view; what takes longer stays as it was until it is known anew.
        chosen: The view that fills the pane; empty: all have their part of it.
        targets: Where lines lead, by column.
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

    def __init__(self, session: Session, view: ViewState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, "summary")
        self.session = session
        self.glyphs = glyphs
        self.view = view
        self._live = view
        #: The state that Enter on a line asked for: while its selection holds, lines are about what they were.
        self._walked: ViewState | None = None
        self.asked: Query | None = None
        self.answers: dict[str, Answer] = {}
        self.chosen = ""
        self.paused = False
        self.targets: list[list[Target]] = [[], []]
        self._curves: dict[str, Mapping[str, Sequence[str]]] = {}
        self._drawn_for = -1
        self._wanted: tuple[object, ...] | None = None
        self._asked_at = 0.0
        self._active = False
        self._sides: list[list[int]] = [[], []]
        self._side = self._left = self._split = self._painting = 0
        self._built_height = -1
        self._about = self._about_of(view)

    # answers

    def show(self, view: ViewState) -> None:
        """Shows the answers of a state, at once or as soon as they are there.

        Where a line of the summary itself was gone to, its lines stay: they are walked.
        """
        self._live = view
        walked = self._walked
        if walked is None or (walked.selection, walked.scope) != (view.selection, view.scope):
            self._walked, self.view = None, view
        elif (walked.filter, walked.figures_window) != (view.filter, view.figures_window):
            self.view = replace(view, selection=self.view.selection)
        if self._active and not self.paused:
            self._ask()

    def activate(self, active: bool) -> None:
        """Says whether the summary is visible: it is computed only then."""
        self._active = active
        if active and not (self.paused and self.answers):
            self._ask()

    def pause(self, paused: bool) -> None:
        """Keeps the answers as they are, or follows the view again."""
        self.paused = paused
        if not paused and self._active:
            self._ask()
        self.rebuild()
        self.post_message(self.Retitled())

    def _asked_by(self, view: ViewState) -> tuple[object, ...]:
        return view.start, view.end, view.figures_scope, view.filter

    def _ask(self) -> None:
        wanted = self._asked_by(self.view)
        if wanted == self._wanted:
            return
        self._wanted = wanted
        self._about = self._about_of(self.view)
        query = Query.of_view(self.session, self.view, self.view.figures_scope)
        known = self.session.profile.instructions <= AT_ONCE
        if known:
            self._take(query, at_once(query))
        before, self._asked_at = self._asked_at, time.monotonic()
        if self._asked_at - before > APART_SECONDS:
            # the frame of the key comes first
            self.call_after_refresh(self._begin, wanted, query, known)
        else:
            self._compute(query, known, REST_SECONDS)

    def _begin(self, wanted: tuple[object, ...], query: Query, known: bool) -> None:
        if wanted == self._wanted:
            self._compute(query, known, 0.0)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What goes wrong in a thread is told."""
        tell_failure(self, event)

    @work(thread=True, exclusive=True, group="summary", exit_on_error=False, description="summary")
    def _compute(self, query: Query, known: bool, wait: float) -> None:
        """What is quick, unless it is known, and when it is on its way all that takes longer."""
        worker = get_current_worker()
        time.sleep(wait)
        # not asked of the pane: where it lies is worked out by the event loop alone
        width, chosen = self._built_for, self.chosen
        for computed in (at_rest,) if known else (at_once, at_rest):
            if worker.is_cancelled:
                return
            answers = computed(query)
            alone = view_of(query.vocabulary, chosen) if chosen and computed is at_rest else None
            if alone is not None and not alone.place:
                answers[chosen] = answer(alone, query)
            self.post_message(self.Answered(query, answers, width, self._drawn(query, answers, width)))

    def _drawn(self, query: Query, answers: Mapping[str, Answer], width: int) -> Curves:
        """The curves of some answers; takes longer than a frame: meant for a thread."""
        cells = min(width - 2, WIDEST)
        return {
            name: {
                series.key: series_curve(series, query.view.start, query.view.end, cells, CURVE_HEIGHT,
                                         ascii_only=self.glyphs.letters)
                for series in each.series
            }
            for name, each in answers.items()
            if each.series
        }  # fmt: skip

    @work(thread=True, exclusive=True, group="charts", exit_on_error=False, description="charts")
    def _redraw(self, query: Query, answers: Mapping[str, Answer], width: int) -> None:
        """The curves there are, for another width."""
        worker = get_current_worker()
        time.sleep(REST_SECONDS)
        if not worker.is_cancelled:
            self.post_message(self.Answered(query, answers, width, self._drawn(query, answers, width)))

    def on_summary_pane_answered(self, message: Answered) -> None:
        """Takes answers, unless others are wanted by now."""
        message.stop()
        if self._asked_by(message.query.view) != self._wanted and message.query is not self.asked:
            return
        if message.curves:
            self._curves = {**self._curves, **message.curves}
            self._drawn_for = message.width
        self._take(message.query, message.answers)

    def _take(self, query: Query, answers: Mapping[str, Answer]) -> None:
        self.asked = query
        self.answers |= answers
        if query.baseline is None:
            # of a part of the time nothing is compared
            self.answers.pop(COMPARISON.id, None)
        if self.size.width:
            self.rebuild()
        self.post_message(self.Retitled())

    def rebuild(self, *, keep_scroll: bool = True) -> None:
        """Builds the lines anew, and has curves drawn that do not fit them."""
        super().rebuild(keep_scroll=keep_scroll)
        drawn = {name: each for name, each in self.answers.items() if each.series}
        if drawn and self.asked is not None and self._drawn_for != self._built_for and not self._closing:
            self._drawn_for = self._built_for
            self._redraw(self.asked, drawn, self._built_for)

    # one view of all

    @property
    def _all_views(self) -> tuple[View, ...]:
        return views_of(self.session.profile.vocabulary, compared=self.session.baseline is not None)

    @property
    def views(self) -> tuple[View, ...]:
        """The views that say something, in their order."""
        told = self.answers
        return tuple(
            view for view in self._all_views
            if view.id in told and not told[view.id].empty and not told[view.id].missing
        )  # fmt: skip

    def choose(self, name: str) -> None:
        """Lets a view fill the pane; an empty name: all have their part of it again.

        Raises:
            UsageError: There is no such view.
        """
        view = view_of(self.session.profile.vocabulary, name) if name else None
        self.chosen = view.id if view is not None else ""
        self.cursor = self._side = 0
        if view is not None and view.id not in self.answers and self.asked is not None:
            self._compute(self.asked, True, 0.0)
        self.rebuild(keep_scroll=False)
        self.post_message(self.Retitled())

    def action_step_view(self, steps: int) -> None:
        """The view so many steps on fills the pane; after the last all of them."""
        names = ["", *(view.id for view in self.views)]
        place = names.index(self.chosen) if self.chosen in names else 0
        self.choose(names[(place + steps) % len(names)])

    def title_text(self) -> str:
        """What is told, and of what."""
        say = self.session.profile.vocabulary.say
        view = view_of(self.session.profile.vocabulary, self.chosen) if self.chosen else None
        about = self._about if view is None else f"{say(view.title)} of {self._about}"
        return f"PAUSED (p): {about}" if self.paused else about

    def _about_of(self, view: ViewState) -> str:
        scope = self.session.scope_title(view.figures_scope)
        kind = "window" if view.range is None else "range"
        window = "whole capture" if view.fits_all else f"{kind} of {time_text(view.span)}"
        told = f"{clean(scope)}, {window}"
        return f"filter {clean(view.filter)}: {told}" if view.filter else told

    # lines

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """All views with their first rows, in two columns where there is room; or all of one."""
        self.targets, self._sides, self._left, self._built_height = [[], []], [[], []], width, self.size.height
        if not self.answers:
            return [[Segment(" computing ...", self.palette.quiet)]], []
        if not self.session.profile.instructions and not self._told_of_all():
            return paragraph(self.session.say(EMPTY_CAPTURE), width, self.palette.quiet), []
        if not self.session.profile.timed:
            return paragraph(
                self.session.profile.vocabulary.phrase("no_times", NO_TIMES), width, self.palette.quiet
            ), []
        head = self._head(width)
        if self.chosen:
            return self._placed(head, *self._one(width))
        if width < BESIDE:
            rows = max(self.size.height // 3 - (2 if self._parted else 1), 3)
            parts = (self._part(place, width, each) for place, each in
                     (("first", rows), ("second", max(rows, 8)), ("below", 16)))  # fmt: skip
            return self._placed(head, self._joined(*parts, self._missing(width)), [])
        self._left = min(width // 2, COLUMN)
        rows = max(self.size.height // 3 - 2, 4)
        first, second = (
            self._part("first", self._left - 1, rows),
            self._part("second", width - self._left, max(rows, 8)),
        )
        below = self._joined(self._part("below", width, 16), self._missing(width))
        return self._placed(head, first, second, [([], None), *below] if below else [])

    def on_resize(self, event: events.Resize) -> None:
        """Lines depend on the width, how many rows are told of each view on the height."""
        if (self.scrollable_content_region.width, event.size.height) != (self._built_for, self._built_height):
            self.rebuild()

    def _told_of_all(self) -> bool:
        """Whether a view of all workers has something to say: figures of a cluster stand without any events."""
        together = (view.id for view in views_of(self.session.profile.vocabulary) if view.together)
        return any(len(table) for key in together if key in self.answers for table in self.answers[key].tables)

    def _head(self, width: int) -> list[Line]:
        """What is to be known first: that the pane is held, that nothing starts here."""
        lines: list[Line] = []
        if self.paused:
            held = f" Paused: {self._about}. p follows the view again."
            lines.append([Segment(fit(held, width), self.palette.caution)])
        overview = self.answers.get("overview")
        if overview is not None and any(fact.key == "events" and fact.value == 0 for fact in overview.facts):
            lines += paragraph(self._nothing_text(), width, self.palette.quiet)
        return lines

    def _nothing_text(self) -> str:
        """That nothing starts here, and what to do to see something."""
        view, say = self.view, self.session.profile.vocabulary.say
        ways = ["& changes the filter"] if view.filter else []
        if view.range is not None:
            ways.append("Esc clears the range")
        elif not view.fits_all:
            ways.append("0 in the timeline shows the whole capture")
        if not view.figures_scope.everything:
            ways.append(say("Esc goes back to all {units}"))
        told = " and ".join(ways) if len(ways) < 3 else ", ".join(ways)
        return say("No {event} starts here: ") + f"{told}." if ways else say("No {events} here.")

    @property
    def _parted(self) -> bool:
        return self.size.height >= PARTED

    def _lines(self, width: int, rows: int, name: str = "", *, whole: bool = False) -> AnswerLines:
        vocabulary, curves = self.session.profile.vocabulary, self._curves.get(name, {})
        scopes = self.session.profile.strings.get("kernel", ())
        return AnswerLines(vocabulary, self.palette, self.glyphs, width, rows, whole=whole, curves=curves,
                           scopes=scopes)  # fmt: skip

    def _made(self, name: str, width: int, rows: int, *, whole: bool = False) -> list[Entry]:
        vocabulary = self.session.profile.vocabulary
        lines = self._lines(width, rows, name, whole=whole)
        return lines.entries(vocabulary.say(view_of(vocabulary, name).title), self.answers[name])

    def _missing(self, width: int) -> list[Entry]:
        """What would have to be recorded for more."""
        missing = [each.sentence for found in self.answers.values() for each in found.missing if each.needs]
        return self._lines(width, 0).told(*dict.fromkeys(missing))

    def _part(self, place: str, width: int, rows: int) -> list[Entry]:
        """The views of a place that say something."""
        views = [view for view in self._all_views if view.place == place]
        return self._joined(*(self._made(view.id, width, rows) for view in views if view.id in self.answers))

    def _joined(self, *parts: list[Entry]) -> list[Entry]:
        gap: list[Entry] = [([], None)] if self._parted else []
        joined: list[Entry] = []
        for each in parts:
            joined += [*(gap if joined and each else []), *each]
        return joined

    def _one(self, width: int) -> tuple[list[Entry], list[Entry]]:
        """The chosen view alone."""
        if self.chosen not in self.answers:
            return [([Segment(" computing ...", self.palette.quiet)], None)], []
        entries = self._made(self.chosen, width, 0, whole=True)
        return entries or [(line, None) for line in paragraph("Nothing here.", width, self.palette.quiet)], []

    def _placed(
        self, head: list[Line], first: Sequence[Entry], second: Sequence[Entry], below: Sequence[Entry] = ()
    ) -> tuple[list[Line], list[int]]:
        """Lines of two columns, what is above and below them, and which of the first column's lead somewhere."""
        self._sides = [[-1] * len(head), [-1] * len(head)]
        lines = list(head)
        for number in range(max(len(first), len(second))):
            line, target = first[number] if number < len(first) else ([], None)
            other, leads = second[number] if number < len(second) else ([], None)
            start = Strip(line).adjust_cell_length(self._left, Style.null()) if second else line
            lines.append([*start, *other])
            self._lead(target, leads)
        self._split = len(lines)
        for line, target in below:
            lines.append(line)
            self._lead(target, None)
        if not self.targets[self._side]:
            self._side = 0 if self.targets[0] else self._side
        return lines, self._sides[self._side]

    def _lead(self, *targets: Target | None) -> None:
        """Notes where the next line leads, in each column; lines of one row are one item."""
        for side, target in enumerate(targets):
            known = self.targets[side]
            if target is not None and not (known and known[-1] is target and self._sides[side][-1] >= 0):
                known.append(target)
            self._sides[side].append(len(known) - 1 if target is not None else -1)

    def _halves(self, number: int) -> tuple[int, int]:
        """Cells of a line that the cursor's column has."""
        if number >= self._split or self._left >= self._built_for:
            return 0, self._built_for
        return (self._left, self._built_for) if self._side else (0, self._left)

    def render_line(self, y: int) -> Strip:
        """Line ``y`` of the visible part."""
        self._painting = y + self.scroll_offset.y
        return super().render_line(y)

    def _highlighted(self, strip: Strip) -> Strip:
        """The cursor's column alone; what stands beside it is another."""
        start, end = self._halves(self._painting)
        if end - start >= strip.cell_length:
            return super()._highlighted(strip)
        before, inside, after = strip.crop(0, start), strip.crop(start, end), strip.crop(end, strip.cell_length)
        return Strip.join([before, super()._highlighted(inside), after])

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

    def action_scroll_columns(self, columns: int) -> None:
        """To the nearest line of the first column, or of the second."""
        side = 0 if columns < 0 else 1
        if side == self._side or not self.targets[side]:
            return
        at = self.items.index(self.cursor) if self.cursor in self.items else 0
        self._side, self.items = side, self._sides[side]
        places = [number for number, item in enumerate(self.items) if item >= 0]
        self.cursor = self.items[min(places, key=lambda number: abs(number - at))]
        self.go_to(self.cursor)

    def on_click(self, event: events.Click) -> None:
        """The mouse moves the cursor, in the column it points to."""
        offset = event.get_content_offset(self)
        if offset is not None:
            second = self._left <= offset.x and offset.y + self.scroll_offset.y < self._split
            self.action_scroll_columns(1 if second and self._left < self._built_for else -1)
        super().on_click(event)

    def _target(self) -> Target | None:
        targets = self.targets[self._side]
        if self.cursor < len(targets):
            return targets[self.cursor]
        self.post_message(Say("j and k choose a line; Enter then goes there, o shows nothing else."))
        return None

    def action_select(self) -> None:
        """Selection and timeline go to what the line under the cursor stands for; the lines stay as they are."""
        target = self._target()
        if target is None:
            return
        if target.condition:
            self._find_longest(target.condition)
        elif target.event is not None:
            self._walk_to_event(*target.event, "Selected")
        elif target.time is not None:
            self._walk_to_time(*target.time)
        elif target.step is not None:
            steps = self.session.steps.steps
            for place in np.flatnonzero(steps.number == target.step)[:1].tolist():
                self._walk_to_time(int(steps.start[place]), int(steps.end[place]))
        elif target.scope is not None:
            group, lane = target.scope.group, target.scope.lane
            selection = Selection(self.session.unit_of(lane) if lane >= 0 else group, lane)
            self._walk(lambda view: replace(view, selection=selection))
            self.post_message(Say(f"{self.session.scope_title(target.scope)}: o shows it alone."))

    def narrow(self) -> None:
        """All panes show only what the line under the cursor stands for; again: everything."""
        target = self._target()
        if target is None:
            return
        if target.condition:
            self.post_message(self.Narrow(target.condition))
        elif target.step is not None:
            self.post_message(self.Narrow(step=target.step))
        elif target.time is not None:
            start, end = target.time
            self.post_message(Change(lambda view: view.windowed(start, end - start).at(start)))
        else:
            event, scope = target.event, target.scope
            if scope is None and event is not None:
                unit = self.session.unit_of(event[0])
                scope = Scope(unit) if unit >= 0 else Scope(lane=event[0])
            if scope is not None:
                wanted = scope
                self.post_message(Change(lambda view: replace(view, scope=Scope() if view.scope == wanted else wanted)))

    def _walk(self, change: Callable[[ViewState], ViewState]) -> None:
        """Changes the state of all panes but the lines of this one."""
        after = change(self._live)
        self._walked = after
        self.post_message(Change(change))

    def _walk_to_time(self, start: int, end: int) -> None:
        self._walk(lambda view: view.showing(start, end).at(start))

    def _walk_to_event(self, lane: int, row: int, what: str) -> None:
        self._walk(lambda view: selected(self.session, view, lane, row))
        title = self.session.title_of(lane)
        self.post_message(Say(f"{what}: {title}. f zooms to it, i tells all, o shows nothing else."))

    def _find_longest(self, condition: str) -> None:
        """To the longest event of a line that sums up several."""
        if self.asked is None:
            return
        query = replace(self.asked, filter=narrowed(self.asked.filter, condition))
        if self.session.profile.instructions <= AT_ONCE or is_known(self.session, query.passes):
            self._take_longest(query.longest())
        else:
            self._search_longest(query)

    @work(thread=True, exclusive=True, group="longest", exit_on_error=False, description="longest")
    def _search_longest(self, query: Query) -> None:
        worker, found = get_current_worker(), query.longest()
        if not worker.is_cancelled:
            self.app.call_from_thread(self._take_longest, found)

    def _take_longest(self, found: tuple[int, int] | None) -> None:
        if found is not None:
            start, end = self.session.span_of(*found)
            self._walk_to_event(*found, f"The longest, {time_text(end - start)}")

    def text_of_item(self) -> str:
        """The line of the cursor's column alone; what stands beside it is another."""
        numbers = [number for number, item in enumerate(self.items) if item == self.cursor]
        return as_text(self.lines[number].crop(*self._halves(number)) for number in numbers)

    def action_copy_line(self) -> None:
        """Copies the line under the cursor, all lines where none is."""
        if self.has_cursor:
            self.post_message(CopyText(self.text_of_item(), "line"))
        else:
            self.action_copy_all()

    def action_copy_all(self) -> None:
        """Copies the whole summary as it is shown."""
        self.post_message(CopyText(self.text_of_all(), "summary"))

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
