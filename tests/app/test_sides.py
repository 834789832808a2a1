"""Lines of panes with their sides and filters: made in one go, and yet what Textual makes of them."""

from __future__ import annotations

import itertools

import pytest
from rich.segment import Segment
from rich.style import Style
from textual._styles_cache import StylesCache
from textual.app import App
from textual.containers import Horizontal
from textual.filter import ANSIToTruecolor, DimFilter, LineFilter, Monochrome, NoColor
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tpuprof_tui.app.drawing.glyphs import AsciiFilter
from tpuprof_tui.app.panes import scrolling
from tpuprof_tui.app.panes.scrolling import SidesCache

SIDES = (
    "", "border: round red;", "border-left: wide $accent; color: $warning; text-style: bold;", "padding: 1 2;",
    "border: heavy white 50%; padding: 0 1; border-title-align: center;", "opacity: 60%;", "outline: solid blue;",
    "tint: red 30%;", "hatch: cross green;", "text-opacity: 40%;", "border-top: solid green; background: $panel 50%;",
    "width: 9; border: solid red; padding: 9;",
)  # fmt: skip
STYLES = tuple(
    Style.parse(text)
    for text in (
        "",
        "red",
        "#123456 on #fedcba",
        "dim blue",
        "bold reverse",
        "dim",
        "on bright_green",
        "not bold",
        "dim #ff00ff",
    )
)


class Shouting(LineFilter):
    """A filter that is not known, and changes texts."""

    def apply(self, segments, background):
        return [Segment(text.upper(), style, control) for text, style, control in segments]


class Pane(Widget):
    """Lines of many styles, some shorter than the pane, some longer."""

    DEFAULT_CSS = "Pane { width: 1fr; height: 1fr; background: $surface; color: $text; }"

    def __init__(self, cache: StylesCache, filters: list[LineFilter]) -> None:
        super().__init__()
        self._styles_cache = cache
        self.filters = filters
        self.plain = type(cache) is StylesCache
        self.shift = 0

    def on_mount(self):
        self.border_title = "Title"

    def get_line_filters(self):
        return self.filters

    def render_line(self, y):
        width = self.size.width + (0, 0, 0, -2, 3)[y % 5]
        segments = [
            Segment("é" + "x" * (place % 3), (*STYLES, None)[(place + y + self.shift) % 10]) for place in range(width)
        ]
        strip = Strip(segments).adjust_cell_length(max(width, 0))
        return strip.apply_style(self.rich_style) if self.plain else strip


class Both(App[None]):
    """A pane as Textual draws it, and beside it one as it is drawn here."""

    def __init__(self, filters):
        super().__init__()
        self.filters = filters

    def compose(self):
        with Horizontal():
            yield Pane(StylesCache(), self.filters)
            yield Pane(SidesCache(), self.filters)


def cells(strips):
    """Each cell of lines: character and style; runs may be divided otherwise. No style is one that sets nothing."""
    return [[(char, style or Style.null()) for text, style, _ in strip for char in text] for strip in strips]


def drawn(app):
    """What both panes show."""
    plain, ours = app.query(Pane)
    region = Region(0, 0, *plain.outer_size)
    return cells(plain.render_lines(region)), cells(ours.render_lines(region))


def filters_named(name, app):
    """Filters of lines."""
    theme = app.ansi_theme
    return {
        "none": [], "colour": [ANSIToTruecolor(theme)], "ascii": [ANSIToTruecolor(theme), AsciiFilter()],
        "monochrome": [ANSIToTruecolor(theme), Monochrome()], "no colour": [NoColor()],
        "dim": [ANSIToTruecolor(theme), DimFilter()], "unknown": [Shouting(), ANSIToTruecolor(theme)],
    }[name]  # fmt: skip


@pytest.mark.parametrize("name", ["none", "colour", "ascii", "monochrome", "no colour", "dim", "unknown"])
@pytest.mark.parametrize("sides", SIDES)
async def test_a_line_is_what_textual_makes_of_it(sides, name):
    filters: list[LineFilter] = []
    app = Both(filters)
    app.CSS = f"Pane {{ {sides} }}"
    async with app.run_test(size=(60, 14)) as pilot:
        filters += filters_named(name, app)
        app.refresh(repaint=True)
        await pilot.pause()
        plain, ours = drawn(app)
        assert plain == ours
        assert any(len(line) for line in plain)


async def test_a_line_changes_with_theme_style_and_filters():
    filters: list[LineFilter] = []
    app = Both(filters)
    async with app.run_test(size=(60, 14)) as pilot:
        seen = [drawn(app)]
        filters.append(NoColor())
        # nothing was told to be drawn anew: filters are asked for each time
        seen.append(drawn(app))
        filters.clear()
        app.theme = "textual-light"
        await pilot.pause()
        seen.append(drawn(app))
        for pane in app.query(Pane):
            pane.styles.border = ("double", "yellow")
        await pilot.pause()
        seen.append(drawn(app))
        for pane in app.query(Pane):
            pane.shift = 1
            pane.refresh(Region(0, 3, 10, 1))
        seen.append(drawn(app))
        assert all(plain == ours for plain, ours in seen)
        assert all(one[1] != other[1] for one, other in itertools.pairwise(seen))


async def test_few_styles_are_kept(monkeypatch):
    monkeypatch.setattr(scrolling, "MOST_STYLES", 3)
    app = Both([])
    async with app.run_test(size=(60, 14)):
        plain, ours = drawn(app)
        assert plain == ours
        cache = app.query(Pane).last()._styles_cache
        assert isinstance(cache, SidesCache)
        assert len(cache._finish) <= 3
