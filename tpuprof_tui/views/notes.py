"""What somebody noted about a profile, as a table below its overview."""

from __future__ import annotations

from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.notes import Notes, NotesError, notes_path, read_notes

from .answer import Answer, Column, Table, Target
from .query import Query


def notes_of(query: Query) -> Notes:
    """Notes of a profile; none where they cannot be read: the explorer tells why."""
    path = notes_path(query.profile)
    try:
        return Notes() if path is None else read_notes(path)
    except NotesError:
        return Notes()


def with_notes(answer: Answer, query: Query) -> Answer:
    """An answer with a table of the notes more; the same where there are none."""
    table = notes_table(query)
    return answer if table is None else replace(answer, tables=(*answer.tables, table))


def notes_table(query: Query) -> Table | None:
    """Marks and kept spans by time, with what is written about them; None without any."""
    notes = notes_of(query)
    if not notes.any:
        return None
    texts = dict(notes.texts)
    marks = [(start, end, letter) for letter, start, end in notes.spans]
    marks += [(time, time, letter) for letter, time in notes.marks]
    marks.sort()
    columns = (Column("letter", "Mark", names=False), Column("start_us", "Start", "time"),
               Column("duration_us", "Duration", "duration"), Column("text", "Note", names=False))  # fmt: skip
    rows = [
        (letter, start, end - start if end > start else None, texts.get(letter, "")) for start, end, letter in marks
    ]
    return Table.of_rows(
        "notes", "Notes", columns, rows, word="note",
        target=lambda row: Target(time=(marks[row][0], max(marks[row][1], marks[row][0] + 1))),
        notes=(f"The filter that held: {notes.filter}",) if notes.filter else (),
    )  # fmt: skip
