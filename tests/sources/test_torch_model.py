"""A PyTorch trace in the model: lanes, nesting, links, steps, counters and the figures of any profile."""

from __future__ import annotations

import csv
import gzip
import json
import re
import threading
from collections import defaultdict

import numpy as np
import pytest
from command_line import SAMPLES
from kept_traces import unpacked_trace
from screen import explorer, frame, opened, settled
from sections_here import by_several, in_process

from tpuprof_tui import open_profile, open_profiles
from tpuprof_tui.analysis.links.dependencies import dependencies_of
from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.figures import unit_figures
from tpuprof_tui.app.panes.detail import entries_of
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.export.job import Job, run_export
from tpuprof_tui.model import Activity, Role
from tpuprof_tui.sources.chrome import collector
from tpuprof_tui.sources.torch.read import parallel_reading
from tpuprof_tui.sources.torch.read.trace_reader import read_trace
from tpuprof_tui.views import summary_views as screen_views
from tpuprof_tui.views.info import info_record

#: Other tools hold microseconds since 1970 as floats, to 0.25 ns; of one kernel begin and end.
ROUNDING_NS = 61 * 0.5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return unpacked_trace("tl_bert_small_h100", tmp_path_factory.mktemp("traces"))


@pytest.fixture(scope="module")
def trace(folder):
    return open_profile(folder / "h100.pt.trace.json.gz")


@pytest.fixture(scope="module")
def oracle(folder):
    return lambda name: json.loads((folder / f"oracle_{name}.json").read_text())


@pytest.fixture(scope="module")
def table(folder):
    """Reads what TraceLens says."""

    def read(name: str) -> list[dict[str, str]]:
        with next(folder.glob(f"reference_tracelens/*/{name}.csv")).open(newline="") as stream:
            return list(csv.DictReader(stream))

    return read


def test_times_of_the_gpu(trace, table):
    wanted = {row["type"]: float(row["time ms"]) * 1e6 for row in table("gpu_timeline")}
    (stream,) = (lane for lane in trace.lanes if lane.kind == "stream")
    (unit,) = trace.units
    found = unit_figures(Session(trace), unit, int(stream["start"][0]), int(stream["end"].max()))
    times = {
        "computation_time": found.compute, "exposed_memcpy_time": found.exposed, "busy_time": found.busy,
        "exposed_comm_time": found.exposed_communication, "idle_time": found.idle, "total_time": found.window,
        "total_comm_time": found.communication, "total_memcpy_time": found.transfer,
    }  # fmt: skip
    for key, value in times.items():
        assert value == pytest.approx(wanted[key], abs=ROUNDING_NS), key
    assert found.compute == 307_197
    assert found.transfer == 2_240


def test_kernels_by_name(trace, table, oracle):
    wanted: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for row in table("kernel_summary"):
        wanted[row["Kernel name"]][0] += int(row["Kernel duration (µs)_count"])
        wanted[row["Kernel name"]][1] += float(row["Kernel duration (µs)_sum"])
    found: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    (stream,) = (lane for lane in trace.lanes if lane.kind == "stream")
    kernels = stream.activity_mask((Activity.COMPUTE,), slice(0, len(stream)))
    for code, lasted in zip(stream["name"][kernels].tolist(), (stream["end"] - stream["start"])[kernels], strict=True):
        found[trace.text("name", code)][0] += 1
        found[trace.text("name", code)][1] += lasted / 1000
    assert len(found) == oracle("hta")["gpu_kernel_breakdown"]["by_kernel_total"] - 1  # and the copy
    for name, (count, total) in wanted.items():
        assert found[name] == [count, pytest.approx(total)], name
    assert sum(count for count, _ in found.values()) == 60


def test_threads_streams_and_launches(trace, oracle):
    threads = {row[3]: row for row in oracle("perfetto")["threads"]["rows"]}
    lanes = {(lane.kind, lane.number): lane for lane in trace.lanes}
    assert set(lanes) == {("stream", 7), ("annotation", 7), ("thread", 0), ("thread", 19392), ("thread", -1)}
    assert len(lanes["stream", 7]) + len(lanes["annotation", 7]) == threads[7][4]
    assert len(lanes["thread", 0]) == threads[0][4]
    assert int(lanes["thread", 0]["depth"].max()) == threads[0][7]
    main = lanes["thread", 19392]
    assert int(main["depth"].max()) == threads[19392][7]
    inside = main["parent"] >= 0
    parent = main["parent"][inside]
    assert (main["depth"][inside] == main["depth"][parent] + 1).all()
    assert (main["start"][parent] <= main["start"][inside]).all()
    assert (main["end"][parent] >= main["end"][inside]).all()
    links = trace.links()
    launches = links.kind == links.kinds.index("launch")
    assert launches.sum() == oracle("perfetto")["flows"]["rows"][0][0] == 61
    starts = np.concatenate([lane["start"] for lane in trace.lanes])
    assert (starts[links.from_row] < starts[links.to_row])[launches].all()


def test_steps_and_counters(trace, oracle):
    (wanted,) = oracle("hta")["profiler_steps"]
    assert trace.steps.counts() == {f"ProfilerStep#{wanted}": 1}
    on_host, on_gpu = oracle("tb")["profiles"][0]["overview"]["exact_steps_us"]
    assert int(trace.steps.end[0] - trace.steps.start[0]) == pytest.approx(on_host["Total"] * 1000, abs=1)
    (annotation,) = (lane for lane in trace.lanes if lane.kind == "annotation")
    assert int(annotation["end"][0] - annotation["start"][0]) == pytest.approx(on_gpu["Total"] * 1000, abs=1)
    (stream,) = (lane for lane in trace.lanes if lane.kind == "stream")
    assert set(stream["step"].tolist()) == {wanted}, "all work of the GPU was launched in the step"
    allocated, reserved = (each for each in trace.counters if each.name.startswith("GPU0"))
    assert (allocated.name, allocated.unit) == ("GPU0 allocated", "B")
    assert len(allocated) == len(reserved) > 0
    assert (allocated.values <= reserved.values).all()


def test_host_and_annotations_count_in_no_figure(trace):
    found = query_of(trace).headline
    assert (found.event_count, len(found.units)) == (62, 1)
    assert found.units[0].busy == 307_197 + 2_240
    roles = {lane.kind: set(lane["role"].tolist()) for lane in trace.lanes}
    assert roles["annotation"] == {Role.ANNOTATION}
    assert roles["stream"] == {Role.WORK}
    record = info_record(trace)
    assert [(lane["engine"], lane["group"], lane["busy_ns"]) for lane in record["lanes"]] == [
        ("stream", "GPU 0", 307_197 + 2_240), ("annotation", "GPU 0", 0),
    ]  # fmt: skip
    assert record["steps"] == [{"name": "ProfilerStep#6", "count": 1}]
    assert {counter["name"] for counter in record["counters"]} >= {"GPU0 allocated", "GPU0 reserved"}


def test_detail_tells_what_an_event_lies_in_and_its_arguments(trace):
    session = Session(trace)
    number = next(number for number, lane in enumerate(trace.lanes) if lane.kind == "stream")
    found = list(entries_of(session, number, 0, dependencies_of(session)))
    chain = [each.text for each in found if each.label == "Started in"]
    assert chain[0].startswith("aten::")
    assert any("nn.Module: " in text for text in chain)
    told = {each.label: each.text for each in found if each.kind == "field"}
    assert told["registers per thread"].isdecimal()
    assert json.loads(told["block"]) == [128, 1, 1]
    thread = next(
        number for number, lane in enumerate(trace.lanes) if "parent" in lane and int(lane["depth"].max()) > 3
    )
    deepest = int(trace.lanes[thread]["depth"].argmax())
    inside = [each for each in entries_of(session, thread, deepest, None) if each.label == "Inside"]
    assert len(inside) == min(int(trace.lanes[thread]["depth"][deepest]), 24)


async def test_explorer(trace, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    async with opened(trace) as pilot:
        text = re.sub("[ │]+", " ", frame(pilot.app))
        assert "Step 4.426 ms Kernel 307.2 us, 6.9%" in text
        assert re.search(r"▾GPU 0 \S+ 7\.9% 309\.4us 62", text)


def test_commands_say_its_figures(folder, capsys):
    path = str(folder / "h100.pt.trace.json.gz")
    assert main(["info", path, "--why"]) == 0
    assert "It is opened as a PyTorch trace." in capsys.readouterr().out
    assert main(["summary", path]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    # busy, compute, transfer (ns), overlap, exposed, wait, idle
    assert "GPU 0 7.9% 309.437 307.197 2,240 0.000 2,240 0.000 3,598.390" in lines
    assert main(["instructions", path, "--engine", "stream", "--filter", "type=gpu_memcpy"]) == 0
    (copied,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (copied["duration"], copied["step"]) == (2_240, 6)


async def figures_without(pilot, view):
    """Whether a view is not computed when the first one that takes long has been."""
    answers = explorer(pilot).panes.summary.answers
    for _ in range(1000):
        if "overview" in answers.by_view:
            return view not in answers.by_view
        await pilot.pause(0.01)
    return False


async def test_ranks_are_shown_as_they_arrive(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(parallel_reading, "_PATIENCE", -1)
    for rank in range(3):
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": rank, "dur": 5}
        text = json.dumps({"traceEvents": [event], "distributedInfo": {"rank": rank, "world_size": 3}})
        (tmp_path / f"host_{rank}.pt.trace.json").write_text(text)
    go = threading.Event()
    read = parallel_reading.read_trace

    def slowly(path, *more, **how):
        assert not path.name.startswith("host_1") or go.wait(20)
        return read(path, *more, **how)

    monkeypatch.setattr(parallel_reading, "read_trace", slowly)
    app = TpuprofApp(path=str(tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        for _ in range(1000):
            if "1 of 3 traces are read" in frame(app):
                break
            await pilot.pause(0.01)
        assert len(explorer(pilot).session.profile.workers) == 1
        assert [each.what for each in explorer(pilot).session.profile.problems] == ["1 of 3 traces are read."]
        # what takes long waits until all have been read
        assert await figures_without(pilot, "operators")
        go.set()
        await settled(pilot)
        assert len(explorer(pilot).session.profile.workers) == 3
        assert not explorer(pilot).session.profile.more_follows
        assert "operators" in explorer(pilot).panes.summary.answers.by_view
        assert not explorer(pilot).session.profile.problems


async def test_what_takes_long_of_many_ranks_waits_until_its_view_or_a_rank_is_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(screen_views, "_MOST_WORKERS", 1)
    for rank in range(2):
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": rank, "dur": 5}
        (tmp_path / f"host_{rank}.pt.trace.json").write_text(json.dumps({"traceEvents": [event]}))
    app = TpuprofApp(path=str(tmp_path), options={"recordings": "*"})
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        summary = explorer(pilot).panes.summary
        assert summary.answers.by_view["operators"] is screen_views.DEFERRED
        assert len(summary.answers.by_view["overview"].table("workers")) == 2
        summary.choose("operators")
        await settled(pilot)
        assert summary.answers.by_view["operators"].table("by_name").column("worker") == ["host_0", "host_1"]
        session = explorer(pilot).session
    one = Query(session, scope=Scope(session.profile.workers[1].group))
    told = dict(screen_views.slow_views(one))
    assert list(told)[:2] == ["overview", "findings"]
    assert told["operators"].table("by_name").column("name") == ["aten::mm"]


def test_a_few_operators_were_given_the_same_as_among_all(folder):
    trace = read_trace(folder / "h100.pt.trace.json.gz")
    rows = trace.operator_rows[7:400:9][::-1]
    assert len(rows) * 8 < len(trace.operator_rows)
    alone, texts = trace.details("operators", rows)
    given = [texts[code] for code in alone["shapes"].tolist()]
    assert len(set(given)) > 3
    assert trace.details("operators")
    among, texts = trace.details("operators", rows)
    assert given == [texts[code] for code in among["shapes"].tolist()]


def test_labels_that_are_no_utf_8_are_written_to_traces(tmp_path):
    events = [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 7, "tid": "x\udc91", "ts": ts, "dur": 5}
              for ts in range(3)]  # fmt: skip
    (tmp_path / "a.pt.trace.json").write_text(json.dumps({"traceEvents": events}))
    profile = open_profile(tmp_path / "a.pt.trace.json")
    (written,) = run_export(Job(tmp_path / "out", frozenset({"pftrace"}), query_of(profile)))
    assert written.size


@pytest.mark.parametrize("processes", [1, 2])
def test_profiles_that_are_opened_together_are_those_that_are_opened_alone(monkeypatch, processes):
    monkeypatch.setattr(parallel_reading, "_WORTH_IT", 1)
    monkeypatch.setattr(parallel_reading, "cpu_count", lambda: processes)
    run, one = SAMPLES / "torch_cuda_synthetic", SAMPLES / "torch_cpu_recorded"
    together = open_profiles([run, one / "worker0.pt.trace.json.gz"])
    for profile, alone in zip(together, (open_profile(run), open_profile(one)), strict=True):
        assert [len(lane) for lane in profile.lanes] == [len(lane) for lane in alone.lanes]
        assert list(profile.strings["name"]) == list(alone.strings["name"])
        for lane, other in zip(profile.lanes, alone.lanes, strict=True):
            assert np.array_equal(lane["start"], other["start"])
        assert not profile.problems


@pytest.mark.parametrize(("cores", "begun"), [(8, [4, 4]), (2, [])])
def test_few_large_ranks_are_read_in_turn_each_in_sections(tmp_path, monkeypatch, cores, begun):
    for path in sorted((SAMPLES / "torch_cuda_synthetic").glob("*.json.gz")):
        (tmp_path / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    alone = open_profile(tmp_path)
    started = []

    def counted(count):
        started.append(count + 1)
        return in_process(count)

    by_several(monkeypatch, counted, cores)
    for module, name, value in (
        (parallel_reading, "_WORTH_IT", 1), (parallel_reading, "cpu_count", lambda: cores),
        (collector, "_MOST", 4 if cores > 2 else 1),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    profile = open_profile(tmp_path)
    assert started == begun
    assert [len(lane) for lane in profile.lanes] == [len(lane) for lane in alone.lanes]
    for lane, other in zip(profile.lanes, alone.lanes, strict=True):
        assert np.array_equal(lane["start"], other["start"])
    assert not profile.problems


def test_of_profiles_that_are_opened_together_each_is_of_its_own_source():
    paths = [SAMPLES / "aks_decode_mode0", SAMPLES / "torch_cpu_recorded"]
    assert [profile.path for profile in open_profiles(paths)] == [open_profile(path).path for path in paths]
    with pytest.raises(UnreadableError, match="nothing_there"):
        open_profiles([paths[1], paths[1] / "nothing_there"])
