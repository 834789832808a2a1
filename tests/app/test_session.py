from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import big_profile, make_lane, make_profile, session_of, small_profile

from tpuprof_tui.analysis.events import numbers_in
from tpuprof_tui.analysis.index.ordering import lane_values
from tpuprof_tui.analysis.selecting.cell_texts import row_texts
from tpuprof_tui.analysis.selecting.session import Session, ordered
from tpuprof_tui.analysis.selecting.state import Scope, Sort
from tpuprof_tui.model import INT_MISSING, Strings, is_missing
from tpuprof_tui.sources.sophgo.schema import COLUMNS, SCHEMA


def slow_key(session: Session, key: str, number: int):
    """The value of one instruction, looked up the obvious way; None where it is missing."""
    lane_number, row = session.locate(number)
    lane = session.profile.lanes[lane_number]
    values = lane_values(session.profile, lane, key, np.array([row]))
    if values is None or is_missing(values)[0]:
        return None
    if SCHEMA[key].kind == "text":
        text = session.profile.strings[key][int(values[0])]
        return (text.casefold(), text)
    return values[0]


@pytest.mark.parametrize("down", [False, True])
def test_every_column_sorts_as_an_obvious_sort_does(session, down):
    numbers = numbers_in(session, Scope(), None)
    for column in (column.key for column in COLUMNS):
        found = ordered(session, numbers, Sort(column, down)).tolist()
        assert sorted(found) == numbers.tolist(), column
        keys = [slow_key(session, column, number) for number in found]
        known = [key for key in keys if key is not None]
        assert keys[: len(known)] == known, f"{column}: what is missing comes last"
        assert known == sorted(known, reverse=down), column
        ties = [(one, two) for one, two, first, second in zip(found, found[1:], keys, keys[1:], strict=False)
                if first == second]  # fmt: skip
        assert all(one < two for one, two in ties), f"{column}: equals stay as they were"


@given(st.lists(st.one_of(st.integers(-(2**62), 2**62), st.just(INT_MISSING)), min_size=1, max_size=50), st.booleans())
@settings(max_examples=50)
def test_any_integers_sort(values, down):
    starts = np.arange(len(values)) * 10
    lane = make_lane("GDMA", 0, starts=starts, ends=starts + 5, bytes=np.array(values, dtype=np.int64))
    session = session_of(make_profile([lane]))
    found = ordered(session, numbers_in(session, Scope(), None), Sort("bytes", down))
    known = [values[number] for number in found.tolist() if values[number] != INT_MISSING]
    assert known == sorted(known, reverse=down)
    assert all(values[number] == INT_MISSING for number in found.tolist()[len(known) :])


def test_numbers_and_places_are_inverse(session):
    total = session.profile.event_count
    places = [session.locate(number) for number in range(total)]
    assert [session.number(*place) for place in places] == list(range(total))
    assert all(0 <= row < len(session.profile.lanes[lane]) for lane, row in places)


def test_a_core_holds_its_engines_and_what_it_submitted(session):
    profile = session.profile
    for core in profile.groups.numbers:
        wanted = []
        for number, lane in enumerate(profile.lanes):
            rows = range(len(lane)) if profile.unit_number(lane) == core else np.flatnonzero(lane["core"] == core)
            if profile.unit_number(lane) in (core, -1):
                wanted += [session.number(number, int(row)) for row in rows]
        assert numbers_in(session, Scope(core), None).tolist() == wanted


def test_a_lane_holds_its_own(session):
    assert len(numbers_in(session, Scope(0, 1), None)) == len(session.profile.lanes[1])


def test_a_window_holds_what_starts_in_it(session):
    profile = session.profile
    start, end = profile.end_ns // 3, profile.end_ns // 2
    found = set(numbers_in(session, Scope(), (start, end)).tolist())
    for number in range(profile.event_count):
        begins, _ = session.span_of(*session.locate(number))
        assert (number in found) == (start <= begins < end)


def test_columns_are_those_some_lane_knows():
    keys = {column.key for column in session_of(small_profile(0)).columns}
    assert {"engine", "core", "start", "duration", "cycles", "bytes"} <= keys
    assert not {"name", "kernel", "uarch_rate"} & keys
    assert "uarch_rate" in {column.key for column in session_of(small_profile(2)).columns}


def test_rows_are_texts_in_the_order_asked_for():
    session = session_of(small_profile(1, event_count=300))
    numbers = np.array([250, 3, 120, 3], dtype=np.int64)
    texts = row_texts(session, session.columns, numbers)
    assert texts[1] == texts[3]
    keys = [column.key for column in session.columns]
    for number, cells in zip(numbers.tolist(), texts, strict=True):
        start, end = session.span_of(*session.locate(number))
        assert cells[keys.index("start")] == f"{start:,}"
        assert cells[keys.index("duration")] == f"{end - start:,}"
    # a TIU moves no bytes
    assert texts[1][keys.index("bytes")] == "-"


def test_cells_of_hostile_names_are_clean():
    lane = make_lane("TIU", 0, starts=[0], ends=[5], name=np.array([0], dtype=np.int32))
    profile = make_profile([lane], strings={"name": Strings(["\x1b]0;owned\x07[red]x[/]"])})
    session = session_of(profile)
    cells = row_texts(session, session.columns, np.array([0]))[0]
    assert "\ufffd]0;owned\ufffd[red]x[/]" in cells


def test_large_profiles_sort_alike_in_either_direction():
    session = session_of(big_profile(20_000, cores=4, ports=2))
    numbers = numbers_in(session, Scope(), None)
    up = ordered(session, numbers, Sort("start"))
    starts = np.concatenate([lane["start"] for lane in session.profile.lanes])
    assert (np.diff(starts[up]) >= 0).all()
    down = ordered(session, numbers, Sort("start", down=True))
    assert (np.diff(starts[down]) <= 0).all()
