"""The base of screens that open over the explorer."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

from ..terminal.line_compositor import DrawnScreen

Result = TypeVar("Result")


class Overlay(ModalScreen[Result], DrawnScreen[Result]):
    """A screen over another one; closing it twice closes it once."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Closes the screen unless it is closed already: another key would close the screen below."""
        return super().dismiss(result) if self.is_active else AwaitComplete()
