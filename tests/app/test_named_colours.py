"""Colours of the timeline by names that a source finds: operators and modules of PyTorch traces."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import session_of
from screen import AS_RECORDED, SIZES, compared, explored, explorer, frame, opened, press, settled

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.app.drawing.colouring import has_colour_sums, kernel_category, known_names, name_numbers
from tpuprof_tui.app.drawing.glyphs import UNICODE
from tpuprof_tui.app.drawing.painter import LEGEND_LINES, legend_lines
from tpuprof_tui.app.drawing.theme import DARK
from tpuprof_tui.app.panes.timeline import painting
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.model.vocabulary import GENERIC
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY as SOPHGO
from tpuprof_tui.sources.torch.views.by_name import by_operator
from tpuprof_tui.sources.torch.vocabulary import MODULES
from tpuprof_tui.sources.torch.vocabulary import VOCABULARY as TORCH

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture(scope="module")
def trace():
    return open_profile(SAMPLES / "torch_cuda_synthetic")


def stream_of(session: Session) -> int:
    return next(number for number, lane in enumerate(session.profile.lanes) if lane.kind == "stream" and len(lane) > 9)


async def test_the_key_goes_through_category_operator_and_module(trace):
    async with opened(trace) as pilot:
        screen = explorer(pilot)
        assert "colours:" not in frame(pilot.app)
        for way in ("operator", "module"):
            await press(pilot, "C")
            assert screen.state.colouring == way
            assert f"colours: {way}" in frame(pilot.app)
        await press(pilot, "C")
        assert screen.state.colouring == "operation"
        assert "Colours mean: category. L explains them." in frame(pilot.app)
        assert "needs" not in frame(pilot.app).splitlines()[-1]


async def test_without_modules_the_key_passes_them_over_and_says_what_they_need(trace):
    async with opened(replace(trace, capabilities=trace.capabilities - {MODULES}), (80, 24)) as pilot:
        await press(pilot, "C")
        assert "needs" not in frame(pilot.app).splitlines()[-1]
        await press(pilot, "C")
        assert explorer(pilot).state.colouring == "operation"
        assert frame(pilot.app).splitlines()[-1].strip() == (
            "Colours mean: category. L explains them. Module needs with_stack=True."
        )


async def test_what_was_chosen_is_remembered_where_it_is_known(trace, profile):
    async with opened(trace) as pilot:
        await press(pilot, "C C")
        await pilot.press("q")
    async with opened(trace) as pilot:
        assert explorer(pilot).state.colouring == "module"
        assert "colours: module" in frame(pilot.app)
    for other in (replace(trace, capabilities=trace.capabilities - {MODULES}), profile):
        async with opened(other) as pilot:
            assert explorer(pilot).state.colouring == "operation"


def test_help_names_what_each_source_colours_by():
    told = [words.say("{colourings}") for words in (TORCH, SOPHGO, GENERIC)]
    assert told == ["category, operator or module", "operation, kernel function, bandwidth or uArch rate",
                    "operation or scope"]  # fmt: skip


async def test_events_have_the_colour_of_their_name_and_the_cursor_says_it(trace):
    async with opened(trace, ascii_only=True) as pilot:
        screen = explorer(pilot)
        session, timeline = screen.session, screen.timeline
        lane = stream_of(session)
        await press(pilot, "C C")
        # the longest that has one
        numbers = name_numbers(session.indexes[lane], np.arange(len(session.profile.lanes[lane])), "module")
        row = int(np.argmax(np.where(numbers >= 0, session.profile.lanes[lane]["duration"], 0)))
        number, (start, end) = int(numbers[row]), session.span_of(lane, row)
        screen.store.change(replace(screen.state.windowed(start, end - start), cursor=start))
        name = known_names(session, "module")[number]
        line = next(place for place, each in enumerate(timeline.lanes.rows) if each.lane == lane)
        # its edge is below the cursor
        cells = timeline.painter.line(line, -1)[-1]
        assert cells.text.startswith(f"{kernel_category(number, '').letter} sm80")
        assert cells.style == timeline.palette.filled(kernel_category(number, "").shades)
        screen.store.change(replace(screen.state, selection=timeline.lanes.selection_of(line)))
        await settled(pilot)
        assert f"  module {name}" in frame(pilot.app)


@pytest.mark.parametrize("small", [True, False])
async def test_with_a_filter_what_passes_keeps_its_colours(trace, small, monkeypatch):
    monkeypatch.setattr(painting, "AT_ONCE", 20_000 if small else 0)
    async with opened(trace) as pilot:
        screen = explorer(pilot)
        timeline = screen.timeline
        screen.filtering.apply("dur>20us")
        await settled(pilot)
        await press(pilot, "C")
        passing = timeline.lane_data.passing
        assert passing is not None
        for number, index in enumerate(passing.session.indexes):
            whole = screen.session.indexes[number]
            kept = np.flatnonzero(passing.lane(number))
            assert len(kept) == len(index.lane)
            wanted = name_numbers(whole, kept, "operator").tolist()
            assert name_numbers(index, np.arange(len(kept)), "operator").tolist() == wanted
        assert len(set(wanted)) < len(whole.lane)


async def test_of_large_traces_a_thread_finds_the_names_while_keys_work(trace, monkeypatch):
    monkeypatch.setattr(painting, "AT_ONCE", 0)
    async with opened(trace, (120, 40)) as pilot:
        screen = explorer(pilot)
        timeline, index = screen.timeline, screen.session.indexes[stream_of(screen.session)]
        await press(pilot, "L")
        timeline.action_do("colours")
        await pilot.pause()
        assert screen.state.colouring == "operator"
        if not has_colour_sums(index, "operator"):
            assert "(computing ...)" in timeline.title_text()
        await settled(pilot)
        assert has_colour_sums(index, "operator")
        assert "computing" not in timeline.title_text()
        first, second = by_operator(screen.session)[0][:2]
        assert f"operator: █A {first}  █B {second}" in frame(pilot.app)


def test_until_names_are_known_there_is_none(trace):
    session = session_of(trace)
    index = session.indexes[stream_of(session)]
    assert known_names(session, "operator") is None
    assert name_numbers(index, np.arange(3), "operator").tolist() == [-1] * 3
    assert not has_colour_sums(index, "operator")
    # room for them is kept, so that lanes stay where they are when names are known
    before, after = (legend_lines(trace, "operator", 80, DARK, UNICODE, names) for names in (None, ["a"] * 99))
    assert len(before) == len(after) == LEGEND_LINES
    assert "nothing" not in before[0][-1].text
    (nothing,) = legend_lines(trace, "operator", 80, DARK, UNICODE, [])
    assert nothing[-1].text == "no values are known here"


def written(path: Path, kernels: list[tuple[str, int]]) -> str:
    """A trace of operators that launch a kernel each, of so many us."""
    events = []
    for number, (name, length) in enumerate(kernels, 1):
        time = number * 1000
        events += [
            {"name": name, "cat": "cpu_op", "pid": 1, "tid": 1, "ts": time, "dur": 9, "args": {"External id": number}},
            {"name": "cudaLaunchKernel", "cat": "cuda_runtime", "pid": 1, "tid": 1, "ts": time + 1, "dur": 2,
             "args": {"External id": number, "correlation": number}},
            {"name": "gemm", "cat": "kernel", "pid": 0, "tid": 7, "ts": time + 5, "dur": length,
             "args": {"correlation": number, "device": 0, "stream": 7}},
        ]  # fmt: skip
    record = {"schemaVersion": 1, "traceEvents": [{"ph": "X", **each} for each in events]}
    path.write_text(json.dumps(record))
    return str(path)


async def test_names_of_the_base_have_the_letters_they_have_here(tmp_path):
    here = written(tmp_path / "here.pt.trace.json", [("long", 900), ("short", 700)])
    base = written(tmp_path / "base.pt.trace.json", [("gone", 900), ("short", 800), ("long", 700)])
    app = TpuprofApp(here, against=base, ascii_only=True)
    async with app.run_test(size=(160, 48)) as pilot:
        await explored(pilot)
        await press(pilot, "C L")
        painter, rows = app.screen.timeline.painter, app.screen.timeline.lanes.rows
        lines = {bool(row.base): "".join(segment.text for segment in painter.line(number, -1))
                 for number, row in enumerate(rows) if session_lane(app, row).kind == "stream"}  # fmt: skip
        letters = ["".join(dict.fromkeys(char for char in lines[side] if char in "ABC")) for side in (False, True)]
        assert letters == ["AB", "CBA"]
        assert "operator: A long  B short" in frame(app)


def session_lane(app, row):
    session = app.screen.session if row.base is None else app.screen.session.baseline
    return session.profile.lanes[(row.base or row).lane]


@AS_RECORDED
async def test_frames_by_module_are_as_recorded(trace, size, ascii_only):
    async with opened(trace, SIZES[size], ascii_only=ascii_only) as pilot:
        await press(pilot, "L C C" if size == "200x60" else "1 L C C")
        lines = frame(pilot.app).split("\n")
    compared("colours-module", size, ascii_only, lines, width=SIZES[size][0])
