"""PyTorch traces as they are read: against a slow and obvious reader on random ones, and damaged ones."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zipfile
import zlib
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kept_traces import unpacked_trace
from sections_here import READ_FROM, by_several, in_process

from tpuprof_tui import child_process, open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.units import MISSING
from tpuprof_tui.model import INT_MISSING, Severity
from tpuprof_tui.model.mapped_arrays import MappedArrays
from tpuprof_tui.sources.chrome import chunks, collector, inflate, processes
from tpuprof_tui.sources.chrome.columns import exact_ns, text_of_times
from tpuprof_tui.sources.torch.categories import Kind
from tpuprof_tui.sources.torch.read import arguments as ev
from tpuprof_tui.sources.torch.read import trace_reader
from tpuprof_tui.sources.torch.read.dependencies import flow_ends_of
from tpuprof_tui.sources.torch.read.trace import Trace
from tpuprof_tui.sources.torch.read.trace_reader import read_trace
from tpuprof_tui.sources.torch.records import device_name
from tpuprof_tui.sources.torch.views.by_name import operators
from tpuprof_tui.views.cells import CellFormats


def exactly(text: str) -> int:
    return int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_EVEN))


def slow(path: Path) -> list[tuple[str, str, str, str, int, int]]:
    """All complete events: process, thread, name, category, start and end in ns of the file's clock."""
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    found = json.loads(text, parse_float=Decimal)
    events = found["traceEvents"] if isinstance(found, dict) else found
    complete = [each for each in events if each["ph"] == "X" and "ts" in each and "dur" in each]
    return sorted((str(each["pid"]), str(each["tid"]), each["name"], each["cat"], exactly(str(each["ts"])),
                   exactly(str(each["ts"])) + max(exactly(str(each["dur"])), 0)) for each in complete)  # fmt: skip


def told(trace: Trace) -> list[tuple[str, str, str, str, int, int]]:
    """The same of what was read."""
    rows = np.arange(len(trace))
    threads = [trace.threads[each] for each in trace.thread_of(rows).tolist()]
    return sorted(
        (*thread, trace.names[name], trace.categories[category], start + trace.zero_ns, end + trace.zero_ns)
        for thread, name, category, start, end in zip(
            threads, trace.name.tolist(), trace.category.tolist(), trace.start.tolist(), trace.end.tolist(), strict=True
        )
    )


TIMES = st.builds(
    lambda whole, part: f"{whole}{part}",
    st.one_of(st.integers(0, 200), st.integers(1_695_835_535_123_000, 1_695_835_535_124_000)),
    st.sampled_from(["", ".0", ".5", ".21", ".123", ".999", ".0005", ".12345", "e0"]),
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"ph": st.sampled_from(["X", "X", "X", "i", "s"]),
         "cat": st.sampled_from(["cpu_op", "kernel", "Runtime", "new"]),
         "name": st.sampled_from(["a", 'b"}, {"ph": "X"', "ü", "[memory]", "c\\"]), "pid": st.integers(0, 2),
         "tid": st.one_of(st.integers(0, 2), st.sampled_from(["stream 7", "0"])), "ts": TIMES, "dur": TIMES},
        optional={"args": st.fixed_dictionaries(
            {}, optional={"correlation": st.integers(0, 9), "External id": st.one_of(st.integers(), st.none()),
                          "Input Dims": st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=2),
                          "parts": st.lists(st.just({"ph": "X", "name": "inside"}), max_size=3)},
        )},
    ),
    max_size=40,
)  # fmt: skip


def written(events: list[dict], *, bare: bool = False, indent: int | None = None) -> str:
    """A trace, its times as numbers."""
    text = json.dumps(events if bare else {"before": {"traceEvents": 1}, "traceEvents": events, "behind": [1, "}]"]},
                      indent=indent, ensure_ascii=False)  # fmt: skip
    for each in events:
        for key in ("ts", "dur"):
            text = text.replace(f'"{key}": "{each[key]}"', f'"{key}": {each[key]}')
    return text


@settings(max_examples=80, deadline=None)
@given(events=EVENTS, bare=st.booleans(), packed=st.booleans(), indent=st.sampled_from([None, 2]),
       chunk=st.sampled_from([64, 300, 1000, 512 << 10]), count=st.sampled_from([1, 2, 3, 6]))  # fmt: skip
def test_events_are_those_of_a_slow_reader(tmp_path_factory, events, bare, packed, indent, chunk, count):
    path = tmp_path_factory.mktemp("random") / "some.json"
    text = written(events, bare=bare, indent=indent).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(chunks, "CHUNK", chunk)
        by_several(patched, count=count)
        # as it was recorded, with the times of two epochs
        patched.setattr(trace_reader, "without_implausible", lambda trace: (trace, None))
        if not any(each["ph"] == "X" or (each["name"] == "[memory]" and each["ph"] == "i") for each in events):
            with pytest.raises(UnreadableError, match="holds no events"):
                read_trace(path)
            return
        trace = read_trace(path)
    assert told(trace) == slow(path)
    arguments = [each.get("args", {}) for each in events if each["ph"] == "X"]
    beyond = sum(not -(1 << 63) <= (each.get("External id") or 0) < 1 << 63 for each in arguments)
    problems = [each for each in trace.problems if "unknown category" not in each.what]
    assert [(problem.count, "int64" in problem.what) for problem in problems] == [(beyond, True)] * bool(beyond)
    assert [trace.arguments.of(number) for number in range(len(trace))] == arguments
    if not bare:
        assert trace.metadata == {"before": {"traceEvents": 1}, "behind": [1, "}]"]}


NUMBERS = st.one_of(
    TIMES,
    st.integers(-(10**18), 10**18).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
)


@given(st.lists(NUMBERS, max_size=20))
def test_times_are_exact(texts):
    found = exact_ns(text_of_times([text.encode() for text in texts])).tolist()
    for text, value in zip(texts, found, strict=True):
        exact = exactly(text)
        assert value == (exact if abs(exact) < 1 << 62 else INT_MISSING)


@pytest.mark.parametrize(
    "text", ["", "null", "NaN", "-", '"soon"', "1e999", "12345678901234567890", "--5", "1.2.3", '"1,5"']
)
def test_what_is_no_time_is_missing(text):
    assert exact_ns(text_of_times([b"5", text.encode(), b"1.5"])).tolist() == [5000, INT_MISSING, 1500]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return unpacked_trace("tl_bert_small_h100", tmp_path_factory.mktemp("traces")) / "h100.pt.trace.json.gz"


def test_arguments_are_read_from_the_middle_of_a_packed_file(sound, monkeypatch, tmp_path):
    events = json.loads(gzip.decompress(sound.read_bytes()))["traceEvents"]
    wanted = [each.get("args", {}) for each in events if each["ph"] == "X"]
    monkeypatch.setattr(inflate, "_RESTART_INTERVAL", 1 << 16)
    monkeypatch.setattr(chunks, "CHUNK", 1 << 15)
    path = tmp_path / sound.name
    path.write_bytes(sound.read_bytes())
    trace = read_trace(path)
    assert len(trace.arguments.restart_points) > 5
    rows = range(0, len(wanted), 97)
    assert [trace.arguments.of(number) for number in rows] == [wanted[number] for number in rows]
    path.write_bytes(sound.read_bytes() + b"\0")
    assert trace.arguments.of(0) == {}, "another file now"


def test_a_kept_trace_is_read_as_the_slow_reader_does(sound):
    assert told(read_trace(sound)) == slow(sound)


def same(one: Trace, other: Trace) -> bool:
    """Whether two traces hold the same, but for where pieces of the text begin."""

    def plain(value):
        if isinstance(value, msgspec.Struct):
            return {key: plain(each) for key, each in msgspec.structs.asdict(value).items()
                    if key not in ("arguments", "path", "problems")}  # fmt: skip
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, np.ndarray):
            return value.dtype.str, value.tobytes()
        return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value

    def in_words(trace):
        coded = {key: ["".join(trace.texts[code].split()) if code >= 0 else None for code in trace.work[key].tolist()]
                 for key in ("device", "stream", "grid", "block", "registers", "shared_memory")}  # fmt: skip
        name = [trace.names[code] for code in trace.name.tolist()]
        category = [trace.categories[code] for code in trace.category.tolist()]
        return plain(msgspec.structs.replace(trace, work={**trace.work, **coded}, name=name, category=category,
                                             names=(), categories=(), texts=()))  # fmt: skip

    return in_words(one) == in_words(other) and one.problems == other.problems


@pytest.mark.parametrize(("process", "count"), [(in_process, 2), (in_process, 7), (processes.child_processes, 3)])
def test_sections_of_a_trace_are_read_by_other_processes(sound, tmp_path, monkeypatch, process, count):
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.decompress(sound.read_bytes()))
    alone = read_trace(path, alone=True)
    by_several(monkeypatch, process, count)
    READ_FROM.clear()
    seen = []
    trace = read_trace(path, lambda *done: seen.append(done))
    assert same(trace, alone)
    assert len(trace.names) > 100
    assert trace.work["grid"].max() > 0
    assert len(trace.memory["time"])
    rows = range(0, len(trace), 37)
    assert [trace.arguments.of(row) for row in rows] == [alone.arguments.of(row) for row in rows]
    assert max(seen) <= (path.stat().st_size,) * 2
    assert process is not in_process or len(READ_FROM) == count - 1


@pytest.mark.parametrize("count", [1, 3])
def test_counter_series_that_are_left_out_are_a_problem_with_their_number(tmp_path, monkeypatch, count):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 1},
        *({"ph": "C", "name": f"c{number % 1007}", "pid": 1, "ts": number, "args": {"value": 1}}
          for number in range(1500)),
    ]))  # fmt: skip
    by_several(monkeypatch, count=count)
    trace = read_trace(path)
    (problem,) = trace.problems
    assert len(trace.counters) == 1000
    assert (problem.what, problem.count) == ("It has 7 counter series beyond 1,000.", 7)


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize(
    ("place", "old", "new"),
    [
        (0.9, b"", None),  # ends there
        (0.3, b"", None),
        (0.8, b'"ts": ', b'"ts": NaN, "was": '),
        (0.2, b'"ts": ', b'"ts": NaN, "was": '),
        (0.7, b'"ph": "X"', b'"ph": "Q"'),
        (0.2, b'"ph": "X"', b'"ph": "Q"'),
        (0.6, b'"name": "', b'"name": "\xff'),
        (0.8, b'"dur": ', b'"dur": -'),
        (0.75, b'"name"', b'"name'),
        (0.4999, b'"name"', b'"name'),
        (0.8, b'"args"', b'], "args"'),
    ],
)
def test_of_a_damaged_trace_several_processes_read_what_one_does(sound, tmp_path, monkeypatch, place, old, new, count):
    text = gzip.decompress(sound.read_bytes())
    at = text.index(old, int(len(text) * place))
    path = tmp_path / "trace.json"
    path.write_bytes(text[:at] if new is None else text[:at] + new + text[at + len(old) :])
    alone = read_trace(path, alone=True)
    assert alone.problems
    by_several(monkeypatch, count=count)
    assert same(read_trace(path), alone)


def test_where_the_border_was_none_or_the_other_process_ends_one_reads_all(sound, tmp_path, monkeypatch):
    events = [{"ph": "X", "cat": "cpu_op", "name": f"n{number}", "pid": 1, "tid": 1, "ts": number, "dur": 1}
              for number in range(40)]  # fmt: skip
    path = tmp_path / "nested.json"
    path.write_text(json.dumps([*events[:2], {**events[2], "args": {"parts": events}}, *events[3:5]]))
    with monkeypatch.context() as patched:
        by_several(patched)
        READ_FROM.clear()
        assert told(read_trace(path)) == slow(path)
        assert not READ_FROM
    path.write_text(json.dumps(events))
    with monkeypatch.context() as patched:
        by_several(patched, processes.child_processes)
        for words in (["false"], ["/no such program"]):
            patched.setattr(processes, "python_words", lambda *_, words=words: words)
            assert told(read_trace(path)) == slow(path)
        # nor where memory is short
        patched.setattr(collector, "child_processes", lambda *_: pytest.fail("it is not begun"))
        patched.setattr(collector, "memory_bytes", lambda: path.stat().st_size)
        assert told(read_trace(path)) == slow(path)


EVENT = b'{"ph": "X", "cat": "cpu_op", "name": "%s", "pid": 1, "tid": 1, "ts": 5, "dur": 2, "args": {%s}}'


@pytest.mark.parametrize(
    ("spoilt", "kept", "what"),
    [
        (EVENT % (b"a", b'"x": NaN'), 3, "not JSON"),
        (EVENT % (b"a", b'"x": N/A, "y": [01, -nan]'), 3, "not JSON"),
        (EVENT % (b"\xff\xfe", b""), 3, "UTF-8"),
        (EVENT % (b"line\nbreak", b""), 3, "control"),
        (EVENT % (b"a", b'"correlation": 99999999999999999999999'), 3, "int64"),
        (EVENT % (b"a", b'"External id": {"no": "number"}'), 3, ""),
        (EVENT % (b'un"quoted "name" f<"x"::y>', b""), 3, "escaped"),
        (EVENT % (b"a", b'"x" 5'), 2, "decoded"),
        (EVENT % (b"a", b'"x": ' + b"[" * 5000 + b"]" * 5000), 2, "decoded"),
        (b'{"ph": "X", "cat": "cpu_op", "name": "cut off, "tid', 2, "decoded"),
        (b"17", 2, "decoded"),
        (b'{"ph": "b", "id": 1, "name": "a", "pid": 1, "tid": 1, "ts": 5}', 2, "phase"),
        (b'{"name": "a", "pid": 1, "tid": 1, "ts": 5, "dur": 1}', 2, "phase"),
        (b'{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 5}', 2, "duration"),
        (b'{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 5, "dur": null}', 2, "duration"),
        (b'{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": "soon", "dur": 1}', 2, "duration"),
        (b'{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 5, "dur": -1}', 3, "negative duration"),
        (b'{"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5, "args": {"Addr": 18446744073709551616}}',
         2, "int64"),
    ],
)  # fmt: skip
def test_one_spoilt_event_costs_itself_alone_and_is_told_with_its_offset(tmp_path, spoilt, kept, what):
    path = tmp_path / "spoilt.json"
    good = EVENT % (b"good", b'"correlation": 5')
    text = b'{"traceEvents": [' + b",\n".join([good, spoilt, good]) + b'], "after": 1}'
    path.write_bytes(text)
    trace = read_trace(path)
    assert len(trace) == kept
    assert sum(trace.names[code] == "good" for code in trace.name.tolist()) == 2
    assert trace.metadata == {"after": 1}
    assert what in " ".join(problem.what for problem in trace.problems)
    first = text.index(b"\xff") if what == "UTF-8" else text.index(spoilt)
    assert [problem.offset for problem in trace.problems] == [first] * bool(what)


def parts_of(events: list[dict], lone: tuple[dict, ...] = ()) -> bytes:
    """Text of a trace whose complete events are written as begins and ends; those of the last thread in disorder."""
    parts = []
    for event in events:
        begin = {**event, "ph": "B"}
        end = {key: event[key] for key in ("pid", "tid")} | {"ph": "E", "ts": event["ts"] + begin.pop("dur")}
        parts.append((begin, end))
    ordered = [pair for pair in parts if pair[0]["tid"] < 3]
    flat = sorted((part for pair in ordered for part in pair), key=lambda part: (part["ts"], part["ph"] == "B"))
    flat += [part for pair in parts if pair[0]["tid"] == 3 for part in pair]
    return json.dumps({"traceEvents": [*lone, *flat]}).encode()


NESTED = [
    {"ph": "X", "cat": "cpu_op", "name": f"{name}{tid}", "pid": 1, "tid": tid, "ts": ts + tid, "dur": dur,
     "args": {"External id": ts, "Input Dims": [[ts, tid]]}}
    for tid in (1, 2, 3)
    for base in range(0, 8000, 100)
    for name, ts, dur in (("inner", base + 20, 20), ("same", base + 40, 20), ("outer", base + 10, 60))
]  # fmt: skip


@pytest.mark.parametrize("several", [False, True])
def test_slices_written_as_begin_and_end_are_those_written_as_one(tmp_path, monkeypatch, several):
    whole, parts = tmp_path / "whole.json", tmp_path / "parts.json"
    whole.write_text(json.dumps({"traceEvents": NESTED}))
    # an end before all begins, a begin behind all ends, and a complete event between them
    alone = {"cat": "cpu_op", "pid": 1, "tid": 1, "name": "alone"}
    alone = ({**alone, "ph": "E", "ts": 0}, {**alone, "ph": "B", "ts": 99_000}, {**NESTED[0], "ts": 98_000})
    parts.write_bytes(parts_of(NESTED, alone))
    if several:
        by_several(monkeypatch)
        READ_FROM.clear()
    found = read_trace(parts)
    assert bool(READ_FROM) >= several
    expected = [*slow(whole), ("1", "1", "inner1", "cpu_op", 98_000_000, 98_020_000),
                ("1", "1", "alone", "cpu_op", 99_000_000, 99_000_000)]  # fmt: skip
    assert told(found) == sorted(expected)
    assert {each.what: each.count for each in found.problems} == {
        "Begins of slices (ph B) without an end.": 1, "Ends of slices (ph E) without a begin.": 1,
    }  # fmt: skip
    # arguments are those of the begins
    rows = np.flatnonzero(found.named(lambda name: name.startswith("outer")))
    (shapes,), texts = found.arguments_at((ev.OPERATORS, rows))
    own = {texts[code] for code in shapes["shapes"].tolist()}
    assert own == {f"[[{base + 10}, {tid}]]" for tid in (1, 2, 3) for base in range(0, 8000, 100)}


def test_a_lost_end_costs_its_own_slice_alone(tmp_path):
    """Ends with names, of which one is lost, and one is of no slice that is open."""
    path = tmp_path / "lost.json"
    marks = [("B", "outer", 0), ("B", "inner", 10), ("B", "innermost", 20), ("E", "innermost", 30), ("E", "other", 35),
             ("E", "outer", 40), ("B", "next", 50), ("E", None, 60)]  # fmt: skip
    path.write_text(json.dumps([{"ph": phase, "cat": "cpu_op", "pid": 1, "tid": 1, "ts": ts}
                                | ({"name": name} if name else {}) for phase, name, ts in marks]))  # fmt: skip
    trace = read_trace(path)
    lengths = {
        trace.names[name]: end - start for name, start, end in zip(trace.name, trace.start, trace.end, strict=True)
    }
    assert lengths == {"outer": 40_000, "inner": 0, "innermost": 10_000, "next": 10_000}
    assert [each.count for each in trace.problems] == [1, 1]


def test_a_category_that_is_not_known_among_others_is_told(tmp_path):
    path = tmp_path / "hpu.json"
    path.write_text(json.dumps(NESTED[:3] + [{**NESTED[0], "cat": "hpu_kernel", "tid": 9}] * 2))
    (told,) = read_trace(path).problems
    assert (told.what, told.count, told.severity) == ("Events of unknown category (hpu_kernel).", 2, Severity.NOTE)


@pytest.mark.parametrize("behind", [17, 40, 56, 75, 120])
def test_what_stands_around_zeros_is_not_one_event(tmp_path, behind):
    """A part of a file that was never written, in texts and between them."""
    path = tmp_path / "hole.json"
    text = b",\n".join(EVENT % (b"good%d" % number, b'"correlation": 5') for number in range(9))
    path.write_bytes(b'{"traceEvents": [%b%b%b]}' % (text[:behind], bytes(300), text[behind + 300 :]))
    trace = read_trace(path)
    assert 4 <= len(trace) <= 6
    assert all(name.isprintable() for name in trace.names)
    assert "Events that cannot be decoded." in [problem.what for problem in trace.problems]


def test_a_trace_of_other_phases_alone_says_so(tmp_path):
    path = tmp_path / "asynchronous.json"
    path.write_text(json.dumps([{"ph": phase, "id": 1, "name": "a", "pid": 1, "tid": 1, "ts": 5} for phase in "bne"]))
    with pytest.raises(UnreadableError, match="3 events of phases"):
        read_trace(path)


@pytest.mark.parametrize(
    ("behind", "metadata", "what"),
    [
        (b'], "a": 1}\n{"traceEvents": []}', {"a": 1}, "after the trace"),
        (b'], "a": 1, "traceEvents": [5]}', {"a": 1}, "second list"),
        (b'], "a": 1, "b": {"c": ', {"a": 1}, "next to the events"),
    ],
)
def test_what_stands_behind_the_events_is_kept_as_far_as_it_is_sound(tmp_path, behind, metadata, what):
    path = tmp_path / "behind.json"
    path.write_bytes(b'{"traceEvents": [' + EVENT % (b"good", b"") + behind)
    trace = read_trace(path)
    assert (len(trace), trace.metadata) == (1, metadata)
    (problem,) = trace.problems
    assert what in problem.what
    assert problem.offset > 100


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999])
def test_a_trace_that_was_cut_off_keeps_all_whole_events(tmp_path, sound, share):
    text = gzip.decompress(sound.read_bytes())
    path = tmp_path / "cut.pt.trace.json"
    path.write_bytes(text[: int(len(text) * share)])
    whole = told(read_trace(sound))
    trace = read_trace(path)
    assert len(set(told(trace)) - set(whole)) == 0
    assert any("ends within its list" in problem.what for problem in trace.problems) or share == 0.999
    assert len(trace) > 0.5 * share * len(whole)


def test_damaged_gzip_keeps_what_comes_before(tmp_path, sound):
    raw = bytearray(sound.read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 40] = b"\0" * 40
    path = tmp_path / "damaged.json.gz"
    path.write_bytes(raw)
    trace = read_trace(path)
    assert len(trace)
    assert any("compressed" in problem.what for problem in trace.problems)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"\x1f\x8b", "nothing that can be unpacked. The compressed data are damaged"),
        (b"{}", "holds no list"),
        (b"12", "holds no list"),
        (b'{"traceEvents": 5}', "holds no list"),
        (b"no JSON at all", "holds no list"),
        ('{"traceEvents": [{"ph": "X"}]}'.encode("utf-16"), "It is UTF-16"),
        (gzip.compress(gzip.compress(b'{"traceEvents": [{"ph": "X"}]}', mtime=0), mtime=0), "It is packed twice"),
        (b"[]", "holds no events: its list of events is empty"),
        (b'{"traceEvents": [], "x": [{"a": 1}]}', "holds no events: its list of events is empty"),
        (
            b'{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "a"}}]}',
            "none with a duration",
        ),
        (b'{"traceEvents": [{"ph": "X", "name" 5}, {"ph": "X", "name" 5}]}', "2 cannot, the first at byte 17"),
        (b'{"traceEvents": [{"ph": "X", "na', "ends within the first"),
    ],
)
def test_what_holds_no_events_is_refused(tmp_path, content, what):
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=what):
        read_trace(path)


PACKERS = {
    "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress,
    "two members": lambda data: gzip.compress(data[:5000]) + gzip.compress(data[5000:]) + bytes(100),
    "two streams": lambda data: lzma.compress(data[:5000]) + lzma.compress(data[5000:]),
    "names": lambda data: _with_header(data, b"name\0comment\0"),
}  # fmt: skip


def _with_header(data: bytes, texts: bytes) -> bytes:
    """A gzip file whose header has further fields, name, comment and checksum."""
    deflate = zlib.compressobj(wbits=-15)
    body = deflate.compress(data) + deflate.flush()
    header = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x03\0abc" + texts + b"\0\0"
    return header + body + zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")


@pytest.mark.parametrize("packer", PACKERS)
def test_packed_traces_are_read(tmp_path, sound, packer):
    """Whatever the name; arguments are found in them again."""
    text = gzip.decompress(sound.read_bytes())
    path = tmp_path / "packed.json"
    path.write_bytes(PACKERS[packer](text))
    trace, plain = read_trace(path), read_trace(sound)
    assert told(trace) == told(plain)
    assert not trace.problems
    row = len(trace) // 2
    assert trace.arguments.of(row) == plain.arguments.of(row) != {}


@pytest.mark.parametrize("cut", [0, 3, 8])
@pytest.mark.parametrize("member", [0, 1])
def test_a_wrong_checksum_loses_no_text(tmp_path, sound, cut, member):
    text = gzip.decompress(sound.read_bytes())
    members = [bytearray(gzip.compress(text[:9000])), bytearray(gzip.compress(text[9000:]))]
    if cut and member:
        del members[1][-cut:]
    else:
        members[member][-6] ^= 1
    path = tmp_path / "wrong.json.gz"
    path.write_bytes(b"".join(members))
    trace = read_trace(path)
    assert told(trace) == slow(sound)
    (problem,) = trace.problems
    assert "checksum is wrong" in problem.what
    assert problem.severity.word == "error"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_a_packed_text_without_end_is_cut(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(inflate, "ALWAYS_UNPACKED", 1 << 20)
    monkeypatch.setattr(inflate, "MOST_UNPACKED", 1)
    path = tmp_path / "bomb.json"
    path.write_bytes(pack(b'{"traceEvents": [' + EVENT % (b"a", b"") + b" " * (4 << 20) + b"]}"))
    trace = read_trace(path)
    assert len(trace) == 1
    (problem,) = trace.problems
    assert "too long for such a file" in problem.what


def test_objects_of_further_streams_are_one_trace(tmp_path, monkeypatch):
    """As Proton writes them: one for each stream, on lines."""
    path = tmp_path / "proton.json"
    kernels = [[{"cat": "kernel", "dur": 5.0, "name": f"k{number}", "ph": "X", "tid": stream, "ts": 10.0 * number}
                for number in range(30)] for stream in (7, 13, 20)]  # fmt: skip
    path.write_text("".join(json.dumps({"displayTimeUnit": "us", "traceEvents": each}) + "\n" for each in kernels))
    alone = read_trace(path, alone=True)
    assert len(alone) == 90
    assert [tid for _, tid in alone.threads] == ["7", "13", "20"]
    (problem,) = alone.problems
    assert (problem.severity.word, problem.count) == ("note", 2)
    assert all(alone.arguments.of(number) == {} for number in range(90))
    by_several(monkeypatch, count=3)
    assert same(read_trace(path), alone)


LEGACY = (
    '{"name": "aten::mul", "ph": "X", "ts": 10, "dur": 30, "tid": 1, "pid": "CPU functions", "args": {}}, '
    '{"name": "aten::mul", "ph": "s", "ts": 10, "tid": 1, "pid": "CPU functions", "id": 0, "cat": "cpu_to_cuda", '
    '"args": {}}, '
    '{"name": "say "hi"", "ph": "f", "ts": 50, "tid": 2, "pid": "CUDA functions", "id": 0, "cat": "cpu_to_cuda", '
    '"args": {}}, '
    '{"name": "say "hi"", "ph": "X", "ts": 50, "dur": 25, "tid": 2, "pid": "CUDA functions", "args": {}}'
)


def test_legacy_traces_have_kinds_by_their_processes(tmp_path):
    path = tmp_path / "legacy.json"
    path.write_text(f"[{LEGACY}]")
    trace = read_trace(path)
    kinds = {trace.names[name]: kind for name, kind in zip(trace.name.tolist(), trace.kind.tolist(), strict=True)}
    assert kinds == {"aten::mul": Kind.OPERATOR, 'say "hi"': Kind.KERNEL}
    assert [trace.texts[code] for code in trace.work["device"].tolist()] == ["2"]
    told_of = [problem.what for problem in trace.problems]
    assert any("legacy trace" in what for what in told_of)
    assert [problem.count for problem in trace.problems if "quotation" in problem.what] == [2]


@pytest.mark.parametrize("ends", [True, False])
def test_flows_of_legacy_traces_are_launches(tmp_path, ends):
    """Newer exports begin flows, but have no kernels at their ends: then nothing tells who launched the work."""
    host, device = {"pid": "CPU functions", "args": {}}, {"pid": "CUDA functions", "tid": 0, "args": {}}
    flow = {"cat": "cpu_to_cuda"}
    events = [{"name": "ProfilerStep#1", "ph": "X", "ts": 0, "dur": 400, "tid": 1, **host},
              {"name": "outer", "ph": "X", "ts": 10, "dur": 200, "tid": 1, **host},
              {"name": "aten::mul", "ph": "X", "ts": 10, "dur": 30, "tid": 1, **host},
              {"name": "aten::empty", "ph": "X", "ts": 10, "dur": 5, "tid": 1, **host}]  # fmt: skip
    # two kernels of one name at one time, as of two streams, and one that the outer operator launched itself
    for number, (operator, ts, dur) in enumerate((("aten::mul", 50, 25), ("aten::mul", 50, 35), ("outer", 300, 7))):
        events.append({"name": operator, "ph": "s", "ts": 10, "tid": 1, "id": number, **host, **flow})
        if ends:
            events.append({"name": "k", "ph": "f", "ts": ts, "id": number, **device, **flow})
        events.append({"name": "k", "ph": "X", "ts": ts, "dur": dur, **device})
    path = tmp_path / "legacy.json"
    path.write_text(json.dumps(events))
    query = query_of(open_profile(path))
    (table,) = (each for each in operators(query).tables if each.key == "by_name")
    times = zip(*map(table.column, ("device_self_us", "device_total_us")), strict=True)
    own = dict(zip(table.column("name"), times, strict=True))
    assert own == {"outer": (7_000 * ends, 67_000 * ends), "aten::mul": (60_000 * ends,) * 2, "aten::empty": (0, 0)}
    per_step = dict(zip(table.column("name"), table.column("device_self_per_step_us"), strict=True))
    assert per_step["aten::mul"] == (60_000 if ends else None)
    links = query.profile.links()
    assert [links.kinds[kind] for kind in links.kind.tolist()] == ["launch"] * (3 * ends)
    lane = next(lane for lane in query.profile.lanes if lane.kind == "stream")
    assert lane["step"].tolist() == [1 if ends else INT_MISSING] * 3
    shown = dict(zip(table.column("name"), CellFormats.of(table).rows(table, [2], 0, 3), strict=True))
    assert shown["aten::mul"] == (("60.000",) if ends else (MISSING,))


@pytest.mark.parametrize(("category", "named"), [("FEE", " (FEE)"), ("", "")])
def test_events_of_other_programs_are_kept_and_told(tmp_path, category, named):
    path = tmp_path / "viz.json"
    more = {"cat": category} if category else {}
    events = [{"ph": "X", "name": "f", "pid": 1, "tid": 1, "ts": number, "dur": 1, **more} for number in range(5)]
    path.write_text(json.dumps({"traceEvents": events, "viztracer_metadata": {}}))
    trace = read_trace(path)
    (problem,) = trace.problems
    assert len(trace) == problem.count == 5
    assert f"unknown category{named}:" in problem.what


def test_a_run_is_read_by_several_processes(tmp_path, monkeypatch):
    from tpuprof_tui.sources.torch.read import parallel_reading

    monkeypatch.setattr(parallel_reading, "_WORTH_IT", 1)
    monkeypatch.setattr(child_process.os, "sched_getaffinity", lambda _: range(3), raising=False)
    for rank in range(4):
        operator = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 10.5, "dur": rank + 1,
                    "args": {"External id": 3, "Input Dims": [[rank, 2]]}}  # fmt: skip
        frame = {**operator, "cat": "python_function", "name": "nn.Module: A_0", "ts": 10,
                 "args": {"Python id": 5, "Python parent id": None, "Python module id": rank}}  # fmt: skip
        counts = [{"ph": "C", "name": "GPU use", "pid": 7, "ts": ts, "args": {"SM": value, "bad": "x"}}
                  for ts, value in ((12, 0.5), (11, 1))]  # fmt: skip
        text = json.dumps({"traceEvents": [operator, frame, *counts], "distributedInfo": {"rank": rank}})
        file = tmp_path / f"host_{rank}.pt.trace.json.gz"
        file.write_bytes(gzip.compress(text.encode()) if rank != 2 else b"broken")
    seen = []
    profile = open_profile(tmp_path, progress=seen.append)
    assert [worker.rank for worker in profile.workers] == [0, 1, 3]
    assert [problem.file for problem in profile.problems] == ["host_2.pt.trace.json.gz"]
    files = [tmp_path / worker.files[0] for worker in profile.workers]
    for worker, trace in zip(
        profile.workers, parallel_reading.read_traces(files, None, MappedArrays(), None), strict=True
    ):
        assert isinstance(trace, Trace)
        assert told(trace) == slow(trace.path)
        assert trace.arguments.of(0)["Input Dims"] == [[worker.rank, 2]]
        (arguments, texts), ids = trace.details("operators"), trace.details("frames")[0]
        assert [texts[code] for code in arguments["shapes"].tolist()] == [f"[[{worker.rank}, 2]]"]
        assert [ids[key].tolist() for key in ("id", "module", "parent")] == [[5], [worker.rank], [INT_MISSING]]
    (counter, *_) = profile.counters
    assert (counter.name, counter.times.tolist(), counter.values.tolist()) == ("GPU use SM", [1000, 2000], [1, 0.5])
    assert seen[-1].done <= seen[-1].total


@pytest.mark.parametrize("simple", [True, False])
@pytest.mark.parametrize("args", [{}, {"args": {"a": 1}}, {"args": {"parts": [{"cat": "fwdbwd"}]}}])
def test_flows_from_forward_to_backward_are_found_by_their_category(tmp_path, monkeypatch, args, simple):
    """In simple objects by the word alone, else among all events."""

    def flow(phase, time, cat="fwdbwd", **more):
        return {"ph": phase, "id": 3, "cat": cat, "name": "fwdbwd", "pid": 1, "tid": "5", "ts": time, **more}

    events = [
        {"ph": "X", "cat": "cpu_op", "name": "fwdbwd", "pid": 1, "tid": 5, "ts": 1, "dur": 9, "args": {"a": "}"}},
        {"ph": "X", "cat": "cpu_op", "name": '{"ph": "s", "cat": "fwdbwd"}', "pid": 1, "tid": 5, "ts": 2, "dur": 1},
        flow("s", 2), flow("f", 5, "forward_backward", bp="e"), flow("s", 3, "ac2g"), flow("s", 4, **args),
        flow("f", 6, pid=2),
    ][2 * simple:]  # fmt: skip
    if simple:
        events.append({"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 5, "ts": 1, "dur": 9, "args": {}})
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    trace = read_trace(path)
    if simple and not args:
        monkeypatch.setattr("tpuprof_tui.sources.torch.read.arguments._events", lambda *_: pytest.fail("all of them"))
    ends = flow_ends_of(trace.arguments, trace.threads, trace.zero_ns)
    assert (ends.begins.tolist(), ends.time.tolist()) == ([True, False, True], [1000, 4000, 3000])
    assert set(ends.thread.tolist()) == {0}
    assert len(set(ends.id.tolist())) == 1
    assert not ends.of_work.any()


@pytest.mark.parametrize("name", ["run.zip", "trace.json", "trace.pt.trace.json"])
def test_zip_archives_are_opened_by_their_content(tmp_path, sound, name):
    """One trace is that trace, several are those of a run."""
    text = gzip.decompress(sound.read_bytes())
    for count in (1, 2):
        path = tmp_path / name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for rank in range(count):
                archive.writestr(f"folder/rank{rank}.pt.trace.json", text)
            archive.writestr("readme.txt", "none")
        profile = open_profile(path)
        assert len(profile.workers) == count
        # unpacked, into a folder of its own
        assert [profile.workers[0].files] == [("rank0.pt.trace.json",)]
        assert [len(lane) for lane in profile.lanes_of(0)] == [len(lane) for lane in open_profile(sound).lanes]


def test_archives_of_too_long_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(inflate, "ALWAYS_UNPACKED", 1 << 20)
    monkeypatch.setattr(inflate, "MOST_UNPACKED", 1)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("trace.json", b'{"traceEvents": [' + b" " * (4 << 20))
    with pytest.raises(UnreadableError, match="too long for it"):
        open_profile(path)


@pytest.mark.parametrize(
    ("kind", "number", "name"),
    [(0, -1, "CPU"), (1, 0, "GPU0"), (12, 1, "XPU1"), (13, 0, "type13:0"), (INT_MISSING, 0, "unknown device 0"),
     (INT_MISSING, INT_MISSING, "unknown device"), (1, INT_MISSING, "GPU")],
)  # fmt: skip
def test_a_device_whose_type_or_number_is_missing_has_a_name(kind, number, name):
    assert device_name(kind, number) == name


def test_what_identifies_collectives_is_told_across_sections(tmp_path, monkeypatch):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([
        *({"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "pid": 0, "tid": 7, "ts": number, "dur": 1,
           "args": {"Collective name": "c", "Comms Id": number % 7 + 1}} for number in range(300)),
        *({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": number, "dur": 1,
           "args": {"Seq": number % 5, "Process Group Name": "0"}} for number in range(300)),
        *({"ph": "s", "id": number, "cat": "ac2g", "pid": number, "tid": 1, "ts": number} for number in (1, 0)),
    ]))  # fmt: skip
    alone = read_trace(path, alone=True)
    by_several(monkeypatch, count=5)
    READ_FROM.clear()
    trace = read_trace(path)
    rows = np.arange(len(trace))
    assert len(READ_FROM) > 1
    assert trace.identities_at(rows) == alone.identities_at(rows)
    assert len(set(trace.identities_at(rows))) == 12
    assert trace.flow_processes == alone.flow_processes == {"0", "1"}


@pytest.mark.parametrize(
    ("entry", "events"),
    [
        (b"[" + EVENT % (b"b", b""), 3),
        (b'{"ph": "X", "name": "\\ud800", "cat": [], "pid": 1, "tid": 1, "ts": 5, "dur": 2}', 3),
        (b'{"ph": "i", "name": "[memory]", "pid": {}, "tid": [], "ts": 5, "args": {}}', 2),
    ],
)
def test_odd_entries_leave_the_others(tmp_path, entry, events):
    """In chunks of any length; arguments are found again."""
    path = tmp_path / "odd.json"
    path.write_bytes(
        b'{"traceEvents": [' + b",\n".join([EVENT % (b"a", b'"x": 1'), entry, EVENT % (b"c", b'"x": 2')]) + b"]}"
    )
    for chunk in (64, 300, 1 << 19):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(chunks, "CHUNK", chunk)
            trace = read_trace(path)
            assert len(trace) == events
            assert trace.arguments.of(0) == {"x": 1}
            assert len(trace.details("operators")[0]["shapes"]) == int((trace.kind == Kind.OPERATOR).sum())
