"""Which recordings of a folder are one run, which sessions it has, and where each lies on the time line."""

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UsageError
from tpuprof_tui.model import Severity
from tpuprof_tui.sources.catalog import Catalog
from tpuprof_tui.sources.chrome.times import extent
from tpuprof_tui.sources.runs import UnplacedRecording, places_of, problems_of
from tpuprof_tui.sources.torch.read.identities import sessions
from tpuprof_tui.views.info import info_record
from tpuprof_tui.views.report import recordings

S = 10**9
#: A plausible wall-clock time, ns since 1970.
DAY = 1_780_000_000 * S


def rank(number, start, end, *, size=2, worker="", **more):
    return UnplacedRecording(worker or f"host_{number}", DAY + start, DAY + end, number, f"{size} nccl", **more)


def alone(worker, start, end, **more):
    return UnplacedRecording(worker, DAY + start, DAY + end, **more)


@pytest.mark.parametrize(("recordings", "runs", "session"), [
    ([rank(0, 0, S), rank(1, 5, S + 5)], [0, 0], [0, 0]),
    # a second recording of each rank, a minute later
    ([rank(0, 0, S), rank(1, 5, S + 5), rank(0, 60 * S, 61 * S), rank(1, 60 * S, 61 * S)], [0, 0, 0, 0], [0, 0, 1, 1]),
    # host clocks that differ by seconds
    ([rank(0, 0, 5), rank(1, 3 * S, 3 * S + 5)], [0, 0], [0, 1]),
    ([rank(0, 0, 5), rank(1, 7_200 * S, 7_200 * S + 5)], [0, 1], [0, 1]),
    ([rank(0, 0, S), rank(1, 0, S, size=4)], [0, 1], [0, 1]),
    # one worker twice: minutes apart, days apart, on another card
    ([alone("w", 0, S), alone("w", 470 * S, 471 * S)], [0, 0], [0, 1]),
    ([alone("w", 0, S), alone("w", 86_400 * S, 86_401 * S)], [0, 1], [0, 1]),
    ([alone("w", 0, S, device="V100"), alone("w", 9 * S, 10 * S, device="H100")], [0, 1], [0, 1]),
    # processes of one machine at the same time, and unrelated ones
    ([alone("a", 0, S), alone("b", S // 2, 2 * S)], [0, 0], [0, 0]),
    ([alone("a", 0, S), alone("b", 2 * S, 3 * S)], [0, 1], [0, 1]),
    # clocks that begin at boot say nothing
    ([UnplacedRecording("a", 0, S), UnplacedRecording("b", 0, S)], [0, 1], [0, 1]),
    ([UnplacedRecording("a", 0, S, 0), UnplacedRecording("b", 0, S, 1)], [0, 0], [0, 0]),
    ([alone("a", 0, S), UnplacedRecording("a", 5, S)], [1, 0], [1, 0]),
])  # fmt: skip
def test_recordings_of_one_job_that_overlap_are_a_session_and_others_have_their_own(recordings, runs, session):
    places = places_of(recordings)
    assert [place.run for place in places] == runs
    assert [place.session for place in places] == session


def test_a_user_is_told_of_runs_of_sessions_and_of_clocks_that_differ():
    def told(*recordings):
        return " ".join(problem.what for problem in problems_of(recordings, places_of(recordings)))

    assert told(alone("a", 0, S), alone("b", 0, S)) == ""
    assert "2 recordings that are not of one run" in told(alone("a", 0, 5), alone("b", 90, 95))
    assert "2 recordings of the run, one after the other" in told(alone("a", 0, 5), alone("a", 90, 95))
    assert "Clocks of the hosts differ" in told(rank(0, 0, 5), rank(1, 3 * S, 3 * S + 5))
    # a copy lies beside it, or two stages of a server are recorded in turn
    copied = told(rank(0, 0, 5), rank(0, 0, 5), rank(1, 0, 5))
    assert copied == "1 of 3 recordings are of a worker that another records at the same time."
    stages = [UnplacedRecording("a", 0, 5, 0, "2 nccl", stage=stage) for stage in ("EXTEND", "DECODE")]
    assert told(*stages) == "2 recordings of the run, one after the other."


@given(some.lists(some.builds(
    lambda worker, number, start, length, dated: UnplacedRecording(
        worker, dated * DAY + start, dated * DAY + start + length, number, "" if number is None else "4 nccl"),
    some.sampled_from("abc"), some.sampled_from((None, 0, 1)), some.integers(0, 9_000 * S), some.integers(0, 9 * S),
    some.booleans(),
), max_size=9))  # fmt: skip
def test_sessions_lie_one_after_the_other_and_keep_their_own_times(recordings):
    places = places_of(recordings)
    assert len(places) == len(recordings)
    spans = {}
    for recording, place in zip(recordings, places, strict=True):
        spans.setdefault(place.session, []).append((recording.start + place.shift, recording.end + place.shift))
    assert len({(place.session, place.run) for place in places}) == len(spans)
    assert len({(place.session, place.shift) for place in places}) == len(spans)  # one clock a session
    position = 0
    for session in sorted(spans):
        assert min(start for start, _ in spans[session]) == position
        position = max(end for _, end in spans[session])


def trace(path, start_us, *, rank=None, world=None, length=1000, card="H100", device=0):
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": device, "tid": 7, "ts": start_us + 10, "dur": length}
    events = [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": start_us, "dur": 5,
         "args": {"correlation": 1}},
        {**kernel, "args": {"device": device, "stream": 7, "correlation": 1}},
    ]  # fmt: skip
    stated = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": world, "backend": "nccl"}}
    path.write_text(json.dumps({"deviceProperties": [{"id": 0, "name": card}], **stated, "traceEvents": events}))
    return path


def test_a_card_recorded_twice_is_one_card_and_its_figures_do_not_count_the_time_between(tmp_path, capsys):
    trace(tmp_path / "w.1.pt.trace.json", DAY // 1000)
    trace(tmp_path / "w.2.pt.trace.json", DAY // 1000 + 60_000_000, length=500)
    profile = open_profile(tmp_path)
    assert profile.groups.device_count == 1
    assert [unit.utilisation for unit in query_of(profile).headline.units] == [1, 1]
    assert main(["info", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert "Recordings" in listed
    assert "w@2" in listed
    assert main(["summary", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "1 GPU, 2 recordings" in told
    assert "60.0" not in told  # neither 60 s of idling nor 60 s between


def test_what_has_the_name_of_a_trace_and_is_none_is_told(tmp_path):
    trace(tmp_path / "rank 0\n.pt.trace.json", DAY // 1000)
    for name, make in (("1", Path.mkdir), ("2", os.mkfifo), ("3", lambda path: path.symlink_to(path.name))):
        make(tmp_path / f"rank{name}.pt.trace.json")
    profile = open_profile(tmp_path)
    assert profile.groups.device_count == 1
    assert [(each.file, each.done) for each in profile.problems if each.severity is Severity.ERROR] == [
        (f"rank{number}.pt.trace.json", "It is left out.") for number in (1, 2, 3)
    ]


def test_a_trace_beside_its_packed_copy_is_one(tmp_path):
    file = trace(tmp_path / "w.pt.trace.json", DAY // 1000)
    packed = tmp_path / "w.pt.trace.json.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    profile = open_profile(tmp_path)
    assert [(each.file, each.what) for each in profile.problems] == [
        (packed.name, "The trace beside this file is the same, unpacked.")
    ]
    # another of that name is another recording
    trace(file, DAY // 1000 + 60_000_000, length=500)
    assert len(open_profile(tmp_path).windows) == 2


def test_the_length_of_sessions_is_that_of_what_was_recorded(tmp_path):
    trace(tmp_path / "w.1.pt.trace.json", DAY // 1000)
    trace(tmp_path / "w.2.pt.trace.json", DAY // 1000 + 60_000_000, length=500)
    profile = open_profile(tmp_path)
    assert profile.device_ns == query_of(profile).span == info_record(profile)["device_ns"] == 1_500_000
    assert info_record(profile)["total_ns"] == 1_520_000  # with the host
    (_, end), (start, _) = profile.windows
    assert query_of(profile, range=(end - 100_000, start + 200_000)).span == 300_000


def test_a_step_has_the_window_of_its_session_in_each(tmp_path):
    for number in range(2):
        path = trace(tmp_path / f"w.{number}.pt.trace.json", DAY // 1000 + number * 60_000_000)
        record = json.loads(path.read_text())
        first = record["traceEvents"]
        record["traceEvents"] += [{**each, "ts": each["ts"] + 2000} for each in first]
        mark = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "dur": 1500}
        record["traceEvents"] += [{**mark, "name": f"ProfilerStep#{step}", "ts": first[0]["ts"] + 2000 * step}
                                  for step in range(2)]  # fmt: skip
        for each in record["traceEvents"][2:4]:
            each["args"] = {**each["args"], "correlation": 2}
        path.write_text(json.dumps(record))
    query = query_of(open_profile(tmp_path), step=1)
    assert [query.window_of(unit) for unit in query.units] == [query.window_of(-1, lane) for lane in query.lanes]
    assert len({end - start for start, end in map(query.window_of, query.units)}) == 1


def test_a_folder_is_listed_by_session_unless_all_are_ranks_of_one_job(tmp_path):
    files = [trace(tmp_path / f"h_{each}.1.pt.trace.json", DAY // 1000, rank=each, world=2) for each in (0, 1)]
    assert sessions(files) == []
    files += [trace(tmp_path / f"h_{each}.2.pt.trace.json", DAY // 1000 + 9e6, rank=each, world=2) for each in (0, 1)]
    files.append(trace(tmp_path / "other.pt.trace.json", DAY // 1000 + 8e11, card="V100"))
    found = sessions(files)
    assert [(each.run, each.ranks, each.device) for each in found] == [(1, "0, 1", "H100")] * 2 + [(2, "", "V100")]
    assert [len(each.names) for each in found] == [2, 2, 1]
    assert found[0].size == sum(file.stat().st_size for file in files[:2])
    assert found[0].begun_ns == DAY


@pytest.mark.parametrize(("packed", "after_us", "listed"), [
    # two processes at the same time are one session, and one after the other two runs: in the list as in the report
    (False, 500, []),
    (False, 5000, [(1, 1_010_000), (2, 1_010_000)]),
    # ends of packed files are not looked for
    (True, 500, [(1, None), (2, None)]),
])  # fmt: skip
def test_a_list_has_the_sessions_of_the_report(tmp_path, packed, after_us, listed):
    for name, start in (("one", 0), ("two", after_us)):
        file = trace(tmp_path / f"{name}.json", DAY // 1000 + start)
        if packed:
            (tmp_path / f"{name}.json.gz").write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
    found = Catalog().sessions(tmp_path)
    assert [(each.run, each.length_ns) for each in found] == listed
    if not packed:
        assert len(open_profile(tmp_path).groups.sessions) == max(len(found), 1)


def test_a_list_believes_no_impossible_time_and_knows_bases_at_the_end(tmp_path):
    events = [{"ph": "X", "name": "f", "pid": 1, "tid": 1, "ts": 1000 + 10 * each, "dur": 9} for each in range(9)]
    events.append({"ph": "X", "name": "f", "pid": 1, "tid": 1, "dur": 5, "ts": 86_400_000_000})
    for name, base in (("a", DAY), ("b", DAY + 7200 * S)):
        stated = {"schemaVersion": 1, "traceEvents": events, "baseTimeNanoseconds": base}
        (tmp_path / f"{name}.json").write_text(json.dumps(stated))
    found = Catalog().sessions(tmp_path)
    assert [(each.begun_ns, each.length_ns) for each in found] == [(DAY + 10**6, 89_000),
                                                                   (DAY + 7200 * S + 10**6, 89_000)]  # fmt: skip
    assert extent(b"[", b"") is None


def test_a_guessed_rank_is_marked_in_the_list_and_in_the_table(tmp_path, capsys):
    for number in (3, 4):
        trace(tmp_path / f"rank_{number}.json", DAY // 1000 + number * 7_200_000_000)
    trace(tmp_path / "x.json", DAY // 1000, rank=5, world=8)
    assert [each.ranks for each in Catalog().sessions(tmp_path)] == ["5", "3 ~", "4 ~"]
    assert main(["report", str(tmp_path), "recordings"]) == 0
    ranks = [line.split(" H100")[0].split()[-1] for line in capsys.readouterr().out.splitlines() if "H100" in line]
    assert ranks == ["5", "~3", "~4"]
    table = recordings(query_of(open_profile(tmp_path))).tables[0]
    assert list(zip(table.column("rank"), table.column("rank_guessed"), strict=True)) == [
        (5, False), (3, True), (4, True)]  # fmt: skip


def test_recordings_are_chosen_by_name_or_pattern(tmp_path, capsys):
    for number in (1, 2, 3):
        trace(tmp_path / f"w{number}.pt.trace.json", DAY // 1000 + number * 1e9)
    assert len(open_profile(tmp_path, recordings="w1*, w3.pt.trace.json").groups.sessions) == 2
    assert main(["report", str(tmp_path), "units", "--recordings", "w2*"]) == 0
    assert "w1" not in capsys.readouterr().out
    assert main(["report", str(tmp_path), "--recordings", "nothing"]) == 2
    assert "There is no recording 'nothing' in this folder. There are: w1" in capsys.readouterr().err
    files = [str(tmp_path / f"w{number}.pt.trace.json") for number in (1, 2)]
    assert main([*files, "--together"]) == 0
    assert "2 GPUs, 2 recordings" in capsys.readouterr().out
    assert main([files[0], str(tmp_path / "x" / "y"), "--together"]) == 2


def ascend(folder, start_us, *durations):
    output = folder / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    rows = [
        f"0,2,op{number},MatMul,AI_CORE,{start_us + 40 * number}.000\t,{each},0"
        for number, each in enumerate(durations)
    ]
    head = "Device_id,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
    (output / "kernel_details.csv").write_text("\n".join([head, *rows, ""]))
    (folder / "profiler_info_0.json").write_text("{}")


def test_recordings_of_one_rank_of_an_ascend_profile_are_listed_and_chosen(tmp_path):
    names = [f"host_77_2026060110{minute}00000_ascend_pt" for minute in (10, 11)]
    for name, start in zip(names, (1_780_308_600_000_000, 1_780_308_660_000_000), strict=True):
        ascend(tmp_path / name, start, 10, 20)
    found = Catalog().sessions(tmp_path)
    assert [(each.names, each.run, each.ranks) for each in found] == [((name,), 1, "0") for name in names]
    assert found[1].begun_ns - found[0].begun_ns == 60 * S
    assert len(open_profile(tmp_path).groups.sessions) == 2
    one = open_profile(tmp_path, recordings=names[1])
    assert len(one.groups.sessions) == 1
    assert one.event_count == 2
    with pytest.raises(UsageError, match="no recording 'other'"):
        open_profile(tmp_path, recordings="other")


@pytest.mark.parametrize(("after_us", "runs"), [(500, []), (5000, [1, 2])])
def test_timelines_of_ascend_tell_which_recordings_overlap(tmp_path, after_us, runs):
    for name, start in (("a_1", 0), ("b_2", after_us)):
        output = tmp_path / f"{name}_20260601101000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        begin = DAY // 1000 + start
        events = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Ascend Hardware"}},
                  *({"ph": "X", "name": "op", "pid": 1, "tid": 2, "ts": f"{begin + 100 * each}.000", "dur": 90,
                     "args": {"Task Type": "AI_CORE"}} for each in range(10))]  # fmt: skip
        (output / "trace_view.json").write_text(json.dumps(events))
    found = Catalog().sessions(tmp_path)
    assert [each.run for each in found] == runs
    assert all(each.length_ns == 990_000 for each in found)
    assert len(open_profile(tmp_path).groups.sessions) == max(len(found), 1)


def test_runs_of_several_sources_in_a_folder_are_captures_to_choose_from(tmp_path):
    ascend(tmp_path / "one" / "host_77_20260601101000000_ascend_pt", 1_780_308_600_000_000, 10)
    (tmp_path / "two").mkdir()
    trace(tmp_path / "two" / "w.pt.trace.json", DAY // 1000)
    catalog = Catalog()
    assert catalog.source_of(tmp_path) is None
    assert {path.parts[len(tmp_path.parts)] for path in catalog.find(tmp_path)} == {"one", "two"}
    assert catalog.source_of(tmp_path / "one").id == "ascend"
