"""Memory snapshots of PyTorch: values against a replay of the trace, damage, and pickles that are none."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import time
from pathlib import Path

import numpy as np
import pytest
from memory_snapshot import LINEAR, LINES, MIB, OUTER, Device, snapshot, train, write

from tpuprof_tui.__main__ import main
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.snapshot.read import pickled
from tpuprof_tui.views.registry import ask

OWN = ("model.py", "train.py")


def devices(steps=4, count=1, **more):
    found = [Device(number, 7 + number, more.pop("most", None) if number == 0 else None) for number in range(count)]
    for device in found:
        train(device, steps, **more)
    return found


def written(path: Path, record: object, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(record, protocol))
    return path


def line(frames: list[dict]) -> str:
    """The innermost frame of the made-up program."""
    frame = next(each for each in frames if each["filename"].endswith(OWN))
    return f"{frame['filename'].rpartition('/')[2]}:{frame['line']} {frame['name']}"


def replay(trace: list[dict]) -> tuple[int, dict[str, int], dict[str, int]]:
    """Peak of active memory; what holds it then, and at the end, by source line."""
    live: dict[int, dict] = {}
    active = peak = 0
    at_peak: dict[str, int] = {}

    def by_line() -> dict[str, int]:
        sums: dict[str, int] = {}
        for each in live.values():
            sums[line(each["frames"])] = sums.get(line(each["frames"]), 0) + each["size"]
        return sums

    for entry in trace:
        if entry["action"] == "alloc":
            live[entry["addr"]] = entry
            active += entry["size"]
            if active > peak:
                peak, at_peak = active, by_line()
        elif entry["action"] == "free_completed":
            active -= live.pop(entry["addr"])["size"]
    return peak, at_peak, by_line()


def held(profile, table: str) -> dict[tuple[str, str], int]:
    found = ask(profile, "held").table(table)
    return {(row[0], row[1]): row[2] for row in found.rows()}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("name", ["snapshot.pickle", "snapshot.pickle.gz"])
def test_what_holds_memory_is_what_a_replay_says(tmp_path, name, protocol):
    made = devices(count=2, leak=True)
    write(tmp_path / name, made, protocol)
    profile = open_profile(tmp_path / name)
    assert not profile.problems
    overview = ask(profile, "overview").table("gpus")
    for number, device in enumerate(made):
        peak, at_peak, at_end = replay(device.trace)
        gpu = f"GPU {number}"
        assert overview.row(number)[1] == peak
        assert {text: size for (of, text), size in held(profile, "peak_by_name").items() if of == gpu} == at_peak
        assert {text: size for (of, text), size in held(profile, "end_by_name").items() if of == gpu} == at_end
        used = sum(each["active_size"] for each in device.segments)
        assert overview.row(number)[4:6] == (used, sum(each["total_size"] for each in device.segments))
    events = sum(each["action"] == "alloc" for device in made for each in device.trace)
    assert profile.event_count == events


def test_counters_are_backwards_from_the_segments(tmp_path):
    (device,) = made = devices()
    write(tmp_path / "a.pickle", made)
    for counter, key in zip(
        open_profile(tmp_path / "a.pickle").counters, ("allocated", "active", "total"), strict=True
    ):
        assert counter.values[-1] == sum(each[f"{key}_size"] for each in device.segments)
        assert counter.values.min() >= 0
        assert (np.diff(counter.times) > 0).all()


def test_allocations_older_than_the_history_are_shown_from_its_beginning(tmp_path):
    whole, cut = (devices(most=most, leak=True) for most in (None, 150))
    write(tmp_path / "whole.pickle", whole)
    write(tmp_path / "cut.pickle", cut)
    one, other = (open_profile(tmp_path / f"{name}.pickle") for name in ("whole", "cut"))
    # what is held at the end, and by whom, is known all the same
    assert held(one, "end_by_name") == held(other, "end_by_name")
    frame = other.to_pandas()
    older = frame[frame["state"].str.endswith("older than the history")]
    assert (older["start"] == 0).all()
    assert {*older["state"]} == {"freed, older than the history", "held, older than the history"}
    (problem,) = other.problems
    assert problem.count == len(older)
    # the counters of both have the same values where both are known
    for ours, theirs in zip(one.counters, other.counters, strict=True):
        assert ours.values[-len(theirs) + 1 :].tolist() == theirs.values[1:].tolist()


def test_a_trace_that_contradicts_the_segments_is_said(tmp_path):
    (device,) = made = devices()
    record = snapshot(made)
    used = [block for segment in record["segments"] for block in segment["blocks"] if block["state"] != "inactive"]
    used[0]["state"] = "inactive"
    (problem,) = open_profile(written(tmp_path / "a.pickle", record)).problems
    assert problem.what == "Allocations of GPU 0 are held in the trace, but in no segment."
    assert problem.count == 1
    assert len(device.trace) > 1


def test_without_history_the_snapshot_is_shown(tmp_path):
    record = snapshot(devices())
    for segment in record["segments"]:
        for each in (segment, *segment["blocks"]):
            del each["frames"]
    path = written(tmp_path / "a.pickle", {"segments": record["segments"]})
    profile = open_profile(path)
    assert {each.what for each in profile.problems} == {
        "No history of allocations is recorded.", "No stacks are recorded."
    }  # fmt: skip
    active = sum(each["active_size"] for each in record["segments"])
    assert held(profile, "end_by_name") == {("GPU 0", "<not recorded>"): active}
    # a list of segments, as torch.cuda.memory_snapshot() returns it
    assert open_profile(written(path, record["segments"])).event_count == profile.event_count


def test_without_times_entries_are_in_their_order(tmp_path):
    (device,) = made = devices()
    for entry in device.trace:
        del entry["time_us"]
    write(tmp_path / "a.pickle", made)
    profile = open_profile(tmp_path / "a.pickle")
    assert [each.what for each in profile.problems] == ["The trace of GPU 0 has no times."]
    assert ask(profile, "overview").table("gpus").row(0)[1] == replay(device.trace)[0]


@pytest.mark.parametrize("leak", [False, True])
def test_a_growing_line_is_in_the_difference(tmp_path, capsys, leak):
    for name, steps in (("a", 2), ("b", 5)):
        write(tmp_path / f"{name}.pickle", devices(steps, leak=leak))
    paths = [str(tmp_path / f"{name}.pickle") for name in ("a", "b")]
    assert main(["diff", *paths]) == 0
    assert ("; train.py:44 train_step grew by " in capsys.readouterr().out.partition("\n")[0]) == leak
    assert main(["diff", *paths, "held", "--json"]) == 0
    table = json.loads(capsys.readouterr().out)["views"]["held"]["tables"]["end_by_name"]
    place = [column["key"] for column in table["columns"]].index
    rows = {row[place("name")]: row[place("delta_bytes")] for row in table["rows"]}
    assert {name for name, delta in rows.items() if delta} == ({"train.py:44 train_step"} if leak else set())


def test_the_trace_and_the_state_of_the_allocator_are_tables(tmp_path):
    made = devices(count=2)
    write(tmp_path / "a.pickle", made)
    profile = open_profile(tmp_path / "a.pickle")
    trace, segments, blocks = (profile.table(name) for name in ("trace", "segments", "blocks"))
    entries = [entry for device in made for entry in device.trace]
    assert trace.values("action") == [entry["action"] for entry in entries]
    assert trace["addr"].tolist() == [entry["addr"] for entry in entries]
    assert segments["total_size"].tolist() == [each["total_size"] for device in made for each in device.segments]
    assert blocks["size"].tolist() == [each["size"] for device in made for segment in device.segments
                                       for each in segment["blocks"]]  # fmt: skip
    assert len(profile.table("out_of_memory")) == 0


def test_a_gate_is_about_memory(tmp_path, capsys):
    for name, steps in (("a", 2), ("b", 5)):
        write(tmp_path / f"{name}.pickle", devices(steps, leak=True))
    asked = ["gate", str(tmp_path / "b.pickle"), "--against", str(tmp_path / "a.pickle"), "--fail-on"]
    assert main([*asked, "overview.end_active_bytes>1%"]) != 0
    assert capsys.readouterr().out.startswith("FAIL\n")
    assert main([*asked, "overview.end_active_bytes>90%"]) == 0


def test_failed_allocations_lead_and_are_findings(tmp_path, capsys):
    (device,) = made = devices()
    device.out_of_memory(600 * MIB, 200 * MIB, [LINEAR, LINES[88, "forward"], *OUTER])
    write(tmp_path / "a.pickle", made)
    assert main(["report", str(tmp_path / "a.pickle"), "overview", "findings", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["sentence"].startswith("1 allocation failed; ")
    assert "An allocation of 600.0 MiB failed: " in json.dumps(record)


def test_little_use_of_what_is_reserved_is_a_finding(tmp_path):
    for name, sizes in (("much", (1,)), ("little", (19,))):
        device = Device(0, 1)
        for size in sizes:
            device.allocate(size * MIB + 1, OUTER)
        write(tmp_path / f"{name}.pickle", [device])
        rules = ask(open_profile(tmp_path / f"{name}.pickle"), "findings").table("findings").column("rule")
        assert ("fragmented" in rules) == (name == "much")
        assert "held_by_one" in rules


def test_no_line_holds_most(tmp_path):
    device = Device(0, 1)
    for number in range(10):
        device.allocate(MIB, [{"filename": f"/job/{number}.py", "line": 1, "name": "f"}])
    write(tmp_path / "a.pickle", [device])
    assert "held_by_one" not in ask(open_profile(tmp_path / "a.pickle"), "findings").table("findings").column("rule")


@pytest.mark.parametrize("words", [
    ["summary"], ["info"], ["report", "--filter", "bytes>10M"], ["report", "--range", "1ms..2ms"],
    ["report", "--filter", "pool=large stream=0"], ["instructions", "--filter", "state~held"], ["describe"],
])  # fmt: skip
def test_every_command_answers(tmp_path, capsys, words):
    write(tmp_path / "a.pickle", devices(count=2))
    assert main([words[0], str(tmp_path / "a.pickle"), *words[1:]]) == 0
    assert "busy" not in capsys.readouterr().out.lower() or words[0] in ("describe", "info")


def test_it_is_exported(tmp_path):
    write(tmp_path / "a.pickle", devices())
    assert main(["export", str(tmp_path / "a.pickle"), str(tmp_path / "out")]) == 0
    assert len(os.listdir(tmp_path / "out")) > 2


# -- damage and hostile pickles


def test_a_cut_file_shows_what_comes_before_or_says_where_it_ends(tmp_path):
    (device,) = made = devices(2)
    data = pickle.dumps(snapshot(made), 4)
    path, counts, refused = tmp_path / "snapshot.pickle", [], []
    for size in range(30, len(data), 183):
        path.write_bytes(data[:size])
        try:
            profile = open_profile(path)
        except UnreadableError as error:
            refused.append(str(error))
            continue
        counts.append(profile.event_count)
        problem = next(each for each in profile.problems if each.what.startswith("The pickle is not whole"))
        assert 0 <= problem.offset <= size
        assert problem.file == path.name
        # the trace ends before the snapshot: what is in the segments is not what is held at its end
        if any(map(len, profile.lanes)) and len(profile.table("trace")):
            assert not any("older than" in each.what for each in profile.problems)
            entries = device.trace[: len(profile.table("trace"))]
            assert ask(profile, "overview").table("gpus").row(0)[1] == replay(entries)[0]
    assert counts[-1] > 100
    assert len(counts) > 33 > len(refused)
    assert all("the end of the file at offset" in each for each in refused)


class Evil:
    """What a pickle calls."""

    def __init__(self, *arguments: object) -> None:
        self.arguments = arguments

    def __reduce__(self):
        return os.mkdir, self.arguments


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_nothing_is_called(tmp_path, protocol):
    record = snapshot(devices(1))
    record["segments"].append(Evil(str(tmp_path / "made")))
    path = written(tmp_path / "a.pickle", record, protocol)
    with pytest.raises(UnreadableError, match=r"names a function at offset [\d,]+. Nothing of it was executed"):
        open_profile(path)
    assert not (tmp_path / "made").exists()


START = b"\x80\x04}\x94(\x8c\x08segments\x94]\x94"
CALLS = {
    "global": b"cos\nsystem\n", "stack global": b"\x8c\x02os\x94\x8c\x06system\x94\x93", "reduce": b"K\x01)R",
    "inst": b"(ios\nsystem\n", "obj": b"(K\x01o", "newobj": b"K\x01)\x81", "newobj_ex": b"K\x01)}\x92",
    "build": b"}}b", "ext1": b"\x82\x01", "ext2": b"\x83\x01\x00", "ext4": b"\x84\x01\x00\x00\x00", "persid": b"P1\n",
    "binpersid": b"K\x01Q", "next_buffer": b"\x97", "readonly_buffer": b"K\x01\x98",
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_opcodes_that_call_are_refused_with_their_offset(tmp_path, name):
    path = tmp_path / "a.pickle"
    path.write_bytes(START + CALLS[name] + b"u.")
    with pytest.raises(UnreadableError, match=r"offset \d+. Nothing of it was executed"):
        open_profile(path)


BOMBS = {
    "length": b"\x58\xff\xff\xff\xff",
    "length of 8 bytes": b"\x8d" + b"\xff" * 8,
    "long": b"\x8b\xff\xff\xff\x7f",
    "deep": b"(" * 100_000 + b"]" * 100_000,
    "tuples": b")" + b"\x85" * 300_000,
    "doubling": b"]\x94" + b"".join(b"]\x94(h\x02h\x02e0" for _ in range(100)),
    "in itself": b"h\x02h\x02a" * 1000,
    "memo": b"\x94" * 1_200_000,
    "place in the memo": b"r\xff\xff\xff\x7f",
    "dicts": b"}" * 1_200_000,
    "unhashable": b"}(]K\x01u",
    "odd": b"}(K\x01u",
    "marks": b"(" * 400_000 + b"e",
    "no stack": b"0" * 100,
    "same event": b"(}\x94(\x8c\x06action\x94\x8c\x05alloc\x94u" + b"h\x03" * 100_000 + b"e",
}


@pytest.fixture
def an_eighth(monkeypatch):
    """An eighth of the bounds: what is told of them is the same, and comes sooner."""
    for name in ("_CHUNK", "_MOST_KEPT"):
        monkeypatch.setattr(pickled, name, getattr(pickled, name) // 8)


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_end_soon_with_a_sentence(an_eighth, tmp_path, name):
    resource = pytest.importorskip("resource")
    path = tmp_path / "a.pickle"
    path.write_bytes(START + BOMBS[name] + b"u.")
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(UnreadableError):
        open_profile(path)
    assert time.monotonic() - begun < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 17


def test_an_entry_that_is_referred_to_again_counts_once(tmp_path):
    entry = {"action": "alloc", "addr": 1, "size": 512, "stream": 0, "time_us": 1_700_000_000_000_000, "frames": []}
    path = written(tmp_path / "a.pickle", {"device_traces": [[entry] * 5000], "segments": []})
    assert open_profile(path).event_count == 1


def test_hostile_values_are_shown_as_missing(tmp_path):
    trace = [
        {"action": "alloc", "addr": value, "size": size, "stream": [1], "time_us": when, "frames": frames}
        for value, size, when, frames in (
            (1, -5, -1, "x"), ("2", 1 << 70, 1 << 70, [1, 2]), (None, 512, 1_700_000_000_000_000, [{"filename": 3}]),
            (1 << 62, 1 << 62, 3_999_999_999_999_999,
             [{"filename": "\x1b[31m[red]</script>\ud800", "line": [], "name": {}}]),
        )
    ]  # fmt: skip
    trace += [
        {"action": "workspace_snapshot", "size": 1},
        {"action": ["alloc"]},
        {"action": "oom", "size": 1, "device_free": "x"},
        {"action": "other"},
    ]
    path = tmp_path / "a.pickle"
    profile = open_profile(
        written(path, {"device_traces": [trace, None, 3], "segments": [], "allocator_settings": [1]})
    )
    assert profile.event_count == 4
    told = {each.what: each.count for each in profile.problems}
    assert "Sizes are missing or impossible." in told
    assert told["Entries of the trace are of unknown kinds."] == 3
    assert all((lane["stream"] == INT_MISSING).all() for lane in profile.lanes)
    for view in ("overview", "held", "fragmentation", "findings"):
        ask(profile, view)


def test_a_packed_bomb_is_cut(an_eighth, tmp_path):
    path = tmp_path / "a.pickle.gz"
    path.write_bytes(gzip.compress(START + b"]" * (1 << 24), 1))
    with pytest.raises(UnreadableError, match="more objects than a snapshot has"):
        open_profile(path)


def test_other_pickles_are_not_recognised(tmp_path):
    for number, record in enumerate(([1, 2], {"weights": [1.0]}, "segments")):
        path = written(tmp_path / f"memory_snapshot{number}.pickle", record)
        with pytest.raises(UnreadableError, match="no known"):
            open_profile(path)


def test_a_pickle_of_several_parts_is_read_as_one(tmp_path):
    data = pickle.dumps(snapshot(devices(40)), 4)
    assert data.count(b"\x95") > 2
    path = tmp_path / "a.pickle"
    path.write_bytes(data)
    profile = open_profile(path)
    assert not profile.problems
    table = profile.table("segments")
    assert {*table.values("segment_pool_id")} == {"0, 0"}
