"""Export of any profile as a Perfetto trace.

Groups and lanes become tracks, events slices with debug annotations, links flows, and counters counter tracks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.analysis.events import starting_in
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.formats.perfetto.tracks import (
    CATEGORIES,
    EVENT_CATEGORY,
    EVENT_FLOW,
    EVENT_FLOW_END,
    EVENT_NAME,
    EVENT_NAMES,
    EVENT_TYPE,
    NOTE_DOUBLE,
    NOTE_INT,
    NOTE_TEXT,
    NOTE_TEXTS,
    SLICE_BEGIN,
    SLICE_END,
    Flows,
    PacketSequence,
    Shaped,
    TraceFile,
    Track,
    by_shape,
    descriptor,
    nested_tracks,
)
from tpuprof_tui.formats.perfetto.wire import (
    Pieces,
    fixed64_field,
    messages,
    varint_field,
)
from tpuprof_tui.model import INT_MISSING, Column, Counter, Lane, Profile
from tpuprof_tui.model.columns import COUNTERS, PLACE
from tpuprof_tui.model.lane import row_numbers
from tpuprof_tui.model.uniques import uniques

from .job import Job
from .selection import rows_by_lane, timed_part

I64 = npt.NDArray[np.int64]
#: Number of begin and end events that are encoded at a time.
BLOCK: Final = 65_536
#: Columns that a slice expresses itself (track, name, category, time), which get no annotation.
_OWN: Final = frozenset(("engine", "core", "port", "order", "name", "type", "start", "end", "duration"))


def write_trace(job: Job, paths: Sequence[Path], progress: Callable[[float], None]) -> list[Path]:
    """Writes the trace atomically."""
    with whole_file(paths[0]) as stream:
        _Writer(timed_part(job.query), stream, progress).write()
    return list(paths)


class _Writer:
    def __init__(self, query: Query, sink: BinaryIO, progress: Callable[[float], None]) -> None:
        self._query, self._profile = query, (profile := query.profile)
        self._chosen = list(map(row_numbers, rows_by_lane(query)))
        first = min((int(lane["start"][rows].min()) for lane, rows in zip(profile.lanes, self._chosen, strict=True)
                     if len(rows)), default=0)  # fmt: skip
        self._base = max(profile.epoch_ns, -min(first, 0))
        self._file = TraceFile(sink, progress, sum(map(len, self._chosen)))
        self._groups: dict[int, Track] = {}
        self._used: dict[str, int] = {}

    def write(self) -> None:
        """Writes all tracks with their events, lane by lane, then counters."""
        leaving, reaching = self._flows()
        for number, (lane, rows) in enumerate(zip(self._profile.lanes, self._chosen, strict=True)):
            if len(rows):
                self._write_lane(number, lane, rows, leaving.get(number), reaching.get(number))
        for number, counter in enumerate(self._profile.counters):
            known = self._samples(counter)
            if not len(known):
                continue
            track = Track(counter.name, self._group(counter.group), number, counter=True, unit=counter.unit)
            sequence = self._file.sequence(self._unique(track))
            for packets in sequence.samples(counter.times[known], counter.values[known], self._base, BLOCK):
                self._file.put(packets)
        self._file.close()

    def _samples(self, counter: Counter) -> I64:
        unit, window, known = (
            self._profile.groups.unit_of(counter.group),
            self._query.range,
            np.isfinite(counter.values),
        )
        if unit >= 0 and unit not in self._query.units:
            return np.zeros(0, np.int64)
        if window is not None:
            known &= starting_in(counter.times, window, self._profile.end_ns)
        return np.flatnonzero(known)

    def _group(self, group: int) -> Track | None:
        """Track of a group; its descriptor is written on first use."""
        if group < 0:
            return None
        if group not in self._groups:
            info = self._profile.groups[group]
            track = self._unique(Track(info.label, self._group(info.parent), group, ordered=True))
            self._groups[group] = track
            self._file.put(descriptor(track))
        return self._groups[group]

    def _unique(self, track: Track) -> Track:
        """The track with a name that no track beside it has: tracks of one path would become one in Perfetto."""
        found, number = track, self._used.get(track.path, 0)
        while found.path in self._used:
            number += 1
            found = replace(track, name=f"{track.name} ({number})")
        # the next one of this name begins at this number
        self._used[track.path] = max(number, 1)
        self._used[found.path] = max(number, 1)
        return found

    def _flows(self) -> tuple[dict[int, Flows], dict[int, Flows]]:
        """Outgoing and incoming flows by lane, for links between exported events.

        Flows must point forward in time, so links that end a wait, which began earlier, are left out.
        """
        found: tuple[dict[int, Flows], dict[int, Flows]] = ({}, {})
        if self._profile.links is None:
            return found
        links = self._profile.links()
        lanes = self._profile.lanes
        offsets = np.concatenate([[0], np.cumsum([len(lane) for lane in lanes])]).astype(np.int64)
        written = np.zeros(int(offsets[-1]), np.bool_)
        for number, rows in enumerate(self._chosen):
            written[offsets[number] + rows] = True
        forward = ~np.isin(links.kind, list(links.ending))
        kept = np.flatnonzero(forward & written[links.from_row] & written[links.to_row])
        for ends, into in zip((links.from_row[kept], links.to_row[kept]), found, strict=True):
            lane_of = np.searchsorted(offsets, ends, side="right") - 1
            for number in uniques(lane_of).tolist():
                of_lane = np.flatnonzero(lane_of == number)
                into[number] = Flows(ends[of_lane] - offsets[number], kept[of_lane] + 1, len(lanes[number]))
        return found

    def _write_lane(self, number: int, lane: Lane, rows: I64, leaving: Flows | None, reaching: Flows | None) -> None:
        track = Track(lane.label, self._group(lane.group), number)
        columns = tuple(self._annotated_columns(lane))
        for index, (indices, begins) in enumerate(nested_tracks(lane.take("start", rows), lane.take("end", rows)), 1):
            sequence = self._file.sequence(self._unique(track if index == 1 else track.overflow(index)))
            steps = rows[indices]
            for first in range(0, len(steps), BLOCK):
                some = slice(first, first + BLOCK)
                encoder = NestedSlices(self._profile, lane, sequence, self._base, columns, leaving, reaching)
                self._file.put(encoder.encoded(steps[some], begins[some]), len(steps[some]) // 2)

    def _annotated_columns(self, lane: Lane) -> Iterator[Column]:
        for column in self._profile.vocabulary.columns:
            if column.key in lane and column.key not in _OWN and column.group not in (COUNTERS, PLACE):
                yield column


class NestedSlices:
    """Encoder of blocks of slices of a lane, which may lie within one another.

    ``columns`` become annotations; ``category``: column of their categories.
    """

    def __init__(
        self, profile: Profile, lane: Lane, sequence: PacketSequence, base: int, columns: Sequence[Column] = (),
        leaving: Flows | None = None, reaching: Flows | None = None, category: str = "type",
    ) -> None:  # fmt: skip
        self._profile, self._lane, self._sequence, self._base = profile, lane, sequence, base
        self._columns, self._category = columns, category
        self._outgoing, self._incoming = leaving, reaching

    def encoded(self, steps: I64, begins: npt.NDArray[np.bool_]) -> bytes:
        """Encodes begin and end events of rows, in order."""
        opening, closing = np.flatnonzero(begins), np.flatnonzero(~begins)
        parts: list[Shaped] = []
        if len(opening):
            rows = steps[opening]
            values = [self._lane.take(column.key, rows) for column in self._columns]
            counts = [np.zeros(len(rows), np.int64) if flows is None else flows.counts[rows]
                      for flows in (self._outgoing, self._incoming)]  # fmt: skip
            known = [_known(column, each) for column, each in zip(self._columns, values, strict=True)]
            for shape, group in by_shape([*counts, *known]):
                selected = [column_values[group] for column_values in values]
                parts.append((opening[group], self._begins(rows[group], selected, shape)))
        if len(closing):
            ends = self._lane.take("end", steps[closing]) + self._base
            event = varint_field(EVENT_TYPE, SLICE_END)
            parts.append((closing, messages(self._sequence.packet(ends, event), len(closing))))
        return self._sequence.encoded(parts, len(steps))

    def _begins(self, rows: I64, values: Sequence[npt.NDArray[Any]], shape: Sequence[int]) -> npt.NDArray[np.uint8]:
        sequence = self._sequence
        leaving, reaching, *known = shape
        event: Pieces = [*varint_field(EVENT_TYPE, SLICE_BEGIN), *varint_field(EVENT_NAME, self._texts("name", rows))]
        if self._category in self._lane:
            codes, texts = self._lane.take(self._category, rows), self._profile.strings[self._category]
            event += varint_field(EVENT_CATEGORY, sequence.iids(CATEGORIES, self._category, texts, codes))
        for column, each, has_value in zip(self._columns, values, known, strict=True):
            if has_value:
                event += sequence.annotation(column.title, self._value(column, each))
        for field, flows, count in ((EVENT_FLOW, self._outgoing, leaving), (EVENT_FLOW_END, self._incoming, reaching)):
            event += flows.fields(field, rows, count) if flows is not None else []
        times = self._lane.take("start", rows) + self._base
        return messages(sequence.packet(times, event), len(rows))

    def _texts(self, key: str, rows: I64) -> I64:
        texts = self._profile.strings.get(key, ())
        codes = self._lane.take(key, rows) if key in self._lane else np.full(len(rows), -1)
        return self._sequence.iids(EVENT_NAMES, key, texts, codes, self._lane.kind)

    def _value(self, column: Column, values: npt.NDArray[Any]) -> Pieces:
        if column.kind == "text":
            texts = self._profile.strings[column.key]
            return varint_field(NOTE_TEXT, self._sequence.iids(NOTE_TEXTS, column.key, texts, values))
        if np.issubdtype(values.dtype, np.floating):
            return fixed64_field(NOTE_DOUBLE, values.astype(np.float64))
        return varint_field(NOTE_INT, values.astype(np.int64))


def _known(column: Column, values: npt.NDArray[Any]) -> I64:
    if np.issubdtype(values.dtype, np.floating):
        return np.asarray(np.isfinite(values), np.int64)
    return np.asarray(values >= 0 if column.kind == "text" else values != INT_MISSING, np.int64)
