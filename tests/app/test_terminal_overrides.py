"""What is overridden of Textual's private parts: that these are still as expected, and that what shows is the same."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import random

import pytest
from profiles import small_profile
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual._styles_cache import StylesCache
from textual.app import App
from textual.command import CommandPalette
from textual.containers import Horizontal
from textual.css.styles import RenderStyles
from textual.drivers.headless_driver import HeadlessDriver
from textual.filter import ANSIToTruecolor, DimFilter, LineFilter, NoColor
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import OptionList
from vt import Terminal

from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.app.terminal.changed_cells import SgrEncoder, TerminalCells, changed_span
from tpuprof_tui.app.terminal.pane_lines import PaneStylesCache

# what is relied on


def parameters(function):
    return list(inspect.signature(function).parameters)


def attributes(kind):
    """Names that an object has from the beginning."""
    return set(vars(kind()))


RELIED_ON = {
    "App._display": lambda: parameters(App._display) == ["self", "screen", "renderable"],
    "App._handle_exception": lambda: parameters(App._handle_exception) == ["self", "error"],
    "Compositor.render_update": lambda: (
        parameters(Compositor.render_update) == ["self", "full", "screen_stack", "simplify"]
    ),
    "Compositor._dirty_regions": lambda: "_dirty_regions" in attributes(Compositor),
    "Compositor._regions_to_spans": lambda: (
        list(Compositor._regions_to_spans([Region(2, 1, 3, 1), Region(4, 1, 3, 2)])) == [(1, 2, 7), (2, 4, 7)]
    ),
    "Compositor.layers_visible": lambda: isinstance(Compositor.layers_visible, property),
    "Screen._compositor": lambda: isinstance(Screen()._compositor, Compositor),
    "Widget._styles_cache": lambda: isinstance(Widget()._styles_cache, StylesCache),
    "Widget.render_lines": lambda: parameters(Widget.render_lines) == ["self", "crop"],
    "StylesCache.render_widget": lambda: parameters(StylesCache.render_widget) == ["self", "widget", "crop"],
    "StylesCache.render_line": lambda: parameters(StylesCache.render_line) == [
        "self", "styles", "y", "size", "content_size", "padding", "base_background", "background",
        "render_content_line", "border_title", "border_subtitle", "opacity", "ansi_theme", "native_ansi",
    ],
    "RenderStyles._cache_key": lambda: isinstance(RenderStyles._cache_key, property),
    "OptionList._on_click": lambda: parameters(OptionList._on_click) == ["self", "event"],
    "CommandPalette._action_command_list": lambda: (
        parameters(CommandPalette._action_command_list) == ["self", "action"]
    ),
    "CommandPalette._gather_commands": lambda: hasattr(CommandPalette._gather_commands, "__wrapped__"),
}  # fmt: skip


@pytest.mark.parametrize("name", RELIED_ON)
def test_textual_still_has(name):
    assert RELIED_ON[name]()


# changed cells

SYSTEMS = (ColorSystem.STANDARD, ColorSystem.EIGHT_BIT, ColorSystem.TRUECOLOR)
STYLES = [Style.null(), *map(Style.parse, (
    "red", "bold red", "red on blue", "on blue", "reverse", "dim", "bold", "#12ab56 on #101010", "underline #ffffff",
))]  # fmt: skip
TEXTS = ("a", "ab", "  ", "█▇▆", "───", "漢", "e\u0301", "x漢y", "12,345")


def strip_of(*parts):
    return Strip([Segment(text, style) for text, style in parts])


def shown_after(*drawings, size=(40, 6)):
    """What a terminal shows that got each drawing in full, and one that got what differs."""
    whole, spare = Terminal(*size), Terminal(*size)
    shown = TerminalCells()
    for pieces, system in drawings:
        whole.feed(SgrEncoder().sequences(pieces, system))
        spare.feed(shown.encoder.sequences(shown.take_changes(pieces), system))
    return whole.cells(), spare.cells()


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("seed", range(4))
def test_differences_lead_to_the_same_screen(seed, system):
    chance = random.Random(seed)

    def line():
        parts, width = [], 0
        while width < 34:
            text = chance.choice(TEXTS)
            parts.append((text, chance.choice(STYLES)))
            width += Segment(text).cell_length
        return strip_of(*parts).adjust_cell_length(36, Style.null())

    lines = [line() for _ in range(6)]
    drawings = []
    for _ in range(12):
        for place in chance.sample(range(6), 2):
            segments = list(lines[place])
            number = chance.randrange(len(segments))
            segments[number] = Segment(segments[number].text, chance.choice(STYLES))
            changed = Strip(segments) if chance.random() < 0.7 else line()
            lines[place] = changed
        cut = chance.choice((0, 10, 18))
        pieces = []
        for y, strip in enumerate(lines):
            parts = strip.divide([cut, 36]) if cut else [strip]
            x = 0
            for part in parts:
                pieces.append((y, x, part))
                x += part.cell_length
        drawings.append((pieces, system))
    whole, spare = shown_after(*drawings)
    assert spare == whole


def test_what_the_terminal_shows_is_not_sent_again():
    shown, line = TerminalCells(), strip_of(("some text", STYLES[1]))
    assert shown.take_changes([(0, 0, line)]) == [(0, 0, line)]
    assert shown.take_changes([(0, 0, strip_of(("some text", STYLES[1])))]) == []
    assert shown.take_changes([(1, 0, line)]) == [(1, 0, line)]
    shown.forget()
    assert shown.take_changes([(0, 0, line)]) == [(0, 0, line)]


def test_pieces_that_overlap_others_replace_them():
    shown = TerminalCells()
    left, right = strip_of(("abcde", STYLES[0])), strip_of(("fghij", STYLES[0]))
    shown.take_changes([(0, 0, left), (0, 5, right)])
    middle = strip_of(("-----", STYLES[0]))
    assert shown.take_changes([(0, 3, middle)]) == [(0, 3, middle)]
    assert shown.take_changes([(0, 0, left), (0, 5, right)]) == [(0, 0, left), (0, 5, right)]


@pytest.mark.parametrize(
    ("before", "after", "span"),
    [
        ([("abcdef", 0)], [("abXdef", 0)], (2, 3)),
        ([("abc", 0), ("def", 1)], [("abc", 0), ("def", 2)], (3, 6)),
        ([("ab", 0), ("cd", 0)], [("abcd", 0)], None),
        ([("█████", 1)], [("██", 1), ("x", 2), ("██", 1)], (2, 3)),
        ([("漢字", 1)], [("漢語", 1)], (0, 4)),
        ([("aaaa", 0)], [("aaaa", 0)], None),
    ],
)
def test_the_span_that_differs(before, after, span):
    strips = [strip_of(*((text, STYLES[number]) for text, number in parts)) for parts in (before, after)]
    assert changed_span(*strips) == span


def test_neighbours_of_one_colour_say_it_once():
    told = SgrEncoder().sequences(
        [(0, 0, strip_of(("a", STYLES[1]), ("b", STYLES[3]), ("c", STYLES[1]), ("d", STYLES[2]), ("e", STYLES[0])))],
        ColorSystem.STANDARD,
    )
    assert told == "\x1b[1;1H\x1b[31ma\x1b[44mb\x1b[0;31mc\x1b[0;1;31md\x1b[0me"


class Recording(HeadlessDriver):
    """A terminal that takes everything, as a real one does."""

    @property
    def is_headless(self) -> bool:
        return False

    def write(self, data: str) -> None:
        self._app.terminal.feed(data)

    def flush(self) -> None:
        pass


def looks(screen):
    """What the panes drew, as the terminal would show it when told everything."""
    terminal = Terminal(screen.size.width, screen.size.height)
    strips = screen._compositor.render_strips()
    terminal.feed(SgrEncoder().sequences([(y, 0, strip) for y, strip in enumerate(strips)], ColorSystem.TRUECOLOR))
    return terminal.cells()


KEYS = """
    w w d l l full_stop full_stop 2 j j pagedown G s 3 tab tab shift+tab t i ampersand m a t escape question_mark
    pagedown q colon escape Z Z b j q C L B T x q 4 j 1 0
"""


async def test_after_any_key_the_terminal_shows_what_the_panes_drew(monkeypatch):
    monkeypatch.setenv("COLORTERM", "truecolor")
    app = TpuprofApp(profile=small_profile(1, instructions=600))
    app.driver_class = Recording
    app.terminal = Terminal(120, 32)
    checked: list[str] = []

    async def equal():
        for _ in range(250):
            await asyncio.sleep(0.02)
            if not app.workers._workers and app.terminal.cells() == looks(app.screen):
                return True
        return False

    async def drive(pilot):
        try:
            while not isinstance(app.screen, ExplorerScreen):
                await asyncio.sleep(0.02)
            for key in KEYS.split():
                await pilot.press(key)
                assert await equal(), f"after {key}"
                checked.append(key)
        finally:
            app.exit(0)

    await app.run_async(size=(120, 32), auto_pilot=drive)
    assert checked == KEYS.split()


# lines that changed


def cells_of(strips):
    """Each cell of lines: character and style; runs may be divided otherwise."""
    return [
        [(char, style) for text, style, _ in strip for char in text] for strip in (each.simplify() for each in strips)
    ]


async def until_opened(pilot):
    while not isinstance(pilot.app.screen, ExplorerScreen):
        await pilot.pause(0.02)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def test_what_is_below_an_overlay_is_as_textual_draws_it():
    app = TpuprofApp(profile=small_profile(1, instructions=300))
    async with app.run_test(size=(120, 32)) as pilot:
        await until_opened(pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        screen = app.screen
        assert screen.has_class("help")
        region = Region(0, 0, 120, 32)
        drawn = screen.render_lines(region)
        screen.refresh()
        visible_screen_stack.set(app._background_screens)
        assert cells_of(drawn) == cells_of(Screen.render_lines(screen, region))


async def test_pieces_of_a_line_are_all_that_shows_of_each_pane():
    app = TpuprofApp(profile=small_profile(1, instructions=300))
    async with app.run_test(size=(120, 32)) as pilot:
        await until_opened(pilot)
        screen = app.screen
        for keys in ("", "t", "t full_stop", "Z", "Z question_mark", "escape ampersand"):
            for key in keys.split():
                await pilot.press(key)
            await pilot.pause()
            screen = app.screen
            whole = screen._compositor.render_strips()
            pieces = screen.line_compositor.drawn([(y, 0, 120) for y in range(32)])
            lines = [sorted((x, strip) for at, x, strip in pieces if at == y) for y in range(32)]
            assert [[char for _, strip in line for char in cells_of([strip])[0]] for line in lines] == cells_of(
                whole
            ), keys
            assert all(sum(strip.cell_length for _, strip in line) == 120 for line in lines)


async def test_a_moved_cursor_draws_the_panes_it_shows_in_alone():
    app = TpuprofApp(profile=small_profile(1, instructions=300))
    async with app.run_test(size=(120, 32)) as pilot:
        await until_opened(pilot)
        screen = app.screen
        place = screen.timeline.region
        pieces = screen.line_compositor.drawn([(y, place.x + 20, place.x + 21) for y in place.line_range])
        assert {(y, x) for y, x, _ in pieces} == {(y, place.x) for y in place.line_range}


# lines of panes

SIDES = (
    "", "border: round red;", "border-left: wide $accent; color: $warning; text-style: bold;", "padding: 1 2;",
    "border: heavy white 50%; padding: 0 1; border-title-align: center;", "opacity: 60%;", "outline: solid blue;",
    "tint: red 30%;", "hatch: cross green;", "text-opacity: 40%;", "border-top: solid green; background: $panel 50%;",
    "width: 9; border: solid red; padding: 9;",
)  # fmt: skip
LINE_STYLES = tuple(
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
            Segment("é" + "x" * (place % 3), (*LINE_STYLES, None)[(place + y + self.shift) % 10])
            for place in range(width)
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
            yield Pane(PaneStylesCache(), self.filters)


def styled_cells(strips):
    """Each cell of lines: character and style; runs may be divided otherwise. No style is one that sets nothing."""
    return [[(char, style or Style.null()) for text, style, _ in strip for char in text] for strip in strips]


def drawn(app):
    """What both panes show."""
    plain, ours = app.query(Pane)
    region = Region(0, 0, *plain.outer_size)
    return styled_cells(plain.render_lines(region)), styled_cells(ours.render_lines(region))


@pytest.mark.parametrize("sides", SIDES)
async def test_a_line_is_what_textual_makes_of_it(sides):
    filters: list[LineFilter] = []
    app = Both(filters)
    app.CSS = f"Pane {{ {sides} }}"
    async with app.run_test(size=(60, 14)) as pilot:
        filters += [ANSIToTruecolor(app.ansi_theme), DimFilter()]
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
