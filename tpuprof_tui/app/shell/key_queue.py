"""Queue of typed keys: delivers one at a time, so that each reaches the widget it was typed for.

A key is delivered after the previous one has been handled completely and the screen that it opened accepts keys. Keys
typed while a capture loads wait for it: on the loading screen they would have no meaning, or another one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from textual import events
from textual.dom import DOMNode

from ..settings.actions import EXIT_KEYS

if TYPE_CHECKING:
    from textual.timer import Timer

    from .application import TpuprofApp
    from .loading import LoadingScreen

#: Keyboard input.
KeyboardEvent = events.Key | events.Paste
#: Most keys that wait for a capture; further ones are dropped.
MAX_WAITING: Final = 100
#: Polling interval in seconds until a screen accepts keys.
POLL_SECONDS: Final = 0.01
#: Timeout in seconds after which a key counts as handled: its pane may have closed with the key in its queue.
TIMEOUT_SECONDS: Final = 1.0


class KeyQueue:
    """Delivers input events in order, one at a time; ``send`` dispatches one."""

    def __init__(self, app: TpuprofApp, send: Callable[[KeyboardEvent], Awaitable[None]]) -> None:
        self._app = app
        self._send = send
        self._queue: deque[KeyboardEvent] = deque()
        self._current: KeyboardEvent | None = None
        self._timeout: Timer | None = None
        self._retry_pending = False
        self.closed = False

    def _target(self) -> DOMNode | None:
        """Node that gets the next key; None while no screen accepts keys."""
        app = self._app
        return (app.focused or app.screen) if app.screen_stack and app.screen.is_mounted else None

    def _loading(self) -> LoadingScreen | None:
        """The loading screen while a capture is read and no overlay covers it; None: keys need not wait."""
        loading = self._app.loading
        return loading if loading is not None and loading is self._app.screen else None

    def clear(self) -> None:
        """Drops the waiting input."""
        self._queue.clear()

    def close(self) -> None:
        """Drops the waiting input and delivers nothing from now on."""
        self.closed = True
        self.clear()

    async def take(self, event: KeyboardEvent) -> None:
        """Queues an input event, and delivers it when its turn comes."""
        if isinstance(event, events.Key) and event.key in EXIT_KEYS:
            # keys that leave the program never wait
            self.clear()
            await self._send(event)
        elif self._enqueue(event):
            await self._deliver_next()

    def _enqueue(self, event: KeyboardEvent) -> bool:
        """Appends an input event to the queue; returns whether the queue has anything to deliver."""
        loading = self._loading()
        if loading is None or not isinstance(event, events.Key):
            self._queue.append(event)
            return True
        action_id = loading.meaning(event.key)
        if self._queue and action_id == "loading.cancel":
            self.clear()
        elif len(self._queue) < MAX_WAITING and (self._queue or action_id != "explorer.reload"):
            # a reload typed first is dropped: the capture is being read already
            self._queue.append(event)
        loading.show_waiting(len(self._queue), MAX_WAITING)
        return bool(self._queue)

    async def _deliver_next(self) -> None:
        """Delivers the first event, unless one is being handled or nothing accepts it yet."""
        if not self._queue or self._current is not None or self.closed:
            return
        target, loading, event = self._target(), self._loading(), self._queue[0]
        if target is None or (loading is not None and not loading.takes(event)):
            if target is not None and loading is not None:
                loading.show_waiting(len(self._queue), MAX_WAITING)
            if not self._retry_pending:
                self._retry_pending = True
                self._app.set_timer(POLL_SECONDS, self._retry)
            return
        self._current = self._queue.popleft()
        if loading is not None:
            loading.show_waiting(0, MAX_WAITING)
        path = list(target.ancestors_with_self)
        self._timeout = self._app.set_timer(TIMEOUT_SECONDS, lambda: self._done(event))
        await self._send(event)
        # once up the ancestors, behind the key in each message queue; once more, behind the messages that it caused
        await self._run_behind(event, [*path, *path])

    async def _run_behind(self, event: KeyboardEvent, path: list[DOMNode]) -> None:
        """Passes a callback through the message queues of the nodes; after the last, the key is handled."""
        for index, node in enumerate(path):
            # call_later returns False for a closing pane: skip it
            if node.call_later(self._run_behind, event, path[index + 1 :]):
                return
        await self._done(event)

    async def _retry(self) -> None:
        self._retry_pending = False
        await self._deliver_next()

    async def _done(self, event: KeyboardEvent) -> None:
        """Marks the event as handled and delivers the next one."""
        if self._current is event:
            self._current = None
            if self._timeout is not None:
                self._timeout.stop()
            await self._deliver_next()
