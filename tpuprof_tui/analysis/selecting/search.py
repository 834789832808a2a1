"""Search over names: the matching events, in table order or by start."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from ..index.ordering import lane_rows
from .session import Ints, Session

Mask = npt.NDArray[np.bool_]

#: Text columns that are searched: function, kernel function, type.
SEARCHED: Final = ("name", "kernel", "type")


def pattern_of(text: str) -> re.Pattern[str]:
    """Compiles a search text: as a regular expression if valid, else literally; case-sensitive if it has capitals."""
    flags = 0 if any(letter.isupper() for letter in text) else re.IGNORECASE
    try:
        return re.compile(text, flags)
    except (re.error, RecursionError, OverflowError):
        return re.compile(re.escape(text), flags)


def matching(session: Session, text: str) -> Mask:
    """Mask by event number: whether one of its names matches; each distinct name is matched once. Empty: none."""
    pattern = pattern_of(text)
    profile = session.profile
    tables = {
        key: np.array([*(pattern.search(each) is not None for each in profile.strings[key]), False], np.bool_)
        for key in SEARCHED
        if text and key in profile.strings
    }
    mask = np.zeros(profile.event_count, np.bool_)
    for number, lane in enumerate(profile.lanes):
        part = mask[int(session.offsets[number]) : int(session.offsets[number + 1])]
        for key, table in tables.items():
            if key in lane and bool(table.any()):
                part |= table[lane[key]]
    return mask


class Hits(Struct, frozen=True, eq=False):
    """Matching events in the order of navigation."""

    text: str  #: The search text
    keys: Ints  #: int64, ascending: row in the table, or start, of each hit
    numbers: Ints  #: int64, event numbers; ascending where keys are equal

    def __len__(self) -> int:
        return len(self.keys)

    def index(self, key: int, number: int) -> int:
        """Index of the first hit at or after an event."""
        low = int(np.searchsorted(self.keys, key, side="left"))
        high = int(np.searchsorted(self.keys, key, side="right"))
        return low + int(np.searchsorted(self.numbers[low:high], number, side="left"))

    def stepped(self, key: int, number: int, steps: int) -> tuple[int, bool]:
        """Index of the hit ``steps`` from an event, and whether the search wrapped around; requires any hits."""
        index = self.index(key, number)
        on_hit = index < len(self) and int(self.numbers[index]) == number and int(self.keys[index]) == key
        wanted = index + steps - (steps > 0 and not on_hit)
        return wanted % len(self), not 0 <= wanted < len(self)


def hits_in_table(session: Session, text: str, order: Ints) -> Hits:
    """Hits in table order (``order``: event number of each row), keyed by row; none for an empty text."""
    return masked_in_table(matching(session, text), order, text)


def masked_in_table(mask: Mask, order: Ints, text: str = "") -> Hits:
    """The events of a mask (by number) in table order."""
    rows = np.flatnonzero(mask[order])
    return Hits(text, rows, order[rows])


def hits_in_time(session: Session, text: str, numbers: Ints) -> Hits:
    """Hits among events (ascending numbers), keyed and sorted by start; none for an empty text."""
    return masked_in_time(session, matching(session, text), numbers, text)


def masked_in_time(session: Session, mask: Mask, numbers: Ints, text: str = "") -> Hits:
    """The events of a mask (by number) that are among ``numbers`` (ascending), by start."""
    found = numbers[mask[numbers]]
    chosen = lane_rows(session.profile, session.offsets, found)
    keys = np.concatenate([np.zeros(0, np.int64), *(lane.take("start", rows) for lane, rows in chosen)])
    order = np.argsort(keys, kind="stable")
    return Hits(text, keys[order], found[order])
