"""Operation counts of TIU commands, and the cycles that they would take at the peak.

The formulas are data (``chips/common/models.json``): products of registers, of lane counts and of the few terms below.
``a*b^L`` rounds the product a·b up to a multiple of L; cycles are Alg Ops divided by a product, rounded up. Factors are
float64, NaN where missing; products are exact up to `_LARGEST`. The formulas are the reference's, except for the
transposed matrix product, where it counts one dimension twice, and for vector correlation, where it fails.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct, convert

from tpuprof_tui.model.uniques import uniques

from ...chips.bit_layout import CHIP_FILES, ChipDataError
from ...chips.chip import Chip
from ...chips.commands import command_table
from ..arrays import F64, I64, Bools
from .registers import EncodedCommands, commands_of_one_kind, field_of_lines

MISSING = -1
"""Value of an unknown count."""

_LARGEST = 2.0**53
"""Largest count, beyond which float64 is not exact; no command needs that many operations."""
#: Model tables by token prefix; V divides the bytes of a lane by the bytes of an element.
_LANES = {"E": "vector_lanes", "C": "cube_lanes", "V": "element_bytes"}
_PRECISIONS = {"0": "opt_opd0_prec", "1": "opt_opd1_prec", "2": "opt_opd2_prec", "r": "opt_res0_prec"}


class OperationCounts(Struct, frozen=True):
    """Figures of many TIU commands; int64 arrays of one length, `MISSING` where unknown."""

    alg_ops: I64  #: Operations that the algorithm needs
    uarch_ops: I64  #: Operations that the hardware executes, including padding
    alg_cycles: I64  #: Cycles for ``alg_ops`` with every lane busy
    initial_cycles: I64  #: Cycles before the first result; missing on chips without a model of it
    bank_conflicts: I64  #: Modelled bank conflicts; missing on chips without a model of them

    @property
    def uarch_rates(self) -> F64:
        """Alg Ops per uArch Ops in percent; 0 where there are no uArch Ops, NaN where missing."""
        rates = np.where(self.uarch_ops > 0, 100.0 * self.alg_ops / np.maximum(self.uarch_ops, 1), 0.0)
        return np.where((self.alg_ops < 0) | (self.uarch_ops < 0), np.nan, rates)


class CountRule(Struct, frozen=True, eq=False):
    """Formulas for some functions of one operation; see the module docstring for the notation of products."""

    alg: str  #: Factors of Alg Ops, separated by blanks
    uarch: str  #: Factors of uArch Ops
    cycles: str | None  #: Factors that divide Alg Ops; None when the cycles are 0
    functions: frozenset[int] | None = None  #: Function codes that it applies to; None for all
    precisions: frozenset[int] | None = None  #: Precision codes of operand 0 that it applies to; None for all
    initial: int = 0  #: Initial cycles
    conflict: str = ""  #: Name of the bank conflict model; empty for none


class Model(Struct, frozen=True, eq=False):
    """Formulas and lane counts of one chip."""

    unit_bytes: int  #: Bytes that a lane processes at once
    element_bytes: F64  #: Bytes per element by precision code
    vector_lanes: F64  #: Vector lanes by precision code; NaN where the chip has no such precision (0 in the file)
    cube_lanes: F64  #: Cube lanes by precision code, likewise
    initial_cycles: bool  #: Whether initial cycles are modelled
    bank_conflicts: bool  #: Whether bank conflicts are modelled
    #: Rules by operation name without the marks of short forms (see `base_name`); the first that applies is used.
    rules: Mapping[str, tuple[CountRule, ...]]
    registers: Mapping[tuple[CountRule, ...], tuple[str, ...]]  #: Names of the registers that rules need


def count_operations(encoded: EncodedCommands, *, uarch: bool = True) -> OperationCounts:
    """Figures of TIU commands, in their order; ``uarch``: whether to compute uArch Ops, else they are missing."""
    chip, ops = encoded.chip, encoded.operations
    model = model_of(chip)
    result = OperationCounts(*(np.full(ops.shape, MISSING, np.int64) for _ in range(5)))
    if model is None:
        return result
    table = command_table(chip, "TIU")
    functions = encoded.codes()[1]
    for op in uniques(ops[ops >= 0]).tolist():
        rules = model.rules.get(base_name(table.operations[op].name))
        if not rules:
            continue
        rows = np.flatnonzero(ops == op)
        lines = commands_of_one_kind(encoded.take(rows), op)
        registers = {name: field_of_lines(table, lines, op, name).astype(np.float64) for name in model.registers[rules]}
        commands = _Commands(chip, model, registers, functions[rows])
        for rule in rules:
            applies = commands.rule_mask(rule)
            if applies.all():
                _store_counts(result, rows, commands, rule, uarch)
                break
            if applies.any():
                _store_counts(result, rows[applies], commands.subset(applies), rule, uarch)
                rows, commands = rows[~applies], commands.subset(~applies)
    return result


def base_name(name: str) -> str:
    """Name of an operation without the mark of its short form (``sCW&sBC`` is ``CW&BC``)."""
    return name.replace("s", "")


class _Commands(Struct):
    """Commands of one operation: their registers by name, and cached factors."""

    chip: Chip
    model: Model
    registers: dict[str, F64]
    functions: I64
    cache: dict[str, F64] = {}

    def __len__(self) -> int:
        return len(self.functions)

    def subset(self, rows: Bools) -> _Commands:
        """A subset of these commands."""
        registers = {name: values[rows] for name, values in self.registers.items()}
        return _Commands(self.chip, self.model, registers, self.functions[rows])

    def rule_mask(self, rule: CountRule) -> Bools:
        """Mask of the commands that ``rule`` applies to."""
        applies = np.ones(len(self), np.bool_)
        for codes, own in ((rule.functions, self.functions), (rule.precisions, self.registers["opt_opd0_prec"])):
            if codes is not None:
                applies &= np.logical_or.reduce([own == code for code in codes])
        return applies

    def by_precision(self, table: F64, operand: str) -> F64:
        """Entries of ``table`` for the precision of an operand."""
        return table[self.registers[_PRECISIONS[operand]].astype(np.int64)]

    def value(self, token: str) -> F64:
        """Values of one factor, which may be a rounded product: of numbers, lane counts, terms and registers.

        Never negative; NaN where missing.
        """
        if token in self.registers:
            return self.registers[token]
        if token not in self.cache:
            self.cache[token] = self._value(token)
        return self.cache[token]

    def _value(self, token: str) -> F64:
        product, _, multiple = token.partition("^")
        if multiple:
            # no register has so many bits that the quotient is inexact
            multiples = self.value(multiple)
            return np.ceil(self.value(product) / multiples) * multiples
        if "*" in product:
            return functools.reduce(operator.mul, map(self.value, product.split("*")))
        if token.isdigit():
            return np.array(float(token))
        if token in _TERMS:
            values = _TERMS[token].values(self)
            return np.where(values < 0, np.nan, values)
        lanes = self.by_precision(getattr(self.model, _LANES[token[0]]), token[1])
        return self.model.unit_bytes // lanes if token[0] == "V" else lanes


class _Term(Struct, frozen=True):
    """A factor that is neither a product nor a table: the registers it needs, and its values, negative if missing."""

    registers: str
    values: Callable[[_Commands], F64]


def _kernel(depth: F64, commands: _Commands) -> F64:
    """Multiplications and additions per result of a convolution; one more with a constant bias."""
    kernel = commands.value("opd1_h") * commands.value("opd1_w")
    return 2 * depth * kernel - 1 + commands.value("opt_opd2_const")


_TERMS: Mapping[str, _Term] = {
    "N": _Term("", lambda c: np.array(float(c.chip.parameter("NPU Num")))),
    "conv_kernel": _Term("opd0_c opd1_h opd1_w opt_opd2_const", lambda c: _kernel(c.value("opd0_c"), c)),
    "conv_kernel_padded": _Term(
        "opd0_c opt_opd0_prec opd1_h opd1_w opt_opd2_const", lambda c: _kernel(c.value("opd0_c^C0"), c)
    ),
    "pool_kernel": _Term("opd1_h opd1_w", lambda c: 2 * c.value("opd1_h") * c.value("opd1_w") - 1),
    "taylor_steps": _Term("opd1_n", lambda c: c.value("opd1_n")),
    "taylor_operations": _Term("opd1_n", lambda c: 2 * c.value("opd1_n") - 1),
    "vc_rows": _Term("opd0_c opd0_w opd1_w", lambda c: (c.value("opd0_c") - 1) * c.value("opd0_w") + c.value("opd1_w")),
    "Vmin": _Term(
        "opt_opd0_prec opt_opd1_prec opt_res0_prec",
        lambda c: (
            c.model.unit_bytes
            // np.maximum.reduce([c.by_precision(c.model.element_bytes, operand) for operand in "01r"])
        ),
    ),
}


def _registers_of(rules: tuple[CountRule, ...]) -> tuple[str, ...]:
    needed = {"opt_opd0_prec"}
    for rule in rules:
        for token in re.split("[ *^]+", f"{rule.alg} {rule.uarch} {rule.cycles or ''}"):
            if token in _TERMS:
                needed.update(_TERMS[token].registers.split())
            elif token[:1] in _LANES and token[1:] in _PRECISIONS:
                needed.add(_PRECISIONS[token[1]])
            elif token and not token.isdigit():
                needed.add(token)
        if rule.conflict:
            needed.update(("res0_addr", "opd0_addr"))
    return tuple(sorted(needed))


def _product(commands: _Commands, factors: str) -> I64:
    """Product of the factors; `MISSING` where a factor is missing or the product is not exact."""
    product = functools.reduce(operator.mul, map(commands.value, factors.split()), np.float64(1))
    known = product < _LARGEST
    return (product if known.all() else np.where(known, product, MISSING)).astype(np.int64)


def _store_counts(result: OperationCounts, rows: I64, commands: _Commands, rule: CountRule, uarch: bool) -> None:
    model = commands.model
    alg = _product(commands, rule.alg)
    result.alg_ops[rows] = alg
    if uarch:
        result.uarch_ops[rows] = _product(commands, rule.uarch)
    result.alg_cycles[rows] = 0
    if rule.cycles is not None:
        per_cycle = _product(commands, rule.cycles)
        cycles = -(-alg // np.maximum(per_cycle, 1))
        result.alg_cycles[rows] = np.where((alg >= 0) & (per_cycle > 0), cycles, MISSING)
    if model.initial_cycles:
        result.initial_cycles[rows] = rule.initial
    if model.bank_conflicts:
        result.bank_conflicts[rows] = 0
    if model.bank_conflicts and rule.conflict == "requantise":
        # more conflicts where the result is at half the operand's address
        half_address = commands.registers["res0_addr"] * 2 == commands.registers["opd0_addr"]
        result.bank_conflicts[rows] = np.where(half_address, 2, 1)


def model_of(chip: Chip) -> Model | None:
    """Formulas of ``chip``, loaded on the first call; None when there are none."""
    return CHIP_FILES.table(_model, chip.name)


def _model(chip_name: str) -> Model | None:
    models = CHIP_FILES.file("common/models.json")
    data = models.get(chip_name)
    while data is not None and "same_as" in data:
        data = {**models[data["same_as"]], **{key: value for key, value in data.items() if key != "same_as"}}
    return None if data is None else model_from_data(data)


def model_from_data(data: Mapping[str, Any]) -> Model:
    """Validated model from a data file's entry.

    Raises:
        ChipDataError: A table does not have an entry per precision code.
    """
    tables = {key: np.array(data[key], np.float64) for key in ("element_bytes", "vector_lanes", "cube_lanes")}
    for key in ("vector_lanes", "cube_lanes"):
        tables[key][tables[key] <= 0] = np.nan
    if any(table.shape != (8,) for table in tables.values()) or tables["element_bytes"].min() < 1:
        raise ChipDataError("a precision table does not have eight entries, or an element has no bytes")
    rules = convert(data["operations"], dict[str, tuple[CountRule, ...]])
    plain: dict[str, Any] = {key: data[key] for key in ("unit_bytes", "initial_cycles", "bank_conflicts")}
    registers = {each: _registers_of(each) for each in rules.values()}
    return Model(rules=rules, registers=registers, **{**plain, **tables})
