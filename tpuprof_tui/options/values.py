"""Checks values of options by type, and suggests corrections."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from tpuprof_tui.lazy_names import lazy_pattern

from .conditions import Context
from .reading import Digits, Unparsed
from .tables import Option, Tables

_INTEGER: Final = lazy_pattern(r"-?[0-9]+")
_SIZE: Final = lazy_pattern(r"(-?[0-9]+)(\D*)")
_REGISTER: Final = lazy_pattern(r"0[xX][0-9a-fA-F]+|[0-9]+")
#: Numbers with this many digits or more exceed all limits.
_MOST_DIGITS: Final = 19
_HUGE: Final = 10**_MOST_DIGITS
_LONGEST: Final = 64


#: Marks that there is no obvious correction; None is a valid value.
NO_FIX: Final = object()


class Flaw(Struct, frozen=True):
    """An error in a value."""

    code: str  #: Code of the broken rule
    reason: str = ""  #: The faulty part of the value
    better: Any = NO_FIX  #: The obvious correct value, or `NO_FIX`


def flaws(option: Option, value: Any, context: Context) -> list[Flaw]:
    """Errors in the value of an option, independent of other options."""
    if option.type in _LITERALS:
        return list(_LITERALS[option.type](option, value, context))
    found = []
    if not isinstance(value, str) or isinstance(value, (Digits, Unparsed)):
        counts = isinstance(value, Digits) and option.type in ("integer", "size") and _INTEGER.fullmatch(value)
        found.append(Flaw("value_not_text", better=_quoted(option, value)))
        if not counts:
            return [*found, Flaw("bad_value", better=_quoted(option, value))]
        value = str(value)
    return [*found, *_TEXTS[option.type](option, value, context)]


def expected(option: Option, tables: Tables) -> str:
    """Description of the allowed values of an option, as part of a sentence."""
    low, high = option.range or (None, None)
    key = f"expects_{option.type}" if high is not None or option.range is None else "expects_from"
    values = ", ".join(map(str, option.values))
    return tables.say(key, values=values, low=low, high=high, unit=option.unit, suffix=option.suffix).strip()


def _quoted(option: Option, value: Any) -> Any:
    """The text that an unquoted value was probably meant to be; `NO_FIX` if unclear."""
    if value is True or value is False:
        return option.meant.get(str(value).lower(), NO_FIX)
    return str(value) if isinstance(value, Digits) and _meant(option, value) is not NO_FIX else NO_FIX


def _meant(option: Option, value: str) -> Any:
    """The allowed value that a text was probably meant to be; `NO_FIX` if unclear."""
    plain = value.strip().lower()
    if option.type in ("integer", "size"):
        return value
    if len(plain) > _LONGEST or not plain:
        return NO_FIX
    if plain in option.meant:
        return option.meant[plain]
    values = {str(each).lower(): each for each in option.values}
    if plain in values:
        return values[plain]
    near = difflib.get_close_matches(plain, values, n=2, cutoff=0.8)
    return values[near[0]] if len(near) == 1 else NO_FIX


# -- text values ----------------------------------------------------------------


def _path(option: Option, value: str, context: Context) -> Iterator[Flaw]:
    if not value and option.empty:
        yield Flaw(option.empty)
    if option.forbidden and any(character in value for character in option.forbidden["characters"]):
        yield Flaw(option.forbidden["code"])
    if option.missing and context.here and not os.path.exists(value):
        yield Flaw(option.missing)


def _choice(option: Option, value: str, context: Context) -> Iterator[Flaw]:
    if value not in option.values:
        yield Flaw(option.lenient or "bad_value", better=_meant(option, value))


def _set(option: Option, value: str, context: Context) -> Iterator[Flaw]:
    items = [item.strip() for item in value.split(",")]
    if not all(item in option.values for item in items):
        better = [_meant(option, item) for item in items if item]
        yield Flaw("bad_value", better=NO_FIX if not better or NO_FIX in better else ",".join(dict.fromkeys(better)))


def _integer(option: Option, value: str, context: Context) -> Iterator[Flaw]:
    if not _INTEGER.fullmatch(value):
        stripped = value.strip()
        yield Flaw("bad_value", better=stripped if stripped != value and _INTEGER.fullmatch(stripped) else NO_FIX)
    elif not _in_range(option, value):
        yield Flaw("out_of_range")


def _size(option: Option, value: str, context: Context) -> Iterator[Flaw]:
    found = _SIZE.fullmatch(value)
    suffix = found[2] if found else ""
    if found is None or suffix not in ("", option.suffix):
        meant = found is not None and suffix.strip().lower() in (option.suffix.lower(), option.suffix[0].lower())
        yield Flaw("bad_value", better=f"{found[1]}{option.suffix}" if found and meant else NO_FIX)
        return
    if not _in_range(option, found[1]):
        yield Flaw("out_of_range")
    if not suffix:
        yield Flaw(option.bare, better=f"{found[1]}{option.suffix}")


def _metrics(option: Option, value: str, context: Context) -> Iterator[Flaw]:
    custom = option.custom or {}
    if not value.startswith(custom["prefix"]):
        yield from _choice(option, value, context)
        return
    items = [item.strip() for item in value[len(custom["prefix"]) :].split(",")]
    wrong = [item for item in items if not _REGISTER.fullmatch(item)]
    if wrong:
        yield Flaw(custom["syntax"], reason=f'"{wrong[0][:_LONGEST]}"')
    numbers = {item: _whole(item) for item in items if _REGISTER.fullmatch(item)}
    low, high = custom["range"]
    outside = [item for item, number in numbers.items() if not low <= number <= high]
    if outside:
        yield Flaw(custom["outside"], reason=outside[0][:_LONGEST])
    if len(items) > custom["most"]:
        yield Flaw(custom["too_many"], reason=str(len(items)))
    first: dict[int, str] = {}
    twice = ""
    for item in items:
        number = numbers.get(item, _HUGE)
        if number < _HUGE and number in first:
            twice = twice or item
        first.setdefault(number, item)
    if twice:
        better = NO_FIX if wrong else f"{custom['prefix']}{','.join(first.values())}"
        yield Flaw(custom["twice"], reason=twice, better=better)


def _in_range(option: Option, digits: str) -> bool:
    low, high = option.range or (None, None)
    number = _whole(digits)
    return (low is None or number >= low) and (high is None or number <= high)


def _whole(digits: str) -> int:
    """Parses decimal or hexadecimal digits; ``_HUGE`` for too many digits, because converting them is slow."""
    sign, base = (-1, 10) if digits.startswith("-") else (1, 16 if digits[:2].lower() == "0x" else 10)
    digits = digits.lstrip("-")[2 if base == 16 else 0 :].lstrip("0") or "0"
    return sign * (int(digits, base) if len(digits) < _MOST_DIGITS else _HUGE)


# -- values of calls --------------------------------------------------------------


def _boolean(option: Option, value: Any, context: Context) -> Iterator[Flaw]:
    if value is not True and value is not False:
        better = {"true": True, "1": True, "false": False, "0": False}.get(str(value)[:_LONGEST].lower(), NO_FIX)
        yield Flaw("bad_value", better=better)


def _of_numbers(option: Option, value: Any, context: Context) -> Iterator[Flaw]:
    if type(value) is not int or value not in option.values:
        word = str(value)[:_LONGEST].lower().rpartition(".")[2]
        numbers = {str(each): each for each in option.values}
        yield Flaw("bad_value", better=numbers.get(word, option.meant.get(word, NO_FIX)))


def _count(option: Option, value: Any, context: Context) -> Iterator[Flaw]:
    if type(value) is not int:
        yield Flaw("bad_value")
    elif not _in_range(option, str(value)):
        yield Flaw("out_of_range")


def _anything(option: Option, value: Any, context: Context) -> Iterator[Flaw]:
    return iter(())


_Check = Callable[[Option, Any, Context], Iterator[Flaw]]
_TEXTS: Final[dict[str, _Check]] = {
    "path": _path, "name": _anything, "switch": _choice, "choice": _choice, "set": _set, "integer": _integer,
    "size": _size, "metrics": _metrics,
}  # fmt: skip
_LITERALS: Final[dict[str, _Check]] = {
    "boolean": _boolean, "number": _of_numbers, "count": _count, "expression": _anything,
}  # fmt: skip
