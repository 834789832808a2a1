"""The application's part in letting go: nothing keeps a screen, or the capture on it, once another has replaced it.

Textual 8.2.8 keeps what was on the screen in places that outlive it:

- a task lasts as long as what it serves, and its context holds the widget it was begun for and what lay below;
- a thread of the pool holds the work it did last, and with it the widget that asked for it;
- a widget at rest holds the message it handled last, and with it the widget that sent it;
- scroll bars that are made while their widget closes are begun, but never ended;
- the application holds the widget on which a button was pressed last;
- a cache of all widgets' colours holds the lines that some hundred widgets drew last, and Rich's cache of cut texts
  (15.0) the 16,384 cut last;
- caches of regions and lengths fill for as long as sizes and windows change, and their entries, scattered over all
  memory, keep Python from giving it back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar
from weakref import ref

from rich.segment import Segment
from textual._context import visible_screen_stack
from textual._styles_cache import StylesCache
from textual.app import App
from textual.css.scalar import Scalar
from textual.dom import DOMNode
from textual.geometry import Region
from textual.messages import Prompt
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker

from .garbage_collection import settle, share_memory

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile

#: After a capture has come on the screen, s: what it replaced is gone by then.
SETTLE_SECONDS: Final = 1.0
#: A thread may still work for what was replaced: so often it is looked again, each time after twice as long.
LOOKS: Final = 6
#: Functions that keep what was drawn: whose they are, and their names.
DRAWN: Final = (
    (StylesCache, "get_inner_outer"), (Segment, "_split_cells"), (Scalar, "resolve"),
    *((Region, name) for name in ("intersection", "union", "shrink", "grow", "translate", "__contains__")),
)  # fmt: skip

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Threads(ThreadPoolExecutor):
    """Threads that keep nothing of what they did."""

    def submit(self, fn: Callable[..., Result], /, *arguments: Any, **settings: Any) -> Future[Result]:
        """Has a function called, whose context variables end with it."""
        return super().submit(Context().run, fn, *arguments, **settings)


class ForgettingApp(App[int]):
    """Begins tasks without reference to what is on the screen, and lets go of what was replaced."""

    profile: Profile | None
    #: A context that knows no screen.
    _apart: Context | None = None
    #: Screens that are to be replaced, and readings that have ended, also those that came too late to be shown;
    #: appended to by threads.
    _noted: list[ref[Any]]

    def on_mount(self) -> None:
        """Before there is anything to forget."""
        self._apart = copy_context()
        self._noted = []
        share_memory()
        asyncio.get_running_loop().set_default_executor(Threads(thread_name_prefix="tpuprof"))

    def _call_apart(
        self, function: Callable[Parameters, Result], *arguments: Parameters.args, **settings: Parameters.kwargs
    ) -> Result:
        """Calls what begins tasks: they are to know nothing of the widget that happens to be at work."""
        if self._apart is None:
            return function(*arguments, **settings)
        return self._apart.copy().run(function, *arguments, **settings)

    def _register(self, parent: DOMNode, *widgets: Widget, **settings: Any) -> list[Widget]:
        return self._call_apart(super()._register, parent, *widgets, **settings)

    def _start_widget(self, parent: Widget, widget: Widget) -> None:
        """Begins a scroll bar, unless its widget has begun to close: that ends only those there are."""
        if parent._closing:
            widget._attach(parent)
            widget._closing = widget._closed = True
        else:
            self._call_apart(super()._start_widget, parent, widget)

    def set_timer(self, *arguments: Any, **settings: Any) -> Timer:
        """As Textual's."""
        return self._call_apart(super().set_timer, *arguments, **settings)

    def set_interval(self, *arguments: Any, **settings: Any) -> Timer:
        """As Textual's."""
        return self._call_apart(super().set_interval, *arguments, **settings)

    def run_worker(self, *arguments: Any, **settings: Any) -> Worker[Any]:
        """As Textual's."""
        return self._call_apart(super().run_worker, *arguments, **settings)

    def forget(self, screen: Screen[Any]) -> None:
        """A screen is about to be replaced, and with it what it shows."""
        self._noted.extend(map(ref, _shown_by(screen)))

    def note_reading(self, profile: Profile) -> None:
        """A capture has been read, in a thread; whether it will be shown is not known yet."""
        self._noted.append(ref(profile))

    def settle_soon(self) -> None:
        """Collects what was replaced as soon as the new screen has come to rest."""
        self.set_timer(SETTLE_SECONDS, self._let_go)

    def _let_go(self, looks: int = LOOKS) -> None:
        visible_screen_stack.set([])
        for owner, name in DRAWN:
            # another release may keep nothing there
            getattr(getattr(owner, name, None), "cache_clear", int)()
        if self._mouse_down_widget not in self._registry:
            self._mouse_down_widget = None
        for widget in list(self._registry):
            # the message it handled last is from now on one that comes from here
            widget.post_message(Prompt().set_sender(self))
        self.call_after_refresh(self._settle, looks)

    def _settle(self, looks: int) -> None:
        settle()
        for gone in [noted for noted in self._noted if noted() is None]:
            # threads may append meanwhile
            self._noted.remove(gone)
        shown = {id(self.profile), *(id(each) for screen in self.screen_stack for each in _shown_by(screen))}
        if looks and any(id(noted()) not in shown for noted in self._noted):
            self.set_timer(SETTLE_SECONDS * 2 ** (LOOKS - looks + 1), lambda: self._let_go(looks - 1))


def _shown_by(screen: Screen[Any]) -> tuple[object, ...]:
    """A screen, and what it holds of a capture."""
    session = getattr(screen, "session", None)
    return (screen,) if session is None else (screen, session, session.profile)
