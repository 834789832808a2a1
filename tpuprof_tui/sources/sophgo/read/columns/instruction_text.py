"""One line of text per instruction, from all that the capture contains about it.

    mm2.nn R[64,1,128] f16 b1+0x0 <- L[64,4096] f16 b0+0x0 x R[4096,128] f16 b2+0x0 +acc relu
    tensor DDR->LMEM 2.0 MiB f16 [1,64,32,512] strides [1048576,16384,512,1] 61.2 of 68.3 GB/s
    wait for 4 sends of message 7, 2,819 ns

With registers it is decoded from them; condensed commands have name, data type, size and rate, and records without a
command what their counters show. Decoded on demand, not cached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from tpuprof_tui.formats.units import bytes_text, rate_number, rate_text
from tpuprof_tui.model import INT_MISSING, Role
from tpuprof_tui.model.lane import Array, LazyColumn
from tpuprof_tui.sources.sophgo.chips.chip import Chip, family_of
from tpuprof_tui.sources.sophgo.chips.commands import command_table

from ..commands.lane_registers import NO_FORMAT, LaneRegisters
from ..commands.messages import dependency_in, message_in
from ..commands.registers import LOW_ADDRESS_BITS, Command, address_fields, decode, memory_text
from .computation_text import local_address, tiu_text, type_text

_AXES = "nchw"
_OTHER_ENGINE = {"TIU": "GDMA", "GDMA": "TIU"}
_LOCAL = "LMEM"


class InstructionDescriber(Struct, frozen=True):
    """Describes the instructions of one lane.

    Attributes:
        text: Text of a code of a text column, by column key.
        registers: Registers of the commands; None without any.
        guessed: Whether the roles work and wait are guessed.
    """

    chip: Chip
    engine: str
    columns: Mapping[str, Array | LazyColumn]
    text: Callable[[str, int], str]
    registers: LaneRegisters | None
    guessed: bool

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
        return "" if code is None or code < 0 else self.text(key, code)

    def _with_duration(self, text: str, row: int) -> str:
        """Text of a wait, with its duration if it was measured."""
        end = self._value("end", row)
        return text if end is None else f"{text}, {end - self._value('start', row):,} ns"

    # -- with registers ---------------------------------------------------

    def _decoded(self, row: int, command: Command) -> list[str]:
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

    def _system(self, row: int, command: Command, values: Mapping[str, int]) -> str:
        family = family_of(self.engine)
        message = message_in(self.chip, self.engine, values)
        wait = command.function in self.chip.wait_functions[family]
        if message is not None and wait:
            return self._with_duration(f"wait for {_counted(message.count, 'send', ' of ')}message {message.id}", row)
        if message is not None and command.function in self.chip.send_functions[family]:
            return f"send message {message.id} {_counted(message.count, 'wait', '', 'to ')}".rstrip()
        name = command.function_text.rpartition(".")[2]
        return self._with_duration(name, row) if wait else name

    def _transfer(self, row: int, command: Command, values: Mapping[str, int]) -> list[str]:
        source, target = self._memory_and_address("src", values), self._memory_and_address("dst", values)
        shape, target_shape = _dims("src", "size", values) or _dims("dst", "size", values), _dims("dst", "size", values)
        strides, target_strides = _dims("src", "stride", values), _dims("dst", "stride", values)
        direction = f"{source}->{target}" if source and target else source or target
        if not direction and family_of(self.engine) != "cdma":  # from the node, where registers contain no address
            direction = self._name("direction", row)
        dtype = type_text(values["src_data_format"]) if "src_data_format" in values else ""
        parts = [transfer_name(command), direction, self._size(row), dtype]
        if shape:
            parts.append(f"[{shape}]" if not target_shape or target_shape == shape else f"[{shape}]->[{target_shape}]")
        if values.get("stride_enable") and strides:
            same = not target_strides or target_strides == strides
            parts.append(f"strides [{strides}]" if same else f"strides [{strides}]->[{target_strides}]")
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


def transfer_name(command: Command) -> str:
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
    known = [values[f"{side}_{axis}{kind}"] for axis in _AXES if f"{side}_{axis}{kind}" in values]
    return ",".join(map(str, known)) if any(known) else ""
