"""Exports for the screens: one at a time, told in the bottom line."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from .export_kinds import Job, Source
from .export_process import Exporter, ExportError

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile


class ExportRunner:
    """Runs exports of the capture on the screen; they go on whatever is shown then.

    Args:
        options: Those that the capture was opened with, by name.
        run: Begins a coroutine that goes on by itself, under a name.
        say: Shows a passing message.
        changed: Called when an export has begun, got further or ended.
        failed: Told of errors that nobody expected.

    Attributes:
        exporter: The child process, and what it wrote last.
    """

    def __init__(
        self, options: Mapping[str, Any], *, run: Callable[[Coroutine[Any, Any, None], str], object],
        say: Callable[[str], None], changed: Callable[[], None], failed: Callable[[Exception], object],
    ) -> None:  # fmt: skip
        self.exporter = Exporter(changed)
        self._options = options
        self._run = run
        self._say = say
        self._failed = failed
        self._path = ""
        self._fingerprint = ""

    def show(self, path: str, fingerprint: str) -> None:
        """Takes the capture on the screen: its path, empty without one, and how it looked before it was read."""
        self._path, self._fingerprint = path, fingerprint

    def source(self, profile: Profile) -> Source:
        """The open capture for a command line; without a path, but with a reason, where there is nothing on disk."""
        path = self._path or profile.path
        if not path or not os.path.exists(path):
            told = "This profile was not read from a capture on disk: there is nothing to export from."
            gone = f"The capture is gone: {path} is not there any more. R reads it again when it is back."
            return Source("", profile.name, fault=gone if self._fingerprint else told)
        source = Source(
            path, profile.name, self._fingerprint, self._options, profile.path if os.path.exists(profile.path) else ""
        )
        self.exporter.take_folder(source)
        return source

    def start(self, job: Job) -> None:
        """Begins an export, unless one is at work."""
        if self.exporter.running is None:
            self._run(self._export(job), job.kind.id)
        else:
            self._say(f"At work: {self.exporter.running.text}. X stops it.")

    async def _export(self, job: Job) -> None:
        try:
            outcome = await self.exporter.run(job)
        except ExportError as error:
            self._say(str(error))
        except Exception as error:
            self._failed(error)
        else:
            self._say(outcome.sentence if outcome is not None else f"Stopped: the {job.kind.title} was not written.")

    def stop(self) -> None:
        """Stops the export at work."""
        if self.exporter.running is None:
            self._say("No export is at work: x opens the menu.")
        self.exporter.stop()
