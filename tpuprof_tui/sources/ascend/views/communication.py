"""Communication view: operators with transit, wait and idle times; links, packets, and transfers between ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table
from tpuprof_tui.views.query import Query

from ..recorded import RecordedRank, is_total, records
from .figures import figures_of
from .ranks import in_range, lacks, lanes_of, moment, of_operator, per_rank

Mask = npt.NDArray[np.bool_]
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
_EVERY: Final = "Each link's bytes count for itself: the engine repeats what HCCS moved, so links do not add up."
#: A row of the table of operators: the columns ``_OF``, start, the times, and the ratios of wait and synchronization.
_Operation = tuple[Any, ...]
_RATIOS: Final = ("wait_ratio", "synchronization_ratio")


@per_rank()
def communication(query: Query, rank: RecordedRank) -> Answer:
    """The communication view of one rank."""
    missing = [lacks(key, f"{title} are not known.", _NEEDS, _LEVEL1) for key, title in (
        ("bandwidth", "Links"), ("packets", "Sizes of packets"), ("matrix", "Transfers between ranks"))]  # fmt: skip
    table = query.profile.table("operations", rank.group)
    if table is None:
        return _of_events(query, rank, missing)
    notes = []
    pairs = query.profile.table("pairs", rank.group)
    steps = _steps(query, rank)
    rows = records(table, *_OF_KEYS, "start", *TIMES, *_RATIOS)
    kept = of_steps(rows, steps)
    narrowed = query.range is not None or bool(query.filter)
    if narrowed:
        chosen, names = in_range(query, table["start"]), _passing_names(query, rank)
        kept = [row for row, inside in zip(rows, chosen.tolist(), strict=True) if inside and row[3] is not None
                and (steps is None or _step(row) in steps) and not is_total(row[2])
                and (names is None or row[2].partition("@")[0] in names)]  # fmt: skip
        if pairs is not None and of_steps(records(pairs, "step"), steps):
            notes.append("From rank to rank: classes of operators; they follow a step, but no range or filter.")
    operations = [row for row in kept if not is_total(row[2])]
    operations.sort(key=lambda row: -(row[4] or 0))
    totals = [row for row in kept if is_total(row[2])]
    elapse = sum(row[4] or 0 for row in operations)
    facts = (Fact("operations", "Operators", len(operations)), Fact("elapse_us", "Their time", elapse, "duration"))
    of = {row[:3] for row in kept} if narrowed else None
    tables = [
        _operations(rank, "operations", "Operators", operations), _by_operator(operations),
        *([_operations(rank, "totals", "Sums of the file", totals)] if totals else []),
        _listed(query, rank, steps, of, "transfers", Table.of_rows("bandwidth", "Links", (
            *_OF, *LINK, Column("large_packet_ratio", "Large packets", "share", spare=1)), ()),
                (*LINK_KEYS, "large_packets")),
        _listed(query, rank, steps, of, "packets", Table.of_rows("packets", "Packets", (
            *_OF, Column("link", "Link"), Column("packet_mb", "Packet", "number", "MB", head="Packet (MB)"),
            Column("count", "Count", "number"), Column("total_us", "Total", "duration")), ()),
                ("link", "packet_mb", "count", "total")),
    ]  # fmt: skip
    if pairs is not None:
        heads = (*_OF, *TO_WHOM, *LINK, Column("op_name", "Operator's name", spare=1))
        tables.append(Table.of_rows("matrix", "From rank to rank", heads, of_steps(
            records(pairs, *_OF_KEYS, "src", "dst", *LINK_KEYS, "op_name"), steps)))  # fmt: skip
    notes.append(_EVERY)
    return Answer(facts, tuple(tables), notes=tuple(notes), missing=() if pairs is not None else tuple(missing[2:]),
                  source=table.file)  # fmt: skip


def _listed(
    query: Query, rank: RecordedRank, steps: set[str] | None, of: set[tuple[Any, ...]] | None, name: str, table: Table,
    keys: Sequence[str],
) -> Table:  # fmt: skip
    """The table with rows of recorded columns about the selected operators."""
    recorded = query.profile.table(name, rank.group)
    rows = [] if recorded is None else of_steps(records(recorded, *_OF_KEYS, *keys), steps)
    rows = [row for row in rows if of is None or row[:3] in of]
    if "count" in keys:
        place = 3 + keys.index("count")
        rows = [(*row[:place], int(row[place]) if row[place] == int(row[place]) else row[place], *row[place + 1 :])
                for row in rows]  # fmt: skip
    return Table.of_rows(table.key, table.title, table.columns, rows, target=lambda row: of_operator(rows[row][2]))


def _step(row: Sequence[Any]) -> str:
    """Label of the step of a row that begins with it; files name them ``step50``, databases of some versions ``50``."""
    step: str = row[0] or ""
    return step.removeprefix("step")


def of_steps(rows: Sequence[tuple[Any, ...]], steps: set[str] | None) -> list[tuple[Any, ...]]:
    """Rows, which begin with their step, of some steps; None: all."""
    return [row for row in rows if steps is None or _step(row) in steps]


def _steps(query: Query, rank: RecordedRank) -> set[str] | None:
    """Labels of the selected steps; None: all."""
    if query.step is None:
        return None
    return {step.label or str(step.number) for step in figures_of(query, rank).steps if step.number == query.step}


def _passing_names(query: Query, rank: RecordedRank) -> set[str] | None:
    """Names of the communication operators that pass the filter; None: no filter."""
    if not query.filter:
        return None
    frame = query.events(("name",), lanes_of(query, "communication"))
    return {frame.texts["name"][code] for code in uniques(frame["name"]).tolist()}


def _of_events(query: Query, rank: RecordedRank, missing: Sequence[Missing]) -> Answer:
    """The view from the timeline alone: operators with their durations."""
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
