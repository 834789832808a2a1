"""Builds a data set: finds captures, reads those that are new or changed, writes the files of each as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.errors import TpuprofError, UnreadableError, needed_for
from tpuprof_tui.sources.catalog import Catalog

from .listing import LIST, keep_list
from .manifest import Entry, Manifest
from .places import captures_of, fingerprint, is_address, lies
from .schema import FOLDERS, SCHEMA, UNKNOWN, needs_pyarrow, origin
from .store import Store, store_at
from .tables import GROUP, Folders, OneCapture, partitions

#: Whole numbers whose values seldom repeat: times, what is counted up, and further columns of these units or keys.
_TIMES: Final = ("start", "end", "duration")
_COUNTED: Final = ("order", "scope")
_UNITS, _IDS = (b"ns", b"cycles"), ("_command_id", "_correlation", "_external")
#: Columns of events whose row groups queries skip by.
_SKIPPED: Final = ("capture", "lane", "unit", "start", "end", "duration", "step", "scope", "bytes")
#: Captures that a cluster is given at a time, so that it holds no queue of all.
_IN_FLIGHT: Final = 1_000
#: Rows from which on zstd is worth it: for fewer its own beginnings take half the time of writing, and gain little.
_PACKED: Final = 4_096
#: Bytes that are written to a file at a time.
_TOGETHER: Final = 1 << 20
#: Rows that compacting puts into one file.
_MOST_ROWS: Final = 4_000_000

#: Takes what is to be done and a function for each; gives what that returns, in any order.
Executor = Callable[[Callable[[str], Entry], Sequence[str]], Iterator[Entry]]


class Built(Struct):
    """What a build did: paths of captures.

    Attributes:
        written, replaced, same: New ones, changed ones, and those whose content another path has.
        unchanged: How many were passed over.
        unreadable: Those of which nothing could be read.
        deleted: Those of the data set that lie no more where they lay.
        missing: What was named and is not there, or holds no capture.
        internal_errors: Captures that are missing or incomplete by an error of this package, with its type and place.
    """

    written: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    unchanged: int = 0
    unreadable: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    internal_errors: list[str] = field(default_factory=list)


# one capture


def write_capture(out: str, path: str) -> Entry:
    """Reads a capture and writes its files into a data set; what it returns is to be logged.

    A capture that changes while it is read has its fingerprint of before: the next build reads it again.

    Args:
        out: Path or address of the data set.
        path: Where the capture lies, or its address on another file system.
    """
    store, catalog = store_at(out), OneCapture()
    found = fingerprint(path, catalog)
    files: list[str] = []

    def write_events(capture: str, folders: Folders, batches: Any) -> None:
        files.append(file_of("events", folders, capture))
        write_table(batches, store, files[0])

    tables = partitions(path, write_events, catalog)
    for name, table in tables.tables.items():
        if table is not None:
            files.append(file_of(name, tables.folders, tables.capture))
            write_table(table, store, files[-1])
    if not tables.readable:
        files = files[-1:]
    return Entry(path, found if tables.fetched else "", tables.capture, tables.readable, tuple(sorted(files)),
                 internal_error=tables.internal_error)  # fmt: skip


def file_of(table: str, folders: Folders, capture: str) -> str:
    """The file of a capture in a table, relative to the data set."""
    named = zip(FOLDERS, folders, strict=True)
    parts = (f"{name}={UNKNOWN if value is None else quote(value, safe='')}" for name, value in named)
    return "/".join((table, *parts, f"{capture}.parquet"))


def write_table(table: Any, store: Store, file: str) -> None:
    """Writes an Arrow table, or record batches as they come: dictionaries where values repeat, row groups, zstd.

    What has few rows is packed by snappy. Whole numbers that differ are differences from one to the next, which are
    read in a third of the time. Statistics are of what queries skip by: numbers that all events have, and the capture.
    """
    import pyarrow
    from pyarrow import parquet

    whole = isinstance(table, pyarrow.Table)
    rest = iter([table]) if whole else (pyarrow.Table.from_batches([batch]) for batch in table)
    first = next(rest, None)
    packed = "zstd" if first is not None and first.num_rows >= _PACKED else "snappy"
    with store.writing(file) as stream:
        # the many small pieces are put together before they are written
        sink = pyarrow.BufferedOutputStream(pyarrow.PythonFile(stream, mode="w"), _TOGETHER)
        schema = table.schema
        with parquet.ParquetWriter(sink, schema, write_batch_size=GROUP, **_encodings(schema, packed)) as writer:
            for part in chain([] if first is None else [first], rest):
                writer.write_table(part, row_group_size=GROUP)
        sink.detach()


def _encodings(schema: Any, packed: str) -> dict[str, Any]:
    """How the columns of a table are written, as arguments of pyarrow's writer; ``packed``: by what."""
    names = schema.names
    whole = [field for field in schema if field.type == "int64"]
    # differences of times take as much room packed
    times = {field.name for field in whole if field.name in _TIMES or (field.metadata or {}).get(b"unit") in _UNITS}
    # whole numbers that are seldom the same, so that a dictionary of them gains nothing
    differences = {field.name: "DELTA_BINARY_PACKED" for field in whole
                   if field.name in times or field.name in _COUNTED or field.name.endswith(_IDS)}  # fmt: skip
    return {"use_dictionary": [name for name in names if name not in differences],
            "column_encoding": differences or None,
            "compression": packed if packed == "snappy" else {
                name: "none" if name in times else packed for name in names},
            "write_statistics": [name for name in names if name in _SKIPPED] or True}  # fmt: skip


# all of them


def local(jobs: int) -> Executor:
    """Processes of this machine; one job: this process."""

    def run(function: Callable[[str], Entry], paths: Sequence[str]) -> Iterator[Entry]:
        if jobs == 1 or len(paths) == 1:
            yield from map(function, paths)
            return
        from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
        from multiprocessing import get_context

        with ProcessPoolExecutor(min(jobs, len(paths)), get_context("spawn"), _end_with_parent) as pool:
            try:
                for done in as_completed([pool.submit(function, path) for path in paths]):
                    yield done.result()
            except BrokenExecutor:
                raise TpuprofError("A process that read a capture has been killed, as where memory runs out.",
                                   "What was read is kept: build again, with fewer --jobs.") from None  # fmt: skip
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    return run


def _end_with_parent() -> None:
    """Ends this process when the one that began it is gone, however that ended: a pool's would wait for ever.

    Ctrl-C is for that one: the terminal sends it to all.
    """
    import signal
    import threading
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)

    parent = parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def ray(address: str | None) -> Executor:
    """Workers of a Ray cluster, or of one that is begun here; the data set's folder is one that all of them see."""

    def run(function: Callable[[str], Entry], paths: Sequence[str]) -> Iterator[Entry]:
        with needed_for("--executor ray"):
            import ray as cluster

        begun = not cluster.is_initialized()
        if begun:
            cluster.init(address=address, log_to_driver=False)
        try:
            # a worker that dies has its capture read by another
            task = cluster.remote(max_retries=3)(function_of(function))
            rest = iter(paths)
            waiting = [task.remote(path) for path in islice(rest, _IN_FLIGHT)]
            while waiting:
                done, waiting = cluster.wait(waiting)
                try:
                    yield from cluster.get(done)
                except cluster.exceptions.RayError as error:
                    # an error of the function itself comes as one that is also of its own class
                    if isinstance(error, TpuprofError):
                        raise
                    raise TpuprofError("A worker that read a capture died each time, as where memory runs out.",
                                       "What was read is kept: build again.") from None  # fmt: skip
                waiting += [task.remote(path) for path in islice(rest, len(done))]
        finally:
            if begun:
                cluster.shutdown()

    return run


def function_of(function: Callable[[str], Entry]) -> Callable[[str], Entry]:
    """A plain function that calls another callable, for who takes nothing else."""
    return lambda path: function(path)


def build(out: str | os.PathLike[str], words: Sequence[str], run: Executor, *, prune: bool = False,
          told: Callable[[int, int], None] = lambda done, all_: None) -> Built:  # fmt: skip
    """Brings a data set up to date with captures.

    Args:
        out: Path or address of the data set; made where it is not there.
        words: What to read, see `captures_of`; of a data set that is there they may name a part.
        run: Reads captures.
        prune: Whether captures go that lie no more where they lay; else they are told and stay.
        told: Called with how many are done, and of how many.

    Raises:
        UsageError: There is something else, or another process writes there.
        UnreadableError: The words name no capture, or the data set's file system cannot be read.
        WriteError: The data set cannot be written; what was written counts.
        MissingPackageError: pyarrow is not installed, or what reads such addresses.
    """
    needs_pyarrow()
    catalog, built = Catalog(), Built()
    paths = list(dict.fromkeys(captures_of(words, catalog, built.missing)))
    if not paths and len(built.missing) == len(words):
        raise UnreadableError(f"No capture was found: {', '.join(words[:3])}{', ...' if len(words) > 3 else '.'}")
    place = os.fspath(out) if is_address(out) else os.path.abspath(out)
    with Manifest.opened(place) as manifest:
        there = manifest.sweep()
        built.deleted = [path for path in manifest.entries if not lies(path)]
        for path in built.deleted if prune else ():
            gone = manifest.entries[path]
            manifest.log(gone=[path])
            _delete_rows(manifest, gone, set())
        due = [path for path in paths if not _is_current(manifest, path, catalog, there)]
        built.unchanged = len(paths) - len(due)
        known = filter(None, map(manifest.entries.get, due))
        if any(entry.internal_error or entry.schema != SCHEMA for entry in known):
            # other figures may be written into files of the same names
            manifest.delete([LIST])
        # what had the same content as a capture that changed is read in a second turn
        for _ in range(2):
            for done, entry in enumerate(run(partial(write_capture, place), due) if due else (), 1):
                _take(manifest, entry, built)
                told(done, len(due))
            entries = manifest.entries.values()
            due = [each.path for each in entries if each.capture not in manifest.owners and lies(each.path)]
            if not due:
                break
        manifest.rewrite()
        keep_list(manifest)
    return built


def _is_current(manifest: Manifest, path: str, catalog: Catalog, there: set[str]) -> bool:
    known = manifest.entries.get(path)
    if known is None or known.schema != SCHEMA or not known.fingerprint or known.internal_error:
        return False
    return there.issuperset(known.files) and known.fingerprint == fingerprint(path, catalog)


def _take(manifest: Manifest, entry: Entry, built: Built) -> None:
    """Logs a capture that has been written; what it replaces goes."""
    former = manifest.entries.get(entry.path)
    owner = manifest.entries.get(manifest.owners.get(entry.capture, entry.path))
    owner = None if owner is former else owner
    if not entry.fingerprint and former is not None and former.readable:
        # it cannot be looked at now: what was read of it before stays
        manifest.delete(set(entry.files) - manifest.files)
        built.unreadable.append(entry.path)
        return
    if not all(manifest.has(file) for file in entry.files):
        # a capture that had the same content has been replaced meanwhile: it is read again
        manifest.log([replace(entry, files=())])
    elif owner is not None and lies(owner.path):
        surplus = set(entry.files) - set(owner.files)
        entry = replace(entry, files=())
        manifest.log([entry])
        manifest.delete(surplus)
        built.same.append(entry.path)
    elif owner is not None:
        # it has been moved: the files are those of its new place
        manifest.log([entry], [owner.path])
        _delete_rows(manifest, owner, set(entry.files))
        built.written.append(entry.path)
    else:
        manifest.log([entry])
        (built.replaced if former is not None else built.written).append(entry.path)
    if not entry.readable:
        built.unreadable.append(entry.path)
    if entry.internal_error:
        built.internal_errors.append(f"{entry.path}: {entry.internal_error}")
    if former is not None and former.files and former.files != entry.files:
        _delete_rows(manifest, former, set(entry.files))


def _delete_rows(manifest: Manifest, entry: Entry, kept: set[str]) -> None:
    """Deletes what a data set holds of a capture; files that others share are written without it."""
    for file in set(entry.files) - kept:
        sharing = manifest.sharing.get(file)
        if sharing:
            import pyarrow
            from pyarrow import compute

            table = _read(manifest, file)
            others = compute.not_equal(table["capture"].cast(pyarrow.string()), entry.capture)
            renamed = f"{file.rpartition('/')[0]}/{_shared_name(manifest.entries[path].capture for path in sharing)}"
            write_table(table.filter(others), manifest.store, renamed)
            manifest.join([file], renamed)
        manifest.delete([file])


def _read(manifest: Manifest, file: str) -> Any:
    from pyarrow import parquet

    with manifest.store.open(file) as stream:
        return parquet.read_table(stream)


def _shared_name(captures: Iterable[str]) -> str:
    """Name of a file of several captures."""
    import hashlib

    return f"{hashlib.blake2b(' '.join(sorted(captures)).encode(), digest_size=12).hexdigest()}-all.parquet"


# few large files in place of many small ones


def compact(out: str | os.PathLike[str]) -> tuple[int, int]:
    """Joins the files of each folder of a data set; gives the number of files before and after.

    Raises:
        UsageError: Another process writes there.
    """
    needs_pyarrow()
    import pyarrow

    Manifest.read(out)
    with Manifest.opened(out) as manifest:
        manifest.sweep()
        before = len(manifest.files)
        for parts in list(_joined(manifest)):
            tables = [_read(manifest, file) for file in parts]
            renamed = f"{parts[0].rpartition('/')[0]}/"
            owners = {path for file in parts for path in manifest.sharing[file]}
            renamed += _shared_name(manifest.entries[path].capture for path in owners)
            table = pyarrow.concat_tables(tables, promote_options="default").unify_dictionaries()
            schema = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
            table = table.replace_schema_metadata({**schema, **origin(renamed.partition("/")[0])})
            write_table(table, manifest.store, renamed)
            manifest.join(parts, renamed)
            manifest.delete(set(parts) - {renamed})
        manifest.rewrite()
        keep_list(manifest)
        return before, len(manifest.files)


def _joined(manifest: Manifest) -> Iterator[list[str]]:
    """Files that become one: neighbours in a folder, so many that their rows do not pass `_MOST_ROWS`."""
    from itertools import groupby

    from pyarrow import parquet

    for _, files in groupby(sorted(manifest.files), lambda file: file.rpartition("/")[0]):
        parts: list[str] = []
        rows = 0
        for file in files:
            with manifest.store.open(file) as stream:
                count = parquet.read_metadata(stream).num_rows
            if parts and rows + count > _MOST_ROWS:
                if len(parts) > 1:
                    yield parts
                parts, rows = [], 0
            parts.append(file)
            rows += count
        if len(parts) > 1:
            yield parts
