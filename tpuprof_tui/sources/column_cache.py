"""What was read of large files, kept on disk: the next question about them need not decode them again.

A file in the cache folder holds an object and its arrays, which are mapped, not copied. Its name is made of path,
inode, size and modification time of the files that were read, and of the code that read them: nothing stale is found.
The least recently used ones go when all together exceed ``MOST``. If the folder cannot be used, files are read again.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import pickle
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from tpuprof_tui.model.mapped_arrays import pickled

Object = TypeVar("Object")
_FAULTS: Final = (
    OSError, ValueError, KeyError, TypeError, EOFError, AttributeError, pickle.PicklingError, pickle.UnpicklingError,
)  # fmt: skip

#: Variable that keeps nothing if it is ``off``.
SWITCH: Final = "TPUPROF_CACHE"
#: Most bytes that are kept, and the part of the free disk that one object may take.
MOST: Final = 4 << 30
_OF_FREE: Final = 10
#: Smallest file that is worth it, bytes.
_LEAST: Final = 4 << 20
_ENDING, _FORMER = ".columns", ".text"
_MAGIC: Final = b"tpuprof columns 1\n"
#: Parts of a file begin at multiples of this.
_ALIGNED: Final = 64
#: What an object may consist of besides classes of this package; nothing else is called when it is read.
_PLAIN: Final = frozenset((
    "builtins.frozenset", "builtins.list", "builtins.set", "builtins.slice", "collections.defaultdict", "pathlib.Path",
    "pathlib.PosixPath", "msgspec._utils.rebuild", "numpy.dtype", "numpy.ndarray",
    *(f"numpy.{core}.{name}" for core in ("_core", "core") for name in (
        "numeric._frombuffer", "multiarray._reconstruct", "multiarray.scalar"
    )),
))  # fmt: skip


def folder() -> Path | None:
    """``tpuprof/columns`` in ``XDG_CACHE_HOME``, else in ``~/.cache``; None: nothing is kept."""
    if os.environ.get(SWITCH, "").lower() == "off":
        return None
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    with suppress(RuntimeError):
        return (given if given.is_absolute() else Path.home() / ".cache") / "tpuprof" / "columns"
    return None


def files() -> list[tuple[Path, int]]:
    """What is kept, with sizes in bytes, the least recently used first."""
    found = []
    with suppress(OSError):
        for each in (folder() or Path("/nowhere")).iterdir():
            if each.suffix in (_ENDING, _FORMER):
                with suppress(OSError):
                    found.append((each, each.stat()))
    return [(path, state.st_size) for path, state in sorted(found, key=lambda each: each[1].st_atime_ns)]


def read_or_kept(
    paths: Sequence[Path],
    read: Callable[[], Object],
    to_keep: Callable[[Object], Object | None] = lambda made: made,
    what: str = "",
) -> Object:
    """What ``read`` returns for some files: what was kept of it, else what it returns now.

    Args:
        paths: All files that it depends on.
        to_keep: Makes of this what is kept; None: nothing is.
        what: What else it depends on.
    """
    state = _state(paths)
    place = _place([*state, what]) if state is not None else None
    if place is None:
        return read()
    with suppress(*_FAULTS):
        found: Object = _load(place)
        os.utime(place, ns=(time.time_ns(), place.stat().st_mtime_ns))
        return found
    made = read()
    with suppress(*_FAULTS):
        # of files that changed while they were read nothing is kept
        if _state(paths) == state:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if (kept := to_keep(made)) is not None:
                _store(place, kept)
                _drop_oldest()
    return made


def _state(paths: Sequence[Path]) -> list[tuple[str, int, int, int]] | None:
    """What files that changed differ in; None: they are small, or one is no regular file."""
    try:
        states = [path.stat() for path in paths]
        if not all(map(os.path.isfile, paths)) or sum(state.st_size for state in states) < _LEAST:
            return None
        return [(os.path.realpath(path), state.st_ino, state.st_size, state.st_mtime_ns)
                for path, state in zip(paths, states, strict=True)]  # fmt: skip
    except OSError:
        return None


def _place(of: list[Any]) -> Path | None:
    """Where what is read of files in some states is kept; None: nothing is kept."""
    if (where := folder()) is None:
        return None
    try:
        known = (*of, *_code())
    except OSError:
        return None
    return where / (hashlib.sha256(json.dumps(known).encode("utf-8", "surrogateescape")).hexdigest()[:32] + _ENDING)


@cache
def _code() -> tuple[int, ...]:
    """Sizes and times of the code that reads files: of another version all is read again."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return tuple(value for each in map(os.stat, files) for value in (each.st_size, each.st_mtime_ns))


def _store(place: Path, obj: object) -> None:
    data, buffers = pickled(obj)
    head = json.dumps([len(data), *(each.nbytes for each in buffers)]).encode()
    size = sum(each.nbytes for each in buffers) + len(data)
    disk = os.statvfs(place.parent)
    if size > MOST or size * _OF_FREE > disk.f_bavail * disk.f_frsize:
        return
    made = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            for part in (memoryview(_MAGIC + head + b"\n"), memoryview(data), *buffers):
                stream.write(part)
                stream.write(b"\0" * (-stream.tell() % _ALIGNED))
        os.replace(made, place)
    finally:
        with suppress(OSError):
            made.unlink()


def _load(place: Path) -> Any:
    with place.open("rb") as stream:
        mapped = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    begin = bytes(mapped[: 1 << 16])
    if not begin.startswith(_MAGIC):
        raise ValueError
    head = begin[len(_MAGIC) : begin.index(b"\n", len(_MAGIC))]
    at, parts = len(_MAGIC) + len(head) + 1, []
    for size in json.loads(head):
        at += -at % _ALIGNED
        if at + size > len(mapped):
            raise EOFError
        parts.append(mapped[at : at + size])
        at += size
    return _Unpickler(io.BytesIO(parts[0]), buffers=parts[1:]).load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Only what profiles are made of: some plain things, and classes of this package."""
        if f"{module}.{name}" in _PLAIN:
            return super().find_class(module, name)
        found = super().find_class(module, name) if module.startswith("tpuprof_tui.") and "." not in name else None
        if isinstance(found, type) and found.__module__ == module:
            return found
        raise pickle.UnpicklingError(f"{module}.{name}")


def _drop_oldest() -> None:
    known = files()
    left = sum(size for _, size in known)
    for path, size in known:
        if left <= MOST:
            return
        with suppress(OSError):
            path.unlink()
            left -= size
