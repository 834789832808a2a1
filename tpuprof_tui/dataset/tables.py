"""One capture as Arrow tables: what the data set holds, column by column, straight from the columns of its lanes.

`partitions` needs nothing but a path, so that any engine that calls a Python function for each of many paths can make
a data set: processes of this machine, or workers of a cluster.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tpuprof_tui.analysis.index.ordering import knows
from tpuprof_tui.errors import NO_MEMORY, TpuprofError, needed_for
from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.model import Activity, Lane, Profile, Role, Severity, is_missing
from tpuprof_tui.model.columns import COUNTERS
from tpuprof_tui.sources.catalog import Catalog, open_profile

if TYPE_CHECKING:
    from tpuprof_tui.views.query import Query

#: Version of the tables: the second number grows when a column is added, the first when one changes or goes. A data
#: set of another version is built anew, capture by capture.
SCHEMA: Final = "1.0"
#: Rows of a row group, the unit that readers skip and load.
GROUP: Final = 65_536
#: Columns that are folders (Hive partitions), in the order of the folders.
FOLDERS: Final = ("source", "day", "device")
#: The year 2100, ns since 1970: no day lies beyond.
_LATEST: Final = 4_102_444_800 * 10**9
#: Columns of events by the key that sources call them by.
_COMMON: Final = {"name": "name", "category": "type", "engine": "engine", "unit": "core", "order": "order",
                  "start": "start", "end": "end", "duration": "duration", "step": "step", "scope": "scope",
                  "kernel": "kernel", "bytes": "bytes"}  # fmt: skip
#: What figures of a view's parts are called.
_PARTS: Final = {"kernels": "kernel", "operations": "operation", "operators": "operation"}


@dataclass(frozen=True)
class Field:
    """A column of the data set.

    Attributes:
        name: As engines see it.
        kind: ``text`` (dictionary-encoded), ``int`` (int64) or ``float`` (float64).
        help: One sentence.
    """

    name: str
    kind: str
    help: str


_CAPTURE: Final = Field("capture", "text", "Capture: hash of the bytes of its files and of what its name tells.")
#: The columns of each table; events have further ones, of their sources.
FIELDS: Final[dict[str, tuple[Field, ...]]] = {
    "captures": (
        _CAPTURE,
        Field("path", "text", "Where it lay when it was read."),
        Field("name", "text", "Its short name."),
        Field("chip", "text", "Chip, as the source says it."),
        Field("mode", "text", "How it was recorded."),
        Field("call", "int", "Number of the call that the name tells."),
        Field("changed_ns", "int", "Last change of its newest file, ns since 1970."),
        Field("epoch_ns", "int", "What its time line counts from, ns since 1970; null: its own start."),
        Field("duration_ns", "int", "From the first start to the last end; null without times."),
        Field("units", "int", "Units (cores, GPUs, NPUs)."),
        Field("lanes", "int", "Lanes with events."),
        Field("events", "int", "Events, as in the table events."),
        Field("problems", "int", "Problems, as in the table problems."),
        Field("errors", "int", "Those of them by which something is lost or unreadable."),
        Field("bytes", "int", "Size of its files."),
        Field("tpuprof", "text", "Version of tpuprof that read it."),
    ),
    "events": (
        _CAPTURE,
        Field("lane", "int", "Place of the lane in the capture."),
        Field("engine", "text", "Kind of the lane."),
        Field("unit", "int", "Number of the unit it ran on."),
        Field("order", "int", "Place in the source's own order."),
        Field("start", "int", "Start on the capture's time line, ns."),
        Field("end", "int", "End on it, ns."),
        Field("duration", "int", "End minus start, ns."),
        Field("name", "text", "What ran."),
        Field("category", "text", "Family of what ran."),
        Field("activity", "text", "compute, transfer, communication or host."),
        Field("role", "text", "work, wait, sync or annotation."),
        Field("kernel", "text", "Kernel function whose launch issued it."),
        Field("step", "int", "Step it belongs to."),
        Field("scope", "int", "Launch it belongs to."),
        Field("bytes", "int", "Bytes moved."),
    ),
    "figures": (
        _CAPTURE,
        Field("figure", "text", "kernel:NAME, operation:NAME, or VIEW.figure as report --json names them."),
        Field("kind", "text", "kernel, operation, or the view."),
        Field("name", "text", "What of that kind."),
        Field("value", "float", "The figure; of kernels and operations the sum of durations of their work, ns."),
        Field("count", "int", "Of how many events it is the sum; null of other figures."),
        Field("longest", "float", "The longest of these, ns; null of other figures."),
    ),
    "problems": (
        _CAPTURE,
        Field("path", "text", "The capture; also of those that could not be read, which are in no other table."),
        Field("severity", "text", "note, warning, error; fatal: nothing of the capture could be read."),
        Field("what", "text", "What happened."),
        Field("done", "text", "What was done about it."),
        Field("file", "text", "File inside the capture."),
        Field("offset", "int", "Byte offset in that file."),
        Field("unit", "int", "Number of the unit concerned."),
        Field("lane", "text", "Lane concerned."),
        Field("count", "int", "How many times it happened."),
        Field("lost", "int", "Records known to be lost by it."),
    ),
}


@dataclass(frozen=True)
class Tables:
    """One capture.

    Attributes:
        capture: Its identity.
        folders: Values of the columns that are folders, in the order of `FOLDERS`; None: not known.
        tables: Arrow tables by name; those of a capture that could not be read are its problems alone.
        readable: Whether it could be read.
    """

    capture: str
    folders: tuple[str | None, ...]
    tables: dict[str, Any]
    readable: bool


def identity(path: str | os.PathLike[str], catalog: Catalog) -> str:
    """Hash of the bytes of a capture's files with their names, and of the device and call that its name tells.

    Returns:
        24 hexadecimal digits; of what cannot be read those of its path.
    """
    hashed = hashlib.blake2b(repr(catalog.device_and_call(path)).encode(), digest_size=12)
    whole = Path(path)
    try:
        for file in catalog.files(path):
            name = os.path.relpath(file, whole) if whole.is_dir() else file.name
            hashed.update(f"{name!a} {file.stat().st_size};".encode())
            with file.open("rb") as stream:
                while part := stream.read(1 << 20):
                    hashed.update(part)
    except OSError:
        return hashlib.blake2b(os.fsencode(path), digest_size=12).hexdigest()
    return hashed.hexdigest()


def partitions(path: str | os.PathLike[str]) -> Tables:
    """One capture as Arrow tables, with the columns of `FIELDS`.

    What cannot be read is a row in ``problems`` (severity ``fatal``); nothing is raised for it.

    Raises:
        MissingPackageError: pyarrow is not installed.
    """
    catalog = Catalog()
    capture = identity(path, catalog)
    source = catalog.source_of(path)
    device, call = catalog.device_and_call(path)
    newest = max((_changed_ns(file) for file in catalog.files(path)), default=0)
    folders = (None if source is None else source.id, _day(newest), None if device is None else str(device))
    try:
        query = _query(open_profile(path))
        # with the steps that are found and the exposed time, as the explorer's table has them
        profile = query.session.profile
        problems: list[dict[str, Any]] = [
            {"severity": each.severity.word, "what": each.what, "done": each.done, "file": each.file or None,
             "offset": _known(each.offset), "unit": _known(profile.groups.unit_number(each.group)),
             "lane": each.lane or None, "count": each.count, "lost": each.lost}
            for each in profile.problems
        ]  # fmt: skip
        events = _events(profile, capture)
        figures = [*_facts(query, problems), *_sums(profile)]
        row = {
            "capture": capture, "path": os.fspath(path), "name": profile.name, "chip": profile.device.chip or None,
            "mode": profile.recording.name or None, "call": call, "changed_ns": newest, "epoch_ns": profile.wall_ns,
            "duration_ns": profile.end_ns - profile.start_ns if profile.timed else None, "units": len(profile.units),
            "lanes": sum(len(lane) > 0 for lane in profile.lanes), "events": profile.instructions,
            "problems": len(problems), "errors": sum(each.severity == Severity.ERROR for each in profile.problems),
            "bytes": catalog.size(path), "tpuprof": _version(),
        }  # fmt: skip
        tables = {
            "captures": _of_rows("captures", [row]), "events": events,
            "figures": _of_rows("figures", [{"capture": capture, **each} for each in figures]),
        }  # fmt: skip
        folders = (profile.vocabulary.source, _day(newest if profile.wall_ns is None else profile.wall_ns), folders[2])
        readable = True
    except ImportError:
        raise
    # a capture is the least of many: whatever is wrong with it, the others follow
    except Exception as error:
        what = error.message if isinstance(error, TpuprofError) else f"It cannot be read: {type(error).__name__}."
        what = NO_MEMORY if isinstance(error, MemoryError) else what
        problems = [{"severity": "fatal", "what": what, "done": "It is in no other table.", "count": 1}]
        tables, readable = {}, False
    if problems:
        told = {"capture": capture, "path": os.fspath(path)}
        tables["problems"] = _of_rows("problems", [{**told, **each} for each in problems])
    return Tables(capture, folders, tables, readable)


def arrow_schema(table: str) -> Any:
    """The columns of `FIELDS` as an Arrow schema, with version and origin."""
    pyarrow = _pyarrow()
    fields = [pyarrow.field(each.name, _type(each.kind), metadata={"help": each.help}) for each in FIELDS[table]]
    return pyarrow.schema(fields, metadata=origin(table))


def origin(table: str) -> dict[str, str]:
    """What every file says of itself."""
    return {"tpuprof.table": table, "tpuprof.schema": SCHEMA, "tpuprof.version": _version()}


def _version() -> str:
    from tpuprof_tui import __version__

    return __version__


def _pyarrow() -> Any:
    with needed_for("A data set", "Or install all it needs: pip install 'tpuprof-tui[dataset]'."):
        import pyarrow
    return pyarrow


def _type(kind: str) -> Any:
    pyarrow = _pyarrow()
    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    return {"text": text, "int": pyarrow.int64(), "float": pyarrow.float64()}[kind]


def _known(number: int) -> int | None:
    return number if number >= 0 else None


def _changed_ns(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _day(time_ns: int) -> str:
    return datetime.fromtimestamp(max(min(time_ns, _LATEST), 0) / 1e9, timezone.utc).strftime("%Y-%m-%d")


def _of_rows(table: str, rows: list[dict[str, Any]]) -> Any:
    """A table of few rows."""
    pyarrow = _pyarrow()
    arrays = []
    for field in FIELDS[table]:
        values = [row.get(field.name) for row in rows]
        if field.kind == "text":
            texts = [None if value is None else utf8_text(str(value)) for value in values]
            arrays.append(pyarrow.array(texts, pyarrow.string()).dictionary_encode())
        else:
            arrays.append(pyarrow.array(values, _type(field.kind)))
    return pyarrow.table(arrays, schema=arrow_schema(table))


# events


def _events(profile: Profile, capture: str) -> Any:
    """All events, lane by lane: the common columns, then those of the source that some lane knows."""
    pyarrow = _pyarrow()
    words = profile.vocabulary
    taken = set(_COMMON.values())
    extras = [
        column for column in words.columns
        if column.key not in taken and column.group != COUNTERS
        and any(len(lane) and knows(profile, lane, column.key) for lane in profile.lanes)
    ]  # fmt: skip
    kinds = {"text": "text", "float": "float", "percent": "float"}
    fields = [*arrow_schema("events")] + [
        pyarrow.field(f"{words.source}_{column.key}", _type(kinds.get(column.kind, "int")),
                      metadata={"help": f"{column.help}{f' [{column.unit}]' if column.unit else ''}"})
        for column in extras
    ]  # fmt: skip
    schema = pyarrow.schema(fields, metadata=origin("events"))
    texts = {key: pyarrow.array([utf8_text(text) for text in each], pyarrow.string())
             for key, each in profile.strings.items()}  # fmt: skip
    names = {"activity": pyarrow.array([each.name.lower() for each in Activity]),
             "role": pyarrow.array([each.name.lower() for each in Role])}  # fmt: skip
    keys = [*(_COMMON.get(field.name, field.name) for field in FIELDS["events"]), *(column.key for column in extras)]
    batches = []
    for number, lane in enumerate(profile.lanes):
        # what all events of the lane have in common
        own = {"capture": (0, pyarrow.array([capture])), "lane": (number, None)}
        if lane.activity is not None:
            own["activity"] = (int(lane.activity), names["activity"])
        for rows in _slices(len(lane)):
            arrays = [
                _repeated(*own[key], rows.stop - rows.start)
                if key in own
                else _arrow(profile, lane, key, rows, field.type, texts | names)
                for key, field in zip(keys, schema, strict=True)
            ]
            batches.append(pyarrow.record_batch(arrays, schema=schema))
    return pyarrow.Table.from_batches(batches, schema=schema)


def _repeated(value: int, texts: Any, count: int) -> Any:
    """A column with one value: a number, or the text that it is the place of."""
    pyarrow = _pyarrow()
    if texts is None:
        return pyarrow.array(np.full(count, value, np.int64))
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.full(count, value, np.int32)), texts)


def _slices(count: int) -> Iterator[slice]:
    for first in range(0, count, GROUP):
        yield slice(first, min(first + GROUP, count))


def _arrow(profile: Profile, lane: Lane, key: str, rows: slice, kind: Any, texts: dict[str, Any]) -> Any:
    """A column of a lane for some rows; null where it does not know it."""
    pyarrow = _pyarrow()
    if not knows(profile, lane, key):
        return pyarrow.nulls(rows.stop - rows.start, kind)
    values = lane.take(key, rows)
    if pyarrow.types.is_dictionary(kind):
        table = texts[key]
        gone = (values < 0) | (values >= len(table))
        codes = pyarrow.array(np.where(gone, 0, values).astype(np.int32), mask=gone)
        return pyarrow.DictionaryArray.from_arrays(codes, table)
    if pyarrow.types.is_floating(kind):
        found = values.astype(np.float64)
        return pyarrow.array(found, mask=~np.isfinite(found))
    gone = is_missing(values) if values.dtype.kind != "f" else ~np.isfinite(values)
    return pyarrow.array(np.where(gone, 0, values).astype(np.int64), mask=gone)


# figures


def _query(profile: Profile) -> Query:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.views.query import Query

    return Query(Session.build(profile))


def _facts(query: Query, problems: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Facts of the views that comparing joins; ``problems`` gets those that fail."""
    from tpuprof_tui.views.answer import plain
    from tpuprof_tui.views.registry import answer, views_of

    for view in views_of(query.vocabulary):
        if not view.compared or view.together:
            continue
        known = set()
        try:
            facts = answer(view, query).facts
        # one view of many: the capture counts without it, and its problems say so
        except Exception as error:
            problems.append({"severity": "warning", "what": f"The view {view.id} failed: {type(error).__name__}.",
                             "done": "Its figures are missing.", "count": 1})  # fmt: skip
            continue
        for fact in facts:
            value = plain(fact.value)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value):
                # of several units' figures of one name the first: what is said of all stands before what is of one
                if fact.key not in known:
                    value = value / 1000 if fact.key.endswith("_us") else value
                    yield {"figure": f"{view.id}.{fact.key}", "kind": view.id, "name": fact.key, "value": float(value)}
                known.add(fact.key)


def _sums(profile: Profile) -> Iterator[dict[str, Any]]:
    """Sum, number and maximum of the durations of work on the device by each of the source's cuts."""
    part = profile.device_part.timed_part
    for view, key in dict(profile.vocabulary.work_cuts).items():
        kind = _PARTS.get(view, view)
        texts = profile.strings.get(key, ())
        sums, longest = np.zeros(len(texts)), np.zeros(len(texts))
        counts = np.zeros(len(texts), np.int64)
        for lane in part.lanes:
            if not lane.in_sums or not len(lane) or not knows(profile, lane, key):
                continue
            codes = lane[key]
            rows = np.flatnonzero((lane["role"] == Role.WORK) & (codes >= 0) & (codes < len(texts)))
            took = (lane.take("end", rows) - lane.take("start", rows)).astype(np.float64)
            sums += np.bincount(codes[rows], took, len(texts))
            counts += np.bincount(codes[rows], minlength=len(texts))
            np.maximum.at(longest, codes[rows], took)
        for code in np.flatnonzero(counts).tolist():
            yield {"figure": f"{kind}:{texts[code]}", "kind": kind, "name": texts[code], "value": float(sums[code]),
                   "count": int(counts[code]), "longest": float(longest[code])}  # fmt: skip
