"""Distributed view: computation and communication of the workers of a run, and their collectives."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.grouping import text_condition
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.views.answer import Answer, Column, Missing, Table, Target
from tpuprof_tui.views.query import Query

from ..read.categories import Kind
from ..read.collectives import RECORD, identities_of, numbered
from ..read.columns import compact
from ..read.deferred import OperatorArgs
from ..read.kernel_names import ELEMENT_BYTES
from ..read.values import lookup, printable
from .run import Run, one_by_one, runs_of
from .tables import not_narrowed

I64 = npt.NDArray[np.int64]
#: Larger sums are not known.
_MOST_BYTES: Final = (1 << 63) - 1
#: What newer files tell of collectives.
_TOLD: Final = (
    Column("input_bytes", "Input", "bytes", spare=2), Column("output_bytes", "Output", "bytes", spare=3),
    Column("group_size", "Ranks of group", "count", spare=4), Column("group", "Group", is_key=False, spare=5),
    Column("ranks", "Ranks", is_key=False, spare=6),
)  # fmt: skip


class Collectives(Struct, frozen=True, eq=False):
    """The collectives of a worker by start, with the intervals of each: its host event and its kernels.

    Attributes:
        run: The worker.
        rows: Rows of their host events.
        names: Their names.
        start, end: int64 ns of all intervals, by collective, then start.
        of: Index of the collective of each interval.
        kernels: Rows of their kernels.
        kernel_of: Index of the collective of each kernel.
        identities: What identifies each collective among those of all ranks; empty if nothing does.
    """

    run: Run
    rows: I64
    names: tuple[str, ...]
    start: I64
    end: I64
    of: I64
    kernels: I64
    kernel_of: I64
    identities: list[str]


class Told(Struct, frozen=True, eq=False):
    """What the recording tells of the messages of each collective; None: not told.

    Attributes:
        sent, received: Bytes of this rank's input and output.
        size: Number of ranks of the group.
        group, ranks: Name of the group, and its ranks as JSON text.
    """

    sent: list[int | None]
    received: list[int | None]
    size: list[int | None]
    group: list[str | None]
    ranks: list[str | None]


def distributed(query: Query) -> Answer:
    """The distributed view."""
    # always of whole workers
    return not_narrowed(
        query, query.cache.get("distributed", lambda: _distributed(query), query.top_group), "Collectives"
    )


def _distributed(query: Query) -> Answer:
    found, starts, lacking = _compared(query)
    runs, missing = [each.run for each in found], [*lacking]
    if not runs:
        missing.append(Missing("No worker communicates.", "a run of several workers"))
    rows = [row for each in one_by_one(query, found) for row in _rows(each, starts.get(each.run.worker.key))]
    overlap = [row for run in one_by_one(query, runs) for row in _overlap(run)]
    transfer_rows = transfers(query)
    groups = {run.worker.key: run.worker.group for run in runs}

    def worker(of: list[tuple[Any, ...]], row: int) -> Target:
        return Target(scope=Scope(groups[of[row][1]]))

    return Answer(
        tables=(
            Table.of_rows("overlap", "Overlap", (
                Column("step", "Step"), Column("worker", "Worker"),
                Column("computation_us", "Computation", "duration"), Column("overlap_us", "Overlap", "duration"),
                Column("communication_us", "Communication", "duration"), Column("other_us", "Other", "duration"),
            ), overlap, target=partial(worker, overlap)),
            Table.of_rows("transfer", "Transfer", (
                Column("step", "Step"), Column("worker", "Worker"), Column("transfer_us", "Transfer", "duration"),
                Column("synchronising_us", "Synchronising", "duration"),
            ), transfer_rows, target=partial(worker, transfer_rows)),
            Table.of_rows("collectives", "Collectives", (
                Column("worker", "Worker"), Column("name", "Name", narrows="name"), Column("calls", "Calls", "count"),
                Column("bytes", "Bytes", "bytes", zero_unknown=True),
                Column("mean_bytes", "Mean", "bytes", zero_unknown=True),
                Column("total_us", "Total", "duration", bar=True), Column("mean_us", "Mean", "duration"),
                Column("transfer_us", "Transfer", "duration"),
                Column("mean_transfer_us", "Mean transfer", "duration"),
                *(replace(column, shown=any(row[place] is not None for row in rows))
                  for place, column in enumerate(_TOLD, 9)),
            ), rows, target=lambda row: Target(condition=text_condition("name", rows[row][1]),
                                               scope=Scope(groups[rows[row][0]]))),
        ),
        notes=("One worker alone: all of its collectives count as transfer.",) if len(found) == 1 else (),
        missing=tuple(missing),
    )  # fmt: skip


def _compared(query: Query) -> tuple[list[Collectives], dict[str, I64], list[Missing]]:
    """Collectives of the workers that communicate, start of transfer of their intervals, and what is unknown."""

    def compare() -> tuple[list[Collectives], dict[str, I64], list[Missing]]:
        found = [
            collectives_of(run) for run in runs_of(query) if run.launchers.communicates.any() or len(run.collectives)
        ]
        return found, *_transfer_starts(found)

    return query.cache.get("collectives", compare, query.top_group)


def _transfer_starts(found: list[Collectives]) -> tuple[dict[str, I64], list[Missing]]:
    """For each worker the start of transfer of each interval; and messages for what cannot be compared.

    Transfer is the shortest duration over the workers, ending with the interval; the rest is waiting. ``INT_MISSING``:
    not known, as for a collective that one of several workers recorded alone.
    """
    starts: dict[str, I64] = {}
    missing: list[Missing] = []
    for group in _comparable(found):
        codes = _codes(group)
        names = ", ".join(each.run.worker.key for each in group)
        if codes is None:
            missing.append(Missing(f"The collectives of {names} are not the same in the same order: their transfer "
                                   "time is not known.", "recordings of the same steps"))  # fmt: skip
            continue
        begins = _begins(group, codes)
        starts |= {each.run.worker.key: begin for each, begin in zip(group, begins, strict=True)}
        alone = sum(len(uniques(each.of[begin == INT_MISSING])) for each, begin in zip(group, begins, strict=True))
        if alone:
            missing.append(Missing(f"{alone:,} collectives of {names} were recorded by one of them, or in part: they "
                                   "are in no transfer time.", "recordings of the same steps"))  # fmt: skip
    return starts, missing


def _codes(group: list[Collectives]) -> list[I64] | None:
    """A number for each collective of each worker, equal for those that belong together; None if that is not known.

    By what identifies them; those without by their order, if all workers have the same with as many intervals.
    """
    identities = [numbered(each.identities) for each in group]
    unknown = [
        [(name, count) for (text, _), name, count in zip(
            own, each.names, np.bincount(each.of, minlength=len(each.rows)).tolist(), strict=True) if not text]
        for own, each in zip(identities, group, strict=True)
    ]  # fmt: skip
    in_order = all(each == unknown[0] for each in unknown)
    if not in_order and not all(any(text for text, _ in own) for own in identities):
        return None
    codes: dict[tuple[str, int], int] = {}
    apart = sum(map(len, identities))
    found = []
    for place, own in enumerate(identities):
        keys = [key if key[0] or in_order else ("", apart * (place + 1) + key[1]) for key in own]
        found.append(np.array([codes.setdefault(key, len(codes)) for key in keys], np.int64))
    return found


def _begins(group: list[Collectives], codes: list[I64]) -> list[I64]:
    """Start of transfer of each interval of each worker, given the numbers of their collectives."""
    count = max((int(own.max(initial=-1)) for own in codes), default=-1) + 1
    intervals = [np.bincount(each.of, minlength=len(each.rows)) for each in group]
    most, least = np.zeros(count, np.int64), np.full(count, np.iinfo(np.int64).max)
    workers = np.zeros(count, np.int64)
    for own, counts in zip(codes, intervals, strict=True):
        most[own], least[own] = np.maximum(most[own], counts), np.minimum(least[own], counts)
        workers[own] += 1
    known = (most == least) & ((workers > 1) | (len(group) == 1))
    first = np.concatenate([[0], np.cumsum(most)])
    shortest = np.full(int(first[-1]), np.iinfo(np.int64).max)
    places = []
    for own, each, counts in zip(codes, group, intervals, strict=True):
        turn = np.arange(len(each.of)) - np.repeat(np.cumsum(counts) - counts, counts)
        places.append(first[own[each.of]] + turn)
        np.minimum.at(shortest, places[-1], each.end - each.start)
    return [np.where(known[own[each.of]], each.end - shortest[place], INT_MISSING)
            for own, each, place in zip(codes, group, places, strict=True)]  # fmt: skip


def collectives_of(run: Run) -> Collectives:
    """The collectives of a worker, with their kernels assigned to them."""
    trace = run.trace
    rows = run.collectives
    rows = rows[np.lexsort((trace.file_order[rows], -trace.end[rows], trace.start[rows]))]
    kernels = np.flatnonzero(run.launchers.communicates)
    ordered = np.argsort(rows, kind="stable")
    owner = lookup(rows[ordered], run.launchers.of_work[kernels], ordered)
    # kernels launched by another event belong to the innermost collective around their call
    lost = np.flatnonzero((owner < 0) & (run.call[kernels] >= 0))
    around = run.launchers.enclosing(np.sort(rows), run.call[kernels[lost]])
    owner[lost] = lookup(rows[ordered], around, ordered)
    known = owner >= 0
    start = np.concatenate([trace.start[rows], run.work_start[kernels[known]]])
    end = np.concatenate([trace.end[rows], run.work_end[kernels[known]]])
    of = np.concatenate([np.arange(len(rows)), owner[known]])
    order = np.lexsort((end, start, of))
    names = tuple(trace.names[code] for code in trace.name[rows].tolist())
    own_kernels = trace.work_rows[kernels[known]]
    identities = identities_of(trace, rows)
    if trace.told is not None:
        records = np.flatnonzero((trace.kind == Kind.OPERATOR) & trace.named(RECORD.__eq__))
        inside = lookup(rows[ordered], run.launchers.enclosing(np.sort(rows), records), ordered)
        telling, told_by = np.concatenate([own_kernels, records]), np.concatenate([owner[known], inside])
        for index, text in zip(told_by.tolist(), identities_of(trace, telling), strict=True):
            if index >= 0:
                identities[index] = identities[index] or text
    return Collectives(run, rows, names, start[order], end[order], of[order], own_kernels, owner[known], identities)


def _comparable(found: list[Collectives]) -> list[list[Collectives]]:
    """Groups of workers of one world size and session (stage, number), with distinct ranks or none known."""
    groups: dict[tuple[Any, tuple[str, int]], list[Collectives]] = {}
    for each in found:
        info = each.run.trace.metadata.get("distributedInfo")
        size = info.get("world_size") if isinstance(info, dict) else None
        if len(each.rows):
            session = each.run.worker.identity.session
            groups.setdefault((size if isinstance(size, int) else None, session), []).append(each)
    kept = []
    for group in groups.values():
        ranks = [each.run.worker.rank for each in group]
        if len(set(ranks)) == len(ranks) or set(ranks) == {None}:
            kept.append(group)
    return kept


def _overlap(run: Run) -> list[tuple[Any, ...]]:
    steps = run.steps
    compute = run.work_union(run.kernels & ~run.launchers.communicates) if run.kernels.any() else run.union(
        np.flatnonzero(run.launchers.operators & ~run.launchers.has_collective_name)
    )  # fmt: skip
    comm = run.work_union(run.launchers.communicates).union_with(run.union(run.collectives))
    covered = compute.union_with(comm)
    counted = np.flatnonzero(steps.counted)
    start, end = steps.start[counted], steps.end[counted]
    inside = [union.covered(end) - union.covered(start) for union in (compute, comm, covered)]
    overlap = inside[0] + inside[1] - inside[2]
    columns = [inside[0] - overlap, overlap, inside[1] - overlap, end - start - inside[2]]
    key = run.worker.key
    rows: list[tuple[Any, ...]] = [(steps.label[step], key, *(int(column[n]) for column in columns))
                                   for n, step in enumerate(counted.tolist())]  # fmt: skip
    if rows:
        rows.append(("all", key, *(int(column.sum()) / len(counted) for column in columns)))
    return rows


def transfers(query: Query) -> list[tuple[Any, ...]]:
    """Rows (step, worker, transfer ns, waiting ns); step "all": the mean over steps."""
    return _transfers(query, _compared(query)[0])


def transfers_by_run(query: Query) -> list[list[tuple[Any, ...]]]:
    """`transfers` of each run of several workers that can be compared."""
    return [_transfers(query, each) for each in _comparable(_compared(query)[0]) if len(each) > 1]


def _transfers(query: Query, found: list[Collectives]) -> list[tuple[Any, ...]]:
    starts = _compared(query)[1]
    return [row for each in one_by_one(query, found) if each.run.worker.key in starts
            for row in _transfer(each, starts[each.run.worker.key])]  # fmt: skip


def _transfer(found: Collectives, begins: I64) -> list[tuple[Any, ...]]:
    """Rows by step, of the collectives whose host event is within the step."""
    run, trace, steps = found.run, found.run.trace, found.run.steps
    host_start, host_end = trace.start[found.rows][found.of], trace.end[found.rows][found.of]
    rows: list[tuple[Any, ...]] = []
    counted = np.flatnonzero(steps.counted).tolist()
    for step in counted:
        # host_start is ascending
        near = slice(*np.searchsorted(host_start, (steps.start[step], steps.end[step] + 1)).tolist())
        inside = (host_end[near] <= steps.end[step]) & (begins[near] != INT_MISSING)
        end = found.end[near][inside]
        transferred = Intervals.union(begins[near][inside], end).total
        total = Intervals.union(found.start[near][inside], end).total
        rows.append((steps.label[step], run.worker.key, transferred, total - transferred))
    if rows:
        sums = [sum(row[column] for row in rows) / len(counted) for column in (2, 3)]
        rows.append(("all", run.worker.key, *sums))
    return rows


def _rows(found: Collectives, begins: I64 | None) -> list[tuple[Any, ...]]:
    sizes, told = _messages(found)
    rows = []
    for name in sorted(set(found.names)):
        which = np.array([each == name for each in found.names], np.bool_)
        calls, intervals = int(which.sum()), which[found.of]
        total = Intervals.union(found.start[intervals], found.end[intervals]).total
        size = int(sizes[which].sum())
        transferred, compared = None, 0
        if begins is not None:
            intervals &= begins != INT_MISSING
            compared = len(uniques(found.of[intervals]))
            transferred = Intervals.union(begins[intervals], found.end[intervals]).total if compared else None
        rows.append((found.run.worker.key, name, calls, size, size / calls, total, total / calls, transferred,
                     None if transferred is None else transferred / compared, *_told_of(told, which)))  # fmt: skip
    return sorted(rows, key=lambda row: (-row[5], row[1]))


def _told_of(told: Told, which: npt.NDArray[np.bool_]) -> tuple[Any, ...]:
    """Values of the columns `_TOLD` for some collectives; None unless all of them tell it (all the same size)."""
    indices = np.flatnonzero(which).tolist()
    found: list[Any] = []
    for sizes in (told.sent, told.received):
        known = [sizes[index] for index in indices]
        total = None if None in known else sum(each for each in known if each is not None)
        found.append(total if total is None or total <= _MOST_BYTES else None)
    group_sizes = {told.size[index] for index in indices}
    found.append(group_sizes.pop() if len(group_sizes) == 1 else None)
    for texts, joint in ((told.group, ", "), (told.ranks, "; ")):
        distinct = dict.fromkeys(texts[index] for index in indices)
        found.append(None if None in distinct else printable(joint.join(map(str, distinct))))
    return tuple(found)


def _messages(found: Collectives) -> tuple[I64, Told]:
    """Input bytes of each collective, from shapes and types, 0 for unknown types; and what is told of its messages."""
    trace = found.run.trace
    telling, places = _telling(found)
    arguments, messages = trace.collective_args_at(found.rows, telling)
    codes = uniques(np.concatenate((messages.group, messages.ranks))).tolist()
    texts = {code: compact(messages.texts[code]) for code in codes if code >= 0}

    def product(counts: I64) -> list[int | None]:
        return [None if place < 0 or counts[place] < 0 or messages.element_bytes[place] < 0
                else int(counts[place]) * int(messages.element_bytes[place]) for place in places.tolist()]  # fmt: skip

    def of_code(codes: npt.NDArray[np.int32]) -> list[str | None]:
        return [texts.get(int(codes[place])) if place >= 0 else None for place in places.tolist()]

    told = Told(
        product(messages.sent), product(messages.received),
        [None if place < 0 or messages.size[place] < 0 else int(messages.size[place]) for place in places.tolist()],
        of_code(messages.group), of_code(messages.ranks),
    )  # fmt: skip
    return _bytes(arguments), told


def _telling(found: Collectives) -> tuple[I64, I64]:
    """Rows of the events that tell of the messages of collectives, and for each collective the index of its event.

    It is the ``record_param_comms`` around it, else a kernel of it that has the arguments; -1: none.
    """
    run, trace, rows = found.run, found.run.trace, found.rows
    event = np.full(len(rows), -1, np.int64)
    with_arguments = trace.work["collective"][np.searchsorted(trace.work_rows, found.kernels)]
    event[found.kernel_of[with_arguments][::-1]] = found.kernels[with_arguments][::-1]
    records = np.flatnonzero((trace.kind == Kind.OPERATOR) & trace.named(RECORD.__eq__))
    around = run.launchers.enclosing(records, rows)
    # of collectives within one another, the outer one is what was recorded
    recorded, first = np.unique(around, return_index=True)
    event[first[recorded >= 0]] = recorded[recorded >= 0]
    telling = uniques(event[event >= 0])
    return telling, lookup(telling, event)


def _bytes(arguments: OperatorArgs) -> I64:
    size_of: dict[tuple[int, int], int] = {}
    sizes = []
    for codes in zip(arguments.dims.tolist(), arguments.types.tolist(), strict=True):
        if codes not in size_of:
            size_of[codes] = _size(*(arguments.texts[code] if code >= 0 else "[]" for code in codes))
        sizes.append(size_of[codes])
    return np.array(sizes, np.int64)


def _size(shapes: str, types: str) -> int:
    try:
        operands = list(zip(json.loads(shapes), json.loads(types), strict=False))
    except (ValueError, TypeError, RecursionError):
        return 0
    return sum(
        math.prod(shape) * ELEMENT_BYTES.get(kind, 0)
        for shape, kind in operands
        if isinstance(kind, str) and isinstance(shape, list) and all(isinstance(each, int) for each in shape)
    )
