"""Events with texts that nothing escaped, events that cannot be decoded, and how often each is told."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpuprof_tui.sources.chrome import chunks
from tpuprof_tui.sources.chrome.chunks import EventChunks
from tpuprof_tui.sources.chrome.repair import has_unescaped, with_escapes

GOOD = '{"ph": "X", "cat": "cpu_op", "name": "good", "pid": 1, "tid": 1, "ts": 5, "dur": 2, "args": {"x": 5}}'


def event(name: str = "f", args: str = "") -> str:
    """An event as Kineto writes it: nothing is escaped here."""
    return (f'{{"ph": "X", "cat": "python_function", "name": "{name}", "pid": 4242, "tid": 1, "ts": 5, "dur": 2, '
            f'"args": {{{args}}}}}')  # fmt: skip


def read(text: str | bytes):
    """Events, defects by kind, and the reader."""
    waiting = [text.encode() if isinstance(text, str) else text]
    reader = EventChunks(lambda _: waiting.pop() if waiting else b"", dict, lambda found: found)
    events = [each for chunk in reader for each in chunk]
    return events, {name: tally.count for name, tally in reader.tallies.items() if tally}, reader


def listed(*events: str, between: str = ",\n") -> str:
    return '{"traceEvents": [' + between.join(events) + '\n], "after": [{"id": 1}]}'


#: What is written, in the name or in the arguments, what it is, and how it is told.
NAMES = [
    (r"torch\cuda\__init__.py(219): _lazy_init", None, "backslashes"),
    (r"torch\nn\functional.py(12): f", None, "backslashes"),  # a legal text of JSON by chance
    (r"torch\nn\modules\module.py(12): f", None, "backslashes"),
    (r"C:\u0041bc\qq.py(3): x", None, "backslashes"),
    (r"C:\temp\new.txt", None, "backslashes"),
    (r"\\server\share\x.py(1): f", None, "backslashes"),
    ('{"device": "cpu", "dtype": "float32"}(12): run', None, "quotes"),
    ('f({"a": "b", "id": 5})', None, "quotes"),
    ('foo "bar" baz', None, "quotes"),
    ('foo "bar"', None, "quotes"),
    ('"bar" foo', None, "quotes"),
    ('a", "b', None, "quotes"),
    ('a"b', None, "quotes"),
    ('void f<"x"::y, 3>(int)', None, "quotes"),
    (r'C:\x "y" z', None, "quotes"),
    ("a\tb\nc", None, "controls"),
    (r"torch\\nn\\functional.py(12): f", r"torch\nn\functional.py(12): f", ""),
    (r"C:\\temp\\new.txt", r"C:\temp\new.txt", ""),
    (r"/home/\u4e2d\u6587/a.py(3): x", "/home/中文/a.py(3): x", ""),
    (r"line\nbreak and \"quoted\" text", 'line\nbreak and "quoted" text', ""),
]
ARGUMENTS = [
    (r'"Call stack": "..\site-packages\torch\profiler.py(611): __init__;source.py(101): step"',
     {"Call stack": r"..\site-packages\torch\profiler.py(611): __init__;source.py(101): step"}, "backslashes"),
    (r'"path": "C:\dir\", "x": 1', {"path": "C:\\dir\\", "x": 1}, "backslashes"),
    (r'"path": "C:\temp\"', {"path": "C:\\temp\\"}, "backslashes"),
    (r'"x": "{\"path\": \"C:\data\"}", "q": 2', {"x": '{"path": "C:\\data"}', "q": 2}, "backslashes"),
    (r'"x": "C:\q", "l": [{"ph": "X", "name": "y"}, {"ph": "X", "name": "z"}]',
     {"x": r"C:\q", "l": [{"ph": "X", "name": "y"}, {"ph": "X", "name": "z"}]}, "backslashes"),
    ('"x": "{"a": "b", "c": "d"}", "y": 1', {"x": '{"a": "b", "c": "d"}', "y": 1}, "quotes"),
    ('"x": "{"a": "b", "c": "d"}(12): run", "y": 1', {"x": '{"a": "b", "c": "d"}(12): run', "y": 1}, "quotes"),
    ('"x": ["", "{"a": "b"}", "c"], "y": 1', {"x": ["", '{"a": "b"}', "c"], "y": 1}, "quotes"),
    ('"x": NaN, "y": "NaN"', {"x": None, "y": "NaN"}, "values"),
    (r'"Call stack": "a.py(3): f;\r\ntrain.py(12): g"', {"Call stack": "a.py(3): f;\r\ntrain.py(12): g"}, ""),
    (r'"Call stack": "a.py(3): f\ntrain.py(12): g"', {"Call stack": "a.py(3): f\ntrain.py(12): g"}, ""),
]  # fmt: skip


@pytest.mark.parametrize("between", [", ", ",\n  "])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(("written", "meant", "kind"), NAMES)
def test_names_that_nothing_escaped_are_kept(written, meant, kind, place, between):
    texts = [GOOD, GOOD]
    texts.insert(place, event(written))
    events, told, reader = read(listed(*texts, between=between))
    assert [each["name"] for each in events][place] == (written if meant is None else meant)
    assert len(events) == 3
    assert told == ({kind: 1} if kind else {})
    assert reader.metadata == {"after": [{"id": 1}]}
    assert not reader.truncated


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(("written", "meant", "kind"), ARGUMENTS)
def test_arguments_that_nothing_escaped_are_kept(written, meant, kind, place):
    texts = [GOOD, GOOD]
    texts.insert(place, event("f", written))
    events, told, _ = read(listed(*texts))
    assert events[place]["args"] == meant
    assert len(events) == 3
    assert told == ({kind: 1} if kind else {})


def test_each_event_counts_once_with_the_place_of_the_first(monkeypatch):
    """Whatever is wrong how often within it, and where the chunks and parts are cut."""
    bad = event(r"a\b\c.py(3): f", r'"Call stack": "x\y;z\q", "kernel": "w\k"')
    quoted = event('"a" "b"', r'"x": "c\d"')
    text = listed(GOOD, bad, GOOD, quoted, bad, GOOD)
    for chunk in (64, 300, 1000, 1 << 19):
        for part in (1, 200, 8 << 10):
            monkeypatch.setattr(chunks, "CHUNK", chunk)
            monkeypatch.setattr(chunks, "_PART", part)
            events, told, reader = read(text)
            assert len(events) == 6
            assert told == {"backslashes": 2, "quotes": 1}
            assert reader.tallies["backslashes"].first == text.index(bad)
            assert reader.tallies["quotes"].first == text.index(quoted)


def test_one_event_that_cannot_be_decoded_is_one_although_objects_are_within_it():
    inside = ", ".join(f'{{"name": "n{number}"}}' for number in range(24))
    for last in (False, True):
        bad = event("f", f'"x" 5, "list": [{inside}], "y": 1')
        events, told, reader = read(listed(GOOD, bad, *([] if last else [GOOD])))
        assert [each["name"] for each in events] == ["good"] * (1 if last else 2)
        assert told == {"malformed": 1}
        assert reader.metadata == {"after": [{"id": 1}]}
        assert not reader.truncated


def test_a_last_event_that_cannot_be_decoded_does_not_cut_the_list():
    bad = event("f", '"x" 5, "list": [{"a": 1}], "y": 1')
    for text in (listed(GOOD, bad), f"[{GOOD}, {bad}]"):
        events, told, reader = read(text)
        assert (len(events), told, reader.truncated) == (1, {"malformed": 1}, False)


@pytest.mark.parametrize("before", [True, False])
def test_metadata_that_nothing_escaped_are_kept(before):
    member = r'"traceName": "C:\Users\me\new.json"'
    text = f'{{{member}, "traceEvents": [{GOOD}]}}' if before else f'{{"traceEvents": [{GOOD}], {member}}}'
    events, told, reader = read(text)
    assert (len(events), told) == (1, {"backslashes": 1})
    assert reader.metadata == {"traceName": r"C:\Users\me\new.json"}


@pytest.mark.parametrize("value", ['a "b" c', '{"a": "b"}', '"b"', 'b"', 'x, "y": "z"', 'x", "y": 3'])
def test_quotation_marks_in_metadata_are_repaired_as_in_names(value):
    """Beside the list of events, and in the arguments of metadata events."""
    first, last = f'"note": "{value}"', '"displayTimeUnit": "ms", "deviceProperties": [{"id": 0}]'
    meant = {"note": value, "displayTimeUnit": "ms", "deviceProperties": [{"id": 0}]}
    for members in (f"{first}, {last}", f"{last}, {first}"):
        for text in (f'{{{members}, "traceEvents": [{GOOD}]}}', f'{{"traceEvents": [{GOOD}], {members}}}\n\0'):
            events, told, reader = read(text)
            assert (len(events), told, reader.metadata) == (1, {"quotes": 1}, meant)
    named = f'{{"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {{"name": "{value}", "n": 1}}}}'
    events, told, _ = read(listed(GOOD, named, GOOD))
    assert (events[1]["args"], told) == ({"name": value, "n": 1}, {"quotes": 1})


@pytest.mark.parametrize("rest", ['"note": "a "b', '"note": "a"} "b"}', '"a": 1 "b": 2', '"note": "a"b"}, "c": 1}'])
def test_metadata_that_cannot_be_repaired_are_lost(rest):
    events, told, _ = read(f'{{"traceEvents": [{GOOD}], {rest}')
    assert len(events) == 1
    assert told.keys() <= {"metadata_lost", "trailing_text"}
    assert told


INNER = '{"ph": "X", "cat": "cpu_op", "name": "inner", "pid": 1, "tid": 1, "ts": 5, "dur": 2, "args": {}}'


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("name", [
    'f }, {"ph": "X", "cat": "y', f"x, {INNER}, y", f'x}}, {INNER}, {{"ph": "X", "name": "z', f"{INNER}",
])  # fmt: skip
def test_an_event_within_a_name_is_none_where_events_begin_on_lines(name, place):
    texts = [GOOD, GOOD]
    texts.insert(place, event(name))
    events, told, _ = read(listed(*texts))
    assert [each["name"] for each in events if each["name"] != "good"] == [name]
    assert (len(events), told) == (3, {"quotes": 1})
    # an event that was cut off does not take the next with it
    cut = event("f")[: -len('f", "pid": 4242, "tid": 1, "ts": 5, "dur": 2, "args": {}}')]
    events, told, _ = read(listed(GOOD, cut + "}", GOOD))
    assert (len(events), told) == (2, {"malformed": 1})


def test_what_was_repaired_once_is_repaired_everywhere():
    count = 2000
    texts = [event(f'{{"device": "cpu", "n": "{number % 3}"}}(12): run') if number % 7 == 0 else GOOD
             for number in range(count)]  # fmt: skip
    events, told, _ = read(listed(*texts))
    assert [each["name"] for each in events if each["pid"] == 4242] == [
        f'{{"device": "cpu", "n": "{number % 3}"}}(12): run' for number in range(0, count, 7)
    ]
    assert told == {"quotes": len(range(0, count, 7))}


PIECES = st.sampled_from(['"', "\\", "\n", ", ", "{", "}", "[", "]", ": ", '"pid": 1', '{"ph": "X", "name": "', "a",
                          "5", '", "pid": ', "NaN", '"x"', "é", "\x01", '"}]}', "C:\\n", ".py(3)"])  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(noise=st.lists(PIECES, max_size=12).map("".join), in_name=st.booleans(), chunk=st.sampled_from([64, 1 << 19]))
def test_noise_within_an_event_leaves_those_before(noise, in_name, chunk):
    """Whatever stands there: no exception, and the events before are kept."""
    bad = event(noise) if in_name else event("f", f'"x": {noise}')
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(chunks, "CHUNK", chunk)
        events, _, reader = read(listed(GOOD, GOOD, bad, GOOD))
    assert [each.get("name") for each in events[:2]] == ["good", "good"]
    assert reader.found


@given(st.text(max_size=40))
def test_sound_texts_stay_as_they_are(text):
    """But for paths of Windows: no text of a decoder's own encoder is taken for one that nothing escaped."""
    written = json.dumps({"a": text, "b": [text]}).encode()
    if not re.search(r"\.py\(\d|[\x00-\x1f]", text):
        assert not has_unescaped(written)
        assert with_escapes(written).text == written


@pytest.mark.parametrize(
    "unit",
    ["{", "[", '"', "\\", '\\"', "null,", "{},", '{"ph":', '{"ph":"X","a":[1,', "}", "},{", '"a\\", "', '\\q"', "1 ",
     '{"name": "a"b", ', '{"ph":"X","name":"a"b","pid"'],
)  # fmt: skip
def test_work_is_bounded_for_one_thing_over_and_over(unit, monkeypatch):
    """Characters that are looked at, for each byte of the text."""
    looked = 0
    scan = chunks.first_error

    def counted(text):
        nonlocal looked
        looked += len(text)
        return scan(text)

    monkeypatch.setattr(chunks, "first_error", counted)
    monkeypatch.setattr("tpuprof_tui.sources.chrome.repair.first_error", counted)
    text = '{"traceEvents": [' + unit * (300_000 // len(unit))
    read(text)
    assert looked <= 40 * (len(text) + (1 << 20))


def test_a_value_of_another_type_before_an_error_costs_its_event_alone():
    bad = GOOD.replace('"good"', "{]")
    for texts in ((GOOD, bad, GOOD), (GOOD, bad)):
        waiting = [listed(*texts).encode()]
        reader = EventChunks(lambda _, waiting=waiting: waiting.pop() if waiting else b"", Named, lambda _: None)
        assert sum(map(len, reader)) == len(texts) - 1
        assert (reader.tallies["malformed"].count, reader.truncated) == (1, False)


class Named(msgspec.Struct):
    name: str
