"""Draws the lines of a pane with its sides, which all its lines share, made once.

Textual asks for some thirty styles for each line, though nothing but what is between the borders differs. Panes with
more than a border, and the border's own lines, are left to it.

Relies on ``StylesCache.render_widget``, ``StylesCache.render_line`` and ``Widget._styles_cache`` of Textual.
What it saves stands in ``line_compositor``.
"""

from __future__ import annotations

from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual._styles_cache import StylesCache
from textual.color import Color
from textual.geometry import Region, Size, Spacing
from textual.strip import Strip
from textual.widget import Widget


class PaneStylesCache(StylesCache):
    """The lines of a pane, laid on the pane's own style, with their sides."""

    def __init__(self) -> None:
        super().__init__()
        self._base = Style.null()
        self._sides_of: tuple[object, ...] = ()
        #: The first line between the borders; -1: all lines are left to Textual.
        self._top = -1
        self._left: list[Segment] = []
        self._right: list[Segment] = []

    def render_widget(self, widget: Widget, crop: Region) -> list[Strip]:
        """Lines of a region of a pane."""
        self._base = widget.rich_style
        return super().render_widget(widget, crop)

    def render_line(
        self, styles: Any, y: int, size: Size, content_size: Size, padding: Spacing, base_background: Color,
        background: Color, render_content_line: Any, *others: Any,
    ) -> Strip:  # fmt: skip
        """A line with its borders, as Textual makes it."""

        def on_base(number: int) -> Strip:
            line: Strip = render_content_line(number)
            return line.apply_style(self._base)

        more = (size, content_size, padding, base_background, background)
        key = (styles._cache_key, *more, others[2])
        if key != self._sides_of:
            self._sides_of = key
            self._top = styles.gutter.top if all(content_size) and _is_simple(styles, padding, others[2]) else -1
            if self._top >= 0:
                blank = Strip.blank(content_size.width)
                segments = list(super().render_line(styles, self._top, *more, lambda _: blank, *others))
                place = next(number for number, segment in enumerate(segments) if segment is next(iter(blank)))
                self._left, self._right = segments[:place], segments[place + 1 :]
        if self._top >= 0 and 0 <= y - self._top < content_size.height:
            line = on_base(y - self._top)
            if line.cell_length == content_size.width:
                return Strip([*self._left, *line, *self._right], size.width)
        return super().render_line(styles, y, *more, on_base, *others)


def _is_simple(styles: Any, padding: Spacing, opacity: float) -> bool:
    """Whether nothing but a border is drawn around a line."""
    outlined = any(edge for edge, _ in styles.outline)
    hatched = styles.has_rule("hatch") and styles.hatch != "none"
    return not (any(padding) or outlined or hatched or styles.tint.a or styles.text_opacity != 1 or opacity != 1)
