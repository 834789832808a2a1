"""Recognises what the runtime of a compiled model runs around it: pairs, copies of inputs and outputs, ends.

Before each launch the runtime issues a send and a wait on every engine, copies the inputs in before it and the outputs
out behind it, and lets an SDMA that has nothing to do end. On hardware each of these restarts the ids, so it is a
section of records of its own, and none of them is a command of the model's streams. Copies are shown in a lane of
their own; the others, like the profiler's own records, are not shown.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from tpuprof_tui.sources.sophgo.chips.chip import Chip

from ..arrays import I64, Bools
from ..commands.des_streams import ModelStream
from ..core_data import CoreData, EngineData, HostCopies
from .monitor import RecordStream

#: Largest id of a pair's record: of the first launch's, where it continues the ids of the opening pair.
_LAST_PAIR_ID = 3
#: A pair of TIU is within this time of a pair of another engine, ns.
_BESIDE_NS = 5_000
#: What a section contains.
_OTHER, _PAIR, _COPY = 0, 1, 2


class _Sections(Struct):
    """Sections of an engine's records, cut where ids restart.

    Attributes:
        begin, end: First row of each section, and the row after its last.
        kind: What it contains.
        sure: Whether its kind is certain by its own records or by those of other engines.
    """

    stream: RecordStream
    begin: I64
    end: I64
    kind: I64
    sure: Bools

    def spans(self, which: Bools) -> tuple[I64, I64]:
        """Start and end of some sections, ns."""
        return self.stream.start[self.begin[which]], self.stream.end[self.end[which] - 1]

    def rows(self, which: Bools) -> I64:
        """Rows of some sections."""
        parts = [np.arange(a, b) for a, b in zip(self.begin[which].tolist(), self.end[which].tolist(), strict=True)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def separate_runtime_records(result: CoreData, chip: Chip) -> None:
    """Separate the runtime's records of a compiled model from those of its streams, before records are bound.

    Engines with commands of dynamic nodes are left out: their records are known only once they are bound.
    """
    if not (chip.preamble and result.bmodel):
        return
    found = _core_sections(result, chip)
    static = [name for name, engine in result.engines.items() if _only_streams(engine)]
    empty = not any(len(stream) for streams in result.streams.values() for stream in streams)
    if empty and not all((sections.kind != _OTHER).all() for sections in found.values()):
        return  # nothing tells the model's records
    for name in static:
        sections = found.get(name)
        if sections is None:
            continue
        streams = result.streams[name] if result.engines[name].static_count else []
        _leave_out(result.engines[name], sections, _foreign(sections, streams, name))


def separate_unbound_runtime_records(result: CoreData, chip: Chip) -> None:
    """The same for sections none of whose records has a command, after records are bound."""
    if not (chip.preamble and result.bmodel) or result.nodes is None:
        return
    for name, sections in _core_sections(result, chip).items():
        engine = result.engines[name]
        if engine.commands is None:
            continue
        bound = np.concatenate([[0], np.cumsum(engine.bound >= 0)])
        unbound = bound[sections.end] == bound[sections.begin]
        _leave_out(engine, sections, unbound & (sections.kind != _OTHER) & sections.sure)


def _only_streams(engine: EngineData) -> bool:
    return engine.commands is None or engine.static_count == len(engine.commands)


def _core_sections(result: CoreData, chip: Chip) -> dict[str, _Sections]:
    """Sections of the records of each engine that are not the profiler's own."""
    found: dict[str, _Sections] = {}
    pairs: list[tuple[I64, I64]] = []
    for name in ("GDMA", "SDMA", "TIU"):
        engine = result.engines.get(name)
        if engine is None:
            continue
        whole = _sections(engine.stream, chip, pairs)
        if name != "TIU":
            pairs.append(whole.spans(whole.kind == _PAIR))
        rows = np.arange(len(engine.stream))[engine.keep]
        # the first launch's pair continues the ids of the opening pair
        first, last = np.searchsorted(rows, whole.begin), np.searchsorted(rows, whole.end)
        inside = np.flatnonzero(first < last)
        if len(inside):
            begin = rows[first[inside]]
            found[name] = _Sections(engine.stream, begin, whole.end[inside], whole.kind[inside], whole.sure[inside])
    return found


def _sections(stream: RecordStream, chip: Chip, pairs: Sequence[tuple[I64, I64]]) -> _Sections:
    """Sections of a whole stream; ``pairs``: spans of the pairs of the other engines, for TIU."""
    cuts = np.flatnonzero(stream.id[1:] <= stream.id[:-1]) + 1
    begin, end = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(stream)]])
    kind = np.full(len(begin), _OTHER)
    few = (end - begin <= _LAST_PAIR_ID + 1) & (stream.id[end - 1] <= _LAST_PAIR_ID)
    if stream.engine == "TIU":
        kind[few] = _PAIR
        sure = np.zeros(len(begin), np.bool_)
        for start, last in pairs:
            if len(start):
                sure |= _beside(stream.start[begin], stream.end[end - 1], start, last)
        return _Sections(stream, begin, end, kind, sure)
    idle = np.add.reduceat(stream.system_mask(chip).astype(np.int64), begin) == end - begin
    kind[few & idle] = _PAIR
    if "gif_mem_ar_cntr" in stream.layout.by_name:
        local, bus = (
            np.logical_and.reduce([(stream.counter(key) > 0) == (side == "bus") for key in keys])
            for side, keys in (
                ("local", ("gif_mem_w_cntr", "gif_mem_ar_cntr")),
                ("bus", ("axi_d0_w_cntr", "axi_d0_rd_vaild_cntr")),
            )
        )
        copies = local & bus
        kind[np.add.reduceat(copies.astype(np.int64), begin) == end - begin] = _COPY
    return _Sections(stream, begin, end, kind, np.ones(len(begin), np.bool_))


def _beside(start: I64, end: I64, others_start: I64, others_end: I64) -> Bools:
    """Mask of the spans that are within `_BESIDE_NS` of one of the others, both ascending."""
    near = np.searchsorted(others_end, start - _BESIDE_NS)
    result: Bools = near < len(others_end)
    result &= others_start[np.minimum(near, len(others_end) - 1)] <= end + _BESIDE_NS
    return result


def _foreign(sections: _Sections, streams: Sequence[ModelStream], name: str) -> Bools:
    """Mask of the sections that belong to none of the model's streams.

    A pair or copies that cannot be the records of any stream are foreign. Of those that could be, only as many are as
    there are more sections than streams: preferably every other one of a row, as a pair is before each launch.
    """
    runtime = sections.kind != _OTHER
    foreign = runtime & sections.sure & ~_possible(sections, runtime, streams, kinds_known=name != "TIU")
    left = np.flatnonzero(~foreign)
    doubtful = runtime[left]
    surplus = len(left) - len(streams)
    if surplus > 0 and doubtful.any():
        place = np.arange(len(left))
        in_row = place - np.maximum.accumulate(np.where(doubtful, -1, place)) - 1
        before = (in_row % 2 == 0) & (place < len(left) - 1)
        rank = np.where(sections.sure[left], np.where(before, 0, 1), 2)[doubtful]
        foreign[left[doubtful][np.argsort(rank, kind="stable")[:surplus]]] = True
    return foreign


def _possible(sections: _Sections, which: Bools, streams: Sequence[ModelStream], *, kinds_known: bool) -> Bools:
    """Mask of the sections among ``which`` that can be the records of a stream, half of which may be lost."""
    result = np.zeros(len(which), np.bool_)
    by_length: dict[int, dict[bytes, ModelStream]] = {}
    for stream in streams:
        by_length.setdefault(len(stream), {})[stream.system.tobytes()] = stream
    sizes = np.array(sorted(by_length), np.int64)
    first, last = sections.stream.id[sections.begin], sections.stream.id[sections.end - 1]
    length = sections.end - sections.begin
    low, high = (np.searchsorted(sizes, most, side="right") for most in (last, 2 * length))
    rows = np.flatnonzero(which & (low < high))
    keys, key_of_row = np.unique(
        np.stack([sections.kind[rows], first[rows], last[rows], low[rows], high[rows]]), axis=1, return_inverse=True
    )
    fits = []
    for kind, begin, end, smallest, largest in keys.T.tolist():
        candidates = [each for size in sizes[smallest:largest].tolist() for each in by_length[size].values()]
        fits.append(not kinds_known or any((each.system[begin : end + 1] == (kind == _PAIR)).all() for each in candidates))
    result[rows] = np.array(fits, np.bool_)[key_of_row.reshape(-1)]
    return result


def _leave_out(engine: EngineData, sections: _Sections, foreign: Bools) -> None:
    """Leave sections out of an engine's instructions; copies are noted."""
    if not foreign.any():
        return
    copies = foreign & (sections.kind == _COPY)
    if copies.any():
        inward = np.repeat(_inward(sections, foreign, copies), (sections.end - sections.begin)[copies])
        engine.copies = HostCopies(sections.rows(copies), inward)
    kept = np.zeros(len(engine.stream), np.bool_)
    kept[engine.keep] = True
    kept[sections.rows(foreign)] = False
    engine.keep = kept


def _inward(sections: _Sections, foreign: Bools, copies: Bools) -> Bools:
    """For each section of copies whether they are of inputs: the next section, pairs included, is the model's.

    Between two sections of the model, where no pair tells, the nearer one decides.
    """
    others = np.flatnonzero(~copies)
    rows = np.flatnonzero(copies)
    after = np.searchsorted(others, rows)
    is_model = np.append(~foreign[others], False)  # the last entry: no section
    start, end = sections.stream.start[sections.begin], sections.stream.end[sections.end - 1]
    before, behind = is_model[after - 1], is_model[after]
    before[after == 0] = False
    following, preceding = (others[np.clip(each, 0, max(len(others) - 1, 0))] if len(others) else rows
                            for each in (after, after - 1))  # fmt: skip
    nearer = start[following] - end[rows] < start[rows] - end[preceding]
    return np.asarray(behind & (~before | nearer))
