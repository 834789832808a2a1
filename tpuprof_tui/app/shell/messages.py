"""Messages from panes to the screen, and from screens to the application: requests to the owner of a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump
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
