"""Rows of many cells as XML, a block at a time, by array operations: no Python object per row or cell.

A block is a matrix of bytes with one line per row. It begins as copies of one template; values are then written into
their places, right-aligned over NUL bytes, and all NUL bytes are dropped at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import is_missing
from tpuprof_tui.model.lane import Rows

from ..escape import sheet_xml, starts_formula
from .digits import digits, fractions, hex_digits, rounded_rates
from .styles import Style

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

#: Integers up to here are exact in a spreadsheet; longer ones are written as texts.
EXACT: Final = 2**53
#: Rows of one matrix: some megabytes.
BLOCK: Final = 2048
_DECIMALS: Final = 4


class Source(Struct, frozen=True, eq=False):
    """One field of the instructions of a lane.

    Attributes:
        kind: ``int`` (int64, or uint64 for 64-bit registers), ``float``, ``percent`` (0 to 100) or ``text`` (codes).
        values: Its values for some rows; None where every row has ``absent``.
        absent: What is written where there is no value; None: nothing is.
        texts: Texts by code.
        filler: Whether it says nothing: the register text has it, sheets do not.
    """

    kind: Literal["int", "float", "percent", "text"]
    values: Callable[[Rows], Array] | None = None
    absent: str | int | float | None = None
    texts: Sequence[str] = ()
    filler: bool = False


class SheetColumn(Struct, frozen=True):
    """One column of a sheet of rows.

    Attributes:
        name: Its header.
        kind: How its values are written; ``hex`` is a text.
        style: Look of its cells.
        filled: Whether empty cells have that look as well.
        empty: Whether no row can have a value.
    """

    name: str
    kind: Literal["int", "hex", "float", "percent", "text"]
    style: Style
    filled: bool
    empty: bool = False


class Values(Struct, frozen=True):
    """Values of one column in some rows.

    Attributes:
        array: int64 or uint64, float64, or codes into ``texts``; None where every row has ``absent``.
        missing: Where there is none; None: nowhere.
        absent: What is written there; None: nothing.
        texts: Texts by code.
    """

    array: Array | None
    missing: npt.NDArray[np.bool_] | None
    absent: str | int | float | None
    texts: Sequence[str] = ()

    def part(self, first: int, last: int) -> Values:
        """The values of some of the rows."""
        return Values(
            None if self.array is None else self.array[first:last],
            None if self.missing is None else self.missing[first:last],
            self.absent,
            self.texts,
        )


class _Piece(Struct, frozen=True):
    """What one column writes in a block: ``before``, ``body`` (one line per row, or none), ``after``."""

    column: SheetColumn
    letters: str
    before: bytes
    body: Bytes | None
    after: bytes
    missing: npt.NDArray[np.bool_] | None


class RowWriter:
    """Writes the rows of one sheet."""

    def __init__(
        self, columns: Sequence[SheetColumn], plain: Mapping[bytes, bytes], quoted: Mapping[bytes, bytes]
    ) -> None:
        """Columns, from the first on.

        Args:
            columns: The columns.
            plain: Number of the style of each column, by its letters; of columns that have one.
            quoted: The same for texts that begin like a formula.
        """
        self._columns = [
            (column, letters.decode(), f'" s="{plain[letters].decode()}"'.encode())
            for column, letters in zip(columns, plain, strict=True)
        ]
        self._numbers = {
            column: (plain[letters].decode(), quoted[letters].decode())
            for column, letters in zip(columns, plain, strict=True)
        }
        self._text_bodies: dict[tuple[str, str], bytes] = {}

    def xml(self, first_row: int, values: Sequence[Values], count: int, at_once: int = BLOCK) -> Iterator[bytes]:
        """The XML of ``count`` neighbouring rows of a sheet, some rows at a time.

        Args:
            first_row: Number of the first row in the sheet, from 1.
            values: Values of each column.
            count: How many rows.
            at_once: Rows of one matrix; fewer where texts are long.
        """
        for first in range(0, count, at_once):
            last = min(first + at_once, count)
            pieces = [
                piece
                for (column, letters, style), some in zip(self._columns, values, strict=True)
                if (piece := self._piece(column, letters, style, some.part(first, last), last - first)) is not None
            ]
            yield _block(first_row + first, pieces, last - first)

    # -- columns ----------------------------------------------------------

    def _piece(self, column: SheetColumn, letters: str, style: bytes, some: Values, count: int) -> _Piece | None:
        if some.array is None or (some.missing is not None and bool(some.missing.all())):
            return self._constant(column, letters, style, self._absent(column, some))
        missing = some.missing if some.missing is not None and bool(some.missing.any()) else None
        if column.kind == "text":
            return self._texts(column, letters, style, some, missing)
        array = some.array
        if missing is not None:
            array = np.where(missing, array.dtype.type(0), array)
            absent = self._absent(column, some)
            if absent is not None:
                array = np.where(missing, array.dtype.type(_number(absent)), array)
                missing = None
        return _numbers(column, letters, style, array, missing)

    @staticmethod
    def _absent(column: SheetColumn, some: Values) -> str | int | float | None:
        """What stands for no value; a text in a column of numbers is left out."""
        if isinstance(some.absent, str) and column.kind not in ("text", "percent"):
            return None
        return some.absent

    def _constant(
        self, column: SheetColumn, letters: str, style: bytes, value: str | int | float | None
    ) -> _Piece | None:
        if value is None:
            return _Piece(column, letters, style + b"/>", None, b"", None) if column.filled else None
        if column.kind == "text":
            return _Piece(column, letters, self._text_body(column, str(value)), None, b"", None)
        if column.kind == "percent":
            share = repr(_number(value) / 100).encode()
            return _Piece(column, letters, style + b"><v>" + share + b"</v></c>", None, b"", None)
        if column.kind == "hex":
            return _Piece(column, letters, style + _INLINE + hex(int(value)).encode() + _INLINE_END, None, b"", None)
        return _Piece(column, letters, style + b"><v>" + str(value).encode() + b"</v></c>", None, b"", None)

    def _texts(self, column: SheetColumn, letters: str, style: bytes, some: Values,
               missing: npt.NDArray[np.bool_] | None) -> _Piece:  # fmt: skip
        assert some.array is not None
        codes = some.array if missing is None else np.where(missing, -1, some.array)
        distinct, inverse = np.unique(codes, return_inverse=True)
        bodies = [self._text_of(column, style, some, code) for code in distinct.tolist()]
        if len(bodies) == 1:
            return _Piece(column, letters, bodies[0], None, b"", None)
        table = np.array(bodies)
        return _Piece(column, letters, b"", table[inverse].view(np.uint8).reshape(len(codes), -1), b"", None)

    def _text_of(self, column: SheetColumn, style: bytes, some: Values, code: int) -> bytes:
        text = some.texts[code] if 0 <= code < len(some.texts) else some.absent
        if text is None or text == "":
            # an empty cell; without a look it is left out by an element that readers pass over
            return style + b"/>"
        return self._text_body(column, str(text))

    def _text_body(self, column: SheetColumn, text: str) -> bytes:
        key = (text, self._numbers[column][starts_formula(text)])
        if key not in self._text_bodies:
            space = b' xml:space="preserve"' if text != text.strip() else b""
            opening = b'" s="%b" t="inlineStr"><is><t%b>' % (key[1].encode(), space)
            self._text_bodies[key] = opening + sheet_xml(text).encode() + _INLINE_END
        return self._text_bodies[key]


_INLINE: Final = b' t="inlineStr"><is><t>'
_INLINE_END: Final = b"</t></is></c>"


def _numbers(column: SheetColumn, letters: str, style: bytes, array: Array,
             missing: npt.NDArray[np.bool_] | None) -> _Piece:  # fmt: skip
    before, after = style + b"><v>", b"</v></c>"
    if column.kind == "hex":
        return _Piece(column, letters, style + _INLINE + b"0x", hex_digits(array), _INLINE_END, missing)
    if column.kind == "percent":
        return _Piece(column, letters, before, fractions(rounded_rates(array), 1000), after, missing)
    if column.kind == "float":
        scaled = np.rint(np.where(np.isfinite(array), array, 0.0) * 10**_DECIMALS)
        if bool((scaled >= 0).all() and (scaled < EXACT).all()):
            return _Piece(column, letters, before, fractions(scaled.astype(np.uint64), 10**_DECIMALS), after, missing)
        return _Piece(column, letters, before, _spelled(array, lambda value: repr(round(value, _DECIMALS))), after,
                      missing)  # fmt: skip
    if len(array) and (int(array.min()) < 0 or int(array.max()) > EXACT):
        return _Piece(column, letters, style, _spelled(array, _long_number), b"", missing)
    return _Piece(column, letters, before, digits(array), after, missing)


def _number(value: str | int | float) -> int | float:
    """A number; of a text like ``12.5%`` its percentage."""
    return float(value.rstrip("%")) if isinstance(value, str) else value


def _long_number(value: int) -> str:
    """The rest of a cell that holds an integer which spreadsheets may not hold exactly: that is a text then."""
    if abs(value) <= EXACT:
        return f"><v>{value}</v></c>"
    return f' t="inlineStr"><is><t>{value}</t></is></c>'


def _spelled(array: Array, spell: Callable[[Any], str]) -> Bytes:
    """Values written one by one, for what is rare."""
    table = np.array([spell(value) for value in array.tolist()], dtype="S")
    return table.view(np.uint8).reshape(len(array), -1)


# -- blocks -------------------------------------------------------------------


def _block(first_row: int, pieces: Sequence[_Piece], count: int) -> bytes:
    """Some rows: a matrix made of copies of a template, values written in, NUL bytes dropped."""
    numbers = digits(np.arange(first_row, first_row + count))
    gap = b"\0" * numbers.shape[1]
    template = bytearray(b'<row r="' + gap + b'">')
    places: list[tuple[int, int, _Piece]] = []
    for piece in pieces:
        template += f'<c r="{piece.letters}'.encode()
        start = len(template)
        template += gap + piece.before
        value = len(template)
        template += b"\0" * (0 if piece.body is None else piece.body.shape[1]) + piece.after
        places.append((start, value, piece))
    template += b"</row>"
    matrix = np.tile(np.frombuffer(bytes(template), dtype=np.uint8), (count, 1))
    width = numbers.shape[1]
    matrix[:, 8 : 8 + width] = numbers
    for start, value, piece in places:
        matrix[:, start : start + width] = numbers
        if piece.body is not None:
            matrix[:, value : value + piece.body.shape[1]] = piece.body
        if piece.missing is not None:
            _blank(matrix, piece, np.flatnonzero(piece.missing), start, start + width, value)
    return matrix.tobytes().translate(None, b"\0")


def _blank(matrix: Bytes, piece: _Piece, rows: Array, start: int, after_number: int, value: int) -> None:
    """Takes a column's cells out of some rows, or leaves empty ones there."""
    end = value + (0 if piece.body is None else piece.body.shape[1]) + len(piece.after)
    if piece.column.filled:
        quote = piece.before.index(b'"', 5)  # the end of the style's number
        empty = np.frombuffer(piece.before[: quote + 1] + b"/>", dtype=np.uint8)
        matrix[rows, after_number:end] = 0
        matrix[rows, after_number : after_number + len(empty)] = empty
        return
    matrix[rows, start - len(f'<c r="{piece.letters}') : end] = 0


def values_of(sources: Sequence[tuple[Source | None, Array | None]], rows: Any, numbers: Array) -> Values:
    """A column's values in some rows, from what holds it for each kind of command.

    Args:
        sources: Where the values are, and the places among the rows that have them there (None: all).
        rows: The rows, as a lane takes them.
        numbers: The same as an array.
    """
    first, places = sources[0]
    if places is None or all(source is first for source, _ in sources):
        if first is None or first.values is None:
            return Values(None, None, None if first is None else first.absent)
        array = first.values(rows)
        missing = _lost(array)
        return Values(array, missing if bool(missing.any()) else None, first.absent, first.texts)
    return _merged(sources, numbers)


def _lost(array: Array) -> npt.NDArray[np.bool_]:
    return is_missing(array) if array.dtype.kind != "f" else ~np.isfinite(array)


def _merged(sources: Sequence[tuple[Source | None, Array | None]], numbers: Array) -> Values:
    texts, absent, held = _texts_of(sources)
    result: Array | None = None
    missing = np.ones(len(numbers), dtype=np.bool_)
    for (source, places), (first_code, absent_code) in zip(sources, held, strict=True):
        if source is None or places is None:
            continue
        filler = absent_code if source.kind == "text" else source.absent
        if source.values is not None:
            part = source.values(numbers[places])
            lost = _lost(part)
            part = part + first_code if first_code else part
        else:
            part, lost = np.zeros(len(places), dtype=np.int64), np.ones(len(places), dtype=np.bool_)
        if isinstance(filler, (int, float)) and bool(lost.any()):
            part, lost = np.where(lost, filler, part), np.zeros(len(places), dtype=np.bool_)
        if result is None:
            result = np.zeros(len(numbers), dtype=part.dtype)
        elif result.dtype != part.dtype:
            # registers are never negative: int64 fits uint64
            kind = np.uint64 if part.dtype == np.uint64 else np.promote_types(result.dtype, part.dtype)
            result = result if result.dtype == np.uint64 else result.astype(kind)
        result[places], missing[places] = part, lost
    return Values(result, missing, absent, texts)


def _texts_of(
    sources: Sequence[tuple[Source | None, Array | None]],
) -> tuple[Sequence[str], str | int | float | None, list[tuple[int, int | None]]]:
    """One table of texts for sources that may have different ones.

    Returns:
        The table, what stands for no value, and for each source the code of its first text and of its own ``absent``.
    """
    some = [source for source, _ in sources if source is not None]
    tables = [source.texts for source in some if source.values is not None]
    absents = {source.absent for source in some} if len(some) == len(sources) else {None, *(s.absent for s in some)}
    if all(table is tables[0] for table in tables) and len(absents) == 1:
        return tables[0] if tables else (), absents.pop(), [(0, None)] * len(sources)
    joined: list[str] = []
    held: list[tuple[int, int | None]] = []
    for source, _ in sources:
        first = len(joined)
        if source is None or source.kind != "text":
            held.append((0, None))
            continue
        joined += source.texts
        held.append((first, None if source.absent is None else len(joined)))
        joined += [] if source.absent is None else [str(source.absent)]
    return joined, None, held
