"""The themes one can choose among: dark, light, and one that is safe for colour-blind eyes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from .theme import BACKGROUND, DARK, LINE, RAISED, SURFACE, TEXT, Family, Palette, engine_colour

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

#: Colours on paper, by engine and family: dark enough to be read.
_ON_PAPER: Final = (
    ("TIU", "#1f6fd0"), ("GDMA", "#1c8459"), ("SDMA", "#93760a"), ("CDMA", "#8a3fd1"), ("matmul", "#1f6fd0"),
    ("pool", "#0e7f86"), ("gather", "#8a3fd1"), ("arithmetic", "#24803f"), ("special", "#b5560b"),
    ("quantise", "#bb2d7c"), ("layout", "#8a6d00"), ("compare", "#4a55c7"), ("send", "#c42847"),
    ("receive", "#a8590f"), ("tensor move", "#1c8459"), ("matrix move", "#587d12"), ("move", "#77700f"),
    ("other", "#5d6878"),
    # of shares the darker is the more
    ("below 20%", "#7d8fc9"), ("20 to 40%", "#3f86b8"), ("40 to 60%", "#14776a"), ("60 to 80%", "#2f5f1f"),
    ("80% and more", "#4a2500"),
)  # fmt: skip
#: Okabe and Ito's colours: told apart with every kind of colour vision; letters and names tell the rest.
_SAFE: Final = (
    ("TIU", "#56b4e9"), ("GDMA", "#e69f00"), ("SDMA", "#f0e442"), ("CDMA", "#cc79a7"), ("matmul", "#56b4e9"),
    ("pool", "#009e73"), ("gather", "#cc79a7"), ("arithmetic", "#009e73"), ("special", "#d55e00"),
    ("quantise", "#cc79a7"), ("layout", "#f0e442"), ("compare", "#8fc7f0"), ("send", "#d55e00"),
    ("receive", "#e69f00"), ("tensor move", "#e69f00"), ("matrix move", "#f0e442"), ("move", "#e69f00"),
    ("other", "#b3b9c4"),
)  # fmt: skip


@dataclass(frozen=True)
class Tinted(Palette):
    """A palette with colours of its own for engines and families.

    Attributes:
        tints: Colour by name of an engine or a family.
        ground: What names on filled cells are written in.
        cursor_cell, cursor_filled: Backgrounds under the time cursor.
        selected_cell, selected_filled: Style of a selected cell, drawn and filled.
        inked: Whether colours that are not in ``tints`` are darkened until paper shows them.
    """

    tints: tuple[tuple[str, str], ...] = ()
    ground: str = BACKGROUND
    cursor_cell: str = "#4b5a70"
    cursor_filled: str = f"bold {BACKGROUND} on #cfd8e6"
    selected_cell: str = "bold #ffffff"
    selected_filled: str = f"bold {BACKGROUND} on #f4f7fb"
    inked: bool = False

    def _tint(self, name: str, otherwise: str) -> str:
        return self._by_name.get(name) or (self._ink_of(otherwise) if self.inked else otherwise)

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return dict(self.tints)

    @cached_property
    def _inks(self) -> dict[str, str]:
        """Colours made so far; as few as there are colours in the program."""
        return {}

    def _ink_of(self, colour: str) -> str:
        if colour not in self._inks:
            self._inks[colour] = _inked(colour)
        return self._inks[colour]

    def engine(self, engine: str) -> Style:
        """Style of an engine's work."""
        return Style.parse(self._tint(engine, engine_colour(engine)))

    def family(self, family: Family) -> Style:
        """Style of an instruction's cell."""
        return Style.parse(self._tint(family.name, family.colour))

    def filled(self, family: Family) -> Style:
        """Style of an instruction wide enough to carry its name."""
        return Style.parse(f"{self.ground} on {self._tint(family.name, family.colour)}")

    def on_cursor(self, style: Style) -> Style:
        """Style of a filled cell under the time cursor."""
        return style + Style.parse(self.cursor_filled if style.bgcolor is not None else f"on {self.cursor_cell}")

    def on_selected(self, style: Style) -> Style:
        """Style of a cell of the selected instruction."""
        return Style.parse(self.selected_filled if style.bgcolor is not None else self.selected_cell)


def _inked(colour: str) -> str:
    """A colour as dark as paper needs it to be read."""
    ink = Color.parse(colour)
    for part in range(1, 12):
        if ink.brightness <= _INK_BRIGHTNESS:
            break
        ink = Color.parse(colour).darken(part * 0.05)
    return ink.hex


def _light() -> Palette:
    style = Style.parse
    return Tinted(
        text=style(_INK), quiet=style(_GREY), strong=style(f"bold {_INK}"), title=style(f"bold {_BLUE}"),
        key=style(f"bold {_BLUE}"), good=style(_GREEN), caution=style(_OCHRE), bad=style(_RED),
        compute=style("#1f6fd0"), transfer=style("#1c8459"), exposed=style("#b5560b"), wait=style("#7c8796"),
        sync=style("#b0466a"), cursor=style(_INK), header=style(f"bold {_GREY} on {_FOLD}"), rule=style(_HAIR),
        chosen=style(f"bold {_BLUE} on {_FOLD}"), row=style("on #cfe0f5"), row_blurred=style(f"bold on {_FOLD}"),
        bar=style(f"{_GREY} on {_FOLD}"), tints=_ON_PAPER, ground="#ffffff", cursor_cell="#c5cedb",
        cursor_filled=f"bold #ffffff on {_INK}", selected_cell="bold #000000",
        selected_filled="bold #ffffff on #0b1220", hidden=style("#b4bac3"), waited="#e2e6ec", inked=True,
        tie=style(f"bold #ffffff on {_OCHRE}"),
    )  # fmt: skip


def _safe() -> Palette:
    style = Style.parse
    return Tinted(
        good=style("#56b4e9"), caution=style("#f0e442"), bad=style("#ff8c42"), compute=style("#56b4e9"),
        transfer=style("#e69f00"), exposed=style("#d55e00"), wait=style("#8593a8"), sync=style("#cc79a7"), tints=_SAFE,
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
