"""PyTorch traces in which some times are impossible, or a clock differs: set aside, moved, and told."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.cli.main import main
from tpuprof_tui.model import INT_MISSING, Profile, Severity
from tpuprof_tui.sources.torch.read import trace_reader
from tpuprof_tui.sources.torch.read.trace_reader import read_trace
from tpuprof_tui.views.diff_report import Compared, diff_record
from tpuprof_tui.views.registry import views_of
from tpuprof_tui.views.report import report_record, workers_of

BEGIN, DAY, HOUR = 1_700_000_000_000_000, 86_400_000_000, 3_600_000_000
Event = dict[str, Any]


def event(cat: str, name: str, start: float, length: float, *, tid: int = 1, pid: int = 9, **args: Any) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": BEGIN + start, "dur": length,
            "args": args}  # fmt: skip


def kernel(start: float, number: int, *, length: float = 300, name: str = "gemm", device: int = 0) -> Event:
    return event("kernel", name, start, length, tid=7, pid=device, correlation=number, device=device, stream=7)


def launch(start: float, number: int, name: str = "cudaLaunchKernel") -> Event:
    return event("cuda_runtime", name, start, 10, correlation=number)


def memory(time: float) -> Event:
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 9, "tid": 1, "ts": time,
            "args": {"Device Type": 1, "Device Id": 0, "Addr": 5, "Bytes": 512, "Total Allocated": 512,
                     "Total Reserved": 512}}  # fmt: skip


def counter(time: float) -> Event:
    return {"ph": "C", "name": "used", "pid": 0, "ts": time, "args": {"used": 5}}


def steps(count: int = 4) -> list[Event]:
    """Steps of 1 ms, each with an operator that launches a kernel."""
    found = []
    for step in range(count):
        at = 1000 * step
        found += [event("user_annotation", f"ProfilerStep#{step}", at, 900), event("cpu_op", "aten::mm", at + 10, 100),
                  launch(at + 40, step + 1), kernel(at + 60, step + 1)]  # fmt: skip
    return [*found, memory(BEGIN + 50), counter(BEGIN + 70)]


def written(folder: Path, events: Iterable[Event]) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "some.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": list(events)}))
    return path


def told(profile: Profile) -> dict[str, Any]:
    query = Query(Session(profile))
    found: dict[str, Any] = report_record(query, views_of(profile.vocabulary), workers_of(profile))
    return json.loads(json.dumps(found))


WRONG = (
    kernel(-BEGIN, 1), kernel(DAY, 1), kernel(DAY + 10, 2), kernel(1, 77, length=DAY), event("cpu_op", "x", -HOUR, 5),
    launch(5 * HOUR, 99), event("user_annotation", "ProfilerStep#9", HOUR, 900), memory(7), counter(9),
)  # fmt: skip


def test_what_is_set_aside_is_in_the_table_and_in_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    paths = [written(tmp_path / name, (*steps(90), *more)) for name, more in (("a", ()), ("b", WRONG))]
    sound, spoilt = map(open_profile, paths)
    one, two = told(sound), told(spoilt)
    assert (one["workers"][0].pop("events"), two["workers"][0].pop("events")) == (360, 367)
    assert (one["workers"][0].pop("lanes"), two["workers"][0].pop("lanes")) == (2, 4)
    assert [each["count"] for each in two["problems"]] == [2, 4, 3]
    for each in (one, two):
        del each["problems"], each["views"]["problems"], each["path"]
    assert one == two
    # the table of events has them, without times, marked by their lane
    aside = [lane for lane in spoilt.lanes if lane.is_aside]
    assert [lane.label for lane in aside] == ["GPU 0 stream 7: set aside", "thread 1: set aside"]
    assert all((lane[key] == INT_MISSING).all() for lane in aside for key in ("start", "end", "duration"))
    assert aside[0].arguments is not None
    assert [aside[0].arguments(row)["ts"] for row in range(2)] == ["0", "1700000000000001"]
    # pictures and files
    for path in paths:
        for only in ("pftrace", "collapsed"):
            assert main(["export", str(path), str(path.parent / "out"), "--only", only]) == int(path is paths[1])
        capfd.readouterr()
        assert main(["instructions", str(path), "--format", "csv", "--columns", "engine,name,start"]) == int(
            path is paths[1]
        )
        (path.parent / "table").write_text(capfd.readouterr().out)
    files = [sorted((path.parent / "out").iterdir()) for path in paths]
    assert [[file.read_bytes() for file in each] for each in files[:1]] == [[file.read_bytes() for file in files[1]]]
    lines = [(path.parent / "table").read_text().splitlines() for path in paths]
    assert lines[1][: len(lines[0])] == lines[0]
    assert lines[1][len(lines[0]) :] == [f"aside,{name}," for name in (
        "gemm", "gemm", "gemm", "gemm", "x", "ProfilerStep#9", "cudaLaunchKernel")]  # fmt: skip


def test_it_is_told_with_number_lane_time_and_place(tmp_path: Path) -> None:
    path = written(tmp_path, (*steps(), kernel(-BEGIN, 1), kernel(2 * DAY + 0.25, 2)))
    (problem,) = open_profile(path).problems
    assert (problem.severity, problem.count, problem.lost) == (Severity.ERROR, 2, 2)
    assert (
        problem.what == "Events of GPU 0 stream 7 have impossible times, the first: ts 0, 53.9 years before the rest."
    )
    assert path.read_bytes()[problem.offset :].startswith(json.dumps(kernel(-BEGIN, 1)).encode())
    (problem,) = open_profile(written(tmp_path, (*steps(), kernel(1, 77, length=DAY)))).problems
    assert problem.what.endswith("ts 1700000000000001, an end 24.0 hours after the rest.")


def test_a_kernel_shortly_before_its_launch_and_one_a_second_away_count(tmp_path: Path) -> None:
    profile = open_profile(written(tmp_path, (*steps(), launch(3950, 50), kernel(3850, 50), kernel(900_000, 51))))
    assert not profile.problems
    (streams,) = told(profile)["views"]["streams"]["workers"].values()
    assert streams["figures"]["window_us"] == 900_240


@pytest.mark.parametrize("off", [-BEGIN, -DAY, 2_000_000, DAY])
def test_a_device_on_another_clock_is_moved_by_its_launches_and_that_is_told(tmp_path: Path, off: float) -> None:
    moved = [{**each, "ts": each["ts"] + off} if each.get("cat") == "kernel" else each for each in steps()]
    profile = open_profile(written(tmp_path / "moved", moved))
    assert [problem.severity for problem in profile.problems] == [Severity.WARNING]
    assert "clock of GPU 0" in profile.problems[0].what
    sound = told(open_profile(written(tmp_path / "sound", steps())))["views"]
    # the first kernel begins with its launch instead of 20 us after it
    for table, columns in (("kernels", ("total_us",)), ("overview", ("step_us", "kernel_us", "steps"))):
        ((one,), (two,)) = (each[table]["workers"].values() for each in (sound, told(profile)["views"]))
        assert [one["figures"][key] for key in columns] == [two["figures"][key] for key in columns]


@pytest.mark.parametrize(("off", "told_of"), [(-100, False), (-500_000, True), (0, False), (400_000, False)])
def test_a_clock_that_differs_by_less_is_told_where_work_precedes_its_launch(
    tmp_path: Path, off: float, told_of: bool
) -> None:
    moved = [{**each, "ts": each["ts"] + off} if each.get("cat") == "kernel" else each for each in steps()]
    profile = open_profile(written(tmp_path, moved))
    assert ["behind the host's" in problem.what for problem in profile.problems] == [True] * told_of
    assert sum(len(lane) for lane in profile.lanes if lane.is_aside) == 0


def test_a_step_or_memory_of_another_epoch_makes_no_length(tmp_path: Path) -> None:
    only_memory = [memory(BEGIN + each) for each in range(20)]
    for more in ([memory(3)], [event("user_annotation", "ProfilerStep#9", -BEGIN + 5, 900)], [counter(8)]):
        profile = open_profile(written(tmp_path, [*steps(), *only_memory, *more]))
        assert (profile.end_ns - profile.start_ns) / 1000 <= 3900
        assert [problem.count for problem in profile.problems] == [1]
        assert len(profile.steps) == 4


def test_two_recordings_in_one_file_are_told(tmp_path: Path) -> None:
    def two(apart: float) -> Profile:
        return open_profile(
            written(tmp_path, [*steps(), *({**each, "ts": each["ts"] + apart} for each in steps()[:-2])])
        )

    profile = two(HOUR / 2)
    assert [(problem.severity, problem.what) for problem in profile.problems] == [
        (Severity.WARNING, "Nothing was recorded for 1,799.996 s, much longer than before and after.")]  # fmt: skip
    assert profile.event_count == 32
    # programs do not pause for hours
    profile = two(5 * HOUR)
    assert [problem.count for problem in profile.problems] == [4, 12]
    assert profile.end_ns <= 3_960_000


@pytest.mark.parametrize(
    "events", [[kernel(0, 1, length=1e13)], [kernel(0, 1), kernel(-BEGIN, 2), kernel(BEGIN, 3)]], ids=["one", "three"]
)
def test_where_nothing_tells_which_time_is_right_the_length_is_told(tmp_path: Path, events: list[Event]) -> None:
    (problem,) = open_profile(written(tmp_path, events)).problems
    assert problem.what.startswith("Its times span 1")


def test_out_of_range_is_called_out_of_range(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": [*steps(), kernel(400, 1), kernel(0, 2)]})
    head, _, last = text.rpartition(f'"ts": {BEGIN}')
    path = tmp_path / "some.pt.trace.json"
    path.write_text(f'{head}"ts": 92233720368547758070{last}')
    (problem,) = open_profile(path).problems
    assert "out of range" in problem.what
    assert (problem.count, problem.lost) == (1, 1)


def test_diff_says_what_was_lost_and_what_it_explains_is_unclear(tmp_path: Path) -> None:
    wrong = [{**each, "ts": 0} if each.get("args", {}).get("correlation") == 2 and each["cat"] == "kernel" else each
             for each in steps()]  # fmt: skip
    queries = [Query(Session(open_profile(written(tmp_path / name, events))))
               for name, events in (("a", steps()), ("b", wrong))]  # fmt: skip
    record = diff_record(Compared(*queries), [])
    assert record["verdict"]["lost"] == {"base": 0, "other": 1}
    assert {each["status"] for each in record["verdict"]["contributors"]} == {"unclear"}


def test_in_several_processes_and_in_parts_the_same_is_set_aside(tmp_path: Path) -> None:
    for rank in range(3):
        found = [*steps(), kernel(-BEGIN + rank, 1)]
        (tmp_path / f"rank{rank}.pt.trace.json").write_text(json.dumps({"traceEvents": found}))
    profile = open_profile(tmp_path)
    assert sum(problem.count for problem in profile.problems if problem.severity is Severity.ERROR) == 3
    assert sum(len(lane) for lane in profile.lanes if lane.is_aside) == 3
    # behind all others: the traces count the rows of their lanes
    assert [lane.is_aside for lane in profile.lanes] == [False] * 6 + [True] * 3
    assert np.diff([each.group for each in profile.workers]).min() > 0


def test_of_a_file_larger_than_memory_the_same_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = [kernel(-BEGIN, 1), kernel(DAY, 2), event("cpu_op", "x", -HOUR, 5), kernel(1, 3, length=DAY)]
    path = written(tmp_path, [*wrong[:3], *steps(60), wrong[3]])
    command = ["report", str(path), "overview", "kernels", "streams", "steps", "--json", "--step", "30"]

    def answered() -> dict[str, Any]:
        assert main(command) == 1
        found: dict[str, Any] = json.loads(capfd.readouterr().out)
        (overview,) = found["views"]["overview"]["workers"].values()
        del overview["tables"]["devices"], overview["tables"]["recommendations"]
        return found

    whole = answered()
    monkeypatch.setattr(trace_reader, "_LARGE", 1)
    monkeypatch.setattr(trace_reader, "memory_bytes", lambda: int(path.stat().st_size * 0.65))
    part = answered()
    assert "does not fit into memory" in part["problems"][0]["what"]
    assert part["views"] == whole["views"]
    assert part["workers"][0]["start"] == whole["workers"][0]["start"] == str(BEGIN)


@pytest.mark.parametrize("seed", range(12))
def test_figures_are_those_of_the_file_without_what_is_set_aside(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    epochs = random.choices(
        (0, BEGIN, BEGIN + DAY, BEGIN - 30 * HOUR, -BEGIN // 3, BEGIN + 2e6), k=random.randint(1, 4)
    )
    weights = [random.random() ** 3 for _ in epochs]
    # calls that launch nothing: of launches it is told whether their work was recorded
    kinds = (("cpu_op", "aten::mm", 9), ("user_annotation", "ProfilerStep#", 9), ("new", "x", 9),
             ("cuda_runtime", "cudaMemsetAsync", 9), ("kernel", "ampere_sgemm", 0), ("kernel", "ncclKernel", 1),
             ("gpu_memcpy", "Memcpy", 0), ("cuda_sync", "Stream Sync", 1), ("python_function", "step", 9))  # fmt: skip
    events = []
    for number in range(random.randint(1, 60)):
        cat, name, pid = random.choice(kinds)
        start = random.choices(epochs, weights)[0] + random.choice((0, random.random() * 1e3, random.random() * 1e6))
        length = random.choice((0, 10, 300, 1e6, DAY, 1e15, random.random() * 100))
        name = f"{name}{number}" if name.endswith("#") else name
        found = event(cat, name, 0, length, pid=pid, tid=1 if pid == 9 else 7, correlation=random.randint(1, 8),
                      stream=7)  # fmt: skip
        events.append({**found, "ts": round(start, 3)})
    profile = open_profile(written(tmp_path / "all", events))
    record = told(profile)
    assert record["workers"][0]["events"] == len(events)
    aside = read_trace(Path(profile.path)).aside
    left_out = set() if aside is None else set(aside.file_order.tolist())
    kept = [each for number, each in enumerate(events) if number not in left_out]
    other = told(open_profile(written(tmp_path / "kept", kept)))
    fragmentary = profile.is_fragmentary
    if any("clock of" in problem.what for problem in profile.problems):
        # what is wrong counts among what tells by how much to move
        return
    for each in (record, other):
        del each["problems"], each["path"], each["views"]["problems"], each["views"]["findings"]
        for key in ("events", "lanes"):
            del each["workers"][0][key]
        if fragmentary:
            del each["views"]["overview"]
    assert record == other
