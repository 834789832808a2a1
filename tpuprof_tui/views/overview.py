"""View of the overview: where the time went, in a few figures; and of the user's notes."""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.notes import Notes, NotesError, notes_path, read_notes
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import Severity
from tpuprof_tui.model.vocabulary import NAMES

from .answer import Answer, Column, Fact, Table, Target


def overview(query: Query) -> Answer:
    """Length, counts, busiest and idlest unit, most exposed transfer, and caveats."""
    profile, words = query.profile, query.vocabulary
    events = query.event_count
    if not events:
        return Answer((Fact("total_us", "Total time", query.span, "duration"), Fact("events", "", 0, shown=False)),
                      notes=(words.say("No {events} start here."),))  # fmt: skip
    figures = query.headline
    units, guessed = figures.units, figures.guessed
    facts = [Fact("total_us", "Total time", query.span, "duration")]
    busiest, idlest, exposed = figures.busiest, figures.idlest, figures.most_exposed
    if busiest is not None and idlest is not None and exposed is not None:
        several = len(units) > 1
        facts += [
            Fact(key, title, value, "duration", unit.label, value / unit.window if unit.window else None,
                 guessed=guessed, target=Target(scope=Scope(unit.unit)), shown=several or key != "idlest_us")
            for key, title, unit, value in (
                ("busiest_us", f"Busiest {words.unit.one}" if several else "Busy", busiest, busiest.busy),
                ("idlest_us", f"Idlest {words.unit.one}", idlest, idlest.busy),
                ("exposed_transfer_us", "Exposed transfer", exposed, exposed.exposed),
            )
        ]  # fmt: skip
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
    notes = [words.phrase("guessed", "~ Work and waits are distinguished by heuristics.")] if guessed else []
    if words.capability(NAMES) is not None and not profile.has(NAMES):
        notes.append(words.say("Names of {scopes} and {operations} need ") + f"{words.needs(NAMES)}.")
    return Answer(tuple(facts), notes=tuple(notes))


def with_notes(answer: Answer, query: Query) -> Answer:
    """Adds a table of the user's notes to an answer, if there are any."""
    table = notes_table(query)
    return answer if table is None else replace(answer, tables=(*answer.tables, table))


def notes_table(query: Query) -> Table | None:
    """Marks and spans by time, with their texts; None if there are none or they cannot be read."""
    path, notes = notes_path(query.profile), Notes()
    if path is not None:
        with suppress(NotesError):
            notes = read_notes(path)
    if not notes.any:
        return None
    texts = dict(notes.texts)
    marks = [(start, end, letter) for letter, start, end in notes.spans]
    marks += [(time, time, letter) for letter, time in notes.marks]
    marks.sort()
    columns = (Column("letter", "Mark", is_key=False), Column("start_us", "Start", "time"),
               Column("duration_us", "Duration", "duration"), Column("text", "Note", is_key=False))  # fmt: skip
    rows = [
        (letter, start, end - start if end > start else None, texts.get(letter, "")) for start, end, letter in marks
    ]
    return Table.of_rows(
        "notes", "Notes", columns, rows, word="note",
        target=lambda row: Target(time=(marks[row][0], max(marks[row][1], marks[row][0] + 1))),
        notes=(f"The filter that held: {notes.filter}",) if notes.filter else (),
    )  # fmt: skip
