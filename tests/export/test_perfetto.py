"""The Perfetto trace, read back as a strict consumer reads it: tracks, slices, counters, launches, flows, host."""

from __future__ import annotations

import gzip
import io
import sys
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from kept import DATA, HOST_TRACE, kept_profile
from profiles import Registers, Texts, make_lane, make_profile, small_profile
from trace_reading import TraceReader

from tpuprof_tui.analysis import Links
from tpuprof_tui.export import perfetto
from tpuprof_tui.export.files import WriteError
from tpuprof_tui.export.perfetto import write_perfetto
from tpuprof_tui.export.perfetto_flows import MOST_FLOWS
from tpuprof_tui.export.perfetto_slices import tenths
from tpuprof_tui.export.selection import Selection
from tpuprof_tui.model import INT_MISSING, Profile, Role, Scopes, Strings
from tpuprof_tui.readers.host import with_host_trace

sys.path.insert(0, str(DATA.parent / "readers" / "cdm"))
from kept_captures import kept_reference
from truth_tables import unpack

REFERENCES = ("aks_mode2", "aks_sdma", "aks_cdma", "aks_des_kv", "aksv_mode2", "aksv_rvt")
HEAD = {"Batch Launch": "batch_launch", "Kernel Function": "kernel_func", "Function Type": "Function Type"}
NAMED = {"Function Name": "Function Name", "Mode": "mode", "Cmd Id": "Cmd Id"}
COMPUTE = HEAD | NAMED | {name: name for name in ("uArch Rate", "des_cmd_short", "des_cmd_id_dep", "Global Idx")}
TRANSFER = (HEAD | {"cmd_id_dep": "cmd_id_dep", "Direction": "Direction"} | NAMED
            | {name: name for name in ("Data Type", "DMA data size(B)", "DDR Bandwidth(GB/s)", "L2M Bandwidth(GB/s)",
                                       "Global Idx")})  # fmt: skip
NOT_ON_SYSTEM = ("uArch Rate", "Direction", "DMA data size(B)", "DDR Bandwidth(GB/s)", "L2M Bandwidth(GB/s)")
PLACE = [f"{axis}{what}" for what in ("size", "stride") for axis in "nchw"]


def written(profile: Profile, *arguments, **options) -> dict:
    stream = io.BytesIO()
    size = write_perfetto(profile, stream, *arguments, **options)
    assert size == len(stream.getvalue())
    return TraceReader(stream.getvalue()).by_path


def with_overflow(tracks: dict, path: str) -> list:
    """A track and those beside it for its other lanes."""
    return [track for name, track in tracks.items() if name == path or name.startswith(f"{path} #")]


# -- slices -------------------------------------------------------------------


def expected_notes(row: dict, engine: str) -> list:
    system = row["Function Type"] in ("sys", "SYS")
    names = COMPUTE if engine == "TIU" else TRANSFER
    found = [(name, row[source]) for name, source in names.items()
             if row.get(source) is not None and not (system and name in NOT_ON_SYSTEM)]  # fmt: skip
    if engine != "TIU" and not system:
        for end in ("src", "dst"):
            wanted = [f"{end}_{name}" for name in PLACE] + [f"{end}_start_addr"]
            found.append((f"{end}_info", {name: row[name] for name in wanted if row.get(name) is not None}))
    return found


@pytest.mark.parametrize("name", REFERENCES)
def test_slices_are_what_the_reference_says_of_each_instruction(name, tmp_path):
    """Names, categories, times and annotations with their types and order, of every instruction."""
    tracks = written(kept_profile(name, tmp_path))
    compared = 0
    for lane in kept_reference(name) or []:
        engine, index = lane["engine"], lane["index"]
        columns = {key: unpack(values) for key, values in lane["fields"].items()}
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        paths = [f"Core {index}/{engine}"]
        if engine == "CDMA":
            paths = [f"CDMA/CDMA port{index}{way}" for way in ("", f"/CDMA port{index} TX", f"/CDMA port{index} RX")]
        slices = [each for path in paths for track in with_overflow(tracks, path) for each in track.slices]
        by_place = {dict(each.notes)["Global Idx"]: each for each in slices}
        assert len(by_place) == len(slices) == len(rows)
        for row in rows:
            found = by_place[row["Global Idx"]]
            assert (found.start, found.end) == (row["Start Time(ns)"], row["End Time(ns)"])
            assert (found.name, found.category, found.end_category) == (
                row["Function Name"], row["Function Type"], row["Function Type"])  # fmt: skip
            wanted = expected_notes(row, engine)
            assert found.notes == wanted
            assert [type(value) for _, value in found.notes] == [type(value) for _, value in wanted]
            for key, value in found.notes:
                if isinstance(value, dict):
                    assert list(value)[-1] == f"{key[:3]}_start_addr"
            compared += 1
    assert compared > 500


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_every_instruction_is_a_slice_with_its_times(mode):
    profile = small_profile(mode)
    tracks = written(profile)
    for lane in profile.lanes:
        path = f"Core {lane.core}/{lane.engine}" if lane.core >= 0 else f"CDMA/CDMA port{lane.port}"
        found = [each for name, track in tracks.items() for each in track.slices
                 if (name == path or name.startswith((f"{path} #", f"{path}/"))) and "Kernel" not in name]  # fmt: skip
        times = Counter(zip(lane["start"].tolist(), lane["end"].tolist(), strict=True))
        assert Counter((each.start, each.end) for each in found) == times


def test_packets_of_a_sequence_are_in_the_order_of_time_and_slices_do_not_overlap():
    for path, track in written(small_profile(2)).items():
        assert track.times == sorted(track.times), path
        assert all(each.depth == 0 for each in track.slices), path


def test_placeholders_stand_where_the_reference_has_them():
    tracks = written(small_profile(0))
    notes = dict(tracks["Core 0/GDMA"].slices[0].notes)
    assert tracks["Core 0/GDMA"].slices[0].name == "unknown"
    assert (notes["Function Type"], notes["Direction"], notes["Data Type"]) == ("unknown", "DDR->DDR", "INT8")
    assert notes["src_info"] == {"src_start_addr": 0}
    assert "Kernel Function" not in notes
    assert dict(tracks["Core 0/TIU"].slices[0].notes)["uArch Rate"] == "0.0%"


def test_blocks_meet_without_a_seam(monkeypatch):
    profile = small_profile(2)
    whole = written(profile)
    monkeypatch.setattr(perfetto, "SLICE", 7)
    assert written(profile) == whole


def test_the_same_profile_gives_the_same_bytes():
    first, second = io.BytesIO(), io.BytesIO()
    write_perfetto(small_profile(2), first)
    write_perfetto(small_profile(2), second)
    assert first.getvalue() == second.getvalue()


@pytest.mark.parametrize(
    ("value", "tenth"), [(0.25, 2), (0.35, 3), (0.75, 8), (99.95, 100 * 10), (100.0, 1000), (np.nan, 0), (33.333, 333)]
)
def test_percentages_round_as_their_text_does(value, tenth):
    found = int(tenths(np.array([value]))[0])
    if not np.isnan(value):
        assert f"{found / 10:.1f}" == f"{value:.1f}"
    assert found == tenth or f"{value:.1f}" == f"{found / 10:.1f}"


def test_names_of_any_kind_come_through():
    texts = Texts()
    odd = ["</script>", "=HYPERLINK(1)", "核\u202e\x00", "\ud800", "", "a" * 70_000]
    names = texts.codes("name", odd)
    lane = make_lane("TIU", 0, starts=np.arange(6) * 10, ends=np.arange(6) * 10 + 5, name=names,
                     type=texts.codes("type", ["t"] * 6), kernel=texts.codes("kernel", odd), scope=np.arange(6),
                     command_id=np.arange(6))  # fmt: skip
    tracks = written(make_profile([lane], strings=texts.build()))
    kept = [text.replace("\ud800", "?") for text in odd]
    assert [each.name for each in tracks["Core 0/TIU"].slices] == kept
    assert [each.name for each in tracks["Core 0/Kernel Function"].slices] == [text for text in kept if text]
    assert "Kernel Function" not in dict(tracks["Core 0/TIU"].slices[4].notes)


def test_overlapping_slices_take_tracks_beside():
    lane = make_lane("GDMA", 0, starts=[0, 5, 6, 10, 20], ends=[10, 8, 30, 20, 25], bytes=[1] * 5)
    tracks = written(make_profile([lane]))
    assert [(each.start, each.end) for each in tracks["Core 0/GDMA"].slices] == [(0, 10), (10, 20), (20, 25)]
    assert [(each.start, each.end) for each in tracks["Core 0/GDMA #2"].slices] == [(5, 8)]
    assert [(each.start, each.end) for each in tracks["Core 0/GDMA #3"].slices] == [(6, 30)]


def test_registers_beyond_63_bits_and_below_zero_do_no_harm():
    class Wide(Registers):
        names = (("cmd_id_dep", "src_nsize"),)

        def field(self, operation, name, rows):
            return np.full(len(np.arange(2)[rows]), 2**64 - 1, dtype=np.uint64)

    lane = make_lane("GDMA", 0, starts=[0, 10], ends=[5, 15], bytes=[-5, 7], registers=Wide(np.zeros(2, np.int16)))
    first, _ = written(make_profile([lane], mode=2))["Core 0/GDMA"].slices
    notes = dict(first.notes)
    assert notes["cmd_id_dep"] == -1
    assert notes["src_info"] == {"src_nsize": -1, "src_start_addr": 0}
    assert notes["DMA data size(B)"] == -5


# -- tracks -------------------------------------------------------------------

CORE_TRACKS = {
    "": (None, True, False),
    "/Kernel Function": (5, False, False),
    "/TIU": (4, False, False),
    "/TIU Utilization": (3, False, True),
    "/GDMA": (2, False, False),
    "/GDMA Bandwidth": (1, False, True),
}
MORE_TRACKS = {
    "/SDMA": (0, False, False),
    "/SDMA Bandwidth": (-1, False, True),
    "/DDR Bandwidth": (-2, False, True),
}


def test_the_tree_of_tracks_is_the_references_and_more():
    tracks = {path: track for path, track in written(small_profile(1)).items() if "#" not in path}
    wanted = {f"Core {core}{path}": look for core in range(3) for path, look in CORE_TRACKS.items()}
    wanted |= {f"Core {core}{path}": look for core in range(2) for path, look in MORE_TRACKS.items()}
    wanted["CDMA"] = (None, False, False)
    for port in range(2):
        name = f"CDMA port{port}"
        wanted |= {f"CDMA/{name}": (None, True, False), f"CDMA/{name} Kernel Function": (1, False, False),
                   f"CDMA/{name}/{name} TX": (1, False, False), f"CDMA/{name}/{name} RX": (0, False, False),
                   f"CDMA/{name}/{name} Bandwidth": (-1, False, True)}  # fmt: skip
    assert {path: (track.rank, track.ordered, track.counter) for path, track in tracks.items()} == wanted
    documented = [track for path, track in tracks.items() if path.endswith(("Utilization", "GDMA Bandwidth"))]
    assert all(not track.unit for track in documented)
    assert tracks["Core 0/DDR Bandwidth"].unit == "GB/s"


def test_no_track_of_what_is_not_there():
    tracks = written(make_profile([make_lane("TIU", 0, starts=[0], ends=[5])], cores=[0, 4]))
    assert sorted(tracks) == sorted(f"Core {core}{path}" for core in (0, 4) for path in CORE_TRACKS)


def test_an_empty_profile_gives_an_empty_trace():
    assert written(make_profile([])) == {}


def test_ports_by_direction(tmp_path):
    tracks = written(kept_profile("aks_cdma", tmp_path))
    for port in range(4):
        names = {way: {each.name for each in tracks[f"CDMA/CDMA port{port}/CDMA port{port} {way}"].slices}
                 for way in ("TX", "RX")}  # fmt: skip
        assert names["TX"]
        assert names["RX"]
        assert all("tx" in name or "send" in name.lower() for name in names["TX"])
        assert all("rx" in name or "receive" in name.lower() or name == "read" for name in names["RX"])


# -- counters -----------------------------------------------------------------


def test_documented_counters_go_there_and_back():
    profile = small_profile(2)
    tracks = written(profile)
    lane = profile.lane("TIU", 0)
    system = lane["role"] != Role.WORK
    samples = tracks["Core 0/TIU Utilization"].samples
    assert len(samples) == 2 * len(lane)
    rates = [0.0 if sys_ else float(f"{rate:.1f}") for rate, sys_ in zip(lane["uarch_rate"], system, strict=True)]
    assert samples[::2] == list(zip(lane["start"].tolist(), rates, strict=True))
    assert samples[1::2] == [(end, 0.0) for end in lane["end"].tolist()]
    moves = profile.lane("GDMA", 1)
    wanted = np.where(moves["role"] == Role.WORK, moves["ddr_bandwidth"], 0.0).tolist()
    assert [value for _, value in tracks["Core 1/GDMA Bandwidth"].samples[::2]] == wanted


def test_total_bandwidth_is_the_sum_at_every_moment():
    gdma = make_lane("GDMA", 0, starts=[0, 10, 40], ends=[10, 30, 50], ddr_bandwidth=[1.5, 2.25, 0.0001],
                     bytes=[1] * 3)  # fmt: skip
    sdma = make_lane("SDMA", 0, starts=[5, 30], ends=[20, 30], ddr_bandwidth=[0.1, 9.0], bytes=[1] * 2)
    samples = written(make_profile([gdma, sdma]))["Core 0/DDR Bandwidth"].samples
    assert samples == [(0, 1.5), (5, 1.6), (10, 2.35), (20, 2.25), (30, 0.0), (40, 0.0001), (50, 0.0)]


def test_l2m_bandwidth_has_a_track_where_it_is_known(tmp_path):
    tracks = written(kept_profile("aks_mode2", tmp_path))
    assert max(value for _, value in tracks["Core 0/L2M Bandwidth"].samples) > 0
    assert tracks["Core 0/L2M Bandwidth"].samples[-1][1] == 0.0


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
    for core in profile.cores:
        shown = [each for track in with_overflow(tracks, f"Core {core}/Kernel Function") for each in track.slices]
        by_scope = {dict(each.notes)["Func Scope Id"]: each for each in shown}
        wanted = expected_launches(profile, profile.core_lanes(core))
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


def test_without_launch_numbers_neighbours_of_one_kernel_and_batch_are_one():
    profile = launches_profile([INT_MISSING] * 4, [(0, 10), (10, 20), (20, 30), (30, 40)], batches=[0, 0, 1, 0],
                               kernels=["a", "a", "a", "b"])  # fmt: skip
    shown = written(profile)["Core 0/Kernel Function"].slices
    assert [(each.start, each.end, each.name) for each in shown] == [(0, 20, "a"), (20, 30, "a"), (30, 40, "b")]
    assert all("Func Scope Id" not in dict(each.notes) for each in shown)


def test_without_mode_there_is_no_category():
    (launch,) = written(launches_profile([0], [(0, 10)], modes=[None]))["Core 0/Kernel Function"].slices
    assert launch.category is launch.end_category is None
    assert "Mode" not in dict(launch.notes)


# -- flows --------------------------------------------------------------------


def links(*ends: tuple[int, int, int, int]) -> Links:
    """Links from (lane, row) to (lane, row)."""
    columns = [np.array(values, dtype=np.int64) for values in zip(*ends, strict=True)]
    return Links(np.zeros(len(ends), np.int8), columns[2].astype(np.int32), columns[3], columns[0].astype(np.int32),
                 columns[1], np.zeros(len(ends), np.int64))  # fmt: skip


def test_flows_lead_from_what_releases_to_what_waits():
    tiu = make_lane("TIU", 0, starts=[0, 100], ends=[50, 150])
    gdma = make_lane("GDMA", 0, starts=[10, 60, 95], ends=[20, 160, 99], bytes=[1] * 3)
    # a later command; a wait that began before; one that had ended before
    tracks = written(make_profile([tiu, gdma]), links=links((1, 0, 0, 1), (0, 1, 1, 1), (1, 2, 0, 0)))
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
    given = links(*zip(lanes[0].tolist(), rows[0], lanes[1].tolist(), rows[1], strict=True))
    tracks = written(profile, links=given)
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
    tracks = written(make_profile([tiu, gdma]), links=links(*((0, 0, 1, row) for row in range(200))))
    (source,) = tracks["Core 0/TIU"].slices
    reached = [flow for each in tracks["Core 0/GDMA"].slices for flow in each.ending_flows]
    assert sorted(source.flows) == sorted(reached)
    assert len(reached) == MOST_FLOWS


def test_flows_need_both_ends_to_be_written():
    profile = small_profile(1)
    given = links((0, 0, 3, 50))
    assert any(each.flows for track in written(profile, links=given).values() for each in track.slices)
    tracks = written(profile, Selection(cores=frozenset((0,))), links=given)
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


# -- choice and files ---------------------------------------------------------


def test_a_selection_of_cores_leaves_the_others_out():
    profile = small_profile(1)
    tracks = written(profile, Selection(cores=frozenset((1,))))
    assert {path.partition("/")[0] for path in tracks} <= {"Core 1", "CDMA"}
    assert len(tracks["Core 1/TIU"].slices) == len(profile.lane("TIU", 1))


def test_a_range_keeps_what_intersects_it():
    profile = small_profile(1)
    lane = profile.lane("TIU", 0)
    start, end = int(lane["start"][10]), int(lane["end"][20])
    shown = written(profile, Selection(start_ns=start, end_ns=end))["Core 0/TIU"].slices
    mine = (lane["end"] > start) & (lane["start"] < end)
    assert [each.start for each in shown] == lane["start"][mine].tolist()


def test_a_filter_keeps_what_passes():
    profile = small_profile(1)
    tracks = written(profile, Selection(keep=lambda lane: lane["role"] == Role.WORK))
    lane = profile.lane("GDMA", 0)
    assert len(tracks["Core 0/GDMA"].slices) == int((lane["role"] == Role.WORK).sum()) < len(lane)


def test_files_are_whole_and_may_be_compressed(tmp_path):
    plain, packed = tmp_path / "a.pftrace", tmp_path / "a.pftrace.gz"
    profile = small_profile(1)
    told: list[float] = []
    size = write_perfetto(profile, plain, progress=told.append)
    assert size == plain.stat().st_size == write_perfetto(profile, packed)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert told[-1] == 1.0
    assert all(0 <= share <= 1 for share in told)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pftrace", "a.pftrace.gz"]


def test_progress_rises(monkeypatch):
    monkeypatch.setattr(perfetto, "SLICE", 5)
    monkeypatch.setattr(perfetto, "_PROGRESS_SECONDS", 0.0)
    told: list[float] = []
    write_perfetto(small_profile(1), io.BytesIO(), progress=told.append)
    assert told == sorted(told)
    assert len(set(told)) > 50


def test_a_cancelled_export_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(perfetto, "_PROGRESS_SECONDS", 0.0)

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_perfetto(small_profile(1), tmp_path / "a.pftrace", progress=stop)
    assert not list(tmp_path.iterdir())


def test_a_missing_disk_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="could not be written"):
        write_perfetto(small_profile(1), tmp_path / "file" / "a.pftrace")


def test_strings_beyond_their_table_are_unknown():
    lane = make_lane("TIU", 0, starts=[0], ends=[5], name=np.array([77], np.int32), type=np.array([-1], np.int32))
    (only,) = written(make_profile([lane], strings={"name": Strings(["a"])}))["Core 0/TIU"].slices
    assert (only.name, only.category) == ("unknown", "unknown")
