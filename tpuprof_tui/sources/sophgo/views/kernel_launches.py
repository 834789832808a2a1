"""Durations of the launches of each kernel function or layer, and the work of each kind of engine in them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.model import INT_MISSING, Role, is_missing
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table, Target

Ints = npt.NDArray[np.int64]

_ENGINES: Final = ("TIU", "GDMA", "SDMA", "CDMA")
#: Of instructions with a forecast: how long they took, and were expected to take.
_FORECAST: Final = ("expected", "taken")
_TENSORS: Final = (Column("result", "Result"), Column("shape", "Shape"), Column("operands", "Operands", drop_first=9))
_SUMS: Final = ("count", "overlap", "wait", "bytes", "alg_ops", "uarch_ops", *_FORECAST)
_READ: Final = ("kernel", "role", "start", "end", "scope", "forecast", "bytes", "alg_ops", "uarch_ops")
_COLUMNS: Final = (
    Column("launches", "Launches", "count"), Column("cores", "Cores", "count"),
    Column("count", "Instructions", "count"), Column("total_us", "Total", "duration"),
    Column("mean_us", "Mean", "duration"), Column("min_us", "Min", "duration"), Column("max_us", "Max", "duration"),
    Column("share", "Share", "share"),
    *(Column(f"{engine.lower()}_us", engine, "duration") for engine in _ENGINES),
    Column("overlap_us", "Overlap", "duration"), Column("wait_us", "Wait", "duration"),
    Column("bytes", "Moved", "bytes"), Column("rate", "GB/s", "rate"), Column("alg_ops", "Alg ops", "count"),
    Column("uarch_ops", "uArch ops", "count"), Column("uarch_rate", "uArch rate", "share"),
    Column("first_us", "First start", "time"), Column("last_us", "Last end", "time"),
)  # fmt: skip


def kernel_launches(query: Query) -> Answer:
    """One row per kernel function or layer; only instructions that start in the window count.

    A launch lasts from its first start to its last end on all engines of its core. Overlap is the time in which both
    TIU and a DMA engine work for it; GB/s are bytes over the time of moves.
    """
    profile = query.profile
    names = profile.strings.get("kernel")
    if names is None or not len(profile.scopes):
        return Answer(missing=(Missing(query.vocabulary.say("Launches of {scopes} are not known here.")),))
    kernels, launches = len(names), len(profile.scopes)
    sums = {key: np.zeros(kernels, np.int64) for key in (*_SUMS, *_ENGINES)}
    first, last = np.full(launches, np.iinfo(np.int64).max), np.full(launches, -1, np.int64)
    work: dict[bool, list[tuple[Ints, Ints, Ints]]] = {True: [], False: []}
    for number in query.lanes:
        lane = profile.lanes[number]
        if "kernel" not in lane:
            continue
        events = query.events(_READ, [number])
        events = events.take(events["kernel"] >= 0)
        codes, role, start, end, scopes, expected = (events[key] for key in _READ[:6])
        took, works = end - start, role == Role.WORK
        parts = {"count": np.ones_like(took), "wait": took * (role == Role.WAIT), lane.kind: took * works,
                 "expected": np.maximum(expected, 0), "taken": took * (expected > 0)}  # fmt: skip
        parts |= {key: np.where(works & ~is_missing(events[key]), events[key], 0) for key in _READ[6:]}
        for key, values in parts.items():
            np.add.at(sums[key], codes, values)
        known = (scopes >= 0) & (scopes < launches)
        np.minimum.at(first, scopes[known], start[known])
        np.maximum.at(last, scopes[known], end[known])
        known &= works
        work[lane.kind == "TIU"].append((scopes[known], start[known], end[known]))
    np.add.at(sums["overlap"], profile.scopes.kernel, _overlap(work, first, last))
    ran = last >= 0
    total, (begin, stop) = Intervals.union(first[ran], last[ran]), query.window
    within_ns = total.between(begin, stop)
    words, length = query.vocabulary, max(stop - begin, 1)
    facts = (
        Fact("launched_us", words.say("In {scopes}"), within_ns, "duration", share=within_ns / length),
        Fact("outside_us", words.say("Outside of {scopes}"), stop - begin - within_ns, "duration",
             share=1 - within_ns / length),
    )  # fmt: skip
    return Answer(facts, (_table(query, sums, first, last),))


def _overlap(work: dict[bool, list[tuple[Ints, Ints, Ints]]], first: Ints, last: Ints) -> Ints:
    """Time in ns of each launch in which both TIU and a DMA engine work; ``work``: launch, start and end of each."""
    # launches lie one behind the other on an axis of their own, so that intervals of different ones do not merge
    edges = np.concatenate([[0], np.cumsum(np.maximum(last - first, 0))])
    none = np.zeros(0, np.int64)

    def covered(*sides: bool) -> Ints:
        parts = [part for side in sides for part in work[side]]
        scope, start, end = map(np.concatenate, zip((none, none, none), *parts, strict=True))
        shift = edges[scope] - first[scope]
        return np.diff(Intervals.union(start + shift, end + shift).covered(edges))

    return covered(True) + covered(False) - covered(True, False)


def _table(query: Query, sums: dict[str, Ints], first: Ints, last: Ints) -> Table:
    profile = query.profile
    ran = np.flatnonzero(last >= 0)
    lengths, kernels = last[ran] - first[ran], profile.scopes.kernel[ran].astype(np.int64)
    cores, whole = profile.scopes.group[ran], int(lengths.sum())
    table = profile.table("layers", -1)
    tensors = {} if table is None else dict(zip(
        table["kernel"].tolist(), zip(*(table.values(column.key) for column in _TENSORS), strict=True), strict=True
    ))  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for kernel in np.flatnonzero(sums["count"]).tolist():
        mine = np.flatnonzero(kernels == kernel)
        took = lengths[mine]
        total = int(took.sum())
        some = {key: int(values[kernel]) for key, values in sums.items()}
        spans = (total, total / len(mine), int(took.min()), int(took.max())) if len(mine) else (INT_MISSING,) * 4
        rows.append((
            profile.strings["kernel"][kernel], len(mine), len(uniques(cores[mine])), some["count"], *spans,
            total / whole if whole else None, *(some[engine] for engine in _ENGINES), some["overlap"], some["wait"],
            some["bytes"], some["bytes"] / moving if (moving := sum(some[engine] for engine in _ENGINES[1:])) else None,
            some["alg_ops"], some["uarch_ops"], some["alg_ops"] / some["uarch_ops"] if some["uarch_ops"] else None,
            int(first[ran[mine]].min()) if len(mine) else INT_MISSING,
            int(last[ran[mine]].max()) if len(mine) else INT_MISSING,
            *(tensors.get(kernel, ("",) * len(_TENSORS)) if tensors else ()),
            *(some[key] if some["expected"] else INT_MISSING for key in _FORECAST),
            some["taken"] / some["expected"] if some["expected"] else None,
        ))  # fmt: skip
    rows.sort(key=lambda row: -row[4])
    words = query.vocabulary
    forecast = (
        Column("forecast_us", "Forecast", "duration"),
        Column("taken_us", "Took", "duration", shown=False),
        Column("forecast_ratio", "Measured/forecast", "number"),
    )
    columns = (Column("name", words.say("{Scope}")), *_COLUMNS, *(_TENSORS if tensors else ()),
               *(forecast if any(sums["expected"]) else ()))  # fmt: skip
    rows = [row[: len(columns)] for row in rows]
    return Table.of_rows(
        "launched", words.say("{Scopes} by launch"), columns, rows, word=words.scope.one,
        target=lambda row: Target(condition=f'kernel="{rows[row][0]}"') if '"' not in rows[row][0] else None,
        notes=("Instructions that start in the range count whole; bytes of engines and cores are cut at its edges.",)
        if query.range is not None else (),
    )  # fmt: skip
