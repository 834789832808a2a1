"""Figures of lanes: register fields read two ways, sums of counters, messages, and time at the peak."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_captures import capture

from tpuprof_tui.model import INT_MISSING, Role
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.chips.bit_layout import ChipDataError
from tpuprof_tui.sources.sophgo.chips.chip import chip_by_name, chip_names, formula
from tpuprof_tui.sources.sophgo.chips.commands import command_table, has_commands
from tpuprof_tui.sources.sophgo.read.commands.lane_registers import LaneRegisters, dependency_in, message_in
from tpuprof_tui.sources.sophgo.read.commands.registers import decode
from tpuprof_tui.sources.sophgo.schema import SCHEMA


def registers_of(chip, engine, operation, bodies):
    """Registers of commands of one operation, one behind the other."""
    data = np.frombuffer(b"".join(bodies), np.uint8)
    size = command_table(chip, engine).operations[operation].size
    offsets = np.arange(len(bodies), dtype=np.int64) * size
    room = np.full(len(bodies), size, np.int32)
    ops, functions = np.full(len(bodies), operation, np.int16), np.zeros(len(bodies), np.int8)
    return LaneRegisters(chip, engine, data, offsets, room, ops, functions)


@pytest.mark.parametrize("chip_name", chip_names())
@pytest.mark.parametrize("engine", ["TIU", "GDMA", "CDMA"])
def test_fields_of_one_kind_are_those_of_each_command(chip_name, engine):
    chip = chip_by_name(chip_name)
    if not has_commands(chip, engine):
        pytest.skip("no such commands")
    random = np.random.default_rng(3)
    for number, operation in enumerate(command_table(chip, engine).operations):
        if not operation.known:
            continue
        bodies = [random.bytes(operation.size) for _ in range(3)]
        registers = registers_of(chip, engine, number, bodies)
        for name in registers.field_names(number):
            field = operation.by_name[name]
            expected = [field.of(int.from_bytes(body, "little")) for body in bodies]
            assert registers.field(number, name, slice(None)).tolist() == expected, (operation.name, name)
            many, _ = registers.encoded(slice(None)).field(name)
            assert many.tolist() == expected
        assert registers.field(number, "no_such_field", slice(None)).tolist() == [0, 0, 0]


def test_rows_of_several_kinds_are_told_apart():
    chip = chip_by_name("aks")
    profile = open_profile(capture("decode_mode2"))
    lane = profile.lane("TIU", 0)
    rows = np.arange(len(lane))
    operations = lane.registers.operations(rows)
    values = lane.registers.field(int(operations[0]), "tsk_typ", rows)
    expected = [decode(chip, "TIU", lane.registers.raw(int(row))).values["tsk_typ"] for row in rows]
    assert values.tolist() == expected


@given(st.lists(st.integers(0, 1 << 40), min_size=3, max_size=3))
def test_formulas_add_compare_and_divide(values):
    a, b, c = values
    counters = {name: np.array([value]) for name, value in zip("abc", values, strict=True)}
    assert formula("a+b").of(counters.__getitem__).tolist() == [a + b]
    assert formula("a+b|c").of(counters.__getitem__).tolist() == [max(a + b, c)]
    assert formula("a|b|c/16").of(counters.__getitem__).tolist() == [max(a, b, c) // 16]


@pytest.mark.parametrize("text", ["", "a+", "|a", "a/0", "a/x"])
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(ChipDataError):
        formula(text)


@settings(max_examples=50)
@given(st.integers(0, (1 << 64) - 1), st.sampled_from(chip_names()), st.sampled_from(["TIU", "GDMA"]))
def test_messages_and_dependencies_of_any_register(value, chip_name, engine):
    chip = chip_by_name(chip_name)
    rule = chip.messages.get("tiu" if engine == "TIU" else "dma")
    if rule is not None:
        message = message_in(chip, engine, {rule.field: value})
        assert 0 <= message.id < 1 << rule.id_bits
        assert 0 <= message.count < 1 << rule.count_bits
    assert 0 <= dependency_in(chip, engine, {"cmd_id_dep": value & 0x7FFFFF}) < 1 << 20
    assert message_in(chip, engine, {}) is None


def test_message_columns_are_those_of_the_commands():
    profile = open_profile(capture("dependencies"))
    chip = chip_by_name("aks")
    for lane in profile.lanes:
        if lane.kind not in ("TIU", "GDMA"):
            continue
        for row in range(0, len(lane), 7):
            values = decode(chip, lane.kind, lane.registers.raw(row)).values
            assert lane["depends_on"][row] == dependency_in(chip, lane.kind, values)
            assert lane["dependency"][row] == values["cmd_id_dep"]
            message = message_in(chip, lane.kind, values)
            if lane["role"][row] == Role.WORK:
                assert lane["message"][row] == lane["message_count"][row] == INT_MISSING
            elif message is not None:
                assert (lane["message"][row], lane["message_count"][row]) == (message.id, message.count)
                rule = chip.messages["tiu" if lane.kind == "TIU" else "dma"]
                known = message.id | message.count << rule.count_bit
                assert lane["message_destination"][row] | known == values[rule.field]
            assert "depends_engine" not in lane


def test_time_at_the_peak_is_cycles_or_bytes():
    profile = open_profile(capture("decode_mode2"))
    tiu, gdma = profile.lane("TIU", 0), profile.lane("GDMA", 0)
    alg = tiu["alg_cycle"]
    assert np.allclose(tiu["ideal"][alg > 0], alg[alg > 0] * 1000.0 / profile.device.clock("TIU"))
    assert np.isnan(tiu["ideal"][alg <= 0]).all()
    ways = np.array([profile.text("direction", code) for code in gdma["direction"].tolist()])
    for word, peak in (("DDR", profile.device.peak("DDR")), ("L2M->LMEM", profile.device.peak("L2"))):
        rows = np.flatnonzero([word in way for way in ways])
        assert len(rows)
        assert np.allclose(gdma["ideal"][rows], gdma["bytes"][rows] / peak)
    assert np.isnan(gdma["ideal"][gdma["role"] != Role.WORK]).all()
    known = ~np.isnan(gdma["ideal"])
    assert np.allclose(gdma["at_peak"][known], 100 * gdma["ideal"][known] / gdma["duration"][known])
    assert gdma["at_peak"][known].max() <= 100.5


def test_slices_give_what_the_whole_gives():
    profile = open_profile(capture("decode_mode2"))
    for lane in profile.lanes:
        parts = (slice(0, 17), slice(17, len(lane)))
        for key in SCHEMA:
            if key in lane:
                joined = np.concatenate([lane.take(key, part) for part in parts])
                assert np.array_equal(joined, lane[key], equal_nan=joined.dtype.kind == "f"), key
                some = np.array([5, 3, 9])
                assert np.array_equal(lane.take(key, some), lane[key][some], equal_nan=joined.dtype.kind == "f"), key
