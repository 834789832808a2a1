"""The captures of a data set as a table of figures: columns, filter, order, and each figure over days."""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final, Literal
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.text import ELLIPSIS, cell_len, middle_cut

from .manifest import Manifest
from .schema import FOLDERS, UNKNOWN, needs_pyarrow
from .store import AT_A_TIME

Kind = Literal["us", "ns", "share", "number"]
#: Figures that are shown where captures have them: title and kind. Of those with one title a capture has the first.
_FIGURES: Final[Mapping[str, tuple[str, Kind]]] = {
    "overview.total_us": ("total", "us"), "overview.step_us": ("step", "us"), "steps.median_us": ("step", "us"),
    "units.mean_utilisation": ("mean util", "share"), "overview.imbalance": ("imbalance", "number"),
    "overview.exposed_transfer_us": ("exposed", "us"), "streams.exposed_communication_us": ("exposed comm", "us"),
}  # fmt: skip
#: What the list needs of all captures, in one file, which engines pass over.
LIST: Final = "_tpuprof.list"
#: What stands there for the capture itself, among figures.
_ITSELF: Final = ""
#: Columns of figures at most, those of the longest kernels among them, and captures.
_MOST_FIGURES: Final = 6
_KERNELS: Final = 2
_MOST: Final = 10_000


class Figure(Struct, frozen=True):
    """A column.

    Attributes:
        title: What people call it.
        kind: ``us``, ``ns``, ``share`` or ``number``.
    """

    title: str
    kind: Kind


class Row(Struct, frozen=True):
    """A capture.

    Attributes:
        path: Where it lay.
        words: What a filter looks in: path, source, chip, device, day.
        day: As text; empty: not known.
        device: As text; empty: not known.
        problems: How many it has.
        values: One for each figure; None: not known.
    """

    path: str
    words: str
    day: str
    device: str
    problems: int
    values: tuple[float | None, ...]


class Listing(Struct, frozen=True):
    """The captures of a data set, by day and path.

    Attributes:
        figures: The columns.
        rows: The captures.
        more: How many are not here.
    """

    figures: tuple[Figure, ...]
    rows: tuple[Row, ...]
    more: int = 0

    @classmethod
    def read(cls, out: str | os.PathLike[str]) -> Listing:
        """The captures of a data set.

        Raises:
            UnreadableError: There is no data set.
            MissingPackageError: pyarrow is not installed.
        """
        manifest = Manifest.read(out)
        table = _listed(manifest)
        captures, ids = _codes(table, "capture")
        codes, names = _codes(table, "figure")
        values = np.concatenate([np.zeros(0), *(_numbers(each, np.float64) for each in table["value"].chunks)])
        values = np.nan_to_num(values)
        # rows of captures that went since the copy was written count no more
        there = np.array([each in manifest.owners for each in ids], np.bool_)[captures]
        totals = np.bincount(codes[there], values[there], len(names))
        kernels = [code for code, name in enumerate(names) if name.startswith("kernel:") and totals[code] > 0]
        longest = sorted(kernels, key=lambda code: (-totals[code], names[code]))[:_KERNELS]
        asked = [(names.index(key), Figure(title, kind)) for key, (title, kind) in _FIGURES.items() if key in names]
        asked += [(code, Figure(names[code].partition(":")[2], "ns")) for code in longest]
        measured: dict[Figure, dict[int, float]] = {}
        for code, figure in asked:
            rows = there & (codes == code)
            found = dict(zip(captures[rows].tolist(), values[rows].tolist(), strict=True))
            if found:
                measured[figure] = found | measured.get(figure, {})
        figures: list[Figure] = []
        columns: list[dict[int, float]] = []
        room = _MOST_FIGURES - len(longest)
        for figure, column in measured.items():
            # what is the same everywhere, or the same as another, tells captures from one another no better
            differs = (len(set(column.values())) > 1 or len(column) == 1) and column not in columns
            if differs and (figure.kind == "ns" or len(figures) < room):
                figures.append(figure)
                columns.append(column)
        own = there & (codes == names.index(_ITSELF)) if _ITSELF in names else there
        facts = [[texts[code] for code in column[own].tolist()]
                 for column, texts in (_codes(table, name) for name in (*FOLDERS, "chip"))]  # fmt: skip
        found_rows = []
        for capture, problems, source, day, device, chip in zip(captures[own].tolist(), values[own].tolist(), *facts,
                                                                strict=True):  # fmt: skip
            path = manifest.owners[ids[capture]]
            words = " ".join(filter(None, (path, source, chip, device, day)))
            known = tuple(column.get(capture) for column in columns)
            found_rows.append(Row(path, words, day, device, int(problems), known))
        found_rows.sort(key=lambda row: (row.day, row.path))
        return cls(tuple(figures), tuple(found_rows[:_MOST]), max(len(found_rows) - _MOST, 0))

    def shown(self, words: str = "", column: int = -1, *, down: bool = True) -> list[Row]:
        """The captures that hold all words, in the order of a figure; those that do not know it come last.

        Args:
            words: What to look for, in any case; empty: all pass.
            column: The figure; -1: by day and path.
            down: Largest (newest) first.
        """
        wanted = words.casefold().split()
        rows = [row for row in self.rows if all(word in row.words.casefold() for word in wanted)]
        if column < 0:
            return rows[::-1] if down else rows
        known = [row for row in rows if row.values[column] is not None]
        known.sort(key=lambda row: row.values[column] or 0.0, reverse=down)
        return [*known, *(row for row in rows if row.values[column] is None)]


def told_apart(paths: Sequence[str], width: int) -> list[str]:
    """Paths in so many cells, without what they have in common where one is wider: what tells them apart stays.

    Folders go that all paths begin or end with, then what all names of one level begin or end with, then the middle.
    """
    if all(cell_len(path) <= width for path in paths):
        return list(paths)
    parts = [path.split("/") for path in paths]
    fewest = min(map(len, parts)) - 1
    first = min(_in_common(parts), fewest)
    last = min(_in_common([part[::-1] for part in parts]), fewest - first)
    levels: dict[int, list[list[str]]] = {}
    for part in parts:
        del part[:first], part[len(part) - last :]
        levels.setdefault(len(part), []).append(part)
    if any(cell_len("/".join(part)) > width for part in parts):
        for alike in levels.values():
            for level, names in enumerate(zip(*alike, strict=True)):
                for part, name in zip(alike, _without_common(names), strict=True):
                    part[level] = name
    return [middle_cut("/".join(part), width) for part in parts]


def _without_common(names: Sequence[str]) -> list[str]:
    """Names without the words that all begin or end with; of one name, or equal ones, all that fits."""
    if len(set(names)) == 1:
        return [ELLIPSIS] * len(names) if len(names) > 1 else list(names)
    first = names[0]
    begin = len(re.sub(r"[^\W_]+$", "", first[: _in_common(names)]))
    end = len(re.sub(r"[^\W_]+$", "", first[::-1][: _in_common([name[begin:][::-1] for name in names])]))
    before, behind = ELLIPSIS if begin > 1 else first[:begin], ELLIPSIS if end > 1 else first[len(first) - end :]
    return [before + name[begin : len(name) - end] + behind for name in names]


def _in_common(sequences: Sequence[Any]) -> int:
    """How many of their first elements are the same in all of them."""
    least, most = min(sequences), max(sequences)
    return next((place for place, both in enumerate(zip(least, most, strict=False)) if both[0] != both[1]),
                min(len(least), len(most)))  # fmt: skip


def over_days(rows: Sequence[Row], column: int) -> list[float]:
    """The median of a figure on each day that has some, in the order of days."""
    days: dict[str, list[float]] = {}
    for row in rows:
        value = row.values[column]
        if value is not None and row.day:
            days.setdefault(row.day, []).append(value)
    return [statistics.median(days[day]) for day in sorted(days)]


def spark_line(values: Sequence[float], width: int, levels: str) -> str:
    """A line of ``width`` cells: each cell the level of the values there, from the least to the most.

    Args:
        values: In their order.
        width: Cells; fewer where there are fewer values.
        levels: Characters from nothing to full; the first, a blank, stands for no value.
    """
    if not values or width < 1:
        return ""
    least, most = min(values), max(values)
    span = (most - least) or 1.0
    count = min(width, len(values))
    bounds = [place * len(values) // count for place in range(count + 1)]
    means = (statistics.fmean(values[first:last]) for first, last in pairwise(bounds))
    return "".join(levels[1 + round((mean - least) / span * (len(levels) - 2))] for mean in means)


def keep_list(manifest: Manifest) -> None:
    """Writes what the list needs of all captures into one file, so that the list is there at once."""
    import pyarrow
    from pyarrow import compute

    from .build import write_table

    table = _listed(manifest)
    there = compute.is_in(table["capture"].cast(pyarrow.string()), pyarrow.array(list(manifest.owners)))
    write_table(table.filter(there), manifest.store, LIST)


def _listed(manifest: Manifest) -> Any:
    """What the list needs of all captures, also of some that are gone: an Arrow table without nulls.

    Its columns are capture, source, day, device, chip, figure and value. The figure `_ITSELF` stands for the capture,
    with the number of its problems. It is read from the copy that the last build left, and of captures that the copy
    does not have from their own files. The copy is read by nothing that imports pandas, which takes longer than that.
    """
    needs_pyarrow()
    import pyarrow
    from pyarrow import parquet

    texts = ("capture", *FOLDERS, "chip", "figure")
    kind = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    schema = pyarrow.schema([*((name, kind) for name in texts), ("value", pyarrow.float64())])
    parts = []
    new = {each.capture for each in manifest.entries.values() if each.files and each.readable}
    with suppress(OSError, UnreadableError, pyarrow.ArrowException), manifest.store.open(LIST) as stream:
        copy = parquet.ParquetFile(stream, read_dictionary=texts).read().select(schema.names)
        if copy.schema.equals(schema) and not any(column.null_count for column in copy.columns):
            parts.append(copy)
            new -= {capture for chunk in copy["capture"].chunks for capture in chunk.dictionary.to_pylist()}
    files = sorted({file for capture in new for file in manifest.entries[manifest.owners[capture]].files
                    if file.startswith(("captures/", "figures/"))})  # fmt: skip
    if files:
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            found = pool.map(lambda file: _rows_of(manifest, file, new), files)
            columns = zip(*(row for rows in found for row in rows), strict=True)
        arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        parts.append(pyarrow.table(arrays, schema=schema))
    return pyarrow.concat_tables(parts) if parts else schema.empty_table()


def _rows_of(manifest: Manifest, file: str, wanted: set[str]) -> list[tuple[Any, ...]]:
    """What the list needs of some captures, from a file of the table of captures or of that of figures."""
    from pyarrow import parquet

    table, *folders, _ = file.split("/")
    values = [unquote(folder.partition("=")[2]) for folder in folders]
    where = ["" if value == UNKNOWN else value for value in values]
    keys = ("capture", "chip", "problems") if table == "captures" else ("capture", "figure", "kind", "value")
    with manifest.store.open(file) as stream:
        columns = parquet.ParquetFile(stream).read(list(keys)).to_pydict().values()
    if table == "captures":
        return [(capture, *where, chip or "", _ITSELF, problems or 0)
                for capture, chip, problems in zip(*columns, strict=True) if capture in wanted]  # fmt: skip
    return [(capture, *where, "", figure, value) for capture, figure, kind, value in zip(*columns, strict=True)
            if capture in wanted and (kind == "kernel" or figure in _FIGURES)]  # fmt: skip


def _codes(table: Any, name: str) -> tuple[npt.NDArray[np.int64], list[str]]:
    """A column of texts as codes, and what they stand for."""
    texts: dict[str, int] = {}
    parts = [np.zeros(0, np.int64)]
    for chunk in table[name].chunks:
        own = np.array([texts.setdefault(text, len(texts)) for text in chunk.dictionary.to_pylist()], np.int64)
        parts.append(own[_numbers(chunk.indices, np.int32)])
    return np.concatenate(parts), list(texts)


def _numbers(array: Any, kind: Any) -> npt.NDArray[Any]:
    """The numbers of an Arrow array without nulls."""
    return np.frombuffer(array.buffers()[1] or b"", kind)[array.offset : array.offset + len(array)]
