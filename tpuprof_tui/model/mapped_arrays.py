"""Arrays in memory-mapped temporary files: bounds the memory that many open traces take."""

from __future__ import annotations

import mmap
import os
import pickle
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Final, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import force_setattr

Object = TypeVar("Object")
Array = npt.NDArray[Any]

#: Bytes of arrays that stay in memory before files are used.
_IN_MEMORY: Final = 128 << 20
#: Smallest array, in bytes, that is stored in a file or pickled out of band.
_LARGE: Final = 1 << 14
#: Size of a file, bytes; a new one is created when it is full. Files are sparse: only used parts occupy disk.
_FILE: Final = 1 << 30
#: Resident bytes of mapped files above which their pages are released.
_MOST_MAPPED: Final = 128 << 20
_ALIGNED: Final = 64


class MappedArrays:
    """Stores arrays: in memory up to a limit, then in temporary files that are deleted when the process ends.

    If no file can be created or the disk is full, arrays stay in memory. Thread-safe.

    Args:
        in_memory: Bytes of arrays to keep in memory before files are used.
    """

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        self._memory_left = in_memory
        self._lock = Lock()
        self._file: BinaryIO | None = None
        self._map: mmap.mmap | None = None
        self._used = 0
        self._maps: list[weakref.ref[mmap.mmap]] = []

    @property
    def spills(self) -> bool:
        """Whether the memory limit is reached, so that new arrays are stored in files."""
        return self._memory_left <= 0

    def allocate(self, size: int) -> memoryview:
        """Allocates a writable buffer of ``size`` bytes, in memory or in a file; to be written once."""
        with self._lock:
            self._memory_left -= size
        found = self._in_file(size)
        return memoryview(bytearray(size)) if found is None else found

    def stored(self, array: Array) -> Array:
        """A read-only copy of an array in a file.

        Returns the array itself if the memory limit is not reached, if it is small or a view of a part of another
        array, or if the disk is full.
        """
        if not self.spills or array.nbytes < _LARGE or array.dtype.hasobject:
            return array
        if not (array.flags.c_contiguous and _in_memory(array)):
            return array
        buffer = self._in_file(array.nbytes)
        if buffer is None:
            return array
        found = np.frombuffer(buffer, array.dtype).reshape(array.shape)
        found[...] = array
        found.flags.writeable = False
        return found

    def with_stored_arrays(self, obj: Object) -> Object:
        """A copy of a picklable object whose large arrays are stored by `allocate`."""
        data, buffers = pickled(obj)
        stored_buffers = []
        for each in buffers:
            stored_buffers.append(self.allocate(len(each)))
            stored_buffers[-1][:] = each
        found: Object = unpickled(data, stored_buffers)
        return found

    def spill(self, *objects: Any) -> None:
        """Moves arrays in attributes of objects (also in structs, dicts, tuples of them) to files, if it `spills`."""
        if not self.spills:
            return
        for obj in objects:
            for name, value in list(vars(obj).items()):
                if isinstance(value, np.ndarray):
                    vars(obj)[name] = self.stored(value)
                for columns in value if isinstance(value, tuple) else (value,):
                    if isinstance(columns, dict):
                        columns |= {key: self.stored(each) for key, each in columns.items()
                                    if isinstance(each, np.ndarray)}  # fmt: skip
                    for key in columns.__struct_fields__ if isinstance(columns, Struct) else ():
                        if isinstance(column := getattr(columns, key), np.ndarray):
                            force_setattr(columns, key, self.stored(column))
        self.release_pages()

    def release_pages(self) -> None:
        """Releases resident pages of the files if they exceed ``_MOST_MAPPED``; later accesses read them from disk."""
        if not self._maps:
            return
        with suppress(OSError, IndexError, ValueError):  # without /proc the size is unknown: release anyway
            if int(Path("/proc/self/statm").read_bytes().split()[2]) * mmap.PAGESIZE < _MOST_MAPPED:
                return
        for each in self._maps:
            if (found := each()) is not None:
                found.madvise(mmap.MADV_DONTNEED)

    def _in_file(self, size: int) -> memoryview | None:
        """A buffer of ``size`` bytes in a file; None below the memory limit, or if the disk is full."""
        if not self.spills or not size:
            return None
        with self._lock:
            try:
                if self._map is None or self._used + size > len(self._map):
                    self._new_file(max(size, _FILE))
                assert self._map is not None
                assert self._file is not None
                # reserve the blocks: writing to a mapping on a full disk would end the process (SIGBUS)
                os.posix_fallocate(self._file.fileno(), self._used, size)
            except OSError:
                return None
            first = self._used
            self._used += -(-size // _ALIGNED) * _ALIGNED
            return memoryview(self._map)[first : first + size]

    def _new_file(self, size: int) -> None:
        # imported here: slow, and most profiles need no file
        import tempfile

        # prefer a disk: /tmp may be in memory; an explicit TMPDIR is respected
        disk = "/var/tmp"
        folder = None if "TMPDIR" in os.environ or not os.access(disk, os.W_OK) else disk
        # stays open as long as arrays refer to its mapping
        file = tempfile.TemporaryFile(prefix="tpuprof", dir=folder)  # noqa: SIM115
        file.truncate(size)
        self._file, self._used = file, 0
        self._map = mmap.mmap(file.fileno(), size)
        self._maps = [each for each in self._maps if each() is not None] + [weakref.ref(self._map)]


def _in_memory(array: Array) -> bool:
    """Whether an array owns its memory, or covers all of the array that does."""
    base = array.base
    return bool(
        array.flags.owndata or (isinstance(base, np.ndarray) and base.flags.owndata and base.nbytes == array.nbytes)
    )


def pickled(obj: object) -> tuple[bytes, list[memoryview]]:
    """Pickles an object; returns the pickle and the out-of-band buffers of large arrays."""
    buffers: list[memoryview] = []

    def inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _LARGE:
            buffers.append(raw)
        return raw.nbytes < _LARGE

    return pickle.dumps(obj, protocol=5, buffer_callback=inside), buffers


def unpickled(data: bytes, buffers: Iterable[memoryview]) -> Any:
    """Inverse of `pickled`; large arrays are read-only views of the buffers."""
    return pickle.loads(data, buffers=[each.toreadonly() for each in buffers])
