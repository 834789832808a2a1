"""Communication view: operators with transit, wait and idle times; links, packets, and transfers between ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Fact, Table

from ..read.categories import SliceClass
from ..read.communication import CommunicationData, Operation, Pair
from .tables import ViewSelection, lacks, of_operator, per_worker

_LEVEL1: Final = ("profiler_level=Level1 on more than one card; of an output of msprof: msprof --analyze=on "
                  "--rule=communication,communication_matrix --output=PROF_XXX")  # fmt: skip
_NEEDS: Final = "what each communication operator moved (Level1)"
PARTS: Final = (
    Column("elapse_us", "Elapse", "duration", bar=True), Column("transit_us", "Transit", "duration"),
    Column("wait_us", "Wait", "duration"), Column("synchronization_us", "Synchronization", "duration"),
    Column("idle_us", "Idle", "duration"),
)  # fmt: skip
_OF: Final = (Column("step", "Step", spare=3), Column("kind", "Kind", spare=2), Column("op", "Operator"))
LINK: Final = (
    Column("link", "Link"), Column("size_mb", "Size", "number", "MB", head="MB"),
    Column("transit_us", "Transit", "duration"), Column("bandwidth_gb_s", "Bandwidth", "number", "GB/s", head="GB/s"),
)  # fmt: skip
TO_WHOM: Final = (Column("src", "From"), Column("dst", "To"))


def times(each: Operation) -> tuple[float | None, ...]:
    """The values of the columns ``PARTS``."""
    return each.elapse, each.transit, each.wait, each.synchronization, each.idle


@per_worker()
def communication(selection: ViewSelection) -> Answer:
    """The communication view of one worker."""
    found = selection.run.rank.communication
    missing = [lacks(key, f"{title} are not known.", _NEEDS, _LEVEL1) for key, title in (
        ("bandwidth", "Links"), ("packets", "Sizes of packets"), ("matrix", "Transfers between ranks"))]  # fmt: skip
    if found is None:
        return _of_timeline(selection, missing)
    found, notes = _selected(selection, found)
    operations = [each for each in found.operations if not each.is_total]
    operations.sort(key=lambda each: -(each.elapse or 0))
    totals = [each for each in found.operations if each.is_total]
    elapse = sum(each.elapse or 0 for each in operations)
    facts = (Fact("operations", "Operators", len(operations)), Fact("elapse_us", "Their time", elapse, "duration"))
    tables = [
        _operations(selection, "operations", "Operators", operations), _by_operator(operations), *(
            [_operations(selection, "totals", "Sums of the file", totals)] if totals else []),
        _bandwidth(found), _packets(found),
    ]  # fmt: skip
    if found.matrix:
        tables.append(_matrix(found.pairs))
    kept = [each for each in missing if each.what == "matrix" and not found.matrix]
    notes.append("Each link's bytes count for itself: the engine repeats what HCCS moved, so links do not add up.")
    return Answer(facts, tuple(tables), notes=tuple(notes), missing=tuple(kept), source=found.file)


def _selected(selection: ViewSelection, found: CommunicationData) -> tuple[CommunicationData, list[str]]:
    """The selected data, by step, start, and operator name; and notes on what the selection does not apply to."""
    if selection.is_everything:
        return found, []
    notes = []
    if selection.step is not None:
        found = found.of_steps({each.label or str(each.number) for each in selection.steps})
    operations, transfers, packets = found.operations, found.transfers, found.packets
    if selection.window is not None or selection.passing is not None:
        low, high = selection.window or (INT_MISSING, np.iinfo(np.int64).max)
        names = _passing_names(selection)
        operations = [
            each for each in operations if not each.is_total and each.start is not None and low <= each.start < high
            and (names is None or each.op.partition("@")[0] in names)
        ]  # fmt: skip
        kept = {(each.step, each.kind, each.op) for each in operations}
        transfers = [each for each in transfers if (each.step, each.kind, each.op) in kept]
        packets = [each for each in packets if (each.step, each.kind, each.op) in kept]
        if found.pairs:
            notes.append("From rank to rank: classes of operators; they follow a step, but no range or filter.")
    return replace(found, operations=operations, transfers=transfers, packets=packets), notes


def _passing_names(selection: ViewSelection) -> set[str] | None:
    """Names of the communication operators that pass the filter; None: no filter."""
    timeline = selection.run.timeline
    if selection.passing is None:
        return None
    if timeline is None or selection.slices is None:
        kernels = selection.run.kernels
        return set(filter(None, kernels.name.values(selection.kernel_rows(kernels)))) if kernels is not None else set()
    rows = timeline.rows(SliceClass.COLLECTIVE)
    return {timeline.names[name] for name in timeline.name[rows[selection.slices[rows]]].tolist()}


def _of_timeline(selection: ViewSelection, missing: list[Any]) -> Answer:
    """The view from the timeline alone: operators with their durations."""
    timeline = selection.run.timeline
    rows = timeline.rows(SliceClass.COLLECTIVE) if timeline is not None else np.zeros(0, np.int64)
    if timeline is None or not len(rows):
        return Answer(missing=tuple(missing))
    rows = rows[selection.work_mask(timeline.start[rows])]
    rows = rows if selection.slices is None else rows[selection.slices[rows]]
    length = timeline.end[rows] - timeline.start[rows]
    rows = rows[np.argsort(-length, kind="stable")]
    operations = [Operation("all", "collective", timeline.names[timeline.name[row]], "", int(timeline.start[row]),
                            int(timeline.end[row] - timeline.start[row]), *(None for _ in range(6)))
                  for row in rows.tolist()]  # fmt: skip
    facts = (Fact("operations", "Operators", len(rows)), Fact("elapse_us", "Their time", int(length.sum()), "duration"))
    return Answer(facts, (_operations(selection, "operations", "Operators", operations), _by_operator(operations)),
                  missing=tuple(missing), source=timeline.file)  # fmt: skip


def _operations(selection: ViewSelection, key: str, title: str, operations: Sequence[Operation]) -> Table:
    columns = (
        *_OF, selection.moment("start_us", "Start", spare=4), *PARTS,
        Column("wait_ratio", "Wait ratio", "share", spare=1),
        Column("synchronization_ratio", "Synchronization ratio", "share", spare=1),
    )  # fmt: skip
    rows = [(each.step, each.kind, each.op, None if each.start is None else each.start - selection.zero, *times(each),
             each.wait_ratio, each.synchronization_ratio) for each in operations]  # fmt: skip
    return Table.of_rows(key, title, columns, rows, word="operator")


def _by_operator(operations: Sequence[Operation]) -> Table:
    """Sums by operator name without the hash of its group, which differs per run; targets are the longest operators."""
    groups: dict[str, list[Operation]] = {}
    for each in operations:
        groups.setdefault(each.op.partition("@")[0].partition("__")[0], []).append(each)
    columns = (Column("operator", "Operator"), Column("count", "Count", "count"), *PARTS)
    rows: list[tuple[Any, ...]] = []
    for name, members in groups.items():
        parts = zip(*map(times, members), strict=True)
        rows.append(
            (name, len(members), *(None if None in part else sum(filter(None, part)) for part in parts), members[0].op)
        )
    rows.sort(key=lambda row: -(row[2] or 0))
    return Table.of_rows("by_operator", "By operator", columns, [row[:-1] for row in rows], word="operator",
                         target=lambda row: of_operator(rows[row][-1]))  # fmt: skip


def _bandwidth(found: CommunicationData) -> Table:
    columns = (*_OF, *LINK, Column("large_packet_ratio", "Large packets", "share", spare=1))
    rows = [(each.step, each.kind, each.op, each.link, each.size_mb, each.transit, each.bandwidth, each.large_packets)
            for each in found.transfers]  # fmt: skip
    return Table.of_rows("bandwidth", "Links", columns, rows, target=lambda row: of_operator(rows[row][2]))


def _packets(found: CommunicationData) -> Table:
    columns = (*_OF, Column("link", "Link"), Column("packet_mb", "Packet", "number", "MB", head="Packet (MB)"),
               Column("count", "Count", "number"), Column("total_us", "Total", "duration"))  # fmt: skip
    rows = [
        (each.step, each.kind, each.op, each.link, each.packet_mb, each.count, each.total) for each in found.packets
    ]
    return Table.of_rows("packets", "Packets", columns, rows, target=lambda row: of_operator(rows[row][2]))


def _matrix(pairs: Sequence[Pair]) -> Table:
    columns = (*_OF, *TO_WHOM, *LINK, Column("op_name", "Operator's name", spare=1))
    rows = [(each.step, each.kind, each.op, each.src, each.dst, each.link, each.size_mb, each.transit, each.bandwidth,
             each.op_name) for each in pairs]  # fmt: skip
    return Table.of_rows("matrix", "From rank to rank", columns, rows)
