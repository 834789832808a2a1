"""What opens over the explorer."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

from ..drawing.compositing import DrawnScreen

Result = TypeVar("Result")


class Overlay(ModalScreen[Result], DrawnScreen[Result]):
    """A screen over another one, which closes once."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Closes; keys that come faster than that are passed over: another would close what lies below."""
        return super().dismiss(result) if self.is_active else AwaitComplete()
