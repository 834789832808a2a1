"""Export of the explorer's table of events as CSV, JSON lines or Parquet, with its columns and order of rows.

Missing values, ``-`` on the screen, are empty in CSV and ``null`` in JSON and Parquet. Columns are named by their keys,
as in filters, ``--columns`` and data frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.events import numbers_in
from tpuprof_tui.analysis.index.ordering import has_column
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import filter_keys
from tpuprof_tui.analysis.selecting.session import ordered
from tpuprof_tui.analysis.selecting.state import Sort
from tpuprof_tui.errors import UsageError
from tpuprof_tui.formats.escape import csv_text, json_text, utf8_text
from tpuprof_tui.formats.rendering import Field, rendered_rows
from tpuprof_tui.model import INT_MISSING, Column, Lane, Profile, Vocabulary, is_missing
from tpuprof_tui.model.lane import Array, Rows
from tpuprof_tui.model.uniques import uniques

from .selection import RowPage

Ints = npt.NDArray[np.int64]
TextForm = Literal["jsonl", "csv"]

#: Number of rows that are rendered and written at a time.
SLICE: Final = 16_384
#: Computed column of the table: duration as a share of the sum of all exported durations.
SHARE: Final = Column(
    "share", "% of all", "% of all", "percent", "%", width=9, decimals=3,
    help="Duration over the sum of the durations of all rows of the table.",
)  # fmt: skip


class ByteSink(Protocol):
    """Binary output stream."""

    def write(self, data: bytes, /) -> Any:
        """Writes all of ``data``."""


def parse_columns(text: str, vocabulary: Vocabulary) -> tuple[Column, ...]:
    """Parses a list of columns, ``name,dur,...``: keys, aliases or names in files.

    Raises:
        UsageError: A column is unknown, or there are none.
    """
    keys = {**filter_keys(vocabulary), SHARE.key: SHARE}
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name.lower() not in keys]
    if unknown or not names:
        raise UsageError(f"There is no column {unknown[0] if unknown else text!r}.", _known_keys(vocabulary))
    return tuple(dict.fromkeys(keys[name.lower()] for name in names))


def parse_sort(text: str, vocabulary: Vocabulary) -> Sort:
    """Parses a sort order, ``dur`` or ``dur:desc``.

    Raises:
        UsageError: The text is malformed, or there is no such column.
    """
    name, _, way = text.partition(":")
    column = filter_keys(vocabulary).get(name.strip().lower())
    if column is None:
        raise UsageError(f"There is no column {name!r} to sort by.", _known_keys(vocabulary))
    if way not in ("", "asc", "desc"):
        raise UsageError(f"{text!r} is not a sort order.", "Write a column, or COLUMN:desc for the largest first.")
    return Sort(column.key, way == "desc")


def _known_keys(vocabulary: Vocabulary) -> str:
    return f"Columns: {', '.join(column.key for column in vocabulary.listed())}."


def known_columns(profile: Profile) -> tuple[Column, ...]:
    """Columns of the schema that at least one lane has."""
    columns = profile.vocabulary.columns
    return tuple(column for column in columns if any(has_column(profile, lane, column.key) for lane in profile.lanes))


# -- rows ---------------------------------------------------------------------


class TableRows(Struct, frozen=True, eq=False):
    """Rows of the table: event numbers (across all lanes of the profile) in order."""

    profile: Profile  #: The profile
    offsets: Ints  #: Number of the first event of each lane
    numbers: Ints  #: int64, event numbers in order
    whole: Ints | None = None  #: Event numbers before paging, whose total time shares refer to; None without paging

    def __len__(self) -> int:
        return len(self.numbers)

    def on(self, page: RowPage) -> TableRows:
        """The rows of a page."""
        return replace(self, numbers=self.numbers[page.take(len(self.numbers))], whole=self.numbers)

    def parts(self, size: int, of: Ints | None = None) -> Iterator[list[tuple[int, Ints, Ints]]]:
        """Splits the rows into parts of at most ``size`` rows, each grouped by lane.

        Args:
            size: Maximum number of rows per part.
            of: Event numbers to split; None: those of the table.

        Yields:
            For each part a list of (lane index, int64 rows of the lane, int64 positions of these rows in the part).
        """
        every = self.numbers if of is None else of
        for first in range(0, len(every), size):
            numbers = every[first : first + size]
            lanes = np.searchsorted(self.offsets, numbers, side="right") - 1
            part = []
            for lane in uniques(lanes).tolist():
                places = np.flatnonzero(lanes == lane)
                part.append((lane, numbers[places] - self.offsets[lane], places))
            yield part

    @property
    def total_ns(self) -> int:
        """Sum of all durations, ns, before paging."""
        return sum(
            int(np.sum(lane.take("end", rows) - lane.take("start", rows)))
            for part in self.parts(1 << 20, self.whole)
            for lane, rows in ((self.profile.lanes[number], rows) for number, rows, _ in part)
        )


def table_rows(
    query: Query, *, kind: str | None = None, on_host: bool = True, sort: Sort | None = None
) -> TableRows:  # fmt: skip
    """The selected rows of a table, sorted.

    Args:
        query: What is selected.
        kind: Only lanes of this kind; None: all.
        on_host: Whether lanes of the host count too.
        sort: Sort order; None: by lane, then start.
    """
    session = query.session
    lanes = {number for number, lane in enumerate(query.profile.lanes)
             if kind in (None, lane.kind) and (on_host or not lane.on_host)}  # fmt: skip
    numbers = numbers_in(session, query.scope, query.range, query.full_filter, lanes)
    return TableRows(query.profile, session.offsets, numbers if sort is None else ordered(session, numbers, sort))


# -- text ---------------------------------------------------------------------


def write_lines(
    rows: TableRows, render_lines: Mapping[int, Callable[[Rows, int], list[str]]], sink: ByteSink, size: int = SLICE,
    progress: Callable[[float], None] = lambda done: None,
) -> int:  # fmt: skip
    """Writes the lines of rows in order, ``size`` at a time; ``progress`` gets the share done. Returns their number.

    ``render_lines``: by lane, a function (rows, number of rows) that returns their lines.
    """
    written = 0
    for part in rows.parts(size):
        lines = np.empty(sum(len(places) for _, _, places in part), dtype=object)
        for lane, some, places in part:
            lines[places] = render_lines[lane](some, len(some))
        sink.write("".join(lines.tolist()).encode("utf-8"))
        written += len(lines)
        progress(written / len(rows))
    return written


def write_table(rows: TableRows, columns: Sequence[Column], sink: ByteSink, form: TextForm) -> int:
    """Writes columns of rows as CSV with a header, or as JSON lines; returns the number of rows.

    ``sink`` gets UTF-8, in parts of ``SLICE`` rows.
    """
    if form == "csv":
        sink.write((",".join(csv_text(column.key) for column in columns) + "\n").encode())
    total = rows.total_ns if SHARE in columns else 0
    opening, closing = ("", "\n") if form == "csv" else ("{", "}\n")
    render_lines = {}
    for number, lane in enumerate(rows.profile.lanes):
        if len(lane):
            fields = [
                _field(rows.profile, lane, column, index, form == "csv", total) for index, column in enumerate(columns)
            ]
            render_lines[number] = partial(rendered_rows, opening, fields, closing)
    return write_lines(rows, render_lines, sink)


def _field(profile: Profile, lane: Lane, column: Column, index: int, csv: bool, total: int) -> Field | str:
    """Rendering field of a column in a lane; a constant string if the lane does not have the column."""
    lead = ("," if csv else ", ") if index else ""
    absent = lead
    if not csv:
        lead += f"{json_text(column.key)}: "
        absent = f"{lead}null"
    values = column_source(profile, lane, column, total)
    if values is None:
        return absent
    if column.kind == "text":
        return Field(values, lead, absent, profile.strings[column.key], csv_text if csv else json_text)
    form = f"%.{column.decimals}f%%" if column.kind == "percent" and csv else "%s"
    return Field(values, lead, absent, form=form, decimals=column.decimals)


def column_source(profile: Profile, lane: Lane, column: Column, total: int) -> Callable[[Rows], Array] | None:
    """Function that returns the values of a column for rows of a lane; None if the lane does not have the column.

    ``total``: sum of all exported durations, ns, for shares.
    """
    if column is SHARE:
        return partial(_shares, lane, total)
    return partial(lane.take, column.key) if has_column(profile, lane, column.key) else None


def _shares(lane: Lane, total: int, rows: Rows) -> Array:
    start = lane.take("start", rows)
    return np.where(start == INT_MISSING, np.nan, 100.0 * (lane.take("end", rows) - start) / max(total, 1))


#: Number of rows of a row group, the unit that Parquet readers skip and load.
GROUP: Final = 65_536


def write_parquet(rows: TableRows, columns: Sequence[Column], sink: ByteSink) -> int:
    """Writes columns of rows as Parquet; returns the number of rows.

    Types: int64, float64 (also percentages), and dictionary-encoded strings.

    Raises:
        UsageError: The package pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError("Parquet needs the package pyarrow.", "pip install pyarrow, or write CSV.") from None
    total = rows.total_ns if SHARE in columns else 0
    strings = rows.profile.strings
    texts = {column.key: list(strings.get(column.key, ())) for column in columns if column.kind == "text"}
    kinds = {"float": pyarrow.float64(), "percent": pyarrow.float64(),
             "text": pyarrow.dictionary(pyarrow.int32(), pyarrow.string())}  # fmt: skip
    schema = pyarrow.schema([(column.key, kinds.get(column.kind, pyarrow.int64())) for column in columns])
    stream = pyarrow.PythonFile(_Counted(sink), "w")
    with parquet.ParquetWriter(stream, schema) as writer:
        for part in rows.parts(GROUP):
            arrays = [_arrow(pyarrow, rows.profile, column, part, total, texts.get(column.key)) for column in columns]
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))
    return len(rows)


def _arrow(pyarrow: Any, profile: Profile, column: Column, part: Sequence[tuple[int, Ints, Ints]], total: int,
           texts: Sequence[str] | None) -> Any:  # fmt: skip
    count = sum(len(places) for _, _, places in part)
    kind: Any = np.int32 if texts is not None else np.float64 if column.kind in ("float", "percent") else np.int64
    values, missing = np.zeros(count, dtype=kind), np.ones(count, dtype=np.bool_)
    for number, some, places in part:
        lane = profile.lanes[number]
        source = column_source(profile, lane, column, total)
        if source is not None:
            found = source(some)
            gone = is_missing(found) if found.dtype.kind != "f" else ~np.isfinite(found)
            if texts is not None:
                gone = gone | (found >= len(texts))
            values[places], missing[places] = np.where(gone, found.dtype.type(0), found), gone
    if texts is None:
        return pyarrow.array(values, mask=missing)
    codes = pyarrow.array(values, mask=missing)
    return pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(list(map(utf8_text, texts)), pyarrow.string()))


class _Counted:
    """Adapts a sink to the file interface that pyarrow needs, including ``tell``."""

    closed = False

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self._written = 0

    def write(self, data: Any) -> int:
        self._sink.write(bytes(data))
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass  # the caller closes the sink
