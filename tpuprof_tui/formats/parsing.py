"""Parser of user input: numbers with units, times, and time ranges; one grammar for options, prompts and filters.

    number = digits, with commas or underscores between them, a point, in filters also an exponent or 0x...
    time   = [+|-] number [ns | us | ms | s | % | c | cycles]
    range  = [time] .. [time]

A plain number is in ns, or in cycles where times are shown in cycles. ``30%`` is a position within the whole time span.
A signed time is relative to the cursor; after ``..`` to the first time; without a cursor to time zero. The output of
``formats.units`` is accepted.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from msgspec import Struct

from tpuprof_tui.errors import UsageError
from tpuprof_tui.lazy_names import lazy_pattern

from .units import TYPED, UNITS

_TIME: Final = lazy_pattern(
    r"([+-]?)\s*(\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})\s*(ns|us|µs|μs|ms|s|%|c|cycles?)?", re.IGNORECASE
)
_NS: Final = {unit.name: unit.ns for unit in UNITS} | {"": 1, "µs": 1_000, "μs": 1_000}
_NUMBER: Final = lazy_pattern(
    r"(?P<number>[-+]?(?:0x[0-9a-fA-F]+|(?:\d[\d_,]*)(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+))(?P<unit>\D*)"
)


#: A step: its number, alone or at the end of its label, as in ``batch 2`` and ``ProfilerStep#2``.
_STEP: Final = lazy_pattern(r"(?:.*[\s#])?(\d{1,18})", re.DOTALL)


class TypedError(UsageError):
    """Invalid input; the hint shows valid examples."""


class TimeBase(Struct, frozen=True):
    """Reference points for parsing times."""

    #: start, end: The whole time span, ns.
    start: int
    end: int
    cursor: int = 0  #: Origin of signed times, ns
    mhz: Fraction = Fraction(0)  #: Clock for times in cycles, MHz; 0: unknown
    cycles: bool = False  #: Whether a plain number is in cycles


def step_typed(text: str) -> int | None:
    """The number of a step, from the number or from its label; None: neither."""
    found = _STEP.fullmatch(text.strip())
    return int(found[1]) if found and found[1].isascii() else None


def time_typed(text: str, base: TimeBase) -> int:
    """Parses a time, ns; exact rational arithmetic, halves of a ns are rounded up.

    Raises:
        TypedError: The text is not a time.
    """
    match = _TIME.fullmatch(_without_marks(text))
    if match is None:
        raise TypedError(f"{text.strip()!r} is not a time.", "Write 12.5ms, 1200us, 30%, +5us, 12500c (cycles) or ns.")
    sign, number, unit = match[1], Fraction(f"0{match[2]}"), (match[3] or "").lower()
    if unit == "%":
        if sign:
            raise TypedError("Percentages count from the start.", "Write 30%.")
        return base.start + _whole((base.end - base.start) * number / 100)
    if unit.startswith("c") or (not unit and base.cycles):
        if not base.mhz:
            raise TypedError("This capture records no clock rate.", "Write 12.5ms, 1200us, 30% or +5us.")
        time = round(number * 1000 / base.mhz)
    else:
        time = _whole(number * _NS[unit])
    return base.cursor + (-time if sign == "-" else time) if sign else time


def range_typed(text: str, base: TimeBase) -> tuple[int | None, int | None]:
    """Parses a time range such as ``1.2ms..3.4ms``, ns; None for an omitted side.

    Raises:
        TypedError: The text is not a range, or ends before it starts.
    """
    sides = [side.strip() for side in text.split("..")]
    if len(sides) != 2:
        raise TypedError(f"{text.strip()!r} is not a time range.", "Write 1.2ms..3.4ms, 30%..40% or 1.2ms..+5us.")
    start = time_typed(sides[0], base) if sides[0] else None
    from_start = base if start is None else TimeBase(base.start, base.end, start, base.mhz, base.cycles)
    end = time_typed(sides[1], from_start) if sides[1] else None
    if start is not None and end is not None and end <= start:
        why = "ends before it starts" if base.end > base.start else "is of no time: no event has one"
        raise TypedError(f"{text.strip()!r} {why}.")
    return start, end


def range_text(start: int, end: int) -> str:
    """Formats a range exactly; inverse of `range_typed`."""
    return f"{start}ns..{end}ns"


def number_typed(text: str, unit: str) -> int | float:
    """Parses a number and converts it to a unit ("ns", "B", "GB/s", "%", "" any other).

    Raises:
        TypedError: The text is not a number, or has another unit.
    """
    scales = TYPED.get(unit, TYPED[""])
    match = _NUMBER.fullmatch(text.strip())
    named = match["unit"].strip().lower() if match else ""
    if match is None or named not in scales:
        raise TypedError(f"{text!r} is not a number.", f"Units: {', '.join(name for name in scales if name)}.")
    digits = _without_marks(match["number"])
    return (int(digits, 16) if "0x" in digits else float(digits)) * scales[named]


def _without_marks(text: str) -> str:
    return text.strip().replace(",", "").replace("_", "")


def _whole(time: Fraction) -> int:
    """The nearest integer; halves are rounded up."""
    return (2 * time.numerator + time.denominator) // (2 * time.denominator)
