"""Exposed time of each transfer, and the instructions that stand out in a window."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import big_profile, make_lane, make_profile

from tpuprof_tui.analysis.derived_columns import with_exposed
from tpuprof_tui.analysis.evidence.top_events import LARGE, best_rows, exposed_score, slow_score, wait_score
from tpuprof_tui.analysis.index.unit_index import build_indexes, submitted
from tpuprof_tui.analysis.selecting.filters import FilterError, compile_filter
from tpuprof_tui.model import INT_MISSING, Role


def small():
    """Core 0 computes from 10 to 20 and 30 to 40 and moves from 0 to 50 and 32 to 38; a port with three submitters."""
    work, wait = Role.WORK, Role.WAIT
    tiu = make_lane("TIU", 0, starts=[10, 25, 30], ends=[20, 28, 40], roles=[work, wait, work])
    gdma = make_lane("GDMA", 0, starts=[0, 32, 60], ends=[50, 38, 70], roles=[work, work, wait])
    port = make_lane("CDMA", 0, starts=[15, 16, 17], ends=[35, 36, 37], core=np.array([0, 1, INT_MISSING]))
    return with_exposed(make_profile([tiu, gdma, port], cores=[0, 1]))


def test_what_computing_of_its_core_covers_is_not_exposed():
    _, gdma, port = small().lanes
    assert gdma["exposed"].tolist() == [30, 0, INT_MISSING]
    # of core 0, of core 1, which computes nothing, and of nobody knows which
    assert port["exposed"].tolist() == [10, 20, INT_MISSING]
    assert gdma.take("exposed", np.array([1, 0])).tolist() == [0, 30]


def test_computing_has_no_exposed_time_and_the_column_is_added_once():
    profile = small()
    assert "exposed" not in profile.lanes[0]
    assert with_exposed(profile) is profile


def test_filters_know_exposed_time_and_roles():
    profile = small()
    passes = compile_filter("exposed>10", profile)
    assert [passes(lane).tolist() for lane in profile.lanes] == [
        [False] * 3,
        [True, False, False],
        [False, True, False],
    ]
    for text, expected in (
        ("role=wait", [False, True, False]), ("role!=wait", [True, False, True]), ("role=work,wait", [True] * 3),
        ("!role=Work", [False, True, False]), ("role=sync", [False] * 3),
    ):  # fmt: skip
        assert compile_filter(text, profile)(profile.lanes[0]).tolist() == expected


@pytest.mark.parametrize("text", ["role=idle", "role>work", "role=work,", "dur>1 role=x"])
def test_other_roles_are_faults_with_a_place(text):
    with pytest.raises(FilterError) as error:
        compile_filter(text, small())
    assert error.value.column == text.index("role")


SCORES = (exposed_score, slow_score, wait_score)


@pytest.mark.parametrize("core", [-1, 1])
@pytest.mark.parametrize("long", [False, True])
def test_the_best_rows_of_any_window(core, long):
    profile = big_profile(30_000, cores=2, ports=1)
    if long:
        # one that runs through all the others
        lanes = [lane.with_column("end", _until(lane, profile.end_ns)) for lane in profile.lanes]
        profile = replace(profile, lanes=tuple(lanes))
    profile = with_exposed(profile)
    random = np.random.default_rng(5)
    lanes = list(enumerate(build_indexes(profile)))
    chosen = [(number, submitted(index, frozenset({core})) if core >= 0 and profile.unit_of(index.lane) < 0 else index)
              for number, index in lanes]  # fmt: skip
    for _ in range(12):
        start, end = np.sort(random.integers(profile.start_ns, profile.end_ns, 2)).tolist()
        for score, found in zip(SCORES, best_rows(chosen, start, end, SCORES, 4), strict=True):
            expected = []
            for number, index in lanes:
                lane = index.lane
                every = score(lane, slice(0, len(lane)))
                running = (np.maximum(lane["end"], lane["start"] + 1) > start) & (lane["start"] < end)
                own = np.ones(len(lane), np.bool_)
                if core >= 0 and profile.unit_of(lane) < 0:
                    own = lane["core"] == core
                places = np.cumsum(own) - 1
                rows = np.flatnonzero(running & own & (every > -np.inf)).tolist()
                expected += [(-every[row], number, int(places[row])) for row in rows]
            assert found == [(-value, number, row) for value, number, row in sorted(expected)[:4]]


def _until(lane, last):
    ends = lane["end"].copy()
    ends[3] = last
    return lambda rows: ends[rows]


def test_an_empty_window_has_no_best_rows():
    lanes = list(enumerate(build_indexes(small())))
    assert best_rows(lanes, 20, 20, SCORES, 3) == [[], [], []]
    assert best_rows([], 0, 50, SCORES, 3) == [[], [], []]


def test_only_large_work_is_slow():
    sizes, roles = [LARGE, LARGE - 1, LARGE, INT_MISSING], [Role.WORK, Role.WORK, Role.WAIT, Role.WORK]
    lane = make_lane("GDMA", 0, starts=[0, 10, 20, 30], ends=[10, 20, 30, 40], bytes=sizes, roles=roles)
    assert slow_score(lane, slice(0, 4)).tolist() == [-LARGE / 10, -np.inf, -np.inf, -np.inf]
