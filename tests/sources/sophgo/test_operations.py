from __future__ import annotations

import random
import re
import warnings
from typing import Any

import numpy as np
import pytest
from encoded_commands import index_of, the
from operations_oracle import Oracle

from tpuprof_tui.sources.sophgo.chips.bit_layout import ChipDataError
from tpuprof_tui.sources.sophgo.chips.chip import Chip, chip_names
from tpuprof_tui.sources.sophgo.chips.commands import Operation, command_table
from tpuprof_tui.sources.sophgo.read.commands import operation_counts as operations
from tpuprof_tui.sources.sophgo.read.commands import registers


def encoded(operation: Operation, function: int, fields: dict[str, int]) -> bytes:
    value = 0
    known = {**fields, "tsk_typ": operation.opcode, "tsk_eu_typ": function, "cmd_short": int(bool(operation.short))}
    for name, part in known.items():
        if name in operation.by_name:
            field = operation.by_name[name]
            assert part <= field.mask, name
            value |= part << field.first
    if operation.short is not None:
        value = value & ~1 | int(operation.short)
    return value.to_bytes(operation.size, "little")


def counted(chip: Chip, commands: list[bytes]) -> operations.OperationCounts:
    buffer = np.frombuffer(b"".join(commands), np.uint8)
    offsets = np.cumsum([0, *map(len, commands)])[:-1].astype(np.int64)
    return operations.count_operations(registers.EncodedCommands.of(chip, "TIU", buffer, offsets))


def figures(counts: operations.OperationCounts, row: int = 0) -> tuple[int, int, int]:
    return int(counts.alg_ops[row]), int(counts.uarch_ops[row]), int(counts.alg_cycles[row])


def cases() -> list[Any]:
    return [
        pytest.param(chip, operation.name, id=f"{chip}-{operation.name}")
        for chip in chip_names()
        for operation in command_table(the(chip), "TIU").operations
    ]


def random_fields(draw: random.Random, operation: Operation) -> dict[str, int]:
    fields = {}
    for field in operation.by_name.values():
        dimension = re.fullmatch(r"(res0|opd\d)_[nchw]", field.name)
        fields[field.name] = min(draw.randrange(1, 200), field.mask) if dimension else draw.getrandbits(field.width)
    return fields


@pytest.mark.parametrize(("chip", "name"), cases())
def test_many_commands_count_as_the_description_says(chip: str, name: str) -> None:
    table = command_table(the(chip), "TIU")
    operation = table.operations[index_of(table, name)]
    draw = random.Random(f"{chip}{name}")
    commands, expected = [], []
    for function in operation.functions:
        for _ in range(12):
            fields = random_fields(draw, operation)
            commands.append(encoded(operation, function, fields))
            try:
                expected.append(Oracle(chip, name, function, fields).figures())
            except ZeroDivisionError:
                expected.append(None)
    counts = counted(the(chip), commands)
    for row, wanted in enumerate(expected):
        if wanted is None:
            assert operations.MISSING in figures(counts, row)
        else:
            assert figures(counts, row) == wanted
            assert figures(counted(the(chip), [commands[row]])) == wanted


@pytest.mark.parametrize(
    ("name", "function", "fields", "expected", "rate"),
    [
        (
            "sCONV",
            0,
            {"res0_n": 1, "res0_c": 64, "res0_h": 1, "res0_w": 64, "opd0_c": 4, "opd1_h": 1, "opd1_w": 1,
             "opt_opd0_prec": 1, "opt_res0_prec": 1},
            (28672, 258048, 2),
            "11.1%",
        ),
        (
            "sPorD",
            0,
            {"res0_n": 1, "res0_c": 64, "res0_h": 1, "res0_w": 64, "opd1_h": 1, "opd1_w": 4, "opt_opd0_prec": 1},
            (28672, 28672, 7),
            "100.0%",
        ),
        (
            "sMM2",
            4,
            {"res0_c": 64, "res0_w": 64, "opd1_c": 4, "opd1_w": 64, "opt_opd0_prec": 1, "opt_res0_prec": 1},
            (32768, 262144, 2),
            "12.5%",
        ),
        (
            "sMM2",
            6,
            {"res0_c": 64, "res0_w": 64, "opd1_c": 64, "opd1_w": 4, "opt_opd0_prec": 1, "opt_res0_prec": 1},
            (32768, 32768, 2),
            "100.0%",
        ),
    ],
)  # fmt: skip
def test_figures_of_known_commands(
    name: str, function: int, fields: dict[str, int], expected: tuple[int, int, int], rate: str
) -> None:
    table = command_table(the("aks"), "TIU")
    counts = counted(the("aks"), [encoded(table.operations[index_of(table, name)], function, fields)])
    assert figures(counts) == expected
    assert round(float(counts.uarch_rates[0]), 1) == float(rate.rstrip("%"))


@pytest.mark.parametrize("chip", chip_names())
def test_hostile_registers_give_figures_or_none(chip: str) -> None:
    """No warning, no negative figure but the missing one, and one command counts as it does among many."""
    draw = random.Random(chip)
    commands = []
    for operation in command_table(the(chip), "TIU").operations:
        for function in operation.functions:
            commands += [
                encoded(operation, function, {f.name: pick(f.mask) for f in operation.by_name.values()})
                for pick in (lambda mask: 0, lambda mask: mask, lambda mask: draw.randint(0, mask))
            ]
    draw.shuffle(commands)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counts = counted(the(chip), commands)
        rates = counts.uarch_rates
    for column in (counts.alg_ops, counts.uarch_ops, counts.alg_cycles):
        assert column.min() == operations.MISSING
    assert ((rates >= 0) | np.isnan(rates)).all()
    for row in range(0, len(commands), 17):
        assert figures(counted(the(chip), [commands[row]])) == figures(counts, row)


def test_products_that_do_not_fit_are_missing() -> None:
    table = command_table(the("aks"), "TIU")
    operation = table.operations[index_of(table, "AR")]
    most = {f"res0_{axis}": 0xFFFF for axis in "nchw"}
    assert figures(counted(the("aks"), [encoded(operation, 0, most)])) == (-1, -1, -1)
    fitting = {**most, "res0_n": 0x1F}
    assert figures(counted(the("aks"), [encoded(operation, 0, fitting)]))[0] == 0x1F * 0xFFFF**3


def test_commands_that_cannot_be_decoded_have_no_figures() -> None:
    buffer = np.zeros(64, np.uint8)
    unknown = registers.EncodedCommands(the("aks"), "TIU", buffer, np.array([0], np.int64), np.array([-1], np.int16))
    counts = operations.count_operations(unknown)
    assert figures(counts) == (-1, -1, -1)
    assert np.isnan(counts.uarch_rates[0])


def initial_of(chip: str, name: str, function: int) -> int:
    table = command_table(the(chip), "TIU")
    return int(counted(the(chip), [encoded(table.operations[index_of(table, name)], function, {})]).initial_cycles[0])


@pytest.mark.parametrize(
    ("chip", "name", "function", "cycles"),
    [
        ("bm1688", "CONV", 0, 23), ("bm1688", "sMM", 1, 32), ("bm1688", "sMM2", 4, 81), ("bm1688", "sMM2", 5, 56),
        ("bm1688", "MM2", 6, 37), ("cv84x6", "sMM2", 7, 81), ("cv84x6", "sMM2", 13, 56), ("cv84x6", "sMM2", 12, 37),
        ("cv84x6", "sCMP", 22, 9), ("bm1688", "sSFU", 17, 14), ("bm1688", "sSFU", 15, 0), ("bm1688", "sAR", 12, 11),
        ("cv84x6", "sRQ&sDQ", 1, 11), ("cv84x6", "sSG", 0, 11), ("bm1688", "sSGL", 17, 24),
        ("bm1688", "sCW&sBC", 0, 30), ("cv84x6", "sCW&sBC", 1, 0), ("bm1688", "sCW&sBC", 2, 27),
        ("bm1688", "sCW&sBC", 3, 27), ("cv84x6", "sCW&sBC", 4, 3), ("bm1688", "sCW&sBC", 5, 3),
        ("cv84x6", "sLIN", 1, 12), ("bm1688", "sPorD", 5, 10), ("bm1688", "SYS", 8, 0),
        ("aks", "sAR", 0, operations.MISSING),
    ],
)  # fmt: skip
def test_initial_cycles(chip: str, name: str, function: int, cycles: int) -> None:
    assert initial_of(chip, name, function) == cycles


def test_bank_conflicts_of_requantising() -> None:
    table = command_table(the("bm1688"), "TIU")
    operation = table.operations[index_of(table, "sRQ&sDQ")]
    other = table.operations[index_of(table, "sAR")]
    commands = [
        encoded(operation, 0, {"res0_addr": 0x100, "opd0_addr": 0x200}),
        encoded(operation, 0, {"res0_addr": 0x100, "opd0_addr": 0x100}),
        encoded(other, 0, {}),
    ]
    assert counted(the("bm1688"), commands).bank_conflicts.tolist() == [2, 1, 0]
    table = command_table(the("cv84x6"), "TIU")
    command = encoded(table.operations[index_of(table, "sRQ&sDQ")], 1, {})
    assert counted(the("cv84x6"), [command]).bank_conflicts.tolist() == [operations.MISSING]


REGISTERS_OF_TERMS = {
    "conv_kernel": {"opd0_c", "opd1_h", "opd1_w", "opt_opd2_const"},
    "conv_kernel_padded": {"opt_opd0_prec"},
    "pool_kernel": {"opd1_h", "opd1_w"},
    "taylor_steps": {"opd1_n"},
    "taylor_operations": {"opd1_n"},
    "vc_rows": {"opd0_c", "opd0_w", "opd1_w"},
    "Vmin": {"opt_opd0_prec", "opt_opd1_prec", "opt_res0_prec"},
    "N": set(),
    **{f"{table}{operand[-1]}": {f"opt_{operand}_prec"} for table in "ECV" for operand in ("opd0", "opd1", "opd2")},
    **{f"{table}r": {"opt_res0_prec"} for table in "ECV"},
}


@pytest.mark.parametrize(("chip", "name"), cases())
def test_every_function_has_a_rule_and_every_rule_its_registers(chip: str, name: str) -> None:
    table = command_table(the(chip), "TIU")
    operation = table.operations[index_of(table, name)]
    model = operations.model_of(the(chip))
    assert model is not None
    left = set(operation.functions)
    for rule in model.rules[operations.base_name(name)]:
        covered = left if rule.functions is None else left & rule.functions
        tokens = {
            token
            for factor in " ".join((rule.alg, rule.uarch, rule.cycles or "")).split()
            for token in re.split(r"[*^]", factor)
        }
        needed = set().union(*(REGISTERS_OF_TERMS.get(token, {token}) for token in tokens if not token.isdigit()))
        if covered:
            assert needed <= set(operation.by_name)
        if rule.precisions is None:
            left = left - covered
    assert not left


def test_a_model_with_a_short_table_is_refused() -> None:
    tables = {"element_bytes": [1] * 8, "vector_lanes": [1] * 8, "cube_lanes": [1] * 8}
    rest = {"unit_bytes": 16, "initial_cycles": False, "bank_conflicts": False, "operations": {}}
    assert operations.model_from_data({**tables, **rest}).rules == {}
    with pytest.raises(ChipDataError):
        operations.model_from_data({**tables, **rest, "cube_lanes": [1] * 7})
    with pytest.raises(ChipDataError):
        operations.model_from_data({**tables, **rest, "element_bytes": [0] * 8})


@pytest.mark.parametrize("chip", ["aks", "aksv"])
def test_a_taylor_series_keeps_the_published_count(chip: str) -> None:
    table = command_table(the(chip), "TIU")
    operation = table.operations[index_of(table, "SFU")]
    fields = {"res0_n": 1, "res0_c": 64, "res0_h": 1, "res0_w": 16, "opd1_n": 7, "opt_res0_prec": 2}
    alg, _, _ = figures(counted(the(chip), [encoded(operation, 12, fields)]))
    assert alg == 64 * 16 * 7
