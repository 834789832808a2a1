"""A cursor never selects, and whatever is selected, the screen shows the figures of ``tpuprof report`` of just that."""

from __future__ import annotations

import json
import shlex
from contextlib import redirect_stdout
from io import StringIO
from random import Random

import pytest
from command_line import SAMPLES
from screen import explorer, frame, opened, press

from tpuprof_tui.analysis.selecting.moves import place_of, report_words
from tpuprof_tui.app.panes.headline import selection_parts
from tpuprof_tui.cli.main import main
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.as_json import answer_record
from tpuprof_tui.views.report import workers_of

#: Keys that only look: cursors of all panes, lists, details.
LOOKING = (
    *("1", "2", "3", "t", "i", "j", "k", "down", "up", "l", "h", "right", "left", "pagedown", "home", "end"),
    *("full_stop", "comma", "tab"),
)
#: Keys that select: zoom, range, scope, step, back.
SELECTING = ("w", "w", "s", "a", "d", "D", "r", "o", "0", "escape", "f")
INPUTS = (
    "torch_cuda_synthetic/node0_4000.1700000000000.pt.trace.json.gz",
    "aks_decode_mode2",
    "ascend_synthetic/rank0_ascend_pt",
)


@pytest.mark.parametrize("sample", INPUTS)
async def test_a_cursor_never_selects(sample):
    random = Random(sample)
    async with opened(open_profile(SAMPLES / sample), (120, 40)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "1 w w j o" if "aks" in sample else "1 w w")
        query = screen.summary.answers.latest_query
        line = frame(pilot.app).splitlines()[0]
        for _ in range(6):
            await press(pilot, " ".join(random.choices(LOOKING, k=12)))
            found = screen.summary.answers.latest_query
            assert (found.scope, found.range, found.step, found.filter) == (
                query.scope, query.range, query.step, query.filter,
            )  # fmt: skip
            assert frame(pilot.app).splitlines()[0] == line


@pytest.mark.parametrize("sample", INPUTS)
async def test_figures_are_those_of_the_selection_that_is_shown(sample):
    random, path = Random(f"{sample}0"), SAMPLES / sample
    profile = open_profile(path)
    (worker,) = workers_of(profile)
    async with opened(profile, (120, 40)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "1")
        compared = 0
        for _ in range(8):
            await press(pilot, " ".join(random.choices((*LOOKING[:-1], *SELECTING * 2), k=8)))
            if pilot.app.screen is not screen:
                await press(pilot, "escape escape")
                continue
            if random.random() < 0.3:
                await press(pilot, f"colon {' '.join('step')} space 1 enter")
            await press(pilot, "3")
            answers = screen.summary.answers
            while any(map(answers.is_awaited, answers.by_view)) or (
                screen.headline.selection != selection_parts(answers.latest_query)
            ):
                await pilot.pause(0.02)
            place = place_of(screen.session, screen.state, answers.answered_query.range)
            words = shlex.split(report_words(str(path), place))[1:]
            with redirect_stdout(StringIO()) as out:
                assert main([*words, "--json"]) in (0, 1)
            by_command = json.loads(out.getvalue())["views"]
            assert screen.headline.selection == selection_parts(answers.answered_query)
            for view, found in answers.by_view.items():
                if view in by_command:
                    asked = by_command[view]
                    asked = asked["workers"][worker.key] if "workers" in asked else asked
                    assert json.loads(json.dumps(answer_record(found, worker.offset_ns))) == asked, (view, words)
                    compared += 1
        assert compared > 20
