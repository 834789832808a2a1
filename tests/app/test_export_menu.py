"""The export menu on the screen: what it offers, what its keys write, and what is shown while a file is written."""

from __future__ import annotations

import asyncio
import csv
import json
import re
import shutil
import sys
from contextlib import asynccontextmanager

import pytest
from exporting import SAMPLE, copied, sample, slow_program
from msgspec.structs import replace
from profiles import make_profile, session_of, small_profile
from screen import explorer, frame, opened, press, settled

import tpuprof_tui
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, Sort
from tpuprof_tui.analysis.selecting.state import SelectedItem as EventSelection
from tpuprof_tui.analysis.steps.step_figures import step_span
from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.overlays.export import ExportMenu
from tpuprof_tui.app.settings.actions import ACTIONS
from tpuprof_tui.app.shell import exports
from tpuprof_tui.app.shell.messages import ChangeState
from tpuprof_tui.export.outputs import explorer_outputs
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.sources.catalog import Catalog
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY

# -- the menu -------------------------------------------------------------------


KINDS = explorer_outputs(VOCABULARY)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_the_menu_shows_kinds_choices_and_folder(tmp_path, monkeypatch, size):
    async with sample(tmp_path, monkeypatch, size=size) as pilot:
        await press(pilot, "x")
        assert pilot.app.screen.has_class("export")
        text = frame(pilot.app)
        for kind in KINDS:
            assert kind.title in text
        for words in ("the whole capture", "only the core", "./aks_decode_mode2_profile_out", "Esc or q closes"):
            assert words in text
        await press(pilot, "q")
        assert isinstance(pilot.app.screen, ExplorerScreen)


WRITTEN = {
    "w": "PerfWeb/result.html", "p": "perfetto.pftrace", "s": "summary.txt", "r": "tiuRegInfo_0.txt",
    "c": "instructions.csv", "j": "instructions.jsonl", "t": "instructions.parquet",
}  # fmt: skip


async def test_each_key_writes_its_file_one_after_another_while_the_menu_stays_open(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    program, begin = tmp_path / "later", tmp_path / "begin"
    program.write_text(f'#!/bin/sh\nuntil [ -e {begin} ]; do sleep 0.02; done\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    async with sample(tmp_path, monkeypatch) as pilot:
        await press(pilot, "x")
        await pilot.press(*WRITTEN)
        await pilot.pause()
        assert pilot.app.screen.has_class("export")
        assert frame(pilot.app).count(" waits") == len(WRITTEN) - 1
        begin.touch()
        await settled(pilot)
        text = frame(pilot.app)
        assert text.count("written, ") == len(WRITTEN)
        assert "Written:" in text
        assert re.search(r"Wrote ./aks_decode_mode2_profile_out/.* (KiB|MiB|B)\b", text)
        for file in WRITTEN.values():
            assert (tmp_path / "aks_decode_mode2_profile_out" / file).stat().st_size
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, ExplorerScreen)


async def test_the_workbook_of_one_core_in_the_window(tmp_path, monkeypatch):
    async with sample(tmp_path, monkeypatch) as pilot:
        await press(pilot, "j j w w")
        state = explorer(pilot).state
        await press(pilot, "x o v")
        assert "core 0, the window of" in frame(pilot.app)
        await pilot.press("x")
        await settled(pilot)
        with (tmp_path / "aks_decode_mode2_profile_out" / "PerfDoc" / "PerfAI_output.csv").open() as file:
            rows = list(csv.DictReader(file))
        lanes = tpuprof_tui.open_profile(SAMPLE).lanes_of(0)
        inside = sum(int(((lane["start"] >= state.start) & (lane["start"] < state.end)).sum()) for lane in lanes)
        assert len(rows) == inside > 0


async def test_the_table_is_written_as_it_is_shown(tmp_path, monkeypatch):
    async with sample(tmp_path, monkeypatch) as pilot:
        await press(pilot, "j j j j o w w w 2 v")
        screen = explorer(pilot)
        assert screen.state.scope.group >= 0
        assert screen.state.in_window
        screen.change(ChangeState(lambda view: replace(
            view, sort=Sort("duration", down=True), columns=("name", "duration", "bytes", "engine", "order"),
            percent=True, filter="dur>200",
        )))  # fmt: skip
        await settled(pilot)
        order, session = screen.table.rows.order, screen.session
        await press(pilot, "x")
        assert "filter dur>200, by Duration, largest first, 6 columns" in pilot.app.screen.pane.menu.table_text()
        await pilot.press("j")
        await settled(pilot)
        text = (tmp_path / "aks_decode_mode2_profile_out" / "instructions.jsonl").read_text()
        rows = [json.loads(line) for line in text.splitlines()]
        names = "name|duration|share|bytes|engine|order"
        assert list(rows[0]) == names.split("|")
        wanted = []
        for number in order.tolist():
            lane, row = session.locate(number)
            start, end = session.span_of(lane, row)
            wanted.append(
                (session.profile.lanes[lane].kind, end - start, int(session.profile.lanes[lane]["order"][row]))
            )
        assert [(row["engine"], row["duration"], row["order"]) for row in rows] == wanted
        assert len({engine for engine, _, _ in wanted}) > 1


async def test_the_window_of_a_chosen_step_is_told_as_the_step():
    async with opened(tpuprof_tui.open_profile(SAMPLE.parent / "torch_cuda_synthetic"), (160, 48)) as pilot:
        await press(pilot, "colon s t e p space 1 enter 2 v x v")
        assert pilot.app.screen.has_class("export")
        menu = pilot.app.screen.pane.menu
        assert menu.state.in_window
        start, end = step_span(menu.session, 1)
        words = f"the {time_text(end - start)} of step 1, filter step=1"
        assert words in menu.table_text()
        assert words.split(",")[0] in menu.selection_text()
        assert "the window of" not in frame(pilot.app)
        # a part of it is a window
        await press(pilot, "q 1 w x")
        assert "the window of" in pilot.app.screen.pane.menu.table_text()


async def test_cores_are_typed_and_judged(tmp_path, monkeypatch):
    async with sample(tmp_path, monkeypatch) as pilot:
        await press(pilot, "x n 9 enter")
        assert "The capture has no core 9" in frame(pilot.app)
        await press(pilot, "ctrl+u")
        await pilot.press(*"1,3", "enter")
        await settled(pilot)
        assert "[x] only some cores" in frame(pilot.app)
        assert "Write  cores 1, 3" in frame(pilot.app)
        await pilot.press("r")
        await settled(pilot)
        out = tmp_path / "aks_decode_mode2_profile_out"
        assert sorted(path.name for path in out.glob("tiu*")) == ["tiuRegInfo_1.txt", "tiuRegInfo_3.txt"]


async def test_the_folder_is_typed_and_judged(tmp_path, monkeypatch):
    capture = copied(tmp_path)
    async with sample(tmp_path, monkeypatch, capture) as pilot:
        await press(pilot, "x e")
        assert "╭─ Folder (created if needed" in frame(pilot.app), "framed as the menu is"
        await press(pilot, "ctrl+u q x escape")
        assert pilot.app.screen.has_class("export"), "in the field, q and x type and Esc only leaves it"
        assert "./captured_profile_out" in frame(pilot.app)
        await press(pilot, "e ctrl+u")
        await pilot.press(*"captured/out", "enter")
        await settled(pilot)
        assert "inside the capture" in frame(pilot.app)
        await press(pilot, "ctrl+u")
        await pilot.press(*"other", "enter")
        await settled(pilot)
        # arrows and enter choose too
        await press(pilot, "down down down down up enter")
        assert (tmp_path / "other" / "summary.txt").exists()


async def test_what_has_no_meaning_or_no_package_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(exports, "find_spec", lambda name: None)
    async with sample(tmp_path, monkeypatch) as pilot:
        await press(pilot, "x")
        for key, words in (("o", "no core is selected"), ("v", "all is shown"), ("ampersand", "no filter")):
            await press(pilot, key)
            assert f"Nothing to narrow to: {words}" in frame(pilot.app)
        assert pilot.app.screen.pane.menu.selection_text() == "the whole capture"
        await press(pilot, "t")
        assert "Parquet needs the package pyarrow: pip install pyarrow" in frame(pilot.app)
        assert pilot.app.exports.running is None
        # and where nothing is written, leaving does not ask
        await press(pilot, "q")
        await pilot.press("q")
        await pilot.pause()
        assert not pilot.app.screen.has_class("confirm")
        assert pilot.app.return_code == 0


async def test_a_capture_that_changed_or_is_gone_is_not_exported_and_called_so(tmp_path, monkeypatch):
    capture = copied(tmp_path)
    async with sample(tmp_path, monkeypatch, capture) as pilot:
        assert pilot.app.opening.watcher.disk_state.fingerprint == Catalog().fingerprint(capture)
        with next(capture.glob("cdmlib*")).open("ab") as file:
            file.write(b"more")
        await press(pilot, "x s")
        assert "has changed since it was opened" in frame(pilot.app)
        shutil.rmtree(capture)
        await press(pilot, "s")
        assert "The capture is gone" in frame(pilot.app)
        assert not (tmp_path / "captured_profile_out").exists()
        await press(pilot, "escape x")
        assert isinstance(pilot.app.screen, ExplorerScreen)
        assert "The capture is gone" in frame(pilot.app)


async def test_exports_go_to_the_folder_of_the_capture_on_the_screen(tmp_path, monkeypatch):
    first, second = copied(tmp_path), tmp_path / "later"
    shutil.copytree(first, second)

    async def written(pilot, name: str, folder: str) -> None:
        for _ in range(1000):
            if isinstance(pilot.app.screen, ExplorerScreen) and pilot.app.screen.session.profile.name == name:
                break
            await pilot.pause(0.01)
        await settled(pilot)
        await press(pilot, "x")
        assert pilot.app.screen.pane.menu.exports.folder == folder
        await press(pilot, "q")
        await press(pilot, "alt+s")
        assert (tmp_path / folder / "summary.txt").exists()

    async with sample(tmp_path, monkeypatch, first) as pilot:
        await written(pilot, "captured", "./captured_profile_out")
        await press(pilot, "x e ctrl+u")
        await press(pilot, " ".join("typed"))
        await press(pilot, "enter q")
        await written(pilot, "captured", "typed")
        await pilot.press("right_parenthesis")
        await written(pilot, "later", "./later_profile_out")
        await pilot.press("left_parenthesis")
        await written(pilot, "captured", "typed")


async def test_a_key_and_a_command_of_the_palette_write_one_file(tmp_path, monkeypatch):
    async with sample(tmp_path, monkeypatch) as pilot:
        commands = {command.title: command for command in pilot.app.get_system_commands(pilot.app.screen)}
        assert {f"Export {kind.title}" for kind in KINDS} <= set(commands)
        await commands["Export summary"].callback()
        await settled(pilot)
        assert "Wrote ./aks_decode_mode2_profile_out/summary.txt" in frame(pilot.app)
        await press(pilot, "2 alt+j")
        assert (tmp_path / "aks_decode_mode2_profile_out" / "instructions.jsonl").stat().st_size
    for kind in KINDS:
        (action,) = (each for each in ACTIONS if each.id == f"explorer.export-{kind.id}")
        (choice,) = (each for each in ACTIONS if each.id == f"export.{kind.id}")
        assert action.keys == (f"alt+{choice.keys[0]}",), "the key of the menu, with Alt"


async def test_a_profile_from_nowhere_cannot_be_exported():
    async with opened(small_profile(1, event_count=600)) as pilot:
        await press(pilot, "x")
        assert "nothing to export from" in frame(pilot.app)


# -- while it runs --------------------------------------------------------------


@asynccontextmanager
async def at_work(tmp_path, monkeypatch):
    """The explorer while an export runs that never ends."""
    async with sample(tmp_path, monkeypatch) as pilot:
        monkeypatch.setattr(sys, "executable", str(slow_program(tmp_path)))
        await press(pilot, "x")
        await pilot.press("w")
        for _ in range(1000):
            running = pilot.app.exports.running
            if running is not None and running.done > 0:
                break
            await pilot.pause(0.01)
        await pilot.press("escape")
        await pilot.pause()
        try:
            yield pilot
        finally:
            pilot.app.exports.end()
            await settled(pilot)


async def test_progress_is_in_the_bottom_line_and_keys_work(tmp_path, monkeypatch):
    async with at_work(tmp_path, monkeypatch) as pilot:
        assert "web view 34%" in frame(pilot.app).splitlines()[-1]
        start = explorer(pilot).state.span
        await pilot.press("w")
        await pilot.pause()
        assert explorer(pilot).state.span < start
        await pilot.press("x")
        await pilot.pause()
        assert "34% written, X stops" in frame(pilot.app)
        await pilot.press("s")
        await pilot.pause()
        assert " waits" in frame(pilot.app)
        await pilot.press("escape", "X")
        await settled(pilot)
        assert "Stopped: the web view was not written." in frame(pilot.app)
        assert pilot.app.exports.running is None
        await press(pilot, "X")
        assert "No export is running" in frame(pilot.app)
        await press(pilot, "x")
        assert frame(pilot.app).count(" stopped") == 2


async def test_leaving_asks_first(tmp_path, monkeypatch):
    async with at_work(tmp_path, monkeypatch) as pilot:
        await pilot.press("q")
        await pilot.pause()
        assert pilot.app.screen.has_class("confirm")
        assert "Stop it and quit?" in frame(pilot.app)
        await pilot.press("n")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ExplorerScreen)
        assert pilot.app.exports.running is not None
        process = pilot.app.exports._process
        await pilot.press("q", "y")
        await pilot.pause()
        await asyncio.wait_for(process.wait(), 10)


async def test_a_large_export_asks_first(tmp_path, monkeypatch):
    async with sample(tmp_path, monkeypatch) as pilot:
        monkeypatch.setattr(exports, "WARN_FROM_EVENTS", 10)
        await press(pilot, "x w")
        assert pilot.app.screen.has_class("confirm")
        assert "instructions gets about" in frame(pilot.app)
        await press(pilot, "n")
        assert pilot.app.exports.running is None
        assert not (tmp_path / "aks_decode_mode2_profile_out").exists()
        await press(pilot, "w")
        await pilot.press("y")
        await settled(pilot)
        assert (tmp_path / "aks_decode_mode2_profile_out" / "PerfWeb" / "result.html").exists()


@pytest.mark.parametrize(("scope", "selected", "number"), [(-1, 1, 1), (2, 1, 2)])
def test_the_core_is_that_of_the_scope_else_of_the_selection(scope, selected, number):
    session = session_of(make_profile([], cores=range(4)))
    groups = session.profile.groups
    scope, selected = (groups.numbered(each) if each >= 0 else -1 for each in (scope, selected))
    state = replace(DisplayState.of(0, 100), scope=Scope(scope), selection=EventSelection(selected))
    menu = ExportMenu(session, state, exports.ExportSource(""), None)
    assert groups.number(menu.unit) == number
    assert menu.chosen("core") == (scope >= 0)
