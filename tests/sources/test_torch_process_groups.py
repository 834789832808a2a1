"""Collectives by process group: size, bandwidth and skew against plain arithmetic."""

from __future__ import annotations

import json

import pytest

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.registry import answer, view_of


def recorded(path, rank, calls, **distributed):
    """A trace of collectives: kind, group, start and end of the kernel, us, and elements in and out, of 2 bytes."""
    events = []
    for number, (kind, group, start, end, elements) in enumerate(calls, 1):
        told = {"Collective name": kind, "In msg nelems": elements[0], "Out msg nelems": elements[1],
                "dtype": "BFloat16", "Group size": len(group), "Process Group Name": str(len(group)),
                "Process Group Ranks": str(group)}  # fmt: skip
        host = {"ph": "X", "pid": 1, "tid": 1, "ts": 1000 + 10 * number}
        events += [
            {**host, "cat": "cpu_op", "name": "record_param_comms", "dur": 5,
             "args": told | {"External id": 2 * number}},
            {**host, "cat": "user_annotation", "name": f"nccl:{kind}", "dur": 4,
             "args": {"External id": 2 * number + 1}},
            {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 1,
             "args": {"External id": 2 * number + 1, "correlation": number}},
            {"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "pid": 0, "tid": 7, "ts": 1000 + start,
             "dur": end - start, "args": {"correlation": number, "device": 0, "stream": 7}},
        ]  # fmt: skip
    path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank, **distributed}}))


KEYS = ("group", "name", "ranks", "calls", "bytes", "time_us", "algorithm_gb_per_s", "bus_gb_per_s", "skew_us")


def groups(path, **selection):
    profile = open_profile(path)
    table = answer(view_of(profile.vocabulary, "distributed"), query_of(profile, **selection)).table("groups")
    columns = (table.column(key) for key in ("worker", *KEYS))
    return {row[:3]: row[3:] for row in zip(*columns, strict=True)}


#: Elements in and out; and of four ranks the size of the message and what links carry of it, bytes.
MESSAGES = {
    "all_reduce": ((1000, 1000), 2000, 3000), "all_gather_into_tensor": ((250, 1000), 2000, 1500),
    "_reduce_scatter_base": ((1000, 250), 2000, 1500), "all_to_all": ((1000, 1000), 2000, 1500),
    "broadcast": ((1000, 1000), 2000, 2000), "barrier": ((1000, 1000), 2000, None),
}  # fmt: skip


@pytest.mark.parametrize("kind", MESSAGES)
def test_bandwidth_of_kinds_of_collectives(kind, tmp_path):
    elements, size, carried = MESSAGES[kind]
    recorded(tmp_path / "a.pt.trace.json", 0, [(kind, [0, 1, 2, 3], 100, 200, elements),
                                               (kind, [0, 1, 2, 3], 300, 500, elements)])  # fmt: skip
    (row,) = groups(tmp_path / "a.pt.trace.json").values()
    # one rank alone: no skew is known
    bus = None if carried is None else pytest.approx(2 * carried / 300_000)
    assert row == (4, 2, 2 * size, 300_000, pytest.approx(2 * size / 300_000), bus, None)


def test_ranks_of_a_run_show_who_waits_for_whom_in_each_group(tmp_path):
    both, own = [0, 1], [0, 1, 2, 3]
    for rank, late in enumerate((0, 70)):
        calls = [(both, 100 + late, 200), (own, 300, 400), (both, 500 + late // 7, 600)]
        recorded(tmp_path / f"rank{rank}.pt.trace.json", rank,
                 [("all_reduce", *call, (1000, 1000)) for call in calls], world_size=4)  # fmt: skip
    found = groups(tmp_path)
    name = "nccl:all_reduce"
    # the transfer is that of the rank that came last
    rate = 4000 / (30_000 + 90_000)
    assert found["Rank 0", "2", name] == (2, 2, 4000, 120_000, pytest.approx(rate), pytest.approx(rate), 40_000)
    assert found["Rank 1", "2", name][-1] == 0
    assert found["Rank 0", "4", name][3:] == (100_000, 0.02, 0.03, 0)
    part = groups(tmp_path, range=(480_000, 700_000))
    assert part == {}
