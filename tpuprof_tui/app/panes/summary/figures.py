"""What the summary shows for a state: answers of its views, and their curves as text."""

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
from tpuprof_tui.views.screen import quick_views, slow_views

#: Lines of a curve, its times below included; curves are no wider than ``WIDEST``: wider ones show no more.
CURVE_HEIGHT, WIDEST = 8, 120
#: Views that take longer than this together are shown before the others are known, s.
SHOWN_EVERY: Final = 0.1

#: Drawn series, by view and key.
Curves = Mapping[str, Mapping[str, Sequence[str]]]


class SummaryFigures:
    """Holds the latest answers, and says when others are wanted; what takes longer stays until it is known anew.

    Attributes:
        views: The views there are, in their order.
        chosen: The id of the view that fills the pane; empty: all have their part of it.
        asked: What the answers are about; None: nothing has been answered yet.
        answers: What the views say, by their ids.
        curves: The series that are drawn, by view and key, for panes of ``drawn_for`` cells.
        about: What they tell of, in words.
        latest: What was asked last; None: nothing yet.
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
        """The view that fills the pane."""
        return view_of(self._vocabulary, self.chosen, screen=True) if self.chosen else None

    def told(self) -> list[View]:
        """The views that say something."""
        answers = self.answers
        return [each for each in self.views
                if each.id in answers and not answers[each.id].empty and not answers[each.id].missing]  # fmt: skip

    def stepped(self, steps: int) -> str:
        """The view so many steps on, of those that say something; after the last and before the first none."""
        names = ["", *(view.id for view in self.told())]
        place = names.index(self.chosen) if self.chosen in names else 0
        return names[(place + steps) % len(names)]

    def want(self, state: DisplayState) -> Query | None:
        """What is to be asked for a state; None where it is what was asked last."""
        wanted = state.start, state.end, state.figures_scope, state.filter
        if wanted == self._wanted:
            return None
        self._wanted = wanted
        self.about = about(self.session, state)
        self.latest = Query.of_state(self.session, state, state.figures_scope)
        return self.latest

    def take(self, query: Query, answers: Mapping[str, Answer], curves: Curves, width: int) -> None:
        """Takes answers, in place of those of the same views, and curves drawn for a pane of so many cells."""
        if curves:
            self.curves |= curves
            self.drawn_for = width
        self.asked = query
        self.answers |= answers
        if query.baseline is None:
            # of a part of the time nothing is compared
            self.answers.pop(COMPARISON.id, None)

    def to_redraw(self, width: int) -> Mapping[str, Answer]:
        """The answers whose curves do not fit a width; from now on they are taken as drawn for it."""
        drawn = {name: each for name, each in self.answers.items() if each.series}
        if not drawn or self.asked is None or self.drawn_for == width:
            return {}
        self.drawn_for = width
        return drawn

    @property
    def is_cluster(self) -> bool:
        """Whether a view of all workers has something to say: figures of a cluster stand without any events."""
        together = (view.id for view in views_of(self._vocabulary) if view.together)
        return any(len(table) for key in together if key in self.answers for table in self.answers[key].tables)


def about(session: Session, state: DisplayState) -> str:
    """What figures of a state are about, in words: scope, window, filter."""
    scope = session.scope_title(state.figures_scope)
    kind = "window" if state.range is None else "range"
    whole = "capture" if split_step(state.filter)[0] is None else session.steps.word.one
    window = f"whole {whole}" if state.fits_all else f"{kind} of {time_text(state.span)}"
    told = f"{clean(scope)}, {window}"
    return f"filter {clean(state.filter)}: {told}" if state.filter else told


def computed(
    query: Query, chosen: View | None, cancelled: Callable[[], bool], *, known: bool, first: bool
) -> Iterator[dict[str, Answer]]:
    """What the views say: what is quick, unless it is ``known``, then what takes longer, and the chosen view.

    Of many or slow views those that are known are given while the others are computed; where the pane shows none
    yet, the ``first`` of them as soon as it is. Of a profile of which more is being read only the first that takes
    longer is computed: the others would hold up the reading, and be computed anew.
    """
    if not known and not cancelled():
        yield quick_views(query)
    answers: dict[str, Answer] = {}
    began = time.monotonic()
    for name, told in slow_views(query, chosen.id if chosen is not None else ""):
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
    """The curves of some answers for a pane of ``width`` cells; takes longer than a frame: meant for a thread."""
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
