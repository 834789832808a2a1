"""The prompt: a single-line input in place of the footer, for filters, searches, times and commands."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, Final

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.strip import Strip
from textual.widget import Widget

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit
from tpuprof_tui.model import Vocabulary

from ..drawing.theme import Palette
from ..settings.actions import bindings
from .keybar import KeyBar

#: Most history entries per label, and the longest text in characters.
MAX_HISTORY, MAX_LENGTH = 100, 4_000
#: Global keys that also work while typing; all other keys go to the text.
_GLOBAL_KEYS: Final = frozenset({"ctrl+c", "ctrl+q", "ctrl+z", "ctrl+l", "f1"})


class Hint(Struct, frozen=True):
    """A remark shown next to the typed text.

    Attributes:
        text: The remark.
        column: Offset of a fault in the typed text, from 0; -1: none.
        fault: Whether the typed text is invalid.
        in_full: Whether, like a fault, it is shown in full above the text if it does not fit next to it.
    """

    text: str
    column: int = -1
    fault: bool = False
    in_full: bool = False


#: Validates a text; if the hint for an accepted text is a fault, the prompt stays open.
Validator = Callable[[str], Hint | None]


class PromptRequest(Struct, frozen=True):
    """What the prompt asks for.

    Attributes:
        label: Label of the text ("Filter"); requests with the same label share their history.
        initial: Initial text.
        changed, accepted, cancelled: Called after each change of the text, on Enter, and on Esc.
    """

    label: str
    initial: str = ""
    changed: Validator = lambda text: None
    accepted: Validator = lambda text: None
    cancelled: Callable[[], object] = lambda: None


class Prompt(KeyBar):
    """The bottom line: a key bar that becomes an input line when ``open`` is called.

    It is one widget because replacing one by another would lay out the whole screen twice per prompt.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("prompt")]

    def __init__(self, palette: Palette, pane: str, vocabulary: Vocabulary) -> None:
        super().__init__(palette, pane, vocabulary, widget_id="prompt")
        self.request = PromptRequest("")
        #: Widget that had the focus before, and gets it back; None if no widget had.
        self.previous_focus: Widget | None = None
        self.text = ""
        self.cursor = 0
        self.hint: Hint | None = None
        self._history: dict[str, list[str]] = {}
        self._draft = ""
        self._history_offset = self._scroll = 0

    @property
    def is_open(self) -> bool:
        """Whether the prompt is open."""
        return self.can_focus

    @property
    def behind(self) -> Widget | None:
        """The focused pane; while the prompt is open, the pane focused before it."""
        focused = self.screen.focused
        return self.previous_focus if focused in (None, self) else focused

    def open(self, request: PromptRequest) -> None:
        """Opens the input line with the request's initial text, and takes the focus."""
        if not self.is_open:
            self.previous_focus = self.screen.focused
        self._silence()
        self.request = request
        self._history_offset = self._scroll = 0
        self.text = self._draft = request.initial
        self.cursor = len(self.text)
        self.hint = request.changed(self.text) if self.text else None
        self.can_focus = True
        self.focus(scroll_visible=False)
        self._show_hint_above()
        self.refresh()

    def show_hint(self, hint: Hint | None) -> None:
        """Replaces the hint, for example with a result from the background."""
        self.hint = hint
        self._show_hint_above()
        self.refresh()

    def _lines(self) -> list[str]:
        """While the prompt is open, a message is kept as one line, to be shown when it closes."""
        return [self.message] if self.is_open else super()._lines()

    def _show_hint_above(self) -> None:
        """Shows a fault or an ``in_full`` hint above the text if it does not fit next to it."""
        hint = self.hint
        if hint is None or not (hint.fault or hint.in_full) or cell_len(hint.text) <= self._hint_room():
            self.show_above([])
        else:
            self.show_above(self.wrapped(hint.text), self.palette.bad if hint.fault else self.palette.text)

    def _hint_room(self) -> int:
        """Width for the hint in cells: what the text leaves free, but at least 45% of the line."""
        room = max(self.size.width - cell_len(f" {self.request.label}: "), 1)
        return max(room - cell_len(self.text) - 2, room * 45 // 100) - 3

    def _close(self) -> None:
        if self.has_focus:
            self.screen.set_focus(None)
        self.can_focus = False
        self.hint = None
        # messages that arrived meanwhile are shown now
        self.show_above(self._lines()[:-1])
        self.refresh()
        before = self.previous_focus
        if self.screen.focused is None and before is not None and before.display:
            before.focus(scroll_visible=False)

    def _set_text(self, text: str, cursor: int) -> None:
        changed = text != self.text
        self.text, self.cursor = text[:MAX_LENGTH], min(max(cursor, 0), MAX_LENGTH)
        if changed:
            self.hint = self.request.changed(self.text)
            self._show_hint_above()
        self.refresh()

    def _insert(self, text: str) -> None:
        kept = clean(" ".join(text.splitlines()))
        self._set_text(self.text[: self.cursor] + kept + self.text[self.cursor :], self.cursor + len(kept))

    def on_key(self, event: events.Key) -> None:
        """Inserts characters and handles editing keys; other bound keys keep their action."""
        edit = _EDITS.get(event.key)
        if edit is not None:
            self._set_text(*edit(self.text, self.cursor))
        elif event.is_printable and event.character is not None:
            self._insert(event.character)
        elif event.key in _GLOBAL_KEYS or event.key in self._bindings.key_to_bindings:
            return
        event.stop()

    def on_paste(self, event: events.Paste) -> None:
        """Inserts pasted text, joined to one line."""
        event.stop()
        self._insert(event.text)

    def action_accept(self) -> None:
        """Accepts the text, unless it has a fault."""
        hint = self.request.accepted(self.text)
        if hint is not None and hint.fault:
            self.show_hint(hint)
            return
        history = self._history.setdefault(self.request.label, [])
        if self.text.strip():
            if self.text in history:
                history.remove(self.text)
            history.append(self.text)
            del history[:-MAX_HISTORY]
        self._close()

    def action_cancel(self) -> None:
        """Closes without accepting the text."""
        self.request.cancelled()
        self._close()

    def action_recall(self, steps: int) -> None:
        """Recalls a text from the history, ``steps`` entries older than the current one."""
        history = self._history.get(self.request.label, [])
        offset = min(max(self._history_offset + steps, 0), len(history))
        if offset == self._history_offset:
            return
        if self._history_offset == 0:
            self._draft = self.text
        self._history_offset = offset
        text = history[-offset] if offset else self._draft
        self._set_text(text, len(text))

    def render_line(self, y: int) -> Strip:
        """Renders label, text with cursor and fault position, and hint."""
        if not self.is_open:
            return super().render_line(y)
        width = self.size.width
        base = self.rich_style
        label = f" {self.request.label}: "
        room = max(width - cell_len(label), 1)
        text = self.hint.text if self.hint is not None else ""
        reserved = min(cell_len(text), self._hint_room()) + 3 if text else 0
        hint = fit(f"  {text}", max(reserved - 1, 0), right=True) + " " if reserved else ""
        style = base + (self.palette.bad if self.hint is not None and self.hint.fault else self.palette.quiet)
        segments = [Segment(label, base + self.palette.key), *self._typed(room - reserved, base), Segment(hint, style)]
        return Strip(segments).adjust_cell_length(width, base)

    def _typed(self, room: int, base: Style) -> list[Segment]:
        chars = [*self.text, " "]
        column = self.hint.column if self.hint is not None else -1
        fault = min(column, len(self.text)) if column >= 0 else -1
        self._scroll = min(self._scroll, self.cursor)
        while self._scroll < self.cursor and cell_len("".join(chars[self._scroll : self.cursor + 1])) > room:
            self._scroll += 1
        segments: list[Segment] = []
        used = 0
        for index in range(self._scroll, len(chars)):
            cells = cell_len(chars[index])
            if used + cells > room:
                break
            used += cells
            style = self.palette.bad + Style(underline=True, bold=True) if index == fault else self.palette.strong
            segments.append(Segment(clean(chars[index]), base + style + Style(reverse=index == self.cursor or None)))
        return [*segments, Segment(" " * max(room - used, 0), base)]


def ask(pane: Widget, request: PromptRequest) -> None:
    """Opens the prompt of a pane's screen."""
    pane.screen.query_one(Prompt).open(request)


def _word_start(text: str, cursor: int) -> int:
    return len(re.sub(r"\S*\s*\Z", "", text[:cursor], count=1))


def _word_end(text: str, cursor: int) -> int:
    return len(text) - len(re.sub(r"\A\s*\S*", "", text[cursor:], count=1))


#: Editing keys: functions of (text, cursor) that return both.
_EDITS: Final[dict[str, Callable[[str, int], tuple[str, int]]]] = {
    "left": lambda text, cursor: (text, cursor - 1),
    "right": lambda text, cursor: (text, min(cursor + 1, len(text))),
    "home": lambda text, cursor: (text, 0),
    "end": lambda text, cursor: (text, len(text)),
    "ctrl+a": lambda text, cursor: (text, 0),
    "ctrl+e": lambda text, cursor: (text, len(text)),
    "ctrl+left": lambda text, cursor: (text, _word_start(text, cursor)),
    "ctrl+right": lambda text, cursor: (text, _word_end(text, cursor)),
    "backspace": lambda text, cursor: (text[: max(cursor - 1, 0)] + text[cursor:], cursor - 1),
    "delete": lambda text, cursor: (text[:cursor] + text[cursor + 1 :], cursor),
    "ctrl+d": lambda text, cursor: (text[:cursor] + text[cursor + 1 :], cursor),
    "ctrl+w": lambda text, cursor: (text[: _word_start(text, cursor)] + text[cursor:], _word_start(text, cursor)),
    "ctrl+u": lambda text, cursor: (text[cursor:], 0),
    "ctrl+k": lambda text, cursor: (text[:cursor], cursor),
}
