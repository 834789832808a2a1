"""Rewrites tables that are packed, in UTF-16, or separated by semicolons or tabs as plain csv, which `CsvTable` reads.

Spreadsheets write such files; in some languages with decimal commas.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from tpuprof_tui.model import Problem, Severity
from tpuprof_tui.sources.chrome.inflate import GZIP, GzipText

from .csv_table import separator_of

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

_PIECE: Final = 1 << 20
#: Most text of a packed table, in bytes.
_MOST_TEXT: Final = 4 << 30
_UTF_16: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
#: Columns of numbers, and numbers with a decimal comma.
_NUMERIC: Final = re.compile(r".*(\((us|ms|ns|s|%|[KMG]?B|[KMG]B/s)\)|_ratio|_rate|_cycles|Ratio|cycles)")
_COMMA: Final = re.compile(r"([-+]?\d+),(\d+(?:[eE][-+]?\d+)?\s*)")


class Rewriter:
    """Rewrites the files of a table.

    Args:
        name: Name of the table.

    Attributes:
        folder: Temporary folder of the files; None: there are none. It is deleted with this object.
        problems: What was lost.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.folder: TemporaryDirectory[str] | None = None
        self.problems: list[Problem] = []

    def rewritten(self, path: Path) -> tuple[Path, bytes]:
        """A plain csv file of the same rows, and its first line."""
        if self.folder is None:
            from tempfile import TemporaryDirectory

            self.folder = TemporaryDirectory(prefix="tpuprof")
        target = Path(self.folder.name) / f"{len(list(Path(self.folder.name).iterdir()))}.csv"
        with path.open("rb") as raw, target.open("wb") as file:
            packed = GzipText(raw) if raw.read(2) == GZIP else None
            raw.seek(0)
            self._write(packed or raw, file)
            if packed is not None and packed.damaged:
                self._lost("The compressed data are damaged.", file.tell())
        with target.open("rb") as file:
            return target, file.readline()

    def _write(self, source: GzipText | BinaryIO, file: BinaryIO) -> None:
        head = source.read(_PIECE)
        encoding = _UTF_16.get(head[:2]) or ("utf-16-le" if head[1:2] == b"\0" else "utf-8")
        pieces = self._pieces(source, head)
        separator = separator_of(head[: 2 * 4096].decode(encoding, "replace").lstrip("\ufeff").partition("\n")[0])
        if encoding == "utf-8" and separator == ",":
            file.writelines(pieces)
            return
        target = io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="", write_through=True)
        rows = csv.reader(_lines(pieces, encoding), delimiter=separator or ",")
        writer = csv.writer(target, lineterminator="\n")
        numeric: list[bool] = []
        try:
            for row in rows:
                if not numeric:
                    if "".join(row).lower() in ("sep=", f"sep={separator}"):
                        continue
                    numeric = [_NUMERIC.match(name) is not None for name in row]
                elif separator != ",":
                    row = [_COMMA.sub(r"\1.\2", cell) if is_number and _COMMA.fullmatch(cell) else cell
                           for cell, is_number in zip(row, [*numeric, *[False] * len(row)], strict=False)]  # fmt: skip
                writer.writerow(row)
        except csv.Error as error:
            self._lost(f"The table cannot be decoded ({error}).", -1)
        target.detach()

    def _pieces(self, source: GzipText | BinaryIO, head: bytes) -> Iterator[bytes]:
        written = 0
        while head:
            yield head
            written += len(head)
            if written > _MOST_TEXT:
                self._lost(f"More than {_MOST_TEXT >> 30} GiB of text.", written)
                return
            head = source.read(_PIECE)

    def _lost(self, what: str, offset: int) -> None:
        self.problems.append(Problem(Severity.ERROR, what, "What comes before is shown.", self._name, offset))


def _lines(pieces: Iterator[bytes], encoding: str) -> Iterator[str]:
    """Lines with their ends; bytes that are no UTF-8 are kept."""
    import codecs

    decoder = codecs.getincrementaldecoder(encoding)("surrogateescape" if encoding == "utf-8" else "replace")
    left = ""
    for piece in pieces:
        left += decoder.decode(piece)
        *lines, left = left.split("\n")
        for number, line in enumerate(lines):
            yield (line.lstrip("\ufeff") if number == 0 else line) + "\n"
    if left:
        yield left.lstrip("\ufeff")
