"""Rows of columns as text, a slice at a time, without a Python object per value where one per combination will do.

A row is one ``%`` template filled with a tuple. Values that are the same for the whole slice are part of the template;
neighbouring columns of few distinct values (texts, codes) become one string per distinct combination; numbers that
differ are formatted by the template itself.
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

Array = npt.NDArray[Any]
#: Integers up to here are exact in a spreadsheet and a browser.
EXACT: Final = 2**53
#: Largest product of the numbers of values that one combined code may have.
_CODE_LIMIT: Final = 1 << 62


class Field(Struct, frozen=True):
    """One field of every row of a lane.

    Attributes:
        values: Gives its values for some rows: integers, float64, or codes into ``texts``; floats that are not finite
            are missing.
        lead: What is written before a value ("name and colon", "comma").
        absent: What is written instead where there is no value; includes what ``lead`` would have been.
        texts: Texts by code; None for numbers.
        spell: What is written of a text.
        form: Format of a number.
        after: What is written behind a number.
        decimals: Floats are rounded to so many digits; None: not at all.
        span: Integers that lie within so many values are combined with their neighbours.
        inexact: Format, with what stands before and behind, of integers beyond ``EXACT``; empty: that of all numbers.
    """

    values: Callable[[Rows], Array]
    lead: str
    absent: str
    texts: Sequence[str] | None = None
    spell: Callable[[str], str] = str
    form: str = "%s"
    after: str = ""
    decimals: int | None = None
    span: int = 0
    inexact: str = ""

    def text(self, value: Any) -> str:
        """What is written of a value; of a code beyond its table what is written where there is none."""
        if self.texts is not None:
            return self.lead + self.spell(self.texts[value]) if value < len(self.texts) else self.absent
        if self.inexact and abs(value) > EXACT:
            return str(self.inexact % value)
        return f"{self.lead}{self.form % value}{self.after}"


class _Codes(Struct, frozen=True):
    """Values as small codes: 0 is missing; ``text`` gives that of each code."""

    codes: npt.NDArray[np.int64]
    size: int
    text: Callable[[int], str]


def rendered_rows(opening: str, fields: Sequence[Field | str], closing: str, rows: Rows, count: int) -> list[str]:
    """The rows of one slice.

    A string among the fields stands for one that is the same in every row; ``count`` is the number of ``rows``.
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
        piece = field if isinstance(field, str) else _piece(field, field.values(rows))
        if isinstance(piece, _Codes):
            if prod(part.size for part in (*run, piece)) > _CODE_LIMIT:
                end_run()
            run.append(piece)
            continue
        end_run()
        if isinstance(piece, str):
            template.append(_verbatim(piece))
        else:
            template.append(piece[0])
            lists.append(piece[1])
    end_run()
    template.append(_verbatim(closing))
    row = "".join(template)
    if not lists:
        return [row % ()] * count
    return list(map(row.__mod__, zip(*lists, strict=True)))


def _piece(field: Field, values: Array) -> str | _Codes | tuple[str, list[Any]]:
    """A field of a slice: constant text, codes to combine, or a template and what fills it."""
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
        spelled = zip(values.tolist(), missing.tolist(), strict=True)
        return "%s", [field.absent if gap else field.text(value) for value, gap in spelled]
    return _verbatim(field.lead) + field.form + _verbatim(field.after), values.tolist()


def _combined(run: Sequence[_Codes]) -> list[str]:
    """Texts of neighbouring fields, joined; made once per combination that occurs."""
    key = run[0].codes
    for part in run[1:]:
        key = key * part.size + part.codes
    distinct, inverse = np.unique(key, return_inverse=True)
    pieces: list[list[str]] = []
    for part in reversed(run):
        distinct, codes = np.divmod(distinct, part.size)
        known = {code: part.text(code) for code in np.unique(codes).tolist()}
        pieces.append([known[code] for code in codes.tolist()])
    texts = ["".join(parts) for parts in zip(*reversed(pieces), strict=True)]
    return list(map(texts.__getitem__, inverse.tolist()))


def _verbatim(text: str) -> str:
    return text.replace("%", "%%")


def tenths(percents: Array) -> npt.NDArray[np.int64]:
    """Percentages in tenths, rounded as their text with one decimal is; 0 where there is none."""
    scaled = np.where(np.isfinite(percents), percents, 0.0) * 10
    rounded: npt.NDArray[np.float64] = np.rint(scaled)
    # a product close to a half may have been rounded itself: the text decides
    doubtful = np.flatnonzero(np.abs(np.abs(scaled - np.trunc(scaled)) - 0.5) < 1e-6)
    if len(doubtful):
        distinct, which = np.unique(percents[doubtful], return_inverse=True)
        exact = np.array([int(f"{value:.1f}".replace(".", "")) for value in distinct.tolist()], dtype=np.float64)
        rounded[doubtful] = exact[which.reshape(-1)]
    return np.asarray(np.clip(rounded, -(2**53), 2**53), dtype=np.int64)
