from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.readers.cdm import registers
from tpuprof_tui.readers.cdm.chips import (
    Chip,
    ChipDataError,
    chip_by_name,
    chip_names,
    commands,
    name_table,
    packed_keys,
)
from tpuprof_tui.readers.cdm.chips.commands import CommandTable, Operation, command_table, table_from_data

FAMILIES = [
    (name, family)
    for name in chip_names()
    for family in ("tiu", "dma", "cdma")
    if commands.has_commands(chip_by_name(name), family)  # type: ignore[arg-type]
]
OPERATIONS = [
    pytest.param(name, family, operation.name, id=f"{name}-{family}-{operation.name}")
    for name, family in FAMILIES
    for operation in command_table(chip_by_name(name), family).operations  # type: ignore[arg-type]
    if operation.known and not operation.partial
]
PARTIAL = [
    pytest.param(name, operation.name, id=f"{name}-{operation.name}")
    for name in chip_names()
    for operation in command_table(chip_by_name(name), "dma").operations  # type: ignore[arg-type]
    if operation.partial
]


def the(name: str) -> Chip:
    chip = chip_by_name(name)
    assert chip is not None
    return chip


def with_header(table: CommandTable, operation: Operation, function: int, short: bool, value: int) -> int:
    """``value`` with the header bits that select ``operation``."""

    def put(value: int, first: int, width: int, part: int) -> int:
        return value & ~(((1 << width) - 1) << first) | part << first

    value = put(value, table.opcode_bit, table.opcode_width, operation.opcode)
    value = put(value, table.opcode_bit + table.opcode_width, operation.function_width, function)
    if table.short_bit is not None:
        value = put(value, table.short_bit, 1, int(short if operation.short is None else operation.short))
    return value


def random_command(draw: random.Random, table: CommandTable, operation: Operation, function: int) -> bytes:
    value = with_header(table, operation, function, draw.random() < 0.5, draw.getrandbits(operation.size * 8))
    return value.to_bytes(operation.size, "little")


def packed(
    commands_: list[bytes], gap: int = 0
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    buffer = bytearray()
    offsets = []
    for data in commands_:
        buffer += bytes(gap)
        offsets.append(len(buffer))
        buffer += data
    lengths = np.array([len(data) for data in commands_], np.int64)
    return np.frombuffer(bytes(buffer), np.uint8), np.array(offsets, np.int64), lengths


def test_every_chip_has_its_families() -> None:
    assert FAMILIES == [
        ("aks", "tiu"), ("aks", "dma"), ("aks", "cdma"),
        ("aksv", "tiu"), ("aksv", "dma"), ("aksv", "cdma"),
        ("bm1688", "tiu"), ("bm1688", "dma"), ("cv84x6", "tiu"), ("cv84x6", "dma"),
    ]  # fmt: skip
    counts = dict.fromkeys(chip_names(), 0)
    for name, family in FAMILIES:
        counts[name] += sum(not op.partial and not op.assumed for op in command_table(the(name), family).operations)
    assert counts == {"aks": 54, "aksv": 36, "bm1688": 40, "cv84x6": 26}


@pytest.mark.parametrize(("chip", "family", "name"), OPERATIONS)
def test_both_ways_of_decoding_give_what_was_encoded(chip: str, family: str, name: str) -> None:
    table = command_table(the(chip), family)
    index = table.index_of(name)
    operation = table.operations[index]
    draw = random.Random(f"{chip} {family} {name}")
    functions = [function for function in operation.functions for _ in range(3)]
    encoded = [random_command(draw, table, operation, function) for function in functions]
    buffer, offsets, lengths = packed(encoded, gap=5)

    ops = registers.select_many(the(chip), family, buffer, offsets, lengths)
    assert ops.tolist() == [index] * len(encoded)
    types, codes = registers.codes_of_many(the(chip), family, buffer, offsets, ops)
    assert types.tolist() == [operation.opcode] * len(encoded)
    assert codes.tolist() == functions

    singles = [registers.decode(the(chip), family, data) for data in encoded]
    for single, data, function in zip(singles, encoded, functions, strict=True):
        assert single.operation is operation
        assert (single.type_code, single.function) == (operation.opcode, function)
        assert single.function_text == operation.functions[function]
        assert "assumed" in single.reason if operation.assumed else single.reason == ""
        again = sum(value << item.first for item, value in single.fields)
        assert again.to_bytes(operation.size, "little") == data
    for field_name in operation.by_name:
        values, missing = registers.field_of_many(the(chip), family, buffer, offsets, ops, field_name)
        assert not missing.any()
        assert values.tolist() == [single.values[field_name] for single in singles]


@pytest.mark.parametrize(("chip", "family"), FAMILIES)
def test_header_fields_lie_where_the_header_is_read(chip: str, family: str) -> None:
    table = command_table(the(chip), family)
    names = {"tiu": ("tsk_typ", "tsk_eu_typ"), "dma": ("cmd_type", "cmd_special_function"), "cdma": ("cmd_type", "")}
    for operation in table.operations:
        if not operation.known or (chip, operation.name) == ("aksv", "CDMA_general"):
            continue
        field = operation.by_name[names[family][0]]
        assert (field.first, field.width) == (table.opcode_bit, table.opcode_width)
        if names[family][1]:
            function = operation.by_name[names[family][1]]
            assert (function.first, function.width) == (field.first + field.width, operation.function_width)


@pytest.mark.parametrize(("chip", "family"), FAMILIES)
def test_headers_select_by_the_rules(chip: str, family: str) -> None:
    """Against a plain reading of the rules, over every header that can occur."""
    table = command_table(the(chip), family)
    for codes in range(1 << table.opcode_width + table.function_width):
        opcode = codes & (1 << table.opcode_width) - 1
        function = codes >> table.opcode_width
        for short in (False, True):
            wide = [
                index
                for index, op in enumerate(table.operations)
                if op.function_width == table.function_width
                and op.opcode == opcode
                and function in op.functions
                and op.short in (None, short)
            ]
            narrow = [
                index
                for index, op in enumerate(table.operations)
                if op.function_width < table.function_width
                and op.opcode == opcode
                and function & (1 << op.function_width) - 1 in op.functions
            ]
            header = codes << table.opcode_bit | (int(short) << table.short_bit if table.short_bit is not None else 0)
            assert len(wide) <= 1
            assert table.selection[table.selection_key(header)] == ([*wide, *narrow, -1])[0]


@given(st.data())
def test_hostile_offsets_are_undecodable_and_never_raise(data: st.DataObject) -> None:
    chip, family = data.draw(st.sampled_from(FAMILIES))
    table = command_table(the(chip), family)
    content = data.draw(st.binary(max_size=300))
    buffer = np.frombuffer(content, np.uint8)
    whole = st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 320)
    pairs = data.draw(st.lists(st.tuples(whole, whole), max_size=20))
    offsets = np.array([pair[0] for pair in pairs], np.int64)
    lengths = np.array([pair[1] for pair in pairs], np.int64)
    ops = registers.select_many(the(chip), family, buffer, offsets, lengths)
    for offset, length, op in zip(offsets.tolist(), lengths.tolist(), ops.tolist(), strict=True):
        whole_command = content[offset : offset + min(length, len(content))] if offset >= 0 and length > 0 else b""
        selected = registers.select(the(chip), family, whole_command)
        assert (table.operations[op] if op >= 0 else None) is selected
    name = data.draw(st.sampled_from(["tsk_typ", "cmd_type", "res0_addr", "imm", "no such field"]))
    values, missing = registers.field_of_many(the(chip), family, buffer, offsets, ops, name)
    assert values.shape == missing.shape == offsets.shape
    assert (missing | (ops >= 0)).all()
    assert not values[missing].any()
    types, functions = registers.codes_of_many(the(chip), family, buffer, offsets, ops)
    assert ((types >= 0) == (ops >= 0)).all()
    assert ((functions >= 0) == (ops >= 0)).all()


@given(st.sampled_from(FAMILIES), st.binary(max_size=140))
def test_any_bytes_decode_or_say_why_not(where: tuple[str, str], content: bytes) -> None:
    command = registers.decode(the(where[0]), where[1], content)
    assert command.raw == content
    if command.operation is None:
        assert command.reason
        assert registers.undecodable_reason(the(where[0]), where[1], content) == command.reason
        assert registers.output_fields(the(where[0]), where[1], command) == {}
    else:
        assert registers.undecodable_reason(the(where[0]), where[1], content) == ""
        assert registers.output_fields(the(where[0]), where[1], command)


@pytest.mark.parametrize(
    ("chip", "family", "typ", "function", "reason"),
    [
        ("aks", "dma", 31, 7, "no operation has type 31, function 7"),
        ("bm1688", "tiu", 7, 0, "no operation has type 7, function 0"),
    ],
)
def test_reasons_are_told(chip: str, family: str, typ: int, function: int, reason: str) -> None:
    table = command_table(the(chip), family)
    header = (typ | function << table.opcode_width) << table.opcode_bit
    command = registers.decode(the(chip), family, header.to_bytes(128, "little"))
    assert (command.operation, command.reason) == (None, reason)
    assert (command.type_code, command.function) == (typ, function)


def test_a_command_cut_off_is_told() -> None:
    assert registers.decode(the("aks"), "TIU", bytes(127)).reason == "CONV is cut off: 127 of 128 bytes"
    assert registers.decode(the("aks"), "TIU", bytes(7)).reason == "7 bytes are too short for a command"
    assert registers.decode(the("aks"), "TIU", bytes(130)).reason == "2 bytes follow the command"
    assert registers.decode(the("bm1688"), "CDMA", bytes(130)).reason == "BM1688 has no CDMA commands"


def test_the_worked_example() -> None:
    command = registers.decode(the("aks"), "TIU", bytes.fromhex("00000000003e01000500010000000000"))
    assert command.operation is not None
    assert (command.operation.name, command.function_text) == ("SYS", "system.wait_msg")
    fields = registers.output_fields(the("aks"), "TIU", command)
    assert fields["des_imm"] == 0x00010005
    assert fields["des_tsk_typ"] == 15


@pytest.mark.parametrize("name", ["VC", "sVC", "SG", "SGL"])
def test_commands_that_crash_the_reference_decode(name: str) -> None:
    table = command_table(the("aks"), "tiu")
    operation = table.operations[table.index_of(name)]
    function = 9 if name == "SG" else min(operation.functions)
    data = random_command(random.Random(1), table, operation, function)
    assert registers.decode(the("aks"), "TIU", data).operation is operation


def test_four_operations_have_no_layout_on_two_chips() -> None:
    names = ["DMA_compress", "DMA_decompress", "DMA_randmask", "DMA_transfer"]
    assert [param.values for param in PARTIAL] == [(chip, name) for chip in ("aks", "aksv") for name in names]


@pytest.mark.parametrize(("chip", "name"), PARTIAL)
def test_of_them_what_all_siblings_share_is_decoded_both_ways(chip: str, name: str) -> None:
    table = command_table(the(chip), "dma")
    index = table.index_of(name)
    operation = table.operations[index]
    assert (operation.size, operation.needed) == (96, 16)
    assert {"cmd_short", "cmd_type", "cmd_special_function", "cmd_id_dep", "constant_value"} <= set(operation.by_name)
    assert not any(field.startswith("reserved") for field in operation.by_name)
    for field in operation.fields:
        assert all(field == each.by_name[field.name] for each in table.operations if each.layout_lines)
    draw = random.Random(f"{chip}{name}")
    encoded = [random_command(draw, table, operation, function) for function in operation.functions for _ in range(3)]
    buffer, offsets, lengths = packed(encoded, gap=3)
    ops = registers.select_many(the(chip), "dma", buffer, offsets, lengths)
    assert ops.tolist() == [index] * len(encoded)
    assert (registers.select_many(the(chip), "dma", buffer, offsets, np.full(len(encoded), 15)) == -1).all()
    singles = [registers.decode(the(chip), "dma", data) for data in encoded]
    assert all("only those are known" in single.reason for single in singles)
    for field_name, field in operation.by_name.items():
        values, missing = registers.field_of_many(the(chip), "dma", buffer, offsets, ops, field_name)
        assert not missing.any()
        expected = [int.from_bytes(data, "little") >> field.first & field.mask for data in encoded]
        assert values.tolist() == [single.values[field_name] for single in singles] == expected


@pytest.mark.parametrize("chip", chip_names())
def test_what_siblings_share_is_where_it_is_in_every_layout_that_is_known(chip: str) -> None:
    """The rule for commands without a layout, tried on each command that has one as if it had none."""
    known = [each for each in command_table(the(chip), "dma").operations if each.layout_lines]
    for left_out in known:
        shared = commands._shared([each for each in known if each is not left_out])
        assert {"cmd_type", "cmd_id_dep", "constant_value"} <= {field.name for field in shared} or left_out.short
        for field in shared:
            assert left_out.by_name.get(field.name) == field or left_out.short


def test_commands_of_one_length_alone_would_promise_too_much() -> None:
    """Addresses lie alike in all long commands but one: what only those share is not taken for granted."""
    long = [each for each in command_table(the("bm1688"), "dma").operations if not each.short]
    compress = next(each for each in long if each.name == "DMA_compress")
    others = [each for each in long if each is not compress]
    assert any(compress.by_name.get(field.name) != field for field in commands._shared(others))


def test_missing_layouts_are_taken_from_the_sibling_and_marked() -> None:
    assumed = {op.name for op in command_table(the("aksv"), "tiu").operations if op.assumed}
    assert {"CONV", "MM2", "VC", "LAR"} <= assumed
    assert [op.name for op in command_table(the("aksv"), "cdma").operations if op.assumed] == [
        "CDMA_tcp_send",
        "CDMA_tcp_receive",
    ]
    assert not any(op.assumed for op in command_table(the("aks"), "tiu").operations)


def dma(chip: str, name: str = "DMA_general", **fields: int) -> bytes:
    table = command_table(the(chip), "dma")
    operation = table.operations[table.index_of(name)]
    value = with_header(table, operation, min(operation.functions), False, 0)
    for field, part in fields.items():
        value |= part << operation.by_name[field].first
    return value.to_bytes(operation.size, "little")


@pytest.mark.parametrize(
    ("chip", "high", "low", "memory"),
    [
        ("aks", 0, 5, "DDR"),
        ("aks", 29 << 8 | 255, 5, "DDR"),
        ("aks", 30 << 8, 5, "L2M"),
        ("aksv", 31 << 8, 0xFFFFFFFF, "LMEM"),
        ("bm1688", 0x80, 1, "DDR"),
        ("bm1688", 0x7F, 1, "LMEM"),
        ("cv84x6", 1 << 8, 1, "DDR"),
        ("cv84x6", 2 << 8, 0x26D20000, "DDR"),
        ("cv84x6", 0, 0x26D20000, "L2"),
        ("cv84x6", 0, 0x26D20000 + 0xFFFFF, "L2"),
        ("cv84x6", 0, 0x26D20000 + 0x100000, "LMEM"),
        ("cv84x6", 0, 0x26D20000 - 1, "LMEM"),
        ("cv84x6", 1, 0x26D20000, "LMEM"),
        ("cv84x6", 5 << 8, 0x26D20000, "L2"),
        ("cv84x6", 0x1E << 8, 0, "L2"),
    ],
)
def test_addresses_lie_in_memories(chip: str, high: int, low: int, memory: str) -> None:
    width = the(chip).memory_of_address.high_bits
    data = dma(chip, **{"src_start_addr_l32": low, f"src_start_addr_h{width}": high})
    fields = registers.output_fields(the(chip), "GDMA", registers.decode(the(chip), "GDMA", data))
    assert fields["from_addr"] == memory
    assert fields["src_start_addr"] == high << 32 | low
    assert fields["Direction"] == f"{memory}->{fields['to_addr']}"
    assert (fields["mask_start_addr_h8"], fields["mask_start_addr_l32"]) == (0, 0)

    buffer, offsets, _ = packed([data, data])
    ops = registers.select_many(the(chip), "GDMA", buffer, offsets)
    source, destination = registers.addresses_of_many(the(chip), "GDMA", buffer, offsets, ops)
    assert source.tolist() == [high << 32 | low] * 2
    codes = registers.memories_of(the(chip), source)
    assert [the(chip).memories[code] for code in codes] == [memory] * 2
    assert destination.tolist() == [0, 0]
    keys = packed_keys(np.array([0, 0]), np.array([0, 0]), codes, registers.memories_of(the(chip), destination))
    text = name_table(the(chip), "GDMA").texts(keys)[1][0]
    assert text == (
        "tensor" if memory.startswith("L2") else name_table(the(chip), "GDMA").name_text(0, 0, str(fields["Direction"]))
    )


def test_irregular_address_names_are_written_as_the_others() -> None:
    data = dma("bm1688", "DMA_matrix", src_start_addr_l32=7, src_start_addr_h8=0x81)
    fields = registers.output_fields(the("bm1688"), "GDMA", registers.decode(the("bm1688"), "GDMA", data))
    assert fields["src_start_addr"] == 0x81 << 32 | 7


def test_repeated_names_keep_their_first_place_and_last_value() -> None:
    command = registers.decode(the("aks"), "GDMA", dma("aks", "DMA_tensor"))
    names = [item.name for item, _ in command.fields]
    assert names.count("reserved") > 1
    assert list(command.values).index("reserved") == names.index("reserved")
    last = max(index for index, name in enumerate(names) if name == "reserved")
    raised = bytearray(command.raw)
    field = command.fields[last][0]
    raised[field.first // 8] |= 1 << field.first % 8
    assert registers.decode(the("aks"), "GDMA", bytes(raised)).values["reserved"] == 1


@pytest.mark.parametrize(("code", "text"), [(5, "BFP16"), (9, "TF32"), (15, "unknown_15")])
def test_data_types(code: int, text: str) -> None:
    command = registers.decode(the("aks"), "GDMA", dma("aks", src_data_format=code))
    assert registers.output_fields(the("aks"), "GDMA", command)["Data Type"] == text


def test_operation_texts_by_key() -> None:
    table = command_table(the("aks"), "tiu")
    ops = np.array([table.index_of("sMM2"), -1, table.index_of("SYS")], np.int16)
    keys = registers.operation_keys(ops, np.array([6, -1, 9]))
    assert registers.operation_texts(the("aks"), "TIU", keys) == (
        ["sMM2", "", "SYS"],
        ["mm2.tt", "", "system.wait_msg"],
    )


@pytest.mark.parametrize(
    "change",
    [
        {"operations": [{"name": "A", "opcode": 1, "short": None, "functions": "MM", "layout": "aks.tiu.SYS"}] * 2},
        {"end": {"operation": "B"}},
        {
            "operations": [
                {"name": "A", "opcode": 1, "short": None, "functions": "MM", "layout": "aks.tiu.SYS"},
                {"name": "B", "opcode": 1, "short": True, "functions": "MM", "layout": "aks.tiu.SYS"},
            ]
        },
        {"operations": [{"name": "A", "opcode": 99, "short": None, "functions": "MM", "layout": "aks.tiu.SYS"}]},
        {"operations": [{"name": "A", "opcode": 1, "short": None, "functions": "MM", "layout": None, "bytes": 20}]},
    ],
)
def test_tables_that_contradict_themselves_are_refused(change: dict[str, Any]) -> None:
    sound = {
        "header": {"short_bit": 0, "opcode_bit": 41, "opcode_width": 4, "function_width": 5},
        "end": {"operation": "A"},
        "operations": [{"name": "A", "opcode": 1, "short": None, "functions": "MM", "layout": "aks.tiu.SYS"}],
    }
    assert table_from_data("X", "tiu", sound).operations[0].size == 16
    with pytest.raises(ChipDataError):
        table_from_data("X", "tiu", {**sound, **change})
