"""What all panes of lines share: how long they are, and the sides of their lines, cost nothing but the pane itself."""

from __future__ import annotations

from typing import Any

from rich.segment import Segment
from textual._styles_cache import StylesCache
from textual.color import Color
from textual.geometry import Size, Spacing
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget


def set_extent(pane: ScrollView, extent: Size) -> None:
    """A pane has another number of lines: its scroll bar follows. The screen is laid out if that comes or goes.

    Textual lays out the whole screen whenever a virtual size changes.
    """
    if not pane.size:
        # hidden: it will be laid out when it shows
        pane.virtual_size = extent
    elif extent != pane.virtual_size:
        pane.set_reactive(Widget.virtual_size, extent)
        pane._scroll_update(extent)


class SidesCache(StylesCache):
    """Looks up border and background of a pane's lines once for all lines, as long as its style is the same.

    Textual asks for some thirty styles a line. Lines of panes with more than a border, and the border's own, are left
    to it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sides_of: tuple[object, ...] = ()
        self._left: list[Segment] = []
        self._right: list[Segment] = []
        self._top = -1

    def render_line(
        self, styles: Any, y: int, size: Size, content_size: Size, padding: Spacing, base_background: Color,
        background: Color, render_content_line: Any, *others: Any,
    ) -> Strip:  # fmt: skip
        """A line with its borders, as Textual makes it."""
        more = (size, content_size, padding, base_background, background)
        key = (styles._cache_key, *more, others[2])
        if key != self._sides_of:
            self._sides_of = key
            self._top = styles.gutter.top if _is_simple(styles, padding, others[2]) and all(content_size) else -1
            if self._top >= 0:
                blank = Strip.blank(content_size.width)
                segments = list(super().render_line(styles, self._top, *more, lambda _: blank, *others))
                place = next(number for number, segment in enumerate(segments) if segment is blank._segments[0])
                self._left, self._right = segments[:place], segments[place + 1 :]
        if self._top < 0 or not 0 <= y - self._top < content_size.height:
            return super().render_line(styles, y, *more, render_content_line, *others)
        line: Strip = render_content_line(y - self._top)
        if line.cell_length != content_size.width:
            return super().render_line(styles, y, *more, render_content_line, *others)
        return Strip([*self._left, *line, *self._right], size.width) if self._left or self._right else line


def _is_simple(styles: Any, padding: Spacing, opacity: float) -> bool:
    """Whether nothing but a border is drawn around a line."""
    outlined = any(edge for edge, _ in styles.outline)
    hatched = styles.has_rule("hatch") and styles.hatch != "none"
    return not (any(padding) or outlined or hatched or styles.tint.a or styles.text_opacity != 1 or opacity != 1)
