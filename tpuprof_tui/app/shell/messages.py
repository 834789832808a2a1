"""What panes tell the screen. The screen owns the state; panes only ask for changes of it."""

from __future__ import annotations

from collections.abc import Callable

from textual.message import Message
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from tpuprof_tui.analysis.selecting.state import ViewState


class Change(Message):
    """Asks for another state, as a function of the one that holds when the message arrives.

    A function, not a value: keys pressed faster than the screen repaints must not undo one another.
    """

    def __init__(self, update: Callable[[ViewState], ViewState]) -> None:
        super().__init__()
        self.update = update


class ShowDetail(Message):
    """Asks for the detail of the selected instruction."""


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


class ThreadFailed(Message):
    """Something unexpected went wrong in a thread; the app tells it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def tell_failure(widget: Widget, event: Worker.StateChanged) -> None:
    """Passes the error of a widget's worker on to the app."""
    if event.state is WorkerState.ERROR and event.worker.error is not None:
        widget.post_message(ThreadFailed(event.worker.error))
