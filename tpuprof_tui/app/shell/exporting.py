"""The application's part in exports: one at a time, told in the bottom line, asked about before leaving."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..drawing.theme import Palette
from ..panes.keybar import KeyBar
from .export_kinds import Job, Source
from .export_process import Exporter, ExportError
from .messages import ThreadFailed
from .screen_release import ForgettingApp

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile


class ExportingApp(ForgettingApp):
    """Runs exports for the screens; they go on whatever screen is shown."""

    palette: Palette
    path: str | None
    options: dict[str, Any]
    profile: Profile | None
    #: What waits for a key, in the bottom line.
    notice: str = ""

    @property
    def fingerprint(self) -> str:
        """How the capture on the screen looked before it was read; empty: nobody looked."""
        return ""

    def _prepare_exports(self) -> None:
        self.exporter = Exporter(self._export_changed)

    def source(self, profile: Profile) -> Source:
        """The open capture for a command line; without a path, but with a reason, where there is nothing on disk."""
        path = self.path or profile.path
        if not path or not os.path.exists(path):
            told = "This profile was not read from a capture on disk: there is nothing to export from."
            gone = f"The capture is gone: {path} is not there any more. R reads it again when it is back."
            return Source("", profile.name, fault=gone if self.fingerprint else told)
        source = Source(
            path, profile.name, self.fingerprint, self.options, profile.path if os.path.exists(profile.path) else ""
        )
        self.exporter.take_folder(source)
        return source

    def start_export(self, job: Job) -> None:
        """Begins an export, unless one is at work."""
        if self.exporter.running is None:
            self.run_worker(self._export(job), name=job.kind.id, group="export", exit_on_error=False)
        else:
            self.say(f"At work: {self.exporter.running.text}. X stops it.")

    async def _export(self, job: Job) -> None:
        try:
            outcome = await self.exporter.run(job)
        except ExportError as error:
            self.say(str(error))
        except Exception as error:
            self.post_message(ThreadFailed(error))
        else:
            self.say(outcome.sentence if outcome is not None else f"Stopped: the {job.kind.title} was not written.")

    def stop_export(self) -> None:
        """Stops the export at work."""
        if self.exporter.running is None:
            self.say("No export is at work: x opens the menu.")
        self.exporter.stop()

    def say(self, text: str) -> None:
        """A passing message in the bottom line, below whatever overlay is open."""
        for bar in self._bars():
            bar.say(text)

    def _export_changed(self) -> None:
        self.show_status()
        # no screen is left while the application closes
        for screen in self.screen_stack[-1:]:
            getattr(screen, "export_changed", lambda: None)()

    def show_status(self) -> None:
        """Shows in the bottom line how far an export is, else what waits for a key."""
        running = self.exporter.running
        for bar in self._bars():
            bar.show_status(running.text if running is not None else self.notice)

    def _bars(self) -> list[KeyBar]:
        """The bottom lines of all screens there are."""
        return [bar for screen in self.screen_stack for bar in screen.query(KeyBar)]

    def leave(self, question: bool = True) -> None:
        """Leaves; asks first where an export is at work."""
        running = self.exporter.running
        if running is None or not question:
            self.exit(0)
            return
        from ..overlays.confirm import ConfirmScreen

        if isinstance(self.screen, ConfirmScreen):
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.exporter.stop()
                self.exit(0)

        text = f"An export is at work: {running.text}. Stop it and leave?"
        self.push_screen(ConfirmScreen(text, self.palette), answered)
