"""What the kinds promise: sizes, believable times, and the oddity each is named after."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plain_capture as plain
import pytest
from capture_writer import samples
from capture_writer.capture import write_capture
from capture_writer.chips import CHIPS, GDMA, TIU
from capture_writer.command import main
from capture_writer.kernels import KERNELS, Setting
from capture_writer.kinds import KINDS
from capture_writer.options import Options
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
REFERENCE = os.environ.get("TPUPROF_REFERENCE") or shutil.which("bigTpuProfile")
Tracks = dict[tuple[str, int], dict[str, np.ndarray]]
#: Kinds that take seconds; their ideas are tested at a smaller size.
BIG = {"id_wrap", "rvt_wrap"}


def _write(options: Options, parent: Path) -> tuple[dict[str, Any], Tracks, Path]:
    path = write_capture(options, parent).path
    meta, tracks, _ = plain.load_truth(parent / f"{options.name}.truth.json")
    return meta, tracks, path


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chip=st.sampled_from(["AKS", "AKSV"]),  # clocks of 1 GHz: a cycle is a nanosecond
    mode=st.integers(0, 2),
    seed=st.integers(0, 2**32),
    cores=st.integers(1, 4),
    ports=st.integers(0, 5),
    sdma=st.booleans(),
)
def test_times_are_those_of_a_machine(
    tmp_path: Path, chip: str, mode: int, seed: int, cores: int, ports: int, sdma: bool
) -> None:
    options = Options("x", "", chip, tuple(range(cores)), mode, seed, ports=ports, sdma=sdma)
    meta, tracks, _ = _write(options, tmp_path)
    peak = {"GDMA": 128.0, "SDMA": CHIPS[chip].ddr_gbps, "CDMA": CHIPS[chip].cdma_gbps}
    for (engine, _), truth in tracks.items():
        start, end = truth["start_ns"], truth["end_ns"]
        assert (end >= start).all()
        assert np.array_equal(truth["cycles"], end - start + 1)
        assert end.max(initial=0) <= meta["pmu_last_ns"]
        if engine == "CDMA":
            sides = np.isin(truth["op"], truth["op"][truth["bytes"] > 0])
            assert (truth["bytes"][sides] > 0).all()
        else:
            assert (start[1:] >= end[:-1]).all(), f"{engine} runs two commands at once"
        if engine != "TIU":
            assert (truth["bytes"] <= peak[engine] * (end - start + 1)).all()
            moved = (truth["src"] == 0) | (truth["dst"] == 0)
            assert (truth["bytes"][moved] <= CHIPS[chip].ddr_gbps * (end - start + 1)[moved]).all()
    shown = [t["start_ns"][t["infra"] == 0] for t in tracks.values()]
    assert meta["reference_zero_ns"] == min(s.min() for s in shown if len(s))


# what is in the others, tests of reading them tell
@pytest.mark.parametrize(
    "name", [name for n, name in enumerate(sorted(set(KINDS) - BIG)) if n % 4 == 0 or not KINDS[name].pmu]
)
def test_every_kind_is_written_and_counted(tmp_path: Path, name: str) -> None:
    meta, tracks, path = _write(KINDS[name], tmp_path)
    text = (path / "global.profile").read_text(encoding="utf-8")
    counts = dict(line.split("=") for line in text.splitlines() if "_record=" in line)
    for rank, number in enumerate(meta["written_cores"]):
        sizes = plain.WIDE_RECORD_WORDS if meta["chip"] == "BM1688" else plain.RECORD_WORDS
        words = plain.monitor_records(path / f"cdmlib0_{number}.profile", sizes)
        if not KINDS[name].pmu:
            assert not words
            assert not counts
            continue
        for engine in ("TIU", "GDMA", "SDMA"):
            present = int((tracks[engine, rank]["loss"] == 0).sum())
            assert len(words[engine]) == present == int(counts[f"core{number}_{engine.lower()}_record"])
    assert meta["records"] == sum(len(t["op"]) for t in tracks.values())
    scopes = [t["scope"][t["scope"] >= 0] for (engine, _), t in tracks.items() if engine == "TIU"]
    seen = np.unique(np.concatenate(scopes)) if scopes else np.zeros(0)
    if meta["mode"]:
        running = len(KINDS[name].written) - len(KINDS[name].idle) - len(KINDS[name].empty)
        assert len(seen) == running * meta["kernels"]


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_commands_of_a_kernel_make_sense(name: str) -> None:
    program = KERNELS[name](Setting(CHIPS["AKS"], cores=2, extra=1, slots=2, sdma=True))
    for number, row in enumerate(program.rows):
        assert all(0 <= before < number for before in row.after)
        assert row.until < number
        assert row.alg_ops != 0
        assert row.bytes == 0 or 64 <= row.bytes <= 4 << 20
        assert (row.bytes > 0) == (row.op.engine != TIU and not row.op.system)
    for engine in (TIU, GDMA):
        ids = [row.id for row in program.rows if row.engine == engine]
        first = program.first_id[engine]
        assert ids == list(range(first, first + len(ids)))


@pytest.mark.parametrize("records", [1000, 30_000, 120_000])
def test_a_capture_has_about_as_many_records_as_asked(tmp_path: Path, records: int) -> None:
    written = write_capture(Options("sized", cores=(0, 1, 2), records=records), tmp_path)
    assert records <= written.records <= records + 1500
    assert (tmp_path / "sized.truth.npz").exists() == (written.records > 50_000)


def test_chunks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the work is divided, launches follow one another on every core and ids restart with each."""
    from capture_writer import build

    monkeypatch.setattr(build, "_CHUNK", 700)
    meta, tracks, _ = _write(Options("chunked", cores=(0, 1), batches=4, ports=1), tmp_path)
    for (engine, _), truth in tracks.items():
        if engine == "TIU":
            assert (np.diff(truth["start_ns"]) > 0).all()
            inside = truth["scope"] >= 0
            assert (np.diff(truth["scope"][inside]) >= 0).all()
            restarts = truth["cmd_id"][inside][np.diff(truth["scope"][inside], prepend=-1) > 0]
            assert (restarts == 0).all()
            assert len(restarts) == meta["kernels"]


def test_time_wraps_inside_a_kernel(tmp_path: Path) -> None:
    meta, tracks, path = _write(replace(KINDS["wrap_time"], cores=(0, 1)), tmp_path)
    words = plain.monitor_records(path / "cdmlib0_0.profile")["TIU"]
    fall = np.flatnonzero(np.diff(words[:, 0]) < 0)
    assert len(fall) == 1
    truth = tracks["TIU", 0]
    assert truth["scope"][fall[0]] == truth["scope"][fall[0] + 1]
    assert meta["core_clock_offset"][0] < 2**32


def test_a_lapped_ring_is_dumped_in_slot_order(tmp_path: Path) -> None:
    _, tracks, path = _write(replace(KINDS["ring"], cores=(0,)), tmp_path)
    truth = tracks["TIU", 0]
    words = plain.monitor_records(path / "cdmlib0_0.profile")["TIU"]
    gone = truth["loss"] == 2
    assert gone[: gone.sum()].all()
    assert gone.sum() == len(truth["op"]) - len(words) > 0
    seam = np.flatnonzero(np.diff(words[:, 0]) < 0)
    assert len(seam) == 1
    turned = np.roll(words[:, 2], -(seam[0] + 1))
    assert np.array_equal(turned, truth["cmd_id"][~gone])


def test_lost_records_leave_their_nodes(tmp_path: Path) -> None:
    _, tracks, path = _write(replace(KINDS["lost"], cores=(0,), lost=0.2), tmp_path)
    truth = tracks["GDMA", 0]
    nodes = [n for n in plain.node_commands(path / "cdmlib0_0.profile") if n["engine"] == "GDMA"]
    assert len(nodes) == len(truth["op"])
    assert 0.1 < (truth["loss"] == 1).mean() < 0.3
    assert (truth["loss"][truth["infra"] != 0] == 0).all()


def test_ids_wrap_at_sixteen_bits(tmp_path: Path) -> None:
    options = replace(KINDS["id_wrap"], id_bits=8, prefill_tiles=60)
    _, tracks, path = _write(options, tmp_path)
    words = plain.monitor_records(path / "cdmlib0_0.profile")["TIU"]
    truth = tracks["TIU", 0]
    assert truth["cmd_id"].max() > 255 >= words[:, 2].max()
    assert np.array_equal(words[:, 2], truth["cmd_id"] % 256)


def test_rvt_firmware_restarts_ids_with_a_pair_without_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHIPS, "AKSV", replace(CHIPS["AKSV"], rvt_id_limit=100))
    _, tracks, path = _write(replace(KINDS["rvt_wrap"], prefill_tiles=50), tmp_path)
    for engine, limit in (("TIU", 100), ("GDMA", 20)):
        truth = tracks[engine, 0]
        extra = np.flatnonzero(truth["infra"] == 5)
        assert len(extra) == 2
        assert (truth["cmd_id"][extra] == limit).all()
        assert (truth["cmd_id"][extra + 1] == 0).all()
        nodes = [
            n for n in plain.node_commands(path / "cdmlib0_0.profile", plain.AKSV_ENGINES) if n["engine"] == engine
        ]
        assert len(nodes) == len(truth["op"]) - 2


def test_sends_of_sdma_retire_late(tmp_path: Path) -> None:
    _, tracks, path = _write(replace(KINDS["sdma_swap"], cores=(0,)), tmp_path)
    words = plain.monitor_records(path / "cdmlib0_0.profile")["SDMA"]
    assert (np.diff(tracks["SDMA", 0]["start_ns"]) > 0).all()
    back = np.flatnonzero(np.diff(words[:, 0]) < 0)
    assert len(back) == 2
    assert (words[back, 2] == words[back + 1, 2] + 1).all()


def test_overlaps_are_real_and_late(tmp_path: Path) -> None:
    _, tracks, path = _write(replace(KINDS["late_overlap"], cores=(0,)), tmp_path)
    words = plain.monitor_records(path / "cdmlib0_0.profile")["GDMA"]
    assert words[:, 0].min() > 2**31
    assert (words[1:, 0] < words[:-1, 1]).sum() > 3
    assert (np.diff(tracks["GDMA", 0]["start_ns"]) > 0).all()


def test_a_missing_core_keeps_its_port_records(tmp_path: Path) -> None:
    meta, tracks, path = _write(KINDS["cdma_no_last"], tmp_path)
    assert not (path / "cdmlib0_7.profile").exists()
    assert 7 not in meta["written_cores"]
    assert any(7 in t["core"] for (engine, _), t in tracks.items() if engine == "CDMA")


def test_des_nodes_point_to_blocks_with_as_many_commands(tmp_path: Path) -> None:
    _, tracks, path = _write(replace(KINDS["des_kv"], cores=(0,)), tmp_path)
    file = path / "cdmlib0_0.profile"
    blocks = {payload[:8] for kind, payload in plain.file_blocks(file) if kind == 17}
    nodes = [node for node in plain.node_commands(file) if "key" in node]
    assert nodes
    for node in nodes:
        assert node["key"].to_bytes(4, "little") + node["count"].to_bytes(4, "little") in blocks
    counted = sum(node["count"] for node in nodes if node["engine"] == "TIU")
    assert counted == (tracks["TIU", 0]["mode"] == 3).sum()


def test_the_host_trace_ends_where_the_tail_says(tmp_path: Path) -> None:
    meta, _, path = _write(replace(KINDS["host_trace"], cores=(0,)), tmp_path)
    events = json.loads((tmp_path / meta["host_trace"]).read_text(encoding="utf-8"))["traceEvents"]
    end = max(e["ts"] + e["dur"] for e in events if e.get("name") == "disable_profile")
    assert end == pytest.approx(meta["host_zero_us"] + (meta["pmu_last_ns"] + meta["tail_offset_ns"]) / 1000, abs=2e-3)
    assert f"tail_offset_ns={meta['tail_offset_ns']}" in (path / "global.profile").read_text(encoding="utf-8")
    launched = [e["name"] for e in events if e.get("cat") == "tpudnn"]
    assert len(launched) == meta["kernels"] + 2


def test_the_writer_knows_nothing_of_the_reader() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import capture_writer.command;"
        "print([m for m in sys.modules if m.split('.')[0] in ('tpuprof_tui', 'pandas', 'textual')])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(SAMPLES)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_names_what_it_does_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kinds", str(tmp_path), "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err
    assert main(["kinds", str(tmp_path), "single_core", "bad_no_global", "--manifest"]) == 0
    listed = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert [(item["name"], item["well_formed"]) for item in listed] == [("single_core", True), ("bad_no_global", False)]


def test_any_option_can_be_set_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings_given = ["--set", "ring=0.5", "--set", "idle=1", "--set", "kernels=rmsnorm,mlp", "--set", "core_num=false"]
    assert main(["one", str(tmp_path), "--name", "set", "--cores", "2", *settings_given]) == 0
    meta, tracks, _ = plain.load_truth(tmp_path / "set.truth.json")
    assert not meta["core_num_key"]
    assert (tracks["TIU", 0]["loss"] == 2).any()
    assert (tracks["GDMA", 1]["infra"] != 0).all()
    for wrong in ("nonsense=1", "rename=a", "ring=much", "core_num=yes"):
        assert main(["one", str(tmp_path), "--set", wrong]) == 2
        assert wrong in capsys.readouterr().err


@pytest.mark.reference
@pytest.mark.skipif(REFERENCE is None, reason="the published converter is not installed")
@pytest.mark.parametrize("name", [options.name for options in samples.SAMPLES])
def test_the_reference_accepts_the_samples(tmp_path: Path, name: str) -> None:
    command = [str(REFERENCE), str(SAMPLES / name), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert "WARNING" not in done.stderr


def test_the_kept_samples_are_what_the_program_writes(tmp_path: Path) -> None:
    assert main(["all", str(tmp_path)]) == 0
    fresh = {file.relative_to(tmp_path): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert len({path.parts[0] for path in fresh}) == 7
    assert sum(map(len, fresh.values())) < 4_000_000
    for path, content in fresh.items():
        assert (SAMPLES / path).read_bytes() == content, f"samples/{path} is stale: run make.py all"
