"""The Perfetto trace, read back: launches, flows, and slices of the host."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from kept import HOST_TRACE, kept_profile
from msgspec.structs import replace
from profiles import Texts, make_lane, make_profile, small_profile
from trace_reading import with_overflow, written

from tpuprof_tui.analysis.links.dependencies import Dependencies
from tpuprof_tui.model import Links, Profile, Scopes
from tpuprof_tui.sources.sophgo.files.perfetto_slices import MOST_FLOWS
from tpuprof_tui.sources.sophgo.read.host_trace import with_host_trace

# -- launches -----------------------------------------------------------------


def expected_launches(profile: Profile, lanes) -> dict:
    """Start, end and batches of each launch number, instruction by instruction."""
    found: dict = {}
    for lane in lanes:
        rows = zip(lane["start"].tolist(), lane["end"].tolist(), lane["scope"].tolist(), lane["kernel"].tolist(),
                   lane["batch"].tolist(), strict=True)  # fmt: skip
        for start, end, scope, kernel, batch in rows:
            if kernel >= 0:
                old = found.get(scope, (start, end, "", set()))
                found[scope] = (min(old[0], start), max(old[1], end), profile.text("kernel", kernel), old[3] | {batch})
    return found


@pytest.mark.parametrize("name", ["aks_mode1", "aks_cdma", "aks_tiny_kernels", "aksv_rvt"])
def test_each_launch_is_one_slice_on_its_core(name, tmp_path):
    profile = kept_profile(name, tmp_path)
    tracks = written(profile)
    for core in profile.groups.numbers:
        shown = [each for track in with_overflow(tracks, f"Core {core}/Kernel Function") for each in track.slices]
        by_scope = {dict(each.notes)["Func Scope Id"]: each for each in shown}
        wanted = expected_launches(profile, profile.lanes_of(core))
        assert len(by_scope) == len(shown)
        assert {scope: (each.start, each.end, each.name) for scope, each in by_scope.items()} == {
            scope: launch[:3] for scope, launch in wanted.items()}  # fmt: skip
        for each in shown:
            assert [name for name, _ in each.notes] == ["Kernel Function", "Func Scope Id", "Batch Launch", "Mode"]
            assert each.category == dict(each.notes)["Mode"] == each.end_category


def test_kernels_with_cdma_stay_on_their_core_and_are_on_the_port(tmp_path):
    tracks = written(kept_profile("aks_cdma", tmp_path))
    on_core = {each.name for each in tracks["Core 0/Kernel Function"].slices}
    on_port = {each.name for each in tracks["CDMA/CDMA port0 Kernel Function"].slices}
    assert on_port == {"all_reduce_multi_core"}
    assert on_port < on_core


def launches_profile(scopes, spans, *, batches=None, modes=None, kernels=None):
    texts = Texts()
    count = len(spans)
    names = kernels or [f"k{scope}" for scope in scopes]
    lane = make_lane(
        "TIU", 0, starts=[span[0] for span in spans], ends=[span[1] for span in spans],
        kernel=texts.codes("kernel", names), scope=np.array(scopes),
        batch=np.array(batches or [0] * count), mode=texts.codes("mode", modes or ["TDI"] * count),
    )  # fmt: skip
    return make_profile([lane], strings=texts.build(), scopes=Scopes())


def test_overlapping_launches_take_tracks_beside():
    tracks = written(launches_profile([0, 1, 0], [(0, 10), (5, 30), (20, 40)]))
    assert [(each.start, each.end, each.name) for each in tracks["Core 0/Kernel Function"].slices] == [(0, 40, "k0")]
    assert [(each.start, each.end, each.name) for each in tracks["Core 0/Kernel Function #2"].slices] == [(5, 30, "k1")]


def test_several_batches_and_modes_are_named_together():
    profile = launches_profile([0, 0, 0], [(0, 10), (10, 20), (20, 30)], batches=[3, 5, 4], modes=["DES", "TDI", "RVT"])
    (launch,) = written(profile)["Core 0/Kernel Function"].slices
    assert launch.category == "RVT/TDI/DES"
    assert dict(launch.notes)["Batch Launch"] == "3/5"
    assert dict(launch.notes)["Mode"] == "RVT/TDI/DES"


def test_without_mode_there_is_no_category():
    (launch,) = written(launches_profile([0], [(0, 10)], modes=[None]))["Core 0/Kernel Function"].slices
    assert launch.category is launch.end_category is None
    assert "Mode" not in dict(launch.notes)


# -- flows --------------------------------------------------------------------


def dependencies(*ends: tuple[int, int, int, int]) -> Dependencies:
    """Dependencies from (lane, row) to (lane, row)."""
    columns = [np.array(values, dtype=np.int64) for values in zip(*ends, strict=True)]
    none = np.zeros(len(ends), np.int64)
    named = Links(("message",), none.astype(np.int8), none, none)
    return Dependencies(named, columns[2].astype(np.int32), columns[3],
                        columns[0].astype(np.int32), columns[1], np.zeros(len(ends), np.int64))  # fmt: skip


def test_flows_lead_from_what_releases_to_what_waits():
    tiu = make_lane("TIU", 0, starts=[0, 100], ends=[50, 150])
    gdma = make_lane("GDMA", 0, starts=[10, 60, 95], ends=[20, 160, 99], bytes=[1] * 3)
    # a later command; a wait that began before; one that had ended before
    tracks = written(make_profile([tiu, gdma]), dependencies=dependencies((1, 0, 0, 1), (0, 1, 1, 1), (1, 2, 0, 0)))
    first, second = tracks["Core 0/TIU"].slices
    loads = tracks["Core 0/GDMA"].slices
    assert (loads[0].flows, second.ending_flows) == ([1], [1])
    assert (second.flows, loads[1].flows_at_end, loads[1].ending_flows) == ([2], [2], [])
    (late,) = tracks["Core 0/GDMA #2"].slices
    assert [late.flows, first.ending_flows, first.flows_at_end] == [[], [], []]


def test_each_flow_begins_once_and_ends_once_later(tmp_path):
    profile = small_profile(2)
    random = np.random.default_rng(3)
    count, places = 4000, [place for place, lane in enumerate(profile.lanes) if len(lane)]
    lanes = random.choice(places, (2, count))
    rows = [[int(random.integers(len(profile.lanes[lane]))) for lane in side] for side in lanes.tolist()]
    given = dependencies(*zip(lanes[0].tolist(), rows[0], lanes[1].tolist(), rows[1], strict=True))
    tracks = written(profile, dependencies=given)
    begins: dict = defaultdict(list)
    ends: dict = defaultdict(list)
    for track in tracks.values():
        for each in track.slices:
            for flow in each.flows:
                begins[flow].append(each.start)
            for flow in each.ending_flows:
                ends[flow].append(each.start)
            for flow in each.flows_at_end:
                ends[flow].append(each.end)
    assert len(begins) > 1000
    assert begins.keys() == ends.keys()
    for flow, (start,) in begins.items():
        (end,) = ends[flow]
        assert end > start


def test_more_flows_than_can_be_drawn_are_cut_at_both_ends():
    tiu = make_lane("TIU", 0, starts=[0], ends=[5])
    gdma = make_lane("GDMA", 0, starts=np.arange(200) * 10 + 10, ends=np.arange(200) * 10 + 15, bytes=[1] * 200)
    tracks = written(make_profile([tiu, gdma]), dependencies=dependencies(*((0, 0, 1, row) for row in range(200))))
    (source,) = tracks["Core 0/TIU"].slices
    reached = [flow for each in tracks["Core 0/GDMA"].slices for flow in each.ending_flows]
    assert sorted(source.flows) == sorted(reached)
    assert len(reached) == MOST_FLOWS


def test_flows_need_both_ends_to_be_written():
    profile = small_profile(1)
    given = dependencies((0, 0, 3, 50))
    assert any(each.flows for track in written(profile, dependencies=given).values() for each in track.slices)
    tracks = written(profile, units=frozenset((0,)), dependencies=given)
    assert not any(each.flows for track in tracks.values() for each in track.slices)


# -- host ---------------------------------------------------------------------


@pytest.fixture
def joined(tmp_path):
    return with_host_trace(kept_profile("aks_host_trace", tmp_path), HOST_TRACE)


def test_device_times_are_the_hosts(joined):
    base = joined.facts["host_base_ns"]
    assert base == 52341880321
    lane = joined.lane("TIU", 0)
    shown = written(joined)["Core 0/TIU"]
    assert [each.start for each in shown.slices] == (lane["start"] + base).tolist()
    assert shown.times == sorted(shown.times)


def test_host_slices_nest_as_they_did(joined):
    tracks = written(joined)
    host = [track for name, track in tracks.items() if name.startswith("cpu op")]
    assert sum(len(track.slices) for track in host) == len(joined.lanes[-2])
    assert max(each.depth for track in host for each in track.slices) >= 1
    crossing = {each.name: track.name for track in host for each in track.slices}
    assert crossing["decode_step_0"] != crossing["torch/nn/modules/module.py(1501): _call_impl"]
    launches = tracks["tpudnn op"]
    assert [each.name for each in launches.slices][:2] == ["index_select_multi_core", "rmsnorm_multi_core"]
    assert all(not each.notes and each.category is None for each in launches.slices)
    assert (launches.slices[0].start, launches.slices[0].end) == (52341863125, 52341871895)


def test_exact_alignment_needs_no_notice_and_a_guess_is_told(joined, tmp_path):
    assert "Host alignment" not in written(joined)
    guessed = with_host_trace(replace(kept_profile("aks_mode1", tmp_path), tail_offset_ns=None), HOST_TRACE)
    tracks = written(guessed)
    (notice,) = tracks["Host alignment"].slices
    assert "tail_offset_ns" in notice.name
    assert tracks["cpu op"].description == notice.name


def test_times_before_zero_shift_everything():
    host = make_lane("TIU", 0, starts=[-500, 10], ends=[-400, 20])
    other = make_lane("GDMA", 0, starts=[0], ends=[5], bytes=[1])
    tracks = written(make_profile([host, other]))
    assert [each.start for each in tracks["Core 0/TIU"].slices] == [0, 510]
    assert [each.start for each in tracks["Core 0/GDMA"].slices] == [500]
