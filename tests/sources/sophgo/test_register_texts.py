"""What registers are called and shown as: addresses, repeated names, data types, texts."""

from __future__ import annotations

from typing import Any

import pytest
from encoded_commands import index_of, packed, the, with_header

from tpuprof_tui.sources.sophgo.chips.bit_layout import ChipDataError
from tpuprof_tui.sources.sophgo.chips.commands import command_table, table_from_data
from tpuprof_tui.sources.sophgo.read.commands import registers


def dma(chip: str, name: str = "DMA_general", **fields: int) -> bytes:
    table = command_table(the(chip), "dma")
    operation = table.operations[index_of(table, name)]
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
    assert registers.memory_text(the(chip), high << 32 | low) == memory
    buffer, offsets, _ = packed([data, data])
    source, destination = registers.EncodedCommands.of(the(chip), "GDMA", buffer, offsets).addresses()
    assert source.tolist() == [high << 32 | low] * 2
    codes = registers.memories_of(the(chip), source)
    assert [the(chip).memories[code] for code in codes] == [memory] * 2
    assert destination.tolist() == [0, 0]
    assert (
        registers.memories_of(the(chip), destination).tolist()
        == [the(chip).memories.index(registers.memory_text(the(chip), 0))] * 2
    )


def test_irregular_address_names_are_read_as_the_others() -> None:
    buffer, offsets, _ = packed([dma("bm1688", "DMA_matrix", src_start_addr_l32=7, src_start_addr_h8=0x81)])
    source, _ = registers.EncodedCommands.of(the("bm1688"), "GDMA", buffer, offsets).addresses()
    assert source.tolist() == [0x81 << 32 | 7]


def test_repeated_names_keep_their_first_place_and_last_value() -> None:
    data = dma("aks", "DMA_tensor")
    command = registers.decode(the("aks"), "GDMA", data)
    names = [field.name for field in command.operation.fields]
    assert names.count("reserved") > 1
    assert list(command.values).index("reserved") == names.index("reserved")
    last = max(index for index, name in enumerate(names) if name == "reserved")
    raised = bytearray(data)
    field = command.operation.fields[last]
    raised[field.first // 8] |= 1 << field.first % 8
    assert registers.decode(the("aks"), "GDMA", bytes(raised)).values["reserved"] == 1


@pytest.mark.parametrize(("code", "text"), [(5, "BFP16"), (9, "TF32"), (15, "unknown_15")])
def test_data_types(code: int, text: str) -> None:
    command = registers.decode(the("aks"), "GDMA", dma("aks", src_data_format=code))
    assert the("aks").data_type_text(command.values["src_data_format"]) == text


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
