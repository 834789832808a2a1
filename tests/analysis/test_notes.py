"""Notes are kept in a file and read back, whatever stands there; a place is a command line that leads there."""

from __future__ import annotations

import json
import shlex

import pytest
from msgspec.structs import replace
from profiles import make_lane, make_profile, session_of

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.analysis.selecting.moves import at_place, place_of, place_words, toggle_mark, toggle_span
from tpuprof_tui.analysis.selecting.notes import Notes, NotesError, notes_path, read_notes, set_note_text, write_notes
from tpuprof_tui.analysis.selecting.state import DisplayState, Place, Scope, SelectedItem
from tpuprof_tui.cli.main import build_parser
from tpuprof_tui.errors import TpuprofError
from tpuprof_tui.views.registry import ask

PROFILE = make_profile([make_lane("TIU", core, starts=[0, 400], ends=[300, 1000]) for core in range(2)])
VIEW = DisplayState.of(0, 1000)


def test_notes_are_read_back_and_told_with_the_overview(tmp_path):
    view = set_note_text(toggle_span(toggle_mark(VIEW.at(500), "a"), "b", 100, 300), "a", "late: core 1")
    view = replace(view, filter="dur>1us")
    notes = Notes.of(view)
    profile = replace(PROFILE, path=str(tmp_path))
    path = notes_path(profile)
    assert path == tmp_path / ".tpuprof-notes.json"
    assert read_notes(path) == Notes()
    assert [table.key for table in ask(profile, "overview").tables].count("notes") == 0
    write_notes(path, notes)
    assert read_notes(path) == notes
    assert notes.applied_to(VIEW) == replace(view, cursor=VIEW.cursor)
    table = ask(profile, "overview").table("notes")
    assert [list(row) for row in table.rows()] == [["b", 100, 200, ""], ["a", 500, None, "late: core 1"]]
    # of a capture that is a file, beside it; of standard input nowhere
    (tmp_path / "x.json").touch()
    assert notes_path(replace(PROFILE, path=str(tmp_path / "x.json"))) == tmp_path / ".x.json.tpuprof-notes.json"
    assert notes_path(replace(PROFILE, path="-")) is None
    # what is marked no more has no text
    assert toggle_mark(view, "a").texts == ()


def test_what_is_no_note_is_passed_over(tmp_path):
    path = tmp_path / "notes.json"
    letters = [{"letter": letter, "time_ns": time, "text": text} for letter, time, text in (
        ("a", 10, "x" * 9999), ("ab", 10, ""), ("\x1b", 10, ""), ("c", 1 << 70, ""), ("d", True, ""), ("e", 5000, 3),
    )]  # fmt: skip
    spans = [{"letter": "s", "start_ns": 5, "end_ns": 5}, {"letter": "t", "start_ns": 1, "end_ns": 7}, 3]
    path.write_text(json.dumps({"schema": "1.9", "marks": letters, "spans": spans, "filter": 7}))
    notes = read_notes(path)
    assert notes == Notes((("a", 10), ("e", 5000)), (("t", 1, 7),), (("a", "x" * 2000),), "")
    # what lies outside of the capture is not shown
    assert notes.applied_to(VIEW).marks == (("a", 10),)
    for text in ("", "[]", "{}", "[" * 100_000, '{"schema": "2.0"}', '{"schema": "1.0"}' + " " * (1 << 20)):
        path.write_text(text)
        with pytest.raises(NotesError):
            read_notes(path)
    with pytest.raises(NotesError):
        read_notes(tmp_path)


def test_a_command_line_leads_to_the_same_place():
    session = session_of(PROFILE)
    core = PROFILE.groups.numbered(1)
    state = replace(VIEW, range=(250, 450), scope=Scope(core), selection=SelectedItem(core, 1, 1), filter="dur>=1")
    place = place_of(session, state, state.range)
    words = shlex.split(place_words("/captures/my run", place))
    assert words == ["tpuprof", "/captures/my run", "--range", "250ns..450ns", "--core", "1", "--filter", "dur>=1",
                     "--select", "Core 1 TIU:1"]  # fmt: skip
    given = build_parser("open").parse_args(words[1:])
    asked = Place(given.range, given.core, "", given.filter, given.select)
    shown = at_place(session, VIEW, asked)
    assert (shown.range, shown.scope, shown.selection, shown.filter) == (
        state.range, state.scope, state.selection, state.filter)  # fmt: skip
    assert (shown.start, shown.end) == (250, 450)
    assert place_of(session, shown, shown.range) == place
    assert place_words("x", place_of(session, VIEW, None)) == "tpuprof x"
    assert place_words("x", Place(unit_number=3), against="a b") == "tpuprof x --core 3 --against 'a b'"


@pytest.mark.parametrize("place", [
    Place(range="5us..6us"), Place(range="b..a"), Place(unit_number=7), Place(group="no"), Place(filter="("),
    Place(select="Core 9 TIU:0"), Place(select="Core 0 TIU:2"), Place(select="Core 0 TIU:x"), Place(select="0"),
])  # fmt: skip
def test_a_place_that_is_not_there_is_told(place):
    with pytest.raises(TpuprofError):
        at_place(query_of(PROFILE).session, VIEW, place)
