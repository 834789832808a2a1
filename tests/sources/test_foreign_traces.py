"""Traces of JAX and of unitrace: devices are devices, with their own words."""

from __future__ import annotations

import json

import foreign_traces
import pytest

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.views.registry import views_of
from tpuprof_tui.views.report import report_record, workers_of


def shown(profile) -> dict[str, list[str]]:
    """Names of the events of each lane."""
    return {profile.title_of(lane): [profile.text("name", code) for code in lane["name"].tolist()]
            for lane in profile.lanes}  # fmt: skip


def views(profile) -> dict:
    return report_record(Query(Session(profile)), views_of(profile.vocabulary), workers_of(profile))["views"]


def test_tpus_of_jax(tmp_path):
    profile = open_profile(foreign_traces.jax_on_tpus(tmp_path / "host.trace.json.gz"))
    assert [profile.groups[unit].label for unit in profile.units] == ["TPU 0", "TPU 1"]
    assert (profile.vocabulary.title, profile.vocabulary.unit.one) == ("XProf trace", "TPU")
    lanes = shown(profile)
    assert lanes["TPU 0 XLA Ops"] == ["fusion.1", "convolution.2", "all-reduce.3"] * 3
    assert lanes["TPU 1 annotations Steps"] == ["7", "8", "9"]
    assert lanes["/host:CPU 701 python3 9"] == ["PjitFunction(train_step)"] * 3
    assert profile.problems == ()
    assert profile.steps.number.tolist() == [7, 8, 9]
    (worker,) = views(profile)["streams"]["workers"].values()
    assert worker["figures"]["busy_us"] == 240
    assert worker["figures"]["communication_us"] == 60
    ops = next(lane for lane in profile.lanes if profile.title_of(lane) == "TPU 1 XLA Ops")
    assert ops["step"].tolist() == [7] * 3 + [8] * 3 + [9] * 3
    assert ops.arguments(0) == {"hlo_category": "loop fusion"}


def test_a_gpu_of_jax_counts_each_operation_once(tmp_path):
    profile = open_profile(foreign_traces.jax_on_gpu(tmp_path / "host.trace.json.gz"))
    lanes = shown(profile)
    assert set(lanes) == {"GPU 0 stream 13", "GPU 0 stream 14", "GPU 0 annotations XLA Ops", "/host:CPU 701 python3 9"}
    found = views(profile)
    (kernels,) = found["kernels"]["workers"].values()
    assert (kernels["figures"]["kernels"], kernels["figures"]["total_us"]) == (4, 130)
    (launches,) = found["launches"]["workers"].values()
    assert launches["figures"]["launches"] == 3
    assert launches["figures"]["delay_us"] == 45
    copies = kernels["tables"]["copies"]["rows"]
    assert [row[:2] for row in copies] == [["MemcpyH2D", 1]]


def test_gpus_of_unitrace(tmp_path):
    profile = open_profile(foreign_traces.unitrace(tmp_path / "app.123.json"))
    assert [profile.groups[unit].label for unit in profile.units] == ["GPU 0", "GPU 1"]
    assert profile.device.chip == "Intel(R) Data Center GPU Max 1550"
    lanes = shown(profile)
    kernel, copy = "gemm_kernel[SIMD32 {8; 1; 1}]", "zeCommandListAppendMemoryCopy(M2D)[4096 bytes]"
    assert lanes["GPU 0 Compute<0,0>"] == lanes["GPU 1 Compute<0,0>"] == [kernel, kernel, copy]
    assert any("Thread 500" in title for title in lanes)
    (kernels,) = views(profile)["kernels"]["workers"].values()
    assert (kernels["figures"]["kernels"], kernels["figures"]["total_us"]) == (4, 120)


@pytest.mark.parametrize("gpus", [1, 2])
def test_gpus_of_rocprofv3(tmp_path, gpus):
    profile = open_profile(foreign_traces.rocprof(tmp_path / "1_results.pftrace", gpus))
    assert profile.recording.meaning == "rocprofv3"
    labels = [f"GPU {gpu}" for gpu in range(1, gpus + 1)]
    assert [profile.groups[unit].label for unit in profile.units] == labels
    lanes = shown(profile)
    there, kernel, back = "MEMORY_COPY_HOST_TO_DEVICE", "gemm(float*, int)", "MEMORY_COPY_DEVICE_TO_HOST"
    for gpu in range(1, gpus + 1):
        assert lanes[f"GPU {gpu} stream {gpu}"] == [there, kernel, back] * 2
    overview, kernels = (views(profile)[view] for view in ("overview", "kernels"))
    assert overview["workers"]
    (found,) = kernels["workers"].values()
    assert (found["figures"]["kernels"], found["figures"]["total_us"]) == (2 * gpus, 0.6 * gpus)
    copies = {row[0]: row[1] for row in found["tables"]["copies"]["rows"]}
    assert copies == {there: 2 * gpus, back: 2 * gpus}
    # kernels belong to the calls of HIP that launched them
    links = profile.links()
    assert links is not None
    assert len(links) >= 2 * gpus


def test_copies_of_no_stream_of_a_gpu_are_of_an_unknown_one(tmp_path):
    path = foreign_traces.rocprof(tmp_path / "a.pftrace", 2)
    data = path.read_bytes()
    assert data.count(b"AGENT [0] STREAM [2]") == 1
    path.write_bytes(data.replace(b"AGENT [0] STREAM [2]", b"AGENT [0] STREAM [7]"))
    assert shown(open_profile(path))["GPU ? stream 7"] == ["MEMORY_COPY_DEVICE_TO_HOST"] * 2


@pytest.mark.parametrize(
    "name", ["/device:TPU:99999999999", "/device:TPU:", "DEVICE<", "/device:CUSTOM:Megascale Trace"]
)
def test_processes_that_only_look_like_devices_are_hosts(tmp_path, name):
    path = tmp_path / "a.json"
    event = {"ph": "X", "pid": 1, "tid": 1, "name": "x", "ts": 1, "dur": 1}
    names = {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": name}}
    path.write_text(json.dumps({"traceEvents": [names, event]}))
    assert [lane.kind for lane in open_profile(path).lanes] == ["thread"]


def test_odd_names_of_devices(tmp_path):
    """The same device twice, signs of control, threads without names."""
    path = tmp_path / "a.json"
    names = ["/device:GPU:0", "/device:GPU:0", "/device:GPU:0 \x1b[31m[red]", "/device:TPU:0 SparseCore 1"]
    events = [{"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}} for pid, name in enumerate(names)]
    events += [{"ph": "X", "pid": pid, "tid": 5, "name": "x", "ts": pid, "dur": 1} for pid in range(len(names))]
    path.write_text(json.dumps({"traceEvents": events}))
    profile = open_profile(path)
    assert len(profile.units) == 4
    assert [lane.kind for lane in profile.lanes] == ["stream"] * 4
    assert views(profile)["streams"]


def test_a_host_of_jax_alone(tmp_path):
    path = tmp_path / "host.trace.json"
    events = [{"ph": "M", "pid": 701, "name": "process_name", "args": {"name": "/host:CPU"}},
              {"ph": "X", "pid": 701, "tid": 1, "name": "PjitFunction(f)", "ts": 1, "dur": 2}]  # fmt: skip
    path.write_text(json.dumps({"traceEvents": events}))
    profile = open_profile(path)
    assert (profile.vocabulary.title, profile.problems, list(profile.units)) == ("XProf trace", (), [])
    (found,) = views(profile)["streams"]["workers"].values()
    assert [each["needs"] for each in found["missing"]] == ["another recording of XProf"]


def test_long_numbers_of_processes(tmp_path):
    path = tmp_path / "a.json"
    events = [{"ph": "M", "pid": "9" * 9000, "name": "process_name", "args": {"name": "/device:GPU:0"}},
              {"ph": "X", "pid": "9" * 9000, "tid": "9" * 9000, "name": "x", "ts": 1, "dur": 2}]  # fmt: skip
    path.write_text(json.dumps({"traceEvents": events}))
    assert [lane.kind for lane in open_profile(path).lanes] == ["stream"]
