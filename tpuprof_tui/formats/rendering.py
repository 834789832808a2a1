"""Renders rows of columns as text, slice by slice, with few Python objects per row.

Rows of a slice share a ``%`` template that is filled with a tuple per row. Constant values are part of the template;
adjacent columns with few distinct values (texts, codes) become one string per distinct combination; other numbers are
formatted by the template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import is_missing
from tpuprof_tui.model.lane import Rows
from tpuprof_tui.model.uniques import uniques

Array = npt.NDArray[Any]
#: Largest magnitude up to which integers are exact in spreadsheets and browsers.
EXACT: Final = 2**53
#: Maximum number of values of a combined code (product over its columns), so that it fits into int64.
_CODE_LIMIT: Final = 1 << 62


class Field(Struct, frozen=True):
    """A field of the rows of a lane."""

    #: Returns the values of some rows: integers, float64, or codes into ``texts``; floats that are not finite are
    #: missing.
    values: Callable[[Rows], Array]
    lead: str  #: Text before a value, such as a name and a colon, or a comma
    absent: str  #: Text for missing values, in place of ``lead`` and value
    texts: Sequence[str] | None = None  #: Texts by code; None for numbers
    spell: Callable[[str], str] = str  #: Converts a text to its written form
    form: str = "%s"  #: ``%`` format of numbers
    after: str = ""  #: Text after a number
    decimals: int | None = None  #: Decimal places that floats are rounded to; None: no rounding
    span: int = 0  #: Integers are combined with adjacent fields if their range in a slice is smaller than this
    inexact: str = ""  #: Format of integers beyond ``EXACT``, including lead and end; empty: as all numbers

    def text(self, value: Any) -> str:
        """Text of a value with ``lead`` and ``after``; ``absent`` for codes beyond the table."""
        if self.texts is not None:
            return self.lead + self.spell(self.texts[value]) if value < len(self.texts) else self.absent
        if self.inexact and abs(value) > EXACT:
            return str(self.inexact % value)
        return f"{self.lead}{self.form % value}{self.after}"


class _Codes(Struct, frozen=True):
    """Values as codes from 0 (missing) to ``size`` - 1; ``text`` returns the text of a code."""

    codes: npt.NDArray[np.int64]
    size: int
    text: Callable[[int], str]


def rendered_rows(opening: str, fields: Sequence[Field | str], closing: str, rows: Rows, count: int) -> list[str]:
    """Renders the rows of one slice.

    Args:
        opening, closing: Text at the start and end of each row.
        fields: Fields; a string is constant text in all rows.
        rows: The rows.
        count: Number of rows.
    """
    template = [_verbatim(opening)]
    lists: list[Iterable[Any]] = []
    run: list[_Codes] = []

    def end_run() -> None:
        if run:
            template.append("%s")
            lists.append(_combined(run))
            run.clear()

    for field in fields:
        part = field if isinstance(field, str) else _field_part(field, field.values(rows))
        if isinstance(part, _Codes):
            if prod(codes.size for codes in (*run, part)) > _CODE_LIMIT:
                end_run()
            run.append(part)
            continue
        end_run()
        if isinstance(part, str):
            template.append(_verbatim(part))
        else:
            template.append(part[0])
            lists.append(part[1])
    end_run()
    template.append(_verbatim(closing))
    row = "".join(template)
    if not lists:
        return [row % ()] * count
    return list(map(row.__mod__, zip(*lists, strict=True)))


def _field_part(field: Field, values: Array) -> str | _Codes | tuple[str, list[Any]]:
    """Converts a field of a slice to constant text, codes to combine, or a template with one value per row."""
    floats = values.dtype.kind == "f"
    missing = ~np.isfinite(values) if floats else is_missing(values)
    if missing.all():
        return field.absent if len(values) else ""
    if floats and field.decimals is not None:
        values = np.round(values, field.decimals)
    gaps = bool(missing.any())
    known = values[~missing] if gaps else values
    low, high = known.min().item(), known.max().item()
    if low == high and not gaps:
        return field.text(low)
    if field.texts is not None or (not floats and high - low < field.span):
        codes = values.astype(np.int64) - (low - 1)
        codes[missing] = 0
        return _Codes(codes, high - low + 2, lambda code: field.text(code - 1 + low) if code else field.absent)
    if gaps or (field.inexact and max(high, -low) > EXACT):
        pairs = zip(values.tolist(), missing.tolist(), strict=True)
        return "%s", [field.absent if gap else field.text(value) for value, gap in pairs]
    return _verbatim(field.lead) + field.form + _verbatim(field.after), values.tolist()


def _combined(run: Sequence[_Codes]) -> list[str]:
    """Joined texts of adjacent fields by row; each distinct combination is joined once."""
    key = run[0].codes
    for part in run[1:]:
        key = key * part.size + part.codes
    distinct, inverse = np.unique(key, return_inverse=True)
    columns: list[list[str]] = []
    for part in reversed(run):
        distinct, codes = np.divmod(distinct, part.size)
        known = {code: part.text(code) for code in uniques(codes).tolist()}
        columns.append([known[code] for code in codes.tolist()])
    texts = ["".join(parts) for parts in zip(*reversed(columns), strict=True)]
    return list(map(texts.__getitem__, inverse.tolist()))


def _verbatim(text: str) -> str:
    return text.replace("%", "%%")


def tenths(percents: Array) -> npt.NDArray[np.int64]:
    """Percentages in tenths, int64, rounded exactly like ``f"{value:.1f}"``; 0 for values that are not finite."""
    scaled = np.where(np.isfinite(percents), percents, 0.0) * 10
    rounded: npt.NDArray[np.float64] = np.rint(scaled)
    # the multiplication may have rounded values near a half: format these to decide
    doubtful = np.flatnonzero(np.abs(np.abs(scaled - np.trunc(scaled)) - 0.5) < 1e-6)
    if len(doubtful):
        distinct, which = np.unique(percents[doubtful], return_inverse=True)
        exact = np.array([int(f"{value:.1f}".replace(".", "")) for value in distinct.tolist()], dtype=np.float64)
        rounded[doubtful] = exact[which.reshape(-1)]
    return np.asarray(np.clip(rounded, -(2**53), 2**53), dtype=np.int64)
