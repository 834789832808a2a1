"""Monitor (PMU) records of one engine: views of the bytes read, in order, with unwrapped counters; how they begin."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.model.lane import Rows

from ...chips.bit_layout import RecordLayout
from ...chips.chip import Chip, family_of
from ..arrays import I64, U32, Bools, Bytes, id_sections
from ..problems import Problems
from .implausible_records import DISORDER, HALF, WRAP, implausible_mask, realignment_record, signed

#: Records that follow one another may overlap by this many cycles.
_SHORT_OVERLAP = 1000
#: A 16-bit id counter wraps when an id in this range is followed by one below `_FIRST_IDS`.
_LAST_IDS = (65001, 65535)
_FIRST_IDS = 1000


class RecordStream(Struct):
    """Records of one engine of a core, or of one CDMA port, in stream order."""

    engine: str
    port: int  #: Port number; -1 for an engine of a core
    layout: RecordLayout
    words: U32  #: (records, words) view of the bytes read, in dump order
    rows: I64 | None  #: Row of ``words`` of each record; None: in dump order
    id: I64  #: Command ids, with 16-bit wraps undone
    #: start, end: Times; cycles of the engine's clock with wraps undone, later ns.
    start: I64
    end: I64
    cycles: I64 | None = None  #: end - start + 1 in clock cycles; None while ``start`` and ``end`` are cycles
    lapped: bool = False  #: Whether the dump was a ring buffer that had lapped
    left_out: int = 0  #: Number of records of the dump that were left out as implausible
    first: int = 0  #: Index in the dump of the first row of ``words``
    #: Whether it is known to begin with the opening pair, also where its own records do not show that.
    opened: bool = False
    marked: bool = True  #: Whether the records of system commands are marked as such, where the chip has a rule for it

    def __len__(self) -> int:
        return len(self.start)

    @property
    def label(self) -> str:
        """Label of its lane."""
        return f"port {self.port}" if self.port >= 0 else self.engine

    def take(self, rows: I64 | Bools | slice) -> RecordStream:
        """The records at some rows of the stream."""
        columns = {name: getattr(self, name)[rows] for name in ("id", "start", "end")}
        cycles = None if self.cycles is None else self.cycles[rows]
        taken = replace(self, **columns, cycles=cycles)
        if self.rows is None and isinstance(rows, slice):
            taken.words, taken.first = self.words[rows], self.first + rows.indices(len(self.words))[0]
        else:
            taken.rows = (np.arange(len(self.words), dtype=np.int64) if self.rows is None else self.rows)[rows]
        return taken

    def shift(self, by: int | I64) -> None:
        """Shift all times by one amount, or each record's by its own."""
        self.start, self.end = self.start + by, self.end + by

    def dump_indices(self, rows: I64 | Bools | slice = slice(None)) -> I64:
        """Indices in the dump of some records; they identify records before it is known which are instructions."""
        word_rows = np.arange(len(self), dtype=np.int64) if self.rows is None else self.rows
        return self.first + word_rows[rows]

    def byte_offset(self, data: Bytes, row: int) -> int:
        """Byte offset of a record in the data it was read from; -1 where several blocks were joined."""
        if not np.may_share_memory(self.words, data):
            return -1
        first = self.words.__array_interface__["data"][0] - data.__array_interface__["data"][0]
        return int(first) + (row if self.rows is None else int(self.rows[row])) * self.layout.size

    def counter(self, name: str, rows: Rows = slice(None)) -> I64:
        """Values of a counter for some records, by its name in the record layout."""
        return self.layout.column(self.words, name, rows if self.rows is None else self.rows[rows])

    def system_mask(self, chip: Chip, rows: I64 | slice = slice(None)) -> Bools:
        """Mask of the records of system commands, by counters; all False where the chip's records do not tell."""
        words = self.words[rows if self.rows is None else self.rows[rows]]
        rule = chip.system_records.get(family_of(self.engine))
        if rule is None or not self.marked:
            return np.zeros(len(words), np.bool_)
        result: Bools = np.logical_and.reduce([self.layout.column(words, name) == rule.equals for name in rule.fields])
        return result


def read_stream(
    payloads: list[Bytes], offsets: list[int], chip: Chip, engine: str, report: Problems, port: int = -1
) -> RecordStream:
    """Records of the monitor blocks of one engine, as one dump.

    Args:
        payloads: Block payloads in file order; a partial record at the end of one is dropped with a Problem.
        offsets: Their offsets in the file.
        engine: ``TIU``, ``GDMA``, ``SDMA`` or ``CDMA``.
        port: CDMA port of the records; -1 for an engine of a core.
    """
    layout = chip.records[family_of(engine)]
    parts = [
        (layout.words(part), begin)
        for payload, offset in zip(payloads, offsets, strict=True)
        for part, begin in _aligned_parts(payload, offset, layout, engine, report, port)
    ]
    if len(payloads) > 1:
        report.note(f"{len(payloads)} blocks of {engine} records.", "Read as one dump.")
    words = parts[0][0] if len(parts) == 1 else np.concatenate([layout.words(b""), *(part for part, _ in parts)])
    start, end = layout.column(words, "inst_start_time"), layout.column(words, "inst_end_time")
    ids = layout.column(words, "inst_id")
    stream = RecordStream(engine, port, layout, words, None, ids, start, end)
    # the SDMA of a core writes some records late
    bad = implausible_mask(words, start, end, serial=port < 0, prompt=engine in ("TIU", "GDMA"))
    if bad is None:
        return stream
    file_offsets = np.concatenate([begin + layout.size * np.arange(len(part)) for part, begin in parts])
    rows = np.flatnonzero(bad)
    what = f"Impossible {engine} records: overwritten, or with times that no engine has."
    report.error(what, "They were left out.", offset=int(file_offsets[rows[0]]), lane=stream.label, count=len(rows),
                 after_gap=True, records=rows)  # fmt: skip
    stream.left_out = len(rows)
    return stream.take(~bad)


def _aligned_parts(
    payload: Bytes, offset: int, layout: RecordLayout, engine: str, report: Problems, port: int
) -> list[tuple[Bytes, int]]:
    """Whole records of a block and their file offset; two parts where bytes were inserted or lost between records."""
    rest = len(payload) % layout.size
    size = len(payload) - rest
    if not rest:
        return [(payload, offset)]
    word = layout.by_name["inst_start_time"].first // 32
    cut = None
    if port < 0:
        cut = realignment_record(lambda end: layout.words(payload[end * rest : end * rest + size])[:, word:])
    if cut is None:
        what = f"The {engine} records end with {rest} bytes of a partial record."
        report.error(what, "Those bytes were ignored.", offset=offset + size)
        return [(payload[:size], offset)]
    split = cut * layout.size
    what = f"{engine} records are separated by extra or missing bytes."
    report.error(what, "The next ones were found again; one may be wrong.", offset=offset + split)
    return [(payload[:split], offset), (payload[rest + split :], offset + rest + split)]


def in_order(stream: RecordStream, chip: Chip, report: Problems) -> RecordStream:
    """Stream of a serial engine with a lapped ring rotated, counters unwrapped, late-written records sorted in."""
    count = len(stream)
    if count == 0:
        return stream
    start, end = stream.start, stream.end
    steps_back = bool((start[1:] < end[:-1]).any()) or bool((end < start).any())
    if not steps_back and not _long_gap_seam(stream, chip):
        return stream
    seam = _ring_seam(stream, chip)
    if seam:
        stream = stream.take(np.roll(np.arange(count, dtype=np.int64), -seam))
        stream.lapped = True
        what = f"The {stream.engine} ring buffer wrapped: only its last {count} records survive."
        done = "Capture again with a larger max_record_num to see what came before."
        report.warning(what, done, lane=stream.engine, records=stream.dump_indices(slice(0, 1)))
    stream = _unwrapped(stream, report)
    late = stream.start[1:] < stream.start[:-1]
    if late.any() and stream.engine == "SDMA":
        order = np.argsort(stream.start, kind="stable")
        stream = stream.take(order)
        report.note("SDMA records written late were put in the order they started.", "", count=int(late.sum()))
    return stream


def _ring_seam(stream: RecordStream, chip: Chip) -> int:
    """Index in the dump of the oldest record of a lapped ring; 0 when the dump had not lapped.

    Modulo 2^32 a counter wrap is not a step back; the seam of a ring is one, as long as the surviving records span less
    than 2^31 cycles, and the dump's last record continues at its first. A dump that begins with the opening pair has
    not lapped. Beyond 2^31 cycles only ids can decide.
    """
    if len(stream) < 3 or opens(stream, chip):
        return 0
    step = signed(np.diff(stream.start))
    seam = int(step.argmin()) + 1
    closing = int(signed(stream.start[:1] - stream.end[-1:])[0])
    back = -int(step[seam - 1])
    if back > 0 and closing > -DISORDER and back > 2 * max(0, -closing):
        # ids that continue across the seam but not from the dump's last record to its first contradict a lapped ring
        ids_continue = stream.id[seam] == stream.id[seam - 1] + 1 and stream.id[0] not in (stream.id[-1] + 1, 0)
        if (step < -DISORDER).sum() <= 1 and not ids_continue:
            return seam
    return _long_gap_seam(stream, chip)


def _long_gap_seam(stream: RecordStream, chip: Chip) -> int:
    """Seam of a lapped ring whose surviving records span more than 2^31 cycles, found by ids; 0 without one."""
    ids = stream.id
    if len(ids) < 3 or ids[0] == 0:
        return 0
    breaks = np.flatnonzero((ids[1:] != ids[:-1] + 1) & (ids[1:] > 1)) + 1
    if len(breaks) != 1 or ids[0] != ids[-1] + 1 or opens(stream, chip):
        return 0
    # the dump's last record continues at its first: from there to the end lie almost 2^32 cycles
    if int(signed(stream.start[:1] - stream.end[-1:])[0]) < -_SHORT_OVERLAP:
        return 0
    return int(breaks[0])


#: Texts of the problem for a step back in time.
BACK_IN_TIME = (
    "A step back in time: the counter wrapped in a gap of over 2.1 s, or records are in disorder.",
    "Treated as a wrap.",
)


def _unwrapped(stream: RecordStream, report: Problems) -> RecordStream:
    """Times of a serial engine, with 32-bit counter wraps undone.

    A step back of more than 2^31 is a wrap, a small one an overlap or a record written late. A step back of more than
    2^24 cycles can be neither: the counter wrapped during a gap of more than 2^31.
    """
    start, end = stream.start, stream.end
    length = end - start
    length[length < 0] += WRAP
    step = np.diff(start)
    jumps = np.flatnonzero((step < -DISORDER) | (step > HALF)) + 1
    offsets = np.zeros(len(jumps) + 1, np.int64)
    offset = 0
    for number, row in enumerate(jumps.tolist()):
        change = int(step[row - 1])
        if change < 0:
            offset += WRAP
            if change >= -HALF:
                records = stream.dump_indices(slice(row, row + 1))
                report.warning(*BACK_IN_TIME, lane=stream.engine, records=records)
        elif offset and change - WRAP > -DISORDER:
            offset -= WRAP  # written after the wrap, started before it
        offsets[number + 1] = offset
    if len(jumps):
        edges = np.concatenate([[0], jumps, [len(start)]])
        start = start + np.repeat(offsets, np.diff(edges))
    stream.start = start
    stream.end = start + length
    return stream


def unwrapped_ids(ids: I64, longest: int | None) -> I64:
    """Ids with wraps of a 16-bit counter undone.

    Args:
        ids: Raw ids in stream order.
        longest: Largest known command id; None when commands are not known.

    Returns:
        Ids; a wrap adds 65536 until the next reset, after which counting starts at 0 again.
    """
    if longest is not None and longest <= _LAST_IDS[1]:
        return ids
    before, after = ids[:-1], ids[1:]
    wraps = (before >= _LAST_IDS[0]) & (before <= _LAST_IDS[1]) & (after < _FIRST_IDS)
    if not wraps.any():
        return ids
    begin, end = id_sections(ids)
    wrapped = np.append(False, wraps[begin[1:] - 1])
    count = np.cumsum(wrapped)
    since_reset = count - np.maximum.accumulate(np.where(wrapped, 0, count))
    result: I64 = ids + np.repeat(65536 * since_reset, end - begin)
    return result


def to_ns(stream: RecordStream, mhz: float) -> None:
    """Convert the stream's times to integer ns (half to even of t / f x 1000, as published) and keep its cycles."""
    if mhz == 1000:
        return
    stream.cycles = stream.end - stream.start + 1
    stream.start = np.rint(stream.start / mhz * 1000).astype(np.int64)
    stream.end = np.rint(stream.end / mhz * 1000).astype(np.int64)


# Recognises the start of a record stream: the profiler's opening pair, and markers after it.

#: Opening pairs of a core's engines start within this of one another.
OPENING_SPREAD_NS = 5_000
#: Markers without nodes that firmware may leave at one end of a stream.
MOST_MARKERS = 2


def begins_with_preamble(stream: RecordStream, chip: Chip, *, marked: bool = True) -> bool:
    """Whether the first two records look like the profiler's opening pair: system, ids 0 and 1, then a reset.

    It may be followed by markers of the profiler, or without a reset by the pair with ids 2 and 3 that begins a model's
    first launch. ``marked``: whether the records of system commands are marked as such; else ids decide alone.
    """
    if len(stream) < 2 or stream.id[0] != 0 or stream.id[1] != 1:
        return False
    runs_on = len(stream) > 2 and stream.engine != "SDMA" and stream.id[2] > 1
    if runs_on and not markers_at(stream, chip, 2, marked=marked):
        ids = stream.id[2:5].tolist()
        system = not marked or bool(stream.system_mask(chip, slice(2, 4)).all())
        if ids[:2] != [2, 3] or max(ids[2:], default=0) > 1 or not system:
            return False
    known = marked and family_of(stream.engine) in chip.system_records
    return not known or bool(stream.system_mask(chip, slice(0, 2)).all())


def opens(stream: RecordStream, chip: Chip) -> bool:
    """Whether a stream begins with the opening pair, by its own records or by those of the core's other engines."""
    return stream.opened or begins_with_preamble(stream, chip)


def find_unmarked_opening(streams: Mapping[str, RecordStream], chip: Chip, *, same_clock: bool) -> None:
    """Note on the TIU stream of a core, as dumped, that it begins with an opening pair, also where that has no mark.

    Emulators mark the records of TIU's system commands; on hardware the word counts bank conflicts, and the pair's is
    0. It is recognised by its ids next to a pair of a DMA engine, whose counters tell.

    Args:
        same_clock: Whether the counters of all engines tick alike, so that raw times compare.
    """
    tiu = streams.get("TIU")
    if tiu is None or not chip.preamble or not begins_with_preamble(tiu, chip, marked=False):
        return
    if begins_with_preamble(tiu, chip):
        tiu.opened = True
        return
    for name, other in streams.items():
        if name != "TIU" and begins_with_preamble(other, chip):
            distance = int(tiu.start[0] - other.start[0] + OPENING_SPREAD_NS) % (1 << 32)
            if not same_clock or distance < 2 * OPENING_SPREAD_NS * chip.dma_mhz // 1000:
                tiu.opened, tiu.marked = True, False


def markers_at(stream: RecordStream, chip: Chip, row: int, *, marked: bool = True) -> int:
    """Number of markers of the profiler from ``row`` on: system records whose ids leave a gap and then drop.

    ``marked``: whether the records of system commands are marked as such; else ids decide alone.
    """
    ids = stream.id[row - 1 : row + MOST_MARKERS + 1].tolist()
    system = stream.system_mask(chip, slice(row, row + MOST_MARKERS)).tolist()
    if not (marked and stream.marked):
        system = [True] * len(system)
    if len(ids) < 2 or ids[1] <= ids[0] + 1:
        return 0
    for count, here in enumerate(system, 1):
        if not here:
            return 0
        if len(ids) == count + 1 or ids[count + 1] < ids[count]:
            return count
    return 0
