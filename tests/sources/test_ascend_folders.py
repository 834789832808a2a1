"""What users' Ascend folders hold: several exports, files of any name, several devices and sessions, other things."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sqlite3
import tarfile
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Severity
from tpuprof_tui.sources.ascend.read.folders import NamedFile, named_file, newest_export, profiles_at, seconds_of
from tpuprof_tui.sources.catalog import Catalog, open_profile
from tpuprof_tui.views.registry import ask

PROF = "PROF_000001_20260601101010101_ABCDEFGHIJKLMNOP"
MSPROF = f"{PROF}/mindstudio_profiler_output"
OUTPUT = "ASCEND_PROFILER_OUTPUT"
START = 1_750_000_000_000_000
HEADER = "Device_id,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"


def kernels(*durations: Any, start: int = START, device: int = 0, collectives: Sequence[int] = ()) -> str:
    """A table of kernels, one every 40 us; ``collectives``: starts of communication operators."""
    rows = [f"{device},2,op{index},MatMul,AI_CORE,{start + 40 * index}.000\t,{each},0"
            for index, each in enumerate(durations)]  # fmt: skip
    rows += [f"{device},N/A,hcom_allReduce__586_{index}_1,hcom_allReduce_,HCCL,{each}.000\t,50,0"
             for index, each in enumerate(collectives)]  # fmt: skip
    return "\n".join([HEADER, *rows, ""])


def summary(*durations: Any, **more: Any) -> str:
    """The same under the names of msprof."""
    table = kernels(*durations, **more)
    for old, new in (("Name,Type", "Op Name,OP Type"), ("Accelerator Core", "Task Type"), (",Start", ",Task Start"),
                     ("Duration", "Task Duration"), ("Wait", "Task Wait")):  # fmt: skip
        table = table.replace(old, new, 1)
    return table


def events(*durations: Any, start: int = START, device: int | None = 0, process: str = "Ascend Hardware") -> list[Any]:
    """A timeline of a step with one kernel every 40 us, each called by an operator; a duration of None: it has none."""
    pid = 1000 + (device or 0)
    label = "NPU" if device is None else f"NPU {device}"
    found: list[Any] = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "Python"}},
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": process}},
        {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}},
        {"ph": "M", "name": "thread_name", "pid": pid, "tid": 2, "args": {"name": "Stream 2"}},
        {"ph": "X", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": f"{start - 100}.000", "dur": 400,
         "cat": "cpu_op", "args": {}},
    ]  # fmt: skip
    for index, each in enumerate(durations):
        at, flow = start + 40 * index, {"name": "async_npu", "cat": "async_npu", "id": str(index)}
        found += [
            {"ph": "X", "name": "aten::mm", "pid": 1, "tid": 1, "ts": f"{at - 20}.000", "dur": 8, "cat": "cpu_op",
             "args": {"Fwd thread id": 0}},
            {"ph": "s", "pid": 1, "tid": 1, "ts": f"{at - 19}.000", **flow},
            {"ph": "f", "pid": pid, "tid": 2, "ts": f"{at}.000", **flow},
            {"ph": "X", "name": f"op{index}", "pid": pid, "tid": 2, "ts": f"{at}.000",
             **({} if each is None else {"dur": each}), "args": {"Task Type": "AI_CORE"}},
        ]  # fmt: skip
    return found


def write(path: Path, content: Any) -> Path:
    """Writes a text, bytes, or JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content if isinstance(content, (str, bytes)) else json.dumps(content)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def rank_folder(folder: Path, number: int, table: str | None, stated: int | None = None) -> Path:
    """A rank's folder with a table of kernels (None: without output); ``stated``: rank that its profiler states."""
    root = folder / f"host_{100 + number}_20260601101010101_ascend_pt"
    if table is not None:
        write(root / OUTPUT / "kernel_details.csv", table)
    write(root / (f"profiler_info_{stated}.json" if stated is not None else "profiler_info.json"), {})
    return root


def report(path: Path, capsys: Any, *views: str) -> dict[str, Any]:
    """What ``tpuprof report --json`` says."""
    status = main(["report", str(path), *views, "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert status == int(any(each["severity"] == "error" for each in found["problems"]))
    assert found["source"] == "ascend"
    return found


def figures(found: dict[str, Any], view: str, figure: str) -> list[Any]:
    """A figure of each worker."""
    return [each["figures"][figure] for each in found["views"][view]["workers"].values()]


def work(path: Path, capsys: Any) -> list[tuple[int, float]]:
    """Number and time (us) of the kernels of each worker."""
    found = report(path, capsys, "kernels")
    return list(zip(figures(found, "kernels", "kernels"), figures(found, "kernels", "total_us"), strict=True))


def told(path: Path) -> str:
    """All problems of a profile, as one text."""
    return "\n".join(f"{each.what} {each.done}" for each in open_profile(path).problems)


# -- which files belong together


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        # slices written in different seconds are one set, in any order
        (["op_summary_slice_0_20260601101004.csv", "op_summary_slice_1_20260601101004.csv",
          "op_summary_slice_2_20260601101005.csv"], [0, 1, 2]),
        (["op_summary_slice_2_20260601101004.csv", "op_summary_slice_0_20260601101006.csv",
          "op_summary_slice_1_20260601101005.csv"], [1, 2, 0]),
        (["op_summary_slice_0_20260531235959.csv", "op_summary_slice_1_20260601000001.csv"], [0, 1]),
        # only the newest export counts: uncut after cut, cut after uncut, fewer slices, a moment later
        (["op_summary_slice_0_20260601101004.csv", "op_summary_slice_1_20260601101004.csv",
          "op_summary_20260601101034.csv"], [2]),
        (["op_summary_20260601101004.csv", "op_summary_slice_0_20260601101034.csv",
          "op_summary_slice_1_20260601101035.csv"], [1, 2]),
        (["op_summary_slice_0_20260601101004.csv", "op_summary_slice_1_20260601101005.csv",
          "op_summary_slice_2_20260601101006.csv", "op_summary_slice_1_20260601101023.csv",
          "op_summary_slice_0_20260601101024.csv"], [4, 3]),
        (["op_summary_20260601101004.csv", "op_summary_20260601111504.csv"], [1]),
        # an export of an hour later, of slices that the first lacks
        (["op_summary_slice_0_20260601101004.csv", "op_summary_slice_1_20260601111004.csv"], [1]),
        # models and iterations of one device are no slices
        (["op_summary_0_1_1.csv", "op_summary_0_1_2.csv", "op_summary_0_2_1.csv"], [0, 1, 2]),
        (["op_summary.csv", "op_summary_20260601101004.csv"], [1]),
    ],
)  # fmt: skip
def test_an_export_is_what_was_written_within_a_short_while(names, kept):
    files = [file for file in map(named_file, names) if file is not None]
    assert len(files) == len(names)
    assert [file.name for file in newest_export(files)] == [names[index] for index in kept]


def test_names_have_parts():
    assert named_file("op_summary_1_slice_3_20260601101004.csv") == NamedFile(
        "op_summary_1_slice_3_20260601101004.csv", "op_summary.csv", "1", (), 3, "20260601101004"
    )
    assert named_file("l2_cache_20260601101004.csv").role == "l2_cache.csv"  # type: ignore[union-attr]
    assert named_file("trace_view (1).json.gz") == NamedFile("trace_view (1).json.gz", "trace_view.json", copy="1")
    assert named_file("rank0-trace.json") is None
    odd = named_file("op_summary_slice_7_99999999999999.csv")
    assert odd is not None
    assert (odd.slice, seconds_of(odd.time)) == (7, 0)
    # any number of exports
    many = [NamedFile(f"{number}", "op_summary.csv", slice=number % 1000) for number in range(4000)]
    assert len(newest_export(many)) <= 1000


def test_a_slice_that_is_missing_is_told(tmp_path, capsys):
    for number in (0, 2):
        write(tmp_path / MSPROF / f"op_summary_slice_{number}_20260601101004.csv", summary(10, 11))
    assert work(tmp_path, capsys) == [(4, 42)]
    (problem,) = open_profile(tmp_path).problems
    assert problem.severity is Severity.ERROR
    assert "number 1 is missing" in problem.what


def test_devices_in_names_are_devices_whenever_they_were_exported(tmp_path, capsys):
    for device in range(2):
        for number in range(2):
            file = f"op_summary_{device}_slice_{number}_2026060110100{2 * device + number}.csv"
            write(tmp_path / MSPROF / file, summary(10 + device, device=device))
    found = report(tmp_path, capsys, "kernels")
    assert [each["devices"][0]["id"] for each in found["workers"]] == [0, 1]
    assert figures(found, "kernels", "total_us") == [20, 22]


def test_a_newer_file_for_all_devices_counts_instead_of_one_for_each(tmp_path, capsys):
    for device in range(2):
        write(tmp_path / MSPROF / f"op_summary_{device}_20260601101010.csv", summary(10, 11, device=device))
    both = summary(20) + kernels(21, device=1).split("\n", 1)[1]
    later = write(tmp_path / MSPROF / "op_summary_20260601201010.csv", both)
    assert work(tmp_path, capsys) == [(1, 20), (1, 21)]
    later.rename(later.with_name("op_summary_20260601001010.csv"))
    assert work(tmp_path, capsys) == [(2, 21), (2, 21)]


def test_a_copy_of_a_file_in_the_exporters_folder_is_not_counted_twice(tmp_path, capsys):
    for name in ("op_summary_20260601101010.csv", "op_summary_20260601101010 (1).csv"):
        write(tmp_path / MSPROF / name, summary(10, 11))
    assert work(tmp_path, capsys) == [(2, 21)]


# -- files by their content


@pytest.mark.parametrize(
    ("name", "place", "packed"),
    [
        ("rank0_trace.json", "first", False), ("rank0_trace.json", "middle", True),
        ("trace_view (1).json", "last", False),
        ("trace.json", "last", True), ("x.pt.trace.json", "middle", False), ("x.pt.trace.json", "last", True),
        ("a.json", "last", False), ("a.json", "first", True),
    ],
)  # fmt: skip
def test_a_timeline_of_any_name_is_ascends_if_its_processes_are(tmp_path, capsys, name, packed, place):
    every = events(10, 11, 12)
    meta, slices = every[:4], every[4:]
    # beyond the first bytes
    slices[1]["args"]["Call stack"] = "x" * 70_000
    ordered = (
        meta + slices if place == "first" else slices + meta if place == "last" else slices[:6] + meta + slices[6:]
    )
    data = json.dumps({"traceEvents": ordered} if name == "a.json" else ordered).encode()
    file = write(tmp_path / (f"{name}.gz" if packed else name), gzip.compress(data) if packed else data)
    for path in (file, tmp_path):
        assert work(path, capsys) == [(3, 33)]
    guessed = name.startswith("rank0")
    (worker,) = report(file, capsys, "kernels")["workers"]
    assert (worker["rank"], worker["rank_guessed"]) == ((0, True) if guessed else (None, False))


def test_renamed_files_of_an_output_folder_are_its_output(tmp_path, capsys):
    root = rank_folder(tmp_path, 0, None, 3)
    write(root / OUTPUT / "step50.json", events(10, 11))
    write(root / OUTPUT / "step50.csv", kernels(10, 11))
    write(root / OUTPUT / "api_statistic.csv", "Level,API Name,Time(us),Count\nacl,a,5,1\n")
    found = report(tmp_path, capsys, "kernels")
    (worker,) = found["workers"]
    assert (worker["rank"], worker["events"], figures(found, "kernels", "total_us")) == (3, 5, [21])


def test_a_process_with_the_label_of_an_npu_holds_its_kernels(tmp_path, capsys):
    write(tmp_path / "t.json", events(10, 11, process="Accelerator"))
    assert work(tmp_path, capsys) == [(2, 21)]


def test_traces_of_pytorch_stay_pytorchs(tmp_path):
    trace = [{"ph": "X", "cat": "kernel", "name": "CANN", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2,
              "args": {"stream": 7, "device": 0}}]  # fmt: skip
    kineto = {"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": [
        *trace, {"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "NPU 0"}}]}  # fmt: skip
    for number, content in enumerate((trace, kineto)):
        file = write(tmp_path / str(number) / "trace.json", content)
        for path in (file, file.parent):
            source = Catalog().source_of(path)
            assert source is not None
            assert source.id == "torch"
    # a folder of both is no folder of Ascend's
    write(tmp_path / "0" / "rank0.json", events(10))
    source = Catalog().source_of(tmp_path / "0")
    assert source is not None
    assert source.id == "torch"
    assert not profiles_at(tmp_path / "0")


def test_why_a_trace_is_ascends_is_told(tmp_path, capsys):
    file = write(tmp_path / "x.pt.trace.json", events(10))
    assert main(["info", str(file), "--why"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"ascend +yes, by content", out)
    assert re.search(r"torch +yes, by name", out)
    assert "opened as an Ascend profile" in out


@pytest.mark.parametrize("name", ["my table.csv", "kernels.csv.gz", "kernel_details (2).csv", "op_summary_3.csv.gz"])
@pytest.mark.parametrize("table", [kernels, summary])
def test_a_table_is_known_by_its_header(tmp_path, capsys, name, table):
    content = table(10, 11, 12).encode()
    file = write(tmp_path / name, gzip.compress(content) if name.endswith(".gz") else content)
    for path in (file, tmp_path):
        assert work(path, capsys) == [(3, 33)]
    other = write(tmp_path / "other" / "a.csv", "Name,Start Time(us),Duration(us)\nx,1,2\n")
    assert Catalog().source_of(other) is None


def test_what_was_packed_and_damaged_is_told(tmp_path, capsys):
    packed = gzip.compress(kernels(*range(10, 2000)).encode())
    write(tmp_path / "kernel_details.csv.gz", packed[: len(packed) // 2])
    found = report(tmp_path, capsys, "kernels")
    assert 0 < figures(found, "kernels", "kernels")[0] < 1990
    assert "compressed data are damaged" in found["problems"][0]["what"]


# -- databases and archives


def database(path: Path, *devices: int) -> Path:
    """A database of the kernels and communication operators of some devices."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("create table STRING_IDS (id, value)")
        texts = ("AI_CORE", "SDMA", "op", "hcom_allReduce__1_0_1", "hcom_allReduce_")
        made.executemany("insert into STRING_IDS values (?, ?)", enumerate(texts))
        made.execute(
            "create table TASK (startNs, endNs, deviceId, connectionId, globalTaskId, taskType, streamId, taskId)"
        )
        made.execute("create table COMPUTE_TASK_INFO (name, globalTaskId, taskType, opType)")
        made.execute("create table COMMUNICATION_OP (opName, startNs, endNs, connectionId, groupName, opId, opType)")
        made.execute("create table COMMUNICATION_TASK_INFO (globalTaskId, opId)")
        for device in devices:
            start = START * 1000 + device
            for task in range(2 + device):
                number = 100 * device + task
                begin = start + 40_000 * task
                made.execute(
                    "insert into TASK values (?, ?, ?, 1, ?, 0, 2, 1)", (begin, begin + 10_000, device, number)
                )
                made.execute("insert into COMPUTE_TASK_INFO values (2, ?, 0, 2)", (number,))
            transfer = 100 * device + 99
            made.execute("insert into TASK values (?, ?, ?, 2, ?, 1, 3, 1)",
                         (start + 500_000, start + 505_000, device, transfer))  # fmt: skip
            made.execute("insert into COMMUNICATION_TASK_INFO values (?, ?)", (transfer, device))
            made.execute("insert into COMMUNICATION_OP values (3, ?, ?, 2, 0, ?, 4)",
                         (start + 500_000, start + 520_000, device))  # fmt: skip
    return path


def test_devices_of_a_database_have_their_own_kernels_and_collectives(tmp_path, capsys):
    file = database(tmp_path / "msprof_20260601101004.db", 0, 1)
    for path in (file, tmp_path):
        assert work(path, capsys) == [(3, 40), (4, 50)]


def test_a_renamed_database_is_read_and_told(tmp_path, capsys):
    for name in ("profile.db", "copy.sqlite"):
        file = database(tmp_path / name / name, 0)
        assert work(file.parent, capsys) == [(3, 40)]
        assert f"{name} is not named as the exporters name a database" in told(file)


def test_databases_of_two_ranks_are_two_workers(tmp_path, capsys):
    for rank in range(2):
        database(tmp_path / f"ascend_pytorch_profiler_{rank}.db", 0)
    found = report(tmp_path, capsys, "kernels")
    assert [each["rank"] for each in found["workers"]] == [0, 1]
    assert figures(found, "kernels", "total_us") == [40, 40]


@pytest.mark.parametrize("name", ["x.tar.gz", "x.tgz", "x.zip", "host_1_20260601101010101_ascend_pt.7z",
                                  "kernel_details.csv.bz2"])  # fmt: skip
def test_an_archive_says_how_to_unpack_it(tmp_path, capsys, name):
    root = rank_folder(tmp_path / "made", 0, kernels(10), 0)
    write(root / OUTPUT / "trace_view.json", events(10))
    file = tmp_path / "in" / name
    file.parent.mkdir()
    if name.endswith("gz"):
        with tarfile.open(file, "w:gz") as archive:
            archive.add(root, root.name)
    elif name.endswith("zip"):
        with zipfile.ZipFile(file, "w") as archive:
            for each in root.rglob("*.*"):
                archive.write(each, each.relative_to(root.parent))
    else:
        write(file, b"packed")
    for path in (file, file.parent):
        assert main(["report", str(path)]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"{name} is an archive of an Ascend profile" in said.replace(" ", "").replace("isan", " is an ") or (
            "archive of an Ascend profile" in said)  # fmt: skip
        assert "Unpack it" in said
    # beside what can be read
    rank_folder(file.parent, 1, kernels(10, 11))
    assert work(file.parent, capsys) == [(2, 21)]
    assert "an archive of an Ascend profile, which is not read" in told(file.parent)


# -- devices and ranks


def test_devices_are_told_apart_by_the_data(tmp_path, capsys):
    both = kernels(10, 11) + kernels(20, 21, 22, device=1).split("\n", 1)[1]
    one = write(tmp_path / "table" / "kernel_details.csv", both)
    timeline = events(10, 11) + [each for each in events(20, 21, 22, device=1) if each["pid"] > 1]
    two = write(tmp_path / "timeline" / "trace_view.json", timeline)
    three = write(tmp_path / MSPROF / "op_summary_20260601101010.csv",
                  summary(10, 11) + kernels(20, 21, 22, device=1).split("\n", 1)[1])  # fmt: skip
    write(tmp_path / MSPROF / "msprof_20260601101010.json", timeline)
    write(
        tmp_path / MSPROF / "op_statistic_20260601101010.csv", "OP Type,Core Type,Count,Total Time(us)\nMatMul,A,5,84\n"
    )
    for path in (one, one.parent, two, three, tmp_path / PROF):
        found = report(path, capsys, "kernels", "units")
        assert figures(found, "kernels", "total_us") == [21, 63]
        assert [each["devices"][0]["id"] for each in found["workers"]] == [0, 1]
        assert [each["rank"] for each in found["workers"]] == [None, None]
        profile = open_profile(path)
        assert len({lane.group for lane in profile.lanes if lane.kind == "stream"}) == 2
    assert "op_statistic.csv does not distinguish its devices" in told(tmp_path / PROF)


def test_devices_without_end_are_not_split(tmp_path, capsys):
    rows = "".join(kernels(10, device=device).split("\n", 1)[1] for device in range(200))
    write(tmp_path / "kernel_details.csv", f"{HEADER}\n{rows}")
    assert work(tmp_path, capsys) == [(200, 2000)]
    assert "200 numbers of devices" in told(tmp_path)


@pytest.mark.parametrize("name", ["kernel_details_{}.csv", "trace_view_{}.json", "trace_view ({}).json"])
def test_numbered_files_are_not_joined(tmp_path, capsys, name):
    for number in range(2):
        content = kernels(10 + number) if name.startswith("k") else events(10 + number)
        write(tmp_path / name.format(number), content)
    write(tmp_path / "api_statistic.csv", "Level,API Name,Time(us),Count\nacl,a,5,1\n")
    assert work(tmp_path, capsys) == [(1, 10), (1, 11)]


def test_devices_of_one_number_are_told(tmp_path):
    twice = events(10) + [{**each, "pid": each["pid"] + 5} for each in events(11) if each["pid"] > 1]
    write(tmp_path / "trace_view.json", twice)
    assert "2 devices called NPU 0" in told(tmp_path)


def test_ranks_are_stated_else_named_and_never_hosts(tmp_path, capsys):
    names = ["frank7_100_20260601101010101_ascend_pt", "rank-1_20260601101010101_ascend_ms", "rank_2",
             "dp0_pp0_tp3_dcp0_ep0_rank3_77_20260601101010101_ascend_pt"]  # fmt: skip
    for name in names:
        write(tmp_path / name / OUTPUT / "kernel_details.csv", kernels(10))
    write(tmp_path / "rank_2" / "profiler_info_5.json", {})
    write(tmp_path / "rank4" / MSPROF / "op_summary_20260601101010.csv", summary(10))
    found = report(tmp_path, capsys, "kernels")
    assert {each["key"]: (each["rank"], each["rank_guessed"]) for each in found["workers"]} == {
        names[0]: (None, False), names[1]: (1, True), names[2]: (5, False), names[3]: (3, True), PROF: (4, True)
    }  # fmt: skip
    labels = [group.label for group in open_profile(tmp_path).groups if group.parent < 0]
    assert {"Rank 1 ~", "Rank 5", "Rank 3 ~", "Rank 4 ~", names[0]} == set(labels)


# -- sessions and clocks


def test_a_second_recording_of_a_rank_is_a_session_of_it(tmp_path, capsys):
    for seconds, durations in ((60, (20, 21, 22)), (0, (10, 11, 12))):
        root = tmp_path / f"host_1_2026060110{10 + seconds // 60}10101_ascend_pt"
        write(root / OUTPUT / "kernel_details.csv", kernels(*durations, start=START + seconds * 10**6))
        write(root / "profiler_info_0.json", {})
    found = report(tmp_path, capsys, "units", "kernels")
    assert [(each["rank"], each["span"], each["duration_us"]) for each in found["workers"]] == [(0, 1, 92), (0, 2, 102)]
    assert [round(each, 4) for each in figures(found, "units", "mean_utilisation")] == [0.3587, 0.6176]
    # on its own clock
    assert [each["start"] for each in found["workers"]] == [str(START), str(START + 60 * 10**6)]
    profile = open_profile(tmp_path)
    units = [group for group in profile.groups if group.is_unit]
    assert [(group.label, group.number) for group in units] == [("NPU 0", 0), ("NPU 0 (2)", 0)]
    assert profile.end_ns == 194_000
    assert "2 recordings of the run" in told(tmp_path)
    for command in ("summary", "info"):
        assert main([command, str(tmp_path)]) == 0
        assert "NPU 1" not in capsys.readouterr().out


def test_sessions_of_a_process_without_a_rank(tmp_path, capsys):
    for minute in range(2):
        root = tmp_path / f"host_1_2026060110{10 + minute}10101_ascend_pt"
        write(root / OUTPUT / "trace_view.json", events(10, 11, start=START + minute * 60 * 10**6))
    found = report(tmp_path, capsys, "units")
    assert [(each["rank"], each["span"]) for each in found["workers"]] == [(None, 1), (None, 2)]
    assert figures(found, "units", "mean_utilisation")[0] == figures(found, "units", "mean_utilisation")[1] > 0.1


def test_clocks_of_hosts_are_aligned_by_collectives(tmp_path, capsys):
    for rank, ahead in enumerate((0, 3_000_007)):
        starts = [START + ahead + 1000 + 200 * index for index in range(3)]
        rank_folder(tmp_path, rank, kernels(10, 11, start=START + ahead, collectives=starts), rank)
    found = report(tmp_path, capsys, "units", "kernels")
    assert [each["start"] for each in found["workers"]] == [str(START), str(START + 3_000_007)]
    assert figures(found, "units", "mean_utilisation") == [171 / 1450] * 2
    profile = open_profile(tmp_path)
    assert (profile.start_ns, profile.end_ns) == (0, 1_450_000)
    assert "Its clock differs by 3.000 s" in told(tmp_path)
    times = [table["tables"]["kernels"]["rows"][0][4] for table in found["views"]["kernels"]["workers"].values()]
    assert times == [f"{START + 1000}", f"{START + 1000 + 3_000_007}"]


def test_other_steps_are_not_taken_for_another_clock(tmp_path):
    for rank in range(2):
        start = START + rank * 3_000_000
        every = events(10, 11, start=start)
        every[4]["name"] = f"ProfilerStep#{1 + rank}"
        meta = {"name": "process_name", "ph": "M", "pid": 9, "tid": 0, "args": {"name": "Communication"}}
        every += [meta, {"ph": "X", "name": "hcom_allReduce__586_0_1", "pid": 9, "tid": 0, "ts": f"{start + 90}.000",
                         "dur": 20, "args": {}}]  # fmt: skip
        root = rank_folder(tmp_path, rank, None, rank)
        write(root / OUTPUT / "trace_view.json", every)
    assert "Its clock differs" not in told(tmp_path)
    assert "Clocks of the hosts differ" in told(tmp_path)
    every[4]["name"] = "ProfilerStep#1"
    write(root / OUTPUT / "trace_view.json", every)
    assert "Its clock differs by 3.000 s" in told(tmp_path)


def test_clocks_that_cannot_be_aligned_are_told_and_count_in_no_figure(tmp_path, capsys):
    for rank, ahead in enumerate((0, 0, 3_000_000)):
        rank_folder(tmp_path, rank, kernels(10, 11, 12, start=START + ahead), rank)
    found = report(tmp_path, capsys, "units")
    assert [round(each, 4) for each in figures(found, "units", "mean_utilisation")] == [0.3587] * 3
    assert "Clocks of the hosts differ" in told(tmp_path)


# -- what lies beside


@pytest.mark.parametrize("nodes", [False, True])
def test_nothing_beside_ranks_hides_them(tmp_path, capsys, nodes):
    for rank in range(2):
        rank_folder(tmp_path / f"node{rank}" if nodes else tmp_path, rank, kernels(10 + rank), rank)
    write(tmp_path / "logs" / "a" / "train.log", "x")
    write(tmp_path / "ckpt" / "model.json", "{}")
    assert work(tmp_path, capsys) == [(1, 10), (1, 11)]
    columns = "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble"
    write(tmp_path / "cluster_analysis_output" / "cluster_step_trace_time.csv", f"{columns}\n1,rank,0,1,2,3,4,5,6,7\n")
    found = report(tmp_path, capsys, "kernels", "cluster")
    assert [each["rank"] for each in found["workers"]] == [0, 1]
    assert found["views"]["cluster"]["tables"]["steps"]["rows"]
    assert not found["problems"]
    write(tmp_path / "op_summary_1.csv", summary(50))
    assert sorted(work(tmp_path, capsys)) == [(1, 10), (1, 11), (1, 50)]
    assert "op_summary_1.csv: beside folders of ranks" in told(tmp_path)
    write(tmp_path / "x.pt.trace.json", {"schemaVersion": 1, "traceEvents": []})
    assert "of PyTorch, beside folders of Ascend" in told(tmp_path)


@pytest.mark.parametrize("form", ["tables", "database"])
def test_what_msprof_exported_in_the_folder_of_a_rank_is_its_output(tmp_path, capsys, form):
    for rank in range(2):
        root = rank_folder(tmp_path, rank, None, rank)
        write(root / "FRAMEWORK" / "torch.op_range", "x")
        write(root / PROF / "device_0" / "data" / "slice", "x")
        if form == "tables":
            write(root / MSPROF / "op_summary_20260601101004.csv", summary(10, 11))
        else:
            database(root / PROF / "msprof_20260601101004.db", 0)
    (root / OUTPUT).mkdir()
    total = 21 if form == "tables" else 40
    found = report(tmp_path, capsys, "kernels")
    assert figures(found, "kernels", "total_us") == [total, total]
    assert [(each["key"], each["rank"]) for each in found["workers"]] == [
        ("host_100_20260601101010101_ascend_pt", 0), ("host_101_20260601101010101_ascend_pt", 1)
    ]  # fmt: skip
    for path in (root, root / PROF, root / OUTPUT):
        found = report(path, capsys, "kernels")
        assert figures(found, "kernels", "total_us") == [total]
    assert not found["problems"]


def test_a_large_tree_is_not_searched_for_long(tmp_path):
    for folder in range(40):
        (tmp_path / f"a{folder}" / "b" / "c" / "d").mkdir(parents=True)
    rank_folder(tmp_path / "a7" / "b" / "c", 0, kernels(10))
    assert not profiles_at(tmp_path)


# -- an analysis that ended early


def test_an_analysis_that_was_not_finished_says_how_to_repeat_it(tmp_path, capsys):
    host = [each for each in events(10, 11) if each["pid"] == 1]
    root = rank_folder(tmp_path, 0, None, 0)
    write(root / OUTPUT / "trace_view.json", json.dumps(host)[:-1])
    assert "was not finished" in told(root)
    assert "where its FRAMEWORK and PROF_* are: python3 -c" in told(root)
    write(root / "FRAMEWORK" / "x", "x")
    assert (
        f"Repeat the export: python3 -c \"from torch_npu.profiler.profiler import analyse; analyse('{root}')\""
        in told(root)
    )
    write(root / OUTPUT / "trace_view.json", "")
    assert main(["report", str(root)]) == 2
    assert f"analyse('{root}')" in capsys.readouterr().err.replace("\n", "").replace("  ", " ")
    # nothing of it was copied
    (root / OUTPUT / "trace_view.json").unlink()
    (root / "FRAMEWORK" / "x").unlink()
    (root / "FRAMEWORK").rmdir()
    assert main(["report", str(root)]) == 2
    assert "holds no output: its analysis was not finished" in " ".join(capsys.readouterr().err.split())
    # what was recorded of the host alone is finished
    write(root / OUTPUT / "trace_view.json", host)
    write(root / "profiler_info_0.json", {"config": {"common_config": {"activities": ["ProfilerActivity.CPU"]}}})
    assert not told(root)


# -- values


def test_durations_that_are_not_known_are_counted_and_in_no_average(tmp_path, capsys):
    table = kernels(10, "N/A", 12, -3, "", 16).replace(
        "op2,MatMul,AI_CORE,1750000000000080.000\t", "op2,MatMul,AI_CORE,N/A"
    )
    write(tmp_path / "a" / "kernel_details.csv", table)
    write(tmp_path / "b" / "trace_view.json", events(10, None, 12, -3, "N/A", 16))
    for name, without_start in (("a", 1), ("b", 0)):
        found = report(tmp_path / name, capsys, "kernels")
        assert figures(found, "kernels", "total_us") == [38]
        assert figures(found, "kernels", "kernels") == [6]
        (data,) = found["views"]["kernels"]["workers"].values()
        rows = data["tables"]["by_core"]["rows"]
        assert [row[1:6] for row in rows] == [[6, 38, 10, 38 / 3, 16]]
        durations = [row[5] for row in data["tables"]["kernels"]["rows"]]
        assert sorted(durations, key=str) == [10, 12, 16, None, None, None]
        counts = {each["what"]: each["count"] for each in found["problems"]}
        assert sum(count for what, count in counts.items() if "without a duration" in what) == 2
        assert sum(count for what, count in counts.items() if "negative duration" in what) == 1
        assert sum(count for what, count in counts.items() if "without a start" in what) == without_start


def test_times_of_kernels_that_are_all_unknown_are_null(tmp_path, capsys):
    write(tmp_path / "kernel_details.csv", kernels("N/A", "N/A"))
    found = report(tmp_path, capsys, "kernels")
    for key, value in (("kernels", 2), ("total_us", None), ("busy_us", None)):
        assert figures(found, "kernels", key) == [value]


@pytest.mark.parametrize("form", ["table", "timeline", "database"])
def test_impossible_times_make_no_recording_of_years(tmp_path, capsys, form):
    if form == "table":
        table = kernels(10, 11, 12, 13).replace(f"{START + 120}.000", "0")
        path = write(tmp_path / "kernel_details.csv", table)
    elif form == "timeline":
        every = events(10, 11, 12, 13)
        every[-1]["ts"] = "0"
        every[-2]["ts"] = "0"
        every += [
            {"ph": "C", "name": "HBM", "pid": 9, "ts": each, "args": {"Read(MB/s)": 1}} for each in ("0", f"{START}")
        ]
        path = write(tmp_path / "trace_view.json", every)
    else:
        path = database(tmp_path / "msprof_20260601101004.db", 0)
        with closing(sqlite3.connect(path)) as made, made:
            made.execute("update TASK set startNs = 0, endNs = 5 where globalTaskId = 1")
    found = report(path, capsys, "kernels", "units")
    (worker,) = found["workers"]
    assert worker["duration_us"] < 1000
    whole = {"table": 4, "timeline": 9, "database": 4}[form]
    assert worker["events"] == whole
    profile = open_profile(path)
    (aside,) = (lane for lane in profile.lanes if lane.is_aside)
    assert len(aside) == 1
    assert aside.arguments is not None
    assert aside.arguments(0)["ts"] == "0"
    assert "55.5 years before the rest" in told(path)
    assert ("Counter samples" in told(path)) == (form == "timeline")


def test_a_device_on_another_clock_is_moved_by_its_launches(tmp_path, capsys):
    every = events(*range(10, 30))
    for each in every:
        if each["pid"] > 1 and "ts" in each:
            each["ts"] = f"{float(each['ts']) - START + 5_000_000:.3f}"
    write(tmp_path / "trace_view.json", every)
    found = report(tmp_path, capsys, "kernels")
    assert found["workers"][0]["duration_us"] < 10_000
    assert figures(found, "kernels", "busy_us") == [sum(range(10, 30))]
    assert "The clock of NPU 0 is 55.5 years" in told(tmp_path)


def test_tables_on_another_clock_than_the_timeline_are_told(tmp_path, capsys):
    timeline = write(tmp_path / "trace_view.json", events(10, 11, 12))
    table = write(tmp_path / "kernel_details.csv", kernels(10, 11, 12, start=5_000_000))
    write(
        tmp_path / "memory_record.csv", "Component,Timestamp(us),Total Reserved(MB)\nPTA,5000000\t,1\nPTA,5000001\t,2\n"
    )
    said = told(tmp_path)
    assert "moved to the clock of the timeline" in said
    assert "The times of memory_record.csv are 55.5 years from" in said
    found = report(tmp_path, capsys, "kernels")
    assert (figures(found, "kernels", "busy_us"), figures(found, "kernels", "first_start_us")) == ([33], [str(START)])
    # kernels that cannot be told by their order stay without a place
    write(table, kernels(10, 11, start=5_000_000))
    assert figures(report(tmp_path, capsys, "kernels"), "kernels", "busy_us") == [None]
    assert "joined with no slice" in told(tmp_path)
    timeline.unlink()
    assert figures(report(tmp_path, capsys, "kernels"), "kernels", "busy_us") == [21]


def test_a_filter_says_which_kernels_of_a_table_it_cannot_have(tmp_path):
    write(tmp_path / "trace_view.json", events(10, 11, 12))
    write(tmp_path / "kernel_details.csv", kernels(10, 11, 12).replace("op1,", "other,"))
    profile = open_profile(tmp_path)
    notes = {text: [note for note in ask(profile, "kernels", filter=text).notes if "in no filter" in note]
             for text in ("", "dur>0us", "!(dur>0us)")}  # fmt: skip
    said = "1 kernel of kernel_details.csv without a slice of the timeline: in no filter."
    assert notes == {"": [], "dur>0us": [said], "!(dur>0us)": [said]}


def test_msprof_writes_no_release_but_a_duration(tmp_path, capsys):
    write(tmp_path / "operator_memory_20260601101004.csv",
          "Device_id,Name,Size(KB),Allocation Time(us),Duration(us),Allocation Total Allocated(KB),Device\n"
          f"0,a,512,{START}.500\t,10,2048,NPU:0\n0,b,64,{START}.000\t,,2048,NPU:0\n"
          f"0,c,64,{START}.000\t,N/A,8,NPU:0\n")  # fmt: skip
    found = report(tmp_path, capsys, "memory")
    assert figures(found, "memory", "never_released") == [2]
    (data,) = found["views"]["memory"]["workers"].values()
    released = {row[0]: row[3] for row in data["tables"]["operators"]["rows"]}
    assert released == {"a": f"{START + 10}.5", "b": None, "c": None}


@pytest.mark.parametrize("write_as", [
    lambda text: text.replace(",", ";"),
    lambda text: "sep=;\n" + text.replace(",", ";"),
    lambda text: text.replace(",", ";").replace(".000", ",000").replace(";10;", ";10,0;"),
    lambda text: text.replace("\t", "").replace(",", "\t"),
    lambda text: text.encode("utf-16"),
    lambda text: text.encode("utf-16-le"),
    lambda text: text.encode("utf-16-be"),
    lambda text: text.replace("\t", "").replace(",", "\t").encode("utf-16"),
    lambda text: b"\xfe\xff" + text.replace(",", ";").encode("utf-16-be"),
    lambda text: text.replace("op1", "融合算子_加法").encode("gb18030"),
    lambda text: text.replace("op1", "融合算子_加法").encode(),
    lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
    lambda text: gzip.compress(text.replace(",", ";").encode("utf-16")),
])  # fmt: skip
def test_tables_are_read_however_a_spreadsheet_wrote_them(tmp_path, capsys, write_as: Callable[[str], str | bytes]):
    content = write_as(kernels(10, 11, 12))
    packed = isinstance(content, bytes) and content.startswith(b"\x1f")
    write(tmp_path / ("kernel_details.csv.gz" if packed else "kernel_details.csv"), content)
    found = report(tmp_path, capsys, "kernels")
    assert figures(found, "kernels", "total_us") == [33]
    assert figures(found, "kernels", "first_start_us") == [str(START)]
    (data,) = found["views"]["kernels"]["workers"].values()
    assert data["tables"]["by_name"]["rows"][1][0] in ("op1", "融合算子_加法")
    gb = isinstance(content, bytes) and "融合".encode("gb18030") in content
    assert ["GB18030" in each["done"] for each in found["problems"]] == ([True] if gb else [])


SAMPLE = Path(__file__).parents[2] / "samples" / "ascend_synthetic" / "rank0_ascend_pt"


@pytest.mark.parametrize(("file", "mend", "what"), [
    ("kernel_details.csv", lambda text: text.partition("\n")[2], "There is no column Name or Op Name."),
    ("kernel_details.csv", lambda text: text.partition("\n")[0] + "\n", "The table has no rows."),
    ("step_trace_time.csv", str.upper, "There is no column Computing."),
    ("api_statistic.csv", lambda _: "a,b\n1,2\n", "There is no column API Name or Name, Time(us)."),
    ("trace_view.json", lambda _: "[]", "The timeline holds no events."),
])  # fmt: skip
def test_a_file_that_tells_nothing_is_no_silence(tmp_path, file, mend: Callable[[str], str], what):
    shutil.copytree(SAMPLE, tmp_path / SAMPLE.name)
    path = tmp_path / SAMPLE.name / OUTPUT / file
    path.write_text(mend(path.read_text(encoding="utf-8") if path.exists() else ""), encoding="utf-8")
    profile = open_profile(tmp_path / SAMPLE.name)
    assert [(each.what, Path(each.file).name) for each in profile.problems] == [(what, file)]
    assert sum(len(lane) for lane in profile.lanes if not lane.on_host) >= 50


def test_every_file_may_be_packed(tmp_path):
    shutil.copytree(SAMPLE, tmp_path / SAMPLE.name)
    for path in (tmp_path / SAMPLE.name / OUTPUT).iterdir():
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed, plain = open_profile(tmp_path / SAMPLE.name), open_profile(SAMPLE)
    assert not packed.problems
    assert [(table.name, len(table)) for table in packed.tables] == [(table.name, len(table)) for table in plain.tables]


def test_a_second_header_is_no_kernel(tmp_path, capsys):
    write(tmp_path / "kernel_details.csv", kernels(10, 11) + kernels(12, 13) + "\ufeff" + kernels(14))
    assert work(tmp_path, capsys) == [(5, 60)]
    (problem,) = open_profile(tmp_path).problems
    assert (problem.what, problem.count) == ("Headers within the table, line 4.", 2)
    write(tmp_path / "kernel_details.csv", kernels(10, 11) + summary(12, 13))
    assert work(tmp_path, capsys) == [(2, 21)]
    assert "A second header with other columns, line 4" in told(tmp_path)
    # a kernel may be called like a column
    write(tmp_path / "kernel_details.csv", kernels(10, 11).replace("op1", "Name").replace("0,2,op0", "Name,2,op0"))
    assert work(tmp_path, capsys) == [(2, 21)]


_STEP_TRACE = "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),Data Aug Bound(us)"


@pytest.mark.parametrize("timeline", [False, True])
def test_iterations_of_a_graph_are_steps(tmp_path, capsys, timeline):
    folder = tmp_path / MSPROF
    write(folder / "op_summary_20260601101004.csv", summary(10, 11, 12, 13, 14, 15))
    if timeline:
        every = [each for each in events(10, 11, 12, 13, 14, 15) if "ProfilerStep" not in each["name"]]
        write(folder / "msprof_20260601101004.json", every)
    write(
        folder / "step_trace_20260601101004.csv",
        "\n".join(
            [
                _STEP_TRACE,
                f"0,1,{START}.000\t,N/A,{START + 100}.000\t,100.0,N/A",
                f"0,2,N/A,N/A,{START + 215}.000\t,115.0,0.0",
            ]
        ),
    )
    found = report(tmp_path, capsys, "steps", "overview")
    (data,) = found["views"]["steps"]["workers"].values()
    keys = [column["key"] for column in data["tables"]["steps"]["columns"]]
    assert [row[keys.index("length_us")] for row in data["tables"]["steps"]["rows"]] == [100, 115]
    profile = open_profile(tmp_path)
    (stream,) = (lane for lane in profile.lanes if lane.kind == "stream")
    assert stream.take("step", slice(0, 6)).tolist() == [1, 1, 1, 2, 2, 2]
    (data,) = found["views"]["overview"]["workers"].values()
    assert [row[:2] for row in data["tables"]["steps"]["rows"]] == [["1", 33], ["2", 42]]
    assert main(["report", str(tmp_path), "kernels", "--step", "2", "--json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)["views"]["kernels"]["workers"].values()
    assert data["figures"]["total_us"] == 42
    write(folder / "step_trace_20260601101004.csv", f"{_STEP_TRACE}\n0,1,100,N/A,200,100.0,N/A\n")
    assert "They are no steps" in told(tmp_path)


def test_nothing_readable_is_an_error_with_a_reason(tmp_path):
    for name in ("kernel_details.csv", "trace_view.json"):
        write(tmp_path / name / name, "")
        with pytest.raises(UnreadableError, match=r"header|list of events"):
            open_profile(tmp_path / name)
    started = time.process_time()
    assert not profiles_at(write(tmp_path / "x.json", b"[" * 100_000))
    assert time.process_time() - started < 60


def test_a_table_that_is_packed_without_end_is_cut_and_told(tmp_path, monkeypatch):
    from tpuprof_tui.sources.chrome import inflate

    monkeypatch.setattr(inflate, "ALWAYS_UNPACKED", 1 << 20)
    monkeypatch.setattr(inflate, "MOST_UNPACKED", 1)
    row = kernels(10).splitlines()[1]
    bomb = gzip.compress((f"{HEADER}\n" + f"{row}\n" * 100_000).encode())
    write(tmp_path / "kernel_details.csv.gz", bomb)
    profile = open_profile(tmp_path)
    assert 0 < profile.event_count < 100_000
    assert "is too long for such a file" in told(tmp_path)


def test_a_packed_table_with_a_wrong_checksum_is_told_and_read(tmp_path):
    packed = bytearray(gzip.compress(kernels(10, 20).encode()))
    packed[-8] ^= 1
    (tmp_path / "kernel_details.csv.gz").write_bytes(packed)
    profile = open_profile(tmp_path)
    assert profile.event_count == 2
    (problem,) = (each for each in profile.problems if "checksum" in each.what)
    assert problem.severity is Severity.ERROR
