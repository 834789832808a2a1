"""Folders ``bmprofile_data-N`` of libbmrt: of the vendor's emulators with a known schedule, and of hardware."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import raw_bytes as raw
from compiled_captures import BMPROFILES, DATA, compiled
from truth_tables import read_packed

from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import INT_MISSING, Lane, Profile, Severity
from tpuprof_tui.sources.catalog import open_profile

_REAL = Path(__file__).resolve().parents[4] / "shared" / "vendor" / "real"
_FOLDERS = ("bm1684x", "bm1688", "bm1688_2core", "cv184x")
_DEPENDENCIES = {"bm1684x": 246, "bm1688": 300, "bm1688_2core": 375, "cv184x": 336}
on_hardware = pytest.mark.skipif(not _REAL.is_dir(), reason="the captures of real hardware are not here")


@pytest.fixture(params=BMPROFILES)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return compiled(request.param, tmp_path)


@cache
def _real(name: str) -> tuple[dict[str, Any], list[dict[str, Any]], Profile]:
    with gzip.open(_REAL / f"bmprofile_data-1_{name}.truth.jsonl.gz", "rt", encoding="utf-8") as lines:
        first, *rows = (json.loads(line) for line in lines)
    return first, rows, open_profile(_REAL / f"bmprofile_data-1_{name}")


def _texts(profile: Profile, lane: Lane, key: str) -> list[str | None]:
    strings = profile.strings[key]
    return [strings[code] if code >= 0 else None for code in lane[key].tolist()]


def _dependencies(profile: Profile) -> int:
    """Number of links by command id, all of which hold."""
    assert profile.links is not None
    links = profile.links()
    start, end = (np.concatenate([lane[key] for lane in profile.lanes]) for key in ("start", "end"))
    by_id = links.kind == links.kinds.index("command id")
    assert (end[links.from_row[by_id]] <= start[links.to_row[by_id]]).all()
    return int(by_id.sum())


# -- captures with a known schedule -------------------------------------------


def test_every_command_has_its_time_and_layer(kept: Path) -> None:
    profile = open_profile(kept)
    truth = json.loads(json.dumps(read_packed(DATA / f"{kept.name}.json.xz")))
    assert profile.device.chip == truth["chip"]
    seen = 0
    for core in truth["iterations"][0]["cores"]:
        for engine in ("TIU", "GDMA"):
            lane = profile.lane(engine, core["core"])
            assert lane is not None
            rows = [row for row in core["rows"] if row["engine"] == engine]
            assert (lane["command_id"] - 1).tolist() == [row["id"] for row in rows]
            assert lane["cycles"].tolist() == [row["end_cycle"] - row["start_cycle"] + 1 for row in rows]
            moved = lane["start"] - np.array([row["start_ns"] for row in rows])
            assert np.ptp(moved) <= 1  # one constant, but for rounding
            if core["core"] == 0:  # the truth has what the forecast says, which is core 0's
                planned = [None if "MSG" in row["op"] else row["layer"] or None for row in rows]
                assert _texts(profile, lane, "kernel") == planned
            if engine == "GDMA":
                assert [size for size in lane["bytes"].tolist() if size > 0] == [
                    row["bytes"] for row in rows if row["bytes"]
                ]
            seen += len(rows)
    assert seen == profile.event_count
    assert _dependencies(profile) > 50


def test_layers_are_scopes_with_forecast(kept: Path) -> None:
    profile = open_profile(kept)
    assert profile.vocabulary.scope.one == "layer"
    assert len(profile.scopes) >= 8
    lane = profile.lane("TIU", 0)
    assert lane is not None
    known = lane["forecast"] > 0
    assert known.mean() > 0.5
    ratio = lane["duration"][known] / lane["forecast"][known]
    assert lane["forecast_ratio"][known] == pytest.approx(ratio)


@pytest.mark.parametrize(
    "words",
    [
        ("report",),
        ("report", "--json"),
        ("instructions",),
        ("summary",),
        ("report", "kernels", "--filter", "layer=Cast*"),
    ],
    ids=" ".join,
)
def test_all_answers(kept: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([words[0], str(kept), *words[1:]]) == 0
    out, err = capsys.readouterr()
    assert out
    assert not err
    if "--filter" in words:
        assert "Cast_" in out
        assert "Softmax" not in out


def test_all_files(kept: Path, tmp_path: Path) -> None:
    assert main(["export", str(kept), str(tmp_path / "out"), "--perfetto"]) == 0
    assert sum(path.is_file() for path in (tmp_path / "out").rglob("*")) >= 5


def test_the_last_launch_of_two_models_is_read_once(tmp_path: Path) -> None:
    profile = open_profile(compiled(BMPROFILES[0], tmp_path))
    assert profile.facts == {"network": "ffn"}
    assert {problem.severity for problem in profile.problems} == {Severity.NOTE}


# -- recognition --------------------------------------------------------------


def test_recognised_whatever_it_is_called_and_by_each_file(kept: Path) -> None:
    count = open_profile(kept).event_count
    for name in ("iter0.profile", "global.profile", "net_stat.sim"):
        assert open_profile(kept / name).event_count == count


@pytest.mark.parametrize("arch", ["3", "BM1684X", "bm1684x"])
def test_the_chip_by_code_and_name(tmp_path: Path, arch: str) -> None:
    folder = compiled(BMPROFILES[0], tmp_path)
    _edit(folder / "global.profile", lambda data: data.replace(b"arch=BM1684X", b"arch=" + arch.encode()))
    assert open_profile(folder).device.chip == "BM1684X"


@pytest.mark.parametrize(
    ("arch", "said"),
    [(b"arch=1", "BM1684 cannot be read"), (b"arch=99", "unknown arch '99'"), (b"ar=3", "names no chip")],
)
def test_other_chips_are_refused_in_a_sentence(
    tmp_path: Path, arch: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = compiled(BMPROFILES[0], tmp_path)
    _edit(folder / "global.profile", lambda data: data.replace(b"arch=BM1684X", arch))
    with pytest.raises(UnreadableError, match=said):
        open_profile(folder)
    assert main(["info", str(folder)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert open_profile(folder, chip="BM1684X").event_count
    with pytest.raises(UnreadableError, match="AKS has no such folders"):
        open_profile(folder, chip="AKS")


def test_without_a_run_it_is_refused(tmp_path: Path) -> None:
    folder = compiled(BMPROFILES[0], tmp_path)
    (folder / "iter0.profile").unlink()
    with pytest.raises(UnreadableError, match="without a recorded run"):
        open_profile(folder)


# -- clocks -------------------------------------------------------------------


def test_a_clock_that_is_not_recorded_is_said_and_can_be_given(tmp_path: Path) -> None:
    folder = compiled(BMPROFILES[0], tmp_path)
    for block in (b"", b"\x00"):  # records of BM1684X are none of CV184X: what is asked for is read as far as it goes
        _edit(folder / "global.profile", lambda data, block=block: data + block)  # type: ignore[misc]
    guessed = open_profile(folder, chip="CV184X")
    assert any("does not record its clock" in problem.what for problem in guessed.problems)
    given = open_profile(folder, chip="CV184X", tiu_mhz=500)
    assert not any("does not record its clock" in problem.what for problem in given.problems)
    assert given.device.clocks == (("TIU", 500), ("DMA", 500))


def test_bm1688_has_the_clocks_of_its_hardware(tmp_path: Path) -> None:
    profile = open_profile(compiled(BMPROFILES[1], tmp_path))  # tpu_freq=1000 there, 0 on hardware
    assert profile.device.clocks == (("TIU", 900), ("DMA", 750))


# -- damage -------------------------------------------------------------------


def _edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.chmod(0o644)
    path.write_bytes(change(path.read_bytes()))


def _blocks(data: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place < len(data):
        kind, length = (int.from_bytes(data[at : at + 4], "little") for at in (place, place + 4))
        yield kind, data[place + 8 : place + 8 + length]
        place += 8 + length


def _what(profile: Profile) -> str:
    return "\n".join(problem.what for problem in profile.problems)


def test_missing_commands_are_shown_without_names_but_with_layers(kept: Path) -> None:
    whole = open_profile(kept)
    for path in kept.glob("cmd_*_0.dat"):
        path.unlink()
    profile = open_profile(kept)
    assert "The file of its TIU commands is missing (cmd_" in _what(profile)
    lane, before = profile.lane("TIU", 0), whole.lane("TIU", 0)
    assert lane is not None
    assert before is not None
    assert lane["kernel"].tolist().count(-1) == before["kernel"].tolist().count(-1)
    assert set(_texts(profile, lane, "name")) == {None}
    assert _dependencies(profile) >= 0


def test_without_the_compiler_s_text_commands_align_by_their_registers(kept: Path) -> None:
    whole = open_profile(kept)
    _edit(kept / "global.profile", lambda data: data[: data.index(b"start to run")])
    (kept / "net_stat.sim").unlink()
    profile = open_profile(kept)
    assert "net_stat.sim is missing." in _what(profile)
    assert not len(profile.scopes)
    for one, other in zip(profile.lanes, whole.lanes, strict=True):
        assert one["start"].tolist() == other["start"].tolist()


def test_files_that_cannot_be_read_are_told(kept: Path) -> None:
    path = next(kept.glob("cmd_*_0_1.dat"))
    path.unlink()
    path.symlink_to(kept / "nowhere")
    (kept / "iter7.profile").mkdir()
    told = _what(open_profile(kept))
    assert "Cannot be opened" in told
    assert "Not a regular file." in told


def test_records_beyond_the_commands_are_unknown(kept: Path) -> None:
    def fewer(data: bytes) -> bytes:
        blocks = []
        for kind, payload in _blocks(data):
            if kind == 8:
                counts = [int.from_bytes(payload[at : at + 4], "little") - 3 for at in (36, 40)]
                payload = payload[:36] + b"".join(count.to_bytes(4, "little") for count in counts)
            blocks.append(raw.block(kind, payload))
        return b"".join(blocks)

    _edit(kept / "iter0.profile", fewer)
    profile = open_profile(kept)
    assert "records without a command." in _what(profile)
    assert "more TIU commands than announced." in _what(profile)


@pytest.mark.parametrize("count", [1 << 24, 0xFFFFFFFF])
def test_absurd_counts_are_told(kept: Path, count: int) -> None:
    def absurd(data: bytes) -> bytes:
        return b"".join(
            raw.block(kind, payload[:36] + count.to_bytes(4, "little") * 2 if kind == 8 else payload)
            for kind, payload in _blocks(data)
        )

    _edit(kept / "iter0.profile", absurd)
    assert "are announced" in _what(open_profile(kept))


@pytest.mark.parametrize("share", [0.1, 0.35, 0.6, 0.9, 0.999])
def test_truncated_files_are_read_as_far_as_they_go(kept: Path, share: float) -> None:
    for name in ("iter0.profile", "global.profile", "net_stat.sim"):
        _edit(kept / name, lambda data: data[: int(len(data) * share)])
    profile = open_profile(kept)
    assert profile.problems
    assert any(problem.file for problem in profile.problems)


def test_dependencies_that_contradict_are_told(tmp_path: Path) -> None:
    folder = compiled(BMPROFILES[0], tmp_path)
    _edit(folder / "global.profile", lambda data: data.replace(b"bd_id=1 gdma_id=1 ", b"bd_id=1 gdma_id=11 "))
    assert "TIU and GDMA contradict 1 of" in _what(open_profile(folder))


def test_several_runs_follow_one_another(tmp_path: Path) -> None:
    folder = compiled(BMPROFILES[0], tmp_path)
    once = open_profile(folder)
    first = (folder / "iter0.profile").read_bytes()
    for number, later_us in ((1, 5_000), (2, 9_000)):
        begin = int.from_bytes(first[20:28], "little") + later_us
        (folder / f"iter{number}.profile").write_bytes(first[:20] + begin.to_bytes(8, "little") + first[28:])
    profile = open_profile(folder)
    assert "3 runs." in _what(profile)
    assert profile.event_count == 3 * once.event_count
    for lane, single in zip(profile.lanes, once.lanes, strict=True):
        runs = lane["start"].reshape(3, -1)
        assert (runs[1:] - runs[0] == [[5_000_000], [9_000_000]]).all()
        assert runs[0].tolist() == single["start"].tolist()
        assert lane["batch"].tolist() == sorted([0, 1, 2] * len(single))


# -- beside the device ---------------------------------------------------------


def _calls(begin_us: int) -> bytes:
    def u64(*numbers: int) -> bytes:
        return b"".join(number.to_bytes(8, "little") for number in numbers)

    def u32(*numbers: int) -> bytes:
        return b"".join(number.to_bytes(4, "little") for number in numbers)

    sends = u32(2, 7) + u64(begin_us + 5) + u32(9) + u64(begin_us + 8)
    syncs = u32(1) + u64(begin_us + 10, begin_us + 30)
    marks = u32(0)
    copies = u32(1) + u64(0x1000, 0x2000) + u32(0, 4096) + u64(begin_us + 1, begin_us + 4)
    memory = u32(1) + u64(0x2000) + u32(4096, 0) + u64(begin_us, begin_us + 1)
    remark = u32(0, 1, 6) + b"conv2d"
    return raw.block(9, u64(begin_us, begin_us + 40) + sends + syncs + marks + copies + memory) + raw.block(10, remark)


def test_calls_of_the_driver_are_host_lanes(tmp_path: Path) -> None:
    folder = tmp_path / "bmprofile_data-0"
    folder.mkdir()
    (folder / "global.profile").write_bytes(b"arch=3\ntpu_freq=1000\n")
    (folder / "bmlib_0.profile").write_bytes(_calls(1_700_000_000_000_000))
    profile = open_profile(folder)
    host = {lane.label: lane for lane in profile.lanes}
    assert list(host) == ["send", "sync", "copy", "memory"]
    assert all(lane.on_host for lane in profile.lanes)
    assert _texts(profile, host["send"], "name") == ["send 7", "send 9: conv2d"]
    assert _texts(profile, host["copy"], "name") == ["copy host->chip"]
    assert host["copy"]["bytes"].tolist() == [4096]
    assert [host[label]["start"].tolist() for label in host] == [[5000, 8000], [10_000], [1000], [0]]
    assert host["sync"]["end"].tolist() == [30_000]
    assert not profile.problems


def test_an_empty_run_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "iter0.profile").write_bytes(b"")
    assert "Neither a launch nor a call of the driver is recorded." in _what(open_profile(folder, chip="BM1688"))


def test_commands_without_records_are_listed_without_times(kept: Path) -> None:
    whole = open_profile(kept)
    _edit(kept / "iter0.profile", lambda data: b"".join(raw.block(*each) for each in _blocks(data) if each[0] > 4))
    profile = open_profile(kept)
    assert not profile.timed
    assert "No hardware records" in _what(profile)
    assert profile.event_count > whole.event_count
    lane, before = profile.lane("TIU", 0), whole.lane("TIU", 0)
    assert lane is not None
    assert before is not None
    assert _texts(profile, lane, "kernel")[: len(before)] == _texts(whole, before, "kernel")


def test_the_driver_s_folder_beside_it_is_named(tmp_path: Path) -> None:
    folder = compiled(BMPROFILES[0], tmp_path, "bmprofile_data-1")
    (tmp_path / "bmprofile_data-0").mkdir()
    assert "beside it: bmprofile_data-0." in _what(open_profile(folder))


def test_cut_calls_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    whole = _calls(1_700_000_000_000_000)
    for length in range(8, len(whole), 7):
        (folder / "bmlib_0.profile").write_bytes(whole[:length])
        assert open_profile(folder, chip="BM1684X").problems


def test_device_memory_is_a_table_and_a_view(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = compiled(BMPROFILES[0], tmp_path)
    table = open_profile(folder).table("device_memory", -1)
    assert table is not None
    assert len(table) == (folder / "global.profile").read_bytes().count(b"mtype=")
    assert "gdma_perf_monitor" in table.texts["use"]
    assert main(["report", str(folder), "device_memory"]) == 0
    assert "256.0 MiB" in capsys.readouterr().out


def test_layers_beside_what_was_expected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = compiled(BMPROFILES[0], tmp_path)
    assert main(["report", str(folder), "layers", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (table,) = _values(answer, "launched")
    keys = [column["key"] for column in table["columns"]]
    rows = [dict(zip(keys, row, strict=True)) for row in table["rows"]]
    lanes = [lane for lane in open_profile(folder).lanes if lane.kind in ("TIU", "GDMA")]
    taken = sum(int(lane["duration"][lane["forecast"] > 0].sum()) for lane in lanes)
    assert sum(row["taken_us"] or 0 for row in rows) == pytest.approx(taken / 1000)
    assert all(
        row["forecast_ratio"] == pytest.approx(row["taken_us"] / row["forecast_us"])
        for row in rows
        if row["forecast_us"]
    )


def _values(answer: Any, key: str) -> list[Any]:
    """All values of a key in nested records."""
    if isinstance(answer, list):
        return [value for item in answer for value in _values(item, key)]
    if not isinstance(answer, dict):
        return []
    return [value for name, item in answer.items() for value in ([item] if name == key else _values(item, key))]


# -- hardware -----------------------------------------------------------------


@on_hardware
@pytest.mark.parametrize("name", _FOLDERS)
def test_every_record_is_where_it_was(name: str) -> None:
    first, rows, profile = _real(name)
    seen = 0
    for lane in profile.lanes:
        core, copies = profile.groups.unit_number(lane.group), lane.kind == "COPY"
        mine = [
            row
            for row in rows
            if row["core"] == core
            and "start_us" in row
            and ("copy" in row["kind"]) == copies
            and (copies or row["engine"] == lane.kind)
        ]
        mine.sort(key=lambda row: row["start_us"])
        assert (lane["command_id"] - 1).tolist() == [row["id"] for row in mine]
        assert lane["cycles"].tolist() == [row["cycles"] for row in mine]
        for key in ("start", "end"):
            assert np.abs(lane[key] - np.array([row[f"{key}_us"] * 1000 for row in mine])).max() <= 1
        if copies:
            assert _texts(profile, lane, "name") == [row["kind"] for row in mine]
        seen += len(mine)
    assert seen == sum("start_us" in row for row in rows) == profile.event_count
    device = profile.device_part
    assert device.end_ns - device.start_ns == pytest.approx(first["model_us"] * 1000, abs=2)


@on_hardware
@pytest.mark.parametrize("name", _FOLDERS)
def test_every_command_is_what_it_was(name: str) -> None:
    _, rows, profile = _real(name)
    for row in (row for row in rows if "start_us" in row and "copy" not in row["kind"]):
        lane = profile.lane(row["engine"], row["core"])
        assert lane is not None
        at = int(np.searchsorted(lane["command_id"], row["id"] + 1))
        text = {key: profile.strings[key][lane[key][at]] for key in ("name", "kernel") if lane[key][at] >= 0}
        layer = row.get("layer")
        assert text.get("kernel") == (f"{layer['type']}_{layer['id']}" if layer else None)
        if row["engine"] == "TIU" and "name" in row:
            assert text["name"] == row["name"]
        forecast = row.get("forecast")
        if forecast:
            assert lane["forecast"][at] == pytest.approx(forecast["us"] * 1000, abs=1)
        else:
            assert lane["forecast"][at] == INT_MISSING
        depends = int(lane["depends_on"][at])
        assert (depends if depends > 0 else 0) == (row.get("dep") or 0)
        if "bytes" in row and row["kind"] == "model":
            assert lane["bytes"][at] in (max(row["bytes"]["ddr_written"], row["bytes"]["local_written"]), INT_MISSING)


@on_hardware
@pytest.mark.parametrize("name", _FOLDERS)
def test_every_dependency_holds(name: str) -> None:
    assert _dependencies(_real(name)[2]) == _DEPENDENCIES[name]


@on_hardware
@pytest.mark.parametrize("name", _FOLDERS)
def test_nothing_is_faster_than_the_peak(name: str) -> None:
    """The model of BM1688 has a maximum pooling of bytes at 143 % of the peak: it has no peak then."""
    for lane in _real(name)[2].lanes:
        if lane.kind == "TIU":
            assert np.nanmax(lane["at_peak"]) <= 101  # cycles are rounded to ns


@on_hardware
def test_losses_are_three_commands_of_one_chip() -> None:
    lost = {name: sum(problem.lost for problem in _real(name)[2].problems) for name in _FOLDERS}
    assert lost == {"bm1684x": 3, "bm1688": 0, "bm1688_2core": 0, "cv184x": 0}


@on_hardware
@pytest.mark.parametrize("name", _FOLDERS)
def test_registers_are_the_vendor_reader_s(name: str) -> None:
    """Fields by the vendor's names; BM1684X's options lack the prefix there that they have on the other chips."""
    profile = _real(name)[2]
    with gzip.open(_REAL / f"bmprofile_data-1_{name}.oracle.jsonl.gz", "rt", encoding="utf-8") as lines:
        wanted = [json.loads(line) for line in lines][1:]
    seen = 0
    for item in wanted:
        lane = profile.lane(item["engine"], item.get("core", 0))
        assert lane is not None
        assert lane.registers is not None
        number = item["bd_id" if item["engine"] == "TIU" else "gdma_id"] if "regs" in item else item.get("Cmd Id")
        if number is None:
            continue
        at = int(np.searchsorted(lane["command_id"], number))
        operation = lane.registers.operation_of(at)
        fields = item.get("regs") or {key.removeprefix("des_"): value for key, value in item.items()}
        for field in lane.registers.field_names(operation):
            plain = field.removeprefix("opt_").removeprefix("short_")
            key = field if field in fields else plain
            if field.lower().startswith(("rsvd", "reserv", "resered")) or not isinstance(fields.get(key), int):
                continue
            assert int(lane.registers.field(operation, field, slice(at, at + 1))[0]) == fields[key], (number, field)
            seen += 1
    assert seen > 5_000


@on_hardware
@pytest.mark.parametrize("name", _FOLDERS)
def test_operations_count_as_the_vendor_reader_has_it(name: str) -> None:
    """Alg Ops of all commands but convolutions and maximum pooling of BM1684X, which it counts one more a result."""
    profile = _real(name)[2]
    with gzip.open(_REAL / f"bmprofile_data-1_{name}.oracle.jsonl.gz", "rt", encoding="utf-8") as lines:
        wanted = [json.loads(line) for line in lines][1:]
    for item in (item for item in wanted if item["engine"] == "TIU"):
        lane = profile.lane("TIU", item.get("core", 0))
        assert lane is not None
        at = int(np.searchsorted(lane["command_id"], item.get("Cmd Id") or item["inst_id"] + 1))
        name_text = profile.strings["name"][lane["name"][at]]
        if "alg_ops" not in item:
            assert lane["alg_ops"][at] == item["Alg Ops"]
            assert lane["uarch_ops"][at] == item["uArch Ops"]
        elif name_text not in ("conv.normal", "pord.maxpooling"):
            assert lane["alg_ops"][at] == item["alg_ops"]
