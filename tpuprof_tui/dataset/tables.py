"""One capture as Arrow tables: what the data set holds, column by column, straight from the columns of its lanes.

`partitions` needs nothing but a path, so that any engine that calls a Python function for each of many paths can make
a data set: processes of this machine, or workers of a cluster.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
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

from .places import on_this_machine
from .schema import FIELDS, arrow_schema, arrow_types, needs_pyarrow, origin

if TYPE_CHECKING:
    from tpuprof_tui.sources.source import Source
    from tpuprof_tui.views.query import Query

#: Rows of a row group, the unit that readers skip and load; so many are made at a time.
GROUP: Final = 65_536
#: The year 2100, ns since 1970: no day lies beyond.
_LATEST: Final = 4_102_444_800 * 10**9
#: Columns of events by the key that sources call them by.
_COMMON: Final = {"name": "name", "category": "type", "engine": "engine", "unit": "core", "order": "order",
                  "start": "start", "end": "end", "duration": "duration", "step": "step", "scope": "scope",
                  "kernel": "kernel", "bytes": "bytes"}  # fmt: skip
#: Columns whose codes are members of enumerations.
_ENUMS: Final = {"activity": Activity, "role": Role}
#: What stands for missing whole numbers, and their type.
_INTEGER: Final = (INT_MISSING, np.int64)
#: Tables of views whose rows are figures too: few rows, whatever the capture.
_TABLES: Final = {"units": "units", "lanes": "kinds"}
#: What figures of a view's parts are called.
_PARTS: Final = {"kernels": "kernel", "operations": "operation", "operators": "operation"}


#: Values of the columns that are folders, in the order of `FOLDERS`; None: not known.
Folders = tuple[str | None, ...]


class Tables(Struct, frozen=True):
    """One capture.

    Attributes:
        capture: Its identity.
        folders: Where it belongs.
        tables: Arrow tables by name; those of a capture that could not be read are its problems alone.
        readable: Whether it could be read.
        fetched: Whether it could be looked at: else it is to be tried again.
        internal_error: Type and place of an error of this package itself; empty: there was none.
    """

    capture: str
    folders: Folders
    tables: dict[str, Any]
    readable: bool
    fetched: bool = True
    internal_error: str = ""


#: What becomes of the events of a capture: gets its identity, its folders, and a reader of Arrow's record batches.
Taker = Callable[[str, Folders, Any], Any]


class OneCapture(Catalog):
    """The sources, which are asked once who opens a path and for its files: for as long as one capture is read."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[str, Source | None] = {}
        self._files: dict[str, list[Path]] = {}

    def source_of(self, path: str | os.PathLike[str]) -> Source | None:
        """The source that opens a path; None where none does."""
        told = os.fspath(path)
        if told not in self._found:
            self._found[told] = super().source_of(path)
        return self._found[told]

    def files(self, path: str | os.PathLike[str]) -> list[Path]:
        """The files that a profile consists of; of any other path, that path."""
        told = os.fspath(path)
        if told not in self._files:
            self._files[told] = super().files(path)
        return self._files[told]


def partitions(path: str | os.PathLike[str], take: Taker | None = None, catalog: Catalog | None = None) -> Tables:
    """One capture as Arrow tables, with the columns of `FIELDS`.

    What cannot be read is a row in ``problems`` (severity ``fatal``); nothing is raised for it.

    Args:
        path: Where it lies, or its address on another file system.
        take: Makes of the events what stands for them among the tables; else they are a table in memory.
        catalog: The sources.

    Raises:
        MissingPackageError: pyarrow, or what reads such addresses, is not installed.
        WriteError: What ``take`` raises where it cannot write.
    """
    needs_pyarrow()
    told = os.fspath(path)
    try:
        with on_this_machine(path) as here:
            whole: Taker = lambda capture, folders, batches: batches.read_all()  # noqa: E731
            return _tables(here, told, take or whole, catalog or OneCapture())
    except UnreadableError as error:
        capture = _identity_of_path(told)
        return Tables(capture, (None, _day(0), None), _fatal(capture, told, error.message), False, fetched=False)


def _tables(path: str, told: str, take: Taker, catalog: Catalog) -> Tables:
    files = catalog.files(path)
    device, call = catalog.device_and_call(path)
    capture = _identity(path, told, files, (device, call))
    source = catalog.source_of(path)
    states = list(map(_size_and_change, files))
    newest = max((changed for _, changed in states), default=0)
    folders = (None if source is None else source.id, _day(newest), None if device is None else str(device))
    try:
        from tpuprof_tui.analysis.selecting.session import Session
        from tpuprof_tui.views.query import Query

        query = Query(Session.of(catalog.open(path, {})))
        # with the steps that are found and the exposed time, as the explorer's table has them
        profile = query.session.profile
        problems: list[dict[str, Any]] = [
            {"severity": each.severity.word, "what": each.what, "done": each.done, "file": each.file or None,
             "offset": _known(each.offset), "unit": _known(profile.groups.unit_number(each.group)),
             "lane": each.lane or None, "count": each.count, "lost": each.lost}
            for each in profile.problems
        ]  # fmt: skip
        facts, fault = _facts(query, problems)
        figures = [*facts, *_sums(profile)]
        row = {
            "capture": capture, "path": told, "name": profile.name, "chip": profile.device.chip or None,
            "mode": profile.recording.name or None, "call": call, "changed_ns": newest, "epoch_ns": profile.wall_ns,
            "duration_ns": profile.end_ns - profile.start_ns if profile.timed else None, "units": len(profile.units),
            "lanes": sum(len(lane) > 0 for lane in profile.lanes), "events": profile.instructions,
            "problems": len(problems), "errors": sum(each.severity == Severity.ERROR for each in profile.problems),
            "bytes": sum(size for size, _ in states), "tpuprof": __version__,
        }  # fmt: skip
        folders = (profile.vocabulary.source, _day(newest if profile.wall_ns is None else profile.wall_ns), folders[2])
        tables = {
            "captures": _of_rows("captures", [row]),
            "figures": _of_rows("figures", [{"capture": capture, **each} for each in figures]),
            "events": take(capture, folders, _events(profile, capture)),
        }  # fmt: skip
    except (ImportError, WriteError):
        raise
    # a capture is the least of many: whatever is wrong with it, the others follow
    except Exception as error:
        what, fault = _told_of(error)
        return Tables(capture, folders, _fatal(capture, told, what.replace(path, told)), False, internal_error=fault)
    if problems:
        about = {"capture": capture, "path": told}
        tables["problems"] = _of_rows("problems", [{**about, **each} for each in problems])
    return Tables(capture, folders, tables, readable=True, internal_error=fault)


def _told_of(error: Exception) -> tuple[str, str]:
    """What went wrong in a sentence; and, of an error of this package and not of the capture, its type and place."""
    if isinstance(error, TpuprofError):
        return error.message, ""
    if isinstance(error, MemoryError):
        return NO_MEMORY, ""
    if isinstance(error, OSError):
        return f"It cannot be read: {(error.strerror or type(error).__name__).lower()}.", ""
    from tpuprof_tui.crash_log import type_and_place

    fault = type_and_place(error)
    return f"Internal error of tpuprof: {fault}.", fault


def _fatal(capture: str, path: str, what: str) -> dict[str, Any]:
    """The tables of a capture that could not be read."""
    row = {"capture": capture, "path": path, "severity": "fatal", "what": what, "done": "It is in no other table.",
           "count": 1}  # fmt: skip
    return {"problems": _of_rows("problems", [row])}


def _identity(path: str, told: str, files: Sequence[Path], named: tuple[int | None, int | None]) -> str:
    """Hash of the bytes of a capture's files with their names, and of the device and call that its name tells.

    Returns:
        24 hexadecimal digits; of what cannot be read those of its path.
    """
    hashed = hashlib.blake2b(repr(named).encode(), digest_size=12)
    whole = Path(path)
    inside = whole.is_dir()
    try:
        for file in files:
            name = os.path.relpath(file, whole) if inside else file.name
            hashed.update(f"{name!a} {file.stat().st_size};".encode())
            with file.open("rb") as stream:
                while part := stream.read(1 << 20):
                    hashed.update(part)
    except OSError:
        return _identity_of_path(told)
    return hashed.hexdigest()


def _identity_of_path(path: str) -> str:
    return hashlib.blake2b(os.fsencode(path), digest_size=12).hexdigest()


def _known(number: int) -> int | None:
    return number if number >= 0 else None


def _size_and_change(file: Path) -> tuple[int, int]:
    """Bytes of a file, and its last change, ns since 1970."""
    try:
        state = file.stat()
    except OSError:
        return 0, 0
    return state.st_size, state.st_mtime_ns


def _day(time_ns: int) -> str:
    return datetime.fromtimestamp(max(min(time_ns, _LATEST), 0) / 1e9, timezone.utc).strftime("%Y-%m-%d")


def _of_rows(table: str, rows: list[dict[str, Any]]) -> Any:
    """A table of few rows."""
    import pyarrow

    schema = arrow_schema(table)
    try:
        return pyarrow.Table.from_pylist(rows, schema=schema)
    except (UnicodeEncodeError, pyarrow.ArrowTypeError):
        texts = [field.name for field in FIELDS[table] if field.kind == "text"]
        told = [{name: utf8_text(str(row[name])) for name in texts if row.get(name) is not None} for row in rows]
        return pyarrow.Table.from_pylist([row | more for row, more in zip(rows, told, strict=True)], schema=schema)


# events


def _events(profile: Profile, capture: str) -> Any:
    """All events, lane by lane: the common columns, then those of the source that some lane knows.

    Returns:
        A reader of record batches of at most `GROUP` rows, made when they are asked for.
    """
    import pyarrow

    words = profile.vocabulary
    lanes = [(number, lane) for number, lane in enumerate(profile.lanes) if len(lane)]
    known = {number: {key for key in lane.columns if has_column(profile, lane, key)} for number, lane in lanes}
    further = set().union(*known.values()).difference(_COMMON.values())
    extras = tuple(column for column in words.columns if column.key in further and column.group != COUNTERS)
    schema = _event_schema(words.source, extras)
    keys = [*(_COMMON.get(field.name, field.name) for field in FIELDS["events"]), *(column.key for column in extras)]

    def batches() -> Iterator[Any]:
        columns = [(key, kind, _texts(profile, key, capture) if pyarrow.types.is_dictionary(kind) else None)
                   for key, kind in zip(keys, schema.types, strict=True)]  # fmt: skip
        for parts in _batches(lanes):
            arrays = [_arrow(key, kind, texts, parts, known) for key, kind, texts in columns]
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)

    return pyarrow.RecordBatchReader.from_batches(schema, batches())


@lru_cache(64)
def _event_schema(source: str, extras: tuple[Column, ...]) -> Any:
    """The common columns of events and those of a source."""
    import pyarrow

    kinds, types = {"text": "text", "float": "float", "percent": "float"}, arrow_types()
    fields = [*arrow_schema("events")] + [
        pyarrow.field(f"{source}_{column.key}", types[kinds.get(column.kind, "int")],
                      metadata={"help": f"{column.help}{f' [{column.unit}]' if column.unit else ''}",
                                "unit": column.unit})
        for column in extras
    ]  # fmt: skip
    return pyarrow.schema(fields, metadata=origin("events"))


def _texts(profile: Profile, key: str, capture: str) -> Any:
    """What the codes of a column stand for, as Arrow texts."""
    import pyarrow

    named = [each.name.lower() for each in _ENUMS[key]] if key in _ENUMS else profile.strings.get(key, ())
    return pyarrow.array([capture] if key == "capture" else [utf8_text(text) for text in named], pyarrow.string())


#: A lane with its number, and some of its rows.
_Part = tuple[int, Lane, slice]


def _batches(lanes: Sequence[tuple[int, Lane]]) -> Iterator[list[_Part]]:
    """Rows of lanes in turn, so many at a time as make a batch."""
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
    """A column of some rows of lanes, one after the other, as an Arrow array; null where a lane does not know it.

    Args:
        key: What the source calls it.
        kind: Arrow type.
        texts: What its codes stand for; None: it has none.
        parts: Lanes with their numbers, and rows.
        known: Keys of the columns that each lane knows, by its number.
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
    # pyarrow keeps the memory of the arrays before, which numpy asks the system for anew
    buffer = pyarrow.allocate_buffer(sum(counts) * np.dtype(dtype).itemsize)
    values = np.frombuffer(buffer, dtype)
    stop = 0
    for value, count in zip(found, counts, strict=True):
        start, stop = stop, stop + count
        if dtype is np.int64 and isinstance(value, np.ndarray) and value.dtype != np.int64:
            gone = ~np.isfinite(value) if value.dtype.kind == "f" else is_missing(value)
            value = np.where(gone, INT_MISSING, np.where(gone, 0, value).astype(np.int64))
        values[start:stop] = missing if value is None else value
    if texts is not None:
        # as numbers without a sign negative codes are beyond all texts
        there = values.view(np.uint32) < len(texts)
    else:
        there = np.isfinite(values) if dtype is np.float64 else values != INT_MISSING
    # these bits are made in a tenth of the time that pyarrow takes to make them of a mask
    bits = None if there.all() else pyarrow.py_buffer(np.packbits(there, bitorder="little"))
    stored = pyarrow.int32() if texts is not None else kind
    array = pyarrow.Array.from_buffers(stored, len(values), [bits, buffer])
    return array if texts is None else pyarrow.DictionaryArray.from_arrays(array, texts, safe=False)


# figures


def _facts(query: Query, problems: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """Facts of the views that comparing joins; ``problems`` gets those that fail.

    Returns:
        The facts; type and place of the last error of a view, empty where none failed.
    """
    from tpuprof_tui.views.answer import plain
    from tpuprof_tui.views.registry import answer, facts_of, views_of

    rows: dict[str, dict[str, Any]] = {}
    fault = ""
    for view in views_of(query.vocabulary):
        if not view.compared or view.together or not (view.facts or view.id in _TABLES):
            continue
        try:
            found = answer(view, query) if view.id in _TABLES else None
            known = [(fact.key, fact.value) for fact in (facts_of(view, query) if found is None else found.facts)]
            # cells by the label of their row and the key of their column
            known += [(f"{row[0]}.{column.key}", value) for table in (found.tables if found is not None else ())
                      if table.key == _TABLES[view.id] for row in table.rows()
                      for column, value in zip(table.columns[1:], row[1:], strict=True)]  # fmt: skip
        # one view of many: the capture counts without it, and its problems say so
        except Exception as error:
            what, place = _told_of(error)
            fault = place or fault
            problems.append({"severity": "warning", "what": f"The view {view.id} failed. {what}",
                             "done": "Its figures are missing.", "count": 1})  # fmt: skip
            continue
        for key, value in known:
            value = plain(value)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value):
                # of several units' figures of one name the first: what is said of all stands before what is of one
                rows.setdefault(f"{view.id}.{key}", {
                    "figure": f"{view.id}.{key}", "kind": view.id, "name": key,
                    "value": float(value / 1000 if key.endswith("_us") else value),
                })  # fmt: skip
    return list(rows.values()), fault


def _sums(profile: Profile) -> Iterator[dict[str, Any]]:
    """Sum, number and maximum of the durations of work on the device by each of the source's cuts."""
    lanes = [lane for lane in profile.device_part.timed_part.lanes if lane.in_sums and len(lane)]
    works = [np.flatnonzero(lane["role"] == Role.WORK) for lane in lanes]
    times = [(lane.take("end", rows) - lane.take("start", rows)).astype(np.float64)
             for lane, rows in zip(lanes, works, strict=True)]  # fmt: skip
    for view, key in dict(profile.vocabulary.work_cuts).items():
        kind = _PARTS.get(view, view)
        texts = profile.strings.get(key, ())
        known = [each for each in zip(lanes, works, times, strict=True) if has_column(profile, each[0], key)]
        if not known:
            continue
        codes = np.concatenate([lane.take(key, rows) for lane, rows, _ in known])
        took = np.concatenate([each for _, _, each in known])
        named = (codes >= 0) & (codes < len(texts))
        if not named.all():
            codes, took = codes[named], took[named]
        sums, counts = np.bincount(codes, took, len(texts)), np.bincount(codes, minlength=len(texts))
        longest = np.zeros(len(texts))
        np.maximum.at(longest, codes, took)
        for code in np.flatnonzero(counts).tolist():
            yield {"figure": f"{kind}:{texts[code]}", "kind": kind, "name": texts[code], "value": float(sums[code]),
                   "count": int(counts[code]), "longest": float(longest[code])}  # fmt: skip
