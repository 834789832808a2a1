"""The numpy encoder, read back with protobuf's own parser."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from tpuprof_tui.formats.perfetto import tracks
from tpuprof_tui.formats.perfetto.tracks import PacketSequence, Track, descriptor
from tpuprof_tui.formats.perfetto.wire import (
    fixed64_field,
    interleaved,
    message_field,
    messages,
    size_of,
    varint,
    varint_field,
)

int64s = st.integers(-(2**63), 2**63 - 1)
smalls = st.integers(0, 2**40)


@pytest.mark.parametrize(
    ("message", "field", "number"),
    [
        (pb.Trace, "packet", tracks.TRACE_PACKET),
        (pb.TracePacket, "timestamp", tracks.TIMESTAMP),
        (pb.TracePacket, "trusted_packet_sequence_id", tracks.SEQUENCE),
        (pb.TracePacket, "track_event", tracks.TRACK_EVENT),
        (pb.TracePacket, "sequence_flags", tracks.SEQUENCE_FLAGS),
        (pb.TrackEvent, "category_iids", tracks.EVENT_CATEGORY),
        (pb.TrackEvent, "debug_annotations", tracks.EVENT_ANNOTATION),
        (pb.TrackEvent, "type", tracks.EVENT_TYPE),
        (pb.TrackEvent, "name_iid", tracks.EVENT_NAME),
        (pb.TrackEvent, "double_counter_value", tracks.EVENT_DOUBLE),
        (pb.TrackEvent, "flow_ids", tracks.EVENT_FLOW),
        (pb.TrackEvent, "terminating_flow_ids", tracks.EVENT_FLOW_END),
        (pb.DebugAnnotation, "name_iid", tracks.NOTE_NAME),
        (pb.DebugAnnotation, "int_value", tracks.NOTE_INT),
        (pb.DebugAnnotation, "double_value", tracks.NOTE_DOUBLE),
        (pb.DebugAnnotation, "dict_entries", tracks.NOTE_ENTRY),
        (pb.DebugAnnotation, "string_value_iid", tracks.NOTE_TEXT),
    ],
)
def test_field_numbers_are_those_of_the_protos(message, field, number):
    assert message.DESCRIPTOR.fields_by_name[field].number == number


def test_event_types_are_those_of_the_protos():
    event = pb.TrackEvent
    assert (event.TYPE_SLICE_BEGIN, event.TYPE_SLICE_END, event.TYPE_COUNTER) == (
        tracks.SLICE_BEGIN,
        tracks.SLICE_END,
        tracks.COUNTER,
    )


@given(int64s)
def test_varints_are_those_of_protobuf(value):
    note = pb.DebugAnnotation(int_value=value)
    assert note.SerializeToString() == bytes([tracks.NOTE_INT << 3]) + varint(value)


@given(st.lists(int64s, min_size=1, max_size=40))
def test_integers_of_any_size_come_back(values):
    table = messages(varint_field(tracks.NOTE_INT, np.array(values, dtype=np.int64)), len(values))
    assert [pb.DebugAnnotation.FromString(row.tobytes()).int_value for row in table] == values


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40))
def test_unsigned_integers_come_back(values):
    table = messages(varint_field(3, np.array(values, dtype=np.uint64)), len(values))
    assert [pb.DebugAnnotation.FromString(row.tobytes()).uint_value for row in table] == values


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=40))
def test_doubles_come_back(values):
    table = messages(fixed64_field(tracks.NOTE_DOUBLE, np.array(values)), len(values))
    assert [pb.DebugAnnotation.FromString(row.tobytes()).double_value for row in table] == values


@given(
    st.lists(st.tuples(smalls, int64s, st.floats(allow_nan=False)), min_size=1, max_size=30),
    st.binary(max_size=200),
)
def test_nested_messages_come_back(rows, text):
    times, ints, doubles = (np.array(values) for values in zip(*rows, strict=True))
    first = [*varint_field(tracks.NOTE_NAME, 7), *varint_field(tracks.NOTE_INT, ints.astype(np.int64))]
    inner = [*message_field(tracks.NOTE_ENTRY, first), *fixed64_field(tracks.NOTE_DOUBLE, doubles.astype(np.float64))]
    event = [*message_field(tracks.EVENT_ANNOTATION, inner), *varint_field(tracks.EVENT_TYPE, tracks.SLICE_BEGIN)]
    interned = pb.InternedData(debug_annotation_string_values=[pb.InternedString(str=text)])
    packet = [*varint_field(tracks.TIMESTAMP, times.astype(np.int64)), *message_field(tracks.TRACK_EVENT, event),
              *message_field(12, [interned.SerializeToString()])]  # fmt: skip
    whole = message_field(tracks.TRACE_PACKET, packet)
    table = messages(whole, len(rows))
    assert table.shape == (len(rows), size_of(whole))
    trace = pb.Trace.FromString(table.tobytes())
    assert len(trace.packet) == len(rows)
    for found, (time, integer, double) in zip(trace.packet, rows, strict=True):
        (note,) = found.track_event.debug_annotations
        (entry,) = note.dict_entries
        assert (found.timestamp, entry.int_value, entry.name_iid, note.double_value) == (time, integer, 7, double)
        assert found.track_event.type == pb.TrackEvent.TYPE_SLICE_BEGIN
        assert [entry.str for entry in found.interned_data.debug_annotation_string_values] == [text]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.randoms())
def test_shapes_interleave_in_order(shapes, random):
    which = np.array(shapes)
    parts, wanted = [], [b""] * len(shapes)
    for shape in sorted(set(shapes)):
        places = np.flatnonzero(which == shape)
        values = np.array([random.randrange(2**20) for _ in places])
        pieces = [*varint_field(1, values), *([b"x" * 5 * shape] if shape else [])]
        table = messages(pieces, len(places))
        parts.append((places, table))
        for place, row in zip(places.tolist(), table, strict=True):
            wanted[place] = row.tobytes()
    assert interleaved(parts, len(shapes)).tobytes() == b"".join(wanted)


def test_a_constant_column_takes_no_padding():
    assert messages(varint_field(1, np.array([5, 5, 5])), 3).tobytes() == b"\x08\x05" * 3
    assert messages(varint_field(1, np.array([5, 300])), 2).shape == (2, 3)


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=30), st.lists(st.integers(-1, 4), min_size=1, max_size=30))
def test_texts_are_stated_once_and_before_their_use(first, second):
    texts = ["a", "", "b", "a", "\ud800broken"]
    sequence = PacketSequence(3, Track("T"))
    stated: dict[int, str] = {}
    packets = 0
    for codes in (first, second):
        numbers = sequence.iids(tracks.EVENT_NAMES, "name", texts, np.array(codes), "missing")
        for packet in pb.Trace.FromString(sequence.preamble()).packet:
            packets += 1
            assert packet.trusted_packet_sequence_id == 3
            assert packet.sequence_flags == (3 if packets == 1 else 2)
            for entry in packet.interned_data.event_names:
                assert entry.iid not in stated
                stated[entry.iid] = entry.name
        expected = [texts[code] if code >= 0 else "missing" for code in codes]
        spelled = [text.replace("\ud800", "\\ud800") for text in expected]
        assert [stated[number] for number in numbers.tolist()] == spelled
    assert sequence.preamble() == b""


def test_descriptors_say_what_the_track_is():
    root = Track("Core 0", ordered=True)
    leaf = Track("Bandwidth", root, -2, counter=True, unit="GB/s", description="words")
    (first,), (second,) = (pb.Trace.FromString(descriptor(track)).packet for track in (root, leaf))
    assert first.track_descriptor.child_ordering == pb.TrackDescriptor.EXPLICIT
    assert not first.track_descriptor.HasField("sibling_order_rank")
    found = second.track_descriptor
    assert (found.parent_uuid, found.sibling_order_rank, found.counter.unit_name, found.description) == (
        first.track_descriptor.uuid, -2, "GB/s", "words")  # fmt: skip
    assert 0 < found.uuid < 2**63
    assert leaf.overflow(2).path != leaf.path
