"""CDMA command streams of compiled models: which of them ran on which port is told by the records alone."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_bytes import blocks_of
from truth_tables import differences, read_truth
from written_captures import capture

from tpuprof_tui.model import INT_MISSING, Profile, is_missing
from tpuprof_tui.sources.catalog import open_profile

KINDS = ("bmodel_cdma", "bmodel_cdma_port", "aksv_bmodel_cdma", "bmodel_cdma_lost")
_DES_CDMA, _MONITOR_CDMA = 16, 12


def truth_of(path: Path):
    return read_truth(path.parent / f"{path.name}.truth.json")


def ports(profile: Profile):
    return [lane for lane in profile.lanes if lane.kind == "CDMA"]


def told(profile: Profile, words: str) -> int:
    """How many things the problems with these words concern."""
    return sum(problem.count for problem in profile.problems if words in problem.what)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_record_gets_its_command_and_its_core(kind, seed):
    path = capture(kind, seed=seed)
    profile = open_profile(path)
    assert differences(profile, truth_of(path)) == []
    assert ports(profile)
    for lane in ports(profile):
        assert not is_missing(lane["name"]).any()
        assert (lane.registers.operations(slice(None)) >= 0).all()


def test_registers_are_those_of_the_command():
    lane = ports(open_profile(capture("bmodel_cdma_port")))[0]
    truth = truth_of(capture("bmodel_cdma_port")).lanes["CDMA", 0]
    widths = truth["d3"][lane["order"]]
    operations = lane.registers.operations(slice(None))
    compared = 0
    for operation in np.unique(operations).tolist():
        rows = np.flatnonzero(operations == operation)
        for name in {"src_wsize", "dst_wsize"} & set(lane.registers.field_names(operation)):
            assert lane.registers.field(operation, name, rows).tolist() == widths[rows].tolist()
            compared += len(rows)
    assert compared > 0.7 * len(lane)


def test_streams_that_are_alike_on_two_cores_name_the_command_but_not_the_core():
    path = capture("bmodel_cdma_twins", ports=2)
    profile, truth = open_profile(path), truth_of(path)
    records = sum(len(lane) for lane in ports(profile))
    left = [line for line in differences(profile, truth) if "core wrong" not in line]
    assert left == []
    assert all((lane["core"] == INT_MISSING).all() for lane in ports(profile))
    assert told(profile, "Several cores have the CDMA command stream") == records


def test_of_what_cannot_be_told_apart_the_operation_is_known_where_all_agree():
    """Two ports of each core run streams that differ in their addresses alone."""
    path = capture("bmodel_cdma_twins")
    profile, truth = open_profile(path), truth_of(path)
    records = sum(len(lane) for lane in ports(profile))
    assert records == sum(len(lane["op"]) for key, lane in truth.lanes.items() if key[0] == "CDMA")
    assert told(profile, "several of its command streams explain") == records
    assert told(profile, "CDMA commands of a compiled model whose port is not known") == records
    assert [line for line in differences(profile, truth) if "core wrong" not in line] == []
    for lane in ports(profile):
        assert lane.registers is None
        assert (lane["core"] == INT_MISSING).all()
        kinds = set(profile.strings["dtype"].texts(lane["dtype"][lane["role"] == 0]))
        assert kinds == {"FP16", ""}  # what receives names no data type
        assert lane.description(3)


def written(blocks: list[tuple[int, bytes]]) -> bytes:
    return b"".join(struct.pack("<II", kind, len(payload)) + payload for kind, payload in blocks)


def changed(tmp_path: Path, kind: str, change) -> Path:
    """A copy of a capture with other blocks in its files: ``change`` gets all blocks by file name."""
    source = capture(kind)
    files = {path.name: path.read_bytes() for path in source.iterdir()}
    blocks = {name: blocks_of(data) for name, data in files.items() if name != "global.profile"}
    change(blocks)
    target = tmp_path / kind
    target.mkdir()
    for name, data in files.items():
        (target / name).write_bytes(written(blocks[name]) if name in blocks else data)
    return target


def test_streams_in_a_port_s_own_file_are_that_port_s(tmp_path):
    """Alike on both cores and ports they could be anyone's: the file tells the port."""

    def moved(blocks):
        for name in ("cdmlib0_0.profile", "cdmlib0_1.profile"):
            blocks[name] = [block for block in blocks[name] if block[0] != _DES_CDMA]
        streams = [block for block in blocks_of((capture("bmodel_cdma_port") / "cdmlib0_0.profile").read_bytes())
                   if block[0] == _DES_CDMA]  # fmt: skip
        records = [block for block in blocks_of((capture("bmodel_cdma_port") / "cdma0_0.profile").read_bytes())
                   if block[0] == _MONITOR_CDMA]  # fmt: skip
        for port in range(4):
            blocks[f"cdma0_{port}.profile"] = [*records, *streams]

    profile = open_profile(changed(tmp_path, "bmodel_cdma_twins", moved))
    assert len(ports(profile)) == 4
    for lane in ports(profile):
        assert not is_missing(lane["name"]).any()


def test_a_stream_that_is_missing_leaves_its_records_unbound(tmp_path):
    def without_first(blocks):
        own = blocks["cdmlib0_0.profile"]
        own.remove(next(block for block in own if block[0] == _DES_CDMA))

    whole = open_profile(capture("bmodel_cdma"))
    profile = open_profile(changed(tmp_path, "bmodel_cdma", without_first))
    lost = 0
    for lane, before in zip(ports(profile), ports(whole), strict=True):
        same = lane["name"] == before["name"]
        lost += int((is_missing(lane["name"])).sum())
        assert (same | is_missing(lane["name"]) | (lane["role"] != 0)).all()
    assert lost
    assert told(profile, "none of its command streams explains")


@pytest.mark.parametrize("cut", [0, 8, 40])
def test_damaged_streams_cost_their_own_records_alone(tmp_path, cut):
    def damaged(blocks):
        own = blocks["cdmlib0_1.profile"]
        place = next(number for number, block in enumerate(own) if block[0] == _DES_CDMA)
        own[place] = (_DES_CDMA, b"\xff" * cut)

    whole = open_profile(capture("bmodel_cdma"))
    profile = open_profile(changed(tmp_path, "bmodel_cdma", damaged))
    assert [len(lane) for lane in profile.lanes] == [len(lane) for lane in whole.lanes]
    for lane, before in zip(ports(profile), ports(whole), strict=True):
        assert (lane["start"] == before["start"]).all()
        agree = (lane["name"] == before["name"]) | is_missing(lane["name"]) | (lane["role"] != 0)
        assert agree.all()


@pytest.mark.parametrize("cores", [1, 2])
def test_very_many_launches_and_streams_are_left_alone(tmp_path, cores):
    """Half of all pairs fit: trying them all would take minutes."""
    nop = (7 << 4 | 1 << 8).to_bytes(16, "little")
    streams = [(_DES_CDMA, nop + number.to_bytes(4, "little") * 4) for number in range(3000)]
    record = struct.Struct("<III 5x 111x")
    records = b"".join(record.pack(100 * n, 100 * n + 50, 1) for n in range(3000))
    (tmp_path / "global.profile").write_text("arch=5\nbmodel\n")
    for core in range(cores):
        (tmp_path / f"cdmlib0_{core}.profile").write_bytes(written(streams))
    (tmp_path / "cdma0_0.profile").write_bytes(written([(_MONITOR_CDMA, records)]))
    profile = open_profile(tmp_path)
    assert [len(lane) for lane in ports(profile)] == [3000]
    assert told(profile, "none of its command streams explains") == 3000


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_bytes_in_streams_and_records_are_read(data):
    source = capture("bmodel_cdma_port")
    core, port = (bytearray((source / name).read_bytes()) for name in ("cdmlib0_0.profile", "cdma0_0.profile"))
    blocks = blocks_of(bytes(core))
    places = [number for number, block in enumerate(blocks) if block[0] == _DES_CDMA]
    for number in places:
        payload = bytearray(blocks[number][1])
        for at, value in data.draw(st.lists(st.tuples(st.integers(0, len(payload) - 1), st.integers(0, 255)))):
            payload[at] = value
        blocks[number] = (_DES_CDMA, bytes(payload[: data.draw(st.integers(0, len(payload)))]))
    for at, value in data.draw(st.lists(st.tuples(st.integers(8, len(port) - 1), st.integers(0, 255)), max_size=20)):
        port[at] = value
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        (target / "global.profile").write_bytes((source / "global.profile").read_bytes())
        (target / "cdmlib0_0.profile").write_bytes(written(blocks))
        (target / "cdma0_0.profile").write_bytes(port)
        profile = open_profile(target)
        for lane in ports(profile):
            for key in lane.keys():  # noqa: SIM118
                assert len(lane[key]) == len(lane)
            assert all(lane.description(row) for row in range(0, len(lane), 7))


def test_records_are_not_given_to_streams_of_another_pattern(tmp_path):
    def exchanged(blocks):
        file = capture("bmodel_cdma_port", cdma_pairs=3) / "cdmlib0_0.profile"
        others = [block for block in blocks_of(file.read_bytes()) if block[0] == _DES_CDMA]
        blocks["cdmlib0_0.profile"] = [
            others.pop() if block[0] == _DES_CDMA else block for block in blocks["cdmlib0_0.profile"]
        ]

    profile = open_profile(changed(tmp_path, "bmodel_cdma_port", exchanged))
    (lane,) = ports(profile)
    assert (is_missing(lane["name"]) >= (lane["role"] == 0)).all()
    assert told(profile, "none of its command streams explains") == len(lane)
