"""What takes long runs in a thread, so that no key waits for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from textual.widget import Widget

from .messages import ThreadFailed

Result = TypeVar("Result")


class Background:
    """Works things out; of one kind only the latest result is taken.

    Args:
        small: Whether the profile is so small that nothing needs a thread.
        start: Runs a function in a thread.
        call: Calls a function in the event loop, from any thread.
        failed: Told, in the event loop, what went wrong in a thread.
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
        """Works something out.

        Args:
            kind: What supersedes what.
            work: Makes the result.
            take: Takes it, in the event loop.
            at_once: Whether it is quick even where the profile is not small.
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
        """Results that are on their way are not taken any more."""
        self._tickets[kind] = self._tickets.get(kind, 0) + 1


def background_of(widget: Widget, group: str, *, small: bool) -> Background:
    """Background work of a widget or screen, in workers of one group; the application tells what goes wrong."""

    def start(work: Callable[[], None]) -> None:
        widget.run_worker(work, group=group, description=group, thread=True, exit_on_error=False)

    return Background(small, start, widget.call_later, lambda error: widget.post_message(ThreadFailed(error)))
