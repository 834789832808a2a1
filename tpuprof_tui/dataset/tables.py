"""Converts one capture to the Arrow tables of a data set, column by column from the columns of its lanes.

`partitions` needs only a path, so that any engine that can map a Python function over paths can build a data set:
processes of this machine, or workers of a cluster.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from tpuprof_tui import __version__
from tpuprof_tui.analysis.index.ordering import has_column
from tpuprof_tui.errors import NO_MEMORY, TpuprofError, UnreadableError
from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.formats.files import WriteError
from tpuprof_tui.model import INT_MISSING, Activity, Lane, Profile, Role, Severity, is_missing
from tpuprof_tui.model.columns import COUNTERS, Column
from tpuprof_tui.sources.catalog import Catalog

from .captures import local_copy
from .schema import FIELDS, arrow_schema, arrow_types, needs_pyarrow, origin

if TYPE_CHECKING:
    from tpuprof_tui.analysis.query import Query
    from tpuprof_tui.sources.source import Source

#: Number of rows of a record batch and of a row group, the unit that Parquet readers skip and load.
GROUP: Final = 65_536
#: The year 2100, ns since 1970; later times are clipped.
_LATEST: Final = 4_102_444_800 * 10**9
#: Keys of columns in sources, by column of the table of events.
_COMMON: Final = {"name": "name", "category": "type", "engine": "engine", "unit": "core", "order": "order",
                  "start": "start", "end": "end", "duration": "duration", "step": "step", "scope": "scope",
                  "kernel": "kernel", "bytes": "bytes"}  # fmt: skip
#: Columns whose codes are members of enumerations.
_ENUMS: Final = {"activity": Activity, "role": Role}
#: Missing value and type of integer columns.
_INTEGER: Final = (INT_MISSING, np.int64)
#: Tables of views (table key by view id) whose cells become figures; they have few rows in any capture.
_TABLES: Final = {"units": "units", "lanes": "kinds"}
#: Kind of figures by the view that breaks down work.
_PARTS: Final = {"kernels": "kernel", "operations": "operation", "operators": "operation"}


#: Values of the partition columns, in the order of `FOLDERS`; None: unknown.
Folders = tuple[str | None, ...]


class Tables(Struct, frozen=True):
    """The tables of one capture."""

    capture: str  #: Identity (hash of its contents)
    folders: Folders  #: Values of the partition columns
    tables: dict[str, Any]  #: Arrow tables by name; only ``problems`` if the capture could not be read
    readable: bool  #: Whether it could be read
    fetched: bool = True  #: Whether all its files could be accessed; if not, the next build tries again
    internal_error: str = ""  #: Type and location of a bug in this package that occurred; empty: none


#: Consumer of the events of a capture: gets its identity, partition values, and a reader of Arrow record batches.
Consumer = Callable[[str, Folders, Any], Any]


class CachingCatalog(Catalog):
    """Catalog that caches the source and the files of paths; to be used for one capture."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[str, Source | None] = {}
        self._files: dict[str, list[Path]] = {}

    def source_of(self, path: str | os.PathLike[str]) -> Source | None:
        """The source that opens a path; None if no source does."""
        key = os.fspath(path)
        if key not in self._found:
            self._found[key] = super().source_of(path)
        return self._found[key]

    def files(self, path: str | os.PathLike[str]) -> list[Path]:
        """The files of a profile; for other paths, the path itself."""
        key = os.fspath(path)
        if key not in self._files:
            self._files[key] = super().files(path)
        return self._files[key]


def partitions(path: str | os.PathLike[str], consume: Consumer | None = None, catalog: Catalog | None = None) -> Tables:
    """Reads a capture and converts it to Arrow tables with the columns of `FIELDS`.

    An unreadable capture raises no error but gives a row in ``problems`` with severity ``fatal``.

    Args:
        path: Path or address of the capture.
        consume: Consumes the events; its result becomes the table ``events``. None: a table in memory.
        catalog: The sources.

    Raises:
        MissingPackageError: pyarrow, or the package for the address, is not installed.
        WriteError: ``consume`` could not write.
    """
    needs_pyarrow()
    given_path = os.fspath(path)
    try:
        with local_copy(path) as local_path:
            read_all: Consumer = lambda capture, folders, batches: batches.read_all()  # noqa: E731
            return _tables(local_path, given_path, consume or read_all, catalog or CachingCatalog())
    except UnreadableError as error:
        capture = _identity_of_path(given_path)
        return Tables(capture, (None, _day(0), None), _fatal(capture, given_path, error.message), False, fetched=False)


def _tables(path: str, given_path: str, consume: Consumer, catalog: Catalog) -> Tables:
    files = catalog.files(path)
    device, call = catalog.device_and_call(path)
    capture = _identity(path, given_path, files, (device, call))
    # files that cannot be read now, such as for lack of permission, may be readable later without having changed
    fetched = capture != _identity_of_path(given_path)
    source = catalog.source_of(path)
    states = list(map(_size_and_change, files))
    newest = max((changed for _, changed in states), default=0)
    folders = (None if source is None else source.id, _day(newest), None if device is None else str(device))
    try:
        from tpuprof_tui.analysis.query import query_of
        from tpuprof_tui.views.report import total_ns

        query = query_of(catalog.open(path, {}))
        profile = query.profile
        problems = problem_rows(profile)
        facts, fault = _facts(query, problems)
        figures = [*facts, *_work(query)]
        row = {
            "capture": capture, "path": given_path, "name": profile.name, "chip": profile.device.chip or None,
            "mode": profile.recording.name or None, "call": call, "changed_ns": newest, "epoch_ns": profile.wall_ns,
            "duration_ns": total_ns(query.session) if profile.timed else None, "units": len(profile.units),
            "lanes": sum(len(lane) > 0 for lane in profile.lanes), "events": profile.event_count,
            "problems": len(problems), "errors": sum(each.severity == Severity.ERROR for each in profile.problems),
            "bytes": sum(size for size, _ in states), "tpuprof": __version__,
        }  # fmt: skip
        folders = (profile.vocabulary.source, _day(newest if profile.wall_ns is None else profile.wall_ns), folders[2])
        tables = {
            "captures": rows_to_arrow("captures", [row]),
            "figures": rows_to_arrow("figures", [{"capture": capture, **each} for each in figures]),
            "events": consume(capture, folders, event_batches(profile, capture)),
        }  # fmt: skip
    except (ImportError, WriteError):
        raise
    # one unreadable capture must not end the build
    except Exception as error:
        message, fault = _message_and_location(error)
        fatal = _fatal(capture, given_path, message.replace(path, given_path))
        return Tables(capture, folders, fatal, False, fetched, fault)
    if problems:
        about = {"capture": capture, "path": given_path}
        tables["problems"] = rows_to_arrow("problems", [{**about, **each} for each in problems])
    return Tables(capture, folders, tables, True, fetched, fault)


def _message_and_location(error: Exception) -> tuple[str, str]:
    """Message for an error; and for bugs of this package the type and location, empty for other errors."""
    if isinstance(error, TpuprofError):
        return error.message, ""
    if isinstance(error, MemoryError):
        return NO_MEMORY, ""
    if isinstance(error, OSError):
        return f"It cannot be read: {(error.strerror or type(error).__name__).lower()}.", ""
    from tpuprof_tui.crash_log import type_and_location

    fault = type_and_location(error)
    return f"Internal error of tpuprof: {fault}.", fault


def _fatal(capture: str, path: str, message: str) -> dict[str, Any]:
    row = {"capture": capture, "path": path, "severity": "fatal", "what": message, "count": 1,
           "done": "It is not in any other table."}  # fmt: skip
    return {"problems": rows_to_arrow("problems", [row])}


def _identity(path: str, given_path: str, files: Sequence[Path], device_and_call: tuple[int | None, int | None]) -> str:
    """Hash of the names and contents of a capture's files, and of the device and call from its name.

    Returns:
        24 hexadecimal digits; if a file cannot be read or is no regular file, the hash of the path.
    """
    hashed = hashlib.blake2b(repr(device_and_call).encode(), digest_size=12)
    root = Path(path)
    inside = root.is_dir()
    try:
        for file in files:
            if not file.is_file():
                # missing, or a pipe or a device, which may never end
                return _identity_of_path(given_path)
            name = os.path.relpath(file, root) if inside else file.name
            hashed.update(f"{name!a} {file.stat().st_size};".encode())
            with file.open("rb") as stream:
                while part := stream.read(1 << 20):
                    hashed.update(part)
    except OSError:
        return _identity_of_path(given_path)
    return hashed.hexdigest()


def _identity_of_path(path: str) -> str:
    return hashlib.blake2b(os.fsencode(path), digest_size=12).hexdigest()


def _none_if_negative(number: int) -> int | None:
    return number if number >= 0 else None


def _size_and_change(file: Path) -> tuple[int, int]:
    """Size of a file, bytes, and time of its last change, ns since 1970; (0, 0) if it is not accessible."""
    try:
        state = file.stat()
    except OSError:
        return 0, 0
    return state.st_size, state.st_mtime_ns


def _day(time_ns: int) -> str:
    return datetime.fromtimestamp(max(min(time_ns, _LATEST), 0) / 1e9, timezone.utc).strftime("%Y-%m-%d")


def problem_rows(profile: Profile) -> list[dict[str, Any]]:
    """Rows of the table ``problems``, without the capture."""
    return [
        {"severity": each.severity.word, "what": each.what, "done": each.done, "file": each.file or None,
         "offset": _none_if_negative(each.offset), "unit": _none_if_negative(profile.groups.unit_number(each.group)),
         "lane": each.lane or None, "count": each.count, "lost": each.lost}
        for each in profile.problems
    ]  # fmt: skip


def figure_rows(query: Query) -> list[dict[str, Any]]:
    """Rows of the table ``figures``, without the capture."""
    return [*_facts(query, [])[0], *_work(query)]


def rows_to_arrow(table: str, rows: list[dict[str, Any]]) -> Any:
    """Rows as an Arrow table with the columns of `FIELDS`."""
    import pyarrow

    schema = arrow_schema(table)
    try:
        return pyarrow.Table.from_pylist(rows, schema=schema)
    except (UnicodeEncodeError, pyarrow.ArrowTypeError):
        texts = [field.name for field in FIELDS[table] if field.kind == "text"]
        escaped = [{name: utf8_text(str(row[name])) for name in texts if row.get(name) is not None} for row in rows]
        return pyarrow.Table.from_pylist([row | more for row, more in zip(rows, escaped, strict=True)], schema=schema)


# events


def event_schema(profile: Profile) -> Any:
    """Arrow schema of the events of a profile: common columns, then those of its source that a lane has."""
    lanes = [lane for lane in profile.lanes if len(lane)]
    further = {key for lane in lanes for key in lane.columns if has_column(profile, lane, key)}
    further.difference_update(_COMMON.values())
    extras = (column for column in profile.vocabulary.columns if column.key in further and column.group != COUNTERS)
    return _event_schema(profile.vocabulary.source, tuple(extras))


def event_batches(profile: Profile, capture: str, names: Collection[str] | None = None) -> Any:
    """All events, lane by lane: common columns, then columns of the source that at least one lane has.

    Args:
        profile: The profile.
        capture: Value of the column ``capture``.
        names: Only columns with these names, in lower case; None: all.

    Returns:
        Lazy reader of Arrow record batches of at most `GROUP` rows.
    """
    import pyarrow

    source = f"{profile.vocabulary.source}_"
    lanes = [(number, lane) for number, lane in enumerate(profile.lanes) if len(lane)]
    known = {number: {key for key in lane.columns if has_column(profile, lane, key)} for number, lane in lanes}
    whole, common = event_schema(profile), len(FIELDS["events"])
    keys = [_COMMON.get(field.name, field.name) if place < common else field.name.removeprefix(source)
            for place, field in enumerate(whole)]  # fmt: skip
    chosen = [place for place, field in enumerate(whole) if names is None or field.name.lower() in names]
    schema = pyarrow.schema([whole.field(place) for place in chosen], metadata=whole.metadata)
    keys = [keys[place] for place in chosen]

    def batches() -> Iterator[Any]:
        columns = [(key, kind, _texts(profile, key, capture) if pyarrow.types.is_dictionary(kind) else None)
                   for key, kind in zip(keys, schema.types, strict=True)]  # fmt: skip
        for parts in _batches(lanes):
            arrays = [_arrow(key, kind, texts, parts, known) for key, kind, texts in columns]
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)

    return pyarrow.RecordBatchReader.from_batches(schema, batches())


@lru_cache(64)
def _event_schema(source: str, extras: tuple[Column, ...]) -> Any:
    import pyarrow

    kinds, types = {"text": "text", "float": "float", "percent": "float"}, arrow_types()
    fields = [*arrow_schema("events")] + [
        pyarrow.field(f"{source}_{column.key}", types[kinds.get(column.kind, "int")],
                      metadata={"unit": column.unit} if column.unit else None)
        for column in extras
    ]  # fmt: skip
    return pyarrow.schema(fields, metadata=origin("events"))


def _texts(profile: Profile, key: str, capture: str) -> Any:
    import pyarrow

    named = [each.name.lower() for each in _ENUMS[key]] if key in _ENUMS else profile.strings.get(key, ())
    return pyarrow.array([capture] if key == "capture" else [utf8_text(text) for text in named], pyarrow.string())


#: Number of a lane, the lane, and a range of its rows.
_Part = tuple[int, Lane, slice]


def _batches(lanes: Sequence[tuple[int, Lane]]) -> Iterator[list[_Part]]:
    parts: list[_Part] = []
    room = GROUP
    for number, lane in lanes:
        first = 0
        while first < len(lane):
            stop = min(first + room, len(lane))
            parts.append((number, lane, slice(first, stop)))
            room -= stop - first
            first = stop
            if not room:
                yield parts
                parts, room = [], GROUP
    if parts:
        yield parts


def _arrow(key: str, kind: Any, texts: Any, parts: Sequence[_Part], known: Mapping[int, set[str]]) -> Any:
    """Column of a batch as an Arrow array; null for lanes without the column.

    Args:
        key: Key of the column in the source.
        kind: Arrow type.
        texts: Dictionary of the codes; None for numeric columns.
        parts: Parts of lanes, concatenated.
        known: Keys of the columns of each lane, by lane number.
    """
    import pyarrow

    missing, dtype = (-1, np.int32) if texts is not None else (np.nan, np.float64) if kind == "double" else _INTEGER
    if key in ("capture", "lane"):
        found: list[Any] = [0 if texts is not None else number for number, _, _ in parts]
    else:
        found = [lane.take(key, rows) if key in known[number] else lane.activity if key == "activity" else None
                 for number, lane, rows in parts]  # fmt: skip
    counts = [rows.stop - rows.start for _, _, rows in parts]
    if all(value is None for value in found):
        return pyarrow.nulls(sum(counts), kind)
    # pyarrow's pool reuses memory of earlier arrays; numpy would request it from the system each time
    buffer = pyarrow.allocate_buffer(sum(counts) * np.dtype(dtype).itemsize)
    values = np.frombuffer(buffer, dtype)
    stop = 0
    for value, count in zip(found, counts, strict=True):
        start, stop = stop, stop + count
        if dtype is np.int64 and isinstance(value, np.ndarray) and value.dtype != np.int64:
            absent = ~np.isfinite(value) if value.dtype.kind == "f" else is_missing(value)
            value = np.where(absent, INT_MISSING, np.where(absent, 0, value).astype(np.int64))
        values[start:stop] = missing if value is None else value
    if texts is not None:
        # as unsigned numbers negative codes are larger than any valid code
        valid = values.view(np.uint32) < len(texts)
    else:
        valid = np.isfinite(values) if dtype is np.float64 else values != INT_MISSING
    # packbits is ten times as fast as pyarrow's conversion of a mask
    bits = None if valid.all() else pyarrow.py_buffer(np.packbits(valid, bitorder="little"))
    stored = pyarrow.int32() if texts is not None else kind
    array = pyarrow.Array.from_buffers(stored, len(values), [bits, buffer])
    return array if texts is None else pyarrow.DictionaryArray.from_arrays(array, texts, safe=False)


# figures


def _facts(query: Query, problems: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """Figures from the views that are used for comparisons; views that fail are added to ``problems``.

    Returns:
        Rows of the table ``figures``; type and location of the last bug in a view, empty if there was none.
    """
    from tpuprof_tui.views.answer import plain_value
    from tpuprof_tui.views.registry import answer, facts_of, figures_of, views_of

    rows: dict[str, dict[str, Any]] = {}
    fault = ""
    for view in views_of(query.vocabulary):
        if not view.compared or view.all_workers or not (view.facts or view.id in _TABLES):
            continue
        try:
            found = answer(view, query) if view.id in _TABLES else None
            facts = facts_of(view, query) if found is None else found.facts
            known: list[tuple[str, Any]] = list(figures_of(facts).items())
            # cells are named by row label and column key
            known += [(f"{row[0]}.{column.key}", value) for table in (found.tables if found is not None else ())
                      if table.key == _TABLES[view.id] for row in table.rows()
                      for column, value in zip(table.columns[1:], row[1:], strict=True)]  # fmt: skip
        # a failing view must not make the capture unreadable: report it as a problem
        except Exception as error:
            message, location = _message_and_location(error)
            fault = location or fault
            problems.append({"severity": "warning", "what": f"The view {view.id} failed. {message}",
                             "done": "Its figures are missing.", "count": 1})  # fmt: skip
            continue
        for key, value in known:
            value = plain_value(value)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value):
                figure = f"{view.id}.{key}"
                value = float(value / 1000 if key.endswith("_us") else value)
                row = rows.setdefault(figure, {"figure": figure, "kind": view.id, "name": key, "value": value})
                # of several workers the largest
                row["value"] = max(row["value"], value)
    return list(rows.values()), fault


def _work(query: Query) -> Iterator[dict[str, Any]]:
    """Rows of figures: sum, count and maximum of durations of device work, by kernel, operation and so on.

    The text columns to group by are ``Vocabulary.work_breakdowns``.
    """
    from tpuprof_tui.analysis.pivot import key, most, pivot, rows, total

    profile = query.profile
    lanes = [number for number, lane in enumerate(profile.lanes) if lane.in_sums] if profile.timed else []
    for view, column in profile.vocabulary.work_breakdowns:
        known = [number for number in lanes if has_column(profile, profile.lanes[number], column)]
        work = query.events((column, "start", "end"), known, role=Role.WORK)
        work = work.take(work[column] >= 0)
        work = work.with_columns(took=work["end"] - work["start"])
        kind = _PARTS.get(view, view)
        figures = {"name": key(column), "ns": total("took"), "count": rows, "longest": most("took")}
        for name, ns, count, longest in pivot(work, (column,), figures, ()):
            yield {"figure": f"{kind}:{name}", "kind": kind, "name": name, "value": float(ns), "count": count,
                   "longest": float(longest)}  # fmt: skip
