"""Arrays beyond some bytes in mapped temporary files, for many traces at once: what is looked at is in memory."""

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

Thing = TypeVar("Thing")
Array = npt.NDArray[Any]

#: Bytes of arrays that stay in memory.
_IN_MEMORY: Final = 128 << 20
#: Bytes of an array from which on it is worth a place of its own.
_LARGE: Final = 1 << 14
#: Bytes of a file; there is another one when it is full. Only what is used of it is on the disk.
_FILE: Final = 1 << 30
#: Memory that mapped files may take.
_MOST_MAPPED: Final = 128 << 20
_ALIGNED: Final = 64


class MappedArrays:
    """Keeps arrays: the first ones in memory, those after them in temporary files that end with the process.

    Where no file can be had or the disk is full, arrays stay in memory. Several threads may use it.

    Args:
        in_memory: Bytes of arrays that stay in memory.
    """

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        self._left = in_memory
        self._lock = Lock()
        self._file: BinaryIO | None = None
        self._map: mmap.mmap | None = None
        self._used = 0
        self._maps: list[weakref.ref[mmap.mmap]] = []

    @property
    def spills(self) -> bool:
        """Whether there is as much as stays in memory, so that what comes goes to a file."""
        return self._left <= 0

    def place(self, size: int) -> memoryview:
        """Where so many bytes that are read are kept, to be written once."""
        with self._lock:
            self._left -= size
        found = self._in_file(size)
        return memoryview(bytearray(size)) if found is None else found

    def kept(self, array: Array) -> Array:
        """A read-only array of the same values in a file; itself where none go there, and a part of another."""
        if not self.spills or array.nbytes < _LARGE or array.dtype.hasobject:
            return array
        if not (array.flags.c_contiguous and _in_memory(array)):
            return array
        place = self._in_file(array.nbytes)
        if place is None:
            return array
        found = np.frombuffer(place, array.dtype).reshape(array.shape)
        found[...] = array
        found.flags.writeable = False
        return found

    def moved(self, thing: Thing) -> Thing:
        """A copy of a thing that can be pickled, its arrays kept."""
        data, buffers = pickled(thing)
        places = []
        for each in buffers:
            places.append(self.place(len(each)))
            places[-1][:] = each
        found: Thing = unpickled(data, places)
        return found

    def put_away(self, *things: Any) -> None:
        """Keeps the arrays among attributes of things, where there is more than what stays in memory."""
        if not self.spills:
            return
        for thing in things:
            for name, value in list(vars(thing).items()):
                if isinstance(value, np.ndarray):
                    vars(thing)[name] = self.kept(value)
                for columns in value if isinstance(value, tuple) else (value,):
                    for key in columns.__struct_fields__ if isinstance(columns, Struct) else ():
                        if isinstance(column := getattr(columns, key), np.ndarray):
                            force_setattr(columns, key, self.kept(column))
        self.give_back()

    def give_back(self) -> None:
        """Gives the memory back that the files take, where that is much; what is asked for is read again."""
        if not self._maps:
            return
        with suppress(OSError, IndexError, ValueError):  # where nobody tells how much that is, it is much
            if int(Path("/proc/self/statm").read_bytes().split()[2]) * mmap.PAGESIZE < _MOST_MAPPED:
                return
        for each in self._maps:
            if (found := each()) is not None:
                found.madvise(mmap.MADV_DONTNEED)

    def _in_file(self, size: int) -> memoryview | None:
        """A place for so many bytes in a file; None as long as they stay in memory, and where there is no room."""
        if not self.spills or not size:
            return None
        with self._lock:
            try:
                if self._map is None or self._used + size > len(self._map):
                    self._begin(max(size, _FILE))
                assert self._map is not None
                assert self._file is not None
                # there is room for it: what is written to a map on a full disk ends the process
                os.posix_fallocate(self._file.fileno(), self._used, size)
            except OSError:
                return None
            first = self._used
            self._used += -(-size // _ALIGNED) * _ALIGNED
            return memoryview(self._map)[first : first + size]

    def _begin(self, size: int) -> None:
        # slow to import, and most profiles need no file
        import tempfile

        # on a disk: not where temporary files are in memory, if nobody asked for that
        there = "/var/tmp"
        folder = None if "TMPDIR" in os.environ or not os.access(there, os.W_OK) else there
        # it lives as long as arrays lie in it
        file = tempfile.TemporaryFile(prefix="tpuprof", dir=folder)  # noqa: SIM115
        file.truncate(size)
        self._file, self._used = file, 0
        self._map = mmap.mmap(file.fileno(), size)
        self._maps = [each for each in self._maps if each() is not None] + [weakref.ref(self._map)]


def _in_memory(array: Array) -> bool:
    """Whether an array is all that lies in memory of its own."""
    base = array.base
    return bool(
        array.flags.owndata or (isinstance(base, np.ndarray) and base.flags.owndata and base.nbytes == array.nbytes)
    )


def pickled(thing: object) -> tuple[bytes, list[memoryview]]:
    """A pickle, and the bytes of the large arrays that are not in it."""
    buffers: list[memoryview] = []

    def inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _LARGE:
            buffers.append(raw)
        return raw.nbytes < _LARGE

    return pickle.dumps(thing, protocol=5, buffer_callback=inside), buffers


def unpickled(data: bytes, buffers: Iterable[memoryview]) -> Any:
    """What was pickled; its arrays are read-only and lie in the buffers."""
    return pickle.loads(data, buffers=[each.toreadonly() for each in buffers])
