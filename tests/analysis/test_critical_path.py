"""The critical path: of a program whose path is known, and that its parts always add up to the window."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import make_lane, make_profile

from tpuprof_tui.analysis.critical_path import CriticalPath, Part, critical_path
from tpuprof_tui.analysis.links.dependencies import find_dependencies
from tpuprof_tui.analysis.slack import Slack, SlackSearch, longest_beside
from tpuprof_tui.model import Links, Profile, Role
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.query import Query, query_of
from tpuprof_tui.views.registry import answer, view_of

SAMPLES = Path(__file__).parents[2] / "samples"
sys.path.insert(0, str(SAMPLES))


def add_up(path: CriticalPath, start: int, end: int) -> None:
    """Parts follow one another, from the start of the window to its end."""
    assert int(path.length.sum()) == end - start
    assert (path.start[1:] == path.end[:-1]).all()
    assert (path.length > 0).all()
    assert path.start[0] == start


def told(profile: Profile, path: CriticalPath) -> list[tuple[str, str, int]]:
    return [(Part(part).name, profile.lanes[lane].kind if lane >= 0 else "", int(ns))
            for part, lane, ns in zip(path.part, path.lane, path.length, strict=True)]  # fmt: skip


def two_engines(links: bool) -> Profile:
    """A transfer of 50, a product that needs it of 30, a transfer beside it of 20, and another product of 10."""
    tiu = make_lane("TIU", 0, starts=np.array([55, 100]), ends=np.array([85, 110]))
    gdma = make_lane("GDMA", 0, starts=np.array([0, 52]), ends=np.array([50, 72]))
    made = make_profile([tiu, gdma])
    if not links:
        return made
    # the second product needs the second transfer
    pairs = [(2, 0), (3, 1)]
    columns = [np.array(column, np.int64) for column in zip(*pairs, strict=True)]
    return replace(made, links=lambda: Links(("needs",), np.zeros(2, np.int8), *columns))


def test_a_path_is_what_nothing_was_shorter_beside():
    profile = two_engines(links=True)
    path = critical_path(profile, find_dependencies(profile), 0, 110)
    add_up(path, 0, 110)
    assert told(profile, path) == [
        ("EVENT", "GDMA", 50), ("GAP", "TIU", 5), ("EVENT", "TIU", 30), ("GAP", "TIU", 15), ("EVENT", "TIU", 10),
    ]  # fmt: skip
    assert not path.assumed[:-1].any()


def test_without_links_what_ended_last_is_assumed():
    profile = two_engines(links=False)
    path = critical_path(profile, None, 0, 110)
    assert told(profile, path)[:3] == [("EVENT", "GDMA", 50), ("GAP", "TIU", 5), ("EVENT", "TIU", 30)]
    assert path.assumed[:2].all()


@pytest.mark.parametrize("links", [True, False])
def test_slack_is_the_pause_before_what_needs_it(links):
    """The transfer beside the path ends at 72; the product that needs it, on the path, begins at 100."""
    profile = two_engines(links)
    known = find_dependencies(profile) if links else None
    path = critical_path(profile, known, 0, 110)
    search = SlackSearch(profile, known, path, 110)
    assert search.of(0, 1) == Slack(0)
    assert search.of(1, 1) == Slack(28, assumed=not links)
    # where nothing waits for it, all that is left of the window
    assert SlackSearch(profile, known, path, 90).of(1, 1).ns == 18
    assert longest_beside(profile, path, 0, 110, np.arange(2), 10).tolist() == [[1, 1]]


def test_a_wait_takes_all_of_its_length_up():
    tiu = make_lane("TIU", 0, starts=[0, 10, 50], ends=[10, 50, 70], roles=[0, int(Role.WAIT), 0])
    gdma = make_lane("GDMA", 1, starts=[0], ends=[50])
    links = lambda: Links(("sent",), np.zeros(1, np.int8), np.array([3]), np.array([1]), ending=frozenset((0,)))  # noqa: E731
    profile = replace(make_profile([tiu, gdma]), links=links)
    known = find_dependencies(profile)
    assert SlackSearch(profile, known, critical_path(profile, known, 0, 70), 70).of(0, 0) == Slack(40)


def test_a_wait_ends_with_what_came_last():
    """Core 1 waits until core 0 is done: its wait is not on the path, but for what it took to end."""
    slow = make_lane("TIU", 0, starts=np.array([0]), ends=np.array([100]))
    fast = make_lane("TIU", 1, starts=np.array([0, 20, 108]), ends=np.array([20, 105, 120]),
                     roles=[Role.WORK, Role.WAIT, Role.WORK])  # fmt: skip
    profile = make_profile([slow, fast])
    path = critical_path(profile, None, 0, 120)
    add_up(path, 0, 120)
    assert told(profile, path) == [
        ("EVENT", "TIU", 100), ("WAIT", "TIU", 5), ("GAP", "TIU", 3), ("EVENT", "TIU", 12),
    ]  # fmt: skip
    assert path.lane.tolist() == [0, 1, 1, 1]


events = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60), st.sampled_from([0, 0, 0, 1])), max_size=12)


@given(st.lists(events, min_size=1, max_size=4), st.integers(0, 100), st.integers(1, 200))
def test_parts_add_up_to_any_window(lanes, start, length):
    made = []
    for number, rows in enumerate(lanes):
        rows.sort()
        begin = np.array([each[0] for each in rows], np.int64)
        end = begin + np.array([each[1] for each in rows], np.int64)
        role = np.array([Role.WAIT if each[2] else Role.WORK for each in rows], np.int8)
        made.append(make_lane("TIU" if number % 2 else "GDMA", number // 2, starts=begin, ends=end, roles=role))
    path = critical_path(make_profile(made), None, start, start + length)
    add_up(path, start, start + length)


@pytest.mark.parametrize("name", ["aks_decode_mode0", "aks_decode_mode1", "aks_decode_mode2", "aks_host_trace"])
def test_the_view_adds_up(name):
    profile = open_profile(SAMPLES / name)
    query = query_of(profile)
    view = view_of(profile.vocabulary, "critical_path")
    for asked in (query, replace(query, range=(100_000, 300_000))):
        found = answer(view, asked)
        window = found.figure("window_us")
        assert window == asked.span
        assert sum(found.figure(f"{key}_us") for key in ("device", "host", "wait", "gap")) == window
        beside = found.table("beside")
        assert all(0 <= ns <= window for ns in beside.column("slack_us"))
        for table in found.tables:
            if table is beside:
                continue
            key = "duration_us" if table.key == "segments" else "total_us"
            assert sum(table.column(key)) == window
        rows = found.table("operations").rows()
        assert all(row[3] is None or -window / 2 <= row[3] <= 0 for row in rows)
    assert isinstance(query, Query)
