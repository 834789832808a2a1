"""The Perfetto trace, read back as a strict consumer reads it: tracks, slices, counters, launches, flows, host."""

from __future__ import annotations

import io
from collections import Counter

import numpy as np
import pytest
from kept import kept_profile
from kept_captures import kept_reference
from profiles import Registers, Texts, make_lane, make_profile, small_profile
from trace_reading import with_overflow, written
from truth_tables import unpack

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.export.job import Job
from tpuprof_tui.formats.files import WriteError
from tpuprof_tui.formats.perfetto import tracks
from tpuprof_tui.formats.rendering import tenths
from tpuprof_tui.model import Role, Strings
from tpuprof_tui.sources.sophgo.files import perfetto
from tpuprof_tui.sources.sophgo.files.perfetto import write_perfetto, write_trace

REFERENCES = ("aks_mode2", "aks_sdma", "aks_cdma", "aks_des_kv", "aksv_mode2", "aksv_rvt")
HEAD = {"Batch Launch": "batch_launch", "Kernel Function": "kernel_func", "Function Type": "Function Type"}
NAMED = {"Function Name": "Function Name", "Mode": "mode", "Cmd Id": "Cmd Id"}
COMPUTE = HEAD | NAMED | {name: name for name in ("uArch Rate", "des_cmd_short", "des_cmd_id_dep", "Global Idx")}
TRANSFER = (HEAD | {"cmd_id_dep": "cmd_id_dep", "Direction": "Direction"} | NAMED
            | {name: name for name in ("Data Type", "DMA data size(B)", "DDR Bandwidth(GB/s)", "L2M Bandwidth(GB/s)",
                                       "Global Idx")})  # fmt: skip
NOT_ON_SYSTEM = ("uArch Rate", "Direction", "DMA data size(B)", "DDR Bandwidth(GB/s)", "L2M Bandwidth(GB/s)")
PLACE = [f"{axis}{what}" for what in ("size", "stride") for axis in "nchw"]


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
        path = (
            f"Core {profile.unit_number(lane)}/{lane.kind}"
            if profile.unit_of(lane) >= 0
            else f"CDMA/CDMA port{lane.number}"
        )
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
    write_perfetto(query_of(small_profile(2)), first)
    write_perfetto(query_of(small_profile(2)), second)
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
    kept = [text.replace("\ud800", "\\ud800") for text in odd]
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


def test_an_empty_profile_gives_a_trace_that_says_so():
    (track,) = written(make_profile([])).values()
    assert track.name == "Nothing was recorded with times"
    assert not track.slices


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


# -- choice and files ---------------------------------------------------------


def test_a_selection_of_cores_leaves_the_others_out():
    profile = small_profile(1)
    tracks = written(profile, units=frozenset((1,)))
    assert {path.partition("/")[0] for path in tracks} <= {"Core 1", "CDMA"}
    assert len(tracks["Core 1/TIU"].slices) == len(profile.lane("TIU", 1))


def test_a_range_keeps_what_intersects_it():
    profile = small_profile(1)
    lane = profile.lane("TIU", 0)
    start, end = int(lane["start"][10]), int(lane["end"][20])
    shown = written(profile, start=start, end=end)["Core 0/TIU"].slices
    mine = (lane["end"] > start) & (lane["start"] < end)
    assert [each.start for each in shown] == lane["start"][mine].tolist()


def test_a_filter_keeps_what_passes():
    profile = small_profile(1)
    tracks = written(profile, filter="role=work")
    lane = profile.lane("GDMA", 0)
    assert len(tracks["Core 0/GDMA"].slices) == int((lane["role"] == Role.WORK).sum()) < len(lane)


def trace_to(path, told=lambda share: None):
    """Writes a trace as an export does."""
    write_trace(Job(path.parent, frozenset(("pftrace",)), query_of(small_profile(1))), [path], told)


def test_files_are_whole(tmp_path):
    told: list[float] = []
    trace_to(tmp_path / "a.pftrace", told.append)
    stream = io.BytesIO()
    assert write_perfetto(query_of(small_profile(1)), stream) == len(stream.getvalue())
    assert (tmp_path / "a.pftrace").read_bytes() == stream.getvalue()
    assert told[-1] == 1.0
    assert all(0 <= share <= 1 for share in told)
    assert [path.name for path in tmp_path.iterdir()] == ["a.pftrace"]


def test_progress_rises(monkeypatch):
    monkeypatch.setattr(perfetto, "SLICE", 5)
    monkeypatch.setattr(tracks, "_PROGRESS_SECONDS", 0.0)
    told: list[float] = []
    write_perfetto(query_of(small_profile(1)), io.BytesIO(), progress=told.append)
    assert told == sorted(told)
    assert len(set(told)) > 50


def test_a_cancelled_export_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tracks, "_PROGRESS_SECONDS", 0.0)

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trace_to(tmp_path / "a.pftrace", stop)
    assert not list(tmp_path.iterdir())


def test_a_missing_disk_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="could not be written"):
        trace_to(tmp_path / "file" / "a.pftrace")


def test_strings_beyond_their_table_are_unknown():
    lane = make_lane("TIU", 0, starts=[0], ends=[5], name=np.array([77], np.int32), type=np.array([-1], np.int32))
    (only,) = written(make_profile([lane], strings={"name": Strings(["a"])}))["Core 0/TIU"].slices
    assert (only.name, only.category) == ("unknown", "unknown")
