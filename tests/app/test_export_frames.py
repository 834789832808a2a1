"""Frames of the export menu and of the summary's further parts; ``UPDATE_FRAMES=1`` writes them anew for review."""

from __future__ import annotations

from pathlib import Path

from profiles import small_profile
from rich.cells import cell_len
from screen import AS_RECORDED, SIZES, compared, frame, opened, press, settled

from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.shell import exports
from tpuprof_tui.app.shell.application import TpuprofApp

SAMPLE = Path(__file__).parents[2] / "samples" / "aks_decode_mode1"
#: What is looked at in the summary: the lines from one that begins so.
PARTS = {"reference": " As bigTpuProfile counts", "charts": " Bandwidth of GDMA"}


@AS_RECORDED
async def test_the_menu_is_as_recorded(tmp_path, monkeypatch, size, ascii_only):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(exports, "find_spec", lambda name: name)
    app = TpuprofApp(str(SAMPLE), ascii_only=ascii_only)
    async with app.run_test(size=SIZES[size]) as pilot:
        for _ in range(1000):
            if isinstance(app.screen, ExplorerScreen):
                break
            await pilot.pause(0.01)
        await settled(pilot)
        await press(pilot, "x down")
        lines = frame(app).split("\n")
    assert {cell_len(line) for line in lines} == {SIZES[size][0]}
    compared("export", size, ascii_only, lines)


@AS_RECORDED
async def test_the_summary_is_as_recorded(size, ascii_only):
    async with opened(small_profile(2, event_count=600), SIZES[size], ascii_only=ascii_only) as pilot:
        await press(pilot, "3")
        lines = [strip.text for strip in pilot.app.screen.summary.lines]
    assert all(cell_len(line) <= SIZES[size][0] for line in lines)
    for name, beginning in PARTS.items():
        first = next(number for number, line in enumerate(lines) if line.startswith(beginning))
        compared(f"summary-{name}", size, ascii_only, lines[first : first + 20])
