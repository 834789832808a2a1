"""The characters to draw with, in Unicode and in ASCII, and the filter that transliterates output to ASCII."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter


class Glyphs(Struct, frozen=True):
    """A set of drawing characters, each one cell wide."""

    levels: str  #: Occupancy of a cell, nine characters from empty to full
    steps: str  #: Fill of the last cell of a bar, nine characters from empty to full
    #: wait, sync: Cells that hold waits or syncs but no work.
    wait: str
    sync: str
    edge: str  #: First cell of an event that is wide enough to be labelled
    cursor: str  #: The time cursor on an empty cell
    pointer: str  #: The time cursor on the ruler
    tick: str  #: A tick of the ruler
    mark: str  #: The selected lane or row
    #: up, down: Sort direction, and more lines above or below.
    up: str
    down: str
    rule: str  #: Horizontal line
    hidden: str  #: Events that a filter hides
    gap: str  #: Part of a comparison that one side does not have
    #: released, releases: Marks of the releaser of the selected event, and of what it released.
    released: str
    releases: str
    letters: bool  #: Whether a lone event that is too narrow for its name is drawn as its category letter


UNICODE: Final = Glyphs(
    levels=" ▁▂▃▄▅▆▇█", steps=" ▏▎▍▌▋▊▉█", wait="╌", sync="┊", edge="▏", cursor="│", pointer="▼", tick="╷", mark="▸",
    up="▲", down="▼", rule="─", hidden="·", gap="╱", released="◁", releases="▷", letters=False,
)  # fmt: skip
ASCII: Final = Glyphs(
    levels=" 12345678", steps=" ---++++#", wait="~", sync=":", edge="[", cursor="|", pointer="V", tick="'", mark=">",
    up="^", down="v", rule="-", hidden=".", gap="/", released="{", releases="}", letters=True,
)  # fmt: skip


def bar(share: float, width: int, glyphs: Glyphs) -> str:
    """A bar of ``width`` cells filled to ``share`` (0 to 1); any share above 0 is visible."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    if share > 0 and eighths == 0:
        eighths = 1
    full, rest = divmod(eighths, 8)
    text = glyphs.steps[8] * full + (glyphs.steps[rest] if rest else "")
    return text.ljust(width)[:width]


def stacked_bar(shares: Sequence[float], width: int) -> list[int]:
    """Number of cells of each part of a stacked bar, from the shares (0 to 1); their sum is at most ``width``."""
    ends = [round(min(total, 1.0) * width) for total in accumulate(shares)]
    return [end - start for start, end in pairwise([0, *ends])]


def wants_ascii(environment: Mapping[str, str]) -> bool:
    """Whether to use ASCII: the terminal type or the locale in ``environment`` does not support UTF-8."""
    if environment.get("TERM", "") in ("linux", "vt100", "vt220", "dumb"):
        return True
    locale = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "")
    return "utf8" not in locale.lower().replace("-", "")


_TRANSLITERATED: Final = str.maketrans({
    **dict.fromkeys("─━═╌╍┄┅┈┉╴╶╸╺╼╾▔▁", "-"),
    **dict.fromkeys("│┃║╎╏┆┇┊┋╵╷╹╻╽╿▏▎▍▕▌▐", "|"),
    **dict.fromkeys("┌┍┎┏┐┑┒┓└┕┖┗┘┙┚┛├┝┞┟┠┡┢┣┤┥┦┧┨┩┪┫┬┭┮┯┰┱┲┳┴┵┶┷┸┹┺┻┼╋╔╗╚╝╠╣╦╩╬╭╮╯╰", "+"),
    **dict.fromkeys("█▇▆▅▄▃▂▊▉▋▀▓▒▄■", "#"), "░": ".",
    "▲": "^", "▼": "v", "▶": ">", "▸": ">", "◀": "<", "◂": "<", "▾": "v", "▴": "^", "●": "*", "○": "o", "•": "*",
    "·": ".", "…": "~", "×": "x", "→": ">", "←": "<", "↑": "^", "↓": "v", "≥": ">", "≤": "<", "✓": "*", "µ": "u",
    "–": "-", "—": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "\u00a0": " ", "\ufffd": "?",
})  # fmt: skip


# cached: called for each segment of a frame
@lru_cache(8192)
def ascii_text(text: str) -> str:
    """Replaces every non-ASCII character by as many ASCII characters as it has cells."""
    if text.isascii():
        return text
    translated = text.translate(_TRANSLITERATED)
    return "".join(char if char.isascii() else "?" * cell_len(char) for char in translated)


class AsciiFilter(LineFilter):
    """Textual line filter that transliterates all output, including borders and scroll bars, to ASCII."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Returns the segments with transliterated texts of the same widths."""
        return [
            segment if segment.text.isascii() else Segment(ascii_text(segment.text), segment.style, segment.control)
            for segment in segments
        ]
