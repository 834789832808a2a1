"""A step in the text of a filter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import small_profile

from tpuprof_tui.analysis.selecting.filters import FilterError, compile_filter, split_step, with_step
from tpuprof_tui.analysis.steps.step_detection import with_steps

PROFILE = with_steps(small_profile(1))


@pytest.mark.parametrize(
    ("text", "step", "rest"),
    [
        ("", None, ""),
        ("step=2", 2, ""),
        ("  step = 12  ", 12, ""),
        ("step==3 TIU", 3, "TIU"),
        ("core=3 step=4 dur>1us", 4, "core=3 dur>1us"),
        ("step=4 (TIU | GDMA)", 4, "(TIU | GDMA)"),
        ("STEP=5", 5, ""),
        ("TIU | step=2", None, "TIU | step=2"),
        ("step=2 TIU | GDMA", None, "step=2 TIU | GDMA"),
        ("!step=2", None, "!step=2"),
        ("(step=2)", None, "(step=2)"),
        ("step>2", None, "step>2"),
        ("step!=2", None, "step!=2"),
        ('name="step=2"', None, 'name="step=2"'),
        ("step=", None, "step="),
        ("step=x", None, "step=x"),
    ],
)
def test_the_step_of_a_filter(text, step, rest):
    assert split_step(text)[0] == step
    assert with_step(text, None) == rest


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("", "step=7"),
        ("step=2", "step=7"),
        ("core=3 step=4 dur>1us", "step=7 core=3 dur>1us"),
        ("TIU | GDMA", "step=7 (TIU | GDMA)"),
        ("step=4 (TIU | GDMA)", "step=7 (TIU | GDMA)"),
    ],
)
def test_another_step(text, made):
    assert with_step(text, 7) == made


parts = st.sampled_from(["TIU", "step=1", "step=0", "|", "!", "(", ")", "dur>50", 'name="mm 2"', "/a|b/", "core=1"])


@given(st.lists(parts, max_size=6).map(" ".join), st.integers(0, 3))
def test_what_passes_is_of_the_step_and_passes_the_rest(text, number):
    try:
        rest = compile_filter(with_step(text, None), PROFILE)
    except FilterError:
        return
    made = with_step(text, number)
    assert split_step(made)[0] == number
    passes, step = compile_filter(made, PROFILE), compile_filter(f"step={number}", PROFILE)
    for lane in PROFILE.lanes:
        assert passes(lane).tolist() == (rest(lane) & step(lane)).tolist()
