"""Queue of typed keys: delivers one at a time, so that each reaches the widget it was typed for.

A key is delivered after the previous one has been handled completely and the screen that it opened accepts keys. Keys
typed while a capture loads wait for it: on the loading screen they would have no meaning, or another one.
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

#: Keyboard input.
Typed = events.Key | events.Paste
#: Most keys that wait for a capture; further ones are dropped.
MOST_WAITING: Final = 100
#: Polling interval in seconds until a screen accepts keys.
LOOK_SECONDS: Final = 0.01
#: Timeout in seconds after which a key counts as handled: its pane may have closed with the key in its queue.
LOST_SECONDS: Final = 1.0


class Waiting(Protocol):
    """Interface of the screen during which keys wait (the loading screen)."""

    def meaning(self, key: str) -> str:
        """Id of the action bound to a key; empty: none."""

    def takes(self, event: Typed) -> bool:
        """Whether the screen handles this input itself."""

    def show_waiting(self, count: int, most: int) -> None:
        """Shows the number of waiting keys; ``most`` is the limit."""


class KeyQueue:
    """Delivers input events in order, one at a time.

    Args:
        send: Dispatches an input event.
        target: Returns the node that gets the next key; None while no screen accepts keys.
        loading: Returns the loading screen while it has the keyboard; None: keys need not wait.
        after: Starts a one-shot timer, in seconds.
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
        """Drops the waiting input."""
        self._typed.clear()

    def close(self) -> None:
        """Drops the waiting input and delivers nothing from now on."""
        self.closed = True
        self.clear()

    async def take(self, event: Typed) -> None:
        """Queues an input event, and delivers it when its turn comes."""
        if isinstance(event, events.Key) and event.key in LEAVE:
            # keys that leave the program never wait
            self.clear()
            await self._send(event)
        elif self._waits(event):
            await self._pass_on()

    def _waits(self, event: Typed) -> bool:
        """Appends an input event to the queue; returns whether the queue has anything to deliver."""
        loading = self._loading()
        if loading is None or not isinstance(event, events.Key):
            self._typed.append(event)
            return True
        meant = loading.meaning(event.key)
        if self._typed and meant == "loading.cancel":
            self.clear()
        elif len(self._typed) < MOST_WAITING and (self._typed or meant != "explorer.reload"):
            # a reload typed first is dropped: the capture is being read already
            self._typed.append(event)
        loading.show_waiting(len(self._typed), MOST_WAITING)
        return bool(self._typed)

    async def _pass_on(self) -> None:
        """Delivers the first event, unless one is being handled or nothing accepts it yet."""
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
        # once up the ancestors, behind the key in each message queue; once more, behind the messages that it caused
        await self._follow(event, [*way, *way])

    async def _follow(self, event: Typed, way: list[DOMNode]) -> None:
        """Passes a callback through the message queues of the nodes; after the last, the key is handled."""
        for place, node in enumerate(way):
            # call_later returns False for a closing pane: skip it
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
        """Marks the event as handled and delivers the next one."""
        if self._at_work is event:
            self._at_work = None
            if self._lost is not None:
                self._lost.stop()
            await self._pass_on()
