"""Columns of PyTorch events against what one finds in the file event by event."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch_trace
from command_line import SAMPLES

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.cli.main import main
from tpuprof_tui.model import INT_MISSING, is_missing

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    (path,) = torch_trace.write_run(folder, ranks=1, steps=2, layers=2, packed=False)
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    return open_profile(path), events


def around(events: list[dict], inner: dict) -> list[dict]:
    """Events that an event is in, itself included, the innermost first."""
    return sorted((event for event in events if event["tid"] == inner["tid"] and event["pid"] == inner["pid"]
                   and event["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= event["ts"] + event["dur"]),
                  key=lambda event: event["dur"])  # fmt: skip


def wanted(events: list[dict], event: dict) -> dict[str, object]:
    """The columns of an event, looked for one event after the other."""
    call, operator, origin = None, None, event
    if event["cat"] in DEVICE:
        call = next(each for each in events if each["cat"] in CALLS
                    and each["args"]["correlation"] == event["args"]["correlation"])  # fmt: skip
    if (call or event)["cat"] in CALLS:
        number = (call or event)["args"]["External id"]
        operator = next(each for each in events if each["cat"] in ("cpu_op", "user_annotation")
                        and each["args"].get("External id") == number)  # fmt: skip
    elif event["cat"] == "cpu_op" and not event["name"].startswith("Optimizer."):
        operator = event
    if call is not None:
        origin = operator or call
    outer = around(events, origin)
    modules = [each for each in outer if each["name"].startswith("nn.Module: ")]
    frames = [each for each in outer if each["cat"] == "python_function" and each not in modules]
    stated = (operator or event).get("args", {}) if operator or event["cat"] in ("cpu_op", "user_annotation") else {}
    kernel = event["args"] if event["cat"] == "kernel" else {}
    end = None if call is None else call["ts"] + call["dur"]
    return {
        "operator": operator and operator["name"], "module": modules[0]["name"][11:] if modules else None,
        "frame": frames[0]["name"] if frames else None,
        "shapes": compact(stated.get("Input Dims")), "input_types": compact(stated.get("Input type")),
        "registers": kernel.get("registers per thread"), "shared_memory": kernel.get("shared memory"),
        "delay": None if end is None else max(round((event["ts"] - end) * 1000), 0),
    }  # fmt: skip


def compact(value: object) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"))


def test_columns_are_what_one_finds_event_by_event(run):
    profile, events = run
    seen = dict.fromkeys(("operator", "module", "frame", "shapes", "input_types", "registers", "delay"), 0)
    for lane in profile.lanes:
        columns = {key: lane[key] for key in wanted(events, events[0]) if key in lane}
        for row, place in enumerate(lane["order"].tolist()):
            expected = wanted(events, events[place])
            for key, values in columns.items():
                value = values[row].item()
                if key in profile.strings:
                    value = profile.strings[key][value] if value >= 0 else None
                elif value == INT_MISSING:
                    value = None
                if key == "delay" and value is not None:
                    assert abs(value - expected[key]) <= 1
                else:
                    assert value == expected[key], (key, events[place])
                if key in seen and value is not None:
                    seen[key] += 1
    assert min(seen.values()) > 10, seen


def test_a_few_rows_read_again_are_the_same_as_all(run):
    profile, _ = run
    for lane in profile.lanes:
        for key in ("shapes", "input_types", "operator", "module", "frame", "delay"):
            if key in lane:
                rows = np.arange(len(lane))[::-7]
                assert lane.take(key, rows).tolist() == lane[key][rows].tolist()


def test_places_are_numbers_of_lanes(run):
    profile, _ = run
    for lane in profile.lanes:
        key = "thread" if lane.kind == "thread" else "stream"
        assert set(lane[key].tolist()) == {lane.number}
        assert set(lane["rank"].tolist()) == {0}


def rows_of(capsys, *arguments: str) -> list[dict]:
    assert main(["instructions", str(SAMPLES / "torch_cuda_synthetic"), *arguments, "--format", "jsonl"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_filters_and_tables_have_the_columns(capsys):
    columns = ("--columns", "name,operator,stream,shapes,rank,module")
    every = rows_of(capsys, *columns)
    found = rows_of(capsys, "--filter", "stream=7 operator~addmm module=Linear_0", *columns)
    assert found == [row for row in every if row["stream"] == 7 and "addmm" in (row["operator"] or "")
                     and row["module"] == "Linear_0"]  # fmt: skip
    assert len(found) > 1
    assert {row["rank"] for row in found} == {0, 1}
    condition = text_condition("shapes", "[[3072],[4096,1024],[1024,3072]]")
    by_shape = rows_of(capsys, "--filter", condition, *columns)
    assert by_shape == [row for row in every if row["shapes"] == "[[3072],[4096,1024],[1024,3072]]"]
    assert len(by_shape) > len(found)


def test_data_frames_have_the_columns():
    pandas = pytest.importorskip("pandas")
    profile = open_profile(SAMPLES / "torch_cuda_synthetic")
    lane = next(lane for lane in profile.lanes if lane.kind == "stream")
    frame = lane.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["operator"].tolist()[3] == "aten::addmm"
    assert frame["shapes"].notna().sum() == (~is_missing(lane["shapes"])).sum() > 10
