"""A screen over another."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, ScreenResultType


class OverlayScreen(ModalScreen[ScreenResultType]):
    """A screen over another that closes once."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Closes the screen unless it is closed already: another key would close the screen below."""
        return super().dismiss(result) if self.is_active else AwaitComplete()
