"""The process: signals and a closed terminal that end it, garbage collection, and malloc.

A full collection visits every object. With the screens' modules and a capture's tables that takes 70 ms and more, which
the user notices as an occasional slow key. Long-lived objects are therefore frozen out of later collections.

glibc has up to eight malloc arenas per core, used by different threads, and memory freed in one is not reused by
another: after many computations each holds some megabytes of unused memory.
"""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from .application import TpuprofApp

Result = TypeVar("Result")

#: Threshold of generation 0, in new objects; a frame creates some thousand and keeps few.
THRESHOLD: Final = 10_000
#: The threshold until the first capture is on the screen: modules and the tables of a small capture are not garbage.
STARTUP_THRESHOLD: Final = 250_000
#: M_ARENA_MAX of glibc's mallopt: the maximum number of arenas.
_M_ARENA_MAX: Final = -8


class ContextFreePool(ThreadPoolExecutor):
    """Thread pool whose idle threads do not keep the context of their last call, and so its widgets, alive."""

    def submit(self, fn: Callable[..., Result], /, *arguments: Any, **settings: Any) -> Future[Result]:
        """Schedules a call that runs in an empty context of its own."""
        return super().submit(Context().run, fn, *arguments, **settings)


def set_gc_threshold(objects: int = THRESHOLD) -> None:
    """Sets the threshold of generation 0, in new objects."""
    gc.set_threshold(objects, *gc.get_threshold()[1:])


def collect_and_freeze() -> None:
    """Runs a full collection, freezes all remaining objects, and returns free memory to the system."""
    unfreeze()
    gc.collect()
    gc.freeze()
    set_gc_threshold()
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


def unfreeze() -> None:
    """Unfreezes all objects, before another capture replaces this one."""
    gc.unfreeze()


def use_single_malloc_arena() -> bool:
    """Makes all threads use one malloc arena; returns whether the C library supports it."""
    choose = getattr(_c_library(), "mallopt", None)
    return choose is not None and bool(choose(_M_ARENA_MAX, 1))


def _c_library() -> Any:
    """The C library through ctypes; None if it cannot be loaded."""
    # imported here to keep start-up short; numpy imports ctypes anyway
    import ctypes

    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        return None


#: Interval in seconds of polling for a closed terminal: under nohup no SIGHUP announces it.
GONE_SECONDS: Final = 1.0


class Signals:
    """Handlers of SIGHUP and SIGTERM, which end the application, and a poll for a closed terminal."""

    def __init__(self, app: TpuprofApp) -> None:
        self._app = app
        self._terminal: select.poll | None = None

    def watch(self) -> None:
        """Installs the handlers and the poll."""
        for number in (signal.SIGHUP, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup: stays ignored
                asyncio.get_running_loop().add_signal_handler(number, self._end, number)
        if sys.__stdin__ and sys.__stdin__.isatty():
            self._terminal = select.poll()
            # poll reports POLLHUP and POLLERR even for an empty event mask
            self._terminal.register(sys.__stdin__.fileno(), 0)
            self._app.set_interval(GONE_SECONDS, lambda: self._end(signal.SIGHUP) if self._is_gone() else None)

    def _is_gone(self) -> bool:
        """Whether the terminal was closed, or stdin is not a terminal."""
        return self._terminal is None or bool(self._terminal.poll(0))

    def _end(self, number: int) -> None:
        self._app.exports.end()
        if number == signal.SIGTERM or not self._is_gone():
            self._app.exit(return_code=128 + number)
            return
        self._app.save_state()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
