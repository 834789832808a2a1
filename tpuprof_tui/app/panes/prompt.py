"""The prompt: a line to type a filter, a search, a time or a command in, in place of the footer."""

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

#: Texts of one label that are kept to come back to, and characters of the longest.
KEPT, LONGEST = 100, 4_000
#: Keys of everywhere that also work while one types; all others belong to the text.
_PASSED_ON: Final = frozenset({"ctrl+c", "ctrl+q", "ctrl+z", "ctrl+l", "f1"})


class Note(Struct, frozen=True):
    """What is shown beside a typed text.

    Attributes:
        text: The sentence.
        column: Place of a fault in the text, from 0; -1: none.
        fault: Whether the text cannot be taken as it is.
        whole: Whether it is told in full above the text where it does not fit beside it, as a fault is.
    """

    text: str
    column: int = -1
    fault: bool = False
    whole: bool = False


#: Looks at a text; a note with a fault keeps the prompt open when the text is accepted.
Judge = Callable[[str], Note | None]


class Question(Struct, frozen=True):
    """What a prompt asks for.

    Attributes:
        label: What the text is ("Filter"); texts of one label share their history.
        initial: The text to begin with.
        changed, accepted, cancelled: Called with each text that is typed, with that taken by Enter, and on Esc.
    """

    label: str
    initial: str = ""
    changed: Judge = lambda text: None
    accepted: Judge = lambda text: None
    cancelled: Callable[[], object] = lambda: None


class Prompt(KeyBar):
    """The bottom line: the keys, until ``open`` is called.

    One widget is both: to show one in place of another would lay out the whole screen anew, for each prompt twice.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("prompt")]

    class Ask(Message):
        """A pane asks the screen to open the prompt."""

        def __init__(self, question: Question) -> None:
            super().__init__()
            self.question = question

    class Closed(Message):
        """The text was taken, or the prompt was left without one."""

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
        """Whether something is asked."""
        return self.can_focus

    def open(self, question: Question) -> None:
        """Shows the line with the question's text, to be typed on."""
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
        """Shows another note: something was found out meanwhile."""
        self.note = note
        self._tell_above()
        self.refresh()

    def _lines(self) -> list[str]:
        """While one types a message waits below the text, in no more than its line."""
        return [self.message] if self.is_open else super()._lines()

    def _tell_above(self) -> None:
        """A fault, or a list of names, that does not fit beside the text is shown in full above it."""
        note = self.note
        if note is None or not (note.fault or note.whole) or cell_len(note.text) <= self._note_room():
            self.show_above([])
        else:
            self.show_above(self.wrapped(note.text), self.palette.bad if note.fault else self.palette.text)

    def _note_room(self) -> int:
        """Cells that a note may take: what the text leaves, and of a long text up to nearly half."""
        room = max(self.size.width - cell_len(f" {self.question.label}: "), 1)
        return max(room - cell_len(self.text) - 2, room * 45 // 100) - 3

    def _close(self) -> None:
        if self.has_focus:
            self.screen.set_focus(None)
        self.can_focus = False
        self.note = None
        # what was said meanwhile shows now
        self.show_above(self._lines()[:-1])
        self.refresh()
        self.post_message(self.Closed())

    def _put(self, text: str, place: int) -> None:
        """Takes a text; what is typed is judged, a moved cursor is not."""
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
        """Typed characters go into the text; other keys edit it or do what prompts do."""
        edit = _EDITS.get(event.key)
        if edit is not None:
            self._put(*edit(self.text, self.place))
        elif event.is_printable and event.character is not None:
            self._insert(event.character)
        elif event.key in _PASSED_ON or event.key in self._bindings.key_to_bindings:
            return
        event.stop()

    def on_paste(self, event: events.Paste) -> None:
        """What is pasted becomes one line."""
        event.stop()
        self._insert(event.text)

    def action_accept(self) -> None:
        """Takes the text, unless it has a fault."""
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
        """Leaves without a text."""
        self.question.cancelled()
        self._close()

    def action_recall(self, steps: int) -> None:
        """Puts an earlier text in, ``steps`` older than the one shown."""
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
        """Label, text with its cursor and the marked place of a fault, note."""
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
        """The part of the text around its cursor, in exactly ``room`` cells."""
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


#: What editing keys make of a text and the place in it.
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
