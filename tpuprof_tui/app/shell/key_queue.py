"""Passes on what is typed, one key after another, so that each reaches what it was typed for.

A key is passed on when the one before it has done what it does, and when what that opened is there to take keys. Keys
typed while a capture loads wait for it: on the loading screen they would mean nothing, or something else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol

from textual import events
from textual.dom import DOMNode

from ..settings.actions import LEAVE

if TYPE_CHECKING:
    from textual.timer import Timer

#: What is typed.
Typed = events.Key | events.Paste
#: Keys that wait for a capture at most.
MOST_WAITING: Final = 100
#: How often it is looked whether a screen takes keys, s.
LOOK_SECONDS: Final = 0.01
#: After this time a key that a closed pane has taken along counts as done, s.
LOST_SECONDS: Final = 1.0


class Waiting(Protocol):
    """What keys wait for: the loading screen."""

    def meaning(self, key: str) -> str:
        """The action that a key stands for; empty: none."""

    def takes(self, event: Typed) -> bool:
        """Whether something typed is for what shows meanwhile."""

    def show_waiting(self, count: int, most: int) -> None:
        """Shows how many keys wait."""


class KeyQueue:
    """Keys in the order they were typed.

    Args:
        send: Has a key dealt with.
        target: What the next key goes to; None while nothing takes keys.
        loading: What keys wait for, where it has the keyboard; None: they wait for nothing.
        after: Calls a function after some seconds.
    """

    def __init__(
        self, send: Callable[[Typed], Awaitable[None]], target: Callable[[], DOMNode | None],
        loading: Callable[[], Waiting | None], after: Callable[[float, Callable[[], object]], Timer],
    ) -> None:  # fmt: skip
        self._send = send
        self._target = target
        self._loading = loading
        self._after = after
        self._typed: deque[Typed] = deque()
        self._at_work: Typed | None = None
        self._lost: Timer | None = None
        self._looking = False
        self.closed = False

    def clear(self) -> None:
        """Drops what waits."""
        self._typed.clear()

    def close(self) -> None:
        """Nothing is passed on any more."""
        self.closed = True
        self.clear()

    async def take(self, event: Typed) -> None:
        """Passes on what was typed when its turn comes."""
        if isinstance(event, events.Key) and event.key in LEAVE:
            # the way out waits for nothing
            self.clear()
            await self._send(event)
        elif self._waits(event):
            await self._pass_on()

    def _waits(self, event: Typed) -> bool:
        """Puts what was typed behind what waits; False where it is taken already."""
        loading = self._loading()
        if loading is None or not isinstance(event, events.Key):
            self._typed.append(event)
            return True
        meant = loading.meaning(event.key)
        if self._typed and meant == "loading.cancel":
            self.clear()
        elif len(self._typed) < MOST_WAITING and (self._typed or meant != "explorer.reload"):
            # reading again is what is under way
            self._typed.append(event)
        loading.show_waiting(len(self._typed), MOST_WAITING)
        return bool(self._typed)

    async def _pass_on(self) -> None:
        """Passes on what waits first, unless something is at work or nothing takes it yet."""
        if not self._typed or self._at_work is not None or self.closed:
            return
        target, loading, event = self._target(), self._loading(), self._typed[0]
        if target is None or (loading is not None and not loading.takes(event)):
            if target is not None and loading is not None:
                loading.show_waiting(len(self._typed), MOST_WAITING)
            self._look_again()
            return
        self._at_work = self._typed.popleft()
        if loading is not None:
            loading.show_waiting(0, MOST_WAITING)
        way = list(target.ancestors_with_self)
        self._lost = self._after(LOST_SECONDS, lambda: self._done(event))
        await self._send(event)
        # up to the application, behind the key in the queue of each pane; then behind what it made them send
        await self._follow(event, [*way, *way])

    async def _follow(self, event: Typed, way: list[DOMNode]) -> None:
        """Follows a key through the queues of some nodes, and counts it as done behind it in the last."""
        for place, node in enumerate(way):
            # a pane that closes takes no message any more
            if node.call_later(self._follow, event, way[place + 1 :]):
                return
        await self._done(event)

    def _look_again(self) -> None:
        if not self._looking:
            self._looking = True
            self._after(LOOK_SECONDS, self._look)

    async def _look(self) -> None:
        self._looking = False
        await self._pass_on()

    async def _done(self, event: Typed) -> None:
        """A key has done what it does."""
        if self._at_work is event:
            self._at_work = None
            if self._lost is not None:
                self._lost.stop()
            await self._pass_on()
