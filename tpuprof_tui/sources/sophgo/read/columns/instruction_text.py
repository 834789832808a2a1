"""One line of text per instruction, from all that the capture contains about it.

    mm2.nn R[64,1,128] f16 b1+0x0 <- L[64,4096] f16 b0+0x0 x R[4096,128] f16 b2+0x0 +acc relu
    tensor DDR->LMEM 2.0 MiB f16 [1,64,32,512] strides [1048576,16384,512,1] 61.2 of 68.3 GB/s
    wait for 4 sends of message 7, 2,819 ns

With registers it is decoded from them; condensed commands have name, data type, size and rate, and records without a
command what their counters show. Decoded on demand, not cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct, convert

from tpuprof_tui.formats.units import bytes_text, rate_number, rate_text
from tpuprof_tui.model import INT_MISSING, Role, StringsBuilder
from tpuprof_tui.model.lane import Array, LazyColumn

from ...chips.bit_layout import CHIP_FILES
from ...chips.chip import Chip, family_of
from ...chips.commands import command_table
from ..commands.lane_registers import NO_FORMAT, LaneRegisters, dependency_in, message_in
from ..commands.operation_counts import base_name
from ..commands.registers import LOW_ADDRESS_BITS, DecodedCommand, address_fields, decode, memory_text

_AXES = "nchw"
_OTHER_ENGINE = {"TIU": "GDMA", "GDMA": "TIU"}
_LOCAL = "LMEM"


class InstructionDescriber(Struct, frozen=True):
    """Describes the instructions of one lane."""

    chip: Chip
    engine: str
    columns: Mapping[str, Array | LazyColumn]
    strings: Mapping[str, StringsBuilder]  #: Texts of the codes of text columns
    registers: LaneRegisters | None  #: Registers of the commands; None without any
    guessed: bool  #: Whether the roles work and wait are guessed

    def __call__(self, row: int) -> str:
        """Description of one row."""
        command = None
        if self.registers is not None and self.registers.operation[row] >= 0:
            command = decode(self.chip, self.engine, self.registers.raw(row))
        parts = self._decoded(row, command) if command is not None else self._condensed(row)
        return " ".join(part for part in parts if part)

    # -- columns ----------------------------------------------------------

    def _value(self, key: str, row: int) -> Any:
        """Value of a column; None where it is unknown."""
        column = self.columns.get(key)
        if column is None:
            return None
        rows = np.array([row])
        value = (column[rows] if isinstance(column, np.ndarray) else column(rows))[0].item()
        return None if value == INT_MISSING or value != value else value

    def _name(self, key: str, row: int) -> str:
        code = self._value(key, row)
        return "" if code is None or code < 0 else self.strings[key].text(code)

    def _with_duration(self, text: str, row: int) -> str:
        """Text of a wait, with its duration if it was measured."""
        end = self._value("end", row)
        return text if end is None else f"{text}, {end - self._value('start', row):,} ns"

    # -- with registers ---------------------------------------------------

    def _decoded(self, row: int, command: DecodedCommand) -> list[str]:
        values = command.values
        table = command_table(self.chip, self.engine)
        if command.operation is table.operations[table.end.operation]:
            parts = [self._system(row, command, values)]
        elif family_of(self.engine) == "tiu":
            parts = [tiu_text(self.chip, command)]
        else:
            parts = [*self._transfer(row, command, values), self._rate(row)]
        after = dependency_in(self.chip, self.engine, values)
        if after:
            parts.append(f"after {_OTHER_ENGINE[self.engine]} {after}")
        return parts

    def _system(self, row: int, command: DecodedCommand, values: Mapping[str, int]) -> str:
        family = family_of(self.engine)
        message = message_in(self.chip, self.engine, values)
        wait = command.function in self.chip.wait_functions[family]
        text = command.function_text.rpartition(".")[2]
        if message is not None and wait:
            text = f"wait for {_counted(message.count, 'send', ' of ')}message {message.id}"
        elif message is not None and command.function in self.chip.send_functions[family]:
            text = f"send message {message.id} {_counted(message.count, 'wait', '', 'to ')}".rstrip()
        return self._with_duration(text, row) if wait else text

    def _transfer(self, row: int, command: DecodedCommand, values: Mapping[str, int]) -> list[str]:
        source, target = self._memory_and_address("src", values), self._memory_and_address("dst", values)
        shape, target_shape = _dims("src", "size", values) or _dims("dst", "size", values), _dims("dst", "size", values)
        strides, target_strides = _dims("src", "stride", values), _dims("dst", "stride", values)
        direction = f"{source}->{target}" if source and target else source or target
        if not direction and family_of(self.engine) != "cdma":  # from the node, where registers contain no address
            direction = self._name("direction", row)
        dtype = type_text(values["src_data_format"]) if "src_data_format" in values else ""
        parts = [transfer_name(command), direction, self._size(row), dtype]
        if shape:
            parts.append("->".join(f"[{each}]" for each in dict.fromkeys((shape, target_shape or shape))))
        if values.get("stride_enable") and strides:
            both = dict.fromkeys((strides, target_strides or strides))
            parts.append("strides " + "->".join(f"[{each}]" for each in both))
        if values.get("fill_constant_en"):
            parts.append(f"fill {values.get('constant_value', 0):#x}")
        return parts

    def _memory_and_address(self, side: str, values: Mapping[str, int]) -> str:
        """Memory and address of one side of a transfer; empty where the command has none."""
        low, high = address_fields(self.chip, side)
        if low not in values:
            return ""
        address = values.get(high, 0) << LOW_ADDRESS_BITS | values[low]
        memory = memory_text(self.chip, address)
        inside = address & (1 << self.chip.memory_of_address.tag_bit) - 1
        return f"{memory} {local_address(self.chip, inside) if memory == _LOCAL else f'{inside:#x}'}"

    # -- without ----------------------------------------------------------

    def _condensed(self, row: int) -> list[str]:
        name = self._name("name", row)
        mark = "~" if self.guessed else ""
        role = Role(self._value("role", row))
        if role != Role.WORK:
            return [self._with_duration(f"{mark}wait", row) if role == Role.WAIT else mark + (name or "sync")]
        if family_of(self.engine) == "tiu":
            precision, cycles = self._value("precision", row), self._value("cycles", row)
            return [name or "computation", type_text(precision & 15) if precision is not None and name else "",
                    "" if cycles is None else f"{cycles:,} cycles"]  # fmt: skip
        direction = self._name("direction", row) or self._counted_direction(row)
        dtype = self._value("data_format", row)
        return [
            transfer_label(name) or "transfer",
            "" if family_of(self.engine) == "cdma" else direction,
            self._size(row),
            type_text(dtype) if dtype is not None and dtype != NO_FORMAT and name else "",
            self._rate(row),
        ]

    def _counted_direction(self, row: int) -> str:
        """Destination of the data, by the counters of a record without a command; empty where they do not show it."""
        local, bus = self._value("gif_mem_w_cntr", row), self._value("axi_d0_w_cntr", row)
        if local is None or bus is None or bool(local) == bool(bus):
            return ""
        return f"to {_LOCAL}" if local else "to DDR or L2M"

    def _size(self, row: int) -> str:
        """Bytes moved; empty where they are not known."""
        size = self._value("bytes", row)
        return "" if size is None else bytes_text(size)

    def _rate(self, row: int) -> str:
        """Bytes over time, compared with the peak of the memory involved."""
        size = self._value("bytes", row)
        if not size:
            return ""
        length = max(self._value("end", row) - self._value("start", row), 1)
        direction = self._name("direction", row)
        peak = 0.0 if family_of(self.engine) == "cdma" else self.chip.peak_gbps(direction)
        return f"{rate_number(size / length, 1)} of {rate_text(peak, 1)}" if peak else rate_text(size / length, 1)


def _counted(count: int, noun: str, suffix: str, prefix: str = "") -> str:
    """A count with its noun; empty for 0."""
    return f"{prefix}{count} {noun}{'s' * (count != 1)}{suffix}" if count else ""


def transfer_name(command: DecodedCommand) -> str:
    """Operation and function of a transfer, without the engine: ``tensor``, ``tensor.transpose``, ``gather``."""
    operation = transfer_label(command.operation.name)
    function = command.function_text
    for prefix in ("dma.", "gdma.", "cdma.", "DMA_"):
        function = function.removeprefix(prefix)
    if function in ("", "none") or function == operation:
        return operation
    return function if function.startswith(operation) else f"{operation} {function}"


def transfer_label(name: str) -> str:
    """Name of an operation without the engine prefix and without a suffix in brackets."""
    return name.partition("（")[0].strip().removeprefix("sDMA_").removeprefix("DMA_").removeprefix("CDMA_")


def _dims(side: str, kind: str, values: Mapping[str, int]) -> str:
    known = [values[name] for axis in _AXES if (name := f"{side}_{axis}{kind}") in values]
    return ",".join(map(str, known)) if any(known) else ""


# Text of one TIU command: result and operands in one line, in the terms of the instruction set.
#
#     mm2.nn R[64,1,128] f16 b1+0x0 <- L[64,4096] f16 b0+0x0 x R[4096,128] f16 b2+0x0 +acc relu
#
# Local memory addresses are written as bank and offset, after the first lane if it is not lane 0 (``n4.b1+0x0``).

Values = Mapping[str, int]
Dims = tuple[str, ...]

_TYPES = ("i8", "f16", "f32", "i16", "i32", "bf16", "i4", "f8", "f20", "tf32")
_FLOATS = frozenset(("f16", "f32", "bf16", "f8", "f20", "tf32"))


def type_text(code: int, sign: int | None = None) -> str:
    """Short name of a data type; unsigned integers begin with ``u``."""
    if not 0 <= code < len(_TYPES):
        return f"type{code}"
    text = _TYPES[code]
    return "u" + text[1:] if sign == 0 and text not in _FLOATS else text


def local_address(chip: Chip, address: int) -> str:
    """A local memory address as bank and offset, after the lane if that is not 0."""
    lane_bytes = 1 << int(chip.parameter("Tpu Lmem Addr Width(bits)"))
    lane, inside = divmod(address, lane_bytes)
    bank, offset = divmod(inside, 1 << int(chip.parameter("Tpu Bank Addr Width(bits)")))
    return f"{f'n{lane}.' if lane else ''}b{bank}+{offset:#x}"


class Operand(Struct, frozen=True, array_like=True):
    """An operand: prefix of its registers, mark before it, registers of its shape (``a|b``: b if a is missing)."""

    prefix: str
    mark: str = ""
    dims: Dims = ("res0_n", "res0_c", "res0_h", "res0_w")


class Wording(Struct, frozen=True):
    """What ``chips/common/operands.json`` says of TIU commands."""

    #: Operands by operation; other operations have up to three of the result's shape.
    operands: Mapping[str, tuple[Operand, ...]]
    products: Mapping[str, tuple[Operand, Operand]]  #: Left and right operand of matrix products by form
    product_forms: Mapping[int, str]  #: Form by function code
    pooling: tuple[int, ...]  #: Functions of PorD that have a window instead of weights
    flags: Mapping[str, str]  #: Text of each boolean option


_LIKE_RESULT = (Operand("opd0"), Operand("opd1"), Operand("opd2"))
_WINDOW = Operand("opd1", "k", ("opd1_h", "opd1_w"))


def _wording(name: str) -> Wording:
    return convert(CHIP_FILES.file(f"common/{name}.json"), Wording, str_keys=True)


def _options(values: Values) -> list[str]:
    """Texts of padding, steps and inserted zeros; empty without any."""
    groups = (
        ("pad", 0, [f"opd0_{side}_pad" for side in ("up", "dn", "lf", "rt")]),
        ("step", 1, ["res_op_y_str", "res_op_x_str"]),
        ("insert", 0, [f"opd{number}_{axis}_ins0" for number in (0, 1) for axis in "yx"]),
    )
    found = ((word, plain, [values.get(name, plain) for name in names]) for word, plain, names in groups)
    return [f"{word} {','.join(map(str, known))}" for word, plain, known in found if max(known) > plain]


def tiu_text(chip: Chip, command: DecodedCommand) -> str:
    """Text of a decoded TIU command other than a system command, without times."""
    values = command.values
    base = base_name(command.operation.name)
    parts = [command.function_text]
    result = _result(chip, base, values)
    sources = [text for operand in _operands(base, command) if (text := _operand(chip, operand, values))]
    joined = (" x " if base in ("MM", "MM2") else ", ").join(sources[:2])
    parts += [result] if result else []
    parts += ["<- " + ", ".join([joined, *sources[2:]])] if joined else []
    parts += [text for name, text in CHIP_FILES.table(_wording, "operands").flags.items() if values.get(name)]
    return " ".join([*parts, *_options(values)])


def _operands(base: str, command: DecodedCommand) -> tuple[Operand, ...]:
    known = CHIP_FILES.table(_wording, "operands")
    if base == "MM2":
        extra = () if command.values.get("opt_opd2_const") else (Operand("opd2", dims=()),)
        return (*known.products[known.product_forms.get(command.function, "nn")], *extra)
    operands = known.operands.get(base, _LIKE_RESULT)
    if base == "PorD" and command.function in known.pooling:
        return operands[0], _WINDOW
    count = command.values.get("tsk_opd_num", 0)
    return operands[:count] if count and operands is _LIKE_RESULT else operands


def _shape(values: Values, dims: Dims) -> str:
    names = (next((name for name in dim.split("|") if name in values), "") for dim in dims)
    known = [values[name] for name in names if name]
    return f"[{','.join(map(str, known))}]" if known else ""


def _result(chip: Chip, base: str, values: Values) -> str:
    if "res0_addr" not in values:
        return ""
    dims: Dims = ("res0_c", "res0_n", "res0_w") if base == "MM2" else ("res0_n", "res0_c", "res0_h", "res0_w")
    shape = _shape(values, dims)
    if base == "MM2" and "res0_n" not in values:
        shape = f"[{values.get('res0_c', 0)},1,{values.get('res0_w', 0)}]"
    sign = next((values[name] for name in ("opt_res0_sign", "res0_sign", "res_sign") if name in values), None)
    code = values.get("opt_res0_prec", values.get("opt_opd2_prec", values.get("opt_opd0_prec", -1)))
    kind = type_text(code, sign) if code >= 0 else ""
    return " ".join(part for part in (f"R{shape}", kind, local_address(chip, values["res0_addr"])) if part)


def _operand(chip: Chip, operand: Operand, values: Values) -> str:
    address = values.get(f"{operand.prefix}_addr")
    if address is None:
        return ""
    code = values.get(f"opt_{operand.prefix}_prec", values.get("opt_opd0_prec", values.get("opt_res0_prec", -1)))
    kind = type_text(code, values.get(f"opt_{operand.prefix}_sign", values.get(f"{operand.prefix}_sign")))
    if values.get(f"opt_{operand.prefix}_const"):
        return f"{kind if code >= 0 else ''} {address:#x}".strip()
    shape = operand.mark + _shape(values, operand.dims)
    if operand is _WINDOW:
        return shape
    return " ".join(part for part in (shape, kind if code >= 0 else "", local_address(chip, address)) if part)
