"""Ends the application on SIGHUP and SIGTERM, and when the terminal is closed."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Final

#: Interval in seconds of polling for a closed terminal: under nohup no SIGHUP announces it.
GONE_SECONDS: Final = 1.0


class Signals:
    """Handlers of SIGHUP and SIGTERM, and a poll for a closed terminal.

    Args:
        leave: Exits with a status and restores the terminal, which is still open.
        abandon: Clean-up before the process is killed, when the terminal is closed.
    """

    def __init__(self, leave: Callable[[int], None], abandon: Callable[[], None]) -> None:
        self._leave = leave
        self._abandon = abandon
        self._terminal: select.poll | None = None

    def watch(self, every: Callable[[float, Callable[[], None]], object]) -> None:
        """Installs the handlers and the poll; ``every(seconds, function)`` starts a periodic timer."""
        for number in (signal.SIGHUP, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup: stays ignored
                asyncio.get_running_loop().add_signal_handler(number, self._end, number)
        if sys.__stdin__ and sys.__stdin__.isatty():
            self._terminal = select.poll()
            # poll reports POLLHUP and POLLERR even for an empty event mask
            self._terminal.register(sys.__stdin__.fileno(), 0)
            every(GONE_SECONDS, self._end_without_terminal)

    def _is_gone(self) -> bool:
        """Whether the terminal was closed, or stdin is not a terminal."""
        return self._terminal is None or bool(self._terminal.poll(0))

    def _end_without_terminal(self) -> None:
        """Ends the application if the terminal was closed without a SIGHUP."""
        if self._is_gone():
            self._end(signal.SIGHUP)

    def _end(self, number: int) -> None:
        if number == signal.SIGTERM or not self._is_gone():
            self._leave(128 + number)
            return
        self._abandon()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
