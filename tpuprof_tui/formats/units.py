"""Formats numbers with units; one convention for the screen, text tables, messages and the web page.

- *Bytes* in binary units (KiB, MiB, GiB, TiB) with one decimal: memories, buffers and tiles are powers of two,
  ``ls -h`` and ``du -h`` use these units, and filters accept the same spelling.
- *Bandwidths* in GB/s, 10^9 bytes per second, two decimals: the unit of data sheets, and equal to bytes per ns.
- *Times* in ns, us, ms or s, in ASCII, so that they can be typed. Single times have about four digits; times of a
  column share one unit, in which the longest is at least ten, with three decimals.
- *Counts* with commas as thousands separators.
- *Shares* in percent with one decimal, without decimals from 99.95 % on.
- Guesses begin with ``~``, missing values are ``-``.

The web page implements the same in ``text.js``; `formats.parsing` and the filters accept these units as input. Files
for programs hold plain ns, bytes and shares. Imports neither numpy nor Textual because the first frame needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

#: Text of missing values.
MISSING: Final = "-"
#: Prefix of guessed figures.
GUESS: Final = "~"


class TimeUnit(Struct, frozen=True):
    """A unit of time: its name and length in ns."""

    name: str
    ns: int

    def number(self, ns: float) -> str:
        """A time in this unit, without the unit's name, for columns: three decimals; ns are whole."""
        return time_number(round(ns), self, 3)

    def text(self, ns: float) -> str:
        """A time in this unit, with the unit's name."""
        return f"{self.number(ns)} {self.name}"


NS: Final = TimeUnit("ns", 1)
UNITS: Final = (NS, TimeUnit("us", 1_000), TimeUnit("ms", 1_000_000), TimeUnit("s", 1_000_000_000))
#: Units of bytes, each 1024 times the previous one.
BYTE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")

_PREFIXES: Final = ("", "k", "M", "G", "T", "P")

#: Accepted unit suffixes in lower case and their factors, by the unit of the compared quantity; "": any other.
TYPED: Final[Mapping[str, Mapping[str, float]]] = {
    "ns": {"": 1, **{unit.name: unit.ns for unit in UNITS}},
    "B": {"": 1, "b": 1, "k": 1e3, "kb": 1e3, "kib": 1024, "m": 1e6, "mb": 1e6, "mib": 1 << 20, "g": 1e9, "gb": 1e9,
          "gib": 1 << 30, "tb": 1e12, "tib": 1 << 40},
    "GB/s": {"": 1, "gb/s": 1, "mb/s": 1e-3},
    "%": {"": 1, "%": 1},
    "": {"": 1, "k": 1e3, "m": 1e6, "g": 1e9},
}  # fmt: skip


def time_unit(ns: float, units: Sequence[TimeUnit] = UNITS) -> TimeUnit:
    """The largest of ``units`` (ascending) in which ``ns`` is at least 1."""
    size = abs(ns)
    return next((unit for unit in reversed(units) if size >= unit.ns), units[0])


def column_unit(longest_ns: float) -> TimeUnit:
    """Common unit of the times of a column: the largest in which the longest time is at least ten.

    With three decimals the longest time is then shown to a hundredth of a percent or better.
    """
    return time_unit(longest_ns / 10)


def time_decimals(unit: TimeUnit, resolution_ns: int) -> int:
    """Number of decimals needed to distinguish times ``resolution_ns`` apart in ``unit``."""
    decimals = 0
    step = unit.ns
    while step > max(resolution_ns, 1):
        step //= 10
        decimals += 1
    return decimals


def time_number(ns: int, unit: TimeUnit, decimals: int) -> str:
    """Formats a time in ``unit``, without the unit's name; exact integer arithmetic, halves rounded away from zero."""
    if unit.ns == 1:
        return f"{ns:,}"
    scale = 10**decimals
    scaled = (abs(ns) * scale * 2 + unit.ns) // (unit.ns * 2)
    sign = "-" if ns < 0 and scaled else ""
    whole, rest = divmod(scaled, scale)
    return f"{sign}{whole:,}.{rest:0{decimals}d}" if decimals else f"{sign}{whole:,}"


def gap_text(gap_ns: int, word: str) -> str:
    """A gap between two events: "5 us apart" with ``word`` "apart"; if they overlap (negative), "5 us together"."""
    return f"{time_text(abs(gap_ns))} {word if gap_ns >= 0 else 'together'}"


def time_text(ns: int) -> str:
    """Formats a time with its unit, in about four digits ("12.35 us")."""
    unit = time_unit(ns)
    whole = abs(ns) // unit.ns
    decimals = 0 if unit.ns == 1 else 3 if whole < 10 else 2 if whole < 100 else 1 if whole < 1000 else 0
    return f"{time_number(ns, unit, decimals)} {unit.name}"


def delta_text(ns: int) -> str:
    """Formats a time difference, with a plus sign if positive ("+12.35 us")."""
    return signed(time_text(ns), ns)


def signed(text: str, value: float) -> str:
    """Adds a plus sign to the text of a positive difference."""
    return f"+{text}" if value > 0 else text


def exact_time(ns: int, resolution_ns: int = 1, unit: TimeUnit | None = None) -> str:
    """Formats a time with its unit (None: its own) and the decimals that ``resolution_ns`` requires (at most 9)."""
    unit = unit or time_unit(ns)
    return f"{time_number(ns, unit, min(time_decimals(unit, resolution_ns), 9))} {unit.name}"


def span_text(start: int, end: int) -> str:
    """A span of time in one unit, its ends apart by at least a hundred steps of the last digit: "4.36..7.03 ms"."""
    unit = time_unit(max(abs(start), abs(end)))
    decimals = time_decimals(unit, max((end - start) // 100, 1))
    return f"{time_number(start, unit, decimals)}..{time_number(end, unit, decimals)} {unit.name}"


def clock_text(ns: int) -> str:
    """Formats a wall-clock time, ns since 1970, with all digits: ``2026-11-22 21:03:11.993449310 UTC``."""
    from datetime import datetime, timezone  # imported here: the first frame does not need it

    seconds, rest = divmod(ns, 10**9)
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S}.{rest:09d} UTC"


def percent_text(share: float, *, guessed: bool = False) -> str:
    """Formats a share (0 to 1) in percent; guessed ones begin with ``~``."""
    percent = share * 100
    digits = f"{percent:.0f}" if percent >= 99.95 else f"{percent:.1f}"
    return f"{GUESS if guessed else ''}{digits}%"


def bytes_text(number: int | None) -> str:
    """Formats a number of bytes in a suitable binary unit ("256.0 KiB"); ``-`` for None."""
    if number is None:
        return MISSING
    size, unit = float(number), 0
    # values that would be rounded to 1024 of a unit are 1 of the next unit
    while abs(size) >= (1023.95 if unit else 1024) and unit + 1 < len(BYTE_UNITS):
        size /= 1024
        unit += 1
    return f"{size:,.{1 if unit else 0}f} {BYTE_UNITS[unit]}"


def amount_text(value: float, unit: str) -> str:
    """Formats a number with its unit ("22,337 MB/s"): two decimals below 1000; ``-`` for NaN."""
    if value != value:
        return MISSING
    return bytes_text(round(value)) if unit == "B" else f"{value:,.{0 if abs(value) >= 1000 else 2}f} {unit}".rstrip()


def short_text(value: float, unit: str) -> str:
    """Formats a number in three digits with a prefix ("22.3k"); bytes with binary prefixes ("1.5G")."""
    size, steps = value, 0
    base = 1024 if unit == "B" else 1000
    while abs(size) >= 999.5 and steps + 1 < len(_PREFIXES):
        size, steps = size / base, steps + 1
    return f"{size:.3g}{_PREFIXES[steps]}" if steps else f"{value:.3g}"


def rate_number(gigabytes: float, decimals: int = 2) -> str:
    """Formats a bandwidth in GB/s, without the unit."""
    return f"{gigabytes:,.{decimals}f}"


def rate_text(gigabytes: float, decimals: int = 2) -> str:
    """Formats a bandwidth with its unit ("46.05 GB/s")."""
    return f"{rate_number(gigabytes, decimals)} GB/s"


def plural(number: int, word: str) -> str:
    """Formats a count with its noun: ``1 problem``, ``2,000 problems``."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
