"""Names of type and function codes of condensed commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, convert

from .layout import ChipDataError

FUNCTION_SHIFT = 5
SOURCE_SHIFT = 10
DESTINATION_SHIFT = 12
_CODE_MASK = 0x1F
_MEMORY_MASK = 0x3

_LOADING_ENDINGS = ("_ld", "_ldt", "_ldbc", "_mld")
_STORING_ENDINGS = ("_st", "_stt", "_mst")


class NameTable(Struct, frozen=True, eq=False):
    """Names of one engine family's condensed commands, by key: type | function << 5 | memories << 10, 12.

    Attributes:
        types: (Type name, names by function code) by type code.
        unknown_type: Pattern for a type outside the table; ``{type}`` is replaced by the code.
        unknown_name: Pattern for a function outside it; also ``{type_name}`` and ``{function}``.
        directed: Whether keys contain memories, on which names may depend.
        variants: Whether the function takes all bits above the type (CV84X6 generator indices).
        moves: Suffix of a plain move's name by direction; none for other directions.
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
        """Function Name of type and function code; ``direction`` determines the suffix of plain moves."""
        entry = self.types.get(type_code)
        name = entry[1].get(function) if entry else None
        if name is not None:
            return name.replace("{move}", self.moves.get(direction, ""))
        text = self.unknown_name.replace("{type_name}", self.type_text(type_code))
        return text.replace("{type}", str(type_code)).replace("{function}", str(function))

    def texts_of(self, key: int) -> tuple[str, str]:
        """Function Type and Function Name of a key."""
        type_code, rest = key & _CODE_MASK, key >> FUNCTION_SHIFT
        direction = ""
        if self.directed:
            sides = (self.memories[key >> shift & _MEMORY_MASK] for shift in (SOURCE_SHIFT, DESTINATION_SHIFT))
            direction = "->".join(sides)
        return self.type_text(type_code), self.name_text(
            type_code, rest if self.variants else rest & _CODE_MASK, direction
        )


def variant_direction(name: str) -> tuple[int, int] | None:
    """Source and destination memory codes that a generator variant's name implies; None when it implies none."""
    if name.endswith(_LOADING_ENDINGS):
        return 0, 2
    if name.endswith(_STORING_ENDINGS):
        return 2, 0
    return None


def name_table(
    data: Mapping[str, Any], memories: tuple[str, ...], moves: Mapping[str, str], *, directed: bool, variants: bool
) -> NameTable:
    """Validated table from a data file's entry.

    Raises:
        ChipDataError: A code does not fit its field, or a pattern is missing.
    """
    texts = {"memories": memories, "moves": moves}
    table = convert({**data, **texts, "directed": directed, "variants": variants}, NameTable, str_keys=True)
    widest = (1 << 16) - 1 if variants else _CODE_MASK
    if any(not 0 <= code <= _CODE_MASK for code in table.types):
        raise ChipDataError("a type code has more than five bits")
    if any(not 0 <= function <= widest for _, functions in table.types.values() for function in functions):
        raise ChipDataError("a function code does not fit")
    return table
