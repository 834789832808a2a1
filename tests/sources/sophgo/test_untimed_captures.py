"""Captures without hardware records: one message, and the commands without times."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from compiled_captures import UNRECORDED, compiled
from truth_tables import read_truth
from written_captures import capture

from tpuprof_tui.analysis.links.dependencies import find_dependencies
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.export.job import Job, run_export
from tpuprof_tui.export.outputs import keys_of, outputs_of
from tpuprof_tui.export.table import known_columns, table_rows, write_table
from tpuprof_tui.model import INT_MISSING, Profile, Role
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.files.instructions import write_instructions
from tpuprof_tui.views.info import info_record
from tpuprof_tui.views.text_pages import summary_report

_EXPECTED = "No hardware records: 3 launches; TIU 72, GDMA 18, SDMA 3 commands without times."


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    return open_profile(compiled(UNRECORDED, tmp_path))


def test_one_message_tells_launches_and_commands(profile: Profile) -> None:
    assert [problem.what for problem in profile.problems] == [_EXPECTED]
    assert profile.problems[0].done.endswith("without 30 sends and waits around them.")


def test_the_commands_are_there_in_their_order_and_no_time_is(profile: Profile) -> None:
    assert not profile.timed
    assert {lane.kind: len(lane) for lane in profile.lanes} == {"TIU": 72, "GDMA": 18, "SDMA": 3}
    assert (profile.start_ns, profile.end_ns, profile.tail_ns) == (0, 0, None)
    for lane in profile.lanes:
        arrays = lane.arrays()
        for key in ("start", "end", "duration", "cycles"):
            assert (arrays[key] == INT_MISSING).all()
        assert arrays["command_id"].tolist() == list(range(1, len(lane) // 3 + 1)) * 3
        assert all(lane.description(row) for row in range(len(lane)))
    tiu, gdma = profile.lane("TIU", 0), profile.lane("GDMA", 0)
    assert tiu is not None
    assert gdma is not None
    assert profile.text("name", int(tiu["name"][14])) == "conv.normal"
    assert (tiu["alg_ops"] > 0).any()
    assert profile.text("direction", int(gdma["direction"][0])) == "DDR->LMEM"
    assert (gdma["bytes"] == INT_MISSING).all()
    assert len(find_dependencies(profile)) == 0


def test_tables_hold_the_commands_with_empty_times(profile: Profile) -> None:
    out = io.BytesIO()
    assert write_instructions(query_of(profile), out) == 93
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert not any("Start Time(ns)" in row or "Asic Cycle" in row for row in rows)
    out = io.BytesIO()
    assert write_table(table_rows(query_of(profile)), known_columns(profile), out, "jsonl") == 93
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert {row["start"] for row in rows} == {row["duration"] for row in rows} == {None}
    assert rows[14]["name"] == "conv.normal"


def test_every_export_is_written_and_holds_no_made_up_time(profile: Profile, tmp_path: Path) -> None:
    written = run_export(Job(tmp_path / "out", frozenset(keys_of(outputs_of(profile.vocabulary))), query_of(profile)))
    names = {file.path.name for file in written}
    assert names == {"perfetto.pftrace", "tiuRegInfo_0.txt", "tdmaRegInfo_0.txt", "PerfAI_output.xlsx",
                     "PerfAI_output.csv", "result.html", "calltree.collapsedstack.txt"}  # fmt: skip
    for name in ("tiuRegInfo_0.txt", "tdmaRegInfo_0.txt", "PerfDoc/PerfAI_output.csv"):
        text = (tmp_path / "out" / name).read_text(encoding="utf-8")
        assert "922337" not in text
        assert text.count("conv.normal") == (9 if "tdma" not in name else 0)


def test_no_figure_of_the_workbook_is_made_of_missing_times(profile: Profile, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    run_export(Job(tmp_path / "out", frozenset(("xlsx",)), query_of(profile)))
    book = openpyxl.load_workbook(tmp_path / "out" / "PerfDoc" / "PerfAI_output.xlsx", read_only=True)
    assert "TIU_0" in book.sheetnames
    assert not any("922337" in str(cell) for sheet in book for row in sheet.iter_rows(values_only=True) for cell in row)


def test_summary_and_info_say_it(profile: Profile) -> None:
    report = summary_report(profile)
    assert "93 commands" in report.title
    assert report.lines[0].startswith("No times")
    assert ("Core 0 TIU", "72") in report.tables[0].rows
    record = info_record(profile)
    assert record["total_ns"] is None
    assert {lane["busy_ns"] for lane in record["lanes"]} == {None}
    assert [lane["instructions"] for lane in record["lanes"]] == [72, 18, 3]


@pytest.mark.parametrize(("kind", "own"), [("compiled_no_pmu", (0,)), ("decode_no_pmu", (1,))])
def test_the_commands_are_those_that_were_written(kind: str, own: tuple[int, ...]) -> None:
    path = capture(kind)
    truth = read_truth(path.with_name(f"{path.name}.truth.json"))
    found = open_profile(path)
    for (engine, core), columns in truth.lanes.items():
        lane = found.lane(engine, core)
        assert lane is not None
        rows = np.isin(columns["mode"], own)
        assert lane["command_id"].tolist() == (columns["cmd_id"][rows] + 1).tolist()
        if lane.kind == "TIU" and kind == "compiled_no_pmu":
            known = columns["alg_ops"][rows] >= 0
            assert lane["alg_ops"][known].tolist() == columns["alg_ops"][rows][known].tolist()
    assert sum(len(lane) for lane in found.lanes) == sum(
        int(np.isin(columns["mode"], own).sum()) for columns in truth.lanes.values()
    )


def test_waits_without_times_are_read_as_waits() -> None:
    lanes = open_profile(capture("decode_no_pmu")).lanes
    assert {lane.description(row) for lane in lanes for row in np.flatnonzero(lane["role"] == Role.WAIT).tolist()} == {
        "wait"
    }


def test_kernel_functions_are_launches_too() -> None:
    found = open_profile(capture("decode_no_pmu"))
    assert found.problems[0].what.startswith(f"No hardware records: {len(found.scopes)} launches; ")
    lane = found.lane("TIU", 0)
    assert lane is not None
    assert (lane["scope"] >= 0).all()


def test_a_claim_is_held_against_the_bytes_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "claim"
    path.mkdir()
    (path / "global.profile").write_text("arch=5\nbmodel\n")
    words = struct.pack("<2I", 8 | 0x40 << 7, 0x7FFFFFFF)  # a TIU node, and nothing that it could be of
    (path / "cdmlib0_0.profile").write_bytes(struct.pack("<II", 5, len(words)) + words)
    found = open_profile(path)
    assert found.event_count == 0
    assert any("claims 2147483647 commands" in problem.what for problem in found.problems)
    whole = open_profile(capture("compiled_no_pmu"))
    assert not any("claims" in problem.what for problem in whole.problems)


def test_a_core_without_records_beside_others_is_told(tmp_path: Path) -> None:
    path = tmp_path / "two"
    path.mkdir()
    for name in ("global.profile", "cdmlib0_0.profile"):
        (path / name).write_bytes((capture("decode_mode1") / name).read_bytes())
    (path / "cdmlib0_1.profile").write_bytes((capture("decode_no_pmu") / "cdmlib0_1.profile").read_bytes())
    found = open_profile(path)
    assert found.timed
    assert any(
        problem.group == found.groups.at_path(("Core 1",)) and "no record" in problem.what for problem in found.problems
    )
