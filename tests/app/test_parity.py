"""What is typed on the screen and what stands on a command line are answered with the same numbers."""

from __future__ import annotations

import json

import pytest
from command_line import SAMPLES
from screen import explorer, opened, press

from tpuprof_tui.cli.main import main
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.as_json import answer_record
from tpuprof_tui.views.report import workers_of

SOPHGO, TORCH, ASCEND = ("aks_decode_mode2", 0), ("torch_cpu_recorded", 2), ("ascend_synthetic/rank0_ascend_pt", 1)
FILTER, STEP = (("filter dur>2us",), ("--filter", "dur>2us")), (("step {step}",), ("--step", "{step}"))
BOTH = (("filter dur>2us", "step {step}"), ("--step", "{step}", "--filter", "dur>2us"))
#: A sample and a step of it, what is typed into the command place, and the words of ``tpuprof report``: each of one
#: sample, several at once of all.
TYPED = [
    (SOPHGO, BOTH), (TORCH, BOTH), (ASCEND, BOTH), (SOPHGO, STEP), (ASCEND, FILTER),
    (TORCH, (("filter step={step}",), ("--filter", "step={step}"))),
    (SOPHGO, (("window 100us..700us",), ("--range", "100us..700us"))),
]  # fmt: skip


@pytest.mark.parametrize(("place", "asked"), TYPED)
async def test_typed_and_asked(place, asked, capsys):
    (sample, step), (typed, words) = place, asked
    path = SAMPLES / sample
    assert main(["report", str(path), *(word.format(step=step) for word in words), "--json"]) == 0
    by_command = json.loads(capsys.readouterr().out)["views"]
    profile = open_profile(path)
    (worker,) = workers_of(profile)
    zero = profile.start_ns if worker.window is None else worker.window[0]
    async with opened(profile, (120, 40)) as pilot:
        await press(pilot, "3")
        for text in typed:
            keys = ({" ": "space"}.get(char, char) for char in text.format(step=step))
            await press(pilot, f"colon {' '.join(keys)} enter")
        screen = explorer(pilot)
        answers = screen.summary.answers.by_view
        assert len(answers) >= 5
        for view, found in answers.items():
            told = by_command[view]
            told = told["workers"][worker.key] if "workers" in told else told
            assert json.loads(json.dumps(answer_record(found, zero))) == told, view
