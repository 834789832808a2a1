"""The application's part in keys: each reaches what it was typed for, however fast they come.

A key is passed on when the one before it has done what it does, and when what that opened is there to take keys. Keys
typed while a capture loads wait for it: on the loading screen they would mean nothing, or something else.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from textual import events
from textual.message_pump import MessagePump

from ..settings.actions import LEAVE
from .loading import LoadingScreen
from .screen_release import ForgettingApp

#: Keys that wait for a capture at most.
MOST_WAITING: Final = 100
#: How often it is looked whether a screen takes keys, s.
LOOK_SECONDS: Final = 0.01
#: After this time a key that a closed pane has taken along counts as done, s.
LOST_SECONDS: Final = 1.0


class TypingApp(ForgettingApp):
    """Passes keys on one after another."""

    def _prepare_typing(self) -> None:
        self._typed: deque[events.Key | events.Paste] = deque()
        self._at_work: events.Key | events.Paste | None = None
        self._looking = False

    async def on_event(self, event: events.Event) -> None:
        """Takes what is typed in turn; everything else as it comes. Nothing is taken any more by what is left."""
        typed = isinstance(event, events.Key | events.Paste)
        if self._exit and (typed or isinstance(event, events.InputEvent)):
            return
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
        elif isinstance(event, events.Key) and event.key in LEAVE:
            # the way out waits for nothing
            self._typed.clear()
            await super().on_event(event)
        elif self._waits(event):
            await self._pass_on_typed()

    def _waits(self, event: events.Key | events.Paste) -> bool:
        """Puts what was typed behind what waits; False where it is taken already."""
        loading = self.loading
        if loading is None or loading is not self.screen or not isinstance(event, events.Key):
            self._typed.append(event)
            return True
        meant = loading.meaning(event.key)
        if self._typed and meant == "loading.cancel":
            self._typed.clear()
        elif len(self._typed) < MOST_WAITING and (self._typed or meant != "explorer.reload"):
            # reading again is what is under way
            self._typed.append(event)
        loading.show_waiting(len(self._typed), MOST_WAITING)
        return bool(self._typed)

    @property
    def loading(self) -> LoadingScreen | None:
        """The loading screen while a capture is read, also below an overlay; None at any other time."""
        shown = next((each for each in reversed(self.screen_stack) if not each.is_modal), None)
        return shown if isinstance(shown, LoadingScreen) and not shown.failed else None

    def drop_typed(self) -> None:
        """What was typed for a capture goes with it."""
        self._typed.clear()

    async def _pass_on_typed(self) -> None:
        """Passes on what waits first, unless something is at work or nothing takes it yet."""
        if not self._typed or self._at_work is not None or self._exit:
            return
        if not self.screen_stack or not self.screen.is_mounted:
            self._look_again()
            return
        event, loading = self._typed[0], self.loading
        if loading is not None and loading is self.screen and not loading.takes(event):
            loading.show_waiting(len(self._typed), MOST_WAITING)
            self._look_again()
            return
        self._at_work = self._typed.popleft()
        if loading is not None:
            loading.show_waiting(0, MOST_WAITING)
        target = self.focused or self.screen
        self.set_timer(LOST_SECONDS, lambda: self._done(event))
        await super().on_event(event)
        self._follow(event, target, target)

    def _look_again(self) -> None:
        if not self._looking:
            self._looking = True
            self.set_timer(LOOK_SECONDS, self._look_now)

    async def _look_now(self) -> None:
        self._looking = False
        await self._pass_on_typed()

    def _follow(self, event: events.Key | events.Paste, node: MessagePump | None, again: MessagePump | None) -> None:
        """Follows a key on its way up: behind it in the queue of each pane it comes to.

        Args:
            event: The key.
            node: Where it is.
            again: Where the messages begin that it may have caused, and are followed in turn; None: they are.
        """
        if node is None or node is self or (again is not None and event._stop_propagation):
            if again is None:
                self.call_later(self._done, event)
            else:
                self.call_later(self._follow, event, again, None)
        elif not node.call_later(self._follow, event, node._parent, again):
            # a pane that closes takes no message any more
            self.call_later(self._done, event)

    async def _done(self, event: events.Key | events.Paste) -> None:
        """A key has done what it does."""
        if self._at_work is event:
            self._at_work = None
            await self._pass_on_typed()
