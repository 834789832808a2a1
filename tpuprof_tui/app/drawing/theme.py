"""The dark theme, and palettes: the styles of widgets that draw their own lines, with colours and without.

Nothing is told apart by colour alone: glyphs, letters and names say the same.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from rich.style import Style
from textual.theme import Theme

if TYPE_CHECKING:
    from tpuprof_tui.model.vocabulary import Shades

BACKGROUND: Final = "#10141b"
SURFACE: Final = "#161c26"
RAISED: Final = "#1f2835"
LINE: Final = "#334155"
TEXT: Final = "#d7dde8"
QUIET: Final = "#8593a8"
ACCENT: Final = "#5cb8ff"
GOOD: Final = "#4cc38a"
CAUTION: Final = "#f0b429"
BAD: Final = "#ff6b6b"

DARK: Final = Theme(
    name="tpuprof-dark", primary=ACCENT, secondary="#a78bfa", accent=ACCENT, warning=CAUTION, error=BAD, success=GOOD,
    foreground=TEXT, background=BACKGROUND, surface=SURFACE, panel=RAISED, dark=True,
    variables={"border": ACCENT, "border-blurred": LINE, "scrollbar": LINE, "scrollbar-background": SURFACE,
               "scrollbar-hover": QUIET, "scrollbar-active": ACCENT, "scrollbar-corner-color": SURFACE,
               "scrollbar-background-hover": SURFACE, "scrollbar-background-active": SURFACE,
               "block-cursor-background": RAISED, "block-cursor-foreground": TEXT, "block-cursor-text-style": "bold",
               "block-cursor-blurred-background": RAISED, "block-cursor-blurred-foreground": TEXT},
)  # fmt: skip


class Palette(Struct, frozen=True, dict=True):
    """Styles of widgets that draw their own lines.

    Attributes:
        colour: False: only attributes (bold, dim, reverse, underline) tell things apart.
        waited: Background of cells with more waiting than anything else.
        ground: What names on filled cells are written in.
        lettered: Letters stand in cells wherever ASCII has them: colours alone would not tell.
    """

    colour: bool = True
    text: Style = field(default_factory=lambda: Style.parse(TEXT))
    quiet: Style = field(default_factory=lambda: Style.parse(QUIET))
    strong: Style = field(default_factory=lambda: Style.parse(f"bold {TEXT}"))
    title: Style = field(default_factory=lambda: Style.parse(f"bold {ACCENT}"))
    key: Style = field(default_factory=lambda: Style.parse(f"bold {ACCENT}"))
    good: Style = field(default_factory=lambda: Style.parse(GOOD))
    caution: Style = field(default_factory=lambda: Style.parse(CAUTION))
    bad: Style = field(default_factory=lambda: Style.parse(BAD))
    compute: Style = field(default_factory=lambda: Style.parse("#4f9cf9"))
    transfer: Style = field(default_factory=lambda: Style.parse("#3fb68b"))
    exposed: Style = field(default_factory=lambda: Style.parse("#f59e57"))
    wait: Style = field(default_factory=lambda: Style.parse("#6b7a90"))
    sync: Style = field(default_factory=lambda: Style.parse("#e0849b"))
    cursor: Style = field(default_factory=lambda: Style.parse("#e8edf5"))
    header: Style = field(default_factory=lambda: Style.parse(f"bold {QUIET} on {RAISED}"))
    rule: Style = field(default_factory=lambda: Style.parse(LINE))
    chosen: Style = field(default_factory=lambda: Style.parse(f"bold {ACCENT} on {RAISED}"))
    row: Style = field(default_factory=lambda: Style.parse("on #27405c"))
    row_blurred: Style = field(default_factory=lambda: Style.parse(f"bold on {RAISED}"))
    bar: Style = field(default_factory=lambda: Style.parse(f"{QUIET} on {RAISED}"))
    hidden: Style = field(default_factory=lambda: Style.parse("#4a576b"))
    tie: Style = field(default_factory=lambda: Style.parse(f"bold {BACKGROUND} on {CAUTION}"))
    waited: str = "#222a36"
    lettered: bool = False
    ground: str = BACKGROUND

    def shaded(self, shades: Shades) -> Style:
        """Style of a cell in the colour that suits the ground."""
        return Style.parse(self.shade(shades)) if self.colour else self.text

    def filled(self, shades: Shades) -> Style:
        """Style of an event wide enough to carry its name."""
        return Style.parse(f"{self.ground} on {self.shade(shades)}") if self.colour else Style(reverse=True)

    def shade(self, shades: Shades) -> str:
        """The colour that suits the ground."""
        return shades.dark

    def tinted(self, style: Style) -> Style:
        """Style of a cell with work and more waiting."""
        found = self._tinted.get(style)
        if found is None:
            found = self._tinted[style] = style + Style(bgcolor=self.waited) if self.colour else style
        return found

    @cached_property
    def _tinted(self) -> dict[Style, Style]:
        """Cache of styles: at most as many as the palette has."""
        return {}

    def on_cursor(self, style: Style) -> Style:
        """Style of a filled cell under the time cursor."""
        if self.colour:
            return style + Style.parse(f"bold {BACKGROUND} on #cfd8e6" if style.bgcolor is not None else "on #4b5a70")
        return style + Style(reverse=not style.reverse, bold=True)

    def on_selected(self, style: Style) -> Style:
        """Style of a cell of the selected event."""
        if self.colour:
            return Style.parse(f"bold {BACKGROUND} on #f4f7fb") if style.bgcolor else Style.parse("bold #ffffff")
        return style + Style(bold=True, underline=True)

    def severity(self, severity: int) -> Style:
        """Style of a problem, by its severity (0 note, 1 warning, 2 error)."""
        return (self.quiet, self.caution, self.bad)[min(max(severity, 0), 2)]


def plain_palette() -> Palette:
    """The palette without any colour."""
    normal, dim, bold = Style(dim=False), Style(dim=True), Style(bold=True)
    return Palette(
        colour=False, text=normal, quiet=dim, strong=bold, title=bold, key=bold, good=normal, caution=bold, bad=bold,
        compute=normal, transfer=normal, exposed=bold, wait=dim, sync=normal, cursor=bold,
        header=Style(bold=True, underline=True), rule=dim, chosen=Style(bold=True, reverse=True),
        row=Style(reverse=True), row_blurred=Style(underline=True), bar=Style(reverse=True),
        hidden=dim, tie=Style(bold=True, reverse=True),
    )  # fmt: skip
