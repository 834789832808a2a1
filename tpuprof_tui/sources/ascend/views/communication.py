"""Communication view: operators with transit, wait and idle times; links, packets, and transfers between ranks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table

from ..recorded import RecordedRank, is_total, records
from .figures import figures_of
from .ranks import in_range, lacks, lanes_of, moment, not_narrowed, of_operator, per_rank

_LEVEL1: Final = ("profiler_level=Level1 on more than one card; of an output of msprof: msprof --analyze=on "
                  "--rule=communication,communication_matrix --output=PROF_XXX")  # fmt: skip
_NEEDS: Final = "what each communication operator moved (Level1)"
PARTS: Final = (
    Column("elapse_us", "Elapse", "duration", bar=True), Column("transit_us", "Transit", "duration"),
    Column("wait_us", "Wait", "duration"), Column("synchronization_us", "Synchronization", "duration"),
    Column("idle_us", "Idle", "duration"),
)  # fmt: skip
#: Columns of ``operations`` with the times of ``PARTS``, and of the three tables with a link's figures.
TIMES: Final = ("elapse", "transit", "wait", "synchronization", "idle")
LINK_KEYS: Final = ("link", "size_mb", "transit", "bandwidth")
_OF: Final = (Column("step", "Step", spare=3), Column("kind", "Kind", spare=2), Column("op", "Operator"))
_OF_KEYS: Final = ("step", "kind", "op")
LINK: Final = (
    Column("link", "Link"), Column("size_mb", "Size", "number", "MB", head="MB"),
    Column("transit_us", "Transit", "duration"), Column("bandwidth_gb_s", "Bandwidth", "number", "GB/s", head="GB/s"),
)  # fmt: skip
TO_WHOM: Final = (Column("src", "From"), Column("dst", "To"))
_EVERY: Final = "Links do not add up: what HCCS moved is in the row of the copying link too."
#: A row of the table of operators: the columns ``_OF``, start, the times, and the ratios of wait and synchronization.
_Operation = tuple[Any, ...]
_RATIOS: Final = ("wait_ratio", "synchronization_ratio")


class Selection:
    """Rows of the tables of communication of a rank, or of all, that a query selects.

    Operators are selected by start and, with a filter, by name; links and packets with their operator. Sums of the file
    are of the whole recording, or of a step.

    Args:
        query: The query.
        group: Group of the tables; -1: those of msprof-analyze, which follow a step alone.
        steps: Labels of the selected steps; None: all.
    """

    def __init__(self, query: Query, group: int, steps: set[str] | None) -> None:
        self._query, self._group, self._steps = query, group, steps
        self.is_narrowed = group >= 0 and (query.range is not None or bool(query.filter))

    @classmethod
    def of_rank(cls, query: Query, rank: RecordedRank) -> Selection:
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
        if self._query.filter:
            frame = self._query.events(("name",), lanes_of(self._query, "communication"))
            names = {frame.texts["name"][code] for code in uniques(frame["name"]).tolist()}
        inside = in_range(self._query, table["start"]) & (table["start"] != INT_MISSING)
        return {row for row, is_in in zip(records(table, *_OF_KEYS), inside.tolist(), strict=True)
                if is_in and not is_total(row[2]) and (names is None or row[2].partition("@")[0] in names)}  # fmt: skip


def of_ranks(
    query: Query, ranks: Sequence[RecordedRank], name: str, *keys: str
) -> list[tuple[RecordedRank | str, tuple[Any, ...]]]:  # fmt: skip
    """Rows of a table of communication that a query selects, without sums, each with its rank.

    Ranks are those of the profile that have it; without any, numbers of those in msprof-analyze's files.
    """
    found: list[tuple[RecordedRank | str, tuple[Any, ...]]] = []
    own = [rank for rank in ranks if query.profile.table("operations", rank.group) is not None]
    for rank in own:
        rows = Selection.of_rank(replace(query, scope=Scope(rank.group)), rank).rows(name, *keys)
        found += [(rank, row) for row in rows]
    if not own:
        shared = Selection(query, -1, None if query.step is None else {str(query.step)})
        rows = shared.rows(name, *(() if name == "pairs" else ("rank",)), *keys)
        found = [("", row) if name == "pairs" else (row[3], (*row[:3], *row[4:])) for row in rows]
    return [(rank, row) for rank, row in found if not is_total(row[2])]


@per_rank
def communication(query: Query, rank: RecordedRank) -> Answer:
    """The communication view of one rank."""
    missing = [lacks(key, f"{title} are not known.", _NEEDS, _LEVEL1) for key, title in (
        ("bandwidth", "Links"), ("packets", "Sizes of packets"), ("matrix", "Transfers between ranks"))]  # fmt: skip
    table = query.profile.table("operations", rank.group)
    if table is None:
        return _of_events(query, rank, missing)
    chosen = Selection.of_rank(query, rank)
    rows = chosen.rows("operations", "start", *TIMES, *_RATIOS)
    operations = sorted((row for row in rows if not is_total(row[2])), key=lambda row: -(row[4] or 0))
    totals = [row for row in rows if is_total(row[2])]
    elapse = sum(row[4] or 0 for row in operations)
    facts = (Fact("operations", "Operators", len(operations)), Fact("elapse_us", "Their time", elapse, "duration"))
    packets = [(*row[:5], int(row[5]) if row[5] == int(row[5]) else row[5], row[6])
               for row in chosen.rows("packets", "link", "packet_mb", "count", "total")]  # fmt: skip
    tables = [
        _operations(rank, "operations", "Operators", operations), _by_operator(operations),
        *([_operations(rank, "totals", "Sums of the file", totals)] if totals else []),
        _listed("bandwidth", "Links", (*LINK, Column("large_packet_ratio", "Large packets", "share", spare=1)),
                chosen.rows("transfers", *LINK_KEYS, "large_packets")),
        _listed("packets", "Packets", (
            Column("link", "Link"), Column("packet_mb", "Packet", "number", "MB", head="Packet (MB)"),
            Column("count", "Count", "number"), Column("total_us", "Total", "duration")), packets),
    ]  # fmt: skip
    notes = [_EVERY]
    if query.profile.table("pairs", rank.group) is not None:
        missing = []
        heads = (*_OF, *TO_WHOM, *LINK, Column("op_name", "Operator's name", spare=1))
        tables.append(Table.of_rows("matrix", "From rank to rank", heads,
                                    chosen.rows("pairs", "src", "dst", *LINK_KEYS, "op_name")))  # fmt: skip
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


def _operations(rank: RecordedRank, key: str, title: str, operations: Sequence[_Operation]) -> Table:
    columns = (
        *_OF, moment(rank, "start_us", "Start", spare=4), *PARTS, Column("wait_ratio", "Wait ratio", "share", spare=1),
        Column("synchronization_ratio", "Synchronization ratio", "share", spare=1),
    )  # fmt: skip
    return Table.of_rows(key, title, columns, operations, word="operator")


def _by_operator(operations: Sequence[_Operation]) -> Table:
    """Sums by operator name without the hash of its group, which differs per run; targets are the longest operators."""
    groups: dict[str, list[_Operation]] = {}
    for row in operations:
        groups.setdefault(row[2].partition("@")[0].partition("__")[0], []).append(row)
    columns = (Column("operator", "Operator"), Column("count", "Count", "count"), *PARTS)
    rows: list[tuple[Any, ...]] = []
    for name, members in groups.items():
        parts = zip(*(row[4:9] for row in members), strict=True)
        sums = (None if None in part else sum(filter(None, part)) for part in parts)
        rows.append((name, len(members), *sums, members[0][2]))
    rows.sort(key=lambda row: -(row[2] or 0))
    return Table.of_rows("by_operator", "By operator", columns, [row[:-1] for row in rows], word="operator",
                         target=lambda row: of_operator(rows[row][-1]))  # fmt: skip
