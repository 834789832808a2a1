"""How lanes spent their time, one by one and by kind."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.figures import LaneFigures, lane_figures

from .answer import Answer, Column, Table, Target
from .query import Query


def lanes(query: Query) -> Answer:
    """One row per lane with events, and one per kind of lane."""
    shown, profile, words = query.shown, query.profile, query.vocabulary
    found = [
        (number, lane_figures(shown.indexes[number], *query.window))
        for number in query.lanes
        if len(profile.lanes[number])
    ]
    kinds: dict[str, list[LaneFigures]] = {}
    for number, each in found:
        kinds.setdefault(profile.lanes[number].kind, []).append(each)
    titles = {kind.key: kind.title for kind in words.lane_kinds}
    summed = [LaneFigures.summed(each) for each in kinds.values()]
    alone = len(kinds) == len(found)
    return Answer(tables=(
        _table("lanes", words.say("{Lanes}"), query, [each for _, each in found],
               [(profile.title_of(profile.lanes[number]), profile.lanes[number].kind) for number, _ in found],
               [Target(scope=Scope(lane=number)) for number, _ in found], brief=None if alone else ()),
        _table("kinds", words.say("Kinds of {lanes}, sums"), query, summed,
               [(titles.get(kind, kind), kind) for kind in kinds],
               [Target(condition=f"engine={kind}") for kind in kinds], brief=() if alone else None),
    ))  # fmt: skip


def _table(
    key: str, title: str, query: Query, figures: Sequence[LaneFigures], names: Sequence[tuple[str, str]],
    targets: Sequence[Target], *, brief: tuple[int, ...] | None,
) -> Table:  # fmt: skip
    columns = (
        Column("lane", query.vocabulary.say("{Lane}")), Column("kind", "Kind", shown=False),
        Column("count", "Count", "count"), Column("utilisation", "Util", "share", bar=True),
        Column("busy_us", "Busy", "duration"), Column("wait_us", "Wait", "duration", spare=1),
        Column("sync_us", "Sync", "duration", spare=4), Column("idle_us", "Idle", "duration", spare=3),
        Column("bytes", "Moved", "bytes", spare=2), Column("bandwidth", "GB/s", "rate"),
    )  # fmt: skip
    rows = [
        (*name, each.count, each.utilisation, each.busy, each.wait, each.sync, each.idle, each.bytes,
         each.bytes / each.busy if each.bytes is not None and each.busy else None)
        for name, each in zip(names, figures, strict=True)
    ]  # fmt: skip
    return Table.of_rows(
        key, title, columns, rows, target=targets.__getitem__, word=query.vocabulary.lane.one, brief=brief,
        guessed=frozenset(row for row, each in enumerate(figures) if each.guessed),
        notes=(query.vocabulary.say("Count: {events}. GB/s: bytes moved over busy time."),) if key == "lanes" else (),
    )  # fmt: skip
