"""Rewrites tables that are packed, in UTF-16, or separated by semicolons or tabs as plain csv, which `CsvTable` reads.

Spreadsheets write such files; in some languages with decimal commas.
"""

from __future__ import annotations

import codecs
import csv
import io
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import Problem, Severity
from tpuprof_tui.sources.chrome.inflate import PackedText, text_of

from .content import names_separator
from .csv_table import LONGEST_ROW, separator_of

_PIECE: Final = 1 << 20
_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
#: By the place of the first zero in a text of Latin letters without a mark.
_ZERO_AT: Final = {0: "utf-16-be", 1: "utf-16-le"}
#: Columns of numbers, and numbers with a decimal comma.
_NUMERIC: Final = lazy_pattern(r".*(\((us|ms|ns|s|%|[KMG]?B|[KMG]B/s)\)|_ratio|_rate|_cycles|Ratio|cycles)")
_COMMA: Final = lazy_pattern(r"([-+]?\d+),(\d+(?:[eE][-+]?\d+)?\s*)")


class Rewriter:
    """Rewrites the files of a table, of that name; ``problems``: what was lost."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._written = 0
        # deleted with this object
        self._folder = Path(tempfile.mkdtemp(prefix="tpuprof"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self.problems: list[Problem] = []

    def rewritten(self, path: Path) -> tuple[Path, bytes]:
        """A plain csv file of the same rows, and its first line."""
        self._written += 1
        target = self._folder / f"{self._written}.csv"
        with path.open("rb") as raw, target.open("wb") as file:
            text = text_of(path, raw)
            self._write(text, file)
            if isinstance(text, PackedText) and text.fault is not None:
                what, done = text.fault
                self.problems.append(Problem(Severity.ERROR, what, done, self._name, file.tell()))
        with target.open("rb") as file:
            return target, file.readline()

    def _write(self, source: PackedText | BinaryIO, file: BinaryIO) -> None:
        head = source.read(_PIECE)
        encoding = "utf-16" if head[:2] in _MARKS else _ZERO_AT.get(head[:64].find(b"\0"), "utf-8-sig")
        pieces = chain((head,), iter(lambda: source.read(_PIECE), b""))
        separator = separator_of(head[: 2 * 4096].decode(encoding, "replace").partition("\n")[0])
        if encoding == "utf-8-sig" and separator == "," and not names_separator(head):
            file.writelines(pieces)
            return
        csv.field_size_limit(LONGEST_ROW)
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
            self.problems.append(Problem(Severity.ERROR, f"The table cannot be decoded ({error}).",
                                         "What comes before is shown.", self._name))  # fmt: skip
        target.detach()


def _lines(pieces: Iterator[bytes], encoding: str) -> Iterator[str]:
    """Lines with their ends; bytes that are no UTF-8 are kept."""
    begun: list[str] = []
    errors = "surrogateescape" if encoding == "utf-8-sig" else "replace"
    for text in codecs.iterdecode(pieces, encoding, errors):
        line, *lines = text.split("\n")
        begun.append(line)
        if lines:
            yield "".join(begun) + "\n"
            yield from (f"{each}\n" for each in lines[:-1])
            begun = lines[-1:]
    if any(begun):
        yield "".join(begun)
