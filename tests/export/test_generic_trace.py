"""The Perfetto trace of a profile of any source, read back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from kept import SAMPLES
from kept_traces import unpacked_trace
from msgspec.structs import replace
from profiles import selected_query
from trace_reading import TraceReader

from tpuprof_tui import open_profile
from tpuprof_tui.export.job import Job, run_export


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    folder = unpacked_trace("tl_bert_small_h100", tmp_path_factory.mktemp("traces"))
    return open_profile(folder / "h100.pt.trace.json.gz")


def read_back(profile, folder, **selection):
    (written,) = run_export(Job(folder, frozenset(("pftrace",)), selected_query(profile, **selection)))
    return TraceReader(written.path.read_bytes())


def test_all_events_links_and_samples_are_in_the_trace(profile, tmp_path):
    trace = read_back(profile, tmp_path)
    slices = [each for track in trace.tracks.values() for each in track.slices]
    starts = np.concatenate([lane["start"] for lane in profile.lanes]) + profile.epoch_ns
    ends = np.concatenate([lane["end"] for lane in profile.lanes]) + profile.epoch_ns
    names = [profile.text("name", code) for lane in profile.lanes for code in lane["name"].tolist()]
    wanted = sorted(zip(starts.tolist(), ends.tolist(), names, strict=True))
    assert sorted((each.start, each.end, each.name) for each in slices) == wanted
    links = profile.links()
    leaving = {number: each for each in slices for number in each.flows}
    reaching = {number: each for each in slices for number in each.ending_flows}
    # what ends a wait is no flow of the trace
    flows = ~np.isin(links.kind, list(links.ending))
    assert sorted((leaving[number].start, reaching[number].start) for number in leaving) == sorted(
        zip(starts[links.from_row[flows]].tolist(), starts[links.to_row[flows]].tolist(), strict=True)
    )
    samples = sorted(each for track in trace.tracks.values() for each in track.samples)
    assert samples == sorted(
        (time + profile.epoch_ns, value)
        for counter in profile.counters
        for time, value in zip(counter.times.tolist(), counter.values.tolist(), strict=True)
    )
    copied = next(each for each in slices if each.name.startswith("Memcpy"))
    assert copied.category == "gpu_memcpy"
    assert dict(copied.notes)["Bytes"] in (1, 8)


def test_a_selection_writes_its_events_and_the_links_between_them(profile, tmp_path):
    trace = read_back(profile, tmp_path, filter="type=kernel")
    slices = [each for track in trace.tracks.values() for each in track.slices]
    assert len(slices) == 60
    assert not any(each.flows or each.ending_flows for each in slices)


@pytest.mark.parametrize("name", ["torch_cuda_synthetic", "ascend_synthetic"])
def test_a_selection_writes_the_samples_of_its_units_and_range(name, tmp_path):
    profile = open_profile(SAMPLES / name)
    unit, middle = profile.units[1], (profile.start_ns + profile.end_ns) // 2
    trace = read_back(profile, tmp_path, units=frozenset((unit,)), start=middle)
    samples = sorted(each for track in trace.tracks.values() for each in track.samples)
    chosen = [each for each in profile.counters if each.group == unit]
    assert 0 < len(chosen) < len(profile.counters)
    assert samples == sorted(
        (time + profile.epoch_ns, value)
        for counter in chosen
        for time, value in zip(counter.times.tolist(), counter.values.tolist(), strict=True)
        if time >= middle
    )
    trace = read_back(profile, tmp_path, end=middle)
    assert sum(len(track.samples) for track in trace.tracks.values()) == sum(
        int((each.times < middle).sum()) for each in profile.counters
    )


def test_a_profile_without_events_gives_a_trace_that_says_so(profile, tmp_path):
    empty = replace(profile.restricted_to([slice(0, 0)] * len(profile.lanes)), counters=())
    # an empty file is no trace for Perfetto
    (track,) = read_back(empty, tmp_path / "out").tracks.values()
    assert track.name == "Nothing was recorded with times"


def test_counters_of_one_name_are_tracks_of_their_own(tmp_path):
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 10, "dur": 5, "args": {"stream": 7}}
    samples = [
        {"ph": "C", "cat": "c", "name": "Mem", "pid": process, "ts": time, "args": {"value": process * time}}
        for process in (77, 78) for time in (10, 20, 30)
    ]  # fmt: skip
    path = tmp_path / "counters.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [kernel, *samples]}))
    profile = open_profile(path)
    tracks = [track for track in read_back(profile, tmp_path / "out").tracks.values() if track.samples]
    assert [[value for _, value in track.samples] for track in tracks] == [
        [77 * time for time in (10, 20, 30)], [78 * time for time in (10, 20, 30)]
    ]  # fmt: skip
