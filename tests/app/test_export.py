"""The export menu: what it offers, the command lines it makes, and files that are really written."""

from __future__ import annotations

import asyncio
import csv
import json
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from profiles import small_profile
from screen import explorer, frame, opened, press, settled

import tpuprof_tui
from tpuprof_tui.app import exporter as exporter_module
from tpuprof_tui.app import exports
from tpuprof_tui.app.actions import ACTIONS
from tpuprof_tui.app.application import TpuprofApp
from tpuprof_tui.app.exporter import Exporter, ExportError
from tpuprof_tui.app.exports import (
    KINDS,
    Job,
    Part,
    Source,
    cores_typed,
    default_folder,
    export_job,
    folder_fault,
    kind_of,
    part_text,
    table_job,
    warning,
)
from tpuprof_tui.app.messages import Change
from tpuprof_tui.app.screens.confirm import ConfirmScreen
from tpuprof_tui.app.screens.explorer import ExplorerScreen
from tpuprof_tui.app.screens.export import ExportScreen
from tpuprof_tui.app.state import Scope, Selection, Sort, ViewState
from tpuprof_tui.errors import UsageError
from tpuprof_tui.readers import fingerprint

SAMPLE = Path(__file__).parents[2] / "samples" / "aks_decode_mode1"
VIEW = replace(ViewState.of(0, 10_000), start=100, end=200, filter="dur>1us")


@asynccontextmanager
async def sample(tmp_path, monkeypatch, path: Path = SAMPLE, size=(120, 40)):
    """The explorer with a capture from disk, in an empty current directory."""
    monkeypatch.chdir(tmp_path)
    app = TpuprofApp(str(path))
    async with app.run_test(size=size) as pilot:
        for _ in range(1000):
            if isinstance(app.screen, ExplorerScreen):
                break
            await pilot.pause(0.01)
        await settled(pilot)
        yield pilot


def copied(tmp_path: Path) -> Path:
    """A copy of the sample that a test may change."""
    import shutil

    return Path(shutil.copytree(SAMPLE, tmp_path / "captured"))


# -- command lines --------------------------------------------------------------


def test_the_whole_capture_needs_no_choice(tmp_path):
    source = Source(str(SAMPLE), "name", "abc", "AKS", 900, "host.json")
    job = export_job(kind_of("workbook"), source, str(tmp_path), VIEW, 3, Part())
    assert job.words == (
        "export", str(SAMPLE), str(tmp_path), "--only", "xlsx", "--machine", "--chip", "AKS", "--tiu_freq", "900",
        "--trace_file", "host.json", "--expect", "abc",
    )  # fmt: skip
    assert job.target is None


def test_parts_become_options(tmp_path):
    job = export_job(kind_of("web"), Source(str(SAMPLE)), str(tmp_path), VIEW, 3, Part(True, True, True))
    assert job.words[-4:] == ("--cores", "3", "--range=100ns..200ns", "--filter=dur>1us")


def test_a_part_that_does_not_exist_is_no_option(tmp_path):
    view = replace(VIEW, filter="")
    job = export_job(kind_of("web"), Source(str(SAMPLE)), str(tmp_path), view, -1, Part(True, False, True))
    assert job.words[-1] == "--machine"
    assert job.part == Part()


def test_the_table_is_printed_as_it_is(tmp_path):
    view = replace(VIEW, scope=Scope(2), in_window=True, sort=Sort("bytes", down=True))
    job = table_job(kind_of("csv"), Source(str(SAMPLE)), str(tmp_path), view, ["name", "bytes"])
    target = str(tmp_path / "instructions.csv")
    assert job.words[:6] == ("instructions", str(SAMPLE), "--format", "csv", "--output", target)
    assert job.words[6:] == (
        "--columns", "name,bytes", "--sort", "bytes:desc", "--core", "2", "--range=100ns..200ns", "--filter=dur>1us",
    )  # fmt: skip
    assert job.target == tmp_path / "instructions.csv"


def test_a_lane_is_a_lane_of_the_profile(tmp_path):
    view = replace(VIEW, scope=Scope(-1, 7))
    job = table_job(kind_of("json"), Source(str(SAMPLE)), str(tmp_path), view, ["name"])
    assert job.words[6:] == ("--columns", "name", "--sort", "start:asc", "--lane", "7", "--filter=dur>1us")


def test_the_range_goes_before_the_window(tmp_path):
    view = replace(VIEW, range=(120, 130))
    job = export_job(kind_of("web"), Source(str(SAMPLE)), str(tmp_path), view, -1, Part(window=True))
    assert job.words[-1] == "--range=120ns..130ns"
    assert "range of 10 ns" in part_text(view, -1, Part(window=True))


def test_several_cores(tmp_path):
    part = Part(cores=cores_typed("0-1, 3", range(8)))
    assert part.cores == (0, 1, 3)
    job = export_job(kind_of("web"), Source(str(SAMPLE)), str(tmp_path), VIEW, 5, part)
    assert job.words[-2:] == ("--cores", "0,1,3")
    assert part_text(VIEW, 5, part) == "cores 0, 1, 3"
    assert cores_typed("  ", range(8)) == ()
    with pytest.raises(UsageError, match="no core 9"):
        cores_typed("9", range(8))


def test_the_folder_is_never_in_the_capture(tmp_path, monkeypatch):
    capture = copied(tmp_path)
    source = Source(str(capture))
    assert default_folder(source, tmp_path) == "./captured_profile_out"
    assert default_folder(source, capture) == str(tmp_path / "captured_profile_out")
    assert "inside the capture" in folder_fault(str(capture / "out"), source)
    assert "inside the capture" in folder_fault(str(tmp_path / "x" / ".." / "captured"), source)
    assert folder_fault("  ", source)
    (tmp_path / "file").write_text("")
    assert "file" in folder_fault(str(tmp_path / "file"), source)
    assert folder_fault(str(tmp_path / "new" / "out"), source) == ""


def test_a_folder_no_path_can_name_has_no_fault_of_its_own(tmp_path, monkeypatch):
    """Whether it can be written to is told when it is written to; nothing raises before."""
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "capture").mkdir()
    source = Source(str(tmp_path / "capture"))
    for folder in ("a" * 300, str(tmp_path / "circle" / "out"), "~nobody_of_this_name/out"):
        assert folder_fault(folder, source) == ""
    long = Source(str(tmp_path / ("n" * 255)))
    assert len(Path(default_folder(long, tmp_path / "here")).name) < 250


def test_large_workbooks_and_web_views_are_announced():
    assert warning(kind_of("workbook"), 999_999, 1) == ""
    assert warning(kind_of("perfetto"), 50_000_000, 1) == ""
    told = warning(kind_of("web"), 4_000_000, 1)
    assert "4,000,000 instructions gets about 14.3 MiB" in told, "a page holds two million at most"
    assert "min" in warning(kind_of("workbook"), 10_000_000, 1)
    assert "333.8 MiB and takes about 30 s" in warning(kind_of("workbook"), 1_000_000, 1)
    assert "500.7 MiB and takes about 65 s" in warning(kind_of("workbook"), 1_000_000, 2)


async def test_what_was_written_before_a_stop_is_there(tmp_path, monkeypatch):
    program, code = tmp_path / "late", tmp_path / "late.py"
    (tmp_path / "file").write_text("whole")
    said = json.dumps({"written": [[str(tmp_path / "file"), 5]], "notes": []})
    further = json.dumps({"kind": "web", "done": 0.5})
    code.write_text(f"import time\nprint({said!r}, {further!r}, sep='\\n', flush=True)\ntime.sleep(60)\n")
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {code}\n")
    program.chmod(0o755)
    monkeypatch.setattr(exporter_module.sys, "executable", str(program))
    exporter = Exporter()
    running = asyncio.ensure_future(exporter.run(Job(kind_of("web"), ())))
    while exporter.running is None or exporter.running.done != 0.5:
        await asyncio.sleep(0.01)
    exporter.stop()
    assert (await running).files == ((str(tmp_path / "file"), 5),)


# -- the child ------------------------------------------------------------------


async def test_messages_of_the_child_become_progress_and_an_outcome(tmp_path):
    told = []
    exporter = Exporter(lambda: told.append(exporter.running))
    job = export_job(kind_of("summary"), Source(str(SAMPLE)), str(tmp_path), VIEW, -1, Part())
    outcome = await exporter.run(job)
    assert outcome is not None
    assert outcome.files == ((str(tmp_path / "summary.txt"), (tmp_path / "summary.txt").stat().st_size),)
    assert told[-1] is None
    assert any(running is not None and running.done == 1.0 for running in told)
    assert "summary.txt" in outcome.sentence


async def test_an_error_is_the_sentence_of_the_child(tmp_path):
    source = Source(str(SAMPLE), fingerprint="not what it looks like")
    with pytest.raises(ExportError, match="changed since it was opened"):
        await Exporter().run(export_job(kind_of("summary"), source, str(tmp_path), VIEW, -1, Part()))
    assert not list(tmp_path.iterdir())


async def test_a_table_that_fails_leaves_nothing(tmp_path):
    view = replace(VIEW, filter="no such column")
    job = table_job(kind_of("csv"), Source(str(SAMPLE)), str(tmp_path), replace(view, filter="nothing=1"), ["name"])
    with pytest.raises(ExportError, match="nothing"):
        await Exporter().run(job)
    assert not list(tmp_path.iterdir())


async def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    job = table_job(kind_of("csv"), Source(str(SAMPLE)), str(tmp_path / "file" / "below"), VIEW, ["name"])
    with pytest.raises(ExportError, match="could not be written"):
        await Exporter().run(job)


async def test_what_was_wrong_beside_the_capture_is_told(tmp_path):
    capture = copied(tmp_path)
    (capture / "final.mlir").write_text("module @net")
    (capture / "tensor_location.json").write_text("{")
    view = replace(VIEW, filter="order<5")
    job = export_job(kind_of("workbook"), Source(str(capture)), str(tmp_path / "out"), view, 0, Part(True, False, True))
    outcome = await Exporter().run(job)
    assert outcome.sentence.endswith("tensor_location.json: It is not valid JSON (line 1, column 2). "
                                     "The workbook has no layer sheets.")  # fmt: skip


async def test_a_child_that_says_nothing_is_an_error():
    with pytest.raises(ExportError, match="without a word"):
        await Exporter().run(Job(kind_of("web"), ("--version",)))


async def test_a_stopped_export_is_no_error_and_its_child_is_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(exporter_module.sys, "executable", str(slow_program(tmp_path)))
    exporter = Exporter()
    running = asyncio.ensure_future(exporter.run(Job(kind_of("web"), ())))
    for _ in range(1000):
        if exporter.running is not None and exporter.running.done > 0:
            break
        await asyncio.sleep(0.01)
    process = exporter._process
    exporter.stop()
    assert await running is None
    assert process.returncode is not None
    assert exporter.running is None


def slow_program(folder: Path) -> Path:
    """Stands for the interpreter: an export that reports a third and then takes for ever."""
    program, code = folder / "slow", folder / "slow.py"
    code.write_text('import time\nprint(\'{"kind": "web", "done": 0.34}\', flush=True)\ntime.sleep(60)\n')
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {code}\n")
    program.chmod(0o755)
    return program


# -- the menu -------------------------------------------------------------------


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_the_menu_shows_kinds_choices_and_folder(tmp_path, monkeypatch, size):
    async with sample(tmp_path, monkeypatch, size=size) as pilot:
        await press(pilot, "x")
        assert isinstance(pilot.app.screen, ExportScreen)
        text = frame(pilot.app)
        for kind in KINDS:
            assert kind.title in text
        for words in ("the whole capture", "only the core", "./aks_decode_mode1_profile_out", "Esc or q closes"):
            assert words in text
        await press(pilot, "q")
        assert isinstance(pilot.app.screen, ExplorerScreen)


WRITTEN = {
    "w": "PerfWeb/result.html", "p": "perfetto.pftrace", "s": "summary.txt", "r": "tiuRegInfo_0.txt",
    "c": "instructions.csv", "j": "instructions.jsonl", "t": "instructions.parquet",
}  # fmt: skip


@pytest.mark.parametrize("key", WRITTEN)
async def test_each_key_writes_its_file_and_says_where(tmp_path, monkeypatch, key):
    if key == "t":
        pytest.importorskip("pyarrow")
    async with sample(tmp_path, monkeypatch) as pilot:
        await press(pilot, "x")
        await pilot.press(key)
        await settled(pilot)
        written = tmp_path / "aks_decode_mode1_profile_out" / WRITTEN[key]
        assert written.stat().st_size
        text = frame(pilot.app)
        assert "Wrote ./aks_decode_mode1_profile_out/" in text
        assert "KiB" in text or "MiB" in text or " B" in text
        await press(pilot, "x")
        assert "Written:" in frame(pilot.app)


async def test_the_workbook_of_one_core_in_the_window(tmp_path, monkeypatch):
    async with sample(tmp_path, monkeypatch) as pilot:
        await press(pilot, "j j w w w w")
        view = explorer(pilot).view
        await press(pilot, "x o v")
        assert "core 0, the window of" in frame(pilot.app)
        await pilot.press("x")
        await settled(pilot)
        with (tmp_path / "aks_decode_mode1_profile_out" / "PerfDoc" / "PerfAI_output.csv").open() as file:
            rows = list(csv.DictReader(file))
        lanes = tpuprof_tui.open_profile(SAMPLE).core_lanes(0)
        inside = sum(int(((lane["end"] > view.start) & (lane["start"] < view.end)).sum()) for lane in lanes)
        assert len(rows) == inside > 0


async def test_the_table_is_written_as_it_is_shown(tmp_path, monkeypatch):
    async with sample(tmp_path, monkeypatch) as pilot:
        await press(pilot, "j j j j o w w w 2 v")
        screen = explorer(pilot)
        assert screen.view.scope.core >= 0
        assert screen.view.in_window
        screen.change(Change(lambda view: replace(
            view, sort=Sort("duration", down=True), columns=("name", "duration", "bytes", "engine", "order"),
            percent=True, filter="dur>200",
        )))  # fmt: skip
        await settled(pilot)
        order, session = screen.table.order, screen.session
        await press(pilot, "x")
        assert "filter dur>200, by Duration, largest first, 6 columns" in pilot.app.screen.table_text()
        await pilot.press("j")
        await settled(pilot)
        text = (tmp_path / "aks_decode_mode1_profile_out" / "instructions.jsonl").read_text()
        rows = [json.loads(line) for line in text.splitlines()]
        names = "Function Name|Duration(ns)|% of all|DMA data size(B)|engine|Global Idx"
        assert list(rows[0]) == names.split("|")
        wanted = []
        for number in order.tolist():
            lane, row = session.place(number)
            start, end = session.span_of(lane, row)
            wanted.append(
                (session.profile.lanes[lane].engine, end - start, int(session.profile.lanes[lane]["order"][row]))
            )
        assert [(row["engine"], row["Duration(ns)"], row["Global Idx"]) for row in rows] == wanted
        assert len({engine for engine, _, _ in wanted}) > 1


async def test_without_pyarrow_the_menu_says_what_parquet_needs(tmp_path, monkeypatch):
    monkeypatch.setattr(exports, "find_spec", lambda name: None)
    async with sample(tmp_path, monkeypatch) as pilot:
        await press(pilot, "x t")
        assert isinstance(pilot.app.screen, ExportScreen)
        assert "Parquet needs the package pyarrow: pip install pyarrow" in frame(pilot.app)
        assert pilot.app.exporter.running is None


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
        out = tmp_path / "aks_decode_mode1_profile_out"
        assert sorted(path.name for path in out.glob("tiu*")) == ["tiuRegInfo_1.txt", "tiuRegInfo_3.txt"]


async def test_arrows_and_enter_choose_too(tmp_path, monkeypatch):
    async with sample(tmp_path, monkeypatch) as pilot:
        await press(pilot, "x down down down down up")
        await pilot.press("enter")
        await settled(pilot)
        assert (tmp_path / "aks_decode_mode1_profile_out" / "summary.txt").exists()


async def test_the_folder_is_typed_and_judged(tmp_path, monkeypatch):
    capture = copied(tmp_path)
    async with sample(tmp_path, monkeypatch, capture) as pilot:
        await press(pilot, "x e")
        await press(pilot, "ctrl+u q x escape")
        assert isinstance(pilot.app.screen, ExportScreen), "in the field, q and x type and Esc only leaves it"
        assert "./captured_profile_out" in frame(pilot.app)
        await press(pilot, "e ctrl+u")
        await pilot.press(*"captured/out", "enter")
        await settled(pilot)
        assert "inside the capture" in frame(pilot.app)
        await press(pilot, "ctrl+u")
        await pilot.press(*"other", "enter")
        await settled(pilot)
        await pilot.press("s")
        await settled(pilot)
        assert (tmp_path / "other" / "summary.txt").exists()


async def test_choices_without_a_meaning_say_so(tmp_path, monkeypatch):
    async with sample(tmp_path, monkeypatch) as pilot:
        await press(pilot, "x")
        for key, words in (("o", "no core is selected"), ("v", "the window is everything"), ("ampersand", "no filter")):
            await press(pilot, key)
            assert f"Nothing to narrow to: {words}" in frame(pilot.app)
        assert pilot.app.screen.part == Part()


async def test_a_changed_capture_stops_the_export(tmp_path, monkeypatch):
    capture = copied(tmp_path)
    async with sample(tmp_path, monkeypatch, capture) as pilot:
        assert pilot.app.fingerprint == fingerprint(capture)
        with next(capture.glob("cdmlib*")).open("ab") as file:
            file.write(b"more")
        await press(pilot, "x")
        await pilot.press("s")
        await settled(pilot)
        assert "has changed since it was opened" in frame(pilot.app)
        assert not (tmp_path / "captured_profile_out").exists()


async def test_the_palette_has_every_kind(tmp_path, monkeypatch):
    async with sample(tmp_path, monkeypatch) as pilot:
        commands = {command.title: command for command in pilot.app.get_system_commands(pilot.app.screen)}
        assert {f"Export {kind.title}" for kind in KINDS} <= set(commands)
        await commands["Export summary"].callback()
        await settled(pilot)
        assert (tmp_path / "aks_decode_mode1_profile_out" / "summary.txt").exists()


async def test_one_key_writes_one_file(tmp_path, monkeypatch):
    async with sample(tmp_path, monkeypatch) as pilot:
        await pilot.press("alt+s")
        await settled(pilot)
        assert "Wrote ./aks_decode_mode1_profile_out/summary.txt" in frame(pilot.app)
        await pilot.press("2", "alt+j")
        await settled(pilot)
        assert (tmp_path / "aks_decode_mode1_profile_out" / "instructions.jsonl").stat().st_size
    for kind in KINDS:
        (action,) = (each for each in ACTIONS if each.id == f"explorer.export-{kind.id}")
        (choice,) = (each for each in ACTIONS if each.id == f"export.{kind.id}")
        assert action.keys == (f"alt+{choice.keys[0]}",), "the key of the menu, with Alt"


async def test_a_profile_from_nowhere_cannot_be_exported():
    async with opened(small_profile(1, instructions=600)) as pilot:
        await press(pilot, "x")
        assert "nothing to export from" in frame(pilot.app)


# -- while it runs --------------------------------------------------------------


@asynccontextmanager
async def at_work(tmp_path, monkeypatch):
    """The explorer while an export runs that never ends."""
    async with sample(tmp_path, monkeypatch) as pilot:
        monkeypatch.setattr(exporter_module.sys, "executable", str(slow_program(tmp_path)))
        await press(pilot, "x")
        await pilot.press("w")
        for _ in range(1000):
            running = pilot.app.exporter.running
            if running is not None and running.done > 0:
                break
            await pilot.pause(0.01)
        await pilot.pause()
        try:
            yield pilot
        finally:
            pilot.app.exporter.stop()
            await settled(pilot)


async def test_progress_is_in_the_bottom_line_and_keys_work(tmp_path, monkeypatch):
    async with at_work(tmp_path, monkeypatch) as pilot:
        assert "web view 34%" in frame(pilot.app).splitlines()[-1]
        start = explorer(pilot).view.span
        await pilot.press("w")
        await pilot.pause()
        assert explorer(pilot).view.span < start
        await pilot.press("x")
        await pilot.pause()
        assert "At work: web view 34%" in frame(pilot.app)
        await pilot.press("s")
        await pilot.pause()
        assert "One export at a time" in frame(pilot.app)
        await pilot.press("X")
        await settled(pilot)
        assert pilot.app.exporter.running is None


async def test_an_action_stops_it(tmp_path, monkeypatch):
    async with at_work(tmp_path, monkeypatch) as pilot:
        await pilot.press("X")
        await settled(pilot)
        assert "Stopped: the web view was not written." in frame(pilot.app)
        await press(pilot, "X")
        assert "No export is at work" in frame(pilot.app)


async def test_leaving_asks_first(tmp_path, monkeypatch):
    async with at_work(tmp_path, monkeypatch) as pilot:
        await pilot.press("q")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ConfirmScreen)
        assert "Stop it and leave?" in frame(pilot.app)
        await pilot.press("n")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ExplorerScreen)
        assert pilot.app.exporter.running is not None
        process = pilot.app.exporter._process
        await pilot.press("q", "y")
        await pilot.pause()
        await asyncio.wait_for(process.wait(), 10)


async def test_leaving_without_an_export_does_not_ask(tmp_path, monkeypatch):
    async with sample(tmp_path, monkeypatch) as pilot:
        await pilot.press("q")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, ConfirmScreen)
        assert pilot.app.return_code == 0


async def test_a_large_export_asks_first(tmp_path, monkeypatch):
    async with sample(tmp_path, monkeypatch) as pilot:
        monkeypatch.setattr(exports, "MANY", 10)
        await press(pilot, "x w")
        assert isinstance(pilot.app.screen, ConfirmScreen)
        assert "instructions gets about" in frame(pilot.app)
        await press(pilot, "n")
        assert pilot.app.exporter.running is None
        assert not (tmp_path / "aks_decode_mode1_profile_out").exists()
        await press(pilot, "x w")
        await pilot.press("y")
        await settled(pilot)
        assert (tmp_path / "aks_decode_mode1_profile_out" / "PerfWeb" / "result.html").exists()


def test_selection_is_the_core_where_no_scope_is():
    assert exports.scope_core(Scope(), Selection(4).core) == 4
    assert exports.scope_core(Scope(2), 4) == 2
