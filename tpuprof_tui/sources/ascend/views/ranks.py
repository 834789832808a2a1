"""Shared by the views: ranks of a query, rows of their tables that it selects, columns, merging of ranks' answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.analysis.events import frame_of as frame_of
from tpuprof_tui.analysis.events import rows_of_table
from tpuprof_tui.analysis.pivot import Figure, Frame, key, least, mean_known, most, rows, share, total
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.lane import ALL, Rows
from tpuprof_tui.model.table import Table as Records
from tpuprof_tui.views.answer import Answer, Column, Missing, Table, Target
from tpuprof_tui.views.workers import stack_workers

from ..records import OTHERS, STEP_COLUMNS, RecordedRank

I64 = npt.NDArray[np.int64]
#: Short header of each step column, so that a row fits into 80 cells; and the order in which columns are dropped if it
#: does not.
STEP_HEADS: Final = {
    "computing_us": ("Comp.", 0), "communication_us": ("Comm.", 3), "overlapped_us": ("Overlap", 4),
    "communication_not_overlapped_us": ("Exposed", 0), "stage_us": ("Stage", 2), "bubble_us": ("Bubble", 6),
    "communication_not_overlapped_exclude_receive_us": ("No recv", 7), "preparing_us": ("Prep.", 5),
}  # fmt: skip
STEP_TIMES: Final = tuple(
    Column(
        key, title, "duration", drop_first=STEP_HEADS.get(key, ("", 0))[1], short_title=STEP_HEADS.get(key, ("", 0))[0]
    )
    for title, _, key in STEP_COLUMNS
)
STEP_NOTE: Final = (
    "Exposed: communication that computing does not overlap; No recv: the same without receiving from another stage."
)
#: Count, sum, least, mean, most and share of the column ``duration``.
TIMES: Final[tuple[tuple[Column, Figure], ...]] = (
    (Column("count", "Count", "count"), rows),
    (Column("total_us", "Total Time", "duration", bar=True), total("duration")),
    (Column("min_us", "Min Time", "duration", drop_first=2), least("duration")),
    (Column("avg_us", "Avg Time", "duration"), mean_known("duration")),
    (Column("max_us", "Max Time", "duration", drop_first=1), most("duration")),
    (Column("share", "Ratio", "share"), share("duration")),
)  # fmt: skip
#: Longest text that is exact as a number.
_EXACT: Final = 15


def ranks_of(query: Query) -> list[RecordedRank]:
    """The ranks that a query covers."""
    group, workers = query.top_group, query.profile.workers or ()
    return [worker.recorded for worker in workers if group < 0 or worker.group == group]


def per_rank(compute: Callable[[Query, RecordedRank], Answer]) -> Callable[[Query], Answer]:
    """Makes a view of a function that answers for one rank, whose group is the scope."""

    def view(query: Query) -> Answer:
        ranks = ranks_of(query)
        numbers = {rank.rank for rank in ranks}
        names = [rank.key if None in numbers or len(numbers) < len(ranks) else f"Rank {rank.rank}" for rank in ranks]
        answers = [compute(replace(query, scope=Scope(rank.group), baseline=None), rank) for rank in ranks]
        return stack_workers(list(zip(names, answers, strict=True)), [rank.group for rank in ranks])

    return view


def not_narrowed(query: Query, what: str, by: Sequence[str] = ("range", "step", "filter")) -> tuple[str, ...]:
    """The sentence that something does not follow a selection; empty if the query has none of the parts in ``by``."""
    parts = {"range": query.range is not None, "step": query.step is not None, "filter": bool(query.condition)}
    found = [part for part in by if parts[part]]
    return (f"{what}: not narrowed by {' or '.join(found)}.",) if found else ()


# -- rows of tables


def selected_rows(query: Query, table: Records, time: str = "start") -> I64:
    """Rows of a table that start in the range, belong to the step, and are of events that pass the filter."""
    return rows_of_table(query.session, table, query.range, query.condition, query.step, time)


def lanes_of(query: Query, *kinds: str) -> list[int]:
    """Numbers of the lanes of some kinds in the scope."""
    lanes = query.profile.lanes
    return [number for number in query.session.lanes_in(query.scope) if lanes[number].kind in kinds]


# -- columns


def moment(rank: RecordedRank, key: str, title: str, **more: Any) -> Column:
    """A column of times on the profile's time line, which programs get as times since 1970."""
    return Column(key, title, "time", epoch_ns=rank.zero, **more)


def descending(values: npt.NDArray[Any]) -> I64:
    """Rows by falling value, equal ones in their order; missing ones last."""
    return np.argsort(-values, kind="stable")


def by_texts(name: str, title: str, heads: Sequence[Column], frame: Frame) -> Table:
    """A table of times by the texts of columns, which have the keys of the frame's columns."""
    keys = [head.key for head in heads]
    figures = [*((head, key(head.key, None)) for head in heads), *TIMES]
    return Table.of_pivot(name, title, frame, keys, figures, ("-total_us",), word=keys[0] if len(keys) == 1 else "row")


def coded(values: Iterable[Any]) -> tuple[I64, list[Any]]:
    """Codes of values in order of first use, and the distinct values."""
    codes: dict[Any, int] = {}
    found = np.array([codes.setdefault(value, len(codes)) for value in values], np.int64)
    return found, list(codes)


def plain(texts: Sequence[str | None]) -> list[Any]:
    """Values of texts: as integers if all are, else as floats if all are, else as texts; exact numbers only."""
    for kind in (int, float) if all(text is None or len(text) <= _EXACT for text in texts) else ():
        with suppress(ValueError):
            return [None if text is None else kind(text) for text in texts]
    return list(texts)


def as_in_file(table: Records, rows: Rows = ALL, *, drop_first: int = 0) -> list[tuple[Column, list[Any]]]:
    """Columns of a file that no view knows, under their own names; ids are not treated as numbers."""
    found = []
    for column in table.schema:
        if column.group == OTHERS:
            texts = plain(tuple(table.texts[column.key]))
            is_text = not texts or isinstance(texts[0], str) or column.title.lower().endswith("id")
            head = Column(column.title, column.title, "text" if is_text else "number", drop_first=drop_first)
            values = (*texts, None)
            found.append((head, [values[code] for code in table.take(column.key, rows).tolist()]))
    return found


def as_counted(key: str, title: str, heads: Mapping[str, Column], statistic: Records) -> Table:
    """A table that the exporter counted, longest total first, with the file's further columns; heads by column."""
    order = descending(statistic["total"])
    values: dict[str, Any] = {name: statistic.values(name, order) for name in heads if name in statistic}
    values["count"] = [None if count != count else int(count) for count in statistic["count"][order].tolist()]
    times = np.where(values["total"] == INT_MISSING, np.nan, values["total"])
    values["share"] = times / (np.nansum(times) or np.nan)
    table = Table(key, title, tuple(heads.values()), tuple(values[name] for name in heads))
    return with_other_columns(table, statistic, order)


def with_other_columns(table: Table, records: Records, rows: Rows = ALL) -> Table:
    """Appends a file's undocumented columns to a table of its rows."""
    others = as_in_file(records, rows, drop_first=9)
    return replace(table, columns=(*table.columns, *(head for head, _ in others)),
                   values=(*table.values, *(values for _, values in others)))  # fmt: skip


def of_operator(op: str, group: int = -1) -> Target:
    """Selects the slices of a rank's communication operator, by a table's name ("hcom_allReduce__1_0_1@group")."""
    return Target(condition=text_condition("name", op.partition("@")[0]), scope=Scope(group) if group >= 0 else None)


def lacks(key: str, text: str, needs: str, do: str) -> Missing:
    """A table that cannot be given: its key, a sentence, what it needs, and how to record it."""
    return Missing(key, needs, do, text)


@per_rank
def other_tables(query: Query, rank: RecordedRank) -> Answer:
    """Other tables: files of the exporter that no other view shows completely, as they are."""
    files = [table for table in query.profile.tables if table.group == rank.group and table.name.endswith(".csv")]
    tables = []
    for file in files:
        columns = as_in_file(file)
        name = file.name.removesuffix(".csv")
        tables.append(Table(name, name, tuple(head for head, _ in columns), tuple(values for _, values in columns)))
    heads = (Column("file", "File"), Column("columns", "Columns", "count"), Column("rows", "Rows", "count"))
    names = Table.of_rows("files", "Files", heads, [(file.file, len(file.schema), len(file)) for file in files])
    return Answer(tables=(names, *tables), source=files[0].file if files else "")
