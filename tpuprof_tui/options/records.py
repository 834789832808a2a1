"""How many records a capture needs room for, from an earlier one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from .tables import Tables

#: Keys of ``global.profile`` that count the records of an engine: of a core, or of a port.
_COUNT = re.compile(r"(?:(?:core)?\d+_)?([a-z]+?)\d*_record", re.ASCII)
_CAPACITY = "max_record_num"
_MOST_DIGITS = 12


class Records(Struct, frozen=True):
    """The engine that wrote most records in a capture.

    Attributes:
        engine: Its name.
        count: Its records.
        size: How many a buffer held; 0: the capture does not say.
    """

    engine: str
    count: int
    size: int = 0

    @property
    def take(self) -> int:
        """Records to make room for: what was enough with a quarter to spare, else the next power of two that is."""
        spared = self.count + max(self.count // 4, 1)
        if spared <= self.size:
            return self.size
        needed = 2 * self.count if self.size and self.count >= self.size else spared
        return 1 << max(needed - 1, 1).bit_length()

    def said(self, tables: Tables) -> str:
        """The same in a sentence."""
        lost = self.size and self.count >= self.size
        key = "counted" if not self.size else "lost" if lost else "enough" if self.take == self.size else "more"
        return tables.say(f"records_{key}", engine=self.engine, count=self.count, size=self.size, take=self.take)


def most_records(settings: str) -> Records | None:
    """The engine with most records by the text of a ``global.profile``; None: it counts none."""
    counts: dict[str, int] = {}
    size = 0
    for line in settings.splitlines():
        key, _, digits = (part.strip() for part in line.partition("="))
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
            continue
        found = _COUNT.fullmatch(key)
        if key == _CAPACITY:
            size = int(digits)
        elif found:
            engine = found[1].upper()
            counts[engine] = max(counts.get(engine, 0), int(digits))
    return largest(counts, size)


def largest(counts: Mapping[str, int], size: int = 0) -> Records | None:
    """The engine with most records, of counts by engine; None: none wrote any."""
    engine = max(counts, key=lambda each: counts[each], default="")
    return Records(engine, counts[engine], size) if engine and counts[engine] else None
