"""Host traces: their slices, how they are laid beside the device, and what damaged ones give."""

from __future__ import annotations

import gzip
import json
import os
import socket
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from profiles import make_lane, make_profile, small_profile

from tpuprof_tui import open_profile
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Profile, Severity
from tpuprof_tui.model.sublanes import nested_depths
from tpuprof_tui.sources.chrome import inflate
from tpuprof_tui.sources.chrome.columns import exact_ns
from tpuprof_tui.sources.chrome.host_trace import read_host_trace
from tpuprof_tui.sources.sophgo.read.host_trace import MARKS, with_host_trace

HERE = Path(__file__).resolve().parent
from kept_captures import DATA, kept_truth, unpacked  # noqa: E402

HOST_TRACE = DATA / "host" / "aks_host_trace.host_trace.json"
SAMPLE = DATA.parent.parent / "samples" / "aks_host_trace"


def event(name="op", cat="cpu_op", ts="10", dur="5", *, tid=1, ph="X"):
    quoted = json.dumps(name), json.dumps(cat)
    length = f', "dur": {dur}' if dur is not None else ""
    return f'{{"ph": "{ph}", "name": {quoted[0]}, "cat": {quoted[1]}, "pid": 1, "tid": {tid}, "ts": {ts}{length}}}'


def host_file(folder: Path, *events: str, name="host.json") -> Path:
    path = folder / name
    path.write_text(f'{{"traceEvents": [{", ".join(events)}]}}', encoding="utf-8")
    return path


def device(tail_ns=1000, tail_offset_ns=300) -> Profile:
    lane = make_lane("TIU", 0, starts=[0, 500], ends=[400, 1000])
    return replace(make_profile([lane]), tail_ns=tail_ns, tail_offset_ns=tail_offset_ns)


LAUNCH = event("kernel", "tpudnn", "100", "5")
CLOSING = event("disable_profile", "tpudnn", "200.5", "100.25")


# -- alignment ----------------------------------------------------------------


def test_instructions_lie_where_they_truly_ran(tmp_path):
    """The first work of every engine of every core, against the truth of the capture."""
    joined = with_host_trace(open_profile(unpacked("aks_host_trace", tmp_path)), HOST_TRACE)
    truth = kept_truth("aks_host_trace")
    # kept truths count from the first instruction
    zero = truth.meta["host_zero_us"] * 1000 + truth.meta["reference_zero_ns"]
    for lane in joined.lanes:
        if lane.kind in ("TIU", "GDMA"):
            columns = truth.lanes[(lane.kind, joined.unit_number(lane))]
            work = np.flatnonzero(columns["infra"] == 0)
            goal = columns["start_ns"][work] + zero
            assert np.abs(lane["start"] + joined.facts["host_base_ns"] - goal).max() < 2
    assert joined.facts["host_alignment"] == "exact"


def test_the_sample_is_aligned_exactly_too():
    joined = with_host_trace(open_profile(SAMPLE), SAMPLE / "host_trace.json")
    assert joined.facts["host_alignment"] == "exact"
    launches = joined.lanes[-1]
    assert (launches.kind, launches.label, joined.groups.label(launches.group)) == ("HOST", "tpudnn op", "Host")
    # the host launches before the device runs, and both are of one run
    assert -1_000_000 < int(launches["start"][0]) < joined.lane("TIU", 0)["end"].max()


def test_the_tail_anchor_is_exact_to_the_ns_since_1970(tmp_path):
    closing = event("disable_profile", "tpudnn", "1700000000123456.7891", "0.0012")
    early = event("disable_profile", "tpudnn", "1700000000000000", "1")
    path = host_file(tmp_path, LAUNCH, closing, early)
    joined = with_host_trace(device(tail_ns=1000, tail_offset_ns=300), path)
    assert joined.facts["host_base_ns"] == joined.wall_ns == 1_700_000_000_123_456_790 - 300 - 1000
    assert not joined.problems


@pytest.mark.parametrize(
    ("profile", "events", "word"),
    [
        (device(tail_offset_ns=None), [LAUNCH, CLOSING], "tail_offset_ns"),
        (device(), [LAUNCH], "disable_profile"),
        (device(tail_ns=None), [LAUNCH, CLOSING], "records"),
        (device(tail_offset_ns=10**30), [LAUNCH, CLOSING], "tail_offset_ns=1000"),
        (device(tail_offset_ns=-(10**19)), [LAUNCH, CLOSING], "is not possible"),
    ],
)
def test_without_an_anchor_the_first_launch_stands_in_and_says_so(profile, events, word, tmp_path):
    first = event("first", "tpudnn", "1000.7", "0.2345")
    joined = with_host_trace(profile, host_file(tmp_path, event(), first, *events))
    assert joined.facts["host_base_ns"] == 1_000_934
    assert joined.wall_ns is None
    assert word in joined.facts["host_alignment"]
    (problem,) = joined.problems
    assert problem.severity is Severity.WARNING
    assert word in problem.done


@pytest.mark.parametrize("moment", ["-4611686018427386.9", "4611686018427386.9", "-1", "0"])
def test_times_at_the_edge_of_what_can_be_do_not_wrap(moment, tmp_path):
    path = host_file(tmp_path, event("far", ts=moment, dur="0"), event("k", "tpudnn", moment, "0"), LAUNCH, CLOSING)
    for profile in (device(), device(tail_offset_ns=None)):
        joined = with_host_trace(profile, path)
        base = joined.facts["host_base_ns"]
        goal = int(exact_ns(f"{moment},".encode())[0])
        cpu, launches = (sorted(int(start) + base for start in lane["start"]) for lane in joined.lanes[-2:])
        assert cpu == [goal]
        assert launches == sorted([goal, 100_000])


def test_with_nothing_to_align_by_nothing_is_shown(tmp_path):
    joined = with_host_trace(device(tail_offset_ns=None), host_file(tmp_path, event(), CLOSING))
    assert len(joined.lanes) == 1
    assert "host_base_ns" not in joined.facts
    assert [problem.severity for problem in joined.problems] == [Severity.WARNING]


# -- lanes --------------------------------------------------------------------


def test_slices_are_laid_on_the_devices_time_line(tmp_path):
    path = host_file(tmp_path, event("a", ts="10.0005", dur="5.9999"), LAUNCH, CLOSING)
    joined = with_host_trace(device(), path)
    base = 300_750 - 300 - 1000
    cpu, launches = joined.lanes[-2:]
    assert (cpu["start"] + base).tolist() == [10_000]
    assert (cpu["end"] + base).tolist() == [16_000]
    assert [joined.text("name", int(code)) for code in launches["name"]] == ["kernel"]
    assert [joined.text("type", int(code)) for code in launches["type"]] == ["tpudnn"]
    assert joined.text("engine", int(cpu["engine"][0])) == "HOST"
    assert launches["duration"].tolist() == [5000]


def test_the_profilers_own_slices_are_left_out(tmp_path):
    names = ["PyTorch Profiler (0)", "enable_profile", "disable_profile"]
    names += [f"my_ops::{name}" for name in names[1:]]
    own = [event(name, cat) for name in names for cat in ("cpu_op", "tpudnn")]
    found = read_host_trace(host_file(tmp_path, *own, LAUNCH), MARKS)
    assert [found.texts[code] for code in found.events.name] == ["kernel"]


def test_only_complete_events_and_pairs_are_slices(tmp_path):
    others = [event(ph=phase) for phase in "iMsfC"]
    pair = [event(ph="B", dur=None), event(ph="E", ts=15, dur=None)]
    found = read_host_trace(host_file(tmp_path, *others, LAUNCH, *pair), MARKS).events
    assert (found.end - found.start).tolist()[1:] == [5_000]


def test_a_slice_without_a_length_has_none(tmp_path):
    found = read_host_trace(host_file(tmp_path, event(dur=None), LAUNCH), MARKS)
    assert found.events.end[0] == found.events.start[0] == 10_000
    assert not found.problems


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "null", "true", '"x"', "[1]", "1e300", "-1", "9" * 400])
def test_lengths_that_cannot_be_cost_their_slice_alone(bad, tmp_path):
    found = read_host_trace(host_file(tmp_path, event(dur=bad), LAUNCH), MARKS)
    assert len(found.events) == 1
    errors = [problem for problem in found.problems if problem.severity is Severity.ERROR]
    assert [problem.count for problem in errors] == [1]


@pytest.mark.parametrize(
    ("change", "severity"),
    [
        (lambda text: text + text, Severity.ERROR),
        (lambda text: text.replace('"ph"', "ph", 1), Severity.ERROR),
        (lambda text: text.rstrip().removesuffix("}"), Severity.WARNING),
    ],
)
def test_what_is_lost_of_a_host_trace_is_an_error(change, severity, tmp_path):
    path = host_file(tmp_path, event(), LAUNCH)
    path.write_text(change(path.read_text()))
    found = read_host_trace(path, MARKS)
    assert len(found.events) >= 1
    assert [problem.severity for problem in found.problems] == [severity]
    assert found.problems[0].done


def test_times_in_quotes_are_times(tmp_path):
    found = read_host_trace(host_file(tmp_path, event(ts='"12.5"', dur='"1"'), LAUNCH), MARKS)
    assert found.events.start.tolist() == [12_500, 100_000]


def test_names_that_are_none_and_names_beyond_bounds(tmp_path):
    path = host_file(tmp_path, '{"ph": "X", "ts": 1, "dur": 1, "name": null, "cat": {}, "tid": [], "pid": {}}',
                     '{"ph": "X", "ts": 1, "dur": 1}', event("\ud800"), event("n" * 100_000), LAUNCH)  # fmt: skip
    found = read_host_trace(path, MARKS)
    names = [found.texts[code] for code in found.events.name]
    assert names[:3] == ["unknown", "unknown", "?"]
    assert len(names[3]) == 4096
    for name in names:
        name.encode("utf-8")


def test_device_lanes_and_codes_stay_as_they_were():
    profile = replace(small_profile(2), tail_offset_ns=10)
    joined = with_host_trace(profile, HOST_TRACE)
    for lane, before in zip(joined.lanes, profile.lanes, strict=False):
        assert (lane.kind, lane.label, lane.number, len(lane)) == (
            before.kind,
            before.label,
            before.number,
            len(before),
        )
        for key in ("start", "end", "name", "kernel", "role"):
            assert lane[key].tolist() == before[key].tolist()
    for key, strings in profile.strings.items():
        assert list(joined.strings[key])[: len(strings)] == list(strings)
    assert len(joined.strings["name"]) == len(set(joined.strings["name"]))


def test_depth_is_the_sublane_and_the_lane_is_in_order(tmp_path):
    path = host_file(tmp_path, event("inner", ts="20", dur="5"), event("outer", ts="10", dur="50"),
                     event("same start", ts="10", dur="30"), event("other thread", ts="12", dur="3", tid=2),
                     event("crosses", ts="55", dur="10"), LAUNCH, CLOSING)  # fmt: skip
    joined = with_host_trace(device(), path)
    cpu = joined.lanes[-2]
    names = [joined.text("name", int(code)) for code in cpu["name"]]
    assert names == ["outer", "same start", "other thread", "inner", "crosses"]
    depths = dict(zip(names, cpu["sublane"].tolist(), strict=True))
    assert (depths["outer"], depths["same start"], depths["inner"]) == (0, 1, 2)
    assert len({depths[name] for name in ("outer", "other thread", "crosses")}) == 3
    assert cpu.sublanes == 5
    assert cpu["order"].tolist() == [1, 2, 3, 0, 4]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(0, 2)), max_size=40))
def test_events_of_a_sublane_do_not_overlap(rows):
    rows = sorted(rows, key=lambda row: (row[0], -row[1]))
    start = np.array([row[0] for row in rows], dtype=np.int64)
    end = start + np.array([row[1] for row in rows], dtype=np.int64)
    sublane, nest, count = nested_depths(start, end, np.array([row[2] for row in rows]))
    assert count == int(sublane.max(initial=0)) + 1
    for number in range(count):
        mine = sublane == number
        assert (start[mine][1:] >= end[mine][:-1]).all()
        assert len(set(nest[mine].tolist())) <= 1
    for number in set(nest.tolist()):
        assert len({rows[place][2] for place in np.flatnonzero(nest == number).tolist()}) == 1


# -- files --------------------------------------------------------------------


def test_compressed_files_are_read_by_their_bytes(tmp_path):
    plain = read_host_trace(HOST_TRACE, MARKS)
    for name in ("host.json.gz", "host.json"):
        (tmp_path / name).write_bytes(gzip.compress(HOST_TRACE.read_bytes()))
        packed = read_host_trace(tmp_path / name, MARKS)
        assert packed.events.start.tolist() == plain.events.start.tolist()


@pytest.mark.parametrize("keep", [0.3, 0.7, 0.98])
def test_a_cut_compressed_file_gives_what_is_before(keep, tmp_path):
    events = [event(f"op {number}", ts=str(number * 10)) for number in range(20_000)]
    whole = gzip.compress(host_file(tmp_path, LAUNCH, *events).read_bytes())
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(whole[: int(len(whole) * keep)])
    found = read_host_trace(cut, MARKS)
    assert 0 < len(found.events) < 20_001
    assert [problem.severity for problem in found.problems] == [Severity.ERROR]


def test_damage_within_a_compressed_file_is_told(tmp_path):
    events = [event(f"op {number}", ts=str(number * number)) for number in range(20_000)]
    data = bytearray(gzip.compress(host_file(tmp_path, LAUNCH, *events).read_bytes()))
    data[len(data) // 2 : len(data) // 2 + 8] = b"\xff" * 8
    path = tmp_path / "bad.json.gz"
    path.write_bytes(bytes(data))
    found = read_host_trace(path, MARKS)
    assert 5000 < len(found.events) < 15_000
    assert found.problems[0].severity is Severity.ERROR


def test_members_of_a_compressed_file_follow_one_another(tmp_path):
    text = HOST_TRACE.read_bytes()
    path = tmp_path / "members.json.gz"
    path.write_bytes(gzip.compress(text[:2000]) + gzip.compress(text[2000:]) + bytes(512))
    found = read_host_trace(path, MARKS)
    assert found.events.end.tolist() == read_host_trace(HOST_TRACE, MARKS).events.end.tolist()
    assert not found.problems


def test_a_text_without_end_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(inflate, "ALWAYS_UNPACKED", 1 << 20)
    monkeypatch.setattr(inflate, "MOST_UNPACKED", 1)
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(f'{{"traceEvents": [{LAUNCH},'.encode())
        for _ in range(64):
            stream.write(b" " * (1 << 20))
    found = read_host_trace(path, MARKS)
    assert len(found.events) == 1
    assert found.problems[0].severity is Severity.ERROR


def test_a_small_file_that_unpacks_without_end_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(inflate, "ALWAYS_UNPACKED", 1 << 20)
    path = tmp_path / "bomb.json.gz"
    event = LAUNCH.encode() + b","
    count = (16 << 20) // len(event)
    with gzip.open(path, "wb") as stream:
        stream.write(b'{"traceEvents": [' + event * count)
    found = read_host_trace(path, MARKS)
    held = inflate.ALWAYS_UNPACKED + inflate.MOST_UNPACKED * path.stat().st_size
    assert held / len(event) * 0.9 < len(found.events) < (held + (4 << 20)) / len(event) < 0.9 * count
    assert "too long for such" in found.problems[0].what
    assert found.problems[0].severity is Severity.ERROR
    assert found.problems[0].offset >= held


def test_progress_reaches_the_size_of_the_file():
    told: list[tuple[int, int]] = []
    read_host_trace(HOST_TRACE, MARKS, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (HOST_TRACE.stat().st_size,) * 2


@pytest.mark.parametrize("content", [b"", b"hello", b"{}", b"\x00" * 100, b'{"traceEvents": {}}'])
def test_what_is_no_trace_is_one_sentence(content, tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match="traceEvents"):
        read_host_trace(path, MARKS)


def test_a_damaged_file_without_any_event_is_told(tmp_path):
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(HOST_TRACE.read_bytes())[:12])
    found = read_host_trace(path, MARKS)
    assert not len(found.events)
    assert found.problems[0].severity is Severity.ERROR


def test_missing_files_and_folders_are_one_sentence(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(UnreadableError):
            with_host_trace(device(), path)


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "link to a pipe"])
def test_what_is_no_file_is_one_sentence_and_not_waited_for(kind, tmp_path):
    path = tmp_path / "trace.json"
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(str(path))
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to("pipe")
        path = tmp_path / "pipe" if kind == "pipe" else path
    with pytest.raises(UnreadableError, match="not a regular file"):
        with_host_trace(device(), path)
