"""Views of the explorer's summary pane, in two stages: quick ones on every key, slow ones in a worker thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tpuprof_tui.analysis.links.launches import launches
from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.model import Profile
from tpuprof_tui.model.view import View

from .answer import Answer
from .registry import answer, views_of

#: Maximum number of workers for which slow views are computed unasked.
_MOST_WORKERS: Final = 8
_PLACES: Final = ("first", "second", "below", "")
#: Placeholder for slow views.
DEFERRED: Final = Answer(notes=("Slow for many workers: computed when this view or one worker is chosen.",))


def quick_views(query: Query) -> dict[str, Answer]:
    """The quick views of the summary pane, by id; computed on every key press."""
    return {view.id: answer(view, query) for view in _views(query) if view.place and view.quick}


def slow_views(query: Query, chosen: str = "") -> Iterator[tuple[str, Answer]]:
    """Yields the slower views of the summary pane, by id, one at a time; computed when no keys are pressed.

    With many workers, ``slow`` views are replaced by ``DEFERRED`` unless ``chosen``.
    """
    few = query.top_group >= 0 or sum(group.parent < 0 for group in query.profile.groups) <= _MOST_WORKERS
    # in display order: the top ones appear first
    for view in sorted(_views(query), key=lambda view: _PLACES.index(view.place)):
        if view.place and not view.quick:
            yield view.id, answer(view, query) if few or not view.slow or view.id == chosen else DEFERRED


def prepared_session(profile: Profile) -> Session:
    """The session of a profile with everything cached that the explorer's first frame needs."""
    query = query_of(profile)
    _ = query.headline, query.steps
    for unit in profile.units:
        launches(query.session, unit)
    return query.session


def first_screen(profile: Profile) -> Session:
    """The same with everything that the summary needs too."""
    query = Query(prepared_session(profile))
    quick_views(query)
    dict(slow_views(query))
    return query.session


def _views(query: Query) -> tuple[View, ...]:
    return views_of(query.vocabulary, compared=query.baseline is not None)
