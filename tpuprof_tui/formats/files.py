"""Atomic file output: a file appears complete or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from tpuprof_tui.errors import TpuprofError

#: Directory of the open files of this process, by descriptor.
_DESCRIPTORS: Final = "/proc/self/fd"
#: Error codes of file systems that do not support unnamed files (``O_TMPFILE``).
_NO_UNNAMED: Final = (errno.EOPNOTSUPP, errno.EINVAL, errno.EISDIR, errno.ENOENT)


class WriteError(TpuprofError):
    """An output file could not be written."""


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Context manager of a binary file that appears as ``path`` only if the block ends without an error.

    The file is unnamed until then if the file system supports it, so that nothing is left even if the process is
    killed; otherwise it has a temporary name in the same folder.

    Raises:
        WriteError: The folder cannot be created or is read-only, the disk is full, or ``path`` is a pipe, a socket or
            a device; no file is left.
    """
    temporary: str | None = None
    folder, name = os.path.split(path)
    folder = folder or "."
    try:
        if _is_special(path, folder):
            raise OSError(errno.EINVAL, "only files can be replaced, not a pipe, socket or device")
        try:
            descriptor, temporary = _new_file(folder, name)
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)
            descriptor, temporary = _new_file(folder, name)
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fchmod(descriptor, 0o666 & ~_umask())
            if temporary is None:
                temporary = _link_temporary(descriptor, folder, name)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise WriteError(f"{path} could not be written: {reason}.", "Choose another output folder.") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def _is_special(path: Path, folder: str) -> bool:
    """Whether a path must not be replaced by a file: pipes, sockets, devices, and paths in /dev and /proc."""
    with suppress(OSError):
        # resolving links component by component would take three times as long
        state = os.stat(folder)
        if os.path.samestat(state, os.stat("/dev")) or state.st_dev == os.stat("/proc").st_dev:
            return True
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except OSError:
        return False
    return kind not in (stat.S_IFREG, stat.S_IFDIR)


def _new_file(folder: str, name: str) -> tuple[int, str | None]:
    """Creates a file in a folder, to be named ``name``; returns its descriptor and path, None for an unnamed file."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir(_DESCRIPTORS):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600), None
        except OSError as error:
            if error.errno not in _NO_UNNAMED:
                raise
    import tempfile  # seldom needed, and slow to import

    return tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)


def _link_temporary(descriptor: int, folder: str, name: str) -> str:
    """Links an unnamed file to a temporary name in a folder."""
    temporary = f".{name}.{os.getpid()}.{os.urandom(4).hex()}.part"
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # the symbolic link is followed to the open file only with directory descriptors (linkat)
        os.link(f"{_DESCRIPTORS}/{descriptor}", temporary, src_dir_fd=directory, dst_dir_fd=directory,
                follow_symlinks=True)  # fmt: skip
    except OSError:
        # a file system without hard links: copy the bytes to a named file
        _copy_to(descriptor, Path(folder, temporary))
    finally:
        os.close(directory)
    return os.path.join(folder, temporary)


def _copy_to(descriptor: int, path: Path) -> None:
    """Copies an open file to ``path``; deletes the copy on failure."""
    import shutil  # seldom needed, and slow to import

    try:
        with path.open("xb") as target, os.fdopen(os.dup(descriptor), "rb") as source:
            source.seek(0)
            shutil.copyfileobj(source, target)
            os.fchmod(target.fileno(), os.fstat(descriptor).st_mode & 0o777)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value
