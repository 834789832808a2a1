"""What is marked and written in the explorer is in a file, and there when it is opened again; a place opens."""

from __future__ import annotations

import shlex

from profiles import make_lane, make_profile
from screen import explorer, frame, press, settled

from tpuprof_tui.analysis.selecting.notes import Notes, read_notes
from tpuprof_tui.analysis.selecting.state import Place
from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.cli.main import parsed

PROFILE = make_profile([make_lane("TIU", 0, starts=[0, 400], ends=[300, 1000])])


async def opened_with(keys: list[str], **options) -> tuple[ExplorerScreen, str, str]:
    """The explorer after some keys, what is shown, and what was copied."""
    app = TpuprofApp(profile=PROFILE, ascii_only=True, **options)
    async with app.run_test(size=(200, 30)) as pilot:
        while not isinstance(app.screen, ExplorerScreen):
            await pilot.pause(0.01)
        await settled(pilot)
        for each in keys:
            await press(pilot, each)
        screen = explorer(pilot)
        return screen, frame(app), app.clipboard


async def test_notes_are_kept_and_there_again(tmp_path):
    path = tmp_path / "notes.json"
    note = "colon " + " ".join("note a late".replace(" ", "_")).replace("_", "space") + " enter"
    written, _, _ = await opened_with(["m a", note], notes=str(path))
    notes = read_notes(path)
    assert notes == Notes.of(written.state)
    assert notes.texts == (("a", "late"),)
    again, _, copied = await opened_with(["colon p l a c e enter"], notes=str(path), place=Place(range="300ns..600ns"))
    assert Notes.of(again.state) == notes
    assert (again.state.start, again.state.end, again.state.range) == (300, 600, (300, 600))
    assert copied == "tpuprof /nowhere/synthetic --range 300ns..600ns"
    # the last mark taken away leaves none in the file
    await opened_with(["apostrophe a", "m a"], notes=str(path))
    assert read_notes(path) == Notes()


async def test_the_copied_command_opens_scope_filter_range_event_and_view():
    place = Place("100ns..900ns", group="Core 0/TIU", filter="name~'it''s; $(a)' or dur>1ns", select="Core 0 TIU:1",
                  view="lanes")  # fmt: skip
    screen, _, opened = await opened_with(["1 at"], place=place)
    given = parsed("open", shlex.split(opened)[1:])
    assert Place(given.range, given.core, given.group, given.filter, given.select, given.view) == place
    assert (screen.state.scope.lane, screen.state.selection.row, screen.summary.answers.chosen) == (0, 1, "lanes")
    _, _, printed = await opened_with(["3 at"], place=place)
    assert shlex.split(printed)[:4] == ["tpuprof", "report", "/nowhere/synthetic", "lanes"]
    _, told, _ = await opened_with([], place=Place(view="nothing"))
    assert "views are" in told


async def test_what_cannot_be_kept_is_told(tmp_path):
    marked, told, _ = await opened_with(["m a"], notes=str(tmp_path / "missing" / "notes.json"))
    assert "Notes are kept until tpuprof ends" in told
    assert marked.state.marks
    foreign = tmp_path / "foreign.json"
    foreign.write_text("[]")
    _, told, _ = await opened_with([], notes=str(foreign))
    assert "is not a notes file" in told
    _, told, _ = await opened_with([], place=Place(unit_number=9))
    assert "The capture has no core 9" in told
    assert foreign.read_text() == "[]"
