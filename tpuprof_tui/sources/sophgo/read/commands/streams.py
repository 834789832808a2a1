"""Splits command streams and detail records (DYN_EXTRA) into items.

In both, the position of an item follows from the lengths of all items before it. The length of an item at every
possible position is computed at once; only the hops from item to item are sequential. Time and memory are linear in the
number of bytes, for any content, and nothing here raises on bad data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...chips.chip import Chip
from ...chips.commands import CommandTable, command_table, has_commands
from ..arrays import I16, I32, I64, U8, U32, Bytes
from .command_table import CommandStream
from .registers import EncodedCommands, as_buffer

SOUND_CHAIN = 3
"""Commands in a row that must decode where a walk resumes after one that did not."""

ZERO_TAIL_BYTES = 128
"""Longest run of trailing zeros after the final system command."""

EXTRA_HEADER_BYTES = 12
EXTRA_KINDS = {0: "STRING", 1: "BINARY", 100: "CUSTOM"}

_STEP = 0x3F
_STOP = 0x80
_CHUNK = 1 << 20
_RUN = 512
#: Cap for sizes of commands, so that they fit int32.
_LONGEST = (1 << 31) - 1


class _Steps(Struct, frozen=True):
    """Tables of the walk, with one entry for each unit (``CommandTable.unit_bytes``) of a stream."""

    headers: NDArray[np.uint64]  #: The unit and what follows it, as a 64-bit integer
    #: Command length in units, plus ``_STOP`` where the stream ends after it; 0 where nothing decodes or the length is
    #: not certain.
    codes: U8
    likely: U8  #: Like ``codes``, with the usual length where it is not certain
    ops: I16  #: Operation index that the header at the unit selects, even without a layout or room; -1 for none


def walk(chip: Chip, engine: str, data: bytes | bytearray | memoryview | Bytes) -> CommandStream:
    """Split a stream into commands, numbered from 0 here and from 1 by the hardware.

    A command whose layout is not known keeps its place in the numbering. The walk resumes after it: at the length that
    commands of its kind usually have if the commands there are sound, else at the next unit from which `SOUND_CHAIN`
    commands in a row decode or the commands end exactly with the data. Zeros up to the end of the data are not a
    command.
    """
    buffer = as_buffer(data)
    if not has_commands(chip, engine):
        length = np.array([len(buffer)] if len(buffer) else [], np.int64)
        return _capped(length * 0, length, np.full(len(length), -1, np.int16), len(buffer), ended=False, last=-1)
    table = command_table(chip, engine)
    used = len(buffer.tobytes().rstrip(b"\0"))  # bytes up to and including the last one that is not zero
    steps = _steps(chip, engine, table, buffer, used)
    units, ended = _walk_units(steps, table, used)
    offsets, lengths, ops = _commands(table, steps, units, len(buffer))
    end = int(offsets[-1] + lengths[-1]) if len(offsets) else 0
    rest = len(buffer) - end
    if not ended and 0 < rest < table.unit_bytes and used > end:
        offsets, lengths, ops = np.append(offsets, end), np.append(lengths, rest), np.append(ops, np.int16(-1))
        end = len(buffer)
    if len(ops) and ops[-1] == table.end.operation and table.end.drop_final_function is not None:
        # a last system command of this function leaves no record
        _, function = EncodedCommands(chip, engine, buffer, offsets[-1:], ops[-1:]).codes()
        kept = len(ops) - int(function[0] == table.end.drop_final_function)
        offsets, lengths, ops = offsets[:kept], lengths[:kept], ops[:kept]
    return _capped(offsets, lengths, ops, end, ended=ended, last=table.end.operation)


def _capped(offsets: I64, lengths: I64, ops: I16, end: int, *, ended: bool, last: int) -> CommandStream:
    """A stream of these commands; ``last``: the operation that ends streams."""
    only_ends = not len(ops) or (ended and ops.tolist() == [last])
    return CommandStream(offsets, np.minimum(lengths, _LONGEST).astype(np.int32), ops, end, ended, only_ends)


def _steps(chip: Chip, engine: str, table: CommandTable, buffer: Bytes, used: int) -> _Steps:
    headers = _headers(buffer, table.unit_bytes)
    count = len(headers)
    codes, likely = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
    ops = np.empty(count, np.int16)
    for first in range(0, count, _CHUNK):
        part = slice(first, min(first + _CHUNK, count))
        ops[part] = table.selection[table.selection_keys(headers[part])]
        codes[part], likely[part] = (sizes[ops[part]] // table.unit_bytes for sizes in (table.steps, table.usual))
    near_end = np.arange(max(0, count - _STEP), count)
    stops = _ending_units(chip, engine, table, buffer, headers, ops, used)
    for steps in (codes, likely):
        steps[near_end[steps[near_end] > count - near_end]] = 0
        steps[stops] |= _STOP
    return _Steps(headers, codes, likely, ops)


def _headers(buffer: Bytes, unit: int) -> NDArray[np.uint64]:
    """Eight bytes from each unit on as one integer; zeros follow the last unit."""
    whole = buffer[: len(buffer) // unit * unit]
    if unit % 8 == 0:
        return whole.view("<u8")[:: unit // 8]
    headers = whole.view("<u4").astype(np.uint64)
    headers[:-1] |= headers[1:] << np.uint64(32)
    return headers


def _ending_units(
    chip: Chip, engine: str, table: CommandTable, buffer: Bytes, headers: NDArray[np.uint64], ops: I16, used: int
) -> I64:
    """Units of system commands after which a stream ends."""
    units = np.flatnonzero(ops == table.end.operation)
    first_zero = max(used, len(buffer) - ZERO_TAIL_BYTES)
    size = int(table.sizes[table.end.operation])
    next_offsets = units * table.unit_bytes + size
    ending = (next_offsets >= first_zero) & (len(buffer) - next_offsets <= ZERO_TAIL_BYTES)
    if table.end.function is not None:
        by_itself = table.selection_keys(headers[units]) >> 1 + table.opcode_width == table.end.function
        if table.end.field is not None:
            ending_commands = EncodedCommands(chip, engine, buffer, units * table.unit_bytes, ops[units])
            values, _ = ending_commands.field(table.end.field)
            by_itself &= values == table.end.value
        ending |= by_itself
    return units[ending]


def _walk_units(steps: _Steps, table: CommandTable, used: int) -> tuple[list[int], bool]:
    """First units of the commands on a walk from the first unit, and whether a command ended it."""
    codes = steps.codes.tobytes()
    count = len(codes)
    units: list[int] = []
    sound: I64 | None = None
    used_units = -(-used // table.unit_bytes)
    unit = 0
    while unit < count:
        code = codes[unit]
        if code > _STEP:
            units.append(unit)
            return units, True
        if not code:
            if unit >= used_units:
                break
            if sound is None:
                sound = _sound_units(steps)
            units.append(unit)
            unit = _resume_unit(table, steps, sound, unit)
            continue
        units.append(unit)
        unit += code
    return units, False


def _sound_units(steps: _Steps) -> I64:
    """Units from which `SOUND_CHAIN` commands in a row decode, ascending, without those that have a zero header."""
    count = len(steps.likely)
    lengths = steps.likely & _STEP
    following = np.arange(count, dtype=np.int64) + lengths
    at_end = ((steps.likely & _STOP) > 0) | (following == count)
    np.minimum(following, count - 1, out=following)
    sound = lengths > 0
    for _ in range(SOUND_CHAIN - 1):
        sound = (lengths > 0) & (at_end | sound[following])
    return np.flatnonzero(sound & (steps.headers != 0))


def _resume_unit(table: CommandTable, steps: _Steps, sound: I64, unit: int) -> int:
    """Unit at which the walk resumes after ``unit``, whose command cannot be decoded."""
    count = len(steps.codes)
    op = int(steps.ops[unit])
    if op >= 0 and table.steps[op]:  # truncated by the end of the data
        return count
    header = int(steps.headers[unit])
    opcode = header >> table.opcode_bit & (1 << table.opcode_width) - 1
    short = bool(header >> table.short_bit & 1) if table.short_bit is not None else None
    similar = (each for each in table.operations if each.opcode == opcode and each.short in (None, short))
    usual = next((each.size for each in similar), 0)  # for any function code
    index = int(np.searchsorted(sound, unit + 1))
    usual_unit = unit + usual // table.unit_bytes
    if usual and (usual_unit == count or usual_unit in sound[index : index + usual]):
        return usual_unit
    return int(sound[index]) if index < len(sound) else count


def _commands(table: CommandTable, steps: _Steps, units: list[int], size: int) -> tuple[I64, I64, I16]:
    """Offset, length and operation of the commands at some units of a stream of ``size`` bytes."""
    starts = np.array(units, np.int64)
    codes = steps.codes[starts]
    offsets = starts * table.unit_bytes
    next_offsets = np.append(offsets[1:], size)
    lengths = np.where(codes > 0, (codes & _STEP).astype(np.int64) * table.unit_bytes, next_offsets - offsets)
    ops = steps.ops[starts]
    sizes = table.sizes[ops]
    return offsets, lengths, np.where((sizes > 0) & (sizes <= lengths), ops, -1).astype(np.int16)


class ExtraRecords(Struct, frozen=True):
    """The detail records of one block; arrays of one length, in order."""

    offsets: I64  #: First byte of each record's content
    lengths: I32  #: Bytes of the content
    kinds: I64  #: Kind code; see `EXTRA_KINDS`
    problems: tuple[tuple[int, str, int], ...]  #: Offset, what is wrong, and how many records it concerns

    def __len__(self) -> int:
        return len(self.offsets)


def split_extras(payload: bytes | bytearray | memoryview | Bytes) -> ExtraRecords:
    """Split a DYN_EXTRA payload into records: u32 profile id, u32 kind, u32 length, then the content, without padding.

    A truncated last record is reported as a problem and left out.
    """
    buffer = as_buffer(payload)
    headers = np.concatenate([np.zeros(0, np.int64), *_header_runs(buffer)])
    offsets = headers + EXTRA_HEADER_BYTES
    words: U32 = np.ndarray((max(len(buffer) - 3, 0),), "<u4", buffer.data, 0, (1,))
    kinds, lengths = (words[offsets - distance].astype(np.int64) for distance in (8, 4))
    if len(offsets) and offsets[-1] + lengths[-1] > len(buffer):
        offsets, kinds, lengths = offsets[:-1], kinds[:-1], lengths[:-1]
    end = int(offsets[-1] + lengths[-1]) if len(offsets) else 0
    problems: list[tuple[int, str, int]] = []
    foreign = np.flatnonzero(~np.isin(kinds, list(EXTRA_KINDS)))
    if len(foreign):
        first = int(foreign[0])
        what = f"detail record of unknown kind {kinds[first]}"
        problems.append((int(offsets[first]) - EXTRA_HEADER_BYTES, what, len(foreign)))
    rest = len(buffer) - end
    if 0 < rest < EXTRA_HEADER_BYTES:
        problems.append((end, f"{rest} bytes are too short for the header of a detail record", 1))
    elif rest:
        claimed = int.from_bytes(buffer[end + 8 : end + 12].tobytes(), "little")
        what = f"the last detail record is cut off: {rest - EXTRA_HEADER_BYTES} of {claimed} bytes"
        problems.append((end, what, 1))
    return ExtraRecords(offsets, np.minimum(lengths, _LONGEST).astype(np.int32), kinds, tuple(problems))


def _header_runs(buffer: Bytes) -> Iterator[I64]:
    """Offsets of the record headers (int64), in batches; the last record may extend beyond the buffer.

    Records are followed one by one; once two in a row have the same length, further ones of that length are found at
    once.
    """
    data = buffer.data
    length_at = struct.Struct("<I").unpack_from
    offset, last = 0, len(buffer) - EXTRA_HEADER_BYTES
    while offset <= last:
        run: list[int] = []
        append = run.append
        for _ in range(_RUN):
            append(offset)
            offset += EXTRA_HEADER_BYTES + length_at(data, offset + 8)[0]
            if offset > last:
                break
        yield np.array(run, np.int64)
        stride = offset - run[-1]
        if offset <= last and len(run) > 1 and run[-1] - run[-2] == stride:
            count = _equal_records(buffer, offset, stride)
            yield offset + np.arange(count, dtype=np.int64) * stride
            offset += count * stride


def _equal_records(buffer: Bytes, offset: int, stride: int) -> int:
    """Number of complete records of ``stride`` bytes each, from ``offset`` on."""
    most = (len(buffer) - offset) // stride
    found, window = 0, _RUN
    while found < most:
        window = min(window * 2, most - found)
        first = offset + found * stride + 8
        lengths: U32 = np.ndarray((window,), "<u4", buffer.data, first, (stride,))
        different = np.flatnonzero(lengths != stride - EXTRA_HEADER_BYTES)
        if len(different):
            return found + int(different[0])
        found += window
    return found
