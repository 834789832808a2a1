"""Numbers the distinct combinations (kinds) of text columns of events.

An event in the page holds one number for its operation, type, role, kernel function, direction, data type and mode, so
that colours, filters and searches are evaluated once per kind instead of once per event.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows
from tpuprof_tui.model.uniques import distinct_together

Codes = npt.NDArray[np.int64]

#: Columns that form a kind: text columns and the role.
TEXT_KEYS: Final = ("name", "type", "kernel", "direction", "dtype", "mode")
KEYS: Final = (*TEXT_KEYS, "role")


class Kinds:
    """Numbers kinds in order of first use."""

    def __init__(self, profile: Profile) -> None:
        self._strings = {key: profile.strings[key] for key in TEXT_KEYS if key in profile.strings}
        self._numbers: dict[tuple[int, ...], int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def codes(self, lane: Lane, rows: Rows, count: int) -> Codes:
        """Kind number of each of ``count`` rows, int64; adds new kinds."""
        columns = [(index, self._values(lane, key, rows)) for index, key in enumerate(KEYS) if key in lane]
        combined, size = distinct_together(np.zeros(count, np.int64), *(values for _, values in columns))
        first = np.zeros(size, np.int64)
        first[combined] = np.arange(count)
        numbers = np.zeros(size, np.int64)
        for code, row in enumerate(first.tolist() if count else []):
            kind = [-1] * len(KEYS)
            for index, values in columns:
                kind[index] = int(values[row])
            numbers[code] = self._numbers.setdefault(tuple(kind), len(self._numbers))
        return np.asarray(numbers[combined], dtype=np.int64)

    def add_kernel(self, code: int) -> int:
        """Number of the kind that consists of a kernel function (code) only; for launches."""
        kind = [-1] * len(KEYS)
        kind[KEYS.index("kernel")] = code
        return self._numbers.setdefault(tuple(kind), len(self._numbers))

    def tables(self) -> dict[str, Any]:
        """Data for the page: the texts by column key, and the text code of each kind by column key."""
        texts = {key: [line_text(text) for text in strings] for key, strings in self._strings.items()}
        columns = zip(*self._numbers, strict=True) if self._numbers else [()] * len(KEYS)
        return {
            "strings": {key: texts.get(key, []) for key in TEXT_KEYS},
            "kinds": {key: list(codes) for key, codes in zip(KEYS, columns, strict=True)},
        }

    def _values(self, lane: Lane, key: str, rows: Rows) -> Codes:
        values = np.maximum(lane.take(key, rows).astype(np.int64), -1)
        # codes beyond the table are missing
        return values if key == "role" else np.where(values < len(self._strings.get(key, ())), values, -1)
