"""Builds the command lines of exports, with validation, descriptions and cost warnings."""

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
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.model import Groups, Profile
    from tpuprof_tui.model.vocabulary import Output, Word

#: Number of instructions from which workbook and web view state their size and duration before they are written.
WARN_FROM_EVENTS: Final = 1_000_000


class ExportSource(Struct, frozen=True):
    """The open capture as an argument of a command line.

    Attributes:
        path: Its path; empty: nothing can be exported, and ``fault`` states why.
        name: Its name.
        fingerprint: Its fingerprint from before it was opened; empty: unknown.
        source_options: Source options that it was opened with, by name.
        root: Path of the capture (directory or single file), as ``path`` may be a file in it; empty: same as ``path``.
        fault: Why nothing can be exported, in a sentence.
    """

    path: str
    name: str = ""
    fingerprint: str = ""
    source_options: Mapping[str, Any] = field(default_factory=dict)
    root: str = ""
    fault: str = ""

    @property
    def capture(self) -> Path:
        """Absolute path of the capture: its directory, or its single file."""
        return Path(os.path.abspath(self.root or self.path))

    def options(self) -> list[str]:
        """Command-line options that open it as it was opened, and fail if it has changed since (``--expect``)."""
        expected = ["--expect", self.fingerprint] if self.fingerprint else []
        return [*Catalog().words(self.path, self.source_options), *expected]


class Subset(Struct, frozen=True):
    """Which instructions the files hold; the default is the whole capture.

    Attributes:
        core: Whether to restrict to the scope's core.
        window: Whether to restrict to the chosen range of time or, without one, the visible window.
        filtered: Whether to restrict to what passes the filter.
        cores: Restrict to these cores, taking precedence over ``core``; empty: all.
    """

    core: bool = False
    window: bool = False
    filtered: bool = False
    cores: tuple[int, ...] = ()

    def selected_cores(self, core: int) -> tuple[int, ...]:
        """Cores that the files are restricted to; ``core`` is the scope's core (-1: none). Empty: all."""
        return self.cores or ((core,) if self.core and core >= 0 else ())


class Job(Struct, frozen=True):
    """An export to run: its command line and description.

    Attributes:
        kind: The kind of output.
        arguments: Command-line arguments.
        target: The file it writes; None: the child reports the files.
        core, subset: The part of the profile that it is restricted to.
    """

    kind: Output
    arguments: tuple[str, ...]
    target: Path | None = None
    core: int = -1
    subset: Subset = Subset()


def default_folder(source: ExportSource, current: Path | None = None) -> str:
    """Default output folder: ``./NAME_profile_out``, or next to the capture if that would be inside it."""
    current = Path.cwd() if current is None else current
    capture = source.capture
    # leave room for the suffix: file names are limited to 255 bytes
    short = clean(capture.name).encode("utf-8")[:200].decode("utf-8", "ignore")
    name = f"{short or 'capture'}_profile_out"
    if capture == current or capture in current.parents:
        return str(capture.parent / name)
    return f"./{name}"


def folder_fault(folder: str, source: ExportSource) -> str:
    """Why a folder cannot be written to, in a sentence; empty if it can."""
    if not folder.strip():
        return "Name a folder to write to."
    target, capture = (Path(os.path.realpath(path)) for path in (os.path.expanduser(folder), source.capture))
    if target == capture or capture in target.parents:
        return "That folder is inside the capture: choose one outside it."
    if os.path.exists(target) and not os.path.isdir(target):
        return "That is a file, not a folder."
    return ""


def export_job(kind: Output, source: ExportSource, folder: str, state: DisplayState, core: int, subset: Subset) -> Job:
    """The job that runs ``tpuprof export`` for one kind of file."""
    target = str(Path(os.path.expanduser(folder)).absolute())
    arguments = ["export", _path(source), target, "--only", kind.key, "--machine", *source.options()]
    subset = Subset(subset.core and core >= 0, subset.window, subset.filtered and bool(state.filter), subset.cores)
    start, end = state.figures_window
    arguments += ["--cores", ",".join(map(str, subset.selected_cores(core)))] if subset.selected_cores(core) else []
    arguments += [f"--range={range_text(start, end)}"] if subset.window else []
    arguments += [f"--filter={state.filter}"] if subset.filtered else []
    return Job(kind, tuple(arguments), core=core, subset=subset)


def table_job(
    kind: Output, source: ExportSource, folder: str, state: DisplayState, core: int, columns: Sequence[str]
) -> Job:
    """The job that runs ``tpuprof instructions`` with the scope, window, filter, columns and order of the table.

    Args:
        kind: CSV, JSON lines or Parquet.
        source: The capture.
        folder: Output folder.
        state: Display state of the table.
        core: Number of the core of its scope; -1: none.
        columns: Keys of its columns, in order.
    """
    target = Path(os.path.expanduser(folder)).absolute() / kind.files[0]
    arguments = ["instructions", _path(source), "--format", kind.key, "--output", str(target), *source.options()]
    arguments += ["--columns", ",".join(columns), "--sort", f"{state.sort.key}:{'desc' if state.sort.down else 'asc'}"]
    if state.scope.lane >= 0:
        arguments += ["--lane", str(state.scope.lane)]
    elif core >= 0:
        arguments += ["--core", str(core)]
    start, end = state.figures_window
    arguments += [f"--range={range_text(start, end)}"] if state.in_window else []
    arguments += [f"--filter={state.filter}"] if state.filter else []
    return Job(kind, tuple(arguments), target)


def output_fault(kind: Output | None) -> str:
    """Why an output cannot be written here, in a sentence; empty if it can."""
    if kind is None:
        return "Captures of this kind have no such file."
    if kind.needs and find_spec(kind.needs) is None:
        return f"The {kind.title} needs the package {kind.needs}: pip install {kind.needs}, or write another kind."
    return ""


def parse_typed_cores(text: str, profile: Profile) -> tuple[int, ...]:
    """Parses a typed list of unit numbers (``0,3`` or ``0-3``); empty: all.

    Raises:
        UsageError: The text is not such a list, or names a unit that the capture does not have.
    """
    from tpuprof_tui.export.job import parse_cores

    return tuple(sorted(parse_cores(text, profile))) if text.strip() else ()


def _path(source: ExportSource) -> str:
    """The capture's path; absolute, so that it is neither a command nor an option."""
    return str(Path(source.path).absolute())


def subset_text(session: Session, state: DisplayState, core: int, subset: Subset) -> str:
    """Describes the part of the profile that the files will hold."""
    vocabulary = session.profile.vocabulary
    cores = subset.selected_cores(core)
    unit = vocabulary.unit.plural if len(cores) > 1 else vocabulary.unit.one
    parts = [f"{unit} {', '.join(map(str, cores))}"] if cores else []
    parts += [window_text(session, state)] if subset.window else []
    parts += [f"filter {state.filter}"] if subset.filtered and state.filter else []
    return clean(", ".join(parts)) if parts else "the whole capture"


def window_text(session: Session, state: DisplayState) -> str:
    """Describes the window or range that files can be restricted to; a window that is the chosen step's names it."""
    # these import numpy, which the first frame does not need
    from tpuprof_tui.analysis.selecting.filters import split_step
    from tpuprof_tui.analysis.steps.step_detection import steps_of
    from tpuprof_tui.analysis.steps.step_figures import step_span

    start, end = state.figures_window
    if state.range is not None:
        return f"the range of {time_text(end - start)}"
    step = split_step(state.filter)[0]
    if step is not None and step_span(session, step) == (start, end):
        return f"the {time_text(end - start)} of {steps_of(session).word.one} {step}"
    return f"the window of {time_text(end - start)}"


def warning(kind: Output, events: Word, count: int, detailed: bool) -> str:
    """Size and duration of a large export, to be confirmed before it starts; empty if it is small.

    Args:
        kind: The kind of output.
        events: The source's word for events.
        count: Number of events.
        detailed: Whether the profile has the details of each event.
    """
    each_bytes, each_ns = kind.detailed if detailed else kind.cost
    if count < WARN_FROM_EVENTS or not each_bytes:
        return ""
    size, seconds = each_bytes * min(count, kind.most or count), each_ns * count / 1e9
    duration = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    cost = f"gets about {bytes_text(round(size))} and takes about {duration}"
    return f"The {kind.title} of {events.of(count)} {cost}."


def scope_core(groups: Groups, scope: Scope, selected: int) -> int:
    """Number of the core that an export can be restricted to: the scope's, else the selected one; -1: none."""
    return groups.unit_number(scope.group if scope.group >= 0 else selected)
