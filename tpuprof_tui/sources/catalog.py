"""Which source opens a path: the list of sources, in the order in which they are asked.

Those of this package come first (its folders with a ``source.py``), by name, then by content; only where none of them
takes a path the sources of other packages are loaded (entry points ``tpuprof.sources``) and asked the same way.
``tpuprof info PATH --why`` tells it all.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

from tpuprof_tui.errors import UnreadableError, UsageError

from .known_formats import known_format
from .source import Part, Progress, ProgressCallback, Source, SourceOption, Verdict
from .source import natural_order as natural_order

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile, Vocabulary

__all__ = [
    "SOURCES", "Catalog", "Decision", "Part", "Progress", "ProgressCallback", "SourceOption", "open_profile",
    "vocabularies",
]  # fmt: skip


def _own_sources() -> tuple[Source, ...]:
    """``SOURCE`` of each folder beside this file that has a ``source.py``, in the order in which they are asked."""
    here = Path(__file__).parent
    names = [folder for folder in os.listdir(here) if (here / folder / "source.py").is_file()]
    found: list[Source] = [import_module(f"{__package__}.{name}.source").SOURCE for name in names]
    return tuple(sorted(found, key=lambda source: (source.turn, source.id)))


#: The sources of this package. A narrower one stands before a wider one: the first that recognises a path opens it.
SOURCES: Final = _own_sources()

#: Where to read more about a path that nothing opens.
WHY: Final = "`tpuprof info PATH --why` says what was looked for."

#: Entry points of other packages' sources.
PLUG_INS: Final = "tpuprof.sources"

AnyPath = str | os.PathLike[str]
#: Sources of other packages, and what is wrong with some, by name.
PlugIns = tuple[list[Source], dict[str, str]]
_Answer = TypeVar("_Answer")


class Decision(Struct, frozen=True):
    """What a source said of a path."""

    source: Source
    verdict: Verdict


def load_plug_ins() -> PlugIns:
    """The sources that installed packages offer, ordered by the name of their entry points.

    Returns:
        The sources; and for each entry point that gives none why, by its name.
    """
    # reading what is installed takes longer than most of what needs no plug-in
    from importlib.metadata import entry_points

    found: list[Source] = []
    broken: dict[str, str] = {}
    for entry in sorted(entry_points(group=PLUG_INS), key=lambda each: (each.name, each.value)):
        try:
            offered = entry.load()
        except Exception as error:  # whatever a stranger's module does while it is imported
            broken[entry.name] = failure(error)
            continue
        if isinstance(offered, Source) and all(isinstance(getattr(offered, name, None), str)
                                               for name in ("id", "title", "expected")):  # fmt: skip
            found.append(offered)
        else:
            broken[entry.name] = f"{entry.value} is no Source"
    return found, broken


def failure(error: Exception) -> str:
    """What went wrong, on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def vocabularies() -> tuple[Vocabulary, ...]:
    """What the sources of this package call things, for what is asked without a profile; known without numpy."""
    from tpuprof_tui.model.vocabulary import imported

    return tuple(imported(source.vocabulary) for source in SOURCES if source.vocabulary)


def open_profile(
    path: AnyPath, *, progress: ProgressCallback | None = None, part: Part | None = None, **options: Any
) -> Profile:
    """Read a profile.

    Args:
        path: File or folder that a source recognises: a capture's directory, or a file in it.
        progress: Called while reading; what it raises ends the reading and is passed on.
        part: What of it is asked for: no more is read of a file that is larger than memory.
        options: Those of the source, None where one is not given. Sophgo captures: ``chip`` (name of the chip, for
            captures whose ``global.profile`` is absent or names an unknown arch), ``tiu_mhz`` (TIU clock in MHz;
            without it the capture's ``tpu_freq``, then the chip's default), ``trace_file`` (host trace to show beside).

    Returns:
        The profile: times in integer ns on one time line, whose zero is the first instruction.

    Raises:
        UnreadableError: No such path, nothing recognisable in it, or an unknown chip without ``chip``.
        UsageError: The option belongs to another source than the path.
    """
    return Catalog().open(path, options, progress, part)


class Catalog:
    """The sources there are. One catalog loads the sources of other packages at most once.

    Args:
        plug_ins: Loads those of others; with what is wrong with some, by name.
    """

    def __init__(self, sources: Sequence[Source] = SOURCES, plug_ins: Callable[[], PlugIns] = load_plug_ins) -> None:
        self._own = tuple(sources)
        self._load = plug_ins
        self._others: tuple[Source, ...] | None = None
        #: What is wrong with sources of other packages, by name.
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
        """What profiles look like on disk, as the rest of "Name a capture: "."""
        return ", or ".join(source.expected for source in (*self._own, *(self._others or ())))

    def _in_turn(self) -> Iterator[Source]:
        """All sources; those of others are loaded when those of this package have been asked."""
        yield from self._own
        yield from self.others

    # -- who opens a path

    def decisions(self, path: AnyPath) -> list[Decision]:
        """What each source says of a path, in the order they are asked."""
        return [*self._decisions(self._own, Path(path)), *self._decisions(self.others, Path(path))]

    def source_of(self, path: AnyPath) -> Source | None:
        """The source that opens a path; None where none does."""
        given = Path(path)
        if not os.path.exists(given):
            return None
        found = chosen(self._decisions(self._own, given)) or chosen(self._decisions(self.others, given))
        return found.source if found else None

    def recognised(self, path: AnyPath) -> Source:
        """The same; what cannot be opened is told.

        Raises:
            UnreadableError: No such path, one that may not be read, or none that a source knows.
        """
        given = Path(path)
        folder = os.path.isdir(given)
        try:
            os.listdir(given) if folder else given.stat()
        except OSError as error:
            raise UnreadableError(f"{path}: {(error.strerror or 'cannot be opened').lower()}.") from None
        source = self.source_of(given)
        if source is not None:
            return source
        found = known_format(given)
        if found is not None:
            kind, file = found
            what = f"holds {kind.title} ({file.name})" if folder else f"is {kind.title}"
            raise UnreadableError(f"{path} {what}, which tpuprof does not read.", kind.advice)
        hints = [f"Name a capture: {self.expected}.", *self.faults, WHY]
        raise UnreadableError(f"{path} {'holds' if folder else 'is'} no capture that is known.", " ".join(hints))

    @property
    def faults(self) -> list[str]:
        """A sentence for each source of another package that failed."""
        return [f"The source {name} cannot be used ({why})." for name, why in self.broken.items()]

    def _decisions(self, sources: Sequence[Source], path: Path) -> list[Decision]:
        failed = Verdict("", "it failed")
        return [Decision(each, self._asked(each, failed, _verdict, each, path)) for each in sources]

    def _asked(self, source: Source, otherwise: _Answer, question: Callable[..., _Answer], *about: object) -> _Answer:
        """What a source answers; one of another package that fails is noted, and says ``otherwise``."""
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
        """Reads profiles, those of one source side by side; see `open_profile`."""
        sources = [self.recognised(path) for path in paths]
        if len(set(sources)) > 1:
            return [self.open(path, options, None, part) for path in paths]
        return sources[0].open_several([Path(path) for path in paths],
                                       self._given(sources[0], paths[0], options), part)  # fmt: skip

    def _given(self, source: Source, path: AnyPath, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options that are given, which have to be its own."""
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
        """Words of a command line that open a path with these options of its source, by name."""
        words: list[str] = []
        source = self.source_of(path)
        for option in source.options if source is not None else ():
            value = options.get(option.name)
            if value is not None and value is not False:
                words += [option.flags[0]] if "action" in option.settings else [option.flags[0], str(value)]
        return words

    # -- what is on disk

    def find(self, root: AnyPath, *, depth: int = 3, seconds: float = 2.0) -> Iterator[Path]:
        """Profiles at and below a folder, as they are found, level by level.

        Args:
            root: Where to look; itself a profile: the only one yielded.
            depth: How many levels below it are looked at.
            seconds: After this time the search ends; what was found stays.

        Yields:
            Paths; links to folders are not followed, unreadable ones are passed over.
        """
        end = time.monotonic() + seconds
        level = [Path(root)]
        for remaining in range(depth, -1, -1):
            below: list[Path] = []
            for folder in level:
                if time.monotonic() > end:
                    return
                names, folders = _listed(folder)
                found = self.found_in(folder, [*names, *folders])
                yield from found
                if remaining and folder not in found:
                    below.extend(folder / name for name in folders)
            level = below

    def found_in(self, folder: Path, names: Sequence[str]) -> list[Path]:
        """The profiles in one folder, by the names of what is in it; the folder alone where it is one itself."""
        found: list[Path] = []
        for source in self._in_turn() if names else ():
            mine: Sequence[Path] = self._asked(source, (), source.find, folder, names)
            if folder in mine:
                return [folder]
            found += mine
        return sorted(set(found), key=lambda path: natural_order(path.name))

    def beside(self, path: AnyPath, most: int = 2_000) -> list[str]:
        """Names of the profiles in the folder that a profile lies in; of at most ``most`` folders there."""
        folder = self.whole(path).parent
        names, folders = _listed(folder, links=True)
        files = [file.name for file in self.found_in(folder, [*names, *folders]) if file != folder]
        return [*files, *(name for name in folders[:most] if (folder / name) in self.find(folder / name, depth=0))]

    def whole(self, path: AnyPath) -> Path:
        """The absolute path of the profile that a path belongs to; of any other path, that path."""
        given = Path(path).absolute()
        return self._answer(given, "whole", given)

    def files(self, path: AnyPath) -> list[Path]:
        """The files that a profile consists of; of any other path, that path."""
        return sorted(self._answer(Path(path), "files", [Path(path)]))

    def size(self, path: AnyPath) -> int:
        """Bytes that a profile has on disk."""
        return sum(max(_size_and_time(file)[0], 0) for file in self.files(path))

    def fingerprint(self, path: AnyPath) -> str:
        """A short text that changes when any file of a profile is added, removed, resized or rewritten.

        Returns:
            Hexadecimal digits; empty where nothing can be seen.
        """
        if not os.path.exists(path):
            return ""
        import hashlib  # not needed for opening a capture

        try:
            seen = [(file.name, str(file.parent.absolute()), *_size_and_time(file)) for file in self.files(path)]
        except OSError:
            return ""
        return hashlib.blake2b(repr(seen).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()

    def device_and_call(self, path: AnyPath) -> tuple[int | None, int | None]:
        """Numbers of the device and of the call that a profile's name tells; None for what it does not tell."""
        return self._answer(Path(path), "device_and_call", (None, None))

    def _answer(self, path: Path, question: str, otherwise: _Answer) -> _Answer:
        """What the source of a path answers to a question about it; ``otherwise`` where no source opens it."""
        source = self.source_of(path)
        return otherwise if source is None else self._asked(source, otherwise, getattr(source, question), path)


def chosen(decisions: Sequence[Decision]) -> Decision | None:
    """The one that opens the path: the first by name, else the first by content."""
    return next((each for by in ("name", "content") for each in decisions if each.verdict.by == by), None)


def _verdict(source: Source, path: Path) -> Verdict:
    try:
        return source.recognises(path)
    except OSError as error:
        return Verdict("", (error.strerror or "it cannot be looked at").lower())


def _size_and_time(file: Path) -> tuple[int, int]:
    """Size and time of the last change; -1 where a link leads nowhere."""
    try:
        state = file.stat()
    except OSError:
        return -1, -1
    return state.st_size, state.st_mtime_ns


def _listed(folder: Path, *, links: bool = False) -> tuple[list[str], list[str]]:
    """Names of the files in a folder, and of the folders in natural order; ``links``: these may be links to folders."""
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
    except OSError:
        return [], []
    return names, sorted(folders, key=natural_order)
