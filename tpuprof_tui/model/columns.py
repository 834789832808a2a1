"""What one column of events is called, measured in, and looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

#: Value of an integer column where nothing is known. Text columns use code -1, float columns NaN.
INT_MISSING: Final = int(np.iinfo(np.int64).min)

#: ``int`` and ``hex`` hold int64, ``float`` and ``percent`` float64, ``text`` int32 codes into ``Profile.strings``.
Kind = Literal["int", "hex", "float", "percent", "text"]


@dataclass(frozen=True)
class Column:
    """One column of the schema; header, cells, files and help are derived from it.

    Attributes:
        key: Stable name in code, filters and settings.
        title: Header on the screen.
        file_name: Name in files, to the letter that of the published converter; empty: not written.
        kind: How values are held and shown.
        unit: Unit of the values ("ns", "B", "GB/s", "cycles", ""), shown beside them.
        help: One sentence for the detail pane and the help screen.
        width: Preferred width of the column on the screen, in cells.
        engines: Engines whose instructions have it; empty: all.
        placeholder: What files get where the value is missing and the published converter writes something.
        needs: What a capture must hold for the value to be known ("mode 1", "mode 2"), empty: always known.
        aliases: Short names accepted in filters.
        decimals: Digits after the point of float columns.
        shown: Whether the table shows it before the user chooses.
        group: Heading in the detail pane.
        source: Where the formula comes from.
    """

    key: str
    title: str
    file_name: str = ""
    kind: Kind = "int"
    unit: str = ""
    help: str = ""
    width: int = 10
    engines: tuple[str, ...] = ()
    placeholder: str | int | float | None = None
    needs: str = ""
    aliases: tuple[str, ...] = ()
    decimals: int = 2
    shown: bool = False
    group: str = "instruction"
    source: str = ""

    @property
    def align(self) -> Literal["left", "right"]:
        """Text reads from the left, numbers line up on the right."""
        return "left" if self.kind == "text" else "right"

    def applies_to(self, engine: str) -> bool:
        """Whether instructions of ``engine`` can have this column."""
        return not self.engines or engine in self.engines


def is_missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where a column holds nothing.

    Args:
        values: Any column: float (NaN is missing), int64 (``INT_MISSING``), or smaller ints (codes, below 0).

    Returns:
        Boolean array of the same shape.
    """
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values), dtype=np.bool_)
    if values.dtype == np.int64:
        return np.asarray(values == INT_MISSING, dtype=np.bool_)
    return np.asarray(values < 0, dtype=np.bool_)
