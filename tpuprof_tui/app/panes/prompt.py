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
from textual.message import Message
from textual.strip import Strip

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit
from tpuprof_tui.model import Vocabulary

from ..drawing.theme import Palette
from ..settings.actions import bindings
from .keybar import KeyBar

#: Most history entries per label, and the longest text in characters.
KEPT, LONGEST = 100, 4_000
#: Global keys that also work while typing; all other keys go to the text.
_PASSED_ON: Final = frozenset({"ctrl+c", "ctrl+q", "ctrl+z", "ctrl+l", "f1"})


class Note(Struct, frozen=True):
    """A remark shown next to the typed text.

    Attributes:
        text: The remark.
        column: Offset of a fault in the typed text, from 0; -1: none.
        fault: Whether the typed text is invalid.
        whole: Whether, like a fault, it is shown in full above the text if it does not fit next to it.
    """

    text: str
    column: int = -1
    fault: bool = False
    whole: bool = False


#: Validates a text; if the note for an accepted text is a fault, the prompt stays open.
Judge = Callable[[str], Note | None]


class Question(Struct, frozen=True):
    """A question for the prompt.

    Attributes:
        label: Label of the text ("Filter"); questions with the same label share their history.
        initial: Initial text.
        changed, accepted, cancelled: Called after each change of the text, on Enter, and on Esc.
    """

    label: str
    initial: str = ""
    changed: Judge = lambda text: None
    accepted: Judge = lambda text: None
    cancelled: Callable[[], object] = lambda: None


class Prompt(KeyBar):
    """The bottom line: a key bar that becomes an input line when ``open`` is called.

    It is one widget because replacing one by another would lay out the whole screen twice per prompt.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("prompt")]

    class Ask(Message):
        """Requests the screen to open the prompt."""

        def __init__(self, question: Question) -> None:
            super().__init__()
            self.question = question

    class Closed(Message):
        """Posted when the prompt closes, with the text accepted or cancelled."""

    def __init__(self, palette: Palette, pane: str, vocabulary: Vocabulary) -> None:
        super().__init__(palette, pane, vocabulary, widget_id="prompt")
        self.question = Question("")
        self.text = ""
        self.place = 0
        self.note: Note | None = None
        self._past: dict[str, list[str]] = {}
        self._draft = ""
        self._older = self._left = 0

    @property
    def is_open(self) -> bool:
        """Whether the prompt is open."""
        return self.can_focus

    def open(self, question: Question) -> None:
        """Opens the input line with the question's initial text, and takes the focus."""
        self._silence()
        self.question = question
        self._older = self._left = 0
        self.text = self._draft = question.initial
        self.place = len(self.text)
        self.note = question.changed(self.text) if self.text else None
        self.can_focus = True
        self.focus(scroll_visible=False)
        self._tell_above()
        self.refresh()

    def tell(self, note: Note | None) -> None:
        """Replaces the note, for example with a result from the background."""
        self.note = note
        self._tell_above()
        self.refresh()

    def _lines(self) -> list[str]:
        """While the prompt is open, a message is kept as one line, to be shown when it closes."""
        return [self.message] if self.is_open else super()._lines()

    def _tell_above(self) -> None:
        """Shows a fault or a ``whole`` note above the text if it does not fit next to it."""
        note = self.note
        if note is None or not (note.fault or note.whole) or cell_len(note.text) <= self._note_room():
            self.show_above([])
        else:
            self.show_above(self.wrapped(note.text), self.palette.bad if note.fault else self.palette.text)

    def _note_room(self) -> int:
        """Width for the note in cells: what the text leaves free, but at least 45% of the line."""
        room = max(self.size.width - cell_len(f" {self.question.label}: "), 1)
        return max(room - cell_len(self.text) - 2, room * 45 // 100) - 3

    def _close(self) -> None:
        if self.has_focus:
            self.screen.set_focus(None)
        self.can_focus = False
        self.note = None
        # messages that arrived meanwhile are shown now
        self.show_above(self._lines()[:-1])
        self.refresh()
        self.post_message(self.Closed())

    def _put(self, text: str, place: int) -> None:
        """Sets text and cursor; calls ``changed`` only if the text differs."""
        changed = text != self.text
        self.text, self.place = text[:LONGEST], min(max(place, 0), LONGEST)
        if changed:
            self.note = self.question.changed(self.text)
            self._tell_above()
        self.refresh()

    def _insert(self, text: str) -> None:
        kept = clean(" ".join(text.splitlines()))
        self._put(self.text[: self.place] + kept + self.text[self.place :], self.place + len(kept))

    def on_key(self, event: events.Key) -> None:
        """Inserts characters and handles editing keys; other bound keys keep their action."""
        edit = _EDITS.get(event.key)
        if edit is not None:
            self._put(*edit(self.text, self.place))
        elif event.is_printable and event.character is not None:
            self._insert(event.character)
        elif event.key in _PASSED_ON or event.key in self._bindings.key_to_bindings:
            return
        event.stop()

    def on_paste(self, event: events.Paste) -> None:
        """Inserts pasted text, joined to one line."""
        event.stop()
        self._insert(event.text)

    def action_accept(self) -> None:
        """Accepts the text, unless it has a fault."""
        note = self.question.accepted(self.text)
        if note is not None and note.fault:
            self.tell(note)
            return
        past = self._past.setdefault(self.question.label, [])
        if self.text.strip():
            if self.text in past:
                past.remove(self.text)
            past.append(self.text)
            del past[:-KEPT]
        self._close()

    def action_cancel(self) -> None:
        """Closes without accepting the text."""
        self.question.cancelled()
        self._close()

    def action_recall(self, steps: int) -> None:
        """Recalls a text from the history, ``steps`` entries older than the current one."""
        past = self._past.get(self.question.label, [])
        wanted = min(max(self._older + steps, 0), len(past))
        if wanted == self._older:
            return
        if self._older == 0:
            self._draft = self.text
        self._older = wanted
        text = past[-wanted] if wanted else self._draft
        self._put(text, len(text))

    def render_line(self, y: int) -> Strip:
        """Renders label, text with cursor and fault position, and note."""
        if not self.is_open:
            return super().render_line(y)
        width = self.size.width
        base = self.rich_style
        label = f" {self.question.label}: "
        room = max(width - cell_len(label), 1)
        note = self.note.text if self.note is not None else ""
        for_note = min(cell_len(note), self._note_room()) + 3 if note else 0
        told = fit(f"  {note}", max(for_note - 1, 0), right=True) + " " if for_note else ""
        style = base + (self.palette.bad if self.note is not None and self.note.fault else self.palette.quiet)
        segments = [Segment(label, base + self.palette.key), *self._typed(room - for_note, base), Segment(told, style)]
        return Strip(segments).adjust_cell_length(width, base)

    def _typed(self, room: int, base: Style) -> list[Segment]:
        """Segments of the text around its cursor, exactly ``room`` cells wide."""
        chars = [*self.text, " "]
        column = self.note.column if self.note is not None else -1
        fault = min(column, len(self.text)) if column >= 0 else -1
        self._left = min(self._left, self.place)
        while self._left < self.place and cell_len("".join(chars[self._left : self.place + 1])) > room:
            self._left += 1
        segments: list[Segment] = []
        used = 0
        for place in range(self._left, len(chars)):
            cells = cell_len(chars[place])
            if used + cells > room:
                break
            used += cells
            style = self.palette.bad + Style(underline=True, bold=True) if place == fault else self.palette.strong
            segments.append(Segment(clean(chars[place]), base + style + Style(reverse=place == self.place or None)))
        return [*segments, Segment(" " * max(room - used, 0), base)]


def _word_start(text: str, place: int) -> int:
    return len(re.sub(r"\S*\s*\Z", "", text[:place], count=1))


def _word_end(text: str, place: int) -> int:
    return len(text) - len(re.sub(r"\A\s*\S*", "", text[place:], count=1))


#: Editing keys: functions of (text, cursor) that return both.
_EDITS: Final[dict[str, Callable[[str, int], tuple[str, int]]]] = {
    "left": lambda text, place: (text, place - 1),
    "right": lambda text, place: (text, min(place + 1, len(text))),
    "home": lambda text, place: (text, 0),
    "end": lambda text, place: (text, len(text)),
    "ctrl+a": lambda text, place: (text, 0),
    "ctrl+e": lambda text, place: (text, len(text)),
    "ctrl+left": lambda text, place: (text, _word_start(text, place)),
    "ctrl+right": lambda text, place: (text, _word_end(text, place)),
    "backspace": lambda text, place: (text[: max(place - 1, 0)] + text[place:], place - 1),
    "delete": lambda text, place: (text[:place] + text[place + 1 :], place),
    "ctrl+d": lambda text, place: (text[:place] + text[place + 1 :], place),
    "ctrl+w": lambda text, place: (text[: _word_start(text, place)] + text[place:], _word_start(text, place)),
    "ctrl+u": lambda text, place: (text[place:], 0),
    "ctrl+k": lambda text, place: (text[:place], place),
}
