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
    try:
        if _is_special(path):
            raise OSError(errno.EINVAL, "only files can be replaced, not a pipe, socket or device")
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = _new_file(path)
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fchmod(descriptor, 0o666 & ~_umask())
            if temporary is None:
                temporary = _link_temporary(descriptor, path)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise WriteError(f"{path} could not be written: {reason}.", "Choose another output folder.") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def _is_special(path: Path) -> bool:
    """Whether a path must not be replaced by a file: pipes, sockets, devices, and paths in /dev and /proc."""
    folder = os.path.realpath(path.parent)
    if folder == "/dev" or folder.startswith("/proc/"):
        return True
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except OSError:
        return False
    return kind not in (stat.S_IFREG, stat.S_IFDIR)


def _new_file(path: Path) -> tuple[int, str | None]:
    """Creates a file in the folder of ``path``; returns its descriptor and its name, None for an unnamed file."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir(_DESCRIPTORS):
        try:
            return os.open(path.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600), None
        except OSError as error:
            if error.errno not in _NO_UNNAMED:
                raise
    import tempfile  # seldom needed, and slow to import

    return tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)


def _link_temporary(descriptor: int, path: Path) -> str:
    """Links an unnamed file to a temporary name in the folder of ``path``."""
    name = f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.part"
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # the symbolic link is followed to the open file only with directory descriptors (linkat)
        os.link(f"{_DESCRIPTORS}/{descriptor}", name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
    except OSError:
        # a file system without hard links: copy the bytes to a named file
        _copy_to(descriptor, path.parent / name)
    finally:
        os.close(folder)
    return str(path.parent / name)


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
