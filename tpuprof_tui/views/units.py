"""How units spent their time, and how one of them compares with the others."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.analysis.findings.unit_busy import unit_reason
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.figures import UnitFigures, unit_figures

from .answer import Answer, Column, Fact, Missing, Table, Target
from .query import Query

_COMMUNICATION: Final = (
    Column("communication_us", "Communication", "duration", spare=1),
    Column("exposed_communication_us", "Exposed comm.", "duration", spare=1),
)
_TOLD: Final = "Busy: compute or transfer. Exposed: transfer without compute."
_WITH_COMMUNICATION: Final = (
    "Busy: compute, transfer or communication. Exposed: transfer without the others; communication without compute."
)


def units(query: Query) -> Answer:
    """One row per unit."""
    shown, (start, end) = query.shown, query.window
    found = [unit_figures(shown.profile, shown.indexes, unit, start, end) for unit in query.units]
    communicates = any(each.communication for each in found)
    more, told = (_COMMUNICATION, _WITH_COMMUNICATION) if communicates else ((), _TOLD)
    columns = (
        Column("unit", query.vocabulary.say("{Unit}")), Column("utilisation", "Util", "share", bar=True),
        Column("busy_us", "Busy", "duration"), Column("compute_us", "Compute", "duration"),
        Column("transfer_us", "Transfer", "duration"), *more, Column("overlap_us", "Overlap", "duration", spare=3),
        Column("exposed_us", "Exposed", "duration"), Column("wait_us", "Wait", "duration", spare=4),
        Column("idle_us", "Idle", "duration", spare=2),
    )  # fmt: skip
    table = Table.of_rows(
        "units", query.vocabulary.say("{Units}"), columns, [_row(each, communicates) for each in found],
        target=lambda row: Target(scope=Scope(found[row].unit)), word=query.vocabulary.unit.one,
        guessed=frozenset(row for row, each in enumerate(found) if each.guessed),
        notes=(query.vocabulary.say(f"{told} Wait: waits and other commands alone. Idle: no {{event}} at all."),
               "Util: busy over total time."),
    )  # fmt: skip
    return Answer(_load(found, query), (table,))


def _row(each: UnitFigures, communicates: bool) -> tuple[object, ...]:
    more = (each.communication, each.exposed_communication) if communicates else ()
    return (each.label, each.utilisation, each.busy, each.compute, each.transfer, *more, each.overlap, each.exposed,
            each.wait, each.idle)  # fmt: skip


def _load(found: list[UnitFigures], query: Query) -> tuple[Fact, ...]:
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
        return Answer(missing=(Missing(query.vocabulary.say("This is about one {unit}."),
                                       do=query.vocabulary.say("Choose a {unit} (--group).")),))  # fmt: skip
    reason = unit_reason(query.shown, query.scope.group, *query.window)
    unit, window = reason.unit, reason.unit.window
    if not window:
        return Answer()

    def share(key: str, title: str, ns: int) -> Fact:
        return Fact(key, title, ns, "duration", share=ns / window, guessed=unit.guessed)

    facts = (
        Fact("busy_us", f"{unit.label} is busy", unit.busy, "duration", share=unit.utilisation, guessed=unit.guessed),
        Fact("place", query.vocabulary.say("Place among {units}"), reason.place if reason.units > 1 else None),
        Fact("mean_utilisation", query.vocabulary.say("Mean of {units}"), reason.mean, "share"),
        share("compute_us", "Computes", unit.compute),
        share("exposed_us", "Moves data alone", unit.exposed),
        share("wait_us", "Waits or synchronises", unit.wait),
        share("idle_us", "Nothing runs", unit.idle),
    )
    # a filter leaves more time with nothing than there was
    pauses = () if query.passes else reason.pauses
    tables = (
        Table.of_rows(
            "pauses", f"Longest pauses of {unit.label}",
            (Column("duration_us", "Length", "duration"), Column("start_us", "From", "time"),
             Column("what", "Meanwhile")),
            [(pause.end - pause.start, pause.start, pause.text) for pause in pauses],
            target=lambda row: Target(time=(pauses[row].start, pauses[row].end)), word="pause",
        ),
        Table.of_rows(
            "differences", "Work beyond the mean",
            (Column("delta_us", "Beyond", "duration"), Column("name", "Name")),
            [(ns, label) for label, ns in reason.differences],
        ),
    )  # fmt: skip
    return Answer(facts, tables)
