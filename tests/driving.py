"""Runs the explorer as a terminal would: it is drawn in full and everything it sends is taken, but nothing shows it."""

from __future__ import annotations

import asyncio
import time
import traceback
import unicodedata
from collections.abc import Awaitable, Callable

from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Size
from textual.keys import REPLACED_KEYS, _character_to_key, _get_unicode_name_from_key
from textual.pilot import Pilot

from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.shell.application import TpuprofApp


class Sent:
    """What was sent at once.

    Attributes:
        cpu: CPU time of the thread that drew it, s.
        wall: When, s.
        bytes: How much.
    """

    def __init__(self, data: str) -> None:
        self.cpu, self.wall, self.bytes = time.thread_time(), time.perf_counter(), len(data.encode())


class QuietTerminal(HeadlessDriver):
    """A terminal nobody looks at.

    Attributes:
        taken: Called with everything that is sent; None: nobody is interested.
    """

    taken: Callable[[str], None] | None = None

    @property
    def is_headless(self) -> bool:
        """No: what is sent is made as for any terminal."""
        return False

    def write(self, data: str) -> None:
        """Takes what is sent."""
        if self.taken is not None:
            self.taken(data)

    def flush(self) -> None:
        """Nothing is kept back."""

    def disable_input(self) -> None:
        """There is none."""


def terminal_of(app: TpuprofApp) -> QuietTerminal:
    """The terminal of an app that runs."""
    assert isinstance(app._driver, QuietTerminal)
    return app._driver


def send_key(app: TpuprofApp, key: str) -> None:
    """A key as a terminal sends it: a name in Textual's spelling, or a character."""
    if len(key) == 1 and not key.isalnum():
        key = _character_to_key(key)
    character: str | None
    try:
        character = unicodedata.lookup(_get_unicode_name_from_key(REPLACED_KEYS.get(key, key)))
    except KeyError:
        character = key if len(key) == 1 else None
    event = events.Key(key, character)
    event.set_sender(app)
    terminal_of(app).send_message(event)


def send_size(app: TpuprofApp, width: int, height: int) -> None:
    """The terminal has another size."""
    size = Size(width, height)
    terminal_of(app)._size = (width, height)
    terminal_of(app).send_message(events.Resize(size, size))


async def ready(app: TpuprofApp, seconds: float = 120.0) -> None:
    """Waits until a capture is on the screen."""
    end = time.monotonic() + seconds
    while not isinstance(app.screen, ExplorerScreen):
        if time.monotonic() > end:
            raise TimeoutError(f"no capture after {seconds:.0f} s, but {type(app.screen).__name__}")
        await asyncio.sleep(0.02)


async def driven(app: TpuprofApp, size: tuple[int, int], script: Callable[[], Awaitable[None]]) -> str:
    """Runs the app with a script; the traceback of what went wrong in either, empty where nothing did."""
    app.driver_class = QuietTerminal
    told: list[str] = []

    async def pilot(_: Pilot[object]) -> None:
        try:
            await script()
        except (Exception, SystemExit):
            told.append(traceback.format_exc())
        finally:
            # whatever the app at hand makes of leaving
            TpuprofApp.exit(app, 0)

    await app.run_async(size=size, auto_pilot=pilot)
    error = app._exception or app.crash
    if error is not None:
        told.append("".join(traceback.format_exception(error)))
    return "\n".join(told)
