"""What the explorer can write, and the command line that writes it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from tpuprof_tui.analysis.selecting.state import DisplayState, Scope
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.parsing import range_text
from tpuprof_tui.formats.units import bytes_text, time_text
from tpuprof_tui.sources.catalog import Catalog

if TYPE_CHECKING:
    from tpuprof_tui.model import Groups, Profile
    from tpuprof_tui.model.vocabulary import Output, Vocabulary, Word

#: From this many instructions on, workbook and web view say how large they get and how long they take, first.
MANY: Final = 1_000_000


class Source(Struct, frozen=True):
    """The open capture, as a command line names it.

    Attributes:
        path: Where it is; empty: nothing can be exported, and ``fault`` says why.
        name: What it is called.
        fingerprint: How it looked when it was opened; empty: nobody looked.
        given: Options of its source that it was opened with, by name.
        root: The capture itself, where ``path`` may be a file in it: a directory, or a file that is one by itself.
        fault: Why nothing can be exported, in a sentence.
    """

    path: str
    name: str = ""
    fingerprint: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    root: str = ""
    fault: str = ""

    @property
    def capture(self) -> Path:
        """The capture's directory, or the file that is a capture by itself."""
        return Path(os.path.abspath(self.root or self.path))

    def options(self) -> list[str]:
        """Words of the command line that open it as it was opened, and stop where it has changed."""
        return [*Catalog().words(self.path, self.given), *(["--expect", self.fingerprint] if self.fingerprint else [])]


class Part(Struct, frozen=True):
    """Which instructions the files hold; the default is the whole capture.

    Attributes:
        core: Only the scope's core.
        window: Only what runs in the chosen range of time, or without one in the visible window.
        filtered: Only what passes the filter.
        cores: Only these cores, whatever ``core`` says; empty: all.
    """

    core: bool = False
    window: bool = False
    filtered: bool = False
    cores: tuple[int, ...] = ()

    def chosen(self, core: int) -> tuple[int, ...]:
        """The cores that files are narrowed to, where the scope's is ``core`` (-1: none); empty: all."""
        return self.cores or ((core,) if self.core and core >= 0 else ())


class Job(Struct, frozen=True):
    """A command line, and what to say about it.

    Attributes:
        kind: What is written.
        words: The command line after the program's name.
        target: The file it writes; None: it tells which.
        core, part: What it is narrowed to.
    """

    kind: Output
    words: tuple[str, ...]
    target: Path | None = None
    core: int = -1
    part: Part = Part()


def default_folder(source: Source, current: Path | None = None) -> str:
    """Where exports go unless told otherwise: ``./NAME_profile_out``, beside the capture where that would be in it."""
    current = Path.cwd() if current is None else current
    capture = source.capture
    # a name that is as long as names can be leaves no room for more
    short = clean(capture.name).encode("utf-8")[:200].decode("utf-8", "ignore")
    name = f"{short or 'capture'}_profile_out"
    if capture == current or capture in current.parents:
        return str(capture.parent / name)
    return f"./{name}"


def folder_fault(folder: str, source: Source) -> str:
    """Why nothing can be written to a folder, in a sentence; empty where nothing speaks against it."""
    if not folder.strip():
        return "Name a folder to write to."
    target, capture = (Path(os.path.realpath(path)) for path in (os.path.expanduser(folder), source.capture))
    if target == capture or capture in target.parents:
        return "That folder lies inside the capture: choose one outside it."
    if os.path.exists(target) and not os.path.isdir(target):
        return "That is a file, not a folder."
    return ""


def export_job(kind: Output, source: Source, folder: str, state: DisplayState, core: int, part: Part) -> Job:
    """The command line of ``tpuprof export`` for one kind of file."""
    target = str(Path(os.path.expanduser(folder)).absolute())
    words = ["export", _path(source), target, "--only", kind.key, "--machine", *source.options()]
    part = Part(part.core and core >= 0, part.window, part.filtered and bool(state.filter), part.cores)
    start, end = state.figures_window
    words += ["--cores", ",".join(map(str, part.chosen(core)))] if part.chosen(core) else []
    words += [f"--range={range_text(start, end)}"] if part.window else []
    words += [f"--filter={state.filter}"] if part.filtered else []
    return Job(kind, tuple(words), core=core, part=part)


def table_job(kind: Output, source: Source, folder: str, state: DisplayState, core: int, columns: Sequence[str]) -> Job:
    """The command line that prints the table as it is: its scope, window, filter, columns and order.

    Args:
        kind: CSV, JSON lines or Parquet.
        source: The capture.
        folder: Output folder.
        state: What the table shows.
        core: Number of the core of its scope; -1 without.
        columns: Keys of its columns in their order.
    """
    target = Path(os.path.expanduser(folder)).absolute() / kind.files[0]
    words = ["instructions", _path(source), "--format", kind.key, "--output", str(target), *source.options()]
    words += ["--columns", ",".join(columns), "--sort", f"{state.sort.key}:{'desc' if state.sort.down else 'asc'}"]
    if state.scope.lane >= 0:
        words += ["--lane", str(state.scope.lane)]
    elif core >= 0:
        words += ["--core", str(core)]
    start, end = state.figures_window
    words += [f"--range={range_text(start, end)}"] if state.in_window else []
    words += [f"--filter={state.filter}"] if state.filter else []
    return Job(kind, tuple(words), target)


def kind_fault(kind: Output | None) -> str:
    """Why a kind cannot be written here, in a sentence; empty where nothing speaks against it."""
    if kind is None:
        return "Captures of this kind have no such file."
    if kind.needs and find_spec(kind.needs) is None:
        return f"The {kind.title} needs the package {kind.needs}: pip install {kind.needs}, or write another kind."
    return ""


def cores_typed(text: str, profile: Profile) -> tuple[int, ...]:
    """Numbers of units from a list as people type it (``0,3`` or ``0-3``); empty: all.

    Raises:
        UsageError: It is no list of them, or names one that the capture does not have.
    """
    from tpuprof_tui.export.job import parse_cores

    return tuple(sorted(parse_cores(text, profile))) if text.strip() else ()


def _path(source: Source) -> str:
    """The capture's path; absolute, so that it is neither a command nor an option."""
    return str(Path(source.path).absolute())


def part_text(vocabulary: Vocabulary, state: DisplayState, core: int, part: Part) -> str:
    """What the files will hold, in words."""
    cores = part.chosen(core)
    unit = vocabulary.unit.plural if len(cores) > 1 else vocabulary.unit.one
    words = [f"{unit} {', '.join(map(str, cores))}"] if cores else []
    words += [window_text(state)] if part.window else []
    words += [f"filter {state.filter}"] if part.filtered and state.filter else []
    return clean(", ".join(words)) if words else "the whole capture"


def window_text(state: DisplayState) -> str:
    """The time that files can be narrowed to."""
    start, end = state.figures_window
    return f"the {'window' if state.range is None else 'range'} of {time_text(end - start)}"


def warning(kind: Output, events: Word, count: int, detailed: bool) -> str:
    """What a large export costs, to be said before it starts; empty where it costs little.

    Args:
        kind: What is written.
        events: What the source calls events.
        count: How many there are.
        detailed: Whether everything of each is known.
    """
    each_bytes, each_ns = kind.detailed if detailed else kind.cost
    if count < MANY or not each_bytes:
        return ""
    size, seconds = each_bytes * min(count, kind.most or count), each_ns * count / 1e9
    took = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    about = f"gets about {bytes_text(round(size))} and takes about {took}"
    return f"The {kind.title} of {events.of(count)} {about}."


def scope_core(groups: Groups, scope: Scope, selected: int) -> int:
    """Number of the core an export can be narrowed to: the scope's, else the selected one; -1 without any."""
    return groups.unit_number(scope.group if scope.group >= 0 else selected)
