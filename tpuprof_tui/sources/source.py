"""`Source`, the interface of one kind of profile on disk: recognising, opening and listing profiles.

Importing this loads neither numpy nor a reader: the command line asks sources for their options before it opens any.
"""

from __future__ import annotations

import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from tpuprof_tui.errors import UsageError

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile

#: First bytes of packed files; ``_PACKED``: of those that are decompressed.
GZIP, BZIP2, XZ, ZSTD, ZIP = b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
_PACKED: Final = GZIP, BZIP2, XZ


class Progress(Struct, frozen=True):
    """Progress of reading a profile."""

    text: str  #: Current activity, a few words
    #: done, total: Bytes read so far and in all.
    done: int
    total: int
    #: Group that was just finished, as it is shown ("core   3"), also the sort key of lists; empty: none.
    group: str = ""
    records: int = 0  #: Number of records in that group
    profile: Profile | None = None  #: A preliminary profile that can be shown while the rest is read


class Part(Struct, frozen=True):
    """The part of a profile to read: no more than that need be read of a file larger than memory."""

    range: str  #: Time range as typed; empty: all
    step: int | None  #: Number of a step; None: all


#: Called from the reading thread, at most a few times a second; may raise to cancel.
ProgressCallback = Callable[[Progress], None]


def progress_of_part(
    progress: ProgressCallback | None, name: str, before: int, total: int
) -> Callable[[int, int], None]:
    """A callback ``(bytes read, size)`` for the reader of one of several files or folders.

    Args:
        progress: Called with the progress over all of them; None: no reports.
        name: Name of this file or folder.
        before, total: Bytes of all files before this one, and of all files.
    """

    def report(done: int, whole: int) -> None:
        del whole
        if progress is not None:
            progress(Progress(f"reading {name}", before + done, total))

    return report


def natural_order(name: str) -> list[tuple[bool, int, str]]:
    """Sort key of names in which digits compare by their value."""
    parts = re.split(r"(\d+)", name)
    return [(not part.isdecimal(), int(part[:18]) if part.isdecimal() else 0, part) for part in parts]


class Recognition(Struct, frozen=True):
    """Whether a source recognises a path, and why."""

    by: Literal["name", "content", ""]  #: What recognised it: its name or its content; empty: not recognised
    reason: str  #: A few words that follow "yes, by name:" or "no:"
    decides: bool = False  #: Whether its content is of no other source, whatever the name: it goes before names

    @classmethod
    def by_files(cls, names: Sequence[str]) -> Recognition:
        """Of a folder by the names of some of its files."""
        return cls("name", f"it holds {min(names)}" + (f" and {len(names) - 1} more" if len(names) > 1 else ""))

    def __bool__(self) -> bool:
        return bool(self.by)


class SourceOption(Struct, frozen=True):
    """A command-line option of one source."""

    name: str  #: Key of its value in the options passed to `Source.open`, and keyword argument of ``open_profile``
    flags: tuple[str, ...]  #: Its spellings on the command line, the usual one first
    #: Keyword arguments of `argparse.ArgumentParser.add_argument`: help, metavar, type, choices, action.
    settings: Mapping[str, Any]
    choices: Callable[[], Sequence[str]] = tuple  #: Returns the values that completion offers
    missing: str = ""  #: If the value is a file name: advice for when there is no such file, a sentence. Else empty.


#: The option of sources whose folders may hold several recordings.
RECORDINGS: Final = SourceOption(
    "recordings", ("--recordings",),
    {"metavar": "NAMES", "help": "of a folder of recordings only these, together: names or patterns, with commas"},
)  # fmt: skip


class SessionEntry(Struct, frozen=True):
    """A session in a folder of recordings, for a list to choose from: one recording, or one of each rank of a run."""

    names: tuple[str, ...]  #: Names of the recordings in the folder
    run: int  #: Number of the run, from 1
    ranks: str = ""  #: Its ranks; empty: unknown
    device: str = ""  #: Name of the device; empty: unknown
    begun_ns: int | None = None  #: Wall-clock time of its start, ns since 1970; None: unknown
    size: int = 0  #: Bytes on disk
    length_ns: int | None = None  #: Time from its start to its end, an estimate; None: unknown


def chosen_names(patterns: str, names: Sequence[str]) -> list[str]:
    """The names that ``patterns``, separated by commas, choose.

    Raises:
        UsageError: A pattern fits none.
    """
    chosen: set[str] = set()
    for pattern in filter(None, map(str.strip, patterns.split(","))):
        fitting = {name for name in names if name == pattern} or {name for name in names if fnmatchcase(name, pattern)}
        if not fitting:
            there = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            raise UsageError(f"There is no recording {pattern!r} in this folder.", f"There are: {there}.")
        chosen |= fitting
    return [name for name in names if name in chosen]


def chosen_files(files: Sequence[Path], options: Mapping[str, Any]) -> Sequence[Path]:
    """The files of the recordings that the options choose; the only file, whatever they say.

    Raises:
        UsageError: A pattern fits none.
    """
    patterns = options.get(RECORDINGS.name)
    if not patterns or len(files) < 2:
        return files
    names = set(chosen_names(patterns, [file.name for file in files]))
    return [file for file in files if file.name in names]


class Source(ABC):
    """One kind of profile on disk."""

    id: str  #: Its name, one word
    title: str  #: What users call such a profile, with its article: ``a Sophgo capture``
    expected: str  #: What such a profile looks like on disk, as the rest of "Name a capture: "
    options: tuple[SourceOption, ...] = ()  #: Its own command-line options
    #: Import path ("module:NAME") of its vocabulary, which help and completion use without a profile; empty: none.
    vocabulary: str = ""
    priority: int = 0  #: Sort key of the order in which sources are tried: narrower ones first

    @abstractmethod
    def recognises(self, path: Path) -> Recognition:
        """Whether a file or folder is such a profile: by its name if that suffices, else by its first bytes.

        Must be quick: a listing and a few bytes. An OSError counts as not recognised.
        """

    @abstractmethod
    def open(self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None) -> Profile:
        """Reads a path that this source recognised; heavy modules are imported only here.

        Args:
            path: File or folder.
            options: Values of this source's options that were given, by name.
            progress: Called while reading; an exception that it raises ends the reading and is passed on.

        Raises:
            UnreadableError: The profile has nothing that can be shown; the message is one sentence.
        """

    def open_part(
        self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None, part: Part
    ) -> Profile:  # fmt: skip
        """Reads at least a part of a profile; all of it if it fits into memory. See `open`."""
        del part
        return self.open(path, options, progress)

    def open_several(self, paths: Sequence[Path], options: Mapping[str, Any], part: Part | None) -> list[Profile]:
        """Reads paths that this source recognised, in parallel if it can; profiles in the order of the paths.

        Raises:
            UnreadableError: One of them has nothing that can be shown.
        """
        if part is None:
            return [self.open(path, options, None) for path in paths]
        return [self.open_part(path, options, None, part) for path in paths]

    @abstractmethod
    def find(self, folder: Path, names: Sequence[str]) -> Sequence[Path]:
        """The profiles directly in a folder, by names alone: the folder itself, or some of its files.

        Args:
            folder: The folder.
            names: Names of the files and folders in it.
        """

    def files(self, path: Path) -> Sequence[Path]:
        """The files that a profile consists of; when one of them changes, the profile has changed."""
        return [path]

    def sessions(self, path: Path) -> Sequence[SessionEntry]:
        """The sessions to choose from in a folder, by run and start; empty: it is opened as a whole. Must be quick."""
        del path
        return ()

    def whole(self, path: Path) -> Path:
        """The path of the profile that a path belongs to: a file of a capture gives the capture's folder."""
        return path

    def device_and_call(self, path: Path) -> tuple[int | None, int | None]:
        """Device number and call number in the path's name; None for each that the name does not contain."""
        del path
        return None, None


def file_size(path: Path) -> int:
    """Size of a file, bytes; 0 where it cannot be looked at."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def first_bytes(path: Path, most: int = 1 << 16) -> bytes:
    """First bytes of a regular file, decompressed if it is gzip, bzip2 or xz; empty if the file cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would block
            return b""
        with path.open("rb") as file:
            head = file.read(most)
            if not head.startswith(_PACKED):
                return head
            from .chrome.inflate import unpacked

            file.seek(0)
            return unpacked(path, file).read(most)
    except OSError:
        return b""


def last_bytes(path: Path, most: int = 1 << 16) -> bytes:
    """Last bytes of a regular file; empty if it is packed, so that its end is far from what is read, or unreadable."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return b""
        with path.open("rb") as file:
            if file.read(8).startswith(_PACKED):
                return b""
            file.seek(max(file.seek(0, 2) - most, 0))
            return file.read(most)
    except OSError:
        return b""
