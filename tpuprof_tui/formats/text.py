"""Numbers and names as people read them. No numpy, no Textual: the first frame needs this module."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

#: Shown where nothing is known.
MISSING: Final = "-"
#: Prefix of figures that rest on guesswork.
GUESS: Final = "~"
ELLIPSIS: Final = "…"
#: What panes say that have nothing to tell about such a capture.
NO_TIMES: Final = "No hardware records: the commands have no times. 2 shows them in a table, 4 the problems."
EMPTY_CAPTURE: Final = "This capture holds no instructions: 4 shows the problems, O opens another capture."

#: Everything a terminal could act on or whose width terminals do not agree about.
_UNSAFE_CATEGORIES: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}
#: What turns the writing direction: names can be made to look like others with it.
_TURNS: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SUSPECT: Final = re.compile(r"[^\x20-\x7e\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7a3]")


# a function of the text alone, asked for the same names with every frame; it keeps no capture, and so many at most
@lru_cache(4096)
def clean(text: str) -> str:
    """``text`` with everything that could steer a terminal made visible and harmless.

    Characters that turn the writing direction are written as escapes; control characters, joiners and lone surrogates
    become the replacement character, line breaks and tabs spaces; variation selectors, which change widths, and piles
    of combining marks are dropped.
    """
    if not _SUSPECT.search(text):
        return text
    kept: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if char in "\t\n\r":
            kept.append(" ")
        elif _TURNS.match(char):
            kept.append(f"\\u{ord(char):04x}")
        elif category in _UNSAFE_CATEGORIES:
            kept.append("\ufffd")
        elif marks > 2 or "\ufe00" <= char <= "\ufe0f":
            continue
        else:
            kept.append(char)
    return "".join(kept)


def cell_len(text: str) -> int:
    """Cells that a terminal gives a text: two for each wide character."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len as measured  # only wide characters need its table

    return measured(text)


def set_cell_size(text: str, total: int) -> str:
    """``text`` cut or padded with blanks to ``total`` cells."""
    from rich.cells import set_cell_size as sized

    return sized(text, total)


def fit(text: str, width: int, *, right: bool = False) -> str:
    """``text`` in exactly ``width`` cells: padded, or cut with an ellipsis. Wide characters count as two."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + ELLIPSIS
    padding = " " * (width - length)
    return padding + text if right else text + padding


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` cells, broken at blanks where possible; what is wider by itself is an ellipsis."""
    width = max(width, 1)
    lines: list[str] = []
    line = ""
    for word in text.split():
        while cell_len(word) > width:
            head = set_cell_size(word, width if not line else max(width - cell_len(line) - 1, 0)).rstrip()
            if not head:
                lines.append(line or ELLIPSIS)
                line, word = "", word if line else word[1:]
                continue
            lines.append(f"{line} {head}".strip())
            line, word = "", word[len(head) :]
        if line and cell_len(line) + 1 + cell_len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line] if line or not lines else lines


@dataclass(frozen=True)
class TimeUnit:
    """A unit of time: its name and length in ns."""

    name: str
    ns: int


NS: Final = TimeUnit("ns", 1)
UNITS: Final = (NS, TimeUnit("us", 1_000), TimeUnit("ms", 1_000_000), TimeUnit("s", 1_000_000_000))


def time_unit(ns: int, units: Sequence[TimeUnit] = UNITS) -> TimeUnit:
    """The largest unit in which ``ns`` is at least 1; ``units`` ascending."""
    size = abs(ns)
    return next((unit for unit in reversed(units) if size >= unit.ns), units[0])


def time_decimals(unit: TimeUnit, resolution_ns: int) -> int:
    """Digits after the point that tell times ``resolution_ns`` apart in ``unit``."""
    decimals = 0
    step = unit.ns
    while step > max(resolution_ns, 1):
        step //= 10
        decimals += 1
    return decimals


def time_number(ns: int, unit: TimeUnit, decimals: int) -> str:
    """A time in ``unit``, without its name; exact integer arithmetic, so that no digit is made up."""
    if unit.ns == 1:
        return f"{ns:,}"
    scale = 10**decimals
    scaled = (abs(ns) * scale * 2 + unit.ns) // (unit.ns * 2)
    sign = "-" if ns < 0 and scaled else ""
    whole, rest = divmod(scaled, scale)
    return f"{sign}{whole:,}.{rest:0{decimals}d}" if decimals else f"{sign}{whole:,}"


def time_text(ns: int) -> str:
    """A time with its unit, in about four digits ("12.35 us")."""
    unit = time_unit(ns)
    whole = abs(ns) // unit.ns
    decimals = 0 if unit.ns == 1 else 3 if whole < 10 else 2 if whole < 100 else 1 if whole < 1000 else 0
    return f"{time_number(ns, unit, decimals)} {unit.name}"


def exact_time(ns: int, resolution_ns: int = 1) -> str:
    """A time with its unit and as many digits as ``resolution_ns`` asks for."""
    unit = time_unit(ns)
    return f"{time_number(ns, unit, min(time_decimals(unit, resolution_ns), 9))} {unit.name}"


def percent_text(share: float, *, guessed: bool = False) -> str:
    """A share (0 to 1) in percent, with the sign of guesswork."""
    percent = share * 100
    digits = f"{percent:.0f}" if percent >= 99.95 else f"{percent:.1f}"
    return f"{GUESS if guessed else ''}{digits}%"


def bytes_text(number: int | None) -> str:
    """Bytes in a binary unit that fits."""
    if number is None:
        return MISSING
    size = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:,.0f} B" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"


def in_sentence(label: str) -> str:
    """A label as it stands within a sentence, clean: ``core 3``, but ``GPU 0``."""
    label = clean(label)
    return label[:1].lower() + label[1:] if label[1:2].islower() else label


def plural(number: int, word: str) -> str:
    """``1 problem``, ``2 problems``."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
