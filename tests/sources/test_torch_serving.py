"""Traces of inference servers: runs of the model, recordings by stage, ranks merged into one file."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import pytest
import torch_trace

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.critical_path import critical_path
from tpuprof_tui.analysis.links.dependencies import dependencies_of
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.sources.torch.read import trace_reader
from tpuprof_tui.sources.torch.read.identities import sessions
from tpuprof_tui.sources.torch.read.steps import marks_step
from tpuprof_tui.views.comparing import Compared
from tpuprof_tui.views.registry import views_of
from tpuprof_tui.views.report import report_record, workers_of


def event(category: str, name: str, start: float, length: float, pid: object = 1, tid: object = 1, **args) -> dict:
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": length, "args": args}


def written(path: Path, events: list[dict], **metadata) -> Path:
    path.write_text(json.dumps({"traceEvents": events, **metadata}))
    return path


def report(path, *views: str, **asked) -> dict:
    profile = open_profile(path)
    found = [view for view in views_of(profile.vocabulary) if not views or view.id in views]
    return report_record(Query(Session(profile), **asked), found, workers_of(profile))


def rows(record: dict, view: str, table: str, worker: str = "") -> list[dict]:
    data = record["views"][view]
    if "workers" in data:
        data = data["workers"][worker] if worker else next(iter(data["workers"].values()))
    found = data["tables"][table]
    return [dict(zip((column["key"] for column in found["columns"]), row, strict=True)) for row in found["rows"]]


def served(category: str, name: str, frames: bool) -> list[dict]:
    """An execution with a launch and a kernel, within frames if there are any."""
    events = [event(category, name, 10, 50), event("cuda_runtime", "cudaGraphLaunch", 20, 5, correlation=3),
              event("kernel", "k", 30, 60, 0, 7, correlation=3)]  # fmt: skip
    python = ("vllm/v1/worker/gpu_model_runner.py(3000): execute_model", "threading.py(1): run")
    return events + [event("python_function", each, 5 - n, 70 + n) for n, each in enumerate(python) if frames]


@pytest.mark.parametrize("frames", [False, True])
@pytest.mark.parametrize(("name", "kind", "stage", "requests", "tokens"), [
    ("execute_context_0(0)_generation_32(32)", "decode 32", "decode", 32, 32),
    ("execute_context_2(6144)_generation_3(3)", "prefill 2, decode 3", "mixed", 5, 6147),
    ("execute_context_1(77)_generation_0(0)", "prefill 1", "prefill", 1, 77),
    ("execute_context_0(0)_generation_0(0)", "empty", "idle", 0, 0),
    ("execute_6147_context_2(sq6144sk7144sqsq20971520sqsk23019520)_generation_3(sq3sk6144sqsq3sqsk6144)",
     "prefill 2, decode 3", "mixed", 5, 6147),
    ("execute_64_context_0(sq0sk0sqsq0sqsk0)_generation_64(sq64sk131072sqsq64sqsk131072)", "decode 64", "decode", 64,
     64),
    ("step[EXTEND bs=2 toks=14721]", "prefill 2", "prefill", 2, 14721),
    ("step[EXTEND bs=2 toks=14721 c_sq=14721 c_sqsq=108745533 c_sqsk=108745533 c_sk=14721]", "prefill 2", "prefill", 2,
     14721),
    ("step[DECODE bs=32]", "decode 32", "decode", 32, None),
    ("step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]", "decode 64", "decode", 64, 128),
    ("step[MIXED bs=8 toks=100]", "mixed 8", "mixed", 8, 100),
    ("step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]",
     "prefill 1, decode 1", "mixed", 2, 6),
    ("step[TARGET_VERIFY bs=4 g_sq=16 g_sqsq=64 g_sqsk=1 g_sk=1]", "verify 4", "verify", 4, 16),
    ("step[VERIFY bs=4]", "verify 4", "verify", 4, None), ("step[DRAFT bs=3]", "draft 3", "draft", 3, None),
    ("step[DRAFT_EXTEND_V2 bs=3 toks=9]", "draft 3", "draft", 3, 9), ("step[ idle bs=0 ]", "idle", "idle", 0, None),
    ("step[SPLIT_PREFILL bs=1 toks=9]", "prefill 1", "prefill", 1, 9), ("step[WARP bs=1]", "warp 1", "warp", 1, None),
    ("prefill[bs=2 tok=14721 ctx=[7803, 6918]]", "prefill 2", "prefill", 2, 14721),
    ("prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3 sqsq=1 sqsk=1 sk=1]", "prefill 6", "prefill", 6, 17408),
    ("decode[bs=117/128 tok=117 d=117]", "decode 117", "decode", 117, 117),
    ("decode[bs=128 tok=384 p=2 d=126 sqsq=132612 sqsk=1114112 sk=258048 tbo=1]", "prefill 2, decode 126", "mixed",
     128, 384),
    ("execute_new_2_cached_30", "new 2, cached 30", None, 32, None),
    ("execute_diffusion_2_512x512", "diffusion", "diffusion", 2, None),
])  # fmt: skip
def test_annotations_of_servers_are_runs_with_stage_requests_and_tokens(
    tmp_path, name, kind, stage, requests, tokens, frames
):
    path = written(tmp_path / "server.pt.trace.json", served("user_annotation", name, frames))
    (row,) = rows(report(path, "steps"), "steps", "executions")
    assert (row["kind"], row["stage"], row["requests"], row["tokens"]) == (kind, stage, requests, tokens)
    assert (row["device_us"], row["launched"]) == (60, 1)
    assert open_profile(path).steps.counts() == {kind: 1}
    assert marks_step(name)


@pytest.mark.parametrize(("frame", "kind"), [
    ("vllm/v1/worker/gpu_model_runner.py(3000): execute_model", "execution"),
    ("sglang/srt/model_executor/model_runner.py(2000): forward", "execution"),
    ("sglang/srt/model_executor/model_runner.py(900): forward_decode", "decode"),
    ("/x/sglang/srt/model_executor/model_runner.py(900): forward_extend", "prefill"),
    ("atom/model_engine/model_runner.py(900): forward", "execution"),
])  # fmt: skip
def test_frames_tell_the_runs_of_a_server_without_annotations(tmp_path, frame, kind):
    path = written(tmp_path / "server.pt.trace.json", served("python_function", frame, frames=False))
    (row,) = rows(report(path, "steps"), "steps", "executions")
    stage = None if kind == "execution" else kind
    assert (row["kind"], row["stage"], row["requests"], row["tokens"]) == (kind, stage, None, None)


@pytest.mark.parametrize("name", [
    "step[3]", "step[]", "step", "steps[DECODE bs=1]", "prefill[0]", "decode", "predecode[bs=1]", "capture_128_decode",
    "execute_context_" + "9" * 5000 + "(0)_generation_0(0)", "execute_", "my model_runner.py(3): forward",
    "nn.Module: forward",
])  # fmt: skip
def test_other_names_are_no_runs(tmp_path, name):
    assert not marks_step(name)
    path = written(tmp_path / "server.pt.trace.json", served("user_annotation", name, frames=False))
    assert "executions" not in report(path, "steps")["views"]["steps"]["workers"]["server"]["tables"]


def test_runs_are_shown_beside_the_steps_of_a_schedule(tmp_path):
    events = [*served("user_annotation", "step[DECODE bs=32]", frames=False),
              event("user_annotation", "ProfilerStep#4", 0, 100)]  # fmt: skip
    path = written(tmp_path / "server.pt.trace.json", events)
    record = report(path, "steps")
    assert [row["kind"] for row in rows(record, "steps", "executions")] == ["decode 32"]
    assert [row["step"] for row in rows(record, "steps", "steps")] == ["4"]
    assert open_profile(path).steps.counts() == {"ProfilerStep#4": 1}


def step(number: int, start: float, length: float, pid: object, **ids: int) -> list[dict]:
    """A step of one operator, its launch and its kernel on GPU `pid % 10`; the host's process is `pid`."""
    correlation, external = ids.get("correlation", 3), ids.get("external", 5)
    device = int(str(pid)) % 10
    return [event("user_annotation", f"ProfilerStep#{number}", start, length, pid, pid),
            event("cpu_op", "aten::mm", start + 1, 5, pid, pid, **{"External id": external}),
            event("cuda_runtime", "cudaLaunchKernel", start + 2, 1, pid, pid, correlation=correlation,
                  **{"External id": external}),
            event("kernel", "gemm", start + 3, 10, device, 7, correlation=correlation, device=device, stream=7,
                  **{"External id": external})]  # fmt: skip


def keys(record: dict) -> list[tuple]:
    return [(each["key"], each["rank"], each["rank_guessed"], each["span"]) for each in record["workers"]]


def by_stage(folder: Path, **stated) -> Path:
    for rank in (0, 1):
        for stage, start in (("EXTEND", 0), ("DECODE", 500)):
            written(folder / f"17-TP-{rank}-{stage}.trace.json", step(4, start, 100, 100 + rank),
                    **({"distributedInfo": {"rank": rank, "world_size": 2}} if stated else {}))  # fmt: skip
    return folder


@pytest.mark.parametrize("stated", [False, True])
def test_files_by_stage_are_sessions_of_one_rank_and_one_device(tmp_path, stated, capsys):
    folder = by_stage(tmp_path, **({"stated": True} if stated else {}))
    mark = "" if stated else " ~"
    assert keys(report(folder, "steps")) == [
        (f"Rank 0 EXTEND{mark}", 0, not stated, 1), (f"Rank 0 DECODE{mark}", 0, not stated, 2),
        (f"Rank 1 EXTEND{mark}", 1, not stated, 1), (f"Rank 1 DECODE{mark}", 1, not stated, 2),
    ]  # fmt: skip
    profile = open_profile(folder)
    assert profile.groups.numbers == (0, 1)
    assert [group.label for group in profile.groups if group.kind == "rank"] == [
        f"Rank {rank} {stage}{mark}" for rank in (0, 1) for stage in ("EXTEND", "DECODE")
    ]  # fmt: skip
    assert main(["info", str(folder)]) == 0
    assert re.search(r"2 GPUs \(GPUs 0, 1\)\n", capsys.readouterr().out)
    assert main(["report", str(folder), "steps", "--rank", "1", "--json"]) == 0
    assert [each["key"] for each in json.loads(capsys.readouterr().out)["workers"]] == [
        f"Rank 1 EXTEND{mark}",
        f"Rank 1 DECODE{mark}",
    ]
    assert main(["report", str(folder), "steps", "--group", "0"]) == 0
    assert main(["instructions", str(folder), "--core", "0"]) == 2
    assert "2 recordings of GPU 0" in capsys.readouterr().err
    assert main(["instructions", str(folder), "--core", "3"]) == 2


def test_sessions_of_like_stages_are_compared(tmp_path):
    for rank in (0, 1):
        for stage, start in (("EXTEND", 0), ("DECODE", 500))[rank:]:
            name, host = "nccl:all_reduce" if stage == "EXTEND" else "nccl:all_gather", 100 + rank
            written(tmp_path / f"17-TP-{rank}-{stage}.trace.json",
                    [*step(4, start, 100, host), event("user_annotation", name, start + 20, 30 - 10 * rank, host)],
                    distributedInfo={"rank": rank, "world_size": 2})  # fmt: skip
    data = report(tmp_path, "distributed")["views"]["distributed"]
    found = rows({"views": {"distributed": data}}, "distributed", "transfer")
    waits = {row["worker"]: (row["transfer_us"], row["synchronising_us"]) for row in found if row["step"] == "all"}
    assert waits == {"Rank 0 EXTEND": (30, 0), "Rank 0 DECODE": (20, 10), "Rank 1 DECODE": (20, 0)}


@pytest.mark.parametrize(("names", "ranks"), [
    (["rank_0.json", "rank_2.json", "rank_10.json"], [0, 2, 10]), (["a_rank3.json"], [3]), (["w-rank-3.json"], [3]),
    ([f"dp{dp}_pp0_tp{tp}_dcp0_ep0_rank{tp}.1700000000000000000.pt.trace.json" for dp in (0, 1) for tp in (0, 1)],
     [0, 1, 2, 3]),
    (["frank7_1.1700000000000.pt.trace.json", "crank2.example_1.1700000000000.pt.trace.json"], [None, None]),
])  # fmt: skip
def test_ranks_are_guessed_from_names_in_numeric_order(tmp_path, names, ranks):
    for place, name in enumerate(names):
        written(tmp_path / name, step(4, 0, 100, 100 + place))
    found = report(tmp_path, "steps")["workers"]
    assert [each["rank"] for each in found] == ranks
    assert [each["rank_guessed"] for each in found] == [rank is not None for rank in ranks]
    assert [each["key"] for each in found if each["rank"] is not None] == [
        f"Rank {rank} ~" for rank in ranks if rank is not None
    ]


def test_a_stated_rank_is_not_guessed_and_orders_the_workers(tmp_path):
    for name, rank in (("a", 10), ("b", 9), ("c_rank3", 2)):
        written(tmp_path / f"{name}.json", step(4, 0, 100, 100), distributedInfo={"rank": rank, "world_size": 16})
    assert keys(report(tmp_path, "steps")) == [
        ("Rank 2", 2, False, 1),
        ("Rank 9", 9, False, 1),
        ("Rank 10", 10, False, 1),
    ]
    # the host's name is none
    written(tmp_path / "rank7_1.1700000000000.pt.trace.json", step(4, 0, 100, 100), host_name="rank7")
    assert report(tmp_path, "steps")["workers"][-1]["rank"] is None


def test_a_host_thread_that_shares_its_ids_with_a_stream_keeps_its_name(tmp_path):
    for order in (1, -1):
        names = [{"ph": "M", "name": "thread_name", "pid": 7, "tid": 7, "args": {"name": name}}
                 for name in ("thread 7 (python)", "stream 7 ")][::order]  # fmt: skip
        path = written(tmp_path / f"t{order}.json", [*names, event("cpu_op", "a", 0, 9, 7, 7),
                                                     event("kernel", "k", 3, 3, 7, 7)])  # fmt: skip
        profile = open_profile(path)
        assert [profile.title_of(lane) for lane in profile.lanes] == ["GPU 7 stream 7", "Process 7 thread 7 (python)"]


@pytest.mark.parametrize(("pid", "args", "cards", "label", "device"), [
    (0, {}, [{}], "GPU 0", ["0", None]), (0, {}, [{"name": "X"}], "GPU 0", ["0", "X"]),
    (0, {}, [{"id": 0, "name": None}], "GPU 0", ["0", None]), (0, {}, [{"id": 0, "name": 7}], "GPU 0", ["0", None]),
    (None, {}, [{"id": 0, "name": "X"}], "GPU", [None, None]), ("GPU 3", {"device": 3}, [], "GPU 3", ["3", None]),
    ("", {}, [], "GPU", [None, None]),
])  # fmt: skip
def test_a_device_may_have_no_name_or_number(tmp_path, pid, args, cards, label, device):
    path = written(tmp_path / "t.json", [event("cpu_op", "a", 0, 90), event("kernel", "k", 3, 30, pid, 7, **args)],
                   deviceProperties=cards)  # fmt: skip
    (lane,) = (lane for lane in open_profile(path).lanes if lane.kind == "stream")
    assert open_profile(path).title_of(lane) == f"{label} stream 7"
    record = report(path, "overview", "streams")
    assert [[row["device"], row["name"]] for row in rows(record, "overview", "devices")] == [device]
    assert rows(record, "streams", "streams")[0]["device"] == device[0]
    assert all(isinstance(each["name"], str) for each in record["workers"][0]["devices"])


def of_sglang(rank: int, events: list[dict]) -> list[dict]:
    return [{**each, "pid": f"[TP{rank:02}-DP00-PP00-EP00] {each['pid']}"} for each in events]


def of_tracefusion(rank: int, events: list[dict]) -> list[dict]:
    """Its process names are those of ranks; ids but the External ones are moved apart."""
    factor, found = 100_000, []
    for each in events:
        if each["ph"] == "M" and each["name"].startswith("process_"):
            continue
        args = {**each.get("args", {}), "rank": rank}
        if "correlation" in args:
            args["correlation"] += rank * factor
        moved = {key: each[key] + rank * factor for key in ("pid", "id") if type(each.get(key)) is int}
        found.append({**each, **moved, "args": args})
    processes = {each["pid"] for each in found if type(each["pid"]) is int}
    return [*found, *({"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": f"RANK {rank} - CPU"}}
                      for pid in sorted(processes))]  # fmt: skip


def with_named_events(rank: int, events: list[dict]) -> list[dict]:
    return [{**each, "name": f"[R{rank}] {each['name']}",
             "pid": each["pid"] + rank * 1000 if type(each["pid"]) is int else f"rank{rank}_{each['pid']}"}
            for each in events]  # fmt: skip


def in_one_process(rank: int, events: list[dict]) -> list[dict]:
    return [*({**each, "pid": rank + 1} for each in events),
            {"name": "process_name", "ph": "M", "pid": rank + 1, "tid": 0, "args": {"name": f"Rank {rank}"}},
            ]  # fmt: skip


MERGERS = (of_sglang, of_tracefusion, with_named_events, in_one_process)


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory) -> Path:
    """Files of two ranks that state no rank themselves, as the merged file cannot."""
    folder = tmp_path_factory.mktemp("ranks")
    for rank, path in enumerate(torch_trace.write_run(folder / "made", ranks=2, steps=2, layers=1, packed=False)):
        record = json.loads(path.read_text())
        record["distributedInfo"].pop("rank")
        (folder / f"rank{rank}.json").write_text(json.dumps(record))
    return folder


def merged(folder: Path, path: Path, merger) -> Path:
    """The files of ranks in one, by a merger's rule: metadata are those of the first."""
    records = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in (0, 1)]
    events = [each for rank, record in enumerate(records) for each in merger(rank, record["traceEvents"])]
    cards = [each for record in records for each in record["deviceProperties"]]
    path.write_text(json.dumps({**records[0], "traceEvents": events, "deviceProperties": cards}))
    return path


@pytest.mark.parametrize("merger", MERGERS)
def test_a_merged_file_is_shown_as_the_files_of_its_ranks(two_ranks, tmp_path, merger):
    views = ["overview", "steps", "kernels", "operators", "launches", "distributed", "modules", "memory"]
    path = merged(two_ranks, tmp_path / "merged-17.trace.json", merger)
    expected, found = report(two_ranks, *views), report(path, *views)
    assert [each["what"] for each in found["problems"]] == [
        "The traces of 2 ranks were merged into this file.", *(each["what"] for each in expected["problems"]),
    ]  # fmt: skip
    for key in ("key", "rank", "rank_guessed", "span", "events", "start", "duration_us", "devices"):
        assert [each[key] for each in found["workers"]] == [each[key] for each in expected["workers"]], key
    assert {each["files"][0] for each in found["workers"]} == {"merged-17.trace.json"}
    assert found["views"] == expected["views"]


@pytest.mark.parametrize("merger", MERGERS)
def test_a_part_of_a_merged_file_that_is_larger_than_memory_tells_what_the_whole_does(
    tmp_path, monkeypatch, capsys, merger
):  # fmt: skip
    for rank, made in enumerate(torch_trace.write_run(tmp_path / "made", ranks=2, steps=4, layers=1, packed=False)):
        record = json.loads(made.read_text())
        del record["distributedInfo"]["rank"]
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(record))
    path = merged(tmp_path, tmp_path / "merged-17.trace.json", merger)
    text = path.stat().st_size

    def answered(*asked: str) -> dict:
        assert main(["report", str(path), "operators", "kernels", "steps", "--json", *asked]) == 0
        return json.loads(capsys.readouterr().out)

    parts = ["--step", "2"], ["--range", "3.2ms..5.1ms"]
    whole = [answered(*asked) for asked in parts]
    monkeypatch.setattr(trace_reader, "_LARGE", 1)
    monkeypatch.setattr(trace_reader, "memory_bytes", lambda: int(text * 0.65))
    for asked, of_whole in zip(parts, whole, strict=True):
        found = answered(*asked)
        assert "does not fit into memory" in found["problems"][0]["what"]
        assert found["views"] == of_whole["views"]
        assert len(found["workers"]) == 2
    assert main(["report", str(path), "steps", "--step", "77"]) == 2
    assert "no step 77" in capsys.readouterr().err


@pytest.mark.parametrize("merger", MERGERS)
def test_links_of_merged_ranks_stay_within_them(two_ranks, tmp_path, merger):
    apart = open_profile(two_ranks)
    together = open_profile(merged(two_ranks, tmp_path / "merged-17.trace.json", merger))
    assert [len(lane) for lane in together.lanes] == [len(lane) for lane in apart.lanes]
    one, two = ((links.kind.tolist(), links.from_row.tolist(), links.to_row.tolist())
                for links in (apart.links(), together.links()))  # fmt: skip
    assert sorted(zip(*one, strict=True)) == sorted(zip(*two, strict=True))
    assert len(one[0])


def test_one_merged_rank_is_that_of_the_file(two_ranks, tmp_path):
    record = json.loads((two_ranks / "rank0.json").read_text())
    record["distributedInfo"]["rank"] = 5
    events = of_sglang(0, record["traceEvents"])
    path = written(tmp_path / "merged-17.trace.json", events, **{key: value for key, value in record.items()
                                                                 if key != "traceEvents"})  # fmt: skip
    found = report(path, "steps")
    assert [(each["key"], each["rank"], each["rank_guessed"]) for each in found["workers"]] == [("Rank 5", 5, False)]
    assert open_profile(path).groups.numbers == (0,)
    assert not any("merged" in each["what"] for each in found["problems"])


def test_merged_files_without_a_sign_of_whose_events_are_are_refused(tmp_path, capsys):
    both = [*step(1, 0, 100, 100), *step(1, 5, 100, 201)]
    path = written(tmp_path / "merged.json", both)
    assert main(["report", str(path), "--json"]) == 2
    assert "merged traces of several processes (100, 201)" in capsys.readouterr().err
    # beside others it is left out with that reason
    written(tmp_path / "rank0.json", step(1, 0, 100, 100))
    found = report(tmp_path, "steps")
    assert len(found["workers"]) == 1
    assert [each["severity"] for each in found["problems"]] == ["error"]


def test_merged_files_whose_ids_are_apart_are_split_by_them(tmp_path):
    path = written(tmp_path / "merged.json", [*step(1, 0, 100, 100), *step(1, 50, 90, 201, correlation=9, external=9)])
    found = report(path, "steps", "overview")
    assert [(each["key"], each["rank"], each["duration_us"]) for each in found["workers"]] == [
        ("merged process 100", None, 100), ("merged process 201", None, 90),
    ]  # fmt: skip
    # without devices there is nothing to tell apart
    hosts = [
        each for pid in (1, 2) for each in (event("cpu_op", "a", 0, 9, pid), event("user_annotation", "b", 0, 9, pid))
    ]
    assert len(report(written(tmp_path / "cpu.json", hosts), "steps")["workers"]) == 2


def test_hostile_labels_do_not_take_long(tmp_path):
    many = [event("cpu_op", "a", n, 1, f"[TP{n}] 1") for n in range(5000)]
    with pytest.raises(UnreadableError, match="more than 4,096 ranks"):
        open_profile(written(tmp_path / "many.json", many))
    many = [
        event(category, "a", n, 1, n, correlation=n) for n in range(3000) for category in ("cpu_op", "cuda_runtime")
    ]
    many += [event("kernel", "k", n, 1, 5000 + n, correlation=n) for n in range(3000)]
    with pytest.raises(UnreadableError, match="several processes"):
        open_profile(written(tmp_path / "many.json", many))
    odd = [
        event("cpu_op", "a", n, 1, pid) for n, pid in enumerate(("[] 1", "[TP] 1", "rank", "[TP0]", "[Unknown] 3", "x"))
    ]
    report(written(tmp_path / "odd.json", odd), "steps")


def flow(number: int, begin: tuple, end: tuple, category: str = "ac2g") -> list[dict]:
    return [{"ph": phase, "id": number, "cat": category, "name": category, "pid": pid, "tid": tid, "ts": time,
             "bp": "e"} for phase, (pid, tid, time) in zip("sf", (begin, end), strict=True)]  # fmt: skip


def linked(path: Path) -> set[tuple]:
    """Links as (kind, lane and row of the cause, of the effect)."""
    profile = open_profile(path)
    found = dependencies_of(Session(profile))
    return {(found.links.kinds[kind], profile.lanes[one].label, int(row), profile.lanes[other].label, int(after))
            for kind, one, row, other, after in zip(
                found.links.kind.tolist(), found.releaser_lane.tolist(), found.releaser_row.tolist(),
                found.waiter_lane.tolist(), found.waiter_row.tolist(), strict=True)}  # fmt: skip


def test_flows_between_nodes_of_graphs_are_links(tmp_path):
    node = {"correlation": 3, "device": 0}
    events = [
        event("cpu_op", "a", 0, 9), event("cuda_runtime", "cudaGraphLaunch", 1, 4, correlation=3),
        event("kernel", "k1", 10, 5.125, 0, 7, stream=7, **node), event("kernel", "k2", 16, 5, 0, 9, stream=9, **node),
        event("graph_host_node", "HostNode: f", 22, 3, 0, 9, **node), event("gpu_memcpy", "c", 30, 1, 0, 7, **node),
        *flow(3, (1, 1, 1), (0, 7, 10)), *flow(1 << 40, (0, 7, 15.125), (0, 9, 16)),
        *flow((1 << 40) + 1, (0, 9, 21), (0, 9, 22)), *flow((1 << 40) + 2, (0, 9, 25), (0, 7, 30)),
        # to nothing, from nothing, and without an end
        *flow(77, (0, 7, 15.125), (0, 7, 99)), *flow(78, (0, 8, 1), (0, 9, 16)), *flow(79, (0, 7, 10), (0, 9, 16))[:1],
    ]  # fmt: skip
    found = linked(written(tmp_path / "graph.json", events))
    assert {each for each in found if each[0] == "graph"} == {
        ("graph", "stream 7", 0, "stream 9", 0), ("graph", "stream 9", 0, "waits 9", 0),
        ("graph", "waits 9", 0, "stream 7", 1),
    }  # fmt: skip
    assert len([each for each in found if each[0] == "launch"]) == 3


def test_the_order_of_nodes_with_flows_is_not_assumed(tmp_path):
    node = {"correlation": 3, "device": 0}
    nodes = [
        event("cuda_runtime", "cudaGraphLaunch", 1, 4, correlation=3), event("kernel", "k1", 10, 5, 0, 7, **node),
        event("kernel", "k2", 16, 5, 0, 9, **node),
    ]  # fmt: skip
    for flows in ([], flow(1 << 40, (0, 7, 15), (0, 9, 16))):
        profile = open_profile(written(tmp_path / f"{len(flows)}.json", [*nodes, *flows]))
        found = critical_path(profile, dependencies_of(Session(profile)), profile.start_ns, profile.end_ns)
        # that it ended last puts the last event on the path
        assert bool(found.assumed[:-1].any()) is not bool(flows)


def test_launch_flows_of_a_thread_that_shares_its_ids_with_a_stream_are_no_links_of_kernels(tmp_path):
    events = [event("cpu_op", "a", 0, 200, 7, 7)]
    for number, start in enumerate((10, 20, 30), start=3):
        events += [event("cuda_runtime", "cudaLaunchKernel", start, 5, 7, 7, correlation=number),
                   event("kernel", "k", start + 3, 9, 7, 7, correlation=number),
                   *flow(number, (7, 7, start), (7, 7, start + 3))]  # fmt: skip
    assert {each[0] for each in linked(written(tmp_path / "t.json", events))} == {"launch"}


@pytest.mark.parametrize(("category", "figure"), [
    ("xpu_driver", "runtime_us"), ("privateuse1_driver", "runtime_us"), ("hpu_op", "runtime_us"),
    ("collective_comm", "communication_us"), ("XPU_Driver", "runtime_us"),
])  # fmt: skip
def test_new_categories_of_the_host_count_as_what_they_are(tmp_path, category, figure):
    events = [event("user_annotation", "ProfilerStep#1", 0, 100), event(category, "allreduce", 10, 30)]
    path = written(tmp_path / "t.json", events)
    record = report(path, "overview", "distributed")
    (data,) = record["views"]["overview"]["workers"].values()
    assert data["figures"][figure] == 30
    assert data["figures"]["other_us"] == 70
    if figure == "communication_us":
        assert rows(record, "distributed", "collectives")[0]["name"] == "allreduce"


@pytest.mark.parametrize("category", ["xpu_sync", "graph_host_node", "graph_event_node"])
def test_new_categories_of_the_device_are_waits_not_work(tmp_path, category):
    events = [event("cpu_op", "a", 0, 100), event("kernel", "k", 10, 20, 0, 7), event(category, "x", 40, 30, 0, 7)]
    path = written(tmp_path / "t.json", events)
    (data,) = report(path, "streams")["views"]["streams"]["workers"].values()
    assert data["figures"]["busy_us"] == 20
    assert [lane.label for lane in open_profile(path).lanes] == ["stream 7", "waits 7", "1"]


def test_impossible_times_are_those_of_a_merged_rank(two_ranks, tmp_path):
    """Clocks of merged ranks may differ; an event of one that cannot be of its recording is set aside there."""
    path = merged(two_ranks, tmp_path / "merged-17.trace.json", of_sglang)
    record = json.loads(path.read_text())
    of_second = [each for each in record["traceEvents"] if "TP01" in each["pid"] and "ts" in each]
    for each in of_second:
        each["ts"] += 7e9
    kernels = [each for each in of_second if each.get("cat") == "kernel"]
    kernels[-1]["ts"] += 86400e6
    path.write_text(json.dumps(record))
    found = report(path, "steps")
    assert [round(each["duration_us"]) for each in found["workers"]] == [2200, 2601]
    assert [each["severity"] for each in found["problems"] if "Set aside" in each["done"]] == ["error"]


def reduced(rank: int, calls: list[tuple[float, float, dict]], at: str) -> list[dict]:
    """Collectives of a rank as (start, length, ids), whose ids are told by the record around each or by its kernel."""
    events = [event("user_annotation", "ProfilerStep#1", 0, 1000)]
    for number, (start, length, ids) in enumerate(calls, start=10):
        record, kernel = (ids, {}) if at == "record" else ({}, ids)
        events += [
            event("cpu_op", "record_param_comms", start, 6, **{"External id": number}, **record),
            event("user_annotation", "nccl:all_reduce", start + 1, 4, **{"External id": number + 100}),
            event("cuda_runtime", "cudaLaunchKernelExC", start + 2, 2, correlation=number,
                  **{"External id": number + 100}),
            event("kernel", "ncclDevKernel_AllReduce_Sum", start + 10, length, rank, 20, correlation=number,
                  device=rank, **{"Collective name": "allreduce", "External id": number + 100, **kernel}),
        ]  # fmt: skip
    return events


def two_reducing(folder: Path, calls: list[list[tuple[float, float, dict]]], at: str) -> Path:
    folder.mkdir(exist_ok=True)
    for rank, of_rank in enumerate(calls):
        written(folder / f"rank{rank}.json", reduced(rank, of_rank, at),
                distributedInfo={"rank": rank, "world_size": len(calls), "backend": "nccl"})  # fmt: skip
    return folder


def seq(number: int, **more) -> dict:
    return {"Seq": number, "Process Group Name": "0", "Process Group Ranks": "[0, 1]", **more}


@pytest.mark.parametrize("at", ["record", "kernel"])
@pytest.mark.parametrize("ids", [
    seq, lambda number: {"Comms Id": 2**63 + number}, lambda number: {"Comms Id": str(number), "Seq": -1},
    lambda number: seq(7, **{"Comms Id": number}), lambda number: {**seq(0), "Seq": str(number)},
])  # fmt: skip
def test_collectives_are_matched_by_their_ids_not_their_order(tmp_path, ids, at):
    """Each rank lost one collective, so that the k-th of one is the k+1-th of the other; numbers of both are equal."""
    first = [(100, 50, ids(1)), (200, 60, ids(2)), (300, 70, ids(3))]
    second = [(210, 20, ids(2)), (320, 20, ids(3)), (400, 90, ids(4))]
    folder = two_reducing(tmp_path, [first, second], at)
    data = report(folder, "distributed")["views"]["distributed"]
    transfer = {row["worker"]: (row["transfer_us"], row["synchronising_us"])
                for row in rows({"views": {"d": data}}, "d", "transfer") if row["step"] == "1"}  # fmt: skip
    # of those that both have: 20 of 60 and 20 of 70, of the hosts' intervals of 4 all
    assert transfer == {"Rank 0": (20 + 20 + 8, 40 + 50), "Rank 1": (20 + 20 + 8, 0)}
    assert [each["what"] for each in data["missing"]] == [
        "2 collectives of Rank 0, Rank 1 were recorded by one of them, or in part: they are in no transfer time."
    ]
    found = rows({"views": {"d": data}}, "d", "collectives")
    assert [(row["calls"], row["mean_transfer_us"]) for row in found] == [(3, 24), (3, 24)]
    # the one that begins first waits for the other, in links too
    profile = open_profile(folder)
    links = dependencies_of(Session(profile))
    waits = [(profile.lanes[one].label, int(row), int(after)) for kind, one, row, after in zip(
        links.links.kind.tolist(), links.releaser_lane.tolist(), links.releaser_row.tolist(),
        links.waiter_row.tolist(), strict=True) if links.links.kinds[kind] == "collective"]  # fmt: skip
    assert waits == [("stream 20", 0, 1), ("stream 20", 1, 2)]


def test_collectives_of_other_groups_or_without_peers_are_not_compared(tmp_path):
    other = {"Seq": 1, "Process Group Name": "5", "Process Group Ranks": "[1, 3]"}
    folder = two_reducing(tmp_path, [[(100, 50, seq(1))], [(110, 20, other), (200, 30, seq(1))]], "kernel")
    data = report(folder, "distributed")["views"]["distributed"]
    found = rows({"views": {"d": data}}, "d", "transfer")
    assert {row["worker"]: row["transfer_us"] for row in found if row["step"] == "1"} == {"Rank 0": 34, "Rank 1": 34}
    assert "1 collectives" in data["missing"][0]["what"]
    # without ids nobody knows, when the lists differ
    folder = two_reducing(tmp_path / "x", [[(100, 50, {})], [(110, 20, {}), (200, 30, {})]], "kernel")
    data = report(folder, "distributed")["views"]["distributed"]
    assert "not the same in the same order" in data["missing"][0]["what"]
    assert rows({"views": {"d": data}}, "d", "transfer") == []


def test_several_calls_of_one_id_count_in_their_order(tmp_path):
    both = [[(100, 50, seq(1)), (200, 10, seq(1))], [(105, 20, seq(1)), (190, 40, seq(1))]]
    data = report(two_reducing(tmp_path, both, "record"), "distributed")["views"]["distributed"]
    found = rows({"views": {"d": data}}, "d", "transfer")
    assert {row["worker"]: row["transfer_us"] for row in found if row["step"] == "1"} == {"Rank 0": 38, "Rank 1": 38}
    assert "missing" not in data


def test_clocks_are_corrected_by_the_collectives_of_one_id(tmp_path):
    ids = [(100 * n, 20, seq(n)) for n in range(1, 8)]
    shifted = [(start + 450.5, length, seq(number + 2)) for number, (start, length, _) in enumerate(ids[2:], start=1)]
    folder = two_reducing(tmp_path, [ids, shifted], "kernel")
    moved = [each["done"] for each in report(folder, "steps")["problems"] if "collectives" in each["what"]]
    assert moved == ["Its times were moved by ~-450.500 us, the median difference."]


@pytest.mark.parametrize(("lacking", "moves"), [((), 2), ((3,), 0)])
def test_clocks_of_several_recordings_are_corrected_within_each_session(tmp_path, lacking, moves):
    """The second host's clock is 450.5 us ahead; if it lacks a recording, it is not known which."""
    for session in (0, 1):
        for rank in (0, 1):
            if 2 * session + rank in lacking:
                continue
            calls = [(100 * n + session * 60e6 + rank * 450.5, 20, seq(n)) for n in range(1, 8)]
            written(tmp_path / f"rank{rank}.{session}.json", reduced(rank, calls, "kernel"),
                    distributedInfo={"rank": rank, "world_size": 2, "backend": "nccl"})  # fmt: skip
    moved = [each for each in report(tmp_path, "steps")["problems"] if "collectives" in each["what"]]
    assert [(each["file"], each["done"][:35]) for each in moved] == [
        (f"rank1.{session}.json", "Its times were moved by ~-450.500 u") for session in range(moves)
    ]


@pytest.mark.parametrize("ids", [{"correlation": 0}, {}, {"correlation": 5}])
def test_collectives_without_correlation_are_launched_by_none_and_counted_by_their_time(tmp_path, ids):
    events = [
        *(event("user_annotation", f"ProfilerStep#{number}", start, 100) for number, start in ((1, 0), (2, 100))),
        event("cuda_runtime", "hipStreamSynchronize", 5, 60, **ids),
        event("cuda_runtime", "hipLaunchKernel", 10, 5, correlation=9),
        event("kernel", "gemm", 20, 30, 0, 0, correlation=9),
        event("kernel", "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", 110, 40, 0, 4, **ids),
    ]  # fmt: skip
    path = written(tmp_path / "rocm.json", events)
    record = report(path, "overview", "launches", "kernels", "steps")
    (launches,) = record["views"]["launches"]["workers"].values()
    assert (launches["figures"]["launches"], launches["figures"]["unlaunched"]) == (1, 1)
    assert [(row["step"], row["communication_us"]) for row in rows(record, "overview", "steps")][:1] == [("1", 0)]
    profile = open_profile(path)
    (lane,) = (lane for lane in profile.lanes if lane.label == "stream 4")
    assert lane["step"].tolist() == [2]
    selected = report(path, "kernels", step=2)
    assert [(row["name"][:13], row["calls"]) for row in rows(selected, "kernels", "by_name")] == [("ncclDevKernel", 1)]
    assert not any(kind == "launch" and row == "stream 4" for kind, _, _, row, _ in linked(path))


def replayed(batch: int, kernels: list[str], start: float = 0, correlation: int = 3) -> list[dict]:
    """An execution that replays a graph."""
    return [
        event("user_annotation", f"execute_context_0(0)_generation_{batch}({batch})", start, 900),
        event("cuda_runtime", "cudaGraphLaunch", start + 5, 5, correlation=correlation),
        *(event("kernel", name, start + 20 + 10 * n, 8, 0, 7, correlation=correlation, device=0, stream=7)
          for n, name in enumerate(kernels)),
    ]  # fmt: skip


def captured(
    batch: int, calls: list[tuple[str, str]], *, named: bool, start: float = 0, marked: bool = True
) -> list[dict]:
    """The capture of a graph whose calls are (kernel, operator): nothing runs, but for a warm-up before."""
    events = [
        event("user_annotation", f"capture_{batch}_FULL", start, 500),
        event("python_function", "nn.Module: Attention_3", start + 85, 300, **{"Python id": 1, "Python module id": 3}),
        event("cpu_op", "aten::warm", start + 1, 8, **{"External id": 1 + batch}),
        event("cuda_runtime", "cudaLaunchKernel", start + 2, 2, correlation=90 + batch, **{"External id": 1 + batch}),
        event("kernel", "warm", start + 6, 2, 0, 7, correlation=90 + batch),
    ]  # fmt: skip
    if marked:
        events += [event("cuda_runtime", f"cudaStream{word}Capture", start + time, 2) for word, time in
                   (("Begin", 20), ("End", 450))]  # fmt: skip
    for n, (kernel, operator) in enumerate(calls):
        at, number = start + 50 + 20 * n, 1000 * batch + n
        events += [
            event("cpu_op", operator, at, 15, **{"External id": number, "Input Dims": [[batch, 8], [8, n + 1]]}),
            event("cuda_runtime", "cudaLaunchKernel", at + 2, 3, correlation=number, **{"External id": number},
                  **({"kernel": kernel} if named else {})),
        ]  # fmt: skip
    return events


CALLS = [("norm", "my::norm"), ("gemm", "aten::mm"), ("attend", "my::attention"), ("gemm", "aten::addmm")]


def with_captures(folder: Path, run: list[dict], *captures: list[dict]) -> Path:
    folder.mkdir(exist_ok=True)
    written(folder / "dp0_pp0_tp0_dcp0_ep0_rank0.17.pt.trace.json", run)
    (folder / "capture_traces").mkdir()
    for number, each in enumerate(captures):
        written(folder / "capture_traces" / f"graph_capture_rank_0.{number}.pt.trace.json", each)
    return folder


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_captures_beside_a_run_tell_what_launched_the_kernels_of_a_replay(tmp_path, named, marked, capsys):
    kernels = [name for name, _ in CALLS]
    folder = with_captures(tmp_path, replayed(4, kernels), captured(4, CALLS, named=named, marked=marked))
    record = report(folder, "kernels")
    assert len(record["workers"]) == 1
    found = {row["name"]: row for row in rows(record, "kernels", "by_launch")}
    assert {name: row["captured_operator"] for name, row in found.items()} == {
        "norm": "my::norm", "attend": "my::attention", "gemm": "aten::addmm; aten::mm",
    }  # fmt: skip
    assert found["attend"]["captured_shape"] == "[[4,8],[8,3]]"
    assert found["attend"]["captured_module"] == "Attention_3"
    assert found["norm"]["captured_module"] is None
    assert {row["operator"] for row in found.values()} == {""}
    table = {row["captured_operator"]: row for row in rows(record, "kernels", "captured")}
    assert {name: (row["calls"], row["total_us"]) for name, row in table.items()} == {
        operator: (1, 8) for _, operator in CALLS
    }
    assert main(["report", str(folder), "kernels"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Of 4 events of replayed graphs 4 were found in 1 trace of captures" in out
    assert ("by the number of calls alone" in out) is not named
    # a file alone has them too, and the file of a capture is a trace like others
    alone = next(folder.glob("*.json"))
    assert len(rows(report(alone, "kernels"), "kernels", "captured")) == 4
    assert report(next((folder / "capture_traces").iterdir()), "kernels")["workers"][0]["events"] > 8


def test_of_captures_that_fit_the_one_of_the_batch_tells(tmp_path):
    run = [*replayed(3, ["k", "k"]), *replayed(7, ["k", "k"], 1000, 4), *replayed(20, ["k", "k"], 2000, 5),
           *replayed(1, ["other"], 3000, 6)]  # fmt: skip
    sizes = [captured(size, [("k", f"op{size}"), ("k", "same")], named=False) for size in (4, 8, 16)]
    record = report(with_captures(tmp_path, run, *sizes), "kernels")
    found = {(row["captured_operator"], row["captured_shape"]): row["calls"] for row in
             rows(record, "kernels", "captured")}  # fmt: skip
    # a batch of 20 is larger than all: what the captures agree on is known
    assert found == {("op4", "[[4,8],[8,1]]"): 1, ("same", "[[4,8],[8,2]]"): 1, ("op8", "[[8,8],[8,1]]"): 1,
                     ("same", "[[8,8],[8,2]]"): 1, ("same", None): 1, (None, None): 1}  # fmt: skip


def test_a_replay_that_no_capture_fits_keeps_nothing(tmp_path):
    run = [*replayed(4, ["norm", "gemm", "attend", "soft"]), *replayed(4, ["norm", "gemm"], 1000, 4)]
    folder = with_captures(tmp_path, run, captured(4, CALLS, named=True))
    record = report(folder, "kernels")
    assert rows(record, "kernels", "captured") == []
    assert {row["captured_operator"] for row in rows(record, "kernels", "by_launch")} == {None}


def test_captures_of_side_streams_are_told_by_the_ids_of_nodes(tmp_path):
    run = replayed(4, ["b", "a"])
    for each, node in zip(run[2:], (12, 11), strict=True):
        each["args"]["graph node id"] = node
    folder = with_captures(tmp_path, run, captured(4, [("a", "first"), ("b", "second")], named=False))
    found = {row["name"]: row["captured_operator"] for row in rows(report(folder, "kernels"), "kernels", "by_launch")}
    assert found == {"a": "first", "b": "second"}


def test_captures_that_cannot_be_read_are_told(tmp_path):
    folder = with_captures(tmp_path, replayed(4, ["k"]), captured(4, [("k", "op")], named=True))
    (folder / "capture_traces" / "broken.json").write_text("{}")
    data = next(iter(report(folder, "kernels")["views"]["kernels"]["workers"].values()))
    assert len(data["tables"]["captured"]["rows"]) == 1
    assert "broken.json" in data["missing"][0]["what"]


def test_captures_in_an_archive_are_no_workers(tmp_path):
    folder = with_captures(tmp_path / "run", replayed(4, ["k"]), captured(4, [("k", "op")], named=True))
    with tarfile.open(tmp_path / "run.tar", "w") as archive:
        archive.add(folder, "run")
    record = report(tmp_path / "run.tar", "kernels")
    assert len(record["workers"]) == 1
    assert [row["captured_operator"] for row in rows(record, "kernels", "captured")] == ["op"]


def test_a_merged_file_beside_the_files_of_its_ranks_is_left_out(tmp_path):
    by_stage(tmp_path)
    events = [each for rank in (0, 1) for each in of_sglang(rank, step(4, 0, 100, 100 + rank))]
    written(tmp_path / "merged-17.trace.json", events)
    found = report(tmp_path, "steps")
    assert len(found["workers"]) == 4
    assert [(each["file"], each["severity"]) for each in found["problems"] if "merged" in each["what"]] == [
        ("merged-17.trace.json", "note")
    ]
    # of another run it is a recording like others
    (tmp_path / "merged-17.trace.json").rename(tmp_path / "merged-18.trace.json")
    assert len(report(tmp_path, "steps")["workers"]) == 6


def test_ranks_merged_into_one_process_without_a_sign_are_refused(tmp_path):
    """Processes in containers have equal ids: the steps would be there twice."""
    both = [*step(1, 0, 100, 100), *step(1, 5, 100, 100), *step(2, 200, 100, 100, external=6, correlation=7),
            *step(2, 205, 100, 100, external=6, correlation=7)]  # fmt: skip
    with pytest.raises(UnreadableError, match="same process id"):
        open_profile(written(tmp_path / "merged.json", both))
    # a step of one process that is annotated twice, as by two profilers, is no sign of it
    twice = [*step(1, 0, 100, 100), event("user_annotation", "ProfilerStep#1", 1, 98, 100, 100)]
    open_profile(written(tmp_path / "twice.json", twice))


def test_the_list_of_a_folder_marks_ranks_of_names(tmp_path):
    by_stage(tmp_path)
    assert [each.ranks for each in sessions(sorted(tmp_path.iterdir()))] == ["0, 1 ~"] * 2
    by_stage(tmp_path, stated=True)
    assert [each.ranks for each in sessions(sorted(tmp_path.iterdir()))] == ["0, 1"] * 2


def test_a_comparison_pairs_sessions_by_rank_and_stage(tmp_path, capsys):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = by_stage(tmp_path / "one"), by_stage(tmp_path / "two")
    (two / "17-TP-0-EXTEND.trace.json").unlink()
    both = Compared(*(Query(Session(open_profile(path))) for path in (one, two)))
    assert [(mine.key, theirs.key if theirs else None) for mine, theirs in both.pairs] == [
        *((f"Rank {key} ~", f"Rank {key} ~") for key in ("0 DECODE", "1 EXTEND", "1 DECODE")),
        ("Rank 0 EXTEND ~", None),
    ]  # fmt: skip
    assert main(["report", str(one), "steps", "--json"]) == 0
    assert [each["stage"] for each in json.loads(capsys.readouterr().out)["workers"]] == ["EXTEND", "DECODE"] * 2


def test_stages_of_a_server_on_one_device_are_sessions_too(tmp_path):
    for stage, start in (("prefill", 0), ("decode", 500)):
        written(tmp_path / f"17-TP-0-{stage}.trace.json", step(4, start, 100, 100),
                distributedInfo={"rank": 0, "world_size": 1})  # fmt: skip
    assert keys(report(tmp_path, "steps")) == [("Rank 0 prefill", 0, False, 1), ("Rank 0 decode", 0, False, 2)]
    profile = open_profile(tmp_path)
    assert (profile.groups.numbers, profile.groups.device_count) == ((0,), 1)


def test_the_folder_of_a_rank_names_it(tmp_path):
    (tmp_path / "rank_3").mkdir()
    path = written(tmp_path / "rank_3" / "host_1.1700000000000.pt.trace.json", step(4, 0, 100, 100))
    assert keys(report(path, "steps")) == [("Rank 3 ~", 3, True, 1)]


def test_guessed_ranks_are_marked_in_texts_and_found_without_the_mark(tmp_path, capsys):
    for rank in (0, 1):
        written(tmp_path / f"w_rank{rank}.json", step(4, 0, 100, 100 + rank))
    for words in (["summary"], ["report", "steps"]):
        assert main([words[0], str(tmp_path), *words[1:]]) == 0
        assert "Rank 1 ~" in capsys.readouterr().out
    for words in (["--rank", "1"], ["--group", "rank 1"], ["--group", "Rank 1 ~"]):
        assert main(["report", str(tmp_path), "kernels", "--json", *words]) == 0
        assert list(json.loads(capsys.readouterr().out)["views"]["kernels"]["workers"]) == ["Rank 1 ~"]
