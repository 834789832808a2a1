"""Runs exports in a child process, one at a time, with progress and cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tpuprof_tui.child_process import python_words
from tpuprof_tui.errors import TpuprofError
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.units import bytes_text

from .export_jobs import ExportSource, Job, default_folder

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile
    from tpuprof_tui.model.vocabulary import Output

#: Longest line accepted from a child, in bytes.
MAX_LINE_BYTES: Final = 1 << 22
#: Seconds that a stopped child gets to remove partial files.
STOP_GRACE_SECONDS: Final = 5.0


class ExportError(TpuprofError):
    """An export failed; the message is one sentence."""


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
    """The path relative to the current directory (``./...``) if it is below it, else unchanged."""
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


class Exporter:
    """Runs one export at a time as a child process, without blocking the event loop.

    Attributes:
        running: The running export; None: none is.
        outcome: Result of the last export; None: none was successful.
        folder: Output folder for the capture on the screen; empty until an export is requested.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.running: Running | None = None
        self.outcome: Outcome | None = None
        self.folder = ""
        #: Output folders typed by the user, by capture.
        self._typed: dict[Path, str] = {}
        self._changed = changed
        self._process: asyncio.subprocess.Process | None = None
        self._stopped = False

    async def run(self, job: Job) -> Outcome | None:
        """Runs an export and waits for it.

        Returns:
            The files written; None if it was stopped.

        Raises:
            ExportError: It failed.
        """
        self._stopped = False
        self._set_running(Running(job.kind))
        try:
            self.outcome = await (self._write_files(job) if job.target is None else self._write_table(job, job.target))
            return self.outcome
        except ExportError:
            if self._stopped:
                return None
            raise
        except OSError as error:
            raise ExportError(f"The {job.kind.title} could not be written: {error.strerror or error}.") from None
        finally:
            await self._end_process()
            self._set_running(None)

    def set_folder(self, source: ExportSource, typed: str = "") -> None:
        """Sets ``folder`` for a capture: to ``typed``, else to what was typed for it before, else to the default."""
        if typed:
            self._typed[source.capture] = typed
        self.folder = self._typed.get(source.capture) or default_folder(source)

    def stop(self) -> None:
        """Stops the export; the child removes partial files."""
        self._stopped = True
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    def _set_running(self, running: Running | None) -> None:
        if running != self.running:
            self.running = running
            self._changed()

    async def _write_files(self, job: Job) -> Outcome:
        process = await self._start(job, asyncio.subprocess.PIPE)
        written: list[tuple[str, int]] = []
        notes: tuple[str, ...] = ()
        errors = asyncio.ensure_future(_last_error_line(process.stderr))
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                message = _parse_message(line)
                done, files = message.get("done"), message.get("written")
                if isinstance(done, int | float):
                    self._set_running(Running(job.kind, min(max(float(done), 0.0), 1.0)))
                elif isinstance(files, list):
                    written = [(str(path), int(size)) for path, size in files]
                    told = message.get("notes")
                    notes = tuple(map(str, told)) if isinstance(told, list) else ()
            error_text = await errors
            if not written:  # complete files are a success, whatever the exit status
                await self._check_exit_status(job, process, error_text)
        finally:
            errors.cancel()
        if not written:
            reason = notes[0] if notes else "the export ended without a message."
            raise ExportError(f"The {job.kind.title} was not written: {clean(reason)}")
        return Outcome(job.kind, tuple(written), notes)

    async def _write_table(self, job: Job, target: Path) -> Outcome:
        process = await self._start(job, asyncio.subprocess.DEVNULL)
        await self._check_exit_status(job, process, await _last_error_line(process.stderr))
        return Outcome(job.kind, ((str(target), target.stat().st_size),))

    async def _start(self, job: Job, output: int) -> asyncio.subprocess.Process:
        if self._stopped:
            raise ExportError("Stopped.")
        self._process = await asyncio.create_subprocess_exec(
            *python_words("tpuprof_tui", *job.arguments),
            stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=asyncio.subprocess.PIPE, limit=MAX_LINE_BYTES,
        )  # fmt: skip
        return self._process

    async def _check_exit_status(self, job: Job, process: asyncio.subprocess.Process, errors: str) -> None:
        status = await process.wait()
        if status in (0, 1):  # success (1: with problems), even if a stop was requested: it finished before
            return
        raise ExportError(errors or f"The {job.kind.title} was not written: the export ended with status {status}.")

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


def _parse_message(line: bytes) -> dict[str, object]:
    """Parses a JSON message of the child; empty if the line is not one."""
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


class ExportRunner:
    """Runs exports of the capture on the screen, one after another; they continue when another screen is shown.

    Args:
        options: Options that the capture was opened with, by name.
        run: Starts a coroutine as a task with a name.
        say: Shows a transient message.
        changed: Called when an export starts, progresses or ends.
        failed: Called with an unexpected error.

    Attributes:
        exporter: Runs the child process and holds the last result.
        states: What became of each output that was asked for, by id: in words, without the progress.
    """

    def __init__(
        self, options: Mapping[str, Any], *, run: Callable[[Coroutine[Any, Any, None], str], object],
        say: Callable[[str], None], changed: Callable[[], None], failed: Callable[[Exception], object],
    ) -> None:  # fmt: skip
        self.exporter = Exporter(changed)
        self.states: dict[str, str] = {}
        self._waiting: list[Job] = []
        self._changed = changed
        self._options = options
        self._run = run
        self._say = say
        self._failed = failed
        self._path = ""
        self._fingerprint = ""

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
        self.exporter.set_folder(source)
        return source

    def start(self, job: Job) -> None:
        """Starts an export, or lets it wait for those before it; one that waits already is replaced."""
        running = self.exporter.running
        if running is None:
            self.states[job.kind.id] = "starts ..."
            self._run(self._export(job), job.kind.id)
            return
        self._waiting = [*(each for each in self._waiting if each.kind.id != job.kind.id), job]
        self.states[job.kind.id] = "waits"
        self._say(f"The {job.kind.title} is written after the {running.kind.title}; X stops both.")
        self._changed()

    async def _export(self, job: Job) -> None:
        """Runs an export, then those that wait."""
        following: Job | None = job
        while following is not None:
            job = following
            try:
                outcome = await self.exporter.run(job)
            except ExportError as error:
                self._end(job, f"failed: {error}", str(error))
            except Exception as error:
                self._end(job, "failed")
                self._failed(error)
            else:
                stopped = f"Stopped: the {job.kind.title} was not written."
                self._end(job, *(("stopped", stopped) if outcome is None else (outcome.summary, outcome.sentence)))
            following = self._waiting.pop(0) if self._waiting else None

    def _end(self, job: Job, state: str, sentence: str = "") -> None:
        self.states[job.kind.id] = state
        if sentence:
            self._say(sentence)
        self._changed()

    def stop(self) -> None:
        """Stops the running export, and those that wait."""
        if self.exporter.running is None:
            self._say("No export is running: x opens the menu.")
        self.end()

    def end(self) -> None:
        """Stops them without a word, to leave."""
        for job in self._waiting:
            self.states[job.kind.id] = "stopped"
        self._waiting = []
        self.exporter.stop()
