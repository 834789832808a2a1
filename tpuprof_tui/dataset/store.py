"""Storage of a data set: a local folder, or an address on another file system (``s3://``, any of fsspec)."""

from __future__ import annotations

import io
import json
import os
import posixpath
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar, cast

from tpuprof_tui.errors import UnreadableError, UsageError
from tpuprof_tui.formats.files import WriteError, whole_file

from . import LOG
from .captures import is_address, system_of, with_retries

_LOCK: Final = "_tpuprof.lock"
#: Folder for log lines on file systems where files cannot be appended to; query engines ignore it.
_PARTS: Final = "_tpuprof"
#: Time for which log lines are collected before they are written as such a file, seconds.
_FLUSH_INTERVAL: Final = 1.0
#: Age at which a lock is considered stale, and interval at which its owner renews it, seconds.
_STALE_AFTER: Final = 600.0
_RENEWAL_INTERVAL: Final = 60.0
#: Number of files that are opened in parallel.
AT_A_TIME: Final = 16
_Answer = TypeVar("_Answer")


class FolderStore:
    """Storage of a data set in a local folder.

    Args:
        out: The folder.

    Attributes:
        read_errors: Errors of files read through `for_arrow`.
    """

    def __init__(self, out: str) -> None:
        self.out = out
        self.read_errors: list[UnreadableError] = []
        self._folder = Path(out)

    def path(self, name: str) -> str:
        """Path of a file of the data set."""
        return str(self._folder / name)

    def read_log(self) -> bytes | None:
        """Contents of the log; None if there is none."""
        try:
            return (self._folder / LOG).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def append_log(self, lines: bytes) -> None:
        """Appends lines to the log; they are durable at the latest on the next `delete` or `write_log`."""
        with (self._folder / LOG).open("ab") as stream:
            stream.write(lines)

    def write_log(self, lines: bytes) -> None:
        """Replaces the log atomically."""
        with self.writing(LOG) as stream:
            stream.write(lines)

    def names(self, table: str) -> Iterator[str]:
        """Names of the Parquet files of a table, relative to the data set."""
        for file in sorted((self._folder / table).rglob("*.parquet")):
            yield file.relative_to(self._folder).as_posix()

    def has(self, name: str) -> bool:
        """Whether a file exists."""
        return (self._folder / name).is_file()

    def open(self, name: str) -> BinaryIO:
        """Opens a file for reading."""
        return (self._folder / name).open("rb")

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Context manager of a file that appears only when the block ends without an error."""
        with whole_file(self._folder / name) as stream:
            yield stream

    def delete(self, names: Iterable[str]) -> None:
        """Deletes files; missing ones are ignored."""
        for name in names:
            (self._folder / name).unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Context manager that holds the write lock of the data set; creates the folder.

        Raises:
            UsageError: The folder contains something else, or another process writes the data set.
        """
        import fcntl

        out = self._folder
        if not self.has(LOG) and out.exists() and (not out.is_dir() or set(os.listdir(out)) - {_LOCK}):
            raise _not_a_data_set(self.out)
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
            yield

    def for_arrow(self) -> Any:
        """File system of pyarrow in which names relative to the data set are paths."""
        from pyarrow import fs

        return fs.SubTreeFileSystem(self.out, fs.LocalFileSystem())


class AddressStore:
    """Storage of a data set at an address. Operations are attempted up to four times.

    Object stores cannot append: log lines are written as additional files, which `write_log` merges into the log and
    then deletes, oldest first, so that an interruption still leaves an equivalent log.

    Args:
        out: The address.
    """

    def __init__(self, out: str) -> None:
        self.out = out
        self.read_errors: list[UnreadableError] = []
        self._system, path = system_of(out)
        self._root = path.rstrip("/")
        self._next = 0
        self._pending_lines = bytearray()
        self._last_flush = time.monotonic()

    def path(self, name: str) -> str:
        """See `FolderStore`."""
        return f"{self.out.rstrip('/')}/{name}"

    def read_log(self) -> bytes | None:
        """See `FolderStore`."""
        for _ in range(3):
            parts = self._listed(_PARTS)
            found = self._read_file(LOG)
            if found is None:
                return None
            later = [self._read_file(part) for part in parts]
            # a missing part was merged into a newer log meanwhile: read again
            known = [part for part in later if part is not None]
            if len(known) == len(parts):
                self._next = max((int(part[len(_PARTS) + 1 :].partition(".")[0]) for part in parts), default=0) + 1
                return b"".join((found, *known))
        raise UnreadableError(f"{self.out}: its log changed while it was read.", "Try again.")

    def append_log(self, lines: bytes) -> None:
        """See `FolderStore`."""
        self._pending_lines += lines
        if time.monotonic() - self._last_flush > _FLUSH_INTERVAL:
            self._flush()

    def write_log(self, lines: bytes) -> None:
        """See `FolderStore`."""
        self._write_file(LOG, lines)
        self._pending_lines.clear()
        for part in self._listed(_PARTS):
            self._remove(part)

    def names(self, table: str) -> Iterator[str]:
        """See `FolderStore`."""
        return (name for name in self._listed(table) if name.endswith(".parquet"))

    def has(self, name: str) -> bool:
        """See `FolderStore`."""
        return bool(self._with_retries(lambda: self._uncached_system().exists(self._path(name))))

    def open(self, name: str) -> BinaryIO:
        """See `FolderStore`."""
        return cast(BinaryIO, RetryingFileSystem(self._uncached_system(), self.out).open(self._path(name)))

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """See `FolderStore`."""
        with tempfile.NamedTemporaryFile(prefix="tpuprof") as stream:
            yield stream  # type: ignore[misc]
            stream.flush()
            self._retry_write(name, lambda: self._system.put_file(stream.name, self._path(name)))

    def delete(self, names: Iterable[str]) -> None:
        """See `FolderStore`."""
        self._flush()
        for name in names:
            self._remove(name)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """See `FolderStore`."""
        if self._read_file(LOG) is None and set(self._root_names()) - {_LOCK, _PARTS}:
            raise _not_a_data_set(self.out)
        lock = {"host": socket.gethostname(), "process": os.getpid(), "token": os.urandom(8).hex()}
        self._acquire_lock(lock)
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(_RENEWAL_INTERVAL):
                with suppress(WriteError):
                    self._write_file(_LOCK, _lock_text(lock))

        renewal = threading.Thread(target=renew, daemon=True)
        renewal.start()
        try:
            yield
        finally:
            ended.set()
            renewal.join()
            with suppress(WriteError):
                self._remove(_LOCK)

    def for_arrow(self) -> Any:
        """See `FolderStore`."""
        from pyarrow import fs

        system = _ArrowFileSystem(self._uncached_system(), self.out, self.read_errors)
        return fs.SubTreeFileSystem(self._root, fs.PyFileSystem(fs.FSSpecHandler(system)))

    def _acquire_lock(self, lock: dict[str, Any]) -> None:
        """Creates the lock file; replaces a stale one.

        Raises:
            UsageError: Another process holds the lock.
        """
        for _ in range(2):
            with suppress(FileExistsError):
                self._retry_write(_LOCK, lambda: self._system.pipe_file(self._path(_LOCK), _lock_text(lock),
                                                                    mode="create"))  # fmt: skip
                return
            found = _lock_of(self._read_file(_LOCK) or b"")
            if found.get("token") == lock["token"]:
                # an attempt that reported an error did succeed
                return
            if not _is_stale(found):
                who = f"process {found.get('process')} of {found.get('host')}"
                raise UsageError(f"{self.out} is being written by another process ({who}).",
                                 f"Wait until it has ended; if it has, delete {self.path(_LOCK)}.")  # fmt: skip
            self._remove(_LOCK)
        raise UsageError(f"{self.out} is being written by another process.", "Wait until it has ended.")

    def _flush(self) -> None:
        if self._pending_lines:
            self._write_file(f"{_PARTS}/{self._next:09}.jsonl", bytes(self._pending_lines))
            self._next += 1
            self._pending_lines.clear()
        self._last_flush = time.monotonic()

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _uncached_system(self) -> Any:
        self._system.invalidate_cache()
        return self._system

    def _with_retries(self, action: Callable[[], _Answer]) -> _Answer:
        return with_retries(self.out, action)

    def _read_file(self, name: str) -> bytes | None:
        def got() -> bytes | None:
            try:
                return bytes(self._system.cat_file(self._path(name)))
            except FileNotFoundError:
                return None

        return self._with_retries(got)

    def _listed(self, folder: str) -> list[str]:
        found = self._with_retries(lambda: self._uncached_system().find(self._path(folder)))
        return sorted(posixpath.relpath(str(each), self._root) for each in found)

    def _root_names(self) -> list[str]:
        def names() -> list[str]:
            try:
                return [posixpath.basename(str(each).rstrip("/")) for each in
                        self._uncached_system().ls(self._root, detail=False)]  # fmt: skip
            except FileNotFoundError:
                return []

        return self._with_retries(names)

    def _write_file(self, name: str, data: bytes) -> None:
        self._retry_write(name, lambda: self._system.pipe_file(self._path(name), data))

    def _remove(self, name: str) -> None:
        def remove() -> None:
            with suppress(FileNotFoundError):
                self._system.rm_file(self._path(name))

        self._retry_write(name, remove)

    def _retry_write(self, name: str, action: Callable[[], object]) -> None:
        def within_folder() -> None:
            try:
                action()
            except FileNotFoundError:
                # file systems with real folders: create the folder first
                self._system.makedirs(posixpath.dirname(self._path(name)), exist_ok=True)
                action()

        try:
            self._with_retries(within_folder)
        except UnreadableError as error:
            if isinstance(error.__cause__, FileExistsError):
                raise error.__cause__ from None
            reason = str(error.__cause__ or error).rstrip(".")
            raise WriteError(f"{self.path(name)} could not be written: {reason}.",
                             "What was read is kept: build again.") from error  # fmt: skip


#: Storage of a data set; files are named relative to it.
Store = FolderStore | AddressStore


def store_at(out: str | os.PathLike[str]) -> Store:
    """Storage of the data set at a path or address."""
    address = os.fspath(out)
    return AddressStore(address) if is_address(address) else FolderStore(address)


class RetryingFileSystem:
    """Read-only fsspec file system with retries; implements what pyarrow needs.

    Args:
        system: The underlying file system.
        address: Its name in messages.
    """

    def __init__(self, system: Any, address: str) -> None:
        self._system, self._address = system, address
        self.protocol = system.protocol

    def open(self, path: str, mode: str = "rb") -> Any:
        """Opens a file for reading with retries."""
        return _RetryingFile(self._attempt(lambda: self._system.open(path, mode), io.BytesIO()), self._attempt)

    def info(self, path: str) -> Any:
        """Details of a file."""
        return with_retries(self._address, lambda: self._system.info(path))

    def isfile(self, path: str) -> bool:
        """True for any path: pyarrow asks for files only."""
        return bool(path)

    def _attempt(self, action: Callable[[], Any], otherwise: Any) -> Any:
        return with_retries(self._address, action)


class _ArrowFileSystem(RetryingFileSystem):
    """The file system for pyarrow's threads, which may wait for each other forever after a Python exception.

    After an error all files end early, which pyarrow reports as an error of its own.

    Args:
        system, address: See `RetryingFileSystem`.
        errors: Collects the errors.
    """

    def __init__(self, system: Any, address: str, errors: list[UnreadableError]) -> None:
        super().__init__(system, address)
        self._errors = errors

    def _attempt(self, action: Callable[[], Any], otherwise: Any) -> Any:
        if not self._errors:
            try:
                return super()._attempt(action, otherwise)
            except UnreadableError as error:
                self._errors.append(error)
        return otherwise


class _RetryingFile(io.BufferedIOBase):
    """A file whose reads are retried from the same offset."""

    def __init__(self, file: Any, attempt: Callable[[Callable[[], Any], Any], Any]) -> None:
        self._file, self._attempt = file, attempt
        self.mode = "rb"

    def read(self, count: int | None = -1) -> Any:
        """Reads bytes from the current position."""
        offset = self._file.tell()

        def read() -> Any:
            self._file.seek(offset)
            return self._file.read(-1 if count is None else count)

        return self._attempt(read, b"")

    def readable(self) -> bool:
        """Always True."""
        return True

    def seekable(self) -> bool:
        """Always True."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Sets the position; returns it."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """Current position."""
        return int(self._file.tell())

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
        super().close()


def _not_a_data_set(out: str) -> UsageError:
    return UsageError(f"{out} is not a data set, and not empty.", "Choose another folder, or a new one.")


def _lock_text(lock: dict[str, Any]) -> bytes:
    return json.dumps({**lock, "time": time.time()}).encode("ascii")


def _lock_of(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_stale(lock: dict[str, Any]) -> bool:
    """Whether a lock is stale: its process on this machine has ended, or it was not renewed for ``_STALE_AFTER`` s."""
    process, seen = lock.get("process"), lock.get("time")
    if lock.get("host") == socket.gethostname() and isinstance(process, int) and process > 0:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
    return not isinstance(seen, (int, float)) or time.time() - seen > _STALE_AFTER
