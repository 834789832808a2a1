"""Whether the model holds an Ascend profile: figures of a slow reader are those that the exporter and tools give."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from kept_traces import unpacked_trace
from screen import frame, opened, press
from slow_ascend import OUTPUT, read_csv, read_ranks
from web_reading import page_of
from work_rows import top

from tpuprof_tui.analysis.index.unit_index import build_indexes
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.totals.figures import unit_figures
from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import INT_MISSING, Activity, Role, is_missing
from tpuprof_tui.sources.catalog import Catalog, open_profile
from tpuprof_tui.views import ask
from tpuprof_tui.views.info import info_record

NAME = "ascend_level1_text"
#: The profile as it was published, where it is at hand: what is kept is a part of it.
_PLACES = (up / "shared" / "traces" / NAME for up in Path(__file__).resolve().parents)
PUBLISHED = next((place for place in _PLACES if place.is_dir()), None)
RANKS = (0, 1)
#: The exporter's digits are finer than ns: each time is rounded here, and in some tables of the exporter's as well.
ROUNDING_NS = 0.5


@pytest.fixture(scope="module", params=["kept", "published"])
def folder(request, tmp_path_factory):
    if request.param == "published":
        if PUBLISHED is None:
            pytest.skip(f"{NAME} is not there")
        return PUBLISHED
    return unpacked_trace(NAME, tmp_path_factory.mktemp("traces"))


@pytest.fixture(scope="module")
def profile(folder):
    return read_ranks(folder)


@pytest.fixture(scope="module")
def written(folder):
    """Reads a table of the exporter's: rank and name of the file to rows."""
    return lambda rank, name: read_csv(folder / f"rank{rank}_ascend_pt" / OUTPUT / name)


def ns(us: str) -> float:
    return float(Decimal(us) * 1000)


def lanes_of(profile, rank: int, kind: str):
    top = next(place for place, group in enumerate(profile.groups) if (group.kind, group.number) == ("rank", rank))
    return [lane for lane in profile.lanes_of(top) if lane.kind == kind]


def kernels_of(profile, rank: int):
    """Name, type, core, start and end of each kernel and operator of a collective."""
    for lane in [*lanes_of(profile, rank, "stream"), *lanes_of(profile, rank, "communication")]:
        for row in np.flatnonzero(~is_missing(lane["waited"])).tolist():
            core = profile.text("accelerator", lane["accelerator"][row]) if "accelerator" in lane else "HCCL"
            yield (profile.text("name", lane["name"][row]), profile.text("type", lane["type"][row]), core,
                   int(lane["start"][row]), int(lane["end"][row]))  # fmt: skip


@pytest.mark.parametrize("rank", RANKS)
def test_times_of_a_step_are_those_of_the_exporter(profile, written, rank):
    (wanted,) = written(rank, "step_trace_time.csv")
    kernels = sorted(kernels_of(profile, rank), key=lambda each: each[3])
    first, last = kernels[0][3], max(each[4] for each in kernels)
    unit = profile.groups.numbered(rank)
    found = unit_figures(Session(profile), unit, first, last)
    (step,) = (place for place, group in enumerate(profile.steps.group) if profile.groups[group].number == rank)
    free = found.window - found.compute - found.exposed_communication
    times = {
        "Computing": found.compute, "Communication": found.communication, "Free": free,
        "Communication(Not Overlapped)": found.exposed_communication,
        "Overlapped": found.communication - found.exposed_communication,
    }  # fmt: skip
    for key, value in times.items():
        assert value == pytest.approx(ns(wanted[key]), abs=2 * ROUNDING_NS * len(kernels)), key
    # these were subtracted as binary floats of 1.7e15 us
    assert found.window == pytest.approx(ns(wanted["Stage"]), abs=260)
    assert first - int(profile.steps.start[step]) == pytest.approx(ns(wanted["Preparing"]), abs=260)
    # copies are neither, and lie in what the exporter calls free
    assert found.transfer > 0
    assert found.busy == found.compute + found.exposed_communication + found.exposed


@pytest.mark.parametrize("rank", RANKS)
def test_kernels_are_those_of_the_table(profile, written, rank):
    rows = written(rank, "kernel_details.csv")
    found = list(kernels_of(profile, rank))
    assert len(found) == len(rows) == 191
    assert sorted(each[:3] for each in found) == sorted(
        (row["Name"], row["Type"], row["Accelerator Core"]) for row in rows
    )
    kernels = [row for row in rows if row["Accelerator Core"] != "HCCL"]
    lasted = sum(end - start for _, _, core, start, end in found if core != "HCCL")
    assert lasted == pytest.approx(sum(ns(row["Duration(us)"]) for row in kernels), abs=2 * ROUNDING_NS * len(kernels))
    by_type: dict[tuple[str, str], list[int]] = defaultdict(list)
    for _, kind, core, start, end in found:
        by_type[kind, core].append(end - start)
    wanted = written(rank, "op_statistic.csv")
    assert len(by_type) == len(wanted) + 1  # collectives are not in it
    for row in wanted:
        lasted = by_type[row["OP Type"], row["Core Type"]]
        assert len(lasted) == int(row["Count"])
        assert min(lasted) == pytest.approx(ns(row["Min Time(us)"]), abs=2 * ROUNDING_NS)
        assert max(lasted) == pytest.approx(ns(row["Max Time(us)"]), abs=2 * ROUNDING_NS)
        assert sum(lasted) == pytest.approx(ns(row["Total Time(us)"]), abs=2 * ROUNDING_NS * len(lasted))


@pytest.mark.parametrize("rank", RANKS)
def test_a_step_has_the_work_that_was_launched_in_it(profile, written, rank):
    assert profile.steps.counts() == {"ProfilerStep#50": 2}
    told = {row["Step Id"] for row in written(rank, "kernel_details.csv")}
    assert told == {row["Step"] for row in written(rank, "step_trace_time.csv")} == {"50"}
    for lane in [*lanes_of(profile, rank, "stream"), *lanes_of(profile, rank, "communication")]:
        assert set(lane["step"][~is_missing(lane["waited"])].tolist()) <= {50}
        # what waits for events, and what the profiler does itself, no operator has launched
        assert set(lane["step"].tolist()) <= {50, INT_MISSING}


def test_work_that_runs_in_the_next_step_belongs_to_the_one_that_launched_it(tmp_path):
    output = tmp_path / "rank3_ascend_pt" / OUTPUT
    output.mkdir(parents=True)
    (output.parent / "profiler_info_3.json").write_text("{}")
    (output / "kernel_details.csv").write_text("Name,Type,Accelerator Core,Start Time(us),Wait Time(us),Block Dim\n")
    host, device = {"pid": 7, "tid": 7}, {"pid": 9, "tid": 2}
    events = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
              for pid, name in ((7, "Python"), (9, "Ascend Hardware"))]  # fmt: skip
    for step in range(2):
        name, begin = f"ProfilerStep#{step}", f"{step * 100}.000"
        events.append({"ph": "X", "cat": "cpu_op", "name": name, "ts": begin, "dur": 100, **host})
        for place in range(2):
            called, id_ = step * 100 + 20 + 40 * place, 2 * step + place
            begin, flow = f"{called + 70}.001", {"name": "torch_to_npu", "cat": "async_npu", "id": id_}
            events += [
                {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": f"{called}.000", "dur": 10.5, **host},
                {"ph": "s", "ts": f"{called}.250", **flow, **host},
                # the device lags the host by 70 us
                {"ph": "f", "ts": begin, **flow, **device},
                {"ph": "X", "name": "mm", "ts": begin, "dur": 30, "args": {"Task Type": "AI_CORE", "connection_id": 0},
                 **device},
            ]  # fmt: skip
    (output / "trace_view.json").write_text(json.dumps(events))
    profile = read_ranks(output.parent)
    stream, thread = profile.lanes
    steps = profile.steps
    assert stream["step"].tolist() == [0, 0, 1, 1]
    assert stream["start"][1] >= steps.start[1]
    assert stream["start"].tolist() == [90_001, 130_001, 190_001, 230_001]
    assert [(thread["depth"][row], thread["parent"][row]) for row in (0, 1, 2)] == [(0, -1), (1, 0), (1, 0)]
    links = profile.links()
    assert links.kinds[links.kind[0]] == "operator"
    assert (links.from_row - len(stream)).tolist() == [1, 2, 4, 5]
    assert links.to_row.tolist() == [0, 1, 2, 3]
    (output / "trace_view.json").write_text("[{")
    with pytest.raises(UnreadableError, match="not Ascend's"):
        read_ranks(output.parent)


@pytest.mark.parametrize("rank", RANKS)
def test_operators_have_the_time_of_what_they_launched(profile, written, rank):
    host, device = defaultdict(float), defaultdict(float)
    for row in written(rank, "operator_details.csv"):
        host[row["Name"]] += ns(row["Host Total Duration(us)"])
        device[row["Name"]] += ns(row["Device Self Duration(us)"])
    lasted: dict[str, int] = defaultdict(int)
    for lane in lanes_of(profile, rank, "python"):
        operators = [code for code, text in enumerate(profile.strings["type"]) if text == "cpu_op"]
        for row in np.flatnonzero(np.isin(lane["type"], operators)).tolist():
            lasted[profile.text("name", lane["name"][row])] += int(lane["end"][row] - lane["start"][row])
    steps = {name for name in lasted if name.startswith("ProfilerStep#")}
    assert {name: lasted[name] for name in lasted.keys() - steps} == pytest.approx(dict(host))
    links = profile.links()
    names, starts, ends = (np.concatenate([lane[key] for lane in profile.lanes]) for key in ("name", "start", "end"))
    units = np.concatenate([np.full(len(lane), profile.unit_of(lane)) for lane in profile.lanes])
    launched: dict[str, int] = defaultdict(int)
    tasks: dict[str, int] = defaultdict(int)
    mine = (links.kind == links.kinds.index("operator")) & (units[links.to_row] == profile.groups.numbered(rank))
    for above, below in zip(links.from_row[mine].tolist(), links.to_row[mine].tolist(), strict=True):
        launched[profile.text("name", names[above])] += int(ends[below] - starts[below])
        tasks[profile.text("name", names[above])] += 1
    assert len(host) == 133
    for name, value in device.items():
        assert launched[name] == pytest.approx(value, abs=ROUNDING_NS * tasks[name]), name
    assert launched.keys() <= device.keys()


@pytest.mark.parametrize("rank", RANKS)
def test_calls_of_cann(profile, written, rank):
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for lane in lanes_of(profile, rank, "cann"):
        names, levels = (profile.strings[key].texts(lane[key]) for key in ("name", "type"))
        for name, level, lasted in zip(names, levels, (lane["end"] - lane["start"]).tolist(), strict=True):
            found[level, name.partition("@")[2]].append(lasted)
    times = ("Time(us)", "Min(us)", "Max(us)")
    wanted = {(row["Level"], row["API Name"]): (int(row["Count"]), *(ns(row[key]) for key in times))
              for row in written(rank, "api_statistic.csv")}  # fmt: skip
    assert {key: (len(each), sum(each), min(each), max(each)) for key, each in found.items()} == wanted


def test_lanes_that_tell_the_parts_of_collectives_count_for_themselves_alone(profile):
    parts = [lane for lane in profile.lanes if not lane.counted]
    assert [(lane.kind, lane.label) for lane in parts] == 2 * [
        ("stream", "Stream 4"), *(("plane", f"Plane {number}") for number in range(8))
    ]  # fmt: skip
    for unit in profile.units:
        stream, *planes = (lane for lane in parts if lane.group == unit)
        counts = [[int((lane["role"] == role).sum()) for role in Role] for lane in (stream, *planes)]
        # the stream has records of events and waits for them besides
        assert counts[0] == np.add(np.sum(counts[1:], 0), (0, 4, 8, 0)).tolist()
        assert not (stream["activity"][stream["role"] == Role.WORK] != Activity.COMMUNICATION).any()
        indexes = build_indexes(profile)
        of_operators = indexes.by_unit[unit].communication
        (whole,) = (lane for lane in profile.lanes if lane.kind == "communication" and lane.group == unit)
        assert of_operators.total == int((whole["end"] - whole["start"]).sum())
        # operators hold all of their tasks, which would count once more in what is added up by name
        for part in (index for index in indexes if index.lane.group == unit and not index.lane.counted):
            assert of_operators.union_with(part.work).total == of_operators.total
    named = {row.label for row in top(profile, build_indexes(profile), 0, profile.end_ns, by="name", limit=None)}
    assert {"hcom_allReduce__586_0_1", "MEMCPY_ASYNC"} <= named
    assert not named & {"Memcpy", "Reduce_Inline", "SDMA"}


def test_lanes_and_groups(profile):
    assert [(group.label, group.kind, group.is_unit) for group in profile.groups] == [
        each for rank in RANKS
        for each in ((f"Rank {rank}", "rank", False), (f"NPU {rank}", "npu", True), ("Python", "layer", False),
                     ("CANN", "layer", False))
    ]  # fmt: skip
    found = query_of(profile).headline
    assert [unit.label for unit in found.units] == ["NPU 0", "NPU 1"]
    record = info_record(profile)
    assert {lane["group"] for lane in record["lanes"]} == {"NPU 0", "NPU 1"}
    assert record["steps"] == [{"name": "ProfilerStep#50", "count": 2}]
    assert all(profile.title_of(lane).startswith("Rank 1 CANN Thread ") for lane in lanes_of(profile, 1, "cann"))
    for lane in profile.lanes:
        rows = np.lexsort((lane["start"], lane["sublane"]))
        same = lane["sublane"][rows][1:] == lane["sublane"][rows][:-1]
        assert (lane["start"][rows][1:] >= lane["end"][rows][:-1])[same].all()


def test_counters(profile, written):
    for rank in RANKS:
        unit = profile.groups.numbered(rank)
        own = {each.name: each for each in profile.counters if each.group == unit}
        assert (own["NPU MEM: APP/HBM"].unit, own["AI Core Freq: AI Core Freq"].unit) == ("KB", "MHz")
        assert own["LLC: LLC 0 Read/Hit Rate"].unit == "%"
        records = [row for row in written(rank, "memory_record.csv") if row["Component"] == "APP"]
        peak = max(float(row["Total Reserved(MB)"]) for row in records)
        assert own["NPU MEM: APP/HBM"].values.max() == peak * 1024
        assert (np.diff(own["NPU MEM: APP/HBM"].times) > 0).all()


@pytest.mark.skipif(PUBLISHED is None, reason=f"{NAME} is not there")
def test_tracks_and_counters_of_what_was_published():
    assert PUBLISHED is not None
    profile = read_ranks(PUBLISHED)
    oracle = json.loads((PUBLISHED / "oracle_ascend.json").read_text())["files"]
    for rank in RANKS:
        told = oracle[f"rank{rank}_ascend_pt/{OUTPUT}/trace_view.json"]
        unit = profile.groups.numbered(rank)
        lanes = [lane for kind in profile.vocabulary.lane_kinds for lane in lanes_of(profile, rank, kind.key)]
        layers = {"stream": "Ascend Hardware", "python": "Python", "cann": "CANN"}
        found = {(layers.get(lane.kind, "HCCL"), lane.label): (len(lane), int((lane["end"] - lane["start"]).sum()))
                 for lane in lanes}  # fmt: skip
        tracks = [each for each in told["tracks"] if each["process"] != "Overlap Analysis"]
        wanted = {(each["process"], each["thread"]): (each["slices"], 1000 * each["total_us"]) for each in tracks}
        assert found.keys() == wanted.keys()
        for track, (count, total) in wanted.items():
            assert found[track] == (count, pytest.approx(total, abs=ROUNDING_NS * count)), track
        samples: dict[str, int] = defaultdict(int)
        for each in profile.counters:
            if each.group == unit:
                # an accelerator's number stands behind the name
                samples[re.sub(r"^(Acc PMU.*) \d+$", r"\1", each.name.replace(": ", " / "))] += len(each)
        assert samples == told["counters"]


# -- through the catalog, which opens it with the source of the package: what was read slowly holds there too


@pytest.fixture
def kept(tmp_path):
    return unpacked_trace(NAME, tmp_path)


def test_commands_say_its_figures(kept, capsys):
    assert main(["info", str(kept), "--why"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"  ascend +yes, by name: it holds api_statistic.csv and 1 more rank", told)
    assert list(Catalog().find(kept.parent)) == [kept]
    assert len(Catalog().files(kept)) == 2 * 8
    assert main(["summary", str(kept), "--limit", "100"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    # busy, compute, transfer, communication and the exposed part of it, overlap, exposed transfer, wait, idle
    for row in ("NPU 0 62.5% 111.690 8,873.734 878.857 105.992 101.963 4,028.671 853.137 256.965 66.776",
                "NPU 1 59.6% 106.523 8,878.271 1,310.125 100.375 96.359 4,016.227 1,285.385 281.627 71.919",
                "Communication 8 57.7% 206.367 0.000 0.000 151.080 - -"):  # fmt: skip
        assert row in lines
    assert "67.4% 152.565 2 76.282 79.090 hcom_allReduce__586_0_1" in lines
    assert main(["info", str(kept), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["cores"], record["total_ns"]) == ([0, 1], 178_723_535)
    assert main(["instructions", str(kept), "--engine", "stream", "--core", "1", "--filter", "type=TransData"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (len(rows), sum(row["duration"] for row in rows)) == (57, pytest.approx(1_416_008, abs=57 * ROUNDING_NS))


async def test_explorer_and_page(kept, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    profile = open_profile(kept)
    page = page_of(query_of(profile), tmp_path)
    lane = page.lane("NPU 1 Group 0 Communication")
    assert (lane["busy"], lane["count"]) == (100_375_286, 4)
    async with opened(profile, (200, 60)) as pilot:
        lines = [" ".join(line.replace("│", " ").split()) for line in frame(pilot.app).splitlines()]
        text = "\n".join(lines)
        assert "total 178.7 ms busiest NPU 0 62.5% idlest NPU 1 59.6%" in lines[0]
        for node in (
            r"▸Rank 1 \S+ 59\.6% 106\.5ms 1,217 ",
            r"Group 0 Communication 59\.3% ",
            r"Communication\(Not Overlapped\) 57\.1% ",
            r"Free 14\.4% ",
        ):
            assert re.search(node, text), node
        units = ask(profile, "units").table("units")
        keys = ("compute_us", "transfer_us", "communication_us", "exposed_us", "exposed_communication_us")
        assert [round(units.column(key)[1] / 1e6, 3) for key in keys] == [8.878, 1.31, 100.375, 1.285, 96.359]
        await press(pilot, "2")
        assert "PROFILING_ENABLE" in frame(pilot.app)
