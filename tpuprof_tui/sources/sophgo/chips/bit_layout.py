"""Bit layouts: gapless lists of named fields, written as text and read from columns of bytes.

A layout is written as ``name:width`` items joined by commas, lowest bit first; an item without a width has 32 bits.
Since items follow each other, a layout cannot have gaps or overlaps. All integers are little-endian and unsigned;
bit 0 is the least significant bit of byte 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Thing = TypeVar("Thing")


class ChipFiles:
    """JSON files of a folder and the tables made from them; both are read-only and cached."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, Mapping[str, Any]] = {}
        self._tables: dict[tuple[Hashable, ...], Any] = {}

    @property
    def read(self) -> frozenset[str]:
        """Names of the files that have been read."""
        return frozenset(self._files)

    def file(self, name: str) -> Mapping[str, Any]:
        """Content of a file."""
        if name not in self._files:
            data: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
            self._files.setdefault(name, MappingProxyType(data))
        return self._files[name]

    def table(self, make: Callable[[str], Thing], name: str) -> Thing:
        """Result of ``make(name)``, computed once."""
        key = (make, name)
        if key not in self._tables:
            self._tables.setdefault(key, make(name))
        found: Thing = self._tables[key]
        return found


#: Catalog of the process; its data is the same for all captures.
CHIP_FILES: Final = ChipFiles(Path(__file__).parent)


MAX_FIELD_BITS = 64
"""Widest field a column of integers can hold."""


class ChipDataError(ValueError):
    """A chip's data file is inconsistent; raised when loading, never because of a capture."""


class BitField(Struct, frozen=True):
    """A run of bits: ``first`` counts from bit 0 of the layout, ``width`` is 1 to 64."""

    name: str
    first: int
    width: int

    @property
    def mask(self) -> int:
        """All ones over the field's width."""
        return (1 << self.width) - 1

    def of(self, value: int) -> int:
        """Value of the field in one command or record, given as a little-endian integer."""
        return (value >> self.first) & self.mask


def parse_fields(text: str | Sequence[str]) -> tuple[BitField, ...]:
    """Fields of a layout written as text, or as lines of such text.

    Raises:
        ChipDataError: An item has no name or a width that is not 1 to 64.
    """
    lines = [text] if isinstance(text, str) else text
    fields: list[BitField] = []
    first = 0
    for line in lines:
        for item in line.split(","):
            name, _, digits = item.rpartition(":") if ":" in item else (item, "", "32")
            width = int(digits) if digits.isdigit() else 0
            if not name or not 1 <= width <= MAX_FIELD_BITS:
                raise ChipDataError(f"layout item {item!r} is not name:width")
            fields.append(BitField(name, first, width))
            first += width
    return tuple(fields)


class RecordLayout(Struct, frozen=True, eq=False, dict=True):
    """The layout of one fixed-size monitor record."""

    name: str  #: Key in the data file, such as ``dma_64``
    size: int  #: Bytes per record, a multiple of 4
    fields: tuple[BitField, ...]

    @cached_property
    def by_name(self) -> dict[str, BitField]:
        """Fields by their (unique) names."""
        return {field.name: field for field in self.fields}

    def words(self, payload: bytes | bytearray | memoryview | NDArray[np.uint8]) -> NDArray[np.uint32]:
        """View of the complete records of ``payload`` as ``(records, size // 4)`` words; a partial tail is left out."""
        count = len(payload) // self.size
        flat = np.frombuffer(payload, dtype="<u4", count=count * (self.size // 4))
        return flat.reshape(count, self.size // 4)

    def column(
        self, words: NDArray[np.uint32], name: str, rows: NDArray[Any] | slice = slice(None)
    ) -> NDArray[np.int64]:  # fmt: skip
        """Values of the field ``name`` for some records; reads only the words that contain it.

        Raises:
            KeyError: The layout has no such field.
        """
        field = self.by_name[name]
        word, shift = divmod(field.first, 32)
        values = words[:, word][rows].astype(np.int64)
        if shift + field.width > 32:
            values |= words[:, word + 1][rows].astype(np.int64) << 32
        return (values >> shift) & field.mask


def record_layout(name: str, text: str | Sequence[str]) -> RecordLayout:
    """Validated record layout from ``text``.

    Raises:
        ChipDataError: Names repeat, a field spans three words or has 64 bits, or the size differs from that in the
            name.
    """
    fields = parse_fields(text)
    bits = sum(field.width for field in fields)
    if len({field.name for field in fields}) != len(fields):
        raise ChipDataError(f"record {name}: a field name occurs twice")
    if any(field.first % 32 + field.width > 64 or field.width > 63 for field in fields):
        raise ChipDataError(f"record {name}: a field does not fit two words")
    if bits % 32 or name.split("_")[1] != str(bits // 8):
        raise ChipDataError(f"record {name}: {bits} bits are not the size its name tells")
    return RecordLayout(name, bits // 8, fields)
