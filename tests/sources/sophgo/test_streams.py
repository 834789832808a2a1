from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from encoded_commands import index_of, the
from hypothesis import given, settings
from hypothesis import strategies as st

from tpuprof_tui.sources.sophgo.chips.commands import command_table
from tpuprof_tui.sources.sophgo.read.commands import registers, streams

FAMILIES = [
    ("aks", "tiu"), ("aks", "dma"), ("aks", "cdma"), ("aksv", "tiu"), ("aksv", "dma"), ("aksv", "cdma"),
    ("bm1688", "tiu"), ("bm1688", "dma"), ("cv84x6", "tiu"), ("cv84x6", "dma"),
]  # fmt: skip
SYSTEM = {"tiu": "SYS", "dma": "sDMA_sys", "cdma": "sCDMA_sys"}


def command(chip: str, family: str, name: str, function: int, fill: int = 0, **fields: int) -> bytes:
    """A command whose bits are all ``fill`` except for its header and the fields given."""
    table = command_table(the(chip), family)
    operation = table.operations[index_of(table, name)]
    value = (1 << operation.size * 8) - 1 if fill else 0
    parts = [
        (table.opcode_bit, table.opcode_width, operation.opcode),
        (table.opcode_bit + table.opcode_width, operation.function_width, function),
    ]
    if table.short_bit is not None:
        parts.append((table.short_bit, 1, int(bool(operation.short))))
    parts += [(operation.by_name[key].first, operation.by_name[key].width, part) for key, part in fields.items()]
    for first, width, part in parts:
        value = value & ~(((1 << width) - 1) << first) | part << first
    return value.to_bytes(operation.size, "little")


def plain_commands(chip: str, family: str, draw: random.Random, count: int) -> list[tuple[str, bytes]]:
    """Commands with random content, none of them a system command."""
    table = command_table(the(chip), family)
    known = [op for op in table.operations if op.known and op.name != SYSTEM[family]]
    result = []
    for operation in draw.choices(known, k=count):
        function = draw.choice(sorted(operation.functions))
        head = int.from_bytes(command(chip, family, operation.name, function), "little")
        codes = (1 << table.opcode_width + operation.function_width) - 1 << table.opcode_bit
        if table.short_bit is not None:
            codes |= 1 << table.short_bit
        value = draw.getrandbits(operation.size * 8) & ~codes | head & codes
        result.append((operation.name, value.to_bytes(operation.size, "little")))
    return result


def names_of(chip: str, family: str, stream: streams.Stream) -> list[str | None]:
    operations = command_table(the(chip), family).operations
    return [operations[op].name if op >= 0 else None for op in stream.ops.tolist()]


@pytest.mark.parametrize(("chip", "family"), FAMILIES)
@pytest.mark.parametrize("zeros", [0, 16, 112])
def test_streams_are_cut_into_their_commands(chip: str, family: str, zeros: int) -> None:
    draw = random.Random(f"{chip}{family}")
    for count in (0, 1, 2, 7, 60):
        parts = plain_commands(chip, family, draw, count)
        parts.append((SYSTEM[family], command(chip, family, SYSTEM[family], 1)))
        data = b"".join(part for _, part in parts)
        stream = streams.walk(the(chip), family, data + bytes(zeros))
        assert names_of(chip, family, stream) == [name for name, _ in parts]
        assert [data[o : o + n] for o, n in zip(stream.offsets, stream.lengths, strict=True)] == [
            part for _, part in parts
        ]
        assert (stream.end, stream.ended) == (len(data), True)
        assert (stream.ops >= 0).all()


def test_a_stream_may_end_without_a_system_command() -> None:
    data = command("aks", "tiu", "sAR", 2) * 3
    stream = streams.walk(the("aks"), "TIU", data)
    assert (len(stream), stream.end, stream.ended) == (3, len(data), False)


@pytest.mark.parametrize(
    ("chip", "family", "function", "fields", "ends"),
    [
        ("aks", "tiu", 31, {}, False),
        ("aks", "dma", 0, {}, False),
        ("aks", "cdma", 0, {}, True),
        ("aksv", "cdma", 0, {}, True),
        ("aks", "cdma", 1, {}, False),
        ("bm1688", "tiu", 31, {"rsvd1": 1}, True),
        ("bm1688", "tiu", 31, {"rsvd1": 0}, False),
        ("bm1688", "tiu", 30, {"rsvd1": 1}, False),
        ("cv84x6", "tiu", 31, {"rsvd1": 1}, True),
        ("cv84x6", "dma", 0, {}, True),
        ("cv84x6", "dma", 1, {}, False),
        ("bm1688", "dma", 0, {}, False),
    ],
)
def test_which_commands_end_a_stream(chip: str, family: str, function: int, fields: dict[str, int], ends: bool) -> None:
    system = command(chip, family, SYSTEM[family], function, **fields)
    following = plain_commands(chip, family, random.Random(3), 4)
    data = system + b"".join(part for _, part in following)
    stream = streams.walk(the(chip), family, data)
    assert stream.ended is ends
    assert names_of(chip, family, stream) == [SYSTEM[family]] + ([] if ends else [name for name, _ in following])


@pytest.mark.parametrize(("zeros", "ended"), [(0, True), (128, True), (144, False)])
def test_only_a_short_tail_of_zeros_ends_a_stream(zeros: int, ended: bool) -> None:
    data = command("aks", "tiu", "SYS", 1) + bytes(zeros)
    stream = streams.walk(the("aks"), "TIU", data)
    assert stream.ended is ended
    assert len(stream) == (1 if ended else 2)
    assert (stream.ops >= 0).all()


def test_a_final_command_without_a_record_is_left_out() -> None:
    tensor = command("bm1688", "dma", "DMA_tensor", 0, fill=1)
    end = command("bm1688", "dma", "sDMA_sys", 0)
    other = command("bm1688", "dma", "sDMA_sys", 3)
    assert names_of("bm1688", "dma", streams.walk(the("bm1688"), "GDMA", tensor + end)) == ["DMA_tensor"]
    assert len(streams.walk(the("bm1688"), "GDMA", tensor + other)) == 2
    assert len(streams.walk(the("bm1688"), "GDMA", end + tensor)) == 2
    assert len(streams.walk(the("cv84x6"), "GDMA", command("cv84x6", "dma", "sDMA_sys", 0))) == 1


@pytest.mark.parametrize("chip", ["aks", "aksv"])
@pytest.mark.parametrize("name", ["DMA_compress", "DMA_decompress", "DMA_randmask", "DMA_transfer"])
@pytest.mark.parametrize("fill", [0, 0xFF])
def test_a_layout_nobody_knows_costs_no_other_command(chip: str, name: str, fill: int) -> None:
    before, after = command(chip, "dma", "DMA_tensor", 1, fill=1), command(chip, "dma", "DMA_matrix", 0)
    table = command_table(the(chip), "dma")
    operation = table.operations[index_of(table, name)]
    unknown = (operation.opcode << table.opcode_bit).to_bytes(8, "little") + bytes([fill]) * 88
    for times in (1, 2, 7):  # in a row too: each keeps its number
        data = before + unknown * times + after * 2 + command(chip, "dma", "sDMA_sys", 0)
        stream = streams.walk(the(chip), "GDMA", data)
        names = ["DMA_tensor", *[name] * times, "DMA_matrix", "DMA_matrix", "sDMA_sys"]
        assert names_of(chip, "dma", stream) == names
        assert stream.offsets[1 : times + 1].tolist() == [96 * (place + 1) for place in range(times)]


def test_a_command_without_a_known_length_goes_on_to_where_commands_are_sound_again() -> None:
    table = command_table(the("aks"), "dma")
    opcode = table.operations[index_of(table, "DMA_transfer")].opcode
    header = (opcode << table.opcode_bit).to_bytes(8, "little")
    after = command("aks", "dma", "DMA_tensor", 1, fill=1) * 4
    for size in (16, 64, 128, 160):
        stream = streams.walk(the("aks"), "GDMA", header + b"\xff" * (size - 8) + after)
        assert names_of("aks", "dma", stream) == ["DMA_transfer", *["DMA_tensor"] * 4]
        assert stream.lengths[0] == size


def test_an_unknown_function_costs_its_command_alone() -> None:
    table = command_table(the("aks"), "tiu")
    assert 24 not in table.operations[index_of(table, "sAR")].functions
    odd = command("aks", "tiu", "sAR", 24, fill=1)
    parts = [command("aks", "tiu", "sMM2", 4), odd, command("aks", "tiu", "sLIN", 1), command("aks", "tiu", "SYS", 31)]
    stream = streams.walk(the("aks"), "TIU", b"".join(parts))
    assert names_of("aks", "tiu", stream) == ["sMM2", None, "sLIN", "SYS"]
    assert stream.lengths.tolist() == [len(part) for part in parts]


def test_the_walk_resumes_behind_garbage() -> None:
    garbage = ((11 << 41).to_bytes(8, "little") + b"\xff" * 8) * 3
    parts = [command("aks", "tiu", "sCONV", 0, fill=1)] * 5
    stream = streams.walk(the("aks"), "TIU", parts[0] + garbage + b"".join(parts))
    assert names_of("aks", "tiu", stream) == ["sCONV", None, *["sCONV"] * 5]
    assert stream.lengths[1] == 48


def test_a_command_cut_off_is_the_last() -> None:
    whole = command("aks", "dma", "DMA_general", 0, fill=1)
    for kept in (1, 15, 16, 40, 95):
        data = whole + whole[:kept]
        stream = streams.walk(the("aks"), "GDMA", data)
        assert names_of("aks", "dma", stream) == ["DMA_general", None]
        assert stream.lengths.tolist() == [96, kept]
        assert stream.end == len(data)
        assert registers.decode(the("aks"), "GDMA", data[stream.offsets[1] :]) is None


def test_zeros_up_to_the_end_are_no_command() -> None:
    data = command("aks", "tiu", "sAR", 2) + bytes(100)
    stream = streams.walk(the("aks"), "TIU", data)
    assert names_of("aks", "tiu", stream) == ["sAR"]
    assert (stream.end, stream.ended) == (64, False)
    assert len(streams.walk(the("aks"), "TIU", b"")) == 0
    assert len(streams.walk(the("aks"), "TIU", bytes(12))) == 0


def test_an_engine_without_commands_gives_one_undecodable() -> None:
    stream = streams.walk(the("bm1688"), "CDMA", bytes(100))
    assert (stream.ops.tolist(), stream.lengths.tolist()) == ([-1], [100])
    assert registers.decode(the("bm1688"), "CDMA", bytes(100)) is None


@settings(max_examples=80)
@given(st.sampled_from(FAMILIES), st.integers(0, 2**32), st.data())
def test_hostile_streams_are_walked_without_gaps(where: tuple[str, str], seed: int, data: st.DataObject) -> None:
    chip, family = where
    draw = random.Random(seed)
    content = bytearray(b"".join(part for _, part in plain_commands(chip, family, draw, draw.randrange(20))))
    for _ in range(draw.randrange(6)):
        at = draw.randrange(len(content) + 1)
        content[at : at + draw.randrange(40)] = data.draw(st.binary(max_size=40))
    stream = streams.walk(the(chip), family, content)
    assert (stream.lengths > 0).all()
    assert (stream.offsets[1:] == stream.offsets[:-1] + stream.lengths[:-1]).all()
    assert stream.end <= len(content)
    if not stream.ended:
        assert not any(content[stream.end :])
    operations = command_table(the(chip), family).operations
    for offset, length, op in zip(stream.offsets, stream.lengths, stream.ops, strict=True):
        single = registers.decode(the(chip), family, bytes(content[offset : offset + 240]))
        if op < 0:
            assert single is None
        else:
            selected = single.operation
            assert selected is operations[op]
            assert selected.needed <= length if selected.partial else selected.size == length


def test_hostile_streams_stay_linear_in_problems() -> None:
    """Each place of hopeless data is looked at once: every entry is at least one place long."""
    content = np.random.default_rng(7).integers(0, 256, 1 << 20, dtype=np.uint8)
    stream = streams.walk(the("aks"), "TIU", content)
    assert int(stream.lengths.sum()) == stream.end
    assert (stream.ops < 0).sum() > 5


def record(content: bytes, kind: int = 1) -> bytes:
    return struct.pack("<III", 9, kind, len(content)) + content


@given(st.lists(st.tuples(st.binary(max_size=40), st.sampled_from([0, 1, 100, 7])), max_size=30), st.integers(1, 700))
def test_records_are_split(parts: list[tuple[bytes, int]], repeat: int) -> None:
    block = [*parts, *(parts[-1:] * repeat), *parts]
    payload = b"".join(record(content, kind) for content, kind in block)
    extras = streams.split_extras(payload)
    assert [payload[o : o + n] for o, n in zip(extras.offsets, extras.lengths, strict=True)] == [
        content for content, _ in block
    ]
    assert extras.kinds.tolist() == [kind for _, kind in block]
    foreign = sum(kind == 7 for _, kind in block)
    assert [count for _, _, count in extras.problems] == ([foreign] if foreign else [])


@given(st.lists(st.integers(0, 60), min_size=1, max_size=20), st.data())
def test_records_cut_off_are_left_out_and_told(sizes: list[int], data: st.DataObject) -> None:
    payload = b"".join(record(bytes(size)) for size in sizes)
    kept = data.draw(st.integers(0, len(payload) - 1))
    ends = np.cumsum([size + 12 for size in sizes])
    whole = int(np.sum(ends <= kept))
    extras = streams.split_extras(payload[:kept])
    assert extras.lengths.tolist() == sizes[:whole]
    start = int(ends[whole - 1]) if whole else 0
    assert [(offset, count) for offset, _, count in extras.problems] == ([(start, 1)] if kept > start else [])


@given(st.binary(max_size=400))
def test_any_bytes_split_into_records_inside_them(payload: bytes) -> None:
    extras = streams.split_extras(payload)
    assert (extras.offsets + extras.lengths <= len(payload)).all()
    assert (extras.offsets[1:] == extras.offsets[:-1] + extras.lengths[:-1] + 12).all()


def test_a_giant_claim_ends_the_records() -> None:
    payload = record(b"abcd") + struct.pack("<III", 0, 1, 0xFFFFFFFF) + bytes(50)
    extras = streams.split_extras(payload)
    assert extras.lengths.tolist() == [4]
    assert extras.problems == ((16, "the last detail record is cut off: 50 of 4294967295 bytes", 1),)
