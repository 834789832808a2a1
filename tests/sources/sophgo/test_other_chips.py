"""BM1688 and CV84X6: captures of the sample program against its truth, and against the reference where it is installed.

No capture of either chip is at hand; what is written here follows the format's description.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from truth_tables import Leave, differences, read_truth
from written_captures import capture

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.model import INT_MISSING, Role, Severity, is_missing
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.chips.chip import chip_by_name
from tpuprof_tui.sources.sophgo.files.instructions import write_instructions
from tpuprof_tui.sources.sophgo.read.columns.lanes import generator_role
from tpuprof_tui.sources.sophgo.read.records.profiler_records import _strays, _strays_by_reset

BM1688 = ("bm1688_mode0", "bm1688_mode1", "bm1688_mode2", "bm1688_bmodel")
CV84X6 = ("cv84x6_mode0", "cv84x6_mode1", "cv84x6_mode2", "cv84x6_rvt", "cv84x6_bmodel")
#: Their cores share no instant that records alone tell.
UNALIGNED = ("bm1688_mode0", "bm1688_bmodel", "cv84x6_bmodel")
#: The truth names operations as AKS does.
NAMES = ("type wrong", "name wrong")


def truth_of(path: Path):
    return read_truth(path.parent / f"{path.name}.truth.json")


def left_over(kind: str, **changes) -> list[str]:
    """What differs from the truth, names aside."""
    path = capture(kind, **changes)
    leave = Leave(shift=("core",) if kind in UNALIGNED else ())
    found = differences(open_profile(path), truth_of(path), leave)
    return [line for line in found if not any(name in line for name in NAMES)]


@pytest.mark.parametrize("kind", [*BM1688, *CV84X6])
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_every_instruction_is_where_it_was(kind, seed):
    found = left_over(kind, seed=seed)
    if kind == "cv84x6_rvt":  # generator indices have no data type
        found = [line for line in found if "data type" not in line]
    assert found == []


@pytest.mark.parametrize("kind", [*BM1688, *CV84X6])
def test_nothing_is_odd_about_them(kind):
    problems = open_profile(capture(kind)).problems
    assert [problem.what for problem in problems if problem.severity is not Severity.NOTE] == []


@pytest.mark.parametrize("kind", ["bm1688_mode1", "bm1688_mode2", "cv84x6_mode1", "cv84x6_mode2", "cv84x6_rvt"])
def test_operations_are_those_that_were_issued(kind):
    path = capture(kind)
    profile, truth = open_profile(path), truth_of(path)
    chip = chip_by_name(profile.device.chip)
    for lane in profile.lanes:
        family = "tiu" if lane.kind == "TIU" else "dma"
        ops = [truth.ops[op] for op in truth.lanes[lane.kind, profile.unit_number(lane)]["op"]]
        codes = list(zip(lane[f"{family}_type"].tolist(), lane[f"{family}_function"].tolist(), strict=True))
        table = chip.names(lane.kind)
        rvt = lane["mode"] == 1
        assert rvt.any() == (kind == "cv84x6_rvt")
        for row, (op, code) in enumerate(zip(ops, codes, strict=True)):
            assert lane["role"][row] == (
                Role.WORK if not op["system"] else Role.WAIT if "wait" in op["key"] else Role.SYNC
            )
            if not rvt[row]:
                assert code == (op["typ"], op["eu"])
                if kind.endswith("mode1"):
                    assert profile.text("type", int(lane["type"][row])) == table.type_text(op["typ"])


# -- losses -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bm1688_mode1", "cv84x6_mode1", "cv84x6_mode2", "cv84x6_bmodel"])
@pytest.mark.parametrize("seed", [21, 22])
def test_lost_records_cost_themselves_alone(kind, seed):
    path = capture(kind, lost=0.03, seed=seed)
    leave = Leave(shift=("core",), unbound=8)
    found = differences(open_profile(path), truth_of(path), leave)
    assert [line for line in found if not any(name in line for name in (*NAMES, "tail"))] == []


# -- edges --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "commands", "expected"),
    [
        ([999, 0, 1, 2, 0], [0, 1, 2], (1, 1)),
        ([0, 1, 2], [0, 1, 2], (0, 0)),
        ([999, 0, 1, 2], [0, 1, 2], (1, 0)),
        ([0, 1, 2, 0], [0, 1, 2], (0, 1)),
        ([7, 0, 1, 2, 0, 1, 2, 0], [0, 1, 2, 0, 1, 2], (1, 1)),
        ([999, 0, 2, 3, 0], [0, 1, 2, 3], (1, 1)),  # one lost inside
        ([999, 1, 2, 0], [0, 1, 2, 3], (1, 1)),  # the first and the last lost
        ([999, 0, 2, 0], [0, 1, 2, 0], (1, 0)),  # what stands alone at the end is a command's
        ([], [0], (0, 0)),
    ],
)
def test_strays_are_told_by_ids(records, commands, expected):
    found = _strays(np.array(records, np.int64), np.array(commands, np.int64), 1)
    assert found == expected


@pytest.mark.parametrize(
    ("records", "alone", "expected"),
    [
        ([7, 0, 1, 2, 0], False, (1, 1)),
        ([0, 1, 2], False, (0, 0)),
        ([5, 6, 7], False, (0, 0)),  # a lapped ring: nothing tells
        ([5, 6], True, (2, 0)),  # never ran
        ([9, 0], False, (1, 0)),
    ],
)
def test_and_by_resets_where_there_are_no_commands(records, alone, expected):
    assert _strays_by_reset(np.array(records, np.int64), 1, alone=alone) == expected


# -- alignment ----------------------------------------------------------------


def test_cores_that_ran_different_numbers_of_kernels_are_aligned_on_what_they_share(tmp_path):
    """Core 1 lacks its last launch; the reference aligns the cores on their last records all the same."""
    path = capture("bm1688_mode1", kernels=("rmsnorm", "rope"), seed=5)
    profile, truth = open_profile(path), truth_of(path)
    assert profile.lane("TIU", 0)["start"][0] != profile.lane("TIU", 1)["start"][0]
    shorter = _without_last_launch(path, tmp_path / "shorter")
    cut = open_profile(shorter)
    whole = {core: profile.lane("GDMA", core)["start"] for core in (0, 1)}
    kept = {core: cut.lane("GDMA", core)["start"] for core in (0, 1)}
    assert len(kept[1]) < len(whole[1])
    apart = whole[0][0] - whole[1][0]
    assert kept[0][0] - kept[1][0] == apart
    assert truth.meta["chip"] == "BM1688"


def _without_last_launch(path: Path, target: Path) -> Path:
    """A copy in which the file of core 1 ends before its last kernel function."""
    shutil.copytree(path, target)
    (target / "global.profile").write_text("arch=4\ncore_num=2\n", encoding="utf-8")
    file = target / "cdmlib0_1.profile"
    data = file.read_bytes()
    lane = open_profile(path).lane
    keep = {3: int((lane("TIU", 1)["scope"] < lane("TIU", 1)["scope"].max()).sum()),
            4: int((lane("GDMA", 1)["scope"] < lane("GDMA", 1)["scope"].max()).sum())}  # fmt: skip
    sizes = {3: 32, 4: 256}
    out, at = b"", 0
    while at < len(data):
        kind, length = (int.from_bytes(data[at + n : at + n + 4], "little") for n in (0, 4))
        payload = data[at + 8 : at + 8 + length]
        if kind in keep:
            payload = payload[: keep[kind] * sizes[kind]]
        elif kind == 5:
            words = np.frombuffer(payload, "<u4")
            batches = np.flatnonzero((words & 127) == 14)
            payload = words[: batches[-1]].tobytes()
        out += kind.to_bytes(4, "little") + len(payload).to_bytes(4, "little") + payload
        at += 8 + length
    file.write_bytes(out)
    return target


# -- figures ------------------------------------------------------------------


def test_generator_indices_tell_roles_and_directions():
    assert generator_role("sys", "rvt_msgwait") == Role.WAIT
    assert generator_role("sdma_sys", "rvt_dma_msgsend") == Role.SYNC
    assert generator_role("sys_tr_wr", "rvt_tgcrw32") == Role.WORK
    profile = open_profile(capture("cv84x6_rvt"))
    gdma = profile.lane("GDMA", 0)
    rvt = np.flatnonzero((gdma["mode"] == 1) & (gdma["role"] == Role.WORK))
    names = [profile.text("name", code) for code in gdma["name"][rvt].tolist()]
    ways = [profile.text("direction", code) for code in gdma["direction"][rvt].tolist()]
    assert set(zip(names, ways, strict=True)) >= {("rvt_dma_ld", "DDR->LMEM"), ("rvt_dma_st", "LMEM->DDR")}
    assert is_missing(gdma["dtype"][rvt]).all()
    tiu = profile.lane("TIU", 0)
    assert "rvt_sub" in {profile.text("name", code) for code in tiu["name"].tolist()}  # an index beyond 31


def test_conflicts_and_threads_are_counted():
    profile = open_profile(capture("cv84x6_mode1"))
    for lane in profile.lanes:
        if lane.kind == "TIU":
            assert np.array_equal(lane["conflict_cycles"], lane["bank_conflict"])
            expected = 100.0 * lane["bank_conflict"] / lane["cycles"]
            assert np.allclose(lane["conflict_ratio"], expected)
            assert lane["bank_conflict"].max() > 0
        assert set(lane["thread"].tolist()) <= {0, 1}


def test_bytes_of_the_wide_record_are_those_of_one_side():
    for kind in ("bm1688_mode1", "bm1688_mode2"):
        path = capture(kind)
        profile, truth = open_profile(path), truth_of(path)
        for lane in profile.lanes:
            if lane.kind == "GDMA":
                assert lane["bytes"].tolist() == truth.lanes["GDMA", profile.unit_number(lane)]["bytes"].tolist()
                work = lane["role"] == Role.WORK
                ideal = lane["bytes"][work] / profile.device.peak("DDR")
                assert np.allclose(lane["ideal"][work], ideal)
                assert (lane["at_peak"][work] <= 100.5).all()


# -- the reference ------------------------------------------------------------

REFERENCE = os.environ.get("TPUPROF_REFERENCE") or shutil.which("bigTpuProfile")
#: What it says otherwise: bytes of condensed BM1688 moves count three times, system commands have no places, and
#: only messages of TIU are told.
OTHERWISE = {"Global Idx", "engine", "index"}
MESSAGES = {"Msg Id", "Sd\\Wt Count"}
BYTES = {"DMA data size(B)", "DDR Bandwidth(GB/s)"}
PLACES = {"Direction", "from_addr", "to_addr"}


def told_by_reference(path: Path) -> list[dict[str, str]]:
    """Instructions of a register text file."""
    blocks: list[dict[str, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("__"):
            blocks.append({})
        elif line.startswith("\t") and blocks:
            key, _, value = line[1:].partition(": ")
            blocks[-1].setdefault(key, value)
    return [block for block in blocks if "Engine Id" in block]


def same(ours: object, theirs: str) -> bool:
    try:
        return str(ours) == theirs or abs(float(str(ours)) - float(theirs)) < 1e-9
    except ValueError:
        return False


@pytest.mark.reference
@pytest.mark.skipif(REFERENCE is None, reason="the published converter is not installed")
@pytest.mark.parametrize("kind", [*BM1688, *CV84X6])
def test_the_reference_says_the_same_of_every_instruction_it_reports(kind, tmp_path):
    path, out = capture(kind), tmp_path / "out"
    subprocess.run([REFERENCE, str(path), str(out), "--enable_doc"], check=True, capture_output=True)
    sink = io.BytesIO()
    write_instructions(query_of(open_profile(path)), sink)
    ours: dict[tuple[str, int, int, int], dict[str, object]] = {}
    for row in map(json.loads, sink.getvalue().splitlines()):
        ours[row["engine"], row["Core Id"], row["Cmd Id"], row["Start Time(ns)"]] = row
    compared = 0
    for engine, prefix in (("TIU", "tiuRegInfo"), ("GDMA", "tdmaRegInfo")):
        for file in sorted(out.glob(f"{prefix}_*.txt")):
            core = int(file.stem.rpartition("_")[2])
            for theirs in told_by_reference(file):
                mine = ours[engine, core, int(theirs["Cmd Id"]), int(theirs["Start Time(ns)"])]
                system = mine.get("cmd_type") == 6 or mine.get("Function Type") in ("sys", "chain end")
                leave = OTHERWISE | (PLACES if system else set()) | (MESSAGES if engine == "GDMA" else set())
                leave |= BYTES if kind in ("bm1688_mode0", "bm1688_mode1") else set()
                wrong = {key: (mine[key], value) for key, value in theirs.items()
                         if key in mine and key not in leave and not same(mine[key], value)}  # fmt: skip
                assert wrong == {}
                compared += 1
    assert compared > 0.9 * len(ours)


def test_missing_figures_are_missing():
    gdma = open_profile(capture("bm1688_mode0")).lane("GDMA", 0)
    assert (gdma["lmem_transactions"] == INT_MISSING).all()
    assert np.isnan(gdma["ideal"]).all()
