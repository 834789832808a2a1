"""Rows of columns as text, a slice at a time, without a Python object per value where one per combination will do.

A row is one ``%`` template filled with a tuple. Values that are the same for the whole slice are part of the template;
neighbouring columns of few distinct values (texts, codes) become one string per distinct combination; numbers that
differ are formatted by the template itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import is_missing
from tpuprof_tui.model.lane import Rows

Array = npt.NDArray[Any]
#: Largest product of the numbers of values that one combined code may have.
_CODE_LIMIT = 1 << 62


class Field(Struct, frozen=True):
    """One field of every row of a lane.

    Attributes:
        values: Gives its values for some rows: int64, float64, or codes into ``texts``.
        lead: What is written before a value ("name and colon", "comma").
        absent: What is written instead where there is no value; includes what ``lead`` would have been.
        texts: Rendered texts by code; None for numbers.
        number: Format of a float; floats that are not finite count as missing.
        decimals: Floats are rounded to so many digits and written in their shortest form; None where ``number`` is set.
        span: Integers that lie within so many values are combined with their neighbours.
    """

    values: Callable[[Rows], Array]
    lead: str
    absent: str
    texts: Sequence[str] | None = None
    number: str | None = None
    decimals: int | None = None
    span: int = 0


class _Codes(Struct, frozen=True):
    """Values as small codes: 0 is missing, code - 1 + low the value."""

    codes: npt.NDArray[np.int64]
    size: int
    text: Callable[[int], str]


def rendered_rows(opening: str, fields: Sequence[Field | str], closing: str, rows: Rows, count: int) -> list[str]:
    """The rows of one slice.

    Args:
        opening: Text before the first field of a row.
        fields: Fields in order; a string stands for a field that is the same in every row.
        closing: Text after the last field.
        rows: Which rows.
        count: How many those are.

    Returns:
        ``count`` strings.
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
            if _size([*run, piece]) > _CODE_LIMIT:
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
    if not len(values):
        return ""
    if values.dtype.kind == "f":
        return _float_piece(field, values)
    missing = is_missing(values)
    if missing.all():
        return field.absent
    gaps = bool(missing.any())
    known = values[~missing] if gaps else values
    low, high = int(known.min()), int(known.max())
    if low == high and not gaps:
        return _int_text(field, low)
    if field.texts is not None or high - low < field.span:
        codes = values.astype(np.int64) - (low - 1)
        if gaps:
            codes[missing] = 0
        return _Codes(codes, high - low + 2, lambda code: _int_text(field, code - 1 + low) if code else field.absent)
    if not gaps:
        return _verbatim(field.lead) + "%d", values.tolist()
    texts = [
        field.absent if gap else f"{field.lead}{value}"
        for value, gap in zip(values.tolist(), missing.tolist(), strict=True)
    ]
    return "%s", texts


def _int_text(field: Field, value: int) -> str:
    if field.texts is None:
        return f"{field.lead}{value}"
    # a code beyond its table has no text
    return field.lead + field.texts[value] if value < len(field.texts) else field.absent


def _float_piece(field: Field, values: Array) -> str | tuple[str, list[Any]]:
    finite = np.isfinite(values)
    if not finite.any():
        return field.absent
    rounded = values if field.decimals is None else np.round(values, field.decimals)
    form = field.number or "%s"
    if finite.all():
        if bool((rounded == rounded[0]).all()):
            return field.lead + form % float(rounded[0])
        return _verbatim(field.lead) + form, rounded.tolist()
    texts = [
        field.lead + form % value if fine else field.absent
        for value, fine in zip(rounded.tolist(), finite.tolist(), strict=True)
    ]
    return "%s", texts


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


def _size(run: Sequence[_Codes]) -> int:
    product = 1
    for part in run:
        product *= part.size
    return product


def _verbatim(text: str) -> str:
    return text.replace("%", "%%")
