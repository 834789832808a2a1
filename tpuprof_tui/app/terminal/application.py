"""Base application: overrides of Textual's App for differential output, memory release and error exit.

Relies on ``App._display`` (see ``changed_cells``) and ``App._handle_exception``: Textual has no public way to restore
the terminal before a one-sentence message about an unexpected error; it prints the traceback of all frames.

References that Textual 8.2.8 and Rich 15.0 keep to removed widgets are dropped:

- the context of a long-lived task refers to the widget that was active when it was started, and to the screens below;
- an idle widget refers to the last message that it handled, and so to the sender;
- scroll bars that are created while their widget closes are started, but never stopped;
- the application refers to the widget on which a mouse button was last pressed;
- ``StylesCache`` caches the last lines of some hundred widgets, Rich the last 16,384 split texts; the caches of
  regions grow for as long as sizes and windows change.

This relies on ``App._register``, ``_start_widget``, ``_mouse_down_widget`` and ``_registry``, and on the caches in
``CACHES``. Without it, opening 1,000,000 events and reloading them three to seven times takes about 400 MiB instead of
245 MiB; after four minutes of random keys three replaced explorers, 794 drawn widgets and 70 more tasks are still in
memory, and it has grown from 103 to 172 MiB instead of 115 MiB.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar
from weakref import WeakSet

from rich.segment import Segment
from textual import events, work
from textual._context import visible_screen_stack
from textual._styles_cache import StylesCache
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.css.query import NoMatches
from textual.css.scalar import Scalar
from textual.dom import DOMNode
from textual.geometry import Region
from textual.messages import Prompt
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker

from ..shell import process
from .changed_cells import TerminalCells

if TYPE_CHECKING:
    from rich.console import RenderableType

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

#: Delays in seconds of garbage collection, the first after a capture is shown: when the previous screen is removed, and
#: for a replaced capture again when worker threads have released it. The last is repeated until they have.
COLLECT_SECONDS: Final = (1.0, 10.0)
#: Cached functions that retain drawn lines or regions: owner class and name.
CACHES: Final = (
    (StylesCache, "get_inner_outer"), (Segment, "_split_cells"), (Scalar, "resolve"),
    *((Region, name) for name in ("intersection", "union", "shrink", "grow", "translate", "__contains__")),
)  # fmt: skip


class OnceScreen(Screen[Any]):
    """A screen that is dismissed once: a second key that comes before it is gone would close the screen below."""

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Closes the screen unless it is closed already."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class TerminalApp(App[int]):
    """Sends only changed cells, frees replaced screens, and restores the terminal before it reports an error.

    Attributes:
        terminal_cells: The cells that the terminal currently shows.
        debug_errors: Whether unexpected errors propagate with their traceback.
        crash: The unexpected error that ended the application, to be reported by the caller of ``run``.
    """

    #: Context without an active screen; None until ``keep_context`` is called.
    _no_screen: Context | None = None

    def __init__(self, *, ansi_color: bool | None = None, debug: bool = False) -> None:
        super().__init__(ansi_color=ansi_color)
        self.terminal_cells = TerminalCells()
        self.debug_errors = debug
        self.crash: Exception | None = None
        #: Replaced screens that are still in memory.
        self._replaced = WeakSet[Screen[Any]]()
        self._collect_timer: Timer | None = None

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        # any object with segments may be displayed, as Textual's own updates are
        super()._display(screen, self.terminal_cells.wrap_update(renderable))  # type: ignore[arg-type]

    def _handle_exception(self, error: Exception) -> None:
        if self.debug_errors or self.is_headless:
            super()._handle_exception(error)
        else:
            self.crash = self.crash or error
            self.exit(1, return_code=1)

    def keep_context(self) -> None:
        """Saves the current context, to start tasks in; to be called before a screen is shown."""
        self._no_screen = copy_context()

    def replace_screens(self, screen: Screen[Any]) -> None:
        """Replaces all screens by one."""
        self._replaced.update(self.screen_stack[1:])
        # Textual cannot switch the first screen: it stays at the bottom of the stack
        while len(self.screen_stack) > 2:
            self.pop_screen()
        if len(self.screen_stack) > 1:
            self.switch_screen(screen)
        else:
            self.push_screen(screen)

    def collect_later(self, delays: Sequence[float] = ()) -> None:
        """Frees replaced screens after each of some delays in seconds; without any after ``COLLECT_SECONDS``."""
        if self._collect_timer is not None:
            self._collect_timer.stop()
        first, *others = delays or COLLECT_SECONDS
        self._collect_timer = self.set_timer(first, partial(self._collect, others))

    def _collect(self, delays: Sequence[float]) -> None:
        self.release_widgets()
        self.call_after_refresh(self._collect_garbage, delays)

    def _collect_garbage(self, delays: Sequence[float]) -> None:
        process.collect_and_freeze()
        if self._replaced:
            # what a thread still refers to was frozen with the rest, and would stay when the thread has ended
            self.collect_later(delays or COLLECT_SECONDS[-1:])

    def release_widgets(self) -> None:
        """Drops the references that Textual and Rich keep to removed widgets; run the garbage collector afterwards."""
        visible_screen_stack.set([])
        for owner, name in CACHES:
            # other versions of Textual may have no cache here
            getattr(getattr(owner, name, None), "cache_clear", int)()
        if self._mouse_down_widget not in self._registry:
            self._mouse_down_widget = None
        for widget in list(self._registry):
            # replaces the last handled message by one whose sender is the app
            widget.post_message(Prompt().set_sender(self))

    def _without_screen(
        self, function: Callable[Parameters, Result], *arguments: Parameters.args, **settings: Parameters.kwargs
    ) -> Result:
        """Calls a function that starts tasks in a context that does not refer to the active widget."""
        if self._no_screen is None:
            return function(*arguments, **settings)
        return self._no_screen.copy().run(function, *arguments, **settings)

    def _register(self, parent: DOMNode, *widgets: Widget, **settings: Any) -> list[Widget]:
        return self._without_screen(super()._register, parent, *widgets, **settings)

    def _start_widget(self, parent: Widget, widget: Widget) -> None:
        """Starts a scroll bar, unless its widget is closing: closing stops only the scroll bars that exist already."""
        if parent._closing:
            widget._attach(parent)
            widget._closing = widget._closed = True
        else:
            self._without_screen(super()._start_widget, parent, widget)

    def set_timer(self, *arguments: Any, **settings: Any) -> Timer:
        """Overrides ``App.set_timer``: starts the task without the active screen in its context."""
        return self._without_screen(super().set_timer, *arguments, **settings)

    def set_interval(self, *arguments: Any, **settings: Any) -> Timer:
        """Overrides ``App.set_interval``: see ``set_timer``."""
        return self._without_screen(super().set_interval, *arguments, **settings)

    def run_worker(self, *arguments: Any, **settings: Any) -> Worker[Any]:
        """Overrides ``App.run_worker``: see ``set_timer``."""
        return self._without_screen(super().run_worker, *arguments, **settings)


#: Textual's implementation without the ``work`` decorator, so that it can be awaited.
_gather: Callable[[CommandPalette, str], Awaitable[None]] = CommandPalette._gather_commands.__wrapped__  # type: ignore[attr-defined]


class Options(CommandList, can_focus=False):
    """The list of matching commands."""

    def _on_click(self, event: events.Click) -> None:  # type: ignore[override]
        """Ignores a click on an option that is no longer in the list: Textual 8.2.8 looks it up without a check."""
        option = event.style.meta.get("option")
        if option is not None and option >= self.option_count:
            event.prevent_default()


class Commands(CommandPalette, OnceScreen):
    """Command palette of all actions: Textual's own, hardened against keys that arrive while it opens or closes.

    Without the overrides such a key raises in Textual 8.2.8 and ends the explorer. Relies on ``OptionList._on_click``,
    ``CommandPalette._action_command_list`` and ``CommandPalette._gather_commands``.
    """

    def compose(self) -> ComposeResult:
        """Yields Textual's widgets, with ``Options`` as the list."""
        for widget in super().compose():
            yield Options() if isinstance(widget, CommandList) else widget

    def _action_command_list(self, action: str) -> None:
        """Ignores a page key that arrives before the list is laid out: Textual 8.2.8 looks its lines up."""
        with suppress(KeyError, IndexError, NoMatches):
            super()._action_command_list(action)

    def set_timer(self, delay: float, callback: Any = None, **settings: Any) -> Timer:
        """Overrides ``set_timer``: a callback is ignored if the list has been removed before the timer fires."""

        def ended() -> Any:
            with suppress(NoMatches):
                return callback()

        return super().set_timer(delay, ended if callback is not None else None, **settings)

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        """Lists the matching commands; ignored if the palette closes meanwhile and its list is removed."""
        with suppress(NoMatches):
            await _gather(self, search_value)
