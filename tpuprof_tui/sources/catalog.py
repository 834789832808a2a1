"""Chooses the source that opens a path: the list of sources, in the order in which they are tried.

Sources of this package (its folders with a ``source.py``) are tried first, by name, then by content. Only if none of
them recognises a path are the sources of other packages loaded (entry points ``tpuprof.sources``) and tried the same
way. ``tpuprof info PATH --why`` prints every decision.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

from tpuprof_tui.errors import UnreadableError, UsageError

from .known_formats import known_format
from .source import RECORDINGS, Part, Progress, ProgressCallback, Recognition, SessionEntry, Source, SourceOption
from .source import natural_order as natural_order

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile, Vocabulary

__all__ = [
    "RECORDINGS", "SOURCES", "Catalog", "Decision", "Part", "Progress", "ProgressCallback", "SessionEntry",
    "SourceOption", "open_profile", "vocabularies",
]  # fmt: skip


def _own_sources() -> tuple[Source, ...]:
    """``SOURCE`` of each sibling folder that has a ``source.py``, in the order in which they are tried."""
    here = Path(__file__).parent
    names = [folder for folder in os.listdir(here) if (here / folder / "source.py").is_file()]
    found: list[Source] = [import_module(f"{__package__}.{name}.source").SOURCE for name in names]
    return tuple(sorted(found, key=lambda source: (source.priority, source.id)))


#: The sources of this package, narrower ones before wider ones: the first that recognises a path opens it.
SOURCES: Final = _own_sources()

#: Hint for a path that no source recognises.
WHY: Final = "`tpuprof info PATH --why` says what was looked for."

#: Entry point group of the sources of other packages.
PLUG_INS: Final = "tpuprof.sources"

AnyPath = str | os.PathLike[str]
#: Sources of other packages, and the error of each entry point that failed, by its name.
PlugIns = tuple[list[Source], dict[str, str]]
_Answer = TypeVar("_Answer")


class Decision(Struct, frozen=True):
    """Whether one source recognises a path."""

    source: Source
    recognition: Recognition


def load_plug_ins() -> PlugIns:
    """Loads the sources that installed packages offer, ordered by the name of their entry points.

    Returns:
        The sources; and the error of each entry point that yields no source, by its name.
    """
    # importlib.metadata takes longer to import than most commands that need no plug-in take to run
    from importlib.metadata import entry_points

    found: list[Source] = []
    broken: dict[str, str] = {}
    for entry in sorted(entry_points(group=PLUG_INS), key=lambda each: (each.name, each.value)):
        try:
            offered = entry.load()
        except Exception as error:  # importing a foreign module can raise anything
            broken[entry.name] = failure(error)
            continue
        if isinstance(offered, Source) and all(isinstance(getattr(offered, name, None), str)
                                               for name in ("id", "title", "expected")):  # fmt: skip
            found.append(offered)
        else:
            broken[entry.name] = f"{entry.value} is not a Source"
    return found, broken


def failure(error: Exception) -> str:
    """Type and message of an error, on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def vocabularies() -> tuple[Vocabulary, ...]:
    """Vocabularies of this package's sources, for help and completion without a profile; imports no numpy."""
    from tpuprof_tui.model.vocabulary import import_entry

    return tuple(import_entry(source.vocabulary) for source in SOURCES if source.vocabulary)


def open_profile(
    path: AnyPath, *, progress: ProgressCallback | None = None, part: Part | None = None, **options: Any
) -> Profile:
    """Read a profile.

    Args:
        path: File or folder that a source recognises: a capture's directory, or a file in it.
        progress: Called while reading; an exception that it raises ends the reading and is passed on.
        part: The part to read: of a file larger than memory, no more than that is read.
        options: Options of the source; None means not given. Sophgo captures: ``chip`` (name of the chip, for
            captures whose ``global.profile`` is absent or names an unknown arch), ``tiu_mhz`` (TIU clock in MHz;
            default: the capture's ``tpu_freq``, then the chip's default), ``trace_file`` (host trace to show with it).

    Returns:
        The profile: times in integer ns on one time line, whose zero is the first instruction.

    Raises:
        UnreadableError: No such path, no source recognises it, or an unknown chip without ``chip``.
        UsageError: The option belongs to another source than the path.
    """
    return Catalog().open(path, options, progress, part)


class Catalog:
    """All available sources. A catalog loads the sources of other packages at most once.

    Args:
        sources: Sources that are always asked first.
        plug_ins: Loads the sources of other packages; also returns load errors, by name.
    """

    def __init__(self, sources: Sequence[Source] = SOURCES, plug_ins: Callable[[], PlugIns] = load_plug_ins) -> None:
        self._own = tuple(sources)
        self._load = plug_ins
        self._others: tuple[Source, ...] | None = None
        #: Errors of sources of other packages, by name.
        self.broken: dict[str, str] = {}

    @property
    def others(self) -> tuple[Source, ...]:
        """The sources of other packages; the first call loads them."""
        if self._others is None:
            found, broken = self._load()
            self.broken |= broken
            self._others = tuple(found)
        return self._others

    @property
    def expected(self) -> str:
        """Descriptions of all profiles on disk, as the rest of "Name a capture: "."""
        return ", or ".join(source.expected for source in (*self._own, *(self._others or ())))

    def _in_turn(self) -> Iterator[Source]:
        """All sources; those of other packages are loaded only after those of this package."""
        yield from self._own
        yield from self.others

    # -- choosing a source

    def decisions(self, path: AnyPath) -> list[Decision]:
        """Whether each source recognises a path, in the order in which they are tried."""
        return [*self._decisions(self._own, Path(path)), *self._decisions(self.others, Path(path))]

    def source_of(self, path: AnyPath) -> Source | None:
        """The source that opens a path; None if no source recognises it."""
        given = Path(path)
        if not os.path.exists(given):
            return None
        found = chosen(self._decisions(self._own, given)) or chosen(self._decisions(self.others, given))
        return found.source if found else None

    def recognised(self, path: AnyPath) -> Source:
        """The source that opens a path; raises an error with hints if there is none.

        Raises:
            UnreadableError: The path does not exist, may not be read, or no source recognises it.
        """
        given = Path(path)
        folder = os.path.isdir(given)
        try:
            state = given.stat()
            if folder:
                os.listdir(given)
        except OSError as error:
            raise UnreadableError(f"{path}: {(error.strerror or 'cannot be opened').lower()}.") from None
        if stat.S_ISFIFO(state.st_mode):
            raise UnreadableError(f"{path} is a named pipe, which is read only once.",
                                  "Pipe it into a command: tpuprof ... - < PIPE.")  # fmt: skip
        if not folder and not stat.S_ISREG(state.st_mode):
            raise UnreadableError(f"{path} is a device or socket, not a file.")
        source = self.source_of(given)
        if source is not None:
            return source
        if not folder and not state.st_size:
            raise UnreadableError(f"{path} is empty: it has 0 bytes.", "It is not written yet, or the disk was full.")
        found = known_format(given)
        if found is not None:
            kind, file = found
            what = f"holds {kind.title} ({file.name})" if folder else f"is {kind.title}"
            raise UnreadableError(f"{path} {what}, which tpuprof does not read.", kind.advice)
        hints = [f"Name a capture: {self.expected}.", *self.faults, WHY]
        raise UnreadableError(f"{path} {'holds' if folder else 'is'} no known kind of capture.", " ".join(hints))

    @property
    def faults(self) -> list[str]:
        """A sentence for each source of another package that failed."""
        return [f"The source {name} cannot be used ({why})." for name, why in self.broken.items()]

    def _decisions(self, sources: Sequence[Source], path: Path) -> list[Decision]:
        failed = Recognition("", "it failed")
        return [Decision(each, self._asked(each, failed, _recognition, each, path)) for each in sources]

    def _asked(self, source: Source, otherwise: _Answer, question: Callable[..., _Answer], *about: object) -> _Answer:
        """Calls a source; if one of another package raises, records the error and returns ``otherwise``."""
        try:
            return question(*about)
        except Exception as error:
            if source in self._own:
                raise
            self.broken[source.id] = failure(error)
            return otherwise

    # -- opening

    def open(
        self,
        path: AnyPath,
        options: Mapping[str, Any],
        progress: ProgressCallback | None = None,
        part: Part | None = None,
    ) -> Profile:
        """Reads a profile; see `open_profile`."""
        source = self.recognised(path)
        given = self._given(source, path, options)
        if part is None:
            return source.open(Path(path), given, progress)
        return source.open_part(Path(path), given, progress, part)

    def open_several(
        self, paths: Sequence[AnyPath], options: Mapping[str, Any], part: Part | None = None
    ) -> list[Profile]:
        """Reads profiles, those of one source in parallel if it can; see `open_profile`."""
        sources = [self.recognised(path) for path in paths]
        if len(set(sources)) > 1:
            return [self.open(path, options, None, part) for path in paths]
        return sources[0].open_several([Path(path) for path in paths],
                                       self._given(sources[0], paths[0], options), part)  # fmt: skip

    def _given(self, source: Source, path: AnyPath, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options that are not None; raises if one of them is not an option of the source."""
        given = {name: value for name, value in options.items() if value is not None}
        for name in given.keys() - {option.name for option in source.options}:
            raise self._misplaced(name, path, source)
        return given

    def _misplaced(self, name: str, path: AnyPath, source: Source) -> Exception:
        for other in self._in_turn():
            for option in other.options:
                if option.name == name:
                    what = f"{option.flags[0]} is an option of another kind of profile than {path}"
                    return UsageError(f"{what}: it goes with {other.title}, not with {source.title}.")
        return TypeError(f"open_profile() got an unexpected option {name!r}")

    def words(self, path: AnyPath, options: Mapping[str, Any]) -> list[str]:
        """Command-line arguments that open a path with these options (values by name) of its source."""
        words: list[str] = []
        source = self.source_of(path)
        for option in source.options if source is not None else ():
            value = options.get(option.name)
            if value is not None and value is not False:
                words += [option.flags[0]] if "action" in option.settings else [option.flags[0], str(value)]
        return words

    # -- profiles on disk

    def find(
        self, root: AnyPath, *, depth: int = 3, seconds: float = 2.0, unreadable: list[Path] | None = None
    ) -> Iterator[Path]:
        """Finds profiles at and below a folder, level by level.

        Args:
            root: Folder to search. If it is itself a profile, it is the only one yielded.
            depth: Number of levels below it to search.
            seconds: Time limit of the search.
            unreadable: Collects the folders that cannot be listed, such as for lack of permission.

        Yields:
            Paths. Links to folders are not followed, unreadable folders are skipped.
        """
        end = time.monotonic() + seconds
        level = [Path(root)]
        for remaining in range(depth, -1, -1):
            below: list[Path] = []
            for folder in level:
                if time.monotonic() > end:
                    return
                names, folders = _listed(folder, unreadable=unreadable)
                found = self.found_in(folder, [*names, *folders])
                yield from found
                if remaining and folder not in found:
                    below.extend(folder / name for name in folders)
            level = below

    def found_in(self, folder: Path, names: Sequence[str]) -> list[Path]:
        """The profiles directly in a folder, by the names of its entries; only the folder if it is one itself."""
        found: list[Path] = []
        for source in self._in_turn() if names else ():
            mine: Sequence[Path] = self._asked(source, (), source.find, folder, names)
            if folder in mine:
                return [folder]
            found += mine
        return sorted(set(found), key=lambda path: natural_order(path.name))

    def siblings(self, path: AnyPath, most: int = 2_000) -> list[str]:
        """Names of the profiles in the parent folder of a profile; checks at most ``most`` sibling folders."""
        folder = self.whole(path).parent
        names, folders = _listed(folder, links=True)
        files = [file.name for file in self.found_in(folder, [*names, *folders]) if file != folder]
        return [*files, *(name for name in folders[:most] if (folder / name) in self.find(folder / name, depth=0))]

    def whole(self, path: AnyPath) -> Path:
        """Absolute path of the profile that a path belongs to; the path itself if no source recognises it."""
        given = Path(path).absolute()
        return self._answer(given, "whole", given)

    def files(self, path: AnyPath) -> list[Path]:
        """The files that a profile consists of; the path itself if no source recognises it."""
        return sorted(self._answer(Path(path), "files", [Path(path)]))

    def size(self, path: AnyPath) -> int:
        """Size of a profile on disk, in bytes."""
        return sum(max(_size_and_time(file)[0], 0) for file in self.files(path))

    def fingerprint(self, path: AnyPath) -> str:
        """A short text that changes when any file of a profile is added, removed, resized or rewritten.

        Returns:
            Hexadecimal digits; empty if the path does not exist or cannot be read.
        """
        if not os.path.exists(path):
            return ""
        import hashlib  # slow to import, not needed for opening a capture

        try:
            seen = [(file.name, str(file.parent.absolute()), *_size_and_time(file)) for file in self.files(path)]
        except OSError:
            return ""
        return hashlib.blake2b(repr(seen).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()

    def sessions(self, path: AnyPath) -> Sequence[SessionEntry]:
        """The sessions to choose from in a folder of recordings; empty: it is opened as a whole."""
        return self._answer(Path(path), "sessions", ())

    def device_and_call(self, path: AnyPath) -> tuple[int | None, int | None]:
        """Device number and call number in a profile's name; None for each that the name does not contain."""
        return self._answer(Path(path), "device_and_call", (None, None))

    def _answer(self, path: Path, question: str, otherwise: _Answer) -> _Answer:
        """Calls the method ``question`` of a path's source; ``otherwise`` if no source recognises the path."""
        source = self.source_of(path)
        return otherwise if source is None else self._asked(source, otherwise, getattr(source, question), path)


def chosen(decisions: Sequence[Decision]) -> Decision | None:
    """The decision that opens the path: one that decides, else the first by name, else by content; None: none does."""
    found = [each for each in decisions if each.recognition]
    deciding = next((each for each in found if each.recognition.decides), None)
    return deciding or min(found, key=lambda each: each.recognition.by == "content", default=None)


def _recognition(source: Source, path: Path) -> Recognition:
    try:
        return source.recognises(path)
    except OSError as error:
        return Recognition("", (error.strerror or "it cannot be looked at").lower())


def _size_and_time(file: Path) -> tuple[int, int]:
    """Size in bytes and modification time in ns of a file; -1 for both if it cannot be read (dangling link)."""
    try:
        state = file.stat()
    except OSError:
        return -1, -1
    return state.st_size, state.st_mtime_ns


def _listed(folder: Path, *, links: bool = False, unreadable: list[Path] | None = None) -> tuple[list[str], list[str]]:
    """Names of the files and of the folders in a folder; folders in natural order, without hidden ones.

    Args:
        folder: The folder; unreadable: both lists are empty.
        links: Whether links to folders count as folders.
        unreadable: Collects the folder if it exists but cannot be listed.
    """
    names: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=links):
                    if not entry.name.startswith("."):
                        folders.append(entry.name)
                else:
                    names.append(entry.name)
    except OSError as error:
        if unreadable is not None and not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            unreadable.append(folder)
        return [], []
    return names, sorted(folders, key=natural_order)
