"""PyTorch traces with launches whose work was not recorded, and with work that overlaps on a stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tpuprof_tui import open_profile
from tpuprof_tui.cli.main import main
from tpuprof_tui.model import Profile, Severity

BEGIN = 1_700_000_000_000_000
CARD = {"id": 0, "name": "NVIDIA A100", "computeMajor": 8, "computeMinor": 0}
Event = dict[str, Any]


def event(cat: str, name: str, start: float, length: float, *, tid: int = 1, pid: int = 9, **args: Any) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": BEGIN + start, "dur": length,
            "args": args}  # fmt: skip


def kernel(start: float, number: int, length: float = 300, name: str = "gemm") -> Event:
    return event("kernel", name, start, length, tid=7, pid=0, correlation=number, device=0, stream=7)


def call(start: float, number: int, name: str = "cudaLaunchKernel", **more: Any) -> Event:
    return event("cuda_runtime", name, start, 10, correlation=number, **more)


def written(path: Path, events: Iterable[Event]) -> Path:
    path.write_text(json.dumps({"traceEvents": list(events), "deviceProperties": [CARD]}))
    return path


def launched(count: int, lost: int = 0, name: str = "cudaLaunchKernel", kernels: int = 1) -> list[Event]:
    """Launches, one a ms, of which the first ``lost`` have no work."""
    found = []
    for number in range(count):
        found.append(call(1000 * number, number + 1, name))
        if number >= lost:
            found += [kernel(1000 * number + 20 + 300 * each, number + 1) for each in range(kernels)]
    return found


def report(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["report", str(path), "--json", *more]) in (0, 1)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def table(record: dict[str, Any], view: str, name: str) -> list[dict[str, Any]]:
    (worker,) = record["views"][view]["workers"].values()
    told = worker["tables"].get(name, {"columns": [], "rows": []})
    return [dict(zip([column["key"] for column in told["columns"]], row, strict=True)) for row in told["rows"]]


def lacking(profile: Profile) -> list[tuple[str, int, int]]:
    return [(each.what, each.lost, each.launches) for each in profile.problems if each.launches]


@pytest.mark.parametrize(
    ("events", "told"),
    [
        (launched(20, 18, "cudaGraphLaunch", 3), ["18 of 20 graph launches have no recorded work; idle is not known."]),
        (launched(6, 4), ["4 of 6 launches have no recorded work; idle is not known."]),
        (launched(5, 5, "hipExtModuleLaunchKernel"), ["5 of 5 launches have no recorded work; idle is not known."]),
        ([*launched(4), *launched(2, 1, "cudaMemcpyAsync")[:1]], []),
        ([*launched(4), call(5000, 50, "cudaMemcpyAsync")],
         ["1 of 5 launches has no recorded work; idle is not known."]),
        # setting memory, synchronising and calls without an id tell nothing
        ([*launched(4), call(5000, 50, "cudaMemsetAsync"), call(5100, 51, "cudaDeviceSynchronize"),
          event("cuda_runtime", "cudaLaunchKernel", 5200, 5)], []),
        (launched(6), []),
    ],
)  # fmt: skip
def test_launches_without_recorded_work_are_counted(tmp_path: Path, events: list[Event], told: list[str]) -> None:
    profile = open_profile(written(tmp_path / "a.pt.trace.json", events))
    assert [what for what, _, _ in lacking(profile)] == told


@pytest.mark.parametrize(("count", "judged"), [(1, True), (3, False)])
def test_of_many_negative_lengths_nothing_is_concluded(tmp_path: Path, count: int, judged: bool) -> None:
    events = launched(20)
    for each in events[1 : 2 * count : 2]:
        each["dur"] = -300
    profile = open_profile(written(tmp_path / "a.pt.trace.json", events))
    assert [each.what for each in profile.problems] == ["Events of negative duration."]
    assert profile.is_fragmentary != judged


def test_kernels_without_lengths_are_told(tmp_path: Path) -> None:
    """All of length 0, as some recorders write; of whole us a few are 0, too."""
    events = launched(6)
    for zeros, told in ((6, [("6 of 6 kernels have a length of 0.", True)]), (3, [])):
        for number, each in enumerate(each for each in events if each["cat"] == "kernel"):
            each["dur"] = 300 * (number >= zeros)
        profile = open_profile(written(tmp_path / f"{zeros}.pt.trace.json", events))
        assert [(each.what, each.fragmentary) for each in profile.problems] == told


def test_work_without_an_id_may_be_that_of_any_launch(tmp_path: Path) -> None:
    events = launched(6)
    nameless = [{**each, "args": {}} if each["cat"] == "kernel" else each for each in events]
    assert lacking(open_profile(written(tmp_path / "a.pt.trace.json", nameless))) == []
    # a single one is that of one launch at most
    profile = open_profile(written(tmp_path / "b.pt.trace.json", [*launched(6, 4), {**kernel(9000, 0), "args": {}}]))
    assert [(lost, every) for _, lost, every in lacking(profile)] == [(4, 6)]


def test_what_was_left_out_is_not_blamed_on_the_recorder(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pt.trace.json", [*launched(5), call(5000, 50), {**kernel(5020, 50), "dur": "long"}])
    (told,) = (each for each in open_profile(path).problems if each.launches)
    assert told.done == "It may be among the events of the file that were left out."


def test_launches_during_a_capture_have_no_work_of_their_own(tmp_path: Path) -> None:
    captured = [call(1000, 90, "cudaStreamBeginCapture"), *(call(1100 + 20 * each, 100 + each) for each in range(9)),
                call(1400, 91, "cudaStreamEndCapture")]  # fmt: skip
    other_thread = [{**call(1200, 95), "tid": 2}]
    profile = open_profile(written(tmp_path / "a.pt.trace.json", [*launched(1), *captured, *other_thread]))
    assert lacking(profile) == []
    # before, behind, and in another process there is no capture
    outside = [call(900, 80), call(1500, 81), {**call(1200, 82), "pid": 10}]
    profile = open_profile(written(tmp_path / "b.pt.trace.json", [*launched(1), *captured, *outside]))
    assert [(lost, every) for _, lost, every in lacking(profile)] == [(3, 4)]
    # begun before the recording, and not ended in it
    profile = open_profile(written(tmp_path / "c.pt.trace.json", [*launched(1), *captured[1:]]))
    assert lacking(profile) == []
    profile = open_profile(written(tmp_path / "d.pt.trace.json", [*launched(1), *captured[:-1]]))
    assert lacking(profile) == []


def test_no_advice_rests_on_a_fragment_and_every_view_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = [event("user_annotation", f"ProfilerStep#{step}", 5000 * step, 4900) for step in range(4)]
    whole = report(written(tmp_path / "whole.pt.trace.json", [*spans, *launched(20)]), capsys)
    part = report(written(tmp_path / "part.pt.trace.json", [*spans, *launched(20, 15)]), capsys)
    assert {"low_utilization"} <= {row["id"] for row in table(whole, "overview", "recommendations")}
    assert {"pause", "host_bound"} <= {row["rule"] for row in table(whole, "findings", "findings")}
    assert not {"low_utilization"} & {row["id"] for row in table(part, "overview", "recommendations")}
    assert not {"pause", "host_bound"} & {row["rule"] for row in table(part, "findings", "findings")}
    for view in ("overview", "steps", "kernels", "streams", "launches", "operators"):
        (worker,) = part["views"][view]["workers"].values()
        assert any("15 of 20 launches" in each["what"] for each in worker["missing"])
        (worker,) = whole["views"][view]["workers"].values()
        assert not worker.get("missing")
    # steps count as ever, and say what they lack
    assert [row["unrecorded"] for row in table(part, "steps", "steps")] == [5, 5, 5, 0]
    assert [[row["counted"] for row in table(each, "steps", "steps")] for each in (whole, part)] == [[True] * 4] * 2


def test_a_few_lost_launches_leave_the_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = report(written(tmp_path / "a.pt.trace.json", launched(40, 2)), capsys)
    assert "low_utilization" in {row["id"] for row in table(record, "overview", "recommendations")}
    assert record["problems"][0]["what"].startswith("2 of 40 launches")


def test_where_calls_prove_that_the_device_was_asked_for_nobody_is_told_to_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    none = written(tmp_path / "none.pt.trace.json", launched(5, 5))
    host = written(tmp_path / "host.pt.trace.json", [event("cpu_op", "aten::mm", 0, 50)])
    for path, asked in ((none, False), (host, True)):
        for command in ("summary", "info", "report", "describe"):
            assert main([command, str(path)]) == 0
            assert ("ProfilerActivity" in capsys.readouterr().out) is (asked and command in ("report", "describe"))
    assert main(["report", str(none), "kernels", "streams"]) == 0
    assert "choose the rank" not in capsys.readouterr().out


def test_the_first_line_tells_lost_repaired_and_set_aside_by_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [*launched(20, 18), event("cpu_op", "negative", 5, -5), event("cpu_op", "negative", 6, -5),
              kernel(-BEGIN, 20), {**event("cpu_op", "untimed", 7, 5), "ts": None}]  # fmt: skip
    assert main(["summary", str(written(tmp_path / "a.pt.trace.json", events))]) == 1
    first = capsys.readouterr().out.splitlines()[2]
    assert first.endswith("1 set aside, 1 lost, 2 repaired, 18 of 20 launches not recorded")


def test_diff_and_gate_judge_no_fragment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = str(written(tmp_path / "whole.pt.trace.json", launched(20, 0, "cudaGraphLaunch", 3)))
    part = str(written(tmp_path / "part.pt.trace.json", launched(20, 18, "cudaGraphLaunch", 3)))
    assert main(["diff", whole, part, "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert verdict["lost"] == {"base": 0, "other": 18}
    assert {each["status"] for each in verdict["contributors"]} == {"unclear"}
    assert "18 of the other" in verdict["why"]
    for base, other in ((whole, part), (part, whole), (part, part)):
        assert main(["gate", other, "--against", base]) == 4
        assert "nothing is judged" in capsys.readouterr().out
    assert main(["gate", whole, "--against", whole]) == 0
    capsys.readouterr()
    kept = str(tmp_path / "kept.json")
    assert main(["baseline", "save", kept, part]) == 0
    assert main(["gate", whole, "--against", kept]) == 4


def test_work_that_overlaps_the_next_of_its_stream_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = launched(4)
    events[3] = kernel(1020, 2, length=1500.5)
    path = written(tmp_path / "a.pt.trace.json", [*events, kernel(2600, 9, length=50)])
    profile = open_profile(path)
    (problem,) = profile.problems
    assert (problem.severity, problem.count) == (Severity.WARNING, 1)
    assert problem.what == ("One event overlaps the next on GPU 0 stream 7 by 500.5 us, though a stream runs one thing "
                            "at a time.")  # fmt: skip
    assert problem.rows is not None
    assert problem.rows.tolist() == [1]
    assert path.read_bytes()[problem.offset :].startswith(json.dumps(events[3]).encode())
    assert main(["report", str(path), "kernels", "overview"]) == 0
    assert capsys.readouterr().out.count("Events of one stream overlap: sums count 300.0 us twice, and a dur") == 2


@pytest.mark.parametrize("name", ["cudaLaunchKernelExC", "cuLaunchKernelEx", "cudaLaunchKernel"])
@pytest.mark.parametrize("length", [300, 10])
def test_overlap_that_a_launch_with_attributes_explains_is_a_note(tmp_path: Path, name: str, length: float) -> None:
    events = [call(0, 1), kernel(20, 1), call(50, 2, name), kernel(300, 2, length)]
    (problem,) = open_profile(written(tmp_path / "a.pt.trace.json", events)).problems
    # a dependent kernel ends after the one that it depends on
    explained = "Ex" in name and length == 300
    assert (problem.severity, problem.count) == (Severity.NOTE if explained else Severity.WARNING, 1)


def test_the_branches_of_a_graph_run_side_by_side(tmp_path: Path) -> None:
    events = [call(0, 1, "cudaGraphLaunch"), kernel(20, 1, 500), kernel(30, 1), call(50, 2, "cudaGraphLaunch"),
              kernel(600, 2)]  # fmt: skip
    (problem,) = open_profile(written(tmp_path / "a.pt.trace.json", events)).problems
    assert (problem.severity, problem.count) == (Severity.NOTE, 1)
    # but not beside the next graph of the stream
    events[1] = kernel(20, 1, 800)
    problems = open_profile(written(tmp_path / "b.pt.trace.json", [*events[:2], *events[3:]])).problems
    assert [(problem.severity, problem.count) for problem in problems] == [(Severity.WARNING, 1)]


def test_rounding_and_other_streams_are_no_overlap(tmp_path: Path) -> None:
    apart = [{**kernel(0, 1), "tid": 8}, kernel(0, 2), kernel(300, 3), kernel(599, 4), kernel(899, 5)]
    assert not open_profile(written(tmp_path / "a.pt.trace.json", apart)).problems
    apart[1] = kernel(0, 2, length=300.001)
    assert [each.count for each in open_profile(written(tmp_path / "b.pt.trace.json", apart)).problems] == [1]


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda text: text[: text.rindex('{"ph"') + 30],
        lambda text: text.replace('"name": "last"', '"name": {]'),
        lambda text: text.replace('"dur": 77', '"dur": "long"'),
        lambda text: text.replace('"dur": 77', '"dur": 1e30'),
        lambda text: text.replace('"dur": 77', '"dur": 1e14'),
    ],
    ids=["cut", "malformed", "untimed", "range", "far"],
)
def test_what_was_lost_explains_that_there_is_less(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spoilt: Callable[[str], str]
) -> None:
    whole = written(tmp_path / "whole.pt.trace.json", [*launched(9), kernel(9000, 9, 77, "last")])
    part = tmp_path / "part.pt.trace.json"
    part.write_text(spoilt(whole.read_text()))
    assert main(["diff", str(whole), str(part), "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert verdict["lost"] == {"base": 0, "other": 1}
    assert {each["name"]: each["status"] for each in verdict["contributors"]} == {"gemm": "same", "last": "unclear"}
    assert "1 of the other" in verdict["why"]
    assert main(["summary", str(part)]) == 1
    assert capsys.readouterr().out.splitlines()[2].endswith((", 1 lost", ", 1 set aside"))
