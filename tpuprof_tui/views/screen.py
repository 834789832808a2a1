"""The views of the explorer's summary, computed in two stages: quick ones with every key, slow ones in a thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tpuprof_tui.analysis.links.launches import opened
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.model import Profile
from tpuprof_tui.model.view import View

from .answer import Answer
from .query import Query
from .registry import answer, views_of

#: Workers up to which slow views are told unasked.
_FEW: Final = 8
_PLACES: Final = ("first", "second", "below", "")
#: What is told instead.
WAITS: Final = Answer(notes=("Takes long of many workers: computed when this view is chosen, or one of them.",))


def at_once(query: Query) -> dict[str, Answer]:
    """What the summary pane computes with every key, by view."""
    return {view.id: answer(view, query) for view in _views(query) if view.place and view.quick}


def at_rest(query: Query, chosen: str = "") -> Iterator[tuple[str, Answer]]:
    """What it computes when keys rest, a view at a time: what takes longer.

    What takes long of each worker waits (``WAITS``) of many of them until it is the ``chosen`` view.
    """
    few = query.top_group >= 0 or sum(group.parent < 0 for group in query.profile.groups) <= _FEW
    # what stands first is there first
    for view in sorted(_views(query), key=lambda view: _PLACES.index(view.place)):
        if view.place and not view.quick:
            yield view.id, answer(view, query) if few or not view.slow or view.id == chosen else WAITS


def first_screen(profile: Profile) -> Session:
    """A profile with all that the explorer's first screen needs: what its first frame does, and the summary."""
    query = Query(opened(profile))
    at_once(query)
    dict(at_rest(query))
    return query.session


def _views(query: Query) -> tuple[View, ...]:
    return views_of(query.vocabulary, compared=query.baseline is not None)
