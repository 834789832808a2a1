"""What is said of PyTorch traces: figures of other tools, and what must hold of any trace."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch_trace
from kept_traces import unpacked_trace

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.evidence.unit_pauses import longest_pauses
from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.sources.torch.categories import tensor_core_use, uses_tensor_cores
from tpuprof_tui.sources.torch.operator_work import Call, work_of
from tpuprof_tui.sources.torch.views.by_name import by_module, by_operator
from tpuprof_tui.sources.torch.views.overview import PARTS
from tpuprof_tui.sources.torch.views.roofline import card_named
from tpuprof_tui.sources.torch.vocabulary import VOCABULARY
from tpuprof_tui.views.answer import places_text
from tpuprof_tui.views.registry import answer, facts_of, view_of, views_of
from tpuprof_tui.views.report import report_record, workers_of

NAME = "h100.pt.trace.json.gz"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return unpacked_trace("tl_bert_small_h100", tmp_path_factory.mktemp("traces"))


def report(path, *views: str, **asked) -> dict:
    profile = open_profile(path)
    found = [view for view in views_of(profile.vocabulary) if not views or view.id in views]
    return report_record(Query(Session(profile), **asked), found, workers_of(profile))


def rows(record: dict, view: str, table: str) -> list[dict]:
    (data,) = record["views"][view]["workers"].values()
    found = data["tables"][table]
    return [dict(zip((column["key"] for column in found["columns"]), row, strict=True)) for row in found["rows"]]


def figures(record: dict, view: str) -> dict:
    (data,) = record["views"][view]["workers"].values()
    return data["figures"]


@pytest.fixture(scope="module")
def record(folder):
    return report(folder / NAME)


def test_device_parts_of_the_step_are_those_of_the_plugin(record, folder):
    (told,) = json.loads((folder / "oracle_tb.json").read_text())["profiles"]
    wanted = told["overview"]["exact_steps_us"][0]
    (step,) = rows(record, "overview", "steps")
    assert step["step"] == wanted["step"]
    # it holds times as binary floats
    assert step["kernel_us"] == pytest.approx(wanted["Kernel"], abs=0.02)
    assert step["memcpy_us"] == pytest.approx(wanted["Memcpy"], abs=0.02)


def test_times_of_the_gpu_are_those_of_tracelens(record, folder):
    path = next(folder.glob("reference_tracelens/*/gpu_timeline.csv"))
    with path.open(newline="") as stream:
        told = {row["type"]: float(row["time ms"]) * 1000 for row in csv.DictReader(stream)}
    found = figures(record, "streams")
    for key, name in (("window_us", "total_time"), ("busy_us", "busy_time"), ("idle_us", "idle_time"),
                      ("computation_us", "computation_time"),
                      ("exposed_memcpy_us", "exposed_memcpy_time")):  # fmt: skip
        assert found[key] == pytest.approx(told[name], abs=0.1)


def test_parts_add_up(record):
    for step in rows(record, "overview", "steps"):
        parts = [value for key, value in step.items() if key.endswith("_us") and key not in ("start_us", "host_us",
                                                                                             "step_us")]  # fmt: skip
        assert len(parts) == 8
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(step["step_us"])
    found = figures(record, "streams")
    assert found["busy_us"] + found["idle_us"] == pytest.approx(found["window_us"])
    assert found["exposed_communication_us"] + found["overlap_us"] == found["communication_us"]
    for row in rows(record, "streams", "streams"):
        waits = row["host_wait_us"] + row["kernel_wait_us"] + row["other_wait_us"]
        assert waits == pytest.approx(row["idle_us"])
    launches = figures(record, "launches")
    work = figures(record, "kernels")["kernels"] + sum(row["calls"] for row in rows(record, "kernels", "copies"))
    assert launches["launches"] + launches["graph_launched"] + launches["unlaunched"] == work


def test_tables_of_one_subject_add_up(record):
    by_name, by_shape = (rows(record, "operators", table) for table in ("by_name", "by_shape"))
    for key in ("calls", "device_self_us", "host_self_us", "host_total_us"):
        assert sum(row[key] for row in by_name) == pytest.approx(sum(row[key] for row in by_shape))
    for row in by_name:
        assert row["device_self_us"] <= row["device_total_us"]
        assert 0 <= row["host_self_us"] <= row["host_total_us"]
    kernels = figures(record, "kernels")["kernels"]
    for table in ("by_name", "by_launch"):
        found = rows(record, "kernels", table)
        assert sum(row["calls"] for row in found) == kernels
        assert all(row["max_us"] >= row["mean_us"] >= row["min_us"] for row in found)


def test_memory_opened_less_closed_is_the_sum_of_changes(record, folder):
    events = json.loads(gzip.decompress((folder / NAME).read_bytes()))["traceEvents"]
    changes = sum(each["args"]["Bytes"] for each in events if each["name"] == "[memory]")
    opened = closed = 0
    for row in rows(record, "memory", "events"):
        opened += row["bytes"] if row["allocated_at_us"] is not None else 0
        closed += row["bytes"] if row["released_at_us"] is not None else 0
    assert opened - closed == changes


@pytest.mark.parametrize("how", ["shuffled", "bare", "moved"])
def test_the_same_events_in_another_file_are_the_same_report(folder, record, tmp_path, how):
    trace = json.loads(gzip.decompress((folder / NAME).read_bytes()))
    events = trace["traceEvents"]
    if how == "shuffled":
        random.Random(5).shuffle(events)
    path = tmp_path / "h100.pt.trace.json"
    if how == "moved":
        for each in events:
            if "ts" in each:
                each["ts"] = round(each["ts"] + 1_000_000, 3)
    path.write_text(json.dumps(events if how == "bare" else trace))
    found = report(path)
    if how == "bare":  # what stands beside the events is not there: names of cards
        assert figures(found, "streams") == figures(record, "streams")
        assert found["views"]["operators"] == record["views"]["operators"]
        return
    own = [view.id for view in VOCABULARY.views if not view.screen_only]
    assert {view: found["views"][view] for view in own} == {view: record["views"][view] for view in own}
    (here,), (there,) = found["workers"], record["workers"]
    assert here["duration_us"] == there["duration_us"]
    moved = 1_000_000 if how == "moved" else 0
    assert float(here["start"]) == pytest.approx(float(there["start"]) + moved, abs=1e-3)


def test_a_folder_is_its_files(folder, record, tmp_path):
    for rank in range(2):
        trace = json.loads(gzip.decompress((folder / NAME).read_bytes()))
        trace["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 3}
        (tmp_path / f"host_{rank}.17.pt.trace.json").write_text(json.dumps(trace))
    found = report(tmp_path)
    assert [(worker["key"], worker["rank"], worker["span"]) for worker in found["workers"]] == [
        ("Rank 0", 0, 1), ("Rank 1", 1, 1),
    ]  # fmt: skip
    for view, data in record["views"].items():
        if view in ("overview", "operators", "kernels", "memory", "steps", "streams", "launches"):
            (wanted,) = data["workers"].values()
            assert list(found["views"][view]["workers"].values()) == [wanted, wanted]
    assert any("not here: 2" in problem["what"] for problem in found["problems"])


def test_ranks_that_are_not_there_are_a_problem_of_a_folder_not_of_a_file(tmp_path):
    first, second = torch_trace.write_run(tmp_path, ranks=2, steps=1, layers=1)
    second.unlink()
    (problem,) = open_profile(tmp_path).problems
    assert problem.what == "Ranks of the run that are not here: 1."
    assert open_profile(first).problems == ()


def test_a_range_holds_what_starts_in_it(folder, record):
    profile = open_profile(folder / NAME)
    half = (profile.start_ns + profile.end_ns) // 2
    parts = [report(folder / NAME, range=window) for window in ((profile.start_ns, half), (half, profile.end_ns))]
    for view, key in (
        ("kernels", "kernels"),
        ("kernels", "total_us"),
        ("streams", "busy_us"),
        ("launches", "launches"),
    ):
        assert sum(figures(part, view)[key] for part in parts) == pytest.approx(figures(record, view)[key])


def test_a_step_is_the_work_it_launched(folder, record):
    found = report(folder / NAME, step=6)
    (step,) = rows(record, "steps", "steps")
    assert figures(found, "launches")["launches"] == step["launched"]


def test_what_is_held_at_the_peak_is_what_one_finds_instant_by_instant():
    found = rows(report(SYNTHETIC, "memory"), "memory", "held")
    held, peak, at_peak = {}, 0, {}
    for each in json.loads(gzip.decompress(SYNTHETIC.read_bytes()))["traceEvents"]:
        if each["name"] == "[memory]":
            told = each["args"]
            held[told["Addr"]] = told["Bytes"]
            if told["Bytes"] < 0:
                del held[told["Addr"]]
            if told["Total Allocated"] > peak:
                peak, at_peak = told["Total Allocated"], dict(held)
    assert sum(row["bytes"] for row in found) == sum(at_peak.values()) == peak
    assert sum(row["allocations"] for row in found) == len(at_peak)
    assert sum(row["share"] for row in found) == pytest.approx(1)
    assert next(row for row in found if row["operator"] == "aten::_foreach_add_")["allocations"] == 4


def test_memory_that_was_allocated_again_is_not_held_twice(tmp_path):
    """Its release was lost: 1 KiB is held at the peak, not 2."""

    def instant(at, change, held):
        return {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": at,
                "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": change, "Total Allocated": held,
                         "Total Reserved": 4096}}  # fmt: skip

    events = [instant(10, 1024, 1024), instant(20, 2048, 2048),
              {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 30}]  # fmt: skip
    path = tmp_path / "again.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    (held,) = rows(report(path), "memory", "held")
    assert (held["bytes"], held["share"]) == (2048, 1)


def test_secrets_are_not_told(folder, tmp_path):
    trace = json.loads(gzip.decompress((folder / NAME).read_bytes()))
    trace["metadata"] = {"environ": {"API_TOKEN": "hidden-value"}}
    trace["deviceProperties"][0]["API_KEY"] = "hidden-value"
    path = tmp_path / NAME.removesuffix(".gz")
    path.write_text(json.dumps(trace))
    trace["arguments"] = ["train.py --api-key hidden-value", "A=1;MY_SECRET=hidden-value"]
    path.write_text(json.dumps(trace))
    assert "hidden-value" not in json.dumps(report(path))
    assert main(["export", str(path), str(tmp_path / "out"), "--only", "xlsx,web,pftrace,collapsed"]) == 0
    for file in (tmp_path / "out").iterdir():
        assert b"hidden-value" not in file.read_bytes()
        if file.suffix == ".xlsx":
            with zipfile.ZipFile(file) as book:
                assert not any(b"hidden-value" in book.read(name) for name in book.namelist())
    query = Query(Session(open_profile(path)))
    table = answer(view_of(VOCABULARY, "recording", screen=True), query).table("recording")
    told = dict(table.rows())
    assert told["metadata.environ.API_TOKEN"] == told["deviceProperties.0.API_KEY"] == "********"
    assert told["arguments.0"] == "train.py --api-key ********"
    assert told["arguments.1"] == "A=1;MY_SECRET=********"
    assert told["schemaVersion"] == "1"
    assert "recording" not in report(path)["views"]


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("HTTPS_PROXY", "http://user:hidden@proxy:8080", "http://********@proxy:8080"),
        ("ORIGIN", "https://hidden@host/x", "https://********@host/x"),
        ("DB_PASS", "hidden", "********"),
        ("CREDS", "hidden", "********"),
        ("HEADER", "Authorization: Bearer hidden", "Authorization: Bearer ********"),
        ("HEADER", 'x-api-key: "hid den"; a', "x-api-key: ********; a"),
        ("LINK", "https://b/x?X-Amz-Signature=hidden&y=1", "https://b/x?X-Amz-Signature=********&y=1"),
        ("LINK", "https://b/x?sig=hidden&y=1", "https://b/x?sig=********&y=1"),
        ("TEXT", r'{"a": "{\"token\": \"hid den\", \"b\": 1}"}', r'{"a": "{\"token\": ********, \"b\": 1}"}'),
        ("TEXT", "use ghp_abcdefghijklmnop1234 here", "use ******** here"),
        ("BYPASS", "compass passes 1", "compass passes 1"),
        ("PATH", "/usr/bin:/home/me", "/usr/bin:/home/me"),
    ],
)
def test_secrets_in_texts_are_masked(name, value, told, tmp_path):
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    path = tmp_path / "a.pt.trace.json"
    arguments = ["a.py", "--token", "hidden", "--lr", "1"]
    record = {"schemaVersion": 1, name: value, "argv": arguments, "traceEvents": [event]}
    path.write_text(json.dumps(record))
    query = Query(Session(open_profile(path)))
    rows = dict(answer(view_of(VOCABULARY, "recording", screen=True), query).table("recording").rows())
    assert rows[name] == told
    assert [rows[f"argv.{number}"] for number in range(5)] == ["a.py", "--token", "********", "--lr", "1"]


def test_parts_follow_range_scope_and_filter(folder, record):
    whole = figures(record, "overview")
    kernels = figures(report(folder / NAME, "overview", filter="type=kernel"), "overview")
    assert kernels["kernel_us"] == whole["kernel_us"]
    assert kernels["memcpy_us"] == kernels["runtime_us"] == kernels["cpu_us"] == 0
    assert kernels["step_us"] == whole["step_us"]
    profile = open_profile(folder / NAME)
    middle = (profile.start_ns + profile.end_ns) // 2
    for asked in ({"range": (profile.start_ns, middle)}, {"range": (middle, profile.end_ns)}):
        (step,) = rows(report(folder / NAME, "overview", **asked), "overview", "steps")
        parts = [step[f"{key}_us"] for key in PARTS]
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(step["step_us"])
    assert step["start_us"] == pytest.approx((middle - profile.start_ns) / 1000)


def write_archive(path, files) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for file in files:
            archive.add(file, f"run/{file.name}")


def test_an_archive_a_pipe_and_a_packed_file_tell_what_the_file_tells(folder, record, tmp_path, monkeypatch, capsys):
    archive = tmp_path / "run.tar.gz"
    write_archive(archive, [folder / "oracle_tb.json", folder / NAME])
    found = report(archive)
    assert {**found["views"], "findings": 0} == {**record["views"], "findings": 0}
    assert found["workers"] == record["workers"]
    text = gzip.decompress((folder / NAME).read_bytes())
    for piped in (text, archive.read_bytes()):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(piped)))
        assert main(["report", "-", "overview", "--json"]) == 0
        (told,) = json.loads(capsys.readouterr().out)["views"]["overview"]["workers"].values()
        assert told["figures"] == figures(record, "overview")
    # without a screen it is summed up
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(["-"]) == 0
    assert capsys.readouterr().out.splitlines()[2].startswith("stdin.json: NVIDIA H100")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"no trace")))
    assert main(["report", "-"]) == 2
    assert "Standard input is no known kind of capture" in capsys.readouterr().err
    packed = tmp_path / "h100.json.zst"
    packed.write_bytes(b"\x28\xb5\x2f\xfd" + text[:100])
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UnreadableError, match="needs the package zstandard"):
        open_profile(packed)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(packed.read_bytes())))
    assert main(["report", "-"]) == 2
    assert "Standard input is packed with zstd, which needs the package zstandard" in capsys.readouterr().err


def test_a_trace_beyond_memory_is_refused_with_what_it_would_need(folder, monkeypatch):
    monkeypatch.setattr("tpuprof_tui.sources.torch.read.trace_reader.memory_bytes", lambda: 1 << 18)
    monkeypatch.setattr("tpuprof_tui.sources.torch.read.trace_reader._LARGE", 0)
    with pytest.raises(UnreadableError, match=r"reading it takes about \S+ \S+ of memory, and there are 256\S* KiB"):
        open_profile(folder / NAME)


def test_a_rank_with_another_clock_is_moved_onto_that_of_the_first(tmp_path):
    paths = torch_trace.write_run(tmp_path, ranks=2, steps=3, packed=False)
    before = open_profile(tmp_path)
    assert before.problems == ()
    trace = json.loads(paths[1].read_text())
    trace["baseTimeNanoseconds"] += 7_000_000_000
    paths[1].write_text(json.dumps(trace))
    after = open_profile(tmp_path)
    (problem,) = after.problems
    assert problem.file == paths[1].name
    assert re.search(r"moved by ~-(6,999,999|7,000,000)\.\d{3} us", problem.done)
    assert [group.label for group in after.groups if group.parent < 0] == ["Rank 0", "Rank 1 ~"]
    one, other = (lane["end"] for lane in after.lanes if lane.label == "stream 13")
    assert abs(int(np.median(other - one))) < 2


#: M, N, K, GFLOP, calls, TFLOP/s and MiB of matrix products with a bias as TraceLens tells them of this trace.
PRODUCTS = [
    (141, 512, 512, 0.0739968, 17, 12.747460835993481, 0.7763671875),
    (141, 30522, 512, 4.41119205, 1, 106.86019668919998, 38.211021423339844),
]


@pytest.mark.parametrize(("m", "n", "k", "gflop", "calls", "tflops", "mib"), PRODUCTS)
def test_operations_by_shape_are_those_of_tracelens(record, m, n, k, gflop, calls, tflops, mib):
    found = {(row["name"], row["shape"]): row for row in rows(record, "roofline", "roofline")}
    mine = found["aten::addmm", f"[[{n}],[{m},{k}],[{k},{n}],[],[]]"]
    # it counts the addition of the bias as well
    assert mine["flops"] + m * n == pytest.approx(gflop * 1e9)
    assert mine["calls"] == calls
    assert mine["tflops"] == pytest.approx(tflops, rel=0.01)
    assert mine["bytes"] == pytest.approx(mib * 2**20, rel=0.01)
    assert mine["bound"] == "memory"
    (mine,) = (each for (name, _), each in found.items() if name == "aten::scaled_dot_product_attention")
    assert mine["flops"] == 40_716_288
    assert mine["tflops"] == pytest.approx(4.362114511601348, rel=0.01)


def test_convolutions_are_counted_by_their_output():
    told = ["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1"]
    work = work_of("aten::convolution", Call([[10, 3, 224, 224], [64, 3, 7, 7]], [4, 4], told))
    out = 10 * 64 * 112 * 112
    assert work == (2 * out * 3 * 49, 4 * (10 * 3 * 224 * 224 + 64 * 3 * 49 + out))
    assert work_of("aten::convolution", Call([[10, 3, 224], [64, 3, 7, 7]], [4, 4], told)) is None


def test_runs_of_a_server_are_prefill_and_decode_and_graphs_one_call_for_many_kernels(tmp_path, capsys):
    def event(category, name, start, length, thread=1, **args):
        return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": start, "dur": length,
                "args": args}  # fmt: skip

    runs = [
        ("execute_512_context_2(sq512sk512)_generation_0()", 0),
        ("execute_32_context_0()_generation_32(sq32)", 100),
    ]
    events = [event("user_annotation", name, start, 50) for name, start in runs]
    events += [event("cuda_runtime", "cudaGraphLaunch", start + 10, 5, correlation=start + 1) for _, start in runs]
    events += [event("kernel", "k", start + 20 + 10 * n, 8, thread=7, correlation=start + 1)
               for _, start in runs for n in range(3)]  # fmt: skip
    path = tmp_path / "server.json"
    path.write_text(json.dumps({"traceEvents": events}))
    profile = open_profile(path)
    assert profile.steps.counts() == {"prefill 2": 1, "decode 32": 1}
    found = rows(report(path, "steps"), "steps", "executions")
    keys = ("kind", "device_us", "launched", "graphs", "graph_kernels")
    assert [tuple(each[key] for key in keys) for each in found] == [
        ("prefill 2", 24, 3, 1, 3), ("decode 32", 24, 3, 1, 3),
    ]  # fmt: skip
    (kernels,) = (lane for lane in profile.lanes if lane.kind == "stream")
    assert kernels["step"].tolist() == [0, 0, 0, 1, 1, 1]
    # whose these kernels are nobody knows
    assert main(["report", str(path), "operators", "kernels"]) == 0
    assert capsys.readouterr().out.count("Graphs were replayed") == 2


@pytest.mark.parametrize("asked", [["--range", "3.2ms..5.1ms"], ["--step", "2"]])
def test_a_part_of_a_file_that_is_larger_than_memory_tells_what_the_whole_does(tmp_path, monkeypatch, capsys, asked):
    from tpuprof_tui.sources.torch.read import trace_reader

    (path,) = torch_trace.write_run(tmp_path, steps=4, layers=1, packed=False)
    text = path.stat().st_size
    command = ["report", str(path), "overview", "operators", "kernels", "streams", "steps", "--json"]

    def answered(*more: str) -> dict:
        assert main([*command, *more]) == 0
        return json.loads(capsys.readouterr().out)

    whole = answered(*asked)
    monkeypatch.setattr(trace_reader, "_LARGE", 1)
    monkeypatch.setattr(trace_reader, "memory_bytes", lambda: int(text * 0.65))
    part = answered(*asked)
    # the share of tensor cores is that of all kernels there are
    for each in (part, whole):
        (overview,) = each["views"]["overview"]["workers"].values()
        for key in ("tensor_core_share", "tensor_core_time_share", "tensor_core_unknown_share"):
            del overview["figures"][key]
        del overview["tables"]["devices"]
    assert part["views"] == whole["views"]
    assert main(["report", str(path), "overview", "steps", *asked]) == 0
    assert "do not count" not in capsys.readouterr().out, "a step beside what was asked for is cut off"
    assert "does not fit into memory" in part["problems"][0]["what"]
    assert main(command) == 2
    assert "--range" in capsys.readouterr().err
    assert main([*command, "--step", "77"]) == 2
    assert "no step 77" in capsys.readouterr().err
    monkeypatch.setattr(trace_reader, "memory_bytes", lambda: text // 10)
    assert main([*command, *asked]) == 2
    assert "shorter" in capsys.readouterr().err


def gemm(path: Path, card: str, *, start: float = 0.0, name: str = "gemm", **metadata) -> Path:
    """A trace of one product of matrices, launched by an operator, with work before and after it."""

    def event(category, name, start, length, thread, **args):
        return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": thread, "ts": start, "dur": length,
                "args": {"device": 0, "External id": 7, "correlation": 3, **args}}  # fmt: skip

    events = [
        event("user_annotation", "ProfilerStep#0", start, 1000, 1, **{"External id": 1}),
        event("cpu_op", "aten::mm", start + 10, 50, 1), event("cuda_runtime", "cudaLaunchKernel", start + 20, 5, 1),
        event("kernel", name, start + 100, 400, 7),
    ]  # fmt: skip
    cards = [{"id": 0, "name": card, "totalGlobalMem": 1 << 36, "computeMajor": 9, "computeMinor": 0}]
    path.write_text(json.dumps({"traceEvents": events, "deviceProperties": cards, **metadata}))
    return path


@pytest.mark.parametrize(("card", "told"), [("NVIDIA H100", True), ("AMD Instinct MI300X", False), ("ARTEMIS", False)])
def test_names_of_kernels_tell_tensor_cores_of_nvidias_cards_alone(tmp_path, capsys, card, told):
    path = gemm(tmp_path / "one.pt.trace.json", card, name="ampere_sgemm_128x64_nn")
    assert main(["report", str(path), "overview", "kernels", "operators"]) == 0
    out = capsys.readouterr().out
    assert ("Tensor cores" in out) is told
    assert ("Unused: autocast" in out) is told
    assert (f"kernel names of {card} do not show it" in out) is not told
    assert figures(report(path, "overview"), "overview")["tensor_core_share"] == 0
    (operator,) = rows(report(path, "operators"), "operators", "by_name")
    assert (operator["tensor_core_self_share"], operator["tensor_core_time_self_share"]) == (0, 0 if told else None)
    assert (
        any(row["rule"] == "tensor_cores_unused" for row in rows(report(path, "findings"), "findings", "findings"))
        is told
    )


def test_recordings_that_lie_far_apart_are_shown_one_behind_the_other(tmp_path):
    for span, start in ((0, 0.0), (1, 60_000_000.0)):
        gemm(tmp_path / f"w.{span}.pt.trace.json", "NVIDIA H100", start=start, distributedInfo={"rank": 3})
    profile = open_profile(tmp_path)
    (note,) = profile.problems
    assert (note.severity.word, note.count) == ("note", 2)
    assert profile.end_ns == 2_000_000
    assert profile.windows == ((100_000, 500_000), (1_100_000, 1_500_000))
    assert [unit.utilisation for unit in Query(Session(profile)).unit_figures] == [1, 1]
    assert profile.wall_ns is None
    assert [group.label for group in profile.groups if group.parent < 0] == ["w@1", "w@2"]
    session = Session(profile)
    pauses = [longest_pauses(session, unit, 0, 2_000_000)[0] for unit in profile.units]
    assert [(pause.start, pause.end) for pause in pauses] == [(500_000, 1_000_000), (1_500_000, 2_000_000)]
    for name, start, end in (("unit", 0, 2_000_000), ("findings", 0, 100)):
        query = Query(session, scope=Scope(profile.units[0]), range=(start, end), filter="name=nothing_has_it")
        assert answer(view_of(profile.vocabulary, name), query) is not None
    empty = Session(profile.restricted_to([slice(0, 0)] * len(profile.lanes)))
    (pause,) = longest_pauses(empty, profile.units[0], 0, 10)
    assert (pause.start, pause.end) == (0, 10)


def test_of_a_recording_of_graphs_nobody_is_told_that_the_card_is_idle(tmp_path, capsys):
    path = gemm(tmp_path / "one.pt.trace.json", "NVIDIA H100")
    told = json.loads(path.read_text())
    told["traceEvents"].append({**told["traceEvents"][2], "name": "cudaStreamBeginCapture"})
    assert main(["report", str(path), "overview"]) == 0
    assert "Idle over half the time" in capsys.readouterr().out
    path.write_text(json.dumps(told))
    assert main(["report", str(path), "overview"]) == 0
    assert "CUDA graphs are captured, not run." in capsys.readouterr().out


SYNTHETIC = Path(__file__).parents[2] / "samples" / "torch_cuda_synthetic" / "node0_4000.1700000000000.pt.trace.json.gz"
#: What is asked for: a half of the recording, a step, a filter.
ASKED = ({"range": (2_000_000, 7_000_000)}, {"step": 1}, {"filter": "type=kernel"})
OWN_VIEWS = [view.id for view in VOCABULARY.views if not view.screen_only]


@pytest.mark.parametrize("view", OWN_VIEWS)
@pytest.mark.parametrize("asked", [*ASKED[:2], {"filter": "name=nothing.of.this"}, {"scope": Scope(lane=1)}], ids=str)
def test_every_view_follows_what_is_asked_or_says_that_it_does_not(view, asked):
    session = Session(open_profile(SYNTHETIC))
    chosen = view_of(VOCABULARY, view)
    whole, part = (answer(chosen, Query(session, **each)) for each in ({}, asked))
    followed = [[fact.value for fact in each.facts] + [table.rows() for table in each.tables] for each in (whole, part)]
    says = any("not narrowed by" in note for note in part.notes)
    # a filter narrows some of their figures
    if "filter" in asked and view in ("memory", "steps"):
        assert says
        assert followed[0] != followed[1]
    else:
        assert (followed[0] == followed[1]) is says


@pytest.mark.parametrize("view", ["streams", "launches", "kernels"])
def test_views_of_streams_say_why_a_host_thread_has_no_figures(view):
    session = Session(open_profile(SYNTHETIC))
    lanes = session.profile.lanes
    noted = {
        lane.kind: any("choose the rank or a GPU" in note for note in
                       answer(view_of(VOCABULARY, view), Query(session, scope=Scope(lane=number))).notes)
        for number, lane in enumerate(lanes)
    }  # fmt: skip
    assert noted == {kind: kind != "stream" for kind in noted}
    assert {"stream", "thread"} <= noted.keys()
    for scope in (Scope(), Scope(session.profile.units[0])):
        assert not answer(view_of(VOCABULARY, view), Query(session, scope=scope)).notes


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_views_are_what_one_finds_event_by_event(asked):
    found = report(SYNTHETIC, **asked)
    events = [each for each in json.loads(gzip.decompress(SYNTHETIC.read_bytes()))["traceEvents"]
              if each["ph"] == "X" or each["name"] == "[memory]"]  # fmt: skip
    zero = min(each["ts"] for each in events)
    calls = {each["args"]["correlation"]: each for each in events if each.get("cat") == "cuda_runtime"}
    (step,) = (each for each in events if each["name"] == "ProfilerStep#1" and each["cat"] == "user_annotation")

    def of_device(event: dict) -> bool:
        return event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")

    def wanted(event: dict) -> bool:
        if "range" in asked:
            low, high = asked["range"]
            return low <= round((event["ts"] - zero) * 1000) < high
        if "step" in asked:
            at = (calls[event["args"]["correlation"]] if of_device(event) else event)["ts"]
            return step["ts"] <= at < step["ts"] + step["dur"]
        return event["cat"] == "kernel"

    chosen = [each for each in events if wanted(each)]
    work = [each for each in chosen if of_device(each)]
    kernels = [each for each in work if each["cat"] == "kernel"]
    assert len(kernels) > 10
    sums: dict[str, list[float]] = {}
    for each in kernels:
        sums.setdefault(each["name"], []).append(each["dur"])
    by_name = {row["name"]: (row["calls"], row["total_us"]) for row in rows(found, "kernels", "by_name")}
    assert by_name == {name: (len(each), pytest.approx(sum(each))) for name, each in sums.items()}
    told = figures(found, "launches")
    assert told["launches"] + told["graph_launched"] + told["unlaunched"] == len(work)
    assert sum(row["events"] for row in rows(found, "streams", "streams")) == len(work)
    names = rows(found, "names", "names")
    assert sum(row["calls"] for row in names if row["side"] == "device") == len(work)
    host = [each for each in chosen if each["ph"] == "X" and not of_device(each)]
    assert sum(row["calls"] for row in names if row["side"] == "host") == len(host)
    assert sum(row["calls"] for row in rows(found, "operators", "by_name")) == sum(
        each["cat"] == "cpu_op" and not each["name"].startswith("Optimizer.") for each in chosen
    )
    if "filter" not in asked:
        memory = [each for each in chosen if each["name"] == "[memory]"]
        assert figures(found, "memory")["records"] == len(memory) > 0
        assert len(rows(found, "memory", "curve")) == len(memory)


def test_of_many_ranks_the_same_advice_is_told_once_with_its_ranks(tmp_path, capsys):
    torch_trace.write_run(tmp_path, ranks=10, steps=2, layers=1)
    assert main(["report", str(tmp_path), "findings", "overview", "--limit", "20"]) == 0
    told = capsys.readouterr().out
    for advice, ranks in (("fragmentation", "Rank 0-9"), ("exposed_communication", "GPU 0-9"),
                          ("communication", "Rank 0-8")):  # fmt: skip
        (line,) = [line for line in told.splitlines() if f" {advice} " in line]
        assert f" {ranks}, e.g. " in f" {line}"
    assert main(["report", str(tmp_path), "findings", "overview", "--json"]) == 0
    views = json.loads(capsys.readouterr().out)["views"]
    for view, table, key in (
        ("findings", "findings", "fragmentation"),
        ("overview", "recommendations", "communication"),
    ):
        known = [key in row for each in views[view]["workers"].values() for row in each["tables"][table]["rows"]]
        assert sum(known) in (9, 10), "programs have a row for each rank"


@pytest.mark.parametrize(("places", "told"), [
    (["Rank 2", "Rank 0", "Rank 1", "Rank 6"], "Rank 0-2, 6, e.g. 2"),
    (["Rank 1", "Rank 0"], "Rank 1, 0"), (["Rank 1 ~", "Rank 0 ~", "Rank 2 ~"], "Rank 0-2, e.g. 1 ~"),
    (["worker0@2", "host"], "worker0@2, host"),
    ([f"GPU {n}" for n in range(0, 20, 2)], "GPU 0, 2, 4, 6, 8, 10, ... (10), e.g. 0"),
])  # fmt: skip
def test_places_are_told_by_the_stretches_of_their_numbers(places, told):
    assert places_text(places) == told


def launchers(events: list[dict], row: int) -> tuple[str | None, str | None]:
    """Operator and module of an event, looked for one event after the other: by ids, then by nesting."""
    event, operator, module = events[row], None, None
    calls = ("cuda_runtime", "cuda_driver")
    if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"):
        number = event["args"]["correlation"]
        event = next(each for each in events if each["cat"] in calls and each["args"].get("correlation") == number)
    if event["cat"] == "cpu_op" and not event["name"].startswith("Optimizer."):
        operator = event
    elif event["cat"] in calls:
        # the first that has it: others of its name lie in it
        operator = next(each for each in events if each["cat"] in ("cpu_op", "user_annotation")
                        and each["args"].get("External id") == event["args"]["External id"])  # fmt: skip
    inner = operator if event is not events[row] and operator else event
    around = [each for each in events if each["name"].startswith("nn.Module: ") and each["tid"] == inner["tid"]
              and each["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= each["ts"] + each["dur"]]  # fmt: skip
    module = min(around, key=lambda each: each["dur"], default=None)
    return operator and operator["name"], module and module["name"].removeprefix("nn.Module: ")


def test_colours_are_of_the_operators_and_modules_that_a_slow_reading_finds(tmp_path):
    paths = torch_trace.write_run(tmp_path, ranks=2, steps=2, layers=2, packed=False)
    session = Session(open_profile(tmp_path))
    profile = session.profile
    told = [0, 0]
    for way, entry in enumerate((by_operator, by_module)):
        texts, numbers = entry(session)
        times = dict.fromkeys(texts, 0)
        for rank, path in enumerate(paths):
            events = [each for each in json.loads(path.read_text())["traceEvents"] if each["ph"] == "X"]
            for lane, found in zip(profile.lanes, numbers, strict=True):
                if profile.groups.top(lane.group) != profile.groups.top(profile.workers[rank].group):
                    continue
                assert found.dtype == np.int32
                for place, number, ns in zip(lane["order"].tolist(), found.tolist(), lane["duration"].tolist(),
                                             strict=True):  # fmt: skip
                    assert (texts[number] if number >= 0 else None) == launchers(events, place)[way]
                    if number >= 0 and lane.kind == "stream":
                        times[texts[number]] += ns
                        told[way] += 1
        assert list(times.values()) == sorted(times.values(), reverse=True)
    assert told[0] > told[1] > 40


def test_modules_are_as_many_where_their_table_is_not_wanted(tmp_path):
    torch_trace.write_run(tmp_path, ranks=2, steps=2, layers=2, packed=False)
    profile = open_profile(tmp_path)
    view = view_of(profile.vocabulary, "modules")
    alone = facts_of(view, Query(Session(profile)))
    assert [(fact.about, fact.value > 5) for fact in alone] == [("Rank 0", True), ("Rank 1", True)]
    assert alone == answer(view, Query(Session(profile))).facts


def test_kernels_of_a_real_trace_are_of_the_modules_a_slow_reading_finds(folder):
    session = Session(open_profile(folder / NAME))
    events = [each for each in json.loads(gzip.decompress((folder / NAME).read_bytes()))["traceEvents"]
              if each.get("ph") == "X"]  # fmt: skip
    found = [entry(session) for entry in (by_operator, by_module)]
    for number, lane in enumerate(session.profile.lanes):
        for row, place in enumerate(lane["order"].tolist() if lane.kind == "stream" else ()):
            told = tuple(texts[numbers[number][row]] for texts, numbers in found)
            assert told == launchers(events, place)


def test_without_operators_and_modules_no_event_has_a_colour(tmp_path):
    (path,) = torch_trace.write_run(tmp_path, steps=1, layers=1, packed=False)
    record = json.loads(path.read_text())
    record["traceEvents"] = [each for each in record["traceEvents"] if each.get("cat") == "kernel"]
    path.write_text(json.dumps(record))
    session = Session(open_profile(path))
    assert session.profile.event_count > 0
    for entry in (by_operator, by_module):
        texts, numbers = entry(session)
        assert texts == []
        assert [len(each) for each in numbers] == [len(lane) for lane in session.profile.lanes]
        assert all((each == -1).all() for each in numbers)


def event(category: str, name: str, start: float, length: float, thread: int = 1, **args) -> dict:
    """An event of process 0, which is also the device."""
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": thread, "ts": start, "dur": length,
            "args": args}  # fmt: skip


def write_trace(path: Path, events: list[dict], **metadata) -> Path:
    path.write_text(json.dumps({"traceEvents": events, **metadata}))
    return path


def test_kernels_of_a_collective_communicate_in_the_figures_of_any_profile_too(tmp_path):
    path = write_trace(tmp_path / "one.pt.trace.json", [
        event("kernel", "gemm", 0, 200, 7, correlation=9),
        event("user_annotation", "nccl:all_reduce", 50, 30, **{"External id": 3}),
        event("cuda_runtime", "cudaLaunchKernel", 60, 10, **{"External id": 3}, correlation=1),
        event("kernel", "multimem_all_reduce_kernel", 100, 300, 13, correlation=1),
    ])  # fmt: skip
    found = report(path)
    (unit,), streams = rows(found, "units", "units"), figures(found, "streams")
    for key in ("communication_us", "exposed_communication_us", "overlap_us"):
        assert unit[key] == streams[key] > 0
    assert (unit["compute_us"], unit["communication_us"]) == (streams["computation_us"], 300)


def collective(number: int, name: str, start: float, telling: dict, kernel: dict) -> list[dict]:
    """A collective with its kernel: ``telling``: arguments of its record, none if empty; ``kernel``: of its kernel."""
    record = [event("cpu_op", "record_param_comms", start, 40, **{"External id": number}, **telling)] if telling else []
    return [
        *record, event("user_annotation", name, start + 5, 30, **{"External id": number + 1}),
        event("cuda_runtime", "cudaLaunchKernel", start + 10, 10, correlation=number, **{"External id": number + 1}),
        event("kernel", "ncclDevKernel_AllReduce", start + 60, 20, 13, correlation=number, stream=13, **kernel),
    ]  # fmt: skip


def told(sent, received, dtype, name="0", ranks="[0, 1]") -> dict:
    return {"Collective name": "x", "In msg nelems": sent, "Out msg nelems": received, "dtype": dtype,
            "Group size": 2, "Process Group Name": name, "Process Group Ranks": ranks}  # fmt: skip


def test_messages_of_collectives_are_those_of_their_records_else_of_their_kernels(tmp_path):
    path = write_trace(tmp_path / "one.pt.trace.json", [
        *collective(10, "nccl:all_reduce", 0, told(100, 100, "BFloat16"), {}),
        # the record decides, not the kernel
        *collective(20, "nccl:all_reduce", 100, told(50, 50, "Double"), told(7, 7, "Float")),
        *collective(30, "nccl:_all_gather_base", 200, {}, told(10, 20, "Float8_e4m3fn", "4", "[0, 3]")),
        # one of a name tells nothing: the sum is not known
        *collective(40, "nccl:broadcast", 300, told(5, 5, "Long"), {}),
        *collective(50, "nccl:broadcast", 400, {}, {}),
        # beyond what can be: not known
        *collective(60, "nccl:reduce", 500, told(1 << 62, -1, "Double", "0", []), {}),
        *collective(70, "nccl:gather", 600, told(8, "8", "Unheard") | {"Group size": "two"}, {}),
        # groups of different sizes
        *collective(80, "nccl:reduce_scatter", 700, told(4, 2, "Int", "a", "[0]") | {"Group size": 1}, {}),
        *collective(90, "nccl:reduce_scatter", 800, told(4, 2, "Int", "b", "[0, 1]"), {}),
    ])  # fmt: skip
    table = report(path, "distributed")["views"]["distributed"]["tables"]["collectives"]
    keys = [column["key"] for column in table["columns"]]
    found = {row[1]: tuple(row[keys.index("input_bytes") :]) for row in table["rows"]}
    assert keys[-5:] == ["input_bytes", "output_bytes", "group_size", "group", "ranks"]
    assert {row[keys.index("bytes")] for row in table["rows"]} == {0}
    assert found == {
        "nccl:all_reduce": (600, 600, 2, "0", "[0, 1]"), "nccl:_all_gather_base": (10, 20, 2, "4", "[0, 3]"),
        "nccl:broadcast": (None, None, None, None, None), "nccl:reduce": (None, None, 2, "0", "[]"),
        "nccl:gather": (None, None, None, "0", "[0, 1]"), "nccl:reduce_scatter": (32, 16, None, "a, b", "[0]; [0, 1]"),
    }  # fmt: skip


@pytest.mark.parametrize("thread", [1, 2])
def test_a_step_that_is_recorded_twice_is_one(tmp_path, thread):
    steps = [("user_annotation", f"ProfilerStep#{number}", 1000 * number, 900) for number in (1, 2, 3, 3, 2, 1)]
    events = [event(*step, thread if index > 2 else 1) for index, step in enumerate(steps)]
    events += [
        event("cuda_runtime", "cudaLaunchKernel", 1000 * number, 5, 1, correlation=number) for number in (1, 2, 3)
    ]
    events += [event("kernel", "gemm", 1000 * number + 10, 300, 7, correlation=number) for number in (1, 2, 3)]
    found = figures(report(write_trace(tmp_path / "twice.pt.trace.json", events)), "overview")
    assert (found["steps"], found["step_us"], found["kernel_us"]) == (3, 900, 300)


@pytest.mark.parametrize("kernels", [3, 3000])
@pytest.mark.parametrize("asked", [{}, {"step": 1}, {"range": True}, {"filter": "name~gemm"}])
def test_an_event_of_no_length_at_the_end_counts_in_every_view(tmp_path, kernels, asked):
    path = write_trace(tmp_path / "one.pt.trace.json", [
        event("user_annotation", "ProfilerStep#1", 0, 20),
        event("cuda_runtime", "cudaLaunchKernel", 1, 2, correlation=1),
        *(event("kernel", "gemm", 100 + 10 * number, 5, 7, correlation=1, stream=7) for number in range(kernels - 1)),
        event("kernel", "gemm_end", 95 + 10 * (kernels - 1), 0, 7, correlation=1, stream=7),
    ])  # fmt: skip
    end = (95 + 10 * (kernels - 1)) * 1000
    found = report(path, **(asked | {"range": (0, end)} if "range" in asked else asked))
    assert figures(found, "kernels")["kernels"] == kernels
    (stream,) = rows(found, "streams", "streams")
    lanes = [row["count"] for row in rows(found, "lanes", "lanes") if row["kind"] == "stream"]
    operations = [row["count"] for row in rows(found, "operations", "by_name")]
    assert (stream["events"], lanes, sum(operations)) == (kernels, [kernels], kernels)
    assert sum(row["count"] for row in rows(found, "durations", "durations")) == kernels
    (launch,) = rows(found, "units", "units")
    assert launch["busy_us"] == stream["busy_us"]


def test_windows_side_by_side_share_no_event(tmp_path):
    """Only at the end of the recording does an event that starts at the end of a window count in it."""
    path = write_trace(tmp_path / "one.pt.trace.json", [
        event("kernel", name, start, 0, 7, stream=7) for name, start in (("a", 0), ("b", 10), ("c", 20))
    ])  # fmt: skip
    counts = [[row["count"] for row in rows(report(path, "lanes", range=window), "lanes", "lanes")]
              for window in ((0, 10_000), (10_000, 20_000))]  # fmt: skip
    assert counts == [[1], [2]]


def test_one_record_of_several_collectives_counts_once(tmp_path):
    path = write_trace(tmp_path / "one.pt.trace.json", [
        event("cpu_op", "record_param_comms", 0, 90, **{"External id": 1}, **told(100, 100, "Float")),
        event("user_annotation", "nccl:coalesced", 1, 80, **{"External id": 2}),
        event("user_annotation", "nccl:all_reduce", 5, 10, **{"External id": 3}),
    ])  # fmt: skip
    table = report(path, "distributed")["views"]["distributed"]["tables"]["collectives"]
    at = [column["key"] for column in table["columns"]].index("input_bytes")
    assert {row[1]: row[at] for row in table["rows"]} == {"nccl:coalesced": 400, "nccl:all_reduce": None}


def test_what_began_before_a_range_covers_it(tmp_path):
    path = write_trace(tmp_path / "one.pt.trace.json", [
        event("user_annotation", "ProfilerStep#1", 0, 1000), event("cpu_op", "aten::item", 10, 900),
        event("kernel", "gemm", 40, 500, 7, correlation=1, stream=7, **{"blocks per SM": 2}),
        event("kernel", "ncclDevKernel_AllReduce", 200, 400, 13, correlation=2, stream=13),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 300, 250, 20, correlation=3, stream=20),
    ])  # fmt: skip
    found = report(path, range=(250_000, 650_000))
    (unit,), streams = rows(found, "units", "units"), figures(found, "streams")
    assert [streams[f"{key}_us"] for key in ("window", "computation", "communication", "memcpy", "busy")] == [
        350, 290, 350, 250, 350,
    ]  # fmt: skip
    assert unit["busy_us"] + unit["wait_us"] + unit["idle_us"] == streams["window_us"]
    assert unit["busy_us"] == streams["busy_us"]
    assert unit["compute_us"] == streams["computation_us"]
    assert unit["exposed_communication_us"] == streams["exposed_communication_us"] == 60
    lanes = {row["lane"].rpartition(" ")[2]: row for row in rows(found, "lanes", "lanes")}
    for row in rows(found, "streams", "streams"):
        lane = lanes[row["stream"]]
        assert (row["events"], row["busy_us"]) == (lane["count"], lane["busy_us"])
    (step,) = rows(found, "overview", "steps")
    assert (step["kernel_us"], step["memcpy_us"], step["cpu_us"], step["other_us"]) == (290, 10, 50, 0)
    (device,) = rows(found, "overview", "devices")
    assert (device["utilization"], device["sm_efficiency"]) == (350 / 400, 290 / 400)
    # the GPU is never idle, so that waiting for it costs nothing, and copies only what they are exposed
    gains = {row["rule"]: row["gain_us"] for row in rows(found, "findings", "findings")}
    assert "synchronises" not in gains
    assert gains["pageable_copies"] == unit["exposed_us"] + unit["exposed_communication_us"]
    # but what counts is what starts in it
    assert sum(row["count"] for row in rows(found, "durations", "durations")) == 1


def test_a_step_that_nobody_marked_can_be_selected(tmp_path):
    events = []
    for number in range(6):
        for place, name in enumerate(("aten::mm", "aten::add", "aten::mul")):
            start, correlation = 1000 * number + 100 * place, 3 * number + place
            events += [event("cpu_op", name, start, 80, **{"External id": correlation + 1}),
                       event("cuda_runtime", "cudaLaunchKernel", start + 10, 10, correlation=correlation),
                       event("kernel", f"k_{name}", start + 30, 50 + number, 7, correlation=correlation)]  # fmt: skip
    path = write_trace(tmp_path / "one.pt.trace.json", events)
    assert query_of(open_profile(path)).steps.guessed
    found = report(path, step=2)
    assert figures(found, "kernels") == {"kernels": 3, "total_us": 156}
    assert figures(found, "overview")["kernel_us"] == figures(found, "streams")["busy_us"] == 156
    (step,) = rows(found, "steps", "steps")
    assert (step["step"], step["start_us"], step["step_us"], step["launched"]) == ("2", 2030, 252, 3)
    assert figures(report(path, "steps"), "steps") == {"steps": 1, "annotated": False}


def test_an_execution_of_a_server_can_be_selected(tmp_path):
    events = []
    for number, name in enumerate(
        ("execute_2_context_2(sq9)_generation_0()", "execute_4_context_0()_generation_4(sq4)")
    ):
        start = 1000 * number
        events += [event("user_annotation", name, start, 500),
                   event("cuda_runtime", "cudaGraphLaunch", start + 100, 20, correlation=number),
                   *(event("kernel", "attn", start + 400 + 60 * place, 50, 7, correlation=number)
                     for place in range(4))]  # fmt: skip
    path = write_trace(tmp_path / "server.json", events)
    for number, label in enumerate(("prefill 2", "decode 4")):
        found = report(path, step=number)
        assert figures(found, "overview")["steps"] == figures(found, "steps")["steps"] == 1
        (step,) = rows(found, "overview", "steps")
        assert (step["step"], step["step_us"], step["kernel_us"], step["runtime_us"]) == (label, 630, 200, 20)
        assert figures(found, "kernels") == {"kernels": 4, "total_us": 200}
        (step,) = rows(found, "steps", "steps")
        assert (step["step"], step["host_us"], step["launched"], step["counted"]) == (label, 500, 4, True)


def rules(record: dict) -> dict[str, dict]:
    return {row["rule"]: row for row in rows(record, "findings", "findings")}


def test_without_device_work_nobody_waits_for_the_gpu(tmp_path):
    events = [event("cpu_op", name, 100 * place, 90) for place, name in enumerate(("aten::mm", "aten::item") * 3)]
    assert "synchronises" not in rules(report(write_trace(tmp_path / "cpu.pt.trace.json", events), "findings"))
    events += [event("kernel", "gemm", 0, 50, 7), event("kernel", "gemm", 900, 100, 7)]
    assert (
        rules(report(write_trace(tmp_path / "gpu.pt.trace.json", events), "findings"))["synchronises"]["gain_us"] == 270
    )
    # no more than the GPU idles
    events.append(event("kernel", "gemm", 50, 800, 7))
    assert (
        rules(report(write_trace(tmp_path / "busy.pt.trace.json", events), "findings"))["synchronises"]["gain_us"] == 50
    )


def test_calls_that_wait_inside_others_count_once(tmp_path):
    events = [event("kernel", "gemm", start, 500, 7) for start in (0, 2000)]
    for start in (10, 300):
        events += [
            event("cpu_op", "aten::item", start, 100),
            event("cpu_op", "aten::_local_scalar_dense", start + 1, 98),
            event("cuda_runtime", "cudaStreamSynchronize", start + 5, 90),
        ]
    told = rules(report(write_trace(tmp_path / "one.pt.trace.json", events), "findings"))["synchronises"]
    assert told["text"] == "The host waits for the GPU in 2 calls, 200.0 us: aten::item."


def test_kernels_with_newer_names_are_not_advised_to_use_tensor_cores(tmp_path, capsys):
    name = "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT"
    path = gemm(tmp_path / "one.pt.trace.json", "NVIDIA H100", name=name)
    record = report(path)
    assert "tensor_cores_unused" not in rules(record)
    assert not any(row["id"] == "tensor_cores" for row in rows(record, "overview", "recommendations"))
    # the plugin's share is that of its list
    overview = figures(record, "overview")
    assert [overview[f"tensor_core_{key}share"] for key in ("", "time_", "unknown_")] == [0, 1, 0]
    assert main(["report", str(path), "overview"]) == 0
    assert "TensorBoard's list of names lacks kernels" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(Params)", True),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_tn_align1>(Params)", False),
        ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64>>(Params)", True),
        ("void pytorch_flash::flash_fwd_splitkv_combine_kernel<64>(Params)", False),
        ("void pytorch_flash::flash_bwd_dot_do_o_kernel<true>(Params)", False),
        ("void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::Mainloop>>(Params)", True),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention)", True),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", True),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64", True),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_ffma_aligna4", False),
        ("cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_6", True),
        ("triton_tem_fused_addmm_gelu_3", True), ("triton_poi_fused_gelu_1", False), ("triton_mystery", None),
        ("fused_moe_kernel", True), ("ampere_sgemm_128x64_nn", False), ("volta_scudnn_128x64_relu_small_nn_v1", False),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", True), ("SubTensorOpWithScalar1d", False),
        ("void at::native::vectorized_elementwise_kernel<4>(int)", False), ("my_gemm", None),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", False), ("void cublasLt::splitKreduce_kernel<32>()", False),
    ],
)  # fmt: skip
def test_names_tell_which_kernels_use_tensor_cores(tmp_path, name, used):
    assert tensor_core_use(name) is used
    record = report(gemm(tmp_path / "one.pt.trace.json", "NVIDIA H100", name=name))
    shares = [figures(record, "overview")[f"tensor_core_{key}_share"] for key in ("time", "unknown")]
    assert shares == [used is True, used is None]
    assert ("tensor_cores_unused" in rules(record)) is (used is False)
    (operator,) = rows(record, "operators", "by_name")
    # of operators too, beside the shares by the plugin's list
    listed, keys = float(uses_tensor_cores(name)), ("self", "total", "time_self", "time_total", "unknown")
    expected = [listed, listed, used is True, used is True, used is None]
    assert [operator[f"tensor_core_{each}_share"] for each in keys] == expected
    (kernel,) = rows(record, "kernels", "by_name")
    assert kernel["tensor_core_use"] == {True: "yes", False: "no", None: "unknown"}[used]


def instant(time: float, device: int, allocated: int, reserved: int) -> dict:
    return {"ph": "i", "s": "t", "name": "[memory]", "pid": 0, "tid": 1, "ts": time, "args": {
        "Device Type": 1, "Device Id": device, "Addr": 512 * device + 512, "Bytes": 512, "Total Allocated": allocated,
        "Total Reserved": reserved}}  # fmt: skip


def test_memory_findings_are_of_each_device_and_of_the_whole_recording(tmp_path):
    mega = 1 << 20
    path = write_trace(tmp_path / "one.pt.trace.json", [
        event("cpu_op", "aten::mm", 0, 1000), event("kernel", "gemm", 500, 100, 7),
        # before the first kernel
        instant(10, 0, 900 * mega, 1000 * mega), instant(20, 0, 10 * mega, 1000 * mega),
        instant(510, 1, 100 * mega, 2000 * mega), instant(520, 1, 90 * mega, 2000 * mega),
    ])  # fmt: skip
    found = rules(report(path, "findings"))
    assert found["memory_peak"]["text"].startswith("900.0 MiB are allocated on GPU0")
    assert found["fragmentation"]["text"] == (
        "2.0 GiB are reserved on GPU1 and never more than 100.0 MiB allocated: 95.0% is fragmented."
    )
    assert "memory_peak" not in rules(report(path, "findings", range=(400_000, 700_000)))


def test_memory_of_intels_cards_has_a_name_and_its_card(tmp_path):
    one = instant(10, 0, 512, 1024)
    one["args"]["Device Type"] = 12
    cards = [{"id": 0, "name": "Intel Max 1550", "totalGlobalMem": 1 << 36}]
    path = write_trace(tmp_path / "one.pt.trace.json", [event("cpu_op", "aten::mm", 0, 100), one,
                                                        event("kernel", "gemm", 20, 10, 7)],
                       deviceProperties=cards)  # fmt: skip
    (device,) = rows(report(path, "memory"), "memory", "devices")
    assert (device["device"], device["peak_allocated_bytes"], device["capacity_bytes"]) == ("XPU0", 512, 1 << 36)
    profile = open_profile(path)
    (counter, _) = profile.counters
    assert (counter.name, profile.groups.title(counter.group)) == ("XPU0 allocated", "GPU 0")


def test_evidence_counts_from_the_start_of_its_worker_as_all_times_do(tmp_path):
    torch_trace.write_run(tmp_path, ranks=2, steps=2, layers=2)
    found = report(tmp_path, "findings", "memory")
    (early, late) = found["workers"]
    assert float(late["start"]) > float(early["start"])
    for key, worker in found["views"]["findings"]["workers"].items():
        told = worker["tables"]["findings"]
        keys = [column["key"] for column in told["columns"]]
        parts = [dict(zip(keys, row, strict=True)) for row in told["rows"]]
        assert {part["worker"] for part in parts} == {key}
        (peak,) = found["views"]["memory"]["workers"][key]["tables"]["curve"]["rows"][:1]
        (fragmented,) = (part["evidence"][0] for part in parts if part["rule"] == "fragmentation")
        assert fragmented["start_us"] == peak[1]


def test_files_of_one_name_in_an_archive_are_all_read(tmp_path):
    archive = tmp_path / "run.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for rank in range(2):
            path = gemm(tmp_path / "trace.json", "NVIDIA H100", distributedInfo={"rank": rank, "world_size": 2})
            packed.add(path, f"run/../rank{rank}/trace.json")
    profile = open_profile(archive)
    assert [each.key for each in workers_of(profile)] == ["Rank 0", "Rank 1"]
    assert [each.files for each in workers_of(profile)] == [("run_rank0_trace.json",), ("run_rank1_trace.json",)]


def test_a_late_rank_is_found_among_those_of_its_run(tmp_path):
    """Two recordings of two ranks, in each of which rank 1 is late."""
    for span in range(2):
        for path in torch_trace.write_run(tmp_path / f"span{span}", ranks=2, steps=3, layers=2, seed=span):
            path.rename(tmp_path / path.name.replace(".17000", f".18{span}00"))
        (tmp_path / f"span{span}").rmdir()
    found = report(tmp_path, "distributed", "findings")
    told = {row[1]: row[3] for row in found["views"]["distributed"]["tables"]["transfer"]["rows"] if row[0] == "all"}
    late = {row[3]: row[5] for worker in found["views"]["findings"]["workers"].values()
            for row in worker["tables"]["findings"]["rows"] if row[1] == "late_rank"}  # fmt: skip
    assert set(late) == {"node0_4001@1", "node0_4001@2"}
    for key, text in late.items():
        waited = told[key.replace("4001", "4000")] - told[key]
        assert f"wait {waited:.1f} us longer in each step" in text


@pytest.mark.parametrize(("name", "half", "memory"), [
    ("NVIDIA H100 80GB HBM3", 989.4, 3350), ("NVIDIA H100 PCIe", 756, 2000), ("NVIDIA H100 NVL", 835.5, 3900),
    ("NVIDIA A100-SXM4-80GB", 312, 2039), ("NVIDIA A100-PCIE-40GB", 312, 1555), ("NVIDIA A100 80GB PCIe", 312, 2039),
    ("Tesla V100-SXM2-16GB", 125, 900), ("AMD Instinct MI300X OAM", 1307.4, 5300),
])  # fmt: skip
def test_peaks_are_those_of_the_card(name, half, memory):
    card = card_named(name)
    assert card is not None
    assert (card.half, card.memory) == (half, memory)


def test_a_small_card_has_not_the_peak_of_a_large_one():
    assert card_named("NVIDIA RTX A1000") is None


def test_a_stream_that_only_its_thread_names_is_named_once(tmp_path):
    events = [event("Kernel", "gemm", start + 20, 20, "stream 7", correlation=start) for start in (0, 300)]
    events += [event("Runtime", "cudaLaunchKernel", start, 10, correlation=start) for start in (0, 300)]
    profile = open_profile(write_trace(tmp_path / "old.pt.trace.json", events))
    table = answer(view_of(profile.vocabulary, "findings"), Query(Session(profile))).table("findings")
    row = table.column("rule").index("host_bound")
    assert table.column("text")[row].startswith("Stream 7 of GPU 0 has nothing to do for 280.0 us")
    target = table.target_of(row)
    assert target is not None
    assert target.scope is not None
    assert profile.lanes[target.scope.lane].label == "stream 7"
