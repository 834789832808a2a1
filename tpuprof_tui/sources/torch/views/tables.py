"""Shared by the views: answers of several workers, and notes on what does not narrow them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.views.answer import Answer, Missing
from tpuprof_tui.views.query import Query
from tpuprof_tui.views.workers import stack_workers

from ..vocabulary import DEVICE, MEMORY, MODULES
from .run import Run, ViewSelection, runs_of, selection_of, workers_of

I64 = npt.NDArray[np.int64]
_NO_STREAM: Final = "These figures are of device streams, and the scope has none: choose the rank or a GPU."


def of_workers(query: Query, compute: Callable[[ViewSelection], Answer], needs: str = "") -> Answer:
    """Answers a query for one worker; of several, merges facts into a table and concatenates the tables' rows.

    Args:
        query: The query.
        compute: Answers for one worker.
        needs: Capability that the view requires; if the profile lacks it, the answer states what to record.
    """
    found, worked = [], False
    for run in runs_of(query):
        answer, worked = compute(selection_of(query, run)), worked or len(run.call) > 0
        found.append((run.worker.key, answer if needs == MEMORY else _with_unrecorded(run, answer)))
    if needs and not (query.profile.has(needs) and (needs != DEVICE or worked)):
        capability = query.vocabulary.capability(needs)
        assert capability is not None
        # with calls of the runtime it was asked for
        asked = query.profile.has(needs)
        lacking = Missing(f"There is no {capability.title} in this trace." if needs != MODULES else
                          "There are no nn.Modules in this trace.", "" if asked else capability.needs)  # fmt: skip
        found = [(key, replace(answer, missing=(lacking, *answer.missing))) for key, answer in found]
    return stack_workers(found, [worker.group for worker in workers_of(query)])


def _with_unrecorded(run: Run, answer: Answer) -> Answer:
    """The answer, saying which launches it knows no work of."""
    lacking = tuple(Missing(text) for text, *_ in run.launchers.unrecorded)
    return replace(answer, missing=(*answer.missing, *lacking)) if lacking else answer


def per_worker(needs: str = "") -> Callable[[Callable[[ViewSelection], Answer]], Callable[[Query], Answer]]:
    """Decorator that makes a view of a function that answers for one worker (`of_workers`)."""
    return lambda compute: lambda query: of_workers(query, compute, needs)


def of_streams(compute: Callable[[ViewSelection], Answer]) -> Callable[[Query], Answer]:
    """As ``per_worker(DEVICE)``, for views of device work only: a scope without any stream is noted."""

    def view(query: Query) -> Answer:
        answer, lanes = of_workers(query, compute, DEVICE), query.profile.lanes
        streams = {number for number, lane in enumerate(lanes) if lane.kind == "stream"}
        if not streams or not streams.isdisjoint(query.session.lanes_in(query.scope)):
            return answer
        return replace(answer, notes=(*answer.notes, _NO_STREAM))

    return view


def not_narrowed(query: Query, answer: Answer, subject: str, by: Sequence[str] = ("range", "step", "filter")) -> Answer:
    """Adds a note to an answer of whole workers, stating which parts of the query do not narrow it.

    ``subject`` is the subject of the sentence; ``by``: parts of the query to check.
    """
    narrowing = [word for word in by if getattr(query, word) not in (None, "")]
    if query.scope.lane >= 0 or query.scope.group not in (-1, query.top_group):
        narrowing.append("scope below the rank")
    note = f"{subject} are not narrowed by {' and '.join(narrowing)}."
    return replace(answer, notes=(*answer.notes, note)) if narrowing else answer


def ratio(part: float | int, whole: float | int) -> float | None:
    """The quotient; None if ``whole`` is 0."""
    return float(part) / float(whole) if whole else None
