"""Perfetto traces: our own exports, PyTorch's, and those of any program; damaged ones."""

from __future__ import annotations

import gzip
import json
import math
import random
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
from perfetto_files import (
    BEGIN,
    CLEARED,
    COUNTER,
    END,
    INSTANT,
    Builder,
    message,
    program_trace,
    sample,
    torch_trace,
    varint,
)

from tpuprof_tui import open_profile
from tpuprof_tui.__main__ import main
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.export.job import Job, run_export
from tpuprof_tui.model import Profile, Severity
from tpuprof_tui.sources.perfetto import packets, wire
from tpuprof_tui.sources.perfetto.packets import is_perfetto

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
OWN = ("aks_decode_mode2", "aksv_cdma", "torch_cuda_synthetic", "torch_cpu_recorded", "ascend_synthetic")
CUDA = SAMPLES / "torch_cuda_synthetic" / "node0_4000.1700000000000.pt.trace.json.gz"
S = 1_000_000_000


def opened(folder: Path, data: bytes, name: str = "some.pftrace") -> Profile:
    (folder / name).write_bytes(data)
    return open_profile(folder / name)


def events(profile: Profile) -> list[tuple[str, str, int, int, str]]:
    """Group, lane, start, end and name of all events; times count from the first."""
    found = [
        (profile.groups[lane.group].label, lane.label, int(lane["start"][row]), int(lane["end"][row]),
         profile.strings["name"][lane["name"][row]])
        for lane in profile.lanes for row in range(len(lane))
    ]  # fmt: skip
    first = min(start for _, _, start, _, _ in found)
    return sorted((group, lane, start - first, end - first, name) for group, lane, start, end, name in found)


def lane_of(profile: Profile, label: str):
    (found,) = (lane for lane in profile.lanes if lane.label == label)
    return found


def told(profile: Profile) -> dict[str, int]:
    return {problem.what: problem.count for problem in profile.problems}


# -- our own exports ----------------------------------------------------------


def start_order(profile: Profile, rows: np.ndarray) -> list[tuple[int, int, str]]:
    """Start, end and name of events by their number in the profile."""
    columns = [np.concatenate([lane.take(key, np.arange(len(lane))) for lane in profile.lanes])
               for key in ("start", "end", "name")]  # fmt: skip
    start, end, name = (column[rows].tolist() for column in columns)
    return list(zip(start, end, [profile.strings["name"][code] if code >= 0 else "" for code in name], strict=True))


@pytest.mark.parametrize("sample", OWN)
def test_an_export_of_ours_is_read_as_it_was(tmp_path, sample):
    profile = open_profile(SAMPLES / sample).timed_part
    (written,) = run_export(Job(tmp_path, frozenset(("pftrace",)), query_of(profile)))
    path = written.path
    found = open_profile(path)
    was = json.loads(json.dumps(of_export(path)))
    assert by_track(found) == was["slices"]
    assert sorted(map(tuple, was["flows"])) == links_of(found)
    samples = sorted((counter.unit, len(counter.times), round(math.fsum(counter.values.tolist()), 6))
                     for counter in found.counters)  # fmt: skip
    assert samples == sorted(map(tuple, was["counters"]))
    assert len(events(found)) == sum(map(len, profile.lanes)) or sample.startswith("aks")


def of_export(path: Path) -> dict:
    """Slices with their arguments, flows and counters of a file, as the package perfetto decodes it."""
    from trace_reading import TraceReader

    tracks = TraceReader(path.read_bytes()).by_path.values()
    slices = [(each.start, each.end, each.name, each.category or "", dict(each.notes), each.flows, each.ending_flows)
              for track in tracks for each in track.slices]  # fmt: skip
    begins = {flow: each for each in slices for flow in each[5]}
    return {
        "slices": sorted([*each[:4], json.dumps(each[4], sort_keys=True)] for each in slices),
        "flows": sorted([*begins[flow][:3], *each[:3]] for each in slices for flow in each[6] if flow in begins),
        "counters": [(track.unit, len(track.samples), round(math.fsum(value for _, value in track.samples), 6))
                     for track in tracks if track.samples],
    }  # fmt: skip


def by_track(profile: Profile) -> list[list]:
    """The same of a profile that was read of it."""
    found = []
    base = profile.epoch_ns
    for lane in profile.lanes:
        names, types = profile.strings["name"], profile.strings["type"]
        rows = np.arange(len(lane))
        columns = [lane.take(key, rows).tolist() for key in ("start", "end", "name", "type")]
        for row, (start, end, name, kind) in enumerate(zip(*columns, strict=True)):
            note = json.dumps(lane.arguments(row), sort_keys=True)
            found.append([start + base, end + base, names[name], types[kind] if kind >= 0 else "", note])
    return sorted(found)


def links_of(profile: Profile) -> list[tuple]:
    links = profile.links()
    flows = links.kind == links.kinds.index("flow")
    base = profile.epoch_ns
    ends = [start_order(profile, rows[flows]) for rows in (links.from_row, links.to_row)]
    return sorted((begin + base, end + base, name, begin_2 + base, end_2 + base, name_2)
                  for (begin, end, name), (begin_2, end_2, name_2) in zip(*ends, strict=True))  # fmt: skip


# -- PyTorch's ----------------------------------------------------------------


def cuda_events() -> list[dict]:
    """The events of a trace of a GPU that PyTorch's exporter writes: no flows, no empty lists."""
    found = json.loads(gzip.decompress(CUDA.read_bytes()))["traceEvents"]
    for each in found:
        each["args"] = {key: value for key, value in each.get("args", {}).items() if value != []}
    return [each for each in found if each["ph"] in "XMi"]


def report(path: Path, capsys, *words: str) -> str:
    assert main(["report", str(path), "--json", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("packing", [bytes, gzip.compress])
def test_a_trace_of_pytorch_is_reported_as_its_chrome_trace(tmp_path, capsys, packing):
    (tmp_path / "some.json").write_text(json.dumps({"traceEvents": cuda_events()}))
    (tmp_path / "some.pftrace").write_bytes(packing(torch_trace(cuda_events())))
    as_json = report(tmp_path / "some.json", capsys)
    assert len(json.loads(as_json)["views"]) > 20
    assert json.loads(as_json)["views"]["launches"]["workers"]["some"]["figures"]["launches"] == 165
    assert report(tmp_path / "some.pftrace", capsys) == as_json.replace("some.json", "some.pftrace")


def test_work_of_gpus_has_the_arguments_of_a_chrome_trace(tmp_path):
    profile = opened(tmp_path, torch_trace(cuda_events()))
    lane = lane_of(profile, "stream 7")
    wanted = next(each["args"] for each in cuda_events() if each.get("cat") == "kernel" and each["tid"] == 7)
    assert lane.arguments(0) == wanted | {"est. achieved occupancy %": 1}
    assert profile.recording.name == "a PyTorch trace"


def test_work_that_waits_is_linked_with_what_it_waits_for(tmp_path):
    # also for what comes later in the file, and not for what is not there
    profile = opened(tmp_path, torch_trace(cuda_events(), {2: [1, 2**40], 1: [5]}))
    links = profile.links()
    graph = links.kind == links.kinds.index("graph")
    names = [[name for _, _, name in start_order(profile, rows[graph])] for rows in (links.from_row, links.to_row)]
    by_correlation = {each["args"]["correlation"]: each["name"] for each in cuda_events()
                      if each.get("cat") in ("kernel", "gpu_memcpy")}  # fmt: skip
    assert sorted(zip(*names, strict=True)) == sorted(
        (by_correlation[cause], by_correlation[work]) for cause, work in ((1, 2), (5, 1))
    )


def test_a_launch_without_a_correlation_is_known_by_what_it_submitted(tmp_path):
    builder = Builder()
    builder.process(1, 4000, "python")
    builder.thread(2, 1, 4000, 4001)
    builder.slice(2, S, S + 500, "hipLaunchKernel", "hip_runtime").MergeFromString(message(3000, b"\x08" + varint(77)))
    stage = builder.packet(S + 1000).gpu_render_stage_event
    stage.event_id, stage.duration, stage.gpu_id, stage.name = 77, 250, 1, "gemm"
    stage.launch.grid_size.x = 8
    specifications = stage.specifications
    for table in (specifications.hw_queue, specifications.stage):
        table.add(name="COMPUTE")
    profile = opened(tmp_path, builder.bytes())
    assert [group.label for group in profile.groups][1:] == ["GPU 1", "python 4000"]
    links = profile.links()
    (cause,), (work,) = (start_order(profile, rows) for rows in (links.from_row, links.to_row))
    assert cause[2:] + work[2:] == ("hipLaunchKernel", "gemm")
    assert lane_of(profile, "stream COMPUTE").arguments(0) == {
        "device": 1, "grid": [8, 1, 1], "correlation": 77
    }  # fmt: skip


def test_counters_of_gpus(tmp_path):
    builder = Builder()
    descriptor = builder.packet().interned_data.gpu_counter_descriptors.add(iid=3, gpu_id=1).counter_descriptor
    descriptor.specs.add(counter_id=0, name="Power (W)")
    for time, value in ((S, 300.5), (S + 10, 301.0)):
        event = builder.packet(time).gpu_counter_event
        event.counter_descriptor_iid = 3
        event.counters.add(counter_id=0, double_value=value)
    event = builder.packet(S + 20).gpu_counter_event
    event.gpu_id = 2
    event.counter_descriptor.specs.add(counter_id=7, name="Cycles")
    event.counters.add(counter_id=7, int_value=-5)
    event.counters.add(counter_id=8, int_value=9)
    found = {each.name: each.values.tolist() for each in opened(tmp_path, builder.bytes()).counters}
    assert found == {"Power (W)": [300.5, 301.0], "Cycles": [-5.0], "counter 8": [9.0]}


# -- any program's ------------------------------------------------------------


def test_processes_threads_and_tracks_below_them(tmp_path):
    builder = Builder()
    builder.process(1, 12, "server")
    builder.thread(2, 1, 12, 13, "worker")
    builder.thread(20, 1, 12, 13, "worker")
    builder.track(3, "queue", 1)
    builder.track(4, "lock", 2)
    builder.track(5, "Rack")
    builder.track(6, "Fan", 5)
    builder.track(7, "Fan", 5)
    for number, track in enumerate((1, 2, 20, 3, 4, 6, 7, 99)):
        builder.slice(track, S + 100 * number, S + 100 * number + 50, f"e{number}")
    found = [(group, lane, name) for group, lane, _, _, name in events(opened(tmp_path, builder.bytes()))]
    assert sorted(found) == [
        ("Global tracks", "track 99", "e7"), ("Rack", "Fan", "e5"), ("Rack", "Fan (2)", "e6"),
        ("server 12", "13 / lock", "e4"), ("server 12", "process", "e0"), ("server 12", "queue", "e3"),
        ("server 12", "worker 13", "e1"), ("server 12", "worker 13", "e2"),
    ]  # fmt: skip


def test_slices_instants_and_their_arguments(tmp_path):
    builder = Builder()
    builder.track(1, "T")
    builder.slice(1, S, S + 3000, "outer", "x")
    nested = {"a": [1, -2, {"b": 0.5}], "t": "text", "yes": True}
    builder.event(INSTANT, 1, S + 10, "now", "x", nested)
    key, value = builder.iid("debug_annotation_names", "key"), builder.iid("debug_annotation_string_values", "v", "str")
    event = builder.event(INSTANT, 1, S + 20, "", "x")
    event.name = "later"
    event.debug_annotations.add(name_iid=key, string_value_iid=value)
    event.debug_annotations.add(name="pointer", pointer_value=0xFF)
    event.debug_annotations.add(name="json", legacy_json_value='{"x": [1]}')
    event.debug_annotations.add(name="no json", legacy_json_value="{x")
    event.debug_annotations.add(name="large", uint_value=2**64 - 1)
    event.debug_annotations.add(name="inf", double_value=float("inf"))
    profile = opened(tmp_path, builder.bytes())
    assert [(start, end, name) for *_, start, end, name in events(profile)] == [
        (0, 3000, "outer"), (10, 10, "now"), (20, 20, "later"),
    ]  # fmt: skip
    (lane,) = profile.lanes
    assert lane.arguments(1) == nested
    assert lane.arguments(2) == {"key": "v", "pointer": "0xff", "json": {"x": [1]}, "no json": "{x",
                                 "large": 2**64 - 1, "inf": None}  # fmt: skip
    assert profile.recording.name == "a Perfetto trace"


def test_arguments_of_the_end_of_a_slice_are_its_own_too(tmp_path):
    builder = Builder()
    builder.track(1, "T")
    builder.event(BEGIN, 1, S, "outer", args={"a": 1, "b": 2})
    builder.event(BEGIN, 1, S + 10, "inner")
    builder.event(END, 1, S + 20, args={"c": [3]})
    builder.event(END, 1, S + 30, args={"b": 4})
    builder.event(END, 1, S + 40, args={"lost": 5})
    profile = opened(tmp_path, builder.bytes())
    assert [profile.lanes[0].arguments(row) for row in range(2)] == [{"a": 1, "b": 4}, {"c": [3]}]
    assert [each[2:] for each in events(profile)] == [(0, 30, "outer"), (10, 20, "inner")]


def test_an_interned_text_that_is_told_anew_stands_for_what_comes_behind(tmp_path):
    builder = Builder()
    builder.track(1, "T")
    for number, (name, value) in enumerate((("one", "x"), ("two", "y"))):
        interned = builder.packet().interned_data
        interned.event_names.add(iid=1, name=name)
        interned.debug_annotation_string_values.add(iid=1, str=value.encode())
        interned.debug_annotation_names.add(iid=1, name=f"key {number}")
        event = builder.packet(S + number).track_event
        event.type, event.track_uuid, event.name_iid = INSTANT, 1, 1
        event.debug_annotations.add(name_iid=1, string_value_iid=1)
    profile = opened(tmp_path, builder.bytes())
    assert [name for *_, name in events(profile)] == ["one", "two"]
    assert [profile.lanes[0].arguments(row) for row in range(2)] == [{"key 0": "x"}, {"key 1": "y"}]


def test_flows_join_slices_in_the_order_of_their_times(tmp_path):
    builder = Builder()
    for number in range(5):
        builder.track(number + 1, f"T{number}")
    # flow 7 goes on to the third, and begins anew behind its end
    ids = {4: [], 3: [7], 2: [], 1: [7], 0: [7, 2**63 + 5]}
    ends = {2: [7, 2**63 + 5], 4: [7]}
    for number, begins in ids.items():
        event = builder.slice(number + 1, S + 100 * number, S + 100 * number + 50, f"e{number}")
        event.flow_ids.extend(begins)
        event.terminating_flow_ids.extend(ends.get(number, ()))
    found = [(cause, work) for _, _, cause, _, _, work in links_of(opened(tmp_path, builder.bytes()))]
    assert sorted(found) == [("e0", "e1"), ("e0", "e2"), ("e1", "e2"), ("e3", "e4")]


def test_counters_with_units_sums_and_values_beside_events(tmp_path):
    builder = Builder()
    builder.process(1, 12, "server")
    builder.track(2, "memory", 1, unit=pb.CounterDescriptor.UNIT_SIZE_BYTES, unit_multiplier=1024)
    builder.track(3, "requests", 1, is_incremental=True, unit_name="req")
    builder.track(4, "load", 1)
    builder.track(5, "T", 1)
    for number in range(3):
        builder.event(COUNTER, 2, S + number).counter_value = 10 + number
        builder.event(COUNTER, 3, S + number).counter_value = 5
        event = builder.event(INSTANT, 5, S + number, "i")
        event.extra_double_counter_track_uuids.append(4)
        event.extra_double_counter_values.append(number / 2)
    found = {each.name: (each.unit, each.values.tolist()) for each in opened(tmp_path, builder.bytes()).counters}
    assert found == {
        "memory": ("B", [10240, 11264, 12288]),
        "requests": ("req", [5, 10, 15]),
        "load": ("", [0, 0.5, 1]),
    }


def test_clocks_that_snapshots_relate_and_times_that_count_from_the_one_before(tmp_path):
    builder = Builder()
    builder.track(1, "T")
    snapshot = builder.packet()
    for clock, time, unit, since in ((6, 5 * S, 1, False), (3, 2 * S, 1, False), (64, 100, 1000, True)):
        snapshot.clock_snapshot.clocks.add(
            clock_id=clock, timestamp=time, unit_multiplier_ns=unit, is_incremental=since
        )
    snapshot.trace_packet_defaults.timestamp_clock_id = 64
    snapshot.trace_packet_defaults.track_event_defaults.track_uuid = 1
    for time, clock, name in ((10, 0, "a"), (20, 0, "b"), (2 * S + 7000, 3, "c"), (5 * S + 500, 6, "d"), (1, 9, "e")):
        packet = builder.packet(time)
        packet.track_event.type, packet.track_event.name = INSTANT, name
        if clock:
            packet.timestamp_clock_id = clock
    profile = opened(tmp_path, builder.bytes())
    times = {name: start for *_, start, _, name in events(profile)}
    assert {name: time - times["d"] for name, time in times.items() if name != "e"} == {
        "a": 9500, "b": 29500, "c": 6500, "d": 0
    }  # fmt: skip
    assert told(profile)["Times of a clock that no snapshot relates to the trace's."] == 1


def test_older_events_with_phases(tmp_path):
    builder = Builder()
    packet = builder.packet()
    packet.thread_descriptor.pid, packet.thread_descriptor.tid = 5, 6
    packet.thread_descriptor.thread_name, packet.thread_descriptor.reference_timestamp_us = "main", 1000

    def add(phase: str, name: str = "", delta: int = 10, **more: int) -> None:
        event = builder.packet().track_event
        event.timestamp_delta_us = delta
        legacy = event.legacy_event
        legacy.phase = ord(phase)
        if name:
            legacy.name_iid = builder.iid("event_names", name)
        for key, value in more.items():
            setattr(legacy, key, value)

    for name in ("whole", "part", "async"):
        builder.iid("event_names", name)
    add("X", "whole", duration_us=3)
    add("B", "part")
    add("E")
    add("b", "async", unscoped_id=1)
    add("b", "async", unscoped_id=2)
    add("e", "async", unscoped_id=1)
    add("e", "async", unscoped_id=2)
    add("X", "whole", duration_us=2, tid_override=7)
    add("N", "whole")
    profile = opened(tmp_path, builder.bytes())
    assert events(profile) == sorted([
        ("Process 5", "main 6", 0, 3000, "whole"), ("Process 5", "main 6", 10_000, 20_000, "part"),
        ("Process 5", "main 6", 30_000, 50_000, "async"), ("Process 5", "main 6", 40_000, 60_000, "async"),
        ("Process 5", "7", 70_000, 72_000, "whole"),
    ])  # fmt: skip
    assert told(profile)["Track events of a type that is not followed."] == 1


def test_sequences_keep_their_names_apart_until_they_are_cleared(tmp_path):
    one, two = Builder(1), Builder(2)
    one.track(1, "T")
    for builder, name in ((one, "of one"), (two, "of two")):
        builder.slice(1, S, S + 10, name)
    one.packet(flags=CLEARED)
    names = one._iids = {}
    one.slice(1, S + 20, S + 30, "of one again")
    assert len(names) == 1
    # one packet of one after one of the other
    packets = [
        packet
        for pair in zip(one.trace.packet, [*two.trace.packet] + [pb.TracePacket()] * 9, strict=False)
        for packet in pair
    ]
    profile = opened(tmp_path, pb.Trace(packet=packets).SerializeToString())
    assert {name for *_, name in events(profile)} == {"of one", "of two", "of one again"}


def test_what_was_lost_is_told_and_events_that_need_it_are_left_out(tmp_path):
    builder = Builder()
    builder.track(1, "T")
    builder.slice(1, S, S + 10, "before")
    builder.packet().previous_packet_dropped = 1
    builder.slice(1, S + 20, S + 30, "lost")
    builder.packet(flags=CLEARED)
    builder._iids.clear()
    builder.slice(1, S + 40, S + 50, "after")
    event = builder.packet(S + 60).track_event
    event.type, event.track_uuid, event.name_iid = INSTANT, 1, 77
    profile = opened(tmp_path, builder.bytes())
    assert [name for *_, name in events(profile)] == ["before", "after", "unknown"]
    found = told(profile)
    assert found["Packets were lost while the trace was recorded."] == 1
    assert found["Packets that need names or clocks of packets that were lost."] == 2
    assert found["Names that were not recorded."] == 1


def test_begins_and_ends_without_each_other_are_told(tmp_path):
    builder = Builder()
    builder.track(1, "T")
    builder.event(END, 1, S)
    builder.event(BEGIN, 1, S + 10, "open")
    builder.slice(1, S + 20, S + 50, "closed")
    profile = opened(tmp_path, builder.bytes())
    assert [each[2:] for each in events(profile)] == [(0, 40, "open"), (10, 40, "closed")]
    found = told(profile)
    assert found["Slices that did not end."] == 1
    assert found["Ends of slices that did not begin: the recording began within them."] == 1


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), min_size=1, max_size=30), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_slices_are_paired_by_time_whatever_the_order_in_the_file(tmp_path_factory, drawn, how):
    # slices that nest, begun and ended at different times
    ends: list[int] = []
    slices = []
    for start, length in sorted(drawn, key=lambda each: (each[0], -each[1])):
        begin, end = 100 * start + len(slices), 100 * (start + length) + 50
        while ends and ends[-1] <= begin:
            ends.pop()
        end = min(end, ends[-1] - 1) if ends else end
        if end > begin and end not in {each[1] for each in slices}:
            slices.append((begin, end))
            ends.append(end)
    builder = Builder()
    builder.track(1, "T")
    edges = [(BEGIN, begin, f"e{number}") for number, (begin, _) in enumerate(slices)]
    edges += [(END, end, "") for _, end in slices]
    if how == 1:
        edges.sort(key=lambda each: each[1])
    elif how:
        random.Random(how).shuffle(edges)
    for kind, time, name in edges:
        builder.event(kind, 1, S + time, name)
    found = opened(tmp_path_factory.mktemp("t"), builder.bytes())
    first = min(begin for begin, _ in slices)
    wanted = sorted((begin - first, end - first, f"e{number}") for number, (begin, end) in enumerate(slices))
    assert sorted(each[2:] for each in events(found)) == wanted
    assert not found.problems or {each.severity for each in found.problems} <= {Severity.WARNING}
    assert "Slices that did not end." not in told(found)


def test_at_one_time_ends_come_first_where_all_begins_are_written_first(tmp_path):
    for grouped in (False, True):
        builder = Builder()
        builder.track(1, "T")
        slices = [(0, 10, "a"), (10, 20, "b"), (20, 30, "c")]
        edges = [edge for begin, end, name in slices for edge in ((BEGIN, begin, name), (END, end, ""))]
        if grouped:
            edges.sort(key=lambda edge: edge[0] == END)
        else:
            # a slice without a length, in one that goes on
            edges[1:1] = [(BEGIN, 5, "z"), (END, 5, "")]
        for kind, time, name in edges:
            builder.event(kind, 1, S + time, name)
        found = [each[2:] for each in events(opened(tmp_path, builder.bytes()))]
        assert found == slices if grouped else found == sorted([*slices, (5, 5, "z")])


def test_packets_in_packets(tmp_path):
    builder = Builder()
    builder.track(1, "T")
    builder.slice(1, S, S + 10, "packed")
    inner = builder.bytes()
    trace = pb.Trace()
    trace.packet.add(trusted_packet_sequence_id=1).compressed_packets = zlib.compress(inner)
    trace.packet.add(trusted_packet_sequence_id=1).compressed_packets = b"no zlib"
    # one that is damaged, and one that is packed again, with another behind each
    damaged = message(1, message(11, b"\x48\x01" + message(4, message(3, b"%"))))
    twice = message(1, message(50, zlib.compress(inner)))
    trace.packet.add().compressed_packets = zlib.compress(damaged + inner + twice + inner)
    profile = opened(tmp_path, trace.SerializeToString())
    assert [name for *_, name in events(profile)] == ["packed"] * 3
    assert told(profile)["Packets that cannot be decoded."] == 3


def test_packets_that_are_not_followed_are_counted(tmp_path):
    builder = Builder()
    builder.track(1, "T")
    builder.slice(1, S, S + 10, "e")
    for _ in range(3):
        builder.packet().ftrace_events.cpu = 1
    builder.packet().for_testing.SetInParent()
    found = told(opened(tmp_path, builder.bytes()))
    assert found["Packets with events of the kernel (ftrace)."] == 3
    assert found["Packets with data of field 900."] == 1


def test_a_trace_without_events_is_refused_with_what_it_holds(tmp_path):
    builder = Builder()
    builder.packet().ftrace_events.cpu = 1
    with pytest.raises(UnreadableError) as refusal:
        opened(tmp_path, builder.bytes())
    assert "without track events" in refusal.value.message
    assert "Packets with events of the kernel (ftrace). They are not followed." in refusal.value.hint


def test_a_trace_of_any_program(tmp_path):
    profile = opened(tmp_path, program_trace())
    assert [group.label for group in profile.groups] == ["some", "server 12", "Global tracks"]
    assert {lane.label: len(lane) for lane in profile.lanes} == {
        "worker 2 13": 60, "worker 3 14": 60, "queue": 60, "fan": 60
    }  # fmt: skip
    assert len(links_of(profile)) == 60
    (counter,) = profile.counters
    assert (counter.name, counter.unit, len(counter.values)) == ("memory", "B", 60)


def test_the_sample_is_what_its_program_writes():
    kept = SAMPLES / "torch_perfetto" / "rank0.pftrace.gz"
    assert gzip.decompress(kept.read_bytes()) == gzip.decompress(sample())


def test_a_folder_of_traces_is_one_profile_but_an_export_beside_json_is_not_read(tmp_path):
    for rank in range(2):
        (tmp_path / f"rank{rank}.pftrace").write_bytes(torch_trace(cuda_events()))
    assert [worker.rank for worker in open_profile(tmp_path).workers] == [0, 1]
    (tmp_path / "some.pt.trace.json").write_text(json.dumps({"traceEvents": cuda_events()}))
    assert [worker.files for worker in open_profile(tmp_path).workers] == [("some.pt.trace.json",)]


# -- damaged ones -------------------------------------------------------------


def slices_of(count: int) -> Builder:
    builder = Builder()
    builder.track(1, "T")
    for number in range(count):
        builder.slice(1, S + 20 * number, S + 20 * number + 10, f"e{number % 7}", number=number)
    return builder


def test_a_trace_that_is_cut_anywhere_gives_what_is_before(tmp_path):
    data = slices_of(20).bytes()
    sizes = set()
    for size in range(60, len(data), 7):
        try:
            profile = opened(tmp_path, data[:size])
        except UnreadableError:
            continue
        sizes.add(len(events(profile)))
        assert profile.problems or size == len(data)
    assert {1, 5, 19} <= sizes


@pytest.mark.parametrize("packing", [gzip.compress, bytes], ids=["gzip", "plain"])
def test_a_packed_trace_and_a_name_that_says_nothing(tmp_path, packing):
    for name in ("some.pb", "some.perfetto-trace.gz", "trace"):
        assert len(events(opened(tmp_path, packing(slices_of(50).bytes()), name))) == 50


def test_zstd(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    assert len(events(opened(tmp_path, zstandard.compress(slices_of(50).bytes()), "some.pftrace.zst"))) == 50
    trace = pb.Trace()
    trace.packet.add().zstd_compressed_packets = zstandard.compress(slices_of(20).bytes())
    assert len(events(opened(tmp_path, trace.SerializeToString()))) == 20


@pytest.mark.parametrize("rest", [b"{}", b"\x12\x02\x08\x01", b"\n" + b"\xff" * 11, b"\n" + varint(1 << 40), b"\0" * 9])
def test_what_is_no_packet_ends_the_trace(tmp_path, rest):
    data = slices_of(5).bytes()
    profile = opened(tmp_path, data + rest)
    assert len(events(profile)) == 5
    (problem,) = (each for each in profile.problems if each.severity is Severity.ERROR)
    assert problem.offset == len(data)


@pytest.mark.parametrize("content", [
    b"\x5a\x7f\x01", b"\x5a\x02\x08\xff", b"\x58\x01", b"\x40" + b"\xff" * 10 + b"\x01", b"\x5b",
    message(11, b"\x48\x01\x20\x05"), message(12, message(2, b"\x08")), message(60, message(4, b"\xff")),
    message(6, message(1, b"\x10")), message(53, message(6, b"\x0a\xff")),
    message(11, b"\x48\x01" + message(4, b"\x0a\x05a")), message(59, b"\x58\x07"),
    message(11, b"\x48\x01" + message(4, message(3, b"%"))),
])  # fmt: skip
def test_packets_that_are_none_are_left_out_and_told(tmp_path, content):
    profile = opened(tmp_path, slices_of(5).bytes() + message(1, content) + slices_of(6).bytes())
    assert sum(name.startswith("e") for *_, name in events(profile)) == 11
    assert told(profile)["Packets that cannot be decoded."] >= 1


def test_nested_values_and_tracks_that_go_round(tmp_path):
    builder = Builder()
    builder.track(1, "T", 2)
    builder.track(2, "U", 1)
    note = builder.slice(1, S, S + 10, "e").debug_annotations.add(name="deep")
    for _ in range(60):
        note = note.array_values.add()
    note.int_value = 1
    profile = opened(tmp_path, builder.bytes())
    (lane,) = profile.lanes
    assert str(lane.arguments(0)["deep"]).count("[") == 32


def test_names_of_any_characters(tmp_path):
    builder = Builder()
    builder.track(1, "T[bold]\x1b[31m")
    name = 'a\x00"\\\x07\u202e[red]'
    builder.slice(1, S, S + 10, name, key="</script>\n")
    data = builder.bytes().replace(b"a\x00", b"\xff\x00")
    profile = opened(tmp_path, data)
    assert profile.lanes[0].arguments(0) == {"key": "</script>\n"}
    assert len(events(profile)) == 1


def test_times_out_of_range(tmp_path):
    builder = slices_of(2)
    for time in (2**64 - 1, 2**62):
        builder.event(INSTANT, 1, time, "late")
    profile = opened(tmp_path, builder.bytes())
    assert len(events(profile)) == 2
    assert told(profile)["Packets that cannot be decoded."] == 2


def test_texts_that_unpack_to_much_more_than_the_file(tmp_path):
    # packets of a few bytes, each with a long name, which is there once; and a packet with a long text many times
    builder = Builder()
    builder.track(1, "T")
    builder.iid("event_names", "n" * 100_000)
    for number in range(2000):
        event = builder.packet(S + number).track_event
        event.type, event.track_uuid, event.name_iid = INSTANT, 1, 1
    tracemalloc.start()
    assert len(opened(tmp_path, builder.bytes()).lanes[0]) == 2000
    assert tracemalloc.get_traced_memory()[1] < 30 << 20
    tracemalloc.stop()
    builder = slices_of(3)
    iid = builder.iid("debug_annotation_string_values", "n" * 60_000, "str")
    event = builder.event(INSTANT, 1, S, "many")
    for _ in range(1000):
        event.debug_annotations.add(name="x", string_value_iid=iid)
    assert told(opened(tmp_path, builder.bytes()))["Events whose arguments are too long."] == 1


def test_packets_that_unpack_to_much_more_than_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(packets, "_MOST_UNPACKED", 1 << 16)
    builder = slices_of(3)
    inner = slices_of(20_000).bytes()
    builder.packet().compressed_packets = zlib.compress(inner)
    profile = opened(tmp_path, builder.bytes())
    assert 3 < len(events(profile)) < 5000
    assert told(profile)["Packed packets that are too long for the file."] == 1


def test_other_files_are_not_taken_for_traces():
    assert is_perfetto(slices_of(3).bytes())
    assert is_perfetto(slices_of(3000).bytes()[:4096])
    plane = message(1, b"\x08\x01" + message(2, b"/host:CPU") + message(3, b"\x08\x01"))
    for head in (
        b"",
        b"\n",
        b"\n\0",
        b'\n{"traceEvents": []}',
        b"\n# a text\n" * 9,
        plane,
        message(1, message(2, b"x")),
    ):
        assert not is_perfetto(head), head


@given(st.recursive(st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(), st.booleans()),
                    lambda inner: st.one_of(st.lists(inner, min_size=1), st.dictionaries(st.text(), inner, min_size=1)),
                    max_leaves=8))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_arguments_are_those_that_were_written(tmp_path_factory, value):
    builder = Builder()
    builder.track(1, "T")
    builder.slice(1, S, S + 10, "e", key=value)
    expected = json.loads(json.dumps(value), parse_constant=lambda _: None)
    assert opened(tmp_path_factory.mktemp("t"), builder.bytes()).lanes[0].arguments(0) == {"key": expected}


@given(st.lists(st.tuples(st.integers(1, 2**29 - 1), st.one_of(st.integers(0, 2**64 - 1), st.binary()), st.booleans())))
@settings(max_examples=200, deadline=None)
def test_fields_of_a_message(drawn):
    data = b"".join(
        message(number, value) if isinstance(value, bytes)
        else varint(number << 3 | 1) + value.to_bytes(8, "little") if fixed else varint(number << 3) + varint(value)
        for number, value, fixed in drawn
    )  # fmt: skip
    assert wire.fields(data) == [(number, value) for number, value, _ in drawn]
    # many at once
    some = wire.Data(data * 40)
    begin = np.arange(40) * len(data)
    found, damaged = some.fields(begin, begin + len(data))
    assert not damaged.any()
    for owner in (0, 39):
        rows = found[found.owner == owner]
        values = [data if at >= 0 else value & (1 << 64) - 1 for value, at, data in
                  zip(rows.value.tolist(), rows.at.tolist(), some.texts(rows), strict=True)]  # fmt: skip
        assert list(zip(rows.number.tolist(), values, strict=True)) == wire.fields(data)
    if data:
        assert some.fields(begin, begin + len(data) - 1)[1].all() or wire.fields(data[:-1])
    with pytest.raises(wire.DamagedError):
        wire.fields(data + b"\x0b")
