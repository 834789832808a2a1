"""The bottom line: keys of the focused pane, messages, status of background work; and the prompt in its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.reactive import reactive
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit, wrap
from tpuprof_tui.model.vocabulary import GENERIC, Vocabulary

from ..drawing.theme import Palette
from ..settings.actions import bindings, footer_keys, key_text

#: A footer entry: keys that share a label, and the label.
FooterKeys = tuple[tuple[str, ...], str]

#: Most lines of a message, including the bottom line.
_MOST_LINES = 4


class LongMessage(Static):
    """Further lines of a long message, on a layer above the bottom line, so that the layout does not change."""

    DEFAULT_CSS = """
    LongMessage { layer: above; dock: bottom; margin: 0 0 1 0; height: auto; display: none;
        background: $panel; color: $foreground; }
    """


class KeyBar(Widget):
    """The bottom line: keys of a pane on the left, replaced by a message for a few seconds.

    On the right: the status of background work or a notice (``status``), else the cursor position (``position_text``).
    """

    pane = reactive("")
    position_text = reactive("")
    status = reactive("")
    #: Replacement labels at the cursor, by usual label; an empty one hides the entry.
    label_overrides = reactive[Mapping[str, str]]({})

    DEFAULT_CSS = "KeyBar { dock: bottom; height: 1; background: $panel; color: $foreground; }"
    SHOWN_SECONDS = 4.0

    def __init__(
        self, palette: Palette, pane: str, vocabulary: Vocabulary = GENERIC, widget_id: str | None = None
    ) -> None:  # fmt: skip
        super().__init__(id=widget_id)
        self.palette = palette
        self.vocabulary = vocabulary
        self.pane = pane
        self._keys: dict[str, list[FooterKeys]] = {}
        self.message = ""
        self._of_pane = False
        self._timer: Timer | None = None

    def relabel(self, label: str, replacement: str) -> None:
        """Relabels an entry of the keys at the cursor; an empty ``replacement`` hides it."""
        self.label_overrides = {**self.label_overrides, label: replacement}

    def say(self, message: str, *, of_pane: bool = False) -> None:
        """Shows a message for a few seconds; a long one also uses lines above, if the screen has a ``LongMessage``.

        A message of a pane (``of_pane``) disappears with ``leave_pane``.
        """
        self.message = clean(message)
        self._of_pane = of_pane
        if self._timer is not None:
            self._timer.stop()
        above = self._lines()[:-1]
        self.show_above(above)
        self._timer = self.set_timer(self.SHOWN_SECONDS * (1 + len(above) / 2), self._silence)
        self.refresh()

    def leave_pane(self) -> None:
        """Ends the message of a pane: another pane is shown."""
        if self._of_pane:
            self._silence()

    def _silence(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self.message = ""
        self._of_pane = False
        self._timer = None
        self.show_above([])
        self.refresh()

    def show_above(self, lines: list[str], style: Style | None = None) -> None:
        """Shows lines right above this one; an empty list hides them."""
        for above in self.screen.query(LongMessage):
            if lines or above.display:
                text = "\n".join(fit(f" {line}", self.size.width) for line in lines)
                above.update(Text(text, self.palette.strong if style is None else style, no_wrap=True))
                above.display = bool(lines)

    def wrapped(self, text: str) -> list[str]:
        """Wraps a text to the width of the screen, in at most ``_MOST_LINES`` lines."""
        if cell_len(text) < self.size.width:
            return [text]
        lines = wrap(text, max(self.size.width - 2, 10))
        return lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], " ".join(lines[_MOST_LINES - 1 :])]

    def _lines(self) -> list[str]:
        """The message wrapped to lines, or as one line if the screen cannot show more."""
        return self.wrapped(self.message) if self.size.width and self.screen.query(LongMessage) else [self.message]

    def render_line(self, y: int) -> Strip:
        """Renders the message, or the keys and the text on the right."""
        width = self.size.width
        base = self.rich_style
        if self.message:
            return Strip([Segment(fit(f" {self._lines()[-1]}", width), base + self.palette.strong)], width)
        segments: list[Segment] = []
        if self.pane not in self._keys:
            self._keys[self.pane] = footer_keys(self.pane, self.vocabulary)
        *near, help_key, quit_key = self._keys[self.pane]
        note = f" {self.position_text} " if self.position_text and width >= 60 and not self.status else ""
        if self.status:
            note = f" {fit(self.status, min(cell_len(self.status), width // 2))} "
        room = width - cell_len(note) - sum(_width(entry) for entry in (help_key, quit_key))
        for keys, text in near:
            entry = keys, self.label_overrides.get(text, text)
            if entry[1] and _width(entry) <= room:
                room -= _width(entry)
                segments += self._entry(entry, base)
        for entry in (help_key, quit_key):
            segments += self._entry(entry, base)
        strip = Strip(segments).adjust_cell_length(width - cell_len(note), base)
        return Strip([*strip, Segment(note, base + self.palette.strong)], width) if note else strip

    def _entry(self, entry: FooterKeys, base: Style) -> list[Segment]:
        keys, text = entry
        pressed = [Style.from_meta({"@click": f"app.simulate_key({key!r})"}) for key in keys]
        shown = [Segment(f" {key_text(key)}", base + self.palette.key + each)
                 for key, each in zip(keys, pressed, strict=True)]  # fmt: skip
        return [*shown, Segment(f" {text} ", base + pressed[0])]


def _width(entry: FooterKeys) -> int:
    return sum(len(key_text(key)) + 1 for key in entry[0]) + len(entry[1]) + 2


#: Most history entries per label, and the longest text in characters.
MAX_HISTORY, MAX_LENGTH = 100, 4_000
#: Global keys that also work while typing; all other keys go to the text.
_GLOBAL_KEYS: Final = frozenset({"ctrl+c", "ctrl+q", "ctrl+z", "ctrl+l", "f1"})


class Hint(Struct, frozen=True):
    """A remark shown next to the typed text."""

    text: str
    column: int = -1  #: Offset of a fault in the typed text, from 0; -1: none
    fault: bool = False  #: Whether the typed text is invalid
    in_full: bool = False  #: Whether, like a fault, it is shown in full above the text if it does not fit next to it


#: Validates a text; if the hint for an accepted text is a fault, the prompt stays open.
Validator = Callable[[str], Hint | None]


class PromptRequest(Struct, frozen=True):
    """What the prompt asks for."""

    label: str  #: Label of the text ("Filter"); requests with the same label share their history
    initial: str = ""
    #: changed, accepted, cancelled: Called after each change of the text, on Enter, and on Esc.
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
            # at once: what the text asked for may move the focus on
            self.screen.set_focus(before, scroll_visible=False)

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
