"""The footer: keys of the focused pane, transient messages, and the status of background work."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.reactive import reactive
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit, wrap
from tpuprof_tui.model.vocabulary import GENERIC, Vocabulary

from ..drawing.theme import Palette
from ..settings.actions import footer_keys, key_text

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
