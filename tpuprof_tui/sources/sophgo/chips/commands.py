"""Register layouts of commands: how the first bytes select the operation, and the positions of its fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct, convert
from msgspec.structs import replace
from numpy.typing import NDArray

from .bit_layout import CHIP_FILES, BitField, ChipDataError, parse_fields
from .chip import Chip, family_of

HEADER_BYTES = 8
"""A command's operation is selected from this many bytes."""

UNIT_BYTES = 16
"""On most chips every command is a multiple of this many bytes long."""


class Operation(Struct, frozen=True, eq=False, dict=True):
    """One kind of command."""

    name: str  #: Name of the operation, such as ``sMM2``
    opcode: int
    short: bool | None  #: Value of the short flag; None when either
    functions: Mapping[int, str]  #: Function name by code
    function_width: int  #: Bits of the function code in this operation, at most those of the header
    size: int  #: Bytes of a command; without a layout, the size that its siblings have
    layout_lines: tuple[str, ...]  #: Layout as text; empty when it is not known
    assumed: bool  #: Whether the layout was taken from a sibling chip with the same header
    siblings: tuple[Operation, ...] = ()  #: Operations of the engine that have a layout; empty if this one has its own

    @property
    def known(self) -> bool:
        """Whether fields of these commands are known: all of them, or those that its siblings share."""
        return bool(self.layout_lines or self.siblings)

    @property
    def partial(self) -> bool:
        """Whether the only known fields are those that all siblings have at the same bits under the same name."""
        return not self.layout_lines

    @property
    def needed(self) -> int:
        """Bytes that contain all known fields, a multiple of `UNIT_BYTES`."""
        if not self.partial:
            return self.size
        bits = max((field.first + field.width for field in self.fields), default=0)
        return -(-bits // (UNIT_BYTES * 8)) * UNIT_BYTES

    @cached_property
    def fields(self) -> tuple[BitField, ...]:
        """All known fields in order; reserved ones may repeat a name.

        Raises:
            ChipDataError: The layout does not cover the command.
        """
        if self.partial:
            return shared_fields(self.siblings)
        fields = parse_fields(self.layout_lines)
        bits = sum(field.width for field in fields)
        if bits != self.size * 8:
            raise ChipDataError(f"operation {self.name}: {bits} bits in {self.size} bytes")
        return fields

    @cached_property
    def by_name(self) -> Mapping[str, BitField]:
        """Fields by name; of repeated (reserved) names the last one."""
        return {field.name: field for field in self.fields}

    def function_text(self, code: int) -> str:
        """Name of a function code; ``function_N`` for codes without one."""
        return self.functions.get(code, f"function_{code}")


class StreamEnd(Struct, frozen=True):
    """Condition for the end of a command stream.

    A system command ends it when only a short tail of zeros follows; one with the function ``function``, if there is
    one, also without (if ``field`` is given: when that field has ``value``).
    """

    operation: int  #: Index of the system operation
    function: int | None = None  #: Function that ends a stream by itself; None when none does
    field: str | None = None
    value: int = 0
    #: Function of a last system command that leaves no record; None when there is none.
    drop_final_function: int | None = None


class FieldPosition(Struct, frozen=True):
    """Position of a field in the commands of each operation: arrays by operation index, the last entry for index -1."""

    byte: NDArray[np.int64]  #: First of the eight bytes that contain the field's lowest bits
    shift: NDArray[np.uint64]  #: Bits to shift those eight bytes right
    mask: NDArray[np.uint64]  #: Mask after shifting; 0 when the operation has no such field
    spill: NDArray[np.uint64]  #: Number of bits in a ninth byte
    wide: bool  #: Whether values may need all 64 bits


class CommandTable(Struct, frozen=True, eq=False, dict=True):
    """The operations of one engine family of a chip."""

    operations: tuple[Operation, ...]
    short_bit: int | None  #: Bit of the short flag in the header; None without one
    opcode_bit: int  #: First bit of the opcode; the function code follows it
    opcode_width: int
    function_width: int
    #: Operation index by selection key: short flag | opcode and function << 1; -1 for none.
    selection: NDArray[np.int16]
    #: Bytes required to decode, by operation index; 0 for the last entry (index -1) and for operations that cannot be
    #: decoded.
    sizes: NDArray[np.int64]
    steps: NDArray[np.int64]  #: Bytes to the next command; 0 where it is not known
    usual: NDArray[np.int64]  #: Like ``steps``, with the size of the engine's other operations where it is not known
    end: StreamEnd
    unit_bytes: int = UNIT_BYTES  #: Every command is a multiple of this many bytes long

    def selection_keys(self, headers: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Indices into ``selection`` of commands with the first eight bytes ``headers``."""
        mask = (1 << self.opcode_width + self.function_width) - 1
        codes = headers >> np.uint64(self.opcode_bit) & np.uint64(mask)
        keys: NDArray[np.int64] = codes.astype(np.int64) << 1
        if self.short_bit is not None:
            keys |= (headers >> np.uint64(self.short_bit) & np.uint64(1)).astype(np.int64)
        return keys

    @cached_property
    def function_masks(self) -> NDArray[np.int64]:
        """Bits of the function code of each operation."""
        return np.array([(1 << operation.function_width) - 1 for operation in self.operations], np.int64)

    @cached_property
    def _positions(self) -> dict[str, FieldPosition | None]:
        """Cache of `position`, by field name."""
        return {}

    def position(self, name: str) -> FieldPosition | None:
        """Position of the field ``name`` in each operation; None when no operation has it."""
        if name not in self._positions:
            found = [operation.by_name.get(name) if operation.known else None for operation in self.operations]
            self._positions[name] = self._field_position(found) if any(found) else None
        return self._positions[name]

    def _field_position(self, found: list[BitField | None]) -> FieldPosition:
        byte, shift, mask, spill = np.zeros((4, len(found) + 1), np.uint64)
        for index, field in enumerate(found):
            if field is not None:
                # the eight bytes that are read stay inside the command
                first = min(field.first // 8, self.operations[index].needed - 8)
                bits = field.first - 8 * first
                byte[index], shift[index], mask[index] = first, bits, field.mask
                spill[index] = max(0, bits + field.width - 64)
        wide = any(field is not None and field.width > 63 for field in found)
        return FieldPosition(byte.astype(np.int64), shift, mask, spill, wide)


def shared_fields(operations: Sequence[Operation]) -> tuple[BitField, ...]:
    """Fields that all operations have at the same bits under the same name, without reserved ones."""
    shared = set.intersection(*(set(each.fields) for each in operations)) if operations else set()
    own = operations[0].fields if operations else ()
    return tuple(field for field in own if field in shared and not field.name.lower().startswith("reserved"))


def command_table(chip: Chip, engine: str) -> CommandTable:
    """Operations of an engine (or family) of ``chip``, loaded on the first call.

    Raises:
        KeyError: The chip has no commands of that engine.
    """
    return CHIP_FILES.table(_tables, chip.name)[family_of(engine)]


def has_commands(chip: Chip, engine: str) -> bool:
    """Whether command layouts of that engine are known."""
    return family_of(engine) in CHIP_FILES.table(_tables, chip.name)


def _tables(chip_name: str) -> Mapping[str, CommandTable]:
    name = f"operations/{chip_name.lower()}.json"
    families = CHIP_FILES.file(name)["families"] if (CHIP_FILES.folder / name).exists() else {}
    return {family: table_from_data(chip_name, family, data) for family, data in families.items()}


def table_from_data(chip_name: str, family: str, data: Mapping[str, Any]) -> CommandTable:
    """Validated command table from a data file's entry.

    Raises:
        ChipDataError: Two operations have the same header, or a size or code does not fit.
        KeyError: A value is missing.
    """
    header, end, unit = data["header"], data["end"], data.get("unit_bytes", UNIT_BYTES)
    made = [_operation(item, header["function_width"], unit) for item in data["operations"]]
    siblings = tuple(operation for operation in made if operation.layout_lines and not operation.assumed)
    operations = tuple(replace(each, siblings=siblings) if each.partial else each for each in made)
    names = [operation.name for operation in operations]
    if len(set(names)) != len(names) or end["operation"] not in names:
        raise ChipDataError(f"{chip_name} {family}: operation names repeat or the system operation is missing")
    return CommandTable(
        operations=operations,
        **header,
        selection=_selection(operations, header, f"{chip_name} {family}"),
        sizes=np.array([*(operation.needed for operation in operations), 0], np.int64),
        steps=np.array([*(0 if operation.partial else operation.size for operation in operations), 0], np.int64),
        usual=np.array([*(operation.size for operation in operations), 0], np.int64),
        end=convert({**end, "operation": names.index(end["operation"])}, StreamEnd),
        unit_bytes=unit,
    )


def _operation(item: Mapping[str, Any], function_width: int, unit: int) -> Operation:
    layouts = CHIP_FILES.file("common/layouts.json")
    key = item["layout"]
    size, *lines = layouts["layouts"][key] if key else (item["bytes"],)
    if size % unit or size <= 0:
        raise ChipDataError(f"operation {item['name']}: {size} bytes are no multiple of {unit}")
    return Operation(
        name=item["name"],
        opcode=item["opcode"],
        short=item["short"],
        functions={int(code): name for code, name in layouts["functions"][item["functions"]].items()},
        function_width=item.get("function_width", function_width),
        size=size,
        layout_lines=tuple(lines),
        assumed=item.get("assumed", False),
    )


def _selection(operations: Sequence[Operation], header: Mapping[str, Any], where: str) -> NDArray[np.int16]:
    """Operation index by selection key.

    An operation with a narrower function code gets the keys that no other operation has, for any bits above that code.
    """
    opcode_width, function_width = header["opcode_width"], header["function_width"]
    table = np.full(2 << opcode_width + function_width, -1, np.int16)
    for narrow in (False, True):
        for index, operation in enumerate(operations):
            if (operation.function_width < function_width) != narrow:
                continue
            if not 0 <= operation.opcode < 1 << opcode_width:
                raise ChipDataError(f"{where}: the opcode of {operation.name} does not fit")
            above = range(1 << function_width - operation.function_width)
            for code in (code | rest << operation.function_width for code in operation.functions for rest in above):
                for short in (0, 1) if narrow or operation.short is None else (int(operation.short),):
                    key = short | (operation.opcode | code << opcode_width) << 1
                    if key >= len(table) or (table[key] >= 0 and not narrow):
                        raise ChipDataError(f"{where}: {operation.name} does not fit or repeats a header")
                    if table[key] < 0:
                        table[key] = index
    return table
