"""Databases of Nsight Systems: figures equal those of the same run as a PyTorch trace; damaged and hostile ones."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import nsys_database
import numpy as np
import pytest
import torch_trace
from nsys_database import Database, global_id

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import INT_MISSING, Severity
from tpuprof_tui.sources.catalog import Catalog
from tpuprof_tui.sources.sqlite import SqliteFile
from tpuprof_tui.views.registry import views_of
from tpuprof_tui.views.report import report_record, workers_of

PROCESS = 4000
THREAD = global_id(PROCESS, 4001)


@pytest.fixture(scope="module", params=[2022, 2025])
def version(request):
    return request.param


@pytest.fixture(scope="module")
def run(tmp_path_factory, version):
    """Two ranks as databases, and the same as traces of PyTorch."""
    folder = tmp_path_factory.mktemp(f"nsys{version}")
    nsys_database.write_run(folder / "nsys", ranks=2, version=version)
    torch_trace.write_run(folder / "torch", ranks=2)
    return folder


def reported(path: Path) -> dict:
    profile = open_profile(path)
    return report_record(Query(Session(profile)), views_of(profile.vocabulary), workers_of(profile))["views"]


def written(path: Path, version: int = 2025, **tables: list[dict]) -> Path:
    """A database with some rows; texts of names become ids."""
    database = Database(path, version)
    for table, rows in tables.items():
        for row in rows:
            for key in ("nameId", "demangledName", "shortName", "textId"):
                if isinstance(row.get(key), str):
                    row[key] = database.string(row[key])
        database.add(table, rows)
    database.close()
    return path


def kernel(start: int, end: int, correlation: int = 1, **more) -> dict:
    return {"start": start, "end": end, "deviceId": 0, "streamId": 7, "correlationId": correlation,
            "globalPid": global_id(PROCESS), "demangledName": "void k<float>(int)", "shortName": "k",
            **more}  # fmt: skip


def call(start: int, end: int, correlation: int = 1, name: str = "cudaLaunchKernel_v7000") -> dict:
    return {"start": start, "end": end, "globalTid": THREAD, "correlationId": correlation, "nameId": name}


def pushed(start: int, end: int | None, name: str | None, **more) -> dict:
    return {"start": start, "end": end, "eventType": 59, "globalTid": THREAD, "textId": name, **more}


def lane(profile, label: str):
    return next(each for each in profile.lanes if each.label == label)


def names(profile, label: str) -> list[str]:
    return [profile.text("name", code) for code in lane(profile, label)["name"].tolist()]


# -- figures


@pytest.mark.parametrize("view", ["kernels", "streams", "launches", "overview", "operators", "memory"])
def test_figures_are_those_of_the_same_run_as_a_pytorch_trace(run, view):
    found, wanted = reported(run / "nsys")[view]["workers"], reported(run / "torch")[view]["workers"]
    for ours, theirs in zip(found.values(), wanted.values(), strict=True):
        figures = dict(ours["figures"]), dict(theirs["figures"])
        for each in figures:
            # ranges of NVTX are operators, annotations among them
            each.pop("cpu_us", None), each.pop("other_us", None)
        assert figures[0] == pytest.approx(figures[1])
        for name in ("by_name", "streams", "copies", "categories", "devices"):
            if name in theirs["tables"] and view != "operators":
                assert rows_of(ours["tables"][name]) == rows_of(theirs["tables"][name]), name


def rows_of(table: dict) -> list[dict]:
    """Rows by the keys of columns, without what Nsight Systems does not record, and shares of operators."""
    unlike = ("device", "occupancy", "peak_reserved_bytes", "tensor_core_share")
    keys = [each["key"] for each in table["columns"]]
    # PyTorch writes blocks per SM with six digits
    return [{key: f"{value:.5g}" if isinstance(value, float) else value for key, value in zip(keys, row, strict=True)
             if key not in unlike} for row in table["rows"]]  # fmt: skip


def test_steps_ranks_and_clock(run):
    profile = open_profile(run / "nsys")
    assert [worker.rank for worker in profile.workers] == [0, 1]
    assert profile.steps.number.tolist() == [0, 1, 2] * 2
    assert profile.wall_ns is not None
    assert {each.name for each in profile.counters} >= {"GPU0 allocated"}
    assert not [each for each in profile.problems if "SCHED_EVENTS" not in each.what]


def test_processes_of_one_database_are_recordings_of_their_own(tmp_path, version):
    (path,) = nsys_database.write_run(tmp_path, ranks=2, together=True, version=version)
    profile = open_profile(path)
    assert len(profile.workers) == 2
    # each process calls its card 0; only the later schema tells which it is
    titles = [profile.groups.title(group) for group in profile.units]
    assert [title.rpartition(" ")[2] for title in titles] == (["0", "1"] if version == 2025 else ["0", "0"])
    work = [each for each in profile.lanes if each.kind == "stream"]
    assert all((each["call_start"] != INT_MISSING).all() and (each["call_start"] <= each["start"]).all()
               for each in work)  # fmt: skip


# -- what the tables say


def test_columns_of_kernels_and_copies(tmp_path):
    path = written(
        tmp_path / "a.sqlite",
        CUPTI_ACTIVITY_KIND_KERNEL=[
            kernel(100, 300, gridX=216, gridY=1, gridZ=1, blockX=128, blockY=2, blockZ=1, registersPerThread=64,
                   staticSharedMemory=1024, dynamicSharedMemory=48, graphNodeId=77)],
        CUPTI_ACTIVITY_KIND_MEMCPY=[{**kernel(400, 500, 2), "bytes": 4096, "copyKind": 2, "srcKind": 2, "dstKind": 1}],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(10, 20), call(30, 40, 2, "cudaMemcpyAsync_v3020")],
        TARGET_INFO_GPU=[{"id": 0, "name": "X", "smCount": 108}],
    )  # fmt: skip
    profile = open_profile(path)
    work = lane(profile, "stream 7")
    assert names(profile, "stream 7") == ["void k<float>(int)", "Memcpy DtoH (Device -> Pinned)"]
    assert [profile.text(key, int(work[key][0])) for key in ("grid", "block")] == ["[216,1,1]", "[128,2,1]"]
    assert [int(work[key][0]) for key in ("registers", "shared_memory", "graph_node", "correlation")] == [
        64, 1072, 77, 1]  # fmt: skip
    assert work["blocks_per_sm"][0] == 2.0
    assert work["bytes"].tolist() == [INT_MISSING, 4096]
    assert work["delay"].tolist() == [80, 360]
    assert names(profile, "4001") == ["cudaLaunchKernel", "cudaMemcpyAsync"]
    told = work.arguments(0)
    assert (told["demangledName"], told["shortName"], told["graphNodeId"]) == ("void k<float>(int)", "k", 77)


def test_ranges_nest_by_thread_and_those_that_cross_have_a_lane_of_their_own(tmp_path):
    path = written(
        tmp_path / "a.sqlite",
        NVTX_EVENTS=[
            pushed(0, 1000, "outer"), pushed(100, 200, None, text="inner"), pushed(300, None, "open"),
            {**pushed(150, 700, "crossing"), "eventType": 60}, {**pushed(50, None, "mark"), "eventType": 34},
            {**pushed(0, None, "NCCL"), "eventType": 75, "domainId": 3}, pushed(500, 600, "ncclAllReduce", domainId=3),
        ],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(900, 950), kernel(960, 970, 2, demangledName="ncclDevKernel_AllReduce")],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(110, 120), call(510, 520, 2)],
    )  # fmt: skip
    profile = open_profile(path)
    thread = lane(profile, "4001")
    depth = dict(zip(names(profile, "4001"), thread["depth"].tolist(), strict=True))
    assert (depth["outer"], depth["inner"], depth["mark"]) == (0, 1, 1)
    assert names(profile, "NVTX ranges") == ["crossing"]
    work = lane(profile, "stream 7")
    assert [profile.text("operator", code) for code in work["operator"].tolist()] == ["inner", "ncclAllReduce"]
    types = dict(zip(names(profile, "4001"), (profile.text("type", code) for code in thread["type"].tolist()),
                     strict=True))  # fmt: skip
    assert (types["outer"], types["ncclAllReduce"]) == ("nvtx", "collective_comm")
    assert [each.what for each in profile.problems] == ["NVTX ranges that were not ended."]
    # an open range lasts as long as anything was recorded
    assert int(thread["end"][names(profile, "4001").index("open")]) == 1000


@pytest.mark.parametrize(
    ("ranges", "numbers"),
    [
        ([f"iteration {number}" for number in (5, 6, 7)], [5, 6, 7]),
        ([f"Training Step: {number}/100" for number in (1, 2, 3)], [1, 2, 3]),
        ([f"ProfilerStep#{number}" for number in (8, 9, 10)], [8, 9, 10]),
        ([f"execute_context_{number}({512})_generation_2(2)" for number in (0, 1, 1)], [0, 1, 2]),
        (["forward", "backward", "layer 3"], []),
        (["step[EXTEND bs=2 toks=512]", "step[DECODE bs=4]", "step[DECODE bs=5]"], [0, 1, 2]),
    ],
)
def test_ranges_that_look_like_steps_are_steps(tmp_path, ranges, numbers):
    rows = [pushed(1000 * place, 1000 * place + 900, name) for place, name in enumerate(ranges)]
    rows += [pushed(1000 * place + 10, 1000 * place + 20, f"batch {place}") for place in range(3) if numbers]
    path = written(
        tmp_path / "a.sqlite",
        NVTX_EVENTS=rows,
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1000 * place + 500, 1000 * place + 800, place) for place in range(3)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(1000 * place + 100, 1000 * place + 110, place) for place in range(3)],
    )
    profile = open_profile(path)
    assert profile.steps.number.tolist() == numbers
    if numbers:
        assert lane(profile, "stream 7")["step"].tolist() == numbers


def test_waits_graphs_and_system_calls(tmp_path):
    path = written(
        tmp_path / "a.sqlite",
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(100, 300)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(10, 20), call(30, 310, 2, "cudaStreamSynchronize_v3020")],
        OSRT_API=[{"start": 400, "end": 500, "globalTid": THREAD, "nameId": "poll"}],
    )
    with closing(sqlite3.connect(path)) as connection, connection:
        own = f"{global_id(PROCESS)}, 0, 7"
        connection.executescript(f"""
            create table CUPTI_ACTIVITY_KIND_SYNCHRONIZATION
                (start, end, globalPid, deviceId, streamId, correlationId, syncType);
            insert into CUPTI_ACTIVITY_KIND_SYNCHRONIZATION values (40, 305, {own}, 2, 3);
            create table CUPTI_ACTIVITY_KIND_GRAPH_TRACE
                (start, end, globalPid, deviceId, streamId, correlationId, graphId);
            insert into CUPTI_ACTIVITY_KIND_GRAPH_TRACE values (600, 700, {own}, 9, 12);
            insert into DIAGNOSTIC_EVENT values (1, 1, 2, 2, 'Some events were lost.', 0);
            insert into ENUM_DIAGNOSTIC_SEVERITY_LEVEL values (2, 'Warning', 'Warning');
            create table CUBLAS_EVENTS (start, end, globalTid, nameId);
            insert into CUBLAS_EVENTS select 5, 25, {THREAD}, id from StringIds where value = 'poll';
            create table VULKAN_API (start, end); insert into VULKAN_API values (1, 2);
        """)
    profile = open_profile(path)
    assert names(profile, "stream 7") == ["void k<float>(int)", "CUDA graph 12"]
    assert names(profile, "waits 7") == ["Stream Sync"]
    told = [each.what for each in profile.problems]
    assert [each.partition(":")[0] for each in told] == [
        "CUDA graphs were recorded as a whole", "Tables that are not shown", "Nsight Systems warned"]  # fmt: skip
    assert told[1].endswith("VULKAN_API.")
    types = {profile.text("type", code) for code in lane(profile, "4001")["type"].tolist()}
    assert types == {"cuda_runtime", "osrt", "cublas"}
    links = profile.links()
    assert {links.kinds[kind] for kind in links.kind.tolist()} == {"launch", "synchronise"}


def test_memory_that_was_allocated_before_the_recording_does_not_count(tmp_path):
    def memory(start: int, operation: int, address: int, size: int, kind: int = 2) -> dict:
        return {"start": start, "globalPid": global_id(PROCESS), "deviceId": 0, "address": address, "bytes": size,
                "memKind": kind, "memoryOperationType": operation}  # fmt: skip

    path = written(
        tmp_path / "a.sqlite",
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(0, 1000)],
        CUDA_GPU_MEMORY_USAGE_EVENTS=[
            memory(10, 1, 0xBAD, 999), memory(20, 0, 1, 100), memory(30, 0, 2, 50), memory(40, 1, 1, 100),
            memory(50, 0, 9, 7, kind=1), memory(60, 1, 1, 100)],
    )  # fmt: skip
    profile = open_profile(path)
    values = {each.name: each.values.tolist() for each in profile.counters}
    assert values == {"CPU allocated": [7.0], "GPU0 allocated": [0.0, 100.0, 150.0, 50.0, 50.0]}


# -- damaged and hostile


def test_only_real_tables_are_read_and_nothing_of_the_file_is_run(tmp_path):
    path = written(tmp_path / "a.sqlite", CUPTI_ACTIVITY_KIND_RUNTIME=[call(10, 20)])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("""
            drop table CUPTI_ACTIVITY_KIND_KERNEL;
            create view CUPTI_ACTIVITY_KIND_KERNEL as
                with recursive n(i) as (select 1 union all select i + 1 from n) select i as start, i as end from n;
            create virtual table OSRT_MORE using fts5(start, end, globalTid, nameId);
            create trigger t after insert on StringIds begin delete from StringIds; end;
        """)
    before = path.read_bytes()
    database = SqliteFile(path, path.name)
    assert "CUPTI_ACTIVITY_KIND_KERNEL" not in database.tables
    assert "OSRT_MORE" not in database.tables
    assert [each.kind for each in open_profile(path).lanes] == ["thread"]
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.sqlite"]


def test_absurd_values_are_left_out_and_said(tmp_path):
    path = written(
        tmp_path / "a.sqlite",
        CUPTI_ACTIVITY_KIND_KERNEL=[
            kernel(100, 200), kernel(400, 300, 2), kernel(INT_MISSING + 1, 5, 3), kernel(2**62, 2**63 - 1, 4),
            {**kernel(500, 600, 5), "start": None}, kernel(700, 800, -(2**63), deviceId=2**63 - 1, streamId=-(2**62),
                                                           gridX=2**62, gridY=2**62, gridZ=-5, blockX=None)],
        NVTX_EVENTS=[pushed(1, 2, None), pushed(3, 4, None, text="\x1b]0;x\x07[red]\ud7ff", domainId=-5),
                     {**pushed(5, 6, "x"), "globalTid": -(2**63)}],
    )  # fmt: skip
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("insert into NVTX_EVENTS (start, end, eventType, text, globalTid) values "
                           "(7, 8, 59, cast(x'ff00fe' as text), x'0102')")  # fmt: skip
        connection.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId) values ('a', 1e300, x'00')")
    profile = open_profile(path)
    told = {each.what: each.count for each in profile.problems}
    assert told["Events without a time, or with one out of range."] == 4
    assert told["Events of negative duration."] == 1
    assert sum(map(len, profile.lanes)) == 7
    for view in reported(path).values():
        assert view


def test_times_that_were_not_collected_are_no_zeros(tmp_path):
    """CUPTI writes two zeros; a word is no number."""
    path = written(tmp_path / "a.sqlite", CUPTI_ACTIVITY_KIND_KERNEL=[
        kernel(1000, 2000), kernel(0, 0, 2), {**kernel(0, 3000, 3), "start": "soon"}, kernel(4000, 5000, 4),
    ])  # fmt: skip
    profile = open_profile(path)
    (problem,) = (each for each in profile.problems if each.severity is Severity.ERROR)
    assert (problem.what, problem.lost) == ("Events without a time, or with one out of range.", 2)
    assert (profile.start_ns, profile.end_ns, sum(map(len, profile.lanes))) == (0, 4000, 2)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9, 0.97])
def test_a_cut_file_is_shown_as_far_as_it_can_be_read(tmp_path, share):
    (path,) = nsys_database.write_run(tmp_path)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    try:
        profile = open_profile(path)
    except UnreadableError as error:
        told = str(error)
    else:
        told = path.name
        assert any("cannot be read to its end" in each.what for each in profile.problems)
        assert sum(map(len, profile.lanes))
    assert path.name in told
    # where the list of its tables is among what was cut, nothing tells whose it is
    assert share < 0.5 or "no known kind" not in told


def test_a_database_without_events_is_said_to_be_empty(tmp_path):
    with pytest.raises(UnreadableError, match="holds no events"):
        open_profile(written(tmp_path / "a.sqlite"))


def test_other_databases_are_not_taken_for_one(tmp_path):
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("create table StringIds (id, value); create table T (start, end);")
    (tmp_path / "text.db").write_text("SQLite")
    assert Catalog().source_of(path) is None
    assert Catalog().source_of(tmp_path) is None


def test_a_file_of_a_folder_that_cannot_be_read_becomes_a_problem(tmp_path):
    nsys_database.write_run(tmp_path, ranks=2)
    whole = (tmp_path / "run_rank1.sqlite").read_bytes()
    empty = written(tmp_path / "run_rank2.sqlite")
    profile = open_profile(tmp_path)
    assert len(profile.workers) == 2
    assert [each.file for each in profile.problems if "holds no events" in each.what] == [empty.name]
    assert open_profile(tmp_path, recordings="*rank1*").workers[0].rank == 1
    assert (tmp_path / "run_rank1.sqlite").read_bytes() == whole


def test_a_file_of_a_folder_that_is_empty_or_gone_is_told(tmp_path):
    (path,) = nsys_database.write_run(tmp_path)
    (tmp_path / "cut.sqlite").write_bytes(path.read_bytes()[:50_000])
    (tmp_path / "empty.sqlite").write_bytes(b"")
    (tmp_path / "gone.sqlite").symlink_to("moved")
    os.mkfifo(tmp_path / "pipe.sqlite")
    told = [each.file for each in open_profile(tmp_path).problems if each.done == "It is left out."]
    assert told == ["cut.sqlite", "empty.sqlite", "gone.sqlite"]


def test_names_with_blanks_and_signs_of_addresses_open(tmp_path):
    path = written(tmp_path / "a b?mode=rwc#%41.sqlite", CUPTI_ACTIVITY_KIND_RUNTIME=[call(10, 20)])
    assert sum(map(len, open_profile(path).lanes)) == 1


def test_details_of_a_file_that_was_replaced_are_empty(tmp_path):
    path = written(tmp_path / "a.sqlite", CUPTI_ACTIVITY_KIND_KERNEL=[kernel(100, 200)])
    profile = open_profile(path)
    path.write_bytes(path.read_bytes() + bytes(4096))
    assert lane(profile, "stream 7").arguments(0) == {}


def test_integers_equal_rows_across_blocks_and_gaps(tmp_path):
    path = tmp_path / "a.sqlite"
    rng = np.random.default_rng(1)
    ids, numbers = np.cumsum(rng.integers(1, 1 << 30, 40_000)).tolist(), rng.integers(-(1 << 62), 1 << 62, 40_000)
    values = [(row, None if row % 7 == 0 else value) for row, value in zip(ids, numbers.tolist(), strict=True)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table T (v)")
        connection.executemany("insert into T (rowid, v) values (?, ?)", values)
    found = SqliteFile(path, path.name).integers("T", "v", "absent")
    assert found["rowid"].tolist() == [row for row, _ in values]
    assert found["v"].tolist() == [INT_MISSING if value is None else value for _, value in values]
    assert (found["absent"] == INT_MISSING).all()


@pytest.mark.parametrize("onto", ["itself", "one page"])
def test_pages_that_lead_to_one_another_end(tmp_path, onto):
    path = written(
        tmp_path / "a.sqlite",
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(10 * number, 10 * number + 5, number) for number in range(20_000)],
    )
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute(
            "select rootpage from sqlite_master where name = 'CUPTI_ACTIVITY_KIND_RUNTIME'"
        ).fetchone()
    content, at = bytearray(path.read_bytes()), 4096 * (root - 1)
    assert content[at] == 5, "a page that leads to others"
    cells = [int.from_bytes(content[at + place : at + place + 2], "big")
             for place in range(12, 12 + 2 * int.from_bytes(content[at + 3 : at + 5], "big"), 2)]  # fmt: skip
    target = root.to_bytes(4, "big") if onto == "itself" else bytes(content[at + cells[0] : at + cells[0] + 4])
    for cell in cells:
        content[at + cell : at + cell + 4] = target
    path.write_bytes(content)
    try:
        told = [each.what for each in open_profile(path).problems]
    except UnreadableError as error:
        told = [str(error)]
    assert any("cannot be read to its end" in each or "no events" in each for each in told) or onto == "one page"
    database = SqliteFile(path, path.name)
    assert len(database.rows("CUPTI_ACTIVITY_KIND_RUNTIME", "start")) <= path.stat().st_size // 5 + 1
    assert len(database.integers("CUPTI_ACTIVITY_KIND_RUNTIME", "start")["start"]) <= path.stat().st_size // 5 + 20_000


def test_more_than_fits_into_memory_is_refused(tmp_path, monkeypatch):
    path = written(tmp_path / "a.sqlite", CUPTI_ACTIVITY_KIND_RUNTIME=[call(1, 2), call(3, 4, 2)])
    monkeypatch.setattr("tpuprof_tui.sources.nsys.read.events.memory_bytes", lambda: 500)
    with pytest.raises(UnreadableError, match=r"holds 2 events: reading them takes about 700 B of memory"):
        open_profile(path)


def test_columns_that_are_absent_are_said(tmp_path):
    """What other programs' tests have of the schema at least: times, a device, names that are nowhere."""
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("""
            create table StringIds (id integer primary key, value text);
            create table CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, shortName);
            insert into CUPTI_ACTIVITY_KIND_KERNEL values (10, 30, 1, 5), (40, 60, 1, 5);
            create table NVTX_EVENTS (start, end, text, globalTid);
            insert into NVTX_EVENTS values (0, 50, 'all', 7);
        """)
    profile = open_profile(path)
    assert {profile.title_of(each): len(each) for each in profile.lanes} == {"GPU 1 stream": 2, "Process 0 7": 1}
    (problem,) = profile.problems
    assert problem.what == "Tables of devices lack columns: correlationId, demangledName, globalPid, streamId."
    assert reported(path)["kernels"]["workers"]["a"]["figures"] == {"kernels": 2, "total_us": 0.04}


def test_waits_for_a_context_are_on_no_stream(tmp_path):
    path = written(
        tmp_path / "a.sqlite",
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(100, 300)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(10, 20), call(30, 310, 2, "cudaDeviceSynchronize_v3020")],
    )
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(f"""
            create table CUPTI_ACTIVITY_KIND_SYNCHRONIZATION
                (start, end, globalPid, deviceId, streamId, correlationId, syncType);
            insert into CUPTI_ACTIVITY_KIND_SYNCHRONIZATION
                values (40, 305, {global_id(PROCESS)}, 0, {2**32 - 1}, 2, 4);
        """)
    profile = open_profile(path)
    assert names(profile, "waits -1") == ["Context Sync"]
    links = profile.links()
    assert "synchronise" in {links.kinds[kind] for kind in links.kind.tolist()}
