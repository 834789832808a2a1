"""Finds and reads captures on this machine or on other file systems (``s3://``, ``gs://``, any of fsspec).

Remote captures are found by directory listings only, and read from a temporary local copy.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from glob import glob, has_magic
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

from tpuprof_tui.errors import MissingPackageError, UnreadableError, requires_package
from tpuprof_tui.sources.catalog import Catalog

#: Maximum depth of folders to search.
_DEEPEST: Final = 64
_FOREVER: Final = float("inf")
#: Delays before retries of remote operations, seconds.
_PAUSES: Final = (0.2, 1.0, 3.0)
#: Keys of listings whose values change with the content of a file, most reliable first.
_VERSIONS: Final = ("ETag", "etag", "md5Hash", "content_md5", "generation", "mtime", "LastModified", "last_modified",
                    "updated", "modified", "created")  # fmt: skip
_Answer = TypeVar("_Answer")


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether a path is an address of another file system (``s3://...``)."""
    return "://" in os.fspath(path)


def captures_of(words: Iterable[str], catalog: Catalog, missing: list[str]) -> Iterator[str]:
    """Finds the captures that words name: captures, folders, glob patterns, addresses, or ``@list.txt`` of such words.

    Args:
        words: The words.
        catalog: The sources.
        missing: Collects the words without a capture.

    Yields:
        Absolute paths without ``..``, and addresses; also folders that cannot be listed, which may contain captures.

    Raises:
        UnreadableError: A list file or a file system cannot be read.
        MissingPackageError: fsspec, or its package for these addresses, is not installed.
    """
    for word in words:
        if word.startswith("@"):
            try:
                # editors on Windows begin files with a byte order mark
                with open(word[1:], encoding="utf-8-sig", errors="surrogateescape") as stream:
                    lines = [line.strip() for line in stream]
            except OSError as error:
                raise UnreadableError(f"{word[1:]}: {(error.strerror or 'cannot be read').lower()}.") from None
            yield from captures_of([line for line in lines if line and line[0] not in "#@"], catalog, missing)
            continue
        if is_address(word):
            found = _captures_at(word, catalog)
        else:
            matches = [word] if os.path.lexists(word) or not has_magic(word) else sorted(glob(word, recursive=True))
            found = [path for match in matches for path in _captures_below(_without_parents(match), catalog)]
        if not found:
            missing.append(word)
        yield from found


def reason_of(word: str, catalog: Catalog) -> str:
    """Why a word of `captures_of` names no capture, such as a pipe; empty if that is not known."""
    if is_address(word) or word.startswith("@"):
        return ""
    try:
        catalog.recognised(word)
    except UnreadableError as error:
        return error.message
    return ""


def _captures_below(path: str, catalog: Catalog) -> list[str]:
    # reading a pipe or a device may never end
    if not (os.path.isdir(path) or os.path.isfile(path)):
        return []
    # a source may open a folder of captures as one profile; here the captures are wanted individually
    unreadable: list[Path] = []
    found = [Path(path)]
    if os.path.isdir(path):
        found = list(catalog.find(path, depth=_DEEPEST, seconds=_FOREVER, unreadable=unreadable))
    if not found and catalog.source_of(path) is not None:
        found = [Path(path)]
    return [*(str(catalog.whole(each)) for each in found), *(str(each.absolute()) for each in unreadable)]


def _without_parents(path: str) -> str:
    """A path without ``..``; symbolic links are resolved only where removing the names before ``..`` would mislead."""
    if os.pardir not in path.split(os.sep):
        return path
    plain = os.path.abspath(path)
    if os.path.exists(path) and not (os.path.exists(plain) and os.path.samefile(plain, path)):
        names = path.split(os.sep)
        last = len(names) - names[::-1].index(os.pardir)
        plain = os.path.normpath(os.path.join(os.path.realpath(os.sep.join(names[:last])), *names[last:]))
    return plain


def exists(path: str) -> bool:
    """Whether a path or address exists; True if this cannot be determined."""
    if not is_address(path):
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return False
        except OSError:
            # such as in a folder that may not be searched now
            return True
        return True
    system, inner_path = system_of(path)
    try:
        return bool(with_retries(path, lambda: system.exists(inner_path)))
    except UnreadableError:
        return True


def fingerprint(path: str, catalog: Catalog) -> str:
    """Short text that changes with the files of a capture; empty if they cannot be accessed."""
    if not is_address(path):
        return catalog.fingerprint(path)
    system, inner_path = system_of(path)
    try:
        listed = _listed(path, system, inner_path)
    except UnreadableError:
        return ""
    seen = [(file, details.get("size"), str(next((details[key] for key in _VERSIONS if details.get(key)), "")))
            for file, details in sorted(listed.items())]  # fmt: skip
    return hashlib.blake2b(repr(seen).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest() if seen else ""


@contextmanager
def local_copy(path: str | os.PathLike[str]) -> Iterator[str]:
    """Context manager that returns a local path of a capture; remote ones are copied, with names and times.

    Raises:
        UnreadableError: The capture could not be fetched, also after retries.
        MissingPackageError: fsspec, or its package for this address, is not installed.
    """
    if not is_address(path):
        yield os.fspath(path)
        return
    address = os.fspath(path)
    system, inner_path = system_of(address)
    listed = _listed(address, system, inner_path)
    if not listed:
        raise UnreadableError(f"{address}: no such file or folder.")
    with tempfile.TemporaryDirectory(prefix="tpuprof") as folder:
        copy = os.path.join(folder, posixpath.basename(inner_path.rstrip("/")) or "capture")
        for file, details in listed.items():
            inner = "" if file == inner_path else posixpath.relpath(file, inner_path)
            if ".." in PurePosixPath(inner).parts or "\0" in inner:
                continue
            target = os.path.join(copy, inner) if inner else copy
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with_retries(address, lambda file=file, target=target: system.get_file(file, target))  # type: ignore[misc]
            changed = _seconds(details)
            if changed is not None:
                os.utime(target, (changed, changed))
        yield copy


def system_of(address: str) -> tuple[Any, str]:
    """The fsspec file system of an address, and the path in it."""
    with requires_package(
        "An address of another file system", "Or install all it needs: pip install 'tpuprof-tui[dataset]'."
    ):
        from fsspec.core import url_to_fs
    try:
        system, path = url_to_fs(address)
    except ImportError as error:
        raise MissingPackageError(f"{address}: {error}.") from None
    except ValueError as error:
        raise UnreadableError(f"{address}: {error}.") from None
    return system, str(path)


def with_retries(address: str, action: Callable[[], _Answer]) -> _Answer:
    """Runs an action on another file system, with retries.

    Raises:
        UnreadableError: All attempts failed, or the first failed with an error for which retries are pointless.
    """
    for pause in (*_PAUSES, None):
        try:
            return action()
        except (FileNotFoundError, FileExistsError, PermissionError) as error:
            raise UnreadableError(f"{address}: {_reason(error)}.") from error
        # each file system has its own exception classes
        except Exception as error:
            if pause is None:
                raise UnreadableError(f"{address} could not be fetched: {_reason(error)}.",
                                      "Try again; what a build has written is kept.") from error  # fmt: skip
            time.sleep(pause)
    raise AssertionError


def _reason(error: Exception) -> str:
    text = str(error.strerror) if isinstance(error, OSError) and error.strerror else str(error)
    return next((line.strip().rstrip(".") for line in text.splitlines() if line.strip()), type(error).__name__)


def _listed(address: str, system: Any, path: str) -> dict[str, dict[str, Any]]:
    """Files at and below a path with their listing details; empty if nothing exists."""

    def listing() -> dict[str, dict[str, Any]]:
        system.invalidate_cache()
        return {str(file): dict(details) for file, details in system.find(path, detail=True).items()}

    return with_retries(address, listing)


def _seconds(details: dict[str, Any]) -> float | None:
    """Time of the last change of a file, seconds since 1970; None if unknown."""
    for key in ("mtime", "LastModified", "last_modified", "updated", "modified", "created"):
        value = details.get(key)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, (int, float)):
            return float(value)
    return None


def _captures_at(address: str, catalog: Catalog) -> list[str]:
    system, path = system_of(address)
    paths = with_retries(address, lambda: list(map(str, system.glob(path)))) if has_magic(path) else [path]
    found: dict[str, None] = {}
    for each in paths:
        files = list(_listed(address, system, each))
        if files == [each]:
            # a file that belongs to a capture of several files selects the whole capture
            folder = posixpath.dirname(each)
            names = _names_in(address, system, folder)
            is_folder = catalog.found_in(Path(folder), names) == [Path(folder)]
            found[folder if is_folder else each] = None
        else:
            found |= dict.fromkeys(_captures_among(files, each, catalog))
    return [system.unstrip_protocol(each) for each in found]


def _names_in(address: str, system: Any, folder: str) -> list[str]:
    return [posixpath.basename(str(name)) for name in with_retries(address, lambda: system.ls(folder, detail=False))]


def _captures_among(files: Iterable[str], root: str, catalog: Catalog) -> Iterator[str]:
    """Captures among files below a root, recognized by file names; does not search within captures."""
    inside: dict[str, set[str]] = {}
    for file in files:
        path = PurePosixPath(file)
        for parent in path.parents:
            inside.setdefault(str(parent), set()).add(path.name)
            path = parent
            if str(parent) == root.rstrip("/"):
                break
    level = [root.rstrip("/")]
    for folder in level:
        if folder not in inside:
            continue
        found = list(map(str, catalog.found_in(Path(folder), sorted(inside[folder]))))
        yield from found
        if folder not in found:
            level.extend(sorted(f"{folder}/{name}" for name in inside[folder] if f"{folder}/{name}" in inside))
