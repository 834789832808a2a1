"""What a Perfetto trace says, read back with perfetto's own protos: tracks, slices, samples, flows."""

from __future__ import annotations

import io
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from tpuprof_tui.model import Profile
from tpuprof_tui.sources.sophgo.files.perfetto import write_perfetto

TYPE_BEGIN, TYPE_END, TYPE_COUNTER = 1, 2, 4
TABLES = ("event_names", "event_categories", "debug_annotation_names", "debug_annotation_string_values")


@dataclass
class ReadSlice:
    start: int
    end: int
    name: str
    category: str | None
    notes: list[tuple[str, Any]]
    depth: int
    end_category: str | None = None
    flows: list[int] = field(default_factory=list)
    ending_flows: list[int] = field(default_factory=list)
    flows_at_end: list[int] = field(default_factory=list)


@dataclass
class ReadTrack:
    name: str
    path: str
    rank: int | None
    ordered: bool
    counter: bool
    unit: str
    description: str
    sequence: int | None = None
    slices: list[ReadSlice] = field(default_factory=list)
    samples: list[tuple[int, float]] = field(default_factory=list)
    times: list[int] = field(default_factory=list)


class TraceReader:
    """Reads packets as a strict consumer: state must be announced, tables filled before use, slices closed."""

    def __init__(self, data: bytes) -> None:
        self.trace = pb.Trace()
        self.trace.ParseFromString(data)
        self.tracks: dict[int, ReadTrack] = {}
        self._defaults: dict[int, int] = {}
        self._tables: dict[int, dict[str, dict[int, str]]] = {}
        self._open: dict[int, list[ReadSlice]] = defaultdict(list)
        for packet in self.trace.packet:
            self._packet(packet)
        assert not any(self._open.values()), "slices were left open"

    @property
    def by_path(self) -> dict[str, ReadTrack]:
        found = {track.path: track for track in self.tracks.values()}
        assert len(found) == len(self.tracks), "two tracks share a path"
        return found

    def _packet(self, packet: Any) -> None:
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & 1:
            self._tables[sequence] = {table: {} for table in TABLES}
            if packet.HasField("trace_packet_defaults"):
                self._defaults[sequence] = packet.trace_packet_defaults.track_event_defaults.track_uuid
        if packet.HasField("interned_data"):
            assert packet.sequence_flags & 3, "interned data outside a sequence's state"
            for table in TABLES:
                for entry in getattr(packet.interned_data, table):
                    text = entry.str.decode() if table.endswith("values") else entry.name
                    assert entry.iid not in self._tables[sequence][table], "a number is given twice"
                    assert entry.iid
                    self._tables[sequence][table][entry.iid] = text
        if packet.HasField("track_descriptor"):
            self._describe(packet.track_descriptor)
        if packet.HasField("track_event"):
            self._event(packet, sequence)

    def _describe(self, found: Any) -> None:
        assert found.uuid not in self.tracks, "a uuid is used twice"
        parent = f"{self.tracks[found.parent_uuid].path}/" if found.HasField("parent_uuid") else ""
        self.tracks[found.uuid] = ReadTrack(
            found.name,
            parent + found.name,
            found.sibling_order_rank if found.HasField("sibling_order_rank") else None,
            found.child_ordering == found.EXPLICIT,
            found.HasField("counter"),
            found.counter.unit_name,
            found.description,
        )

    def _event(self, packet: Any, sequence: int) -> None:
        event = packet.track_event
        track = self.tracks[event.track_uuid if event.HasField("track_uuid") else self._defaults[sequence]]
        assert track.sequence in (None, sequence), "a track on two sequences"
        track.sequence = sequence
        track.times.append(packet.timestamp)
        opened = self._open[id(track)]
        if event.type == TYPE_COUNTER:
            assert track.counter
            track.samples.append((packet.timestamp, event.double_counter_value))
        elif event.type == TYPE_BEGIN:
            notes = [(self._note_name(note, sequence), self._value(note, sequence)) for note in event.debug_annotations]
            found = ReadSlice(packet.timestamp, -1, self._name(event, sequence), self._category(event, sequence), notes,
                              len(opened), flows=list(event.flow_ids),
                              ending_flows=list(event.terminating_flow_ids))  # fmt: skip
            track.slices.append(found)
            opened.append(found)
        else:
            assert event.type == TYPE_END
            closed = opened.pop()
            closed.end = packet.timestamp
            closed.end_category = self._category(event, sequence)
            closed.flows_at_end = list(event.terminating_flow_ids)

    def _text(self, sequence: int, table: str, iid: int) -> str:
        return self._tables[sequence][table][iid]

    def _name(self, event: Any, sequence: int) -> str:
        return self._text(sequence, "event_names", event.name_iid) if event.name_iid else event.name

    def _category(self, event: Any, sequence: int) -> str | None:
        if event.category_iids:
            (iid,) = event.category_iids
            return self._text(sequence, "event_categories", iid)
        return event.categories[0] if event.categories else None

    def _note_name(self, note: Any, sequence: int) -> str:
        return self._text(sequence, "debug_annotation_names", note.name_iid) if note.name_iid else note.name

    def _value(self, note: Any, sequence: int) -> Any:
        if note.dict_entries:
            return {self._note_name(entry, sequence): self._value(entry, sequence) for entry in note.dict_entries}
        if note.string_value_iid:
            return self._text(sequence, "debug_annotation_string_values", note.string_value_iid)
        for kind in ("bool_value", "int_value", "double_value", "string_value"):
            if note.HasField(kind):
                return getattr(note, kind)
        return None


def written(profile: Profile, dependencies=None, **selection) -> dict:
    from profiles import selected_query  # programs beside the tests read traces, too, and have no profiles

    stream = io.BytesIO()
    size = write_perfetto(selected_query(profile, **selection), stream, dependencies=dependencies)
    assert size == len(stream.getvalue())
    return TraceReader(stream.getvalue()).by_path


def with_overflow(tracks: dict, path: str) -> list:
    """A track and those beside it for its other lanes."""
    return [track for name, track in tracks.items() if name == path or name.startswith(f"{path} #")]
