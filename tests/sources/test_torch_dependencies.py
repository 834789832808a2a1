"""What events of a PyTorch trace waited for: events of streams, synchronising calls, replays, collectives of ranks."""

from __future__ import annotations

import json
from pathlib import Path

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.critical_path import critical_path
from tpuprof_tui.analysis.links.dependencies import find_dependencies
from tpuprof_tui.model import Profile


def event(category: str, name: str, start: float, end: float, tid: object = "1", pid: object = 9, **args: object):
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": end - start, "pid": pid, "tid": tid,
            "args": args}  # fmt: skip


def call(name: str, start: float, end: float, correlation: int):
    return event("cuda_runtime", name, start, end, correlation=correlation)


def kernel(name: str, start: float, end: float, correlation: int, stream: int = 7):
    return event("kernel", name, start, end, stream, 0, stream=stream, device=0, correlation=correlation)


def wait(name: str, start: float, end: float, correlation: int, stream: int, **args: object):
    return event("cuda_sync", name, start, end, stream, 0, stream=stream, device=0, correlation=correlation, **args)


def opened(path: Path, events: list[dict], **more: object) -> Profile:
    path.write_text(json.dumps({"schemaVersion": 1, **more, "traceEvents": events}))
    return open_profile(path)


def told(profile: Profile) -> set[tuple[str, str, str]]:
    known = find_dependencies(profile)

    def name(lane: int, row: int) -> str:
        return profile.text("name", int(profile.lanes[lane]["name"][row]))

    return {(known.links.kinds[kind], name(*cause), name(*row)) for kind, cause, row in zip(
        known.links.kind.tolist(), zip(known.releaser_lane.tolist(), known.releaser_row.tolist(), strict=True),
        zip(known.waiter_lane.tolist(), known.waiter_row.tolist(), strict=True), strict=True)}  # fmt: skip


def path_of(profile: Profile) -> list[str]:
    """Names on the path; gaps have none."""
    path = critical_path(profile, find_dependencies(profile), profile.start_ns, profile.end_ns)
    assert int(path.length.sum()) == profile.end_ns - profile.start_ns
    parts = zip(path.lane.tolist(), path.row.tolist(), path.part.tolist(), strict=True)
    return [profile.text("name", int(profile.lanes[lane]["name"][row])) if lane >= 0 and not part else ""
            for lane, row, part in parts]  # fmt: skip


def test_streams_and_calls_that_wait(tmp_path):
    profile = opened(tmp_path / "a.pt.trace.json", [
        call("cudaLaunchKernel", 0, 2, 1), kernel("produces", 4, 30, 1),
        call("cudaEventRecord", 3, 4, 2),
        # the other stream was given this before it had to wait
        call("cudaLaunchKernel", 4, 5, 3), kernel("before", 6, 9, 3, stream=20),
        call("cudaStreamWaitEvent", 5, 6, 4),
        wait("Stream Wait Event", 6, 30, 4, 20, wait_on_stream=7, wait_on_cuda_event_record_corr_id=2),
        call("cudaLaunchKernel", 7, 8, 5), kernel("consumes", 31, 50, 5, stream=20),
        call("cudaLaunchKernel", 8, 9, 6), kernel("beside", 31, 35, 6),
        call("cudaStreamSynchronize", 10, 36, 7), wait("Stream Sync", 10, 36, 7, 7),
        call("cudaDeviceSynchronize", 40, 51, 8),
        call("cudaMemcpy", 52, 60, 9),
        event("gpu_memcpy", "Memcpy DtoH", 53, 59, 7, 0, stream=7, device=0, correlation=9, bytes=4),
    ])  # fmt: skip
    found = told(profile)
    assert ("stream event", "produces", "consumes") in found
    assert {each for each in found if each[0] == "synchronise"} == {
        ("synchronise", "beside", "cudaStreamSynchronize"), ("synchronise", "consumes", "cudaDeviceSynchronize"),
        ("synchronise", "Memcpy DtoH", "cudaMemcpy"),
    }  # fmt: skip
    path = path_of(profile)
    assert [name for name in path if name in ("produces", "consumes", "beside", "Memcpy DtoH")] == [
        "produces", "consumes", "Memcpy DtoH"]  # fmt: skip


def test_kernels_of_a_replay_follow_one_another_over_streams(tmp_path):
    """What a graph holds is told by no call of its own: of what ran in it the last before is assumed."""
    profile = opened(tmp_path / "a.pt.trace.json", [
        call("cudaGraphLaunch", 0, 5, 1), kernel("first", 6, 20, 1), kernel("second", 21, 40, 1, stream=20),
        kernel("third", 42, 60, 1),
    ])  # fmt: skip
    assert [name for name in path_of(profile) if name] == ["cudaGraphLaunch", "first", "second", "third"]


def test_a_collective_leads_to_the_rank_that_came_last(tmp_path):
    for rank, begun in ((0, 20), (1, 70)):
        opened(tmp_path / f"rank{rank}.pt.trace.json", [
            call("cudaLaunchKernel", 0, 1, 1), kernel(f"work{rank}", 2, begun, 1),
            call("cudaLaunchKernel", 1, 2, 2), kernel("ncclDevKernel_AllReduce_Sum", begun, 80, 2),
            call("cudaLaunchKernel", 2, 3, 3), kernel(f"after{rank}", 81, 90 - rank, 3),
        ], distributedInfo={"rank": rank, "world_size": 2})  # fmt: skip
    profile = open_profile(tmp_path)
    assert ("collective", "ncclDevKernel_AllReduce_Sum", "ncclDevKernel_AllReduce_Sum") in told(profile)
    assert [name for name in path_of(profile) if name][-3:] == ["work1", "ncclDevKernel_AllReduce_Sum", "after0"]
