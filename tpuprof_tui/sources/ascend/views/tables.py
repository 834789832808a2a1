"""Shared by the views: the selection of a query, time columns, sums by codes, merging of workers' answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.filter_masks import apply_filter as passes
from tpuprof_tui.analysis.selecting.grouping import text_condition
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.aggregates import distinct_together
from tpuprof_tui.model import INT_MISSING, Lane
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table, Target
from tpuprof_tui.views.query import Query
from tpuprof_tui.views.workers import stack_workers

from ..read.csv_table import Texts
from ..read.kernels import Kernels, rows_of_work
from ..read.rank import OTHER, STEP_COLUMNS
from .run import Run, Step, runs_of

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
WHOLE: Final = "These figures are of the whole recording."
#: Short header of each step column, so that a row fits into 80 cells; and the order in which columns are dropped if it
#: does not.
STEP_HEADS: Final = {
    "computing_us": ("Comp.", 0), "communication_us": ("Comm.", 3), "overlapped_us": ("Overlap", 4),
    "communication_not_overlapped_us": ("Exposed", 0), "stage_us": ("Stage", 2), "bubble_us": ("Bubble", 6),
    "communication_not_overlapped_exclude_receive_us": ("No recv", 7), "preparing_us": ("Prep.", 5),
}  # fmt: skip
STEP_TIMES: Final = tuple(
    Column(key, title, "duration", spare=STEP_HEADS.get(key, ("", 0))[1], head=STEP_HEADS.get(key, ("", 0))[0])
    for title, _, key in STEP_COLUMNS
)
STEP_NOTE: Final = (
    "Exposed: communication that computing does not overlap; No recv: the same without receiving from another stage."
)


class ViewSelection(Struct, frozen=True, dict=True):
    """Selection of a query within one worker.

    Attributes:
        run: The worker.
        zero: Time of the worker's clock at the zero of the profile's time line, ns since 1970.
        window: Selected range, ns since 1970: events that start in it count; None: no range.
        step: Number of the selected step; None: all.
        passing: Masks of the events that pass the filter, one per lane of the worker; None: no filter.
        lanes: These lanes.
    """

    run: Run
    zero: int
    window: tuple[int, int] | None = None
    step: int | None = None
    passing: Callable[[], list[Mask]] | None = None
    lanes: Sequence[Lane] = ()

    @property
    def steps(self) -> list[Step]:
        """The selected steps."""
        return [each for each in self.run.steps[1] if self.step is None or each.number == self.step]

    @property
    def timed(self) -> bool:
        """Whether a range or a step is selected."""
        return self.window is not None or self.step is not None

    @property
    def is_everything(self) -> bool:
        """Whether everything is selected."""
        return not self.timed and self.passing is None

    def work_mask(self, start: I64) -> Mask:
        """Mask of the selected device work, by start in ns since 1970."""
        found = self._in_window(start)
        if self.step is not None:
            inside = np.zeros(len(start), np.bool_)
            for each in self.steps:
                inside |= each.contains(start)
            found &= inside
        return found

    def host_mask(self, start: I64) -> Mask:
        """Mask of the selected host events, by start in ns since 1970; a step selects what starts within its slice."""
        found = self._in_window(start)
        timeline = self.run.timeline
        if self.step is not None and timeline is not None:
            marks = timeline.steps[self.run.mark_numbers == self.step]
            inside = np.zeros(len(start), np.bool_)
            for low, high in zip(timeline.start[marks].tolist(), timeline.end[marks].tolist(), strict=True):
                inside |= (start >= low) & (start < high)
            for each in self.steps if self.run.rank.iterations is not None and not len(timeline.steps) else ():
                inside |= each.contains(start)
            # without marks and iterations there is one step, which contains everything
            found &= inside if len(timeline.steps) or self.run.rank.iterations is not None else bool(self.steps)
        return found

    def _in_window(self, start: I64) -> Mask:
        if self.window is None:
            return np.ones(len(start), np.bool_)
        return np.asarray((start >= self.window[0]) & (start < self.window[1]))

    @cached_property
    def slices(self) -> Mask | None:
        """Mask of the slices that pass the filter; None: no filter."""
        return None if self.passing is None or self.run.timeline is None else np.concatenate(self.passing())

    @cached_property
    def kernels(self) -> Mask | None:
        """Mask of the kernels whose events pass the filter; None: no filter."""
        kernels, timeline = self.run.kernels, self.run.timeline
        if self.passing is None or kernels is None:
            return None
        found = np.zeros(len(kernels), np.bool_)
        if timeline is None:
            for lane, passing in zip(self.lanes, self.passing(), strict=True):
                found[lane["order"][passing]] = True
            return found
        assert self.slices is not None
        rows = timeline.work[self.slices[timeline.work]]
        places = rows_of_work(kernels, timeline, rows)
        found[places[places >= 0]] = True
        return found

    def kernel_rows(self, kernels: Kernels) -> I64:
        """Rows of the selected kernels, in file order."""
        chosen = np.ones(len(kernels), np.bool_) if not self.timed else self.work_mask(kernels.start)
        return np.flatnonzero(chosen if self.kernels is None else chosen & self.kernels)

    def moment(self, key: str, title: str, **more: Any) -> Column:
        """A column of times since 1970 that is shown relative to the time line's zero."""
        return Column(key, title, "time", epoch_ns=self.zero, **more)

    def moments(self, values: I64) -> I64:
        """Converts times since 1970 to the values of such a column."""
        return np.where(values == INT_MISSING, INT_MISSING, values - self.zero)

    def moment_fact(self, key: str, title: str, value: int | None) -> Fact:
        """A fact with such a time."""
        return Fact(key, title, None if value is None else value - self.zero, "time", epoch_ns=self.zero)


def of_workers(query: Query, compute: Callable[[ViewSelection], Answer], *, filtered: bool = True) -> Answer:
    """Answers a query for one worker; of several, concatenates tables and names the worker in facts.

    Args:
        query: The query.
        compute: Answers for one worker.
        filtered: Whether the view follows a filter; if not, a note states that.
    """
    runs = runs_of(query)
    names = _names(runs)
    step, text = query.step, query.filter

    lanes = query.profile.lanes
    # lanes of a partial profile differ from those of its workers
    counts = [len(lane) for lane in lanes] if text else []
    filtered &= all(run.worker.events == [counts[lane] for lane in run.worker.lanes if lane < len(counts)]
                    for run in runs if text)  # fmt: skip

    def selection_of(run: Run) -> ViewSelection:
        zero = run.worker.zero
        window = None if query.range is None else (query.range[0] + zero, query.range[1] + zero)
        if not text or not filtered:
            return ViewSelection(run, zero, window, step)
        ids = run.worker.lanes
        return ViewSelection(run, zero, window, step, lambda: [passes(query.session, text).lane(lane) for lane in ids],
                             [lanes[lane] for lane in ids])  # fmt: skip

    found = [(name, compute(selection_of(run))) for name, run in zip(names, runs, strict=True)]
    if text and not filtered:
        note = "These figures do not follow the filter."
        found = [(key, replace(answer, notes=(*answer.notes, note))) for key, answer in found]
    return stack_workers(found, [run.worker.group for run in runs])


def per_worker(*, filtered: bool = True) -> Callable[[Callable[[ViewSelection], Answer]], Callable[[Query], Answer]]:
    """Decorator that makes a view of a function that answers for one worker (`of_workers`)."""
    return lambda compute: lambda query: of_workers(query, compute, filtered=filtered)


def _names(runs: Sequence[Run]) -> list[str]:
    """Display names of workers: their ranks if these are distinct, else their keys."""
    ranks = [run.rank.rank for run in runs]
    if None in ranks or len(set(ranks)) < len(ranks):
        return [run.worker.key for run in runs]
    return [f"Rank {rank}" for rank in ranks]


class Sums:
    """Aggregates of rows grouped by codes.

    Attributes:
        index: Group index of each row.
        rows: First row of each group.
        count, known: Number of rows of each group, and of those with a value.
        total, least, most: Sum, minimum and maximum of the values of each group.
        order: Groups by falling total.
    """

    def __init__(self, values: I64, *codes: npt.NDArray[Any]) -> None:
        self.index, groups = distinct_together(*codes)
        self.rows = np.zeros(groups, np.int64)
        # assigned backwards, as the last assignment wins: the first row of each group
        self.rows[self.index[::-1]] = np.arange(len(values))[::-1]
        known = values != INT_MISSING
        kept, kept_index = (values, self.index) if known.all() else (values[known], self.index[known])
        self.count = np.bincount(self.index, minlength=groups).astype(np.int64)
        self.known = self.count if known.all() else np.bincount(kept_index, minlength=groups).astype(np.int64)
        self.total = np.zeros(groups, np.int64)
        np.add.at(self.total, kept_index, kept)
        self.least = np.full(groups, np.iinfo(np.int64).max)
        np.minimum.at(self.least, kept_index, kept)
        self.most = np.full(groups, INT_MISSING)
        np.maximum.at(self.most, kept_index, kept)
        self.least[self.most == INT_MISSING] = INT_MISSING
        self.order = np.argsort(-self.total, kind="stable")

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        """Mean of the known values of each group; NaN where none is known."""
        return np.where(self.known > 0, self.total / np.maximum(self.known, 1), np.nan)

    def added(self, values: I64) -> I64:
        """Sum of other values of each group; missing values count as 0."""
        found = np.zeros(len(self.rows), np.int64)
        np.add.at(found, self.index, np.where(values == INT_MISSING, 0, values))
        return found

    def time_columns(self) -> tuple[tuple[Column, ...], tuple[Any, ...]]:
        """Count, sum, minimum, mean, maximum and share of each group, by falling total."""
        order = self.order
        sum_of_all = int(self.total.sum())
        total = self.total[order]
        return TIMES, (
            self.count[order], total, self.least[order], self.mean[order], self.most[order],
            total / sum_of_all if sum_of_all else np.full(len(order), np.nan),
        )  # fmt: skip


#: Event columns to filter by for the texts that kernels are grouped by.
_FILTERED: Final = {"name": "name", "type": "type", "core": "accelerator"}
TIMES: Final = (
    Column("count", "Count", "count"), Column("total_us", "Total Time", "duration", bar=True),
    Column("min_us", "Min Time", "duration", spare=2), Column("avg_us", "Avg Time", "duration"),
    Column("max_us", "Max Time", "duration", spare=1), Column("share", "Ratio", "share"),
)  # fmt: skip


def of_operator(op: str, group: int = -1) -> Target:
    """Selects the slices of a worker's communication operator, by a table's name ("hcom_allReduce__1_0_1@group")."""
    return Target(condition=text_condition("name", op.partition("@")[0]), scope=Scope(group) if group >= 0 else None)


def by_texts(key: str, title: str, names: Sequence[tuple[str, str, Texts]], values: I64) -> Table:
    """A table of aggregates by texts.

    Args:
        key, title: Of the table.
        names: Key, title and texts of each column to group by.
        values: ns of each row.
    """
    sums = Sums(values, *(texts.codes for _, _, texts in names))
    columns, times = sums.time_columns()
    labels = [texts.values(sums.rows[sums.order]) for _, _, texts in names]
    heads = [Column(name, head, narrows=_FILTERED.get(name, "")) for name, head, _ in names]
    return Table(key, title, (*heads, *columns), (*labels, *times), word=names[0][0] if len(names) == 1 else "row")


def plain_column(name: str, texts: Texts) -> Column:
    """A column of a file, unchanged; ids are not treated as numbers."""
    is_text = not texts.plain or isinstance(texts.plain[0], str) or name.lower().endswith("id")
    return Column(name, name, "text" if is_text else "number")


def with_other_columns(table: Table, columns: Mapping[str, Any], rows: Any = slice(None)) -> Table:
    """Appends a file's undocumented columns, under their own names, to a table of its rows."""
    others = {key.removeprefix(OTHER): texts for key, texts in columns.items() if key.startswith(OTHER)}
    heads = (replace(plain_column(name, texts), spare=9) for name, texts in others.items())
    values = (texts.plain_values(rows) for texts in others.values())
    return replace(table, columns=(*table.columns, *heads), values=(*table.values, *values))


def lacks(key: str, text: str, needs: str, do: str) -> Missing:
    """A table that cannot be given: its key, a sentence, what it needs, and how to record it."""
    return Missing(key, needs, do, text)
