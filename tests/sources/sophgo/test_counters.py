"""Raw counters: declared in the schema, read lazily, and nowhere in files unless asked for."""

from __future__ import annotations

import io
import json
import struct

import numpy as np
import pytest
from written_captures import capture

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.chips.chip import chip_by_name, chip_names, family_of
from tpuprof_tui.sources.sophgo.files.instructions import write_instructions
from tpuprof_tui.sources.sophgo.read.columns.figures import counter_columns
from tpuprof_tui.sources.sophgo.read.problems import Problems
from tpuprof_tui.sources.sophgo.read.records.monitor import read_stream
from tpuprof_tui.sources.sophgo.schema import COUNTERS, SCHEMA

LAYOUTS = sorted({(name, family) for name in chip_names() for family in chip_by_name(name).records})
ENGINES = {"tiu": "TIU", "dma": "GDMA", "cdma": "CDMA"}


def stream_of(chip_name: str, family: str, data: bytes):
    chip = chip_by_name(chip_name)
    payload = np.frombuffer(data, np.uint8)
    return read_stream([payload], [0], chip, ENGINES[family], Problems())


@pytest.mark.parametrize(("chip_name", "family"), LAYOUTS)
def test_every_field_of_a_record_is_a_declared_column(chip_name, family):
    layout = chip_by_name(chip_name).records[family]
    for name in layout.by_name:
        if name.startswith(("inst_", "reserved")):
            continue
        column = SCHEMA[name]
        assert column.group == "counters"
        assert not column.shown
        assert not column.file_name
        assert column.help.endswith(".")
        assert column.applies_to(ENGINES[family])


@pytest.mark.parametrize(("chip_name", "family"), LAYOUTS)
def test_values_are_the_bits_of_the_record(chip_name, family):
    layout = chip_by_name(chip_name).records[family]
    random = np.random.default_rng(7)
    first = layout.by_name["inst_start_time"].first // 8
    records = [
        random.bytes(first)
        + struct.pack("<II", 100 * number, 100 * number + 50)
        + random.bytes(layout.size - first - 8)
        for number in range(20)
    ]
    columns = counter_columns(stream_of(chip_name, family, b"".join(records)))
    assert columns
    for name, column in columns.items():
        field = layout.by_name[name]
        whole = [(int.from_bytes(record, "little") >> field.first) % (1 << field.width) for record in records]
        assert column(slice(None)).tolist() == whole, name
        rows = np.array([19, 0, 7])
        assert column(rows).tolist() == [whole[row] for row in rows], name
        assert column(slice(3, 6)).tolist() == whole[3:6], name


def test_known_bytes_of_a_transfer_record():
    data = bytes.fromhex("40060000cf070000000000004b00500007000000") + bytes(44)
    columns = counter_columns(stream_of("aks", "dma", data))
    found = {name: int(columns[name](slice(None))[0]) for name in
             ("thread_id", "ar_latency_cnt", "rip_valid_latency", "gif_wr_rd_stall_cntr")}  # fmt: skip
    assert found == {"thread_id": 1, "ar_latency_cnt": 37, "rip_valid_latency": 5, "gif_wr_rd_stall_cntr": 7}


def test_counters_follow_the_rows_of_their_lane():
    profile = open_profile(capture("cdma"))
    for lane in profile.lanes:
        known = [column.key for column in COUNTERS if column.key in lane]
        assert known, profile.title_of(lane)
        assert all(SCHEMA[key].applies_to(lane.kind) for key in known)
        if lane.kind == "GDMA":
            total = lane["gif_mem_w_cntr"] + lane["axi_d0_w_cntr"]
            assert np.array_equal(total, lane["bytes"])
        if lane.kind == "CDMA":
            assert np.array_equal(lane["m0_data_aw_cntr"], lane["bytes"])
    assert {family_of(lane.kind) for lane in profile.lanes} == {"tiu", "dma", "cdma"}


def test_counters_are_not_written_unless_asked_for():
    profile = open_profile(capture("decode_mode1"))
    sink = io.BytesIO()
    write_instructions(query_of(profile), sink)
    keys = {key for line in sink.getvalue().splitlines() for key in json.loads(line)}
    assert not keys & {column.key for column in COUNTERS}
    assert not {column.key for column in COUNTERS} & set(profile.to_pandas().columns)
    assert "gif_mem_w_cntr" in profile.to_pandas(counters=True).columns
