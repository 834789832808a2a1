"""The characters the screen is drawn with, in Unicode and in ASCII, and the filter that lets nothing else through."""

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
    """One set of characters, each one cell wide.

    Attributes:
        levels: Occupancy of a cell from nothing to full, nine characters.
        steps: Length of a bar's last cell from nothing to full, nine characters.
        wait, sync: What fills a cell that holds no work.
        edge: First cell of an event wide enough for its name.
        cursor: The time cursor where nothing runs.
        pointer: The time cursor on the ruler.
        tick: A tick of the ruler.
        mark: The selected lane or row.
        up, down: Direction of a sort, and that there is more.
        rule: Horizontal line.
        hidden: What a filter hides.
        gap: Where a side has nothing to show beside the other.
        released, releases: What released the selected event, and what it released.
        letters: A lone event too narrow for its name is drawn as the letter of its category.
    """

    levels: str
    steps: str
    wait: str
    sync: str
    edge: str
    cursor: str
    pointer: str
    tick: str
    mark: str
    up: str
    down: str
    rule: str
    hidden: str
    gap: str
    released: str
    releases: str
    letters: bool


UNICODE: Final = Glyphs(
    levels=" ▁▂▃▄▅▆▇█", steps=" ▏▎▍▌▋▊▉█", wait="╌", sync="┊", edge="▏", cursor="│", pointer="▼", tick="╷", mark="▸",
    up="▲", down="▼", rule="─", hidden="·", gap="╱", released="◁", releases="▷", letters=False,
)  # fmt: skip
ASCII: Final = Glyphs(
    levels=" 12345678", steps=" ---++++#", wait="~", sync=":", edge="[", cursor="|", pointer="V", tick="'", mark=">",
    up="^", down="v", rule="-", hidden=".", gap="/", released="{", releases="}", letters=True,
)  # fmt: skip


def bar(share: float, width: int, glyphs: Glyphs) -> str:
    """A bar of ``width`` cells filled to ``share`` (0 to 1); anything above nothing shows."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    if share > 0 and eighths == 0:
        eighths = 1
    full, rest = divmod(eighths, 8)
    text = glyphs.steps[8] * full + (glyphs.steps[rest] if rest else "")
    return text.ljust(width)[:width]


def stacked_bar(shares: Sequence[float], width: int) -> list[int]:
    """Cells of each part of a bar of ``width`` cells, given their shares (0 to 1); together no more than ``width``."""
    ends = [round(min(total, 1.0) * width) for total in accumulate(shares)]
    return [end - start for start, end in pairwise([0, *ends])]


def wants_ascii(environment: Mapping[str, str]) -> bool:
    """Whether a terminal with this environment cannot be trusted to show UTF-8."""
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


# a function of the text alone, asked for each piece of a frame
@lru_cache(8192)
def ascii_text(text: str) -> str:
    """``text`` with every character outside ASCII replaced by as many ASCII characters as it has cells."""
    if text.isascii():
        return text
    translated = text.translate(_TRANSLITERATED)
    return "".join(char if char.isascii() else "?" * cell_len(char) for char in translated)


class AsciiFilter(LineFilter):
    """Replaces every character outside ASCII before it goes to the terminal: in borders, scroll bars and names."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments with their texts transliterated; widths stay."""
        return [
            segment if segment.text.isascii() else Segment(ascii_text(segment.text), segment.style, segment.control)
            for segment in segments
        ]
