"""Register layouts of the chips (``layouts/*.json``) and how a command is packed."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from .chips import Chip
from .ops import Op

Values = dict[str, int]


@lru_cache
def layouts(name: str) -> dict[str, Any]:
    """Register layouts of a chip: length in bits, and first bit and width of each field."""
    path = Path(__file__).parent / "layouts" / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def encodable(chip: Chip, op: Op) -> bool:
    """Whether the chip has registers for the operation."""
    return op.layout in layouts(chip.layouts)


def pack(layout: dict[str, Any], values: Values) -> bytes:
    """A command from its field values; fields not given are 0.

    Values of fields the chip's layout lacks are dropped, values too wide are cut.
    """
    word = 0
    for field, value in values.items():
        place = layout["fields"].get(field)
        if place is not None:
            first, width = place
            word |= (value & ((1 << width) - 1)) << first
    return word.to_bytes(layout["bits"] // 8, "little")
