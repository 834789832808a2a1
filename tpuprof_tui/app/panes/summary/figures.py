"""Data of the summary for a state: answers of the views, and their curves as text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from tpuprof_tui.analysis.selecting.filters import split_step
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.app.drawing.charts import series_curve
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model.view import View
from tpuprof_tui.views.answer import Answer
from tpuprof_tui.views.query import Query
from tpuprof_tui.views.registry import COMPARISON, answer, view_of, views_of
from tpuprof_tui.views.screen import at_once, at_rest

#: Height of a curve in lines, including its time axis, and its greatest width in cells: wider ones show no more.
CURVE_HEIGHT, WIDEST = 8, 120
#: Seconds after which the answers so far are shown before the others are computed.
SHOWN_EVERY: Final = 0.1

#: Lines of drawn series, by view and series key.
Curves = Mapping[str, Mapping[str, Sequence[str]]]


class SummaryFigures:
    """Holds the latest answers, and determines when new ones are needed; slow answers stay until they are replaced.

    Attributes:
        views: The available views, in order.
        chosen: Id of the view that fills the pane; empty: all views share it.
        asked: Query of the current answers; None: no answers yet.
        answers: Answers by view id.
        curves: Drawn series by view and key, for a pane ``drawn_for`` cells wide.
        about: Description of scope, window and filter.
        latest: The latest query; None: none yet.
    """

    def __init__(self, session: Session, state: DisplayState) -> None:
        self.session = session
        self._vocabulary = session.profile.vocabulary
        self.views: tuple[View, ...] = views_of(self._vocabulary, compared=session.baseline is not None, screen=True)
        self.chosen = ""
        self.asked: Query | None = None
        self.answers: dict[str, Answer] = {}
        self.curves: dict[str, Mapping[str, Sequence[str]]] = {}
        self.drawn_for = -1
        self.about = about(session, state)
        self._wanted: tuple[object, ...] = ()
        self.latest: Query | None = None

    @property
    def view(self) -> View | None:
        """The view that fills the pane; None: all views share it."""
        return view_of(self._vocabulary, self.chosen, screen=True) if self.chosen else None

    def told(self) -> list[View]:
        """Views with a non-empty, complete answer."""
        answers = self.answers
        return [each for each in self.views
                if each.id in answers and not answers[each.id].empty and not answers[each.id].missing]  # fmt: skip

    def stepped(self, steps: int) -> str:
        """Id of the view ``steps`` on among those of ``told``, cyclic; empty (all views) between last and first."""
        names = ["", *(view.id for view in self.told())]
        place = names.index(self.chosen) if self.chosen in names else 0
        return names[(place + steps) % len(names)]

    def want(self, state: DisplayState) -> Query | None:
        """Returns the query for a state; None if it equals the latest one."""
        wanted = state.start, state.end, state.figures_scope, state.filter
        if wanted == self._wanted:
            return None
        self._wanted = wanted
        self.about = about(self.session, state)
        self.latest = Query.of_state(self.session, state, state.figures_scope)
        return self.latest

    def take(self, query: Query, answers: Mapping[str, Answer], curves: Curves, width: int) -> None:
        """Stores answers of some views, and curves drawn for a pane of ``width`` cells."""
        if curves:
            self.curves |= curves
            self.drawn_for = width
        self.asked = query
        self.answers |= answers
        if query.baseline is None:
            # there is no comparison for a part of the time
            self.answers.pop(COMPARISON.id, None)

    def to_redraw(self, width: int) -> Mapping[str, Answer]:
        """Returns the answers whose curves must be redrawn for a width, and marks them as drawn for it."""
        drawn = {name: each for name, each in self.answers.items() if each.series}
        if not drawn or self.asked is None or self.drawn_for == width:
            return {}
        self.drawn_for = width
        return drawn

    @property
    def is_cluster(self) -> bool:
        """Whether a view of all workers has rows: figures of a cluster may exist without any events."""
        together = (view.id for view in views_of(self._vocabulary) if view.all_workers)
        return any(len(table) for key in together if key in self.answers for table in self.answers[key].tables)


def about(session: Session, state: DisplayState) -> str:
    """Describes scope, window and filter of a state."""
    scope = session.scope_title(state.figures_scope)
    kind = "window" if state.range is None else "range"
    whole = "capture" if split_step(state.filter)[0] is None else session.steps.word.one
    window = f"whole {whole}" if state.fits_all else f"{kind} of {time_text(state.span)}"
    told = f"{clean(scope)}, {window}"
    return f"filter {clean(state.filter)}: {told}" if state.filter else told


def computed(
    query: Query, chosen: View | None, cancelled: Callable[[], bool], *, known: bool, first: bool
) -> Iterator[dict[str, Answer]]:
    """Yields the answers of the views: quick ones, unless ``known``, then slow ones and the chosen view.

    Slow answers are yielded in batches of about ``SHOWN_EVERY`` seconds; with ``first`` (the pane is still empty) the
    first one by itself. While a profile is still being read, only its first slow view is computed: the others would
    delay the reading, and would have to be computed again.
    """
    if not known and not cancelled():
        yield at_once(query)
    answers: dict[str, Answer] = {}
    began = time.monotonic()
    for name, told in at_rest(query, chosen.id if chosen is not None else ""):
        answers[name] = told
        if cancelled():
            return
        if query.profile.more_follows:
            break
        if first or time.monotonic() - began > SHOWN_EVERY:
            yield answers
            answers, began, first = {}, time.monotonic(), False
    if chosen is not None and not chosen.place:
        answers[chosen.id] = answer(chosen, query)
    yield answers


def drawn(query: Query, answers: Mapping[str, Answer], width: int, *, ascii_only: bool) -> Curves:
    """Draws the curves of some answers for a pane of ``width`` cells; slow, so meant for a worker thread."""
    cells = min(width - 2, WIDEST)
    return {
        name: {
            series.key: series_curve(series, query.state.start, query.state.end, cells, CURVE_HEIGHT,
                                     ascii_only=ascii_only)
            for series in each.series
        }
        for name, each in answers.items()
        if each.series
    }  # fmt: skip
