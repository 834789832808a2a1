"""Themes, and palettes: the styles of widgets that render their own lines, with and without colours.

Colour is never the only distinction: glyphs, letters and names carry the same information.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from rich.style import Style
from textual.color import Color
from textual.theme import Theme

if TYPE_CHECKING:
    from tpuprof_tui.model.vocabulary import Shades

_BACKGROUND: Final = "#10141b"
_SURFACE: Final = "#161c26"
_RAISED: Final = "#1f2835"
_LINE: Final = "#334155"
_TEXT: Final = "#d7dde8"
_QUIET: Final = "#8593a8"
_ACCENT: Final = "#5cb8ff"
_GOOD, _CAUTION, _BAD = "#4cc38a", "#f0b429", "#ff6b6b"
#: Colours of the light theme.
_PAPER: Final = "#fbfbf8"
_SHEET: Final = "#f1f1ec"
_FOLD: Final = "#e3e4de"
_HAIR: Final = "#b9bec6"
_INK: Final = "#1d2430"
_GREY: Final = "#5d6878"
_BLUE: Final = "#0b62b8"
_GREEN, _OCHRE, _RED = "#14794b", "#8a5a00", "#b3261e"
#: Colours of the colour-blind safe theme.
_SKY, _YELLOW, _ORANGE = "#56b4e9", "#f0e442", "#ff8c42"
#: Greatest brightness (0 to 1) of a colour that is legible on the light background.
_MAX_BRIGHTNESS: Final = 0.42


def _style(text: str) -> Style:
    """A palette field with this style as its default."""
    style: Style = field(default_factory=lambda: Style.parse(text))
    return style


class Palette(Struct, frozen=True, dict=True):
    """Styles of widgets that render their own lines; the defaults are those of the dark theme.

    Attributes:
        colour: False: only attributes (bold, dim, reverse, underline) are used.
        waiting_background: Background of cells that are mostly waiting.
        label_colour: Text colour of names on filled cells.
        lettered: Whether cells show category letters as in ASCII mode, because colours alone are not distinct enough.
        shade_field: Field of ``Shades`` to use: ``dark``, ``paper`` or ``safe``.
        darkens_colours: Whether colours without that shade are darkened until they are legible on a light background.
        cursor_cell, cursor_filled: Styles under the time cursor, for glyph cells and for filled cells.
        selected_cell, selected_filled: The same for the selected event.
    """

    colour: bool = True
    text: Style = _style(_TEXT)
    quiet: Style = _style(_QUIET)
    strong: Style = _style(f"bold {_TEXT}")
    title: Style = _style(f"bold {_ACCENT}")
    key: Style = _style(f"bold {_ACCENT}")
    good: Style = _style(_GOOD)
    caution: Style = _style(_CAUTION)
    bad: Style = _style(_BAD)
    compute: Style = _style("#4f9cf9")
    transfer: Style = _style("#3fb68b")
    exposed: Style = _style("#f59e57")
    wait: Style = _style("#6b7a90")
    sync: Style = _style("#e0849b")
    cursor: Style = _style("#e8edf5")
    header: Style = _style(f"bold {_QUIET} on {_RAISED}")
    rule: Style = _style(_LINE)
    chosen: Style = _style(f"bold {_ACCENT} on {_RAISED}")
    row: Style = _style("on #27405c")
    row_blurred: Style = _style(f"bold on {_RAISED}")
    bar: Style = _style(f"{_QUIET} on {_RAISED}")
    hidden: Style = _style("#4a576b")
    linked_event: Style = _style(f"bold {_BACKGROUND} on {_CAUTION}")
    waiting_background: str = "#222a36"
    lettered: bool = False
    label_colour: str = _BACKGROUND
    shade_field: str = "dark"
    darkens_colours: bool = False
    cursor_cell: str = "on #4b5a70"
    cursor_filled: str = f"bold {_BACKGROUND} on #cfd8e6"
    selected_cell: str = "bold #ffffff"
    selected_filled: str = f"bold {_BACKGROUND} on #f4f7fb"

    def shaded(self, shades: Shades) -> Style:
        """Style of a cell in the shade for this palette's background."""
        return Style.parse(self._shade(shades)) if self.colour else self.text

    def filled(self, shades: Shades) -> Style:
        """Style of an event that is wide enough to be labelled."""
        return Style.parse(f"{self.label_colour} on {self._shade(shades)}") if self.colour else Style(reverse=True)

    def _shade(self, shades: Shades) -> str:
        """Colour for this palette's background."""
        shade = getattr(shades, self.shade_field)
        if shade or not self.darkens_colours:
            return shade or shades.dark
        if shades.dark not in self._darkened_colours:
            self._darkened_colours[shades.dark] = _darkened(shades.dark)
        return self._darkened_colours[shades.dark]

    @cached_property
    def _darkened_colours(self) -> dict[str, str]:
        """Cache of darkened colours, by colour; bounded by the number of colours in the program."""
        return {}

    def tinted(self, style: Style) -> Style:
        """Style of a cell with some work but mostly waiting."""
        return style + Style.parse(f"on {self.waiting_background}") if self.colour else style

    def on_cursor(self, style: Style) -> Style:
        """Style of a cell under the time cursor."""
        if not self.colour:
            return style + Style(reverse=not style.reverse, bold=True)
        return style + Style.parse(self.cursor_cell if style.bgcolor is None else self.cursor_filled)

    def on_selected(self, style: Style) -> Style:
        """Style of a cell of the selected event."""
        if not self.colour:
            return style + Style(bold=True, underline=True)
        return Style.parse(self.selected_cell if style.bgcolor is None else self.selected_filled)

    def severity(self, severity: int) -> Style:
        """Style of a problem by severity (0 note, 1 warning, 2 error)."""
        return (self.quiet, self.caution, self.bad)[min(max(severity, 0), 2)]

    def level(self, share: float) -> Style:
        """Style of a text by a share, 0 to 1: quiet below 0.6, strong from 0.8."""
        return self.strong if share >= 0.8 else self.text if share >= 0.6 else self.quiet


def _darkened(colour: str) -> str:
    """Darkens a colour until it is legible on a light background."""
    darkened = Color.parse(colour)
    for part in range(1, 12):
        if darkened.brightness <= _MAX_BRIGHTNESS:
            break
        darkened = Color.parse(colour).darken(part * 0.05)
    return darkened.hex


def plain_palette() -> Palette:
    """The palette without colours."""
    normal, dim, bold = Style(dim=False), Style(dim=True), Style(bold=True)
    return Palette(
        colour=False, text=normal, quiet=dim, strong=bold, title=bold, key=bold, good=normal, caution=bold, bad=bold,
        compute=normal, transfer=normal, exposed=bold, wait=dim, sync=normal, cursor=bold,
        header=Style(bold=True, underline=True), rule=dim, chosen=Style(bold=True, reverse=True),
        row=Style(reverse=True), row_blurred=Style(underline=True), bar=Style(reverse=True),
        hidden=dim, linked_event=Style(bold=True, reverse=True),
    )  # fmt: skip


def _light() -> Palette:
    style = Style.parse
    return Palette(
        text=style(_INK), quiet=style(_GREY), strong=style(f"bold {_INK}"), title=style(f"bold {_BLUE}"),
        key=style(f"bold {_BLUE}"), good=style(_GREEN), caution=style(_OCHRE), bad=style(_RED),
        compute=style("#1f6fd0"), transfer=style("#1c8459"), exposed=style("#b5560b"), wait=style("#7c8796"),
        sync=style("#b0466a"), cursor=style(_INK), header=style(f"bold {_GREY} on {_FOLD}"), rule=style(_HAIR),
        chosen=style(f"bold {_BLUE} on {_FOLD}"), row=style("on #cfe0f5"), row_blurred=style(f"bold on {_FOLD}"),
        bar=style(f"{_GREY} on {_FOLD}"), shade_field="paper", label_colour="#ffffff", cursor_cell="on #c5cedb",
        cursor_filled=f"bold #ffffff on {_INK}", selected_cell="bold #000000",
        selected_filled="bold #ffffff on #0b1220", hidden=style("#b4bac3"), waiting_background="#e2e6ec",
        darkens_colours=True, linked_event=style(f"bold #ffffff on {_OCHRE}"),
    )  # fmt: skip


def _safe() -> Palette:
    style = Style.parse
    return Palette(
        good=style(_SKY), caution=style(_YELLOW), bad=style(_ORANGE), compute=style(_SKY), transfer=style("#e69f00"),
        exposed=style("#d55e00"), wait=style("#8593a8"), sync=style("#cc79a7"), shade_field="safe",
        linked_event=style(f"bold {_BACKGROUND} on {_YELLOW}"), lettered=True,
    )  # fmt: skip


def _theme(
    name: str, accents: tuple[str, str, str], signals: tuple[str, str, str], text: str,
    grounds: tuple[str, str, str, str], *, dark: bool = True,
) -> Theme:  # fmt: skip
    (accent, second, hover), (good, caution, bad), (background, surface, raised, line) = accents, signals, grounds
    return Theme(
        name=f"tpuprof-{name}", primary=accent, secondary=second, accent=accent, warning=caution, error=bad,
        success=good, foreground=text, background=background, surface=surface, panel=raised, dark=dark,
        variables={"border": accent, "border-blurred": line, "scrollbar": line, "scrollbar-background": surface,
                   "scrollbar-hover": hover, "scrollbar-active": accent, "scrollbar-corner-color": surface,
                   "scrollbar-background-hover": surface, "scrollbar-background-active": surface,
                   "block-cursor-background": raised, "block-cursor-foreground": text,
                   "block-cursor-text-style": "bold", "block-cursor-blurred-background": raised,
                   "block-cursor-blurred-foreground": text},
    )  # fmt: skip


_NIGHT: Final = (_BACKGROUND, _SURFACE, _RAISED, _LINE)
#: Themes by name, in the order in which the key switches them.
THEMES: Final[dict[str, tuple[Theme, Palette]]] = {
    "dark": (_theme("dark", (_ACCENT, "#a78bfa", _QUIET), (_GOOD, _CAUTION, _BAD), _TEXT, _NIGHT), Palette()),
    "light": (
        _theme("light", (_BLUE,) * 3, (_GREEN, _OCHRE, _RED), _INK, (_PAPER, _SHEET, _FOLD, _HAIR), dark=False),
        _light(),
    ),
    "safe": (_theme("safe", (_SKY,) * 3, (_SKY, _YELLOW, _ORANGE), _TEXT, _NIGHT), _safe()),
}
#: Display names of the themes.
TITLES: Final = {"dark": "dark", "light": "light", "safe": "colour-blind safe"}


def next_theme_name(name: str) -> str:
    """Name of the theme after another, cyclic."""
    names = list(THEMES)
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]
