"""Memory view: memory over time, its peaks, lifetimes of allocations, and memory by operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.events import frame_of
from tpuprof_tui.analysis.pivot import Frame, GroupBy, key, pivot, total
from tpuprof_tui.analysis.pivot import rows as count
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.chrome.columns import I64, lookup
from tpuprof_tui.sources.chrome.nesting import Nesting
from tpuprof_tui.views.answer import Answer, Column, Fact, Table, Target, plain_value

from ..records import GPU_TYPES
from ..vocabulary import MEMORY
from .worker_events import WorkerEvents, not_narrowed, of_workers, ratio

UNKNOWN: Final = "<unknown>"
BEFORE: Final = "<before recording>"
_BYTES: Final = (
    Column("device", "Device"), Column("operator", "Operator", filter_column="name"), Column("calls", "Calls", "count"),
    Column("increase_bytes", "Increase", "bytes"), Column("self_increase_bytes", "Own increase", "bytes"),
    Column("allocations", "Allocations", "count"), Column("self_allocations", "Own allocations", "count"),
    Column("allocated_bytes", "Allocated", "bytes", bar=True),
    Column("self_allocated_bytes", "Own allocated", "bytes", bar=True),
)  # fmt: skip


def memory(query: Query) -> Answer:
    """The memory view."""
    return not_narrowed(query, of_workers(query, _memory, MEMORY), "Peaks of memory and memory over time", ("filter",))


def _memory(events: WorkerEvents) -> Answer:
    table = events.table("memory")
    keys = ("start", "device", "device_type", "device_id", "change", "address", "allocated", "reserved", "operator",
            "event")  # fmt: skip
    of_filter = np.zeros(len(table), np.bool_)
    of_filter[events.with_query(range=None, step=None).rows(table)] = True
    every = frame_of(table, keys).with_columns(selected=of_filter)
    inside = in_time(events, every["start"])
    reserved = every["reserved"] != INT_MISSING
    points = every.take(inside & (every["address"] != INT_MISSING) & (every["allocated"] != INT_MISSING)
                        & (reserved | (not reserved.any())))  # fmt: skip
    capacities = {str(each.get("id")): each.get("totalGlobalMem") for each in events.recorded.devices}
    rows: list[tuple[Any, ...]] = []
    peaks: list[tuple[str, int, int]] = []
    for name, here in by_device(points):
        kind, number = int(here["device_type"][0]), int(here["device_id"][0])
        capacity = capacities.get(str(number)) if kind in GPU_TYPES else None
        allocated = here["allocated"]
        rows.append((name, len(here), int(allocated.max()), plain_value(int(here["reserved"].max())), capacity))
        peaks.append((name, int(here["start"][allocated.argmax()]), rows[-1][2]))
    curve = points.take(GroupBy(points, ["device_type", "device_id"]).index.argsort(kind="stable"))
    names = [curve.texts["device"][code] for code in curve["device"].tolist()]
    # allocations held at a peak may precede the selected range
    lives = _lifetimes(every)
    within = lives if inside.all() else _lifetimes(every.take(inside))
    return Answer(
        (Fact("records", "Records", int((inside & of_filter).sum())),),
        (
            Table.of_rows("devices", "Devices", (
                Column("device", "Device"), Column("points", "Points", "count"),
                Column("peak_allocated_bytes", "Peak allocated", "bytes"),
                Column("peak_reserved_bytes", "Peak reserved", "bytes"), Column("capacity_bytes", "Capacity", "bytes"),
            ), rows, target=lambda row: Target(time=(peaks[row][1], peaks[row][1] + 1))),
            _held_at_peak(lives.take(lives["selected"]), peaks, filtered=not of_filter.all()),
            _statistics(events, every.take(inside & (every["event"] >= 0))),
            _allocations(within.take(within["selected"])),
            Table("curve", "Over time", (
                Column("device", "Device"), Column("time_us", "Time", "time"),
                Column("allocated_bytes", "Allocated", "bytes"), Column("reserved_bytes", "Reserved", "bytes"),
            ), (names, *(curve[key] for key in ("start", "allocated", "reserved")))),
        ),
    )  # fmt: skip


def in_time(events: WorkerEvents, times: I64) -> npt.NDArray[np.bool_]:
    """Mask of the times in the range, and in the selected step of the host."""
    steps, window = events.steps, events.query.range
    inside = np.ones(len(times), np.bool_) if window is None else (times >= window[0]) & (times < window[1])
    if events.query.step is not None:
        inside &= np.logical_or.reduce([(times >= steps.host_start[step]) & (times < steps.host_end[step])
                                        for step in np.flatnonzero(events.chosen)], initial=False)  # fmt: skip
    return np.asarray(inside)


def by_device(instants: Frame) -> Iterator[tuple[str, Frame]]:
    """Memory instants of each device, with its name, by type and id."""
    groups = GroupBy(instants, ["device_type", "device_id"])
    for group, name in enumerate(key("device")(groups)):
        yield str(name), instants.take(groups.index == group)


def _statistics(events: WorkerEvents, instants: Frame) -> Table:
    host = events.whole.frame("thread", "name", "lane", "row", "host_total")
    operators = host.take(host["host_total"] != INT_MISSING)
    start, end, lane = operators["start"], operators["end"], operators["lane"]
    nesting = Nesting(start, end, lane)
    numbers = events.query.session.offsets[lane] + operators["row"]
    place = lookup(numbers, instants["event"])
    instants, place = instants.take(place >= 0), place[place >= 0]
    selected = np.flatnonzero(events.in_worker.selects(operators))
    groups = GroupBy(operators.take(selected), ["name"])
    rows: list[tuple[Any, ...]] = []
    for device, here in by_device(instants.with_columns(place=place)):
        change = np.where(here["change"] == INT_MISSING, 0, here["change"])
        columns = []
        for values in (change, (change > 0).astype(np.int64), np.maximum(change, 0)):
            own = np.zeros(len(operators), np.int64)
            np.add.at(own, here["place"], values)
            columns += [groups.reduce(nesting.total(own)[selected]), groups.reduce(own[selected])]
        found = np.flatnonzero(np.stack(columns).any(axis=0)) if groups.count else np.zeros(0, np.int64)
        labels = key("name")(groups)
        rows += zip([device] * len(found), [labels[number] for number in found.tolist()], groups.sizes[found].tolist(),
                    *(each[found].tolist() for each in columns), strict=True)  # fmt: skip
    rows.sort(key=lambda row: (row[0], -row[8], -row[7], row[1]))
    return Table.of_rows("statistics", "By operator", _BYTES, rows)


def _lifetimes(instants: Frame) -> Frame:
    """Lifetimes of allocations: a positive change allocates an address, others release it.

    Returns:
        Texts ``device`` and ``operator`` (the allocating operator; missing if unknown), ``size`` in bytes, ``begin``
        and ``end``, ns, missing if allocated before the recording, or never released; ``selected`` of the allocation,
        and ``until`` when it may be held: its address may be allocated again.
    """
    # group by address; the stable sort keeps the order by time
    chosen = instants.take(instants["address"] != INT_MISSING)
    chosen = chosen.take(np.argsort(chosen["address"], kind="stable"))
    change = np.where(chosen["change"] == INT_MISSING, 0, chosen["change"])
    opens = change > 0
    again = chosen["address"][1:] == chosen["address"][:-1]
    was_open = np.r_[np.zeros(min(1, len(chosen)), np.bool_), again & opens[:-1]]
    ends = np.flatnonzero(was_open)
    released = ends[~opens[ends]]
    # lost: allocated again, or never released: no end; strays: released without allocation: no begin
    over = ends[opens[ends]]
    kept = np.flatnonzero(opens & np.r_[~again, np.ones(min(1, len(chosen)), np.bool_)])
    lost = np.r_[over - 1, kept]
    strays = np.flatnonzero(~opens & ~was_open)
    opener, time = np.r_[released - 1, lost, strays], chosen["start"]
    stray = np.arange(len(opener)) >= len(opener) - len(strays)
    return Frame({
        "device": chosen["device"][opener], "operator": np.where(stray, -1, chosen["operator"][opener]),
        "size": np.r_[-change[released], change[lost], -change[strays]],
        "begin": np.where(stray, INT_MISSING, time[opener]),
        "end": np.r_[time[released], np.full(len(lost), INT_MISSING), time[strays]],
        "until": np.r_[time[released], time[over], np.full(len(kept), np.iinfo(np.int64).max), time[strays]],
        "selected": chosen["selected"][opener],
    }, chosen.texts)  # fmt: skip


def _held_at_peak(lives: Frame, peaks: list[tuple[str, int, int]], *, filtered: bool) -> Table:
    """Memory held at the peak of each device (name, ns, bytes), by allocating operator."""
    at = {name: time for name, time, _ in peaks}
    rows: list[tuple[Any, ...]] = []
    begin = lives["begin"]
    for name, time, peak in peaks:
        alive = (begin != INT_MISSING) & (begin <= time) & (lives["until"] > time)
        held = lives.take(alive & lives.has("device", name.__eq__))
        found = pivot(held, ["operator"], {"operator": key("operator", UNKNOWN), "size": total("size"), "calls": count},
                      ("-size", "operator"))  # fmt: skip
        rows += [(name, operator, size, calls, ratio(size, peak)) for operator, size, calls in found]
        if not filtered and (rest := peak - int(held["size"].sum())) > 0:
            rows.append((name, BEFORE, rest, None, ratio(rest, peak)))
    return Table.of_rows("held", "Held at the peak", (
        Column("device", "Device"), Column("operator", "Operator"), Column("bytes", "Bytes", "bytes", bar=True),
        Column("allocations", "Allocations", "count"), Column("share", "Share", "share"),
    ), rows, target=lambda row: Target(time=(at[rows[row][0]], at[rows[row][0]] + 1)), ordered=True)  # fmt: skip


def _allocations(lives: Frame) -> Table:
    begin, end = lives["begin"], lives["end"]
    order = np.lexsort((lives["operator"], np.where(end == INT_MISSING, 0, end),
                        np.where(begin == INT_MISSING, -1, begin), lives["device"], -lives["size"]))  # fmt: skip
    duration = np.where((begin == INT_MISSING) | (end == INT_MISSING), INT_MISSING, end - begin)
    texts = [[lives.texts[name][code] if code >= 0 else UNKNOWN for code in lives[name][order].tolist()]
             for name in ("device", "operator")]  # fmt: skip
    return Table("events", "Events", (
        Column("device", "Device"), Column("operator", "Operator"), Column("bytes", "Bytes", "bytes", bar=True),
        Column("allocated_at_us", "Allocated", "time"), Column("released_at_us", "Released", "time"),
        Column("duration_us", "Duration", "duration"),
    ), (*texts, lives["size"][order], begin[order], end[order], duration[order]))  # fmt: skip
