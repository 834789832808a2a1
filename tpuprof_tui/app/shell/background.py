"""Runs long computations in worker threads, so that no key waits for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from textual.widget import Widget

from .messages import ThreadFailed

Result = TypeVar("Result")


class Background:
    """Runs computations in the background; of each kind only the result of the latest call is delivered.

    Args:
        small: Whether the profile is small enough to compute everything synchronously.
        start: Runs a function in a worker thread.
        call: Schedules a function in the event loop, from any thread.
        failed: Called in the event loop with an error from a thread.
    """

    def __init__(
        self,
        small: bool,
        start: Callable[[Callable[[], None]], object],
        call: Callable[[Callable[[], object]], object],
        failed: Callable[[Exception], object],
    ) -> None:
        self.small = small
        self._start = start
        self._call = call
        self._failed = failed
        self._tickets: dict[str, int] = {}

    def compute(
        self, kind: str, work: Callable[[], Result], take: Callable[[Result], None], *, at_once: bool = False
    ) -> None:
        """Computes a result and delivers it, unless superseded meanwhile.

        Args:
            kind: A later call of the same kind supersedes this one.
            work: Computes the result; in a worker thread unless it is quick.
            take: Called with the result in the event loop.
            at_once: Whether ``work`` is quick whatever the size of the profile, and so runs synchronously.
        """
        ticket = self._tickets[kind] = self._tickets.get(kind, 0) + 1

        def taken(result: Result) -> None:
            if self._tickets[kind] == ticket:
                take(result)

        def run() -> None:
            if self._tickets[kind] != ticket:
                return
            try:
                result = work()
            except Exception as error:
                self._call(partial(self._failed, error))
            else:
                self._call(partial(taken, result))

        if self.small or at_once:
            take(work())
        else:
            self._start(run)

    def cancel(self, kind: str) -> None:
        """Discards the pending result of a kind."""
        self._tickets[kind] = self._tickets.get(kind, 0) + 1


def background_of(widget: Widget, group: str, *, small: bool) -> Background:
    """Background of a widget or screen, with workers of one group; errors are posted as ``ThreadFailed``."""

    def start(work: Callable[[], None]) -> None:
        widget.run_worker(work, group=group, description=group, thread=True, exit_on_error=False)

    return Background(small, start, widget.call_later, lambda error: widget.post_message(ThreadFailed(error)))
