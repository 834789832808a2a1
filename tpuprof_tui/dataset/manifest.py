"""Manifest of a data set: a log with one line per capture that was written, replaced or removed, or per joined file.

A line is appended once all files of a capture are complete, so that the log is valid whenever a build stops; a
truncated last line is ignored. For each path the last line applies.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from tpuprof_tui.errors import UnreadableError

from . import LOG
from .captures import exists
from .schema import FIELDS, SCHEMA
from .store import Store, store_at


class ManifestEntry(Struct, frozen=True):
    """A capture in the manifest."""

    path: str  #: Path or address when it was read
    fingerprint: str  #: Fingerprint of its files when they were read
    capture: str  #: Identity (hash of its contents)
    readable: bool  #: Whether it could be read
    files: tuple[str, ...]  #: Its Parquet files, relative to the data set; empty if another path has the same content
    schema: str = SCHEMA  #: Version of the tables
    internal_error: str = ""  #: Type and location of a bug in this package that occurred; empty: none


class Manifest:
    """The manifest of a data set.

    Attributes:
        store: The files of the data set.
        entries: Captures by path.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.entries: dict[str, ManifestEntry] = {}
        #: Path of the entry that owns the files, by capture.
        self.owners: dict[str, str] = {}
        #: Paths of the entries that use a file, by file.
        self.sharing: dict[str, set[str]] = {}
        self._deleted: set[str] = set()

    @classmethod
    def read(cls, out: str | os.PathLike[str]) -> Manifest:
        """Reads the manifest of an existing data set at a path or address.

        Raises:
            UnreadableError: There is no data set, or it cannot be read.
        """
        found = cls(store_at(out))
        found._read()
        return found

    def _read(self) -> None:
        out = self.store.out
        try:
            log = self.store.read_log()
        except OSError as error:
            raise UnreadableError(f"{out}: its log cannot be read.", "Build it again into another folder.") from error
        if log is None:
            raise UnreadableError(f"{out} is not a data set.", f"Make it: tpuprof dataset build {out} PATH ...")
        lines = log.split(b"\n")
        for number, line in enumerate(lines):
            try:
                self._replay(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                # the last line may be truncated by a killed build
                if line and number < len(lines) - 1:
                    raise UnreadableError(
                        f"{self.store.path(LOG)}: line {number + 1} cannot be read.",
                        "Build it again into another folder.",
                    ) from None

    def _replay(self, record: dict[str, Any]) -> None:
        if "gone" in record:
            self._drop(str(record["gone"]))
            return
        if "joined" in record:
            self._move(list(map(str, record["joined"])), str(record["into"]))
            return
        files = tuple(str(file) for file in record.pop("files"))
        if not all(_within(file) for file in files):
            raise ValueError("a file outside the data set")
        self.put(ManifestEntry(**record, files=files))

    def put(self, entry: ManifestEntry) -> None:
        """Adds or replaces a capture, without writing the log."""
        self._drop(entry.path)
        self.entries[entry.path] = entry
        if entry.files:
            self.owners[entry.capture] = entry.path
        for file in entry.files:
            self.sharing.setdefault(file, set()).add(entry.path)

    def _drop(self, path: str) -> None:
        former = self.entries.pop(path, None)
        if former is not None and self.owners.get(former.capture) == path:
            del self.owners[former.capture]
        for file in () if former is None else former.files:
            self.sharing[file].discard(path)
            if not self.sharing[file]:
                del self.sharing[file]

    def _move(self, files: Sequence[str], into: str) -> None:
        if not _within(into):
            raise ValueError("a file outside the data set")
        moved = dict.fromkeys(files, into)
        for path in sorted({path for file in files for path in self.sharing.get(file, ())}):
            entry = self.entries[path]
            self.put(replace(entry, files=tuple(dict.fromkeys(moved.get(file, file) for file in entry.files))))

    @classmethod
    @contextmanager
    def opened(cls, out: str | os.PathLike[str]) -> Iterator[Manifest]:
        """Locks a data set for writing and reads its manifest; creates it if there is none.

        Raises:
            UsageError: The folder contains something else, or another process writes the data set.
        """
        found = cls(store_at(out))
        with found.store.locked():
            if found.store.read_log() is None:
                found.rewrite()
            found._read()
            # removes a truncated last line before others are appended
            found.rewrite()
            yield found

    def rewrite(self) -> None:
        """Rewrites the log atomically, without outdated lines."""
        self.store.write_log(b"".join(_line(asdict(entry)) for entry in self.entries.values()))

    def log(self, entries: Iterable[ManifestEntry] = (), gone: Iterable[str] = ()) -> None:
        """Adds captures and removes those at the paths ``gone``; appends both to the log."""
        lines = bytearray()
        for path in gone:
            self._drop(path)
            lines += _line({"gone": path})
        for entry in entries:
            self.put(entry)
            lines += _line(asdict(entry))
        self.store.append_log(bytes(lines))

    def join(self, files: Sequence[str], into: str) -> None:
        """Records that files were joined into another one; a single log line, so that this is atomic."""
        self._move(files, into)
        self.store.append_log(_line({"joined": files, "into": into}))

    @property
    def files(self) -> set[str]:
        """All valid files."""
        return set(self.sharing)

    def names_of(self, table: str) -> list[str]:
        """Files of a table relative to the data set, sorted by name."""
        return [file for file in sorted(self.files) if file.startswith(f"{table}/")]

    def of_table(self, table: str) -> list[str]:
        """Paths or addresses of the files of a table, sorted by name."""
        return [self.store.path(file) for file in self.names_of(table)]

    def has(self, name: str) -> bool:
        """Whether a file written by this build still exists; checks the store only for names deleted meanwhile."""
        return name not in self._deleted or self.store.has(name)

    def delete(self, names: Iterable[str]) -> None:
        """Deletes files that are no longer valid."""
        gone = list(names)
        self._deleted.update(gone)
        self.store.delete(gone)

    def sweep(self) -> set[str]:
        """Deletes files that are not in the manifest, such as of a killed build; returns valid ones that are lost."""
        valid, existing = self.files, {name for table in FIELDS for name in self.store.names(table)}
        self.delete(sorted(existing - valid))
        return valid - existing

    def check_files(self, tables: Iterable[str]) -> None:
        """Checks that all valid files of tables exist.

        Raises:
            UnreadableError: A file was deleted by hand, or by a build after this manifest was read.
        """
        lost = {file for table in tables for file in {*self.names_of(table)}.difference(self.store.names(table))}
        if lost:
            if not lost <= Manifest.read(self.store.out).files:
                raise UnreadableError(f"{self.store.out} was changed by a build while it was read.", "Try again.")
            raise self.lost_error(lost)

    def lost_error(self, lost: Iterable[str]) -> UnreadableError:
        """Error that names a lost file, and how to write it again."""
        first, *more = sorted(lost)
        paths = sorted(self.sharing[first])
        also = f" (and {len(more):,} more)" if more else ""
        path = next(filter(exists, paths), None)
        if path is None:
            hint = f"Its capture {paths[0]} no longer exists: build with --prune to remove it."
        else:
            hint = f"Write it again: tpuprof dataset build {self.store.out} {path}."
        return UnreadableError(f"{self.store.path(first)} is lost{also}.", hint)


def _line(record: dict[str, Any]) -> bytes:
    return f"{json.dumps(record)}\n".encode("ascii")


def _within(file: str) -> bool:
    parts = file.split("/")
    return parts[0] in FIELDS and ".." not in parts and file.endswith(".parquet")
