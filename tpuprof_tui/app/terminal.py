"""Base application: overrides of private parts of Textual, for differential output, memory release and error exit.

Textual sends every repainted region in full, each segment with its complete style. Most repainted cells look as before
(a pane that gets the focus changes only its border), and neighbouring segments mostly share a colour. Sending only what
differs relies on ``App._display``, ``ChopsUpdate`` and ``LayoutUpdate``. Without it a key sends 40.8 kB instead of
5.9 kB (mean) at the same CPU time: over a link of 300 kB/s 136 ms instead of 20 ms.

``App._handle_exception``: Textual has no public way to restore the terminal before a one-sentence message about an
unexpected error; it prints the traceback of all frames.

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

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar
from weakref import WeakSet

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from textual import events, work
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual._context import visible_screen_stack
from textual._styles_cache import StylesCache
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.css.query import NoMatches
from textual.css.scalar import Scalar
from textual.dom import DOMNode
from textual.geometry import Region, Size
from textual.messages import Prompt
from textual.screen import Screen
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker

from .shell import process

if TYPE_CHECKING:
    from rich.console import RenderableType

#: A drawn piece of a line: y, x of the first cell, strip.
LinePiece = tuple[int, int, Strip]
#: Matches texts of one-cell characters: ASCII, lines, blocks and shapes. Other segments are compared as a whole.
_NARROW: Final = re.compile(r"[ -~\u2500-\u25ff]*").fullmatch
#: Attributes, foreground and background of a style, as SGR (select graphic rendition) parameters.
SgrParameters = tuple[str, str, str]
#: What a cell holds that the terminal may show anything in; no name has it.
_UNKNOWN: Final = "\ue000"
_NO_PARAMETERS: Final[SgrParameters] = ("", "", "")
#: SGR parameters that switch an attribute on.
_ATTRIBUTES: Final = {
    "bold": "1", "dim": "2", "italic": "3", "underline": "4", "blink": "5", "blink2": "6", "reverse": "7",
    "conceal": "8", "strike": "9", "underline2": "21", "frame": "51", "encircle": "52", "overline": "53",
}  # fmt: skip


class TerminalCells:
    """The lines that the terminal shows, as far as known.

    Updated only when an update is rendered to text, so that an update that is never sent has no effect.
    """

    def __init__(self) -> None:
        self._lines: dict[int, Strip] = {}
        self._size = Size(0, 0)
        self.encoder = SgrEncoder()

    def forget(self) -> None:
        """Forgets all cells: after a resize, or after another program used the terminal."""
        self._lines.clear()

    def wrap_update(self, update: RenderableType | None) -> RenderableType | Difference | None:
        """Wraps an update of the screen in a ``Difference``; after any other output all cells are unknown."""
        if isinstance(update, (ChopsUpdate, LayoutUpdate)):
            return Difference(update, self)
        if update is not None:
            self.forget()
        return update

    def resized(self, size: Size) -> None:
        """Forgets all cells if the size of the screen changed: output for the old size may be anywhere."""
        if size != self._size:
            self._size = size
            self.forget()

    def take_changes(self, pieces: Iterable[LinePiece]) -> list[LinePiece]:
        """Returns the parts of ``pieces`` that the terminal does not show yet, and records them as shown."""
        found: list[LinePiece] = []
        width = self._size.width
        for y, x, strip in pieces:
            line, end = self._lines.get(y), x + strip.cell_length
            if line is None:
                line = Strip([Segment(_UNKNOWN * width)], width)
            span = changed_span(line.crop(x, end), strip)
            if span is None:
                continue
            whole = (x, end) == (0, width)
            self._lines[y] = strip if whole else Strip.join([line.crop(0, x), strip, line.crop(end, width)])
            found.append((y, x + span[0], strip if span == (0, end - x) else strip.crop(*span)))
        return found


def changed_span(old: Strip, new: Strip) -> tuple[int, int] | None:
    """Half-open cell range in which two strips of equal length differ; None if they are equal."""
    if old is new:
        return None
    before, after = list(old), list(new)
    if before == after:
        return None
    first = _same_cells(before, after, from_end=False)
    last = new.cell_length - _same_cells(before, after, from_end=True)
    # equal cells, only split into other segments
    return (first, last) if first < last else None


def _same_cells(before: list[Segment], after: list[Segment], *, from_end: bool) -> int:
    step, index = (-1, -1) if from_end else (1, 0)
    most = min(len(before), len(after))
    cells = 0
    for _ in range(most):
        one, other = before[index], after[index]
        if one != other:
            if one.style == other.style and _NARROW(one.text) and _NARROW(other.text):
                cells += _same_characters(one.text[::step], other.text[::step])
            break
        cells += cell_len(one.text)
        index += step
    return cells


def _same_characters(one: str, other: str) -> int:
    shorter = min(len(one), len(other))
    return next((index for index in range(shorter) if one[index] != other[index]), shorter)


class Difference(CompositorUpdate):
    """A screen update that sends only what the terminal does not show yet."""

    def __init__(self, update: ChopsUpdate | LayoutUpdate, shown: TerminalCells) -> None:
        self.shown = shown
        if isinstance(update, LayoutUpdate):
            self.size = update.region.size
            self.pieces = [(y, 0, Strip.join(line)) for y, line in enumerate(update.strips)]
        else:
            # a line is cut where a pane begins or ends
            self.size = Size(update.chop_ends[0][-1], len(update.chop_ends))
            self.pieces = [(y, x, strip) for y, first, last in update.spans
                           for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=True)
                           if strip is not None and x < last and end > first]  # fmt: skip

    def render_segments(self, console: Console) -> str:
        """Renders the changed pieces as text with escape sequences."""
        self.shown.resized(self.size)
        system = COLOR_SYSTEMS.get(console.color_system or "", ColorSystem.TRUECOLOR)
        return self.shown.encoder.sequences(self.shown.take_changes(self.pieces), system)


class SgrEncoder:
    """Encodes pieces of lines as escape sequences; caches SGR parameters and the transitions between them."""

    def __init__(self) -> None:
        self._sgr_parameters = lru_cache(2_048)(_sgr_parameters)
        self._transition = lru_cache(2_048)(_transition)

    def sequences(self, pieces: Iterable[LinePiece], system: ColorSystem) -> str:
        """Renders pieces as text with escape sequences; between neighbouring styles only the difference is written."""
        parameters_of, transition = self._sgr_parameters, self._transition
        parts: list[str] = []
        current = _NO_PARAMETERS
        for y, x, strip in pieces:
            parts.append(f"\x1b[{y + 1};{x + 1}H")
            for text, style, _ in strip:
                if style is not None and style.link:
                    parts += [transition(current, _NO_PARAMETERS), Strip.render_style(style, text, system)]
                    current = _NO_PARAMETERS
                    continue
                wanted = _NO_PARAMETERS if style is None else parameters_of(style, system)
                if wanted is not current:
                    parts.append(transition(current, wanted))
                    current = wanted
                parts.append(text)
        parts.append(transition(current, _NO_PARAMETERS))
        return "".join(parts)


def _sgr_parameters(style: Style, system: ColorSystem) -> SgrParameters:
    attributes = ";".join(code for name, code in _ATTRIBUTES.items() if getattr(style, name))
    front = ";".join(style.color.downgrade(system).get_ansi_codes()) if style.color else ""
    back = ";".join(style.bgcolor.downgrade(system).get_ansi_codes(False)) if style.bgcolor else ""
    return attributes, front, back


def _transition(old: SgrParameters, new: SgrParameters) -> str:
    """SGR sequence from one look to another; resets if something ends, as not all terminals can end it alone."""
    if old == new:
        return ""
    if old[0] == new[0] and all(new_code or not old_code for old_code, new_code in zip(old, new, strict=True)):
        codes = [new_code for old_code, new_code in zip(old, new, strict=True) if new_code != old_code]
    else:
        codes = [code for code in ("" if old == _NO_PARAMETERS else "0", *new) if code]
    return f"\x1b[{';'.join(codes)}m"


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
    """Sends only changed cells, frees replaced screens, and restores the terminal before it reports an error."""

    #: Context without an active screen; None until ``keep_context`` is called.
    _no_screen: Context | None = None

    def __init__(self, *, ansi_color: bool | None = None, debug: bool = False) -> None:
        super().__init__(ansi_color=ansi_color)
        self.terminal_cells = TerminalCells()  #: The cells that the terminal currently shows
        self.debug_errors = debug  #: Whether unexpected errors propagate with their traceback
        #: The unexpected error that ended the application, to be reported by the caller of ``run``.
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


class ActionList(CommandList, can_focus=False):
    """The list of matching commands."""

    def _on_click(self, event: events.Click) -> None:  # type: ignore[override]
        """Ignores a click on an option that is no longer in the list: Textual 8.2.8 looks it up without a check."""
        option = event.style.meta.get("option")
        if option is not None and option >= self.option_count:
            event.prevent_default()


class ActionPalette(CommandPalette, OnceScreen):
    """Command palette of all actions: Textual's own, hardened against keys that arrive while it opens or closes.

    Without the overrides such a key raises in Textual 8.2.8 and ends the explorer. Relies on ``OptionList._on_click``,
    ``CommandPalette._action_command_list`` and ``CommandPalette._gather_commands``.
    """

    def compose(self) -> ComposeResult:
        """Yields Textual's widgets, with ``ActionList`` as the list."""
        for widget in super().compose():
            yield ActionList() if isinstance(widget, CommandList) else widget

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
