from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import big_profile, make_lane, make_profile, small_profile
from work_rows import top

from tpuprof_tui.analysis.index import unit_index
from tpuprof_tui.analysis.index.unit_index import build_indexes
from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.totals.figures import bytes_between, lane_figures, unit_figures
from tpuprof_tui.model import INT_MISSING, Role, Strings

PROFILE = big_profile(600, cores=2, ports=2, seed=5)
SESSION = Session(PROFILE)
INDEXES = SESSION.indexes
windows = st.tuples(st.integers(-100, 12_000), st.integers(0, 9_000)).map(lambda w: (w[0], w[0] + w[1]))


def covered(lane, start, end, role=None, core=None):
    """Slow and obvious: every ns of the window in which the lane's events of a role run."""
    held = np.zeros(max(end - start, 0), dtype=bool)
    cores = lane["core"].tolist()
    for row, (begin, until, found) in enumerate(
        zip(*(lane[k].tolist() for k in ("start", "end", "role")), strict=True)
    ):
        if role in (None, found) and core in (None, cores[row]):
            held[max(begin - start, 0) : max(until - start, 0)] = True
    return held


@settings(max_examples=40)
@given(windows)
def test_lane_figures_against_the_obvious(window):
    start, end = window
    for index in INDEXES:
        figures = lane_figures(index, start, end)
        work, wait, sync = (covered(index.lane, start, end, role) for role in (Role.WORK, Role.WAIT, Role.SYNC))
        assert figures.busy == work.sum()
        assert figures.wait == (wait & ~work).sum()
        assert figures.sync == (sync & ~wait & ~work).sum()
        assert figures.idle == (~covered(index.lane, start, end)).sum()
        assert figures.window == end - start
        assert figures.utilisation == (figures.busy / (end - start) if end > start else 0)


@settings(max_examples=40)
@given(windows, st.integers(0, 1))
def test_unit_figures_against_the_obvious(window, core):
    start, end = window
    mine = PROFILE.lanes_of(core)
    compute = covered(mine[0], start, end, Role.WORK)
    transfer = covered(mine[1], start, end, Role.WORK) | covered(mine[2], start, end, Role.WORK)
    any_role = covered(mine[0], start, end) | covered(mine[1], start, end) | covered(mine[2], start, end)
    for port in PROFILE.lanes[-2:]:
        transfer |= covered(port, start, end, Role.WORK, core)
        any_role |= covered(port, start, end, None, core)
    figures = unit_figures(SESSION, core, start, end)
    assert figures.compute == compute.sum()
    assert figures.transfer == transfer.sum()
    assert figures.overlap == (compute & transfer).sum()
    assert figures.exposed == (transfer & ~compute).sum()
    assert figures.busy == (compute | transfer).sum()
    assert figures.idle == (~any_role).sum()


def test_threads_make_the_same_indexes(monkeypatch):
    monkeypatch.setattr(unit_index, "MANY", 1)
    threaded = Session(PROFILE)
    assert [index.lane for index in threaded.indexes] == list(PROFILE.lanes)
    assert Query(threaded).headline == Query(SESSION).headline


def test_submitted_commands_count_for_their_core_alone():
    submitted = unit_figures(SESSION, 0, PROFILE.start_ns, PROFILE.end_ns).lanes["CDMA"].count
    ports = PROFILE.lanes[-2:]
    assert submitted == sum(int((lane["core"] == 0).sum()) for lane in ports) > 0
    # the submitter of core 1's launches is missing in this profile
    assert "CDMA" not in unit_figures(SESSION, 1, PROFILE.start_ns, PROFILE.end_ns).lanes


def test_bytes_of_a_window_count_the_share_inside():
    lane = make_lane("GDMA", starts=[0, 100, 200], ends=[100, 200, 300], bytes=[1000, 500, 700],
                     roles=[Role.WORK, Role.WORK, Role.WAIT])  # fmt: skip
    (index,) = build_indexes(make_profile([lane]))
    assert bytes_between(index, 0, 300) == 1500
    assert bytes_between(index, 50, 150) == 750
    assert bytes_between(index, 10, 20) == 100
    assert bytes_between(index, 200, 300) == 0


def test_unknown_bytes():
    tiu = make_lane(starts=[0], ends=[10])
    dma = make_lane("GDMA", starts=[0, 10], ends=[10, 20], bytes=[INT_MISSING, 8])
    indexes = build_indexes(make_profile([tiu, dma]))
    assert lane_figures(indexes[0], 0, 20).bytes is None
    assert lane_figures(indexes[1], 0, 20).bytes == 8


def test_headline():
    profile = small_profile()
    found = query_of(profile).headline
    assert found.device_ns == profile.end_ns - profile.start_ns
    assert found.idlest.number == 2  # it has no lanes at all
    assert found.idlest.busy == 0
    assert found.busiest.busy == max(core.busy for core in found.units)
    assert found.most_exposed.exposed == max(core.exposed for core in found.units)
    assert not found.guessed
    assert query_of(small_profile(0)).headline.guessed


def test_headline_of_nothing():
    found = query_of(make_profile([])).headline
    assert (found.device_ns, found.busiest, found.idlest, found.most_exposed) == (0, None, None, None)


@settings(max_examples=40)
@given(windows, st.sampled_from(["kernel", "name", "type"]), st.sampled_from([None, {0}, {1}, {0, 1}]))
def test_top_against_the_obvious(window, by, cores):
    start, end = window
    expected: dict[str, list[int]] = {}
    for lane in PROFILE.lanes:
        texts = PROFILE.strings[by].texts(lane[by])
        for row, text in enumerate(texts):
            begin, until = int(lane["start"][row]), int(lane["end"][row])
            wanted = cores is None or int(lane["core"][row]) in cores
            if start <= begin < end and wanted and lane["role"][row] == Role.WORK:
                expected.setdefault(text, []).append(until - begin)
    found = top(PROFILE, INDEXES, start, end, by=by, units=cores, limit=None)
    assert {row.label: (row.count, row.total_ns, row.max_ns) for row in found} == {
        text: (len(parts), sum(parts), max(parts)) for text, parts in expected.items()
    }
    assert [row.total_ns for row in found] == sorted((row.total_ns for row in found), reverse=True)
    if found:
        assert sum(row.share for row in found) == pytest.approx(1)


def test_top_of_some_lanes_and_rows():
    rows = top(PROFILE, INDEXES, PROFILE.start_ns, PROFILE.end_ns, by="name", lanes={0}, limit=2)
    assert len(rows) == 2
    tiu = PROFILE.lanes[0]
    assert {row.label for row in rows} <= set(PROFILE.strings["name"].texts(tiu["name"]))


def test_top_without_names():
    profile = small_profile(0)
    (row,) = top(profile, build_indexes(profile), profile.start_ns, profile.end_ns, by="kernel")
    assert (row.label, row.code, row.share) == ("-", -1, 1.0)


def test_a_code_without_a_text_counts_as_unknown():
    lane = make_lane(starts=[0, 10], ends=[10, 20], kernel=np.array([7, 0], dtype=np.int32))
    profile = make_profile([lane], strings={"kernel": Strings(["k"])})
    found = top(profile, build_indexes(profile), 0, 20)
    assert {row.label: row.total_ns for row in found} == {"-": 10, "k": 10}
