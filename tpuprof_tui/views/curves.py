"""Views of values over time (bandwidth, counters), and of the distribution of durations."""

from __future__ import annotations

import numpy as np

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.time_scale import edges_of
from tpuprof_tui.analysis.totals.chart_data import BINS, BOUNDS, ChartData, chart_data

from .answer import Answer, Column, Missing, Series, Table, Target


def bandwidth(query: Query) -> Answer:
    """Bandwidth by kind of lane, GB/s, in equal parts of the window."""
    data = _data(query)
    edges = edges_of(data.start, data.end, BINS)
    found = tuple(
        Series(kind, f"Bandwidth of {kind}", "GB/s", edges, values)
        for kind, values in data.bandwidth.items()
        if len(values) and values.max() > 0
    )
    return Answer(series=found) if found else Answer(missing=(Missing("No moved bytes are known here."),))


def durations(query: Query) -> Answer:
    """Histogram of the durations of work."""
    counts = _data(query).durations
    known = np.flatnonzero(counts)
    if not len(known):
        return Answer(missing=(Missing("No work here."),))
    bins = np.arange(known[0], known[-1] + 1)
    bounds = np.concatenate(([0], BOUNDS))
    upper = [int(BOUNDS[place]) if place < len(BOUNDS) else None for place in bins]
    columns = (
        Column("duration", "Duration"),
        Column("from_us", "From", "duration", shown=False),
        Column("to_us", "Below", "duration", shown=False),
        Column("count", query.vocabulary.say("{Events}"), "count", bar=True),
    )
    texts = [_between(int(low), high) for low, high in zip(bounds[bins], upper, strict=True)]

    def target(row: int) -> Target | None:
        below = "" if upper[row] is None else f" duration<{upper[row]}ns"
        return Target(condition=f"duration>={bounds[bins[row]]}ns{below}") if counts[bins[row]] else None

    values = (texts, bounds[bins], upper, counts[bins])
    return Answer(tables=(Table("durations", "Durations of work", columns, values, target),))


def _between(low: int, high: int | None) -> str:
    units = ("s", 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1)
    least, most = (next((f"{ns / size:g} {unit}" for unit, size in units if ns >= size), "") for ns in (low, high or 0))
    if high is None:
        return f"{least} and more"
    return f"{least} to {most}" if low else f"below {most}"


def counters(query: Query) -> Answer:
    """Counter samples within the selected range, or the time of the selected step; a filter does not narrow them."""
    profile, within = query.profile, query.profile.groups.within(query.scope.group)
    start, end = (None, None) if query.range is None and query.step is None else query.extent
    found = []
    for counter in profile.counters:
        if query.scope.group >= 0 and counter.group not in within:
            continue
        first = 0 if start is None else int(np.searchsorted(counter.times, start))
        last = len(counter.times) if end is None else int(np.searchsorted(counter.times, end))
        title = f"{profile.groups.title(counter.group)} {counter.name}".strip()
        found.append(Series(title, title, counter.unit, counter.times[first:last], counter.values[first:last]))
    if not found:
        return Answer(missing=(Missing("No counters were recorded."),))
    return Answer(series=tuple(found), notes=("Counters do not follow the filter.",) if query.condition else ())


def _data(query: Query) -> ChartData:
    key = (query.scope, query.extent, query.full_filter)
    return query.cache.get("charts", lambda: chart_data(query.work_indexes, *query.extent), key, limit=1)
