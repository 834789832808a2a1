from __future__ import annotations

import random

import numpy as np
import pytest
from encoded_commands import index_of, packed, random_command, the
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.sources.sophgo.chips import commands
from tpuprof_tui.sources.sophgo.chips.chip import chip_by_name, chip_names
from tpuprof_tui.sources.sophgo.chips.commands import command_table
from tpuprof_tui.sources.sophgo.read.commands import registers

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


def test_every_chip_has_its_families() -> None:
    assert FAMILIES == [
        ("aks", "tiu"), ("aks", "dma"), ("aks", "cdma"),
        ("aksv", "tiu"), ("aksv", "dma"), ("aksv", "cdma"),
        ("bm1684x", "tiu"), ("bm1684x", "dma"), ("bm1688", "tiu"), ("bm1688", "dma"),
        ("cv184x", "tiu"), ("cv184x", "dma"), ("cv84x6", "tiu"), ("cv84x6", "dma"),
    ]  # fmt: skip
    counts = dict.fromkeys(chip_names(), 0)
    for name, family in FAMILIES:
        counts[name] += sum(not op.partial and not op.assumed for op in command_table(the(name), family).operations)
    assert counts == {"aks": 54, "aksv": 36, "bm1684x": 41, "bm1688": 40, "cv184x": 40, "cv84x6": 26}


@pytest.mark.parametrize(("chip", "family", "name"), OPERATIONS)
def test_both_ways_of_decoding_give_what_was_encoded(chip: str, family: str, name: str) -> None:
    table = command_table(the(chip), family)
    index = index_of(table, name)
    operation = table.operations[index]
    draw = random.Random(f"{chip} {family} {name}")
    functions = [function for function in operation.functions for _ in range(3)]
    encoded = [random_command(draw, table, operation, function) for function in functions]
    buffer, offsets, lengths = packed(encoded, gap=5)

    encoded_commands = registers.EncodedCommands.of(the(chip), family, buffer, offsets, lengths)
    ops = encoded_commands.operations
    assert ops.tolist() == [index] * len(encoded)
    types, codes = encoded_commands.codes()
    assert types.tolist() == [operation.opcode] * len(encoded)
    assert codes.tolist() == functions

    singles = [registers.decode(the(chip), family, data) for data in encoded]
    for single, data, function in zip(singles, encoded, functions, strict=True):
        assert single.operation is operation
        assert single.function == function
        assert single.function_text == operation.functions[function]
        assert list(single.values) == list(dict.fromkeys(field.name for field in operation.fields))
        for field in operation.by_name.values():
            assert single.values[field.name] == int.from_bytes(data, "little") >> field.first & (1 << field.width) - 1
    for field_name in operation.by_name:
        values, missing = encoded_commands.field(field_name)
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
            assert table.selection[table.selection_keys(np.array([header], np.uint64))[0]] == ([*wide, *narrow, -1])[0]


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
    encoded_commands = registers.EncodedCommands.of(the(chip), family, buffer, offsets, lengths)
    ops = encoded_commands.operations
    for offset, length, op in zip(offsets.tolist(), lengths.tolist(), ops.tolist(), strict=True):
        whole_command = content[offset : offset + min(length, len(content))] if offset >= 0 and length > 0 else b""
        single = registers.decode(the(chip), family, whole_command)
        assert (table.operations[op] if op >= 0 else None) is (single and single.operation)
    name = data.draw(st.sampled_from(["tsk_typ", "cmd_type", "res0_addr", "imm", "no such field"]))
    values, missing = encoded_commands.field(name)
    assert values.shape == missing.shape == offsets.shape
    assert (missing | (ops >= 0)).all()
    assert not values[missing].any()
    types, functions = encoded_commands.codes()
    assert ((types >= 0) == (ops >= 0)).all()
    assert ((functions >= 0) == (ops >= 0)).all()


@given(st.sampled_from(FAMILIES), st.binary(max_size=140))
def test_any_bytes_decode_or_do_not(where: tuple[str, str], content: bytes) -> None:
    command = registers.decode(the(where[0]), where[1], content)
    assert command is None or set(command.values) == set(command.operation.by_name)


def test_what_no_operation_has_or_is_cut_off_is_not_decoded() -> None:
    for chip, family, typ, function in (("aks", "dma", 31, 7), ("bm1688", "tiu", 7, 0)):
        table = command_table(the(chip), family)
        header = (typ | function << table.opcode_width) << table.opcode_bit
        assert registers.decode(the(chip), family, header.to_bytes(128, "little")) is None
    assert registers.decode(the("aks"), "TIU", bytes(127)) is None
    assert registers.decode(the("aks"), "TIU", bytes(7)) is None
    assert registers.decode(the("aks"), "TIU", bytes(130)).operation.name == "CONV"
    assert registers.decode(the("bm1688"), "CDMA", bytes(130)) is None


def test_the_worked_example() -> None:
    command = registers.decode(the("aks"), "TIU", bytes.fromhex("00000000003e01000500010000000000"))
    assert command is not None
    assert (command.operation.name, command.function_text) == ("SYS", "system.wait_msg")
    assert command.values["imm"] == 0x00010005
    assert command.values["tsk_typ"] == 15


@pytest.mark.parametrize("name", ["VC", "sVC", "SG", "SGL"])
def test_commands_that_crash_the_reference_decode(name: str) -> None:
    table = command_table(the("aks"), "tiu")
    operation = table.operations[index_of(table, name)]
    function = 9 if name == "SG" else min(operation.functions)
    data = random_command(random.Random(1), table, operation, function)
    assert registers.decode(the("aks"), "TIU", data).operation is operation


def test_four_operations_have_no_layout_on_two_chips() -> None:
    names = ["DMA_compress", "DMA_decompress", "DMA_randmask", "DMA_transfer"]
    assert [param.values for param in PARTIAL] == [(chip, name) for chip in ("aks", "aksv") for name in names]


@pytest.mark.parametrize(("chip", "name"), PARTIAL)
def test_of_them_what_all_siblings_share_is_decoded_both_ways(chip: str, name: str) -> None:
    table = command_table(the(chip), "dma")
    index = index_of(table, name)
    operation = table.operations[index]
    assert (operation.size, operation.needed) == (96, 16)
    assert {"cmd_short", "cmd_type", "cmd_special_function", "cmd_id_dep", "constant_value"} <= set(operation.by_name)
    assert not any(field.startswith("reserved") for field in operation.by_name)
    for field in operation.fields:
        assert all(field == each.by_name[field.name] for each in table.operations if each.layout_lines)
    draw = random.Random(f"{chip}{name}")
    encoded = [random_command(draw, table, operation, function) for function in operation.functions for _ in range(3)]
    buffer, offsets, lengths = packed(encoded, gap=3)
    encoded_commands = registers.EncodedCommands.of(the(chip), "dma", buffer, offsets, lengths)
    ops = encoded_commands.operations
    assert ops.tolist() == [index] * len(encoded)
    assert (
        registers.EncodedCommands.of(the(chip), "dma", buffer, offsets, np.full(len(encoded), 15)).operations == -1
    ).all()
    singles = [registers.decode(the(chip), "dma", data) for data in encoded]
    for field_name, field in operation.by_name.items():
        values, missing = encoded_commands.field(field_name)
        assert not missing.any()
        expected = [int.from_bytes(data, "little") >> field.first & field.mask for data in encoded]
        assert values.tolist() == [single.values[field_name] for single in singles] == expected


@pytest.mark.parametrize("chip", chip_names())
def test_what_siblings_share_is_where_it_is_in_every_layout_that_is_known(chip: str) -> None:
    """The rule for commands without a layout, tried on each command that has one as if it had none."""
    known = [each for each in command_table(the(chip), "dma").operations if each.layout_lines]
    always = {"cmd_type", "cmd_id_dep"} | (set() if chip == "bm1684x" else {"constant_value"})  # short forms lack it
    for left_out in known:
        shared = commands.shared_fields([each for each in known if each is not left_out])
        assert always <= {field.name for field in shared} or left_out.short
        for field in shared:
            assert left_out.by_name.get(field.name) == field or left_out.short


def test_commands_of_one_length_alone_would_promise_too_much() -> None:
    """Addresses lie alike in all long commands but one: what only those share is not taken for granted."""
    long = [each for each in command_table(the("bm1688"), "dma").operations if not each.short]
    compress = next(each for each in long if each.name == "DMA_compress")
    others = [each for each in long if each is not compress]
    assert any(compress.by_name.get(field.name) != field for field in commands.shared_fields(others))


def test_missing_layouts_are_taken_from_the_sibling_and_marked() -> None:
    assumed = {op.name for op in command_table(the("aksv"), "tiu").operations if op.assumed}
    assert {"CONV", "MM2", "VC", "LAR"} <= assumed
    assert [op.name for op in command_table(the("aksv"), "cdma").operations if op.assumed] == [
        "CDMA_tcp_send",
        "CDMA_tcp_receive",
    ]
    assert not any(op.assumed for op in command_table(the("aks"), "tiu").operations)
