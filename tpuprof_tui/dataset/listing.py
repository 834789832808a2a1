"""List of the captures of a data set with their figures: columns, filter, order, and figures over days."""

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

FigureKind = Literal["us", "ns", "share", "number"]
#: Title and kind of the figures to show, if captures have them. Of figures with one title the first one is used.
_FIGURES: Final[Mapping[str, tuple[str, FigureKind]]] = {
    "overview.total_us": ("total", "us"), "overview.step_us": ("step", "us"), "steps.median_us": ("step", "us"),
    "units.mean_utilisation": ("mean util", "share"), "overview.imbalance": ("imbalance", "number"),
    "overview.exposed_transfer_us": ("exposed", "us"), "streams.exposed_communication_us": ("exposed comm", "us"),
}  # fmt: skip
#: File that caches the data of the list for all captures; query engines ignore it.
LIST: Final = "_tpuprof.list"
#: Name of the pseudo figure for the capture itself (number of problems) in this file.
_ITSELF: Final = ""
#: Maximum number of figure columns, of these for the longest kernels, and of captures.
_MOST_FIGURES: Final = 6
_KERNELS: Final = 2
_MOST: Final = 10_000


class ListColumn(Struct, frozen=True):
    """A column of the list."""

    title: str  #: Header
    kind: FigureKind  #: ``us``, ``ns``, ``share`` or ``number``


class ListedCapture(Struct, frozen=True):
    """A capture in the list."""

    path: str  #: Path when it was read
    words: str  #: Text that filters search: path, source, chip, device, day
    day: str  #: Day as text; empty: unknown
    device: str  #: Device as text; empty: unknown
    problems: int  #: Number of problems
    values: tuple[float | None, ...]  #: One value per figure; None: unknown


class Listing(Struct, frozen=True):
    """The captures of a data set, by day and path."""

    figures: tuple[ListColumn, ...]  #: The columns
    rows: tuple[ListedCapture, ...]  #: The captures
    more: int = 0  #: Number of captures beyond `_MOST`, which are left out

    @classmethod
    def read(cls, out: str | os.PathLike[str]) -> Listing:
        """Reads the captures of a data set.

        Raises:
            UnreadableError: There is no data set, or one of its files was deleted by hand.
            MissingPackageError: pyarrow is not installed.
        """
        manifest = Manifest.read(out)
        table = _listed(manifest)
        captures, ids = _codes(table, "capture")
        codes, names = _codes(table, "figure")
        values = np.concatenate([np.zeros(0), *(_numbers(each, np.float64) for each in table["value"].chunks)])
        values = np.nan_to_num(values)
        # ignore captures that were removed since the list file was written
        present = np.array([each in manifest.owners for each in ids], np.bool_)[captures]
        totals = np.bincount(codes[present], values[present], len(names))
        kernels = [code for code, name in enumerate(names) if name.startswith("kernel:") and totals[code] > 0]
        longest = sorted(kernels, key=lambda code: (-totals[code], names[code]))[:_KERNELS]
        wanted = [(names.index(key), ListColumn(*shown)) for key, shown in _FIGURES.items() if key in names]
        wanted += [(code, ListColumn(names[code].partition(":")[2], "ns")) for code in longest]
        measured: dict[ListColumn, dict[int, float]] = {}
        for code, figure in wanted:
            rows = present & (codes == code)
            found = dict(zip(captures[rows].tolist(), values[rows].tolist(), strict=True))
            if found:
                measured[figure] = found | measured.get(figure, {})
        figures: list[ListColumn] = []
        columns: list[dict[int, float]] = []
        room = _MOST_FIGURES - len(longest)
        for figure, column in measured.items():
            # skip constant columns and duplicates of other columns: they do not distinguish captures
            differs = (len(set(column.values())) > 1 or len(column) == 1) and column not in columns
            if differs and (figure.kind == "ns" or len(figures) < room):
                figures.append(figure)
                columns.append(column)
        itself = present & (codes == names.index(_ITSELF)) if _ITSELF in names else present
        facts = [[texts[code] for code in column[itself].tolist()]
                 for column, texts in (_codes(table, name) for name in (*FOLDERS, "chip"))]  # fmt: skip
        found_rows = []
        for capture, problems, source, day, device, chip in zip(captures[itself].tolist(), values[itself].tolist(),
                                                                *facts, strict=True):  # fmt: skip
            path = manifest.owners[ids[capture]]
            words = " ".join(filter(None, (path, source, chip, device, day)))
            known = tuple(column.get(capture) for column in columns)
            found_rows.append(ListedCapture(path, words, day, device, int(problems), known))
        found_rows.sort(key=lambda row: (row.day, row.path))
        return cls(tuple(figures), tuple(found_rows[:_MOST]), max(len(found_rows) - _MOST, 0))

    def shown(self, words: str = "", column: int = -1, *, down: bool = True) -> list[ListedCapture]:
        """The captures that contain all words, sorted by a figure; captures without a value come last.

        Args:
            words: Words to search, case-insensitive; empty: all captures pass.
            column: Index of the figure; -1: by day and path.
            down: Whether the largest (newest) come first.
        """
        wanted = words.casefold().split()
        rows = [row for row in self.rows if all(word in row.words.casefold() for word in wanted)]
        if column < 0:
            return rows[::-1] if down else rows
        known = [row for row in rows if row.values[column] is not None]
        known.sort(key=lambda row: row.values[column] or 0.0, reverse=down)
        return [*known, *(row for row in rows if row.values[column] is None)]


def shortened_paths(paths: Sequence[str], width: int) -> list[str]:
    """Shortens paths to ``width`` cells by removing common parts, if any path is wider.

    First removes common leading and trailing folders, then common prefixes and suffixes of names of each level (several
    equal levels become one ellipsis), then truncates the middle.
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
    return [middle_cut(re.sub(rf"{ELLIPSIS}(/{ELLIPSIS}(?=/|$))+", ELLIPSIS, "/".join(part)), width) for part in parts]


def _without_common(names: Sequence[str]) -> list[str]:
    """Replaces common leading and trailing words of names by an ellipsis.

    A single name is unchanged; several equal names become an ellipsis each.
    """
    if len(set(names)) == 1:
        return [ELLIPSIS] * len(names) if len(names) > 1 else list(names)
    first = names[0]
    begin = len(re.sub(r"[^\W_]+$", "", first[: _in_common(names)]))
    end = len(re.sub(r"[^\W_]+$", "", first[::-1][: _in_common([name[begin:][::-1] for name in names])]))
    prefix, suffix = ELLIPSIS if begin > 1 else first[:begin], ELLIPSIS if end > 1 else first[len(first) - end :]
    return [prefix + name[begin : len(name) - end] + suffix for name in names]


def _in_common(sequences: Sequence[Any]) -> int:
    least, most = min(sequences), max(sequences)
    return next((index for index, both in enumerate(zip(least, most, strict=False)) if both[0] != both[1]),
                min(len(least), len(most)))  # fmt: skip


def over_days(rows: Sequence[ListedCapture], column: int) -> list[float]:
    """Median of a figure on each day with values, in the order of days."""
    days: dict[str, list[float]] = {}
    for row in rows:
        value = row.values[column]
        if value is not None and row.day:
            days.setdefault(row.day, []).append(value)
    return [statistics.median(days[day]) for day in sorted(days)]


def spark_line(values: Sequence[float], width: int, levels: str) -> str:
    """Sparkline of values, scaled from the smallest to the largest; each cell shows the mean of its values.

    Args:
        values: Values in order.
        width: Number of cells; at most one per value is used.
        levels: Characters from empty to full; the first, a blank, is not used for values.
    """
    if not values or width < 1:
        return ""
    least, most = min(values), max(values)
    span = (most - least) or 1.0
    count = min(width, len(values))
    bounds = [index * len(values) // count for index in range(count + 1)]
    means = (statistics.fmean(values[first:last]) for first, last in pairwise(bounds))
    return "".join(levels[1 + round((mean - least) / span * (len(levels) - 2))] for mean in means)


def write_list(manifest: Manifest) -> None:
    """Writes the data of the list for all captures into one file, so that the list opens fast."""
    import pyarrow
    from pyarrow import compute

    from .build import write_table

    try:
        table = _listed(manifest)
    except UnreadableError:
        # a file is lost, and so is its capture: the list is read from the other files until it is removed
        return
    present = compute.is_in(table["capture"].cast(pyarrow.string()), pyarrow.array(list(manifest.owners)))
    write_table(table.filter(present), manifest.store, LIST)


def _listed(manifest: Manifest) -> Any:
    """Data of the list for all captures, possibly including removed ones: an Arrow table without nulls.

    Columns: capture, source, day, device, chip, figure and value. The figure `_ITSELF` represents the capture; its
    value is the number of problems. The table is read from the list file of the last build, and for captures that this
    does not contain from their own files. Avoids pyarrow functions that import pandas, which is slower than reading.
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
        try:
            with ThreadPoolExecutor(AT_A_TIME) as pool:
                found = pool.map(lambda file: _rows_of(manifest, file, new), files)
                columns = zip(*(row for rows in found for row in rows), strict=True)
        except (FileNotFoundError, UnreadableError):
            manifest.check_files(("captures", "figures"))
            raise
        arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        parts.append(pyarrow.table(arrays, schema=schema))
    return pyarrow.concat_tables(parts) if parts else schema.empty_table()


def _rows_of(manifest: Manifest, file: str, wanted: set[str]) -> list[tuple[Any, ...]]:
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
    """A dictionary-encoded column as int64 codes, common to all chunks, and the texts by code."""
    texts: dict[str, int] = {}
    parts = [np.zeros(0, np.int64)]
    for chunk in table[name].chunks:
        own = np.array([texts.setdefault(text, len(texts)) for text in chunk.dictionary.to_pylist()], np.int64)
        parts.append(own[_numbers(chunk.indices, np.int32)])
    return np.concatenate(parts), list(texts)


def _numbers(array: Any, kind: Any) -> npt.NDArray[Any]:
    """The values of a numeric Arrow array without nulls, as a numpy array."""
    return np.frombuffer(array.buffers()[1] or b"", kind)[array.offset : array.offset + len(array)]
