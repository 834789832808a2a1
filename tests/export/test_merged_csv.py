from __future__ import annotations

import csv

import numpy as np
import pytest
from converter import converted, needs_converter
from hypothesis import given, settings
from hypothesis import strategies as st
from kept import unpacked
from profiles import Texts, make_lane, make_profile, selected_query, small_profile
from workbook_reading import expected, stream_order

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.sources.sophgo.files import field_texts as merged_csv
from tpuprof_tui.sources.sophgo.files.field_texts import write_merged_csv
from tpuprof_tui.sources.sophgo.files.lane_rows import DMA_COLUMNS, TIU_COLUMNS


def written(profile, folder, **selection):
    path = folder / "list.csv"
    count = write_merged_csv(selected_query(profile, **selection), path)
    with open(path, newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    assert count == len(rows) - 1
    return rows[0], rows[1:]


def wanted_cell(profile, lane, name, row, place):
    if name not in (TIU_COLUMNS if lane.kind == "TIU" else DMA_COLUMNS):
        return ""
    value = expected(profile, lane, name, row, place)
    if value is None:
        return ""
    if name == "uArch Rate":
        return f"{value * 100:.1f}%"
    if name in ("DDR Bandwidth(GB/s)", "L2M Bandwidth(GB/s)") and lane.kind != "CDMA":
        return str(float(value))
    return str(int(value, 16)) if isinstance(value, str) and value.startswith("0x") else str(value)


def sort_key(lane, row):
    return tuple(int(lane[key][row]) for key in ("start", "end", "command_id", "engine_id"))


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_all_instructions_come_in_order_of_their_start(mode, tmp_path, monkeypatch):
    monkeypatch.setattr(merged_csv, "WINDOW", 7)
    profile = small_profile(mode, event_count=400)
    names, rows = written(profile, tmp_path)
    places = [(lane, row, place) for lane in profile.lanes for place, row in enumerate(stream_order(lane))]
    places.sort(key=lambda one: sort_key(*one[:2]))
    assert len(rows) == len(places)
    for held, (lane, row, place) in zip(rows, places, strict=True):
        unknown = lane.kind == "CDMA" and held[1] == "None"
        wanted = [wanted_cell(profile, lane, name, row, place) for name in names]
        assert held[:1] + held[1 + unknown :] == wanted[:1] + wanted[1 + unknown :], (profile.title_of(lane), row)


def test_columns_are_those_of_the_last_core(tmp_path):
    names, _ = written(small_profile(1), tmp_path)
    assert names == [*TIU_COLUMNS, *(name for name in DMA_COLUMNS if name not in TIU_COLUMNS)]


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 12), min_size=0, max_size=30), min_size=1, max_size=4), st.integers(1, 9))
def test_equal_starts_meet_in_one_window(tmp_path_factory, starts, window):
    lanes = [
        make_lane("GDMA", core, starts=np.array(sorted(some), dtype=np.int64), ends=np.array(sorted(some)) + 1,
                  command_id=np.arange(len(some), 0, -1), cycles=np.full(len(some), 2),
                  bytes=np.zeros(len(some), np.int64), engine_id=np.ones(len(some), np.int64))
        for core, some in enumerate(starts) if some
    ]  # fmt: skip
    profile = make_profile(lanes)
    before = merged_csv.WINDOW
    merged_csv.WINDOW = window
    try:
        names, rows = written(profile, tmp_path_factory.mktemp("csv"))
    finally:
        merged_csv.WINDOW = before
    held = [(int(row[names.index("Start Time(ns)")]), int(row[names.index("Cmd Id")])) for row in rows] if lanes else []
    assert held == sorted(held)
    assert len(held) == sum(map(len, starts))


def test_what_is_chosen_is_what_is_written(tmp_path):
    profile = small_profile(1)
    names, rows = written(profile, tmp_path, units=frozenset({1}), start=5000, end=9000)
    assert {row[names.index("Core Id")] for row in rows} <= {"1", "None"}
    column = names.index("End Time(ns)")
    assert rows
    assert all(int(row[column]) > 5000 for row in rows)
    lane = profile.lane("GDMA", 1)
    inside = (lane["end"] > 5000) & (lane["start"] < 9000)
    assert sum(row[0] == "1" for row in rows) == int(inside.sum())


def test_addresses_are_decimal(tmp_path):
    profile = small_profile(2)
    names, rows = written(profile, tmp_path)
    lane = profile.lane("GDMA", 0)
    held = [row[names.index("src_start_addr")] for row in rows if row[:2] == ["1", "0"]]
    assert held == [str(value) for value in lane["src_addr"].tolist()]


def test_no_text_becomes_a_formula(tmp_path):
    hostile = ["=1+1", "@SUM(A1)", "+2", "-3", "-", 'quote" comma, line\n', "\x1b[31m"]
    texts = Texts()
    count = len(hostile)
    lane = make_lane("TIU", 0, starts=np.arange(count), ends=np.arange(count) + 1, name=texts.codes("name", hostile),
                     cycles=np.ones(count, np.int64), command_id=np.arange(1, count + 1),
                     engine_id=np.zeros(count, np.int64))  # fmt: skip
    names, rows = written(make_profile([lane], strings=texts.build()), tmp_path)
    held = [row[names.index("Function Name")] for row in rows]
    assert held == ["'=1+1", "'@SUM(A1)", "'+2", "-3", "-", 'quote" comma, line\n', "'\\x1b[31m"]


def test_a_profile_without_instructions_gives_an_empty_list(tmp_path):
    path = tmp_path / "list.csv"
    assert write_merged_csv(query_of(make_profile([])), path) == 0
    assert path.read_text() == "\n"


def test_progress_rises_to_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(merged_csv, "WINDOW", 20)
    seen = []
    write_merged_csv(query_of(small_profile(1)), tmp_path / "list.csv", progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1


@pytest.mark.reference
@needs_converter
@pytest.mark.parametrize("name", ["aks_mode1", "aks_mode2", "aks_cdma", "aks_des_kv"])
def test_the_list_is_that_of_the_reference(name, tmp_path):
    capture = unpacked(name, tmp_path)
    converted(capture, tmp_path / "out", "--enable_doc")
    write_merged_csv(query_of(open_profile(capture)), tmp_path / "ours.csv")
    assert (tmp_path / "ours.csv").read_text() == (tmp_path / "out" / "PerfDoc" / "out.csv").read_text()
