"""Columns of a trace: values as codes, integers and floats, growing chunk by chunk, by a declared list of arguments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import repeat
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.formats.decimals import numbers_in, reals, wholes
from tpuprof_tui.model import INT_MISSING

from .chunks import NOTHING

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Values = Sequence[Any]
#: Numbers of a larger magnitude are taken as missing (blocks per SM, percentages).
_MOST_FLOAT: Final = 1e12
_HASHABLE: Final = (int, float, str, tuple, type(None))
#: JSON of arguments that an event does not have.
NULL: Final = msgspec.Raw(b"null")


class Codes(dict[Any, int]):
    """Maps values to dense integer codes, in order of first use."""

    def __missing__(self, key: Any) -> int:
        code = self[key] = len(self)
        return code

    def of(self, values: Iterable[tuple[Any, ...]]) -> I32:
        """Codes of rows of values; those that are neither texts nor numbers count as their texts."""
        rows = list(values)
        try:
            return np.fromiter(map(self.__getitem__, rows), np.int32, len(rows))
        except TypeError:
            # unhashable values, such as lists, are no ids
            return np.array([self[tuple(value if isinstance(value, _HASHABLE) else str(value) for value in row)]
                             for row in rows], np.int32)  # fmt: skip


class GrowingColumns(defaultdict[str, list[npt.NDArray[Any]]]):
    """Columns by name, each a list of arrays until it is asked for."""

    def __init__(self) -> None:
        super().__init__(list)

    def add(self, **columns: npt.NDArray[Any]) -> None:
        """Appends an array to each named column."""
        for key, values in columns.items():
            self[key].append(values)

    def column(self, key: str, dtype: Any = np.int64) -> npt.NDArray[Any]:
        """A column as one array; ``dtype`` is the type of the empty array if the column does not exist."""
        return np.concatenate(self[key]) if key in self else np.zeros(0, dtype)

    def take(self, key: str, dtype: Any = np.int64) -> npt.NDArray[Any]:
        """A column as one array, as `column`; removes it here."""
        found = self.column(key, dtype)
        self.pop(key, None)
        return found

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """All columns by name; removes them here."""
        return {key: self.take(key) for key in list(self)}


# -- values


def floats(values: Values) -> F64:
    """float64 of numbers and texts of numbers; NaN for anything else."""
    found = reals(values)
    return np.where(np.abs(found) < _MOST_FLOAT, found, np.nan)


def raw_codes(texts: Codes, values: Values) -> I32:
    """Codes of raw JSON texts; -1 for empty ones."""
    # joining and splitting converts them to bytes in half the time
    raw = b"\0".join(values).split(b"\0") if values else []
    if len(raw) != len(values):
        raw = list(map(bytes, values))
    return np.array([texts[each] if each else -1 for each in raw], np.int32)


def text_codes(texts: Codes, values: Values) -> I32:
    """Codes of texts; -1 for anything else, and for empty ones."""
    if values.count(None) == len(values):
        return np.full(len(values), -1, np.int32)
    return np.array([texts[value] if type(value) is str and value else -1 for value in values], np.int32)


def printable(text: str | bytes, most: int = 1 << 16) -> str:
    """A text, or JSON text, that can be shown and written, cut to ``most`` characters."""
    return (text.decode("utf-8", "replace") if isinstance(text, bytes) else text)[:most]


def lookup(keys: I64, wanted: I64, values: I64 | None = None) -> I64:
    """Looks up ``wanted`` in ascending ``keys``: the value (default: the index) of the first equal key; -1 if none."""
    index = np.searchsorted(keys, wanted)
    found = np.full(len(wanted), -1, np.int64)
    inside = np.flatnonzero(index < len(keys))
    hit = inside[keys[index[inside]] == wanted[inside]]
    found[hit] = index[hit] if values is None else values[index[hit]]
    return found


# -- arguments


class Cast(Struct, frozen=True):
    """What becomes of the values of an argument."""

    #: Makes a column of them, given the codes of texts, and a list for the indices of integers beyond int64.
    column: Callable[[Values, Codes, list[int] | None], Any]
    missing: Any = None
    #: type, missing: Type that msgspec decodes a value to, and the value of an event without the argument.
    type: Any = Any


INTEGER: Final = Cast(lambda values, _, beyond: wholes(values, beyond), INT_MISSING)
FLOAT: Final = Cast(lambda values, *_: floats(values), np.nan)
#: Codes of texts; -1 for anything else, and for empty ones.
TEXT: Final = Cast(lambda values, texts, _: text_codes(texts, values))
#: Codes of JSON texts; -1 if absent.
JSON: Final = Cast(lambda values, texts, _: raw_codes(texts, values), NOTHING, msgspec.Raw)
#: The values as they are, in a list.
ANY: Final = Cast(lambda values, *_: list(values))


class ArgumentColumns:
    """Arguments of events that become columns.

    Args:
        others: Further fields of the struct, as ``columns``, that become no columns.
        columns: For each column what becomes of the values, and the keys in the file: of several the first that an
            event has.

    Attributes:
        struct: What arguments are decoded to; a further key of a column is a field with its number.
    """

    def __init__(self, others: Mapping[str, tuple[Any, ...]] | None = None, **columns: tuple[Any, ...]) -> None:
        self.columns = columns
        fields = {f"{name}_{number}" if number else name: (key, kind)
                  for name, (kind, *keys) in (columns | dict(others or {})).items()
                  for number, key in enumerate(keys)}  # fmt: skip
        self.struct: Any = msgspec.defstruct(
            "Arguments", [(name, kind.type, kind.missing) for name, (_, kind) in fields.items()], gc=False,
            rename={name: key for name, (key, _) in fields.items()},
        )  # fmt: skip
        self._nothing = self.struct()

    def of(self, decoded: Iterable[Any], texts: Codes, beyond: list[int] | None = None) -> dict[str, Any]:
        """Columns of some arguments, by name.

        Args:
            decoded: Structs; None for an event that has none.
            texts: Codes of texts.
            beyond: Indices of integers outside int64 are appended to it.
        """
        rows = [row or self._nothing for row in decoded]
        values = iter(zip(*map(msgspec.structs.astuple, rows), strict=True) if rows else repeat(()))
        found = {}
        for name, (kind, *keys) in self.columns.items():
            column: Values = next(values)
            for _ in keys[1:]:
                others: Values = next(values)
                if others.count(kind.missing) < len(others):
                    column = [value if value is not kind.missing else other
                              for value, other in zip(column, others, strict=True)]  # fmt: skip
            found[name] = kind.column(column, texts, beyond)
        return found

    def decoded(self, texts: Sequence[Any]) -> list[Any]:
        """Structs of JSON texts; None for those that are no object."""
        joined = b"".join((b"[", b",".join(texts), b"]"))
        try:
            found: list[Any] = msgspec.json.decode(joined, type=list[self.struct | None])  # type: ignore[name-defined]
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            found = [self._alone(text) for text in texts]
        return found

    def _alone(self, text: Any) -> Any:
        try:
            return msgspec.json.decode(text, type=self.struct)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None


#: Times of a larger magnitude, in ns, are invalid.
MOST_NS: Final = 1 << 62
_LONGEST: Final = 1 << 10


def text_of_times(texts: Sequence[Any]) -> bytes:
    """Joins JSON texts of numbers, or of strings that hold one, each followed by a comma; results may be concatenated.

    Args:
        texts: Bytes, or objects that convert to bytes.
    """
    joined = b",".join((*texts, b""))
    if joined.count(b",") != len(texts):
        # a text with a comma is no number
        joined = b",".join(b"" if b"," in (text := bytes(each)) else text for each in texts) + b","
    return joined


def is_number(text: bytes) -> bool:
    """Whether a JSON text is a finite number, or a string that holds one: a time that is out of range, not missing."""
    try:
        return len(text) <= _LONGEST and Decimal(text.strip(b' \t\r\n"').decode("ascii")).is_finite()
    except (InvalidOperation, UnicodeDecodeError):
        return False


def exact_ns(text: bytes) -> npt.NDArray[np.int64]:
    """Converts microseconds (joined by `text_of_times`) to whole ns, rounded half to even.

    Returns:
        int64; INT_MISSING for texts that are no valid time.
    """
    return numbers_in(text).nanoseconds()
