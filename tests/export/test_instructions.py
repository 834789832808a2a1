from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest
from profiles import Registers, Texts, big_profile, make_lane, make_profile, small_profile

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.sophgo.files import instructions
from tpuprof_tui.sources.sophgo.files.instructions import CONDENSED, write_instructions
from tpuprof_tui.sources.sophgo.files.summary_table import ENGINES
from tpuprof_tui.sources.sophgo.schema import COLUMNS


def written(profile, unit=-1, **options) -> str:
    sink = io.BytesIO()
    count = write_instructions(query_of(profile, scope=Scope(unit)), sink, **options)
    text = sink.getvalue().decode("utf-8")
    assert count == len(text.splitlines()) - (options.get("form") == "csv")
    return text


def as_objects(profile, **options):
    return [json.loads(line) for line in written(profile, **options).split("\n")[:-1]]


def as_cells(profile, **options):
    return list(csv.DictReader(io.StringIO(written(profile, form="csv", **options), newline="")))


def expected_value(profile, lane, column, row):
    """One value, slowly: None where it is absent."""
    placeholder = column.placeholder if column.applies_to(lane.kind) else None
    if column.key == "core" and profile.unit_of(lane) >= 0:
        return profile.unit_number(lane)
    if column.key == "port" and lane.number >= 0:
        return lane.number
    if column.key not in lane or not column.applies_to(lane.kind):
        return placeholder
    value = lane[column.key][row].item()
    if column.kind == "text":
        return profile.strings[column.key][value] if value >= 0 else placeholder
    if value == INT_MISSING or (isinstance(value, float) and not math.isfinite(value)):
        return placeholder
    if column.kind == "percent":
        return f"{value:.1f}%"
    return round(value, 4) if isinstance(value, float) else value


def expected_objects(profile, *, unit=None, engine=None):
    """All objects, slowly: one row and one column at a time."""
    objects = []
    lanes = sorted(
        profile.lanes,
        key=lambda lane: (profile.unit_of(lane) < 0, profile.unit_number(lane), ENGINES.index(lane.kind), lane.number),
    )
    for lane in lanes:
        if engine not in (None, lane.kind):
            continue
        for row in np.argsort(lane["order"], kind="stable").tolist():
            found = {"engine": lane.kind}
            operation = -1 if lane.registers is None else int(lane.registers.operations(slice(row, row + 1))[0])
            for column in COLUMNS[1:]:
                value = expected_value(profile, lane, column, row) if column.file_name else None
                if value is not None and (operation < 0 or column.key not in CONDENSED):
                    found[column.file_name] = value
            if operation >= 0:
                prefix = "des_" if lane.kind == "TIU" else ""
                if not prefix:
                    found |= {"mask_start_addr_h8": 0, "mask_start_addr_l32": 0}
                    if "src_data_format" not in lane.registers.field_names(operation):
                        found["Data Type"] = ""
                for name in lane.registers.field_names(operation):
                    found[prefix + name] = int(lane.registers.field(operation, name, np.array([row]))[0])
            if unit in (None, found.get("Core Id")):
                objects.append(found)
    return objects


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("piece", [7, 16384])
def test_every_field_of_every_instruction(mode, piece, monkeypatch):
    monkeypatch.setattr(instructions, "SLICE", piece)
    profile = small_profile(mode)
    assert as_objects(profile) == expected_objects(profile)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_csv_says_what_json_says(mode):
    profile = small_profile(mode)
    cells = as_cells(profile)
    for row, item in zip(cells, as_objects(profile), strict=True):
        said = {name: str(value) for name, value in item.items() if value != ""}
        assert {name: cell for name, cell in row.items() if cell} == said


@pytest.mark.parametrize("choice", [{"unit": 1}, {"engine": "GDMA"}, {"unit": 0, "engine": "CDMA"}, {"unit": 2}])
def test_a_core_or_an_engine(choice):
    profile = small_profile()
    found = as_objects(profile, **choice)
    assert found == expected_objects(profile, **choice)
    assert bool(found) == (choice != {"unit": 2})


def test_rows_come_in_stream_order():
    lane = make_lane(starts=[50, 0, 30], ends=[60, 10, 40], order=[0, 1, 2], cycles=[1, 2, 3])
    assert [item["Asic Cycle"] for item in as_objects(make_profile([lane]))] == [1, 2, 3]


def test_lanes_come_by_unit_engine_and_port():
    places = (("CDMA", 3), ("SDMA", 0), ("TIU", 1), ("CDMA", 0), ("GDMA", 0), ("TIU", 0))
    lanes = [make_lane(engine, number, starts=[0], ends=[1]) for engine, number in places]
    found = [(item["engine"], item.get("Core Id", item.get("Port"))) for item in as_objects(make_profile(lanes))]
    assert found == [("TIU", 0), ("GDMA", 0), ("SDMA", 0), ("TIU", 1), ("CDMA", 0), ("CDMA", 3)]


def test_gaps_of_every_kind():
    texts = Texts()
    lane = make_lane("GDMA", starts=[0, 10, 20, 30], ends=[5, 15, 25, 35],
                     name=texts.codes("name", ["a", None, "b", None]), bytes=[1, INT_MISSING, 3, 1 << 62],
                     scope=[INT_MISSING, 4, 5, INT_MISSING], ddr_bandwidth=[0.125, math.nan, math.inf, 13.342],
                     core=np.full(4, INT_MISSING))  # fmt: skip
    found = as_objects(make_profile([lane], strings=texts.build()))
    assert [item["Function Name"] for item in found] == ["a", "unknown", "b", "unknown"]
    assert [item.get("DMA data size(B)") for item in found] == [1, None, 3, 1 << 62]
    assert [item.get("func_scope_id") for item in found] == [None, 4, 5, None]
    assert [item["DDR Bandwidth(GB/s)"] for item in found] == [0.125, 0, 0, 13.342]
    assert all("Core Id" not in item for item in found)


def test_rates_are_text_with_one_decimal():
    lane = make_lane(starts=[0, 1, 2], ends=[1, 2, 3], uarch_rate=[6.25, 100.0, math.nan])
    profile = make_profile([lane])
    assert [item["uArch Rate"] for item in as_objects(profile)] == ["6.2%", "100.0%", "0.0%"]
    assert [row["uArch Rate"] for row in as_cells(profile)] == ["6.2%", "100.0%", "0.0%"]


def test_names_with_percent_signs_and_worse():
    names = ["%s 100% %d", 'quote " comma ,', "line\nend", "\ud800", "=1+1", "矩阵乘"]
    texts = Texts()
    starts = np.arange(len(names)) * 10
    lane = make_lane(starts=starts, ends=starts + 5, name=texts.codes("name", names))
    constant = make_lane("GDMA", starts=[0], ends=[5], name=texts.codes("name", ["%s"]))
    profile = make_profile([lane, constant], strings=texts.build())
    assert [item["Function Name"] for item in as_objects(profile)] == [*names, "%s"]
    sink = io.BytesIO()
    write_instructions(query_of(profile), sink, form="csv")
    cells = list(csv.DictReader(io.StringIO(sink.getvalue().decode("utf-8"), newline="")))
    assert [row["Function Name"] for row in cells] == [*names[:3], "\\ud800", "'=1+1", "矩阵乘", "%s"]


def test_a_code_beyond_its_table_is_missing():
    lane = make_lane(starts=[0, 10], ends=[5, 15], name=np.array([3, -1], dtype=np.int32))
    assert [item["Function Name"] for item in as_objects(make_profile([lane]))] == ["unknown", "unknown"]


def test_registers_replace_the_condensed_codes():
    operations = np.array([0, -1], dtype=np.int16)
    registers = Registers(operations, names=(("tsk_typ", "reserved"),))
    lane = make_lane(starts=[0, 10], ends=[5, 15], registers=registers, tiu_type=[9, 9], node_type=[1, 1])
    decoded, condensed = as_objects(make_profile([lane]))
    assert decoded["des_tsk_typ"] == 0
    assert decoded["des_reserved"] == 1
    assert "des_type" not in decoded
    assert condensed["des_tsk_typ"] == 9
    assert condensed["des_type"] == 1
    assert "des_reserved" not in condensed


def test_field_names_are_unique():
    names = [column.file_name for column in COLUMNS if column.file_name]
    assert len(names) == len(set(names))


def test_nothing_to_write():
    assert written(make_profile([])) == ""
    assert written(make_profile([make_lane(starts=[], ends=[])])) == ""
    assert as_cells(make_profile([])) == []


def test_many_instructions_stream_in_pieces():
    sizes = []

    class Sink:
        def write(self, data):
            sizes.append(len(data))

    assert write_instructions(query_of(big_profile(50_000, cores=1, engines=("TIU",))), Sink()) == 50_000
    assert len(sizes) == 4
