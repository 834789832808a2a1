"""Cluster view: comparison of ranks by steps, communication and links; slow and late ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.views.answer import Answer, Column, Missing, Table, Target
from tpuprof_tui.views.query import Query

from ..read.analysed import StepRow
from ..read.communication import CommunicationData, one_clock
from ..read.profile import AscendProfile
from ..read.rank import STEP_COLUMNS
from .communication import LINK, PARTS, TO_WHOM, times
from .run import runs_of
from .tables import STEP_NOTE, STEP_TIMES, WHOLE, lacks, of_operator

_COMPARED: Final = ("computing_us", "communication_not_overlapped_us", "free_us")
_INDEX: Final = {key: index for index, (_, _, key) in enumerate(STEP_COLUMNS)}


def cluster(query: Query) -> Answer:
    """The cluster view."""
    profile = query.profile
    if not isinstance(profile, AscendProfile):
        return Answer()
    analysed = profile.analysed
    steps, sources, missing = list(analysed.steps), list(analysed.sources), list[Missing]()
    found = [] if analysed.communication is None else [("", analysed.communication)]
    step, part = query.step, query.range is not None or bool(query.filter)
    ranked = [run for run in runs_of(query) if run.rank.rank is not None]
    if not steps:
        for run in ranked if len(ranked) > 1 else []:
            recorded = run.rank.recorded_steps
            rows = recorded[1] if recorded is not None else [(each.label, each.values) for each in run.steps[1]]
            steps += [StepRow("rank", str(run.rank.rank), label, values) for label, values in rows]
            sources.append(recorded[0] if recorded is not None else run.steps[0])
    if not found and len(ranked) > 1:
        found = [(str(run.rank.rank), run.rank.communication) for run in ranked if run.rank.communication is not None]
        sources += [each.file for _, each in found]
    if not steps and not found:
        return Answer(missing=(lacks("steps", "There are no ranks to compare.", "two or more ranks",
                                     "Name the folder that holds the folders of all ranks"),))  # fmt: skip
    if step is not None:
        steps = [each for each in steps if each.step == str(step)]
        found = [(rank, each.of_steps((str(step),))) for rank, each in found]
    operations = [(each.kind, each.step, each.op, rank or each.rank, each) for rank, part in found
                  for each in part.operations if not each.is_total]  # fmt: skip
    # late ranks are the first table
    groups = {str(run.rank.rank): run.worker.group for run in ranked}
    clocks = {rank: part.clock for rank, part in found}
    tables = [*([_late_ranks(operations, clocks)] if found else []), _slow(steps), _steps(steps)]
    if found:
        tables += [_operations(operations), _links(found)]
    else:
        missing.append(lacks("operations", "What the ranks communicated is not known.",
                             "communication.json of the ranks",
                             "profiler_level=Level1, or msprof --task-time=l1"))  # fmt: skip
    lead = [replace(each, target=partial(_target, each, groups)) for each in tables]
    # the matrix is of classes of operators, which are no slices: no target
    lead += [_matrix(found)] if found else []
    return Answer(tables=tuple(lead), notes=(WHOLE,) if part else (), missing=tuple(missing),
                  source=", ".join(dict.fromkeys(filter(None, sources))))  # fmt: skip


def _target(table: Table, groups: Mapping[str, int], row: int) -> Target | None:
    """Selects a rank, or the slices of an operator of it."""
    values = dict(zip((column.key for column in table.columns), table.row(row), strict=True))
    group = groups.get(str(values.get("rank", values.get("index"))), -1)
    op = values.get("op")
    return of_operator(op, group) if op else Target(scope=Scope(group)) if group >= 0 else None


def _steps(rows: Sequence[StepRow]) -> Table:
    columns = (
        Column("kind", "Type", spare=8), Column("index", "Rank"), Column("step", "Step"),
        *STEP_TIMES,
    )  # fmt: skip
    table_rows = [(each.kind, each.index, each.step, *each.values) for each in rows]
    return Table.of_rows("steps", "Steps", columns, table_rows, notes=(STEP_NOTE,), one_unit=True)


def _operations(rows: Iterable[tuple[str, str, str, str, Any]]) -> Table:
    columns = (Column("group", "Group", spare=2), Column("step", "Step", spare=1), Column("op", "Operator"),
               Column("rank", "Rank"), *PARTS)  # fmt: skip
    table_rows = [(group, step, op, rank, *times(each)) for group, step, op, rank, each in rows]
    return Table.of_rows("operations", "Communication operators", columns, table_rows)


def _links(found: Sequence[tuple[str, CommunicationData]]) -> Table:
    """Bandwidth of each rank and link: sum of sizes / sum of transit times."""
    sums: dict[tuple[str, str, str], list[float]] = {}
    for rank, data in found:
        for each in data.transfers:
            if not each.is_total:
                sums_of_link = sums.setdefault((each.step, rank or each.rank, each.link), [0.0, 0.0])
                sums_of_link[0] += each.size_mb
                sums_of_link[1] += each.transit or 0.0
    columns = (Column("step", "Step", spare=1), Column("rank", "Rank"), *LINK)
    rows = [(*key, size, time, size / time * 1_000_000 if time else None) for key, (size, time) in sums.items()]
    return Table.of_rows("links", "Links", columns, rows)


def _matrix(found: Sequence[tuple[str, CommunicationData]]) -> Table:
    columns = (Column("group", "Group", spare=2), Column("step", "Step", spare=1), Column("op", "Operator"), *TO_WHOM,
               *LINK)  # fmt: skip
    rows = [(each.kind, each.step, each.op, each.src, each.dst, each.link, each.size_mb, each.transit, each.bandwidth)
            for _, data in found for each in data.pairs if not each.is_total]  # fmt: skip
    return Table.of_rows("matrix", "From rank to rank", columns, rows)


def _slow(steps: Sequence[StepRow]) -> Table:
    """For each step the rank with the longest computing, exposed communication and free time."""
    rows = []
    for step in dict.fromkeys(each.step for each in steps):
        of_step = [each for each in steps if each.step == step and each.kind == "rank"]
        for title, _, key in (STEP_COLUMNS[_INDEX[key]] for key in _COMPARED):
            values = [(value, each.index) for each in of_step if (value := each.values[_INDEX[key]]) is not None]
            if len({index for _, index in values}) < 2:
                continue
            value, rank = max(values, key=lambda each: each[0])
            mean = sum(each for each, _ in values) / len(values)
            rows.append((step, key, title, rank, value, mean, value / mean - 1 if mean else None))
    columns = (Column("step", "Step", spare=1), Column("column", "Column", shown=False),
               Column("what", "What"), Column("rank", "Rank"),
               Column("value_us", "Its time", "duration"), Column("mean_us", "Mean", "duration"),
               Column("excess_share", "Above the mean", "share"))  # fmt: skip
    return Table.of_rows("slow", "Slow ranks", columns, rows)


def _late_ranks(operations: Sequence[tuple[str, str, str, str, Any]], clocks: Mapping[str, float | None]) -> Table:
    """For each operator the late rank: the one that starts last if the ranks share a clock, else that waited least."""
    of_op: dict[tuple[str, str, str], list[tuple[str, Any]]] = {}
    for group, step, op, rank, each in operations:
        of_op.setdefault((group, step, op), []).append((rank, each))
    rows = []
    for (_, step, op), each in of_op.items():
        timed = [(rank, data) for rank, data in each if data.wait is not None]
        if len({rank for rank, _ in timed}) < 2:  # recordings of one rank do not wait for each other
            continue
        rank, last = min(timed, key=lambda pair: pair[1].wait)
        delay = None
        if one_clock([clocks.get(rank) for rank, _ in timed]) and None not in [data.start for _, data in timed]:
            rank, last = max(timed, key=lambda pair: pair[1].start)
            delay = last.start - min(data.start for _, data in timed)
        others_wait = max(data.wait for other, data in timed if other != rank)
        rows.append((step, op, rank, last.start, delay, last.wait, others_wait))
    rows.sort(key=lambda row: -(row[6] - row[5] if row[4] is None else row[4]))
    # starts are times since 1970, as in the files
    columns = (Column("step", "Step", spare=1), Column("op", "Operator"), Column("rank", "Late rank"),
               Column("start_us", "Start", "time", epoch_ns=0, shown=False),
               Column("late_us", "Began later", "duration"), Column("wait_us", "Waited", "duration"),
               Column("others_wait_us", "The others waited", "duration", bar=True))  # fmt: skip
    return Table.of_rows("late", "Late ranks", columns, rows)
