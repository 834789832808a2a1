"""What a data set holds: a log of one line for each capture that is written, replaced or gone, or for files joined.

A line is appended when all files of a capture are there, so that the log is true whenever a build ends; a last line
that is cut off counts as none. The last line of a path counts.
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
from .schema import FIELDS, SCHEMA
from .store import Store, store_at


class Entry(Struct, frozen=True):
    """A capture.

    Attributes:
        path: Where it lay.
        fingerprint: Of its files there when they were read.
        capture: Its identity.
        readable: Whether it could be read.
        files: Its Parquet files, relative to the data set; none where another path has the same content.
        schema: Version of the tables.
        internal_error: Type and place of an error of this package itself; empty: there was none.
    """

    path: str
    fingerprint: str
    capture: str
    readable: bool
    files: tuple[str, ...]
    schema: str = SCHEMA
    internal_error: str = ""


class Manifest:
    """The log of a data set.

    Args:
        store: The files of the data set.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.entries: dict[str, Entry] = {}
        #: Path of the entry that has the files of a capture.
        self.owners: dict[str, str] = {}
        #: Paths of the entries that have a file.
        self.sharing: dict[str, set[str]] = {}
        self._deleted: set[str] = set()

    @classmethod
    def read(cls, out: str | os.PathLike[str]) -> Manifest:
        """The log of a data set that is there, at a path or address.

        Raises:
            UnreadableError: There is none, or it cannot be read.
        """
        found = cls(store_at(out))
        found._read()
        return found

    def _read(self) -> None:
        out = self.store.out
        try:
            log = self.store.read_log()
        except OSError as error:
            raise UnreadableError(f"{out}: its log cannot be read.", "Build it anew into another folder.") from error
        if log is None:
            raise UnreadableError(f"{out} is no data set.", f"Make it: tpuprof dataset build {out} PATH ...")
        lines = log.split(b"\n")
        for place, line in enumerate(lines):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                # the last line may have been cut off while it was written
                if line and place < len(lines) - 1:
                    raise UnreadableError(
                        f"{self.store.path(LOG)}: line {place + 1} cannot be read.",
                        "Build it anew into another folder.",
                    ) from None

    def _take(self, record: dict[str, Any]) -> None:
        if "gone" in record:
            self._drop(str(record["gone"]))
            return
        if "joined" in record:
            self._move(list(map(str, record["joined"])), str(record["into"]))
            return
        files = tuple(str(file) for file in record.pop("files"))
        if not all(_within(file) for file in files):
            raise ValueError("a file outside the data set")
        self.put(Entry(**record, files=files))

    def put(self, entry: Entry) -> None:
        """Takes a capture, without a line in the log."""
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
        """The log of a data set to write into while nobody else does, begun where there is none.

        Raises:
            UsageError: There is something else, or another process writes there.
        """
        found = cls(store_at(out))
        with found.store.held():
            if found.store.read_log() is None:
                found.rewrite()
            found._read()
            # a line that was cut off goes before others follow
            found.rewrite()
            yield found

    def rewrite(self) -> None:
        """The log anew, as one file that appears whole."""
        self.store.write_log(b"".join(_line(asdict(entry)) for entry in self.entries.values()))

    def log(self, entries: Iterable[Entry] = (), gone: Iterable[str] = ()) -> None:
        """Takes captures, and lets others go."""
        lines = bytearray()
        for path in gone:
            self._drop(path)
            lines += _line({"gone": path})
        for entry in entries:
            self.put(entry)
            lines += _line(asdict(entry))
        self.store.append_log(bytes(lines))

    def join(self, files: Sequence[str], into: str) -> None:
        """Has the captures of some files in another one. It is one line: they move all at once, or none."""
        self._move(files, into)
        self.store.append_log(_line({"joined": files, "into": into}))

    @property
    def files(self) -> set[str]:
        """All files that count."""
        return set(self.sharing)

    def names_of(self, table: str) -> list[str]:
        """Files of a table relative to the data set, in their order."""
        return [file for file in sorted(self.files) if file.startswith(f"{table}/")]

    def of_table(self, table: str) -> list[str]:
        """Paths or addresses of the files of a table, in the order of their names."""
        return [self.store.path(file) for file in self.names_of(table)]

    def has(self, name: str) -> bool:
        """Whether a file that was written in the meantime is still there; asks for those alone that were deleted."""
        return name not in self._deleted or self.store.has(name)

    def delete(self, names: Iterable[str]) -> None:
        """Deletes files that count no more."""
        gone = list(names)
        self._deleted.update(gone)
        self.store.delete(gone)

    def sweep(self) -> set[str]:
        """Deletes files of captures that a killed build did not finish; gives those that are there."""
        kept, there = self.files, {name for table in FIELDS for name in self.store.names(table)}
        self.delete(sorted(there - kept))
        return there & kept


def _line(record: dict[str, Any]) -> bytes:
    return f"{json.dumps(record)}\n".encode("ascii")


def _within(file: str) -> bool:
    parts = file.split("/")
    return parts[0] in FIELDS and ".." not in parts and file.endswith(".parquet")
