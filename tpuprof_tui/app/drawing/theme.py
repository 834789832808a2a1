"""Themes, and palettes: the styles of widgets that render their own lines, with and without colours.

Colour is never the only distinction: glyphs, letters and names carry the same information.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, convert, json
from rich.style import Style
from textual.color import Color
from textual.theme import Theme

if TYPE_CHECKING:
    from tpuprof_tui.model.vocabulary import Shades

#: Greatest brightness (0 to 1) of a colour that is legible on the light background.
_MAX_BRIGHTNESS: Final = 0.42


class Palette(Struct, frozen=True, dict=True):
    """Styles of widgets that render their own lines (`themes.json`)."""

    colour: bool  #: False: only attributes (bold, dim, reverse, underline) are used
    text: Style
    quiet: Style
    strong: Style
    title: Style
    key: Style
    good: Style
    caution: Style
    bad: Style
    compute: Style
    transfer: Style
    exposed: Style
    wait: Style
    sync: Style
    cursor: Style
    header: Style
    rule: Style
    chosen: Style
    row: Style
    row_blurred: Style
    bar: Style
    hidden: Style
    linked_event: Style
    waiting_background: str  #: Background of cells that are mostly waiting
    #: Whether cells show category letters as in ASCII mode, because colours alone are not distinct enough.
    lettered: bool
    label_colour: str  #: Text colour of names on filled cells
    shade_field: str  #: Field of ``Shades`` to use: ``dark``, ``paper`` or ``safe``
    #: Whether colours without that shade are darkened until they are legible on a light background.
    darkens_colours: bool
    #: cursor_cell, cursor_filled: Styles under the time cursor, for glyph cells and for filled cells.
    cursor_cell: str
    cursor_filled: str
    #: selected_cell, selected_filled: The same for the selected event.
    selected_cell: str
    selected_filled: str

    def shaded(self, shades: Shades) -> Style:
        """Style of a cell in the shade for this palette's background."""
        return Style.parse(self._shade(shades)) if self.colour else self.text

    def filled(self, shades: Shades) -> Style:
        """Style of an event that is wide enough to be labelled."""
        return Style.parse(f"{self.label_colour} on {self._shade(shades)}") if self.colour else Style(reverse=True)

    def _shade(self, shades: Shades) -> str:
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
    darkened = Color.parse(colour)
    for part in range(1, 12):
        if darkened.brightness <= _MAX_BRIGHTNESS:
            break
        darkened = Color.parse(colour).darken(part * 0.05)
    return darkened.hex


class _Theme(Struct, frozen=True):
    """A theme in the file: its name on the screen, and colours; of blurred borders and scroll bars under the mouse."""

    title: str
    dark: bool
    line: str
    hover: str
    colours: dict[str, Any]

    def of_textual(self, name: str) -> Theme:
        """The theme for Textual's own widgets."""
        accent, surface, raised, text = (self.colours[key] for key in ("accent", "surface", "panel", "foreground"))
        variables = {
            **dict.fromkeys(("border", "scrollbar-active"), accent),
            **dict.fromkeys(("border-blurred", "scrollbar"), self.line),
            **dict.fromkeys(("scrollbar-background", "scrollbar-corner-color", "scrollbar-background-hover",
                             "scrollbar-background-active"), surface),
            **dict.fromkeys(("block-cursor-background", "block-cursor-blurred-background"), raised),
            **dict.fromkeys(("block-cursor-foreground", "block-cursor-blurred-foreground"), text),
            "scrollbar-hover": self.hover, "block-cursor-text-style": "bold",
        }  # fmt: skip
        return Theme(name=f"tpuprof-{name}", dark=self.dark, variables=variables, **self.colours)


class _Colours(Struct, frozen=True):
    """The file."""

    themes: dict[str, _Theme]
    palettes: dict[str, dict[str, str | bool]]  #: What differs from the first one
    fifths: list[list[str]]  #: Names, letters and shades of fifths of a share
    #: Tints (shades on a light background) of kernel functions and other names, which no operation uses.
    names: list[list[str]]

    def palette(self, name: str) -> Palette:
        values = {**next(iter(self.palettes.values())), **self.palettes[name]}
        return convert(values, Palette, dec_hook=lambda _, text: Style.parse(text))


COLOURS: Final = json.decode(Path(__file__).with_name("themes.json").read_bytes(), type=_Colours)
#: Themes by name, in the order in which the key switches them.
THEMES: Final[dict[str, tuple[Theme, Palette]]] = {
    name: (theme.of_textual(name), COLOURS.palette(name)) for name, theme in COLOURS.themes.items()
}
#: Display names of the themes.
TITLES: Final = {name: theme.title for name, theme in COLOURS.themes.items()}
DARK: Final = THEMES["dark"][1]
#: The palette without colours.
PLAIN: Final = COLOURS.palette("plain")


def next_theme_name(name: str) -> str:
    """Name of the theme after another, cyclic."""
    names = list(THEMES)
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]
