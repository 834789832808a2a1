"""Exports of the capture on the screen: their command lines, run in a child process one after another."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from tpuprof_tui.child_process import python_words
from tpuprof_tui.errors import TpuprofError
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.parsing import range_text
from tpuprof_tui.formats.units import bytes_text
from tpuprof_tui.sources.catalog import Catalog

from .messages import ThreadFailed

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.state import DisplayState
    from tpuprof_tui.model import Profile
    from tpuprof_tui.model.vocabulary import Output, Word

    from .application import TpuprofApp

#: Number of instructions from which workbook and web view state their size and duration before they are written.
WARN_FROM_EVENTS: Final = 1_000_000
#: Longest line accepted from a child, in bytes.
MAX_LINE_BYTES: Final = 1 << 22
#: Seconds that a stopped child gets to remove partial files.
STOP_GRACE_SECONDS: Final = 5.0


class ExportError(TpuprofError):
    """An export failed; the message is one sentence."""


class ExportSource(Struct, frozen=True):
    """The open capture as an argument of a command line."""

    path: str  #: Its path; empty: nothing can be exported, and ``fault`` states why
    name: str = ""
    fingerprint: str = ""  #: Its fingerprint from before it was opened; empty: unknown
    source_options: Mapping[str, Any] = field(default_factory=dict)  #: Source options that it was opened with, by name
    #: Path of the capture (directory or single file), as ``path`` may be a file in it; empty: same as ``path``.
    root: str = ""
    fault: str = ""  #: Why nothing can be exported, in a sentence

    @property
    def capture(self) -> Path:
        """Absolute path of the capture: its directory, or its single file."""
        return Path(os.path.abspath(self.root or self.path))

    def words(self, command: str, *words: str) -> list[str]:
        """A command line that opens it as it was opened, and fails if it has changed since (``--expect``)."""
        expected = ["--expect", self.fingerprint] if self.fingerprint else []
        # absolute, so that the path is neither a command nor an option
        path = str(Path(self.path).absolute())
        return [command, path, *words, *Catalog().words(self.path, self.source_options), *expected]


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


class Command(Struct, frozen=True):
    """A command line that writes an output."""

    kind: Output
    words: Sequence[str]  #: Arguments of ``tpuprof``
    target: Path | None = None  #: The file it writes; None: the child reports the files


def files_command(kind: Output, source: ExportSource, folder: str, numbers: Sequence[int] = (),
                  window: tuple[int, int] | None = None, filter_text: str = "") -> Command:  # fmt: skip
    """``tpuprof export`` of one output, of units by number, a window (ns) and a filter; empty: no restriction."""
    target = str(Path(os.path.expanduser(folder)).absolute())
    words = source.words("export", target, "--only", kind.key, "--machine")
    words += ["--cores", ",".join(map(str, numbers))] if numbers else []
    return Command(kind, words + _part_words(window, filter_text))


def table_command(
    kind: Output, source: ExportSource, folder: str, profile: Profile, state: DisplayState, columns: Sequence[str]
) -> Command:
    """``tpuprof instructions`` with the scope, window, filter and order of the table, and the keys of its columns."""
    target = Path(os.path.expanduser(folder)).absolute() / kind.files[0]
    words = source.words("instructions", "--format", kind.key, "--output", str(target))
    words += ["--columns", ",".join(columns), "--sort", f"{state.sort.key}:{'desc' if state.sort.down else 'asc'}"]
    number = profile.groups.unit_number(state.scope.group)
    if state.scope.lane >= 0:
        words += ["--lane", str(state.scope.lane)]
    elif number >= 0:
        words += ["--core", str(number)]
    return Command(kind, words + _part_words(state.figures_window if state.in_window else None, state.filter), target)


def _part_words(window: tuple[int, int] | None, filter_text: str) -> list[str]:
    words = [] if window is None else [f"--range={range_text(*window)}"]
    return [*words, f"--filter={filter_text}"] if filter_text else words


def output_fault(kind: Output | None) -> str:
    """Why an output cannot be written here, in a sentence; empty if it can."""
    if kind is None:
        return "Captures of this kind have no such file."
    if kind.needs and find_spec(kind.needs) is None:
        return f"The {kind.title} needs the package {kind.needs}: pip install {kind.needs}, or write another kind."
    return ""


def warning(kind: Output, events: Word, count: int, detailed: bool) -> str:
    """Size and duration of an export of many events, to be confirmed before it starts; empty if it is small.

    ``detailed``: whether the profile has the details of each event.
    """
    each_bytes, each_ns = kind.detailed if detailed else kind.cost
    if count < WARN_FROM_EVENTS or not each_bytes:
        return ""
    size, seconds = each_bytes * min(count, kind.most or count), each_ns * count / 1e9
    duration = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    cost = f"gets about {bytes_text(round(size))} and takes about {duration}"
    return f"The {kind.title} of {events.of(count)} {cost}."


class Outcome(Struct, frozen=True):
    """Result of an export: paths and sizes in bytes of the files, and notes for the user."""

    kind: Output
    files: tuple[tuple[str, int], ...]
    notes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Number and size of the files."""
        files = f"{len(self.files):,} files, " if len(self.files) > 1 else ""
        return f"written, {files}{bytes_text(sum(size for _, size in self.files))}"

    @property
    def sentence(self) -> str:
        """Sentence with the path of the first file, the number of others and the total size."""
        first, size = self.files[0]
        more = f" and {len(self.files) - 1} more," if len(self.files) > 1 else ","
        total = sum(size for _, size in self.files)
        told = "".join(f" - {clean(note)}" for note in self.notes[:1])
        return f"Wrote {clean(_relative_path(first))}{more} {bytes_text(size if len(self.files) == 1 else total)}{told}"


def _relative_path(path: str) -> str:
    try:
        return f"./{Path(path).relative_to(Path.cwd())}"
    except (ValueError, OSError):
        return path


class Running(Struct, frozen=True):
    """A running export; ``done`` is its progress from 0 to 1, negative if unknown."""

    kind: Output
    done: float = -1.0

    @property
    def text(self) -> str:
        """Progress text for the bottom line."""
        return f"{self.kind.title} {self.done:.0%}" if self.done >= 0 else f"{self.kind.title} ..."


def _parse_message(line: bytes) -> dict[str, object]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


async def _last_error_line(stream: asyncio.StreamReader | None) -> str:
    """Last error line of a child's stderr; reads to the end, so that the child never blocks on a full pipe."""
    told = b""
    while stream is not None and (block := await stream.read(1 << 16)):
        told = (told + block)[-(1 << 14) :]
    lines = [line for line in told.decode(errors="replace").splitlines() if line.strip()]
    own = [line.removeprefix("tpuprof: ") for line in lines if line.startswith("tpuprof: ")]
    return clean((own or lines or [""])[-1])


class Exports:
    """Runs exports of the capture on the screen, one after another; they continue when another screen is shown."""

    def __init__(self, app: TpuprofApp, options: Mapping[str, Any]) -> None:
        self.running: Running | None = None  #: The running export; None: none is
        self.outcome: Outcome | None = None  #: Result of the last export; None: none was successful
        self.folder = ""  #: Output folder for the capture on the screen; empty until an export is requested
        #: What became of each output that was asked for, by id: in words, without the progress.
        self.states: dict[str, str] = {}
        self._app = app
        self._options = options
        self._waiting: list[Command] = []
        #: Output folders typed by the user, by capture.
        self._typed: dict[Path, str] = {}
        self._path = ""
        self._fingerprint = ""
        self._process: asyncio.subprocess.Process | None = None
        self._stopped = False

    def show(self, path: str, fingerprint: str) -> None:
        """Sets the capture on the screen: its path (empty: none on disk) and its fingerprint before it was read."""
        if path != self._path:
            self.states = {}
        self._path, self._fingerprint = path, fingerprint

    def source(self, profile: Profile) -> ExportSource:
        """The open capture as export source; if it is not on disk, the path is empty and ``fault`` states why."""
        path = self._path or profile.path
        if not path or not os.path.exists(path):
            told = "This profile was not read from a capture on disk: there is nothing to export from."
            gone = f"The capture is gone: {path} no longer exists. R reads it again when it is back."
            return ExportSource("", profile.name, fault=gone if self._fingerprint else told)
        source = ExportSource(
            path, profile.name, self._fingerprint, self._options, profile.path if os.path.exists(profile.path) else ""
        )
        self.set_folder(source)
        return source

    def set_folder(self, source: ExportSource, typed: str = "") -> None:
        """Sets ``folder`` for a capture: to ``typed``, else to what was typed for it before, else to the default."""
        if typed:
            self._typed[source.capture] = typed
        self.folder = self._typed.get(source.capture) or default_folder(source)

    def start(self, command: Command) -> None:
        """Starts an export, or lets it wait for those before it; one that waits already is replaced."""
        running = self.running
        if running is None:
            self.states[command.kind.id] = "starts ..."
            self._app.run_worker(self._export(command), name=command.kind.id, group="export", exit_on_error=False)
            return
        self._waiting = [*(each for each in self._waiting if each.kind.id != command.kind.id), command]
        self.states[command.kind.id] = "waits"
        self._app.say(f"The {command.kind.title} is written after the {running.kind.title}; X stops both.")
        self._app.export_changed()

    async def _export(self, command: Command) -> None:
        following: Command | None = command
        while following is not None:
            command = following
            try:
                outcome = await self.run(command)
            except ExportError as error:
                self._end(command, f"failed: {error}", str(error))
            except Exception as error:
                self._end(command, "failed")
                self._app.post_message(ThreadFailed(error))
            else:
                stopped = f"Stopped: the {command.kind.title} was not written."
                self._end(command, *(("stopped", stopped) if outcome is None else (outcome.summary, outcome.sentence)))
            following = self._waiting.pop(0) if self._waiting else None

    def _end(self, command: Command, state: str, sentence: str = "") -> None:
        self.states[command.kind.id] = state
        if sentence:
            self._app.say(sentence)
        self._app.export_changed()

    def stop(self) -> None:
        """Stops the running export, and those that wait."""
        if self.running is None:
            self._app.say("No export is running: x opens the menu.")
        self.end()

    def end(self) -> None:
        """Stops them without a message, to leave."""
        for command in self._waiting:
            self.states[command.kind.id] = "stopped"
        self._waiting = []
        self._stopped = True
        if self._process is not None and self._process.returncode is None:
            # it removes partial files
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    # the child

    async def run(self, command: Command) -> Outcome | None:
        """Runs an export and waits for it; returns None if it was stopped.

        Raises:
            ExportError: It failed.
        """
        self._stopped = False
        self._set_running(Running(command.kind))
        try:
            self.outcome = await self._write(command)
            return self.outcome
        except ExportError:
            if self._stopped:
                return None
            raise
        except OSError as error:
            raise ExportError(f"The {command.kind.title} could not be written: {error.strerror or error}.") from None
        finally:
            await self._end_process()
            self._set_running(None)

    def _set_running(self, running: Running | None) -> None:
        if running != self.running:
            self.running = running
            self._app.export_changed()

    async def _write(self, command: Command) -> Outcome:
        if self._stopped:
            raise ExportError("Stopped.")
        self._process = process = await asyncio.create_subprocess_exec(
            *python_words("tpuprof_tui", *command.words), stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=MAX_LINE_BYTES,
        )  # fmt: skip
        title, written, notes = command.kind.title, list[tuple[str, int]](), tuple[str, ...]()
        errors = asyncio.ensure_future(_last_error_line(process.stderr))
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                message = _parse_message(line)
                done, files = message.get("done"), message.get("written")
                if isinstance(done, int | float):
                    self._set_running(Running(command.kind, min(max(float(done), 0.0), 1.0)))
                elif isinstance(files, list):
                    written = [(str(path), int(size)) for path, size in files]
                    told = message.get("notes")
                    notes = tuple(map(str, told)) if isinstance(told, list) else ()
            error_text = await errors
            # complete files are a success, whatever the exit status; 1: with problems
            if not written and (status := await process.wait()) not in (0, 1):
                raise ExportError(error_text or f"The {title} was not written: the export ended with status {status}.")
        finally:
            errors.cancel()
        if command.target is not None:
            written = [(str(command.target), command.target.stat().st_size)]
        if not written:
            reason = notes[0] if notes else "the export ended without a message."
            raise ExportError(f"The {title} was not written: {clean(reason)}")
        return Outcome(command.kind, tuple(written), notes)

    async def _end_process(self) -> None:
        """Terminates the child if it is still running, and kills it after ``STOP_GRACE_SECONDS``."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_GRACE_SECONDS)
        except asyncio.TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
