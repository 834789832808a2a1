"""``open_profile``: what it gives, the clocks and chips it can be told, progress, and captures written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import raw_bytes as raw
from kept_captures import kept_truth, unpacked
from truth_tables import differences

from tpuprof_tui import open_profile
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import INT_MISSING, Profile, Severity
from tpuprof_tui.sources.catalog import Progress
from tpuprof_tui.sources.sophgo.schema import SCHEMA

_BASE = 1000
_TIU_NODES = raw.OPENING_NODES


def _texts(profile: Profile, key: str, engine: str, number: int = 0) -> list[str]:
    lane = profile.lane(engine, number)
    assert lane is not None
    return profile.strings[key].texts(lane[key])


# -- the format's own example ------------------------------------------------


def _worked_example(parent: Path) -> Path:
    """The small capture that the format's description prints (capture 11)."""
    tiu = [(1000, 1010, 0, 2), (1020, 1500, 1, 2), (2000, 2499, 0, 0), (2600, 2999, 1, 0), (3000, 3010, 2, 2),
           (3020, 3900, 3, 2)]  # fmt: skip
    gdma = [raw.dma_record(900, 910, 0), raw.dma_record(915, 1400, 1)]
    for start, end, number, words in ((1600, 1999, 0, {4: 7, 10: 65536, 12: 512, 13: 512}),
                                      (3100, 3499, 1, {5: 32768, 12: 256, 13: 1})):  # fmt: skip
        record = np.frombuffer(raw.dma_record(start, end, number), "<u4").copy()
        for place, value in words.items():
            record[place] = value
        gdma.append(record.tobytes())
    text = """013c0400 81980100 01bc0400 81180200 81990100 81190200 0c000000 8c000000 8c010000 8e010000 00040000
              67656c75 5f667764 81001008 010c1100 01081200 013c0400 01bc0400 81005002 0f000000"""
    records = {
        "TIU": [raw.tiu_record(start, end, number, word == 2) for start, end, number, word in tiu],
        "GDMA": gdma,
        "SDMA": [raw.dma_record(905, 915, 0), raw.dma_record(920, 1450, 1)],
    }
    data = raw.core_file(records) + raw.block(raw.DYN_DATA, bytes.fromhex("".join(text.split())))
    settings = "arch=5\nmax_record_num=1024\n0_tiu_record=6\n0_gdma_record=4\n0_sdma_record=2\n"
    return raw.write_capture(parent, {0: data}, settings)


def test_the_worked_example_gives_the_printed_result(tmp_path: Path) -> None:
    profile = open_profile(_worked_example(tmp_path))
    assert profile.problems == ()
    tiu, gdma = profile.lane("TIU", 0), profile.lane("GDMA", 0)
    assert tiu is not None
    assert gdma is not None
    assert profile.lane("SDMA", 0) is None
    assert _texts(profile, "name", "TIU") == ["add", "MM2_NN", "send_msg", "wait_msg"]
    assert list(zip(tiu["start"], tiu["end"], tiu["command_id"], tiu["cycles"], strict=True)) == [
        (400, 899, 1, 500), (1000, 1399, 2, 400), (1400, 1410, 3, 11), (1420, 2300, 4, 881)]  # fmt: skip
    assert _texts(profile, "name", "GDMA") == ["tensorLd", "tensorSt"]
    assert list(zip(gdma["start"], gdma["end"], gdma["command_id"], gdma["cycles"], strict=True)) == [
        (0, 399, 1, 400), (1500, 1899, 2, 400)]  # fmt: skip
    assert gdma["bytes"].tolist() == [65536, 32768]
    assert gdma["stall"].tolist() == [7, 0]
    for lane in (tiu, gdma):
        assert set(profile.strings["kernel"].texts(lane["kernel"])) == {"gelu_fwd"}
        assert set(profile.strings["mode"].texts(lane["mode"])) == {"TDI"}
        assert set(lane["scope"].tolist()) == {0}
        assert set(lane["batch"].tolist()) == {3}
    # core 0 alone of eight: idle ones are shown only where core_num asks for them
    assert profile.groups.numbers == (0,)
    assert (profile.device.chip, profile.device.clock("TIU"), dict(profile.source_data)) == (
        "AKS",
        1000,
        {"mode": 1, "bmodel": False},
    )


def test_a_file_of_the_capture_opens_the_capture(tmp_path: Path) -> None:
    path = _worked_example(tmp_path)
    for name in ("global.profile", "cdmlib0_0.profile"):
        assert open_profile(path / name).event_count == 6
    assert open_profile(str(path)).path == str(path)


def test_every_column_is_in_the_schema_and_has_its_kind(tmp_path: Path) -> None:
    profile = open_profile(unpacked("aksv_mode2", tmp_path))
    kinds = {"int": "i", "hex": "i", "float": "f", "percent": "f", "text": "i"}
    for lane in profile.lanes:
        for key, values in lane.arrays().items():
            if key in SCHEMA:
                assert values.dtype.kind == kinds[SCHEMA[key].kind], key
            assert not lane[key].flags.writeable or not isinstance(lane.columns[key], np.ndarray)


def test_pandas_gets_every_instruction(tmp_path: Path) -> None:
    profile = open_profile(_worked_example(tmp_path))
    frame = profile.to_pandas()
    assert len(frame) == profile.event_count
    assert frame["name"].astype(str).tolist() == ["add", "MM2_NN", "send_msg", "wait_msg", "tensorLd", "tensorSt"]
    assert frame["bytes"].isna().tolist() == [True] * 4 + [False] * 2


# -- what can be told ---------------------------------------------------------


def test_the_clock_asked_for_concerns_tiu_alone(tmp_path: Path) -> None:
    path = _worked_example(tmp_path)
    profile = open_profile(path, tiu_mhz=500)
    assert (profile.device.clock("TIU"), profile.device.clock("DMA")) == (500, 1000)
    tiu, gdma = profile.lane("TIU", 0), profile.lane("GDMA", 0)
    assert tiu is not None
    assert gdma is not None
    assert (tiu["end"] - tiu["start"]).tolist() == [998, 798, 20, 1760]
    assert tiu["cycles"].tolist() == [500, 400, 11, 881]
    assert (gdma["end"] - gdma["start"]).tolist() == [399, 399]
    # asked for once, forgotten the next time (limit 17 of the reference)
    assert open_profile(path).device.clock("TIU") == 1000


@pytest.mark.parametrize("chip", ["AKS", "aks", "8800"])
def test_the_chip_can_be_named_in_any_way(tmp_path: Path, chip: str) -> None:
    path = unpacked("bad_unknown_arch", tmp_path)
    assert differences(open_profile(path, chip=chip), kept_truth("bad_unknown_arch")) == []


@pytest.mark.parametrize("chip", ["", "AKS9", "bm1684"])
def test_a_chip_that_is_none_is_refused_with_those_there_are(tmp_path: Path, chip: str) -> None:
    with pytest.raises(UnreadableError, match="AKS, AKSV"):
        open_profile(_worked_example(tmp_path), chip=chip)


def test_progress_is_told_core_by_unit_and_can_cancel(tmp_path: Path) -> None:
    path = unpacked("aks_gap_core", tmp_path)
    seen: list[Progress] = []
    open_profile(path, progress=seen.append)
    assert sorted(step.group.split()[-1] for step in seen if step.group) == ["0", "1", "4", "6"]
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert seen[-1].done == seen[-1].total == sum(file.stat().st_size for file in path.glob("cdmlib*"))

    class CancelledError(Exception):
        pass

    def cancel(step: Progress) -> None:
        raise CancelledError

    with pytest.raises(CancelledError):
        open_profile(path, progress=cancel)


def test_core_num_adds_idle_cores(tmp_path: Path) -> None:
    records = raw.core_file(raw.opening())
    path = raw.write_capture(tmp_path, {2: records, 5: records}, "arch=5\ncore_num=4\n")
    assert open_profile(path).groups.numbers == (0, 1, 2, 5)


# -- one time line ------------------------------------------------------------


def _core(base: int, work: list[tuple[int, int]], *, without: tuple[str, ...] = ()) -> bytes:
    """A core whose counters stand at ``base`` when the opening waits begin, and TIU and GDMA work behind them."""
    records = raw.opening(base)
    tiu = [raw.tiu_record(base + start, base + end, number) for number, (start, end) in enumerate(work)]
    gdma = [raw.dma_record(base + start, base + end, number, 64) for number, (start, end) in enumerate(work)]
    nodes = [*raw.OPENING_NODES, raw.id_reset(raw.TIU), raw.id_reset(raw.GDMA), *raw.func("k")]
    nodes += [node for _ in work for node in (raw.node(raw.TIU, 3, 2), raw.node(raw.GDMA, 0, 0, 2 << 6))]
    for engine in without:
        records[engine] = []
    records["TIU"] += tiu
    records["GDMA"] += gdma
    return raw.core_file(records, [*nodes, raw.FUNC_END])


_WORK = [(500, 600), (700, 900)]


def _starts(profile: Profile, engine: str = "TIU") -> dict[int, list[int]]:
    return {profile.unit_number(lane): lane["start"].tolist() for lane in profile.lanes if lane.kind == engine}


@pytest.mark.parametrize(
    "bases", [(1000, 77_000, 5), (5, (1 << 32) - 300, 9), ((1 << 32) - 550, (1 << 32) - 850, 3 << 30)]
)
def test_cores_are_aligned_on_the_ends_of_their_opening_waits(tmp_path: Path, bases: tuple[int, ...]) -> None:
    """Wherever the counters stood, and wherever they wrap."""
    cores = {number: _core(base, _WORK) for number, base in enumerate(bases)}
    profile = open_profile(raw.write_capture(tmp_path, cores))
    assert set(map(tuple, _starts(profile).values())) == {(0, 200)}
    assert set(map(tuple, _starts(profile, "GDMA").values())) == {(0, 200)}


def test_where_one_core_lost_its_tiu_opening_all_are_aligned_on_gdma(tmp_path: Path) -> None:
    cores = {0: _core(1000, _WORK), 1: _core(900_000, _WORK, without=("TIU",)), 2: _core(5, _WORK)}
    profile = open_profile(raw.write_capture(tmp_path, cores))
    assert set(map(tuple, _starts(profile).values())) == {(0, 200)}
    assert any("aligned on GDMA" in problem.what for problem in profile.problems)


def test_a_core_without_any_opening_is_placed_by_its_closing_pair(tmp_path: Path) -> None:
    closing = [raw.tiu_record(2000, 2010, 0, True), raw.tiu_record(2020, 2100, 1, True)]
    nodes = [raw.node(raw.TIU, 15, 8), raw.node(raw.TIU, 15, 9)]
    cores = {}
    for number, base in enumerate((1000, 40_000)):
        records = raw.opening(base) if number == 0 else {"TIU": [], "GDMA": [], "SDMA": []}
        records["TIU"] += [raw.tiu_record(base + start, base + end, place) for place, (start, end) in enumerate(_WORK)]
        records["TIU"] += [
            raw.tiu_record(*(int(value) + base for value in np.frombuffer(record, "<u4")[:2]), place, True)
            for place, record in enumerate(closing)
        ]
        stream = [*raw.OPENING_NODES, raw.id_reset(raw.TIU), *raw.func("k"), raw.node(raw.TIU, 3, 2),
                  raw.node(raw.TIU, 3, 2), raw.FUNC_END, raw.id_reset(raw.TIU), *nodes]  # fmt: skip
        cores[number] = raw.core_file(records, stream)
    profile = open_profile(raw.write_capture(tmp_path, cores))
    assert set(map(tuple, _starts(profile).values())) == {(0, 200)}
    assert [profile.groups.number(problem.group) for problem in profile.problems if "closing pair" in problem.what] == [
        1
    ]


def test_a_core_that_cannot_be_aligned_is_named(tmp_path: Path) -> None:
    lost = raw.core_file({"TIU": [raw.tiu_record(9000 + 50 * n, 9040 + 50 * n, n) for n in range(4)]})
    profile = open_profile(raw.write_capture(tmp_path, {0: _core(1000, _WORK), 1: lost}))
    assert profile.event_count == 8
    found = [
        problem
        for problem in profile.problems
        if problem.group == profile.groups.numbered(1) and problem.severity is Severity.WARNING
    ]
    assert any("own clock" in problem.done for problem in found)


def test_a_start_before_the_first_record_makes_no_negative_time(tmp_path: Path) -> None:
    """The reference shifts by first records alone and fails (limit 12)."""
    records = raw.opening()
    records["TIU"] += [raw.tiu_record(5000, 5100, 0), raw.tiu_record(4000, 4100, 1)]
    profile = open_profile(raw.write_capture(tmp_path, {0: raw.core_file(records)}))
    assert _starts(profile) == {0: [0, 1000]}


# -- several blocks, detail records ------------------------------------------


def test_several_node_blocks_go_on_where_the_last_one_ended(tmp_path: Path) -> None:
    """Ids, kernel and batch carry over; each block's own detail records follow one another (limit 16)."""
    whole = raw.words([*raw.OPENING_NODES, raw.id_reset(raw.TIU), raw.batch(5), *raw.func("long_name"),
                       *[raw.node(raw.TIU, 3, 2)] * 6, raw.FUNC_END])  # fmt: skip
    records = raw.opening()
    records["TIU"] += [raw.tiu_record(2000 + 50 * n, 2040 + 50 * n, n) for n in range(6)]
    for cut in (4 * 7, 4 * 13, 4 * 15):  # between nodes, before the reset, and within the name
        data = raw.core_file(records) + raw.block(5, whole[:cut]) + raw.block(7, b"log") + raw.block(5, whole[cut:])
        profile = open_profile(raw.write_capture(tmp_path, {0: data}))
        lane = profile.lane("TIU", 0)
        assert lane is not None
        assert _texts(profile, "name", "TIU") == ["add"] * 6
        assert _texts(profile, "kernel", "TIU") == ["long_name"] * 6
        assert lane["batch"].tolist() == [5] * 6
        assert lane["scope"].tolist() == [0] * 6


def test_a_kernel_that_only_synchronises_is_shown(tmp_path: Path) -> None:
    records = raw.opening()
    records["TIU"] += [raw.tiu_record(2000, 2010, 0, True), raw.tiu_record(2020, 2400, 1, True)]
    nodes = [*raw.OPENING_NODES, raw.id_reset(raw.TIU), *raw.func("barrier"), raw.node(raw.TIU, 15, 8),
             raw.node(raw.TIU, 15, 9), raw.FUNC_END]  # fmt: skip
    profile = open_profile(raw.write_capture(tmp_path, {0: raw.core_file(records, nodes)}))
    assert _texts(profile, "name", "TIU") == ["send_msg", "wait_msg"]
    assert _texts(profile, "kernel", "TIU") == ["barrier"] * 2


def test_what_a_mode_cannot_know_is_missing(tmp_path: Path) -> None:
    profile = open_profile(unpacked("aks_mode0", tmp_path))
    for lane in profile.lanes:
        work = lane["role"] == 0
        assert (lane["name"][work] == -1).all()
        assert lane.role_guessed
        for key in ("kernel", "scope", "batch", "mode", "alg_ops", "src_addr"):
            assert key not in lane
        if lane.kind != "TIU":
            assert (lane["direction"][work] == -1).all()
            assert (lane["dtype"][work] == -1).all()
            assert (lane["dma_type"][work] == INT_MISSING).all()
