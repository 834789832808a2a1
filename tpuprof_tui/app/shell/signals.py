"""Signals that ask to end, and terminals that are closed."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Final

#: How often it is asked whether there still is a terminal, s: nohup keeps away the signal that would say so.
GONE_SECONDS: Final = 1.0


class Signals:
    """Leaves where SIGHUP or SIGTERM ask for it, and where the terminal was closed.

    Args:
        leave: Leaves with an exit status: the terminal lives, and is left as it was found.
        abandon: What is to be done before the process ends, where there is no terminal any more.
    """

    def __init__(self, leave: Callable[[int], None], abandon: Callable[[], None]) -> None:
        self._leave = leave
        self._abandon = abandon
        self._terminal: select.poll | None = None

    def watch(self, every: Callable[[float, Callable[[], None]], object]) -> None:
        """Begins; ``every`` calls a function again and again, after so many seconds."""
        for number in (signal.SIGHUP, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup asked for that
                asyncio.get_running_loop().add_signal_handler(number, self._end, number)
        if sys.__stdin__ and sys.__stdin__.isatty():
            self._terminal = select.poll()
            # that a terminal is closed is told whatever is asked for
            self._terminal.register(sys.__stdin__.fileno(), 0)
            every(GONE_SECONDS, self._end_without_terminal)

    def _is_gone(self) -> bool:
        """Whether the terminal was closed: nothing could be read or shown any more."""
        return self._terminal is None or bool(self._terminal.poll(0))

    def _end_without_terminal(self) -> None:
        """Ends where no signal said that the terminal was closed."""
        if self._is_gone():
            self._end(signal.SIGHUP)

    def _end(self, number: int) -> None:
        if number == signal.SIGTERM or not self._is_gone():
            self._leave(128 + number)
            return
        self._abandon()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
