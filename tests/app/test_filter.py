"""The filter: what passes, in every pane, and the way back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from profiles import big_profile, session_of, small_profile
from screen import explorer, frame, opened, press, settled

from tpuprof_tui.analysis.events import numbers_shown
from tpuprof_tui.analysis.selecting.filter_masks import apply_filter, filtered_session, with_condition
from tpuprof_tui.analysis.selecting.filters import compile_filter
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope


def view_of(session: Session, **changes: object) -> DisplayState:
    return replace(DisplayState.of(session.profile.start_ns, session.profile.end_ns), **changes)


@pytest.mark.parametrize("text", ["", "dur>300", "engine=TIU core=1", "rms", "nothing_is_called_so", "!sys"])
def test_masks_are_those_of_the_filter_lane_by_lane(session, text):
    found = apply_filter(session, text)
    predicate = compile_filter(text, session.profile)
    for number, lane in enumerate(session.profile.lanes):
        assert (found.lane(number) == predicate(lane)).all()
    assert found.count == int(found.mask.sum())


def test_a_filter_is_worked_out_once(session):
    assert apply_filter(session, "dur>300") is apply_filter(session, "dur>300")


@pytest.mark.parametrize("scope", [Scope(), Scope(1), Scope(0, 1)])
@pytest.mark.parametrize("in_window", [False, True])
def test_filter_scope_and_window_narrow_together(session, scope, in_window):
    everything = view_of(session, scope=scope, in_window=in_window)
    everything = everything.windowed(everything.full_end // 3, everything.span // 4)
    unfiltered = numbers_shown(session, everything)
    state = view_of(session, scope=scope, in_window=in_window, filter="dur>300")
    state = state.windowed(state.full_end // 3, state.span // 4)
    mask = apply_filter(session, "dur>300").mask
    assert numbers_shown(session, state).tolist() == [each for each in unfiltered.tolist() if mask[each]]
    assert 0 < len(numbers_shown(session, state)) < len(unfiltered)


def test_the_session_of_what_passes_holds_just_that(session):
    found = apply_filter(session, "dur>300 !core=0")
    small = found.session
    assert small.profile.event_count == found.count
    assert len(small.profile.lanes) == len(session.profile.lanes)
    for number, (lane, whole) in enumerate(zip(small.profile.lanes, session.profile.lanes, strict=True)):
        for key in whole.keys():  # noqa: SIM118
            kept = whole[key][found.lane(number)]
            assert np.array_equal(lane[key], kept, equal_nan=kept.dtype.kind == "f"), key
            assert np.array_equal(lane.take(key, slice(1, 3)), kept[1:3], equal_nan=kept.dtype.kind == "f")
    assert small.indexes[0].work.between(0, 10**12) <= session.indexes[0].work.between(0, 10**12)
    assert filtered_session(session, "") is session


@given(st.lists(st.sampled_from(["dur>300", "core=0 | core=1", "rms"]), min_size=1, max_size=3))
def test_narrowing_is_and(parts):
    session = session_of(small_profile(1, event_count=60))
    text, mask = "", np.ones(session.profile.event_count, bool)
    for part in parts:
        text = with_condition(text, part)
        mask &= apply_filter(session, part).mask
    assert (apply_filter(session, text).mask == mask).all()


async def test_a_filter_is_typed_counted_applied_and_cleared(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        count = apply_filter(screen.session, "dur>300").count
        await press(pilot, "2 ampersand")
        assert "name=MM2*" in frame(pilot.app).splitlines()[-1]
        await press(pilot, " ".join(["d", "u", "r", "greater_than_sign", "3", "0", "0"]))
        assert f"{count:,} of {profile.event_count:,} pass" in frame(pilot.app)
        assert screen.state.filter == ""
        await press(pilot, "enter")
        assert screen.state.filter == "dur>300"
        assert len(screen.table.rows.order) == count
        assert f"{count:,} instructions pass dur>300, all cores" in frame(pilot.app)
        spans = [screen.session.span_of(*screen.session.locate(number)) for number in screen.table.rows.order.tolist()]
        assert min(end - start for start, end in spans) > 300
        await press(pilot, "backslash ctrl+u enter")
        assert screen.state.filter == ""
        assert len(screen.table.rows.order) == profile.event_count


async def test_escape_steps_back_to_everything(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        screen.filtering.apply("core=1")
        await press(pilot, "2")
        assert 0 < len(screen.table.rows.order) < profile.event_count
        await press(pilot, "escape")
        assert screen.state.filter == ""
        assert len(screen.table.rows.order) == profile.event_count


async def test_the_message_counts_within_the_scope_and_goes_with_the_filter(profile):
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j o 2 ampersand d u r greater_than_sign 3 0 0")
        passing = numbers_shown(screen.session, replace(screen.state, filter="dur>300"))
        total = len(screen.table.rows.order)
        assert 0 < len(passing) < total < profile.event_count
        assert f"{len(passing)} of {total} pass" in frame(pilot.app)
        await press(pilot, "enter")
        assert f" {len(passing)} instructions pass dur>300, " in frame(pilot.app)
        assert f"{len(passing)} of {total} instructions pass." in frame(pilot.app).splitlines()[-1]
        await press(pilot, "escape")
        assert screen.state.filter == ""
        assert "pass" not in frame(pilot.app)


async def test_leaving_the_prompt_keeps_the_filter_that_holds(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        screen.filtering.apply("core=1")
        await press(pilot, "ampersand x y escape")
        assert screen.state.filter == "core=1"


async def test_a_fault_is_marked_and_not_applied(profile):
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "ampersand d u r greater_than_sign 5 space n o k e y = 1".replace("=", "equals_sign"))
        assert "There is no column 'nokey'" in frame(pilot.app)
        assert screen.prompt.hint.column == 6
        await press(pilot, "enter")
        assert screen.prompt.is_open
        assert screen.state.filter == ""


async def test_nothing_that_passes_says_what_to_do(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        screen.filtering.apply("dur>10s")
        await press(pilot, "2")
        assert "No instruction here passes the filter: & changes it" in frame(pilot.app)
        await press(pilot, "j G s slash a enter n escape escape")
        assert screen.state.filter == ""


async def test_many_instructions_are_filtered_in_a_thread():
    async with opened(big_profile(60_000, cores=2)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 ampersand c o r e equals_sign 1")
        assert "30,000 of 60,000 pass" in frame(pilot.app)
        await press(pilot, "enter")
        await settled(pilot)
        assert len(screen.table.rows.order) == 30_000
        assert "30,000 instructions pass core=1, all cores" in frame(pilot.app)


def counts(screen) -> dict[str, int]:
    """Work by kernel function, as the summary tells it."""
    table = screen.summary.answers.by_view["kernels"].table("by_name")
    return dict(zip(table.column("name"), table.column("count"), strict=True))


async def test_the_summary_counts_only_what_passes(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        every = counts(screen)
        screen.filtering.apply("kernel=rms*")
        await settled(pilot)
        assert counts(screen) == {label: count for label, count in every.items() if label.startswith("rms")}
        lanes = screen.summary.answers.by_view["lanes"].table("lanes")
        assert sum(lanes.column("count")) == apply_filter(screen.session, "kernel=rms*").count
        assert "filter kernel=rms*: all cores" in frame(pilot.app)
        await press(pilot, "escape")
        assert counts(screen) == every
