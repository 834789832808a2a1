"""Distributed view: computation and communication of the workers of a run, their collectives and process groups."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.events import frame_of
from tpuprof_tui.analysis.pivot import Frame, GroupBy, any_true, key, mean_known, most, pivot, rows, total, total_known
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import INT_MISSING, Activity
from tpuprof_tui.model.group import Worker
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.table import Table as Records
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.columns import I64
from tpuprof_tui.views.answer import Answer, Column, Missing, Table, Target

from ..categories import Kind, is_operator
from ..records import RecordedTrace, numbered
from .worker_events import WorkerEvents, is_collective, not_narrowed, worker_by_worker

#: Larger sums are not known.
_MOST_BYTES: Final = (1 << 63) - 1
#: Characters of joined texts.
_LONGEST: Final = 1 << 16
#: What newer files tell of collectives.
_TOLD: Final = (
    Column("input_bytes", "Input", "bytes", drop_first=2), Column("output_bytes", "Output", "bytes", drop_first=3),
    Column("group_size", "Ranks of group", "count", drop_first=4), Column("group", "Group", is_key=False, drop_first=5),
    Column("ranks", "Ranks", is_key=False, drop_first=6),
)  # fmt: skip


class Collectives(Struct, frozen=True, eq=False):
    """The collectives of a worker by start, with the intervals of each: its host event and its kernels."""

    worker: Worker
    #: start, end: int64 ns of the host events.
    start: I64
    end: I64
    names: list[str]
    identities: list[str]  #: What identifies each collective among those of all ranks; empty if nothing does
    intervals: Frame  #: ``collective`` (index), ``start``, ``end``; by collective, then start

    @property
    def of(self) -> I64:
        """Index of the collective of each interval."""
        return self.intervals["collective"]


def distributed(query: Query) -> Answer:
    """The distributed view."""
    found, starts, missing = _compared(query)
    if not found:
        missing = [*missing, Missing("No worker communicates.", "a run of several workers")]
    rows: list[tuple[Any, ...]] = []
    overlap: list[tuple[Any, ...]] = []
    transfer_rows: list[tuple[Any, ...]] = []
    group_rows: list[tuple[Any, ...]] = []
    several = {each.worker.key for group in _comparable(found) if len(group) > 1 for each in group}
    for each, events in zip(found, worker_by_worker(query, [each.worker for each in found]), strict=True):
        events = events.in_worker
        chosen = events.rows(events.table("collectives"))
        begins = starts.get(each.worker.key)
        rows += _rows(events, each, begins, chosen)
        world = events.recorded.distributed.get("world_size")
        group_rows += rows_by_group(each.worker.key, events.table("collectives"), each.names, each.intervals,
                                    begins if each.worker.key in several else None, chosen,
                                    world if type(world) is int else None)  # fmt: skip
        overlap += _overlap(events)
        transfer_rows += [] if begins is None else _transfer(events, each, begins, chosen)
    groups = {each.worker.key: each.worker.group for each in found}
    told = [column.shown and any(row[place] is not None for row in group_rows)
            for place, column in enumerate(GROUP_COLUMNS)]  # fmt: skip

    def worker(of: list[tuple[Any, ...]], row: int) -> Target:
        return Target(scope=Scope(groups[of[row][1]]))

    def named(of: list[tuple[Any, ...]], name: int, row: int) -> Target:
        return Target(condition=text_condition("name", of[row][name]), scope=Scope(groups[of[row][0]]))

    return not_narrowed(query, Answer(
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
            Table.of_rows("groups", "By process group", [replace(column, shown=shown) for column, shown in
                                                         zip(GROUP_COLUMNS, told, strict=True)], group_rows,
                          notes=(NOTE, *([GUESSED] if any(row[-1] for row in group_rows) else [])),
                          target=partial(named, group_rows, 2)),
            Table.of_rows("collectives", "Collectives", (
                Column("worker", "Worker"), Column("name", "Name", filter_column="name"),
                Column("calls", "Calls", "count"),
                Column("bytes", "Bytes", "bytes", zero_unknown=True),
                Column("mean_bytes", "Mean", "bytes", zero_unknown=True),
                Column("total_us", "Total", "duration", bar=True), Column("mean_us", "Mean", "duration"),
                Column("transfer_us", "Transfer", "duration"),
                Column("mean_transfer_us", "Mean transfer", "duration"),
                *(replace(column, shown=any(row[place] is not None for row in rows))
                  for place, column in enumerate(_TOLD, 9)),
            ), rows, target=partial(named, rows, 1)),
        ),
        notes=("One worker alone: all of its collectives count as transfer.",) if len(found) == 1 else (),
        missing=tuple(missing),
    ), "Collectives")  # fmt: skip


def _compared(query: Query) -> tuple[list[Collectives], dict[str, I64], list[Missing]]:
    """Collectives of the workers that communicate, start of transfer of their intervals, and what is unknown."""

    def compare() -> tuple[list[Collectives], dict[str, I64], list[Missing]]:
        found = [each for events in worker_by_worker(query) if (each := _collectives_of(events)) is not None]
        return found, *_transfer_starts(found)

    return query.cache.get("collectives", compare, query.top_group)


def _collectives_of(events: WorkerEvents) -> Collectives | None:
    """The collectives of a worker; None if it does not communicate."""
    table = events.table("collectives")
    if not len(table):
        work = events.whole.frame("stream", "activity")
        if not (work["activity"] == Activity.COMMUNICATION).any():
            return None
    names, identities = ([text or "" for text in table.values(key)] for key in ("name", "identity"))
    intervals = frame_of(events.table("intervals"), ("collective", "start", "end"))
    return Collectives(events.worker, table["start"], table["end"], names, identities, intervals)


def _transfer_starts(found: list[Collectives]) -> tuple[dict[str, I64], list[Missing]]:
    """For each worker the start of transfer of each interval; and messages for what cannot be compared.

    Transfer is the shortest duration over the workers, ending with the interval; the rest is waiting. ``INT_MISSING``:
    not known, as for a collective that one of several workers recorded alone.
    """
    starts: dict[str, I64] = {}
    missing: list[Missing] = []
    for group in _comparable(found):
        codes = _codes(group)
        names = ", ".join(each.worker.key for each in group)
        if codes is None:
            missing.append(Missing(f"The collectives of {names} are not the same in the same order: their transfer "
                                   "time is not known.", "recordings of the same steps"))  # fmt: skip
            continue
        begins = _begins(group, codes)
        starts |= {each.worker.key: begin for each, begin in zip(group, begins, strict=True)}
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
            own, each.names, np.bincount(each.of, minlength=len(each.names)).tolist(), strict=True) if not text]
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
    intervals = [np.bincount(each.of, minlength=len(each.names)) for each in group]
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
        np.minimum.at(shortest, places[-1], each.intervals["end"] - each.intervals["start"])
    return [np.where(known[own[each.of]], each.intervals["end"] - shortest[place], INT_MISSING)
            for own, each, place in zip(codes, group, places, strict=True)]  # fmt: skip


def _comparable(found: list[Collectives]) -> list[list[Collectives]]:
    """Groups of workers of one world size and session (stage, number), with distinct ranks or none known."""
    groups: dict[tuple[Any, ...], list[Collectives]] = {}
    for each in found:
        recorded: RecordedTrace = each.worker.recorded
        size = recorded.distributed.get("world_size")
        if len(each.names):
            key = size if isinstance(size, int) else None, recorded.stage, recorded.session
            groups.setdefault(key, []).append(each)
    kept = []
    for group in groups.values():
        ranks = [each.worker.rank for each in group]
        if len(set(ranks)) == len(ranks) or set(ranks) == {None}:
            kept.append(group)
    return kept


def _overlap(events: WorkerEvents) -> list[tuple[Any, ...]]:
    """Rows by counted step, ns: computation alone, overlap, communication alone, neither; "all": the mean."""
    start, end = events.step_spans
    work, host = events.ran("stream", "activity"), events.ran("thread", "name", "type", "kind")
    collective = is_collective(host)
    if events.recorded.has_kernels:
        compute = events.union(work, work["activity"] == Activity.COMPUTE)
    else:
        compute = events.union(host, (host["kind"] == Kind.OPERATOR) & host.has("name", is_operator) & ~collective)
    comm = events.union(work, work["activity"] == Activity.COMMUNICATION).union_with(events.union(host, collective))
    inside = [union.covered(end) - union.covered(start) for union in (compute, comm, compute.union_with(comm))]
    overlap = inside[0] + inside[1] - inside[2]
    columns = [inside[0] - overlap, overlap, inside[1] - overlap, end - start - inside[2]]
    key, labels = events.worker.key, [events.steps.label[step] for step in events.counted.tolist()]
    rows: list[tuple[Any, ...]] = [(label, key, *(int(column[n]) for column in columns))
                                   for n, label in enumerate(labels)]  # fmt: skip
    if rows:
        rows.append(("all", key, *(int(column.sum()) / len(rows) for column in columns)))
    return rows


def transfers_by_run(query: Query) -> list[list[tuple[Any, ...]]]:
    """Rows (step, worker, transfer ns, waiting ns) of each run of several workers that can be compared.

    Step "all" is the mean over steps.
    """
    found, starts, _ = _compared(query)
    several = (group for group in _comparable(found) if len(group) > 1)
    return [
        [row for each, events in zip(group, worker_by_worker(query, [each.worker for each in group]), strict=True)
         for row in _transfer(events.in_worker, each, starts[each.worker.key], np.arange(len(each.names)))]
        for group in ([each for each in group if each.worker.key in starts] for group in several)
    ]  # fmt: skip


def _transfer(events: WorkerEvents, found: Collectives, begins: I64, chosen: I64) -> list[tuple[Any, ...]]:
    steps, key, intervals = events.steps, found.worker.key, found.intervals
    host_start, host_end = found.start[found.of], found.end[found.of]
    known = (begins != INT_MISSING) & np.isin(found.of, chosen)
    rows: list[tuple[Any, ...]] = []
    for step in events.counted.tolist():
        # host_start is ascending
        near = slice(*np.searchsorted(host_start, (steps.start[step], steps.end[step] + 1)).tolist())
        inside = (host_end[near] <= steps.end[step]) & known[near]
        end = intervals["end"][near][inside]
        transferred = Intervals.union(begins[near][inside], end).total
        total = Intervals.union(intervals["start"][near][inside], end).total
        rows.append((steps.label[step], key, transferred, total - transferred))
    if rows:
        rows.append(("all", key, *(sum(row[column] for row in rows) / len(rows) for column in (2, 3))))
    return rows


def _rows(events: WorkerEvents, found: Collectives, begins: I64 | None, chosen: I64) -> list[tuple[Any, ...]]:
    table, intervals = events.table("collectives"), found.intervals
    rows = []
    for name in sorted({found.names[index] for index in chosen.tolist()}):
        which = chosen[[found.names[index] == name for index in chosen.tolist()]]
        own = np.isin(found.of, which)
        total = Intervals.union(intervals["start"][own], intervals["end"][own]).total
        size, calls = sum(table.take("bytes", which).tolist()), len(which)
        transferred, compared = None, 0
        if begins is not None:
            own &= begins != INT_MISSING
            compared = len(uniques(found.of[own]))
            transferred = Intervals.union(begins[own], intervals["end"][own]).total if compared else None
        rows.append((found.worker.key, name, calls, size, size / calls, total, total / calls, transferred,
                     None if transferred is None else transferred / compared, *_told(table, which)))  # fmt: skip
    return sorted(rows, key=lambda row: (-row[5], row[1]))


def _told(table: Records, which: I64) -> tuple[Any, ...]:
    """Values of the columns `_TOLD` for some collectives; None unless all of them tell it (all the same size)."""
    found: list[Any] = []
    for each in ("sent", "received"):
        known = table.take(each, which)
        total = None if (known == INT_MISSING).any() else sum(known.tolist())
        found.append(total if total is None or total <= _MOST_BYTES else None)
    sizes = uniques(table.take("size", which)).tolist()
    found.append(sizes[0] if len(sizes) == 1 and sizes[0] != INT_MISSING else None)
    for each, joint in (("process_group", ", "), ("ranks", "; ")):
        distinct = list(dict.fromkeys(table.values(each, which)))
        found.append(None if None in distinct else joint.join(map(str, distinct))[:_LONGEST])
    return tuple(found)


# Collectives of a rank by process group: bandwidth as nccl-tests define it, and how long before the last rank it
# came.
#
# Algorithm bandwidth is the size of the message over the time; bus bandwidth what each link has to carry of it, which
# can be compared with what it can: by `_FACTORS` of n ranks. The size is the whole output of an all-gather, the whole
# input of a reduce-scatter. Time is the transfer where ranks can be compared, else all of the kernel.

GROUP_COLUMNS: Final = (
    Column("worker", "Worker"), Column("group", "Group"), Column("name", "Name", filter_column="name"),
    Column("ranks", "Ranks", "number", drop_first=3, guess="ranks_guessed"), Column("calls", "Calls", "count"),
    Column("bytes", "Message", "bytes", drop_first=2), Column("time_us", "Time", "duration", bar=True),
    Column("algorithm_gb_per_s", "Alg. GB/s", "number", drop_first=4),
    Column("bus_gb_per_s", "Bus GB/s", "number", guess="ranks_guessed"),
    Column("skew_us", "Skew", "duration"), Column("max_skew_us", "Max skew", "duration", drop_first=1),
    Column("ranks_guessed", "Ranks guessed", "flag", shown=False),
)  # fmt: skip
NOTE: Final = ("Bus GB/s: what each link carries, as nccl-tests count it. Skew: how long the rank was in it before the "
               "last one came, on average.")  # fmt: skip
GUESSED: Final = "~ The file does not tell the ranks of the group: it may have fewer than the world."


def _all_but_own(ranks: int) -> float:
    return (ranks - 1) / ranks


#: What links carry of the size of a message, by the beginning of the collective's name; of n ranks.
_FACTORS: Final[tuple[tuple[str, Callable[[int], float]], ...]] = (
    ("all_reduce", lambda ranks: 2 * _all_but_own(ranks)), ("allreduce", lambda ranks: 2 * _all_but_own(ranks)),
    ("all_gather", _all_but_own), ("allgather", _all_but_own), ("reduce_scatter", _all_but_own),
    ("all_to_all", _all_but_own), ("alltoall", _all_but_own), ("gather", _all_but_own), ("scatter", _all_but_own),
    ("broadcast", lambda _: 1.0), ("reduce", lambda _: 1.0), ("send", lambda _: 1.0), ("recv", lambda _: 1.0),
)  # fmt: skip


def rows_by_group(
    worker: str, table: Records, names: list[str], intervals: Frame, begins: I64 | None, chosen: I64, world: int | None
) -> list[tuple[Any, ...]]:
    """Rows of `GROUP_COLUMNS` of some collectives of a worker, those that took longest first.

    Args:
        worker, table, names, intervals: Of the worker.
        begins: Start of transfer of each interval, ``INT_MISSING``: not known; None: of none.
        chosen: Rows of the collectives.
        world: Number of ranks where a collective does not tell that of its group; None: unknown.
    """
    time, skew = _times(table, intervals, begins)
    group = list(table.values("process_group", chosen))
    own = [names[row] for row in chosen.tolist()]
    stated = table.take("size", chosen)
    guessed = (stated == INT_MISSING) & (world is not None)
    ranks = np.where(guessed, world or 0, stated)
    sizes = (table.take(column, chosen).tolist() for column in ("sent", "received", "bytes"))
    told = np.array(list(map(_message, own, *sizes, ranks.tolist())), np.int64).reshape(-1, 2)
    codes = np.arange(len(chosen), dtype=np.int64)
    frame = Frame(
        {"group": np.where([text is None for text in group], -1, codes).astype(np.int64), "name": codes,
         "ranks": ranks, "bytes": told[:, 0], "bus": told[:, 1], "time": time[chosen], "skew": skew[chosen],
         "guessed": guessed.astype(np.int64),
         "timed": np.where(told[:, 0] == INT_MISSING, INT_MISSING, time[chosen])},
        {"group": group, "name": own},
    ).with_texts("group").with_texts("name")  # fmt: skip
    found = pivot(frame, ("group", "name", "ranks"), {
        "group": key("group", None), "name": key("name"), "ranks": lambda groups: groups.values("ranks"),
        "calls": rows, "bytes": total_known("bytes"), "time": total("time"), "algorithm": _rate("bytes"),
        "bus": _rate("bus"), "skew": mean_known("skew"), "most": most("skew"), "guessed": any_true("guessed"),
    }, ("-time", "name"))  # fmt: skip
    return [(worker, *row) for row in found]


def _rate(name: str) -> Callable[[GroupBy], list[float | None]]:
    """GB/s of the messages of known size."""

    def values(groups: GroupBy) -> list[float | None]:
        parts, times = (groups.reduce(groups.frame[column]).tolist() for column in (name, "timed"))
        return [part / time if part and time else None for part, time in zip(parts, times, strict=True)]

    return values


def _times(table: Records, intervals: Frame, begins: I64 | None) -> tuple[I64, I64]:
    """Time of each collective and how long it waited for the last rank (``INT_MISSING``: not known), ns.

    Of its kernels; of the host event where it has none.
    """
    of, start, end = intervals["collective"], intervals["start"], intervals["end"]
    on_host = (start == table["start"][of]) & (end == table["end"][of])
    with_kernels = np.bincount(of[~on_host], minlength=len(table)) > 0
    used = ~(on_host & with_kernels[of])
    of, start, end = of[used], start[used], end[used]
    begin = start if begins is None else begins[used]
    known = (begin != INT_MISSING) & (begins is not None)
    time, waited = np.zeros(len(table), np.int64), np.zeros(len(table), np.int64)
    np.add.at(time, of, end - np.where(known, begin, start))
    np.add.at(waited, of, np.where(known, begin - start, 0))
    return time, np.where(np.bincount(of[known], minlength=len(table)) > 0, waited, INT_MISSING)


def _message(name: str, sent: int, received: int, shapes: int, ranks: int) -> tuple[int, int]:
    """Size of a collective's message and what links carry of it, bytes; ``INT_MISSING``: unknown.

    ``shapes``: bytes by the shapes of its inputs, 0: unknown.
    """
    kind = name.rpartition(":")[2].strip("_").lower()
    factor = next((factor for word, factor in _FACTORS if kind.startswith(word)), None)
    gathers = kind.startswith(("all_gather", "allgather"))
    size = received if gathers else sent if sent != INT_MISSING else shapes or INT_MISSING
    known = factor is not None and size != INT_MISSING and ranks > 0
    return size, round(size * factor(ranks)) if known and factor is not None else INT_MISSING
