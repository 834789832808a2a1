"""The explorer with something to compare with: the verdict first, views with differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from screen import AS_RECORDED, SIZES, compared, explored, frame, press

from tpuprof_tui.analysis.selecting.moves import select_event
from tpuprof_tui.app.panes.summary.summary import SummaryPane
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.cli.main import main
from tpuprof_tui.views.differences import differences_of

SAMPLES = Path(__file__).parents[2] / "samples"

import torch_trace  # noqa: E402
from capture_writer.capture import write_capture  # noqa: E402
from capture_writer.options import Options  # noqa: E402

BASE, OTHER = str(SAMPLES / "aks_decode_mode2"), str(SAMPLES / "aks_decode_mode1")


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> tuple[str, str]:
    """A capture and its base: one kernel function slower, one gone, one new."""
    folder = tmp_path_factory.mktemp("pair")
    base = Options("base", batches=2, cores=(0, 1), kernels=("embedding", "rmsnorm", "matmul", "mlp", "rmsnorm",
                                                            "lm_head", "sampling"))  # fmt: skip
    other = replace(base, name="other", run=2, slower=("mlp:2.5",),
                    kernels=("embedding", "matmul", "mlp", "rope", "lm_head", "sampling"))  # fmt: skip
    paths = [str(write_capture(each, folder / each.name, truth=False).path) for each in (base, other)]
    return paths[1], paths[0]


async def shown(pilot, text: str) -> str:
    for _ in range(100):
        await pilot.pause(0.05)
        seen = frame(pilot.app)
        if text in seen:
            return seen
    raise AssertionError(f"{text!r} is not on the screen:\n{frame(pilot.app)}")


async def test_the_summary_tells_differences(pair):
    app = TpuprofApp(pair[0], against=pair[1], ascii_only=False)
    async with app.run_test(size=(100, 40)) as pilot:
        first = await shown(pilot, "slower per batch (+")
        await pilot.press("3")
        seen = await shown(pilot, "Against the base")
        assert "slower" in first.splitlines()[0]
        assert "llama_mlp_multi_core took longer" in seen
        pane = app.screen.query_one("#summary", SummaryPane)
        assert pane.answers.non_empty_views()[0].id == "comparison"
        await press(pilot, "colon g r o u p space k e r n e l enter")
        seen = await shown(pilot, "delta")
        groups = [line.split() for line in seen.splitlines() if "multi_core" in line]
        assert groups[0][1] == "llama_mlp_multi_core"
        by_name = {line[1]: line for line in groups}
        # what the base alone has: nothing here, and all of it gone
        assert by_name["rmsnorm_multi_core"][2] == "0"
        assert by_name["rmsnorm_multi_core"][-3].startswith("-")
        await press(pilot, "escape")
        pane.choose("operations")
        seen = await shown(pilot, "Operations of all cores")
        rows = [line.split() for line in seen.splitlines() if line.strip().startswith("tensorLd")]
        assert rows[0][-1] == "more"
        # Enter on a row goes to the events of this capture
        assert any(target.condition for target in pane.page.targets[0])


async def test_differences_are_walked_and_sides_swap(pair):
    app = TpuprofApp(pair[0], against=pair[1], ascii_only=False)
    async with app.run_test(size=(160, 48)) as pilot:
        await shown(pilot, "against base slower")
        await pilot.press("semicolon")
        await shown(pilot, "in the base")
        assert app.screen.state.selection.row >= 0
        found = differences_of(app.screen.session)
        paired = int(np.flatnonzero((found.partner >= 0) & found.differs)[0])
        app.screen.store.change(select_event(app.screen.session, app.screen.state, *app.screen.session.locate(paired)))
        await shown(pilot, "base -> here: ")
        fields = {each.label: each.text for each in app.screen.panes.detail.choices if " -> " in each.text}
        assert {"Start", "Duration"} <= set(fields)
        await pilot.press("W")
        await shown(pilot, "against base faster")
        assert (app.opening.capture.path, app.opening.against) == (pair[1], pair[0])
        await pilot.press("Q", "semicolon")
        await shown(pilot, "Nothing to compare with")
        assert app.screen.session.baseline is None


@AS_RECORDED
async def test_both_sides_as_recorded(size, ascii_only, pair):
    app = TpuprofApp(pair[0], against=pair[1], ascii_only=ascii_only)
    async with app.run_test(size=SIZES[size]) as pilot:
        await explored(pilot)
        await press(pilot, "e" if size == "80x24" else "")
        for name, keys in (("compared", ""), ("compared-tree", "t")) if size == "80x24" else (("compared", ""),):
            await press(pilot, keys)
            compared(name, size, ascii_only, frame(app).split("\n"), width=SIZES[size][0])


async def test_lanes_of_both_sides_lie_on_one_axis(pair, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    app = TpuprofApp(pair[0], against=pair[1], ascii_only=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await explored(pilot)
        screen = app.screen
        layout, axis = screen.timeline.lanes, screen.timeline.lanes.axis
        kinds = [row.kind for row in layout.rows]
        assert kinds.count("base") * 2 == len(kinds)
        # pairs of launches begin in one cell, wherever one zooms
        longest = int((np.diff(axis.position) - np.diff(axis.other)).argmax())
        start, end = axis.other[longest], axis.other[longest + 2]
        screen.store.change(screen.state.windowed(int(start), int(end - start)))
        state = screen.state
        edges, base = (
            axis.edges(state.start, state.end, layout.cells),
            axis.base_edges(state.start, state.end, layout.cells),
        )
        for one, two in zip(axis.other.tolist(), axis.base.tolist(), strict=True):
            assert not state.start <= one < state.end or np.searchsorted(base, two, side="right") - 1 == layout.cell_of(
                one
            )
        # the cursor steps over what this side has nothing of, and back
        gap = int(np.flatnonzero(edges[1:] == edges[:-1])[0])
        screen.store.change(state.at(int(edges[gap]) - 1))
        await press(pilot, "right")
        after = screen.state.cursor
        assert after >= edges[gap]
        await press(pilot, "left")
        assert screen.state.cursor < edges[gap] <= after
        # lines of the base are walked over, and filtered as the others are
        selected_rows = []
        for _ in range(3):
            await press(pilot, "j")
            selected_rows.append(layout.rows[layout.selected_row(screen.state)].kind)
        assert "base" not in selected_rows
        await press(pilot, "colon f i l t e r space d u r greater_than_sign 5 enter")
        assert screen.timeline.base.passing.count
        await press(pilot, "Q")
        await explored(pilot)
        assert not app.screen.timeline.lanes.has_base


async def test_a_base_is_chosen_from_the_list(pair):
    app = TpuprofApp(str(Path(pair[0]).parents[1]), ascii_only=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot, "other/other")
        await press(pilot, "j" if "other" in str(app.screen.query_one("#chooser").entries[0].path) else "")
        await press(pilot, "b")
        assert "base/base" in next(line for line in frame(app).splitlines() if "(base)" in line)
        # the same key again takes it back
        await press(pilot, "b")
        assert "(base)" not in frame(app)
        assert app.opening.against is None
        await press(pilot, "b g" if app.screen.query_one("#chooser").cursor else "b j")
        await press(pilot, "enter")
        await shown(pilot, "slower per batch (+")


async def test_a_base_of_another_source_is_compared_by_operator(tmp_path):
    """Views that it lacks are those of this profile alone."""
    (trace,) = torch_trace.write_run(tmp_path / "gpu", steps=3, layers=2)
    app = TpuprofApp(str(trace), against=str(SAMPLES / "ascend_synthetic" / "rank0_ascend_pt"), ascii_only=False)
    async with app.run_test(size=(120, 60)) as pilot:
        await shown(pilot, "per step (")
        await pilot.press("3")
        assert "Operators per step, by difference" in await shown(pilot, "Against the base")
        pane = app.screen.query_one("#summary", SummaryPane)
        for view in pane.answers.views:
            pane.choose(view.id)
            seen = await shown(pilot, view.title if view.id in ("kernels", "streams") else "")
            assert "Unexpected error" not in seen
        assert "figures of this one alone" in " ".join(pane.answers.by_view["kernels"].notes)


async def test_what_cannot_be_compared_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    app = TpuprofApp(str(SAMPLES / "aks_decode_mode0"), against=str(SAMPLES / "aksv_cdma"), ascii_only=False)
    async with app.run_test(size=(100, 30)) as pilot:
        assert "aksv_cdma" in await shown(pilot, "AKSV")


def test_without_a_terminal_the_difference_is_printed(capsys):
    assert main([OTHER, "--against", BASE]) == 0
    assert capsys.readouterr().out.startswith("Slower per batch: ")
    assert main([OTHER, BASE, "--against", BASE]) == 2
    assert main([OTHER, "--against", "/nowhere"]) == 2


async def test_the_verdict_says_that_it_is_not_of_the_selected_core(pair):
    app = TpuprofApp(pair[0], against=pair[1])
    async with app.run_test(size=(100, 40)) as pilot:
        await shown(pilot, "slower per batch (+")
        assert "does not follow the scope" not in await shown(pilot, "Against the base")
        await press(pilot, "j o")
        assert "figures of all cores: a comparison does not follow the scope" in await shown(pilot, "core 0, whole")
