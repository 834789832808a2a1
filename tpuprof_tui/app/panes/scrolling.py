"""What all panes of lines share: how long they are, and the sides of their lines, cost nothing but the pane itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.segment import Segment
from rich.style import Style
from textual._styles_cache import StylesCache
from textual.color import Color
from textual.filter import ANSIToTruecolor, DimFilter, LineFilter, Monochrome, NoColor
from textual.geometry import Region, Size, Spacing
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

#: Filters that change nothing but styles, and each by itself.
OF_STYLES: Final = (ANSIToTruecolor, DimFilter, Monochrome, NoColor)
#: Styles of a pane that are known at once.
MOST_STYLES: Final = 4_096


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


class Finish(dict[Style | None, Style]):
    """What styles become on a pane: laid on its own, then as the filters of lines have them. Each is found out once.

    Args:
        base: The style of the pane.
        filters: What changes styles, and nothing but styles.
        background: The background of the pane.
    """

    def __init__(self, base: Style, filters: Sequence[LineFilter], background: Color) -> None:
        super().__init__()
        self._base = base
        self._filters = filters
        self._background = background

    def __missing__(self, style: Style | None) -> Style:
        result = self._base if style is None else self._base + style
        for each in self._filters:
            result = each.apply([Segment(" ", result)], self._background)[0].style or Style.null()
        if len(self) >= MOST_STYLES:
            self.clear()
        self[style] = result
        return result


class SidesCache(StylesCache):
    """Draws a pane's lines with their sides: what lines share is looked up once, and a line is gone through once.

    Textual asks for some thirty styles a line, and makes each line four times: as the pane has it, on the pane's own
    style, between its borders, and for each filter. Lines of panes with more than a border, and the border's own, are
    left to it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sides_of: tuple[object, ...] = ()
        self._left: list[Segment] = []
        self._right: list[Segment] = []
        self._top = -1
        self._base = Style.null()
        self._finished_for: tuple[object, ...] = ()
        self._finish = self._finish_sides = Finish(self._base, (), Color(0, 0, 0))
        self._others: list[LineFilter] = []

    def render_widget(self, widget: Widget, crop: Region) -> list[Strip]:
        """Lines of a region of a pane."""
        self._base = widget.rich_style
        return super().render_widget(widget, crop)

    def render(
        self, styles: Any, size: Size, base_background: Color, background: Color, render_content_line: Any,
        filters: Sequence[LineFilter], *others: Any, **more: Any,
    ) -> list[Strip]:  # fmt: skip
        """Lines, with filters applied before they are kept."""
        key = (self._base, background, *filters)
        if key != self._finished_for:
            self.clear()
            self._finished_for, self._sides_of = key, ()
            only_styles = [each for each in filters if isinstance(each, OF_STYLES)]
            self._others = [each for each in filters if not isinstance(each, OF_STYLES)]
            self._finish = Finish(self._base, only_styles, background)
            self._finish_sides = Finish(Style.null(), only_styles, background)
        return super().render(styles, size, base_background, background, render_content_line, (), *others, **more)

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
                sides = self._finish_sides
                self._left = self._finished(segments[:place], sides, background)
                self._right = self._finished(segments[place + 1 :], sides, background)
        if self._top >= 0 and 0 <= y - self._top < content_size.height:
            line: Strip = render_content_line(y - self._top)
            if line.cell_length == content_size.width:
                finished = self._finished(line._segments, self._finish, background)
                return Strip([*self._left, *finished, *self._right], size.width)

        def on_base(number: int) -> Strip:
            strip: Strip = render_content_line(number)
            return strip.apply_style(self._base)

        whole = super().render_line(styles, y, *more, on_base, *others)
        return Strip(self._finished(whole._segments, self._finish_sides, background), whole.cell_length)

    def _finished(self, segments: list[Segment], finish: Finish, background: Color) -> list[Segment]:
        done = [Segment(text, finish[style], control) for text, style, control in segments]
        for each in self._others:
            done = each.apply(done, background)
        return done


def _is_simple(styles: Any, padding: Spacing, opacity: float) -> bool:
    """Whether nothing but a border is drawn around a line."""
    outlined = any(edge for edge, _ in styles.outline)
    hatched = styles.has_rule("hatch") and styles.hatch != "none"
    return not (any(padding) or outlined or hatched or styles.tint.a or styles.text_opacity != 1 or opacity != 1)
