"""The explorer with something to compare with: the verdict first, views with differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from screen import frame

from tpuprof_tui.analysis.selecting.navigation import selected
from tpuprof_tui.app.panes.summary.summary import SummaryPane
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.cli.main import main
from tpuprof_tui.views.differences import differences_of

SAMPLES = Path(__file__).parents[2] / "samples"
BASE, OTHER = str(SAMPLES / "aks_decode_mode2"), str(SAMPLES / "aks_decode_mode1")


async def shown(pilot, text: str) -> str:
    for _ in range(100):
        await pilot.pause(0.05)
        seen = frame(pilot.app)
        if text in seen:
            return seen
    raise AssertionError(f"{text!r} is not on the screen:\n{frame(pilot.app)}")


async def test_the_summary_tells_differences(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    app = TpuprofApp(OTHER, against=BASE, ascii_only=False)
    async with app.run_test(size=(100, 40)) as pilot:
        first = await shown(pilot, "against base slower")
        await pilot.press("3")
        seen = await shown(pilot, "Against the base")
        assert "+243%" in first
        assert "lm_head_matmul_multi_core took longer" in seen
        pane = app.screen.query_one("#summary", SummaryPane)
        assert pane.views.told(pane.figures.answers)[0].id == "comparison"
        pane.choose("operations")
        seen = await shown(pilot, "Operations of all cores")
        rows = [line.split() for line in seen.splitlines() if line.strip().startswith("tensorLd")]
        assert rows[0][-1] == "more"
        # Enter on a row goes to the events of this capture
        assert any(target.condition for target in pane.page.targets[0])


async def test_differences_are_walked_and_sides_swap(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    app = TpuprofApp(OTHER, against=BASE, ascii_only=False)
    async with app.run_test(size=(160, 48)) as pilot:
        await shown(pilot, "against base slower")
        await pilot.press("semicolon")
        await shown(pilot, "Added: nothing of the base")
        assert app.screen.view.selection.row >= 0
        found = differences_of(app.screen.session)
        paired = int(np.flatnonzero(found.partner >= 0)[0])
        app.screen.store.change(selected(app.screen.session, app.screen.view, *app.screen.session.place(paired)))
        await shown(pilot, "base -> here: ")
        fields = {each.label: each.text for each in app.screen.panes.detail.choices if " -> " in each.text}
        assert {"Start", "Duration", "Cycles"} <= set(fields)
        await pilot.press("W")
        await shown(pilot, "against base faster")
        assert (app.capture.path, app.reader.against) == (BASE, OTHER)
        await pilot.press("Q", "semicolon")
        await shown(pilot, "Nothing to compare with")
        assert app.screen.session.baseline is None


async def test_what_cannot_be_compared_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    app = TpuprofApp(OTHER, against=str(SAMPLES / "aksv_cdma"), ascii_only=False)
    async with app.run_test(size=(100, 30)) as pilot:
        assert "aksv_cdma" in await shown(pilot, "AKSV")


def test_without_a_terminal_the_difference_is_printed(capsys):
    assert main([OTHER, "--against", BASE]) == 0
    assert capsys.readouterr().out.startswith("Slower: ")
    assert main([OTHER, BASE, "--against", BASE]) == 2
    assert main([OTHER, "--against", "/nowhere"]) == 2
