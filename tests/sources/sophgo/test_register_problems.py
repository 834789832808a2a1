"""Commands whose registers are known in part, not at all, cut off, or longer than they should be."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from written_captures import capture

from tpuprof_tui.model import INT_MISSING, Severity, is_missing
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.chips.commands import command_table

_UNDESCRIBED = ("DMA_compress", "DMA_decompress", "DMA_randmask", "DMA_transfer")
_DYN_EXTRA = 6


def rewritten(tmp_path: Path, kind: str, record) -> Path:
    """A copy of a capture with other detail records: ``record`` gets number and content, and returns the content."""
    target = tmp_path / kind
    target.mkdir()
    for path in capture(kind).iterdir():
        data = path.read_bytes()
        if path.name.startswith("cdmlib"):
            data = b"".join(_blocks(data, record))
        (target / path.name).write_bytes(data)
    return target


def _blocks(data: bytes, record):
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        payload = data[at + 8 : at + 8 + size]
        if kind == _DYN_EXTRA:
            payload = b"".join(_records(payload, record))
        yield struct.pack("<II", kind, len(payload)) + payload
        at += 8 + size


def _records(payload: bytes, record):
    at = number = 0
    while at < len(payload):
        profile, kind, size = struct.unpack_from("<III", payload, at)
        content = record(number, payload[at + 12 : at + 12 + size])
        yield struct.pack("<III", profile, kind, len(content)) + content
        at, number = at + 12 + size, number + 1


def operation_name(lane, operation: int) -> str:
    return command_table(lane.registers.chip, lane.kind).operations[operation].name


@pytest.mark.parametrize("kind", ["unknown_layouts", "aksv_unknown_layouts"])
def test_operations_nobody_describes_have_their_name_their_header_and_one_problem_each(kind):
    profile = open_profile(capture(kind))
    for core in (0, 1):
        lane = profile.lane("GDMA", core)
        types = np.array(profile.strings["type"].texts(lane["type"]), object)
        for name in _UNDESCRIBED:
            rows = np.flatnonzero(types == name)
            problems = [p for p in profile.problems if profile.groups.number(p.group) == core and name in p.what]
            assert [(p.count, p.severity, p.lane, p.file) for p in problems] == [
                (len(rows), Severity.WARNING, "GDMA", f"cdmlib0_{core}.profile")
            ]
            assert len(rows) == (4 if "compress" in name else 1)
            assert (lane["dependency"][rows] == 0).all()
            for row in rows.tolist():
                operation = lane.registers.operation_of(row)
                assert operation_name(lane, operation) == name
                assert {"cmd_type", "cmd_id_dep"} <= set(lane.registers.field_names(operation))
                assert len(lane.registers.unexplained(row)) == 96
                assert name.removeprefix("DMA_") in lane.description(row)
                assert ("DDR->LMEM" in lane.description(row)) == (kind == "unknown_layouts")
        others = ~np.isin(types, _UNDESCRIBED)
        assert all(lane.registers.unexplained(row) == b"" for row in np.flatnonzero(others).tolist())


def test_what_their_nodes_say_counts_and_nothing_is_made_up():
    with_nodes = open_profile(capture("unknown_layouts")).lane("GDMA", 0)
    assert not is_missing(with_nodes["direction"][with_nodes["role"] == 0]).any()
    assert (with_nodes["src_addr"] == INT_MISSING).sum() == 10
    profile = open_profile(capture("aksv_unknown_layouts"))
    lane = profile.lane("GDMA", 0)
    rows = np.flatnonzero(np.isin(profile.strings["type"].texts(lane["type"]), _UNDESCRIBED))
    assert len(rows) == 10
    for key in ("direction", "from_memory", "to_memory", "src_addr", "dst_addr"):
        assert is_missing(lane.take(key, rows)).all(), key
    assert set(profile.strings["dtype"].texts(lane.take("dtype", rows))) == {""}
    assert (lane.take("bytes", rows) > 0).all()


def test_a_detail_record_that_is_cut_off_does_not_borrow_from_the_next(tmp_path):
    whole = open_profile(capture("decode_mode2"))
    profile = open_profile(rewritten(tmp_path, "decode_mode2", lambda n, content: content[:16] if n == 40 else content))
    changed = 0
    for lane, before in zip(profile.lanes, whole.lanes, strict=True):
        mine, theirs = (each.registers.operations(slice(None)) for each in (lane, before))
        cut = np.flatnonzero(mine != theirs)
        changed += len(cut)
        for row in cut.tolist():
            assert (mine[row], len(lane.registers.raw(row))) == (-1, 16)
            assert lane["name"][row] >= 0  # its node still names it
    assert changed == len(profile.groups.numbers)
    assert sum(p.count for p in profile.problems if "cannot be decoded" in p.what) == len(profile.groups.numbers)


def test_bytes_behind_a_command_are_noted_and_ignored(tmp_path):
    whole = open_profile(capture("decode_mode2"))
    profile = open_profile(rewritten(tmp_path, "decode_mode2", lambda n, content: content + bytes(8 * (n == 40))))
    for lane, before in zip(profile.lanes, whole.lanes, strict=True):
        assert (lane.registers.operations(slice(None)) == before.registers.operations(slice(None))).all()
    notes = [p for p in profile.problems if "Bytes after the command" in p.what]
    assert [p.severity for p in notes] == [Severity.NOTE] * len(profile.groups.numbers)


@pytest.mark.parametrize("kind", ["cdma_zoo_des", "aksv_cdma_zoo_des"])
def test_every_cdma_operation_decodes_from_blocks_tcp_among_them(kind):
    profile = open_profile(capture(kind))
    told = [(problem.severity, problem.what) for problem in profile.problems]
    sibling = "The registers of CDMA_tcp_send, CDMA_tcp_receive are described for a sibling chip only."
    assert told == ([(Severity.NOTE, sibling)] * 2 if kind.startswith("aksv") else [])
    lanes = [lane for lane in profile.lanes if lane.kind == "CDMA"]
    assert len(lanes) == 2
    for lane in lanes:
        assert set(profile.strings["type"].texts(lane["type"])) == {
            "send", "read", "write", "general", "receive", "lossy_compress", "lossy_decompress", "sys", "tcp_send",
            "tcp_receive"}  # fmt: skip
        assert (lane.registers.operations(slice(None)) >= 0).all()
        work = lane["role"] == 0
        assert (lane["bytes"][work] > 0).all()
        assert (lane["ddr_bandwidth"][work] > 0).all()
        for row in np.flatnonzero(work).tolist():
            name = profile.text("type", int(lane["type"][row]))
            assert lane.description(row).startswith(name.removeprefix("CDMA_"))
            assert "GB/s" in lane.description(row)


@pytest.mark.parametrize(
    ("kind", "engine", "names"),
    [
        ("zoo_undecodable", "TIU", {"sVC"}),
        ("zoo_undecodable", "GDMA", {"DMA_masked_select", "DMA_nonzero", "DMA_lossy_compress"}),
        ("aksv_zoo_undecodable", "TIU", {"sVC"}),
        ("aksv_zoo_undecodable", "GDMA", {"DMA_cw transpose"}),
    ],
)
def test_operations_on_which_the_reference_crashes_have_figures_and_a_reading(kind, engine, names):
    profile = open_profile(capture(kind))
    lane = profile.lane(engine, 0)
    types = np.array(profile.strings["type"].texts(lane["type"]), object)
    for name in names:
        rows = np.flatnonzero(types == name)
        assert len(rows), name
        assert (lane.registers.operations(rows) >= 0).all()
        for key in ("alg_ops", "uarch_ops", "alg_cycle") if engine == "TIU" else ("bytes", "ddr_bandwidth"):
            assert (lane.take(key, rows) > 0).all(), (name, key)
        assert all(lane.description(row) for row in rows.tolist())


def test_cdma_nodes_show_their_registers_and_keep_the_published_fields():
    profile = open_profile(capture("cdma_mode2"))
    lanes = [lane for lane in profile.lanes if lane.kind == "CDMA"]
    assert lanes
    for lane in lanes:
        assert (lane.registers.operations(slice(None)) == -1).all()
        assert (lane["src_addr"] == INT_MISSING).all()
        for row in range(len(lane)):
            operation = lane.registers.operation_of(row)
            name = profile.text("type", int(lane["type"][row]))
            assert operation_name(lane, operation) in (f"CDMA_{name}", f"sCDMA_{name}")
            if name in ("send", "read", "write"):
                width = int(lane.registers.field(operation, "src_wsize", np.array([row]))[0])
                assert width * 2 == lane["bytes"][row]
                assert f"[1,1,1,{width}]" in lane.description(row)
