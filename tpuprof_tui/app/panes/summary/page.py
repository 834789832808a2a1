"""Answers and curves of the summary for a state, and their layout: all views, in one or two columns, or one view."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct, field
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import split_step
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.analysis.steps.step_detection import steps_of
from tpuprof_tui.app.drawing.charts import series_curve
from tpuprof_tui.app.drawing.glyphs import Glyphs
from tpuprof_tui.app.drawing.theme import Palette
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import EMPTY_CAPTURE, NO_TIMES, fit
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model.view import View
from tpuprof_tui.views.answer import Answer, Target
from tpuprof_tui.views.registry import COMPARISON, answer, view_of, views_of
from tpuprof_tui.views.summary_views import quick_views, slow_views

from ..lines import Line, paragraph
from .answer_lines import AnswerLines, Entry

#: Height of a curve in lines, including its time axis, and its greatest width in cells: wider ones show no more.
CURVE_HEIGHT, MAX_CURVE_WIDTH = 8, 120
#: Seconds after which the answers so far are shown before the others are computed.
BATCH_SECONDS: Final = 0.1

#: Lines of drawn series, by view and series key.
Curves = Mapping[str, Mapping[str, Sequence[str]]]


class SummaryAnswers:
    """Holds the latest answers, and determines when new ones are needed; slow answers stay until they are replaced."""

    def __init__(self, session: Session, state: DisplayState) -> None:
        self.session = session
        self._vocabulary = session.profile.vocabulary
        #: The available views, in order.
        self.views: tuple[View, ...] = views_of(self._vocabulary, compared=session.baseline is not None, screen=True)
        self.chosen = ""  #: Id of the view that fills the pane; empty: all views share it
        self.answered_query: Query | None = None  #: Query of the current answers; None: no answers yet
        self.by_view: dict[str, Answer] = {}
        self.asked: dict[str, Query] = {}  #: Query of each answer
        #: Drawn series by view and key, for a pane ``curve_width`` cells wide.
        self.curves: dict[str, Mapping[str, Sequence[str]]] = {}
        self.curve_width = -1
        self.description = describe(session, state)  #: Description of scope, window and filter
        self._latest_key: tuple[object, ...] = ()
        self.latest_query: Query | None = None  #: The latest query; None: none yet

    @property
    def view(self) -> View | None:
        """The view that fills the pane; None: all views share it."""
        return view_of(self._vocabulary, self.chosen, screen=True) if self.chosen else None

    def non_empty_views(self) -> list[View]:
        """Views with a non-empty, complete answer."""
        answers = self.by_view
        return [each for each in self.views
                if each.id in answers and not answers[each.id].empty and not answers[each.id].missing]  # fmt: skip

    def stepped(self, steps: int) -> str:
        """Id of the view ``steps`` on among ``non_empty_views``, cyclic; empty (all views) between last and first."""
        names = ["", *(view.id for view in self.non_empty_views())]
        index = names.index(self.chosen) if self.chosen in names else 0
        return names[(index + steps) % len(names)]

    def new_query(self, state: DisplayState) -> Query | None:
        """Returns the query for a state; None if it equals the latest one."""
        key = state.start, state.end, state.scope, state.filter
        if key == self._latest_key:
            return None
        self._latest_key = key
        self.description = describe(self.session, state)
        self.latest_query = Query.of_state(self.session, state, state.scope)
        return self.latest_query

    def store(self, query: Query, answers: Mapping[str, Answer]) -> None:
        """Stores answers of some views."""
        self.answered_query = query
        self.by_view |= answers
        self.asked |= dict.fromkeys(answers, query)
        if query.baseline is None:
            # there is no comparison for a part of the time
            self.by_view.pop(COMPARISON.id, None)

    def store_curves(self, answers: Mapping[str, Answer], curves: Curves, width: int) -> None:
        """Stores the curves of those answers that are still current, drawn for a pane of ``width`` cells."""
        current = {name: each for name, each in curves.items() if self.by_view.get(name) is answers[name]}
        if current:
            self.curves |= current
            self.curve_width = width

    def is_awaited(self, name: str) -> bool:
        """Whether the answer of a view is one to an earlier query."""
        return self.asked.get(name) is not self.latest_query

    def to_redraw(self, width: int) -> Mapping[str, Answer]:
        """Returns the answers whose curves must be redrawn for a width, and marks them as drawn for it."""
        drawn = {name: each for name, each in self.by_view.items() if each.series}
        if not drawn or self.answered_query is None or self.curve_width == width:
            return {}
        self.curve_width = width
        return drawn

    @property
    def is_cluster(self) -> bool:
        """Whether a view of all workers has rows: figures of a cluster may exist without any events."""
        together = (view.id for view in views_of(self._vocabulary) if view.all_workers)
        return any(len(table) for key in together if key in self.by_view for table in self.by_view[key].tables)


def describe(session: Session, state: DisplayState) -> str:
    """Describes scope, window and filter of a state."""
    scope = session.scope_title(state.scope)
    kind = "window" if state.range is None else "range"
    whole = "capture" if split_step(state.filter)[0] is None else steps_of(session).word.one
    # a window of the length of a step is the step, whose device work may run beyond it
    all_of_it = Query.of_state(session, state, state.scope).range is None
    window = f"whole {whole}" if all_of_it else f"{kind} of {time_text(state.span)}"
    text = f"{clean(scope)}, {window}"
    return f"filter {clean(state.filter)}: {text}" if state.filter else text


def compute_answers(
    query: Query, chosen: View | None, cancelled: Callable[[], bool], *, has_quick: bool, first: bool
) -> Iterator[dict[str, Answer]]:
    """Yields the answers of the views: quick ones, unless ``has_quick``, then slow ones and the chosen view.

    Slow answers are yielded in batches of about ``BATCH_SECONDS`` seconds; with ``first`` (the pane is still empty) the
    first one by itself. While a profile is still being read, only its first slow view is computed: the others would
    delay the reading, and would have to be computed again.
    """
    if not has_quick and not cancelled():
        yield quick_views(query)
    answers: dict[str, Answer] = {}
    batch_start = time.monotonic()
    for name, found in slow_views(query, chosen.id if chosen is not None else ""):
        answers[name] = found
        if cancelled():
            return
        if query.profile.more_follows:
            break
        if first or time.monotonic() - batch_start > BATCH_SECONDS:
            yield answers
            answers, batch_start, first = {}, time.monotonic(), False
    if chosen is not None and not chosen.place:
        answers[chosen.id] = answer(chosen, query)
    yield answers


def draw_curves(query: Query, answers: Mapping[str, Answer], width: int, *, ascii_only: bool) -> Curves:
    """Draws the curves of some answers for a pane of ``width`` cells; slow, so meant for a worker thread."""
    cells = min(width - 2, MAX_CURVE_WIDTH)
    return {
        name: {
            series.key: series_curve(series, *query.extent, cells, CURVE_HEIGHT, ascii_only=ascii_only)
            for series in each.series
        }
        for name, each in answers.items()
        if each.series
    }  # fmt: skip


#: Type of a cached result: lines of a view, or the width they need.
Result = TypeVar("Result")

#: Least width of a column, in cells.
COLUMN = 70
#: Least height of the pane, in lines, for blank lines between sections.
PARTED = 16


class SummaryPage(Struct):
    """Lines with the targets of Enter. Each of the two columns has items of its own."""

    lines: list[Line] = field(default_factory=list)
    width: int = 0
    left: int = 0  #: Width of the first column in cells
    #: top, split: Half-open range of the lines in two columns.
    top: int = 0
    split: int = 0
    targets: tuple[list[Target], list[Target]] = field(default_factory=lambda: ([], []))  #: Targets, by column
    #: Index in ``targets`` of each line, by column; -1: no target.
    items: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    def add(self, line: Line, *targets: Target | None) -> None:
        """Appends a line with its target in each column; consecutive lines with the same target are one item."""
        self.lines.append(line)
        for column_targets, items, target in zip(self.targets, self.items, (*targets, None, None), strict=False):
            if target is not None and not (column_targets and column_targets[-1] is target and items[-1] >= 0):
                column_targets.append(target)
            items.append(len(column_targets) - 1 if target is not None else -1)

    def span(self, number: int, column: int) -> tuple[int, int]:
        """Half-open range of the cells of a column on a line."""
        if not self.top <= number < self.split or self.left >= self.width:
            return 0, self.width
        return (self.left, self.width) if column else (0, self.left)

    def column_at(self, number: int, cell: int) -> int:
        """Column (0 or 1) at a cell of a line."""
        return 1 if self.left <= cell and self.top <= number < self.split and self.left < self.width else 0


class PageBuilder:
    """Builds pages of the current answers for a size of the pane; caches the lines of unchanged answers."""

    def __init__(self, answers: SummaryAnswers, palette: Palette, glyphs: Glyphs, width: int, height: int) -> None:
        self.built_for = palette, width, height
        self._answers = answers
        self._vocabulary = answers.session.profile.vocabulary
        self._palette = palette
        self._glyphs = glyphs
        self._width = width
        self._height = height
        self._gap: list[Entry] = [([], None)] if height >= PARTED else []
        #: Cached lines by view, with the answer and the settings that they were made for.
        self._entries: dict[str, tuple[Answer, tuple[object, ...], list[Entry]]] = {}
        self._needed: dict[str, tuple[Answer, tuple[object, ...], int]] = {}

    def page(self, state: DisplayState, *, paused: bool) -> SummaryPage:
        """The page of a state: the chosen view, or all views if none is chosen."""
        session, width = self._answers.session, self._width
        if not self._answers.by_view:
            return self._text_page([[Segment(" computing ...", self._palette.quiet)]])
        if not session.profile.event_count and not self._answers.is_cluster:
            return self._text_page(paragraph(session.say(EMPTY_CAPTURE), width, self._palette.quiet))
        if not session.profile.timed:
            return self._text_page(paragraph(self._vocabulary.phrase("no_times", NO_TIMES), width, self._palette.quiet))
        head = self._notices(state, paused=paused)
        if self._answers.chosen:
            return self._lay_out(head, width, self._view_in_full(self._answers.chosen))
        views = {place: [each.id for each in self._answers.views if each.place == place and self._has_content(each.id)]
                 for place in ("first", "second", "below")}  # fmt: skip
        rows = max(self._height // 3 - 2, 4)
        left, fitting = self._columns(views, rows)
        if not left:
            # three rows of each list, or two if the last list of the first place would otherwise be off the screen
            fewest = 3 if 4 * len(views["first"]) - 2 <= self._height else 2
            rows = max(self._height // 3 - (2 if self._gap else 1), fewest)
            parts = (self._entries_of(views[place], width, each)
                     for place, each in (("first", rows), ("second", max(rows, 8)), ("below", 16)))  # fmt: skip
            return self._lay_out(head, width, self._join(*parts, self._missing_data()))
        first, second = ([each for each in views[place] if each in fitting] for place in ("first", "second"))
        wide = [each for place in ("first", "second") for each in views[place] if each not in fitting]
        # a wide view that comes first stays at the top
        top = wide[: wide[:1] == views["first"][:1]]
        above = self._entries_of(top, width, rows)
        below = self._join(self._entries_of(wide[len(top) :], width, max(rows, 8)),
                           self._entries_of(views["below"], width, 16), self._missing_data())  # fmt: skip
        columns = self._entries_of(first, left - 1, rows), self._entries_of(second, width - left, max(rows, 8))
        return self._lay_out(head, left, *columns, above=[*above, *self._gap] if above else [],
                             below=[*self._gap, *below] if below else [])  # fmt: skip

    def _text_page(self, lines: list[Line]) -> SummaryPage:
        """A page of lines without targets, and so without a cursor."""
        return SummaryPage(lines, self._width, self._width)

    def _notices(self, state: DisplayState, *, paused: bool) -> list[Line]:
        lines: list[Line] = []
        if paused:
            paused_text = f" Paused: {self._answers.description}. p follows the screen again."
            lines.append([Segment(fit(paused_text, self._width), self._palette.caution)])
        overview = self._answers.by_view.get("overview")
        if overview is not None and any(fact.key == "events" and fact.value == 0 for fact in overview.facts):
            lines += paragraph(self._nothing_text(state), self._width, self._palette.quiet)
        return lines

    def _nothing_text(self, state: DisplayState) -> str:
        """Sentence that no event starts here, and how to widen the view."""
        say = self._vocabulary.say
        ways = ["& changes the filter"] if state.filter else []
        if state.range is not None:
            ways.append("Esc clears the range")
        elif not state.fits_all:
            ways.append("0 in the timeline shows the whole capture")
        if not state.scope.everything:
            ways.append(say("Esc goes back to all {units}"))
        told = " and ".join(ways) if len(ways) < 3 else ", ".join(ways)
        return say("No {event} starts here: ") + f"{told}." if ways else say("No {events} here.")

    def _lines(self, width: int, rows: int, name: str = "", *, whole: bool = False) -> AnswerLines:
        curves, names = self._answers.curves.get(name, {}), self._answers.session.profile.strings.get("kernel", ())
        scopes = {name: code for code, name in enumerate(names)}
        awaited = bool(name) and self._answers.is_awaited(name)
        return AnswerLines(self._vocabulary, self._palette, self._glyphs, width, rows, whole, curves, scopes, awaited)

    def _columns(self, views: dict[str, list[str]], rows: int) -> tuple[int, set[str]]:
        """Width of the first of two columns (0: no room for two), and the views that fit into their column.

        A view fits if it shows the same table columns and cuts no more names than at the full width, so that a wider
        terminal never shows less. The border is chosen so that most views fit, and then nearest to the middle.
        """
        if self._width < 2 * COLUMN:
            return 0, set()
        lines = self._lines(self._width, rows)
        first, second = ({each: self._cached(self._needed, each, lines.needed, rows) for each in views[place]}
                         for place in ("first", "second"))  # fmt: skip
        middle = self._width // 2
        borders = {middle, *(need + 1 for need in first.values()), *(self._width - need for need in second.values())}
        best, fitting = 0, set[str]()
        for left in sorted(borders, key=lambda border: abs(border - middle)):
            one = {each for each, need in first.items() if need < left}
            other = {each for each, need in second.items() if need <= self._width - left}
            if not COLUMN <= left <= self._width - COLUMN or len(one | other) <= len(fitting):
                continue
            # a column must have at least one table
            if any(first[each] for each in one) and any(second[each] for each in other):
                best, fitting = left, one | other
        return best, fitting

    def _view_entries(self, name: str, width: int, rows: int, *, whole: bool = False) -> list[Entry]:
        def made(answer: Answer) -> list[Entry]:
            title = self._vocabulary.say(view_of(self._vocabulary, name, screen=True).title)
            return self._lines(width, rows, name, whole=whole).entries(title, answer)

        awaited = self._answers.is_awaited(name)
        return self._cached(self._entries, name, made, width, rows, whole, self._answers.curves.get(name), awaited)

    def _cached(
        self, cache: dict[str, tuple[Answer, tuple[object, ...], Result]], name: str, make: Callable[[Answer], Result],
        *settings: object,
    ) -> Result:  # fmt: skip
        """Cached result of ``make`` for the answer of a view; computed if the answer or the settings have changed."""
        answer = self._answers.by_view[name]
        found = cache.get(name)
        if found is None or found[0] is not answer or found[1] != settings:
            found = cache[name] = answer, settings, make(answer)
        return found[2]

    def _has_content(self, name: str) -> bool:
        found = self._answers.by_view.get(name)
        return found is not None and bool(found.facts or found.notes or found.series or any(map(len, found.tables)))

    def _view_in_full(self, name: str) -> list[Entry]:
        quiet = self._palette.quiet
        if name not in self._answers.by_view:
            return [([Segment(" computing ...", quiet)], None)]
        entries = self._view_entries(name, self._width, 0, whole=True)
        return entries or [(line, None) for line in paragraph("Nothing here.", self._width, quiet)]

    def _entries_of(self, names: Sequence[str], width: int, rows: int) -> list[Entry]:
        return self._join(*(self._view_entries(name, width, rows) for name in names))

    def _missing_data(self) -> list[Entry]:
        answers = self._answers.by_view.values()
        missing = [each.sentence for found in answers for each in found.missing if each.needs]
        return self._lines(self._width, 0).sentence_lines(*dict.fromkeys(missing))

    def _join(self, *parts: list[Entry]) -> list[Entry]:
        joined: list[Entry] = []
        for each in parts:
            joined += [*(self._gap if joined and each else []), *each]
        return joined

    def _lay_out(
        self, head: list[Line], left: int, first: Sequence[Entry], second: Sequence[Entry] = (), *,
        above: Sequence[Entry] = (), below: Sequence[Entry] = (),
    ) -> SummaryPage:  # fmt: skip
        """Builds the page from the notices, two columns, and the full-width lines above and below them."""
        page = SummaryPage(width=self._width, left=left)
        for line in head:
            page.add(line)
        for line, target in above:
            page.add(line, target)
        page.top = len(page.lines)
        for number in range(max(len(first), len(second))):
            line, target = first[number] if number < len(first) else ([], None)
            other, other_target = second[number] if number < len(second) else ([], None)
            start = Strip(line).adjust_cell_length(left, Style.null()) if second else line
            page.add([*start, *other], target, other_target)
        page.split = len(page.lines)
        for line, target in below:
            page.add(line, target)
        return page
