"""Kinds of instructions: every combination of texts that occurs, numbered.

An instruction in the page holds one number for its operation, type, role, kernel function, direction, data type and
mode. Colours, filters and searches are worked out once per kind instead of once per instruction.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows

Codes = npt.NDArray[np.int64]

#: What makes a kind: text columns, and the role.
TEXT_KEYS: Final = ("name", "type", "kernel", "direction", "dtype", "mode")
KEYS: Final = (*TEXT_KEYS, "role")
#: Products of numbers of values up to which a table of all products is cheaper than sorting.
_TABLE_LIMIT: Final = 1 << 22


class Kinds:
    """The kinds met so far."""

    def __init__(self, profile: Profile) -> None:
        self._strings = {key: profile.strings[key] for key in TEXT_KEYS if key in profile.strings}
        self._numbers: dict[tuple[int, ...], int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def codes(self, lane: Lane, rows: Rows, count: int) -> Codes:
        """The kind of each of ``count`` rows; new kinds are added."""
        columns = [(place, self._values(lane, key, rows)) for place, key in enumerate(KEYS) if key in lane]
        combined = np.zeros(count, np.int64)
        size = 1
        for _, values in columns:
            high = int(values.max(initial=-1)) + 2
            combined, size = _compact(combined * high + (values + 1), size * high)
        first = np.zeros(size, np.int64)
        first[combined] = np.arange(count)
        numbers = np.zeros(size, np.int64)
        for code, row in enumerate(first.tolist() if count else []):
            kind = [-1] * len(KEYS)
            for place, values in columns:
                kind[place] = int(values[row])
            numbers[code] = self._numbers.setdefault(tuple(kind), len(self._numbers))
        return np.asarray(numbers[combined], dtype=np.int64)

    def add_kernel(self, code: int) -> int:
        """The kind that is a kernel function and nothing else."""
        kind = [-1] * len(KEYS)
        kind[KEYS.index("kernel")] = code
        return self._numbers.setdefault(tuple(kind), len(self._numbers))

    def tables(self) -> dict[str, Any]:
        """For the page: the texts by key, and the code of each kind by key."""
        texts = {key: [line_text(text) for text in strings] for key, strings in self._strings.items()}
        columns = zip(*self._numbers, strict=True) if self._numbers else [()] * len(KEYS)
        return {
            "strings": {key: texts.get(key, []) for key in TEXT_KEYS},
            "kinds": {key: list(codes) for key, codes in zip(KEYS, columns, strict=True)},
        }

    def _values(self, lane: Lane, key: str, rows: Rows) -> Codes:
        values = np.maximum(lane.take(key, rows).astype(np.int64), -1)
        # a code beyond its table has no text
        return values if key == "role" else np.where(values < len(self._strings.get(key, ())), values, -1)


def _compact(codes: Codes, size: int) -> tuple[Codes, int]:
    """Codes below ``size`` renumbered without gaps, and how many differ."""
    if size > _TABLE_LIMIT:
        distinct, compact = np.unique(codes, return_inverse=True)
        return compact.astype(np.int64), len(distinct)
    occurs = np.zeros(size, np.bool_)
    occurs[codes] = True
    numbers = np.cumsum(occurs) - 1
    return numbers[codes], int(occurs.sum())
