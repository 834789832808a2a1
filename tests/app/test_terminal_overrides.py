"""What is overridden of Textual's private parts: that these are still as expected, and that what shows is the same."""

from __future__ import annotations

import asyncio
import inspect
import random

import pytest
from profiles import small_profile
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.command import CommandPalette
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widgets import OptionList
from vt import Terminal

from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.app.terminal import SgrEncoder, TerminalCells, changed_span

# what is relied on


def parameters(function):
    return list(inspect.signature(function).parameters)


RELIED_ON = {
    "App._display": lambda: parameters(App._display) == ["self", "screen", "renderable"],
    "App._handle_exception": lambda: parameters(App._handle_exception) == ["self", "error"],
    "ChopsUpdate": lambda: parameters(ChopsUpdate.__init__) == ["self", "chops", "spans", "chop_ends"],
    "LayoutUpdate": lambda: parameters(LayoutUpdate.__init__) == ["self", "strips", "region"],
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


def known_cells(width, height):
    """Cells of a terminal of a size, none of them known."""
    shown = TerminalCells()
    shown.resized(Size(width, height))
    return shown


def shown_after(*drawings, size=(40, 6)):
    """What a terminal shows that got each drawing in full, and one that got what differs."""
    whole, sparing = Terminal(*size), Terminal(*size)
    shown = known_cells(*size)
    for pieces, system in drawings:
        whole.feed(SgrEncoder().sequences(pieces, system))
        sparing.feed(shown.encoder.sequences(shown.take_changes(pieces), system))
    return whole.cells(), sparing.cells()


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
    whole, sparing = shown_after(*drawings)
    assert sparing == whole


def test_what_the_terminal_shows_is_not_sent_again():
    shown, line = known_cells(9, 2), strip_of(("some text", STYLES[1]))
    assert shown.take_changes([(0, 0, line)]) == [(0, 0, line)]
    assert shown.take_changes([(0, 0, strip_of(("some text", STYLES[1])))]) == []
    assert shown.take_changes([(1, 0, line)]) == [(1, 0, line)]
    assert shown.wrap_update(None) is None
    assert shown.take_changes([(0, 0, line)]) == []


def test_after_any_other_output_everything_is_sent_again():
    shown, line = known_cells(9, 2), strip_of(("some text", STYLES[1]))
    shown.take_changes([(0, 0, line)])
    assert shown.wrap_update("other output") == "other output"
    assert shown.take_changes([(0, 0, line)]) == [(0, 0, line)]


def test_a_whole_screen_begins_in_the_first_column():
    update = LayoutUpdate([[strip_of(("some", STYLES[1])), strip_of((" text", STYLES[0]))]], Region(0, 0, 9, 1))
    difference, screen = TerminalCells().wrap_update(update), Terminal(9, 1)
    screen.feed(difference.render_segments(Console(color_system="truecolor")))
    whole, _ = shown_after(([(0, 0, Strip.join(update.strips[0]))], ColorSystem.TRUECOLOR), size=(9, 1))
    assert screen.cells() == whole


def test_pieces_that_overlap_others_replace_them():
    shown = known_cells(10, 1)
    left, right = strip_of(("abcde", STYLES[0])), strip_of(("fghij", STYLES[0]))
    shown.take_changes([(0, 0, left), (0, 5, right)])
    middle = strip_of(("-----", STYLES[0]))
    assert shown.take_changes([(0, 3, middle)]) == [(0, 3, middle)]
    assert shown.take_changes([(0, 0, left), (0, 5, right)]) == [(0, 3, left.crop(3)), (0, 5, right.crop(0, 3))]


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
    app = TpuprofApp(profile=small_profile(1, event_count=600))
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
