"""Search: which instructions match, in which order, and the way back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import big_profile, session_of, small_profile
from screen import explorer, frame, opened, press, settled

from tpuprof_tui.analysis.events import numbers_in
from tpuprof_tui.analysis.selecting.search import Hits, hits_in_table, hits_in_time, matching, pattern_of
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope


def names_of(session: Session, number: int) -> list[str]:
    lane_number, row = session.locate(number)
    lane, strings = session.profile.lanes[lane_number], session.profile.strings
    return [strings[key][int(lane[key][row])] for key in ("name", "kernel", "type") if key in lane]


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("mm", "MM2_NN", True),
        ("MM", "mm2", False),
        ("m.2", "MM2", True),
        ("^add$", "addx", False),
        ("f(x", "call f(x)", True),
        ("[", "a[0]", True),
    ],
)
def test_what_a_text_means(text, name, found):
    assert bool(pattern_of(text).search(name)) is found


@given(st.text(max_size=20))
def test_any_text_can_be_searched(text):
    session = session_of(small_profile(1, event_count=30))
    assert matching(session, text).shape == (session.profile.event_count,)


def test_matches_are_those_of_every_name(session):
    mask = matching(session, "rms")
    wanted = [any("rms" in name.lower() for name in names_of(session, number)) for number in range(len(mask))]
    assert mask.tolist() == wanted
    assert 0 < int(mask.sum()) < len(mask)


def test_hits_in_time_are_by_start_then_lane(session):
    hits = hits_in_time(session, "rms", numbers_in(session, Scope(), None))
    keys = [(session.span_of(*session.locate(number))[0], number) for number in hits.numbers.tolist()]
    assert keys == sorted(keys)
    assert [key for key, _ in keys] == hits.keys.tolist()


def test_hits_in_the_table_are_in_its_order(session):
    order = np.random.default_rng(1).permutation(session.profile.event_count)
    hits = hits_in_table(session, "rms", order)
    mask = matching(session, "rms")
    assert hits.numbers.tolist() == [number for number in order.tolist() if mask[number]]
    assert order[hits.keys].tolist() == hits.numbers.tolist()


def test_an_empty_text_finds_nothing(session):
    assert len(hits_in_table(session, "", np.arange(5))) == 0
    assert len(hits_in_time(session, "", np.arange(5))) == 0


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 30)), min_size=1, max_size=12, unique=True),
    st.tuples(st.integers(-1, 7), st.integers(-1, 31)),
    st.sampled_from([1, -1]),
)
def test_steps_are_as_an_obvious_search_finds_them(pairs, here, steps):
    pairs = sorted(pairs)
    hits = Hits("x", np.array([key for key, _ in pairs]), np.array([number for _, number in pairs]))
    after = [pair for pair in pairs if pair > here] if steps > 0 else [pair for pair in pairs if pair < here]
    wrapped = not after
    wanted = (after or pairs)[0 if steps > 0 else -1]
    assert hits.stepped(*here, steps) == (pairs.index(wanted), wrapped)


async def test_the_table_is_searched_as_one_types(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 j j")
        before = screen.state
        hits = hits_in_table(screen.session, "rms", screen.table.rows.order)
        await press(pilot, "slash r m s")
        first = hits.index(2, -1)
        assert screen.table.rows.position == hits.keys[first]
        assert f"{first + 1}/{len(hits)}" in frame(pilot.app).splitlines()[-1]
        await press(pilot, "escape")
        assert screen.state == before
        assert screen.table.rows.position == 2


async def test_matches_are_stepped_through_and_wrap(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 slash r m s enter")
        hits = hits_in_table(screen.session, "rms", screen.table.rows.order)
        assert screen.focused.id == "table"
        assert screen.table.rows.position == hits.keys[0]
        await press(pilot, "n n")
        assert screen.table.rows.position == hits.keys[2]
        assert f"/rms  3/{len(hits)}" in frame(pilot.app)
        await press(pilot, "N N N")
        assert screen.table.rows.position == hits.keys[-1]
        assert "from the end again" in frame(pilot.app)
        await press(pilot, "n")
        assert screen.table.rows.position == hits.keys[0]
        await press(pilot, "escape n")
        assert "Nothing was searched for yet" in frame(pilot.app)


async def test_the_timeline_is_searched_in_time_over_its_lanes(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j o home slash r m s enter")
        hits = hits_in_time(screen.session, "rms", numbers_in(screen.session, Scope(0), None))
        seen = []
        for _ in range(3):
            selection = screen.state.selection
            seen.append(screen.session.number(selection.lane, selection.row))
            assert screen.state.start <= screen.state.cursor < screen.state.end
            await press(pilot, "n")
        assert seen == hits.numbers[:3].tolist()
        assert len(set(seen)) == 3


async def test_nothing_found_is_said_and_nothing_moves(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 j j slash z z z")
        assert "no name matches" in frame(pilot.app)
        assert screen.table.rows.position == 2
        await press(pilot, "enter")
        assert "No name matches zzz" in frame(pilot.app)
        await press(pilot, "n")
        assert screen.table.rows.position == 2


async def test_an_empty_search_repeats_the_last(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 slash r m s enter slash enter")
        hits = hits_in_table(screen.session, "rms", screen.table.rows.order)
        assert screen.table.rows.position == hits.keys[1]


async def test_search_stays_within_the_filter(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        screen.filtering.apply("core=1")
        await press(pilot, "2 slash r m s enter n n")
        lane, row = screen.state.selection.lane, screen.state.selection.row
        assert profile.lanes[lane]["core"][row] == 1
        await press(pilot, "1 n")
        lane, row = screen.state.selection.lane, screen.state.selection.row
        assert profile.lanes[lane]["core"][row] == 1


async def test_many_instructions_are_searched_in_a_thread():
    async with opened(big_profile(60_000, cores=2)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 slash r m s")
        await settled(pilot)
        hits = hits_in_table(screen.session, "rms", screen.table.rows.order)
        assert screen.table.rows.position == hits.keys[0]
        await press(pilot, "enter n")
        assert f"2/{len(hits):,}" in frame(pilot.app)


async def test_after_a_search_in_the_table_the_timeline_goes_on_in_time(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        # the longest first, so that both orders differ
        await press(pilot, "2 S d u r enter slash r m s enter")
        assert screen.focused.id == "table"
        screen.timeline.focus()
        await press(pilot, "n")
        hits = hits_in_time(screen.session, "rms", numbers_in(screen.session, Scope(), None))
        selection = screen.state.selection
        before = int(screen.table.rows.order[hits_in_table(screen.session, "rms", screen.table.rows.order).keys[0]])
        place = int(np.flatnonzero(hits.numbers == before)[0])
        assert screen.session.number(selection.lane, selection.row) == hits.numbers[(place + 1) % len(hits)]
