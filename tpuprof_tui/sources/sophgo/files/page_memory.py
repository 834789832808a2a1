"""Local memory data of the web page: accesses of decoded commands, by lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.export.web.lanes import ChosenLane, drawing_order
from tpuprof_tui.formats.web_codec import Chunk, Ints
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import RegisterFields, Rows, row_numbers
from tpuprof_tui.model.uniques import uniques

from ..read.arrays import map_texts
from .fields import DATA_TYPES

#: Most accesses to local memory in a page, over all cores.
MOST_ACCESSES: Final = 1_500_000


def memory_record(
    profile: Profile, lanes: list[ChosenLane], row_counts: list[int], write: Callable[[Chunk], int]
) -> dict[str, Any] | None:
    """Accesses to local memory by lane; None where no command is decoded.

    ``row_counts``: number of rows of each lane in the page; ``write`` writes a chunk and returns its number.
    """
    memory = LocalMemory.of(profile)
    unit_of = profile.unit_of
    decoded = [(number, each) for number, each in enumerate(lanes) if each.lane.registers and unit_of(each.lane) >= 0]
    if memory is None or not decoded:
        return None
    limit = MOST_ACCESSES // len(decoded)
    records = []
    left_out = 0
    for number, each in decoded:
        chunk, cut = _accesses(profile, each, row_counts[number], memory, limit)
        left_out += cut is not None
        if chunk.count:
            records.append({"lane": number, "chunk": write(chunk), "until": cut})
    if not records:
        return None
    return {
        "lane_bytes": memory.lane_bytes,
        "bank_bytes": memory.bank_bytes,
        "operands": OPERANDS,
        "writes": WRITES,
        "lanes": records,
        "cut": left_out,
    }


def _accesses(
    profile: Profile, chosen: ChosenLane, row_count: int, memory: LocalMemory, limit: int
) -> tuple[Chunk, int | None]:
    """Accesses of a lane by row, and the time (ns) from which they are left out; None if none are."""
    parts = [np.zeros((4, 0), np.int64)]
    count, done = 0, 0
    cut: int | None = None
    for rows, length in chosen.parts(row_count):
        found = accesses(profile, chosen.lane, rows, memory)
        found[0] += done
        parts.append(found)
        count += found.shape[1]
        done += length
        if count >= limit and done < row_count:
            cut = int(chosen.lane.take("start", chosen.rows)[done])
            break
    columns = np.concatenate(parts, axis=1)
    chunk = Chunk(columns.shape[1])
    order, _ = drawing_order(chosen, row_count)
    position = np.arange(row_count)
    position[order] = np.arange(row_count)
    columns[0] = position[columns[0]]
    for name, values in zip(("row", "operand", "address", "size"), columns, strict=True):
        chunk.add(name, [values], ascending=name == "row")
    return chunk, cut


# Accesses of decoded commands to local memory: address, size and time.
#
# Every lane of the processor has its own share of local memory, all with the same layout; addresses are those within
# a share. Sizes per lane follow from the shapes in the registers: channels are distributed over the lanes. Where
# registers contain no shape of an operand, that of the result is assumed; moves other than those of tensors are
# assumed to use all lanes alike. Such sizes are estimates, and the page says so.

#: Bits of an element, by precision code and by name (capture 6, metrics 4).
ELEMENT_BITS: Final = (8, 16, 32, 16, 32, 16, 4, 8, 20, 32)
DTYPE_BITS: Final = dict(zip(DATA_TYPES, ELEMENT_BITS, strict=True))
#: Operands in local memory by code; results are written, operands read.
OPERANDS: Final = ("res0", "res1", "opd0", "opd1", "opd2", "opd3", "dst", "src")
WRITES: Final = (True, True, False, False, False, False, True, False)
#: Operands that every command of the engine has, so that address 0 is an address and not a missing operand.
_ALWAYS: Final = ("res0", "opd0")
LOCAL: Final = "LMEM"


class LocalMemory(Struct, frozen=True):
    """Geometry of local memory."""

    lane_bytes: int  #: Bytes of one lane's share; a power of two
    bank_bytes: int  #: Bytes of one bank of a share
    lanes: int  #: Number of lanes

    @staticmethod
    def of(profile: Profile) -> LocalMemory | None:
        """Local memory of a profile's chip; None if its parameters are missing or invalid."""
        values = dict(profile.device.parameters)
        labels = ("Tpu Lmem Addr Width(bits)", "Tpu Bank Addr Width(bits)", "NPU Num")
        try:
            lane_bits, bank_bits, lanes = (int(values[label]) for label in labels)
        except (KeyError, ValueError):
            return None
        if not (0 < bank_bits <= lane_bits <= 32 and lanes > 0):
            return None
        return LocalMemory(1 << lane_bits, 1 << bank_bits, lanes)


#: What one operand of some commands accesses: its name, a mask of those that do, addresses, and bytes in each lane.
_Operand = tuple[str, npt.NDArray[np.bool_], Ints, Ints]


def accesses(profile: Profile, lane: Lane, rows: Rows, memory: LocalMemory) -> Ints:
    """Accesses of some rows of a lane, int64 (4, accesses), by row; empty where its commands are not decoded.

    Index of the command among the requested rows, index into ``OPERANDS``, address in a lane's share, and bytes per
    lane, at least 1.
    """
    registers, numbers = lane.registers, row_numbers(rows)
    parts = [np.zeros((4, 0), np.int64)]
    if registers is None:
        return parts[0]
    operations = registers.operations(numbers)
    for operation in uniques(operations[operations >= 0]).tolist():
        indices = np.flatnonzero(operations == operation)
        names = frozenset(registers.field_names(operation))
        command = _Commands(profile, lane, memory, registers, operation, numbers[indices], names)
        for operand, used, address, size in command.tiu() if lane.kind == "TIU" else command.transfers():
            chosen = np.flatnonzero(used)
            addresses = address[chosen] & (memory.lane_bytes - 1)
            sizes = np.clip(size[chosen], 1, memory.lane_bytes - addresses)
            codes = np.full(len(chosen), OPERANDS.index(operand))
            parts.append(np.stack([indices[chosen], codes, addresses, sizes]).astype(np.int64, copy=False))
    found = np.concatenate(parts, axis=1)
    return found[:, np.lexsort((found[1], found[0]))]


class _Commands(Struct):
    profile: Profile
    lane: Lane
    memory: LocalMemory
    registers: RegisterFields
    operation: int  #: That of all of them
    rows: Ints
    names: frozenset[str]  #: Names of their registers

    def tiu(self) -> Iterator[_Operand]:
        """Results and operands that have an address and are not constants."""
        for operand in OPERANDS[:6]:
            if f"{operand}_addr" not in self.names:
                continue
            address = self._field(f"{operand}_addr")
            used = np.ones(len(address), np.bool_) if operand in _ALWAYS else address != 0
            for constant in (f"opt_{operand}_const", f"{operand}_const"):
                used &= self._field(constant) == 0
            formats = self._field(self._first_present(f"opt_{operand}_prec", "opt_res0_prec")).astype(np.int64)
            known = (formats >= 0) & (formats < len(ELEMENT_BITS))
            bits = np.array([*ELEMENT_BITS, 8], np.int64)[np.where(known, formats, len(ELEMENT_BITS))]
            shape = [self._field(self._first_present(f"{operand}_{side}", f"res0_{side}"), 1) for side in "nchw"]
            yield operand, used, address, self._per_lane(shape, bits)

    def transfers(self) -> Iterator[_Operand]:
        """Sides of transfers that are in local memory."""
        for operand, memory_key, address_key in (("dst", "to_memory", "dst_addr"), ("src", "from_memory", "src_addr")):
            if memory_key not in self.lane or address_key not in self.lane:
                continue
            used = self._map_texts(memory_key, LOCAL.__eq__)
            address = self.lane.take(address_key, self.rows)
            names = [f"{operand}_{side}size" for side in "nchw"]
            sizes = np.maximum(self.lane.take("bytes", self.rows), 0)
            spread = -(-sizes // self.memory.lanes)
            if all(name in self.names for name in names):
                bits = self._map_texts("dtype", lambda text: DTYPE_BITS.get(text, 8), 8)
                shaped = self._per_lane([self._field(name) for name in names], bits)
                # each channel of a tensor is in one lane; other moves are spread over all lanes regardless of shape
                tensors = self._map_texts("type", lambda text: "tensor" in text.lower())
                spread = np.where(tensors & (shaped <= self.memory.lane_bytes), shaped, spread)
            yield operand, used & (address >= 0), address, spread

    def _per_lane(self, shape: list[Ints], bits: Ints) -> Ints:
        """Bytes of a tensor in each lane."""
        n, channels, height, width = (np.clip(side, 1, 1 << 20).astype(np.float64) for side in shape)
        size = n * np.ceil(channels / self.memory.lanes) * height * width * bits / 8
        return np.ceil(np.minimum(size, 1 << 40)).astype(np.int64)

    def _map_texts(self, key: str, function: Callable[[str], Any], missing: Any = False) -> npt.NDArray[Any]:
        return map_texts(self.profile, self.lane, key, self.rows, function, missing)

    def _first_present(self, name: str, other: str) -> str:
        return name if name in self.names else other

    def _field(self, name: str, absent: int = 0) -> Ints:
        if name not in self.names:
            return np.full(len(self.rows), absent, np.int64)
        return self.registers.field(self.operation, name, self.rows)
