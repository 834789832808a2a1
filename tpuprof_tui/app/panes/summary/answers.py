"""Data of the summary for a state: answers of the views, and their curves as text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import split_step
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.analysis.steps.step_detection import steps_of
from tpuprof_tui.app.drawing.charts import series_curve
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model.view import View
from tpuprof_tui.views.answer import Answer
from tpuprof_tui.views.registry import COMPARISON, answer, view_of, views_of
from tpuprof_tui.views.screen import quick_views, slow_views

#: Height of a curve in lines, including its time axis, and its greatest width in cells: wider ones show no more.
CURVE_HEIGHT, MAX_CURVE_WIDTH = 8, 120
#: Seconds after which the answers so far are shown before the others are computed.
BATCH_SECONDS: Final = 0.1

#: Lines of drawn series, by view and series key.
Curves = Mapping[str, Mapping[str, Sequence[str]]]


class SummaryAnswers:
    """Holds the latest answers, and determines when new ones are needed; slow answers stay until they are replaced.

    Attributes:
        views: The available views, in order.
        chosen: Id of the view that fills the pane; empty: all views share it.
        answered_query: Query of the current answers; None: no answers yet.
        by_view: Answers by view id.
        asked: Query of each answer.
        curves: Drawn series by view and key, for a pane ``curve_width`` cells wide.
        description: Description of scope, window and filter.
        latest_query: The latest query; None: none yet.
    """

    def __init__(self, session: Session, state: DisplayState) -> None:
        self.session = session
        self._vocabulary = session.profile.vocabulary
        self.views: tuple[View, ...] = views_of(self._vocabulary, compared=session.baseline is not None, screen=True)
        self.chosen = ""
        self.answered_query: Query | None = None
        self.by_view: dict[str, Answer] = {}
        self.asked: dict[str, Query] = {}
        self.curves: dict[str, Mapping[str, Sequence[str]]] = {}
        self.curve_width = -1
        self.description = describe(session, state)
        self._latest_key: tuple[object, ...] = ()
        self.latest_query: Query | None = None

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
