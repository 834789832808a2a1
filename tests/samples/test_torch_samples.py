"""The samples of PyTorch traces: the synthetic one is what its program writes, and both open with their figures."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import torch_trace

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.views.registry import views_of
from tpuprof_tui.views.report import report_record, workers_of

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def report(path):
    profile = open_profile(path)
    return report_record(Query(Session(profile)), views_of(profile.vocabulary), workers_of(profile))


def test_the_synthetic_sample_is_what_the_program_writes(tmp_path):
    kept = {path.name: path for path in (SAMPLES / "torch_cuda_synthetic").iterdir()}
    written = torch_trace.write_run(tmp_path, ranks=2, steps=3)
    assert {path.name for path in written} == set(kept)
    for path in written:
        assert gzip.decompress(path.read_bytes()) == gzip.decompress(kept[path.name].read_bytes()), "write it again"


def test_the_synthetic_run_has_late_data_and_communication_that_is_not_covered():
    found = report(SAMPLES / "torch_cuda_synthetic")
    assert found["problems"] == []
    first, second = (worker["key"] for worker in found["workers"])
    parts = {key: found["views"]["overview"]["workers"][key]["figures"] for key in (first, second)}
    assert parts[second]["dataloader_us"] > 4 * parts[first]["dataloader_us"]
    assert all(each["steps"] == 3 and each["communication_us"] > 100 for each in parts.values())
    assert [row[:2] for row in found["views"]["overview"]["workers"][second]["tables"]["recommendations"]["rows"]] == [
        ["dataloader", None]
    ]
    transfer = found["views"]["distributed"]["tables"]["transfer"]["rows"]
    assert {row[1] for row in transfer} == {first, second}
    names = {row[1] for row in found["views"]["modules"]["workers"][first]["tables"]["modules"]["rows"]}
    assert {"Decoder_0", "Block_3", "Linear_11"} <= names


def test_events_are_as_many_as_asked_for(tmp_path):
    (path,) = torch_trace.write_run(tmp_path, events=5_000, packed=False)
    events = json.loads(path.read_bytes())["traceEvents"]
    assert 5_000 <= sum(each["ph"] == "X" for each in events) < 8_000


def test_the_recorded_sample_opens():
    profile = open_profile(SAMPLES / "torch_cpu_recorded")
    assert profile.problems == ()
    assert len(profile.steps) == 2
    names = {profile.text("name", code) for lane in profile.lanes for code in np.unique(lane["name"]).tolist()}
    assert {"aten::addmm", "nn.Module: Net_0", "Optimizer.step#SGD.step"} <= names
    overview = report(SAMPLES / "torch_cpu_recorded")["views"]["overview"]["workers"]["worker0"]
    assert overview["figures"]["cpu_us"] > 0
    assert overview["figures"]["kernel_us"] == 0
