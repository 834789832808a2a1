"""What a data set holds: a log of one line for each capture that is written, replaced or gone.

A line is appended when all files of a capture are there, so that the log is true whenever a build ends; a last line
that is cut off counts as none. The last line of a path counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tpuprof_tui.errors import UnreadableError, UsageError
from tpuprof_tui.formats.files import whole_file

from . import LOG
from .tables import FIELDS, SCHEMA

_LOCK: Final = "_tpuprof.lock"


@dataclass(frozen=True)
class Entry:
    """A capture.

    Attributes:
        path: Where it lay.
        fingerprint: Of its files there when they were read.
        capture: Its identity.
        readable: Whether it could be read.
        files: Its Parquet files, relative to the data set; none where another path has the same content.
        schema: Version of the tables.
    """

    path: str
    fingerprint: str
    capture: str
    readable: bool
    files: tuple[str, ...]
    schema: str = SCHEMA


class Manifest:
    """The log of a data set.

    Args:
        out: Folder of the data set.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.entries: dict[str, Entry] = {}
        #: Path of the entry that has the files of a capture.
        self.owners: dict[str, str] = {}

    @classmethod
    def read(cls, out: Path) -> Manifest:
        """The log of a data set that is there.

        Raises:
            UnreadableError: There is none, or it cannot be read.
        """
        if not (out / LOG).is_file():
            raise UnreadableError(f"{out} is no data set.", f"Make it: tpuprof dataset build {out} PATH ...")
        found = cls(out)
        try:
            lines = (out / LOG).read_text(encoding="utf-8").split("\n")
        except (OSError, ValueError) as error:
            raise UnreadableError(f"{out}: its log cannot be read.", "Build it anew into another folder.") from error
        for place, line in enumerate(lines):
            try:
                found._take(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                # the last line may have been cut off while it was written
                if line and place < len(lines) - 1:
                    raise UnreadableError(
                        f"{out / LOG}: line {place + 1} cannot be read.", "Build it anew into another folder."
                    ) from None
        return found

    def _take(self, record: dict[str, Any]) -> None:
        if "gone" in record:
            self._drop(str(record["gone"]))
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

    def _drop(self, path: str) -> None:
        former = self.entries.pop(path, None)
        if former is not None and self.owners.get(former.capture) == path:
            del self.owners[former.capture]

    @classmethod
    @contextmanager
    def opened(cls, out: Path) -> Iterator[Manifest]:
        """The log of a data set to write into while nobody else does, begun where there is none.

        Raises:
            UsageError: The folder holds something else, or another process writes there.
        """
        import fcntl

        if not (out / LOG).is_file() and out.exists() and (not out.is_dir() or set(os.listdir(out)) - {_LOCK}):
            raise UsageError(f"{out} is no data set, and not empty.", "Name another folder, or one that is not there.")
        try:
            out.mkdir(parents=True, exist_ok=True)
            stream = (out / _LOCK).open("ab")
        except OSError as error:
            raise UsageError(f"{out}: {(error.strerror or 'cannot be written').lower()}.") from None
        with stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(f"{out} is being written by another process.", "Wait until it has ended.") from None
            if not (out / LOG).is_file():
                cls(out).rewrite()
            found = cls.read(out)
            # a line that was cut off goes before others follow
            found.rewrite()
            yield found

    def rewrite(self) -> None:
        """The log anew, as one file that appears whole."""
        with whole_file(self.out / LOG) as stream:
            for entry in self.entries.values():
                stream.write(_line(asdict(entry)))

    def log(self, entries: Iterable[Entry] = (), gone: Iterable[str] = ()) -> None:
        """Takes captures, and lets others go."""
        with (self.out / LOG).open("ab") as stream:
            for path in gone:
                self._drop(path)
                stream.write(_line({"gone": path}))
            for entry in entries:
                self.put(entry)
                stream.write(_line(asdict(entry)))

    @property
    def files(self) -> set[str]:
        """All files that count."""
        return {file for entry in self.entries.values() for file in entry.files}

    def of_table(self, table: str) -> list[Path]:
        """Files of a table, in the order of their names."""
        return [self.out / file for file in sorted(self.files) if file.startswith(f"{table}/")]

    def sweep(self) -> int:
        """Deletes files of captures that a killed build did not finish; gives their number."""
        kept, count = self.files, 0
        for table in FIELDS:
            for file in sorted((self.out / table).rglob("*.parquet")):
                if str(file.relative_to(self.out)) not in kept:
                    file.unlink(missing_ok=True)
                    count += 1
        return count


def _line(record: dict[str, Any]) -> bytes:
    return f"{json.dumps(record)}\n".encode("ascii")


def _within(file: str) -> bool:
    parts = file.split("/")
    return parts[0] in FIELDS and ".." not in parts and file.endswith(".parquet")
