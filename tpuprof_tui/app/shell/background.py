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
        widget: In whose event loop results are delivered; an error is posted there as ``ThreadFailed``.
        group: Group of its workers.
        small: Whether the profile is small enough to compute everything synchronously.
    """

    def __init__(self, widget: Widget, group: str, *, small: bool) -> None:
        self.small = small
        self._widget = widget
        self._group = group
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
        if self.small or at_once:
            self.cancel(kind)
            take(work())
            return
        ticket = self._tickets[kind] = self._tickets.get(kind, 0) + 1
        widget = self._widget

        def taken(result: Result) -> None:
            if self._tickets[kind] == ticket:
                take(result)

        def run() -> None:
            if self._tickets[kind] != ticket:
                return
            try:
                widget.call_later(taken, work())
            except Exception as error:
                widget.call_later(partial(widget.post_message, ThreadFailed(error)))

        widget.run_worker(run, group=self._group, description=self._group, thread=True, exit_on_error=False)

    def cancel(self, kind: str) -> None:
        """Discards the pending result of a kind."""
        self._tickets[kind] = self._tickets.get(kind, 0) + 1
