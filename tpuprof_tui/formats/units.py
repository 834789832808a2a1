"""Numbers as people read them: one convention for the screen, tables in a pipe, messages and the page.

- *Bytes* in binary units under their own names (KiB, MiB, GiB, TiB), one digit after the point: memories, buffers and
  tiles are powers of two, files are told so by ``ls -h`` and ``du -h``, and filters take the same spelling.
- *Bandwidths* in GB/s, 10^9 bytes a second, two digits: that is what data sheets state peaks in, and bytes over ns.
- *Times* in ns, us, ms or s, in ASCII, so that they can be typed as they are read. Alone with about four digits; where
  several stand below one another in one unit, of which the longest is at least ten, with three digits after the point.
- *Counts* with commas between thousands.
- *Shares* in percent with one digit, without one from 99.95 % on.
- What rests on guesswork begins with ``~``, what is not known is ``-``.

The page says the same in ``text.js``; what is typed is read by ``formats.times`` and the filters with these units.
Files for programs hold plain ns, bytes and shares. No numpy, no Textual: the first frame needs this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

#: Shown where nothing is known.
MISSING: Final = "-"
#: Prefix of figures that rest on guesswork.
GUESS: Final = "~"


class TimeUnit(Struct, frozen=True):
    """A unit of time: its name and length in ns."""

    name: str
    ns: int

    def number(self, ns: float) -> str:
        """A time in this unit without its name, for columns: three digits after the point, ns are whole."""
        return time_number(round(ns), self, 3)

    def text(self, ns: float) -> str:
        """The same with its name."""
        return f"{self.number(ns)} {self.name}"


NS: Final = TimeUnit("ns", 1)
UNITS: Final = (NS, TimeUnit("us", 1_000), TimeUnit("ms", 1_000_000), TimeUnit("s", 1_000_000_000))
#: Units of bytes, each 1024 times the one before.
BYTE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")

_PREFIXES: Final = ("", "k", "M", "G", "T", "P")

#: What may be typed behind a number, in small letters, by the unit of what it is compared with; "": any other.
TYPED: Final[Mapping[str, Mapping[str, float]]] = {
    "ns": {"": 1, **{unit.name: unit.ns for unit in UNITS}},
    "B": {"": 1, "b": 1, "k": 1e3, "kb": 1e3, "kib": 1024, "m": 1e6, "mb": 1e6, "mib": 1 << 20, "g": 1e9, "gb": 1e9,
          "gib": 1 << 30, "tb": 1e12, "tib": 1 << 40},
    "GB/s": {"": 1, "gb/s": 1, "mb/s": 1e-3},
    "%": {"": 1, "%": 1},
    "": {"": 1, "k": 1e3, "m": 1e6, "g": 1e9},
}  # fmt: skip


def time_unit(ns: float, units: Sequence[TimeUnit] = UNITS) -> TimeUnit:
    """The largest unit in which ``ns`` is at least 1; ``units`` ascending."""
    size = abs(ns)
    return next((unit for unit in reversed(units) if size >= unit.ns), units[0])


def column_unit(longest_ns: float) -> TimeUnit:
    """The unit that the times of a column share: the largest of which its longest is at least ten.

    With three digits after the point the longest is then told to a hundredth of a percent or better.
    """
    return time_unit(longest_ns / 10)


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


def delta_text(ns: int) -> str:
    """A difference of times, with its sign where it is more ("+12.35 us")."""
    return signed(time_text(ns), ns)


def signed(text: str, value: float) -> str:
    """A difference as text, with its sign where it is more."""
    return f"+{text}" if value > 0 else text


def exact_time(ns: int, resolution_ns: int = 1) -> str:
    """A time with its unit and as many digits as ``resolution_ns`` asks for."""
    unit = time_unit(ns)
    return f"{time_number(ns, unit, min(time_decimals(unit, resolution_ns), 9))} {unit.name}"


def clock_text(ns: int) -> str:
    """A time of day, ns since 1970, to the digit: ``2026-11-22 21:03:11.993449310 UTC``."""
    from datetime import datetime, timezone  # the first frame needs none

    seconds, rest = divmod(ns, 10**9)
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S}.{rest:09d} UTC"


def percent_text(share: float, *, guessed: bool = False) -> str:
    """A share (0 to 1) in percent, with the sign of guesswork."""
    percent = share * 100
    digits = f"{percent:.0f}" if percent >= 99.95 else f"{percent:.1f}"
    return f"{GUESS if guessed else ''}{digits}%"


def bytes_text(number: int | None) -> str:
    """Bytes in a binary unit that fits ("256.0 KiB"); ``-`` where they are not known."""
    if number is None:
        return MISSING
    size, unit = float(number), 0
    # what would be rounded to 1024 of a unit is 1 of the next
    while abs(size) >= (1023.95 if unit else 1024) and unit + 1 < len(BYTE_UNITS):
        size /= 1024
        unit += 1
    return f"{size:,.{1 if unit else 0}f} {BYTE_UNITS[unit]}"


def amount_text(value: float, unit: str) -> str:
    """A number with its unit in at least four digits ("22,337 MB/s"); NaN as missing."""
    if value != value:
        return MISSING
    return bytes_text(round(value)) if unit == "B" else f"{value:,.{0 if abs(value) >= 1000 else 2}f} {unit}".rstrip()


def short_text(value: float, unit: str) -> str:
    """A number in three digits ("22.3k"), bytes in their unit ("1.5G")."""
    size, steps = value, 0
    base = 1024 if unit == "B" else 1000
    while abs(size) >= 999.5 and steps + 1 < len(_PREFIXES):
        size, steps = size / base, steps + 1
    return f"{size:.3g}{_PREFIXES[steps]}" if steps else f"{value:.3g}"


def rate_number(gigabytes: float, decimals: int = 2) -> str:
    """A bandwidth in GB/s, without its unit."""
    return f"{gigabytes:,.{decimals}f}"


def rate_text(gigabytes: float, decimals: int = 2) -> str:
    """A bandwidth ("46.05 GB/s")."""
    return f"{rate_number(gigabytes, decimals)} GB/s"


def plural(number: int, word: str) -> str:
    """``1 problem``, ``2,000 problems``."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
