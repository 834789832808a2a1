"""The Ascend source: forms of one run against each other, each reading rule against damage, each rule of findings."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import random
import re
import shutil
import sqlite3
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import ascend_profile
import numpy as np
import pytest
from command_line import SAMPLES
from kept_traces import unpacked_trace
from msgspec import Struct
from msgspec.structs import asdict
from screen import explorer, frame, opened, press
from sections_here import by_several, in_process

from tpuprof_tui.app.panes.summary.summary import SummaryPane
from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.decimals import numbers_in
from tpuprof_tui.model import INT_MISSING, Severity
from tpuprof_tui.model.vocabulary import Word
from tpuprof_tui.sources.ascend.read import csv_table, trace_view
from tpuprof_tui.sources.ascend.read.csv_table import CsvTable
from tpuprof_tui.sources.ascend.read.folders import profiles_at
from tpuprof_tui.sources.catalog import Catalog, open_profile
from tpuprof_tui.sources.chrome import collector, processes
from tpuprof_tui.views.registry import ask

OUTPUT = "ASCEND_PROFILER_OUTPUT"
RANK = "rank0_ascend_pt"


def report(path: Path, capsys: Any, *views: str) -> dict[str, Any]:
    """What ``tpuprof report --json`` says; exit 1 only where a problem is an error."""
    status = main(["report", str(path), *views, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert status == int(any(each["severity"] == "error" for each in found["problems"]))
    return found


def rows(found: dict[str, Any], view: str, table: str, worker: str = RANK) -> list[dict[str, Any]]:
    """Rows of a table by key."""
    data = found["views"][view]
    told = data["workers"][worker] if "workers" in data else data
    keys = [column["key"] for column in told["tables"][table]["columns"]]
    return [dict(zip(keys, row, strict=True)) for row in told["tables"][table]["rows"]]


def figures(found: dict[str, Any], view: str, worker: str = RANK) -> dict[str, Any]:
    """Figures of a view."""
    return found["views"][view]["workers"][worker]["figures"]


def lacking(found: dict[str, Any], view: str, worker: str = RANK) -> set[str]:
    """Tables that a view says it cannot give."""
    return {each["what"] for each in found["views"][view]["workers"][worker]["missing"] if each["needs"] and each["do"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One run of two ranks as text and as databases, and of the text the timeline and the tables alone."""
    folder = tmp_path_factory.mktemp("made")
    for rank in range(2):
        run = ascend_profile.run_of(rank)
        ascend_profile.write_text(run, folder / "text")
        ascend_profile.write_database(run, folder / "db")
    for form, kept in (("timeline", "trace_view.json"), ("tables", "*.csv")):
        for rank in range(2):
            output = folder / form / f"rank{rank}_ascend_pt" / OUTPUT
            output.mkdir(parents=True)
            for file in (folder / "text" / f"rank{rank}_ascend_pt" / OUTPUT).glob(kept):
                shutil.copy(file, output)
    return folder


# -- one run in several forms

#: Tables that are the same whatever the form, and those that a database has besides.
_ALIKE = (("cluster", "steps"), ("cluster", "slow"), ("kernels", "by_name"), ("kernels", "by_core"),
          ("streams", "streams"), ("api", "apis"))  # fmt: skip
_ALIKE_DB = (("operators", "by_type"), ("kernels", "by_type"), ("communication", "operations"),
             ("communication", "bandwidth"), ("communication", "packets"), ("communication", "matrix"),
             ("cluster", "late"), ("cluster", "operations"), ("cluster", "links"), ("cluster", "matrix"))  # fmt: skip


def test_text_database_and_timeline_tell_the_same_run(made, capsys):
    text, db, timeline = (report(made / form, capsys) for form in ("text", "db", "timeline"))
    for other in (db, timeline):
        for rank in range(2):
            worker = f"rank{rank}_ascend_pt"
            for view, table in (("overview", "steps"), ("overview", "overlap"), ("free", "step_gaps")):
                mine, theirs = rows(text, view, table, worker), rows(other, view, table, worker)
                # the exporter writes the lanes in this order; of sums of floats the last digit differs
                assert mine == theirs, (view, table)
            gaps = [[(each["start_us"], each["duration_us"], each["cause"], each["host"], each["device"])
                     for each in rows(found, "free", "gaps", worker)] for found in (text, other)]  # fmt: skip
            assert gaps[0] == gaps[1]
            assert len(gaps[0]) == 74
            names = ("name", "calls", "host_self_us", "host_total_us", "device_total_us")
            operators = [{tuple(each[key] for key in names) for each in rows(found, "operators", "by_name", worker)
                          if each["name"] != "aten::copy_"} for found in (text, other)]  # fmt: skip
            assert operators[0] == operators[1]
            kernels = [[(each["name"], each["start_us"], each["duration_us"], each["wait_us"])
                        for each in rows(found, "kernels", "kernels", worker)] for found in (text, other)]  # fmt: skip
            assert kernels[0] == kernels[1]
            assert len(kernels[0]) == 75
            for view, table in _ALIKE + (_ALIKE_DB if other is db else ()):
                told = [[{key: value for key, value in each.items() if not key.endswith("_ratio")}
                         for each in rows(found, view, table, worker)] for found in (text, other)]  # fmt: skip
                assert told[0], (view, table)
                assert sorted(map(str, told[0])) == sorted(map(str, told[1])), (view, table)
    assert rows(text, "api", "launches") == rows(timeline, "api", "launches")
    launches = [[each for each in rows(found, "api", "launches") if each["flow"] == "HostToDevice"]
                for found in (text, db)]  # fmt: skip
    # databases join kernels and collectives alone: copies have a call, and no kernel
    assert sorted(map(str, launches[1])) == sorted(str(each) for each in launches[0] if each["name"] != "MEMCPY_ASYNC")
    calls = [{(each["level"], each["name"], each["count"], each["total_us"]) for each in rows(found, "api", "apis")}
             for found in (text, db, timeline)]  # fmt: skip
    assert calls[0] == calls[1] == calls[2]
    metrics = [{(each["start_us"], each["bound"], each["bound_ratio"]) for each in rows(found, "kernels", "kernels")}
               for found in (text, db)]  # fmt: skip
    assert metrics[0] == metrics[1]
    assert {bound for _, bound, _ in metrics[0]} == {"aic_mac", "aiv_vec", None}
    assert figures(text, "overview")["difference_us"] == figures(db, "overview")["difference_us"] == 0
    assert figures(timeline, "overview")["difference_us"] is None
    assert [each["device_self_aicore_us"] for each in rows(timeline, "operators", "by_name")][:1] == [None]
    assert rows(text, "cluster", "late")[0]["rank"] == rows(db, "cluster", "late")[0]["rank"] == "1"
    assert {each["source"] for each in (text["views"]["overview"]["workers"][RANK],)} == {
        f"{RANK}/{OUTPUT}/trace_view.json"
    }
    assert [each["devices"][0]["name"] for each in db["workers"]] == ["Ascend (made up)"] * 2


def test_memory_is_the_same_in_text_and_database(made, tmp_path, capsys):
    import sqlite3

    output = _rank(made, tmp_path, "kernel_details.csv")
    (output / "memory_record.csv").write_text(
        "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type\n"
        "PTA,1750000000000001.500\t,1.5,4.0,1.25,7,NPU:0\nAPP,1750000000000002.000\t,,6.5,,,NPU:0\n"
    )
    (output / "operator_memory.csv").write_text(
        "Name,Size(KB),Allocation Time(us),Release Time(us),Duration(us),Device Type\n"
        "aten::mm,8,1750000000000001.500\t,1750000000000003.750\t,2.250,NPU:0\n"
        "aten::mm,0.5,1750000000000002.000\t,,,NPU:0\n"
    )
    (output / "npu_module_mem.csv").write_text(
        "Device_id,Component,Timestamp(us),Total Reserved(KB),Device\n0,HCCL,1750000000000002.000\t,2048,NPU:0\n"
    )
    text = report(output.parent, capsys, "memory")
    database = tmp_path / "db" / RANK / OUTPUT
    database.mkdir(parents=True)
    file = next((made / "db" / RANK / OUTPUT).glob("ascend_pytorch*.db"))
    shutil.copy(file, database)
    zero, mega = 1_750_000_000_000_000_000, 1 << 20
    with sqlite3.connect(database / file.name) as connection:
        for name, columns, told in (
            ("STRING_IDS", "", [(9001, "PTA"), (9002, "app"), (9003, "aten::mm")]),
            ("MEMORY_RECORD", "component,timestamp,totalAllocated,totalReserved,totalActive,streamPtr,deviceId",
             [(9001, zero + 1500, 1.5 * mega, 4 * mega, 1.25 * mega, 7, 0)]),
            ("NPU_MEM", "type,ddr,hbm,timestampNs,deviceId", [(9002, 0, 6.5 * mega, zero + 2000, 0)]),
            ("OP_MEMORY", "name,size,allocationTime,releaseTime,duration",
             [(9003, 8192, zero + 1500, zero + 3750, 2250), (9003, 512, zero + 2000, None, None)]),
            ("NPU_MODULE_MEM", "moduleId,timestampNs,totalReserved,deviceId", [(3, zero + 2000, 2 * mega, 0)]),
            ("ENUM_MODULE", "id,name", [(3, "HCCL")]),
        ):  # fmt: skip
            if columns:
                connection.execute(f"create table {name} ({columns})")
            connection.executemany(f"insert into {name} values ({','.join('?' * len(told[0]))})", told)
    connection.close()
    found = report(database.parent, capsys, "memory")
    for table in ("curve", "peaks", "operators", "by_name", "modules"):
        assert rows(text, "memory", table) == rows(found, "memory", table), table
    assert figures(text, "memory") == figures(found, "memory")
    assert figures(text, "memory")["never_released_kb"] == 0.5


def test_figures_hold_together(made, capsys):
    found = report(made / "text", capsys)
    for step in rows(found, "overview", "steps"):
        whole = step["computing_us"] + step["communication_not_overlapped_us"] + step["free_us"]
        assert step["stage_us"] + step["bubble_us"] == pytest.approx(whole)
        assert step["communication_us"] == step["overlapped_us"] + step["communication_not_overlapped_us"]
    told = figures(found, "overview")
    kernels = figures(found, "kernels")
    assert kernels["busy_us"] == pytest.approx(told["computing_us"] + told["communication_not_overlapped_us"])
    free = figures(found, "free")
    assert sum(free[f"{cause}_us"] for cause in ("host", "dispatch", "device", "unknown")) == pytest.approx(
        free["free_us"]
    )
    assert free["free_us"] == pytest.approx(told["free_us"])
    linked = sum(each["device_self_us"] for each in rows(found, "operators", "by_name"))
    run = ascend_profile.run_of(0)
    assert linked == pytest.approx(sum(each.end - each.start for each in [*run.tasks, *run.collectives]) / 1000)
    for each in rows(found, "kernels", "by_type"):
        assert each["total_us"] == pytest.approx(each["count"] * each["avg_us"])
        parts = [part for part in rows(found, "kernels", "by_type_shapes") if part["type"] == each["type"]]
        assert each["total_us"] == pytest.approx(sum(part["total_us"] for part in parts))
    matrix = {(each["src"], each["dst"]): each["size_mb"] for each in rows(found, "cluster", "matrix")}
    assert matrix["0", "1"] == matrix["1", "0"]


def test_a_rank_alone_says_what_it_says_among_others(made, capsys):
    together, alone = report(made / "text", capsys), report(made / "text" / RANK, capsys)
    for view in ("overview", "kernels", "operators", "free", "api", "communication", "memory"):
        one, other = together["views"][view]["workers"][RANK], alone["views"][view]["workers"][RANK]
        assert one["figures"] == other["figures"]
        assert one["tables"] == other["tables"]
    assert [each["key"] for each in alone["workers"]] == [RANK]
    assert alone["views"]["cluster"]["missing"]


def test_recordings_of_one_rank_are_its_spans_in_order_of_time_and_are_not_late(made, tmp_path, capsys):
    for name, seconds in (("host_9_20260101120500000_ascend_pt", 5), ("host_10_20260101120000000_ascend_pt", 0)):
        shutil.copytree(made / "text" / RANK, tmp_path / name)
        for file in (tmp_path / name / OUTPUT).iterdir():
            file.write_text(file.read_text().replace("1750000000", f"175000000{seconds}"))
    found = report(tmp_path, capsys)
    assert {(each["key"], each["span"]) for each in found["workers"]} == {
        ("host_10_20260101120000000_ascend_pt", 1), ("host_9_20260101120500000_ascend_pt", 2)
    }  # fmt: skip
    assert len(rows(found, "cluster", "operations")) == 6
    assert rows(found, "cluster", "late") == rows(found, "cluster", "slow") == []
    assert not any(group.remark for group in open_profile(tmp_path).groups)


@pytest.mark.parametrize(("apart", "late"), [(830, "0"), (3_000_000, "1"), (None, "1")])
def test_the_late_rank_is_the_one_that_began_last_where_clocks_agree(made, tmp_path, capsys, apart, late):
    """Both wait, rank 1 less; by a clock that both have rank 0 begins last."""
    shutil.copytree(made / "text", tmp_path, dirs_exist_ok=True)
    for rank, started in enumerate((0, apart)):
        folder = tmp_path / f"rank{rank}_ascend_pt"
        info = folder / f"profiler_info_{rank}.json"
        clock = {"freq": 100, "start_cnt": 17_000_000_000_000 + rank, "start_monotonic": 100_000_000_000_000}
        clock["start_monotonic"] += 10 * rank + (started or 0)
        told = {} if apart is None else {"start_info": clock}
        info.write_text(json.dumps({**json.loads(info.read_text()), **told}))
        communication = json.loads((folder / OUTPUT / "communication.json").read_text())
        for step in communication.values():
            for op in step["collective"].values():
                if "Start Timestamp(us)" in (times := op["Communication Time Info"]):
                    times["Start Timestamp(us)"] = 1750000000000100.5 - 50 * rank
                    # for one that was not recorded
                    times["Wait Time(ms)"] = times["Synchronization Time(ms)"] = 0.25 - 0.05 * rank
        (folder / OUTPUT / "communication.json").write_text(json.dumps(communication))
    found = report(tmp_path, capsys, "cluster", "findings")
    assert {(each["rank"], each["late_us"]) for each in rows(found, "cluster", "late")} == {
        (late, 50 if late == "0" else None)
    }  # fmt: skip
    (mark,) = (group.number for group in open_profile(tmp_path).groups if group.remark and group.kind == "rank")
    assert str(mark) == late


def test_tables_alone_tell_gaps_without_causes_and_no_launches(made, capsys):
    text, tables = report(made / "text", capsys), report(made / "tables", capsys)
    assert rows(tables, "overview", "steps") == rows(text, "overview", "recorded_steps")
    assert {each["cause"] for each in rows(tables, "free", "gaps")} == {"unknown"}
    assert len(rows(tables, "free", "gaps")) == len(rows(text, "free", "gaps"))
    assert "launches" in lacking(tables, "api")
    assert {"bandwidth", "packets", "matrix"} <= lacking(tables, "communication")
    assert [each["events"] for each in tables["workers"]] == [75, 75]
    assert not tables["problems"]


def test_steps_and_ranges_choose_what_counts(made, capsys):
    assert main(["report", str(made / "text" / RANK), "overview", "kernels", "--step", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["step"] for each in rows(found, "overview", "steps")] == ["1"]
    assert figures(found, "kernels")["kernels"] == 25


def test_steps_ranges_and_filters_choose_what_every_view_counts(made, tmp_path, capsys):
    run = ascend_profile.run_of(0)
    first, (_, begin, end) = run.steps[0][1], run.steps[1]
    tasks = [each for each in [*run.tasks, *run.collectives] if begin <= each.start < end]
    calls = [each for each in run.calls if begin <= each[2] < end]
    operators = [each for each in run.operators if begin <= each.start < end]
    zero = min(first, *(each.start for each in run.tasks))

    def asked(form: str, *more: str) -> dict[str, Any]:
        assert main(["report", str(made / form / RANK), *more, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    for form in ("text", "db", "timeline"):
        window = ["--range", f"{(begin - zero) / 1000}us..{(end - zero) / 1000}us"]
        for more in (window, ["--step", "1"], ["--filter", "step=1"]):
            found = asked(form, *more)
            assert sum(each["calls"] for each in rows(found, "operators", "by_name")) == len(operators)
            assert sum(each["count"] for each in rows(found, "api", "apis")) == len(calls)
            assert figures(found, "kernels")["kernels"] == sum(bool(each.type) for each in tasks) == 25
            assert figures(found, "communication")["operations"] == 1
            of_types = rows(found, "operators", "by_type") if form != "timeline" else []
            assert sum(each["count"] for each in of_types) == (24 if of_types else 0)
        assert [each["step"] for each in rows(asked(form, "--step", "1"), "overview", "steps")] == ["1"]
        matmul = asked(form, "--filter", "name=aclnnAddmm_MatMulV2")
        assert {each["name"] for each in rows(matmul, "kernels", "kernels")} == {"aclnnAddmm_MatMulV2"}
        assert {each["name"] for each in rows(matmul, "api", "launches")} == {"aclnnAddmm_MatMulV2"}
        assert figures(matmul, "communication")["operations"] == 0
        assert [each["stream"] for each in rows(matmul, "streams", "streams")] == ["Stream 2"]
    tables = asked("tables", "--step", "1")
    assert figures(tables, "kernels")["kernels"] == 25
    filtered = asked("tables", "--filter", "type=MatMulV2")
    assert {each["type"] for each in rows(filtered, "kernels", "kernels")} == {"MatMulV2"}
    output = _rank(made, tmp_path, "trace_view.json")
    times = [ascend_profile.us(start + 5) for _, start, _ in run.steps]
    (output / "operator_memory.csv").write_text("\n".join(
        ["Name,Size(KB),Allocation Time(us),Release Time(us),Duration(us)", *(f"{at},8,{at},," for at in times)]
    ))  # fmt: skip
    (output / "memory_record.csv").write_text("\n".join(
        ["Component,Timestamp(us),Total Allocated(MB)", *(f"PTA,{at},{place}" for place, at in enumerate(times))]
    ))  # fmt: skip
    assert main(["report", str(output), "memory", "--step", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in rows(found, "memory", "operators")] == times[1:2]
    assert [each["allocated_mb"] for each in rows(found, "memory", "peaks")] == [1]
    main(["report", str(made / "text" / RANK), "overview", "free", "memory", "--filter", "type=Cast"])
    assert re.findall("(.*): not narrowed by filter", capsys.readouterr().out) == ["Memory, which has no events"]


@pytest.mark.parametrize("form", ["text", "db", "timeline", "tables"])
def test_use_of_the_device_is_cut_at_the_edges_of_a_range_and_is_of_what_passes_a_filter(made, capsys, form):
    def asked(*more: str) -> dict[str, Any]:
        assert main(["report", str(made / form / RANK), *more, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    def used(found: dict[str, Any]) -> dict[str, float]:
        return {key: value or 0 for key, value in figures(found, "overview").items() if key != "difference_us"}

    whole, *parts = (asked(*more) for more in ((), ("--range", "0%..35%"), ("--range", "35%..100%")))
    if form != "tables":
        added = {key: sum(used(part)[key] for part in parts) for key in used(whole)}
        assert added == {key: pytest.approx(value) for key, value in used(whole).items()}
    for found in (whole, *parts):
        assert figures(found, "free")["free_us"] == pytest.approx(sum(
            each["duration_us"] for each in rows(found, "free", "gaps")))  # fmt: skip
        if form != "tables":
            assert figures(found, "free")["free_us"] == pytest.approx(used(found)["free_us"])
    matmul = asked("--filter", "name~MatMul")
    total = figures(matmul, "kernels")["total_us"]
    assert used(matmul)["computing_us"] == (total if form != "tables" else used(whole)["computing_us"])
    assert used(matmul)["communication_us"] == (0 if form != "tables" else used(whole)["communication_us"])
    assert {row["rule"] for row in rows(matmul, "findings", "findings")} <= {"level0", "no_metrics"}


def test_memory_of_components_is_of_the_range(made, tmp_path, capsys):
    output = _rank(made, tmp_path, "trace_view.json")
    times = [ascend_profile.us(start + 5) for _, start, _ in ascend_profile.run_of(0).steps]
    lines = [f"NPU:0,HCCL,{at},{8 * (1 + place)}" for place, at in enumerate(times)]
    (output / "npu_module_mem.csv").write_text("\n".join(
        ["Device_id,Component,Timestamp(us),Total Reserved(MB)", *lines]))  # fmt: skip
    for more, peak in (((), 8 * len(times)), (("--step", "0"), 8), (("--range", "0%..10%"), 8)):
        assert main(["report", str(output), "memory", *more, "--json"]) == 0
        (row,) = rows(json.loads(capsys.readouterr().out), "memory", "modules")
        assert row["peak_mb"] == peak


def test_streams_that_cover_each_other(tmp_path, capsys):
    run = ascend_profile.run_of(0)
    copy, other, *_ = (each for each in run.tasks if not each.type)
    kernel = next(each for each in run.tasks if each.type == "MatMulV2")
    # of two copies of 8 us one runs 3 us into a kernel
    copy.start, copy.end = kernel.start - 5_000, kernel.start + 3_000
    found = report(ascend_profile.write_text(run, tmp_path), capsys, "streams")
    alone = {each["stream"]: each for each in rows(found, "streams", "streams")}
    assert set(alone) == {"Stream 2", "Stream 3", "Group 0 Communication"}
    pairs = {frozenset((each["stream"], each["other"])): each["both_us"] for each in rows(found, "streams", "pairs")}
    before = [each for each in run.tasks if each.type and each.end > copy.start and each.start < kernel.start]
    both = 3 + sum(each.end - max(each.start, copy.start) for each in before) / 1000
    assert pairs == {frozenset(("Stream 2", "Stream 3")): both}
    assert (alone["Stream 3"]["covered_us"], alone["Stream 3"]["alone_us"]) == (both, 24 - both)
    assert other.end - other.start == 8_000


async def test_the_late_rank_is_marked(made, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    async with opened(open_profile(made / "text"), (120, 40)) as pilot:
        lines = frame(pilot.app)
    # in the tree where the word has no room
    assert re.search(r"Rank 1(!| late) ", lines)
    assert "NPU 1 late Str" in lines
    assert not re.search(r"(Rank|NPU) 0(!| late)", lines)


# -- several devices in one folder


def test_each_device_of_a_folder_of_msprof_is_a_worker(tmp_path, capsys):
    # made up: no real file of several devices is public
    folder = tmp_path / "PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP"
    output = folder / "mindstudio_profiler_output"
    for part in ("host", "device_0", "device_1", "mindstudio_profiler_output"):
        (folder / part).mkdir(parents=True)
    lines = [f"{device},op{device}{place},MatMul,AI_CORE,{1000 + 10 * place + device}.125\t,2.5,0"
             for device in range(2) for place in range(2 + device)]  # fmt: skip
    (output / "op_summary_20260101000000.csv").write_text("\n".join(
        ["Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us)", *lines]
    ))  # fmt: skip
    (output / "api_statistic_20260101000000.csv").write_text(
        "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\nhost,acl,aclnnMm,9,3,3,3,3,0\n"
    )
    events = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "CANN"}}]
    for device in range(2):
        pid = 10 + device
        named = {"process_name": {"name": "Ascend Hardware"}, "process_labels": {"labels": f"NPU {device}"}}
        events += [{"ph": "M", "name": name, "pid": pid, "tid": 0, "args": args} for name, args in named.items()]
        for place in range(2 + device):
            begin, id_ = f"{1000 + 10 * place + device}.125", f"{device}{place}"
            flow = {"name": "HostToDevice", "cat": "HostToDevice", "id": id_}
            events += [
                {"ph": "X", "name": "AscendCL@aclnnMm", "pid": 1, "tid": device, "ts": f"{900 + place}.000", "dur": 0.5,
                 "args": {"level": "acl"}},
                {"ph": "s", "pid": 1, "tid": device, "ts": f"{900 + place}.250", **flow},
                {"ph": "X", "name": f"op{id_}", "pid": pid, "tid": 2, "ts": begin, "dur": 2.5,
                 "args": {"Task Type": "AI_CORE"}},
                {"ph": "f", "pid": pid, "tid": 2, "ts": begin, **flow},
            ]  # fmt: skip
    (output / "msprof_20260101000000.json").write_text(json.dumps(events))
    for path in (tmp_path, folder, output):
        found = report(path, capsys, "kernels", "api")
        told = [(each["devices"][0]["id"], each["events"], each["lanes"]) for each in found["workers"]]
        assert told == [(0, 4, 2), (1, 6, 2)]
        for device, worker in enumerate(each["key"] for each in found["workers"]):
            assert worker == f"{folder.name}/device_{device}"
            assert figures(found, "kernels", worker)["kernels"] == 2 + device
            assert figures(found, "api", worker)["launches_HostToDevice"] == 2 + device
            assert len(rows(found, "api", "apis", worker)) == 1


# -- any level of the path


def test_any_level_of_the_path_names_the_same(made, tmp_path, capsys, monkeypatch):
    rank = tmp_path / RANK
    shutil.copytree(made / "text" / RANK, rank)
    (rank / "FRAMEWORK").mkdir()
    (rank / "profiler_metadata.json").write_text("{}")
    (rank / "PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP" / "device_0" / "data").mkdir(parents=True)
    paths = [tmp_path, rank, rank / OUTPUT, rank / OUTPUT / "trace_view.json", rank / OUTPUT / "communication.json",
             rank / "profiler_info_0.json", rank / "profiler_metadata.json", rank / "FRAMEWORK",
             rank / "PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP" / "device_0"]  # fmt: skip
    for path in paths:
        assert [(each.name, each.rank_of_file) for each in profiles_at(path).workers] == [(RANK, 0)]
    # as it is typed from within: names of folders above are not part of the path
    for inside, typed in ((rank / OUTPUT, "."), (rank / OUTPUT, "kernel_details.csv"), (rank / OUTPUT, ".."),
                          (rank, OUTPUT), (rank / "FRAMEWORK", ".")):  # fmt: skip
        monkeypatch.chdir(inside)
        assert [(each.name, each.rank_of_file) for each in profiles_at(Path(typed)).workers] == [(RANK, 0)]
    assert open_profile(Path("..")).name == RANK
    assert list(Catalog().find(tmp_path)) == [tmp_path]
    assert main(["info", str(rank), "--why"]) == 0
    assert "ascend yes, by name: it holds communication.json" in " ".join(capsys.readouterr().out.split())


def test_raw_output_is_told_how_to_export(tmp_path, capsys):
    rank = tmp_path / "host_12_20260101_ascend_pt"
    for name in ("FRAMEWORK", OUTPUT):
        (rank / name).mkdir(parents=True)
    for path in (rank, rank / OUTPUT):
        assert main(["report", str(path)]) == 2
        assert f"analyse('{rank}')" in " ".join(capsys.readouterr().err.split())
    (mindspore := tmp_path / "host_12_20260101_ascend_ms" / "FRAMEWORK").mkdir(parents=True)
    assert main(["report", str(mindspore)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"from mindspore.profiler.profiler import analyse; analyse('{mindspore.parent}')" in told
    profile = tmp_path / "PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP"
    (profile / "host" / "data").mkdir(parents=True)
    assert main(["info", str(profile)]) == 2
    err = capsys.readouterr().err.replace("\n", "")
    assert f"msprof --export=on --output={profile}" in err
    assert "<toolkit>/tools/profiler/bin/msprof" in err.replace(" ", "")


def test_slices_are_one_table_and_of_two_exports_the_last_counts(tmp_path, capsys):
    folder = tmp_path / "PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP" / "mindstudio_profiler_output"
    folder.mkdir(parents=True)
    header = "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us)"
    for time, number, starts in (
        ("20260101000000", 0, [1]),
        ("20260102000000", 1, [300]),
        ("20260102000000", 0, [100]),
    ):
        lines = [f"0,op{start},MatMul,AI_CORE,17000000000{start:05d}.125\t,2.5000,0" for start in starts]
        (folder / f"op_summary_slice_{number}_{time}.csv").write_text("\n".join([header, *lines]))
    found = report(tmp_path, capsys)
    (worker,) = found["workers"]
    kernels = rows(found, "kernels", "kernels", worker["key"])
    assert sorted((each["name"], each["start_us"]) for each in kernels) == [
        ("op100", "1700000000000100.125"), ("op300", "1700000000000300.125")
    ]  # fmt: skip
    assert (worker["rank"], worker["events"], worker["devices"]) == (None, 2, [{"name": "NPU 0", "id": 0}])


def test_communication_that_msprof_analysed_lies_beside_its_output(tmp_path, capsys):
    # made of what torch_npu writes: the JSON is the same; no real folder of this kind is public
    written = SAMPLES / "ascend_synthetic" / "rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    profile = tmp_path / "PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP"
    output, analysed = profile / "mindstudio_profiler_output", profile / "analyze"
    output.mkdir(parents=True)
    analysed.mkdir()
    (output / "op_summary_20260511093035.csv").write_text(
        "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\nadd,Add,AI_CORE,1700000000000000.000\t,5\n"
    )
    (before,) = report(profile, capsys)["views"]["communication"]["workers"].values()
    assert any("msprof --analyze=on" in each["do"] for each in before["missing"])
    for name in ("communication.json", "communication_matrix.json"):
        shutil.copy(written / name, analysed)
    there, same = report(profile, capsys), report(written, capsys)
    for table in ("operations", "bandwidth", "matrix"):
        told, known = (rows(each, "communication", table, each["workers"][0]["key"]) for each in (there, same))
        assert len(told) == len(known) > 0
        assert [each["elapse_us"] for each in told if "elapse_us" in each] == [
            each["elapse_us"] for each in known if "elapse_us" in each
        ]  # fmt: skip
    assert "analyze/communication.json" in there["workers"][0]["files"]
    assert report(analysed, capsys)["workers"][0]["events"] == there["workers"][0]["events"]


def test_a_database_that_msprof_analysed_lies_beside_its_output(made, tmp_path, capsys):
    # made of what torch_npu writes into analysis.db; no real folder of this kind is public
    profile = tmp_path / "PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP"
    (profile / "mindstudio_profiler_output").mkdir(parents=True)
    (profile / "analyze").mkdir()
    shutil.copy(made / "db" / RANK / OUTPUT / "ascend_pytorch_profiler_0.db", profile / "msprof_20260511093035.db")
    (before,) = report(profile, capsys)["views"]["communication"]["workers"].values()
    assert any("msprof --analyze=on" in each["do"] for each in before["missing"])
    shutil.copy(made / "db" / RANK / OUTPUT / "analysis.db", profile / "analyze" / "communication_analyzer.db")
    there, same = report(profile, capsys), report(made / "db" / RANK, capsys)
    assert there["views"]["communication"]["workers"][profile.name]["source"] == "analyze/communication_analyzer.db"
    for table in ("operations", "bandwidth", "packets", "matrix"):
        told, known = (rows(each, "communication", table, each["workers"][0]["key"]) for each in (there, same))
        assert told == known != []


def test_files_of_cann_5_that_a_program_wrote(tmp_path, capsys):
    # made up: no real file of this generation is public
    summary = tmp_path / "PROF_1" / "device_3" / "summary"
    summary.mkdir(parents=True)
    (summary / "op_summary_3_1_1.csv").write_text(
        "Model Name,Model ID,Op Name,OP Type,Task Type,Task Start Time,Task Duration(us),Task Wait Time(us),Block Dim,"
        "mac_ratio,vec_ratio\nnet,1,conv,Conv2D,AI_CORE,1000.5,20,0,2,0.3,0.7\nnet,1,relu,Relu,AI_CORE,1030,4,9.5,2,0,N/A\n"
    )
    (summary / "runtime_api_3_1.csv").write_text(
        "Name,Time(ns),Calls,Avg(ns),Min(ns),Max(ns)\nKernelLaunch,9000,2,4500,4000,5000\n"
    )
    (summary / "prof_rule_3.json").write_text(json.dumps(
        {"status": 0, "data": [{"Rule Type": "Computation", "description": "d", "result": [
            {"rule subtype": "cube", "Rule Suggestion": "use \x1b[31mfp16", "op list": ["conv"]}]}]}
    ))  # fmt: skip
    found = report(tmp_path / "PROF_1", capsys)
    key = found["workers"][0]["key"]
    kernels = rows(found, "kernels", "kernels", key)
    assert [(each["name"], each["bound"], each["bound_ratio"], each["vec_ratio"]) for each in kernels] == [
        ("conv", "vec", 0.7, 0.7), ("relu", None, None, None)
    ]  # fmt: skip
    assert rows(found, "api", "apis", key)[0] == {
        "level": "runtime", "name": "KernelLaunch", "count": 2, "total_us": 9, "avg_us": 4.5, "min_us": 4, "max_us": 5,
        "variance": None,
    }  # fmt: skip
    assert figures(found, "free", key)["gaps"] == 1
    advice = next(each for each in rows(found, "findings", "findings") if each["source"].endswith("prof_rule_3.json"))
    assert (advice["rule"], advice["text"]) == ("Computation: cube", "use \x1b[31mfp16 conv")
    assert main(["report", str(tmp_path / "PROF_1"), "findings"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_part_of_a_device_of_cann_5_stands_for_the_device(tmp_path, capsys):
    # made up: no real file of this generation is public
    profile = tmp_path / "PROF_1"
    for device in range(2):
        summary, timeline = (profile / f"device_{device}" / name for name in ("summary", "timeline"))
        summary.mkdir(parents=True)
        timeline.mkdir()
        (summary / f"op_summary_{device}_1_1.csv").write_text(
            f"Op Name,OP Type,Task Type,Task Start Time,Task Duration(us)\nconv{device},Conv2D,AI_CORE,1000.5,20\n"
        )
        (timeline / f"msprof_{device}_1_1.json").write_text(json.dumps(_called(1, "AscendCL", "call", 990)))
    whole = report(profile, capsys, "kernels")
    assert [(each["key"], each["events"]) for each in whole["workers"]] == [
        ("PROF_1/device_0", 1), ("PROF_1/device_1", 1)
    ]  # fmt: skip
    # each device has a timeline of its own: there is nothing to tell apart
    assert not whole["problems"]
    alone = report(profile / "device_1", capsys, "kernels")
    for path in (summary, timeline, summary / "op_summary_1_1_1.csv", timeline / "msprof_1_1_1.json"):
        found = report(path, capsys, "kernels")
        assert [(each["key"], each["events"]) for each in found["workers"]] == [("device_1", 1)]
        for table in ("kernels", "by_type"):
            assert rows(found, "kernels", table, "device_1") == rows(alone, "kernels", table, "device_1") != []
    # one for all of them tells no device
    for device in range(2):
        (profile / f"device_{device}" / "timeline" / f"msprof_{device}_1_1.json").unlink()
    (profile / "timeline").mkdir()
    (profile / "timeline" / "msprof.json").write_text(json.dumps(_called(1, "AscendCL", "call", 990)))
    assert "does not distinguish its devices" in report(profile, capsys, "kernels")["problems"][0]["what"]


@pytest.mark.parametrize("name", ["acl_statistic_3_1.csv", "pytorch_operator_view.csv", "l2_cache.csv"])
def test_any_table_is_told_alone(tmp_path, capsys, name):
    (tmp_path / name).write_text("Name,Time(us),Count\naclrtMalloc,12.5,5\n")
    found = report(tmp_path / name, capsys, "api", "tables")
    view, table = ("api", "apis") if name.startswith("acl") else ("tables", name.removesuffix(".csv"))
    assert [each["Name" if view == "tables" else "name"] for each in rows(found, view, table, name)] == ["aclrtMalloc"]


def test_advice_of_the_vendor_however_its_keys_are_written(tmp_path, capsys):
    # made up: no real file is public
    advice = {"rule subtype": "cube", "rule suggestion": "use fp16", "op list": ["conv"], "tuning data": ["a", "b"]}
    for told in (
        {"status": 0, "Data": [{"Rule Type": "Computation", "description": "d", "Result": [advice]}]},
        [{"rule_type": "Computation", "result": [advice]}],
        [{"rule_type": "Computation", **advice}],
    ):  # fmt: skip
        (tmp_path / "prof_rule_0.json").write_text(json.dumps(told))
        (found,) = rows(report(tmp_path, capsys, "findings"), "findings", "findings")
        assert (found["rule"], found["text"]) == ("Computation: cube", "use fp16 conv a, b")
        assert found["source"] == "prof_rule_0.json"


def _called(pid: int, process: str, name: str, ts: float) -> list[dict[str, Any]]:
    """A process of a timeline with one slice."""
    return [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": process}},
            {"ph": "X", "name": name, "pid": pid, "tid": 7, "ts": ts, "dur": 2}]  # fmt: skip


#: Tables of the E2E mode of CANN 5 to 6.3, made up after the vendor's documents (no real one is public): header, row,
#: and some of what is told of it.
_E2E_TABLES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "task_time_3_1_1.csv": ("Time(%),Time(us),Count,Type,API,Op Name,Stream ID", "50,8.5,2,AI_CORE,launch,conv,5",
                            {"Time(us)": 8.5, "Op Name": "conv"}),
    "acl_3_1.csv": ("Name,Type,Start Time,Duration(us),Process ID,Thread ID", "aclmdlExecute,model,1000.5,31.5,1,2",
                    {"Name": "aclmdlExecute", "Duration(us)": 31.5}),
    "ge_op_execute_3_1.csv": ("Thread ID,OP Name,OP Type,Event Type,Duration(us)", "2,conv,Conv2D,tiling,3.25",
                              {"Event Type": "tiling", "Duration(us)": 3.25}),
    "step_trace_3_1_1.csv": ("Iteration ID,FP Start,BP End,Iteration Time(us)", "1,1000,1030,34.5",
                             {"Iteration Time(us)": 34.5}),
    "msprof_tx.csv": ("pid,tid,event_type,Start_time(ns),End_time(ns),message", "1,2,marker,1000500,1002500,epoch",
                      {"message": "epoch", "End_time(ns)": 1002500}),
    "pytorch_operator_view.csv": ("op_name,call_stack", '"conv","a.py(1);\r\nb.py(2)"',
                                  {"call_stack": "a.py(1);\r\nb.py(2)"}),
}  # fmt: skip
_E2E_PARTS = {
    "thread_group_3_1.json": "Thread 7", "task_time_3_1_1.json": "Task Scheduler", "acl_3_1.json": "AscendCL",
    "runtime_api_3_1.json": "Runtime", "ge_3_1.json": "GE", "ge_op_execute_3_1.json": "GE Op Execute",
    "step_trace_3_1_1.json": "Step Trace", "msprof_tx.json": "MsprofTx",
}  # fmt: skip


def test_every_file_of_the_e2e_mode_is_told(tmp_path, capsys):
    summary, timeline = (tmp_path / "PROF_1" / "device_3" / name for name in ("summary", "timeline"))
    summary.mkdir(parents=True)
    timeline.mkdir()
    for name, (head, row, _) in _E2E_TABLES.items():
        (summary / name).write_text(f"{head}\n{row}\n", newline="")
    (summary / "op_summary_3_1_1.csv").write_text(
        "Op Name,OP Type,Task Type,Task Start Time,Task Duration(us)\nconv,Conv2D,AI_CORE,1000.5,20\n"
    )
    (summary / "op_statistic_3_1_1.csv").write_text(
        "Model Name,OP Type,Core Type,Count,Total Time(us)\nnet,Conv2D,AI_CORE,1,20\n"
    )
    (summary / "acl_statistic_3_1.csv").write_text("Name,Type,Time(us),Count\naclrtMalloc,rts,12.5,5\n")
    found = report(tmp_path / "PROF_1", capsys)
    key = found["workers"][0]["key"]
    for name, (_, _, wanted) in _E2E_TABLES.items():
        table = re.sub(r"(_\d+)*\.csv", "", name)
        assert rows(found, "tables", table, key)[0].items() >= wanted.items(), name
    assert [each["type"] for each in rows(found, "operators", "by_type", key)] == ["Conv2D"]
    assert [(each["name"], each["total_us"]) for each in rows(found, "api", "apis", key)] == [("aclrtMalloc", 12.5)]
    # each numbers its processes from 1
    for place, (name, process) in enumerate(_E2E_PARTS.items()):
        (timeline / name).write_text(json.dumps(_called(1, process, f"call {place}", 1000 + place)))
    (timeline / "task_queue.json").write_text(json.dumps(_called(1, "Python", "Enqueue", 999)))
    # tasks of the device are those of its lanes
    groups = [{"Task Scheduler": "NPU 3"}.get(each, each) for each in _E2E_PARTS.values()]
    alone = {(group, f"call {place}") for place, group in enumerate(groups)} | {("Python", "Enqueue")}
    assert _slices(tmp_path) == alone
    # the sum of them tells what it tells; of the others what it lacks is added
    both = [*_called(1, "AscendCL", "sum", 1002), *_called(5, "Runtime", "sum", 1003)]
    (timeline / "msprof_3_1.json").write_text(json.dumps(both))
    assert _slices(tmp_path) == {each for each in alone if each[0] not in ("AscendCL", "Runtime")} | {
        ("AscendCL", "sum"), ("Runtime", "sum")
    }  # fmt: skip


def _slices(folder: Path) -> set[tuple[str, str]]:
    """The group and the name of each event."""
    profile = open_profile(folder / "PROF_1")
    return {(profile.groups.label(lane.group), profile.strings["name"][code])
            for lane in profile.lanes for code in lane["name"].tolist()}  # fmt: skip


def test_a_cluster_folder_alone(tmp_path, capsys):
    (tmp_path / "cluster_step_trace_time.csv").write_text(
        "Step,Type,Index,Computing,Communication(Not Overlapped),Free\n"
        '1,rank,0,10,2,3\n1,rank,1,10,1,6\n1,stage,"(0, 1)",10,2,6\n'
    )
    found = report(tmp_path, capsys)
    assert (found["workers"], found["source"]) == ([], "ascend")
    assert [(each["kind"], each["index"], each["free_us"]) for each in rows(found, "cluster", "steps")] == [
        ("rank", "0", 3), ("rank", "1", 6), ("stage", "(0, 1)", 6)
    ]  # fmt: skip
    slow = {each["column"]: (each["rank"], each["excess_share"]) for each in rows(found, "cluster", "slow")}
    assert slow["free_us"] == ("1", pytest.approx(1 / 3))
    # it has no workers: views of workers have nothing to say where they are asked for, and keep quiet else
    assert main(["report", str(tmp_path), "problems", "kernels"]) == 0
    assert capsys.readouterr().out == "Problems\nNothing here.\n\nKernels\nNothing here.\n"
    assert main(["report", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert [title for title in ("Cluster", "Overview", "Kernels", "Problems") if f"{title}\n" in told] == [
        "Cluster", "Problems"
    ]  # fmt: skip
    assert main(["summary", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[2].startswith(f"{tmp_path.name}: 0 NPUs, msprof-analyze")


@pytest.mark.parametrize(
    ("file", "damage", "what"),
    [
        ("cluster_communication.json", lambda text: text[: len(text) // 2], "cannot be decoded after line 1"),
        ("cluster_communication_matrix.json", lambda text: text[: len(text) // 2], "cannot be decoded after line 1"),
        ("cluster_step_trace_time.csv", lambda text: text.replace("1,rank", "1rank", 1), "fewer cells.*line 2"),
        ("cluster_step_trace_time.csv", lambda text: "", "no header"),
    ],
)
def test_damage_of_what_is_said_of_a_cluster_is_a_problem(tmp_path, capsys, file, damage, what):
    told = {"Communication Time Info": {"Elapse Time(ms)": 1, "Wait Time(ms)": 0.5}}
    op = {"0": told, "1": told}
    pair = {"0-1": {"Transport Type": "RDMA", "Transit Size(MB)": 4, "Transit Time(ms)": 0.5}}
    (tmp_path / "cluster_communication.json").write_text(json.dumps({"p2p": {"step1": {"hcom_send__1_0@1": op}}}))
    (tmp_path / "cluster_communication_matrix.json").write_text(json.dumps({"p2p": {"step1": {"send-top1@1": pair}}}))
    (tmp_path / "cluster_step_trace_time.csv").write_text(
        "Step,Type,Index,Computing,Free\n1,rank,0,10,3\n1,rank,1,10,6\n"
    )
    whole = report(tmp_path, capsys)["views"]["cluster"]["tables"]
    (tmp_path / file).write_text(damage((tmp_path / file).read_text()))
    found = report(tmp_path, capsys)
    (problem,) = found["problems"]
    assert problem["file"] == file
    assert re.search(what, problem["what"])
    # what the other files tell stays
    tables = {"cluster_communication.json": "operations", "cluster_communication_matrix.json": "matrix"}
    for name, table in tables.items():
        rest = found["views"]["cluster"]["tables"].get(table, {"rows": []})["rows"]
        assert rest == ([] if name == file else whole[table]["rows"])
    # alone it is nothing to show
    for other in {"cluster_step_trace_time.csv", *tables} - {file}:
        (tmp_path / other).unlink()
    assert main(["report", str(tmp_path)]) == (1 if "fewer" in what else 2)


def test_a_cluster_as_a_database_says_what_the_texts_say(tmp_path, capsys):
    """The tables of both versions of msprof-analyze; made up: no such database is public."""
    texts = tmp_path / "text"
    texts.mkdir()
    ranks, group, op = "(0, 1)", "4711", "hcom_send__1_0_1"
    (texts / "cluster_step_trace_time.csv").write_text(
        "Step,Type,Index,Computing,Communication(Not Overlapped),Free\n1,rank,0,10,2,3\n1,rank,1,11,1,6\n"
    )
    links = {"RDMA": {"Transit Size(MB)": 4, "Transit Time(ms)": 0.5, "Bandwidth(GB/s)": 8, "Large Packet Ratio": 1,
                      "Size Distribution": {"2": [2, 0.5]}}}  # fmt: skip
    times = [{"Start Timestamp(us)": 1700000000000000.5, "Elapse Time(ms)": 1.5, "Transit Time(ms)": 0.5,
              "Wait Time(ms)": wait, "Synchronization Time(ms)": wait / 2, "Idle Time(ms)": 0}
             for wait in (1, 0.25)]  # fmt: skip
    (texts / "cluster_communication.json").write_text(json.dumps({ranks: {"step1": {f"{op}@{group}": {
        str(rank): {"Communication Time Info": each, "Communication Bandwidth Info": links}
        for rank, each in enumerate(times)}}}}))  # fmt: skip
    pair = {"Transport Type": "RDMA", "Transit Size(MB)": 4, "Transit Time(ms)": 0.5, "Bandwidth(GB/s)": 8,
            "Op Name": op}  # fmt: skip
    (texts / "cluster_communication_matrix.json").write_text(json.dumps({ranks: {"step1": {f"{op}@{group}": {
        "0-1": pair}}}}))  # fmt: skip
    told = report(texts, capsys)
    for prefix in ("ClusterCommAnalyzer", "ClusterCommunication"):
        old = prefix == "ClusterCommAnalyzer"
        folder = tmp_path / prefix
        folder.mkdir()
        with contextlib.closing(sqlite3.connect(folder / "cluster_analysis.db")) as made:
            made.execute("create table ClusterStepTraceTime (step, type, \"index\", computing, "
                         "communication_not_overlapped, free)")  # fmt: skip
            made.executemany("insert into ClusterStepTraceTime values (?,?,?,?,?,?)",
                             [("1", "rank", "0", 10, 2, 3), ("1", "rank", "1", 11, 1, 6)])  # fmt: skip
            who = "rank_set, " if old else ""
            made.execute(f"create table {prefix}Time ({who}step, rank_id, hccl_op_name, group_name, start_timestamp, "
                         "elapsed_time, transit_time, wait_time, synchronization_time, idle_time)")  # fmt: skip
            made.execute(f"create table {prefix}Bandwidth ({who}step, rank_id, hccl_op_name, group_name, band_type, "
                         "transit_size, transit_time, bandwidth, large_packet_ratio, package_size, count, "
                         "total_duration)")  # fmt: skip
            made.execute(f"create table {prefix}Matrix ({who}step, hccl_op_name, group_name, src_rank, dst_rank, "
                         "transit_size, transit_time, bandwidth, transport_type, op_name)")  # fmt: skip
            made.execute("create table CommunicationGroupMapping (type, rank_set, group_name)")
            made.execute("insert into CommunicationGroupMapping values ('collective', ?, ?)", (ranks, group))
            first = (ranks,) if old else ()
            for rank, each in enumerate(times):
                values = (*first, "step1", rank, op, group, *each.values())
                made.execute(f"insert into {prefix}Time values ({','.join('?' * len(values))})", values)
                values = (*first, "step1", rank, op, group, "RDMA", 4, 0.5, 8, 1, 2, 2, 0.5)
                made.execute(f"insert into {prefix}Bandwidth values ({','.join('?' * len(values))})", values)
            values = (*first, "step1", op, group, "0", "1", 4, 0.5, 8, "RDMA", op)
            made.execute(f"insert into {prefix}Matrix values ({','.join('?' * len(values))})", values)
            made.commit()
        found = report(folder, capsys)
        for table in ("steps", "operations", "links", "matrix", "slow", "late"):
            assert rows(found, "cluster", table) == rows(told, "cluster", table) != []
        assert found["views"]["cluster"]["source"] == "cluster_analysis.db"


async def test_the_explorer_shows_a_cluster_without_events(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "cluster_step_trace_time.csv").write_text(
        "Step,Type,Index,Computing,Free\n1,rank,0,10,2\n1,rank,1,12,3\n"
    )
    async with opened(open_profile(tmp_path), (100, 30)) as pilot:
        lines = [" ".join(line.split()) for line in frame(pilot.app).splitlines()]
    # kind, rank, step, computing and free time in us
    assert any(re.match(r"rank 1 1 12\.000 3\.000", line) for line in lines), lines


def test_communication_of_two_runs_is_compared_by_operator(made, tmp_path, capsys):
    other = tmp_path / RANK
    shutil.copytree(made / "text" / RANK, other)
    for file in (other / OUTPUT).iterdir():
        # another run has another hash of the group
        file.write_text(file.read_text().replace("__711_", "__586_"))
    assert main(["diff", str(made / "text" / RANK), str(other), "kernels", "communication", "--json"]) == 0
    views = json.loads(capsys.readouterr().out)["views"]

    def by(view: str, key: str) -> dict[str, dict[str, Any]]:
        table = views[view]["tables"][key]
        keys = [column["key"] for column in table["columns"]]
        return {row[0]: dict(zip(keys, row, strict=True)) for row in table["rows"]}

    sums = by("communication", "by_operator")
    assert list(sums) == ["hcom_allReduce"]
    assert (sums["hcom_allReduce"]["base_count"], sums["hcom_allReduce"]["delta_wait_us"]) == (3, 0)
    told = by("kernels", "by_name")
    assert not any("__" in name for name in told)
    joined = told["hcom_allReduce"]
    assert (joined["base_count"], joined["other_count"], joined["status"]) == (3, 3, "same")
    assert joined["base_avg_us"] == joined["other_avg_us"] == pytest.approx(joined["base_total_us"] / 3)


def test_a_gate_joins_communication_of_two_runs_by_operator(made, tmp_path, capsys):
    other = tmp_path / RANK
    shutil.copytree(made / "text" / RANK, other)
    for file in (other / OUTPUT).iterdir():
        file.write_text(file.read_text().replace("__711_", "__586_"))
    assert main(["gate", str(other), "--against", str(made / "text" / RANK), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["verdict"]["contributors"]
    assert [each["base_count"] for each in told if each["name"] == "hcom_allReduce"] == [3]
    assert not any("__" in each["name"] for each in told)
    # of one run each collective is compared with itself
    assert main(["gate", str(other), "--against", str(other), "--json"]) == 0
    assert "hcom_allReduce__586_0_1" in {
        each["name"] for each in json.loads(capsys.readouterr().out)["verdict"]["contributors"]
    }  # fmt: skip


# -- damage


def _rank(made: Path, tmp_path: Path, *names: str) -> Path:
    output = tmp_path / RANK / OUTPUT
    output.mkdir(parents=True)
    for file in (made / "text" / RANK / OUTPUT).iterdir():
        if not names or file.name in names:
            shutil.copy(file, output)
    return output


@pytest.mark.parametrize(
    ("file", "damage", "what"),
    [
        ("kernel_details.csv", lambda text: _in_line(text, 4, ",", ""), "fewer cells.*line 5"),
        ("kernel_details.csv", lambda text: _in_line(text, 4, '"""', '""'), "quote is not closed, line 5"),
        ("kernel_details.csv", lambda text: text[: text.index("\n", len(text) // 2) + 20], "fewer cells"),
        ("kernel_details.csv", lambda text: _in_line(text, 4, "32,128", "32,128\"\"\"\"\n,x"), None),
        ("trace_view.json", lambda text: text[: len(text) // 2], "ends within its list"),
        ("trace_view.json", lambda text: text.replace('"ts": "17', '"ts": "x7', 1), "without a time"),
        ("trace_view.json", lambda text: text.replace('{"ph": "X"', '{"ph": "X" "a', 1), "cannot be decoded"),
        ("trace_view.json", lambda text: text.replace('"name": "', '"name": "un"quoted ', 1), "quotation marks"),
        ("trace_view.json", lambda text: text.replace('{"ph": "X"', '{"bare": N/A, "ph": "X"', 1), "not JSON"),
        ("communication.json", lambda text: text[: len(text) // 2], "cannot be decoded after line 1, column [0-9,]+ "),
        ("step_trace_time.csv", lambda text: "", "no header"),
        ("kernel_details.csv", lambda text: _in_line(text, 4, "6.250", "six"), "are left empty|not numbers"),
        ("kernel_details.csv", lambda text: text + "\0" * 5000, "^Zeros in place of text, line"),
        ("trace_view.json", lambda text: text.replace('"ph": "X"', '"ph": "b"', 3), "phase"),
    ],
)  # fmt: skip
def test_damage_is_a_problem_of_its_file_and_the_rest_is_shown(made, tmp_path, capsys, file, damage, what):
    output = _rank(made, tmp_path)
    whole = report(made / "text" / RANK, capsys, "kernels")
    (output / file).write_text(damage((output / file).read_text()))
    found = report(output.parent, capsys, "kernels", "overview", "communication")
    if what is not None:
        problem = next(each for each in found["problems"] if re.search(what, each["what"]))
        assert problem["file"].endswith(file)
    names = {each["name"] for each in rows(whole, "kernels", "kernels")}
    assert names & {each["name"] for each in rows(found, "kernels", "kernels")}


def _events(change: Any) -> Any:
    return lambda text: json.dumps(change(json.loads(text)))


def _parts(event: dict[str, Any]) -> list[dict[str, Any]]:
    """A slice as its begin and its end."""
    if event["ph"] != "X":
        return [event]
    end = str(Decimal(str(event["ts"])) + Decimal(str(event["dur"])))
    begin = {key: value for key, value in event.items() if key != "dur"} | {"ph": "B"}
    return [begin, {"ph": "E", "pid": event["pid"], "tid": event["tid"], "ts": end}]


@pytest.mark.parametrize("content", ["Name|Type\na|b\n", "<html>404</html>", "Name,Type,Duration(us)\n"])
def test_files_of_which_nothing_is_shown_are_an_error(tmp_path, capsys, content):
    output = tmp_path / RANK / OUTPUT
    output.mkdir(parents=True)
    (output / "kernel_details.csv").write_text(content)
    errors = [each["what"] for each in report(output.parent, capsys)["problems"] if each["severity"] == "error"]
    assert errors == ["None of its files holds an event, or a row of a known table."]


def test_a_slice_of_a_table_that_cannot_be_read_costs_itself_alone(made, tmp_path, capsys):
    content = (made / "text" / RANK / OUTPUT / "kernel_details.csv").read_text()
    (output := tmp_path / "PROF_000001_20260601101010101_ABCDEFGH" / "mindstudio_profiler_output").mkdir(parents=True)
    (output / "op_summary_slice_0_20260601101004.csv").write_text(content.replace("Name,Type", "Op Name,OP Type"))
    (output / "op_summary_slice_1_20260601101004.csv").write_text("")
    found = report(output.parent, capsys, "kernels")
    assert len(rows(found, "kernels", "kernels", next(iter(found["views"]["kernels"]["workers"])))) > 3
    assert [each["what"].rpartition("/")[2] for each in found["problems"] if "no header" in each["what"]] == [
        "op_summary_slice_1_20260601101004.csv is empty: it has no header."
    ]


def test_a_link_to_nothing_is_told(made, tmp_path, capsys):
    output = _rank(made, tmp_path)
    (output / "trace_view.json").unlink()
    (output / "trace_view.json").symlink_to("moved/trace_view.json")
    assert "no such file" in " ".join(each["what"] for each in report(output.parent, capsys)["problems"])


@pytest.mark.parametrize(
    ("file", "change"),
    [
        # times are numbers, not texts
        ("trace_view.json", lambda text: re.sub(r'"ts": "([\d.]+)"', r'"ts": \1', text)),
        # a mark of the encoding, other ends of lines, blank lines
        ("kernel_details.csv", lambda text: "\ufeff" + text.replace("\n", "\r\n") + "\r\n"),
        ("kernel_details.csv", lambda text: _in_line(text, 4, '"""32,128;128,128"""', '"""32,128;\r\n128,128"""')),
        # columns and processes by their other names, and in another order
        ("kernel_details.csv", lambda text: text.replace("Block Dim", "Block Num").replace("HCCL", "COMMUNICATION")),
        ("kernel_details.csv", lambda text: "\n".join(f"{'0' if row else 'Device_id'},{line}" if line else ""
                                                      for row, line in enumerate(text.split("\n")))),
        ("trace_view.json", lambda text: text.replace('"name": "Communication"}', '"name": "HCCL"}')),
        # an object, names before what they name, any order, no end
        ("trace_view.json", _events(lambda events: {"schemaVersion": 1, "traceEvents": events})),
        ("trace_view.json", _events(lambda events: events[::-1])),
        # a length with the noise of a binary float
        ("trace_view.json", lambda text: re.sub(r'"dur": (\d+\.\d+)', r'"dur": \g<1>00000000003', text)),
        # a cell of megabytes, the names of op_summary, a column that nobody knows
        ("kernel_details.csv", lambda text: _in_line(text, 4, '"""32,128;128,128"""', f'"{"1,2;" * 600_000}"')),
        ("kernel_details.csv", lambda text: _renamed(text, Name="Op Name", Type="OP Type", **{
            "Accelerator Core": "Task Type", "Start Time(us)": "Task Start Time(us)",
            "Duration(us)": "Task Duration(us)", "Wait Time(us)": "Task Wait Time(us)"})),
        ("kernel_details.csv", lambda text: "\n".join(f"{'7' if row else 'Odd (rpm)'},{line}" if line else ""
                                                      for row, line in enumerate(text.split("\n")))),
        # what tells spreadsheets the separator
        ("kernel_details.csv", lambda text: f"sep=,\n{text}"),
        ("trace_view.json", _events(lambda events: [part for event in events for part in _parts(event)])),
        # one number of a thread in every process
        ("trace_view.json", lambda text: re.sub(r'"tid": 10[01]', '"tid": 2', text)),
    ],
)  # fmt: skip
def test_other_ways_to_write_the_same_run_are_read_alike(made, tmp_path, capsys, file, change):
    output = _rank(made, tmp_path)
    views = ("overview", "kernels", "free", "operators", "api")
    wanted = report(made / "text" / RANK, capsys, *views)
    content = (output / file).read_text()
    changed = change(content)
    assert changed != content
    (output / file).write_text(changed, newline="")
    found = report(output.parent, capsys, *views)
    assert not found["problems"]
    for view in views:
        assert figures(found, view) == figures(wanted, view)
    keys = ("name", "type", "start_us", "duration_us", "wait_us", "blocks", "bound")
    kernels = [[[each[key] for key in keys] for each in rows(each, "kernels", "kernels")] for each in (found, wanted)]
    assert sorted(map(str, kernels[0])) == sorted(map(str, kernels[1]))
    for table in (("free", "gaps"), ("operators", "by_name"), ("api", "apis")):
        assert sorted(map(str, rows(found, *table))) == sorted(map(str, rows(wanted, *table)))


def test_slices_that_overlap_or_take_no_time_are_kept_and_files_may_lack(made, tmp_path, capsys):
    output = _rank(made, tmp_path)
    whole = report(made / "text" / RANK, capsys, "overview")["workers"][0]["events"]
    trace = json.loads((output / "trace_view.json").read_text())
    kernel = next(each for each in trace if each.get("args", {}).get("Task Type") == "AI_CORE")
    beside = [{**kernel, "name": name, "dur": length} for name, length in (("over", kernel["dur"]), ("none", 0))]
    (output / "trace_view.json").write_text(json.dumps([*trace, *beside]))
    assert report(output.parent, capsys, "overview")["workers"][0]["events"] == whole + 2
    lane = open_profile(output.parent).lane("stream", 0)
    assert lane is not None
    assert lane.sublanes > 1
    for file in sorted(output.iterdir()):
        content = file.read_bytes()
        file.unlink()
        found = report(output.parent, capsys)
        assert not [each for each in found["problems"] if each["severity"] == "error"]
        assert figures(found, "kernels")["kernels"] >= 75
        file.write_bytes(content)


def test_flows_are_joined_by_the_text_of_their_ids_and_the_last_beginning_counts(tmp_path, capsys):
    """Ids as numbers and as texts of them are one; those that are written otherwise are others."""
    host, device = {"pid": 7, "tid": 1}, {"pid": 9, "tid": 2}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "CANN"}},
        {"ph": "M", "name": "process_name", "pid": 9, "args": {"name": "Ascend Hardware"}},
    ]
    ids = (5, "07", "0x1f", 1 << 70, None, "9223372036854775807")
    for number, each in enumerate(ids):
        events += [
            {"ph": "X", "name": "Node@launch", **host, "ts": f"{number * 100 + 10}", "dur": 5,
             "args": {"level": "node"}},
            {"ph": "s", "cat": "HostToDevice", "id": 6, **host, "ts": "1"},
            {"ph": "s", "cat": "HostToDevice", "id": each, **host, "ts": f"{number * 100 + 12}.500"},
            {"ph": "X", "name": f"k{number}", **device, "ts": f"{number * 100 + 50}", "dur": 5,
             "args": {"Task Type": "AI_CORE"}},
            {"ph": "f", "cat": "HostToDevice", "id": str(each), **device, "ts": f"{number * 100 + 50}"},
            {"ph": "f", "cat": "HostToDevice", "id": "7", **device, "ts": f"{number * 100 + 50}"},
        ]  # fmt: skip
    # the same id again: the later beginning is what it ends
    events += [{"ph": "s", "cat": "HostToDevice", "id": "5", **host, "ts": "13.500"}]
    (tmp_path / "trace_view.json").write_text(json.dumps(events))
    told = rows(report(tmp_path, capsys, "api"), "api", "launches", tmp_path.name)
    assert {row["name"]: row["host_us"] for row in told} == {
        f"k{number}": "13.5" if not number else f"{number * 100 + 12}.5" for number in range(len(ids))
    }


def _renamed(text: str, **names: str) -> str:
    header, _, rest = text.partition("\n")
    return ",".join(names.get(name, name) for name in header.split(",")) + "\n" + rest


def _in_line(text: str, number: int, old: str, new: str) -> str:
    lines = text.split("\n")
    found = next(place for place in range(number, len(lines)) if old in lines[place])
    lines[number], lines[found] = lines[found], lines[number]
    lines[number] = lines[number].replace(old, new, 1)
    return "\n".join(lines)


def test_a_row_that_lost_a_cell_stands_as_it_is(tmp_path):
    file = tmp_path / "kernel_details.csv"
    file.write_bytes(b'\xef\xbb\xbfName,Type,Duration(us)\r\na,b,1.5\t\r\nshort,2.5\r\n\r\nc,N/A,"x\r\ny"\r\n')
    table = CsvTable.opened([file], file.name)
    read = table.read({"Name": "text", "Type": "text", "Duration(us)": "time"})
    assert read["Name"].values() == ["a", "short", "c"]
    assert read["Type"].values() == ["b", "2.5", None]
    assert read["Duration(us)"].tolist() == [1500, INT_MISSING, INT_MISSING]
    assert [(each.count, each.offset) for each in table.problems] == [(1, file.read_bytes().index(b"short")),
                                                                      (1, file.read_bytes().index(b'"x'))]  # fmt: skip
    assert "line 3" in table.problems[0].what


@pytest.mark.parametrize(
    ("file", "view", "table"),
    [("op_statistic.csv", "operators", "by_type"), ("api_statistic.csv", "api", "apis"),
     ("memory_record.csv", "memory", "curve"), ("operator_memory.csv", "memory", "operators")],
)  # fmt: skip
def test_columns_that_are_not_known_are_the_last_of_their_view(tmp_path, capsys, file, view, table):
    output = unpacked_trace("ascend_level1_text", tmp_path) / RANK / OUTPUT
    (output / "operator_memory.csv").write_text(
        "Name,Size(KB),Allocation Time(us),Release Time(us),Duration(us),Stream Ptr\n"
        "aten::empty,4,1736408883704643.212,,,1\naten::add,8,1736408883704644.212,1736408883704645.212,1,1\n"
    )
    before = report(output.parent, capsys, view)
    head, *lines = (output / file).read_text().splitlines()
    widened = [f"{line},{number}" for number, line in enumerate(filter(None, lines))]
    (output / file).write_text("\n".join([f"{head},Of tomorrow", *widened]))
    found = rows(report(output.parent, capsys, view), view, table)
    assert sorted(each["Of tomorrow"] for each in found) == list(range(len(widened)))
    assert list(found[0])[-1] == "Of tomorrow"
    assert [{key: value for key, value in each.items() if key != "Of tomorrow"} for each in found] == rows(
        before, view, table
    )


def test_columns_of_texts_that_are_not_known_are_told_of_kernels(made, tmp_path, capsys):
    file = _rank(made, tmp_path, "kernel_details.csv") / "kernel_details.csv"
    before = rows(report(file.parent, capsys, "kernels"), "kernels", "kernels")
    head, *lines = file.read_text().splitlines()
    told = [f"{line},{'N/A' if number % 3 else f'tag {number}'},{number}" for number, line in enumerate(lines)]
    file.write_text("\n".join([f"{head},Kernel Tag,Other Number", *told]))
    found = rows(report(file.parent, capsys, "kernels"), "kernels", "kernels")
    assert {each["Kernel Tag"] for each in found} == {None, *(f"tag {number}" for number in range(0, len(lines), 3))}
    assert sorted(each["Other Number"] for each in found) == list(range(len(lines)))
    assert [{key: each[key] for key in before[0]} for each in found] == before


@pytest.mark.parametrize("file", ["step_trace_time.csv", "npu_module_mem.csv", "operator_details.csv"])
def test_files_whose_rows_are_added_up_stand_whole_where_they_have_further_columns(tmp_path, capsys, file):
    output = unpacked_trace("ascend_level1_text", tmp_path) / RANK / OUTPUT
    if file == "npu_module_mem.csv":  # not among those that are kept
        (output / file).write_text(
            "Component,Timestamp(us),Total Reserved(MB),Device\nAPP,1736408883704643.2,2,NPU:0\n"
        )
    assert file not in str(report(output.parent, capsys, "tables")["views"]["tables"])
    head, *lines = (output / file).read_text().splitlines()
    widened = [f"{line},{number}" for number, line in enumerate(filter(None, lines))]
    (output / file).write_text("\n".join([f"{head},Of tomorrow", *widened]))
    found = rows(report(output.parent, capsys, "tables"), "tables", file.removesuffix(".csv"))
    assert [each["Of tomorrow"] for each in found] == list(range(len(widened)))
    assert len(found[0]) == len(next(csv.reader([head]))) + 1


def test_a_row_may_lack_its_last_cell(tmp_path):
    file = tmp_path / "kernel_details.csv"
    whole = "Name,Type,Duration(us),ratio\na,Add,1.5,0.5\n"
    file.write_text(f"{whole}b,Add,2.5\nc,N/A,3.5\n")
    table = CsvTable.opened([file], file.name)
    read = table.read({"Duration(us)": "time", "ratio": "number"})
    assert read["Duration(us)"].tolist() == [1500, 2500, 3500]
    assert [each != each for each in read["ratio"].tolist()] == [False, True, True]
    assert not table.problems
    # one before it is lost
    file.write_text(f"{whole}b,2.5,0.5\nc,Add,3.5\nAdd,2.5\n")
    table = CsvTable.opened([file], file.name)
    table.read({"ratio": "number"})
    assert [(each.count, each.severity) for each in table.problems] == [(2, Severity.ERROR)]
    assert "line 3" in table.problems[0].what


def test_advice_names_the_switches_of_msprof(tmp_path, capsys):
    output = tmp_path / "mindstudio_profiler_output"
    output.mkdir()
    (output / "op_summary_20260511093035.csv").write_text(
        "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\nadd,N/A,AI_CORE,1700000000000000.000\t,5\n"
    )
    found = report(tmp_path, capsys)
    told = [each for view in found["views"].values() for data in view.get("workers", {"": view}).values()
            for each in data.get("missing", ())]  # fmt: skip
    torch = [each for each in told if re.search("profiler_level|aic_metrics", each["do"])]
    assert torch
    assert "by_type" in lacking(found, "kernels", found["workers"][0]["key"])
    assert all("msprof --" in each["do"] for each in torch)


@pytest.mark.parametrize("block", [64, 257, 1 << 21])
def test_cells_are_those_of_the_csv_module_wherever_blocks_end(tmp_path, monkeypatch, block):
    monkeypatch.setattr(csv_table, "BLOCK", block)
    monkeypatch.setattr(csv_table, "_FEW", 2)
    texts = (
        "a", "N/A", "", "7", "12.500\t", "x" * 9, "y" * 300, '"a,b"', '"x""y"', '"l\nm"', '""', '"""1,2"""',
        '"p;\r\nq"',
    )  # fmt: skip
    for seed in range(12):
        draw = random.Random(seed)
        width, line = draw.randrange(2, 7), draw.choice(("\n", "\r\n"))
        names = [f"h{column}" for column in range(width)]
        lines = [names, *(draw.choices(texts, k=width) for _ in range(draw.randrange(40)))]
        content = line.join(map(",".join, lines)) + draw.choice(("", line))
        file = tmp_path / "table.csv"
        file.write_text(content, newline="")
        wanted = [row for row in csv.reader(io.StringIO(content, newline="")) if row][1:]
        table = CsvTable.opened([file], file.name)
        read = table.read(dict.fromkeys(names, "text"))
        for column, name in enumerate(names):
            told = [row[column].strip() for row in wanted]
            assert read[name].values() == [None if text in ("", "N/A") else text for text in told]
        assert not table.problems
        if table.rows:
            rows = np.array(draw.choices(range(table.rows), k=draw.randrange(1, 9)))
            some = table.read_rows(rows, dict.fromkeys(names, "text"))
            assert {name: some[name].values() for name in names} == {name: read[name].values(rows) for name in names}


def test_rows_are_read_again_by_their_offsets(tmp_path):
    """Of one device, from files whose columns differ, among damaged rows."""
    files = [tmp_path / name for name in ("op_summary_slice_0.csv", "op_summary_slice_1.csv")]
    files[0].write_text(
        'Device_id,Name,Duration(us),x\n0,a,1.5,7\n1,b,2,8\n0,short\n\nN/A,c,3,9,beyond\n0,"open\n0,d,4,10\n'
    )
    files[1].write_text("Name,Device_id,x\ne,0,11\nf,1,12\n")
    table = CsvTable.opened(files, "op_summary", device=0)
    kinds = {"Name": "text", "Duration(us)": "time", "x": "number"}
    whole = table.read(kinds)
    assert whole["Name"].values() == ["a", "short", "c", "d", "e"]
    problems = list(table.problems)
    rows = np.array([4, 0, 3, 1, 2])
    some = table.read_rows(rows, kinds)
    assert some["Name"].values() == whole["Name"].values(rows)
    assert some["Duration(us)"].tolist() == whole["Duration(us)"][rows].tolist()
    assert some["x"].tolist()[:3] == [11, 7, 10]
    assert table.problems == problems
    assert len(table.read_rows(rows[:0], kinds)["Name"]) == 0
    files[1].write_text("Name,Device_id,x\n\n\n\n\n\n\n\n\n")
    with pytest.raises(UnreadableError, match="has changed"):
        table.read_rows(rows, kinds)


@pytest.mark.parametrize("most", [0, 1000])
def test_kernels_that_are_read_by_offset_are_those_of_the_whole_file(made, tmp_path, capsys, monkeypatch, most):
    monkeypatch.setattr("tpuprof_tui.sources.ascend.read.kernels._MOST_BY_OFFSET", most)
    output = _rank(made, tmp_path, "kernel_details.csv")
    whole = rows(report(output, capsys, "kernels"), "kernels", "kernels")
    assert any(row["bound"] for row in whole)
    monkeypatch.setattr("tpuprof_tui.sources.ascend.read.kernels._MOST_BY_OFFSET", 1000 - most)
    assert rows(report(output, capsys, "kernels", "--limit", "7"), "kernels", "kernels") == whole[:7]


def test_rows_that_are_asked_for_one_by_one_are_read_together(made, tmp_path, monkeypatch):
    monkeypatch.setattr("tpuprof_tui.sources.ascend.read.kernels._MOST_AT_ONCE", 0)
    table = ask(open_profile(_rank(made, tmp_path, "kernel_details.csv")), "kernels").table("kernels")
    asked = []
    read = CsvTable.read_rows
    monkeypatch.setattr(
        CsvTable, "read_rows", lambda self, some, kinds: asked.append(len(some)) or read(self, some, kinds)
    )
    worker_by_worker = [[values[row] for row in range(20)] for values in table.values]
    assert asked == [min(len(table), 256)]
    assert worker_by_worker == [list(values[:20]) for values in table.values]


def test_of_a_table_that_is_gone_what_was_read_stays(made, tmp_path):
    output = _rank(made, tmp_path, "kernel_details.csv")
    profile = open_profile(output)
    (output / "kernel_details.csv").unlink()
    table = ask(profile, "kernels").table("kernels")
    row = dict(zip((column.key for column in table.columns), table.rows()[0], strict=True))
    assert row["name"]
    assert row["duration_us"] > 0
    assert {row[key] for key in ("bound", "bound_ratio", "input_shapes")} == {None}


def test_times_of_a_spreadsheet_stand_and_are_told(made, tmp_path, capsys):
    output = _rank(made, tmp_path, "kernel_details.csv")
    (output / "memory_record.csv").write_text(
        "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device Type\nPTA,1.69512E+15,1,2,NPU:0\n"
    )
    found = report(output.parent, capsys)
    assert found["problems"][0]["what"] == "Times that a spreadsheet has rounded, line 2."
    assert rows(found, "memory", "curve")[0]["time_us"] == "1695120000000000"
    assert not any("spreadsheet" in each["what"] for each in found["problems"][1:])


@pytest.mark.parametrize("file", ["kernel_details.csv", "op_summary_20260101000000.csv", "operator_memory.csv"])
def test_a_spreadsheet_rounds_times_of_any_table(made, tmp_path, capsys, file):
    kernels = (made / "text" / RANK / OUTPUT / "kernel_details.csv").read_text()
    if file.startswith("operator"):
        kernels = "Name,Size(KB),Allocation Time(us)\na,1,1750000000000001.500\t\nb,2,1750000000000002.500\t\n"
    (output := tmp_path / RANK / OUTPUT).mkdir(parents=True)
    (output / file).write_text(kernels)
    whole = report(output, capsys)
    (output / file).write_text(re.sub(r"17500000\d{8}\.\d{3}\t", "1.75E+15", kernels))
    found = report(output, capsys)
    (problem,) = found["problems"]
    assert problem["what"] == "Times that a spreadsheet has rounded, line 2."
    assert problem["count"] == kernels.count("\t")
    if not file.startswith("operator"):
        told = rows(found, "kernels", "kernels")
        assert {each["start_us"] for each in told} == {"1750000000000000"}
        assert figures(found, "kernels")["total_us"] == figures(whole, "kernels")["total_us"]
        # nothing over time is made of them
        assert (found["workers"][0]["events"], figures(found, "kernels")["busy_us"]) == (0, None)
        assert lacking(found, "free") == {"gaps"}


def test_damage_of_a_table_that_no_view_needs_at_once_is_told(made, tmp_path, capsys):
    output = _rank(made, tmp_path, "kernel_details.csv")
    (output / "l2_cache.csv").write_text("Stream Id,Task Id,Hit Rate,Op Name\n2,11,0.5,a\n2,12,0.5,b\n213,0.5,c\n")
    (problem,) = report(output, capsys, "overview")["problems"]
    assert (problem["what"], problem["file"]) == (
        "Rows that have fewer cells than the header, line 4.", "l2_cache.csv"
    )  # fmt: skip


def test_kernels_that_are_only_a_part_of_the_recorded_table(made, tmp_path, capsys):
    output = _rank(made, tmp_path, "kernel_details.csv", "step_trace_time.csv")
    file = output / "kernel_details.csv"
    file.write_text("\n".join(file.read_text().split("\n")[:40]))
    found = report(output.parent, capsys)
    assert "only a part" in found["problems"][0]["what"]
    assert rows(found, "overview", "steps") == rows(found, "overview", "recorded_steps")


def test_what_a_viewer_adds_to_a_database_changes_nothing(made, tmp_path, capsys):
    output = tmp_path / RANK / OUTPUT
    shutil.copytree(made / "db" / RANK, output.parent)
    before = report(output.parent, capsys)
    file = output / "ascend_pytorch_profiler_0.db"
    with contextlib.closing(sqlite3.connect(file)) as changed:
        changed.execute("create table OVERLAP_ANALYSIS (id integer primary key autoincrement, deviceId, startNs, "
                        "endNs, type)")  # fmt: skip
        changed.execute("insert into OVERLAP_ANALYSIS (deviceId, startNs, endNs, type) values (0, 1, 2, 3)")
        for table in ("connectionCats", "status_info", "of_tomorrow"):
            changed.execute(f"create table {table} (connectionId, cat)")
        for table in ("TASK", "COMMUNICATION_OP", "COMPUTE_TASK_INFO", "CANN_API", "PYTORCH_API"):
            for column in ("waitNs", "depth", "of_tomorrow"):
                changed.execute(f"alter table {table} add column {column} integer default 7")
        changed.commit()
    content = file.read_bytes()
    assert report(output.parent, capsys) == before
    assert file.read_bytes() == content
    assert sorted(path.name for path in output.iterdir()) == ["analysis.db", file.name]


def test_kernels_that_are_only_a_part_of_what_was_counted(tmp_path, capsys):
    (tmp_path / "op_summary.csv").write_text(
        "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\nadd,Add,AI_CORE,1700000000000000.000\t,5\n"
    )
    (tmp_path / "op_statistic.csv").write_text(
        "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us)\nAdd,AI_CORE,1000,5000,5,5,5\n"
    )
    found = report(tmp_path, capsys)
    assert [each["what"] for each in found["problems"]] == [
        "The kernels here are only a part of those in op_statistic."
    ]  # fmt: skip
    (told,) = rows(found, "operators", "by_type", tmp_path.name)
    assert (told["count"], told["total_us"]) == (1000, 5000)


def test_allocations_of_less_than_nothing_are_kept_and_told(tmp_path, capsys):
    (tmp_path / "operator_memory.csv").write_text(
        "Name,Size(KB),Allocation Time(us),Release Time(us),Duration(us)\na,-8,1700000000000001.5\t,,\n"
        "b,4,1700000000000003.5\t,1700000000000002.5\t,-1\nc,2,1700000000000003.5\t,1700000000000004.5\t,1\n"
    )
    found = report(tmp_path, capsys, "memory")
    (problem,) = found["problems"]
    assert (problem["what"], problem["count"]) == ("Allocations of negative size, or released too early.", 2)
    told = rows(found, "memory", "operators", tmp_path.name)
    assert [(each["name"], each["size_kb"]) for each in told] == [("b", 4), ("c", 2), ("a", -8)]


def test_a_database_whose_schema_is_no_text_is_a_problem(made, tmp_path, capsys):
    shutil.copytree(made / "db" / RANK, tmp_path / RANK)
    (file,) = (tmp_path / RANK / OUTPUT).glob("ascend_pytorch_profiler_*.db")
    file.write_bytes(re.sub(rb"(?i)create table", b"create tabl\x87", file.read_bytes(), count=1))
    assert "is not a readable database" in report(tmp_path, capsys)["problems"][0]["what"]


def test_a_database_that_was_changed_or_cut(made, tmp_path):
    import sqlite3

    source = next((made / "db" / RANK / OUTPUT).glob("ascend_pytorch*.db"))
    file = tmp_path / source.name
    shutil.copy(source, file)
    before = open_profile(file)
    with sqlite3.connect(file) as connection:
        # what the vendor's viewer leaves behind
        connection.execute("create table OVERLAP_ANALYSIS (id, deviceId, startNs, endNs, type)")
        connection.execute("alter table TASK add column depth")
        connection.execute("update TASK set startNs = 'never' where globalTaskId = 1")
    connection.close()
    size = file.stat().st_size
    after = open_profile(file)
    assert after.event_count == before.event_count - 1
    assert any("without a time" in each.what for each in after.problems)
    assert file.stat().st_size == size
    file.write_bytes(source.read_bytes()[:300])
    with pytest.raises(UnreadableError):
        open_profile(file)


@pytest.mark.parametrize(
    "text", ["0.0005", "1736408883841224.22146875", "-3.5", "7", "1e3", "0.00125", " 12.5\t", '"8.25"']
)
def test_numbers_become_ns_without_binary_floats(text):
    exact = Decimal(text.strip().strip('"')) * 1000
    assert numbers_in(text.encode() + b",").nanoseconds().tolist() == [int(exact.to_integral_value("ROUND_HALF_EVEN"))]
    assert numbers_in(text.encode() + b",").floats().tolist() == [float(text.strip().strip('"'))]


@pytest.mark.parametrize("text", ["N/A", "", "x", "1.2.3", "--1", "1-2", "9" * 70, "1e999999", "."])
def test_what_is_no_number_is_missing(text):
    found = numbers_in(text.encode() + b",1,")
    assert found.nanoseconds().tolist() == [INT_MISSING, 1000]


def test_secrets_in_metadata_are_said_nowhere(made, tmp_path, capsys):
    rank = tmp_path / RANK
    shutil.copytree(made / "text" / RANK, rank)
    secret = "hf_0123456789abcdef"
    (rank / "profiler_metadata.json").write_text(
        json.dumps({"ENV_VARIABLES": {"HF_TOKEN": secret, "ASCEND_RT_VISIBLE_DEVICES": "0"}})
    )
    info = rank / "profiler_info_0.json"
    info.write_text(json.dumps({**json.loads(info.read_text()), "environment": {"API_KEY": secret}}))
    told = []
    for command in (["report", str(rank), "--json"], ["info", str(rank), "--json"], ["summary", str(rank)]):
        assert main(command) == 0
        told.append(capsys.readouterr().out)
    out = tmp_path / "out"
    assert main(["export", str(rank), str(out), "--only", "xlsx,web,pftrace"]) == 0
    capsys.readouterr()
    files = [path for path in out.rglob("*") if path.is_file()]
    assert len(files) > 2
    for content in [*map(str.encode, told), *(path.read_bytes() for path in files)]:
        assert secret.encode() not in content
    for path in files:
        if path.suffix in (".xlsx", ".zip"):
            with zipfile.ZipFile(path) as archive:
                assert not any(secret.encode() in archive.read(name) for name in archive.namelist())


# -- findings


@pytest.mark.parametrize("waits", [(0.02, 4.0), (0.02, 0.02)])
def test_rules_about_ranks_of_msprof_analyze_alone(tmp_path, capsys, waits):
    told = {}
    for rank, wait in enumerate(waits):
        times = {"Elapse Time(ms)": 5, "Transit Time(ms)": 1, "Wait Time(ms)": wait,
                 "Synchronization Time(ms)": wait if wait > 1 else 0, "Idle Time(ms)": 0}  # fmt: skip
        links = {"HCCS": {"Transit Size(MB)": 10, "Transit Time(ms)": wait}}
        told[str(rank)] = {"Communication Time Info": times, "Communication Bandwidth Info": links}
    text = json.dumps({"p2p": {"step1": {"hcom_send__1_0@1": told, "Total Op Info@1": told}}})
    (tmp_path / "cluster_communication.json").write_text(text)
    found = {each["rule"]: each["gain_us"] for each in rows(report(tmp_path, capsys), "findings", "findings")}
    # sums count nothing besides what they are sums of
    speeds = [10 / wait for wait in waits]
    slow = 1000 * waits[1] * (1 - 2 * speeds[1] / sum(speeds))
    assert found == ({"slow_rank": 4000, "slow_link": pytest.approx(slow)} if waits[1] > 1 else {})


def test_an_npu_has_the_article_that_is_spoken():
    assert [Word(each).with_article for each in ("NPU", "GPU", "core", "engine", "unit", "event")] == [
        "an NPU", "a GPU", "a core", "an engine", "a unit", "an event"]  # fmt: skip


# -- what was really recorded


def test_a_real_run_of_two_ranks(tmp_path, capsys):
    found = report(unpacked_trace("ascend_level1_text", tmp_path), capsys)
    assert not found["problems"]
    assert [each["rank"] for each in found["workers"]] == [0, 1]
    assert found["workers"][0]["start"] == "1736408883674584.732"
    told = figures(found, "overview")
    assert (told["computing_us"], told["communication_us"], told["free_us"]) == (8873.756, 105991.878, 25744.05)
    assert told["difference_us"] < 0.001
    free = figures(found, "free")
    assert (free["host_us"], free["dispatch_us"], free["device_us"], free["unknown_us"]) == (
        18728.431, 2327.645, 4687.974, 0
    )  # fmt: skip
    kernels = figures(found, "kernels")
    assert (kernels["kernels"], kernels["first_start_us"]) == (191, "1736408883704643.212")
    assert figures(found, "api")["launches_HostToDevice"] == 215
    assert len(rows(found, "operators", "by_name")) == 133


def test_a_selection_counts_as_the_exporter_does(tmp_path, capsys):
    """AI Core times leave out kernels of both cores (MIX_AIV)."""
    found = report(unpacked_trace("ascend_level1_text", tmp_path), capsys, "operators", "--step", "50")
    row = next(row for row in rows(found, "operators", "by_name") if row["name"] == "aten::nll_loss")
    assert (row["device_total_us"], row["device_total_aicore_us"]) == (37.181, 25)


def test_shapes_that_are_empty_texts_are_missing(made, tmp_path, capsys):
    output = _rank(made, tmp_path, "trace_view.json")
    content = (output / "trace_view.json").read_text()
    (output / "trace_view.json").write_text(content.replace('"Input Dims": "32,128"', '"Input Dims": ""', 3))
    found = report(output.parent, capsys, "operators")
    assert {row["input_shapes"] for row in rows(found, "operators", "by_name_shape")} == {None, "32,128"}


def test_hit_rates_are_percent_where_files_hold_shares(tmp_path):
    profile = open_profile(unpacked_trace("ascend_level1_text", tmp_path))
    rates = [counter for counter in profile.counters if counter.name == "LLC 0 Read/Hit Rate"]
    assert [(counter.unit, counter.values[0]) for counter in rates] == [("%", 87.5), ("%", 89.1)]


def test_a_task_that_stands_for_its_subtasks_is_no_time_of_its_own(made, tmp_path, capsys):
    rank = tmp_path / RANK
    shutil.copytree(made / "db" / RANK, rank)
    before = report(rank, capsys, "lanes")
    with contextlib.closing(sqlite3.connect(rank / OUTPUT / "ascend_pytorch_profiler_0.db")) as changed:
        # a task of FFTS+ around all subtasks of a kernel
        changed.execute("insert into STRING_IDS values (9001, 'KERNEL_AIVEC')")
        changed.execute("update TASK set contextId = 0 where globalTaskId = 0")
        changed.execute("insert into TASK (startNs, endNs, deviceId, connectionId, globalTaskId, taskType, contextId, "
                        "streamId, taskId) select startNs, endNs, deviceId, connectionId, 9000, 9001, "
                        "4294967295, streamId, taskId from TASK where globalTaskId = 0")  # fmt: skip
        changed.commit()
    found = report(rank, capsys, "lanes")
    for table, keys in (("lanes", ("busy_us", "wait_us", "sync_us", "idle_us")), ("kinds", ("busy_us", "sync_us"))):
        told = [[[row[key] for key in keys] for row in rows(each, "lanes", table)] for each in (before, found)]
        assert told[0] == told[1]
    assert found["workers"][0]["events"] == before["workers"][0]["events"] + 1


def test_all_of_a_step_stands_in_80_cells_under_the_names_of_the_files(tmp_path, capsys):
    path = unpacked_trace("ascend_level1_text", tmp_path)
    assert main(["report", str(path), "overview"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = next(place for place, line in enumerate(lines) if line.startswith("Step "))
    assert lines[heads].split()[:5] == ["Step", "Comp.", "Comm.", "Overlap", "Exposed"]
    assert lines[heads + 2].split() == [
        "50", "8.874", "105.992", "4.029", "101.963", "25.744", "136.581", "0.000", "101.963", "17.903",
    ]  # fmt: skip
    assert max(map(len, lines[heads : heads + 3])) == 80
    told = report(path, capsys, "overview")["views"]["overview"]["workers"][RANK]["tables"]["steps"]["columns"]
    assert [each["title"] for each in told][4] == "Communication(Not Overlapped)"
    assert main(["report", str(path), "findings"]) == 0
    findings = capsys.readouterr().out
    assert "NPU 0" in findings
    assert "NPU 1" in findings


@pytest.mark.parametrize("path", [RANK, ""])
async def test_steps_stand_below_the_findings_of_a_small_screen(tmp_path, monkeypatch, path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    async with opened(open_profile(unpacked_trace("ascend_level1_text", tmp_path) / path), (80, 24)) as pilot:
        await press(pilot, "3")
        lines = [line.split() for line in frame(pilot.app).splitlines()]
    # step, Computing, Communication, Overlapped, Not Overlapped, Free
    assert ["50", "8.874", "105.992", "4.029", "101.963", "25.744"] in [
        line[first : first + 6] for line in lines for first in (0, 2)
    ]  # fmt: skip


async def test_the_pipe_that_binds_a_kernel_is_dim_or_strong_by_its_ratio(made, monkeypatch, tmp_path):
    """Ratios of the sample: 0.33, 0.61, 0.74 of the vector pipe, 0.82 of the cube."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    levels = {"82.0%": "strong", "74.0%": "text", "61.0%": "text", "33.0%": "quiet"}
    async with opened(open_profile(made / "text" / RANK), (200, 60)) as pilot:
        await press(pilot, "colon k e r enter")
        pane, found = explorer(pilot).query_one(SummaryPane), set()
        for _ in range(6):
            for line in (pane.render_line(y) for y in range(pane.size.height)):
                ratio = next((each for each in levels if f" {each}" in line.text), "")
                styles = [each.style for each in line if each.text.strip() in ("aic_mac", "aiv_vec")]
                found |= {(ratio, style.color, style.bold) for style in styles if ratio and style is not None}
            await press(pilot, "pagedown")
        palette = pane.palette
    wanted = {ratio: getattr(palette, level) for ratio, level in levels.items()}
    assert found == {(ratio, style.color, style.bold) for ratio, style in wanted.items()}


def test_metrics_and_stacks_are_columns_of_events(made, tmp_path):
    for profile in (open_profile(made / "text" / RANK), open_profile(made / "db" / RANK)):
        lane = profile.lane("stream", 0)
        assert lane is not None
        bound = profile.strings["bound"].texts(lane["bound"])
        assert set(bound) == {"aic_mac", "aiv_vec"}
        assert lane["bound_ratio"].tolist() == [max(each) for each in zip(
            lane["aic_mac_ratio"].tolist(), lane["aiv_vec_ratio"].tolist(), strict=True)]  # fmt: skip
        cubes = [text == "MatMulV2" for text in profile.strings["type"].texts(lane["type"])]
        assert cubes == [text == "aic_mac" for text in bound]
    text = open_profile(made / "text" / RANK)
    thread = text.lane("python", 100)
    assert thread is not None
    assert set(text.strings["stack"].texts(thread["stack"])) == {"train.py(12): step", ""}


@pytest.mark.parametrize("most", [20_000, 0])
@pytest.mark.parametrize("form", ["text", "tables", "db"])
def test_every_metric_of_a_file_can_be_sorted_and_filtered_by(made, tmp_path, capsys, monkeypatch, form, most):
    monkeypatch.setattr("tpuprof_tui.sources.ascend.read.kernels._MOST_AT_ONCE", most)
    rank = tmp_path / RANK
    shutil.copytree(made / form / RANK, rank)
    file = rank / OUTPUT / "kernel_details.csv"
    if form == "db":
        with contextlib.closing(sqlite3.connect(rank / OUTPUT / "ascend_pytorch_profiler_0.db")) as changed:
            changed.execute("insert into STRING_IDS values (9001, 'ub_read_bw')")
            changed.execute("insert into TASK_PMU_INFO (globalTaskId, name, value) select globalTaskId, 9001, "
                            "globalTaskId * 1.5 from COMPUTE_TASK_INFO")  # fmt: skip
            changed.commit()
    else:
        head, *lines = file.read_text().splitlines()
        told = [f"{line},{'N/A' if 'HCCL' in line else number * 1.5},foo" for number, line in enumerate(lines)]
        file.write_text("\n".join([f"{head},ub_read_bw(GB/s),Name(odd)", *told]))
    name = "ub_read_bw" if form == "db" else "ub_read_bw(GB/s)"
    wanted = sorted((each[name] for each in rows(report(rank, capsys, "kernels"), "kernels", "kernels")
                     if each[name] is not None), reverse=True)  # fmt: skip
    columns = ("--columns", "name,ub_read_bw", "--limit", "100")
    assert main(["instructions", str(rank), "--sort", "ub_read_bw:desc", "--filter", "ub_read_bw>=0", *columns]) == 0
    found = [json.loads(line)["ub_read_bw"] for line in capsys.readouterr().out.splitlines()]
    assert found == wanted
    assert len(found) == 72
    # a row alone, as the detail pane asks for it
    profile = open_profile(rank)
    lane = next(lane for lane in profile.lanes if lane.label == "Stream 2")
    alone = [lane.take("ub_read_bw", np.array([row]))[0] for row in range(3)]
    assert alone == lane["ub_read_bw"][:3].tolist() == sorted(alone)
    assert profile.vocabulary.schema["name"].title == "Name"


def test_events_of_the_device_are_of_the_step_that_the_views_count_them_in(made, capsys):
    """From the first work that starts in a step to that of the next, copies and planes too."""
    for form in ("text", "db"):
        profile = open_profile(made / form / RANK)
        steps = rows(report(made / form / RANK, capsys, "overview"), "overview", "steps")
        table = profile.table("steps", 0)
        assert table is not None
        lows = table["low"].tolist()
        assert len(lows) == len(steps) == 3
        for lane in profile.lanes:
            if lane.kind == "stream" and len(lane):
                wanted = [next((number for number, low in reversed(list(enumerate(lows))) if start >= low), INT_MISSING)
                          for start in lane["start"].tolist()]  # fmt: skip
                assert lane["step"].tolist() == wanted
        for number in range(3):
            found = report(made / form / RANK, capsys, "lanes", "kernels", "--step", str(number))
            kinds = {row["kind"]: row["count"] for row in rows(found, "lanes", "kinds")}
            kernels = [row["core"] for row in rows(found, "kernels", "kernels")]
            assert kinds["communication"] == sum(core == "HCCL" for core in kernels)
            assert kinds["stream"] >= sum(core != "HCCL" for core in kernels) > 0


def test_times_of_operators_are_columns_of_events(made, capsys):
    for form in ("text", "db"):
        columns = ("--columns", "name,host_self,device_self,device_total,device_self_aicore", "--limit", "1000")
        assert (
            main(["instructions", str(made / form / RANK), "--filter", "host_total>0 & !ProfilerStep", *columns]) == 0
        )
        calls = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        named = rows(report(made / form / RANK, capsys, "operators"), "operators", "by_name")
        assert {row["name"] for row in named} == {call["name"] for call in calls}
        for row in named:
            own = [call for call in calls if call["name"] == row["name"]]
            assert len(own) == row["calls"]
            for key in ("host_self", "device_self", "device_total", "device_self_aicore"):
                assert sum(call[key] for call in own) == round(1000 * row[f"{key}_us"])


#: Columns of kernels that are read again, by key.
_DETAILS = ("stream", "task", "model", "shapes", "op_state", "input_formats", "output_shapes")


@pytest.mark.parametrize("most", [20_000, 0])
@pytest.mark.parametrize("form", ["text", "tables", "db"])
def test_stream_task_shapes_and_formats_are_columns_of_events(made, tmp_path, capsys, monkeypatch, form, most):
    monkeypatch.setattr("tpuprof_tui.sources.ascend.read.kernels._MOST_AT_ONCE", most)
    rank = tmp_path / RANK
    shutil.copytree(made / form / RANK, rank)
    file = rank / OUTPUT / "kernel_details.csv"
    if form == "db":
        with contextlib.closing(sqlite3.connect(rank / OUTPUT / "ascend_pytorch_profiler_0.db")) as changed:
            for column in ("inputFormats", "outputShapes"):
                changed.execute(f"alter table COMPUTE_TASK_INFO add column {column}")
            changed.execute("insert into STRING_IDS values (9001, 'ND;ND'), (9002, '7')")
            changed.execute("update COMPUTE_TASK_INFO set inputFormats = 9001, outputShapes = 9002")
            changed.commit()
    else:
        head, *lines = file.read_text().splitlines()
        file.write_text("\n".join([f"{head},Input Formats,Output Shapes", *(f"{line},ND;ND,7" for line in lines)]))
    state = () if form == "db" else ("dynamic",)
    columns = ("--columns", ",".join(("name", "type", *_DETAILS)), "--limit", "100")
    condition = "stream=2 & type~MatMul & input_formats=ND;ND & output_shapes=7 & task>0"
    assert main(["instructions", str(rank), "--filter", condition, "--sort", "output_shapes", *columns]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    wanted = [row for row in rows(report(rank, capsys, "kernels"), "kernels", "kernels") if row["type"] == "MatMulV2"]
    assert len(found) == len(wanted) == 18
    assert {row["task"] for row in found} == {row["task"] for row in wanted}
    assert {(row["shapes"], row["model"], row["op_state"]) for row in found} == {
        (row["input_shapes"], row["model"], *(state or (None,))) for row in wanted
    }
    assert figures(report(rank, capsys, "kernels", "--filter", condition), "kernels")["kernels"] == 18
    # rows alone, as the table and the detail pane ask for them, before anything asks for all
    profile = open_profile(rank)
    lane = next(lane for lane in profile.lanes if lane.label == "Stream 2")
    for key in _DETAILS if form != "db" else _DETAILS[:4]:
        alone = [lane.take(key, np.array([row]))[0] for row in (5, 3)]
        strings = profile.strings.get(key)
        told = strings.texts(np.array(alone)) if strings else alone
        assert told == (strings.texts(lane[key][[5, 3]]) if strings else lane[key][[5, 3]].tolist())
    if form != "db":
        profile = open_profile(rank)
        file.unlink()
        lane = next(lane for lane in profile.lanes if lane.label == "Stream 2")
        assert set(lane["output_shapes"].tolist()) == {-1}
        assert set(lane["task"].tolist()) == {INT_MISSING}


def _plain(value: Any) -> Any:
    """What tells records of arrays apart."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.tolist()
    if isinstance(value, tuple):
        return [*map(_plain, value)]
    return {key: _plain(each) for key, each in asdict(value).items()} if isinstance(value, Struct) else repr(value)


def test_empty_shapes_and_stacks_of_a_timeline_are_none(tmp_path):
    path = tmp_path / "trace_view.json"
    event = {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": "1", "dur": 2}
    events = [{**event, "args": {"Input Dims": dims, "Call stack": stack}}
              for dims, stack in (("", "f.py(1): g"), ("2,3", ""))]  # fmt: skip
    path.write_text(json.dumps(events))
    timeline = trace_view.read_trace_view([path], path.name)
    for codes, texts in ((timeline.shapes, [None, "2,3"]), (timeline.stacks, ["f.py(1): g", None])):
        assert [timeline.texts[code] if code >= 0 else None for code in codes.tolist()] == texts


def test_lone_surrogates_in_a_timeline_are_shown_as_question_marks(tmp_path):
    path = tmp_path / "trace_view.json"
    path.write_text(
        r'[{"ph": "X", "name": "a\ud800", "pid": 1, "tid": 1, "ts": "1", "dur": 2, "args": {"level": "\ud800"}}]'
    )
    timeline = trace_view.read_trace_view([path], path.name)
    assert timeline.names == ("a?",)
    assert timeline.kinds == ("?",)


@pytest.mark.parametrize(("process", "count"), [(in_process, 2), (in_process, 5), (processes.child_processes, 2)])
@pytest.mark.parametrize(
    ("place", "old", "new"),
    [
        (0, r"(?!)", ""),
        (0, r'"id": "?n?(\d+)"?', r'"id": "x\1"'),
        (0, r'"ph": "X"', '"ph": "C"'),
        (0, r'(\d+\.\d+)("[^{}]*"args": \{"[^{}]*)', r'\1\2, "Call stack": "\1"'),
        (0, r'"process_name"(.*)"name": "', r'"process_labels"\1"labels": "NPU 3'),
        (0, r'"thread_name"(.*"tid": (\d+).*\{)', r'"thread_sort_index"\1"sort_index": -\2, '),
        (0.8, r'"ts": "17', '"ts": "x7'),
        (0.8, r'"dur": ', '"dur": -'),
        (0.8, r'"name": "', '"name": "un"quoted '),
        (0.3, r'"ph": "X"', '"ph": "X" "a'),
        (0.7, r"(?s).*", ""),  # ends there
        (0.3, r"(?s).*", ""),
        (0.4, r"\},\s*\{", "}], [{"),
        (0.6, r"\},\s*\{", "}], [{"),
    ],
)
def test_sections_of_a_timeline_are_read_by_other_processes(tmp_path, monkeypatch, process, count, place, old, new):
    text = (SAMPLES / "ascend_synthetic" / RANK / OUTPUT / "trace_view.json").read_text()
    at = int(len(text) * place)
    path = tmp_path / "trace_view.json"
    path.write_text(text[:at] + re.sub(old, new, text[at:], count=int(place > 0)))
    alone = trace_view.read_trace_view([path], path.name)
    begun = []

    def told(others: int) -> Any:
        begun.append(others)
        return process(others)

    by_several(monkeypatch, told, count)
    seen: list[tuple[int, int]] = []
    both = trace_view.read_trace_view([path], path.name, lambda *done: seen.append(done))
    assert _plain(both) == _plain(alone)
    assert len(begun) == 1
    assert max(seen) <= (path.stat().st_size,) * 2
    monkeypatch.setattr(collector, "memory_bytes", lambda: path.stat().st_size)
    assert _plain(trace_view.read_trace_view([path], path.name)) == _plain(alone)
    assert len(begun) == 1, "nor where memory is short"


@pytest.mark.parametrize("rows", [50, 32])
def test_a_table_of_kernels_that_was_cut_behind_a_row_is_told(tmp_path, rows):
    """Sums over it are less than those over the timeline."""
    run = tmp_path / RANK
    shutil.copytree(SAMPLES / "ascend_synthetic" / RANK, run)
    table = run / OUTPUT / "kernel_details.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[: rows + 1]))
    told = [each for each in open_profile(run).problems if "behind the table's last kernel" in each.what]
    assert [each.lost for each in told] == ([] if rows == 50 else [17])
