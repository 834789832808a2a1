"""Builds data sets: finds captures, reads new and changed ones, and writes their Parquet files atomically."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.child_process import share_cpus
from tpuprof_tui.errors import TpuprofError, UnreadableError, requires_package
from tpuprof_tui.sources.catalog import Catalog

from .captures import captures_of, exists, fingerprint, is_address, reason_of
from .listing import LIST, write_list
from .manifest import Manifest, ManifestEntry
from .schema import FOLDERS, SCHEMA, UNKNOWN, arrow_types, needs_pyarrow, origin
from .store import AT_A_TIME, Store, store_at
from .tables import GROUP, CachingCatalog, Folders, partitions

#: Integer columns whose values seldom repeat: times, counters, and columns with these units or suffixes.
_TIMES: Final = ("start", "end", "duration")
_COUNTED: Final = ("order", "scope")
_UNITS, _IDS = (b"ns", b"cycles"), ("_command_id", "_correlation", "_external")
#: Columns of events with statistics, by which queries skip row groups.
_SKIPPED: Final = ("capture", "lane", "unit", "start", "end", "duration", "step", "scope", "bytes")
#: Maximum number of captures submitted to a cluster at a time, which bounds its queue.
_IN_FLIGHT: Final = 1_000
#: Minimum number of rows for zstd: for fewer its setup takes half the writing time and saves little.
_PACKED: Final = 4_096
#: Size of the write buffer, bytes.
_TOGETHER: Final = 1 << 20
#: Maximum number of rows per compacted file.
_MOST_ROWS: Final = 4_000_000

#: Applies a function to all paths; yields the results in any order.
Executor = Callable[[Callable[[str], ManifestEntry], Sequence[str]], Iterator[ManifestEntry]]


class BuildResult(Struct):
    """Result of a build: paths of captures."""

    #: written, replaced, same: New captures, changed ones, and copies of captures at other paths.
    written: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    unchanged: int = 0  #: Number of unchanged captures, which were skipped
    unreadable: list[str] = field(default_factory=list)  #: Captures that could not be read, now or by an earlier build
    #: Those of them that were skipped, because they are unchanged.
    known_unreadable: list[str] = field(default_factory=list)
    #: Why captures could not be read, and why arguments name none, by path and argument.
    reasons: dict[str, str] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)  #: Captures of the data set whose path no longer exists
    missing: list[str] = field(default_factory=list)  #: Arguments that do not exist or contain no capture
    #: Captures that are missing or incomplete because of a bug in this package, with error type and location.
    internal_errors: list[str] = field(default_factory=list)


# one capture


def write_capture(out: str, path: str) -> ManifestEntry:
    """Reads a capture and writes its files into a data set; returns the entry to log.

    The fingerprint is taken before reading, so that the next build reads a capture again that changed meanwhile.

    Args:
        out: Path or address of the data set.
        path: Path or address of the capture.
    """
    store, catalog = store_at(out), CachingCatalog()
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
    return ManifestEntry(path, found if tables.fetched else "", tables.capture, tables.readable, tuple(sorted(files)),
                 internal_error=tables.internal_error)  # fmt: skip


def file_of(table: str, folders: Folders, capture: str) -> str:
    """Path of the file of a capture in a table, relative to the data set."""
    named = zip(FOLDERS, folders, strict=True)
    parts = (f"{name}={UNKNOWN if value is None else quote(value, safe='')}" for name, value in named)
    return "/".join((table, *parts, f"{capture}.parquet"))


def write_table(table: Any, store: Store, file: str) -> None:
    """Writes an Arrow table or a stream of record batches as a Parquet file.

    Compression is zstd, for few rows snappy. Integer columns with few repeated values are delta-encoded, which reads
    in a third of the time; all other columns are dictionary-encoded, of few rows only texts. Statistics are written
    for the columns that queries skip by (``_SKIPPED``).
    """
    import pyarrow
    from pyarrow import parquet

    whole = isinstance(table, pyarrow.Table)
    rest = iter([table]) if whole else (pyarrow.Table.from_batches([batch]) for batch in table)
    first = next(rest, None)
    packed = "zstd" if first is not None and first.num_rows >= _PACKED else "snappy"
    with store.writing(file) as stream:
        # the writer emits many small pieces: buffer them
        sink = pyarrow.BufferedOutputStream(pyarrow.PythonFile(stream, mode="w"), _TOGETHER)
        schema = table.schema
        with parquet.ParquetWriter(sink, schema, write_batch_size=GROUP, **_encodings(schema, packed)) as writer:
            for part in chain([] if first is None else [first], rest):
                writer.write_table(part, row_group_size=GROUP)
        sink.detach()


@lru_cache(64)
def _encodings(schema: Any, packed: str) -> dict[str, Any]:
    """Encodings of the columns of a table, as arguments of pyarrow's writer; ``packed``: compression."""
    types = arrow_types()
    names = schema.names
    whole = [field for field in schema if field.type == types["int"]]
    # compression does not reduce delta-encoded times
    times = {field.name for field in whole if field.name in _TIMES or (field.metadata or {}).get(b"unit") in _UNITS}
    # values that seldom repeat: a dictionary saves nothing
    differences = {field.name: "DELTA_BINARY_PACKED" for field in whole
                   if field.name in times or field.name in _COUNTED or field.name.endswith(_IDS)}  # fmt: skip
    if packed == "snappy":
        # nor do numbers of few rows need one
        dictionaries = [field.name for field in schema if field.type == types["text"]]
    else:
        dictionaries = [name for name in names if name not in differences]
    return {"use_dictionary": dictionaries,
            "column_encoding": differences or None,
            "compression": packed if packed == "snappy" else {
                name: "none" if name in times else packed for name in names},
            "write_statistics": [name for name in names if name in _SKIPPED] or True}  # fmt: skip


# all captures


def local(jobs: int) -> Executor:
    """Executor with ``jobs`` processes of this machine; for one job the current process."""

    def run(function: Callable[[str], ManifestEntry], paths: Sequence[str]) -> Iterator[ManifestEntry]:
        if jobs == 1 or len(paths) == 1:
            yield from map(function, paths)
            return
        from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
        from multiprocessing import get_context

        count = min(jobs, len(paths))
        with ProcessPoolExecutor(count, get_context("spawn"), _begin_worker, (count,)) as pool:
            try:
                for done in as_completed([pool.submit(function, path) for path in paths]):
                    yield done.result()
            except BrokenExecutor:
                raise TpuprofError("A process that read a capture was killed, as happens when memory runs out.",
                                   "What was read is kept: build again, with fewer --jobs.") from None  # fmt: skip
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    return run


def _begin_worker(jobs: int) -> None:
    """Initializes one of ``jobs`` pool processes: shares the CPUs, and ends it when its parent is gone.

    Without the latter it would wait forever if the parent is killed.

    Ignores Ctrl+C, which the terminal sends to all processes and the parent handles.
    """
    import signal
    import threading
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)

    share_cpus(jobs)
    parent = parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def ray(address: str | None) -> Executor:
    """Executor with the workers of a Ray cluster at ``address``, None: a new local one.

    All workers must be able to access the data set's folder.
    """

    def run(function: Callable[[str], ManifestEntry], paths: Sequence[str]) -> Iterator[ManifestEntry]:
        with requires_package("--executor ray"):
            import ray as cluster

        begun = not cluster.is_initialized()
        if begun:
            cluster.init(address=address, log_to_driver=False)
        try:
            # if a worker dies, another one retries its capture
            task = cluster.remote(max_retries=3)(plain_function(function))
            rest = iter(paths)
            waiting = [task.remote(path) for path in islice(rest, _IN_FLIGHT)]
            while waiting:
                done, waiting = cluster.wait(waiting)
                try:
                    yield from cluster.get(done)
                except cluster.exceptions.RayError as error:
                    # Ray raises errors of the function as instances of both RayError and their own class
                    if isinstance(error, TpuprofError):
                        raise
                    raise TpuprofError("A worker that read a capture died each time, as happens when memory runs out.",
                                       "What was read is kept: build again.") from None  # fmt: skip
                waiting += [task.remote(path) for path in islice(rest, len(done))]
        finally:
            if begun:
                cluster.shutdown()

    return run


def plain_function(function: Callable[[str], ManifestEntry]) -> Callable[[str], ManifestEntry]:
    """Wraps a callable in a plain function, which Ray requires."""
    return lambda path: function(path)


def build(out: str | os.PathLike[str], words: Sequence[str], run: Executor, *, prune: bool = False,
          progress: Callable[[int, int], None] = lambda done, all_: None) -> BuildResult:  # fmt: skip
    """Brings a data set up to date with captures.

    Args:
        out: Path or address of the data set; created if it does not exist.
        words: Captures to read, see `captures_of`; captures of the data set that they do not name are kept.
        run: Executor.
        prune: Whether to remove captures whose path no longer exists; they are reported in any case.
        progress: Progress callback: number of captures done, and in total.

    Raises:
        UsageError: The folder contains something else, or another process writes the data set.
        UnreadableError: The words name no capture, or the data set's file system cannot be read.
        WriteError: The data set cannot be written; captures written before are valid.
        MissingPackageError: pyarrow, or the package for the address, is not installed.
    """
    needs_pyarrow()
    catalog, built = Catalog(), BuildResult()
    paths = list(dict.fromkeys(captures_of(words, catalog, built.missing)))
    built.reasons |= {word: reason for word in built.missing if (reason := reason_of(word, catalog))}
    if not paths and len(built.missing) == len(words):
        named = ", ".join(words[:3]) + (", ..." if len(words) > 3 else ".")
        told = built.reasons.get(words[0], named) if len(words) == 1 else named
        raise UnreadableError(f"No capture was found: {told}")
    target = os.fspath(out) if is_address(out) else os.path.abspath(out)
    with Manifest.opened(target) as manifest:
        lost = manifest.sweep()
        built.deleted = [path for path in manifest.entries if not exists(path)]
        for path in built.deleted if prune else ():
            gone = manifest.entries[path]
            manifest.log(gone=[path])
            _delete_rows(manifest, gone, set())
        _delete_searched_folders(manifest, set(paths), catalog)
        # captures whose files were deleted by hand are read again, even if the words do not name them
        incomplete = {each.capture for each in manifest.entries.values() if not lost.isdisjoint(each.files)}
        due = [path for path in paths if not _is_current(manifest, path, catalog, incomplete)]
        built.unchanged = len(paths) - len(due)
        skipped = (manifest.entries[path] for path in set(paths).difference(due))
        known_unreadable = sorted((each for each in skipped if not each.readable), key=lambda each: each.path)
        built.known_unreadable = [each.path for each in known_unreadable]
        built.unreadable += built.known_unreadable
        built.reasons |= _reasons(manifest, known_unreadable)
        due += [each.path for each in manifest.entries.values() if each.capture in incomplete and exists(each.path)]
        due = list(dict.fromkeys(due))
        known = filter(None, map(manifest.entries.get, due))
        if any(entry.internal_error or entry.schema != SCHEMA for entry in known):
            # these captures will be written again, possibly with other figures: drop the cached list
            manifest.delete([LIST])
        # second round: copies of a capture whose files were replaced in the first round are now read themselves
        for _ in range(2):
            for done, entry in enumerate(run(partial(write_capture, target), due) if due else (), 1):
                if not (entry.readable and entry.fingerprint):
                    built.reasons |= _reasons(manifest, [entry])
                _record(manifest, entry, built)
                progress(done, len(due))
            entries = manifest.entries.values()
            due = [each.path for each in entries if each.capture not in manifest.owners and exists(each.path)]
            if not due:
                break
        manifest.rewrite()
        write_list(manifest)
    return built


def _is_current(manifest: Manifest, path: str, catalog: Catalog, incomplete: set[str]) -> bool:
    known = manifest.entries.get(path)
    if known is None or known.schema != SCHEMA or not known.fingerprint or known.internal_error:
        return False
    return known.capture not in incomplete and known.fingerprint == fingerprint(path, catalog)


def _delete_searched_folders(manifest: Manifest, paths: set[str], catalog: Catalog) -> None:
    """Deletes the rows of folders that could not be listed before, and whose captures are all among ``paths`` now."""
    for entry in list(manifest.entries.values()):
        if not (entry.readable or entry.fingerprint or entry.path in paths) and os.path.isdir(entry.path):
            found = set(captures_of([entry.path], catalog, []))
            if entry.path not in found and found <= paths:
                manifest.log(gone=[entry.path])
                _delete_rows(manifest, entry, set())


def _reasons(manifest: Manifest, entries: Sequence[ManifestEntry]) -> dict[str, str]:
    from pyarrow import ArrowException

    # the rows of identical captures are in the files of one of them
    captures = {each.capture for each in entries}
    owners = [manifest.entries[manifest.owners[capture]] for capture in captures & manifest.owners.keys()]
    files = {file for each in (*entries, *owners) for file in each.files if file.startswith("problems/")}

    def rows(file: str) -> list[dict[str, Any]]:
        with suppress(OSError, UnreadableError, ArrowException):
            found: list[dict[str, Any]] = _read(manifest, file, ["capture", "severity", "what"]).to_pylist()
            return found
        return []

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        found = [row for some in pool.map(rows, sorted(files)) for row in some if row["capture"] in captures]
    reasons = {row["capture"]: row["what"] for severity in ("error", "fatal") for row in found
               if row["severity"] == severity}  # fmt: skip
    return {each.path: reasons[each.capture] for each in entries if each.capture in reasons}


def _record(manifest: Manifest, entry: ManifestEntry, built: BuildResult) -> None:
    former = manifest.entries.get(entry.path)
    owner = manifest.entries.get(manifest.owners.get(entry.capture, entry.path))
    owner = None if owner is former else owner
    if not entry.fingerprint and former is not None and former.readable and (former.fingerprint or not entry.readable):
        # not all of the capture can be accessed now: keep what was read before
        manifest.delete(set(entry.files) - manifest.files)
        built.unreadable.append(entry.path)
        return
    if not all(manifest.has(file) for file in entry.files):
        # its files were deleted meanwhile with an identical capture that was replaced: the second round reads it again
        manifest.log([replace(entry, files=())])
    elif owner is not None and exists(owner.path):
        built.same.append(entry.path)
        if entry.files == owner.files:
            # the copy has overwritten them, and their rows name its path
            manifest.log([replace(owner, files=()), entry])
        else:
            surplus = set(entry.files) - set(owner.files)
            entry = replace(entry, files=())
            manifest.log([entry])
            manifest.delete(surplus)
    elif owner is not None:
        # the capture has been moved: its files now belong to the new path
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


def _delete_rows(manifest: Manifest, entry: ManifestEntry, kept: set[str]) -> None:
    """Deletes the rows of a capture; files shared with other captures are rewritten without them."""
    for file in set(entry.files) - kept:
        sharing = manifest.sharing.get(file)
        # a file that was deleted by hand has no rows
        if sharing and manifest.store.has(file):
            import pyarrow
            from pyarrow import compute

            table = _read(manifest, file)
            others = compute.not_equal(table["capture"].cast(pyarrow.string()), entry.capture)
            renamed = f"{file.rpartition('/')[0]}/{_shared_name(manifest.entries[path].capture for path in sharing)}"
            write_table(table.filter(others), manifest.store, renamed)
            manifest.join([file], renamed)
        manifest.delete([file])


def _read(manifest: Manifest, file: str, columns: list[str] | None = None) -> Any:
    from pyarrow import parquet

    with manifest.store.open(file) as stream:
        return parquet.read_table(stream, columns=columns)


def _shared_name(captures: Iterable[str]) -> str:
    import hashlib

    return f"{hashlib.blake2b(' '.join(sorted(captures)).encode(), digest_size=12).hexdigest()}-all.parquet"


# compaction


def compact(out: str | os.PathLike[str]) -> tuple[int, int]:
    """Joins small files of each folder of a data set; returns the number of files before and after.

    Raises:
        UsageError: Another process writes the data set.
        UnreadableError: There is no data set, or one of its files was deleted by hand.
    """
    needs_pyarrow()
    import pyarrow

    Manifest.read(out)
    with Manifest.opened(out) as manifest:
        lost = manifest.sweep()
        if lost:
            raise manifest.lost_error(lost)
        before = len(manifest.files)
        for parts in list(_files_to_join(manifest)):
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
        write_list(manifest)
        return before, len(manifest.files)


def _files_to_join(manifest: Manifest) -> Iterator[list[str]]:
    """Groups of files to join: adjacent files of a folder, up to `_MOST_ROWS` rows together."""
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
