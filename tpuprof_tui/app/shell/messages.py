"""What panes tell the screen, and screens the application. Who owns a state changes it; others only ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump
from textual.worker import Worker, WorkerState

from tpuprof_tui.analysis.selecting.state import DisplayState, Scope


class Change(Message):
    """Asks for another state, as a function of the one that holds when the message arrives.

    A function, not a value: keys pressed faster than the screen repaints must not undo one another.
    """

    def __init__(self, update: Callable[[DisplayState], DisplayState]) -> None:
        super().__init__()
        self.update = update


class ShowDetail(Message):
    """Asks for the detail of the selected instruction."""


class Narrow(Message):
    """Asks for one condition more in the filter of all panes, for another step, or for a scope alone."""

    def __init__(self, condition: str, step: int | None = None, scope: Scope | None = None) -> None:
        super().__init__()
        self.condition = condition
        self.step = step
        self.scope = scope


class Retitled(Message):
    """What a pane holds has changed, and so its title."""


class FooterWord(Message):
    """What a key does where the cursor is: the bottom line says ``word`` in place of ``usual``; empty: nothing."""

    def __init__(self, usual: str, word: str) -> None:
        super().__init__()
        self.usual = usual
        self.word = word


class ChooseStep(Message):
    """Asks for a step: all panes are then about what belongs to it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Say(Message):
    """Asks for a passing message in the bottom line."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class CopyText(Message):
    """Asks for a text to be copied and shown."""

    def __init__(self, text: str, what: str) -> None:
        super().__init__()
        self.text = text
        self.what = what


class AskCapture(Message):
    """Asks the application for another capture, or for this one in another way, by one of these words.

    ``open`` (a path): looked at as the one on the screen is. ``switch`` (a number): so many places after this one.
    ``reload``: read again. ``list``: one is to be chosen. ``return``: the one that was on the screen last.
    ``swap``: the base of a comparison, compared with this one. ``leave``: this one, compared with nothing.
    """

    def __init__(self, what: str, *arguments: Any) -> None:
        super().__init__()
        self.what = what
        self.arguments = arguments


class ExportChanged(Message):
    """An export has begun, got further or ended; for the screen in front."""


class ThreadFailed(Message):
    """Something unexpected went wrong in a thread; the app tells it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def tell_failure(node: MessagePump, event: Worker.StateChanged) -> None:
    """Passes the error of a worker on to the app, from the widget that began it."""
    if event.state is WorkerState.ERROR and event.worker.error is not None:
        node.post_message(ThreadFailed(event.worker.error))
