"""One-line readings: what each instruction did, from registers, from condensed commands, from counters alone."""

from __future__ import annotations

import numpy as np
import pytest
from encoded_commands import index_of
from written_captures import capture

from tpuprof_tui.model import INT_MISSING, Role, StringsBuilder
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.chips.chip import chip_by_name, chip_names, family_of
from tpuprof_tui.sources.sophgo.chips.commands import command_table, has_commands
from tpuprof_tui.sources.sophgo.read.columns.instruction_text import InstructionDescriber, local_address, type_text
from tpuprof_tui.sources.sophgo.read.commands.lane_registers import LaneRegisters
from tpuprof_tui.sources.sophgo.read.commands.registers import EncodedCommands

AKS = chip_by_name("aks")


def packed(chip, engine, name, **values):
    """Bytes of a command of the operation ``name``."""
    table = command_table(chip, engine)
    operation = table.operations[index_of(table, name)]
    fields = {field.name: field for field in operation.fields}
    word = operation.opcode << table.opcode_bit
    if table.short_bit is not None and operation.short:
        word |= 1 << table.short_bit
    function = values.pop("function", next(iter(operation.functions)))
    word |= function << table.opcode_bit + table.opcode_width
    for key, value in values.items():
        assert 0 <= value <= fields[key].mask, key
        word |= value << fields[key].first
    return word.to_bytes(operation.size, "little")


def reading_of(chip, engine, command, *, size=0, length=100, texts=None, guessed=False, **columns):
    """Reading of one instruction with these register bytes."""
    data = np.frombuffer(command + bytes(16), np.uint8)
    offsets = np.zeros(1, np.int64)
    encoded = EncodedCommands.of(chip, engine, data, offsets)
    operation, function = encoded.operations, encoded.codes()[1]
    room = np.full(1, len(command), np.int32)
    held = LaneRegisters(chip, engine, data, offsets, room, operation, function.astype(np.int8)) if command else None
    known = {"start": [0], "end": [length], "cycles": [length + 1], "bytes": [size], "role": [Role.WORK]}
    arrays = {key: np.array(value, np.int64) for key, value in known.items()}
    arrays |= {key: np.array([value], np.int64) for key, value in columns.items()}
    strings = {key: StringsBuilder() for key in texts or ()}
    for key, builder in strings.items():
        assert [builder.code(text) for text in texts[key]] == [*range(len(texts[key]))]
    return InstructionDescriber(chip, engine, arrays, strings, held, guessed)(0)


def test_a_matrix_product_names_both_sides_their_banks_and_options():
    command = packed(AKS, "TIU", "sMM2", function=4, res0_c=64, res0_w=128, opd1_c=4096, opd1_w=128, opt_opd0_prec=1,
                     opt_opd1_prec=1, opt_res0_prec=1, opt_opd2_prec=2, opt_opd2_const=1, opt_res_add=1, opt_relu=1,
                     res0_addr=0x4000, opd0_addr=0, opd1_addr=0x8010)  # fmt: skip
    assert reading_of(AKS, "TIU", command) == (
        "mm2.nn R[64,1,128] f16 b1+0x0 <- L[64,4096] f16 b0+0x0 x R[4096,128] f16 b2+0x10 +acc relu"
    )


def test_transposed_products_show_their_operands_as_they_lie_in_memory():
    values = {"res0_c": 16, "res0_w": 256, "opd1_c": 256, "opd1_w": 128, "opt_opd2_const": 1}
    assert "<- L[16,128] u8 b0+0x0 x R^T[256,128]" in reading_of(
        AKS, "TIU", packed(AKS, "TIU", "sMM2", function=5, **values)
    )
    assert "<- L^T[128,16] u8 b0+0x0 x R^T[256,128]" in reading_of(
        AKS, "TIU", packed(AKS, "TIU", "sMM2", function=6, **values)
    )


def test_integers_tell_their_sign_and_constants_their_value():
    command = packed(AKS, "TIU", "sAR", function=2, tsk_opd_num=2, res0_n=1, res0_c=2, res0_h=3, res0_w=4,
                     opt_opd1_const=1, opd1_addr=0x3F80, opt_opd0_sign=1, opt_res0_sign=0)  # fmt: skip
    assert reading_of(AKS, "TIU", command) == "arith.add R[1,2,3,4] u8 b0+0x0 <- [1,2,3,4] i8 b0+0x0, u8 0x3f80"


def test_pooling_tells_window_padding_and_step():
    command = packed(AKS, "TIU", "sPorD", function=4, res0_n=1, res0_c=8, res0_h=4, res0_w=4, opd0_h=9, opd0_w=9,
                     opd1_h=3, opd1_w=2, res_op_x_str=2, res_op_y_str=3, opd0_up_pad=1, opt_opd0_prec=5,
                     opt_res0_prec=5)  # fmt: skip
    assert reading_of(AKS, "TIU", command) == (
        "pord.maxpooling R[1,8,4,4] bf16 b0+0x0 <- [1,8,9,9] bf16 b0+0x0, k[3,2] pad 1,0,0,0 step 3,2"
    )


def test_a_transfer_tells_both_places_shape_strides_and_share_of_the_peak():
    tag = {"DDR": 1 << 8, "L2M": 30 << 8, "LMEM": 31 << 8}
    shape = {
        f"{side}_{axis}size": size
        for side in ("src", "dst")
        for axis, size in zip("nchw", (1, 64, 32, 512), strict=True)
    }
    strides = {f"{side}_{axis}stride": size for side in ("src", "dst")
               for axis, size in zip("nchw", (1048576, 16384, 512, 1), strict=True)}  # fmt: skip
    command = packed(AKS, "GDMA", "DMA_tensor", function=1, src_data_format=1, stride_enable=1, cmd_id_dep=1 << 20 | 12,
                     src_start_addr_h13=tag["DDR"] | 1, src_start_addr_l32=0x20, dst_start_addr_h13=tag["LMEM"],
                     dst_start_addr_l32=0x44008, **shape, **strides)  # fmt: skip
    reading = reading_of(
        AKS, "GDMA", command, size=2 << 20, length=34266, direction=0, texts={"direction": ["DDR->LMEM"]}
    )
    assert reading == (
        "tensor.transpose DDR 0x100000020->LMEM n1.b1+0x8 2.0 MiB f16 [1,64,32,512] "
        "strides [1048576,16384,512,1] 61.2 of 68.3 GB/s after TIU 12"
    )


@pytest.mark.parametrize(
    ("engine", "name", "values", "expected"),
    [
        ("TIU", "SYS", {"function": 8, "imm": 3 << 16 | 0x1FF}, "send message 511 to 3 waits"),
        ("TIU", "SYS", {"function": 9, "imm": 1 << 16 | 5}, "wait for 1 send of message 5, 100 ns"),
        ("TIU", "SYS", {"function": 31}, "end"),
        ("GDMA", "sDMA_sys", {"function": 3, "constant_value": 2 << 9 | 7}, "send message 7 to 2 waits"),
        ("GDMA", "sDMA_sys", {"function": 4, "constant_value": 8 << 9 | 7}, "wait for 8 sends of message 7, 100 ns"),
        ("GDMA", "sDMA_sys", {"function": 1}, "nop"),
    ],
)
def test_system_commands_name_their_message(engine, name, values, expected):
    assert reading_of(AKS, engine, packed(AKS, engine, name, **values)) == expected


def test_other_chips_hold_messages_in_other_bits():
    chip = chip_by_name("bm1688")
    assert reading_of(chip, "GDMA", packed(chip, "GDMA", "sDMA_sys", function=4, constant_value=2 << 8 | 7)) == (
        "wait for 2 sends of message 7, 100 ns"
    )


def test_a_dependency_counts_only_where_it_is_enabled():
    for value, text in ((1 << 20 | 3, "nop after TIU 3"), (3, "nop"), (1 << 20, "nop")):
        assert reading_of(AKS, "GDMA", packed(AKS, "GDMA", "sDMA_sys", function=1, cmd_id_dep=value)) == text
    for value, text in ((1 << 20 | 9, "nop after GDMA 9"), (9, "nop")):
        assert reading_of(AKS, "TIU", packed(AKS, "TIU", "SYS", function=30, cmd_id_dep=value)) == text


def test_condensed_commands_tell_what_they_hold():
    texts = {"name": ["tensorLd", "mul", "sys_wait"], "direction": ["DDR->LMEM"]}
    assert reading_of(AKS, "GDMA", b"", size=4096, name=0, direction=0, data_format=1, texts=texts) == (
        "tensorLd DDR->LMEM 4.0 KiB f16 41.0 of 68.3 GB/s"
    )
    assert reading_of(AKS, "TIU", b"", name=1, precision=2, texts=texts) == "mul f32 101 cycles"
    assert reading_of(AKS, "GDMA", b"", name=2, role=Role.WAIT, texts=texts) == "wait, 100 ns"


def test_bare_records_tell_what_their_counters_say_and_mark_guesses():
    bare = {"name": -1, "direction": -1, "data_format": INT_MISSING, "guessed": True}
    assert reading_of(AKS, "GDMA", b"", size=512, gif_mem_w_cntr=512, axi_d0_w_cntr=0, **bare) == (
        "transfer to LMEM 512 B 5.1 GB/s"
    )
    assert reading_of(AKS, "TIU", b"", precision=INT_MISSING, name=-1, guessed=True) == "computation 101 cycles"
    assert reading_of(AKS, "TIU", b"", name=-1, role=Role.WAIT, guessed=True) == "~wait, 100 ns"


def test_addresses_and_types():
    assert local_address(AKS, 0x104000) == "n4.b1+0x0"
    assert local_address(chip_by_name("bm1688"), (1 << 17) + 0x2004) == "n1.b1+0x4"
    assert [type_text(0, 0), type_text(0, 1), type_text(0), type_text(5, 0), type_text(99)] == [
        "u8", "i8", "i8", "bf16", "type99"]  # fmt: skip


@pytest.mark.parametrize("chip_name", chip_names())
def test_any_registers_read_as_one_line(chip_name):
    chip = chip_by_name(chip_name)
    random = np.random.default_rng(11)
    for engine in ("TIU", "GDMA", "CDMA"):
        if not has_commands(chip, engine):
            continue
        for operation in command_table(chip, engine).operations:
            if not operation.known:
                continue
            for function in operation.functions:
                for _ in range(3):
                    body = bytearray(random.bytes(operation.size))
                    head = packed(chip, engine, operation.name, function=function)
                    body[:8] = head[:8]
                    line = reading_of(chip, engine, bytes(body), size=int(random.integers(0, 1 << 40)), direction=0,
                                      texts={"direction": ["DDR->LMEM"]})  # fmt: skip
                    assert line
                    assert "\n" not in line
                    assert line.isprintable()


@pytest.mark.parametrize("kind", ["decode_mode0", "decode_mode1", "zoo_mode2", "cdma", "bmodel", "des_kv", "rvt_mode2"])
def test_every_instruction_of_a_capture_has_a_reading(kind):
    profile = open_profile(capture(kind))
    for lane in profile.lanes:
        for row in range(0, len(lane), max(1, len(lane) // 50)):
            line = lane.description(row)
            assert line
            assert line.isprintable()
            if family_of(lane.kind) != "tiu" and lane["role"][row] == Role.WORK and lane["bytes"][row]:
                assert "GB/s" in line
