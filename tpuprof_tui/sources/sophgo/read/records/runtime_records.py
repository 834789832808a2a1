"""Recognises what the runtime of a compiled model runs around it: pairs, copies of inputs and outputs, ends.

Before each launch the runtime issues a send and a wait on every engine, copies the inputs in before it and the outputs
out behind it, and lets an SDMA that has nothing to do end. On hardware each of these restarts the ids, so it is a
section of records of its own, and none of them is a command of the model's streams. Copies are shown in a lane of
their own; the others, like the profiler's own records, are not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from ...chips.chip import Chip, family_of
from ...chips.commands import command_table
from ..arrays import I64, Bools, id_sections
from ..commands.command_table import Commands, bits_of
from ..commands.registers import EncodedCommands, memories_of
from ..core_data import CoreData, EngineData, HostCopies
from .monitor import RecordStream, opens

#: Largest id of a pair's record: of the first launch's, where it continues the ids of the opening pair.
_LAST_PAIR_ID = 3
#: A pair of TIU is within this time of a pair of another engine, ns.
_BESIDE_NS = 5_000
#: Pairs that belong together end within this time of one another, ns.
_RELEASE_NS = 500
#: Most sections that are looked into.
_MOST_SUSPECTS = 10_000
#: Leading commands of a stream whose memories are decoded to tell copies from them; code of local memory.
_FIRST, _LOCAL = 16, 2
#: What a section contains.
_OTHER, _PAIR, _COPY = 0, 1, 2


class _Launch(Struct, frozen=True, eq=False):
    """What the commands of a stream, or of a kernel that firmware issues besides, can do."""

    system: Bools  #: Mask of the system commands
    copying: Bools  #: Mask of those that, as far as it is known, can move data from bus to bus

    def __len__(self) -> int:
        return len(self.system)


class _Sections(Struct):
    """Sections of an engine's records, cut where ids restart."""

    stream: RecordStream
    #: begin, end: First row of each section, and the row after its last.
    begin: I64
    end: I64
    kind: I64  #: What it contains
    sure: Bools  #: Whether its kind is certain by its own records or by those of other engines

    def spans(self, which: Bools) -> tuple[I64, I64]:
        """Start and end of some sections, ns."""
        return self.stream.start[self.begin[which]], self.stream.end[self.end[which] - 1]

    def rows(self, which: Bools) -> I64:
        """Rows of some sections."""
        parts = [np.arange(a, b) for a, b in zip(self.begin[which].tolist(), self.end[which].tolist(), strict=True)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def separate_runtime_records(result: CoreData, chip: Chip) -> None:
    """Separate the runtime's records of a compiled model from those of its streams, before records are bound.

    Where nodes log all commands in order, these can be the pairs, and only copies are left out.
    """
    if not (chip.preamble and result.bmodel):
        return
    if all(_is_complete(engine) for engine in result.engines.values()):
        return
    launches = {name: _launches(result, chip, name) for name in result.engines}
    found = _core_sections(result, chip, launches)
    for name, sections in found.items():
        engine, streams, system_type = result.engines[name], launches[name], chip.system_types[family_of(name)]
        if result.nodes is None and not any(launches.values()):
            # nothing but their counters tells the records of the model
            alone = all((each.kind != _OTHER).all() for each in found.values())
            _leave_out(engine, sections, (sections.kind != _OTHER) & (sections.sure | alone))
        elif engine.commands is None:
            _leave_out(engine, sections, _foreign(sections, [], name))
        elif not result.has_des_streams:
            kernels = _kernels(engine.commands.take(slice(engine.static_count, None)), system_type)
            spans = sections.stream.id[sections.end - 1] + 1
            of_kernels = np.isin(spans, list(map(len, kernels))) & ~np.isin(spans, list(map(len, streams)))
            _leave_out(engine, sections, _foreign(sections, [*streams, *kernels], name), of_kernels)
        elif not ((engine.commands.des < 0) & (engine.commands.type_code != system_type)).any():
            # no node logs a command that is neither of the streams nor a system command: copies are the runtime's
            copies = sections.kind == _COPY
            _leave_out(engine, sections, copies & ~_possible(sections, copies, streams, kinds_known=True))


def _is_complete(engine: EngineData) -> bool:
    """Whether the records of an engine are those of its commands, one to one, or it has neither."""
    return np.array_equal(engine.stream.id[engine.keep], () if engine.commands is None else engine.commands.id)


def _launches(result: CoreData, chip: Chip, name: str) -> list[_Launch]:
    """The model's streams for an engine, without empty ones."""
    known: dict[int, _Launch] = {}  # streams that are equal byte by byte share their operations
    end = command_table(chip, name).end.operation
    found = []
    for stream in filter(len, result.streams.get(name, ())):
        launch = known.get(id(stream.ops))
        if launch is None:
            system = np.asarray(stream.ops == end)
            copying = ~system
            if name != "TIU":
                first = stream.ops[:_FIRST]
                places = EncodedCommands(chip, name, result.data, stream.offsets[:_FIRST], first).addresses()
                local = np.logical_or.reduce([memories_of(chip, each) == _LOCAL for each in places])
                copying[:_FIRST] &= ~local | (first < 0)
            launch = known[id(stream.ops)] = _Launch(system, copying)
        found.append(launch)
    return found


def note_unmarked(result: CoreData, chip: Chip) -> None:
    """Note on the TIU stream of a core whether its pairs, recognised next to those of other engines, have a mark."""
    engine = result.engines.get("TIU")
    if engine is None or not chip.preamble or not engine.stream.marked or opens(engine.stream, chip):
        return
    sections = {name: _sections(each.stream, chip, (), ()) for name, each in result.engines.items()}
    tiu = sections.pop("TIU")
    start, end = tiu.spans(np.ones(len(tiu.begin), np.bool_))
    beside = np.zeros(len(tiu.begin), np.bool_)
    for each in sections.values():
        beside |= _beside(start, end, *each.spans(_is_pair(each) & (each.kind == _PAIR)), _RELEASE_NS)
    first = tiu.begin[_is_pair(tiu) & beside]
    marked = engine.stream.system_mask(chip, first) | engine.stream.system_mask(chip, first + 1)
    engine.stream.marked = 2 * int(np.count_nonzero(marked)) >= len(marked)


def _is_pair(sections: _Sections) -> Bools:
    """Mask of the sections with ids 0 and 1 exactly."""
    ids = sections.stream.id
    result: Bools = (sections.end - sections.begin == 2) & (ids[sections.begin] == 0) & (ids[sections.end - 1] == 1)
    return result


def separate_unbound_runtime_records(result: CoreData, chip: Chip) -> None:
    """The same for sections none of whose records has a command, after records are bound."""
    if not (chip.preamble and result.bmodel) or result.nodes is None:
        return
    bindable = [engine for engine in result.engines.values() if engine.commands is not None]
    if not any((engine.bound < 0)[engine.keep].any() for engine in bindable):
        return
    launches = {name: _launches(result, chip, name) for name in result.engines}
    for name, sections in _core_sections(result, chip, launches).items():
        engine = result.engines[name]
        if engine.commands is not None:
            bound = np.concatenate([[0], np.cumsum(engine.bound >= 0)])
            unbound = bound[sections.end] == bound[sections.begin]
            _leave_out(engine, sections, unbound & (sections.kind != _OTHER) & sections.sure)


def agree_on_first_reset(result: CoreData, chip: Chip) -> None:
    """Let the ids of a model's first pair restart in the nodes where they restart in the records.

    Emulators let them continue those of the opening pair; hardware restarts them, which nodes may not log.
    """
    if not (chip.preamble and result.bmodel):
        return
    dma = (engine.stream for name, engine in result.engines.items() if name != "TIU")
    heads = [stream for stream in dma if len(stream) >= 4 and stream.system_mask(chip, slice(0, 4)).all()]
    if not any(stream.id[:4].tolist() == [0, 1, 0, 1] for stream in heads):
        return
    for name, engine in result.engines.items():
        commands = engine.commands
        if commands is None or engine.static_count or commands.id[:4].tolist() != [0, 1, 2, 3]:
            continue
        outside = (commands.scope[:4] < 0) & (commands.type_code[:4] == chip.system_types[family_of(name)])
        if outside.all():
            commands.id[2:4] = 0, 1


def _kernels(commands: Commands, system_type: int) -> list[_Launch]:
    """Launches of kernels by nodes, cut where ids restart."""
    system = commands.type_code == system_type
    local = (bits_of(commands.word, 24, 3) == _LOCAL) | (bits_of(commands.word, 26, 3) == _LOCAL)
    copying = ~system & ~local
    spans = zip(*(edge.tolist() for edge in id_sections(commands.id)), strict=True)
    return [_Launch(system[begin:end], copying[begin:end]) for begin, end in spans]


def _core_sections(result: CoreData, chip: Chip, launches: Mapping[str, Sequence[_Launch]]) -> dict[str, _Sections]:
    """Sections of the records of each engine that are not the profiler's own."""
    found: dict[str, _Sections] = {}
    pairs: list[tuple[I64, I64]] = []
    for name in ("GDMA", "SDMA", "TIU"):
        engine = result.engines.get(name)
        if engine is None:
            continue
        whole = _sections(engine.stream, chip, pairs, launches[name])
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


def _sections(
    stream: RecordStream, chip: Chip, pairs: Sequence[tuple[I64, I64]], streams: Sequence[_Launch]
) -> _Sections:
    """Sections of a whole stream.

    Args:
        pairs: Start and end of the pairs of each other engine, for TIU.
        streams: The model's streams for the engine.
    """
    of_tiu = stream.engine == "TIU"
    if of_tiu:
        of_runtime = _in_pairs(stream, pairs)
    else:
        idle, copying = stream.system_mask(chip), _copying(stream)
        of_runtime = np.where(idle, _PAIR, np.where(copying, _COPY, _OTHER))
    begin, end = id_sections(stream.id)
    begin = np.union1d(begin, _hidden_cuts(stream, begin, end, of_runtime, streams))
    end = np.append(begin[1:], len(stream))
    found = _Sections(stream, begin, end, np.full(len(begin), _OTHER), np.full(len(begin), not of_tiu))
    few = _few(stream, begin, end)
    if of_tiu:
        found.kind[few] = _PAIR
        for start, last in pairs:
            found.sure |= _beside(stream.start[begin], stream.end[end - 1], start, last)
    else:
        found.kind[few & np.logical_and.reduceat(idle, begin)] = _PAIR
        found.kind[np.logical_and.reduceat(copying, begin)] = _COPY
    return found


def _few(stream: RecordStream, begin: I64, end: I64) -> Bools:
    """Mask of the sections that are as short as pairs."""
    result: Bools = (end - begin <= _LAST_PAIR_ID + 1) & (stream.id[end - 1] <= _LAST_PAIR_ID)
    return result


def _copying(stream: RecordStream) -> Bools:
    """Mask of the records that read and wrote the bus and no local memory."""
    if "gif_mem_ar_cntr" not in stream.layout.by_name:
        return np.zeros(len(stream), np.bool_)
    bus, local = ("axi_d0_w_cntr", "axi_d0_rd_vaild_cntr"), ("gif_mem_w_cntr", "gif_mem_ar_cntr")
    checks = [*(stream.counter(key) > 0 for key in bus), *(stream.counter(key) == 0 for key in local)]
    result: Bools = np.logical_and.reduce(checks)
    return result


def _in_pairs(stream: RecordStream, pairs: Sequence[tuple[I64, I64]]) -> I64:
    """`_PAIR` for the records of TIU next to a pair of another engine for which it has no section, else `_OTHER`."""
    result = np.zeros(len(stream), np.bool_)
    begin, end = id_sections(stream.id)
    few = _few(stream, begin, end)
    for starts, ends in pairs:
        answered = _beside(starts, ends, stream.start[begin[few]], stream.end[end[few] - 1], _RELEASE_NS)
        open_starts, open_ends = starts[~answered], ends[~answered]
        result |= _beside(stream.start, stream.end, open_starts, open_ends, _RELEASE_NS) & (stream.id <= 1)
    return np.where(result, _PAIR, _OTHER)


def _hidden_cuts(stream: RecordStream, begin: I64, end: I64, of_runtime: I64, streams: Sequence[_Launch]) -> I64:
    """Rows at which the model's records begin within a section.

    Where a launch lost its first records, its ids continue those of the runtime's records before it. Only their kinds
    tell them apart: none of the streams has such commands at its beginning.
    """
    heads = {(len(each), each.system[:_FIRST].tobytes(), each.copying[:_FIRST].tobytes()): each
             for each in {id(each): each for each in streams}.values()}.values()  # fmt: skip
    suspects = np.flatnonzero((of_runtime[begin] != _OTHER) & (end - begin > 1) & (stream.id[begin] <= 1))
    suspects = suspects[:_MOST_SUSPECTS] if heads else suspects[:0]
    found: list[int] = []
    for first, last in zip(begin[suspects].tolist(), end[suspects].tolist(), strict=True):
        kinds = of_runtime[first : min(first + _FIRST, last)]
        run = int(np.argmax(kinds != kinds[0])) or len(kinds)
        if run == last - first:
            continue
        ids = stream.id[first : first + run].tolist()
        for each in heads:
            fits = each.system if kinds[0] == _PAIR else each.copying
            if len(each) <= ids[-1] or stream.engine == "TIU":
                continue
            run = min(run, next((place for place in range(run, 0, -1) if not fits[ids[place - 1]]), 0))
        if run:
            found.append(first + run)
    return np.array(found, np.int64)


def _beside(start: I64, end: I64, others_start: I64, others_end: I64, distance: int = _BESIDE_NS) -> Bools:
    """Mask of the spans that are within ``distance`` (ns) of one of the others, both ascending."""
    if not len(others_end):
        return np.zeros(len(start), np.bool_)
    near = np.searchsorted(others_end, start - distance)
    result: Bools = near < len(others_end)
    result &= others_start[np.minimum(near, len(others_end) - 1)] <= end + distance
    return result


def _foreign(sections: _Sections, streams: Sequence[_Launch], name: str) -> Bools:
    """Mask of the sections that belong to none of the model's streams.

    A pair or copies that cannot be the records of any stream are foreign. Of those that could be, only as many are as
    there are more sections than streams: preferably every other one of a row, as a pair is before each launch.
    """
    runtime = sections.kind != _OTHER
    foreign: Bools = runtime & sections.sure & ~_possible(sections, runtime, streams, kinds_known=name != "TIU")
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


def _possible(sections: _Sections, which: Bools, streams: Sequence[_Launch], *, kinds_known: bool) -> Bools:
    """Mask of the sections among ``which`` that can be the records of a stream, half of which may be lost."""
    result = np.zeros(len(which), np.bool_)
    by_length: dict[int, dict[bytes, _Launch]] = {}
    for stream in {id(each): each for each in streams}.values():
        by_length.setdefault(len(stream), {})[stream.copying.tobytes() + stream.system.tobytes()] = stream
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
        launches = (each for size in sizes[smallest:largest].tolist() for each in by_length[size].values())
        masks = (each.system if kind == _PAIR else each.copying for each in launches)
        fits.append(not kinds_known or any(mask[begin : end + 1].all() for mask in masks))
    result[rows] = np.array(fits, np.bool_)[key_of_row.reshape(-1)]
    return result


def _leave_out(engine: EngineData, sections: _Sections, foreign: Bools, of_kernels: Bools | None = None) -> None:
    """Leave sections out of an engine's instructions; copies are noted.

    ``of_kernels``: mask of the sections of kernels that firmware issued besides the model.
    """
    if not foreign.any():
        return
    copies = foreign & (sections.kind == _COPY)
    if copies.any():
        rows = sections.rows(copies)
        of_model = ~foreign & (sections.kind != _PAIR)
        if of_kernels is not None:
            of_model &= ~of_kernels
        inward = np.repeat(_inward(sections, of_model, copies), (sections.end - sections.begin)[copies])
        if engine.copies is not None:
            rows, inward = np.append(engine.copies.rows, rows), np.append(engine.copies.inward, inward)
        order = np.argsort(rows, kind="stable")
        engine.copies = HostCopies(rows[order], inward[order])
    kept = np.zeros(len(engine.stream), np.bool_)
    kept[engine.keep] = True
    kept[sections.rows(foreign)] = False
    engine.keep = kept


def _inward(sections: _Sections, of_model: Bools, copies: Bools) -> Bools:
    """For each section of copies whether they are of inputs: the next section, pairs included, is the model's.

    Between two sections of the model, where no pair tells, the nearer one decides.
    """
    others = np.flatnonzero(~copies)
    rows = np.flatnonzero(copies)
    after = np.searchsorted(others, rows)
    is_model = np.append(of_model[others], False)  # the last entry: no section
    start, end = sections.stream.start[sections.begin], sections.stream.end[sections.end - 1]
    before, behind = is_model[after - 1], is_model[after]
    before[after == 0] = False
    following, preceding = (others[np.clip(each, 0, max(len(others) - 1, 0))] if len(others) else rows
                            for each in (after, after - 1))  # fmt: skip
    nearer = start[following] - end[rows] < start[rows] - end[preceding]
    result: Bools = behind & (~before | nearer)
    return result
