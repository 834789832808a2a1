"""Reads csv tables of CANN: columns by name, block by block, for any file size, tolerating damaged rows."""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.decimals import MASKS, WIDEST, Bytes, numbers
from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import Problem, Severity
from tpuprof_tui.sources.chrome.columns import I32, I64
from tpuprof_tui.sources.source import GZIP

from .content import names_separator

if TYPE_CHECKING:
    from .plain_csv import Rewriter

Words = npt.NDArray[np.uint64]

#: Bytes read at a time.
BLOCK: Final = 2 << 20
#: Reading ends at a row longer than this, in bytes.
LONGEST_ROW: Final = 256 << 20
#: Most unclosed quotes that are skipped.
_MOST_REPAIRS: Final = 20
_LONGEST_TEXT: Final = 1 << 20
#: Least number of cells for vectorized comparison, and most distinct cells that it knows.
_FEW, _MOST_KNOWN = 64, 1 << 15
_MIX, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)
_MOST_COLUMNS: Final = 4096
_LONGEST_NAME: Final = 256
_BOM: Final = b"\xef\xbb\xbf"
_HAS_UNIT: Final = lazy_pattern(r"\((?:us|ms|ns|%|[KMG]B(?:/s)?)\)$")
#: Names of first columns of the exporters' tables.
_FIRST_COLUMNS: Final = frozenset(
    ("Step Id", "Device_id", "Model Name", "Model ID", "Name", "Op Name", "OP Type", "Step")
)
#: Whole rows sampled for the types of columns; and number of short rows in a block above which none is checked.
_SAMPLED_ROWS, _MANY_SHORT = 64, 1000
_NUMBER: Final = lazy_pattern(r"[-+]?[0-9]+[.]?[0-9]*(e[-+]?[0-9]+)?$", re.IGNORECASE)
_GB18030: Final = "Texts are not encoded in UTF-8."
#: Types of columns by kind; of texts, those of codes.
_TYPES: Final = {"time": np.int64, "number": np.float64, "text": np.int32}
#: Cells that mean a missing value.
NOTHING: Final = ("", "N/A")

#: Columns with the device of a row.
DEVICES: Final = ("Device_id", "Device Type", "Device")

#: ``time``: us as int64 ns; ``number``: float64; ``text``: codes and texts.
CellType = Literal["time", "number", "text"]


class Texts(Struct, frozen=True, eq=False, dict=True):
    """A dictionary-encoded text column: codes into the distinct texts, -1 if missing."""

    codes: I32
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def values(self, rows: Any = slice(None)) -> list[str | None]:
        """The texts of some rows; None if missing."""
        values = (*self.texts, None)
        return [values[code] for code in self.codes[rows].tolist()]

    def where(self, test: Any) -> npt.NDArray[np.bool_]:
        """Mask of the rows whose text passes a test, called once per distinct text; False if missing."""
        passing = np.array([*map(bool, map(test, self.texts)), False], np.bool_)
        return passing[self.codes]


def texts_of(values: Iterable[Any]) -> Texts:
    """A text column of texts; None: missing."""
    codes: dict[Any, int] = {}
    found = [-1 if value is None else codes.setdefault(value, len(codes)) for value in values]
    return Texts(np.array(found, np.int32), tuple(codes))


class CsvTable(Struct, eq=False):
    """A table in one or more files that continue each other."""

    paths: Sequence[Path]
    name: str  #: Name of the first file, relative to the opened path
    columns: tuple[str, ...]  #: Names of the columns of all files
    rows: int = 0  #: Number of rows; known once columns have been read, as are ``begin`` and ``length``
    problems: list[Problem] = field(default_factory=list)  #: Defects found; each is reported once
    device: int = -1  #: Only rows of this device, and of no device, are read; -1: all
    #: begin, length: int64 and int32 of each row: offset over all files, and bytes.
    begin: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    length: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    rewriter: Any = None  #: What rewrote files as plain csv, which are deleted with it; None: none was

    @classmethod
    def opened(cls, paths: Sequence[Path], name: str, device: int = -1) -> CsvTable:
        """Opens the table in some files; ``device``: reads only that device's rows if the files have several.

        Raises:
            UnreadableError: A file cannot be opened, or has no header.
        """
        columns: dict[str, None] = {}
        plain: Rewriter | None = None
        kept, lost = [], dict[str, str]()
        for path in paths:
            own = f"{name.removesuffix(paths[0].name)}{path.name}"
            try:
                with path.open("rb") as file:
                    head = file.readline(LONGEST_ROW)
                if _is_not_plain(head):
                    from .plain_csv import Rewriter  # few tables need it

                    plain = plain or Rewriter(name)
                    path, head = plain.rewritten(path)
            except OSError as error:
                lost[own] = f"{own}: {(error.strerror or 'cannot be read').lower()}."
                continue
            found = _header(head)
            if not any(found) or len(found) > _MOST_COLUMNS:
                lost[own] = f"{own} {'has' if head else 'is empty: it has'} no header."
                continue
            columns |= dict.fromkeys(filter(None, found))
            kept.append(path)
        if not kept:
            raise UnreadableError(next(iter(lost.values())))
        made = cls(kept, name, tuple(columns), device=device)
        if plain is not None:
            made.problems, made.rewriter = plain.problems, plain
        made.problems += (Problem(Severity.ERROR, what, "It is left out.", own) for own, what in lost.items())
        return made

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def first(self, *names: str) -> str:
        """The first of some names that is a column; empty if none is."""
        return next((name for name in names if name in self.columns), "")

    def read(self, wanted: Mapping[str, CellType]) -> dict[str, Any]:
        """Reads columns: int64, float64 or ``Texts`` of one length. Names that the table lacks are left out."""
        of_device = self.first(*DEVICES) if self.device >= 0 else ""
        columns = _Columns(self, {**wanted, of_device: "text"})
        again, before = bool(self.rows), 0
        begins, lengths = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        for path in self.paths:
            size = path.stat().st_size
            for block in _Blocks(path, self, again):
                begins.append(block.begin + (before + block.offset))
                lengths.append(block.length)
                columns.add(block)
            before += size
        self.begin, self.length = np.concatenate(begins), np.concatenate(lengths)
        read = columns.joined()
        if of_device:
            device = read[of_device]
            here = device.where(lambda text: device_number(text) in (self.device, -1)) | (device.codes < 0)
            self.begin, self.length = self.begin[here], self.length[here]
            read = {name: Texts(column.codes[here], column.texts) if isinstance(column, Texts) else column[here]
                    for name, column in read.items() if name in wanted}  # fmt: skip
        self.rows = len(self.begin)
        return read

    def read_rows(self, rows: I64, wanted: Mapping[str, CellType]) -> dict[str, Any]:
        """Reads columns of some rows by offset, after any column has been read; result as of ``read``.

        Raises:
            UnreadableError: A file has changed since.
        """
        columns, before = _Columns(self, wanted), 0
        found, begins, lengths = [np.zeros(0, np.int64)], self.begin[rows], self.length[rows]
        for path in self.paths:
            size = path.stat().st_size
            here = np.flatnonzero((begins >= before) & (begins < before + size))
            if len(here):
                with path.open("rb") as file:
                    texts = [_line_at(file, 0, LONGEST_ROW)]
                    texts += map(_line_at, repeat(file), (begins[here] - before).tolist(), lengths[here].tolist())
                block = _Blocks(path, self, again=True).block(b"".join(texts))
                if block is None or block.count != len(here):
                    break
                columns.add(block)
                found.append(here)
            before += size
        order = np.argsort(np.concatenate(found))
        if len(order) != len(rows):
            raise UnreadableError(f"{self.name} has changed since it was read.")
        return columns.joined(order)

    def note(self, path: Path, offset: int, severity: Severity, what: str, done: str, count: int = 1) -> None:
        """Adds a problem, or adds to the count of the same kind of problem; the first offset is kept."""
        kind = what.partition(" (")[0]
        for number, known in enumerate(self.problems):
            if known.what.startswith((f"{kind}, line", f"{kind} (")):
                self.problems[number] = Problem(known.severity, known.what, known.done, known.file, known.offset,
                                                count=known.count + count)  # fmt: skip
                return
        with path.open("rb") as file:
            parts = (min(BLOCK, offset - begin) for begin in range(0, offset, BLOCK))
            line = 1 + sum(file.read(size).count(b"\n") for size in parts)
        self.problems.append(Problem(severity, f"{what}, line {line:,}.", done, self.name, offset, count=count))


class _Columns:
    """Columns that are read from blocks; names that the table lacks are left out."""

    def __init__(self, table: CsvTable, wanted: Mapping[str, CellType]) -> None:
        self._table = table
        self._kinds = {name: kind for name, kind in wanted.items() if name in table.columns}
        self._codes = {name: _Codes() for name, kind in self._kinds.items() if kind == "text"}
        self._parts: dict[str, list[Any]] = {
            name: [np.zeros(0, _TYPES[kind])] for name, kind in self._kinds.items()
        }  # fmt: skip

    def add(self, block: _Block) -> None:
        for name, kind in self._kinds.items():
            self._parts[name].append(block.column(name, kind, self._codes.get(name)))

    def joined(self, order: Any = slice(None)) -> dict[str, Any]:
        """The columns: arrays, or ``Texts``."""
        found: dict[str, Any] = {name: np.concatenate(parts)[order] for name, parts in self._parts.items()}
        for name, codes in self._codes.items():
            index: dict[str, int] = {}
            texts = map(self._cell, codes.cells)
            mapped = [-1 if text in NOTHING else index.setdefault(text, len(index)) for text in texts]
            found[name] = Texts(np.array([*mapped, -1], np.int32)[found[name]], tuple(index))
        return found

    def _cell(self, raw: bytes) -> str:
        if not raw.isascii() and len(raw) <= _LONGEST_TEXT:
            with contextlib.suppress(UnicodeDecodeError):
                raw.decode()
                return _cell(raw)
            with contextlib.suppress(UnicodeDecodeError):
                raw = raw.decode("gb18030").encode()
                problems = self._table.problems
                if not any(known.what == _GB18030 for known in problems):
                    problems.append(Problem(Severity.NOTE, _GB18030, "They are read as GB18030.", self._table.name))
        return _cell(raw)


def _is_not_plain(line: bytes) -> bool:
    head = line[:4096]
    encoded = head[:2] in (GZIP, b"\xff\xfe", b"\xfe\xff") or b"\0" in head
    return encoded or names_separator(head) or separator_of(head.decode("latin-1")) != ","


def separator_of(line: str) -> str:
    """The separator of a table's cells, by its first line."""
    if line.lower().startswith("sep="):
        return line[4:5]
    counts = {each: line.count(each) for each in ",;\t"}
    return max(counts, key=lambda each: counts[each])


def _line_at(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    text = file.readline(length) if not offset else file.read(length)
    return text.rstrip(b"\r\n") + b"\n"


class _Codes:
    """Codes of the distinct cells of a column: of most blocks only those of different hashes are looked up."""

    def __init__(self) -> None:
        self.cells: dict[bytes, int] = {}

    def of(self, text: Bytes, begin: I64, end: I64) -> I32:
        """Codes of some cells."""
        length = end - begin
        if int(length.max(initial=0)) <= WIDEST and len(begin) >= _FEW:
            hashes, words = _hashed(text, begin, length)
            _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
            same = first[inverse]
            if all(np.array_equal(each[same], each) for each in (length, *words)):
                return self._lookup(text, begin[first], end[first])[inverse]
        return self._lookup(text, begin, end)

    def _lookup(self, text: Bytes, begin: I64, end: I64) -> I32:
        data, cells = text.data, self.cells
        found = (data[low:high] for low, high in zip(begin.tolist(), end.tolist(), strict=True))
        return np.array([cells.setdefault(cell, len(cells)) for cell in found], np.int32)


def _hashed(text: Bytes, begin: I64, length: I64) -> tuple[Words, list[Words]]:
    """Hash of each slice of a text, and the words hashed: the last eight bytes, then all others by eights.

    Words are padded with zeros where a slice is shorter.
    """
    tail = text.words(begin + np.maximum(length - 8, 0)) & MASKS[np.minimum(length, 8)]
    mixed, words = (length.astype(np.uint64) ^ tail) * _MIX, [tail]
    mixed ^= mixed >> _SHIFT
    for offset in range(0, int(length.max(initial=0)) - 8, 8):
        longer = length > offset + 8
        words.append(np.where(longer, text.words(begin + offset), np.uint64(0)))
        further = (mixed ^ words[-1]) * _MIX
        mixed = np.where(longer, further ^ (further >> _SHIFT), mixed)
    return mixed, words


class _Block(Struct, frozen=True, eq=False, dict=True):
    """A block of whole rows of a file: offsets of rows in its text, ends of all cells, and which are whose."""

    table: CsvTable
    offset: int
    text: Bytes
    column_numbers: dict[str, int]
    begin: I64
    stops: I64
    first: I64
    cells: I64
    again: bool

    @property
    def count(self) -> int:
        return len(self.begin)

    @property
    def length(self) -> I32:
        """Bytes of each row without the line end."""
        length: I32 = (self.stops[self.first + self.cells - 1] - self.begin).astype(np.int32)
        return length

    def column(self, name: str, kind: CellType, codes: _Codes | None) -> Any:
        """Values of a column; codes of a text column."""
        number = self.column_numbers.get(name, 1 << 32)
        has = self.cells > number
        everywhere = bool(has.all())
        at = self.first + number if everywhere else np.where(has, self.first + number, 0)
        begin, end = self.stops[at - 1] + 1 if number else self.begin, self.stops[at]
        if not everywhere:
            begin, end = np.where(has, begin, 0), np.where(has, end, 0)
        if codes is not None:
            found_codes = codes.of(self.text, begin, end)
            return found_codes if everywhere else np.where(has, found_codes, -1).astype(np.int32)
        found = numbers(self.text, begin, end)
        if found.bad and not self.again:
            low = int(begin[found.bad[0]])
            text = utf8_text(self.text.data[low : int(end[found.bad[0]])][:40].decode("utf-8", "replace"))
            what = f"{name} holds cells that are not numbers ({text})"
            path, offset = self.table.paths[0], self.offset + low
            self.table.note(path, offset, Severity.WARNING, what, "They are left empty.", len(found.bad))
        return found.nanoseconds() if kind == "time" else found.floats()

    def cell_types(self, row: int) -> list[bool | None]:
        """For each cell of a row whether it is a number; None if it is missing."""
        first, count = int(self.first[row]), int(self.cells[row])
        ends = self.stops[first : first + count].tolist()
        begins = [int(self.begin[row]), *(end + 1 for end in ends)]
        texts = [_cell(self.text.data[low:high]) for low, high in zip(begins, ends, strict=False)]
        return [None if text in NOTHING else _NUMBER.match(text) is not None for text in texts]


class _Blocks:
    def __init__(self, path: Path, table: CsvTable, again: bool) -> None:
        self._path, self._table, self._again = path, table, again
        self._column_numbers: dict[str, int] = {}
        #: Whether reading ended at a second header with other columns.
        self._stopped = False

    def __iter__(self) -> Iterator[_Block]:
        carry, offset, mended = b"", 0, 0
        with self._path.open("rb") as file:
            while True:
                chunk = file.read(max(BLOCK, len(carry)))
                data = carry + chunk if chunk else carry
                if not data:
                    return
                if not chunk and not data.endswith(b"\n"):
                    data += b"\n"
                block, used = self._rows(data, offset)
                if block is not None:
                    yield block
                if self._stopped:
                    return
                if not chunk and used < len(data):
                    # a quote is unclosed up to the end of the file: drop its line, read on behind it
                    mended += 1
                    if mended > _MOST_REPAIRS:
                        return
                    line = data.find(b"\n", used) + 1
                    self._note(offset + used, "A cell whose quote is not closed", "Its row is left out.")
                    used = line or len(data)
                elif len(data) - used > LONGEST_ROW:
                    self._note(offset + used, "A row without end", "What follows is left out.")
                    return
                carry = data[used:]
                offset += used
                if not chunk and not carry:
                    return

    def block(self, text: bytes) -> _Block | None:
        """Parses a text of the header and some rows; offsets are unknown."""
        return self._rows(text, 0)[0]

    def _note(self, offset: int, what: str, done: str, severity: Severity = Severity.ERROR, count: int = 1) -> None:
        if not self._again:
            self._table.note(self._path, offset, severity, what, done, count)

    def _rows(self, data: bytes, offset: int) -> tuple[_Block | None, int]:
        block_text = Bytes(data)
        text = block_text.array
        special = _bits(text == 0x2C) | (lines := _bits(text == 0x0A))
        if 0x22 in data:
            outside = ~_inside(_bits(text == 0x22))
            special &= outside
            lines &= outside
        ends = _set_bits(lines)
        if not len(ends):
            return None, 0
        stops = _set_bits(special)
        used = int(ends[-1]) + 1
        last = np.searchsorted(stops, ends)
        first, begin = np.append(0, last[:-1] + 1), np.append(0, ends[:-1] + 1)
        cells, length = last - first + 1, ends - begin
        keep = (cells > 1) | (length > 1) | ((length == 1) & (text[begin] != 0x0D))
        zeros = np.flatnonzero(keep & (text[begin] == 0))
        if len(zeros):
            keep[zeros] = False
            done = "The file was not written whole: its row is left out."
            self._note(offset + int(begin[zeros[0]]), "Zeros in place of text", done, count=len(zeros))
        if not self._column_numbers:
            header = int(np.argmax(keep))
            keep[: header + 1] = False
            names = _header(data[int(begin[header]) : int(ends[header])])
            for number, name in enumerate(names):
                self._column_numbers.setdefault(name, number)
            self._width = len(names)
            texts = (f"{name},".encode()[:4] for name in (*names, *_FIRST_COLUMNS) if not name[:1].isdecimal())
            self._beginnings = np.array(sorted({int.from_bytes(each, "little") for each in texts}), np.uint64)
        self._drop_headers(block_text, offset, begin, ends, keep)
        if not keep.all():
            first, begin, cells = first[keep], begin[keep], cells[keep]
        if not len(begin):
            return None, used
        block = _Block(self._table, offset, block_text, self._column_numbers, begin, stops, first, cells, self._again)
        if not self._again:
            self._report_row_lengths(block)
        return block, used

    def _may_be_headers(self, text: Bytes, begin: I64, keep: npt.NDArray[np.bool_]) -> I64:
        """Rows that begin with four bytes as a header does."""
        words, beginnings = text.words(begin), self._beginnings
        head = words & MASKS[4]
        likely = beginnings[np.minimum(np.searchsorted(beginnings, head), len(beginnings) - 1)] == head
        return np.flatnonzero(keep & (likely | (words & MASKS[3] == int.from_bytes(_BOM, "little"))))

    def _drop_headers(self, text: Bytes, offset: int, begin: I64, ends: I64, keep: npt.NDArray[np.bool_]) -> None:
        """Unmarks further headers in ``keep``, as in files that were appended to each other; all behind another one."""
        rows = self._may_be_headers(text, begin, keep)
        data, names = text.data, self._column_numbers
        dropped = []
        for row, low, high in zip(rows.tolist(), begin[rows].tolist(), ends[rows].tolist(), strict=True):
            cell = data[low : min(high, low + _LONGEST_NAME)].removeprefix(_BOM).partition(b",")[0]
            name = cell.strip(b'" \r').decode("utf-8", "replace")
            if name not in names and name not in _FIRST_COLUMNS:
                continue
            found = _header(data[low:high].removeprefix(_BOM))
            if found == list(names):
                dropped.append(row)
            elif sum(each in names or _HAS_UNIT.search(each) is not None for each in found) > 2:
                keep[row:] = False
                self._stopped = True
                self._note(offset + low, "A second header with other columns", "What follows is left out.")
                break
        if dropped:
            keep[dropped] = False
            self._note(offset + int(begin[dropped[0]]), "Headers within the table", "They are left out.", Severity.NOTE,
                       len(dropped))  # fmt: skip

    def _report_row_lengths(self, block: _Block) -> None:
        cells, offsets = block.cells, block.begin + block.offset
        for wrong, message, done in (
            ((cells < self._width) & ~self._lack_last(block), "Rows that have fewer cells than the header",
             "They are shown as recorded, missing cells are empty."),
            (cells > self._width, "Rows that have more cells than the header", "The extra cells are left out."),
        ):  # fmt: skip
            rows = np.flatnonzero(wrong)
            if len(rows):
                self._note(int(offsets[rows[0]]), message, done, count=len(rows))

    def _lack_last(self, block: _Block) -> npt.NDArray[np.bool_]:
        """Mask of rows that lack only their last cell, which is no damage: all other cells match their columns' types.

        A row that lost an earlier cell has all later ones shifted to the left, so numbers meet texts. If many rows are
        short, the exporter writes the file that way.
        """
        short: npt.NDArray[np.bool_] = block.cells == self._width - 1
        rows = np.flatnonzero(short)
        if not len(rows) or len(rows) > _MANY_SHORT:
            return short
        full_rows = np.flatnonzero(block.cells == self._width)[:_SAMPLED_ROWS]
        column_types = [set(each) - {None} for each in zip(*map(block.cell_types, full_rows.tolist()), strict=True)]
        for row in rows.tolist() if column_types else ():
            cells = zip(block.cell_types(row), column_types, strict=False)
            short[row] = all(cell_type is None or not types or cell_type in types for cell_type, types in cells)
        return short


def _bits(mask: npt.NDArray[np.bool_]) -> Words:
    """Packs a boolean mask, of a multiple of 64 elements, into words; the first element is the lowest bit."""
    return np.packbits(mask, bitorder="little").view("<u8")


def _set_bits(bits: Words) -> I64:
    return np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little").view(np.bool_))


def _inside(quotes: Words) -> Words:
    """Packed mask of the bytes that an odd number of quotes precedes: a prefix XOR."""
    for shift in (1, 2, 4, 8, 16, 32):
        quotes = quotes ^ (quotes << np.uint64(shift))
    odd = np.bitwise_xor.accumulate(quotes >> np.uint64(63))
    quotes[1:] ^= np.uint64(0) - odd[:-1]
    return quotes


def device_number(text: str) -> int:
    """Device number in a text: ``1``, ``NPU:1``; -1 if it is none, as in ``host``."""
    number = text.removeprefix("NPU:")
    return int(number) if number.isdecimal() and len(number) < 9 else -1


def _header(line: bytes) -> list[str]:
    text = line.decode("utf-8-sig", "replace").strip("\r\n")
    csv.field_size_limit(LONGEST_ROW)
    try:
        return [utf8_text(name.strip()) for name in next(csv.reader([text]), [])]
    except csv.Error:
        return []


def _cell(raw: bytes) -> str:
    text = raw[:_LONGEST_TEXT].decode("utf-8", "replace").strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].replace('""', '"').strip()
    return utf8_text(text)
