"""Shared by the views: grouping of events by codes, and merging of the answers of several workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.analysis.totals.aggregates import distinct_together
from tpuprof_tui.views.answer import Answer, Column, Missing, Table
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


class Grouped:
    """Events grouped by one or more codes.

    Attributes:
        keys: Distinct combinations of codes, one column per code.
        index: Group index of each event.
        count: Number of groups.
    """

    def __init__(self, *codes: npt.NDArray[np.integer[Any]]) -> None:
        index, self.count = distinct_together(*codes)
        self.index = index.astype(np.int64)
        example = np.zeros(self.count, np.int64)
        example[self.index] = np.arange(len(index))
        self.keys = np.stack([np.asarray(each, np.int64)[example] for each in codes], axis=1)

    def calls(self) -> I64:
        """Number of events of each group."""
        return np.bincount(self.index, minlength=self.count).astype(np.int64)

    def total(self, values: I64, gather: np.ufunc = np.add, start: int = 0) -> I64:
        """Sum of values of each group, or another reduction (ufunc) with its initial value."""
        found = np.full(self.count, start, np.int64)
        gather.at(found, self.index, values)
        return found

    def any(self, values: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Whether any value of each group is true."""
        return np.bincount(self.index, weights=values, minlength=self.count) > 0

    def mean(self, values: npt.NDArray[np.float64], weights: I64) -> list[float | None]:
        """Weighted means; missing and negative values count as 0; None for a group without any value."""
        known = ~np.isnan(values) & (np.nan_to_num(values) >= 0)
        total_weights = np.bincount(self.index, weights=weights, minlength=self.count)
        weighted = np.bincount(self.index, weights=np.where(known, values, 0) * weights, minlength=self.count)
        has = self.any(known)
        return [float(p / w) if h and w else None for h, p, w in zip(has, weighted, total_weights, strict=True)]


def time_table(
    key: str, title: str, columns: Sequence[tuple[Column, Sequence[Any]]], keys: Sequence[str], main: str = "total_us"
) -> Table:  # fmt: skip
    """A table sorted by falling time (``main``), then by its keys."""
    order = [column.key for column, _ in columns]
    indices = [order.index(each) for each in (main, *keys)]
    rows = sorted(zip(*(values for _, values in columns), strict=True),
                  key=lambda row: (-row[indices[0]], *(row[index] or "" for index in indices[1:])))  # fmt: skip
    return Table.of_rows(key, title, [column for column, _ in columns], rows)


def per_step(total: I64, steps: int) -> list[float | None]:
    """Sums over some steps as means per step; None without steps."""
    return [each / steps if steps else None for each in total.tolist()]


def ratio(part: float | int, whole: float | int) -> float | None:
    """The quotient; None if ``whole`` is 0."""
    return float(part) / float(whole) if whole else None
