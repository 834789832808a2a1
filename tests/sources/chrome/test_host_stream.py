"""Events of a Chrome trace, however it is cut, and whatever is wrong with it."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpuprof_tui.sources.chrome import json_stream
from tpuprof_tui.sources.chrome.decimals import MOST_NS, Number, femtoseconds, nanoseconds
from tpuprof_tui.sources.chrome.json_stream import EventStream

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
events = st.dictionaries(st.text(max_size=5), values, max_size=4)


def stream_of(text: str | bytes) -> EventStream:
    return EventStream(io.BytesIO(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text).read)


@pytest.fixture(params=[1, 3, 64], ids=lambda size: f"by {size}")
def piece(request, monkeypatch):
    monkeypatch.setattr(json_stream, "PIECE", request.param)


def as_read(value):
    """A value as the stream gives it: numbers as their text."""
    return json.loads(json.dumps(value), parse_int=str, parse_float=str)


others = st.dictionaries(st.text(max_size=12).filter(lambda key: key != "traceEvents"), values, max_size=3)


@settings(max_examples=60)
@given(
    st.lists(events, max_size=5),
    others,
    others,
    st.sampled_from([None, 0, 2]),
    st.booleans(),
    st.sampled_from([1, 5, 1 << 20]),
)
def test_all_events_of_a_sound_file_are_found(found, around, behind, indent, plain, size):
    document = {**around, "traceEvents": found, **{f"_{key}": value for key, value in behind.items()}}
    old, json_stream.PIECE = json_stream.PIECE, size
    try:
        stream = stream_of(json.dumps(document, indent=indent, ensure_ascii=plain))
        assert list(stream) == [as_read(event) for event in found]
    finally:
        json_stream.PIECE = old
    assert stream.found
    assert not stream.truncated
    assert not stream.malformed
    assert not stream.unfinished
    assert not stream.more


@pytest.mark.parametrize(
    ("behind", "unfinished", "more"),
    [
        ("}", False, False),
        ("}\n \t\r\n", False, False),
        (',"a":{"b":[1,"]}"]},"c":"d"}', False, False),
        (",}", False, False),
        ("", True, False),
        (',"a":{"b":1}', True, False),
        (',"a":"b', True, False),
        ("}x", False, True),
        ('}{"traceEvents":[{}]}', False, True),
        ("}}", False, True),
        ("]}", False, True),
        (',"traceEvents":[{}]}', False, True),
        (',"a" 5}', False, True),
        (" 5}", False, True),
    ],
)
def test_what_follows_the_events_is_read_to_its_end(piece, behind, unfinished, more):
    stream = stream_of('{"traceEvents":[{"a":"b"}]' + behind)
    assert list(stream) == [{"a": "b"}]
    assert (stream.unfinished, stream.more) == (unfinished, more)
    assert not stream.truncated


@pytest.mark.parametrize(("behind", "more"), [("", False), ("\n", False), ("x", True), (",{}]", True)])
def test_a_plain_list_ends_with_its_bracket(piece, behind, more):
    stream = stream_of('[{"a":"b"}]' + behind)
    assert list(stream) == [{"a": "b"}]
    assert (stream.unfinished, stream.more) == (False, more)


@settings(max_examples=40)
@given(st.lists(events, min_size=1, max_size=4), st.data())
def test_a_cut_file_gives_the_events_before(found, data):
    text = json.dumps({"traceEvents": found})
    cut = data.draw(st.integers(0, len(text) - 2))
    stream = stream_of(text[:cut])
    given_ = list(stream)
    assert given_ == [as_read(event) for event in found[: len(given_)]]
    assert stream.truncated or not stream.found


@settings(max_examples=150)
@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:\\ \n1eE.-x', max_size=80).map(str.encode))
def test_anything_ends(noise):
    for head in (b"", b'{"traceEvents": [', b'[{"a": 1}, ', b'{"a": '):
        for event in stream_of(head + noise):
            assert isinstance(event, dict)


def test_a_bare_list_is_a_trace_also_without_its_end(piece):
    stream = stream_of('[{"a": 1},\n{"b": "x"},\n')
    assert list(stream) == [{"a": "1"}, {"b": "x"}]
    assert stream.truncated


def test_a_byte_order_mark_is_no_obstacle(piece):
    assert list(stream_of(b'\xef\xbb\xbf{"traceEvents": [{"a": 1}]}')) == [{"a": "1"}]


def test_the_list_is_found_behind_and_before_other_members(piece):
    text = '{"x": {"traceEvents": [{"no": 1}]}, "y": "\\"traceEvents\\"", "traceEvents": [{"a": 2}], "traceEvents": 3}'
    assert list(stream_of(text)) == [{"a": "2"}]


@pytest.mark.parametrize("text", ["", "  ", "7", '"traceEvents"', "{}", '{"a": 1}', '{"traceEvents": 5}', "null"])
def test_without_a_list_there_is_none(text, piece):
    stream = stream_of(text)
    assert list(stream) == []
    assert not stream.found


@pytest.mark.parametrize(
    ("middle", "bad"),
    [
        ('{"a": }', 1), ('{"a" 1}', 1), ("{'a': 1}", 1), ("5", 1), ('"text"', 1), ("[1, {}]", 1),
        ("}", 1), (":", 1), ("", 0), ('{"a": tru}', 1), ('{"a": 01}', 1), ('{"a": "\\q"}', 1),
    ],
)  # fmt: skip
def test_what_is_no_event_is_passed_over(middle, bad, piece):
    stream = stream_of(f'{{"traceEvents": [{{"n": 1}}, {middle}, {{"n": 2}}]}}')
    found = list(stream)
    assert found[0] == {"n": "1"}
    assert {"n": "2"} in found
    assert stream.malformed == bad


def test_brackets_that_do_not_match_cost_what_follows(piece):
    stream = stream_of('{"traceEvents": [{"n": 1}, {"a": [1, }, {"n": 2}]}')
    assert list(stream) == [{"n": "1"}]
    assert stream.truncated


def test_deep_nesting_is_passed_over_without_recursion():
    deep = '{"a":' * 200_000 + "1" + "}" * 200_000
    lists = "[" * 300_000 + "]" * 300_000
    stream = stream_of(f'{{"x": {deep}, "traceEvents": [{{"n": 1}}, {deep}, {{"args": {lists}}}, {{"n": 2}}]}}')
    assert [event for event in stream if "n" in event] == [{"n": "1"}, {"n": "2"}]


def test_nesting_that_never_closes_ends_with_the_file():
    stream = stream_of('{"traceEvents": [{"n": 1}, ' + '{"a":' * 100_000)
    assert list(stream) == [{"n": "1"}]
    assert stream.truncated


def test_an_event_longer_than_any_is_passed_over_and_not_held(monkeypatch):
    monkeypatch.setattr(json_stream, "PIECE", 64)
    monkeypatch.setattr(json_stream, "LONGEST_EVENT", 1000)
    long = '{"a": "' + 'x\\"' * 100_000 + '"}'
    stream = stream_of(f'{{"traceEvents": [{{"n": 1}}, {long}, {{"n": 2}}]}}')
    longest = 0
    found = []
    for event in stream:
        found.append(event)
        longest = max(longest, len(stream._text))
    assert found == [{"n": "1"}, {"n": "2"}]
    assert longest < 5000
    assert stream.malformed == 1


def test_numbers_keep_their_text_and_nan_is_nothing():
    (event,) = stream_of('[{"a": 12345678901234567890.1234567890123, "b": NaN, "c": -Infinity, "d": 1e400}]')
    assert event == {"a": "12345678901234567890.1234567890123", "b": None, "c": None, "d": "1e400"}
    assert isinstance(event["a"], Number)


def test_integers_of_any_length_are_not_converted():
    digits = "9" * 1_000_000
    (event,) = stream_of('[{"a": ' + digits + "}]")
    assert event["a"] == digits
    assert femtoseconds(event["a"]) is None


# -- times --------------------------------------------------------------------


@given(st.integers(0, 10**16), st.integers(0, 10**9 - 1), st.integers(0, 9))
def test_times_are_exact_to_the_last_digit(whole, part, digits):
    text = f"{whole}.{str(part).zfill(9)[:digits]}" if digits else str(whole)
    if whole >= MOST_NS // 1000:
        return
    assert femtoseconds(text) == int(Decimal(text) * 10**9)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1700000000000000.123", 1_700_000_000_000_000_123),
        ("52342391.0125", 52_342_391_012),
        ("0.0009", 0),
        ("-1.5", -1500),
        ("-0.0009", 0),
        ("1.5e3", 1_500_000),
        ("25E-1", 2500),
        ("7", 7000),
    ],
)
def test_times_in_ns(text, ns):
    assert nanoseconds(femtoseconds(text)) == ns


@pytest.mark.parametrize(
    "value",
    [None, 5, 1.5, True, [], {}, "", "abc", "1,5", "1e999", "1e99999999", "9" * 50, "--1", "١٢", "1.2.3", "0x10",
     "1e30", "-1e30", " 1", "1_000", "inf", "nan", "1" * 10_000],
)  # fmt: skip
def test_what_is_no_time_is_none(value):
    assert femtoseconds(value) is None
