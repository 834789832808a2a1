from __future__ import annotations

import gzip
import io
import json
import re
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import Texts, make_lane, make_profile, session_of, small_profile
from rich.console import Console

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.derived_columns import with_exposed
from tpuprof_tui.analysis.index.unit_index import build_indexes
from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.app.panes.detail import entries_of
from tpuprof_tui.cli.main import main
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.tables import Report, Table, table_lines
from tpuprof_tui.formats.tables_rich import print_report
from tpuprof_tui.formats.units import column_unit, time_text
from tpuprof_tui.model import Problem, Severity
from tpuprof_tui.model.vocabulary import Word
from tpuprof_tui.views.info import info_json
from tpuprof_tui.views.overview import overview
from tpuprof_tui.views.sentence import sentence
from tpuprof_tui.views.text_pages import info_report, numbered_text, summary_report, title_line
from tpuprof_tui.views.units import lanes

SAMPLES = Path(__file__).parents[2] / "samples"
NUMBERS = Table("Numbers", ("A", "Bee", "C"), (("1", "2", "3"), ("10", "20", "30")), total=True)
LANES = Table(
    "Lanes", ("Lane", "Busy", "Idle"), (("Core 0 TIU", "12,345", "99"),), frozenset((0,)), drop_first=(0, 0, 1)
)


def shown(report: Report, width: int) -> str:
    out = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="standard")
    print_report(report, out)
    return re.sub(r"\x1b\[[0-9;]*m", "", out.file.getvalue())


def test_plain_tables_line_up():
    assert table_lines(NUMBERS) == [
        "Numbers", "-----------", " A  Bee   C", "-----------", " 1    2   3", "-----------", "10   20  30",
    ]  # fmt: skip


def headers(table: Table, width: int) -> list[list[str]]:
    return [[each.header for each in part] for part in table.parts(width)]


def test_too_wide_tables_continue_below_with_every_number_kept():
    assert headers(NUMBERS, 80) == [["A", "Bee", "C"]]
    assert headers(NUMBERS, 7) == [["A", "Bee"], ["A", "C"]]
    assert shown(Report("", tables=(NUMBERS,)), 7).split()[1:] == [
        "A",
        "Bee",
        "1",
        "2",
        "10",
        "20",
        "A",
        "C",
        "1",
        "3",
        "10",
        "30",
    ]


def test_too_wide_tables_lose_spare_columns_and_say_so():
    assert headers(LANES, 19) == [["Lane", "Busy"]]
    assert headers(LANES, 24) == [["Lane", "Busy", "Idle"]]
    assert "No room for Idle" in shown(Report("", tables=(LANES,)), 19)
    assert "No room" not in shown(Report("", tables=(LANES,)), 24)
    # one of two columns of one title
    steps = Table("Steps", ("Step", "Host", "Step"), (("first", "1", "22"),), frozenset((0,)), drop_first=(0, 0, 1))
    assert "No room for Step:" in shown(Report("", tables=(steps,)), 13)


@pytest.mark.parametrize("width", [5, 20, 40, 60, 80, 120, 200])
@pytest.mark.parametrize("mode", [0, 1])
def test_no_number_is_ever_cut(width, mode):
    profile = small_profile(mode)
    text = " ".join(shown(summary_report(profile), width).split())
    cores = query_of(profile).headline.units
    for name in ("busy", "exposed"):
        times = [getattr(core, name) for core in cores]
        assert all(column_unit(max(times)).number(time) in text for time in times)


def test_the_overview_of_one_core_names_no_busiest_and_idlest():
    session = session_of(small_profile())
    found = overview(Query(session, Scope(1)))
    shown_facts = [fact.title for fact in found.facts if fact.shown]
    assert shown_facts == ["Total time", "Busy", "Exposed transfer"]
    assert {"busiest_us", "idlest_us"} <= {fact.key for fact in found.facts}


def test_lanes_explain_the_bandwidth_only_if_it_is_known():
    query = Query(session_of(small_profile()))
    told = {lane: " ".join(lanes(replace(query, scope=Scope(lane=lane))).tables[0].notes) for lane in (0, 1)}
    moved = {lane: "bytes" in query.profile.lanes[lane] for lane in told}
    assert set(moved.values()) == {False, True}
    assert {lane: "GB/s" in note for lane, note in told.items()} == moved


def test_summary_starts_with_the_headline():
    profile = small_profile()
    found = query_of(profile).headline
    told, _, *lines = summary_report(profile).text().splitlines()
    assert told == str(sentence(query_of(profile)))
    assert lines[0] == "synthetic: AKS, 3 cores, 2 CDMA ports, mode 1 (condensed commands), 600 instructions"
    assert lines[1] == f"Total time        {time_text(found.device_ns)}"
    assert lines[2].startswith(f"Busiest core      Core {found.busiest.number}: {time_text(found.busiest.busy)}")
    assert lines[3].startswith("Idlest core       Core 2: 0 ns")
    most = found.most_exposed
    told = time_text(most.exposed)
    assert lines[4].startswith(f"Exposed transfer  Core {most.number}: {told}, ")


def test_summary_has_its_tables():
    titles = [table.title for table in summary_report(small_profile()).tables]
    assert titles == ["Cores (us)", "Engines (us)", "Kinds of engines, sums (us)", "Kernel functions (us)",
                      "Operations (us)", "As bigTpuProfile counts (us)", "Findings (us)", "Problems"]  # fmt: skip


def test_guesses_are_marked_and_nothing_unknown_is_named():
    report = summary_report(small_profile(0))
    assert [table.title.split()[0] for table in report.tables] == [
        "Cores", "Engines", "Kinds", "As", "Findings", "Problems"
    ]  # fmt: skip
    cores = report.tables[0]
    assert all(cell.startswith("~") for cell in cores.rows[0][1:])
    assert not any(cell.startswith("~") for cell in cores.rows[2][1:])  # the core without lanes
    assert any("heuristics" in line for line in report.lines)


def test_time_lost_against_the_peak_is_told_where_the_peak_is_known():
    texts = Texts()
    kernels = [f"kernel_{number:02}" for number in (*range(12), 0)]
    ideal = np.array([90.0 - number for number in range(12)] + [np.nan])
    starts = np.arange(13) * 100
    lane = make_lane(starts=starts, ends=starts + 100, kernel=texts.codes("kernel", kernels),
                     name=texts.codes("name", ["load"] * 12 + ["move"]), ideal=ideal, cycles=[1] * 13)  # fmt: skip
    by_kernel, by_operation = (
        table
        for table in summary_report(make_profile([lane], strings=texts.build())).tables
        if table.title.startswith("Lost")
    )
    assert by_kernel.title == "Lost by kernel function (ns)"
    assert by_kernel.header == ("Lost", "Ideal", "At peak", "Took", "Count", "No peak", "Name")
    assert by_kernel.rows[0] == ("21", "79", "79.0%", "100", "1", "0", "kernel_11")
    assert [row[-1] for row in by_kernel.rows] == [f"kernel_{number:02}" for number in range(11, 1, -1)]
    assert by_kernel.notes[-1] == "2 more; tpuprof report lists all."
    assert by_operation.rows == (("186", "1,014", "84.5%", "1,200", "12", "0", "load"),)
    assert any("No peak" in note for note in by_kernel.notes)


def test_no_more_than_ten_kernels_are_listed_and_the_others_counted():
    names = [f"kernel_{number:02}" for number in range(13)]
    texts = Texts()
    starts = [number * 100 for number in range(13)]
    ends = [start + 50 - number for number, start in enumerate(starts)]
    lane = make_lane(starts=starts, ends=ends, kernel=texts.codes("kernel", names), cycles=[1] * 13)
    tables = summary_report(make_profile([lane], strings=texts.build())).tables
    (table,) = (table for table in tables if table.title.startswith("Kernel"))
    assert [row[-1] for row in table.rows] == names[:10]
    assert table.notes == ("3 more; tpuprof report lists all.",)


def test_times_of_day_are_told_where_the_source_knows_them():
    recorded = Path(__file__).resolve().parents[2] / "samples" / "torch_cpu_recorded"
    trace = json.loads(gzip.decompress(next(recorded.iterdir()).read_bytes()))
    first = min(event["ts"] for event in trace["traceEvents"] if event["ph"] == "X")
    seconds = trace["baseTimeNanoseconds"] / 1e9 + first / 1e6
    expected = datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%d %H:%M:%S.")
    profile = open_profile(recorded)
    text = json.loads(info_json(profile))["wall_clock"]
    assert text.startswith(expected)
    assert text.endswith(" UTC")
    assert float(text[19:29]) == pytest.approx(seconds % 1, abs=1e-5)
    assert f"Recorded from  {text}" in info_report(profile).text()
    assert f"Recorded from  {text}" in summary_report(profile).text()
    told = [each.text for each in entries_of(session_of(profile), 0, 0, None)]
    later = int(text[20:29]) + int(profile.lanes[0]["start"][0]) - profile.start_ns
    assert f"starts {text[:20]}{later} UTC (wall clock)" in told
    unknown = small_profile(2)
    assert json.loads(info_json(unknown))["wall_clock"] is None
    assert "Recorded from" not in info_report(unknown).text()


def test_names_cannot_steer_the_terminal():
    texts = Texts()
    evil = "\x1b]0;owned\x07[bold]name\n"
    lane = make_lane(starts=[0], ends=[10], name=texts.codes("name", [evil]), cycles=[11])
    problem = Problem(Severity.ERROR, "Bad \x1b[2J name.", file="a\nb", lane="\x9b31m")
    profile = make_profile([lane], strings=texts.build(), problems=[problem])
    for text in (summary_report(profile).text(), info_report(profile).text(), shown(summary_report(profile), 120)):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
        assert "[2J" in text
    assert "[bold]name" in shown(summary_report(profile), 120)


def test_an_empty_profile_has_a_summary():
    assert summary_report(make_profile([])).text().splitlines()[4] == "No instructions start here."
    assert "Instructions  0" in info_report(make_profile([])).text()


def test_info_says_what_a_capture_is():
    record = json.loads(info_json(small_profile()))
    assert (record["chip"], record["arch"], record["mode"]) == ("AKS", "4", 1)
    assert (record["tiu_mhz"], record["dma_mhz"]) == (1000, 1000)
    assert (record["cores"], record["cdma_ports"]) == ([0, 1, 2], [0, 1])
    assert record["tail_offset_ns"] is None
    assert record["pmu_tail_ns"] == record["total_ns"] + small_profile().start_ns
    assert record["instructions"] == sum(lane["instructions"] for lane in record["lanes"]) == 600
    assert [problem["severity"] for problem in record["problems"]] == ["note", "warning", "error"]
    assert record["problems"][0]["offset"] == 4096
    assert record["problems"][1]["file"] == ""
    assert record["problems"][1]["core"] is None


def test_info_of_lanes():
    profile = small_profile()
    lanes = json.loads(info_json(profile))["lanes"]
    index = build_indexes(profile)[1]
    window = profile.end_ns - profile.start_ns
    assert (lanes[1]["engine"], lanes[1]["core"], lanes[1]["port"]) == ("GDMA", 0, None)
    assert lanes[1]["busy_ns"] == index.work.total
    assert lanes[1]["wait_ns"] == index.wait.total
    assert lanes[1]["utilisation"] == pytest.approx(index.work.total / window, abs=1e-6)
    assert (lanes[-1]["engine"], lanes[-1]["core"], lanes[-1]["port"]) == ("CDMA", None, 1)


def test_many_problems_are_counted():
    problems = [Problem(Severity.NOTE, f"Note {number}.") for number in range(25)]
    problems.append(Problem(Severity.ERROR, "The error."))
    table = summary_report(make_profile([], problems=problems)).tables[-1]
    assert table.header == ("Severity", "Times", "What")
    assert table.rows[0][2] == "The error."
    assert len(table.rows) == 20
    assert table.notes == ("6 more; `tpuprof info CAPTURE --json` lists all.",)


def test_long_texts_are_cut():
    assert line_text("x" * 100, 10) == "xxxxxxx..."


def test_info_lists_what_is_kept_in_memory_when_it_is_asked_for():
    profile = with_exposed(small_profile(2))
    assert "memory" not in json.loads(info_json(profile))
    assert "Memory" not in info_report(profile).text()
    record = json.loads(info_json(profile, memory=True))["memory"]
    assert set(record["columns"]) == {"TIU", "GDMA", "SDMA", "CDMA"}
    lanes = [lane for lane in profile.lanes if lane.kind == "GDMA"]
    assert record["columns"]["GDMA"] == sum(array.nbytes for lane in lanes for array in lane.stored_arrays()) > 0
    assert record["process"] > sum(record["columns"].values())
    rows = dict(info_report(profile, memory=True).tables[-1].rows)
    assert rows["columns of GDMA"] == f"{record['columns']['GDMA']:,}"
    assert rows["the process at most"]


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ("torch_cpu_recorded", "0 events on the device, 1,708 on the host"),
        ("ascend_synthetic", "310 tasks on the device, 284 on the host"),
        ("aks_decode_mode1", "mode 1 (condensed commands), 14,556 instructions"),
    ],
)
def test_events_of_the_host_are_counted_apart(sample, said):
    assert title_line(open_profile(SAMPLES / sample)).endswith(f", {said}")


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], "-"),
        ([0], "1 core (core 0)"),
        ([7], "1 core (core 7)"),
        ([0, 1], "2 cores (cores 0, 1)"),
        (range(8), "8 cores (cores 0 to 7)"),
        ([0, 1, 4, 6], "4 cores (cores 0, 1, 4, 6)"),
        ([0, 1, 2, 5, 8, 9, 10], "7 cores (cores 0 to 2, 5, 8 to 10)"),
        ([-1], "1 core"),
        ([3, 3], "2 cores (core 3)"),
    ],
)
def test_numbers_of_units_do_not_read_as_counts(numbers, text):
    assert numbered_text(Word("core"), list(numbers)) == text


def test_a_count_of_nothing_recorded_is_said_as_such(sample_lines):
    assert sample_lines("aks_bmodel")["Launches"] == "none recorded"
    assert sample_lines("aks_bmodel")["Cores"] == "4 cores (cores 0 to 3)"
    assert sample_lines("aks_bmodel")["CDMA ports"] == "-"
    assert sample_lines("aksv_cdma")["CDMA ports"] == "3 CDMA ports (CDMA ports 0 to 2)"
    assert int(sample_lines("aks_decode_mode1")["Launches"].replace(",", "")) > 0
    assert "Launches" not in sample_lines("torch_cuda_synthetic")
    assert sample_lines("torch_cuda_synthetic")["GPUs"] == "2 GPUs (GPUs 0, 1)"


@pytest.fixture(scope="module")
def sample_lines():
    """The lines of `info` about a sample, by label."""

    def lines(name):
        report = info_report(open_profile(SAMPLES / name))
        return dict(re.split(r"\s{2,}", line, maxsplit=1) for line in report.lines)

    return lines


def test_total_time_is_of_everything_and_device_time_of_the_device(tmp_path, capsys):
    """The host works from 0 to 1000 us, the device from 200 to 700 us: info, describe, report and gate agree."""
    path = tmp_path / "run.pt.trace.json"
    host = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 1000}
    kernels = [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start, "dur": 100,
                "args": {"device": 0, "stream": 7}} for start in (200, 600)]  # fmt: skip
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [host, *kernels]}))
    found = {}
    for words in (["info"], ["describe"], ["report"], ["gate", "--against", str(path), "--fail-on", "total>1%"]):
        assert main([words[0], str(path), *words[1:], "--json"]) == 0
        found[words[0]] = json.loads(capsys.readouterr().out)
    (worker,) = found["report"]["workers"]
    (rule,) = found["gate"]["rules"]
    assert found["info"]["total_ns"] == 1_000_000
    assert found["describe"]["total_us"] == worker["duration_us"] == rule["base"] == 1000
    assert found["info"]["device_ns"] == 500_000
    assert main(["info", str(path)]) == 0
    text = capsys.readouterr().out
    assert re.search(r"(?m)^Total time +1\.000 ms$", text)
    assert re.search(r"(?m)^Device time +500\.0 us$", text)
    streams = found["report"]["views"]["streams"]["workers"][worker["key"]]["figures"]
    assert streams["window_us"] == 500
    # a range of everything is none
    assert main(["report", str(path), "--range", "0%..100%", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["views"] == found["report"]["views"]
