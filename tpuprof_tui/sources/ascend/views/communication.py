"""Communication of a rank (operators, links, packets, transfers between ranks), and ranks side by side (cluster)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.events import rows_of_table
from tpuprof_tui.analysis.pivot import Figure, Frame, key, least, pivot, total
from tpuprof_tui.analysis.pivot import rows as count
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table, Target

from ..records import STEP_COLUMNS, RecordedRank, is_total, late_rank, one_clock, records, step_records, waits_of
from .figures import figures_of
from .ranks import STEP_NOTE, STEP_TIMES, coded, lacks, lanes_of, moment, not_narrowed, of_operator, per_rank, ranks_of
from .recipes import causes, experts

_LEVEL1: Final = ("profiler_level=Level1 on more than one card; of an output of msprof: msprof --analyze=on "
                  "--rule=communication,communication_matrix --output=PROF_XXX")  # fmt: skip
_NEEDS: Final = "what each communication operator moved (Level1)"
_PARTS: Final = (
    Column("elapse_us", "Elapse", "duration", bar=True), Column("transit_us", "Transit", "duration"),
    Column("wait_us", "Wait", "duration"), Column("synchronization_us", "Synchronization", "duration"),
    Column("idle_us", "Idle", "duration"),
)  # fmt: skip
#: Columns of ``operations`` with the times of ``_PARTS``, and of the three tables with a link's figures.
_TIMES: Final = ("elapse", "transit", "wait", "synchronization", "idle")
_LINK_KEYS: Final = ("link", "size_mb", "transit", "bandwidth")
_OF: Final = (Column("step", "Step", drop_first=3), Column("kind", "Kind", drop_first=2), Column("op", "Operator"))
_OF_KEYS: Final = ("step", "kind", "op")
_LINK: Final = (
    Column("link", "Link"), Column("size_mb", "Size", "number", "MB", short_title="MB"),
    Column("transit_us", "Transit", "duration"),
    Column("bandwidth_gb_s", "Bandwidth", "number", "GB/s", short_title="GB/s"),
)  # fmt: skip
_TO_WHOM: Final = (Column("src", "From"), Column("dst", "To"))
_EVERY: Final = "Links do not add up: what HCCS moved is in the row of the copying link too."
_RATIOS: Final = ("wait_ratio", "synchronization_ratio")
#: Times of steps in which ranks are compared.
_COMPARED: Final = ("computing_us", "communication_not_overlapped_us", "free_us")
_Row = tuple[Any, ...]


class CommunicationRows:
    """Rows of the tables of communication of a rank, or of all, that a query selects.

    Operators are selected by start and, with a filter, by name; links and packets with their operator. Sums of the file
    are of the whole recording, or of a step. ``group``: -1: tables of msprof-analyze, which follow a step alone;
    ``steps``: labels of the selected ones, None: all.
    """

    def __init__(self, query: Query, group: int, steps: set[str] | None) -> None:
        self._query, self._group, self._steps = query, group, steps
        self.is_narrowed = group >= 0 and (query.range is not None or bool(query.condition))

    @classmethod
    def of_rank(cls, query: Query, rank: RecordedRank) -> CommunicationRows:
        """The selection of a query from a rank's tables."""
        every = figures_of(query, rank).every_step
        steps = {step.label or str(step.number) for step in every if step.number == query.step}
        return cls(query, rank.group, None if query.step is None else steps)

    def rows(self, name: str, *keys: str) -> list[tuple[Any, ...]]:
        """Step, kind and name of the operator, and some columns, of a table; none if it is absent."""
        table = self._query.profile.table(name, self._group)
        rows = [] if table is None else records(table, *_OF_KEYS, *keys)
        # files name steps ``step50``, databases of some versions ``50``
        rows = [row for row in rows if self._steps is None or (row[0] or "").removeprefix("step") in self._steps]
        return [row for row in rows if row[:3] in self._operators] if self.is_narrowed and name != "pairs" else rows

    @cached_property
    def _operators(self) -> set[tuple[Any, ...]]:
        """Step, kind and name of the operators that start in the range and pass the filter."""
        table = self._query.profile.table("operations", self._group)
        if table is None:
            return set()
        names = None
        if self._query.condition:
            frame = self._query.events(("name",), lanes_of(self._query, "communication"))
            names = {frame.texts["name"][code] for code in uniques(frame["name"]).tolist()}
        every, known = records(table, *_OF_KEYS), table["start"] != INT_MISSING
        rows = rows_of_table(self._query.session, table, self._query.range)
        inside = (every[row] for row in rows[known[rows]].tolist())
        return {row for row in inside
                if not is_total(row[2]) and (names is None or row[2].partition("@")[0] in names)}  # fmt: skip


def of_ranks(
    query: Query, ranks: Sequence[RecordedRank], name: str, *keys: str
) -> list[tuple[RecordedRank | str, _Row]]:  # fmt: skip
    """Rows of a table of communication that a query selects, without sums, each with its rank.

    Ranks are those of the profile that have it; without any, numbers of those in msprof-analyze's files.
    """
    found: list[tuple[RecordedRank | str, _Row]] = []
    own = [rank for rank in ranks if query.profile.table("operations", rank.group) is not None]
    for rank in own:
        chosen = CommunicationRows.of_rank(replace(query, scope=Scope(rank.group)), rank)
        found += ((rank, row) for row in chosen.rows(name, *keys))
    if not own:
        chosen = CommunicationRows(query, -1, None if query.step is None else {str(query.step)})
        if name == "pairs":
            found += (("", row) for row in chosen.rows(name, *keys))
        else:
            found += ((row[3], (*row[:3], *row[4:])) for row in chosen.rows(name, "rank", *keys))
    return [(rank, row) for rank, row in found if not is_total(row[2])]


def waiting_ranks(
    query: Query, ranks: Sequence[RecordedRank]
) -> tuple[dict[RecordedRank | str, list[_Row]], RecordedRank | str | None]:
    """`waits_of` each rank that communicates, and the one that the others wait for; None: none."""
    found: dict[RecordedRank | str, list[_Row]] = {}
    for rank, row in of_ranks(query, ranks, "operations", "start", "wait", "synchronization"):
        found.setdefault(rank, []).append(row)
    every = [(rank, None, waits_of(rows)) if isinstance(rank, str) else (
        rank.rank, rank.clock, waits_of(rows, rank.zero)) for rank, rows in found.items()]  # fmt: skip
    last = late_rank(every)
    waits = {rank: rows for rank, (_, _, rows) in zip(found, every, strict=True)}
    return waits, list(found)[last] if last >= 0 else None


@per_rank
def communication(query: Query, rank: RecordedRank) -> Answer:
    """The communication view of one rank."""
    missing = [lacks(key, f"{title} are not known.", _NEEDS, _LEVEL1) for key, title in (
        ("bandwidth", "Links"), ("packets", "Sizes of packets"), ("matrix", "Transfers between ranks"))]  # fmt: skip
    table = query.profile.table("operations", rank.group)
    if table is None:
        return _of_events(query, rank, missing)
    chosen = CommunicationRows.of_rank(query, rank)
    rows = chosen.rows("operations", "start", *_TIMES, *_RATIOS)
    operations = sorted((row for row in rows if not is_total(row[2])), key=lambda row: -(row[4] or 0))
    totals = [row for row in rows if is_total(row[2])]
    elapse = sum(row[4] or 0 for row in operations)
    facts = (Fact("operations", "Operators", len(operations)), Fact("elapse_us", "Their time", elapse, "duration"))
    packets = [(*row[:5], int(row[5]) if row[5] == int(row[5]) else row[5], row[6])
               for row in chosen.rows("packets", "link", "packet_mb", "count", "total")]  # fmt: skip
    tables = [
        _operations(rank, "operations", "Operators", operations), _by_operator(operations),
        _by_group(rank, operations), *([_operations(rank, "totals", "Sums of the file", totals)] if totals else []),
        _listed("bandwidth", "Links", (*_LINK, Column("large_packet_ratio", "Large packets", "share", drop_first=1)),
                chosen.rows("transfers", *_LINK_KEYS, "large_packets")),
        _listed("packets", "Packets", (
            Column("link", "Link"), Column("packet_mb", "Packet", "number", "MB", short_title="Packet (MB)"),
            Column("count", "Count", "number"), Column("total_us", "Total", "duration")), packets),
    ]  # fmt: skip
    notes = [_EVERY]
    if query.profile.table("pairs", rank.group) is not None:
        missing = []
        heads = (*_OF, *_TO_WHOM, *_LINK, Column("op_name", "Operator's name", drop_first=1))
        tables.append(Table.of_rows("matrix", "From rank to rank", heads,
                                    chosen.rows("pairs", "src", "dst", *_LINK_KEYS, "op_name")))  # fmt: skip
        notes += not_narrowed(query, "From rank to rank, which is of classes of operators", ("range", "filter"))
    return Answer(facts, tuple(tables), notes=tuple(notes), missing=tuple(missing[2:]), source=table.file)


def _listed(key: str, title: str, heads: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> Table:
    return Table.of_rows(key, title, (*_OF, *heads), rows, target=lambda row: of_operator(rows[row][2]))


def _of_events(query: Query, rank: RecordedRank, missing: Sequence[Missing]) -> Answer:
    lanes = lanes_of(query, "communication")
    if not rank.timeline or not any(len(query.profile.lanes[number]) for number in lanes):
        return Answer(missing=tuple(missing))
    frame = query.events(("name", "start", "duration"), lanes)
    frame = frame.take(np.argsort(-frame["duration"], kind="stable"))
    names = frame.texts["name"]
    rows = [("all", "collective", names[code], start, length, *(None for _ in range(6))) for code, start, length in zip(
        frame["name"].tolist(), frame["start"].tolist(), frame["duration"].tolist(), strict=True)]  # fmt: skip
    facts = (Fact("operations", "Operators", len(rows)),
             Fact("elapse_us", "Their time", int(frame["duration"].sum()), "duration"))  # fmt: skip
    return Answer(facts, (_operations(rank, "operations", "Operators", rows), _by_operator(rows)),
                  missing=tuple(missing), source=rank.timeline)  # fmt: skip


def _operations(rank: RecordedRank, key: str, title: str, operations: Sequence[_Row]) -> Table:
    columns = (
        *_OF, moment(rank, "start_us", "Start", drop_first=4), *_PARTS,
        Column("wait_ratio", "Wait ratio", "share", drop_first=1),
        Column("synchronization_ratio", "Synchronization ratio", "share", drop_first=1),
    )  # fmt: skip
    return Table.of_rows(key, title, columns, operations, word="operator")


def _by_operator(operations: Sequence[_Row]) -> Table:
    """Sums by operator name without the hash of its group, which differs per run; targets are the longest operators."""
    names = [(row[2].partition("@")[0].partition("__")[0],) for row in operations]
    return _grouped("by_operator", "By operator", (Column("operator", "Operator"),), names, operations)


def _by_group(rank: RecordedRank, operations: Sequence[_Row]) -> Table:
    """Sums by the group of ranks that communicate, with the name of its kind of parallelism and its ranks if known."""
    groups = [row[2].partition("@")[2] for row in operations]
    names = [(*rank.parallel.get(group, (None, None)), group) for group in groups]
    heads = (Column("parallel", "Parallelism"), Column("ranks", "Ranks"), Column("group", "Group", drop_first=1))
    return _grouped("by_group", "By group", heads, names, operations)


def _grouped(
    name: str, title: str, heads: Sequence[Column], names: Sequence[tuple[Any, ...]], operations: Sequence[_Row]
) -> Table:  # fmt: skip
    """Sums of operators, longest first, by names; targets are the longest operators."""
    codes, groups = coded(names)
    parts = zip(*(row[4:9] for row in operations), strict=True) if operations else [()] * len(_TIMES)
    columns = {part: np.array(values, float) for part, values in zip(_TIMES, parts, strict=True)}
    columns |= {"group": codes, "row": np.arange(len(names))}
    sums = {part: total(part) for part in _TIMES}
    figures: dict[str, Figure] = {"group": key("group"), "count": count, **sums, "row": least("row")}
    found = pivot(Frame(columns, {}), ("group",), figures, ("-elapse",))
    return Table.of_rows(
        name, title, (*heads, Column("count", "Count", "count"), *_PARTS),
        [(*groups[row[0]], *row[1:-1]) for row in found], word=name.removeprefix("by_"),
        target=lambda row: of_operator(operations[found[row][-1]][2]),
    )  # fmt: skip


# -- ranks side by side


def cluster(query: Query) -> Answer:
    """The cluster view: steps, communication and links of ranks; slow and late ones."""
    profile, missing = query.profile, list[Missing]()
    sources = list(dict.fromkeys(table.file for table in profile.tables if table.group < 0))
    table = profile.table("cluster_steps")
    steps: list[_Row] = [] if table is None else step_records(table, "kind", "index", "step")
    steps = [row for row in steps if query.step is None or row[2] == str(query.step)]
    ranked = [rank for rank in ranks_of(query) if rank.rank is not None]
    ranked = ranked if len(ranked) > 1 else []
    for rank in ranked if table is None else []:
        figures, recorded = figures_of(query, rank), profile.table("recorded_steps", rank.group)
        if recorded is None or (figures.steps_are_computed and (query.range is not None or query.condition)):
            rows, file = [(step.label, step.times) for step in figures.steps], figures.steps_file
        else:
            rows, file = figures.recorded_steps, recorded.file
        steps += [("rank", str(rank.rank), label, *values) for label, values in rows]
        sources.append(file)
    shared = profile.table("operations") is not None
    tables_of = {rank: found for rank in ([] if shared else ranked)
                 if (found := profile.table("operations", rank.group)) is not None}  # fmt: skip
    sources += [found.file for found in tables_of.values()]
    communicates = shared or bool(tables_of)
    if table is None and not communicates and not any(figures_of(query, rank).every_step for rank in ranked):
        return Answer(missing=(lacks("steps", "There are no ranks to compare.", "two or more ranks",
                                     "Name the folder that holds the folders of all ranks"),))  # fmt: skip

    def rows_of(name: str, *keys: str) -> list[_Row]:
        """Group, step, operator and rank, and some columns, of the rows of a table."""
        found = of_ranks(query, [] if shared else ranked, name, *keys)
        return [(kind, step, op, rank if isinstance(rank, str) else str(rank.rank), *more)
                for rank, (step, kind, op, *more) in found]  # fmt: skip

    of, who = (Column("group", "Group", drop_first=2), Column("step", "Step", drop_first=1)), Column("rank", "Rank")
    heads = (Column("kind", "Type", drop_first=8), Column("index", "Rank"), Column("step", "Step"), *STEP_TIMES)
    tables = [_slow(steps), Table.of_rows("steps", "Steps", heads, steps, notes=(STEP_NOTE,), one_unit=True)]
    by = ("range", "filter")
    notes = [*not_narrowed(query, "Steps, as msprof-analyze wrote them", by if table is not None else ())]
    if communicates:
        operations = rows_of("operations", "start", *_TIMES)
        timed = [(*row[:4], *row[5:]) for row in operations]
        # late ranks are the first table
        _, late = waiting_ranks(query, [] if shared else ranked)
        why = [causes(query, late, ranked)] if isinstance(late, RecordedRank) else []
        tables = [_late_ranks(operations, [] if shared else ranked), *why, *tables,
                  Table.of_rows("operations", "Communication operators",
                                (*of, Column("op", "Operator"), who, *_PARTS), timed),
                  Table.of_rows("links", "Links", (of[1], who, *_LINK),
                                sums_of_links(rows_of("transfers", *_LINK_KEYS[:3])))]  # fmt: skip
        notes += not_narrowed(query, "Communication, as msprof-analyze wrote it" if shared else "From rank to rank", by)
    else:
        missing.append(lacks("operations", "What the ranks communicated is not known.",
                             "communication.json of the ranks",
                             "profiler_level=Level1, or msprof --task-time=l1"))  # fmt: skip
    load = experts(query, ranked)
    tables += [] if load is None else [load]
    groups = {str(rank.rank): rank.group for rank in ranks_of(query) if rank.rank is not None}
    tables = [replace(each, target=each.target or partial(_target, each, groups)) for each in tables]
    if communicates:
        # the matrix is of classes of operators, which are no slices: no target
        pairs = [(*row[:3], *row[4:]) for row in rows_of("pairs", "src", "dst", *_LINK_KEYS)]
        tables.append(Table.of_rows("matrix", "From rank to rank", (*of, Column("op", "Operator"), *_TO_WHOM, *_LINK),
                                    pairs))  # fmt: skip
    return Answer(tables=tuple(tables), notes=tuple(notes), missing=tuple(missing),
                  source=", ".join(dict.fromkeys(filter(None, sources))))  # fmt: skip


def _target(table: Table, groups: Mapping[str, int], row: int) -> Target | None:
    values = dict(zip((column.key for column in table.columns), table.row(row), strict=True))
    group = groups.get(str(values.get("rank", values.get("index"))), -1)
    op = values.get("op")
    return of_operator(op, group) if op else Target(scope=Scope(group)) if group >= 0 else None


def sums_of_links(rows: Sequence[_Row]) -> list[_Row]:
    """Step, rank, link, and sums over operators: size in MB, transit in ns, and GB/s."""
    sums: dict[_Row, list[float]] = {}
    for _, step, _, rank, link, size, transit in rows:
        of_link = sums.setdefault((step, rank, link), [0.0, 0.0])
        of_link[0] += size
        of_link[1] += transit or 0.0
    return [(*of, size, time, size / time * 1_000_000 if time else None) for of, (size, time) in sums.items()]


def _slow(steps: Sequence[_Row]) -> Table:
    rows = []
    for step in dict.fromkeys(row[2] for row in steps):
        of_step = [row for row in steps if row[2] == step and row[0] == "rank"]
        for index, (title, _, name) in enumerate(STEP_COLUMNS, 3):
            values = [(row[index], row[1]) for row in of_step if row[index] is not None]
            if name not in _COMPARED or len({rank for _, rank in values}) < 2:
                continue
            value, rank = max(values, key=lambda pair: pair[0])
            mean = sum(value for value, _ in values) / len(values)
            rows.append((step, name, title, rank, value, mean, value / mean - 1 if mean else None))
    columns = (Column("step", "Step", drop_first=1), Column("column", "Column", shown=False),
               Column("what", "What"), Column("rank", "Rank"),
               Column("value_us", "Its time", "duration"), Column("mean_us", "Mean", "duration"),
               Column("excess_share", "Above the mean", "share"))  # fmt: skip
    return Table.of_rows("slow", "Slow ranks", columns, rows)


def _late_ranks(operations: Sequence[_Row], ranks: Sequence[RecordedRank]) -> Table:
    """For each operator the late rank: the one that starts last if the ranks share a clock, else that waited least."""
    zeros, clocks = ({str(rank.rank): getattr(rank, key) for rank in ranks} for key in ("zero", "clock"))
    of_op: dict[tuple[str, str, str], list[tuple[str, int | None, float]]] = {}
    for kind, step, op, rank, start, _, _, wait, *_ in operations:
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
        starts, delay = [start for _, start, _ in timed if start is not None], None
        if one_clock([clocks.get(rank) for rank, *_ in timed]) and len(starts) == len(timed):
            late, begun, waited = max(timed, key=lambda each: each[1] or 0)
            delay = (begun or 0) - min(starts)
        rows.append((step, op, late, begun, delay, waited, max(wait for other, _, wait in timed if other != late)))
    rows.sort(key=lambda row: -(row[6] - row[5] if row[4] is None else row[4]))
    columns = (Column("step", "Step", drop_first=1), Column("op", "Operator"), Column("rank", "Late rank"),
               Column("start_us", "Start", "time", epoch_ns=0, shown=False),
               Column("late_us", "Began later", "duration"), Column("wait_us", "Waited", "duration"),
               Column("others_wait_us", "The others waited", "duration", bar=True))  # fmt: skip
    return Table.of_rows("late", "Late ranks", columns, rows)
