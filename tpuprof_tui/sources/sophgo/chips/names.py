"""What type and function codes of condensed commands are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from .layout import ChipDataError

FUNCTION_SHIFT = 5
SOURCE_SHIFT = 10
DESTINATION_SHIFT = 12
_CODE_MASK = 0x1F
_MEMORY_MASK = 0x3

_LOADING_ENDINGS = ("_ld", "_ldt", "_ldbc", "_mld")
_STORING_ENDINGS = ("_st", "_stt", "_mst")


def packed_keys(
    types: NDArray[np.integer[Any]],
    functions: NDArray[np.integer[Any]],
    sources: NDArray[np.integer[Any]] | None = None,
    destinations: NDArray[np.integer[Any]] | None = None,
) -> NDArray[np.int64]:
    """Keys of a `NameTable`: type | function << 5, for transfers also source << 10 | destination << 12.

    All arrays have one shape. Types and functions count modulo 32. Of the memories the four node codes fit; other
    ones (the L2 of CV84X6 addresses) count as L2M, which no name tells apart.
    """
    keys = types.astype(np.int64) & _CODE_MASK
    keys |= (functions.astype(np.int64) & _CODE_MASK) << FUNCTION_SHIFT
    if sources is not None:
        keys |= _node_memories(sources) << SOURCE_SHIFT
    if destinations is not None:
        keys |= _node_memories(destinations) << DESTINATION_SHIFT
    return keys


def _node_memories(codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    wide = codes.astype(np.int64)
    return np.where((wide < 0) | (wide > _MEMORY_MASK), 1, wide)


class NameTable(Struct, frozen=True, eq=False):
    """Names of one engine family's condensed commands.

    Attributes:
        types: Type name and names by function code, by type code.
        unknown_type: Pattern for a type outside the table; ``{type}`` stands for the code.
        unknown_name: Pattern for a function outside it; also ``{type_name}`` and ``{function}``.
        directed: Whether keys carry memories and names may depend on them.
        variants: Whether the function takes all bits above the type (CV84X6 generator indices).
        memories: Memory names by code.
        moves: Ending of a plain move's name by direction; none for other directions.
    """

    types: Mapping[int, tuple[str, Mapping[int, str]]]
    unknown_type: str
    unknown_name: str
    directed: bool
    variants: bool
    memories: tuple[str, ...]
    moves: Mapping[str, str]

    def type_text(self, type_code: int) -> str:
        """Function Type of a type code."""
        entry = self.types.get(type_code)
        return entry[0] if entry else self.unknown_type.replace("{type}", str(type_code))

    def name_text(self, type_code: int, function: int, direction: str = "") -> str:
        """Function Name of type and function code; ``direction`` decides the ending of plain moves."""
        entry = self.types.get(type_code)
        name = entry[1].get(function) if entry else None
        if name is not None:
            return name.replace("{move}", self.moves.get(direction, ""))
        text = self.unknown_name.replace("{type_name}", self.type_text(type_code))
        return text.replace("{type}", str(type_code)).replace("{function}", str(function))

    def codes(self, key: int) -> tuple[int, int, str]:
        """Type code, function (or variant) code and direction text of a packed key; no direction is empty."""
        type_code = key & _CODE_MASK
        if self.variants:
            return type_code, key >> FUNCTION_SHIFT, ""
        function = (key >> FUNCTION_SHIFT) & _CODE_MASK
        if not self.directed:
            return type_code, function, ""
        source = (key >> SOURCE_SHIFT) & _MEMORY_MASK
        destination = (key >> DESTINATION_SHIFT) & _MEMORY_MASK
        return type_code, function, f"{self.memories[source]}->{self.memories[destination]}"

    def texts_of(self, key: int) -> tuple[str, str]:
        """Function Type and Function Name of one packed key."""
        type_code, function, direction = self.codes(key)
        return self.type_text(type_code), self.name_text(type_code, function, direction)

    def texts(self, keys: NDArray[np.integer[Any]] | Sequence[int]) -> tuple[list[str], list[str]]:
        """Function Types and Function Names, one per key: pass the unique keys that occur, not all rows."""
        pairs = [self.texts_of(int(key)) for key in keys]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def variant_direction(name: str) -> tuple[int, int] | None:
    """Source and destination memory that a generator variant's name implies; None when it implies none."""
    if name.endswith(_LOADING_ENDINGS):
        return 0, 2
    if name.endswith(_STORING_ENDINGS):
        return 2, 0
    return None


def name_table(
    data: Mapping[str, Any], memories: tuple[str, ...], moves: Mapping[str, str], *, directed: bool, variants: bool
) -> NameTable:
    """The checked table of a data file's entry.

    Raises:
        ChipDataError: a code does not fit its field, or a pattern is missing.
    """
    types = {
        int(code): (str(name), {int(function): str(text) for function, text in functions.items()})
        for code, (name, functions) in data["types"].items()
    }
    widest = (1 << 16) - 1 if variants else _CODE_MASK
    if any(not 0 <= code <= _CODE_MASK for code in types):
        raise ChipDataError("a type code has more than five bits")
    if any(not 0 <= function <= widest for _, functions in types.values() for function in functions):
        raise ChipDataError("a function code does not fit")
    return NameTable(types, data["unknown_type"], data["unknown_name"], directed, variants, memories, moves)
