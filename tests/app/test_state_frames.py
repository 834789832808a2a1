"""Frames of what shows when there is little or nothing to show, and of what lies over the explorer.

Several frames come from one start: each state is reached from the one before. ``UPDATE_FRAMES=1`` writes them anew.
"""

from __future__ import annotations

from profiles import make_profile, small_profile
from screen import AS_RECORDED, SIZES, compared, frame, opened, press, settled

from tpuprof_tui.app.overlays.overlay import ConfirmPane, Overlay
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.app.shell.capture_list import CaptureList
from tpuprof_tui.model import Problem, Severity

#: Steps from one state to the next, by what they show.
EMPTY = {"summary": "3", "table": "2", "timeline": "1", "tree": "t", "detail": "escape i", "problems": "escape 4"}
OVER = {
    "palette": "ctrl+p e x p o r t",
    "no-command": "escape colon z z",
    "no-detail": "escape i",
    "no-node": "escape {tree} ampersand z z enter",
    "no-time": "escape 1 g 9 s",
    "marks": "escape m a l l l m b apostrophe",
    "no-match": "escape 2 slash z z",
}


def compare(pilot, name: str, size: str, ascii_only: bool) -> None:
    lines = frame(pilot.app).split("\n")
    assert len(lines) == SIZES[size][1]
    compared(name, size, ascii_only, lines, width=SIZES[size][0])


@AS_RECORDED
async def test_a_capture_with_nothing_but_problems(size, ascii_only):
    problems = [
        Problem(Severity.ERROR, "No block of the file could be read.", "It was left out.", file="cdmlib0_0.profile")
    ]
    async with opened(make_profile([], cores=[0], problems=problems), SIZES[size], ascii_only=ascii_only) as pilot:
        for name, keys in EMPTY.items():
            await press(pilot, keys)
            compare(pilot, f"empty-{name}", size, ascii_only)


@AS_RECORDED
async def test_what_lies_over_the_explorer_and_finds_nothing(size, ascii_only):
    async with opened(small_profile(1, event_count=600), SIZES[size], ascii_only=ascii_only) as pilot:
        for name, keys in OVER.items():
            await press(pilot, keys.format(tree="t" if size != "200x60" else "shift+tab"))
            compare(pilot, f"over-{name}", size, ascii_only)
            # what was said passes by itself
            for bar in pilot.app._bars():
                bar._silence()
        palette = pilot.app.preferences.palette
        question = ConfirmPane("An export is running: workbook 12 %. Stop it and quit?", palette)
        pilot.app.push_screen(Overlay(question, palette))
        await settled(pilot)
        compare(pilot, "over-question", size, ascii_only)


@AS_RECORDED
async def test_no_capture_is_open(size, ascii_only, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "captures" / "one").mkdir(parents=True)
    (tmp_path / "captures" / "one" / "global.profile").write_text("arch: 77\n")
    app = TpuprofApp("captures/one", ascii_only=ascii_only)
    async with app.run_test(size=SIZES[size]) as pilot:
        await settled(pilot)
        compare(pilot, "unreadable", size, ascii_only)
        for name, folder in (("captures", "captures"), ("no-captures", "nowhere")):
            app.opening._show_list(folder)
            await settled(pilot)
            assert app.screen.query_one(CaptureList).finished
            compare(pilot, name, size, ascii_only)
