"""Cluster view: comparison of ranks by steps, communication and links; slow and late ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.views.answer import Answer, Column, Missing, Table, Target

from ..recorded import STEP_COLUMNS, one_clock, step_records
from .communication import LINK, LINK_KEYS, PARTS, TIMES, TO_WHOM, of_ranks
from .figures import figures_of
from .ranks import STEP_NOTE, STEP_TIMES, lacks, not_narrowed, of_operator, ranks_of

_COMPARED: Final = ("computing_us", "communication_not_overlapped_us", "free_us")
#: Rows: kind, rank(s), step, and times in the order of ``STEP_COLUMNS``; and step, group, operator, rank, start, times.
_Row = tuple[Any, ...]


def cluster(query: Query) -> Answer:
    """The cluster view."""
    profile, missing = query.profile, list[Missing]()
    sources = list(dict.fromkeys(table.file for table in profile.tables if table.group < 0))
    table = profile.table("cluster_steps")
    steps: list[_Row] = [] if table is None else step_records(table, "kind", "index", "step")
    steps = [row for row in steps if query.step is None or row[2] == str(query.step)]
    ranked = [rank for rank in ranks_of(query) if rank.rank is not None]
    for rank in ranked if len(ranked) > 1 and table is None else []:
        figures, recorded = figures_of(query, rank), profile.table("recorded_steps", rank.group)
        narrowed = figures.steps_are_computed and (query.range is not None or bool(query.filter))
        rows = [(step.label, step.times) for step in figures.steps] if recorded is None or narrowed else (
            figures.recorded_steps)  # fmt: skip
        steps += [("rank", str(rank.rank), label, *values) for label, values in rows]
        sources.append(figures.steps_file if recorded is None or narrowed else recorded.file)
    groups = {str(rank.rank): rank.group for rank in ranked}
    shared = profile.table("operations") is not None
    communicating = [] if shared or len(ranked) < 2 else ranked
    communicates = shared or any(profile.table("operations", rank.group) is not None for rank in communicating)
    sources += [table.file for rank in communicating if (table := profile.table("operations", rank.group)) is not None]
    compared = table is not None or any(figures_of(query, rank).every_step for rank in ranked if len(ranked) > 1)
    if not compared and not communicates:
        return Answer(missing=(lacks("steps", "There are no ranks to compare.", "two or more ranks",
                                     "Name the folder that holds the folders of all ranks"),))  # fmt: skip

    def rows_of(name: str, *keys: str) -> list[_Row]:
        """Step, kind, operator and rank, and some columns, of the rows of a table."""
        return [(*row[:3], rank if isinstance(rank, str) else str(rank.rank), *row[3:])
                for rank, row in of_ranks(query, communicating, name, *keys)]  # fmt: skip

    # late ranks are the first table
    zeros = {str(rank.rank): rank.zero for rank in ranked}
    clocks = {str(rank.rank): rank.clock for rank in ranked}
    tables = [_slow(steps), _steps(steps)]
    by = ("range", "filter")
    notes = [*not_narrowed(query, "Steps, as msprof-analyze wrote them", by if table is not None else ())]
    if communicates:
        operations = rows_of("operations", "start", *TIMES)
        tables = [_late_ranks(operations, {} if shared else clocks, {} if shared else zeros), *tables,
                  _operations(operations), _links(rows_of("transfers", *LINK_KEYS[:3]))]  # fmt: skip
        notes += not_narrowed(query, "Communication, as msprof-analyze wrote it" if shared else "From rank to rank", by)
    else:
        missing.append(lacks("operations", "What the ranks communicated is not known.",
                             "communication.json of the ranks",
                             "profiler_level=Level1, or msprof --task-time=l1"))  # fmt: skip
    tables = [replace(each, target=partial(_target, each, groups)) for each in tables]
    # the matrix is of classes of operators, which are no slices: no target
    pairs = [(*row[:3], *row[4:]) for row in rows_of("pairs", "src", "dst", *LINK_KEYS)]
    tables += [_matrix(pairs)] if communicates else []
    return Answer(tables=tuple(tables), notes=tuple(notes), missing=tuple(missing),
                  source=", ".join(dict.fromkeys(filter(None, sources))))  # fmt: skip


def _target(table: Table, groups: Mapping[str, int], row: int) -> Target | None:
    values = dict(zip((column.key for column in table.columns), table.row(row), strict=True))
    group = groups.get(str(values.get("rank", values.get("index"))), -1)
    op = values.get("op")
    return of_operator(op, group) if op else Target(scope=Scope(group)) if group >= 0 else None


def _steps(rows: Sequence[_Row]) -> Table:
    columns = (Column("kind", "Type", spare=8), Column("index", "Rank"), Column("step", "Step"), *STEP_TIMES)
    return Table.of_rows("steps", "Steps", columns, rows, notes=(STEP_NOTE,), one_unit=True)


def _operations(rows: Sequence[_Row]) -> Table:
    columns = (Column("group", "Group", spare=2), Column("step", "Step", spare=1), Column("op", "Operator"),
               Column("rank", "Rank"), *PARTS)  # fmt: skip
    return Table.of_rows("operations", "Communication operators", columns,
                         [(kind, step, op, rank, *times) for step, kind, op, rank, _, *times in rows])  # fmt: skip


def _links(rows: Sequence[_Row]) -> Table:
    sums: dict[tuple[str, str, str], list[float]] = {}
    for step, _, _, rank, link, size, transit in rows:
        sums_of_link = sums.setdefault((step, rank, link), [0.0, 0.0])
        sums_of_link[0] += size
        sums_of_link[1] += transit or 0.0
    columns = (Column("step", "Step", spare=1), Column("rank", "Rank"), *LINK)
    listed = [(*key, size, time, size / time * 1_000_000 if time else None) for key, (size, time) in sums.items()]
    return Table.of_rows("links", "Links", columns, listed)


def _matrix(rows: Sequence[_Row]) -> Table:
    columns = (Column("group", "Group", spare=2), Column("step", "Step", spare=1), Column("op", "Operator"), *TO_WHOM,
               *LINK)  # fmt: skip
    return Table.of_rows(
        "matrix", "From rank to rank", columns, [(kind, step, op, *values) for step, kind, op, *values in rows]
    )


def _slow(steps: Sequence[_Row]) -> Table:
    rows = []
    for step in dict.fromkeys(row[2] for row in steps):
        of_step = [row for row in steps if row[2] == step and row[0] == "rank"]
        for index, (title, _, key) in enumerate(STEP_COLUMNS, 3):
            values = [(row[index], row[1]) for row in of_step if row[index] is not None]
            if key not in _COMPARED or len({rank for _, rank in values}) < 2:
                continue
            value, rank = max(values, key=lambda pair: pair[0])
            mean = sum(value for value, _ in values) / len(values)
            rows.append((step, key, title, rank, value, mean, value / mean - 1 if mean else None))
    columns = (Column("step", "Step", spare=1), Column("column", "Column", shown=False),
               Column("what", "What"), Column("rank", "Rank"),
               Column("value_us", "Its time", "duration"), Column("mean_us", "Mean", "duration"),
               Column("excess_share", "Above the mean", "share"))  # fmt: skip
    return Table.of_rows("slow", "Slow ranks", columns, rows)


def _late_ranks(
    operations: Sequence[_Row], clocks: Mapping[str, float | None], zeros: Mapping[str, int]
) -> Table:  # fmt: skip
    """For each operator the late rank: the one that starts last if the ranks share a clock, else that waited least."""
    of_op: dict[tuple[str, str, str], list[tuple[str, int | None, float]]] = {}
    for step, kind, op, rank, start, _, _, wait, *_ in operations:
        # recordings of one rank do not wait for each other
        of_op.setdefault((step, kind, op), [])
        if wait is not None:
            # starts are times since 1970, as in the files
            of_op[step, kind, op].append((rank, None if start is None else start + zeros.get(rank, 0), wait))
    rows = []
    for (step, _, op), timed in of_op.items():
        if len({rank for rank, *_ in timed}) < 2:
            continue
        late, begun, waited = min(timed, key=lambda each: each[2])
        delay = None
        if one_clock([clocks.get(rank) for rank, *_ in timed]) and None not in [start for _, start, _ in timed]:
            late, begun, waited = max(timed, key=lambda each: each[1] or 0)
            delay = (begun or 0) - min(start or 0 for _, start, _ in timed)
        others_wait = max(wait for other, _, wait in timed if other != late)
        rows.append((step, op, late, begun, delay, waited, others_wait))
    rows.sort(key=lambda row: -(row[6] - row[5] if row[4] is None else row[4]))
    columns = (Column("step", "Step", spare=1), Column("op", "Operator"), Column("rank", "Late rank"),
               Column("start_us", "Start", "time", epoch_ns=0, shown=False),
               Column("late_us", "Began later", "duration"), Column("wait_us", "Waited", "duration"),
               Column("others_wait_us", "The others waited", "duration", bar=True))  # fmt: skip
    return Table.of_rows("late", "Late ranks", columns, rows)
