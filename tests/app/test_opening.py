"""From a path to the screen: reading, cancelling, choosing, errors."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from profiles import small_profile
from rich.cells import cell_len
from screen import explored, explorer, frame, opened, press, settled
from textual.pilot import Pilot

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.app.shell.capture_list import CaptureEntry, ChooseScreen, facts_of, find_captures
from tpuprof_tui.app.shell.loading import LoadingScreen
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.sources import catalog as readers
from tpuprof_tui.sources.catalog import Progress
from tpuprof_tui.views.sentence import sentence


async def until_reading(pilot: Pilot[int], true: Callable[[], bool]) -> None:
    """Waits for something a thread brings about while it goes on."""
    for _ in range(500):
        if true():
            return
        await pilot.pause(0.01)
    raise AssertionError(f"did not come true; the screen shows\n{frame(pilot.app)}")


async def until(pilot: Pilot[int], true: Callable[[], bool]) -> None:
    """Waits for something a thread brings about before it ends."""
    await until_reading(pilot, true)
    await settled(pilot)


def make_captures(folder, *names):
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "global.profile").write_text("arch: 4\n")


@pytest.fixture
def reading(monkeypatch):
    """Stands for the reader: waits for ``go``, tells progress, gives a small profile."""

    class Reading:
        go = threading.Event()
        paths: ClassVar[list[str]] = []
        error: ClassVar[Exception | None] = None

    def open_profile(path, *, progress=None):
        Reading.paths.append(str(path))
        if progress is not None:
            progress(Progress("records", 40, 100, group="core   3", records=1234))
        for _ in range(1000):
            if Reading.go.wait(0.01):
                break
            if progress is not None:
                progress(Progress("records", 50, 100))
        if Reading.error is not None:
            raise Reading.error
        return small_profile(1, event_count=300)

    Reading.go = threading.Event()
    Reading.paths = []
    Reading.error = None
    monkeypatch.setattr(readers, "open_profile", open_profile)
    yield Reading
    Reading.go.set()


def test_the_first_frame_needs_neither_numpy_nor_lanes():
    # the words of a vocabulary are plain data
    plain = [f"tpuprof_tui.model.{name}" for name in ("activity", "columns", "view", "vocabulary")]
    plain += ["tpuprof_tui.analysis.selecting", "tpuprof_tui.analysis.selecting.state"]
    code = (
        "import sys, tpuprof_tui.app; assert 'textual' not in sys.modules;"
        "import tpuprof_tui.app.shell.application;"
        "wrong = [m for m in sys.modules if m.split('.')[0] in ('numpy', 'pandas', 'plotext')"
        " or m.startswith(('tpuprof_tui.model.', 'tpuprof_tui.analysis.', 'tpuprof_tui.sources.sophgo.read'))"
        f" and m not in {plain}];"
        "sys.exit(', '.join(wrong) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def test_progress_shows_while_a_capture_is_read(tmp_path, reading):
    make_captures(tmp_path, "one")
    app = TpuprofApp(str(tmp_path / "one"))
    async with app.run_test(size=(100, 30)) as pilot:
        await until_reading(pilot, lambda: "1,234 records" in frame(app))
        text = frame(app)
        assert "Reading" in text
        assert "core   3" in text
        assert "40 B of 100 B" in text or "50 B of 100 B" in text
        reading.go.set()
        await until(pilot, lambda: isinstance(app.screen, ExplorerScreen))


async def test_a_folder_of_recordings_is_listed_and_marked_ones_open_together(tmp_path):
    for number, place in enumerate(("a.1", "a.2", "b")):
        # a minute apart, the last a day later
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "dur": 50,
                 "ts": 1_780_000_000_000_000 + (60_000_000, 120_000_000, 86_400_000_000)[number]}  # fmt: skip
        (tmp_path / f"{place}.pt.trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    app = TpuprofApp(str(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ChooseScreen) and frame(app).count("   50.00 us  ") == 3)
        rows = [line.split()[:5] for line in frame(app).splitlines() if ".pt.trace" in line]
        assert [(row[0], row[1]) for row in rows] == [("a.1.pt.trace.json", "1"), ("a.2.pt.trace.json", "1"),
                                                      ("b.pt.trace.json", "2")]  # fmt: skip
        assert rows[0][3] == "2026-05-28"
        # the answer of the recording under the cursor
        await until(pilot, lambda: "Nothing stands out" in frame(app).splitlines()[1])
        await pilot.press("space", "j", "space")
        assert frame(app).count(" * a.") == 2
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ExplorerScreen))
        assert app.explorer.session.profile.groups.sessions == (0, 1)
        await pilot.press("O")
        await until(pilot, lambda: isinstance(app.screen, ChooseScreen) and "b.pt.trace" in frame(app))
        await pilot.press("j", "j", "enter")
        await until(pilot, lambda: isinstance(app.screen, ExplorerScreen))
        assert app.opening.capture.path.endswith("b.pt.trace.json")
        assert not app.opening.capture.recordings
    together = TpuprofApp(str(tmp_path), options={"recordings": "*"})
    async with together.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(together.screen, ExplorerScreen))
        assert len(together.explorer.session.profile.groups.sessions) == 3


async def test_lengths_of_large_recordings_are_those_of_the_list(tmp_path, monkeypatch):
    monkeypatch.setattr("tpuprof_tui.app.shell.capture_list.MAX_READ_BYTES", 0)
    for number, place in enumerate("ab"):
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "dur": 50,
                 "ts": 1_780_000_000_000_000 + number * 86_400_000_000}  # fmt: skip
        text = json.dumps({"schemaVersion": 1, "traceEvents": [event]}).encode()
        name = f"{place}.pt.trace.json"
        (tmp_path / (f"{name}.gz" if number else name)).write_bytes(gzip.compress(text) if number else text)
    app = TpuprofApp(str(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "b.pt.trace" in frame(app))
        lengths = ["~50.00 us" in line or "unknown" in line for line in frame(app).splitlines() if ".pt.trace" in line]
        assert lengths == [True, True]


async def test_escape_cancels_reading_and_lists_captures(tmp_path, reading):
    make_captures(tmp_path, "one", "two")
    app = TpuprofApp(str(tmp_path / "one"))
    async with app.run_test(size=(100, 30)) as pilot:
        await until_reading(pilot, lambda: "1,234 records" in frame(app))
        await pilot.press("escape")
        await until_reading(pilot, lambda: isinstance(app.screen, ChooseScreen) and "two" in frame(app))
        reading.go.set()
        await settled(pilot)
        assert isinstance(app.screen, ChooseScreen), "what was cancelled does not open later"


async def test_a_folder_of_captures_lists_them_and_opens_one(tmp_path, reading):
    make_captures(tmp_path, "cdm_profile_data_dev0-0", "cdm_profile_data_dev1-12")
    reading.go.set()
    app = TpuprofApp(str(tmp_path))
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ChooseScreen) and "dev1-12" in frame(app))
        await until(pilot, lambda: "%" in frame(app))
        line = next(line for line in frame(app).splitlines() if "dev1-12" in line)
        assert line.split()[:4] == ["cdm_profile_data_dev1-12", "1", "12", "1"]
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(app.screen, ExplorerScreen))
        assert reading.paths[-1].endswith("dev1-12")
        await pilot.press("O")
        await until(pilot, lambda: isinstance(app.screen, ChooseScreen) and "dev0-0" in frame(app))


async def test_without_a_path_captures_below_the_directory_are_listed(tmp_path, reading, monkeypatch):
    make_captures(tmp_path, "a/b/deep", "near")
    reading.go.set()
    monkeypatch.chdir(tmp_path)
    app = TpuprofApp(None, ascii_only=False)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "a/b/deep" in frame(app) and "near" in frame(app))


async def test_an_empty_folder_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = TpuprofApp(None)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "No capture below" in frame(app))
        assert "Start tpuprof with the path of a" in frame(app)


async def test_unreadable_captures_end_in_a_sentence_and_a_next_step(tmp_path, reading):
    make_captures(tmp_path, "one")
    reading.error = UnreadableError("The chip \x1b[5m17 is unknown.", "Give --chip NAME.")
    reading.go.set()
    app = TpuprofApp(str(tmp_path / "one"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "is unknown" in frame(app))
        text = frame(app)
        assert "Give --chip NAME." in text
        assert "\x1b" not in text
        assert "Esc lists the captures" in text
        assert " Esc Captures " in text.splitlines()[-1]
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ChooseScreen))


async def test_unexpected_errors_end_in_a_sentence_too(tmp_path, reading, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    make_captures(tmp_path, "one")
    reading.error = ZeroDivisionError("surprise")
    reading.go.set()
    app = TpuprofApp(str(tmp_path / "one"))
    async with app.run_test(size=(120, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LoadingScreen) and app.screen.pane.failure is not None)
        assert "Unexpected error" in frame(app)
        assert "surprise" in frame(app)
        assert "Traceback" not in frame(app)
    assert list((tmp_path / "state").rglob("*.log"))


async def test_reloading_reads_again(tmp_path, reading):
    make_captures(tmp_path, "one")
    reading.go.set()
    app = TpuprofApp(str(tmp_path / "one"))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ExplorerScreen))
        first = app.screen
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, ExplorerScreen) and app.screen is not first)
        assert len(reading.paths) == 2


def test_what_is_known_of_a_capture_is_filled_in(tmp_path, reading):
    make_captures(tmp_path, "cdm_profile_data_dev3-7")
    reading.go.set()
    found = list(find_captures(tmp_path, 3, 2.0))
    assert [(each.device, each.call, each.mode) for each in found] == [("3", "7", "")]
    make_captures(tmp_path, "cdm_profile_data_dev0")
    assert [(each.device, each.call) for each in find_captures(tmp_path, 3, 2.0)] == [("0", ""), ("3", "7")]
    told = facts_of(found[0], lambda: False)
    assert told.mode == "1"
    assert told.total.endswith("us")
    assert "%" in told.busiest
    assert told.sentence == sentence(query_of(small_profile(1, event_count=300)))
    reading.error = UnreadableError("no")
    assert facts_of(CaptureEntry(tmp_path), lambda: False).failed


async def test_the_mode_of_a_capture_is_not_cut(tmp_path):
    samples = Path(__file__).parents[2] / "samples"
    shutil.copytree(samples / "ascend_synthetic", tmp_path / "one")
    shutil.copytree(samples / "torch_cpu_recorded", tmp_path / "two")
    app = TpuprofApp(str(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Level1 " in frame(app))
        assert max(map(cell_len, frame(app).splitlines())) == 80


async def test_what_is_chosen_for_a_capture_that_was_replaced_is_passed_over():
    async with opened(small_profile(1, event_count=60)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 c")
        pilot.app.opening.reload()
        await explored(pilot)
        assert explorer(pilot) is not screen
        screen.table_requests.take_columns(("name",))
        assert screen.state.columns == ()


async def test_several_paths_are_a_list_and_the_way_from_one_to_the_next(tmp_path, reading):
    make_captures(tmp_path, "a/one", "b/one", "folder/three", "not/named")
    reading.go.set()
    paths = [str(tmp_path / name) for name in ("b/one", "a/one/global.profile", "folder")]
    app = TpuprofApp(paths=paths)
    async with app.run_test(size=(160, 30)) as pilot:
        await until(pilot, lambda: "captures at 3 paths" in frame(app) and "three" in frame(app))
        listed = [line for line in frame(app).splitlines() if str(tmp_path) in line]
        assert [line.split()[0] for line in listed] == [*paths[:2], str(tmp_path / "folder" / "three")]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ExplorerScreen))
        assert reading.paths[-1] == paths[0]
        await pilot.press("right_parenthesis")
        await until(pilot, lambda: reading.paths[-1] == paths[1] and isinstance(app.screen, ExplorerScreen))
        await pilot.press("O")
        await until(pilot, lambda: isinstance(app.screen, ChooseScreen) and "captures at 3 paths" in frame(app))
