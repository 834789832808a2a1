"""Textual's application with what is overridden of its private parts: what it sends, and how it ends when it fails.

Relies on ``App._display`` (see ``changed_cells``) and ``App._handle_exception``: Textual has no public way to leave the
terminal as it was before a sentence about an unexpected error is written; it prints the traceback of all frames.

What Textual 8.2.8 and Rich 15.0 keep of widgets that are gone is dropped:

- a task lasts as long as what it serves, and its context holds the widget it was begun for and what lay below;
- a widget at rest holds the message it handled last, and with it the widget that sent it;
- scroll bars that are made while their widget closes are begun, but never ended;
- the application holds the widget on which a button was pressed last;
- a cache of all widgets' colours holds the lines that some hundred widgets drew last, Rich's cache of cut texts the
  16,384 cut last; caches of regions fill for as long as sizes and windows change.

For it this relies on ``App._register``, ``_start_widget``, ``_mouse_down_widget`` and ``_registry``, and on the caches
in ``CACHES``. Without it, opening 1,000,000 events and reading them again three to seven times
takes about 400 MiB in place of 245; after four minutes of random keys three replaced explorers, 794 drawn widgets and
70 more tasks are in memory, and it has grown from 103 to 172 MiB, where it stays at 115.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

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

from .changed_cells import ShownCells

if TYPE_CHECKING:
    from rich.console import RenderableType


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

#: Functions that keep what was drawn: whose they are, and their names.
CACHES: Final = (
    (StylesCache, "get_inner_outer"), (Segment, "_split_cells"), (Scalar, "resolve"),
    *((Region, name) for name in ("intersection", "union", "shrink", "grow", "translate", "__contains__")),
)  # fmt: skip


class TerminalApp(App[int]):
    """Sends what has changed alone, frees replaced screens, and leaves the screen before an unexpected error is told.

    Attributes:
        shown_cells: What the terminal shows.
        debug: Unexpected errors go through with their traceback.
        crash: What ended the application unexpectedly; who called ``run`` tells it.
    """

    #: A context that knows no screen; None until there is one.
    _no_screen: Context | None = None

    def __init__(self, *, ansi_color: bool | None = None, debug: bool = False) -> None:
        super().__init__(ansi_color=ansi_color)
        self.shown_cells = ShownCells()
        self.debug_errors = debug
        self.crash: Exception | None = None

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        # all that has segments may be displayed, as Textual's own updates are
        super()._display(screen, self.shown_cells.only_changes(renderable))  # type: ignore[arg-type]

    def _handle_exception(self, error: Exception) -> None:
        if self.debug_errors or self.is_headless:
            super()._handle_exception(error)
        else:
            self.crash = self.crash or error
            self.exit(1, return_code=1)

    def keep_context(self) -> None:
        """Takes the context that knows no screen: called while none has been shown."""
        self._no_screen = copy_context()

    def release_widgets(self) -> None:
        """Drops what Textual and Rich keep of widgets that are gone; to be followed by a collection of garbage."""
        visible_screen_stack.set([])
        for owner, name in CACHES:
            # another release may keep nothing there
            getattr(getattr(owner, name, None), "cache_clear", int)()
        if self._mouse_down_widget not in self._registry:
            self._mouse_down_widget = None
        for widget in list(self._registry):
            # the message it handled last is from now on one that comes from here
            widget.post_message(Prompt().set_sender(self))

    def _without_screen(
        self, function: Callable[Parameters, Result], *arguments: Parameters.args, **settings: Parameters.kwargs
    ) -> Result:
        """Calls what begins tasks: they are to know nothing of the widget that happens to be at work."""
        if self._no_screen is None:
            return function(*arguments, **settings)
        return self._no_screen.copy().run(function, *arguments, **settings)

    def _register(self, parent: DOMNode, *widgets: Widget, **settings: Any) -> list[Widget]:
        return self._without_screen(super()._register, parent, *widgets, **settings)

    def _start_widget(self, parent: Widget, widget: Widget) -> None:
        """Begins a scroll bar, unless its widget has begun to close: that ends only those there are."""
        if parent._closing:
            widget._attach(parent)
            widget._closing = widget._closed = True
        else:
            self._without_screen(super()._start_widget, parent, widget)

    def set_timer(self, *arguments: Any, **settings: Any) -> Timer:
        """As Textual's."""
        return self._without_screen(super().set_timer, *arguments, **settings)

    def set_interval(self, *arguments: Any, **settings: Any) -> Timer:
        """As Textual's."""
        return self._without_screen(super().set_interval, *arguments, **settings)

    def run_worker(self, *arguments: Any, **settings: Any) -> Worker[Any]:
        """As Textual's."""
        return self._without_screen(super().run_worker, *arguments, **settings)
