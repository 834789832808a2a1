"""What a source is: one kind of profile on disk, and all that the program asks about such a path.

Importing this loads neither numpy nor a reader: the command line asks sources for their options before it opens any.
"""

from __future__ import annotations

import re
import stat
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile

#: What begins a file compressed with gzip.
_GZIP: Final = b"\x1f\x8b"


class Progress(Struct, frozen=True):
    """How far reading is.

    Attributes:
        text: What is being done, a few words.
        done, total: Bytes read so far and in all.
        group: What was just finished, as people call it ("core   3"): lists are ordered by it; empty: nothing was.
        records: Records found of it.
        profile: What can be shown already, while the rest of it is read.
    """

    text: str
    done: int
    total: int
    group: str = ""
    records: int = 0
    profile: Profile | None = None


class Part(Struct, frozen=True):
    """What of a profile is asked for: of a file that is larger than memory no more need be read.

    Attributes:
        range: Times as they are typed; empty: all.
        step: Number of a step; None: all.
    """

    range: str
    step: int | None


#: Called from the reading thread, at most a few times a second; may raise to cancel.
ProgressCallback = Callable[[Progress], None]


def progress_of_part(
    progress: ProgressCallback | None, name: str, before: int, total: int
) -> Callable[[int, int], None]:
    """What the reader of one of several files or folders calls with the bytes it has read.

    Args:
        progress: Is told how far all of it is; None: nobody is.
        name: What is being read.
        before, total: Bytes of those read before it, and of all.
    """

    def report(done: int, whole: int) -> None:
        del whole
        if progress is not None:
            progress(Progress(f"reading {name}", before + done, total))

    return report


def natural_order(name: str) -> list[tuple[bool, int, str]]:
    """Key to sort names by: numbers in them by their value."""
    parts = re.split(r"(\d+)", name)
    return [(not part.isdecimal(), int(part[:18]) if part.isdecimal() else 0, part) for part in parts]


class Verdict(Struct, frozen=True):
    """Whether a path belongs to a source, and why.

    Attributes:
        by: What it was recognised by; empty: it was not.
        reason: What was found or missed, a few words that follow "yes, by name:" or "no:".
    """

    by: Literal["name", "content", ""]
    reason: str

    def __bool__(self) -> bool:
        return bool(self.by)


class SourceOption(Struct, frozen=True):
    """An option of the command line that one source has.

    Attributes:
        name: Key of its value among the options that `Source.open` gets, and keyword of ``open_profile``.
        flags: As they are typed, the usual spelling first.
        settings: As `argparse.ArgumentParser.add_argument` takes them: help, metavar, type, choices, action.
        choices: Values that completion offers, asked for when they are needed.
        missing: Where the value names a file: what to do where there is none, a sentence. Empty: it names none.
    """

    name: str
    flags: tuple[str, ...]
    settings: Mapping[str, Any]
    choices: Callable[[], Sequence[str]] = tuple
    missing: str = ""


class Source(ABC):
    """One kind of profile on disk.

    Attributes:
        id: Its name, one word.
        title: What people call such a profile, with its article: ``a Sophgo capture``.
        expected: What such a profile looks like on disk, as the rest of "Name a capture: ".
        options: Its own options on the command line.
        vocabulary: Entry ("module:NAME") of what it calls things: help and completion speak its words without a
            profile. Empty: it has nothing to say there.
        turn: Place among the sources that are asked: one that recognises less comes before one that recognises more.
    """

    id: str
    title: str
    expected: str
    options: tuple[SourceOption, ...] = ()
    vocabulary: str = ""
    turn: int = 0

    @abstractmethod
    def recognises(self, path: Path) -> Verdict:
        """Whether a file or folder is such a profile: by its name where that says enough, else by its first bytes.

        It must be quick: a listing and a few bytes. What cannot be looked at (OSError) is none.
        """

    @abstractmethod
    def open(self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None) -> Profile:
        """Reads a path that it recognised; what opening needs beyond the model is imported here.

        Args:
            path: File or folder.
            options: Values of those of its own options that were given, by name.
            progress: Called while reading; what it raises ends the reading and is passed on.

        Raises:
            UnreadableError: Nothing of it can be shown; one sentence.
        """

    def open_part(
        self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None, part: Part
    ) -> Profile:  # fmt: skip
        """The same where no more than a part is asked for; all of it where that fits into memory."""
        del part
        return self.open(path, options, progress)

    def open_several(self, paths: Sequence[Path], options: Mapping[str, Any], part: Part | None) -> list[Profile]:
        """Reads paths that it recognised, in their order, side by side where it can.

        Raises:
            UnreadableError: Nothing of one of them can be shown.
        """
        if part is None:
            return [self.open(path, options, None) for path in paths]
        return [self.open_part(path, options, None, part) for path in paths]

    @abstractmethod
    def find(self, folder: Path, names: Sequence[str]) -> Sequence[Path]:
        """What of a folder is such a profile, by names alone: the folder itself, or some of its files.

        Args:
            folder: The folder.
            names: Names of the files and folders in it.
        """

    def files(self, path: Path) -> Sequence[Path]:
        """The files that a profile consists of; when one of them changes, the profile has changed."""
        return [path]

    def whole(self, path: Path) -> Path:
        """The path of the profile that a path belongs to: a file of a capture gives the capture's folder."""
        return path

    def device_and_call(self, path: Path) -> tuple[int | None, int | None]:
        """Numbers of the device and of the call that the path's name tells; None for what it does not tell."""
        del path
        return None, None


def first_bytes(path: Path, most: int = 1 << 16) -> bytes:
    """The beginning of a regular file, uncompressed where gzip packed it; empty where there is none to be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            return b""
        with path.open("rb") as file:
            head = file.read(most)
        return zlib.decompressobj(31).decompress(head, most) if head.startswith(_GZIP) else head
    except (OSError, zlib.error):
        return b""
