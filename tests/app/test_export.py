"""The export menu: what it offers, the command lines it makes, and files that are really written."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from exporting import SAMPLE, copied, slow_program
from msgspec.structs import replace
from profiles import make_profile, session_of

from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, Sort
from tpuprof_tui.app.overlays.export import ExportMenu
from tpuprof_tui.app.shell.exports import (
    Command,
    ExportError,
    Exports,
    ExportSource,
    default_folder,
    files_command,
    folder_fault,
    table_command,
    warning,
)
from tpuprof_tui.export.outputs import output_named
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY


def runner(changed=lambda: None):
    """Runs exports of no application."""
    return Exports(SimpleNamespace(export_changed=changed), {})


EIGHT = make_profile([], cores=range(8))


def kind(name):
    return output_named(name, VOCABULARY)


VIEW = replace(DisplayState.of(0, 10_000), start=100, end=200, viewed=(100, 200), filter="dur>1us")


# -- command lines --------------------------------------------------------------


def test_the_whole_capture_needs_no_choice(tmp_path):
    source = ExportSource(str(SAMPLE), "name", "abc", {"tiu_mhz": 900, "chip": "AKS", "trace_file": "host.json"})
    command = files_command(kind("workbook"), source, str(tmp_path))
    assert command.words == [
        "export", str(SAMPLE), str(tmp_path), "--only", "xlsx", "--machine", "--tiu_freq", "900", "--chip", "AKS",
        "--trace_file", "host.json", "--expect", "abc",
    ]  # fmt: skip
    assert command.target is None


def test_parts_become_options(tmp_path):
    command = files_command(kind("web"), ExportSource(str(SAMPLE)), str(tmp_path), (1, 3), (100, 200), "dur>1us")
    assert command.words[-4:] == ["--cores", "1,3", "--range=100ns..200ns", "--filter=dur>1us"]


def test_the_table_is_printed_as_it_is(tmp_path):
    scope = Scope(EIGHT.groups.numbered(2))
    view = replace(VIEW, scope=scope, in_window=True, sort=Sort("bytes", down=True))
    command = table_command(kind("csv"), ExportSource(str(SAMPLE)), str(tmp_path), EIGHT, view, ["name", "bytes"])
    target = str(tmp_path / "instructions.csv")
    assert command.words[:6] == ["instructions", str(SAMPLE), "--format", "csv", "--output", target]
    assert command.words[6:] == [
        "--columns", "name,bytes", "--sort", "bytes:desc", "--core", "2", "--range=100ns..200ns", "--filter=dur>1us",
    ]  # fmt: skip
    assert command.target == tmp_path / "instructions.csv"


def test_a_lane_is_a_lane_of_the_profile(tmp_path):
    view = replace(VIEW, scope=Scope(-1, 7))
    command = table_command(kind("json"), ExportSource(str(SAMPLE)), str(tmp_path), EIGHT, view, ["name"])
    assert command.words[6:] == ["--columns", "name", "--sort", "start:asc", "--lane", "7", "--filter=dur>1us"]


def test_the_range_goes_before_the_window_and_cores_are_typed():
    menu = ExportMenu(session_of(EIGHT), replace(VIEW, range=(120, 130)), ExportSource(str(SAMPLE)), None)
    menu.turn("window")
    assert menu.window == (120, 130)
    assert "the range of 10 ns" in menu.selection_text()
    menu.turn("window")
    menu.turn("filtered")
    assert menu.selection_text() == "the whole capture"
    assert menu.set_typed("cores", "0-1, 3") == ""
    assert menu.selection_text() == "cores 0, 1, 3"
    assert "no core 9" in menu.set_typed("cores", "9")
    assert menu.set_typed("cores", "") == ""
    assert menu.selection_text() == "the whole capture"


def test_the_folder_is_never_in_the_capture(tmp_path, monkeypatch):
    capture = copied(tmp_path)
    source = ExportSource(str(capture))
    assert default_folder(source, tmp_path) == "./captured_profile_out"
    assert default_folder(source, capture) == str(tmp_path / "captured_profile_out")
    assert "inside the capture" in folder_fault(str(capture / "out"), source)
    assert "inside the capture" in folder_fault(str(tmp_path / "x" / ".." / "captured"), source)
    assert folder_fault("  ", source)
    (tmp_path / "file").write_text("")
    assert "file" in folder_fault(str(tmp_path / "file"), source)
    assert folder_fault(str(tmp_path / "new" / "out"), source) == ""


def test_the_folder_has_the_name_of_what_is_exported(tmp_path):
    """A file that is a capture by itself has its own name, one of a directory the directory's."""
    (tmp_path / "downloads").mkdir()
    trace = tmp_path / "downloads" / "step 7.json"
    trace.write_text("[]")
    source = ExportSource(str(trace))
    assert default_folder(source, tmp_path) == "./step 7.json_profile_out"
    assert default_folder(source, trace.parent) == "./step 7.json_profile_out"
    assert folder_fault(str(trace.parent / "out"), source) == "", "what lies beside it is not in it"
    capture = copied(tmp_path)
    within = ExportSource(str(next(capture.glob("cdmlib*"))), root=str(capture))
    assert default_folder(within, tmp_path) == "./captured_profile_out"
    assert "inside the capture" in folder_fault(str(capture / "out"), within)
    assert default_folder(ExportSource(str(capture / ".." / "captured")), tmp_path) == "./captured_profile_out"


async def test_a_capture_that_is_gone_is_called_gone(tmp_path):
    source = ExportSource(str(tmp_path / "gone"), fingerprint="0" * 24)
    with pytest.raises(ExportError, match=r"The capture is gone: .*gone no longer exists"):
        await runner().run(files_command(kind("summary"), source, str(tmp_path / "out")))
    assert not (tmp_path / "out").exists()


def test_a_folder_no_path_can_name_has_no_fault_of_its_own(tmp_path, monkeypatch):
    """Whether it can be written to is told when it is written to; nothing raises before."""
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "capture").mkdir()
    source = ExportSource(str(tmp_path / "capture"))
    for folder in ("a" * 300, str(tmp_path / "circle" / "out"), "~nobody_of_this_name/out"):
        assert folder_fault(folder, source) == ""
    long = ExportSource(str(tmp_path / ("n" * 255)))
    assert len(Path(default_folder(long, tmp_path / "here")).name) < 250


def test_large_workbooks_and_web_views_are_announced():
    assert warning(kind("workbook"), VOCABULARY.event, 999_999, False) == ""
    assert warning(kind("perfetto"), VOCABULARY.event, 50_000_000, False) == ""
    told = warning(kind("web"), VOCABULARY.event, 4_000_000, False)
    assert "4,000,000 instructions gets about 14.3 MiB" in told, "a page holds two million at most"
    assert "min" in warning(kind("workbook"), VOCABULARY.event, 10_000_000, False)
    assert "333.8 MiB and takes about 30 s" in warning(kind("workbook"), VOCABULARY.event, 1_000_000, False)
    assert "500.7 MiB and takes about 65 s" in warning(kind("workbook"), VOCABULARY.event, 1_000_000, True)


async def test_what_was_written_before_a_stop_is_there(tmp_path, monkeypatch):
    program, code = tmp_path / "late", tmp_path / "late.py"
    (tmp_path / "file").write_text("whole")
    said = json.dumps({"written": [[str(tmp_path / "file"), 5]], "notes": []})
    further = json.dumps({"kind": "web", "done": 0.5})
    code.write_text(f"import time\nprint({said!r}, {further!r}, sep='\\n', flush=True)\ntime.sleep(60)\n")
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {code}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    exporter = runner()
    running = asyncio.ensure_future(exporter.run(Command(kind("web"), ())))
    while exporter.running is None or exporter.running.done != 0.5:
        await asyncio.sleep(0.01)
    exporter.end()
    assert (await running).files == ((str(tmp_path / "file"), 5),)


# -- the child ------------------------------------------------------------------


async def test_messages_of_the_child_become_progress_and_an_outcome(tmp_path, monkeypatch):
    told = []
    # modules that lie where the explorer was started, as beside captures, are nobody's
    monkeypatch.chdir(tmp_path)
    for name in ("runpy", "json", "numpy", "tpuprof_tui"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    exporter = runner(lambda: told.append(exporter.running))
    job = files_command(kind("summary"), ExportSource(str(SAMPLE)), str(tmp_path))
    outcome = await exporter.run(job)
    assert outcome is not None
    assert outcome.files == ((str(tmp_path / "summary.txt"), (tmp_path / "summary.txt").stat().st_size),)
    assert told[-1] is None
    assert any(running is not None and running.done == 1.0 for running in told)
    assert "summary.txt" in outcome.sentence


async def test_an_error_is_the_sentence_of_the_child(tmp_path):
    source = ExportSource(str(SAMPLE), fingerprint="not what it looks like")
    with pytest.raises(ExportError, match="changed since it was opened"):
        await runner().run(files_command(kind("summary"), source, str(tmp_path)))
    assert not list(tmp_path.iterdir())


async def test_a_table_that_fails_leaves_nothing(tmp_path):
    view = replace(VIEW, filter="nothing=1")
    job = table_command(kind("csv"), ExportSource(str(SAMPLE)), str(tmp_path), EIGHT, view, ["name"])
    with pytest.raises(ExportError, match="nothing"):
        await runner().run(job)
    assert not list(tmp_path.iterdir())


async def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    job = table_command(kind("csv"), ExportSource(str(SAMPLE)), str(tmp_path / "file" / "below"), EIGHT, VIEW, ["name"])
    with pytest.raises(ExportError, match="could not be written"):
        await runner().run(job)


async def test_a_child_that_says_nothing_is_an_error():
    with pytest.raises(ExportError, match="without a message"):
        await runner().run(Command(kind("web"), ("--version",)))


async def test_a_stopped_export_is_no_error_and_its_child_is_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(slow_program(tmp_path)))
    exporter = runner()
    running = asyncio.ensure_future(exporter.run(Command(kind("web"), ())))
    for _ in range(1000):
        if exporter.running is not None and exporter.running.done > 0:
            break
        await asyncio.sleep(0.01)
    process = exporter._process
    exporter.end()
    assert await running is None
    assert process.returncode is not None
    assert exporter.running is None
