"""How units spent their time, and how one of them compares with the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tpuprof_tui.analysis.findings.unit_busy import unit_reason
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.figures import UnitFigures

from .answer import Answer, Column, Fact, Missing, Table, Target
from .query import Query

_COMMUNICATION: Final = (
    Column("communication_us", "Communication", "duration", spare=3),
    Column("exposed_communication_us", "Exposed comm.", "duration", spare=3),
)
_TOLD: Final = "Busy: compute or transfer. Exposed: transfer without compute."
_WITH_COMMUNICATION: Final = (
    "Busy: compute, transfer or communication. Exposed: transfer without the others; communication without compute."
)


def units(query: Query) -> Answer:
    """One row per unit."""
    found = query.unit_figures
    communicates = any(each.communication for each in found)
    more, told = (_COMMUNICATION, _WITH_COMMUNICATION) if communicates else ((), _TOLD)
    exposed = ("exposed_us", "exposed_communication_us") if communicates else ("exposed_us",)
    parts = ("compute_us", *exposed, "wait_us", "idle_us")
    columns = (
        Column("unit", query.vocabulary.say("{Unit}")), Column("utilisation", "Util", "share", bar=True, parts=parts),
        Column("busy_us", "Busy", "duration"), Column("compute_us", "Compute", "duration", spare=2),
        Column("transfer_us", "Transfer", "duration", spare=1), *more,
        Column("overlap_us", "Overlap", "duration", spare=6), Column("exposed_us", "Exposed", "duration"),
        Column("wait_us", "Wait", "duration", spare=5), Column("idle_us", "Idle", "duration", spare=4),
    )  # fmt: skip
    waits = query.vocabulary.phrase("waits", "Wait: waits alone.")
    table = Table.of_rows(
        "units", query.vocabulary.say("{Units}"), columns, [_row(each, communicates) for each in found],
        target=lambda row: Target(scope=Scope(found[row].unit)), word=query.vocabulary.unit.one,
        guessed=frozenset(row for row, each in enumerate(found) if each.guessed),
        notes=(query.vocabulary.say(f"{told} {waits} Idle: no {{event}} at all."),
               "Util: busy over total time."),
    )  # fmt: skip
    return Answer(_load(found, query), (table,))


def _row(each: UnitFigures, communicates: bool) -> tuple[object, ...]:
    more = (each.communication, each.exposed_communication) if communicates else ()
    return (each.label, each.utilisation, each.busy, each.compute, each.transfer, *more, each.overlap, each.exposed,
            each.wait, each.idle)  # fmt: skip


def _load(found: Sequence[UnitFigures], query: Query) -> tuple[Fact, ...]:
    """How evenly they are loaded; nothing of a single one."""
    mean = sum(each.utilisation for each in found) / len(found) if found else 0.0
    if len(found) < 2 or not mean:
        return ()
    most, least = max(found, key=lambda each: each.busy), min(found, key=lambda each: each.busy)
    guessed = any(each.guessed for each in found)
    return (
        Fact("mean_utilisation", "Mean load", mean, "share", guessed=guessed),
        Fact("most_utilisation", "Most", most.utilisation, "share", most.label, guessed=guessed,
             target=Target(scope=Scope(most.unit))),
        Fact("least_utilisation", "Least", least.utilisation, "share", least.label, guessed=guessed,
             target=Target(scope=Scope(least.unit))),
        Fact("most_over_mean", "Most over mean", most.utilisation / mean, "number", guessed=guessed, unit="x"),
    )  # fmt: skip


def one_unit(query: Query) -> Answer:
    """How the unit of the scope spent its time, its longest pauses, and how it differs from the others."""
    if query.scope.lane >= 0 or query.scope.group not in query.profile.units:
        say = query.vocabulary.say
        return Answer(
            missing=(Missing(say("This is about one {unit}."), do=say("Choose a {unit}: --group, or the tree.")),)
        )
    reason = unit_reason(query.shown, query.scope.group, *query.window)
    unit, window = reason.unit, reason.unit.window
    if not window:
        return Answer()

    # a filter leaves more time with nothing than there was
    pauses = () if query.passes else reason.pauses

    def share(key: str, title: str, ns: int) -> Fact:
        return Fact(key, title, ns, "duration", share=ns / window, guessed=unit.guessed)

    facts = (
        Fact("busy_us", f"{unit.label} is busy", unit.busy, "duration", share=unit.utilisation, guessed=unit.guessed),
        Fact("place", "Place", reason.place if reason.units > 1 else None, unit=f"of {reason.units}"),
        Fact("mean_utilisation", query.vocabulary.say("Mean of {units}"), reason.mean, "share"),
        share("compute_us", "Computes", unit.compute),
        share("exposed_us", "Moves data alone", unit.exposed),
        share("wait_us", "Waits or synchronises", unit.wait),
        share("idle_us", "Nothing runs", unit.idle),
        *(
            Fact(
                "longest_pause_us",
                "Longest pause",
                each.end - each.start,
                "duration",
                each.text,
                target=Target(time=(each.start, each.end)),
            )
            for each in pauses[:1]
        ),
        *(
            Fact("most_beyond_us", "Most beyond the mean" if ns > 0 else "Most below the mean", ns, "duration", label)
            for label, ns in reason.differences[:1]
        ),
    )
    tables = (
        Table.of_rows(
            "pauses", f"Longest pauses of {unit.label}",
            (Column("duration_us", "Length", "duration"), Column("start_us", "From", "time"),
             Column("what", "Meanwhile")),
            [(pause.end - pause.start, pause.start, pause.text) for pause in pauses],
            target=lambda row: Target(time=(pauses[row].start, pauses[row].end)), word="pause", brief=(),
        ),
        Table.of_rows(
            "differences", "Work beyond the mean",
            (Column("delta_us", "Beyond", "duration"), Column("name", "Name")),
            [(ns, label) for label, ns in reason.differences], brief=(),
        ),
    )  # fmt: skip
    return Answer(facts, tables)
