"""What the explorer can write, the command line that writes it, and the child process that runs it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import TpuprofError
from .format import bytes_text, clean, time_text
from .state import Scope, ViewState

#: From this many instructions on, workbook and web view say how large they get and how long they take, first.
MANY: Final = 1_000_000
#: Longest line a child may send.
LONGEST: Final = 1 << 22
#: Seconds a stopped child gets to remove what is half-written.
GRACE: Final = 5.0

_ENGINES: Final = ("TIU", "GDMA", "SDMA", "CDMA")


class ExportError(TpuprofError):
    """An export did not come to its end; the message is one sentence."""


@dataclass(frozen=True)
class Kind:
    """Something that can be written.

    Attributes:
        id: Name, also of the action.
        only: What ``--only`` calls it; empty: a table, written by ``tpuprof instructions``.
        title: What people call it.
        files: Names of its files in the folder.
        bytes_each, ns_each: Measured size and time of an instruction; 0: small and fast.
    """

    id: str
    only: str
    title: str
    files: str
    bytes_each: float = 0.0
    ns_each: float = 0.0


KINDS: Final = (
    Kind("workbook", "xlsx", "workbook", "PerfDoc/PerfAI_output.xlsx, .csv", 330.0, 40_000.0),
    Kind("web", "web", "web view", "PerfWeb/result.html", 10.5, 5_000.0),
    Kind("perfetto", "pftrace", "Perfetto trace", "perfetto.pftrace"),
    Kind("summary", "summary", "summary", "summary.txt"),
    Kind("registers", "regs", "register text", "tiuRegInfo_n.txt, tdmaRegInfo_n.txt, ..."),
    Kind("csv", "", "table as CSV", "instructions.csv"),
    Kind("json", "", "table as JSON lines", "instructions.jsonl"),
)
_FORMS: Final = {"csv": "csv", "json": "jsonl"}


@dataclass(frozen=True)
class Source:
    """The open capture, as a command line names it.

    Attributes:
        path: Where it is; empty: it came from no capture, and nothing can be exported.
        name: What it is called.
        fingerprint: How it looked when it was opened; empty: nobody looked.
        chip, tiu_mhz, trace_file: Options it was opened with.
    """

    path: str
    name: str = ""
    fingerprint: str = ""
    chip: str | None = None
    tiu_mhz: int | None = None
    trace_file: str | None = None

    @property
    def directory(self) -> Path:
        """The capture's directory."""
        path = Path(self.path).absolute()
        return path if path.is_dir() else path.parent

    def options(self) -> list[str]:
        """Words of the command line that open it as it was opened, and stop where it has changed."""
        pairs = (("--chip", self.chip), ("--tiu_freq", self.tiu_mhz), ("--trace_file", self.trace_file),
                 ("--expect", self.fingerprint or None))  # fmt: skip
        return [word for flag, value in pairs if value is not None for word in (flag, str(value))]


@dataclass(frozen=True)
class Part:
    """Which instructions the files hold; the default is the whole capture.

    Attributes:
        core: Only the scope's core.
        window: Only what runs in the visible window.
        filtered: Only what passes the filter.
    """

    core: bool = False
    window: bool = False
    filtered: bool = False


@dataclass(frozen=True)
class Job:
    """A command line, and what to say about it.

    Attributes:
        kind: What is written.
        words: The command line after the program's name.
        target: File that takes what it prints; None: it writes files itself.
        core, part: What it is narrowed to.
    """

    kind: Kind
    words: tuple[str, ...]
    target: Path | None = None
    core: int = -1
    part: Part = Part()


@dataclass(frozen=True)
class Outcome:
    """What an export wrote: paths and sizes in bytes."""

    kind: Kind
    files: tuple[tuple[str, int], ...]

    @property
    def sentence(self) -> str:
        """Path and size, in a sentence."""
        first, size = self.files[0]
        more = f" and {len(self.files) - 1} more," if len(self.files) > 1 else ","
        total = sum(size for _, size in self.files)
        return f"Wrote {clean(_short(first))}{more} {bytes_text(size if len(self.files) == 1 else total)}"


def kind_of(name: str) -> Kind:
    """The kind with an id."""
    return next(kind for kind in KINDS if kind.id == name)


def default_folder(source: Source, current: Path | None = None) -> str:
    """Where exports go unless told otherwise: ``./NAME_profile_out``, beside the capture where that would be in it."""
    current = Path.cwd() if current is None else current
    capture = source.directory
    name = f"{clean(capture.name) or 'capture'}_profile_out"
    if capture == current or capture in current.parents:
        return str(capture.parent / name)
    return f"./{name}"


def folder_fault(folder: str, source: Source) -> str:
    """Why nothing can be written to a folder, in a sentence; empty where nothing speaks against it."""
    if not folder.strip():
        return "Name a folder to write to."
    target, capture = Path(folder).expanduser().resolve(), source.directory.resolve()
    if target == capture or capture in target.parents:
        return "That folder lies inside the capture: choose one outside it."
    if target.exists() and not target.is_dir():
        return "That is a file, not a folder."
    return ""


def export_job(kind: Kind, source: Source, folder: str, view: ViewState, core: int, part: Part) -> Job:
    """The command line of ``tpuprof export`` for one kind of file."""
    target = str(Path(folder).expanduser().absolute())
    words = ["export", _path(source), target, "--only", kind.only, "--machine", *source.options()]
    part = Part(part.core and core >= 0, part.window, part.filtered and bool(view.filter))
    words += ["--cores", str(core)] if part.core else []
    words += [f"--range={view.start}ns..{view.end}ns"] if part.window else []
    words += [f"--filter={view.filter}"] if part.filtered else []
    return Job(kind, tuple(words), core=core, part=part)


def table_job(kind: Kind, source: Source, folder: str, view: ViewState, lane: tuple[str, int, int] | None) -> Job:
    """The command line that prints the table as it is: its scope, its window, its filter.

    Args:
        kind: CSV or JSON lines.
        source: The capture.
        folder: Output folder.
        view: What the table shows.
        lane: Engine, core and port of the scope's lane; None where the scope is no lane.
    """
    form = _FORMS[kind.id]
    words = ["instructions", _path(source), "--format", form, *source.options()]
    core, conditions = view.scope.core, [f"({view.filter})"] if view.filter else []
    if lane is not None:
        engine, core, port = lane
        if engine in _ENGINES:
            words += ["--engine", engine]
        if port >= 0:
            conditions.append(f"port={port}")
    if core >= 0:
        words += ["--core", str(core)]
    if view.in_window:
        words += [f"--range={view.start}ns..{view.end}ns"]
    if conditions:
        words += [f"--filter={' '.join(conditions)}"]
    return Job(kind, tuple(words), Path(folder).expanduser().absolute() / kind.files)


def _path(source: Source) -> str:
    """The capture's path; absolute, so that it is neither a command nor an option."""
    return str(Path(source.path).absolute())


def _short(path: str) -> str:
    """A path below the current directory without that directory."""
    try:
        return f"./{Path(path).relative_to(Path.cwd())}"
    except (ValueError, OSError):
        return path


def part_text(view: ViewState, core: int, part: Part) -> str:
    """What the files will hold, in words."""
    words = [f"core {core}"] if part.core and core >= 0 else []
    words += [f"the window of {time_text(view.span)}"] if part.window else []
    words += [f"filter {view.filter}"] if part.filtered and view.filter else []
    return clean(", ".join(words)) if words else "the whole capture"


def warning(kind: Kind, instructions: int) -> str:
    """What a large export costs, to be said before it starts; empty where it costs little."""
    if instructions < MANY or not kind.bytes_each:
        return ""
    size, seconds = kind.bytes_each * instructions, kind.ns_each * instructions / 1e9
    took = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    about = f"gets about {bytes_text(round(size))} and takes about {took}"
    return f"The {kind.title} of {instructions:,} instructions {about}."


def scope_core(scope: Scope, selected: int) -> int:
    """The core an export can be narrowed to: the scope's, else the selected one; -1 without any."""
    return scope.core if scope.core >= 0 else selected


@dataclass(frozen=True)
class Running:
    """An export at work: how far it is (0 to 1; below 0: nobody knows)."""

    kind: Kind
    done: float = -1.0

    @property
    def text(self) -> str:
        """For the bottom line."""
        return f"{self.kind.title} {self.done:.0%}" if self.done >= 0 else f"{self.kind.title} ..."


class Exporter:
    """Runs one export at a time as a child process; nothing of it blocks the event loop.

    Attributes:
        running: The export at work.
        outcome: What the last one wrote.
        folder: Where exports go; empty: not chosen yet.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.running: Running | None = None
        self.outcome: Outcome | None = None
        self.folder = ""
        self._changed = changed
        self._process: asyncio.subprocess.Process | None = None
        self._stopped = False

    async def run(self, job: Job) -> Outcome | None:
        """Runs an export to its end.

        Returns:
            What was written; None where it was stopped.

        Raises:
            ExportError: It failed.
        """
        self._stopped = False
        self._tell(Running(job.kind))
        try:
            self.outcome = await (self._files(job) if job.target is None else self._table(job, job.target))
            return self.outcome
        except ExportError:
            if self._stopped:
                return None
            raise
        except OSError as error:
            raise ExportError(f"The {job.kind.title} could not be written: {error.strerror or error}.") from None
        finally:
            await self._ended()
            self._tell(None)

    def stop(self) -> None:
        """Stops the export; it removes what is half-written."""
        self._stopped = True
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    def _tell(self, running: Running | None) -> None:
        if running != self.running:
            self.running = running
            self._changed()

    async def _files(self, job: Job) -> Outcome:
        process = await self._start(job, asyncio.subprocess.PIPE)
        written: list[tuple[str, int]] = []
        errors = asyncio.ensure_future(_tail(process.stderr))
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                message = _message(line)
                done, files = message.get("done"), message.get("written")
                if isinstance(done, int | float):
                    self._tell(Running(job.kind, min(max(float(done), 0.0), 1.0)))
                elif isinstance(files, list):
                    written = [(str(path), int(size)) for path, size in files]
            await self._checked(job, process, await errors)
        finally:
            errors.cancel()
        if not written:
            raise ExportError(f"The {job.kind.title} was not written: the export ended without a word.")
        return Outcome(job.kind, tuple(written))

    async def _table(self, job: Job, target: Path) -> Outcome:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            with partial.open("wb") as file:
                process = await self._start(job, file.fileno())
                errors = await _tail(process.stderr)
                await self._checked(job, process, errors)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        return Outcome(job.kind, ((str(target), target.stat().st_size),))

    async def _start(self, job: Job, output: int) -> asyncio.subprocess.Process:
        if self._stopped:
            raise ExportError("Stopped.")
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tpuprof_tui", *job.words, env=_environment(),
            stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=asyncio.subprocess.PIPE, limit=LONGEST,
        )  # fmt: skip
        return self._process

    async def _checked(self, job: Job, process: asyncio.subprocess.Process, errors: str) -> None:
        status = await process.wait()
        if status in (0, 1) and not self._stopped:
            return
        raise ExportError(errors or f"The {job.kind.title} was not written: the export ended with status {status}.")

    async def _ended(self) -> None:
        """No child outlives its export."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), GRACE)
        except asyncio.TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


def _environment() -> dict[str, str]:
    """The child finds this very package, wherever it was started from."""
    package = str(Path(__file__).resolve().parents[2])
    path = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{path}" if path else package}


def _message(line: bytes) -> dict[str, object]:
    """A line of the child; what is none of its messages is empty."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


async def _tail(stream: asyncio.StreamReader | None) -> str:
    """The last sentence of what a child says about errors; read to its end, so that the child never waits."""
    told = b""
    while stream is not None and (block := await stream.read(1 << 16)):
        told = (told + block)[-(1 << 14) :]
    lines = [line for line in told.decode(errors="replace").splitlines() if line.strip()]
    own = [line.removeprefix("tpuprof: ") for line in lines if line.startswith("tpuprof: ")]
    return clean((own or lines or [""])[-1])
