"""Scrolling view of text lines with an optional cursor: base class of most panes and overlays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.worker import Worker

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import ELLIPSIS, wrap

from ..drawing.theme import Palette
from ..settings.actions import bindings
from ..shell.messages import CopyText, post_worker_failure

#: Block characters, which bars are drawn with in Unicode.
_BLOCKS = frozenset(map(chr, range(0x2580, 0x25A0)))
#: Lines to move, as functions of (lines per page, number of lines), by the last part of the action id.
MOVES: Final[Mapping[str, Callable[[int, int], int]]] = {
    "line-down": lambda page, _: 1,
    "line-up": lambda page, _: -1,
    "half-down": lambda page, _: max(page // 2, 1),
    "half-up": lambda page, _: -max(page // 2, 1),
    "page-down": lambda page, _: page,
    "page-up": lambda page, _: -page,
    "first": lambda _, lines: -lines - 1,
    "last": lambda _, lines: lines + 1,
}
#: A line: styled segments.
Line = list[Segment]


def paragraph(text: str, width: int, style: Style, indent: int = 1) -> list[Line]:
    """Wraps a text to lines for ``width`` cells, indented by ``indent`` blanks and leaving one cell at the right."""
    return [[Segment(" " * indent + line, style)] for line in wrap(clean(text), width - indent - 1)]


def as_text(lines: Iterable[Strip]) -> str:
    """Joins lines to one line of text: blanks collapsed, bars left out."""
    words = (word for strip in lines for word in strip.text.split())
    return " ".join(word for word in words if not _BLOCKS.issuperset(word))


class LinesView(ScrollView, can_focus=True):
    """Lines built for the width of the pane, with a cursor if some of them are items.

    Subclasses override ``build``; the item numbers in its result determine which lines the cursor can be on.
    """

    #: Style of the pane, computed once for all lines that are drawn: that takes longer than a line.
    _drawn_style: Style | None = None
    #: Words for the line under the cursor, and for all lines, in the message after copying.
    copied_as = ("line", "lines")

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list", "text")]
    DEFAULT_CSS = """
    LinesView { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; overflow-x: hidden; overflow-y: auto; }
    """

    def __init__(self, palette: Palette, pane: str) -> None:
        super().__init__(id=pane)
        self.palette = palette
        self.lines: list[Strip] = []
        #: Items and cursor at the last paint.
        self._painted: tuple[list[int], int] = ([], -1)
        self.items: list[int] = []
        self.cursor = 0
        self._built_for = -1

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Returns lines for a pane of ``width`` cells, and the item number of each (-1: none); empty: no items."""
        return [], []

    def rebuild(self, *, keep_scroll: bool = True) -> None:
        """Builds the lines again after a change, and repaints those that differ."""
        if self._closing or not self.is_attached:
            # a scroll bar created while the pane closes would never be removed, and would keep the capture in memory
            return
        width = self.scrollable_content_region.width
        if width <= 0:
            # not laid out yet, or no room: wrapping to no width would give many lines, and so flash a scroll bar; items
            # are dropped, as keys must not act on outdated lines
            self.items, self._built_for = [], -1
            return
        old, built_for, self._built_for = self.lines, self._built_for, width
        built, self.items = self.build(width)
        self.lines = [Strip(line) for line in built]
        self.cursor = min(self.cursor, max(max(self.items, default=-1), 0))
        self.virtual_size = Size(width, len(self.lines))
        if not keep_scroll:
            self.scroll_to(y=0, animate=False, immediate=True)
        if (width, self.items, self.cursor) != (built_for, *self._painted):
            self.refresh()
            return
        top, (cells, height) = self.scroll_offset.y, self.size
        changed = [
            Region(0, number - top, cells, 1)
            for number in range(top, min(top + height, max(len(old), len(self.lines))))
            if old[number : number + 1] != self.lines[number : number + 1]
        ]
        if changed:
            self.refresh(*changed)

    def on_resize(self, event: events.Resize) -> None:
        """Rebuilds the lines for another width."""
        if self.scrollable_content_region.width != self._built_for:
            self.rebuild()

    def watch_show_vertical_scrollbar(self) -> None:
        """Rebuilds the lines, as the scroll bar would hide their last cell."""
        if self._built_for > 0 and self.scrollable_content_region.width != self._built_for:
            self.rebuild()

    @property
    def has_cursor(self) -> bool:
        """Whether any line is an item."""
        return any(item >= 0 for item in self.items)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Renders the lines of a region, and records the items and cursor that they show."""
        self._painted, self._drawn_style = (self.items, self.cursor), self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Renders line ``y`` of the viewport."""
        width = self.size.width
        number = y + self.scroll_offset.y
        if not 0 <= number < len(self.lines):
            return Strip.blank(width, self._drawn_style or self.rich_style)
        strip = self._cut(self.lines[number]).adjust_cell_length(width, Style.null())
        if self.items and self.items[number] >= 0 and self.items[number] == self.cursor:
            strip = self._highlighted(strip, number)
        return strip.apply_style(self._drawn_style or self.rich_style)

    def _cut(self, strip: Strip) -> Strip:
        """A line that is longer than the pane is wide, cut with an ellipsis."""
        if strip.cell_length <= self._built_for:
            return strip
        kept = strip.crop(0, max(self._built_for - 1, 0))
        style = next(reversed(list(kept)), Segment("")).style
        return Strip([*kept, Segment(ELLIPSIS, style)])

    def _highlighted(self, strip: Strip, number: int) -> Strip:
        style = self.palette.row if self.has_focus else self.palette.row_blurred
        return Strip([Segment(text, (own or Style.null()) + style) for text, own, _ in strip], strip.cell_length)

    def on_focus(self) -> None:
        """Repaints, as the cursor has another style in the focused pane."""
        if self.has_cursor:
            self.refresh()

    on_blur = on_focus

    def text_of_item(self) -> str:
        """Text to copy of the item under the cursor, as one line; empty if there is none."""
        lines = [strip for strip, item in zip(self.lines, self.items, strict=False) if item == self.cursor]
        return as_text(lines) if self.has_cursor else ""

    def text_of_all(self) -> str:
        """Text to copy of all lines."""
        return "\n".join(strip.text.rstrip() for strip in self.lines)

    def action_copy_line(self) -> None:
        """Copies the line under the cursor."""
        text = self.text_of_item()
        if text:
            self.post_message(CopyText(text, self.copied_as[0]))

    def action_copy_all(self) -> None:
        """Copies all lines."""
        text = self.text_of_all()
        if text:
            self.post_message(CopyText(text, self.copied_as[1]))

    def cursor_changed(self) -> None:
        """Hook: called after the cursor was put on an item."""

    def move(self, lines: int) -> None:
        """Moves the cursor by ``lines`` items, or scrolls if there is no cursor."""
        if not self.has_cursor:
            self.scroll_to(y=self.scroll_offset.y + lines, animate=False, immediate=True)
            return
        self.go_to(self.cursor + lines)

    def go_to(self, item: int) -> None:
        """Puts the cursor on an item and scrolls it into view; does nothing if there are no items."""
        if not self.has_cursor:
            return
        self.cursor = min(max(item, 0), max(self.items))
        first = self.items.index(self.cursor)
        last = len(self.items) - 1 - self.items[::-1].index(self.cursor)
        height = max(self.scrollable_content_region.height, 1)
        top = self.scroll_offset.y
        if first == min(number for number, item in enumerate(self.items) if item >= 0):
            self.scroll_to(y=0, animate=False, immediate=True, force=True)
        elif first < top or last >= top + height:
            wanted = first if first < top or last - first >= height else last - height + 1
            # forced: new lines must be scrollable before their scroll bar exists
            self.scroll_to(y=wanted, animate=False, immediate=True, force=True)
        self.refresh()
        self.cursor_changed()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Reports an error of a worker thread."""
        post_worker_failure(self, event)

    def on_click(self, event: events.Click) -> None:
        """Moves the cursor to the clicked item; the keys can do the same."""
        offset = event.get_content_offset(self)
        number = offset.y + self.scroll_offset.y if offset is not None else -1
        if self.has_cursor and 0 <= number < len(self.items) and self.items[number] >= 0:
            self.go_to(self.items[number])

    def action_do(self, name: str) -> None:
        """Moves by the number of lines of an entry in ``MOVES``."""
        self.move(MOVES[name](max(self.scrollable_content_region.height - 1, 1), len(self.lines)))

    def action_centre(self) -> None:
        """Scrolls the line under the cursor to the middle."""
        if self.has_cursor:
            height = self.scrollable_content_region.height
            self.scroll_to(y=max(self.items.index(self.cursor) - height // 2, 0), animate=False, immediate=True)
