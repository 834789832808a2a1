"""The themes one can choose among: dark, light, and one that is safe for colour-blind eyes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from .theme import BACKGROUND, DARK, LINE, RAISED, SURFACE, TEXT, Palette

if TYPE_CHECKING:
    from tpuprof_tui.model.vocabulary import Shades

_PAPER: Final = "#fbfbf8"
_SHEET: Final = "#f1f1ec"
_FOLD: Final = "#e3e4de"
_INK: Final = "#1d2430"
_GREY: Final = "#5d6878"
_HAIR: Final = "#b9bec6"
_BLUE: Final = "#0b62b8"
_GREEN: Final = "#14794b"
_OCHRE: Final = "#8a5a00"
_RED: Final = "#b3261e"
#: Brighter colours than this are hard to see on paper.
_INK_BRIGHTNESS: Final = 0.42


class ThemePalette(Palette, frozen=True, dict=True):
    """A palette for a light background, or with colours that all eyes can tell apart.

    Attributes:
        suits: Which of the shades it takes, ``paper`` or ``safe``.
        cursor_cell, cursor_filled: Backgrounds under the time cursor.
        selected_cell, selected_filled: Style of a selected cell, drawn and filled.
        inked: Whether colours without such a shade are darkened until paper shows them.
    """

    suits: str = "safe"
    cursor_cell: str = "#4b5a70"
    cursor_filled: str = f"bold {BACKGROUND} on #cfd8e6"
    selected_cell: str = "bold #ffffff"
    selected_filled: str = f"bold {BACKGROUND} on #f4f7fb"
    inked: bool = False

    def shade(self, shades: Shades) -> str:
        """The colour that suits the ground."""
        return getattr(shades, self.suits) or (self._ink_of(shades.dark) if self.inked else shades.dark)

    @cached_property
    def _inks(self) -> dict[str, str]:
        """Cache of colours: at most as many as the program has."""
        return {}

    def _ink_of(self, colour: str) -> str:
        if colour not in self._inks:
            self._inks[colour] = _inked(colour)
        return self._inks[colour]

    def on_cursor(self, style: Style) -> Style:
        """Style of a filled cell under the time cursor."""
        return style + Style.parse(self.cursor_filled if style.bgcolor is not None else f"on {self.cursor_cell}")

    def on_selected(self, style: Style) -> Style:
        """Style of a cell of the selected event."""
        return Style.parse(self.selected_filled if style.bgcolor is not None else self.selected_cell)


def _inked(colour: str) -> str:
    """A colour made dark enough to be read on a light background."""
    ink = Color.parse(colour)
    for part in range(1, 12):
        if ink.brightness <= _INK_BRIGHTNESS:
            break
        ink = Color.parse(colour).darken(part * 0.05)
    return ink.hex


def _light() -> Palette:
    style = Style.parse
    return ThemePalette(
        text=style(_INK), quiet=style(_GREY), strong=style(f"bold {_INK}"), title=style(f"bold {_BLUE}"),
        key=style(f"bold {_BLUE}"), good=style(_GREEN), caution=style(_OCHRE), bad=style(_RED),
        compute=style("#1f6fd0"), transfer=style("#1c8459"), exposed=style("#b5560b"), wait=style("#7c8796"),
        sync=style("#b0466a"), cursor=style(_INK), header=style(f"bold {_GREY} on {_FOLD}"), rule=style(_HAIR),
        chosen=style(f"bold {_BLUE} on {_FOLD}"), row=style("on #cfe0f5"), row_blurred=style(f"bold on {_FOLD}"),
        bar=style(f"{_GREY} on {_FOLD}"), suits="paper", ground="#ffffff", cursor_cell="#c5cedb",
        cursor_filled=f"bold #ffffff on {_INK}", selected_cell="bold #000000",
        selected_filled="bold #ffffff on #0b1220", hidden=style("#b4bac3"), waited="#e2e6ec", inked=True,
        tie=style(f"bold #ffffff on {_OCHRE}"),
    )  # fmt: skip


def _safe() -> Palette:
    style = Style.parse
    return ThemePalette(
        good=style("#56b4e9"), caution=style("#f0e442"), bad=style("#ff8c42"), compute=style("#56b4e9"),
        transfer=style("#e69f00"), exposed=style("#d55e00"), wait=style("#8593a8"), sync=style("#cc79a7"), suits="safe",
        tie=style(f"bold {BACKGROUND} on #f0e442"), lettered=True,
    )  # fmt: skip


def _theme(name: str, dark: bool, accent: str, text: str, grounds: tuple[str, str, str], line: str) -> Theme:
    background, surface, raised = grounds
    return Theme(
        name=name, primary=accent, secondary=accent, accent=accent, warning=_OCHRE if not dark else "#f0e442",
        error=_RED if not dark else "#ff8c42", success=_GREEN if not dark else "#56b4e9", foreground=text,
        background=background, surface=surface, panel=raised, dark=dark,
        variables={"border": accent, "border-blurred": line, "scrollbar": line, "scrollbar-background": surface,
                   "scrollbar-hover": accent, "scrollbar-active": accent, "scrollbar-corner-color": surface,
                   "scrollbar-background-hover": surface, "scrollbar-background-active": surface,
                   "block-cursor-background": raised, "block-cursor-foreground": text,
                   "block-cursor-text-style": "bold", "block-cursor-blurred-background": raised,
                   "block-cursor-blurred-foreground": text},
    )  # fmt: skip


#: Themes by the name people choose them by, in the order a key goes through them.
THEMES: Final[dict[str, tuple[Theme, Palette]]] = {
    "dark": (DARK, Palette()),
    "light": (_theme("tpuprof-light", False, _BLUE, _INK, (_PAPER, _SHEET, _FOLD), _HAIR), _light()),
    "safe": (_theme("tpuprof-safe", True, "#56b4e9", TEXT, (BACKGROUND, SURFACE, RAISED), LINE), _safe()),
}
#: What they are called on the screen.
TITLES: Final = {"dark": "dark", "light": "light", "safe": "colour-blind safe"}


def after(name: str) -> str:
    """The theme that follows another."""
    names = list(THEMES)
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]
