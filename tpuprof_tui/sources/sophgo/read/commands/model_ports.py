"""CDMA commands of a compiled model: matches its command streams with the launches on ports.

A stream contains the commands of one launch on one port, numbered from 1 like the records of a launch, but not the
port. So a launch is matched only if its records exclude all other streams: all ids within the stream, system records
where it has system commands and transfers where it has transfers, and, where streams still compete, the same number of
bytes as the command in every record. Streams of equal content are interchangeable, and a stream runs once.

Records that stay ambiguous get the operation at their place on which all candidate streams agree, without registers,
and are reported. In a port's own file the port is known, and with a single port and a single core the order resolves
the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.model.intervals import positions_in_runs

from ...chips.chip import Chip
from ...chips.commands import command_table
from ..arrays import I32, I64, U32, Bools, Bytes
from ..core_data import CoreData
from ..files import BlockType, payloads_of
from ..ports import COMMAND_BYTES, PortData, copied_commands
from .command_table import Commands, Mode
from .lane_registers import NO_FORMAT
from .registers import EncodedCommands
from .streams import walk

#: Bits of a node word that select the operation.
_OPERATION = (1 << 20) - 1
#: Largest table (launches times different streams); damaged captures may have any number of both.
_MOST_PAIRS = 500_000
#: Most rounds of elimination.
_MOST_ROUNDS = 100
_ELEMENT_BYTES = (1, 2, 4, 2, 4, 2, 1, 1)

#: Key of interchangeable streams: core, port and content.
_Key = tuple[int, int, bytes]


class _Stream(Struct, frozen=True, eq=False):
    core: int  #: Core of the file that contains them; -1 for a port's file
    port: int  #: Port; -1 unknown
    data: Bytes
    offsets: I64  #: First byte of each command
    lengths: I32  #: Size of each command, bytes
    system: Bools  #: Mask of the system commands
    size: I64  #: Bytes that each command moves; -1 where the registers do not determine it
    content: bytes  #: Equal for streams of equal commands
    codes: U32  #: Type, function and data type of each command as a node word; 0 where it cannot be decoded

    @property
    def agreed(self) -> bool:
        """Whether it is the agreement of several streams, without registers."""
        return not self.content


class _Launch(Struct, frozen=True, eq=False):
    """One launch on a port: its records ``begin`` to ``end`` (exclusive)."""

    port: PortData
    begin: int
    end: int
    number: I64
    system: Bools
    size: I64

    def fits(self, stream: _Stream) -> bool:
        """Whether the records can be those of the stream."""
        if stream.port not in (-1, self.port.port) or self.number[-1] >= len(stream.offsets):
            return False
        return bool((stream.system[self.number] == self.system).all())

    def moves(self, stream: _Stream) -> bool:
        """Whether every record moved exactly the bytes of the stream's command, where registers determine them."""
        expected = stream.size[self.number]
        return bool(((expected == self.size) | (expected < 0) | self.system).all())


def match_streams(ports: Sequence[PortData], cores: Sequence[CoreData], chip: Chip) -> None:
    """Bind the ports' records of a compiled model to commands."""
    files = [(core.data, core.blocks, core.core, -1) for core in cores]
    files += [(port.file_data, port.stream_blocks, -1, port.port) for port in ports]
    streams = [
        _stream(chip, data, payload, offset, core, port)
        for data, blocks, core, port in files
        for payload, offset in zip(*payloads_of(data, blocks, BlockType.DES_CDMA), strict=True)
    ]
    launches = [launch for port in ports for launch in _launches(port, chip)]
    chosen = _chosen(launches, streams)
    for port in ports:
        own = [(launch, found) for launch, found in zip(launches, chosen, strict=True) if launch.port is port]
        _bind(port, own)
        if streams:
            _report_unbound(port, own)
    _report_unused(cores, streams, chosen)


# -- what there is ------------------------------------------------------------


def _stream(chip: Chip, data: Bytes, payload: Bytes, offset: int, core: int, port: int) -> _Stream:
    found = walk(chip, "CDMA", payload)
    commands = EncodedCommands.of(chip, "CDMA", payload, found.offsets, found.lengths)
    system = commands.operations == command_table(chip, "CDMA").end.operation
    ends = zip(found.offsets.tolist(), (found.offsets + found.lengths).tolist(), strict=True)
    content = b"".join(payload[first:end].tobytes() for first, end in ends)
    size = _sizes(commands)
    types, functions = commands.codes()
    kind, missing = commands.field("src_data_format")
    words = 1 | types << 10 | functions << 15 | np.where(missing, NO_FORMAT, kind.astype(np.int64) & 15) << 20
    codes = np.where(commands.operations >= 0, words, 0).astype(np.uint32)
    return _Stream(core, port, data, found.offsets + offset, found.lengths, system, size, content, codes)


def _sizes(commands: EncodedCommands) -> I64:
    """Bytes that each command moves, from its shape and data type; -1 where the registers do not determine it."""
    kind, unknown = commands.field("src_data_format")
    unknown |= kind >= len(_ELEMENT_BYTES)
    total = np.array(_ELEMENT_BYTES, np.float64)[np.where(unknown, 0, kind).astype(np.int64)]
    for axis in "nchw":
        values, missing = commands.field(f"src_{axis}size")
        unknown |= missing
        total = total * values.astype(np.int64)
    return np.where(unknown | (total >= 1 << 62), -1, total).astype(np.int64)


def _launches(port: PortData, chip: Chip) -> list[_Launch]:
    system = port.stream.system_mask(chip)
    size = chip.figures["cdma"].condensed["bytes"].of(port.stream.counter)
    return [
        _Launch(port, begin, end, port.stream.id[begin:end] - 1, system[begin:end], size[begin:end])
        for begin, end in port.launches
        if port.stream.id[begin] > 0
    ]


# -- matching ------------------------------------------------------------------


def _chosen(launches: Sequence[_Launch], streams: Sequence[_Stream]) -> list[_Stream | None]:
    """Stream of each launch; None where no or more than one stream fits, and where there are too many to try."""
    if len({launch.port.port for launch in launches}) == 1 and len({stream.core for stream in streams}) == 1:
        return _in_order(launches, streams)
    by_content: dict[_Key, list[_Stream]] = {}
    for stream in streams:
        by_content.setdefault((stream.core, stream.port, stream.content), []).append(stream)
    left = {key: len(found) for key, found in by_content.items()}
    if len(launches) * len(by_content) > _MOST_PAIRS:
        return [None] * len(launches)
    candidates: dict[int, list[_Key]] = {}
    for index, launch in enumerate(launches):
        fitting = [key for key, found in by_content.items() if launch.fits(found[0])]
        candidates[index] = [key for key in fitting if launch.moves(by_content[key][0])] or fitting
    result: list[_Stream | None] = [None] * len(launches)

    def settle(index: int, key: _Key, *, core: int) -> None:
        found = by_content[key]
        result[index] = replace(found[len(found) - left[key]], core=core)
        left[key] -= 1
        del candidates[index]

    for _ in range(_MOST_ROUNDS):
        candidates = {index: [key for key in keys if left[key]] for index, keys in candidates.items()}
        settled = [(index, keys[0]) for index, keys in candidates.items() if len(keys) == 1]
        demand = Counter(key for _, key in settled)
        feasible = [(index, key) for index, key in settled if demand[key] <= left[key]]
        for index, key in feasible:
            settle(index, key, core=key[0])
        if not feasible and not _settle_equal(candidates, left, settle):
            break
    for index, keys in candidates.items():
        if len(keys) > 1:
            result[index] = _common_operations([by_content[key][0] for key in keys])
    return result


def _common_operations(streams: Sequence[_Stream]) -> _Stream | None:
    """What streams of different content agree on: the operation at each place; None if there is no such place."""
    count = min(len(stream.codes) for stream in streams)
    codes = np.stack([stream.codes[:count] for stream in streams])
    formats = codes >> np.uint32(20)
    same_format = (formats == formats[0]).all(axis=0)
    operations = codes & np.uint32(_OPERATION)
    same = (operations == operations[0]).all(axis=0) & (codes[0] != 0)
    if not same.any():
        return None
    formats = np.where(same_format, formats[0], NO_FORMAT).astype(np.uint32)
    cores, ports = {stream.core for stream in streams}, {stream.port for stream in streams}
    return _Stream(
        cores.pop() if len(cores) == 1 else -1, ports.pop() if len(ports) == 1 else -1, streams[0].data,
        np.full(count, -1, np.int64), np.zeros(count, np.int32), streams[0].system[:count], streams[0].size[:count],
        b"", np.where(same, operations[0] | formats << np.uint32(20), 0).astype(np.uint32),
    )  # fmt: skip


def _settle_equal(candidates: dict[int, list[_Key]], left: dict[_Key, int], settle: Callable[..., None]) -> bool:
    """Match launches that fit streams of one content only: their commands are known, the core is not."""
    launches_of: dict[tuple[_Key, ...], list[int]] = {}
    for index, keys in candidates.items():
        if len(keys) > 1 and len({key[1:] for key in keys}) == 1:
            launches_of.setdefault(tuple(keys), []).append(index)
    before = len(candidates)
    for group, indices in launches_of.items():
        for index in indices if len(indices) <= sum(left[key] for key in group) else ():
            settle(index, next(key for key in group if left[key]), core=-1)
    return len(candidates) < before


def _in_order(launches: Sequence[_Launch], streams: Sequence[_Stream]) -> list[_Stream | None]:
    """Streams of one core matched with launches of one port in order, as many as fit; None where that is ambiguous."""
    if len(launches) * len(streams) > _MOST_PAIRS:
        return [None] * len(launches)
    forward = _greedy(launches, streams)
    backward = _greedy(launches[::-1], streams[::-1])[::-1]
    return [
        one if one is not None and other is not None and one.content == other.content else None
        for one, other in zip(forward, backward, strict=True)
    ]


def _greedy(launches: Sequence[_Launch], streams: Sequence[_Stream]) -> list[_Stream | None]:
    """Match each launch with the first fitting stream after that of the previous one."""
    result: list[_Stream | None] = []
    at = 0
    for launch in launches:
        hit = next((n for n in range(at, len(streams)) if launch.fits(streams[n]) and launch.moves(streams[n])), None)
        result.append(None if hit is None else streams[hit])
        at = at if hit is None else hit + 1
    return result


# -- binding ------------------------------------------------------------------


def _bind(port: PortData, matches: Sequence[tuple[_Launch, _Stream | None]]) -> None:
    """Set the port's commands and bindings from the stream of each launch."""
    bound = [(launch, stream) for launch, stream in matches if stream is not None]
    if not bound:
        return
    streams = [stream for _, stream in bound]
    counts = np.array([len(stream.offsets) for stream in streams])
    firsts = np.cumsum(counts) - counts
    for (launch, stream), first in zip(bound, firsts.tolist(), strict=True):
        has_command = np.logical_not(stream.agreed) | (stream.codes[launch.number] != 0)
        port.bound[launch.begin : launch.end] = np.where(has_command, first + launch.number, -1)
    numbers, none = np.arange(counts.sum(), dtype=np.int64), np.full(counts.sum(), -1, np.int32)
    agreed = np.repeat([stream.agreed for stream in streams], counts)
    words, sizes = (np.concatenate([getattr(each, name) for each in streams]) for name in ("codes", "lengths"))
    words, offsets = np.where(agreed, words, np.uint32(0)), np.where(agreed, -1, numbers * COMMAND_BYTES)
    ids, mode = positions_in_runs(counts), np.full(len(none), Mode.NONE, np.int8)
    port.commands = Commands(words, ids, none, none, mode, numbers, none, none, offsets, sizes)
    port.core = np.repeat(np.array([stream.core for stream in streams], np.int32), counts)
    port.data = np.concatenate([copied_commands(stream.data, stream.offsets, stream.lengths) for stream in streams])


def _report_unbound(port: PortData, matches: Sequence[tuple[_Launch, _Stream | None]]) -> None:
    """Report records without a command, and those whose core is not known."""
    unbound = [launch for launch, stream in matches if stream is None]
    agreed = [launch for launch, stream in matches if stream and stream.agreed]
    coreless = [launch for launch, stream in matches if stream and not stream.agreed and stream.core < 0 > stream.port]
    findings = (
        ("CDMA records of a compiled model that none of its command streams explains, or too many.",
         "They are shown as unknown: a stream does not say which port it is for.", unbound, True),
        ("CDMA records of a compiled model that several of its command streams explain.",
         "What all of these streams agree on is shown; a stream does not say which port it is for.", agreed, False),
        ("Several cores have the CDMA command stream of these records.",
         "Their commands are known, the core that submitted them is not.", coreless, False),
    )  # fmt: skip
    for what, done, launches, unnamed in findings:
        if launches:
            rows = np.concatenate([np.arange(launch.begin, launch.end, dtype=np.int64) for launch in launches])
            records = port.stream.dump_indices(rows)
            port.report.warning(what, done, lane=port.stream.label, count=len(rows), records=records, unnamed=unnamed)


def _report_unused(cores: Sequence[CoreData], streams: Sequence[_Stream], chosen: Sequence[_Stream | None]) -> None:
    used = {id(stream.offsets) for stream in chosen if stream is not None}
    for core in cores:
        own = [stream for stream in streams if stream.core == core.core and id(stream.offsets) not in used]
        count = sum(len(stream.offsets) for stream in own)
        if count:
            what = "CDMA commands of a compiled model whose port is not known, or that left no record."
            done = "They belong to no instruction that is shown."
            core.report.warning(what, done, offset=int(own[0].offsets[0]) if len(own[0].offsets) else -1, count=count)
