"""What the views have in common: what is asked of a worker, columns of times, sums by codes, answers of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.filter_masks import passing as passes
from tpuprof_tui.analysis.selecting.grouping import text_condition
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.groups import distinct_together
from tpuprof_tui.model import INT_MISSING, Lane
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table, Target
from tpuprof_tui.views.query import Query
from tpuprof_tui.views.workers import joined

from ..read.csv_table import Texts
from ..read.kernels import Kernels, rows_of_work
from ..read.rank import OTHER, STEP_COLUMNS
from .run import Run, Step, runs_of

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
WHOLE: Final = "These figures are of the whole recording."
#: Of each column of steps its header for people, so that all of a step stands in 80 cells, and what leaves first where
#: there is no room even so.
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


class Asked(Struct, frozen=True, dict=True):
    """What a query asks of one worker.

    Attributes:
        run: The worker.
        zero: The zero of the profile's time line, ns since 1970.
        window: Start and end, ns since 1970: what starts in it counts; None: everything does.
        step: Number of the step that is asked about; None: all are.
        passing: Which events of each of its lanes pass the filter, lane by lane; None: there is none.
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
        """The steps that are asked about."""
        return [each for each in self.run.steps[1] if self.step is None or each.number == self.step]

    @property
    def timed(self) -> bool:
        """Whether a part of the recording is asked about: a range of it, or a step."""
        return self.window is not None or self.step is not None

    @property
    def whole(self) -> bool:
        """Whether all of the worker is asked about."""
        return not self.timed and self.passing is None

    def among(self, start: I64) -> Mask:
        """Which of some device work, by start in ns since 1970, is asked about."""
        found = self._in_window(start)
        if self.step is not None:
            inside = np.zeros(len(start), np.bool_)
            for each in self.steps:
                inside |= each.holds(start)
            found &= inside
        return found

    def on_host(self, start: I64) -> Mask:
        """Which of what the host did, by start in ns since 1970, is asked about: a step is what its slice covers."""
        found = self._in_window(start)
        timeline = self.run.timeline
        if self.step is not None and timeline is not None:
            marks = timeline.steps[self.run.mark_numbers == self.step]
            inside = np.zeros(len(start), np.bool_)
            for low, high in zip(timeline.start[marks].tolist(), timeline.end[marks].tolist(), strict=True):
                inside |= (start >= low) & (start < high)
            # without marks there is one step, which holds all
            found &= inside if len(timeline.steps) else bool(self.steps)
        return found

    def _in_window(self, start: I64) -> Mask:
        if self.window is None:
            return np.ones(len(start), np.bool_)
        return np.asarray((start >= self.window[0]) & (start < self.window[1]))

    @cached_property
    def slices(self) -> Mask | None:
        """Which slices of the timeline pass the filter; None: all do."""
        return None if self.passing is None or self.run.timeline is None else np.concatenate(self.passing())

    @cached_property
    def kernels(self) -> Mask | None:
        """Which kernels pass the filter, by the events that they are; None: all do."""
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

    def kernels_asked(self, kernels: Kernels) -> I64:
        """Rows of the kernels that are asked about, in the order of the file."""
        chosen = np.ones(len(kernels), np.bool_) if not self.timed else self.among(kernels.start)
        return np.flatnonzero(chosen if self.kernels is None else chosen & self.kernels)

    def moment(self, key: str, title: str, **more: Any) -> Column:
        """A column of times since 1970, which people are shown as the time line has them."""
        return Column(key, title, "time", epoch_ns=self.zero, **more)

    def moments(self, values: I64) -> I64:
        """Times since 1970 as such a column holds them."""
        return np.where(values == INT_MISSING, INT_MISSING, values - self.zero)

    def moment_fact(self, key: str, title: str, value: int | None) -> Fact:
        """One such time."""
        return Fact(key, title, None if value is None else value - self.zero, "time", epoch_ns=self.zero)


def of_workers(query: Query, compute: Callable[[Asked], Answer], *, filtered: bool = True) -> Answer:
    """What a view says of one worker; of several, their rows one after the other and figures that name the worker.

    Args:
        query: What is asked about.
        compute: What it says of one.
        filtered: Whether it follows a filter; else it says so.
    """
    zero = query.profile.epoch_ns
    window = None if query.range is None else (query.range[0] + zero, query.range[1] + zero)
    runs = runs_of(query)
    names = _names(runs)
    step, text = query.step, query.filter

    lanes = query.profile.lanes
    # a part of a profile has other lanes than its workers know
    counts = [len(lane) for lane in lanes] if text else []
    filtered &= all(run.worker.events == [counts[lane] for lane in run.worker.lanes if lane < len(counts)]
                    for run in runs if text)  # fmt: skip

    def asked(run: Run) -> Asked:
        if not text or not filtered:
            return Asked(run, zero, window, step)
        own = run.worker.lanes
        return Asked(run, zero, window, step, lambda: [passes(query.session, text).lane(lane) for lane in own],
                     [lanes[lane] for lane in own])  # fmt: skip

    found = [(name, compute(asked(run))) for name, run in zip(names, runs, strict=True)]
    if text and not filtered:
        note = "These figures do not follow the filter."
        found = [(key, replace(answer, notes=(*answer.notes, note))) for key, answer in found]
    return joined(found, [run.worker.group for run in runs])


def of_each_worker(*, filtered: bool = True) -> Callable[[Callable[[Asked], Answer]], Callable[[Query], Answer]]:
    """Makes a view of what is said of one worker (``of_workers``)."""
    return lambda compute: lambda query: of_workers(query, compute, filtered=filtered)


def _names(runs: Sequence[Run]) -> list[str]:
    """What workers are called beside each other: by their ranks where these tell them apart."""
    ranks = [run.rank.rank for run in runs]
    if None in ranks or len(set(ranks)) < len(ranks):
        return [run.worker.key for run in runs]
    return [f"Rank {rank}" for rank in ranks]


class Sums:
    """Rows grouped by codes.

    Attributes:
        rows: A row of each group.
        count, total, least, most: Of each group: rows, and of their values the sum, the smallest and the largest.
        order: Groups by falling total.
    """

    def __init__(self, values: I64, *codes: npt.NDArray[Any]) -> None:
        self.place, groups = distinct_together(*codes)
        self.rows = np.zeros(groups, np.int64)
        # of several rows of a group the last that is written stays: the first one
        self.rows[self.place[::-1]] = np.arange(len(values))[::-1]
        known = values != INT_MISSING
        kept, place = (values, self.place) if known.all() else (values[known], self.place[known])
        self.count = np.bincount(self.place, minlength=groups).astype(np.int64)
        self.total = np.zeros(groups, np.int64)
        np.add.at(self.total, place, kept)
        self.least = np.full(groups, np.iinfo(np.int64).max)
        np.minimum.at(self.least, place, kept)
        self.most = np.full(groups, INT_MISSING)
        np.maximum.at(self.most, place, kept)
        self.least[self.most == INT_MISSING] = INT_MISSING
        self.order = np.argsort(-self.total, kind="stable")

    def added(self, values: I64) -> I64:
        """Sum of other values of each group, what is missing counting nothing."""
        found = np.zeros(len(self.rows), np.int64)
        np.add.at(found, self.place, np.where(values == INT_MISSING, 0, values))
        return found

    def time_columns(self) -> tuple[tuple[Column, ...], tuple[Any, ...]]:
        """Count, sum, smallest, mean, largest and share of each group, in order."""
        order = self.order
        whole = int(self.total.sum())
        total = self.total[order]
        return TIMES, (
            self.count[order], total, self.least[order], total / np.maximum(self.count[order], 1), self.most[order],
            total / whole if whole else np.full(len(order), np.nan),
        )  # fmt: skip


#: Columns of the events that hold what kernels are grouped by.
_FILTERED: Final = {"name": "name", "type": "type", "core": "accelerator"}
TIMES: Final = (
    Column("count", "Count", "count"), Column("total_us", "Total Time", "duration", bar=True),
    Column("min_us", "Min Time", "duration", spare=2), Column("avg_us", "Avg Time", "duration"),
    Column("max_us", "Max Time", "duration", spare=1), Column("share", "Ratio", "share"),
)  # fmt: skip


def of_operator(op: str, group: int = -1) -> Target:
    """The slices of a communication operator, by its name in a table ("hcom_allReduce__1_0_1@group"), of one worker."""
    return Target(condition=text_condition("name", op.partition("@")[0]), scope=Scope(group) if group >= 0 else None)


def by_texts(key: str, title: str, names: Sequence[tuple[str, str, Texts]], values: I64) -> Table:
    """A table of sums by texts: their columns, and of each group its times.

    Args:
        key, title: Of the table.
        names: Key, title and texts of each column that it is grouped by.
        values: ns of each row.
    """
    sums = Sums(values, *(texts.codes for _, _, texts in names))
    columns, times = sums.time_columns()
    told = [texts.values(sums.rows[sums.order]) for _, _, texts in names]
    heads = [Column(name, head, narrows=_FILTERED.get(name, "")) for name, head, _ in names]
    return Table(key, title, (*heads, *columns), (*told, *times), word=names[0][0] if len(names) == 1 else "row")


def plain_column(name: str, texts: Texts) -> Column:
    """A column of a file as it stands; numbers of things are no numbers."""
    is_text = not texts.plain or isinstance(texts.plain[0], str) or name.lower().endswith("id")
    return Column(name, name, "text" if is_text else "number")


def with_others(table: Table, told: Mapping[str, Any], rows: Any = slice(None)) -> Table:
    """A table of the rows of a file, with those of its columns that are not known at the end, by their own names."""
    others = {key.removeprefix(OTHER): texts for key, texts in told.items() if key.startswith(OTHER)}
    heads = (replace(plain_column(name, texts), spare=9) for name, texts in others.items())
    values = (texts.plain_values(rows) for texts in others.values())
    return replace(table, columns=(*table.columns, *heads), values=(*table.values, *values))


def lacks(key: str, told: str, needs: str, do: str) -> Missing:
    """A table that cannot be given: its key, a sentence for people, what it needs, and what to type."""
    return Missing(key, needs, do, told)
