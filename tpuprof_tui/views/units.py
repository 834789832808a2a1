"""Views of units and lanes: how they spent their time, and one unit compared with the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tpuprof_tui.analysis.evidence.unit_pauses import longest_pauses, work_differences
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.figures import LaneFigures, UnitFigures, lane_figures, unit_figures

from .answer import Answer, Column, Fact, Missing, Table, Target

_COMMUNICATION: Final = (
    Column("communication_us", "Communication", "duration", drop_first=3),
    Column("exposed_communication_us", "Exposed comm.", "duration", drop_first=3),
)
_DEFINITIONS: Final = "Busy: compute or transfer. Exposed: transfer without compute."
_WITH_COMMUNICATION: Final = (
    "Busy: compute, transfer or communication. Exposed: transfer without the others; communication without compute."
)


def units(query: Query) -> Answer:
    """Table of units, and facts about the balance of their load."""
    found = query.unit_figures
    ranks = {each.unit: _rank(query, each.unit) for each in found}
    communicating = {ranks[each.unit] for each in found if each.communication}
    communicates = bool(communicating)
    more, definitions = (_COMMUNICATION, _WITH_COMMUNICATION) if communicates else ((), _DEFINITIONS)
    exposed = ("exposed_us", "exposed_communication_us") if communicates else ("exposed_us",)
    parts = ("compute_us", *exposed, "wait_us", "idle_us")
    columns = (
        Column("unit", query.vocabulary.say("{Unit}")), Column("utilisation", "Util", "share", bar=True, parts=parts),
        Column("busy_us", "Busy", "duration"), Column("compute_us", "Compute", "duration", drop_first=2),
        Column("transfer_us", "Transfer", "duration", drop_first=1), *more,
        Column("overlap_us", "Overlap", "duration", drop_first=6), Column("exposed_us", "Exposed", "duration"),
        Column("wait_us", "Wait", "duration", drop_first=5), Column("idle_us", "Idle", "duration", drop_first=4),
    )  # fmt: skip
    known = {each.unit: (each.communication, each.exposed_communication) if ranks[each.unit] in communicating
             else (None, None) for each in found if communicates}  # fmt: skip
    rows = [(each.label, each.utilisation, each.busy, each.compute, each.transfer, *known.get(each.unit, ()),
             each.overlap, each.exposed, each.wait, each.idle) for each in found]  # fmt: skip
    waits = query.vocabulary.phrase("waits", "Wait: only waits.")
    hidden = ", or only filtered ones" if query.full_filter else ""
    table = Table.of_rows(
        "units", query.vocabulary.say("{Units}"), columns, rows,
        target=lambda row: Target(scope=Scope(found[row].unit)), word=query.vocabulary.unit.one,
        guessed=frozenset(row for row, each in enumerate(found) if each.guessed),
        notes=(query.vocabulary.say(f"{definitions} {waits} Idle: no {{event}} at all{hidden}."),
               "Util: busy over the device's time."),
    )  # fmt: skip
    return Answer(_load(found, query), (table,))


def _rank(query: Query, unit: int) -> int:
    """The group of a unit's rank, whose own report has no columns of communication without any; -1: no ranks."""
    top = query.profile.groups.top(unit)
    return -1 if top == unit else top


def _load(found: Sequence[UnitFigures], query: Query) -> tuple[Fact, ...]:
    mean = sum(each.utilisation for each in found) / len(found) if found else 0.0
    if not mean:
        return ()
    guessed = any(each.guessed for each in found)
    average = Fact("mean_utilisation", "Mean load", mean, "share", guessed=guessed, shown=len(found) > 1)
    if len(found) < 2:
        return (average,)
    most, least = max(found, key=lambda each: each.busy), min(found, key=lambda each: each.busy)
    return (
        average,
        Fact("most_utilisation", "Most", most.utilisation, "share", most.label, guessed=guessed,
             target=Target(scope=Scope(most.unit))),
        Fact("least_utilisation", "Least", least.utilisation, "share", least.label, guessed=guessed,
             target=Target(scope=Scope(least.unit))),
        Fact("most_over_mean", "Most over mean", most.utilisation / mean, "number", guessed=guessed, unit="x"),
    )  # fmt: skip


def one_unit(query: Query) -> Answer:
    """The selected unit: its times, its longest pauses, and its differences from the other units."""
    if query.scope.lane >= 0 or query.scope.group not in query.profile.units:
        say = query.vocabulary.say
        return Answer(
            missing=(Missing(say("This is about one {unit}."), do=say("Choose {a_unit}: --group, or the tree.")),)
        )
    shown = query.filtered_session
    (unit,) = query.unit_figures
    busy = [shown.indexes.by_unit[each].busy.between(*query.window) for each in shown.profile.groups.peers(unit.unit)]
    window = unit.window
    if not window:
        return Answer()
    mean = sum(busy) / window / len(busy)
    # with a filter, gaps between the remaining events would be reported as pauses
    pauses = () if query.full_filter else longest_pauses(shown, unit.unit, *query.window)
    beyond = work_differences(shown, unit.unit, *query.window, unit.utilisation < mean)

    def share(key: str, title: str, ns: int) -> Fact:
        return Fact(key, title, ns, "duration", share=ns / window, guessed=unit.guessed)

    rank = 1 + sum(each > unit.busy for each in busy) if len(busy) > 1 else None
    facts = [
        Fact("busy_us", f"{unit.label} is busy", unit.busy, "duration", share=unit.utilisation, guessed=unit.guessed),
        Fact("place", "Place", rank, unit=f"of {len(busy)}"),
        Fact("mean_utilisation", query.vocabulary.say("Mean of {units}"), mean, "share"),
        share("compute_us", "Computes", unit.compute),
        share("exposed_us", "Only moves data", unit.exposed),
        *(
            [share("exposed_communication_us", "Only communicates", unit.exposed_communication)]
            if unit.communication
            else []
        ),
        share("wait_us", "Waits or synchronises", unit.wait),
        share("idle_us", "Idle or filtered out" if query.full_filter else "Nothing runs", unit.idle),
    ]
    if query.full_filter:
        idle = unit_figures(query.session, unit.unit, *query.window_of(unit.unit)).idle
        facts.append(share("filtered_out_us", "Of it, filtered out", max(unit.idle - idle, 0)))
    for each in pauses[:1]:
        facts.append(Fact("longest_pause_us", "Longest pause", each.end - each.start, "duration", each.text,
                          target=Target(time=(each.start, each.end), scope=query.scope)))  # fmt: skip
    for label, ns in beyond[:1]:
        title = "Most beyond the mean" if ns > 0 else "Most below the mean"
        facts.append(Fact("most_beyond_us", title, ns, "duration", label))
    tables = (
        Table.of_rows(
            "pauses", f"Longest pauses of {unit.label}",
            (Column("duration_us", "Length", "duration"), Column("start_us", "From", "time"),
             Column("what", "Meanwhile")),
            [(pause.end - pause.start, pause.start, pause.text) for pause in pauses],
            target=lambda row: Target(time=(pauses[row].start, pauses[row].end), scope=query.scope), word="pause",
            brief=(),
        ),
        Table.of_rows(
            "differences", "Work beyond the mean",
            (Column("delta_us", "Beyond", "duration"), Column("name", "Name")),
            [(ns, label) for label, ns in beyond], brief=(),
        ),
    )  # fmt: skip
    return Answer(tuple(facts), tables)


def lanes(query: Query) -> Answer:
    """Table of lanes with events, and table of sums by kind of lane."""
    profile, words = query.profile, query.vocabulary
    found = [
        (number, lane_figures(index, *query.window_of(-1, number)))
        for number, index in query.lane_indexes.items()
        if len(profile.lanes[number])
    ]
    kinds: dict[str, list[LaneFigures]] = {}
    for number, each in found:
        kinds.setdefault(profile.lanes[number].kind, []).append(each)
    titles = {kind.key: kind.title for kind in words.lane_kinds}
    summed = [LaneFigures.sum_of(each) for each in kinds.values()]
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
        Column("busy_us", "Busy", "duration"), Column("wait_us", "Wait", "duration", drop_first=1),
        Column("sync_us", "Sync", "duration", drop_first=4), Column("idle_us", "Idle", "duration", drop_first=3),
        Column("bytes", "Moved", "bytes", drop_first=2), Column("bandwidth", "GB/s", "rate"),
    )  # fmt: skip
    rows = [
        (*name, each.count, each.utilisation, each.busy, each.wait, each.sync, each.idle, each.bytes,
         each.bytes / each.busy if each.bytes is not None and each.busy else None)
        for name, each in zip(names, figures, strict=True)
    ]  # fmt: skip
    # without moved bytes there is no such column
    rate = " GB/s: bytes moved over busy time." if any(row[-1] is not None for row in rows) else ""
    return Table.of_rows(
        key, title, columns, rows, target=targets.__getitem__, word=query.vocabulary.lane.one, brief=brief,
        guessed=frozenset(row for row, each in enumerate(figures) if each.guessed),
        notes=(query.vocabulary.say("Count: {events}.") + rate,) if key == "lanes" else (),
    )  # fmt: skip
