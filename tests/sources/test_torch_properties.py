"""What must hold of any PyTorch trace: parts add up, unions are within sums, lines and links are within the trace."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.model import Profile
from tpuprof_tui.sources.torch.views.overview import PARTS
from tpuprof_tui.views.registry import views_of
from tpuprof_tui.views.report import report_record, workers_of

#: Start and length, us, in thousandths; they nest, touch and overlap.
SPANS = st.tuples(st.integers(0, 60_000), st.integers(0, 30_000))
HOST = ("aten::mm", "aten::add", "autograd::engine::evaluate_function: MmBackward0", "nccl:all_reduce")
DEVICE = (("kernel", "gemm"), ("kernel", "hmma"), ("kernel", "ncclDevKernel_AllReduce"), ("gpu_memcpy", "Memcpy HtoD"),
          ("gpu_memset", "Memset"))  # fmt: skip
NUMBER = st.integers(1, 6)
TRACES = st.fixed_dictionaries({
    "operators": st.lists(st.tuples(SPANS, st.sampled_from(HOST), st.integers(1, 2)), max_size=12),
    "calls": st.lists(st.tuples(SPANS, NUMBER, st.integers(1, 2)), max_size=8),
    "work": st.lists(st.tuples(SPANS, st.sampled_from(DEVICE), NUMBER, st.sampled_from([7, 13])), max_size=14),
    "steps": st.lists(st.integers(1, 20_000), max_size=3),
    "memory": st.lists(st.tuples(st.integers(0, 60_000), st.integers(-64, 64), st.integers(1, 3)), max_size=6),
})  # fmt: skip


def events_of(drawn: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a trace, as they are written."""
    found: list[dict[str, Any]] = []

    def add(category: str, name: str, span: tuple[int, int], thread: int, pid: int, **args: Any) -> None:
        found.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": thread, "ts": 100 + span[0] / 1000,
                      "dur": span[1] / 1000, "args": args})  # fmt: skip

    for place, (span, name, thread) in enumerate(drawn["operators"]):
        category = "user_annotation" if name.startswith("nccl:") else "cpu_op"
        add(category, name, span, thread, 9, **{"External id": 100 + place, "Input Dims": [[place % 2]]})
    for span, number, thread in drawn["calls"]:
        add("cuda_runtime", "cudaLaunchKernel", span, thread, 9, correlation=number)
    for span, (category, name), number, stream in drawn["work"]:
        add(category, name, span, stream, 0, correlation=number, device=0, stream=stream)
    start = 0
    for place, length in enumerate(drawn["steps"]):
        add("user_annotation", f"ProfilerStep#{place}", (start, length), 1, 9)
        start += length
    found += [{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 9, "tid": 1, "ts": 100 + time / 1000,
               "args": {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size, "Total Allocated": 9,
                        "Total Reserved": 9}} for time, size, address in drawn["memory"]]  # fmt: skip
    return found


def rows(views: dict[str, Any], view: str, table: str) -> list[dict[str, Any]]:
    (worker,) = views[view]["workers"].values()
    told = worker["tables"].get(table, {"columns": [], "rows": []})
    keys = [column if isinstance(column, str) else column["key"] for column in told["columns"]]
    return [dict(zip(keys, row, strict=True)) for row in told["rows"]]


def near(one: float, other: float) -> bool:
    return abs(one - other) < 1e-6 * max(1, abs(one))


def check_lines_and_links(profile: Profile, events: int) -> None:
    assert sum(map(len, profile.lanes)) == events
    for lane in profile.lanes:
        for sublane in np.unique(lane["sublane"]):
            mine = np.flatnonzero(lane["sublane"] == sublane)
            assert (lane["start"][mine[1:]] >= lane["end"][mine[:-1]]).all()
    links = profile.links()
    for ends in (links.from_row, links.to_row):
        assert ((ends >= 0) & (ends < events)).all()


@given(drawn=TRACES)
def test_what_must_hold_of_any_trace(tmp_path_factory, drawn):
    events = events_of(drawn)
    if not any(event["ph"] == "X" for event in events):
        return
    path = tmp_path_factory.mktemp("any") / "any.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    profile = open_profile(path)
    check_lines_and_links(profile, sum(event["ph"] == "X" for event in events))
    found = report_record(Query(Session(profile)), views_of(profile.vocabulary), workers_of(profile))
    views = found["views"]

    def figures(view: str) -> dict[str, Any]:
        (worker,) = views[view]["workers"].values()
        return worker["figures"]

    for step in rows(views, "overview", "steps"):
        parts = [step[f"{part}_us"] for part in PARTS]
        assert min(parts) >= 0
        assert near(sum(parts), step["step_us"])
    by_name, by_shape = (rows(views, "operators", table) for table in ("by_name", "by_shape"))
    work = sum(length for (_, length), *_ in drawn["work"]) / 1000
    assert sum(row["device_self_us"] for row in by_name) <= work + 1e-6
    for key in ("calls", "device_self_us", "host_self_us", "host_total_us"):
        assert near(sum(row[key] for row in by_name), sum(row[key] for row in by_shape))
    for row in by_name:
        assert 0 <= row["host_self_us"] <= row["host_total_us"] + 1e-6
        assert row["device_self_us"] <= row["device_total_us"] + 1e-6
    kernels = [length for (_, length), (kind, _), *_ in drawn["work"] if kind == "kernel"]
    for table in ("by_name", "by_launch"):
        told = rows(views, "kernels", table)
        assert sum(row["calls"] for row in told) == len(kernels)
        assert near(sum(row["total_us"] for row in told), sum(kernels) / 1000)
        assert all(row["max_us"] + 1e-6 >= row["mean_us"] >= row["min_us"] - 1e-6 for row in told)
    told = figures("streams")
    if drawn["work"]:
        assert near(told["busy_us"] + told["idle_us"], told["window_us"])
        assert near(told["exposed_communication_us"] + told["overlap_us"], told["communication_us"])
        assert told["computation_us"] + told["communication_us"] - told["overlap_us"] <= sum(kernels) / 1000 + 1e-6
    for row in rows(views, "streams", "streams"):
        assert near(row["host_wait_us"] + row["kernel_wait_us"] + row["other_wait_us"], row["idle_us"])
    told = figures("launches")
    assert told["launches"] + told["graph_launched"] + told["unlaunched"] == len(drawn["work"])
    assert figures("memory")["records"] == len(drawn["memory"])
    held = sum((row["bytes"] if row["allocated_at_us"] is not None else 0)
               - (row["bytes"] if row["released_at_us"] is not None else 0)
               for row in rows(views, "memory", "events"))  # fmt: skip
    opened = [size for _, size, _ in drawn["memory"]]
    if all(size > 0 for size in opened):
        assert held == sum(opened)
