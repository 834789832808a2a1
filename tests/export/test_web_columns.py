"""The web page's columns, kinds and overview, as they are packed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import Texts, make_lane, make_profile, tpu_device
from web_reading import chunk, page_of

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.export.web.lanes import CELLS, ChosenLane, Kinds, bytes_in_cells, edges_of
from tpuprof_tui.formats.escape import script_json
from tpuprof_tui.formats.web_codec import LARGEST, Chunk, scaled
from tpuprof_tui.model import INT_MISSING, Role, Scopes, Strings
from tpuprof_tui.sources.sophgo.files.summary_table import lane_sums, summary_record
from tpuprof_tui.sources.sophgo.files.workbook import SUMMARY_COLUMNS

# -- columns -------------------------------------------------------------------


def read_back(columns: dict[str, tuple[list[int], bool]]) -> dict[str, list[int]]:
    count = len(next(iter(columns.values()))[0])
    written = Chunk(count)
    for key, (values, ascending) in columns.items():
        written.add(key, [np.array(values, np.int64)], ascending=ascending)
    text = written.base64().decode()
    return {key: values.tolist() for key, values in chunk(script_json([count, written.columns]), text).items()}


@given(st.lists(st.tuples(st.integers(-1, LARGEST - 1), st.integers(-LARGEST // 2, LARGEST // 2)), max_size=50))
def test_columns_survive(rows):
    plain, near = [row[0] for row in rows], [row[1] for row in rows]
    assert read_back({"plain": (plain, False), "near": (near, True)}) == {"plain": plain, "near": near}


def test_columns_beyond_exact_numbers_are_cut():
    assert read_back({"a": ([1 << 60, 3], False)}) == {"a": [LARGEST, 3]}


def test_a_column_of_one_value_takes_no_room():
    written = Chunk(1000)
    written.add("same", [np.full(1000, -1)])
    assert written.columns == [("same", 0, False, True)]


def test_numbers_that_are_none_are_missing():
    values = np.array([1.25, 0.0, -1.0, np.nan, np.inf, -np.inf])
    assert scaled(values, 100).tolist() == [125, 0, -1, -1, -1, -1]
    assert scaled(np.array([1e300]), 100).tolist() == [LARGEST]


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_kinds_keep_combinations_apart(rows):
    lane = make_lane("TIU", 0, starts=np.arange(len(rows)), ends=np.arange(len(rows)) + 1,
                     roles=[row[2] for row in rows], name=np.array([row[0] for row in rows], np.int32),
                     kernel=np.array([row[1] for row in rows], np.int32))  # fmt: skip
    profile = make_profile([lane], strings={"name": Strings("abcd"), "kernel": Strings(("", "x", "y"))})
    kinds = Kinds(profile)
    codes = np.concatenate([kinds.codes(lane, slice(0, 1), 1), kinds.codes(lane, slice(1, len(rows)), len(rows) - 1)])
    tables = kinds.tables()["kinds"]
    assert [(tables["name"][code], tables["kernel"][code], tables["role"][code]) for code in codes] == rows
    assert len(kinds) == len(set(rows))


def test_kinds_beyond_a_table_are_sorted():
    count = 3000
    many = Strings(str(number) for number in range(count))
    codes = np.arange(count, dtype=np.int32)
    lane = make_lane("TIU", 0, starts=codes, ends=codes + 1, name=codes, kernel=codes[::-1].copy())
    kinds = Kinds(make_profile([lane], strings={"name": many, "kernel": many}))
    found = kinds.codes(lane, slice(0, count), count)
    tables = kinds.tables()["kinds"]
    assert [tables["kernel"][code] for code in found] == codes[::-1].tolist()


def test_a_code_beyond_its_table_has_no_text():
    lane = make_lane("TIU", 0, starts=[0], ends=[1], name=np.array([7], np.int32))
    kinds = Kinds(make_profile([lane], strings={"name": Strings(("a",))}))
    assert kinds.codes(lane, slice(0, 1), 1).tolist() == [0]
    assert kinds.tables()["kinds"]["name"] == [-1]


# -- overview ------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 300), st.floats(0, 100)), max_size=12),
    st.integers(0, 100), st.integers(1, 400),
)  # fmt: skip
def test_bytes_in_cells_add_up(events, first, length):
    events.sort()
    starts = np.array([event[0] for event in events], np.int64)
    ends = starts + np.array([event[1] for event in events], np.int64)
    rates = np.array([event[2] for event in events])
    lane = make_lane("GDMA", 0, starts=starts, ends=ends, ddr_bandwidth=rates)
    edges = edges_of(first, first + length, 7)
    expected = []
    for left, right in itertools.pairwise(edges.tolist()):
        inside = np.maximum(np.minimum(lane["end"], right) - np.maximum(lane["start"], left), 0)
        expected.append(float((inside * lane["ddr_bandwidth"]).sum()))
    found = bytes_in_cells(ChosenLane(0, lane, slice(0, len(lane)), len(lane)), "ddr_bandwidth", edges)
    assert found.tolist() == pytest.approx(expected, abs=0.51)


@given(st.integers(-(1 << 50), 1 << 50), st.integers(1, 1 << 51))
def test_edges_cover_the_window(start, length):
    edges = edges_of(start, start + length, CELLS)
    assert (edges[0], edges[-1]) == (start, start + length)
    assert (np.diff(edges) >= 0).all()
    assert np.diff(edges).max() - np.diff(edges).min() <= 1


def test_summary_is_coloured_by_the_rules_of_the_reference():
    device = tpu_device("AKS", tiu_mhz=1000, dma_mhz=1000, ddr_gbps=100.0, l2_gbps=100.0)
    texts = Texts()
    direction = texts.codes("direction", ["DDR->LMEM"])
    lanes = []
    for core, (ratio, speed) in enumerate([(14, 49), (15, 50), (29, 74), (30, 75), (90, 99)]):
        lanes.append(make_lane("TIU", core, starts=[0], ends=[1000], cycles=[ratio * 10]))
        lanes.append(make_lane("GDMA", core, starts=[0], ends=[1000], cycles=[1000], bytes=[speed * 1000],
                               direction=direction))  # fmt: skip
    table = summary_record(query_of(make_profile(lanes, strings=texts.build(), device=device)))
    names = [name for name, _ in table["columns"]]
    assert names == ["CoreId", "Parallelism(%)", "totalTime(us)", "TiuWorkingRatio", "TiuWorkCycle", "uArchURate",
                     "GdmaWorkCycle", "GdmaDdrAvgBandwidth(GB/s)", "GdmaL2AvgBandwidth(GB/s)", "totalSdmaCycle",
                     "SdmaDdrAvgBandwidth(GB/s)"]  # fmt: skip
    ratio, speed = names.index("TiuWorkingRatio"), names.index("GdmaDdrAvgBandwidth(GB/s)")
    assert [row["levels"][ratio] for row in table["rows"][:5]] == ["bad", "doubtful", "doubtful", "", ""]
    assert [row["levels"][speed] for row in table["rows"][:5]] == ["bad", "doubtful", "doubtful", "", ""]
    coloured = {name for row in table["rows"] for name, level in zip(names, row["levels"], strict=True) if level}
    # where nothing moved the reference colours nothing
    assert coloured == {"TiuWorkingRatio", "GdmaDdrAvgBandwidth(GB/s)"}


def test_cycles_without_sends_have_a_name_of_their_own():
    """The workbook counts sends among the cycles it calls as the reference does: the page's are others."""
    texts = Texts()
    direction = texts.codes("direction", ["DDR->LMEM"] * 3)
    roles = [Role.WORK, Role.SYNC, Role.WAIT]
    when = {"starts": [0, 100, 110], "ends": [100, 110, 140], "roles": roles, "cycles": [100, 10, 30]}
    tiu = make_lane("TIU", 0, **when)
    gdma = make_lane("GDMA", 0, **when, bytes=[1, 0, 0], direction=direction)
    profile = make_profile([tiu, gdma], strings=texts.build())
    table = summary_record(query_of(profile))
    page = dict(zip((name for name, _ in table["columns"]), table["rows"][0]["cells"], strict=True))
    assert (page["TiuWorkCycle"], page["GdmaWorkCycle"]) == ("100", "100")
    for lane, name in ((tiu, "totalTiuCycle"), (gdma, "totalGdmaCycle")):
        assert lane_sums(profile, lane, [slice(0, 3)])["cycles"] == 110
        assert name in SUMMARY_COLUMNS
        assert name not in page


def test_cdma_stands_in_the_row_of_the_last_core():
    texts = Texts()
    direction = texts.codes("direction", ["DDR->DDR", "L2M->L2M", "DDR->DDR"])
    port = make_lane("CDMA", 3, starts=[0, 100, 200], ends=[100, 200, 300], cycles=[100, 50, 1000],
                     bytes=[2000, 500, 0], direction=direction, roles=[Role.WORK, Role.WORK, Role.WAIT])  # fmt: skip
    cores = [make_lane("TIU", core, starts=[0], ends=[10], cycles=[10]) for core in (0, 1)]
    table = summary_record(query_of(make_profile([*cores, port], strings=texts.build())))
    assert [name for name, _ in table["columns"]][-3:] == [
        "totalCdmaCycle", "CdmaDdrAvgBandwidth(GB/s)", "CdmaL2AvgBandwidth(GB/s)",
    ]  # fmt: skip
    assert [row["cells"][-3:] for row in table["rows"]] == [
        ["-", "-", "-"], ["150", "20.00", "10.00"], ["0.150(us)", "20.00", "10.00"],
    ]  # fmt: skip
    assert table["rows"][0]["levels"][-3:] == ["", "", ""]


def test_launches_reach_from_the_first_start_to_the_last_end(tmp_path):
    texts = Texts()
    kernels = texts.codes("kernel", ["a", "b"])
    tiu = make_lane("TIU", 0, starts=[10, 50], ends=[20, 90], cycles=[11, 41], scope=[0, 1])
    gdma = make_lane("GDMA", 0, starts=[5, 30, 95], ends=[8, 40, 99], cycles=[4, 11, 5], bytes=[1, 1, 1],
                     scope=[0, 0, INT_MISSING])  # fmt: skip
    profile = make_profile([tiu, gdma], strings=texts.build(), scopes=Scopes(kernels, np.zeros(2, np.int32)))
    page = page_of(query_of(profile), tmp_path)
    (record,) = page.record["launches"]
    columns = page.chunks[record["chunk"]]
    assert columns["start"].tolist() == [5, 50]
    assert columns["duration"].tolist() == [35, 40]
    assert page.texts("kernel", columns["kind"]) == ["a", "b"]
    assert columns["scope"].tolist() == [0, 1]
