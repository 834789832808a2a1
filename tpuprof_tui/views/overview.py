"""Where the time went, in a few figures."""

from __future__ import annotations

from tpuprof_tui.analysis.index.lane_index import starting_between
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.figures import UnitFigures
from tpuprof_tui.model import Severity
from tpuprof_tui.model.vocabulary import NAMES

from .answer import Answer, Fact, Target
from .query import Query


def overview(query: Query) -> Answer:
    """Length, counts, the busiest and the idlest unit, the most exposed transfer; what to know before reading on."""
    profile, words = query.profile, query.vocabulary
    shown, (start, end) = query.shown, query.window
    events = sum(starting_between(shown.indexes[number], start, end) for number in query.lanes)
    if not events:
        return Answer((Fact("total_us", "Total time", query.span, "duration"), Fact("events", "", 0, shown=False)),
                      notes=(words.say("No {events} start here."),))  # fmt: skip
    units = query.unit_figures
    guessed = any(shown.profile.lanes[number].role_guessed for number in query.lanes)
    facts = [Fact("total_us", "Total time", query.span, "duration")]
    if units:
        busiest, idlest = max(units, key=lambda each: each.busy), min(units, key=lambda each: each.busy)
        exposed = max(units, key=lambda each: each.exposed)
        facts += [
            _of_unit("busiest_us", f"Busiest {words.unit.one}", busiest, busiest.busy, guessed),
            _of_unit("idlest_us", f"Idlest {words.unit.one}", idlest, idlest.busy, guessed),
            _of_unit("exposed_transfer_us", "Exposed transfer", exposed, exposed.exposed, guessed),
        ]
        mean = sum(each.busy for each in units) / len(units)
        facts += [
            Fact("mean_busy_us", "Mean busy time", mean, "duration", guessed=guessed, shown=False),
            Fact("imbalance", "Most over mean", busiest.busy / mean if mean else None, "number", shown=False),
        ]
    facts += [
        Fact("events", words.event.plural, events, shown=False),
        Fact("launches", "launches", len(profile.scopes), shown=False),
        Fact("units", words.unit.plural, len(units), shown=False),
        Fact("lost_units", f"lost {words.unit.plural}", sum(each.lost for each in profile.groups), shown=False),
        Fact("problems", "problems", len(profile.problems), shown=False),
        Fact("errors", "errors", sum(each.severity is Severity.ERROR for each in profile.problems), shown=False),
    ]
    return Answer(tuple(facts), notes=tuple(_notes(query, guessed)))


def _of_unit(key: str, title: str, unit: UnitFigures, value: int, guessed: bool) -> Fact:
    share = value / unit.window if unit.window else None
    return Fact(key, title, value, "duration", unit.label, share, guessed=guessed,
                target=Target(scope=Scope(unit.unit)))  # fmt: skip


def _notes(query: Query, guessed: bool) -> list[str]:
    profile, vocabulary = query.profile, query.vocabulary
    notes = []
    if guessed:
        notes.append(vocabulary.phrase("guessed", "~ Work and waits are told apart by guesswork."))
    if vocabulary.capability(NAMES) is not None and not profile.has(NAMES):
        notes.append(vocabulary.say("Names of {scopes} and {operations} need ") + f"{vocabulary.needs(NAMES)}.")
    return notes
