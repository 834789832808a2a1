"""What decoded commands read and wrote in local memory: where, how much, when.

Every lane of the processor has its own share of local memory, all laid out alike; addresses are those within a share.
Sizes per lane follow from the shapes in the registers: channels are dealt out over the lanes. Where a register tells no
shape of an operand, it is taken to be the result's; moves other than those of tensors are taken to use all lanes alike.
Such extents are estimates, and the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.formats.web_codec import Ints
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows

#: Bits of an element, by precision code and by name (capture 6, metrics 4).
ELEMENT_BITS: Final = (8, 16, 32, 16, 32, 16, 4, 8, 20, 32)
DTYPE_BITS: Final = {"INT8": 8, "FP16": 16, "FP32": 32, "INT16": 16, "INT32": 32, "BFP16": 16, "INT4": 4, "FP8": 8,
                     "FP20": 20, "TF32": 32}  # fmt: skip
#: What a command does with local memory, by number; results are written, operands read.
OPERANDS: Final = ("res0", "res1", "opd0", "opd1", "opd2", "opd3", "dst", "src")
WRITES: Final = (True, True, False, False, False, False, True, False)
#: Operands that every command of the engine has: an address of 0 is a place, not the lack of one.
_ALWAYS: Final = ("res0", "opd0")
LOCAL: Final = "LMEM"


class LocalMemory(Struct, frozen=True):
    """The shape of local memory.

    Attributes:
        lane_bytes: Bytes of one lane's share; a power of two.
        bank_bytes: Bytes of a bank of it.
        lanes: Number of lanes.
    """

    lane_bytes: int
    bank_bytes: int
    lanes: int

    @staticmethod
    def of(profile: Profile) -> LocalMemory | None:
        """That of a profile's chip; None where its parameters do not tell."""
        values = dict(profile.device.parameters)
        labels = ("Tpu Lmem Addr Width(bits)", "Tpu Bank Addr Width(bits)", "NPU Num")
        try:
            lane_bits, bank_bits, lanes = (int(values[label]) for label in labels)
        except (KeyError, ValueError):
            return None
        if not (0 < bank_bits <= lane_bits <= 32 and lanes > 0):
            return None
        return LocalMemory(1 << lane_bits, 1 << bank_bits, lanes)


class Accesses(Struct, frozen=True, eq=False):
    """Accesses of one lane's commands, by row.

    Attributes:
        rows: Place of the command among the rows asked for.
        operand: Which operand, by place in ``OPERANDS``.
        address: Place in a lane's share.
        size: Bytes per lane, at least 1.
    """

    rows: Ints
    operand: Ints
    address: Ints
    size: Ints

    @staticmethod
    def joined(parts: list[Accesses]) -> Accesses:
        """All of several, by row, then operand."""
        empty = np.zeros(0, np.int64)
        columns = [
            np.concatenate([empty, *(getattr(part, key) for part in parts)])
            for key in ("rows", "operand", "address", "size")
        ]
        order = np.lexsort((columns[1], columns[0]))
        return Accesses(*(column[order] for column in columns))


def accesses(profile: Profile, lane: Lane, rows: Rows, memory: LocalMemory) -> Accesses:
    """The accesses of some rows of a lane; none where its commands are not decoded."""
    registers = lane.registers
    if registers is None:
        return Accesses.joined([])
    numbers = np.arange(len(lane))[rows] if isinstance(rows, slice) else rows
    operations = registers.operations(numbers)
    parts: list[Accesses] = []
    for operation in np.unique(operations[operations >= 0]).tolist():
        places = np.flatnonzero(operations == operation)
        command = _Commands(profile, lane, memory, operation, np.asarray(numbers[places], np.int64))
        found = command.tiu() if lane.kind == "TIU" else command.transfers()
        parts += [Accesses(places[each.rows], each.operand, each.address, each.size) for each in found]
    return Accesses.joined(parts)


class _Commands:
    """Commands of one operation."""

    def __init__(self, profile: Profile, lane: Lane, memory: LocalMemory, operation: int, rows: Ints) -> None:
        assert lane.registers is not None
        self._profile = profile
        self._lane = lane
        self._memory = memory
        self._operation = operation
        self._rows = rows
        self._registers = lane.registers
        self._names = frozenset(lane.registers.field_names(operation))

    def tiu(self) -> list[Accesses]:
        """Results and operands that have an address and are no constants."""
        found = []
        for operand in OPERANDS[:6]:
            if f"{operand}_addr" not in self._names:
                continue
            address = self._field(f"{operand}_addr")
            used = np.ones(len(address), np.bool_) if operand in _ALWAYS else address != 0
            if f"opt_{operand}_const" in self._names:
                used &= self._field(f"opt_{operand}_const") == 0
            if f"{operand}_const" in self._names:
                used &= self._field(f"{operand}_const") == 0
            bits = _looked_up(ELEMENT_BITS, self._field(self._either(f"opt_{operand}_prec", "opt_res0_prec"), 0))
            shape = [self._field(self._either(f"{operand}_{side}", f"res0_{side}"), 1) for side in "nchw"]
            found.append(self._accesses(operand, used, address, self._per_lane(shape, bits)))
        return found

    def transfers(self) -> list[Accesses]:
        """The sides of transfers that lie in local memory."""
        found = []
        for operand, memory_key, address_key in (("dst", "to_memory", "dst_addr"), ("src", "from_memory", "src_addr")):
            if memory_key not in self._lane or address_key not in self._lane:
                continue
            local = [code for code, text in enumerate(self._profile.strings[memory_key]) if text == LOCAL]
            used = np.isin(self._lane.take(memory_key, self._rows), local)
            address = self._lane.take(address_key, self._rows)
            names = [f"{operand}_{side}size" for side in "nchw"]
            sizes = np.maximum(self._lane.take("bytes", self._rows), 0)
            spread = -(-sizes // self._memory.lanes)
            if all(name in self._names for name in names):
                shaped = self._per_lane([self._field(name) for name in names], self._dtype_bits())
                # other moves are dealt out over all lanes whatever their shape
                fits = self._moves_tensors() & (shaped <= self._memory.lane_bytes)
                spread = np.where(fits, shaped, spread)
            found.append(self._accesses(operand, used & (address >= 0), address, spread))
        return found

    def _accesses(self, operand: str, used: npt.NDArray[np.bool_], address: Ints, size: Ints) -> Accesses:
        chosen = np.flatnonzero(used)
        places = address[chosen] & (self._memory.lane_bytes - 1)
        sizes = np.clip(size[chosen], 1, self._memory.lane_bytes - places)
        return Accesses(chosen, np.full(len(chosen), OPERANDS.index(operand), np.int64), places, sizes)

    def _per_lane(self, shape: list[Ints], bits: Ints) -> Ints:
        """Bytes that each lane holds of a tensor."""
        n, channels, height, width = (np.clip(side, 1, 1 << 20).astype(np.float64) for side in shape)
        size = n * np.ceil(channels / self._memory.lanes) * height * width * bits / 8
        return np.ceil(np.minimum(size, 1 << 40)).astype(np.int64)

    def _moves_tensors(self) -> npt.NDArray[np.bool_]:
        """Whether each command moves a tensor, whose channels lie in lanes of their own."""
        if "type" not in self._lane:
            return np.zeros(len(self._rows), np.bool_)
        tensors = [code for code, text in enumerate(self._profile.strings["type"]) if "tensor" in text.lower()]
        return np.isin(self._lane.take("type", self._rows), tensors)

    def _dtype_bits(self) -> Ints:
        if "dtype" not in self._lane:
            return np.full(len(self._rows), 8, np.int64)
        texts: Mapping[str, int] = DTYPE_BITS
        table = [*(texts.get(text, 8) for text in self._profile.strings["dtype"]), 8]
        return np.asarray(np.array(table, np.int64)[self._lane.take("dtype", self._rows)], dtype=np.int64)

    def _either(self, name: str, other: str) -> str:
        return name if name in self._names else other

    def _field(self, name: str, absent: int = 0) -> Ints:
        if name not in self._names:
            return np.full(len(self._rows), absent, np.int64)
        return self._registers.field(self._operation, name, self._rows)


def _looked_up(table: tuple[int, ...], codes: Ints) -> Ints:
    values: Any = np.array([*table, 8], np.int64)
    return np.asarray(values[np.where((codes >= 0) & (codes < len(table)), codes, len(table))], dtype=np.int64)
