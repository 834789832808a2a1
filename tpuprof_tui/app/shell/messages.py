"""Messages from panes to the screen and from screens to the application, and computations in the background."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from textual.message import Message
from textual.message_pump import MessagePump
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from tpuprof_tui.analysis.selecting.state import DisplayState


class ChangeState(Message):
    """Requests a state change, as a function of the state at the time the message is handled.

    A function, not a value: keys pressed faster than the screen repaints must not undo one another.
    """

    def __init__(self, update: Callable[[DisplayState], DisplayState]) -> None:
        super().__init__()
        self.update = update


class Request(Message):
    """Requests something of the explorer, by its name in ``ExplorerScreen.requests``."""

    def __init__(self, name: str, *arguments: Any) -> None:
        super().__init__()
        self.name = name
        self.arguments = arguments


class ShowMessage(Message):
    """Requests a transient message in the bottom line."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class CopyText(Message):
    """Requests to copy a text to the clipboard and show it; ``label`` names it."""

    def __init__(self, text: str, label: str) -> None:
        super().__init__()
        self.text = text
        self.label = label


class CaptureRequest(Message):
    """Requests to open or list captures; ``action`` is a method of ``Opening``, called with ``arguments``."""

    def __init__(self, action: str, *arguments: Any) -> None:
        super().__init__()
        self.action = action
        self.arguments = arguments


class ExportChanged(Message):
    """Posted to the active screen when an export starts, progresses or ends."""


class ThreadFailed(Message):
    """Posted for an unexpected error in a worker thread; the application reports it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def post_worker_failure(node: MessagePump, event: Worker.StateChanged) -> None:
    """Posts the error of a failed worker as ``ThreadFailed``; called by the widget that started it."""
    if event.state is WorkerState.ERROR and event.worker.error is not None:
        node.post_message(ThreadFailed(event.worker.error))


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
